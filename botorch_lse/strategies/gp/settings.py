r"""What a strategy on a Gaussian process is given, and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar

from botorch_lse.checks import in_interval
from botorch_lse.confidence.classify import accuracy
from botorch_lse.confidence.rkhs import RKHSWidth
from botorch_lse.confidence.schedules import BetaSchedule, UnionBeta, beta_schedule
from botorch_lse.models import (
    ModelArgument,
)
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.posterior import MEMORY_BUDGET
from botorch_lse.prior import GPPrior
from botorch_lse.strategies.goals import (
    ExplicitGoal,
    Goal,
    ImplicitGoal,
)
from botorch_lse.strategies.gp.arguments import check_goal
from botorch_lse.strategies.gp.guarantee import (
    gaussian_guarantee,
    no_guarantee,
    norm_guarantee,
)
from botorch_lse.strategies.learning import LEVEL_Z, Learning
from botorch_lse.strategies.loop import Strategy
from botorch_lse.strategies.process import Process


@dataclass(frozen=True, eq=False)
class GPSettings(Learning, Strategy):
    r"""The arguments that ``GPStrategy`` describes, and what follows."""

    threshold: float | None = None
    _: KW_ONLY
    omega: float | None = None
    model: ModelArgument = None
    batch_size: int = 1
    noise_std: float | None = None
    delta: float = 0.05
    beta: float | BetaSchedule | None = None
    norm_bound: float | None = None
    epsilon: float = 0.0
    max_observations: int | None = None
    max_repeats: int | None = None
    refit: int | Callable[[int], bool] = 1
    n_initial: int | None = None
    level_z: float | None = LEVEL_Z
    memory_budget: int = MEMORY_BUDGET

    goals: ClassVar[tuple[str, ...]] = ("threshold", "omega")
    intersects: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_rounds()
        self._check_learning()
        accuracy(self.epsilon)
        if self.level_z is not None:
            in_interval(self.level_z, "level_z", 0.0, float("inf"))
        check_goal(self.threshold, self.omega, self.goals, type(self).__name__)
        self._check_noise()
        if self.norm_bound is not None:
            in_interval(self.norm_bound, "norm_bound", 0.0, float("inf"))
            self._check_norm_bound()

    def _check_norm_bound(self) -> None:
        if self.fixed is None or not self.claims_confidence:
            found = "no fixed `model`" if self.fixed is None else "other widths"
            raise ValueError(
                "Expected `norm_bound` with a fixed `model`, whose kernel defines the "
                f"norm, and a strategy with a theorem's widths, but got {found}. Leave "
                "`norm_bound` out."
            )

    def _check_noise(self) -> None:
        self.process.check()

    @cached_property
    def process(self) -> Process:
        r"""The model, and what is known of the noise."""
        return Process(self.pool, self.model, self.noise_std)

    @property
    def processes(self) -> tuple[Process, ...]:
        r"""The one model."""
        return (self.process,)

    @property
    def fixed(self) -> GPPrior | None:
        r"""The prior if hyper-parameters are fixed, else ``None``."""
        return self.process.fixed

    @cached_property
    def goal(self) -> Goal:
        r"""What is to be decided."""
        if self.threshold is not None:
            return ExplicitGoal(float(self.threshold), self.epsilon)
        return ImplicitGoal(float(self.omega or 0.0), self.epsilon)

    @cached_property
    def widths(self) -> BetaSchedule:
        r"""The squared widths by interval."""
        if self.beta is not None:
            return beta_schedule(self.beta)
        return self._default_widths()

    def _default_widths(self) -> BetaSchedule:
        return UnionBeta(len(self.pool), self.delta)

    def _beta(self, t: int, posterior: PoolPosterior) -> float:
        r"""The squared width of interval ``t``, which is that of ``posterior``."""
        if self.norm_bound is None:
            return self.widths(t)
        width = RKHSWidth(self.norm_bound, 1.0, 1.0, self.delta)  # per row's noise
        return float(width.from_information(posterior.information)) ** 2

    @property
    def claims_confidence(self) -> bool:
        r"""Whether the widths are a theorem's."""
        return self.beta is None

    @property
    def is_theorem(self) -> bool:
        r"""Whether a theorem gives the widths: it asks for fixed hyper-parameters."""
        return self.claims_confidence and self.fixed is not None

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, in words."""
        if not self.claims_confidence:
            claim = no_guarantee(self.beta is None)
        elif self.norm_bound is not None:
            claim = norm_guarantee(self.delta, self.epsilon, self.norm_bound)
        else:
            fixed = self.fixed is not None
            claim = gaussian_guarantee(
                self.delta, self.epsilon, self._source, fixed=fixed
            )
        return claim if self.fixed is not None else f"{claim} {self._learnt_in_words}"

    @property
    def _learnt_in_words(self) -> str:
        r"""What an answer of a learnt model is worth."""
        raised = ", whose scale was raised so that the level is plausible"
        words = (
            f"Decided under the fitted model{raised if self.level_z else ''}. No "
            "guarantee if the function varies faster elsewhere than where it was "
            "measured."
        )
        n, wanted = self.initial_observations, self.wanted_initial
        if n < wanted:
            words += f" The budget allows {n} of the {wanted} rows of a first design."
        return words

    @property
    def _source(self) -> str:
        return f"Gotovos et al. 2013, {self._theorem}"

    @property
    def _theorem(self) -> str:
        return f"Theorem {1 if self.threshold is not None else 2}"

    @property
    def _up_to(self) -> str:
        return f" up to epsilon = {self.epsilon:g}" if self.epsilon > 0 else ""
