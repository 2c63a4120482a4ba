r"""GEGE and PAL on Gaussian processes: what they decide, choose and promise."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse import Observations, Pool
from botorch_lse.confidence import EmptyRegionWarning, UnionBeta
from botorch_lse.goals import extremes
from botorch_lse.goals import pareto as pareto_base
from botorch_lse.models.fitted import fit_additive_gp
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior
from botorch_lse.papers import PALStrategy
from botorch_lse.papers.kone2025 import ParetoByRectangles
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies import (
    GaussianProcess,
    GEGEStrategy,
    ParetoByDifferences,
    ShareOfMaxByPairs,
    State,
    Strategy,
)
from research.statistics import WrongFraction
from tests.covering import covering, more_in_full
from tests.reference.dense_gp import DenseGP
from tests.registry import GAUSSIAN, StrategyCase, case_of
from tests.strategies.runs import assert_same, grid, run, step
from tests.strategies.test_models import EnsembleMapSaasSingleTaskGP

GPS = (
    DenseGP(lengthscale=(0.3, 0.4), outputscale=2.0),
    DenseGP(lengthscale=(0.6, 0.3), outputscale=50.0, is_rbf=True),
)
STDS, MAXIMIZE = (0.3, 1.5), (True, False)
SIGNS = np.array([1.0, -1.0])
X = grid()
POOL = Pool(X)
every = pytest.mark.parametrize("case", GAUSSIAN)


def truth(seed: int = 0, points: torch.Tensor = X) -> torch.Tensor:
    columns = [gp.sample(points.numpy(), 2 * seed + c) for c, gp in enumerate(GPS)]
    return torch.tensor(np.stack(columns, axis=-1))


def make(of: StrategyCase | type[Strategy], **options):
    known = {
        "model": tuple(GPPrior.from_kernel(gp.kernel()) for gp in GPS),
        "noise_std": STDS,
        "maximize": MAXIMIZE,
        "beta": 4.0,
        "batch_size": 3,
        "epsilon": (0.1, 0.5),
    }
    pool = options.pop("pool", POOL)
    return case_of(of).make(pool, **{**known, **options})


def value(row: int, before: int, f: torch.Tensor | None = None) -> list[float]:
    r"""The measurement that comes after ``before`` others."""
    noise = np.random.default_rng(1000 + before).standard_normal(2) * STDS
    return ((truth() if f is None else f)[row].numpy() + noise).tolist()


def told(rows: list[int], before: int = 100) -> Observations:
    y = [value(row, before + i) for i, row in enumerate(rows)]
    return Observations(rows, torch.tensor(y).double())


# --- reference: the definitions, row by row and output by output ----------------------


def moments(state: State, c: int) -> tuple[np.ndarray, np.ndarray]:
    told = state.history
    noise = np.full(len(told), STDS[c] ** 2)
    y = told.y[:, c].numpy() if len(told) else np.zeros(0)
    return GPS[c].posterior(X.numpy(), X[told.indices].numpy(), y, noise)


def gege_by_hand(states: list[State], beta: float, epsilon: tuple[float, float]):
    r"""Sides after each round from intervals of all differences."""
    side, found = ["open"] * 36, []
    for state in states:
        lower, upper = np.zeros((2, 36, 36)), np.zeros((2, 36, 36))
        for c in (0, 1):
            mean, C = moments(state, c)
            own = np.diag(C)
            spread = np.sqrt(np.maximum(own[:, None] + own - 2 * C, 0))
            centre = SIGNS[c] * (mean[:, None] - mean)
            lower[c], upper[c] = (centre + s * beta**0.5 * spread for s in (-1, 1))
        live = [i for i in range(36) if side[i] != "rejected"]
        for i in live:
            exceeded = [all(upper[c, i, j] < 0 for c in (0, 1)) for j in live if j != i]
            if side[i] == "open" and any(exceeded):
                side[i] = "rejected"
        live = [i for i in range(36) if side[i] != "rejected"]
        for i in live:
            safe = [
                any(lower[c, i, j] + epsilon[c] > 0 for c in (0, 1))
                for j in live
                if j != i
            ]
            if side[i] == "open" and all(safe):
                side[i] = "accepted"
        found.append(list(side))
    return found


def pal_by_hand(states: list[State], beta: float, epsilon: tuple[float, float]):
    r"""Sides after each round from intersected rectangles."""
    side, found = ["open"] * 36, []
    low, high = np.full((36, 2), -np.inf), np.full((36, 2), np.inf)
    for state in states:
        for c in (0, 1):
            mean, C = moments(state, c)
            half = beta**0.5 * np.sqrt(np.maximum(np.diag(C), 0))
            low[:, c] = np.maximum(low[:, c], SIGNS[c] * mean - half)
            high[:, c] = np.minimum(high[:, c], SIGNS[c] * mean + half)
        live = [i for i in range(36) if side[i] != "rejected"]
        front = [
            i
            for i in live
            if not any(
                (low[j] >= low[i]).all() and (low[j] > low[i]).any() for j in live
            )
        ]
        for i in live:
            covered = any((high[i] <= low[j] + epsilon).all() for j in front)
            if side[i] == "open" and i not in front and covered:
                side[i] = "rejected"
        live = [i for i in range(36) if side[i] != "rejected"]
        for i in live:
            safe = [(low[i] + epsilon > high[j]).any() for j in live if j != i]
            if side[i] == "open" and all(safe):
                side[i] = "accepted"
        found.append(list(side))
    return found


WORDS = {"above": "accepted", "below": "rejected", "undecided": "open"}


BY_HAND = {ParetoByDifferences: gege_by_hand, ParetoByRectangles: pal_by_hand}


@pytest.mark.some(1)
@covering("case, epsilon, seed", GAUSSIAN, [(0.0, 0.0), (0.3, 1.0)], range(3))
def test_sides_are_those_of_the_definitions(case, epsilon, seed) -> None:
    f = truth(seed)
    strategy = make(case, epsilon=epsilon, batch_size=4)
    states = run(strategy, 12, seed, value=lambda row, before: value(row, before, f))
    sides = [[WORDS[s] for s in state.classification.side] for state in states]
    assert sides == BY_HAND[type(strategy.goal)](states, 4.0, epsilon)
    assert "rejected" in sides[-1]
    assert ("accepted" in sides[-1]) or not any(epsilon)


@pytest.mark.some(2)
@every
@pytest.mark.parametrize("blocks", [1, 5])
def test_blocks_of_rows_change_nothing(monkeypatch, case, blocks) -> None:
    strategy = make(case)
    whole = run(strategy, 4, value=value)[-1]

    monkeypatch.setattr(pareto_base, "PAIRS", blocks * len(X))
    again = strategy.replay(whole.observations)
    for name in ("above", "below", "mean"):
        found = getattr(again.classification, name)
        torch.testing.assert_close(found, getattr(whole.classification, name))


@pytest.mark.parametrize("most", [1, 3, 40])
def test_equal_rivals_are_those_of_a_comparison_with_all(most) -> None:
    generator = torch.Generator().manual_seed(most)
    rivals = torch.randint(0, most, (30,), generator=generator)
    rows = torch.randint(0, most + 2, (12,), generator=generator)
    found = pareto_base.EqualRivals.of(rivals).to(rows)
    wanted = torch.where(rows.unsqueeze(-1) == rivals)
    assert [part.tolist() for part in found] == [part.tolist() for part in wanted]


@pytest.mark.slow
def test_margins_agree_with_the_sides() -> None:
    state = run(make(GEGEStrategy, epsilon=0.0, batch_size=8), 12, value=value)[-1]
    answer = state.classification
    assert bool(answer.above.any())
    assert bool(answer.below.any())
    assert bool((answer.lower[answer.above] > 0).all())
    assert bool((answer.upper[answer.below] < 0).all())
    open_rows = answer.undecided
    assert bool((answer.lower[open_rows] <= 0).all())
    assert bool((answer.upper[open_rows] >= 0).all())
    assert bool((answer.lower <= answer.mean + 1e-12).all())
    assert bool((answer.mean <= answer.upper + 1e-12).all())


@every
def test_outputs_are_the_posterior_with_its_intervals(case) -> None:
    strategy = make(case)
    states = run(strategy, 3, value=value)
    found = strategy.estimate(states[-1])
    for c in (0, 1):
        mean, C = moments(states[-1], c)
        np.testing.assert_allclose(found.mean[:, c].numpy(), mean, atol=1e-8)
        sigma = np.sqrt(np.diag(C))
        np.testing.assert_allclose(found.sigma[:, c].numpy(), sigma, atol=1e-8)
        if isinstance(strategy.goal, ParetoByDifferences):
            half = found.half_width[:, c].numpy()
            np.testing.assert_allclose(half, 2 * sigma, atol=1e-8)


# --- what they choose -----------------------------------------------------------------


def left(state: State, rows: list[int], c: int) -> np.ndarray:
    r"""Variances after a batch."""
    measured = [*state.history.indices.tolist(), *rows]
    noise = np.full(len(measured), STDS[c] ** 2)
    at = X[torch.tensor(measured, dtype=torch.long)].numpy()
    _, C = GPS[c].posterior(X.numpy(), at, np.zeros(len(measured)), noise)
    return np.diag(C)


@pytest.mark.some(1)
@pytest.mark.parametrize("rounds", [0, 3])
def test_gege_makes_the_worst_variance_of_the_active_rows_small(rounds) -> None:
    strategy = make(GEGEStrategy, batch_size=12)
    state = run(strategy, rounds, value=value)[-1]
    active = state.belief.sides.active.numpy()
    scales = [gp.outputscale for gp in GPS]

    def worst(rows: list[int]) -> float:
        return max(left(state, rows, c)[active].max() / scales[c] for c in (0, 1))

    chosen = worst(strategy.ask(state).order.tolist())
    generator = np.random.default_rng(0)
    others = [worst(generator.integers(0, 36, 12).tolist()) for _ in range(300)]
    assert chosen <= min(others)


@pytest.mark.slow
def test_accepted_rows_stay_active_while_they_threaten_open_ones() -> None:
    kept = 0
    for state in run(make(GEGEStrategy, epsilon=0.0, batch_size=8), 12, value=value)[
        1:
    ]:
        active, answer = state.belief.sides.active, state.classification
        assert bool((active | ~answer.undecided).all())
        assert not bool((active & answer.below).any())
        kept += int((active & answer.above).sum())
    assert kept > 0


def test_pal_measures_the_largest_rectangle_and_expects_its_choices() -> None:
    strategy = make(PALStrategy, batch_size=3)
    state = run(strategy, 3, value=value)[-1]
    found, answer = strategy.estimate(state), state.classification
    scales = np.sqrt([gp.outputscale for gp in GPS])
    rows: list[int] = []
    for _ in range(3):
        sides = []
        for c in (0, 1):
            half = 2 * np.sqrt(left(state, rows, c))
            mean = found.mean[:, c].numpy()
            low = np.maximum(found.lower[:, c].numpy(), mean - half)
            high = np.minimum(found.upper[:, c].numpy(), mean + half)
            sides.append((high - low) / scales[c])
        diameter = np.hypot(*sides)
        diameter[answer.below.numpy()] = -1
        rows.append(int(np.argmax(diameter >= diameter.max() - 1e-9)))
    assert strategy.ask(state).order.tolist() == sorted(rows)


@every
def test_replicates_are_used_and_limited(case) -> None:
    pool = Pool(torch.tensor([[0.0, 0.0], [9.0, 9.0]]).double())
    strategy = make(case, pool=pool, batch_size=6, noise_std=5.0)
    assert strategy.ask(strategy.init()).counts.tolist() == [3, 3]
    once = make(case, max_repeats=1, batch_size=20)
    state = step(once, once.init(), value)
    batch = once.ask(state)
    assert bool((batch.counts == 1).all())
    assert not set(batch.indices.tolist()) & set(state.history.indices.tolist())


@every
def test_pending_rows_are_not_asked_for_again(case) -> None:
    strategy = make(case)
    state = run(strategy, 2, value=value)[-1]
    batch = strategy.ask(state)
    more = strategy.ask(state, pending=batch.order.tolist())
    assert more.round == state.round + 1
    assert more.order.tolist() != batch.order.tolist()
    assert torch.equal(strategy.ask(state).order, batch.order)


# --- a function of the data -----------------------------------------------------------

FORMS = [
    {},
    {"model": None, "n_initial": 4, "noise_std": None, "beta": 4.0},
    {"model": (None, GPPrior.from_kernel(GPS[1].kernel())), "refit": 2},
]


@pytest.mark.some(0, slow=3)
@covering("options, case", FORMS, GAUSSIAN)
def test_replay_equals_telling_one_by_one(case, options) -> None:
    strategy = make(case, **options)
    state = run(strategy, 3, seed=3, value=value)[-1]
    assert len(state.history) >= 9
    assert_same(strategy, strategy.replay(state.observations, seed=3), state)


@pytest.mark.some(1, slow=2)
@every
@pytest.mark.parametrize(
    "options", [FORMS[0], pytest.param(FORMS[1], marks=pytest.mark.slow)]
)
def test_rounds_told_in_pieces_and_resumed_are_the_same(case, options) -> None:
    strategy = make(case, batch_size=4, **options)
    state = run(strategy, 2, value=value)[-1]
    batch = strategy.ask(state)
    y = torch.tensor([value(row, 40 + i) for i, row in enumerate(batch.order)])
    whole = strategy.tell(state, batch.observe(y.double()))
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        part = state
        for i in order[:3]:
            piece = Observations(batch.order[[i]], y[[i]].double())
            part = strategy.tell(part, piece)
            part = strategy.replay(part.observations)
        assert torch.equal(part.classification.mean, state.classification.mean)
        assert strategy.ask(part).order.tolist() == [int(batch.order[order[3]])]
        last = Observations(batch.order[[order[3]]], y[[order[3]]].double())
        assert_same(strategy, strategy.tell(part, last), whole)


@pytest.mark.some(2)
@every
def test_asking_changes_nothing_and_states_survive_pickling(case) -> None:
    strategy = make(case)
    state = run(strategy, 3, value=value)[-1]
    fresh = strategy.replay(state.observations)
    strategy.ask(state, pending=[0, 0, 5])
    assert_same(strategy, state, fresh)
    again = pickle.loads(pickle.dumps((strategy, state)))
    assert_same(again[0], again[1], state)


@more_in_full("n_examples", 4, 20)
def test_any_history_replays_and_partitions_the_pool(n_examples: int) -> None:
    @settings(max_examples=n_examples, deadline=None)
    @given(data=st.data(), case=st.sampled_from(GAUSSIAN))
    def check(data, case) -> None:
        replays_and_partitions(data, case)

    check()


def replays_and_partitions(data, case) -> None:
    strategy = make(case, batch_size=data.draw(st.integers(1, 4)))
    state = strategy.init()
    for _ in range(data.draw(st.integers(1, 5))):
        batch = strategy.ask(state)
        part = batch.order[: data.draw(st.integers(1, len(batch)))].tolist()
        others = data.draw(st.lists(st.integers(0, 35), min_size=1, max_size=4))
        kind = data.draw(st.sampled_from(["all", "part", "others", "both", "lost"]))
        rows = {
            "all": batch.order.tolist(),
            "part": part,
            "others": others,
            "both": part + others,
            "lost": [],
        }[kind]
        lost = part if kind == "lost" else None
        new = told(rows, len(state.observations)) if rows else None
        state = strategy.tell(state, new, abandoned=lost)
        sides = state.classification.side
        assert len(sides) == 36
    abandoned: dict[int, list[int]] = {}
    for label, row in state.abandoned:
        abandoned.setdefault(label, []).append(row)
    again = strategy.replay(state.observations, abandoned=abandoned)
    assert_same(strategy, again, state)


@every
def test_decided_rows_stay_decided_while_nothing_is_refitted(case) -> None:
    states = run(make(case), 6, value=value)
    for before, after in itertools.pairwise(states):
        old, new = before.classification, after.classification
        assert bool((new.above | ~old.above).all())
        assert bool((new.below | ~old.below).all())


def test_the_last_fit_alone_judges_all_data_at_once() -> None:
    strategy = make(GEGEStrategy, model=None, n_initial=6, beta=2.0)
    state = run(strategy, 4, value=value)[-1]
    fitted = [
        fit_additive_gp(
            X[state.history.indices],
            state.history.y[:, [c]],
            state.history.yvar[:, [c]],
            POOL.bounds,
        )
        for c in (0, 1)
    ]
    again = make(GEGEStrategy, model=tuple(fitted), beta=2.0)
    at_once = replace(state.observations, round=0 * state.observations.indices)
    expected = again.replay(at_once).classification
    for name in ("above", "below"):
        found = getattr(state.classification, name)
        assert torch.equal(found, getattr(expected, name))
    torch.testing.assert_close(state.classification.mean, expected.mean)


# --- invariance -----------------------------------------------------------------------


@pytest.mark.some(1)
@every
def test_the_sign_of_an_output_goes_with_maximize(case) -> None:
    strategy, mirror = make(case), make(case, maximize=(True, True))
    states = run(strategy, 4, value=value)

    def flipped(row: int, before: int) -> list[float]:
        first, second = value(row, before)
        return [first, -second]

    others = run(mirror, 4, value=flipped)
    for ours, theirs in zip(states, others, strict=True):
        assert torch.equal(ours.observations.indices, theirs.observations.indices)
        assert ours.classification.side.tolist() == theirs.classification.side.tolist()
        a, b = strategy.estimate(ours), mirror.estimate(theirs)
        torch.testing.assert_close(a.mean[:, 1], -b.mean[:, 1])
        torch.testing.assert_close(a.lower[:, 1], -b.upper[:, 1])


@pytest.mark.some(1)
@every
def test_units_of_an_output_change_nothing(case) -> None:
    states = run(make(case), 4, value=value)
    k = GPS[1].kernel()
    k.outputscale = 1e4 * k.outputscale
    prior = GPPrior.from_kernel(k)
    scaled = make(
        case,
        model=(GPPrior.from_kernel(GPS[0].kernel()), prior),
        noise_std=(0.3, 150.0),
        epsilon=(0.1, 50.0),
    )
    others = run(scaled, 4, value=lambda r, b: [value(r, b)[0], 100 * value(r, b)[1]])
    for ours, theirs in zip(states, others, strict=True):
        assert torch.equal(ours.observations.indices, theirs.observations.indices)
        assert ours.classification.side.tolist() == theirs.classification.side.tolist()


@every
def test_one_output_finds_its_maximiser(case) -> None:
    f = truth()[:, :1]
    strategy = make(
        case, maximize=(True,), model=GPS[0].kernel(), noise_std=0.05, epsilon=0.0
    )
    state = run(strategy, 60, value=lambda row, _: [float(f[row, 0])])[-1]
    assert state.classification.above.nonzero().view(-1).tolist() == [int(f.argmax())]


@every
def test_a_pool_of_one_row_is_accepted(case) -> None:
    strategy = make(case, pool=Pool(X[:1]), beta=None)  # by the theorem's width
    state = strategy.init()
    assert state.is_done
    assert state.classification.above.tolist() == [True]


# --- the guarantee --------------------------------------------------------------------

SMALL = torch.cartesian_prod(*[torch.linspace(0, 1, 3).double()] * 2)


def verdict(case, epsilon: float, n_runs: int, delta: float, **options) -> str:
    wrong = [is_wrong(case, seed, epsilon, delta, **options) for seed in range(n_runs)]
    return WrongFraction(sum(wrong), n_runs, delta).verdict


def is_wrong(
    case,
    seed: int,
    epsilon: float,
    delta: float,
    divisor: float = 1.0,
    budget: int = 60,
    batch_size: int = 6,
) -> bool:
    r"""Whether a run on a draw of the prior breaks what ``guarantee`` promises."""
    f = truth(500 + seed, SMALL)
    schedule = UnionBeta(make(case).goal.n_claims(len(SMALL)), delta)
    beta = None if divisor == 1 else lambda t: schedule(t) / divisor**2
    tolerance = (epsilon, 5 * epsilon)
    strategy = make(
        case,
        pool=Pool(SMALL),
        beta=beta,
        delta=delta,
        epsilon=tolerance,
        max_observations=budget,
        batch_size=batch_size,
    )
    read = lambda row, before: value(row, before + 97 * seed, f)  # noqa: E731
    state = run(strategy, 40, value=read)[-1]
    g = f * torch.tensor(SIGNS)
    above, below = state.classification.above, state.classification.below
    slack = torch.tensor(tolerance).double()
    if isinstance(strategy.goal, ParetoByDifferences):
        exceeds = (g.unsqueeze(0) > g.unsqueeze(1) + slack).all(dim=-1).any(dim=1)
        return bool((below & pareto_mask(g)).any() or (above & exceeds).any())
    exceeds = (g.unsqueeze(0) > g.unsqueeze(1) + 2 * slack).all(dim=-1).any(dim=1)
    covered = (g[~below].unsqueeze(0) + slack >= g.unsqueeze(1)).all(-1).any(dim=1)
    return bool((below & ~covered).any() or (above & exceeds).any())


@pytest.mark.slow
@every
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.filterwarnings("ignore::botorch_lse.confidence.EmptyRegionWarning")
def test_promises_hold_and_narrow_widths_break_them(case, epsilon) -> None:
    # So many runs that, without an error, the verdict is "holds".
    assert verdict(case, epsilon, n_runs=6, delta=0.5, budget=18) == "holds"
    if epsilon == 0.0:
        narrow = {"n_runs": 6, "delta": 0.1, "budget": 18, "divisor": 30.0}
        assert verdict(case, epsilon, batch_size=1, **narrow) == "violated"


def test_guarantees_say_what_they_rest_on() -> None:
    assert "No confidence" in make(GEGEStrategy).guarantee
    exact = make(GEGEStrategy, beta=None, epsilon=0.0).guarantee
    assert "0.95 accepted rows are Pareto optimal" in exact
    assert "more than 0.1, 0.5 in every" in make(GEGEStrategy, beta=None).guarantee
    fitted = make(PALStrategy, beta=None, model=None).guarantee
    assert "does not cover fitting" in fitted
    assert "at most 0.1, 0.5 in each" in fitted
    N = len(POOL)
    assert make(GEGEStrategy).goal.n_claims(N) == 2 * (N * (N - 1) // 2 + N)
    assert make(PALStrategy).goal.n_claims(N) == 2 * N


def test_rectangles_with_nothing_in_common_are_reported() -> None:
    strategy = make(PALStrategy, beta=None, noise_std=1e-3)
    far = lambda row, before: [100.0 * before, 0.0]  # noqa: E731
    with pytest.warns(EmptyRegionWarning, match="nothing in common"):
        run(strategy, 4, value=far)


# --- arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [GEGEStrategy, PALStrategy])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"maximize": True}, "`maximize` to be one bool per output"),
        ({"maximize": None}, r"`maximize` to be one bool per output, but got None"),
        ({"maximize": ()}, "`maximize` to be one bool per output"),
        ({"noise_std": (0.1, 0.2, 0.3)}, r"`noise_std` to be one, or one per output"),
        ({"noise_std": (0.1, -1.0)}, r"`noise_std` in \[0, inf\), but got -1"),
        ({"epsilon": (0.1,)}, r"`epsilon` to be one, or one per output \(2\), but g"),
        ({"epsilon": -1.0}, r"`epsilon` in \[0, inf\)"),
        ({"model": [None]}, r"`model` to be one, or one per output \(2\)"),
        ({"noise_std": None}, "`noise_std` .or `pool.noise_var`., because the fixed"),
        ({"pool": Pool(X, noise_var=torch.ones(36))}, "the noise once"),
        ({"memory_budget": 1000}, "pairs fit `memory_budget` = 1000 bytes, but 36"),
        ({"delta": 1.0}, r"`delta` in \(0, 1\)"),
        ({"batch_size": 0}, "`batch_size` to be at least 1"),
        ({"refit": 0}, "`refit` to be at least 1"),
        ({"n_initial": -1}, "`n_initial` to be at least 0"),
    ],
)
def test_bad_arguments_are_refused(cls, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        make(cls, **change)


@every
def test_bad_data_and_models_are_refused(case) -> None:
    strategy = make(case)
    with pytest.raises(BotorchTensorDimensionError, match=r"per entry of `maximize`"):
        strategy.tell(strategy.init(), Observations([0], [1.0]))

    def ensemble(train_X, train_Y, train_Yvar):
        return EnsembleMapSaasSingleTaskGP(
            train_X, train_Y, taus=torch.tensor([0.1, 0.2]).double(), num_taus=2
        )

    fitting = make(case, model=ensemble, noise_std=0.1, n_initial=3)
    with pytest.raises(UnsupportedError, match="one GP per output"):
        run(fitting, 2, value=value)


@every
def test_noise_of_the_pool_and_of_the_data_counts(case) -> None:
    variances = torch.linspace(0.02, 0.4, 36).double()
    rows = Pool(X, noise_var=variances)
    by_pool = make(case, pool=rows, noise_std=None)
    state = run(by_pool, 3, value=value)[-1]
    told = state.history
    expected = variances[told.indices].unsqueeze(-1).expand(-1, 2)
    assert torch.equal(told.yvar, expected)
    by_data = make(case)
    again = by_data.replay(
        Observations(told.indices, told.y, told.yvar, round=told.round)
    )
    torch.testing.assert_close(again.classification.mean, state.classification.mean)


@every
def test_means_of_replicates_equal_the_replicates(case) -> None:
    pool = Pool(torch.tensor([[0.0, 0.0], [0.7, 0.2], [9.0, 9.0]]).double())
    strategy = make(case, pool=pool, batch_size=7, noise_std=2.0)
    batch = strategy.ask(strategy.init())
    assert int(batch.counts.max()) > 1
    y = torch.randn(7, 2, generator=torch.Generator().manual_seed(0)).double()
    single = strategy.tell(strategy.init(), batch.observe(y))
    means = torch.stack([y[batch.order == row].mean(dim=0) for row in batch.indices])
    yvar = (4.0 / batch.counts).unsqueeze(-1).expand(-1, 2).double()
    state = strategy.tell(strategy.init(), batch.observe(means, yvar=yvar, means=True))
    assert (state.round, state.n_used) == (1, 7)
    ours, theirs = strategy.estimate(state), strategy.estimate(single)
    torch.testing.assert_close(ours.mean, theirs.mean)
    torch.testing.assert_close(ours.sigma, theirs.sigma)


@every
def test_equal_rows_share_their_side(case: StrategyCase) -> None:
    strategy = make(case, pool=Pool(torch.cat((X[:5], X[:5]))), batch_size=20)
    values, state = truth()[:5].repeat(2, 1), strategy.init()
    while not state.is_done and state.round < 60:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(values[batch.order]))
    assert state.stop_reason == "decided"
    side = state.classification.side.tolist()
    assert side[:5] == side[5:]


@pytest.mark.parametrize("goal", [ParetoByDifferences((True,)), ShareOfMaxByPairs(0.5)])
def test_pairs_take_each_rows_path_once(monkeypatch, goal) -> None:
    strategy = Strategy(
        Pool(torch.linspace(0, 1, 40).double().unsqueeze(-1)),
        goal,
        model=GaussianProcess([DenseGP((0.2,), 1.0, is_rbf=True).kernel()], 0.1),
    )
    monkeypatch.setattr(pareto_base, "PAIRS", 5 * 40)
    monkeypatch.setattr(extremes, "row_blocks", few_at_once)
    asked, path_at = [], PoolPosterior.path_at

    def counted(self, indices):
        asked.append(len(indices))
        return path_at(self, indices)

    monkeypatch.setattr(PoolPosterior, "path_at", counted)
    y = torch.zeros(3, 1) if isinstance(goal, ParetoByDifferences) else torch.zeros(3)
    # Labelled: nobody need look whether these rows were asked for.
    strategy.tell(strategy.init(), Observations([0, 20, 39], y).at_round(0))
    # Once as rivals and once as rows, at the start and after the round; and those of
    # the measured rows, for what is known of their values and how it surprises.
    assert sum(asked) <= 4 * 40 + 2 * 3
    assert max(asked) == 40


def few_at_once(n_rows: int, per_row: int, budget: int = 0) -> list[slice]:
    return [slice(i, i + 5) for i in range(0, n_rows, 5)]
