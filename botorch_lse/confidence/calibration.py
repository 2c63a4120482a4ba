r"""Whether a model's predictions were as good as it said they would be.

Residuals are standardised: under a model that is right they are independent standard
normal numbers. Those of batches that were predicted before they were measured say how
the model did when it counted; those with each value left out say how it fits by now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.checks import in_interval

WIDER = (1.5, 2.0, 4.0, 16.0)
"""How many times too narrow predictions may be, as the test bets: half as much again,
twice, and far too narrow, as where a flat start made a model sure of everything."""
FALSE_ALARM = 0.01
"""The probability that a model that is right is ever reported, however long a run."""


def left_out(L: Tensor, whitened: Tensor) -> Tensor:
    r"""Each value's residual from the prediction of all others, standardised.

    ``z_i = [K^-1 r]_i / sqrt([K^-1]_ii)`` with ``K = L L'`` the covariance of the
    values, noise included, and ``r`` their residuals from the prior mean.

    Args:
        L: ``n x n`` lower triangular factor.
        whitened: ``n``, ``L^-1 r``.

    Source:
        Rasmussen and Williams (2006), Eqs. (5.10) to (5.12).
    """
    if L.shape[-1] == 0:
        return whitened
    inverse = torch.linalg.solve_triangular(L, torch.eye(len(L)).to(L), upper=False)
    return (inverse.mT @ whitened) / inverse.square().sum(dim=0).sqrt()


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""How the predictions of a run compare with what was measured.

    Args:
        ahead: ``n`` standardised residuals of the values, each batch predicted before
            it was measured; within a batch they are decorrelated.
        out: ``n`` standardised residuals, each value predicted from all others.
        predicted: ``n`` leave-one-out predictions, units of ``y``.
    """

    ahead: Tensor
    out: Tensor
    predicted: Tensor

    def coverage(self, level: float = 0.95) -> float:
        r"""The share of values that lay within the interval predicted for them.

        Args:
            level: The probability that the interval was to have.

        Raises:
            ValueError: If ``level`` is not in (0, 1).
        """
        in_interval(level, "level", 0.0, 1.0)
        if len(self.ahead) == 0:
            return math.nan
        half = math.sqrt(2) * float(torch.erfinv(torch.tensor(level).double()))
        return float((self.ahead.abs() <= half).double().mean())

    @cached_property
    def log_evidence(self) -> float:
        r"""The largest logarithm of the evidence that predictions were too narrow.

        A bet on each of ``WIDER``, followed value by value. If the model is right, the
        evidence ever exceeds ``1 / alpha`` with probability at most ``alpha`` (Ville).
        """
        if len(self.ahead) == 0:
            return 0.0
        scale = torch.tensor(WIDER, dtype=torch.float64).unsqueeze(-1)
        gain = self.ahead.square() / 2 * (1 - scale**-2) - scale.log()
        paths = gain.cumsum(dim=-1) - math.log(len(WIDER))
        return max(0.0, float(paths.logsumexp(dim=0).max()))

    @property
    def has_failed(self) -> bool:
        r"""Whether predictions were too narrow beyond what chance explains."""
        return self.log_evidence >= -math.log(FALSE_ALARM)

    def __str__(self) -> str:
        n = len(self.ahead)
        if n == 0:
            return "Nothing was predicted before it was measured."
        said = (
            f"{self.coverage():.0%} of {n} values lay within the 95 % intervals that "
            "were predicted for them"
        )
        if not self.has_failed:
            return f"{said}."
        return (
            f"{said}: the predictions are too narrow (of models that are right at most "
            f"{FALSE_ALARM:.0%} are reported). Do not trust what is decided: look for "
            "values that were typed or measured wrongly, or give another `model`."
        )
