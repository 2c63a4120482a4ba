r"""Strategies backed by a Gaussian process: model, regions, greedy batches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.confidence.classify import (
    Sides,
    from_sides,
    with_contradictions,
)
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.functional.jitter import TOLD
from botorch_lse.functional.scores import first_best
from botorch_lse.models import (
    unfitted_prior,
)
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Classification, Observations, Pool
from botorch_lse.strategies.exact import Exactness, least_of_values
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.forecast import rows_forecast
from botorch_lse.strategies.gp.one_sided import row_means, side_of_all
from botorch_lse.strategies.gp.settings import GPSettings
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.process import UNFITTED_NOISE
from botorch_lse.strategies.state import State

TOUCHED = 0.5
"""A row counts as looked at once the data have taken this share off its variance."""
LEAST_SHARE = 0.75
"""Of the width that decides, at most this much lies between data and level: else the
prior of a learnt model would decide by itself."""


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
            stands in ``pool.noise_var``. Neither: the model's own, or learned. 0 is an
            exact measurement: a row measured so is not measured again.
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
            hyper-parameters stay. Under a model that is learnt the current interval
            alone decides, in every round anew: hyper-parameters learnt from all data
            make earlier intervals no evidence, so a row may become undecided again.
        n_initial: Measurements placed by maximal variance before the rule takes over,
            rounded up to whole rounds. Default 0 for fixed models, else ``10 d``, at
            most one per row: few data make a learnt model far too sure.
        level_z: A model that is learnt keeps the level within so many standard
            deviations of its prior around the mean of the data: where the fitted scale
            is smaller, it is raised. First data far from the level would else be taken
            as proof that nothing reaches it. Less than the width that decides; at most
            three quarters of it are used. ``None``: as fitted.
        memory_budget: Bytes for arrays over the pool.

    Under a model that is learnt nothing is decided while all values lie on one side of
    the level (noise considered; unless every row was measured): the next rows are then
    those farthest from what was measured. No width that a theorem does not give decides
    before there are data, nor a row of which the prior alone would be sure and whose
    variance the data have not halved.

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
            self._unfitted_prior, self.pool.X, self.memory_budget
        )
        return self._uninformed(start, 0.0)

    @property
    def _unfitted_prior(self) -> GPPrior:
        r"""What places the first rows."""
        return unfitted_prior(self.pool.bounds)

    def _prior_belief(self, prior: GPPrior, yvar: Tensor | None = None) -> Belief:
        r"""Before any observation; ``yvar`` says what noise to expect of new ones.

        Only a theorem's width decides anything here.
        """
        posterior = PoolPosterior.start(prior, self.pool.X, self.memory_budget)
        regions = Regions.of_interval(
            *self._moments(posterior), self._beta(1, posterior), self.items
        )
        sides = self._start_sides()
        if self.is_theorem:
            sides = self._update_sides(sides, posterior, regions, 1)
        return Belief(posterior, regions, sides, self._planned_noise(prior, yvar))

    def _planned_noise(self, prior: GPPrior, yvar: Tensor | None) -> Tensor:
        r"""``N`` noise variances of new observations."""
        return self.process.new_noise(prior, yvar)

    def _uninformed(self, posterior: PoolPosterior, mean: float) -> Belief:
        level = torch.full((len(self.items),), mean, dtype=torch.float64)
        regions = Regions.unknown(level, self.items)
        return Belief(posterior, regions, self._start_sides(), self._unfitted_noise)

    @property
    def _unfitted_noise(self) -> Tensor:
        r"""``N`` noise variances while first rows are placed, units of the prior."""
        return torch.full((len(self.pool),), UNFITTED_NOISE, dtype=torch.float64)

    @property
    def items(self) -> Pool:
        r"""The rows to decide on."""
        return self.pool

    def _moments(self, posterior: PoolPosterior) -> tuple[Tensor, Tensor]:
        r"""Means and standard deviations of the items."""
        return posterior.mean, posterior.sigma

    def _start_sides(self) -> Sides:
        r"""Everything undecided."""
        return self.goal.start(len(self.items))

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
        before = belief.regions.contradicted
        if self.fixed is None and self._is_due(belief, n_rounds):
            belief = self._refit(history, seed, n_rounds)
        else:
            belief = replace(self._observe(belief, new), n_rounds=n_rounds)
        if self.is_theorem:
            newly = belief.regions.contradicted & ~before
            warn_if_empty(replace(belief.regions, contradicted=newly), self.guarantee)
        return belief if self.fixed is not None else self._two_sided(belief, history)

    def _refit(self, history: Observations, seed: int, n_rounds: int) -> Belief:
        prior = self._raised(self.process.fit(history, seed, n_rounds), history)
        belief = self._along(self._prior_belief(prior, history.yvar), history)
        return replace(belief, fitted_rounds=n_rounds, n_rounds=n_rounds)

    def _raised(self, prior: GPPrior, history: Observations) -> GPPrior:
        r"""A fitted process with the level within ``level_z`` of its deviations."""
        values, _ = row_means(history, torch.zeros_like(history.y))
        level = self.goal.level_of(values)
        if self.level_z is None or level is None:
            return prior
        decides = self.widths(2) ** 0.5  # the width after one round; later ones grow
        z = min(self.level_z, LEAST_SHARE * decides)
        if z == 0:
            return prior
        return prior.at_least(abs(level - float(history.y.mean())) / z, self.pool.X)

    def _two_sided(self, belief: Belief, history: Observations) -> Belief:
        r"""With nothing decided while the data of a learnt model are one-sided."""
        side = None
        if history.indices.unique().numel() < len(self.pool):
            side = side_of_all(history, self._noise(belief, history), self.goal)
        if side is None:
            return replace(belief, one_sided=None)
        return replace(belief, one_sided=side, sides=self._start_sides())

    def _along(self, belief: Belief, history: Observations) -> Belief:
        r"""After all of ``history``, judged once: earlier intervals are no evidence."""
        assert history.round is not None  # labelled by `tell`
        posterior = belief.posterior.observe(
            history.indices, history.y, self._noise(belief, history)
        )
        n_intervals = belief.n_intervals + history.round.unique().numel()
        return self._judged(replace(belief, posterior=posterior), n_intervals)

    def _observe(self, belief: Belief, new: Observations) -> Belief:
        posterior = belief.posterior.observe(
            new.indices, new.y, self._noise(belief, new)
        )
        after = replace(belief, posterior=posterior)
        return self._judged(after, belief.n_intervals + 1)

    def _judged(self, belief: Belief, t: int) -> Belief:
        r"""With regions and sides after the interval ``t``.

        Sides agree with their regions: a row whose intervals contradict each other is
        judged by the current one alone, in every round anew.
        """
        posterior, past = belief.posterior, belief.regions
        moments, beta = self._moments(posterior), self._current_beta(belief, t)
        if self.intersects and self.fixed is not None:
            regions = past.intersect(*moments, beta)
        else:
            last = Regions.of_interval(*moments, beta, self.items)
            regions = replace(last, contradicted=past.contradicted)
        before, start = belief.sides, self._start_sides()
        if not self._keeps_sides:
            before = start
        elif bool(regions.contradicted.any()):
            before = before.reopened(regions.contradicted)
        sides = self._update_sides(before, posterior, regions, t)
        against = self.goal.against(sides, regions)
        if bool(against.any()):
            # Where intervals are not intersected, or decide rows together.
            contradicted = regions.contradicted | against
            regions = replace(regions, contradicted=contradicted)
            sides = self._update_sides(start, posterior, regions, t)
        if not self.is_theorem:
            sides = sides.reopened(self._presumed(belief))
        return replace(belief, regions=regions, sides=sides, n_intervals=t)

    def _current_beta(self, belief: Belief, t: int) -> float:
        r"""The squared width of the interval ``t``."""
        return self._beta(t, belief.posterior)

    @property
    def _keeps_sides(self) -> bool:
        r"""Whether what is decided stays decided."""
        return self.is_monotone and self.fixed is not None

    def _presumed(self, belief: Belief) -> Tensor:
        r"""Items the prior alone would be sure of, and that the data hardly touched."""
        posterior, items = belief.posterior, self._item_rows
        if self.threshold is None:
            return torch.zeros(len(self.items), dtype=torch.bool)
        prior = posterior.prior_variance[items]
        mean, beta = posterior.prior_mean_at(items), self._beta(1, posterior)
        sure = (mean - self.threshold).abs() >= (beta * prior).sqrt()
        return sure & (posterior.variance[items] > TOUCHED * prior)

    @property
    def _item_rows(self) -> Tensor:
        r"""The rows of the posterior that are items."""
        return torch.arange(len(self.pool))

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
        unknown = self._no_forecast(belief)
        if unknown is not None:
            return unknown
        return rows_forecast(
            belief,
            self.goal.distances(belief.posterior.mean),
            self._noise_var(belief),
            self._beta(belief.n_intervals + 1, belief.posterior),
            self.goal.tolerance,
            self.batch_size,
        )

    def _no_forecast(self, belief: Belief) -> Forecast | None:
        if self._is_initial(belief):
            return Forecast(None, "No model has been fitted yet.")
        if belief.one_sided is not None:
            return Forecast(None, _one_sided_in_words(belief.one_sided))
        return None

    def _noise_var(self, belief: Belief) -> Tensor:
        r"""Noise variances of new observations: ``N``, or one for all."""
        noise = belief.new_noise
        return noise[:1] if bool((noise == noise[0]).all()) else noise

    # --- choosing -------------------------------------------------------------------

    def _planning_belief(self, belief: Belief) -> Belief:
        if belief.one_sided is None:
            return belief
        # A model fitted to one-sided data may believe in lengths that it has never
        # seen vary: the unfitted one looks farthest from all that was measured.
        start = PoolPosterior.start(
            self._unfitted_prior, self._posterior_points, self.memory_budget
        )
        rows, noise = belief.posterior.indices, self._unfitted_noise
        posterior = start.observe(rows, torch.zeros(len(rows)).double(), noise[rows])
        return replace(belief, posterior=posterior, new_noise=noise, fitted_rounds=-1)

    @property
    def _posterior_points(self) -> Tensor:
        r"""The points that the posterior is about: the pool first."""
        return self.pool.X

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

    def _exactness(self, belief: Belief, data: Observations) -> tuple[Exactness, ...]:
        if self._knows_noise(belief):
            return (Exactness(float(belief.posterior.least_noise), belief.new_noise),)
        return (Exactness(least_of_values(data.y), self.process.known_noise),)

    def _knows_noise(self, belief: Belief) -> bool:
        r"""Whether posterior and noise are in the units of ``y``."""
        return self.fixed is not None or belief.fitted_rounds >= 0

    def _is_initial(self, belief: Belief) -> bool:
        if self.fixed is None:
            return belief.fitted_rounds < 0
        return len(belief.posterior.indices) < self.initial_observations

    def _classification(self, belief: Belief) -> Classification:
        regions, sides = belief.regions, belief.sides
        level = self.goal.level(regions.mean)
        words = [self.guarantee]
        if belief.one_sided is not None:
            words.append(_one_sided_in_words(belief.one_sided))
        if belief.posterior.is_exact:
            words.append(TOLD)
        claim = with_contradictions(" ".join(words), regions.contradicted)
        return from_sides(sides.side, regions, level, claim)


def _one_sided_in_words(side: str) -> str:
    return f"Every value so far lies {side} the level, so nothing is decided."
