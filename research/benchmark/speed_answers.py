r"""Exact scores of an answer: every row as a candidate, and as a target."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from botorch.models.approximate_gp import SingleTaskVariationalGP
from gpytorch.likelihoods import BernoulliLikelihood
from torch import Tensor

from botorch_lse import Pool, acquisition
from botorch_lse.acquisition.answers import TargetedAnswer
from botorch_lse.functional.answers import AnswerAhead
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, measured, target
from research.report import Report, Table

ROWS, ANSWERS, ROUNDS = 2500, 100, 5
"""Rows, answers before, and how often each is measured; the median counts."""
SECONDS = 1.0
"""What the scores of 2,500 rows for as many targets may take."""
SCALE = 1.5
"""How far the true latent function goes."""
Score = Callable[[AnswerAhead, Tensor, Tensor], Tensor]
FUNCTIONS: dict[str, tuple[type[TargetedAnswer], Score]] = {
    "mutual information": (
        acquisition.BernoulliGlobalMI,
        lambda answer, b, t: answer.removed("entropy", b, t).sum(dim=-1),
    ),
    "expected misclassification": (
        acquisition.BernoulliMisclassification,
        lambda answer, b, t: answer.removed("product", b, t).sum(dim=-1),
    ),
    "volume change": (
        acquisition.BernoulliEAVC,
        lambda answer, b, t: answer.volume_change(t),
    ),
}


@entry("speed", "answers", "exact scores of an answer at 2,500 rows for 2,500 targets")
def speed_answers(options: Options) -> Report:
    r"""Seconds of all scores, without and with the model's posterior."""
    rows, data, threads = [], dict[str, float](), torch.get_num_threads()
    for d in (2, 6):
        for name in FUNCTIONS:
            own, whole = in_fresh_process(scored, name, d, ROWS, ROUNDS, threads)
            shown = target(f"{own:.2f}", own <= SECONDS)
            rows.append((name, d, shown, f"{whole:.2f}"))
            data[f"{name}, {d}-D"] = own
    head = ("scores", "inputs", "seconds", "with the posterior")
    notes = [
        f"{ROWS} rows, each a candidate and a target, after {ANSWERS} answers; medians "
        f"of {ROUNDS} with {threads} threads; scores take at most "
        f"{SECONDS:g} s. The posterior is that of GPyTorch's variational model.",
    ]
    table = Table("Seconds of exact scores", head, rows)
    return Report("speed answers", notes, [table], (), data)


def scored(name: str, d: int, n: int, rounds: int, threads: int) -> tuple[float, float]:
    r"""Median seconds of the scores of all rows, without and with the posterior.

    Args:
        name: One of ``FUNCTIONS``.
        d: The number of inputs.
        n: Rows.
        rounds: How often they are scored, after once that does not count.
        threads: What torch may use; fresh processes have one.
    """
    torch.set_num_threads(threads)
    pool = Pool.from_box([[0.0] * d, [1.0] * d], n)
    model = classifier(pool.X[: min(ANSWERS, n)])
    cls, score = FUNCTIONS[name]
    acqf = cls(model, pool, threshold=0.75)
    own, whole = list[float](), list[float]()
    with torch.no_grad():
        points = acqf.covariance.prepare(pool.X)
        covariance = acqf.covariance.between(points, points)
        mean = acqf.distance + acqf.outcome.latent(acqf.threshold)
        answer, b = acqf.outcome.ahead(mean, acqf.variance), acqf.ratio
        for _ in range(rounds + 1):
            with measured() as cost:
                values = acqf(pool.X.unsqueeze(-2))
            whole.append(cost.seconds)
            with measured() as cost:
                sides = acqf.distance, acqf.variance
                alone = [
                    score(some, b, some.with_sides(*sides, rows))
                    for some, rows in answer.pieces(covariance)
                ]
            own.append(cost.seconds)
    torch.testing.assert_close(torch.cat(alone), values)
    return median(own[1:]), median(whole[1:])


def classifier(X: Tensor) -> SingleTaskVariationalGP:
    r"""A model after an answer at each of ``n x d`` points, with fixed lengthscales."""
    generator = torch.Generator().manual_seed(0)
    f = SCALE * torch.sin(5 * X).sum(dim=-1)
    drawn = torch.randn(len(X), generator=generator, dtype=X.dtype)
    y = (f + drawn > 0).to(X).unsqueeze(-1)
    likelihood = BernoulliLikelihood()
    model = SingleTaskVariationalGP(
        X, y, likelihood=likelihood, inducing_points=X, learn_inducing_points=False
    )
    # What variational inference would find nearly: a value at each point, less sure.
    strategy = model.model.variational_strategy
    distribution = strategy._variational_distribution
    strategy.variational_params_initialized.fill_(1)
    with torch.no_grad():
        distribution.variational_mean.copy_(0.3 * (2 * y[:, 0] - 1))
        distribution.chol_variational_covar.copy_(0.8 * torch.eye(len(X)).to(X))
    return model.eval()
