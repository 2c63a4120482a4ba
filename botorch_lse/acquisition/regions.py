r"""LSE's scores on intersected confidence regions, at any point and with gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import (
    average_over_ensemble_models,
    t_batch_mode_transform,
)
from torch import Tensor

from botorch_lse.acquisition.base import level_buffer, pending_matrix
from botorch_lse.checks import check_columns
from botorch_lse.confidence.regions import intersect_path, path_betas
from botorch_lse.confidence.schedules import BetaSchedule, beta_schedule
from botorch_lse.functional.scores import ambiguity
from botorch_lse.models.posterior import PosteriorPath

LSE_BETA = 9.0


class RegionAcquisitionFunction(AcquisitionFunction, ABC):
    r"""A score of the confidence region ``C_t(x)``, which holds the whole past.

    The region at ``x`` is the intersection of the prior's interval and of the intervals
    after each round of the training data, for any ``x``: nothing is stored, the past is
    computed from the model (``PosteriorPath``). Pending points shrink ``sigma`` of one
    more interval, with the mean left, which is intersected only for this choice.

    Raises:
        UnsupportedError: If the model's path is not available exactly.
    """

    betas: Tensor

    def __init__(
        self,
        model: Model,
        beta: float | BetaSchedule = LSE_BETA,
        rounds: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""The region's model, width and rounds.

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
        super().__init__(model=model)
        if posterior_transform is not None:
            raise UnsupportedError(
                "Expected `posterior_transform` to be None for "
                f"{type(self).__name__}, but got {type(posterior_transform).__name__}. "
                "Take one output with `model.subset_output([i])`, or use `Straddle`."
            )
        self._path = PosteriorPath.from_model(model, rounds)
        betas = path_betas(beta_schedule(beta), self._path.n_rounds)
        self.register_buffer("betas", betas)
        self._chosen_from = self._path
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Points that are out: they shrink the variance of the last interval.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix with the columns of the
                model's inputs.
            UnsupportedError: If the model does not know the noise of new observations.
        """
        X_pending = pending_matrix(X_pending)
        if X_pending is not None:
            check_columns(self._path.moments, X_pending, "X_pending")
        super().set_X_pending(X_pending)
        self._chosen_from = self._path
        if X_pending is not None:
            with torch.no_grad():
                F = self._path.prior.features(X_pending)
                noise = self._path.new_noise_var(F.shape[-2])
                self._chosen_from = self._path.after(F, noise)

    def _region(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""``lower`` and ``upper`` at ``batch_shape x 1 x d``.

        Returns:
            Two tensors ``batch_shape``, with the ensemble's dimension last if any.
        """
        path = self._chosen_from
        points = X.reshape(-1, X.shape[-1])
        means, variances = path.moments(points)
        betas = self.betas
        if path is not self._path:
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
        r"""The score of a region."""

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""Values at ``X``: ``batch_shape x 1 x d`` to ``batch_shape``."""
        return self._score(*self._region(X))


class LSEAmbiguity(RegionAcquisitionFunction):
    r"""Ambiguity of the side: how far the region reaches over the level.

    ``a(x) = min(max C(x) - threshold, threshold - min C(x))``, units of ``y``. At least
    ``epsilon`` exactly where a point is undecided at accuracy ``epsilon``, so that its
    maximiser over a pool is LSE's choice. ``q = 1`` only.

    Example:
        >>> acqf = LSEAmbiguity(model, threshold=0.5)
        >>> values = acqf(X)  # X: batch_shape x 1 x d; values: batch_shape

    Source:
        Gotovos et al. (2013), section 3, ``a_t``; in batches section 4.2 with errata 6.
    """

    threshold: Tensor

    def __init__(
        self,
        model: Model,
        threshold: float | Tensor,
        beta: float | BetaSchedule = LSE_BETA,
        rounds: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""Ambiguity.

        Args:
            model: A fitted exact GP with one output.
            threshold: The level, a scalar in the units of ``y``.
            beta: The squared width, a number or a schedule ``t -> beta_t``.
            rounds: ``n`` round numbers of the training observations, not decreasing;
                default each its own.
            posterior_transform: Must be ``None``.
            X_pending: ``n' x d`` points submitted and not observed yet.

        Raises:
            UnsupportedError: If the model's path is not available exactly.
            ValueError: If ``threshold`` is not finite or ``beta`` negative.
            BotorchTensorDimensionError: If ``threshold`` is not a scalar.
        """
        super().__init__(model, beta, rounds, posterior_transform, X_pending)
        self.register_buffer("threshold", level_buffer(threshold, "threshold"))

    def _score(self, lower: Tensor, upper: Tensor) -> Tensor:
        return ambiguity(lower, upper, self.threshold.to(lower))


class LSEWidth(RegionAcquisitionFunction):
    r"""The width of the confidence region, ``max C(x) - min C(x)``, units of ``y``.

    The choice of LSE for an implicit level, among the points still in question. ``q =
    1`` only.

    Source:
        Gotovos et al. (2013), section 4.1, ``w_t``.
    """

    def _score(self, lower: Tensor, upper: Tensor) -> Tensor:
        return upper - lower
