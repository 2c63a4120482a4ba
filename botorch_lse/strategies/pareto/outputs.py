r"""What every strategy for several outputs shares: outputs, signs and the answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    with_contradictions,
)
from botorch_lse.problem import Classification, Observations
from botorch_lse.problem.classification import gaussian_probability_above
from botorch_lse.strategies.loop import Strategy, check_state
from botorch_lse.strategies.state import State


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


@dataclass(frozen=True, eq=False)
class MultiOutputStrategy(Strategy):
    r"""Which rows are Pareto optimal: above is accepted, below rejected.

    ``y`` has one column per output. The columns ``mean``, ``lower`` and ``upper`` of
    the answer are margins: how far a row is from being dominated, negative if it is;
    ``estimate(state)`` has the outputs themselves.

    Args:
        maximize: For each output, whether more is better.
    """

    _: KW_ONLY
    maximize: Sequence[bool]

    def _check_outputs(self) -> None:
        if not isinstance(self.maximize, Sequence) or not len(self.maximize):
            raise ValueError(
                f"Expected `maximize` to be one bool per output, but got "
                f"{self.maximize!r}. Write `(True, False)` for two outputs."
            )
        if not all(isinstance(flag, bool) for flag in self.maximize):
            raise ValueError(
                f"Expected `maximize` to hold bools, but got {self.maximize!r}."
            )
        object.__setattr__(self, "maximize", tuple(self.maximize))

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return len(self.maximize)

    @cached_property
    def signs(self) -> Tensor:
        r"""``m`` signs: ``signs * y`` is maximised."""
        return torch.tensor([1.0 if up else -1.0 for up in self.maximize]).double()

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row with their intervals."""
        check_state(self, state)
        found: ParetoEstimate = state.belief.estimate
        return found

    def _complete(self, observations: Observations) -> Observations:
        y, yvar = observations.y, observations.yvar
        if y.ndim == 1 and self.m == 1:
            yvar = None if yvar is None else yvar.unsqueeze(-1)
            return replace(observations, y=y.unsqueeze(-1), yvar=yvar)
        if y.ndim != 2 or y.shape[1] != self.m:
            raise BotorchTensorDimensionError(
                f"Expected `y` with one column per entry of `maximize` ({self.m}), but "
                f"got shape {tuple(y.shape)}."
            )
        return observations

    @property
    @abstractmethod
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""

    def _answer(
        self, side: Tensor, found: ParetoEstimate, contradicted: Tensor | None = None
    ) -> Classification:
        r"""The answer; ``contradicted``: ``N x m`` bools of rows and outputs."""
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
            guarantee=with_contradictions(self.guarantee, rows),
            pool=self.pool,
            contradicted=rows,
        )
