r"""More than two inputs: the sides along each of them, and the candidates' names."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.plotting import (
    batches_frame,
    level_set_figure,
    pareto_set_figure,
    pictures,
    plot_level_set,
    plot_slices,
    slices_frame,
)
from botorch_lse.plotting.axes import names_of
from botorch_lse.plotting.report import report_of
from botorch_lse.strategies import Levels
from tests.plotting.test_plotting import answer, labels, seen

mpl.use("Agg")
import matplotlib.pyplot as plt

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "flat": RNG.permutation(np.tile([1.0, 2.0], 60)),
        "solvent": np.tile(["water", "oil", "<i>ether</i>"], 40),
        "dose": np.linspace(0, 3, 120) ** 2,
    },
    index=[f"batch {k}" for k in range(120)],
)
POOL = Pool(TABLE)
FOUND = answer(POOL)  # its means rise with the row, and so with the dose
KINDS = {"above", "below", "undecided"}


def panels(found, **given):
    return pictures.level_set(found, **given).panels


def test_each_input_has_a_panel_with_the_share_of_each_side() -> None:
    found = {panel.x_label: panel for panel in panels(FOUND)}
    assert next(iter(found)) == "dose"  # along it the sides change most
    assert set(found) == set(TABLE.columns)
    side = pd.Series(FOUND.side, TABLE.index)
    for name in ("flat", "solvent"):
        expected = pd.crosstab(TABLE[name], side, normalize="index")
        for mark in found[name].marks:
            kind = mark.label.split(" (")[0]
            shares = mark.rows.sort_values("place")["y"].to_numpy()
            np.testing.assert_allclose(shares, expected[kind].to_numpy(), rtol=1e-12)
            assert mark.rows["rows"].sum() == len(TABLE)
    tenths = found["dose"].marks[0].rows
    assert tenths["rows"].tolist() == [12] * 10
    mean = TABLE["dose"].to_numpy().reshape(10, 12).mean(axis=1)
    np.testing.assert_allclose(tenths["x"], mean, rtol=1e-12)
    sums = sum(mark.rows["y"].to_numpy() for mark in found["dose"].marks)
    np.testing.assert_allclose(sums, 1.0, rtol=1e-12)
    assert found["solvent"].x_ticks.labels == ("<i>ether</i>", "oil", "water")


def test_rows_count_by_their_weights() -> None:
    weights = torch.arange(120.0).double()
    pool = Pool(POOL.X, names=POOL.names, weights=weights, table=TABLE)
    panel = next(p for p in panels(answer(pool)) if p.x_label == "flat")
    for mark in panel.marks:
        kind = mark.label.split(" (")[0]
        own = (FOUND.side == kind) * weights.numpy()
        for value, share in zip((1.0, 2.0), mark.rows["y"], strict=True):
            here = (TABLE["flat"] == value).to_numpy()
            expected = own[here].sum() / weights.numpy()[here].sum()
            assert share == pytest.approx(expected, rel=1e-12)


def test_the_truth_stands_beside_the_sides_and_needs_its_level() -> None:
    truth = FOUND.mean + 0.3
    shown = panels(FOUND, threshold=0.0, truth=truth)[0].marks[-1]
    assert shown.label == "truly above"
    share = (truth > 0).double().view(10, 12).mean(dim=1)
    np.testing.assert_allclose(shown.rows["y"], share, rtol=1e-12)
    with pytest.raises(ValueError, match="`threshold` with `truth`"):
        plot_level_set(FOUND, truth=truth)


def test_both_libraries_draw_it_and_axes_of_yours_get_the_first_panel() -> None:
    figure = plot_level_set(FOUND, title="yield above 0").figure
    assert figure.axes[0].get_xlabel() == "dose"
    (legend,) = figure.legends
    drawn = level_set_figure(FOUND)
    shown = [t.name for t in drawn.data if t.showlegend is None]
    assert shown == [text.get_text() for text in legend.get_texts()]
    assert {name.split(" (")[0] for name in shown} == KINDS
    assert drawn.layout.xaxis.title.text == "dose"
    _, ax = plt.subplots()
    assert plot_level_set(FOUND, ax=ax) is ax
    assert ax.get_xlabel() == "dose"
    assert {label.split(" (")[0] for label in labels(ax)} == KINDS


def test_classes_have_their_colours() -> None:
    kernel = GaussianProcess(RBFKernel().double(), noise_std=0.1)
    X = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)).double()
    strategy = Strategy(Pool(X), Levels([-0.3, 0.3]), model=kernel)
    state = strategy.tell(strategy.init(), Observations(range(40), X[:, 0] - 0.5))
    marks = panels(state.classification)[0].marks
    assert [m.label.split(" (")[0] for m in marks][:2] == ["class 0", "class 1"]
    assert marks[0].look.colour == pictures.CLASS_LINES[0]


def test_a_pool_whose_inputs_do_not_vary_has_nothing_to_go_along() -> None:
    pool = Pool(torch.ones(5, 3))
    with pytest.raises(ValueError, match="inputs that vary"):
        plot_level_set(answer(pool), kind="inputs")
    assert plot_level_set(answer(pool)).get_xlabel() == "rows, sorted by mean"
    with pytest.raises(ValueError, match="to be 'map', 'inputs', 'intervals' or None"):
        plot_level_set(answer(pool), kind="rows")


# --- names ----------------------------------------------------------------------------


def test_rows_are_named_by_labels_or_by_a_column_of_distinct_words() -> None:
    assert names_of(POOL).tolist() == TABLE.index.tolist()
    table = TABLE.reset_index(names="key")
    pool = Pool(POOL.X, names=POOL.names, table=table)
    assert names_of(pool).tolist() == TABLE.index.tolist()
    assert names_of(Pool(TABLE.reset_index(drop=True))) is None
    assert names_of(Pool(torch.rand(3, 2))) is None
    assert names_of(None) is None


def hovers(figure) -> str:
    return " ".join(str(t.customdata) for t in figure.data if t.customdata is not None)


@pytest.mark.slow
def test_every_picture_of_rows_has_their_names_at_the_pointer() -> None:
    told = seen(3, 7)
    for figure in (
        level_set_figure(FOUND, told, kind="intervals"),
        pictures.slices_figure(slices_frame(FOUND, told)),
        pictures.batches_figure(batches_frame(POOL, told)),
    ):
        texts = hovers(figure)
        assert "batch 3" in texts
        assert "&lt;i&gt;ether&lt;/i&gt;" in texts  # no tag
    intervals = hovers(level_set_figure(FOUND, told, kind="intervals"))
    assert "flat 1, solvent" in intervals or "flat 2, solvent" in intervals
    frame = pd.DataFrame(
        {
            f"{y}_{part}": np.arange(3.0)
            for y in "ab"
            for part in ("mean", "lower", "upper")
        }
        | {"side": "open", "n_observations": 1},
        index=["one", "two", "three"],
    )
    assert "two" in hovers(pareto_set_figure(frame))
    plot_slices(slices_frame(FOUND, told))


def test_few_intervals_stand_above_their_names() -> None:
    few = FOUND.at(torch.arange(40, 80))
    ax = plot_level_set(few, kind="intervals")
    shown = [tick.get_text() for tick in ax.get_xticklabels()]
    order = few.mean.argsort().tolist()
    assert shown == [f"batch {40 + k}" for k in order]
    assert ax.get_xticklabels()[0].get_rotation() == 90
    figure = level_set_figure(few, kind="intervals")
    assert list(figure.layout.xaxis.ticktext) == shown
    many = plot_level_set(FOUND, kind="intervals")
    assert "batch" not in " ".join(tick.get_text() for tick in many.get_xticklabels())


def test_the_list_of_a_report_begins_with_the_names() -> None:
    strategy = Strategy(POOL, Above(0.0), model=GaussianProcess(noise_std=0.1))
    found = report_of(strategy.init())
    assert found.table.columns[0] == "row"
    assert found.table["row"].tolist() == TABLE.index.tolist()
    named = Pool(TABLE.rename_axis("flat"))
    found = report_of(Strategy(named, Above(0.0)).init())
    assert found.table.columns[0] == "flat_lse"  # the table has a column of that name
