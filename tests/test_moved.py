r"""What moved to the papers is found where it stood, and imported only then."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from botorch_lse.moved import MOVED, new_home

NAMES = [(package, name) for package, names in MOVED.items() for name in names]


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_an_old_name_is_the_new_one(package: str, name: str) -> None:
    old, new = importlib.import_module(package), MOVED[package][name]
    assert new.startswith("botorch_lse.papers.")
    found = getattr(old, name)
    assert found is getattr(importlib.import_module(new), name)
    assert name in old.__all__
    assert name in dir(old)


@pytest.mark.parametrize("package", MOVED)
def test_a_package_has_its_names_and_no_others(package: str) -> None:
    old = importlib.import_module(package)
    assert all(hasattr(old, name) for name in old.__all__)
    with pytest.raises(AttributeError, match=f"'{package}' has no attribute 'Typo'"):
        old.Typo  # noqa: B018


def test_no_part_of_the_library_brings_a_paper_along() -> None:
    parts = [*MOVED, "botorch_lse.ax", "botorch_lse.plotting", "botorch_lse.demo"]
    lines = [*(f"import {part}" for part in parts), "import sys"]
    lines += ["print([m for m in sys.modules if m.startswith('botorch_lse.papers')])"]
    command = [sys.executable, "-W", "ignore", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_path_inside_an_old_package_leads_to_the_new_one() -> None:
    home = MOVED["botorch_lse.strategies"]["MELKPACStrategy"]
    for module in ("", ".pac", ".pac.melk"):
        assert new_home(f"botorch_lse.strategies{module}", "MELKPACStrategy") == home
    assert new_home("botorch_lse.strategies", "LSEStrategy") is None
    assert new_home("my_lab.strategies", "MELKPACStrategy") is None
    assert new_home("", "") is None
