r"""A failure probability by the target alone, and with a published cheap source.

The cases and their cheap versions are those of Yi et al. (2021), with the costs there.
Two more sources of the first case tell nothing, or are right on one side and have the
wrong sign on the other.

Rows are quasi-random points of the inputs' normal distributions with larger standard
deviations, others for each seed, which count by the ratio of the densities: of rows
drawn from the distribution itself few would fail. The estimate is the weight of all
rows whose mean is above 0; a cost to an error is that from which on it differs from the
true weight of the same rows by at most that share of it. Costs count the initial
design.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from scipy.stats import norm
from torch import Tensor

from botorch_lse import Above, GaussianProcess, Observations, Pool, State, Strategy
from research.benchmark.peers_sources import cheap, dear, reached
from research.benchmark.peers_transfer import mean_of
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 10, 1
ROWS, BATCH, MOST = 400, 4, 60.0
"""The number of rows, the measurements between two fits, and the cost after which a run
ends."""
ERROR = 0.05
"""The relative error of the probability to which costs are compared."""

Function = Callable[[Tensor], Tensor]


def four_branch(slope: float) -> Function:
    r"""A series system of four branches; fails above 0.

    Args:
        slope: The factor of the second input in two of them: 1, and 0.9 if cheap.
    """

    def f(X: Tensor) -> Tensor:
        x, y = X.unbind(dim=-1)
        bowl, along = 3 + (x - y).square() / 10, (x + y) / math.sqrt(2)
        across, shift = x - slope * y, 7 / math.sqrt(2)
        branches = (bowl - along, bowl + along, across + shift, shift - across)
        return -torch.stack(branches).amin(dim=0)

    return f


def oscillator(lag: float) -> Function:
    r"""An undamped oscillator under a pulse; fails above 0.

    Args:
        lag: The shift of its phase: 0, and 0.1 if cheap.
    """

    def f(X: Tensor) -> Tensor:
        m, c1, c2, r, force, t = X.unbind(dim=-1)
        w = ((c1 + c2) / m).sqrt()
        return (2 * force / (m * w.square()) * (w * t / 2 - lag).sin()).abs() - 3 * r

    return f


def truss(concrete: float, steel: float) -> Function:
    r"""The deflection of a roof truss beyond 3 cm.

    Args:
        concrete: The factor of the share of concrete: 1, and 1.2 if cheap.
        steel: The factor of the share of steel: 1, and 0.8 if cheap.
    """

    def f(X: Tensor) -> Tensor:
        q, span, a_steel, a_concrete, e_steel, e_concrete = X.unbind(dim=-1)
        parts = 3.81 * concrete / (a_concrete * e_concrete)
        parts = parts + 1.13 * steel / (a_steel * e_steel)
        return q * span.square() / 2 * parts - 0.03

    return f


def useless(X: Tensor) -> Tensor:
    r"""A function that has nothing to do with the first case."""
    x, y = X.unbind(dim=-1)
    return 2 * torch.sin(1.7 * x + 2.3 * y) * torch.cos(2.1 * y - x)


def harmful(X: Tensor) -> Tensor:
    r"""The first case, with the wrong sign where the first input is above its mean."""
    return dear(X) * torch.tanh((1.5 - X[..., 0]) / 0.2)


@dataclass(frozen=True)
class Case:
    r"""A case: the target, what tells of it, and what is known of both.

    Args:
        f: The target, which fails above 0.
        inputs: ``d`` pairs of mean and standard deviation.
        widened: The factor of these from which rows are drawn.
        sources: The sources by their names.
        cost: The cost of each.
        probability: Of failure, and that by the first source alone.
    """

    f: Function
    inputs: tuple[tuple[float, float], ...]
    widened: float
    sources: dict[str, Function]
    cost: float
    probability: tuple[float, float]

    def rows(self, seed: int) -> tuple[Tensor, Tensor]:
        r"""The rows (``N x d``) and their weights (``N``), which sum to 1."""
        drawn = [norm(mean, self.widened * std) for mean, std in self.inputs]
        X = Pool.from_distribution(drawn, ROWS, seed=seed).X
        mean, std = torch.tensor(self.inputs, dtype=torch.float64).unbind(dim=-1)
        z = ((X - mean) / std).square().sum(dim=-1)
        weight = (-0.5 * z * (1 - self.widened**-2)).exp()
        return X, weight / weight.sum()


def _oscillator(std: float) -> tuple[tuple[float, float], ...]:
    return (1.0, 0.05), (1.0, 0.1), (0.1, 0.01), (0.5, 0.05), (1.0, std), (1.0, std)


_TRUSS = (
    (20_000.0, 2_000.0),
    (13.5, 0.5),
    (9.82e-4, 6e-5),
    (0.04, 0.008),
    (1.2e11, 1.2e10),
    (3e10, 3e9),
)
PUBLISHED = "published"
_RP53: dict[str, Function] = {PUBLISHED: cheap, "useless": useless, "harmful": harmful}
_BRANCH, _LAG, _TRUSS_CHEAP = four_branch(0.9), oscillator(0.1), truss(1.2, 0.8)
CASES = {
    "RP53": Case(dear, ((1.5, 1.0), (2.5, 1.0)), 2.0, _RP53, 0.2, (0.03127, 0.322)),
    "four branches, 7": Case(
        four_branch(1.0),
        ((0.0, 1.0), (0.0, 1.0)),
        2.0,
        {PUBLISHED: _BRANCH},
        0.2,
        (2.217e-3, 1.980e-3),
    ),
    "oscillator, 0.2": Case(
        oscillator(0.0),
        _oscillator(0.2),
        1.5,
        {PUBLISHED: _LAG},
        0.1,
        (2.863e-2, 6.52e-3),
    ),
    "oscillator, 0.1": Case(
        oscillator(0.0),
        _oscillator(0.1),
        1.5,
        {PUBLISHED: _LAG},
        0.1,
        (2.40e-3, 9.3e-5),
    ),
    "roof truss": Case(
        truss(1.0, 1.0), _TRUSS, 1.5, {PUBLISHED: _TRUSS_CHEAP}, 0.1, (0.0717, 0.0224)
    ),
}
"""The cases. Their probabilities were computed by 4 to 10 million draws."""
ALONE = "alone"


@dataclass(frozen=True)
class Job:
    r"""A run: the case, the source beside the target, and the seed."""

    case: str
    source: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""The outcome of a run.

    Args:
        job: What was run.
        cost: The cost to ``ERROR``; all that the run cost if it was not reached.
        ended: The cost at which all was decided, or the run ended.
        dear: The number of measurements of the target.
        undecided: Rows without an answer at the end.
        wrong: Decided rows on the wrong side at the end.
    """

    job: Job
    cost: float
    ended: float
    dear: int
    undecided: int
    wrong: int


def run(job: Job) -> Sequence[Run]:
    r"""Play a run until all is decided, or it has cost ``MOST``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that a source misleads
        return [played(job)]


def played(job: Job) -> Run:
    r"""The outcome of a run."""
    case = CASES[job.case]
    X, weight = case.rows(job.seed)
    target = case.f(X)
    scale = target.std()  # the level is 0 in any unit
    plan, y, prices = Pool(X), target / scale, torch.ones(1)
    model = GaussianProcess(noise_std=0.0)
    if job.source != ALONE:
        prices = torch.tensor([case.cost, 1.0], dtype=torch.float64)
        costs, exact = prices.tolist(), (0.0, 0.0)
        plan = plan.at_sources(("cheap", "dear"), costs=costs, noise_var=exact)
        y = torch.cat((case.sources[job.source](X) / scale, y))
        model = GaussianProcess()
    strategy, truth = Strategy(plan, Above(0.0), model=model), target > 0
    state, spent = strategy.init(job.seed), 0.0
    trace, whole = list[tuple[float, float]](), float(weight[truth].sum())
    while state.stop_reason is None and spent < MOST:
        rows = strategy.ask(state, size=BATCH).order
        state = strategy.tell(state, Observations(rows, y[rows]))
        spent += float(prices[rows // ROWS].sum())
        found = float(weight[state.classification.mean > 0].sum())
        trace.append((spent, abs(found / whole - 1)))
    return Run(
        job,
        min(reached(trace, ERROR), spent),
        spent,
        int((state.observations.indices // ROWS == len(prices) - 1).sum()),
        *errors(state, truth),
    )


def errors(state: State, truth: Tensor) -> tuple[int, int]:
    r"""The numbers of undecided rows, and of rows that are decided wrongly."""
    answer = state.classification
    is_wrong = (answer.above & ~truth) | (answer.below & truth)
    return int(answer.undecided.sum()), int(is_wrong.sum())


@entry("peers", "failures", "costs of failure probabilities with cheap sources")
def failures(options: Options) -> Report:
    r"""All cases and sources."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    names = list(CASES)[: 1 if options.quick else None]
    jobs = [
        Job(name, source, seed)
        for seed, name in product(range(seeds), names)
        for source in (ALONE, *CASES[name].sources)
    ]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""The costs beside those of the target alone, and the runs themselves."""
    data = {"runs": [one.record() for one in runs]}
    return Report("failures", paragraphs(__doc__), [ratio_table(runs)], data=data)


def ratio_table(runs: Sequence[Run]) -> Table:
    r"""The mean costs, and their ratios to those of the target alone."""
    rows = []
    for name, case in CASES.items():
        for source in (ALONE, *case.sources):
            own = [r for r in runs if (r.job.case, r.job.source) == (name, source)]
            seeds = {r.job.seed for r in own}
            alone = [
                r
                for r in runs
                if (r.job.case, r.job.source) == (name, ALONE) and r.job.seed in seeds
            ]
            if not own or len(alone) < len(own):
                continue
            means = [mean_of(own, part) for part in ("cost", "ended", "dear")]
            ratios = [
                mean_of(own, part) / mean_of(alone, part) for part in ("cost", "ended")
            ]
            shown = [f"{x:.3g}" for x in (*means, *ratios)]
            left = sum(r.undecided for r in own), sum(r.wrong for r in own)
            rows.append((name, source, len(own), *shown, *left))
    at = f"cost to {ERROR:.0%}"
    heads = (at, "all decided", "of the target", f"{at}, ratio", "decided, ratio")
    first = ("case", "source", "runs")
    return Table("Costs: means", (*first, *heads, "undecided", "wrong rows"), rows)
