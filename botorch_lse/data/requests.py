r"""The request for a plan, the random numbers of a round, and what of it has come.

Rows of a plan and of measurements are multisets: their order has no meaning.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from botorch_lse.data.observations import Observations


@dataclass(frozen=True)
class PlanRequest:
    r"""The request that a strategy plans.

    Args:
        size: How many measurements.
        left: ``N`` counts of how often each row may still be measured.
        pending: Rows that are being measured and not part of the plan.
        seed: The run's seed.
        round: The number of the round that is planned.
    """

    size: int
    left: Tensor
    pending: Tensor
    seed: int
    round: int

    def after(self, rows: Tensor) -> PlanRequest:
        r"""The request that remains once some rows are planned.

        Args:
            rows: The rows that are planned, replicates included.
        """
        taken = torch.bincount(rows, minlength=len(self.left))
        return replace(
            self,
            size=self.size - len(rows),
            left=(self.left - taken).clamp_min(0),
            pending=torch.cat((self.pending, rows)),
        )


def round_generator(seed: int, round: int) -> torch.Generator:
    r"""The random numbers of one round: a function of seed and round alone.

    They are drawn on the CPU, also where a strategy computes on another device, so that
    they are the same everywhere.
    """
    # Hashed, because generators with neighbouring seeds may be correlated; 7 bytes fit
    # into torch's seeds on every platform.
    digest = hashlib.sha256(f"{seed}|{round}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def at_most(rows: Tensor, left: Tensor) -> Tensor:
    r"""The multiset ``rows`` with each row as often as ``left`` allows, in order."""
    wanted = torch.bincount(rows, minlength=len(left)).minimum(left.clamp_min(0))
    kept = torch.arange(len(left)).repeat_interleave(wanted)
    return rows[matching(rows, kept)]


def matching(rows: Tensor, wanted: Tensor) -> Tensor:
    r"""A mask of the first entries of ``rows`` that the multiset ``wanted`` holds."""
    if torch.equal(rows, wanted):  # as a rule; millions are not sorted for it
        return torch.ones(rows.numel(), dtype=torch.bool)
    if rows.numel() == 0 or wanted.numel() == 0:
        return torch.zeros(rows.numel(), dtype=torch.bool)
    length = int(torch.maximum(rows.max(), wanted.max())) + 1
    limits = torch.bincount(wanted, minlength=length)
    order = rows.argsort(stable=True)
    counts = torch.bincount(rows, minlength=length)
    first = counts.cumsum(dim=0) - counts
    # How many equal entries stand before each entry.
    rank = torch.empty_like(rows)
    rank[order] = torch.arange(rows.numel()) - first[rows[order]]
    return rank < limits[rows]


def canonical_order(observations: Observations) -> Tensor:
    r"""The permutation that sorts observations by row, value and variance.

    Sums of floats depend on their order: sorted, the order of arrival has no effect.
    """
    keys, n = [observations.indices], len(observations)
    for values in (observations.y, observations.yvar):
        if values is not None:
            keys += values.reshape(n, values[:1].numel()).unbind(dim=-1)
    # The last key leads.
    order = np.lexsort([key.cpu().numpy() for key in reversed(keys)])
    return torch.from_numpy(order).to(observations.indices.device)


def matching_at_random(
    observations: Observations, wanted: Tensor, seed: int, round: int
) -> Tensor:
    r"""A mask of the entries asked for, chosen independently of their values.

    If there are more results of a row than were asked for, some are chosen at random.
    The first ones would not do: results may be given in the order of their values, and
    the first would then be the smallest.
    """
    if torch.equal(observations.indices, wanted):  # there is nothing to choose
        return torch.ones(len(observations), dtype=torch.bool)
    order = canonical_order(observations)
    generator = round_generator(seed, round)
    drawn = torch.randperm(len(order), generator=generator, device=generator.device)
    order = order[drawn.to(order.device)]
    mask = torch.zeros(len(order), dtype=torch.bool)
    mask[order] = matching(observations.indices[order], wanted)
    return mask


def by_round(observations: Observations) -> list[Observations]:
    r"""The observations of each round; without labels all are one round."""
    if observations.round is None:
        return [observations]
    return [
        observations.select((observations.round == label).nonzero().view(-1))
        for label in observations.round.unique().tolist()
    ]
