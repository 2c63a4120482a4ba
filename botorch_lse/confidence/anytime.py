r"""Anytime confidence widths: they hold whenever one looks at the data.

For estimates by least squares there are two bounds. One holds for every direction and
grows with the rank of the features (``StitchedWidth``); one holds for a fixed list of
targets and grows with the logarithm of their number (``BatchMartingale``).
``AnytimeWidth`` says which of them to use. ``RKHSWidth`` is for a function with a norm
bound in a kernel's space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse._validation import in_interval

RANK_TOLERANCE = 1e-10
"""The share of the largest eigenvalue below which the information's count as zero."""
OUTSIDE = 1e-6
"""The unmeasured share of a direction's length from which on it counts as unknown."""
CANCELLED = 1e-6
"""The share of squared lengths below which distances lose six digits of 16."""
FIRST_SCALE, RATIO, LEVELS = 4.0, 8.0, 10
"""The scales ``R_k = 4 8^k W`` for ``k < 10``, up to 5e8 measurements.
They share ``delta`` equally; see ``StitchedWidth``. Beyond the last scale the widths
hold and are wider."""
REFERENCE = 2.0**10
"""The number of measurements at which the two widths are compared beforehand."""
POOLING = 1.3
"""The factor between the martingale's squared width and the one compared before.
It is above 1 because real batches differ from each other."""


@dataclass(frozen=True, eq=False)
class Information:
    r"""The information ``V = sum z z'`` of measurements, relative to a design's ``W``.

    In the axes of the generalised eigenvalue problem of ``(V, W)`` both are diagonal,
    so that norms in any combination of ``V`` and ``W`` are sums.

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
        r"""Whether ``V`` has full rank, so that every direction can be estimated."""
        return bool((self.sizes > 0).all())

    def solve(self, moment: Tensor) -> Tensor:
        r"""The least squares solution ``V^+ moment``; ``moment`` is ``h x m``."""
        inverse = torch.where(self.sizes > 0, 1 / self.sizes, 0.0).unsqueeze(-1)
        return self.axes @ (inverse * (self.axes.mT @ moment))

    def squared_norms(self, vectors: Tensor) -> Tensor:
        r"""The norms ``v' V^-1 v`` of vectors (``T``), infinite off ``V``'s span."""
        return self._norms(vectors)[0]

    def _norms(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        r"""The norms ``v' V^-1 v`` and ``v' V^-1 W V^-1 v`` of vectors (``T`` each).

        Both are infinite for a vector outside the span of ``V``.
        """
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
        r"""The ten scales ``4 8^k``, and the squared factor of the width at each.

        The factor is ``2 log(det(V + R_k)^(1/2) det(R_k)^(-1/2) / delta_k)``.
        """
        scales = FIRST_SCALE * RATIO ** torch.arange(LEVELS, dtype=torch.float64)
        ratios = information.sizes.double().unsqueeze(-1) / scales
        share = 2 * math.log(LEVELS / self.delta)
        factors = torch.log1p(ratios).sum(dim=0) + share
        return scales.to(information.sizes), factors.to(information.sizes)

    def squared(self, information: Information, vectors: Tensor) -> Tensor:
        r"""The squared widths of ``T x h`` vectors (``T``)."""
        norms, w_norms = information._norms(vectors)
        zero = (vectors == 0).all(dim=-1)
        return self._narrowest(information, norms, w_norms).masked_fill(zero, 0.0)

    def squared_differences(
        self, information: Information, first: Tensor, second: Tensor
    ) -> Tensor:
        r"""The squared widths of ``first_i - second_j`` (``A x B``), 0 for equals.

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
        self, information: Information, norms: Tensor, w_norms: Tensor
    ) -> Tensor:
        r"""The smallest squared width over all scales.

        Args:
            information: ``V``.
            norms: ``v' V^-1 v`` of each direction.
            w_norms: ``v' V^-1 W V^-1 v`` of each direction.
        """
        best = torch.full_like(norms, torch.inf)
        for scale, factor in self._useful(information):
            best = torch.minimum(best, (norms + scale * w_norms) * factor)
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
    r"""The squared Euclidean distances of rows (``A x B``), exact for equal rows."""
    own, other = first.square().sum(dim=-1), second.square().sum(dim=-1)
    squares = torch.addmm(own.unsqueeze(-1) + other, first, second.mT, alpha=-2)
    largest = float(own.amax() + other.amax()) if squares.numel() else 0.0
    # Products of nearly equal rows cancel: take these differences themselves.
    i, j = (squares < CANCELLED * largest).nonzero(as_tuple=True)
    squares[i, j] = (first[i] - second[j]).square().sum(dim=-1)
    return squares


@dataclass(frozen=True, eq=False)
class BatchMartingale:
    r"""The sum, for each target, of its batch-wise estimates, weighted by precision.

    Inside batch ``r`` the rows are fixed beforehand, so least squares on that batch
    alone is off by a sub-Gaussian amount of known scale ``s_r(v) = |v|_{V_r^-1}``, and
    ``sum_r v'(theta_r - theta) / s_r^2`` is a martingale with the variance process
    ``S = sum_r 1 / s_r^2``. Divided by ``S`` it is the error of the precision-weighted
    mean of the estimates, bounded at all times by a mixture over Gaussian priors.

    Assumes what ``StitchedWidth`` does, and that the rows of a batch, with those of
    them that came back, were fixed before any of its values.

    Args:
        totals: ``T x m`` sums of ``v'theta_r / s_r^2``.
        precision: ``T`` sums ``S``; batches that do not determine a target add nothing.
        units: ``T`` squared norms ``v' W^-1 v``, the scale of ``1 / S``, fixed before
            the first measurement.

    Source:
        Own; the scalar bound is Robbins (1970), Abbasi-Yadkori et al. (2011), Theorem
        1, for one dimension, stitched over ``rho_k = 4 8^k / units``.
    """

    totals: Tensor
    precision: Tensor
    units: Tensor

    @classmethod
    def start(cls, vectors: Tensor, W: Tensor, m: int) -> BatchMartingale:
        r"""The sums before any batch; ``vectors`` are the ``T x h`` targets."""
        units = Information.of(W, W).squared_norms(vectors)
        return cls(vectors.new_zeros(len(vectors), m), torch.zeros_like(units), units)

    def add(
        self, vectors: Tensor, batch: Information, moment: Tensor
    ) -> BatchMartingale:
        r"""The sums after one more batch.

        Args:
            vectors: The ``T x h`` targets.
            batch: ``V_r``, of this batch alone.
            moment: ``h x m``, ``sum z y / scale`` of this batch.
        """
        variance = batch.squared_norms(vectors)
        gain = torch.where(variance > 0, 1 / variance, 0.0)
        estimates = vectors @ batch.solve(moment)
        return BatchMartingale(
            self.totals + gain.unsqueeze(-1) * estimates,
            self.precision + gain,
            self.units,
        )

    @property
    def mean(self) -> Tensor:
        r"""The precision-weighted means (``T x m``); 0 where no batch tells them."""
        S = self.precision.unsqueeze(-1)
        tiny = torch.finfo(S.dtype).tiny
        return torch.where(S > 0, self.totals / S.clamp_min(tiny), 0.0)

    def squared(self, delta: float) -> Tensor:
        r"""The squared half widths about ``mean`` (``T``), each at level ``delta``.

        ``(S + rho) log((S + rho) / (rho delta_k^2)) / S^2``, smallest over ``rho =
        rho_k``, with ``delta_k = delta / 10``.
        """
        S, known = self.precision, (self.precision > 0) & (self.units > 0)
        best = torch.full_like(S, torch.inf)
        share = 2 * math.log(LEVELS / delta)
        for k in range(LEVELS):
            rho = FIRST_SCALE * RATIO**k / self.units
            squared = (S + rho) * (torch.log1p(S / rho) + share)
            best = torch.minimum(best, squared)
        tiny = torch.finfo(S.dtype).tiny
        return torch.where(known, best / S.square().clamp_min(tiny), torch.inf)


@dataclass(frozen=True, eq=False)
class AnytimeWidth:
    r"""The self-normalised width, with batch martingales beside it at high rank.

    The ellipsoid pays for the rank, the martingales for the logarithm of the number of
    targets. Where the second is expected to be narrower, both are used with half of
    ``delta`` and both intervals are intersected. Assumes what ``StitchedWidth`` and
    ``BatchMartingale`` do.

    Args:
        W: ``h x h``, a design's information, fixed before the first measurement.
        delta: The failure probability, all outputs and targets together.
        n_targets: The number of targets.
        m: The number of outputs; each has an equal share of ``delta``.
        batches: Whether batches determine all targets; else there are no martingales.
    """

    W: Tensor
    delta: float
    n_targets: int
    m: int = 1
    batches: bool = True

    @cached_property
    def uses_martingales(self) -> bool:
        r"""Whether both widths are used, by the rank and the number of targets alone.

        It may not depend on the data, because ``delta`` is split beforehand. The two
        widths are compared after ``REFERENCE`` measurements spread like the design.
        """
        if not self.batches:
            return False
        eye = torch.eye(len(self.W), dtype=self.W.dtype)
        information = Information.of(REFERENCE * eye, eye)
        one = eye[:1]
        ellipsoid = StitchedWidth(eye, self.delta / self.m).squared(information, one)
        scalar = BatchMartingale.start(one, eye, 1).add(one, information, one.mT)
        martingale = scalar.squared(self.target_delta)
        return float(ellipsoid) > POOLING * float(martingale)

    def stitched(self) -> StitchedWidth:
        r"""The width of every direction, for one output."""
        share = 2 if self.uses_martingales else 1
        return StitchedWidth(self.W, self.delta / (share * self.m))

    @property
    def target_delta(self) -> float:
        r"""The failure probability of the martingale of one target and output."""
        return self.delta / (2 * self.m * self.n_targets)

    def interval(
        self,
        estimate: Tensor,
        squared: Tensor,
        martingale: BatchMartingale | None,
    ) -> tuple[Tensor, Tensor]:
        r"""The confidence intervals of targets: their lower and upper ends (``T x m``).

        Args:
            estimate: ``T x m``, least squares on all data.
            squared: ``T`` squared self-normalised widths.
            martingale: Of the same targets, or ``None``.
        """
        half = squared.sqrt().unsqueeze(-1)
        lower, upper = estimate - half, estimate + half
        if martingale is None:
            return lower, upper
        half = martingale.squared(self.target_delta).sqrt().unsqueeze(-1)
        mean = martingale.mean
        return torch.maximum(lower, mean - half), torch.minimum(upper, mean + half)


@dataclass(frozen=True)
class RKHSWidth:
    r"""The width with ``|f(x) - mean(x)| <= width * sigma_lambda(x)`` at all times.

    ``width = B + (R / sqrt(lambda)) sqrt(2 log(det(I + K / lambda)^(1/2) / delta))``
    with ``mean(x) = k(x)' (K + lambda I)^-1 y`` and ``sigma_lambda(x)^2 = k(x, x) -
    k(x)' (K + lambda I)^-1 k(x)``, for every fixed ``lambda > 0`` and repeated rows.

    Assumes: ``f`` has norm at most ``B`` in the space of the given kernel (known, not
    refitted), and the noise, given the past, is sub-Gaussian with scale at most ``R``.

    Args:
        bound: ``B``.
        noise_std: ``R``, units of ``y``.
        ridge: ``lambda``, fixed before the first measurement.
        delta: The failure probability.

    Example:
        >>> width = RKHSWidth(bound=1.0, noise_std=0.5, ridge=0.25, delta=0.1)
        >>> round(width(torch.zeros(0, 0)), 3)  # 1 + sqrt(2 log 10)
        3.146

    Source:
        Chowdhury and Gopalan (2017), Theorem 2 and Lemma 3, for any ``lambda`` instead
        of ``1 + eta``, and with the exact determinant instead of the information gain's
        bound; Abbasi-Yadkori (2012), Theorem 3.11.
    """

    bound: float
    noise_std: float
    ridge: float
    delta: float

    def __post_init__(self) -> None:
        in_interval(self.bound, "bound", 0.0, math.inf, closed_low=True)
        in_interval(self.noise_std, "noise_std", 0.0, math.inf, closed_low=True)
        in_interval(self.ridge, "ridge", 0.0, math.inf)
        in_interval(self.delta, "delta", 0.0, 1.0)

    def __call__(self, K: Tensor) -> float:
        r"""The factor of ``sigma_lambda``, from the ``n x n`` Gram matrix."""
        eye = torch.eye(len(K), dtype=K.dtype, device=K.device)
        L = torch.linalg.cholesky(eye + K / self.ridge)
        return float(self.from_information(L.diagonal().log().sum()))

    def from_information(self, information: Tensor) -> Tensor:
        r"""The factor, from ``1/2 log det(I + K / lambda)`` that is known already."""
        root = (2 * (information + math.log(1 / self.delta))).sqrt()
        return self.bound + self.noise_std / math.sqrt(self.ridge) * root

    def interval(
        self, K: Tensor, k: Tensor, diagonal: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""The mean and the half width of the interval at ``T`` points (``T`` each).

        Args:
            K: ``n x n`` Gram matrix of what was measured.
            k: ``n x T``, the kernel between that and the points.
            diagonal: ``T``, ``k(x, x)``.
            y: ``n`` values.
        """
        eye = torch.eye(len(K), dtype=K.dtype, device=K.device)
        L = torch.linalg.cholesky(K + self.ridge * eye)
        a = torch.linalg.solve_triangular(L, k, upper=False)
        b = torch.linalg.solve_triangular(L, y.unsqueeze(-1), upper=False)
        variance = (diagonal - a.square().sum(dim=0)).clamp_min(0.0)
        return (a.mT @ b).squeeze(-1), self(K) * variance.sqrt()
