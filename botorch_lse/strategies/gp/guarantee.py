r"""The probability that a strategy claims, as a sentence."""

from __future__ import annotations


def no_guarantee(own: bool) -> str:
    r"""For a heuristic width: the rule's own, or one that the user gave."""
    width = "the rule's own" if own else "given, not derived"
    return f"No confidence is claimed: the width is {width}; delta is ignored."


def gaussian_guarantee(
    delta: float, epsilon: float, theorem: str, *, fixed: bool
) -> str:
    r"""For the widths of Gotovos et al. (2013).

    Args:
        delta: The failure probability.
        epsilon: The accuracy, units of ``y``.
        theorem: Which of their theorems.
        fixed: Whether hyper-parameters are given, not fitted.
    """
    up_to = f" up to epsilon = {epsilon:g}" if epsilon > 0 else ""
    claim = f"With probability {1 - delta:g} all decided rows are right{up_to}"
    if not fixed:
        return (
            f"{claim}, were the fitted hyper-parameters the true ones: the theorem "
            "(Gotovos et al. 2013, Theorem 1) does not cover fitting."
        )
    return (
        f"{claim}; assumes f drawn from the given Gaussian process and independent "
        f"Gaussian noise of the given variance (Gotovos et al. 2013, {theorem})."
    )
