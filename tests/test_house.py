r"""The house stays small enough to read: one question, few files, no deep trees.

That a rule is one class in one file, ``tests/strategies/test_composed.py`` shows.
"""

from __future__ import annotations

import pytest

from tests.reference.house import ROOT, ancestors, code_lines, files_of_ask

MOST_FILES = 10
ADAPTER = 150
"""Fewer code lines than this has what speaks to another engine by ask and tell."""
MOST_ANCESTORS = 2


def test_asking_passes_through_few_files() -> None:
    files = files_of_ask()
    assert "strategies/loop.py" in files  # it was watched
    assert len(files) <= MOST_FILES, files


def test_no_class_stands_on_many_of_ours() -> None:
    above = ancestors()
    found = above["botorch_lse.strategies.presets.LSEStrategy"]
    assert found == ["GPStrategy", "Strategy"]
    deep = {name: names for name, names in above.items() if len(names) > MOST_ANCESTORS}
    assert not deep


@pytest.mark.parametrize("name", ["gest", "optuna", "ray", "submitit"])
def test_adapters_of_other_engines_are_thin(name: str) -> None:
    assert code_lines(ROOT / "integrations" / f"{name}.py") < ADAPTER
