r"""The simulations of Weltz et al. (2023): Figures 1c, 2 and 3."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.estimators import (
    ArmStatistics,
    VarianceEstimate,
    head_designs,
    head_from_arms,
)
from botorch_lse.papers.complexity import Complexity, best_arm_complexity
from botorch_lse.papers.weltz2023 import (
    GapEliminationStrategy,
    HRAGEPACStrategy,
    RAGEPACStrategy,
    separate_arms,
    separate_from_arms,
    uniform_from_arms,
)
from research.papers.weltz2023.problems import (
    ORACLE_TOLERANCE,
    LinearProblem,
    benchmark,
    signal_to_noise,
    sphere_problem,
    web_page,
)
from research.statistics import WrongFraction

DELTA = 0.05
ESTIMATORS = ("HEAD", "Uniform", "Separate Arm")
KAPPAS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 14.0, 16.0, 18.0, 20.0, 25.0, 30.0, 40.0)


# --- Figure 1c ------------------------------------------------------------------------


@dataclass(frozen=True)
class Noisier:
    r"""Figure 1 with one arm ``kappa`` times as noisy as the other two.

    Args:
        kappa: The ratio of the variances.
        ratio: ``rho* / psi*``.
        informative: The weight of the noisy arm in the design that knows it.
        gap: The larger of the two certified gaps.
    """

    kappa: float
    ratio: float
    informative: float
    gap: float


def noisier(kappa: float) -> Noisier:
    r"""The oracles of the introduction: ``e1``, ``e2`` and an arm near ``e1``."""
    X = torch.eye(2, dtype=torch.float64)
    near = torch.tensor([[math.cos(0.5), math.sin(0.5)]], dtype=torch.float64)
    X = torch.cat((X, near))

    def oracle(noise_var: Sequence[float]) -> Complexity:
        return best_arm_complexity(
            X, X[:, 0], noise_var=noise_var, tol=ORACLE_TOLERANCE
        )

    psi, rho = oracle((1.0, kappa, 1.0)), oracle((kappa,) * 3)
    gap = max(psi.design.gap, rho.design.gap)
    weight = float(psi.design.weights[1])
    return Noisier(kappa, rho.value / psi.value, weight, gap)


# --- Figure 2 -------------------------------------------------------------------------


def variance_errors(
    d: int, budgets: Sequence[int], seed: int
) -> dict[str, tuple[float, ...]]:
    r"""The largest error over all arms, by estimator, for each budget.

    Each budget is measured anew. All estimates are clipped to the true extremes.
    """
    problem = sphere_problem(d, seed)
    N = len(problem.X)
    noise = np.random.default_rng([seed, d, 1])
    plan, chosen = head_designs(problem.X), separate_arms(problem.X)
    errors: dict[str, list[float]] = {name: [] for name in ESTIMATORS}

    def draw(counts: Tensor) -> ArmStatistics:
        return problem.draw(counts, noise)

    def note(name: str, found: VarianceEstimate) -> None:
        errors[name].append(float((found.variances - problem.variances).abs().max()))

    for budget in budgets:
        first, second = (draw(counts) for counts in plan.counts(budget))
        note("HEAD", head_from_arms(problem.X, first, second, problem.bounds))
        uniform = torch.from_numpy(noise.multinomial(budget, np.full(N, 1 / N)))
        note("Uniform", uniform_from_arms(problem.X, draw(uniform), problem.bounds))
        equal = torch.zeros(N, dtype=torch.long)
        equal[chosen] = budget // len(chosen)
        separate = separate_from_arms(problem.X, draw(equal), problem.bounds)
        note("Separate Arm", separate)
    return {name: tuple(values) for name, values in errors.items()}


# --- Figure 3 -------------------------------------------------------------------------

Build = Callable[[LinearProblem], GapEliminationStrategy]


def h_rage(problem: LinearProblem, delta: float = DELTA) -> HRAGEPACStrategy:
    r"""H-RAGE with the practical burn-in."""
    return HRAGEPACStrategy(
        problem.pool, problem.threshold, variance_bounds=problem.bounds, delta=delta
    )


def h_rage_known(problem: LinearProblem, delta: float = DELTA) -> HRAGEPACStrategy:
    r"""H-RAGE that is told the variances."""
    pool = Pool(problem.X, noise_var=problem.variances)
    return HRAGEPACStrategy(pool, problem.threshold, delta=delta)


def rage(problem: LinearProblem, delta: float = DELTA) -> RAGEPACStrategy:
    r"""RAGE with the largest variance."""
    noise_std = math.sqrt(problem.bounds[1])
    return RAGEPACStrategy(
        problem.pool, problem.threshold, noise_std=noise_std, delta=delta
    )


METHODS: Mapping[str, Build] = {
    "H-RAGE": h_rage,
    "H-RAGE, variances known": h_rage_known,
    "RAGE": rage,
}


@dataclass(frozen=True)
class PACRun:
    r"""One run to the end.

    Args:
        samples: All measurements.
        burn_in: Those of the burn-in.
        right: Whether the answer is the truth.
        seconds: How long it took.
    """

    samples: int
    burn_in: int
    right: bool
    seconds: float


def run_to_the_end(
    problem: LinearProblem, strategy: GapEliminationStrategy, seed: int
) -> PACRun:
    r"""Ask for counts, draw means and scatters, tell, until all is decided."""
    began = time.perf_counter()
    noise = np.random.default_rng([seed, 2])
    state = strategy.init(seed)
    while not state.is_done:
        counts = strategy.planned_counts(state)
        state = strategy.tell(state, problem.measure(counts, state.round, noise))
    burn_in = 0
    if isinstance(strategy, HRAGEPACStrategy):
        burn_in = strategy.burn_in_used(state)
    right = torch.equal(state.classification.above, problem.above)
    return PACRun(state.n_used, burn_in, right, time.perf_counter() - began)


@dataclass(frozen=True, eq=False)
class Example:
    r"""One of the three examples, its oracles and all runs.

    Args:
        title: For people.
        problem: The instance.
        psi: The oracle that knows every variance.
        rho: The oracle that takes the largest for all.
        runs: By method.
    """

    title: str
    problem: LinearProblem
    psi: Complexity
    rho: Complexity
    runs: Mapping[str, Sequence[PACRun]]

    @classmethod
    def run(cls, title: str, build: Callable[[], LinearProblem], seeds: int) -> Example:
        r"""All methods with seeds ``0, ..., seeds - 1``."""
        problem = build()
        runs = {
            name: [run_to_the_end(problem, make(problem), s) for s in range(seeds)]
            for name, make in METHODS.items()
        }
        return cls(title, problem, problem.psi, problem.rho, runs)

    @property
    def lower_bound(self) -> float:
        r"""``2 psi* log(1 / (2.4 delta))``."""
        return self.psi.samples(DELTA)

    def oracle_samples(self, oracle: Complexity) -> float:
        r"""``2 psi log(2 |Z| / delta)``: what an oracle's confidence bounds need.

        Source:
            Weltz et al. (2023), Eq. (3) and (4).
        """
        return 2 * oracle.value * math.log(2 * len(self.problem.X) / DELTA)

    def samples(self, method: str) -> Tensor:
        r"""The samples of each run."""
        return torch.tensor([float(r.samples) for r in self.runs[method]]).double()

    def burn_in(self, method: str) -> float:
        r"""How many samples the burn-in took, mean over the runs."""
        return sum(r.burn_in for r in self.runs[method]) / len(self.runs[method])

    def wrong(self, method: str) -> WrongFraction:
        r"""How many runs ended with a wrong answer."""
        runs = self.runs[method]
        return WrongFraction(sum(not r.right for r in runs), len(runs), DELTA)


EXAMPLES: Mapping[str, Callable[[], LinearProblem]] = {
    "Example 1: signal to noise": signal_to_noise,
    "Example 2: benchmark": benchmark,
    "Example 3: web page": web_page,
}
