r"""The guarantee of regions: several outputs and levels, decided together.

The intervals of all outputs and rows hold together with probability ``1 - delta`` (the
union bound of Theorem 1 counts outputs as well), so that every decision that follows
from them is right up to the accuracies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from botorch.models.multitask import MultiTaskGP
from gpytorch.kernels import IndexKernel
from torch import Tensor

from botorch_lse.confidence import UnionBeta
from botorch_lse.data.classification import Classification
from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    GaussianProcess,
    Region,
    Strategy,
)
from research.benchmark.engines import over_seeds
from research.benchmark.guarantee import (
    COLUMNS,
    End,
    Outcome,
    ScaledBeta,
    outcome,
    power_report,
)
from research.benchmark.registry import Options, entry
from research.papers.problems import gp_sample, matern_prior
from research.report import Report

DELTA, NOISE, SIZE, LIMIT = 0.1, 0.1, 8, 160
EPSILON = 0.2
SCALES = ((0.25, 0.25), (0.4, 0.2))
"""Lengthscales of the two outputs."""
CORRELATION = -0.8
"""Of the two outputs where they are drawn together, both with the first lengthscales.
"""

NOTES = (
    f"Two outputs, independent draws of zero-mean Gaussian processes of unit variance "
    f"(Matern-5/2) on a grid of {SIZE} x {SIZE} rows, exact hyper-parameters, noise "
    f"standard deviation {NOISE:g}; run k uses the draws 2 k and 2 k + 1.",
    f"epsilon = {EPSILON:g} in each output, delta = {DELTA:g}. A run is wrong if any "
    "decided row has a side that no values within epsilon of the true ones have. "
    "Batches of 8 by the default rule; a run ends when all rows are decided or after "
    f"{LIMIT} measurements.",
    "'per row' has a level that rises from -0.5 to 0.5 along the first input. In "
    "'correlated' both outputs have the first lengthscales and a correlation of "
    f"{CORRELATION:g}, and the strategy knows that process.",
)


@dataclass(frozen=True)
class Instance:
    r"""Two functions on a pool.

    Args:
        pool: The rows.
        priors: The process of each output.
        truth: ``N x 2`` true values.
        seed: The number of the run.
        together: The process of both outputs where they are correlated.
    """

    pool: Pool
    priors: tuple[GPPrior, ...]
    truth: Tensor
    seed: int
    together: MultiTaskGP | None = None

    @classmethod
    def of(cls, seed: int, size: int = SIZE) -> Instance:
        r"""The two draws of a run."""
        drawn = [gp_sample(2 * seed + j, size, s) for j, s in enumerate(SCALES)]
        truth = torch.stack([values for _, _, values in drawn], dim=-1)
        return cls(drawn[0][0], tuple(prior for _, prior, _ in drawn), truth, seed)

    @classmethod
    def correlated(cls, seed: int, size: int = SIZE) -> Instance:
        r"""Two draws, mixed so that they are correlated."""
        pool, _, first = gp_sample(2 * seed, size, SCALES[0])
        _, _, other = gp_sample(2 * seed + 1, size, SCALES[0])
        second = CORRELATION * first + (1 - CORRELATION**2) ** 0.5 * other
        truth = torch.stack((first, second), dim=-1)
        return cls(pool, (), truth, seed, correlated_model())


def correlated_model() -> MultiTaskGP:
    r"""The process from which correlated outputs are drawn."""
    X = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    kernel = matern_prior(SCALES[0]).covar_module
    kernel.active_dims = torch.arange(2)
    model = MultiTaskGP(
        X, torch.zeros(2, 1).double(), 2, covar_module=kernel, outcome_transform=None
    )
    root = torch.linalg.cholesky(torch.tensor([[1.0, CORRELATION], [CORRELATION, 1.0]]))
    tasks = IndexKernel(num_tasks=2, rank=2, active_dims=[2]).double()
    # Nothing but what the factor says: GPyTorch keeps these variances above 0.
    tasks.initialize(covar_factor=root.double(), var=torch.full((2,), 1e-12).double())
    model.covar_module = kernel * tasks
    return model


Make = Callable[[Instance], Region]

REGIONS: dict[str, Make] = {
    "and": lambda _: Above(0.0, EPSILON) & Below(0.5, EPSILON, 1),
    "or": lambda _: Above(0.7, EPSILON) | Above(0.7, EPSILON, 1),
    "band": lambda _: Between(-0.5, 0.5, EPSILON),
    "per row": lambda i: Above(i.pool.X[:, 0] - 0.5, EPSILON) & Below(0.7, EPSILON, 1),
    "correlated": lambda _: Above(0.0, EPSILON) & Below(0.5, EPSILON, 1),
}


@entry(
    "guarantee", "regions", "Regions of two outputs: and, or, a band, a level by row"
)
def guarantee_regions(options: Options) -> Report:
    r"""Each kind of region, with the widths of Theorem 1 over all outputs."""

    def outcomes(divisor: float) -> list[Outcome]:
        return [simulate(name, options, divisor) for name in REGIONS]

    return power_report("guarantee regions", NOTES, COLUMNS, outcomes, options)


def build(name: str, instance: Instance, divisor: float) -> Strategy:
    r"""The strategy for a region, its widths divided by a number."""
    goal = REGIONS[name](instance)
    m = goal.n_outputs
    beta = None
    if divisor != 1.0:
        beta = ScaledBeta(UnionBeta(goal.n_claims(len(instance.pool)), DELTA), divisor)
    return Strategy(
        instance.pool,
        goal,
        model=GaussianProcess(
            instance.together or instance.priors[:m], noise_std=NOISE
        ),
        batch_size=8,
        delta=DELTA,
        beta=beta,
        max_observations=LIMIT,
    )


def is_wrong(answer: Classification, goal: Region, truth: Tensor) -> bool:
    r"""Whether some decided row has a side that no values near the true ones have.

    Values near are the true ones, and those moved by the accuracy in any output.
    """
    m = goal.n_outputs
    could = [torch.zeros(len(truth), dtype=torch.bool) for _ in range(2)]
    for signs in itertools.product((-1, 0, 1), repeat=m):
        moved = truth[:, :m] + EPSILON * torch.tensor(signs)
        inside = sides_of(goal, moved)
        could = [could[0] | ~inside, could[1] | inside]
    return bool(((answer.above & ~could[1]) | (answer.below & ~could[0])).any())


def sides_of(goal: Region, values: Tensor) -> Tensor:
    r"""``N`` bools: which of ``N x m`` values are in the region, by definition."""
    columns: Sequence[Tensor] = values.unbind(dim=-1)
    is_above = {leaf: columns[int(leaf.output)] > leaf.levels for leaf in goal.leaves}
    return goal.class_of(is_above)


def simulate(
    name: str,
    options: Options,
    divisor: float,
    make: Callable[[int], Instance] | None = None,
) -> Outcome:
    r"""Run a region on the instances ``0, ..., runs - 1`` until it stops."""
    own = Instance.correlated if name == "correlated" else Instance.of
    run = partial(_end_of, name, make or partial(own, size=SIZE), divisor)
    return outcome((name,), over_seeds(run, options, name), DELTA)


def _end_of(
    name: str, make: Callable[[int], Instance], divisor: float, seed: int
) -> End:
    instance = make(seed)
    strategy = build(name, instance, divisor)
    m = strategy.n_outputs
    state, noise = strategy.init(seed), torch.Generator().manual_seed(seed)
    while not state.is_done:
        batch = strategy.ask(state)
        drawn = torch.randn(len(batch), m, generator=noise, dtype=torch.float64)
        y = instance.truth[batch.order, :m] + NOISE * drawn
        state = strategy.tell(state, batch.observe(y.squeeze(-1) if m == 1 else y))
    answer = state.classification
    wrong = is_wrong(answer, REGIONS[name](instance), instance.truth)
    return End.of(answer, wrong, len(state.observations))
