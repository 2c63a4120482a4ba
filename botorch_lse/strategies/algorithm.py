r"""The interface of algorithms that the loop asks, and the words for ends of runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from torch import Tensor

from botorch_lse.confidence.calibration import Calibration
from botorch_lse.confidence.judges import Judge, LevelJudge, RegionJudge
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import Content
from botorch_lse.data.observations import Observations
from botorch_lse.data.requests import PlanRequest
from botorch_lse.goals.base import Goal
from botorch_lse.models.outcomes import LogNormal, Quantity
from botorch_lse.strategies.devices import Door
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.surrogate.remarks import Remark

DECIDED, AUDITED, NOT_CONFIRMED = "decided", "audited", "not confirmed"
BUDGET, EXHAUSTED = "budget", "rows exhausted"
OUT_OF_REACH = "out of reach"
"""The stop reason of a run that could go on measuring but decide no more by it."""
NONE_FOUND, ALL_ABOVE = "none found", "all above so far"
"""The stop reasons of runs whose values all lie on one side of the level.
Nothing of the other side was found, which is not to say that there is none."""
CONTENT = "content known"
"""The stop reason of a run that knows the share above the level well enough."""
MAX_FAILURES = 3
"""The number of failures after which a row is not asked for any more.
One failure is often chance (a worker died), and asking again costs one trial. A row
that failed three times will most likely fail again, and others would wait for it."""
UNBIASED = "Measurements were abandoned: assumed to be so whatever their values."
"""The sentence that every answer has once something was abandoned."""
EXCLUDED = "Rows were excluded: assumed to be so whatever their values."
"""The sentence that every answer has once rows were excluded."""


@dataclass(frozen=True, eq=False)
class Step:
    r"""One more complete round, as an algorithm learns it.

    Args:
        new: The observations of the round.
        history: All observations, which end with ``new``.
        seed: The run's seed, for fits.
        looks: How many looks at the intervals the round's data may have had, the one
            that is to come included.
        is_planned: Whether the round holds just what was planned for it; told only
            where ``facts.needs_plans``.
    """

    new: Observations
    history: Observations
    seed: int
    looks: int = 1
    is_planned: bool = False


@dataclass(frozen=True)
class AlgorithmFacts:
    r"""The facts that the loop must know of an algorithm before any data.

    Args:
        needs_its_rows: Whether rows that were not asked for teach nothing. A round is
            then complete once it holds all rows asked for, not once it is as long, and
            what is told after the end changes nothing.
        needs_plans: Whether rounds that came exactly as planned are learnt otherwise.
            Some widths hold only for rounds whose rows were fixed before any of their
            values was seen.
        size_is_open: Whether ``ask`` may say how many measurements a batch has.
        predicts: Whether there is a model of the function, so that the algorithm is
            ``Predicts``.
    """

    needs_its_rows: bool = False
    needs_plans: bool = False
    size_is_open: bool = False
    predicts: bool = False


class Algorithm(ABC):
    r"""The interface that the loop asks: beliefs, rows to measure, answers.

    All answers are functions of their arguments alone, so that a run can be rebuilt
    from its seed and its observations. A belief is whatever the algorithm keeps of the
    complete rounds; the loop hands it on and never looks inside.

    What audits ask besides is ``Auditable``, what asks of a model ``Predicts``.
    """

    facts: AlgorithmFacts = AlgorithmFacts()
    audit_facts: AuditFacts | None = None
    """The facts for audits; ``None`` where a row's value does not show its side."""
    door: Door = Door()
    """The way to the device on which the algorithm computes."""

    # --- learning ---------------------------------------------------------------------

    @abstractmethod
    def start(self, seed: int) -> Any:
        r"""The belief before any observation."""

    @abstractmethod
    def learn(self, belief: Any, step: Step) -> Any:
        r"""The belief after one more complete round."""

    def lose(self, belief: Any, rows: Tensor, history: Observations, seed: int) -> Any:
        r"""The belief after rows of a round were used up without a result.

        Args:
            belief: The belief after the complete rounds.
            rows: The rows, those that were excluded in the round among them.
            history: All observations of the complete rounds.
            seed: The run's seed.
        """
        return belief

    def complete(self, observations: Observations) -> Observations:
        r"""The observations, with the noise variances that are known beforehand."""
        return observations

    # --- choosing ---------------------------------------------------------------------

    @abstractmethod
    def round_size(self, belief: Any, room: int | None) -> int:
        r"""The size of the next round, at most ``room``; ``None``: no limit."""

    @abstractmethod
    def plan(self, belief: Any, request: PlanRequest) -> Tensor:
        r"""The rows to measure with replicates; fewer than asked if none is left."""

    def usable(self, belief: Any, request: PlanRequest) -> Tensor:
        r"""The measurements that may be planned beside the pending ones (``N`` counts).

        Args:
            belief: The belief after the complete rounds.
            request: How many are asked for at most, and how often each row may still be
                measured.
        """
        return request.left.clamp_max(request.size)

    def repeats_left(
        self, belief: Any, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""The number of measurements that each row may still have (``N``).

        Args:
            belief: The belief after the complete rounds.
            data: All measurements so far, also those of the open round.
            pending: Rows that are being measured.
            left: ``N`` counts that ``max_repeats`` allows.
        """
        return left

    def visiting_order(self, belief: Any, rows: Tensor, before: Tensor) -> Tensor:
        r"""The order in which to measure a batch; by default as planned.

        Args:
            belief: The belief after the complete rounds.
            rows: The rows of the batch, replicates included.
            before: Rows that will be measured before the batch.
        """
        return rows

    def takes_any_rows(self, belief: Any) -> bool:
        r"""Whether other rows would do as well as those that the algorithm asks for.

        If not, rows cannot be excluded, and results not be learnt from as they come.
        """
        return not self.facts.needs_its_rows

    # --- the answer -------------------------------------------------------------------

    @abstractmethod
    def answer(self, belief: Any, as_claimed: bool = False) -> Classification:
        r"""The side of every row, with bounds and a guarantee.

        Args:
            belief: The belief after the complete rounds.
            as_claimed: Whether nothing is held back, as an audit tests it.
        """

    def limit(self, belief: Any, left: Tensor, reason: str | None) -> str | None:
        r"""The reason to end a run that goes no further; ``None``: it goes on.

        Args:
            belief: The belief after the complete rounds.
            left: ``N`` counts of how often each row may still be measured.
            reason: ``"budget"`` or ``"rows exhausted"`` where no more may be measured;
                ``None`` where rows are left, which may be of no use any more.
        """
        return reason

    @abstractmethod
    def forecast(self, belief: Any, told: int) -> Forecast:
        r"""The expected number of further evaluations until everything is decided.

        Args:
            belief: The belief after the complete rounds.
            told: Measurements of the open round that are told already.
        """


# --- what audits ask ------------------------------------------------------------------


@dataclass(frozen=True)
class AuditFacts:
    r"""The facts that an audit must know of an algorithm before any data.

    Args:
        n_outputs: How many values a measurement has.
        by_itself: Whether a row is right or wrong by itself, not beside others.
        is_gaussian: Whether noise that is known is Gaussian; else it is sub-Gaussian.
        needs_repeats: Whether one value of a row says too little: its noise is not
            known, and its side not enough.
        noise_in_words: The noise that is known, in words.
        least: The measurements of a row without which nothing is known of it.
        scales: For each output the scale on which judges compare it; ``None``, and
            default: as it is told.
    """

    n_outputs: int = 1
    by_itself: bool = True
    is_gaussian: bool = True
    needs_repeats: bool = False
    noise_in_words: str = "Gaussian noise of the given standard deviation"
    least: int = 1
    scales: tuple[LogNormal | None, ...] = ()


class Auditable(Protocol):
    r"""The interface of algorithms with ``audit_facts``, whose answer is tested."""

    def audit_judge(self, belief: Any) -> Judge:
        r"""The judge by which an audit compares values with the present claim."""

    def audited(self, belief: Any, new: Observations) -> Observations:
        r"""The values as the judge compares them, all with their noise variances."""

    def audit_noise_kind(self, belief: Any) -> str:
        r"""The kind of knowledge about the noise: see ``AuditNote``."""


def facts_for_audits(
    goal: Goal,
    *,
    knows_noise: bool = True,
    is_gaussian: bool = True,
    noise_in_words: str = AuditFacts.noise_in_words,
) -> AuditFacts | None:
    r"""The facts for audits of a goal; ``None`` where no value shows a row's side.

    Args:
        goal: What is decided about rows that can be measured.
        knows_noise: Whether the noise is stated, or is the one of a given model.
        is_gaussian: See ``AuditFacts``.
        noise_in_words: See ``AuditFacts``.
    """
    facts, judge = goal.facts, goal.judge()
    if judge is None and not facts.has_one_level:
        return None
    return AuditFacts(
        facts.n_outputs,
        by_itself=judge is None or judge.by_itself,
        is_gaussian=is_gaussian,
        needs_repeats=not (knows_noise or judge is None or judge.knows_sides),
        noise_in_words=noise_in_words,
    )


def judge_of(goal: Goal, mean: Sequence[Tensor]) -> Judge | None:
    r"""The judge of a goal's claims; ``None`` where no value shows a row's side.

    Args:
        goal: What is decided about rows that can be measured.
        mean: For each output the present means, by which a level may be estimated.
    """
    if not goal.facts.has_one_level:
        return goal.judge()
    region = goal.region(mean)
    assert region is not None  # it has a level
    if region.only_comparison is None:
        return RegionJudge(region)
    return LevelJudge(region.level, region.accuracies[0], goal.facts.level is not None)


def auditable(algorithm: Algorithm) -> Auditable:
    r"""An algorithm with ``audit_facts``, as audits ask it."""
    return cast(Auditable, algorithm)


# --- what asks of a model -------------------------------------------------------------


class Predicts(Protocol):
    r"""The interface of algorithms with a model of the function."""

    def predict(
        self, belief: Any, X: Tensor, data: Observations | None = None
    ) -> tuple[Tensor, Tensor]:
        r"""The means and standard deviations of the function at ``M x d`` points.

        Args:
            belief: The belief after the complete rounds.
            X: The points.
            data: Observations to predict from, in place of all there are.
        """

    @property
    def outcomes(self) -> tuple[Quantity | None, ...]:
        r"""The outcome that is measured of each output; ``None``: a number."""

    def shown(self, belief: Any) -> Any:
        r"""The belief that answers rest on, where the run itself has no model yet."""

    def calibration(self, belief: Any, output: int) -> Calibration:
        r"""The comparison of an output's predictions with what was measured."""

    def conservative(self, belief: Any, alpha: float) -> Tensor:
        r"""The items that together are above with probability ``alpha`` (bools)."""

    def remarks(self, belief: Any) -> tuple[Remark, ...]:
        r"""Remarks on the told values that the answer does not make itself."""

    # --- the share above ---

    @property
    def has_level(self) -> bool:
        r"""Whether sides mean above one level of one output that is a number."""

    def level(self, belief: Any) -> float:
        r"""The level, where there is one."""

    @property
    def has_content(self) -> bool:
        r"""Whether rows on one side have a meaningful share of the pool."""

    @property
    def can_draw_content(self) -> bool:
        r"""Whether draws of the posteriors decide sides (the levels are stated)."""

    def can_estimate(self, belief: Any, early: bool = False) -> bool:
        r"""Whether there is a model to decide by, of values on both sides.

        Args:
            belief: The belief after the complete rounds.
            early: Whether one that does not decide yet will do.
        """

    def worth(self, belief: Any, new: Observations) -> float:
        r"""The number of exact measurements that a round is worth."""

    def content(
        self, belief: Any, answer: Classification, confidence: float
    ) -> Content:
        r"""The share above the level, with all that is known of it.

        Args:
            belief: The belief after the complete rounds.
            answer: The result of ``answer``.
            confidence: Of each interval that has one of its own.
        """


def model_of(algorithm: Algorithm) -> Predicts | None:
    r"""The algorithm, if it has a model of the function; else ``None``."""
    return cast(Predicts, algorithm) if algorithm.facts.predicts else None
