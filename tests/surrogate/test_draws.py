"""What a run knows of the share above: by decided rows, by the model, by an audit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import RBFKernel
from scipy.stats import binom

from botorch_lse import Observations, Pool
from botorch_lse.confidence.audit import AuditTest, most_wrong
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    ContentKnown,
    GaussianProcess,
    Levels,
    MinimumU,
    ShareOfMax,
    ShareOfMaxByPairs,
    Strategy,
)
from botorch_lse.surrogate import draws as drawn
from botorch_lse.surrogate.draws import (
    conservative_rows,
    content_draws,
    joint_draws,
    systematic_sample,
)
from tests.covering import more_in_full

GRID = torch.linspace(0, 1, 14, dtype=torch.float64)
CELLS = torch.cartesian_prod(GRID, GRID)
N, LEVEL = len(CELLS), 0.3
KERNEL = RBFKernel().double()
KERNEL.lengthscale = 0.3
PRIOR = GPPrior.from_kernel(KERNEL)


def posterior(rows=(10, 60, 130), y=(0.9, -0.4, 0.1)) -> PoolPosterior:
    start = PoolPosterior.start(PRIOR, CELLS)
    y = torch.tensor(y).double()
    return start.observe(torch.tensor(rows), y, torch.full_like(y, 0.01))


def truth(seed: int) -> torch.Tensor:
    K = KERNEL(CELLS).to_dense().detach() + 1e-8 * torch.eye(N).double()
    z = torch.randn(N, generator=torch.Generator().manual_seed(seed)).double()
    return torch.linalg.cholesky(K) @ z


# --- joint draws ----------------------------------------------------------------------


@pytest.mark.parametrize("most_exact", [2_000, 10])
def test_draws_have_the_posterior_mean_and_covariance(most_exact, monkeypatch) -> None:
    monkeypatch.setattr(drawn, "MOST_EXACT", most_exact)
    now, rows, n = posterior(), torch.arange(0, N, 7), 20_000
    values = torch.cat([v for _, v in joint_draws(now, rows, n, seed=1)])
    error = now.sigma[rows] / n**0.5
    assert ((values.mean(dim=1) - now.mean[rows]).abs() < 4.5 * error + 1e-4).all()
    wanted = now.covariance_between(rows, rows)
    scale = now.sigma[rows].unsqueeze(-1) * now.sigma[rows]
    # An estimated covariance has a standard error of at most sqrt(2 / n) of the scale.
    gap = (torch.cov(values) - wanted).abs()
    assert (gap <= 5 * (2 / n) ** 0.5 * scale + 1e-4).all()


@pytest.mark.parametrize("most_exact", [2_000, 10])
def test_contents_are_spread_as_dense_draws_are(most_exact, monkeypatch) -> None:
    monkeypatch.setattr(drawn, "MOST_EXACT", most_exact)
    now, items = posterior(), torch.arange(N)
    mass = torch.linspace(1, 3, N).double()
    mass = mass / mass.sum()
    side = torch.zeros(N, dtype=torch.int8)
    side[:20], side[20:40] = 1, -1
    found = content_draws(
        [now], Above(LEVEL).values.cells, side, mass, items, n=8000, seed=2
    ).numpy()
    # By numpy, from the dense covariance of all rows.
    K = now.covariance_with(items).numpy() + 1e-9 * np.eye(N)
    rng = np.random.default_rng(5)
    f = now.mean.numpy() + rng.multivariate_normal(np.zeros(N), K, 8000)
    above = f > LEVEL
    above[:, :20], above[:, 20:40] = True, False
    dense = above @ mass.numpy()
    error = dense.std() * (2 / 8000) ** 0.5
    assert abs(found.mean() - dense.mean()) < 4 * error
    assert found.std() == pytest.approx(dense.std(), rel=0.05)
    # Rows drawn one by one would be far too sure.
    p = above[:, 40:].mean(axis=0)
    alone = np.sqrt((mass[40:].numpy() ** 2 * p * (1 - p)).sum())
    assert found.std() > 3 * alone


# --- a sample that stands for all rows in doubt ---------------------------------------


def test_a_systematic_sample_has_every_mass_in_expectation() -> None:
    # One mass is larger than the distance of teeth, and one row counts for nothing.
    mass = torch.tensor([0.05, 0.6, 0.0, 0.1, 0.02, 0.23], dtype=torch.float64)
    runs, n = 4000, 4
    found = torch.zeros(runs, len(mass), dtype=torch.float64)
    for seed in range(runs):
        kept, each = systematic_sample(mass, n, seed)
        found[seed, kept] = each
    assert torch.allclose(found.sum(dim=1), mass.sum().expand(runs))
    assert (found[:, 2] == 0).all()
    assert (found[:, 1] >= 0.5 - 1e-9).all()
    error = found.std(dim=0) / runs**0.5
    assert ((found.mean(dim=0) - mass).abs() <= 4 * error + 1e-9).all()


@pytest.mark.parametrize("lengthscale", [0.3, 0.03])
def test_a_sample_adds_little_to_the_spread_of_a_draw(lengthscale: float) -> None:
    # The same draws of 10,000 rows, summed over all of them and over 1,000.
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    X = torch.rand(10_000, 2, generator=torch.Generator().manual_seed(4)).double()
    now = PoolPosterior.start(GPPrior.from_kernel(kernel), X)
    y = torch.tensor([0.9, -0.4, 0.1]).double()
    now = now.observe(torch.tensor([10, 60, 130]), y, torch.full_like(y, 0.01))
    order = ((now.mean - LEVEL) / now.sigma).argsort()
    mass = torch.linspace(1, 3, len(X)).double()
    mass = (mass / mass.sum())[order]
    above = torch.cat([v > LEVEL for _, v in joint_draws(now, order, 500, seed=3)])
    kept, each = systematic_sample(mass, 1000, seed=0)
    full, part = mass @ above.double(), each @ above[kept].double()
    added = (part - full).square().mean().sqrt()
    assert 0 < added <= 1 / (2 * 1000**0.5)
    if lengthscale == 0.3:
        assert added < 0.12 * full.std()  # 0.1 by the draws of torch 2.4
        assert part.std() == pytest.approx(float(full.std()), rel=0.05)


def test_contents_of_many_rows_rest_on_a_sample(monkeypatch) -> None:
    now, items = posterior(), torch.arange(N)
    mass = torch.linspace(1, 3, N).double()
    mass = mass / mass.sum()
    side = torch.zeros(N, dtype=torch.int8)
    side[:20], side[20:40] = 1, -1
    n = 4000
    full = content_draws([now], Above(LEVEL).values.cells, side, mass, items, n)
    drawn_rows = []

    def seen(posterior, rows, *rest):
        drawn_rows.append(len(rows))
        return joint_draws(posterior, rows, *rest)

    monkeypatch.setattr(drawn, "MOST_DRAWN", 60)
    monkeypatch.setattr(drawn, "joint_draws", seen)
    # Over places of the comb, so that its own error averages out.
    parts = [
        content_draws([now], Above(LEVEL).values.cells, side, mass, items, n, s)
        for s in range(1, 9)
    ]
    assert max(drawn_rows) <= 60
    part = torch.cat(parts)
    open_ = float(mass[side == 0].sum())
    # Of the draws of all rows, and of eight places with an error of 1 / (2 sqrt(60)).
    error = float(full.std()) * (1 / n + 1 / len(part)) ** 0.5
    comb = open_ / (2 * 60**0.5) / 8**0.5
    assert abs(float(part.mean() - full.mean())) < 4 * error + 0.5 * comb
    assert float(part.std()) == pytest.approx(float(full.std()), rel=0.1)
    low, high = float(mass[side == 1].sum()), float(mass[side >= 0].sum())
    assert low - 1e-9 <= part.min()
    assert part.max() <= high + 1e-9


def test_a_conservative_set_does_not_depend_on_blocks(monkeypatch) -> None:
    now, items, blocks = posterior(), torch.arange(N), []

    def seen(*given):
        for block in joint_draws(*given):
            blocks.append(block)
            yield block

    monkeypatch.setattr(drawn, "joint_draws", seen)
    whole = conservative_rows([now], Above(-0.2).values.cells, items, 0.9)
    assert len(blocks) == 1
    blocks.clear()
    monkeypatch.setattr(
        drawn,
        "row_blocks",
        lambda n, *_: [slice(i, min(i + 2, n)) for i in range(0, n, 2)],
    )
    assert torch.equal(
        conservative_rows([now], Above(-0.2).values.cells, items, 0.9), whole
    )
    # Drawing ends with the block in which the answer is known.
    z = (now.mean + 0.2) / now.sigma
    more = int(whole.sum()) - int((z >= drawn.SURE).sum())
    assert len(blocks) == more // 2 + 1
    assert 0 < more < int((z.abs() < drawn.SURE).sum()) // 2


def test_draws_are_a_function_of_their_seed() -> None:
    now, items = posterior(), torch.arange(N)
    side = torch.zeros(N, dtype=torch.int8)
    given = [now], Above(LEVEL).values.cells, side, Pool(CELLS).mass, items
    assert torch.equal(content_draws(*given, n=50), content_draws(*given, n=50))
    assert not torch.equal(
        content_draws(*given, n=50), content_draws(*given, n=50, seed=1)
    )


@pytest.mark.parametrize("most_exact", [2_000, 10])
@pytest.mark.parametrize("alpha", [0.5, 0.95])
def test_a_conservative_set_is_the_largest_that_is_above_together(
    alpha, most_exact, monkeypatch
) -> None:
    monkeypatch.setattr(drawn, "MOST_EXACT", most_exact)
    now, items = posterior(), torch.arange(N)
    level = -0.2
    member = conservative_rows([now], Above(level).values.cells, items, alpha, n=4000)
    p = torch.special.ndtr((now.mean - level) / now.sigma)
    assert 0 < int(member.sum()) < N
    assert p[member].min() >= p[~member].max()
    K = now.covariance_with(items).numpy() + 1e-9 * np.eye(N)
    rng = np.random.default_rng(8)
    f = now.mean.numpy() + rng.multivariate_normal(np.zeros(N), K, 8000)
    error = (alpha * (1 - alpha) * (1 / 8000 + 1 / 4000)) ** 0.5
    together = (f[:, member.numpy()] > level).all(axis=1).mean()
    assert together >= alpha - 4 * error - 0.01
    more = member.clone()
    more[torch.where(member, -1.0, p).argmax()] = True
    assert (f[:, more.numpy()] > level).all(axis=1).mean() <= alpha + 4 * error + 0.01


def test_conservative_sets_of_runs() -> None:
    f, state = run(Pool(CELLS), 2, 30)
    large, small = state.conservative(0.5), state.conservative(0.99)
    assert not bool((small & ~large).any())
    assert 0 < int(small.sum()) < int(large.sum())
    # The answer knows no joint draws: what it can say of itself is less.
    assert not bool((state.classification.conservative(0.5) & ~large).any())
    assert bool((f[small] > LEVEL).all())
    with pytest.raises(ValueError, match="`alpha`"):
        state.conservative(95)
    model = GaussianProcess(KERNEL, noise_std=0.1)
    implicit = Strategy(Pool(CELLS), ShareOfMax(0.5), model=model, beta=4.0)
    with pytest.raises(UnsupportedError, match="an estimated level"):
        implicit.init().conservative()


# --- runs -----------------------------------------------------------------------------


def run(pool: Pool, seed: int, n: int, std: float = 0.1, **options):
    model = GaussianProcess(KERNEL, noise_std=std)
    strategy = Strategy(pool, Above(LEVEL), model=model, batch_size=6, **options)
    f, state = truth(seed), strategy.init(seed=seed)
    noise = torch.Generator().manual_seed(1000 + seed)
    while not state.is_done and state.n_used < n:
        order = strategy.ask(state).order
        y = f[order] + std * torch.randn(len(order), generator=noise).double()
        state = strategy.tell(state, Observations(order, y, round=state.round))
    return f, state


WEIGHTS = torch.linspace(1, 9, N).double()


@pytest.mark.slow
@more_in_full("runs", 20, 200)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_intervals_of_runs_hold_as_often_as_they_say(weights, runs: int) -> None:
    pool = Pool(CELLS, weights=weights)
    missed = {"decided": 0, "posterior": 0}
    for seed in range(runs):
        f, state = run(pool, seed, 24)
        content, true = state.content(0.9), float(pool.mass[f > LEVEL].sum())
        missed["decided"] += not content.lower - 1e-9 <= true <= content.upper + 1e-9
        low, high = content.posterior
        missed["posterior"] += not low - 1e-9 <= true <= high + 1e-9
        assert content.lower - 1e-9 <= low <= high <= content.upper + 1e-9
    assert missed["decided"] <= binom.isf(1e-3, runs, 0.05)
    assert missed["posterior"] <= binom.isf(1e-3, runs, 0.1)


def test_the_state_and_its_replay_say_the_same() -> None:
    _, state = run(Pool(CELLS, weights=WEIGHTS), 3, 18)
    again = state.strategy.replay(state.observations, seed=3)
    assert again.content() == state.content()


def test_no_quantiles_where_the_level_is_not_stated() -> None:
    model = GaussianProcess(KERNEL, noise_std=0.1)
    strategy = Strategy(Pool(CELLS), ShareOfMax(0.5), model=model, beta=4.0)
    assert strategy.init().content().posterior is None


@pytest.mark.parametrize("weights", [None, 1.0 + GRID])
def test_where_every_row_is_known_the_content_is_one_number(weights) -> None:
    pool, f = Pool(GRID.unsqueeze(-1), weights=weights), (7 * GRID).sin()
    known = GaussianProcess(KERNEL, noise_std=0.0)
    strategy = Strategy(pool, Above(LEVEL), model=known, batch_size=14)
    found = strategy.tell(strategy.init(), Observations(torch.arange(14), f)).content()
    share = torch.ones(14) / 14 if weights is None else weights / weights.sum()
    wanted = pytest.approx(float(share[f > LEVEL].sum()))
    ends = (found.lower, found.upper, *found.posterior, *found.combined)
    assert (found.estimate, *ends) == (wanted,) * 7
    assert found.variation == 0.0


def test_a_run_that_has_not_begun_knows_nothing() -> None:
    strategy = Strategy(Pool(CELLS), Above(LEVEL), model=GaussianProcess(noise_std=0.1))
    content = strategy.init().content()
    assert (content.lower, content.upper) == pytest.approx((0, 1))
    assert content.posterior is None


# --- audits ---------------------------------------------------------------------------


def test_the_most_wrong_rows_are_the_largest_number_not_refuted() -> None:
    test = AuditTest(0.5, 40, n_rows=60)
    verdicts = torch.ones(25, dtype=torch.bool)
    verdicts[[4, 11]] = False
    most = most_wrong(verdicts, test)
    refuted = [
        AuditTest((w - 0.5) / 60, 40, n_rows=60).along(verdicts) for w in range(3, 61)
    ]
    assert most == 2 + refuted.index(True)
    assert all(refuted[refuted.index(True) :])
    assert most_wrong(verdicts[:0], test) == 60


@pytest.mark.some(0, slow=3)
@more_in_full("runs", 6, 60)
@pytest.mark.parametrize("std", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_limits_by_an_audit_hold(std: float, weights, runs: int) -> None:
    pool, missed, seen = Pool(CELLS, weights=weights), 0, 0
    for seed in range(runs):
        f, state = run(pool, seed, 150, std, beta=1.5, audit=(0.1, 0.1))
        content, true = state.content(0.9), float(pool.mass[f > LEVEL].sum())
        if content.design is None:
            continue
        seen += 1
        low, high = content.design
        assert low <= content.estimate + 0.02
        assert high >= content.estimate - 0.02
        missed += not low <= true <= high
    assert seen >= runs / 2
    assert missed <= binom.isf(1e-3, seen, 0.1)


@pytest.mark.slow
@more_in_full("runs", 10, 100)
def test_limits_by_an_audit_hold_for_a_model_that_is_wrong(runs: int) -> None:
    # A kernel that is far too smooth, and a width of nearly nothing; with less noise
    # its own values would reject it.
    pool, missed, wrong = Pool(CELLS), 0, 0
    smooth = RBFKernel().double()
    smooth.lengthscale = 1.5
    other = Strategy(
        pool,
        Above(LEVEL),
        model=GaussianProcess(smooth, noise_std=0.2),
        beta=0.01,
        batch_size=6,
        audit=(0.3, 0.1),
    )
    for seed in range(runs):
        f, state = truth(seed), other.init(seed=seed)
        while not state.is_done and state.n_used < 40:
            order = other.ask(state).order
            state = other.tell(state, Observations(order, f[order], round=state.round))
        content = state.content(0.9)
        if content.design is None:
            continue
        true = float(pool.mass[f > LEVEL].sum())
        wrong += abs(content.estimate - true) > 0.02
        missed += not content.design[0] - 1e-9 <= true <= content.design[1] + 1e-9
    assert missed <= binom.isf(1e-3, runs, 0.1)
    assert wrong >= runs / 5


# --- the number is of the level itself, and of the side that is asked for -------------


LINE = Pool(torch.linspace(0, 1, 61, dtype=torch.float64).unsqueeze(-1))
SLOPE = torch.stack((2 * LINE.X[:, 0] - 1, 1 - 2 * LINE.X[:, 0]), dim=-1)
BY_ROW = [0.1 * (-1) ** i for i in range(61)]
ASKED = {
    "above": (Above(0.0, 0.2), "above"),
    "below": (Below(0.0, 0.2), "below"),
    "not above": (~Above(0.0, 0.2), "below"),
    "not below": (~Below(0.0, 0.2), "above"),
    "between": (Between(-0.51, 0.31, 0.2), "between the levels"),
    "levels": (Levels((-0.51, 0.31), 0.2), "above all levels"),
    "or": (Below(-0.61, 0.2) | Above(0.31, 0.2), "in the region"),
    "by row": (Above(BY_ROW, 0.2), "above"),
    "two outputs": (Above(0.0, 0.2) & Above(-0.51, 0.2, 1), "in the region"),
}


def asked(name, noise_std=0.02, n=300, **options):
    r"""A run to its end, what it is asked for, and the share where that is so."""
    goal, _ = ASKED[name]
    kernel = RBFKernel().double()
    kernel.lengthscale = 1.0
    strategy = Strategy(
        LINE,
        goal,
        model=GaussianProcess(kernel, noise_std=noise_std),
        batch_size=3,
        max_observations=n,
        beta=9.0,
        **options,
    )
    noise, state = torch.Generator().manual_seed(0), strategy.init()
    while not state.is_done:
        rows = strategy.ask(state).order
        y = SLOPE[rows, : strategy.n_outputs].clone()
        y += noise_std * torch.randn(y.shape, generator=noise, dtype=torch.float64)
        y = y[:, 0] if strategy.n_outputs == 1 else y
        state = strategy.tell(state, Observations(rows, y, round=state.round))
    leaves = {leaf: SLOPE[:, leaf.output] > leaf.levels for leaf in goal.leaves}
    inside = goal.class_of(leaves).long() == goal.n_classes - 1
    return state, inside


@pytest.mark.parametrize("name", ASKED)
def test_an_accuracy_widens_the_content_and_does_not_shift_it(name) -> None:
    state, inside = asked(name)
    assert state.stop_reason == "decided"
    content, true = state.content(), float(inside.double().mean())
    assert content.lower <= true <= content.upper
    assert content.posterior[0] <= true <= content.posterior[1]
    assert content.combined[0] <= true <= content.combined[1]
    assert content.estimate == pytest.approx(true, abs=2 / 61)
    assert f"is {ASKED[name][1]};" in str(content)
    # Nothing that the accuracy decided is counted as known.
    answer = state.classification
    sure = answer.above & ~answer.within
    assert bool(inside[sure].all())
    assert content.lower == pytest.approx(float(sure.double().mean()))


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ["above", "below", "between"])
@pytest.mark.parametrize("noise_std", [0.0, 0.05])
def test_limits_by_an_audit_are_of_the_level_itself(name, noise_std) -> None:
    state, inside = asked(name, noise_std, audit=(0.02, 0.1))
    assert state.stop_reason == "audited"
    low, high = state.content().design
    assert low <= float(inside.double().mean()) <= high
    assert high - low < 0.45


@pytest.mark.some(4)
@pytest.mark.parametrize("name", ASKED)
def test_a_run_ends_once_the_share_of_any_region_is_known(name) -> None:
    state, inside = asked(name, 0.3, content_tol=ContentKnown(0.1, relative=False))
    assert state.stop_reason in ("content known", "decided")
    content = state.content()
    assert content.widened[0] <= float(inside.double().mean()) <= content.widened[1]


def test_of_the_same_data_what_is_below_is_what_is_not_above() -> None:
    state, _ = asked("above", 0.3, n=9)
    given = state.strategy
    other = replace(given, goal=Below(0.0, 0.2)).replay(state.observations)
    one, two = state.content(), other.content()
    assert one.estimate + two.estimate == pytest.approx(1.0)
    assert one.lower + two.upper == pytest.approx(1.0)
    for a, b in zip(one.posterior, two.posterior[::-1], strict=True):
        assert a + b == pytest.approx(1.0)
    safe = other.conservative(0.9)
    assert bool(safe.any())
    assert bool((SLOPE[safe, 0] <= 0).all())
    flipped = replace(given, goal=~Below(0.0, 0.2)).replay(state.observations)
    assert torch.equal(flipped.conservative(0.9), state.conservative(0.9))


def test_an_estimated_level_is_widened_too() -> None:
    model = GaussianProcess(KERNEL, noise_std=0.05)
    for goal in (ShareOfMax(0.5, epsilon=0.3), ShareOfMaxByPairs(0.5, epsilon=0.3)):
        strategy = Strategy(LINE, goal, model=model, beta=4.0, max_observations=80)
        state = strategy.init()
        while not state.is_done:
            rows = strategy.ask(state).order
            told = Observations(rows, 2 + SLOPE[rows, 0], round=state.round)
            state = strategy.tell(state, told)
        true = float((2 + SLOPE[:, 0] > 1.5).double().mean())
        content = state.content()
        assert state.stop_reason == "decided"
        assert content.lower < true < content.upper
        assert content.lower < content.estimate < content.upper


def test_rules_about_one_level_are_refused_with_a_remedy() -> None:
    model = GaussianProcess(KERNEL, noise_std=0.1)
    rule = MinimumU()
    with pytest.raises(ValueError, match=r"`Above\(level\)` with one level"):
        Strategy(LINE, Below(0.0), model=model, content_tol=rule)
    Strategy(LINE, Above(0.0), model=model, content_tol=rule)
    goal = Above(0.0) & Above(0.0, output=1)
    with pytest.raises(ValueError, match=r"outputs are correlated.*by='decided'"):
        Strategy(LINE, goal, model=GaussianProcess(correlated=True), content_tol=0.1)
    rule = ContentKnown(0.1, by="decided")
    Strategy(LINE, goal, model=GaussianProcess(correlated=True), content_tol=rule)
