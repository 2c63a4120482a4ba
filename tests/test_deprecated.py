r"""What goes says so first, and is gone when its time has come."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from packaging.version import Version

import botorch_lse
from botorch_lse._deprecated import warn_deprecated

SOURCES = Path(botorch_lse.__file__).parent.rglob("*.py")


def calls() -> list[ast.Call]:
    r"""The calls of the warning in the package."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]
    found = [node for tree in trees for node in ast.walk(tree)]
    return [
        node
        for node in found
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warn_deprecated"
    ]


def test_the_warning_names_versions_and_remedy_where_the_user_wrote_it() -> None:
    def old() -> None:
        warn_deprecated("old()", "0.3.0", "0.4.0", "Write `new()`.")

    said = r"`old\(\)` is deprecated since botorch-lse 0.3.0 and may go in 0.4.0. Write"
    with pytest.warns(DeprecationWarning, match=said) as noted:
        old()
    assert noted[0].filename == __file__


@pytest.mark.slow
def test_nothing_stays_beyond_the_version_that_was_announced() -> None:
    for call in calls():
        since, until = (Version(ast.literal_eval(call.args[i])) for i in (1, 2))
        assert since.release[:2] < until.release[:2], "a minor version at least"
        assert Version(botorch_lse.__version__) < until, "its time has come"
