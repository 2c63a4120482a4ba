r"""Acquisition functions of a whole q-batch: variances that it leaves at targets.

Targets are the points whose values matter. ``qNegMaxPosteriorVariance`` and the classes
derived from it look at the largest variance that is left, ``qTruVaR`` at the sum of all
variances down to a width that is small enough, the classes with a ``threshold`` at
variances near a level and at the sides of targets.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.cost_aware import CostAwareUtility
from botorch.acquisition.objective import (
    PosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.model import Model
from botorch.utils.transforms import (
    average_over_ensemble_models,
    is_ensemble,
)
from torch import Tensor
from torch.nn import ModuleList

from botorch_lse._device import moved
from botorch_lse._validation import (
    check_columns,
    check_map,
    in_interval,
    non_negative_vector,
    real_matrix,
    same_columns,
)
from botorch_lse.acquisition.base import (
    PENDING,
    by_itself,
    check_is_one,
    check_outputs,
    constructible,
    level_buffer,
    of_batches,
    pending_matrix,
)
from botorch_lse.acquisition.covariance import (
    Averages,
    NoiseVar,
    PosteriorCovariance,
    PreparedPoints,
    check_noise,
    posterior_covariance,
)
from botorch_lse.acquisition.outputs import (
    Output,
    independent_outputs,
    outputs_of,
    per_output,
    region_of,
    set_pending_of_each,
    units_of,
)
from botorch_lse.confidence.classify import accuracy, ratio
from botorch_lse.data.pool import Pool
from botorch_lse.functional.cells import UNKNOWN
from botorch_lse.functional.class_removal import class_removal, level_weights
from botorch_lse.functional.lookahead import (
    Removal,
    expected_misclassification,
    mean_absolute,
    mutual_information,
    pieces,
    targeted_variance,
    truncated_variance,
    values_to_come,
    volume_changes,
    volume_series,
)
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.functional.variance_reduction import joint_gain
from botorch_lse.models.gaussian_process import (
    MEMORY_BUDGET,
    factorize,
    path_rows,
    row_blocks,
)

CACHE = MEMORY_BUDGET // 4
"""The bytes that may be kept about the targets between evaluations."""
TOGETHER = 2**12
"""The number of points of t-batches that are evaluated together.
With all of them at once, a block that fits a cache holds the fewer targets the more
t-batches there are: as many more blocks, each of which passes over all t-batches."""
TRUVAR_BETA = 9.0
"""The squared width of three standard deviations, as for LSE."""
Cost = float | Callable[[Tensor], Tensor]
"""The cost of points: a number, or a function (``b x q x d`` to ``b x q``)."""

FREE = "A free measurement would be repeated for ever: add what it costs at least."


class TargetAcquisitionFunction(AcquisitionFunction, ABC):
    r"""An acquisition function of the variances that a q-batch leaves at targets.

    The targets' part of every evaluation is computed once for given data and pending
    points: make a new one after ``load_state_dict`` or ``set_train_data``.
    """

    targets: Tensor
    counted: Tensor | None
    """The factors by which targets count (``S x T``): 0 where a target is left out.
    It is decided for a member of an ensemble, or as the first target of a pair."""
    X_pending = PENDING
    is_of_pairs = False
    """Whether targets are compared with each other, decided ones included."""

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        noise_var: NoiseVar | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        *,
        threshold: float | Tensor | None = None,
        beta: float = TRUVAR_BETA,
        epsilon: float = 0.0,
        goal: Any = None,
    ) -> None:
        r"""A criterion for a model, targets to predict, and the noise of observations.

        Args:
            model: A fitted model with a Gaussian posterior.
            targets: ``T x d`` points whose values matter, or a ``Pool``: all its rows.
            noise_var: The noise variance of a future observation, units of ``y``
                squared: a number, or a function from ``b x q x d`` points to ``b x q``.
                Default the model's own.
            X_pending: ``n' x d`` points submitted and not observed yet.
            posterior_transform: Required for a model with several outputs.
            threshold: Leave out targets whose side of this level is decided by the
                data (pending points do not decide); units of the posterior. Where all
                are decided, none is left out. Default all targets.
            beta: The squared width that decides.
            epsilon: The accuracy up to which it must be right, units of ``y``.
            goal: A region of the output with stated levels, in place of ``threshold``.

        Raises:
            UnsupportedError: If the model has several outputs and no transform, knows
                the noise of its own observations only, or has no Gaussian posterior;
                or ``goal`` is about several outputs.
            ValueError: If ``targets`` is empty or not finite, ``noise_var`` or ``beta``
                not positive, ``threshold`` not finite, or ``epsilon`` negative or given
                without ``threshold``; or both or no region is given as ``goal``.
        """
        region = None
        if threshold is not None or goal is not None:
            region = region_of(threshold, goal, epsilon)
        if region is not None:
            outputs = outputs_of(model, region, posterior_transform)
            if len(region.outputs) > 1:
                raise UnsupportedError(
                    f"Expected `goal` about one output for {type(self).__name__}, "
                    "which predicts one, but got several. Take "
                    "`qExpectedMisclassification(model, targets, goal=goal)`, or "
                    "`qGEGE` on the targets that are not decided."
                )
            model, posterior_transform = outputs[region.outputs[0]]
            region = region.of_output(region.outputs[0])
        check_outputs(model, posterior_transform)
        model, posterior_transform = by_itself(model, posterior_transform)
        super().__init__(model=model)
        check_is_one(model, type(self).__name__)
        self.posterior_transform = posterior_transform
        self.noise_var = check_noise(noise_var, model)
        X = targets.X if isinstance(targets, Pool) else real_matrix(targets, "targets")
        parameter = next(iter(model.parameters()), X)
        self.register_buffer("targets", X.to(parameter))
        self._given_data = posterior_covariance(model, posterior_transform)
        self.covariance: PosteriorCovariance = self._given_data
        check_columns(self._prepare, self.targets, "targets")
        with torch.no_grad():
            everywhere = self._for_members(self.targets)
            self.least_noise = self._given_data.least_noise(everywhere)
        self.register_buffer("counted", None)
        self.rows = torch.arange(len(self.targets), device=self.targets.device)
        if threshold is not None or goal is not None:
            if region is None:
                level = float(level_buffer(threshold, "threshold"))  # type: ignore[arg-type]
                region = ValueRegion.above(level, accuracy(epsilon))
            beta = in_interval(beta, "beta", 0.0, math.inf)
            self._leave_out(self._undecided(region, beta))
        elif accuracy(epsilon) > 0:
            raise ValueError(
                "Expected `threshold` where `epsilon` says how accurately a side must "
                f"be right, but got `epsilon={epsilon}` alone: all targets would count."
            )
        self.set_X_pending(X_pending)

    def _undecided(self, region: ValueRegion, beta: float) -> Tensor:
        r"""The targets whose side is not decided by the data (``S x T`` bools)."""
        parts, region = [], moved(region, self.targets.device)
        with torch.no_grad():
            width = self._prepare(self.targets[:1]).V.shape[-1] + 1
            for rows in row_blocks(len(self.targets), width):
                variance = self._given_data.variance(self._prepare(self.targets[rows]))
                mean, half = self._means(rows), (beta * variance).sqrt()
                is_open = open_between(region, [mean - half], [mean + half])
                parts.append(is_open)
        return torch.cat(parts, dim=-1)

    def _leave_out(self, is_open: Tensor) -> None:
        r"""Leave out all targets but those in question (``S x T`` bools)."""
        if not bool(is_open.any()):
            warn_that_all_are_decided(len(self.targets), stacklevel=5)
            return
        if not self.is_of_pairs:
            self.rows = is_open.view(-1, len(self.targets)).any(dim=0).nonzero()[:, 0]
            self.targets, is_open = self.targets[self.rows], is_open[..., self.rows]
        if not bool(is_open.all()):
            self.counted = is_open.double()

    def _means(self, rows: slice) -> Tensor:
        r"""The posterior means of targets (``S x r``), whatever points are pending."""
        X = self.targets[rows].unsqueeze(-2)
        averages = Averages(self.model, self.posterior_transform)
        mean: Tensor = averages.posterior(averages.meant(X)).mean
        return mean[..., 0, 0].movedim(0, -1).double()

    def _all_means(self) -> Tensor:
        r"""The posterior means of all targets (``S x T``)."""
        with torch.no_grad():
            blocks = row_blocks(len(self.targets), self._width)
            return torch.cat([self._means(block) for block in blocks], dim=-1)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points that are being measured: they count as observed.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix with the columns of the
                targets.
        """
        pending = pending_matrix(X_pending, self.model)
        if pending is not None:
            self._check_columns(pending, "X_pending")
        covariance = self._given_data
        with torch.no_grad():
            if pending is not None:
                X = pending.to(self.targets)
                noise = self.future_noise(X)  # may be refused: nothing is set before
                covariance = covariance.after(self._for_members(X), noise)
            self._pending, self.covariance = pending, covariance
            self._prepare_targets()

    def _check_columns(self, X: Tensor, name: str) -> None:
        r"""Complain about points of other columns than the targets have."""
        same_columns(X, name, self.targets.shape[-1], "`targets`")

    def _prepare_targets(self) -> None:
        r"""Compute the targets' part of every evaluation, if memory allows."""
        first = self._prepare(self.targets[:1])
        self._width = first.F.shape[-1] + first.V.shape[-1]
        numbers = self._width * len(self.targets) * self.covariance.members.numel()
        self._prepared = self._prepare(self.targets) if 8 * numbers <= CACHE else None
        blocks = row_blocks(len(self.targets), self._width)
        variances = [self.covariance.variance(self._targets_at(b)) for b in blocks]
        self.variance = torch.cat(variances, dim=-1)
        # Covariances of all targets with each other; computed when a pair needs them.
        self._gram: Tensor | None = None

    def _target_covariances(self, rows: slice) -> Tensor:
        r"""The covariances of targets ``rows`` with all targets (``S x r x T``).

        All are kept after the first call if they fit into ``CACHE``.
        """
        if self._gram is None:
            T = len(self.targets)
            if 8 * T * self.variance.numel() > CACHE:
                return self._computed_covariances(rows)
            self._gram = self._computed_covariances(slice(0, T))
        return self._gram[..., rows, :]

    def _computed_covariances(self, rows: slice) -> Tensor:
        blocks = row_blocks(len(self.targets), self._width)
        left = self._targets_at(rows)
        parts = [self.covariance.between(left, self._targets_at(b)) for b in blocks]
        return torch.cat(parts, dim=-1)

    def _prepare(self, X: Tensor) -> PreparedPoints:
        r"""Prepare points ``b x p x d``, for every member of an ensemble."""
        return self.covariance.prepare(self._for_members(X))

    def _targets_at(self, rows: slice) -> PreparedPoints:
        r"""The prepared targets ``rows``: from the cache if they are kept there."""
        if self._prepared is not None:
            return self._prepared.rows(rows)
        return self._prepare(self.targets[rows])

    def _for_members(self, X: Tensor) -> Tensor:
        r"""The points ``b x p x d``, repeated for the ``S`` members of an ensemble.

        The result is ``b x S x p x d``, as BoTorch's ensembles need it.
        """
        members = self._given_data.members
        wide = X[(..., *[None] * len(members), slice(None), slice(None))]
        return wide.expand(*X.shape[:-2], *members, *X.shape[-2:])

    def future_noise(self, X: Tensor) -> Tensor:
        r"""The noise variances (``b x S x q``) of observations at ``X``: ``b x q x d``.

        Float64, at least ``least_noise``.

        Raises:
            BotorchTensorDimensionError: If a function returns another shape than ``b x
                q``.
            ValueError: If it returns a negative variance.
        """
        members, noise_var = self._given_data.members, self.noise_var
        if noise_var is None:
            found = self._given_data.own_noise(X)
        elif callable(noise_var):
            found = torch.as_tensor(noise_var(X), dtype=torch.float64, device=X.device)
            check_map(found, X, "noise_var", "variances")
            found = found[(..., *[None] * len(members), slice(None))]
        else:
            found = torch.full((), noise_var, dtype=torch.float64, device=X.device)
        found = found.expand(*X.shape[:-2], *members, X.shape[-2])
        return torch.maximum(found, self.least_noise.unsqueeze(-1))

    def _batch(self, X: Tensor) -> tuple[PreparedPoints, Tensor]:
        r"""The q-batches at ``X``, checked, and the factor of their noisy covariance.

        Args:
            X: ``batch_shape x q x d``, of which the leading dimensions make one, ``b``.

        Returns:
            ``b x S x q`` prepared points, and ``b x S x q x q``.
        """
        self._check_columns(X, "X")
        flat = X.reshape(-1, *X.shape[-2:]).to(self.targets)
        batch = self.covariance.measured(self._for_members(flat))
        noise = self.future_noise(flat)
        block = self.covariance.between(batch, batch)
        return batch, factorize(block, noise, self.least_noise)

    def _cross(self, batch: PreparedPoints, rows: slice) -> Tensor:
        r"""The covariances of batches with some targets (``b x S x q x r``).

        They are 0 with targets that do not count, of which nothing is then removed.
        """
        cross = self.covariance.between(batch, self._targets_at(rows))
        if self.counted is None:
            return cross
        return cross * self.counted[..., rows].unsqueeze(-2)

    def _removed(self, X: Tensor, removal_at: Callable[[slice], Removal]) -> Tensor:
        r"""The decrease of a loss by q-batches, summed over the targets.

        Args:
            X: ``batch_shape x q x d``.
            removal_at: From some of the targets to what a reduction of their variances
                takes off the loss there.

        Returns:
            ``batch_shape x S``, units of the loss.
        """

        def removed(part: Tensor) -> Tensor:
            batch, L = self._batch(part)
            total = L.new_zeros(L.shape[:-2])  # b x S
            for block in row_blocks(len(self.targets), self._width + L[..., 0].numel()):
                gain = joint_gain(L, self._cross(batch, block))  # b x S x block
                total = total + removal_at(block).of(gain).sum(dim=-1)
            return total

        return in_parts(removed, X, self.covariance.members)


@constructible
class qNegMaxPosteriorVariance(TargetAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""Minus the worst posterior variance over the targets, given the q-batch.

    ``a(X) = -max over t of weight_t var(f(t) | data, pending, X)``, units of ``y``
    squared: the criterion of a G-optimal (minimax) design on a Gaussian process. The
    whole batch counts at once; on a pool use ``optimize_acqf_design``, since one point
    alone often does not lower the largest variance and greedy choices then have no
    direction.

    The variance after the batch does not depend on the values to come, so it is exact:
    ``var(t) - c_t' (C + diag(noise_var))^-1 c_t`` with ``C`` the posterior covariance
    of the batch and ``c_t`` that of the batch with the target. Replicates inside the
    batch count as separate observations. ``qMILK``'s targets are differences of two
    function values.

    The worst target is found without gradients, in blocks; the value and its gradient
    are then computed for it alone, so memory does not grow with the targets.

    Example:
        >>> acqf = qNegMaxPosteriorVariance(model, targets=pool_X, noise_var=25.0)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Mason et al. (2022), Algorithm 1, line 5 and appendix F.1, for integer counts
        and with the posterior variance in place of ``|phi|^2_{A^-1}``, which it is, up
        to a factor, for a Gaussian process. Deviation: averaged over an ensemble.
    """

    pairs_factor: float | None = None
    """The factor ``c`` where the targets are the pairs ``f(x) - c f(x')``."""
    target_weights: Tensor | None

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        noise_var: NoiseVar | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        *,
        target_weights: Tensor | None = None,
        threshold: float | Tensor | None = None,
        beta: float = TRUVAR_BETA,
        epsilon: float = 0.0,
        goal: Any = None,
    ) -> None:
        r"""A criterion for a model, targets to predict, and the noise of observations.

        Args:
            model, targets, X_pending, posterior_transform, threshold, beta, epsilon:
                See ``TargetAcquisitionFunction``, as for the other errors.
            goal: Likewise.
            noise_var: The same, or a model with ``predict_noise``.
            target_weights: ``T`` factors of the variances, such as one over the squared
                gaps, at least 0; default 1.

        Raises:
            UnsupportedError: If ``noise_var`` is a model that predicts no noise.
            ValueError: If a weight is negative, or all that count are 0.
            BotorchTensorDimensionError: If there is not one weight per target.
        """
        super().__init__(
            model,
            targets,
            noise_var,
            X_pending,
            posterior_transform,
            threshold=threshold,
            beta=beta,
            epsilon=epsilon,
            goal=goal,
        )
        self.register_buffer("target_weights", None)
        if target_weights is not None:
            T = len(targets)
            weights = non_negative_vector(
                target_weights, "target_weights", T, "target", booleans=True
            )
            self.target_weights = weights.to(self.targets.device)[self.rows]
            if not bool(weights.any()):
                raise ValueError(
                    "Expected `target_weights` with a positive entry, but all are 0."
                )
            if not bool(self.factors.any()):  # type: ignore[union-attr]  # as weights
                raise ValueError(
                    "Expected `target_weights` with a positive entry where a target is "
                    "not decided, but all are 0 there: what they ask for is known. "
                    "Leave `threshold` and `goal` out to measure there all the same."
                )

    @property
    def factors(self) -> Tensor | None:
        r"""The factors of the variances (``T`` or ``S x T``); ``None``: all are 1.

        Pairs have the factor of their first target.
        """
        if self.counted is None or self.target_weights is None:
            return self.counted if self.target_weights is None else self.target_weights
        return self.counted * self.target_weights

    @of_batches
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x q x d`` to ``batch_shape``)."""
        found = in_parts(self._worst_variance, X, self.covariance.members)
        return -found.to(X)

    def _worst_variance(self, X: Tensor) -> Tensor:
        r"""The worst variances after batches (``b x q x d`` to ``b x S``)."""
        batch, L = self._batch(X)
        c = self.pairs_factor
        # A target is a linear combination of function values: f(t), or f(t) - c f(t').
        a = L.new_tensor([1.0] if c is None else [1.0, -c])
        with torch.no_grad():
            rows = (
                self._worst(batch, L) if c is None else self._worst_pairs(batch, L, c)
            )
            worst = self.targets[rows]  # b x S x m x d
            points = self.covariance.prepare(worst)
            own = self.covariance.between(points, points)
        cross = self.covariance.between(batch, points) @ a  # b x S x q
        gain = path_rows(L, cross.unsqueeze(-1)).square().sum(dim=(-2, -1))
        variance = (a @ own @ a - gain).clamp_min(0.0)
        factors, first = self.factors, rows[..., :1]
        if factors is not None:
            factors = factors.expand(*first.shape[:-1], len(self.targets))
            variance = variance * factors.gather(-1, first).squeeze(-1)
        return variance

    def _worst(self, batch: PreparedPoints, L: Tensor) -> Tensor:
        r"""The targets of largest variance after each batch.

        Args:
            batch: ``b x S x q`` points.
            L: ``b x S x q x q``, the factor of their noisy covariance.

        Returns:
            ``b x S x 1`` rows of ``targets``.
        """
        largest = L.new_full(L.shape[:-2], -torch.inf)  # b x S
        where = torch.zeros_like(largest, dtype=torch.long)
        for block in row_blocks(len(self.targets), self._width + L[..., 0].numel()):
            W = path_rows(L, self.covariance.between(batch, self._targets_at(block)))
            left = self.variance[..., block] - W.square().sum(dim=-2)
            if (factors := self.factors) is not None:
                left = left * factors[..., block]
            top, at = left.max(dim=-1)
            where = torch.where(top > largest, at + block.start, where)
            largest = torch.maximum(top, largest)
        return where.unsqueeze(-1)

    def _worst_pairs(self, batch: PreparedPoints, L: Tensor, c: float) -> Tensor:
        r"""The pairs of targets of largest variance after each batch.

        Args:
            batch: ``b x S x q`` points.
            L: ``b x S x q x q``, the factor of their noisy covariance.
            c: The factor of the second function value.

        Returns:
            ``b x S x 2`` rows of ``targets``.
        """
        T = len(self.targets)
        chunks = row_blocks(L.shape[0], T * L[0, ..., 0].numel())
        parts = [self._worst_pairs_of(batch.batches(b), L[b], c) for b in chunks]
        return torch.cat(parts)

    def _worst_pairs_of(self, batch: PreparedPoints, L: Tensor, c: float) -> Tensor:
        r"""The result of ``_worst_pairs`` for t-batches whose tables fit in memory."""
        T = len(self.targets)
        blocks = row_blocks(T, self._width + L[..., 0].numel())
        parts = [self.covariance.between(batch, self._targets_at(b)) for b in blocks]
        W = path_rows(L, torch.cat(parts, dim=-1))  # b x S x q x T
        left = self.variance - W.square().sum(dim=-2)  # b x S x T
        largest = L.new_full(L.shape[:-2], -torch.inf)
        where = torch.zeros_like(largest, dtype=torch.long)
        for rows in row_blocks(T, left.numel()):
            C = self._target_covariances(rows) - W[..., rows].mT @ W  # b x S x r x T
            own = left[..., rows].unsqueeze(-1)
            pairs = own + c**2 * left.unsqueeze(-2) - 2 * c * C
            if (factors := self.factors) is not None:
                pairs = pairs * factors[..., rows].unsqueeze(-1)
            top, at = pairs.flatten(-2).max(dim=-1)
            where = torch.where(top > largest, at + rows.start * T, where)
            largest = torch.maximum(top, largest)
        return torch.stack((where // T, where % T), dim=-1)


@constructible
class qMELK(qNegMaxPosteriorVariance):  # noqa: N801
    r"""MELK's batch criterion on a Gaussian process.

    ``qNegMaxPosteriorVariance`` with the undecided rows as ``targets``: a batch chosen
    by it shrinks the widest of the intervals that still matter.

    Source:
        Mason et al. (2022), Algorithm 1 and section 5; see the parent.
    """


@constructible
class qHRAGE(qNegMaxPosteriorVariance):  # noqa: N801
    r"""H-RAGE's batch criterion: weighted, and with each row's own noise.

    ``a(X) = -max over t of weight_t var(f(t) | data, pending, X)`` with the undecided
    rows as ``targets``. On a ``SingleTaskGP`` with a ``LinearKernel`` over the features
    this is the weighted G-criterion of linear regression; on a ``HeteroscedasticGP``
    the noise of the batch is the model's own prediction.

    Example:
        >>> acqf = qHRAGE(model, targets=pool_X, noise_var=lambda X: 1 + X[..., 0])
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Weltz et al. (2023), Algorithm 2, line 7, for integer counts, with the data so
        far, and with the posterior variance in place of ``|x|^2_{A^-1}``, which it is
        for a Gaussian process with a linear kernel and a vague prior. Averaged over an
        ensemble.
    """


@constructible
class qMILK(qNegMaxPosteriorVariance):  # noqa: N801 (BoTorch's q)
    r"""Minus the worst variance of ``f(x) - omega f(x')``, given the q-batch.

    The maximum runs over all ordered pairs of targets, ``x = x'`` included. These
    differences decide whether ``f(x)`` is above ``omega max f``. The ``T^2`` pairs are
    never listed: each evaluation passes over the covariance of the targets in blocks of
    rows, ``O(T^2)`` time for each batch: milliseconds for 1,000 targets, a second or
    more for 10,000. So scoring each of them takes ``O(T^3)``. Units of ``y`` squared.

    Example:
        >>> acqf = qMILK(model, targets=pool_X, omega=0.9, noise_var=25.0)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Mason et al. (2022), Algorithm 2 with ``1 - epsilon = omega``, for integer
        counts and with the posterior variance. Deviation: averaged over an ensemble.
    """

    is_of_pairs = True

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        omega: float,
        noise_var: NoiseVar | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        *,
        threshold: float | Tensor | None = None,
        beta: float = TRUVAR_BETA,
        epsilon: float = 0.0,
    ) -> None:
        r"""A criterion with the arguments of ``qNegMaxPosteriorVariance``.

        Args:
            model, noise_var, X_pending, posterior_transform, beta, epsilon: See
                ``TargetAcquisitionFunction``, as for the other errors.
            targets: ``T x d`` points, or a ``Pool``; all their pairs matter.
            omega: The level as a share of the maximum, in (0, 1).
            threshold: Leave out pairs whose first target's side of this level is
                decided by the data, units of ``y``: ``omega`` times what is known of
                the maximum. The second ones may be the maximum, so all stay. Where all
                targets are decided, none is left out. Default all pairs.

        Raises:
            ValueError: If ``omega`` is outside (0, 1).
        """
        omega = ratio(omega)
        super().__init__(
            model,
            targets,
            noise_var,
            X_pending,
            posterior_transform,
            threshold=threshold,
            beta=beta,
            epsilon=epsilon,
        )
        self.pairs_factor = omega


@constructible
class qGEGE(AcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""GEGE's batch criterion on Gaussian processes, for several outputs at once.

    ``a(X) = -max over outputs c and targets t of weight_c var(f_c(t) | data, pending,
    X)`` with the open rows of a Pareto-set problem as ``targets``; every observation
    measures all outputs. Exact for independent outputs. Variances are in the units of
    each output squared: give ``output_weights`` where units differ.

    Example:
        >>> from botorch.models import ModelListGP
        >>> both = ModelListGP(model, model)
        >>> acqf = qGEGE(both, targets=pool_X[:5], output_weights=[1.0, 0.01])
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Kone et al. (2025), Algorithm 1: the G-optimal design over the active arms, for
        integer counts and with posterior variances in place of ``|x|^2_{V^+}``, which
        they are, up to a factor, for a linear kernel.
    """

    X_pending = PENDING

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        noise_var: NoiseVar | Sequence[NoiseVar] | None = None,
        X_pending: Tensor | None = None,
        *,
        output_weights: Sequence[float] | Tensor | None = None,
    ) -> None:
        r"""A criterion for a model, targets to predict, and the noise of observations.

        Args:
            model: A fitted model with ``m`` independent outputs: a ``SingleTaskGP`` or
                a ``ModelListGP``.
            targets: ``T x d`` points whose values matter, or a ``Pool``: all its rows.
            noise_var: The noise variance of a future observation of an output, in its
                units squared: a number, a function from ``b x q x d`` points to ``b x
                q``, or one of these per output. Default the model's own.
            X_pending: ``n' x d`` points submitted and not observed yet.
            output_weights: ``m`` positive factors of the variances; default 1.

        Raises:
            UnsupportedError: If the outputs are correlated, an output is an ensemble,
                or the model knows the noise of its own observations only.
            ValueError: If ``targets`` is empty or not finite, or a noise variance or
                weight not positive.
            BotorchTensorDimensionError: If there is not one noise variance or weight
                per output.
        """
        super().__init__(model=model)
        outputs = independent_outputs(model)
        noises = per_output(noise_var, "noise_var", len(outputs))
        weights = per_output(output_weights, "output_weights", len(outputs))
        X = targets.X if isinstance(targets, Pool) else targets
        self.outputs = ModuleList(
            _criterion(output, X, noise, weight)
            for output, noise, weight in zip(outputs, noises, weights, strict=True)
        )
        self.set_X_pending(X_pending)

    @property
    def parts(self) -> list[qNegMaxPosteriorVariance]:
        r"""The weighted criterion of each output; the value is their smallest."""
        return _parts(self)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points that are being measured: they count as observed.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix.
        """
        set_pending_of_each(self, X_pending)

    def forward(self, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x q x d`` to ``batch_shape``)."""
        return torch.stack([part(X) for part in self.parts]).amin(dim=0)


def _parts(criterion: AcquisitionFunction) -> list[qNegMaxPosteriorVariance]:
    r"""The targets of a criterion as each of its ``outputs`` sees them."""
    return list(cast(Sequence[qNegMaxPosteriorVariance], criterion.outputs))


def _criterion(
    output: Output, X: Tensor, noise_var: NoiseVar | None, weight: float | None
) -> qNegMaxPosteriorVariance:
    r"""The criterion of one output, every target with the output's weight."""
    factors = None
    if weight is not None:
        weight = in_interval(weight, "output_weights", 0.0, float("inf"))
        factors = torch.full((len(X),), weight, dtype=torch.float64)
    model, transform = output
    return qNegMaxPosteriorVariance(
        model, X, noise_var, posterior_transform=transform, target_weights=factors
    )


@constructible
class qTruVaR(TargetAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""Truncated variance reduction over the targets, per cost of the q-batch.

    ``a(X) = sum_v [max(beta s(v)^2, eta^2) - max(beta s_X(v)^2, eta^2)] / sum_x c(x)``
    over the targets ``v``, where ``s(v)^2`` is the posterior variance given data and
    pending points and ``s_X(v)^2`` that after the whole batch ``X`` besides; neither
    depends on values to come, so the value is exact. Targets whose width ``sqrt(beta)
    s(v)`` is ``eta`` already add nothing. ``eta = 0`` is pure variance reduction. Units
    of ``y`` squared per cost.

    Targets are the points still in question: undecided rows of a pool for a level set,
    possible maximisers for optimisation, or a dense grid of them on a box (representer
    points). A choice between noise levels is a last column ``noise_level`` of ``X``
    that the model's input transform drops and that ``cost`` and ``noise_var`` read.

    Greedy batches (``optimize_acqf(..., sequential=True)``, ``optimize_acqf_discrete``)
    pass points already chosen as ``X_pending``: then each is the best next step per
    cost. (The latter's ``unique=True`` never measures a point twice in a batch.)

    Example:
        >>> acqf = qTruVaR(model, targets=pool_X[:4], beta=9.0, eta=0.1)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Bogunovic et al. (2016), Eq. (3), in the form of Eq. (18); representer points
        and pure variance reduction: Appendix A. Deviation: averaged over an ensemble.
    """

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        beta: float = TRUVAR_BETA,
        eta: float = 0.0,
        cost: Cost | CostAwareUtility | None = None,
        noise_var: NoiseVar | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        *,
        threshold: float | Tensor | None = None,
        epsilon: float = 0.0,
        goal: Any = None,
    ) -> None:
        r"""Truncated variance reduction per cost.

        Args:
            model, targets, noise_var, X_pending, posterior_transform, epsilon, goal:
                See ``TargetAcquisitionFunction``, as for the other errors.
            beta: The squared width, positive.
            eta: The width to reach, at least 0, units of ``y``.
            cost: The cost of one evaluation: a positive number, a function from ``b x q
                x d`` points to ``b x q`` positive costs, or a ``CostAwareUtility``,
                which weighs the reduction itself. Default 1.
            threshold: Leave out targets whose side of this level is decided by the
                data with the width ``beta``, units of ``y``; where all are, none.
                Default all targets.

        Raises:
            ValueError: If ``beta`` or ``cost`` is not positive, or ``eta`` negative.
        """
        self.beta = in_interval(beta, "beta", 0.0, math.inf)
        self.eta = in_interval(eta, "eta", 0.0, math.inf, closed_low=True)
        cost = check_cost(cost)
        super().__init__(
            model,
            targets,
            noise_var,
            X_pending,
            posterior_transform,
            threshold=threshold,
            beta=self.beta,
            epsilon=epsilon,
            goal=goal,
        )
        self.cost = cost

    @of_batches
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x q x d`` to ``batch_shape``)."""

        def at(rows: slice) -> Removal:
            return truncated_variance(self.variance[..., rows], self.beta, self.eta)

        value = self._removed(X, at)
        return per_cost(value, X, self.cost).to(X)


class LevelTargetAcquisitionFunction(TargetAcquisitionFunction, ABC):
    r"""The expected decrease of a loss around a level by a q-batch, per cost.

    The loss of a target depends on how far its mean is from the level and on its
    variance. The variance after the whole batch does not depend on the values to come,
    and the mean afterwards is normal, so the expectation is exact, without samples.
    """

    threshold: Tensor
    region: ValueRegion | None = None
    """The region of several levels or outputs; ``None``: one level of one output."""
    knows_regions: ClassVar[bool] = False
    """Whether the class looks ahead for regions of several levels or outputs."""
    needs_level: ClassVar[bool] = True
    """Whether a level or a region must be given."""

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        threshold: float | Tensor | None = None,
        cost: Cost | CostAwareUtility | None = None,
        noise_var: NoiseVar | Sequence[NoiseVar] | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        *,
        beta: float | None = None,
        epsilon: float = 0.0,
        goal: Any = None,
    ) -> None:
        r"""A criterion for a model, sides to decide, and the noise of observations.

        Args:
            model, X_pending, posterior_transform: See ``TargetAcquisitionFunction``,
                as for the other errors.
            targets: ``T x d`` points whose sides matter, or a ``Pool``: all its rows.
            threshold: The level, a scalar in the units the posterior reports; exactly
                one of ``threshold`` and ``goal``.
            cost: The cost of one evaluation; see ``qTruVaR``. Default 1.
            noise_var: See ``TargetAcquisitionFunction``; of a ``goal`` of several
                outputs one for all, or one each.
            beta: Leave out targets whose side the data decide with this squared width;
                where all are decided, none. Default all targets.
            epsilon: The accuracy up to which it must be right, units of ``y``; a
                ``goal`` has its own. It counts where ``beta`` leaves targets out.
            goal: A region with stated levels, such as ``Above(0.55) & Below(0.75,
                output=1)``, of which output ``j`` is the model's. Its outputs are
                independent, and every observation measures all of them.

        Raises:
            ValueError: If ``threshold`` is not finite, ``cost`` not positive, both or
                none of ``threshold`` and ``goal`` are given, or ``goal`` is no region
                with stated levels.
            UnsupportedError: If the class knows one level only, or the model has not
                the outputs of ``goal``, correlated ones or an ensemble.
            BotorchTensorDimensionError: If ``threshold`` is not a scalar.
        """
        region, cost = region_of(threshold, goal, epsilon), check_cost(cost)
        if region is not None:
            outputs = outputs_of(model, region, posterior_transform)
            if (one := region.only_comparison) is None:
                self._start_with_region(
                    model, outputs, region, targets, noise_var, beta
                )
                self.cost = cost
                self.set_X_pending(X_pending)
                return
            noise_var = per_output(noise_var, "noise_var", len(outputs))[one.output]
            model, posterior_transform = outputs[one.output]
            threshold, epsilon = one.level, region.accuracies[one.output]
        level = level_buffer(threshold, "threshold")  # type: ignore[arg-type]
        super().__init__(
            model,
            targets,
            noise_var,  # type: ignore[arg-type]  # of one output
            X_pending,
            posterior_transform,
            threshold=None if beta is None else level,
            beta=TRUVAR_BETA if beta is None else beta,
            epsilon=epsilon if beta is not None or region is None else 0.0,
        )
        self.cost = cost
        self.register_buffer("threshold", level)
        self.mean = self._all_means()

    def _start_with_region(
        self,
        model: Model,
        outputs: Sequence[Output],
        region: ValueRegion,
        targets: Pool | Tensor,
        noise_var: NoiseVar | Sequence[NoiseVar] | None,
        beta: float | None,
    ) -> None:
        r"""Prepare each output by itself, at the targets in question."""
        name = type(self).__name__
        if not self.knows_regions:
            raise UnsupportedError(
                f"Expected one level of one output for {name}, but got a `goal` of "
                "several. Take `qExpectedMisclassification(model, targets, goal=goal)`."
            )
        if any(is_ensemble(own) for own, _ in outputs):
            raise UnsupportedError(
                f"Expected `model` without an ensemble for a `goal` of several levels, "
                f"but got {type(model).__name__}. Use one member, such as the maximum "
                "a posteriori fit."
            )
        AcquisitionFunction.__init__(self, model=model)
        noises = per_output(noise_var, "noise_var", len(outputs))

        def prepared(X: Tensor) -> list[qNegMaxPosteriorVariance]:
            return [
                qNegMaxPosteriorVariance(own, X, noise, posterior_transform=transform)
                for (own, transform), noise in zip(outputs, noises, strict=True)
            ]

        parts = prepared(targets.X if isinstance(targets, Pool) else targets)
        self.region = moved(region, parts[0].targets.device)
        if beta is not None:
            beta = in_interval(beta, "beta", 0.0, math.inf)
            mean = [part._all_means() for part in parts]
            half = [(beta * part.variance).sqrt() for part in parts]
            ends = list(zip(mean, half, strict=True))
            is_open = open_between(
                self.region, [m - h for m, h in ends], [m + h for m, h in ends]
            )
            if not bool(is_open.any()):
                warn_that_all_are_decided(len(is_open), stacklevel=4)
            elif not bool(is_open.all()):
                parts = prepared(parts[0].targets[is_open])
        self.outputs = ModuleList(parts)
        self.means = [part._all_means() for part in parts]
        self.units = units_of(outputs)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Set the points being measured: see ``TargetAcquisitionFunction``."""
        if self.region is None:
            super().set_X_pending(X_pending)
            return
        set_pending_of_each(self, X_pending)

    def _taken_of_region(
        self,
        X: Tensor,
        taken_at: Callable[[slice], Callable[[Sequence[Tensor]], Tensor]],
    ) -> Tensor:
        r"""The decrease of a loss of the region, summed over the targets.

        Args:
            X: ``batch_shape x q x d``.
            taken_at: From some of the targets to what reductions of the variances of
                all outputs, ``b x r`` each, take off the loss there.
        """
        parts = _parts(self)

        def decrease(some: Tensor) -> Tensor:
            batches = [part._batch(some) for part in parts]
            total = some.new_zeros((), dtype=torch.float64)
            width = sum(part._width for part in parts)
            numbers = width + sum(L[..., 0].numel() for _, L in batches)
            for block in row_blocks(len(self.means[0]), numbers):
                gains = [
                    joint_gain(L, part._cross(batch, block))
                    for part, (batch, L) in zip(parts, batches, strict=True)
                ]
                with torch.device(X.device):  # cells are counted there
                    with torch.no_grad():  # gradients are with respect to the batch
                        taken = taken_at(block)
                    total = total + taken(gains).sum(dim=-1)
            return total

        return in_parts(decrease, X)

    @property
    def distance(self) -> Tensor:
        r"""The means of the targets minus the level (``S x T``), units of ``y``."""
        return self.mean - self.threshold.to(self.mean)

    @abstractmethod
    def _taken(self, X: Tensor) -> Tensor:
        r"""The decrease of the loss by q-batches: ``batch_shape x S``, before costs."""

    def _taken_by_targets(
        self, X: Tensor, removal: Callable[[Tensor, Tensor], Removal]
    ) -> Tensor:
        r"""The decrease ``_taken`` of a loss that is a sum over the targets.

        Args:
            X: ``batch_shape x q x d``.
            removal: From ``S x r`` distances and variances to what is taken off.
        """
        distance = self.distance

        def at(rows: slice) -> Removal:
            with torch.no_grad():  # gradients are with respect to the batch
                return removal(distance[..., rows], self.variance[..., rows])

        return self._removed(X, at)

    @of_batches
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x q x d`` to ``batch_shape``)."""
        return per_cost(self._taken(X), X, self.cost).to(X)


@constructible
class qTargetedIMSE(LevelTargetAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""Reduction of the variances near a level (tIMSE), per cost of the q-batch.

    ``a(X) = sum_t w(t) r_X(t) / sum_x c(x)``, where ``r_X(t)`` is what the whole batch
    takes off the variance ``s(t)^2`` of target ``t``, given data and pending points,
    and ``w(t)`` is the normal density of the level under ``N(mean(t), s(t)^2 +
    tau^2)``. Units of ``y`` per cost.

    Example:
        >>> acqf = qTargetedIMSE(model, targets=pool_X, threshold=20.0)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Of a region the weight of each level has the share by which the class depends on it
    as a further factor, and outputs compare in units of their prior's standard
    deviation.

    Source:
        Picheny et al. (2010). Deviation: averaged over an ensemble.
    """

    knows_regions = True

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        threshold: float | Tensor | None = None,
        tau: float | Sequence[float] = 0.0,
        cost: Cost | CostAwareUtility | None = None,
        noise_var: NoiseVar | Sequence[NoiseVar] | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        *,
        beta: float | None = None,
        epsilon: float = 0.0,
        goal: Any = None,
    ) -> None:
        r"""Variances near a level.

        Args:
            model, targets, threshold, cost, noise_var, X_pending: See
                ``LevelTargetAcquisitionFunction``, as for the other errors.
            posterior_transform, beta, epsilon, goal: Likewise.
            tau: How far around the level values matter, units of ``y``; of a ``goal``
                of several outputs one for all, or one each.

        Raises:
            ValueError: If ``tau`` is negative.
        """
        each = tau if isinstance(tau, Sequence) else (tau,)
        taus = [in_interval(t, "tau", 0.0, math.inf, closed_low=True) for t in each]
        self.tau = tau if isinstance(tau, Sequence) else taus[0]
        super().__init__(
            model,
            targets,
            threshold,
            cost,
            noise_var,
            X_pending,
            posterior_transform,
            beta=beta,
            epsilon=epsilon,
            goal=goal,
        )

    def _taken(self, X: Tensor) -> Tensor:
        if self.region is not None:
            return self._taken_of_region(X, self._near_levels)
        (tau,) = per_output(self.tau, "tau", 1)
        return self._taken_by_targets(X, partial(targeted_variance, tau=tau))

    def _near_levels(self, rows: slice) -> Callable[[Sequence[Tensor]], Tensor]:
        r"""The variances near all levels, by how much the class depends on each."""
        assert self.region is not None  # it was asked
        cells = self.region.cells
        mean = [own[rows] for own in self.means]
        variance = [part.variance[rows] for part in _parts(self)]
        shares, weights = level_weights(cells, mean, variance), []
        taus = per_output(self.tau, "tau", len(self.units))
        for j, unit in enumerate(self.units):
            distance = mean[j].unsqueeze(-1) - cells.levels[j]
            near = targeted_variance(distance, variance[j].unsqueeze(-1), taus[j])
            weights.append((near.weight * shares[j]).sum(dim=-1) / unit)

        def taken(gains: Sequence[Tensor]) -> Tensor:
            each = [gain * own for gain, own in zip(gains, weights, strict=True)]
            return sum(each[1:], each[0])

        return taken


@constructible
class qExpectedMisclassification(LevelTargetAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""Expected reduction of the number of wrong sides (SUR), per cost of the q-batch.

    ``a(X) = sum_t [g(p(t)) - E g(p_X(t))] / sum_x c(x)``, where ``g(p) = p (1 - p)``,
    ``p(t)`` is the probability that target ``t`` is above the level, given data and
    pending points, and ``p_X(t)`` that after the whole batch ``X`` besides. Number of
    targets per cost.

    Example:
        >>> acqf = qExpectedMisclassification(model, targets=pool_X, threshold=20.0)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Of a region ``p`` is the probability to be inside, made of all outputs and levels,
    and the expectation is exact as well (``functional/class_removal.py``).

    Source:
        Bect et al. (2012); Chevalier et al. (2014), section 3, for whole batches.
        Deviation: averaged over an ensemble.
    """

    knows_regions = True

    def _taken(self, X: Tensor) -> Tensor:
        if self.region is not None:
            return self._taken_of_region(X, self._of_class)
        return self._taken_by_targets(X, expected_misclassification)

    def _of_class(self, rows: slice) -> Callable[[Sequence[Tensor]], Tensor]:
        r"""The doubt about the class, see ``functional/class_removal.py``."""
        assert self.region is not None  # it was asked
        mean = [own[rows] for own in self.means]
        variance = [part.variance[rows] for part in _parts(self)]
        return class_removal(self.region.cells, mean, variance).of


@constructible
class qGlobalMI(LevelTargetAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""The information of the q-batch about the targets' sides, in nats, per cost.

    ``a(X) = sum_t [H(p(t)) - E H(p_X(t))] / sum_x c(x)`` with the entropy ``H`` of a
    side and the probabilities of ``qExpectedMisclassification``: the sum over targets
    of the mutual information between their side and all values of the batch.

    Example:
        >>> acqf = qGlobalMI(model, targets=pool_X, threshold=20.0)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Letham et al. (2022), GlobalMI. Deviations: Gaussian in place of binary
        responses; averaged over an ensemble.
    """

    def _taken(self, X: Tensor) -> Tensor:
        return self._taken_by_targets(X, mutual_information)


@constructible
class qEAVC(LevelTargetAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""The expected change of the number of targets above by the q-batch, per cost.

    ``a(X) = E abs(sum_t [p_X(t) - p(t)]) / sum_x c(x)`` with the probabilities of
    ``qExpectedMisclassification``: the expected absolute change of the volume above the
    level (EAVC). The absolute value is outside the sum, so that targets which a value
    would push to different sides cancel. Number of targets per cost.

    The expectation over one value is exact up to 1e-3 of it and 1e-5 of the targets, or
    0.015 for each target that it makes known exactly. That over the values of a batch
    is a mean over 1,024 fixed quasi-random vectors, and takes some thirty times as
    long: within a few percent, but rough (up to a half) for a few targets that are all
    three standard deviations from the level. A batch chosen one point after the other,
    with ``X_pending``, needs only the former.

    Example:
        >>> acqf = qEAVC(model, targets=pool_X, threshold=20.0)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Letham et al. (2022), EAVC. Deviations: Gaussian in place of binary responses;
        averaged over an ensemble.
    """

    def _taken(self, X: Tensor) -> Tensor:
        return in_parts(self._expected_change, X, self.covariance.members)

    def _expected_change(self, X: Tensor) -> Tensor:
        r"""The values of some batches before costs (``b x q x d`` to ``b x S``)."""
        batch, L = self._batch(X)
        values = values_to_come(L.shape[-1]).to(L)
        changes = L.new_zeros(*L.shape[:-2], len(values))  # b x S x n
        distance = self.distance
        change = _changes_by_one if L.shape[-1] == 1 else volume_changes
        for block in row_blocks(len(self.targets), self._width + L[..., 0].numel()):
            changes = changes + change(
                distance[..., block],
                self.variance[..., block],
                path_rows(L, self._cross(batch, block)),
                values,
            )
        return mean_absolute(changes, values)


def _changes_by_one(
    distance: Tensor, variance: Tensor, moves: Tensor, values: Tensor
) -> Tensor:
    r"""The ``volume_changes`` by one observation each, by a series (40 times as fast).

    Args:
        distance: ``S x T`` means minus the level, units of ``y``.
        variance: ``S x T``, units of ``y`` squared.
        moves: ``b x S x 1 x T``, units of ``y``.
        values: ``n x 1``, those at which the series is evaluated.
    """
    T, b = distance.shape[-1], len(moves)
    members = zip(
        distance.detach().reshape(-1, T),
        variance.detach().reshape(-1, T),
        moves.reshape(b, -1, T).unbind(dim=1),
        strict=True,
    )
    found = []
    for d, v, own in members:
        series = volume_series(d, v)
        found.append(torch.cat([series.of(part) for part in pieces(own)]))
    return torch.stack(found, dim=1).reshape(*moves.shape[:-2], len(values))


def in_parts(
    value: Callable[[Tensor], Tensor], X: Tensor, members: Sequence[int] = ()
) -> Tensor:
    r"""The values of q-batches, of ``TOGETHER`` points at a time.

    Args:
        value: From some of them, ``b x q x d``, to their values, ``b x S``.
        X: ``batch_shape x q x d``.
        members: The shape ``S`` of an ensemble.

    Returns:
        ``batch_shape x S``.
    """
    flat = X.reshape(-1, *X.shape[-2:])
    size = max(1, TOGETHER // (X.shape[-2] * math.prod(members)))
    parts = [value(part) for part in flat.split(size)]
    found = parts[0] if len(parts) == 1 else torch.cat(parts)
    return found.reshape(*X.shape[:-2], *found.shape[1:])


def open_between(
    region: ValueRegion, lower: Sequence[Tensor], upper: Sequence[Tensor]
) -> Tensor:
    r"""The points whose class intervals do not decide (bools, shaped like the ends).

    Args:
        region: The region.
        lower: For each output the lower ends, of any shape.
        upper: For each output the upper ends.
    """
    flat = [[end.flatten() for end in ends] for ends in (lower, upper)]
    with torch.device(lower[0].device):  # cells are counted there
        found = region.cells.agreed(region.allowed(*flat)) == UNKNOWN
    return found.expand(lower[0].numel()).view_as(lower[0])


def warn_that_all_are_decided(n: int, stacklevel: int) -> None:
    r"""Warn that no target is in question, so that all of them count.

    Args:
        n: The number of targets.
        stacklevel: See ``warnings.warn``.

    Warns:
        BotorchWarning: Always.
    """
    warnings.warn(
        f"The sides of all {n} targets are decided: all of them count. There is "
        "nothing left to measure for.",
        BotorchWarning,
        stacklevel=stacklevel,
    )


def check_cost(cost: Cost | CostAwareUtility | None) -> Cost | CostAwareUtility:
    r"""The ``cost`` as a positive number, a function or a utility; ``None`` is 1.

    Raises:
        ValueError: If it is not positive.
    """
    if cost is None:
        return 1.0
    if callable(cost):
        return cost
    return in_interval(cost, "cost", 0.0, float("inf"), remedy=FREE)


def per_cost(value: Tensor, X: Tensor, cost: Cost | CostAwareUtility) -> Tensor:
    r"""The values divided by the summed costs of their q-batches.

    Args:
        value: ``b x S``.
        X: ``b x q x d``.
        cost: From ``check_cost``.

    Returns:
        ``b x S``.

    Raises:
        BotorchTensorDimensionError: If a function returns another shape than ``b x q``.
        ValueError: If it returns a cost that is not positive.
    """
    members = value.ndim - (X.ndim - 2)
    if isinstance(cost, CostAwareUtility):
        # BoTorch puts samples first; here they are the members of an ensemble.
        flat = value.flatten(X.ndim - 2).movedim(-1, 0) if members else value[None]
        weighed = cost(X=X, deltas=flat.to(X)).movedim(0, -1)
        return weighed.reshape(value.shape)
    if not callable(cost):
        return value / (cost * X.shape[-2])
    returned = cost(X)
    try:
        found = torch.as_tensor(returned)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"Expected `cost` to return b x q costs, here {tuple(X.shape[:-1])}, but "
            f"got {returned!r}."
        ) from error
    check_map(found, X, "cost", "costs", positive=True, remedy=FREE)
    total = found.to(value).sum(dim=-1)
    return value / total[(..., *[None] * members)]
