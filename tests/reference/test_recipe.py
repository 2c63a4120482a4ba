r"""What is wrong with a conda package is found; ``make recipe`` builds a real one."""

from __future__ import annotations

import importlib.util
import json

import pytest

from tests.reference import recipe

KNOWN = {"botorch_lse/__init__.py", "botorch_lse/py.typed"}
NAMES = [
    *(f"site-packages/{name}" for name in KNOWN),
    "site-packages/botorch_lse-0.2.0.dist-info/RECORD",
    "info/licenses/LICENSE",
]
LINK = json.dumps(
    {"noarch": {"entry_points": ["botorch-lse = botorch_lse.__main__:command"]}}
)


def test_a_good_package_has_no_faults() -> None:
    assert recipe.faults(NAMES, LINK, KNOWN) == []


def test_what_is_missing_or_does_not_belong_there_is_named() -> None:
    assert recipe.faults(NAMES, '{"noarch": {}}', KNOWN) == [
        "the entry point is missing"
    ]
    assert recipe.faults(NAMES[:-1], LINK, KNOWN) == ["the licence is missing"]
    more = [*NAMES, "site-packages/botorch_lse/new.py"]
    assert recipe.faults(more, LINK, KNOWN) == ["botorch_lse/new.py is in the package"]
    (found,) = recipe.faults(NAMES, LINK, KNOWN | {"botorch_lse/old.py"})
    assert found == "botorch_lse/old.py is not in the package"


def test_without_the_tool_it_says_what_to_install(monkeypatch, capsys) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert recipe.main() == 2
    assert "pip install py-rattler-build" in capsys.readouterr().out


@pytest.mark.slow
def test_the_recipe_builds() -> None:
    pytest.importorskip("rattler_build", reason="pip install py-rattler-build")
    assert recipe.main() == 0
