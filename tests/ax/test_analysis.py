from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from ax.adapter.registry import Generators
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    BatchAnalysis,
    CalibrationAnalysis,
    IntervalAnalysis,
    LevelSetAnalysis,
    ParetoAnalysis,
    ProbabilityAnalysis,
    ProgressAnalysis,
    SliceAnalysis,
    level_set,
    level_set_content,
)
from botorch_lse.papers import PALStrategy
from botorch_lse.plotting import plot_batches, plot_progress, plot_slices
from botorch_lse.strategies import (
    Above,
    Below,
    GaussianProcess,
    LabelAudit,
    Levels,
    MELKLinearStrategy,
    Strategy,
    TruVaRStrategy,
)
from tests.registry import travel

from .worlds import (
    client_for,
    complete,
    grid_pool,
    kernel,
    lse,
    node_of,
    state_of,
    truth,
)

mpl.use("Agg")


CARDS = [
    LevelSetAnalysis(),
    IntervalAnalysis(),
    SliceAnalysis(),
    ProbabilityAnalysis(),
    BatchAnalysis(),
    ProgressAnalysis(),
]


def midway(strategy):
    r"""Two rounds, and one that is out."""
    client = client_for(strategy)
    for _ in range(2):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
    out = client.get_next_trials(100)
    return client, out


def card_of(client, analysis):
    (card,) = client.compute_analyses([analysis], display=False)
    return card


@pytest.mark.some(0, slow=9)
@pytest.mark.parametrize("analysis", CARDS, ids=lambda a: type(a).__name__)
def test_each_picture_is_a_card_before_and_during_a_run(analysis):
    fresh = client_for(lse())
    running, _ = midway(lse())
    for client in (fresh, running):
        card = card_of(client, analysis)
        assert card.name == type(analysis).__name__
        assert "of 36 rows decided" in card.subtitle
        assert len(card.get_figure().data) > 0
        assert len(card.df) > 0


@pytest.mark.parametrize(
    "analysis", [*CARDS, CalibrationAnalysis()], ids=lambda a: type(a).__name__
)
def test_a_card_says_what_is_missing(analysis):
    client = client_for(lse())
    sobol = GenerationNode("S", [GeneratorSpec(Generators.SOBOL)])
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol]))
    assert "to hold a LevelSetNode" in card_of(client, analysis).blob


@pytest.mark.slow
def test_matplotlib_draws_the_frame_of_a_card():
    client, _ = midway(lse())
    slices = card_of(client, SliceAnalysis()).df
    likely = card_of(client, ProbabilityAnalysis()).df
    batches = card_of(client, BatchAnalysis()).df
    progress = card_of(client, ProgressAnalysis()).df
    for figure in (
        plot_slices(slices),
        plot_slices(likely, "probability_above"),
        plot_batches(batches),
        plot_progress(progress),
    ):
        figure.canvas.draw()
        assert any(ax.has_data() for ax in figure.axes)


@pytest.mark.slow
def test_the_calibration_is_a_card_with_what_it_says():
    card = card_of(client_for(lse()), CalibrationAnalysis())
    assert card.subtitle == "Nothing was predicted before it was measured."
    client, _ = midway(lse())
    card = card_of(client, CalibrationAnalysis())
    found = state_of(client).calibration()
    assert card.subtitle == str(found)
    assert "of the last 3 values lay within" in card.subtitle
    assert card.df["residual"].tolist() == [*found.ahead.tolist(), *found.out.tolist()]
    assert len(card.get_figure().data) > 0


def test_a_calibration_needs_a_gaussian_process_and_one_of_its_metrics():
    linear = MELKLinearStrategy(grid_pool(), 0.5, noise_std=0.1)
    blob = card_of(client_for(linear), CalibrationAnalysis()).blob
    assert "Expected a strategy on a Gaussian process" in blob
    blob = card_of(client_for(lse()), CalibrationAnalysis("z")).blob
    assert "Expected `metric`" in blob


@pytest.mark.slow
def test_the_intervals_card_holds_the_answer():
    client, _ = midway(lse())
    pd.testing.assert_frame_equal(
        card_of(client, IntervalAnalysis()).df, level_set(client)
    )


def test_the_batches_show_what_is_out():
    client, out = midway(lse())
    frame = card_of(client, BatchAnalysis()).df
    rows = [p["pool_index"] for p in out.values()]
    counts = np.bincount(rows, minlength=36)
    assert frame["n_upcoming"].tolist() == counts.tolist()
    assert frame["n_observations"].sum() == 6
    assert sorted(frame["round"].dropna().unique()) == [0, 1]


@pytest.mark.slow
def test_progress_has_one_line_a_round_and_the_score():
    strategy = lse()
    client, _ = midway(strategy)
    above = truth(strategy.pool).numpy() > 0.5
    card = card_of(client, ProgressAnalysis(truth=above))
    assert card.df["evaluations"].tolist() == [0, 3, 6]
    last = state_of(client).classification
    assert card.df["undecided"].iloc[-1] == int(last.undecided.sum())
    guess = last.best_guess.numpy()
    right = (guess & above).sum()
    assert card.df["f1"].iloc[-1] == pytest.approx(
        2 * right / (guess.sum() + above.sum())
    )


def test_progress_sums_the_costs():
    base = grid_pool()
    pool = Pool(base.X, names=base.names, costs=1 + 3 * base.X[:, 0])
    client, _ = midway(lse(pool))
    rows = state_of(client).history.indices
    frame = card_of(client, ProgressAnalysis()).df
    assert frame["cost"].iloc[-1] == pytest.approx(float(pool.costs[rows].sum()))


@pytest.mark.slow
def test_progress_knows_costs_that_depend_on_the_row_before():
    settings = {"model": kernel(), "noise_std": 0.1, "beta": 4.0, "batch_size": 2}
    strategy = TruVaRStrategy(grid_pool(), 0.5, cost=travel, **settings)
    client = client_for(strategy)
    for _ in range(3):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
    frame = card_of(client, ProgressAnalysis()).df
    assert frame["cost"].iloc[-1] == pytest.approx(strategy.spent(state_of(client)))


def weighted(strategy):
    pool = strategy.pool
    weights = torch.linspace(1, 2, len(pool))
    return replace(strategy, pool=Pool(pool.X, names=pool.names, weights=weights))


@pytest.mark.slow
def test_cards_and_table_say_how_much_is_above():
    client, _ = midway(strategy := weighted(lse()))
    state = state_of(client)
    content = level_set_content(client)
    assert content == state.content()
    assert level_set(client).attrs["content"] == str(content)
    assert str(content) in card_of(client, LevelSetAnalysis()).subtitle
    figure = card_of(client, LevelSetAnalysis()).get_figure()
    assert "of the pool is above" in figure.layout.title.text.replace("<br>", " ")
    assert strategy.pool.is_weighted


@pytest.mark.slow
def test_cards_of_rows_that_count_alike_say_nothing_of_it():
    client, _ = midway(lse())
    assert "is above" not in card_of(client, LevelSetAnalysis()).subtitle
    assert level_set_content(client).lower >= 0


@pytest.mark.slow
def test_axes_of_one_input_have_the_metric_and_whole_rounds():
    x = torch.linspace(0, 1, 7, dtype=torch.float64).unsqueeze(-1)
    model = ScaleKernel(RBFKernel()).double()
    client = client_for(lse(Pool(x, names=["depth [m]"]), model=model))
    for _ in range(2):
        for trial in client.get_next_trials(100):
            client.complete_trial(trial, {"y": (0.5, 0.1)})
    client.get_next_trials(100)
    figure = card_of(client, ProbabilityAnalysis()).get_figure()
    assert figure.layout.xaxis.title.text == "depth [m]"
    assert figure.layout.yaxis.title.text == "y, mean"
    axis = card_of(client, BatchAnalysis()).get_figure().layout.yaxis
    assert axis.title.text == "round"
    assert axis.ticktext[:2] == ("0", "1")


def test_no_single_metric_is_written_at_the_intervals_of_a_pareto_set():
    pool = grid_pool()
    settings = {"model": kernel(), "noise_std": 0.1, "batch_size": 2}
    strategy = PALStrategy(pool, maximize=[True, False], epsilon=0.1, **settings)
    client = client_for(strategy, objective="y, -z")
    figure = card_of(client, IntervalAnalysis()).get_figure()
    assert figure.layout.yaxis.title.text == "distance from another answer"


def test_probabilities_of_classes_say_of_which():
    model = GaussianProcess(kernel(), noise_std=0.1)
    client = client_for(Strategy(grid_pool(), Levels([-0.5, 0.5]), model=model))
    figure = card_of(client, ProbabilityAnalysis()).get_figure()
    assert figure.layout.coloraxis.colorbar.title.text == "probability of class 2"


@pytest.mark.some(1)
@pytest.mark.parametrize("card", CARDS, ids=lambda card: type(card).__name__)
def test_labels_of_a_region_have_their_cards(card):
    region = Above(0.5) & Below(0.3, output=1)
    labels = LabelAudit(grid_pool(), ["above"] * 36, region, noise_std=0.1)
    client = client_for(labels, objective="y, z")
    for trial in client.get_next_trials(1):
        client.complete_trial(trial, {"y": 2.0, "z": 0.0})
    assert card_of(client, card).title.endswith("y above 0.5 and z at most 0.3")
    node = node_of(client)
    objection = ParetoAnalysis().objection(node, client._experiment)
    assert "LabelAudit predicts none: use LevelSetAnalysis" in objection
