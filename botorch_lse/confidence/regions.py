r"""Confidence regions: the intersection of all intervals so far."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.model import Model
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import check_columns, real_matrix
from botorch_lse.confidence.schedules import (
    BatchEta,
    BetaSchedule,
    UnionBeta,
    beta_schedule,
)
from botorch_lse.data.classification import refuse_crossed
from botorch_lse.data.pool import Pool
from botorch_lse.functional.scores import interval
from botorch_lse.models.gaussian_process import (
    COPIES,
    MEMORY_BUDGET,
    PosteriorPath,
    checked_budget,
    row_blocks,
)


class EmptyRegionWarning(BotorchWarning):
    r"""The warning that intervals of the function have nothing in common.

    Under a width that claims a confidence this means that an assumption is wrong: most
    often the noise is larger than stated or the kernel too smooth.
    """


@dataclass(frozen=True, eq=False)
class Regions:
    r"""Confidence regions ``C_t`` of ``N`` rows, and the posterior they end in.

    Where the intervals of a row have nothing in common, at least one of them is wrong
    and nobody knows which. From then on the row's last interval alone counts, which
    rests on all of the data; ``contradicted`` says so.

    Args:
        lower: ``N``, the largest lower end so far, units of ``y``; never above
            ``upper``.
        upper: ``N``, the smallest upper end so far.
        mean: ``N``, the last posterior mean.
        sigma: ``N``, the last posterior standard deviation.
        pool: The pool, if the rows came as one.
        contradicted: ``N`` bools: the row's intervals have nothing in common. Default
            none.

    Raises:
        ValueError: If a lower end is above its upper end.
    """

    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor
    pool: Pool | None = None
    contradicted: Tensor = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.contradicted is None:
            none = torch.zeros_like(self.lower, dtype=torch.bool)
            object.__setattr__(self, "contradicted", none)
        refuse_crossed(self.lower, self.upper)

    def intersect(self, mean: Tensor, sigma: Tensor, beta: float) -> Regions:
        r"""The regions after one more interval, ``mean -+ sqrt(beta) sigma``.

        Args:
            mean: ``N`` posterior means.
            sigma: ``N`` posterior standard deviations.
            beta: The squared width of this interval.
        """
        last = interval(mean, sigma, beta)
        lower = torch.maximum(self.lower, last[0])
        upper = torch.minimum(self.upper, last[1])
        contradicted = self.contradicted | (lower > upper)
        lower = torch.where(contradicted, last[0], lower)
        upper = torch.where(contradicted, last[1], upper)
        return Regions(lower, upper, mean, sigma, self.pool, contradicted)

    @classmethod
    def of_interval(
        cls, mean: Tensor, sigma: Tensor, beta: float, pool: Pool | None = None
    ) -> Regions:
        r"""The regions that consist of one interval alone, without earlier ones."""
        return cls(*interval(mean, sigma, beta), mean, sigma, pool)

    @classmethod
    def unknown(cls, mean: Tensor, pool: Pool | None = None) -> Regions:
        r"""Regions that claim nothing: from minus to plus infinity for every row.

        Args:
            mean: ``N``, what to report as the mean.
            pool: The pool, if the rows came as one.
        """
        endless = torch.full_like(mean, torch.inf)
        return cls(-endless, endless, mean, endless, pool)


def path_betas(beta: BetaSchedule, n_rounds: int) -> Tensor:
    r"""The squared widths ``beta(1), ..., beta(n_rounds + 1)``, from the prior on."""
    return torch.tensor([beta(t) for t in range(1, n_rounds + 2)], dtype=torch.float64)


def intersect_path(
    means: Tensor, variances: Tensor, betas: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The ends of ``C_t``: running extremes of all intervals along a path.

    Args:
        means: ``(R + 1) x ... x N``.
        variances: The same shape.
        betas: ``R + 1`` squared widths.

    Returns:
        ``lower`` and ``upper``, ``... x N``, and bools ``... x N``: the intervals have
        nothing in common, so that the ends are those of the last one.

    Source:
        Gotovos et al. (2013), section 3, ``C_t = C_{t-1}`` intersected with ``Q_t``.
        Deviation: what counts where they are disjoint, which the paper leaves open.
    """
    widths = betas.to(means).view(-1, *[1] * (means.ndim - 1))
    lowers, uppers = interval(means, safe_sqrt(variances), widths)
    lower, upper = lowers.amax(dim=0), uppers.amin(dim=0)
    contradicted = lower > upper
    return (
        torch.where(contradicted, lowers[-1], lower),
        torch.where(contradicted, uppers[-1], upper),
        contradicted,
    )


def safe_sqrt(variance: Tensor) -> Tensor:
    r"""The square root of variances, with a finite gradient.

    A variance that rounding made 0 or less is raised to the smallest normal number; its
    gradient is then 0, where that of the plain root would be infinite or nan.
    """
    return variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()


def confidence_regions(
    model: Model,
    pool: Pool | Tensor,
    beta: float | BetaSchedule,
    rounds: Tensor | None = None,
    *,
    memory_budget: int = MEMORY_BUDGET,
) -> Regions:
    r"""Confidence regions of every row along the training data of a model.

    Intersected once before the first round with ``beta(1)``, the prior's interval, and
    once after each complete round ``r`` with ``beta(r + 1)``; never inside a round.

    Args:
        model: A fitted exact GP with one output; its hyper-parameters and transforms
            count as fixed.
        pool: A ``Pool`` or ``N x d`` inputs in the user's space.
        beta: The squared width, a number or a schedule ``t -> beta_t``.
        rounds: ``n`` round numbers of the training observations, not decreasing;
            default each its own.
        memory_budget: Bytes for temporary arrays; rows are done in blocks.

    Raises:
        UnsupportedError: If the model's path is not available exactly, or it is an
            ensemble (its members' regions cannot be intersected).
        ValueError: If ``rounds`` or ``beta`` do not fit, or ``memory_budget`` is
            too small for a row.
        BotorchTensorDimensionError: If ``pool`` has other columns than the model.

    Warns:
        EmptyRegionWarning: If a theorem's widths contradict each other somewhere.

    Source:
        Gotovos et al. (2013), Algorithm 1, line 6; in batches erratum 6
        (papers/gotovos2013/errata.md).
    """
    schedule = beta_schedule(beta)
    path = PosteriorPath.from_model(model, rounds)
    if path.prior.batch_shape:
        raise UnsupportedError(
            "Expected `model` to be one GP, but got an ensemble of "
            f"{tuple(path.prior.batch_shape)}, whose regions cannot be intersected. "
            "Fit one `SingleTaskGP`, or use `LSEAmbiguity`, which averages the score."
        )
    X = pool.X if isinstance(pool, Pool) else real_matrix(pool, "pool")
    check_columns(path.moments, X, "pool")
    betas = path_betas(schedule, path.n_rounds)
    parts, per_row = [], max(path.L.shape[-1], 1)
    checked_budget(memory_budget, COPIES * per_row, "the temporaries of one row")
    with torch.no_grad():
        for rows in row_blocks(X.shape[-2], per_row, memory_budget):
            means, variances = path.moments(X[rows])
            ends = intersect_path(means, variances, betas)
            parts.append((*ends[:2], means[-1], safe_sqrt(variances[-1]), ends[2]))
    lower, upper, mean, sigma, contradicted = map(torch.cat, zip(*parts, strict=True))
    table = pool if isinstance(pool, Pool) else None
    regions = Regions(lower, upper, mean, sigma, table, contradicted)
    if isinstance(schedule, UnionBeta | BatchEta):
        warn_if_empty(regions, f"with {schedule}")
    return regions


def warn_if_empty(
    regions: Regions, claimed: str, else_wrong: str = "the kernel too smooth"
) -> None:
    r"""Warn of the first row whose intervals contradict each other, if there is one.

    Args:
        regions: Of all rows.
        claimed: The claim that is refuted.
        else_wrong: Which assumption beside the noise may be wrong, in words.
    """
    empty = regions.contradicted
    if bool(empty.any()):
        row = int(empty.nonzero()[0])
        lower, upper = float(regions.lower[row]), float(regions.upper[row])
        width = upper - lower
        warnings.warn(
            f"The confidence intervals of {int(empty.sum())} of {empty.numel()} rows "
            f"have nothing in common, first of row {row} (the last one goes from "
            f"{written(lower, width)} to {written(upper, width)}; earlier "
            f"ones do not touch it or each other). They were to hold together "
            f"({claimed}), so an assumption is wrong: most often the noise is larger "
            f"than stated or {else_wrong}.",
            EmptyRegionWarning,
            stacklevel=3,
        )
