r"""Audits of runs with several sources: rows of the target are drawn, and it alone."""

from __future__ import annotations

from functools import cached_property

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse import Above, GaussianProcess, Observations, Pool, State, Strategy
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.models import Autoregressive, source_kernel
from tests.covering import more_in_full
from tests.strategies.criteria.test_audits_of_runs import Claiming, Stubborn

N, LEVEL, EPSILON = 80, 0.2, 0.1
TOLERANCE, DELTA = 0.1, 0.2
LINE = Pool(torch.linspace(0, 10, N, dtype=torch.float64).unsqueeze(-1), names=("x",))
FINE = torch.sin(LINE.X[:, 0])
COARSE = FINE + 0.2 * torch.cos(2 * LINE.X[:, 0])
Y = torch.cat((COARSE, FINE))
NAMES = ("coarse", "fine")


def meshes(target: str = "fine", std: float | None = 0.0) -> Pool:
    noise = None if std is None else (std**2, std**2)
    costs = [20.0 if name == target else 1.0 for name in NAMES]
    return LINE.at_sources(NAMES, costs=costs, noise_var=noise, target=target)


def given(*loadings: list[float]) -> GaussianProcess:
    kernels = [RBFKernel() for _ in loadings[0]]
    for kernel in kernels:
        kernel.lengthscale = 1.0
    return GaussianProcess(source_kernel(kernels, list(loadings), d=1))


ALIKE = given([1.0, 0.0, 0.3], [1.0, 0.3, 0.0])


def audited(pool: Pool, model: GaussianProcess = ALIKE) -> Strategy:
    # Rows at the level itself would take for ever.
    goal = Above(LEVEL, epsilon=EPSILON)
    return Strategy(pool, goal, model=model, audit=(TOLERANCE, DELTA))


def played(
    strategy: Strategy,
    y: Tensor = Y,
    seed: int = 0,
    std: float = 0.0,
    size: int | None = 5,
) -> State:
    state = strategy.init(seed)
    generator = torch.Generator().manual_seed(seed)
    while state.stop_reason is None and state.n_used < 150:
        batch = strategy.ask(state, size=size)
        noise = torch.randn(len(batch.order), generator=generator).double()
        state = strategy.tell(state, batch.observe(y[batch.order] + std * noise))
    return state


def until_audit(strategy: Strategy, size: int = 5) -> State:
    r"""The state in which the audit begins."""
    state = strategy.init()
    while "under way" not in state.classification.guarantee:
        batch = strategy.ask(state, size=size)
        state = strategy.tell(state, batch.observe(Y[batch.order]))
    return state


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("target", NAMES)
def test_rows_of_the_target_are_drawn(target: str, size: int) -> None:
    strategy = audited(meshes(target))
    before = until_audit(strategy, size)
    state = played(strategy, size=size)
    assert state.stop_reason == "audited"
    first = NAMES.index(target) * N
    truth = Y[first : first + N]
    is_far = (truth - LEVEL).abs() > EPSILON
    assert torch.equal(state.classification.above[is_far], (truth > LEVEL)[is_far])
    drawn = state.observations.indices[before.n_used :]
    assert len(drawn) > 0
    assert bool(((drawn >= first) & (drawn < first + N)).all())
    # Without noise none is measured twice, nor one that was measured before.
    assert not torch.isin(drawn, before.observations.indices).any()
    assert len(drawn.unique()) == len(drawn)
    again = strategy.replay(state.observations)
    assert again.stop_reason == "audited"
    assert again.classification.guarantee == state.classification.guarantee
    stored = decode_strategy(encode_strategy(strategy), strategy.pool)
    assert stored.replay(state.observations).stop_reason == "audited"


def test_rows_that_are_out_are_not_drawn_again() -> None:
    strategy = audited(meshes())
    state = until_audit(strategy)
    one = strategy.ask(state, size=3)
    other = strategy.ask(state, size=3, pending=one.order)
    assert not torch.isin(other.order, one.order).any()
    assert bool((other.order >= N).all())


@pytest.mark.some(1)
@pytest.mark.parametrize("is_target", [True, False])
def test_an_excluded_row_counts_as_wrong_at_the_target_alone(is_target: bool) -> None:
    strategy = audited(meshes())
    state = until_audit(strategy)
    drawn = strategy.ask(state, size=1).order
    state = strategy.exclude(state, drawn if is_target else torch.arange(N))
    batch = strategy.ask(state, size=3)
    state = strategy.tell(state, batch.observe(Y[batch.order]))
    found = "1 of 4" if is_target else "0 of 3"
    assert f"{found} rows drawn" in state.classification.guarantee


class ClaimingTarget(Claiming):
    r"""A strategy that claims sides of the target, to be audited."""

    decides_a_target = True

    @cached_property
    def algorithm(self) -> Stubborn:
        items = self.pool.without_sources
        return Stubborn(items, self.side, 0.0, self.batch_size)


@pytest.mark.some(0, slow=2)
@more_in_full("n_runs", 30, 300)
@pytest.mark.parametrize("target", NAMES)
def test_a_claim_about_the_target_that_is_too_wrong_passes_rarely(
    target: str, n_runs: int
) -> None:
    pool, wrong = meshes(target), torch.arange(N) % 9 == 0  # a ninth is too much
    first, n_passed = NAMES.index(target) * N, 0
    truth = torch.where(torch.arange(N) % 2 == 0, 1.0, -1.0).double()
    # The other source bears out whatever is claimed.
    side = torch.where(wrong, -truth, truth)
    y = side.repeat(2)
    y[first : first + N] = truth
    strategy = ClaimingTarget(pool, side=side.long(), audit=(TOLERANCE, DELTA))
    for seed in range(n_runs):
        n_passed += played(strategy, y, seed, size=None).stop_reason == "audited"
    # Two standard errors above what is allowed.
    allowed = DELTA * n_runs + 2 * (DELTA * (1 - DELTA) * n_runs) ** 0.5
    assert 0 < n_passed <= allowed


@pytest.mark.slow
def test_learnt_noise_of_the_target_is_bounded_from_its_rows_measured_twice() -> None:
    std = 0.05
    strategy = audited(meshes(std=None), GaussianProcess(Autoregressive()))
    state = played(strategy, std=std)
    assert state.stop_reason == "audited"
    assert "bounded by" in state.classification.guarantee
    is_far = (FINE - LEVEL).abs() > 3 * std
    assert torch.equal(state.classification.above[is_far], (FINE > LEVEL)[is_far])


def test_a_round_may_have_values_of_other_sources_alone() -> None:
    strategy = audited(meshes())
    rows = N + torch.arange(0, N, 4)
    state = strategy.tell(strategy.init(), Observations(rows, Y[rows]))
    assert state.stop_reason is None  # all is decided, and an audit has begun
    elsewhere = Observations(torch.tensor([7]), Y[[7]])
    assert strategy.tell(state, elsewhere).stop_reason is None
