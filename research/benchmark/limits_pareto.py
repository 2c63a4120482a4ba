r"""Pareto instances of ``limits``."""

from __future__ import annotations

from collections.abc import Callable

import torch

from botorch_lse.designs import optimal_design
from botorch_lse.strategies import GEGELinearStrategy
from research.benchmark.limits_problems import ANYTIME, Ended, Instance
from research.papers.kone2025.problems import ParetoInstance
from research.papers.kone2025.runs import confident

KONE_DELTA = 0.01


def kone(instance: ParetoInstance) -> Instance:
    r"""A Pareto instance; ``psi`` is that of the pairs that decide each row."""

    def run(build: Callable[[ParetoInstance], object]) -> Callable[[int], Ended]:
        def once(seed: int) -> Ended:
            end = build(instance).simulate(instance.measure(seed), seed)  # type: ignore[attr-defined]
            right = torch.equal(end.classification.above, instance.truth)
            return Ended(end.n_used, right, end.rounds)

        return once

    chosen = confident(KONE_DELTA)
    methods = {
        "GEGE, paper": run(chosen["GEGE"]),
        "racing": run(chosen["racing"]),
        "APE": run(chosen["APE"]),
        f"GEGE, {ANYTIME}": run(
            lambda p: GEGELinearStrategy(
                p.pool,
                maximize=p.maximize,
                noise_std=p.noise_std,
                delta=KONE_DELTA,
            )
        ),
    }
    value = deciding_pairs(instance)
    n = len(instance.X)
    return Instance(
        f"Kone, {instance.name}", lambda seed: value, False, n, KONE_DELTA, methods
    )


def deciding_pairs(instance: ParetoInstance) -> float:
    r"""``min over lam of max |z_i - z_j|^2 / gap_ij^2``: an oracle's verification.

    A dominated row is paired with its strongest dominator, an optimal row with every
    other row, whose largest advantage over it must be refuted in one output.
    """
    mu, X = instance.means, instance.X
    low = (mu.unsqueeze(0) - mu.unsqueeze(1)).amin(dim=-1)  # [i, j]: j over i
    low.fill_diagonal_(-torch.inf)
    strongest = low.argmax(dim=1)
    vectors, gaps = [], []
    for i in range(len(mu)):
        others = torch.arange(len(mu)) != i
        rivals = others if bool(instance.truth[i]) else strongest[i : i + 1]
        vectors.append(X[i] - X[rivals])
        gaps.append(low[i, rivals].abs())
    weights = instance.noise_std**2 / torch.cat(gaps).square()
    return optimal_design(X, torch.cat(vectors), target_weights=weights).value
