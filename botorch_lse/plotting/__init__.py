r"""Pictures of an answer: one data frame, drawn by matplotlib or plotly.

``frames`` makes the data frames, ``pictures`` describes each picture by the records of
``marks``, and ``with_matplotlib`` and ``with_plotly`` draw any picture described in
this way. Both libraries are imported only when a picture is drawn.
"""

from botorch_lse.plotting.frames import (
    batches_frame,
    calibration_frame,
    importance_frame,
    level_set_frame,
    pareto_frame,
    progress_frame,
    slices_frame,
)
from botorch_lse.plotting.pictures import (
    batches_figure,
    calibration_figure,
    level_set_figure,
    pareto_set_figure,
    plot_batches,
    plot_calibration,
    plot_level_set,
    plot_pareto_set,
    plot_progress,
    plot_slices,
    progress_figure,
    slices_figure,
)
from botorch_lse.plotting.report import write_report

__all__ = [
    "batches_figure",
    "batches_frame",
    "calibration_figure",
    "calibration_frame",
    "importance_frame",
    "level_set_figure",
    "level_set_frame",
    "pareto_frame",
    "pareto_set_figure",
    "plot_batches",
    "plot_calibration",
    "plot_level_set",
    "plot_pareto_set",
    "plot_progress",
    "plot_slices",
    "progress_figure",
    "progress_frame",
    "slices_figure",
    "slices_frame",
    "write_report",
]
