r"""Costs of measurements, and the order in which to measure a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import check_shape, complaint
from botorch_lse.data.pool import Pool

RowCost = Callable[[int | None, Tensor], Tensor]
"""A function of the row before (``None``: none) and of ``k`` rows: their costs."""


@dataclass(frozen=True, eq=False)
class RowCosts:
    r"""The costs of a pool's rows: fixed, or depending on the row before.

    Args:
        pool: The rows; ``pool.costs`` if ``travel`` is ``None``, or 1.
        travel: See ``RowCost``.

    Raises:
        ValueError: If both ``pool.costs`` and ``travel`` are given, ``travel`` is not a
            function, or a cost is not positive.
    """

    pool: Pool
    travel: RowCost | None = None

    def __post_init__(self) -> None:
        costs = self.pool.costs
        if costs is not None and self.travel is not None:
            raise ValueError(
                "Expected the costs once, but got both `cost` and `pool.costs`. Leave "
                "one out."
            )
        if costs is not None:
            positive_costs(costs, "pool.costs", len(costs))
        if self.travel is not None and not callable(self.travel):
            raise ValueError(
                "Expected `cost` to be a function (previous row or None, rows) -> "
                f"costs, but got {type(self.travel).__name__}. Costs per row stand in "
                "`Pool(X, costs=...)`."
            )

    def of(self, previous: int | None, rows: Tensor) -> Tensor:
        r"""The costs of measuring each of ``k`` rows next, after row ``previous``."""
        if self.travel is not None:
            # On the CPU, where a user's table of distances lives.
            given = self.travel(previous, rows.cpu())
            return positive_costs(given, "cost", len(rows)).to(rows.device)
        if self.pool.costs is not None:
            return self.pool.costs[rows]
        return torch.ones(len(rows), dtype=torch.float64)

    def along(self, previous: int | None, rows: Tensor) -> float:
        r"""The summed cost of measuring rows in this order, after row ``previous``."""
        if self.travel is None:
            return float(self.of(previous, rows).sum())
        total = 0.0
        for row in rows.tolist():
            total += float(self.of(previous, torch.tensor([row])))
            previous = row
        return total

    def visiting_order(self, previous: int | None, rows: Tensor) -> Tensor:
        r"""The rows in visiting order: after ``previous`` always the cheapest next.

        Among equally cheap rows the lowest comes first; without travel costs rows are
        sorted. This is greedy: the shortest tour would take too long to find.
        """
        left, path = rows.sort().values, []
        if self.travel is None:
            return left
        while left.numel():
            at = int(self.of(previous, left).argmin())
            previous = int(left[at])
            path.append(previous)
            left = torch.cat((left[:at], left[at + 1 :]))
        return torch.tensor(path, dtype=torch.long)

    def end(self, previous: int | None, rows: Tensor) -> int | None:
        r"""The last row of a visit to ``rows`` that starts after ``previous``."""
        if rows.numel() == 0:
            return previous
        return int(self.visiting_order(previous, rows)[-1])


def positive_costs(values: Any, name: str, length: int) -> Tensor:
    r"""The ``values`` as ``length`` positive costs.

    Raises:
        BotorchTensorDimensionError: If there is another number of them.
        ValueError: If one is not finite and positive.
    """
    wanted = f"to give one cost per row ({length})"
    try:
        costs = torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(complaint(name, wanted, f"got {values!r}")) from error
    check_shape(costs.shape == (length,), costs, name, wanted)
    bad = ~((costs > 0) & torch.isfinite(costs))
    if bool(bad.any()):
        first = int(bad.nonzero()[0])
        raise ValueError(
            f"Expected `{name}` to be positive and finite, but entry {first} is "
            f"{written(costs[first])}. A free measurement would be repeated for "
            "ever: add what it costs at least."
        )
    return costs
