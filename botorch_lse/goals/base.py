r"""The interface of goals: sides from intervals, open rows, targets of a design."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.classify import (
    Sides,
    explicit_sides,
    from_sides,
    with_contradictions,
)
from botorch_lse.confidence.judges import Judge
from botorch_lse.confidence.regions import Regions
from botorch_lse.data.classification import Classification
from botorch_lse.functional.cells import Cells
from botorch_lse.functional.scores import TINY
from botorch_lse.goals.gaps import squared_gaps
from botorch_lse.models.gaussian_process import PoolPosterior


@dataclass(frozen=True, eq=False)
class Intervals:
    r"""What a goal may read of the items: their intervals, and what these are from.

    Args:
        all_regions: Their confidence regions, for each output.
        posteriors: For each output a posterior that has the items among its rows.
        rows: ``T`` rows of the posteriors that are the items.
        points: A number for each item, the same for equal points.
        beta: The squared width of the last interval.
    """

    all_regions: tuple[Regions, ...]
    posteriors: tuple[PoolPosterior, ...]
    rows: Tensor
    points: Tensor
    beta: float

    @property
    def regions(self) -> Regions:
        r"""The regions of the first output, the only one of most goals."""
        return self.all_regions[0]

    @property
    def posterior(self) -> PoolPosterior:
        r"""The posterior of the first output, the only one of most goals."""
        return self.posteriors[0]


@dataclass(frozen=True, eq=False)
class Targets:
    r"""The targets that the next batch is to predict: points, or pairs of points.

    Args:
        rows: ``T`` rows of the posterior.
        weights: Factors of the variances, ``T`` or for pairs ``T x T``, 0 for what need
            not be predicted; ``None``: ones.
        factor: ``c`` of the pairs ``f(x) - c f(x')``; ``None``: the rows themselves.
    """

    rows: Tensor
    weights: Tensor | None = None
    factor: float | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    r"""A comparison of one output with one level, in each row.

    Args:
        output: The number of the output.
        level: The level, or ``N`` levels, units of the output.
        matters: ``N`` bools: whether the side of a row still hangs on this comparison;
            ``None``: as far as the row is open at all.
    """

    output: int
    level: float | Tensor
    matters: Tensor | None = None

    def level_at(self, rows: Tensor) -> float | Tensor:
        r"""The level, or the levels of some rows."""
        return self.level[rows] if isinstance(self.level, Tensor) else self.level


class Goal(ABC):
    r"""A question about the items, and how intervals decide it.

    The ``epsilon`` of each goal is the accuracy up to which its answer must be right,
    in the units of ``y``.
    """

    epsilon: float

    theorem: ClassVar[str]
    """The union bound of the widths, as ``guarantee`` names it."""
    by_pairs: ClassVar[bool] = False
    """Whether items are decided by comparing them with each other."""
    can_anticipate: ClassVar[bool] = False
    """Whether ``stays`` says what would stay undecided after a measurement."""

    @property
    def directions(self) -> tuple[bool, ...] | None:
        r"""The directions of a Pareto set (whether more is better), else ``None``."""
        return None

    @property
    def n_outputs(self) -> int:
        r"""The number of values a measurement must give for this goal."""
        return 1 if self.directions is None else len(self.directions)

    @property
    def outputs(self) -> tuple[str, ...]:
        r"""The names of the outputs where the goal knows them, else empty."""
        return ()

    @property
    def n_comparisons(self) -> int:
        r"""The number of (output, level) pairs a side depends on; 0 without a level."""
        return 1 if self.directions is None else 0

    @property
    def has_one_level(self) -> bool:
        r"""Whether a single number tells on which side a row's value is."""
        return self.directions is None

    @property
    def is_alike_in_all_rows(self) -> bool:
        r"""Whether a value has the same side in each row (no level depends on it)."""
        return True

    def check(self, n_items: int) -> None:  # noqa: B027  (a hook)
        r"""Complain if the goal is about another number of items."""

    without_pairs: ClassVar[str] = ""
    """What answers the same without pairs of items, where the goal keeps pairs."""

    def bytes_for(self, n_items: int) -> int:
        r"""The bytes that the goal needs for pairs of items; 0 if it stores none."""
        return 0

    @property
    def promise(self) -> str:
        r"""The claim of the guarantee: a clause after "With probability 0.95"."""
        up_to = f" up to epsilon = {written(self.epsilon)}" if self.epsilon > 0 else ""
        return f"all decided rows are right{up_to}"

    def start(self, n_items: int) -> Sides:
        r"""The sides before any interval: every item is undecided."""
        return Sides.start(n_items)

    def before_data(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides before any data where the prior must not decide anything.

        A goal may fill in estimates by the prior here.
        """
        return sides

    @abstractmethod
    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after one more interval.

        Args:
            sides: The sides before.
            seen: The belief after the interval.
        """

    def reopened(self, sides: Sides, contradicted: Tensor) -> Sides:
        r"""The sides with ``contradicted`` items (``T`` bools) undecided again."""
        return sides.reopened(contradicted)

    def against(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""``T`` bools: whether an item's side disagrees with its own region."""
        return torch.zeros_like(sides.candidates)

    def question(self, names: Sequence[str]) -> str:
        r"""The question in words for a title; empty where the goal has none.

        Args:
            names: Of the outputs.
        """
        return ""

    @property
    def stated_level(self) -> float | None:
        r"""The level, if it is known before any data; else ``None``."""
        return None

    def level(self, mean: Tensor) -> float:
        r"""The level that probabilities refer to, units of ``y``."""
        raise NotImplementedError  # of several outputs, which rules know

    def level_of(self, values: Tensor) -> float | None:
        r"""The level to compare measured values with; ``None`` without one.

        Args:
            values: The mean of each measured row, units of ``y``.
        """
        return None

    def comparisons(self, seen: Intervals) -> tuple[Comparison, ...]:
        r"""The outputs and levels that decide sides; empty without a level.

        Args:
            seen: The belief about the items.
        """
        if self.directions is not None:
            return ()
        return (Comparison(0, self.level(seen.posterior.mean)),)

    def doubt(self, posteriors: Sequence[PoolPosterior], rows: Tensor) -> Tensor:
        r"""The probability that each row is not on the side of its mean.

        Args:
            posteriors: Of each output.
            rows: ``T`` rows of the posteriors.
        """
        posterior = posteriors[0]
        distance = (posterior.mean[rows] - self.level(posterior.mean)).abs()
        # An item that is known exactly is on the right side, on the level too.
        sigma = posterior.sigma[rows].clamp_min(TINY)
        return torch.special.ndtr(-distance / sigma)

    def cells_at(self, rows: Tensor) -> Cells:
        r"""The answer in each cell of a region's levels, at some rows."""
        raise NotImplementedError  # where comparisons have one level

    def found_sides(
        self, rows: Tensor, means: Sequence[Tensor], errors: Sequence[Tensor]
    ) -> Tensor | None:
        r"""The sides that measured values show by themselves, without any model.

        Args:
            rows: ``n`` measured rows.
            means: For each output ``n`` means of their values.
            errors: For each output how far these may be off.

        Returns:
            ``n`` codes; ``None`` where values have no sides.
        """
        level = self.level_of(means[0])
        if level is None:
            return None
        return explicit_sides(means[0] - errors[0], means[0] + errors[0], level, 0.0)

    def levels_near(self, output: int, values: Tensor) -> list[float]:
        r"""The levels of an output that a fitted model must hold plausible.

        Args:
            output: The number of the output.
            values: The mean of each measured row.
        """
        level = self.level_of(values)
        return [] if level is None else [level]

    def ruled_out(self, output: int, lower: Tensor, upper: Tensor) -> Tensor:
        r"""``T`` bools: whether an interval of an output excludes one of its levels.

        Args:
            output: The number of the output.
            lower: ``T`` lower ends.
            upper: ``T`` upper ends.
        """
        level = self.stated_level
        if level is None:
            return torch.zeros_like(lower, dtype=torch.bool)
        return (lower >= level) | (upper <= level)

    def depends_on(self, seen: Intervals, unsure: Sequence[Tensor]) -> Tensor:
        r"""``T`` bools: items that would be open if some intervals said nothing.

        Args:
            seen: The belief about the items.
            unsure: For each output ``T`` bools: the intervals that count as endless.
        """
        return unsure[0]

    def answer(self, sides: Sides, seen: Intervals, claim: str) -> Classification:
        r"""The answer as a ``Classification``.

        Args:
            sides: The side of each item.
            seen: The belief about the items.
            claim: The sentence about the confidence.
        """
        own = seen.regions
        claim = with_contradictions(claim, own.contradicted)
        within = self.within(sides, seen)
        return from_sides(sides.side, own, self.level(own.mean), claim, within)

    def within(self, sides: Sides, seen: Intervals) -> Tensor | None:
        r"""``T`` bools: decided items that the accuracy decides; ``None``: none."""
        return None

    @property
    def tolerance(self) -> float:
        r"""The distance that an interval may reach over the level and still decide."""
        return self.epsilon

    def distances(self, mean: Tensor, points: Tensor) -> Tensor:
        r"""``T`` signed distances of the means from a change of side.

        An item is decided once the half width of its interval is at most this distance
        plus ``tolerance``.

        Args:
            mean: ``T`` means.
            points: A number for each item, the same for equal points.
        """
        raise NotImplementedError  # of several outputs, which forecasts know

    def targets(self, sides: Sides, rows: Tensor) -> Targets:
        r"""The items in question, as targets of a designed batch.

        Args:
            sides: What is decided.
            rows: ``T`` rows of the posterior that are the items.
        """
        return Targets(rows[sides.candidates])

    def gaps(self, sides: Sides, seen: Intervals) -> Targets:
        r"""The ``targets``, weighted by one over the squared expected gaps."""
        targets = self.targets(sides, seen.rows)
        distances = self.distances(seen.regions.mean, seen.points)[sides.candidates]
        variance = seen.posterior.variance[targets.rows]
        gaps = squared_gaps(distances, variance, self.epsilon)
        return replace(targets, weights=1 / gaps)

    def n_claims(self, n_items: int) -> int:
        r"""The number of intervals that must hold together in each round."""
        return n_items

    def judge(self) -> Judge | None:
        r"""The judge of measured values; ``None`` for one level."""
        return None

    def stays(self, mean: Tensor, half: Tensor) -> Tensor:
        r"""``C x T`` bools: items that would stay undecided after a measurement.

        Args:
            mean: ``T`` means, assumed to stay as they are.
            half: ``C x T`` half widths after each of ``C`` measurements.
        """
        raise NotImplementedError  # `check` asks `can_anticipate` first

    def hint(self, mean: Tensor, sigma: Tensor, beta: float) -> Tensor:
        r"""``N`` cheap scores, by which ``prefilter`` keeps only the best rows.

        Source:
            Bogunovic et al. (2016), Appendix A, for the maximiser; the others are ours.
        """
        raise NotImplementedError  # where no rule takes hints
