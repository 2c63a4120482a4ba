r"""The request for a plan, and the random numbers of a round."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import torch
from torch import Tensor


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
