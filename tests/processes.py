r"""New processes that cost a fork, not the seconds that importing Ax takes."""

from __future__ import annotations

import os
import signal
import traceback
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


def forked(call: Callable[[], int | None]) -> int:
    r"""Fork a process that calls something, and ends with the status it returns.

    Nothing that the call raises gets out: a child that left it would go on as its
    parent, and speak for it. An interrupt ends it with 130, whenever it comes.

    Returns:
        The number of the process.
    """
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child == 0:
        try:
            # A shell starts what runs in the background with interrupts ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            os._exit(call() or 0)
        except KeyboardInterrupt:
            os._exit(130)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, held)
    return child
