r"""Evaluations at the top level of a module, as worker processes need them."""

import functools
import os
import time
from pathlib import Path

from botorch_lse.ax import POOL_INDEX

from .worlds import NOISE, grid_pool, measure


def bench(parameters):
    return measure(grid_pool(), parameters[POOL_INDEX]), NOISE


def slow_bench(parameters, seconds=0.02):
    time.sleep(seconds * (1 + parameters[POOL_INDEX] % 3))
    return bench(parameters)


def _first_time(folder, row):
    r"""Whether a row is evaluated for the first time, over all processes."""
    try:
        (Path(folder) / f"row_{row}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def dies_the_first_time(parameters, folder, rows):
    row = parameters[POOL_INDEX]
    if row in rows and _first_time(folder, row):
        os._exit(9)
    return bench(parameters)


def dies_always(parameters, rows):
    if parameters[POOL_INDEX] in rows:
        os._exit(9)
    return bench(parameters)


def raises_the_first_time(parameters, folder, rows):
    row = parameters[POOL_INDEX]
    if row in rows and _first_time(folder, row):
        raise OSError(f"bench {row} is busy")
    return bench(parameters)


def raises_always(parameters, rows):
    if parameters[POOL_INDEX] in rows:
        raise OSError("no power")
    return bench(parameters)


def with_options(function, **options):
    return functools.partial(function, **options)
