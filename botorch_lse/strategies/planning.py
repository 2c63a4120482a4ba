r"""What the next batch is to predict: rows, or pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class PlanningProblem:
    r"""What the next batch is to predict.

    Args:
        rows: ``T`` rows.
        weights: Factors of the variances, ``T`` or for pairs ``T x T``, 0 for those not
            asked for; ``None``: ones.
        factor: ``c`` of the pairs ``f(x) - c f(x')``; ``None``: the rows themselves.
    """

    rows: Tensor
    weights: Tensor | None = None
    factor: float | None = None


def pair_targets(pairs: Tensor, omega: float) -> PlanningProblem:
    r"""The open pairs among the rows that occur in them."""
    rows = (pairs.any(dim=0) | pairs.any(dim=1)).nonzero().view(-1)
    inner = pairs[rows][:, rows]
    return PlanningProblem(rows, None if bool(inner.all()) else inner.double(), omega)
