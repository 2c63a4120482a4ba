r"""Elimination on linear features with anytime widths: all data kept, any batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.confidence.anytime import AnytimeWidth
from botorch_lse.confidence.classify import accuracy
from botorch_lse.designs import optimal_design
from botorch_lse.designs.basis import span_map
from botorch_lse.problem import Observations, Pool
from botorch_lse.strategies.arguments import check_noise_once
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.linear.assumptions import contradicted, warn_of
from botorch_lse.strategies.linear.belief import LinearBelief, Questions
from botorch_lse.strategies.linear.forecast import linear_forecast
from botorch_lse.strategies.linear.items import check_items, features_of
from botorch_lse.strategies.linear.planning import next_weights, rounded
from botorch_lse.strategies.linear.simulation import (
    Measure,
    simulated_run,
)
from botorch_lse.strategies.linear.update import (
    first_belief,
    intersected,
    with_batch,
    with_martingale,
)
from botorch_lse.strategies.loop import Request, Strategy
from botorch_lse.strategies.simulated import SimulatedRun
from botorch_lse.strategies.state import State

GROWTH = 0.1
"""The share of the data so far that the next batch adds."""
LEAST = 2
"""A batch of the strategy's own size has so many measurements per dimension."""
FIRST_TOLERANCE = 1e-3
DESIGNS = ("uniform", "gaps")


@dataclass(frozen=True, eq=False)
class LinearStrategy(Strategy):
    r"""Designs on what is undecided, least squares on all data, anytime widths.

    Works on ``pool.features``, or ``pool.X`` without. Each batch is the optimal
    addition to what is known; intervals hold at all times together, so they are
    intersected, decisions are final, and batches may have any size. Replicates may be
    told as means, ``Observations(indices, means, counts=...)``. ``yvar`` is not used:
    the noise is what the constructor says.

    Args:
        noise_std: A bound of the noise's sub-Gaussian scale (for Gaussian noise its
            standard deviation); default the roots of ``pool.noise_var``.
        delta: The failure probability.
        epsilon: The accuracy, units of ``y``.
        design: ``"uniform"`` treats all that is undecided alike; ``"gaps"`` weights it
            by its estimated gaps, floored by their standard errors.
        batch_size: Measurements per round; ``None``: a tenth of the data so far, at
            least two per dimension of the features.
        max_observations: Stop after so many measurements.
        max_repeats: How often one row may be measured.

    Raises:
        ValueError: If a number is out of range, the noise is given twice or never, or
            an item is outside the span of the pool's features.

    Warns:
        EmptyRegionWarning: If intervals contradict each other.
        NoiseWarning: Once, if residuals are larger than the stated noise allows; every
            ``guarantee`` from then on says so.
    """

    _: KW_ONLY
    noise_std: float | None = None
    delta: float = 0.05
    epsilon: float = 0.0
    design: str = "uniform"
    batch_size: int | None = None
    max_observations: int | None = None
    max_repeats: int | None = None

    def __post_init__(self) -> None:
        self._check_rounds()
        in_interval(self.delta, "delta", 0.0, 1.0)
        accuracy(self.epsilon)
        if self.design not in DESIGNS:
            raise ValueError(
                f"Expected `design` to be one of {DESIGNS}, but got {self.design!r}."
            )
        self._check_noise()
        self._check_items()

    def _check_noise(self) -> None:
        check_noise_once(self.noise_std, self.pool)

    def _check_items(self) -> None:
        check_items(self.X, features_of(self.items), self._to_span)

    # --- the problem ------------------------------------------------------------------

    @property
    def items(self) -> Pool:
        r"""The items to decide on."""
        return self.pool

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return 1

    @cached_property
    def X(self) -> Tensor:
        r"""``N x d`` features as given."""
        return features_of(self.pool)

    @cached_property
    def _to_span(self) -> Tensor:
        return span_map(self.X)

    @cached_property
    def Phi(self) -> Tensor:
        r"""``N x h`` features in coordinates of their span."""
        return self.X @ self._to_span

    @cached_property
    def Z(self) -> Tensor:
        r"""``T x h`` features of the items, in the same coordinates."""
        return features_of(self.items) @ self._to_span

    @property
    def rank(self) -> int:
        r"""``h``, the dimension of the features' span."""
        return self.Phi.shape[1]

    def first_noise_var(self) -> Tensor:
        r"""``N`` squared noise scales that are known from the start."""
        if self.pool.noise_var is not None:
            return self.pool.noise_var
        assert self.noise_std is not None  # one of the two is given
        return torch.full((len(self.pool),), self.noise_std**2, dtype=torch.float64)

    @cached_property
    def W(self) -> Tensor:
        r"""``h x h``, the information of one measurement of the first G-design."""
        rows = self.Phi / self.first_noise_var().sqrt().unsqueeze(-1)
        design = optimal_design(rows, tol=FIRST_TOLERANCE)
        return (design.weights.unsqueeze(-1) * rows).mT @ rows

    @property
    def width_delta(self) -> float:
        r"""The widths' share of ``delta``."""
        return self.delta

    @property
    def uses_items(self) -> bool:
        r"""Whether items are decided one by one, not in pairs."""
        return False

    @cached_property
    def widths(self) -> AnytimeWidth:
        r"""The widths, fixed before the first measurement."""
        spans = self.batch_size is None or self.batch_size >= LEAST * self.rank
        return AnytimeWidth(
            self.W,
            self.width_delta,
            len(self.items),
            self.m,
            batches=self.uses_items and spans and self.max_repeats is None,
        )

    # --- rounds -----------------------------------------------------------------------

    def _start(self, seed: int) -> LinearBelief:
        return first_belief(self.Z, self.first_noise_var(), self.widths)

    def _complete(self, observations: Observations) -> Observations:
        if observations.y.ndim != 1:
            raise BotorchTensorDimensionError(
                "Expected `y` with one output, but got shape "
                f"{tuple(observations.y.shape)}."
            )
        return observations

    def _round_size(self, belief: LinearBelief, room: int | None) -> int:
        if self.batch_size is not None:
            return super()._round_size(belief, room)
        grown = math.ceil(GROWTH * belief.evidence.n)
        size = max(LEAST * self.rank, grown)
        return size if room is None else min(size, room)

    def _plan(self, belief: LinearBelief, request: Request) -> Tensor:
        counts = self.planned_batch(belief, request)
        return torch.arange(len(counts)).repeat_interleave(counts)

    def _visiting_order(
        self, belief: LinearBelief, rows: Tensor, before: Tensor
    ) -> Tensor:
        return rows  # planned in order; sorting millions again takes seconds

    def planned_batch(self, belief: LinearBelief, request: Request) -> Tensor:
        r"""``N`` counts of the next batch."""
        rows = self._scaled_rows(belief)
        known = torch.zeros_like(self.W) if belief.martingale else belief.evidence.V
        out = rows[request.pending]
        usable = (request.left > 0).nonzero().view(-1)
        weights = torch.zeros_like(rows[:, 0])
        weights[usable] = next_weights(
            rows[usable],
            known + out.mT @ out,
            self.W,
            self._asked(belief),
            request.size,
            self.design == "gaps",
        )
        return rounded(weights, request.size, request.left)

    def _scaled_rows(self, belief: LinearBelief) -> Tensor:
        return self.Phi / belief.noise_var.sqrt().unsqueeze(-1)

    def _asked(self, belief: LinearBelief) -> Questions:
        r"""All rows of the pool before they span it, then what is undecided."""
        if not belief.information.is_complete:
            return Questions(self.Phi)
        return self._questions(belief)

    @property
    def _needs_plans(self) -> bool:
        return self.widths.uses_martingales

    def _learn_planned(
        self, belief: LinearBelief, new: Observations, history: Observations, seed: int
    ) -> LinearBelief:
        belief = with_martingale(belief, self.Phi, new, self.widths)
        return self._learn(belief, new, history, seed)

    def _learn(
        self, belief: LinearBelief, new: Observations, history: Observations, seed: int
    ) -> LinearBelief:
        belief = with_batch(belief, self.Phi, new, self.widths)
        if belief.alarm is not None and belief.alarm not in self._warned:
            self._warned.add(belief.alarm)
            warn_of(belief.alarm)
        belief = intersected(belief, self.widths, self.delta)
        if belief.information.is_complete and belief.open.numel():
            belief = self._decided(belief)
        return belief

    @cached_property
    def _warned(self) -> set[str]:
        r"""Alarms that were given: a replay of the same data says nothing new."""
        return set()

    def simulate(self, measure: Measure, seed: int = 0) -> SimulatedRun:
        r"""The whole run on a function, by counts and means; see ``simulation``."""
        return simulated_run(self, measure, seed)

    # --- what they differ in ----------------------------------------------------------

    @abstractmethod
    def _decided(self, belief: LinearBelief) -> LinearBelief:
        r"""With the sides of what has become certain."""

    @abstractmethod
    def _questions(self, belief: LinearBelief) -> Questions:
        r"""The undecided directions and their gaps."""

    # --- the answer -------------------------------------------------------------------

    def _promised(self, belief: LinearBelief) -> str:
        r"""The guarantee, and whether the data contradict what it assumes."""
        if belief.alarm is None:
            return self.guarantee
        return f"{self.guarantee} {contradicted(belief.alarm)}"

    @property
    @abstractmethod
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""

    def _forecast(self, state: State) -> Forecast:
        belief = state.belief
        if not belief.information.is_complete:
            return Forecast(None, "The measurements do not span the features yet.")
        questions, rows = self._questions(belief), self._scaled_rows(belief)
        return linear_forecast(belief, questions, rows, self.W, self.widths)

    @property
    def noise_in_words(self) -> str:
        r"""The assumption about the noise."""
        if self.noise_std is not None:
            return f"noise sub-Gaussian with sd <= {self.noise_std:g}"
        return "noise sub-Gaussian with the given variances"

    def _assumptions(self, what: str) -> str:
        d = self.X.shape[1]
        return (
            f"With probability {1 - self.delta:g}, {what}; assumes "
            f"{self.noise_in_words}, independent within a batch, f linear in the {d} "
            f"feature{'s' if d > 1 else ''}."
        )
