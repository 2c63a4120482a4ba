r"""Trials, their data, and the node that asks for them."""

import dataclasses
import functools
import itertools
import math

import pandas as pd
import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.core import ObservationFeatures
from ax.core.arm import Arm
from ax.core.data import Data
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import History, Pool
from botorch_lse.acquisition import MaxVariance
from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetNode,
    acquisition_generator_spec,
    exclude_rows,
    grid_pool,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
)
from botorch_lse.papers import MELKPACStrategy
from botorch_lse.strategies import (
    Above,
    Below,
    Binary,
    GaussianProcess,
    GEGEStrategy,
    Strategy,
)

from ..worlds import (
    NOISE,
    client_for,
    kernel,
    lse,
    node_of,
    rows_of,
    state_of,
)
from ..worlds import (
    grid_pool as world,
)
from .cases import (
    DOSE,
    HEAT,
    SALT,
    case,
    complete,
    fixed,
    goes_on,
    modular,
    of_features,
    on,
    use,
)

# --- trials and data --------------------------------------------------------------


@case("ledger:LedgerReader._located#1", "`client.attach_data(0, {'y': math.nan})`")
def a_completed_trial_that_is_no_row(_):
    client = client_for(lse())
    complete(client, [client.attach_trial({POOL_INDEX: 99})])
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": math.nan})
    assert goes_on(client)


@case("ledger:LedgerReader._located#1", "`client.mark_trial_abandoned(0)`")
def a_running_trial_that_is_no_row(_):
    client = client_for(lse())
    client.attach_trial({POOL_INDEX: 99})
    yield lambda: client.get_next_trials(1)
    client.mark_trial_abandoned(0)
    assert goes_on(client)


@case("ledger:LedgerReader._located#1", "`client.attach_data(0, {'y': math.nan})`")
def a_trial_whose_features_are_not_known(_):
    pool, elsewhere = of_features()
    client = on([HEAT, SALT], fixed(pool))
    complete(client, [client.attach_trial(elsewhere)])
    yield lambda: level_set(client)
    client.attach_data(0, {"y": math.nan})
    assert len(level_set(client)) == len(pool)


@case("ledger:LedgerReader._located#1", "`client.attach_data(0, {'y': math.nan})`")
def a_trial_with_an_unknown_word(_):
    pool = grid_pool([HEAT, dataclasses.replace(SALT, values=["KBr"])], 3)
    client = on([HEAT, SALT], fixed(pool))
    complete(client, [client.attach_trial({"heat": 0.3, "salt": "LiF"})])
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": math.nan})
    assert goes_on(client)


@case("ledger:LedgerReader._plan#1", "Give the LevelSetNode another `name`")
def another_node_of_the_same_name(_):
    client = client_for(lse())
    sobol = GenerationNode(
        name="LSEStrategy", generator_specs=[GeneratorSpec(Generators.SOBOL)]
    )
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol], name="Sobol"))
    complete(client, client.get_next_trials(1))
    use(client, lse())
    yield lambda: client.get_next_trials(1)
    use(client, lse(), name="level set")
    assert goes_on(client)
    assert len(state_of(client).history) == 1


@case("ledger:LedgerReader._plan#2", "give the new strategy's node another `name`")
def trials_of_another_pool(_):
    strategy, other = lse(), lse(Pool(world().X * 2))
    client = client_for(strategy)
    complete(client, client.get_next_trials(3))
    use(client, other)
    yield lambda: client.get_next_trials(1)
    use(client, strategy)  # the pool that the experiment was begun with
    assert goes_on(client)
    client = client_for(strategy)
    complete(client, client.get_next_trials(3))
    use(client, other)
    yield lambda: client.get_next_trials(1)
    use(client, other, name="larger")
    assert goes_on(client)


@case(
    "ledger:LedgerReader._measurement#2", "`client.attach_data(0, {'y': (mean, sem)})`"
)
def a_negative_sem(_):
    client = client_for(lse(batch_size=1))
    complete(client, client.get_next_trials(1), (0.3, -0.1))
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": (0.3, 0.1)})
    assert goes_on(client)
    client = client_for(lse(batch_size=1))
    complete(client, client.get_next_trials(1), (0.3, math.inf))
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": 0.3})  # left out where the noise is unknown
    assert goes_on(client)


@case("ledger:LedgerReader._check_no_sem#1", "`client.attach_data(0, {'y': value})`")
def a_sem_of_an_answer(_):
    model = GaussianProcess(outcome=Binary())
    client = client_for(Strategy(world(), Above(0.5), model=model, batch_size=1))
    complete(client, client.get_next_trials(1), (1, 0.1))
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": 1})
    assert goes_on(client)


@case("ledger:LedgerReader._measurement#1", "`client.attach_data(0, {'y': value})`")
def an_answer_that_cannot_be(_):
    kinds = (Binary(), Binary(failures="outcome")), (2, 0.7)
    for outcome, wrong in itertools.product(*kinds):
        for value in (1, math.nan):
            model = GaussianProcess(outcome=outcome)
            strategy = Strategy(world(), Above(0.5), model=model, batch_size=1)
            client = client_for(strategy)
            complete(client, client.get_next_trials(1), wrong)
            said = yield functools.partial(client.get_next_trials, 1)
            assert "'y' of trial 0 to be 1 or 0 with `outcome=" in said
            assert f"but got {wrong}." in said
            client.attach_data(0, {"y": value})
            assert goes_on(client)


UNKNOWN = {"noise_std": None, "model": None, "n_initial": 1, "batch_size": 1}


def of_two(values):
    pair = GEGEStrategy(world(), maximize=(True, True), batch_size=1, n_initial=2)
    client = client_for(pair, objective="y, z")
    for trial in client.get_next_trials(1):
        client.complete_trial(trial, values)
    return client


@case("ledger:LedgerReader._measurement#3", "give the strategy `noise_std`")
def one_metric_with_a_sem_and_one_without(_):
    values = {"y": (0.3, 0.1), "z": 0.2}
    client = of_two(values)
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"z": (0.2, 0.1)})
    assert goes_on(client)
    client = of_two(values)
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": 0.3})
    assert goes_on(client)
    client = of_two(values)
    yield lambda: client.get_next_trials(1)
    use(client, dataclasses.replace(node_of(client).strategy, noise_std=0.1))
    assert goes_on(client)


def one_with_and_one_without(**options):
    client = client_for(lse(**{**UNKNOWN, **options}))
    complete(client, client.get_next_trials(1), 0.3)
    client.complete_trial(client.attach_trial({POOL_INDEX: 5}), {"y": (0.4, 0.1)})
    return client


@case("ledger:_check_together#2", "give the strategy `noise_std`")
def one_trial_with_a_sem_and_one_without(_):
    client = one_with_and_one_without()
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": (0.3, 0.1)})
    assert goes_on(client)
    client = one_with_and_one_without()
    yield lambda: client.get_next_trials(1)
    client.attach_data(1, {"y": 0.4})
    assert goes_on(client)
    client = one_with_and_one_without()
    yield lambda: client.get_next_trials(1)
    use(client, lse(**{**UNKNOWN, "noise_std": 0.1}))
    assert goes_on(client)


def beside_a_history(yvar, sem):
    r"""A run that knew values without a sem, or with one, and a trial off the pool."""
    past = History(torch.rand(4, 2), torch.rand(4), yvar)
    learnt = Strategy(
        grid_pool([HEAT, DOSE], 5),
        Above(0.5),
        model=GaussianProcess(history=past),
        batch_size=1,
    )
    client = on([HEAT, DOSE], learnt)
    complete(client, client.get_next_trials(1), 0.3)
    trial = client.attach_trial({"heat": 0.3, "dose": 0.1})
    client.complete_trial(trial, {"y": (0.4, sem)})
    return client, learnt


@case("ledger:_check_together#1", "Call `client.attach_data(1, {'y': (mean, sem)})`")
def a_point_without_a_sem_beside_a_history_with_its_noise(_):
    client, _ = beside_a_history(0.01, math.nan)
    yield lambda: client.get_next_trials(1)
    client.attach_data(1, {"y": (0.4, 0.1)})
    assert goes_on(client)
    assert len(state_of(client).strategy.model.history) == 5


@case("ledger:_check_together#1", "or give the strategy `History(X, y, yvar)`")
def a_point_with_a_sem_beside_a_history_without_its_noise(_):
    client, learnt = beside_a_history(None, 0.1)
    said = yield functools.partial(client.get_next_trials, 1)
    assert "`client.attach_data(1, {'y': mean})`" in said
    client.attach_data(1, {"y": 0.4})
    assert goes_on(client)
    client, learnt = beside_a_history(None, 0.1)
    yield functools.partial(client.get_next_trials, 1)
    known = dataclasses.replace(learnt.model.history, yvar=torch.full((4,), 0.01))
    model = dataclasses.replace(learnt.model, history=known)
    use(client, dataclasses.replace(learnt, model=model))
    assert goes_on(client)


def of_weights(strategy, sem=None):
    r"""An experiment whose batch trial holds the mean of several replicates."""
    client = client_for(strategy)
    experiment, gs = client._experiment, client._generation_strategy
    trial = experiment.new_batch_trial()
    trial.add_arms_and_weights([Arm({POOL_INDEX: 3})], [2.0])
    trial.mark_running(no_runner_required=True)
    give(experiment, trial, sem)
    trial.mark_completed()
    return experiment, gs, trial


def give(experiment, trial, sem=None):
    rows = [
        {
            "trial_index": trial.index,
            "arm_name": arm.name,
            "metric_name": "y",
            "metric_signature": "y",
            "mean": 0.3,
            "sem": math.nan if sem is None else sem,
        }
        for arm in trial.arms
    ]
    experiment.attach_data(Data(df=pd.DataFrame(rows)))


@case("ledger:LedgerReader._variance#1", "Ask for trials of one arm")
def a_mean_where_each_value_is_needed(_):
    strategy = MELKPACStrategy(world(), 0.5, bound=1.0, noise_std=NOISE)
    experiment, gs, _ = of_weights(strategy)
    yield lambda: gs.gen(experiment, n=1)
    client = client_for(strategy)  # whose trials have one arm each
    complete(client, client.get_next_trials(3), 0.3)
    assert goes_on(client)


@case("ledger:LedgerReader._variance#2", "Attach (mean, sem)")
def a_point_whose_noise_nobody_knows(_):
    pool = grid_pool([HEAT, DOSE], 3)
    noisy = Pool(pool.X, names=pool.names, table=pool.table, noise_var=[0.01] * 9)
    client = on([HEAT, DOSE], fixed(noisy, noise_std=None))
    complete(client, [client.attach_trial({"heat": 0.3, "dose": 0.1})], 0.3)
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": (0.3, 0.1)})
    assert goes_on(client)


@case("ledger:LedgerReader._variance#3", "Attach (mean, s / sqrt(2))")
def a_mean_without_its_noise(_):
    experiment, gs, trial = of_weights(lse(**UNKNOWN))
    yield lambda: gs.gen(experiment, n=1)
    give(experiment, trial, NOISE / 2**0.5)
    assert gs.gen(experiment, n=1)
    experiment, gs, trial = of_weights(lse(**UNKNOWN))
    yield lambda: gs.gen(experiment, n=1)
    gs = level_set_generation_strategy(lse(**{**UNKNOWN, "noise_std": 0.1}))
    assert gs.gen(experiment, n=1)


@case("ledger:_check_together#3", "Give them in smaller units")
def values_that_storage_does_not_keep(_):
    scaled = ScaleKernel(RBFKernel()).double()
    scaled.outputscale = 1e-24
    options = {"threshold": 5e-13, "model": scaled, "noise_std": 1e-13}
    client = client_for(lse(epsilon=0.0, batch_size=1, **options))
    complete(client, client.get_next_trials(1), (3e-13, 1e-13))
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": (0.3, 0.1)})  # in units of 1e-12
    use(client, lse(batch_size=1, threshold=0.5, noise_std=0.1))
    assert goes_on(client)


# --- the node ---------------------------------------------------------------------

NAMED = Above(0.5, output="zinc") & Below(0.5, output="lead")


def of_region(metrics=None):
    model = GaussianProcess(kernel(), noise_std=NOISE)
    client = Client()
    client.configure_experiment(parameters=pool_parameters(world()), name="test")
    client.configure_optimization(objective="zinc")
    client.configure_tracking_metrics(["lead"])
    use(client, Strategy(world(), NAMED, model=model), metrics=metrics)
    return client


@case("node:LevelSetNode.metric_names#1", "Leave `metrics` out")
def metrics_that_the_goal_does_not_name(_):
    client = of_region(metrics=["zinc", "iron"])
    yield lambda: client.get_next_trials(1)
    assert goes_on(of_region())


@case("compat:experiment_of#1", "Call `client.configure_experiment(parameters=")
def no_experiment(_):
    client = Client()
    yield lambda: level_set(client)
    client.configure_experiment(parameters=pool_parameters(world()), name="test")
    client.configure_optimization(objective="y")
    assert goes_on(use(client, lse()) or client)


@case(
    "node:LevelSetNode.metric_names#2", '`client.configure_optimization(objective="y"'
)
def no_objective(_):
    def without():
        client = Client()
        client.configure_experiment(parameters=pool_parameters(world()), name="test")
        use(client, lse())
        return client

    client = without()
    yield lambda: level_set(client)
    client.configure_optimization(objective="y")
    assert goes_on(client)
    client = without()
    yield lambda: level_set(client)
    use(client, lse(), metrics=["y"])
    assert len(level_set(client)) == 36


@case("node:LevelSetNode.metric_names#2", '`metrics=["y", "z"]`, the outputs in order')
def one_metric_for_two_outputs(_):
    pair = GEGEStrategy(world(), maximize=(True, False), noise_std=NOISE, batch_size=1)
    client = client_for(pair)
    yield lambda: client.get_next_trials(1)
    client.configure_optimization(objective="y, -z")
    assert goes_on(client)
    client = client_for(pair)
    yield lambda: client.get_next_trials(1)
    client.configure_tracking_metrics(["z"])
    use(client, pair, metrics=["y", "z"])
    assert goes_on(client)


@case("node:LevelSetNode.metric_names#3", 'as "-z"')
def an_objective_of_the_other_sign(_):
    pair = GEGEStrategy(world(), maximize=(True, False), noise_std=NOISE, batch_size=1)
    client = client_for(pair, objective="y, z")
    yield lambda: client.get_next_trials(1)
    client.configure_optimization(objective="y, -z")
    assert goes_on(client)


@case("node:LevelSetNode._gen#1", "`exclude_rows(client, rows)`")
def fixed_parameters(_):
    parameters = [HEAT, DOSE]
    client = on(parameters, fixed(grid_pool(parameters, 3)))
    table = grid_pool(parameters, 3).to_frame()
    yield lambda: client.get_next_trials(2, fixed_parameters={"heat": 0.5})
    exclude_rows(client, [i for i, heat in enumerate(table["heat"]) if heat != 0.5])
    assert {p["heat"] for p in client.get_next_trials(2).values()} == {0.5}


@case("node:LevelSetNode._take#2", "Complete those that run, or mark them failed")
def a_round_that_is_out(_):
    client = client_for(lse())
    trials = client.get_next_trials(3)
    yield lambda: client.get_next_trials(1)
    complete(client, trials)
    assert goes_on(client)
    client = client_for(lse())
    trials = client.get_next_trials(3)
    yield lambda: client.get_next_trials(1)
    for trial in trials:
        client.mark_trial_failed(trial)
    assert rows_of(client.get_next_trials(100)) == rows_of(trials)
    assert state_of(client).round == 0
    client = client_for(lse())
    trials = client.get_next_trials(3)
    yield lambda: client.get_next_trials(1)
    for trial in trials:
        client.mark_trial_abandoned(trial)
    assert goes_on(client)
    assert state_of(client).round == 1


@case("node:LevelSetNode._take#2", "call `client.attach_data(0, {'y': (mean, sem)})`")
def a_completed_trial_without_data(_):
    def bare():
        client = client_for(lse(batch_size=1))
        for trial in client.get_next_trials(1):
            client.complete_trial(trial, {"q": 0.1})
        return client

    client = bare()
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": (0.3, 0.1)})
    assert goes_on(client)
    client = bare()
    yield lambda: client.get_next_trials(1)
    client.attach_data(0, {"y": (math.nan, 0.1)})
    assert goes_on(client)


@case("node:LevelSetNode._take#2", "else as `metrics` of `level_set_generation_str")
def a_completed_trial_of_another_metric(_):
    client = client_for(lse(batch_size=1))
    for trial in client.get_next_trials(1):
        client.complete_trial(trial, {"q": 0.1})
    yield lambda: client.get_next_trials(1)
    use(client, lse(batch_size=1), metrics=["q"])
    assert goes_on(client)


@case("node:LevelSetNode._take#2", "Ask for at most 1 trial now")
def more_than_a_round_after_another_node(_):
    def after_sobol():
        sobol = GenerationNode(
            name="Sobol",
            generator_specs=[GeneratorSpec(Generators.SOBOL, {"seed": 1})],
            transition_criteria=[MinTrials(threshold=1, transition_to="LSEStrategy")],
        )
        client, node = client_for(lse(batch_size=1)), LevelSetNode(lse(batch_size=1))
        client.set_generation_strategy(GenerationStrategy(nodes=[sobol, node]))
        complete(client, client.get_next_trials(1))
        return client

    client = after_sobol()
    yield lambda: client.get_next_trials(2)
    assert len(client.get_next_trials(1)) == 1


def one_is_out(**options):
    r"""A budget of one, and a row that is being measured elsewhere."""
    client = client_for(lse(max_observations=1, **options))
    return client, client.attach_trial({POOL_INDEX: 5})


@case("node:LevelSetNode._current#1", "Tell them first")
def nothing_left_but_what_is_out(_):
    client, trial = one_is_out(batch_size=1)
    yield lambda: client.get_next_trials(1)
    complete(client, [trial])
    assert state_of(client).stop_reason == "budget"


@case("node:LevelSetNode._next_row#1", "Tell them first")
def nothing_left_but_what_is_out_one_by_one(_):
    client, trial = one_is_out(batch_size=None)
    yield lambda: client.get_next_trials(1)
    complete(client, [trial])
    assert state_of(client).stop_reason == "budget"


@case("node:_check_asynchronous#1", "Leave `asynchronous` out")
def an_algorithm_that_waits(_):
    strategy = MELKPACStrategy(world(), 0.5, bound=1.0, noise_std=NOISE)
    yield lambda: level_set_generation_strategy(strategy, asynchronous=True)
    assert level_set_generation_strategy(strategy)


@case("node:_checked_metrics#1", "Write `metrics=['y']`")
def a_metric_that_is_no_list(_):
    yield lambda: level_set_generation_strategy(lse(), "y")
    assert level_set_generation_strategy(lse(), ["y"])


@case("node:LevelSetAdapter._predict#1", "Add the noise variance for a new")
def a_prediction_of_a_measurement(_):
    client = client_for(lse())
    adapter = client._generation_strategy.adapter
    point = [ObservationFeatures(parameters={POOL_INDEX: 1})]
    yield lambda: adapter.predict(point, True)
    _, covariances = adapter.predict(point)
    assert covariances["y"]["y"][0] + NOISE**2 > covariances["y"]["y"][0]


@case("node:level_set_node#1", "`client.set_generation_strategy(level_set_generation_")
def no_generation_strategy(_):
    client = Client()
    client.configure_experiment(parameters=pool_parameters(world()), name="test")
    client.configure_optimization(objective="y")
    yield lambda: level_set(client)
    client.set_generation_strategy(level_set_generation_strategy(lse()))
    assert len(level_set(client)) == 36


@case("node:level_set_node#1", "for a modular generator use `client.predict`")
def a_modular_generator_without_a_level(_):
    client = modular(acquisition_generator_spec(MaxVariance, {}), n=3)
    yield lambda: level_set(client)
    assert client.predict([{"heat": 0.1, "dose": 0.2}])


@case("node:learnt_metrics#1", '`client.configure_optimization(objective="y")`')
def a_run_without_an_objective(_):
    client = Client()
    client.configure_experiment(parameters=[HEAT, DOSE], name="test")
    client.set_generation_strategy(
        GenerationStrategy(
            nodes=[GenerationNode("S", [GeneratorSpec(Generators.SOBOL)])], name="S"
        )
    )
    yield lambda: run_experiment(client, lambda p: p["heat"], max_trials=1)
    client.configure_optimization(objective="y")
    assert run_experiment(client, lambda p: p["heat"], max_trials=1)
