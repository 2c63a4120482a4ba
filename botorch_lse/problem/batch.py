r"""What to measure next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.checks import is_number, row_indices, truth_value
from botorch_lse.problem.observations import POOL_INDEX, ROUND, Observations
from botorch_lse.problem.pool import Pool


@dataclass(frozen=True, eq=False)
class Batch:
    r"""The rows to measure next.

    Args:
        pool: The pool the rows belong to.
        order: The rows in visiting order, replicates included.
        round: The round these measurements belong to.

    Attributes:
        indices: ``k`` rows, sorted, each once.
        counts: ``k``, how often each row is to be measured.
        X: ``k x d``, the inputs of ``indices``.
    """

    pool: Pool = field(repr=False)
    order: Tensor
    round: int
    indices: Tensor = field(init=False)
    counts: Tensor = field(init=False)
    X: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        order = row_indices(self.order, "order", len(self.pool))
        indices, counts = torch.unique(order, return_counts=True)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "X", self.pool.X[indices])

    def __len__(self) -> int:
        return self.order.numel()

    def to_frame(self) -> pd.DataFrame:
        r"""A sheet to fill in: one line per measurement, in visiting order.

        Returns:
            The pool's table behind the columns ``pool_index`` and ``round``; a row with
            replicates has several lines. See ``Observations.from_frame``.
        """
        frame = self.pool.to_frame().iloc[self.order.numpy()].reset_index(drop=True)
        for name in (ROUND, POOL_INDEX):
            if name in frame.columns:
                raise ValueError(
                    f"Expected the pool's table to leave the column {name!r} to the "
                    "batch. Rename the table's column."
                )
        frame.insert(0, ROUND, self.round)
        frame.insert(0, POOL_INDEX, self.order.numpy())
        return frame

    def observe(self, y: Any, yvar: Any = None, *, means: bool = False) -> Observations:
        r"""The batch with its results, ready for ``tell``.

        Args:
            y: One value per replicate, in the order ``.order``; with ``means=True`` one
                mean per row of ``.indices``.
            yvar: The known variances of these values; with ``means=True`` required, the
                variance of each mean.
            means: Whether ``y`` holds means over the replicates of a row.

        Raises:
            BotorchTensorDimensionError: If ``y`` has another length.
            ValueError: If a value is not finite, or means come without variance.
        """
        rows = self.indices if truth_value(means, "means") else self.order
        if means and yvar is None:
            raise ValueError(
                "Expected `yvar`, the variance of each mean, with `means=True`, but "
                "got None. For k replicates of noise variance v it is v / k."
            )
        length = 1 if is_number(y) else len(y)
        if length != rows.numel():
            remedy = (
                " For one mean per row say `means=True`."
                if not means and length == self.indices.numel()
                else ""
            )
            raise BotorchTensorDimensionError(
                f"Expected `y` to have {rows.numel()} values, one per "
                f"{'row' if means else 'replicate in the order `.order`'}, but got "
                f"{length}.{remedy}"
            )
        counts = self.counts if means else None
        return Observations(rows, y, yvar, torch.tensor(self.round), counts)
