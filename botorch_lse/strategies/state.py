r"""What a strategy knows: a function of the seed and of what was told."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from botorch_lse.problem import Classification, Observations
from botorch_lse.strategies.forecast import Forecast

if TYPE_CHECKING:
    from botorch_lse.strategies.loop import Strategy


@dataclass(frozen=True, eq=False)
class State:
    r"""A strategy's state. It never changes; ``tell`` returns a new one.

    Args:
        seed: The seed of ``init``.
        round: The round that ``ask`` asks for.
        history: The observations of all complete rounds, each round sorted by row.
        classification: The answer after the complete rounds.
        stop_reason: ``"decided"``, ``"budget"``, ``"rows exhausted"``, or ``None``.
        plan: The rows of the open round, if some of them are told already.
        told: The observations of the open round so far.
        deferred: Observations nobody asked for, told while a round is open. Once it is
            complete each is a round of its own, unless the next plan asks for it.
        abandoned: For each round, rows that were used up without a result.
        belief: What the strategy derived from ``history``.
        strategy: The strategy that made the state; another one that asks something
            else refuses it.
        stored_plan: The rows of the round as a stored experiment has them; then they
            are not planned again.
    """

    seed: int
    round: int
    history: Observations
    classification: Classification
    stop_reason: str | None
    belief: Any = field(repr=False)
    plan: Tensor | None = None
    told: Observations = field(default_factory=Observations.empty)
    deferred: tuple[Observations, ...] = ()
    abandoned: tuple[tuple[int, int], ...] = ()
    strategy: Strategy = field(kw_only=True, repr=False)
    stored_plan: Tensor | None = field(default=None, kw_only=True, repr=False)

    @cached_property
    def planned_rows(self) -> Tensor:
        r"""The rows of the round, sorted: a function of the complete rounds.

        Kept beside the fields, so that asking and telling plan once; a copy made by
        ``dataclasses.replace`` does not have it.
        """
        for known in (self.plan, self.stored_plan):
            if known is not None:
                return known
        return self.strategy._planned_rows(self)

    @property
    def is_done(self) -> bool:
        r"""Whether there is nothing more to ask."""
        return self.stop_reason is not None

    def forecast(self) -> Forecast:
        r"""About how many more evaluations until everything is decided.

        Computed when asked: a design or two dozen of the current estimate.
        """
        if not bool(self.classification.undecided.any()):
            return Forecast(0, "Everything is decided.")
        return self.strategy._forecast(self)

    @property
    def observations(self) -> Observations:
        r"""Everything told, labelled by round; ``replay`` makes this state from it."""
        return self.history.append(self.waiting)

    @property
    def waiting(self) -> Observations:
        r"""What was told and no complete round holds yet, labelled by round."""
        later = [o.at_round(self.round + 1 + i) for i, o in enumerate(self.deferred)]
        return reduce(Observations.append, (self.told, *later))

    @property
    def n_used(self) -> int:
        r"""Measurements made or used up."""
        return self.observations.n_measured + len(self.abandoned)

    def abandoned_in(self, round: int) -> Tensor:
        r"""The rows abandoned in a round."""
        rows = [row for r, row in self.abandoned if r == round]
        return torch.tensor(rows, dtype=torch.long)

    def uses(self, n_rows: int) -> Tensor:
        r"""``n_rows`` counts: how often each row was measured or used up."""
        lost = torch.tensor([row for _, row in self.abandoned], dtype=torch.long)
        rows = torch.cat((self.observations.measured, lost))
        return torch.bincount(rows, minlength=n_rows)


def remove(rows: Tensor, taken: Tensor) -> Tensor:
    r"""The multiset ``rows`` without ``taken``, order kept; extra ones are ignored."""
    return rows[~matching(rows, taken)]


def matching(rows: Tensor, wanted: Tensor) -> Tensor:
    r"""Mask of the first entries of ``rows`` that the multiset ``wanted`` holds."""
    if torch.equal(rows, wanted):  # as a rule; millions are not sorted for it
        return torch.ones(rows.numel(), dtype=torch.bool)
    if rows.numel() == 0 or wanted.numel() == 0:
        return torch.zeros(rows.numel(), dtype=torch.bool)
    length = int(torch.maximum(rows.max(), wanted.max())) + 1
    limits = torch.bincount(wanted, minlength=length)
    order = rows.argsort(stable=True)
    counts = torch.bincount(rows, minlength=length)
    first = counts.cumsum(dim=0) - counts
    # The how-manieth of its kind each entry is, from 0.
    rank = torch.empty_like(rows)
    rank[order] = torch.arange(rows.numel()) - first[rows[order]]
    return rank < limits[rows]


def in_canonical_order(observations: Observations) -> Observations:
    r"""Sorted by row, then value, then variance: arrival order leaves no trace."""
    if len(observations) == 0:
        return observations
    return observations.select(canonical_order(observations))


def canonical_order(observations: Observations) -> Tensor:
    r"""The permutation that sorts them."""
    keys = [observations.indices, *_columns(observations.y)]
    if observations.yvar is not None:
        keys += _columns(observations.yvar)
    order = np.lexsort([key.numpy() for key in reversed(keys)])  # the last key leads
    return torch.from_numpy(order)


def _columns(values: Tensor) -> tuple[Tensor, ...]:
    return (values,) if values.ndim == 1 else values.unbind(dim=-1)


def matching_at_random(
    observations: Observations, wanted: Tensor, seed: int, round: int
) -> Tensor:
    r"""Mask of entries that the multiset ``wanted`` holds, whatever their values.

    Of more results than were asked for the first so many would do, were they not sorted
    by value, or told in such an order: they would be the smallest.
    """
    if torch.equal(observations.indices, wanted):  # there is nothing to choose
        return torch.ones(len(observations), dtype=torch.bool)
    order = canonical_order(observations)
    generator = round_generator(seed, round)
    order = order[torch.randperm(len(order), generator=generator)]
    mask = torch.zeros(len(order), dtype=torch.bool)
    mask[order] = matching(observations.indices[order], wanted)
    return mask


def round_generator(seed: int, round: int) -> torch.Generator:
    r"""The random numbers of one round: a function of seed and round alone."""
    digest = hashlib.sha256(f"{seed}|{round}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
