import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError

from botorch_lse import Classification, Observations, Pool
from botorch_lse.plotting import (
    level_set_figure,
    level_set_frame,
    pictures,
    plot_level_set,
    slices_frame,
)
from botorch_lse.plotting.marks import Cells, on_grid
from botorch_lse.plotting.pictures import COLOURS

mpl.use("Agg")
import matplotlib.pyplot as plt


def sea(with_land=True):
    r"""A 12 x 9 map with some cells missing, rows in no particular order."""
    x = torch.linspace(0, 1, 12, dtype=torch.float64)
    y = torch.linspace(-1, 3, 9, dtype=torch.float64)
    X = torch.cartesian_prod(x, y)
    X = X[X[:, 0] + X[:, 1] > 0.2] if with_land else X
    X = X[torch.randperm(len(X), generator=torch.Generator().manual_seed(0))]
    return Pool(X, names=["east", "north"])


def answer(pool, N=None):
    N = len(pool) if pool is not None else N
    mean = torch.linspace(-1, 1, N, dtype=torch.float64)
    sigma = torch.full_like(mean, 0.1)
    lower, upper = mean - 0.2, mean + 0.2
    above, below = lower > 0, upper <= 0
    undecided = ~(above | below)
    p = torch.special.ndtr(mean / sigma)
    return Classification(
        above, below, undecided, lower, upper, mean, sigma, p, pool=pool
    )


def seen(*rows):
    return Observations(torch.tensor(rows), torch.zeros(len(rows)))


def cells_of(classification):
    r"""The marks of a map that are cells: one, or none if its rows are points."""
    (panel,) = pictures.level_set(classification).panels
    return [mark for mark in panel.marks if isinstance(mark, Cells)]


def legend(figure):
    shown = [trace for trace in figure.data if trace.showlegend is None]
    return [trace.name for trace in shown if trace.name is not None]


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_frame_counts_measurements():
    pool = sea()
    frame = level_set_frame(answer(pool), seen(3, 3, 5))
    assert frame.loc[[3, 5, 6], "n_observations"].tolist() == [2, 1, 0]
    assert list(frame.columns[:3]) == ["east", "north", "side"]
    assert (level_set_frame(answer(pool))["n_observations"] == 0).all()


def test_the_frame_counts_the_measurements_behind_a_mean():
    means = Observations([3, 5], [0.0, 1.0], [0.1, 0.2], counts=[4, 2])
    told = means.append(Observations([5], [1.0], [0.4]))
    frame = level_set_frame(answer(sea()), told)
    assert frame.loc[[3, 5, 6], "n_observations"].tolist() == [4, 3, 0]


def test_a_column_of_the_user_is_kept():
    table = pd.DataFrame({"n_observations": [7.0, 8.0, 9.0]})
    frame = level_set_frame(answer(Pool(table)), seen(1))
    assert frame["n_observations"].tolist() == [7, 8, 9]
    assert frame["n_observations_lse"].tolist() == [0, 1, 0]


def test_a_map_shows_each_row_in_its_cell():
    pool, sizes = sea(), {}
    classification = answer(pool)
    (cells,) = cells_of(classification)
    assert np.allclose(cells.rows[["x", "y"]], pool.X)
    shown = [list(COLOURS)[int(code)] for code in cells.rows["value"]]
    assert shown == classification.side.tolist()
    table = on_grid(cells.rows, "row")
    assert table.shape == (8, 12)
    assert table.isna().sum().sum() == 96 - len(pool)
    for x, column in table.items():
        rows = column.dropna().to_numpy(dtype=int)
        assert np.allclose(pool.X[rows, 0], x)
    ax = plot_level_set(classification, seen(1, 1, 2))
    for side in ("above", "below", "undecided"):
        sizes[side] = int(getattr(classification, side).sum())
    assert labels(ax) == [
        *(f"{side} ({n})" for side, n in sizes.items()),
        "measured (3 on 2 rows)",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")


def test_coordinates_with_rounding_errors_still_make_a_grid():
    pool = sea(with_land=False)
    generator = torch.Generator().manual_seed(0)
    noise = 1e-13 * torch.randn(pool.X.shape, generator=generator)
    shaken = Pool(pool.X + noise)
    assert cells_of(answer(shaken))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "X",
    [
        torch.rand(50, 2, generator=torch.Generator().manual_seed(0)),
        torch.eye(2),
        torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]),
        torch.stack((torch.zeros(5), torch.arange(5.0)), dim=1),
    ],
)
def test_points_that_are_no_grid_are_scattered(X):
    classification = answer(Pool(X))
    assert not cells_of(classification)
    ax = plot_level_set(classification, seen(0))
    drawn = np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections])
    expected = torch.cat((X, X[:1])).tolist()  # each row, and the measured one again
    assert sorted(drawn.tolist()) == sorted(expected)
    ax.figure.canvas.draw()
    assert legend(level_set_figure(classification, seen(0))) == labels(ax)


def test_the_true_contour_runs_at_the_threshold():
    pool = sea(with_land=False)
    truth = pool.X[:, 0]
    ax = plot_level_set(answer(pool), threshold=0.4, truth=truth)
    assert labels(ax)[-1] == "true level 0.4"
    contour = ax.collections[-1]
    (path,) = contour.get_paths()
    assert np.allclose(path.vertices[:, 0], 0.4)
    figure = level_set_figure(answer(pool), threshold=0.4, truth=truth)
    margin, line = (t for t in figure.data if t.type == "contour")
    assert line.contours.start == line.contours.end == margin.contours.end == 0.4
    assert np.array_equal(line.z, margin.z)
    assert legend(figure)[-1] == "true level 0.4"


def test_a_truth_on_one_side_has_no_contour():
    pool = sea()
    ax = plot_level_set(answer(pool), threshold=9.0, truth=pool.X[:, 0])
    assert not any("true level" in label for label in labels(ax))
    figure = level_set_figure(answer(pool), threshold=9.0, truth=pool.X[:, 0])
    assert not any(trace.type == "contour" for trace in figure.data)


@pytest.mark.some(1)
@pytest.mark.parametrize("pool", [None, Pool(torch.rand(30, 3))])
def test_other_pools_are_sorted_intervals(pool):
    classification = answer(pool, 30)
    shuffled = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    parts = {
        name: getattr(classification, name)[shuffled]
        for name in ("above", "below", "undecided", "lower", "upper", "mean", "sigma",
                     "probability_above")
    }  # fmt: skip
    mixed = Classification(**parts, pool=pool)
    given = {"threshold": 0.0, "truth": parts["mean"], "kind": "intervals"}
    ax = plot_level_set(mixed, seen(0, 4), **given)
    assert labels(ax)[3:] == ["mean", "truth", "level 0", "measured (2)"]
    means = next(dots for dots in ax.collections if dots.get_label() == "mean")
    x, y = means.get_offsets().T
    assert np.allclose(y[np.argsort(x)], classification.mean)
    figure = level_set_figure(mixed, seen(0, 4), **given)
    assert legend(figure) == labels(ax)


@pytest.mark.parametrize("is_log", [False, True])
def test_with_one_input_intervals_stand_where_it_is(is_log):
    places = 1 + 99 * torch.rand(30, generator=torch.Generator().manual_seed(0))
    table = pd.DataFrame({"depth (m)": places.double().numpy()})
    X = places.double().log10() if is_log else places.double()
    pool = Pool(X.unsqueeze(-1), names=["depth (m)"], table=table)
    classification = answer(pool, 30)
    ax = plot_level_set(classification, seen(3), threshold=0.0)
    assert ax.get_xlabel() == "depth (m)"
    means = next(dots for dots in ax.collections if dots.get_label() == "mean")
    assert np.allclose(means.get_offsets(), torch.stack((X, classification.mean), 1))
    low, high = ax.get_xlim()
    assert low < X.min() < X.max() < high
    written = {tick.get_text() for tick in ax.get_xticklabels()}
    assert ("50" in written) == is_log  # numbers, not their logarithms
    figure = level_set_figure(classification, seen(3), threshold=0.0)
    assert legend(figure) == labels(ax)
    assert figure.layout.xaxis.title.text == "depth (m)"
    ax = plot_level_set(classification, kind="intervals")
    assert ax.get_xlabel() == "rows, sorted by mean"


def test_endless_intervals_can_be_drawn():
    classification = answer(None, 5)
    endless = torch.full((5,), torch.inf)
    open_ = Classification(
        *(torch.zeros(5, dtype=torch.bool),) * 2,
        torch.ones(5, dtype=torch.bool),
        -endless,
        endless,
        0.0 * classification.mean,
        endless,
        torch.full((5,), 0.5),
    )
    ax = plot_level_set(open_)
    ax.figure.canvas.draw()
    assert np.isfinite(ax.get_ylim()).all()
    level_set_figure(open_).to_json()


def test_the_axes_given_are_used():
    _, ax = plt.subplots()
    assert plot_level_set(answer(sea()), ax=ax) is ax


def test_bad_arguments_are_refused():
    classification = answer(sea())
    with pytest.raises(ValueError, match=r"`threshold` with `truth`"):
        plot_level_set(classification, truth=torch.zeros(len(classification)))
    with pytest.raises(BotorchTensorDimensionError, match=r"`truth`.*row of the pool"):
        plot_level_set(classification, threshold=0.0, truth=torch.zeros(3))
    with pytest.raises(ValueError, match="`threshold` to be finite"):
        level_set_figure(classification, threshold=float("nan"))


def lightness(colour):
    r"""CIE lightness of a colour, 0 to 100."""
    rgb = np.asarray(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    Y = float(linear @ [0.2126, 0.7152, 0.0722])
    return 116 * np.cbrt(Y) - 16 if Y > 0.008856 else 903.3 * Y


@pytest.mark.parametrize(
    "draw", [level_set_frame, plot_level_set, level_set_figure, slices_frame]
)
def test_what_is_no_answer_is_refused_with_the_remedy(draw):
    state = answer(Pool([[0.0], [1.0]]))
    with pytest.raises(ValueError, match=r"got NoneType. Give `state\.classification`"):
        draw(None)
    with pytest.raises(ValueError, match=r"got list. Give `state\.observations`"):
        draw(state, [1, 2])


def test_sides_differ_in_grey():
    shades = sorted(lightness(colour) for colour in COLOURS.values())
    assert np.diff(shades).min() > 20


@pytest.mark.slow
def test_a_large_map_is_drawn_in_seconds():
    x, y = torch.arange(400.0), torch.arange(250.0)
    pool = Pool(torch.cartesian_prod(x, y))
    ax = plot_level_set(answer(pool), threshold=0.0, truth=pool.X[:, 0] - 200)
    ax.figure.canvas.draw()
    assert len(ax.collections) == 2


def test_the_title_says_how_much_is_above_where_rows_stand_for_more():
    plain = sea()
    for given in ({"weights": torch.arange(1.0, len(plain) + 1)}, {"is_sample": True}):
        pool = Pool(plain.X, names=plain.names, **given)
        for kind in ("map", "intervals"):
            found = answer(pool)
            title = plot_level_set(found, kind=kind).get_title()
            assert title.replace("\n", " ") == str(found.content())
            plt.close("all")
    assert plot_level_set(answer(plain)).get_title() == ""
