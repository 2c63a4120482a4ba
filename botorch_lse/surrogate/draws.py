r"""Joint posterior draws of undecided rows, for the share above a level.

The sides of neighbours are correlated, so that the spread of a share is not the sum of
the spreads of its rows: they are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import scipy  # which loads its packages when they are first used
import torch
from torch import Tensor

from botorch_lse.functional.cells import Cells
from botorch_lse.functional.scores import TINY
from botorch_lse.models.gaussian_process import PoolPosterior, row_blocks

SAMPLES = 2_000
"""The number of joint draws of rows in doubt: a quantile of 2.5 % rests on 50."""
MOST_EXACT = 2_000
"""The number of rows in doubt up to which draws are exact: more would take seconds."""
MOST_DRAWN = 20_000
"""The number of rows in doubt up to which all are drawn for a content.
Of more rows, a sample of about this size stands for all."""
SURE = 6.0
"""The standard deviations from the level beyond which rows count as known.
This is wrong with a probability of 1e-9 for each row."""
RARE = 1e-6
"""The probability that draws would have let in a row that is left out beforehand."""
FACTOR_JITTER = 1e-10
"""The share of the largest variance that is added to factorise a covariance.
It is enlarged tenfold until it is enough."""
RANK = 256
"""The largest number of columns of a ``LowRank`` factor.
There are fewer where they do not fit a quarter of the memory budget."""
PIVOTS = 32
"""The number of columns of a ``LowRank`` factor that are computed together."""
ENLARGED = 1e-9
"""The share of a variance that is added to what a low-rank factor leaves of it."""


@dataclass(frozen=True, eq=False)
class LowRank:
    r"""A low-rank part of the posterior covariance of some rows, and the remainder.

    Args:
        factor: ``r x m``, units of ``y``.
        left: ``r`` variances left, units of ``y`` squared.
    """

    factor: Tensor
    left: Tensor

    @classmethod
    def of(cls, posterior: PoolPosterior, rows: Tensor) -> LowRank:
        r"""The low-rank part with random pivots, always the same for a posterior.

        Args:
            posterior: On the pool.
            rows: ``r`` rows.

        Source:
            Chen, Epperly, Tropp and Webber (2024), randomly pivoted Cholesky, in
            blocks.
        """
        variance = posterior.variance[rows]
        N, generator = len(variance), torch.Generator().manual_seed(0)
        most = min(RANK, N, posterior.memory_budget // (4 * 8 * N))
        factor, left, m = variance.new_zeros(N, most), variance.clone(), 0
        jitter = FACTOR_JITTER * variance.max()
        while m < most and bool((left > jitter).sum() >= min(PIVOTS, most - m)):
            size = min(PIVOTS, most - m)
            drawn = torch.where(left > jitter, left, 0.0)
            pivots = torch.multinomial(
                drawn.to(generator.device), size, generator=generator
            ).to(drawn.device)
            columns = _columns(posterior, pivots, rows)  # size x N
            columns -= factor[pivots, :m] @ factor[:, :m].mT
            block = columns[:, pivots] + jitter * torch.eye(size, dtype=left.dtype)
            L, info = torch.linalg.cholesky_ex(block)
            if bool(info):  # what is left is rounding
                break
            new = torch.linalg.solve_triangular(L, columns, upper=False)
            factor[:, m : m + size] = new.mT
            left, m = (left - new.square().sum(dim=0)).clamp_min(0.0), m + size
        return cls(factor[:, :m], left + ENLARGED * variance)


def _columns(posterior: PoolPosterior, pivots: Tensor, rows: Tensor) -> Tensor:
    r"""The covariances of pivots, given by their places in ``rows``, with all rows."""
    columns = rows[pivots]
    path = posterior.path_at(columns).mT.contiguous()
    blocks = row_blocks(
        len(rows), len(posterior.indices) + len(pivots), posterior.memory_budget
    )
    found = [posterior.covariance_between(rows[b], columns, path) for b in blocks]
    return torch.cat(found).mT.contiguous()


def joint_draws(
    posterior: PoolPosterior, rows: Tensor, n: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    r"""Joint draws of the function at some rows, block by block of rows.

    Draws of up to ``MOST_EXACT`` rows are exact. For more rows the covariance is that
    of the first 256 columns of a Cholesky factor with pivots; the remainder of each
    row's variance, a small part where the function is smooth, is drawn independently.

    Args:
        posterior: On the pool.
        rows: The rows, at least one.
        n: The number of draws.
        seed: The seed of the draws.

    Yields:
        Places in ``rows``, and for each ``n`` values, units of ``y``.
    """
    generator = torch.Generator().manual_seed(seed)
    if len(rows) <= MOST_EXACT:
        factor = _root(posterior.covariance_between(rows, rows))
        left = torch.zeros(len(rows), dtype=factor.dtype)
    else:
        part = LowRank.of(posterior, rows)
        factor, left = part.factor, part.left

    def drawn(n_rows: int) -> Tensor:
        # On the CPU, so that they are the same on every device.
        shape, where = (n_rows, n), generator.device
        found = torch.randn(
            shape, generator=generator, dtype=torch.float64, device=where
        )
        return found.to(factor)

    common = drawn(factor.shape[-1])
    for block in row_blocks(len(rows), 2 * n, posterior.memory_budget):
        values = factor[block] @ common
        own = left[block].sqrt().unsqueeze(-1)
        if bool((own > 0).any()):
            values = values.addcmul_(own, drawn(len(own)))
        mean = posterior.mean[rows[block]].unsqueeze(-1)
        yield torch.arange(len(rows))[block], values.add_(mean)


def _root(covariance: Tensor) -> Tensor:
    largest = float(covariance.diagonal().max())
    one = torch.eye(len(covariance), dtype=covariance.dtype)
    jitter = FACTOR_JITTER * largest
    while True:
        L, info = torch.linalg.cholesky_ex(covariance + jitter * one)
        if int(info) == 0:
            return L
        jitter *= 10


def content_draws(
    posteriors: Sequence[PoolPosterior],
    cells: Cells,
    side: Tensor,
    mass: Tensor,
    items: Tensor,
    n: int = SAMPLES,
    seed: int = 0,
) -> Tensor:
    r"""Posterior draws of the content (``n``), in which decided items keep their sides.

    The items of the last class are counted.

    Where more than ``MOST_DRAWN`` rows are in doubt, a sample of about that many stands
    for them (see ``systematic_sample``), so that time and memory hardly grow with the
    pool. Every draw keeps its expectation. What the sample adds to the standard
    deviation of a draw is about ``M / (2 sqrt(MOST_DRAWN))``, 0.4 % of the mass ``M``
    in doubt, if rows of like probability change sides independently, and less where
    most rows are nearly sure or hang together. It counts in quadrature: where the
    posterior's own spread is several per cent of ``M``, as when neighbours change
    sides together, it is not seen; where all rows are independent, the interval gets
    wider than it has to be.

    Args:
        posteriors: On the pool, of each output, which are independent.
        cells: The class in each cell, at the items or the same for all.
        side: ``T`` codes: 1 in the last class, -1 in another one, 0 undecided.
        mass: ``T`` masses.
        items: ``T`` rows of the posteriors that are the items.
        n: How many.
        seed: The seed of the draws.
    """
    open_ = (side == 0).nonzero().view(-1)
    means = [posterior.mean[items[open_]] for posterior in posteriors]
    counts = cells.at(open_).in_last(means)
    known = float(mass[side == 1].sum() + mass[open_[counts]].sum())
    total = torch.full((n,), known, dtype=torch.float64)
    is_open = _in_doubt(posteriors, cells.at(open_), items[open_])
    doubtful, counts = open_[is_open], counts[is_open]
    if len(doubtful) == 0:
        return total
    total -= float(mass[doubtful[counts]].sum())
    each = mass[doubtful]
    if len(doubtful) > MOST_DRAWN:
        z = _deviations(posteriors, cells.at(doubtful), items[doubtful])
        order = z.argsort(stable=True)  # neighbours are alike
        # Another seed than that of the draws, so that the two are independent.
        kept, each = systematic_sample(each[order], MOST_DRAWN, seed + 1)
        doubtful = doubtful[order[kept]]
    for at, found in _drawn_members(posteriors, cells, items, doubtful, n, seed):
        total += each[at] @ found.to(each)
    return total


def _drawn_members(
    posteriors: Sequence[PoolPosterior],
    cells: Cells,
    items: Tensor,
    some: Tensor,
    n: int,
    seed: int,
) -> Iterator[tuple[Tensor, Tensor]]:
    r"""Whether items are of the last class in joint draws, block by block of items.

    Args:
        posteriors: On the pool, of each output, which are independent.
        cells: The class in each cell, at the items or the same for all.
        items: ``T`` rows of the posteriors that are the items.
        some: Numbers of the items that are drawn.
        n: The number of draws.
        seed: Of the draws; of each output but the first another one.

    Yields:
        Places in ``some``, and for each ``n`` bools.
    """
    used = [j for j, levels in enumerate(cells.levels) if levels.shape[1]]
    drawn = [
        joint_draws(posteriors[j], items[some], n, seed + 2 * i)
        for i, j in enumerate(used)
    ]
    for blocks in zip(*drawn, strict=True):
        at = blocks[0][0]
        values = [blocks[0][1]] * len(posteriors)  # also where there is no level
        for j, (_, own) in zip(used, blocks, strict=True):
            values[j] = own
        yield at, cells.at(some[at]).in_last(values)


def _in_doubt(
    posteriors: Sequence[PoolPosterior], cells: Cells, rows: Tensor
) -> Tensor:
    r"""Whether rows are near a level, by the posterior of its output (``r`` bools)."""
    found = torch.zeros(len(rows), dtype=torch.bool)
    for levels, posterior in zip(cells.levels, posteriors, strict=True):
        mean, reach = posterior.mean[rows], SURE * posterior.sigma[rows]
        for level in levels.mT:
            found |= (mean - level).abs() < reach
    return found


def _deviations(
    posteriors: Sequence[PoolPosterior], cells: Cells, rows: Tensor
) -> Tensor:
    r"""The standard deviations by which rows are likely of the last class (``r``).

    Args:
        posteriors: On the pool, of each output.
        cells: The class in each cell, at these rows or the same for all.
        rows: Rows of the posteriors.
    """
    means = [posterior.mean[rows] for posterior in posteriors]
    sigmas = [posterior.sigma[rows] for posterior in posteriors]
    if len(means) == 1 and cells.levels[0].shape[1] == 1:
        z = (means[0] - cells.levels[0][:, 0]) / sigmas[0].clamp_min(TINY)
        return torch.where(cells.classes[:, 1] > cells.classes[:, 0], z, -z)
    return torch.special.ndtri(cells.probabilities(means, sigmas)[:, -1])


def systematic_sample(mass: Tensor, n: int, seed: int) -> tuple[Tensor, Tensor]:
    r"""A sample of at most ``n`` rows that stand for all, with their masses.

    The masses are laid end to end, and a comb of ``n`` teeth at equal distances is put
    down at a random place. A row counts as often as teeth meet it, each time for the
    distance of the teeth: its mass in expectation, so that sums over the sample are
    unbiased whatever is summed. Rows that are next to each other stand for each other,
    so that sums of what changes little from row to row have hardly an error. The
    masses of the sample always add up to those of all rows.

    Args:
        mass: Masses of the rows, none negative, in an order in which neighbours are
            alike.
        n: Teeth of the comb.
        seed: Of its place.

    Returns:
        Places of the sample in ``mass``, ascending, and a mass for each.

    Source:
        Madow (1949), Ann. Math. Stat. 20, systematic sampling with unequal sizes.
    """
    ends = mass.double().cumsum(dim=0)
    step = float(ends[-1]) / n
    generator = torch.Generator().manual_seed(seed)
    start = float(
        torch.rand(
            (), generator=generator, dtype=torch.float64, device=generator.device
        )
    )
    teeth = (torch.arange(n, dtype=torch.float64) + start) * step
    met = torch.searchsorted(ends, teeth, right=True).clamp_max(len(mass) - 1)
    kept, times = met.unique(return_counts=True)
    return kept, step * times.to(mass)


def conservative_rows(
    posteriors: Sequence[PoolPosterior],
    cells: Cells,
    items: Tensor,
    alpha: float,
    n: int = SAMPLES,
    seed: int = 0,
) -> Tensor:
    r"""The largest nested set that is of the last class as a whole (``T`` bools).

    Rows enter in the order of their probability of being above, as long as at least a
    share ``alpha`` of the joint draws has all of them above. All rows matter here, and
    none can stand for others. But drawing ends with the block of rows in which too few
    draws are left, and rows whose own probability is clearly below ``alpha`` are never
    drawn (with a chance of at most ``RARE`` that draws would have let one in). The time
    grows with the rows between there and ``SURE``: on one core about 1 s for 16,000 of
    a pool of 10^5, and 12 s for 140,000 of a pool of 10^6.

    Args:
        posteriors: On the pool, of each output, which are independent.
        cells: The class in each cell, at the items or the same for all.
        items: ``T`` rows of the posteriors that are the items.
        alpha: The probability, in (0, 1).
        n: The number of draws.
        seed: The seed of the draws.

    Source:
        Bolin and Lindgren (2015), excursion sets with the one-parameter family of
        marginal probabilities; Azzimonti et al. (2021), conservative estimates.
    """
    z = _deviations(posteriors, cells, items)
    order = z.argsort(descending=True, stable=True)
    sure = int((z >= SURE).sum())
    # A set is not likelier than its least likely row, and with this probability or a
    # smaller one that row is above in ``needed`` draws with a chance of RARE at most.
    needed = math.ceil(alpha * n)
    least = float(scipy.stats.beta.ppf(RARE, needed, n - needed + 1))
    can_enter = (z < SURE) & (z > -SURE) & (torch.special.ndtr(z) >= least)
    doubtful = order[can_enter[order]]
    found = torch.zeros(len(items), dtype=torch.bool)
    found[order[:sure]] = True
    if len(doubtful) == 0:
        return found
    # For each draw how many rows come before the first that is below.
    alive, length = torch.ones(n, dtype=torch.bool), torch.zeros(n, dtype=torch.long)
    for at, found_in in _drawn_members(posteriors, cells, items, doubtful, n, seed):
        above = found_in.to(torch.int8).cumprod(dim=0).sum(dim=0)
        length += torch.where(alive, above, 0)
        alive &= above == len(at)
        if int(alive.sum()) < needed:  # longer sets are not likely enough
            break
    # So many rows are above together in at least a share alpha of the draws.
    most = int(length.sort(descending=True).values[needed - 1])
    found[doubtful[:most]] = True
    return found
