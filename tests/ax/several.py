r"""Every strategy of several outputs, small, with a bench that measures two metrics."""

import torch

from botorch_lse import Pool, strategies
from botorch_lse.ax import POOL_INDEX

from .test_pareto import MAXIMIZE, NOISE, gaussian, measure
from .worlds import grid_pool

PARETO = {
    "GEGEStrategy": {"max_observations": 12},
    "PALStrategy": {"max_observations": 12},
    "GEGEBudgetStrategy": {"max_observations": 12},
    "EGESHStrategy": {"max_observations": 12},
    "EGESRStrategy": {"max_observations": 12},
    "UniformStrategy": {"max_observations": 12},
    "GEGEPACStrategy": {"noise_std": 0.01, "epsilon": 0.5, "max_observations": 60},
    "RacingStrategy": {"noise_std": 0.3, "step": 1, "max_observations": 12},
    "APEStrategy": {"noise_std": 0.3, "step": 1, "max_observations": 12},
    "GEGELinearStrategy": {
        "noise_std": 0.1,
        "batch_size": 4,
        "max_observations": 12,
    },
}
r"""Their options; the objective is `"y, -z"`."""


def make(name):
    cls, pool = getattr(strategies, name), grid_pool(2)
    if name in ("GEGEStrategy", "PALStrategy"):
        return gaussian(cls, pool, **PARETO[name])
    if name == "GEGELinearStrategy":  # any function is linear in the rows' indicators
        pool = Pool(pool.X, features=torch.eye(4).double())
    return cls(pool, maximize=MAXIMIZE, **PARETO[name])


def bench(parameters):
    y, z = measure(grid_pool(2), parameters[POOL_INDEX])
    return {"y": (y, NOISE[0]), "z": (z, NOISE[1])}
