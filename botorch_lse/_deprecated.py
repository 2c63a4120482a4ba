r"""The warning of what a later version removes, see ``docs/stability.md``."""

from __future__ import annotations

import warnings


def warn_deprecated(what: str, since: str, until: str, instead: str) -> None:
    r"""Warn the caller of a function that calls this one.

    Args:
        what: The name or argument, as the user writes it.
        since: The version that deprecates it.
        until: The first version that may lack it, at least the next minor one.
        instead: What to write instead, a sentence.
    """
    said = f"`{what}` is deprecated since botorch-lse {since} and may go in {until}."
    warnings.warn(f"{said} {instead}", DeprecationWarning, stacklevel=3)
