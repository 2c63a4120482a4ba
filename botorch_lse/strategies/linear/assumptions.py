r"""Signs that the noise is not what was stated."""

from __future__ import annotations

import math
import warnings

import torch
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_lse.strategies.linear.belief import LinearBelief

ALARM = 1e-3
"""Probability of a false alarm along a whole run, each of the two tests."""
ROUNDING = 1e-9
"""Share of the sum of squares below which a difference of two sums is rounding."""


class NoiseWarning(BotorchWarning):
    r"""The noise is larger or has heavier tails than stated: no guarantee holds."""


def noise_alarm(
    belief: LinearBelief, rows: Tensor, residuals: Tensor, reach: Tensor
) -> str | None:
    r"""Which residual is larger than sub-Gaussian noise of the stated scale allows.

    Two tests, each with a false alarm with probability 0.001 at most along the run: a
    single residual beyond its own confidence width by more than ``sqrt(2 log(2 m n (n +
    1) / 0.001))`` scales, and the residual sum of squares of ``n`` values above ``n + 2
    sqrt(n x) + 2 x``, ``x = log(m n (n + 1) / 0.001)``.

    Args:
        belief: After the values were learnt.
        rows: ``n`` rows just measured.
        residuals: ``n x m``, in noise scales of the values.
        reach: ``n``, the widths of the estimates at these rows, in the same scales.

    Returns:
        A clause with the row of the largest residual; ``None`` if there is no sign.

    Source:
        The sum of squares: Hsu, Kakade and Zhang (2012), Theorem 1; least squares makes
        it smaller than that of the noise.
    """
    evidence = belief.evidence
    n, m = evidence.entries, len(evidence.squares)
    tests = math.log(m * n * (n + 1) / ALARM)
    excess = residuals.abs().amax(dim=-1) - reach
    worst = int(excess.argmax())
    spread = evidence.squares - (belief.theta * evidence.moment).sum(dim=0)
    spread = spread - ROUNDING * evidence.squares
    limit = n + 2 * math.sqrt(n * tests) + 2 * tests
    if float(excess[worst]) > math.sqrt(2 * (tests + math.log(2))):
        return (
            f"a value of row {int(rows[worst])} is "
            f"{float(residuals[worst].abs().max()):.1f} noise scales off the estimate"
        )
    if bool((spread > limit).any()):
        largest = float(spread.max()) / n
        return (
            f"the mean squared residual is {largest:.2f} squared noise scales, last at "
            f"row {int(rows[worst])}"
        )
    return None


def contradicted(alarm: str) -> str:
    r"""What a guarantee says after an alarm."""
    return (
        f"The data contradict the stated noise ({alarm}): the guarantee does not hold."
    )


def warn_of(alarm: str) -> None:
    r"""Say that the noise is not what was stated, and what to do.

    Warns:
        NoiseWarning: Always.
    """
    warnings.warn(
        f"{contradicted(alarm)} The noise is larger or has heavier tails than stated, "
        "or f is not linear in the features. State a larger `noise_std`, or use the "
        "PAC strategies, which need no more than a variance.",
        NoiseWarning,
        stacklevel=2,
    )


def standardised(
    belief: LinearBelief, Phi: Tensor, rows: Tensor, y: Tensor, roots: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Residuals, and the estimates' widths, in noise scales of the values.

    Args:
        belief: After the values were learnt.
        Phi: ``N x h`` features.
        rows: ``n`` rows.
        y: ``n x m`` values.
        roots: ``n``, one over the noise scale of each value.
    """
    residuals = roots.unsqueeze(-1) * (y - Phi[rows] @ belief.theta)
    squared = belief.width.squared(belief.information, Phi[rows])
    return residuals, roots * squared.sqrt().nan_to_num(posinf=torch.inf)
