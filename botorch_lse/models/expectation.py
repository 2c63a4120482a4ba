r"""Expectation propagation: a Gaussian posterior from results of other outcomes.

Each result is replaced by a Gaussian measurement of the latent function, its *site*,
such that the process given all sites has, at each measured point, the mean and variance
that it has when the site of this point is replaced by the result itself (Minka 2001;
Rasmussen and Williams 2006, section 3.6). The sites are then told to the process in
place of the results.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from botorch.exceptions.warnings import OptimizationWarning
from torch import Tensor

from botorch_lse.models.outcomes import Outcome

STEPS = 200
"""The largest number of steps; some 10 are usual."""
TOLERANCE = 1e-6
"""The change of a site that ends the steps, in units of its point's deviation."""
DAMPING = (1.0, 0.5, 0.2)
"""The shares of a step that is made: less where sites do not settle down."""
PATIENCE = 25
"""The number of steps until the next share of ``DAMPING``."""
UNSETTLED = 1e-2
"""The change of a site after all steps that is worth a warning."""
LEAST_VARIANCE = 1e-12
"""The least posterior variance, in units of the prior's: what rounding leaves."""
LEAST_PRECISION = 1e-4
"""The least precision of a measurement, in units of the one of its point without it.
Where guesses and lapses may explain an answer, it may make a latent value less certain,
which no measurement does: it then counts as one that tells next to nothing."""


@dataclass(frozen=True, eq=False)
class Sites:
    r"""Gaussian measurements in place of results, and the evidence of the results.

    Args:
        precision: ``n`` inverse noise variances of the measurements.
        weighted: ``n`` values of them, each times its precision.
        log_evidence: The log probability of the results under the process.
        residual: ``n``, ``(K + noise)^-1 (value - mean)``: the derivatives of the
            evidence by the means.
        inverse: ``n x n``, ``(K + noise)^-1``.
        without: ``n`` means and ``n`` variances of the points, each without its site.
    """

    precision: Tensor
    weighted: Tensor
    log_evidence: float
    residual: Tensor
    inverse: Tensor
    without: tuple[Tensor, Tensor]

    @property
    def value(self) -> Tensor:
        r"""The values of the measurements (``n``)."""
        return self.weighted / self.precision

    @property
    def noise(self) -> Tensor:
        r"""The noise variances of the measurements (``n``)."""
        return 1 / self.precision

    @property
    def slopes(self) -> Tensor:
        r"""The derivatives of the evidence by the entries of ``K`` (``n x n``).

        Sites count as constants, since the evidence is stationary in them.
        """
        return 0.5 * (self.residual.outer(self.residual) - self.inverse)


def sites_of(
    K: Tensor,
    mean: Tensor,
    outcome: Outcome,
    y: Tensor,
    trials: Tensor,
    start: Sites | None = None,
    least: float | None = LEAST_PRECISION,
) -> Sites:
    r"""The sites of results, by parallel updates from measurements that are similar.

    Args:
        K: ``n x n`` prior covariances of the latent function at the measured points.
        mean: ``n`` prior means.
        outcome: What the results say.
        y: ``n`` results; of several trials their mean.
        trials: ``n`` numbers of trials.
        start: Sites near to those that are sought.
        least: The least precision; see ``LEAST_PRECISION``. ``None``: any, also
            negative ones, as the evidence needs, but no posterior.
    """
    if start is None:
        value, noise = outcome.similar(y, trials)
        precision, weighted = 1 / noise, value / noise
    else:
        precision, weighted = start.precision, start.weighted
    prior, eye, change = K.diagonal(), torch.eye(len(y)).to(K), math.inf
    for step in range(STEPS):
        # (K^-1 + T)^-1 = (1 + K T)^-1 K with T the precisions.
        factors = torch.linalg.lu_factor(eye + K * precision)
        covariance = torch.linalg.lu_solve(*factors, K)
        variance = covariance.diagonal().clamp_min(LEAST_VARIANCE * prior)
        r = weighted - precision * mean
        m = mean + covariance @ r
        # Without its own site each point is known as all the others predict it.
        left = (1 / variance - precision).clamp_min(1 / prior)
        cavity = 1 / left
        centre = cavity * (m / variance - weighted)
        log, slope, curve = outcome.derivatives(
            y, trials, centre, cavity, (m, variance)
        )
        new = -curve / (1 + cavity * curve)
        if least is not None:
            new = new.maximum(least * left)
        # The mean with the result is kept, also where the precision is raised.
        told = (centre + cavity * slope) * (left + new) - centre * left
        by_precision = float(((new - precision) * variance).abs().max())
        by_value = float(((told - weighted) * variance.sqrt()).abs().max())
        change = max(by_precision, by_value)
        if change < TOLERANCE:
            break
        share = DAMPING[min(step // PATIENCE, len(DAMPING) - 1)]
        precision = precision + share * (new - precision)
        weighted = weighted + share * (told - weighted)
    if change > UNSETTLED:
        warnings.warn(
            f"The Gaussian posterior of {len(y)} results has not settled down: the "
            f"last step changed it by {change:.2g} of a standard deviation.",
            OptimizationWarning,
            stacklevel=2,
        )
    residual = r - precision * (covariance @ r)
    inverse = precision.diag() - precision.unsqueeze(-1) * covariance * precision
    apart = weighted - precision * centre
    evidence = (
        log.sum()
        - 0.5 * factors[0].diagonal().abs().log().sum()
        + 0.5 * (1 + precision * cavity).log().sum()
        + 0.5 * ((mean - centre) * (2 * weighted - precision * (centre + mean))).sum()
        - 0.5 * (apart.square() * cavity / (1 + precision * cavity)).sum()
        + 0.5 * (r * (K @ residual)).sum()
    )
    without = centre, cavity
    return Sites(precision, weighted, float(evidence), residual, inverse, without)


def residuals_ahead(
    covariance: Tensor,
    mean: Tensor,
    outcome: Outcome,
    y: Tensor,
    trials: Tensor,
    generator: torch.Generator,
) -> Tensor:
    r"""Randomised residuals of results, each predicted from those before it (``n``).

    A result has a step of its distribution function, of which a point is drawn; under
    a model that is right the residuals are independent standard normal numbers.

    Args:
        covariance: ``n x n`` covariances of the latent function at the results' points,
            before any of them.
        mean: ``n`` means.
        outcome: What results say of the latent function.
        y: ``n`` results; of several trials their mean.
        trials: ``n`` numbers of trials.
        generator: The source of random numbers, on the CPU.

    Source:
        Dunn and Smyth (1996), Randomized quantile residuals.
    """
    drawn = torch.rand(len(y), generator=generator, device=generator.device).to(y)
    found = []
    for i in range(len(y)):
        one = slice(i, i + 1)
        given = y[one], trials[one], mean[one], covariance.diagonal()[one]
        low, high = outcome.quantiles(*given)
        found.append(low + drawn[one] * (high - low))
        # The moments of all others once this result is known, as if that were normal.
        near = outcome.similar(y[one], trials[one])
        _, slope, curve = outcome.derivatives(*given, _product(given[2:], near))
        row = covariance[i]
        mean = mean + row * slope
        covariance = covariance + row.outer(row) * curve
    share = torch.cat(found) if found else y
    least = torch.finfo(share.dtype).eps
    return torch.special.ndtri(share.clamp(least, 1 - least))


def _product(
    one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    r"""The mean and variance of a normal distribution times another one."""
    variance = 1 / (1 / one[1] + 1 / other[1])
    return variance * (one[0] / one[1] + other[0] / other[1]), variance
