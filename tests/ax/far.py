r"""Functions for workers elsewhere: this module imports nothing that takes long."""

import os
import signal
import time
from pathlib import Path

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


def hang_in(parameters, rows):
    r"""Hang for ever in some rows."""
    if parameters["pool_index"] in rows:
        time.sleep(10_000)
    return bench(parameters)


def interrupt_and_hang(parameters, main, row):
    r"""Press Ctrl-C, as Jupyter's stop does: the main process alone gets the signal."""
    if parameters["pool_index"] == row:
        time.sleep(0.5)  # so that the others have begun
        os.kill(main, signal.SIGINT)
    time.sleep(10_000)


def break_once(parameters, folder, what, at):
    r"""Die, raise or hang in one evaluation, after ``at`` others have begun."""
    row, n = parameters["pool_index"], len(list(Path(folder).glob("*-*")))
    Path(folder, f"{row}-{time.monotonic_ns()}").touch()
    if n >= at and _is_first(Path(folder, "broken")):
        if what == "die":
            os._exit(9)
        if what == "hang":
            time.sleep(60)
        raise OSError("broken once")
    return bench(parameters)


def _is_first(mark):
    try:
        mark.touch(exist_ok=False)  # of two that begin at once only one succeeds
    except FileExistsError:
        return False
    return True


def leave(parameters):
    raise SystemExit(3)


def die_the_first_time(parameters, notes):
    r"""End the worker, and note each time that this begins."""
    with Path(notes).open("a") as file:
        file.write("begun\n")
    os._exit(9)


def leave_by_error(parameters):
    raise KeyError("as if the worker had died")


def hang_noted(parameters, folder):
    r"""Note that this has begun, and hang."""
    Path(folder, f"begun {parameters['pool_index']}").touch()
    time.sleep(600)
