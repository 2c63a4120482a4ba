r"""Made the experiments in this folder: ``python -m tests.ax.stored.make``.

They were saved in the middle of a round by version 0.2.0, the first whose files are
kept, and are never made again once it is released: later versions must read them. For
each ``answers.json`` keeps what that version said and asked for next.
"""

import json
from pathlib import Path

import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted

from botorch_lse.ax import (
    POOL_INDEX,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.strategies import GEGEStrategy, MELKStrategy

from ..test_pareto_in_ax import MAXIMIZE, NOISE, gaussian
from ..test_pareto_in_ax import measure as measure_two
from ..worlds import NOISE as NOISE_ONE
from ..worlds import grid_pool, lse, measure, node_of, sqlite_storage, state_of

HERE = Path(__file__).parent
CASES = ("lse", "melk", "gege")


def strategy_of(case):
    if case == "lse":
        return lse(max_observations=24)
    if case == "melk":  # its model is fitted in each round
        return MELKStrategy(
            grid_pool(), threshold=0.5, batch_size=4, epsilon=0.05, max_observations=40
        )
    return gaussian(GEGEStrategy)


def tell(client, case, trial, row):
    pool = grid_pool()
    if case == "gege":
        y, z = measure_two(pool, row)
        client.complete_trial(trial, {"y": (y, NOISE[0]), "z": (z, NOISE[1])})
    elif case == "melk":
        client.complete_trial(trial, {"y": measure(pool, row)})
    else:
        client.complete_trial(trial, {"y": (measure(pool, row), NOISE_ONE)})


def begin(case, **options):
    client = Client(**options)
    pool = grid_pool()
    client.configure_experiment(parameters=pool_parameters(pool), name=case)
    objective = "y, -z" if case == "gege" else "y"
    client.configure_optimization(objective=objective)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy_of(case), seed=3)
    )
    return client


def run_into_a_round(client, case, rounds):
    r"""Complete rounds, then half a round told and one of its rows given out."""
    for _ in range(rounds):
        for trial, parameters in client.get_next_trials(100).items():
            tell(client, case, trial, parameters[POOL_INDEX])
    (told,) = client.get_next_trials(1).items()
    tell(client, case, told[0], told[1][POOL_INDEX])
    return {i: p[POOL_INDEX] for i, p in client.get_next_trials(1).items()}


def go_on(client, case, out, n_rounds):
    r"""Finish the round, then the rows that the next rounds ask for."""
    for trial, row in out.items():
        tell(client, case, trial, row)
    asked = []
    try:
        while len(asked) < n_rounds:
            trials = client.get_next_trials(100)
            asked.append([p[POOL_INDEX] for p in trials.values()])
            for trial, parameters in trials.items():
                tell(client, case, trial, parameters[POOL_INDEX])
    except GenerationStrategyCompleted:
        pass
    return asked


def main():
    torch.manual_seed(0)
    answers = {}
    for case in CASES:
        rounds = 3 if case == "melk" else 2
        client = begin(case)
        out = run_into_a_round(client, case, rounds)
        client.save_to_json_file(str(HERE / f"{case}.json"))
        database = HERE / f"{case}.db"
        database.unlink(missing_ok=True)
        kept = begin(case, storage_config=sqlite_storage(database))
        assert run_into_a_round(kept, case, rounds) == out
        state = state_of(client)
        answers[case] = {
            "rounds": state.round,
            "out": {str(k): v for k, v in out.items()},
            "plan": node_of(client).strategy.planned(state).tolist(),
            "indices": state.observations.indices.tolist(),
            "y": state.observations.y.tolist(),
            "side": (
                state.classification.above.int() - state.classification.below.int()
            ).tolist(),
            "lower": state.classification.lower.tolist(),
            "asked": go_on(client, case, out, 3),
        }
    text = json.dumps(answers, indent=1)
    (HERE / "answers.json").write_text(text + "\n")


if __name__ == "__main__":
    assert MAXIMIZE == (True, False)
    main()
