r"""The site's page for people without code: its commands, played in an empty folder."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

from botorch_lse.__main__ import command
from tests.cli.lab import Lab, Line

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "no_code.md").read_text(encoding="utf-8")


def strength(line: Line) -> str:
    r"""The strength of a mix, in MPa, without noise."""
    bonus = 4 if line["additive"] == "fly ash" else 0
    ratio, content = float(line["water per cement"]), float(line["cement (kg/m3)"])
    return f"{44 - 110 * (ratio - 0.45) + 0.05 * (content - 340) + bonus:.1f}"


def played(lab: Lab, line: str) -> str:
    status = command(shlex.split(line)[1:])
    said = lab.capture.readouterr()
    assert status == 0, said.err
    return said.out


def test_there_is_no_python_on_the_page() -> None:
    kinds = set(re.findall(r"^```(\S+)", PAGE, re.MULTILINE))
    assert kinds == {"text", "console", "{image}"}
    assert "import " not in PAGE


def test_four_commands_lead_from_the_table_to_the_report(lab: Lab) -> None:
    lab.write("candidates.csv", (DOCS / "no_code" / "candidates.csv").read_text())
    with (DOCS / "no_code" / "results.csv").open(newline="") as file:
        kept = {(one["mix"], one["repeat"]): one for one in csv.DictReader(file)}

    def measured(line: Line) -> str:
        one = kept.get((line["mix"], line["repeat"]))
        return one["strength (MPa)"] if one else strength(line)

    blocks = re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```", PAGE, re.MULTILINE)
    assert len({call for call, _ in blocks}) == 4
    (first, said), (again, _), *rest = blocks
    assert played(lab, first) == said
    for _ in range(12):
        lab.fill("sheet.csv", measured, "strength (MPa)")
        found = played(lab, again)
        if "Nothing more need be measured" in found:
            break
    assert "Every candidate is decided." in found
    for (call, expected), written in zip(
        rest[1:], ("answer.csv", "report.html"), strict=True
    ):
        found = played(lab, call)
        # The last digits of a model, and so the counts, differ between processors.
        assert re.sub(r"\d+", "n", found) == re.sub(r"\d+", "n", expected)
        assert (lab.folder / written).exists()
    sides = [line["side"] for line in lab.read("answer.csv")]
    wrong = [
        float(strength(line))
        for line in lab.read("answer.csv")
        if (line["side"] == "above") != (float(strength(line)) > 40)
    ]
    assert sides.count("undecided") == 0
    assert all(abs(value - 40) <= 2 for value in wrong)
