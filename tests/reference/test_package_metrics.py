r"""The package stays small enough to read, and its numbers are counted rightly."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from botorch_lse.strategies.criteria.base import Criterion
from tests.reference import metrics, ways

ADAPTER = 200
"""As many code lines at most has what speaks to another engine by ask and tell."""


@pytest.mark.slow
def test_no_number_exceeds_its_limit() -> None:
    found = metrics.metrics()
    assert [str(metric) for metric in found if metric.value > metric.most] == []


def test_methods_are_those_that_others_may_implement() -> None:
    found = metrics.methods(Criterion)
    assert {"start", "rows", "reason"} < set(found)
    assert "draws_at_random" not in found  # a fact
    assert not [name for name in found if name.startswith("_")]


def test_asking_and_telling_were_watched() -> None:
    asked, told = ways.ways_of_strategies()
    assert ("strategies/loop.py", "Strategy.ask") in asked
    assert ("strategies/loop.py", "Strategy.tell") in told
    assert not [name for _, name in asked | told if "<lambda>" in name[-8:]]


def test_ancestors_are_counted() -> None:
    above = metrics.ancestors()["botorch_lse.strategies.presets.LSEStrategy"]
    assert above == ["GPStrategy", "Strategy"]


def test_code_is_what_is_neither_text_nor_blank(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('r"""Text\nin two lines."""\n\n# why\nx = (\n    1,\n)\n')
    assert (metrics.code_lines(path), metrics.all_lines(path)) == (3, 7)


@pytest.mark.parametrize(
    ("line", "is_unclear"),
    [
        ("The rows that are left (`N` bools).", False),
        ("Whether the goal seeks the best row.", False),
        ("`N` bools: the rows that are left.", True),
        ("Of the intervals it looks at.", True),
        ("How often to refit.", True),
        ("The rows that are left, without those of which", True),
    ],
)
def test_a_summary_can_be_read_aloud(line: str, is_unclear: bool) -> None:
    assert metrics.is_unclear(line) == is_unclear


def test_summaries_are_those_of_constants_and_functions_too() -> None:
    tree = ast.parse('r"""M.\nN."""\nx = 1\n"""X."""\ndef f():\n    r"""F."""\n')
    assert sorted(metrics.summaries(tree)) == ["F.", "M.", "X."]


def test_a_circle_is_found(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "botorch_lse"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from botorch_lse.b import x\n")
    (package / "b.py").write_text("def f():\n    from botorch_lse import a\n")
    (package / "c.py").write_text("import botorch_lse.a\n")
    monkeypatch.setattr(metrics, "ROOT", package)
    assert metrics.circles() == [["botorch_lse.a", "botorch_lse.b"]]


@pytest.mark.parametrize("name", ["gest", "optuna", "ray", "sklearn", "submitit"])
def test_adapters_of_other_engines_are_thin(name: str) -> None:
    path = metrics.ROOT / "integrations" / f"{name}.py"
    assert metrics.code_lines(path) <= ADAPTER


def test_no_two_files_of_tests_have_one_name() -> None:
    tests = metrics.ROOT.parent / "tests"
    names = [path.name for path in tests.rglob("test_*.py")]
    assert len(names) > 100
    assert sorted(set(names)) == sorted(names)
