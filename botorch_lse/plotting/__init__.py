r"""Pictures of an answer: one data frame, drawn by matplotlib or plotly.

Both libraries are imported only when a picture is drawn. Colours differ in lightness as
well as in hue, so that they can be told apart in print and by colour-blind readers.
"""

from botorch_lse.plotting.panels import batches_frame, slices_frame
from botorch_lse.plotting.panels_matplotlib import (
    plot_batches,
    plot_progress,
    plot_slices,
)
from botorch_lse.plotting.panels_plotly import (
    batches_figure,
    progress_figure,
    slices_figure,
)
from botorch_lse.plotting.pareto import pareto_frame
from botorch_lse.plotting.pareto_matplotlib import plot_pareto_set
from botorch_lse.plotting.pareto_plotly import pareto_set_figure
from botorch_lse.plotting.picture import level_set_frame
from botorch_lse.plotting.progress import progress_frame
from botorch_lse.plotting.with_matplotlib import plot_level_set
from botorch_lse.plotting.with_plotly import level_set_figure

__all__ = [
    "batches_figure",
    "batches_frame",
    "level_set_figure",
    "level_set_frame",
    "pareto_frame",
    "pareto_set_figure",
    "plot_batches",
    "plot_level_set",
    "plot_pareto_set",
    "plot_progress",
    "plot_slices",
    "progress_figure",
    "progress_frame",
    "slices_figure",
    "slices_frame",
]
