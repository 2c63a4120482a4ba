import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from gpytorch.kernels import (
    Kernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    ScaleKernel,
)

from botorch_lse import Pool
from research.benchmark import peers_all
from research.benchmark.__main__ import main
from research.benchmark.peers_all import package_of
from research.benchmark.peers_packages import started, stated_process
from research.benchmark.peers_problems import PROBLEMS, Case, Problem
from research.benchmark.peers_runs import Job, Run, run

LOOP = """
import sys
for line in sys.stdin:
    print('{{"rows": {}}}', flush=True)
"""
PEER = shlex.join([sys.executable, str(Path(__file__).with_name("peer.py"))])
JOB = Job("line", "peer", 3, 0.05, False, 9, 0)


def case_of(kernel: Kernel) -> Case:
    X = torch.linspace(0.0, 1.0, 30, dtype=torch.float64).unsqueeze(-1)
    return Case(Pool(X), (5 * X).sin().view(-1), 0.52, kernel)


def line_case(seed: int, path: Path | None) -> Case:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.3, 0.7
    return case_of(kernel)


@pytest.fixture(autouse=True)
def _line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROBLEMS, "line", Problem(line_case))


@pytest.mark.parametrize("q", [1, 3])
def test_a_peer_with_our_criterion_chooses_our_rows(q: int) -> None:
    job = replace(JOB, q=q)
    (found,) = run(job, commands={"peer": PEER})
    (ours,) = run(replace(job, method="Straddle"))
    assert found.wrong == ours.wrong
    assert found.seconds > 0
    assert found.job.method == "peer"


def test_processes_are_stated_in_units_of_y() -> None:
    kernel = MaternKernel(1.5, ard_num_dims=1).double()
    kernel.lengthscale = 0.4
    found = stated_process(case_of(kernel))
    assert found["kernel"] == "matern1.5"
    assert found["lengthscale"] == [pytest.approx(0.4)]
    assert (found["variance"], found["mean"]) == (1.0, 0.0)
    fitted = Case(Pool(line_case(0, None).pool.X), 7 + line_case(0, None).truth, 7.52)
    found = stated_process(fitted)
    prior = fitted.prior
    assert found["variance"] == pytest.approx(float(prior.scale) ** 2)
    assert 6 < found["mean"] < 8
    with pytest.raises(ValueError, match=r"Expected an RBF or Matern kernel.*Periodic"):
        stated_process(case_of(PeriodicKernel().double()))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise SystemExit(3)", "ended with status 3"),
        ("print('{}'); import sys; sys.stdin.readline()", "ended with status 0"),
        (
            LOOP.format("[1]"),
            r"(?s)Expected 3 numbers of rows below 30 .* but got \[1\]",
        ),
        (
            LOOP.format("[1, 2, 30]"),
            "Expected 3 numbers of rows below 30",
        ),
    ],
)
def test_what_is_no_peer_is_told_so(code: str, message: str) -> None:
    rows, y = torch.arange(2), torch.zeros(2).double()
    command = shlex.join([sys.executable, "-c", code])
    with (
        pytest.raises(ValueError, match=message),
        started(command, line_case(0, None), 0.01, 3, 0) as package,
    ):
        package.next(rows, y)


def test_packages_are_named_on_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def known(kind: type, one: object, todo: list[Job], *rest: object) -> list[Run]:
        asked.append((todo, one))
        return [Run(job, 100, (50, 40, 30), 0.01) for job in todo]

    monkeypatch.setattr(peers_all, "measure", known)
    arguments = [
        "peers",
        "packages",
        "--quick",
        "--package",
        "their SUR=python x.py a=b",
    ]
    assert main(arguments) == 0
    ((todo, one),) = asked
    assert one.keywords["commands"] == {"their SUR": "python x.py a=b"}
    assert {job.method for job in todo} == {*peers_all.PACKAGES_RIVALS, "their SUR"}
    assert "their SUR (package)" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["nothing", "=python x.py", "SUR=python x.py", "a="])
def test_packages_need_a_new_name_and_a_command(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=COMMAND with a name that no method has"):
        package_of(text)
