r"""Both renderers draw any picture told in the words of ``marks``."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from botorch_lse.plotting import with_matplotlib, with_plotly
from botorch_lse.plotting.marks import (
    Cells,
    Contour,
    Key,
    Look,
    Panel,
    Picture,
    Scale,
    Series,
    on_grid,
)

mpl.use("Agg")
import matplotlib.pyplot as plt

BANDS = Scale(("#f4cf73", "#8f9a97", "#20488c"), -0.5, 2.5)
SMOOTH = Scale("viridis", 0.0, 10.0, "weight", (0.0, 5.0, 10.0))
LINE = Look("#1a1a1a", dash="dash")
STEPS = Look("#b58900", "square", dash="dashdot", steps=True)
RINGS = Look("#c8002f", "ring", 8.0, width=1.4)
BARS = Look("#20488c", "triangle", 5.0, edge="#1a1a1a", width=0.4, bars=1.1)
WEIGHED = Look("#777777", "diamond", 6.0, scale=SMOOTH)


def surface() -> pd.DataFrame:
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(4.0), np.arange(3.0)))
    rows = pd.DataFrame({"x": x, "y": y, "value": x, "row": np.arange(12)})
    return rows.drop(index=5)


def places(n: int = 4) -> pd.DataFrame:
    y = np.linspace(1.0, 2.0, n)
    return pd.DataFrame({"x": np.arange(n), "y": y, "row": np.arange(n)})


def everything() -> Picture:
    r"""Two panels, every mark, two levels of one surface, two scales."""
    bars = places().assign(y_lower=0.5, y_upper=2.5, x_lower=-1.0, x_upper=5.0)
    weighed = places().assign(value=[0.0, 3.0, 6.0, 9.0], size=[1.0, 2.0, 3.0, 4.0])
    left = (
        Cells(surface(), BANDS),
        Contour(surface(), 0.5, LINE, "level 0.5"),
        Contour(surface(), 1.5, LINE, "level 1.5"),
        Series(places(2), RINGS, "draws"),
    )
    right = (
        Series(bars, BARS, "intervals"),
        Series(weighed, WEIGHED, "weighed"),
        Series(places(), STEPS, "steps"),
    )
    panels = (
        Panel(left, "east", "north", (0.0, None), (0.0, 2.0)),
        Panel(right, "time", "depth", (-2.0, 6.0)),
    )
    labels = {"level 0.5": LINE, "draws": RINGS, "intervals": BARS, "steps": STEPS}
    keys = tuple(Key(label, look) for label, look in labels.items())
    return Picture(panels, (9.0, 4.0), keys, columns=2, hover=("row", "value"))


def test_scales_are_found_once_those_with_a_bar_first():
    assert everything().scales == [SMOOTH, BANDS]
    assert everything().grid == (1, 2)


def test_matplotlib_draws_everything():
    picture = everything()
    figure = with_matplotlib.draw(picture)
    figure.canvas.draw()
    left, right, bar = figure.axes
    assert (left.get_xlabel(), right.get_ylabel()) == ("east", "depth")
    assert left.get_xlim()[0] == 0.0
    assert left.get_ylim() == (0.0, 2.0)
    assert bar.get_ylabel() == "weight"
    assert bar.get_yticks().tolist() == [0.0, 5.0, 10.0]
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == [key.label for key in picture.legend]
    mesh, low, high, rings = left.collections
    cells = np.ma.filled(mesh.get_array().reshape(3, 4), np.nan)
    np.testing.assert_array_equal(cells, on_grid(surface(), "value"))
    assert mesh.cmap(mesh.norm(2.0)) == mpl.colors.to_rgba(BANDS.colours[2])
    for contour, level in ((low, 0.5), (high, 1.5)):
        x = np.concatenate([path.vertices[:, 0] for path in contour.get_paths()])
        assert np.allclose(x, level)
    assert rings.get_facecolors().size == 0
    across, upright, triangles, weighed = right.collections
    segments = np.array(across.get_segments())
    np.testing.assert_allclose(segments[:, :, 0], [[-1.0, 5.0]] * 4)
    segments = np.array(upright.get_segments())
    np.testing.assert_allclose(segments[:, :, 1], [[0.5, 2.5]] * 4)
    np.testing.assert_allclose(triangles.get_sizes(), 25.0)
    np.testing.assert_allclose(weighed.get_sizes(), [1.0, 4.0, 9.0, 16.0])
    np.testing.assert_allclose(weighed.get_array(), [0.0, 3.0, 6.0, 9.0])
    (line,) = right.lines
    assert (line.get_drawstyle(), line.get_linestyle()) == ("steps-post", "-.")
    order = [artist.get_zorder() for artist in (mesh, low, high, rings)]
    assert order == sorted(order)
    assert len(set(order)) == 4


def test_plotly_draws_the_same():
    picture = everything()
    figure = with_plotly.draw(picture)
    figure.to_json()
    layout = figure.layout
    assert (layout.xaxis.title.text, layout.yaxis2.title.text) == ("east", "depth")
    assert layout.xaxis.range == (0.0, None)
    assert layout.yaxis.range == (0.0, 2.0)
    assert layout.coloraxis.colorbar.title.text == "weight"
    assert layout.coloraxis.colorbar.tickvals == (0.0, 5.0, 10.0)
    assert [c for _, c in layout.coloraxis2.colorscale][::2] == list(BANDS.colours)
    keys = figure.data[-len(picture.legend) :]
    assert [trace.name for trace in keys] == [key.label for key in picture.legend]
    assert [trace.legendgroup for trace in keys] == [trace.name for trace in keys]
    heat, *contours, rings, bars, weighed, steps = figure.data[: -len(keys)]
    np.testing.assert_array_equal(heat.z, on_grid(surface(), "value"))
    np.testing.assert_array_equal(heat.customdata[0, :, 0], np.arange(4))
    levels = [trace.contours.start for trace in contours]
    assert levels == [0.5, 0.5, 1.5, 1.5]  # each on its margin
    assert [trace.line.color for trace in contours[:2]] == ["white", LINE.colour]
    assert rings.marker.symbol == "circle-open"
    assert rings.hovertemplate.count("customdata") == 1
    np.testing.assert_allclose(bars.error_y.array, 2.5 - places()["y"])
    np.testing.assert_allclose(bars.error_x.arrayminus, places()["x"] + 1.0)
    np.testing.assert_allclose(weighed.marker.size, np.arange(1, 5) * 96 / 72)
    np.testing.assert_allclose(weighed.marker.color, [0.0, 3.0, 6.0, 9.0])
    assert weighed.marker.coloraxis == "coloraxis"
    assert (steps.line.shape, steps.mode) == ("hv", "lines+markers")
    assert {trace.yaxis for trace in (bars, weighed, steps)} == {"y2"}


def test_a_panel_is_drawn_on_the_axes_given():
    panel = Panel((Series(places(), LINE, "line"),), "x", "y")
    picture = Picture((panel,), (3.0, 2.0), (Key("line", LINE),))
    _, ax = plt.subplots()
    assert with_matplotlib.draw_on(picture, ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["line"]
    assert with_matplotlib.draw_on(picture) is not ax


def test_a_title_stands_above_one_panel_and_above_several():
    panel = Panel((Series(places(), LINE),), "x", "y")
    one = Picture((panel,), (3.0, 2.0), title="two\nlines")
    assert with_matplotlib.draw_on(one).get_title() == "two\nlines"
    several = Picture((panel, panel), (3.0, 2.0), title="two\nlines")
    assert with_matplotlib.draw(several).get_suptitle() == "two\nlines"
    assert with_plotly.draw(several).layout.title.text == "two<br>lines"
    # plotly hangs lines up at their middle: the first would be above the figure.
    pads = [
        with_plotly.draw(Picture((panel,), (3.0, 2.0), title=title)).layout.title.pad.t
        for title in ("one", "two\nlines", "three\nlines\nhere")
    ]
    assert pads == [30, 39, 48]


def test_panels_of_different_heights_share_their_horizontal_axis():
    panels = tuple(Panel((Series(places(), LINE),), "", name) for name in "ab")
    picture = Picture(panels, (3.0, 4.0), heights=(2.0, 1.0))
    figure = with_matplotlib.draw(picture)
    top, bottom = figure.axes
    assert top.get_shared_x_axes().joined(top, bottom)
    assert figure.legends == []
    layout = with_plotly.draw(picture).layout
    assert layout.xaxis.matches == "x2"
    spans = [np.ptp(axis.domain) for axis in (layout.yaxis, layout.yaxis2)]
    assert spans[0] == pytest.approx(2 * spans[1])


def test_many_symbols_are_drawn_by_webgl_all_of_them():
    many = Series(places(2000), Look("#1a1a1a", "circle"))
    panel = Panel((many, Series(places(), LINE)), "x", "y")
    figure = with_plotly.draw(Picture((panel,), (3.0, 2.0)))
    assert {trace.type for trace in figure.data} == {"scattergl"}
