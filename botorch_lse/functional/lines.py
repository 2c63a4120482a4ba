r"""Straight lines above what observations take off a loss.

What is taken off at a target is a growing function ``R(g)`` of the reduction ``g`` of
its variance. Any line above it, ``R(g) <= A + B g``, bounds a sum over millions of
pairs of candidates and targets by a product of a matrix and a vector, so that only the
candidates whose bound is large need the exact sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

SHARES = (1e-3, 0.02)
"""Reductions, as shares of a target's variance, from which lines start where nothing
better is known; each gives a bound, of which the smallest counts."""
FINE = 1.03
"""Ratio of neighbouring reductions at which removals are computed. Between them a
removal counts as the larger one, so that bounds hold and are at most so much larger."""
COARSE, MANY = 1.3, 2**18
"""The same for so many targets or more, where removals would take longer than all
else."""

Lines = tuple[Tensor, Tensor]
"""``A``, ``L x T`` values in units of the loss, and ``B``, as many slopes, at least 0:
``L`` lines above the removal at each of ``T`` targets."""


def shares_to(
    largest: float, firsts: Sequence[float], ratio: float = FINE
) -> list[float]:
    r"""Growing shares of a variance, from the first of some to the largest.

    Args:
        largest: The largest share of a variance that an observation takes off.
        firsts: Growing shares that the grid meets, if they are below the largest.
        ratio: Of neighbouring shares, at most.
    """
    shares = [min(firsts[0], largest)]
    while shares[-1] < largest:
        stops = [share for share in (*firsts, largest) if share > shares[-1]]
        shares.append(min(ratio * shares[-1], *stops))
    return [*shares, largest]  # so that there are two


def lines_above(
    removed: Callable[[Tensor], Tensor],
    variance: Tensor,
    largest: float,
    firsts: Sequence[float] = SHARES,
) -> Lines:
    r"""Lines above any removals, which are computed on a grid of reductions.

    ``A`` is the removal of the reduction from which the line starts.

    Args:
        removed: From ``n x T`` reductions of the variances to what they take off.
        variance: ``T``, units of ``y`` squared.
        largest: The largest share of a variance that an observation takes off.
        firsts: Growing shares from which lines start.
    """
    shares = shares_to(largest, firsts, FINE if len(variance) < MANY else COARSE)
    places = [shares.index(min(share, largest)) for share in firsts]
    grid = torch.tensor(shares, dtype=torch.float64, device=variance.device)
    grid = grid.unsqueeze(-1)
    found = removed(grid * variance)
    start = found[places].clamp_min(0.0)
    # A removal grows: up to the next reduction it is at most what it is there.
    slope = torch.stack(
        [
            ((found[place + 1 :] - own) / grid[place:-1]).amax(dim=0)
            for place, own in zip(places, start, strict=True)
        ]
    )
    return start, per_variance(slope.clamp_min(0.0), variance)


def per_variance(slope: Tensor, variance: Tensor) -> Tensor:
    r"""Slopes by reductions, from those by shares of the variance; 0 where it is 0."""
    known = variance <= 0
    return (slope / variance.masked_fill(known, 1.0)).masked_fill(known, 0.0)
