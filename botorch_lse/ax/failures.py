r"""Evaluations that failed: which are tried again, and which rows are given up."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, Literal

from botorch_lse.ax.workers import Finished, Parameters

Verdict = Literal["retry", "failed", "abandoned"]


class Failures:
    r"""Counts errors; a row that failed too often is not evaluated any more.

    Args:
        on_error: ``"raise"``, ``"retry"`` (a trial again under its index) or ``"fail"``
            (its row again in another trial).
        max_retries: How often after the first time.
    """

    def __init__(self, on_error: str, max_retries: int) -> None:
        self.on_error, self.max_retries = on_error, max_retries
        self._errors: Counter[Any] = Counter()
        self._given_up: set[str] = set()
        self._last_useful: int | None = None

    def judge(self, finished: Finished, error: Exception) -> Verdict:
        r"""What becomes of a trial.

        Raises:
            Exception: The evaluation's own, if so told.
        """
        trial = finished.trial
        if self.on_error == "raise":
            error.add_note(
                f"Trial {trial} ({finished.parameters}) is still running in the "
                "experiment; call `run_experiment` again to evaluate it."
            )
            raise error
        key = trial if self.on_error == "retry" else repr(finished.parameters)
        self._errors[key] += 1
        if self._errors[key] <= self.max_retries:
            return "retry" if self.on_error == "retry" else "failed"
        self._given_up.add(repr(finished.parameters))
        warnings.warn(
            f"Trial {trial} ({finished.parameters}) is abandoned: its evaluation "
            f"failed {self._errors[key]} times, last with {error!r}. Its place is "
            "used up, and the row is not evaluated again in this run.",
            RuntimeWarning,
            stacklevel=2,
        )
        return "abandoned"

    def are_hopeless(self, parameters: Parameters) -> bool:
        r"""Whether a row was given up."""
        return repr(parameters) in self._given_up

    def useful(self, round: int | None) -> None:
        r"""A row of this round is evaluated."""
        self._last_useful = round

    def were_all_of(self, round: int | None) -> bool:
        r"""Whether no row of this round was evaluated."""
        return self._last_useful != round

    def why_stop(self) -> str:
        r"""That nothing but given up rows is asked for, in words."""
        rows = ", ".join(sorted(self._given_up))
        return (
            f"the strategy asks only for rows whose evaluation failed: {rows}. Leave "
            "them out of the pool, give the strategy `max_repeats`, by which used up "
            "places count, or call `run_experiment` again when they can be measured"
        )
