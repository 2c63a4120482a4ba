r"""Classes of points that comparisons of several numbers with levels decide.

The levels of an output cut its line into intervals, ``(-inf, t_1], (t_1, t_2], ...,
(t_L, inf)``; a *cell* is a product of one such interval for each output. A region (and
any other question that comparisons answer) is the same all over a cell, so that it is a
table: a class for each cell. What intervals of the outputs say of the class is then
exact: they allow some cells, and the class is known when all of these have the same.

A band needs both ends of one interval; whatever is in ``A`` or not in ``A`` is known
before any measurement. Deciding comparison by comparison would miss both.

With independent outputs the probability of a cell is a product. The probability of a
class is a sum of these, linear in the probabilities ``P(f_j > t_i)`` of each output by
itself, which makes its variance after a measurement a sum of products as well
(``slopes``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_lse._device import at_home

DRAWS, MORE_DRAWS = 512, 2048
"""The numbers of points for probabilities of two, and of more, correlated outputs."""
NEARLY = 1e-9
"""The share by which correlations shrink so that they have a Cholesky factor."""
AT_ONCE = 256
"""The number of rows that are drawn for at once."""
MANY = 32
"""The number of cells from which on a row's are looked at together, class by class."""
UNKNOWN = -1
"""The class of a point whose class is not known."""


@dataclass(frozen=True, eq=False)
class Cells:
    r"""The class of each cell, the same for all points or one table per point.

    Args:
        levels: For each of ``m`` outputs ``R x L_j`` ascending levels, units of the
            output; ``R`` is 1 or the number of points, ``L_j`` may be 0.
        classes: ``R x (L_1 + 1) x ... x (L_m + 1)`` classes. Where two levels are
            equal, nothing lies between them, and the empty cell has the class of the
            one below it.
        n_classes: ``K``; classes are 0, 1, ..., ``K - 1``.
    """

    levels: tuple[Tensor, ...]
    classes: Tensor
    n_classes: int

    @classmethod
    def of(
        cls,
        levels: Sequence[Tensor],
        class_of: Callable[[list[list[Tensor]]], Tensor],
        n_classes: int,
    ) -> Cells:
        r"""The cells of levels in any order.

        Args:
            levels: For each output ``R x L_j``, or ``1 x L_j`` for all points.
            class_of: From bools for each output and level, whether the output lies
                above the level, to classes. It is asked about all cells at once.
            n_classes: ``K``.
        """
        rows = max(part.shape[0] for part in levels)
        m, signs, ascending = len(levels), [], []
        for j, part in enumerate(levels):
            expanded = part.expand(rows, -1)
            order = expanded.argsort(dim=-1, stable=True)
            ascending.append(expanded.gather(-1, order))
            rank = order.argsort(dim=-1)
            above = rank.unsqueeze(-1) < torch.arange(part.shape[1] + 1)
            shape = [rows] + [1] * m
            shape[j + 1] = part.shape[1] + 1
            signs.append([above[:, i].view(shape) for i in range(part.shape[1])])
        sizes = (rows, *(part.shape[1] + 1 for part in levels))
        classes = class_of(signs).long().expand(sizes).clone()
        for j, part in enumerate(ascending):
            for c in range(1, part.shape[1]):
                is_empty = part[:, c] == part[:, c - 1]
                below = classes.select(j + 1, c - 1)[is_empty]
                classes.select(j + 1, c)[is_empty] = below
        return cls(tuple(ascending), classes, n_classes)

    def at(self, points: Tensor) -> Cells:
        r"""The cells of some points, given by number or mask."""
        if len(self.classes) == 1:
            return self
        levels = tuple(part[points] for part in self.levels)
        return replace(self, levels=levels, classes=self.classes[points])

    def _along(self, values: Tensor, output: int, ahead: int = 1) -> Tensor:
        r"""The values of an output's cells, shaped like ``classes``.

        Args:
            values: For each cell of the output.
            output: ``j``.
            ahead: Dimensions before those of the cells.
        """
        shape = [len(values)] + [1] * (ahead - 1 + len(self.levels))
        shape[ahead + output] = values.shape[1]
        return values.view(shape)

    def in_last(self, values: Sequence[Tensor]) -> Tensor:
        r"""Whether points are of the last class (``N x ...`` bools).

        Args:
            values: For each output ``N x ...`` values; of one without levels anything.
        """
        ones = [1] * (values[0].ndim - 1)
        table = self.classes == self.n_classes - 1
        each = [
            (own, level.view(-1, *ones))
            for part, own in zip(self.levels, values, strict=True)
            for level in part.mT
        ]
        if len(each) == 1:  # as a rule; of many draws numbers of cells take memory
            (own, level), (under, over) = each[0], table.flatten(1).mT
            return torch.where(own > level, over.view(-1, *ones), under.view(-1, *ones))
        place = [torch.arange(len(table)).view(-1, *ones)]
        for part, own in zip(self.levels, values, strict=True):
            cell = torch.zeros_like(own, dtype=torch.long)
            for level in part.mT:
                cell += own > level.view(-1, *ones)
            place.append(cell)
        return table[tuple(place)]

    # --- what intervals say -----------------------------------------------------------

    def allowed(self, above: Sequence[Tensor], below: Sequence[Tensor]) -> Tensor:
        r"""The cells in which a point may be (``N x (L_1 + 1) x ...`` bools).

        Args:
            above: For each output ``N x L_j`` bools: surely above the level.
            below: For each output ``N x L_j`` bools: surely not above it.
        """
        found = torch.ones(1, 1, dtype=torch.bool)
        # The table grows with each output: with eight, passes over all of it, one for
        # each, would take most of the time. From the last, so that rows stay long.
        for over, under in reversed(list(zip(above, below, strict=True))):
            cell = torch.arange(over.shape[1] + 1)
            first = over.sum(dim=-1, keepdim=True)
            last = (~under).sum(dim=-1, keepdim=True)
            own = (cell >= first) & (cell <= last)
            found = (own.unsqueeze(-1) & found.unsqueeze(1)).flatten(1)
        return found.view(len(found), *self.classes.shape[1:])

    def agreed(self, allowed: Tensor) -> Tensor:
        r"""The class of each point, ``UNKNOWN`` where allowed cells disagree."""
        classes, allowed = self.classes.flatten(1), allowed.flatten(1)
        if classes.shape[1] >= MANY:
            each = range(self.n_classes)
            may_be = torch.stack([(allowed & (classes == k)).amax(1) for k in each])
            one = may_be.long().argmax(dim=0)
            return torch.where(may_be.sum(dim=0) == 1, one, UNKNOWN)
        n = max(len(classes), len(allowed))
        lowest, highest = torch.full((n,), self.n_classes), torch.full((n,), UNKNOWN)
        # Cell by cell: reducing few columns of many rows takes ten times longer.
        for own, may_be in zip(classes.mT, allowed.mT, strict=True):
            lowest = lowest.minimum(torch.where(may_be, own, self.n_classes))
            highest = highest.maximum(torch.where(may_be, own, UNKNOWN))
        return torch.where(lowest == highest, lowest, UNKNOWN)

    def beside(self, classes: Tensor, output: int) -> tuple[Tensor, Tensor]:
        r"""Whether a class has cells above, and below, each level of an output.

        Args:
            classes: ``N`` numbers of classes.
            output: ``j``.

        Returns:
            ``N x L_j`` bools for cells above the levels, and for those below.
        """
        shape = -1, *[1] * len(self.levels)
        own = (self.classes == classes.view(shape)).movedim(output + 1, 1)
        cells = own.flatten(2).any(-1) if own.ndim > 2 else own
        up = cells.flip(-1).long().cummax(dim=-1).values.flip(-1).bool()
        down = cells.long().cummax(dim=-1).values.bool()
        return up[:, 1:], down[:, :-1]

    def matters(self, allowed: Tensor) -> tuple[Tensor, ...]:
        r"""Whether the class depends on each level of each output (``N x L_j`` bools).

        It does if there are cells on both sides of it, allowed and alike in all else,
        which have other classes.
        """
        found, classes = [], self.classes.expand(allowed.shape)
        for j, part in enumerate(self.levels):
            here = []
            for i in range(part.shape[1]):
                under, over = (classes.select(j + 1, c) for c in (i, i + 1))
                may = allowed.select(j + 1, i) & allowed.select(j + 1, i + 1)
                here.append((may & (under != over)).reshape(len(may), -1).amax(dim=1))
            none = torch.zeros(len(allowed), 0, dtype=torch.bool)
            found.append(torch.stack(here, dim=-1) if here else none)
        return tuple(found)

    # --- what normal distributions say ------------------------------------------------

    @cached_property
    def _indicators(self) -> Tensor:
        r"""The table that is 1 in each class's cells (``R x K x (L_1 + 1) x ...``)."""
        of_class = torch.arange(self.n_classes).view(-1, *[1] * len(self.levels))
        return (self.classes.unsqueeze(1) == of_class).double()

    def shares(self, mean: Sequence[Tensor], sigma: Sequence[Tensor]) -> list[Tensor]:
        r"""The probabilities of each output's intervals (``N x (L_j + 1)``).

        Args:
            mean: For each output ``N`` means.
            sigma: For each output ``N`` standard deviations.
        """
        each = zip(self.levels, mean, sigma, strict=True)
        return [_shares_of(part, m, s) for part, m, s in each]

    def probabilities(
        self,
        mean: Sequence[Tensor],
        sigma: Sequence[Tensor],
        correlation: Tensor | None = None,
    ) -> Tensor:
        r"""The probabilities of the classes (``N x K``).

        Exact where outputs are independent. Where they are correlated, all outputs but
        one are drawn, quasi-random and the same for each row, and the last one is
        integrated exactly. With two outputs the error is at most 0.002 for each level
        of the first; with three to five it was at most 0.006 in 320 random cases each.

        Args:
            mean: For each output ``N`` means.
            sigma: For each output ``N`` standard deviations.
            correlation: ``N x m x m`` correlations of the outputs; ``None``: they are
                independent.
        """
        used = [j for j, part in enumerate(self.levels) if part.shape[1]]
        if correlation is not None and len(used) > 1:
            return self._by_draws(mean, sigma, correlation, used)
        found = self._indicators
        for part, m, s in reversed(list(zip(self.levels, mean, sigma, strict=True))):
            found = _contracted(found, _shares_of(part, m, s))
        return found

    def _by_draws(
        self,
        mean: Sequence[Tensor],
        sigma: Sequence[Tensor],
        correlation: Tensor,
        used: Sequence[int],
    ) -> Tensor:
        r"""The ``probabilities`` of correlated outputs.

        Args:
            mean: For each output ``N`` means.
            sigma: For each output ``N`` standard deviations.
            correlation: ``N x m x m`` correlations of the outputs.
            used: The outputs that have levels, at least two.
        """
        *first, last = used
        draws = DRAWS if len(first) == 1 else MORE_DRAWS
        z = torch.special.ndtri(_points_between(draws, len(first)))
        parts = []
        for rows in torch.arange(len(mean[0])).split(AT_ONCE):
            own = correlation[rows][:, used][:, :, used]
            # Differences of rounding size, so that the factor exists.
            eye = torch.eye(len(used)).to(own)
            L = torch.linalg.cholesky((1 - NEARLY) * own + NEARLY * eye)
            drawn = z @ L[:, :, : len(first)].mT  # r x draws x used outputs
            here = self.at(rows)
            rows_of = torch.arange(len(rows)).repeat_interleave(draws)
            flat = here if len(here.classes) == 1 else here.at(rows_of)
            found = flat._indicators
            for place, j in reversed(list(enumerate(used))):
                m, s = mean[j][rows].unsqueeze(-1), sigma[j][rows].unsqueeze(-1)
                value = (m + s * drawn[:, :, place]).flatten()
                part = flat.levels[j]
                if j == last:
                    left = (s * L[:, place, place, None]).expand(-1, draws).flatten()
                    share = _shares_of(part, value, left)
                else:
                    cell = (value.unsqueeze(-1) > part).sum(dim=-1)
                    share = torch.nn.functional.one_hot(cell, part.shape[1] + 1)
                moved = found.movedim(2 + j, -1)
                found = _contracted(moved, share.double()).unsqueeze(2 + j)
            found = found.reshape(len(rows), draws, self.n_classes)
            parts.append(found.mean(dim=1))
        return torch.cat(parts)

    def slopes(
        self, mean: Sequence[Tensor], sigma: Sequence[Tensor]
    ) -> dict[tuple[int, ...], Tensor]:
        r"""The derivatives of class probabilities by those of comparisons.

        They are linear in the probabilities ``P_ji = P(f_j > t_i)`` of each output, so
        that derivatives of all orders, at most one in each output, say everything.

        Args:
            mean: For each output ``N`` means.
            sigma: For each output ``N`` standard deviations.

        Returns:
            For each set ``S`` of outputs that have levels, but the empty one, the
            derivatives ``N x K x L_j x ...`` of the ``K`` probabilities by one ``P_ji``
            of each output in ``S``.
        """
        shares, found = self.shares(mean, sigma), {}
        outputs = [j for j, part in enumerate(self.levels) if part.shape[1]]
        for size in range(1, len(outputs) + 1):
            for some in itertools.combinations(outputs, size):
                table = self._indicators
                for j in reversed(range(len(shares))):
                    dim = j + 2
                    if j in some:
                        table = table.diff(dim=dim)
                    else:
                        moved = table.movedim(dim, -1)
                        table = _contracted(moved, shares[j])
                found[some] = table
        return found

    def factors(self) -> list[Tensor] | None:
        r"""The shares of each output in a class that is a product (``R x (L_j + 1)``).

        1 in the cells of a set of each output, where one of two classes has all cells
        of the product of the sets; ``None`` where neither is one, or there is no level.
        """
        if self.n_classes != 2 or self.classes[0].numel() == 1:
            return None
        for table in (self.classes == 1, self.classes == 0):
            sides, product = [], torch.ones_like(table)
            for j in range(len(self.levels)):
                ahead = table.movedim(j + 1, 1)
                side = ahead.reshape(*ahead.shape[:2], -1).any(dim=-1)
                sides.append(side.double())
                product = product & self._along(side, j)
            if torch.equal(product, table):
                return sides
        return None

    # --- how far it is to another class -----------------------------------------------

    def margins(
        self, lower: Sequence[Tensor], upper: Sequence[Tensor], scale: Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        r"""Bounds of the distance of points from a change of their class.

        The distance of a point from a cell is the largest of those of its outputs, each
        in units of its scale. The margin is the distance from the cells of other
        classes than the last, minus that from the cells of the last class.

        Args:
            lower: For each output ``N`` lower ends of intervals; equal ends are points.
            upper: For each output ``N`` upper ends.
            scale: For each output its unit.

        Returns:
            ``N`` lower and ``N`` upper bounds over all points within the intervals.
        """
        near = far = torch.zeros(1, 1, dtype=torch.float64)
        for j, part in reversed(list(enumerate(self.levels))):
            endless = torch.full_like(part[:, :1], torch.inf)
            if part.shape[1] == 0:
                continue
            start = torch.cat((-endless, part), dim=1)
            end = torch.cat((part, endless), dim=1)
            low, high = (x[j].unsqueeze(-1) for x in (lower, upper))
            gap = torch.maximum(start - high, low - end).clamp_min(0.0) / scale[j]
            # An interval reaches out of a cell at its ends, not where it has none.
            out_below = torch.where(start == -torch.inf, start, start - low)
            out_above = torch.where(end == torch.inf, -end, high - end)
            whole = torch.maximum(out_below, out_above).clamp_min(0.0) / scale[j]
            # The table grows with each output, see `allowed`.
            near = torch.maximum(gap.unsqueeze(-1), near.unsqueeze(1)).flatten(1)
            far = torch.maximum(whole.unsqueeze(-1), far.unsqueeze(1)).flatten(1)
        is_last = (self.classes == self.n_classes - 1).flatten(1).expand(near.shape)
        ends = []
        for own, other in ((is_last, ~is_last), (~is_last, is_last)):
            away = near.masked_fill(~other, torch.inf).amin(dim=1)
            least = far.masked_fill(~own, torch.inf).amin(dim=1)
            ends.append(torch.where(away > 0, away, -least))
        return ends[0], -ends[1]


def _shares_of(levels: Tensor, mean: Tensor, sigma: Tensor) -> Tensor:
    r"""The probabilities of intervals between an output's levels (``N x (L + 1)``).

    Args:
        levels: ``R x L``.
        mean: ``N``.
        sigma: ``N``.
    """
    least = torch.finfo(sigma.dtype).tiny
    z = (mean.unsqueeze(-1) - levels) / sigma.clamp_min(least).unsqueeze(-1)
    if z.shape[1] == 0:
        return torch.ones(len(mean), 1, dtype=torch.float64)
    high, low = z[:, :-1], z[:, 1:]
    # From the tail in which both are small, where digits are left.
    side = torch.where(low > 0, -1.0, 1.0)
    ndtr = torch.special.ndtr
    between = (ndtr(side * high) - ndtr(side * low)).abs()
    return torch.cat((ndtr(-z[:, :1]), between, ndtr(z[:, -1:])), dim=1)


def _points_between(n: int, d: int) -> Tensor:
    r"""The evenly spread numbers between 0 and 1, always the same ones (``n x d``)."""
    if d == 1:
        middle = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        return middle.unsqueeze(-1)
    engine = SobolEngine(d, scramble=True, seed=0)
    drawn = at_home(engine.draw(n, dtype=torch.float64))
    return drawn.clamp(0.5 / n**2, 1 - 0.5 / n**2)


def _contracted(table: Tensor, shares: Tensor) -> Tensor:
    r"""A table summed over its last dimension, weighted by ``N x c`` shares."""
    shape = [len(shares)] + [1] * (table.ndim - 2) + [shares.shape[1]]
    shares = shares.view(shape)
    if shares.shape[-1] == 2:  # of one level; sums of two in a row are slow
        return table[..., 0] * shares[..., 0] + table[..., 1] * shares[..., 1]
    return (table * shares).sum(dim=-1)
