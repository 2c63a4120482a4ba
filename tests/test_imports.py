r"""What an import brings along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import botorch_lse

MODULES = [
    "botorch_lse",
    "botorch_lse.confidence",
    "botorch_lse.acquisition",
    "botorch_lse.strategies",
    "botorch_lse.plotting",  # until a picture is drawn
    "botorch_lse.table",
]
# Each import comes after those before it: the first that brings something is named.
CODE = """
import importlib, sys

for module in sys.argv[1:]:
    importlib.import_module(module)
    brought = {name.split(".")[0] for name in sys.modules}
    print(module, sorted(brought & {"ax", "matplotlib", "plotly", "seaborn"}))
"""


def test_imports_bring_neither_ax_nor_a_plotting_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *MODULES],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{module} []" for module in MODULES]


@pytest.mark.parametrize("name", botorch_lse.__all__)
def test_public_names_exist(name: str) -> None:
    assert getattr(botorch_lse, name).__doc__


def test_tutorials_and_demo_need_no_research() -> None:
    root = Path(__file__).parents[1]
    readers = [*(root / "tutorials").glob("*.py"), root / "botorch_lse" / "demo.py"]
    assert len(readers) > 10
    for path in readers:
        lines = path.read_text(encoding="utf-8").splitlines()
        imports = [line for line in lines if line.startswith(("from ", "import "))]
        assert not [i for i in imports if "benchmark" in i or "research" in i], path


WITHOUT = """
import runpy, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.argv = {arguments}
runpy.run_module({module!r}, run_name="__main__")
"""


def run_without(
    absent: set[str], module: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(absent=absent, module=module, arguments=["x", *arguments])
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_benchmarks_are_listed_without_ax_and_plotting_libraries() -> None:
    done = run_without({"ax", "matplotlib", "plotly"}, "botorch_lse.benchmark", "list")
    assert done.returncode == 0, done.stderr
    assert "speed ax" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("absent", "extra", "command"),
    [
        ("ax", "ax", ("speed", "ax")),
        ("matplotlib", "plot", ("paper", "kone2025", "--quick")),
    ],
)
def test_a_benchmark_names_the_extra_it_needs_before_it_begins(
    absent: str, extra: str, command: tuple[str, ...]
) -> None:
    done = run_without({absent}, "botorch_lse.benchmark", *command)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"pip install 'botorch-lse[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_importing_our_ax_package_without_ax_names_the_extra() -> None:
    done = run_without({"ax"}, "botorch_lse.ax")
    assert "ModuleNotFoundError: `botorch_lse.ax` needs Ax" in done.stderr
    assert "pip install 'botorch-lse[ax]'" in done.stderr
