r"""Straddle and its relatives: functions of the current posterior alone."""

from __future__ import annotations

import math

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.transforms import (
    average_over_ensemble_models,
    t_batch_mode_transform,
)
from torch import Tensor

from botorch_lse.acquisition.base import MarginalAcquisitionFunction, level_buffer
from botorch_lse.checks import check_columns, in_interval, real_matrix
from botorch_lse.confidence.classify import ratio
from botorch_lse.functional.scores import straddle
from botorch_lse.problem import Pool

STRADDLE_BETA = 1.96**2

_POOL_CHUNK = 4096
"""Pool rows per posterior call: a chunk of t-batches stays small in memory."""


class Straddle(MarginalAcquisitionFunction):
    r"""Straddle: uncertain and near the level.

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

    threshold: Tensor

    def __init__(
        self,
        model: Model,
        threshold: float | Tensor,
        beta: float = STRADDLE_BETA,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""Straddle.

        Args:
            model: A fitted model.
            threshold: The level, a scalar in the units the posterior reports.
            beta: The squared width, at least 0.
            posterior_transform: Required for a model with several outputs.
            X_pending: ``n' x d`` points submitted and not observed yet.

        Raises:
            UnsupportedError: If the model has several outputs and no transform.
            ValueError: If ``threshold`` is not finite or ``beta`` negative.
            BotorchTensorDimensionError: If ``threshold`` is not a scalar.
        """
        super().__init__(model, posterior_transform, X_pending)
        self.register_buffer("threshold", level_buffer(threshold, "threshold"))
        self.beta = in_interval(beta, "beta", 0.0, math.inf, closed_low=True)

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""Values at ``X``: ``batch_shape x 1 x d`` to ``batch_shape``."""
        mean, sigma = self._mean_and_sigma(X)
        return straddle(mean, sigma, self.threshold.to(X), self.beta)


class ImplicitStraddle(MarginalAcquisitionFunction):
    r"""Straddle for the level ``omega max f``, with the maximum of the mean plugged in.

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
        r"""Implicit straddle.

        Args:
            model: A fitted model.
            omega: The level as a share of the maximum, in (0, 1).
            pool: The rows over which the maximum is taken, a ``Pool`` or ``N x d``.
            beta: The squared width, at least 0.
            posterior_transform: Required for a model with several outputs.
            X_pending: ``n' x d`` points submitted and not observed yet.

        Raises:
            UnsupportedError: If the model has several outputs and no transform.
            ValueError: If ``omega`` is outside (0, 1) or ``beta`` negative.
            BotorchTensorDimensionError: If ``pool`` has other columns than the model.
        """
        super().__init__(model, posterior_transform, X_pending)
        self.omega = ratio(omega)
        self.beta = in_interval(beta, "beta", 0.0, math.inf, closed_low=True)
        X = pool.X if isinstance(pool, Pool) else real_matrix(pool, "pool")
        parameter = next(iter(model.parameters()), None)
        X = X if parameter is None else X.to(parameter)
        check_columns(self._posterior, X, "pool")
        self.register_buffer("threshold", self.omega * self._largest_mean(X))

    def _largest_mean(self, X: Tensor) -> Tensor:
        best = []
        with torch.no_grad():
            for chunk in X.split(_POOL_CHUNK):
                posterior = self._posterior(chunk.unsqueeze(-2))
                best.append(posterior.mean[..., 0, 0].amax(dim=0))
        return torch.stack(best).amax(dim=0)

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""Values at ``X``: ``batch_shape x 1 x d`` to ``batch_shape``."""
        mean, sigma = self._mean_and_sigma(X)
        return straddle(mean, sigma, self.threshold.to(X), self.beta)


class MaxVariance(MarginalAcquisitionFunction):
    r"""The posterior variance: explore, whatever the level.

    ``a(x) = sigma(x)^2``, units of ``y`` squared; ``q = 1`` only.

    Source:
        Gotovos et al. (2013), section 5, VAR. Deviation: the variance, which has the
        same maximiser as the standard deviation.
    """

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""Values at ``X``: ``batch_shape x 1 x d`` to ``batch_shape``."""
        _, sigma = self._mean_and_sigma(X)
        return sigma.square()
