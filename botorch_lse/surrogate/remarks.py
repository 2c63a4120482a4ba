r"""Remarks on told values that a model of them does not make.

A remark is a sentence for people: in ``state.remarks``, in the guarantee of every
answer, and as a ``DataWarning`` when it is first made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.surrogate.assumptions import Refuted

MOST_LEVELS = 5
"""The number of different values up to which values are hardly measurements."""
ROWS_PER_LEVEL = 2
"""The least number of measured rows for each different value."""
LEAST_ROWS = 8
"""The number of measured rows from which different values are counted."""
GROSS = 10.0
"""The robust deviations from the median beyond which a value may be a slip.
591 for 59.1 among values of 20 to 100 is 18; a normal sample has no such value."""
NORMAL = 1.4826
"""A normal distribution's standard deviation in median absolute deviations."""
DECADE = 10.0
"""The ratio of positive values from which on their logarithms are looked at.
Of such values the largest is always far from the median."""
MANY_DECADES = 2.0
"""The decades of positive values from which on logarithms are suggested."""
LEAST_VALUES = 6
"""The number of values from which on any of them is looked at."""
ALONE = 0.75
"""The share of its distance from the median within which a slip has no other value.
The largest values of a region, or of a long tail, have one."""
FAR = 1.0
"""The distance beyond the pool, in its widths, at which old values are asked about."""
NAMED = 3
"""The number of old values that a remark names; it counts the others."""
NUMBERED = ("levels", "slip", "noise", "growing noise", "stated noise")
"""The kinds of remarks in which numbers of values stand."""
CLEAR_SLIP = 5.0
"""The deviations from all others' prediction beyond which a value is asked about."""


class DataWarning(BotorchWarning):
    r"""The warning that told values are not what the model takes them for."""


@dataclass(frozen=True)
class Remark:
    r"""A remark or question about the values that were told.

    Args:
        kind: ``"levels"``: the values take few different numbers. ``"slip"``: a value
            is so far from what the others say that it is left out until its row was
            measured again. ``"decades"``: the values are positive over several decades,
            so that their logarithms would be easier to learn. ``"far"``: old values
            were measured far from the pool. ``"noise"``: hardly any row was measured
            twice, and the data do not tell how large the noise is. ``"growing noise"``:
            the noise grows with the value. ``"stated noise"``: values of one row differ
            by more than the noise that was stated.
            ``"model"``, ``"norm"``: a stated model, or bound of the norm, does not fit
            the values, so that nothing is decided.
        text: The remark in whole sentences.
        rows: The rows that it is about; empty where it is about all.
        output: The number of the output.
    """

    kind: str
    text: str
    rows: tuple[int, ...] = ()
    output: int = 0

    @property
    def subject(self) -> tuple[str, tuple[int, ...], int]:
        r"""The subject of the remark, which stays the same when it says more later."""
        rows = () if self.kind in ("stated noise", "model") else self.rows
        return self.kind, rows, self.output

    def __str__(self) -> str:
        return self.text


def on_few_levels(y: Tensor, rows: Tensor, output: int = 0) -> Remark | None:
    r"""A remark if values take few different numbers, such as yes and no.

    Args:
        y: ``n`` values of one output.
        rows: ``n`` rows of the pool, replicates included.
        output: The number of the output.
    """
    levels, n_rows = y.unique(), len(rows.unique())
    few = len(levels) <= MOST_LEVELS and ROWS_PER_LEVEL * len(levels) <= n_rows
    if not few or n_rows < LEAST_ROWS or len(levels) < 2:  # one: said elsewhere
        return None
    numbers = ", ".join(map(written, levels))
    remedy = (
        "Tell the mean of several measurements of each row with its variance, "
        "`Observations(rows, means, variances)`, or a number of finer resolution."
    )
    if levels.tolist() == [0.0, 1.0]:
        remedy = (
            "If they are answers of yes and no, give "
            "`model=GaussianProcess(outcome=Binary())` and a probability as the level."
        )
    return Remark(
        "levels",
        f"The values take {len(levels)} different numbers only ({numbers}), and the "
        "model takes them for continuous ones with Gaussian noise: its probabilities "
        f"and intervals are rough guides. {remedy}",
        output=output,
    )


def on_decades(y: Tensor, levels: Sequence[float], output: int = 0) -> Remark | None:
    r"""A remark if values and levels are positive over several decades.

    Args:
        y: ``n`` values of one output.
        levels: What they are compared with, units of ``y``.
        output: The number of the output.
    """
    if len(y) < LEAST_VALUES or not levels or not min(*levels, float(y.min())) > 0:
        return None
    decades = math.log10(float(y.max()) / float(y.min()))
    if decades < MANY_DECADES:
        return None
    return Remark(
        "decades",
        f"The values are positive and span {decades:.1f} decades: to a model with one "
        "scale and one noise their logarithms say more. Give the model "
        "`outcome=LogNormal()`: levels and answers stay in their units.",
        output=output,
    )


def of_logarithms(remark: Remark) -> Remark:
    r"""The remark about values of which the model has the logarithms.

    Args:
        remark: The remark; one without numbers of values stays as it is.
    """
    if remark.kind not in NUMBERED:
        return remark
    said = "These numbers are natural logarithms: 0.1 is about 10 %."
    return replace(remark, text=f"{remark.text} {said}")


def on_noise(
    between: tuple[float, float], is_repeated: bool, output: int = 0
) -> Remark:
    r"""The remark that the data do not show how large the noise is.

    Args:
        between: The noise variances that they allow.
        is_repeated: Whether any row was measured twice.
        output: The number of the output.
    """
    rows = "Hardly any row" if is_repeated else "No row"
    low, high = (variance**0.5 for variance in between)
    return Remark(
        "noise",
        f"{rows} was measured twice, so the noise is a guess: the values go with a "
        f"standard deviation of {low:.2g} if the function varies fast, and of "
        f"{high:.2g} if it does not. The intervals cover both, and are wide. Measure "
        "four rows again, or give `noise_std`.",
        output=output,
    )


def on_growing_noise(
    between: tuple[float, float], is_positive: bool, output: int = 0
) -> Remark:
    r"""The remark that the noise is larger where the values are larger.

    Args:
        between: Its standard deviations among small and among large values.
        is_positive: Whether values and levels have logarithms, not yet taken.
        output: The number of the output.
    """
    small, large = between
    logs = "Give the model `outcome=LogNormal()`, or tell"
    remedy = logs if is_positive else "Tell"
    return Remark(
        "growing noise",
        "The noise grows with the value: its standard deviation is about "
        f"{small:.2g} in the smaller half of the values and {large:.2g} in the larger "
        "one, where intervals are too narrow, as the model has the same noise "
        f"everywhere. {remedy} each value with its noise variance, "
        "`Observations(rows, y, yvar)`.",
        output=output,
    )


def on_stated_noise(refuted: Refuted, rows: Sequence[int], output: int = 0) -> Remark:
    r"""The remark that repeated measurements differ more than the stated noise allows.

    Args:
        refuted: What they refute.
        rows: The rows whose values do.
        output: The number of the output.
    """
    named = ", ".join(map(str, rows[:NAMED]))
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    sigma = refuted.largest**0.5
    where = "for all rows" if refuted.is_everywhere else "for these rows"
    return Remark(
        "stated noise",
        f"Values of row{'s' * (len(rows) > 1)} {named}{more} differ by more than the "
        "noise that was stated for them: were they typed or measured wrongly, or is "
        f"the noise larger? A standard deviation of up to {sigma:.2g}, which they "
        f"allow, is used {where}. State what noise there is, or leave `noise_std` and "
        "variances out to learn it.",
        tuple(rows),
        output,
    )


def on_model(n_off: int, n: int, rows: Sequence[int], output: int = 0) -> Remark:
    r"""The remark that a model does not fit the values that it knows.

    Args:
        n_off: How many values lie off their own predictions.
        n: How many there are.
        rows: The rows of those that do.
        output: The number of the output.
    """
    return Remark(
        "model",
        f"{n_off} of {n} measured values lie more than 5 noise deviations from what "
        "the model itself says there, so it is not believed and nothing is decided. "
        "Look at its lengthscale, its scale and the stated noise, or leave `model` and "
        "`noise_std` out to learn them.",
        tuple(rows),
        output,
    )


def on_norm(bound: float) -> Remark:
    r"""The remark that values need a function with a larger norm than was stated.

    Args:
        bound: The stated one.
    """
    return Remark(
        "norm",
        "The values need a function whose norm in the space of the kernel is larger "
        f"than `norm_bound` = {written(bound)}, so nothing is decided. Give a larger "
        "one, or a kernel with a larger scale.",
    )


def widths_beyond(X: Tensor, bounds: Tensor) -> Tensor:
    r"""The distance of points beyond the range of each input, in widths of it.

    Args:
        X: ``n x d`` points.
        bounds: ``2 x d``: the smallest and the largest value of each input.

    Returns:
        ``n x d``, 0 within the range.
    """
    low, high = bounds
    return (torch.maximum(low - X, X - high) / (high - low)).clamp_min(0.0)


def on_far_values(
    X: Tensor, bounds: Tensor, names: Sequence[str] | None = None
) -> Remark | None:
    r"""A remark if old values were measured far from the pool.

    Args:
        X: ``n x d`` points of history.
        bounds: ``2 x d``: the smallest and the largest value of each input of the pool.
        names: Those of the inputs.
    """
    beyond, widest = widths_beyond(X, bounds).max(dim=-1)
    far = (beyond > FAR).nonzero().view(-1)
    if len(far) == 0:
        return None
    found = []
    for place in far[:NAMED].tolist():
        column = int(widest[place])
        name = f"input {column}" if names is None else names[column]
        low, high = bounds[:, column].tolist()
        found.append(
            f"old value {place} has {name} = {written(X[place, column])} "
            f"(the pool: {written(low)} to {written(high)})"
        )
    more = f", and {len(far) - NAMED} more" if len(far) > NAMED else ""
    return Remark(
        "far",
        f"Far from the pool: {'; '.join(found)}{more}. In another unit, or mistyped? "
        "Values so far away tell next to nothing of the pool, and do not count for the "
        "initial design.",
    )


def gross(y: Tensor) -> Tensor:
    r"""The places of values that lie far from all others and may be slips.

    Measured by the median of the distances from the median, which one slip does not
    move, so that it cannot hide itself. A value that another one confirms, of the same
    row or not, is no slip; nor are those at the end of a long tail.

    Args:
        y: ``n`` values.
    """
    if len(y) < LEAST_VALUES:
        return torch.empty(0, dtype=torch.long)
    found = _far_off(y)
    rest = y[~found]
    if bool((y > 0).all()) and float(rest.max()) >= DECADE * float(rest.min()):
        found &= _far_off(y.log())
    return found.nonzero().view(-1)


def are_skewed(y: Tensor) -> bool:
    r"""Whether values are positive, and most of them spread over a decade or more."""
    if len(y) == 0 or not bool((y > 0).all()):
        return False
    low, high = torch.quantile(y, torch.tensor((0.1, 0.9), dtype=y.dtype)).tolist()
    return high >= DECADE * low


def _far_off(y: Tensor) -> Tensor:
    r"""Whether values are far from the median and from all others (``n`` bools)."""
    distance = (y - y.median()).abs()
    spread = NORMAL * distance.median()
    # Where most values are the same there is no spread to measure others by.
    found = (distance > GROSS * spread) & (spread > 0)
    far = found.nonzero().view(-1)
    apart = (y[far].unsqueeze(-1) - y).abs().scatter_(1, far.unsqueeze(-1), torch.inf)
    found[far] = apart.amin(dim=-1) > ALONE * distance[far]
    return found


@dataclass(frozen=True)
class Slip:
    r"""A value that is left out because it may be mistyped or mismeasured.

    Args:
        place: Its place in the history.
        row: Its row.
        value: Itself.
        mean: What all other values predict there.
        sigma: The standard deviation of this prediction, noise included.
        output: The number of the output.
    """

    place: int
    row: int
    value: float
    mean: float
    sigma: float
    output: int = 0

    @property
    def is_clear(self) -> bool:
        r"""Whether the other values clearly do not explain this one."""
        return abs(self.value - self.mean) > CLEAR_SLIP * self.sigma

    def remark(self, is_repeated: bool) -> Remark:
        r"""The question about this value.

        Args:
            is_repeated: Whether the row was measured again, with another result.
        """
        until = "" if is_repeated else " until the row is measured again"
        return Remark(
            "slip",
            f"Row {self.row} has the value {written(self.value)}, where all others "
            f"predict {written(self.mean, self.sigma)} with a standard deviation of "
            f"{self.sigma:.2g}: was it typed or measured wrongly? It is left out"
            f"{until}. If it is right, tell it once more; if not, replay the run with "
            "the right one.",
            (self.row,),
            self.output,
        )
