r"""Strategies of one's own: any goal, rule and model put together."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel, ScaleKernel
from scipy.stats import chi2, kstest

from botorch_lse import Batch, Observations, Pool, acquisition, strategies
from botorch_lse.confidence.judges import RegionJudge
from botorch_lse.confidence.regions import EmptyRegionWarning
from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.goals import GoalFacts
from botorch_lse.goals.base import AS_ESTIMATED
from botorch_lse.papers import PALStrategy
from botorch_lse.papers.kone2025 import Diameter, ParetoByRectangles
from botorch_lse.rules import Rule, largest_score
from botorch_lse.rules.base import SelectionContext
from botorch_lse.rules.scores import drawn_beta
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    AlternatingRules,
    Ambiguity,
    Below,
    ComposedStrategy,
    ContourEntropy,
    ExpectedFeasibility,
    ExpectedMisclassification,
    GaussianProcess,
    GEGEStrategy,
    Goal,
    Levels,
    LSEStrategy,
    Maximiser,
    MaximiserByPairs,
    MELKStrategy,
    MILKStrategy,
    MutualInformation,
    OptimalDesign,
    ParetoByDifferences,
    Random,
    RandomizedStraddle,
    RandomStrategy,
    RanjanImprovement,
    RowCosts,
    ScoreRule,
    ShareOfMax,
    ShareOfMaxByPairs,
    State,
    Straddle,
    StraddleStrategy,
    Strategy,
    SwitchingRule,
    TargetedVariance,
    TruncatedVariance,
    TruVaRStrategy,
    UFunction,
    Variance,
    Width,
)
from botorch_lse.strategies.algorithm import judge_of
from tests.strategies.runs import played

POOL = Pool(torch.linspace(0, 10, 21).unsqueeze(-1).double())
F = (POOL.X[:, 0]).sin()
TWO = torch.stack([F, (POOL.X[:, 0] / 2).cos()], dim=-1)
MODEL = RBFKernel().double()
GIVEN = {"batch_size": 3, "max_observations": 30}


def end_of(strategy: Strategy, truth: torch.Tensor) -> State:
    def values(rows: torch.Tensor, state: State) -> torch.Tensor:
        generator = torch.Generator().manual_seed(state.round)
        noise = torch.randn(truth[rows].shape, generator=generator).double()
        return truth[rows] + 0.1 * noise

    return played(strategy, values, seed=3)[-1]


def assert_same_run(one: State, other: State) -> None:
    assert one.observations.indices.tolist() == other.observations.indices.tolist()
    assert one.stop_reason == other.stop_reason
    for name in ("above", "below", "lower", "upper", "probability_above"):
        mine, theirs = (getattr(s.classification, name) for s in (one, other))
        assert torch.equal(mine, theirs)
    claims = [s.classification.guarantee.rpartition(" (")[0] for s in (one, other)]
    assert claims[0] == claims[1]  # up to the theorem's name


NAMED = [
    (LSEStrategy, {"threshold": 0.3}, Above(0.3), Ambiguity()),
    (StraddleStrategy, {"threshold": 0.3}, Above(0.3), Straddle()),
    (RandomStrategy, {"threshold": 0.3}, Above(0.3), Random()),
    (MELKStrategy, {"threshold": 0.3}, Above(0.3), OptimalDesign()),
    (MILKStrategy, {"omega": 0.7}, ShareOfMaxByPairs(0.7), None),
    (TruVaRStrategy, {}, Maximiser(), TruncatedVariance(RowCosts(POOL))),
]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("cls", "options", "goal", "rule"), NAMED, ids=[n[0].__name__ for n in NAMED]
)
def test_its_parts_do_what_the_named_strategy_does(cls, options, goal, rule) -> None:
    named = cls(POOL, **options, model=MODEL, noise_std=0.1, **GIVEN)
    model = GaussianProcess(MODEL, noise_std=0.1)
    own = Strategy(POOL, goal, model=model, rule=rule, **GIVEN)
    assert_same_run(end_of(own, F), end_of(named, F))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("cls", "goal", "rule"),
    [
        (GEGEStrategy, ParetoByDifferences((True, False), (0.1, 0.2)), None),
        (PALStrategy, ParetoByRectangles((True, False), (0.1, 0.2)), Diameter()),
    ],
)
def test_a_pareto_set_is_a_goal_like_others(cls, goal, rule) -> None:
    options = {"model": MODEL, "noise_std": (0.1, 0.1)}
    given = {"maximize": (True, False), "epsilon": (0.1, 0.2), **GIVEN}
    named = cls(POOL, **given, **options)
    own = Strategy(POOL, goal, model=GaussianProcess(**options), rule=rule, **GIVEN)
    assert own.directions == (True, False)
    ends = end_of(own, TWO), end_of(named, TWO)
    assert_same_run(*ends)
    found, wanted = own.estimate(ends[0]), named.estimate(ends[1])
    assert torch.equal(found.mean, wanted.mean)


GOALS = [
    Above(0.3),
    ShareOfMax(0.7),
    ShareOfMaxByPairs(0.7),
    Maximiser(),
    MaximiserByPairs(),
]
RIVALS = [UFunction(), ContourEntropy(), ExpectedFeasibility(), RanjanImprovement()]
RULES = [
    *RIVALS,
    AbsoluteVolumeChange(),
    Ambiguity(),
    OptimalDesign(),
    ExpectedMisclassification(),
    ExpectedMisclassification(batch="joint"),
    MutualInformation(),
    Random(),
    RandomizedStraddle(),
    Straddle(),
    TargetedVariance(),
    TruncatedVariance(RowCosts(POOL)),
    AlternatingRules((Straddle(), ExpectedMisclassification(batch="joint"))),
    SwitchingRule((ExpectedMisclassification(batch="joint"), Ambiguity())),
    Variance(),
    Width(),
]


@pytest.mark.some(2)
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("rule", RULES)
def test_any_rule_serves_any_goal(goal, rule) -> None:
    model = GaussianProcess(MODEL, noise_std=0.1)
    strategy = Strategy(POOL, goal, model=model, rule=rule, **GIVEN)
    state = end_of(strategy, F)
    assert state.stop_reason is not None
    assert_same_run(state, strategy.replay(state.observations, seed=3))
    assert strategy.ask(strategy.init()).counts.sum() == 3


@pytest.mark.some(2)
@pytest.mark.parametrize("rule", RIVALS)
def test_rivals_choose_and_a_theorem_decides(rule) -> None:
    model = GaussianProcess(MODEL, noise_std=0.1)
    chosen, ours = (
        Strategy(POOL, Above(0.3, 0.05), model=model, rule=r, batch_size=3)
        for r in (rule, Ambiguity())
    )
    assert chosen.init().classification.guarantee == (
        ours.init().classification.guarantee
    )
    state = end_of(chosen, F)
    assert state.stop_reason == "decided"
    above = state.classification.above
    assert (F[above] >= 0.25).all()
    assert (F[~above] <= 0.35).all()


@pytest.mark.parametrize("rule", RIVALS)
def test_rivals_choose_the_best_rows_of_their_acquisition_function(rule) -> None:
    data = torch.tensor([2, 9, 15])
    prior = SingleTaskGP(
        POOL.X[data],
        F[data].unsqueeze(-1),
        torch.full((3, 1), 0.01).double(),
        covar_module=RBFKernel(),
        outcome_transform=None,
    ).eval()
    acqf = getattr(acquisition, type(rule).__name__)(prior, threshold=0.3)
    strategy = Strategy(
        POOL,
        Above(0.3),
        model=GaussianProcess(prior, noise_std=0.1),
        rule=rule,
        batch_size=3,
    )
    seen = Observations(data, F[data], round=torch.zeros(3))
    chosen: list[int] = []
    for _ in range(3):
        acqf.set_X_pending(POOL.X[chosen])
        chosen.append(int(acqf(POOL.X.unsqueeze(-2)).argmax()))
    asked = strategy.ask(strategy.replay(seen)).order  # sorted by row
    assert asked.tolist() == sorted(chosen)


@pytest.mark.parametrize("rule", RIVALS)
def test_rivals_tell_rows_far_from_the_level_apart(rule) -> None:
    model = GaussianProcess(MODEL, noise_std=0.1)
    strategy = Strategy(POOL, Above(9.0), model=model, rule=rule, beta=1e5)
    state = strategy.replay(Observations([0, 0], [0.0, 0.0], round=[0, 0]))
    assert state.classification.undecided.all()
    assert int(strategy.ask(state).order) > 5  # nothing is known there; row 0 is


@pytest.mark.some(4)
@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize("rule", RIVALS)
def test_rivals_do_not_see_the_unit_of_y(rule, unit) -> None:
    def rows(unit: float) -> list[int]:
        kernel = ScaleKernel(RBFKernel()).double()
        kernel.outputscale = unit**2
        model = GaussianProcess(kernel, noise_std=0.1 * unit)
        strategy = Strategy(POOL, Above(0.3 * unit), model=model, rule=rule, **GIVEN)
        state = strategy.init()
        for _ in range(4):
            batch = strategy.ask(state)
            state = strategy.tell(state, batch.observe(F[batch.order] * unit))
        return state.observations.indices.tolist()

    assert rows(unit) == rows(1.0)


def randomized(**options) -> ComposedStrategy:
    model, goal = GaussianProcess(MODEL, noise_std=0.1), Above(0.3, 0.05)
    return Strategy(POOL, goal, model=model, rule=RandomizedStraddle(), **options)


def test_the_randomized_straddle_is_the_straddle_of_the_drawn_width() -> None:
    strategy = randomized()
    rows = torch.arange(15)  # beyond nothing is known
    whole = torch.zeros(len(rows), dtype=torch.long)
    state = strategy.replay(Observations(rows, F[rows], round=whole))
    mean, sigma = state.belief.posterior.mean, state.belief.posterior.sigma
    open_rows, none = state.belief.sides.candidates, torch.empty(0, dtype=torch.long)
    found = []
    for seed in range(200):
        request = PlanRequest(1, torch.full((len(POOL),), 9), none, seed, 1)
        found += strategy.parts.plan(state.belief, request).tolist()
        score = drawn_beta(seed, 1) ** 0.5 * sigma - (mean - 0.3).abs()
        assert score[found[-1]] == score[open_rows].max()
    assert len(set(found)) > 1


def test_the_width_of_a_round_has_two_degrees_of_freedom() -> None:
    widths = [drawn_beta(seed, round) for seed in range(50) for round in range(40)]
    assert kstest(widths, chi2(2).cdf).pvalue > 0.01
    assert drawn_beta(7, 3) == drawn_beta(7, 3)


def test_the_randomized_straddle_is_decided_by_the_theorem() -> None:
    chosen = randomized(batch_size=3, max_observations=300)
    theorem = replace(chosen, rule=Ambiguity())
    assert chosen.guarantee == theorem.guarantee
    state = end_of(chosen, F)
    assert state.stop_reason == "decided"
    assert_same_run(state, chosen.replay(state.observations, seed=3))


@pytest.mark.parametrize("rule", [ExpectedFeasibility, RanjanImprovement])
def test_a_band_needs_a_width(rule) -> None:
    with pytest.raises(ValueError, match="`alpha`"):
        rule(alpha=0.0)


@dataclass(frozen=True)
class Nearest(ScoreRule):
    r"""A rule of one's own: the row whose mean is nearest to the level."""

    def scores(self, context: SelectionContext) -> torch.Tensor:
        mean = context.posterior.mean
        return -(mean - context.region.level).abs()


def test_a_rule_written_elsewhere_is_asked_like_ours() -> None:
    model = GaussianProcess(MODEL, noise_std=0.1)
    strategy = Strategy(POOL, Above(0.3), model=model, rule=Nearest(), batch_size=1)
    state = strategy.init()
    state = strategy.tell(state, strategy.ask(state).observe(torch.tensor([1.0])))
    mean = state.classification.mean
    assert int(strategy.ask(state).order) == int((mean - 0.3).abs().argmin())


def test_scores_that_are_no_numbers_are_refused() -> None:
    @dataclass(frozen=True)
    class Broken(ScoreRule):
        def scores(self, context: SelectionContext) -> torch.Tensor:
            return context.posterior.mean * torch.nan

    model = GaussianProcess(MODEL, noise_std=0.1)
    strategy = Strategy(POOL, Above(0.3), model=model, rule=Broken(), batch_size=1)
    with pytest.raises(ValueError, match=r"of row 0 is nan\. Return minus infinity"):
        strategy.ask(strategy.init(seed=0))


@dataclass(frozen=True)
class NearTheMean(Goal):
    r"""A goal of one's own: values within a half of the mean of all items."""

    answers: object = None

    def region(self, mean: Sequence[torch.Tensor]) -> ValueRegion:
        centre = float(mean[0].mean()) if self.answers is None else 0.0
        band = Above(centre - 0.5) & Below(centre + 0.5)
        return band.values if self.answers is None else band  # type: ignore[return-value]


def test_an_own_goal_whose_level_is_estimated_claims_no_more_than_it_knows() -> None:
    strategy = Strategy(
        POOL,
        NearTheMean(),
        model=GaussianProcess(MODEL, noise_std=0.01),
        batch_size=1,
        max_observations=30,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", EmptyRegionWarning)
        state = end_of(strategy, F)
    answer = state.classification
    assert strategy.guarantee is not None
    assert AS_ESTIMATED in strategy.guarantee
    level = answer.mean.mean()
    inside = (level - 0.5 < F) & (level + 0.5 >= F)
    assert answer.above.any()
    assert answer.below.any()
    assert torch.equal(answer.above, inside & ~answer.undecided)


def test_an_own_band_is_audited_by_its_region() -> None:
    judge = judge_of(NearTheMean(), [F])
    assert isinstance(judge, RegionJudge)
    assert judge.n_outputs == 1


REGION = Above(0.3) & Below(0.5, output=1)
TWO = torch.stack((F, F.flip(0)), dim=-1)
POOLS = {"together": POOL, "one by one": POOL.at_outputs(2, costs=(1.0, 2.0))}


@dataclass(frozen=True)
class BothAtOnce(Goal):
    r"""A goal of one's own about two outputs."""

    n_outputs: int = 2

    @property
    def facts(self) -> GoalFacts:
        n, promise = self.n_outputs, "all decided rows are right"
        return GoalFacts(promise, n_outputs=n, n_comparisons=2, has_one_level=False)

    def region(self, mean: Sequence[torch.Tensor]) -> ValueRegion:
        return REGION.values


@dataclass(frozen=True)
class LeastDecided(ScoreRule):
    r"""A rule of one's own for any region: that of ``Straddle``."""

    intervals = Straddle.intervals

    def scores(self, context: SelectionContext) -> torch.Tensor:
        width = context.beta**0.5
        return largest_score(
            context, lambda m: width * m.sigma - (m.mean - m.level).abs()
        )


@dataclass(frozen=True)
class OneCandidate(ScoreRule):
    r"""A rule of one's own that scores candidates, whatever is measured of them."""

    n: int = len(POOL)

    def scores(self, context: SelectionContext) -> torch.Tensor:
        found = torch.zeros(self.n, dtype=torch.float64)
        found[7] = 1.0
        return found


def values_of(batch: Batch) -> torch.Tensor:
    r"""The values of both outputs, or of each row's own."""
    rows = batch.order
    if batch.pool is POOL:
        return TWO[rows]
    return TWO.mT.reshape(-1)[rows]


def rounds_of(pool: Pool, goal: Goal, rule: Rule, n: int = 3) -> list[State]:
    model = GaussianProcess(MODEL, noise_std=0.1)
    strategy = Strategy(pool, goal, model=model, rule=rule, batch_size=4)
    states = [strategy.init()]
    for _ in range(n):
        batch = strategy.ask(states[-1])
        states.append(strategy.tell(states[-1], batch.observe(values_of(batch))))
    return states


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_an_own_rule_serves_regions_however_outputs_are_measured(pool: Pool) -> None:
    ours = rounds_of(pool, REGION, Straddle())[-1].observations
    own = rounds_of(pool, REGION, LeastDecided())[-1].observations
    assert torch.equal(own.indices, ours.indices)


def test_scores_of_candidates_count_for_each_output_by_its_cost() -> None:
    model = GaussianProcess(MODEL, noise_std=0.0)
    for pool in POOLS.values():
        strategy = Strategy(pool, REGION, model=model, rule=OneCandidate())
        assert strategy.ask(strategy.init()).order.tolist() == [7]
    state = strategy.init()
    state = strategy.tell(state, Observations([7], [0.0]))
    assert strategy.ask(state).order.tolist() == [7 + len(POOL)]  # the dearer output


def test_too_few_scores_are_refused() -> None:
    rule = OneCandidate(n=len(POOL) - 1)
    with pytest.raises(ValueError, match=r"Write them by row, or by `largest_score`"):
        rounds_of(POOL, REGION, rule)


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_an_own_goal_of_two_outputs_is_answered_like_its_region(pool: Pool) -> None:
    ours = rounds_of(pool, REGION, Straddle())[-1].classification
    own = rounds_of(pool, BothAtOnce(), Straddle())[-1].classification
    assert (own.above | own.below).any()
    for name in (
        "above",
        "below",
        "mean",
        "sigma",
        "lower",
        "upper",
        "probability_above",
    ):
        torch.testing.assert_close(getattr(own, name), getattr(ours, name))
    assert [o.name for o in own.outputs] == [o.name for o in ours.outputs]
    for mine, other in zip(own.outputs, ours.outputs, strict=True):
        torch.testing.assert_close(mine.levels, other.levels)


def test_an_own_goal_says_how_many_outputs_it_has() -> None:
    with pytest.raises(ValueError, match=r"got 1 and 2\. Give it `facts`"):
        Strategy(POOL, BothAtOnce(n_outputs=1))


def test_a_region_that_is_a_goal_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Write `return Above\(0.5\).values`"):
        Strategy(POOL, NearTheMean(answers="a goal"))


def test_the_default_rule_is_one_for_the_goal() -> None:
    rules = {
        type(goal): type(Strategy(POOL, goal).algorithm.rule)
        for goal in (*GOALS, ParetoByDifferences((True, True)))
    }
    assert rules == {
        Above: SwitchingRule,
        ShareOfMax: Width,
        ShareOfMaxByPairs: OptimalDesign,
        Maximiser: Width,
        MaximiserByPairs: OptimalDesign,
        ParetoByDifferences: OptimalDesign,
    }


def test_the_default_rule_of_a_share_looks_ahead_in_large_pools_too() -> None:
    model = GaussianProcess(None, noise_std=0.0)
    for rows, content_tol, kind in (
        (100, 0.05, SwitchingRule),
        (2_501, None, SwitchingRule),
        (2_501, 0.05, ExpectedMisclassification),
        (100_000, 0.05, ExpectedMisclassification),
        (100_001, 0.05, ExpectedFeasibility),
    ):
        pool = Pool(torch.linspace(0, 1, rows).unsqueeze(-1))
        strategy = Strategy(pool, Above(0.3), model=model, content_tol=content_tol)
        assert type(strategy.parts.rule) is kind


def test_it_is_a_strategy_that_can_be_copied() -> None:
    strategy = Strategy(POOL, Above(0.3), model=GaussianProcess(None, noise_std=0.1))
    assert type(strategy) is ComposedStrategy
    for again in (copy.deepcopy(strategy), pickle.loads(pickle.dumps(strategy))):
        state = again.init()
        assert (
            again.ask(state).order.tolist()
            == strategy.ask(strategy.init()).order.tolist()
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": 0.5}, "`goal` such as `Above"),
        ({"model": MODEL}, "`model` such as `GaussianProcess"),
        ({"rule": "straddle"}, "`rule` such as `Straddle"),
        ({"rule": Ambiguity}, "but got the class Ambiguity without parentheses"),
        ({"delta": 2.0}, "`delta` in"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"model": GaussianProcess(MODEL)}, "Expected `noise_std`"),
        ({"model": GaussianProcess(None, norm_bound=1.0)}, "no fixed `model`"),
        (
            {"goal": ParetoByDifferences((True, True)), "rule": Ambiguity()},
            "`rule` for several outputs",
        ),
        (
            {
                "goal": ParetoByDifferences((True,)),
                "model": GaussianProcess((None,) * 2),
            },
            "one per output",
        ),
        (
            {"goal": MaximiserByPairs(), "model": GaussianProcess(memory_budget=2000)},
            "pairs fit `memory_budget`",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Strategy(POOL, **{"goal": Above(0.5), **options})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Above(float("nan")), "`threshold` to be finite"),
        (lambda: Above(0.5, -1.0), "`epsilon`"),
        (lambda: ShareOfMax(1.5), "`omega`"),
        (lambda: MaximiserByPairs(-0.1), "`epsilon`"),
        (lambda: ParetoByDifferences((1, 0)), "`maximize` to hold bools"),
        (lambda: ParetoByDifferences((True,), (-1.0,)), "`accuracies`"),
    ],
)
def test_goals_refuse_bad_numbers(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_pareto_set_is_found_with_learnt_models() -> None:
    goal, few = ParetoByDifferences((True, False)), {"max_observations": 15}
    model = GaussianProcess(noise_std=0.1, n_initial=6)
    state = end_of(Strategy(POOL, goal, model=model, batch_size=3, **few), TWO)
    assert state.stop_reason is not None


def test_an_answer_of_one_output_has_no_estimate() -> None:
    strategy = Strategy(POOL, Above(0.3), model=GaussianProcess(MODEL, noise_std=0.1))
    with pytest.raises(ValueError, match="goal is a Pareto set"):
        strategy.estimate(strategy.init())


@pytest.mark.parametrize(
    ("goal", "rule", "error", "message"),
    [
        (ParetoByDifferences((True,)), Straddle(), ValueError, "for several outputs"),
        (
            ShareOfMax(0.7),
            TruncatedVariance(RowCosts(POOL), anticipates=True),
            UnsupportedError,
            "`anticipates` to be False",
        ),
        (
            Above(0.3),
            TruncatedVariance(RowCosts(Pool(torch.rand(5, 1)))),
            ValueError,
            "`costs` of the strategy's own `pool` of 21 rows",
        ),
    ],
)
def test_rules_that_do_not_fit_are_refused(goal, rule, error, message) -> None:
    model = GaussianProcess(MODEL, noise_std=0.1)
    with pytest.raises(error, match=message):
        Strategy(POOL, goal, model=model, rule=rule)


@pytest.mark.parametrize(
    "goal",
    [
        ParetoByDifferences((True, False)),
        ParetoByDifferences((True,)),
        Above(0.3) & Below(0.4, output=1),
        Levels((0.2, 0.4)),
    ],
)
def test_every_rule_that_a_refusal_names_fits_the_goal(goal) -> None:
    refused = 0
    for rule in (
        AbsoluteVolumeChange(),
        MutualInformation(),
        TruncatedVariance(),
        SwitchingRule((AbsoluteVolumeChange(), Straddle())),
        UFunction(),
    ):
        try:
            Strategy(POOL, goal, rule=rule)
        except ValueError as refusal:
            names = re.findall(r"`(\w+)\(\)`", str(refusal))
            assert len(names) >= 2
            for name in names:
                Strategy(POOL, goal, rule=getattr(strategies, name)())
            refused += 1
    assert refused >= 4


@pytest.mark.parametrize("cls", [GEGEStrategy, PALStrategy])
def test_one_output_has_a_forecast(cls) -> None:
    strategy = cls(POOL, maximize=(True,), model=MODEL, noise_std=0.1, **GIVEN)
    state = strategy.init()
    batch = strategy.ask(state)
    state = strategy.tell(state, batch.observe(F[batch.order].unsqueeze(-1)))
    assert state.forecast().observations > 0


@pytest.mark.parametrize(
    "other",
    [
        {"goal": Above(0.4)},
        {"goal": ShareOfMax(0.7)},
        {"rule": TruncatedVariance(RowCosts(POOL))},
    ],
)
def test_a_state_of_another_goal_or_rule_is_refused(other) -> None:
    model = GaussianProcess(MODEL, noise_std=0.1)
    own = Strategy(POOL, Above(0.3), model=model, rule=Ambiguity(), **GIVEN)
    state = own.init()
    with pytest.raises(ValueError, match=f"`{next(iter(other))}` = "):
        dataclasses.replace(own, **other).ask(state)
    more = dataclasses.replace(own, max_observations=60)
    again = dataclasses.replace(more, goal=Above(0.3), rule=Ambiguity())
    assert again.ask(state).order.tolist() == own.ask(state).order.tolist()


@pytest.mark.parametrize("goal", [Maximiser(), MaximiserByPairs()])
def test_the_best_row_so_far_is_a_guess_of_the_maximum(goal) -> None:
    # It does not exceed its own mean with more than one half: nothing was guessed.
    x = torch.linspace(0, 1, 15).double()
    pool = Pool(torch.cat((x, x[6:7])).unsqueeze(-1))  # row 15 is a copy of row 6
    y = 1 - (pool.X[:, 0] - x[6]).square()
    model = GaussianProcess(RBFKernel().double(), noise_std=0.05)
    strategy = Strategy(pool, goal, model=model)
    state = strategy.tell(strategy.init(), Observations([2, 6, 9], y[[2, 6, 9]]))
    answer = state.classification
    assert answer.undecided[[6, 15]].all()
    assert answer.best_guess.nonzero().view(-1).tolist() == [6, 15]
    assert state.content().estimate == pytest.approx(2 / 16)
    z = (answer.mean - answer.mean.max()) / answer.sigma
    rivals = torch.distributions.Normal(0.0, 1.0).cdf(z).double()
    chances = answer.probability_above
    assert torch.allclose(chances[:6], rivals[:6])
    # By draws: the chance that it exceeds the other that most often exceeds it.
    draws = joint_draws(state, pool.X[:15])
    exceeds = (draws[:, [6]] > draws)[:, [i for i in range(15) if i != 6]]
    likeliest = exceeds.double().mean(dim=0).min()
    assert torch.allclose(chances[[6, 15]], likeliest.expand(2), atol=0.01)


def joint_draws(state, X):
    r"""Draws of the function at points, by dense algebra."""
    (posterior,) = state.belief.fits.posteriors
    rows = torch.arange(len(X))
    covariance = posterior.covariance_between(rows, rows)
    root = torch.linalg.cholesky(covariance + 1e-9 * torch.eye(len(X)))
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(40_000, len(X), generator=generator, dtype=torch.float64)
    return posterior.mean[rows] + z @ root.mT


def test_a_best_row_that_nothing_was_measured_at_is_no_sure_maximum():
    X = torch.tensor([[-1.0], [0.0], [1.0], [2.2]], dtype=torch.float64)
    kernel = RBFKernel().double()
    kernel.lengthscale = 1.0
    model = GaussianProcess(kernel, noise_std=0.001)
    strategy = Strategy(Pool(X), Maximiser(), model=model)
    told = Observations([0, 1, 2], torch.tensor([-1.6, -0.9, 0.35]).double())
    answer = strategy.tell(strategy.init(), told).classification
    assert int(answer.mean.argmax()) == 3
    assert 0.5 < float(answer.probability_above[3]) < 0.7
