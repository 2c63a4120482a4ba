r"""Results that are yes or no, or grades: their words, and the settings about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from botorch_lse._numerals import written

OUTCOME = "yes-no"
"""The setting ``outcome`` of results that are yes or no."""
GRADES = "grades"
"""The setting ``outcome`` of results that are grades, 0, 1, 2 and so on."""
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
NEEDS_NO_NOISE = ("log_result", "noise_std")
"""The settings about measured numbers, which an answer is not."""
OF_YES_NO = ("guess", "lapse", "trials")
"""The settings that only results of yes and no have."""
OF_GRADES = ("grades", "at_least")
"""The settings that only grades have, which need both."""


@dataclass(frozen=True)
class Fault:
    r"""The fault of a result that is no answer.

    Args:
        wanted: What was expected.
        remedy: What to write.
    """

    wanted: str
    remedy: str


def check_yes_no(found: Mapping[str, Any], level: float) -> None:
    r"""Complain about settings that do not go with results of yes and no, or grades.

    Args:
        found: The settings by name.
        level: The level that is asked about.

    Raises:
        ValueError: If one does not.
    """
    outcome = found["outcome"]
    for own, names in ((OUTCOME, OF_YES_NO), (GRADES, OF_GRADES)):
        given = [name for name in names if found[name] is not None]
        if given and outcome != own:
            raise ValueError(
                f"Expected `outcome` to be {own} where `{given[0]}` is given, but got "
                f"{outcome or 'none'}. Set it, or leave `{given[0]}` out."
            )
    if outcome is None:
        return
    if outcome not in (OUTCOME, GRADES):
        raise ValueError(
            f"Expected `outcome` to be {OUTCOME} or {GRADES}, but got {outcome!r}. "
            "Leave it out where results are measured numbers."
        )
    if outcome == GRADES:
        check_grades(found["grades"], found["at_least"])
    given = [name for name in NEEDS_NO_NOISE if found[name] not in (None, (), False)]
    if given:
        raise ValueError(
            f"Expected no `{given[0]}` with `outcome`, as it is about measured numbers,"
            f" but got {found[given[0]]}. Leave `{given[0]}` out."
        )
    low, high = found["guess"] or 0.0, 1.0 - (found["lapse"] or 0.0)
    if not 0 <= low < high <= 1:
        raise ValueError(
            "Expected `guess` and `lapse` to be at least 0, and less than 1 together, "
            f"but got {written(low)} and {written(1 - high)}. Without guessed answers "
            "and lapses leave them out."
        )
    if not low < level < high:
        remedy = "The guess and lapse rates bound all probabilities."
        is_grade = outcome == GRADES and level < found["grades"]
        if low < level / 100 < high and not is_grade:
            remedy = f"Write {written(level / 100)} for {written(level)} %."
        elif (low, high) == (0, 1):
            shown = "yes" if outcome == OUTCOME else f"{found['at_least']} or more"
            remedy = "Above 0.75 are candidates of which three of four results are "
            remedy += f"{shown}."
        raise ValueError(
            f"Expected a level that is a probability, between {written(low)} and "
            f"{written(high)}, with `outcome`, but got {written(level)}. {remedy}"
        )


def check_grades(grades: int | None, at_least: int | None) -> None:
    r"""Complain about the number of grades, or the grade that is asked about.

    Args:
        grades: The number of grades.
        at_least: The grade whose probability, or that of a higher one, is asked for.

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


def grade_of(number: float | None, grades: int) -> float | Fault:
    r"""The grade that a cell holds.

    Args:
        number: The number that it holds, if it holds one.
        grades: The number of grades.
    """
    if number is not None and number in range(grades):
        return float(number)
    wanted = f"a grade, a whole number from 0 to {grades - 1}"
    remedy = f"write it, leave the cell empty, or write {AGAIN} (asked again) or n/a "
    return Fault(wanted, f"{remedy}(cannot be measured)")


def answer_of(text: str, number: float | None) -> float | Fault:
    r"""The answer that a cell holds: 1 for yes and 0 for no.

    Args:
        text: The cell.
        number: The number that it holds, if it holds one.
    """
    word = " ".join(text.casefold().split())
    if number in (0.0, 1.0):
        return float(number)
    if word in PAIR_OF:
        return 1.0 if PAIR_OF[word][0] == word else 0.0
    if word == "failed":
        remedy = f"write fail if the result is no, or {AGAIN} to have it asked again"
        return Fault("yes or no", remedy)
    if number is not None:
        remedy = "write yes or no; numbers of successes need `trials`, the column of "
        return Fault("yes or no", f"{remedy}how many there were")
    near = get_close_matches(word, PAIR_OF, 1)
    remedy = f"write {near[0]}" if near else "write yes or no"
    return Fault(
        "yes or no",
        f"{remedy}, leave the cell empty, or write {AGAIN} (asked again) or n/a "
        "(cannot be measured)",
    )


def pair_of(text: str) -> tuple[str, str]:
    r"""The pair of words to which an answer belongs; numbers are one."""
    return PAIR_OF.get(" ".join(text.casefold().split()), NUMBERS)
