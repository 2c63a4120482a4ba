r"""Several metrics: Pareto strategies through Ax."""

import pandas as pd
import pytest
import torch
from ax.api.client import Client
from ax.core.data import Data
from ax.exceptions.core import DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    CalibrationAnalysis,
    ParetoAnalysis,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.papers import PALStrategy
from botorch_lse.strategies import GEGEStrategy
from tests.covering import covering
from tests.processes import in_a_new_process
from tests.registry import BUDGETED, CONFIDENT, GAUSSIAN, case_of

from .worlds import client_for as plain_client
from .worlds import grid_pool, lse, node_of, same_state, sqlite_storage, state_of

NOISE = (0.1, 2.0)
MAXIMIZE = (True, False)
METRICS = ("objectives", "tracking")


def kernels():
    found = []
    for scale in (1.3, 500.0):
        k = ScaleKernel(RBFKernel(ard_num_dims=2)).double()
        k.outputscale = scale
        k.base_kernel.lengthscale = torch.tensor([[0.3, 0.5]])
        found.append(k)
    return tuple(found)


def truth(pool):
    x, y = pool.X.T
    return torch.stack((torch.sin(6 * x) + y, 20 * torch.cos(4 * x * y) + 9 * y), -1)


def measure(pool, row, repeat=0, weight=1):
    generator = torch.Generator().manual_seed(1000 * int(row) + repeat)
    noise = torch.randn(2, generator=generator, dtype=torch.float64)
    noise = noise * torch.tensor(NOISE).double() / weight**0.5
    return (truth(pool)[int(row)] + noise).tolist()


def gaussian(of=GEGEStrategy, pool=None, **options):
    known = {
        "maximize": MAXIMIZE,
        "model": kernels(),
        "noise_std": NOISE,
        "batch_size": 4,
        "beta": 4.0,
        "epsilon": (0.05, 1.0),
        "max_observations": 20,
    }
    return case_of(of).make(pool or grid_pool(), **{**known, **options})


def client_for(strategy, several="objectives", **options):
    r"""Two objectives, or one and a tracking metric."""
    client = Client(**options)
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="test")
    metrics = None
    if several == "objectives":
        client.configure_optimization(objective="y, -z")
    else:
        client.configure_optimization(objective="y")
        client.configure_tracking_metrics(["z"])
        metrics = ["y", "z"]
    ours = level_set_generation_strategy(strategy, metrics=metrics, seed=3)
    client.set_generation_strategy(ours)
    return client


def complete(client, strategy, trial, row):
    y, z = measure(strategy.pool, row)
    client.complete_trial(trial, {"y": (y, NOISE[0]), "z": (z, NOISE[1])})


def go_on(client, out=None):
    r"""Finish what is out, then run to the stop; what was asked, and the reason."""
    strategy = node_of(client).strategy
    for trial, row in (out or {}).items():
        complete(client, strategy, trial, row)
    asked = []
    while True:
        try:
            trials = client.get_next_trials(100)
        except GenerationStrategyCompleted as stop:
            return asked, str(stop)
        asked.append({i: p[POOL_INDEX] for i, p in trials.items()})
        for trial, row in asked[-1].items():
            complete(client, strategy, trial, row)


def plain(strategy):
    r"""The same run by ask and tell alone."""
    state, asked = strategy.init(3), []
    while not state.is_done:
        batch = strategy.ask(state)
        asked.append(batch.order.tolist())
        y = torch.tensor([measure(strategy.pool, row) for row in batch.order])
        yvar = torch.tensor(NOISE).double().square().expand(len(batch), -1)
        state = strategy.tell(state, batch.observe(y.double(), yvar))
    return state, asked


STORED = list(GAUSSIAN)


@pytest.mark.some(0, slow=3)
@covering("several, case", METRICS, STORED)
def test_a_client_runs_as_ask_and_tell_do(case, several):
    strategy = gaussian(case, max_repeats=1)
    client = client_for(strategy, several)
    asked, reason = go_on(client)
    state, expected = plain(strategy)
    assert [sorted(batch.values()) for batch in asked] == expected
    assert "rows decided" in reason
    ours, theirs = state_of(client).classification, state.classification
    assert ours.side.tolist() == theirs.side.tolist()
    torch.testing.assert_close(ours.mean, theirs.mean, rtol=1e-6, atol=1e-6)


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("several", METRICS)
def test_the_table_has_each_metric_with_its_interval(several):
    strategy = gaussian()
    client = client_for(strategy, several)
    go_on(client)
    table, state = level_set(client), state_of(client)
    words = {"above": "accepted", "below": "rejected", "undecided": "open"}
    sides = [words[side] for side in state.classification.side]
    assert table["side"].tolist() == sides
    assert {"accepted", "rejected"} <= set(sides)
    estimate = strategy.estimate(state)
    for c, name in enumerate(("y", "z")):
        for part in ("mean", "lower", "upper"):
            column = torch.tensor(table[f"{name}_{part}"].to_numpy())
            torch.testing.assert_close(column, getattr(estimate, part)[:, c])
    assert table["n_observations"].sum() == state.n_used
    assert table["margin"].tolist() == state.classification.mean.tolist()
    assert {"east", "north"} <= set(table.columns)


@pytest.mark.slow
def test_the_card_draws_two_metrics():
    client = client_for(gaussian())
    go_on(client)
    (card,) = client.compute_analyses([ParetoAnalysis()], display=False)
    assert card.title == "Pareto set: more y and less z"
    assert card.df.equals(level_set(client))
    figure = card.get_figure()
    keys = [trace.name for trace in figure.data if trace.showlegend is None]
    assert [key.split(" ")[0] for key in keys] == [
        "measured",
        "accepted",
        "open",
        "rejected",
    ]
    assert sum(int(key.split("(")[1][:-1]) for key in keys[1:]) == 36
    assert figure.layout.xaxis.title.text == "y"
    (swapped,) = client.compute_analyses([ParetoAnalysis(("z", "y"))], display=False)
    assert swapped.get_figure().layout.xaxis.title.text == "z"
    for metric, output in ((None, 0), ("z", 1)):
        wanted = CalibrationAnalysis(metric)
        (card,) = client.compute_analyses([wanted], display=False)
        ahead = state_of(client).calibration(output).ahead.tolist()
        assert card.df["residual"].tolist()[: len(ahead)] == ahead
        assert card.subtitle.startswith("z: ") == (metric == "z")
    one = plain_client(lse())
    node = one._generation_strategy
    missing = ParetoAnalysis().validate_applicable_state(one._experiment, node)
    assert "LSEStrategy has one: use LevelSetAnalysis" in missing


# --- storage --------------------------------------------------------------------------


def continued(path, out):
    r"""What was asked, the reason of the stop and the means, of a run from a file."""
    client = Client.load_from_json_file(path)
    asked, reason = go_on(client, out)
    return asked, reason, state_of(client).classification.mean.tolist()


def cut_run(strategy, path=None, several="objectives", **options):
    r"""Two rounds, a failure, one row of the third given out and two told; saved."""
    client = client_for(strategy, several, **options)
    for _ in range(2):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters[POOL_INDEX])
    client.mark_trial_failed(next(iter(client.get_next_trials(1))))
    told = client.get_next_trials(2)
    for trial, parameters in told.items():
        complete(client, strategy, trial, parameters[POOL_INDEX])
    out = client.get_next_trials(1)
    if path is not None:
        client.save_to_json_file(str(path))
    return client, {i: p[POOL_INDEX] for i, p in out.items()}


@pytest.mark.some(0, slow=2)
@covering(
    "several, strategy",
    METRICS,
    [
        gaussian(max_repeats=1),
        gaussian(PALStrategy, max_repeats=1),
        gaussian(model=None, n_initial=8, max_repeats=1),
    ],
)
def test_a_new_process_goes_on_as_the_old_one_would(strategy, several, tmp_path):
    path = tmp_path / "cut.json"
    client, out = cut_run(strategy, path, several)
    told = in_a_new_process(continued, str(path), out)
    asked, reason = go_on(client, out)
    assert len(asked) > 1
    assert told == (asked, reason, state_of(client).classification.mean.tolist())


@pytest.mark.slow
def test_a_reload_in_mid_round_gives_the_identical_batch(tmp_path):
    client, _ = cut_run(gaussian(batch_size=6), tmp_path / "a.json")
    again = Client.load_from_json_file(str(tmp_path / "a.json"))
    assert same_state(state_of(client), state_of(again))
    assert level_set(client).equals(level_set(again))
    ours, theirs = client.get_next_trials(100), again.get_next_trials(100)
    assert ours == theirs
    assert len(ours) == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize(
    "several", ["objectives", pytest.param("tracking", marks=pytest.mark.slow)]
)
def test_sqlite_goes_on_as_memory_does(tmp_path, several):
    storage = sqlite_storage(tmp_path / "runs.db")
    strategy = gaussian(max_repeats=1)
    client, out = cut_run(strategy, several=several, storage_config=storage)
    again = Client.load_from_database("test", storage_config=storage)
    assert same_state(state_of(client), state_of(again))
    asked, reason = go_on(again, out)
    memory, out = cut_run(strategy, several=several)
    assert go_on(memory, out) == (asked, reason)
    assert level_set(memory).equals(level_set(again))


# --- batch trials ---------------------------------------------------------------------


def batch_trial(experiment, ours, n):
    trial = experiment.new_batch_trial(generator_runs=ours.gen(experiment, n=n)[0])
    trial.mark_running(no_runner_required=True)
    return trial


def finish(trial, strategy, with_sem=True):
    records = []
    for arm, weight in trial.arm_weights.items():
        row = arm.parameters[POOL_INDEX]
        values = measure(strategy.pool, row, trial.index, weight)
        for name, value, std in zip(("y", "z"), values, NOISE, strict=True):
            record = {"trial_index": trial.index, "arm_name": arm.name, "mean": value}
            sem = std / weight**0.5 if with_sem else float("nan")
            records.append(
                {**record, "metric_name": name, "metric_signature": name, "sem": sem}
            )
    trial.experiment.attach_data(Data(df=pd.DataFrame(records)))
    trial.mark_completed()


@pytest.mark.some(2)
@pytest.mark.parametrize("case", BUDGETED + CONFIDENT)
@pytest.mark.parametrize("with_sem", [True, False])
def test_rounds_are_batch_trials_whose_weights_are_counts(case, with_sem):
    r"""The strategies of the papers: the answer is that of telling means."""
    strategy = case.make(grid_pool(3), maximize=MAXIMIZE, **case.batches)
    client = client_for(strategy)
    experiment = client._experiment
    ours = level_set_generation_strategy(strategy)
    state, n_trials = strategy.init(0), 0
    while not state.is_done:
        batch = strategy.ask(state)
        trial = batch_trial(experiment, ours, len(batch))
        weights = [trial.arm_weights[arm] for arm in trial.arms]
        assert [arm.parameters[POOL_INDEX] for arm in trial.arms] == (
            batch.indices.tolist()
        )
        assert weights == batch.counts.tolist()
        finish(trial, strategy, with_sem)
        values = [
            measure(strategy.pool, row, trial.index, weight)
            for row, weight in zip(batch.indices.tolist(), weights, strict=True)
        ]
        yvar = torch.ones(len(values), 2).double()
        y = torch.tensor(values, dtype=torch.float64)
        state = strategy.tell(state, batch.observe(y, yvar, means=True))
        n_trials += 1
    assert n_trials >= 1
    with pytest.raises(GenerationStrategyCompleted):
        ours.gen(experiment, n=10)
    found = ours.nodes_by_name[case.__name__].state(experiment)
    assert found.n_used == state.n_used
    assert found.classification.side.tolist() == state.classification.side.tolist()
    torch.testing.assert_close(
        found.classification.mean, state.classification.mean, rtol=1e-6, atol=1e-8
    )


def test_a_weighted_batch_of_a_gaussian_strategy_takes_all_its_places():
    strategy = gaussian(pool=grid_pool(2), batch_size=8, max_observations=16)
    experiment = client_for(strategy)._experiment
    ours = level_set_generation_strategy(strategy)
    trial = batch_trial(experiment, ours, 8)
    assert max(trial.arm_weights.values()) > 1
    with pytest.raises(DataRequiredError, match="8 of its 8 rows are out"):
        ours.gen(experiment, n=8)
    finish(trial, strategy)
    state = ours.nodes_by_name["GEGEStrategy"].state(experiment)
    assert state.n_used == 8
    assert state.round == 1
    weights = torch.tensor([trial.arm_weights[arm] for arm in trial.arms]).double()
    want = torch.tensor(NOISE).double().square() / weights.unsqueeze(-1)
    torch.testing.assert_close(state.history.yvar, want)


def test_noise_of_the_strategy_stands_in_for_a_missing_sem():
    strategy = gaussian()
    client = client_for(strategy)
    for trial, parameters in client.get_next_trials(100).items():
        y, z = measure(strategy.pool, parameters[POOL_INDEX])
        client.complete_trial(trial, {"y": y, "z": z})
    yvar = state_of(client).history.yvar
    want = torch.tensor(NOISE).double().square().expand(4, -1)
    torch.testing.assert_close(yvar, want)


# --- what is refused ------------------------------------------------------------------


def bare_client(strategy, objective, metrics=None):
    client = Client()
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="test")
    client.configure_optimization(objective=objective)
    ours = level_set_generation_strategy(strategy, metrics=metrics)
    client.set_generation_strategy(ours)
    return client


def test_metrics_must_be_one_per_output():
    for objective, metrics in (("y", None), ("y", ["y"]), ("a, b, c", None)):
        client = bare_client(gaussian(), objective, metrics)
        with pytest.raises(ValueError, match=r"one metric per output .* \(2\), but"):
            client.get_next_trials(1)


def test_signs_must_agree_with_the_objective():
    client = bare_client(gaussian(), "y, z")
    message = "'z' is to be minimised by the one and not by the other"
    with pytest.raises(ValueError, match=message):
        client.get_next_trials(1)


def test_a_metric_that_is_missing_keeps_the_round_open():
    strategy = gaussian(pool=Pool(grid_pool().X))
    client = client_for(strategy, "tracking")
    trials = client.get_next_trials(100)
    first, *others = trials
    for trial in others:
        complete(client, strategy, trial, trials[trial][POOL_INDEX])
    y, z = measure(strategy.pool, trials[first][POOL_INDEX])
    client.complete_trial(first, {"y": (y, 0.1)})
    assert state_of(client).round == 0
    message = rf"Trial {first} is .*for \['z'\], .*\['y'\]: .*\({first}, {{'z': \(mean"
    with pytest.raises(DataRequiredError, match=message):
        client.get_next_trials(1)
    client.attach_data(first, {"z": (z, 2.0)})
    assert state_of(client).round == 1
