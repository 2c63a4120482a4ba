r"""Measurements until a learnt answer is decided, and until it is audited.

On functions that a stationary model suits, as `trust easy` has them: the default
strategy; the same with an audit; the default as it was, BoTorch's kernel after ``10 d``
first rows at a theorem's width; and the strategies LSE and Straddle of Gotovos et al.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

from botorch_lse.confidence.schedules import UnionBeta
from botorch_lse.strategies import Above, ComposedStrategy, GaussianProcess, Strategy
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.benchmark.trust_all import CHARTS
from research.benchmark.trust_problems import EASY, FUNCTIONS, Instance
from research.benchmark.trust_runs import (
    AUDIT,
    AUDIT_ROOM,
    BATCHES,
    PRESETS,
    Tested,
    Way,
    refits_after_growth,
    states_of,
)
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 10, 1
LIMIT = 400
"""Measurements after which a run is no longer waited for."""
DEFAULT, AUDITED, BEFORE = "default", "default, audited", "default before"
METHODS = (DEFAULT, BEFORE, *("LSE", "Straddle"))
COLUMNS = (DEFAULT, AUDITED, *METHODS[1:])
DELTA = 0.05
FIRST = 10
"""The first rows for each input of the default as it was."""
MOST_DECIDED, WORST_DECIDED = 0.5, 0.9
MOST_AUDITED, WORST_AUDITED, LONG = 1.4, 1.0, 150
"""Targets over the default as it was: all measurements until decided, the worst
function; all until audited, and the worst function among those where it took so many.
"""


@dataclass(frozen=True)
class Job:
    r"""A run: a function of its function, its method, the noise and its seed."""

    function: str
    method: str
    batch: int
    is_noise_known: bool
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""What came out.

    Args:
        job: What was run.
        decided: Measurements until all rows were decided, or the limit.
        audited: Measurements until the answer was audited, or the limit; of methods
            without an audit ``decided`` again.
        is_decided: Whether all rows were decided within the limit.
        is_audited: Whether an audit has confirmed them.
        wrong: The share of all rows that were decided wrongly at the end.
    """

    job: Job
    decided: int
    audited: int
    is_decided: bool
    is_audited: bool
    wrong: float


def strategy_of(job: Job, instance: Instance) -> Tested:
    r"""The strategy of a job, the default with its audit."""
    learnt: dict[str, Any] = {"refit": refits_after_growth}
    if job.is_noise_known:
        learnt["noise_std"] = instance.noise_std
    pool, goal = instance.pool, Above(instance.threshold, instance.epsilon)
    whole: dict[str, Any] = {"batch_size": job.batch, "max_observations": LIMIT}
    if job.method in PRESETS:
        preset = PRESETS[job.method]
        level, epsilon = instance.threshold, instance.epsilon
        return preset(pool, level, epsilon=epsilon, **learnt, **whole)
    if job.method == BEFORE:
        first = FIRST * pool.n_inputs
        model = GaussianProcess(family="single", n_initial=first, **learnt)
        whole["beta"] = UnionBeta(len(pool), DELTA)
    else:
        model = GaussianProcess(**learnt)
        whole |= {"audit": AUDIT, "max_observations": LIMIT + AUDIT_ROOM}
    strategy = Strategy(pool, goal, model=model, **whole)
    assert isinstance(strategy, ComposedStrategy)  # which ``Strategy(...)`` makes
    return strategy


def run(job: Job) -> list[Run]:
    r"""Play a job."""
    instance = FUNCTIONS[job.function].make(job.seed)
    way = Way(instance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits to few values
        for state in states_of(strategy_of(job, instance), instance, job.seed):
            way.note(state.classification, state.n_used)
            if way.decided_at is None and state.n_used >= LIMIT:
                break
    decided, is_audited = way.decided_at, state.stop_reason == "audited"
    is_decided = decided is not None
    audited = state.n_used if is_audited or not is_decided else LIMIT + AUDIT_ROOM
    if job.method != DEFAULT:
        audited = decided or LIMIT
    wrong = way.wrong(state.classification)
    return [Run(job, decided or LIMIT, audited, is_decided, is_audited, wrong)]


@entry("price", "all", "measurements until decided and until audited", CHARTS)
def price(options: Options) -> Report:
    r"""All easy functions."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    names = [name for name, function in FUNCTIONS.items() if function.kind == EASY]
    every = product(range(seeds), (True, False), BATCHES, names, METHODS)
    jobs = [
        Job(name, method, batch, is_known, seed)
        for seed, is_known, batch, name, method in every
    ]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""The prices by function, and how they compare."""
    data = {"runs": [one.record() for one in runs]}
    tables = [price_table(runs), end_table(runs), target_table(runs)]
    return Report("price", paragraphs(__doc__), tables, data=data)


def prices(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    r"""Mean measurements by function, and by method until decided or audited."""
    found: dict[str, dict[str, float]] = {}
    for function, method in dict.fromkeys((r.job.function, r.job.method) for r in runs):
        own = [r for r in runs if (r.job.function, r.job.method) == (function, method)]
        cell = found.setdefault(function, {})
        cell[method] = sum(r.decided for r in own) / len(own)
        if method == DEFAULT:
            cell[AUDITED] = sum(r.audited for r in own) / len(own)
    return found


def price_table(runs: Sequence[Run]) -> Table:
    r"""The mean measurements by function, and their sums."""
    cells = prices(runs)
    rows = [
        (name, *(f"{cell[column]:.0f}" for column in COLUMNS))
        for name, cell in cells.items()
    ]
    sums = (sum(cell[column] for cell in cells.values()) for column in COLUMNS)
    rows.append(("sum", *(f"{each:.0f}" for each in sums)))
    words = f"Mean measurements until decided; not decided counts as {LIMIT}"
    return Table(words, ("function", *COLUMNS), rows)


def end_table(runs: Sequence[Run]) -> Table:
    r"""How many runs reached their end, and the answers' errors."""
    rows = []
    for method in dict.fromkeys(run.job.method for run in runs):
        own = [run for run in runs if run.job.method == method]
        decided = [run for run in own if run.is_decided]
        wrong = max(run.wrong for run in own)
        sizes = [run.audited - run.decided for run in own if run.is_audited]
        audits = f"{len(sizes)}, {median(sizes):g}" if sizes else ""
        rows.append((method, len(own), len(decided), f"{wrong:.1%}", audits))
    columns = ("method", "runs", "decided", "most rows wrong", "audited, median size")
    return Table("How they ended", columns, rows)


def target_table(runs: Sequence[Run]) -> Table:
    r"""Each target with what was measured."""
    cells = prices(runs)
    worst = {
        column: max(cell[column] / cell[BEFORE] for cell in cells.values())
        for column in (DEFAULT, AUDITED)
    }
    long = [cell for cell in cells.values() if cell[BEFORE] >= LONG]
    rows = []

    def add(target: str, most: float, value: float) -> None:
        verdict = "met" if value <= most else "NOT MET"
        rows.append((target, f"at most {most:g}", f"{value:.2f}", verdict))

    def sums(column: str) -> float:
        return sum(cell[column] for cell in cells.values())

    over = "over the default before"
    add(f"decided {over}, sum", MOST_DECIDED, sums(DEFAULT) / sums(BEFORE))
    add(f"decided {over}, worst function", WORST_DECIDED, worst[DEFAULT])
    add(f"audited over decided {over}, sum", MOST_AUDITED, sums(AUDITED) / sums(BEFORE))
    if long:
        value = max(cell[AUDITED] / cell[BEFORE] for cell in long)
        add(f"the same, worst where {LONG} or more were needed", WORST_AUDITED, value)
    return Table("Targets", ("target", "asked", "measured", "verdict"), rows)
