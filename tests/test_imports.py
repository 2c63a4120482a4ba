r"""What an import brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

import botorch_lse

MODULES = ["botorch_lse", "botorch_lse.strategies", "botorch_lse.acquisition"]


@pytest.mark.parametrize("module", [*MODULES, "botorch_lse.confidence"])
def test_import_brings_neither_ax_nor_a_plotting_library(module: str) -> None:
    code = (
        f"import sys, {module}\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}"
        " & {'ax', 'matplotlib', 'plotly', 'seaborn'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", botorch_lse.__all__)
def test_public_names_exist(name: str) -> None:
    assert getattr(botorch_lse, name).__doc__
