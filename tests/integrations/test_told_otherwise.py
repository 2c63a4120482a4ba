r"""The same data, told otherwise: no door gives a narrower answer than the run had.

A run of batches is told again without its rounds, through every door by which data come
back: in one call, one by one, in other groups and another order. Tables are in
``tests/table/test_next.py``.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator

import pytest
import torch
from ax.api.client import Client
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import level_set_generation_strategy, pool_parameters
from botorch_lse.problem import Classification, Observations
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    OptimalDesign,
    State,
    Strategy,
)
from tests.ax.worlds import state_of

POOL = Pool([[x / 4] for x in range(17)], names=("x",))
NOISE = 0.2


def build(model: str = "fixed", batch_size: int | None = None) -> Strategy:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = 0.7
    own = {"fixed": {"model": kernel}, "learnt": {"n_initial": 4}}[model]
    return Strategy(
        POOL,
        Above(0.4, output="f"),
        model=GaussianProcess(noise_std=NOISE, **own),
        rule=OptimalDesign(),
        batch_size=batch_size,
    )


@functools.cache
def the_run(model: str = "fixed") -> tuple[State, Observations]:
    r"""A run of four batches of four, and its data without their rounds."""
    strategy, noise = build(model), random.Random(1)
    state = strategy.init()
    for _ in range(4):
        batch = strategy.ask(state, size=4)
        means = torch.sin(2 * batch.X.squeeze(-1)).repeat_interleave(batch.counts)
        y = means + torch.tensor([noise.gauss(0, NOISE) for _ in means])
        y = (1024 * y).round() / 1024  # ten decimals, as many as Ax stores
        state = strategy.tell(state, batch.observe(y))
    told = state.observations
    assert state.round == 4
    assert not state.is_done
    return state, Observations(told.indices, told.y)


def groupings(data: Observations) -> Iterator[list[Observations]]:
    r"""The data in one group, in groups of other sizes, and in other orders."""
    n = len(data)
    mixed = random.Random(2).sample(range(n), n)
    for order in (list(range(n)), mixed):
        for size in (1, 3, 4, n):
            parts = [order[i : i + size] for i in range(0, n, size)]
            yield [data.select(torch.tensor(part)) for part in parts]


def not_narrower(found: Classification, own: Classification) -> None:
    # Rounding aside: the same numbers are summed in another order.
    ours, theirs = own.upper - own.lower, found.upper - found.lower
    assert bool((theirs >= ours * (1 - 1e-9)).all())
    assert not bool((own.undecided & ~found.undecided).any())


def values(state: State, data: Observations) -> None:
    found, known = (
        [o.y[o.indices == row].sort().values for row in range(len(POOL))]
        for o in (state.observations, data)
    )
    # Up to the rounding of Ax, which divides by the noise.
    torch.testing.assert_close(found, known, rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    "model", ["fixed", pytest.param("learnt", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("batch_size", [None, 4])
def test_by_tell_and_replay(model: str, batch_size: int | None) -> None:
    run, data = the_run(model)
    strategy = build(model, batch_size)
    found = [strategy.replay(data)]
    for groups in groupings(data):
        state = strategy.init()
        for group in groups:
            state = strategy.tell(state, group)
        found.append(state)
        again = strategy.replay(state.observations).classification
        assert torch.equal(again.lower, state.classification.lower)
    for state in found:
        values(state, data)
        not_narrower(state.classification, run.classification)
    if batch_size is None:  # then no plan asks for one of them by chance
        answers = [state.classification for state in found]
        assert all(torch.equal(a.lower, answers[0].lower) for a in answers)
        assert all(torch.equal(a.upper, answers[0].upper) for a in answers)
    # With their rounds they are the run.
    told = strategy.tell(strategy.init(), run.observations)
    assert torch.equal(told.classification.lower, run.classification.lower)


def test_after_a_round_that_was_asked_for() -> None:
    run, data = the_run()
    strategy, first = build(), run.observations.select(torch.arange(4))
    for groups in groupings(data.select(torch.arange(4, 16))):
        state = strategy.tell(strategy.init(), first)
        for group in groups:
            state = strategy.tell(state, group)
        not_narrower(state.classification, run.classification)
        assert state.round == 13


def test_by_a_generator_of_gest_api() -> None:
    pytest.importorskip("gest_api", reason="gest-api is not installed")
    from gest_api.vocs import VOCS

    from botorch_lse.integrations.gest import LevelSetGenerator

    run, data = the_run()
    vocs = VOCS(variables={"x": [0.0, 4.0]}, objectives={"cost": "EXPLORE"})
    strategy = build()
    for groups in groupings(data):
        options = {"pool": POOL, "model": strategy.model, "rule": strategy.rule}
        generator = LevelSetGenerator(vocs, strategy.goal, **options)
        for group in groups:
            pairs = zip(group.indices.tolist(), group.y.tolist(), strict=True)
            generator.ingest([{"x": row / 4, "f": y} for row, y in pairs])
        values(generator.state, data)
        not_narrower(generator.state.classification, run.classification)


def test_by_trials_that_are_added_to_a_study_of_optuna() -> None:
    optuna = pytest.importorskip("optuna", reason="optuna is not installed")
    from botorch_lse.integrations.optuna import LevelSetSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    run, data = the_run()
    spread = {"x": optuna.distributions.FloatDistribution(0, 4)}
    for groups in groupings(data):
        sampler = LevelSetSampler(build())
        study = optuna.create_study(sampler=sampler)
        for group in groups:
            pairs = zip(group.indices.tolist(), group.y.tolist(), strict=True)
            study.add_trials(
                optuna.trial.create_trial(
                    params={"x": row / 4},
                    distributions=spread,
                    user_attrs={"f": y},
                    value=0.0,
                )
                for row, y in pairs
            )
            sampler.state(study)
        values(sampler.state(study), data)
        not_narrower(sampler.state(study).classification, run.classification)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_by_trials_that_are_attached_in_ax(asynchronous: bool) -> None:
    run, data = the_run()
    for groups in list(groupings(data))[:: 3 if asynchronous else 5]:
        client = Client()
        client.configure_experiment(parameters=pool_parameters(POOL), name="test")
        client.configure_optimization(objective="cost", outcome_constraints=["f >= 0"])
        strategy = build(batch_size=None if asynchronous else 4)
        options = {"asynchronous": True} if asynchronous else {}
        client.set_generation_strategy(
            level_set_generation_strategy(strategy, **options)
        )
        for group in groups:
            for row, y in zip(group.indices.tolist(), group.y.tolist(), strict=True):
                number = client.attach_trial({"pool_index": row})
                client.complete_trial(number, {"f": y, "cost": 0.0})
            state_of(client)
        values(state_of(client), data)
        not_narrower(state_of(client).classification, run.classification)
