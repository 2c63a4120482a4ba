r"""Kinds of results that are no measured numbers: their words, and their settings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

from botorch_lse._numerals import written
from botorch_lse.cli.notation import MISSING

if TYPE_CHECKING:
    from torch import Tensor

    from botorch_lse.goals.regions import Region
    from botorch_lse.models.outcomes import Outcome

OUTCOME = "yes-no"
"""The setting ``outcome`` of results that are yes or no."""
COUNTS = "counts"
"""The setting ``outcome`` of results that are counts of events."""
GRADES = "grades"
"""The setting ``outcome`` of results that are grades, 0, 1, 2 and so on."""
CLASSES = "classes"
"""The setting ``outcome`` of results that are classes without an order."""
MAJORITY = 0.5
"""The level of classes that nobody gave: above it only one class can be."""
NO_CLASS = "none"
"""The word for candidates in which no class has a probability above the level."""
NO_RESULT = ("again", "failed", "n/a", "not measurable", "excluded", "undecided")
"""The words that are no names of classes: tables and answers use them otherwise."""
NUMBERS = ("1", "0")
"""The numbers for yes and no."""
PAIRS = (
    ("yes", "no"),
    ("pass", "fail"),
    ("ok", "nok"),
    ("true", "false"),
    ("success", "failure"),
    NUMBERS,
)
"""The words for yes and no, in any case; a table has one pair of them."""
PAIR_OF = {word: pair for pair in PAIRS for word in pair}
"""The pair of each word."""
AGAIN = "again"
"""The word for a trial without a result, which is asked for again.
"failed", which says so of a measured number, might be a result here."""
OTHERWISE = (
    f"leave the cell empty, or write {AGAIN} (asked again) or n/a (cannot be measured)"
)
"""The words for no result, for a message."""
NEEDS_NO_NOISE = ("log_result", "noise_std")
"""The settings about measured numbers, which such results are not."""
OWN = {
    OUTCOME: ("guess", "lapse", "trials"),
    COUNTS: (),
    GRADES: ("grades", "at_least"),
    CLASSES: ("classes",),
}
"""The settings that only results of one kind have."""


@dataclass(frozen=True)
class Fault:
    r"""The fault of a result that is none of its kind.

    Args:
        wanted: What was expected.
        remedy: What to write.
    """

    wanted: str
    remedy: str


class Kind(ABC):
    r"""A kind of results that are no measured numbers."""

    asks_for: ClassVar[str] = "probability"
    """The meaning of the level, in words."""
    true_value: ClassVar[str] = "a probability of yes"
    """The meaning of a true value, in words."""
    drawn_by: ClassVar[str] = "probabilities"
    """The quantities by which results are simulated, in words."""

    @property
    @abstractmethod
    def outcome(self) -> Outcome:
        r"""The relation of results to the model."""

    @property
    @abstractmethod
    def contrast(self) -> str:
        r"""The results without which nothing is decided, in words."""

    @property
    @abstractmethod
    def example(self) -> str:
        r"""A sentence about a level that is possible."""

    @property
    def bounds(self) -> tuple[float, float]:
        r"""The bounds of what levels are about."""
        return 0.0, 1.0

    @abstractmethod
    def words(self, first: str | None) -> str:
        r"""The words for results.

        Args:
            first: The first result of the files; ``None`` before any.
        """

    def question(self, side: str, level: str) -> str:
        r"""The question about what is measured, in words.

        Args:
            side: The side that is asked for.
            level: The level with its unit.
        """
        return f"{self.asks_for} {side} {level}?"

    def goal(self, level: float, epsilon: float) -> Region:
        r"""The question as a strategy understands it.

        Args:
            level: The level.
            epsilon: The accuracy.
        """
        from botorch_lse.goals.regions import Above  # brings torch

        return Above(level, epsilon)

    def told(self, values: Tensor) -> Tensor:
        r"""The results as a strategy is told them.

        Args:
            values: ``n`` numbers of ``result_of``, or shares of trials.
        """
        return values

    @abstractmethod
    def result_of(self, text: str, number: float | None) -> float | Fault:
        r"""The result that a cell holds, as a number.

        Args:
            text: The cell.
            number: The number that it holds, if it holds one.
        """

    def pair_of(self, text: str) -> tuple[str, str] | None:
        r"""The pair of words to which a result belongs, where a table has one pair."""
        return None

    def allows(self, *values: float) -> bool:
        r"""Whether the quantity of the level can take some values."""
        low, high = self.bounds
        return all(low <= value <= high for value in values)

    def allows_level(self, level: float) -> bool:
        r"""Whether a level can be crossed."""
        low, high = self.bounds
        return low < level < high


@dataclass(frozen=True)
class YesNo(Kind):
    r"""Results that are yes or no.

    Args:
        guess: The probability of a yes where only chance gives it.
        lapse: The probability of a no that is none of the candidate's.
    """

    guess: float = 0.0
    lapse: float = 0.0

    @property
    def outcome(self) -> Outcome:
        r"""The relation of results to the model."""
        from botorch_lse.models.outcomes import Binary  # brings torch

        return Binary(guess=self.guess, lapse=self.lapse)

    @property
    def contrast(self) -> str:
        r"""The results without which nothing is decided, in words."""
        return "a yes and a no"

    @property
    def example(self) -> str:
        r"""A sentence about a level that is possible."""
        if self.bounds != (0, 1):
            return "The guess and lapse rates bound all probabilities."
        return "Above 0.75 are candidates of which three of four results are yes."

    @property
    def bounds(self) -> tuple[float, float]:
        r"""The bounds of the probability."""
        return self.guess, 1.0 - self.lapse

    def words(self, first: str | None) -> str:
        r"""The words for results: those of the first one, if there is one."""
        if first is None:
            return "yes or no (or pass or fail, or 1 or 0)"
        return " or ".join(self.pair_of(first))

    def result_of(self, text: str, number: float | None) -> float | Fault:
        r"""The answer that a cell holds: 1 for yes and 0 for no."""
        word = _plain(text)
        if number in (0.0, 1.0):
            return float(number)
        if word in PAIR_OF:
            return 1.0 if PAIR_OF[word][0] == word else 0.0
        if word == "failed":
            remedy = (
                f"write fail if the result is no, or {AGAIN} to have it asked again"
            )
            return Fault("yes or no", remedy)
        if number is not None:
            remedy = "write yes or no; numbers of successes need `trials`, the column "
            return Fault("yes or no", f"{remedy}of how many there were")
        near = get_close_matches(word, PAIR_OF, 1)
        remedy = f"write {near[0]}" if near else "write yes or no"
        return Fault("yes or no", f"{remedy}, {OTHERWISE}")

    def pair_of(self, text: str) -> tuple[str, str]:
        r"""The pair of words to which an answer belongs; numbers are one."""
        return PAIR_OF.get(_plain(text), NUMBERS)


@dataclass(frozen=True)
class Events(Kind):
    r"""Results that are counts of events."""

    asks_for: ClassVar[str] = "expected count"
    true_value: ClassVar[str] = "an expected count"
    drawn_by: ClassVar[str] = "expected counts"

    @property
    def outcome(self) -> Outcome:
        r"""The relation of results to the model."""
        from botorch_lse.models.outcomes import Counts  # brings torch

        return Counts()

    @property
    def contrast(self) -> str:
        r"""The results without which nothing is decided, in words."""
        return "two different counts"

    @property
    def example(self) -> str:
        r"""A sentence about a level that is possible."""
        return "Above 5 are candidates in which more than 5 are expected."

    @property
    def bounds(self) -> tuple[float, float]:
        r"""The bounds of the expected count."""
        return 0.0, math.inf

    def words(self, first: str | None) -> str:
        r"""The words for results."""
        return "how many there are, 0, 1, 2 and so on"

    def result_of(self, text: str, number: float | None) -> float | Fault:
        r"""The count that a cell holds."""
        if number is not None and number >= 0 and number == int(number):
            return float(number)
        return Fault("a count, a whole number from 0 on", f"write it, {OTHERWISE}")


@dataclass(frozen=True)
class Graded(Kind):
    r"""Results that are grades, 0, 1, 2 and so on.

    Args:
        grades: The number of grades.
        at_least: The grade whose probability, or that of a higher one, is asked for.
    """

    grades: int
    at_least: int

    @property
    def asks_for(self) -> str:  # type: ignore[override]
        r"""The meaning of the level, in words."""
        return f"probability of at least {self.at_least}"

    @property
    def outcome(self) -> Outcome:
        r"""The relation of results to the model."""
        from botorch_lse.models.outcomes import Ordinal  # brings torch

        return Ordinal(self.grades, at_least=self.at_least)

    @property
    def contrast(self) -> str:
        r"""The results without which nothing is decided, in words."""
        return f"grades below {self.at_least} and others"

    @property
    def example(self) -> str:
        r"""A sentence about a level that is possible."""
        shown = f"{self.at_least} or more"
        return f"Above 0.75 are candidates of which three of four results are {shown}."

    def words(self, first: str | None) -> str:
        r"""The words for results."""
        return f"a grade, 0 to {self.grades - 1}"

    def result_of(self, text: str, number: float | None) -> float | Fault:
        r"""The grade that a cell holds."""
        if number is not None and number in range(self.grades):
            return float(number)
        wanted = f"a grade, a whole number from 0 to {self.grades - 1}"
        return Fault(wanted, f"write it, {OTHERWISE}")


@dataclass(frozen=True)
class Labels(Kind):
    r"""Results that are classes without an order.

    Args:
        names: The names of the classes.
    """

    names: tuple[str, ...]

    true_value: ClassVar[str] = "a probability of a class"
    drawn_by: ClassVar[str] = "classes"

    @property
    def outcome(self) -> Outcome:
        r"""The relation of results to the model: of each class whether it is found."""
        from botorch_lse.models.outcomes import Binary  # brings torch

        return Binary()

    @property
    def contrast(self) -> str:
        r"""The results without which nothing is decided, in words."""
        return "two classes"

    @property
    def example(self) -> str:
        r"""A sentence about a level that is possible."""
        return "Leave the level out, or ask for more, as by --above 0.9."

    @property
    def bounds(self) -> tuple[float, float]:
        r"""The bounds of levels."""
        return MAJORITY, 1.0

    def allows_level(self, level: float) -> bool:
        r"""Whether at most one class can be above a level."""
        return MAJORITY <= level < 1

    def words(self, first: str | None) -> str:
        r"""The words for results."""
        return f"{', '.join(self.names[:-1])} or {self.names[-1]}"

    def question(self, side: str, level: str) -> str:
        r"""The question in words: the names of all classes."""
        return f"which of {', '.join(self.names[:-1])} and {self.names[-1]} it is"

    def goal(self, level: float, epsilon: float) -> Region:
        r"""The question as a strategy understands it."""
        from botorch_lse.goals.classes import Classes  # brings torch

        return Classes(self.names, level, epsilon)

    def told(self, values: Tensor) -> Tensor:
        r"""The results as a strategy is told them: 1 for the class, 0 for others."""
        from botorch_lse.goals.classes import Classes  # brings torch

        return Classes(self.names).results(values.long())

    def result_of(self, text: str, number: float | None) -> float | Fault:
        r"""The number of the class that a cell holds."""
        places = {_plain(name): i for i, name in enumerate(self.names)}
        if (word := _plain(text)) in places:
            return float(places[word])
        near = get_close_matches(word, places, 1)
        names = [self.names[places[one]] for one in near] or [self.words(None)]
        return Fault(f"a class, {self.words(None)}", f"write {names[0]}, {OTHERWISE}")


def _plain(text: str) -> str:
    r"""A word in small letters, with single blanks."""
    return " ".join(text.casefold().split())


def kind_of(found: Mapping[str, Any], level: float) -> Kind | None:
    r"""The kind of results that settings say; ``None``: measured numbers.

    Args:
        found: The settings by name.
        level: The level that is asked about.

    Raises:
        ValueError: If settings do not go together.
    """
    outcome = found["outcome"]
    for own, names in OWN.items():
        given = [name for name in names if found[name] not in (None, ())]
        if given and outcome != own:
            raise ValueError(
                f"Expected `outcome` to be {own} where `{given[0]}` is given, but got "
                f"{outcome or 'none'}. Set it, or leave `{given[0]}` out."
            )
    if outcome is None:
        return None
    if outcome not in OWN:
        *most, last = OWN
        raise ValueError(
            f"Expected `outcome` to be {', '.join(most)} or {last}, but got "
            f"{outcome!r}. Leave it out where results are measured numbers."
        )
    given = [name for name in NEEDS_NO_NOISE if found[name] not in (None, (), False)]
    if given:
        raise ValueError(
            f"Expected no `{given[0]}` with `outcome`, as it is about measured numbers,"
            f" but got {found[given[0]]}. Leave `{given[0]}` out."
        )
    if found["audit"] and outcome == COUNTS:
        raise ValueError(
            f"Expected no `audit` with `outcome` = {outcome}, of which an audit has no "
            "test, but got one. Leave `audit` out."
        )
    kind = _kind(outcome, found)
    low, high = kind.bounds
    if not kind.allows_level(level):
        remedy = kind.example
        if high == 1 and low < level / 100 < high and level not in range(_grades(kind)):
            remedy = f"Write {written(level / 100)} for {written(level)} %."
        limits = f"between {written(low)} and {written(high)}"
        if math.isinf(high):
            limits = f"above {written(low)}"
        raise ValueError(
            f"Expected a level that is {kind.true_value.partition(' of ')[0]}, "
            f"{limits}, with `outcome`, but got {written(level)}. {remedy}"
        )
    return kind


def _grades(kind: Kind) -> int:
    r"""The number of grades, which may have been written as a level; 0 of others."""
    return kind.grades if isinstance(kind, Graded) else 0


def _kind(outcome: str, found: Mapping[str, Any]) -> Kind:
    r"""The kind of results with its own settings; see ``kind_of``."""
    if outcome == COUNTS:
        return Events()
    if outcome == GRADES:
        return _graded(found["grades"], found["at_least"])
    if outcome == CLASSES:
        return _labels(tuple(found["classes"]), found["below"])
    guess, lapse = found["guess"] or 0.0, found["lapse"] or 0.0
    if not 0 <= guess < 1.0 - lapse <= 1:
        raise ValueError(
            "Expected `guess` and `lapse` to be at least 0, and less than 1 together, "
            f"but got {written(guess)} and {written(lapse)}. Without guessed answers "
            "and lapses leave them out."
        )
    return YesNo(guess, lapse)


def _labels(names: tuple[str, ...], below: float | None) -> Labels:
    r"""The classes by their names.

    Raises:
        ValueError: If they are no different names, or a level is below them.
    """
    plain = {*map(_plain, names)} - {"", *NO_RESULT, *MISSING, NO_CLASS}
    if len(names) < 2 or len(plain) < len(names):
        no_names = f"{', '.join(NO_RESULT)} or {NO_CLASS}"
        raise ValueError(
            f"Expected `classes` to be at least two different names, none of them NA, "
            f"{no_names}, but got {', '.join(names) or 'none'}. For three write "
            "solid,liquid,gas."
        )
    if below is not None:
        raise ValueError(
            "Expected no `below` with `outcome` = classes, as a candidate is of the "
            f"class that is likely there, but got {written(below)}. Leave it out."
        )
    return Labels(names)


def _graded(grades: int | None, at_least: int | None) -> Graded:
    r"""The grades, and the one that is asked about.

    Raises:
        ValueError: If one is missing or impossible.
    """
    if grades is None or at_least is None or not 1 <= at_least < grades:
        came = f"got {grades or 'none'} and {'none' if at_least is None else at_least}"
        raise ValueError(
            "Expected `grades` to be their number, and `at_least` to be the grade to "
            f"be reached, from 1 to one less than that, but {came}. Of the grades 0 to "
            "3, where 2 is good enough, write 4 and 2."
        )
    return Graded(grades, at_least)
