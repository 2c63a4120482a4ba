r"""A laboratory of one: calls commands in a folder, and fills in its sheets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from botorch_lse.__main__ import command
from botorch_lse.cli import commands
from botorch_lse.cli import main as table

Line = Mapping[str, str]


@dataclass(frozen=True)
class Lab:
    r"""A folder of files, and the command line in it."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def call(self, line: str) -> str:
        r"""What a call that succeeds prints."""
        status = command(line.split())
        said = self.capture.readouterr()
        assert status == 0, said.err
        return said.out

    def refused(self, line: str) -> str:
        r"""What a call that fails says, and that it changed no file."""
        before = self.contents()
        status = command(line.split())
        progress, mark, said = self.capture.readouterr().err.partition(
            "botorch-lse: error: "
        )
        assert status == 2
        assert mark
        assert all(line.endswith("...") for line in progress.splitlines())
        assert self.contents() == before
        return said.strip()

    def contents(self) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in sorted(self.folder.iterdir())}

    def write(self, name: str, text: str, encoding: str = "utf-8") -> None:
        (self.folder / name).write_bytes(text.encode(encoding))

    def read(self, name: str, delimiter: str = ",") -> list[dict[str, str]]:
        text = (self.folder / name).read_text(encoding="utf-8-sig")
        return list(csv.DictReader(text.splitlines(), delimiter=delimiter))

    def fill(
        self,
        name: str,
        value: Callable[[Line], str],
        column: str = "y",
        delimiter: str = ",",
    ) -> None:
        r"""Fill in the empty cells of a sheet."""
        lines = self.read(name, delimiter)
        with (self.folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0].keys(), delimiter=delimiter)
            writer.writeheader()
            for line in lines:
                line[column] = line[column] or value(line)
                writer.writerow(line)


def hill(line: Line) -> str:
    r"""What is measured in a table with a column ``x`` from 0 to 19."""
    x = float(line["x"].replace(",", "."))
    return f"{10 - 0.2 * (x - 8.5) ** 2:.4f}"


HILL = "x,name\n" + "".join(f"{x},n{x:02d}\n" for x in range(20))
"""Twenty candidates; those from 5 to 12 are above 7."""
NEXT = "next candidates.csv --above 7 --column y --key name --batch 4 --epsilon 0.5"


def goes_on_after_any_interruption(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    r"""Check that a killed call is made good by the next, whose files are the same."""
    before = lab.contents()
    lab.call("next")
    after = lab.contents()
    lab.call("next")
    assert lab.contents() == after
    for broken in ("save_results", "save_sheet"):  # killed before one of the files
        for name in set(after) - set(before):
            (lab.folder / name).unlink()
        for name, content in before.items():
            (lab.folder / name).write_bytes(content)

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(commands, broken, stop)
            assert table(["next"]) == 130
        lab.call("next")
        assert lab.contents() == after
