r"""Acquisition functions of one point.

Straddle, its relatives and its rivals read the mean and standard deviation of the
present posterior. LSE's scores read confidence regions, the intersection of the
intervals after each round so far, at any point and with gradients.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model, ModelList
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.utils.transforms import (
    average_over_ensemble_models,
)
from gpytorch.models import ExactGP
from torch import Tensor
from torch.nn import ModuleList

from botorch_lse._validation import check_columns, in_interval, real_matrix
from botorch_lse.acquisition.base import (
    PENDING,
    check_is_one,
    check_outputs,
    constructible,
    level_buffer,
    of_one_point,
    pending_matrix,
)
from botorch_lse.acquisition.covariance import Averages, check_gaussian
from botorch_lse.acquisition.outputs import (
    outputs_of,
    region_of,
    set_pending_of_each,
    units_of,
    value_of_region,
)
from botorch_lse.confidence.classify import ratio
from botorch_lse.confidence.regions import intersect_path, path_betas, safe_sqrt
from botorch_lse.confidence.schedules import BetaSchedule, beta_schedule
from botorch_lse.data.pool import Pool
from botorch_lse.functional.class_removal import level_weights
from botorch_lse.functional.scores import (
    FEASIBILITY_ALPHA,
    RANJAN_ALPHA,
    ambiguity,
    contour_entropy,
    expected_feasibility,
    ranjan_improvement,
    straddle,
    u_function,
)
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.models.gaussian_process import (
    PosteriorPath,
    factorize,
    least_noise,
    path_rows,
)

STRADDLE_BETA = 1.96**2
"""The squared width of a 95 % interval, as in section 3 of Gotovos et al. (2013)."""
LSE_BETA = 9.0
"""The squared width of three standard deviations, as in Gotovos et al. (2013)."""

_POOL_CHUNK = 4096
"""The number of pool rows per posterior call: t-batches in chunks take less memory."""


class MarginalAcquisitionFunction(AcquisitionFunction, ABC):
    r"""An acquisition function of mean and standard deviation at one point.

    Pending points shrink the standard deviation and leave the mean, since the posterior
    variance does not depend on the values to come. That makes greedy batches with
    ``optimize_acqf(..., sequential=True)`` and ``optimize_acqf_discrete(q > 1)`` sound.
    (The latter's ``unique=True`` never measures a point twice in a batch.)

    The posterior is the model's at each call. What is computed before, the noise of
    pending points and the level of ``ImplicitStraddle``, does not follow a model that
    changes: make a new one then.

    Source:
        Gotovos et al. (2013), section 4.2; Desautels et al. (2012).
    """

    X_pending = PENDING
    is_gaussian: bool = False
    """Whether the value is one of a normal distribution, not just of moments."""

    def __init__(
        self,
        model: Model,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""Check the model and its transform.

        Args:
            model: A fitted model with a Gaussian posterior.
            posterior_transform: Required for a model with several outputs.
            X_pending: ``n' x d`` points submitted and not observed yet.

        Raises:
            UnsupportedError: If the model has several outputs and no transform.
        """
        super().__init__(model=model)
        check_outputs(model, posterior_transform)
        self.posterior_transform = posterior_transform
        self._pending_noise: Tensor | None = None
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points that are being measured: they shrink the variance.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix with the columns of the
                model's inputs.
        """
        X_pending = pending_matrix(X_pending, self.model)
        if X_pending is not None:
            check_columns(self._posterior, X_pending, "X_pending")
        noise = None
        if X_pending is not None:
            noisy, latent = self._averages.variances(X_pending)
            noise = (noisy - latent).clamp_min(0.0)
        self._pending, self._pending_noise = X_pending, noise

    def _mean_and_sigma(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""Mean and shrunken standard deviation.

        Args:
            X: ``batch_shape x 1 x d``.

        Returns:
            Two tensors ``batch_shape``, with the ensemble's dimension last if any.
        """
        self.to(X)
        for part in self.model.modules():
            if not isinstance(part, ExactGP) or part.prediction_strategy is None:
                continue
            if part.prediction_strategy.train_labels.dtype != X.dtype:
                part.prediction_strategy = None  # it keeps numbers of the other type
        if self.X_pending is None:
            posterior = self._posterior(X)
            if self.is_gaussian:
                check_gaussian(posterior)
            mean, variance = posterior.mean, posterior.variance
            return mean[..., 0, 0], safe_sqrt(variance[..., 0, 0])
        pending = self.X_pending.to(X)
        pending = pending.expand(*X.shape[:-2], *pending.shape)
        averages = self._averages
        both = averages.meant(X), averages.measured(pending)
        posterior = averages.posterior(torch.cat(both, dim=-2))
        if not isinstance(posterior, GPyTorchPosterior):
            raise UnsupportedError(
                "Expected a Gaussian posterior where points chosen before count as "
                f"measured (`X_pending`), but got {type(posterior).__name__}. Choose "
                "one point at a time, with `q=1` and no `X_pending`; or use a Gaussian "
                "process without a transform of outcomes such as `Log`, on values "
                "transformed beforehand."
            )
        covariance = posterior.distribution.covariance_matrix
        noise = self._pending_noise.to(X)  # type: ignore[union-attr]  # set together
        noise = noise.expand(covariance.shape[:-2] + noise.shape[-1:])
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        least = least_noise(variance, covariance.dtype)
        L = factorize(covariance[..., 1:, 1:], noise, least)
        rows = path_rows(L, covariance[..., 1:, :1]).squeeze(-1).to(X)
        left = variance[..., 0] - rows.square().sum(dim=-1)
        return posterior.mean[..., 0, 0], safe_sqrt(left)

    def _posterior(self, X: Tensor) -> Any:
        return self._averages.posterior(self._averages.meant(X))

    @property
    def _averages(self) -> Averages:
        r"""The subject of the posterior and of the measurements."""
        return Averages(self.model, self.posterior_transform)

    @abstractmethod
    def _score(self, mean: Tensor, sigma: Tensor) -> Tensor:
        r"""The value of points, by their means and standard deviations."""

    @of_one_point
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x 1 x d`` to ``batch_shape``)."""
        return self._values(X)

    def _values(self, X: Tensor) -> Tensor:
        return self._score(*self._mean_and_sigma(X))


class LevelAcquisitionFunction(MarginalAcquisitionFunction, ABC):
    r"""A score of mean and standard deviation at one point about stated levels.

    A region, such as ``Above(0.55) & Below(0.75, output=1)``, has all its outputs and
    levels in one score, which is that of the level where there is only one. Every
    observation measures all outputs, which are independent; where their units matter
    they compare in units of their prior's standard deviation.
    """

    threshold: Tensor
    region: ValueRegion | None
    beta: float = STRADDLE_BETA
    needs_level: ClassVar[bool] = True
    """Whether a level or a region must be given."""
    unit: ClassVar[int] = 1
    """The power of the output's unit that the score has."""

    def __init__(
        self,
        model: Model,
        threshold: float | Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        *,
        goal: Any = None,
    ) -> None:
        r"""A score of a model and a level, or a region.

        Args:
            model, X_pending: See ``MarginalAcquisitionFunction``, as for the other
                errors.
            threshold: The level, a scalar in the units the posterior reports; exactly
                one of ``threshold`` and ``goal``.
            posterior_transform: Required for a model with several outputs and a level
                of one.
            goal: A region with stated levels, of which output ``j`` is the model's.

        Raises:
            ValueError: If ``threshold`` is not finite, both or none of it and ``goal``
                are given, or ``goal`` is no region with stated levels.
            UnsupportedError: If the model has not the outputs of ``goal``, or they are
                correlated.
            BotorchTensorDimensionError: If ``threshold`` is not a scalar.
        """
        self.region = region_of(threshold, goal)
        if self.region is not None:
            outputs = outputs_of(model, self.region, posterior_transform)
            if (one := self.region.only_comparison) is not None:
                self.region, threshold = None, one.level
                model, posterior_transform = outputs[one.output]
        if self.region is None:
            super().__init__(model, posterior_transform, X_pending)
            level = level_buffer(threshold, "threshold")  # type: ignore[arg-type]
            self.register_buffer("threshold", level)
            return
        AcquisitionFunction.__init__(self, model=model)
        self.units = units_of(outputs)
        parts = [MaxVariance(*output) for output in outputs]
        for part in parts:
            part.is_gaussian = self.is_gaussian
        self.outputs = ModuleList(parts)
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points being measured: see ``MarginalAcquisitionFunction``."""
        if self.region is None:
            super().set_X_pending(X_pending)
            return
        set_pending_of_each(self, X_pending)

    def _values(self, X: Tensor) -> Tensor:
        if self.region is None:
            return super()._values(X)
        moments = [each._mean_and_sigma(X) for each in self.outputs]  # type: ignore[operator]
        return value_of_region(self.region, moments, self._of_region)

    def _of_region(
        self, region: ValueRegion, mean: list[Tensor], sigma: list[Tensor]
    ) -> Tensor:
        r"""The value of ``N`` points, by default a sum over outputs and levels.

        Each score counts by the share by which the class depends on the level
        (``level_weights``), so that where another output decides it counts nothing.

        Args:
            region: The region.
            mean: For each output ``N`` means.
            sigma: For each output ``N`` standard deviations.
        """
        weights = level_weights(region.cells, mean, [own.square() for own in sigma])
        total = torch.zeros_like(mean[0])
        for j, levels in enumerate(region.cells.levels):
            for i, level in enumerate(levels.unbind(dim=1)):
                score = self._score_at(mean[j], sigma[j], level)
                total = total + weights[j][:, i] * score / self.units[j] ** self.unit
        return total

    def _score(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return self._score_at(mean, sigma, self.threshold.to(mean))

    @abstractmethod
    def _score_at(self, mean: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        r"""The value of points, by moments of one output and one level."""


@constructible
class Straddle(LevelAcquisitionFunction):
    r"""Straddle score: high where a point is uncertain and near the level.

    ``a(x) = sqrt(beta) sigma(x) - |mean(x) - threshold|``: how far the interval
    ``mean +- sqrt(beta) sigma`` reaches over the level on its shorter side. Positive
    where the level lies inside the interval. Units of ``y``; ``q = 1`` only.

    Example:
        >>> acqf = Straddle(model, threshold=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Bryan et al. (2005); Gotovos et al. (2013), section 3; with pending points
        STR_batch of section 5. Deviation: averaged over the members of an ensemble.
    """

    def __init__(
        self,
        model: Model,
        threshold: float | Tensor | None = None,
        beta: float = STRADDLE_BETA,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        *,
        goal: Any = None,
    ) -> None:
        r"""A straddle score of a model and a level, or a region.

        Args:
            model, threshold, posterior_transform, X_pending, goal: See
                ``LevelAcquisitionFunction``, as for the other errors.
            beta: The squared width, at least 0.

        Raises:
            ValueError: If ``beta`` is negative.
        """
        super().__init__(model, threshold, posterior_transform, X_pending, goal=goal)
        self.beta = in_interval(beta, "beta", 0.0, math.inf, closed_low=True)

    def _score_at(self, mean: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        return straddle(mean, sigma, level, self.beta)

    def _of_region(
        self, region: ValueRegion, mean: list[Tensor], sigma: list[Tensor]
    ) -> Tensor:
        r"""The distance by which the intervals reach over a change of the class."""
        half = [self.beta**0.5 * own for own in sigma]
        ends = list(zip(mean, half, strict=True))
        lower, upper = [m - h for m, h in ends], [m + h for m, h in ends]
        return region.ambiguity(lower, upper, self.units)


@constructible
class UFunction(LevelAcquisitionFunction):
    r"""Learning function U: high where the mean is few deviations from the level.

    ``a(x) = -|mean(x) - threshold| / sigma(x)``, without unit: largest, 0, where the
    mean equals the threshold, and ``Phi(a(x))`` is the probability that the sign of
    ``mean - threshold`` says the wrong side. ``q = 1`` only. With noise it may ask for
    one point again and again, since a point on the level keeps the value 0.

    Example:
        >>> acqf = UFunction(model, threshold=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Echard et al. (2011), the learning function U of AK-MCS. Deviations: minus the
        paper's, since ours is maximised; averaged over the members of an ensemble.
    """

    unit = 0
    is_gaussian = True

    def _score_at(self, mean: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        return u_function(mean, sigma, level)

    def _of_region(
        self, region: ValueRegion, mean: list[Tensor], sigma: list[Tensor]
    ) -> Tensor:
        r"""The number of deviations from the level that would have the same doubt."""
        doubt = region.doubt(mean, sigma)
        return torch.special.ndtri(doubt.clamp_min(torch.finfo(doubt.dtype).tiny))


@constructible
class ContourEntropy(LevelAcquisitionFunction):
    r"""Entropy of the side: high where little is known of it.

    ``a(x) = -p log p - (1 - p) log(1 - p)``, where ``p = P(f(x) >= threshold)`` under
    the Gaussian posterior of ``f``. Nats: ``log 2`` where the mean equals the
    threshold, and 0 where the side is certain. ``q = 1`` only. It has the maximiser of
    ``UFunction``, and its weakness; its values may be added up, and over the members
    of an ensemble the two differ.

    Example:
        >>> acqf = ContourEntropy(model, threshold=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Shannon's entropy; for contours Cole et al. (2023). Deviation: averaged over the
        members of an ensemble.
    """

    is_gaussian = True

    def _score_at(self, mean: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        return contour_entropy(mean, sigma, level)

    def _of_region(
        self, region: ValueRegion, mean: list[Tensor], sigma: list[Tensor]
    ) -> Tensor:
        r"""The entropy of the class itself: of all outputs and levels together."""
        p = region.cells.probabilities(mean, sigma)
        p = p.clamp_min(torch.finfo(p.dtype).tiny)  # where the entropy has a slope
        return torch.special.entr(p).sum(dim=-1)


@constructible
class ExpectedFeasibility(LevelAcquisitionFunction):
    r"""Expected feasibility: how deep the value is expected in a band on the level.

    ``a(x) = E max(alpha sigma(x) - |f(x) - threshold|, 0)`` under the Gaussian
    posterior of ``f``, whose standard deviation is ``sigma``: the band is as wide as
    the point is uncertain. Units of ``y``; ``q = 1`` only.

    Example:
        >>> acqf = ExpectedFeasibility(model, threshold=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Bichon et al. (2008), the expected feasibility function of EGRA, with
        ``alpha = 2``. Deviation: averaged over the members of an ensemble.
    """

    is_gaussian = True

    def __init__(
        self,
        model: Model,
        threshold: float | Tensor | None = None,
        alpha: float = FEASIBILITY_ALPHA,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        *,
        goal: Any = None,
    ) -> None:
        r"""An expected feasibility of a model and a level, or a region.

        Args:
            model, threshold, posterior_transform, X_pending, goal: See
                ``LevelAcquisitionFunction``, as for the other errors.
            alpha: The band's half-width in standard deviations, above 0.

        Raises:
            ValueError: If ``alpha`` is not above 0.
        """
        super().__init__(model, threshold, posterior_transform, X_pending, goal=goal)
        self.alpha = in_interval(alpha, "alpha", 0.0, math.inf)

    def _score_at(self, mean: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        return expected_feasibility(mean, sigma, level, self.alpha)


@constructible
class RanjanImprovement(LevelAcquisitionFunction):
    r"""Ranjan's expected improvement for contours.

    ``a(x) = E max((alpha sigma(x))^2 - (f(x) - threshold)^2, 0)`` under the Gaussian
    posterior of ``f``, whose standard deviation is ``sigma``. It favours uncertain
    points more than ``ExpectedFeasibility`` does. Units of ``y`` squared; ``q = 1``
    only.

    Example:
        >>> acqf = RanjanImprovement(model, threshold=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Ranjan et al. (2008), the expectation of their improvement, with
        ``alpha = 1.96``. Deviation: averaged over the members of an ensemble.
    """

    unit = 2
    is_gaussian = True

    def __init__(
        self,
        model: Model,
        threshold: float | Tensor | None = None,
        alpha: float = RANJAN_ALPHA,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        *,
        goal: Any = None,
    ) -> None:
        r"""Ranjan's expected improvement of a model and a level, or a region.

        Args:
            model, threshold, posterior_transform, X_pending, goal: See
                ``LevelAcquisitionFunction``, as for the other errors.
            alpha: The band's half-width in standard deviations, above 0.

        Raises:
            ValueError: If ``alpha`` is not above 0.
        """
        super().__init__(model, threshold, posterior_transform, X_pending, goal=goal)
        self.alpha = in_interval(alpha, "alpha", 0.0, math.inf)

    def _score_at(self, mean: Tensor, sigma: Tensor, level: Tensor) -> Tensor:
        return ranjan_improvement(mean, sigma, level, self.alpha)


@constructible
class ImplicitStraddle(MarginalAcquisitionFunction):
    r"""Straddle score for the level ``omega max f``, with the largest mean plugged in.

    ``a(x) = sqrt(beta) sigma(x) - |mean(x) - omega max_pool mean|``. The level is
    computed at construction. Nothing in it looks for the maximum, so it can get stuck:
    prefer ``LSEWidth`` or ``ImplicitLSEStrategy``. Units of ``y``; ``q = 1`` only.

    Source:
        Gotovos et al. (2013), section 5, STR_imp.
    """

    threshold: Tensor

    def __init__(
        self,
        model: Model,
        omega: float,
        pool: Pool | Tensor,
        beta: float = STRADDLE_BETA,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""An implicit straddle score of a model and a pool.

        Args:
            model, posterior_transform, X_pending: See ``MarginalAcquisitionFunction``,
                as for the other errors.
            omega: The level as a share of the maximum, in (0, 1).
            pool: The rows over which the maximum is taken, a ``Pool`` or ``N x d``.
            beta: The squared width, at least 0.

        Raises:
            ValueError: If ``omega`` is outside (0, 1) or ``beta`` negative.
            BotorchTensorDimensionError: If ``pool`` has other columns than the model.
        """
        super().__init__(model, posterior_transform, X_pending)
        check_is_one(model, type(self).__name__)
        self.omega = ratio(omega)
        self.beta = in_interval(beta, "beta", 0.0, math.inf, closed_low=True)
        X = pool.X if isinstance(pool, Pool) else real_matrix(pool, "pool")
        parameter = next(iter(model.parameters()), None)
        X = X if parameter is None else X.to(parameter)
        check_columns(self._posterior, X, "pool")
        self.register_buffer("threshold", self.omega * self._largest_mean(X))

    def _largest_mean(self, X: Tensor) -> Tensor:
        r"""The largest posterior mean among the rows of a pool, in chunks."""
        with torch.no_grad():
            posteriors = map(self._posterior, X.unsqueeze(-2).split(_POOL_CHUNK))
            best = [each.mean[..., 0, 0].amax(dim=0) for each in posteriors]
        return torch.stack(best).amax(dim=0)

    def _score(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return straddle(mean, sigma, self.threshold.to(mean), self.beta)


@constructible
class MaxVariance(MarginalAcquisitionFunction):
    r"""Posterior variance: pure exploration, whatever the level.

    ``a(x) = sigma(x)^2``, units of ``y`` squared; ``q = 1`` only.

    Source:
        Gotovos et al. (2013), section 5, VAR. Deviation: the variance, which has the
        same maximiser as the standard deviation.
    """

    def _score(self, mean: Tensor, sigma: Tensor) -> Tensor:
        return sigma.square()


class RegionAcquisitionFunction(AcquisitionFunction, ABC):
    r"""A score of the confidence region ``C_t(x)``, which holds the whole past.

    The region at ``x`` is the intersection of the prior's interval and of the intervals
    after each round of the training data, for any ``x`` (``PosteriorPath``). Pending
    points shrink ``sigma`` of one more interval, with the mean left, which is
    intersected only for this choice. Where the intervals have nothing in common it is
    the last one alone.

    Prior and data are those of the model at construction: make a new one after
    ``load_state_dict`` or ``set_train_data``.

    Raises:
        UnsupportedError: If the model's path is not available exactly.
    """

    betas: Tensor
    X_pending = PENDING

    def __init__(
        self,
        model: Model,
        beta: float | BetaSchedule = LSE_BETA,
        rounds: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""A score of a model's region with its widths and rounds.

        Args:
            model: A fitted exact GP with one output.
            beta: The squared width, a number or a schedule ``t -> beta_t``.
            rounds: ``n`` round numbers of the training observations, not decreasing;
                default each its own.
            posterior_transform: Must be ``None``.
            X_pending: ``n' x d`` points submitted and not observed yet.

        Raises:
            UnsupportedError: If the model's path is not available exactly or a
                posterior transform is given.
            ValueError: If ``beta`` is negative or ``rounds`` do not fit.
        """
        if isinstance(model, ModelList) and model.num_outputs == 1:
            model = model.subset_output([0])  # the one model itself
        super().__init__(model=model)
        if posterior_transform is not None:
            check_outputs(model, posterior_transform)  # it may take none at all
            raise UnsupportedError(
                "Expected `posterior_transform` to be None for "
                f"{type(self).__name__}, but got {type(posterior_transform).__name__}. "
                "Use `Straddle`; or, where outputs are independent, give the model of "
                "one, `model.subset_output([i])`."
            )
        self._path = PosteriorPath.from_model(model, rounds)
        betas = path_betas(beta_schedule(beta), self._path.n_rounds)
        self.register_buffer("betas", betas)
        self._chosen_from = self._path
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points that are being measured: they shrink the last interval.

        Their noise is the model's; of a noise for each value the mean.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix with the columns of the
                model's inputs.
        """
        X_pending = pending_matrix(X_pending, self.model)
        if X_pending is not None:
            check_columns(self._path.moments, X_pending, "X_pending")
        path = self._path
        if X_pending is not None:
            with torch.no_grad():
                F = path.prior.features(X_pending)
                path = path.after(F, path.new_noise_var(F.shape[-2]))
        self._pending, self._chosen_from = X_pending, path

    def _region(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""The ends ``lower`` and ``upper`` at ``batch_shape x 1 x d``.

        Returns:
            Two tensors ``batch_shape``, with the ensemble's dimension last if any.
        """
        path = self._chosen_from
        points = X.reshape(-1, X.shape[-1])
        means, variances = path.moments(points)
        betas = self.betas
        if path is not self._path:  # one more interval, at the width of the last one
            betas = torch.cat((betas, betas[-1:]))
        ends = intersect_path(means, variances, betas)[:2]
        shape = X.shape[:-2]
        lower, upper = (end.to(X).movedim(-1, 0) for end in ends)
        return (
            lower.reshape(*shape, *lower.shape[1:]),
            upper.reshape(*shape, *upper.shape[1:]),
        )

    @abstractmethod
    def _score(self, lower: Tensor, upper: Tensor) -> Tensor:
        r"""The value of points, by the ends of their confidence regions."""

    @of_one_point
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x 1 x d`` to ``batch_shape``)."""
        return self._values(X)

    def _values(self, X: Tensor) -> Tensor:
        return self._score(*self._region(X))


@constructible
class LSEAmbiguity(RegionAcquisitionFunction):
    r"""Ambiguity of the side: how far the region reaches over the level.

    ``a(x) = min(max C(x) - threshold, threshold - min C(x))``, units of ``y``. At least
    ``epsilon`` exactly where a point is undecided at accuracy ``epsilon``, so that its
    maximiser over a pool is LSE's choice. ``q = 1`` only.

    Example:
        >>> acqf = LSEAmbiguity(model, threshold=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Gotovos et al. (2013), section 3, ``a_t``; in batches section 4.2 with erratum 6
        (papers/gotovos2013/errata.md).
    """

    needs_level = True
    threshold: Tensor
    region: ValueRegion | None

    def __init__(
        self,
        model: Model,
        threshold: float | Tensor | None = None,
        beta: float | BetaSchedule = LSE_BETA,
        rounds: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        *,
        goal: Any = None,
    ) -> None:
        r"""An ambiguity of a model's region and a level.

        Args:
            model, beta, rounds, posterior_transform, X_pending: See
                ``RegionAcquisitionFunction``, as for the other errors; of a ``goal``
                of several outputs the model has them all.
            threshold: The level, a scalar in the units of ``y``; exactly one of
                ``threshold`` and ``goal``.
            goal: See ``LevelAcquisitionFunction``.

        Raises:
            ValueError: If ``threshold`` is not finite, or ``goal`` is no region.
            BotorchTensorDimensionError: If ``threshold`` is not a scalar.
        """
        self.region = region_of(threshold, goal)
        if self.region is not None:
            outputs = outputs_of(model, self.region, posterior_transform)
            if (one := self.region.only_comparison) is not None:
                self.region, threshold = None, one.level
                model, posterior_transform = outputs[one.output]
        if self.region is None:
            super().__init__(model, beta, rounds, posterior_transform, X_pending)
            level = level_buffer(threshold, "threshold")  # type: ignore[arg-type]
            self.register_buffer("threshold", level)
            return
        AcquisitionFunction.__init__(self, model=model)
        self.units = units_of(outputs)
        self.outputs = ModuleList(
            LSEWidth(own, beta, rounds, transform) for own, transform in outputs
        )
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points being measured: see ``RegionAcquisitionFunction``."""
        if self.region is None:
            super().set_X_pending(X_pending)
            return
        set_pending_of_each(self, X_pending)

    def _values(self, X: Tensor) -> Tensor:
        if self.region is None:
            return super()._values(X)
        ends = [each._region(X) for each in self.outputs]  # type: ignore[operator]

        def ambiguity_of(
            region: ValueRegion, lower: list[Tensor], upper: list[Tensor]
        ) -> Tensor:
            return region.ambiguity(lower, upper, self.units)

        return value_of_region(self.region, ends, ambiguity_of)

    def _score(self, lower: Tensor, upper: Tensor) -> Tensor:
        return ambiguity(lower, upper, self.threshold.to(lower))


@constructible
class LSEWidth(RegionAcquisitionFunction):
    r"""Width of the confidence region, ``max C(x) - min C(x)``, units of ``y``.

    The choice of LSE for an implicit level, among the points still in question. ``q =
    1`` only.

    Source:
        Gotovos et al. (2013), section 4.1, ``w_t``.
    """

    def _score(self, lower: Tensor, upper: Tensor) -> Tensor:
        return upper - lower
