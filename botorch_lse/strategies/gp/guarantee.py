r"""The probability that a strategy claims, as a sentence."""

from __future__ import annotations


def no_guarantee(own: bool) -> str:
    r"""For a heuristic width: the rule's own, or one that the user gave."""
    width = "the rule's own" if own else "given, not derived"
    return f"No confidence is claimed: the width is {width}; delta is ignored."


def norm_guarantee(delta: float, epsilon: float, bound: float) -> str:
    r"""For the widths of Chowdhury and Gopalan (2017).

    Args:
        delta: The failure probability.
        epsilon: The accuracy, units of ``y``.
        bound: Of the norm.
    """
    up_to = f" up to epsilon = {epsilon:g}" if epsilon > 0 else ""
    return (
        f"With probability {1 - delta:g} all decided rows are right{up_to}; assumes f "
        f"less the prior mean of norm at most {bound:g} in the space of the given "
        "kernel, and noise that, given the past, is sub-Gaussian with at most the "
        "given variance (Chowdhury and Gopalan 2017, Theorem 2)."
    )


def gaussian_guarantee(
    delta: float, epsilon: float, source: str, *, fixed: bool
) -> str:
    r"""For the widths of a Gaussian process.

    Args:
        delta: The failure probability.
        epsilon: The accuracy, units of ``y``.
        source: The theorem.
        fixed: Whether hyper-parameters are given, not fitted.
    """
    up_to = f" up to epsilon = {epsilon:g}" if epsilon > 0 else ""
    claim = f"With probability {1 - delta:g} all decided rows are right{up_to}"
    if not fixed:
        return (
            f"{claim}, were the fitted hyper-parameters the true ones: the theorem "
            f"({source}) does not cover fitting."
        )
    return (
        f"{claim}; assumes f drawn from the given Gaussian process and independent "
        f"Gaussian noise of the given variance ({source})."
    )
