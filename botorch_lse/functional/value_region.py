r"""Regions of the outputs' values: what intervals and normal distributions say of them.

A ``ValueRegion`` is what a goal asks once every level is a number: for a stated level
always the same, for an estimated one that of the present means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse.functional.cells import UNKNOWN, Cells


@dataclass(frozen=True, eq=False)
class Comparison:
    r"""A comparison of one output with one level, in each row.

    Args:
        output: The number of the output.
        level: The level, or ``N`` levels, units of the output.
        matters: ``N`` bools: whether the side of a row still depends on the comparison;
            ``None``: as far as the row is open at all.
    """

    output: int
    level: float | Tensor
    matters: Tensor | None = None

    def level_at(self, rows: Tensor) -> float | Tensor:
        r"""The level, or the levels of some rows."""
        return self.level[rows] if isinstance(self.level, Tensor) else self.level


@dataclass(frozen=True, eq=False)
class ValueRegion:
    r"""A region of the values of ``m`` outputs, given by levels of each.

    Args:
        cells: The classes of the cells between the levels. The last class is "above",
            any other one "below".
        accuracies: For each output its accuracy, in its units.
    """

    cells: Cells
    accuracies: tuple[float, ...]

    @classmethod
    def above(cls, level: float, epsilon: float = 0.0) -> ValueRegion:
        r"""The region of one output above one level.

        Args:
            level: The level, units of the output.
            epsilon: The accuracy.
        """
        levels = torch.tensor([[level]], dtype=torch.float64)
        return cls(Cells((levels,), torch.tensor([[0, 1]]), 2), (epsilon,))

    @property
    def n_outputs(self) -> int:
        r"""The number of outputs."""
        return len(self.cells.levels)

    @property
    def n_classes(self) -> int:
        r"""The number of answers there are."""
        return self.cells.n_classes

    @property
    def is_alike_in_all_rows(self) -> bool:
        r"""Whether every level is one number for all rows."""
        return len(self.cells.classes) == 1

    @property
    def level(self) -> float:
        r"""The level, where there is only one.

        Raises:
            UnsupportedError: If there are several, or one for each row.
        """
        if (only := self.only_comparison) is None:
            raise UnsupportedError(
                "Expected a `goal` with one level for all rows of one output. A rule "
                "that is written for any region reads `context.comparisons`."
            )
        return float(only.level)

    @property
    def only_comparison(self) -> Comparison | None:
        r"""The output and level, where there is only one pair and one number."""
        found = [
            (j, level)
            for j, part in enumerate(self.cells.levels)
            for level in part.unbind(dim=1)
        ]
        if len(found) != 1 or not self.is_alike_in_all_rows:
            return None
        return Comparison(found[0][0], float(found[0][1]))

    @property
    def outputs(self) -> list[int]:
        r"""The numbers of the outputs that have levels."""
        return [j for j, part in enumerate(self.cells.levels) if part.shape[1]]

    def of_output(self, output: int) -> ValueRegion:
        r"""The region as one about a single output, the only one with levels.

        Args:
            output: The number of the output.
        """
        levels = self.cells.levels[output]
        classes = self.cells.classes.reshape(len(self.cells.classes), -1)
        cells = Cells((levels,), classes, self.n_classes)
        return ValueRegion(cells, (self.accuracies[output],))

    def ambiguity(
        self, lower: Sequence[Tensor], upper: Sequence[Tensor], unit: Sequence[float]
    ) -> Tensor:
        r"""The distances by which intervals reach over a change of the class (``N``).

        Positive exactly where they allow another class, whatever the accuracies: of one
        level how far the interval reaches over it on its shorter side. Continuous in
        the ends.

        Args:
            lower: For each output ``N`` lower ends.
            upper: For each output ``N`` upper ends.
            unit: For each output the unit of distances.
        """
        found = []
        for k in range(1 if self.n_classes == 2 else 0, self.n_classes):
            own = (self.cells.classes == k).long()
            cells = Cells(self.cells.levels, own, 2)  # of this class, or of another one
            low, high = cells.margins(lower, upper, unit)
            found.append(torch.minimum(high, -low))
        return torch.stack(found).amax(dim=0)

    def at(self, rows: Tensor) -> ValueRegion:
        r"""The region at some rows, given by number or mask."""
        return replace(self, cells=self.cells.at(rows))

    # --- what intervals say -----------------------------------------------------------

    def allowed(
        self, lower: Sequence[Tensor], upper: Sequence[Tensor], *, strictly: bool = True
    ) -> Tensor:
        r"""The cells that intervals allow, up to the accuracies (``N x ...`` bools).

        Args:
            lower: For each output ``N`` lower ends.
            upper: For each output ``N`` upper ends.
            strictly: Whether a level within the accuracy of an end counts as passed;
                else only one that is passed by more than the accuracy.
        """
        above, below = [], []
        parts = zip(self.cells.levels, lower, upper, self.accuracies, strict=True)
        for levels, low, high, epsilon in parts:
            low, high = low.unsqueeze(-1), high.unsqueeze(-1)
            if strictly:
                over = low + epsilon > levels
                under = (high - epsilon <= levels) & ~over
            else:
                over, under = low > levels + epsilon, high <= levels - epsilon
            above.append(over)
            below.append(under)
        return self.cells.allowed(above, below)

    def class_between(
        self,
        lower: Sequence[Tensor],
        upper: Sequence[Tensor],
        ties: Sequence[bool] | None = None,
        accuracies: Sequence[float] | None = None,
    ) -> Tensor:
        r"""The classes that all points of intervals have, else ``UNKNOWN`` (``N``).

        Args:
            lower: For each output ``N`` lower ends.
            upper: For each output ``N`` upper ends.
            ties: Allow for the accuracies. An interval that is then on both sides of a
                level counts as above it if this is true for its output, else as below.
                ``None``: do not allow for them.
            accuracies: Others for the outputs than the region's own.
        """
        above, below = [], []
        if accuracies is None:
            accuracies = self.accuracies
        parts = zip(self.cells.levels, lower, upper, strict=True)
        for j, (levels, low, high) in enumerate(parts):
            epsilon = 0.0 if ties is None else accuracies[j]
            over = low.unsqueeze(-1) + epsilon > levels
            under = high.unsqueeze(-1) - epsilon <= levels
            is_tied = over & under
            if ties is not None and not ties[j]:
                over = over & ~is_tied
            else:
                under = under & ~is_tied
            above.append(over)
            below.append(under)
        found = self.cells.agreed(self.cells.allowed(above, below))
        return found.expand(len(lower[0]))

    def rules_out(
        self, classes: Tensor, lower: Sequence[Tensor], upper: Sequence[Tensor]
    ) -> Tensor:
        r"""Whether no cell that intervals allow has a row's class (``N`` bools).

        Args:
            classes: ``N`` numbers of classes, or ``UNKNOWN``, which is never ruled out.
            lower: For each output ``N`` lower ends.
            upper: For each output ``N`` upper ends.
        """
        may_be = self.allowed(lower, upper, strictly=False).flatten(1)
        own = self.cells.classes.flatten(1) == classes.unsqueeze(-1)
        return (classes != UNKNOWN) & ~(may_be & own).any(dim=-1)

    def codes(self, classes: Tensor) -> Tensor:
        r"""The codes of the sides of classes: 1 above, -1 below, 0 unknown."""
        above = classes == self.cells.n_classes - 1
        below = (classes != UNKNOWN) & ~above
        return above.to(torch.int8) - below.to(torch.int8)

    def sides_between(self, lower: Sequence[Tensor], upper: Sequence[Tensor]) -> Tensor:
        r"""The sides that all points of intervals have, without accuracies (``N``).

        Args:
            lower: For each output ``N`` lower ends.
            upper: For each output ``N`` upper ends.
        """
        return self.codes(self.class_between(lower, upper))

    def comparisons(
        self, lower: Sequence[Tensor], upper: Sequence[Tensor]
    ) -> tuple[Comparison, ...]:
        r"""The outputs and levels, with the rows in which each still matters.

        Args:
            lower: For each output ``N`` lower ends.
            upper: For each output ``N`` upper ends.
        """
        levels = self.cells.levels
        matters: tuple[Tensor, ...] | None = None
        if sum(part.shape[1] for part in levels) > 1:
            matters = self.cells.matters(self.allowed(lower, upper))
        found = []
        for j, part in enumerate(levels):
            for i, own in enumerate(part.unbind(dim=1)):
                level = float(own) if len(own) == 1 else own
                here = None if matters is None else matters[j][:, i]
                found.append(Comparison(j, level, here))
        return tuple(found)

    def ruled_out(self, output: int, lower: Tensor, upper: Tensor) -> Tensor:
        r"""Whether an output's interval excludes one of its levels (``N`` bools).

        Args:
            output: The number of the output.
            lower: ``N`` lower ends.
            upper: ``N`` upper ends.
        """
        levels = self.cells.levels[output]
        out = (lower.unsqueeze(-1) >= levels) | (upper.unsqueeze(-1) <= levels)
        return out.any(dim=-1)

    def depends_on(
        self,
        lower: Sequence[Tensor],
        upper: Sequence[Tensor],
        unsure: Sequence[Tensor],
    ) -> Tensor:
        r"""The rows that would be open if some intervals said nothing (``N`` bools).

        Args:
            lower: For each output ``N`` lower ends.
            upper: For each output ``N`` upper ends.
            unsure: For each output ``N`` bools: the intervals that count as endless.
        """
        parts = list(zip(lower, upper, unsure, strict=True))
        ends = (
            [low.masked_fill(out, -torch.inf) for low, _, out in parts],
            [high.masked_fill(out, torch.inf) for _, high, out in parts],
        )
        found = self.cells.agreed(self.allowed(*ends))
        return torch.stack(list(unsure)).any(dim=0) & (found == UNKNOWN)

    # --- distances and probabilities --------------------------------------------------

    def levels_near(self, output: int, centre: float) -> list[float]:
        r"""The value of each level of an output that is nearest to a number.

        Args:
            output: The number of the output.
            centre: The number, units of the output.
        """
        levels = self.cells.levels[output]
        nearest = (levels - centre).abs().argmin(dim=0, keepdim=True)
        return levels.gather(0, nearest).flatten().tolist()

    def distances(self, mean: Tensor) -> Tensor:
        r"""The signed distances of an output's values from a change of class (``N``).

        With one level the values less the level; with several the margins, positive
        inside.

        Args:
            mean: ``N`` values.
        """
        (levels,) = self.cells.levels
        if levels.shape[1] == 1:
            return mean - levels[:, 0]
        return self.cells.margins([mean], [mean], [1.0])[0]

    def doubt(
        self,
        mean: Sequence[Tensor],
        sigma: Sequence[Tensor],
        correlation: Tensor | None = None,
    ) -> Tensor:
        r"""The probability that each row does not have its likeliest class.

        Args:
            mean: For each output ``N`` means.
            sigma: For each output ``N`` standard deviations.
            correlation: ``N x m x m`` correlations of the outputs; ``None``: they are
                independent.
        """
        found = self.cells.probabilities(mean, sigma, correlation)
        return found.sort(dim=-1).values[:, :-1].sum(dim=-1)
