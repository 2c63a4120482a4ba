r"""Strategies for several outputs on one Gaussian process per output."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.checks import in_interval, whole_number
from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.confidence.schedules import BetaSchedule, UnionBeta, beta_schedule
from botorch_lse.functional.jitter import TOLD
from botorch_lse.functional.scores import first_best
from botorch_lse.models.default import ModelArgument, unfitted_prior
from botorch_lse.models.posterior import (
    MEMORY_BUDGET,
    PoolPosterior,
    checked_budget,
    row_blocks,
)
from botorch_lse.models.prior import GPPrior
from botorch_lse.planning import PosteriorProblem, relaxed_counts
from botorch_lse.planning.designed import TOLERANCE
from botorch_lse.problem import Classification, Observations
from botorch_lse.strategies.arguments import points_of
from botorch_lse.strategies.forecast import Forecast, smallest
from botorch_lse.strategies.learning import (
    UNFITTED_NOISE,
    Exactness,
    GaussianProcess,
    Learning,
    least_of_values,
)
from botorch_lse.strategies.loop import Request, Strategy, check_state
from botorch_lse.strategies.pareto.outputs import (
    MultiOutputStrategy,
    ParetoEstimate,
    checked_directions,
    pareto_answer,
    signs_of,
    with_columns,
)
from botorch_lse.strategies.state import State

_COPIES = 8
"""Arrays of outputs times rows times rivals alive at once."""
STRAY = 0.5
"""A row is decided as soon as its estimate strays to one side once, some standard
deviations by the time it is nearly decided."""


# --- what is known --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GPParetoBelief:
    r"""What the complete rounds say.

    Args:
        posteriors: One per output, units and signs of ``y``.
        side: ``N`` codes: accepted, rejected, open.
        active: ``N`` bools: open rows, and accepted ones that may still decide these.
        estimate: The estimate of every row.
        noise: For each output ``N`` noise variances of new observations.
        contradicted: ``N x m`` bools: intervals that have nothing in common.
        is_informed: Whether the posteriors are those of the model, so that they judge.
        n_intervals: How many intervals were judged; the next is number + 1.
        fitted_rounds: Rounds in the data at the last fit; -1 before any.
        n_rounds: Complete rounds with data.
    """

    posteriors: tuple[PoolPosterior, ...]
    side: Tensor
    active: Tensor
    estimate: ParetoEstimate
    noise: tuple[Tensor, ...]
    contradicted: Tensor
    is_informed: bool = False
    n_intervals: int = 0
    fitted_rounds: int = -1
    n_rounds: int = 0

    @property
    def open(self) -> Tensor:
        r"""The open rows, ascending."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @property
    def live(self) -> Tensor:
        r"""The rows that are not rejected, ascending."""
        is_live = (self.side == UNDECIDED) | (self.side == ABOVE)
        return is_live.nonzero().view(-1)

    @property
    def problems(self) -> list[PosteriorProblem]:
        r"""For each output, what its measurements are to say of the active rows.

        Variances count in units of the prior's largest, so that outputs compare.
        """
        targets = self.active.nonzero().view(-1)
        return [
            PosteriorProblem(
                posterior,
                noise.contiguous(),
                targets,
                torch.ones(targets.numel()).double() / posterior.scale**2,
            )
            for posterior, noise in zip(self.posteriors, self.noise, strict=True)
        ]

    def expecting(self, rows: Tensor) -> GPParetoBelief:
        r"""Posteriors with rows that are out or planned: variances shrink."""
        posteriors = list(self.posteriors)
        each, counts = rows.unique(return_counts=True)
        for row, count in zip(each.tolist(), counts.tolist(), strict=True):
            posteriors = [
                posterior.expect(row, float(noise[row]) / count)
                for posterior, noise in zip(posteriors, self.noise, strict=True)
            ]
        return replace(self, posteriors=tuple(posteriors))


# --- margins --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Comparison:
    r"""``B`` rows compared with ``L`` rivals: ``g(row) - g(rival)``, maximised.

    Args:
        lower: ``m x B x L`` lower ends of the intervals.
        upper: ``m x B x L`` upper ends.
        mean: ``m x B x L`` means.
        sigma: ``m x B x L`` standard deviations.
    """

    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor


Compare = Callable[[Tensor, Tensor], Comparison]
"""From rows and rivals to their comparison."""


@dataclass(frozen=True, eq=False)
class Judgement:
    r"""What the intervals say of ``R`` rows.

    A row is dominated where a rival exceeds it in every output, so its margin is ``min
    over rivals of max over outputs of g(row) - g(rival)``.

    Args:
        lower: ``R`` lower ends of the margins.
        upper: ``R`` upper ends; negative where a rival certainly exceeds the row.
        mean: ``R`` margins of the means; infinite for a row without rival.
        sigma: ``R`` standard deviations of the comparison that decides.
        threatened: ``R x L`` bools: the rival may exceed the row by ``epsilon`` in
            every output.
    """

    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor
    threatened: Tensor


def judge(
    rows: Tensor,
    rivals: Tensor,
    compare: Compare,
    epsilon: Tensor,
    budget: int,
    points: Tensor,
) -> Judgement:
    r"""Judge rows against rivals; a row is no rival of itself or of an equal one.

    Args:
        rows: ``R`` rows.
        rivals: ``L`` rows.
        compare: Their intervals.
        epsilon: ``m`` tolerances, units of the outputs.
        budget: Bytes for temporary arrays.
        points: ``N`` numbers, equal for equal rows.
    """
    per_row = _COPIES * epsilon.numel() * rivals.numel()
    parts = [
        _judged(
            compare(rows[block], rivals),
            epsilon,
            points[rows[block]].unsqueeze(-1) == points[rivals],
        )
        for block in row_blocks(rows.numel(), per_row, budget)
    ]
    lower, upper, mean, sigma, threatened = (
        torch.cat(part) for part in zip(*parts, strict=True)
    )
    return Judgement(lower, upper, mean, sigma, threatened)


def _judged(found: Comparison, epsilon: Tensor, own: Tensor) -> tuple[Tensor, ...]:
    ends = [
        end.amax(dim=0).masked_fill(own, torch.inf).amin(dim=1)
        for end in (found.lower, found.upper)
    ]
    best, output = found.mean.max(dim=0)
    mean, rival = best.masked_fill(own, torch.inf).min(dim=1)
    at = torch.arange(len(rival))
    sigma = found.sigma[output[at, rival], at, rival]
    tolerant = (found.lower + epsilon.view(-1, 1, 1)).amax(dim=0)
    return *ends, mean, sigma, (tolerant <= 0) & ~own


def sorted_out(belief: GPParetoBelief, found: Judgement) -> GPParetoBelief:
    r"""Sides and active rows after a judgement of the open rows against the live ones.

    Rows certainly exceeded are rejected first and threaten nobody any more: whatever
    they exceed, the row that exceeds them does too.
    """
    rows, rivals = belief.open, belief.live
    side = belief.side.clone()
    side[rows[found.upper < 0]] = BELOW
    remains = side[rivals] != BELOW
    is_open = side[rows] == UNDECIDED
    threatened = found.threatened[:, remains]
    accepted = is_open & ~threatened.any(dim=1)
    side[rows[accepted]] = ABOVE
    active = side == UNDECIDED
    needed = threatened[is_open & ~accepted].any(dim=0)
    active[rivals[remains][needed]] = True
    return replace(belief, side=side, active=active)


def with_margins(
    estimate: ParetoEstimate, rows: Tensor, found: Judgement
) -> ParetoEstimate:
    r"""The estimate with the margins of ``rows``; a single row keeps its own."""
    new = {
        "margin": found.mean,
        "margin_lower": found.lower,
        "margin_upper": found.upper,
        "margin_sigma": found.sigma,
    }
    has_rival = found.mean.isfinite()
    kept = {
        part.name: getattr(estimate, part.name).index_put(
            (rows[has_rival],), new[part.name][has_rival]
        )
        for part in fields(estimate)
        if part.name in new
    }
    return replace(estimate, **kept)


# --- strategies -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GPParetoStrategy(Strategy):
    r"""A strategy for the Pareto set of several outputs, each a Gaussian process.

    The outputs are independent given the data, and every measurement has all of them.

    Args:
        pool: The candidates.
        maximize: For each output, whether more is better.
        model: As in ``GPStrategy``: ``None``, a callable ``(train_X, train_Y,
            train_Yvar) -> fitted model`` of one output, or fixed hyper-parameters; or
            one of these per output.
        batch_size: Measurements per round.
        noise_std: The known noise standard deviation, or one per output, units of
            ``y``; per-row noise, the same in all outputs, stands in ``pool.noise_var``.
            Neither: the model's own, or learned. 0 is an exact measurement: a row
            measured so in all outputs is not measured again.
        delta: The failure probability of the theorem's widths.
        beta: ``None``: the theorem's schedule at ``delta``, its union bound taken over
            all outputs; a number or a schedule is a heuristic width that ignores
            ``delta`` and claims no confidence.
        epsilon: The accuracy, units of ``y``, one for all outputs or one for each.
        max_observations: Stop after so many measurements.
        max_repeats: How often one row may be measured.
        refit: Fit again every so many rounds, or a function of the number of complete
            rounds that says whether to. After a fit the whole past is judged again with
            the new hyper-parameters, so that rows may open again.
        n_initial: Measurements placed by maximal variance before the rule takes over,
            rounded up to whole rounds. Default 0 for fixed models, else ``2 (d + 1)``.
        memory_budget: Bytes for arrays over the pool and its pairs.

    Raises:
        ValueError: If a number is out of range, the noise is given twice or unknown, an
            argument has not one entry per output, or the pairs of the pool's rows do
            not fit the memory budget.
        UnsupportedError: If a model's posterior path is not exact.
    """

    _: KW_ONLY
    maximize: Sequence[bool]
    model: ModelArgument | Sequence[ModelArgument] = None
    batch_size: int = 1
    noise_std: float | Sequence[float] | None = None
    delta: float = 0.05
    beta: float | BetaSchedule | None = None
    epsilon: float | Sequence[float] = 0.0
    max_observations: int | None = None
    max_repeats: int | None = None
    refit: int | Callable[[int], bool] = 1
    n_initial: int | None = None
    memory_budget: int = MEMORY_BUDGET

    def __post_init__(self) -> None:
        self._check_rounds()
        object.__setattr__(self, "maximize", checked_directions(self.maximize))
        whole_number(self.batch_size, "batch_size", 1)
        in_interval(self.delta, "delta", 0.0, 1.0)
        if self.beta is not None:
            beta_schedule(self.beta)
        self.learning  # noqa: B018  (checks its numbers)
        checked_budget(self.memory_budget, len(self.pool), "one number per row")
        pairs = len(self.pool) ** 2
        if pairs > self.memory_budget:
            raise ValueError(
                "Expected a `pool` whose pairs fit `memory_budget` = "
                f"{self.memory_budget} bytes, but {len(self.pool)} rows need {pairs}. "
                "Give a larger budget or fewer rows."
            )
        for gp in self.gps:
            gp.check()
        assert len(self.gps) == len(self.tolerances)  # both are checked

    @property
    def directions(self) -> tuple[bool, ...]:
        r"""As given by ``maximize``."""
        return tuple(self.maximize)

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return len(self.maximize)

    @cached_property
    def signs(self) -> Tensor:
        r"""``m`` signs: ``signs * y`` is maximised."""
        return signs_of(self.maximize)

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row with their intervals."""
        check_state(self, state)
        found: ParetoEstimate = state.belief.estimate
        return found

    @cached_property
    def gps(self) -> tuple[GaussianProcess, ...]:
        r"""One model per output, with its noise."""
        models = _each(self.model, "model", self.m)
        stds = _each(self.noise_std, "noise_std", self.m)
        return tuple(
            GaussianProcess(self.pool, model, std)
            for model, std in zip(models, stds, strict=True)
        )

    @cached_property
    def learning(self) -> Learning:
        r"""When the models are learnt."""
        return Learning(
            self.pool,
            self.gps,
            self.refit,
            self.n_initial,
            self.max_observations,
            self.max_repeats,
        )

    @property
    def is_fixed(self) -> bool:
        r"""Whether all hyper-parameters are fixed."""
        return self.learning.is_fixed

    @property
    def initial_observations(self) -> int:
        r"""Measurements placed by maximal variance at first."""
        return self.learning.n_first

    @cached_property
    def tolerances(self) -> Tensor:
        r"""``m`` accuracies, one per output, in its units."""
        given = _each(self.epsilon, "epsilon", self.m)
        end = float("inf")
        found = [in_interval(e, "epsilon", 0.0, end, closed_low=True) for e in given]
        return torch.tensor(found, dtype=torch.float64)

    @cached_property
    def widths(self) -> BetaSchedule:
        r"""The squared widths by interval."""
        if self.beta is not None:
            return beta_schedule(self.beta)
        return UnionBeta(self.n_claims, self.delta)

    @cached_property
    def _judging(self) -> tuple[Tensor, int, Tensor]:
        r"""The last arguments of ``judge``."""
        return self.tolerances, self.memory_budget, points_of(self.pool.X)

    @property
    @abstractmethod
    def n_claims(self) -> int:
        r"""How many intervals must hold together in each round."""

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        if self.beta is not None:
            return "No confidence is claimed: the width is given; delta is ignored."
        if not self.is_fixed:
            return (
                f"With probability {1 - self.delta:g} {self._promise}, were the fitted "
                "hyper-parameters the true ones: the theorem does not cover fitting."
            )
        return (
            f"With probability {1 - self.delta:g} {self._promise}; assumes outputs "
            "drawn from the given Gaussian processes and independent Gaussian noise of "
            "the given variances (by a union bound as in Srinivas et al. 2012, Lemma "
            "5.1)."
        )

    @property
    @abstractmethod
    def _promise(self) -> str:
        r"""What holds with the stated probability."""

    @property
    def _up_to(self) -> str:
        parts = ", ".join(f"{e:g}" for e in self.tolerances.tolist())
        return parts if len(set(self.tolerances.tolist())) > 1 else parts.split(",")[0]

    # --- learning ---------------------------------------------------------------------

    def _start(self, seed: int) -> GPParetoBelief:
        if self.is_fixed:
            return self._prior_belief([o.fixed for o in self.gps])
        prior = unfitted_prior(self.pool.bounds)
        start = PoolPosterior.start(prior, self.pool.X, self.memory_budget)
        noise = torch.full((len(self.pool),), UNFITTED_NOISE, dtype=torch.float64)
        return self._blank((start,) * self.m, (noise,) * self.m)

    def _blank(
        self, posteriors: tuple[PoolPosterior, ...], noise: tuple[Tensor, ...]
    ) -> GPParetoBelief:
        N = len(self.pool)
        side = torch.full((N,), UNDECIDED, dtype=torch.int8)
        estimate = ParetoEstimate.unknown(N, self.m)
        none = torch.zeros(N, self.m, dtype=torch.bool)
        return GPParetoBelief(
            posteriors, side, side == UNDECIDED, estimate, noise, none
        )

    def _prior_belief(
        self, priors: Sequence[GPPrior | None], history: Observations | None = None
    ) -> GPParetoBelief:
        posteriors, noise = [], []
        for c, (output, prior) in enumerate(zip(self.gps, priors, strict=True)):
            assert prior is not None  # fixed or fitted
            posteriors.append(
                PoolPosterior.start(prior, self.pool.X, self.memory_budget)
            )
            yvar = None if history is None or history.yvar is None else history.yvar
            noise.append(output.new_noise(prior, None if yvar is None else yvar[:, c]))
        blank = self._blank(tuple(posteriors), tuple(noise))
        first = self._next(replace(blank, is_informed=True))
        if self.beta is None and self.is_fixed:
            return first
        # A width that no theorem gives decides nothing before there are data.
        return replace(first, side=blank.side, active=blank.active)

    def _next(self, belief: GPParetoBelief) -> GPParetoBelief:
        r"""After the next interval."""
        t = belief.n_intervals + 1
        return self._judged(replace(belief, n_intervals=t), self.widths(t) ** 0.5)

    @abstractmethod
    def _judged(self, belief: GPParetoBelief, root_beta: float) -> GPParetoBelief:
        r"""With estimates and sides after the interval ``belief.n_intervals``."""

    def _learn(
        self,
        belief: GPParetoBelief,
        new: Observations,
        history: Observations,
        seed: int,
    ) -> GPParetoBelief:
        n_rounds = belief.n_rounds + 1
        is_first = not self.is_fixed and belief.fitted_rounds < 0
        exactness = self._exactness(belief, history)
        if is_first and not self.learning.can_fit(history, exactness):
            first = belief.posteriors[0].observe(
                new.indices, 0.0 * new.y[:, 0], belief.noise[0][new.indices]
            )
            return replace(belief, posteriors=(first,) * self.m, n_rounds=n_rounds)
        if not self.is_fixed and self.learning.is_due(belief.fitted_rounds, n_rounds):
            priors = [
                output.fit(history.output(c), seed, n_rounds)
                for c, output in enumerate(self.gps)
            ]
            belief = self._prior_belief(priors, history)
            assert history.round is not None  # labelled by `tell`
            for label in history.round.unique().tolist():
                rows = (history.round == label).nonzero().view(-1)
                belief = self._observe(belief, history.select(rows))
            return replace(belief, fitted_rounds=n_rounds, n_rounds=n_rounds)
        return replace(self._observe(belief, new), n_rounds=n_rounds)

    def _observe(self, belief: GPParetoBelief, new: Observations) -> GPParetoBelief:
        posteriors = tuple(
            posterior.observe(
                new.indices,
                new.y[:, c],
                belief.noise[c][new.indices] if new.yvar is None else new.yvar[:, c],
            )
            for c, posterior in enumerate(belief.posteriors)
        )
        return self._next(replace(belief, posteriors=posteriors))

    def _complete(self, observations: Observations) -> Observations:
        observations = with_columns(observations, self.m)
        if observations.yvar is not None:
            return observations
        known = [output.known_noise for output in self.gps]
        if any(variances is None for variances in known):
            return observations
        yvar = torch.stack([v[observations.indices] for v in known], dim=-1)  # type: ignore[index]
        return replace(observations, yvar=yvar)

    # --- choosing ---------------------------------------------------------------------

    def _exactness(
        self, belief: GPParetoBelief, data: Observations
    ) -> tuple[Exactness, ...]:
        if belief.is_informed:
            both = zip(belief.posteriors, belief.noise, strict=True)
            return tuple(Exactness(float(p.least_noise), noise) for p, noise in both)
        columns = data.y.unbind(dim=-1) if data.y.ndim == 2 else (data.y,) * self.m
        return tuple(
            Exactness(least_of_values(y), output.known_noise)
            for y, output in zip(columns, self.gps, strict=True)
        )

    def _open_again(
        self, belief: GPParetoBelief, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        exactness = self._exactness(belief, data)
        return self.learning.repeats_left(exactness, data, pending, left)

    def _is_initial(self, belief: GPParetoBelief) -> bool:
        n = len(belief.posteriors[0].indices)
        return not belief.is_informed or n < self.initial_observations

    def _scores(self, belief: GPParetoBelief) -> Tensor:
        r"""``N`` scores of the rows in the units of the prior deviations."""
        shares = [p.variance / p.scale**2 for p in belief.posteriors]
        return torch.stack(shares).sum(dim=0)

    def _greedy(self, belief: GPParetoBelief, request: Request, rows: Tensor) -> Tensor:
        r"""The best rows by ``_scores`` one by one, each expected after its choice."""
        left = request.left.clone()
        chosen: list[int] = []
        belief = belief.expecting(request.pending)
        while len(chosen) < request.size:
            row = first_best(self._scores(belief), rows & (left > 0), 1.0)
            if row is None:
                break
            chosen.append(row)
            left[row] -= 1
            if len(chosen) < request.size:
                belief = belief.expecting(torch.tensor([row]))
        return torch.tensor(chosen, dtype=torch.long)

    # --- the answer -------------------------------------------------------------------

    def _forecast(self, state: State) -> Forecast:
        if not state.belief.is_informed:
            return Forecast(None, "No model has been fitted yet.")
        root_beta = self.widths(state.belief.n_intervals + 1) ** 0.5
        return pareto_forecast(state.belief, self._judged, root_beta)

    def _classification(self, belief: GPParetoBelief) -> Classification:
        answer = pareto_answer(
            belief.side, belief.estimate, self.guarantee, self.pool, belief.contradicted
        )
        if any(posterior.is_exact for posterior in belief.posteriors):
            return replace(answer, guarantee=f"{answer.guarantee} {TOLD}")
        return answer


def _each(value: object, name: str, m: int) -> tuple:  # type: ignore[type-arg]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (value,) * m
    if len(value) != m:
        raise ValueError(
            f"Expected `{name}` to be one, or one per output ({m}), but got "
            f"{len(value)}."
        )
    return tuple(value)


MultiOutputStrategy.register(GPParetoStrategy)  # type: ignore[type-abstract]


def pareto_forecast(
    belief: GPParetoBelief,
    judged: Callable[[GPParetoBelief, float], GPParetoBelief],
    root_beta: float,
) -> Forecast:
    r"""The smallest designed batch after which every open row is decided.

    Args:
        belief: Where the run stands; the means are taken to stay there.
        judged: The rule: from posteriors and a half width to sides.
        root_beta: The half width of the next intervals in standard deviations.
    """
    problems = belief.problems
    usable = torch.ones(len(belief.side), dtype=torch.bool)

    def suffices(n: int) -> bool:
        counts = relaxed_counts(problems, n, usable, TOLERANCE)
        ahead = belief.expecting(torch.arange(len(counts)).repeat_interleave(counts))
        return judged(ahead, max(root_beta - STRAY, 0.0)).open.numel() == 0

    return Forecast(
        smallest(suffices),
        "By the optimal design of one batch that decides every row at the current "
        "means and the width of the next round.",
    )
