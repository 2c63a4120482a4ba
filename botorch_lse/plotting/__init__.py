r"""Pictures of a classification: one data frame, drawn by matplotlib or plotly.

Both libraries are imported only when a picture is drawn. Colours differ in lightness as
well as in hue, so that they can be told apart in print and by colour-blind readers.
"""

from botorch_lse.plotting.picture import level_set_frame
from botorch_lse.plotting.with_matplotlib import plot_level_set
from botorch_lse.plotting.with_plotly import level_set_figure

__all__ = ["level_set_figure", "level_set_frame", "plot_level_set"]
