r"""What a call of the command line takes, by rows, with numbers and with words."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from tqdm import tqdm

from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB
from research.benchmark.speed_start import BOTORCH, PROGRAM, seconds_of
from research.report import Report, Table

ROWS, QUICK_ROWS = (3_000, 10_000, 30_000, 100_000), (3_000, 10_000)
WORDS = (0, 4)
"""Columns of words beside three of numbers."""
LEVELS = ("red", "green", "blue", "grey")
N_RESULTS, LEVEL, NOISE = 60, 0.3, 0.1
CALL = f"next candidates.csv --above {LEVEL} --column y --noise-std {NOISE} --first 20"
"""Fewer first measurements than results: before them nothing is fitted, and with words
the default is more than there are results."""
CALLS = (CALL, "answer")
"""One after the other, in the same folder."""
MEMORY = 4 * 2**30
"""Bytes that a call may take; beyond them it ends with an error, which counts."""
EXPONENT = 1.0
"""Time beyond that of the imports grows at most in proportion to the rows."""


@entry("speed", "calls", "how a call of the command line grows with its table")
def speed_calls(options: Options) -> Report:
    r"""Seconds, memory and exponents; it fails where one is above what is claimed."""
    sizes = QUICK_ROWS if options.quick else ROWS
    start = seconds_of(["-c", BOTORCH], 0)
    cells = list(product(WORDS, sizes))
    found = {
        cell: calls_on(*cell)
        for cell in tqdm(cells, desc="speed calls", disable=None, leave=False)
    }
    rows, failed = [], False
    for words, (i, call) in product(WORDS, enumerate(CALLS)):
        took = [found[words, n][i] for n in sizes]
        power = exponent(sizes, [seconds - start for seconds, _ in took])
        failed |= not power <= EXPONENT
        cells_of = (f"{s:.1f} s, {peak / MIB:.0f} MiB" for s, peak in took)
        rows.append((call.split()[0], words, *cells_of, f"{power:.2f}"))
    columns = ("call", "columns of words", *(f"{n:,} rows" for n in sizes), "exponent")
    notes = [
        f"{N_RESULTS} results, known noise, no epsilon. Processor seconds of a fresh "
        f"interpreter on one thread (`{BOTORCH}`: {start:.1f} s), and its peak memory.",
        f"Exponent: of the seconds beyond `{BOTORCH}`, between the last two sizes; at "
        f"most {EXPONENT:g} is claimed.",
    ]
    verdict = ["An exponent is above what is claimed."] if failed else []
    table = Table("Calls of botorch-lse", columns, rows)
    return Report("speed calls", notes, [table], verdict, failed=failed)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    r"""How seconds grow between the last two sizes; nan where a call failed."""
    first, last = seconds[-2:]
    return math.log(max(last, 1e-3) / max(first, 1e-3)) / math.log(
        sizes[-1] / sizes[-2]
    )


def calls_on(
    words: int, n: int, calls: Sequence[str] = CALLS
) -> list[tuple[float, int]]:
    r"""Seconds and peak bytes of each call on a table; nan and 0 where it failed.

    Args:
        words: Columns of words.
        n: Rows.
        calls: One after the other, in the same folder.
    """
    with TemporaryDirectory() as folder:
        write_files(Path(folder), words, n)
        return [cost_of(call, Path(folder)) for call in calls]


def write_files(folder: Path, words: int, n: int) -> None:
    r"""Candidates, and results of some of them."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n, 3, generator=generator, dtype=torch.float64)
    which = torch.randint(len(LEVELS), (n, words), generator=generator)
    names = ",".join(["a", "b", "c", *(f"w{j}" for j in range(words))])
    shown = [
        ",".join([*(f"{x:.5f}" for x in row), *(LEVELS[k] for k in own)])
        for row, own in zip(X.tolist(), which.tolist(), strict=True)
    ]
    (folder / "candidates.csv").write_text("\n".join([names, *shown]) + "\n")
    y = (6 * X.mean(dim=-1)).sin() + 0.2 * which.sum(dim=-1)
    noise = NOISE * torch.randn(n, generator=generator, dtype=torch.float64)
    lines = [f"{shown[i]},{float(y[i] + noise[i]):.4f}" for i in range(N_RESULTS)]
    (folder / "results.csv").write_text("\n".join([f"{names},y", *lines]) + "\n")


def cost_of(call: str, folder: Path) -> tuple[float, int]:
    r"""Processor seconds and peak memory of one call; nan and 0 where it failed."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY},) * 2)"
    where = os.pathsep.join(
        filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")))
    )
    # Not the peak of ``getrusage``, which counts this process before the other's start.
    said = (
        "import resource, atexit; own = resource.RUSAGE_SELF; "
        "from research.benchmark.speed import CPU, peak_memory; atexit.register(lambda:"
        "print('\\n', *resource.getrusage(own)[:2], peak_memory(CPU)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{limit}; {said}; {PROGRAM}", *call.split()],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": where},
        capture_output=True,
        text=True,
        check=False,  # what fails is shown
    )
    if done.returncode != 0:
        return math.nan, 0
    user, system, peak = map(float, done.stdout.split()[-3:])
    return user + system, int(peak)
