import warnings

import pytest
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted

from botorch_lse import Pool
from botorch_lse.ax import POOL_INDEX, level_set
from botorch_lse.papers import MELKPACStrategy
from botorch_lse.strategies import HRAGELinearStrategy, MELKLinearStrategy

from .worlds import client_for, fresh_state, same_state, state_of

X = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, -0.8], [0.0, 1.0]], dtype=torch.float64)
TRUTH = X @ torch.tensor([1.0, 0.5], dtype=torch.float64)


def melk(**options):
    settings = {"threshold": 0.7, "noise_std": 0.1, "batch_size": 6, **options}
    return MELKLinearStrategy(Pool(X, names=["a", "b"]), **settings)


def best(**options):
    settings = {"noise_std": 0.1, "batch_size": 6, **options}
    return HRAGELinearStrategy(Pool(X, names=["a", "b"]), **settings)


def complete(client, trial, row):
    generator = torch.Generator().manual_seed(trial)
    y = float(TRUTH[row]) + 0.1 * float(torch.randn(1, generator=generator))
    client.complete_trial(trial, {"y": (y, 0.1)})


def run(client, rounds):
    for _ in range(rounds):
        for trial, parameters in client.get_next_trials(6).items():
            complete(client, trial, parameters[POOL_INDEX])
        if state_of(client).is_done:
            return


@pytest.mark.some(1)
@pytest.mark.parametrize("make", [melk, best])
def test_a_linear_strategy_runs_in_ax_to_its_end(make):
    client = client_for(make())
    run(client, 20)
    state = state_of(client)
    assert state.stop_reason == "decided"
    right = TRUTH > 0.7 if make is melk else TRUTH.max() == TRUTH
    assert torch.equal(state.classification.above, right)
    assert (level_set(client)["side"] == "above").tolist() == right.tolist()
    assert same_state(fresh_state(client), state)


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("make", [melk, best])
def test_a_linear_strategy_is_saved_and_loaded(make, tmp_path):
    client = client_for(make(noise_std=0.5))
    run(client, 2)
    path = str(tmp_path / "experiment.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client.save_to_json_file(path)
        again = Client.load_from_json_file(path)
    assert same_state(state_of(again), state_of(client))
    rows = [
        sorted(p[POOL_INDEX] for p in c.get_next_trials(6).values())
        for c in (client, again)
    ]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_a_pac_strategy_runs_through_a_client():
    pool = Pool(torch.eye(2, dtype=torch.float64))
    strategy = MELKPACStrategy(
        pool, 0.1, bound=0.2, noise_std=0.1, delta=0.1, epsilon=2.0
    )
    client = client_for(strategy)
    alone = strategy.init(seed=3)
    batch = strategy.ask(alone)
    assert strategy.missing(alone).tolist() == batch.order.sort().values.tolist()
    trials = client.get_next_trials(len(batch))
    assert [p["pool_index"] for p in trials.values()] == batch.order.tolist()
    noise = torch.Generator().manual_seed(0)
    for index, parameters in trials.items():
        y = (0.18, 0.02)[parameters["pool_index"]]
        y += 0.1 * float(torch.randn((), generator=noise))
        client.complete_trial(index, {"y": y})
    with pytest.raises(GenerationStrategyCompleted, match="2 of 2 rows decided"):
        client.get_next_trials(1)
    answer = state_of(client).classification
    assert answer.above.tolist() == [True, True]  # within epsilon: the aggressive set
