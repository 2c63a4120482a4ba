r"""What an import brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

import botorch_lse

MODULES = [
    "botorch_lse",
    "botorch_lse.confidence",
    "botorch_lse.acquisition",
    "botorch_lse.strategies",
    "botorch_lse.plotting",  # until a picture is drawn
]
# Each import comes after those before it: the first that brings something is named.
CODE = """
import importlib, sys

for module in sys.argv[1:]:
    importlib.import_module(module)
    brought = {name.split(".")[0] for name in sys.modules}
    print(module, sorted(brought & {"ax", "matplotlib", "plotly", "seaborn"}))
"""


def test_imports_bring_neither_ax_nor_a_plotting_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *MODULES],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{module} []" for module in MODULES]


@pytest.mark.parametrize("name", botorch_lse.__all__)
def test_public_names_exist(name: str) -> None:
    assert getattr(botorch_lse, name).__doc__
