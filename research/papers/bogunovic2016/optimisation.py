r"""The optimisation experiments of Bogunovic et al. (2016): Figures 3a to 3c."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.functional.scores import first_best
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior
from botorch_lse.strategies import TruVaRStrategy
from research.papers.bogunovic2016.level_sets import Sizes, progress
from research.papers.bogunovic2016.problems import (
    PricedProblem,
    peak_problem,
    svm_problem,
)
from research.papers.bogunovic2016.runs import (
    PoolModel,
    expected_improvement,
    regret_of_rule,
    regret_of_strategy,
    upper_confidence_bound,
)

FACTOR, SHORTLIST = 0.5, 50
REFIT_EVERY = 3
SVM_NOISE = 1e-6
"""Noise variance of the noiseless SVM grid, in standardised units."""

Regrets = dict[str, Tensor]

RULES = {"EI": expected_improvement, "GP-UCB": upper_confidence_bound}
FORMS: dict[str, dict[str, Any]] = {
    "TruVaR": {"monotone": False},
    "TruVaR, top 50": {"monotone": False, "prefilter": SHORTLIST},
    "TruVaR, M monotone": {"monotone": True},
}
"""Forms of TruVaR. With ``a = 0.5`` the width is narrow and rows are ruled out wrongly,
so M is found anew in every step, as Appendix A advises; ``top 50`` scores the 50 rows
of largest upper bound only, also from there."""


def peak_regrets(sizes: Sizes) -> Regrets:
    r"""Figures 3a, 3b: ``functions x steps`` regrets of the reported row by method."""
    found: dict[str, list[Tensor]] = {name: [] for name in (*FORMS, *RULES)}
    for seed in progress(sizes.peaks, "maxima"):
        problem = peak_problem(seed, sizes.grid)
        for name, options in FORMS.items():
            strategy = TruVaRStrategy(
                problem.pool,
                model=problem.prior,
                beta_factor=FACTOR,
                only_open=True,
                **options,
            )
            found[name].append(regret_of_strategy(problem, strategy, sizes.steps))
        for name, rule in RULES.items():
            found[name].append(regret_of_rule(problem, rule, sizes.steps))
    return {name: torch.stack(regrets) for name, regrets in found.items()}


# --- the SVM grid -------------------------------------------------------------------


def svm_regrets(path: Path, sizes: Sizes) -> Regrets:
    r"""Figure 3c: ``runs x steps`` best errors so far less the least of the grid."""
    pool, truth = svm_problem(path)
    found: dict[str, list[Tensor]] = {name: [] for name in ("TruVaR", *RULES)}
    for seed in progress(sizes.svm, "SVM grid"):
        prior = GPPrior.from_kernel(ScaleKernel(MaternKernel(2.5)))
        problem = PricedProblem(pool, truth, prior, seed)
        found["TruVaR"].append(_svm_truvar(problem, sizes.svm_steps))
        for name in RULES:
            found[name].append(_svm_rule(problem, name, sizes.svm_steps))
    return {name: torch.stack(regrets) for name, regrets in found.items()}


def fit_svm(
    bounds: Tensor, train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None
) -> SingleTaskGP:
    r"""Matern-5/2 ARD by maximum likelihood, noise fixed to hardly any.

    Args:
        bounds: ``2 x 3`` bounds of the grid.
        train_X: ``n x 3``.
        train_Y: ``n x 1``.
        train_Yvar: Ignored: the grid is noiseless.
    """
    spread = train_Y.var().clamp_min(1e-12) if len(train_Y) > 1 else torch.ones(())
    model = SingleTaskGP(
        train_X,
        train_Y,
        (SVM_NOISE * spread).expand(train_Y.shape).clone(),
        covar_module=ScaleKernel(MaternKernel(2.5, ard_num_dims=3)),
        input_transform=Normalize(3, bounds=bounds),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def every_third(n_rounds: int) -> bool:
    r"""Whether hyper-parameters are learned after so many measurements."""
    return n_rounds % REFIT_EVERY == 0


def _svm_truvar(problem: PricedProblem, n: int) -> Tensor:
    pool = problem.pool
    strategy = TruVaRStrategy(
        pool,
        model=partial(fit_svm, pool.bounds),
        noise_std=SVM_NOISE**0.5 * float(problem.truth.std()),
        beta_factor=FACTOR,
        monotone=False,
        only_open=True,
        refit=every_third,
        n_initial=REFIT_EVERY,
        max_observations=n,
    )
    state = strategy.init(problem.seed)
    at = torch.tensor(start_rows(problem))
    for row in at:  # one round each, so that fits come after the same measurements
        told = Observations(row.unsqueeze(0), problem.truth[row].unsqueeze(0))
        state = strategy.tell(state, told)
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(problem.truth[batch.order]))
    return best_so_far(problem, state.history.indices, n)


def _svm_rule(problem: PricedProblem, name: str, n: int) -> Tensor:
    pool, rows, posterior = problem.pool, start_rows(problem), None
    noise = SVM_NOISE * float(problem.truth.var())
    everything = torch.ones(len(pool), dtype=torch.bool)
    while len(rows) < n:
        at = torch.tensor(rows)
        y = problem.truth[at]
        if posterior is None or every_third(len(rows)):
            posterior = _svm_posterior(pool, at, y, noise)
        else:
            posterior = posterior.observe(at[-1:], y[-1:], torch.tensor([noise]))
        with torch.no_grad():
            function = RULES[name](PoolModel(posterior), float(y.max()), len(rows))
            scores = function(pool.X.unsqueeze(-2))
        rows.append(first_best(scores, everything, 1.0) or 0)
    return best_so_far(problem, torch.tensor(rows), n)


def _svm_posterior(pool: Pool, at: Tensor, y: Tensor, noise: float) -> PoolPosterior:
    prior = GPPrior.from_model(fit_svm(pool.bounds, pool.X[at], y.unsqueeze(-1), None))
    start = PoolPosterior.start(prior, pool.X)
    return start.observe(at, y, torch.full_like(y, noise))


def start_rows(problem: PricedProblem) -> list[int]:
    r"""The random rows that all methods measure first."""
    generator = torch.Generator().manual_seed(2 * problem.seed + 1)
    drawn = torch.randperm(len(problem.pool), generator=generator)
    return [int(row) for row in drawn[:REFIT_EVERY]]


def best_so_far(problem: PricedProblem, rows: Tensor, n: int) -> Tensor:
    r"""``n`` regrets of the best row measured so far."""
    regret = float(problem.truth.max()) - problem.truth[rows].cummax(dim=0).values
    return torch.cat((regret, regret[-1:].expand(max(n - len(rows), 0))))[:n]
