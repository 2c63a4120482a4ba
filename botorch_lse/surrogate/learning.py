r"""The model of one output: given with fixed hyper-parameters, or fitted to data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._lazy import LazyModule
from botorch_lse._validation import complaint, in_interval, kind_of
from botorch_lse.data.observations import History, Observations
from botorch_lse.data.pool import NOISE_LEVEL, Pool
from botorch_lse.data.requests import round_generator
from botorch_lse.models.expectation import by_point, sites_of
from botorch_lse.models.gaussian_process import (
    FITTED_NOISE,
    JITTER,
    GPPrior,
)
from botorch_lse.models.kernels import LearntKernel
from botorch_lse.models.outcomes import LogNormal, Outcome
from botorch_lse.models.source_kernels import Loadings
from botorch_lse.models.sources import SourceModel, fit_sources, numbers_of
from botorch_lse.surrogate.remarks import widths_beyond

if TYPE_CHECKING:
    from botorch.models import SingleTaskGP

    from botorch_lse.models import fitted, latent
else:  # they bring SciPy
    fitted = LazyModule("botorch_lse.models.fitted")
    latent = LazyModule("botorch_lse.models.latent")
from botorch_lse.surrogate.posterior import _one_process

Refit = int | float | Callable[[int], bool] | None
"""The times of fits: every ``n`` rounds (int), by growth (float), or by a function.
A float: once the rounds have grown by this factor. A function says after how many.
``None``: every round up to ``REFITTED_EACH_ROUND`` values, then by growth of these."""
REFITTED_EACH_ROUND, GROWTH = 300, 1.1
"""The values up to which each round fits by default, and the growth until the next fit.
The time of a fit grows with their third power; they change it ever less."""
REACH = 0.2
"""The distance from the pool within which old values count for the initial design.
In widths of the pool's range, in any input: about the likeliest lengthscale of one
input by the default prior."""
ADDITIVE, SINGLE = FAMILIES = ("additive", "single")
"""The default models: a sum of functions of single inputs and of all, or the last."""
ALIKE = 1e-12
"""The share of their size by which values may differ and still count as alike."""
UNFITTED_NOISE = 1e-2
"""The noise variance assumed before any fit, as a share of the prior's.
Without noise a row next to a chosen one would count as known."""
_RANDOM_LOCK = RLock()
"""A lock held while a fit uses torch's random numbers, which all threads share.
Of two fits that both put back what they found, the one that started later would put
back what the other had drawn."""


@contextmanager
def own_random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    r"""A context that seeds torch's random numbers and restores them at its end.

    The random numbers are those of the CPU, and of a GPU that is computed on. Only one
    thread at a time is inside; others wait.
    """
    used = [device] if device.type == "cuda" else []
    with _RANDOM_LOCK, torch.random.fork_rng(devices=used):
        # Not `torch.manual_seed`, which writes the stack down for each kind of device.
        torch.default_generator.manual_seed(seed)
        if used:
            torch.cuda.manual_seed_all(seed)
        yield


@dataclass(frozen=True, eq=False)
class OutputModel:
    r"""A Gaussian process for one output, fixed or to be fitted.

    Args:
        pool: The candidates.
        model: See ``GPStrategy``.
        noise_std: The known noise standard deviation of this output.
        history: Its measurements that were made before the run.
        outcome: What is measured, if it is not the function plus noise.
        scale: The scale on which it is the function plus noise; ``None``: as told.
        family: See ``GaussianProcess``.
        rising: The columns along which the latent function of an outcome rises.
        falling: Those along which it falls.
        of_class: Whether results say if one of several classes was found.
    """

    pool: Pool
    model: fitted.ModelArgument
    noise_std: float | None
    history: History | None = None
    outcome: Outcome | None = None
    family: str = ADDITIVE
    rising: tuple[int, ...] = ()
    falling: tuple[int, ...] = ()
    scale: LogNormal | None = None
    of_class: bool = False

    def check(self) -> None:
        r"""Complain if model and noise do not fit each other.

        Raises:
            ValueError: If the noise is given twice, negative, or unknown for a
                fixed model.
            UnsupportedError: If a fixed model is not exact, or an ensemble.
        """
        if self.outcome is not None:
            self._check_outcome()
        elif self.history is not None and self.history.counts is not None:
            wanted = "to be left out where an output is a measured number"
            remedy = "Give `y` as it was measured, and its noise as `yvar`."
            raise ValueError(
                complaint("history.trials", wanted, "it was given", remedy)
            )
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
        if self.scale is not None and self.pool.noise_var is not None:
            wanted = f"to be left out with `outcome={self.scale!r}`"
            remedy = "Give `noise_std`, a share of the value, or tell `yvar`."
            raise ValueError(complaint("noise_var", wanted, "it was given", remedy))
        if self.history is not None and self.history.X.shape[-1] != self.pool.d:
            raise BotorchTensorDimensionError(
                f"Expected `history` with the {self.pool.d} columns of the pool, but "
                f"got {self.history.X.shape[-1]}."
            )
        if isinstance(self.model, SourceModel) or self.pool.target is not None:
            self._check_sources()
        if self.pool.names and self.pool.names[-1] == NOISE_LEVEL:
            self._check_levels()
        if self._fixed_prior is None:
            return
        assert self.fixed is not None  # it is the prior, after its history
        _one_process(self.fixed)
        is_known = self.outcome is not None or self.known_noise is not None
        if not (is_known or self.fixed.knows_new_noise):
            raise ValueError(
                "Expected `noise_std` (or `pool.noise_var`), because the fixed `model` "
                "does not know the noise of a new observation."
            )

    def _check_levels(self) -> None:
        r"""Complain about a model for which values differ between noise levels.

        Raises:
            ValueError: If it is the default, or takes the level for an input.
        """
        is_right, prior = callable(self.model), self._fixed_prior  # fits of one's own
        if isinstance(self.model, LearntKernel):
            prior = self.model.unfitted(self.pool.X)
        if prior is not None:
            pair = self.pool.X[:1].repeat(2, 1)
            pair[1, -1] += 1
            C = prior.covariance(*2 * (prior.pool_features(pair),))
            is_right = bool(torch.isclose(C[..., 0, 1], C[..., 0, 0]).all())
        if not is_right:
            wanted = f"to leave out the last column of the pool, {NOISE_LEVEL!r}"
            remedy = (
                "Use `TruVaRStrategy`, or a kernel whose `active_dims` are the others."
            )
            came = f"got {kind_of(self.model)}"
            raise ValueError(complaint("model", wanted, came, remedy))

    def _check_sources(self) -> None:
        r"""Complain about a model that does not go with the sources of the pool.

        Raises:
            ValueError: If there are none, or it needs numbers or names.
        """
        pool, came = self.pool, f"got {kind_of(self.model)}"
        model = self.model if isinstance(self.model, SourceModel) else None
        if model is not None and pool.target is None:
            wanted = "to be a model of sources only for a pool that has them"
            remedy = "Write `pool.at_sources(...)`, or another model."
            raise ValueError(complaint("model", wanted, came, remedy))
        if model is not None and model.needs_numbers and not pool.is_fidelity:
            wanted = "with sources that are numbers, for `FidelityDiscrepancies`"
            came = f"got {list(pool.sources)}"
            remedy = (
                "Write `at_sources((0.25, 0.5, 1.0), ...)`, or use `Discrepancies`."
            )
            raise ValueError(complaint("pool", wanted, came, remedy))
        if not pool.is_fidelity:
            return
        parts = self.model.modules() if isinstance(self.model, Kernel) else ()
        if any(isinstance(part, Loadings) for part in parts):
            wanted = "of sources with names, where it is a `source_kernel`"
            came = f"got {list(pool.sources)}"
            remedy = 'Write `at_sources(("0.25", "0.5"), ...)`.'
            raise ValueError(complaint("pool", wanted, came, remedy))
        if model is None or model.knows_all_numbers or self.history is None:
            return
        further = numbers_of(pool, self.history.X)[len(pool.sources) :]
        if len(further):
            wanted = f"to be a source of the pool, {list(pool.sources)}, with `"
            wanted, came = f"{wanted}{kind_of(model)}`", f"got {float(further[0]):g}"
            remedy = "Leave `model` out, or use `FidelityDiscrepancies()`."
            raise ValueError(complaint("history.source", wanted, came, remedy))

    def _check_outcome(self) -> None:
        r"""Complain about what does not go with an outcome that is not a number.

        Raises:
            ValueError: If there is noise, or an old result that cannot be.
            UnsupportedError: If the model is a fitted one, or fits by itself.
        """
        if self.pool.target is not None:
            wanted = "to be left out where a pool has sources"
            remedy = "Model the answers of one source, on the pool without sources."
            came = f"got {self.outcome!r}"
            raise UnsupportedError(complaint("outcome", wanted, came, remedy))
        old = self.history
        for name, given in (
            ("noise_std", self.noise_std),
            ("pool.noise_var", self.pool.noise_var),
            ("history.yvar", None if old is None else old.yvar),
        ):
            if given is not None:
                remedy = "Such a result has no noise of its own: leave it out."
                wanted = f"to be left out with `outcome={self.outcome!r}`"
                raise ValueError(complaint(name, wanted, "it was given", remedy))
        if old is not None and self.outcome is not None:
            self.outcome.check(old.y, old.replicates)
        if not isinstance(self.model, Kernel | GPPrior | None):
            wanted = (
                "to be None, or a kernel of the latent function, with "
                f"`outcome={self.outcome!r}`"
            )
            raise UnsupportedError(
                complaint("model", wanted, f"got {kind_of(self.model)}")
            )
        assert self.outcome is not None  # only then this is asked
        if self.model is not None and self.outcome.unknowns:
            wanted = "to have its `cutpoints` with a `model` of your own"
            remedy = "Give them, or leave `model` out, and both are learnt."
            came = f"got {self.outcome!r}"
            raise ValueError(complaint("outcome", wanted, came, remedy))

    @cached_property
    def fixed(self) -> GPPrior | None:
        r"""The prior if hyper-parameters are fixed, else ``None``."""
        prior = self._fixed_prior
        return None if prior is None else self.given(prior)

    @cached_property
    def _fixed_prior(self) -> GPPrior | None:
        is_learnt = self.model is None or isinstance(self.model, SourceModel)
        return None if is_learnt else fitted.fixed_prior(self.model)

    def given(self, prior: GPPrior, own: Observations | None = None) -> GPPrior:
        r"""The process of the prior once its history is known.

        Old results of an outcome count as the Gaussian measurements that they stand for
        beside those of the run.

        Args:
            prior: The process, fixed or fitted.
            own: All results of an outcome in the run; default none.

        Raises:
            ValueError: If the noise of the history is not known.
        """
        if self.history is None:
            return prior
        if self.outcome is None:
            y, noise = self.history.y, self.noise_of_history(prior)
            return prior.given(self.history.X, y, noise)
        # What they stood for beside fewer results is forgotten.
        prior = self._fixed_prior or prior.before or prior
        own = Observations.empty() if own is None else own
        y, noise = self._in_place(prior, *self._with_old(own))
        n = len(self.history)
        return prior.given(self.history.X, y[:n], noise[:n])

    def _with_old(self, own: Observations) -> tuple[Tensor, Tensor, Tensor]:
        r"""The points, results and numbers of trials of an outcome, old ones first."""
        X, trials = self.pool.X[own.indices], own.replicates.double()
        if self.history is None:
            return X, own.y, trials
        pairs = (
            (self.history.X, X),
            (self.history.y, own.y),
            (self.history.replicates.double(), trials),
        )
        X, y, trials = map(torch.cat, pairs)
        return X, y, trials

    def noise_of_history(self, prior: GPPrior) -> Tensor:
        r"""The noise variances of history's values: told, stated, or the process's.

        Args:
            prior: The process, fixed or fitted.

        Raises:
            ValueError: If the noise of the history is not known.
        """
        noise = self._known_noise_of_history()
        if noise is None and self.history is not None:
            noise = prior.new_noise(self.history.X)
        if noise is None:
            raise ValueError(
                "Expected the noise of the measurements in `history`, but neither they "
                "nor the model say it. Give `History(X, y, yvar)`, or `noise_std` in "
                "place of `pool.noise_var`."
            )
        return noise

    def unfitted(self, prior: GPPrior) -> GPPrior:
        r"""The process that knows where history was measured, but no value."""
        if self.history is None:
            return prior
        X = self.history.X
        y = prior.mean(prior.features(X))
        return prior.given(X, y, torch.full_like(y, UNFITTED_NOISE))

    def _known_noise_of_history(self) -> Tensor | None:
        assert self.history is not None  # it is asked for its noise
        if self.history.yvar is not None:
            return self.history.yvar
        if self.noise_std is None:
            return None
        return torch.full_like(self.history.y, self.noise_std**2)

    @cached_property
    def within_reach(self) -> Tensor:
        r"""Whether each point of history informs about the pool (``n`` bools)."""
        assert self.history is not None
        return widths_beyond(self.history.X, self.pool.bounds).amax(dim=-1) <= REACH

    @cached_property
    def of_target(self) -> Tensor:
        r"""Whether each point of history is about what is decided (``n`` bools).

        Values of other sources may lie on another side than those of the target.
        """
        assert self.history is not None
        number, target = self.history.X[:, -1], self.pool.target
        if target is None:
            return torch.ones_like(number).bool()
        return number == self.pool.levels[target]

    @property
    def tells_sides(self) -> Tensor:
        r"""Whether each value of history lies on a side of the level (``n`` bools)."""
        return self.within_reach & self.of_target

    @property
    def exact_in_history(self) -> Tensor:
        r"""Whether each value of history counts as exact (``n`` bools)."""
        assert self.history is not None
        y, noise = self.history.y, self._known_noise_of_history()
        if noise is None:
            return torch.zeros(len(y), dtype=torch.bool)
        return noise <= least_of_values(y)

    @cached_property
    def known_noise(self) -> Tensor | None:
        r"""The noise variances that the strategy or the pool knows (``N``), if any."""
        if self.noise_std is None:
            return self.pool.noise_var
        variance = torch.tensor(self.noise_std**2, dtype=torch.float64)
        return variance.expand(len(self.pool))  # one number, however many rows

    @property
    def expects_noise(self) -> bool:
        r"""Whether new values have noise variances, known or told as history's are."""
        told = self.history is not None and self.history.yvar is not None
        return self.known_noise is not None or told or self.outcome is not None

    def check_noise(self) -> None:
        r"""Complain if a fit would lose the stated noise of new values.

        Raises:
            ValueError: If the noise of new values is known beforehand, and that of
                history is not.
        """
        if self.history is None or self.fixed is not None or self.known_noise is None:
            return
        if self._known_noise_of_history() is None:
            raise ValueError(
                "Expected the noise of all values to be known or of none, but that of "
                "the new measurements alone is. Give `History(X, y, yvar)`, or a pool "
                "without `noise_var`, and the noise is learnt."
            )

    def allows_fit(self, own: Observations, least: int, is_complete: bool) -> bool:
        r"""Whether a model can be fitted to the data at all.

        Values that are all alike have no scale, and those of few rows no lengthscale: a
        fit would be certain of whatever it starts from. Of outcomes that are all alike,
        even of all rows, a fit would say that others cannot be.

        Args:
            own: All observations of this output.
            least: How many different rows must have been measured; one more than there
                are inputs always suffices.
            is_complete: Whether no new row is left to measure: then a fit is allowed.
        """
        if self.outcome is not None and self.are_alike(own):
            return False
        rows = own.indices.unique().numel()
        if rows == len(self.pool) or (is_complete and rows > 0):
            return True
        if self.history is not None:
            rows += len(self.history.X[self.within_reach].unique(dim=0))
        return not self.are_alike(own) and rows >= min(least, self.pool.d + 1)

    def are_alike(self, own: Observations) -> bool:
        r"""Whether all values of this output, history's included, are the same.

        Args:
            own: All observations of this output.
        """
        y = own.y if self.history is None else torch.cat((own.y, self.history.y))
        if len(y) == 0:
            return True
        y = y if self.outcome is None else self.outcome.as_quantity(y)
        if self.outcome is not None and bool(((y > 0) & (y < 1)).any()):
            return False  # of several trials some had another result than others
        return float(y.max() - y.min()) <= ALIKE * float(y.abs().max())

    def new_noise(self, prior: GPPrior, yvar: Tensor | None) -> Tensor:
        r"""The noise variances of new observations, at least the least noise (``N``).

        Args:
            prior: The process, fixed or fitted.
            yvar: The variances of the data, if known.

        Raises:
            ValueError: If nobody knows the noise.
        """
        if self.outcome is not None:
            F, outcome = prior.features(self.pool.X), self.outcome_of(prior)
            return outcome.pseudo_noise(prior.mean(F), prior.variance(F))
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
        least = prior.least_noise(prior.features(self.pool.X))
        if noise.stride(0) == 0:
            return torch.maximum(noise[:1], least).expand(len(noise))
        return torch.maximum(noise, least)

    def fit(self, history: Observations, seed: int, n_rounds: int) -> GPPrior:
        r"""The fixed process, or one that is fitted to the data.

        Each fit begins at the model's initial values with random numbers of its own
        round, so that it is a function of the data alone.

        Args:
            history: All observations, of this output only.
            seed: The run's seed.
            n_rounds: The number of complete rounds.

        Raises:
            UnsupportedError: If the fitted model is not exact, or an ensemble.
        """
        if self.fixed is not None:
            return self.fixed
        X, values, noise = self.pool.X[history.indices], history.y, history.yvar
        if self.outcome is not None:
            words, is_sum = dict(self.pool.words.values()), self.family == ADDITIVE
            given = *self._with_old(history), self.pool.bounds
            parts = self.outcome, words, is_sum, self.rising
            # A fit to results that are all alike would say that others cannot be.
            of_class, is_fitted = self.of_class, not self.are_alike(history)
            fitted_so = of_class, of_class or is_fitted, self.falling
            return latent.fit_latent_gp(*given, *parts, *fitted_so)
        if noise is None and self.known_noise is not None:
            # Values of several outputs come without it if it is not known of all.
            noise = self.known_noise[history.indices]
        if self.history is not None:
            before = self._known_noise_of_history()
            X = torch.cat((self.history.X, X))
            values = torch.cat((self.history.y, values))
            # A fit knows the noise of all values or of none. Where that of some alone
            # was told, one for all is learnt; each value then counts with its own.
            if before is None or noise is None:
                noise = None
            else:
                noise = torch.cat((before, noise))
        y, yvar = values.unsqueeze(-1), None
        if noise is not None:
            spread = float(values.var(correction=0)) or 1.0  # 1: as Standardize has
            least = FITTED_NOISE * spread if self.pool.target is None else 0.0
            yvar = noise.clamp_min(least).unsqueeze(-1)  # by source: when fitted
        own_seed = round_generator(seed, n_rounds).initial_seed()
        with own_random_numbers(own_seed, X.device):
            if self.pool.target is not None and not callable(self.model):
                of_sources = self.model if isinstance(self.model, SourceModel) else None
                prior = fit_sources(of_sources, X, y, yvar, self.pool)
            elif callable(self.model):
                prior = GPPrior.from_model(self.model(X, y, yvar))
                _one_process(prior)
            else:
                prior = GPPrior.taken_from(self._default(X, y, yvar))
        return prior

    def outcome_of(self, prior: GPPrior) -> Outcome:
        r"""The outcome with the parameters that a fit has found, such as cutpoints.

        Args:
            prior: The process, fixed or fitted.
        """
        assert self.outcome is not None  # results are no numbers
        found = None if self._fixed_prior is not None else prior.outcome
        return found or self.outcome

    def in_place(self, prior: GPPrior, own: Observations) -> tuple[Tensor, Tensor]:
        r"""Gaussian measurements in place of an outcome's results.

        Where the process is ``given`` old results with these, they are those of all
        results together: each site is then the one that it was found to be.

        Args:
            prior: The latent process.
            own: All results of this output in the run.

        Returns:
            ``n`` values and ``n`` noise variances.
        """
        trials = own.replicates.double()
        return self._in_place(prior, self.pool.X[own.indices], own.y, trials)

    def _in_place(
        self, prior: GPPrior, X: Tensor, y: Tensor, trials: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""Gaussian measurements in place of results at any points.

        Each result of a point is its share of the trials there of the point's site.
        """
        if len(y) == 0:
            return y, y
        outcome, (points, results) = self.outcome_of(prior), by_point(X, y, trials)
        place, joined = results.place, outcome.joined(results)
        with torch.no_grad():
            F = prior.features(X[points])
            K, mean = prior.covariance(F, F), prior.mean(F)
            found = sites_of(K, mean, outcome, joined)
            share = trials / results.by_point(trials)[place]
            return found.value[place], found.noise[place] / share

    def _default(self, X: Tensor, y: Tensor, yvar: Tensor | None) -> SingleTaskGP:
        # Scaled by the pool alone: one old value far from it would shrink it to a
        # point, where the prior of the lengthscales expects nothing to vary.
        bounds, words = self.pool.bounds, self.pool.words
        if not words:
            is_sum = self.family == ADDITIVE
            fit = fitted.fit_additive_gp if is_sum else fitted.fit_single_task_gp
            return fit(X, y, yvar, bounds)
        return fitted.fit_mixed_gp(X, y, yvar, bounds, dict(words.values()))


def _fittable(data: Observations) -> Tensor:
    r"""The known noise variances of one output, none too small for a fit."""
    assert data.yvar is not None  # they are known
    spread = float(data.y.var(correction=0)) or 1.0  # 1: as Standardize has
    return data.yvar.clamp_min(FITTED_NOISE * spread)


def least_of_values(y: Tensor) -> float:
    r"""The noise variance that counts as exact before there is a model.

    A tiny share of the variance of the values.
    """
    return JITTER * float(y.var(correction=0)) if len(y) else 0.0
