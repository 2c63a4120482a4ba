r"""What is drawn can be read: no words on others, lines that stand out, right names."""

from __future__ import annotations

import re
from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Above, Below, Between, GaussianProcess, Pool, Strategy
from botorch_lse.plotting import (
    calibration_figure,
    level_set_figure,
    plot_level_set,
    plot_progress,
    plot_slices,
    progress_frame,
    slices_figure,
    slices_frame,
    write_report,
)
from botorch_lse.plotting import pictures as p
from botorch_lse.plotting.report import report_of
from botorch_lse.strategies import Levels, ParetoByDifferences
from tests.plotting.browser import seen
from tests.plotting.test_plotting import legend

X = torch.rand(24, 3, generator=torch.Generator().manual_seed(0)).double()
MODEL = GaussianProcess(ScaleKernel(RBFKernel()).double(), noise_std=0.1)


def told(goal, X=X, pool=None, **options):
    r"""A run that was told values of a few rows, the first input less the second."""
    strategy = Strategy(pool or Pool(X), goal, model=MODEL, batch_size=12, **options)
    states = [strategy.init()]
    for _ in range(2):
        batch = strategy.ask(states[-1])
        y = X[batch.order, 0] - 0.5 * X[batch.order, -1]
        y = torch.stack([y, -y], dim=-1)[:, : strategy.n_outputs].squeeze(-1)
        states.append(strategy.tell(states[-1], batch.observe(y)))
    return states


def named(n: int = 24) -> Pool:
    table = pd.DataFrame(X[:n].numpy(), columns=["dose (mg)", "heat", "time"])
    table.index = pd.Index([f"sample {i} of the second series" for i in range(n)])
    return Pool(table)


def boxes(figure):
    r"""The places of legend, axes and figure, in pixels."""
    figure.canvas.draw()
    (ax, *_) = figure.axes
    (keys,) = figure.legends or [ax.get_legend()]
    return keys.get_window_extent(), ax.xaxis.get_tightbbox(), figure.bbox


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("kind", ["intervals", "inputs"])
def test_a_legend_lies_below_the_labels_and_inside_the_figure(kind) -> None:
    line = Pool(X[:, :1], names=["km"])
    for pool in (named(), line):
        own = X if pool is not line else X[:, :1]
        state = told(Above(0.2), own, pool)[-1]
        axes = plot_level_set(state.classification, state.observations, kind=kind)
        keys, labels, whole = boxes(axes.figure)
        assert keys.y1 <= labels.y0
        assert keys.y0 >= whole.y0
        assert labels.y0 >= whole.y0
        plt.close(axes.figure)


def test_a_legend_lies_below_the_labels_on_axes_of_yours() -> None:
    figure, axes = plt.subplots(figsize=(4, 7), layout="constrained")
    state = told(Above(0.2), X, named())[-1]
    plot_level_set(state.classification, kind="intervals", ax=axes)
    keys, labels, _ = boxes(figure)
    assert keys.y1 <= labels.y0


@pytest.mark.slow
def test_titles_of_panels_do_not_run_into_each_other() -> None:
    wide = torch.rand(60, 5, generator=torch.Generator().manual_seed(1)).double()
    names = [f"a name of some length {i}" for i in range(5)]
    state = told(Above(0.2), wide, Pool(wide, names=names))[-1]
    figure = plot_slices(slices_frame(state.classification))
    figure.canvas.draw()
    spans = [ax.title.get_window_extent() for ax in figure.axes if ax.get_title()]
    assert len(spans) == 6
    for k in (0, 1, 3, 4):
        assert spans[k].x1 < spans[k + 1].x0


def luminance(colour: str) -> float:
    r"""The relative luminance of a colour (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts
    ]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_lines_stand_out_from_white_and_from_a_dark_page() -> None:
    # A contrast of 3 is what WCAG 2.2, 1.4.11, asks of graphics.
    lines = [*p.LINES.values(), *p.CLASS_LINES, p.INK, p.MARK, p.TRUTH, p.PALE]
    page = files("botorch_lse.plotting").joinpath("report.html").read_text("utf-8")
    (mapped,) = re.findall(r"const DARK = \{(.*?)\};", page, re.S)
    dark = dict(re.findall(r'"(#\w{6})": "(#\w{6})"', mapped))
    (card,) = re.findall(r'white: "(#\w{6})"', mapped)
    for colour in lines:
        assert contrast(colour, "#ffffff") >= 3, colour
        assert contrast(dark.get(colour, colour), card) >= 3, colour


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(
    ("goal", "wanted"),
    [
        (Above(0.2), {"above", "below"}),
        (Below(0.2), {"below", "above"}),
        (Between(0.0, 0.3), {"in", "out"}),
        (Levels([0.0, 0.3]), {"of class 2", "below class 2"}),
    ],
)
def test_pictures_of_frames_name_the_sides_as_the_answer_does(goal, wanted) -> None:
    states = told(goal)
    answer = states[-1].classification
    counts = {side: int(getattr(answer, side).sum()) for side in ("above", "below")}
    figure = plot_progress(progress_frame(states))
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert wanted <= set(lines)
    member = p.side_words(answer)["above"]
    assert lines[member].get_ydata()[-1] == counts["above"]
    slices = plot_slices(slices_frame(answer), "probability_above")
    (bar,) = [ax for ax in slices.axes if ax.get_ylabel().startswith("probability")]
    assert bar.get_ylabel() == f"probability {member}"
    if answer.classes is None:
        figure = level_set_figure(answer)
        assert wanted <= {name.split(" (")[0] for name in legend(figure)}


def test_below_is_called_below_though_it_is_what_is_asked() -> None:
    answer = told(Below(0.2))[-1].classification
    assert p.side_words(answer)["above"] == "below"
    state = told(Below(0.2), X[:, :2])[-1]
    axes = plot_slices(slices_frame(state.classification)).axes[0]
    counts = dict(
        text.get_text().rstrip(")").split(" (") for text in axes.get_legend().texts
    )
    assert int(counts["below"]) == int(state.classification.above.sum())


@pytest.mark.slow
def test_predictions_are_shown_for_each_output_by_its_name() -> None:
    states = told(Above(0.2) & Below(0.4, output=1))
    found = report_of(states[-1], metrics=["strength (MPa)", "cost"], states=states)
    shown = {one.title: one.figure for one in found.progress[1:]}
    assert [*shown] == ["Predictions: strength (MPa)", "Predictions: cost"]
    for title, figure in shown.items():
        metric = title.removeprefix("Predictions: ")
        assert figure.layout.xaxis2.title.text.startswith(f"{metric}: predicted")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_names_have_room_on_a_phone_and_scales_a_ground_in_the_dark(tmp_path) -> None:
    state = told(Above(0.2), X, named())[-1]
    write_report(state, tmp_path / "page.html")
    widths, grounds = seen(
        tmp_path / "page.html",
        """const plot = title => [...document.querySelectorAll("figure")]
        .find(one => one.querySelector("h3").textContent === title)
        .querySelector(".js-plotly-plot");
      return [plot("Intervals").getBoundingClientRect().width,
        ["Chances", "Intervals"].map(one => plot(one)._fullLayout.plot_bgcolor)];""",
        "--window-size=390,800",
        "--blink-settings=preferredColorScheme=0",
    )
    assert widths >= 24 * 16
    assert grounds == ["#4b535b", "rgba(0,0,0,0)"]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_wide_list_is_printed_whole_and_without_the_buttons(tmp_path) -> None:
    # On paper that is too narrow all letters become smaller.
    states = told(Above(0.2) & Below(0.4, output=1))
    write_report(states[-1], tmp_path / "page.html", metrics=["strength (MPa)", "cost"])
    sizes = seen(
        tmp_path / "page.html",
        """const sheets = [...document.styleSheets].flatMap(one => [...one.cssRules]);
      const [print] = sheets.filter(rule => rule.conditionText === "print");
      const rules = [...print.cssRules].map(rule => rule.cssText).join(" ");
      document.head.append(Object.assign(document.createElement("style"),
        {textContent: rules}));
      const table = document.querySelector(".list table");
      const bar = document.querySelector(".modebar-container");
      return [table.scrollWidth, document.querySelector("main").clientWidth,
        getComputedStyle(bar).display];""",
        "--window-size=718,1000",
    )
    wide, paper, buttons = sizes  # A4 has 718 pixels between its margins
    assert wide <= 1.15 * paper  # 16 columns; the browser makes all smaller by the rest
    assert buttons == "none"


@pytest.mark.slow
def test_titles_of_panels_have_lines_of_their_panels_width() -> None:
    wide = torch.rand(60, 5, generator=torch.Generator().manual_seed(1)).double()
    names = [f"a name of some length {i}" for i in range(5)]
    state = told(Above(0.2), wide, Pool(wide, names=names))[-1]
    frame = slices_frame(state.classification)
    for shown, most in (("side", 28), ("probability_above", 23)):
        figure = slices_figure(frame, shown)
        titles = [a.text.split("<br>") for a in figure.layout.annotations]
        assert len(titles) == 6
        assert max(len(line) for title in titles for line in title) <= most
        # Whole, and with room below the legend.
        assert titles[0][0].startswith("near a name of")
        lines = max(map(len, titles))
        assert figure.layout.margin.t >= 60 + 18 * lines


@pytest.mark.slow
def test_a_pareto_set_is_accepted_and_rejected_in_every_picture() -> None:
    strategy = Strategy(Pool(X), ParetoByDifferences((True, False)), batch_size=10)
    state = strategy.init()
    while not state.is_done and len(state.observations) < 50:
        batch = strategy.ask(state)
        own = X[batch.order]
        y = torch.stack([own[:, 0], (own[:, 1] - 0.5).abs()], dim=-1)
        state = strategy.tell(state, batch.observe(y))
    answer = state.classification
    figure = level_set_figure(answer, state.observations, kind="intervals")
    assert {"accepted", "rejected"} <= {n.split(" (")[0] for n in legend(figure)}
    assert figure.layout.yaxis.title.text == "distance from another answer"
    slices = slices_figure(slices_frame(answer))
    assert "accepted" in {n.split(" (")[0] for n in legend(slices)}


@pytest.mark.slow
def test_buttons_of_the_upper_edge_stand_above_titles_and_legends() -> None:
    r"""On screens that are touched plotly always shows them, 30 pixels high."""
    states = told(Above(0.2))
    titled = calibration_figure(states[-1].calibration())
    assert titled.layout.title.text
    assert titled.layout.title.pad.t >= 30
    state = told(Between(0.0, 0.3), X, named())[-1]
    wide = level_set_figure(state.classification, state.observations, kind="intervals")
    height = 450 - wide.layout.margin.t - wide.layout.margin.b
    lowest = wide.layout.margin.t - (wide.layout.legend.y - 1) * height
    assert lowest - 2 * 19 >= 30  # of a legend of two lines
