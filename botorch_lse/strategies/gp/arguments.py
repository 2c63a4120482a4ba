r"""What a strategy on a Gaussian process is told, checked once."""

from __future__ import annotations

from collections.abc import Sequence

from botorch_lse.checks import finite_number, in_interval
from botorch_lse.confidence.classify import ratio
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Pool


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


def check_noise(noise_std: float | None, pool: Pool, prior: GPPrior | None) -> None:
    r"""The noise is known once, or learnt with the model.

    Args:
        noise_std: Its standard deviation.
        pool: May know the variance of each row.
        prior: The fixed model; ``None`` if it is learnt.

    Raises:
        ValueError: If the noise is out of range, given twice or unknown, or the model
            is an ensemble.
    """
    if noise_std is not None:
        in_interval(
            noise_std,
            "noise_std",
            0.0,
            float("inf"),
            remedy="Leave it out to learn the noise.",
        )
        if pool.noise_var is not None:
            raise ValueError(
                "Expected the noise once, but got both `noise_std` and "
                "`pool.noise_var`. Leave one out."
            )
    if prior is None:
        return
    known = noise_std is not None or pool.noise_var is not None
    if not known and not prior.knows_new_noise:
        raise ValueError(
            "Expected `noise_std` (or `pool.noise_var`), because the fixed `model` "
            "does not know the noise of a new observation."
        )
    if prior.batch_shape:
        raise ValueError(
            "Expected a fixed `model` without batch shape, but got "
            f"{tuple(prior.batch_shape)}. Use one member of the ensemble."
        )
