r"""What a strategy on one Gaussian process per output is given and promises."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.confidence.schedules import BetaSchedule, UnionBeta, beta_schedule
from botorch_lse.models import ModelArgument
from botorch_lse.posterior import MEMORY_BUDGET
from botorch_lse.strategies.arguments import places_of
from botorch_lse.strategies.learning import Learning
from botorch_lse.strategies.pareto.outputs import MultiOutputStrategy
from botorch_lse.strategies.process import Process


@dataclass(frozen=True, eq=False)
class GPParetoSettings(Learning, MultiOutputStrategy):
    r"""The arguments that ``GPParetoStrategy`` describes, and what follows."""

    _: KW_ONLY
    model: ModelArgument | Sequence[ModelArgument] = None
    batch_size: int = 1
    noise_std: float | Sequence[float] | None = None
    delta: float = 0.05
    beta: float | BetaSchedule | None = None
    epsilon: float | Sequence[float] = 0.0
    max_observations: int | None = None
    max_repeats: int | None = None
    refit: int | Callable[[int], bool] = 1
    n_initial: int | None = None
    memory_budget: int = MEMORY_BUDGET

    def __post_init__(self) -> None:
        self._check_rounds()
        self._check_outputs()
        self._check_learning()
        pairs = len(self.pool) ** 2
        if pairs > self.memory_budget:
            raise ValueError(
                "Expected a `pool` whose pairs fit `memory_budget` = "
                f"{self.memory_budget} bytes, but {len(self.pool)} rows need {pairs}. "
                "Give a larger budget or fewer rows."
            )
        for process in self.processes:
            process.check()
        assert len(self.processes) == len(self.tolerances)  # both are checked

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        r"""One model per output, with its noise."""
        models = _each(self.model, "model", self.m)
        stds = _each(self.noise_std, "noise_std", self.m)
        return tuple(
            Process(self.pool, model, std)
            for model, std in zip(models, stds, strict=True)
        )

    @cached_property
    def tolerances(self) -> Tensor:
        r"""``m`` accuracies."""
        given = _each(self.epsilon, "epsilon", self.m)
        end = float("inf")
        found = [in_interval(e, "epsilon", 0.0, end, closed_low=True) for e in given]
        return torch.tensor(found, dtype=torch.float64)

    @cached_property
    def widths(self) -> BetaSchedule:
        r"""The squared widths by interval."""
        if self.beta is not None:
            return beta_schedule(self.beta)
        return UnionBeta(self.n_claims, self.delta)

    @cached_property
    def _judging(self) -> tuple[Tensor, int, Tensor]:
        r"""The last arguments of ``judge``."""
        return self.tolerances, self.memory_budget, places_of(self.pool.X)

    @property
    @abstractmethod
    def n_claims(self) -> int:
        r"""How many intervals must hold together in each round."""

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        if self.beta is not None:
            return "No confidence is claimed: the width is given; delta is ignored."
        if not self.is_fixed:
            return (
                f"With probability {1 - self.delta:g} {self._promise}, were the fitted "
                "hyper-parameters the true ones: the theorem does not cover fitting."
            )
        return (
            f"With probability {1 - self.delta:g} {self._promise}; assumes outputs "
            "drawn from the given Gaussian processes and independent Gaussian noise of "
            "the given variances (by a union bound as in Srinivas et al. 2012, Lemma "
            "5.1)."
        )

    @property
    @abstractmethod
    def _promise(self) -> str:
        r"""What holds with the stated probability."""

    @property
    def _up_to(self) -> str:
        parts = ", ".join(f"{e:g}" for e in self.tolerances.tolist())
        return parts if len(set(self.tolerances.tolist())) > 1 else parts.split(",")[0]


def _each(value: object, name: str, m: int) -> tuple:  # type: ignore[type-arg]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (value,) * m
    if len(value) != m:
        raise ValueError(
            f"Expected `{name}` to be one, or one per output ({m}), but got "
            f"{len(value)}."
        )
    return tuple(value)
