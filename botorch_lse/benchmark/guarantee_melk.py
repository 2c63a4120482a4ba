r"""The guarantees of MELK and MILK (Mason et al. 2022, Theorems 3.3 and 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import new_class
from typing import TypeVar

import numpy as np
import torch
from gpytorch.kernels import LinearKernel
from torch import Tensor
from tqdm import tqdm

from botorch_lse.benchmark.guarantee import COLUMNS, POWER, Form, Outcome
from botorch_lse.benchmark.problems import Problem
from botorch_lse.benchmark.registry import Options, entry
from botorch_lse.benchmark.report import Report, Table
from botorch_lse.benchmark.statistics import VIOLATED, WrongFraction
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Pool
from botorch_lse.strategies import MELKPACStrategy, MILKPACStrategy, PACStrategy

DELTA, TOLERANCE, NOISE = 0.1, 1 / 16, 0.3
MELK_ROWS, MILK_ROWS = 8, 8
MELK_LEVEL, MILK_LEVEL, OMEGA = 0.032, 0.032, 0.5
DEGREES = 2.1
RIDGE = 1e-9
"""MILK's: rows below leave the pairs, and then the design need not span them."""
FURTHER = 4.0
"""The widths are also divided by this: the paper's constants leave so much room that a
third of them may still be wide enough."""

NOTES = (
    "Unstructured rows (the basis vectors), the hardest features for their number. All "
    "values but one lie within 0.1 % of the tolerance of the level, on both sides, one "
    "just beyond the tolerance, so that every round can err; the noise dominates "
    "B^2 + sigma^2. Run k uses seed k.",
    "A run is wrong if G_t holds a row below the level, B_t one above it, or a row "
    f"further than the tolerance {TOLERANCE:g} from the level was left open: both "
    "returned sets of the theorems are tested.",
    f"Student t noise has {DEGREES:g} degrees of freedom, scaled to the same variance.",
    "Dividing the widths by F divides both that the algorithm has: the accuracy 2^-t "
    "that N_t is made for (N_t is divided by F^2) and the elimination width 2 2^-t. "
    "Dividing one of them by 3 is no power check: at N_t draws Catoni's bound is about "
    "0.37 2^-t, a fifth of the elimination width, so the theorem would still hold. "
    f"Both by 3 is close to the edge, both by {FURTHER:g} beyond it.",
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


def explicit_problem(seed: int, kind: type[Problem] = Problem) -> Problem:
    r"""Values next to the level; every second seed is reflected."""
    gaps = _gaps(seed, MELK_ROWS)
    sign = 1.0 if seed % 2 else -1.0
    truth = sign * (MELK_LEVEL + gaps)
    return _problem(kind, truth, sign * MELK_LEVEL, seed)


def implicit_problem(seed: int, kind: type[Problem] = Problem) -> Problem:
    r"""A maximum whose half is the level, and values next to the level."""
    truth = MILK_LEVEL + _gaps(seed, MILK_ROWS)
    truth[1] = MILK_LEVEL / OMEGA
    return _problem(kind, truth, MILK_LEVEL, seed)


def _gaps(seed: int, n: int) -> Tensor:
    generator = torch.Generator().manual_seed(2 * seed)
    share, side = torch.rand(2, n, generator=generator, dtype=torch.float64)
    gaps = 1e-3 * TOLERANCE * (share + 1e-3) * torch.where(side < 0.5, -1.0, 1.0)
    gaps[0] = -1.005 * TOLERANCE
    return gaps


def _problem(kind: type[Problem], truth: Tensor, level: float, seed: int) -> Problem:
    pool = Pool(torch.eye(len(truth), dtype=torch.float64))
    return kind(pool, truth, NOISE, level, OMEGA, linear_prior(), seed)


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


def build_melk(problem: Problem, divisor: float) -> PACStrategy:
    r"""MELK, told the bounds that hold."""
    return narrowed(MELKPACStrategy, divisor)(
        problem.pool,
        problem.threshold,
        bound=float(problem.truth.abs().max()),
        noise_std=problem.noise_std,
        delta=DELTA,
        epsilon=TOLERANCE,
    )


def build_milk(problem: Problem, divisor: float) -> PACStrategy:
    r"""MILK, told the bounds that hold."""
    return narrowed(MILKPACStrategy, divisor)(
        problem.pool,
        omega=problem.omega,
        bound=float(problem.truth.abs().max()),
        noise_std=problem.noise_std,
        gamma=RIDGE,
        delta=DELTA,
        epsilon=TOLERANCE,
    )


@entry("guarantee", "melk", "MELK to the letter, Gaussian and heavy-tailed noise")
def guarantee_melk(options: Options) -> Report:
    r"""Explicit level."""
    return pac_report("guarantee melk", "MELK", build_melk, explicit_problem, options)


@entry("guarantee", "milk", "MILK to the letter, Gaussian and heavy-tailed noise")
def guarantee_milk(options: Options) -> Report:
    r"""Implicit level."""
    return pac_report("guarantee milk", "MILK", build_milk, implicit_problem, options)


Build = Callable[[Problem, float], PACStrategy]
Make = Callable[..., Problem]
Case = tuple[Form, Callable[[int], Problem]]


def is_wrong(good: Tensor, kept: Tensor, problem: Problem) -> bool:
    r"""Whether the returned sets break the theorem.

    Args:
        good: ``N`` bools, ``G_t``.
        kept: ``N`` bools, the rows without ``B_t``.
        problem: The truth.
    """
    gaps = problem.truth - problem.threshold
    decided_wrongly = (good & (gaps < 0)) | (~kept & (gaps >= 0))
    open_too_far = kept & ~good & (gaps.abs() > TOLERANCE)
    return bool((decided_wrongly | open_too_far).any())


def simulate_pac(
    form: Form, problem: Callable[[int], Problem], runs: int, divisor: float
) -> Outcome:
    r"""Run a form on problems ``0, ..., runs - 1`` until it stops."""
    wrong, decided, observations = 0, 0.0, 0
    for seed in tqdm(range(runs), desc=form.name, disable=None, leave=False):
        instance = problem(seed)
        strategy = form.build(instance, divisor)
        assert isinstance(strategy, PACStrategy)  # these forms only
        state, noise = strategy.init(seed), instance.noise_generator()
        while not state.is_done:
            batch = strategy.ask(state)
            y = instance.measure(batch.order, noise)
            state = strategy.tell(state, batch.observe(y))
        good, kept = strategy.returned_sets(state)
        wrong += is_wrong(good, kept, instance)
        decided += 1.0 - float((kept & ~good).double().mean())
        observations += state.n_used
    fraction = WrongFraction(wrong, runs, DELTA)
    return Outcome(form, divisor, fraction, decided / runs, observations / runs)


def pac_report(
    title: str, name: str, build: Build, make: Make, options: Options
) -> Report:
    r"""Whole widths with both kinds of noise, then the power checks."""
    gaussian = Form(f"{name} PAC", build), partial(make, kind=Problem)
    student = Form(f"{name} PAC, Student t", build), partial(make, kind=StudentProblem)
    setting = (
        f"{MELK_ROWS} rows, delta = {DELTA:g}, noise standard deviation {NOISE:g}."
    )
    notes = (setting, *NOTES)

    def outcomes(pairs: Sequence[Case], by: float) -> list[Outcome]:
        return [simulate_pac(f, problem, options.runs, by) for f, problem in pairs]

    if options.divide_widths is not None:
        scaled = outcomes((gaussian, student), options.divide_widths)
        text = f"All widths divided by {options.divide_widths:g}"
        return Report(title, notes, [_table(text, scaled)], [_verdict(text, scaled)])
    whole = outcomes((gaussian, student), 1.0)
    tables, verdict = [_table("Widths of the theorem", whole)], []
    verdict.append(_verdict("Guarantee", whole))
    for divisor in (POWER, FURTHER):
        power = outcomes((gaussian,), divisor)
        text = f"Power check: all widths divided by {divisor:g}"
        tables.append(_table(text, power))
        verdict.append(_verdict(text, power))
    return Report(title, notes, tables, verdict)


def _table(title: str, outcomes: Sequence[Outcome]) -> Table:
    return Table(title, COLUMNS, [outcome.row() for outcome in outcomes])


def _verdict(text: str, outcomes: Sequence[Outcome]) -> str:
    verdicts = {o.wrong.verdict for o in outcomes}
    overall = VIOLATED if VIOLATED in verdicts else " and ".join(sorted(verdicts))
    return f"{text}: {overall}."
