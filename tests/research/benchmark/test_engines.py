r"""Runs on processes, Dask, Ray and submitit: the same, wherever they are made."""

import os
from dataclasses import dataclass

import pytest
import torch

from research.benchmark import engines
from research.benchmark.__main__ import main
from research.benchmark.engines import ENGINES
from research.benchmark.recorded import Recorded, measure
from tests.covering import IN_FULL


@dataclass(frozen=True)
class Job:
    seed: int


@dataclass(frozen=True)
class Outcome(Recorded):
    job: Job
    value: float
    threads: int
    process: int


def run(job: Job) -> list[Outcome]:
    generator = torch.Generator().manual_seed(job.seed)
    value = float(torch.randn(50, 50, generator=generator, dtype=torch.float64).det())
    return [Outcome(job, value, torch.get_num_threads(), os.getpid())]


def fail(job: Job) -> list[Outcome]:
    raise AssertionError("Expected no run.")


MARKS = {
    "dask": pytest.mark.slow,
    "ray": pytest.mark.engine,
    "submitit": pytest.mark.slow,
}
"""Of engines that start slowly, or that `make test` does not install."""


@pytest.mark.parametrize(
    "engine",
    [pytest.param(e, marks=MARKS.get(e, ())) for e in ENGINES],
)
def test_runs_do_not_depend_on_the_engine(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "FOLDER", tmp_path / "jobs")
    jobs, record = [Job(seed) for seed in range(3)], tmp_path / "runs.jsonl"
    found = measure(Outcome, run, jobs, 2, record, engine)
    assert [outcome.job for outcome in found] == jobs
    assert [outcome.value for outcome in found] == [run(job)[0].value for job in jobs]
    assert {outcome.threads for outcome in found} == {1}
    assert os.getpid() not in {outcome.process for outcome in found}
    # What is recorded is not run again, on whatever engine.
    assert measure(Outcome, fail, jobs, 2, record, "processes") == found
    # And nothing else is, if only that is asked for.
    more = [*jobs, Job(7)]
    assert measure(Outcome, fail, more, 2, record, only_recorded=True) == found
    with pytest.raises(ValueError, match="record that holds runs of this benchmark"):
        measure(Outcome, fail, more[-1:], 2, record, only_recorded=True)


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_a_record_that_a_kill_cut_short_goes_on(name, tmp_path):
    jobs, record = [Job(seed) for seed in range(3)], tmp_path / name
    found = measure(Outcome, run, jobs[:2], 1, record, "processes")
    content = record.read_bytes()
    record.write_bytes(content[:-3])
    again = measure(Outcome, run, jobs, 1, record, "processes")
    assert [outcome.job for outcome in again] == jobs
    assert [outcome.value for outcome in again[:2]] == [o.value for o in found]
    assert measure(Outcome, fail, jobs, 1, record, "processes") == again


def test_an_engine_that_is_not_installed_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(engines, "import_module", missing)
    with pytest.raises(ValueError, match=r"distributed is not.*botorch-lse\[dask\]"):
        measure(Outcome, run, [Job(0)], 1, None, "dask")


def test_the_command_line_chooses_the_engine(capsys):
    with pytest.raises(SystemExit):
        main(["trust", "--engine", "abacus"])
    assert "choose from processes, dask, ray, submitit" in (
        capsys.readouterr().err.replace("'", "")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runs", "engine"),
    [
        ("lse", 1, "processes"),
        pytest.param("regions", 1, "processes", marks=IN_FULL),
        pytest.param("hrage", 1, "processes", marks=IN_FULL),
        ("gege", 1, "dask"),
        pytest.param("milk", 1, "ray", marks=pytest.mark.engine),
        pytest.param("audit", 40, "processes", marks=IN_FULL),
    ],
)
def test_guarantees_are_simulated_alike_on_any_engine(name, runs, engine, capsys):
    command = ["guarantee", name, "--runs", str(runs), "--divide-widths", "3"]
    assert main(command) == 0
    here = capsys.readouterr().out
    assert main([*command, "--workers", "2", "--engine", engine]) == 0
    assert capsys.readouterr().out == here
