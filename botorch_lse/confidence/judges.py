r"""Judges: how an audit compares measured values with the claim about a row."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.audit import LOOKS, due, next_look, reach_of, verdicts
from botorch_lse.confidence.trials import (
    MISTAKEN as MISTAKEN_TRIALS,
)
from botorch_lse.confidence.trials import (
    MOST_TRIALS,
    UNFAIR,
    expected_trials,
    shows_more,
)
from botorch_lse.functional.cells import UNKNOWN
from botorch_lse.functional.value_region import ValueRegion

if TYPE_CHECKING:
    from botorch_lse.models.outcomes import Outcome

BY_SIDES = (
    "Expected noise that is stated, or one learnt standard deviation and rows that may "
    "be measured twice, for an audit of a Pareto set or of a region in which an output "
    "has two levels: one value of noise that is not known says little of them. Give "
    "`noise_std`, or leave out `audit`."
)


@dataclass(frozen=True, eq=False)
class Values:
    r"""The measurements of each row since a claim was made.

    Args:
        mean: ``N x m`` means of the values.
        noise_std: ``N x m`` noise standard deviations of one measurement; 0 where it is
            judged by its side.
        counts: ``N``, how often each row was measured.
        most: The largest number of measurements of one row.
        is_gaussian: Whether the noise is; else it is sub-Gaussian.
        before: What was measured of each row in the whole run, where that is needed.
        risk: The probability that bounds of rows are wrong that others are compared
            with.
    """

    mean: Tensor
    noise_std: Tensor
    counts: Tensor
    most: int
    is_gaussian: bool = True
    before: Values | None = None
    risk: float = 0.0

    def reach(self, output: int, mistaken: float) -> Tensor:
        r"""The distances that means exceed upwards with a given probability (``N``)."""
        given = self.noise_std[:, output], self.counts, self.most, mistaken
        return reach_of(*given, is_gaussian=self.is_gaussian)

    def at(self, rows: Tensor) -> Values:
        r"""The values of some rows."""
        return replace(
            self,
            mean=self.mean[rows],
            noise_std=self.noise_std[rows],
            counts=self.counts[rows],
        )

    def lasting_reach(self, risk: float) -> Tensor:
        r"""The distances that no mean ever exceeds, but for a probability (``N x m``).

        However often each row is measured, and for whatever reasons.

        Args:
            risk: The probability.

        Source:
            A union bound over rows, outputs and counts, ``sum 1 / (n (n + 1)) = 1``.
        """
        n = self.counts.clamp_min(1).double().unsqueeze(-1)
        each = risk / (2 * self.mean.numel() * n * (n + 1))
        # Of other noise Chernoff's bound.
        bound = (-2 * each.log()).sqrt()
        z = -torch.special.ndtri(each) if self.is_gaussian else bound
        found = z * self.noise_std / n.sqrt()
        return found.masked_fill(self.counts.unsqueeze(-1) == 0, torch.inf)


class Judge(ABC):
    r"""A judge of which rows their values show to be right or wrong.

    The labels that it is told about are numbers of classes, ``UNKNOWN`` where nothing
    is claimed; the last class is "above".
    """

    n_outputs: int = 1
    """The number of values that a measurement gives."""
    n_classes: int = 2
    """The number of answers that there are."""
    most: int = LOOKS[-1]
    """The largest number of measurements by which a row is judged."""
    by_trials: bool = False
    """Whether results are yes or no, so that rows are judged by repeated trials."""

    @abstractmethod
    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""The verdicts on rows: 1 right, -1 wrong, 0 measure again (``N`` codes).

        Args:
            labels: ``N`` numbers of the classes that are claimed.
            values: The measurements.
            mistaken: The probability that noise makes a wrong row look right.
        """

    def strict(self) -> Judge:
        r"""The judge that allows for no accuracy, at the level itself."""
        return self

    def ruled_out(
        self, labels: Tensor, lower: Sequence[Tensor], upper: Sequence[Tensor]
    ) -> Tensor:
        r"""Whether intervals leave no room for what is claimed (``N`` bools).

        Args:
            labels: ``N`` numbers of the classes that are claimed.
            lower: For each output the ``N`` lower ends.
            upper: The upper ends.
        """
        return torch.zeros_like(labels, dtype=torch.bool)

    by_itself: bool = True
    """Whether a row is right or wrong by itself, not beside others."""
    drawn_in_words: str = "rows"
    """The rows from which the audit draws, in words."""

    def is_drawn(self, labels: Tensor) -> Tensor:
        r"""The rows from which the audit draws (``N`` bools)."""
        return torch.ones_like(labels, dtype=torch.bool)

    def numbers(self, y: Tensor) -> Tensor:
        r"""The results as numbers whose means are judged (``n`` or ``n x m``)."""
        return y

    def looks(
        self, labels: Tensor, values: Values, mistaken: float, rows: Tensor
    ) -> Tensor:
        r"""The numbers of measurements, in all, at the next look of some rows.

        Args:
            labels: ``N`` numbers of the classes that are claimed.
            values: The measurements.
            mistaken: The probability that noise makes a wrong row look right.
            rows: The rows, none of which has a verdict.
        """
        return next_look(values.counts[rows])

    def expected(self, labels: Tensor, mistaken: float) -> Tensor:
        r"""The expected numbers of measurements of rows that are right (``N``).

        Args:
            labels: ``N`` numbers of the classes that are claimed.
            mistaken: The probability that noise makes a wrong row look right.
        """
        return torch.ones(len(labels), dtype=torch.float64)

    def missing(self, labels: Tensor, values: Values) -> Tensor:
        r"""The measurements needed before anything can be judged (``N`` counts)."""
        return torch.zeros_like(labels)

    @property
    def knows_sides(self) -> bool:
        r"""Whether the sides of values tell something, however large the noise is."""
        return True

    @property
    @abstractmethod
    def up_to(self) -> str:
        r"""The accuracy allowed to a row, as a clause."""

    @property
    def about(self) -> str:
        r"""The subject of the claim where it was estimated, as a clause."""
        return ""


@dataclass(frozen=True, eq=False)
class LevelJudge(Judge):
    r"""A judge that compares one output with one level.

    Args:
        level: Stated, or as it was estimated when the claim was made, units of ``y``.
        epsilon: The accuracy.
        is_stated: Whether it was stated.
    """

    level: float
    epsilon: float
    is_stated: bool = True

    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""The verdicts by how far a mean lies on the wrong side."""
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

    def ruled_out(
        self, labels: Tensor, lower: Sequence[Tensor], upper: Sequence[Tensor]
    ) -> Tensor:
        r"""Whether an interval lies beyond the level and the accuracy (``N`` bools)."""
        too_low = (labels == 1) & (upper[0] < self.level - self.epsilon)
        return too_low | ((labels == 0) & (lower[0] > self.level + self.epsilon))

    def strict(self) -> LevelJudge:
        r"""The judge that allows for no accuracy, at the level itself."""
        return self if self.epsilon == 0 else replace(self, epsilon=0.0)

    @property
    def up_to(self) -> str:
        r"""The accuracy, if there is one, as a clause."""
        return f" by more than {written(self.epsilon)}" if self.epsilon > 0 else ""

    @property
    def about(self) -> str:
        r"""The level, where it was estimated, as a clause."""
        if self.is_stated:
            return ""
        return f", the level being {self.level:.9g} as estimated before the audit"


class _OfRegion(Judge):
    r"""The judges that ask a region, up to the accuracies of its outputs."""

    region: ValueRegion
    accuracies: Sequence[float] | None

    @property
    def _accuracies(self) -> Sequence[float]:
        given = self.accuracies
        return self.region.accuracies if given is None else given

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        r"""The number of the region's outputs."""
        return self.region.n_outputs

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        r"""The number of the region's classes."""
        return self.region.n_classes

    @property
    def up_to(self) -> str:
        r"""The accuracy, as a clause."""
        return " by more than epsilon" if any(self._accuracies) else ""

    def ruled_out(
        self, labels: Tensor, lower: Sequence[Tensor], upper: Sequence[Tensor]
    ) -> Tensor:
        r"""Whether no cell that intervals allow has the class (``N`` bools)."""
        return self.region.rules_out(labels, lower, upper)


@dataclass(frozen=True, eq=False)
class RegionJudge(_OfRegion):
    r"""A judge that asks a region about the values, give or take their noise.

    A row's outputs lie in a box around its means, unless noise has carried one of them
    out of it. The claim is right if every point of the box has the claimed class, up to
    the accuracies.

    A wrong row looks right only through noise: the box says for each output between
    which levels it is. If that were true of all outputs up to their accuracies, the row
    would not be wrong; so noise has carried one of them across one of its levels. An
    output with one level can be carried across it in one direction only, since it lies
    on one side; one with several levels in both. Each way gets its part of the
    probability of a mistake.

    Args:
        region: The region of values.
        accuracies: For each output its accuracy; default the region's.
    """

    region: ValueRegion
    accuracies: Sequence[float] | None = None

    def strict(self) -> RegionJudge:
        r"""The judge that allows for no accuracy, at the levels themselves."""
        if not any(self._accuracies):
            return self
        return replace(self, accuracies=[0.0] * self.n_outputs)

    @property
    def knows_sides(self) -> bool:
        r"""Whether each output has one level at most.

        Between two of them, a value of an output may hardly ever lie.
        """
        return all(part.shape[1] <= 1 for part in self.region.cells.levels)

    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""The verdicts by the classes that the points of the box have."""
        n_ways = [min(part.shape[1], 2) for part in self.region.cells.levels]
        means = values.mean.unbind(dim=-1)
        reach = [values.reach(j, mistaken / sum(n_ways)) for j in range(self.n_outputs)]
        lower = [mean - own for mean, own in zip(means, reach, strict=True)]
        upper = [mean + own for mean, own in zip(means, reach, strict=True)]
        is_right = torch.zeros_like(labels, dtype=torch.bool)
        # Near a level both sides are right, up to the accuracy.
        for ties in itertools.product((True, False), repeat=self.n_outputs):
            ends = lower, upper, ties, self._accuracies
            found = self.region.class_between(*ends)
            is_right |= (found == labels) & (found != UNKNOWN)
        now = self.region.class_between(lower, upper)
        is_wrong = (now != labels) & (now != UNKNOWN) & ~is_right
        is_exact = torch.stack(reach, dim=-1).eq(0).all(dim=-1)
        return due(is_right, is_wrong, is_exact, values.counts, values.most)

    @property
    def up_to(self) -> str:
        r"""The clause on the outputs' accuracies, if they have any."""
        return " by more than epsilon" if any(self._accuracies) else ""


@dataclass(frozen=True, eq=False)
class TrialsJudge(_OfRegion):
    r"""A judge of probabilities, of which trials show the sides.

    For each level of an output trials may show that the probability is above it, or
    that it is not, up to the accuracy. The claim is right if all that is left has the
    claimed class. As a wrong row lies between levels, it looks right only if something
    is shown of a level that is not so; each way to err gets its part of the probability
    of a mistake (see ``RegionJudge``). Of levels above each other a higher one counts
    as passed only with all lower ones, so that they are one way.

    Args:
        region: The region of probabilities.
        outcomes: What is measured of each output.
        believed: For each output ``N`` probabilities as they are believed, by which the
            trials are foreseen.
        accuracies: For each output its accuracy; default the region's.
    """

    region: ValueRegion
    outcomes: tuple[Outcome, ...]
    believed: Sequence[Tensor] = ()
    accuracies: Sequence[float] | None = None

    most = MOST_TRIALS
    by_trials = True

    def strict(self) -> TrialsJudge:
        r"""The judge that allows for no accuracy, at the levels themselves."""
        return replace(self, accuracies=[0.0] * self.n_outputs)

    def numbers(self, y: Tensor) -> Tensor:
        r"""The results as shares of successes, grades too (``n`` or ``n x m``)."""
        columns = y.view(len(y), self.n_outputs).unbind(dim=-1)
        pairs = zip(self.outcomes, columns, strict=True)
        found = [outcome.as_quantity(column) for outcome, column in pairs]
        return torch.stack(found, dim=-1).view_as(y)

    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""The verdicts by what trials show of each level."""
        rows = (values.counts > 0).nonzero().view(-1)
        found = torch.zeros_like(labels, dtype=torch.int8)
        if len(rows) == 0:
            return found
        seen = self._seen(labels, values, mistaken, rows)
        is_right = torch.zeros_like(rows, dtype=torch.bool)
        # Near a level both sides are right, up to the accuracy.
        for ties in itertools.product((True, False), repeat=self.n_outputs):
            now = seen.class_of(ties)
            is_right |= (now == labels[rows]) & (now != UNKNOWN)
        wide = replace(self, accuracies=[-one for one in self._accuracies])
        against = wide._seen(labels, values, self.n_ways * UNFAIR, rows)
        now = against.class_of([True] * self.n_outputs)
        is_wrong = (now != labels[rows]) & (now != UNKNOWN)
        is_wrong |= seen.least_more > values.most  # nothing more can be shown
        found[rows] = torch.where(is_right, 1, -is_wrong.to(torch.int8)).to(torch.int8)
        return found

    def looks(
        self, labels: Tensor, values: Values, mistaken: float, rows: Tensor
    ) -> Tensor:
        r"""The trials of rows after which something more may be shown."""
        if len(rows) == 0:
            return rows
        more = self._seen(labels, values, mistaken, rows).least_more
        return values.counts[rows] + more.clamp(1, values.most)

    @cached_property
    def least(self) -> int:
        r"""The trials without which no side of some level is shown."""
        each, none = MISTAKEN_TRIALS / self.n_ways, torch.zeros(1)
        found = 1
        for levels, epsilon in zip(
            self.region.cells.levels, self._accuracies, strict=True
        ):
            lines = torch.cat((levels - epsilon, 1 - levels - epsilon)).view(1, -1)
            _, more = shows_more(none, none.long(), lines, each, self.most)
            found = max([found, *more.view(-1).tolist()])
        return found

    @property
    def n_ways(self) -> int:
        r"""The number of ways in which trials can make a wrong row look right."""
        return sum(min(part.shape[1], 2) for part in self.region.cells.levels)

    def _seen(
        self, labels: Tensor, values: Values, mistaken: float, rows: Tensor
    ) -> _Seen:
        r"""The levels whose sides trials of some rows show."""
        region, n = self.region.at(rows), values.counts[rows]
        above, below, least = [], [], torch.full_like(n, values.most + 1)
        for j, (levels, epsilon) in enumerate(
            zip(region.cells.levels, self._accuracies, strict=True)
        ):
            if levels.shape[1] == 0:
                above.append(levels.bool())
                below.append(levels.bool())
                continue
            yes = (values.mean[rows, j] * n).round().long()
            lines = levels.expand(len(rows), -1)
            given = mistaken / self.n_ways, values.most
            over, more_over = shows_more(yes, n, lines - epsilon, *given)
            under, more_under = shows_more(n - yes, n, 1 - lines - epsilon, *given)
            helps = region.cells.beside(labels[rows], j)
            for is_shown, more, may in zip(
                (over, under), (more_over, more_under), helps, strict=True
            ):
                open_ = torch.where(may & ~is_shown, more, values.most + 1)
                least = torch.minimum(least, open_.amin(dim=-1))
            above.append(over.long().cummin(dim=-1).values.bool())
            below.append(under.flip(-1).long().cummin(dim=-1).values.flip(-1).bool())
        return _Seen(region, above, below, least)

    def expected(self, labels: Tensor, mistaken: float) -> Tensor:
        r"""The expected trials of rows if what is believed is so (``N``).

        Args:
            labels: ``N`` numbers of the classes that are claimed.
            mistaken: The probability that trials make a wrong row look right.
        """
        found, own = (
            torch.ones(len(labels), dtype=torch.float64),
            mistaken / self.n_ways,
        )
        parts = zip(
            self.region.cells.levels, self._accuracies, self.believed, strict=True
        )
        for j, (levels, epsilon, p) in enumerate(parts):
            over, under = self.region.cells.beside(labels, j)
            each = torch.zeros_like(found)
            for k, level in enumerate(levels.expand(len(labels), -1).mT):
                for may, line, q in (
                    (over[:, k], level - epsilon, p),
                    (under[:, k], 1 - level - epsilon, 1 - p),
                ):
                    rows = (may & (q > line)).nonzero().view(-1)
                    each[rows] += expected_trials(q[rows], line[rows], own)
            # All outputs are tried at once; two levels of one take turns.
            found = torch.maximum(found, each)
        return found


@dataclass(frozen=True, eq=False)
class _Seen:
    r"""The levels whose sides trials show, of some rows.

    Args:
        region: The region at these rows.
        above: For each output ``n x L_j`` bools: shown to be above the level.
        below: Shown not to be.
        least_more: ``n`` least numbers of further trials that may show something more
            of what is claimed; more than may be made where none can.
    """

    region: ValueRegion
    above: list[Tensor]
    below: list[Tensor]
    least_more: Tensor

    def class_of(self, ties: Sequence[bool]) -> Tensor:
        r"""The classes that are left, ``UNKNOWN`` where there are several (``n``).

        Args:
            ties: For each output whether what is shown both ways counts as above.
        """
        sides = zip(self.above, self.below, ties, strict=True)
        each = [(o, u & ~o) if tie else (o & ~u, u) for o, u, tie in sides]
        cells = self.region.cells
        return cells.agreed(cells.allowed(*map(list, zip(*each, strict=True))))


@dataclass(frozen=True, eq=False)
class ParetoJudge(Judge):
    r"""A judge that compares rejected rows with the rows that were accepted.

    A rejected row is right if an accepted one comes up to it in all outputs, up to the
    accuracies, and wrong if no accepted one does: then something better was missed.
    Only rejected rows are drawn. Accepted ones are few, and all of them are measured;
    one that another certainly exceeds by more than the accuracies is wrong.

    The accepted rows are the reference. Their bounds are made of all their values of
    the run and hold together, but with the probability ``values.risk``. Given that they
    do, a rejected row that is wrong looks right only where noise carries one of its
    outputs downwards. Each output gets its part of the probability of a mistake.

    Args:
        signs: ``m`` signs: ``signs * y`` is maximised.
        accuracies: ``m`` accuracies, units of the outputs.
    """

    signs: Tensor
    accuracies: Tensor

    by_itself = False

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        r"""The number of outputs, one per sign."""
        return len(self.signs)

    @property
    def knows_sides(self) -> bool:
        r"""Whether sides tell something: here distances matter, so that they do not."""
        return False

    def missing(self, labels: Tensor, values: Values) -> Tensor:
        r"""The measurements that accepted rows lack for half of the accuracies.

        They are measured as often as a drawn row at most.
        """
        assert values.before is not None  # `by_itself` asks for it
        counts = values.before.counts
        reach = values.before.lasting_reach(values.risk)
        is_known = (reach <= self.accuracies / 2).all(dim=-1)
        is_ready = is_known | (counts >= min(values.most, LOOKS[-1]))
        more = next_look(counts).clamp_max(values.most) - counts
        return torch.where((labels == 1) & ~is_ready, more, 0)

    def verdicts(self, labels: Tensor, values: Values, mistaken: float) -> Tensor:
        r"""The verdicts: on rejected rows by values, on accepted ones by bounds."""
        assert values.before is not None  # `by_itself` asks for it
        front = (labels == 1).nonzero().view(-1)
        known = values.before.at(front)
        # The union bound is one over all rows, since values chose those accepted.
        reach = values.before.lasting_reach(values.risk)[front]
        centre = self.signs * known.mean
        lower, upper = centre - reach, centre + reach
        found = torch.zeros_like(labels, dtype=torch.int8)
        found[front] = self._accepted(lower, upper)
        rows = ((labels == 0) & (values.counts > 0)).nonzero().view(-1)
        if len(rows):
            own = values.at(rows)
            found[rows] = self.rejected(own, lower, upper, mistaken)
        return found

    def _accepted(self, lower: Tensor, upper: Tensor) -> Tensor:
        r"""The verdicts on accepted rows: -1 if one certainly exceeds them, else 0."""
        behind = lower.unsqueeze(0) - upper.unsqueeze(1)
        is_wrong = (behind > self.accuracies).all(dim=-1).any(dim=1)
        return -is_wrong.to(torch.int8)

    def rejected(
        self, own: Values, lower: Tensor, upper: Tensor, mistaken: float
    ) -> Tensor:
        r"""The verdicts on rejected rows that were measured.

        Args:
            own: What was measured of them.
            lower: ``P x m`` lower ends of the accepted rows' intervals, maximised.
            upper: ``P x m`` upper ends.
            mistaken: The probability that noise makes a wrong row look right.
        """
        m = self.n_outputs
        columns = [own.reach(j, mistaken / m) for j in range(m)]
        reach = torch.stack(columns, dim=-1)
        centre = self.signs * own.mean
        best = (centre + reach).unsqueeze(1) - self.accuracies
        is_right = (best <= lower).all(dim=-1).any(dim=1)
        worst = (centre - reach).unsqueeze(1) - self.accuracies
        is_wrong = (worst > upper).any(dim=-1).all(dim=1)
        is_exact = (reach == 0).all(dim=-1)
        return due(is_right, is_wrong, is_exact, own.counts, own.most)

    @property
    def up_to(self) -> str:
        r"""The clause that says what a wrong row is."""
        by = " by more than epsilon" if bool((self.accuracies > 0).any()) else ""
        return f" (better than each accepted one{by} in some output)"

    def is_drawn(self, labels: Tensor) -> Tensor:
        r"""The rejected rows, from which the audit draws (``N`` bools)."""
        return labels == 0

    drawn_in_words = "rejected rows"
