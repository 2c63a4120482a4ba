r"""Which rule leaves the fewest rows on a wrong side, on problems of several kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby, product
from statistics import mean, median, stdev
from typing import Any

from research.benchmark import peers_runs
from research.benchmark.peers_problems import CHOOSING, PROBLEMS, REPORTED, Problem
from research.benchmark.peers_runs import (
    DEFAULT,
    FIRST_PER_INPUT,
    METHODS,
    Job,
    Run,
)
from research.benchmark.recorded import measure
from research.benchmark.registry import Options, entry
from research.benchmark.trust_runs import GROWTH
from research.report import Report, Table

SEEDS, QUICK_SEEDS = 10, 1
LOW, MIDDLE, HIGH = 0.001, 0.05, 0.25
"""The noise's standard deviation, as a share of the range of the values."""
PACKAGES_SEEDS = 2


@dataclass(frozen=True)
class Setting:
    r"""How a problem is measured.

    Args:
        q: Measurements per round.
        is_learnt: Whether the model is learnt.
        n_chosen: Measurements that the rule chooses.
        noises: The noises.
    """

    q: int
    is_learnt: bool
    n_chosen: int
    noises: tuple[float, ...]

    @property
    def title(self) -> str:
        r"""The setting in words."""
        return f"q = {self.q}, {'learnt' if self.is_learnt else 'fixed'} model"


SETTINGS = (
    Setting(10, False, 100, (LOW, MIDDLE, HIGH)),
    Setting(1, False, 100, (LOW, MIDDLE, HIGH)),
    Setting(50, False, 200, (MIDDLE,)),
    Setting(10, True, 100, (MIDDLE,)),
)
QUICK = (Setting(10, False, 20, (MIDDLE,)),)
QUICK_PROBLEMS = 4
"""Problems of a quick comparison: every so many of them that there are four."""

PACKAGES = (
    Setting(10, False, 50, (MIDDLE,)),
    Setting(1, False, 30, (MIDDLE,)),
)
"""Where the packages of peers are run as well: they are slower."""
PACKAGES_PROBLEMS = ("four-branch", "sea bed", "sample, Matern-5/2, 4-D")
"""Different kinds and sizes."""
PACKAGES_RIVALS = (DEFAULT, "Straddle", "SUR", "tIMSE", "GlobalMI", "Bichon")
"""Methods of ours that are listed beside them."""
RIVALS = (
    "Straddle",
    "LSE",
    "TruVaR",
    "SUR",
    "tIMSE",
    "GlobalMI",
    "Bichon",
    "U",
    "variance",
    "random",
)
"""Whom the default is to be never far from, the best of them in each cell."""
MEAN_RATIO, WORST_RATIO = 1.10, 1.5
"""The targets of its ratio to the best rival: of the mean over cells, beyond which two
standard errors are allowed, and of each cell."""
FLOOR = 0.5
"""The least error, in rows: no method is infinitely better than another one."""
PICTURED = 10, MIDDLE, False
"""Round size, noise, and whether the model is learnt, of the picture."""

NOTES = (
    f"All methods begin with the same {FIRST_PER_INPUT} d rows, drawn at random by "
    "seed, and get the same noise in the k-th measurement of a row; they know how "
    "strong it is. Where a method has decided everything, all rows are in question "
    "again.",
    "Late error: rows that the posterior mean has on the wrong side of the level, mean "
    "over the second half of the rounds and over the seeds. Ratio: to the smallest "
    "late error of a method in the same cell (problem, noise, round size, model), "
    f"where less than {FLOOR:g} of a row counts as that. Means over cells are "
    "geometric, the standard error is that of the means by problem.",
    "Fixed model: hyper-parameters from many values without noise, or the true ones of "
    "a sample, the same for all methods. Learnt: `model=None`, fitted again whenever "
    f"there are {GROWTH:g} times as many rounds.",
)


@entry("peers", "all", "error left by each rule, all problems", ("matplotlib",))
def peers_all(options: Options) -> Report:
    r"""Run all methods on the problems of both kinds, and report."""
    return _reported("peers", PROBLEMS, options)


@entry("peers", "choosing", "the same where rules were chosen", ("matplotlib",))
def peers_choosing(options: Options) -> Report:
    r"""The problems that have served to choose."""
    return _reported("peers choosing", CHOOSING, options)


@entry("peers", "reported", "the same where nothing was chosen", ("matplotlib",))
def peers_reported(options: Options) -> Report:
    r"""The problems that nothing was chosen by."""
    return _reported("peers reported", REPORTED, options)


@entry(
    "peers",
    "packages",
    "peers' own packages, see benchmark/peers/README.md",
    ("matplotlib",),
)
def peers_packages(options: Options) -> Report:
    r"""Packages of peers, each in an environment of its own."""
    commands = dict(package_of(text) for text in options.packages)
    todo = [
        Job(name, method, s.q, MIDDLE, s.is_learnt, s.n_chosen, seed)
        for seed in range(options.seeds or (1 if options.quick else PACKAGES_SEEDS))
        for s in PACKAGES
        for name in PACKAGES_PROBLEMS
        for method in (*PACKAGES_RIVALS, *commands)
    ]
    run = partial(peers_runs.run, data=options.data, commands=commands)
    where = (options.workers or 1, options.record, options.engine)
    runs = measure(Run, run, todo, *where, options.only_recorded)
    return report("peers packages", runs)


def package_of(text: str) -> tuple[str, str]:
    r"""The name and the command of ``--package NAME=COMMAND``.

    Raises:
        ValueError: If one is missing, or a method of ours has the name.
    """
    name, _, command = (part.strip() for part in text.partition("="))
    if not name or not command or name in METHODS:
        raise ValueError(
            "Expected `--package` to be NAME=COMMAND with a name that no method has, "
            f"but got {text!r}."
        )
    return name, command


def _reported(title: str, problems: Mapping[str, Problem], options: Options) -> Report:
    there = [name for name, p in problems.items() if p.is_there(options.data)]
    missing = [f"{n} ({p.file})" for n, p in problems.items() if n not in there]
    run = partial(peers_runs.run, data=options.data)
    runs = measure(Run, run, jobs(there, options), *options.where)
    return report(title, runs, missing)


def jobs(names: Sequence[str], options: Options) -> list[Job]:
    r"""What to run; seed by seed, so that what ended early is balanced.

    Args:
        names: Problems.
        options: The command line's.
    """
    settings: Sequence[Setting] = SETTINGS
    if options.quick:
        settings, names = QUICK, names[:: math.ceil(len(names) / QUICK_PROBLEMS)]
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    return [
        Job(name, method, s.q, noise, s.is_learnt, s.n_chosen, seed)
        for seed, s in product(range(seeds), settings)
        for name, noise, method in product(names, s.noises, METHODS)
    ]


def report(title: str, runs: Sequence[Run], missing: Sequence[str] = ()) -> Report:
    r"""Tables, the picture and the runs themselves.

    Args:
        title: The first line.
        runs: All runs.
        missing: Problems that were left out, and the files that they need.
    """
    notes = list(NOTES)
    if missing:
        notes.append(f"Left out, for want of `--data DIR`: {', '.join(missing)}.")
    tables = []
    for setting, comparison in by_setting(runs).items():
        tables += [
            ratios_table(setting, comparison),
            wins_table(setting, comparison),
            errors_table(setting, comparison),
        ]
    tables += targets_table(by_setting(runs))
    data = {"runs": [run.record() for run in runs]}
    figures = {"peers": partial(drawn, runs)} if pictured(runs) else {}
    return Report(title, notes, tables, data=data, figures=figures)


# --- arithmetic -----------------------------------------------------------------------

Cell = tuple[str, float]
"""A problem and a noise, within one setting."""


@dataclass(frozen=True)
class Comparison:
    r"""The runs of one setting.

    Args:
        runs: Of all methods, on the same cells and seeds.
    """

    runs: tuple[Run, ...]

    @cached_property
    def errors(self) -> dict[Cell, dict[str, float]]:
        r"""The late error of each method in each cell, mean over the seeds."""
        found: dict[Cell, dict[str, list[Run]]] = {}
        for run in self.runs:
            cell = found.setdefault((run.job.problem, run.job.noise), {})
            cell.setdefault(run.job.method, []).append(run)
        return {
            cell: {
                method: max(mean(r.late_error for r in some), FLOOR / some[0].n_rows)
                for method, some in methods.items()
            }
            for cell, methods in found.items()
        }

    @property
    def methods(self) -> list[str]:
        r"""The methods that were run, in the order of their table, then peers'."""
        run = dict.fromkeys(run.job.method for run in self.runs)
        ours = [method for method in METHODS if method in run]
        return [*ours, *(method for method in run if method not in METHODS)]

    @property
    def noises(self) -> list[float]:
        r"""The noises, from low to high."""
        return sorted({noise for _, noise in self.errors})

    def ratios(self, method: str) -> dict[Cell, float]:
        r"""In each cell the method's error over the smallest one."""
        return {
            cell: errors[method] / min(errors.values())
            for cell, errors in self.errors.items()
        }

    def seconds(self, method: str) -> float:
        r"""What choosing a measurement takes, median over the runs."""
        return median(run.seconds for run in self.runs if run.job.method == method)

    def wins(self, method: str, other: str) -> int:
        r"""In how many cells the method's error is smaller than the other's."""
        return sum(e[method] < e[other] for e in self.errors.values())


def by_setting(runs: Iterable[Run]) -> dict[str, Comparison]:
    r"""The comparisons by setting, in the order in which they come."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        job = run.job
        title = Setting(job.q, job.is_learnt, job.n_chosen, ()).title
        found.setdefault(title, []).append(run)
    return {title: Comparison(tuple(some)) for title, some in found.items()}


def geometric_mean(ratios: Mapping[Cell, float]) -> tuple[float, float]:
    r"""The geometric mean of ratios, and its standard error.

    The cells of one problem are alike: the error is that of the means by problem, as
    if these were drawn at random; ``nan`` where there is one problem.
    """
    logs = {cell: math.log(ratio) for cell, ratio in ratios.items()}
    total = math.exp(mean(logs.values()))
    groups = groupby(sorted(logs), key=_problem_of)
    by_problem = [mean(logs[cell] for cell in cells) for _, cells in groups]
    if len(by_problem) < 2:
        return total, math.nan
    return total, total * stdev(by_problem) / math.sqrt(len(by_problem))


def _problem_of(cell: Cell) -> str:
    return cell[0]


# --- tables ---------------------------------------------------------------------------


def name_of(method: str) -> str:
    r"""The method's name in the tables, marked if a package of peers chose the rows."""
    return method if method in METHODS else f"{method} (package)"


def ratios_table(setting: str, comparison: Comparison) -> Table:
    r"""For each method its ratio to the best one, best first."""
    rows = []
    noises = comparison.noises if len(comparison.noises) > 1 else []
    order = {m: geometric_mean(comparison.ratios(m)) for m in comparison.methods}
    for method in sorted(order, key=lambda m: order[m][0]):
        ratios = comparison.ratios(method)
        worst = max(ratios, key=lambda cell: ratios[cell])
        by_noise = [
            geometric_mean({c: r for c, r in ratios.items() if c[1] == noise})[0]
            for noise in noises
        ]
        rows.append(
            (
                name_of(method),
                f"{order[method][0]:.2f} +- {order[method][1]:.2f}",
                *(f"{ratio:.2f}" for ratio in by_noise),
                f"{ratios[worst]:.2f}",
                f"{worst[0]}, noise {worst[1]:.1%}",
                sum(ratio == 1.0 for ratio in ratios.values()),
                f"{1e3 * comparison.seconds(method):.3g} ms",
            )
        )
    columns = (
        "method",
        "mean ratio",
        *(f"noise {noise:.1%}" for noise in noises),
        "worst",
        "worst cell",
        "best in",
        "per measurement",
    )
    cells, seeds = len(comparison.errors), len({r.job.seed for r in comparison.runs})
    title = f"{setting}: late error over the best method's, {cells} cells"
    return Table(f"{title}, seeds 0 to {seeds - 1}", columns, rows)


def targets_table(comparisons: Mapping[str, Comparison]) -> list[Table]:
    r"""How far the default is from the best rival of each cell; what fails is said.

    Args:
        comparisons: By setting; those without the default or a rival are left out.

    Returns:
        One table, or none where all are left out.
    """
    rows = []
    for setting, comparison in comparisons.items():
        if not {DEFAULT, *RIVALS} <= set(comparison.methods):
            continue
        ratios = {
            cell: errors[DEFAULT] / min(errors[rival] for rival in RIVALS)
            for cell, errors in comparison.errors.items()
        }
        mean_ratio, error = geometric_mean(ratios)
        worst = max(ratios, key=lambda cell: ratios[cell])
        beyond = sum(ratio > WORST_RATIO for ratio in ratios.values())
        is_near = mean_ratio <= MEAN_RATIO + 2 * error
        rows.append(
            (
                setting,
                f"{mean_ratio:.2f} +- {error:.2f}",
                "met" if is_near else "NOT MET",
                f"{ratios[worst]:.2f}, {worst[0]}, noise {worst[1]:.1%}",
                f"{beyond} of {len(ratios)}",
                "NOT MET" if beyond else "met",
            )
        )
    columns = (
        "setting",
        f"{DEFAULT} over the best rival",
        f"at most {MEAN_RATIO:g} + 2 errors",
        "worst cell",
        f"cells above {WORST_RATIO:g}",
        "none",
    )
    return [Table("Targets", columns, rows)] if rows else []


def wins_table(setting: str, comparison: Comparison) -> Table:
    r"""In how many cells one method is better than another one."""
    methods = comparison.methods
    rows = [
        (m, *("" if m == o else comparison.wins(m, o) for o in methods))
        for m in methods
    ]
    cells = len(comparison.errors)
    title = f"{setting}: cells of {cells} in which the row's method is the better one"
    return Table(title, ("method", *methods), rows)


def errors_table(setting: str, comparison: Comparison) -> Table:
    r"""The late errors themselves."""
    methods = comparison.methods
    rows = [
        (problem, f"{noise:.1%}", *(f"{errors[m]:.2%}" for m in methods))
        for (problem, noise), errors in comparison.errors.items()
    ]
    return Table(f"{setting}: late errors", ("problem", "noise", *methods), rows)


# --- the picture ----------------------------------------------------------------------

_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
_STYLES = ("-", "--")


def pictured(runs: Iterable[Run]) -> list[Run]:
    r"""The runs of the picture."""
    return [r for r in runs if (r.job.q, r.job.noise, r.job.is_learnt) == PICTURED]


def drawn(runs: Sequence[Run]) -> Any:
    r"""Misclassified rows over measurements: a panel per problem, a line per method."""
    from matplotlib.figure import Figure

    runs = pictured(runs)
    problems = list(dict.fromkeys(run.job.problem for run in runs))
    methods = Comparison(tuple(runs)).methods
    n_columns = min(4, len(problems))
    n_rows = math.ceil(len(problems) / n_columns)
    size = (3.2 * n_columns + 1.8, 2.5 * n_rows + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).flatten()
    for panel, problem in zip(panels, problems, strict=False):
        some = [run for run in runs if run.job.problem == problem]
        for place, method in enumerate(methods):
            own = [run for run in some if run.job.method == method]
            panel.plot(
                [own[0].job.q * k for k in range(len(own[0].wrong))],
                [max(mean(w), FLOOR) / own[0].n_rows for w in _by_round(own)],
                color=_COLOURS[place % len(_COLOURS)],
                linestyle=_STYLES[place // len(_COLOURS) % len(_STYLES)],
                linewidth=2.4 if method == DEFAULT else 1.2,
                label=name_of(method),
            )
        panel.set_title(problem, fontsize=10)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(_percent)
        panel.yaxis.set_minor_formatter(_percent)
        panel.tick_params(axis="y", which="both", labelsize=7)
        panel.grid(alpha=0.3)
    for panel in panels[len(problems) :]:
        panel.remove()
    figure.supxlabel(f"measurements after the first {FIRST_PER_INPUT} d")
    figure.supylabel("rows on the wrong side,\nmean over seeds")
    q, noise, _ = PICTURED
    figure.suptitle(f"Rounds of {q}, noise {noise:.0%} of the range, fixed model")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=9)
    return figure


def _by_round(runs: Sequence[Run]) -> list[tuple[int, ...]]:
    r"""For each round the wrong rows of all seeds."""
    return list(zip(*(run.wrong for run in runs), strict=True))


def _percent(share: float, place: int) -> str:
    r"""A label of the axis, only where the digits are few enough to be read."""
    digits = round(share / 10 ** math.floor(math.log10(share)))
    return f"{100 * share:.2g} %" if digits in (1, 2, 3, 5, 7) else ""
