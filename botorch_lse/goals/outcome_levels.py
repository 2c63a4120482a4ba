r"""Levels of outcomes that are no measured numbers, such as probabilities of a yes.

A level of an outcome's quantity is a level of its latent function, since the quantity
rises with it. So questions are decided on the latent scale, where posteriors are
Gaussian, and answers are given in the units of the quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse._validation import complaint, kind_of
from botorch_lse.confidence.judges import TrialsJudge
from botorch_lse.data.classification import Classification, OutputEstimate
from botorch_lse.goals.base import Goal
from botorch_lse.goals.regions import Above, Region
from botorch_lse.models.outcomes import Binary, Outcome, Quantity

Answer = TypeVar("Answer", Classification, OutputEstimate)
Outcomes = Sequence[Quantity | None]
"""The outcome that is measured of each output; ``None``: the output, with noise."""


@dataclass(frozen=True)
class LatentRegion(Region):
    r"""A region about latent functions, made of one about what they stand for.

    Args:
        asked: The region as it was asked, about quantities.
        outcomes: What is measured of each output.
    """

    asked: Region
    outcomes: tuple[Quantity | None, ...]

    theorem: ClassVar[str] = "Theorem 1"

    def __post_init__(self) -> None:
        for leaf in self.asked.leaves:
            outcome = self.outcomes[self.asked._number_of(leaf)]
            if outcome is not None:
                outcome.check_level(leaf.levels)

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        r"""The number of answers, as it was asked."""
        return self.asked.n_classes

    @property
    def meaning(self) -> str:
        r"""The meaning of being in the region, as it was asked."""
        return self.asked.meaning

    @property
    def class_names(self) -> tuple[str, ...]:  # type: ignore[override]
        r"""The names of the classes, as it was asked."""
        return self.asked.class_names

    @property
    def _promise(self) -> str:  # with accuracies in the units of what was asked
        return self.asked._promise

    def in_words(self, name_of: Callable[[Above], str]) -> str:
        r"""The region in words, as it was asked."""
        return self.asked.in_words(name_of)

    @property
    def leaves(self) -> tuple[Above, ...]:
        r"""The comparisons of latent functions with levels."""
        return tuple(self._latent.values())

    @cached_property
    def _latent(self) -> dict[Above, Above]:
        r"""The comparisons as they were asked, and the latent ones."""
        found = {leaf: self._latent_leaf(leaf) for leaf in self.asked.leaves}
        # Around levels of one output the accuracy differs; the smallest one holds.
        least: dict[Any, float] = {}
        for leaf in found.values():
            least[leaf.output] = min(leaf.epsilon, least.get(leaf.output, leaf.epsilon))
        return {k: replace(v, epsilon=least[v.output]) for k, v in found.items()}

    def _latent_leaf(self, leaf: Above) -> Above:
        outcome = self.outcomes[self.asked._number_of(leaf)]
        if outcome is None:
            return leaf
        level, epsilon = outcome.latent(leaf.levels), leaf.epsilon
        if epsilon > 0:
            up = outcome.latent(leaf.levels + epsilon) - level
            down = level - outcome.latent(leaf.levels - epsilon)
            epsilon = float(torch.minimum(up, down).min())
        levels = level.tolist()
        is_one = not isinstance(leaf.threshold, tuple)
        threshold = levels[0] if is_one else tuple(levels)
        return replace(leaf, threshold=threshold, epsilon=epsilon)

    def class_of(self, is_above: Mapping[Above, Tensor]) -> Tensor:
        r"""The class of each row, by the comparisons of its latent functions."""
        as_asked = {leaf: is_above[own] for leaf, own in self._latent.items()}
        return self.asked.class_of(as_asked)

    @property
    def _one_level(self) -> float | None:
        r"""The latent level, where the region is above one level in one output."""
        if self.asked.facts.level is None:
            return None
        threshold = self.leaves[0].threshold
        assert not isinstance(threshold, tuple)  # it is one level
        return threshold


def on_latent_scale(goal: Goal, outcomes: Outcomes) -> Goal:
    r"""The question about latent functions that is equivalent to one about outcomes.

    Args:
        goal: The question as it is asked.
        outcomes: What is measured of each output.

    Raises:
        UnsupportedError: If items are compared with each other, rather than with
            levels.
        ValueError: If a level is no value that the quantity can take.
    """
    if all(outcome is None for outcome in outcomes):
        return goal
    if not isinstance(goal, Region):
        wanted = "with levels, such as `Above(0.75)`, where `outcome` is given"
        raise UnsupportedError(complaint("goal", wanted, f"got {kind_of(goal)}"))
    return LatentRegion(goal, tuple(outcomes))


def trials_judge(
    goal: Goal, outcomes: Outcomes, answer: Classification | None = None
) -> TrialsJudge | None:
    r"""The judge of probabilities, if all outputs are yes or no, or grades.

    Args:
        goal: The question about latent functions.
        outcomes: What is measured of each output.
        answer: The answer, by whose probabilities trials are foreseen.
    """
    found = [
        one
        for one in outcomes
        if isinstance(one, Outcome) and one.quantity == Binary.quantity
    ]
    if len(found) < len(outcomes):
        return None
    assert isinstance(goal, LatentRegion)  # with outcomes it always is
    parts = () if answer is None else answer.outputs or (answer,)
    believed = tuple(part.mean for part in parts)
    return TrialsJudge(goal.asked.values, tuple(found), believed)


def in_units(answer: Classification, outcomes: Outcomes) -> Classification:
    r"""An answer about latent functions, in the units of what they stand for.

    Sides, and the probability of being above, are those of the latent functions. Means
    are those of the quantity, within its bounds; of several outputs margins stay as
    they are.

    Args:
        answer: The answer about latent functions.
        outcomes: What is measured of each output.
    """
    if all(outcome is None for outcome in outcomes):
        return answer
    outputs = tuple(
        output if outcome is None else _output_in_units(output, outcome)
        for output, outcome in zip(answer.outputs, outcomes, strict=False)
    )
    answer = replace(answer, outputs=outputs)
    if len(outcomes) > 1:
        return answer
    (outcome,) = outcomes
    assert outcome is not None  # not all are numbers, and there is one
    return _in_units(answer, outcome)


def _output_in_units(output: OutputEstimate, outcome: Quantity) -> OutputEstimate:
    levels = tuple(outcome.value(level) for level in output.levels)
    return _in_units(replace(output, levels=levels), outcome)


def _in_units(found: Answer, outcome: Quantity) -> Answer:
    r"""An answer with moments and bounds of a quantity, for its latent function's."""
    mean, sigma = outcome.moments(found.mean, found.sigma.square())
    lower, upper = outcome.value(found.lower), outcome.value(found.upper)
    # A latent interval leaves out tails, of which the mean of the quantity has a part.
    mean = mean.clamp(lower, upper)
    return replace(found, mean=mean, sigma=sigma, lower=lower, upper=upper)


def quantities(outcomes: Outcomes, names: Sequence[str]) -> tuple[str, ...]:
    r"""The names of what levels and bounds are about, such as ``"probability of y"``.

    Args:
        outcomes: What is measured of each output.
        names: The metrics, or the names of the answer's outputs.
    """
    if len(outcomes) != len(names):
        return tuple(names)
    return tuple(
        name if outcome is None else outcome.of_metric(name)
        for name, outcome in zip(names, outcomes, strict=True)
    )
