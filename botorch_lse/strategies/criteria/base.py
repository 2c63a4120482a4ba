r"""Criteria: reasons to end a run early; and the run that they watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from torch import Tensor

from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import Content
from botorch_lse.data.observations import Observations
from botorch_lse.data.requests import PlanRequest
from botorch_lse.strategies.algorithm import (
    DECIDED,
    EXHAUSTED,
    Algorithm,
    Step,
    model_of,
)
from botorch_lse.strategies.forecast import Forecast

P = ParamSpec("P")
T = TypeVar("T")


class Criterion:
    r"""A reason to end a run, such as an audit that has passed.

    It looks at the run after each round and keeps a note of its own. It may ask for
    rows, and say more in the answer. A run may have several: each is given the run as
    the criteria before it leave it, and here each method says what these say.
    """

    draws_at_random: bool = False
    """Whether rows are drawn at random, so that something holds whatever the model."""

    def start(self, run: Run, seed: int) -> Any:
        r"""The note before any observation.

        Args:
            run: What is believed then.
            seed: The run's seed.
        """
        return None

    def after(self, note: Any, before: Run, run: Run, new: Observations) -> Any:
        r"""The note after one more complete round.

        Args:
            note: The note before the round.
            before: What was believed before the round.
            run: What is believed after it.
            new: The observations of the round.
        """
        return note

    def lose(self, note: Any, run: Run, rows: Tensor) -> Any:
        r"""The note after rows were used up without a result, or excluded."""
        return note

    def rows(self, note: Any, run: Run, request: PlanRequest) -> Tensor | None:
        r"""The rows that must be measured next; ``None`` leaves it to the algorithm."""
        return run.rows(request)

    def reason(self, note: Any, run: Run, answer: Classification) -> str | None:
        r"""The reason to ask for nothing more; ``None`` while something is open."""
        return run.stop_reason(answer)

    def answer(self, note: Any, run: Run) -> Classification:
        r"""The side of every row, with bounds and a guarantee."""
        return run.answer()

    def content(
        self, note: Any, run: Run, answer: Classification, confidence: float
    ) -> Content:
        r"""The share above the level, with all that is known of it."""
        return run.content(answer, confidence)

    def forecast(self, note: Any, run: Run, told: int) -> Forecast:
        r"""The expected number of further evaluations until the run ends."""
        return run.forecast(told)


@dataclass(frozen=True, eq=False)
class Run:
    r"""The belief of a run, and the notes of its criteria.

    Args:
        algorithm: What believes, plans and answers.
        belief: What it believes after the complete rounds.
        criteria: The criteria, in the order in which each is told what the others say.
        notes: The note of each criterion.
    """

    algorithm: Algorithm
    belief: Any
    criteria: tuple[Criterion, ...] = ()
    notes: tuple[Any, ...] = ()

    @classmethod
    def start(
        cls, algorithm: Algorithm, criteria: tuple[Criterion, ...], seed: int
    ) -> Run:
        r"""The run before any observation."""
        run = cls(algorithm, algorithm.door.inside(algorithm.start, seed))
        for criterion in criteria:
            run = run._with(criterion, criterion.start(run, seed))
        return run

    def learn(self, step: Step) -> Run:
        r"""The run after one more complete round."""
        # Nobody outside looks into a belief: it stays where it is computed.
        door, learn = self.algorithm.door, self.algorithm.learn
        run = Run(self.algorithm, door.inside(learn, self.belief, step))
        for criterion, note in zip(self.criteria, self.notes, strict=True):
            run = run._with(criterion, criterion.after(note, self, run, step.new))
        return run

    def lose(self, rows: Tensor, history: Observations, seed: int) -> Run:
        r"""The run after rows were used up without a result, or excluded.

        Args:
            rows: The rows.
            history: All observations of the complete rounds.
            seed: The run's seed.
        """
        door, lose = self.algorithm.door, self.algorithm.lose
        run = Run(self.algorithm, door.inside(lose, self.belief, rows, history, seed))
        for criterion, note in zip(self.criteria, self.notes, strict=True):
            run = run._with(criterion, criterion.lose(note, run, rows))
        return run

    def _with(self, criterion: Criterion, note: Any) -> Run:
        return replace(
            self, criteria=(*self.criteria, criterion), notes=(*self.notes, note)
        )

    @property
    def _inner(self) -> Run:
        return replace(self, criteria=self.criteria[:-1], notes=self.notes[:-1])

    # --- asking the algorithm, wherever it computes -----------------------------------

    def ask(
        self,
        method: Callable[Concatenate[Any, P], T],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        r"""The result of one of the algorithm's methods by the belief, on the CPU."""
        door = self.algorithm.door
        return door.through(method, self.belief, *arguments, **options)

    # --- choosing ---------------------------------------------------------------------

    @property
    def draws_at_random(self) -> bool:
        r"""Whether a criterion draws rows at random."""
        return any(criterion.draws_at_random for criterion in self.criteria)

    def rows(self, request: PlanRequest) -> Tensor | None:
        r"""The rows that a criterion wants; ``None``: the algorithm plans."""
        if not self.criteria:
            return None
        return self.criteria[-1].rows(self.notes[-1], self._inner, request)

    def plan(self, request: PlanRequest) -> Tensor:
        r"""The rows to measure with replicates; fewer than asked if none is left."""
        if request.size == 0:
            return request.pending[:0]
        rows = self.rows(request)
        if rows is None:
            rows = self.ask(self.algorithm.plan, request)
        return rows

    def at_once(self, request: PlanRequest) -> int:
        r"""The number of measurements that may be planned beside the pending ones."""
        rows = self.rows(request)
        if rows is None:
            return int(self.ask(self.algorithm.usable, request).sum())
        return len(rows)

    def limit(self, request: PlanRequest, reason: str | None) -> str | None:
        r"""The reason to end a run that goes no further; ``None``: it goes on.

        Args:
            request: What may be measured.
            reason: ``"budget"`` where nothing may; else ``None``.
        """
        if reason is None:
            rows = self.rows(request)
            if rows is not None and len(rows):
                return None  # a criterion learns from their values
            if rows is not None or self.at_once(replace(request, size=1)) == 0:
                reason = EXHAUSTED
        return self.ask(self.algorithm.limit, request.left, reason)

    # --- the answer -------------------------------------------------------------------

    def stop_reason(self, answer: Classification) -> str | None:
        r"""The reason to ask for nothing more; ``None`` while something is open."""
        if not self.criteria:
            return None if bool(answer.undecided.any()) else DECIDED
        return self.criteria[-1].reason(self.notes[-1], self._inner, answer)

    @property
    def shown(self) -> Run:
        r"""The run as people see it: by a model of the first values, if there is one.

        Such a model decides nothing, and the run goes on without it.
        """
        if (model := model_of(self.algorithm)) is None:
            return self
        belief = self.algorithm.door.inside(model.shown, self.belief)
        return self if belief is self.belief else replace(self, belief=belief)

    def answer(self) -> Classification:
        r"""The side of every row, with bounds and a guarantee."""
        if not self.criteria:
            return self.ask(self.algorithm.answer)
        return self.criteria[-1].answer(self.notes[-1], self._inner)

    def content(self, answer: Classification, confidence: float) -> Content:
        r"""The share above the level, with all that is known of it."""
        if not self.criteria:
            if (model := model_of(self.algorithm)) is None:
                return answer.content(confidence)
            return self.ask(model.content, answer, confidence)
        last, note = self.criteria[-1], self.notes[-1]
        return last.content(note, self._inner, answer, confidence)

    def forecast(self, told: int) -> Forecast:
        r"""The expected number of further evaluations until the run ends.

        Args:
            told: Measurements of the open round that are told already.
        """
        if not self.criteria:
            return self.ask(self.algorithm.forecast, told)
        return self.criteria[-1].forecast(self.notes[-1], self._inner, told)
