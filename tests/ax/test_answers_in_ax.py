import pandas as pd
import pytest
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.exceptions.core import DataRequiredError
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetAnalysis,
    LevelSetGlobalStoppingStrategy,
    LevelSetNode,
    level_set,
    pool_parameters,
)
from botorch_lse.strategies import TruVaRStrategy

from . import several
from .worlds import client_for, complete, go_on, grid_pool, lse, node_of, state_of


def some_rounds(strategy, n_rounds=2):
    client = client_for(strategy)
    for _ in range(n_rounds):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
    return client


def test_the_answer_is_the_users_table_with_columns_beside_it():
    base = grid_pool()
    table = pd.DataFrame({"east": base.X[:, 0], "north": base.X[:, 1]})
    table["site"] = [f"site {i}" for i in range(36)]
    table.index = range(100, 136)
    pool = Pool(base.X, table=table)
    client = some_rounds(lse(pool))
    answer = level_set(client)
    assert list(answer.columns) == [
        "east", "north", "site", "side", "probability_above", "mean", "sigma",
        "lower", "upper", "n_observations",
    ]  # fmt: skip
    assert answer.index.equals(table.index)
    assert answer["n_observations"].sum() == 6
    again = level_set(client._experiment, client._generation_strategy)
    assert again.equals(answer)


def test_the_answer_before_any_data_is_undecided():
    answer = level_set(client_for(lse(model=None)))
    assert (answer["side"] == "undecided").all()
    assert (answer["n_observations"] == 0).all()


def test_an_open_round_enters_when_it_is_complete():
    strategy = lse()
    client = client_for(strategy)
    trials = client.get_next_trials(100)
    (first, *rest) = trials.items()
    before = level_set(client)
    complete(client, strategy, *first)
    during = level_set(client)
    assert during["n_observations"].sum() == 1
    assert during["mean"].equals(before["mean"])
    for trial in rest:
        complete(client, strategy, *trial)
    assert not level_set(client)["mean"].equals(before["mean"])


@pytest.mark.slow
def test_the_analysis_is_a_plotly_card():
    client = some_rounds(lse())
    (card,) = client.compute_analyses([LevelSetAnalysis()], display=False)
    assert card.name == "LevelSetAnalysis"
    assert "of 36 rows decided; 6 evaluations" in card.subtitle
    pd.testing.assert_frame_equal(card.df, level_set(client))
    names = [trace.name for trace in card.get_figure().data]
    assert "measured (6)" in names


def test_the_analysis_says_what_is_missing():
    client = client_for(lse())
    sobol = GenerationNode("S", [GeneratorSpec(Generators.SOBOL)])
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol]))
    (card,) = client.compute_analyses([LevelSetAnalysis()], display=False)
    assert "to hold a LevelSetNode" in card.blob


def test_the_stopping_strategy_gives_the_reason_in_words():
    strategy = lse(max_observations=6)
    client = some_rounds(strategy, 1)
    stopping = LevelSetGlobalStoppingStrategy(client._generation_strategy)
    assert stopping.should_stop_optimization(client._experiment)[0] is False
    for trial, parameters in client.get_next_trials(100).items():
        complete(client, strategy, trial, parameters)
    stop, reason = stopping.should_stop_optimization(client._experiment)
    assert stop is True
    assert "of 36 rows decided; 6 evaluations (budget)" in reason


@pytest.mark.slow
def test_the_reason_names_the_confidence_where_one_is_claimed():
    strategy = lse(beta=None, delta=0.1, epsilon=1.0, batch_size=6)
    client = client_for(strategy)
    _, why = go_on(client, strategy, {})
    state = state_of(client)
    assert state.stop_reason == "decided"
    assert why == f"36 of 36 rows decided at delta = 0.1; {state.n_used} evaluations"
    stopping = LevelSetGlobalStoppingStrategy(client._generation_strategy)
    stop_now, reason = stopping.should_stop_optimization(client._experiment)
    assert (stop_now, reason) == (True, why)


@pytest.mark.slow
def test_the_end_of_an_audit_is_said_everywhere():
    strategy = lse(epsilon=20.0, audit=(0.2, 0.1), batch_size=6)
    client = client_for(strategy)
    _, why = go_on(client, strategy, {})
    state = state_of(client)
    assert state.stop_reason in ("audited", "all above so far")
    assert why.endswith(f"({state.stop_reason})")
    table = level_set(client)
    assert table.attrs["stop_reason"] == state.stop_reason
    assert "Audited: with probability" in table.attrs["guarantee"]
    (card,) = client.compute_analyses([LevelSetAnalysis()], display=False)
    assert "Audited: with probability" in card.subtitle
    assert f"({state.stop_reason})" in card.subtitle


def test_a_sobol_node_may_come_first():
    strategy = lse()
    node = LevelSetNode(strategy)
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, {"seed": 0})],
        transition_criteria=[MinTrials(threshold=4, transition_to=node.name)],
    )
    client = Client()
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="s")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol, node]))
    for trial, parameters in client.get_next_trials(4).items():
        complete(client, strategy, trial, parameters)
    # Ax fixes the number of trials before it goes on to the next node.
    with pytest.raises(DataRequiredError, match="Ask for at most 3 trials now"):
        client.get_next_trials(100)
    trials = client.get_next_trials(100)
    assert len(trials) == 3
    sobol_rows = sorted(
        client._experiment.trials[i].arm.parameters[POOL_INDEX] for i in range(4)
    )
    state = node.state(client._experiment)
    assert state.history.indices.tolist() == sobol_rows
    assert level_set(client)["n_observations"].sum() == 4


def test_two_level_set_nodes_hand_over():
    strategy = lse(batch_size=2)
    first = LevelSetNode(
        strategy,
        name="first",
        transition_criteria=[MinTrials(threshold=2, transition_to="second")],
    )
    second = LevelSetNode(lse(batch_size=3), name="second")
    client = client_for(strategy)
    client.set_generation_strategy(GenerationStrategy(nodes=[first, second]))
    for trial, parameters in client.get_next_trials(100).items():
        complete(client, strategy, trial, parameters)
    asked = client.get_next_trials(3)  # Ax takes the limit of the node before
    asked |= client.get_next_trials(3)
    assert len(asked) == 3
    assert level_set(client)["n_observations"].sum() == 2


def test_another_node_of_the_same_name_is_refused():
    strategy = lse()
    client = client_for(strategy)
    sobol = GenerationNode("LSEStrategy", [GeneratorSpec(Generators.SOBOL)])
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol]))
    client.get_next_trials(1)
    again = GenerationStrategy(nodes=[LevelSetNode(strategy)])
    client.set_generation_strategy(again)
    with pytest.raises(ValueError, match="another node named 'LSEStrategy'"):
        client.get_next_trials(1)


def test_a_reset_copy_starts_as_the_original():
    client = client_for(lse())
    copy = client._generation_strategy.clone_reset()
    first = client.get_next_trials(3)
    other = client_for(lse())
    other.set_generation_strategy(copy)
    assert other.get_next_trials(3) == first


def test_a_round_that_is_abandoned_as_a_whole_is_over():
    client = client_for(lse())
    for trial in client.get_next_trials(100):
        client.mark_trial_abandoned(trial)
    state = state_of(client)
    assert (state.round, state.n_used, len(state.history)) == (1, 3, 0)
    assert len(client.get_next_trials(100)) == 3


def test_the_stock_overview_of_ax_still_works():
    client = some_rounds(lse())
    assert len(client.summarize()) == 6


def test_several_metrics_need_names():
    strategy = lse()
    client = client_for(strategy, "y, z")
    node = LevelSetNode(strategy, metrics=["y"])
    client.set_generation_strategy(GenerationStrategy(nodes=[node]))
    for trial, parameters in client.get_next_trials(100).items():
        complete(client, strategy, trial, parameters)
    assert node_of(client) is node
    assert len(state_of(client).history) == 3


def test_a_strategy_is_no_generation_strategy():
    client = client_for(lse())
    message = r"`generation_strategy` to hold a LevelSetNode, but got LSEStrategy\. .*"
    remedy = r"level_set_generation_strategy\(strategy\)"
    with pytest.raises(ValueError, match=message + remedy):
        LevelSetGlobalStoppingStrategy(lse())
    with pytest.raises(ValueError, match=message + remedy):
        level_set(client._experiment, lse())


def test_a_strategy_says_what_it_gives_and_what_it_costs():
    one, two = lse(), several.make("APEStrategy")
    assert (one.n_outputs, one.directions, one.can_predict) == (1, None, True)
    assert (two.n_outputs, len(two.directions), two.can_predict) == (2, 2, False)
    assert not one.has_costs
    priced = Pool(one.pool.X, costs=1 + one.pool.X[:, 0])
    assert lse(priced).has_costs
    assert not lse(priced).costs_depend_on_previous
    way = TruVaRStrategy(grid_pool(), 0.5, noise_std=0.1, cost=lambda _, rows: rows + 1)
    assert way.has_costs
    assert way.costs_depend_on_previous
