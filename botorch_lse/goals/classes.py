r"""Classes without an order: which of several phases, species or materials it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse._validation import complaint, in_interval, kind_of
from botorch_lse.goals.regions import MOST_CELLS, Above, Region

MAJORITY = 0.5
"""The least threshold of a share: above it only one class of several can be."""
NO_CLASS = "none"
"""The name of the class of rows in which no share is above the threshold."""


@dataclass(frozen=True)
class Classes(Region):
    r"""The class of each row, of several without an order, such as phases.

    Each class is an output of its own: the probability that a result at the row is of
    this class, with ``GaussianProcess(outcome=Binary())``, or the share of it that is
    measured, with a model of numbers. A row is of a class where this is above the
    threshold. As the shares add up to 1 there is at most one such class; where there is
    none, as close to the edges of noisy classes, the row is of the class ``"none"``.

    The answer has ``classes``, the numbers of the classes, one more for ``"none"``, and
    -1 where that is not known; ``likeliest``, the class with the largest share; and
    ``class_names``. "Above" are the rows of ``"none"``, "below" those of a class.

    Each class has a process of its own, learnt from whether results were of it
    (one against the rest). So probabilities of the classes need not add up to 1, and a
    row is decided by the intervals of all of them.

    Example:
        >>> phases = Classes(("solid", "liquid", "gas"))
        >>> phases.results(["gas", "solid"])
        tensor([[0., 0., 1.],
                [1., 0., 0.]], dtype=torch.float64)

    Args:
        names: The names of the classes, two to ten.
        threshold: The probability, or share, from 0.5 on and below 1.
        epsilon: The accuracy.

    Raises:
        ValueError: If there are fewer or more names, or an empty one, or one twice, or
            the threshold or the accuracy is out of its bounds.
    """

    names: tuple[str, ...]
    threshold: float = MAJORITY
    epsilon: float = 0.0

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        # Not a set, which has no order.
        is_list = isinstance(self.names, list | tuple)
        names = tuple(self.names) if is_list else ()
        is_text = all(isinstance(name, str) and name for name in names)
        if not is_text or len(names) < 2 or len({*names, NO_CLASS}) <= len(names):
            wanted = f'to be at least two different names, none of them "{NO_CLASS}"'
            remedy = 'Write `Classes(("solid", "liquid", "gas"))`.'
            raise ValueError(complaint("names", wanted, f"got {self.names!r}", remedy))
        if 2 ** len(names) > MOST_CELLS:
            wanted, remedy = "to be at most ten classes", "Give some a common name."
            raise ValueError(complaint("names", wanted, f"got {len(names)}", remedy))
        object.__setattr__(self, "names", names)
        in_interval(
            self.threshold,
            "threshold",
            MAJORITY,
            1.0,
            closed_low=True,
            remedy="Below 0.5 a row could be of two classes.",
        )
        self.leaves  # noqa: B018  (checks the rest)

    def results(self, labels: Sequence[str] | Sequence[int] | Tensor) -> Tensor:
        r"""The results to tell for measured classes: 1 for the class, 0 for all others.

        Args:
            labels: The class that was found in each of ``n`` measurements, its name or
                its number.

        Returns:
            ``n x m`` results, one column for each class.

        Raises:
            ValueError: If a label is no class.
        """
        if isinstance(labels, str):
            labels = [labels]
        if not isinstance(labels, Iterable) or getattr(labels, "ndim", 1) != 1:
            wanted = "to be one class for each measurement"
            remedy = 'Write `phases.results(["solid", "gas"])`.'
            raise ValueError(complaint("labels", wanted, f"got {labels!r}", remedy))
        found = [self._number(label) for label in labels]
        numbers = torch.tensor(found, dtype=torch.long)
        return torch.nn.functional.one_hot(numbers, len(self.names)).double()

    def _number(self, label: object) -> int:
        if isinstance(label, str) and label in self.names:
            return self.names.index(label)
        if not isinstance(label, str | bool):
            try:
                number = int(label)  # type: ignore[call-overload]
            except (TypeError, ValueError, OverflowError):
                number = -1
            if number == label and 0 <= number < len(self.names):
                return int(number)
        known = ", ".join(map(repr, self.names))
        wanted = f"to be of the classes {known}, or their numbers"
        came = f"got {label!r}" if isinstance(label, str) else f"got {kind_of(label)}"
        raise ValueError(complaint("labels", wanted, came, "Is a name misspelt?"))

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        r"""The number of classes, ``"none"`` included."""
        return len(self.names) + 1

    @property
    def class_names(self) -> tuple[str, ...]:  # type: ignore[override]
        r"""The names of all classes, ``"none"`` being the last."""
        return (*self.names, NO_CLASS)

    @cached_property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons of each class with the threshold."""
        return tuple(Above(self.threshold, self.epsilon, name) for name in self.names)

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the last class, in words."""
        return "of no class"

    def question(self, names: Sequence[str]) -> str:
        r"""The question in words: the names of all classes."""
        return f"which of {', '.join(self.names[:-1])} and {self.names[-1]} it is"

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""The number of the only class above the threshold, else that of none."""
        parts = [is_above[leaf] for leaf in self.leaves]
        of_any, of_several = parts[0], torch.zeros_like(parts[0])
        found = torch.full_like(parts[0], len(self.names), dtype=torch.long)
        for number, part in enumerate(parts):
            of_several = of_several | (part & of_any) if number else of_several
            of_any = of_any | part
            found = torch.where(part, number, found)
        # Two shares above one half there are not, whatever independent models allow.
        return torch.where(of_several, len(self.names), found)
