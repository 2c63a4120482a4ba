r"""A change is checked by the tests that are about it."""

from __future__ import annotations

import pytest

from tests.reference import touched


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("botorch_lse/rules/scores.py", "tests/rules botorch_lse/rules/scores.py"),
        (
            "botorch_lse/data/pool.py",
            "tests/data botorch_lse/data/pool.py",
        ),
        ("botorch_lse/_files.py", "tests/test_files.py botorch_lse/_files.py"),
        ("botorch_lse/_device.py", "botorch_lse/_device.py"),
        ("botorch_lse/papers/mason2022/melk.py", "tests/papers/mason2022"),
        ("research/benchmark/trust.py", "tests/research/benchmark/test_trust.py"),
        ("tests/test_files.py", "tests/test_files.py"),
        ("tests/registry.py", ""),
        ("docs/limits.md", "tests/test_documents.py tests/test_site.py"),
        (".github/workflows/tests.yml", "tests/reference/test_workflows.py"),
        ("pyproject.toml", "tests/test_requirements.py"),
        ("LICENSE", ""),
    ],
)
def test_a_file_has_the_tests_that_are_about_it(name: str, tests: str) -> None:
    found = touched.tests_of(name)
    assert found[: len(tests.split())] == tests.split()
    assert all((touched.ROOT / test).exists() for test in found)


def test_files_that_differ_from_a_commit_are_there() -> None:
    assert all((touched.ROOT / name).exists() for name in touched.changed("HEAD"))


def test_without_a_change_no_test_runs(monkeypatch, capsys) -> None:
    monkeypatch.setattr(touched, "changed", lambda base: [])
    assert touched.main([]) == 0
    assert "0 changed files; tests: none" in capsys.readouterr().out
