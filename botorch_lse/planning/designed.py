r"""Batches that make the largest variance of some targets small.

In up to four steps: solve the relaxed problem (weights instead of counts), round its
solution, add rows greedily, exchange rows. With several outputs a batch is judged by
the output with the largest variance.

The variances that a batch leaves do not depend on the values to come, and are exact on
the posterior covariance ``k``: after a batch with the factor ``L`` of its noisy
covariance, covariances are ``k - w' w`` with ``w = L^-1 k(batch, .)``. The relaxed
problem is convex and can be solved to a proven gap; rounding its weights gives counts.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from botorch_lse.designs import Design, DesignWarning, optimal_design, round_design
from botorch_lse.designs.basis import pivoted_cholesky
from botorch_lse.designs.problem import OwnWeights, ridge_of
from botorch_lse.functional.scores import best_ones
from botorch_lse.models.gaussian_process import (
    extended,
    factorize,
    path_rows,
    row_blocks,
)

logger = logging.getLogger(__name__)

ROUNDINGS = ("exchange", "quota", "sample")
TOLERANCE = 0.1
"""The certified gap of a design that is only rounded: rounding loses more than this."""
FINE = 1e-2
"""The certified gap of a design that is improved afterwards.
From a coarser one the exchange ends now and then in a batch that is a tenth worse."""
SMALL_BATCH = 64
"""The batch size up to which greedy steps are tried too: there rounding costs most."""
ENTRIES = 2**22
"""The size of one table of targets by rows (32 MB): fewer targets for more rows."""
FINALISTS = 64
"""The number of rows whose greedy step is checked on all targets, if not all are."""
TRIED = 16
"""The number of rows tried for removal, and for addition, in one swap; or all."""
SMALL_POOL = 64
"""The size of the largest pool in which every swap is evaluated."""
SHARPNESS = 30.0
"""The power of ``variance / largest`` by which targets weigh when rows are ranked."""
LEADING = 64
"""The number of targets that rank the rows for a swap: others hardly weigh."""
MAX_SWAPS = 60
"""The largest number of swaps, which bounds the time: usually fewer are made."""
PROGRESS = 1e-9
"""The share by which a swap must lower the value: smaller gains are rounding."""
LISTED, SAMPLED, STRIDE = 2**21, 256, 2**16
"""The largest lists of pairs.
About how many pairs are listed; how many targets' pairs say from which variance on; how
many listed pairs are looked at together."""


# --- what a batch is to predict, and what it leaves -----------------------------------


class Covariances(Protocol):
    r"""The interface that the planner asks of a posterior on numbered points.

    First come the ``N`` rows of the pool, which can be measured, then points that can
    only be predicted. A ``PoolPosterior`` answers, and so does ``PointsPosterior`` for
    an acquisition function on any model: both get their batches from the same code.
    """

    @property
    def variance(self) -> Tensor:
        r"""The variance of each point before the batch."""

    @property
    def scale(self) -> float:
        r"""The root of the largest variance that can occur."""

    @property
    def memory_budget(self) -> int:
        r"""The bytes of which a quarter may hold the targets' covariances."""

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances before the batch between points, given by their numbers."""


@dataclass(frozen=True, eq=False)
class PosteriorProblem:
    r"""A planning problem: rows to measure, and variances a batch is to lower.

    Args:
        posterior: On the pool's rows, perhaps followed by points to predict only.
        noise_var: ``N`` noise variances of measurements of the rows, units of ``y``
            squared, at least the model's ``least_noise``, so that batches can be
            factorized.
        targets: The numbers of the ``T`` points whose variances are to be lowered.
        weights: ``T`` factors of the variances, for pairs ``T x T``; ``None``: all 1.
        pairs_factor: ``c`` if ``f(x) - c f(x')`` matters for all ordered pairs of
            ``targets``; ``None`` if the values at ``targets`` themselves matter.
    """

    posterior: Covariances
    noise_var: Tensor
    targets: Tensor
    weights: Tensor | None = None
    pairs_factor: float | None = None

    @property
    def scale(self) -> float:
        r"""The largest weighted variance that can occur.

        Variances that differ by less than a tiny share of it count as equal.
        """
        largest = self.posterior.scale**2
        return largest if self.weights is None else largest * float(self.weights.max())

    def _pairs(self, rows: slice | Tensor, own: Tensor, between: Tensor) -> Tensor:
        r"""The variances of the pairs of some targets, ``between`` them and all."""
        c = self.pairs_factor
        assert c is not None
        pairs = (own[rows, None] + c**2 * own).sub_(2 * c * between)
        return pairs if self.weights is None else pairs.mul_(self.weights[rows])

    @cached_property
    def _leading(self) -> tuple[Tensor, Tensor, Tensor] | None:
        r"""The pairs of largest variance before the batch; ``None`` where all are few.

        Pairs ``i T + j`` by falling variance, the covariances of their members, the
        variances, and after these a bound of those of all other pairs.
        """
        T, own = self.targets.numel(), self.posterior.variance[self.targets]
        if T * T < 4 * LISTED or self.posterior.memory_budget < 100 * LISTED:
            return None
        some = torch.arange(0, T, T // min(T, SAMPLED), device=own.device)
        between = self.posterior.block(self.targets[some], self.targets)
        sample = self._pairs(some, own, between).flatten()
        least, found = sample.topk(len(sample) * LISTED // T**2).values[-1:], []
        for rows in row_blocks(T, T):
            between = self.gram_rows(rows)
            pairs = self._pairs(rows, own, between).flatten()
            at = (pairs > least).nonzero().view(-1)
            found.append((at + rows.start * T, between.flatten()[at], pairs[at]))
        ids, covariance, variance = map(torch.cat, zip(*found, strict=True))
        order = variance.argsort(descending=True)
        return ids[order], covariance[order], torch.cat((variance[order], least))

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all before the batch (``r x T``)."""
        if self._gram is not None:
            return self._gram[rows]
        return self.posterior.block(self.targets[rows], self.targets)

    @cached_property
    def _gram(self) -> Tensor | None:
        r"""The covariances of the targets (``T x T``); ``None`` if memory lacks.

        They are kept because each step of a search over pairs needs them all.
        """
        fits = 8 * self.targets.numel() ** 2 <= self.posterior.memory_budget // 4
        return self.posterior.block(self.targets, self.targets) if fits else None


@dataclass(frozen=True, eq=False)
class BatchPosterior:
    r"""The variances and covariances after a batch, and what they are computed from.

    Args:
        problem: The problem.
        rows: ``q`` rows of the batch, replicates included.
        L: ``q x q``, the factor of their covariance plus noise.
        W: ``q x P``, ``L^-1`` times the batch's covariances with all points.
        variance: ``P`` variances left.
    """

    problem: PosteriorProblem
    rows: Tensor
    L: Tensor
    W: Tensor
    variance: Tensor

    @classmethod
    def of(cls, problem: PosteriorProblem, counts: Tensor) -> BatchPosterior:
        r"""The posterior after the batch ``counts``, computed from the problem alone.

        Not by updates, whose rounding errors would add up over many swaps.
        """
        rows = torch.arange(counts.numel(), device=counts.device)
        rows = rows.repeat_interleave(counts)
        if rows.numel() == 0:
            before = problem.posterior.variance
            L, W = before.new_empty(0, 0), before.new_empty(0, len(before))
            return cls(problem, rows, L, W, before)
        k = problem.posterior.block(rows, slice(None))
        L = factorize(k[:, rows], problem.noise_var[rows])
        W = path_rows(L, k)
        left = problem.posterior.variance - W.square().sum(dim=0)
        return cls(problem, rows, L, W, left.clamp_min(0.0))

    def with_observation(self, row: int) -> BatchPosterior:
        r"""The posterior after one more observation of ``row``, by an update."""
        at = torch.tensor([row], device=self.rows.device)
        root = (self.variance[at] + self.problem.noise_var[at]).sqrt()
        new = self.covariance(at, slice(None)) / root
        L = extended(self.L, self.W[:, at].mT, root.unsqueeze(-1))
        left = (self.variance - new.square().squeeze(0)).clamp_min(0.0)
        rows = torch.cat((self.rows, at))
        return BatchPosterior(self.problem, rows, L, torch.cat((self.W, new)), left)

    @property
    def counts(self) -> Tensor:
        r"""The number of times that each row is in the batch (``N``)."""
        return torch.bincount(self.rows, minlength=self.problem.noise_var.numel())

    def rise_without(self, members: Tensor) -> Tensor:
        r"""The rise of covariances when one observation leaves the batch.

        Without observation ``b`` they rise by ``u_b(x) u_b(x')``. ``u`` is computed
        from the factor of the whole batch, not as ``c / sqrt(noise - variance)``: after
        an exact measurement that difference is rounding.

        Args:
            members: ``g`` positions in ``rows``, each taken out by itself.

        Returns:
            ``u``, ``g x P``.

        Source:
            The inverse of a matrix without one row and column (Rasmussen and Williams
            2006, section 5.4.2, leave-one-out).
        """
        eye = torch.eye(self.rows.numel()).to(self.L)
        inverse = torch.cholesky_solve(eye[:, members], self.L)  # q x g
        own = inverse.gather(0, members.unsqueeze(0)).squeeze(0)
        # C_b^-1 k(b, .) without another solve: k(b, .) = L W.
        return (self.L.mT @ inverse / own.sqrt()).mT @ self.W

    def covariance(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances after the batch between points, given by their numbers."""
        block = self.problem.posterior.block(rows, columns)
        return block - self.W[:, rows].mT @ self.W[:, columns]

    @property
    def n_targets(self) -> int:
        r"""The number of targets: ``T``, or ``T^2`` for pairs."""
        T = self.problem.targets.numel()
        return T if self.problem.pairs_factor is None else T * T

    @cached_property
    def value(self) -> float:
        r"""The largest (weighted) variance that the batch leaves at a target."""
        return float(self.worst(1)[1][0])

    def worst(self, many: int) -> tuple[Tensor, Tensor]:
        r"""The ``many`` targets of largest (weighted) variance, or the first of them.

        A list of pairs may show at least ``LEADING`` of them and not all: who asks for
        more can do with these, and looking at all pairs again takes long.

        Returns:
            Their numbers, and their variances in falling order. A target's number is
            its position in ``targets``, that of a pair ``i T + j``.
        """
        problem = self.problem
        T, c, left = problem.targets.numel(), problem.pairs_factor, self.variance
        own = left[problem.targets]
        if c is None:
            w = problem.weights
            top, ids = (own if w is None else w * own).topk(min(many, T))
            return ids, top
        W = self.W[:, problem.targets]
        if (found := self._worst_listed(many, own, W.mT.contiguous())) is not None:
            return found
        ids = torch.empty(0, dtype=torch.long, device=own.device)
        top = own[:0]
        for rows in row_blocks(T, T):
            C = problem.gram_rows(rows) - W[:, rows].mT @ W
            pairs = problem._pairs(rows, own, C).flatten()
            if top.numel() < many:
                more, at = pairs.topk(min(many, pairs.numel()))
            else:  # as a rule few: sorting thousands of each block takes much longer
                at = (pairs > top[-1]).nonzero().view(-1)
                more = pairs[at]
            joined = torch.cat((top, more))
            top, kept = joined.topk(min(many, len(joined)))
            ids = torch.cat((ids, at + rows.start * T))[kept]
        return ids, top

    def _worst_listed(
        self, many: int, own: Tensor, loadings: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        r"""The ``worst`` pairs, if the listed ones show which they are.

        A batch raises no variance: the rest has at most what it had before. ``own``:
        variances of the targets; ``loadings``: their columns of ``W``, as rows.
        """
        problem, T, c = self.problem, len(own), self.problem.pairs_factor
        if problem._leading is None or c is None:
            return None
        listed, covariance, before = problem._leading
        top, ids = own[:0], listed[:0]
        for start in range(0, len(listed), STRIDE):
            end = min(start + STRIDE, len(listed))
            i, j = listed[start:end] // T, listed[start:end] % T
            C = covariance[start:end] - (loadings[i] * loadings[j]).sum(dim=-1)
            left = own[i] + c**2 * own[j] - 2 * c * C
            if problem.weights is not None:
                left.mul_(problem.weights[i, j])
            top, at = torch.cat((top, left)).topk(min(many, len(top) + len(left)))
            ids = torch.cat((ids, listed[start:end]))[at]
            if len(top) == many and bool(top[-1] >= before[end]):
                return ids, top
        shown = top >= before[-1]
        return (ids[shown], top[shown]) if int(shown.sum()) >= LEADING else None

    def target_covariance(self, ids: Tensor, rows: Tensor | slice) -> Tensor:
        r"""Covariances after the batch of targets ``ids`` with ``rows``.

        They are multiplied by the root of the target's weight.
        """
        return self.at_targets(ids, lambda points: self.covariance(points, rows))

    def at_targets(self, ids: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
        r"""A function of points, extended linearly to targets.

        For a pair the second point's value, times ``c``, is subtracted from the
        first's. The result is multiplied by the root of the target's weight.

        Args:
            ids: Targets, numbered as by ``worst``.
            of: From the numbers of ``p`` points to ``p x k`` values.

        Returns:
            One row per target, ``k`` columns.
        """
        problem = self.problem
        T, c = problem.targets.numel(), problem.pairs_factor
        if c is None:
            C = of(problem.targets[ids])
        else:
            both = torch.cat((ids // T, ids % T))
            members, where = both.unique(return_inverse=True)
            C = of(problem.targets[members])
            C = C[where[: ids.numel()]] - c * C[where[ids.numel() :]]
        if problem.weights is None:
            return C
        return problem.weights.view(-1)[ids].sqrt().unsqueeze(-1) * C


@dataclass(frozen=True, eq=False)
class JointBatchPosterior:
    r"""The posteriors of several outputs after the same batch.

    Args:
        parts: One per output, with equal counts.
    """

    parts: tuple[BatchPosterior, ...]

    @classmethod
    def of(
        cls, problems: Sequence[PosteriorProblem], counts: Tensor
    ) -> JointBatchPosterior:
        r"""The posteriors after the batch ``counts``, one for each problem."""
        return cls(tuple(BatchPosterior.of(problem, counts) for problem in problems))

    def with_observation(self, row: int) -> JointBatchPosterior:
        r"""The posterior after one more observation of ``row``, for every output."""
        parts = tuple(part.with_observation(row) for part in self.parts)
        return JointBatchPosterior(parts)

    @property
    def counts(self) -> Tensor:
        r"""The number of times that each row is in the batch (``N``)."""
        return self.parts[0].counts

    @property
    def value(self) -> float:
        r"""The largest (weighted) variance over all targets and outputs."""
        return max(part.value for part in self.parts)


# --- the relaxed problem: weights on the rows of a pool in place of counts ------------

RESIDUAL = 0.5
"""The variance that features may miss, per unit of the design's tolerance.
As a share of the largest variance of a target: a twentieth at a gap of a tenth. Large
batches leave less and need better features, in proportion to their size from ten on."""
RANK = 150
"""The largest number of features, or twice the batch if that is more.
Of batches beyond ``SMALL_BATCH`` they are as many as the rows: a batch tells no more
directions apart, and on twice as many its worst variance was up to 24 % larger, without
exchange two to three times as large. Of small batches more changed no worst variance
and no F1 score."""
FINEST = 1e-3
"""The smallest gap for whose designs features become more accurate.
With rounding to come, finer ones change nothing any more."""
AT_ONCE = 1024
"""The number of points up to which covariances are computed in one call.
Column by column, a call costs more than its numbers."""
PAIR_SHARE = 0.25
"""The share of an error that features may have: differences have four times as much."""
STEPS = 30
"""The number of steps in the search for the best mixture of outputs' designs."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    r"""The optimal-design problem that belongs to a batch of ``q`` observations.

    ``q`` observations placed by weights ``lam`` leave the variance ``(1 / q) phi'
    (sum lam phi phi' / s2 + I / q)^-1 phi``, where ``phi`` are features whose inner
    products are the posterior covariances (pivoted Cholesky) and ``s2`` the noise.

    Args:
        stated: The arguments of ``optimal_design``, in units of the mean noise.
        unit: The factor from the value of that problem to ``q`` times a (weighted)
            variance, units of ``y`` squared.

    Source:
        Mason et al. (2022), section 5 and Appendix F.1: the design with ``gamma = 1 /
        q`` and columns ``phi / sigma``.
    """

    stated: dict[str, Any]
    unit: float

    @classmethod
    def of(
        cls,
        problem: PosteriorProblem,
        q: int,
        tol: float,
        usable: Tensor | None = None,
        most: int | None = None,
    ) -> Relaxation | None:
        r"""The relaxation of a problem; ``None`` if no target is uncertain.

        Args:
            problem: What a batch is to predict.
            q: The size of the batch.
            tol: The relative gap to which the design will be solved; the features are
                as accurate as that asks for.
            usable: ``N`` bools: the rows that may be measured; default all.
            most: Features at most; default see ``RANK``.
        """
        Phi = features(problem, q, tol, most or max(RANK, 2 * q))
        if Phi.shape[1] == 0:
            return None
        noise: Tensor | None = problem.noise_var
        if bool((problem.noise_var == problem.noise_var[0]).all()):
            unit, noise = problem.noise_var[0], None  # faster on unit noise
        else:
            unit = problem.noise_var.mean()
            noise = problem.noise_var / unit
        Phi, N = Phi / unit.sqrt(), problem.noise_var.numel()
        weights, factor = problem.weights, 1.0
        if weights is not None and bool((weights == weights.view(-1)[0]).all()):
            factor, weights = float(weights.view(-1)[0]), None
        rows = Phi[:N]
        everywhere = usable is None or bool(usable.all())
        are_rows = everywhere and len(Phi) == N
        stated = {
            "X": rows if everywhere else rows[usable],
            "targets": problem.targets if are_rows else Phi[problem.targets],
            "gamma": ridge_of(q, rows, noise),
            "noise_var": noise if everywhere or noise is None else noise[usable],
            "target_weights": weights,
            "pairs_factor": problem.pairs_factor,
        }
        if weights is not None and problem.pairs_factor is not None:
            stated["target_weights"] = OwnWeights(weights)
        return cls(stated, factor * float(unit))

    def solve(self, tol: float, initial: Design | None = None) -> Design:
        r"""The optimal design within ``tol``; with a ``DesignWarning`` if not.

        Its ``lower_bound / q``, times the noise variance where that is the same for all
        rows, is what no batch of ``q`` rows can beat.

        Args:
            tol: The relative gap to reach.
            initial: A design to start from.
        """
        return optimal_design(**self.stated, tol=tol, initial=initial)

    def for_size(self, q: int) -> Relaxation:
        r"""The relaxation for another number of observations, on the same features."""
        gamma = ridge_of(q, self.stated["X"], self.stated["noise_var"])
        return replace(self, stated={**self.stated, "gamma": gamma})

    def nearly(self, tol: float, initial: Design | None = None) -> Design:
        r"""The design of ``solve``, without a warning: a missed gap costs little."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DesignWarning)
            return self.solve(tol, initial)


def features(problem: PosteriorProblem, q: int, tol: float, most: int) -> Tensor:
    r"""Features of all points whose inner products approximate the covariances.

    Features that are left out only lower the norms of a design, so that a proven bound
    of it still holds.

    Args:
        problem: What a batch is to predict.
        q: The size of the batch.
        tol: The relative gap of the design.
        most: Features at most.

    Returns:
        One row per point; no column where no target is uncertain.
    """
    share = RESIDUAL * max(tol, FINEST) * min(1.0, 10 / q)
    posterior, every = problem.posterior, slice(None)
    variance = posterior.variance
    whole = posterior.block(every, every) if len(variance) <= AT_ONCE else None

    def column(i: int) -> Tensor:
        r"""The covariances of all points with the ``i``-th."""
        if whole is not None:
            return whole[:, i]
        return posterior.block(every, slice(i, i + 1)).squeeze(-1)

    tolerance = share * _largest(problem)
    return pivoted_cholesky(variance, column, tolerance, most).Phi


def _largest(problem: PosteriorProblem) -> float:
    r"""The largest variance of a target, of which features may miss a share.

    For differences ``f(x) - f(x')`` it is that of the differences: what two points have
    in common cancels in them.
    """
    own = problem.posterior.variance[problem.targets]
    if problem.pairs_factor != 1.0:
        return float(own.max())
    spreads = (
        own[rows, None] + own - 2 * problem.gram_rows(rows)
        for rows in row_blocks(len(own), len(own))
    )
    return PAIR_SHARE * max(float(spread.max()) for spread in spreads)


def relaxed_counts(
    problems: Sequence[PosteriorProblem],
    q: int,
    usable: Tensor,
    tol: float,
    method: str = "quota",
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""The optimal design of the relaxed problem, rounded to ``q`` observations.

    For several outputs it is the best mixture of their own optimal designs.

    Args:
        problems: One per output.
        q: The size of the batch.
        usable: ``N`` bools: the rows that may be measured.
        tol: The relative gap of the designs.
        method: How to round: ``"quota"``, or ``"sample"``: independent draws.
        generator: The source of randomness of ``"sample"``.

    Returns:
        ``N`` counts that sum to ``q``; zeros if nothing is uncertain or no row usable.
    """
    counts = torch.zeros(len(usable), dtype=torch.long, device=usable.device)
    if not bool(usable.any()):
        return counts
    most = q if q > SMALL_BATCH else None
    all_found = [Relaxation.of(problem, q, tol, usable, most) for problem in problems]
    found = [relaxation for relaxation in all_found if relaxation is not None]
    if not found:
        return counts
    own = [relaxation.nearly(tol).weights for relaxation in found]

    def values(weights: Tensor) -> list[float]:
        r"""The largest variance that a design leaves, times ``q``, for each output."""
        return [r.unit * design_value(r.stated, weights) for r in found]

    weights = mixed_weights(own, values)
    counts[usable] = round_design(weights, q, method, generator=generator).to(counts)
    return counts


def design_value(problem: dict[str, Any], weights: Tensor) -> float:
    r"""The largest (weighted) squared norm of a design.

    Args:
        problem: Arguments of ``optimal_design`` with features, without pairs.
        weights: ``N`` weights.
    """
    Phi, noise = problem["X"], problem.get("noise_var")
    rate = weights if noise is None else weights / noise
    A = (Phi.mT * rate) @ Phi + problem["gamma"] * torch.eye(Phi.shape[1]).to(Phi)
    targets = problem.get("targets")
    rows = Phi if targets is None else targets
    V = rows if rows.ndim == 2 else Phi[rows]
    L = torch.linalg.cholesky(A)
    norms = torch.linalg.solve_triangular(L, V.mT, upper=False).square().sum(dim=0)
    factors = problem.get("target_weights")
    return float((norms if factors is None else factors * norms).max())


def mixed_weights(
    own: Sequence[Tensor], values: Callable[[Tensor], Sequence[float]]
) -> Tensor:
    r"""The mixture of designs whose largest value is about the smallest.

    The value of an output falls as its own optimal design gets a larger share. So the
    output with the largest value gets a larger share until all values are about equal.
    A mixture is not the optimal design for all outputs together, unless their
    covariances are alike.

    Args:
        own: For each output its optimal design, ``N`` weights.
        values: From a design to the value of each output, in common units.

    Returns:
        ``N`` weights.
    """
    if len(own) == 1:
        return own[0]
    designs = torch.stack(list(own))
    share = designs.new_full((len(own),), 1 / len(own))
    best, lowest = designs.mean(dim=0), torch.inf
    for step in range(STEPS):
        mixture = share @ designs
        found = torch.tensor(values(mixture), dtype=designs.dtype)
        if float(found.max()) < lowest:
            best, lowest = mixture, float(found.max())
        # A falling rate, as exponential updates need in order to settle.
        rate = 2 / (1 + step) ** 0.5
        share = torch.softmax(share.log() + rate * found / found.max(), dim=0)
    return best


# --- batches --------------------------------------------------------------------------


def designed_batch(
    problems: Sequence[PosteriorProblem],
    q: int,
    allowed: Tensor,
    *,
    rounding: str = "exchange",
    method: str = "quota",
    tol: float | None = None,
    from_nothing: bool | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""The number of measurements of each row that makes the largest variance small.

    The optimal design of the relaxed problem is rounded to ``q`` observations. Then,
    unless ``rounding`` says otherwise, single observations are swapped for others while
    that helps; a batch built by greedy steps is improved likewise, and the better of
    the two is taken. Replicates are allowed where they are better. Several outputs are
    judged by the one that fares worst.

    Args:
        problems: One per output.
        q: The size of the batch.
        allowed: ``N``, how often each row may be in the batch.
        rounding: ``"exchange"``: as above. ``"quota"``: the rounded design alone, in a
            fraction of the time. ``"sample"``: independent draws from the design.
        method: How the design is rounded before an exchange, ``"quota"`` or
            ``"sample"``.
        tol: The relative gap of the relaxed design; default ``FINE`` before an
            exchange, else ``TOLERANCE``.
        from_nothing: Whether to try greedy steps besides the design; default for
            batches up to ``SMALL_BATCH`` that are improved by exchange.
        generator: The source of randomness of ``"sample"``.

    Returns:
        ``N`` counts that sum to ``q``, or to all that is allowed if that is less.
    """
    allowed = allowed.clamp(0, q)
    q = min(q, int(allowed.sum()))
    if q == 0:
        return torch.zeros_like(allowed)
    is_improved = rounding == "exchange"
    nothing = JointBatchPosterior.of(problems, torch.zeros_like(allowed))
    if q == 1 and is_improved and from_nothing is not False:
        rows = int((allowed > 0).sum())
        if max(part.n_targets for part in nothing.parts) * rows <= ENTRIES:
            return greedy(nothing, 1, allowed).counts  # tries all, so none is better
    method = method if is_improved else rounding
    if tol is None:
        tol = FINE if is_improved else TOLERANCE
    counts = relaxed_counts(problems, q, allowed > 0, tol, method, generator)
    rounded = JointBatchPosterior.of(problems, torch.minimum(counts, allowed))
    # The design knows no limit on repeats: greedy steps replace what exceeds it.
    batches = {"design": greedy(rounded, q, allowed)}
    if from_nothing or (from_nothing is None and is_improved and q <= SMALL_BATCH):
        batches["greedy"] = greedy(nothing, q, allowed)
    if is_improved:
        batches = {k: exchange_pairs(b, allowed) for k, b in batches.items()}
    values = {name: batch.value for name, batch in batches.items()}
    winner = min(values, key=values.__getitem__)  # the design if they tie
    logger.debug("The %s batch won; worst variances: %s.", winner, values)
    return batches[winner].counts


def greedy(start: JointBatchPosterior, q: int, allowed: Tensor) -> JointBatchPosterior:
    r"""Add rows one by one, each the best given those before, to a batch of ``q``.

    Exact where all targets by all rows are at most ``ENTRIES`` numbers; else the step
    is chosen on the targets of largest variance and checked on all for the best rows.

    Args:
        start: What is in the batch already.
        q: The size of the batch.
        allowed: ``N``, how often each row may be in the batch.
    """
    batch = start
    while int(batch.counts.sum()) < q:
        batch = batch.with_observation(_best_addition(batch, batch.counts < allowed))
    return batch


def _best_addition(batch: JointBatchPosterior, free: Tensor) -> int:
    r"""The row whose measurement leaves the smallest largest variance."""
    rows = free.nonzero().squeeze(-1)
    many = max(ENTRIES // rows.numel(), FINALISTS)
    least = _left_after(batch, rows, many)
    if many < max(part.n_targets for part in batch.parts):
        rows = rows[best_ones(-least, FINALISTS)]
        least = _left_after(batch, rows, ENTRIES // FINALISTS)
    # Equal up to rounding: the lowest row, so that every processor takes the same one.
    scale = max(part.problem.scale for part in batch.parts)
    tied = least <= least.min() + 1e-9 * scale
    return int(rows[tied.nonzero()[0, 0]])


def _left_after(batch: JointBatchPosterior, rows: Tensor, many: int) -> Tensor:
    r"""The largest variance that one observation of each row would leave.

    Args:
        batch: The batch so far.
        rows: ``r`` rows that may be added.
        many: How many targets, those of largest variance, to consider.

    Returns:
        ``r`` variances, the largest over targets and outputs.
    """
    outputs = [_left_in_output(part, rows, many) for part in batch.parts]
    return torch.stack(outputs).amax(dim=0)


def _left_in_output(batch: BatchPosterior, rows: Tensor, many: int) -> Tensor:
    problem = batch.problem
    ids, left = batch.worst(min(batch.n_targets, many))
    total = batch.variance[rows] + problem.noise_var[rows]
    parts = []
    for b in row_blocks(rows.numel(), ids.numel()):
        C = batch.target_covariance(ids, rows[b])
        parts.append((left.unsqueeze(-1) - C.square() / total[b]).amax(dim=0))
    return torch.cat(parts)


def exchange_pairs(start: JointBatchPosterior, allowed: Tensor) -> JointBatchPosterior:
    r"""Swap single observations while the largest variance falls.

    Args:
        start: A batch.
        allowed: ``N``, how often each row may be in the batch.

    Source:
        Fedorov (1972), on the rows that the worst targets point to.
    """
    batch, value = start, start.value
    for _ in range(MAX_SWAPS):
        better = _best_swap(batch, allowed)
        if better is None:
            break
        improved = better.value
        if improved >= value * (1 - PROGRESS):
            break
        batch, value = better, improved
    return batch


def _best_swap(
    batch: JointBatchPosterior, allowed: Tensor
) -> JointBatchPosterior | None:
    r"""The batch after the best promising swap, or ``None`` without such a swap."""
    added, removed = _promising(batch, allowed)
    if added.numel() == 0:
        return None
    outputs = [_after_swaps(part, added, removed) for part in batch.parts]
    after = torch.stack(outputs).amax(dim=0)
    after[removed.unsqueeze(-1) == added] = torch.inf  # no swap of a row for itself
    i, j = divmod(int(after.argmin()), added.numel())
    counts = batch.counts.clone()
    counts[removed[i]] -= 1
    counts[added[j]] += 1
    return JointBatchPosterior.of([part.problem for part in batch.parts], counts)


def _after_swaps(batch: BatchPosterior, added: Tensor, removed: Tensor) -> Tensor:
    r"""The largest variances after each swap (``removed x added``).

    A swap changes the covariances by a matrix of rank two: removing an observation adds
    a rank-one term, adding one subtracts a rank-one term.
    """
    noise = batch.problem.noise_var
    many = ENTRIES // (added.numel() * removed.numel())
    ids, left = batch.worst(min(batch.n_targets, many))
    # Without observation g covariances rise by u_g u_g' ...
    first = (batch.rows == removed.unsqueeze(-1)).to(torch.uint8).argmax(dim=-1)
    u = batch.rise_without(first)
    u_out = batch.at_targets(ids, lambda points: u[:, points].mT).unsqueeze(2)
    u_in = u[:, added]
    before = left[:, None, None] + u_out.square()  # t x removed x added
    # ... and with observation x they fall by c_x c_x' / (noise_x + var_x).
    link = batch.target_covariance(ids, added).unsqueeze(1) + u_out * u_in
    total = noise[added] + batch.variance[added] + u_in.square()
    return (before - link.square() / total).amax(dim=0)


def _promising(batch: JointBatchPosterior, allowed: Tensor) -> tuple[Tensor, Tensor]:
    r"""The rows worth adding to a batch, and the rows worth removing from it.

    Ranked by how much an observation of the row lowers the largest variances.
    """
    N = batch.counts.numel()
    free = (batch.counts < allowed).nonzero().squeeze(-1)
    held = batch.counts.nonzero().squeeze(-1)
    if N <= SMALL_POOL:
        return free, held
    gain, largest = torch.zeros_like(batch.parts[0].variance[:N]), batch.value
    for part in batch.parts:
        ids, left = part.worst(LEADING)
        w = (left / largest) ** SHARPNESS if largest > 0 else torch.ones_like(left)
        total = part.variance[:N] + part.problem.noise_var
        C = part.target_covariance(ids, slice(0, N))
        gain += (w.unsqueeze(-1) * C.square()).sum(dim=0) / total
    added = free[gain[free].topk(min(TRIED, free.numel())).indices]
    removed = held[gain[held].topk(min(TRIED, held.numel()), largest=False).indices]
    return added, removed
