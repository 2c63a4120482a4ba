r"""Ax: any strategy as a generation strategy, pools as search spaces, stopping, cards.

Importing this package registers everything for storage: import it before an experiment
is loaded.
"""

from botorch_lse.ax import registry as _registered  # noqa: F401
from botorch_lse.ax.acquisitions import acquisition_generator_spec, model_space
from botorch_lse.ax.analysis import LevelSetAnalysis
from botorch_lse.ax.node import LevelSetNode, level_set_generation_strategy
from botorch_lse.ax.pool_space import POOL_INDEX, pool_parameters
from botorch_lse.ax.results import level_set
from botorch_lse.ax.stopping import LevelSetGlobalStoppingStrategy

__all__ = [
    "POOL_INDEX",
    "LevelSetAnalysis",
    "LevelSetGlobalStoppingStrategy",
    "LevelSetNode",
    "acquisition_generator_spec",
    "level_set",
    "level_set_generation_strategy",
    "model_space",
    "pool_parameters",
]
