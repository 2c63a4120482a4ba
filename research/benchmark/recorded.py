r"""Many runs in several processes, on a record from which what was cut off goes on.

A job says everything about a run: running it again gives the same. So a job that the
record holds need not be run, whoever ran it, and in whatever order.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Self, TypeVar, get_type_hints

from tqdm import tqdm

from botorch_lse._files import write_whole
from research.benchmark.engines import executor_on, on_one_thread


@dataclass(frozen=True)
class Recorded:
    r"""The outcome of a job; its fields are numbers, strings, or lists of them.

    Args:
        job: What was run: a dataclass whose fields have other names than the outcome's.
    """

    job: Any

    def record(self) -> dict[str, Any]:
        r"""Everything as numbers and strings, without nesting."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "job"}
        return {**asdict(self.job), **own}

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> Self:
        r"""The outcome of ``record()``, also after a way through JSON."""
        # JSON knows no tuples, and a job must be hashable.
        values = {n: tuple(v) if type(v) is list else v for n, v in record.items()}
        kind = get_type_hints(cls)["job"]
        names = {f.name for f in fields(kind)}
        job = kind(**{name: values[name] for name in names})
        return cls(job, **{n: v for n, v in values.items() if n not in names})


Job = TypeVar("Job", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Recorded)


def measure(
    kind: type[Outcome],
    run: Callable[[Job], Sequence[Outcome]],
    jobs: Sequence[Job],
    workers: int,
    record: Path | None,
    engine: str = "processes",
    only_recorded: bool = False,
) -> list[Outcome]:
    r"""The outcomes of all jobs, each in some process on one thread.

    Args:
        kind: What a job gives.
        run: Runs a job; it must be picklable, as a function of a module is.
        jobs: What to run.
        workers: How many processes.
        record: A file of outcomes, one JSON object per line. Jobs that it holds are not
            run again, others are added as they end, so that what was interrupted goes
            on. It is compressed if its name ends in ``.gz``.
        engine: One of ``ENGINES``: where the processes are.
        only_recorded: Run nothing: give what the record holds of the jobs.

    Raises:
        ValueError: If the engine's package is not installed, or nothing is to be run
            and the record holds none of the jobs.

    Returns:
        The outcomes in the order of the jobs.
    """
    known: dict[Any, Sequence[Outcome]] = {}
    if record is not None and record.exists():
        for line in _whole_lines(record):
            found = kind.of_record(json.loads(line))
            known[found.job] = [*known.get(found.job, ()), found]
    missing = [job for job in jobs if job not in known]
    if only_recorded:
        jobs, missing = [job for job in jobs if job in known], []
        if not jobs:
            raise ValueError(
                f"Expected a record that holds runs of this benchmark, but {record} "
                "holds none. Leave `--recorded` out to make them."
            )
    if not missing:
        return [outcome for job in jobs for outcome in known[job]]
    with executor_on(engine, workers) as executor:
        futures = {executor.submit(on_one_thread, run, job): job for job in missing}
        bar = tqdm(as_completed(futures), total=len(futures), desc="runs", disable=None)
        for future in bar:
            outcomes = known[futures[future]] = future.result()
            if record is not None:
                lines = (json.dumps(found.record()) + "\n" for found in outcomes)
                with _opened(record, "at") as file:
                    file.write("".join(lines))
    return [outcome for job in jobs for outcome in known[job]]


def _whole_lines(record: Path) -> list[str]:
    r"""The lines of a record; a line that a kill cut short is removed from it."""
    lines, is_torn = list[str](), False
    with _opened(record, "rt") as file:
        try:
            lines += file
        except EOFError:
            is_torn = True
    if lines and not lines[-1].endswith("\n"):
        is_torn = bool(lines.pop())
    if is_torn:
        content = "".join(lines).encode()
        is_packed = record.suffix == ".gz"
        write_whole(record, gzip.compress(content) if is_packed else content)
    return lines


def _opened(record: Path, mode: str) -> IO[str]:
    r"""The record as text, whether it is compressed or not."""
    if record.suffix == ".gz":
        return gzip.open(record, mode)  # type: ignore[return-value]  # the mode has a t
    return record.open(mode)
