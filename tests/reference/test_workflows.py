r"""Every command that the project's host runs is a target of make."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import botorch_lse

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github"
FILES = [
    *sorted(FOLDER.rglob("*.yml")),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
]
WORKFLOWS = sorted((FOLDER / "workflows").glob("*.yml"))
RULE = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)


def read(path: Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands(path: Path) -> list[str]:
    r"""The lines that the steps of a workflow run."""
    jobs = read(path)["jobs"].values()
    texts = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    return [line for text in texts for line in text.splitlines()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_yaml(path: Path) -> None:
    assert read(path)


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} >= {"tests", "nightly", "docs", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_is_a_target_of_make(path: Path) -> None:
    targets = set(RULE.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    for line in commands(path):
        words = line.split()
        assert words[0] == "make", line
        assert words[1] in targets, line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_no_more_than_it_says(path: Path) -> None:
    assert read(path)["permissions"] == {"contents": "read"}


def test_versions_of_python_are_those_of_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    stated = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    jobs = read(FOLDER / "workflows" / "tests.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == stated


def test_a_citation_has_the_version_of_the_package() -> None:
    assert read(ROOT / "CITATION.cff")["version"] == botorch_lse.__version__


def test_every_phony_target_has_a_rule() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    (line,) = re.findall(r"^\.PHONY:(.*)$", text, re.MULTILINE)
    assert set(line.split()) <= set(RULE.findall(text))


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = read(ROOT / "conda" / "recipe.yaml")
    names = {"pytorch": "torch"}  # as conda-forge and PyPI call it
    wanted = {f"python{project['requires-python']}", *project["dependencies"]}
    run = dict(line.split() for line in recipe["requirements"]["run"])
    assert {names.get(name, name) + bound for name, bound in run.items()} == wanted
    assert recipe["context"]["version"] == botorch_lse.__version__
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert dict([entry.split(" = ")]) == project["scripts"]
