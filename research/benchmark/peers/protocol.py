r"""The lines of JSON that a peer's script reads and writes, see README.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

Chooser = Callable[[list[int], list[float]], list[int]]
"""From all rows measured so far and their values to the next ``q`` rows."""


def serve(start: Callable[[dict], Chooser]) -> None:
    r"""Answer until the input ends.

    Args:
        start: From the case to what chooses rows.
    """
    # What a library prints must not come between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    choose = start(json.loads(sys.stdin.readline()))
    print(json.dumps({"ready": True}), file=answers, flush=True)
    rows: list[int] = []
    values: list[float] = []
    for line in sys.stdin:
        message = json.loads(line)
        rows += message["rows"]
        values += message["y"]
        chosen = [int(row) for row in choose(rows, values)]
        print(json.dumps({"rows": chosen}), file=answers, flush=True)
