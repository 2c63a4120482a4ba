r"""How often a strategy that learns its model says "decided" and is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from statistics import mean, median

from botorch_lse.strategies.algorithm import AUDITED
from research.benchmark import trust_runs
from research.benchmark.recorded import measure
from research.benchmark.registry import Options, entry
from research.benchmark.trust_problems import (
    ACCURACY,
    EASY,
    FUNCTIONS,
    KINDS,
    NOISE,
    NON_STATIONARY,
    STATIONARY,
)
from research.benchmark.trust_runs import (
    ARMS,
    AUDIT,
    AUDIT_ROOM,
    BATCHES,
    BEFORE,
    DEFAULT,
    DEFAULT_BEFORE,
    GROWTH,
    LEAST_FOUND,
    LIMIT,
    LIMIT_1D,
    MOST_WRONG,
    NOW,
    STRATEGIES,
    WITH_AUDIT,
    Job,
    Run,
)
from research.report import Report, Table
from research.statistics import WrongFraction

SEEDS, QUICK_SEEDS, QUICK_BATCHES = 10, 2, (8,)
MOST_FALSE = {STATIONARY: 0.03, NON_STATIONARY: 0.15}
MOST_FALSE_AUDITED, MEAN_PRICE, WORST_PRICE = 0.02, 1.1, 1.5
AUDIT_PRICE, MOST_WRONG_ALONG = 90, 0.02
"""The targets: shares of falsely decided runs, measurements over those of the strategy
as it was, further measurements of an audit, decided rows that are wrong on the way."""

CHARTS = ("matplotlib",)
"""Comes with the two real tables."""

NOTES = (
    f"Model learnt (`None`), noise of {NOISE:g} of the function's range (less on real "
    f"tables), known to the strategy or learnt, accuracy {ACCURACY:g} times the noise; "
    f"batches of {' and '.join(map(str, BATCHES))}. Run k of a function uses seed k.",
    "A run that says it is decided, or audited, is false if more than "
    f"{MOST_WRONG:.0%} of all rows are on the wrong side by more than the accuracy, or "
    f"less than {LEAST_FOUND:.0%} of the region was found. Shares are of all runs.",
    f"`{BEFORE}`: 2 (d + 1) first rows, the scale as fitted (`level_z=None`), and "
    "one-sided data decide where the strategy has a switch for that. "
    "On functions with hidden regions it is run in batches of "
    f"{QUICK_BATCHES[0]} only. "
    f"`{NOW}`: as users get it. `{WITH_AUDIT}`: the same with `audit={AUDIT}`. "
    f"Before there was the strategy `{DEFAULT}`, users got {DEFAULT_BEFORE}: the price "
    "is over that.",
    f"A run ends undecided after {LIMIT_1D} measurements in 1-D, {LIMIT} beyond; an "
    f"audit may take {AUDIT_ROOM} more. The model is fitted again whenever there are "
    f"{GROWTH:g} times as many rounds.",
    "Along the run: of the rows decided after a round, those that are wrong, mean over "
    "the rounds with decided rows.",
)


@entry("trust", "all", "false answers of learnt models, and what caution costs", CHARTS)
def trust_all(options: Options) -> Report:
    r"""Run all strategies on all functions, and report."""
    return _reported("trust", list(FUNCTIONS), options)


@entry("trust", "hidden", "the same on functions with hidden regions only")
def trust_hidden(options: Options) -> Report:
    r"""The functions with hidden regions."""
    names = [name for name, f in FUNCTIONS.items() if f.kind != EASY]
    return _reported("trust hidden", names, options)


@entry("trust", "easy", "the same on easy functions only", CHARTS)
def trust_easy(options: Options) -> Report:
    r"""The same on functions that a stationary model suits."""
    names = [name for name, f in FUNCTIONS.items() if f.kind == EASY]
    return _reported("trust easy", names, options)


@entry("trust", "default", "the default strategy alone, with and without an audit")
def trust_default(options: Options) -> Report:
    r"""All functions, and no strategy but the one that users get."""
    return _reported("trust default", list(FUNCTIONS), options, (DEFAULT,))


def _reported(
    title: str,
    names: Sequence[str],
    options: Options,
    strategies: Sequence[str] = STRATEGIES,
) -> Report:
    to_run = jobs(names, options, strategies)
    return report(title, measure(Run, trust_runs.run, to_run, *options.where))


def jobs(
    names: Sequence[str], options: Options, strategies: Sequence[str] = STRATEGIES
) -> list[Job]:
    r"""What to run; seed by seed, so that what ended early is balanced.

    Args:
        names: Functions.
        options: The command line's.
        strategies: Names of those under test.
    """
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    batches = QUICK_BATCHES if options.quick else BATCHES
    noises = (True,) if options.quick else (True, False)
    order = product(range(seeds), batches, noises, names, strategies, (True, False))
    return [
        Job(name, strategy, batch, is_known, seed, is_before)
        for seed, batch, is_known, name, strategy, is_before in order
        if not is_before or _is_compared(name, strategy, batch)
    ]


def _is_compared(name: str, strategy: str, batch: int) -> bool:
    r"""Whether a strategy is run as it was, too.

    The price is asked on easy functions. On the others batches of one size show what
    the old behaviour led to.
    """
    if strategy == DEFAULT:
        return False  # what it was compared with is another strategy's, and run there
    return FUNCTIONS[name].kind == EASY or batch in QUICK_BATCHES


def report(title: str, runs: Sequence[Run]) -> Report:
    r"""Tables, targets and the runs themselves."""
    tables = [
        false_table(runs),
        sources_table(runs),
        price_table(runs),
        audit_table(runs),
        along_table(runs),
        targets_table(runs),
    ]
    data = {"runs": [run.record() for run in runs]}
    return Report(title, NOTES, [t for t in tables if t.rows], data=data)


def chosen(
    runs: Iterable[Run],
    arm: str | None = None,
    kind: str | None = None,
    strategy: str | None = None,
) -> list[Run]:
    r"""The runs of an arm, a kind of function, a strategy; ``None``: any."""
    return [
        run
        for run in runs
        if arm in (None, run.arm)
        and kind in (None, FUNCTIONS[run.job.function].kind)
        and strategy in (None, run.job.strategy)
    ]


# --- false answers --------------------------------------------------------------------


def false_share(runs: Sequence[Run], most: float) -> WrongFraction:
    r"""How many runs were falsely decided, against a share that may be."""
    return WrongFraction(sum(run.is_false for run in runs), len(runs), most)


def false_table(runs: Sequence[Run]) -> Table:
    r"""Falsely decided runs by kind of function, strategy and arm."""
    rows = []
    for kind, strategy, arm in product(KINDS, (None, *STRATEGIES), ARMS):
        some = chosen(runs, arm, kind, strategy)
        if not some:
            continue
        found = false_share(some, 0.0)
        low, high = found.interval
        rows.append(
            (
                kind,
                "all" if strategy is None else strategy,
                arm,
                len(some),
                f"{mean(run.is_decided for run in some):.0%}",
                found.wrong,
                f"{found.fraction:.3f}",
                f"[{low:.3f}, {high:.3f}]",
            )
        )
    columns = ("functions", "strategy", "arm", "runs", "decided", "false")
    more = ("share", "95 % Clopper-Pearson")
    return Table("Falsely decided runs", (*columns, *more), rows)


def sources_table(runs: Sequence[Run]) -> Table:
    r"""Falsely decided runs by function and setting, where there are any."""
    rows = []
    for name, strategy in product(FUNCTIONS, STRATEGIES):
        some = [run for run in runs if run.job.function == name]
        by_arm = [chosen(some, arm, strategy=strategy) for arm in ARMS]
        if not any(run.is_false for arm in by_arm for run in arm):
            continue
        counts = [f"{sum(r.is_false for r in arm)} of {len(arm)}" for arm in by_arm]
        rows.append((name, strategy, *counts))
    return Table("Where they come from", ("function", "strategy", *ARMS), rows)


# --- prices ---------------------------------------------------------------------------


def prices(runs: Sequence[Run]) -> dict[tuple[str, str], tuple[float, float]]:
    r"""Median measurements of the strategy as it was, and as it is, until decided.

    By easy function and strategy, over the pairs of runs of the same setting and seed
    that both decided rightly.
    """
    easy = chosen(runs, kind=EASY)
    before = {_setting_before(run): run for run in chosen(easy, BEFORE)}
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for run in chosen(easy, NOW):
        other = before.get(_setting_before(run))
        if other is None or not all(r.is_decided and r.is_right for r in (run, other)):
            continue
        cell = pairs.setdefault((run.job.function, run.job.strategy), [])
        cell.append((other.n_used, run.n_used))
    return {
        cell: (median(b for b, _ in found), median(n for _, n in found))
        for cell, found in pairs.items()
    }


def _setting_before(run: Run) -> tuple[object, ...]:
    r"""What a run has in common with that of the strategy as it was."""
    job = run.job
    strategy = DEFAULT_BEFORE if job.strategy == DEFAULT else job.strategy
    return job.function, strategy, job.batch, job.is_noise_known, job.seed


def price_table(runs: Sequence[Run]) -> Table:
    r"""Measurements until decided on easy functions."""
    rows = [
        (name, strategy, f"{old:g}", f"{new:g}", f"{new / old:.2f}")
        for (name, strategy), (old, new) in prices(runs).items()
    ]
    columns = ("function", "strategy", f"median, {BEFORE}", f"median, {NOW}", "ratio")
    return Table("Measurements until decided, where both were right", columns, rows)


def audit_prices(runs: Sequence[Run]) -> list[int]:
    r"""What audits that passed took after the first full decision, if it was right."""
    return [
        run.n_used - run.decided_at
        for run in chosen(runs, WITH_AUDIT)
        if run.stop_reason == AUDITED and run.is_right and run.decided_at is not None
    ]


def audit_table(runs: Sequence[Run]) -> Table:
    r"""How audits ended, and what those of right answers took."""
    rows = []
    for kind in KINDS:
        some = chosen(runs, WITH_AUDIT, kind)
        begun = [run for run in some if run.decided_at is not None]
        took = sorted(audit_prices(some))
        if not took:
            continue
        passed = sum(run.stop_reason == AUDITED for run in begun)
        cells = (f"{median(took):g}", took[int(0.9 * (len(took) - 1))])
        rows.append((kind, len(begun), passed, *cells))
    columns = ("functions", "begun", "passed", "median measurements", "90 % quantile")
    return Table("Audits; measurements where the answer is right", columns, rows)


# --- on the way -----------------------------------------------------------------------


def along(runs: Sequence[Run]) -> tuple[float, str, float]:
    r"""Mean wrong share of decided rows, and the worst function with its mean."""
    by_function: dict[str, list[float]] = {}
    for run in runs:
        by_function.setdefault(run.job.function, []).append(run.along)
    means = {name: mean(shares) for name, shares in by_function.items()}
    worst = max(means, key=lambda name: means[name])
    return mean(run.along for run in runs), worst, means[worst]


def along_table(runs: Sequence[Run]) -> Table:
    r"""Wrong shares along the runs."""
    rows = []
    for kind, arm in product(KINDS, ARMS):
        some = chosen(runs, arm, kind)
        if some:
            share, worst, most = along(some)
            rows.append((kind, arm, f"{share:.2%}", f"{worst}: {most:.2%}"))
    columns = ("functions", "arm", "mean", "worst function")
    return Table("Decided rows that are wrong, along the run", columns, rows)


# --- targets --------------------------------------------------------------------------


def targets_table(runs: Sequence[Run]) -> Table:
    r"""Each target with what was measured."""
    rows: list[tuple[str, str, str]] = []

    def add(target: str, measured: str, is_met: bool) -> None:
        rows.append((target, measured, "met" if is_met else "NOT MET"))

    for kind, most in MOST_FALSE.items():
        if some := chosen(runs, NOW, kind):
            found = false_share(some, most)
            text = f"{found.fraction:.1%} ({found.wrong} of {found.runs})"
            is_met = found.fraction <= most
            add(f"false, {kind}, no audit: at most {most:.0%}", text, is_met)
    audited = [some for kind in KINDS if (some := chosen(runs, WITH_AUDIT, kind))]
    shares = [false_share(some, MOST_FALSE_AUDITED).fraction for some in audited]
    text = ", ".join(f"{share:.1%}" for share in shares)
    is_met = all(share <= MOST_FALSE_AUDITED for share in shares)
    name = f"false, with an audit, each kind: at most {MOST_FALSE_AUDITED:.0%}"
    add(name, text, is_met)
    ratios = [new / old for old, new in prices(runs).values()]
    if ratios:
        name = "measurements on easy functions, over before"
        for most, value, which in (
            (MEAN_PRICE, mean(ratios), "mean"),
            (WORST_PRICE, max(ratios), "worst"),
        ):
            is_met = value <= most
            add(f"{name}, {which}: at most {most:g}", f"{value:.2f}", is_met)
    if took := audit_prices(runs):
        name = f"measurements of an audit, median: at most {AUDIT_PRICE}"
        add(name, f"{median(took):g}", median(took) <= AUDIT_PRICE)
    if some := chosen(runs, NOW):
        share, worst, most = along(some)
        name = f"decided rows wrong along the run: at most {MOST_WRONG_ALONG:.0%}"
        text = f"{share:.2%} (worst {worst}: {most:.2%})"
        add(name, text, share <= MOST_WRONG_ALONG)
    return Table("Targets", ("target", "measured", "verdict"), rows)
