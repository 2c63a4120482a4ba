r"""Every strategy of several outputs, small, with a bench that measures two metrics."""

import torch

from botorch_lse import Pool
from botorch_lse.ax import POOL_INDEX
from tests.registry import SEVERAL, case_of

from .test_pareto_in_ax import MAXIMIZE, NOISE, gaussian, measure
from .worlds import grid_pool

NAMES = [case.__name__ for case in SEVERAL]
r"""Their names, which other processes understand; the objective is `"y, -z"`."""


def make(name):
    case, pool = case_of(name), grid_pool(2)
    if case.family == "gaussian":
        return gaussian(case, pool, **case.small)
    if case.is_linear:  # any function is linear in the rows' indicators
        pool = Pool(pool.X, features=torch.eye(4).double())
    return case.make(pool, maximize=MAXIMIZE, **case.small)


def bench(parameters):
    y, z = measure(grid_pool(2), parameters[POOL_INDEX])
    return {"y": (y, NOISE[0]), "z": (z, NOISE[1])}
