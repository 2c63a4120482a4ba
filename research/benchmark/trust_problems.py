r"""Functions on which a learnt model is put to the test.

Hidden ones have regions above the level that few measurements are likely to miss. Easy
ones cross the level in plain sight; they show what caution costs. Inputs are what they
are in the source, the noise and the accuracy are a share of the function's range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from botorch.test_functions.sensitivity_analysis import Ishigami
from botorch.test_functions.synthetic import Branin, Hartmann
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.datasets import bathymetry
from botorch_lse.models.gaussian_process import factorize
from research.papers.problems import NUGGET, grid

STATIONARY, NON_STATIONARY, EASY = (
    "hidden, stationary",
    "hidden, non-stationary",
    "easy",
)
KINDS = (STATIONARY, NON_STATIONARY, EASY)
NOISE, ACCURACY = 0.02, 2.0
"""The noise's standard deviation, as a share of the range of the function, and the
accuracy, in such standard deviations: with one of them hardly any of the easy functions
is decided within 300 measurements, and what is not decided shows no price."""
SIDE, CHART_STEP, FAULT_BLOCK = 21, 4, 24
"""Points per side of a grid in two dimensions; every fourth cell of the sea bed in both
directions, and means of 24 x 24 cells of the fault. Both are rough: on twice as many
rows LSE does not decide all of them within the budget."""


@dataclass(frozen=True, eq=False)
class Instance:
    r"""One function on a pool, with a level.

    Args:
        pool: ``N`` rows.
        truth: ``N`` values, units of ``y``.
        threshold: The level.
        noise_std: Standard deviation of one measurement's noise.
        epsilon: How far from the level a row may be on the wrong side.
    """

    pool: Pool
    truth: Tensor
    threshold: float
    noise_std: float
    epsilon: float

    @property
    def clearly_above(self) -> Tensor:
        r"""``N`` bools: the region that must be found."""
        return self.truth > self.threshold + self.epsilon

    @property
    def clearly_below(self) -> Tensor:
        r"""``N`` bools: the rows that must not be called above."""
        return self.truth < self.threshold - self.epsilon


@dataclass(frozen=True)
class Function:
    r"""A function by name.

    Args:
        name: Its name.
        kind: One of ``KINDS``. Stationary ones vary about as fast wherever they vary,
            others are quiet in one place and fast in another, or jump.
        make: From a seed to the instance; most are the same for all seeds.
    """

    name: str
    kind: str
    make: Callable[[int], Instance]


def instance_of(X: Tensor, truth: Tensor, threshold: float) -> Instance:
    r"""The instance with noise and accuracy that suit the range of the values.

    Args:
        X: ``N x d``.
        truth: ``N`` values.
        threshold: The level.
    """
    noise = NOISE * float(truth.max() - truth.min())
    return Instance(Pool(X), truth, threshold, noise, ACCURACY * noise)


@lru_cache(maxsize=16)
def unit_points(d: int, n: int | None = None) -> Tensor:
    r"""``N x d`` points of the unit cube: a grid, from 3-D on Sobol points.

    Args:
        d: Inputs.
        n: Points, in 2-D a square number; ``None``: as many as a learnt model decides
            within the budget.
    """
    if n is None:
        n = {1: 200, 2: SIDE**2}.get(d, min(100 * (d + 1), 600))
    if d == 1:
        return torch.linspace(0.0, 1.0, n, dtype=torch.float64).unsqueeze(-1)
    if d == 2:
        return grid(math.isqrt(n))
    engine = torch.quasirandom.SobolEngine(d, scramble=True, seed=d)
    return engine.draw(n).double()


# --- hidden regions -------------------------------------------------------------------


def bumps(X: Tensor, centres: list[list[float]], width: float) -> Tensor:
    r"""A sum of Gaussian bumps of height 1: ``N x d`` points to ``N``."""
    squares = torch.cdist(X, torch.tensor(centres, dtype=X.dtype)).square()
    return (-squares / (2 * width**2)).exp().sum(dim=-1)


def waves(X: Tensor, frequency: float) -> Tensor:
    r"""A product of cosines, between -1 and 1: ``N x d`` points to ``N``."""
    return (2 * math.pi * frequency * X).cos().prod(dim=-1)


def ridge(X: Tensor) -> Tensor:
    r"""A ridge of height 1 across the cube, oblique to the inputs."""
    across = (X - 0.5) @ torch.tensor([1.0, 0.7, -0.5], dtype=X.dtype)
    return (-(across - 0.45).square() / (2 * 0.1**2)).exp()


def plateau(X: Tensor) -> Tensor:
    r"""A ball of height 1 with a smooth rim, off the centre of the cube."""
    radius = (X - 0.65).norm(dim=-1)
    return ((0.45 - radius) / 0.06).sigmoid()


def quiet_and_busy(X: Tensor) -> Tensor:
    r"""A gentle slope on most of the square, fast waves on the rest of it."""
    is_busy = ((X[:, 0] - 0.62) / 0.03).sigmoid()
    return 0.15 * X[:, 1] + is_busy * waves(X, 2.5)


def chirp(X: Tensor) -> Tensor:
    r"""A wave that is slow on the left and fast on the right."""
    x = X[:, 0]
    return (0.1 + 0.9 * x**2) * (2 * math.pi * (0.4 * x + 5 * x**4)).sin()


def needle(X: Tensor) -> Tensor:
    r"""Slow waves below the level, and one narrow bump that reaches it."""
    return 0.3 * waves(X, 0.5) + 1.4 * bumps(X, [[0.72, 0.33]], 0.09)


def step(X: Tensor) -> Tensor:
    r"""A slope, and a box on which the function jumps up."""
    inside = (X[:, 0] > 0.55) & (X[:, 1] > 0.45) & (X[:, 2] < 0.4)
    return 0.3 * X.mean(dim=-1) + inside.double()


def islands(X: Tensor) -> Tensor:
    r"""Small flat islands with steep coasts in a sea that is flat as well."""
    centres = torch.tensor([[0.2, 0.75], [0.55, 0.3], [0.85, 0.8]], dtype=X.dtype)
    radius = torch.cdist(X, centres).amin(dim=-1)
    return ((0.1 - radius) / 0.01).sigmoid()


def himmelblau(X: Tensor) -> Tensor:
    r"""Himmelblau's function on ``[-5, 5]^2``, from the unit square."""
    x, y = (10 * X - 5).unbind(dim=-1)
    return (x.square() + y - 11).square() + (x + y.square() - 7).square()


def log_himmelblau(X: Tensor) -> Tensor:
    r"""Minus the logarithm of Himmelblau's function: four minima become hills.

    Without it the edges, where it grows by powers, leave no noise that suits all.
    """
    return -himmelblau(X).log1p()


def log_branin(X: Tensor) -> Tensor:
    r"""Minus the logarithm of Branin's function: three minima become hills."""
    return -published(Branin(), X).log1p()


def hartmann(X: Tensor) -> Tensor:
    r"""Hartmann's function of six inputs, its sign such that hills are up."""
    return -published(Hartmann(6), X)


def ishigami(X: Tensor) -> Tensor:
    r"""Ishigami's function of three inputs."""
    return published(Ishigami(), X)


def published(function: Any, X: Tensor) -> Tensor:
    r"""A test function of BoTorch at points of the unit cube: ``N x d`` to ``N``."""
    low, high = function.bounds.double()
    values: Tensor = function.evaluate_true(low + (high - low) * X)
    return values


def hidden(d: int, f: Callable[[Tensor], Tensor], level: float, seed: int) -> Instance:
    r"""The instance of a function of points of the unit cube, whatever the seed."""
    X = unit_points(d)
    return instance_of(X, f(X), level)


# --- easy ones ------------------------------------------------------------------------

QUANTILE = 0.6
"""Rows below the level of easy functions, as a share."""


def at_quantile(X: Tensor, truth: Tensor) -> Instance:
    r"""The instance with the level in the middle of the values."""
    return instance_of(X, truth, float(truth.quantile(QUANTILE)))


def drawn(
    d: int, kernel: Callable[[], Kernel], lengthscale: float, seed: int
) -> Instance:
    r"""A draw of a Gaussian process, another one for each seed."""
    X, process = unit_points(d), kernel().double()
    process.lengthscale = lengthscale
    return at_quantile(X, draw(process, X, seed))


def draw(process: Kernel, X: Tensor, seed: int) -> Tensor:
    r"""A draw of a Gaussian process without mean at ``N x d`` points: ``N`` values."""
    with torch.no_grad():
        covariance = process(X).to_dense()
    factor = factorize(covariance, torch.full((len(X),), NUGGET, dtype=X.dtype))
    generator = torch.Generator().manual_seed(2 * seed)
    return factor @ torch.randn(len(X), generator=generator, dtype=X.dtype)


def smooth(d: int, f: Callable[[Tensor], Tensor], seed: int) -> Instance:
    r"""The instance of a smooth function, whatever the seed."""
    X = unit_points(d)
    return at_quantile(X, f(X))


def plane(X: Tensor) -> Tensor:
    r"""A plane that is tilted in both directions."""
    return X @ torch.tensor([1.0, 0.6], dtype=X.dtype)


def sines(X: Tensor) -> Tensor:
    r"""A sum of sines, one per input."""
    return (4.0 * X + torch.arange(X.shape[-1])).sin().sum(dim=-1)


def sea_cells(step: int) -> tuple[Tensor, Tensor]:
    r"""The places, km, and depths, m, of a real sea bed.

    Args:
        step: Every so many cells of the chart, in both directions.
    """
    chart = bathymetry()
    table = chart.pool.table
    assert table is not None  # ``bathymetry`` gives one
    kept = (table["row"] % step == 0) & (table["column"] % step == 0)
    rows = torch.from_numpy(kept.to_numpy().copy()).nonzero().view(-1)
    return chart.pool.X[rows], chart.depth[rows]


def fault_blocks(block: int) -> tuple[Tensor, Tensor]:
    r"""The places, in blocks, and heights, m, of real hills at a fault.

    Args:
        block: Heights are means over ``block x block`` cells of the chart.
    """
    from matplotlib.cbook import get_sample_data

    found: Any = get_sample_data("jacksboro_fault_dem.npz")
    with found:
        height = torch.from_numpy(found["elevation"].astype(float))
    n_rows, n_columns = (n // block for n in height.shape)
    kept = height[: n_rows * block, : n_columns * block]
    blocks = kept.reshape(n_rows, block, n_columns, block)
    X = torch.cartesian_prod(torch.arange(n_rows), torch.arange(n_columns)).double()
    return X, blocks.mean(dim=(1, 3)).view(-1)


@lru_cache(maxsize=1)
def sea_bed(seed: int = 0) -> Instance:
    r"""The depth of a real sea bed, and the level 150 m."""
    X, depth = sea_cells(CHART_STEP)
    return Instance(Pool(X), depth, 150.0, 5.0, 50.0)


@lru_cache(maxsize=1)
def fault(seed: int = 0) -> Instance:
    r"""The height of real hills at a fault, and the level 600 m."""
    X, height = fault_blocks(FAULT_BLOCK)
    return Instance(Pool(X), height, 600.0, 15.0, 90.0)


# --- all of them ----------------------------------------------------------------------

_PLACES = {
    1: [[0.67]],
    2: [[0.2, 0.7], [0.75, 0.25]],
    4: [[0.2, 0.3, 0.7, 0.6], [0.75, 0.7, 0.3, 0.35]],
}
_HIDDEN: tuple[tuple[str, str, int, Callable[[Tensor], Tensor], float], ...] = (
    ("bump", STATIONARY, 1, partial(bumps, centres=_PLACES[1], width=0.035), 0.5),
    ("bumps, 2-D", STATIONARY, 2, partial(bumps, centres=_PLACES[2], width=0.1), 0.5),
    ("bumps, 4-D", STATIONARY, 4, partial(bumps, centres=_PLACES[4], width=0.25), 0.5),
    ("ridge", STATIONARY, 3, ridge, 0.5),
    ("plateau", STATIONARY, 5, plateau, 0.5),
    ("Hartmann", STATIONARY, 6, hartmann, 0.5),
    ("Branin", STATIONARY, 2, log_branin, -math.log(6.0)),
    ("Himmelblau", STATIONARY, 2, log_himmelblau, -math.log(21.0)),
    ("Ishigami", STATIONARY, 3, ishigami, 8.0),
    ("quiet and busy", NON_STATIONARY, 2, quiet_and_busy, 0.6),
    ("chirp", NON_STATIONARY, 1, chirp, 0.5),
    ("needle", NON_STATIONARY, 2, needle, 0.6),
    ("step", NON_STATIONARY, 3, step, 0.6),
    ("islands", NON_STATIONARY, 2, islands, 0.5),
)
_EASY: dict[str, Callable[[int], Instance]] = {
    "draw, Matern-5/2, 1-D": partial(drawn, 1, MaternKernel, 0.15),
    "draw, RBF, 2-D": partial(drawn, 2, RBFKernel, 0.25),
    "draw, Matern-5/2, 2-D": partial(drawn, 2, MaternKernel, 0.4),
    "draw, Matern-3/2, 2-D": partial(drawn, 2, partial(MaternKernel, 1.5), 0.5),
    "draw, RBF, 3-D": partial(drawn, 3, RBFKernel, 0.5),
    "plane": partial(smooth, 2, plane),
    "sines": partial(smooth, 3, sines),
    "Branin, middle": partial(smooth, 2, log_branin),
    "sea bed": sea_bed,
    "fault": fault,
}
FUNCTIONS: dict[str, Function] = {
    **{
        name: Function(name, kind, partial(hidden, d, f, level))
        for name, kind, d, f, level in _HIDDEN
    },
    **{name: Function(name, EASY, make) for name, make in _EASY.items()},
}
"""All functions by name."""
