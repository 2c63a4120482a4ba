r"""An algorithm around another one, which says whatever it does not say itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from botorch_lse.confidence.calibration import Calibration
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import Content
from botorch_lse.data.observations import Observations
from botorch_lse.data.requests import PlanRequest
from botorch_lse.strategies.algorithm import Algorithm
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.surrogate.remarks import Remark


@dataclass(frozen=True, eq=False)
class Wrapping(Algorithm):
    r"""Everything as the inner algorithm says.

    The belief of a derived class is a dataclass with a field ``inner``, which is what
    the inner algorithm believes.

    Args:
        inner: The algorithm.
    """

    inner: Any

    # --- learning ---------------------------------------------------------------------

    def after(self, belief: Any, inner: Any, new: Observations) -> Any:
        r"""The belief after a round.

        Args:
            belief: Before the round.
            inner: What the inner algorithm believes after it.
            new: The round's observations.
        """
        return replace(belief, inner=inner)

    def learn(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The belief after one more round."""
        inner = self.inner.learn(belief.inner, new, history, seed)
        return self.after(belief, inner, new)

    def learn_planned(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The same after a round that holds just what was planned for it."""
        inner = self.inner.learn_planned(belief.inner, new, history, seed)
        return self.after(belief, inner, new)

    def lose(self, belief: Any, rows: Tensor, history: Observations, seed: int) -> Any:
        r"""After rows were used up without a result."""
        inner = self.inner.lose(belief.inner, rows, history, seed)
        return replace(belief, inner=inner)

    def count_looks(self, belief: Any, n: int) -> Any:
        r"""The belief once data may have been looked at before they are told."""
        return replace(belief, inner=self.inner.count_looks(belief.inner, n))

    @property
    def needs_plans(self) -> bool:
        r"""Whether ``learn_planned`` differs from ``learn``."""
        return bool(self.inner.needs_plans)

    def complete(self, observations: Observations) -> Observations:
        r"""The observations with the noise variances that are known beforehand."""
        found: Observations = self.inner.complete(observations)
        return found

    def predict(
        self, belief: Any, X: Tensor, data: Observations | None = None
    ) -> tuple[Tensor, Tensor]:
        r"""Means and variances of the outputs at points."""
        found: tuple[Tensor, Tensor] = self.inner.predict(belief.inner, X, data)
        return found

    # --- choosing ---------------------------------------------------------------------

    @property
    def size_is_open(self) -> bool:
        r"""Whether ``ask`` may say how many measurements a batch has."""
        return bool(self.inner.size_is_open)

    def takes_any_rows(self, belief: Any) -> bool:
        r"""Whether other rows would do as well as those that are asked for."""
        return bool(self.inner.takes_any_rows(belief.inner))

    def planning_belief(self, belief: Any) -> Any:
        r"""The belief from which the next rows are planned."""
        return replace(belief, inner=self.inner.planning_belief(belief.inner))

    def round_size(self, belief: Any, room: int | None) -> int:
        r"""The size of the next round."""
        return int(self.inner.round_size(belief.inner, room))

    def plan(self, belief: Any, request: PlanRequest) -> Tensor:
        r"""The rows to measure."""
        rows: Tensor = self.inner.plan(belief.inner, request)
        return rows

    def at_once(self, belief: Any, request: PlanRequest) -> int:
        r"""How many measurements may be planned beside those that are pending."""
        return int(self.inner.at_once(belief.inner, request))

    def open_rows(self, belief: Any) -> Tensor:
        r"""``N`` bools: the rows that may be chosen."""
        rows: Tensor = self.inner.open_rows(belief.inner)
        return rows

    def is_out_of_reach(self, belief: Any, left: Tensor) -> bool:
        r"""Whether no more is decided, however often rows are measured."""
        return bool(self.inner.is_out_of_reach(belief.inner, left))

    def may_measure(self, belief: Any, left: Tensor) -> bool:
        r"""Whether a row is left that may be chosen."""
        return bool(self.inner.may_measure(belief.inner, left))

    def repeats_left(
        self, belief: Any, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""``N`` counts of how often each row may still be measured."""
        found: Tensor = self.inner.repeats_left(belief.inner, data, pending, left)
        return found

    def visiting_order(self, belief: Any, rows: Tensor, before: Tensor) -> Tensor:
        r"""The order in which to measure a batch."""
        found: Tensor = self.inner.visiting_order(belief.inner, rows, before)
        return found

    # --- what audits and stops ask ----------------------------------------------------

    @property
    def draws_at_random(self) -> bool:  # type: ignore[override]
        r"""Whether rows are drawn at random, so that something holds in any case."""
        return bool(self.inner.draws_at_random)

    @property
    def audit_accuracy(self) -> float | None:
        r"""Up to which distance from the level a side may be wrong."""
        found: float | None = self.inner.audit_accuracy
        return found

    def audit_level(self, belief: Any) -> float:
        r"""The level by which an audit judges."""
        return float(self.inner.audit_level(belief.inner))

    @property
    def can_draw_content(self) -> bool:
        r"""Whether sides follow from draws of the posteriors."""
        return bool(self.inner.can_draw_content)

    @property
    def has_content(self) -> bool:
        r"""Whether the rows on one side have a share of the pool that is meant."""
        return bool(self.inner.has_content)

    @property
    def has_stated_level(self) -> bool:
        r"""Whether the level is known beforehand."""
        return bool(self.inner.has_stated_level)

    def can_estimate(self, belief: Any) -> bool:
        r"""Whether there is a model that has seen values on both sides."""
        return bool(self.inner.can_estimate(belief.inner))

    def worth(self, belief: Any, new: Observations) -> float:
        r"""How many exact measurements a round is worth."""
        return float(self.inner.worth(belief.inner, new))

    # --- the answer -------------------------------------------------------------------

    def stop_reason(self, belief: Any, answer: Classification) -> str | None:
        r"""Why nothing more need be asked."""
        reason: str | None = self.inner.stop_reason(belief.inner, answer)
        return reason

    def limit_reason(self, belief: Any, reason: str) -> str:
        r"""What a run is said to have ended with where no more may be measured."""
        return str(self.inner.limit_reason(belief.inner, reason))

    def classification(self, belief: Any) -> Classification:
        r"""The side of every row, with bounds and what is guaranteed."""
        found: Classification = self.inner.classification(belief.inner)
        return found

    def claim(self, belief: Any) -> Classification:
        r"""What would be answered if nothing were held back."""
        found: Classification = self.inner.claim(belief.inner)
        return found

    def content(
        self, belief: Any, answer: Classification, confidence: float
    ) -> Content:
        r"""How much is above, with all that is known of it."""
        found: Content = self.inner.content(belief.inner, answer, confidence)
        return found

    def conservative(self, belief: Any, alpha: float) -> Tensor:
        r"""``T`` bools: items that are above together with probability ``alpha``."""
        found: Tensor = self.inner.conservative(belief.inner, alpha)
        return found

    def remarks(self, belief: Any) -> tuple[Remark, ...]:
        r"""What the told values show that the answer does not say by itself."""
        found: tuple[Remark, ...] = self.inner.remarks(belief.inner)
        return found

    def calibration(self, belief: Any, output: int) -> Calibration:
        r"""How the predictions of an output compare with what was measured."""
        found: Calibration = self.inner.calibration(belief.inner, output)
        return found

    def forecast(self, belief: Any, told: int) -> Forecast:
        r"""About how many more evaluations until everything is decided."""
        found: Forecast = self.inner.forecast(belief.inner, told)
        return found


def unwrapped(belief: Any) -> Any:
    r"""What the innermost algorithm believes."""
    while hasattr(belief, "inner"):
        belief = belief.inner
    return belief
