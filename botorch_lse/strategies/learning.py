r"""What models are learnt from: noise, first rows, fits, what is known exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import RLock

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse.checks import in_interval, whole_number
from botorch_lse.functional.jitter import JITTER
from botorch_lse.models.default import ModelArgument, fit_single_task_gp, fixed_prior
from botorch_lse.models.prior import GPPrior
from botorch_lse.problem import Observations, Pool
from botorch_lse.strategies.arguments import points_of
from botorch_lse.strategies.goals import Goal
from botorch_lse.strategies.state import round_generator

FIRST_PER_INPUT = 10
"""Rows of the first design per input where a model is learnt: with ``2 (d + 1)`` of
them, a default model said of functions with hidden regions that all is decided in 17 of
40 runs, with ten in 4."""
LEVEL_Z = 1.5
"""Prior standard deviations within which a learnt model must hold the level. Anything
between 1 and 2 serves; it must stay below the width that decides."""
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
CLEAR = 1.0
"""Standard errors by which a row's mean must clear the level to count as beyond it: a
value that noise alone carried over is no evidence of the other side."""


@contextmanager
def as_if_alone(seed: int) -> Iterator[None]:
    r"""With random numbers of its own; those of others are as before when it ends.

    Threads wait for each other.
    """
    with _ALONE, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True, eq=False)
class GaussianProcess:
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

    def allows_fit(self, history: Observations, least: int) -> bool:
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


@dataclass(frozen=True, eq=False)
class Learning:
    r"""When the models of a strategy are learnt, at first and again.

    Args:
        pool: The candidates.
        gps: The model of each output, with its noise.
        refit: See ``GPStrategy``, as are the next ones.
        n_initial: Measurements of the first design.
        max_observations: The budget.
        max_repeats: How often one row may be measured.

    Raises:
        ValueError: If a number is out of range, or model and noise do not fit.
        UnsupportedError: If a fixed model is not exact, or an ensemble.
    """

    pool: Pool
    gps: tuple[GaussianProcess, ...]
    refit: int | Callable[[int], bool]
    n_initial: int | None
    max_observations: int | None
    max_repeats: int | None

    def __post_init__(self) -> None:
        if self.n_initial is not None:
            whole_number(self.n_initial, "n_initial", 0)
        if not callable(self.refit):
            whole_number(self.refit, "refit", 1)

    @cached_property
    def is_fixed(self) -> bool:
        r"""Whether all hyper-parameters are fixed."""
        return all(gp.fixed is not None for gp in self.gps)

    @property
    def wanted(self) -> int:
        r"""Measurements of the first design, if the budget has room for them."""
        if self.n_initial is not None:
            return self.n_initial if self.is_fixed else max(self.n_initial, 1)
        return (
            0 if self.is_fixed else min(FIRST_PER_INPUT * self.pool.d, len(self.pool))
        )

    @property
    def n_first(self) -> int:
        r"""Measurements placed by maximal variance at first, at most all of the run."""
        n = self.wanted
        if self.max_observations is not None:
            n = min(n, self.max_observations)
        if self.max_repeats is not None:
            n = min(n, self.max_repeats * len(self.pool))
        return n

    def can_fit(
        self,
        history: Observations,
        exactness: Sequence[Exactness],
        points: Tensor | None = None,
    ) -> bool:
        r"""Whether the data allow a first fit.

        Args:
            history: All observations.
            exactness: Which measurements count as exact, by output.
            points: See ``repeats_left``.
        """
        n, none = self.n_first, history.indices[:0]
        once = torch.ones(len(self.pool), dtype=torch.long)
        rest = self.repeats_left(exactness, history, none, once, points)
        is_all = not bool(rest.any())
        enough = is_all or len(history) >= n
        return enough and self.gps[0].allows_fit(history, n)

    def is_due(self, fitted_rounds: int, n_rounds: int) -> bool:
        r"""Whether the models are fitted again after so many rounds."""
        if fitted_rounds < 0:
            return True
        if callable(self.refit):
            return bool(self.refit(n_rounds))
        return n_rounds - fitted_rounds >= self.refit

    def repeats_left(
        self,
        exactness: Sequence[Exactness],
        data: Observations,
        pending: Tensor,
        left: Tensor,
        points: Tensor | None = None,
    ) -> Tensor:
        r"""Nothing that is known exactly, in all outputs, is measured again.

        Args:
            exactness: Which measurements count as exact, by output.
            data: All that was told.
            pending: Rows that are out.
            left: ``N`` counts as ``max_repeats`` leaves them.
            points: ``N`` numbers, equal for rows that are one point; default equal for
                equal rows.
        """
        m = len(self.gps)
        columns: list[Tensor | None] = [None] * m
        if data.yvar is not None:
            columns = list(data.yvar.view(len(data), m).unbind(dim=-1))
        exact = torch.ones(len(left), dtype=torch.bool)
        told = torch.ones(len(data), dtype=torch.bool)
        for output, yvar in zip(exactness, columns, strict=True):
            exact &= output.of_rows(len(left))
            told &= output.of_told(data.indices, yvar)
        if not bool(exact.any()) and not bool(told.any()):
            return left
        known = torch.cat((data.indices[told], pending[exact[pending]]))
        points = self._points if points is None else points
        return repeats_left(left, exact, known, points)

    @cached_property
    def _points(self) -> Tensor:
        return points_of(self.pool.X)


@dataclass(frozen=True)
class Exactness:
    r"""Which measurements of one output count as exact.

    Args:
        least: Noise variances up to this count as none, units of ``y`` squared.
        noise: ``N`` noise variances of measurements to come; ``None`` while nobody
            knows them.
    """

    least: float
    noise: Tensor | None

    def of_rows(self, n_rows: int) -> Tensor:
        r"""``n_rows`` bools: the next measurement of the row is exact."""
        if self.noise is None:
            return torch.zeros(n_rows, dtype=torch.bool)
        return self.noise[:n_rows] <= self.least

    def of_told(self, indices: Tensor, yvar: Tensor | None) -> Tensor:
        r"""``n`` bools: this measurement was exact.

        Args:
            indices: ``n`` rows.
            yvar: Their noise variances, if they were told.
        """
        if yvar is not None:
            return yvar <= self.least
        return self.of_rows(int(indices.max()) + 1 if len(indices) else 0)[indices]


def least_of_values(y: Tensor) -> float:
    r"""What counts as no noise while no model says how much the function varies."""
    return JITTER * float(y.var(correction=0)) if len(y) else 0.0


def repeats_left(left: Tensor, exact: Tensor, known: Tensor, points: Tensor) -> Tensor:
    r"""How often rows may still be measured if nothing known is measured again.

    Args:
        left: ``N`` counts as ``max_repeats`` leaves them.
        exact: ``N`` bools: the next measurement is exact.
        known: Rows measured exactly, or out to be.
        points: ``N`` numbers, equal for rows that are one point.
    """
    # Of several exact copies of a point one is enough: the first.
    copies = torch.where(exact, torch.arange(len(left)), len(left))
    first = torch.full_like(points, len(left)).scatter_reduce(0, points, copies, "amin")
    is_first = first[points] == torch.arange(len(left))
    left = torch.where(exact, left.clamp_max(1) * is_first, left)
    return left.masked_fill(torch.isin(points, points[known]), 0)


def row_means(history: Observations, noise_var: Tensor) -> tuple[Tensor, Tensor]:
    r"""The mean of each measured row's values, and its standard error.

    Args:
        history: ``n`` measurements, some of them perhaps means of several.
        noise_var: ``n`` noise variances of these.

    Returns:
        Two tensors with one entry per measured row, units of ``y``.
    """
    rows, place = history.indices.unique(return_inverse=True)
    counts = torch.ones_like(history.y) if history.counts is None else history.counts
    weight = counts.double()
    zero = torch.zeros(rows.numel(), dtype=torch.float64)
    n = zero.index_add(0, place, weight)
    total = zero.index_add(0, place, weight * history.y)
    variance = zero.index_add(0, place, weight.square() * noise_var)
    return total / n, variance.sqrt() / n


def side_of_all(history: Observations, noise_var: Tensor, goal: Goal) -> str | None:
    r"""The side of the level on which all values lie, noise considered.

    Args:
        history: All measurements.
        noise_var: Their noise variances.
        goal: What is to be decided; one without a level has no sides.

    Returns:
        ``"above"``, ``"below"``, or ``None`` where there are values on both.
    """
    mean, error = row_means(history, noise_var)
    level = goal.level_of(mean)
    if level is None:
        return None
    if not bool((mean - CLEAR * error > level).any()):
        return "below"
    if not bool((mean + CLEAR * error <= level).any()):
        return "above"
    return None
