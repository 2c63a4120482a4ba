r"""The lines of JSON that a peer's script reads and writes, see README.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

Chooser = Callable[
    [list[int], list[float]],
    "list[int] | tuple[list[int], list[int]] | dict[str, object]",
]
"""From all rows measured so far and their values to the next ``q`` rows, and if the
peer has a model of its own, the rows that are above by it; or to a whole answer."""


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
        chosen = choose(rows, values)
        if isinstance(chosen, dict):
            answer = chosen
        else:
            parts = chosen if isinstance(chosen, tuple) else (chosen,)
            lists = [[int(row) for row in own] for own in parts]
            answer = dict(zip(("rows", "above"), lists, strict=False))
        print(json.dumps(answer), file=answers, flush=True)
