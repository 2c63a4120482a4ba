r"""Reading an experiment piece by piece, against reading it in one go."""

import copy

import pandas as pd
import pytest
import torch
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.arm import Arm
from ax.core.data import Data
from ax.core.parameter import FixedParameter, ParameterType
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from botorch_lse.ax import POOL_INDEX, LevelSetNode, level_set_generation_strategy
from botorch_lse.ax.ledger import LedgerReader
from botorch_lse.papers import PALStrategy
from botorch_lse.strategies import RandomStrategy

from ..reference.full_ledger import full_ledger
from .matrix import (
    SHIP,
    STORES,
    WAYS,
    metrics_of,
    run_client,
    run_experiment_by_hand,
    run_orchestrator,
)
from .worlds import (
    NOISE,
    client_for,
    complete,
    fresh_state,
    grid_pool,
    kernel,
    lse,
    node_of,
    same_state,
    state_of,
)

RUNS = {
    "client": run_client,
    "experiment": run_experiment_by_hand,
    "orchestrator": run_orchestrator,
}
STATUSES = (
    TrialStatus.RUNNING,
    TrialStatus.COMPLETED,
    TrialStatus.FAILED,
    TrialStatus.ABANDONED,
    TrialStatus.EARLY_STOPPED,
    TrialStatus.STALE,
)
INDEX = st.integers(0, 10**6)
VALUE = st.one_of(st.floats(-2, 2).map(lambda y: round(y, 3)), st.just(float("nan")))
SEM = st.sampled_from([NOISE, 0.2, float("nan")])


class Changes(RuleBasedStateMachine):
    r"""Anything may happen to an experiment, in any order, also what Ax forbids."""

    metrics: tuple[str, ...] = ("y",)
    is_sound = True  # whether plans and weights are what the node wrote

    def make(self):
        return RandomStrategy(
            grid_pool(3), threshold=0.5, model=kernel(), noise_std=NOISE, batch_size=4
        )

    @initialize()
    def begin(self):
        strategy = self.make()
        # Which rows failed too often the other reading does not count.
        self.gs = level_set_generation_strategy(strategy, seed=1, max_failures=None)
        objective = ", ".join(self.metrics)
        self.experiment = client_for(strategy, objective)._experiment
        self.node = self.gs._nodes[0]

    # --- trials ---

    @precondition(lambda self: self.is_sound)
    @rule()
    def run_a_round(self):
        for _ in range(4):
            self.ask(n=4, batch=True, more=False)
        self.measure_all_that_is_out(0.25)

    @precondition(lambda self: self.is_sound)
    @rule(
        n=st.integers(1, 3),
        batch=st.booleans(),
        more=st.booleans(),
        runs_now=st.booleans(),
    )
    def ask(self, n, batch, more, runs_now=True):
        try:
            runs = self.gs.gen(self.experiment, n=n if batch else 1)[0]
        except (DataRequiredError, GenerationStrategyCompleted):
            return
        if not batch:
            trial = self.experiment.new_trial(runs[0])
        else:
            trial = self.experiment.new_batch_trial(generator_runs=runs)
            if more:  # the same arm or another, by hand
                trial.add_arm(Arm({POOL_INDEX: 0}), weight=2.0)
        if runs_now:
            trial.mark_running(no_runner_required=True)

    @rule(rows=st.lists(st.integers(0, 8), min_size=1, max_size=3, unique=True))
    def elsewhere(self, rows):
        arms = [Arm({POOL_INDEX: row}) for row in rows]
        if len(arms) == 1:
            self.experiment.new_trial().add_arm(arms[0])
        else:
            weights = [1.0 + i for i in range(len(arms))]
            self.experiment.new_batch_trial().add_arms_and_weights(arms, weights)

    def trial(self, index):
        trials = list(self.experiment.trials.values())
        return trials[index % len(trials)]

    @precondition(lambda self: self.experiment.trials)
    @rule(index=INDEX, status=st.sampled_from(STATUSES))
    def end(self, index, status):
        trial = self.trial(index)
        if status.is_running:
            trial.mark_running(no_runner_required=True, unsafe=True)
        else:
            trial.mark_as(status, unsafe=True)

    @precondition(lambda self: self.experiment.trials)
    @rule(index=INDEX)
    def abandon_an_arm(self, index):
        trial = self.trial(index)
        if hasattr(trial, "mark_arm_abandoned") and len(trial.arms) > 1:
            trial.mark_arm_abandoned(trial.arms[index % len(trial.arms)].name)

    # --- data ---

    @precondition(lambda self: self.experiment.trials)
    @rule(
        index=INDEX,
        y=VALUE,
        sem=SEM,
        metric=st.sampled_from(["y", "z", "q"]),
        step=st.sampled_from([None, float("nan"), 1.0, 2.0]),
    )
    def attach_a_value(self, index, y, sem, metric, step):
        trial = self.trial(index)
        self.attach(trial, trial.arms[:1], (metric,), y, sem, step)

    @precondition(lambda self: self.experiment.trials)
    @rule(y=st.floats(-1, 1))
    def measure_all_that_is_out(self, y):
        for trial in self.experiment.trials.values():
            if trial.status.is_running:
                self.attach(trial, trial.arms, self.metrics, y, NOISE, None)
                trial.mark_completed()

    def attach(self, trial, arms, metrics, y, sem, step):
        rows = [
            {
                "trial_index": trial.index,
                "arm_name": arm.name,
                "metric_name": name,
                "metric_signature": name,
                "mean": y + k / 8,
                "sem": sem,
                **({} if step is None else {"step": step}),
            }
            for k, arm in enumerate(arms)
            for name in metrics
        ]
        self.experiment.attach_data(Data(df=pd.DataFrame(rows)))

    @precondition(lambda self: not self.experiment.data.empty)
    @rule(index=INDEX, y=VALUE)
    def change_a_value_in_place(self, index, y):
        rows = self.experiment.data._data_rows
        rows[index % len(rows)].mean = y
        self.experiment.data = Data(rows)  # else Ax's own table would be the old one

    @precondition(lambda self: not self.experiment.data.empty)
    @rule(index=INDEX)
    def take_data_away(self, index):
        rows = list(self.experiment.data._data_rows)
        del rows[index % len(rows)]
        self.experiment.data = Data(rows)

    @rule()
    def copy_the_data(self):
        self.experiment.data = self.experiment.data.clone()

    # --- what nobody should do: Ax guards against it once a trial has run ---

    @precondition(lambda self: self.own_runs())
    @rule(index=INDEX)
    def change_a_weight_in_place(self, index):
        runs = self.own_runs()
        table = runs[index % len(runs)]._arm_weight_table
        next(iter(table.values())).weight += 1.0
        self.is_sound = False

    @precondition(lambda self: self.own_runs())
    @rule(index=INDEX)
    def change_a_plan_in_place(self, index):
        runs = self.own_runs()
        runs[index % len(runs)].gen_metadata["level_set"]["plan"].append(index % 9)
        self.is_sound = False

    def own_runs(self):
        trials = self.experiment.trials.values()
        waiting = [trial for trial in trials if trial.status.is_candidate]
        runs = [run for trial in waiting for run in trial.generator_runs]
        return [r for r in runs if r._generation_node_name == self.node.name]

    # --- another experiment ---

    @rule(how=st.sampled_from(["json", "copy"]))
    def load_again(self, how):
        if how == "json":
            self.experiment = object_from_json(object_to_json(self.experiment))
        else:
            self.experiment = copy.deepcopy(self.experiment)
        self.gs._experiment = self.experiment

    # --- the claim ---

    @invariant()
    def what_is_remembered_equals_a_full_reading(self):
        if not hasattr(self, "node"):
            return
        full = full_ledger(self.node, self.experiment, self.metrics, NOISE)
        assert self.node.ledger(self.experiment) == full

    @precondition(lambda self: self.is_sound)  # else no state need exist
    @rule()
    def compare_states(self):
        fresh = LevelSetNode(
            self.node.strategy, seed=1, name=self.node.name, max_failures=None
        )
        state = self.node.state(self.experiment)
        assert same_state(state, fresh.state(self.experiment))

    def teardown(self):
        if hasattr(self, "node") and self.is_sound:
            self.compare_states()


class ChangesOfTwoMetrics(Changes):
    metrics = ("y", "z")

    def make(self):
        return PALStrategy(
            grid_pool(3),
            maximize=(True, True),
            model=(kernel(), kernel()),
            noise_std=(NOISE, NOISE),
            batch_size=4,
        )


CAREFUL = settings(
    max_examples=6,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestChanges = Changes.TestCase
TestChanges.settings = CAREFUL
TestChangesOfTwoMetrics = ChangesOfTwoMetrics.TestCase
TestChangesOfTwoMetrics.settings = settings(CAREFUL, max_examples=3)


READ = [
    *(("RandomStrategy", "client", store) for store in STORES),
    *(("RandomStrategy", way, "memory") for way in WAYS if way != "client"),
    ("GEGEStrategy", "experiment", "memory"),
    (SHIP, "orchestrator", "memory"),
]


@pytest.mark.some(2)
@pytest.mark.filterwarnings("ignore:TypeDecorator")  # SQLAlchemy's, in Ax's code
@pytest.mark.parametrize(("name", "way", "store"), READ)
def test_every_reading_of_a_run_equals_a_full_one(
    name, way, store, tmp_path, monkeypatch
):
    compared = []
    ledger = LevelSetNode.ledger

    def checked(self, experiment, data=None):
        found = ledger(self, experiment, data)
        assert found == full_ledger(self, experiment, metrics_of(name), NOISE)
        compared.append(found)
        return found

    monkeypatch.setattr(LevelSetNode, "ledger", checked)
    RUNS[way](name, store, tmp_path)
    assert len(compared) >= 10


def test_only_what_changed_is_worked_out_again(monkeypatch):
    worked_out = []
    entry = LedgerReader._entry

    def counted(self, trial, values):
        worked_out.append(trial.index)
        return entry(self, trial, values)

    monkeypatch.setattr(LedgerReader, "_entry", counted)
    strategy = lse(epsilon=0.0, batch_size=4)
    client = client_for(strategy)
    for n_rounds in range(6):
        trials = client.get_next_trials(100)
        for trial, parameters in trials.items():
            complete(client, strategy, trial, parameters, n_rounds)
    node, experiment = node_of(client), client._experiment
    before = node.ledger(experiment)
    assert len(worked_out) == len(experiment.trials)  # each once, with its data
    client.attach_data(5, {"y": (0.123, NOISE)})
    assert node.ledger(experiment) != before
    assert worked_out[len(experiment.trials) :] == [5]
    again = node.ledger(experiment)
    assert node.ledger(experiment) is again  # nothing to arrange either


def test_a_value_changed_after_its_round_changes_the_state():
    strategy = lse(epsilon=0.0)
    client = client_for(strategy)
    for _ in range(4):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
    before = state_of(client)
    for trial in (4, 0):  # of the second and of the first round
        client.attach_data(trial, {"y": (2.5, NOISE)})
        state = state_of(client)
        assert same_state(state, fresh_state(client))
        assert not torch.equal(state.observations.y, before.observations.y)
        before = state


def test_a_search_space_changed_in_place_is_read_again():
    pool = grid_pool(2)
    client = Client()
    names = ["east", "north"]
    client.configure_experiment(
        [RangeParameterConfig(n, (0.0, 1.0), "float") for n in names], name="grid"
    )
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(lse(pool)))
    experiment, node = client._experiment, node_of(client)
    before = node.space(experiment)
    assert node.space(experiment) is before
    fixed = FixedParameter("ship", ParameterType.STRING, "Anna")
    experiment.search_space.add_parameters([fixed])
    assert node.space(experiment).parameters_of(0)["ship"] == "Anna"
