r"""What an import brings along."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import pytest

import botorch_lse
from botorch_lse import acquisition, goals, models, rules, strategies

ROOT = Path(__file__).parents[1]
LIBRARY = sys.stdlib_module_names
SHORTEST = "from botorch_lse import Pool, Strategy, Above, GaussianProcess"
# Each comes after those before it: the first that brings something is named.
STATEMENTS = [
    "import botorch_lse",
    "import botorch",
    SHORTEST,
    "import botorch_lse.confidence",
    "import botorch_lse.plotting",  # until a picture is drawn
    "from botorch_lse.plotting import frames, pictures",
    "from botorch_lse.cli import commands",
    "from botorch_lse.strategies import *",
    "import botorch_lse.acquisition",
]
CODE = """
import json, sys

for statement in sys.argv[1:]:
    before = set(sys.modules)
    exec(statement)
    print(json.dumps(sorted(set(sys.modules) - before)))
"""
DEPENDENCIES = {"botorch", "gpytorch", "numpy", "pandas", "scipy", "torch", "tqdm"}
BROUGHT = {
    "botorch": "exceptions models posteriors sampling settings utils",
    "botorch_lse": "confidence data functional goals models strategies surrogate",
    "numpy": "typing",
    "scipy": "version",  # and none of its packages
}
"""What the names of a first run bring along beyond BoTorch, of these and of ours."""


@pytest.fixture(scope="module")
def brought() -> dict[str, set[str]]:
    r"""For each statement the modules that it loads in a fresh process."""
    command = [sys.executable, "-c", CODE, *STATEMENTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = map(json.loads, done.stdout.splitlines())
    return {text: set(line) for text, line in zip(STATEMENTS, lines, strict=True)}


@pytest.mark.slow
def test_the_package_alone_brings_nothing_of_others(
    brought: dict[str, set[str]],
) -> None:
    packages = {name.partition(".")[0] for name in brought["import botorch_lse"]}
    assert packages - LIBRARY == {"botorch_lse"}


def test_a_first_run_brings_little_beyond_botorch(
    brought: dict[str, set[str]],
) -> None:
    allowed = {
        f"{top}.{part}" for top, parts in BROUGHT.items() for part in parts.split()
    }
    public = [name.split(".") for name in brought[SHORTEST] if "._" not in name]
    found = {
        ".".join(parts[:2])
        for parts in public
        if parts[0] in DEPENDENCIES | {"botorch_lse"} and len(parts) > 1
    }
    assert found <= allowed, found - allowed
    assert "pandas" not in brought[SHORTEST]
    late = {"botorch.models.gpytorch", "botorch_lse.models.fitted"}  # they bring SciPy
    assert brought[SHORTEST].isdisjoint(late)


def test_a_strategy_brings_only_what_it_is_made_of(
    brought: dict[str, set[str]],
) -> None:
    rooms = ("strategies", "goals", "rules", "surrogate")
    found = {
        name.removeprefix("botorch_lse.")
        for name in brought[SHORTEST]
        if name.split(".")[1:2] and name.split(".")[1] in rooms and name.count(".") > 1
    }
    assert found == {
        "goals.base",
        "goals.gaps",
        "goals.regions",
        "strategies.algorithm",
        "strategies.criteria",
        "strategies.criteria.audit",
        "strategies.criteria.base",
        "strategies.criteria.content",
        "strategies.devices",
        "strategies.forecast",
        "strategies.loop",
        "surrogate.assumptions",
        "surrogate.layout",
        "surrogate.learning",
        "surrogate.outputs",
        "surrogate.posterior",
        "surrogate.remarks",
        "surrogate.settings",
    }


def test_imports_bring_neither_ax_nor_a_plotting_library(
    brought: dict[str, set[str]],
) -> None:
    late = {"ax", "matplotlib", "plotly", "seaborn"}
    for statement, names in brought.items():
        assert late.isdisjoint(name.partition(".")[0] for name in names), statement


def test_imports_bring_no_distributions_of_scipy(brought: dict[str, set[str]]) -> None:
    for statement in STATEMENTS[:-1]:  # BoTorch's acquisition functions bring them
        assert brought[statement].isdisjoint({"scipy.stats", "scipy.ndimage"})


def test_tables_bring_what_fits_before_something_is_fitted(
    brought: dict[str, set[str]],
) -> None:
    commands = brought["from botorch_lse.cli import commands"]
    assert "botorch_lse.models.explanations" in commands
    assert commands.isdisjoint({"botorch.fit", "scipy.optimize"})


@pytest.mark.parametrize("name", botorch_lse.__all__)
def test_public_names_exist(name: str) -> None:
    assert getattr(botorch_lse, name).__doc__


LAZY = [botorch_lse, goals, models, rules, strategies]
"""Packages that load their names on first use."""


def for_type_checkers(package: ModuleType) -> dict[str, str]:
    r"""The names that a package shows to type checkers, each with its home."""
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    lines = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(lines) == len(block.body)
    return {name.name: str(line.module) for line in lines for name in line.names}


@pytest.mark.parametrize("package", LAZY)
def test_names_loaded_on_first_use_are_those_that_type_checkers_see(
    package: ModuleType,
) -> None:
    homes = for_type_checkers(package)
    assert sorted(homes) == sorted(package.__all__)
    assert set(homes) <= set(dir(package))
    for name, home in homes.items():
        found = getattr(package, name)
        assert found is getattr(importlib.import_module(home), name)
        assert pickle.loads(pickle.dumps(found)) is found


@pytest.mark.parametrize("package", LAZY)
def test_no_name_is_that_of_a_module(package: ModuleType) -> None:
    # Whoever imports the module would find it in place of the name.
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules.isdisjoint(package.__all__)


@pytest.mark.parametrize("package", LAZY)
def test_everything_is_imported_by_a_star(package: ModuleType) -> None:
    found: dict[str, object] = {}
    exec(f"from {package.__name__} import *", found)
    assert set(package.__all__) <= set(found)


@pytest.mark.slow
def test_modules_are_attributes_without_an_import_of_their_own() -> None:
    line = "import botorch_lse; print(botorch_lse._validation.__name__)"
    command = [sys.executable, "-c", line]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "botorch_lse._validation"


@pytest.mark.parametrize(
    ("package", "typo", "near"),
    [
        (botorch_lse, "Stratgy", "Strategy"),
        (strategies, "Abvoe", "Above"),
        (strategies, "MELKStrateg", "MELKStrategy"),
        (models, "fit_single_taskgp", "fit_single_task_gp"),
    ],
)
def test_a_typing_error_is_answered_with_the_nearest_name(
    package: ModuleType, typo: str, near: str
) -> None:
    said = f"'{package.__name__}' has no attribute '{typo}'. Did you mean '{near}'"
    with pytest.raises(AttributeError, match=said):
        getattr(package, typo)
    with pytest.raises(ImportError, match=said):
        exec(f"from {package.__name__} import {typo}", {})


@pytest.mark.parametrize(
    ("wrong", "name", "right"),
    [
        (rules, "qTruVaR", "'botorch_lse.acquisition'"),
        (goals, "Ambiguity", "'botorch_lse.rules' and in 'botorch_lse.strategies'"),
        (acquisition, "Ambiguity", "'botorch_lse.rules' and in"),
        (botorch_lse, "Straddle", "'botorch_lse.acquisition' and in 'botorch_lse.ru"),
        (strategies, "catoni_mean", "'botorch_lse.papers'"),
    ],
)
def test_an_import_from_the_wrong_package_names_the_right_one(
    wrong: ModuleType, name: str, right: str
) -> None:
    said = f"'{wrong.__name__}' has no attribute '{name}'. It is in {right}"
    assert not hasattr(wrong, name)
    with pytest.raises(AttributeError, match=said):
        getattr(wrong, name)
    with pytest.raises(ImportError, match=said):
        exec(f"from {wrong.__name__} import {name}", {})


@pytest.mark.parametrize(
    "thing",
    [
        *(getattr(botorch_lse, name) for name in botorch_lse.__all__),
        *(getattr(botorch_lse, name).__init__ for name in botorch_lse.__all__),
        models.LearntKernel.__call__,
        botorch_lse.Pool.from_box,
        botorch_lse.Observations.from_frame,
    ],
)
def test_annotations_name_what_is_there_when_it_is_asked_for(thing: object) -> None:
    # The site links what signatures name, though some of it is loaded on first use.
    assert isinstance(get_type_hints(thing), dict)


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("Pool", "botorch_lse.data.pool"),
        ("State", "botorch_lse.strategies.loop"),
        ("Strategy", "botorch_lse.strategies.loop"),
        ("Above", "botorch_lse.goals.regions"),
        ("GaussianProcess", "botorch_lse.surrogate.settings"),
    ],
)
def test_a_class_says_where_it_is_defined(name: str, home: str) -> None:
    # Experiments that are stored name classes by their modules.
    assert getattr(botorch_lse, name).__module__ == home


def test_tutorials_and_demo_need_no_research() -> None:
    readers = [
        *(ROOT / "tutorials").glob("*.py"),
        ROOT / "botorch_lse" / "cli" / "demo.py",
    ]
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
