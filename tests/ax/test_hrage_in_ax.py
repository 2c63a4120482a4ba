r"""H-RAGE with estimated noise as an Ax experiment."""

import pytest
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted

from botorch_lse import Pool
from botorch_lse.ax import POOL_INDEX, level_set
from botorch_lse.strategies import HRAGEStrategy
from tests.covering import covering

from .worlds import client_for, grid_pool, kernel, node_of, same_state, state_of

POOL = grid_pool(5)
PHI = torch.cat((torch.ones(25, 1).double(), POOL.X), dim=1)
VARIANCES = PHI.square() @ torch.tensor([0.01, 0.3, 0.02]).double()
MEANS = 2 * POOL.X[:, 0] - POOL.X[:, 1]


def hrage(**options):
    given = {
        "threshold": 0.5,
        "model": kernel(),
        "variance_bounds": (0.01, 0.4),
        "burn_in": 36,
        "batch_size": 6,
        "beta": 4.0,
        "epsilon": 0.3,
    }
    return HRAGEStrategy(
        Pool(POOL.X, features=PHI, names=POOL.names), **{**given, **options}
    )


def finish(client, trial, row):
    r"""A value without standard error: nobody knows the noise."""
    generator = torch.Generator().manual_seed(1000 * row + trial)
    noise = VARIANCES[row].sqrt() * torch.randn(1, generator=generator).double()
    client.complete_trial(trial, {"y": float(MEANS[row] + noise)})


def one_round(client):
    trials = client.get_next_trials(100)
    asked = {trial: p[POOL_INDEX] for trial, p in trials.items()}
    for trial, row in asked.items():
        finish(client, trial, row)
    return list(asked.values())


@pytest.mark.some(0, slow=3)
@covering(
    "n_rounds, options",
    [2, 7],
    [
        {},
        {"threshold": None},
        {"targets": Pool(POOL.X[::4] + 0.01), "epsilon": 0.0, "beta": 16.0},
        {"model": None, "epsilon": 0.0, "beta": 9.0},
    ],
)
def test_cut_inside_a_round_it_goes_on_with_the_same_rows(options, n_rounds, tmp_path):
    strategy = hrage(**options)
    client = client_for(strategy)
    rows = [row for _ in range(n_rounds) for row in one_round(client)]
    out = {t: p[POOL_INDEX] for t, p in client.get_next_trials(2).items()}
    finish(client, *next(iter(out.items())))
    path = str(tmp_path / "cut.json")
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    assert same_state(state_of(client), state_of(again))
    loaded = node_of(again).strategy
    assert loaded.variance_bounds == strategy.variance_bounds
    assert (loaded.targets is None) == (strategy.targets is None)
    rest = [
        [p[POOL_INDEX] for p in c.get_next_trials(100).values()]
        for c in (client, again)
    ]
    assert rest[0] == rest[1]
    assert len(rest[0]) == 4
    # The same rows as outside Ax, whose trials have no memory of their own.
    outside = loaded.replay(state_of(again).history, seed=3)
    assert sorted(outside.history.indices.tolist()) == sorted(rows)
    want = sorted(loaded.ask(outside).order.tolist())
    assert want == sorted([*out.values(), *rest[0]])


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.5, None])
def test_a_whole_experiment_ends_with_the_answer(threshold):
    strategy = hrage(threshold=threshold)
    client = client_for(strategy)
    while not state_of(client).is_done:
        one_round(client)
    with pytest.raises(GenerationStrategyCompleted, match="25 of 25 rows decided"):
        client.get_next_trials(1)
    state = state_of(client)
    assert strategy.burn_in_used(state) == 36
    assert state.n_used == len(client._experiment.trials)
    table = level_set(client)
    assert len(table) == 25
    answer = state.classification
    if threshold is None:
        assert float(MEANS.max() - MEANS[answer.above]) <= 0.3
    else:
        sure = (MEANS - threshold).abs() > 0.3
        assert torch.equal(answer.above[sure], (threshold < MEANS)[sure])
