r"""The command ``python -m botorch_lse.benchmark``: a door to a clone's benchmarks.

The experiments of the papers and the benchmarks stand in the folder ``research`` beside
this package. They are not part of an installed wheel; from there this command says
where they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The folder of the clone, if this is one."""


def main(arguments: Sequence[str] | None = None) -> int:
    r"""Run a benchmark from the clone that holds this package.

    Args:
        arguments: The command line; default ``sys.argv[1:]``.

    Returns:
        The exit status; 2 if there are no benchmarks beside the package.
    """
    if not (ROOT / "research" / "benchmark" / "__main__.py").exists():
        print(
            "python -m botorch_lse.benchmark: error: the benchmarks and the papers' "
            "experiments are not part of the installed package; run this command in a "
            "clone of its repository, which holds them in the folder `research`.",
            file=sys.stderr,
        )
        return 2
    sys.path.insert(0, str(ROOT))
    # Processes that the benchmarks start, on this machine or by an engine, import them.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    status: int = import_module("research.benchmark.__main__").main(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
