r"""The algorithm that joins goal, model, rule and widths on Gaussian processes.

The goal says what is to be decided, the model the belief about each output, the
widths how far the truth may be from that, the rule which rows to measure next.
``GaussianAlgorithm`` joins them; it works with any goal and any rule.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import complaint, in_interval, kind_of, truth_value
from botorch_lse.confidence.anytime import RKHSWidth
from botorch_lse.confidence.audit import KNOWN, LEARNT, SIDE
from botorch_lse.confidence.calibration import (
    Calibration,
    CalibrationWarning,
)
from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.confidence.judges import Judge, LevelJudge
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.confidence.schedules import (
    BetaSchedule,
    ConstantBeta,
    UnionBeta,
    beta_schedule,
)
from botorch_lse.data.arguments import check_labels, first_of_each, points_of
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import Content
from botorch_lse.data.observations import Observations, derived
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.limits import moment_matched
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.goals.base import Goal, Intervals
from botorch_lse.goals.items import GaussianItems, ItemsAhead, moments
from botorch_lse.goals.one_sided import CLEAR, side_of_all
from botorch_lse.goals.outcome_levels import (
    in_units,
    on_latent_scale,
    trials_judge,
)
from botorch_lse.goals.regions import Region
from botorch_lse.models import correlated
from botorch_lse.models.gaussian_process import EXACT_NOTE, GPPrior, PoolPosterior
from botorch_lse.models.outcomes import Quantity
from botorch_lse.models.sources import NoiseOfSources
from botorch_lse.planning import Relaxation, relaxed_counts
from botorch_lse.planning.designed import TOLERANCE
from botorch_lse.rules.base import (
    Belief,
    Early,
    Rule,
    SelectionContext,
    Serves,
    is_informed,
    problems_of,
)
from botorch_lse.strategies.algorithm import (
    ALL_ABOVE,
    NONE_FOUND,
    OUT_OF_REACH,
    Algorithm,
    AlgorithmFacts,
    AuditFacts,
    Step,
    facts_for_audits,
    judge_of,
)
from botorch_lse.strategies.forecast import (
    LARGEST_BATCH,
    MOST_PLANNED,
    ROUGH,
    Forecast,
    most_worth_saying,
    observations_needed,
    planned_for_all,
    smallest,
)
from botorch_lse.strategies.row_forecast import (
    DESIGNED_ROWS,
    FORECAST_ROWS,
    LARGEST,
    rows_forecast,
    some_rows,
)
from botorch_lse.strategies.slips import found_slips, without
from botorch_lse.surrogate.draws import conservative_rows, content_draws
from botorch_lse.surrogate.evidence import Evidence
from botorch_lse.surrogate.outputs import GaussianProcesses, spread_over
from botorch_lse.surrogate.posterior import Posterior, row_means
from botorch_lse.surrogate.remarks import DataWarning, Remark, Slip

LEAST_SHARE = 0.5
"""The largest distance of the level from the data's mean for a learnt prior.
As a share of the width that decides. A row is then decided once the data have reduced
its variance to a quarter or so; with larger shares rows in gaps of the data, of which
nothing is known, are decided by the prior."""
PAIRED_ROWS = 256
"""The undecided rows that a forecast counts where a goal compares pairs of rows."""
BY_PLAN = (
    "By a plan for the undecided row of which least is known, each time, until the "
    "current means decide every row at the width of the next round."
)
"""The basis of the forecast for several outputs or levels, in words."""
ENDLESS = (
    "Noise, or {0.closest}, take most of them: ask for less by a larger {0.accuracy}, "
    "end by `max_observations`, or look for a wrong value."
)
"""The advice of a forecast that ended where no number is worth the wait, by facts."""
EDGES = (
    "Edges of classes take most of them: the map of the likeliest classes is good long "
    "before."
)
"""The same of classes, which have no ``epsilon``."""
ALL_EQUAL = "All values are equal, so that measuring a row again tells nothing more."
"""The sentence of an answer with undecided rows to which repeats add nothing."""
ONE_EQUAL = "All values of an output are equal, so that no row is measured again."
"""The same of several outputs."""
ADVICE = ("decades", "noise", "growing noise")
"""The kinds of remarks that nobody is warned of: the answer holds as it is."""
SO_FAR = {"below": NONE_FOUND, "above": ALL_ABOVE}
"""The stop reasons of a run whose values all lie on one side."""
BEFOREHAND = (
    "Measurements off the pool count as made before the run: assumed to be of the {}, "
    "at points that were chosen whatever its values."
)
"""The sentence of an answer that rests on a history; ``{}`` is what that is of."""
SPENT = 0.1
"""The share of the largest variance of usable rows below which others come first.
Rows below it are passed over where open rows may not be measured."""
MOST_FORESEEN = 1000
"""The largest number of rows whose exact values are foreseen, in the time of a fit.
They show whether more can be decided; a larger run is not found out of reach."""
STRAY = 0.5
"""The standard deviations by which the width of a forecast is reduced.
Estimates vary from round to round, and a row is decided the first time that its
interval clears the level, which is earlier than at a constant estimate."""


@dataclass(frozen=True, eq=False)
class GaussianAlgorithm(Algorithm):
    r"""The algorithm of a run on Gaussian processes.

    Args:
        pool: The rows that can be measured.
        items: The points to decide about: the pool itself, or points of their own.
        goal: The question about the items.
        rule: Which rows come next.
        model: What is believed of each output.
        batch_size: Measurements per round.
        delta: The failure probability of a theorem's widths.
        beta: The squared width by interval, if one was given; default the rule's own,
            or the theorem's at ``delta``.
        norm_bound: See ``GPStrategy``; if given, its widths replace the theorem's.
        level_z: See ``GPStrategy``.
        needs_both_sides: See ``GPStrategy``.
        forecasts_by_design: Whether forecasts use the optimal design for the targets
            of the batches, rather than a plan made row by row.
        learnt_width: The standard deviations beyond a level at which a fitted model
            decides, unless another width is given; ``None``: the theorem's.
        source: Where the theorem is published, for ``guarantee``.
        size_is_open: Whether ``ask`` may say how many measurements a batch has.
    """

    pool: Pool
    items: Pool
    goal: Goal
    rule: Rule
    model: GaussianProcesses
    batch_size: int
    delta: float
    beta: BetaSchedule | None = None
    norm_bound: float | None = None
    level_z: float | None = None
    needs_both_sides: bool = True
    forecasts_by_design: bool = False
    learnt_width: float | None = None
    source: str = "Gotovos et al. 2013, {theorem}"
    size_is_open: bool = False

    @classmethod
    def of(
        cls,
        strategy: Any,
        goal: Goal,
        rule: Rule,
        model: GaussianProcesses,
        items: Pool | None = None,
        **more: Any,
    ) -> Self:
        r"""The algorithm of a strategy: its pool, batches and widths with given parts.

        Args:
            strategy: One with ``pool``, ``batch_size``, ``delta`` and ``beta``.
            goal: The question, in the units of what is measured.
            rule: Which rows come next.
            model: What is believed of each output.
            items: What is to be decided; default the pool.
            more: Further arguments.
        """
        beta = strategy.beta
        return cls(
            strategy.pool,
            strategy.pool if items is None else items,
            on_latent_scale(goal, [own.outcome or own.scale for own in model.outputs]),
            rule.on(strategy.pool),
            model,
            strategy.batch_size or 1,
            strategy.delta,
            None if beta is None else beta_schedule(beta),
            forecasts_by_design=goal.by_pairs,
            size_is_open=strategy.batch_size is None,
            **more,
        )

    @cached_property
    def outcomes(self) -> tuple[Quantity | None, ...]:
        r"""The outcome that is measured of each output; ``None``: a number."""
        return tuple(output.outcome or output.scale for output in self.model.outputs)

    @cached_property
    def facts(self) -> AlgorithmFacts:  # type: ignore[override]
        r"""The facts: any rows teach, and there is a model."""
        return AlgorithmFacts(size_is_open=self.size_is_open, predicts=True)

    def check(self) -> None:
        r"""Complain if the parts do not fit each other.

        Raises:
            ValueError: If a number is out of range, the noise is given twice or
                unknown, a rule does not fit the goal, or pairs of items that must be
                kept do not fit the memory budget.
            UnsupportedError: If a model's posterior path is not exact.
        """
        in_interval(self.delta, "delta", 0.0, 1.0)
        if self.level_z is not None:
            in_interval(self.level_z, "level_z", 0.0, float("inf"))
        truth_value(self.needs_both_sides, "needs_both_sides")
        for output in self.model.outputs if self.model.burn_in is None else ():
            output.check()
            output.check_noise()
        self._check_norm_bound()
        self.goal.check(len(self.items))
        check_labels(self.goal, self.items)
        # Before the others: of their remedies some serve levels only.
        facts = self.goal.facts
        if facts.directions is not None and self.rule.serves < Serves.ANYTHING:
            raise ValueError(
                "Expected a `rule` for several outputs, such as `OptimalDesign()` or "
                f"`Variance()`, but got {type(self.rule).__name__}."
            )
        is_one_level = facts.n_outputs == 1 and facts.n_comparisons == 1
        if not is_one_level and self.rule.serves < Serves.REGION:
            raise ValueError(
                "Expected a `rule` for several levels or outputs, such as "
                "`ExpectedMisclassification()`, `Straddle()` or `OptimalDesign()`, but "
                f"got {kind_of(self.rule)}, which is about one level of one output."
            )
        self.rule.check(self.pool, self.goal)
        zero = torch.zeros(len(self.items), dtype=torch.float64)
        region = self.goal.region([zero] * facts.n_outputs)
        if not isinstance(region, ValueRegion | None):
            wanted = "whose `region` returns a ValueRegion, or None"
            came, remedy = f"got {kind_of(region)}", "Write `return Above(0.5).values`."
            raise ValueError(complaint("goal", wanted, came, remedy))
        if region is not None and region.n_outputs != facts.n_outputs:
            wanted = "whose `facts` have as many outputs as its region"
            came = f"got {facts.n_outputs} and {region.n_outputs}"
            remedy = "Give it `facts`: `GoalFacts(promise, n_outputs=2)`."
            raise ValueError(complaint("goal", wanted, came, remedy))
        n, budget = len(self.items), self.model.memory_budget
        needed = self.goal.bytes_for(n)
        if needed > budget:
            raise ValueError(
                f"Expected items whose pairs fit `memory_budget` = {budget} bytes, but "
                f"{n} need {needed}. Give a larger budget or fewer items; "
                f"{self.goal.without_pairs}."
            )

    def _check_norm_bound(self) -> None:
        if self.norm_bound is None:
            return
        if self.has_history:
            raise ValueError(
                "Expected no `norm_bound` with a `history`, because the norm is that "
                "in the space of the given kernel, and the kernel after the history is "
                f"another one, but got {written(self.norm_bound)}. Leave one of them "
                "out."
            )
        in_interval(self.norm_bound, "norm_bound", 0.0, float("inf"))
        if self.goal.facts.n_outputs > 1 and self.goal.facts.directions is None:
            raise ValueError(
                "Expected no `norm_bound` with a goal of several outputs, because it "
                f"bounds one function, but got {written(self.norm_bound)}. Leave it "
                "out: the widths are then those for draws from the given processes."
            )
        if not self.is_theorem:
            found = "other widths" if self.model.is_fixed else "no fixed `model`"
            raise ValueError(
                "Expected `norm_bound` with a fixed `model`, whose kernel defines the "
                f"norm, and a strategy with a theorem's widths, but got {found}. Leave "
                "`norm_bound` out."
            )

    # --- widths and what they promise -------------------------------------------------

    @cached_property
    def widths(self) -> BetaSchedule:
        r"""The schedule of squared widths: given, the rule's own, or the theorem's."""
        for schedule in (self.beta, self.rule.intervals.width):
            if schedule is not None:
                return schedule
        if self.width_of_fitted is not None:
            return ConstantBeta(self.width_of_fitted**2)
        return UnionBeta(self.goal.n_claims(len(self.items)), self.delta)

    def width_of(self, t: int, posterior: PoolPosterior) -> float:
        r"""The squared width of interval ``t``.

        Args:
            t: The interval's index, 1 for the prior's.
            posterior: The posterior that the interval is around.
        """
        if self.norm_bound is None:
            return self.widths(t)
        # Noise scale and ridge are 1 because the posterior has each row's own noise.
        width = RKHSWidth(self.norm_bound, 1.0, 1.0, self.delta)
        return float(width.from_information(posterior.information)) ** 2

    @property
    def claims_confidence(self) -> bool:
        r"""Whether the widths are a theorem's, and the noise is not estimated."""
        is_other = self._has_given_width or self.width_of_fitted is not None
        return not is_other and self.model.burn_in is None

    @property
    def _has_given_width(self) -> bool:
        return self.beta is not None or self.rule.intervals.width is not None

    @property
    def width_of_fitted(self) -> float | None:
        r"""The standard deviations at which a fitted model decides, if these do."""
        is_fitted = not self.model.is_fixed and self.model.burn_in is None
        return self.learnt_width if is_fitted and not self._has_given_width else None

    @cached_property
    def is_theorem(self) -> bool:
        r"""Whether a theorem gives the widths, which needs fixed hyper-parameters."""
        is_fixed = self.model.is_fixed and not self.model.has_outcomes
        return self.claims_confidence and is_fixed

    @cached_property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, in words."""
        burn_in = self.model.burn_in
        if burn_in is not None and self.beta is None:
            return (
                "No confidence is claimed: the widths are those of Gotovos et al. "
                f"(2013), {self.goal.theorem}, at delta = {written(self.delta)}, but "
                f"the noise variances are estimates from {burn_in.n} measurements."
            )
        if self.width_of_fitted is not None:
            claim = (
                "No confidence is claimed, as no theorem covers a fitted model: rows "
                f"are decided at {written(self.width_of_fitted)} of its standard "
                "deviations, a width tried on known functions; delta is ignored."
            )
        elif not self.claims_confidence:
            width = "the rule's own" if self.beta is None else "given, not derived"
            claim = f"No confidence is claimed: the width is {width}; delta is ignored."
        else:
            claim = self._claim
        if self.has_history:
            of = "same function"
            if self.model.layout.has_sources:
                known = "given" if self.model.is_fixed else "learnt"
                of = f"source that they name, whose relation to the target is {known}"
            claim = f"{claim} {BEFOREHAND.format(of)}"
        return claim if self.model.is_fixed else f"{claim} {self._learnt_in_words}"

    @property
    def has_history(self) -> bool:
        r"""Whether there are measurements that were made before the run."""
        return any(output.history is not None for output in self.model.outputs)

    @property
    def _claim(self) -> str:
        claim = f"With probability {written(1 - self.delta)} {self.goal.facts.promise}"
        source = self.source.format(theorem=self.goal.theorem)
        if self.norm_bound is not None:
            return (
                f"{claim}; assumes f less the prior mean of norm at most "
                f"{written(self.norm_bound)} in the space of the given kernel, and "
                "noise that, given the past, is sub-Gaussian with at most the given "
                "variance (Chowdhury and Gopalan 2017, Theorem 2)."
            )
        if not self.model.is_fixed:
            return (
                f"{claim}, were the fitted hyper-parameters the true ones: the theorem "
                f"({source}) does not cover fitting."
            )
        if self.model.has_outcomes:
            return (
                f"{claim}, were the posteriors of latent functions normal, as they are "
                "approximated; assumes that these functions are drawn from the given "
                f"Gaussian processes, and independent results ({source})."
            )
        drawn = "f drawn from the given Gaussian process"
        if self.model.together is not None:
            drawn = "outputs drawn together from the given Gaussian process"
        elif len(self.model.outputs) > 1:
            drawn = "outputs drawn from the given, independent Gaussian processes"
        return (
            f"{claim}; assumes {drawn} and independent Gaussian noise of the given "
            f"variance ({source})."
        )

    @property
    def _learnt_in_words(self) -> str:
        r"""The sentences that a guarantee adds where the model is fitted."""
        levels = "levels are" if self.goal.facts.n_comparisons > 1 else "level is"
        raised = f", whose scale was raised so that the {levels} plausible"
        raises = self.level_z is not None and not self.goal.facts.seeks_best
        raises &= not self.model.has_outcomes
        words = (
            f"Decided under the fitted model{raised if raises else ''}. No "
            "guarantee if the function varies faster elsewhere than where it was "
            "measured."
        )
        n, model = self.model.n_deciding(), self.model
        if n < (wanted := max(model.wanted, model.wanted_to_decide)):
            words += (
                f" Decisions begin after {n} measurements in place of {wanted}, as the "
                "budget allows no more, and are less sure."
            )
        return words

    # --- items ------------------------------------------------------------------------

    @cached_property
    def item_rows(self) -> Tensor:
        r"""The rows of the posterior that are items: the last ones, or the target's."""
        n = len(self.model.rows)
        if self.items is self.model.layout.items:
            return torch.arange(n)[self.model.layout.decided]
        return torch.arange(n - len(self.items), n)

    def seen(
        self, fits: Posterior, regions: tuple[Regions, ...], beta: float
    ) -> Intervals:
        r"""The goal's view of the posteriors and regions."""
        belief = GaussianItems(fits.posteriors, self.item_rows, beta)
        return Intervals(regions, self.item_rows, self.points, belief)

    @cached_property
    def points(self) -> Tensor:
        r"""The point number of each of the ``T`` items, equal for equal points."""
        if self.items is self.pool or self.model.points is not None:
            return self.model.row_points
        return points_of(self.items.X)

    @cached_property
    def _is_first_copy(self) -> Tensor:
        return first_of_each(self.points)

    @cached_property
    def _weights(self) -> Tensor | None:
        r"""The weights of the posterior's rows as items, if items have weights."""
        if self.items.weights is None:
            return None
        first = self._is_first_copy.nonzero().view(-1)
        # Only the first of several copies is looked at: it stands for all of them.
        _, place = torch.unique(self.points, return_inverse=True)
        of_points = torch.zeros(len(place), dtype=torch.float64)
        of_points.index_add_(0, place, self.items.mass)
        found = torch.zeros(int(self.item_rows.max()) + 1, dtype=torch.float64)
        found[self.item_rows[first]] = of_points[place[first]]
        return found

    # --- before data ------------------------------------------------------------------

    def start(self, seed: int) -> Belief:
        r"""The belief before any observation.

        Args:
            seed: The run's seed; not used, since nothing here is random.
        """
        fits = self.model.start()
        belief = (
            self._prior_belief(fits)
            if fits.is_informed
            else self._uninformed_belief(fits)
        )
        return _warned(belief, replace(belief, remarks=self._evidence.before))

    def _prior_belief(self, fits: Posterior) -> Belief:
        r"""The belief of given or fitted processes before any observation.

        Only a theorem's width decides anything here.
        """
        beta = self.width_of(1, fits.posteriors[0])
        regions = tuple(
            Regions.of_interval(
                *moments(posterior, self.item_rows, self.points), beta, self.items
            )
            for posterior in fits.posteriors
        )
        sides, seen = self.goal.start(len(self.items)), self.seen(fits, regions, beta)
        if self.is_theorem and self.rule.intervals.decides_before_data:
            sides = self.goal.update(sides, seen)
        else:  # estimates by the prior, which must not decide anything
            sides = self.goal.update(sides, seen)
            sides = self.goal.reopened(sides, torch.ones_like(sides.candidates))
        memory = self.rule.start(fits.posteriors[0], beta)
        n = 1 + fits.more_looks
        return Belief(fits, regions, sides, n, memory=memory)

    def _uninformed_belief(
        self, fits: Posterior, history: Observations | None = None
    ) -> Belief:
        r"""The belief while there is no model: infinite intervals around the mean."""
        mean = torch.zeros(len(fits.posteriors)).double()
        if history is not None:
            values = [own.y for own in fits.layout.by_output(history)]
            mean = torch.stack([y.mean() if len(y) else y.sum() for y in values])
        level = [value.expand(len(self.items)) for value in mean]
        regions = tuple(Regions.unknown(value, self.items) for value in level)
        sides, memory = self.goal.start(len(self.items)), self.rule.start(None, 0.0)
        n = 1 + fits.more_looks
        return Belief(fits, regions, sides, n, memory=memory)

    # --- learning ---------------------------------------------------------------------

    def complete(self, observations: Observations) -> Observations:
        r"""The observations with the noise variances that are known beforehand."""
        return self.model.complete(observations)

    def learn(self, belief: Belief, step: Step) -> Belief:
        r"""The belief after one more complete round."""
        new, history = step.new, step.history
        if self.model.has_scales:
            new, history = map(self.model.on_scale, (new, history))
        more = step.looks - 1  # somebody may have seen as many intervals
        looked = replace(belief.fits, more_looks=belief.fits.more_looks + more)
        belief = replace(belief, fits=looked, n_intervals=belief.n_intervals + more)
        fits = self.model.count_round(looked, new)
        believed = without(history, belief.slips)  # a slip says nothing of the noise
        refuted = self.model.refuted(believed)
        floors = self.model.floors(refuted, believed)
        pairs = zip(floors, fits.floors, strict=False)
        is_same_noise = len(floors) == len(fits.floors)
        is_same_noise &= all(torch.equal(*pair) for pair in pairs)
        fits = replace(fits, floors=floors)
        unseen, is_fixed = self.model.unseen, self.model.is_fixed
        is_complete = not (is_fixed or bool(unseen(history.indices, belief.lost).any()))
        slips = belief.slips
        if not self.model.allows_answers(fits, history, belief.lost, is_complete):
            located = self.model.with_locations(fits, new.indices)
            learnt = self._uninformed_belief(located, history)
            if self.model.allows_early_fit(history):
                learnt = replace(learnt, early=Early(self, fits, history, step.seed))
        elif (
            not is_same_noise
            or self.model.restarts(fits, len(history))
            or self._is_answered(belief, new)
        ):
            refitted = partial(self._refitted, fits, seed=step.seed)
            given = self.model, refitted, self.calibration, history
            learnt, slips = found_slips(*given)
        else:
            learnt = self.observe(replace(belief, fits=fits), new)
        if slips:
            learnt = self._doubting(learnt, history, slips)
        if self.is_theorem:  # a heuristic width claims nothing to be refuted
            for now, then in zip(learnt.all_regions, belief.all_regions, strict=True):
                newly = now.contradicted & ~then.contradicted
                warn_if_empty(replace(now, contradicted=newly), self.guarantee)
        used = without(history, slips)
        if learnt.fits.is_informed and not self.model.is_fixed:
            wanted = self.model.n_deciding(history.yvar is not None)
            is_early = not is_complete and len(history) < wanted
            learnt = self._withheld(learnt, used, is_complete, is_early)
        told = refuted, believed, used, history
        remarks = self._evidence.remarks(learnt.fits, *told)
        for slip in slips:
            is_doubted = bool((learnt.doubted == slip.row).any())
            remarks = (*remarks, slip.remark(not is_doubted))
        if self.model.has_scales:
            remarks = self._evidence.in_units(remarks)
        learnt = replace(
            learnt,
            memory=self.rule.measured(belief.memory, learnt.memory, new.measured),
            ahead=self._ahead(belief, new),
            lost=belief.lost,
            is_alike=not self.model.is_fixed and self.model.are_alike(history),
            remarks=remarks,
        )
        learnt = _warned(belief, learnt)
        if learnt.is_refuted:
            every = torch.ones_like(learnt.sides.candidates)
            learnt = replace(learnt, sides=learnt.sides.reopened(every))
        if learnt.is_contradicted and not belief.is_contradicted:
            warnings.warn(learnt.contradiction, CalibrationWarning, stacklevel=2)
        return learnt

    def fitted_early(self, early: Early) -> Belief:
        r"""The belief under a model of the first values, which decides nothing."""
        found = self._refitted(early.fits, early.history, early.seed)
        every = torch.ones_like(found.sides.candidates)
        return replace(found, sides=found.sides.reopened(every))

    def shown(self, belief: Belief) -> Belief:
        r"""The belief that answers rest on: by a model of the first values, if any."""
        if belief.early is None:
            return belief
        return replace(belief.early.belief, early=belief.early, remarks=belief.remarks)

    def _refitted(self, fits: Posterior, history: Observations, seed: int) -> Belief:
        r"""The belief of a new model after all observations.

        The intervals of earlier rounds are computed by the new model afterwards, and
        add no evidence. So only its last interval decides, unless goal or rule need
        every round.
        """
        assert history.round is not None  # labelled by `tell`
        fits = self.model.restarted(fits, history, seed, self._with_raised_scale)
        measured = self.model.as_measured(fits, history)
        labels, found = history.round.unique(), self._prior_belief(fits)
        if not self.rule.intervals.by_round:
            found = self._after_values(found, measured, labels.numel())
        for label in labels.tolist() if self.rule.intervals.by_round else ():
            rows = (history.round == label).nonzero().view(-1)
            found = self.observe(found, measured.select(rows))
        return replace(found, fits=self.model.after_results(found.fits))

    def _doubting(
        self, learnt: Belief, history: Observations, slips: tuple[Slip, ...]
    ) -> Belief:
        r"""The belief without slips, whose rows stay open until remeasured.

        Args:
            learnt: What is believed without them.
            history: All observations.
            slips: Values that are left out.
        """
        used = without(history, slips).indices
        rows = torch.tensor(sorted({slip.row for slip in slips}))
        points = self.model.row_points
        doubted = rows[~torch.isin(points[rows], points[used])]
        sides = self.goal.reopened(learnt.sides, self._items_of(doubted))
        return replace(learnt, slips=slips, doubted=doubted, sides=sides)

    def _is_answered(self, belief: Belief, new: Observations) -> bool:
        r"""Whether a row was measured again whose value the last fit left out."""
        points = self.model.row_points
        return bool(torch.isin(points[belief.doubted], points[new.indices]).any())

    def _items_of(self, rows: Tensor) -> Tensor:
        r"""The items that rows measure, if the items are the candidates (bools)."""
        # Of items that are no rows none is found: their places come after all rows.
        return torch.isin(self.item_rows, self.model.layout.at(rows))

    @cached_property
    def _evidence(self) -> Evidence:
        return Evidence(self.model, self._levels_near, self.norm_bound)

    def remarks(self, belief: Belief) -> tuple[Remark, ...]:
        r"""Remarks on the told values that a fitted model does not make itself."""
        return belief.remarks

    def lose(
        self, belief: Belief, rows: Tensor, history: Observations, seed: int
    ) -> Belief:
        r"""The belief once rows were used up without a result, or excluded.

        One does not wait for them to see all rows on one side, nor to learn a model.
        """
        belief = replace(belief, lost=torch.cat((belief.lost, rows)).unique())
        if bool(self.model.unseen(belief.fits.measured, belief.lost).any()):
            return belief
        fits = belief.fits
        if not (fits.is_informed or fits.learns_noise) and len(history):
            return self.learn(belief, Step(history.select(rows[:0]), history, seed))
        if belief.held_back is None:
            return belief
        sides = belief.held_back
        belief = replace(belief, one_sided=None, is_early=False)
        return replace(belief, sides=sides, held_back=None)

    def _ahead(self, belief: Belief, new: Observations) -> tuple[Tensor, ...]:
        r"""The residuals of all values from their predictions, with a new round's.

        Args:
            belief: The belief before the round.
            new: The round's observations.
        """
        fits = belief.fits
        if not fits.is_informed or fits.learns_noise or belief.is_early:
            return belief.ahead
        found = self.model.surprises(fits, new)
        before = belief.ahead or tuple(values[:0] for values in found)
        return tuple(torch.cat(both) for both in zip(before, found, strict=True))

    def _with_raised_scale(
        self, output: int, prior: GPPrior, history: Observations
    ) -> GPPrior:
        r"""The fitted process, its scale raised until the level is plausible.

        Plausible means: within ``level_z`` prior standard deviations of the mean of the
        values. A process fitted to data far from the level would otherwise be sure of
        regions that were never measured.

        Args:
            output: The number of the output.
            prior: Its fitted process.
            history: Its values.
        """
        if self.level_z is None:
            return prior
        layout = self.model.layout
        history, X = layout.of_target(history), self.model.candidates.X[layout.decided]
        if len(history) == 0:
            return prior
        (values, _), y = row_means(history, torch.zeros_like(history.y)), history.y
        before = self.model.outputs[output]
        if before.history is not None:
            past = before.history.y[before.of_target]
            values, y = torch.cat((values, past)), torch.cat((y, past))
        levels = self._levels_near(output, values)
        if not levels:
            return prior
        # The width after one round; later ones grow.
        decides = self.widths(2) ** 0.5
        z = min(self.level_z, LEAST_SHARE * decides)
        if z == 0:
            return prior
        centre = float(y.mean())
        farthest = max(abs(level - centre) for level in levels)
        if farthest > 0 and self.model.outputs[output].are_alike(history):
            # Such values say nothing of a scale: a fit takes 1 for it, in any units.
            return prior.in_scale(farthest / z, X)
        return prior.at_least(farthest / z, X)

    def _levels_near(self, output: int, values: Tensor) -> list[float]:
        r"""The levels of an output that a fitted model must hold plausible.

        Args:
            output: The number of the output.
            values: The mean of each measured row.
        """
        region = self.goal.region([values] * self.goal.facts.n_outputs)
        if region is None or self.goal.facts.seeks_best:
            return []
        return region.levels_near(output, float(values.mean()))

    def _withheld(
        self, belief: Belief, history: Observations, is_complete: bool, is_early: bool
    ) -> Belief:
        r"""The belief, undecided while it is too early or all data lie on one side.

        Only for a fitted model, and until every row was measured that can be.
        """
        side, history = None, self.model.layout.of_target(history)
        may_be = self.needs_both_sides and not self.goal.facts.seeks_best
        # An answer of yes or no lies on no side; both were seen, or there is no model.
        if may_be and not is_complete and not self.model.has_outcomes:
            fits = belief.fits
            priors = [posterior.prior for posterior in fits.posteriors]
            # Of noise that is a guess the least that the values allow: they lie where
            # they lie, and a value is not taken for one of the other side.
            noise = [
                noise
                if prior.noise_between is None
                else noise.clamp_max(prior.noise_between[0])
                for noise, prior in zip(fits.noise_of(history), priors, strict=True)
            ]
            before = [
                (
                    output.history.y[output.tells_sides],
                    output.noise_of_history(prior)[output.tells_sides],
                )
                for output, prior in zip(self.model.outputs, priors, strict=True)
                if output.history is not None
            ]
            side = side_of_all(fits.layout.by_output(history), noise, self.goal, before)
        belief = replace(belief, one_sided=side, is_early=is_early, held_back=None)
        return belief if side is None and not is_early else self._held_back(belief)

    def _held_back(self, belief: Belief) -> Belief:
        r"""The belief in which nothing is decided, and what it would decide."""
        every = torch.ones_like(belief.sides.candidates)
        none = belief.sides.reopened(every)
        return replace(belief, sides=none, held_back=belief.sides)

    def observe(self, belief: Belief, new: Observations) -> Belief:
        r"""The belief after the values of one more round, with the same model."""
        return self._after_values(belief, new, 1)

    def knowing_limits(
        self, belief: Belief, rows: Tensor, limits: Tensor, sign: Tensor
    ) -> Belief:
        r"""The belief that also knows limits of single values; no fit sees them.

        Where doubtful values hold decisions back, these stay so. That all values lie on
        one side of the level ends with a limit by which a row lies clearly beyond it.

        Args:
            belief: After all values, of one output.
            rows: ``k`` different rows, in order.
            limits: ``k`` limits of their values.
            sign: ``k`` numbers: 1 where the value is below its limit, -1 above.
        """
        if not belief.fits.is_informed or belief.is_refuted or belief.slips:
            return belief
        if (scale := self.model.outputs[0].scale) is not None:
            limits = scale.latent(limits)
        posterior, noise = belief.posterior, belief.fits.noise[0][rows]
        S = posterior.covariance_between(rows, rows)
        told, y, yvar = moment_matched(posterior.mean[rows], S, noise, limits, sign)
        found = self._after_values(belief, Observations(rows[told], y, yvar), 0)
        now = found.posterior
        mean, error = now.mean[rows], CLEAR * now.sigma[rows]
        region = self.goal.region([now.mean])
        if belief.one_sided is not None and region is not None:
            side = region.at(rows).sides_between([mean - error], [mean + error])
            other = BELOW if belief.one_sided.side == "above" else ABOVE
            if not bool((side == other).any()):
                return belief
        found = replace(found, one_sided=None, held_back=None)
        return self._held_back(found) if belief.is_early else found

    def _after_values(
        self, belief: Belief, new: Observations, n_intervals: int
    ) -> Belief:
        r"""The belief after new values.

        Args:
            belief: Before.
            new: The values.
            n_intervals: How many rounds they come from. The width grows with that, but
                only the interval after the last of them decides.
        """
        fits, t = belief.fits.observing(new), belief.n_intervals + n_intervals
        posterior = fits.posteriors[0]
        beta = self.width_of(t, posterior)
        belief = replace(belief, fits=fits, n_intervals=t)
        belief = self._with_regions(belief, self.rule.width(belief.memory, beta), beta)
        sides = belief.sides
        if not self.is_theorem:
            seen = self.seen(fits, belief.all_regions, beta)
            sides = sides.reopened(self._sure_by_prior_alone(fits, seen))
        open_sigma = posterior.sigma[self.item_rows][sides.candidates]
        widest = float(open_sigma.max()) if open_sigma.numel() else None
        memory = self.rule.judged(belief.memory, widest, beta)
        return replace(belief, sides=sides, memory=memory)

    def _with_regions(self, belief: Belief, width: float, beta: float) -> Belief:
        r"""The belief with new regions, and the sides that they decide.

        Sides always agree with their regions: a row whose intervals contradict each
        other is decided by the current one alone, again in every round.

        Args:
            belief: With the present posteriors.
            width: The squared width of the new interval.
            beta: The squared width by the schedule, for differences of items.
        """
        fits, past, goal = belief.fits, belief.all_regions, self.goal
        is_lasting = self.model.is_fixed
        own = self.item_rows, self.points
        each = [moments(posterior, *own) for posterior in fits.posteriors]
        if self.rule.intervals.intersects and is_lasting:
            pairs = zip(past, each, strict=True)
            regions = tuple(r.intersect(*parts, width) for r, parts in pairs)
        else:
            last = (Regions.of_interval(*parts, width, self.items) for parts in each)
            regions = tuple(
                replace(new, contradicted=old.contradicted)
                for new, old in zip(last, past, strict=True)
            )
        start = goal.start(len(self.items))
        stay = self.rule.intervals.is_monotone and is_lasting
        before = belief.sides if stay else start
        contradicted = torch.stack([r.contradicted for r in regions]).any(dim=0)
        if bool(contradicted.any()):
            before = goal.reopened(before, contradicted)
        seen = self.seen(fits, regions, beta)
        sides = goal.update(before, seen)
        against = goal.against(sides, seen)
        if bool(against.any()):
            # Possible where intervals are not intersected, or decide rows together.
            first = regions[0]
            first = replace(first, contradicted=first.contradicted | against)
            regions = (first, *regions[1:])
            sides = goal.update(start, replace(seen, all_regions=regions))
        return replace(belief, all_regions=regions, sides=sides)

    def _sure_by_prior_alone(self, fits: Posterior, seen: Intervals) -> Tensor:
        r"""The items that only the prior decides, not the data (``T`` bools).

        The prior by itself would decide them, and the data have hardly reduced their
        variance.

        Args:
            fits: The posteriors.
            seen: The belief about the items.
        """
        items, unsure = self.item_rows, []
        # Of a share of the maximum the level itself has bounds.
        is_by_region = type(self.goal).update in (Goal.update, Region.update)
        region = self.goal.region(seen.mean)
        if region is None or not is_by_region:
            return torch.zeros(len(items), dtype=torch.bool)
        for output, posterior in enumerate(fits.posteriors):
            # Of what was measured before the run the data are a part.
            mean, prior = posterior.before_history(items)
            half = (self.width_of(1, posterior) * prior).sqrt()
            sure = region.ruled_out(output, mean - half, mean + half)
            unsure.append(sure & ~is_informed(posterior, items))
        return region.depends_on(seen.lower, seen.upper, unsure)

    # --- choosing ---------------------------------------------------------------------

    def round_size(self, belief: Belief, room: int | None) -> int:
        r"""The batch size, or ``room`` if the budget allows no more."""
        return self.batch_size if room is None else min(self.batch_size, room)

    def plan(self, belief: Belief, request: PlanRequest) -> Tensor:
        r"""The rows to measure next, replicates included; see ``Algorithm.plan``."""
        # Where the target may be on the other side, other sources tell.
        if belief.one_sided is not None and not self.model.layout.has_sources:
            # While all data lie on one side of the level, the unfitted model plans,
            # which looks far from all measured rows: a model fitted to such data may
            # have lengthscales that are much too long.
            start = self.model.unfitted_start()
            fits = self.model.with_locations(start, belief.fits.measured)
            fits = replace(fits, has_known_noise=belief.fits.has_known_noise)
            belief = replace(belief, fits=fits)
        burn_in, data = self.model.burn_in, belief.fits.burn_in
        if burn_in is not None and data is not None and data.variances is None:
            given = (request.size, request.left, request.pending)
            counts = burn_in.plan(data, *given)
            return torch.arange(len(counts)).repeat_interleave(counts)
        # What is asked about a value that may be a slip is answered by one more.
        is_asked = request.left[belief.doubted] > 0
        is_asked &= ~torch.isin(belief.doubted, request.pending)
        again = belief.doubted[is_asked][: request.size]
        if len(again) == request.size:
            return again
        if len(again):
            request = request.after(again)
        # The rule chooses beside repeats that estimate the noise.
        repeats = self.model.repeats_due(belief.fits, request)
        rows = self._by_rule(belief, replace(request, size=request.size - repeats))
        if repeats:
            rest = request.after(rows)
            known = torch.cat((belief.fits.measured, rest.pending))
            rows = torch.cat((rows, spread_over(known, rest.left, repeats)))
            # Fewer may have been measured just once: new ones take the places.
            if len(rows) < request.size:
                more = self._by_rule(belief, request.after(rows))
                rows = torch.cat((rows, more))
        return torch.cat((again, rows))

    def _by_rule(self, belief: Belief, request: PlanRequest) -> Tensor:
        r"""The rows that the rule chooses, new rows first where only these tell more.

        A fitted model waits for values on both sides of the level, or for values that
        differ; the variance alone would repeat rows before all were seen. Until it may
        decide, each point is measured once.
        """
        # One more answer at a row tells little of where the others are another one.
        is_first = self.model.has_outcomes and not belief.fits.is_informed
        if belief.is_early or is_first or self._waits(belief):
            seen = torch.cat((belief.fits.measured, request.pending))
            unseen = self.model.unseen(seen, belief.lost)
            left = request.left.clamp_max(1) * unseen
        elif self.items is self.pool and not isinstance(self.goal, Region):
            left = request.left.masked_fill(self._spent(belief, request.left), 0)
        else:
            left = request.left
        context = self.context(belief, request.pending)
        rows = self.rule.rows(context, replace(request, left=left))
        if len(rows) == request.size or torch.equal(left, request.left):
            return rows
        rest = request.after(rows)
        more = self.rule.rows(self.context(belief, rest.pending), rest)
        return torch.cat((rows, more))

    def _spent(self, belief: Belief, left: Tensor) -> Tensor:
        r"""The rows known so well that others come first (``N`` bools).

        Where open rows may not be measured, items that are compared with each other may
        depend on them, and a rule that looks at each row by itself would stay with one.
        """
        rows, usable = torch.arange(len(left)), self.open_rows(belief) & (left > 0)
        if bool((usable | (belief.sides.side != UNDECIDED)).all()):
            return torch.zeros_like(usable)
        found = torch.isin(rows, belief.fits.measured)
        for posterior in belief.fits.posteriors:
            variance = posterior.variance[rows]
            found &= variance < SPENT * (variance * usable).max()
        return found

    def _waits(self, belief: Belief) -> bool:
        r"""Whether the initial design is complete but there is nothing to decide by.

        Because all values lie on one side, or none of them differs from the others.
        """
        if belief.one_sided is not None or belief.is_refuted:
            return True
        fits = belief.fits
        is_first = len(fits.measured) < self.model.n_first or fits.learns_noise
        return not (fits.is_informed or is_first)

    def context(self, belief: Belief, pending: Tensor) -> SelectionContext:
        r"""The context from which the rule chooses rows.

        Args:
            belief: The belief after the complete rounds.
            pending: Rows that are being measured; their variances count as reduced.
        """
        fits = belief.fits.expecting(pending)
        return SelectionContext(
            belief,
            fits,
            self.goal,
            self.item_rows,
            self.width_of(belief.n_intervals, fits.posteriors[0]),
            self.open_rows(belief),
            self.model.is_initial(belief.fits),
            self._is_first_copy,
            self.points,
            self._weights,
        )

    def open_rows(self, belief: Belief) -> Tensor:
        r"""The rows from which the rule may choose (``N`` bools)."""
        if self.rule.only_candidates and not self.model.is_initial(belief.fits):
            return belief.fits.layout.by_row(belief.sides.candidates)
        return torch.ones(len(self.pool), dtype=torch.bool)

    def usable(self, belief: Belief, request: PlanRequest) -> Tensor:
        r"""The measurements that may be planned and can tell more (``N`` counts).

        Where all values are the same, noise that is learnt from them included, repeats
        cannot, nor can they where the model does not fit what was measured.
        """
        counts = request.left.clamp_max(request.size) * self.open_rows(belief)
        fits = belief.fits
        is_alike = belief.is_alike and fits.is_informed and not fits.has_known_noise
        if is_alike or belief.is_refuted:
            counts = counts * self.model.unseen(belief.fits.measured, belief.lost)
        return counts

    def limit(self, belief: Belief, left: Tensor, reason: str | None) -> str | None:
        r"""The reason to end a run that goes no further; see ``Algorithm.limit``.

        With all values on one side it says so.
        """
        if reason is None and self._is_out_of_reach(belief, left):
            reason = OUT_OF_REACH
        if reason is None or belief.one_sided is None:
            return reason
        return SO_FAR[belief.one_sided.side]

    def _is_out_of_reach(self, belief: Belief, left: Tensor) -> bool:
        r"""Whether no measurement of the rows left can decide anything more.

        If the usable rows' values were known exactly, the variance ``v`` of an item
        would become ``w``, and its mean would move by at most ``r = sqrt(beta (v -
        w))``, if its intervals hold. A new interval of half width ``sqrt(beta w)``
        around any mean within ``r`` decides no more than one of ``sqrt(beta w) - r``
        around the present mean: nothing is out of reach that this one decides. This
        holds under the present model and width; a width that grows decides less.
        """
        usable = self.open_rows(belief) & (left > 0)
        if bool(usable.all()) and self.items is self.pool:
            return False
        is_asked_about = bool((left[belief.doubted] > 0).any())
        if is_asked_about or not self.can_estimate(belief):
            return False
        if int(usable.sum()) > MOST_FORESEEN or self._is_any_open_usable(
            belief, usable
        ):
            return False
        fits, goal = belief.fits, self.goal
        exact = tuple(torch.zeros_like(noise) for noise in fits.noise)
        rows = usable.nonzero().view(-1)
        ahead = replace(fits, noise=exact).expecting(rows)
        beta = self.width_of(belief.n_intervals, belief.posterior)
        width = self.rule.width(belief.memory, beta)
        regions = []
        for past, now, then in zip(
            belief.all_regions, fits.posteriors, ahead.posteriors, strict=True
        ):
            mean, sigma = moments(now, self.item_rows, self.points)
            _, left_over = moments(then, self.item_rows, self.points)
            moves = (sigma.square() - left_over.square()).clamp_min(0.0).sqrt()
            least = (left_over - moves).clamp_min(0.0)
            last = Regions.of_interval(mean, least, width, self.items)
            low = past.lower.maximum(last.lower)
            high = past.upper.minimum(last.upper)
            holds = (low <= high) & self.rule.intervals.intersects & self.model.is_fixed
            low = torch.where(holds, low, last.lower)
            high = torch.where(holds, high, last.upper)
            regions.append(replace(last, lower=low, upper=high))
            # Twice what rounding leaves of an exact value: then all items are known.
            if not bool((left_over > 2 * float(now.least_noise) ** 0.5).any()):
                return False
        items = ItemsAhead(ahead.posteriors, self.item_rows, beta, fits.posteriors)
        seen = replace(self.seen(ahead, tuple(regions), beta), belief=items)
        sides = goal.update(belief.sides, seen)
        if not self.is_theorem:
            sides = sides.reopened(self._sure_by_prior_alone(ahead, seen))
        was_open = belief.sides.side == UNDECIDED
        doubted = self._items_of(belief.doubted)
        return not bool((was_open & ~doubted & (sides.side != UNDECIDED)).any())

    def _is_any_open_usable(self, belief: Belief, usable: Tensor) -> bool:
        r"""Whether an open item is a row that may be measured, and decided by it."""
        is_own = self.items is self.pool or self.model.layout.has_sources
        if not (is_own and isinstance(self.goal, Region)):
            return False  # sides hang on several items, or a row on several rows
        is_open, usable = belief.sides.side == UNDECIDED, usable[self.item_rows]
        return bool(torch.isin(self.points[is_open], self.points[usable]).any())

    def repeats_left(
        self, belief: Belief, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        r"""The counts ``left``, with 0 for rows that are known exactly."""
        if self.model.has_scales:
            data = self.model.on_scale(data)
        return self.model.repeats_left(belief.fits, data, pending, left)

    def visiting_order(self, belief: Belief, rows: Tensor, before: Tensor) -> Tensor:
        r"""The order in which to measure a batch; see ``Algorithm.visiting_order``."""
        return self.rule.order(belief.memory, rows, before)

    def conservative(self, belief: Belief, alpha: float) -> Tensor:
        r"""The items that together are above with probability ``alpha`` (bools)."""
        goal, fits = self.goal, belief.fits
        if not isinstance(goal, Region) or not self.can_draw_content:
            missing = "an estimated level, or correlated outputs"
        elif not fits.is_informed:
            missing = "no model yet"
        else:
            given = fits.posteriors, goal.values.cells, self.item_rows
            return conservative_rows(*given, alpha)
        raise UnsupportedError(
            "Expected a run with stated levels of independent outputs and a model, "
            f"from which joint draws can be made, but got {missing}."
        )

    def takes_any_rows(self, belief: Belief) -> bool:
        r"""Whether rows may be excluded now: a burn-in needs those of its stages."""
        return not belief.fits.learns_noise

    def can_estimate(self, belief: Belief, early: bool = False) -> bool:
        r"""Whether there is a model to decide by; see ``Predicts.can_estimate``."""
        is_ready = belief.fits.is_informed and belief.one_sided is None
        if belief.is_early or not is_ready:
            return early and is_ready
        return not self.model.is_initial(belief.fits)

    def worth(self, belief: Belief, new: Observations) -> float:
        r"""The number of exact measurements that a round is worth.

        Its values take off a share of the variance of each row they measure,
        ``sigma^2 / (sigma^2 + v)`` with ``v`` the noise variance of their mean, where
        an exact one takes off all: the sum over the rows. It is their number without
        noise, while there is no model, and where a model was given, which does not
        change its mind but by what it says itself.

        Args:
            belief: The belief before the round.
            new: The round's observations. Where one of them has all outputs, it is
                worth what they are in the mean.
        """
        fits, total = belief.fits, 0.0
        if self.model.is_fixed or not fits.is_informed:
            return float(len(new.indices.unique()))
        new = self.model.on_scale(new)
        each = self.model.layout.by_output(new)
        for own, noise, posterior in zip(
            each, fits.noise_of(new), fits.posteriors, strict=True
        ):
            noise = noise.where(noise > posterior.least_noise, 0.0)  # it is exact
            _, error = row_means(own, noise)
            variance = posterior.variance[own.indices.unique()].to(error)
            shares = variance / (variance + error.square())
            # Of a row that is known, exact values tell all that there is: 0 / 0.
            total += float(shares.nan_to_num(1.0).sum())
        return total / (len(each) / self.model.layout.n_each)

    # --- audits -----------------------------------------------------------------------

    @cached_property
    def audit_facts(self) -> AuditFacts | None:  # type: ignore[override]
        r"""The facts for audits; ``None`` where no measured value has a side.

        Points of their own are measured elsewhere. Counts of events, and numbers beside
        answers, would need a test of their own.
        """
        layout = self.model.layout
        own = layout.items if layout.has_sources else self.pool
        if self.items is not own:
            return None
        if self.model.has_outcomes:
            judge = trials_judge(self.goal, self.outcomes)
            if judge is None:
                return None
            told, words = judge.n_outputs, "independent trials"
            return AuditFacts(told, noise_in_words=words, least=judge.least)
        is_stated = all(output.known_noise is not None for output in self.model.outputs)
        knows_noise = is_stated or self.model.is_fixed
        facts = facts_for_audits(self.goal, knows_noise=knows_noise)
        scales = tuple(output.scale for output in self.model.outputs)
        return facts if facts is None else replace(facts, scales=scales)

    def audit_judge(self, belief: Belief) -> Judge:
        r"""The judge by which an audit compares values with the present claim."""
        judge: Judge | None
        if self.model.has_outcomes:
            answer = self.answer(belief, as_claimed=True)
            judge = trials_judge(self.goal, self.outcomes, answer)
        else:
            decided = self.model.layout.decided
            means = [posterior.mean[decided] for posterior in belief.fits.posteriors]
            judge = judge_of(self.goal, means)
        assert judge is not None  # else there are no facts for audits
        return judge

    @property
    def has_level(self) -> bool:
        r"""Whether sides mean above one level of one output that is a number."""
        return self.goal.facts.has_one_level and not any(self.outcomes)

    def level(self, belief: Belief) -> float:
        r"""The level, where there is one; one that is estimated by the means."""
        judge = self.audit_judge(belief)
        assert isinstance(judge, LevelJudge)  # of one comparison, as `has_level` says
        return judge.level

    @property
    def has_content(self) -> bool:
        r"""Whether rows on one side have a meaningful share of the pool."""
        is_own = self.items is self.model.layout.items
        is_level = isinstance(self.goal, Region) or self.goal.facts.has_one_level
        return is_own and is_level

    @property
    def can_draw_content(self) -> bool:
        r"""Whether draws of the posteriors decide sides (the levels are stated).

        Not of correlated outputs, which would have to be drawn together.
        """
        is_alone = self.model.together is None or self.goal.facts.n_outputs == 1
        return isinstance(self.goal, Region) and is_alone

    def audited(self, belief: Belief, new: Observations) -> Observations:
        r"""The values on the model's scale, exact ones with the noise variance 0."""
        fits, new = belief.fits, self.model.on_scale(new)
        pairs = zip(fits.noise_of(new), fits.posteriors, strict=True)
        noise = [n.where(n > posterior.least_noise, 0.0) for n, posterior in pairs]
        return derived(new, yvar=torch.stack(noise, dim=-1).view(new.y.shape))

    def audit_noise_kind(self, belief: Belief) -> str:
        r"""The kind of knowledge about the noise; see ``AuditNote``."""
        fits = belief.fits
        if self.model.has_outcomes:
            return KNOWN  # trials have no noise but their own
        if self.model.burn_in is not None:
            return SIDE  # estimates, another one for each row
        if self.model.is_fixed or fits.has_known_noise:
            return KNOWN
        predicted = [posterior.prior.predict_noise for posterior in fits.posteriors]
        # Of sources it is one variance for all rows of the target.
        is_one = all(isinstance(p, NoiseOfSources | None) for p in predicted)
        return LEARNT if is_one else SIDE

    # --- the answer -------------------------------------------------------------------

    def answer(self, belief: Belief, as_claimed: bool = False) -> Classification:
        r"""The side of every item, with bounds and a guarantee.

        Args:
            belief: The belief after the complete rounds.
            as_claimed: The model's own answer, also while it is not to decide.
        """
        held = belief.held_back
        if as_claimed and held is not None:
            belief = replace(belief, sides=held, one_sided=None, is_early=False)
        words, fits = [self.guarantee], belief.fits
        if not fits.is_informed and self.model.burn_in is None:
            # There is no model under which anything could have been decided.
            said = self.guarantee.removesuffix(self._learnt_in_words)
            words = [f"{said}No model is fitted yet."]
        elif belief.early is not None or belief.is_early:
            said = self.guarantee.removesuffix(self._learnt_in_words)
            words = [
                f"{said}Nothing is decided yet{self._missing(belief)}. Until then "
                "means and intervals are those of a model fitted to few values."
            ]
        if belief.one_sided is not None:
            words.append(f"{belief.one_sided}, so nothing is decided.")
        is_open = bool((belief.sides.side == UNDECIDED).any()) and fits.is_informed
        if belief.is_alike and is_open and not fits.has_known_noise:  # as in `usable`
            is_one = len(self.model.outputs) == 1
            words.append(ALL_EQUAL if is_one else ONE_EQUAL)
        words += [remark.text for remark in belief.remarks]
        if belief.is_contradicted:
            words.append(belief.contradiction)
        if any(posterior.is_exact for posterior in belief.fits.posteriors):
            words.append(EXACT_NOTE)
        beta = self.width_of(belief.n_intervals, belief.fits.posteriors[0])
        seen = self.seen(belief.fits, belief.all_regions, beta)
        names = self.model.layout.names
        found = self.goal.answer(belief.sides, seen, " ".join(words))
        if any(self.outcomes):
            found = in_units(found, self.outcomes)
        if not names or self.goal.facts.names:
            return found
        pairs = zip(found.outputs, names, strict=True)
        named = tuple(replace(output, name=name) for output, name in pairs)
        return replace(found, outputs=named)

    def content(
        self, belief: Belief, answer: Classification, confidence: float
    ) -> Content:
        r"""The share above, with quantiles of joint draws of undecided rows.

        Without them where no level is stated, there is no model yet, or it is not to be
        believed, since all values lie on one side.
        """
        has_model = belief.fits.is_informed or belief.early is not None
        found, goal = answer.content(confidence), self.goal
        found = replace(found, has_model=has_model or belief.one_sided is not None)
        is_unknown = not belief.fits.is_informed or belief.one_sided is not None
        if not (isinstance(goal, Region) and self.can_draw_content) or is_unknown:
            return found
        side, mass, items = answer.sides_of_level, self.items.mass, self.item_rows
        posteriors = belief.fits.posteriors
        draws = content_draws(posteriors, goal.values.cells, side, mass, items)
        tail = torch.tensor((1 - confidence) / 2, dtype=draws.dtype)
        low, high = torch.quantile(draws, torch.stack((tail, 1 - tail))).tolist()
        return replace(found, posterior=(low, high))

    def calibration(self, belief: Belief, output: int) -> Calibration:
        r"""The comparison of an output's predictions with what was measured.

        On the scale of the model. Of outcomes such as yes and no only with what was
        predicted beforehand.
        """
        posterior = belief.fits.posteriors[output]
        ahead = belief.ahead[output] if belief.ahead else posterior.a[:0]
        has_outcome = self.model.outputs[output].outcome is not None
        if not belief.fits.is_informed or has_outcome:
            return Calibration(ahead, ahead[:0], ahead[:0])
        y = posterior.prior_mean_of_data + posterior.L @ posterior.a
        found = Calibration.of(ahead, posterior.L, posterior.a, y)
        if not posterior.is_correlated:
            return found
        own = correlated.own_data(posterior)
        return replace(found, out=found.out[own], predicted=found.predicted[own])

    def predict(
        self, belief: Belief, X: Tensor, data: Observations | None = None
    ) -> tuple[Tensor, Tensor]:
        r"""The means and standard deviations at any points; see ``Predicts``."""
        belief = self.shown(belief)
        if not belief.fits.is_informed:
            raise UnsupportedError(
                "Expected a run with a model, but none has been fitted yet"
                f"{self._missing(belief)}. Tell it more first."
            )
        fits = belief.fits
        if data is not None:
            data = self.model.on_scale(self.model.complete(data))
            fits = self.model.before(fits, data)
            fits = fits.observing(self.model.as_measured(fits, data))
        X = self.model.layout.with_target(X)
        found = [posterior.at(X) for posterior in fits.posteriors]
        for j, outcome in enumerate(self.outcomes):
            if outcome is not None:
                mean, sigma = found[j]
                found[j] = outcome.moments(mean, sigma.square())
        mean = torch.stack([mean for mean, _ in found], dim=-1)
        sigma = torch.stack([sigma for _, sigma in found], dim=-1)
        return (mean, sigma) if len(found) > 1 else (mean[:, 0], sigma[:, 0])

    def forecast(self, belief: Belief, told: int) -> Forecast:
        r"""The expected number of further evaluations until everything is decided."""
        found, n = self._forecast(belief, told), len(self.items)
        facts = self.goal.facts
        if found.more_than is not None:
            words = EDGES if facts.class_names else ENDLESS.format(facts)
            return replace(found, basis=words)
        if found.observations is None or found.observations <= n:
            return found
        words = (
            f"That is more than the {n} rows there are: look for a wrong value. Else "
            f"there is much noise, or there are {facts.closest}: a larger "
            f"{facts.accuracy} takes fewer."
        )
        if self.model.has_outcomes:
            words = f"Most are for {facts.closest}: one result tells little of a row."
        return replace(found, basis=f"{found.basis} {words}")

    def _forecast(self, belief: Belief, told: int) -> Forecast:
        if self._waits(belief):
            return Forecast(None, self._waiting_in_words(belief))
        if belief.is_early or self.model.is_initial(belief.fits):
            why = "No model has been fitted yet"
            if belief.is_early or belief.early is not None:
                why = "Nothing is decided yet"
            return Forecast(None, f"{why}{self._missing(belief, told)}.")
        posterior = belief.posterior
        beta = self.width_of(belief.n_intervals + 1, posterior)
        facts = self.goal.facts
        if self.model.layout.has_sources:  # as if the target alone were measured
            few, few_belief = self._at_rows(belief, self.item_rows)
            return few._forecast(few_belief, told)
        if facts.n_outputs > 1 or facts.n_comparisons != 1:
            return self._planned_forecast(belief, beta)
        seen = self.seen(belief.fits, belief.all_regions, beta)
        if not self.forecasts_by_design:
            distances = self.goal.distances(belief.sides, seen)
            return rows_forecast(
                belief, distances, beta, facts.tolerance, self.batch_size
            )
        (problem,) = problems_of(belief.fits, self.goal.gaps(belief.sides, seen))
        size = min(self.batch_size, LARGEST_BATCH)
        relaxation = Relaxation.of(problem, size, ROUGH)
        if relaxation is None:
            return Forecast(self.batch_size, "Nothing is uncertain any more.")
        most = most_worth_saying(len(self.pool))
        needed = observations_needed(relaxation, beta, most)
        return Forecast(
            needed,
            "By the optimal design for the gaps of the current estimate and the width "
            "of the next round.",
            most if needed is None else None,
        )

    def _missing(self, belief: Belief, told: int = 0) -> str:
        r"""The number of measurements before decisions, as the end of a sentence.

        Args:
            belief: The belief after the complete rounds.
            told: Measurements of the open round that are told already.
        """
        wanted = self.model.n_deciding(belief.fits.has_known_noise)
        left = wanted - told - len(belief.fits.measured)
        if left <= 0:
            return ""
        verb = "is" if left == 1 else "are"
        return f": {left} of the {wanted} measurements that come before {verb} missing"

    def _waiting_in_words(self, belief: Belief) -> str:
        r"""The reason why nothing is decided, and what the run does about it."""
        n = int(self.model.unseen(belief.fits.measured, belief.lost).sum())
        next_ones = f"New rows come first, {n} {'is' if n == 1 else 'are'} left."
        if n == 0:
            next_ones = "All rows were measured, and are measured again."
        why = "No model can be fitted yet, so nothing is decided."
        if belief.one_sided is not None:
            why = f"{belief.one_sided}, so nothing is decided."
        elif belief.is_alike:
            same = "values so far are equal"
            if self.model.has_outcomes:
                same = "results so far say the same"
            why = f"All {same}, so no model can be fitted."
        elif belief.is_refuted:
            why = "What was stated does not fit the values, so nothing is decided."
        # An audit tests what a model says, of results that it can foresee.
        audit = ", or an `audit` that tests rows drawn at random"
        end = "" if self.model.has_outcomes else audit
        return f"{why} {next_ones} To end earlier, give `max_observations`{end}."

    def _planned_forecast(self, belief: Belief, beta: float) -> Forecast:
        r"""The length of a plan that decides every open row at the current means.

        In all but small pools designs would take minutes.
        """
        few, n, basis = self, len(self.pool), BY_PLAN
        if n <= DESIGNED_ROWS:
            return self._one_batch_forecast(belief, beta)
        if n > (2 * PAIRED_ROWS if self.goal.bytes_for(n) else LARGEST):
            if self.items is not self.pool:
                words = (
                    f"It would take too long to tell for more than {LARGEST:,} rows "
                    "that measure one output each, or are not those to decide."
                )
                return Forecast(None, words)
            rows = belief.sides.candidates.nonzero().view(-1)
            # Pairs of rows are compared again and again: fewer rows then.
            most = PAIRED_ROWS if self.goal.bytes_for(n) else FORECAST_ROWS
            rows = rows[some_rows(len(rows), rows[:0], most)]
            others = some_rows(n, rows, most)
            few, belief = self._at_rows(belief, torch.cat((rows, others)))
            basis += f" Of the {n:,} rows {len(few.pool):,} drawn at random count."
        needed = few._smallest_plan(belief, beta)
        return Forecast(needed, basis, MOST_PLANNED if needed is None else None)

    def _one_batch_forecast(self, belief: Belief, beta: float) -> Forecast:
        r"""The size of the smallest designed batch that decides every open row.

        The means are assumed to stay as they are.
        """
        targets = self.goal.targets(belief.sides, self.item_rows)
        problems = problems_of(belief.fits, targets)
        usable = torch.ones(len(self.pool), dtype=torch.bool)
        width = max(beta**0.5 - STRAY, 0.0) ** 2

        def suffices(n: int) -> bool:
            counts = relaxed_counts(problems, n, usable, TOLERANCE)
            rows = torch.arange(len(counts)).repeat_interleave(counts)
            ahead = replace(belief, fits=belief.fits.expecting(rows))
            sides = self._with_regions(ahead, width, width).sides
            return not bool((sides.side == UNDECIDED).any())

        most = most_worth_saying(len(self.pool))
        needed = smallest(suffices, most)
        return Forecast(
            needed,
            "By the optimal design of one batch that decides every row at the current "
            "means and the width of the next round.",
            most if needed is None else None,
        )

    def _at_rows(
        self, belief: Belief, rows: Tensor
    ) -> tuple[GaussianAlgorithm, Belief]:
        r"""The algorithm and belief of the same question, about some rows of the pool.

        Args:
            belief: The belief after the complete rounds.
            rows: ``M`` rows, the only ones that may be measured there.
        """
        pool, fits = Pool(self.pool.X[rows], device=self.pool.device), belief.fits
        at_rows = replace(
            fits,
            posteriors=tuple(posterior.at_rows(rows) for posterior in fits.posteriors),
            noise=tuple(noise[rows] for noise in fits.noise),
        )
        model = replace(self.model, pool=pool, X=None, points=None, given_layout=None)
        few = replace(self, pool=pool, items=pool, model=model)
        if self.model.layout.has_sources:  # `rows` measure just what is decided
            return few, replace(belief, fits=at_rows)
        regions = tuple(
            Regions(r.lower[rows], r.upper[rows], r.mean[rows], r.sigma[rows], pool)
            for r in belief.all_regions
        )
        sides = few.goal.start(len(rows))
        beta = self.width_of(belief.n_intervals, fits.posteriors[0])
        found = replace(belief, fits=at_rows, all_regions=regions, sides=sides)
        return few, few._with_regions(found, beta, beta)

    def _smallest_plan(self, belief: Belief, beta: float) -> int | None:
        r"""The length of a plan that decides every row; ``None`` if it is too long.

        Args:
            belief: The belief after the complete rounds.
            beta: The squared width after the plan.
        """
        width = max(beta**0.5 - STRAY, 0.0) ** 2

        def open_after(posteriors: tuple[PoolPosterior, ...]) -> Tensor:
            fits = replace(belief.fits, posteriors=posteriors)
            sides = self._with_regions(replace(belief, fits=fits), width, width).sides
            return sides.side == UNDECIDED

        fits = belief.fits
        given = fits.posteriors, fits.noise, self.item_rows, fits.layout.revealed
        return planned_for_all(*given, open_after)


def _warned(before: Belief, after: Belief) -> Belief:
    r"""The belief after a warning about remarks that are new."""
    known = {remark.subject for remark in before.remarks}
    for remark in after.remarks:
        if remark.subject not in known and remark.kind not in ADVICE:
            warnings.warn(remark.text, DataWarning, stacklevel=3)
    return after
