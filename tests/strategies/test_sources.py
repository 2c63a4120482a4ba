r"""Several sources of values: the target is decided, the others tell of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from scipy.stats import norm

from botorch_lse import History, Observations, Pool
from botorch_lse.ax.storage import (
    decode_pool,
    decode_strategy,
    encode_pool,
    encode_strategy,
)
from botorch_lse.models import (
    Autoregressive,
    Coregionalised,
    Discrepancies,
    FadingDiscrepancies,
    FidelityDiscrepancies,
    IndependentSources,
    LikeliestSources,
    source_kernel,
)
from botorch_lse.papers import StraddleRank
from botorch_lse.rules.base import LEAST_TOLD, worth_asking
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    Between,
    Binary,
    ExpectedMisclassification,
    GaussianProcess,
    Levels,
    MinimumU,
    MutualInformation,
    State,
    Straddle,
    Strategy,
    SwitchingRule,
    TargetedVariance,
)
from botorch_lse.surrogate.layout import LEAST_COST, MOST_IN_A_ROW, FromSources
from tests.registry import STRATEGIES, StrategyCase

N, M, LEVEL = 21, 2, 0.2
LINE = torch.linspace(0, 10, N, dtype=torch.float64)
BARE = Pool(LINE.unsqueeze(-1), names=("x",))
COSTS, NOISE = (1.0, 20.0), (0.04, 0.0)
MESHES = BARE.at_sources(("coarse", "fine"), costs=COSTS, noise_var=NOISE)
LOADINGS = np.array([[1.0, 0.0], [0.8, 0.6]])
LENGTHS = (1.5, 0.7)


def kernels() -> list[ScaleKernel]:
    found = []
    for length in LENGTHS:
        kernel = RBFKernel().double()
        kernel.lengthscale = length
        found.append(kernel)
    return found


def given(loadings: np.ndarray = LOADINGS) -> GaussianProcess:
    return GaussianProcess(source_kernel(kernels(), loadings, d=1))


def sum_of(one: ScaleKernel, other: ScaleKernel, loadings: np.ndarray) -> Kernel:
    r"""The kernel of one source alone."""
    scaled = []
    for kernel, loading in zip((one, other), loadings, strict=True):
        found = ScaleKernel(kernel).double()
        found.outputscale = float(loading) ** 2
        scaled.append(found)
    return scaled[0] + scaled[1]


def dense_prior(loadings: np.ndarray = LOADINGS) -> np.ndarray:
    r"""The prior covariance of all rows, written out source by source."""
    x = LINE.numpy()
    distance = (x[:, None] - x[None]) ** 2
    parts = [np.exp(-0.5 * distance / length**2) for length in LENGTHS]
    blocks = [
        [
            sum(a * b * k for a, b, k in zip(one, other, parts, strict=True))
            for other in loadings
        ]
        for one in loadings
    ]
    return np.block(blocks)


def dense(
    rows: np.ndarray, y: np.ndarray, loadings: np.ndarray = LOADINGS
) -> tuple[np.ndarray, np.ndarray]:
    r"""The joint posterior of all rows, mean and covariance, by one solve."""
    K, noise = dense_prior(loadings), np.repeat(NOISE, N)[rows]
    S = K[np.ix_(rows, rows)] + np.diag(noise)
    gain = np.linalg.solve(S, K[rows]).T
    return gain @ y, K - gain @ K[rows]


def values(rows: torch.Tensor, pool: Pool = MESHES) -> torch.Tensor:
    x, source = pool.X[rows].unbind(dim=-1)
    noise = 0.2 * torch.cos(7.0 * rows) * (1 - source)
    return torch.sin(x) + 0.3 * (1 - source) * torch.cos(x) + noise


def told(strategy: Strategy, rows: list[int]) -> State:
    at = torch.tensor(rows)
    return strategy.tell(strategy.init(), Observations(at, values(at)))


SEEN = [2, 5, 9, 13, 20, N + 5, N + 13]


def test_the_posterior_is_that_of_all_values_together() -> None:
    state = told(Strategy(MESHES, Above(LEVEL), model=given()), SEEN)
    mean, covariance = dense(np.array(SEEN), values(torch.tensor(SEEN)).numpy())
    answer = state.classification
    assert len(answer.mean) == N
    sigma = covariance.diagonal()[N:].clip(0) ** 0.5
    assert np.allclose(answer.mean.numpy(), mean[N:], atol=1e-6)
    assert np.allclose(answer.sigma.numpy(), sigma, atol=1e-4)


def test_the_target_may_be_any_source() -> None:
    turned = BARE.at_sources(
        ("fine", "coarse"), costs=COSTS[::-1], target="fine", noise_var=NOISE[::-1]
    )
    one = Strategy(MESHES, Above(LEVEL), model=given())
    other = Strategy(
        turned, Above(LEVEL, output="fine"), model=given(LOADINGS[::-1].copy())
    )
    state, swapped = told(one, SEEN), other.init()
    rows = torch.tensor([(row + N) % (2 * N) for row in SEEN])
    swapped = other.tell(swapped, Observations(rows, values(torch.tensor(SEEN))))
    for name in ("mean", "sigma", "above", "undecided"):
        mine = getattr(state.classification, name).double()
        yours = getattr(swapped.classification, name).double()
        torch.testing.assert_close(mine, yours, rtol=1e-6, atol=1e-6)
    row, swapped_row = (
        int(s.ask(t).order[0]) for s, t in ((one, state), (other, swapped))
    )
    assert (row + N) % (2 * N) == swapped_row


def expected_errors(mean: np.ndarray, var: np.ndarray, r: np.ndarray) -> np.ndarray:
    r"""The mean of ``p (1 - p)`` after the target's mean moved by ``N(0, r)``."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    left = np.sqrt((var - r).clip(1e-300))
    moved = mean + np.sqrt(r) * nodes[:, None, None]
    p = norm.cdf((moved - LEVEL) / left)
    return np.einsum("k,kct->ct", weights / weights.sum(), p * (1 - p))


def reductions(covariance: np.ndarray, targets: np.ndarray) -> np.ndarray:
    r"""By how much each row's measurement lowers the target's variances."""
    c, noise = covariance[:, N + targets], np.repeat(NOISE, N)
    return c**2 / (covariance.diagonal() + noise).clip(1e-12)[:, None]


def test_a_look_ahead_takes_most_off_the_targets_doubt_per_cost() -> None:
    strategy = Strategy(
        MESHES, Above(LEVEL), model=given(), rule=ExpectedMisclassification()
    )
    state = told(strategy, SEEN)
    mean, covariance = dense(np.array(SEEN), values(torch.tensor(SEEN)).numpy())
    targets = state.classification.undecided.nonzero().view(-1).numpy()
    var = covariance.diagonal()[N + targets]
    r = np.minimum(reductions(covariance, targets), var * (1 - 1e-9))
    now = norm.cdf((mean[N + targets] - LEVEL) / var**0.5)
    removed = (now * (1 - now) - expected_errors(mean[N + targets], var, r)).sum(axis=1)
    for cost in (20.0, 1.5):
        pool = BARE.at_sources(("coarse", "fine"), costs=(1.0, cost), noise_var=NOISE)
        scores = removed / np.repeat((1.0, cost), N)
        scores[[row for row in SEEN if row >= N]] = -1.0  # exact values are known
        own = replace(strategy, pool=pool)
        row = int(own.ask(told(own, SEEN)).order[0])
        assert scores[row] > 0.999 * scores.max()
        assert (row < N) == (cost == 20.0)


@pytest.mark.parametrize("cost", [20.0, 1.5])
def test_a_score_chooses_the_row_by_the_target_and_then_the_source(cost: float) -> None:
    pool = BARE.at_sources(("coarse", "fine"), costs=(1.0, cost), noise_var=NOISE)
    strategy = Strategy(pool, Above(LEVEL), model=given(), rule=Straddle())
    row = int(strategy.ask(told(strategy, SEEN)).order[0])
    mean, covariance = dense(np.array(SEEN), values(torch.tensor(SEEN)).numpy())
    sigma = covariance.diagonal().clip(0) ** 0.5
    best = int((1.96 * sigma[N:] - abs(mean[N:] - LEVEL)).argmax())
    c = covariance[[best, N + best], N + best]
    told_there = c**2 / (sigma[[best, N + best]] ** 2 + np.array(NOISE))
    source = int((told_there / np.array((1.0, cost))).argmax())
    assert row == best + N * source


RULES = [
    None,
    Straddle(),
    Ambiguity(),
    MutualInformation(),
    TargetedVariance(batch="joint"),
    SwitchingRule((Straddle(), Ambiguity())),
    StraddleRank(),
]


def play(strategy: Strategy, seed: int = 0, most: int = 200) -> State:
    state = strategy.init(seed=seed)
    while state.stop_reason is None and state.n_used < most:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, values(rows, strategy.pool)))
    return state


def is_replayed(strategy: Strategy, state: State) -> bool:
    r"""Whether the observations alone give the same answer and the same stop."""
    again = strategy.replay(state.observations)
    names = ("above", "below", "undecided", "mean", "lower", "upper")
    mine, yours = state.classification, again.classification
    is_same = all(torch.equal(getattr(mine, k), getattr(yours, k)) for k in names)
    return is_same and state.stop_reason == again.stop_reason


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_run_decides_the_target_by_all_sources(rule: object) -> None:
    strategy = Strategy(MESHES, Above(LEVEL), model=given(), rule=rule, batch_size=3)
    state = play(strategy)
    assert state.stop_reason == "decided"
    above = torch.sin(LINE) > LEVEL
    assert torch.equal(state.classification.above, above)
    rows = state.observations.indices
    assert bool((rows < N).any())
    assert 0 < int((rows >= N).sum()) < N
    assert len(state.measurements) == int((rows >= N).sum())
    assert is_replayed(strategy, state)


def test_ranked_items_are_distinct_and_of_any_region() -> None:
    region = Levels((-0.4, 0.2, 0.7))
    strategy = Strategy(MESHES, region, model=given(), rule=StraddleRank())
    state = told(strategy, SEEN)
    rows = strategy.ask(state, size=6).order
    assert len((rows % N).unique()) == 6
    sigma, mean = state.classification.sigma, state.classification.mean
    gaps = (mean.unsqueeze(-1) - torch.tensor(region.levels)).abs().amin(dim=-1)
    best = (1.96 * sigma - gaps).topk(6).indices
    assert {*(rows % N).tolist()} == {*best.tolist()}


@pytest.mark.parametrize("target", ["coarse", "fine"])
def test_predictions_are_of_the_target(target: str) -> None:
    pool = BARE.at_sources(("coarse", "fine"), COSTS, noise_var=NOISE, target=target)
    strategy = Strategy(pool, Above(LEVEL), model=given())
    state = told(strategy, SEEN)
    mean, sigma = state.predict(BARE.X)
    answer = state.classification
    torch.testing.assert_close(mean, answer.mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(sigma, answer.sigma, rtol=0, atol=2e-5)  # jitter
    before, _ = state.predict(BARE.X, data=state.observations.select(torch.arange(3)))
    few = told(strategy, SEEN[:3]).classification
    torch.testing.assert_close(before, few.mean, rtol=0, atol=1e-9)


@pytest.mark.parametrize("target", ["coarse", "fine"])
def test_a_forecast_is_that_of_measuring_the_target_alone(target: str) -> None:
    loadings = np.array([[0.8, 0.6], [0.8, 0.6]])
    pool = BARE.at_sources(("coarse", "fine"), COSTS, noise_var=NOISE, target=target)
    noise = NOISE[pool.sources.index(target)]
    model = GaussianProcess(sum_of(*kernels(), loadings[0]))
    alone = Strategy(
        replace(BARE, noise_var=torch.full((N,), noise)), Above(LEVEL), model=model
    )
    both = Strategy(pool, Above(LEVEL), model=given(loadings))
    rows = torch.tensor([2, 5, 9])
    y = torch.sin(LINE[rows])
    start = rows + N * pool.sources.index(target)
    one = alone.tell(alone.init(), Observations(rows, y)).forecast()
    other = both.tell(both.init(), Observations(start, y)).forecast()
    assert one.observations is not None
    assert one.observations > 1
    assert other == one


def test_a_forecast_does_not_count_what_the_prior_alone_decides() -> None:
    r"""Levels that the given model holds impossible: nothing is told of the target."""
    strategy = Strategy(MESHES, Levels((8.6, 9.1)), model=given(), beta=9.0)
    state = strategy.init()
    assert bool(state.classification.undecided.all())
    found = state.forecast()
    assert found.observations is not None
    assert found.observations >= 1


def test_a_run_may_end_by_the_smallest_u() -> None:
    strategy = Strategy(MESHES, Above(LEVEL), model=given(), content_tol=MinimumU(2.0))
    state = play(strategy)
    assert state.stop_reason == "minimum U"
    answer = state.classification
    assert bool(((answer.mean - LEVEL).abs() >= 2.0 * answer.sigma).all())


def test_a_batch_mixes_sources_and_counts_what_is_pending() -> None:
    strategy = Strategy(MESHES, Above(LEVEL), model=given())
    state = told(strategy, SEEN)
    first = strategy.ask(state, size=8)
    assert {int(row) // N for row in first.order} == {0, 1}
    rest = strategy.ask(state, pending=first.order, size=4)
    exact = {int(row) for row in first.order if row >= N}
    assert not exact & {int(row) for row in rest.order}


def test_rows_of_one_source_are_excluded_alone() -> None:
    strategy = Strategy(MESHES, Above(LEVEL), model=given(), max_repeats=1)
    state = strategy.exclude(told(strategy, SEEN), torch.arange(3, N))
    rows = strategy.ask(state, size=N).order
    assert not bool(((rows >= 3) & (rows < N)).any())
    assert bool((rows >= N).any())
    assert len(rows) == len(rows.unique())


def test_a_source_that_tells_next_to_nothing_is_left() -> None:
    loadings = np.array([[1.0, 0.0], [0.5 * LEAST_TOLD**0.5, 1.0]])
    for rule in (None, Straddle()):
        strategy = Strategy(MESHES, Above(LEVEL), model=given(loadings), rule=rule)
        assert bool((strategy.ask(strategy.init(), size=5).order >= N).all())


def test_where_no_row_tells_anything_the_target_is_measured() -> None:
    layout, rows = FromSources(MESHES), torch.tensor([0, 1, N, N + 1])
    for told, worth in (
        ([0.0, 0.0, 0.0, 0.0], [-1.0, -1.0, 0.0, 0.0]),
        ([LEAST_TOLD, 0.0, 1.0, 0.0], [-1.0, -1.0, 1.0, 0.0]),
        ([1.0, 0.0, 0.5 * LEAST_TOLD, 0.0], [1.0, 0.0, 0.5 * LEAST_TOLD, 0.0]),
    ):
        assert worth_asking(layout, rows, torch.tensor(told)).tolist() == pytest.approx(
            worth
        )


def test_a_cheap_measurement_is_charged_a_least_cost() -> None:
    layout = FromSources(BARE.at_sources(("coarse", "fine"), costs=(1e-6, 2.0)))
    rows = torch.tensor([0, N])
    charged = layout.charged(torch.tensor([1e-6, 2.0]).double(), rows)
    assert charged.tolist() == [2.0 * LEAST_COST, 2.0]


def test_the_target_is_measured_again_after_as_much_cost_of_others() -> None:
    for dear, most in ((3.5, 4), (1000.0, MOST_IN_A_ROW)):
        pool = BARE.at_sources(("coarse", "fine"), costs=(1.0, dear))
        layout = FromSources(pool)
        coarse = torch.arange(most)
        assert not layout.is_target_due(coarse[:-1])
        assert layout.is_target_due(coarse)
        assert not layout.is_target_due(torch.cat((coarse, torch.tensor([N]))))
        for rule in (None, Straddle()):
            strategy = Strategy(
                replace(pool, noise_var=MESHES.noise_var),
                Above(LEVEL),
                model=given(),
                rule=rule,
            )
            state = strategy.init()
            state = strategy.tell(state, Observations(coarse, values(coarse)))
            assert int(strategy.ask(state).order[0]) >= N


# --- learnt models --------------------------------------------------------------------

LEARNT = {
    "default": None,
    "discrepancies": Discrepancies(),
    "fading": FadingDiscrepancies(),
    "autoregressive": Autoregressive(),
    "coregionalised": Coregionalised(),
    "likeliest": LikeliestSources((Discrepancies(), Coregionalised())),
}
EXACT = BARE.at_sources(("coarse", "fine"), costs=(1.0, 50.0), noise_var=(0.0, 0.0))


def exactly(rows: torch.Tensor, sign: float = 1.0) -> torch.Tensor:
    x, source = EXACT.X[rows].unbind(dim=-1)
    coarse = sign * (torch.sin(x) + 0.1 * x + 1.0)
    return torch.where(source == 0, coarse, torch.sin(x))


@pytest.mark.some(1)
@pytest.mark.parametrize("model", LEARNT.values(), ids=LEARNT)
def test_learnt_models_take_few_dear_measurements(model: object) -> None:
    strategy = Strategy(EXACT, Above(LEVEL), model=GaussianProcess(model))
    state = strategy.init()
    while state.stop_reason is None and state.n_used < 60:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, exactly(rows)))
    assert state.stop_reason == "decided"
    assert torch.equal(state.classification.above, torch.sin(LINE) > LEVEL)
    assert int((state.observations.indices >= N).sum()) <= 12
    assert is_replayed(strategy, state)


def test_numbers_that_name_sources_are_a_fidelity() -> None:
    pool = BARE.at_sources((0.25, 0.5, 1.0), costs=(1, 4, 50), noise_var=(0, 0, 0))
    model = GaussianProcess(FidelityDiscrepancies())
    strategy = Strategy(pool, Above(LEVEL), model=model, batch_size=4)
    x, mesh = pool.X.unbind(dim=-1)
    y = torch.sin(x) + (1 - mesh).square() * (0.3 * x + 1.0)
    state = strategy.init()
    while state.stop_reason is None and state.n_used < 60:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, y[rows]))
    assert state.stop_reason == "decided"
    assert torch.equal(state.classification.above, torch.sin(LINE) > LEVEL)
    assert int((state.observations.indices >= 2 * N).sum()) <= 12
    assert is_replayed(strategy, state)


@pytest.mark.parametrize(
    "model",
    [
        FidelityDiscrepancies(),
        LikeliestSources((FidelityDiscrepancies(), IndependentSources())),
    ],
)
def test_a_model_of_a_fidelity_is_stored(model: object) -> None:
    pool = BARE.at_sources((0.5, 1.0), costs=(1, 4))
    strategy = Strategy(pool, Above(LEVEL), model=GaussianProcess(model))
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    again = decode_strategy(stored, decode_pool(encode_pool(pool)))
    assert again.model.model == model


def test_a_fidelity_needs_sources_that_are_numbers() -> None:
    names = ("0.5", "1.0")
    pool = BARE.at_sources(names, costs=(1.0, 50.0))
    for one in (
        FidelityDiscrepancies(),
        LikeliestSources((Discrepancies(), FidelityDiscrepancies())),
    ):
        model = GaussianProcess(one)
        with pytest.raises(ValueError, match="sources that are numbers, for") as e:
            Strategy(pool, Above(LEVEL), model=model)
        assert str(list(names)) in str(e.value)
        assert "Write `at_sources((0.25, 0.5, 1.0), ...)`, or use `D" in str(e.value)
        Strategy(BARE.at_sources((0.5, 1.0), costs=(1, 9)), Above(LEVEL), model=model)
    Strategy(pool, Above(LEVEL), model=GaussianProcess(Discrepancies()))


@pytest.mark.slow
def test_a_source_that_tells_nothing_is_left_after_the_initial_design() -> None:
    pool = BARE.at_sources(("coarse", "fine"), costs=(0.2, 1.0), noise_var=(0.0, 0.0))
    strategy = Strategy(pool, Above(LEVEL))
    x, source = pool.X.unbind(dim=-1)
    y = torch.where(source == 0, torch.cos(2.3 * x + 1), torch.sin(x))
    state = strategy.init()
    while state.stop_reason is None and state.n_used < 40:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, y[rows]))
    assert state.stop_reason == "decided"
    n_useless = int((state.observations.indices < N).sum())
    assert n_useless == strategy.layout.first_of_sources[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("model", [Autoregressive(), Coregionalised()])
def test_correlations_of_either_sign_are_learnt(model: object, sign: float) -> None:
    strategy = Strategy(EXACT, Above(LEVEL), model=GaussianProcess(model))
    rows = torch.cat((torch.arange(0, N, 2), N + torch.tensor([0, 6, 10, 14, 20])))
    y = exactly(rows, sign)
    state = strategy.tell(strategy.init(), Observations(rows, y))
    alone = GaussianProcess(noise_std=0.0)
    one = Strategy(BARE, Above(LEVEL), model=alone)
    own = Observations(rows[-5:] - N, y[-5:])
    without = one.tell(one.init(), own).classification.mean
    error = (state.classification.mean - torch.sin(LINE)).abs().mean()
    assert error < 0.2 * (without - torch.sin(LINE)).abs().mean()


def test_units_of_sources_do_not_matter_to_an_autoregressive_model() -> None:
    rows = torch.cat((torch.arange(0, N, 2), N + torch.tensor([0, 6, 10, 14, 20])))
    y, found = exactly(rows), []
    for unit in (1.0, 100.0):
        scaled = torch.where(rows < N, unit * y, y)
        strategy = Strategy(
            EXACT, Above(LEVEL), model=GaussianProcess(Autoregressive())
        )
        state = strategy.tell(strategy.init(), Observations(rows, scaled))
        found.append(state.classification.mean)
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-3)


def test_the_noise_of_each_source_is_learnt_in_its_units() -> None:
    pool = BARE.at_sources(("coarse", "fine"), costs=(1.0, 5.0))
    model = GaussianProcess(Autoregressive())
    strategy = Strategy(pool, Above(LEVEL), model=model)
    generator = torch.Generator().manual_seed(0)
    rows = torch.cat([torch.arange(2 * N)] * 3)
    noise = 0.1 * torch.randn(len(rows), generator=generator, dtype=torch.float64)
    unit = torch.where(rows < N, 100.0, 1.0)
    y = unit * (torch.sin(pool.X[rows, 0]) + noise)
    state = strategy.tell(strategy.init(), Observations(rows, y))
    noise = state.belief.fits.new_noise
    learnt = noise[[0, N]].sqrt()
    assert learnt.tolist() == pytest.approx([10.0, 0.1], rel=0.3)


def test_the_initial_design_is_nested_and_has_few_dear_rows() -> None:
    square = Pool.from_box([[0.0, 0.0], [1.0, 1.0]], 256)
    pool = square.at_sources(("coarse", "fine"), costs=(0.01, 1.0))
    strategy = Strategy(pool, Above(LEVEL))
    rows = strategy.ask(strategy.init(), size=26).order
    coarse, fine = rows[rows < 256], rows[rows >= 256] - 256
    assert (len(coarse), len(fine)) == (20, 6)
    assert bool(torch.isin(fine, coarse).all())
    # Where a source is not cheap, more is spent when it is known to tell.
    equal = FromSources(square.at_sources(("coarse", "fine"), costs=(1.0, 1.0)))
    assert equal.first_of_sources == (4, 6)
    fifth = FromSources(square.at_sources(("coarse", "fine"), costs=(0.2, 1.0)))
    assert fifth.first_of_sources == (6, 6)
    # With many inputs the target gets one for each, and another source as many as
    # what the first rows of a target alone would cost pays for.
    box = Pool.from_box([[0.0] * 8, [1.0] * 8], 256)
    tenth = FromSources(box.at_sources(("coarse", "fine"), costs=(0.1, 1.0)))
    assert tenth.first_of_sources == (36, 9)


@pytest.mark.some(3)
@pytest.mark.parametrize("model", [*LEARNT.values(), "given"], ids=[*LEARNT, "given"])
def test_strategies_of_sources_are_stored(model: object) -> None:
    of_model = given() if model == "given" else GaussianProcess(model)
    past = History([[2.5]], [0.5], [0.01], source="coarse")
    strategy = Strategy(MESHES, Above(LEVEL), model=replace(of_model, history=past))
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    again = decode_strategy(stored, decode_pool(encode_pool(MESHES)))
    rows = torch.tensor(SEEN)
    state = told(strategy, SEEN)
    other = again.tell(again.init(), Observations(rows, values(rows)))
    assert torch.equal(state.classification.mean, other.classification.mean)


# --- values from before the run -------------------------------------------------------


def test_old_values_of_another_source_are_part_of_the_joint_posterior() -> None:
    old = torch.tensor([[0.3], [4.1], [7.7]], dtype=torch.float64)
    y = torch.sin(old).view(-1)
    model = replace(given(), history=History(old, y, 0.01 + 0 * y, source="coarse"))
    strategy = Strategy(MESHES, Above(LEVEL), model=model)
    state = told(strategy, SEEN)
    pool = Pool(torch.cat((BARE.X, old)), names=("x",))
    whole = pool.at_sources(("coarse", "fine"), costs=COSTS)
    n = len(pool)
    noise = torch.cat((torch.full((n,), NOISE[0]), torch.full((n,), NOISE[1])))
    noise[N:n] = 0.01
    together = Strategy(replace(whole, noise_var=noise), Above(LEVEL), model=given())
    rows = torch.tensor([N, N + 1, N + 2, *(r if r < N else r - N + n for r in SEEN)])
    all_y = torch.cat((y, values(torch.tensor(SEEN))))
    found = together.tell(together.init(), Observations(rows, all_y)).classification
    torch.testing.assert_close(
        state.classification.mean, found.mean[:N], rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(
        state.classification.sigma, found.sigma[:N], rtol=1e-3, atol=1e-4
    )


def test_old_values_take_the_place_of_the_initial_design() -> None:
    x = torch.linspace(0, 10, 15).unsqueeze(-1).double()
    strategy = Strategy(EXACT, Above(LEVEL))
    told_before = strategy.with_history(
        History(x, torch.sin(x).view(-1), 0.0 * x.view(-1), source="coarse")
    )
    rows = told_before.ask(told_before.init(), size=4).order
    assert bool((rows >= N).all())
    assert bool((strategy.ask(strategy.init(), size=4).order < N).any())


@pytest.mark.parametrize("source", ["coarse", "fine"])
def test_old_values_lie_on_a_side_only_if_they_are_the_targets(source: str) -> None:
    # The old values lie on both sides of the level, the new ones on one.
    X = torch.linspace(0, 10, 30, dtype=torch.float64).unsqueeze(-1)
    y = X[:, 0].sin() + (0.1 * X[:, 0] + 1.0) * (source == "coarse")
    past = History(X, y, torch.zeros(30), source=source)
    strategy = Strategy(EXACT, Above(LEVEL)).with_history(past)
    rows = torch.cat((torch.arange(0, N, 2), N + torch.arange(8, 12)))
    told = Observations(rows, exactly(rows))
    assert bool((told.y[-4:] < LEVEL).all())
    answer = strategy.tell(strategy.init(), told).classification
    assert bool(answer.undecided.all()) == (source == "coarse")
    assert ("nothing is decided" in answer.guarantee) == (source == "coarse")
    named = "of the source that they name, whose relation to the target is learnt, at"
    assert named in answer.guarantee


def test_a_table_of_old_values_goes_by_the_names_of_inputs() -> None:
    import pandas as pd

    history = History(pd.DataFrame({"x": [1.0, 2.0]}), [0.1, 0.2], source="coarse")
    assert history.on(MESHES).X.tolist() == [[1.0, 0.0], [2.0, 0.0]]
    target = History([[1.0], [2.0]], [0.1, 0.2])
    assert target.on(MESHES).X.tolist() == [[1.0, 1.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match=r"`history\.source` to be a source"):
        History([[1.0]], [0.1], source="medium").on(MESHES)
    with pytest.raises(ValueError, match="`history` to be of one source"):
        target.append(history)
    both = target.on(MESHES).append(history.on(MESHES))
    assert both.X[:, -1].tolist() == [1.0, 1.0, 0.0, 0.0]


# --- pools and messages ---------------------------------------------------------------


def test_a_pool_at_sources_has_each_row_once_for_each() -> None:
    costs = {"fine": 50, "coarse": 1}
    pool = BARE.at_sources(("coarse", "fine"), costs=costs, target="coarse")
    assert pool.target == 0
    assert pool.sources == ("coarse", "fine")
    assert torch.equal(pool.X[N:, :1], BARE.X)
    assert pool.X[N:, 1].tolist() == [1.0] * N
    assert pool.costs is not None
    assert pool.costs.tolist() == [1.0] * N + [50.0] * N
    assert pool.without_sources.hash == BARE.hash
    other = BARE.at_sources(("coarse", "fine"), costs=costs)
    assert other.hash != pool.hash
    assert decode_pool(encode_pool(pool)).target == 0
    weighted = Pool(BARE.X, weights=LINE + 1, total=500.0)
    twice = weighted.at_sources(("a", "b"), costs=(1, 2))
    assert twice.without_sources.hash == weighted.hash


BAD: dict[str, Callable[[], object]] = {
    "`sources` to name at least two sources": partial(
        BARE.at_sources, ("fine",), costs=(1,)
    ),
    "`sources` to name at least two sources, but got 'ab'": partial(
        BARE.at_sources, "ab", costs=(1, 2)
    ),
    "`sources` to differ": partial(BARE.at_sources, ("a", "a"), costs=(1, 2)),
    "`target` to be one of": partial(
        BARE.at_sources, ("coarse", "fine"), costs=(1, 2), target="medium"
    ),
    "bare points, but it has source": partial(
        Pool(MESHES.X[:, 1:], names=("source",)).at_sources,
        ("a", "b"),
        costs=(1, 2),
    ),
    "`target` to be left out of a pool": partial(Pool, BARE.X, target=0),
    "`goal` to be about the target, 'fine'": partial(
        Strategy, MESHES, Above(LEVEL, output="coarse")
    ),
    "a model of sources only for a pool": partial(
        Strategy, BARE, Above(LEVEL), model=GaussianProcess(Discrepancies())
    ),
    "`models` to be models of sources": partial(LikeliestSources, ()),
}


@pytest.mark.parametrize("words", BAD)
def test_what_does_not_fit_is_named(words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BAD[words]()


def test_a_history_of_a_source_has_the_inputs_alone() -> None:
    pool = Pool(torch.rand(5, 2).double()).at_sources(("a", "b"), costs=(1, 2))
    one_input = History(torch.zeros(3, 1), torch.zeros(3), source="a")
    with pytest.raises(BotorchTensorDimensionError, match=r"`history.X` .* 2 columns"):
        Strategy(pool, Above(0.5)).with_history(one_input)
    with pytest.raises(ValueError, match=r"`history.source` to be left out"):
        Strategy(BARE, Above(0.5)).with_history(replace(one_input, source="a"))


def test_results_of_yes_and_no_are_refused() -> None:
    model = GaussianProcess(outcome=Binary())
    with pytest.raises(UnsupportedError, match="`outcome` to be left out"):
        Strategy(MESHES, Above(0.5), model=model)


@pytest.mark.parametrize("case", STRATEGIES)
def test_strategies_that_decide_each_row_refuse_sources(case: StrategyCase) -> None:
    if case.cls.decides_a_target:
        return
    options = {**case.small, **case.aim(LEVEL)}
    if case.has_several_outputs:
        options["maximize"] = (True, False)
    with pytest.raises(UnsupportedError, match=r"Write `Strategy\(pool, Above"):
        case.make(MESHES, **options)


def test_goals_of_several_outputs_or_levels_by_row_are_refused() -> None:
    by_row = Above(tuple(float(x) for x in LINE))
    for goal in (Above(1) & Above(2, output=1), by_row):
        with pytest.raises(UnsupportedError, match="a region of one output as `goal`"):
            Strategy(MESHES, goal, model=given())
    state = play(Strategy(MESHES, Between(-0.5, LEVEL), model=given()))
    inside = (torch.sin(LINE) > -0.5) & (torch.sin(LINE) <= LEVEL)
    assert torch.equal(state.classification.above, inside)
