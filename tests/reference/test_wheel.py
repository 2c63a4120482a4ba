r"""What is looked for in a wheel is found; ``make wheel`` looks into a real one."""

from __future__ import annotations

import pytest

from tests.reference.wheel import (
    DOOR,
    SDIST,
    faults,
    faults_of_address,
    faults_of_sdist,
)

GOOD = [
    "botorch_lse/__init__.py",
    "botorch_lse/py.typed",
    "botorch_lse/papers/mason2022/errata.md",
    "botorch_lse/papers/mason2022/melk.py",
    "botorch_lse-0.2.0.dist-info/METADATA",
    DOOR,
]
KNOWN = {name for name in GOOD if ".dist-info/" not in name}


def test_a_good_wheel_has_no_faults() -> None:
    assert faults(GOOD, KNOWN) == []


@pytest.mark.parametrize(
    "name",
    [
        "botorch_lse/benchmark/registry.py",
        "botorch_lse/papers/mason2022/experiment.py",
        "botorch_lse/moved.py",
        "botorch_lse/tests/test_x.py",
        "research/report.py",
        "tests/reference/test_wheel.py",
    ],
)
def test_what_does_not_belong_there_is_named(name: str) -> None:
    for known in (KNOWN, KNOWN | {name}):  # it may stand in the repository
        assert faults([*GOOD, name], known) == [f"{name} is in the wheel"]


def test_a_file_that_git_does_not_know_is_named() -> None:
    found = faults([*GOOD, "botorch_lse/new.py"], KNOWN)
    assert found == ["botorch_lse/new.py is in the wheel"]


def test_what_is_missing_is_named() -> None:
    found = faults(GOOD[:1] + GOOD[2:], KNOWN)
    assert found == ["botorch_lse/py.typed is not in the wheel"]


def test_an_sdist_has_the_package_and_no_tests() -> None:
    names = ["x-1", *(f"x-1/{top}" for top in SDIST)]
    assert faults_of_sdist(names) == []
    assert faults_of_sdist([*names, "x-1/tests/test_a.py"]) == ["tests is in the sdist"]
    assert faults_of_sdist(names[:1]) != []


ADDRESS = "https://github.com/owner/name"


@pytest.mark.parametrize(
    "urls",
    ["", "Project-URL: Repository, somewhere\n", f"Project-URL: Home, {ADDRESS}\n"],
)
def test_a_release_without_the_projects_address_is_stopped(urls: str) -> None:
    metadata = f"Metadata-Version: 2.4\nName: botorch-lse\n{urls}\nA text, {ADDRESS}"
    (found,) = faults_of_address(metadata, {})
    assert "`Repository =" in found
    assert "`[project.urls]`" in found


def test_another_address_elsewhere_is_named() -> None:
    metadata = f"Name: botorch-lse\nProject-URL: Repository, {ADDRESS}\n"
    assert faults_of_address(metadata, {"CITATION.cff": "title: x\n"}) == []
    same = {"recipe": f"about:\n  repository: {ADDRESS}\n"}
    assert faults_of_address(metadata, same) == []
    other = {"CITATION.cff": "repository-code: 'https://github.com/other/name'\n"}
    (found,) = faults_of_address(metadata, other)
    assert found.startswith("CITATION.cff says")
