r"""What every strategy for several outputs shares: outputs, signs and the answer."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    with_contradictions,
)
from botorch_lse.problem import Classification, Observations, Pool
from botorch_lse.problem.classification import gaussian_probability_above


@dataclass(frozen=True, eq=False)
class ParetoEstimate:
    r"""What is known of every row; of margins in the last round it was open.

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
        r"""Before any observation: means 0, intervals without end."""
        zero = torch.zeros(N, m, dtype=torch.float64)
        endless = torch.full_like(zero, torch.inf)
        each = (zero, -endless, endless, endless)
        return cls(*each, *(part[:, 0].clone() for part in each))

    @property
    def half_width(self) -> Tensor:
        r"""``N x m`` half widths of the intervals."""
        return (self.upper - self.lower) / 2


class MultiOutputStrategy(ABC):  # noqa: B024  (a name for several classes)
    r"""Any strategy for the Pareto set of several outputs, to ask for by name.

    Above is accepted, below rejected. ``y`` has one column per output. The columns
    ``mean``, ``lower`` and ``upper`` of the answer are margins: how far a row is from
    being dominated, negative if it is; ``estimate(state)`` has the outputs themselves.
    """


def checked_directions(maximize: object) -> tuple[bool, ...]:
    r"""For each output, whether more is better.

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
    r"""``m`` signs: ``signs * y`` is maximised."""
    return torch.tensor([1.0 if up else -1.0 for up in maximize]).double()


def with_columns(observations: Observations, m: int) -> Observations:
    r"""The same with one column per output.

    Raises:
        BotorchTensorDimensionError: If there are other columns.
    """
    y, yvar = observations.y, observations.yvar
    if y.ndim == 1 and m == 1:
        yvar = None if yvar is None else yvar.unsqueeze(-1)
        return replace(observations, y=y.unsqueeze(-1), yvar=yvar)
    if y.ndim != 2 or y.shape[1] != m:
        raise BotorchTensorDimensionError(
            f"Expected `y` with one column per entry of `maximize` ({m}), but got "
            f"shape {tuple(y.shape)}."
        )
    return observations


def pareto_answer(
    side: Tensor,
    found: ParetoEstimate,
    guarantee: str,
    pool: Pool,
    contradicted: Tensor | None = None,
) -> Classification:
    r"""The answer.

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
    )
