r"""Rules that combine others: alternating, switching, and for the last runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import in_interval, kind_of, whole_number
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.goals.base import Goal
from botorch_lse.models.correlated import correlation_at
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.rules.base import (
    IntervalPolicy,
    Rule,
    ScoreRule,
    SelectionContext,
    Serves,
)
from botorch_lse.rules.costs import RowCosts
from botorch_lse.rules.lookahead import LookAhead
from botorch_lse.rules.scores import by_ratio

WRONG = 0.005
"""The share of rows expected on a wrong side at which the second rule takes over."""


@dataclass(frozen=True)
class Combined(Rule):
    r"""Base class of several rules that choose together, in turn or one after another.

    Decisions and their width do not depend on which rule chose. If all rules have the
    same width of their own, it is used, else the strategy's (``beta`` or the
    theorem's), and a rule with a width of its own only chooses by it. Intervals are
    intersected, and decisions are final, as soon as this is so for one of the rules.

    Args:
        rules: At least one rule.

    Raises:
        ValueError: If no rule is given, one is not a rule or sets the width of the
            intervals (``TruncatedVariance``), or the rules pay for different ways
            from row to row.
    """

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", checked_rules(self.rules))  # it is frozen

    @property
    def serves(self) -> Serves:  # type: ignore[override]
        r"""The goals for which all rules can choose."""
        return min(rule.serves for rule in self.rules)

    @cached_property
    def only_candidates(self) -> bool:  # type: ignore[override]
        r"""Whether all rules measure only rows in question."""
        return all(rule.only_candidates for rule in self.rules)

    @cached_property
    def intervals(self) -> IntervalPolicy:  # type: ignore[override]
        r"""The joint interval policy, whichever rule chooses."""
        return IntervalPolicy.of_all([rule.intervals for rule in self.rules])

    def on(self, pool: Pool) -> Rule:
        r"""The combined rules for a pool."""
        return replace(self, rules=tuple(rule.on(pool) for rule in self.rules))

    def check(self, pool: Pool, goal: Goal) -> None:
        r"""Complain if one of the rules belongs to another pool or goal."""
        for rule in self.rules:
            rule.check(pool, goal)

    def _seen_by(self, at: int, context: SelectionContext) -> SelectionContext:
        r"""The context with a rule's own memory, width and candidate rows."""
        rule, belief = self.rules[at], context.belief
        open_rows, beta = context.open_rows, context.beta
        if rule.only_candidates and not context.is_initial:
            open_rows = open_rows & belief.fits.layout.by_row(belief.sides.candidates)
        width = rule.intervals.width
        if width is not None and self.intervals.width is None:
            beta = width(belief.n_intervals)
        belief = replace(belief, memory=belief.memory[at])
        return replace(context, belief=belief, open_rows=open_rows, beta=beta)

    # --- memory: one of each rule -----------------------------------------------------

    def start(self, posterior: PoolPosterior | None, beta: float) -> Any:
        r"""The memories of all rules before any round."""
        return tuple(rule.start(posterior, beta) for rule in self.rules)

    def judged(self, memory: Any, widest: float | None, beta: float) -> Any:
        r"""The memories of all rules after the sides were updated."""
        pairs = zip(self.rules, memory, strict=True)
        return tuple(rule.judged(own, widest, beta) for rule, own in pairs)

    def measured(self, before: Any, after: Any, rows: Tensor) -> Any:
        r"""The memories of all rules after a round whose rows were measured."""
        triples = zip(self.rules, before, after, strict=True)
        return tuple(rule.measured(b, a, rows) for rule, b, a in triples)

    def order(self, memory: Any, rows: Tensor, before: Tensor) -> Tensor:
        r"""The visiting order by the first rule that does more than sort."""
        by_number = rows.sort().values
        for rule, own in zip(self.rules, memory, strict=True):
            found = rule.order(own, rows, before)
            if not torch.equal(found, by_number):
                return found
        return by_number


@dataclass(frozen=True)
class AlternatingRules(Combined):
    r"""Several rules that take turns, one measurement each.

    Rules that err in other ways cover for each other: one that explores, such as
    ``Straddle``, finds the regions that ``ExpectedMisclassification`` then works out.
    The first measurement of a run is chosen by the first rule, the next one by the
    second, and so on through batches and rounds, so that single rows alternate too.
    Every rule knows of the rows that the others chose, as of rows that are being
    measured. A rule that has no row left to choose passes its turn on.

    Args:
        rules: At least one rule.

    Raises:
        ValueError: If one of the rules takes turns itself; and see ``Combined``.

    Example:
        >>> from botorch_lse.strategies import ExpectedMisclassification, Straddle
        >>> joint = ExpectedMisclassification(batch="joint")
        >>> rule = AlternatingRules((Straddle(), joint))
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(isinstance(rule, AlternatingRules) for rule in self.rules):
            raise ValueError(
                "Expected each of the `rules` to choose by itself, but got "
                "AlternatingRules inside AlternatingRules. Write all rules into one "
                "tuple, some of them twice."
            )

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The rows chosen in turn, starting with the rule whose turn it is."""
        chosen: list[int] = []
        request = replace(request, left=request.left.clone())
        while len(chosen) < request.size:
            row = self._next(context, request)
            if row is None:
                break
            chosen.append(row)
            request.left[row] -= 1
            pending = torch.cat((request.pending, torch.tensor([row])))
            request = replace(request, pending=pending)
            if len(chosen) < request.size:
                expected = context.fits.expecting(torch.tensor([row]))
                context = replace(context, fits=expected)
        return torch.tensor(chosen, dtype=torch.long)

    def _next(self, context: SelectionContext, request: PlanRequest) -> int | None:
        turn = len(context.belief.fits.measured) + len(request.pending)
        for i in range(turn, turn + len(self.rules)):
            at = i % len(self.rules)
            seen = self._seen_by(at, context)
            found = self.rules[at].rows(seen, replace(request, size=1))
            if found.numel():
                return int(found[0])
        return None


@dataclass(frozen=True)
class SwitchingRule(Combined):
    r"""A rule that learns, followed by another one that finishes.

    The rules that need the fewest measurements until the answer is *right*, such as
    ``ExpectedMisclassification``, are not those that need the fewest until it is
    *sure*: nothing is to be gained at a row whose side is known with probability
    0.999, and the width that decides may want to know it better. So the first rule
    chooses whole batches as long as more than a share of the rows is expected to be on
    a wrong side, and the second one, such as ``Ambiguity``, from then on. After a
    surprise the first one takes over again.

    Args:
        rules: The rule that learns, and the one that finishes.
        wrong: The share of all rows, in (0, 1). What is expected to be wrong is the sum
            over the rows in question of the probability that a row is not on the side
            of its mean.

    Raises:
        ValueError: If there are not two rules or ``wrong`` is outside (0, 1); and see
            ``Combined``.

    Example:
        >>> from botorch_lse.strategies import Ambiguity, ExpectedMisclassification
        >>> sur = ExpectedMisclassification(batch="joint")
        >>> rule = SwitchingRule((sur, Ambiguity()), wrong=0.01)
    """

    wrong: float = WRONG

    def __post_init__(self) -> None:
        super().__post_init__()
        in_interval(self.wrong, "wrong", 0.0, 1.0)
        if len(self.rules) != 2:
            raise ValueError(
                "Expected `rules` to be the one that learns and the one that finishes, "
                f"but got {len(self.rules)}."
            )

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The rows of a batch, all chosen by one of the two rules.

        A rule that has no row left to choose passes its turn on.
        """
        learns = context.is_initial or expected_wrong(context) > self.wrong
        for at in (0, 1) if learns else (1, 0):
            found = self.rules[at].rows(self._seen_by(at, context), request)
            if len(found):
                break  # else all rows that the rule may choose are excluded or used up
        return found


def expected_wrong(context: SelectionContext) -> float:
    r"""The expected share of items on the wrong side of the level.

    Items count by their weights, where they have them. The share is a function of the
    complete rounds: rows that are being measured have not made anything surer yet.
    """
    belief = context.belief
    targets = context.items[belief.sides.candidates & context.is_first_copy]
    doubt = doubt_of(context, belief.fits.posteriors, targets)
    weights = context.weights
    if weights is None:
        return float(doubt.sum()) / len(context.items)
    return float(weights[targets] @ doubt) / float(weights.sum())


def doubt_of(
    context: SelectionContext, posteriors: Sequence[PoolPosterior], rows: Tensor
) -> Tensor:
    r"""The probability that each row does not have its likeliest class.

    Args:
        context: The question.
        posteriors: Of each output.
        rows: ``T`` rows of the posteriors.
    """
    assert context.region is not None  # the rules that ask serve regions
    mean = [posterior.mean[rows] for posterior in posteriors]
    sigma = [posterior.sigma[rows] for posterior in posteriors]
    correlation = correlation_at(posteriors, rows)
    return context.region.at(rows).doubt(mean, sigma, correlation)


def checked_rules(rules: Any) -> tuple[Rule, ...]:
    r"""The ``rules`` as a tuple, if they can be combined.

    Raises:
        ValueError: See ``Combined``.
    """
    if not isinstance(rules, (tuple, list)) or not rules:
        raise ValueError(
            "Expected `rules` to be a tuple of at least one rule, such as "
            f"`(Straddle(), ExpectedMisclassification())`, but got {rules!r}."
        )
    for rule in rules:
        name = kind_of(rule)
        if not isinstance(rule, Rule):
            raise ValueError(
                f"Expected each of the `rules` to be one such as `Straddle()`, but got "
                f"{name}."
            )
        if type(rule).width is not Rule.width:
            raise ValueError(
                "Expected `rules` that leave the width of the intervals alone, but got "
                f"{name}, which sets it (by epochs, where it is TruncatedVariance). "
                "`TargetedVariance()` or `ExpectedMisclassification()` have none."
            )
    ways = {costs.travel for costs in costs_of(rules)} - {None}
    if len(ways) > 1:
        raise ValueError(
            "Expected `rules` that pay for the same way from row to row, but got "
            f"{len(ways)} functions: a batch is visited in one order. Give all of them "
            "the same `costs`."
        )
    return tuple(rules)


def costs_of(rules: Sequence[Rule]) -> Iterator[RowCosts]:
    r"""The costs that rules, and the rules inside them, were given."""
    for rule in rules:
        if isinstance(rule, Combined):
            yield from costs_of(rule.rules)
        elif isinstance(rule, LookAhead) and rule.costs is not None:
            yield rule.costs


@dataclass(frozen=True)
class MisclassificationProbability(ScoreRule):
    r"""Measure the row in question with the largest weighted probability of error.

    The score is the probability that the row does not have its likeliest side, times
    its weight. For rows of equal weight the choice is that of ``UFunction``.

    Source:
        Li and Xiu (2010), the hybrid method for failure probabilities: rows near the
        limit state are simulated, the others are taken from the model.
    """

    only_candidates = True

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The weighted probability of a wrong side; close ratios tie."""
        rows = torch.arange(len(context.posterior.mean))
        wrong = doubt_of(context, context.posteriors, rows)
        if context.weights is not None:
            weights = context.weights / context.weights.max()
            wrong[: len(weights)] *= weights[: len(wrong)]
        if (matters := context.rows_that_matter) is not None:
            # Measuring an output on which the side does not hang takes off no doubt.
            each = [wrong.masked_fill(~own, 0.0) for own in matters]
            wrong = context.fits.layout.merged(each, partial(torch.amax, dim=0))
        return by_ratio(wrong, context)


@dataclass(frozen=True)
class FinalRuns(Combined):
    r"""A rule for the first measurements, and another one for all later ones.

    With ``MisclassificationProbability()`` for the second rule and a simulator without
    noise this is the hybrid mode: after ``after`` runs, which include the initial
    design, each further run replaces what the model says of the most doubtful row by
    its true side.

    Args:
        rules: The rule that learns, and the one for the last runs.
        after: How many measurements the first rule chooses, pending ones included.

    Raises:
        ValueError: If there are not two rules or ``after`` is negative; and see
            ``Combined``.

    Example:
        >>> from botorch_lse.strategies import Straddle
        >>> rule = FinalRuns((Straddle(), MisclassificationProbability()), after=60)
    """

    after: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number(self.after, "after", 0)
        if len(self.rules) != 2:
            raise ValueError(
                "Expected `rules` to be the one that learns and the one for the last "
                f"runs, but got {len(self.rules)}."
            )

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The rows of a batch, those of the last runs after those of the first."""
        n = len(context.belief.fits.measured) + len(request.pending)
        first = min(max(self.after - n, 0), request.size)
        found = torch.empty(0, dtype=torch.long)
        if first:
            seen = self._seen_by(0, context)
            found = self.rules[0].rows(seen, replace(request, size=first))
        if len(found) == request.size:
            return found
        left = request.left - torch.bincount(found, minlength=len(request.left))
        rest = replace(
            request,
            size=request.size - len(found),
            left=left,
            pending=torch.cat((request.pending, found)),
        )
        if len(found):
            context = replace(context, fits=context.fits.expecting(found))
        last = self.rules[1].rows(self._seen_by(1, context), rest)
        if len(last):
            return torch.cat((found, last))
        # All rows that the last runs may choose are excluded or used up. Where it is
        # those of the first rule, the last runs have begun already.
        others = self.rules[0].rows(self._seen_by(0, context), rest)
        return torch.cat((found, others))
