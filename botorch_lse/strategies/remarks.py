r"""What told values show by themselves, and a model of them does not say.

A remark is a sentence for people: in ``state.remarks``, in the guarantee of every
answer, and as a ``DataWarning`` when it is first made.
"""

from __future__ import annotations

from dataclasses import dataclass

from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

MOST_LEVELS = 5
"""Values that take no more different numbers than this are hardly measurements."""
ROWS_PER_LEVEL = 2
"""Measured rows for each of these numbers, so that it is no chance: as many at least.
Values of few rows, or of rows that were measured again, are few by themselves."""
LEAST_ROWS = 8
"""Measured rows before the number of different values is looked at."""


class DataWarning(BotorchWarning):
    r"""Told values are not what the model takes them for; see ``state.remarks``."""


@dataclass(frozen=True)
class Remark:
    r"""Something to know, or to ask, about the values that were told.

    Args:
        kind: ``"levels"``: the values take few different numbers.
        text: The remark in whole sentences.
        rows: The rows that it is about; empty where it is about all.
        output: The number of the output.
    """

    kind: str
    text: str
    rows: tuple[int, ...] = ()
    output: int = 0

    @property
    def subject(self) -> tuple[str, tuple[int, ...], int]:
        r"""What it is about: of a remark that says more by now it is the same."""
        return self.kind, self.rows, self.output

    def __str__(self) -> str:
        return self.text


def on_few_levels(y: Tensor, rows: Tensor, output: int = 0) -> Remark | None:
    r"""A remark if values take few different numbers, such as yes and no.

    Args:
        y: ``n`` values of one output.
        rows: ``n`` rows of the pool, replicates included.
        output: Its number.
    """
    levels, n_rows = y.unique(), len(rows.unique())
    few = len(levels) <= MOST_LEVELS and ROWS_PER_LEVEL * len(levels) <= n_rows
    if not few or n_rows < LEAST_ROWS or len(levels) < 2:  # one: said elsewhere
        return None
    numbers = ", ".join(f"{value:g}" for value in levels.tolist())
    return Remark(
        "levels",
        f"The values take {len(levels)} different numbers only ({numbers}), and the "
        "model takes them for continuous ones with Gaussian noise: its probabilities "
        "and intervals are rough guides. Tell the mean of several measurements of each "
        "row with its variance, `Observations(rows, means, variances)`, or a number "
        "of finer resolution.",
        output=output,
    )
