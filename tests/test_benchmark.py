r"""The door to the benchmarks opens in a clone and says elsewhere where they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from botorch_lse import benchmark


def test_without_the_folder_it_says_where_they_are(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "ROOT", tmp_path)
    assert benchmark.main(["list"]) == 2
    assert "in a clone of its repository" in capsys.readouterr().err


def test_in_a_clone_it_runs_from_any_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from botorch_lse import benchmark; "
        "sys.argv = ['x', 'paper', 'nobody']; sys.exit(benchmark.main())"
    )
    path = {**os.environ, "PYTHONPATH": str(benchmark.ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "one of bogunovic2016, gotovos2013" in done.stderr
