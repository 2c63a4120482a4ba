r"""All outputs together: initial design, repeats, and the times of fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from botorch_lse._lazy import LazyModule
from botorch_lse._validation import complaint, in_interval, whole_number
from botorch_lse.confidence.calibration import left_out
from botorch_lse.data.arguments import points_of
from botorch_lse.data.observations import Observations, derived
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest, round_generator
from botorch_lse.models import correlated
from botorch_lse.models.correlated import CorrelatedModel
from botorch_lse.models.expectation import residuals_ahead
from botorch_lse.models.gaussian_process import (
    MEMORY_BUDGET,
    GPPrior,
    PoolPosterior,
    checked_budget,
)
from botorch_lse.models.kernels import LearntKernel
from botorch_lse.models.sources import SourceModel, unfitted_sources
from botorch_lse.surrogate.assumptions import Refuted, by_repeats
from botorch_lse.surrogate.layout import MOST_FIRST_INPUTS, SHARE_FIRST, Layout
from botorch_lse.surrogate.remarks import LEAST_VALUES, NORMAL, are_skewed, gross

if TYPE_CHECKING:
    from botorch_lse.models import fitted, latent
    from botorch_lse.models.outcomes import Outcome
    from botorch_lse.surrogate.burn_in import BurnIn
else:  # they bring SciPy
    fitted = LazyModule("botorch_lse.models.fitted")
    latent = LazyModule("botorch_lse.models.latent")
from botorch_lse.surrogate.learning import (
    ADDITIVE,
    GROWTH,
    REFITTED_EACH_ROUND,
    UNFITTED_NOISE,
    OutputModel,
    Refit,
    _fittable,
    least_of_values,
    own_random_numbers,
)
from botorch_lse.surrogate.posterior import Posterior

FIRST_PER_INPUT, LEAST_FIRST = 2, 10
"""The number of initial rows for each input, beside two, and the least number of them.
The rule then chooses with a model of the values so far, which decides nothing yet. That
leaves three quarters of the wrong rows that ten blind rows for each input leave."""
FIRST_OF_RESULTS = 4
"""The number of initial rows for each input where results are no values.
An answer of yes or no says so little that rules chose by models that were wrong: of
runs that began with ten rows, some knew less than rows spread evenly had told. Where it
is known along which inputs they rise, ``LEAST_FIRST`` suffice: a line is a better guide
than even rows, most of which have an intensity that makes the answer certain."""
DECIDING_PER_INPUT = 10
"""The number of measurements per input before a learnt model decides anything.
With ``2 (d + 1)`` a default model, on functions with hidden regions, said too early
that all is decided in 17 of 40 runs; with ten per input in 4."""
MOST_SLIPS = 0.1
"""The largest share of all values that may be left out as slips."""
CHECK_NOISE = 0.05
"""The noise variance by which values are checked, as a share of the values' own.
It keeps near neighbours from being asked to agree."""
CONTRADICTED = 5.0
"""The robust deviations from the prediction by all others beyond which values are odd.
Of functions without slips a few values in a hundred are, at edges and busy parts."""
REPEATS = 4
"""The number of initial rows that are measured again where the noise is learnt.
Values of different rows alone do not tell noise from a function that varies fast; a fit
then took all of a region for noise, and said that nothing is above the level."""


@dataclass(frozen=True, eq=False)
class GaussianProcesses:
    r"""The belief of a strategy about all outputs, and the schedule of its fits.

    Outputs are independent, or correlated and learnt together. Every measurement has
    all of them.

    Args:
        pool: The candidates.
        outputs: The process of each output, with its noise.
        refit: See ``GPStrategy``, as are the next ones.
        n_initial: Measurements of the initial design.
        max_observations: The budget.
        max_repeats: The largest number of measurements of one row.
        memory_budget: Bytes for arrays over the pool.
        X: The points at which the posteriors are computed, the pool first; default the
            pool.
        points: A number for each of the ``N`` rows, the same for rows that are one
            point; default the same for equal rows.
        unfitted: The process by which first rows are chosen; default BoTorch's default
            model before any data.
        burn_in: The rounds in which the noise is learnt; ``None`` where it is known.
        given_layout: What a row of the pool measures; ``None``: all outputs.
        are_classes: Whether a measurement finds one of several classes, each of which
            has an output; some may never be found.
        has_scales: Whether a process has another scale than what is measured.
        together: What learns correlated outputs, or has learnt them, if the outputs'
            models are given; ``None`` where outputs are independent.

    Raises:
        ValueError: If a number is out of range, or model and noise do not fit.
        UnsupportedError: If a fixed model is not exact, or an ensemble.
    """

    pool: Pool
    outputs: tuple[OutputModel, ...]
    refit: Refit = None
    n_initial: int | None = None
    max_observations: int | None = None
    max_repeats: int | None = None
    memory_budget: int = MEMORY_BUDGET
    X: Tensor | None = None
    points: Tensor | None = None
    unfitted: GPPrior | None = None
    burn_in: BurnIn | None = None
    together: CorrelatedModel | None = None
    given_layout: Layout | None = None
    are_classes: bool = False
    has_scales: bool = False

    def __post_init__(self) -> None:
        if self.n_initial is not None:
            whole_number(self.n_initial, "n_initial", 0)
        if isinstance(self.refit, float):
            remedy = "Write a whole number of rounds, or how many times as many, 1.1."
            in_interval(self.refit, "refit", 1.0, math.inf, remedy=remedy)
        elif self.refit is not None and not callable(self.refit):
            whole_number(self.refit, "refit", 1)
        checked_budget(self.memory_budget, len(self.pool), "one number per row")

    @cached_property
    def is_fixed(self) -> bool:
        r"""Whether the hyper-parameters of all outputs are fixed."""
        return all(output.fixed is not None for output in self.outputs)

    @cached_property
    def has_outcomes(self) -> bool:
        r"""Whether an output is a latent function, of which results tell otherwise."""
        return any(output.outcome is not None for output in self.outputs)

    @cached_property
    def wanted(self) -> int:
        r"""The wanted size of the initial design, whatever the budget."""
        if self.n_initial is not None:
            return self.n_initial if self.is_fixed else max(self.n_initial, 1)
        if self.is_fixed:
            return 0
        if self.layout.has_sources:
            return sum(self.layout.first_of_sources)
        each = FIRST_PER_INPUT * self._n_inputs + 2
        if self.has_outcomes:
            rises = all(output.rising or output.falling for output in self.outputs)
            each = 0 if rises else FIRST_OF_RESULTS * self._n_inputs
        each = max(each, LEAST_FIRST)
        share = int(SHARE_FIRST * len(self.pool) / self.layout.n_each)
        each = min(each, max(share, REPEATS)) * self.layout.n_each
        return min(self._not_told(each), self.wanted_to_decide)

    @cached_property
    def wanted_to_decide(self) -> int:
        r"""The wanted number of rows before anything is decided, whatever the budget.

        The initial design's, if its size was given.
        """
        if self.is_fixed or self.n_initial is not None:
            return self.wanted
        levels = [n for _, n in self.candidates.words.values()]
        first = sum(self.layout.first_of_sources)
        each = max(DECIDING_PER_INPUT * self._n_inputs, first, *levels)
        return self._not_told(each * self.layout.n_each)

    @property
    def _n_inputs(self) -> int:
        # A word is one input, whatever its levels, of which each is to be seen.
        return min(self.layout.items.n_inputs, MOST_FIRST_INPUTS)

    def _not_told(self, wanted: int) -> int:
        r"""The number of wanted rows that history has not told.

        One at least, as a model is learnt when something is told; and however much
        history tells, as many as are to be measured again.
        """
        each = min(wanted, len(self.pool))
        least = min(max(1, self.n_repeats), each)
        return max(least, each - self._told_before[0])

    @cached_property
    def candidates(self) -> Pool:
        r"""The rows that can be measured, perhaps one output at a time."""
        return self.layout.candidates

    @cached_property
    def layout(self) -> Layout:
        r"""The layout: which outputs a measurement of a row reveals."""
        return self.given_layout or Layout(self.pool, len(self.outputs))

    @cached_property
    def _told_before(self) -> tuple[int, int]:
        r"""The numbers of history's points that inform about the pool, and of repeats.

        A repeated value tells about the noise wherever it is.
        """
        first = self.outputs[0]  # all outputs were measured at the same points
        if first.history is None:
            return 0, 0
        X = first.history.X
        return len(X[first.within_reach].unique(dim=0)), len(X) - len(X.unique(dim=0))

    def n_replicates(self, own: Observations) -> int:
        r"""The number of values that repeat a row or a point, history's included.

        Args:
            own: The output's observations.
        """
        return len(own) - len(own.indices.unique()) + self._told_before[1]

    @cached_property
    def n_repeats(self) -> int:
        r"""The number of measurements in the initial design that estimate the noise.

        It is 0 where the noise is known, a row must not be measured twice, or the
        design is the user's. Repeats in the history are not measured again.
        """
        is_known = all(output.expects_noise for output in self.outputs)
        is_given = self.is_fixed or self.n_initial is not None
        if is_known or is_given or self.max_repeats == 1:
            return 0
        return max(0, REPEATS * self.layout.n_each - self._told_before[1])

    @cached_property
    def n_first(self) -> int:
        r"""The size of the initial design, within the budget.

        ``wanted`` go to the rows of largest variance, ``n_repeats`` to some of these
        again. 0 with a burn-in, which takes its place.
        """
        if self.burn_in is not None:
            return 0
        return self._affordable(self.wanted + self.n_repeats)

    def n_deciding(self, has_known_noise: bool = False) -> int:
        r"""The number of measurements before anything is decided, within the budget.

        Args:
            has_known_noise: Whether the noise is told, so that no repeats are needed.
        """
        if self.burn_in is not None:
            return 0
        n = max(self.wanted, self.wanted_to_decide)
        return self._affordable(n if has_known_noise else n + self.n_repeats)

    def _affordable(self, n: int) -> int:
        if self.max_observations is not None:
            n = min(n, self.max_observations)
        if self.max_repeats is not None:
            n = min(n, self.max_repeats * len(self.pool))
        return n

    # --- before data ------------------------------------------------------------------

    def start(self) -> Posterior:
        r"""The posteriors before any measurement: given, or those for initial rows."""
        if self.burn_in is not None:
            fits = self.unfitted_start()
            if self.is_fixed:
                fits = replace(fits, posteriors=self._priors(self._given))
            # Not at the top: it brings designs and their solver.
            from botorch_lse.surrogate.burn_in import BurnInData

            return replace(fits, burn_in=BurnInData.empty(len(self.pool)))
        return self.of_priors(self._given) if self.is_fixed else self.unfitted_start()

    def unfitted_start(self) -> Posterior:
        r"""The unfitted processes that choose initial rows, without data."""
        noise = torch.full((len(self.candidates),), UNFITTED_NOISE, dtype=torch.float64)
        m = len(self.outputs)
        priors = self._priors([self._unfitted_prior]) * m
        return Posterior(self.layout, priors, (noise,) * m)

    @cached_property  # a check of values asks for it in each round
    def _unfitted_prior(self) -> GPPrior:
        r"""The process before any fit, of one output as of all."""
        prior, model = self.unfitted, self.outputs[0].model
        if prior is None and isinstance(model, LearntKernel):
            prior = model.unfitted(self.candidates.X)
        if prior is None and self.layout.has_sources:
            old = self.outputs[0].history
            prior = unfitted_sources(
                self.pool, self.pool.X[:0] if old is None else old.X
            )
        if prior is None:
            bounds, words = self.candidates.bounds, dict(self.candidates.words.values())
            # It spreads first rows as finely as single answers are expected to vary.
            parts = bounds.shape[-1], words, self.outputs[0].family == ADDITIVE
            kernel = latent.latent_kernel(*parts) if self.has_outcomes else None
            prior = fitted.unfitted_prior(bounds, words, kernel)
        return self.outputs[0].unfitted(prior)

    def of_priors(
        self, priors: Sequence[GPPrior], history: Observations | None = None
    ) -> Posterior:
        r"""The posteriors of given or fitted processes before any observation.

        Args:
            priors: One per output.
            history: The data, whose variances say what noise to expect of new ones.
        """
        variances: list[Tensor | None] = [None] * len(priors)
        if history is not None:
            variances = [data.yvar for data in self.layout.by_output(history)]
        if self.together is None:
            posteriors = self._priors(priors)
        else:
            posteriors = correlated.start(priors, self.rows, self.memory_budget)
        triples = zip(self.outputs, priors, variances, strict=True)
        noise = tuple(output.new_noise(prior, yvar) for output, prior, yvar in triples)
        return Posterior(self.layout, posteriors, noise, is_informed=True)

    @cached_property
    def _given(self) -> list[GPPrior]:
        return [output.fixed for output in self.outputs if output.fixed is not None]

    def _priors(self, priors: Sequence[GPPrior]) -> tuple[PoolPosterior, ...]:
        given = self.rows, self.memory_budget, len(self.outputs)
        return tuple(PoolPosterior.start(p, *given) for p in priors)

    @cached_property
    def rows(self) -> Tensor:
        r"""The points at which the posteriors are computed."""
        return self.candidates.X if self.X is None else self.X

    # --- data -------------------------------------------------------------------------

    def complete(self, observations: Observations) -> Observations:
        r"""The observations with known noise variances, where none were given."""
        known = [output.known_noise for output in self.outputs]
        if self.has_outcomes or self.has_scales:
            self._check_results(observations)
        if observations.yvar is not None or any(v is None for v in known):
            return observations
        columns = [v for v in known if v is not None]
        yvar = self.layout.at_rows(columns, observations.indices)
        yvar = yvar.view(observations.y.shape)
        if self.has_scales:  # of logarithms a share of the value is known
            units = [
                own.y.square() if output.scale else torch.ones_like(own.y)
                for output, own in self._each(observations)
            ]
            yvar = yvar * self.layout.joined(observations, units)
        return derived(observations, yvar=yvar)

    def _check_results(self, observations: Observations) -> None:
        r"""Complain about results that cannot be, or that have a noise of their own.

        Raises:
            ValueError: If there are such results.
        """
        if observations.yvar is not None and self.has_outcomes:
            wanted = "to be left out where a result is an outcome such as yes or no"
            remedy = "Tell repeated trials by `trials=`, and grades one by one."
            raise ValueError(complaint("yvar", wanted, "it was given", remedy))
        for output, own in self._each(observations):
            if (quantity := output.outcome or output.scale) is not None:
                quantity.check(own.y, own.replicates)
        if self.are_classes and self.has_outcomes:
            n_found = observations.y.sum(dim=-1)
            worst = int(n_found.argmax()) if len(n_found) else 0
            if len(n_found) and float(n_found[worst]) > 1 + 1e-9:
                wanted = "to be of one class in each result"
                came = f"that of row {int(observations.indices[worst])} is of several"
                remedy = "Tell `goal.results(labels)`, one label for each measurement."
                raise ValueError(complaint("y", wanted, f"got {came}", remedy))

    def on_scale(self, observations: Observations) -> Observations:
        r"""The measurements as the processes have them: logarithms, where these are.

        Args:
            observations: As they were told, perhaps with noise variances.
        """
        if not self.has_scales:
            return observations
        values, noise = [], []
        for output, own in self._each(observations):
            pair = own.y, own.yvar
            if output.scale is not None:
                pair = output.scale.on_scale(*pair)
            values.append(pair[0])
            noise.append(pair[1])
        y, yvar = self.layout.joined(observations, values), None
        if observations.yvar is not None:
            known = [part for part in noise if part is not None]
            yvar = self.layout.joined(observations, known)
        return derived(observations, y=y, yvar=yvar)

    def _each(
        self, observations: Observations
    ) -> Iterator[tuple[OutputModel, Observations]]:
        r"""Each output with its own measurements."""
        return zip(self.outputs, self.layout.by_output(observations), strict=True)

    def count_round(self, fits: Posterior, new: Observations) -> Posterior:
        r"""The fits after one more complete round, also of a burn-in that goes on.

        The posteriors take its values by ``observe``.
        """
        is_known = new.yvar is not None
        fits = replace(fits, n_rounds=fits.n_rounds + 1, has_known_noise=is_known)
        if self.burn_in is None or fits.burn_in is None or not fits.learns_noise:
            return fits
        return replace(fits, burn_in=self.burn_in.after(fits.burn_in, new))

    def are_alike(self, history: Observations) -> bool:
        r"""Whether all values of an output are the same, so that they have no scale.

        Of classes and other outcomes those of all outputs: numbers beside an answer
        that is always yes have a model.
        """
        pairs = list(zip(self.outputs, self.layout.by_output(history), strict=True))
        alike = [len(own) > 0 and output.are_alike(own) for output, own in pairs]
        if self.are_classes or all(alike):
            return all(alike)
        numbers = zip(self.outputs, alike, strict=True)
        return any(same for output, same in numbers if output.outcome is None)

    def odd(self, history: Observations) -> Tensor:
        r"""The places in the history of values that look odd without any fit.

        They may be slips, and would bend a fit towards themselves: initial values far
        from all others; later also those that their neighbours contradict. None where
        measurements are exact, as a program's are.

        Args:
            history: All observations, labelled by round.
        """
        assert history.round is not None  # labelled by `tell`
        n, none = self.n_deciding(), history.indices[:0]
        if n == 0 or not self._has_doubts(history):
            return none
        last = history.round[min(n, len(history)) - 1]
        is_late, found = self.may_slip(history), [none]
        for j, own in enumerate(self.layout.by_output(history)):
            if self.outputs[j].outcome is None:
                places = self.layout.places(history.indices, j)
                far = places[gross(own.y)]
                found.append(far[history.round[far] <= last])
                if is_late:
                    found.append(places[self._contradicted(own)])
        return torch.cat(found).unique()

    def _contradicted(self, own: Observations) -> Tensor:
        r"""The places of the values of an output that their neighbours contradict most.

        Each is predicted from all others by the unfitted process, and compared with the
        median error. A fit would take one wrong value for a part of the function.
        """
        spread = own.y.std() if len(own) >= LEAST_VALUES else own.y.new_zeros(())
        if not bool(spread > 0):
            return own.indices[:0]
        prior = self._unfitted_prior
        F = prior.features(self.rows[own.indices])
        with torch.no_grad():
            K = prior.covariance(F, F)
        K = K / K.diagonal().mean() + CHECK_NOISE * torch.eye(len(K)).to(K)
        L = torch.linalg.cholesky(K)
        z = ((own.y - own.y.mean()) / spread).unsqueeze(-1)
        whitened = torch.linalg.solve_triangular(L, z, upper=False).squeeze(-1)
        error = left_out(L, whitened)[0].abs()
        worst = error.topk(int(MOST_SLIPS * len(error))).indices
        return worst[error[worst] > CONTRADICTED * NORMAL * error.median()]

    def may_slip(self, history: Observations) -> bool:
        r"""Whether values may be taken for slips because a fit does not explain them.

        Not before there are more by half than a decision asks, since a model of few
        values is surprised by every edge; nor of outcomes such as yes and no, each of
        which is expected at times; nor of values over decades, of which the largest are
        never explained; nor by fits of a user's own function.
        """
        is_late = len(history) > 1.5 * self.n_deciding(has_known_noise=True)
        is_asked = self._is_ours and not self.has_outcomes and is_late
        if not is_asked or not self._has_doubts(history):
            return False
        return not any(are_skewed(own.y) for own in self.layout.by_output(history))

    def _has_doubts(self, history: Observations) -> bool:
        r"""Whether values may be wrong: not those of a program, which are exact."""
        is_exact = history.yvar is not None and not bool((history.yvar > 0).any())
        return not (self.is_fixed or self.burn_in is not None or is_exact)

    def unseen(self, measured: Tensor, lost: Tensor) -> Tensor:
        r"""Whether rows can be measured at points not measured yet (``N`` bools).

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
        self, fits: Posterior, history: Observations, lost: Tensor, is_complete: bool
    ) -> bool:
        r"""Whether there is a model, or enough data to fit one.

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

    def allows_early_fit(self, history: Observations) -> bool:
        r"""Whether models can be fitted before the initial design is complete.

        A user's own function of the data is not called with fewer values than it was
        given them for.
        """
        if not self._is_ours or self.is_fixed or self.burn_in is not None:
            return False
        return self.allows_fit(history, len(self.pool), is_complete=False)

    @property
    def _is_ours(self) -> bool:
        r"""Whether no model is fitted by a user's own function."""
        ours = LearntKernel | SourceModel | None
        return all(isinstance(output.model, ours) for output in self.outputs)

    def allows_fit(self, history: Observations, least: int, is_complete: bool) -> bool:
        r"""Whether models can be fitted to the data; see ``OutputModel``.

        Of classes those that were found must allow it, which are two at least, and of
        several outputs those whose results differ.
        """
        allowed = [
            out.allows_fit(own, least, is_complete)
            for out, own in zip(
                self.outputs, self.layout.by_output(history), strict=True
            )
            if not ((self.are_classes or out.outcome) and out.are_alike(own))
        ]
        return len(allowed) > 0 and all(allowed)

    def with_locations(self, fits: Posterior, rows: Tensor) -> Posterior:
        r"""The unfitted processes, knowing which rows were measured but no values.

        The locations suffice to choose further rows far from them.
        """
        if fits.learns_noise:
            return fits
        located = self.layout.located(fits.posteriors, fits.noise, rows)
        return replace(fits, posteriors=located)

    def restarts(self, fits: Posterior, n_values: int) -> bool:
        r"""Whether the posteriors are computed from a prior again after this round.

        A restart comes after the first data, and after each fit.

        Args:
            fits: The posteriors, this round counted.
            n_values: How many measurements there are, with those of this round.
        """
        if not fits.is_informed or self.has_outcomes:
            return True  # each result changes what all others stand for
        return self._is_fit_due(fits, n_values)

    def _is_fit_due(self, fits: Posterior, n_values: int) -> bool:
        r"""Whether hyper-parameters are fitted after this round; see ``restarts``."""
        if self.is_fixed:
            return False
        if not fits.is_informed:
            return True
        if self.refit is None:
            before = self.outputs[0].history
            n_before = 0 if before is None else len(before)
            n, fitted = n_values + n_before, fits.fitted_values + n_before
            return n <= REFITTED_EACH_ROUND or n >= GROWTH * fitted
        if callable(self.refit):
            return bool(self.refit(fits.n_rounds))
        if isinstance(self.refit, float):
            return fits.n_rounds >= self.refit * fits.fitted_rounds
        return fits.n_rounds - fits.fitted_rounds >= self.refit

    def restarted(
        self,
        fits: Posterior,
        history: Observations,
        seed: int,
        transform: Callable[[int, GPPrior, Observations], GPPrior],
    ) -> Posterior:
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
            history = derived(history, yvar=variances[history.indices])
        priors = self._given
        fitted_rounds, fitted_values = fits.fitted_rounds, fits.fitted_values
        if fits.floors and history.yvar is not None:
            history = derived(history, yvar=self._raised(history, fits.floors))
        if self.has_outcomes and not self._is_fit_due(fits, len(history)):
            priors = [posterior.prior for posterior in fits.posteriors]
        elif not self.is_fixed:
            priors = self._fitted(history, seed, fits.n_rounds, transform)
            fitted_rounds, fitted_values = fits.n_rounds, len(history)
        if self.has_outcomes:
            priors = self._beside(priors, history)
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
            fitted_values=fitted_values,
            n_rounds=fits.n_rounds,
            more_looks=fits.more_looks,
            burn_in=fits.burn_in,
            has_known_noise=fits.has_known_noise,
        )

    def _beside(
        self, priors: Sequence[GPPrior], history: Observations
    ) -> list[GPPrior]:
        r"""The processes with old results of outcomes as they count beside others.

        Args:
            priors: One per output.
            history: All observations of the run.
        """
        triples = zip(self.outputs, priors, self.layout.by_output(history), strict=True)
        return [
            prior if output.outcome is None else output.given(prior, own)
            for output, prior, own in triples
        ]

    def before(self, fits: Posterior, history: Observations) -> Posterior:
        r"""The posteriors of the same processes before other observations.

        Args:
            fits: The posteriors after all observations of the run.
            history: Those that are to be told instead.
        """
        if self.has_outcomes and self.outputs[0].history is not None:
            priors = [posterior.prior for posterior in fits.posteriors]
            found = self._priors(self._beside(priors, history))
        else:
            found = tuple(posterior.before_data() for posterior in fits.posteriors)
        return replace(fits, posteriors=found)

    def _raised(self, history: Observations, floors: Sequence[Tensor]) -> Tensor:
        r"""The told noise variances, raised to what repeats say."""
        assert history.yvar is not None
        least = self.layout.at_rows(floors, history.indices)
        return torch.maximum(history.yvar, least.view(history.yvar.shape))

    def refuted(self, history: Observations) -> list[Refuted | None]:
        r"""The evidence of repeats against the stated noise, for each output."""
        found: list[Refuted | None] = []
        for j, own in enumerate(self.layout.by_output(history)):
            X, noise, fixed = self.candidates.X, own.yvar, self.outputs[j].fixed
            if noise is None and fixed is not None:
                noise = fixed.new_noise(X[own.indices])
            # Means of several values, and estimates, are no statements.
            is_stated = self.burn_in is None and own.counts is None and len(own) > 0
            is_stated &= self.outputs[j].outcome is None
            one = None
            if noise is not None and is_stated:
                one = by_repeats(points_of(X[own.indices]), own.y, noise)
            found.append(one)
        return found

    def floors(
        self, refuted: Sequence[Refuted | None], history: Observations
    ) -> tuple[Tensor, ...]:
        r"""Least noise variances by output (``N`` each); empty if none is refuted."""
        if not any(refuted):
            return ()
        floors = []
        for one, own in zip(refuted, self.layout.by_output(history), strict=True):
            floor = torch.zeros(len(self.candidates), dtype=torch.float64)
            if one is not None and one.is_everywhere:
                floor += one.largest
            elif one is not None:
                floor[own.indices[one.places]] = one.variances[one.places]
            floors.append(floor)
        return tuple(floors)

    def _fitted(
        self,
        history: Observations,
        seed: int,
        n_rounds: int,
        transform: Callable[[int, GPPrior, Observations], GPPrior],
    ) -> list[GPPrior]:
        r"""The newly fitted processes; see ``restarted`` for the arguments."""
        each, X = self.layout.by_output(history), self.candidates.X
        fitted: Sequence[GPPrior]
        if self.together is None:
            pairs = zip(self.outputs, each, strict=True)
            fitted = [out.fit(data, seed, n_rounds) for out, data in pairs]
        else:
            fitted = self._fitted_together(self.together, each, seed, n_rounds)
        triples = zip(self.outputs, fitted, each, strict=True)
        found = [
            prior
            if output.fixed is not None or output.outcome is not None
            else output.given(transform(j, prior, data))
            for j, (output, prior, data) in enumerate(triples)
        ]
        if self.together is None:
            return found
        # A transformed process has another scale, which the common kernel must know.
        widest = [
            [float(p.variance(p.features(X)).max()) for p in priors]
            for priors in (found, fitted)
        ]
        factors = [(now / before) ** 0.5 for now, before in zip(*widest, strict=True)]
        return correlated.rescaled(fitted, factors)

    def _fitted_together(
        self,
        model: CorrelatedModel,
        each: Sequence[Observations],
        seed: int,
        n_rounds: int,
    ) -> Sequence[GPPrior]:
        r"""The processes of correlated outputs, fitted to the data of each."""
        X, y = [self.candidates.X[own.indices] for own in each], [o.y for o in each]
        is_known = each[0].yvar is not None
        yvar = [_fittable(own) for own in each] if is_known else None
        own_seed = round_generator(seed, n_rounds).initial_seed()
        with own_random_numbers(own_seed, self.candidates.X.device):
            return model.fit(X, y, yvar, self.candidates.bounds)

    def as_measured(self, fits: Posterior, history: Observations) -> Observations:
        r"""The history as Gaussian measurements of the processes.

        Args:
            fits: The posteriors before it.
            history: All observations; results of outcomes are replaced.
        """
        if not self.has_outcomes:
            return history
        values, noise = [], []
        numbers = fits.noise_of(history)
        for j, own in enumerate(self.layout.by_output(history)):
            output, pair = self.outputs[j], (own.y, numbers[j])
            if output.outcome is not None:
                pair = output.in_place(fits.posteriors[j].prior, own)
            values.append(pair[0])
            noise.append(pair[1])
        y = self.layout.joined(history, values)
        yvar = self.layout.joined(history, noise)
        return replace(history, y=y, yvar=yvar, counts=None)

    def surprises(self, fits: Posterior, new: Observations) -> tuple[Tensor, ...]:
        r"""The standardised residuals of values from predictions, for each output.

        Those of outcomes are randomised; see ``residuals_ahead``.
        """
        if not self.has_outcomes:
            return fits.surprises(new)
        found, numbers = [], fits.noise_of(new)
        for j, own in enumerate(self.layout.by_output(new)):
            posterior, output = fits.posteriors[j], self.outputs[j]
            rows = own.indices
            if output.outcome is None:
                found.append(posterior.surprises(rows, own.y, numbers[j]))
                continue
            # Drawn anew in each round, and the same whenever it is replayed.
            generator = torch.Generator("cpu").manual_seed(len(posterior.indices))
            S = posterior.covariance_between(rows, rows)
            outcome = output.outcome_of(posterior.prior)
            results = outcome, own.y, own.replicates.double(), generator
            found.append(residuals_ahead(S, posterior.mean[rows], *results))
        return tuple(found)

    def after_results(self, fits: Posterior) -> Posterior:
        r"""The posteriors with the noise that the next results of outcomes stand for.

        Args:
            fits: The posteriors after all results.
        """
        if not self.has_outcomes:
            return fits
        n, found = len(self.candidates), list(fits.noise)
        outcomes: list[Outcome | None] = [None] * len(found)
        for j, posterior in enumerate(fits.posteriors):
            if self.outputs[j].outcome is not None:
                outcome = self.outputs[j].outcome_of(posterior.prior)
                given = posterior.mean[:n], posterior.variance[:n]
                found[j], outcomes[j] = outcome.pseudo_noise(*given), outcome
        return replace(fits, noise=tuple(found), outcomes=tuple(outcomes))

    # --- what may be measured ---------------------------------------------------------

    def repeats_due(self, fits: Posterior, request: PlanRequest) -> int:
        r"""The number of a batch's rows to be measured again, to estimate the noise.

        Args:
            fits: The posteriors after the complete rounds.
            request: What is planned.
        """
        if fits.is_informed or fits.has_known_noise or self.n_repeats == 0:
            return 0
        before = torch.cat((fits.measured, request.pending))
        n_rows = before.unique().numel()
        done, repeats = len(before) - n_rows, self.n_repeats
        if self.n_deciding() < max(self.wanted, self.wanted_to_decide) + repeats:
            # The budget ends before all that a decision needs: most is for new rows.
            repeats = min(repeats, self.n_deciding() // 3)
        new = min(self.wanted, self.n_first - repeats) - n_rows
        return min(max(repeats - done, 0), max(request.size - max(new, 0), 0))

    def is_initial(self, fits: Posterior) -> bool:
        r"""Whether the run is still in its initial design or its burn-in."""
        if not fits.is_informed:
            return True
        if self.burn_in is not None or not self.is_fixed:
            return False
        return len(fits.measured) < self.n_first

    def repeats_left(
        self, fits: Posterior, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""The number of measurements left per row: 0 if all its outputs are exact.

        Args:
            fits: The posteriors after the complete rounds.
            data: All measurements so far, also those of the open round.
            pending: Rows that are being measured.
            left: ``N`` counts that ``max_repeats`` allows.
        """
        N, layout, each, least = len(self.candidates), self.layout, [], []
        by_output = [] if fits.is_informed else layout.by_output(data)
        for j, output in enumerate(self.outputs):
            noise = fits.noise[j] if fits.is_informed else output.known_noise
            if fits.is_informed:
                limit = float(fits.posteriors[j].least_noise)
            else:  # the spread of the values stands for the prior's variance
                limit = least_of_values(by_output[j].y)
            least.append(torch.full((N,), limit, dtype=torch.float64))
            is_exact = torch.zeros(N, dtype=torch.bool)
            each.append(is_exact if noise is None else noise[:N] <= least[-1])
        exact = layout.merged(each, partial(torch.all, dim=0))
        known, yvar = exact[data.indices], data.yvar
        if yvar is not None:
            yvar = self._raised(data, fits.floors) if fits.floors else yvar
            limits = layout.at_rows(least, data.indices)
            known = (yvar.view(limits.shape) <= limits).all(dim=-1)
        before = data.indices[:0]
        if fits.is_informed and len(fits.measured):  # else no answer to end with
            before = self.known_before
        if not (bool(exact.any()) or bool(known.any()) or len(before)):
            return left
        rows = torch.cat((data.indices[known], pending[exact[pending]], before))
        return repeats_left(left, exact, rows, self.row_points)

    @cached_property
    def known_before(self) -> Tensor:
        r"""The rows at points that history has measured exactly in all outputs.

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
        r"""The point number of each of ``N`` rows, equal for rows at one point."""
        return points_of(self.pool.X) if self.points is None else self.points


def spread_over(rows: Tensor, left: Tensor, size: int) -> Tensor:
    r"""The ``size`` rows, evenly spaced among those that were measured once.

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


def repeats_left(left: Tensor, exact: Tensor, known: Tensor, points: Tensor) -> Tensor:
    r"""The measurements left per row if no row that is known is measured again.

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
