r"""Expectation propagation: a Gaussian posterior from results of other outcomes.

All results of a point are replaced by one Gaussian measurement of the latent function,
their *site*, such that the process given all sites has, at each measured point, the
mean and variance that it has when the site of this point is replaced by the results
themselves (Minka 2001; Rasmussen and Williams 2006, section 3.6, for one result). The
sites are then told to the process in place of the results.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from botorch.exceptions.warnings import OptimizationWarning
from torch import Tensor

from botorch_lse.data.arguments import points_of
from botorch_lse.models.outcomes import Outcome, Results

STEPS = 200
"""The largest number of steps; some 10 are usual."""
TOLERANCE = 1e-6
"""The change of a site that ends the steps, in units of its point's deviation."""
LEAST_SHARE = 0.1
"""The least share of a step that is made.
It is halved where a step goes back on the one before, as sites then swing about where
they would settle down, else doubled, up to 1."""
UNSETTLED = 1e-2
"""The change of a site after all steps that is worth a warning."""
LEAST_VARIANCE = 1e-12
"""The least posterior variance, in units of the prior's: what rounding leaves."""
MOST_UNCERTAIN = 10.0
"""The largest variance of a point without its own results, in units of the prior's.
Where other results may be guesses, they may make it larger than before them."""
LEAST_PRECISION = 1e-4
"""The least precision of a measurement, in units of the one of its point without it.
Where guesses and lapses may explain an answer, it may make a latent value less certain,
which no measurement does: it then counts as one that tells next to nothing."""
LEAST_TOLD = 1e-8
"""The least precision for which the fast formula of variances is exact enough.
In units of the prior's; rounding errors are amplified by its inverse."""


@dataclass(frozen=True, eq=False)
class Sites:
    r"""Gaussian measurements in place of results, and the evidence of the results.

    Args:
        precision: ``p`` inverse noise variances of the measurements.
        weighted: ``p`` values of them, each times its precision.
        log_evidence: The log probability of the results under the process.
        residual: ``p``, ``(K + noise)^-1 (value - mean)``: the derivatives of the
            evidence by the means.
        inverse: ``p x p``, ``(K + noise)^-1``.
        without: ``p`` means and ``p`` variances of the points, each without its site.
    """

    precision: Tensor
    weighted: Tensor
    log_evidence: float
    residual: Tensor
    inverse: Tensor
    without: tuple[Tensor, Tensor]

    @property
    def value(self) -> Tensor:
        r"""The values of the measurements (``p``)."""
        return self.weighted / self.precision

    @property
    def noise(self) -> Tensor:
        r"""The noise variances of the measurements (``p``)."""
        return 1 / self.precision

    @property
    def near(self) -> tuple[Tensor, Tensor]:
        r"""The means and variances of the points given all results (``p`` each)."""
        mean, variance = self.without
        left = 1 / (1 / variance + self.precision)
        return left * (mean / variance + self.weighted), left

    @property
    def slopes(self) -> Tensor:
        r"""The derivatives of the evidence by the entries of ``K`` (``p x p``).

        Sites count as constants, since the evidence is stationary in them.
        """
        return 0.5 * (self.residual.outer(self.residual) - self.inverse)


def by_point(X: Tensor, y: Tensor, trials: Tensor) -> tuple[Tensor, Results]:
    r"""The measured points, once each, and the results that were found there.

    Args:
        X: ``n x d`` points of the results.
        y: ``n`` results; of several trials their mean.
        trials: ``n`` numbers of trials.

    Returns:
        ``p`` places of the points in ``X``, and the results.
    """
    place, every = points_of(X), torch.arange(len(X), device=X.device)
    p = int(place.max()) + 1
    if p == len(X):
        return every, Results(y, trials)
    return every[:p].scatter(0, place, every), Results(y, trials, place)


def sites_of(
    K: Tensor,
    mean: Tensor,
    outcome: Outcome,
    results: Results,
    start: Sites | None = None,
    least: float | None = LEAST_PRECISION,
    tolerance: float = TOLERANCE,
) -> Sites:
    r"""The sites of results, by parallel updates from measurements that are similar.

    Args:
        K: ``p x p`` prior covariances of the latent function at the measured points.
        mean: ``p`` prior means.
        outcome: What the results say.
        results: The results of the points, ``joined`` by the outcome to be fast.
        start: Sites near to those that are sought.
        least: The least precision; see ``LEAST_PRECISION``. ``None``: any, also
            negative ones, as the evidence needs, but no posterior.
        tolerance: The change of a site that ends the steps; see ``TOLERANCE``.
    """
    if start is None:
        value, noise = outcome.similar(results.y, results.trials)
        precision, weighted = map(results.by_point, (1 / noise, value / noise))
    else:
        precision, weighted = start.precision, start.weighted
    prior, change, share, last = K.diagonal(), math.inf, 1.0, torch.zeros_like(mean)
    for _ in range(STEPS):
        with_sites = _WithSites(K, precision)
        if bool((with_sites.variance <= 0).any() and (precision < 0).any()):
            # Sites that make values less certain went farther than a process can.
            precision, change = precision.clamp_min(0.0), math.inf
            share = max(share / 2, LEAST_SHARE)
            continue
        variance = with_sites.variance.clamp_min(LEAST_VARIANCE * prior)
        residual = with_sites.residual(weighted - precision * mean)
        m = mean + K @ residual
        # Without its own site each point is known as all the others predict it.
        left = (1 / variance - precision).maximum(1 / (MOST_UNCERTAIN * prior))
        cavity = 1 / left
        centre = cavity * (m / variance - weighted)
        log, slope, curve = outcome.derivatives(results, centre, cavity, (m, variance))
        new = -curve / (1 + cavity * curve)
        if least is not None:
            new = new.maximum(least * left)
        # The mean with the result is kept, also where the precision is raised.
        told = (centre + cavity * slope) * (left + new) - centre * left
        by_precision = float(((new - precision) * variance).abs().max())
        by_value = float(((told - weighted) * variance.sqrt()).abs().max())
        change = max(by_precision, by_value)
        if change < tolerance:
            break
        last, before = new - precision, last
        goes_back = float(last @ before) < 0
        share = max(share / 2, LEAST_SHARE) if goes_back else min(2 * share, 1.0)
        precision = precision + share * last
        weighted = weighted + share * (told - weighted)
    if change > UNSETTLED:
        warnings.warn(
            f"The Gaussian posterior at {len(K)} points has not settled down: the "
            f"last step changed it by {change:.2g} of a standard deviation.",
            OptimizationWarning,
            stacklevel=2,
        )
    apart = weighted - precision * centre
    evidence = (
        log.sum()
        - 0.5 * with_sites.log_determinant
        + 0.5 * (1 + precision * cavity).log().sum()
        + 0.5 * ((mean - centre) * (2 * weighted - precision * (centre + mean))).sum()
        - 0.5 * (apart.square() * cavity / (1 + precision * cavity)).sum()
        + 0.5 * ((weighted - precision * mean) * (K @ residual)).sum()
    )
    found = precision, weighted, float(evidence), residual
    return Sites(*found, with_sites.inverse, (centre, cavity))


class _WithSites:
    r"""A process given its sites: what follows from their precisions alone.

    ``variance`` has the ``p`` variances of ``(K^-1 + T)^-1``, ``log_determinant`` that
    of ``1 + K T``, and ``inverse`` is ``(K + T^-1)^-1`` (``p x p``).

    Args:
        K: ``p x p`` covariances before.
        precision: ``p`` precisions of the sites, the diagonal of ``T``.
    """

    def __init__(self, K: Tensor, precision: Tensor) -> None:
        self.precision, eye = precision, torch.eye(len(K)).to(K)
        self.is_fast = bool((precision * K.diagonal() > LEAST_TOLD).all())
        if self.is_fast:
            # B = 1 + T^1/2 K T^1/2, of which the variances are (1 - B^-1) / T.
            root = precision.sqrt()
            both = root.outer(root)
            factor, failed = torch.linalg.cholesky_ex(eye + both * K)
            self.is_fast = not bool(failed)
        if self.is_fast:
            inner = torch.cholesky_inverse(factor)
            self.variance = (1 - inner.diagonal()) / precision
            self.log_determinant = 2 * factor.diagonal().log().sum()
            self.inverse = both * inner
        else:
            # (1 + K T)^-1 K, which takes three times as long.
            self.factors = torch.linalg.lu_factor(eye + K * precision)
            covariance = torch.linalg.lu_solve(*self.factors, K)
            self.variance = covariance.diagonal()
            self.log_determinant = self.factors[0].diagonal().abs().log().sum()
            by_sites = precision.unsqueeze(-1) * covariance * precision
            self.inverse = precision.diag() - by_sites

    def residual(self, r: Tensor) -> Tensor:
        r"""The solution of ``(1 + T K) x = r`` (``p``).

        Not by a difference: where sites are precise few of its digits are left.
        """
        if self.is_fast:
            return self.inverse @ (r / self.precision)
        by_column = r.unsqueeze(-1)
        return torch.linalg.lu_solve(*self.factors, by_column, adjoint=True).squeeze(-1)


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
        told, given = (y[one], trials[one]), (mean[one], covariance.diagonal()[one])
        low, high = outcome.quantiles(*told, *given)
        found.append(low + drawn[one] * (high - low))
        # The moments of all others once this result is known, as if that were normal.
        near = _product(given, outcome.similar(*told))
        _, slope, curve = outcome.derivatives(Results(*told), *given, near)
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
