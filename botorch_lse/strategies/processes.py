r"""The model of a strategy: Gaussian processes, given or learnt, one per output.

This module says what is learnt from data and when: the noise in a burn-in, the
hyper-parameters after a first design of rows, and which rows are known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import ModelList
from torch import Tensor
from torch.nn import Module

from botorch_lse._lazy import LazyModule
from botorch_lse.checks import in_interval, of_type, truth_value, whole_number
from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.models import correlated
from botorch_lse.models.correlated import CorrelatedModel
from botorch_lse.models.gaussian_process import (
    JITTER,
    MEMORY_BUDGET,
    GPPrior,
    PoolPosterior,
    checked_budget,
)
from botorch_lse.models.kernels import LearntKernel
from botorch_lse.problem import History, Observations, Pool
from botorch_lse.strategies.arguments import points_of
from botorch_lse.strategies.assays import Assays
from botorch_lse.strategies.assumptions import Refuted, by_repeats
from botorch_lse.strategies.goals import Goal
from botorch_lse.strategies.loop import Request, round_generator
from botorch_lse.strategies.remarks import gross, widths_beyond

if TYPE_CHECKING:
    from botorch.models import SingleTaskGP, multitask

    from botorch_lse.models import fitted
    from botorch_lse.strategies.burn_in import BurnIn, BurnInData
else:  # both bring SciPy
    fitted = LazyModule("botorch_lse.models.fitted")
    multitask = LazyModule("botorch.models.multitask")

Refit = int | float | Callable[[int], bool]
"""When a model is fitted again: every so many rounds; once there are so many times as
many rounds as at the last fit (a float); or whether to after a number of rounds."""
FIRST_PER_INPUT = 10
"""Rows of the first design per input where a model is learnt: with ``2 (d + 1)`` of
them, a default model said of functions with hidden regions that all is decided in 17 of
40 runs, with ten in 4."""
MOST_FIRST_INPUTS = 10
"""Inputs that count for the first design: of the thousand bits of a fingerprint few are
free, and no hundred rows fill a space of more than ten."""
REPEATS = 4
"""Rows of the first design that are measured again where the noise is learnt. Values of
different rows alone do not tell noise from a function that varies fast; a fit then took
all of a region for noise, and said that nothing is above the level."""
REACH = 0.2
"""Widths of the pool's range beyond it, in any input, up to which old values count for
the first design: about the likeliest lengthscale of one input by the default prior."""
LEVEL_Z = 1.5
"""Prior standard deviations within which a learnt model must hold the level. Anything
between 1 and 2 serves; it must stay below the width that decides."""
ALIKE = 1e-12
"""Values that differ by no more than this share of their size count as alike."""
UNFITTED_NOISE = 1e-2
"""The noise variance, as a share of the prior's, assumed while first rows are chosen
before any fit: without noise a row next to a chosen one would count as known."""
FITTED_NOISE = 2e-6
"""Known noise is no smaller in a fit, as a share of the spread of the values: GPyTorch
raises it to 1e-6 with a warning. The fitted process then gets the noise as it is."""
_RANDOM_LOCK = RLock()
"""Held while a fit uses torch's random numbers, which all threads share: of two fits
that both put back what they found, the one that started later would put back what the
other had drawn."""
CLEAR = 1.0
"""Standard errors by which a row's mean must clear the level to count as beyond it: a
value that noise alone carried over is no evidence of the other side."""


@contextmanager
def own_random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    r"""A context with torch's random numbers seeded, and restored when it ends.

    Those of the CPU, and of a GPU that is computed on. Only one thread at a time is
    inside; others wait.
    """
    used = [device] if device.type == "cuda" else []
    with _RANDOM_LOCK, torch.random.fork_rng(devices=used):
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True, eq=False)
class OutputModel:
    r"""A Gaussian process for one output, fixed or to be fitted.

    Args:
        pool: The candidates.
        model: See ``GPStrategy``.
        noise_std: The known noise standard deviation of this output.
        history: Its measurements that were made before the run.
    """

    pool: Pool
    model: fitted.ModelArgument
    noise_std: float | None
    history: History | None = None

    def check(self) -> None:
        r"""Complain if model and noise do not fit each other.

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
        if self.history is not None and self.history.X.shape[-1] != self.pool.d:
            raise BotorchTensorDimensionError(
                f"Expected `history` with the {self.pool.d} columns of the pool, but "
                f"got {self.history.X.shape[-1]}."
            )
        if fitted.fixed_prior(self.model) is None:
            return
        assert self.fixed is not None  # it is the prior, after its history
        _one_process(self.fixed)
        if self.known_noise is None and not self.fixed.knows_new_noise:
            raise ValueError(
                "Expected `noise_std` (or `pool.noise_var`), because the fixed `model` "
                "does not know the noise of a new observation."
            )

    @cached_property
    def fixed(self) -> GPPrior | None:
        r"""The prior if hyper-parameters are fixed, else ``None``."""
        prior = fitted.fixed_prior(self.model)
        return None if prior is None else self.given(prior)

    def given(self, prior: GPPrior) -> GPPrior:
        r"""A process once its history is known.

        Raises:
            ValueError: If the noise of the history is not known.
        """
        if self.history is None:
            return prior
        noise = self.noise_of_history(prior)
        return prior.given(self.history.X, self.history.y, noise)

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
                "nor the model say it. Give `History(X, y, yvar)`, or `noise_std`."
            )
        return noise

    def unfitted(self, prior: GPPrior) -> GPPrior:
        r"""A process that knows where history was measured, but no value."""
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
        r"""``n`` bools: which points of history tell of the pool; it has some."""
        assert self.history is not None
        return widths_beyond(self.history.X, self.pool.bounds).amax(dim=-1) <= REACH

    @property
    def exact_in_history(self) -> Tensor:
        r"""``n`` bools: which values of history count as exact; it has some."""
        assert self.history is not None
        y, noise = self.history.y, self._known_noise_of_history()
        if noise is None:
            return torch.zeros(len(y), dtype=torch.bool)
        return noise <= least_of_values(y)

    @cached_property
    def known_noise(self) -> Tensor | None:
        r"""``N`` noise variances, where the strategy or the pool knows them."""
        if self.noise_std is None:
            return self.pool.noise_var
        variance = torch.tensor(self.noise_std**2, dtype=torch.float64)
        return variance.expand(len(self.pool))  # one number, however many rows

    @property
    def expects_noise(self) -> bool:
        r"""Whether new values have noise variances: known, or told as history's are."""
        told = self.history is not None and self.history.yvar is not None
        return self.known_noise is not None or told

    def check_noise(self, is_known: bool) -> None:
        r"""Complain where a fit would have values with and without a noise variance.

        Args:
            is_known: Whether new values have noise variances.

        Raises:
            ValueError: If history has them and new values do not, or the reverse.
        """
        if self.history is None or self.fixed is not None:
            return
        before = self._known_noise_of_history() is not None
        if before == is_known:
            return
        known, remedy = "new measurements", "Give `History(X, y, yvar)`."
        if before:
            known = "`history`"
            remedy = (
                "Tell `Observations(rows, y, yvar)`, give the model `noise_std`, or "
                "leave `yvar` out of the `History`."
            )
        raise ValueError(
            "Expected the noise of all values to be known or of none, but that of the "
            f"{known} alone is. {remedy}"
        )

    def allows_fit(self, own: Observations, least: int, is_complete: bool) -> bool:
        r"""Whether a model can be learnt from the data at all.

        Values that are all alike have no scale, and those of few rows no lengthscale: a
        fit would be certain of whatever it starts from.

        Args:
            own: All observations of this output.
            least: How many different rows must have been measured; one more than there
                are inputs always suffices.
            is_complete: Whether no new row is left to measure: then a fit is allowed.
        """
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
        return float(y.max() - y.min()) <= ALIKE * float(y.abs().max())

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
        if self.history is not None:
            before = self._known_noise_of_history()
            X = torch.cat((self.history.X, X))
            values = torch.cat((self.history.y, values))
            if before is not None and noise is not None:
                noise = torch.cat((before, noise))
        y, yvar = values.unsqueeze(-1), None
        if noise is not None:
            spread = float(values.var(correction=0)) or 1.0  # 1: as Standardize has
            yvar = noise.clamp_min(FITTED_NOISE * spread).unsqueeze(-1)
        own_seed = round_generator(seed, n_rounds).initial_seed()
        with own_random_numbers(own_seed, X.device):
            if callable(self.model):
                prior = GPPrior.from_model(self.model(X, y, yvar))
            else:
                prior = GPPrior.from_model(self._default(X, y, yvar))
        _one_process(prior)
        return prior

    def _default(self, X: Tensor, y: Tensor, yvar: Tensor | None) -> SingleTaskGP:
        # Scaled by the pool alone: one old value far from it would shrink it to a
        # point, where the prior of the lengthscales expects nothing to vary.
        bounds, words = self.pool.bounds, self.pool.words
        if not words:
            return fitted.fit_single_task_gp(X, y, yvar, bounds)
        return fitted.fit_mixed_gp(X, y, yvar, bounds, dict(words.values()))


def _one_process(prior: GPPrior) -> None:
    if prior.batch_shape:
        raise UnsupportedError(
            "Expected `model` to be one GP per output, but got an ensemble of "
            f"{tuple(prior.batch_shape)}. Use one member, or a `SingleTaskGP`."
        )


@dataclass(frozen=True, eq=False)
class Fits:
    r"""The posteriors of all outputs after the complete rounds.

    Args:
        posteriors: One per output, on the pool followed by items that cannot be
            measured; units and signs of ``y``.
        noise: For each output ``N`` noise variances of new observations.
        is_informed: Whether the posteriors are those of a model that was given or
            fitted, so that they may decide; else they only position first rows.
        fitted_rounds: Rounds in the data at the last fit; -1 before any.
        n_rounds: Complete rounds with data.
        burn_in: What the burn-in measured; ``None`` where the noise is known.
        has_known_noise: Whether values come with their noise variances.
        assays: How rows are pairs of a candidate and an output, where a measurement
            gives one output; ``None``: it gives all.
        floors: For each output ``N`` noise variances that repeats say there is at
            least, where they refute the stated ones; 0 elsewhere. Empty: none are.
    """

    posteriors: tuple[PoolPosterior, ...]
    noise: tuple[Tensor, ...]
    is_informed: bool = False
    fitted_rounds: int = -1
    n_rounds: int = 0
    burn_in: BurnInData | None = None
    has_known_noise: bool = False
    assays: Assays | None = None
    floors: tuple[Tensor, ...] = ()

    @property
    def learns_noise(self) -> bool:
        r"""Whether there is a burn-in that has not ended."""
        return self.burn_in is not None and self.burn_in.variances is None

    @property
    def measured(self) -> Tensor:
        r"""The rows that were measured, replicates included."""
        if self.assays is None:
            return self.posteriors[0].indices
        return self.assays.joined([p.indices for p in self.posteriors])

    @property
    def new_noise(self) -> Tensor:
        r"""Noise variances of new observations: by row, of the first output if all."""
        return self.noise[0] if self.assays is None else torch.cat(self.noise)

    def by_row(self, candidates: Tensor) -> Tensor:
        r"""What is said of candidates, for the rows by which they are measured."""
        if self.assays is None:
            return candidates
        return candidates.repeat(self.assays.n_outputs)

    def by_output(self, data: Observations) -> list[Observations]:
        r"""The measurements of each output, at rows of its posterior."""
        if self.assays is not None:
            return self.assays.by_output(data)
        if data.y.ndim == 1:  # of one output, or empty
            return [data] * len(self.posteriors)
        return [data.output(c) for c in range(len(self.posteriors))]

    def noise_of(self, new: Observations) -> tuple[Tensor, ...]:
        r"""For each output the noise variances of measurements, given or estimated."""
        pairs = zip(self.by_output(new), self.noise, strict=True)
        found = [
            noise[own.indices] if own.yvar is None else own.yvar for own, noise in pairs
        ]
        for j, floor in enumerate(self.floors):
            rows = self.by_output(new)[j].indices
            found[j] = torch.maximum(found[j], floor[rows])
        return tuple(found)

    def surprises(self, new: Observations) -> tuple[Tensor, ...]:
        r"""For each output the standardised residuals of values from predictions."""
        given = self._given(new)
        if self.posteriors[0].is_correlated:
            return correlated.surprises(self.posteriors, *given)
        parts = zip(self.posteriors, *given, strict=True)
        return tuple(p.surprises(*own) for p, *own in parts)

    def observing(self, new: Observations) -> Fits:
        r"""The posteriors after new values."""
        given = self._given(new)
        if self.posteriors[0].is_correlated:
            found = correlated.observed(self.posteriors, *given)
        else:
            parts = zip(self.posteriors, *given, strict=True)
            found = tuple(p.observe(*own) for p, *own in parts)
        return replace(self, posteriors=found)

    def _given(
        self, new: Observations
    ) -> tuple[list[Tensor], list[Tensor], tuple[Tensor, ...]]:
        r"""For each output the rows, the values and their noise variances."""
        each = self.by_output(new)
        return [o.indices for o in each], [o.y for o in each], self.noise_of(new)

    def expecting(self, rows: Tensor) -> Fits:
        r"""The posteriors if ``rows`` were measured besides: variances shrink.

        Args:
            rows: Rows that are being measured or planned, replicates included.
        """
        if len(rows) == 0:
            return self
        each = [rows] * len(self.posteriors)
        if self.assays is not None:
            each = self.assays.split(rows)
        counted = [own.unique(return_counts=True) for own in each]
        rows_of = [own for own, _ in counted]
        pairs = zip(self.noise, counted, strict=True)
        noise = [noise[own] / counts for noise, (own, counts) in pairs]
        if self.posteriors[0].is_correlated:
            found = correlated.expected(self.posteriors, rows_of, noise)
        else:
            parts = zip(self.posteriors, rows_of, noise, strict=True)
            found = tuple(p.expect_all(*own) if len(own[0]) else p for p, *own in parts)
        return replace(self, posteriors=found)


@dataclass(frozen=True, eq=False)
class GaussianProcesses:
    r"""The model of a strategy: what is believed of each output, and when it is learnt.

    Outputs are independent, or correlated and learnt together. Every measurement has
    all of them.

    Args:
        pool: The candidates.
        outputs: The process of each output, with its noise.
        refit: See ``GPStrategy``, as are the next ones.
        n_initial: Measurements of the first design.
        max_observations: The budget.
        max_repeats: How often one row may be measured.
        memory_budget: Bytes for arrays over the pool.
        X: The points at which the posteriors are computed, the pool first; default the
            pool.
        points: A number for each of the ``N`` rows, the same for rows that are one
            point; default the same for equal rows.
        unfitted: The process by which first rows are chosen; default BoTorch's default
            model before any data.
        burn_in: The rounds in which the noise is learnt; ``None`` where it is known.
        assays: How rows are pairs of a candidate and an output, where a measurement
            gives one output; ``None``: it gives all.
        together: What learns correlated outputs, or has learnt them, if the outputs'
            models are given; ``None`` where outputs are independent.

    Raises:
        ValueError: If a number is out of range, or model and noise do not fit.
        UnsupportedError: If a fixed model is not exact, or an ensemble.
    """

    pool: Pool
    outputs: tuple[OutputModel, ...]
    refit: Refit = 1
    n_initial: int | None = None
    max_observations: int | None = None
    max_repeats: int | None = None
    memory_budget: int = MEMORY_BUDGET
    X: Tensor | None = None
    points: Tensor | None = None
    unfitted: GPPrior | None = None
    burn_in: BurnIn | None = None
    together: CorrelatedModel | None = None
    assays: Assays | None = None

    def __post_init__(self) -> None:
        if self.n_initial is not None:
            whole_number(self.n_initial, "n_initial", 0)
        if isinstance(self.refit, float):
            remedy = "Write a whole number of rounds, or how many times as many, 1.1."
            in_interval(self.refit, "refit", 1.0, math.inf, remedy=remedy)
        elif not callable(self.refit):
            whole_number(self.refit, "refit", 1)
        checked_budget(self.memory_budget, len(self.pool), "one number per row")

    @cached_property
    def is_fixed(self) -> bool:
        r"""Whether the hyper-parameters of all outputs are fixed."""
        return all(output.fixed is not None for output in self.outputs)

    @property
    def wanted(self) -> int:
        r"""How many measurements the first design should have, whatever the budget."""
        if self.n_initial is not None:
            return self.n_initial if self.is_fixed else max(self.n_initial, 1)
        if self.is_fixed:
            return 0
        inputs = min(self.candidates.d, MOST_FIRST_INPUTS)
        each = FIRST_PER_INPUT * inputs * self._per_candidate
        each = min(each, len(self.pool))
        # One at least, as a model is learnt when something is told; and however much
        # history tells, as many as are to be measured again.
        least = min(max(1, self.n_repeats), each)
        return max(least, each - self._told_before[0])

    @property
    def candidates(self) -> Pool:
        r"""The rows that can be measured, perhaps one output at a time."""
        return self.pool if self.assays is None else self.assays.candidates

    @cached_property
    def _told_before(self) -> tuple[int, int]:
        r"""How many points of history tell of the pool, and how many values repeat one.

        What a repeated value says of the noise does not depend on where it is.
        """
        first = self.outputs[0]  # all outputs were measured at the same points
        if first.history is None:
            return 0, 0
        X = first.history.X
        return len(X[first.within_reach].unique(dim=0)), len(X) - len(X.unique(dim=0))

    def n_replicates(self, own: Observations) -> int:
        r"""How many values of an output repeat a row or a point, history's included.

        Args:
            own: The output's observations.
        """
        return len(own) - len(own.indices.unique()) + self._told_before[1]

    @property
    def _per_candidate(self) -> int:
        r"""How many measurements give all outputs of a candidate."""
        return 1 if self.assays is None else self.assays.n_outputs

    @property
    def n_repeats(self) -> int:
        r"""How many measurements of the first design are to tell the noise.

        None where it is known, a row must not be measured twice, or the design is the
        user's. What history has of them is not measured again.
        """
        is_known = all(output.expects_noise for output in self.outputs)
        is_given = self.is_fixed or self.n_initial is not None
        if is_known or is_given or self.max_repeats == 1:
            return 0
        return max(0, REPEATS * self._per_candidate - self._told_before[1])

    @property
    def n_first(self) -> int:
        r"""How many measurements the first design has, within the budget.

        ``wanted`` go to the rows of largest variance, ``n_repeats`` to some of these
        again. 0 with a burn-in, which takes its place.
        """
        if self.burn_in is not None:
            return 0
        n = self.wanted + self.n_repeats
        if self.max_observations is not None:
            n = min(n, self.max_observations)
        if self.max_repeats is not None:
            n = min(n, self.max_repeats * len(self.pool))
        return n

    # --- before data ------------------------------------------------------------------

    def start(self) -> Fits:
        r"""Before any measurement: the given processes, or those for first rows."""
        if self.burn_in is not None:
            fits = self.unfitted_start()
            if self.is_fixed:
                fits = replace(fits, posteriors=self._priors(self._given))
            # Not at the top: it brings designs and their solver.
            from botorch_lse.strategies.burn_in import BurnInData

            return replace(fits, burn_in=BurnInData.empty(len(self.pool)))
        return self.of_priors(self._given) if self.is_fixed else self.unfitted_start()

    def unfitted_start(self) -> Fits:
        r"""The unfitted processes, by which first rows are chosen, without data."""
        prior, model = self.unfitted, self.outputs[0].model
        if prior is None and isinstance(model, LearntKernel):
            prior = model.unfitted(self.candidates.X)
        if prior is None:
            words = dict(self.candidates.words.values())
            prior = fitted.unfitted_prior(self.candidates.bounds, words)
        prior = self.outputs[0].unfitted(prior)
        noise = torch.full((len(self.candidates),), UNFITTED_NOISE, dtype=torch.float64)
        m = len(self.outputs)
        return Fits(self._priors([prior]) * m, (noise,) * m, assays=self.assays)

    def of_priors(
        self, priors: Sequence[GPPrior], history: Observations | None = None
    ) -> Fits:
        r"""The posteriors of given or fitted processes before any observation.

        Args:
            priors: One per output.
            history: The data, whose variances say what noise to expect of new ones.
        """
        variances: list[Tensor | None] = [None] * len(priors)
        if history is not None:
            variances = [data.yvar for data in self.by_output(history)]
        if self.together is None:
            posteriors = self._priors(priors)
        else:
            posteriors = correlated.start(priors, self.rows, self.memory_budget)
        triples = zip(self.outputs, priors, variances, strict=True)
        noise = tuple(output.new_noise(prior, yvar) for output, prior, yvar in triples)
        return Fits(posteriors, noise, is_informed=True, assays=self.assays)

    @property
    def _given(self) -> list[GPPrior]:
        return [output.fixed for output in self.outputs if output.fixed is not None]

    def _priors(self, priors: Sequence[GPPrior]) -> tuple[PoolPosterior, ...]:
        given = self.rows, self.memory_budget, len(self.outputs)
        return tuple(PoolPosterior.start(p, *given) for p in priors)

    @property
    def rows(self) -> Tensor:
        r"""The points at which the posteriors are computed."""
        return self.candidates.X if self.X is None else self.X

    def by_output(self, data: Observations) -> list[Observations]:
        r"""The measurements of each output, at rows of its posterior."""
        if self.assays is not None:
            return self.assays.by_output(data)
        if data.y.ndim == 1:  # of one output, or empty
            return [data] * len(self.outputs)
        return [data.output(c) for c in range(len(self.outputs))]

    # --- data -------------------------------------------------------------------------

    def complete(self, observations: Observations) -> Observations:
        r"""The observations with known noise variances, where none were given."""
        known = [output.known_noise for output in self.outputs]
        if observations.yvar is not None or any(v is None for v in known):
            if self.burn_in is None:
                for output in self.outputs:
                    output.check_noise(observations.yvar is not None)
            return observations
        columns = [v for v in known if v is not None]
        if self.assays is not None:
            return replace(observations, yvar=torch.cat(columns)[observations.indices])
        columns = [v[observations.indices] for v in columns]
        yvar = columns[0] if observations.y.ndim == 1 else torch.stack(columns, dim=-1)
        return replace(observations, yvar=yvar)

    def count_round(self, fits: Fits, new: Observations) -> Fits:
        r"""Count one more complete round, and add it to the burn-in if that lasts.

        The posteriors take its values by ``observe``.
        """
        is_known = new.yvar is not None
        fits = replace(fits, n_rounds=fits.n_rounds + 1, has_known_noise=is_known)
        if self.burn_in is None or fits.burn_in is None or not fits.learns_noise:
            return fits
        return replace(fits, burn_in=self.burn_in.after(fits.burn_in, new))

    def are_alike(self, history: Observations) -> bool:
        r"""Whether all values of an output are the same, so that they have no scale."""
        pairs = zip(self.outputs, self.by_output(history), strict=True)
        return any(len(own) > 0 and output.are_alike(own) for output, own in pairs)

    def gross(self, history: Observations) -> Tensor:
        r"""Places in the history of first values that may be slips.

        Those of the first design, whose values nothing predicted before they came; none
        where measurements are exact, as those of a program are.

        Args:
            history: All observations, labelled by round.
        """
        assert history.round is not None  # labelled by `tell`
        n, none = self.n_first, history.indices[:0]
        is_exact = history.yvar is not None and not bool((history.yvar > 0).any())
        if self.is_fixed or self.burn_in is not None or n == 0 or is_exact:
            return none
        last = history.round[min(n, len(history)) - 1]
        found = [none]
        for own, places in self._places_by_output(history):
            found.append(places[gross(own.y)])
        places = torch.cat(found).unique()
        return places[history.round[places] <= last]

    def _places_by_output(
        self, history: Observations
    ) -> Iterator[tuple[Observations, Tensor]]:
        r"""For each output its own observations, and their places in the history."""
        every = torch.arange(len(history))
        for j, own in enumerate(self.by_output(history)):
            places = every
            if self.assays is not None:
                places = every[history.indices // len(self.assays) == j]
            yield own, places

    def unseen(self, measured: Tensor, lost: Tensor) -> Tensor:
        r"""``N`` bools: rows that can be measured, of points that were not yet.

        Args:
            measured: The rows that were measured, replicates included.
            lost: Rows that were used up without a result, or excluded.
        """
        points = self.row_points
        is_seen = torch.zeros(len(points), dtype=torch.bool)
        is_seen[points[measured]] = True
        is_seen[points[self.known_before]] = True
        return ~is_seen[points].index_fill(0, lost, True)

    def allows_answers(
        self, fits: Fits, history: Observations, lost: Tensor, is_complete: bool
    ) -> bool:
        r"""Whether there is a model, or the data suffice to fit one.

        Args:
            fits: The posteriors, this round counted.
            history: All observations.
            lost: Rows that were used up without a result, or excluded.
            is_complete: Whether no new row is left to measure.
        """
        if fits.is_informed or fits.burn_in is not None:
            return not fits.learns_noise
        n, none = self.n_first, history.indices[:0]
        if history.yvar is not None:
            n = min(n, self.wanted)  # the noise is known, as it turns out
        once = torch.ones(len(self.pool), dtype=torch.long).index_fill(0, lost, 0)
        rest = self.repeats_left(fits, history, none, once)
        enough = len(history) >= n or not bool(rest.any())
        return enough and self.allows_fit(history, n, is_complete)

    def allows_fit(self, history: Observations, least: int, is_complete: bool) -> bool:
        r"""Whether models can be learnt from the data; see ``OutputModel``."""
        pairs = zip(self.outputs, self.by_output(history), strict=True)
        return all(out.allows_fit(own, least, is_complete) for out, own in pairs)

    def with_locations(self, fits: Fits, new: Observations) -> Fits:
        r"""The unfitted processes, knowing which rows were measured but no values.

        That suffices to choose further rows far from them.
        """
        if fits.learns_noise:
            return fits
        if self.assays is not None:
            nothing = replace(new, y=torch.zeros_like(new.y), yvar=None)
            return fits.observing(nothing)
        posterior, noise = fits.posteriors[0], fits.noise[0][new.indices]
        zeros = torch.zeros(len(new), dtype=torch.float64)
        posterior = posterior.observe(new.indices, zeros, noise)
        return replace(fits, posteriors=(posterior,) * len(self.outputs))

    def restarts(self, fits: Fits) -> bool:
        r"""Whether the posteriors are computed from a prior again after this round.

        That is after the first data, and after each fit.
        """
        if not fits.is_informed:
            return True
        if self.is_fixed:
            return False
        if callable(self.refit):
            return bool(self.refit(fits.n_rounds))
        if isinstance(self.refit, float):
            return fits.n_rounds >= self.refit * fits.fitted_rounds
        return fits.n_rounds - fits.fitted_rounds >= self.refit

    def restarted(
        self,
        fits: Fits,
        history: Observations,
        seed: int,
        transform: Callable[[int, GPPrior, Observations], GPPrior],
    ) -> Fits:
        r"""The posteriors before any observation, of given or newly fitted processes.

        Args:
            fits: The posteriors so far.
            history: All observations, to fit to.
            seed: The run's seed.
            transform: Applied to the number of each output, its process that was
                fitted, and its own observations.
        """
        variances = None if fits.burn_in is None else fits.burn_in.variances
        if variances is not None and history.yvar is None:
            history = replace(history, yvar=variances[history.indices])
        priors, fitted_rounds = self._given, fits.fitted_rounds
        if fits.floors and history.yvar is not None:
            history = replace(history, yvar=self._raised(history, fits.floors))
        if not self.is_fixed:
            fitted = self._fitted(history, seed, fits.n_rounds)
            priors = self._transformed(fitted, history, transform)
            fitted_rounds = fits.n_rounds
        found = self.of_priors(priors, history)
        noise = found.noise if variances is None else (variances,)
        if fits.floors:
            pairs = zip(noise, fits.floors, strict=True)
            noise = tuple(torch.maximum(*pair) for pair in pairs)
        return replace(
            found,
            noise=noise,
            floors=fits.floors,
            fitted_rounds=fitted_rounds,
            n_rounds=fits.n_rounds,
            burn_in=fits.burn_in,
            has_known_noise=fits.has_known_noise,
        )

    def _raised(self, history: Observations, floors: Sequence[Tensor]) -> Tensor:
        r"""Told noise variances, at least what repeats say."""
        assert history.yvar is not None
        rows = history.indices
        if self.assays is not None:
            return torch.maximum(history.yvar, torch.cat(list(floors))[rows])
        least = torch.stack([floor[rows] for floor in floors], dim=-1)
        return torch.maximum(history.yvar, least.view(history.yvar.shape))

    def refuted(self, history: Observations) -> list[Refuted | None]:
        r"""For each output what repeats say against the noise that was stated.

        Args:
            history: All observations.
        """
        found: list[Refuted | None] = []
        for j, own in enumerate(self.by_output(history)):
            X, noise, fixed = self.candidates.X, own.yvar, self.outputs[j].fixed
            if noise is None and fixed is not None:
                noise = fixed.new_noise(X[own.indices])
            # Means of several values, and estimates, are no statements.
            is_stated = self.burn_in is None and own.counts is None and len(own) > 0
            one = None
            if noise is not None and is_stated:
                one = by_repeats(points_of(X[own.indices]), own.y, noise)
            found.append(one)
        return found

    def floors(
        self, refuted: Sequence[Refuted | None], history: Observations
    ) -> tuple[Tensor, ...]:
        r"""For each output ``N`` noise variances at least; empty if none is refuted."""
        if not any(refuted):
            return ()
        floors = []
        for one, own in zip(refuted, self.by_output(history), strict=True):
            floor = torch.zeros(len(self.candidates), dtype=torch.float64)
            if one is not None and one.is_everywhere:
                floor += one.largest
            elif one is not None:
                floor[own.indices[one.places]] = one.variances[one.places]
            floors.append(floor)
        return tuple(floors)

    def _fitted(
        self, history: Observations, seed: int, n_rounds: int
    ) -> Sequence[GPPrior]:
        r"""The processes of all outputs, fitted to all observations."""
        if self.together is None:
            pairs = zip(self.outputs, self.by_output(history), strict=True)
            return [out.fit(data, seed, n_rounds) for out, data in pairs]
        each, yvar = self.by_output(history), None
        if history.yvar is not None:
            yvar = [_fittable(own) for own in each]
        X, y = [self.candidates.X[own.indices] for own in each], [o.y for o in each]
        own_seed = round_generator(seed, n_rounds).initial_seed()
        with own_random_numbers(own_seed, self.candidates.X.device):
            return self.together.fit(X, y, yvar, self.candidates.bounds)

    def _transformed(
        self,
        fitted: Sequence[GPPrior],
        history: Observations,
        transform: Callable[[int, GPPrior, Observations], GPPrior],
    ) -> list[GPPrior]:
        r"""The fitted processes, each transformed and after its own history."""
        triples = zip(self.outputs, fitted, self.by_output(history), strict=True)
        found = [
            prior
            if output.fixed is not None
            else output.given(transform(j, prior, data))
            for j, (output, prior, data) in enumerate(triples)
        ]
        if self.together is None:
            return found
        # A transformed process has another scale, which the common kernel must know.
        widest = [
            [float(p.variance(p.features(self.candidates.X)).max()) for p in priors]
            for priors in (found, fitted)
        ]
        factors = [(now / before) ** 0.5 for now, before in zip(*widest, strict=True)]
        return correlated.rescaled(fitted, factors)

    def observe(self, fits: Fits, new: Observations) -> Fits:
        r"""The posteriors after new values, with the same hyper-parameters."""
        return fits.observing(new)

    # --- what may be measured ---------------------------------------------------------

    def repeats_due(self, fits: Fits, request: Request) -> int:
        r"""How many rows of a batch are to be measured again, to tell the noise.

        Args:
            fits: The posteriors after the complete rounds.
            request: What is planned.
        """
        if fits.is_informed or fits.has_known_noise or self.n_repeats == 0:
            return 0
        before = torch.cat((fits.measured, request.pending))
        n_rows = before.unique().numel()
        done, repeats = len(before) - n_rows, self.n_repeats
        if self.n_first < self.wanted + repeats:
            # The budget ends the first design early; most of it is for new rows.
            repeats = min(repeats, self.n_first // 3)
        new = min(self.wanted, self.n_first - repeats) - n_rows
        return min(max(repeats - done, 0), max(request.size - max(new, 0), 0))

    def is_initial(self, fits: Fits) -> bool:
        r"""Whether the run is still in its first design or its burn-in."""
        if not fits.is_informed:
            return True
        if self.burn_in is not None or not self.is_fixed:
            return False
        return len(fits.measured) < self.n_first

    def repeats_left(
        self, fits: Fits, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""How often each row may be measured: 0 if it is known exactly in all outputs.

        Args:
            fits: The posteriors after the complete rounds.
            data: All measurements so far, also those of the open round.
            pending: Rows that are being measured.
            left: ``N`` counts that ``max_repeats`` allows.
        """
        if self.assays is not None:
            return self._pairs_left(fits, data, pending, left)
        m, N = len(self.outputs), len(left)
        columns: list[Tensor | None] = [None] * m
        if data.yvar is not None and fits.floors:
            data = replace(data, yvar=self._raised(data, fits.floors))
        if data.yvar is not None:
            columns = list(data.yvar.view(len(data), m).unbind(dim=-1))
        exact = torch.ones(N, dtype=torch.bool)
        measured_exactly = torch.ones(len(data), dtype=torch.bool)
        for (least, noise), yvar in zip(
            self._exactness(fits, data), columns, strict=True
        ):
            is_exact = torch.zeros(N, dtype=torch.bool)
            if noise is not None:
                is_exact = noise[:N] <= least
            exact &= is_exact
            measured_exactly &= (
                is_exact[data.indices] if yvar is None else yvar <= least
            )
        before = data.indices[:0]
        if fits.is_informed and len(data):  # else there is no answer to end with
            before = self.known_before
        is_any_exact = bool(exact.any()) or bool(measured_exactly.any())
        if not is_any_exact and len(before) == 0:
            return left
        told = data.indices[measured_exactly]
        known = torch.cat((told, pending[exact[pending]], before))
        return repeats_left(left, exact, known, self.row_points)

    def _pairs_left(
        self, fits: Fits, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""``repeats_left`` where a measurement gives one output."""
        pairs, parts = self._exactness(fits, data), []
        for _, noise in pairs:
            parts.append(torch.full((len(self.candidates),), torch.inf))
            if noise is not None:
                parts[-1] = noise[: len(self.candidates)]
        least = torch.tensor([least for least, _ in pairs], dtype=torch.float64)
        least = least.repeat_interleave(len(self.candidates))
        exact = torch.cat(parts) <= least
        known = exact[data.indices]
        if data.yvar is not None and fits.floors:
            data = replace(data, yvar=self._raised(data, fits.floors))
        if data.yvar is not None:
            known = data.yvar <= least[data.indices]
        if not bool(exact.any()) and not bool(known.any()):
            return left
        rows = torch.cat((data.indices[known], pending[exact[pending]]))
        return repeats_left(left, exact, rows, self.row_points)

    def _exactness(
        self, fits: Fits, data: Observations
    ) -> list[tuple[float, Tensor | None]]:
        r"""For each output what counts as exact, and the noise of new measurements.

        Returns:
            Pairs of the noise variance up to which a measurement is exact, and the
            ``N`` noise variances of new ones if known. Before there is a model, the
            spread of the values takes the place of the prior's variance.
        """
        if fits.is_informed:
            both = zip(fits.posteriors, fits.noise, strict=True)
            return [(float(p.least_noise), noise) for p, noise in both]
        return [
            (least_of_values(own.y), output.known_noise)
            for own, output in zip(self.by_output(data), self.outputs, strict=True)
        ]

    @cached_property
    def known_before(self) -> Tensor:
        r"""The rows at points that history has measured exactly, all outputs of them.

        Exactly means as precisely as values that are told count as exact.
        """
        before, n = self.outputs[0].history, len(self.candidates)
        if before is None:
            return torch.empty(0, dtype=torch.long)
        is_exact = torch.ones(len(before), dtype=torch.bool)
        for output in self.outputs:
            is_exact &= output.exact_in_history
        points = points_of(torch.cat((self.candidates.X, before.X[is_exact])))
        return torch.isin(points[:n], points[n:]).nonzero().view(-1)

    @cached_property
    def row_points(self) -> Tensor:
        r"""A number for each of ``N`` rows, the same for rows that are one point."""
        return points_of(self.pool.X) if self.points is None else self.points


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    r"""The model of a composed strategy: a Gaussian process for each output.

    Args:
        model: As in ``GPStrategy``, or one per output, such as a ``ModelListGP``; these
            are independent. A fitted ``MultiTaskGP`` is all outputs together, the task
            of the smallest number being output 0.
        noise_std: The known noise standard deviation, or one per output, units of
            ``y``; else see ``GPStrategy``, as for the next ones.
        refit: Fit again every so many rounds; see ``GPStrategy``.
        n_initial: Measurements placed by maximal variance before the rule takes over.
        level_z: Prior standard deviations within which a learnt model holds the level.
        needs_both_sides: Whether a learnt model decides nothing while all values lie on
            one side of the level.
        norm_bound: A bound of the norm of ``f`` less the prior mean.
        memory_budget: Bytes for arrays over the pool.
        history: Measurements at any points, that were made before the run. The
            process is then what it is after them.
        correlated: Whether outputs are learnt together: a value of one tells of the
            others. With ``model=None`` by ``fit_multi_task_gp``, else by the factory,
            whose ``train_X`` has the number of the output as last column.
    """

    model: fitted.ModelArgument | Sequence[fitted.ModelArgument] | ModelList = None
    noise_std: float | Sequence[float] | None = None
    refit: Refit = 1
    n_initial: int | None = None
    level_z: float | None = LEVEL_Z
    needs_both_sides: bool = True
    norm_bound: float | None = None
    memory_budget: int = MEMORY_BUDGET
    history: History | None = None
    correlated: bool = False

    def on(
        self,
        pool: Pool,
        n_outputs: int = 1,
        max_observations: int | None = None,
        max_repeats: int | None = None,
        assays: Assays | None = None,
        outputs: Sequence[str] = (),
    ) -> GaussianProcesses:
        r"""The processes of this model on the rows of a pool.

        Args:
            pool: The candidates.
            n_outputs: How many outputs there are.
            max_observations: The budget.
            max_repeats: How often one row may be measured.
            assays: How rows are pairs of a candidate and an output, where a measurement
                gives one output; ``None``: it gives all.
            outputs: The names of the outputs, where the goal has them.

        Raises:
            ValueError: If there is not one model, or one noise, for each output, or a
                number is out of range.
            UnsupportedError: If outputs are correlated and the model is no model of
                them, or there is a history.
        """
        given, together = self.model, self._together(n_outputs)
        if isinstance(given, multitask.MultiTaskGP):
            given = correlated.priors_of(given)
        elif isinstance(given, ModelList):
            given = list(given.models)
        models = one_each(given, "model", n_outputs)
        stds = one_each(self.noise_std, "noise_std", n_outputs)
        pasts = history_of_each(self.history, n_outputs, pool, outputs)
        if assays is not None and self.history is not None:
            raise UnsupportedError(
                "Expected no `history` where a measurement gives one output. Leave it "
                "out, or tell it as measurements of rows."
            )
        pools = [pool] * n_outputs
        if assays is not None:
            pools = [assays.candidates_of(j) for j in range(n_outputs)]
        parts = zip(pools, models, stds, pasts, strict=True)
        return GaussianProcesses(
            pool,
            tuple(OutputModel(*part) for part in parts),
            self.refit,
            self.n_initial,
            max_observations,
            max_repeats,
            self.memory_budget,
            together=together,
            assays=assays,
        )

    def _together(self, n_outputs: int) -> CorrelatedModel | None:
        r"""What learns all outputs together; ``None`` where they are independent."""
        truth_value(self.correlated, "correlated")
        is_given = isinstance(self.model, multitask.MultiTaskGP)
        if not (is_given or self.correlated):
            return None
        if n_outputs == 1 and not is_given:
            raise ValueError(
                "Expected a `goal` of several outputs with `correlated=True`, but it "
                "has one. Leave `correlated` out."
            )
        if self.history is not None:
            raise UnsupportedError(
                "Expected no `history` where outputs are correlated. Leave it out, or "
                "give one single-output GP for each output."
            )
        if is_given:
            return CorrelatedModel()
        if self.model is None:
            return CorrelatedModel()
        if isinstance(self.model, (Module, Sequence)) or not callable(self.model):
            raise UnsupportedError(
                "Expected `model` to be None, a fitted MultiTaskGP or a factory of one "
                f"with `correlated=True`, but got {type(self.model).__name__}."
            )
        return CorrelatedModel(self.model)


def spread_over(rows: Tensor, left: Tensor, size: int) -> Tensor:
    r"""``size`` of the rows that were measured once, evenly spaced among them.

    Args:
        rows: Rows that were measured, replicates included.
        left: ``N`` counts of how often each row may still be measured.
        size: How many; fewer are returned where there are fewer.
    """
    each, counts = rows.unique(return_counts=True)
    usable = each[(counts == 1) & (left[each] > 0)]
    last, size = len(usable) - 1, min(size, len(usable))
    if last > size:  # the first and the last row, at the border, are left out
        places = torch.linspace(0, last, size + 2)[1:-1]
    else:  # closer than one row apart, two places would be rounded to one row
        places = torch.linspace(0, last, size)
    return usable[places.round().long()]


def one_each(value: Any, name: str, n_outputs: int) -> tuple[Any, ...]:
    r"""One value per output, from a sequence of values or one value for all.

    Raises:
        ValueError: If it is a sequence of another length.
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (value,) * n_outputs
    if len(value) != n_outputs:
        raise ValueError(
            f"Expected `{name}` to be one, or one per output ({n_outputs}), but got "
            f"{len(value)}."
        )
    return tuple(value)


def history_of_each(
    history: History | None, n_outputs: int, pool: Pool, outputs: Sequence[str] = ()
) -> list[History | None]:
    r"""The history of each output, with its points as the pool's model has them.

    Args:
        history: All measurements.
        n_outputs: How many outputs there are.
        pool: The pool, whose names the points go by.
        outputs: The names of the outputs, where the goal has them.

    Raises:
        ValueError: If a column or an output is missing.
        BotorchTensorDimensionError: If it has other outputs.
    """
    if history is None:
        return [None] * n_outputs
    of_type(history, History, "history", "a History", "Write `History(X, y)`.")
    history = history.on(pool, outputs)
    found = 1 if history.y.ndim == 1 else history.y.shape[-1]
    if found != n_outputs:
        raise BotorchTensorDimensionError(
            f"Expected `history` with one value per output ({n_outputs}), but its `y` "
            f"has the shape {tuple(history.y.shape)}."
        )
    return [history.output(c) for c in range(n_outputs)]


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


def repeats_left(left: Tensor, exact: Tensor, known: Tensor, points: Tensor) -> Tensor:
    r"""How often rows may still be measured if nothing known is measured again.

    Args:
        left: ``N`` counts that ``max_repeats`` allows.
        exact: ``N`` bools: whether a measurement of the row is exact.
        known: Rows that were measured exactly or are being so.
        points: A number for each row, the same for rows that are one point.
    """
    # Of several exact copies of a point one is enough: the first that may be measured.
    may_be = exact & (left > 0)
    copies = torch.where(may_be, torch.arange(len(left)), len(left))
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
    rows, position = history.indices.unique(return_inverse=True)
    counts = torch.ones_like(history.y) if history.counts is None else history.counts
    weight = counts.double()
    zero = torch.zeros(rows.numel(), dtype=torch.float64)
    n = zero.index_add(0, position, weight)
    total = zero.index_add(0, position, weight * history.y)
    variance = zero.index_add(0, position, weight.square() * noise_var)
    return total / n, variance.sqrt() / n


@dataclass(frozen=True)
class OneSided:
    r"""That all measured rows lie on one side of the level, noise considered.

    Args:
        side: ``"above"`` or ``"below"``.
        n_other: How many rows have a mean on the other side, each within its noise.
        n_rows: How many rows were measured.
    """

    side: str
    n_other: int
    n_rows: int

    def __str__(self) -> str:
        if self.n_other == 0:
            return f"Every value so far lies {self.side} the level"
        other = "below" if self.side == "above" else "above"
        return (
            f"{self.n_other} of {self.n_rows} measured rows lie {other} the level, "
            "none of them by more than the noise"
        )


def side_of_all(
    each: Sequence[Observations],
    noise_var: Sequence[Tensor],
    goal: Goal,
    before: Sequence[tuple[Tensor, Tensor]] = (),
) -> OneSided | None:
    r"""The side of the level on which all values lie, noise considered.

    Args:
        each: For each output all its measurements.
        noise_var: Their noise variances.
        goal: What is to be decided; one without a level has no sides.
        before: For each output the values that were measured before the run, at points
            that need not be rows, and their noise variances.

    Returns:
        The side; ``None`` where there are values on both.
    """
    rows, means, errors = torch.cat([own.indices for own in each]).unique(), [], []
    for own, noise in zip(each, noise_var, strict=True):
        # Of a row where this output was not measured its values say nothing.
        mean = torch.zeros(len(rows), dtype=torch.float64)
        error = torch.full_like(mean, torch.inf)
        at = torch.searchsorted(rows, own.indices.unique())
        mean[at], error[at] = row_means(replace(own, yvar=None), noise)
        means.append(mean)
        errors.append(CLEAR * error)
    if before and goal.is_alike_in_all_rows:
        rows = torch.cat((rows, torch.zeros_like(before[0][0], dtype=rows.dtype)))
        pairs = list(zip(means, errors, before, strict=True))
        means = [torch.cat((mean, y)) for mean, _, (y, _) in pairs]
        errors = [torch.cat((e, CLEAR * v.sqrt())) for _, e, (_, v) in pairs]
    side = goal.found_sides(rows, means, errors)
    as_read = goal.found_sides(rows, means, [torch.zeros_like(e) for e in errors])
    if side is None or as_read is None:
        return None
    for name, other in (("below", ABOVE), ("above", BELOW)):
        if not bool((side == other).any()):
            return OneSided(name, int((as_read == other).sum()), len(side))
    return None
