r"""A whole run with a learnt model, refitted after each value, beside BoTorch's."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.functional.scores import straddle
from botorch_lse.rules import Straddle
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, target
from research.report import Report, Table, paragraphs

SIDE, MEASUREMENTS, QUICK = 50, 100, 30
"""Points of a side of the grid, and measurements of a run."""
FIRST = 6
"""The rows that all begin with: two for each input, and two."""
NOISE, LEVEL = 0.02, 0.3
MANY, QUICK_MANY = (1_000, 2_000), (200,)
"""Values told at once, after which one more is told."""
MOST_SINGLE, MOST_FAMILY, MOST_ROUND = 0.25, 1.0, 3.0
"""The targets: CPU seconds over those of BoTorch, and seconds of a round."""
OURS: dict[str, tuple[GaussianProcess, Straddle | None]] = {
    "the default": (GaussianProcess(noise_std=NOISE), None),
    "the default model, straddle": (GaussianProcess(noise_std=NOISE), Straddle()),
    "one kernel": (GaussianProcess(noise_std=NOISE, family="single"), None),
    "one kernel, straddle": (
        GaussianProcess(noise_std=NOISE, family="single"),
        Straddle(),
    ),
}
"""Models and rules of ours by name."""
WHOLE = "BoTorch: `SingleTaskGP`, `fit_gpytorch_mll`, straddle"


@entry(
    "speed", "loop", "a run of 100 refitted measurements beside twenty BoTorch lines"
)
def speed_loop(options: Options) -> Report:
    r"""Runs of all, and one round with many values."""
    n, many = (QUICK, QUICK_MANY) if options.quick else (MEASUREMENTS, MANY)
    theirs = in_fresh_process(cpu_of, by_botorch, n)
    lines: list[tuple[str, ...]] = [(WHOLE, f"{theirs:.1f} s", "", "")]
    for name, (model, _) in OURS.items():
        seconds = in_fresh_process(cpu_of, by_ours, n, name)
        most = MOST_SINGLE if model.family == "single" else MOST_FAMILY
        ratio = seconds / theirs
        cells = f"{seconds:.1f} s", f"{ratio:.2f}"
        lines.append((name, *cells, target(f"{most:g}", ratio <= most)))
    columns = ("method", "CPU", "over BoTorch's", "at most")
    table = Table(f"{n} measurements, a fit after each", columns, lines)
    rounds = []
    for k in many:
        whole, one = in_fresh_process(cpu_of_rounds, k)
        verdict = target(f"{MOST_ROUND:g} s", one <= MOST_ROUND)
        asked = verdict if k == MANY[0] else ""
        rounds.append((f"{k:,}", f"{whole:.1f} s", f"{one:.2f} s", asked))
    columns = (
        "values",
        "all told at once, and a row",
        "one more, and a row",
        "at most",
    )
    title = "CPU of rounds of the default, which fits whenever there are a tenth more"
    more = Table(title, columns, rounds)
    return Report("speed loop", paragraphs(__doc__), [table, more])


def grid() -> tuple[Tensor, Tensor]:
    r"""The pool's points (``N x 2``), and the values of a function without noise."""
    one = torch.linspace(0, 1, SIDE, dtype=torch.float64)
    X = torch.cartesian_prod(one, one)
    return X, (6 * X[:, 0]).sin() * (5 * X[:, 1]).cos() + X.sum(dim=-1) / 2


def first_rows(n: int) -> Tensor:
    r"""Rows drawn at random."""
    return torch.randperm(SIDE**2, generator=torch.Generator().manual_seed(0))[:n]


def noisy(truth: Tensor, rows: Tensor, generator: torch.Generator) -> Tensor:
    r"""The values measured at some rows."""
    noise = torch.randn(len(rows), generator=generator, dtype=torch.float64)
    return truth[rows] + NOISE * noise


def cpu_of(run: Callable[..., int], n: int, *arguments: str) -> float:
    r"""CPU seconds of the second of two runs: the first loads what is loaded once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits to few values
        run(FIRST + 2, *arguments)
        began = time.process_time()
        run(n, *arguments)
        return time.process_time() - began


def by_botorch(n: int) -> int:
    r"""Run straddle by hand, with BoTorch's own model; return the measurements."""
    (X, truth), generator = grid(), torch.Generator().manual_seed(1)
    rows = first_rows(FIRST)
    y = noisy(truth, rows, generator)
    while len(rows) < n:
        model = SingleTaskGP(
            X[rows],
            y.unsqueeze(-1),
            torch.full((len(y), 1), NOISE**2, dtype=torch.float64),
            input_transform=Normalize(2),
            outcome_transform=Standardize(1),
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        with torch.no_grad():
            posterior = model.posterior(X.unsqueeze(-2))
            sigma = posterior.variance.sqrt()
            score = straddle(posterior.mean, sigma, LEVEL, 1.96**2).view(-1)
        new = score.argmax().view(1)
        rows = torch.cat((rows, new))
        y = torch.cat((y, noisy(truth, new, generator)))
    return len(rows)


def by_ours(n: int, name: str) -> int:
    r"""Run a strategy of ours from the same rows; return the measurements."""
    (X, truth), generator = grid(), torch.Generator().manual_seed(1)
    model, rule = OURS[name]
    strategy = Strategy(Pool(X), Above(LEVEL), model=model, rule=rule)
    state, rows = strategy.init(0), first_rows(FIRST)
    state = strategy.tell(state, Observations(rows, noisy(truth, rows, generator)))
    while state.n_used < n:
        batch = strategy.ask(state)
        values = noisy(truth, batch.order, generator)
        state = strategy.tell(state, batch.observe(values))
    return state.n_used


def cpu_of_rounds(n: int) -> tuple[float, float]:
    r"""CPU seconds to tell ``n`` values and ask, and then one more and ask again."""
    (X, truth), generator = grid(), torch.Generator().manual_seed(1)
    strategy = Strategy(Pool(X), Above(LEVEL), model=GaussianProcess(noise_std=NOISE))
    rows, state, seconds = first_rows(n), strategy.init(0), list[float]()
    for _ in range(2):
        values = noisy(truth, rows, generator)
        began = time.process_time()
        state = strategy.tell(state, Observations(rows, values))
        rows = strategy.ask(state).order
        seconds.append(time.process_time() - began)
    return seconds[0], seconds[1]
