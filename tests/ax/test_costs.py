r"""What trials cost: by hand, in a run, fetched by Ax; along a ship's way too."""

import pandas as pd
import pytest
import torch
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.arm import Arm
from ax.core.data import Data
from ax.core.map_metric import MapMetric
from ax.core.metric import Metric
from ax.core.runner import Runner
from ax.core.trial_status import TrialStatus
from ax.orchestration.orchestrator import Orchestrator, OrchestratorOptions
from ax.storage.json_store.load import load_experiment
from ax.storage.json_store.save import save_experiment
from ax.utils.common.result import Ok
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    CostMetric,
    LevelSetNode,
    ProgressAnalysis,
    costs,
    level_set_generation_strategy,
    record_costs,
    run_experiment,
    trial_cost,
)
from botorch_lse.strategies import TruVaRStrategy

from . import benches
from .worlds import (
    NOISE,
    client_for,
    complete,
    grid_pool,
    kernel,
    lse,
    measure,
    node_of,
    sqlite_storage,
    state_of,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:TypeDecorator"),
    pytest.mark.filterwarnings("ignore:Encountered exception:RuntimeWarning"),
]


def travel(previous, rows):
    r"""One for the sounding, and the distance on the grid of 6 x 6 cells."""
    start = rows if previous is None else torch.as_tensor(previous)
    return 1.0 + (rows // 6 - start // 6).abs() + (rows % 6 - start % 6).abs()


def priced_pool():
    base = grid_pool()
    return Pool(base.X, names=base.names, costs=1 + 3 * base.X[:, 0])


def ship(pool=None, cost=travel, **options):
    return TruVaRStrategy(
        grid_pool() if pool is None else pool, 0.5, model=kernel(), noise_std=NOISE,
        beta=4.0, cost=cost, **{"batch_size": 3, "max_observations": 12, **options},
    )  # fmt: skip


def priced():
    return ship(priced_pool(), None)


def recorded(experiment):
    table = experiment.lookup_data().df
    table = table[table["metric_name"] == "cost"]
    return dict(zip(table["trial_index"], table["mean"], strict=True))


def shortest_ways(rounds):
    r"""The nearest next row, round after round: a plain walk."""
    total, here = 0.0, None
    for left in rounds:
        left = sorted(left)
        while left:
            price = [float(travel(here, torch.tensor([r]))) for r in left]
            at = price.index(min(price))
            total, here = total + price[at], left.pop(at)
    return total


def last_cost(client):
    (card,) = client.compute_analyses([ProgressAnalysis()], display=False)
    return card.df["cost"].tolist()


# --- by hand ------------------------------------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize("make", [ship, priced])
@pytest.mark.parametrize("backwards", [False, True])
def test_costs_in_raw_data_sum_to_what_the_strategy_spent(make, backwards):
    strategy = make()
    client, rounds = client_for(strategy), []
    for _ in range(3):
        trials = client.get_next_trials(100)
        rounds.append([p[POOL_INDEX] for p in trials.values()])
        for trial in sorted(trials, reverse=backwards):
            y = measure(strategy.pool, trials[trial][POOL_INDEX])
            cost = trial_cost(client, trial)
            client.complete_trial(trial, {"y": (y, NOISE), "cost": (cost, 0.0)})
    spent = strategy.spent(state_of(client))
    assert sum(recorded(client._experiment).values()) == pytest.approx(spent)
    assert last_cost(client)[-1] == pytest.approx(spent)
    if make is ship:
        assert spent == pytest.approx(shortest_ways(rounds))
    else:
        rows = [row for each in rounds for row in each]
        assert spent == pytest.approx(float(strategy.pool.costs[rows].sum()))


def accidents(client, strategy):
    r"""Two rounds: the last place abandoned, one failed, a row measured elsewhere."""
    record = record_costs
    elsewhere = client.attach_trial({POOL_INDEX: 35})
    first = client.get_next_trials(100)
    kept, failed, lost = first
    complete(client, strategy, kept, first[kept])
    record(client)
    client.mark_trial_failed(failed)
    assert trial_cost(client, failed) == 0.0
    ((again, parameters),) = client.get_next_trials(100).items()
    complete(client, strategy, elsewhere, {POOL_INDEX: 35})
    complete(client, strategy, again, parameters)
    client.mark_trial_abandoned(lost)
    record(client)
    for trial, parameters in client.get_next_trials(100).items():
        complete(client, strategy, trial, parameters)
        record(client)


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("make", [ship, priced])
def test_recorded_costs_follow_the_accidents(make):
    strategy = make()
    client = client_for(strategy)
    accidents(client, strategy)
    spent = strategy.spent(state_of(client))
    costs = recorded(client._experiment)
    completed = client._experiment.trial_indices_by_status[TrialStatus.COMPLETED]
    assert set(costs) == completed
    assert sum(costs.values()) == pytest.approx(spent)
    assert last_cost(client)[-1] == pytest.approx(spent)
    if make is ship:
        history = state_of(client).history
        rounds = [
            history.indices[history.round == r].tolist()
            for r in history.round.unique().tolist()
        ]
        assert spent == pytest.approx(shortest_ways(rounds))
    before = client._experiment.lookup_data().df
    record_costs(client)
    pd.testing.assert_frame_equal(client._experiment.lookup_data().df, before)
    assert client._experiment.optimization_config.metric_names == {"y"}


def test_progress_counts_each_round():
    strategy = ship()
    client = client_for(strategy)
    for _ in range(3):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
    states = node_of(client).history(client._experiment)
    assert last_cost(client) == pytest.approx([strategy.spent(s) for s in states])


def test_bad_questions_are_refused():
    client = client_for(lse())
    client.get_next_trials(1)
    for ask in (lambda: trial_cost(client, 0), lambda: record_costs(client)):
        with pytest.raises(
            ValueError, match=r"whose pool has none. Write `Pool\(X, co"
        ):
            ask()
    with pytest.raises(ValueError, match="whose pool has none"):
        CostMetric(lse())
    with pytest.raises(ValueError, match=r"`trial_index` to be one of .* 0 trials"):
        trial_cost(client_for(priced()), 7)


# --- in a run -----------------------------------------------------------------------


@pytest.mark.some(0, slow=3)
@pytest.mark.filterwarnings("ignore:The '?(inplace|future)|add_tracking")  # Ax's
@pytest.mark.parametrize("make", [ship, priced])
def test_a_run_records_what_it_spends_after_accidents_too(make, tmp_path):
    strategy, path = make(), tmp_path / "run.json"
    client = client_for(strategy)
    bad = client_for(strategy).get_next_trials(1)[0][POOL_INDEX]
    run = benches.with_options(benches.raises_always, rows=[bad])
    with pytest.warns(RuntimeWarning, match="is abandoned"):
        run_experiment(client, run, on_error="retry", max_retries=0, storage=path)
    again = Client.load_from_json_file(str(path))
    for known in (client, again):
        spent = strategy.spent(state_of(known))
        assert sum(recorded(known._experiment).values()) == pytest.approx(spent)
        assert isinstance(known._experiment.metrics["cost"], CostMetric)
    assert last_cost(again)[-1] == pytest.approx(spent)


@pytest.mark.parametrize("make", [ship, priced])
def test_costs_that_an_evaluation_returns_are_kept(make):
    client = client_for(make())
    run_experiment(
        client, lambda p: {"y": benches.bench(p), "cost": 7.25}, max_trials=4
    )
    assert list(recorded(client._experiment).values()) == [7.25] * 4


@pytest.mark.slow
def test_a_run_in_a_database_keeps_costs(tmp_path):
    strategy = ship(max_observations=6)
    storage = sqlite_storage(tmp_path / "runs.db")
    client = client_for(strategy, storage_config=storage)
    run_experiment(client, benches.bench, max_trials=4)
    again = Client.load_from_database("test", storage_config=storage)
    assert recorded(again._experiment) == pytest.approx(recorded(client._experiment))
    run_experiment(again, benches.bench)
    spent = strategy.spent(state_of(again))
    stored = Client.load_from_database("test", storage_config=storage)
    assert sum(recorded(stored._experiment).values()) == pytest.approx(spent)
    assert isinstance(stored._experiment.metrics["cost"], CostMetric)


@pytest.mark.some(1)
@pytest.mark.parametrize("cost", [None, travel])
def test_a_trial_that_is_no_row_has_no_cost(cost):
    pool = Pool([[0.0], [0.5], [1.0]], names=["x"], costs=None if cost else [1, 2, 3])
    x = RangeParameterConfig(name="x", bounds=(0, 1), parameter_type="float")
    strategy = TruVaRStrategy(
        pool, 0.5, model=RBFKernel(), noise_std=NOISE, beta=4.0, cost=cost
    )
    client = Client()
    client.configure_experiment(parameters=[x], name="test")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    off = client.attach_trial({"x": 0.3})
    client.complete_trial(off, {"y": (0.2, NOISE)})
    running = client.attach_trial({"x": 0.7})  # it runs as those asked for
    assert trial_cost(client, off) == 0.0
    record_costs(client)
    run_experiment(client, lambda p: (p["x"], NOISE), max_trials=3)
    record_costs(client)
    costs = recorded(client._experiment)
    assert costs.keys() == client._experiment.trials.keys() - {off, running}
    measured = strategy.spent(state_of(client))
    assert sum(costs.values()) == pytest.approx(measured)
    client._experiment.fetch_data()
    assert recorded(client._experiment) == pytest.approx(costs)


# --- fetched by Ax ------------------------------------------------------------------


class CostBench(Metric):
    r"""The value of the one arm of a trial."""

    def fetch_trial_data(self, trial, **kwargs):
        row = trial.arm.parameters[POOL_INDEX]
        table = {
            "trial_index": trial.index,
            "arm_name": trial.arm.name,
            "metric_name": "y",
            "metric_signature": "y",
            "mean": measure(grid_pool(), row),
            "sem": NOISE,
        }
        return Ok(Data(df=pd.DataFrame([table])))


class CostRunner(Runner):
    r"""Trials end at once; trial 1 fails, trial 3 is abandoned."""

    def run(self, trial):
        return {}

    def poll_trial_status(self, trials):
        ends = {1: TrialStatus.FAILED, 3: TrialStatus.ABANDONED}
        found = {}
        for trial in trials:
            end = ends.get(trial.index, TrialStatus.COMPLETED)
            found.setdefault(end, set()).add(trial.index)
        return found


@pytest.mark.parametrize("make", [ship, priced])
def test_an_orchestrator_fetches_costs(make):
    strategy = make()
    client = client_for(strategy)
    client.configure_metrics([CostBench("y"), CostMetric(strategy)])
    experiment = client._experiment
    experiment.runner = CostRunner()
    gs = level_set_generation_strategy(strategy)
    options = OrchestratorOptions(
        max_pending_trials=3,
        init_seconds_between_polls=0,
        min_seconds_before_poll=0.0,
        tolerated_trial_failure_rate=0.9,
    )
    Orchestrator(experiment, gs, options).run_n_trials(max_trials=7)
    (node,) = gs.nodes_by_name.values()
    state = node.state(experiment)
    assert state.abandoned
    assert not state.told.n_measured  # whole rounds
    experiment.fetch_data()
    costs = recorded(experiment)
    assert sum(costs.values()) == pytest.approx(strategy.spent(state))
    assert set(costs) == experiment.trial_indices_by_status[TrialStatus.COMPLETED]


def test_a_weighted_arm_costs_each_of_its_measurements():
    strategy = TruVaRStrategy(
        grid_pool(2), 0.5, model=kernel(), noise_std=3.0, beta=9.0, cost=travel,
        batch_size=8, max_observations=16,
    )  # fmt: skip
    experiment = client_for(strategy)._experiment
    experiment.add_metric(CostMetric(strategy))
    gs = level_set_generation_strategy(strategy)
    plan = []
    for _ in range(2):
        trial = experiment.new_batch_trial(generator_runs=gs.gen(experiment, n=8)[0])
        trial.mark_running(no_runner_required=True)
        table = pd.DataFrame({"arm_name": [a.name for a in trial.arms], "sem": 1.0})
        values = [measure(strategy.pool, a.parameters[POOL_INDEX]) for a in trial.arms]
        common = {"trial_index": trial.index, "metric_signature": "y"}
        table = table.assign(mean=values, metric_name="y", **common)
        experiment.attach_data(Data(df=table))
        trial.mark_completed()
        counts = [(a.parameters[POOL_INDEX], w) for a, w in trial.arm_weights.items()]
        plan.append([row for row, weight in counts for _ in range(round(weight))])
    assert max(len(rows) - len(set(rows)) for rows in plan) > 0
    experiment.fetch_data()
    (node,) = gs.nodes_by_name.values()
    spent = strategy.spent(node.state(experiment))
    table = experiment.lookup_data().df
    costs = table[table["metric_name"] == "cost"]
    assert costs["mean"].sum() == pytest.approx(spent) == shortest_ways(plan)


@pytest.mark.some(2)
@pytest.mark.parametrize("with_trial", [False, True])
@pytest.mark.parametrize("store", ["json", "sqlite"])
def test_the_metric_is_stored(store, with_trial, tmp_path):
    strategy = ship()
    client = client_for(strategy)
    client.configure_metrics([CostMetric(strategy)])
    experiment = client._experiment
    if with_trial:
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
        experiment.fetch_data()
    if store == "json":
        path = str(tmp_path / "experiment.json")
        save_experiment(experiment, path)
        again = load_experiment(path)
    else:
        from ax.storage.sqa_store import load, save

        sqlite_storage(tmp_path / "runs.db")
        save.save_experiment(experiment)
        again = load.load_experiment("test")
    metric = again.metrics["cost"]
    assert isinstance(metric, CostMetric)
    assert metric.clone().node_name == "TruVaRStrategy"
    elsewhere = again.new_trial().add_arm(Arm(parameters={POOL_INDEX: 4}))
    elsewhere.mark_running(no_runner_required=True)
    elsewhere.update_trial_data({"y": (0.5, NOISE)})
    elsewhere.mark_completed()
    again.fetch_data()
    node = LevelSetNode(strategy)
    spent = strategy.spent(node.state(again))
    assert spent > 0
    assert sum(recorded(again).values()) == pytest.approx(spent)


def test_a_fetch_that_fails_says_why():
    strategy = ship()
    client = client_for(strategy)
    metric = CostMetric(strategy, metrics=["y", "z"])
    client.configure_metrics([metric])
    trial, parameters = next(iter(client.get_next_trials(1).items()))
    complete(client, strategy, trial, parameters)
    result = metric.fetch_trial_data(client._experiment.trials[trial])
    assert "Expected an objective with one metric" in result.err.message


# --- registries of the user ---------------------------------------------------------


@pytest.mark.slow
def test_a_run_with_registries_that_do_not_know_the_metric_still_records(tmp_path):
    from ax.api.configs import StorageConfig
    from ax.storage.registry_bundle import RegistryBundle

    bundle = RegistryBundle(metric_clss={Metric: 0, MapMetric: 8}, runner_clss={})
    storage = StorageConfig(
        url=sqlite_storage(tmp_path / "runs.db").url, registry_bundle=bundle
    )
    strategy = priced()
    client = client_for(strategy, storage_config=storage)
    run_experiment(client, benches.bench, max_trials=3)
    again = Client.load_from_database("test", storage_config=storage)
    assert type(again._experiment.metrics["cost"]) is Metric
    spent = strategy.spent(state_of(again))
    assert sum(recorded(again._experiment).values()) == pytest.approx(spent) != 0


def test_another_metric_with_our_number_is_refused(monkeypatch):
    taken = {CostBench: costs.COST_METRIC}
    monkeypatch.setattr(costs, "CORE_METRIC_REGISTRY", taken)
    with pytest.raises(ValueError, match=r"8130 to be free .* CostBench holds it"):
        costs.register_cost_metric()
