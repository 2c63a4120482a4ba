r"""Runs that are killed at random moments, and resumed.

``python -m tests.reference.kills --minutes 10 --seed 0`` kills until the time is over
(or ``--count`` times), says how often, and ends with 1 if something was lost;
``--only K`` plays kill ``K`` alone. What a kill is about is a function of the seed and
its number; the moment, a share of the time that an uninterrupted run takes, is too,
though not what the machine has done by then.

Some are calls of ``botorch-lse`` on a folder of tables, whose files may be links to
another folder, some are stored runs of Ax (a JSON file or SQLite). Each process gets
SIGKILL, SIGTERM or Ctrl-C. Then: every file is whole, as it was before or as it is
after; what was measured is there, once; the next call goes on to the files, and the
answer, of a run that nobody killed.

Some are demos, whose pictures and table lie over those of another seed.

Others are no kills: a sheet, or results, that are saved while a call computes, a disk
that is full (where a small one can be mounted), a file that is cut or has a wrong byte,
workers of each installed executor that die, raise or hang. Every fifth breaks a worker;
these take the executors in turn, so that a run of ten minutes meets each of them.
"""

from __future__ import annotations

import argparse
import csv
import io
import logging
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from botorch_lse.__main__ import command
from botorch_lse.ax import run_experiment
from research.benchmark.engines import executor_on
from tests.ax import far, killed
from tests.ax.test_killed import check, uninterrupted
from tests.processes import forked, in_a_new_process
from tests.registry import SEVERAL

FITS = ".botorch-lse.fits.json"
"""What the commands remember, and may be lost."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LATER = ("next", "answer", "simulate --between 0,10 --noise 0.1 --runs 1 --most 20")
"""Calls of a folder that has settings."""
RUNS = [
    "LSEStrategy",
    killed.AUDITED,
    killed.REGION,
    killed.REGION_AUDITED,
    killed.FRONT_AUDITED,
    *(case.__name__ for case in SEVERAL),
]
"""What ``tests/ax/killed.py`` knows by name: every strategy of several outputs, too."""


def must(holds: bool, words: str) -> None:
    r"""Complain unless something holds."""
    if not holds:
        raise AssertionError(words)


def killed_within(call: Any, seconds: float, number: signal.Signals) -> bool:
    r"""Fork a process that calls something, and kill it after so many seconds.

    Returns:
        Whether it was killed; it may have ended by itself before.
    """

    def silently() -> int:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        status: int = call()
        return status

    child = forked(silently)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            must(status == 0, f"a call that nobody killed ended with {status}")
            return False
        time.sleep(0.001)
    os.kill(child, number)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 130


# --- tables ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    r"""A folder with a table of candidates, and a bench that measures them.

    Args:
        rng: The random numbers.
        line: The first call.
        folder: Where the files are.
        linked: Those that are links to another folder.
    """

    rng: random.Random
    line: str
    folder: Path
    linked: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, rng: random.Random, folder: Path) -> Bench:
        r"""A new table, and the first call of a run on it."""
        n = rng.choice([6, 12, 20])
        lines = [f"n{i:02d},{i / 2},{rng.randrange(9)}\n" for i in range(n)]
        (folder / "candidates.csv").write_text("name,x,z\n" + "".join(lines))
        options = [f"--batch {rng.choice([1, 3, 5])}", "--epsilon 0.5", "--key name"]
        options += rng.choice([[], ["--noise-std 0.1"], ["--noise-std 0"]])
        options += rng.choice([[], [f"--budget {rng.choice([4, 9])}"]])
        options += rng.choice([[], ["--replicates"], ["--first 4"]])
        level = rng.choice(["--above 7", "--below 5"])
        call = f"next candidates.csv {level} --column y {' '.join(options)}"
        return cls(rng, call, folder)

    def contents(self, folder: Path) -> dict[str, bytes]:
        r"""The files, without those that a killed process left half written."""
        names = (p for p in sorted(folder.iterdir()) if not p.name.startswith("."))
        return {p.name: p.read_bytes() for p in names}

    def call(self, folder: Path, line: str) -> int:
        r"""The status of a call in a folder."""
        os.chdir(folder)
        with redirect_stdout(io.StringIO()):
            return command(line.split())

    def move_to_a_drive(self, drive: Path) -> None:
        r"""Move some files to another folder, and leave links."""
        drive.mkdir()
        for path in sorted(self.folder.iterdir()):
            if self.rng.random() < 0.5:
                path.rename(drive / path.name)
                path.symlink_to(drive / path.name)
                self.linked.append(path.name)

    def fill(self) -> None:
        r"""Measure a few open lines of the sheet: a value, a failure, or never."""
        path = self.folder / "sheet.csv"
        with path.open(newline="") as file:
            lines = list(csv.DictReader(file))
        if not lines:  # the run has ended
            return
        told = self.told(self.contents(self.folder))
        names = Counter([name for name, _ in told] + [line["name"] for line in lines])
        for line in lines:
            if line["y"] or self.rng.random() < 0.2:
                continue
            x = 2 * float(line["x"])
            noise = self.rng.gauss(0, 0.1)
            words = f"{10 - 0.2 * (x - 8.5) ** 2 + noise:.4f}"
            said = self.rng.choices([words, "failed", "n/a"], [12, 1, 1])[0]
            # What has a value, or may get one, is not called impossible to measure.
            is_known = said == "n/a" and names[line["name"]] > 1
            line["y"] = words if is_known else said
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0].keys())
            writer.writeheader()
            writer.writerows(lines)

    def told(self, contents: Mapping[str, bytes]) -> Counter[tuple[str, str]]:
        r"""Every value, with its candidate, in results and sheet."""
        found = Counter[tuple[str, str]]()
        for name in ("results.csv", "sheet.csv"):
            text = contents.get(name, b"").decode().splitlines()
            lines = (line for line in csv.DictReader(text) if line["y"])
            own = Counter((line["name"], line["y"]) for line in lines)
            found |= own  # between two writes a line may stand in both
        return found


def kill_a_table(rng: random.Random) -> str:
    r"""A run by tables, one of whose calls is killed; what became of it.

    Returns:
        A word: ``killed``, or ``too late`` if the call had ended.
    """
    with tempfile.TemporaryDirectory() as name:
        real, twin = Path(name, "real"), Path(name, "twin")
        real.mkdir()
        bench, line = Bench.begin(rng, real), ""
        for _ in range(rng.randint(0, 4)):  # rounds before the one that is killed
            must(bench.call(real, line or bench.line) == 0, "a call failed")
            line = "next"
            with (real / "sheet.csv").open() as file:
                if len(file.readlines()) < 2:
                    break  # nothing more is to be measured
            bench.fill()
        line = rng.choice(LATER) if line else bench.line
        if rng.random() < 0.3:
            bench.move_to_a_drive(Path(name, "drive"))
        shutil.copytree(real, twin)  # in which a link is a file
        before, start = bench.contents(real), time.monotonic()
        must(bench.call(twin, line) == 0, "a call failed")
        after, seconds = bench.contents(twin), time.monotonic() - start
        # Most of a call is reading and learning: every second moment is at its end.
        share = rng.choice([rng.random(), rng.uniform(0.9, 1.1)])
        was_killed = killed_within(
            lambda: bench.call(real, line), share * seconds, rng.choice(SIGNALS)
        )
        now = bench.contents(real)
        for file, content in now.items():
            whole = content in (before.get(file), after.get(file))
            must(whole, f"{file} is neither as before nor as after")
        must({*before} <= {*now}, "a file is gone")
        lost = bench.told(before) - bench.told(now)
        must(not lost, f"lost: {lost}")
        # The first call may not have written its settings: then it is made again.
        must(bench.call(real, line) == 0, "the call after the kill failed")
        must(bench.contents(real) == after, "the files are not those of a whole run")
        left = [p.name for p in real.iterdir() if p.name.startswith(".")]
        left = [name for name in left if name != FITS]
        must(not left, f"left behind: {left}")
        for file in bench.linked:
            must((real / file).is_symlink(), f"{file} is no link any more")
        return "table killed" if was_killed else "table, too late"


def kill_a_demo(rng: random.Random) -> str:
    r"""A demo that is killed, in a folder with the files of another one."""
    with tempfile.TemporaryDirectory() as name:
        real, twin, pool = (
            Path(name, "real"),
            Path(name, "twin"),
            Path(name, "pool.csv"),
        )
        lines = [f"{i / 4},{math.sin(i / 4)}\n" for i in range(40)]
        pool.write_text("x,y\n" + "".join(lines))
        method, budget = rng.choice(["lse", "straddle", "random"]), rng.choice([12, 20])
        numbers = f"--threshold 0.2 --noise 0.1 --epsilon 0.05 --budget {budget}"

        def call(folder: Path, seed: int) -> int:
            line = f"demo --pool {pool} {numbers} --methods {method} --seed {seed}"
            with redirect_stdout(io.StringIO()):
                return command([*line.split(), "--out", str(folder)])

        def contents() -> dict[str, bytes]:
            return {p.name: p.read_bytes() for p in real.iterdir() if p.suffix}

        must(call(real, 0) == 0, "a call failed")
        before, start = contents(), time.monotonic()
        must(call(twin, 1) == 0, "a call failed")
        seconds = time.monotonic() - start
        after = {p.name: p.read_bytes() for p in twin.iterdir()}
        share = rng.choice([rng.random(), rng.uniform(0.7, 1.1)])
        was_killed = killed_within(
            lambda: call(real, 1), share * seconds, rng.choice(SIGNALS)
        )
        for file in before:
            content = (real / file).read_bytes()
            whole = content in (before[file], after[file])
            must(whole, f"{file} is neither as before nor as after")
        must(call(real, 1) == 0, "the call after the kill failed")
        found = {p.name: p.read_bytes() for p in real.iterdir()}
        must(found == after, f"not the files of a whole call: {sorted(found)}")
        return "demo killed" if was_killed else "demo, too late"


def begun(rng: random.Random, folder: Path) -> Bench:
    r"""A run by tables whose sheet has been filled in."""
    bench = Bench.begin(rng, folder)
    must(bench.call(folder, bench.line) == 0, "a call failed")
    for _ in range(rng.randint(0, 2)):
        bench.fill()
        must(bench.call(folder, "next") == 0, "a call failed")
    bench.fill()
    return bench


def save_meanwhile(rng: random.Random) -> str:
    r"""A sheet, or results, that somebody saves while a call computes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = begun(rng, folder)
        tables = [folder / file for file in ("sheet.csv", "results.csv")]
        sheet = rng.choice([path for path in tables if path.exists()])
        child = forked(lambda: bench.call(folder, "next"))
        time.sleep(rng.random())
        # As a spreadsheet does: what it shows, with the note of a person.
        with sheet.open(newline="") as file:
            header, *lines = list(csv.reader(file))
        if lines:
            lines[-1][header.index("y")] = "12.3456"
            who = tuple(lines[-1][header.index(n)] for n in ("name", "y"))
            with (folder / "saved.csv").open("w", newline="") as file:
                csv.writer(file).writerows([header, *lines])
            (folder / "saved.csv").replace(sheet)
        _, status = os.waitpid(child, 0)
        must(os.waitstatus_to_exitcode(status) in (0, 2), f"ended with {status}")
        if lines:
            told = bench.told(bench.contents(folder))
            must(told[who] == 1, "a value that was saved is lost")
        return "saved meanwhile"


def fill_the_disk(rng: random.Random) -> str:
    r"""A disk that is full when a call writes."""
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", name]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return "full disk, skipped: nothing can be mounted here"
        try:
            folder = Path(name)
            bench = begun(rng, folder)
            before = bench.contents(folder)
            with suppress(OSError), (folder / "filling").open("wb") as file:
                while True:
                    file.write(bytes(512))
                    file.flush()
            status = bench.call(folder, "next")
            must(status in (0, 2), f"ended with {status}")
            now = bench.contents(folder)
            must(not bench.told(before) - bench.told(now), "a value is lost")
            (folder / "filling").unlink()
            must(bench.call(folder, "next") == 0, "the call after it failed")
        finally:
            os.chdir("/")
            subprocess.run(["umount", name], check=True)
    return "full disk"


def damage_a_file(rng: random.Random) -> str:
    r"""A file that is cut short, or has a wrong byte: refused, said, or harmless."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun(rng, folder)
        files = ("sheet.csv", "results.csv", "botorch-lse.toml")
        path = folder / rng.choice([f for f in files if (folder / f).exists()])
        content = path.read_bytes()
        at = rng.randrange(1, len(content))
        is_cut = rng.random() < 0.5
        flipped = content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))])
        path.write_bytes(content[:at] if is_cut else flipped + content[at + 1 :])
        said = io.StringIO()
        os.chdir(folder)
        with redirect_stdout(said), redirect_stderr(said):
            status = command(["next"])
        must(status in (0, 2), f"ended with {status}")
        if is_cut and status == 0 and content[at - 1] not in b"\r\n":
            must(
                "no line break ends" in said.getvalue(), f"{path.name} was taken as is"
            )
        return f"{'cut' if is_cut else 'flipped'}, {'refused' if status else 'taken'}"


# --- workers --------------------------------------------------------------------------


def processes() -> ProcessPoolExecutor:
    r"""A pool of two processes."""
    return ProcessPoolExecutor(2, mp_context=get_context("fork"))


def executors() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    r"""Executors by name, each as a context."""
    return {
        "none": lambda: nullcontext(None),
        "threads": lambda: ThreadPoolExecutor(2),
        "processes": processes,
        "a function": lambda: nullcontext(processes),
    }


CLUSTERS = [
    name
    for name, module in (("dask", "distributed"), ("ray", "ray"), ("submitit",) * 2)
    if find_spec(module) is not None
]
"""The engines that are installed; each is begun in a process of its own."""


BEFALLS = ("die", "raise", "hang")


def break_a_worker(rng: random.Random, turn: int) -> str:
    r"""A worker that dies, raises or hangs once; nothing is measured twice or lost.

    Args:
        rng: The random numbers.
        turn: Which executor, and then what befalls it.
    """
    kinds = [*CLUSTERS, *executors()]
    times, number = divmod(turn, len(kinds))
    kind, what = kinds[number], BEFALLS[(times + number) % len(BEFALLS)]
    at = rng.randrange(6)
    if what == "die" and kind in ("none", "threads"):
        what = "raise"  # they die with the run, as the kills do
    if kind in CLUSTERS:
        in_a_new_process(break_one_of, kind, what, at)
    else:
        break_one_of(kind, what, at)
    return f"worker of {kind}, {what}"


def break_one_of(kind: str, what: str, at: int) -> None:
    r"""A run on an executor of a kind, whose evaluation number ``at`` breaks."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # The workers of other engines import this package's tests from here.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    client = killed.new_client("LSEStrategy")
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)  # where submitit's jobs lie
        folder = Path(name, "begun")
        folder.mkdir()
        make = executors().get(kind, lambda: executor_on(kind, 2))
        with make() as executor:
            evaluate = partial(far.break_once, folder=str(folder), what=what, at=at)
            options: dict[str, Any] = {"executor": executor, "on_error": "retry"}
            options["max_pending"] = 2
            if (
                what == "hang"
            ):  # jobs are processes that begin anew, and take their time
                options |= {"timeout": 20.0 if kind in CLUSTERS else 5.0}
                options |= {"max_retries": 9}
            for _ in range(3):  # a pool that somebody made is lost with its worker
                try:
                    run_experiment(client, evaluate, progress=False, **options)
                    break
                except BrokenExecutor:
                    must(kind == "processes" and what == "die", "a pool broke")
                    options["executor"] = processes
        twice = Counter(path.name.partition("-")[0] for path in folder.iterdir())
        # On a busy machine one that does not hang may be overdue, too.
        is_once = what == "hang" or max(twice.values()) <= 2
        must(is_once, "a trial was evaluated three times")
        os.chdir("/")
    trials = client._experiment.trials.values()
    must(all(t.status.is_completed for t in trials), "a trial did not complete")


# --- runs of Ax -----------------------------------------------------------------------


def kill_a_run(rng: random.Random) -> str:
    r"""A stored run of Ax that is killed; what became of it in a word."""
    name, kind = rng.choice(RUNS), rng.choice(["json", "db"])
    with tempfile.TemporaryDirectory() as folder:
        expected, reason, seconds = uninterrupted(Path(folder), kind, name)
        n_notes = 2 * len(expected)
        moments = [rng.randrange(n_notes)]
        part, number = seconds / n_notes, rng.choice(SIGNALS[:2])

        def quietly() -> None:
            logging.disable(logging.CRITICAL)
            killed.main(folder, kind, name, part, moments, number)

        child = forked(quietly)
        _, status = os.waitpid(child, 0)
        must(status == 0, f"the process that kills ended with {status}")
        done, _ = check(folder, 0, kind, name, expected, reason)
    return "run killed" if done < len(expected) else "run, too late"


PLAYS = (
    *[kill_a_table, kill_a_run] * 3,  # most of all
    kill_a_demo,
    save_meanwhile,
    fill_the_disk,
    damage_a_file,
)
EVERY = 5
"""Of so many kills one breaks a worker: ten minutes play 40 on a busy machine."""


def play(seed: int, number: int) -> str:
    r"""What became of a kill; ``FAILED: ...`` if something was lost."""
    rng = random.Random(f"{seed}/{number}")
    here = Path.cwd()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if number % EVERY == 0:
                return break_a_worker(rng, number // EVERY)
            return rng.choice(PLAYS)(rng)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            return f"FAILED: {type(error).__name__} at {where}: {str(error)[:200]}"
        finally:
            os.chdir(here)


def main(arguments: list[str] | None = None) -> int:
    r"""Kill, and say what became of it."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--count", type=int, help="kills at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--only", type=int, help="the number of one")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    if options.only is not None:
        print(play(options.seed, options.only))
        return 0
    ends, failed = Counter[str](), dict[int, str]()
    end, number = time.monotonic() + 60 * options.minutes, options.first
    last = math.inf if options.count is None else options.first + options.count
    while time.monotonic() < end and number < last:
        found = play(options.seed, number)
        if found.startswith("FAILED"):
            failed[number] = found
            print(f"{number}: {found}", flush=True)
        ends[found.partition(":")[0]] += 1
        number += 1
    counts = ", ".join(f"{n} {words}" for words, n in ends.most_common())
    print(f"{sum(ends.values())} kills: {counts}.")
    if failed:
        how = f"--seed {options.seed} --only {min(failed)}"
        print(f"{len(failed)} lost something; play one: {how}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
