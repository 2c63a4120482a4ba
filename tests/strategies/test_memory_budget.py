r"""No array outgrows the memory budget, and what is refused has a way out."""

from __future__ import annotations

import re
import warnings

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from botorch_lse import Pool
from botorch_lse import pareto as dominance
from botorch_lse.designs import certificate
from botorch_lse.models import gaussian_process
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import MILKPACStrategy
from botorch_lse.papers.kone2025 import gaps
from botorch_lse.strategies import (
    GEGELinearStrategy,
    GEGEStrategy,
    HRAGEStrategy,
    ImplicitLSEStrategy,
    MILKStrategy,
    TruVaRStrategy,
)
from botorch_lse.strategies.linear import goals as linear_goals
from tests.registry import STRATEGIES, StrategyCase
from tests.strategies.runs import GP

PRIOR = GPPrior.from_kernel(GP.kernel())
N = 420
"""Beyond the rows of which all covariances may be computed at once."""
BUDGET = 2 * N**2
"""Bytes: two bools for each pair of rows."""
X = torch.rand(N, 2, generator=torch.Generator().manual_seed(0)).double()
FEATURES = torch.cat((torch.ones(N, 1).double(), X), dim=-1)


class Largest(TorchDispatchMode):
    r"""Remembers the bytes of the largest array that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for part in tree_flatten(found)[0]:
            # What the allocator is told to keep is never written to.
            if isinstance(part, torch.Tensor) and part.dtype != torch.uint8:
                self.most = max(self.most, part.untyped_storage().nbytes())
        return found


def strategy_of(case: StrategyCase):
    r"""One on ``N`` rows, with arguments that its first rounds need."""
    options = dict(case.small)
    if case.has_several_outputs:
        options["maximize"] = (True, False)
    if case.family == "gaussian":
        options |= {"model": PRIOR, "noise_std": 0.1, "memory_budget": BUDGET}
        options |= {"max_observations": 60}
        return case.make(Pool(X), **options, **case.aim(0.3))
    if case.family == "linear":
        options |= {"noise_std": 0.1, "batch_size": 10}
    if case.family == "budget":
        options |= {"max_observations": 20 * N}
    if case.family == "confidence":
        options |= {"max_observations": 10**9}
        if case.has_several_outputs:
            options |= {"noise_std": 0.1}
    return case.make(Pool(X, features=FEATURES), **options, **case.aim(0.3))


@pytest.mark.some(2)
@pytest.mark.parametrize("case", STRATEGIES)
def test_no_array_outgrows_the_budget_or_it_is_refused(case, monkeypatch) -> None:
    for module, name in (
        (certificate, "BLOCK"),
        (dominance, "PAIRS"),
        (gaps, "PAIRS"),
        (linear_goals, "PAIRS"),
    ):
        monkeypatch.setattr(module, name, BUDGET // 8)
    monkeypatch.setattr(gaussian_process, "FAST_BLOCK", BUDGET)
    with warnings.catch_warnings(), Largest() as arrays:
        warnings.simplefilter("ignore")  # made-up values
        try:
            strategy = strategy_of(case)
        except ValueError as error:
            assert case.cls is MILKStrategy  # the one that keeps a number for each pair
            assert "keeps no pairs" in str(error)  # noqa: PT017
            return
        state = strategy.init(0)
        batch = strategy.ask(state)
        y = X[batch.order].sum(dim=-1)
        if case.has_several_outputs:
            y = torch.stack((y, X[batch.order, 0]), dim=-1)
        strategy.tell(state, batch.observe(y))
    # Half of a float64 for each pair; the paper's algorithm lists its open pairs.
    most = 16 if case.cls is MILKPACStrategy else 4
    assert arrays.most <= most * N**2


@pytest.mark.parametrize(
    ("cls", "goal", "other"),
    [
        (MILKStrategy, {"omega": 0.5}, ImplicitLSEStrategy),
        (HRAGEStrategy, {}, TruVaRStrategy),
        (GEGEStrategy, {"maximize": (True, False)}, GEGELinearStrategy),
    ],
)
def test_what_a_refusal_of_pairs_names_answers_the_question(cls, goal, other) -> None:
    given = {"noise_std": 0.1, "batch_size": 4, **goal}
    with pytest.raises(ValueError, match="pairs fit `memory_budget`") as raised:
        cls(Pool(X), model=PRIOR, memory_budget=N**2, **given)
    assert re.findall(r"`(\w+Strategy)`", str(raised.value)) == [other.__name__]
    pool = Pool(X, features=FEATURES)
    if other is not GEGELinearStrategy:
        given |= {"model": PRIOR, "memory_budget": N**2}
    strategy = other(pool, **given)
    batch = strategy.ask(strategy.init(0))
    y = X[batch.order]
    state = strategy.tell(
        strategy.init(0), batch.observe(y if "maximize" in goal else y[:, 0])
    )
    assert state.classification.undecided.numel() == N
