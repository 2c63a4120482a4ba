r"""Regions through Ax: metrics by name, constraints as the goal, storage, answers."""

import pytest
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from botorch.models import ModelListGP, SingleTaskGP
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    BatchAnalysis,
    IntervalAnalysis,
    LevelSetAnalysis,
    ProbabilityAnalysis,
    ProgressAnalysis,
    SliceAnalysis,
    goal_from_constraints,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
)
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    GaussianProcess,
    Levels,
    Straddle,
    Strategy,
)

from .worlds import node_of, same_state, state_of

POOL = Pool(torch.linspace(0, 10, 12).unsqueeze(-1).double())
X = POOL.X[:, 0]
TRUTH = {"zinc": X.sin(), "lead": (X / 2).cos()}
REGION = Above(0.2, output="zinc") & Below(0.5, output="lead")
MODEL = GaussianProcess(RBFKernel().double(), noise_std=0.01)


def values_at(row):
    return {name: (float(y[row]), 0.01) for name, y in TRUTH.items()}


def measure(parameters):
    return values_at(parameters[POOL_INDEX])


def build(goal=REGION, **options):
    return Strategy(POOL, goal, model=MODEL, batch_size=2, **options)


def client_for(strategy, constraints=None, **options):
    client = Client(**options)
    client.configure_experiment(parameters=pool_parameters(POOL), name="test")
    client.configure_optimization(objective="cost", outcome_constraints=constraints)
    client.configure_tracking_metrics(["zinc", "lead"])
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=3))
    return client


@pytest.mark.slow
def test_metrics_are_those_that_the_goal_names(tmp_path):
    strategy, path = build(), tmp_path / "soil.json"
    client = client_for(strategy)
    assert node_of(client).metric_names(client._experiment) == ("zinc", "lead")
    for trial, parameters in client.get_next_trials(10).items():
        client.complete_trial(trial, measure(parameters))
    client.save_to_json_file(str(path))
    again = Client.load_from_json_file(str(path))
    for one in (client, again):
        reason = run_experiment(one, measure, storage=tmp_path / f"{id(one)}.json")
        assert reason.startswith("decided") or "decided" in reason
    assert same_state(state_of(client), state_of(again))
    frame = level_set(again)
    inside = (TRUTH["zinc"] > 0.2) & (TRUTH["lead"] <= 0.5)
    assert (frame["side"] == "above").tolist() == inside.tolist()
    for name, y in TRUTH.items():
        assert (frame[f"{name}_lower"].to_numpy() <= y.numpy() + 1e-9).all()
        assert (frame[f"{name}_upper"].to_numpy() >= y.numpy() - 1e-9).all()


def test_it_is_the_run_of_ask_and_tell():
    strategy = build()
    client = client_for(strategy)
    asked = []
    while True:
        try:
            trials = client.get_next_trials(10)
        except GenerationStrategyCompleted:
            break
        asked.append(sorted(p[POOL_INDEX] for p in trials.values()))
        for trial, parameters in trials.items():
            client.complete_trial(trial, measure(parameters))
    state, wanted = strategy.init(3), []
    while not state.is_done:
        batch = strategy.ask(state)
        wanted.append(batch.order.tolist())
        y = torch.stack([y[batch.order] for y in TRUTH.values()], dim=-1)
        state = strategy.tell(state, batch.observe(y, torch.full_like(y, 1e-4)))
    assert asked == [sorted(rows) for rows in wanted]


def test_constraints_are_a_region():
    client = client_for(build(), ["zinc >= 0.2", "lead <= 0.5"])
    assert goal_from_constraints(client) == REGION
    with_accuracy = goal_from_constraints(client, {"zinc": 0.05})
    assert with_accuracy.accuracies == (0.05, 0.0)
    client = client_for(build(), ["2 * zinc <= 0.5"])
    assert goal_from_constraints(client) == Below(0.25, output="zinc")


@pytest.mark.parametrize(
    ("constraints", "epsilon", "message"),
    [
        (None, None, "`outcome_constraints`, but it has none"),
        (["zinc >= 0.9 * baseline"], None, "relative to a baseline"),
        (["zinc + lead <= 1.0"], None, "to be about one metric"),
        (["zinc >= 0.2"], {"lead": 0.1}, "`epsilon` for metrics with a constraint"),
    ],
)
def test_constraints_that_are_no_region_are_refused(constraints, epsilon, message):
    client = Client()
    client.configure_experiment(parameters=pool_parameters(POOL), name="soil")
    client.configure_optimization(objective="cost", outcome_constraints=constraints)
    with pytest.raises(ValueError, match=message):
        goal_from_constraints(client, epsilon)


def test_constraints_that_no_goal_uses_are_not_ignored_in_silence():
    strategy = build(Above(0.2, output="zinc"))
    client = client_for(strategy, ["lead <= 0.5"])
    with pytest.warns(UserWarning, match=r"`outcome_constraints` .*lead.* are ignored"):
        client.get_next_trials(1)
    client = client_for(build(), ["zinc >= 0.2", "lead <= 0.5"])
    assert client.get_next_trials(1)  # the goal uses them: no warning


def test_metrics_that_the_goal_does_not_name_are_refused():
    client = client_for(build())
    ours = level_set_generation_strategy(build(), metrics=["zinc", "gold"])
    client.set_generation_strategy(ours)
    with pytest.raises(ValueError, match="those that the strategy's `goal` names"):
        client.get_next_trials(1)


@pytest.mark.parametrize(
    "goal",
    [
        REGION | ~Between(0.1, 0.4, output="zinc"),
        Above(tuple(X.tolist()), output="zinc"),
        Levels((0.1, 0.4), output=1),
        Below(0.3),
    ],
    ids=repr,
)
def test_regions_are_stored_by_their_parts(goal):
    strategy = build(goal, rule=Straddle())
    again = decode_strategy(encode_strategy(strategy), POOL)
    assert again.goal == goal
    assert again.ask(again.init()).order.tolist() == (
        strategy.ask(strategy.init()).order.tolist()
    )


@pytest.mark.slow
def test_correlated_metrics_are_learnt_together_and_resumed(tmp_path):
    model = GaussianProcess(noise_std=0.01, correlated=True)
    strategy, path = (
        Strategy(POOL, REGION, model=model, batch_size=2),
        tmp_path / "c.json",
    )
    client = client_for(strategy)
    for _ in range(4):
        for trial, parameters in client.get_next_trials(2).items():
            client.complete_trial(trial, measure(parameters))
    client.save_to_json_file(str(path))
    again = Client.load_from_json_file(str(path))
    assert same_state(state_of(client), state_of(again))
    for one in (client, again):
        run_experiment(one, measure, storage=tmp_path / f"{id(one)}.json", max_trials=4)
    assert same_state(state_of(client), state_of(again))
    mean = level_set(again)["zinc_mean"].to_numpy()
    assert mean == pytest.approx(TRUTH["zinc"].numpy(), abs=0.2)


@pytest.mark.slow
def test_single_outputs_are_measured_as_trials_and_resumed(tmp_path):
    pool = POOL.at_outputs(("zinc", "lead"), costs=(1.0, 2.0))
    strategy, path = (
        Strategy(pool, REGION, model=MODEL, batch_size=2),
        tmp_path / "c.json",
    )
    client = Client()
    client.configure_experiment(parameters=pool_parameters(pool), name="test")
    client.configure_optimization(objective="assay")
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=3))

    def measure_one(parameters):
        row = parameters[POOL_INDEX]
        metal = ("zinc", "lead")[row // len(POOL)]
        return {"assay": (float(TRUTH[metal][row % len(POOL)]), 0.01)}

    run_experiment(client, measure_one, storage=path, max_trials=6)
    again = Client.load_from_json_file(str(path))
    assert same_state(state_of(client), state_of(again))
    assert "decided" in run_experiment(again, measure_one, storage=path)
    frame = level_set(again)
    inside = (TRUTH["zinc"] > 0.2) & (TRUTH["lead"] <= 0.5)
    assert (frame["side"] == "above").tolist() == inside.tolist()
    assert int(frame["n_observations"].sum()) == state_of(again).n_used
    cards = again.compute_analyses([LevelSetAnalysis(), SliceAnalysis()], display=False)
    assert [card.name for card in cards] == ["LevelSetAnalysis", "SliceAnalysis"]


CARDS = [
    LevelSetAnalysis,
    IntervalAnalysis,
    SliceAnalysis,
    ProbabilityAnalysis,
]


@pytest.mark.some(2)
@pytest.mark.parametrize("card", CARDS)
def test_cards_show_the_region(card):
    client = client_for(build())
    for trial, parameters in client.get_next_trials(10).items():
        client.complete_trial(trial, measure(parameters))
    (shown,) = client.compute_analyses([card()], display=False)
    assert {"above", "below", "undecided"} >= {*shown.df["side"]}


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("noise_std", [0.01, None])
@pytest.mark.parametrize("rounds", [1, 4])
def test_axs_own_cards_have_no_errors(noise_std, rounds, caplog):
    r"""Also before a model is fitted; predictions are of each metric."""
    model = MODEL if noise_std else GaussianProcess(n_initial=6)
    strategy = Strategy(POOL, REGION, model=model, batch_size=2)
    client = Client()
    client.configure_experiment(parameters=pool_parameters(POOL), name="test")
    client.configure_optimization("zinc", outcome_constraints=["lead <= 0.5"])
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=3))
    for _ in range(rounds):
        for trial, parameters in client.get_next_trials(2).items():
            client.complete_trial(trial, measure(parameters))
    caplog.clear()
    assert client.compute_analyses(display=False)
    assert "Traceback" not in caplog.text
    (found,) = client.predict([{POOL_INDEX: 3}])
    assert found.keys() == {"zinc", "lead"}
    if rounds > 1:
        state = state_of(client)
        means, sigmas = state.predict(POOL.X[3:4])
        for j, name in enumerate(("zinc", "lead")):
            assert found[name] == pytest.approx(
                (float(means[0, j]), float(sigmas[0, j]))
            )


@pytest.mark.slow
def test_single_outputs_are_predicted_each_at_its_rows():
    pool = POOL.at_outputs(("zinc", "lead"), costs=(1.0, 2.0))
    strategy = Strategy(pool, REGION, model=MODEL, batch_size=4)
    client = Client()
    client.configure_experiment(parameters=pool_parameters(pool), name="test")
    client.configure_optimization(objective="assay")
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=3))
    for _ in range(5):
        for trial, parameters in client.get_next_trials(4).items():
            row = parameters[POOL_INDEX]
            metal = ("zinc", "lead")[row // len(POOL)]
            value = (float(TRUTH[metal][row % len(POOL)]), 0.01)
            client.complete_trial(trial, {"assay": value})
    for j, metal in enumerate(TRUTH):
        (found,) = client.predict([{POOL_INDEX: 5 + j * len(POOL)}])
        mean, _ = state_of(client).predict(POOL.X[5:6])
        assert found["assay"][0] == pytest.approx(float(mean[0, j]))
        assert found["assay"][0] == pytest.approx(float(TRUTH[metal][5]), abs=0.2)


@pytest.mark.some(1)
@pytest.mark.parametrize("card", [BatchAnalysis, ProgressAnalysis])
def test_cards_show_how_the_run_goes(card):
    client = client_for(build())
    for _ in range(2):
        for trial, parameters in client.get_next_trials(10).items():
            client.complete_trial(trial, measure(parameters))
    (shown,) = client.compute_analyses([card()], display=False)
    assert len(shown.df) > 0
    assert "Error" not in shown.name


@pytest.mark.slow
def test_a_run_that_was_cut_off_goes_on_from_its_file(tmp_path):
    whole, cut, path = client_for(build()), client_for(build()), tmp_path / "cut.json"
    reason = run_experiment(whole, measure, storage=tmp_path / "whole.json")
    run_experiment(cut, measure, storage=path, max_trials=5)
    again = Client.load_from_json_file(str(path))
    assert run_experiment(again, measure, storage=path) == reason
    assert same_state(state_of(again), state_of(whole))
    assert level_set(again).equals(level_set(whole))


def test_a_list_of_fitted_models_is_not_stored_in_silence():
    models = [SingleTaskGP(POOL.X / 10, y.unsqueeze(-1)) for y in TRUTH.values()]
    model = GaussianProcess(ModelListGP(*models), noise_std=0.01)
    strategy = Strategy(POOL, REGION, model=model)
    with pytest.raises(ValueError, match="storable, but a fixed ModelListGP is not"):
        encode_strategy(strategy)
