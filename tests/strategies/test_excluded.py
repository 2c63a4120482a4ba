r"""Rows that cannot be measured: never asked for again, and a state that replays."""

import dataclasses

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.data.observations import Observations
from botorch_lse.papers.mason2022 import MELKPACStrategy
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    Below,
    GaussianProcess,
    HRAGELinearStrategy,
    HRAGEStrategy,
    Levels,
    LSEStrategy,
    Maximiser,
    MaximiserByPairs,
    MELKLinearStrategy,
    ParetoByDifferences,
    ShareOfMax,
    ShareOfMaxByPairs,
    Straddle,
    StraddleStrategy,
    Strategy,
)
from tests.covering import covering
from tests.registry import PLAYED, STRATEGIES

from .runs import assert_same, grid, make, measure, step, truth

GONE = [5, 17, 30]


def told(rows, n=0):
    rows = list(rows)
    return Observations(rows, [measure(row, n + i) for i, row in enumerate(rows)])


@pytest.mark.some(2)
@pytest.mark.parametrize("case", PLAYED)
def test_excluded_rows_are_never_asked_for_and_the_others_are(case):
    strategy = make(case, batch_size=4, max_observations=24, epsilon=0.0)
    state = strategy.exclude(strategy.init(), GONE)
    gone, asked = torch.tensor(GONE), []
    while not state.is_done:
        batch = strategy.ask(state)
        asked.append(len(batch))
        assert not torch.isin(batch.order, gone).any()
        state = step(strategy, state)
    assert asked[:-1] == [4] * (len(asked) - 1)  # no batch is smaller for it
    assert "Rows were excluded" in state.classification.guarantee
    again = strategy.replay(state.observations, excluded=state.excluded)
    assert_same(strategy, again, state)


@pytest.mark.some(6)
@pytest.mark.parametrize("case", PLAYED)
def test_the_rest_of_the_round_stays_and_the_order_of_events_plays_no_role(case):
    strategy = make(case, batch_size=4, beta=25.0)
    state = step(strategy, strategy.init())
    plan = strategy.ask(state).order.tolist()
    row = plan[0]
    first = strategy.exclude(state, [row])
    rest = [r for r in plan if r != row]
    new = strategy.planned(first).tolist()
    assert len(new) == 4
    assert row not in new
    for r in rest:
        assert rest.count(r) <= new.count(r)
    results = told(rest[:2], 50)
    after = strategy.exclude(strategy.tell(state, results), [row])
    before = strategy.tell(first, results)
    assert_same(strategy, after, before)
    again = strategy.replay(before.observations, excluded=before.excluded)
    assert_same(strategy, again, before)


def test_the_place_goes_to_the_row_that_is_best_beside_the_others():
    # The widest interval, given the rest of the round: by the definition, densely.
    strategy = make(StraddleStrategy, batch_size=3)
    state = step(strategy, strategy.init())
    plan = strategy.ask(state).order.tolist()
    after = strategy.exclude(state, plan[1:2])
    rest = [plan[0], plan[2]]
    belief = state.belief
    fits = belief.fits.expecting(torch.tensor(rest))
    sigma, mean = fits.posteriors[0].sigma, fits.posteriors[0].mean
    score = 2.0 * sigma - (mean - strategy.threshold).abs()
    score[plan[1]] = -torch.inf
    assert strategy.planned(after).tolist() == sorted([*rest, int(score.argmax())])


def test_what_was_measured_of_an_excluded_row_counts():
    strategy = make(LSEStrategy, batch_size=3)
    state = strategy.init()
    row = int(strategy.ask(state).order[0])
    state = strategy.exclude(strategy.tell(state, told([row])), [row])
    assert row in state.told.indices.tolist()
    assert row in strategy.planned(state).tolist()
    rest = strategy.ask(state).order
    assert row not in rest.tolist()
    whole = strategy.tell(state, told(rest.tolist(), 1))
    assert whole.round == 1
    assert row in whole.history.indices.tolist()
    again = strategy.replay(whole.observations, excluded=whole.excluded)
    assert_same(strategy, again, whole)


def test_nothing_is_charged_to_the_budget():
    strategy = make(LSEStrategy, batch_size=3, max_observations=9, epsilon=0.0)
    state = strategy.init()
    while not state.is_done:
        row = int(strategy.ask(state).order[0])
        if len(state.excluded) < 3:
            state = strategy.exclude(state, [row])
        state = step(strategy, state)
    assert state.stop_reason == "budget"
    assert len(state.history) == state.n_used == 9


def test_a_run_without_rows_ends_and_says_so():
    strategy = make(LSEStrategy, batch_size=3)
    state = strategy.exclude(strategy.init(), list(range(36)))
    assert state.stop_reason == "rows exhausted"
    again = strategy.replay(state.observations, excluded=state.excluded)
    assert again.stop_reason == "rows exhausted"
    assert again.round == state.round


def test_the_last_rows_leave_a_smaller_round():
    strategy = make(LSEStrategy, batch_size=3, max_repeats=1)
    state = strategy.exclude(strategy.init(), list(range(34)))
    assert strategy.ask(state).order.tolist() == [34, 35]
    assert step(strategy, state).round == 1


def test_excluding_twice_changes_nothing():
    strategy = make(LSEStrategy, batch_size=3)
    once = strategy.exclude(strategy.init(), GONE)
    assert strategy.exclude(once, GONE[::-1]) is once
    assert once.excluded == ((0, tuple(GONE)),)
    done = dataclasses.replace(once, stop_reason="budget")
    assert strategy.exclude(done, [1]).excluded_rows.tolist() == [1, *GONE]


def test_pending_rows_and_excluded_rows_go_together():
    strategy = make(LSEStrategy, batch_size=2)
    state = step(strategy, strategy.init())
    out = strategy.ask(state).order
    state = strategy.exclude(state, out[:1])
    assert len(strategy.ask(state, pending=out[1:])) == 1  # the one in its place
    ahead = strategy.ask(state, pending=strategy.planned(state))
    assert not torch.isin(ahead.order, out[:1]).any()


def test_rows_that_an_audit_drew_count_as_wrong():
    pool = Pool(grid())
    kernel = make(LSEStrategy).model
    strategy = Strategy(
        pool,
        Above(0.4, epsilon=0.5),
        model=GaussianProcess(kernel, noise_std=1e-3),
        beta=4.0,
        batch_size=4,
        audit=(0.3, 0.2),
    )
    state = strategy.init()
    while state.run.notes[0].claim is None:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, torch.tensor(truth()[rows])))
    drawn = int(state.run.notes[0].claim.drawn[0])
    other = strategy.exclude(state, [drawn])
    assert drawn not in strategy.ask(other).order.tolist()
    rows = strategy.ask(other).order
    other = strategy.tell(other, Observations(rows, torch.tensor(truth()[rows])))
    if other.run.notes[0].claim is not None:
        assert int(other.run.notes[0].claim.verdict[drawn]) < 0
    assert bool(other.run.notes[0].measured[drawn])  # no later claim is about it


@pytest.mark.parametrize("case", ["pac", "burn-in"])
def test_algorithms_that_need_their_rows_say_so(case):
    pool = Pool(grid(), features=torch.eye(36))
    if case == "pac":
        strategy = MELKPACStrategy(pool, threshold=0.4, noise_std=0.3, bound=2.0)
    else:
        strategy = MELKLinearStrategy(pool, threshold=0.4, noise_std=0.3)
        assert strategy.exclude(strategy.init(), [0]).excluded_rows.tolist() == [0]
        strategy = HRAGELinearStrategy(
            Pool(torch.eye(3)), threshold=0.4, variance_bounds=(0.1, 1.0), burn_in=3000
        )
    with pytest.raises(UnsupportedError, match=r"`rows`.*Leave them out of the pool"):
        strategy.exclude(strategy.init(), [0])


def test_bad_arguments_are_named():
    strategy = make(LSEStrategy)
    with pytest.raises(ValueError, match="`rows`"):
        strategy.exclude(strategy.init(), [36])
    with pytest.raises(ValueError, match=r"`excluded` to be .* or pairs"):
        strategy.replay(Observations.empty(), excluded=[3])
    with pytest.raises(ValueError, match=r"excluded\[0\]"):
        strategy.replay(Observations.empty(), excluded=[(0, [99])])


def test_a_value_of_a_row_that_was_just_excluded_waits_for_the_end_of_the_round():
    strategy = make(LSEStrategy, batch_size=4)
    state = step(strategy, strategy.init())
    row = int(strategy.ask(state).order[0])
    gone = strategy.exclude(state, [row])
    late = strategy.tell(gone, told([row], 50))  # it came after all
    assert late.round == gone.round
    assert torch.equal(strategy.planned(late), strategy.planned(gone))
    again = strategy.replay(late.observations, excluded=late.excluded)
    assert_same(strategy, again, late)
    done = step(strategy, late)
    assert row in done.history.indices.tolist()
    assert_same(
        strategy, strategy.replay(done.observations, excluded=done.excluded), done
    )


def test_a_value_that_came_for_no_place_takes_the_one_that_becomes_free():
    strategy = make(LSEStrategy, batch_size=4)
    state = step(strategy, strategy.init())
    plan = strategy.ask(state).order.tolist()
    part = strategy.tell(state, told(plan[:1], 50))
    (new,) = set(strategy.planned(strategy.exclude(part, plan[1:2])).tolist()) - set(
        plan
    )
    early = strategy.tell(part, told([new], 51))
    assert new not in early.told.indices.tolist()
    state = strategy.exclude(early, plan[1:2])
    assert new in state.told.indices.tolist()
    again = strategy.replay(state.observations, excluded=state.excluded)
    assert_same(strategy, again, state)


@pytest.mark.parametrize("rule", [None, Ambiguity()])
def test_only_excluded_rows_are_left_in_question(rule) -> None:
    r"""A rule that may choose them alone ends; the default measures around them."""
    X = torch.linspace(0, 10, 21).double()
    model = GaussianProcess(RBFKernel().double(), noise_std=0.02)
    strategy = Strategy(
        Pool(X.unsqueeze(-1)),
        Above(0.3, epsilon=0.02),
        model=model,
        rule=rule,
        max_observations=60,
    )
    gone = [0, 6, 7]
    state = strategy.exclude(strategy.init(), gone)
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(X[batch.order].sin()))
    assert not set(gone) & set(state.observations.indices.tolist())
    assert state.stop_reason in ("rows exhausted", "decided", "budget")
    if rule is None:
        assert state.stop_reason != "rows exhausted"


def sine_without_its_first_rows(**options):
    r"""The states of a run on a sine whose first eight of 21 rows are excluded."""
    x = torch.linspace(0, 10, 21).double()
    model = GaussianProcess(RBFKernel().double(), noise_std=0.05)
    given = {"model": model, "rule": Straddle(), **options}
    strategy = Strategy(Pool(x.unsqueeze(-1)), Above(0.3, epsilon=0.02), **given)
    generator = torch.Generator().manual_seed(0)
    state = strategy.exclude(strategy.init(), range(8))
    while not state.is_done:
        yield state
        batch = strategy.ask(state)
        noise = 0.05 * torch.randn(len(batch), generator=generator)
        state = strategy.tell(state, batch.observe(x[batch.order].sin() + noise))
    yield state


def test_a_forecast_does_not_take_excluded_rows_for_measurable_ones() -> None:
    # Their gaps ask for six measurements, of which none can be made.
    states = list(sine_without_its_first_rows(max_observations=40))
    assert "Of excluded rows 8 count as if they could be measured" in str(
        states[0].forecast()
    )
    said = "Everything is decided but for excluded rows (8)."
    assert states[-1].forecast().observations is None
    assert str(states[-1].forecast()).endswith(said)  # nothing comes next
    assert "give `max_observations`" in str(states[-2].forecast())
    # The remedy, from the round on in which it was said.
    n = next(state.n_used for state in states if said in str(state.forecast()))
    *_, last = sine_without_its_first_rows(max_observations=n)
    assert (last.n_used, last.stop_reason) == (n, "budget")
    *_, last = sine_without_its_first_rows(rule=Ambiguity())
    assert last.stop_reason == "decided"
    assert last.classification.undecided.nonzero().view(-1).tolist() == [*range(8)]
    assert last.forecast().observations == 0
    assert said in str(last.forecast())


@pytest.mark.parametrize("case", [case for case in STRATEGIES if case.is_linear])
def test_no_row_is_left_of_linear_features(case):
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]).double()
    aim = {"maximize": (True, False)} if case.has_several_outputs else case.aim(0.3)
    given = {"batch_size": 1, "noise_std": 0.3, "max_repeats": 1}
    strategy = case.make(Pool(features), **aim, **given)
    state = strategy.init()
    with pytest.raises(ValueError, match="Nothing is left to ask while 3 rows are"):
        strategy.ask(state, pending=[0, 1, 2])
    for rest in ([0, 1, 2], [1, 2]):
        gone = strategy.exclude(strategy.exclude(state, [0]), rest)
        assert gone.stop_reason == "rows exhausted"
        assert gone.excluded_rows.tolist() == [0, 1, 2]
    y = torch.zeros(1, 2) if case.has_several_outputs else torch.zeros(1)
    one = dataclasses.replace(strategy, max_repeats=None)
    # One row tells of one direction alone: before two are known nothing is decided.
    alone = one.exclude(one.init(), [1, 2])
    assert one.tell(alone, one.ask(alone).observe(y)).stop_reason == "out of reach"
    state = strategy.tell(state, strategy.ask(state).observe(y))
    gone = strategy.exclude(state, [0, 1, 2])
    assert gone.stop_reason == "rows exhausted"
    again = strategy.replay(gone.observations, excluded=gone.excluded)
    assert again.stop_reason == gone.stop_reason


REGIONS = {
    "one level": Above(1.0),
    "levels": Levels((0.9, 1.9)),
    "two outputs": Above(1.0) & Below(4.0, output=1),
    "share": ShareOfMax(0.6),
}


@covering(
    "goal, is_equal, when",
    [*REGIONS],
    [True, False],
    ["before", "meanwhile", "after"],
)
def test_exact_values_of_all_rows_that_may_be_measured_end_the_run(
    goal, is_equal, when
):
    # Rows 6 and 7 are copies of 1 and 2; of the first pair the first is excluded, of
    # the second the last, and row 4 has no copy. All values lie above the level.
    X = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0]).double().unsqueeze(-1)
    gone, model = [1, 7, 4], GaussianProcess(noise_std=0.0)
    strategy = Strategy(Pool(X), REGIONS[goal], model=model, batch_size=1)
    state = strategy.init()
    if when == "before":
        state = strategy.exclude(state, gone)
    while not state.is_done:
        rows = strategy.ask(state).order
        if rows.tolist()[0] in gone:
            state = strategy.exclude(state, rows if when == "meanwhile" else gone)
            continue
        y = 2.0 + (0.0 if is_equal else 0.1) * X[rows, 0]
        both = torch.stack((y, y + 1.0), dim=-1)
        state = strategy.tell(state, Observations(rows, both if "two" in goal else y))
    measured = state.history.indices.unique()
    assert X[measured].unique().tolist() == [0.0, 1.0, 2.0, 3.0, 5.0]
    assert len(state.history) == 5
    assert state.stop_reason == "decided"
    answer = state.classification
    assert not answer.undecided[[0, 1, 2, 3, 5, 6, 7]].any()
    assert answer.lower.isfinite().all()
    again = strategy.replay(state.observations, excluded=state.excluded)
    assert_same(strategy, again, state)


# --- what cannot become known ---------------------------------------------------------


UNREACHED = {
    "one level": Above(0.3),
    "levels": Levels((0.2, 0.4)),
    "two outputs": Above(0.3) & Below(0.4, output=1),
    "share": ShareOfMax(0.6),
    "share by pairs": ShareOfMaxByPairs(0.6),
    "best": Maximiser(),
    "Pareto set": ParetoByDifferences((True, True), (0.1, 0.1)),
}


def short_line() -> tuple[Pool, torch.Tensor, GaussianProcess]:
    r"""Eight rows that hardly tell of each other, their values, and noise."""
    X = torch.linspace(0, 1, 8).double().unsqueeze(-1)
    F = torch.stack((torch.sin(6 * X[:, 0]), torch.cos(5 * X[:, 0])), dim=-1)
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.15
    return Pool(X), F, GaussianProcess(kernel, noise_std=0.2)


@pytest.mark.some(2)
@pytest.mark.parametrize("goal", UNREACHED)
def test_a_run_ends_once_no_measurement_that_may_be_made_decides_more(goal):
    pool, F, model = short_line()
    F = F if UNREACHED[goal].facts.n_outputs == 2 else F[:, 0]
    strategy = Strategy(pool, UNREACHED[goal], model=model, batch_size=2)
    state = strategy.exclude(strategy.init(), [0, 1, 3, 4, 5, 6, 7])
    generator = torch.Generator().manual_seed(0)

    def go_on(state):
        y = F[[2, 2]] + 0.2 * torch.randn(F[[2, 2]].shape, generator=generator).double()
        return strategy.tell(state, strategy.ask(state).observe(y))

    while not state.is_done:
        state = go_on(state)
    assert len(state.history) <= 20
    is_row_open = bool(state.classification.undecided[2])
    assert state.stop_reason == ("out of reach" if is_row_open else "decided")
    before = state.classification.undecided
    for _ in range(15):  # as if it had not ended
        state = go_on(dataclasses.replace(state, stop_reason=None))
    assert torch.equal(state.classification.undecided, before)


def test_what_is_out_of_reach_by_the_definition():
    # The intervals are computed densely: with the values of the rows that may still be
    # measured known exactly, anywhere in their intervals, no open row is decided.
    pool, F, model = short_line()
    strategy = Strategy(pool, Above(0.3), model=model, beta=4.0, max_repeats=3)
    state, kernel = strategy.exclude(strategy.init(), [0, 3, 5, 7]), model.model
    K = kernel(pool.X).to_dense().detach()
    ends = []
    while not state.is_done:
        row = strategy.ask(state).order
        state = strategy.tell(state, Observations(row, F[row, 0]))
        answer, uses = state.classification, state.uses(8)
        usable = torch.tensor([r for r in (1, 2, 4, 6) if uses[r] < 3]).long()
        rows = state.history.indices
        inverse = (K[rows][:, rows] + 0.04 * torch.eye(len(rows))).inverse()
        S = K - K[:, rows] @ inverse @ K[rows]
        left = S - S[:, usable] @ S[usable][:, usable].pinverse() @ S[usable]
        moves = (S - left).diagonal().clamp_min(0).sqrt()
        best = (answer.mean - 0.3).abs() + 2 * moves
        may_be = answer.undecided & (best > 2 * left.diagonal().clamp_min(0).sqrt())
        ends.append((state.is_done, not bool(may_be.any()) or len(usable) == 0))
    assert len(ends) > 2
    assert all(is_done == as_defined for is_done, as_defined in ends)


def test_targets_that_the_pool_does_not_tell_are_out_of_reach():
    pool, F, model = short_line()
    given = {"model": model.model, "noise_std": 0.2, "beta": 4.0}
    far = torch.tensor([[1.4], [0.5]]).double()
    strategy = HRAGEStrategy(pool, 0.8, targets=Pool(far), **given)
    state = strategy.init()
    while not state.is_done:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, F[rows, 0]))
    assert state.stop_reason == "out of reach"
    assert "The run has ended (out of reach)" in str(state.forecast())
    assert state.classification.undecided.tolist() == [True, False]
    assert len(state.history) < 60


@pytest.mark.parametrize(
    ("goal", "left"),
    [
        (MaximiserByPairs(0.05), [2, 9]),
        (ShareOfMaxByPairs(0.6, 0.05), [2, 9]),
        (ShareOfMaxByPairs(0.6, 0.05), [0, 3, 7, 11]),
    ],
)
def test_a_rule_does_not_stay_with_one_of_few_rows(goal, left):
    # The row at the estimated level was measured for ever, the others hardly once.
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.2
    x = torch.linspace(0, 1, 12).double()
    model = GaussianProcess(kernel, noise_std=0.05)
    strategy = Strategy(
        Pool(x.view(-1, 1)), goal, rule=Straddle(), model=model, batch_size=1
    )
    gone = [row for row in range(12) if row not in left]
    state = strategy.exclude(strategy.init(), gone)
    generator = torch.Generator().manual_seed(0)
    while not state.is_done and state.n_used < 60:
        row = strategy.ask(state).order
        noise = torch.randn(1, generator=generator, dtype=torch.float64)
        y = (6 * x[row]).sin() + 0.05 * noise
        state = strategy.tell(state, Observations(row, y))
    assert state.stop_reason in ("out of reach", "decided")
    assert len(state.observations.indices.unique()) == len(left)


@pytest.mark.parametrize("goal", [MaximiserByPairs(0.05), ShareOfMaxByPairs(0.6, 0.05)])
@pytest.mark.parametrize("left", [[2, 9], [0, 3, 7]])
def test_a_run_whose_open_rows_are_excluded_ends_soon(goal, left):
    # All others may be known as exactly as one likes: these stay open.
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.2
    x = torch.linspace(0, 1, 12).double()
    strategy = Strategy(
        Pool(x.view(-1, 1)),
        goal,
        rule=Straddle(),
        model=GaussianProcess(kernel, noise_std=0.3),
        batch_size=10,
    )
    gone = [row for row in range(12) if row not in left]
    state = strategy.exclude(strategy.init(), gone)
    generator = torch.Generator().manual_seed(0)
    while not state.is_done and state.n_used < 300:
        rows = strategy.ask(state).order
        noise = torch.randn(len(rows), generator=generator, dtype=torch.float64)
        y = (6 * x[rows]).sin() + 0.3 * noise
        state = strategy.tell(state, Observations(rows, y))
    assert state.is_done
    assert bool(state.classification.undecided.any())
