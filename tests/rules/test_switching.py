r"""Rules that choose together, against the rules asked one after the other by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
import torch
from gpytorch.kernels import RBFKernel
from scipy.stats import norm

from botorch_lse import Observations, Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.rules.lookahead import Visits
from botorch_lse.rules.switching import expected_wrong
from botorch_lse.strategies import (
    Above,
    AlternatingRules,
    Ambiguity,
    ExpectedFeasibility,
    ExpectedMisclassification,
    FinalRuns,
    GaussianProcess,
    OptimalDesign,
    ParetoByDifferences,
    Random,
    RowCosts,
    Rule,
    ShareOfMax,
    ShareOfMaxByPairs,
    State,
    Straddle,
    Strategy,
    SwitchingRule,
    TargetedVariance,
    TruncatedVariance,
    UFunction,
    Variance,
    Width,
)
from tests.reference.dense_gp import DenseGP
from tests.strategies.runs import GP, LEVEL, grid, measure, run, step

X = grid()
N = len(X)
KERNEL = GPPrior.from_kernel(GP.kernel())
KERNEL_OF_ONE = GPPrior.from_kernel(DenseGP(lengthscale=(0.3,)).kernel())
POOL = Pool(X)
FIRST = [0, 3, 8, 14, 21, 27, 35]
SUR = ExpectedMisclassification(batch="joint")
PAIRS = [
    (Straddle(), SUR),
    (SUR, TargetedVariance(0.2), Variance()),
    (Ambiguity(), Random()),
    (UFunction(), ExpectedMisclassification()),
    (OptimalDesign(), Width()),
]


def build(rule: Rule, pool: Pool = POOL, **options) -> Strategy:
    model = GaussianProcess(KERNEL, noise_std=0.3)
    given = {"batch_size": 4, "beta": 3.8416, **options}
    return Strategy(pool, Above(LEVEL), model=model, rule=rule, **given)


def after(strategy: Strategy, rows: list[int]) -> State:
    y = torch.tensor([measure(row, i) for i, row in enumerate(rows)]).double()
    whole = torch.zeros(len(rows), dtype=torch.long)  # one round, however long
    return strategy.replay(Observations(torch.tensor(rows), y, round=whole))


def asked(size: int, pending: list[int] | None = None) -> PlanRequest:
    seen = torch.tensor(pending or [], dtype=torch.long)
    return PlanRequest(size, torch.full((N,), 9), seen, 0, 1)


# --- reference ------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [FIRST, FIRST[:-1]], ids=["odd", "even"])
@pytest.mark.parametrize("rules", PAIRS)
def test_each_row_is_the_best_of_the_rule_whose_turn_it_is(rules, rows) -> None:
    strategy = build(AlternatingRules(rules))
    state = after(strategy, rows)
    found = strategy.parts.plan(state.belief, asked(5)).tolist()
    pending: list[int] = []
    for i, row in enumerate(found):
        rule = rules[(len(rows) + i) % len(rules)]
        alone = replace(strategy.parts, rule=rule)
        # Asked alone for one row, while the others are being measured.
        assert alone.plan(state.belief, asked(1, pending)).tolist() == [row]
        pending.append(row)


def test_rows_that_are_being_measured_count_as_turns() -> None:
    strategy = build(AlternatingRules((Straddle(), SUR)))
    belief = after(strategy, FIRST).belief
    whole = strategy.parts.plan(belief, asked(5)).tolist()
    for n in range(1, 5):
        rest = strategy.parts.plan(belief, asked(5 - n, whole[:n])).tolist()
        assert rest == whole[n:]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "rule", [Straddle(), SUR, Ambiguity(), Variance(), UFunction()]
)
def test_turns_of_one_rule_are_that_rule(rule) -> None:
    for beta in (None, 4.0):
        ends = [
            run(build(r, beta=beta, max_observations=24), 6)[-1]
            for r in (rule, AlternatingRules((rule,)))
        ]
        one, other = (end.observations.indices.tolist() for end in ends)
        assert one == other
        one, other = (end.classification for end in ends)
        assert one.guarantee == other.guarantee
        assert torch.equal(one.above, other.above)


def test_single_rows_alternate_over_the_rounds() -> None:
    rules = (Straddle(), Variance())
    strategy = build(AlternatingRules(rules), batch_size=1)
    states = run(strategy, 7)
    chosen = states[-1].observations.indices.tolist()
    for n, state in enumerate(states[: len(chosen)]):
        alone = replace(strategy.parts, rule=rules[n % 2])
        assert alone.plan(state.belief, asked(1)).tolist() == [chosen[n]]


# --- in a strategy --------------------------------------------------------------------


@pytest.mark.parametrize("rules", PAIRS)
def test_replaying_gives_the_same_run(rules) -> None:
    strategy = build(AlternatingRules(rules), max_observations=20)
    end = run(strategy, 5)[-1]
    again = strategy.replay(end.observations)
    assert torch.equal(again.classification.above, end.classification.above)
    assert torch.equal(again.observations.indices, end.observations.indices)


def test_a_rule_with_nothing_left_passes_its_turn_on() -> None:
    # Of two rows one is in question; U measures no other, and it may be measured once.
    pool = Pool(torch.tensor([[0.0], [9.0]]).double())
    rules = AlternatingRules((UFunction(), Variance()))
    model = GaussianProcess(KERNEL_OF_ONE, noise_std=0.5)
    strategy = Strategy(pool, Above(0.0), model=model, rule=rules, beta=4.0)
    state = strategy.replay(Observations(torch.tensor([1] * 4), torch.full((4,), 2.0)))
    for left, wanted in ([1, 9], [0, 1, 1, 1]), ([0, 2], [1, 1]), ([0, 0], []):
        request = replace(asked(4), left=torch.tensor(left))
        assert strategy.parts.plan(state.belief, request).tolist() == wanted


def test_rules_of_other_widths_leave_the_decision_to_the_theorem() -> None:
    mixed, theorem = (
        build(r, beta=None) for r in (AlternatingRules((Straddle(), SUR)), SUR)
    )
    assert mixed.guarantee == theorem.guarantee
    assert "With probability 0.95" in mixed.guarantee
    # Straddle still chooses by its own width, which is not the theorem's.
    by_own, by_theorem = [], []
    for rows in ([], FIRST[:6], list(range(0, N, 2)), list(range(N)), [0, 1] * 6):
        belief = after(mixed, rows).belief if rows else mixed.init().belief
        chosen = mixed.parts.plan(belief, asked(1)).tolist()
        alone = replace(mixed.parts, rule=Straddle())
        by_own.append(alone.plan(belief, asked(1)).tolist() == chosen)
        wide = replace(alone, beta=mixed.parts.widths)
        by_theorem.append(wide.plan(belief, asked(1)).tolist() == chosen)
    assert all(by_own)
    assert not all(by_theorem)


def walk(previous: int | None, to: torch.Tensor) -> torch.Tensor:
    return 1.0 + (to - (0 if previous is None else previous)).abs().double()


def test_the_way_is_remembered_by_the_rule_that_pays_for_it() -> None:
    costly = ExpectedMisclassification(costs=RowCosts(POOL, walk))
    strategy = build(AlternatingRules((costly, Variance())), batch_size=3)
    state, spent, previous = strategy.init(), 0.0, None
    for _ in range(3):
        path = strategy.ask(state).order.tolist()
        for row in path:
            spent += float(walk(previous, torch.tensor(row)))
            previous = row
        # The nearest row first, from where the last batch ended.
        assert (
            path
            == RowCosts(POOL, walk)
            .visiting_order(
                None
                if len(state.observations) == 0
                else state.belief.memory[0].previous,
                torch.tensor(path),
            )
            .tolist()
        )
        state = step(strategy, state)
    assert state.belief.memory == (Visits(previous, pytest.approx(spent)), None)


def test_the_pools_costs_reach_every_rule() -> None:
    pool = Pool(X, costs=1.0 + 3.0 * X[:, 1])
    rules = ExpectedMisclassification(), TargetedVariance()
    own, given = (
        build(AlternatingRules(tuple(replace(r, costs=costs) for r in rules)), pool)
        for costs in (None, RowCosts(pool))
    )
    one, other = (run(s, 3)[-1].observations.indices.tolist() for s in (own, given))
    assert one == other
    with pytest.raises(ValueError, match="own `pool` of 36"):
        build(AlternatingRules((replace(SUR, costs=RowCosts(Pool(X[:5]))), Variance())))


def test_rules_for_several_outputs_take_turns_there() -> None:
    model = GaussianProcess(KERNEL, noise_std=(0.3, 0.3))
    goal = ParetoByDifferences((True, True), (0.1, 0.1))
    given = {"model": model, "batch_size": 3}
    rules = AlternatingRules((Variance(), OptimalDesign()))
    assert Strategy(POOL, goal, rule=rules, **given).guarantee
    with pytest.raises(ValueError, match="for several outputs"):
        Strategy(POOL, goal, rule=AlternatingRules((Variance(), Straddle())), **given)


HANDOVER = SwitchingRule((SUR, Ambiguity()), 0.05)


def test_the_second_rule_finishes() -> None:
    rule = HANDOVER
    strategy = build(rule, beta=9.0, max_observations=88)
    states = run(strategy, 30)
    phases = []
    for state, later in pairwise(states):
        answer = state.classification
        z = (answer.mean - LEVEL).abs() / answer.sigma
        open_rows = ~(answer.above | answer.below)
        share = float(norm.sf(z.numpy())[open_rows.numpy()].sum()) / N
        at = 0 if state.n_used == 0 or share > rule.wrong else 1
        phases.append(at)
        alone = replace(strategy.parts, rule=rule.rules[at])
        n = state.n_used
        chosen = later.observations.indices[n : n + 4].sort().values
        by_hand = alone.plan(state.belief, asked(4)).sort().values
        assert torch.equal(chosen, by_hand)
    assert set(phases) == {0, 1}


def test_what_is_known_exactly_is_not_expected_to_be_wrong() -> None:
    pool = Pool(torch.tensor([[0.0], [9.0]]).double())
    model = GaussianProcess(KERNEL_OF_ONE, noise_std=0.0)
    strategy = Strategy(pool, Above(0.0, epsilon=0.1), model=model, rule=HANDOVER)
    state = strategy.init()
    seen = strategy.parts.context(state.belief, torch.tensor([], dtype=torch.long))
    assert expected_wrong(seen) == pytest.approx(0.5)  # both rows lie on the level
    state = strategy.tell(state, Observations([0, 1], [0.0, -1.0]))
    assert state.is_done


def test_a_rule_that_takes_turns_hands_over() -> None:
    rule = SwitchingRule(
        (AlternatingRules((Straddle(), SUR)), SwitchingRule((Ambiguity(), Width()))),
        0.1,
    )
    strategy = build(rule, max_observations=24)
    end = run(strategy, 6)[-1]
    again = strategy.replay(end.observations)
    assert torch.equal(again.classification.above, end.classification.above)


def back(previous: int | None, to: torch.Tensor) -> torch.Tensor:
    return 2 * walk(previous, to)


@dataclass(frozen=True)
class OtherWidth(Variance):
    def width(self, memory, beta: float) -> float:
        return 2 * beta


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AlternatingRules(()), "at least one rule"),
        (lambda: AlternatingRules(Straddle()), "`rules` to be a tuple"),
        (lambda: AlternatingRules((Straddle(), "SUR")), "`rules`.*got str"),
        (
            lambda: AlternatingRules((Straddle(), AlternatingRules((SUR,)))),
            "got AlternatingRules inside AlternatingRules",
        ),
        (
            lambda: AlternatingRules((SUR, TruncatedVariance())),
            "TruncatedVariance.*epochs",
        ),
        (lambda: SwitchingRule((SUR,)), "the one that finishes, but got 1"),
        (lambda: SwitchingRule((SUR, Ambiguity), 0.1), "the class Ambiguity without"),
        (lambda: SwitchingRule((SUR, Ambiguity()), 5.0), "`wrong` in"),
        (
            lambda: SwitchingRule(
                (
                    AlternatingRules((TargetedVariance(costs=RowCosts(POOL, walk)),)),
                    TargetedVariance(costs=RowCosts(POOL, back)),
                )
            ),
            "the same way from row to row",
        ),
        (lambda: AlternatingRules((SUR, OtherWidth())), "OtherWidth, which sets it"),
        (
            lambda: AlternatingRules(
                tuple(
                    TargetedVariance(costs=RowCosts(POOL, way)) for way in (walk, back)
                )
            ),
            "the same way from row to row",
        ),
    ],
)
def test_what_cannot_take_turns_is_refused(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_expected_to_be_wrong_counts_by_weights() -> None:
    x = torch.arange(6.0).unsqueeze(-1)
    weights = torch.tensor([1.0, 5.0, 1.0, 1.0, 9.0, 3.0]).double()
    found = {}
    for name, pool in (("rows", Pool(x)), ("mass", Pool(x, weights=weights))):
        model = GaussianProcess(RBFKernel().double(), noise_std=0.3)
        strategy = Strategy(pool, Above(0.2), model=model)
        told = Observations(torch.tensor([1, 4]), torch.tensor([0.5, -0.4]))
        state = strategy.replay(told)
        none = torch.tensor([], dtype=torch.long)
        found[name] = expected_wrong(strategy.parts.context(state.belief, none))
        answer = state.classification
        p = answer.probability_above
        wrong = torch.minimum(p, 1 - p) * answer.undecided
    assert found["rows"] == pytest.approx(float(wrong.mean()))
    assert found["mass"] == pytest.approx(float(weights @ wrong / weights.sum()))
    assert found["rows"] != pytest.approx(found["mass"], rel=0.01)


@pytest.mark.parametrize(
    "rule",
    [
        UFunction(),
        AlternatingRules((UFunction(), ExpectedFeasibility())),
        SwitchingRule((ExpectedFeasibility(), Ambiguity())),
    ],
)
def test_rules_that_measure_only_rows_in_question_end_together(rule: Rule) -> None:
    # The row at 6 is on the level, and measured; the one at 0.1 is decided unmeasured.
    pool = Pool([[0.0], [0.1], [3.0], [6.0], [9.0]])
    y = torch.tensor([1.0, 1.0, -2.0, 0.0, 2.0]).double()
    # Exact but for rounding, so that the value 0 says nothing of the side.
    model = GaussianProcess(RBFKernel().double(), noise_std=1e-9)
    strategy = Strategy(pool, Above(0.0), model=model, rule=rule, beta=4.0)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(y[batch.order]))
    assert state.stop_reason == "rows exhausted"
    assert state.classification.undecided.nonzero().view(-1).tolist() == [3]
    assert state.n_used == 4


@pytest.mark.parametrize("omega", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("max_repeats", [1, 2])
def test_last_runs_without_a_row_pass_their_turn_on(omega, max_repeats):
    # Rows that are open are used up before the others, which may still tell of them.
    pool = Pool(torch.linspace(0, 1, 8).double().unsqueeze(-1))
    model = GaussianProcess(RBFKernel().double(), noise_std=0.2)
    rule = FinalRuns((ExpectedMisclassification(), UFunction()), after=3)
    limits = {"batch_size": 2, "max_repeats": max_repeats}
    strategy = Strategy(pool, ShareOfMax(omega), model=model, rule=rule, **limits)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        y = (6 * pool.X[batch.order, 0]).sin() + 0.2 * (-1.0) ** batch.order
        state = strategy.tell(state, batch.observe(y))
    assert state.uses(8).max() <= max_repeats


@pytest.mark.parametrize("seed", range(6))
def test_first_runs_without_a_row_pass_their_turn_on(seed):
    # Rows that are no candidates for the maximum any more may still tell of the others.
    generator = torch.Generator().manual_seed(seed)
    pool = Pool(torch.rand(10, 2, generator=generator, dtype=torch.float64))
    model = GaussianProcess(RBFKernel().double(), noise_std=0.1)
    rule = FinalRuns((Ambiguity(), Random()), after=50)
    limits = {"batch_size": 3, "max_repeats": 1, "beta": 4.0}
    goal = ShareOfMaxByPairs(0.6)
    strategy = Strategy(pool, goal, model=model, rule=rule, **limits)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        y = (9 * pool.X[batch.order, 0]).sin() + pool.X[batch.order, 1]
        state = strategy.tell(state, batch.observe(y))
    assert state.uses(10).max() <= 1
