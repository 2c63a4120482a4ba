r"""Values that all lie on one side of the level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.data.observations import Observations
from botorch_lse.functional.cells import UNKNOWN
from botorch_lse.goals.base import Goal
from botorch_lse.surrogate.posterior import row_means

CLEAR = 1.0
"""The number of standard errors by which a row's mean must clear the level.
A value that noise alone carried over is no evidence of the other side."""


@dataclass(frozen=True)
class OneSided:
    r"""A record that all measured rows lie on one side of the level.

    Args:
        side: ``"above"`` or ``"below"``.
        n_other: How many rows have a mean on the other side, each within its noise.
        n_rows: How many rows were measured.
        of_classes: Whether sides are those of classes with names, of which all rows
            may have one.
    """

    side: str
    n_other: int
    n_rows: int
    of_classes: bool = False

    def __str__(self) -> str:
        if self.of_classes:
            return "No two classes were found so far"
        if self.n_other == 0:
            return f"Every value so far lies {self.side} the level"
        n, far = self.n_other, "below" if self.side == "above" else "above"
        return (
            f"{n} of {self.n_rows} measured rows lie{'s' * (n == 1)} {far} the level, "
            "none of them by more than the noise"
        )


def side_of_all(
    each: Sequence[Observations],
    noise_var: Sequence[Tensor],
    goal: Goal,
    before: Sequence[tuple[Tensor, Tensor]] = (),
) -> OneSided | None:
    r"""The side of the level on which all values lie, noise considered.

    Args:
        each: For each output all its measurements.
        noise_var: Their noise variances.
        goal: What is to be decided; one without a level has no sides.
        before: For each output the values that were measured before the run, at points
            that need not be rows, and their noise variances.

    Returns:
        The side; ``None`` where there are values on both.
    """
    rows, means, errors = torch.cat([own.indices for own in each]).unique(), [], []
    for own, noise in zip(each, noise_var, strict=True):
        # Of a row where this output was not measured its values say nothing.
        mean = torch.zeros(len(rows), dtype=torch.float64)
        error = torch.full_like(mean, torch.inf)
        at = torch.searchsorted(rows, own.indices.unique())
        mean[at], error[at] = row_means(own, noise)
        means.append(mean)
        errors.append(CLEAR * error)
    region = goal.region(means)
    if region is None:
        return None
    if before and region.is_alike_in_all_rows:
        rows = torch.cat((rows, torch.zeros_like(before[0][0], dtype=rows.dtype)))
        parts = list(zip(means, errors, before, strict=True))
        means = [torch.cat((mean, y)) for mean, _, (y, _) in parts]
        errors = [torch.cat((e, CLEAR * v.sqrt())) for _, e, (_, v) in parts]
        region = goal.region(means) or region
    here, pairs = region.at(rows), list(zip(means, errors, strict=True))
    side = here.sides_between([m - e for m, e in pairs], [m + e for m, e in pairs])
    if goal.facts.class_names:
        ends = [m - e for m, e in pairs], [m + e for m, e in pairs]
        found = here.class_between(*ends)
        n_found = len(found[found != UNKNOWN].unique())
        return OneSided("below", 0, len(side), True) if n_found < 2 else None
    as_read = here.sides_between(means, means)
    for name, other in (("below", ABOVE), ("above", BELOW)):
        if not bool((side == other).any()):
            return OneSided(name, int((as_read == other).sum()), len(side))
    return None
