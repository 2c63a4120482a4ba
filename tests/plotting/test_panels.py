import dataclasses
import itertools

import matplotlib as mpl
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError

from botorch_lse import Observations, Pool
from botorch_lse.plotting import (
    batches_figure,
    batches_frame,
    plot_batches,
    plot_level_set,
    plot_progress,
    plot_slices,
    progress_figure,
    progress_frame,
    slices_figure,
    slices_frame,
)
from botorch_lse.plotting.pictures import COLOURS, LINES, PROBABILITY_SCALE, ROUND_MAP
from botorch_lse.strategies import MELKStrategy
from tests.covering import covering
from tests.plotting.test_plotting import answer, legend, lightness
from tests.strategies import runs

mpl.use("Agg")


def cube(side=5, d=3):
    x = torch.linspace(0, 2, side, dtype=torch.float64)
    return Pool(torch.cartesian_prod(*[x] * d), names=["heat", "time", "acid"][:d])


def scattered(n=200, d=5):
    generator = torch.Generator().manual_seed(0)
    return Pool(torch.rand(n, d, generator=generator, dtype=torch.float64))


def seen(*rows, rounds=None):
    labels = torch.arange(len(rows)) if rounds is None else torch.tensor(rounds)
    return Observations(torch.tensor(rows), torch.zeros(len(rows)), round=labels)


# --- slices -----------------------------------------------------------------------


def test_a_slice_of_a_grid_holds_the_rows_that_share_the_other_inputs():
    pool = cube()
    frame = slices_frame(answer(pool), seen(31, 31), anchor=31)
    pairs = list(itertools.combinations(range(3), 2))
    for panel, (i, j) in enumerate(pairs):
        part = frame[frame["panel"] == panel]
        (other,) = set(range(3)) - {i, j}
        expected = (pool.X[:, other] == pool.X[31, other]).nonzero().view(-1)
        assert part["row"].tolist() == expected.tolist()
        assert np.array_equal(part["x"], pool.X[expected, i])
        assert np.array_equal(part["y"], pool.X[expected, j])
        assert part["x_name"].iloc[0] == pool.names[i]
        assert part["y_name"].iloc[0] == pool.names[j]
        assert part.loc[part["row"] == 31, "n_observations"].tolist() == [2]


def test_a_slice_of_scattered_rows_holds_the_nearest():
    pool = scattered()
    frame = slices_frame(answer(pool), anchor=7)
    low, high = pool.bounds
    scaled = ((pool.X - pool.X[7]) / (high - low)).abs()
    for panel, (i, j) in enumerate(itertools.combinations(range(4), 2)):
        others = [k for k in range(5) if k not in (i, j)]
        distance = scaled[:, others].amax(dim=1)
        part = frame[frame["panel"] == panel]
        nearest = distance.argsort()[:60]
        assert set(part["row"]) == set(nearest.tolist())
        assert np.allclose(part["distance"], distance.numpy()[part["row"]])


def test_the_anchor_is_the_most_doubtful_row():
    classification = answer(cube())
    p = classification.probability_above
    doubtful = int((p - 0.5).abs().argmin())
    frame = slices_frame(classification)
    assert (frame.loc[frame["distance"] == 0].groupby("panel")["row"].count() > 0).all()
    for _, part in frame.groupby("panel"):
        assert doubtful in set(part["row"])


def test_the_anchor_of_certain_rows_is_one_above():
    certain = answer(cube())
    p = torch.zeros(len(certain)).index_fill(0, torch.tensor([77]), 1.0)
    frame = slices_frame(dataclasses.replace(certain, probability_above=p))
    for _, part in frame.groupby("panel"):
        assert 77 in set(part.loc[part["distance"] == 0, "row"])


def test_two_inputs_make_one_panel_of_all_rows_and_one_input_its_mean():
    flat = answer(cube(d=2))
    assert len(slices_frame(flat)) == 25
    line = answer(Pool(torch.linspace(0, 1, 20).unsqueeze(-1)))
    frame = slices_frame(line)
    assert frame["y_name"].unique().tolist() == ["mean"]
    assert np.allclose(frame["y"], line.mean)


POOLS = [cube(), cube(d=2), scattered(), scattered(d=1)]


@pytest.mark.some(1)
@covering("shade, pool", ["side", "probability_above"], POOLS)
def test_slices_are_drawn_by_both_libraries(pool, shade):
    frame = slices_frame(answer(pool), seen(1, 1, 2))
    n_panels = frame["panel"].nunique()
    figure = plot_slices(frame, shade)
    drawn = [ax for ax in figure.axes if ax.get_xlabel()]
    assert len(drawn) == n_panels
    figure.canvas.draw()
    interactive = slices_figure(frame, shade)
    assert sum(trace.x is not None for trace in interactive.data) >= n_panels
    (drawn_legend,) = figure.legends or [drawn[0].get_legend()]
    keys = [text.get_text() for text in drawn_legend.get_texts()]
    assert keys == legend(interactive)
    assert len(keys) == len(set(keys))


def test_the_shades_on_a_grid_are_the_probabilities():
    classification = answer(cube(d=2))
    figure = plot_slices(slices_frame(classification), "probability_above")
    mesh = figure.axes[0].collections[0]
    cells = np.asarray(mesh.get_array()).reshape(5, 5)
    expected = classification.probability_above.reshape(5, 5).T  # x runs along columns
    assert np.allclose(cells, expected)


def test_bad_slices_are_refused():
    with pytest.raises(ValueError, match="`anchor` to be a row of the pool, 0 to 124"):
        slices_frame(answer(cube()), anchor=125)
    with pytest.raises(ValueError, match="`inputs` to name inputs"):
        slices_frame(answer(cube()), inputs=["heat", "colour"])
    with pytest.raises(ValueError, match="to hold its pool"):
        slices_frame(answer(None, 5))
    with pytest.raises(ValueError, match="`shade` to be one of"):
        plot_slices(slices_frame(answer(cube())), "mean")
    with pytest.raises(ValueError, match="two inputs for `kind='map'`"):
        plot_level_set(answer(cube()), kind="map")
    with pytest.raises(ValueError, match="`kind` to be"):
        plot_level_set(answer(cube()), kind="pie")


def test_intervals_can_be_drawn_for_two_inputs():
    ax = plot_level_set(answer(cube(d=2)), kind="intervals")
    assert ax.get_xlabel() == "rows, sorted by mean"


# --- batches ----------------------------------------------------------------------


def test_batches_show_the_last_round_replicates_and_what_is_to_come():
    pool = cube(d=2)
    frame = batches_frame(pool, seen(3, 7, 3, rounds=[0, 0, 2]), upcoming=[7, 9, 9])
    frame = frame.set_index("row")
    assert frame.loc[3, ["round", "n_observations", "n_upcoming"]].tolist() == [2, 2, 0]
    assert frame.loc[7, ["round", "n_observations", "n_upcoming"]].tolist() == [0, 1, 1]
    assert frame.loc[9, "n_upcoming"] == 2
    assert np.isnan(frame.loc[9, "round"])
    assert frame["n_observations"].sum() == 3


def test_rows_to_come_on_a_line_stand_in_the_next_round():
    pool = Pool(torch.linspace(0, 1, 9).unsqueeze(-1))
    frame = batches_frame(pool, seen(0, 4, rounds=[0, 1]), upcoming=[8])
    assert frame["y"].dropna().tolist() == [0, 1, 2]
    assert batches_frame(pool, Observations.empty(), [3])["y"].dropna().tolist() == [0]


@pytest.mark.some(1)
@covering("is_empty, pool", [False, True], POOLS)
def test_batches_are_drawn_by_both_libraries(pool, is_empty):
    if is_empty:
        frame = batches_frame(pool, Observations.empty())
    else:
        frame = batches_frame(pool, seen(1, 1, 2), upcoming=[4])
    plot_batches(frame).canvas.draw()
    assert len(batches_figure(frame).data) >= frame["panel"].nunique()


# --- progress ---------------------------------------------------------------------


def some_states(costs=None):
    pool = Pool(runs.grid(), costs=costs)
    strategy = runs.make(MELKStrategy, pool=pool, batch_size=4)
    return runs.run(strategy, 4)


def test_progress_counts_rows_cost_and_score():
    costs = 1 + runs.grid()[:, 0]
    states = some_states(costs)
    above = torch.from_numpy(runs.truth()) > 0.4
    frame = progress_frame(states, truth=above)
    assert frame["evaluations"].tolist() == [4 * i for i in range(len(states))]
    for state, (_, line) in zip(states, frame.iterrows(), strict=True):
        c = state.classification
        for side in ("above", "below", "undecided"):
            assert line[side] == int(getattr(c, side).sum())
        spent = sum(float(costs[row]) for row in state.history.indices.tolist())
        assert line["cost"] == pytest.approx(spent)
        guess = c.above | (c.undecided & (c.probability_above > 0.5))
        precision = (guess & above).sum() / guess.sum().clamp_min(1)
        recall = (guess & above).sum() / above.sum()
        score = 2 * precision * recall / (precision + recall).clamp_min(1e-12)
        assert line["f1"] == pytest.approx(float(score), abs=1e-6)
    foreseen = states[-1].forecast().observations
    assert frame["forecast"].isna().tolist() == [True] * (len(frame) - 1) + [False]
    assert frame["forecast"].iloc[-1] == states[-1].n_used + foreseen


def test_costs_may_be_given():
    states = some_states()
    assert progress_frame(states)["cost"].tolist() == [s.n_used for s in states]
    spent = [2.5 * i for i in range(len(states))]
    assert progress_frame(states, costs=spent)["cost"].tolist() == spent
    with pytest.raises(ValueError, match="`costs` to have one entry per state"):
        progress_frame(states, costs=[1.0])
    with pytest.raises(ValueError, match="at least one state"):
        progress_frame([])
    with pytest.raises(BotorchTensorDimensionError):
        progress_frame(states, truth=[True])


@pytest.mark.slow
def test_progress_is_drawn_by_both_libraries():
    states = some_states()
    for truth in (None, runs.truth() > 0.4):
        frame = progress_frame(states, truth)
        figure = plot_progress(frame)
        (drawn,) = figure.legends or [figure.axes[0].get_legend()]
        labels = [text.get_text() for text in drawn.get_texts()]
        assert labels[:3] == ["above", "below", "undecided"]
        more = frame["forecast"].iloc[-1] - frame["evaluations"].iloc[-1]
        assert labels[3] == f"forecast: about {int(more):,} more"
        # The cost has an axis where it is not the number of evaluations.
        assert len(figure.axes) == (1 if truth is None else 2)
        left, right = figure.axes[0].get_xlim()
        assert left == 0
        assert frame["evaluations"].max() < right
        figure.canvas.draw()
        names = [trace.name for trace in progress_figure(frame).data]
        assert labels[3] in names


# --- print and colour-blind readers -----------------------------------------------


def test_sides_differ_in_lightness():
    values = sorted(lightness(colour) for colour in COLOURS.values())
    assert min(np.diff(values)) > 15


def test_lines_are_dark_enough_on_white_and_differ_in_dashes():
    for colour in LINES.values():
        assert lightness(colour) < 65


@pytest.mark.parametrize("name", [PROBABILITY_SCALE.colours, ROUND_MAP])
def test_scales_run_from_dark_to_light(name):
    steps = mpl.colormaps[name](np.linspace(0, 1, 21))
    change = np.diff([lightness(step[:3]) for step in steps])
    assert (change > 0).all() or (change < 0).all()
