r"""Progress messages: a line at once, and on a terminal how it goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

PATIENCE = 2.0
"""The seconds after which somebody at a terminal wants to see that something moves."""
STEP = 0.5
"""The seconds between two looks at the clock after that."""


@dataclass
class Progress:
    r"""The task that runs, its duration, and how far it has come.

    Args:
        words: What is being done: "learning from 18 values".
        place: How far it has come: "sheet 3 of 12".
        is_shown: Whether a time was written.
        done: Set once it is done.
    """

    words: str
    place: str = ""
    is_shown: bool = False
    done: Event = field(default_factory=Event, repr=False)

    def tick(self) -> None:
        r"""Write place and time behind the words, in their line, until it is done."""
        seconds = PATIENCE
        while not self.done.wait(STEP if seconds > PATIENCE else PATIENCE):
            place = f"{self.place}, " if self.place else ""
            _show(f"\r{self.words} ... {place}{seconds:.0f} s ")
            self.is_shown = True
            seconds += STEP


@contextmanager
def doing(words: str, *, at_once: bool = True) -> Iterator[Progress]:
    r"""A context that shows what is being done, on standard error.

    Args:
        words: The description of what is being done.
        at_once: Whether to say it in any case, and not only at a terminal once it takes
            longer than people like to wait.
    """
    progress, show = Progress(words), sys.stderr
    is_terminal = show is not None and show.isatty()
    if at_once:
        _show(f"{words} ...{'' if is_terminal else chr(10)}")
    if not is_terminal:  # a file, where a line is written once
        yield progress
        return
    clock = Thread(target=progress.tick, daemon=True)
    clock.start()
    try:
        yield progress
    finally:
        progress.done.set()
        clock.join()
        if at_once or progress.is_shown:
            _show("\n")


def _show(words: str) -> None:
    r"""Write to standard error if there is one; a failure does not end the run."""
    if sys.stderr is not None:  # ``None`` where the shell closed it
        with suppress(OSError):
            sys.stderr.write(words)
            sys.stderr.flush()
