r"""The laboratory that tests of the command line work in."""

from pathlib import Path

import pytest

from tests.cli.lab import HILL, Lab


@pytest.fixture
def lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Lab:
    monkeypatch.chdir(tmp_path)
    found = Lab(tmp_path, capsys)
    found.write("candidates.csv", HILL)
    return found
