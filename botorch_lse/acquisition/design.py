r"""The worst remaining posterior variance over a set of targets, given a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from botorch.utils.transforms import (
    average_over_ensemble_models,
    t_batch_mode_transform,
)
from torch import Tensor

from botorch_lse.acquisition.base import check_outputs, pending_matrix
from botorch_lse.acquisition.covariance import (
    PosteriorCovariance,
    Seen,
    posterior_covariance,
)
from botorch_lse.acquisition.noise import NoiseVar, check_noise, future_noise
from botorch_lse.checks import check_columns, real_matrix
from botorch_lse.functional.path import factorize, path_rows
from botorch_lse.posterior import MEMORY_BUDGET, row_blocks
from botorch_lse.problem import Pool

CACHE = MEMORY_BUDGET // 4
"""Bytes that may be kept about the targets between evaluations."""


class TargetAcquisitionFunction(AcquisitionFunction, ABC):
    r"""An acquisition function of what a q-batch tells about targets.

    It prepares the covariances of the targets once for given data and pending points.
    """

    targets: Tensor

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        noise_var: NoiseVar | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
    ) -> None:
        r"""The model, what to predict, and how future observations are measured.

        Args:
            model: A fitted model with a Gaussian posterior.
            targets: ``T x d`` points whose values matter, or a ``Pool``: all its rows.
            noise_var: The noise variance of a future observation, units of ``y``
                squared: a number, or a function from ``b x q x d`` points to ``b x q``.
                Default the model's own.
            X_pending: ``n' x d`` points submitted and not observed yet.
            posterior_transform: Required for a model with several outputs.

        Raises:
            UnsupportedError: If the model has several outputs and no transform, knows
                the noise of its own observations only, or has no Gaussian posterior.
            ValueError: If ``targets`` is empty or not finite, or ``noise_var`` not
                positive.
        """
        super().__init__(model=model)
        check_outputs(model, posterior_transform)
        self.posterior_transform = posterior_transform
        self.noise_var = check_noise(noise_var, model)
        X = targets.X if isinstance(targets, Pool) else real_matrix(targets, "targets")
        parameter = next(iter(model.parameters()), X)
        self.register_buffer("targets", X.to(parameter))
        self._data_only = posterior_covariance(model, posterior_transform)
        self.covariance: PosteriorCovariance = self._data_only
        check_columns(self._see, self.targets, "targets")
        with torch.no_grad():
            everywhere = self._for_members(self.targets)
            self.least_noise = self._data_only.least_noise(everywhere)
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Points that are out count as observed.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix with the columns of the
                targets.
        """
        pending = pending_matrix(X_pending)
        if pending is not None:
            self._check_columns(pending, "X_pending")
        super().set_X_pending(pending)
        self.covariance = self._data_only
        with torch.no_grad():
            if self.X_pending is not None:
                X = self._for_members(self.X_pending.to(self.targets))
                noise = self.future_noise(self.X_pending.to(self.targets))
                self.covariance = self._data_only.after(X, noise)
            self._prepare_targets()

    def _check_columns(self, X: Tensor, name: str) -> None:
        d = self.targets.shape[-1]
        if X.shape[-1] != d:
            raise BotorchTensorDimensionError(
                f"Expected `{name}` to have the {d} columns of `targets`, but got "
                f"shape {tuple(X.shape)}."
            )

    def _prepare_targets(self) -> None:
        r"""What every evaluation needs of the targets, as far as memory allows."""
        first = self._see(self.targets[:1])
        self._width = first.F.shape[-1] + first.V.shape[-1]
        numbers = self._width * len(self.targets) * self.covariance.members.numel()
        self._seen = self._see(self.targets) if 8 * numbers <= CACHE else None
        blocks = row_blocks(len(self.targets), self._width)
        variances = [self.covariance.variance(self._seen_rows(b)) for b in blocks]
        self.variance = torch.cat(variances, dim=-1)

    def _see(self, X: Tensor) -> Seen:
        return self.covariance.see(self._for_members(X))

    def _seen_rows(self, rows: slice) -> Seen:
        r"""Targets ``rows``, prepared."""
        if self._seen is not None:
            return self._seen.rows(rows)
        return self._see(self.targets[rows])

    def _for_members(self, X: Tensor) -> Tensor:
        r"""``b x p x d`` to ``b x S x p x d``."""
        members = self._data_only.members
        wide = X[(..., *[None] * len(members), slice(None), slice(None))]
        return wide.expand(*X.shape[:-2], *members, *X.shape[-2:])

    def future_noise(self, X: Tensor) -> Tensor:
        r"""Noise variances ``b x S x q`` of observations at ``X``: ``b x q x d``."""
        found = future_noise(
            self.noise_var, X, self._data_only, self.model, self.posterior_transform
        )
        return torch.maximum(found, self.least_noise.unsqueeze(-1))

    def _factor(self, batch: Seen, X: Tensor) -> Tensor:
        r"""``b x S x q x q``, the factor of a batch's covariance plus noise.

        Args:
            batch: ``b x S x q`` points.
            X: ``b x q x d``, the same.
        """
        noise = self.future_noise(X.to(self.targets))
        block = self.covariance.between(batch, batch)
        return factorize(block, noise, self.least_noise)


class DesignAcquisitionFunction(TargetAcquisitionFunction, ABC):
    r"""Minus the largest posterior variance over all targets after a q-batch.

    A target is a linear combination of function values at points (``combination``). The
    variance after the batch does not depend on the values to come, so it is exact:
    ``var(t) - c_t' (C + diag(noise_var))^-1 c_t`` with ``C`` the posterior covariance
    of the batch and ``c_t`` that of the batch with the target. Replicates inside the
    batch count as separate observations.

    The worst target is found without gradients, in blocks; the value and its gradient
    are then computed for it alone, so memory does not grow with the targets.
    """

    pairs_factor: float | None = None
    """``c`` where the targets are the pairs ``f(x) - c f(x')``."""

    def combination(self) -> Tensor:
        r"""``m`` coefficients of a target's points: ``(1,)``, for pairs ``(1, -c)``."""
        c = self.pairs_factor
        both = [1.0] if c is None else [1.0, -c]
        return torch.tensor(both, dtype=torch.float64, device=self.targets.device)

    @property
    def weights(self) -> Tensor | None:
        r"""``T`` factors of the variances of single targets; ``None``: all 1."""
        return None

    @abstractmethod
    def _worst(self, batch: Seen, L: Tensor) -> Tensor:
        r"""The targets of largest variance after each batch, by their points.

        Args:
            batch: ``b x S x q`` points.
            L: ``b x S x q x q``, the factor of their noisy covariance.

        Returns:
            ``b x S x m`` rows of ``targets``, combined by ``combination``: ``m``.
        """

    @t_batch_mode_transform()
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""Values at ``X``: ``batch_shape x q x d`` to ``batch_shape``."""
        self._check_columns(X, "X")
        flat = X.reshape(-1, *X.shape[-2:])
        batch = self._see(flat.to(self.targets))
        L = self._factor(batch, flat)
        with torch.no_grad():
            rows = self._worst(batch, L)
            worst = self.targets[rows]  # b x S x m x d
            points = self.covariance.see(worst)
            own = self.covariance.between(points, points)
        a = self.combination()
        cross = self.covariance.between(batch, points) @ a  # b x S x q
        gain = path_rows(L, cross.unsqueeze(-1)).square().sum(dim=(-2, -1))
        variance = (a @ own @ a - gain).clamp_min(0.0)
        if self.weights is not None:
            variance = variance * self.weights[rows[..., 0]]
        return -variance.reshape(*X.shape[:-2], *variance.shape[1:]).to(X)


class qNegMaxPosteriorVariance(DesignAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""Minus the worst posterior variance over the targets, given the q-batch.

    ``a(X) = -max over t of var(f(t) | data, pending, X)``, units of ``y`` squared: the
    criterion of a G-optimal (minimax) design on a Gaussian process. The whole batch
    counts at once; on a pool use ``optimize_acqf_design``, since one point alone often
    does not lower the largest variance and greedy choices then have no direction.

    Example:
        >>> acqf = qNegMaxPosteriorVariance(model, targets=pool_X, noise_var=25.0)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Mason et al. (2022), Algorithm 1, line 5 and appendix F.1, for integer counts
        and with the posterior variance in place of ``|phi|^2_{A^-1}``, which it is, up
        to a factor, for a Gaussian process. Deviation: averaged over an ensemble.
    """

    def _worst(self, batch: Seen, L: Tensor) -> Tensor:
        largest = L.new_full(L.shape[:-2], -torch.inf)  # b x S
        where = torch.zeros_like(largest, dtype=torch.long)
        for block in row_blocks(len(self.targets), self._width + L[..., 0].numel()):
            W = path_rows(L, self.covariance.between(batch, self._seen_rows(block)))
            left = self.variance[..., block] - W.square().sum(dim=-2)
            if self.weights is not None:
                left = left * self.weights[block]
            top, at = left.max(dim=-1)
            where = torch.where(top > largest, at + block.start, where)
            largest = torch.maximum(top, largest)
        return where.unsqueeze(-1)


class qMELK(qNegMaxPosteriorVariance):  # noqa: N801
    r"""MELK's batch criterion on a Gaussian process.

    ``qNegMaxPosteriorVariance`` with the undecided rows as ``targets``: a batch chosen
    by it shrinks the widest of the intervals that still matter.

    Source:
        Mason et al. (2022), Algorithm 1 and section 5; see the parent.
    """
