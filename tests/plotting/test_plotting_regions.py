r"""Pictures of regions: the contour of each output at each level, or lines."""

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.plotting import level_set_figure, plot_level_set
from botorch_lse.plotting import marks as m
from botorch_lse.plotting.pictures import level_set
from botorch_lse.strategies import Above, Below, Between, GaussianProcess, Strategy

AXIS = torch.linspace(0, 4, 6).double()
GRID = torch.cartesian_prod(AXIS, AXIS)
TRUTH = torch.stack([GRID[:, 0].sin(), GRID[:, 1].cos()], dim=-1)


def answer(goal, X=GRID):
    model = GaussianProcess(RBFKernel().double(), noise_std=0.01)
    strategy = Strategy(Pool(X), goal, model=model, batch_size=12)
    state = strategy.init()
    batch = strategy.ask(state)
    y = TRUTH[batch.order, : strategy.n_outputs]
    y = y.squeeze(-1) if strategy.n_outputs == 1 else y
    state = strategy.tell(state, batch.observe(y))
    return state.classification


def marks_of(picture, kind):
    return [
        mark
        for panel in picture.panels
        for mark in panel.marks
        if isinstance(mark, kind)
    ]


def test_a_map_has_the_contour_of_each_output_at_its_levels():
    found = answer(Between(0.1, 0.6, output="zinc") & Below(0.3, output="lead"))
    contours = marks_of(level_set(found), m.Contour)
    assert {c.label for c in contours} == {"zinc 0.1", "zinc 0.6", "lead 0.3"}
    for contour, (j, level) in zip(
        contours, [(0, 0.1), (0, 0.6), (1, 0.3)], strict=True
    ):
        wanted = (found.outputs[j].mean - level).numpy()
        assert contour.level == 0.0
        assert sorted(contour.rows["value"]) == pytest.approx(sorted(wanted))
    assert [c.look.dash for c in contours] == ["solid", "dash", "dot"]


def test_a_level_of_each_row_is_drawn_where_it_is_crossed():
    found = answer(Above(tuple((GRID[:, 1] / 8).tolist())))
    (contour,) = marks_of(level_set(found), m.Contour)
    assert contour.label == "a level by row"


def test_intervals_of_one_output_have_all_levels():
    found = answer(Between(0.1, 0.6), GRID[:, :1] + 0.01 * GRID[:, 1:])
    lines = [s for s in marks_of(level_set(found), m.Series) if "level" in s.label]
    assert [s.label for s in lines] == ["level 0.1", "level 0.6"]
    assert [s.rows["y"].iloc[0] for s in lines] == [0.1, 0.6]


def test_margins_of_several_outputs_have_the_edge_of_the_region():
    found = answer(Above(0.1) & Below(0.3, output=1))
    picture = level_set(found, kind="intervals")
    (edge,) = [s for s in marks_of(picture, m.Series) if "edge" in s.label]
    assert set(edge.rows["y"]) == {0.0}


@pytest.mark.parametrize("draw", [plot_level_set, level_set_figure])
def test_both_libraries_draw_a_region(draw):
    pytest.importorskip("matplotlib").use("Agg")
    drawn = draw(answer(Above(0.1) & Below(0.3, output=1)))
    if draw is level_set_figure:
        lines = [t.line.dash for t in drawn.data if t.type == "contour" and t.line.dash]
        assert lines == ["solid", "dash"]
    else:
        patterns = [lines.get_linestyle()[0][1] for lines in drawn.collections[1:3]]
        assert patterns[0] is None
        assert patterns[1] is not None
