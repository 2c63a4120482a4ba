r"""The model of an output: fixed or to be fitted, and the noise it is told with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import RLock

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.models import ModelArgument, fit_single_task_gp, fixed_prior
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Observations, Pool
from botorch_lse.strategies.state import round_generator

ALIKE = 1e-12
"""Values that differ by no more than this share of their size count as alike."""
UNFITTED_NOISE = 1e-2
"""Noise share assumed while first rows are placed before any fit: with none, a row
next to a chosen one would count as known."""
FITTED_NOISE = 2e-6
"""Known noise is no smaller in a fit, as a share of the spread of the values: GPyTorch
raises it to 1e-6 with a warning. The fitted process is then told the noise as it is."""
_ALONE = RLock()
"""Held while a fit uses torch's random numbers, which all threads share: of two fits
that both put back what they found, the one that started later would put back what the
other had drawn."""


@contextmanager
def as_if_alone(seed: int) -> Iterator[None]:
    r"""With random numbers of its own; those of others are as before when it ends.

    Threads wait for each other.
    """
    with _ALONE, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True, eq=False)
class Process:
    r"""A Gaussian process for one output, fixed or to be fitted.

    Args:
        pool: The candidates.
        model: See ``GPStrategy``.
        noise_std: The known noise standard deviation of this output.
    """

    pool: Pool
    model: ModelArgument
    noise_std: float | None

    def check(self) -> None:
        r"""Whether model and noise are given as they must be.

        Raises:
            ValueError: If the noise is given twice, negative, or unknown for a
                fixed model.
            UnsupportedError: If a fixed model is not exact, or an ensemble.
        """
        if self.noise_std is not None:
            in_interval(
                self.noise_std,
                "noise_std",
                0.0,
                math.inf,
                closed_low=True,
                remedy="Leave it out to learn the noise; 0 is an exact measurement.",
            )
            if self.pool.noise_var is not None:
                raise ValueError(
                    "Expected the noise once, but got both `noise_std` and "
                    "`pool.noise_var`. Leave one out."
                )
        if self.fixed is None:
            return
        _one_process(self.fixed)
        if self.known_noise is None and not self.fixed.knows_new_noise:
            raise ValueError(
                "Expected `noise_std` (or `pool.noise_var`), because the fixed `model` "
                "does not know the noise of a new observation."
            )

    @cached_property
    def fixed(self) -> GPPrior | None:
        r"""The prior if hyper-parameters are fixed, else ``None``."""
        return fixed_prior(self.model)

    @cached_property
    def known_noise(self) -> Tensor | None:
        r"""``N`` noise variances, where the strategy or the pool knows them."""
        if self.noise_std is None:
            return self.pool.noise_var
        return torch.full((len(self.pool),), self.noise_std**2, dtype=torch.float64)

    def teaches(self, history: Observations, least: int) -> bool:
        r"""Whether a model can be learnt from the data at all.

        Values that are all alike have no scale, and those of few rows no lengthscale: a
        fit would be certain of whatever it starts from.

        Args:
            history: All observations.
            least: Rows that must have been measured, one more than there are inputs at
                most; if all rows were, their values may be alike.
        """
        rows = history.indices.unique().numel()
        if rows == len(self.pool):
            return True
        y = history.y.view(len(history), -1)
        spread, size = y.amax(dim=0) - y.amin(dim=0), y.abs().amax(dim=0)
        differ = bool((spread > ALIKE * size).all())
        return differ and rows >= min(least, self.pool.d + 1)

    def new_noise(self, prior: GPPrior, yvar: Tensor | None) -> Tensor:
        r"""``N`` noise variances of new observations, at least the least noise.

        Args:
            prior: The process, fixed or fitted.
            yvar: The variances of the data, if known.

        Raises:
            ValueError: If nobody knows the noise.
        """
        noise = self.known_noise
        if noise is None and yvar is not None and prior.predict_noise is None:
            noise = yvar.mean().expand(len(self.pool))
        if noise is None:
            noise = prior.new_noise(self.pool.X)
        if noise is None:
            raise ValueError(
                "Expected `noise_std`, `pool.noise_var` or `yvar`, because the fitted "
                "`model` does not know the noise of a new observation."
            )
        return torch.maximum(noise, prior.least_noise(prior.features(self.pool.X)))

    def fit(self, history: Observations, seed: int, n_rounds: int) -> GPPrior:
        r"""The fixed process, or one fitted cold from its own seed.

        Args:
            history: All observations, of this output only.
            seed: The run's seed.
            n_rounds: The number of complete rounds.

        Raises:
            UnsupportedError: If the fitted model is not exact, or an ensemble.
        """
        if self.fixed is not None:
            return self.fixed
        X, y = self.pool.X[history.indices], history.y.unsqueeze(-1)
        yvar = None
        if history.yvar is not None:
            spread = float(history.y.var(correction=0)) or 1.0  # 1: as Standardize has
            yvar = history.yvar.clamp_min(FITTED_NOISE * spread).unsqueeze(-1)
        with as_if_alone(round_generator(seed, n_rounds).initial_seed()):
            if callable(self.model):
                prior = GPPrior.from_model(self.model(X, y, yvar))
            else:
                fitted = fit_single_task_gp(X, y, yvar, self.pool.bounds)
                prior = GPPrior.from_model(fitted)
        _one_process(prior)
        return prior


def _one_process(prior: GPPrior) -> None:
    if prior.batch_shape:
        raise UnsupportedError(
            "Expected `model` to be one GP per output, but got an ensemble of "
            f"{tuple(prior.batch_shape)}. Use one member, or a `SingleTaskGP`."
        )
