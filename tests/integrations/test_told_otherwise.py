r"""The same data, told otherwise: no door gives a narrower answer than the run had.

A run of ten batches is told again without its rounds, in one call, through every door
by which data come back, in its own order and mixed. Tables are in
``tests/cli/test_next.py``.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable

import pytest
import torch
from ax.api.client import Client
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import level_set_generation_strategy, pool_parameters
from botorch_lse.data.observations import Observations
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    OptimalDesign,
    State,
    StraddleStrategy,
    Strategy,
)
from tests.ax.worlds import state_of

POOL = Pool([[x / 4] for x in range(17)], names=("x",))
NOISE, SIZE, ROUNDS = 0.5, 3, 10


def build(batch_size: int | None) -> Strategy:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.7
    return Strategy(
        POOL,
        Above(0.4, output="f"),
        model=GaussianProcess(model=kernel, noise_std=NOISE),
        rule=OptimalDesign(),
        batch_size=batch_size,
    )


@functools.cache
def the_run(batch_size: int | None) -> State:
    r"""A run that asked for its rounds and was told each by itself."""
    strategy, noise = build(batch_size), random.Random(1)
    state, size = strategy.init(), {"size": SIZE} if batch_size is None else {}
    for _ in range(ROUNDS):
        batch = strategy.ask(state, **size)
        means = torch.sin(2 * batch.X.squeeze(-1)).repeat_interleave(batch.counts)
        y = means + torch.tensor([noise.gauss(0, NOISE) for _ in means])
        y = (1024 * y).round() / 1024  # ten decimals, as many as Ax stores
        state = strategy.tell(state, batch.observe(y))
    assert state.round == ROUNDS
    assert not state.is_done
    assert state.belief.n_intervals == ROUNDS + 1
    return state


def pairs(data: Observations) -> list[tuple[int, float]]:
    return list(zip(data.indices.tolist(), data.y.tolist(), strict=True))


def by_tell(strategy: Strategy, data: Observations) -> State:
    return strategy.tell(strategy.init(), data)


def in_a_round(strategy: Strategy, data: Observations) -> State:
    r"""While a round is open, one of whose rows is in the data."""
    state = strategy.init()
    row = int(strategy.ask(state).order[0])
    first = int((data.indices == row).nonzero()[0])
    state = strategy.tell(state, data.select(torch.tensor([first])))
    others = torch.tensor([i for i in range(len(data)) if i != first])
    return strategy.tell(state, data.select(others))


def by_replay(strategy: Strategy, data: Observations) -> State:
    return strategy.replay(data)


def replayed_again(strategy: Strategy, data: Observations) -> State:
    r"""From the record of a state that was told so."""
    return strategy.replay(strategy.tell(strategy.init(), data).observations)


def by_gest(strategy: Strategy, data: Observations) -> State:
    pytest.importorskip("gest_api", reason="gest-api is not installed")
    from gest_api.vocs import VOCS

    from botorch_lse.integrations.gest import LevelSetGenerator

    vocs = VOCS(variables={"x": [0.0, 4.0]}, objectives={"cost": "EXPLORE"})
    generator = LevelSetGenerator(
        vocs,
        strategy.goal,
        pool=POOL,
        model=strategy.model,
        rule=strategy.rule,
        batch_size=strategy.batch_size,
    )
    generator.ingest([{"x": row / 4, "f": y} for row, y in pairs(data)])
    return generator.state


def by_optuna(strategy: Strategy, data: Observations) -> State:
    optuna = pytest.importorskip("optuna", reason="optuna is not installed")
    from botorch_lse.integrations.optuna import LevelSetSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = LevelSetSampler(strategy)
    study = optuna.create_study(sampler=sampler)
    spread = {"x": optuna.distributions.FloatDistribution(0, 4)}
    for row, y in pairs(data):
        told = {"params": {"x": row / 4}, "user_attrs": {"f": y}, "value": 0.0}
        study.add_trial(optuna.trial.create_trial(distributions=spread, **told))
    return sampler.state(study)


def by_ax(strategy: Strategy, data: Observations, **options: bool) -> State:
    client = Client()
    client.configure_experiment(parameters=pool_parameters(POOL), name="test")
    client.configure_optimization(objective="cost", outcome_constraints=["f >= 0"])
    made = level_set_generation_strategy(strategy, **options)
    client.set_generation_strategy(made)
    for row, y in pairs(data):
        number = client.attach_trial({"pool_index": row})
        client.complete_trial(number, {"f": y, "cost": 0.0})
    return state_of(client)


def by_asynchronous_ax(strategy: Strategy, data: Observations) -> State:
    return by_ax(strategy, data, asynchronous=True)


EVERY = [by_tell, by_replay, replayed_again, by_gest, by_optuna, by_ax]


@pytest.mark.some(1)
@pytest.mark.parametrize("order", ["as it came", "mixed"])
@pytest.mark.parametrize(
    ("door", "batch_size"),
    [
        *((door, SIZE) for door in (*EVERY, in_a_round)),
        *((door, None) for door in (*EVERY[:-1], by_asynchronous_ax)),
    ],
)
def test_no_door_gives_a_narrower_answer(
    door: Callable[[Strategy, Observations], State],
    batch_size: int | None,
    order: str,
) -> None:
    run = the_run(batch_size)
    data = Observations(run.observations.indices, run.observations.y)
    if order == "mixed":
        places = random.Random(2).sample(range(len(data)), len(data))
        data = data.select(torch.tensor(places))
    state = door(build(batch_size), data)
    found, known = (
        [o.y[o.indices == row].sort().values for row in range(len(POOL))]
        for o in (state.observations, data)
    )
    torch.testing.assert_close(found, known, rtol=1e-10, atol=0)  # Ax scales by noise
    own, answer = run.classification, state.classification
    # Rounding aside: the same numbers are summed in another order.
    assert bool((answer.upper >= own.upper - 1e-9).all())
    assert bool((answer.lower <= own.lower + 1e-9).all())
    assert not bool((own.undecided & ~answer.undecided).any())


@pytest.mark.parametrize("batch_size", [SIZE, None])
def test_with_its_rounds_it_is_the_run(batch_size: int | None) -> None:
    run, strategy = the_run(batch_size), build(batch_size)
    told = strategy.tell(strategy.init(), run.observations)
    for state in (told, strategy.replay(run.observations)):
        assert torch.equal(state.classification.lower, run.classification.lower)
        assert torch.equal(state.classification.upper, run.classification.upper)


@pytest.mark.parametrize("batch_size", [SIZE, None])
def test_a_batch_that_was_asked_for_is_one_look_without_its_label(
    batch_size: int | None,
) -> None:
    strategy, run = build(batch_size), the_run(batch_size)
    state, label = strategy.init(), run.observations.round
    assert label is not None
    for number in range(ROUNDS):
        part = run.observations.select((label == number).nonzero().view(-1))
        state = strategy.tell(state, Observations(part.indices, part.y))
    assert state.belief.n_intervals == ROUNDS + 1
    assert torch.equal(state.classification.lower, run.classification.lower)


def test_old_data_widen_by_a_look_each() -> None:
    strategy, run = build(SIZE), the_run(SIZE)
    bare = Observations(run.observations.indices, run.observations.y)
    state = strategy.tell(strategy.init(), bare)
    looks = SIZE * ROUNDS - SIZE + 1  # one batch of them may have been a round
    assert state.belief.n_intervals == 1 + looks
    assert len(state.observations.round.unique()) == 1


@pytest.mark.parametrize("portions", [(19,), (15, 4), (4, 15), (11, 8), (8, 11)])
def test_a_part_of_a_batch_is_a_look_too(portions: tuple[int, ...]) -> None:
    r"""Of a run in tens that began its second batch, told in any portions."""
    strategy = build(10)
    state, n = strategy.init(), 0
    for size in portions:
        rows = the_run(SIZE).observations.select(torch.arange(n, n + size))
        state = strategy.tell(state, Observations(rows.indices, rows.y))
        n += size
    looks = state.belief.n_intervals - 1
    assert looks >= math.ceil(len(state.history) / 10)  # what waits is not seen yet


def test_a_batch_and_more_in_one_call_are_two_rounds() -> None:
    strategy = build(SIZE)
    state = strategy.init()
    batch = strategy.ask(state)
    y = torch.linspace(0, 1, SIZE).double()
    asked = strategy.tell(state, batch.observe(y))
    other = min(set(range(len(POOL))) - {*strategy.ask(asked).order.tolist()})
    extra = Observations([other], [0.5])
    apart = strategy.tell(asked, extra)
    for rows in (
        Observations(batch.order, y).append(extra),
        extra.append(Observations(batch.order, y)),
    ):
        together = strategy.tell(state, rows)
        assert together.round == apart.round == 2
        assert torch.equal(together.classification.lower, apart.classification.lower)
    replayed = strategy.replay(together.observations)
    assert torch.equal(replayed.classification.upper, apart.classification.upper)


def test_a_mean_of_replicates_is_one_value() -> None:
    strategy = build(None)
    mean = Observations([3], [0.5], counts=[5])
    assert strategy.tell(strategy.init(), mean).belief.n_intervals == 2


def test_a_round_that_the_budget_ends_is_replayed_as_it_was() -> None:
    pool = Pool(torch.linspace(0, 1, 41).double().unsqueeze(-1))
    strategy = StraddleStrategy(
        pool, threshold=0.3, noise_std=0.1, batch_size=7, max_observations=30
    )
    state = strategy.init()
    for n in (7, 3):
        rows = strategy.ask(state).order[:n]
        state = strategy.tell(state, Observations(rows, torch.zeros(n)))
    missing = strategy.missing(state)[:3]
    # With these the budget is used up, so that the last row of the round is not asked.
    others = torch.arange(17)
    rows = torch.cat((missing, others))
    state = strategy.tell(state, Observations(rows, torch.ones(20)))
    assert state.n_used == 30  # and it is done
    again = strategy.replay(state.observations)
    assert again.round == state.round > 3
    assert torch.equal(again.observations.round, state.observations.round)
    assert torch.equal(again.classification.upper, state.classification.upper)
