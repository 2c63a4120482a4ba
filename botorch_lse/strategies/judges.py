r"""How an audit compares measured values with what was claimed of a row."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from botorch_lse.confidence.audit import due, reach_of, verdicts
from botorch_lse.functional.cells import UNKNOWN

if TYPE_CHECKING:  # goals need what strategies are made of, which need this
    from botorch_lse.strategies.goals import Region


BY_SIDES = (
    "Expected noise that is stated, or one learnt standard deviation and rows that may "
    "be measured twice, for an audit of a region in which an output has two levels: "
    "one value of noise that is not known does not say whether a row lies between "
    "them. Give `noise_std`, or leave out `audit`."
)


@dataclass(frozen=True, eq=False)
class Values:
    r"""What was measured of each row since a claim was made.

    Args:
        mean: ``N x m`` means of the values.
        noise_std: ``N x m`` noise standard deviations of one measurement; 0 where it is
            judged by its side.
        counts: ``N``, how often each row was measured.
        most: How often one row may be measured.
        is_gaussian: Whether the noise is; else it is sub-Gaussian.
    """

    mean: Tensor
    noise_std: Tensor
    counts: Tensor
    most: int
    is_gaussian: bool = True

    def reach(self, output: int, mistaken: float) -> Tensor:
        r"""``N`` distances that a mean exceeds upwards but with a probability."""
        given = self.noise_std[:, output], self.counts, self.most, mistaken
        return reach_of(*given, is_gaussian=self.is_gaussian)


class Judge(ABC):
    r"""Says which rows their values show to be right or wrong.

    The labels that it is told about are numbers of classes, ``UNKNOWN`` where nothing
    is claimed; the last class is "above".
    """

    n_outputs: int = 1
    """How many values a measurement gives."""
    n_classes: int = 2
    """How many answers there are."""

    @abstractmethod
    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""``N`` codes: 1 right, -1 wrong, 0 measure again.

        Args:
            labels: ``N`` numbers of the classes that are claimed.
            values: What was measured.
            mistaken: The probability that noise makes a wrong row look right.
        """

    @property
    def knows_sides(self) -> bool:
        r"""Whether noise of any size is on either side of a level with equal chances,

        so that a value by itself shows the true class with some probability.
        """
        return True

    @property
    @abstractmethod
    def up_to(self) -> str:
        r"""By how much a row may be wrong, a clause."""

    @property
    def about(self) -> str:
        r"""What the claim is about, where it was estimated, a clause."""
        return ""


@dataclass(frozen=True, eq=False)
class LevelJudge(Judge):
    r"""Compares one output with one level.

    Args:
        level: Stated, or as it was estimated when the claim was made, units of ``y``.
        epsilon: The accuracy.
        is_stated: Whether it was stated.
    """

    level: float
    epsilon: float
    is_stated: bool = True

    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""By how far the mean is beyond where the side would be wrong."""
        # The line beyond which the side would be wrong by more than the accuracy.
        side = torch.where(labels == UNKNOWN, 0, 2 * labels - 1).double()
        margin = side * (values.mean[:, 0] - self.level) + self.epsilon
        return verdicts(
            margin,
            values.noise_std[:, 0],
            values.counts,
            values.most,
            mistaken,
            is_gaussian=values.is_gaussian,
        )

    @property
    def up_to(self) -> str:
        r"""The accuracy, if there is one."""
        return f" by more than {self.epsilon:g}" if self.epsilon > 0 else ""

    @property
    def about(self) -> str:
        r"""The level, where it was estimated."""
        if self.is_stated:
            return ""
        return f", the level being {self.level:.6g} as estimated before the audit"


@dataclass(frozen=True, eq=False)
class RegionJudge(Judge):
    r"""Asks a region what it says of the values, give or take their noise.

    A row's outputs lie in a box around its means, unless noise has carried one of them
    out of it. The claim is right if every point of the box has the claimed class, up to
    the accuracies.

    What noise must do to make a wrong row look right: the box says of each output
    between which levels it is. Were that true of all outputs up to their accuracies,
    the row would not be wrong. So one of them has been carried across one of its
    levels. An output with one level can be carried across it in one direction alone,
    since it lies on one side; one with several in both. Each gets its part of the
    probability of a mistake.

    Args:
        region: The region.
    """

    region: Region

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        r"""As the region has."""
        return self.region.n_outputs

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        r"""As the region has."""
        return self.region.n_classes

    @property
    def knows_sides(self) -> bool:
        r"""Whether each output has one level at most.

        Between two of them, a value of an output may hardly ever lie.
        """
        return all(part.shape[1] <= 1 for part in self.region.cells.levels)

    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""By the classes that the points of the box have."""
        n_ways = [min(part.shape[1], 2) for part in self.region.cells.levels]
        means = values.mean.unbind(dim=-1)
        reach = [values.reach(j, mistaken / sum(n_ways)) for j in range(self.n_outputs)]
        lower = [mean - own for mean, own in zip(means, reach, strict=True)]
        upper = [mean + own for mean, own in zip(means, reach, strict=True)]
        is_right = torch.zeros_like(labels, dtype=torch.bool)
        # Near a level both sides are right, up to the accuracy.
        for ties in itertools.product((True, False), repeat=self.n_outputs):
            found = self.region.class_between(lower, upper, ties)
            is_right |= (found == labels) & (found != UNKNOWN)
        now = self.region.class_between(lower, upper)
        is_wrong = (now != labels) & (now != UNKNOWN) & ~is_right
        is_exact = torch.stack(reach, dim=-1).eq(0).all(dim=-1)
        return due(is_right, is_wrong, is_exact, values.counts, values.most)

    @property
    def up_to(self) -> str:
        r"""That the outputs have accuracies, if they have."""
        return " by more than epsilon" if any(self.region.accuracies) else ""
