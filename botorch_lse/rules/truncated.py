r"""Truncated variance (TruVaR): a rule with a memory of epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.confidence.schedules import BetaSchedule
from botorch_lse.data.pool import Pool
from botorch_lse.functional.scores import straddle
from botorch_lse.goals.base import Goal
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.rules.base import IntervalPolicy, SelectionContext, Serves
from botorch_lse.rules.costs import RowCosts
from botorch_lse.rules.lookahead import LookAhead, Reductions, Stays, Visits


def stays_open(context: SelectionContext) -> Stays:
    r"""The test of which targets stay undecided after a measurement, means unchanged.

    Args:
        context: The question: one level, or the maximiser.

    Source:
        Bogunovic et al. (2016), Eq. (5) and (6).
    """
    if context.goal.facts.seeks_best:

        def may_be_best(mean: Tensor, half: Tensor) -> Tensor:
            return mean + half >= (mean - half).amax(-1, True)

        return may_be_best
    region = context.region
    assert region is not None  # `check` asks for a level

    def reaches_level(mean: Tensor, half: Tensor) -> Tensor:
        return (mean - region.level).abs() + max(region.accuracies) <= half

    return reaches_level


@dataclass(frozen=True)
class EpochBeta:
    r"""The width of the paper's experiments, ``beta_(i) = a log(N t_(i)^2)``.

    Args:
        n_rows: ``N``, noise levels included.
        factor: ``a``.

    Raises:
        ValueError: If ``n_rows`` or ``factor`` is not positive.

    Source:
        Bogunovic et al. (2016), section 4; a pool of one row counts as two, so that the
        width is positive.
    """

    n_rows: int
    factor: float

    def __post_init__(self) -> None:
        whole_number(self.n_rows, "n_rows", 1)
        in_interval(self.factor, "factor", 0.0, math.inf)

    def __call__(self, t: int) -> float:
        r"""The width ``beta_(i)`` of an epoch whose first time index is ``t``."""
        return self.factor * math.log(max(self.n_rows, 2) * t**2)


@dataclass(frozen=True)
class Epochs:
    r"""The current epoch: TruVaR narrows all widths to ``eta``, then lowers ``eta``.

    Args:
        number: ``i``, from 1.
        eta: ``eta_(i)``, the width to reach, units of ``y``.
        beta: ``beta_(i)``, the squared width of intervals in this epoch.
    """

    number: int = 1
    eta: float = 0.0
    beta: float = 1.0

    def after(
        self, sigma: float, next_beta: float, ratio: float, delta_bar: float
    ) -> Epochs:
        r"""The epoch after an observation, perhaps several epochs later.

        Args:
            sigma: The largest standard deviation left among undecided rows, units of
                ``y``.
            next_beta: ``beta`` of epochs that begin now; those entered at one time
                share it.
            ratio: ``r``.
            delta_bar: The slack: an epoch ends at widths ``(1 + delta_bar) eta``.

        Source:
            Bogunovic et al. (2016), Algorithm 1, lines 5 and 6, with errata 2 and 3
            (papers/bogunovic2016/errata.md): with ``eta = 0`` there is one epoch.
        """
        number, eta, beta = self.number, self.eta, self.beta
        while eta > 0 and math.sqrt(beta) * sigma <= (1 + delta_bar) * eta:
            number, eta, beta = number + 1, ratio * eta, next_beta
        return Epochs(number, eta, beta)


@dataclass(frozen=True)
class TruVaRMemory(Visits):
    r"""The memory of TruVaR after the complete rounds.

    Args:
        previous: See ``Visits``.
        spent: See ``Visits``.
        epochs: The epoch, its target width and its squared width ``beta_(i)``.
    """

    epochs: Epochs = Epochs()


@dataclass(frozen=True, eq=False)
class TruncatedVariance(LookAhead):
    r"""Measure the row that most shrinks the widths in question, per cost.

    Args:
        costs: The costs of rows; ``None``: the pool's costs, or one each.
        eta: See ``TruVaRStrategy``, as are the next ones.
        eta_ratio: ``r``.
        delta_bar: The slack.
        own_width: The paper's practical width; default a theorem's, or a given one.
        is_theorem: Whether the width is a theorem's, which grows in every round; else
            it stays as it is through an epoch.
        is_monotone: Whether rows that left the question stay out.
        only_candidates: Whether only rows in question are measured.
        anticipates: See ``TruVaRStrategy``.
        prefilter: The number of rows to score.

    Source:
        Bogunovic et al. (2016), Algorithms 1 and 2 and Appendix A, with errata 1 to 6
        (papers/bogunovic2016/errata.md).
    """

    costs: RowCosts | None = None
    eta: float = 1.0
    eta_ratio: float = 0.1
    delta_bar: float = 0.0
    own_width: BetaSchedule | None = None
    is_theorem: bool = True
    is_monotone: bool = True
    only_candidates: bool = False
    anticipates: bool = False
    prefilter: int | None = None

    serves = Serves.LEVEL

    @property
    def intervals(self) -> IntervalPolicy:  # type: ignore[override]
        r"""The policy: separate intervals, computed anew in each round."""
        return IntervalPolicy(
            width=self.own_width,
            intersects=False,
            is_monotone=self.is_monotone,
            decides_before_data=False,
            by_round=True,
        )

    def check(self, pool: Pool, goal: Goal) -> None:
        r"""Complain if the costs are of another pool, or the look-ahead is undefined.

        Raises:
            ValueError: If the costs are of other rows.
            UnsupportedError: If the goal does not say what stays undecided.
        """
        super().check(pool, goal)
        facts = goal.facts
        if self.anticipates and not (facts.seeks_best or facts.level is not None):
            raise UnsupportedError(
                "Expected `anticipates` to be False for this goal "
                f"({type(goal).__name__}): what stays undecided after a look-ahead is "
                "not defined. Leave it out, or give a `threshold`."
            )

    def start(self, posterior: PoolPosterior | None, beta: float) -> TruVaRMemory:
        r"""The memory before any round: the first epoch has just begun."""
        if posterior is None:
            return TruVaRMemory()
        return TruVaRMemory(epochs=Epochs(1, self.eta * posterior.scale, beta))

    def width(self, memory: TruVaRMemory, beta: float) -> float:
        r"""The epoch's squared width, where no theorem gives it."""
        return beta if self.is_theorem else memory.epochs.beta

    def judged(
        self, memory: TruVaRMemory, widest: float | None, beta: float
    ) -> TruVaRMemory:
        r"""The memory with the epoch that the new widths belong to."""
        epochs = memory.epochs
        if self.is_theorem:
            epochs = replace(epochs, beta=beta)
        if widest is not None:
            epochs = epochs.after(widest, beta, self.eta_ratio, self.delta_bar)
        return replace(memory, epochs=epochs)

    def usable(self, context: SelectionContext, rows: Tensor) -> Tensor:
        r"""The ``prefilter`` rows with the best Straddle scores.

        Around the largest mean these order rows as upper confidence bounds do.

        Source:
            Bogunovic et al. (2016), Appendix A, for the maximiser; levels are ours.
        """
        if self.prefilter is None:
            return rows
        posterior, region = context.posterior, context.region
        assert region is not None  # of one output
        given = posterior.mean, posterior.sigma, region.level
        hints = straddle(*given, context.belief.memory.epochs.beta)[rows]
        best = hints.sort(descending=True, stable=True).indices[: self.prefilter]
        return rows[best].sort().values

    def removed(self, context: SelectionContext, reductions: Reductions) -> Tensor:
        r"""The reduction of truncated variance, with the epoch held fixed.

        Source:
            Bogunovic et al. (2016), Eq. (3).
        """
        epochs = context.belief.memory.epochs
        if self.anticipates and reductions.targets.numel():
            stays = stays_open(context)
            return reductions.anticipated(epochs.beta, epochs.eta, stays)
        return reductions.in_epoch(epochs.beta, epochs.eta)
