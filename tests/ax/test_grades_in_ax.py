r"""Experiments whose metric is a grade, from the first trial to loading and cards."""

import math

import pytest
import torch
from ax.api.client import Client
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    IntervalAnalysis,
    level_set,
    level_set_generation_strategy,
    run_experiment,
)
from botorch_lse.strategies import Above, GaussianProcess, Ordinal, Straddle, Strategy

from .test_batch_trials import batch_data, run_batch
from .worlds import client_for, state_of

LINE = Pool(torch.linspace(0, 1, 21, dtype=torch.float64).view(-1, 1), names=("dose",))
KERNEL = ScaleKernel(RBFKernel()).double().requires_grad_(False)
MODELS = {
    "learnt": GaussianProcess(outcome=Ordinal(4, at_least=2)),
    "given": GaussianProcess(
        KERNEL, outcome=Ordinal(4, at_least=2, cutpoints=(-1.0, 0.0, 1.0))
    ),
}


def asking(model="learnt", **options):
    given = {"rule": Straddle(), "beta": 4.0, "batch_size": 10, "max_observations": 20}
    return Strategy(
        LINE, Above(0.75, epsilon=0.1), model=MODELS[model], **given | options
    )


def grade(parameters):
    return float(parameters[POOL_INDEX] // 6)  # 0 to 3


def rows_of(client):
    trials = client._experiment.trials.values()
    return [trial.arms[0].parameters[POOL_INDEX] for trial in trials]


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("model", MODELS)
def test_a_run_goes_on_after_loading_with_the_same_rows(model, tmp_path):
    whole = client_for(asking(model))
    assert "20 evaluations" in run_experiment(whole, grade)
    file = str(tmp_path / "run.json")
    client = client_for(asking(model))
    run_experiment(client, grade, storage=file, max_trials=13)
    client = Client.load_from_json_file(file)
    run_experiment(client, grade)
    assert rows_of(client) == rows_of(whole)
    found, wanted = level_set(client), level_set(whole)
    assert found.equals(wanted)
    assert bool(((found["lower"] >= 0) & (found["upper"] <= 1)).all())


def test_what_is_no_grade_is_refused():
    client = client_for(asking(batch_size=1))
    (trial,) = client.get_next_trials(1)
    client.complete_trial(trial, {"y": 4})
    with pytest.raises(ValueError, match=r"to be a grade, 0 to 3"):
        state_of(client)
    client.attach_data(trial, {"y": 3})
    assert state_of(client).observations.y.tolist() == [3.0]


def test_a_mean_of_grades_is_refused():
    experiment = client_for(asking("given", batch_size=12))._experiment
    generation_strategy = level_set_generation_strategy(asking("given", batch_size=12))
    trial = run_batch(experiment, generation_strategy.gen(experiment, n=12)[0])
    assert max(trial.arm_weights.values()) > 1
    means = {arm.name: (1.0, math.nan) for arm in trial.arm_weights}
    experiment.attach_data(batch_data(trial, means))
    trial.mark_completed()
    with pytest.raises(ValueError, match="ask Ax for trials of one arm"):
        generation_strategy.nodes_by_name["ComposedStrategy"].state(experiment)


@pytest.mark.slow
def test_cards_speak_of_the_grade():
    client = client_for(asking("given"))
    run_experiment(client, grade)
    (card,) = client.compute_analyses([IntervalAnalysis()], display=False)
    assert card.title == "Confidence intervals: probability of y >= 2 above 0.75"
    figure = card.get_figure()
    assert figure.layout.yaxis.title.text == "probability of y >= 2"
