"""Pictures show inputs as people know them: in their units, words by name."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from botorch_lse import Observations, Pool
from botorch_lse.ax import grid_pool
from botorch_lse.plotting import (
    batches_frame,
    level_set_figure,
    plot_level_set,
    plot_progress,
    plot_slices,
    progress_frame,
    slices_figure,
    slices_frame,
)
from botorch_lse.plotting.axes import axes_of
from botorch_lse.strategies import (
    Above,
    Below,
    GaussianProcess,
    Levels,
    LSEStrategy,
    Strategy,
)
from tests.plotting.test_plotting import answer

mpl.use("Agg")


DOSE = RangeParameterConfig(
    name="dose", bounds=(1e-2, 1e2), parameter_type="float", scaling="log"
)
CYCLES = RangeParameterConfig(name="cycles", bounds=(1, 6), parameter_type="int")
SOLVENT = ChoiceParameterConfig(
    name="solvent", values=["water", "ethanol", "acetone"], parameter_type="str"
)
SIZE = ChoiceParameterConfig(
    name="size", values=["S", "M", "L"], parameter_type="str", is_ordered=True
)
MIXED = grid_pool([DOSE, CYCLES, SOLVENT, SIZE], {"dose": 5})


def test_axes_are_the_inputs_of_the_table() -> None:
    axes = {axis.name: axis for axis in axes_of(MIXED)}
    table = MIXED.to_frame()
    assert list(axes) == ["dose", "cycles", "solvent", "size"]
    assert axes["dose"].is_log
    np.testing.assert_allclose(axes["dose"].values, table["dose"], rtol=1e-12)
    assert not axes["cycles"].is_log
    np.testing.assert_array_equal(axes["cycles"].values, table["cycles"])
    assert axes["size"].words == ("S", "M", "L")
    for name in ("solvent", "size"):
        axis = axes[name]
        found = [axis.words[int(code)] for code in axis.values]
        assert found == table[name].tolist()
    assert sum(len(axis.columns) for axis in axes.values()) == MIXED.d
    assert axes["solvent"].text(0) == table["solvent"][0]


def test_without_a_table_axes_are_the_columns() -> None:
    pool = Pool([[0.1, 1.0], [0.2, 3.0]])
    assert [axis.name for axis in axes_of(pool)] == ["x0", "x1"]
    np.testing.assert_array_equal(axes_of(pool)[1].values, [1.0, 3.0])
    frame = pd.DataFrame({"wet": [True, False], "depth": [3.0, 4.0]})
    assert axes_of(Pool(frame))[0].words == ("False", "True")


@pytest.mark.parametrize("table", [{"x": [5.0, 6.0]}, {"x": ["one", "one"]}])
def test_a_table_that_says_something_else_is_not_believed(table) -> None:
    pool = Pool([[0.0], [1.0]], names=["x"], table=pd.DataFrame(table))
    (axis,) = axes_of(pool)
    np.testing.assert_array_equal(axis.values, [0.0, 1.0])
    assert not axis.is_log
    assert not axis.words


def test_slices_are_in_units_and_say_what_they_hold_fixed() -> None:
    frame, table = slices_frame(answer(MIXED), anchor=7), MIXED.to_frame()
    pairs = itertools.combinations(table.columns, 2)
    for (_, part), pair in zip(frame.groupby("panel"), pairs, strict=True):
        assert tuple(part[["x_name", "y_name"]].iloc[0]) == pair
        rows = table.iloc[part["row"]]
        for axis, name in zip("xy", pair, strict=True):
            if part[f"{axis}_word"].notna().all():
                assert part[f"{axis}_word"].tolist() == rows[name].tolist()
            else:
                np.testing.assert_allclose(part[axis], rows[name], rtol=1e-12)
        others = [name for name in table.columns if name not in pair]
        assert (rows[others] == table[others].iloc[7]).all(axis=None)
        for name in others:
            value = table[name].iloc[7]
            word = value if isinstance(value, str) else f"{value:.4g}"
            assert f"{name} = {word}" in part["held"].iloc[0]
    assert not batches_frame(MIXED, Observations.empty())["held"].any()


def test_few_rows_of_a_slice_are_near_it() -> None:
    generator = torch.Generator().manual_seed(0)
    pool = Pool(torch.rand(80, 5, generator=generator, dtype=torch.float64))
    held = slices_frame(answer(pool), anchor=0)["held"]
    assert held.str.startswith("near x").all()
    assert slices_frame(answer(pool), inputs=["x0"])["held"][0].endswith("1 more")


def test_both_libraries_write_units_and_words_at_the_axes() -> None:
    frame = slices_frame(answer(MIXED), anchor=0, inputs=["dose", "solvent"])
    drawn = plot_slices(frame, title="yield above 40")
    axes = drawn.axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == list(
        axes_of(MIXED)[2].words
    )
    ticks = dict(zip(axes.get_xticks(), axes.get_xticklabels(), strict=True))
    assert {k: t.get_text() for k, t in ticks.items()} == {
        -2: "0.01", -1: "0.1", 0: "1", 1: "10", 2: "100",
    }  # fmt: skip
    assert axes.get_title().startswith("cycles = ")
    assert drawn.get_suptitle() == "yield above 40"
    figure = slices_figure(frame, title="yield above 40")
    assert figure.layout.title.text == "yield above 40"
    long = " and ".join(f"output {k} above {k}" for k in range(12))
    drawn = plot_slices(frame, title=long).get_suptitle()
    assert drawn.count("\n") > 0  # no wider than the picture
    assert drawn.replace("\n", " ") == long
    assert list(figure.layout.yaxis.ticktext) == list(axes_of(MIXED)[2].words)
    assert list(figure.layout.xaxis.ticktext) == ["0.01", "0.1", "1", "10", "100"]
    hovers = [t for t in figure.data if t.hovertemplate]
    assert "dose" in str(hovers[0].customdata[0])
    held = [a.text for a in figure.layout.annotations]
    assert held
    assert held[0].startswith("cycles = ")


def test_no_contour_runs_between_words() -> None:
    frame = slices_frame(answer(MIXED), anchor=0, inputs=["dose", "cycles", "solvent"])
    kinds = [t.type for t in slices_figure(frame, "probability_above").data]
    assert kinds.count("heatmap") == 3
    assert kinds.count("contour") <= 2  # one line, in black on white


def run(goal, y, n=6):
    X = torch.linspace(0.0, 1.0, 20, dtype=torch.float64)
    pool, std = Pool(X.unsqueeze(-1), names=["depth"]), [0.1] * goal.facts.n_outputs
    model = GaussianProcess(noise_std=std, n_initial=n)
    strategy = Strategy(pool, goal, model=model, batch_size=n)
    state = strategy.init()
    return [state, strategy.tell(state, strategy.ask(state).observe(y))]


def test_sides_of_a_region_are_in_and_out() -> None:
    y = torch.linspace(0, 1, 12).double().view(6, 2)
    states = run(Above(0.5) & Below(0.8, output=1), y)
    axes = plot_level_set(states[-1].classification, states[-1].observations)
    words = [t.get_text().split(" ")[0] for t in axes.get_legend().get_texts()]
    assert {"in", "out", "undecided"} <= set(words)
    assert axes.get_ylabel() == "distance from another answer"
    figure = plot_progress(progress_frame(states))
    labels = [t.get_text() for t in figure.axes[0].get_legend().get_texts()]
    assert labels[:2] == ["in", "out"]


def test_classes_have_colours_of_their_own() -> None:
    y = torch.linspace(0, 1, 6).double()
    state = run(Levels((0.3, 0.6), epsilon=0.1), y)[-1]
    found = state.classification.classes
    frame = slices_frame(state.classification, state.observations)
    assert frame["class_number"].tolist() == found.tolist()
    figure = level_set_figure(state.classification, state.observations)
    keys = {t.name.rsplit(" ", 1)[0]: t.name for t in figure.data if t.name}
    for k in range(int(found.max()) + 1):
        assert keys[f"class {k}"] == f"class {k} ({int((found == k).sum())})"
    assert len(plot_slices(frame).axes[0].collections) >= 2


def test_measured_values_are_dots_with_bars() -> None:
    pool = Pool(torch.linspace(0, 1, 5).double().unsqueeze(-1))
    strategy = LSEStrategy(pool, threshold=0.3, noise_std=0.2, beta=4.0, batch_size=3)
    rows, y = torch.tensor([1, 1, 4]), torch.tensor([0.0, 1.0, 2.0]).double()
    state = strategy.tell(strategy.init(), Observations(rows, y))
    figure = level_set_figure(
        state.classification,
        state.observations,
        kind="intervals",
        metric="strength (MPa)",
        title="strength above 0.3",
    )
    assert figure.layout.yaxis.title.text == "strength (MPa)"
    assert figure.layout.title.text == "strength above 0.3"
    (dots,) = (
        t for t in figure.data if t.name == "measured (3 on 2 rows)" and len(t.x) > 1
    )
    by_value = dict(zip(dots.y, dots.error_y.array, strict=True))
    assert by_value == pytest.approx({0.5: 1.96 * 0.2 / 2**0.5, 2.0: 1.96 * 0.2}, 1e-3)


@pytest.mark.parametrize(
    ("goal", "wanted"),
    [
        (Above(40.0, output="strength"), "strength above 40"),
        (Above(40) & Below(0.4, output=1), "strength above 40 and cost at most 0.4"),
        (Above(1) | (Above(2) & ~Below(3, output=1)),
         "strength above 1 or (strength above 2 and not (cost at most 3))"),
        (Levels((1, 2.5)), "strength in classes parted at 1, 2.5"),
    ],
)  # fmt: skip
def test_a_question_in_words(goal, wanted) -> None:
    assert goal.question(("strength", "cost")) == wanted
