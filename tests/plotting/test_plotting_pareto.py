r"""The picture of a Pareto set: one frame, two renderers."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch

from botorch_lse import Pool
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import Observations
from botorch_lse.plotting import pareto_frame, pareto_set_figure, plot_pareto_set
from botorch_lse.strategies import ParetoEstimate

mpl.use("agg")
N = 6
GENERATOR = torch.Generator().manual_seed(0)
MEAN = torch.randn(N, 3, generator=GENERATOR).double()
HALF = torch.rand(N, 3, generator=GENERATOR).double()
SIDES = ["above", "below", "undecided", "above", "below", "below"]
WORDS = ["accepted", "rejected", "open", "accepted", "rejected", "rejected"]
OBSERVED = Observations(
    [0, 2, 2, 5], torch.zeros(4, 3).double(), counts=torch.tensor([1, 2, 1, 3])
)


def answer(pool=None) -> tuple[Classification, ParetoEstimate]:
    margin = torch.linspace(-1, 1, N).double()
    sets = [torch.tensor([s == side for s in SIDES]) for side in ("above", "below")]
    classification = Classification(
        *sets,
        ~(sets[0] | sets[1]),
        lower=margin - 1,
        upper=margin + 1,
        mean=margin,
        sigma=torch.ones(N).double(),
        probability_above=torch.full((N,), 0.5).double(),
        pool=pool,
    )
    estimate = ParetoEstimate(
        MEAN, MEAN - HALF, MEAN + HALF, HALF, margin, margin - 1, margin + 1, HALF[:, 0]
    )
    return classification, estimate


def frame(**options) -> pd.DataFrame:
    pool = Pool(pd.DataFrame({"wall": range(N), "side": range(N)}))
    names = options.pop("outputs", ("heat", "cold", "cost"))
    return pareto_frame(*answer(pool), OBSERVED, names)


def test_the_frame_holds_every_output_beside_the_pool() -> None:
    table = frame()
    assert table["wall"].tolist() == table["side"].tolist() == list(range(N))
    assert table["side_lse"].tolist() == WORDS
    assert table["n_observations"].tolist() == [1, 0, 3, 0, 0, 3]
    for c, name in enumerate(("heat", "cold", "cost")):
        np.testing.assert_array_equal(table[f"{name}_mean"], MEAN[:, c])
        np.testing.assert_array_equal(table[f"{name}_lower"], (MEAN - HALF)[:, c])
        np.testing.assert_array_equal(table[f"{name}_upper"], (MEAN + HALF)[:, c])
    bare = pareto_frame(*answer())
    assert list(bare.columns[:2]) == ["side", "margin"]
    assert {"y0_mean", "y2_upper"} <= set(bare.columns)
    assert bare["n_observations"].sum() == 0


def test_matplotlib_draws_all_rows_and_the_measured_ones() -> None:
    axes = plot_pareto_set(frame(), ("cold", "cost"))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("cold", "cost")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["measured (7 times)", "accepted (2)", "open (1)", "rejected (3)"]
    bars = [c for c in axes.collections if hasattr(c, "get_segments")]
    drawn = {
        tuple(np.round(segment.ravel(), 9))
        for c in bars
        for segment in c.get_segments()
    }
    for i in range(N):
        (x, y), (a, b) = MEAN[i, 1:].tolist(), HALF[i, 1:].tolist()
        assert tuple(np.round((x - a, y, x + a, y), 9)) in drawn
        assert tuple(np.round((x, y - b, x, y + b), 9)) in drawn


def test_plotly_draws_the_same() -> None:
    figure = pareto_set_figure(frame(), ("heat", "cold"))
    keys = [trace.name for trace in figure.data if trace.showlegend is None]
    assert keys == ["measured (7 times)", "accepted (2)", "open (1)", "rejected (3)"]
    drawn = [trace for trace in figure.data if trace.showlegend is False]
    rings = drawn.pop()
    np.testing.assert_allclose(rings.x, MEAN[[0, 2, 5], 0])
    np.testing.assert_array_equal(rings.customdata[:, 1], [1, 3, 3])
    for trace, word in zip(drawn, ("rejected", "open", "accepted"), strict=True):
        rows = [i for i, w in enumerate(WORDS) if w == word]
        np.testing.assert_allclose(trace.x, MEAN[rows, 0])
        np.testing.assert_allclose(trace.y, MEAN[rows, 1])
        np.testing.assert_allclose(trace.error_y.array, HALF[rows, 1])
        assert [int(d[0]) for d in trace.customdata] == rows
    layout = figure.layout
    assert (layout.xaxis.title.text, layout.yaxis.title.text) == ("heat", "cold")


def test_intervals_without_end_stay_in_the_picture() -> None:
    classification, _ = answer()
    table = pareto_frame(classification, ParetoEstimate.unknown(N, 2))
    axes = plot_pareto_set(table)
    assert np.isfinite(axes.dataLim.get_points()).all()
    assert len(axes.get_legend().get_texts()) == 3
    figure = pareto_set_figure(table)
    bars = [t.error_x for t in figure.data if t.error_x.array is not None]
    assert len(bars) == 3
    assert all(np.isfinite(bar.array).all() for bar in bars)


def test_outputs_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="`outputs` to be 3 names, one per output"):
        frame(outputs=("heat",))
    with pytest.raises(ValueError, match=r"two of the outputs in `frame`, \['heat'"):
        plot_pareto_set(frame(), ("heat", "rain"))
    one = ParetoEstimate.unknown(N, 1)
    with pytest.raises(ValueError, match="a single output with `plot_level_set`"):
        pareto_set_figure(pareto_frame(answer()[0], one))
