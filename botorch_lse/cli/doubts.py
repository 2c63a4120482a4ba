r"""Doubts that results raise and a model does not, worded for a table's owner.

``state.remarks`` says it in the words of Python; here each remark names lines of files
and a remedy that they have.
"""

from __future__ import annotations

import torch

from botorch_lse._numerals import written
from botorch_lse.cli.candidates import REPEAT, SHEET
from botorch_lse.cli.kinds import OUTCOME
from botorch_lse.cli.measurements import MEASURED, Entry
from botorch_lse.cli.runs import Run
from botorch_lse.surrogate.remarks import NAMED, Remark


def place_of(run: Run, entry: Entry, is_taken: bool) -> str:
    r"""The place where a line will stand when somebody reads this.

    Args:
        run: The run.
        entry: The line.
        is_taken: Whether the sheet's values will be added to the results.
    """
    moves = is_taken and any(entry is one for one, _ in run.measured.taken)
    return run.settings.file("results").name if moves else entry.place


def in_table_words(run: Run, remark: Remark, *, is_taken: bool = False) -> str:
    r"""A remark with places and remedies of a table; empty if it says nothing there.

    Args:
        run: The run.
        remark: One of its state.
        is_taken: Whether the sheet's values will be added to the results.
    """
    file = run.settings.path.name
    if remark.kind == "slip":
        return _of_slip(run, remark.rows[0], is_taken)
    if remark.kind == "levels" and not run.measured.known:  # limits are often alike
        values = run.scale.shown(run.state.observations).y.unique()
        shown = ", ".join(map(written, values))
        return (
            f"The results take only {len(values)} different values ({shown}). The "
            "model takes them for measured numbers, so that probabilities and bounds "
            "are rough guides. " + _of_few_values(run, values.tolist())
        )
    if remark.kind == "noise":
        return (
            "Hardly any candidate was measured twice, so that the noise is a guess and "
            f"the bounds are wide. If you know it, set noise_std in {file}; else "
            "measure four candidates again, add lines for them to "
            f"{run.settings.results}, the cells {SHEET} and {REPEAT} empty, and "
            f"{run.settings.later.advice('replicates', '')}."
        )
    if remark.kind == "stated noise":
        named = list(run.places)
        rows = [named[row] for row in remark.rows]
        entries = [e for e in run.measured.having(MEASURED) if e.row in rows]
        places = [place_of(run, entry, is_taken) for entry in entries[:NAMED]]
        places += [f"{len(entries) - NAMED} more"] * (len(entries) > NAMED)
        return (
            f"Values of one candidate differ by more than noise_std in {file} allows "
            f"({'; '.join(dict.fromkeys(places))}): were they typed or measured "
            "wrongly, or is the noise larger? The noise that they allow is used. "
            "Correct them, set a larger noise_std, or delete its line, so that it is "
            "learnt."
        )
    if remark.kind == "model":
        return (
            "Many values lie farther from what the model says than noise_std allows, "
            f"so that nothing is decided. Set a larger noise_std in {file}, or delete "
            "its line, so that it is learnt."
        )
    return ""


def _of_few_values(run: Run, values: list[float]) -> str:
    r"""The remedy for results that take few values."""
    if set(values) == {0.0, 1.0}:
        outcome = run.settings.later.advice("outcome", OUTCOME)
        return (
            f"If 1 is yes and 0 is no, {outcome}, and the level to a probability of "
            "yes, such as 0.75."
        )
    return "Results of finer resolution, such as the mean of several, say more."


def _of_slip(run: Run, at: int, is_taken: bool) -> str:
    r"""The question about a value that all others contradict; empty if none does.

    Args:
        run: The run.
        at: The row of the pool.
        is_taken: Whether the sheet's values will be added to the results.
    """
    row, posterior = list(run.places)[at], run.state.belief.posterior
    ends = posterior.mean[at] + posterior.sigma[at] * torch.tensor([0.0, 1.0]).double()
    mean, beyond = run.scale.outward(ends).tolist()
    sigma = beyond - mean
    entries = (e for e in run.measured.having(MEASURED) if e.row == row)
    own = [(entry, entry.value) for entry in entries if entry.value is not None]
    until = " until its candidate is measured again" if len(own) == 1 else ""
    agree = {("above", True), ("below", False)}  # limits on whose side the mean lies
    own = [one for one in own if (one[0].lies, mean > one[1]) not in agree]
    if not own:
        return ""
    entry, value = max(own, key=lambda one: abs(one[1] - mean))
    return (
        f"{place_of(run, entry, is_taken)}: {run.called(row)} has the value "
        f"{written(value)}, where all others predict {written(mean, sigma)}. Was it "
        f"typed or measured wrongly? Then correct it there. It does not count{until}."
    )
