r"""The sampler as a package with OptunaHub's layout, loaded by the real OptunaHub."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from botorch_lse.integrations.optuna import LevelSetSampler

pytestmark = pytest.mark.engine
hub = pytest.importorskip("optunahub")
yaml = pytest.importorskip("yaml")
REGISTRY = Path(__file__).parents[2] / "hub" / "package"
FOLDER = REGISTRY / "samplers" / "level_set"


def test_it_is_loaded_from_a_registry() -> None:
    found = hub.load_local_module("samplers/level_set", registry_root=str(REGISTRY))
    assert found.LevelSetSampler is LevelSetSampler


def test_its_example_runs_to_the_end() -> None:
    there = {**os.environ, "OPTUNAHUB_REGISTRY": str(REGISTRY)}
    said = subprocess.run(
        [sys.executable, "-W", "ignore", str(FOLDER / "example.py")],
        env=there, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.startswith("decided Classification(41 rows: ")


def test_its_page_says_what_a_registry_wants_to_know() -> None:
    _, front, _ = (FOLDER / "README.md").read_text().split("---\n", 2)
    wanted = {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert {*yaml.safe_load(front)} == wanted
