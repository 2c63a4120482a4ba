r"""The picture of a calibration: one frame, two renderers."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
import torch

from botorch_lse.confidence.calibration import Calibration
from botorch_lse.plotting import (
    calibration_figure,
    calibration_frame,
    plot_calibration,
)

mpl.use("Agg")


NONE = torch.zeros(0).double()
EARLIER, LATER = "predicted, earlier half", "predicted, later half"


def residuals(n: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, generator=generator).double()


FAILED = Calibration(residuals(41, 0, 3.0), residuals(49, 1), residuals(49, 2, 20.0))


def test_the_frame_has_each_residual_beside_the_normal_number_of_its_rank() -> None:
    frame = calibration_frame(FAILED)
    counts = frame["kind"].value_counts().to_dict()
    assert counts == {EARLIER: 20, LATER: 21, "each left out": 49}
    ahead, out = frame[:41], frame[41:]
    assert ahead["residual"].tolist() == FAILED.ahead.tolist()
    assert ahead["predicted"].isna().all()
    assert out["residual"].tolist() == FAILED.out.tolist()
    assert out["predicted"].tolist() == FAILED.predicted.tolist()
    assert out["number"].tolist() == list(range(49))
    later = frame[frame["kind"] == LATER]
    # Monte Carlo of the definition: 20,000 samples of 21 sorted normal numbers. The
    # standard error of a quantile is sqrt(p (1 - p) / 20,000) / density < 0.02.
    drawn = residuals(21 * 20_000, 3).view(-1, 21).sort(dim=-1).values
    ranks = later["residual"].rank().astype(int) - 1
    for name, p in (("lower", 0.025), ("expected", 0.5), ("upper", 0.975)):
        want = drawn.quantile(p, dim=0)[ranks.tolist()]
        np.testing.assert_allclose(later[name], want, atol=0.08)


def test_matplotlib_draws_ranks_and_predictions_with_what_they_say() -> None:
    figure = plot_calibration(FAILED)
    figure.canvas.draw()
    assert figure.get_suptitle().replace("\n", " ") == str(FAILED)
    by_rank, by_prediction = figure.axes
    assert {ax.get_ylabel() for ax in figure.axes} == {"residual / predicted sd"}
    assert by_prediction.get_xlabel() == "y: predicted, itself left out"
    frame = calibration_frame(FAILED)
    order = (EARLIER, "each left out", LATER)
    for points, kind in zip(by_rank.collections, order, strict=True):
        rows = frame[frame["kind"] == kind]
        np.testing.assert_allclose(points.get_offsets(), rows[["expected", "residual"]])
    (points,) = by_prediction.collections
    np.testing.assert_allclose(points.get_offsets()[:, 0], FAILED.predicted)
    ideal, lower, upper = by_rank.lines
    np.testing.assert_allclose(ideal.get_xdata(), ideal.get_ydata())
    assert (lower.get_ydata() < lower.get_xdata()).all()
    assert (upper.get_ydata() > upper.get_xdata()).all()
    heights = [line.get_ydata()[0] for line in by_prediction.lines]
    np.testing.assert_allclose(heights, [0.0, -1.96, 1.96], atol=1e-3)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    counts = (20, 49, 21)
    want = [f"{kind} ({n})" for kind, n in zip(order, counts, strict=True)]
    assert labels == [*want, "as predicted", "95 % interval"]


def test_plotly_draws_the_same() -> None:
    figure = calibration_figure(FAILED)
    figure.to_json()
    assert figure.layout.title.text.replace("<br>", " ") == str(FAILED)
    dots = [t for t in figure.data if t.mode == "markers" and t.showlegend is False]
    assert [len(trace.x) for trace in dots] == [20, 49, 21, 49]
    assert "predicted" not in dots[0].hovertemplate
    np.testing.assert_allclose(dots[-1].customdata[:, 1], FAILED.predicted)


@pytest.mark.parametrize("draw", [plot_calibration, calibration_figure])
@pytest.mark.parametrize("out", [NONE, residuals(3, 4)])
def test_before_any_prediction_the_picture_says_so(draw, out) -> None:
    figure = draw(Calibration(NONE, out, out))
    is_plotly = draw is calibration_figure
    title = figure.layout.title.text if is_plotly else figure.get_suptitle()
    assert title == "Nothing was predicted before it was measured."


@pytest.mark.parametrize(
    "draw", [plot_calibration, calibration_figure, calibration_frame]
)
def test_what_is_no_calibration_is_refused_with_the_remedy(draw) -> None:
    with pytest.raises(ValueError, match=r"Give `state.calibration\(\)`"):
        draw("state")


def test_answers_predicted_beforehand_alone_are_one_panel() -> None:
    ahead = torch.linspace(-2, 2, 40, dtype=torch.float64)
    found = Calibration(ahead, ahead[:0], ahead[:0])
    assert len(plot_calibration(found).axes) == 1
