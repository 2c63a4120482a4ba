r"""Classification rules of LSE and LSE_imp, from confidence regions to sides.

LSE (Gotovos et al. 2013, Algorithm 1) has a given threshold; LSE_imp (Algorithm 2) an
implicit one, ``omega`` times the unknown maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse._validation import finite_number, in_interval
from botorch_lse.confidence.regions import Regions
from botorch_lse.data.classification import Classification, gaussian_probability_above

ABOVE, UNDECIDED, BELOW = 1, 0, -1
"""The codes of sides in tensors."""

NO_GUARANTEE = "No confidence is claimed: the widths were given, not derived."


def explicit_sides(
    lower: Tensor, upper: Tensor, threshold: float, epsilon: float
) -> Tensor:
    r"""The sides by a stated level: above, below or undecided (``N`` codes).

    Above if ``lower + epsilon > h``, else below if ``upper - epsilon <= h``.

    Source:
        Gotovos et al. (2013), Algorithm 1, lines 7 to 10. "Above" is tested first, so
        reflection of ``y`` swaps the sides exactly only for ``epsilon = 0``.
    """
    above = lower + epsilon > threshold
    below = (upper - epsilon <= threshold) & ~above
    return above.to(torch.int8) - below.to(torch.int8)


@dataclass(frozen=True, eq=False)
class Sides:
    r"""The rows that are decided, and those still worth measuring, after some rounds.

    Args:
        side: ``N`` codes ``ABOVE``, ``UNDECIDED`` or ``BELOW``.
        candidates: ``N`` bools, the rows worth measuring: the undecided rows ``U_t``
            for an explicit level; for an implicit one also decided rows that may be the
            maximiser, ``Z_t = U_t + M^H_t + M^L_t`` in the paper.
        optimistic: ``h_opt``, an upper bound of the level.
        pessimistic: ``h_pes``, a lower bound of the level.
    """

    side: Tensor
    candidates: Tensor
    optimistic: float = math.inf
    pessimistic: float = -math.inf

    @classmethod
    def start(cls, n_rows: int) -> Sides:
        r"""The sides before the first round: every row undecided, worth measuring."""
        side = torch.zeros(n_rows, dtype=torch.int8)
        return cls(side, torch.ones(n_rows, dtype=torch.bool))

    def reopened(self, rows: Tensor) -> Sides:
        r"""The sides with ``rows`` (``N`` bools) undecided and candidates again."""
        side = self.side.masked_fill(rows, UNDECIDED)
        return replace(self, side=side, candidates=self.candidates | rows)

    def update_implicit(
        self,
        lower: Tensor,
        upper: Tensor,
        omega: float,
        epsilon: float,
        drop_maximisers: bool = False,
    ) -> Sides:
        r"""The sides after one iteration of LSE_imp's classification.

        Args:
            lower: ``N`` lower ends, already intersected.
            upper: ``N`` upper ends.
            omega: ``threshold = omega * max f``.
            epsilon: The accuracy.
            drop_maximisers: Whether a row that is decided leaves the candidates as soon
                as it cannot be the maximiser, as the paper's text says. Else it is
                tested only in the round that decides it, as its pseudocode says.

        Source:
            Gotovos et al. (2013), Algorithm 2, lines 4 to 15. Deviations, erratum 4
            (papers/gotovos2013/errata.md): the test against ``f_pes`` is strict in
            both branches, and both levels are computed once per iteration over
            ``Z_{t-1}``, after its regions.
        """
        Z = self.candidates
        if not bool(Z.any()):
            return self
        f_opt, f_pes = float(upper[Z].max()), float(lower[Z].max())
        h_opt, h_pes = omega * f_opt, omega * f_pes
        open_ = self.side == UNDECIDED
        above = open_ & (lower + epsilon >= h_opt)
        below = open_ & ~above & (upper - epsilon <= h_pes)
        side = self.side + above.to(torch.int8) - below.to(torch.int8)
        tested = Z & (side != UNDECIDED) if drop_maximisers else above | below
        leaves = tested & (upper < f_pes)
        return Sides(side, Z & ~leaves, h_opt, h_pes)


def classify(
    regions: Regions, threshold: float, epsilon: float = 0.0
) -> Classification:
    r"""The side of every row with respect to an explicit level.

    Args:
        regions: From ``confidence_regions``.
        threshold: The level, in the units of ``y``.
        epsilon: The accuracy, units of ``y``: rows whose region reaches at most this
            far over the level count as decided.

    Raises:
        ValueError: If ``threshold`` is not one finite number, ``epsilon`` negative, or
            ``regions`` are not confidence regions.

    Source:
        Gotovos et al. (2013), Algorithm 1.
    """
    _check_regions(regions)
    threshold = finite_number(threshold, "threshold")
    epsilon = accuracy(epsilon)
    ends = regions.lower, regions.upper
    side = explicit_sides(*ends, threshold, epsilon)
    within = None
    if epsilon > 0:
        within = may_be_on_either(side, *ends, threshold, threshold)
    return from_sides(side, regions, threshold, NO_GUARANTEE, within)


def classify_implicit(
    regions: Regions, omega: float, epsilon: float = 0.0
) -> Classification:
    r"""The side of every row with respect to ``omega * max f``.

    Args:
        regions: From ``confidence_regions``.
        omega: In (0, 1).
        epsilon: The accuracy, units of ``y``.

    Raises:
        ValueError: If ``omega`` is outside (0, 1), ``epsilon`` negative, or ``regions``
            are not confidence regions.

    Source:
        Gotovos et al. (2013), Algorithm 2; by Lemmas 13 and 14 the levels over all rows
        at the end are at least as tight as along the way.
    """
    _check_regions(regions)
    omega = ratio(omega)
    ends = regions.lower, regions.upper
    start = Sides.start(regions.lower.numel())
    sides = start.update_implicit(*ends, omega, accuracy(epsilon))
    level = omega * float(regions.mean.max())
    within = None
    if accuracy(epsilon) > 0:
        within = may_be_on_either(sides.side, *ends, *level_ends(omega, *ends))
    return from_sides(sides.side, regions, level, NO_GUARANTEE, within)


def _check_regions(regions: object) -> None:
    r"""Complain if ``regions`` is not the result of ``confidence_regions``."""
    if not isinstance(regions, Regions):
        raise ValueError(
            "Expected `regions` to be `Regions`, but got "
            f"{type(regions).__name__}. Take them from `confidence_regions`."
        )


def level_ends(omega: float, lower: Tensor, upper: Tensor) -> tuple[float, float]:
    r"""The smallest and the largest level ``omega * max f`` that intervals allow."""
    return omega * float(lower.max()), omega * float(upper.max())


def may_be_on_either(
    side: Tensor, lower: Tensor, upper: Tensor, low: float, high: float
) -> Tensor:
    r"""The decided rows whose interval reaches over the level itself (``N`` bools).

    An accuracy has decided them.

    Args:
        side: ``N`` codes.
        lower: ``N`` lower ends.
        upper: ``N`` upper ends.
        low: The smallest level that is possible.
        high: The largest one; the same where the level is stated.
    """
    return ((side == ABOVE) & (lower <= high)) | ((side == BELOW) & (upper > low))


def from_sides(
    side: Tensor,
    regions: Regions,
    level: float,
    guarantee: str,
    within: Tensor | None = None,
) -> Classification:
    r"""A ``Classification`` from codes of sides.

    Args:
        side: ``N`` codes.
        regions: The regions of the same rows.
        level: The level for ``probability_above``, units of ``y``.
        guarantee: The sentence about the confidence.
        within: ``N`` bools: see ``Classification``.
    """
    probability = gaussian_probability_above(regions.mean, regions.sigma, level)
    return Classification(
        above=side == ABOVE,
        below=side == BELOW,
        undecided=side == UNDECIDED,
        lower=regions.lower,
        upper=regions.upper,
        mean=regions.mean,
        sigma=regions.sigma,
        probability_above=probability,
        guarantee=guarantee,
        pool=regions.pool,
        contradicted=regions.contradicted,
        within=within,
    )


def with_contradictions(guarantee: str, contradicted: Tensor) -> str:
    r"""The guarantee with the number of rows whose intervals contradict each other.

    Args:
        guarantee: What is claimed if they do not.
        contradicted: ``N`` bools.
    """
    n = int(contradicted.sum())
    if n == 0:
        return guarantee
    return (
        f"{guarantee} But the intervals of {n} row{'s' if n > 1 else ''} contradict "
        "each other, where the current one counts."
    )


def accuracy(epsilon: float) -> float:
    r"""The checked ``epsilon``: finite and at least 0, in the units of ``y``."""
    return in_interval(epsilon, "epsilon", 0.0, math.inf, closed_low=True)


def ratio(omega: float) -> float:
    r"""The checked ``omega``, the level as a share of the maximum, in (0, 1)."""
    remedy = "It is the share of the maximum; for a level in units of `y` give "
    return in_interval(omega, "omega", 0.0, 1.0, remedy=f"{remedy}`threshold`.")
