from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError

from botorch_lse import Pool
from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.data.observations import Observations
from botorch_lse.estimators import head, head_designs, weighted_least_squares
from botorch_lse.papers import HRAGEPACStrategy, RAGEPACStrategy, best_arm_complexity
from botorch_lse.papers.weltz2023.gap_elimination import eliminate_worse

EYE = Pool(torch.eye(2, dtype=torch.float64))
X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.3], [0.5, 0.5]]).double()
THETA = torch.tensor([1.0, 0.2]).double()
S2 = X.square() @ torch.tensor([0.2, 1.0]).double()
BOUNDS = (float(S2.min()), float(S2.max()))
POOL, KNOWN = Pool(X), Pool(X, noise_var=S2)

BUILDS = {
    "rage": lambda **o: RAGEPACStrategy(POOL, noise_std=BOUNDS[1] ** 0.5, **o),
    "hrage": lambda **o: HRAGEPACStrategy(POOL, variance_bounds=BOUNDS, **o),
    "hrage known": lambda **o: HRAGEPACStrategy(KNOWN, **o),
}


def means(counts: torch.Tensor, seed: int, label: int, X=X) -> Observations:
    r"""Means of Gaussian replicates with the scatter they have."""
    rng = np.random.default_rng([seed, label])
    rows = counts.nonzero().view(-1)
    k, s2 = counts[rows].numpy(), (X.square() @ torch.tensor([0.2, 1.0]).double())[rows]
    mean = (X @ THETA)[rows].numpy() + np.sqrt(s2.numpy() / k) * rng.standard_normal(
        len(k)
    )
    sample = s2.numpy() * rng.chisquare(np.maximum(k - 1, 1)) / np.maximum(k - 1, 1)
    return Observations(rows, mean, sample / k, label, torch.tensor(k))


def finished(strategy, seed: int = 0):
    state = strategy.init()
    while not state.is_done:
        data = means(
            strategy.planned_counts(state), seed, state.round, strategy.algorithm.Phi
        )
        state = strategy.tell(state, data)
    return state


# --- the letter of the algorithms -----------------------------------------------------


@pytest.mark.parametrize(("threshold", "squared_norm"), [(None, 4.0), (0.5, 2.0)])
@pytest.mark.parametrize("constant", [2.0, 3.0])
def test_a_round_takes_the_printed_number_of_samples(
    threshold: float | None, squared_norm: float, constant: float
) -> None:
    r"""On the canonical basis the design is uniform: ``|e1 - e2|^2 = 4`` and ``|e1|^2 =
    2`` under it; all variances are 0.5.
    """
    if constant == 2.0:
        strategy = RAGEPACStrategy(EYE, threshold, noise_std=0.5**0.5, delta=0.1)
        state = strategy.init()
    else:
        strategy = HRAGEPACStrategy(
            EYE, threshold, variance_bounds=(0.5, 0.5), burn_in=40, delta=0.1
        )
        state = strategy.init()
        for label in range(2):
            counts = torch.tensor([10, 10])
            assert torch.equal(strategy.planned_counts(state), counts)
            data = Observations([0, 1], [0.0, 0.0], 0.05, label, counts)
            state = strategy.tell(state, data)
    tau = constant * 4.0 * 0.5 * squared_norm * math.log(8 * 2 / 0.1)
    assert strategy.planned_counts(state).tolist() == [math.ceil(tau / 2)] * 2


def test_the_second_round_uses_the_second_logarithm() -> None:
    strategy = RAGEPACStrategy(EYE, noise_std=1.0)
    state = strategy.init()
    counts = strategy.planned_counts(state)
    state = strategy.tell(state, Observations([0, 1], [0.1, 0.0], 1.0, 0, counts))
    tau = 2 * 16.0 * 4 * math.log(8 * 4 * 2 / 0.05)
    assert strategy.planned_counts(state).tolist() == [math.ceil(tau / 2)] * 2


@pytest.mark.parametrize(
    ("first", "sides"),
    [(0.5, [UNDECIDED, UNDECIDED]), (0.5 + 1e-9, [ABOVE, BELOW])],
)
def test_elimination_of_worse_items_is_strict(first: float, sides: list[int]) -> None:
    side = torch.full((2,), UNDECIDED, dtype=torch.int8)
    values = torch.tensor([first, 0.0], dtype=torch.float64)
    found = eliminate_worse(side, torch.arange(2), values, 0.5)
    assert found.tolist() == sides


@pytest.mark.parametrize(
    ("value", "sides"),
    [(1.0, (False, False)), (1.0 + 1e-9, (True, False)), (-1e-9, (False, True))],
)
def test_classification_against_the_level_is_strict(
    value: float, sides: tuple[bool, bool]
) -> None:
    strategy = RAGEPACStrategy(EYE, 0.5, noise_std=1.0)
    state = strategy.init()
    counts = strategy.planned_counts(state)
    state = strategy.tell(state, Observations([0, 1], [value, 0.5], 1.0, 0, counts))
    answer = state.classification
    assert (bool(answer.above[0]), bool(answer.below[0])) == sides
    assert bool(answer.undecided[1])


def test_the_burn_in_is_head_on_its_designs() -> None:
    strategy = BUILDS["hrage"](burn_in=60)
    state, rng, told = strategy.init(), np.random.default_rng(0), []
    for label, planned in enumerate(head_designs(X).counts(60)):
        assert torch.equal(strategy.planned_counts(state), planned)
        batch = strategy.ask(state)
        assert batch.round == label
        y = rng.standard_normal(len(batch))
        told += [batch.order, y]
        state = strategy.tell(state, batch.observe(y))
    expected = head(X, *told, bounds=BOUNDS).variances
    torch.testing.assert_close(state.belief.variances, expected)
    assert strategy.burn_in_used(state) == 60
    batch = strategy.ask(state)
    state = strategy.tell(state, batch.observe(np.zeros(len(batch))))
    assert strategy.burn_in_used(state) == 60
    assert state.n_used == 60 + len(batch)


def test_estimates_are_weighted_least_squares_of_the_round() -> None:
    strategy = BUILDS["hrage known"](threshold=0.6)
    state = strategy.init()
    counts = strategy.planned_counts(state)
    data = means(counts, 1, 0)
    state = strategy.tell(state, data)
    rows = data.indices
    fit = weighted_least_squares(X[rows], data.y, counts[rows] / S2[rows])
    answer = state.classification
    torch.testing.assert_close(answer.mean, X @ fit.theta)
    variances = fit.squared_norms(X)
    torch.testing.assert_close(answer.sigma, variances.sqrt())
    width = (2 * variances * math.log(8 * 4 / 0.05)).sqrt()
    torch.testing.assert_close(answer.upper - answer.mean, width)
    assert float(width.max()) <= 0.5


def test_probabilities_of_being_best_are_those_of_the_differences() -> None:
    strategy = BUILDS["hrage known"]()
    state = strategy.init()
    data = means(strategy.planned_counts(state), 2, 0)
    state = strategy.tell(state, data)
    rows = data.indices
    fit = weighted_least_squares(X[rows], data.y, data.counts[rows] / S2[rows])
    best = int((X @ fit.theta).argmax())
    differences = X - X[best]
    sigma = fit.squared_norms(differences).sqrt()
    chances = torch.special.ndtr(differences @ fit.theta / sigma)
    chances[best] = 0.0
    chances[best] = 1 - chances.max()
    torch.testing.assert_close(state.classification.probability_above, chances)


# --- the answer -----------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILDS)
def test_the_best_arm_is_found(name: str) -> None:
    state = finished(BUILDS[name]())
    assert state.stop_reason == "decided"
    assert state.classification.above.tolist() == [True, False, False, False]


@pytest.mark.parametrize("name", BUILDS)
def test_the_level_set_is_found(name: str) -> None:
    state = finished(BUILDS[name](threshold=0.7))
    assert state.classification.above.tolist() == [True, False, True, False]
    assert not state.classification.undecided.any()


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("threshold", [None, 0.35])
def test_items_may_differ_from_what_is_measured(
    name: str, threshold: float | None
) -> None:
    Z = torch.tensor([[0.6, 0.0], [0.0, 2.0], [0.2, 0.5]]).double()
    state = finished(BUILDS[name](targets=Pool(Z), threshold=threshold))
    values = Z @ THETA  # 0.6, 0.4, 0.3
    level = 0.5 if threshold is None else threshold
    assert torch.equal(state.classification.above, values > level)
    assert len(state.classification.to_frame()) == 3


def test_differences_may_be_measurable_where_items_are_not() -> None:
    Z = torch.cat((X[:, :1], torch.ones(4, 1).double()), dim=1)
    measured = torch.cat((X[:, :1], torch.zeros(4, 1).double()), dim=1)
    strategy = RAGEPACStrategy(Pool(measured), targets=Pool(Z), noise_std=1.0)
    state = strategy.init()
    while not state.is_done:
        counts = strategy.planned_counts(state)
        rows = counts.nonzero().view(-1)
        y = measured[rows] @ THETA
        data = Observations(rows, y, 1.0, state.round, counts[rows])
        state = strategy.tell(state, data)
    answer = state.classification
    assert answer.above.tolist() == [True, False, False, False]
    assert answer.upper.isinf().all()
    assert not answer.probability_above.isnan().any()


def test_equal_best_items_are_all_best() -> None:
    pool = Pool(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).double())
    state = finished(RAGEPACStrategy(pool, noise_std=1.0))
    assert state.classification.above.tolist() == [True, False, True]


@pytest.mark.parametrize("level", [-0.1, 0.0, 0.1])
def test_items_that_are_zero_for_certain_are_never_measured(level: float) -> None:
    targets = Pool(torch.zeros(2, 2).double())
    state = RAGEPACStrategy(EYE, level, targets=targets, noise_std=1.0).init()
    assert state.stop_reason == "decided"
    assert state.classification.above.tolist() == [level < 0] * 2


def test_unequal_noise_saves_samples() -> None:
    used = {name: finished(build()).n_used for name, build in BUILDS.items()}
    assert used["hrage known"] < used["rage"]
    lower = best_arm_complexity(X, X @ THETA, noise_var=S2).samples(0.05)
    assert lower < used["hrage known"]


# --- ask, tell, replay ----------------------------------------------------------------


@pytest.mark.parametrize("name", BUILDS)
def test_ask_spells_out_the_planned_counts(name: str) -> None:
    strategy = BUILDS[name]()
    state = strategy.init()
    batch, counts = strategy.ask(state), strategy.planned_counts(state)
    assert torch.equal(counts[batch.indices], batch.counts)
    assert int(counts.sum()) == len(batch)
    half = len(batch) // 2
    part = Observations(batch.order[:half], np.zeros(half))
    state = strategy.tell(state, part)
    rest = strategy.ask(state)
    assert len(rest) == len(batch) - half
    left = strategy.planned_counts(state)
    assert torch.equal(left[rest.indices], rest.counts)
    assert int(left.sum()) == len(rest)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("threshold", [None, 0.7])
def test_replaying_gives_the_same_state(name: str, threshold: float | None) -> None:
    strategy = BUILDS[name](threshold=threshold)
    state = finished(strategy)
    again = strategy.replay(state.observations)
    assert again.round == state.round
    assert again.stop_reason == state.stop_reason
    for field in ("above", "below", "lower", "mean", "sigma", "probability_above"):
        first, second = (getattr(s.classification, field) for s in (state, again))
        assert torch.equal(first, second)


def test_values_and_their_means_lead_to_the_same_state() -> None:
    strategy = BUILDS["hrage"](burn_in=200)
    single = summed = strategy.init()
    rng = np.random.default_rng(4)
    for _ in range(3):
        batch = strategy.ask(single)
        y = torch.tensor(rng.standard_normal(len(batch)))
        groups = [y[batch.order == row] for row in batch.indices]
        mean = [float(g.mean()) for g in groups]
        yvar = [float(g.var()) / len(g) if len(g) > 1 else 0.0 for g in groups]
        single = strategy.tell(single, batch.observe(y))
        summed = strategy.tell(summed, batch.observe(mean, yvar, means=True))
    first, second = single.classification, summed.classification
    torch.testing.assert_close(first.mean, second.mean)
    torch.testing.assert_close(first.sigma, second.sigma)
    assert single.n_used == summed.n_used


def test_abandoned_measurements_are_asked_again() -> None:
    strategy = RAGEPACStrategy(EYE, noise_std=1.0)
    state = strategy.init()
    batch = strategy.ask(state)
    part = Observations(batch.order[1:], np.zeros(len(batch) - 1))
    state = strategy.tell(state, part, abandoned=[0])
    assert state.round == 1
    assert strategy.planned_counts(state).tolist() == [1, 0]
    state = strategy.tell(state, Observations([0], [0.0]))
    assert state.belief.t == 2


def test_measurements_nobody_asked_for_are_kept_and_used() -> None:
    strategy = RAGEPACStrategy(Pool(X), noise_std=1.0)
    state = strategy.init()
    counts = strategy.planned_counts(state)
    unasked = int((counts == 0).nonzero()[0])
    state = strategy.tell(state, Observations([unasked], [0.3]))
    assert torch.equal(strategy.planned_counts(state), counts)
    assert int(state.belief.data.counts[unasked]) == 1
    assert len(state.observations) == 1


def test_a_round_beyond_the_budget_is_not_begun() -> None:
    strategy = RAGEPACStrategy(EYE, noise_std=1.0, max_observations=200)
    state = strategy.init()
    assert len(strategy.ask(state)) == 186
    counts = strategy.planned_counts(state)
    state = strategy.tell(state, Observations([0, 1], [0.0, 0.0], 1.0, 0, counts))
    assert state.stop_reason == "budget"
    assert state.classification.undecided.all()


# --- arguments ------------------------------------------------------------------------


def test_the_guarantee_names_its_assumptions() -> None:
    assert (
        "standard deviation at most 1 " in RAGEPACStrategy(EYE, noise_std=1.0).guarantee
    )
    assert "given variances" in BUILDS["hrage known"]().guarantee
    assert "estimated to within half by 77 " in BUILDS["hrage"](burn_in=77).guarantee


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RAGEPACStrategy(EYE), "neither `noise_std` nor"),
        (lambda: RAGEPACStrategy(KNOWN, noise_std=1.0), "both `noise_std` and"),
        (lambda: RAGEPACStrategy(EYE, noise_std=0.0), r"`noise_std` in \(0"),
        (lambda: RAGEPACStrategy(EYE, noise_std=1.0, delta=1.0), "`delta` in"),
        (lambda: RAGEPACStrategy(EYE, math.nan, noise_std=1.0), "`threshold`"),
        (lambda: HRAGEPACStrategy(EYE), "neither `variance_bounds` nor"),
        (
            lambda: HRAGEPACStrategy(KNOWN, variance_bounds=(1.0, 2.0)),
            "both `variance_bounds` and",
        ),
        (lambda: HRAGEPACStrategy(EYE, variance_bounds=(2.0, 1.0)), "`variance_bounds"),
        (lambda: HRAGEPACStrategy(KNOWN, burn_in=100), "no `burn_in`"),
        (
            lambda: HRAGEPACStrategy(EYE, variance_bounds=(1.0, 2.0), burn_in=3),
            "`budget` of at least 4",
        ),
        (
            lambda: HRAGEPACStrategy(
                EYE, variance_bounds=(1.0, 2.0), burn_in=40, max_observations=39
            ),
            "`max_observations` of at least 40, what the burn-in takes",
        ),
    ],
)
def test_bad_arguments_are_named(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_items_need_the_pools_features() -> None:
    with pytest.raises(BotorchTensorDimensionError, match="`targets` with 2 features"):
        RAGEPACStrategy(EYE, targets=Pool(torch.eye(3)), noise_std=1.0)


def test_means_without_scatter_are_refused_in_the_burn_in() -> None:
    strategy = BUILDS["hrage"](burn_in=60)
    state = strategy.init()
    counts = strategy.planned_counts(state)
    rows = counts.nonzero().view(-1)
    data = Observations(rows, torch.zeros(len(rows)), None, 0, counts[rows])
    with pytest.raises(ValueError, match="`yvar` with means"):
        strategy.tell(state, data)
