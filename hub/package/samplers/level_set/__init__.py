"""The sampler as a package of OptunaHub: see README.md."""

from botorch_lse.integrations.optuna import LevelSetSampler

__all__ = ["LevelSetSampler"]
