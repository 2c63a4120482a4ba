r"""Pools in which a row is a point at one of several noise levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.models.transforms.input import ChainedInputTransform, FilterFeatures
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.models import fit_with_inputs, unfitted_prior
from botorch_lse.prior import GPPrior
from botorch_lse.problem.pool import NOISE_LEVEL
from botorch_lse.strategies.arguments import places_of
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.process import Process


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseLevelStrategy(GPStrategy):
    r"""A strategy that knows a last column ``noise_level`` (``Pool.at_noise_levels``).

    The default model and a kernel given as ``model`` do not see the column; a model, a
    factory or a prior of your own must drop it in its input transform
    (``FilterFeatures``) or kernel (``active_dims``).
    """

    @property
    def has_levels(self) -> bool:
        r"""Whether the pool's last column is a noise level."""
        return self.pool.names is not None and self.pool.names[-1] == NOISE_LEVEL

    @cached_property
    def places(self) -> Tensor:
        r"""``N`` numbers, equal for the rows of one point."""
        return places_of(self.pool.X[:, :-1] if self.has_levels else self.pool.X)

    @cached_property
    def is_first_copy(self) -> Tensor:
        r"""``N`` bools: the first row of each point, over which sums run."""
        places = self.places
        first = torch.full_like(places, len(places))
        first = first.scatter_reduce(0, places, torch.arange(len(places)), "amin")
        mask = torch.zeros(len(places), dtype=torch.bool)
        mask[first[first < len(places)]] = True
        return mask

    @cached_property
    def process(self) -> Process:
        r"""The model, which does not see the level, and what is known of the noise."""
        model = self.model
        if self.has_levels and isinstance(model, Kernel):
            model = replace(GPPrior.from_kernel(model), transform_inputs=_without_last)
        elif self.has_levels and model is None:
            model = partial(fit_without_level, self.pool.bounds)
        return Process(self.pool, model, self.noise_std)

    @property
    def _unfitted_prior(self) -> GPPrior:
        if self.model is not None or not self.has_levels:
            return super()._unfitted_prior
        prior = unfitted_prior(self.pool.bounds[:, :-1])
        scale = prior.transform_inputs
        assert scale is not None  # the scaling to the unit cube
        return replace(prior, transform_inputs=partial(_of_the_rest, scale))


def fit_without_level(
    bounds: Tensor, train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None
) -> SingleTaskGP:
    r"""The default model on all columns but the last, fitted from initial values.

    Args:
        bounds: ``2 x d`` bounds of the pool.
        train_X: ``n x d``, the noise level last.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1`` or ``None``.
    """
    d = train_X.shape[-1] - 1
    drop = FilterFeatures(torch.arange(d))
    scale = Normalize(d, bounds=bounds[:, :-1])
    transform = ChainedInputTransform(drop=drop, scale=scale)
    return fit_with_inputs(train_X, train_Y, train_Yvar, transform, d)


def _of_the_rest(function: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    return function(_without_last(X))


def _without_last(X: Tensor) -> Tensor:
    return X[..., :-1]
