r"""Calibration: whether a model's predictions were as good as it claimed.

Residuals are standardised: under a model that is right they are independent standard
normal numbers. Those of batches that were predicted before they were measured say how
the model did when it counted; those with each value left out say how it fits by now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import scipy  # which loads its packages when they are first used
import torch
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_lse._validation import in_interval

WIDER = (1.5, 2.0, 4.0, 16.0)
"""The factors on which the test bets that predictions are too narrow.
Half as much again, twice, and far too narrow, as where a flat start misled a model."""
FALSE_ALARM = 0.01
"""The probability that a model that is right is reported at one look."""
ANOTHER_MODEL = "or give another `model`"
"""The words for what else may be done about predictions that are too narrow."""
NOTHING_AHEAD = "Nothing was predicted before it was measured."
BY_NOISE = 0.5
"""The share of noise in a prediction's variance from which errors tell of the noise.
Other errors tell how the function varies."""
LEAST_ERRORS = 20
"""The number of such errors from which it is asked whether they grow with the value."""
GROWTH = 3.3
"""The deviations by which their rank correlation with the value has to exceed 0.
Chance does so with a probability of 5e-4, each time. Of 600 runs of 200 values with the
same noise everywhere, looked at after every fourth value, 0.5 % are reported."""
MATTERS = 1.5
"""The least ratio of the noise of large values to that of small ones that is told.
Of thousands of values a correlation is found that changes no answer."""


class CalibrationWarning(BotorchWarning):
    r"""The warning that predictions were too narrow: decisions cannot be trusted."""


def left_out(L: Tensor, whitened: Tensor) -> tuple[Tensor, Tensor]:
    r"""The standardised residual of each value from the prediction of all others.

    ``z_i = [K^-1 r]_i / sqrt([K^-1]_ii)`` with ``K = L L'`` the covariance of the
    values, noise included, and ``r`` their residuals from the prior mean.

    Args:
        L: ``n x n`` lower triangular factor.
        whitened: ``n``, ``L^-1 r``.

    Returns:
        ``n`` residuals in units of their predicted standard deviations, and ``n`` of
        these.

    Source:
        Rasmussen and Williams (2006), Eqs. (5.10) to (5.12).
    """
    if L.shape[-1] == 0:
        return whitened, whitened
    inverse = torch.linalg.solve_triangular(L, torch.eye(len(L)).to(L), upper=False)
    precision = inverse.square().sum(dim=0)
    return (inverse.mT @ whitened) / precision.sqrt(), precision.rsqrt()


def growing_noise(
    predicted: Tensor, errors: Tensor, noise_shares: Tensor
) -> tuple[float, float] | None:
    r"""The ratios of the noise of small and of large values to a model's noise.

    Errors of predictions one step ahead are independent of each other, and of what is
    predicted, if the model is right. Their sizes are held against the predictions by
    ranks, so that no single large error moves them far.

    Args:
        predicted: ``n`` predictions, each of a value from those before it.
        errors: ``n`` errors of these, in units of their standard deviations.
        noise_shares: ``n`` shares of the noise in their variances.

    Returns:
        The root mean square of the errors of the smaller half of the predictions, and
        of the larger half; ``None`` where the noise does not grow with the value.
    """
    tells = noise_shares >= BY_NOISE
    n = int(tells.sum())
    if n < LEAST_ERRORS:
        return None
    sizes, values = _ranks(errors[tells].abs()), _ranks(predicted[tells])
    # Half-normal scores of the sizes find more than their ranks by themselves.
    pairs = torch.stack((torch.special.erfinv(sizes / (n + 1)), values))
    correlation = float(torch.corrcoef(pairs)[0, 1])
    squared, is_large = errors[tells].square(), values > n / 2
    small, large = (float(squared[at].mean()) ** 0.5 for at in (~is_large, is_large))
    grows = correlation * (n - 1) ** 0.5 > GROWTH and large > MATTERS * small
    return (small, large) if grows else None


def _ranks(values: Tensor) -> Tensor:
    return values.argsort(stable=True).argsort().double() + 1


def recent(ahead: Tensor) -> Tensor:
    r"""The later half of the residuals, by which a run is judged.

    A fitted model from few data is often wrong at first, and put right by what
    comes; only the predictions since then say how far to trust it now.
    """
    return ahead[len(ahead) // 2 :]


def log_evidence(residuals: Tensor) -> float:
    r"""The logarithm of the evidence that predictions were too narrow.

    A bet on each of ``WIDER``: a likelihood ratio, whose mean is 1 if the model is
    right, so that it exceeds ``1 / alpha`` with probability at most ``alpha`` (Markov).

    Args:
        residuals: ``n`` standardised residuals of values that were predicted before.
    """
    if len(residuals) == 0:
        return 0.0
    scale = torch.tensor(WIDER, dtype=torch.float64).unsqueeze(-1)
    gain = residuals.square() / 2 * (1 - scale**-2) - scale.log()
    return float((gain.sum(dim=-1) - math.log(len(WIDER))).logsumexp(dim=0))


def are_too_wide(ahead: Tensor) -> bool:
    r"""Whether the later residuals are larger than chance explains."""
    return log_evidence(recent(ahead)) >= -math.log(FALSE_ALARM)


def share_within(ahead: Tensor, level: float) -> float:
    r"""The share of residuals in the central interval of a standard normal number."""
    half_width = -float(scipy.special.ndtri((1 - level) / 2))
    return float((ahead.abs() <= half_width).double().mean())


def rank_interval(k: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""The interval for the ``k``-th smallest of ``n`` standard normal numbers.

    The ``k``-th smallest of ``n`` uniform numbers has the distribution
    ``Beta(k, n + 1 - k)``, and normal quantiles of uniform numbers are standard normal.

    Args:
        k: Ranks, from 1 on.
        n: How many independent numbers there are, shaped as ``k``.

    Returns:
        The lower ends of the central 95 % intervals, each by itself, the medians and
        the upper ends.
    """
    rank = scipy.stats.beta(k.numpy(), (n + 1 - k).numpy())
    lower, median, upper = (
        torch.from_numpy(scipy.stats.norm.ppf(rank.ppf(p))) for p in (0.025, 0.5, 0.975)
    )
    return lower, median, upper


def in_words(ahead: Tensor) -> str:
    r"""The verdict of the residuals of predicted values on the model, in words."""
    if len(ahead) == 0:
        return NOTHING_AHEAD
    later = recent(ahead)
    share = share_within(later, 0.95)
    said = (
        f"{100 * share:.0f} % of the last {len(later)} values lay within the 95 % "
        "intervals that were predicted for them"
    )
    if len(later) == 1:
        said = f"The last value lay {'in' if share else 'outside of'} its 95 % interval"
    if not are_too_wide(ahead):
        return f"{said}."
    return (
        f"{said}: the predictions are too narrow (of models that are right at most "
        f"{100 * FALSE_ALARM:.0f} % are reported). Do not trust what is decided: look "
        f"for values that were typed or measured wrongly, {ANOTHER_MODEL}."
    )


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""A comparison of a run's predictions with what was measured.

    Args:
        ahead: ``n`` standardised residuals of the values, each batch predicted before
            it was measured; within a batch they are decorrelated.
        out: ``n`` standardised residuals, each value predicted from all others.
        predicted: ``n`` leave-one-out predictions, units of ``y``.
    """

    ahead: Tensor
    out: Tensor
    predicted: Tensor

    @classmethod
    def of(cls, ahead: Tensor, L: Tensor, whitened: Tensor, y: Tensor) -> Calibration:
        r"""The calibration from residuals found ahead, and the final posterior.

        Args:
            ahead: ``n`` standardised residuals of batches before they were measured.
            L: ``n x n`` lower triangular factor of the values' covariance.
            whitened: ``n``, ``L^-1 r``, ``r`` the residuals from the prior mean.
            y: ``n`` values, units of ``y``.
        """
        out, sigma = left_out(L, whitened)
        return cls(ahead, out, y - sigma * out)

    def coverage(self, level: float = 0.95) -> float:
        r"""The share of the later half of the values that lie in their intervals.

        Args:
            level: The probability that the interval was to have.

        Raises:
            ValueError: If ``level`` is not in (0, 1), or nothing was predicted yet.
        """
        in_interval(level, "level", 0.0, 1.0)
        if len(self.ahead) == 0:
            raise ValueError(NOTHING_AHEAD)
        return share_within(recent(self.ahead), level)

    @cached_property
    def has_failed(self) -> bool:
        r"""Whether predictions were too narrow beyond what chance explains."""
        return are_too_wide(self.ahead)

    def __str__(self) -> str:
        return in_words(self.ahead)
