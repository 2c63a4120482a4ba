r"""Widths for every direction at every time: the stitched self-normalised bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.checks import in_interval

RANK_TOLERANCE = 1e-10
"""Eigenvalues of the information below this, relative to the largest, count as zero."""
OUTSIDE = 1e-6
"""A direction of which this share of the length was not measured is unknown."""
CANCELLED = 1e-6
"""Squared distances below this share of the squared lengths lose six digits of 16."""
FIRST_SCALE, RATIO, LEVELS = 4.0, 8.0, 10
"""``R_k = 4 8^k W`` for ``k < 10``, up to 5e8 measurements, with equal shares of
``delta``; see ``StitchedWidth``. Beyond the last scale the widths hold and are wider.
"""


@dataclass(frozen=True, eq=False)
class Information:
    r"""``V = sum z z'`` of what was measured, seen from a design's information ``W``.

    Args:
        sizes: ``h`` generalised eigenvalues of ``(V, W)``, ascending, zeros exact.
        axes: ``h x h``, the eigenvectors ``P`` as columns: ``P' W P = I`` and
            ``P' V P = diag(sizes)``.
    """

    sizes: Tensor
    axes: Tensor

    @classmethod
    def of(cls, V: Tensor, W: Tensor) -> Information:
        r"""The information of measurements.

        Args:
            V: ``h x h``, positive semidefinite.
            W: ``h x h``, positive definite, fixed before the first measurement.
        """
        C = torch.linalg.cholesky(W)
        half = torch.linalg.solve_triangular(C, V, upper=False)
        M = torch.linalg.solve_triangular(C, half.mT, upper=False)
        sizes, U = torch.linalg.eigh((M + M.mT) / 2)
        largest = sizes[-1:].sum().clamp_min(0.0)
        sizes = torch.where(sizes > RANK_TOLERANCE * largest, sizes, 0.0)
        return cls(sizes, torch.linalg.solve_triangular(C.mT, U, upper=True))

    @cached_property
    def is_complete(self) -> bool:
        r"""Whether every direction was measured."""
        return bool((self.sizes > 0).all())

    def solve(self, moment: Tensor) -> Tensor:
        r"""``V^+ moment``, least squares; ``moment`` is ``h x m``."""
        inverse = torch.where(self.sizes > 0, 1 / self.sizes, 0.0).unsqueeze(-1)
        return self.axes @ (inverse * (self.axes.mT @ moment))

    def squared_norms(self, vectors: Tensor) -> Tensor:
        r"""``v' V^-1 v`` of ``T x h`` vectors; infinite outside the span of ``V``."""
        return self._norms(vectors)[0]

    def _norms(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        r"""``v' V^-1 v`` and ``v' V^-1 W V^-1 v``: ``T`` each."""
        squares = (vectors @ self.axes).square()
        known = self.sizes > 0
        inverse = torch.where(known, 1 / self.sizes, 0.0)
        missing = squares[:, ~known].sum(dim=-1)
        unknown = missing > OUTSIDE**2 * squares.sum(dim=-1)
        norms = (squares @ inverse).masked_fill(unknown, torch.inf)
        return norms, (squares @ inverse.square()).masked_fill(unknown, torch.inf)


@dataclass(frozen=True, eq=False)
class StitchedWidth:
    r"""Widths that hold for all directions and all times at once.

    With probability ``1 - delta``, at every time and for every ``v``, least squares is
    off by at most ``|v|_{V^-1 (V + R_k) V^-1} sqrt(2 log(det(V + R_k)^(1/2) det(R_k)^
    (-1/2) / delta_k))`` with ``R_k = 4 8^k W`` and ``delta_k = delta / 10``; the width
    is the smallest over ``k = 0, ..., 9``. A direction outside the span of what was
    measured has an infinite width.

    Ten scales with equal shares add ``2 log 10 = 4.6`` to the factor at all times. The
    finer ``R_k = 4 2^k W``, ``k >= 0``, with weights ``1 / ((k + 1) (k + 2))`` add ``2
    log((k + 1) (k + 2))``, 11.7 at 10^6 measurements, while a factor of 8 between
    scales loses little, as the width varies slowly with ``R``: the choice rests on the
    formula. With fresh noise (seeds 100 to 119) it needs 17 to 32 % fewer measurements
    on Weltz et al.'s examples (1.86, 1.75 and 1.93 times ``2 psi* log(2 N / delta)``
    against 2.61, 2.11 and 2.85), and on Soare's, of 2,000, the two are within noise.

    Assumes: rows ``z_t`` (features over the noise scale, fixed before ``y_t`` is seen)
    chosen from the past, a mean linear in the features, and noise that, given the past,
    is sub-Gaussian with at most that scale.

    Args:
        W: ``h x h`` positive definite, fixed before the first measurement: a design's
            information.
        delta: The failure probability.

    Example:
        >>> eye = torch.eye(1, dtype=torch.float64)
        >>> width = StitchedWidth(eye, delta=0.05)
        >>> float(width.squared(Information.of(100 * eye, eye), eye)) < 0.2
        True

    Source:
        Abbasi-Yadkori, Pal and Szepesvari (2011), Theorem 1; the error ``V^-1 S`` of
        least squares is bounded by Cauchy-Schwarz in the norm of ``V + R``, so that no
        ridge biases it. Stitching by a union bound is own.
    """

    W: Tensor
    delta: float

    def __post_init__(self) -> None:
        in_interval(self.delta, "delta", 0.0, 1.0)

    def scales(self, information: Information) -> tuple[Tensor, Tensor]:
        r"""The scales ``4 8^k``, and the squared factors of each.

        ``2 log(det(V + R_k)^(1/2) det(R_k)^(-1/2) / delta_k)``: ``K`` each.
        """
        scales = FIRST_SCALE * RATIO ** torch.arange(LEVELS, dtype=torch.float64)
        ratios = information.sizes.double().unsqueeze(-1) / scales
        share = 2 * math.log(LEVELS / self.delta)
        factors = torch.log1p(ratios).sum(dim=0) + share
        return scales.to(information.sizes), factors.to(information.sizes)

    def squared(self, information: Information, vectors: Tensor) -> Tensor:
        r"""``T`` squared widths of ``T x h`` vectors."""
        norms, bent = information._norms(vectors)
        zero = (vectors == 0).all(dim=-1)
        return self._narrowest(information, norms, bent).masked_fill(zero, 0.0)

    def squared_differences(
        self, information: Information, first: Tensor, second: Tensor
    ) -> Tensor:
        r"""``A x B`` squared widths of ``first_i - second_j``, exactly 0 for equals.

        All directions must have been measured.

        Args:
            information: ``V``.
            first: ``A x h`` vectors.
            second: ``B x h`` vectors.
        """
        parts = []
        for power in (0.5, 1.0):
            scaled = information.axes / information.sizes**power
            parts.append(squared_distances(first @ scaled, second @ scaled))
        return self._narrowest(information, *parts)

    def _narrowest(
        self, information: Information, norms: Tensor, bent: Tensor
    ) -> Tensor:
        best = torch.full_like(norms, torch.inf)
        for scale, factor in self._useful(information):
            best = torch.minimum(best, (norms + scale * bent) * factor)
        return best

    def _useful(self, information: Information) -> list[tuple[float, float]]:
        r"""The scales that are best for some direction, with their factors.

        The best scale falls with ``v' V^-1 W V^-1 v / v' V^-1 v``, which lies between
        the inverse eigenvalues.
        """
        scales, factors = self.scales(information)
        sizes = information.sizes[information.sizes > 0]
        if sizes.numel() == 0:
            return []
        ends = [int(((1 + scales / s) * factors).argmin()) for s in sizes[[0, -1]]]
        useful = slice(ends[0], ends[1] + 1)
        return list(zip(scales[useful].tolist(), factors[useful].tolist(), strict=True))


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    r"""``A x B`` squared Euclidean distances, exact for equal rows."""
    own, other = first.square().sum(dim=-1), second.square().sum(dim=-1)
    squares = torch.addmm(own.unsqueeze(-1) + other, first, second.mT, alpha=-2)
    largest = float(own.amax() + other.amax()) if squares.numel() else 0.0
    # Products of nearly equal rows cancel: take these differences themselves.
    i, j = (squares < CANCELLED * largest).nonzero(as_tuple=True)
    squares[i, j] = (first[i] - second[j]).square().sum(dim=-1)
    return squares
