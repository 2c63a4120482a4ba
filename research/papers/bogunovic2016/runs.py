r"""Runs that keep the score by cost, and runs that seek a maximum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import (
    LogExpectedImprovement,
    UpperConfidenceBound,
)
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from botorch_lse.confidence import UnionBeta
from botorch_lse.data.observations import Observations
from botorch_lse.datasets import f1_score
from botorch_lse.functional.scores import first_best
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.rules.costs import RowCosts
from botorch_lse.strategies import GPStrategy, TruVaRStrategy
from research.papers.bogunovic2016.problems import PricedProblem

UCB_DELTA, UCB_DIVISOR = 0.1, 5.0


@dataclass(frozen=True, eq=False)
class PricedRun:
    r"""One strategy on one problem, after 0, 1, ... measurements.

    Args:
        cost: ``n + 1`` summed costs, the first 0.
        f1: ``n + 1`` scores of the posterior mean, for all rows.
        rows: ``n`` rows in the order of measurement.
    """

    cost: Tensor
    f1: Tensor
    rows: Tensor

    def at(self, cost: Tensor) -> Tensor:
        r"""Scores at given costs; a run that stopped keeps its last score."""
        return self.f1[torch.searchsorted(self.cost, cost, right=True) - 1]

    def cost_to(self, f1: float) -> float:
        r"""The cost at which ``f1`` is first reached; else ``inf``."""
        reached = self.f1 >= f1
        return float(self.cost[reached][0]) if bool(reached.any()) else float("inf")


def run_priced(
    problem: PricedProblem,
    strategy: GPStrategy,
    budget: float,
    until: float = 2.0,
    unit: bool = False,
) -> PricedRun:
    r"""Ask, measure, pay, tell, until the strategy stops or the budget is spent.

    Args:
        problem: What is measured and paid.
        strategy: Who asks; it may know the costs or not.
        budget: No measurement is begun beyond this cost.
        until: Stop when the score of the posterior mean is at least this.
        unit: Whether every measurement costs 1 instead.
    """
    prices = RowCosts(problem.pool, problem.travel)
    state, noise = strategy.init(problem.seed), problem.noise_generator()
    costs, scores = [0.0], [_score(problem, state.classification.mean)]
    rows: list[int] = []
    while not state.is_done and costs[-1] < budget and scores[-1] < until:
        batch = strategy.ask(state)
        y = problem.measure(batch.order, noise)
        state = strategy.tell(state, batch.observe(y))
        previous = rows[-1] if rows else None
        paid = len(batch) if unit else prices.along(previous, batch.order)
        costs.append(costs[-1] + paid)
        scores.append(_score(problem, state.classification.mean))
        rows += batch.order.tolist()
    exact: dict[str, Any] = {"dtype": torch.float64}
    return PricedRun(
        torch.tensor(costs, **exact), torch.tensor(scores, **exact), torch.tensor(rows)
    )


def _score(problem: PricedProblem, mean: Tensor) -> float:
    assert problem.threshold is not None  # level sets only
    return f1_score(mean >= problem.threshold, problem.above)


class PoolModel(Model):
    r"""A BoTorch model that knows the rows of one pool: BoTorch's acquisition functions
    on a posterior that was computed already.

    Args:
        posterior: On the pool.
    """

    def __init__(self, posterior: PoolPosterior) -> None:
        super().__init__()
        self.mean, self.variance = posterior.mean, posterior.sigma.square()

    @property
    def num_outputs(self) -> int:
        r"""The model has one output."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        r"""The model is a single one, not a batch of models."""
        return torch.Size()

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> GPyTorchPosterior:
        r"""Marginal posteriors of all ``N`` rows, whatever ``N x 1 x d`` is."""
        C = self.variance.clamp_min(1e-20)[:, None, None]
        return GPyTorchPosterior(MultivariateNormal(self.mean.unsqueeze(-1), C))


Rule = Callable[[PoolModel, float, int], AcquisitionFunction]
"""From model, best value so far and number of measurements to BoTorch's function."""


def expected_improvement(model: PoolModel, best: float, t: int) -> AcquisitionFunction:
    r"""EI, as its logarithm, which has the same maximiser."""
    return LogExpectedImprovement(model, best)


def upper_confidence_bound(
    model: PoolModel, best: float, t: int
) -> AcquisitionFunction:
    r"""GP-UCB with the theoretical ``beta_t`` divided by five, as in the paper."""
    beta = UnionBeta(len(model.mean), UCB_DELTA)(t + 1) / UCB_DIVISOR
    return UpperConfidenceBound(model, beta)


def regret_of_rule(problem: PricedProblem, rule: Rule, n: int) -> Tensor:
    r"""``n`` regrets of the row with the largest posterior mean."""
    pool, noise = problem.pool, problem.noise_generator()
    assert pool.noise_var is not None  # every problem has it
    posterior = PoolPosterior.start(problem.prior, pool.X)
    row, best, regrets = first_row(problem), -float("inf"), []
    everything = torch.ones(len(pool), dtype=torch.bool)
    for t in range(1, n + 1):
        at = torch.tensor([row])
        y = problem.measure(at, noise)
        posterior = posterior.observe(at, y, pool.noise_var[at])
        best = max(best, float(y))
        regrets.append(_regret(problem, int(posterior.mean.argmax())))
        with torch.no_grad():
            scores = rule(PoolModel(posterior), best, t)(pool.X.unsqueeze(-2))
        row = first_best(scores, everything, 1.0) or 0
    return torch.tensor(regrets, dtype=torch.float64)


def regret_of_strategy(
    problem: PricedProblem, strategy: TruVaRStrategy, n: int
) -> Tensor:
    r"""``n`` regrets of the recommended row, from the same first row."""
    noise, at = problem.noise_generator(), torch.tensor([first_row(problem)])
    state = strategy.init(problem.seed)
    state = strategy.tell(state, Observations(at, problem.measure(at, noise)))
    regrets = [_regret(problem, strategy.recommend(state))]
    while len(regrets) < n and not state.is_done:
        batch = strategy.ask(state)
        y = problem.measure(batch.order, noise)
        state = strategy.tell(state, batch.observe(y))
        regrets.append(_regret(problem, strategy.recommend(state)))
    regrets += regrets[-1:] * (n - len(regrets))
    return torch.tensor(regrets, dtype=torch.float64)


def first_row(problem: PricedProblem) -> int:
    r"""The random row that all methods measure first."""
    generator = torch.Generator().manual_seed(2 * problem.seed + 1)
    return int(torch.randint(len(problem.pool), (1,), generator=generator))


def _regret(problem: PricedProblem, row: int) -> float:
    return float(problem.truth.max() - problem.truth[row])
