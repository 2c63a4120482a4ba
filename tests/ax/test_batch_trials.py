import pytest
import torch
from ax.core.data import Data
from ax.core.metric import Metric
from ax.core.runner import Runner
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.orchestration.orchestrator import Orchestrator, OrchestratorOptions
from ax.orchestration.orchestrator_options import TrialType
from ax.utils.common.result import Ok

from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetGlobalStoppingStrategy,
    level_set,
    level_set_generation_strategy,
)
from botorch_lse.ax.ledger import LedgerReader
from botorch_lse.papers import EGESHStrategy, MELKPACStrategy

from .worlds import NOISE, client_for, grid_pool, lse, measure


def plain_experiment(strategy):
    return client_for(strategy)._experiment


def replicates(**options):
    r"""A strategy that repeats rows: four rows, wide intervals."""
    return lse(grid_pool(2), batch_size=8, beta=100.0, epsilon=0.0, **options)


def run_batch(experiment, runs):
    trial = experiment.new_batch_trial(generator_runs=runs)
    trial.mark_running(no_runner_required=True)
    return trial


def finish(trial, strategy, sem=lambda weight: NOISE / weight**0.5):
    values = {}
    for arm, weight in trial.arm_weights.items():
        value = measure(strategy.pool, arm.parameters[POOL_INDEX])
        values[arm.name] = (value, sem(weight))
    trial.experiment.attach_data(batch_data(trial, values))
    trial.mark_completed()


def batch_data(trial, values):
    import pandas as pd

    table = pd.DataFrame(
        [
            {
                "trial_index": trial.index,
                "arm_name": arm,
                "metric_name": "y",
                "metric_signature": "y",
                "mean": mean,
                "sem": sem,
            }
            for arm, (mean, sem) in values.items()
        ]
    )
    return Data(df=table)


def test_a_round_is_one_weighted_generator_run():
    strategy = replicates()
    experiment = plain_experiment(strategy)
    strategy_of_ax = level_set_generation_strategy(strategy)
    ((run,),) = strategy_of_ax.gen(experiment, n=8)
    expected = strategy.ask(strategy.init(0))
    rows = [arm.parameters[POOL_INDEX] for arm in run.arms]
    assert rows == expected.indices.tolist()
    assert run.weights == expected.counts.tolist()
    assert max(run.weights) > 1
    assert run.gen_metadata["level_set"]["plan"] == expected.order.tolist()


def test_a_mean_of_replicates_takes_all_their_places():
    strategy = replicates(max_observations=16)
    experiment = plain_experiment(strategy)
    strategy_of_ax = level_set_generation_strategy(strategy)
    for _ in range(2):
        trial = run_batch(experiment, strategy_of_ax.gen(experiment, n=8)[0])
        with pytest.raises(DataRequiredError, match="8 of its 8 rows are out"):
            strategy_of_ax.gen(experiment, n=8)
        finish(trial, strategy)
    with pytest.raises(GenerationStrategyCompleted, match=r"16 evaluations \(budget\)"):
        strategy_of_ax.gen(experiment, n=8)
    state = strategy_of_ax.nodes_by_name["LSEStrategy"].state(experiment)
    trial = experiment.trials[0]
    assert len(state.history.at_round(0)) == sum(
        len(t.arms) for t in experiment.trials.values()
    )
    assert state.n_used == 16
    weights = torch.tensor([trial.arm_weights[a] for a in trial.arms]).double()
    yvar = state.history.yvar[state.history.round == 0]
    assert torch.allclose(yvar, NOISE**2 / weights, rtol=1e-8)


def test_a_mean_equals_its_replicates():
    strategy = replicates(max_observations=16)
    experiment = plain_experiment(strategy)
    strategy_of_ax = level_set_generation_strategy(strategy)
    trial = run_batch(experiment, strategy_of_ax.gen(experiment, n=8)[0])
    finish(trial, strategy)
    by_means = strategy_of_ax.nodes_by_name["LSEStrategy"].state(experiment)
    batch = strategy.ask(strategy.init(0))
    y = [measure(strategy.pool, row) for row in batch.order]
    by_replicates = strategy.tell(strategy.init(0), batch.observe(y, NOISE**2))
    ours, theirs = by_means.classification, by_replicates.classification
    assert torch.allclose(ours.sigma, theirs.sigma, rtol=1e-6)
    assert torch.allclose(ours.mean, theirs.mean, rtol=1e-6, atol=1e-8)


def test_known_noise_is_divided_by_the_weight_and_unknown_is_refused():
    strategy = replicates()
    experiment = plain_experiment(strategy)
    strategy_of_ax = level_set_generation_strategy(strategy)
    trial = run_batch(experiment, strategy_of_ax.gen(experiment, n=8)[0])
    finish(trial, strategy, sem=lambda weight: float("nan"))
    state = strategy_of_ax.nodes_by_name["LSEStrategy"].state(experiment)
    weights = torch.tensor([trial.arm_weights[a] for a in trial.arms]).double()
    assert torch.allclose(state.history.yvar, NOISE**2 / weights)

    unknown = replicates(model=None, noise_std=None, n_initial=8)
    experiment = plain_experiment(unknown)
    strategy_of_ax = level_set_generation_strategy(unknown)
    trial = run_batch(experiment, strategy_of_ax.gen(experiment, n=8)[0])
    finish(trial, unknown, sem=lambda weight: float("nan"))
    with pytest.raises(ValueError, match="mean of 2 replicates, but got none"):
        strategy_of_ax.gen(experiment, n=8)


def test_a_round_in_pieces_and_an_abandoned_arm():
    strategy = lse(batch_size=5)
    experiment = plain_experiment(strategy)
    strategy_of_ax = level_set_generation_strategy(strategy)
    first = run_batch(experiment, strategy_of_ax.gen(experiment, n=3)[0])
    second = run_batch(experiment, strategy_of_ax.gen(experiment, n=100)[0])
    assert (len(first.arms), len(second.arms)) == (3, 2)
    gone = first.arms[0]
    first.mark_arm_abandoned(gone.name)
    finish(second, strategy)
    finish(first, strategy)
    state = strategy_of_ax.nodes_by_name["LSEStrategy"].state(experiment)
    assert state.round == 1
    assert state.abandoned == ((0, gone.parameters[POOL_INDEX]),)
    assert len(state.history) == 4


def test_a_failed_batch_is_asked_again():
    strategy = lse(batch_size=4)
    experiment = plain_experiment(strategy)
    strategy_of_ax = level_set_generation_strategy(strategy)
    first = run_batch(experiment, strategy_of_ax.gen(experiment, n=4)[0])
    first.mark_failed()
    again = run_batch(experiment, strategy_of_ax.gen(experiment, n=4)[0])
    assert [a.parameters for a in again.arms] == [a.parameters for a in first.arms]


# --- the orchestrator ---------------------------------------------------------------


class Bench(Metric):
    def fetch_trial_data(self, trial, **kwargs):
        pool, weights = grid_pool(), getattr(trial, "arm_weights", None)
        values = {}
        for arm in trial.arms:
            weight = 1.0 if weights is None else weights[arm]
            value = measure(pool, arm.parameters[POOL_INDEX], trial.index)
            values[arm.name] = (value, NOISE / weight**0.5)
        return Ok(batch_data(trial, values))


class AtOnce(Runner):
    def run(self, trial):
        return {"name": str(trial.index)}

    def poll_trial_status(self, trials):
        return {TrialStatus.COMPLETED: {trial.index for trial in trials}}


def orchestrate(strategy, trial_type, stop=False, **options):
    client = client_for(strategy)
    client._set_metrics([Bench(name="y")])
    experiment = client._experiment
    experiment.runner = AtOnce()
    strategy_of_ax = level_set_generation_strategy(strategy)
    if stop:
        options["global_stopping_strategy"] = LevelSetGlobalStoppingStrategy(
            strategy_of_ax
        )
    orchestrator = Orchestrator(
        experiment=experiment,
        generation_strategy=strategy_of_ax,
        options=OrchestratorOptions(
            trial_type=trial_type,
            init_seconds_between_polls=0,
            min_seconds_before_poll=0.0,
            **options,
        ),
    )
    orchestrator.run_n_trials(max_trials=200)
    return experiment, strategy_of_ax


@pytest.mark.some(1)
@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize(
    ("trial_type", "options"),
    [
        (TrialType.TRIAL, {"max_pending_trials": 3}),
        (TrialType.TRIAL, {"max_pending_trials": 10, "run_trials_in_batches": True}),
        (TrialType.BATCH_TRIAL, {"batch_size": 4}),
        (
            TrialType.BATCH_TRIAL,
            {"batch_size": 2, "max_pending_trials": 8, "run_trials_in_batches": True},
        ),
    ],
)
def test_an_orchestrator_runs_to_the_stop(trial_type, options, stop):
    strategy = lse(batch_size=4)
    experiment, strategy_of_ax = orchestrate(strategy, trial_type, stop, **options)
    table = level_set(experiment, strategy_of_ax)
    assert (table["side"] != "undecided").all()
    state = strategy_of_ax.nodes_by_name["LSEStrategy"].state(experiment)
    assert state.stop_reason == "decided"
    assert table["n_observations"].sum() <= state.n_used < 100


def a_mean_of_two(strategy, sem):
    metrics = ["a", "b"][: getattr(strategy, "m", 1)]
    reader = LedgerReader("node", strategy, None, metrics)
    given = dict.fromkeys(metrics, (1.0, 1.0, sem))
    return reader._measurement(0, "0_0", 3, 2.0, given)


def test_what_takes_no_means_is_given_none():
    strategy = MELKPACStrategy(grid_pool(2), 0.5, bound=1.0, noise_std=0.1)
    assert not strategy.takes_means
    with pytest.raises(ValueError, match=r"one value for each draw.*`MELKPACS"):
        a_mean_of_two(strategy, 0.1)


def test_what_weighs_by_counts_needs_no_standard_error():
    strategy = EGESHStrategy(grid_pool(2), maximize=(True, True), max_observations=16)
    assert strategy.weighs_by_counts
    assert a_mean_of_two(strategy, float("nan")).yvar == ()
    assert lse().takes_means
    assert not lse().weighs_by_counts
    with pytest.raises(ValueError, match="Expected a sem for arm 0_0"):
        a_mean_of_two(lse(noise_std=None, model=None), float("nan"))
