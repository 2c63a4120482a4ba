r"""Runs with accidents: a strategy, a way in and a storage.

In every run a row is measured elsewhere and its result comes late; two trials are out
at a time and the newer one ends first; one trial fails and one is abandoned. After each
accident-prone step everything is stored and loaded again.
"""

import collections
import functools
import itertools

import pandas as pd
import torch
from ax.api.client import Client
from ax.core.data import Data
from ax.core.metric import Metric
from ax.core.runner import Runner
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.orchestration.orchestrator import Orchestrator, OrchestratorOptions
from ax.storage.json_store.decoder import generation_strategy_from_json
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.load import load_experiment
from ax.storage.json_store.save import save_experiment
from ax.utils.common.result import Ok

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    CostMetric,
    level_set_generation_strategy,
    save_client,
)
from tests.registry import GAUSSIAN, LINEAR_SEVERAL, PLAYED, case_of

from .worlds import NOISE, client_for, grid_pool, kernel, measure, sqlite_storage

SHIP = "TruVaRStrategy, costs"
STRATEGIES = [case.__name__ for case in (*GAUSSIAN, *LINEAR_SEVERAL, *PLAYED[::-1])]
r"""By their names, which a stored metric can hold."""
WAYS = ("experiment", "orchestrator", "client")
STORES = ("json", "memory", "sqlite")


@functools.cache
def pool():
    base = grid_pool(4)
    return Pool(base.X, features=base.X, names=base.names)


def make(name):
    case = case_of(name)
    known = {"batch_size": 3, "max_observations": 9, "noise_std": NOISE}
    aim = {"maximize": (True, False)} if case.has_several_outputs else case.aim(0.5)
    if case.is_linear:  # any function is linear in the rows' indicators
        indicators = Pool(pool().X, features=torch.eye(16).double())
        return case.make(indicators, **aim, **known)
    if case.variant == "audited":
        # It begins once all is decided: soon, so that accidents happen in it.
        known |= {"epsilon": 20.0, "audit": (0.2, 0.1), "max_observations": 12}
    return case.make(pool(), **aim, **known, model=kernel(), beta=9.0)


def objective_of(name):
    return "y, -z" if case_of(name).has_several_outputs else "y"


def metrics_of(name):
    return ("y", "z") if case_of(name).has_several_outputs else ("y",)


def values(name, row, trial):
    r"""By metric; Ax's storage keeps ten decimals."""
    both = {
        "y": round(measure(pool(), row, trial), 6),
        "z": round(measure(pool(), 15 - row, trial), 6),
    }
    return {metric: both[metric] for metric in metrics_of(name)}


def outcome(name, row, trial):
    return {metric: (y, NOISE) for metric, y in values(name, row, trial).items()}


# --- a client ---------------------------------------------------------------------


def client_again(client, store, folder):
    path = folder / "client.json"
    if store == "json":
        save_client(client, path)
        return Client.load_from_json_file(str(path))
    if store == "sqlite":
        config = client._storage_config
        return Client.load_from_database("test", storage_config=config)
    return client


def run_client(name, store, folder):
    options = {}
    if store == "sqlite":
        options["storage_config"] = sqlite_storage(folder / "runs.db")
    client = client_for(make(name), objective_of(name), **options)
    elsewhere = client.attach_trial({POOL_INDEX: 0})
    out, ended = {}, 0
    while True:
        try:
            new = client.get_next_trials(2 - len(out))
        except GenerationStrategyCompleted as stop:
            if not out:
                reason = str(stop)
                break
            new = {}
        except DataRequiredError:
            assert out
            new = {}
        out |= {i: p[POOL_INDEX] for i, p in new.items()}
        client = client_again(client, store, folder)
        trial = max(out)  # the newer one first
        row, ended = out.pop(trial), ended + 1
        if ended == 2:
            client.mark_trial_failed(trial)
        elif ended == 5:
            client.mark_trial_abandoned(trial)
        else:
            client.complete_trial(trial, outcome(name, row, trial))
        if ended == 4:
            client.complete_trial(elsewhere, outcome(name, 0, elsewhere))
    client = client_again(client, store, folder)
    return client._experiment, client._generation_strategy, reason


# --- a plain experiment -------------------------------------------------------------


def data_of(name, trial, arms):
    r"""The data of some arms; those of a batch are means of their replicates."""
    weights = getattr(trial, "arm_weights", None)
    table = pd.DataFrame(
        [
            {
                "trial_index": trial.index,
                "arm_name": arm.name,
                "metric_name": metric,
                "metric_signature": metric,
                "mean": y,
                "sem": NOISE / (1.0 if weights is None else weights[arm]) ** 0.5,
            }
            for arm in arms
            for metric, y in values(
                name, arm.parameters[POOL_INDEX], trial.index
            ).items()
        ]
    )
    return Data(df=table)


def experiment_again(experiment, gs, store, folder):
    if store == "json":
        save_experiment(experiment, str(folder / "experiment.json"))
        experiment = load_experiment(str(folder / "experiment.json"))
        stored = object_to_json(gs)
        gs = generation_strategy_from_json(stored, experiment=experiment)
    elif store == "sqlite":
        from ax.storage.sqa_store import load, save

        save.save_experiment(experiment)
        save.save_generation_strategy(gs)
        experiment = load.load_experiment("test")
        gs = load.load_generation_strategy_by_experiment_name(
            "test", experiment=experiment
        )
    return experiment, gs


def run_experiment_by_hand(name, store, folder):
    if store == "sqlite":
        sqlite_storage(folder / "runs.db")
    strategy = make(name)
    experiment = client_for(strategy, objective_of(name))._experiment
    gs = level_set_generation_strategy(strategy, seed=3)
    elsewhere = experiment.new_trial().add_arm(arm_of(0)).index
    experiment.trials[elsewhere].mark_running(no_runner_required=True)
    ended = 0
    while True:
        running = sorted(i for i in out_of(experiment) if i != elsewhere)
        try:
            while len(running) < 2:
                runs = gs.gen(experiment, n=2)[0]
                trial = experiment.new_batch_trial(generator_runs=runs)
                trial.mark_running(no_runner_required=True)
                running.append(trial.index)
        except GenerationStrategyCompleted as stop:
            if not running:
                return *experiment_again(experiment, gs, store, folder), str(stop)
        except DataRequiredError:
            assert running
        experiment, gs = experiment_again(experiment, gs, store, folder)
        trial, ended = experiment.trials[running[-1]], ended + 1
        if ended == 1:
            trial.mark_failed()
            continue
        arms = trial.arms
        if ended == 3:
            trial.mark_arm_abandoned(arms[0].name)
            arms = arms[1:]
        if arms:
            experiment.attach_data(data_of(name, trial, arms))
        trial.mark_completed()
        if ended == 2:
            late = experiment.trials[elsewhere]
            late.update_trial_data(outcome(name, 0, elsewhere))
            late.mark_completed()


def arm_of(row):
    from ax.core.arm import Arm

    return Arm(parameters={POOL_INDEX: row})


def out_of(experiment):
    return [i for i, t in experiment.trials.items() if t.status.is_running]


# --- an orchestrator ----------------------------------------------------------------


class MatrixBench(Metric):
    r"""Each trial's value, from nowhere but its row and index."""

    def __init__(self, name, strategy):
        super().__init__(name)
        self.strategy = strategy

    def fetch_trial_data(self, trial, **kwargs):
        table = data_of(self.strategy, trial, trial.arms).df
        return Ok(Data(df=table[table["metric_name"] == self.name]))


class MatrixRunner(Runner):
    r"""The newest trial ends first; trial 2 fails, trial 4 is abandoned."""

    def run(self, trial):
        return {"name": str(trial.index)}

    def poll_trial_status(self, trials):
        newest = max(trial.index for trial in trials)
        ends = {2: TrialStatus.FAILED, 4: TrialStatus.ABANDONED}
        return {ends.get(newest, TrialStatus.COMPLETED): {newest}}


def run_orchestrator(name, store, folder):
    from ax.storage.registry_bundle import RegistryBundle
    from ax.storage.sqa_store.structs import DBSettings

    bundle = RegistryBundle(
        metric_clss={Metric: 0, MatrixBench: 9001, CostMetric: None},
        runner_clss={MatrixRunner: 9001},
    )
    db = None
    if store == "sqlite":
        url = sqlite_storage(folder / "runs.db").url
        db = DBSettings(url=url, encoder=bundle.encoder, decoder=bundle.decoder)
    strategy = make(name)
    client = client_for(strategy, objective_of(name))
    benches = [MatrixBench(metric, name) for metric in metrics_of(name)]
    costs = [CostMetric(strategy)] if name == SHIP else []
    client.configure_metrics([*benches, *costs])
    experiment, gs = client._experiment, level_set_generation_strategy(strategy, seed=3)
    experiment.runner = MatrixRunner()
    elsewhere = experiment.new_trial().add_arm(arm_of(0))
    elsewhere.mark_running(no_runner_required=True).mark_completed()
    experiment.attach_data(data_of(name, elsewhere, elsewhere.arms))
    for _ in itertools.count():
        orchestrator = Orchestrator(
            experiment=experiment,
            generation_strategy=gs,
            options=OrchestratorOptions(
                max_pending_trials=2,
                init_seconds_between_polls=0,
                min_seconds_before_poll=0.0,
                tolerated_trial_failure_rate=0.9,
            ),
            db_settings=db,
        )
        before = len(experiment.trials)
        orchestrator.run_n_trials(max_trials=4)
        experiment, gs = orchestrator_again(experiment, gs, store, folder, bundle)
        if len(experiment.trials) == before:
            break
    try:
        gs.gen(experiment, n=1)
    except GenerationStrategyCompleted as stop:
        return experiment, gs, str(stop)
    raise AssertionError("the orchestrator stopped before the strategy was done")


def orchestrator_again(experiment, gs, store, folder, bundle):
    if store == "json":
        path = str(folder / "experiment.json")
        save_experiment(experiment, path, encoder_registry=bundle.encoder_registry)
        experiment = load_experiment(path, decoder_registry=bundle.decoder_registry)
        stored = object_to_json(gs, encoder_registry=bundle.encoder_registry)
        gs = generation_strategy_from_json(
            stored, experiment, decoder_registry=bundle.decoder_registry
        )
    elif store == "sqlite":
        from ax.storage.sqa_store import load

        config = bundle.sqa_config
        experiment = load.load_experiment("test", config=config)
        gs = load.load_generation_strategy_by_experiment_name(
            "test", config=config, experiment=experiment
        )
    return experiment, gs


RUNS = {
    "client": run_client,
    "experiment": run_experiment_by_hand,
    "orchestrator": run_orchestrator,
}


def trials_of(experiment):
    r"""Rows and weights, status and values of every trial."""
    table = experiment.lookup_data().df
    read = collections.defaultdict(dict)
    keys = zip(table["trial_index"], table["arm_name"], strict=True)
    for key, name, mean in zip(keys, table["metric_name"], table["mean"], strict=True):
        read[key][name] = round(mean, 9)
    found = {}
    for i, trial in experiment.trials.items():
        weights = getattr(trial, "arm_weights", None)
        found[i] = (
            trial.status.name,
            [
                (
                    arm.parameters[POOL_INDEX],
                    1.0 if weights is None else weights[arm],
                    tuple(sorted(read[i, arm.name].items())),
                )
                for arm in trial.arms
            ],
        )
    return found
