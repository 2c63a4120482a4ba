r"""Ctrl-C at a moment when it does no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    r"""Let what is inside end before Ctrl-C takes effect.

    Between the moment at which a result is in memory and that at which it is on the
    disk. Python interrupts the main thread alone, so there is nothing to hold back in
    others.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield  # None: a handler that Python did not set and could not put back
        return
    caught: list[Any] = []
    signal.signal(signal.SIGINT, lambda *args: caught.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if caught:
            signal.raise_signal(signal.SIGINT)
