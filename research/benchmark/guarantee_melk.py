r"""The guarantees of MELK and MILK (Mason et al. 2022, Theorems 3.3 and 4.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import new_class
from typing import Any, TypeVar

import numpy as np
import torch
from gpytorch.kernels import LinearKernel
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers.mason2022 import MELKPACStrategy, MILKPACStrategy, PACStrategy
from research.benchmark.engines import over_seeds
from research.benchmark.guarantee import (
    COLUMNS,
    End,
    Form,
    Outcome,
    outcome,
    power_report,
)
from research.benchmark.registry import Options, entry
from research.papers.problems import Problem
from research.report import Report

DELTA, LEVEL, OMEGA, DEGREES = 0.1, 0.032, 0.5, 2.1
RIDGE = 1e-9
"""MILK's: rows below leave the pairs, and then the design need not span them."""


@dataclass(frozen=True)
class Setting:
    r"""Instances of one kind.

    Args:
        rows: How many.
        noise: Its standard deviation.
        tolerance: Of the algorithm.
    """

    rows: int
    noise: float
    tolerance: float

    def __str__(self) -> str:
        return (
            f"{self.rows} rows, noise {self.noise:g}, tolerance {self.tolerance:g} "
            f"({math.ceil(math.log2(4 / self.tolerance))} rounds)"
        )


MELK_TIES, MILK_TIES = Setting(2, 1.0, 1 / 32), Setting(8, 0.3, 1 / 16)
BEYOND = Setting(8, 0.3, 1 / 16)

NOTES = (
    "Unstructured rows (the basis vectors), the hardest features for their number. The "
    "noise dominates B^2 + sigma^2. Run k uses seed k.",
    f"Ties: all values lie within 0.1 % of the tolerance of the level. MELK: "
    f"{MELK_TIES}, on both sides; few rows, since the union over N^2 directions "
    f"grows faster than the errors. MILK: {MILK_TIES}; half of them are the "
    "maximum, half just above the level, so that a quarter of the pairs are ties.",
    f"Beyond: {BEYOND}; ties but for one row just beyond the tolerance, and for MILK "
    "one maximum.",
    "A run is wrong if G_t holds a row below the level, B_t one above it, or a row "
    "further than the tolerance from the level was left open: both returned sets of "
    "the theorems are tested.",
    f"Student t noise has {DEGREES:g} degrees of freedom, scaled to the same variance.",
    "Dividing the widths by F divides both that the algorithm has: the accuracy 2^-t "
    "that N_t is made for (N_t is divided by F^2) and the elimination width 2 2^-t. "
    "Dividing one of them by 3 is no power check: at N_t draws Catoni's bound is about "
    "0.37 2^-t, a fifth of the elimination width, so the theorem would still hold.",
)


@dataclass(frozen=True, eq=False)
class StudentProblem(Problem):
    r"""A problem whose noise has heavy tails and the same variance."""

    def measure(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        r"""One noisy value for each of ``q`` rows."""
        seed = int(torch.randint(2**62, (), generator=generator))
        t = np.random.default_rng(seed).standard_t(DEGREES, rows.shape)
        scale = self.noise_std * ((DEGREES - 2) / DEGREES) ** 0.5
        return self.truth[rows] + scale * torch.from_numpy(t)


@lru_cache(maxsize=1)
def linear_prior() -> GPPrior:
    r"""Linear functions; the strategies here use the rows only."""
    return GPPrior.from_kernel(LinearKernel().double())


Make = Callable[..., Problem]


def melk_ties(seed: int, kind: type[Problem] = Problem) -> Problem:
    r"""Values next to the level, on both sides."""
    return _problem(kind, LEVEL + _gaps(seed, MELK_TIES), MELK_TIES, seed)


def milk_ties(seed: int, kind: type[Problem] = Problem) -> Problem:
    r"""Half of the rows the maximum, half just above their half."""
    truth = LEVEL + _gaps(seed, MILK_TIES).abs()
    truth[MILK_TIES.rows // 2 :] = LEVEL / OMEGA
    return _problem(kind, truth, MILK_TIES, seed)


def melk_beyond(seed: int, kind: type[Problem] = Problem) -> Problem:
    r"""One value beyond the tolerance; every second seed is reflected."""
    gaps = _gaps(seed, BEYOND)
    gaps[0] = -1.005 * BEYOND.tolerance
    sign = 1.0 if seed % 2 else -1.0
    return _problem(kind, sign * (LEVEL + gaps), BEYOND, seed, sign * LEVEL)


def milk_beyond(seed: int, kind: type[Problem] = Problem) -> Problem:
    r"""A maximum whose half is the level, and one value beyond the tolerance."""
    truth = LEVEL + _gaps(seed, BEYOND)
    truth[0] = LEVEL - 1.005 * BEYOND.tolerance
    truth[1] = LEVEL / OMEGA
    return _problem(kind, truth, BEYOND, seed)


def _gaps(seed: int, setting: Setting) -> Tensor:
    generator = torch.Generator().manual_seed(2 * seed)
    share, side = torch.rand(2, setting.rows, generator=generator, dtype=torch.float64)
    size = 1e-3 * setting.tolerance * (share + 1e-3)
    return size * torch.where(side < 0.5, -1.0, 1.0)


def _problem(
    kind: type[Problem],
    truth: Tensor,
    setting: Setting,
    seed: int,
    level: float = LEVEL,
) -> Problem:
    pool = Pool(torch.eye(len(truth), dtype=torch.float64))
    return kind(pool, truth, setting.noise, level, OMEGA, linear_prior(), seed)


Algorithm = TypeVar("Algorithm", bound=PACStrategy)


def narrowed(cls: type[Algorithm], divisor: float) -> type[Algorithm]:
    r"""The algorithm with both its widths divided."""
    constants = {
        "sample_constant": cls.sample_constant / divisor**2,
        "elimination_constant": cls.elimination_constant / divisor,
        "__module__": cls.__module__,
    }
    return new_class(
        cls.__name__, (cls,), exec_body=lambda body: body.update(constants)
    )


def build_melk(setting: Setting, problem: Problem, divisor: float) -> PACStrategy:
    r"""MELK, told the bounds that hold."""
    return narrowed(MELKPACStrategy, divisor)(
        problem.pool,
        problem.threshold,
        bound=float(problem.truth.abs().max()),
        noise_std=problem.noise_std,
        delta=DELTA,
        epsilon=setting.tolerance,
    )


def build_milk(setting: Setting, problem: Problem, divisor: float) -> PACStrategy:
    r"""MILK, told the bounds that hold."""
    return narrowed(MILKPACStrategy, divisor)(
        problem.pool,
        omega=problem.omega,
        bound=float(problem.truth.abs().max()),
        noise_std=problem.noise_std,
        gamma=RIDGE,
        delta=DELTA,
        epsilon=setting.tolerance,
    )


@entry("guarantee", "melk", "MELK to the letter, Gaussian and heavy-tailed noise")
def guarantee_melk(options: Options) -> Report:
    r"""How often MELK is wrong about a level that is stated as a number."""
    ties = Form("MELK PAC, ties", partial(build_melk, MELK_TIES)), melk_ties
    beyond = Form("MELK PAC, beyond", partial(build_melk, BEYOND)), melk_beyond
    return pac_report("guarantee melk", ties, beyond, options)


@entry("guarantee", "milk", "MILK to the letter, Gaussian and heavy-tailed noise")
def guarantee_milk(options: Options) -> Report:
    r"""How often MILK is wrong about a level that is a share of the maximum."""
    ties = Form("MILK PAC, ties", partial(build_milk, MILK_TIES)), milk_ties
    beyond = Form("MILK PAC, beyond", partial(build_milk, BEYOND)), milk_beyond
    return pac_report("guarantee milk", ties, beyond, options)


Case = tuple[Form, Make]


def is_wrong(good: Tensor, kept: Tensor, problem: Problem, tolerance: float) -> bool:
    r"""Whether the returned sets break the theorem.

    Args:
        good: ``N`` bools, ``G_t``.
        kept: ``N`` bools, the rows without ``B_t``.
        problem: The truth.
        tolerance: The algorithm's.
    """
    gaps = problem.truth - problem.threshold
    decided_wrongly = (good & (gaps < 0)) | (~kept & (gaps >= 0))
    open_too_far = kept & ~good & (gaps.abs() > tolerance)
    return bool((decided_wrongly | open_too_far).any())


def simulate_pac(
    form: Form, problem: Make, options: Options, divisor: float
) -> Outcome:
    r"""Run a form on problems ``0, ..., options.runs - 1`` until it stops."""
    run = partial(_end_of, form.build, problem, divisor)
    return outcome((form.name,), over_seeds(run, options, form.name), DELTA)


def _end_of(
    build: Callable[[Problem, float], Any],
    problem: Make,
    divisor: float,
    seed: int,
) -> End:
    instance = problem(seed)
    strategy = build(instance, divisor)
    assert isinstance(strategy, PACStrategy)  # these forms only
    state, noise = strategy.init(seed), instance.noise_generator()
    while not state.is_done:
        batch = strategy.ask(state)
        y = instance.measure(batch.order, noise)
        state = strategy.tell(state, batch.observe(y))
    good, kept = strategy.returned_sets(state)
    wrong = is_wrong(good, kept, instance, strategy.epsilon)
    decided = 1.0 - float((kept & ~good).double().mean())
    return End(wrong, decided, state.n_used)


def pac_report(title: str, ties: Case, beyond: Case, options: Options) -> Report:
    r"""Whole widths with both kinds of noise, then the power check on ties."""
    heavy = replace(ties[0], name=f"{ties[0].name}, Student t")
    student = heavy, partial(ties[1], kind=StudentProblem)
    notes = (f"delta = {DELTA:g}.", *NOTES)

    def outcomes(divisor: float) -> list[Outcome]:
        # Heavy tails and rows beyond are shown with whole widths: ties err most.
        cases: list[Case] = [ties] if divisor > 1 else [ties, student, beyond]
        return [simulate_pac(f, make, options, divisor) for f, make in cases]

    return power_report(title, notes, COLUMNS, outcomes, options)
