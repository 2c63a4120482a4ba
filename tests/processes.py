r"""New processes that cost a fork, not the seconds that importing Ax takes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

# A server that has imported these, and done nothing else, forks every new process:
# nothing that a test left in memory can reach it.
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.ax.worlds", "tests.ax.fitting"])


def in_a_new_process(function: Callable[..., Any], *arguments: object) -> Any:
    r"""What ``function``, a module's own, returns in a process with no past."""
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as executor:
        return executor.submit(function, *arguments).result()
