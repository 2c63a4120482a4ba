r"""How long it takes until a first name is there, or the command line answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tqdm import tqdm

from research.benchmark.registry import Options, entry
from research.benchmark.speed import target
from research.report import Report, Table

TURNS, QUICK_TURNS = 5, 1
"""How often each is done; the median counts."""
RATIO, SECONDS = 1.15, 1.0
"""The names of a first run may take so many times as long as BoTorch, and an answer of
the command line so long."""
BOTORCH = "import botorch"
NAMES = "from botorch_lse import Pool, Strategy, Above, GaussianProcess"
CALLS = {
    "--help": 0,
    "next --help": 0,
    "--version": 0,
    "next --abve 40": 2,
    "next absent.csv --above 40 --column strength": 2,
}
"""Calls that need no torch, and the status with which each has to end: the last two
have a mistyped option and a missing file."""
PROGRAM = "import sys; from botorch_lse.__main__ import command; sys.exit(command())"
"""What the console script does."""


@entry("speed", "start", "imports, and the first answers of the command line")
def speed_start(options: Options) -> Report:
    r"""Processor seconds of fresh interpreters, and how they compare with BoTorch."""
    turns = QUICK_TURNS if options.quick else TURNS
    work = {name: (["-c", name], 0) for name in (BOTORCH, NAMES)}
    for call, status in CALLS.items():
        work[f"botorch-lse {call}"] = ["-c", PROGRAM, *call.split()], status
    data: dict[str, list[float]] = {name: [] for name in work}
    # One after the other in each turn: what else the machine does meets all alike.
    for _ in tqdm(range(turns), desc="speed start", disable=None, leave=False):
        for name, (arguments, status) in work.items():
            data[name].append(seconds_of(arguments, status))
    whole = median(data[BOTORCH])
    rows = [_row(name, median(seconds), whole) for name, seconds in data.items()]
    columns = ("what", "seconds", "of `import botorch`")
    notes = [
        "Processor seconds, user and system, of a fresh interpreter on one thread; the "
        f"median of {turns}. Targets: names at most {RATIO:g} times `{BOTORCH}`, an "
        f"answer of the command line at most {SECONDS:g} s.",
    ]
    return Report("speed start", notes, [Table("Start", columns, rows)], (), data)


def _row(name: str, seconds: float, whole: float) -> tuple[str, str, str]:
    r"""What something took, beside what BoTorch took."""
    own, ratio = f"{seconds:.2f}", f"{seconds / whole:.2f}"
    if name == NAMES:
        ratio = target(ratio, seconds <= RATIO * whole)
    elif name != BOTORCH:
        own = target(own, seconds <= SECONDS)
    return name, own, ratio


def seconds_of(arguments: Sequence[str], status: int) -> float:
    r"""Processor seconds of a fresh interpreter, in an empty folder.

    Args:
        arguments: Its command line.
        status: The status with which it has to end.

    Raises:
        RuntimeError: If it ends with another one: its seconds would say nothing.
    """
    import resource  # of Unix

    # The package is that of this process, wherever it stands.
    places = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    where = {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **where}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,  # a wrong call has to end with its status
        )
    if done.returncode != status:
        raise RuntimeError(
            f"Expected {arguments} to end with status {status}, but it ended with "
            f"{done.returncode}: {done.stderr}"
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
