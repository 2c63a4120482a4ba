r"""The interface of goals: sides from intervals, open rows, targets of a design."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    Sides,
    with_contradictions,
)
from botorch_lse.confidence.judges import Judge
from botorch_lse.confidence.regions import Regions
from botorch_lse.data.classification import Classification, OutputEstimate
from botorch_lse.functional.cells import UNKNOWN
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.goals.gaps import squared_gaps

Differences = Callable[[Tensor], tuple[Tensor, Tensor]]
"""A function of ``R`` items: the spread of their differences from ``L`` rivals.
It returns ``R x L`` standard deviations and half widths."""


class ItemBelief(Protocol):
    r"""The belief that a model has of the items, beside their intervals."""

    @property
    def memory_budget(self) -> int:
        r"""The bytes for arrays over items and their pairs."""

    @property
    def scale(self) -> Sequence[float]:
        r"""The unit of each output in which margins are told."""

    @property
    def correlation(self) -> Tensor | None:
        r"""The correlations of the outputs (``T x m x m``); ``None``: independent."""

    def variance(self, output: int, items: Tensor) -> Tensor:
        r"""The variances of some items, units of the output squared."""

    def differences(self, output: int, rivals: Tensor, factor: float) -> Differences:
        r"""The spread and the interval of ``f(i) - factor f(rival)``.

        Args:
            output: The number of the output.
            rivals: ``L`` items, the same for all calls of what is returned.
            factor: ``factor``.
        """


@dataclass(frozen=True, eq=False)
class Intervals:
    r"""The items as a goal may read them: intervals, and what they come from.

    Args:
        all_regions: Their confidence regions, for each output.
        rows: ``T`` rows that the items have in the designs of batches.
        points: A number for each item, the same for equal points.
        belief: The belief about the items, whatever the model.
    """

    all_regions: tuple[Regions, ...]
    rows: Tensor
    points: Tensor
    belief: ItemBelief

    @property
    def regions(self) -> Regions:
        r"""The regions of the first output, the only one of most goals."""
        return self.all_regions[0]

    @property
    def mean(self) -> list[Tensor]:
        r"""The means of the items, for each output (``T``)."""
        return [own.mean for own in self.all_regions]

    @property
    def lower(self) -> list[Tensor]:
        r"""The lower ends of the items' intervals, for each output (``T``)."""
        return [own.lower for own in self.all_regions]

    @property
    def upper(self) -> list[Tensor]:
        r"""The upper ends of the items' intervals, for each output (``T``)."""
        return [own.upper for own in self.all_regions]


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
class ClassSides(Sides):
    r"""The sides of a goal with more than two classes.

    Args:
        classes: ``N`` classes, -1 where it is not known. For the other arguments see
            ``Sides``.
    """

    classes: Tensor = field(kw_only=True)

    def reopened(self, rows: Tensor) -> ClassSides:
        r"""The sides with ``rows`` (``N`` bools) undecided again."""
        found = super().reopened(rows)
        assert isinstance(found, ClassSides)  # as it was
        return replace(found, classes=self.classes.masked_fill(rows, UNKNOWN))


@dataclass(frozen=True)
class GoalFacts:
    r"""The facts that are known of a goal before any data.

    Args:
        promise: The claim of the guarantee: a clause after "With probability 0.95".
        tolerance: How far an interval may reach over the level and still decide, units
            of ``y``; of several outputs the largest.
        n_outputs: The number of values a measurement must give for this goal.
        names: The names of the outputs where the goal knows them, else empty.
        directions: The directions of a Pareto set (whether more is better).
        n_comparisons: The number of (output, level) pairs a side depends on; 0 without
            a level.
        has_one_level: Whether one number for all rows tells on which side a value is.
        level: This number, where it is known before any data.
        seeks_best: Whether "above" is the best row, or the best ones, so that a value
            has no side by itself.
        meaning: What it is to be above, in words.
        class_names: The names of the classes, where they have names.
        closest: The rows that take the most measurements to decide, in words.
        accuracy: The argument that lets them go to either side, in words.
    """

    promise: str
    tolerance: float = 0.0
    n_outputs: int = 1
    names: tuple[str, ...] = ()
    directions: tuple[bool, ...] | None = None
    n_comparisons: int = 1
    has_one_level: bool = True
    level: float | None = None
    seeks_best: bool = False
    meaning: str = "above"
    class_names: tuple[str, ...] = ()
    closest: str = "rows very near to a level"
    accuracy: str = "`epsilon`"


AS_ESTIMATED = "if the level is the one of the present means"
"""The words that the promise of a goal adds whose level is estimated as one number."""


def all_are_right(epsilon: float) -> str:
    r"""The promise of a goal that decides rows up to an accuracy."""
    up_to = f" up to epsilon = {written(epsilon)}" if epsilon > 0 else ""
    return f"all decided rows are right{up_to}"


class Goal(ABC):
    r"""A question about the items, and how intervals decide it.

    A goal that compares outputs with levels is one method, ``region``. Its levels count
    as those of the present means, and all items are judged anew by each interval. One
    that compares items with each other overrides ``update``, ``against``, ``targets``,
    ``distances``, ``gaps`` and ``answer``, as far as it needs them, and ``facts``.
    """

    epsilon: float = 0.0
    """The accuracy up to which the answer must be right, in the units of ``y``."""

    theorem: ClassVar[str] = "Theorem 1"
    """The union bound of the widths, as ``guarantee`` names it."""
    by_pairs: ClassVar[bool] = False
    """Whether items are decided by comparing them with each other."""
    without_pairs: ClassVar[str] = ""
    """The hint at a strategy without pairs of items, where the goal keeps pairs."""

    @property
    def facts(self) -> GoalFacts:
        r"""The facts: by default one level of one output, not known beforehand.

        A goal of several outputs, or one whose guarantee is another, overrides them.
        """
        promise = f"{all_are_right(self.epsilon)}, {AS_ESTIMATED}"
        return GoalFacts(promise, self.epsilon)

    @abstractmethod
    def region(self, mean: Sequence[Tensor]) -> ValueRegion | None:
        r"""The question at given means: what it would be if they were the truth.

        ``None`` where no level decides, as for a Pareto set.

        Args:
            mean: For each output the means of some rows: of all items, or of those that
                were measured. So it may not depend on which rows they are.
        """

    def question(self, names: Sequence[str]) -> str:
        r"""The question in words for a title; empty where the goal has none.

        Args:
            names: Of the outputs.
        """
        return ""

    def check(self, n_items: int) -> None:  # noqa: B027  (a hook)
        r"""Complain if the goal is about another number of items."""

    def bytes_for(self, n_items: int) -> int:
        r"""The bytes that the goal needs for pairs of items; 0 if it stores none."""
        return 0

    def n_claims(self, n_items: int) -> int:
        r"""The number of intervals that must hold together in each round."""
        return self.facts.n_outputs * n_items

    def judge(self) -> Judge | None:
        r"""The judge of measured values; ``None`` for one level."""
        return None

    # --- deciding ---------------------------------------------------------------------

    def start(self, n_items: int) -> Sides:
        r"""The sides before any interval: every item is undecided."""
        return Sides.start(n_items)

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after one more interval, by which all items are judged.

        Args:
            sides: The sides before.
            seen: The belief after the interval.
        """
        return self._judged(self.start(len(sides.side)), seen)

    def _judged(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides once undecided items are judged by the present intervals."""
        region = self.region(seen.mean)
        assert region is not None  # a goal without levels decides by itself
        now = region.cells.agreed(region.allowed(seen.lower, seen.upper))
        is_open = sides.side == UNDECIDED
        side = torch.where(is_open, region.codes(now), sides.side)
        found = replace(sides, side=side, candidates=side == UNDECIDED)
        if isinstance(found, ClassSides):
            classes = torch.where(is_open, now, found.classes)
            found = replace(found, classes=classes)
        return found

    def reopened(self, sides: Sides, contradicted: Tensor) -> Sides:
        r"""The sides with ``contradicted`` items (``T`` bools) undecided again."""
        return sides.reopened(contradicted)

    def against(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""Whether each item's side disagrees with its own intervals (``T`` bools).

        By default of none, since all are judged anew.
        """
        return torch.zeros_like(sides.candidates)

    # --- what a design is to predict --------------------------------------------------

    def targets(self, sides: Sides, rows: Tensor) -> Targets:
        r"""The items in question, as targets of a designed batch.

        Args:
            sides: What is decided.
            rows: ``T`` rows of the posterior that are the items.
        """
        return Targets(rows[sides.candidates])

    def distances(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""The signed distances of the means from a change of side (``T``).

        All is decided once the half width of each interval is at most this distance
        plus ``facts.tolerance``: infinite for items of which no more need be known.

        Args:
            sides: What is decided.
            seen: The belief about the items, which have one output.
        """
        region = self.region(seen.mean)
        assert region is not None  # as above
        found = region.distances(seen.mean[0])
        return found.masked_fill(sides.side != UNDECIDED, torch.inf)

    def gaps(self, sides: Sides, seen: Intervals) -> Targets:
        r"""The ``targets``, weighted by one over the squared expected gaps."""
        targets, items = self.targets(sides, seen.rows), sides.candidates
        distances = self.distances(sides, seen)[items]
        variance = seen.belief.variance(0, items.nonzero().view(-1))
        gaps = squared_gaps(distances, variance, self.facts.tolerance)
        return replace(targets, weights=1 / gaps)

    # --- the answer -------------------------------------------------------------------

    def answer(self, sides: Sides, seen: Intervals, claim: str) -> Classification:
        r"""The answer; for several outputs ``mean`` and its bounds are margins.

        A margin is how far a row is from where it would have another answer, in units
        of each output (its prior's standard deviation), negative outside of the region.

        Args:
            sides: The side of each item.
            seen: The belief about the items.
            claim: The sentence about the confidence.
        """
        region, regions = self.region(seen.mean), seen.all_regions
        assert region is not None  # as above
        own, cells = regions[0], region.cells
        contradicted = torch.stack([r.contradicted for r in regions]).any(dim=0)
        mean, sigma = [r.mean for r in regions], [r.sigma for r in regions]
        correlation = seen.belief.correlation
        numbers = own.mean, own.sigma, own.lower, own.upper
        if len(regions) > 1:
            scale = seen.belief.scale
            ends = cells.margins(seen.lower, seen.upper, scale)
            centre, _ = cells.margins(mean, mean, scale)
            spread = [s / unit for s, unit in zip(sigma, scale, strict=True)]
            numbers = centre, torch.stack(spread).amax(dim=0), *ends
        within = None
        if any(region.accuracies):
            now = region.sides_between(seen.lower, seen.upper)
            within = (sides.side != UNDECIDED) & (now != sides.side)
        return Classification(
            above=sides.side == ABOVE,
            below=sides.side == BELOW,
            undecided=sides.side == UNDECIDED,
            mean=numbers[0],
            sigma=numbers[1],
            lower=numbers[2],
            upper=numbers[3],
            probability_above=cells.probabilities(mean, sigma, correlation)[:, -1],
            guarantee=with_contradictions(claim, contradicted),
            pool=own.pool,
            contradicted=contradicted,
            outputs=self._outputs_of(regions, region),
            classes=sides.classes if isinstance(sides, ClassSides) else None,
            within=within,
            meaning=self.facts.meaning,
            class_names=self.facts.class_names,
        )

    def _outputs_of(
        self, regions: Sequence[Regions], region: ValueRegion
    ) -> tuple[OutputEstimate, ...]:
        r"""The belief about each output, where there are several."""
        if len(regions) == 1:
            return ()
        names = self.facts.names or tuple(f"y{j}" for j in range(len(regions)))
        levels = [part.unbind(dim=1) for part in region.cells.levels]
        return tuple(
            OutputEstimate(name, r.mean, r.sigma, r.lower, r.upper, own)
            for name, r, own in zip(names, regions, levels, strict=True)
        )
