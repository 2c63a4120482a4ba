r"""Rules that look ahead, against posteriors after every value that may come."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.special import entr, ndtr
from scipy.stats import norm

from botorch_lse import Observations, Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.lookahead import mutual_information
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.rules.lookahead import Reductions
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    Ambiguity,
    ContentVariance,
    ExpectedMisclassification,
    GaussianProcess,
    LookAhead,
    MutualInformation,
    RowCosts,
    State,
    Strategy,
    TargetedVariance,
    TruncatedVariance,
)
from tests.reference.dense_gp import DenseGP
from tests.strategies.runs import GP, LEVEL, grid, measure, rows, run

X = grid()
N = len(X)
KERNEL = GPPrior.from_kernel(GP.kernel())
KERNEL_OF_ONE = GPPrior.from_kernel(DenseGP(lengthscale=(0.3,)).kernel())
FIRST = [0, 3, 8, 14, 21, 27, 35]
NOISE = (0.05 + 0.4 * X[:, 0]).numpy()
COSTS = 1.0 + 3.0 * X[:, 1]
FREE = Pool(X, noise_var=torch.from_numpy(NOISE))
POOL = Pool(X, noise_var=torch.from_numpy(NOISE), costs=COSTS)
NODES = 4000
"""Of the quadrature over the value to come; a loss with a corner needs many."""
DRAWS = 20_000
"""Of the values of a whole batch, by Monte Carlo."""


def side_variance(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    return ndtr((mean - LEVEL) / sd) * ndtr((LEVEL - mean) / sd)


def side_entropy(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    return entr(ndtr((mean - LEVEL) / sd)) + entr(ndtr((LEVEL - mean) / sd))


def share_above(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    return ndtr((mean - LEVEL) / sd)


RULES = [
    (TargetedVariance(), None),
    (TargetedVariance(tau=0.5), None),
    (ExpectedMisclassification(), side_variance),
    (MutualInformation(), side_entropy),
    (AbsoluteVolumeChange(), share_above),
]
IDS = ["tIMSE", "tIMSE, tau", "product", "entropy", "volume"]
JOINT, JOINT_IDS = RULES[:-1], IDS[:-1]
r"""The volume's rule plans no joint batches."""


def build(rule: LookAhead | None, pool: Pool = POOL, **options) -> Strategy:
    model = GaussianProcess(KERNEL, noise_std=0.3 if pool.noise_var is None else None)
    given = {"batch_size": 1, "beta": 1.0, **options}
    return Strategy(pool, Above(LEVEL), model=model, rule=rule, **given)


def after_first(strategy: Strategy) -> State:
    y = torch.tensor([measure(row, i) for i, row in enumerate(FIRST)]).double()
    return strategy.replay(Observations(torch.tensor(FIRST), y))


def asked(size: int, left: torch.Tensor) -> PlanRequest:
    return PlanRequest(size, left, torch.tensor([], dtype=torch.long), 0, 1)


class Dense:
    r"""The posterior from a fresh solve; planned rows are told their own means."""

    def __init__(self, noise_var: np.ndarray) -> None:
        self.noise_var = noise_var
        self.rows = list(FIRST)
        self.y = [measure(row, i) for i, row in enumerate(FIRST)]

    def moments(self, rows=(), y=()) -> tuple[np.ndarray, np.ndarray]:
        seen = [*self.rows, *rows]
        told = np.array([*self.y, *y])
        return GP.moments(X.numpy(), X[seen].numpy(), told, self.noise_var[seen])

    def plan(self, row: int) -> None:
        mean, _ = self.moments()
        self.rows.append(row)
        self.y.append(mean[row])

    def removed_together(
        self, batch: list[int], loss, tau: float, targets: np.ndarray
    ) -> float:
        r"""What a whole batch removes, by the normal means that it may lead to."""
        mean, sd = self.moments()
        _, after = self.moments(batch, np.zeros(len(batch)))
        taken = sd**2 - after**2
        if loss is None:
            weight = norm.pdf(LEVEL, mean, np.sqrt(sd**2 + tau**2))
            return float((weight * taken)[targets].sum())
        z = norm.ppf((np.arange(NODES) + 0.5) / NODES)[:, None]
        later = loss(mean + np.sqrt(taken) * z, after)[:, targets].sum() / NODES
        return float(loss(mean, sd)[targets].sum() - later)

    def drawn(self, batch: list[int], loss, targets: np.ndarray) -> np.ndarray:
        r"""What a whole batch removes, for values of it drawn from the posterior."""
        mean, covariance = GP.posterior(
            X.numpy(), X[self.rows].numpy(), np.array(self.y), self.noise_var[self.rows]
        )
        of_batch = covariance[np.ix_(batch, batch)] + np.diag(self.noise_var[batch])
        draws = np.random.default_rng(0).multivariate_normal(
            mean[batch], of_batch, DRAWS
        )
        at_0, after = self.moments(batch, np.zeros(len(batch)))
        slopes = [self.moments(batch, unit)[0] - at_0 for unit in np.eye(len(batch))]
        now = loss(mean, np.sqrt(np.diag(covariance)))[targets].sum()
        later = loss(at_0 + draws @ np.array(slopes), after)[:, targets].sum(axis=-1)
        return now - later

    def removed(self, row: int, loss, tau: float, targets: np.ndarray) -> float:
        r"""The loss now, minus its mean over the values that may come."""
        mean, sd = self.moments()
        if loss is None:
            weight = norm.pdf(LEVEL, mean, np.sqrt(sd**2 + tau**2))
            _, after = self.moments([row], [0.0])
            return float((weight * (sd**2 - after**2))[targets].sum())
        # Equally likely values, by the midpoints of as many strips. The mean afterwards
        # is a straight line in the value.
        z = norm.ppf((np.arange(NODES) + 0.5) / NODES)[:, None]
        value = mean[row] + np.sqrt(sd[row] ** 2 + self.noise_var[row]) * z
        at_0, after = self.moments([row], [0.0])
        at_1, _ = self.moments([row], [1.0])
        later = loss(at_0 + (at_1 - at_0) * value, after)[:, targets].sum(axis=1)
        taken = loss(mean, sd)[targets].sum() - later
        # A loss shrinks on average; a volume moves to either side.
        return float((np.abs(taken) if loss is share_above else taken).mean())


def targets_of(state: State) -> np.ndarray:
    return state.belief.sides.candidates.numpy()


# --- reference ------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "loss"), RULES, ids=IDS)
def test_scores_are_expectations_over_the_values_to_come(rule, loss) -> None:
    strategy = build(rule)
    state = after_first(strategy)
    dense, targets = Dense(NOISE), targets_of(state)
    assert 0 < targets.sum() < N
    context = strategy.parts.context(state.belief, torch.tensor([5]))
    dense.plan(5)
    some = [1, 5, 14, 22, 33]
    found = rule.scores(context, None, torch.tensor(some))
    tau = getattr(rule, "tau", 0.0)
    wanted = [dense.removed(row, loss, tau, targets) for row in some]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3, atol=2e-5)


@pytest.mark.some(1)
@pytest.mark.parametrize("pool", [FREE, POOL], ids=["free", "costs"])
@pytest.mark.parametrize(("rule", "loss"), RULES, ids=IDS)
def test_a_batch_is_chosen_one_row_after_the_other(rule, loss, pool) -> None:
    strategy = build(rule, pool)
    state = after_first(strategy)
    dense, targets = Dense(NOISE), targets_of(state)
    prices = np.ones(N) if pool.costs is None else pool.costs.numpy()
    request = asked(3, torch.full((N,), 9))
    for row in strategy.parts.plan(state.belief, request).tolist():
        tau = getattr(rule, "tau", 0.0)
        scores = [dense.removed(x, loss, tau, targets) for x in range(N)]
        per_cost = np.array(scores) / prices
        assert per_cost[row] >= 0.999 * per_cost.max()
        dense.plan(row)


# --- joint batches --------------------------------------------------------------------


def added_one_by_one(rule: LookAhead, batch: list[int]) -> float:
    r"""The scores of a batch's rows, each given those before, summed."""
    strategy = build(rule)
    state, total = after_first(strategy), 0.0
    for i, row in enumerate(batch):
        pending = torch.tensor(batch[:i], dtype=torch.long)
        context = strategy.parts.context(state.belief, pending)
        total += float(rule.scores(context, None, torch.tensor([row])))
    return total


@pytest.mark.parametrize(("rule", "loss"), JOINT[2:], ids=JOINT_IDS[2:])
def test_joint_scores_add_up_to_the_expectation_over_all_values(rule, loss) -> None:
    batch = [5, 16, 10]
    targets = targets_of(after_first(build(rule)))
    drawn = Dense(NOISE).drawn(batch, loss, targets)
    found = added_one_by_one(replace(rule, batch="joint"), batch)
    error = float(drawn.std()) / DRAWS**0.5
    assert abs(found - float(drawn.mean())) < 4 * error
    # The sides are not as if the first two values were their means.
    believed = added_one_by_one(rule, batch)
    assert abs(believed - float(drawn.mean())) > 4 * error


@pytest.mark.parametrize(("rule", "loss"), JOINT, ids=JOINT_IDS)
def test_joint_scores_count_pending_rows(rule, loss) -> None:
    batch = [5, 5, 16]  # a row twice
    targets = targets_of(after_first(build(rule)))
    wanted = Dense(NOISE).removed_together(
        batch, loss, getattr(rule, "tau", 0.0), targets
    )
    found = added_one_by_one(replace(rule, batch="joint"), batch)
    assert found == pytest.approx(wanted, rel=1e-3)


@pytest.mark.some(1)
@pytest.mark.parametrize("pending", [[], [16, 5]], ids=["alone", "pending"])
@pytest.mark.parametrize(("rule", "loss"), JOINT, ids=JOINT_IDS)
def test_a_joint_batch_removes_most_as_a_whole(rule, loss, pending) -> None:
    strategy = build(replace(rule, batch="joint"))
    state = after_first(strategy)
    dense, targets = Dense(NOISE), targets_of(state)
    request = replace(
        asked(3, torch.full((N,), 9)), pending=torch.tensor(pending, dtype=torch.long)
    )
    chosen: list[int] = [*pending]
    tau = getattr(rule, "tau", 0.0)
    base = dense.removed_together(chosen, loss, tau, targets) if chosen else 0.0
    for row in strategy.parts.plan(state.belief, request).tolist():
        together = [
            dense.removed_together([*chosen, x], loss, tau, targets) for x in range(N)
        ]
        per_cost = (np.array(together) - base) / COSTS.numpy()
        assert per_cost[row] >= 0.999 * per_cost.max()
        chosen.append(row)
        base = together[row]


@pytest.mark.parametrize("rule", [rule for rule, _ in JOINT], ids=JOINT_IDS)
def test_a_single_row_is_the_same_in_both_kinds_of_batch(rule) -> None:
    strategies = build(rule), build(replace(rule, batch="joint"))
    one, other = (s.ask(after_first(s)).order.tolist() for s in strategies)
    assert one == other


@pytest.mark.parametrize("rule", [rule for rule, _ in JOINT], ids=JOINT_IDS)
def test_a_joint_batch_that_leaves_nothing_goes_on_by_the_variance(rule) -> None:
    # Every row is in question, and known after one measurement of each.
    pool = Pool(torch.arange(4.0).unsqueeze(-1).double() * 9)
    model = GaussianProcess(KERNEL_OF_ONE, noise_std=0.0)
    strategy = Strategy(
        pool, Above(0.1), model=model, rule=replace(rule, batch="joint"), beta=9.0
    )
    state = strategy.init()
    request = asked(6, torch.full((4,), 9))
    found = strategy.parts.plan(state.belief, request).tolist()
    assert sorted(found[:4]) == [0, 1, 2, 3]


# --- in a strategy --------------------------------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize("rule", [rule for rule, _ in RULES], ids=IDS)
def test_any_width_declares_what_the_rule_measured(rule) -> None:
    widths = {"beta": None, "delta": 0.1, "max_observations": 40}
    own, other = (build(each, Pool(X), **widths) for each in (rule, Ambiguity()))
    assert own.guarantee == other.guarantee
    end = run(own, 40)[-1]
    again = own.replay(end.observations)
    assert again.observations.indices.tolist() == end.observations.indices.tolist()
    assert torch.equal(again.classification.above, end.classification.above)


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES], ids=IDS)
def test_a_row_may_be_repeated_inside_a_batch(rule) -> None:
    # One row in question: measurements of the other, far away, tell nothing about it.
    pool = Pool(torch.tensor([[0.0], [9.0]]).double())
    model = GaussianProcess(KERNEL_OF_ONE, noise_std=0.5)
    strategy = Strategy(pool, Above(0.0), model=model, rule=rule, batch_size=1, beta=4)
    state = strategy.replay(Observations(torch.tensor([1] * 4), torch.full((4,), 2.0)))
    assert rows(state.classification.undecided) == {0}
    for left, wanted in ([9, 9], [0, 0, 0, 0]), ([2, 9], [0, 0, 1, 1]):
        found = strategy.parts.plan(state.belief, asked(4, torch.tensor(left)))
        assert found.tolist() == wanted


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES], ids=IDS)
def test_a_level_far_away_leaves_the_variance_to_choose_by(rule) -> None:
    strategy = replace(build(rule), goal=Above(1e4), beta=1e12)
    state = after_first(strategy)
    everything = torch.ones(N, dtype=torch.bool)
    assert torch.equal(state.belief.sides.candidates, everything)
    C = state.belief.posterior.covariance_between(torch.arange(N), torch.arange(N))
    taken = C.square().sum(-1) / (C.diagonal() + torch.from_numpy(NOISE))
    assert int(strategy.ask(state).order) == int((taken / COSTS).argmax())


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "rule", [TruncatedVariance(), *[rule for rule, _ in RULES]], ids=["TruVaR", *IDS]
)
def test_costs_are_the_pools_unless_others_are_given(rule) -> None:
    options = {"batch_size": 3, "max_observations": 12}
    own, given = (
        build(replace(rule, costs=costs), **options) for costs in (None, RowCosts(POOL))
    )
    end = run(own, 4)[-1]
    indices = end.observations.indices
    assert indices.tolist() == run(given, 4)[-1].observations.indices.tolist()
    assert end.belief.memory.spent == pytest.approx(float(COSTS[indices].sum()))
    free = run(build(rule, FREE, **options), 4)[-1]
    assert free.observations.indices.tolist() != indices.tolist()
    assert free.belief.memory.spent == len(indices)
    assert own.rule.costs is None  # what was given stays, and is what Ax stores


def test_the_pools_costs_must_be_positive() -> None:
    pool = Pool(X, costs=COSTS - 1.0)
    with pytest.raises(ValueError, match=r"`pool\.costs` to be positive"):
        build(TargetedVariance(), pool)


def walk(previous: int | None, to: torch.Tensor) -> torch.Tensor:
    return 1.0 + (to - (0 if previous is None else previous)).abs().double()


def test_costs_may_depend_on_the_row_before() -> None:
    pool = Pool(X)
    rule = ExpectedMisclassification(costs=RowCosts(pool, walk))
    strategy = build(rule, pool, batch_size=2, max_observations=10)
    end = run(strategy, 5)[-1]
    memory = end.belief.memory
    assert memory.previous == int(end.observations.indices[-1])
    path = [None, *end.observations.indices.tolist()]
    steps = [float(walk(i, torch.tensor(j))) for i, j in pairwise(path)]
    assert memory.spent == pytest.approx(sum(steps))


def test_where_all_rows_are_excluded_the_last_visit_stays() -> None:
    pool = Pool(X)
    rule = ExpectedMisclassification(costs=RowCosts(pool, walk))
    strategy = Strategy(pool, Above(LEVEL), rule=rule)
    state = strategy.tell(strategy.init(), Observations([3, 5], [0.2, 0.7]))
    memory = state.belief.memory
    state = strategy.exclude(state, range(N))  # a model is learnt of the two values
    assert state.belief.fits.is_informed
    assert memory.previous is not None
    assert state.belief.memory.previous == memory.previous
    assert state.belief.memory.spent == memory.spent


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES[:-1]], ids=IDS[:-1])
def test_of_rows_that_are_alike_the_first_is_chosen(rule) -> None:
    # A centred grid and data at its centre: opposite rows differ by rounding alone.
    ticks = torch.linspace(-1, 1, 9, dtype=torch.float64)
    pool = Pool(torch.cartesian_prod(ticks, ticks), noise_var=torch.full((81,), 0.1))
    strategy = build(rule, pool)
    state = strategy.replay(
        Observations(torch.tensor([40, 40, 40]), torch.full((3,), LEVEL))
    )
    chosen = int(strategy.ask(state).indices[0])
    at = pool.X[chosen]
    alike = [(pool.X - sign * at).abs().sum(dim=-1).argmin() for sign in (1, -1)]
    assert chosen == min(int(i) for i in alike)


def test_blocks_of_candidates_and_targets_change_nothing() -> None:
    strategy = build(MutualInformation())
    belief = after_first(strategy).belief
    every = torch.arange(N)
    whole, small = (
        Reductions(
            replace(belief.posterior, memory_budget=budget),
            every,
            every,
            belief.fits.new_noise,
        ).summed(mutual_information_at(belief.posterior))
        for budget in (2**30, 2**11)
    )
    torch.testing.assert_close(whole, small, rtol=1e-12, atol=0)


def mutual_information_at(posterior):
    return lambda rows: mutual_information(
        posterior.mean[rows] - LEVEL, posterior.variance[rows]
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TargetedVariance(tau=-1.0), "`tau`"),
        (lambda: TargetedVariance(batch="greedy"), "`batch`"),
        (lambda: ExpectedMisclassification(batch="all"), "`batch`"),
        (lambda: MutualInformation(batch=""), "`batch`"),
        (lambda: build(MutualInformation(RowCosts(Pool(X[:5])))), "own `pool` of 36"),
    ],
)
def test_what_does_not_fit_is_refused(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# --- weights --------------------------------------------------------------------------

WEIGHTS = np.linspace(0.2, 3.0, N) ** 2
SHARES = WEIGHTS / WEIGHTS.sum()
HEAVY = Pool(X, noise_var=torch.from_numpy(NOISE), weights=WEIGHTS)


def weighing(loss):
    r"""The loss of each row times its share; of the share itself squared changes."""
    return lambda mean, sd: loss(mean, sd) * SHARES


class WeightedDense(Dense):
    def removed(self, row, loss, tau, targets) -> float:
        if loss is None:  # a weighted sum of single targets
            each = np.eye(N, dtype=bool)[targets]
            found = [
                super(WeightedDense, self).removed(row, None, tau, t) for t in each
            ]
            return float(SHARES[targets] @ found)
        if loss is not share_above:
            return super().removed(row, weighing(loss), tau, targets)
        mean, sd = self.moments()
        z = norm.ppf((np.arange(NODES) + 0.5) / NODES)[:, None]
        value = mean[row] + np.sqrt(sd[row] ** 2 + self.noise_var[row]) * z
        at_0, after = self.moments([row], [0.0])
        at_1, _ = self.moments([row], [1.0])
        later = ndtr((at_0 + (at_1 - at_0) * value - LEVEL) / after)
        return (later - ndtr((mean - LEVEL) / sd))[:, targets] @ SHARES[targets]


@pytest.mark.parametrize(
    ("rule", "loss"), [*RULES, (ContentVariance(), share_above)], ids=[*IDS, "variance"]
)
def test_targets_count_by_their_weights(rule, loss) -> None:
    strategy = build(rule, HEAVY)
    state = after_first(strategy)
    dense, targets = WeightedDense(NOISE), targets_of(state)
    context = strategy.parts.context(state.belief, torch.tensor([5]))
    dense.plan(5)
    some = [1, 5, 14, 22, 33]
    found = rule.scores(context, None, torch.tensor(some))
    wanted = [
        dense.removed(row, loss, getattr(rule, "tau", 0.0), targets) for row in some
    ]
    if isinstance(rule, ContentVariance):
        wanted = [np.mean(np.square(w)) for w in wanted]
    elif loss is share_above:
        wanted = [np.mean(np.abs(w)) for w in wanted]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-3, atol=1e-6)


def test_what_a_row_takes_off_the_variance_of_the_share_is_exact() -> None:
    # By dense draws of the function: Var(C) = E Var(C | y) + Var(E(C | y)).
    strategy = build(ContentVariance(), HEAVY)
    state = after_first(strategy)
    targets = targets_of(state)
    context = strategy.parts.context(state.belief, torch.tensor([], dtype=torch.long))
    some = torch.tensor([10, 22])
    found = ContentVariance().scores(context, None, some).numpy()
    dense = Dense(NOISE)
    mean, K = GP.posterior(
        X.numpy(), X[dense.rows].numpy(), np.array(dense.y), NOISE[dense.rows]
    )
    rng = np.random.default_rng(1)
    f = rng.multivariate_normal(mean, K + 1e-9 * np.eye(N), DRAWS)
    content = (f > LEVEL)[:, targets] @ SHARES[targets]
    for row, score in zip(some.tolist(), found, strict=True):
        y = f[:, row] + np.sqrt(NOISE[row]) * rng.standard_normal(DRAWS)
        # The regression of the share on bins of the value is its expectation given it.
        bins = np.digitize(y, np.quantile(y, np.linspace(0, 1, 41)[1:-1]))
        means = np.array([content[bins == b].mean() for b in range(40)])
        between = means.var() - content.var() / (DRAWS / 40)
        assert score == pytest.approx(between, rel=0.1)


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES[:-1]], ids=IDS[:-1])
def test_equal_weights_change_no_choice(rule) -> None:
    plain, equal = FREE, Pool(X, noise_var=torch.from_numpy(NOISE), weights=[3.0] * N)
    plans = []
    for pool in (plain, equal):
        strategy = build(rule, pool, batch_size=4)
        plans.append(strategy.ask(after_first(strategy)).indices.tolist())
    assert plans[0] == plans[1]


def test_copies_of_a_point_count_together() -> None:
    both = torch.cat((X, X))
    weights = np.concatenate((WEIGHTS / 3, 2 * WEIGHTS / 3))
    noise = torch.from_numpy(np.concatenate((NOISE, NOISE)))
    twice = Pool(both, noise_var=noise, weights=weights)
    rule, some = ExpectedMisclassification(), torch.tensor([1, 14, 33])
    scores = []
    for pool in (HEAVY, twice):
        strategy = build(rule, pool)
        state = after_first(strategy)
        none = torch.tensor([], dtype=torch.long)
        scores.append(
            rule.scores(strategy.parts.context(state.belief, none), None, some)
        )
    torch.testing.assert_close(scores[0], scores[1], rtol=1e-8, atol=0.0)
