r"""Strategies on a Gaussian process: what they are given, believe and answer.

A strategy here is made of four parts: the goal says what is to be decided, the process
what is believed, the rule which rows come next, and the loop (``loop.py``) keeps the
rounds. ``GPStrategy`` joins them; each of its subclasses names its parts and does
nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.checks import finite_number, in_interval, whole_number
from botorch_lse.confidence.classify import (
    UNDECIDED,
    accuracy,
    from_sides,
    ratio,
    with_contradictions,
)
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.confidence.rkhs import RKHSWidth
from botorch_lse.confidence.schedules import (
    BetaSchedule,
    ConstantBeta,
    UnionBeta,
    beta_schedule,
)
from botorch_lse.functional.jitter import TOLD
from botorch_lse.models.default import ModelArgument, unfitted_prior
from botorch_lse.models.posterior import MEMORY_BUDGET, PoolPosterior, checked_budget
from botorch_lse.models.prior import GPPrior
from botorch_lse.planning import PosteriorProblem, Relaxation
from botorch_lse.problem import Classification, Observations, Pool
from botorch_lse.strategies.burn_in import BurnIn, BurnInData
from botorch_lse.strategies.forecast import (
    ROUGH,
    Forecast,
    observations_needed,
    squared_gaps,
)
from botorch_lse.strategies.goals import Above, Goal, ShareOfMax, View
from botorch_lse.strategies.learning import (
    LEVEL_Z,
    UNFITTED_NOISE,
    Exactness,
    GaussianProcess,
    Learning,
    least_of_values,
    row_means,
    side_of_all,
)
from botorch_lse.strategies.loop import Request, Strategy
from botorch_lse.strategies.rules import Belief, Rule, Situation
from botorch_lse.strategies.state import State

TOUCHED = 0.5
"""A row counts as looked at once the data have taken this share off its variance."""
LEAST_SHARE = 0.75
"""Of the width that decides, at most this much lies between data and level: else the
prior of a learnt model would decide by itself."""
MOST_STEPS = 300
"""The longest forecast that is made measurement by measurement."""
WORK = 2e10
"""Multiplications that such a forecast may take; fewer steps on a large pool."""


@dataclass(frozen=True, eq=False)
class GPStrategy(Strategy):
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

    threshold: float | None = None
    _: KW_ONLY
    omega: float | None = None
    model: ModelArgument = None
    batch_size: int = 1
    noise_std: float | None = None
    delta: float = 0.05
    beta: float | BetaSchedule | None = None
    norm_bound: float | None = None
    epsilon: float = 0.0
    max_observations: int | None = None
    max_repeats: int | None = None
    refit: int | Callable[[int], bool] = 1
    n_initial: int | None = None
    level_z: float | None = LEVEL_Z
    memory_budget: int = MEMORY_BUDGET

    goals: ClassVar[tuple[str, ...]] = ("threshold", "omega")
    """The levels that may be given; ``"maximiser"``: none as well."""
    intersects: ClassVar[bool] = True
    """Whether the intervals of all rounds are intersected, or the last one counts."""
    is_monotone: ClassVar[bool] = True
    """Whether what is decided stays decided, as long as intervals do not contradict."""
    default_beta: ClassVar[float | None] = None
    """A fixed squared width instead of a theorem's."""
    source: ClassVar[str] = "Gotovos et al. 2013, {theorem}"
    """The theorem, for ``guarantee``."""
    forecasts_by_design: ClassVar[bool] = False
    """Whether forecasts are by the optimal design of what the batches look at."""

    def __post_init__(self) -> None:
        self._check_rounds()
        whole_number(self.batch_size, "batch_size", 1)
        in_interval(self.delta, "delta", 0.0, 1.0)
        if self.beta is not None:
            beta_schedule(self.beta)
        self.learning  # noqa: B018  (checks its numbers)
        checked_budget(self.memory_budget, len(self.pool), "one number per row")
        accuracy(self.epsilon)
        if self.level_z is not None:
            in_interval(self.level_z, "level_z", 0.0, float("inf"))
        check_goal(self.threshold, self.omega, self.goals, type(self).__name__)
        self._check_noise()
        if self.norm_bound is not None:
            in_interval(self.norm_bound, "norm_bound", 0.0, float("inf"))
            self._check_norm_bound()
        self.rule  # noqa: B018  (checks its arguments)

    def _check_noise(self) -> None:
        self.gp.check()

    def _check_norm_bound(self) -> None:
        if self.fixed is None or not self.claims_confidence:
            found = "no fixed `model`" if self.fixed is None else "other widths"
            raise ValueError(
                "Expected `norm_bound` with a fixed `model`, whose kernel defines the "
                f"norm, and a strategy with a theorem's widths, but got {found}. Leave "
                "`norm_bound` out."
            )

    # --- parts ------------------------------------------------------------------------

    @cached_property
    def goal(self) -> Goal:
        r"""What is to be decided."""
        if self.threshold is not None:
            return Above(float(self.threshold), self.epsilon)
        return ShareOfMax(float(self.omega or 0.0), self.epsilon)

    @property
    @abstractmethod
    def rule(self) -> Rule:
        r"""Which rows come next."""

    @cached_property
    def gp(self) -> GaussianProcess:
        r"""The model, and what is known of the noise."""
        return GaussianProcess(self.pool, self.model, self.noise_std)

    @cached_property
    def learning(self) -> Learning:
        r"""When the model is learnt."""
        return Learning(
            self.pool,
            (self.gp,),
            self.refit,
            self.n_initial,
            self.max_observations,
            self.max_repeats,
        )

    @cached_property
    def widths(self) -> BetaSchedule:
        r"""The squared widths by interval."""
        if self.beta is not None:
            return beta_schedule(self.beta)
        return self._default_widths()

    def _default_widths(self) -> BetaSchedule:
        if self.default_beta is not None:
            return ConstantBeta(self.default_beta)
        return UnionBeta(self.goal.n_claims(len(self.items)), self.delta)

    @property
    def burn_in_plan(self) -> BurnIn | None:
        r"""The rounds in which the noise is learnt; ``None`` where it is known."""
        return None

    @property
    def fixed(self) -> GPPrior | None:
        r"""The prior if hyper-parameters are fixed, else ``None``."""
        return self.gp.fixed

    @property
    def initial_observations(self) -> int:
        r"""Measurements placed by maximal variance at first; none after a burn-in."""
        return self.learning.n_first if self.burn_in_plan is None else 0

    @property
    def items(self) -> Pool:
        r"""The rows to decide on."""
        return self.pool

    @property
    def points(self) -> Tensor | None:
        r"""``N`` numbers, equal for rows of one point; ``None``: for equal rows."""
        return None

    @property
    def _posterior_points(self) -> Tensor:
        r"""The points that the posterior is about: the pool first."""
        return self.pool.X

    @cached_property
    def _item_rows(self) -> Tensor:
        r"""The rows of the posterior that are items: the last ones."""
        last = len(self._posterior_points)
        return torch.arange(last - len(self.items), last)

    @property
    def _unfitted_prior(self) -> GPPrior:
        r"""What places the first rows."""
        return unfitted_prior(self.pool.bounds)

    @property
    def can_predict(self) -> bool:
        r"""Yes, by the Gaussian process."""
        return True

    # --- the promise ------------------------------------------------------------------

    @property
    def has_theorem(self) -> bool:
        r"""Whether a theorem gives the default widths."""
        return True

    @property
    def claims_confidence(self) -> bool:
        r"""Whether the widths are a theorem's, and so is what they rest on."""
        return self.beta is None and self.has_theorem

    @property
    def is_theorem(self) -> bool:
        r"""Whether a theorem gives the widths: it asks for fixed hyper-parameters."""
        return self.claims_confidence and self.fixed is not None

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, in words."""
        plan = self.burn_in_plan
        if plan is not None and self.beta is None:
            return (
                "No confidence is claimed: the widths are those of Gotovos et al. "
                f"(2013), {self.goal.theorem}, at delta = {self.delta:g}, but the "
                f"noise variances are estimates from {plan.n} measurements."
            )
        if not self.claims_confidence:
            width = "the rule's own" if self.beta is None else "given, not derived"
            claim = f"No confidence is claimed: the width is {width}; delta is ignored."
        else:
            claim = self._claim
        return claim if self.fixed is not None else f"{claim} {self._learnt_in_words}"

    @property
    def _claim(self) -> str:
        up_to = f" up to epsilon = {self.epsilon:g}" if self.epsilon > 0 else ""
        claim = f"With probability {1 - self.delta:g} all decided rows are right{up_to}"
        source = self.source.format(theorem=self.goal.theorem)
        if self.norm_bound is not None:
            return (
                f"{claim}; assumes f less the prior mean of norm at most "
                f"{self.norm_bound:g} in the space of the given kernel, and noise "
                "that, given the past, is sub-Gaussian with at most the given variance "
                "(Chowdhury and Gopalan 2017, Theorem 2)."
            )
        if self.fixed is None:
            return (
                f"{claim}, were the fitted hyper-parameters the true ones: the theorem "
                f"({source}) does not cover fitting."
            )
        return (
            f"{claim}; assumes f drawn from the given Gaussian process and independent "
            f"Gaussian noise of the given variance ({source})."
        )

    @property
    def _learnt_in_words(self) -> str:
        r"""What an answer of a learnt model is worth."""
        raised = ", whose scale was raised so that the level is plausible"
        words = (
            f"Decided under the fitted model{raised if self.level_z else ''}. No "
            "guarantee if the function varies faster elsewhere than where it was "
            "measured."
        )
        n, wanted = self.initial_observations, self.learning.wanted
        if n < wanted:
            words += f" The budget allows {n} of the {wanted} rows of a first design."
        return words

    def _beta(self, t: int, posterior: PoolPosterior) -> float:
        r"""The squared width of interval ``t``, which is that of ``posterior``."""
        if self.norm_bound is None:
            return self.widths(t)
        width = RKHSWidth(self.norm_bound, 1.0, 1.0, self.delta)  # per row's noise
        return float(width.from_information(posterior.information)) ** 2

    # --- before data ------------------------------------------------------------------

    def _start(self, seed: int) -> Belief:
        plan = self.burn_in_plan
        if self.fixed is not None:
            start = self._prior_belief(self.fixed)
        else:
            start = self._uninformed(self._placing(), 0.0)
        if plan is None:
            return start
        blank = self._uninformed(start.posterior, 0.0)
        return replace(blank, burn_in=BurnInData.empty(len(self.pool)))

    def _placing(self) -> PoolPosterior:
        r"""The posterior that places first rows, before any of them."""
        return PoolPosterior.start(
            self._unfitted_prior, self._posterior_points, self.memory_budget
        )

    def _prior_belief(self, prior: GPPrior, yvar: Tensor | None = None) -> Belief:
        r"""Before any observation; ``yvar`` says what noise to expect of new ones.

        Only a theorem's width decides anything here.
        """
        posterior = PoolPosterior.start(
            prior, self._posterior_points, self.memory_budget
        )
        beta = self._beta(1, posterior)
        regions = Regions.of_interval(*self._moments(posterior), beta, self.items)
        sides = self.goal.start(len(self.items))
        if self.is_theorem and self.rule.decides_before_data:
            sides = self.goal.update(sides, self._view(posterior, regions, beta))
        if self.burn_in_plan is None:
            noise = self.gp.new_noise(prior, yvar)
        else:
            noise = self._unfitted_noise  # until the burn-in knows
        memory = self.rule.start(posterior, beta)
        return Belief(posterior, regions, sides, noise, memory=memory)

    def _uninformed(self, posterior: PoolPosterior, mean: float) -> Belief:
        level = torch.full((len(self.items),), mean, dtype=torch.float64)
        regions = Regions.unknown(level, self.items)
        sides, memory = self.goal.start(len(self.items)), self.rule.start(None, 0.0)
        return Belief(posterior, regions, sides, self._unfitted_noise, memory=memory)

    @property
    def _unfitted_noise(self) -> Tensor:
        r"""``N`` noise variances while first rows are placed, units of the prior."""
        return torch.full((len(self.pool),), UNFITTED_NOISE, dtype=torch.float64)

    def _moments(self, posterior: PoolPosterior) -> tuple[Tensor, Tensor]:
        r"""Means and standard deviations of the items."""
        if len(self.items) == len(posterior.mean):
            return posterior.mean, posterior.sigma
        return posterior.mean[self._item_rows], posterior.sigma[self._item_rows]

    def _view(self, posterior: PoolPosterior, regions: Regions, beta: float) -> View:
        return View(regions, posterior, self._item_rows, beta)

    # --- learning ---------------------------------------------------------------------

    def _learn(
        self, belief: Belief, new: Observations, history: Observations, seed: int
    ) -> Belief:
        n_rounds = belief.n_rounds + 1
        data = belief.burn_in
        if data is None:
            learnt = self._learn_known(belief, new, history, seed)
        elif data.variances is not None:
            new, history = (_with_noise(o, data.variances) for o in (new, history))
            learnt = self._learn_known(belief, new, history, seed)
        else:
            learnt, data = self._learn_burn_in(belief, data, new, history, seed)
        memory = self.rule.measured(belief.memory, learnt.memory, new.measured)
        learnt = replace(learnt, n_rounds=n_rounds, memory=memory, burn_in=data)
        if data is None or data.variances is None:
            return learnt
        return replace(learnt, new_noise=data.variances)

    def _learn_burn_in(
        self,
        belief: Belief,
        data: BurnInData,
        new: Observations,
        history: Observations,
        seed: int,
    ) -> tuple[Belief, BurnInData]:
        r"""After a round of the burn-in; its last round tells the noise of each row."""
        assert self.burn_in_plan is not None  # it made the data
        data = self.burn_in_plan.after(data, new)
        if data.variances is None:
            mean = float(history.y.mean())
            return self._uninformed(belief.posterior, mean), data
        history = _with_noise(history, data.variances)
        if self.fixed is None:
            learnt = self._refit(history, seed, belief.n_rounds + 1)
            return self._two_sided(learnt, history), data
        return self._along(self._prior_belief(self.fixed), history), data

    def _learn_known(
        self, belief: Belief, new: Observations, history: Observations, seed: int
    ) -> Belief:
        r"""After a round whose noise is known, or learnt with the model."""
        n_rounds = belief.n_rounds + 1
        if self.fixed is None and belief.fitted_rounds < 0:
            exactness = self._exactness(belief, history)
            if not self.learning.can_fit(history, exactness, self.points):
                noise = belief.new_noise[new.indices]
                posterior = belief.posterior.observe(new.indices, 0.0 * new.y, noise)
                return self._uninformed(posterior, float(history.y.mean()))
        before = belief.regions.contradicted
        if self.fixed is None and self.learning.is_due(belief.fitted_rounds, n_rounds):
            belief = self._refit(history, seed, n_rounds)
        else:
            belief = self._observe(belief, new)
        if self.is_theorem:
            newly = belief.regions.contradicted & ~before
            warn_if_empty(replace(belief.regions, contradicted=newly), self.guarantee)
        return belief if self.fixed is not None else self._two_sided(belief, history)

    def _refit(self, history: Observations, seed: int, n_rounds: int) -> Belief:
        prior = self._raised(self.gp.fit(history, seed, n_rounds), history)
        belief = self._along(self._prior_belief(prior, history.yvar), history)
        return replace(belief, fitted_rounds=n_rounds)

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
        return replace(belief, one_sided=side, sides=self.goal.start(len(self.items)))

    def _along(self, belief: Belief, history: Observations) -> Belief:
        r"""After all of ``history``: earlier intervals of a new model are no evidence,
        so that it is judged once, unless the rule remembers something of each round.
        """
        assert history.round is not None  # labelled by `tell`
        labels = history.round.unique()
        if not self.rule.replays_rounds:
            return self._after(belief, history, labels.numel())
        for label in labels.tolist():
            rows = (history.round == label).nonzero().view(-1)
            belief = self._observe(belief, history.select(rows))
        return belief

    def _observe(self, belief: Belief, new: Observations) -> Belief:
        r"""After one more round."""
        return self._after(belief, new, 1)

    def _after(self, belief: Belief, new: Observations, n_intervals: int) -> Belief:
        r"""After new values, and as many intervals, of which only the last judges."""
        noise = self._noise(belief, new)
        posterior = belief.posterior.observe(new.indices, new.y, noise)
        after = replace(belief, posterior=posterior)
        return self._judged(after, belief.n_intervals + n_intervals)

    def _judged(self, belief: Belief, t: int) -> Belief:
        r"""With regions and sides after the interval ``t``.

        Sides agree with their regions: a row whose intervals contradict each other is
        judged by the current one alone, in every round anew.
        """
        posterior, past, goal = belief.posterior, belief.regions, self.goal
        beta = self._beta(t, posterior)
        width = self.rule.width(belief.memory, beta)
        moments = self._moments(posterior)
        if self.intersects and self.fixed is not None:
            regions = past.intersect(*moments, width)
        else:
            last = Regions.of_interval(*moments, width, self.items)
            regions = replace(last, contradicted=past.contradicted)
        before, start = belief.sides, goal.start(len(self.items))
        if not (self.is_monotone and self.fixed is not None):
            before = start
        elif bool(regions.contradicted.any()):
            before = before.reopened(regions.contradicted)
        view = self._view(posterior, regions, beta)
        sides = goal.update(before, view)
        against = goal.against(sides, regions)
        if bool(against.any()):
            # Where intervals are not intersected, or decide rows together.
            contradicted = regions.contradicted | against
            regions = replace(regions, contradicted=contradicted)
            sides = goal.update(start, replace(view, regions=regions))
        if not self.is_theorem:
            sides = sides.reopened(self._presumed(belief))
        open_sigma = posterior.sigma[self._item_rows][sides.candidates]
        widest = float(open_sigma.max()) if open_sigma.numel() else None
        memory = self.rule.judged(belief.memory, widest, beta)
        return replace(
            belief, regions=regions, sides=sides, n_intervals=t, memory=memory
        )

    def _presumed(self, belief: Belief) -> Tensor:
        r"""Items the prior alone would be sure of, and that the data hardly touched."""
        posterior, items = belief.posterior, self._item_rows
        level = self.goal.stated_level
        if level is None:
            return torch.zeros(len(items), dtype=torch.bool)
        prior = posterior.prior_variance[items]
        mean, beta = posterior.prior_mean_at(items), self._beta(1, posterior)
        sure = (mean - level).abs() >= (beta * prior).sqrt()
        return sure & (posterior.variance[items] > TOUCHED * prior)

    def _complete(self, observations: Observations) -> Observations:
        if observations.y.ndim != 1:
            raise BotorchTensorDimensionError(
                "Expected `y` to hold one number per measurement, but got shape "
                f"{tuple(observations.y.shape)}: {type(self).__name__} has one output."
            )
        if observations.yvar is not None:
            return observations
        known = self.gp.known_noise
        if known is None:
            return observations
        return replace(observations, yvar=known[observations.indices])

    def _noise(self, belief: Belief, new: Observations) -> Tensor:
        return belief.new_noise[new.indices] if new.yvar is None else new.yvar

    # --- choosing ---------------------------------------------------------------------

    def _planning_belief(self, belief: Belief) -> Belief:
        if belief.one_sided is None:
            return belief
        # A model fitted to one-sided data may believe in lengths that it has never
        # seen vary: the unfitted one looks farthest from all that was measured.
        rows, noise = belief.posterior.indices, self._unfitted_noise
        zeros = torch.zeros(len(rows), dtype=torch.float64)
        posterior = self._placing().observe(rows, zeros, noise[rows])
        return replace(belief, posterior=posterior, new_noise=noise, fitted_rounds=-1)

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        if self.burn_in_plan is not None and self._learns_noise(belief):
            assert belief.burn_in is not None  # since the start
            counts = self.burn_in_plan.plan(
                belief.burn_in, request.size, request.left, request.pending
            )
            return torch.arange(len(counts)).repeat_interleave(counts)
        return self.rule.rows(self._situation(belief, request.pending), request)

    def _situation(self, belief: Belief, pending: Tensor) -> Situation:
        posterior = belief.posterior
        for row in pending.tolist():
            posterior = posterior.expect(row, float(belief.new_noise[row]))
        return Situation(
            belief,
            posterior,
            self.goal,
            self._item_rows,
            self._beta(belief.n_intervals, posterior),
            self._open_rows(belief),
            self._is_initial(belief),
        )

    def _open_rows(self, belief: Belief) -> Tensor:
        if self.rule.only_candidates and not self._is_initial(belief):
            return belief.sides.candidates
        return torch.ones(len(self.pool), dtype=torch.bool)

    def _open_again(
        self, belief: Belief, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        exactness = self._exactness(belief, data)
        return self.learning.repeats_left(exactness, data, pending, left, self.points)

    def _visiting_order(self, belief: Belief, rows: Tensor, before: Tensor) -> Tensor:
        return self.rule.order(belief.memory, rows, before)

    def _exactness(self, belief: Belief, data: Observations) -> Sequence[Exactness]:
        is_known = self.fixed is not None or belief.fitted_rounds >= 0
        if is_known and not self._learns_noise(belief):
            return (Exactness(float(belief.posterior.least_noise), belief.new_noise),)
        return (Exactness(least_of_values(data.y), self.gp.known_noise),)

    def _learns_noise(self, belief: Belief) -> bool:
        r"""Whether the burn-in has not ended."""
        return belief.burn_in is not None and belief.burn_in.variances is None

    def _is_initial(self, belief: Belief) -> bool:
        r"""Whether first rows are placed."""
        if belief.burn_in is not None:
            return self._learns_noise(belief)
        if self.fixed is None:
            return belief.fitted_rounds < 0
        return len(belief.posterior.indices) < self.initial_observations

    # --- the answer -------------------------------------------------------------------

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

    def _forecast(self, state: State) -> Forecast:
        belief = state.belief
        if self._is_initial(belief):
            return Forecast(None, "No model has been fitted yet.")
        if belief.one_sided is not None:
            return Forecast(None, _one_sided_in_words(belief.one_sided))
        posterior = belief.posterior
        beta = self._beta(belief.n_intervals + 1, posterior)
        if not self.forecasts_by_design:
            distances = self.goal.distances(posterior.mean)
            return rows_forecast(
                belief, distances, beta, self.goal.tolerance, self.batch_size
            )
        view = self._view(posterior, belief.regions, beta)
        found = self.goal.gaps(belief.sides, view)
        problem = PosteriorProblem(
            posterior, belief.new_noise, found.rows, found.weights, found.factor
        )
        relaxation = Relaxation.of(problem, self.batch_size, ROUGH)
        if relaxation is None:
            return Forecast(self.batch_size, "Nothing is uncertain any more.")
        return Forecast(
            observations_needed(relaxation, beta),
            "By the optimal design for the gaps of the current estimate and the width "
            "of the next round.",
        )


def _one_sided_in_words(side: str) -> str:
    return f"Every value so far lies {side} the level, so nothing is decided."


def _with_noise(observations: Observations, variances: Tensor) -> Observations:
    r"""The same with the estimated variances, where none were told."""
    if observations.yvar is not None:
        return observations
    return replace(observations, yvar=variances[observations.indices])


def check_goal(
    threshold: float | None, omega: float | None, goals: Sequence[str], name: str
) -> None:
    r"""One level, or none where the maximiser is a goal.

    Args:
        threshold: The level.
        omega: The level as a share of the maximum.
        goals: Of ``"threshold"``, ``"omega"``, ``"maximiser"`` those that are allowed.
        name: The strategy's.

    Raises:
        ValueError: If none, both or another one is given, or it is out of range.
    """
    levels = {"threshold": threshold, "omega": omega}
    given = [goal for goal, level in levels.items() if level is not None]
    if not given and "maximiser" in goals:
        return
    if len(given) != 1 or given[0] not in goals:
        wanted = [f"`{goal}`" for goal in goals if goal != "maximiser"]
        raise ValueError(
            f"Expected exactly {'one of ' if len(wanted) > 1 else ''}"
            f"{' or '.join(wanted)} for {name}, but got "
            f"{' and '.join(given) or 'neither'}."
        )
    if threshold is not None:
        finite_number(threshold, "threshold")
    elif omega is not None:
        ratio(omega)


def rows_forecast(
    belief: Belief,
    distances: Tensor,
    beta: float,
    epsilon: float,
    size: int,
) -> Forecast:
    r"""How many more observations decide the rows that are undecided.

    A short plan is made one measurement after the other, each of the row whose interval
    is the widest for its gap. Where it grows too long, the optimal design says how many
    are needed, on features that stand for the posterior covariance.

    Args:
        belief: Where the run stands.
        distances: ``N`` distances of the means from what would decide the rows.
        beta: The squared width of the next interval.
        epsilon: The accuracy.
        size: Observations of a batch.
    """
    rows = (belief.sides.side == UNDECIDED).nonzero().view(-1)
    posterior = belief.posterior
    variance = posterior.variance[rows]
    gaps = squared_gaps(distances[rows], variance, epsilon)
    work = len(posterior.mean) * (len(posterior.indices) + MOST_STEPS)
    steps = min(MOST_STEPS, max(1, int(WORK / work)))
    planned = planned_observations(
        posterior, rows, gaps / beta, belief.new_noise, steps
    )
    if planned is not None:
        return Forecast(
            planned,
            "By a plan that narrows the widest interval each time until all are as "
            "narrow as the gaps of the current estimate ask for.",
        )
    problem = PosteriorProblem(posterior, belief.new_noise, rows, 1 / gaps)
    relaxation = Relaxation.of(problem, size, ROUGH)
    assert relaxation is not None  # else the plan would have decided all
    needed = observations_needed(relaxation, beta)
    return Forecast(
        None if needed is None else max(needed, steps),
        "By the optimal design for the gaps of the current estimate and the width of "
        "the next round; a rule that does not plan by designs may need more.",
    )


def planned_observations(
    posterior: PoolPosterior,
    rows: Tensor,
    wanted: Tensor,
    noise_var: Tensor,
    most: int,
) -> int | None:
    r"""Measurements until every variance is at most the wanted one.

    Args:
        posterior: Where the run stands.
        rows: ``T`` rows.
        wanted: Their ``T`` variances.
        noise_var: ``N`` noise variances of new observations, or one for all.
        most: The longest plan that is tried.

    Returns:
        The length of a plan that measures, each time, the row whose variance is the
        largest multiple of the wanted one; ``None`` above ``most``.
    """
    noise = noise_var.expand(len(posterior.mean))
    for n in range(most + 1):
        ratio = posterior.variance[rows] / wanted
        worst = int(rows[ratio.argmax()])
        if float(ratio.max()) <= 1.0:
            return max(n, 1)
        posterior = posterior.expect(worst, float(noise[worst]))
    return None
