r"""What the PAC forms of MELK and MILK are given, and what they promise."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import ClassVar

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.confidence.classify import accuracy
from botorch_lse.designs.basis import span_map
from botorch_lse.designs.kernel_gram import KernelGram
from botorch_lse.strategies.arguments import check_noise_once
from botorch_lse.strategies.base import Strategy
from botorch_lse.strategies.pac.rounds import draws_of_round

RETURNED = ("aggressive", "conservative")
ESTIMATES = ("means", "linear program")


@dataclass(frozen=True, eq=False)
class PACSettings(Strategy):
    r"""The arguments that ``PACStrategy`` describes, and what follows."""

    _: KW_ONLY
    bound: float
    noise_std: float | None = None
    kernel: Kernel | None = None
    gamma: float = 0.0
    delta: float = 0.05
    epsilon: float = 0.0
    returned: str = "aggressive"
    estimate: str = "means"
    max_observations: int | None = None
    max_repeats: None = field(init=False, default=None)
    batch_size: None = field(init=False, default=None)

    sample_constant: ClassVar[float] = 16.0
    elimination_constant: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        self._check_rounds()
        in_interval(self.bound, "bound", 0.0, math.inf)
        in_interval(self.gamma, "gamma", 0.0, math.inf, closed_low=True)
        in_interval(self.delta, "delta", 0.0, 1.0)
        accuracy(self.epsilon)
        for name, known in (("returned", RETURNED), ("estimate", ESTIMATES)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"Expected `{name}` to be one of {known}, but got "
                    f"{getattr(self, name)!r}."
                )
        check_noise_once(self.noise_std, self.pool, exact=True)

    # --- the problem ------------------------------------------------------------------

    @cached_property
    def second_moment(self) -> float:
        r"""``B^2 + sigma^2``, which bounds ``E[y^2]``."""
        if self.noise_std is not None:
            return float(self.bound**2 + self.noise_std**2)
        return float(self.bound**2 + self.pool.noise_var.max())  # type: ignore[union-attr]

    @cached_property
    def Phi(self) -> Tensor:
        r"""``N x m`` features; without ridge in coordinates that span them."""
        if self.kernel is not None:
            Phi = KernelGram.of(self.kernel, self.pool.X).basis(0.0).Phi
        else:
            Phi = self.pool.X if self.pool.features is None else self.pool.features
        return Phi @ span_map(Phi) if self.gamma == 0 else Phi

    @property
    def last_round(self) -> float:
        r"""``ceil(log2(4 / epsilon))``, the last round that is run."""
        if self.epsilon == 0:
            return math.inf
        return max(1, math.ceil(math.log2(4 / self.epsilon)))

    def direction_delta(self, t: int) -> float:
        r"""``delta_t / |X|^2`` with ``delta_t = delta / (2 t^2)``: one direction's."""
        return self.delta / (2 * t**2 * len(self.pool) ** 2)

    def n_draws(self, t: int, g: float) -> int:
        r"""``N_t``; see ``draws_of_round``."""
        N, S = len(self.pool), self.second_moment
        return draws_of_round(t, N, g, S, self.delta, self.sample_constant)

    def width(self, t: int) -> float:
        r"""``2 2^-t``: what the estimates of round ``t`` are off at most."""
        return self.elimination_constant * 2.0**-t

    # --- the promise ------------------------------------------------------------------

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        names = ("above", "below")
        full, empty = names if self.returned == "aggressive" else names[::-1]
        bias = f"the bias of gamma = {self.gamma:g}" if self.gamma > 0 else ""
        beyond = f" by more than {bias}" if bias else ""
        plus = f" plus {bias}" if bias else ""
        noise_std = math.sqrt(self.second_moment - self.bound**2)
        space = "the features" if self.kernel is None else "the kernel's features"
        return (
            f"With probability {1 - self.delta:g}, once no row is undecided, `{full}` "
            f"holds every row {full} the level{beyond} and none {empty} it by more "
            f"than epsilon = {self.epsilon:g}{plus}; assumes f linear in {space}, |f| "
            f"at most {self.bound:g}, and independent noise of mean 0 and standard "
            f"deviation at most {noise_std:g} (Mason et al. 2022, {self.theorem})."
        )

    theorem: ClassVar[str]
