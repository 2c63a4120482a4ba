r"""Regions: levels of one or several outputs, and their combinations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import complaint, kind_of, real_vector
from botorch_lse.confidence.classify import (
    UNDECIDED,
    Sides,
    accuracy,
)
from botorch_lse.confidence.judges import Judge, RegionJudge
from botorch_lse.confidence.regions import Regions
from botorch_lse.data.arguments import checked_level
from botorch_lse.data.classification import OutputEstimate
from botorch_lse.functional.cells import UNKNOWN, Cells
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.goals.base import ClassSides, Goal, GoalFacts, Intervals

MOST_CELLS = 1024
"""The largest number of cells: nine outputs with a level each, or five with three."""


class Region(Goal):
    r"""A yes-or-no question about rows that comparisons with levels decide.

    ``Above(40) & Below(0.4, output=1)`` is where the first output is above 40 and the
    second at most 0.4; ``|`` is "or", ``~`` is "not". "Above" means in the region,
    "below" means outside.

    Levels cut the values of the outputs into cells, all over which the answer is the
    same (``functional/cells.py``). A row is decided exactly when all cells that its
    intervals allow agree. The intervals of all outputs hold together.
    """

    n_classes: ClassVar[int] = 2
    """The number of answers; the last one is "above"."""
    class_names: ClassVar[tuple[str, ...]] = ()
    """The names of the classes, where they have names."""

    @property
    @abstractmethod
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons that the region is made of, from left to right."""

    @abstractmethod
    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""The class of each row that the results of comparisons imply.

        Args:
            is_above: For each comparison bools, whether the output is above the level.
        """

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the region, in words."""
        return "in the region"

    def __and__(self, other: Region) -> And:
        r"""The region where both hold."""
        return And(_operands(self, other, And, "&"))

    def __or__(self, other: Region) -> Or:
        r"""The region where at least one holds."""
        return Or(_operands(self, other, Or, "|"))

    def __invert__(self) -> Not:
        r"""The region where this one does not hold."""
        return Not(self)

    def __bool__(self) -> bool:
        r"""Complain: ``a and b`` would be ``b`` alone.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            "Expected regions to be combined by `&`, `|` and `~`, but got `and`, `or`, "
            "`not` or another question for a truth value, which Python asks of one "
            "region alone. Write `Above(40) & Below(0.4, output=1)`."
        )

    def question(self, names: Sequence[str]) -> str:
        r"""The region in words: "strength above 40 and cost at most 0.4"."""
        return self.in_words(lambda leaf: names[self._number_of(leaf)])

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The region in words; by default the name of its class.

        Args:
            name_of: From a comparison to the name of its output.
        """
        return type(self).__name__

    # --- outputs and levels -----------------------------------------------------------

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        r"""The names of the outputs, in the order in which they occur, or empty."""
        given = [leaf.output for leaf in self.leaves]
        return tuple(dict.fromkeys(o for o in given if isinstance(o, str)))

    @cached_property
    def n_outputs(self) -> int:
        r"""The number of outputs: of names, or one more than the last number."""
        if self.outputs:
            return len(self.outputs)
        return 1 + max(self._number_of(leaf) for leaf in self.leaves)

    def _number_of(self, leaf: Above) -> int:
        if isinstance(leaf.output, str):
            return self.outputs.index(leaf.output)
        return leaf.output

    @cached_property
    def facts(self) -> GoalFacts:
        r"""The facts: outputs, and the level where there is only one."""
        level = self._one_level
        return GoalFacts(
            promise=self._promise,
            tolerance=max(self.accuracies),
            n_outputs=self.n_outputs,
            names=self.outputs,
            n_comparisons=sum(len(part) for part in self._levels),
            has_one_level=level is not None,
            level=level,
            meaning=self.meaning,
            class_names=self.class_names,
            closest="edges of classes" if self.class_names else GoalFacts.closest,
        )

    @property
    def _one_level(self) -> float | None:
        r"""The level, where the region is above one number in one output."""
        return None

    @cached_property
    def _levels(self) -> tuple[list[Above], ...]:
        r"""The comparisons of each output, each level once."""
        found: tuple[dict[Any, Above], ...] = tuple({} for _ in range(self.n_outputs))
        for leaf in self.leaves:
            found[self._number_of(leaf)].setdefault(leaf.threshold, leaf)
        return tuple(list(part.values()) for part in found)

    @cached_property
    def accuracies(self) -> tuple[float, ...]:
        r"""The accuracy of each output, in its units."""
        found = [0.0] * self.n_outputs
        for leaf in self.leaves:
            found[self._number_of(leaf)] = leaf.epsilon
        return tuple(found)

    def region(self, mean: Sequence[Tensor]) -> ValueRegion:
        r"""The region of values, whatever the means."""
        return self.values

    @cached_property
    def values(self) -> ValueRegion:
        r"""The region of values: the cells between the levels, the answer in each."""
        outputs = self._levels

        def class_of(signs: list[list[Tensor]]) -> Tensor:
            known = {
                (j, leaf.threshold): sign
                for j, (part, own) in enumerate(zip(outputs, signs, strict=True))
                for leaf, sign in zip(part, own, strict=True)
            }
            is_above = {
                leaf: known[self._number_of(leaf), leaf.threshold]
                for leaf in self.leaves
            }
            return self.class_of(is_above)

        none = torch.empty(1, 0, dtype=torch.float64)
        levels = []
        for part in outputs:
            own = [leaf.levels for leaf in part]
            rows = max((len(level) for level in own), default=1)
            wide = [level.expand(rows) for level in own]
            levels.append(torch.stack(wide, dim=-1) if wide else none)
        return ValueRegion(Cells.of(levels, class_of, self.n_classes), self.accuracies)

    def check(self, n_items: int) -> None:
        r"""Complain about a region with too many cells, or with levels of other rows.

        Raises:
            ValueError: If it is so, outputs have names and numbers, one output has two
                accuracies, or no values are in the region.
        """
        kinds = {isinstance(leaf.output, str) for leaf in self.leaves}
        if len(kinds) > 1:
            wanted = "to be a name in all parts of a region or a number in all of them"
            came = f"got {[leaf.output for leaf in self.leaves]}"
            raise ValueError(complaint("output", wanted, came))
        for leaf in self.leaves:
            own = self.accuracies[self._number_of(leaf)]
            if leaf.epsilon != own:
                wanted = f"to be the same wherever output {leaf.output!r} occurs"
                came = f"got {written(leaf.epsilon)} and {written(own)}"
                remedy = "It is the accuracy of the output, in its units."
                raise ValueError(complaint("epsilon", wanted, came, remedy))
            if len(leaf.levels) not in (1, n_items):
                wanted = f"to be a number or one per row of the pool ({n_items})"
                came = f"got {len(leaf.levels)} numbers"
                raise ValueError(complaint("threshold", wanted, came))
        n_cells = 1
        for part in self._levels:
            n_cells *= len(part) + 1
        if n_cells > MOST_CELLS:
            wanted = f"to be a region of at most {MOST_CELLS} cells"
            sizes = [len(part) for part in self._levels]
            came = f"{sizes} levels of the outputs make {n_cells}"
            raise ValueError(complaint("goal", wanted, came, "Leave some levels out."))
        if not bool(self.values.cells.classes.any()):
            said = self.in_words(lambda leaf: f"output {leaf.output}")
            came = f"none is {said}"
            remedy = "Write `Above(0.3) & Below(0.5)` for a band, `|` for one of both."
            raise ValueError(complaint("goal", "that values can meet", came, remedy))

    # --- deciding ---------------------------------------------------------------------

    @property
    def _promise(self) -> str:
        names = self.outputs or tuple(f"output {j}" for j in range(self.n_outputs))
        if not any(self.accuracies):
            up_to = ""
        elif self.n_outputs == 1:
            up_to = f" up to epsilon = {written(self.accuracies[0])}"
        else:
            pairs = zip(self.accuracies, names, strict=True)
            words = ", ".join(f"{written(e)} ({name})" for e, name in pairs)
            up_to = f" up to epsilon = {words}"
        together = ""
        if self.n_outputs > 1:
            together = (
                f"the intervals of all {self.n_outputs} outputs hold together and "
            )
        return f"{together}all decided rows are right{up_to}"

    def judge(self) -> Judge:
        r"""The judge that compares the classes of values."""
        return RegionJudge(self.values)

    def start(self, n_items: int) -> Sides:
        r"""The sides before any interval: every item is undecided."""
        found = Sides.start(n_items)
        if self.n_classes == 2:
            return found
        unknown = torch.full((n_items,), UNKNOWN)
        return ClassSides(found.side, found.candidates, classes=unknown)

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after one more interval; what is decided stays decided."""
        return self._judged(sides, seen)

    def against(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""Whether present intervals rule out sides, up to accuracies (``T`` bools)."""
        region, ends = self.values, (seen.lower, seen.upper)
        now = region.cells.agreed(region.allowed(*ends, strictly=False))
        if isinstance(sides, ClassSides):
            differs = now != sides.classes
        else:
            differs = region.codes(now) != sides.side
        return (sides.side != UNDECIDED) & (now != UNKNOWN) & differs

    # --- the answer -------------------------------------------------------------------

    def _outputs_of(
        self, regions: Sequence[Regions], region: ValueRegion
    ) -> tuple[OutputEstimate, ...]:
        r"""The belief about each output; of one output where it has another level."""
        if len(regions) == 1 and self.facts.level is not None:
            return ()
        names = self.outputs or tuple(f"y{j}" for j in range(self.n_outputs))
        levels = [tuple(leaf.levels for leaf in part) for part in self._levels]
        return tuple(
            OutputEstimate(name, r.mean, r.sigma, r.lower, r.upper, own)
            for name, r, own in zip(names, regions, levels, strict=True)
        )


Level = float | Sequence[float] | Tensor
"""A level as users give it: a number, or one for each row of the pool."""


def _checked_output(value: Any) -> int | str:
    r"""An output as a name or a number.

    Raises:
        ValueError: If it is neither.
    """
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if is_number or (isinstance(value, str) and value):
        return value
    wanted = "to be the number of an output, from 0, or the name of a metric"
    raise ValueError(complaint("output", wanted, f"got {value!r}"))


def _operands(
    left: Region, right: Any, kind: type[Region], sign: str
) -> tuple[Region, ...]:
    r"""The parts of ``left & right``; those of ``a & b & c`` in one row."""
    if not isinstance(right, Region):
        raise ValueError(
            f"Expected a region on both sides of `{sign}`, such as "
            f"`Above(40) {sign} Below(0.4, output=1)`, but got {kind_of(right)}."
        )
    return (*(left.parts if isinstance(left, kind) else (left,)), right)  # type: ignore[attr-defined]


def _only_two(parts: Sequence[Any]) -> None:
    r"""Complain unless all parts are yes-or-no questions."""
    for part in parts:
        if not isinstance(part, Region) or part.n_classes != 2:
            raise ValueError(
                "Expected parts of a region such as `Above(40)`, but got "
                f"{kind_of(part)}."
            )


@dataclass(frozen=True)
class Above(Region):
    r"""The region ``{x : f(x) > threshold}``; decided rows stay decided.

    Args:
        threshold: The level, units of the output; a number, or one for each row of the
            pool.
        epsilon: The accuracy.
        output: The number of the output, or the name of the metric.

    Source:
        Gotovos et al. (2013), Algorithm 1, lines 5 to 10.
    """

    threshold: float | tuple[float, ...]
    epsilon: float = 0.0
    output: int | str = 0

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        threshold = checked_level(self.threshold, "threshold")
        object.__setattr__(self, "threshold", threshold)  # as plain numbers
        accuracy(self.epsilon)
        _checked_output(self.output)

    @property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparison that this region consists of."""
        return (self,)

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the region, in words."""
        return "above"

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The output and its level, in words."""
        return f"{name_of(self)} above {_level_in_words(self.threshold)}"

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""Whether the value is above the level."""
        return is_above[self]

    @cached_property
    def levels(self) -> Tensor:
        r"""One level, or one per row of the pool, units of the output."""
        return torch.tensor(self.threshold, dtype=torch.float64).reshape(-1)

    @property
    def _one_level(self) -> float | None:
        r"""The threshold, if it is a single number of one output."""
        if isinstance(self.threshold, tuple) or self.n_outputs > 1:
            return None
        return self.threshold


def _level_in_words(level: float | tuple[float, ...]) -> str:
    return "a level by row" if isinstance(level, tuple) else written(level)


def _part_in_words(part: Region, name_of: Callable[[Above], str]) -> str:
    words = part.in_words(name_of)
    return f"({words})" if isinstance(part, And | Or) else words


@dataclass(frozen=True)
class Below(Region):
    r"""The region where an output is at most the level (the complement of ``Above``).

    Args:
        threshold: The level; see ``Above``, as for the next ones.
        epsilon: The accuracy.
        output: The number of the output, or the name of the metric.
    """

    threshold: float | tuple[float, ...]
    epsilon: float = 0.0
    output: int | str = 0

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        threshold = checked_level(self.threshold, "threshold")
        object.__setattr__(self, "threshold", threshold)
        self.leaves  # noqa: B018  (checks the rest)

    @cached_property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparison with the level."""
        return (Above(self.threshold, self.epsilon, self.output),)

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the region, in words."""
        return "below"

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The output and its level, in words."""
        level = _level_in_words(self.threshold)
        return f"{name_of(self.leaves[0])} at most {level}"

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""Whether the value is at most the level."""
        return ~is_above[self.leaves[0]]


@dataclass(frozen=True)
class Between(Region):
    r"""The region where an output is above one level and at most another one.

    Args:
        low: The lower level: a number, or one per row.
        high: The upper level.
        epsilon: The accuracy.
        output: The number of the output, or the name of the metric.

    Raises:
        ValueError: If ``low`` is not below ``high``, in each row.
    """

    low: float | tuple[float, ...]
    high: float | tuple[float, ...]
    epsilon: float = 0.0
    output: int | str = 0

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", checked_level(self.low, "low"))
        object.__setattr__(self, "high", checked_level(self.high, "high"))
        low, high = (leaf.levels for leaf in self.leaves)
        if min(len(low), len(high)) > 1 and len(low) != len(high):
            came = f"got {len(low)} and {len(high)} numbers"
            wanted = "to be as many levels as `high`, or one"
            raise ValueError(complaint("low", wanted, came))
        if not bool((low < high).all()):
            wrong = float((low - high).max())
            came = f"it is above it by {written(wrong)}, or equal"
            raise ValueError(complaint("low", "to be below `high`", came))

    @cached_property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons with both levels."""
        levels = self.low, self.high
        return tuple(Above(level, self.epsilon, self.output) for level in levels)

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the region, in words."""
        return "between the levels"

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The output and both levels, in words."""
        low, high = map(_level_in_words, (self.low, self.high))
        return f"{name_of(self.leaves[0])} between {low} and {high}"

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""Whether the value is above the lower level and not above the upper one."""
        low, high = (is_above[leaf] for leaf in self.leaves)
        return low & ~high


@dataclass(frozen=True)
class And(Region):
    r"""The intersection of several regions: ``a & b``.

    Args:
        parts: At least one region.
    """

    parts: tuple[Region, ...]

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))  # a file has a list
        _only_two(self.parts)
        self.n_outputs  # noqa: B018  (outputs by name or by number)

    @cached_property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons of all parts."""
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The parts in words, in brackets where they are made of parts themselves."""
        return " and ".join(_part_in_words(part, name_of) for part in self.parts)

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""Whether all parts hold."""
        return reduce(and_, (part.class_of(is_above) for part in self.parts))


@dataclass(frozen=True)
class Or(Region):
    r"""The union of several regions: ``a | b``.

    Args:
        parts: At least one region.
    """

    parts: tuple[Region, ...]

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))  # a file has a list
        _only_two(self.parts)

    @cached_property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons of all parts."""
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The parts in words, in brackets where they are made of parts themselves."""
        return " or ".join(_part_in_words(part, name_of) for part in self.parts)

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""Whether at least one part holds."""
        return reduce(or_, (part.class_of(is_above) for part in self.parts))


@dataclass(frozen=True)
class Not(Region):
    r"""The complement of a region: ``~a``.

    Args:
        part: The region.
    """

    part: Region

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        _only_two([self.part])

    @property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons of the region."""
        return self.part.leaves

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the region, in words."""
        opposite = {"above": "below", "below": "above"}
        return opposite.get(self.part.meaning, f"not {self.part.meaning}")

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The region in words, negated."""
        return f"not ({self.part.in_words(name_of)})"

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""Whether the region does not hold."""
        return ~self.part.class_of(is_above)


@dataclass(frozen=True)
class Levels(Region):
    r"""The class of each row: the number of levels that its value is above.

    The answer has ``classes``, from 0 to the number of levels, and -1 where that is not
    known. "Above" are the rows of the highest class, "below" those of any other one.

    Args:
        levels: Ascending levels, units of the output.
        epsilon: The accuracy.
        output: The number of the output, or the name of the metric.

    Raises:
        ValueError: If there is no level, or they do not ascend.
    """

    levels: tuple[float, ...]
    epsilon: float = 0.0
    output: int | str = 0

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        is_list = hasattr(self.levels, "__len__") and not isinstance(self.levels, str)
        if not is_list or getattr(self.levels, "ndim", None) == 0:
            wanted, remedy = "to be a list of numbers", "Write `Levels((1.0, 2.0))`."
            raise ValueError(
                complaint("levels", wanted, f"got {self.levels!r}", remedy)
            )
        found = real_vector(self.levels, "levels", len(self.levels), "class but one")
        if len(found) == 0 or not bool((found.diff() > 0).all()):
            wanted = "to be at least one level, ascending"
            raise ValueError(complaint("levels", wanted, f"got {self.levels!r}"))
        object.__setattr__(self, "levels", tuple(found.tolist()))
        self.leaves  # noqa: B018  (checks the rest)

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        r"""The number of classes: one more than there are levels."""
        return len(self.levels) + 1

    @cached_property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons with each level."""
        return tuple(Above(level, self.epsilon, self.output) for level in self.levels)

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the last class, in words."""
        return "above all levels"

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The output and all levels, in words."""
        levels = ", ".join(map(_level_in_words, self.levels))
        return f"{name_of(self.leaves[0])} in classes parted at {levels}"

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""The number of levels that the value is above."""
        found = is_above[self.leaves[0]].long()
        for leaf in self.leaves[1:]:
            found = found + is_above[leaf].long()
        return found
