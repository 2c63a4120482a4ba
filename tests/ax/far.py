r"""Functions for workers elsewhere: this module imports nothing that takes long."""

import os
import time

WORKER = "BOTORCH_LSE_TEST_WORKER"


def square(x, wait=0.0):
    time.sleep(wait)
    return x * x


def fail(x):
    raise ValueError(f"broken bench {x}")


def die(x):
    os._exit(3)


def bench(parameters):
    r"""The value of a row, and its standard error."""
    return (parameters["pool_index"] - 2.4) ** 2 / 4, 0.05


def slow_bench(parameters):
    r"""The same, so slow that a run can be killed meanwhile."""
    time.sleep(1.0)
    return bench(parameters)
