r"""The private names of Ax that this package needs, and the versions it knows.

One function per name; ``tests/ax/test_compat.py`` fails when one of them moves.
"""

from __future__ import annotations

from importlib.metadata import version
from io import StringIO

import numpy as np
import pandas as pd
from ax.api.client import Client
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.generation_strategy.generation_strategy import GenerationStrategy

OLDEST_AX = (1, 3, 1)
TESTED_AX = "1.3.1"


def check_ax_version(installed: str | None = None) -> None:
    r"""Refuse an Ax that is too old.

    Raises:
        ImportError: If Ax is older than ``OLDEST_AX``.
    """
    installed = version("ax-platform") if installed is None else installed
    numbers = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    if numbers < OLDEST_AX:
        oldest = ".".join(map(str, OLDEST_AX))
        raise ImportError(
            f"Expected ax-platform of at least {oldest} (tested with {TESTED_AX}), but "
            f"{installed} is installed. Run `pip install 'ax-platform>={oldest}'`."
        )


def experiment_of(client: Client) -> Experiment:
    r"""The experiment inside a client."""
    return client._experiment


def generation_strategy_of(client: Client) -> GenerationStrategy | None:
    r"""The generation strategy inside a client, ``None`` before one is set."""
    return client._maybe_generation_strategy


def node_name_of(run: GeneratorRun) -> str | None:
    r"""The name of the node that made a generator run."""
    return run._generation_node_name


def as_stored(values: np.ndarray) -> np.ndarray:
    r"""Numbers as they come back after Ax has saved and loaded them.

    Ax writes data with ``DataFrame.to_json()``, that is with ten decimals. A live run
    that read more of them could decide otherwise than the same run after a reload.
    """
    table = pd.DataFrame({"mean": np.asarray(values, dtype=float)})
    text = StringIO(table.to_json())
    return pd.read_json(text, dtype=False)["mean"].to_numpy(dtype=float, copy=True)
