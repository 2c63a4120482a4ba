r"""The same data, told otherwise: no door gives a narrower answer than the run had.

A run of ten batches is told again without its rounds, in one call, through every door
by which data come back, in its own order and mixed. Tables are in
``tests/cli/test_next.py``. Strategies whose earlier intervals decide beside the last
one are told in portions, too.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

import pytest
import torch
from ax.api.client import Client
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import level_set_generation_strategy, pool_parameters
from botorch_lse.data.observations import History, Observations
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    OptimalDesign,
    State,
    StraddleStrategy,
    Strategy,
)
from tests.ax.worlds import state_of
from tests.covering import covering
from tests.registry import PLAYED

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


def test_a_batch_that_was_asked_for_is_one_look_without_its_label() -> None:
    strategy, run = build(SIZE), the_run(SIZE)
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
    assert state.belief.n_intervals == 1 + SIZE * ROUNDS
    assert len(state.observations.round.unique()) == 1


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


# --- every strategy, in portions -----------------------------------------------------


LINE = torch.linspace(0, 1, 13, dtype=torch.float64).unsqueeze(-1)
WAYS = (
    "in one call",
    "replayed",
    "one by one",
    "in pairs",
    "in portions",
    "while a round is open",
    "as history",
    "half as history",
)


def with_theorem(name: str, batch_size: int, epsilon: float = 0.0) -> Strategy:
    r"""A strategy on a line whose width a theorem gives."""
    case = next(case for case in PLAYED if case.__name__ == name)
    known = {**case.aim(0.4), "noise_std": 0.3, "batch_size": batch_size}
    known["epsilon"] = epsilon
    if case.is_linear:
        features = torch.cat((torch.ones_like(LINE), LINE, LINE**2), dim=1)
        return case.make(Pool(LINE, features=features), **known)
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.2
    return case.make(Pool(LINE), model=GPPrior.from_kernel(kernel), **known)


def measured(rows: torch.Tensor, noise: random.Random) -> torch.Tensor:
    r"""Values of rows on a parabola, with noise."""
    means = 1 - 4 * (LINE[rows, 0] - 0.5) ** 2
    return means + torch.tensor([noise.gauss(0, 0.3) for _ in means]).double()


def portions(way: str, n: int) -> Iterator[torch.Tensor]:
    r"""The places of ``n`` values that are told in one call, call by call."""
    known = {"one by one": [1], "in pairs": [2], "in portions": [4, 1, 7, 2]}
    sizes = known.get(way, [n])
    done, number = 0, 0
    while done < n:
        size = sizes[number % len(sizes)]
        yield torch.arange(done, min(done + size, n))
        done, number = done + size, number + 1


def told(strategy: Strategy, data: Observations, way: str) -> State:
    r"""The state after values without labels, told in one of the ways."""
    if way == "replayed":
        return strategy.replay(data)
    if way == "while a round is open":
        return in_a_round(strategy, data)
    if way.endswith("history"):
        n = len(data) if way == "as history" else len(data) // 2
        old = History(LINE[data.indices[:n]], data.y[:n])
        strategy = strategy.with_history(old)
        data = data.select(torch.arange(n, len(data)))
    state = strategy.init()
    for places in portions(way, len(data)):
        state = strategy.tell(state, data.select(places))
    return state


@functools.cache
def a_run(name: str, batch_size: int, has_unasked: bool) -> State:
    r"""A run that asked for its rounds; beside some of them one more value came."""
    strategy, noise = with_theorem(name, batch_size), random.Random(name)
    state = strategy.init()
    for number in range(12 // batch_size + 1):
        if state.is_done:
            break
        batch = strategy.ask(state)
        y = measured(batch.order, noise)
        state = strategy.tell(state, batch.observe(y))
        if has_unasked and number % 2 and not state.is_done:
            row = torch.tensor([noise.randrange(len(LINE))])
            new = Observations(row, measured(row, noise))
            state = strategy.tell(state, new)
    return state


@covering(
    "name, way, order, batch_size, has_unasked",
    [
        case.__name__
        for case in PLAYED
        # Widths of batches to the letter rest on how the batches were planned.
        if not (case.options.get("audit") or "Literal" in case.__name__)
    ],
    WAYS,
    ["as it came", "mixed"],
    [3, 1],
    [False, True],
)
def test_no_portion_or_order_gives_a_narrower_answer(
    name: str, way: str, order: str, batch_size: int, has_unasked: bool
) -> None:
    strategy = with_theorem(name, batch_size)
    if way.endswith("history") and not strategy.takes_history:
        pytest.skip("it has no history")
    run = a_run(name, batch_size, has_unasked)
    data = Observations(run.observations.indices, run.observations.y)
    if order == "mixed":
        places = random.Random(2).sample(range(len(data)), len(data))
        data = data.select(torch.tensor(places))
    state = told(strategy, data, way)
    own, answer = run.classification, state.classification
    if len(state.waiting):  # they are told, but not in the answer yet
        width, least = answer.upper - answer.lower, own.upper - own.lower
        assert bool((width >= least - 1e-9).all())
        return
    assert bool((answer.upper >= own.upper - 1e-9).all())
    assert bool((answer.lower <= own.lower + 1e-9).all())
    assert not bool((own.undecided & ~answer.undecided).any())


@pytest.mark.parametrize("name", ["LSEStrategy", "MELKLinearStrategy"])
def test_a_run_goes_on_to_its_end_after_values_of_unknown_rounds(name: str) -> None:
    strategy, noise = with_theorem(name, 3, epsilon=0.4), random.Random(4)
    state = strategy.init()
    for _ in range(100):
        if state.is_done:
            break
        # Without labels, and one value after the other that nobody asked for.
        rows = strategy.ask(state).order
        rows = torch.cat((rows, torch.tensor([noise.randrange(len(LINE))])))
        for row in rows:
            new = Observations(row.view(1), measured(row.view(1), noise))
            state = strategy.tell(state, new)
    assert state.stop_reason == "decided"
    again = strategy.replay(state.observations)
    assert torch.equal(again.classification.lower, state.classification.lower)
