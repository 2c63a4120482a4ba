r"""What strategies for several outputs share: their signs, data, intervals, answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.confidence.classify import UNDECIDED
from botorch_lse.papers.fixed_confidence import first_round_of, rehearsed
from botorch_lse.papers.kone2025.gaps import pareto_margins
from botorch_lse.papers.kone2025.least_squares import LinearFit
from botorch_lse.problem import Classification, Observations
from botorch_lse.strategies.arguments import NOISY, check_noise_once
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.loop import (
    BUDGET,
    DECIDED,
    Request,
    SimulatedRun,
    State,
    Strategy,
    check_state,
)
from botorch_lse.strategies.pareto import (
    MultiOutputStrategy,
    ParetoEstimate,
    checked_directions,
    pareto_answer,
    signs_of,
    with_columns,
)


@dataclass(frozen=True, eq=False)
class ParetoBelief:
    r"""What the algorithm's rounds say.

    Args:
        t: The round of the algorithm that comes next, from 1.
        side: ``N`` codes: accepted, rejected, open.
        estimate: The last estimate of every row.
        counts: ``N``, how often each row is measured in round ``t``; zeros once the
            algorithm has ended.
    """

    t: int
    side: Tensor
    estimate: ParetoEstimate
    counts: Tensor

    @cached_property
    def open(self) -> Tensor:
        r"""The open rows, ascending: the papers' ``A_t``."""
        return (self.side == UNDECIDED).nonzero().view(-1)


Measure = Callable[[Tensor, Tensor], Tensor]
"""From ``k`` rows and how often each is measured to ``k x m`` means."""


@dataclass(frozen=True, eq=False)
class ParetoStrategy(Strategy):
    r"""A strategy that estimates means, of rows or of linear features.

    Replicates may be told as their mean (``batch.observe(y, yvar, means=True)``); noise
    is taken to be alike everywhere.

    Args:
        maximize: For each output, whether more is better.
        noise_std: The standard deviation of the noise in each output, or a bound;
            default the largest of ``pool.noise_var``, else estimated from residuals.
        delta: The failure probability; where no theorem holds, that of the intervals.
        max_observations: Never measure more than this.
    """

    _: KW_ONLY
    maximize: Sequence[bool]
    noise_std: float | None = None
    delta: float = 0.05
    max_observations: int | None = None
    max_repeats: None = field(init=False, default=None)
    batch_size: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._check_rounds()
        object.__setattr__(self, "maximize", checked_directions(self.maximize))
        in_interval(self.delta, "delta", 0.0, 1.0)
        if self.noise_std is None:
            if self.pool.noise_var is not None:
                check_noise_once(None, self.pool)
            return
        in_interval(self.noise_std, "noise_std", 0.0, math.inf, remedy=NOISY)
        if self.pool.noise_var is not None:
            raise ValueError(
                "Expected the noise once, but got both `noise_std` and "
                "`pool.noise_var`."
            )

    @property
    def directions(self) -> tuple[bool, ...]:
        r"""As given by ``maximize``."""
        return tuple(self.maximize)

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return len(self.maximize)

    @cached_property
    def signs(self) -> Tensor:
        r"""``m`` signs: ``signs * y`` is maximised."""
        return signs_of(self.maximize)

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row with their intervals."""
        check_state(self, state)
        found: ParetoEstimate = state.belief.estimate
        return found

    @property
    @abstractmethod
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""

    def _complete(self, observations: Observations) -> Observations:
        return with_columns(observations, self.m)

    @property
    def weighs_by_counts(self) -> bool:
        r"""Yes: noise is alike everywhere, so counts say how much a mean weighs."""
        return True

    @property
    def sigma(self) -> float | None:
        r"""The bound of the noise standard deviation, if there is one."""
        if self.noise_std is not None or self.pool.noise_var is None:
            return self.noise_std
        return math.sqrt(float(self.pool.noise_var.max()))

    def _need_noise(self) -> float:
        if self.sigma is None:
            raise ValueError(
                f"Expected `noise_std` or `pool.noise_var` for {type(self).__name__}, "
                "whose numbers of measurements depend on it, but got neither."
            )
        return self.sigma

    def simulate(self, measure: Measure, seed: int = 0) -> SimulatedRun:
        r"""The whole run on a function, by counts and means, never by single pulls.

        The same as asking and telling means, without the lists of rows that a round
        of millions of measurements would be.

        Args:
            measure: From ``k`` rows and ``k`` counts to ``k x m`` means.
            seed: The seed of ``init``.
        """
        belief, n, rounds = self._start(seed), 0, 0
        while bool(belief.counts.any()):
            room = None if self.max_observations is None else self.max_observations - n
            size = self._round_size(belief, room)
            if size == 0:
                return SimulatedRun(self._classification(belief), n, rounds, BUDGET)
            rows = belief.counts.nonzero().view(-1)
            counts = belief.counts[rows]
            new = Observations(
                rows, measure(rows, counts), round=torch.tensor(rounds), counts=counts
            )
            belief = self._learn(belief, self._complete(new), new, seed)
            n, rounds = n + size, rounds + 1
        return SimulatedRun(self._classification(belief), n, rounds, DECIDED)

    # --- rounds -----------------------------------------------------------------------

    def _blank(self) -> ParetoBelief:
        N = len(self.pool)
        estimate = ParetoEstimate.unknown(N, self.m)
        counts = torch.zeros(N, dtype=torch.long)
        return ParetoBelief(1, torch.zeros(N, dtype=torch.int8), estimate, counts)

    def _round_size(self, belief: ParetoBelief, room: int | None) -> int:
        size = int(belief.counts.sum())
        return size if room is None or size <= room else 0

    @property
    def _needs_plans(self) -> bool:
        return False

    def _planning_belief(self, belief: Any) -> Any:
        return belief

    def _open_rows(self, belief: Any) -> Tensor:
        return torch.ones(len(self.pool), dtype=torch.bool)

    def _open_again(
        self, belief: Any, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        return left

    def _visiting_order(self, belief: Any, rows: Tensor, before: Tensor) -> Tensor:
        return rows.sort().values

    def _plan(self, belief: ParetoBelief, request: Request) -> Tensor:
        if request.pending.numel():  # the next round needs the results of this one
            return request.pending[:0]
        return torch.arange(len(self.pool)).repeat_interleave(belief.counts)

    def _forecast(self, state: State) -> Forecast:
        belief = state.belief
        if not (self._is_planned_ahead or bool(belief.estimate.sigma.isfinite().any())):
            return first_round_of(int(belief.counts.sum()))
        return rehearsed(self._coming(belief), state.told.n_measured)

    @property
    def _is_planned_ahead(self) -> bool:
        r"""Whether the sizes of all rounds are known before any measurement."""
        return False

    def _coming(self, belief: Any) -> Iterator[int]:
        r"""The sizes of the rounds to come, as if the estimates were exact."""
        while bool(belief.counts.any()):
            yield int(belief.counts.sum())
            belief = self._foreseen(belief)

    @abstractmethod
    def _foreseen(self, belief: Any) -> Any:
        r"""After the round that comes, if it repeats the estimates in hand."""

    def _updated(
        self, belief: ParetoBelief, rows: Tensor, fit: LinearFit, width: float
    ) -> ParetoEstimate:
        r"""The estimates with those of ``rows``.

        Args:
            belief: Whose estimates are kept for the other rows.
            rows: ``K`` rows that are open or needed to judge those.
            fit: Of these rows.
            width: Half widths of the intervals in standard deviations.
        """
        noise = fit.noise_var.nan_to_num(nan=torch.inf).sqrt()
        if self.sigma is not None:
            noise = torch.full_like(noise, self.sigma)
        sigma = fit.norms.sqrt().unsqueeze(-1) * noise
        half = width * sigma
        # A margin is a difference of two rows, in the output that decides.
        margin_width = half.amax(dim=-1) + half.max()
        largest = sigma.amax(dim=-1)
        margin_sigma = torch.hypot(largest, largest.max())
        margin = pareto_margins(self.signs * fit.mean)
        old = belief.estimate
        margin = torch.where(margin.isinf(), old.margin[rows], margin)  # a single row
        new = ParetoEstimate(
            fit.mean,
            fit.mean - half,
            fit.mean + half,
            sigma,
            margin,
            margin - margin_width,
            margin + margin_width,
            margin_sigma,
        )
        return ParetoEstimate(
            *(
                getattr(old, part.name).index_put((rows,), getattr(new, part.name))
                for part in fields(ParetoEstimate)
            )
        )

    def _classification(self, belief: ParetoBelief) -> Classification:
        return pareto_answer(belief.side, belief.estimate, self.guarantee, self.pool)


MultiOutputStrategy.register(ParetoStrategy)  # type: ignore[type-abstract]
