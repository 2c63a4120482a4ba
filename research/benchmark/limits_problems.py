r"""Instances and contestants of ``limits``: how near methods come to an oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse.confidence import RKHSWidth
from botorch_lse.confidence.classify import ABOVE
from botorch_lse.data.pool import Pool
from botorch_lse.designs import optimal_design
from botorch_lse.designs.basis import KernelGram
from botorch_lse.papers.complexity import level_set_complexity
from botorch_lse.papers.mason2022 import MELKPACStrategy
from botorch_lse.strategies import (
    HRAGELinearStrategy,
    LinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
)
from research.papers.mason2022.linear import (
    ExplicitRule,
    ImplicitRule,
    LinearRuns,
    Width,
)
from research.papers.mason2022.linear import run_linear as run_lse
from research.papers.mason2022.soare import (
    BOUND,
    DELTA,
    EXPLICIT,
    LEVEL,
    LIMIT,
    NOISE,
    OMEGA,
    _linear_runs,
    _pac,
    arms,
    run_pac,
)
from research.papers.weltz2023.problems import LinearProblem
from research.papers.weltz2023.runs import DELTA as WELTZ_DELTA
from research.papers.weltz2023.runs import METHODS, run_to_the_end

ANYTIME = "anytime"
KONE_DELTA, RANK, ROWS, CLEAR = 0.01, 50, 1000, 0.3


@dataclass(frozen=True)
class Ended:
    r"""One run to the end.

    Args:
        samples: Measurements.
        right: Whether the answer is the truth; ``None`` where only the plan is known.
        batches: In how many batches, where it matters.
    """

    samples: int
    right: bool | None
    batches: int | None = None


@dataclass(frozen=True)
class Instance:
    r"""What is to be decided, its oracle and who decides it.

    Args:
        name: For people.
        psi: From a seed to ``psi*`` of the instance drawn with it.
        bounds: Whether ``psi*`` bounds the samples of every method from below.
        n: The number of items.
        delta: The failure probability.
        methods: By name, from a seed to a run.
    """

    name: str
    psi: Callable[[int], float]
    bounds: bool
    n: int
    delta: float
    methods: Mapping[str, Callable[[int], Ended]]


def simulated(strategy: LinearStrategy, means: Tensor, sd: Tensor, seed: int) -> Ended:
    r"""A run of a linear strategy that must find ``above``; noise from the seed."""
    generator = np.random.default_rng([seed, 3])

    def measure(rows: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        freedom = (counts - 1).clamp_min(1).double()
        noise = torch.from_numpy(generator.standard_normal(len(rows)))
        scatter = torch.from_numpy(generator.chisquare(freedom.numpy())) * (counts > 1)
        variance = sd[rows].square() * scatter / freedom
        return means[rows] + sd[rows] * noise / counts.sqrt(), variance / counts

    run = strategy.simulate(measure, seed)
    right = torch.equal(run.classification.above, truth(strategy, means))
    return Ended(run.n_used, right, run.rounds)


def realised(bound: float, noise_std: float, delta: float) -> Width:
    r"""``RKHSWidth`` with ``lambda = 1`` and the information that a run really gave."""
    width = RKHSWidth(bound, noise_std, ridge=1.0, delta=delta)
    return lambda n, information: width.from_information(information).unsqueeze(-1)


def truth(strategy: LinearStrategy, means: Tensor) -> Tensor:
    r"""The right ``above`` of a strategy for one output."""
    if isinstance(strategy, MILKLinearStrategy):
        return means > strategy.omega * means.max()
    level = strategy.threshold  # type: ignore[attr-defined]  # the others have one
    return means == means.max() if level is None else means > level


# --- Soare ----------------------------------------------------------------------------


def soare(n: int, figure: str) -> Instance:
    r"""The first ``n`` arms of Mason et al.'s instance, explicit or implicit level."""
    explicit = figure == EXPLICIT

    def psi(seed: int) -> float:
        X = arms(seed, False)[:n]
        if explicit:
            return level_set_complexity(X, X[:, 0], LEVEL).value
        return implicit_pairs(X, X[:, 0])

    def pac(seed: int) -> Ended:
        X = arms(seed, False)[:n]
        end = run_pac(_pac(Pool(X), figure), X[:, 0], seed)
        return Ended(end.measurements, torch.equal(end.side == ABOVE, X[:, 0] > LEVEL))

    def lse(seed: int) -> Ended:
        X = arms(seed, False)[:n].unsqueeze(0)
        rule = ExplicitRule(LEVEL) if explicit else ImplicitRule(OMEGA)
        runs = _linear_runs(X, X[..., 0])
        (end,) = run_lse(runs, rule, realised(BOUND, NOISE, DELTA), LIMIT)
        return Ended(
            end.measurements, torch.equal(end.side == ABOVE, X[0, :, 0] > LEVEL)
        )

    def anytime(seed: int) -> Ended:
        X = arms(seed, False)[:n]
        pool = Pool(X)
        strategy: LinearStrategy
        if explicit:
            strategy = MELKLinearStrategy(pool, LEVEL, noise_std=NOISE, delta=DELTA)
        else:
            strategy = MILKLinearStrategy(
                pool, omega=OMEGA, noise_std=NOISE, delta=DELTA
            )
        return simulated(strategy, X[:, 0], torch.ones(n, dtype=torch.float64), seed)

    mine, other = ("MELK", "LSE") if explicit else ("MILK", "LSE_imp")
    methods = {
        f"{mine}, paper": pac,
        f"{other}, realised information": lse,
        f"{mine}, {ANYTIME}": anytime,
    }
    kind = "level set" if explicit else "implicit"
    return Instance(f"Soare, n = {n}, {kind}", psi, explicit, n, DELTA, methods)


def implicit_pairs(X: Tensor, f: Tensor) -> float:
    r"""``min over lam of max |x - omega x'|^2 / (f(x) - omega f(x'))^2``.

    Over the pairs with the maximiser, and for rows above over all other rows as well.
    """
    every, best = torch.arange(len(f)), int(f.argmax())
    above = (f > OMEGA * f[best]).nonzero().view(-1)
    i = torch.cat((every, above.repeat_interleave(len(f))))
    j = torch.cat((torch.full_like(every, best), every.repeat(len(above))))
    gaps = f[i] - OMEGA * f[j]
    return optimal_design(X, X[i] - OMEGA * X[j], target_weights=gaps**-2.0).value


# --- Weltz ----------------------------------------------------------------------------


def weltz(name: str, build: Callable[[], LinearProblem]) -> Instance:
    r"""An example of Weltz et al., best arm."""
    problem = build()
    X, s2 = problem.X, problem.variances

    def paper(method: str) -> Callable[[int], Ended]:
        def run(seed: int) -> Ended:
            end = run_to_the_end(problem, METHODS[method](problem), seed)  # type: ignore[arg-type]
            return Ended(end.samples, end.right)

        return run

    def anytime(build: Callable[[], HRAGELinearStrategy]) -> Callable[[int], Ended]:
        return lambda seed: simulated(build(), problem.means, s2.sqrt(), seed)

    methods = {f"{method}, paper": paper(method) for method in METHODS}
    methods[f"H-RAGE, variances known, {ANYTIME}"] = anytime(
        lambda: HRAGELinearStrategy(Pool(X, noise_var=s2), delta=WELTZ_DELTA)
    )
    methods[f"H-RAGE, {ANYTIME}"] = anytime(
        lambda: HRAGELinearStrategy(
            Pool(X), variance_bounds=problem.bounds, delta=WELTZ_DELTA
        )
    )
    methods[f"RAGE, {ANYTIME}"] = anytime(
        lambda: HRAGELinearStrategy(
            Pool(X), noise_std=math.sqrt(problem.bounds[1]), delta=WELTZ_DELTA
        )
    )
    value = problem.psi.value
    return Instance(
        f"Weltz, {name}", lambda seed: value, True, len(X), WELTZ_DELTA, methods
    )


# --- high rank, kernel ----------------------------------------------------------------


def high_rank() -> Instance:
    r"""Random unit features of rank 50; rows near the level are left out."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(2 * ROWS, RANK, generator=generator, dtype=torch.float64)
    X = X / X.norm(dim=1, keepdim=True)
    theta = torch.randn(RANK, generator=generator, dtype=torch.float64)
    X = X[(X @ theta).abs() > CLEAR][:ROWS]
    return _level(f"rank {RANK}, {ROWS} rows", X, X @ theta)


def kernel_features() -> Instance:
    r"""Features of an RBF kernel on a line; a smooth function above zero in parts."""
    x = torch.linspace(0, 1, 80, dtype=torch.float64).unsqueeze(-1)
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.15
    Phi = KernelGram.of(kernel, x).basis(1e-8).Phi
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(Phi.shape[1], generator=generator, dtype=torch.float64)
    f = Phi @ w
    clear = f.abs() > CLEAR
    X, f, norm = Phi[clear], f[clear], float(w.norm())
    level = _level(f"RBF features of rank {Phi.shape[1]}", X, f)

    def lse(seed: int) -> Ended:
        noise = torch.Generator().manual_seed(seed)
        runs = LinearRuns(X.unsqueeze(0), f.unsqueeze(0), [noise], 1.0)
        width = realised(norm, 1.0, level.delta)
        (end,) = run_lse(runs, ExplicitRule(0.0), width, LIMIT)
        return Ended(end.measurements, torch.equal(end.side == ABOVE, f > 0.0))

    methods = {"LSE, RKHS width of the true norm": lse, **level.methods}
    return replace(level, methods=methods)


def _level(name: str, X: Tensor, f: Tensor) -> Instance:
    r"""The level set above 0, noise of standard deviation 1."""
    level, n, delta = 0.0, len(X), 0.05
    value = level_set_complexity(X, f, level).value
    bound = float(f.abs().max())

    def planned(seed: int) -> Ended:
        strategy = MELKPACStrategy(Pool(X), level, bound=bound, noise_std=1.0)
        return Ended(least_draws(strategy, (f - level).abs()), None)

    def anytime(seed: int) -> Ended:
        strategy = MELKLinearStrategy(Pool(X), level, noise_std=1.0, delta=delta)
        return simulated(strategy, f, torch.ones(n, dtype=torch.float64), seed)

    methods = {"MELK, paper (least plan)": planned, f"MELK, {ANYTIME}": anytime}
    return Instance(name, lambda seed: value, True, n, delta, methods)


def least_draws(strategy: MELKPACStrategy, gaps: Tensor) -> int:
    r"""Draws of the paper's rounds while a row is surely open, at the least.

    A row stays open in round ``t`` if its gap is below the ``2^-t`` by which a decision
    exceeds the error of the estimates.
    """
    total, t = 0, 1
    active = torch.ones_like(gaps, dtype=torch.bool)
    while bool(active.any()):
        design = optimal_design(strategy.rounds.Phi, active)
        total += strategy.rounds.n_draws(t, design.lower_bound)
        active = gaps < 2.0**-t
        t += 1
    return total
