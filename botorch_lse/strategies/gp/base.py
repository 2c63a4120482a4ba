r"""Strategies backed by a Gaussian process: model, regions, greedy batches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.confidence.classify import Sides, from_sides
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.functional.scores import first_best
from botorch_lse.models import (
    unfitted_prior,
)
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Classification, Observations
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.forecast import rows_forecast
from botorch_lse.strategies.gp.settings import GPSettings
from botorch_lse.strategies.process import UNFITTED_NOISE
from botorch_lse.strategies.rule import Request
from botorch_lse.strategies.state import State


@dataclass(frozen=True, eq=False)
class GPStrategy(GPSettings):
    r"""A level-set strategy on a Gaussian process.

    Args:
        pool: The candidates.
        threshold: The level, units of ``y``; exactly one of ``threshold``, ``omega``.
        omega: The level as a share of the unknown maximum, in (0, 1).
        model: ``None``: BoTorch's ``SingleTaskGP`` with ``Normalize`` and
            ``Standardize``, refitted from its initial values. A callable
            ``(train_X, train_Y, train_Yvar) -> fitted model`` (``n x d``, ``n x 1``,
            ``n x 1`` or ``None``). Or fixed hyper-parameters: a fitted BoTorch model
            (its data are ignored) or a GPyTorch kernel with zero mean, units of ``y``.
        batch_size: Measurements per round.
        noise_std: The known noise standard deviation, units of ``y``; per-row noise
            stands in ``pool.noise_var``. Neither: the model's own, or learned.
        delta: The failure probability of the theorem's widths.
        beta: ``None``: the theorem's schedule at ``delta``; a number or a schedule is
            a heuristic width that ignores ``delta`` and claims no confidence.
        norm_bound: ``B``, a bound of the norm of ``f`` less the prior mean in the space
            of the fixed model's kernel: widths of ``RKHSWidth`` at ``delta``, for one
            unknown function and any sub-Gaussian noise, in place of the widths for a
            draw from the process.
        epsilon: The accuracy, units of ``y``.
        max_observations: Stop after so many measurements.
        max_repeats: How often one row may be measured.
        refit: Fit again every so many rounds (1: always), or a function of the number
            of complete rounds that says whether to. In between, and for fixed models,
            hyper-parameters stay. After a fit the whole past is evaluated again with
            the new hyper-parameters, so that classes may change back. Where intervals
            are not intersected, the current one alone decides after a fit: hyper-
            parameters learnt from all data make the earlier ones no evidence.
        n_initial: Measurements placed by maximal variance before the rule takes over,
            rounded up to whole rounds. Default 0 for fixed models, else ``2 (d + 1)``.
        memory_budget: Bytes for arrays over the pool.

    Raises:
        ValueError: If a number is out of range, both or none of ``threshold`` and
            ``omega`` are given, or the noise is given twice or unknown.
        UnsupportedError: If the model's posterior path is not exact.
    """

    # --- learning -------------------------------------------------------------------

    def _start(self, seed: int) -> Belief:
        if self.fixed is not None:
            return self._prior_belief(self.fixed)
        start = PoolPosterior.start(
            unfitted_prior(self.pool.bounds), self.pool.X, self.memory_budget
        )
        return self._uninformed(start, 0.0)

    def _prior_belief(self, prior: GPPrior, yvar: Tensor | None = None) -> Belief:
        r"""Before any observation; ``yvar`` says what noise to expect of new ones."""
        posterior = PoolPosterior.start(prior, self.pool.X, self.memory_budget)
        regions = Regions.of_interval(
            posterior.mean, posterior.sigma, self._beta(1, posterior), self.pool
        )
        sides = self._update_sides(self._start_sides(), posterior, regions, 1)
        return Belief(posterior, regions, sides, self._planned_noise(prior, yvar))

    def _planned_noise(self, prior: GPPrior, yvar: Tensor | None) -> Tensor:
        r"""``N`` noise variances of new observations."""
        return self.process.new_noise(prior, yvar)

    def _uninformed(self, posterior: PoolPosterior, mean: float) -> Belief:
        level = torch.full_like(posterior.mean, mean)
        endless = torch.full_like(level, torch.inf)
        regions = Regions(-endless, endless, level, endless, self.pool)
        return Belief(posterior, regions, self._start_sides(), self._unfitted_noise)

    @property
    def _unfitted_noise(self) -> Tensor:
        r"""``N`` noise variances while first rows are placed, units of the prior."""
        return torch.full((len(self.pool),), UNFITTED_NOISE, dtype=torch.float64)

    def _start_sides(self) -> Sides:
        r"""Everything undecided."""
        return self.goal.start(len(self.pool))

    def _update_sides(
        self, sides: Sides, posterior: PoolPosterior, regions: Regions, t: int
    ) -> Sides:
        r"""The sets after the interval ``t``."""
        return self.goal.update(sides, regions)

    def _learn(
        self, belief: Belief, new: Observations, history: Observations, seed: int
    ) -> Belief:
        n_rounds = belief.n_rounds + 1
        if self.fixed is None and not self._can_learn(belief, history):
            noise = belief.new_noise[new.indices]
            posterior = belief.posterior.observe(new.indices, 0.0 * new.y, noise)
            mean = float(history.y.mean())
            return replace(self._uninformed(posterior, mean), n_rounds=n_rounds)
        if self.fixed is None and self._is_due(belief, n_rounds):
            belief = self._refit(history, seed, n_rounds)
        else:
            belief = replace(self._observe(belief, new), n_rounds=n_rounds)
        if self.claims_confidence and self.intersects:
            warn_if_empty(belief.regions, self.guarantee)
        return belief

    def _refit(self, history: Observations, seed: int, n_rounds: int) -> Belief:
        prior = self.process.fit(history, seed, n_rounds)
        belief = self._along(self._prior_belief(prior, history.yvar), history)
        return replace(belief, fitted_rounds=n_rounds, n_rounds=n_rounds)

    def _along(self, belief: Belief, history: Observations) -> Belief:
        r"""After all rounds of ``history``; see ``refit`` on what they decide."""
        assert history.round is not None  # labelled by `tell`
        labels = history.round.unique().tolist()
        for label in labels:
            rows = (history.round == label).nonzero().view(-1)
            if self.fixed is None and not self.intersects and label == labels[-1]:
                belief = self._undecided_again(belief)
            belief = self._observe(belief, history.select(rows))
        return belief

    def _undecided_again(self, belief: Belief) -> Belief:
        r"""The same posterior with nothing decided by it."""
        blank = self._uninformed(belief.posterior, 0.0).regions
        return replace(belief, sides=self._start_sides(), regions=blank)

    def _observe(self, belief: Belief, new: Observations) -> Belief:
        posterior = belief.posterior.observe(
            new.indices, new.y, self._noise(belief, new)
        )
        t = belief.n_intervals + 1
        mean, sigma, beta = posterior.mean, posterior.sigma, self._beta(t, posterior)
        if self.intersects:
            regions = belief.regions.intersect(mean, sigma, beta)
        else:
            regions = Regions.of_interval(mean, sigma, beta, self.pool)
        sides = belief.sides if self.is_monotone else self._start_sides()
        sides = self._update_sides(sides, posterior, regions, t)
        return replace(
            belief, posterior=posterior, regions=regions, sides=sides, n_intervals=t
        )

    def _complete(self, observations: Observations) -> Observations:
        if observations.y.ndim != 1:
            raise BotorchTensorDimensionError(
                "Expected `y` to hold one number per measurement, but got shape "
                f"{tuple(observations.y.shape)}: {type(self).__name__} has one output."
            )
        if observations.yvar is not None:
            return observations
        known = self.process.known_noise
        if known is None:
            return observations
        return replace(observations, yvar=known[observations.indices])

    def _noise(self, belief: Belief, new: Observations) -> Tensor:
        return belief.new_noise[new.indices] if new.yvar is None else new.yvar

    def _forecast(self, state: State) -> Forecast:
        belief = state.belief
        if self._is_initial(belief):
            return Forecast(None, "No model has been fitted yet.")
        return rows_forecast(
            belief,
            self.goal.distances(belief.posterior.mean),
            self._noise_var(belief),
            self._beta(belief.n_intervals + 1, belief.posterior),
            self.goal.tolerance,
            self.batch_size,
        )

    def _noise_var(self, belief: Belief) -> Tensor:
        r"""Noise variances of new observations: ``N``, or one for all."""
        noise = belief.new_noise
        return noise[:1] if bool((noise == noise[0]).all()) else noise

    # --- choosing -------------------------------------------------------------------

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        posterior, left = belief.posterior, request.left.clone()
        for row in request.pending.tolist():
            posterior = posterior.expect(row, float(belief.new_noise[row]))
        initial, open_rows = self._is_initial(belief), self._open_rows(belief)
        rows: list[int] = []
        while len(rows) < request.size:
            scores = posterior.variance if initial else self._scores(belief, posterior)
            row = first_best(scores, open_rows & (left > 0), posterior.scale)
            if row is None:
                break
            rows.append(row)
            left[row] -= 1
            if len(rows) < request.size:
                posterior = posterior.expect(row, float(belief.new_noise[row]))
        return torch.tensor(rows, dtype=torch.long)

    @abstractmethod
    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        r"""``N`` scores; ``posterior`` expects the rows chosen so far."""

    def _is_initial(self, belief: Belief) -> bool:
        if self.fixed is None:
            return belief.fitted_rounds < 0
        return len(belief.posterior.indices) < self.initial_observations

    def _classification(self, belief: Belief) -> Classification:
        regions, sides = belief.regions, belief.sides
        level = self.goal.level(regions.mean)
        return from_sides(sides.side, regions, level, self.guarantee)
