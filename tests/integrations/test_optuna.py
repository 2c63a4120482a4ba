r"""The sampler for Optuna, against the real package."""

from __future__ import annotations

import copy
import multiprocessing
import os
import signal
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from botorch_lse import Pool
from botorch_lse.papers import RAGEPACStrategy
from botorch_lse.strategies import Above, Below, Binary, GaussianProcess, Strategy

optuna = pytest.importorskip("optuna", reason="optuna is not installed")
optuna.logging.set_verbosity(optuna.logging.ERROR)

from botorch_lse.integrations.optuna import LevelSetSampler  # noqa: E402

X = torch.linspace(0, 10, 21).double()
POOL = Pool(X.unsqueeze(-1), names=("x",))
MODEL = GaussianProcess(noise_std=0.02)


def build(**options) -> Strategy:
    return Strategy(POOL, Above(0.3, epsilon=0.02), model=MODEL, **options)


def objective(trial) -> float:
    return float(np.sin(trial.suggest_float("x", 0, 10)))


def test_a_study_finds_the_level_set_and_stops() -> None:
    sampler = LevelSetSampler(build())
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=80)
    state = sampler.state(study)
    assert state.stop_reason == "decided"
    assert len(study.trials) == state.n_used < 80
    assert state.classification.above.tolist() == (X.sin() > 0.3).tolist()


def test_a_study_that_is_loaded_goes_on(tmp_path) -> None:
    name, place = "run", f"sqlite:///{tmp_path}/study.db"
    whole = optuna.create_study(sampler=LevelSetSampler(build()))
    whole.optimize(objective, n_trials=15)
    half = optuna.create_study(
        study_name=name, storage=place, sampler=LevelSetSampler(build())
    )
    half.optimize(objective, n_trials=8)
    again = optuna.load_study(
        study_name=name, storage=place, sampler=LevelSetSampler(build())
    )
    again.optimize(objective, n_trials=7)
    asked = [[trial.params["x"] for trial in s.trials] for s in (whole, again)]
    assert asked[0] == asked[1]


def test_running_trials_count_as_being_measured() -> None:
    study = optuna.create_study(sampler=LevelSetSampler(build()))
    trials = [study.ask() for _ in range(5)]
    rows = [trial.suggest_float("x", 0, 10) for trial in trials]
    assert len(set(rows)) == 5
    for trial, row in reversed(list(zip(trials, rows, strict=True))):
        study.tell(trial, float(np.sin(row)))
    assert study.sampler.state(study).n_used == 5


def test_threads_that_share_a_sampler_lose_nothing() -> None:
    pool = Pool([[float(i)] for i in range(24)], names=("a",))
    model = GaussianProcess(noise_std=0.05)
    strategy = Strategy(pool, Above(0.5), model=model, max_observations=20)

    def objective(trial: optuna.Trial) -> float:
        a = trial.suggest_float("a", 0, 23)
        time.sleep(0.01)
        return float(np.sin(a / 3))

    study = optuna.create_study(sampler=LevelSetSampler(strategy))
    study.optimize(objective, n_trials=40, n_jobs=3)
    first = [trial.params["a"] for trial in study.trials[:3]]
    assert len(set(first)) == 3  # each worker has a row of its own
    sampler: Any = study.sampler
    for own in (sampler, copy.deepcopy(LevelSetSampler(strategy))):
        state = own.state(study)
        assert state.stop_reason is not None
        assert state.n_used >= 20
    assert len(study.trials) <= 23


def test_trials_asked_for_by_hand_end_without_an_error() -> None:
    study = optuna.create_study(sampler=LevelSetSampler(build(max_observations=3)))
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, objective(trial))
    state = study.sampler.state(study)
    assert (state.n_used, state.is_done) == (3, True)
    assert len(study.trials) == 5


@pytest.mark.slow
def test_named_outputs_are_user_attributes() -> None:
    region = Above(0.3, output="f") & Below(0.5, output="g")
    sampler = LevelSetSampler(Strategy(POOL, region, model=GaussianProcess(None, 0.02)))
    study = optuna.create_study(sampler=sampler)

    def both(trial) -> float:
        x = trial.suggest_float("x", 0, 10)
        trial.set_user_attr("f", float(np.sin(x)))
        trial.set_user_attr("g", float(np.cos(x / 2)))
        return 0.0

    study.optimize(both, n_trials=80)
    state = sampler.state(study)
    wanted = (X.sin() > 0.3) & ((X / 2).cos() <= 0.5)
    decided = ~state.classification.undecided
    assert bool((state.classification.above == wanted)[decided].all())
    with pytest.raises(ValueError, match=r"user attributes \['f', 'g'\].* are missing"):
        optuna.create_study(sampler=LevelSetSampler(sampler.strategy)).optimize(
            objective, n_trials=1
        )


@pytest.mark.slow
def test_a_row_that_fails_thrice_is_asked_no_more() -> None:
    sampler = LevelSetSampler(build(max_observations=30))
    study = optuna.create_study(sampler=sampler)
    bad = 0.0  # the first row that is asked for

    def sometimes(trial) -> float:
        x = trial.suggest_float("x", 0, 10)
        if x == bad:
            raise optuna.TrialPruned
        return float(np.sin(x))

    study.optimize(sometimes, n_trials=40)
    asked = [trial.params["x"] for trial in study.trials]
    assert asked.count(bad) == 3
    assert [row for _, rows in sampler.state(study).excluded for row in rows] == [0]


@pytest.mark.slow
def test_a_failed_trial_may_be_an_answer() -> None:
    def crashes(trial) -> float:
        if objective(trial) < 0.3:
            raise RuntimeError("it crashed")
        return 1.0

    model = GaussianProcess(outcome=Binary(failures="outcome"))
    strategy = Strategy(POOL, Above(0.5), model=model, max_observations=25)
    sampler = LevelSetSampler(strategy)
    study = optuna.create_study(sampler=sampler)
    study.optimize(crashes, n_trials=25, catch=(RuntimeError,))
    state = sampler.state(study)
    assert state.n_used == len(study.trials) == 25
    works = torch.sin(X[state.observations.indices]) >= 0.3
    assert state.observations.y.tolist() == works.double().tolist()
    assert len(state.excluded_rows) == 0


def test_a_row_that_the_algorithm_needs_is_asked_for_again() -> None:
    pool = Pool(X[:4].unsqueeze(-1), features=torch.eye(4).double(), names=("x",))
    study = optuna.create_study(
        sampler=LevelSetSampler(RAGEPACStrategy(pool, 0.3, noise_std=0.3))
    )
    first = study.ask().suggest_float("x", 0, 10)
    study.tell(0, state=optuna.trial.TrialState.FAIL)
    for number in range(1, 5):
        assert study.ask().suggest_float("x", 0, 10) == first
        study.tell(number, state=optuna.trial.TrialState.FAIL)
    assert study.ask().suggest_float("x", 0, 10) == first


def test_words_and_enqueued_trials() -> None:
    table = pd.DataFrame({"salt": ["a", "b"] * 6, "x": np.arange(12) / 12})
    strategy = Strategy(Pool(table), Above(0.5), max_observations=12)
    sampler = LevelSetSampler(strategy)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"salt": "b", "x": 1 / 12})
    study.enqueue_trial({"salt": "a", "x": 0.987})  # no row: it counts for nothing

    def value(trial) -> float:
        salt = trial.suggest_categorical("salt", ["a", "b"])
        return trial.suggest_float("x", 0, 1) + (salt == "b") / 2

    study.optimize(value, n_trials=8)
    assert sampler.state(study).n_used == 7
    assert sampler.state(study).observations.indices[0] == 1


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`strategy` to be a Strategy"):
        LevelSetSampler(POOL)
    study = optuna.create_study(sampler=LevelSetSampler(build()))
    with pytest.raises(ValueError, match=r"`name` to be a column of the pool, \['x'\]"):
        study.optimize(lambda trial: trial.suggest_float("y", 0, 1), n_trials=1)
    two = optuna.create_study(
        directions=["minimize"] * 2, sampler=LevelSetSampler(build())
    )
    with pytest.raises(ValueError, match=r"to return 1 value, one per output"):
        two.optimize(lambda t: (t.suggest_float("x", 0, 10), 1.0), n_trials=1)


LINE = np.arange(21) / 20


@pytest.mark.parametrize(
    ("column", "ask", "remedy"),
    [
        (LINE, lambda t: t.suggest_int("x", 0, 1), "suggest_float('x', 0.0, 1.0)"),
        (LINE, lambda t: t.suggest_float("x", 0, 0.2), "suggest_float('x', 0.0, 1.0)"),
        (
            LINE,
            lambda t: t.suggest_float("x", 0.5, 0.5),
            "suggest_float('x', 0.0, 1.0)",
        ),
        (LINE, lambda t: t.suggest_float("x", 0, 1, step=0.5), "('x', 0.0, 1.0)"),
        (
            LINE + 0.1,
            lambda t: t.suggest_float("x", 0.5, 2, log=True),
            "('x', 0.1, 1.1)",
        ),
        (
            ["a", "b", "c"] * 7,
            lambda t: t.suggest_categorical("x", ["a", "b"]) == "a",
            "suggest_categorical('x', ['a', 'b', 'c'])",
        ),
        (["a", "b", "c"] * 7, lambda t: t.suggest_float("x", 0, 1), "categorical('x'"),
    ],
)
def test_a_value_other_than_the_row_s_is_refused(column, ask, remedy) -> None:
    pool = Pool(pd.DataFrame({"x": column}))
    model = GaussianProcess(outcome=Binary(failures="outcome"))
    sampler = LevelSetSampler(Strategy(pool, Above(0.5), model=model))
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match=r"Expected `x` to be .* in row") as told:
        study.optimize(lambda trial: bool(ask(trial)), n_trials=21)
    assert remedy in str(told.value)
    used = [state.n_used for state, _ in sampler._states.values()]
    assert used in ([], [len(study.trials) - 1])
    study = optuna.create_study(sampler=LevelSetSampler(sampler.strategy))
    call = str(told.value).split("`")[3]
    study.optimize(lambda trial: bool(eval(call)), n_trials=2)


@pytest.mark.filterwarnings("ignore")  # fixed parameters are an experiment of Optuna
def test_fixed_parameters_are_not_taken_for_the_row_s() -> None:
    fixed = optuna.samplers.PartialFixedSampler({"x": 0.5}, LevelSetSampler(build()))
    study = optuna.create_study(sampler=fixed)
    with pytest.raises(
        ValueError, match=r"0\.5 from .* new study, and fix no parameter"
    ):
        study.optimize(objective, n_trials=1)


def test_values_that_the_distribution_has_are_the_row_s() -> None:
    table = {"n": [1.0, 2.0, 3.0], "x": [0.1, 0.1 + 0.2, 0.5], "k": [4.0, 5.0, 6.0]}
    pool = Pool(pd.DataFrame(table).astype({"x": "float32"}))
    study = optuna.create_study(sampler=LevelSetSampler(Strategy(pool, Above(0.5))))

    def whole(trial) -> float:
        n = trial.suggest_int("n", 1, 3)
        assert isinstance(n, int)
        assert trial.suggest_categorical("k", [4, 5, 6]) == n + 3
        found = trial.suggest_float("x", 0.1, 0.5, step=0.1)
        assert found == pytest.approx(table["x"][n - 1])
        return float(n)

    study.optimize(whole, n_trials=3)


def run_until_killed(url: str) -> None:
    r"""Run a study; the eighth objective never returns, and says that it began."""
    storage = optuna.storages.RDBStorage(url, heartbeat_interval=1, grace_period=2)
    study = optuna.create_study(
        study_name="run", storage=storage, sampler=LevelSetSampler(build())
    )

    def stuck(trial) -> float:
        value = objective(trial)
        if trial.number == 7:
            time.sleep(2)  # until it has said once that it lives
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    study.optimize(stuck, n_trials=15)


@pytest.mark.slow  # a trial of a dead worker is given up after a while
@pytest.mark.filterwarnings("ignore")  # heartbeats are an experiment of Optuna
def test_a_study_that_was_killed_goes_on(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    worker = multiprocessing.get_context("spawn").Process(
        target=run_until_killed, args=(url,)
    )
    worker.start()
    worker.join(120)
    assert worker.exitcode == -signal.SIGKILL
    time.sleep(4)
    storage = optuna.storages.RDBStorage(url, heartbeat_interval=1, grace_period=2)
    again = optuna.load_study(
        study_name="run", storage=storage, sampler=LevelSetSampler(build())
    )
    again.optimize(objective, n_trials=8)
    whole = optuna.create_study(sampler=LevelSetSampler(build()))
    whole.optimize(objective, n_trials=15)
    asked = [[trial.params["x"] for trial in s.trials] for s in (whole, again)]
    lost = asked[1].pop(7)  # what ran when it was killed, asked for once more
    assert again.trials[7].state == optuna.trial.TrialState.FAIL
    assert lost == asked[0][7]
    assert asked[1] == asked[0]
