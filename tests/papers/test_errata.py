r"""Every erratum that a docstring cites can be found."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

PACKAGE = Path(str(files("botorch_lse")))
CITED = re.compile(r"errat(?:um|a) (\d[\d, toand]*)\W+papers/(\w+)/errata\.md")


def numbers(text: str) -> set[int]:
    r"""``1, 3 to 5 and 8`` as a set."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def errata(paper: str) -> set[int]:
    text = (PACKAGE / "papers" / paper / "errata.md").read_text(encoding="utf-8")
    return {int(n) for n in re.findall(r"^(\d+)\. \*\*", text, flags=re.MULTILINE)}


def test_numbers_are_read() -> None:
    assert numbers("1, 3 to 5 and 8") == {1, 3, 4, 5, 8}


@pytest.mark.parametrize(
    "paper", [p.parent.name for p in PACKAGE.glob("papers/*/*.md")]
)
def test_errata_are_numbered_from_one(paper: str) -> None:
    assert errata(paper) == set(range(1, len(errata(paper)) + 1))


def test_citations_lead_to_an_erratum() -> None:
    found = 0
    for path in PACKAGE.rglob("*.py"):
        for cited, paper in CITED.findall(path.read_text(encoding="utf-8")):
            found += 1
            assert numbers(cited) <= errata(paper), (path, cited)
    assert found > 20
