r"""The interface of algorithms that the loop asks, and the words for ends of runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse.confidence.calibration import Calibration
from botorch_lse.confidence.judges import Judge, LevelJudge
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import Content
from botorch_lse.data.observations import Observations
from botorch_lse.data.requests import PlanRequest
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.surrogate.remarks import Remark

DECIDED, AUDITED, NOT_CONFIRMED = "decided", "audited", "not confirmed"
BUDGET, EXHAUSTED = "budget", "rows exhausted"
OUT_OF_REACH = "out of reach"
"""Why a run ended that could go on measuring, but decide no more by it."""
NONE_FOUND, ALL_ABOVE = "none found", "all above so far"
"""Why a run ended whose values all lie on one side of the level: nothing of the other
side was found, which is not to say that there is none."""
CONTENT = "content known"
"""Why a run ended once the share above the level was known well enough."""
MAX_FAILURES = 3
"""How often a row may fail before it is not asked for any more. One failure is often
chance (a worker died), and asking again costs one trial; a row that failed three times
in a row will most likely fail again, and others would wait for it for ever."""
UNBIASED = "Measurements were abandoned: assumed to be so whatever their values."
"""What every answer says once something was abandoned."""
EXCLUDED = "Rows were excluded: assumed to be so whatever their values."
"""What every answer says once rows were excluded."""


class Algorithm(ABC):
    r"""The interface that the loop asks: beliefs, rows to measure, answers.

    All answers are functions of their arguments alone, so that a run can be rebuilt
    from its seed and its observations. A belief is whatever the algorithm keeps of the
    complete rounds; the loop hands it on and never looks inside.
    """

    needs_its_rows: bool = False
    """Whether rows that were not asked for teach nothing. A round is then complete once
    it holds all rows asked for, not once it is as long, and what is told after the end
    changes nothing."""

    @abstractmethod
    def start(self, seed: int) -> Any:
        r"""The belief before any observation."""

    @abstractmethod
    def learn(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The belief after one more complete round; ``history`` ends with ``new``."""

    @property
    def needs_plans(self) -> bool:
        r"""Whether ``learn_planned`` differs from ``learn``.

        Some widths hold only for rounds whose rows were fixed before any of their
        values was seen: rounds that came exactly as they were planned.
        """
        return False

    def learn_planned(
        self, belief: Any, new: Observations, history: Observations, seed: int
    ) -> Any:
        r"""The belief after one more round that holds exactly what was planned."""
        return self.learn(belief, new, history, seed)

    def lose(self, belief: Any, rows: Tensor, history: Observations, seed: int) -> Any:
        r"""The belief after rows of a round were used up without a result.

        Args:
            belief: The belief after the complete rounds.
            rows: The rows, those that were excluded in the round among them.
            history: All observations of the complete rounds.
            seed: The run's seed.
        """
        return belief

    def count_looks(self, belief: Any, n: int) -> Any:
        r"""The belief if the next round's data may have been looked at before.

        Args:
            belief: The belief after the complete rounds.
            n: How many looks at the intervals there may have been besides the one that
                is to come.
        """
        return belief

    def takes_any_rows(self, belief: Any) -> bool:
        r"""Whether other rows would do as well as those that the algorithm asks for.

        If not, rows cannot be excluded, and results not be learnt from as they come.
        """
        return not self.needs_its_rows

    @property
    def size_is_open(self) -> bool:
        r"""Whether ``ask`` may say how many measurements a batch has."""
        return False

    def stop_reason(self, belief: Any, answer: Classification) -> str | None:
        r"""The reason to ask for nothing more; ``None`` while something is open.

        Args:
            belief: The belief after the complete rounds.
            answer: The result of ``classification``.
        """
        return None if bool(answer.undecided.any()) else DECIDED

    def may_measure(self, belief: Any, left: Tensor) -> bool:
        r"""Whether a row is left that may be chosen.

        Args:
            belief: The belief after the complete rounds.
            left: ``N`` counts of how often each row may still be measured.
        """
        return bool((self.open_rows(belief) & (left > 0)).any())

    def is_out_of_reach(self, belief: Any, left: Tensor) -> bool:
        r"""Whether no measurement of the rows left can decide anything more.

        Args:
            belief: The belief after the complete rounds.
            left: ``N`` counts of how often each row may still be measured.
        """
        return False

    def at_once(self, belief: Any, request: PlanRequest) -> int:
        r"""The number of measurements that may be planned beside the pending ones.

        Args:
            belief: The belief after the complete rounds.
            request: How many are asked for at most, and how often each row may still be
                measured.
        """
        usable = request.left.clamp_max(request.size)
        return int((usable * self.open_rows(belief)).sum())

    def limit_reason(self, belief: Any, reason: str) -> str:
        r"""The stop reason to report when the budget or the rows are used up.

        Args:
            belief: The belief after the complete rounds.
            reason: ``"budget"``, ``"rows exhausted"`` or ``"out of reach"``, where
                nothing tells more.
        """
        return reason

    @property
    def audit_accuracy(self) -> float | None:
        r"""The distance from the level within which a side may be wrong.

        ``None`` where no value of one row says whether its side is right.
        """
        return None

    def check_audit(self, max_repeats: int | None) -> None:
        r"""Complain if a measurement of a row does not show on which side it lies.

        Args:
            max_repeats: The largest number of measurements of one row.

        Raises:
            ValueError: If it does not.
        """
        if self.audit_accuracy is None:
            raise ValueError(
                "Expected no `audit` where one measurement of a row does not show "
                "whether its side is right: it needs one level or a region, all "
                "outputs in one measurement, and no `targets`."
            )

    audits_by_itself: bool = True
    """Whether a row is right or wrong by itself to an audit, not beside others."""
    n_columns: int = 1
    """How many values a measurement has to an audit."""
    audit_is_gaussian: bool = True
    """Whether noise that is known is Gaussian to an audit; else it is sub-Gaussian."""

    def audit_judge(self, belief: Any) -> Judge:
        r"""The judge by which an audit compares values with the present claim.

        By default with ``audit_level(belief)``, and ``has_stated_level`` says whether
        that was estimated.
        """
        known: Any = self
        accuracy = known.audit_accuracy
        return LevelJudge(known.audit_level(belief), accuracy, known.has_stated_level)

    def content(
        self, belief: Any, answer: Classification, confidence: float
    ) -> Content:
        r"""The share above the level, with all that is known of it.

        Args:
            belief: The belief after the complete rounds.
            answer: The result of ``classification``.
            confidence: Of each interval that has one of its own.
        """
        return answer.content(confidence)

    def conservative(self, belief: Any, alpha: float) -> Tensor:
        r"""``T`` bools: items that are above together with probability ``alpha``.

        Raises:
            UnsupportedError: If there is no joint posterior of the items.
        """
        raise UnsupportedError(
            "Expected a strategy on a Gaussian process, from which joint draws can be "
            "made, but this one has none."
        )

    def claim(self, belief: Any) -> Classification:
        r"""The answer if nothing were held back, which audits test."""
        return self.classification(belief)

    def remarks(self, belief: Any) -> tuple[Remark, ...]:
        r"""Remarks on the told values that the answer does not make itself."""
        return ()

    def calibration(self, belief: Any, output: int) -> Calibration:
        r"""The comparison of an output's predictions with what was measured.

        Raises:
            UnsupportedError: If nothing is predicted.
        """
        raise UnsupportedError(
            "Expected a strategy on a Gaussian process: this one predicts no values "
            "before they are measured, so there is nothing to compare."
        )

    def predict(
        self, belief: Any, X: Tensor, data: Observations | None = None
    ) -> tuple[Tensor, Tensor]:
        r"""Means and standard deviations of the function at ``M x d`` points.

        Args:
            belief: The belief after the complete rounds.
            X: The points.
            data: Observations to predict from, in place of all there are.

        Raises:
            UnsupportedError: If nothing is believed of points that are no rows.
        """
        raise UnsupportedError(
            "Expected a strategy on a Gaussian process, but this one knows features of "
            "the rows of its pool only, not of other points."
        )

    @abstractmethod
    def complete(self, observations: Observations) -> Observations:
        r"""The observations, with the noise variances that are known beforehand."""

    @abstractmethod
    def planning_belief(self, belief: Any) -> Any:
        r"""The belief from which the next rows are planned.

        Most often ``belief`` itself, on which the answer rests.
        """

    @abstractmethod
    def round_size(self, belief: Any, room: int | None) -> int:
        r"""The size of the next round, at most ``room``; ``None``: no limit."""

    @abstractmethod
    def plan(self, belief: Any, request: PlanRequest) -> Tensor:
        r"""The rows to measure with replicates; fewer than asked if none is left."""

    @abstractmethod
    def open_rows(self, belief: Any) -> Tensor:
        r"""``N`` bools: the rows that may be chosen."""

    @abstractmethod
    def repeats_left(
        self, belief: Any, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""``N`` counts of how often each row may still be measured.

        Args:
            belief: The belief after the complete rounds.
            data: All measurements so far, also those of the open round.
            pending: Rows that are being measured.
            left: ``N`` counts that ``max_repeats`` allows.
        """

    @abstractmethod
    def visiting_order(self, belief: Any, rows: Tensor, before: Tensor) -> Tensor:
        r"""The order in which to measure a batch.

        Args:
            belief: The belief after the complete rounds.
            rows: The rows of the batch, replicates included.
            before: Rows that will be measured before the batch.
        """

    @abstractmethod
    def classification(self, belief: Any) -> Classification:
        r"""The side of every row, with bounds and a guarantee."""

    @abstractmethod
    def forecast(self, belief: Any, told: int) -> Forecast:
        r"""The expected number of further evaluations until everything is decided.

        Args:
            belief: The belief after the complete rounds.
            told: Measurements of the open round that are told already.
        """
