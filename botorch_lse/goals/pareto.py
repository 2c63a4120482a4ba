r"""Pareto sets: the rows that no other row exceeds in every output."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import in_interval
from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    Sides,
    with_contradictions,
)
from botorch_lse.confidence.judges import Judge, ParetoJudge
from botorch_lse.data.classification import (
    ACCEPTED,
    Classification,
    gaussian_probability_above,
)
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.goals.base import Goal, GoalFacts, Intervals, Targets, all_are_right
from botorch_lse.models.gaussian_process import keep_memory
from botorch_lse.surrogate.settings import one_each

_COPIES = 8
"""The number of arrays (outputs x rows x rivals) that exist at once."""
PAIRS = 2**18
"""The number of pairs of a row and a rival that are compared together.
An array of them is 2 MiB: a dozen passes over it stay in a cache, and what is freed
after a block is not given back to the system, from which it would come page by page."""


@dataclass(frozen=True, eq=False)
class ParetoEstimate:
    r"""The estimates of every row: its outputs and its margin.

    A decided row keeps the margin of the last round in which it was open.

    Args:
        mean: ``N x m`` estimated means, units and signs of ``y``.
        lower: ``N x m`` lower ends of their confidence intervals.
        upper: ``N x m`` upper ends.
        sigma: ``N x m`` standard deviations.
        margin: ``N``, how far the row is from being dominated by another that was not
            rejected, negative if it is, units of ``y``.
        margin_lower: ``N`` lower ends of the margins' intervals.
        margin_upper: ``N`` upper ends.
        margin_sigma: ``N`` standard deviations of the comparison that decides.
    """

    mean: Tensor
    lower: Tensor
    upper: Tensor
    sigma: Tensor
    margin: Tensor
    margin_lower: Tensor
    margin_upper: Tensor
    margin_sigma: Tensor

    @classmethod
    def unknown(cls, N: int, m: int) -> ParetoEstimate:
        r"""The estimate before any observation: means 0, infinite intervals."""
        zero = torch.zeros(N, m, dtype=torch.float64)
        endless = torch.full_like(zero, torch.inf)
        each = (zero, -endless, endless, endless)
        return cls(*each, *(part[:, 0].clone() for part in each))

    @property
    def half_width(self) -> Tensor:
        r"""The half widths of the intervals (``N x m``)."""
        return (self.upper - self.lower) / 2


def checked_directions(maximize: object) -> tuple[bool, ...]:
    r"""The checked directions: for each output, whether more is better.

    Raises:
        ValueError: If it is not one bool per output.
    """
    if not isinstance(maximize, Sequence) or not len(maximize):
        raise ValueError(
            f"Expected `maximize` to be one bool per output, but got {maximize!r}. "
            "Write `(True, False)` for two outputs."
        )
    if not all(isinstance(flag, bool) for flag in maximize):
        raise ValueError(f"Expected `maximize` to hold bools, but got {maximize!r}.")
    return tuple(maximize)


def signs_of(maximize: Sequence[bool]) -> Tensor:
    r"""The signs, 1 or -1, such that ``signs * y`` is to be maximised (``m``)."""
    return torch.tensor([1.0 if up else -1.0 for up in maximize]).double()


def with_columns(
    observations: Observations, m: int, each: str = "entry of `maximize`"
) -> Observations:
    r"""The observations with ``y`` as a matrix, one column per output.

    Args:
        observations: As they were told.
        m: The number of outputs.
        each: What an output is to the caller, in words.

    Raises:
        BotorchTensorDimensionError: If there are other columns.
    """
    y, yvar = observations.y, observations.yvar
    if y.ndim == 1 and m == 1:
        yvar = None if yvar is None else yvar.unsqueeze(-1)
        return replace(observations, y=y.unsqueeze(-1), yvar=yvar)
    if y.ndim != 2 or y.shape[1] != m:
        raise BotorchTensorDimensionError(
            f"Expected `y` with one column per {each} ({m}), but got shape "
            f"{tuple(y.shape)}."
        )
    return observations


def pareto_answer(
    side: Tensor,
    found: ParetoEstimate,
    guarantee: str,
    pool: Pool,
    contradicted: Tensor | None = None,
) -> Classification:
    r"""The answer about a Pareto set.

    Args:
        side: ``N`` codes.
        found: The margins of every row.
        guarantee: What is claimed.
        pool: The rows.
        contradicted: ``N x m`` bools of rows and outputs; default none.
    """
    rows = torch.zeros_like(side, dtype=torch.bool)
    if contradicted is not None:
        rows = contradicted.any(dim=-1)
    return Classification(
        above=side == ABOVE,
        below=side == BELOW,
        undecided=side == UNDECIDED,
        lower=found.margin_lower,
        upper=found.margin_upper,
        mean=found.margin,
        sigma=found.margin_sigma,
        probability_above=gaussian_probability_above(
            found.margin, found.margin_sigma, 0.0
        ),
        guarantee=with_contradictions(guarantee, rows),
        pool=pool,
        contradicted=rows,
        meaning=ACCEPTED,
    )


@dataclass(frozen=True, eq=False)
class RivalComparison:
    r"""A comparison of rows with rivals in one output: ``g(row) - g(rival)``.

    Args:
        lower: ``B x L`` lower ends of the intervals, for the reader to change.
        upper: ``B x L`` upper ends, for the reader to change.
        mean: ``B x L`` means, of which more is better.
        sigma: From one rival for each row, numbers below ``L``, to the ``B`` standard
            deviations: those of the other pairs are not needed.
    """

    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Callable[[Tensor], Tensor]


Compare = Callable[[Tensor, Tensor], Iterable[RivalComparison]]
"""A function from rows and rivals to their comparison in each output."""


@dataclass(frozen=True, eq=False)
class Judgement:
    r"""The margins of ``R`` rows, and which rivals may still dominate them.

    A row is dominated where a rival exceeds it in every output, so its margin is ``min
    over rivals of max over outputs of g(row) - g(rival)``.

    Args:
        lower: ``R`` lower ends of the margins.
        upper: ``R`` upper ends; negative where a rival certainly exceeds the row.
        mean: ``R`` margins of the means; infinite for a row without rival.
        sigma: ``R`` standard deviations of the comparison that decides.
        threatened: ``R x L`` bools: the rival may exceed the row by ``epsilon`` in
            every output.
    """

    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor
    threatened: Tensor


@dataclass(frozen=True, eq=False)
class EqualRivals:
    r"""The rivals that are equal to a row, found without a look at all of them.

    Args:
        points: ``L`` numbers of the rivals' points, ascending.
        order: ``L``, which rival each of these is.
    """

    points: Tensor
    order: Tensor

    @classmethod
    def of(cls, points: Tensor) -> EqualRivals:
        r"""The rivals in the order of their points (``L`` numbers)."""
        return cls(*points.sort(stable=True))

    def to(self, points: Tensor) -> tuple[Tensor, Tensor]:
        r"""The pairs of a row and an equal rival, both by number, in ascending order.

        Args:
            points: ``R`` numbers of the rows' points.
        """
        first = torch.searchsorted(self.points, points)
        many = torch.searchsorted(self.points, points, right=True) - first
        row = torch.arange(len(points)).repeat_interleave(many)
        nth = torch.arange(len(row)) - (many.cumsum(0) - many)[row]
        return row, self.order[first[row] + nth]


def judge(
    rows: Tensor,
    rivals: Tensor,
    compare: Compare,
    epsilon: Tensor,
    budget: int,
    points: Tensor,
) -> Judgement:
    r"""The judgement of rows against rivals; a row never rivals itself or an equal one.

    Args:
        rows: ``R`` rows.
        rivals: ``L`` rows.
        compare: Their intervals.
        epsilon: ``m`` tolerances, units of the outputs.
        budget: Bytes for temporary arrays.
        points: ``N`` numbers, equal for equal rows.
    """
    R, ends = rows.numel(), torch.zeros(4, rows.numel(), dtype=torch.float64)
    each = _COPIES * epsilon.numel() * rivals.numel()
    # Beside the pairs there may be room for fewer rows.
    most = (budget - R * rivals.numel()) // (8 * each)
    size = max(1, min(most, PAIRS // rivals.numel()))
    keep_memory()
    equal = EqualRivals.of(points[rivals])
    # Written in place: small results kept between large temporary arrays would leave
    # holes that no later array fits into, 2 GiB of them at 10,000 rows.
    threatened = torch.zeros(R, rivals.numel(), dtype=torch.bool)
    for start in range(0, R, size):
        block = slice(start, min(start + size, R))
        own = equal.to(points[rows[block]])
        *found, threatened[block] = _judged(compare(rows[block], rivals), epsilon, own)
        ends[:, block] = torch.stack(found)
    lower, upper, mean, sigma = ends
    return Judgement(lower, upper, mean, sigma, threatened)


def _judged(
    compared: Iterable[RivalComparison], epsilon: Tensor, own: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    found, is_exact = list[RivalComparison](), not bool(epsilon.any())
    # One output after the other, and in place: passes over the pairs are what counts.
    for one, tolerance in zip(compared, epsilon.tolist(), strict=True):
        least = one.lower if is_exact else one.lower + tolerance
        if not found:
            lower, upper, mean, tolerant = one.lower, one.upper, one.mean, least
        else:
            lower = torch.maximum(lower, one.lower, out=lower)
            tolerant = lower if is_exact else torch.maximum(tolerant, least)
            upper = torch.maximum(upper, one.upper, out=upper)
            mean = torch.maximum(mean, one.mean)
        found.append(one)
    threatened, endless = tolerant <= 0, lower.new_tensor(torch.inf)
    threatened[own] = False
    ends = [end.index_put_(own, endless).amin(dim=1) for end in (lower, upper)]
    margin, rival = mean.index_put(own, endless).min(dim=1)
    at = torch.arange(len(rival))
    # The output that decides: the first of the largest differences.
    output = torch.stack([one.mean[at, rival] for one in found]).argmax(dim=0)
    sigma = torch.stack([one.sigma(rival) for one in found])[output, at]
    return *ends, margin, sigma, threatened


def _of_rivals(pairs: Tensor, rival: Tensor) -> Tensor:
    r"""The entry of one rival for each row (``B``) of ``B x L`` numbers."""
    return pairs.gather(1, rival.unsqueeze(1)).squeeze(1)


@dataclass(frozen=True, eq=False)
class ParetoSides(Sides):
    r"""The accepted, rejected and open rows of a Pareto set.

    Args:
        active: ``N`` bools: open rows, and accepted ones that may still decide these.
        estimate: The estimate of every row; else see ``Sides``.
    """

    active: Tensor = field(kw_only=True)
    estimate: ParetoEstimate = field(kw_only=True)

    @property
    def open(self) -> Tensor:
        r"""The open rows, ascending."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @property
    def live(self) -> Tensor:
        r"""The rows that are not rejected, ascending."""
        return (self.side != BELOW).nonzero().view(-1)

    def reopened(self, rows: Tensor) -> ParetoSides:
        r"""The sides with ``rows`` (``N`` bools) open again."""
        found = super().reopened(rows)
        active = self.active | rows
        return replace(
            self, side=found.side, candidates=found.candidates, active=active
        )

    def sorted_out(self, found: Judgement) -> ParetoSides:
        r"""The sides after open rows are compared with all rows that are not rejected.

        Rows certainly exceeded are rejected first and are then no rivals any more:
        whatever they exceed, the row that exceeds them does too.
        """
        rows, rivals = self.open, self.live
        side = self.side.clone()
        side[rows[found.upper < 0]] = BELOW
        # In place: this is the one array of all pairs that is kept, and is ours.
        threatened = found.threatened
        threatened.index_fill_(1, (side[rivals] == BELOW).nonzero().view(-1), False)
        accepted = (side[rows] == UNDECIDED) & ~threatened.amax(dim=1)
        side[rows[accepted]] = ABOVE
        active = side == UNDECIDED
        threatened.index_fill_(0, (side[rows] != UNDECIDED).nonzero().view(-1), False)
        active[rivals[threatened.amax(dim=0)]] = True
        estimate = with_margins(self.estimate, rows, found)
        return replace(
            self, side=side, candidates=side != BELOW, active=active, estimate=estimate
        )


def with_margins(
    estimate: ParetoEstimate, rows: Tensor, found: Judgement
) -> ParetoEstimate:
    r"""The estimate with the margins of ``rows``; a single row keeps its own."""
    new = {
        "margin": found.mean,
        "margin_lower": found.lower,
        "margin_upper": found.upper,
        "margin_sigma": found.sigma,
    }
    has_rival = found.mean.isfinite()
    kept = {
        part.name: getattr(estimate, part.name).index_put(
            (rows[has_rival],), new[part.name][has_rival]
        )
        for part in fields(estimate)
        if part.name in new
    }
    return replace(estimate, **kept)


@dataclass(frozen=True)
class ParetoSet(Goal):
    r"""The Pareto optimal rows: above is accepted, below rejected.

    Args:
        maximize: For each output, whether more is better.
        accuracies: One accuracy per output, in its units; default none.
    """

    maximize: tuple[bool, ...]
    accuracies: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        checked_directions(self.maximize)
        given = self.accuracies or (0.0,) * len(self.maximize)
        for accuracy in one_each(given, "accuracies", len(self.maximize)):
            in_interval(accuracy, "accuracies", 0.0, float("inf"), closed_low=True)

    theorem: ClassVar[str] = "Theorem 1, its union bound over all outputs"
    without_pairs: ClassVar[str] = "`GEGELinearStrategy`, on features, keeps no pairs"

    def question(self, names: Sequence[str]) -> str:
        r"""The question, with what is better in each output."""
        wanted = zip(self.maximize, names, strict=True)
        return " and ".join(f"{'more' if up else 'less'} {name}" for up, name in wanted)

    @property
    def facts(self) -> GoalFacts:
        r"""The facts: the directions, and that no level decides."""
        return GoalFacts(
            promise=self._promise,
            tolerance=float(self.tolerances.max()),
            n_outputs=len(self.maximize),
            directions=self.maximize,
            n_comparisons=0,
            has_one_level=False,
            seeks_best=True,
            closest="rows hardly better or worse than others",
            accuracy="`epsilon` (of a goal, `accuracies`)",
        )

    @property
    def _promise(self) -> str:
        return all_are_right(0.0)

    def region(self, mean: Sequence[Tensor]) -> None:
        r"""The region of values: ``None``, as rows are compared with each other."""
        return

    def bytes_for(self, n_items: int) -> int:
        r"""The bytes of one bool per pair, and of one item compared with all others."""
        return n_items**2 + 8 * _COPIES * len(self.maximize) * n_items

    @property
    def signs(self) -> Tensor:
        r"""The signs, 1 or -1, such that ``signs * y`` is to be maximised (``m``)."""
        return signs_of(self.maximize)

    @property
    def tolerances(self) -> Tensor:
        r"""The accuracy of each output as a tensor of ``m`` numbers."""
        given = self.accuracies or (0.0,) * len(self.maximize)
        return torch.tensor(given, dtype=torch.float64).expand(len(self.maximize))

    @property
    def up_to(self) -> str:
        r"""The accuracies in words: one number if all are equal."""
        parts = [written(e) for e in self.tolerances.tolist()]
        return parts[0] if len({*parts}) == 1 else ", ".join(parts)

    def start(self, n_items: int) -> ParetoSides:
        r"""The sides before any interval: every row is open."""
        start, m = Sides.start(n_items), len(self.maximize)
        return ParetoSides(
            start.side,
            start.candidates,
            active=start.candidates,
            estimate=ParetoEstimate.unknown(n_items, m),
        )

    def judge(self) -> Judge:
        r"""The judge that compares values with the accepted rows."""
        return ParetoJudge(self.signs, self.tolerances)

    @abstractmethod
    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after rows are compared with each other."""

    def against(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""The items whose sides disagree: none, as sides are made anew each time."""
        return torch.zeros_like(sides.candidates)

    def targets(self, sides: Sides, rows: Tensor) -> Targets:
        r"""The rows that are open or may still decide open ones."""
        return Targets(rows[pareto_sides(sides).active])

    def answer(self, sides: Sides, seen: Intervals, claim: str) -> Classification:
        r"""The answer, whose mean and bounds are margins."""
        regions = seen.all_regions
        contradicted = torch.stack([r.contradicted for r in regions], dim=-1)
        found = pareto_sides(sides)
        pool = regions[0].pool
        assert pool is not None  # the items
        return pareto_answer(found.side, found.estimate, claim, pool, contradicted)

    def judged(
        self, sides: ParetoSides, seen: Intervals, compare: Compare
    ) -> ParetoSides:
        r"""The sides after the open rows are compared; at least one must be open."""
        given = (self.tolerances, seen.belief.memory_budget, seen.points)
        return sides.sorted_out(judge(sides.open, sides.live, compare, *given))


def pareto_sides(sides: Sides) -> ParetoSides:
    r"""The sides, checked to be those of a goal for several outputs.

    Raises:
        ValueError: If another goal made them.
    """
    if not isinstance(sides, ParetoSides):
        raise ValueError(
            "Expected a strategy whose goal is a Pareto set, but its answer has no "
            "outputs. Read `state.classification`."
        )
    return sides


def with_outputs(sides: Sides, seen: Intervals) -> ParetoSides:
    r"""The sides with the outputs' current regions in the estimate."""
    found = pareto_sides(sides)
    columns = {
        name: torch.stack([getattr(r, name) for r in seen.all_regions], dim=-1)
        for name in ("mean", "lower", "upper", "sigma")
    }
    return replace(found, estimate=replace(found.estimate, **columns))


@dataclass(frozen=True)
class ParetoByDifferences(ParetoSet):
    r"""The Pareto set by the intervals of differences between rows, in each output.

    A row is rejected once another one certainly exceeds it in every output, and
    accepted once each other row is certainly exceeded (up to the tolerances) in some
    output.

    Args:
        maximize: For each output, whether more is better.
        accuracies: One accuracy per output, in its units; default none.

    Source:
        Auer et al. (2016), with posterior intervals in place of empirical gaps.
    """

    @property
    def _promise(self) -> str:
        if not bool(self.tolerances.any()):
            return "accepted rows are Pareto optimal and rejected ones are not"
        return (
            "no rejected row is Pareto optimal, and no accepted row is exceeded by "
            f"more than {self.up_to} in every output"
        )

    def n_claims(self, n_items: int) -> int:
        r"""The number of outputs times rows and unordered pairs of rows."""
        return len(self.maximize) * n_items * (n_items + 1) // 2

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after open rows are compared by the intervals of differences."""
        found = with_outputs(sides, seen)
        if found.open.numel() == 0:
            return found

        live, belief = found.live, seen.belief
        outputs = [
            (sign * mean, belief.differences(j, live, 1.0))
            for j, (sign, mean) in enumerate(
                zip(self.signs.tolist(), seen.mean, strict=True)
            )
        ]

        def compare(rows: Tensor, rivals: Tensor) -> Iterator[RivalComparison]:
            # The rivals are the same for each block of rows: those not rejected.
            for mean, widths in outputs:
                apart = mean[rows].unsqueeze(-1) - mean[rivals]
                sigma, half = widths(rows)
                chosen = partial(_of_rivals, sigma)
                yield RivalComparison(apart - half, half.add_(apart), apart, chosen)

        return self.judged(found, seen, compare)
