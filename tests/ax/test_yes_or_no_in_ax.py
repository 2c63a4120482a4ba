r"""Experiments whose metric is yes or no, from the first trial to loading and cards."""

import math

import pytest
import torch
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.analysis_card import ErrorAnalysisCard
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    level_set,
    level_set_generation_strategy,
    run_experiment,
)
from botorch_lse.strategies import Above, Binary, GaussianProcess, Straddle, Strategy

from .test_batch_trials import batch_data, run_batch
from .test_overview import OURS, leaves
from .worlds import client_for, state_of

LINE = Pool(torch.linspace(0, 1, 21, dtype=torch.float64).view(-1, 1), names=("dose",))


def kernel():
    found = ScaleKernel(RBFKernel()).double()
    found.base_kernel.lengthscale, found.outputscale = 0.3, 4.0
    return found.requires_grad_(False)


def asking(outcome=None, **options):
    outcome = Binary() if outcome is None else outcome
    given = {"rule": Straddle(), "beta": 4.0, "batch_size": 10, "max_observations": 60}
    given |= {"model": GaussianProcess(outcome=outcome)}
    return Strategy(LINE, Above(0.75, epsilon=0.1), **given | options)


def answer(parameters):
    return float(parameters[POOL_INDEX] > 12)


def rows_of(client):
    return [
        t.arms[0].parameters[POOL_INDEX] for t in client._experiment.trials.values()
    ]


@pytest.mark.slow
def test_a_run_goes_on_after_loading_with_the_same_rows(tmp_path):
    whole = client_for(asking(max_observations=120))
    assert run_experiment(whole, answer).endswith(" evaluations")
    file = str(tmp_path / "run.json")
    client = client_for(asking(max_observations=120))
    run_experiment(client, answer, storage=file, max_trials=27)
    client = Client.load_from_json_file(file)
    run_experiment(client, answer)
    assert rows_of(client) == rows_of(whole)
    found, wanted = level_set(client), level_set(whole)
    assert found.equals(wanted)
    assert bool(((found["lower"] >= 0) & (found["upper"] <= 1)).all())
    sides = found["side"].to_numpy()
    assert not (sides[:13] == "above").any()
    assert not (sides[13:] == "below").any()
    assert {*sides} >= {"above", "below"}


def told(outcome, *values):
    client = client_for(asking(outcome, batch_size=1))
    for value in values:
        for trial in client.get_next_trials(1):
            client.complete_trial(trial, {"y": value})
    return state_of(client).observations


def test_an_answer_has_no_sem_and_a_zero_is_taken_for_none():
    found = told(None, 1, (0, None), (1, 0.0), (0, math.nan))
    assert found.y.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert found.yvar is None


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ((1, 0.1), r"no `sem` of 'y' in trial 0, as an answer has no noise of its own"),
        (0.4, r"Expected 'y' of trial 0 to be 1 or 0 with `outcome=Binary"),
    ],
)
def test_what_is_no_answer_is_refused(value, match):
    with pytest.raises(ValueError, match=match):
        told(None, value)


@pytest.mark.slow
def test_a_number_and_an_answer_are_measured_together():
    goal = Above(0.3, output="y") & Above(0.5, output="works")
    model = GaussianProcess(noise_std=(0.1, None), outcome=(None, Binary()))
    strategy = Strategy(LINE, goal, model=model, batch_size=4, max_observations=20)
    client = client_for(strategy, objective="y, works")

    def both(parameters):
        return {"y": parameters[POOL_INDEX] / 20, "works": answer(parameters)}

    run_experiment(client, both)
    assert state_of(client).observations.yvar is None
    client = client_for(strategy, objective="y, works")
    (trial,) = client.get_next_trials(1)
    client.complete_trial(trial, {"y": (0.3, 0.1), "works": 1})
    match = "no `sem` of 'y' in trial 0, as another metric is an answer: its noise is"
    with pytest.raises(ValueError, match=match):
        state_of(client)


def test_a_wrong_sem_can_be_replaced_as_the_message_says():
    client = client_for(asking(batch_size=1))
    (trial,) = client.get_next_trials(1)
    client.complete_trial(trial, {"y": (1, 0.1)})
    with pytest.raises(ValueError, match="'y': value") as refused:
        state_of(client)
    assert f"client.attach_data({trial}, " in str(refused.value)
    client.attach_data(trial, {"y": 1})
    assert state_of(client).observations.y.tolist() == [1.0]


def test_a_share_of_several_trials_counts_them():
    strategy = asking(batch_size=12, model=GaussianProcess(kernel(), outcome=Binary()))
    experiment = client_for(strategy)._experiment
    generation_strategy = level_set_generation_strategy(strategy)
    trial = run_batch(experiment, generation_strategy.gen(experiment, n=12)[0])
    weights = [*trial.arm_weights.values()]
    assert max(weights) > 1
    shares = {arm.name: (1 / n, math.nan) for arm, n in trial.arm_weights.items()}
    experiment.attach_data(batch_data(trial, shares))
    trial.mark_completed()
    found = (
        generation_strategy.nodes_by_name["ComposedStrategy"]
        .state(experiment)
        .observations
    )
    assert found.counts.tolist() == weights
    assert found.y.tolist() == pytest.approx([1 / n for n in weights])
    assert found.yvar is None


FAILS = Binary(failures="outcome")


def crashes(parameters):
    if not answer(parameters):
        raise RuntimeError("it crashed")
    return 1.0


def never(parameters):
    raise RuntimeError("it crashed")


@pytest.mark.slow
def test_a_failed_trial_is_the_answer_no():
    client = client_for(asking(FAILS, max_observations=120))
    reason = run_experiment(client, crashes, on_error="fail", max_retries=0)
    assert reason.endswith(" evaluations")
    whole = client_for(asking(FAILS, max_observations=120))
    run_experiment(whole, answer)
    assert rows_of(client) == rows_of(whole)
    assert level_set(client).equals(level_set(whole))
    assert len(state_of(client).excluded_rows) == 0


def test_attached_trials_that_failed_are_answers_too():
    client = Client()
    dose = RangeParameterConfig(name="dose", bounds=(0, 1), parameter_type="float")
    client.configure_experiment(parameters=[dose], name="attached")
    client.configure_optimization(objective="y")
    strategy = asking(FAILS, batch_size=1)
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    at = [client.attach_trial({"dose": x}) for x in (0.1, 0.2, 0.33, 0.44, 0.5)]
    for trial, finish in zip(
        at, ("fail", "nan", "fail", "nan", "give up"), strict=True
    ):
        if finish == "fail":
            client.mark_trial_failed(trial)
        elif finish == "nan":
            client.complete_trial(trial, {"y": math.nan})
        else:
            client.mark_trial_abandoned(trial)
    state = state_of(client)
    assert state.observations.indices.tolist() == [2, 4]
    assert state.observations.y.tolist() == [0.0, 0.0]
    past = state.strategy.model.history
    assert past.X.view(-1).tolist() == [0.33, 0.44]
    assert past.y.tolist() == [0.0, 0.0]
    client.attach_trial({"dose": 0.77})  # evaluated by the run, off the pool, in vain
    client.attach_trial({"dose": 0.9})
    run_experiment(client, never, on_error="fail", max_retries=0, max_trials=2)
    assert state_of(client).strategy.model.history.X.view(-1).tolist()[2:] == [0.77]
    assert state_of(client).observations.indices.tolist() == [2, 4, 18]


def test_failures_that_are_no_answers_are_asked_for_again():
    client = client_for(asking(batch_size=1))
    (trial,) = client.get_next_trials(1)
    client.mark_trial_failed(trial)
    assert len(state_of(client).observations) == 0
    client = client_for(asking(FAILS, batch_size=1))
    for spoil in (
        lambda trial: client.mark_trial_failed(trial),
        lambda trial: client.complete_trial(trial, {"y": math.nan}),
    ):
        (trial,) = client.get_next_trials(1)
        spoil(trial)
    assert state_of(client).observations.y.tolist() == [0.0, 0.0]
    (trial,) = client.get_next_trials(1)
    client.mark_trial_abandoned(trial)
    assert len(state_of(client).observations) == 2


@pytest.mark.filterwarnings("ignore")  # of Ax's own cards
def test_cards_speak_of_probabilities():
    client = client_for(asking())
    run_experiment(client, answer)
    (overview,) = client.compute_analyses(display=False)
    found = [*leaves([overview])]
    wrong = [card for card in found if isinstance(card, ErrorAnalysisCard)]
    assert not [card for card in wrong if card.name in OURS]
    cards = {card.name: card for card in found}
    asked = "probability of y above 0.75"
    assert cards["ReportAnalysis"].title == f"Report: {asked}"
    assert cards["IntervalAnalysis"].title == f"Confidence intervals: {asked}"
    figure = cards["IntervalAnalysis"].get_figure()
    assert figure.layout.yaxis.title.text == "probability of y"
    table = cards["LevelSetAnalysis"].df
    assert bool(((table["lower"] >= 0) & (table["upper"] <= 1)).all())


@pytest.mark.slow
def test_an_audited_run_goes_on_after_loading_with_the_same_rows(tmp_path):
    pool = Pool(torch.linspace(0, 2, 61, dtype=torch.float64).view(-1, 1))
    given = {"beta": 4.0, "batch_size": 10, "audit": (0.4, 0.3), "rule": Straddle()}
    model = GaussianProcess(kernel(), outcome=Binary())
    strategy = Strategy(pool, Above(0.5, epsilon=0.3), model=model, **given)
    whole, file = client_for(strategy), str(tmp_path / "run.json")
    run_experiment(whole, answer)
    assert state_of(whole).stop_reason == "audited"
    client, n = client_for(strategy), len(rows_of(whole))
    run_experiment(client, answer, storage=file, max_trials=n - 2)
    assert state_of(client).run.notes[0].claim is not None  # within the audit
    client = Client.load_from_json_file(file)
    run_experiment(client, answer)
    assert rows_of(client) == rows_of(whole)
    assert state_of(client).stop_reason == "audited"
