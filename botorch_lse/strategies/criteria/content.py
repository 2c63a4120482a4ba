r"""Stops for a known share above the level: rules, and their criterion.

The side of every row need not be known for that: rows of little mass may stay
undecided. ``ContentKnown`` asks for an interval that is narrow enough; the other rules
are those of the literature, for comparison.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from botorch_lse._validation import (
    in_interval,
    kind_of,
    one_of,
    truth_value,
    whole_number,
)
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import CONFIDENCE, Content
from botorch_lse.data.observations import Observations
from botorch_lse.functional.scores import u_function
from botorch_lse.strategies.algorithm import CONTENT, model_of
from botorch_lse.strategies.criteria.base import Criterion, Run

Source = Literal["posterior", "decided", "design"]
SOURCES = get_args(Source)
SETTLED_SHARE = 10
"""The part of all rounds, a tenth, over which the drift of the estimate is taken.
It counts if it is more than ``settled``: with many data a model is fitted more rarely
and a value moves it less, so that five rounds of rest say little. On an oscillator with
six inputs (60 first rows, seeds that are not reported) intervals widened by five rounds
held in 87 % of 60 runs and were off by up to 12 %, by a tenth of the rounds in 97 % and
by up to 5 %, for one measurement more."""


@dataclass(frozen=True)
class Course:
    r"""The course of a run's estimate, round by round.

    Args:
        estimates: The estimate after each round in which there was one, in order.
        worth: The worth of each of these rounds in exact measurements.
        n_rounds: How many rounds are complete, those of the initial design included.
    """

    estimates: tuple[float, ...] = ()
    worth: tuple[float, ...] = ()
    n_rounds: int = 0

    def moved(self, settled: int) -> float:
        r"""The drift: the distance of the last rounds' estimates from the present one.

        Looked at are ``settled`` rounds, or a tenth of all rounds if these are more,
        and as many more as it takes until they are worth ``settled`` exact
        measurements. A noisy value hardly moves what a model says: that an estimate
        rests while nothing is learnt shows nothing.

        Args:
            settled: The number of rounds; with 0 none is looked at.

        Returns:
            The distance, units of the estimates; infinite if there are fewer rounds or
            all of them are worth less.
        """
        if settled == 0:
            return 0.0
        total = 0.0
        # What the first round taught is not seen: there is no estimate before it.
        for count, worth in enumerate(reversed(self.worth[1:]), start=1):
            total += worth
            if count >= self._least(settled) and total >= settled:
                return self._moved_in(count)
        return math.inf

    def moved_so_far(self, settled: int) -> float:
        r"""The drift; over all rounds so far if these are worth fewer than ``settled``.

        Args:
            settled: The number of rounds; with 0 none is looked at.
        """
        found, count = self.moved(settled), len(self.estimates) - 1
        is_long = count >= self._least(settled)
        return self._moved_in(count) if found == math.inf and is_long else found

    def _least(self, settled: int) -> int:
        return max(settled, self.n_rounds // SETTLED_SHARE)

    def _moved_in(self, count: int) -> float:
        now, recent = self.estimates[-1], self.estimates[-1 - count : -1]
        return max(abs(now - earlier) for earlier in recent)


@dataclass(frozen=True, eq=False)
class Look:
    r"""The facts that a rule may look at after a round.

    Args:
        content: How much is above, at the confidence that the rule asks for.
        answer: The answer of the run.
        level: Units of ``y``; ``None`` where sides depend on several.
        course: How the estimate has moved, this round included.
    """

    content: Content
    answer: Classification
    level: float | None
    course: Course


class ContentStop(ABC):
    r"""A rule that says when the share above counts as known (``content_tol=``).

    A rule is a frozen dataclass. It is asked after every round, once there is a model
    that has seen values on both sides of the level.
    """

    times: int
    """The number of rounds in a row in which the rule must hold.
    One look by chance is no proof: a model that is learnt is refitted in between."""
    confidence: ClassVar[float] = CONFIDENCE
    """The confidence of the intervals that the rule looks at."""
    settled: ClassVar[int] = 5
    """The least number of rounds in ``Course.moved``, whose drift widens intervals."""
    reason: ClassVar[str]
    """The stop reason of a run that the rule ends."""

    @abstractmethod
    def holds(self, look: Look) -> bool:
        r"""Whether the share above is known well enough now."""

    def may_hold(self, content: Content, course: Course) -> bool:
        r"""Whether a look is worth its time: joint draws of many rows take seconds.

        Args:
            content: What is known of the number without joint draws.
            course: The course of the estimate.
        """
        return True

    def check(self, algorithm: Any) -> None:  # noqa: B027  (most need nothing)
        r"""Complain if the algorithm lacks what the rule needs.

        Raises:
            ValueError: If it has not.
        """


@dataclass(frozen=True)
class ContentKnown(ContentStop):
    r"""Stop once an interval of the share above is narrow enough.

    Args:
        tol: The half width of the interval: a share of the estimate (0.05 for 5 %), or
            with ``relative=False`` of the pool's mass.
        relative: Whether ``tol`` is a share of the estimate.
        by: Which interval: ``"posterior"``, right if the model is; ``"decided"``, which
            holds as the theorem of the strategy does; ``"design"``, by the draws of an
            audit, whatever the model; an audit that has enough draws ends before.
        sampling: Whether the half width includes the error of the pool as a sample of a
            distribution. With more rows this error is smaller; if it alone exceeds
            ``tol``, the run does not end by this rule.
        confidence: The confidence of the interval.
        times: The number of rounds in a row in which the rule must hold.
        settled: The number of last rounds (a tenth of all rounds, if that is more)
            whose drift of the estimate is added to the half width, but never more than
            undecided rows allow. With noise it takes more rounds: as many as are worth
            ``settled`` exact measurements. A fitted model that still changes is surer
            than it is right, most of all just after its initial design, which is not
            made for the level. With 0 the interval counts as it is.
        until_sampled: Whether the run also ends once the half width is no more than
            the standard error of the pool as a sample, or the interval of a share of 0
            has no width. More rows are then worth more than more measurements: see
            ``extended``.

    Raises:
        ValueError: If a number is out of range, ``by`` is not known, or the error of
            the sample is to be part of the half width and its limit.
    """

    tol: float = 0.05
    relative: bool = True
    by: Source = "posterior"
    sampling: bool = False
    confidence: float = CONFIDENCE  # type: ignore[misc]
    times: int = 2
    settled: int = 5  # type: ignore[misc]
    until_sampled: bool = False

    reason: ClassVar[str] = CONTENT

    def __post_init__(self) -> None:
        remedy = "Write 0.05 for 5 %."
        in_interval(self.tol, "tol", 0.0, 1.0, remedy=remedy)
        truth_value(self.relative, "relative")
        one_of(self.by, "by", SOURCES)
        truth_value(self.sampling, "sampling")
        in_interval(self.confidence, "confidence", 0.0, 1.0)
        whole_number(self.times, "times", 1)
        whole_number(self.settled, "settled", 0)
        truth_value(self.until_sampled, "until_sampled")
        if self.sampling and self.until_sampled:
            raise ValueError(
                "Expected one of `sampling` and `until_sampled`, but got both: the "
                "first adds the error of the sample to the half width, the second "
                "compares them. Leave one out."
            )

    def check(self, algorithm: Any) -> None:
        r"""Complain if the algorithm gives no interval of the share above."""
        if self.by == "posterior" and not algorithm.can_draw_content:
            raise ValueError(
                "Expected stated levels of independent outputs for `by='posterior'`, "
                "but the level is estimated itself, or outputs are correlated. Write "
                "`ContentKnown(..., by='decided')`."
            )

    def holds(self, look: Look) -> bool:
        r"""Whether half width and drift are together at most the tolerance."""
        half = self.half_width(look.content) + self._drift(look.content, look.course)
        most = self.tol * self._scale(look.course)
        if self.until_sampled:
            most = max(most, look.content.sampling_error)
        return half <= most

    def may_hold(self, content: Content, course: Course) -> bool:
        r"""Whether something is above, and the estimate has settled."""
        if content.upper <= 0:
            return True  # every row that counts is decided
        scale, moved = self._scale(course), self._drift(content, course)
        if self.until_sampled:
            return moved <= max(self.tol * scale, content.sampling_error)
        # Of nothing no share is known: while none is found above, the run goes on.
        return scale > 0 and moved <= self.tol * scale

    def _drift(self, content: Content, course: Course) -> float:
        r"""The drift that the estimate may still have: no farther than open rows allow.

        A row at the level itself is never decided and teaches nothing more, so that
        rest would be waited for without end.
        """
        return min(course.moved(self.settled), content.upper - content.lower)

    def _scale(self, course: Course) -> float:
        return course.estimates[-1] if self.relative else 1.0

    def half_width(self, content: Content) -> float:
        r"""The larger half width of the interval, with the sampling error if wanted."""
        ends = {
            "posterior": content.posterior,
            "decided": (content.lower, content.upper),
            "design": content.design,
        }[self.by]
        if ends is None:
            return math.inf
        half = max(ends[1] - content.estimate, content.estimate - ends[0])
        if not self.sampling:
            return half
        low, high = content.population
        return half + max(high - content.upper, content.lower - low)


@dataclass(frozen=True)
class MinimumU(ContentStop):
    r"""Stop once every row's mean is ``limit`` deviations from the level (AK-MCS).

    For comparison with what other packages do. It says nothing of the number, and
    usually ends later than is needed. The stop reason is ``"minimum U"``.

    Args:
        limit: Deviations.
        times: After how many rounds in a row it must hold.

    Raises:
        ValueError: If a number is out of range.

    Source:
        Echard et al. (2011): ``min U >= 2``.
    """

    limit: float = 2.0
    times: int = 1

    reason: ClassVar[str] = "minimum U"

    def __post_init__(self) -> None:
        in_interval(self.limit, "limit", 0.0, math.inf)
        whole_number(self.times, "times", 1)

    def check(self, algorithm: Any) -> None:
        r"""Complain unless sides mean above one level of one output of numbers."""
        needs_one_level(algorithm, self)

    def holds(self, look: Look) -> bool:
        r"""Whether the smallest ratio of distance to ``sigma`` is large enough."""
        answer = look.answer
        assert look.level is not None  # it was checked
        ratio = -u_function(answer.mean, answer.sigma, look.level)
        return float(ratio.min()) >= self.limit


def needs_one_level(algorithm: Any, rule: ContentStop) -> None:
    r"""Complain unless sides mean above one level of one output of numbers.

    Raises:
        ValueError: If they do not.
    """
    if algorithm.has_level:
        return
    came = "another region"
    if algorithm.model.has_outcomes:
        came = "results that are no numbers"
    raise ValueError(
        f"Expected `Above(level)` with one level for `{type(rule).__name__}`, which "
        f"measures distances from it, but got {came}. Write "
        "`ContentKnown(...)`, which takes any."
    )


@dataclass(frozen=True, eq=False)
class ContentNote:
    r"""The estimates of the share above, round by round.

    Args:
        course: The course of the estimate.
        held: After how many rounds in a row the rule has held.
    """

    course: Course = Course()
    held: int = 0


@dataclass(frozen=True, eq=False)
class ContentWatch(Criterion):
    r"""The criterion that ends a run once the share above is known.

    Args:
        rule: When the share counts as known.
    """

    rule: ContentStop

    def start(self, run: Run, seed: int) -> ContentNote:
        r"""The note before any observation, when nothing is known."""
        return ContentNote()

    def after(
        self, note: ContentNote, before: Run, run: Run, new: Observations
    ) -> ContentNote:
        r"""The note after one more round, and whether the rule holds."""
        course = replace(note.course, n_rounds=note.course.n_rounds + 1)
        if note.held >= self.rule.times:  # the run has ended
            return replace(note, course=course)
        algorithm = model_of(run.algorithm)
        assert algorithm is not None  # `content_watches` has seen to it
        if not run.ask(algorithm.can_estimate, early=True):
            return ContentNote(Course(n_rounds=course.n_rounds))
        answer = run.answer()
        known = answer.content()
        course = replace(
            course,
            estimates=(*course.estimates, known.estimate),
            worth=(*course.worth, before.ask(algorithm.worth, new)),
        )
        is_early = not run.ask(algorithm.can_estimate)
        if is_early or not self.rule.may_hold(known, course):
            return ContentNote(course)
        content = run.content(answer, self.rule.confidence)
        level = run.ask(algorithm.level) if algorithm.has_level else None
        look = Look(content, answer, level, course)
        return ContentNote(course, note.held + 1 if self.rule.holds(look) else 0)

    def content(
        self, note: ContentNote, run: Run, answer: Classification, confidence: float
    ) -> Content:
        r"""The share above the level, with the recent drift of the estimate."""
        found = run.content(answer, confidence)
        course = note.course
        moved = course.moved_so_far(self.rule.settled)
        if found.posterior is None or not course.estimates or moved == math.inf:
            return found
        moved += abs(found.estimate - course.estimates[-1])  # since the run has ended
        low, high = found.posterior
        return replace(found, widened=(max(0.0, low - moved), high + moved))

    def reason(self, note: ContentNote, run: Run, answer: Classification) -> str | None:
        r"""The rule's stop reason; without one, that the share is known."""
        reason = run.stop_reason(answer)
        known = note.held >= self.rule.times
        return self.rule.reason if reason is None and known else reason


def content_watches(
    algorithm: Any, content_tol: float | ContentStop | None, is_audited: bool
) -> tuple[ContentWatch, ...]:
    r"""The watch on the share above, if the run is to end once it is known.

    Args:
        algorithm: What believes and answers.
        content_tol: The rule; a number stands for ``ContentKnown(number)``.
        is_audited: Whether the answer is audited as well.

    Raises:
        ValueError: If ``content_tol`` is no rule, or the goal has not what it needs.
    """
    if content_tol is None:
        return ()
    if isinstance(content_tol, int | float):
        content_tol = ContentKnown(content_tol)
    if not isinstance(content_tol, ContentStop):
        raise ValueError(
            "Expected `content_tol` to be a number or a rule such as "
            f"`ContentKnown(0.05)`, but got {kind_of(content_tol)}."
        )
    model = model_of(algorithm)
    if model is None or not model.has_content:
        raise ValueError(
            "Expected no `content_tol` where no share of the pool is asked for: it "
            "needs a Gaussian process, a `goal` with levels, and no `targets`. Leave "
            "it out."
        )
    by_draws = isinstance(content_tol, ContentKnown) and content_tol.by == "design"
    if is_audited and not by_draws:
        raise ValueError(
            "Expected no `audit` with a `content_tol` that may end the run before it, "
            "but got both. Leave one out, or write `ContentKnown(..., by='design')`."
        )
    if by_draws and not is_audited:
        raise ValueError(
            "Expected an `audit` for `by='design'`, whose draws it counts, but got "
            "none. Write `audit=(0.05, 0.05)`."
        )
    content_tol.check(algorithm)
    return (ContentWatch(content_tol),)
