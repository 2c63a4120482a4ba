r"""Small problems with several outputs and loops that tests share."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse import Pool
from botorch_lse.papers import ParetoStrategy
from botorch_lse.strategies import State
from tests.registry import StrategyCase, case_of

NOISE_STD = 0.2


def linear_problem(seed: int = 0, K: int = 12, h: int = 3, m: int = 2):
    r"""Features of unit length and the means linear in them, all maximised."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(K, h, generator=generator, dtype=torch.float64)
    X = X / X.norm(dim=1, keepdim=True)
    return X, X @ torch.randn(h, m, generator=generator, dtype=torch.float64)


def make(
    of: StrategyCase | type[ParetoStrategy], X: Tensor, m: int = 2, **options
) -> ParetoStrategy:
    case, pool = case_of(of), options.pop("pool", None) or Pool(X)
    known = {"maximize": (True,) * m}
    if case.family != "budget":
        known |= {"noise_std": NOISE_STD, "max_observations": 100_000}
    return case.make(pool, **{**known, **options})


def step(
    strategy: ParetoStrategy,
    state: State,
    mu: Tensor,
    generator: torch.Generator,
    means: bool = True,
    std: float = NOISE_STD,
) -> State:
    r"""One round: ask, measure, tell."""
    batch = strategy.ask(state)
    if not means:
        noise = draw(len(batch), mu.shape[1], generator)
        return strategy.tell(state, batch.observe(mu[batch.order] + std * noise))
    counts = batch.counts.double().unsqueeze(-1)
    noise = draw(len(counts), mu.shape[1], generator) / counts.sqrt()
    yvar = (std**2 / counts).expand(-1, mu.shape[1])
    y = mu[batch.indices] + std * noise
    return strategy.tell(state, batch.observe(y, yvar, means=True))


def draw(n: int, m: int, generator: torch.Generator) -> Tensor:
    return torch.randn(n, m, generator=generator, dtype=torch.float64)


def run(
    strategy: ParetoStrategy,
    mu: Tensor,
    seed: int = 0,
    means: bool = True,
    std: float = NOISE_STD,
    rounds: int = 10_000,
) -> State:
    generator = torch.Generator().manual_seed(seed)
    state = strategy.init(seed)
    while not state.is_done and state.round < rounds:
        state = step(strategy, state, mu, generator, means, std)
    return state
