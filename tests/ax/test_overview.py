r"""What ``client.compute_analyses()`` shows without arguments."""

from dataclasses import replace

import pytest
import torch
from ax.adapter.cross_validation import cross_validate
from ax.analysis.healthcheck.predictable_metrics import PredictableMetricsAnalysis
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.analysis_card import AnalysisCardGroup, ErrorAnalysisCard

from botorch_lse.ax import record_costs

from .worlds import POOL_INDEX, client_for, complete, grid_pool, lse, state_of

OURS = [
    "ReportAnalysis",
    "LevelSetAnalysis",
    "ProbabilityAnalysis",
    "SliceAnalysis",
    "IntervalAnalysis",
]
OURS += ["BatchAnalysis", "ProgressAnalysis", "CalibrationAnalysis"]


def leaves(cards):
    for card in cards:
        if isinstance(card, AnalysisCardGroup):
            yield from leaves(card.children)
        else:
            yield card


def played(rounds, has_costs=False):
    pool = grid_pool()
    if has_costs:
        pool = replace(pool, costs=1 + pool.X[:, 0])
    strategy = lse(pool, batch_size=4)
    client = client_for(strategy)
    for _ in range(rounds):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters, trial)
    if has_costs:
        record_costs(client)
    return client


@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore")  # of Ax's own cards
@pytest.mark.parametrize("rounds", [0, 4])
def test_the_overview_begins_with_our_cards_and_has_no_errors(rounds):
    (overview,) = played(rounds).compute_analyses(display=False)
    ours, *others = overview.children
    assert ours.title == "The answer about the pool"
    assert [card.name for card in ours.children] == OURS
    assert f"{4 * rounds} evaluations" in ours.subtitle
    assert others or rounds == 0
    found = [card for card in leaves([overview]) if isinstance(card, ErrorAnalysisCard)]
    if rounds:
        assert [card.name for card in found] == []
    assert not {card.name for card in found} & {*OURS}


def test_what_is_recorded_beside_the_metrics_is_no_error_of_predictions():
    # Of costs there are no predictions, with which Ax would compare them.
    client = played(2, has_costs=True)
    assert "cost" in client._experiment.lookup_data().metric_names
    (card,) = client.compute_analyses([PredictableMetricsAnalysis()], display=False)
    assert not isinstance(card, ErrorAnalysisCard)
    assert card.name == "PredictableMetricsAnalysis"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ax's own cards
def test_a_notebook_can_show_it_without_graphviz(monkeypatch):
    r"""Ax draws its generation strategy by a program that may not be installed."""
    client, found = played(2), {"dot": "/usr/bin/dot"}
    monkeypatch.setattr("shutil.which", lambda name: found.get(name))
    (overview,) = client.compute_analyses(display=False)
    assert "GenerationStrategyGraph" in [card.name for card in leaves([overview])]
    found.clear()
    (overview,) = client.compute_analyses(display=False)
    assert "GenerationStrategyGraph" not in [card.name for card in leaves([overview])]
    assert "Level set: y above 0.5" in overview._repr_html_()


@pytest.mark.filterwarnings("ignore")
def test_without_a_strategy_of_ours_it_is_axs_own():
    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name="x", bounds=(0, 1), parameter_type="float")
        ],
        name="other",
    )
    client.configure_optimization(objective="y")
    for trial, parameters in client.get_next_trials(2).items():
        client.complete_trial(trial, {"y": parameters["x"]})
    (overview,) = client.compute_analyses(display=False)
    assert all(card.name != "LevelSetAnalyses" for card in overview.children)


@pytest.mark.slow
def test_cross_validation_is_prediction_without_the_value():
    client = played(3)
    state = state_of(client)
    adapter = client._generation_strategy.adapter
    results = cross_validate(adapter)
    assert len(results) == 12
    for result in results:
        row = result.observed.features.parameters[POOL_INDEX]
        value = float(result.observed.data.means[0])
        data = state.observations
        here = (data.indices == row) & ((data.y - value).abs() < 1e-9)
        rest = data.select((~here).nonzero().view(-1))
        mean, sigma = state.predict(state.strategy.pool.X[[row]], data=rest)
        assert result.predicted.means[0] == pytest.approx(float(mean), abs=1e-8)
        found = float(result.predicted.covariance[0, 0])
        assert found == pytest.approx(float(sigma) ** 2, abs=1e-8)


def test_predicting_from_all_data_is_predicting():
    state = state_of(played(3))
    X = torch.rand(4, 2, dtype=torch.float64)
    for one, other in zip(
        state.predict(X), state.predict(X, data=state.observations), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-9)
