r"""Problems on which the rules that choose rows are compared.

Some have served to choose defaults, so that a comparison on them flatters what was
chosen; results are reported on the others. All are finite tables with a truth: a grid,
Sobol points, or a table from the world. A share of the rows is above the level, and the
noise is a share of the range of the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from botorch.test_functions.synthetic import (
    Hartmann,
    Levy,
    Rosenbrock,
    SixHumpCamel,
    StyblinskiTang,
)
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.models.fitted import fit_single_task_gp
from botorch_lse.models.gaussian_process import GPPrior
from research.benchmark.trust_problems import (
    draw,
    fault_blocks,
    hartmann,
    ishigami,
    log_branin,
    log_himmelblau,
    published,
    sea_cells,
    unit_points,
)
from research.papers.bogunovic2016.experiment import SVM_FILE
from research.papers.bogunovic2016.problems import svm_problem
from research.papers.kone2025.problems import ENERGY_FILE

ROWS = 29**2
"""Rows of a function's pool: a square, for the grids in two dimensions."""
FIT_ROWS = 400
"""Rows, drawn at random, whose true values the fixed model is fitted to. All of them
would take many times as long and hardly change the lengthscales."""
FIT_NOISE = 1e-3
"""The noise of these values for the fit, as a share of their range: it is the least
that the comparison has, and keeps the fit of smooth functions well-conditioned."""
SEA_STEP, BLOCK = 2, 12
"""Every second cell of the sea bed in both directions, means of 12 x 12 cells of the
fault: 1,235 and 924 rows."""


@dataclass(frozen=True, eq=False)
class Case:
    r"""One problem for one seed.

    Args:
        pool: ``N`` rows.
        truth: ``N`` values, units of ``y``.
        threshold: The level, which no value equals.
        process: The process of which the truth was drawn, if it was.
    """

    pool: Pool
    truth: Tensor
    threshold: float
    process: Kernel | None = None

    @property
    def above(self) -> Tensor:
        r"""``N`` bools: the level set."""
        return self.truth > self.threshold

    @property
    def range(self) -> float:
        r"""The range of the values."""
        return float(self.truth.max() - self.truth.min())

    @cached_property
    def prior(self) -> GPPrior:
        r"""The process with hyper-parameters fixed: the true one, or a very good fit.

        All methods get the same one, so that they differ in the rows they choose alone.
        """
        if self.process is not None:
            return GPPrior.from_kernel(self.process)
        generator = torch.Generator().manual_seed(0)
        rows = torch.randperm(len(self.truth), generator=generator)[:FIT_ROWS]
        X, y = self.pool.X[rows], self.truth[rows].unsqueeze(-1)
        noise = torch.full_like(y, (FIT_NOISE * self.range) ** 2)
        bounds = torch.stack((self.pool.X.amin(dim=0), self.pool.X.amax(dim=0)))
        return GPPrior.from_model(fit_single_task_gp(X, y, noise, bounds))


@dataclass(frozen=True)
class Problem:
    r"""A problem by name.

    Args:
        make: From a seed and the file, if there is one, to the case.
        file: The name of a file with data that are not part of the package.
    """

    make: Callable[[int, Path | None], Case]
    file: str | None = None

    def case(self, seed: int, data: Path | None) -> Case:
        r"""The case of a seed.

        Args:
            seed: Of what is drawn; most problems are the same for all seeds.
            data: The folder that holds the file.
        """
        path = None if data is None or self.file is None else data / self.file
        return self.make(seed, path)

    def is_there(self, data: Path | None) -> bool:
        r"""Whether the file, if one is needed, is in the folder."""
        return self.file is None or (data is not None and (data / self.file).is_file())


def level_for(truth: Tensor, share: float) -> float:
    r"""The level above which a share of the values lies, between two of them.

    A value on the level itself would be a coin toss for every method.

    Args:
        truth: ``N`` values.
        share: In (0, 1); values that are alike stay on one side.
    """
    ordered = truth.unique()
    below = truth.sort().values[round((1 - share) * len(truth)) - 1]
    at = int(torch.searchsorted(ordered, below))
    return float((ordered[at] + ordered[at + 1]) / 2)


@lru_cache(maxsize=64)
def smooth(f: Callable[[Tensor], Tensor], d: int, share: float) -> Case:
    r"""The case of a function of points of the unit cube, made once."""
    X = unit_points(d, ROWS)
    truth = f(X)
    return Case(Pool(X), truth, level_for(truth, share))


def function(f: Callable[[Tensor], Tensor], d: int, share: float) -> Problem:
    r"""The problem of a function of points of the unit cube.

    Args:
        f: From ``N x d`` points to ``N`` values, large where the region is.
        d: Inputs.
        share: Of the rows that are above the level.
    """

    def make(seed: int, path: Path | None) -> Case:
        return smooth(f, d, share)

    return Problem(make)


def sample(
    kernel: Callable[[], Kernel], d: int, lengthscale: float, share: float
) -> Problem:
    r"""The problem of draws of a Gaussian process, another one for each seed.

    Args:
        kernel: Makes the kernel, of variance 1.
        d: Inputs.
        lengthscale: In sides of the cube.
        share: Of the rows that are above the level.
    """

    def make(seed: int, path: Path | None) -> Case:
        X, process = unit_points(d, ROWS), kernel().double()
        process.lengthscale = lengthscale
        truth = draw(process, X, seed)
        return Case(Pool(X), truth, level_for(truth, share), process)

    return Problem(make)


def table(
    read: Callable[[Path | None], tuple[Tensor, Tensor]],
    share: float,
    file: str | None = None,
) -> Problem:
    r"""The problem of a table from the world, read once.

    Args:
        read: From the path of the file to ``N x d`` inputs and ``N`` values.
        share: Of the rows that are above the level.
        file: See ``Problem``.
    """

    @lru_cache(maxsize=1)
    def read_case(path: Path | None) -> Case:
        X, truth = read(path)
        return Case(Pool(X), truth, level_for(truth, share))

    def make(seed: int, path: Path | None) -> Case:
        return read_case(path)

    return Problem(make, file)


# --- functions of points of the unit cube ---------------------------------------------


def normal(X: Tensor, std: float) -> Tensor:
    r"""Points of the unit cube as normal inputs; its faces are 3.5 deviations off."""
    tail = 0.5 * math.erfc(3.5 / math.sqrt(2))
    return std * torch.special.ndtri(tail + (1 - 2 * tail) * X)


def four_branch(X: Tensor) -> Tensor:
    r"""Minus the series system with four branches, inputs N(0, 1.75^2).

    Source:
        Echard et al. (2011), with ``k = 6``; there the inputs are standard normal, and
        of a thousand rows four or five are beyond the level.
    """
    x, y = normal(X, 1.75).unbind(dim=-1)
    curve, diagonal = 3 + 0.1 * (x - y).square(), (x + y) / math.sqrt(2)
    line = 6 / math.sqrt(2)
    branches = (curve - diagonal, curve + diagonal, x - y + line, y - x + line)
    return -torch.stack(branches).amin(dim=0)


def modified_rastrigin(X: Tensor) -> Tensor:
    r"""Minus the modified Rastrigin function, standard normal inputs: many islands.

    Source:
        Echard et al. (2011).
    """
    u = normal(X, 1.0)
    return (u.square() - 5 * (2 * math.pi * u).cos()).sum(dim=-1) - 10


def camel(X: Tensor) -> Tensor:
    r"""Minus the logarithm of the six-hump camel function, from its least value."""
    return -(published(SixHumpCamel(), X) + 1.0316285).log1p()


def hartmann_3d(X: Tensor) -> Tensor:
    r"""Hartmann's function of three inputs, its sign such that hills are up."""
    return -published(Hartmann(3), X)


def levy(X: Tensor) -> Tensor:
    r"""Minus the logarithm of Levy's function: ripples around one hill."""
    return -published(Levy(X.shape[-1]), X).log1p()


def rosenbrock(X: Tensor) -> Tensor:
    r"""Minus the logarithm of Rosenbrock's function: a curved ridge."""
    return -published(Rosenbrock(X.shape[-1]), X).log1p()


def friedman(X: Tensor) -> Tensor:
    r"""Friedman's function of five inputs.

    Source:
        Friedman (1991), Multivariate adaptive regression splines.
    """
    a, b, c, d, e = X.unbind(dim=-1)
    waves = 10 * (math.pi * a * b).sin()
    return waves + 20 * (c - 0.5).square() + 10 * d + 5 * e


def scaled(X: Tensor, *bounds: tuple[float, float]) -> tuple[Tensor, ...]:
    r"""The columns of points of the unit cube in units of their own."""
    low, high = torch.tensor(bounds, dtype=X.dtype).unbind(dim=-1)
    return (low + (high - low) * X).unbind(dim=-1)


def circuit(X: Tensor) -> Tensor:
    r"""The midpoint voltage of a push-pull circuit without output transformer.

    Source:
        Ben-Ari and Steinberg (2007), the OTL circuit: resistances in kilo-ohms, the
        current gain last.
    """
    b1, b2, f, c1, c2, gain = scaled(
        X, (50, 150), (25, 70), (0.5, 3), (1.2, 2.5), (0.25, 1.2), (50, 300)
    )
    base, load = 12 * b2 / (b1 + b2), gain * (c2 + 9)
    total = load + f
    return ((base + 0.74) * load + 11.35 * f + 0.74 * f * load / c1) / total


def piston(X: Tensor) -> Tensor:
    r"""The seconds that a piston takes for one cycle.

    Source:
        Kenett and Zacks (1998); Ben-Ari and Steinberg (2007): weight,
        surface, gas volume, spring, pressure, two temperatures.
    """
    M, S, V0, k, P0, Ta, T0 = scaled(
        X,
        (30, 60),
        (0.005, 0.02),
        (0.002, 0.01),
        (1000, 5000),
        (90000, 110000),
        (290, 296),
        (340, 360),
    )
    A = P0 * S + 19.62 * M - k * V0 / S
    gas = P0 * V0 * Ta / T0
    V = S / (2 * k) * ((A.square() + 4 * k * gas).sqrt() - A)
    return 2 * math.pi * (M / (k + S.square() * gas / V.square())).sqrt()


def borehole(X: Tensor) -> Tensor:
    r"""The flow of water through a borehole, cubic metres per year.

    Source:
        Harper and Gupta (1983); Morris et al. (1993): two radii, transmissivity and
        head of the upper aquifer, of the lower one, length, conductivity.
    """
    rw, r, Tu, Hu, Tl, Hl, L, Kw = scaled(
        X,
        (0.05, 0.15),
        (100, 50000),
        (63070, 115600),
        (990, 1110),
        (63.1, 116),
        (700, 820),
        (1120, 1680),
        (9855, 12045),
    )
    ratio = (r / rw).log()
    resistance = 1 + 2 * L * Tu / (ratio * rw.square() * Kw) + Tu / Tl
    return 2 * math.pi * Tu * (Hu - Hl) / (ratio * resistance)


def currin(X: Tensor) -> Tensor:
    r"""An exponential function of two inputs with a steep edge where the second is 0.

    Source:
        Currin, Mitchell, Morris and Ylvisaker (1988).
    """
    a, b = X.unbind(dim=-1)
    top = 2300 * a**3 + 1900 * a**2 + 2092 * a + 60
    return (1 - (-0.5 / b).exp()) * top / (100 * a**3 + 500 * a**2 + 4 * a + 20)


def curved(X: Tensor) -> Tensor:
    r"""A highly curved function of three inputs, its sign such that hills are up.

    Source:
        Dette and Pepelyshev (2010).
    """
    a, b, c = X.unbind(dim=-1)
    valley = 4 * (a - 2 + 8 * b - 8 * b.square()).square() + (3 - 4 * b).square()
    return -valley - 16 * (c + 1).sqrt() * (2 * c - 1).square()


def park(X: Tensor) -> Tensor:
    r"""A smooth function of four inputs that grows steeply towards one corner.

    Source:
        Park (1991); Cox, Park and Singer (2001).
    """
    a, b, c, e = X.clamp_min(1e-6).unbind(dim=-1)
    root = (1 + (b + c.square()) * e / a.square()).sqrt()
    return a / 2 * (root - 1) + (a + 3 * e) * (1 + c.sin()).exp()


def styblinski(X: Tensor) -> Tensor:
    r"""Minus Styblinski and Tang's function: a hill near each corner."""
    return -published(StyblinskiTang(X.shape[-1]), X)


def corners(X: Tensor) -> Tensor:
    r"""Sobol's g-function of five inputs, which has corners where an input is 1 / 2.

    Source:
        Saltelli and Sobol (1995), with ``a = 0, 1, 4.5, 9, 99``.
    """
    a = torch.tensor([0.0, 1.0, 4.5, 9.0, 99.0], dtype=X.dtype)
    return (((4 * X - 2).abs() + a) / (1 + a)).prod(dim=-1)


def robot_arm(X: Tensor) -> Tensor:
    r"""How far the end of an arm with four segments is from where it is mounted.

    Source:
        An and Owen (2001): four angles, then four lengths up to 1.
    """
    angles, lengths = (2 * math.pi * X[:, :4]).cumsum(dim=-1), X[:, 4:]
    east, north = lengths * angles.cos(), lengths * angles.sin()
    return torch.hypot(east.sum(dim=-1), north.sum(dim=-1))


# --- tables from the world ------------------------------------------------------------


def energy(path: Path | None) -> tuple[Tensor, Tensor]:
    r"""The features of 768 buildings, and their heating loads."""
    assert path is not None  # asked for where the file is there
    rows = torch.from_numpy(np.loadtxt(path, delimiter=",", skiprows=1))
    return rows[:, :8], rows[:, 8]


def svm(path: Path | None) -> tuple[Tensor, Tensor]:
    r"""1,400 settings of a support vector machine, and minus their error."""
    assert path is not None  # asked for where the file is there
    pool, value = svm_problem(path)
    return pool.X, value


def sea(path: Path | None) -> tuple[Tensor, Tensor]:
    r"""Cells of a real sea bed, and their depth."""
    return sea_cells(SEA_STEP)


def hills(path: Path | None) -> tuple[Tensor, Tensor]:
    r"""Blocks of real hills, and their height."""
    return fault_blocks(BLOCK)


# --- all of them ----------------------------------------------------------------------

CHOOSING: dict[str, Problem] = {
    "four-branch": function(four_branch, 2, 0.15),
    "Branin": function(log_branin, 2, 0.2),
    "Hartmann-6": function(hartmann, 6, 0.2),
    "Ishigami": function(ishigami, 3, 0.3),
    "Currin": function(currin, 2, 0.3),
    "curved, 3-D": function(curved, 3, 0.3),
    "Park, 4-D": function(park, 4, 0.25),
    "Styblinski, 4-D": function(styblinski, 4, 0.3),
    "corners, 5-D": function(corners, 5, 0.25),
    "robot arm, 8-D": function(robot_arm, 8, 0.3),
    "sample, RBF, 2-D": sample(RBFKernel, 2, 0.2, 0.3),
    "sample, Matern-5/2, 6-D": sample(MaternKernel, 6, 0.9, 0.3),
    "sample, Matern-5/2, 4-D": sample(MaternKernel, 4, 0.6, 0.3),
    "sea bed": table(sea, 0.3),
    "SVM": table(svm, 0.25, SVM_FILE),
    "energy": table(energy, 0.3, ENERGY_FILE),
}
"""Problems that have served to choose rules and their settings."""
REPORTED: dict[str, Problem] = {
    "Himmelblau": function(log_himmelblau, 2, 0.2),
    "camel": function(camel, 2, 0.25),
    "modified Rastrigin": function(modified_rastrigin, 2, 0.1),
    "sample, Matern-3/2, 2-D": sample(partial(MaternKernel, 1.5), 2, 0.3, 0.3),
    "fault": table(hills, 0.25),
    "sample, RBF, 3-D": sample(RBFKernel, 3, 0.35, 0.3),
    "Hartmann-3": function(hartmann_3d, 3, 0.2),
    "Levy, 3-D": function(levy, 3, 0.3),
    "Rosenbrock, 4-D": function(rosenbrock, 4, 0.25),
    "Friedman, 5-D": function(friedman, 5, 0.3),
    "circuit, 6-D": function(circuit, 6, 0.4),
    "piston, 7-D": function(piston, 7, 0.2),
    "borehole, 8-D": function(borehole, 8, 0.3),
}
"""Problems that nothing was chosen by."""
PROBLEMS = {**CHOOSING, **REPORTED}
