r"""What a strategy on a Gaussian process is told, checked once."""

from __future__ import annotations

from collections.abc import Sequence

from botorch_lse.checks import finite_number
from botorch_lse.confidence.classify import ratio


def check_goal(
    threshold: float | None, omega: float | None, goals: Sequence[str], name: str
) -> None:
    r"""One level, or none where the maximiser is a goal.

    Args:
        threshold: The level.
        omega: The level as a share of the maximum.
        goals: Of ``"threshold"``, ``"omega"``, ``"maximiser"`` those that are allowed.
        name: The strategy's.

    Raises:
        ValueError: If none, both or another one is given, or it is out of range.
    """
    levels = {"threshold": threshold, "omega": omega}
    given = [goal for goal, level in levels.items() if level is not None]
    if not given and "maximiser" in goals:
        return
    if len(given) != 1 or given[0] not in goals:
        wanted = [f"`{goal}`" for goal in goals if goal != "maximiser"]
        raise ValueError(
            f"Expected exactly {'one of ' if len(wanted) > 1 else ''}"
            f"{' or '.join(wanted)} for {name}, but got "
            f"{' and '.join(given) or 'neither'}."
        )
    if threshold is not None:
        finite_number(threshold, "threshold")
    elif omega is not None:
        ratio(omega)
