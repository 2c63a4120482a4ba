r"""Ax: strategies as generation strategies, pools as search spaces, stopping, cards.

Importing this package registers everything for storage: import it before an experiment
is loaded.
"""

try:
    import ax as _ax  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "`botorch_lse.ax` needs Ax, which is not installed. Run "
        "`pip install 'botorch-lse[ax]'`.",
        name=error.name,
    ) from error

from botorch_lse.ax.acquisitions import acquisition_generator_spec, model_space
from botorch_lse.ax.analysis import (
    BatchAnalysis,
    CalibrationAnalysis,
    IntervalAnalysis,
    LevelSetAnalysis,
    LevelSetGlobalStoppingStrategy,
    ParetoAnalysis,
    ProbabilityAnalysis,
    ProgressAnalysis,
    ReportAnalysis,
    SliceAnalysis,
    level_set,
    level_set_content,
    level_set_report,
)
from botorch_lse.ax.constraints import goal_from_constraints
from botorch_lse.ax.costs import CostMetric, record_costs, trial_cost
from botorch_lse.ax.modular import ModelAnalysis
from botorch_lse.ax.node import (
    LevelSetNode,
    exclude_rows,
    level_set_generation_strategy,
)
from botorch_lse.ax.overview import LevelSetOverview
from botorch_lse.ax.pool_space import POOL_INDEX, grid_pool, pool_parameters
from botorch_lse.ax.recording import save_client
from botorch_lse.ax.references import allow
from botorch_lse.ax.run import run_experiment

__all__ = [
    "POOL_INDEX",
    "BatchAnalysis",
    "CalibrationAnalysis",
    "CostMetric",
    "IntervalAnalysis",
    "LevelSetAnalysis",
    "LevelSetGlobalStoppingStrategy",
    "LevelSetNode",
    "LevelSetOverview",
    "ModelAnalysis",
    "ParetoAnalysis",
    "ProbabilityAnalysis",
    "ProgressAnalysis",
    "ReportAnalysis",
    "SliceAnalysis",
    "acquisition_generator_spec",
    "allow",
    "exclude_rows",
    "goal_from_constraints",
    "grid_pool",
    "level_set",
    "level_set_content",
    "level_set_generation_strategy",
    "level_set_report",
    "model_space",
    "pool_parameters",
    "record_costs",
    "run_experiment",
    "save_client",
    "trial_cost",
]
