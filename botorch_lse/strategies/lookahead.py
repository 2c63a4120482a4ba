r"""Rules that look one measurement ahead: truncated variance reduction (TruVaR)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.checks import in_interval, whole_number
from botorch_lse.confidence.schedules import BetaSchedule
from botorch_lse.functional.scores import first_best
from botorch_lse.functional.variance_reduction import (
    single_gain,
    truncated_reduction,
    truncated_sum,
)
from botorch_lse.models.gaussian_process import PoolPosterior, row_blocks
from botorch_lse.problem import Pool
from botorch_lse.strategies.costs import RowCosts
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.rules import Rule, Situation

Stays = Callable[[Tensor, Tensor], Tensor]
"""From ``T`` means and ``C x T`` half widths to ``C x T`` bools: still undecided."""

NEGLIGIBLE = 1e-12
"""Reductions below this share of the summed variance are rounding: every width has
reached its target."""


@dataclass(frozen=True)
class EpochBeta:
    r"""``beta_(i) = a log(N t_(i)^2)``: the width of the paper's experiments.

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
        r"""``beta_(i)`` of an epoch whose first time index is ``t``."""
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
class TruVaRMemory:
    r"""What TruVaR remembers of the complete rounds.

    Args:
        epochs: The epoch, its target width and its squared width ``beta_(i)``.
        previous: The row measured last; ``None`` before any.
        spent: The summed costs so far.
    """

    epochs: Epochs = Epochs()
    previous: int | None = None
    spent: float = 0.0


@dataclass(frozen=True, eq=False)
class TruncatedVariance(Rule):
    r"""Measure what most shrinks the widths of the rows in question, per cost.

    Args:
        costs: What rows cost.
        eta: See ``TruVaRStrategy``, as are the next ones.
        eta_ratio: ``r``.
        delta_bar: The slack.
        own_width: The paper's practical width; default a theorem's, or a given one.
        is_theorem: Whether the width is a theorem's, which grows in every round; else
            it stays as it is through an epoch.
        is_monotone: Whether rows that left the question stay out.
        only_candidates: Whether only rows in question are measured.
        anticipates: See ``TruVaRStrategy``.
        prefilter: Score only so many rows.

    Source:
        Bogunovic et al. (2016), Algorithms 1 and 2 and Appendix A, with errata 1 to 6
        (papers/bogunovic2016/errata.md).
    """

    costs: RowCosts
    eta: float = 1.0
    eta_ratio: float = 0.1
    delta_bar: float = 0.0
    own_width: BetaSchedule | None = None
    is_theorem: bool = True
    is_monotone: bool = True
    only_candidates: bool = False
    anticipates: bool = False
    prefilter: int | None = None

    intersects = False
    decides_before_data = False
    replays_rounds = True

    def check(self, pool: Pool) -> None:
        r"""Complain unless the costs are those of the pool.

        Raises:
            ValueError: If they are of other rows.
        """
        if self.costs.pool.hash != pool.hash:
            raise ValueError(
                f"Expected `costs` of the strategy's own `pool` of {len(pool)} rows, "
                f"but got those of another one of {len(self.costs.pool)}. Write "
                "`RowCosts(pool)`."
            )

    # --- memory -----------------------------------------------------------------------

    def start(self, posterior: PoolPosterior | None, beta: float) -> TruVaRMemory:
        r"""The memory before any round: the first epoch has just begun."""
        if posterior is None:
            return TruVaRMemory()
        return TruVaRMemory(Epochs(1, self.eta * posterior.scale, beta))

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

    def measured(
        self, before: TruVaRMemory, after: TruVaRMemory, rows: Tensor
    ) -> TruVaRMemory:
        r"""The memory with the last row visited, and what the visits cost."""
        path = self.costs.visiting_order(before.previous, rows)
        spent = before.spent + self.costs.along(before.previous, path)
        return replace(after, previous=int(path[-1]), spent=spent)

    def order(self, memory: TruVaRMemory, rows: Tensor, before: Tensor) -> Tensor:
        r"""The rows in visiting order: always the cheapest next, after ``before``."""
        previous = self.costs.end(memory.previous, before)
        return self.costs.visiting_order(previous, rows)

    # --- choosing ---------------------------------------------------------------------

    def rows(self, situation: Situation, request: Request) -> Tensor:
        r"""The best rows one after the other, undecided rows and epoch held fixed."""
        left, memory = request.left.clone(), situation.belief.memory
        previous = self.costs.end(memory.previous, request.pending)
        chosen: list[int] = []
        while len(chosen) < request.size:
            usable = (situation.open_rows & (left > 0)).nonzero().view(-1)
            if usable.numel() == 0:
                break
            row = self._choice(situation, previous, usable)
            chosen.append(row)
            left[row] -= 1
            if len(chosen) < request.size:
                expected = situation.fits.expecting(torch.tensor([row]))
                situation = replace(situation, fits=expected)
            previous = row
        return torch.tensor(chosen, dtype=torch.long)

    def _choice(
        self, situation: Situation, previous: int | None, usable: Tensor
    ) -> int:
        rows, posterior = usable, situation.posterior
        if self.prefilter is not None and not situation.is_initial:
            beta = situation.belief.memory.epochs.beta
            hints = situation.goal.hint(posterior.mean, posterior.sigma, beta)[usable]
            best = hints.sort(descending=True, stable=True).indices[: self.prefilter]
            rows = usable[best].sort().values
        scores = self.scores(situation, previous, rows)
        everything = torch.ones_like(rows, dtype=torch.bool)
        at = first_best(scores, everything, float(scores.max()))
        return int(rows[at or 0])

    def scores(
        self, situation: Situation, previous: int | None, rows: Tensor
    ) -> Tensor:
        r"""The reduction of truncated variance per cost, for some rows.

        Args:
            situation: What is believed and still open.
            previous: The row measured before, on which costs may depend.
            rows: The rows to score.

        Source:
            Bogunovic et al. (2016), Eq. (3).
        """
        belief, posterior = situation.belief, situation.posterior
        costs = self.costs.of(previous, rows)
        if situation.is_initial:
            return posterior.variance[rows] / costs
        targets = (belief.sides.candidates & situation.is_first_copy).nonzero().view(-1)
        noise, epochs = belief.noise[rows], belief.memory.epochs
        reductions = Reductions(posterior, rows, targets, noise, epochs.beta)
        if self.anticipates and targets.numel():
            found = reductions.anticipated(epochs.eta, situation.goal.stays)
        else:
            found = reductions.in_epoch(epochs.eta)
        return found / costs


@dataclass(frozen=True, eq=False)
class Reductions:
    r"""What each of ``C`` rows would take off the truncated variances of ``T`` targets.

    Args:
        posterior: On the pool; it expects the rows planned already.
        rows: ``C`` candidates.
        targets: ``T`` rows in question, over which the sums run.
        noise_var: ``C`` noise variances of an observation at each candidate, at least
            ``posterior.least_noise``.
        beta: The squared width.
    """

    posterior: PoolPosterior
    rows: Tensor
    targets: Tensor
    noise_var: Tensor
    beta: float

    @cached_property
    def _observed(self) -> Tensor:
        r"""``C`` variances of an observation at each candidate."""
        return self.posterior.variance[self.rows] + self.noise_var

    def in_epoch(self, eta: float) -> Tensor:
        r"""The numerator of Eq. (3) for each row in the current epoch.

        Where no row has anything left to reduce (inside a batch, all widths may have
        reached ``eta``), the reduction of the plain variances.

        Args:
            eta: The width to reach, units of ``y``.
        """
        found = self.truncated(eta)
        everything = self.beta * float(self.posterior.variance[self.targets].sum())
        if eta > 0 and float(found.max()) <= NEGLIGIBLE * everything:
            return self.truncated(0.0)
        return found

    def truncated(self, eta: float) -> Tensor:
        r"""The numerator of Eq. (3) for each row.

        Args:
            eta: The width to reach, units of ``y``.

        Returns:
            ``C`` reductions, units of ``y`` squared.

        Source:
            Bogunovic et al. (2016), Eq. (3) and (18).
        """
        posterior = self.posterior
        total = torch.zeros(len(self.rows), dtype=torch.float64)
        n = len(posterior.indices) + 1
        for columns in row_blocks(len(self.targets), n, posterior.memory_budget):
            part = self.targets[columns]
            variance = posterior.variance[part]
            for block in row_blocks(len(total), len(part), posterior.memory_budget):
                covariance = posterior.covariance_between(self.rows[block], part)
                gain = single_gain(covariance, self._observed[block])
                total[block] += truncated_reduction(gain, variance, self.beta, eta)
        return total

    def anticipated(self, eta: float, stays: Stays) -> Tensor:
        r"""The reductions if targets that a measurement would decide no longer count.

        The value to come is replaced by its mean, so that means stay and intervals
        shrink.

        Args:
            eta: The width to reach, units of ``y``.
            stays: What stays in question.

        Source:
            Bogunovic et al. (2016), Appendix A, "Anticipating changes in M_t"; minuend
            over ``M_{t-1}``, erratum 4 (papers/bogunovic2016/errata.md).
        """
        posterior, rows, targets = self.posterior, self.rows, self.targets
        mean, variance = posterior.mean[targets], posterior.variance[targets]
        everything = torch.ones_like(variance, dtype=torch.bool)
        before = truncated_sum(variance, everything, self.beta, eta)
        parts = []
        for block in row_blocks(len(rows), len(targets), posterior.memory_budget):
            covariance = posterior.covariance_between(rows[block], targets)
            gain = single_gain(covariance, self._observed[block])
            left = (variance - gain).clamp_min(0.0)
            counted = stays(mean, (self.beta * left).sqrt())
            parts.append(before - truncated_sum(left, counted, self.beta, eta))
        return torch.cat(parts)
