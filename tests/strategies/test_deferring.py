r"""Runs that put rows off choose and answer as runs that do not."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
import torch

from botorch_lse import History, Observations, Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    GaussianProcess,
    LSEStrategy,
    State,
    StraddleStrategy,
    Strategy,
    deferring,
)
from botorch_lse.strategies.deferring import Deferred, Deferring
from botorch_lse.strategies.wrapping import unwrapped
from tests.covering import covering, more_when_slow
from tests.strategies.runs import GP, LEVEL, NOISE_STD, grid, noise, truth

SIDE = 14
BUDGET = 30 * 8 * SIDE**2
"""Bytes that keep 15 path rows: most of the past is computed again each time."""


@pytest.fixture(autouse=True)
def _small_pools_count_as_large(monkeypatch):
    monkeypatch.setattr(deferring, "LEAST_ROWS", 1)
    monkeypatch.setattr(deferring, "SHORTLIST", 8)


def lse(**options) -> LSEStrategy:
    known = {"model": GPPrior.from_kernel(GP.kernel()), "noise_std": NOISE_STD}
    known |= {"memory_budget": BUDGET, "batch_size": 1, "beta": 9.0}
    return LSEStrategy(Pool(grid(SIDE)), LEVEL, **{**known, **options})


def plain(strategy: LSEStrategy) -> LSEStrategy:
    r"""The same strategy, which brings every row up to date with each measurement."""
    same = replace(strategy)
    same.__dict__["procedure"] = same.parts
    return same


def value(row: int, before: int) -> float:
    return float(truth(0, SIDE)[row] + noise()[before])


def told(strategy: LSEStrategy, state: State) -> State:
    batch = strategy.ask(state)
    y = [value(row, len(state.history) + i) for i, row in enumerate(batch.order)]
    return strategy.tell(state, batch.observe(torch.tensor(y).double()))


def assert_same(one: State, other: State) -> None:
    a, b = one.classification, other.classification
    for name in ("above", "below", "undecided", "contradicted"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name
    for name in ("lower", "upper", "mean", "sigma", "probability_above"):
        torch.testing.assert_close(
            getattr(a, name), getattr(b, name), rtol=1e-8, atol=1e-9
        )
    assert a.guarantee == b.guarantee
    assert one.stop_reason == other.stop_reason


@covering(
    "beta, epsilon, max_repeats, share",
    (None, 9.0, 4.0, 1.0),  # the narrowest contradict each other
    (0.0, 0.3),
    (None, 1),
    (0.0, 1.0),
)
@more_when_slow("rounds", 16, 60)
@pytest.mark.filterwarnings("ignore::botorch_lse.confidence.regions.EmptyRegionWarning")
@pytest.mark.filterwarnings(
    "ignore::botorch_lse.confidence.calibration.CalibrationWarning"
)
def test_a_run_is_that_of_every_row(
    beta, epsilon, max_repeats, share, rounds, monkeypatch
):
    monkeypatch.setattr(deferring, "SHARE", share)
    strategy = lse(beta=beta, epsilon=epsilon, max_repeats=max_repeats)
    other = plain(strategy)
    assert isinstance(strategy.procedure, Deferring)
    state, wanted = strategy.init(0), other.init(0)
    for n in range(rounds):
        if wanted.is_done:
            break
        assert torch.equal(strategy.ask(state).indices, other.ask(wanted).indices)
        state, wanted = told(strategy, state), told(other, wanted)
        assert state.stop_reason == wanted.stop_reason
        if n % 7 == 0:  # what is read changes nothing of what follows
            assert_same(state, wanted)
    assert_same(state, wanted)
    replayed = strategy.replay(state.observations, seed=0)
    assert_same(replayed, wanted)


def test_a_run_with_old_values_is_that_of_every_row() -> None:
    # The level lies far above the prior's interval: only data decide.
    at = torch.rand(12, 2, generator=torch.Generator().manual_seed(0)).double()
    y = 4.0 + (3 * at).sin().sum(-1)
    history = History(at, y)
    options = {"beta": 1.0, "epsilon": 0.1, "history": history, "threshold": 4.5}
    strategy = LSEStrategy(
        Pool(grid(SIDE)),
        model=GPPrior.from_kernel(GP.kernel()),
        noise_std=0.05,
        batch_size=1,
        **options,
    )
    other = plain(strategy)
    assert isinstance(strategy.procedure, Deferring)
    state, wanted = strategy.init(), other.init()
    while not wanted.is_done and len(wanted.history) < 20:
        batch = strategy.ask(state)
        assert torch.equal(batch.indices, other.ask(wanted).indices)
        told_ = batch.observe(4.0 + (3 * batch.X).sin().sum(-1))
        state, wanted = strategy.tell(state, told_), other.tell(wanted, told_)
    assert_same(state, wanted)
    answer = state.classification
    clear = (answer.lower + 0.1 > 4.5) | (answer.upper - 0.1 <= 4.5)
    assert not bool((answer.undecided & clear).any())


def test_rows_are_put_off_and_few_are_looked_at():
    strategy = lse(beta=None)
    state = strategy.init(0)
    shares = []
    for _ in range(20):
        state = told(strategy, state)
        if isinstance(state.belief, Deferred):
            shares.append(float(state.belief.is_listed.double().mean()))
    assert len(shares) >= 10
    assert max(shares) < 0.5


def test_the_bound_of_what_may_contradict_holds():
    r"""Against all intervals of a run that follows every row."""
    strategy = lse()
    other = plain(strategy)
    state = other.init(0)
    for _ in range(10):
        state = told(other, state)
    regions, base = state.belief.regions, state.belief.posterior
    n = len(base.a)
    nearest = torch.minimum(regions.mean - regions.lower, regions.upper - regions.mean)
    slack, was_tight, were_bound = nearest / regions.sigma, False, False
    intervals = []
    for _ in range(12):
        state = told(other, state)
        now = state.belief.posterior
        rows = now.indices[n:]
        most = torch.linalg.eigvalsh(base.covariance_between(rows, rows)).max()
        left = NOISE_STD / (most + NOISE_STD**2).sqrt()
        assert bool((now.sigma >= left * base.sigma * (1 - 1e-9)).all())
        moved = now.a[n:].norm() * (1 - left**2).sqrt()
        half = 3.0 * now.sigma
        intervals.append((now.mean - half, now.mean + half))
        lower, upper = intervals[-1]
        meets = (upper >= regions.lower) & (lower <= regions.upper)
        assert bool(meets[slack >= moved - 3.0 * left].all())
        was_tight |= bool((slack < moved - 3.0 * left).any())
        if moved <= 3.0 * (1 + left):
            lowers, uppers = map(torch.stack, zip(*intervals, strict=True))
            assert bool((lowers.amax(dim=0) <= uppers.amin(dim=0)).all())
            were_bound |= len(intervals) > 1
    assert was_tight
    assert were_bound


def test_what_is_left_of_every_deviation_is_bounded():
    strategy = lse(beta=None)
    state, looked_at = strategy.init(0), 0
    for _ in range(16):
        state = told(strategy, state)
        belief = state.belief
        if isinstance(belief, Deferred):
            share = belief.settled.posterior.sigma / belief.base.posterior.sigma
            assert float(share.min()) >= belief._left
            looked_at += 1
    assert looked_at >= 5


def test_excluded_rows_are_not_chosen():
    strategy = lse()
    other = plain(strategy)
    state, wanted = strategy.init(0), other.init(0)
    for _ in range(12):
        state, wanted = told(strategy, state), told(other, wanted)
    out = strategy.ask(state).indices
    state, wanted = strategy.exclude(state, out), other.exclude(wanted, out)
    for _ in range(6):
        assert torch.equal(strategy.ask(state).indices, other.ask(wanted).indices)
        assert int(strategy.ask(state).indices) != int(out)
        state, wanted = told(strategy, state), told(other, wanted)
    assert_same(state, wanted)


def test_pending_rows_and_larger_rounds_are_planned_with_all_rows():
    strategy = lse(batch_size=None)
    other = plain(strategy)
    state, wanted = strategy.init(0), other.init(0)
    for size in (1, 1, 3, 1, 1):
        batch, same = strategy.ask(state, size=size), other.ask(wanted, size=size)
        assert torch.equal(batch.indices, same.indices)
        more = strategy.ask(state, pending=batch.indices, size=1)
        assert torch.equal(
            more.indices, other.ask(wanted, pending=batch.indices, size=1).indices
        )
        y = torch.tensor([value(int(row), 0) for row in batch.order]).double()
        state = strategy.tell(state, batch.observe(y))
        wanted = other.tell(wanted, same.observe(y))
        assert_same(state, wanted)


def test_a_state_that_is_put_off_can_be_stored():
    strategy = lse(beta=None)
    state = strategy.init(0)
    while not isinstance(state.belief, Deferred):
        state = told(strategy, state)
    assert unwrapped(state.belief) is state.belief
    assert "settled" not in vars(state.belief)  # nobody has looked at all rows yet
    assert not hasattr(state.belief, "inner")
    assert_same(pickle.loads(pickle.dumps(state)), state)
    X = torch.rand(3, 2, dtype=torch.float64)
    mean, sigma = state.predict(X)
    wanted = plain(strategy).replay(state.observations, seed=0).predict(X)
    torch.testing.assert_close(mean, wanted[0])
    torch.testing.assert_close(sigma, wanted[1])


def test_an_exact_row_is_measured_once():
    strategy = lse(noise_std=0.0)
    other = plain(strategy)
    state, wanted = strategy.init(0), other.init(0)
    for _ in range(25):
        if wanted.is_done:
            break
        state, wanted = told(strategy, state), told(other, wanted)
    assert torch.equal(state.history.indices, wanted.history.indices)
    assert_same(state, wanted)


def test_only_intervals_that_shrink_are_put_off():
    pool, kernel = Pool(grid(SIDE)), GPPrior.from_kernel(GP.kernel())
    options = {"model": kernel, "noise_std": NOISE_STD}
    composed = GaussianProcess(kernel, noise_std=NOISE_STD)
    assert isinstance(
        Strategy(pool, Above(LEVEL), model=composed, rule=Ambiguity()).procedure,
        Deferring,
    )
    for other in (
        lse(batch_size=2),
        lse(audit=(0.1, 0.1)),
        lse(model=None, beta=9.0),
        lse(content_tol=0.1),
        StraddleStrategy(pool, LEVEL, **options),
        Strategy(pool, Above(LEVEL), model=composed, rule=Ambiguity(intersects=False)),
    ):
        assert not isinstance(other.procedure, Deferring)


def test_values_without_a_plan_may_be_told():
    strategy = lse()
    other = plain(strategy)
    rows = torch.tensor([5, 120, 195])
    y = torch.tensor([0.1, 1.0, -0.4]).double()
    state, wanted = (
        s.tell(s.init(0), Observations(rows, y)) for s in (strategy, other)
    )
    for _ in range(4):
        state, wanted = told(strategy, state), told(other, wanted)
    assert torch.equal(state.history.indices, wanted.history.indices)
    assert_same(state, wanted)
