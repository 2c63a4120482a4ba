r"""Reproduction of Bogunovic et al. (2016), section 4 and Appendix B."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from research.papers.bogunovic2016.claims import (
    level_claims,
    peak_claims,
    svm_claims,
    travel_claims,
    trimmed_mean,
    unit_claims,
)
from research.papers.bogunovic2016.figures import (
    draw_paths,
    draw_regrets,
    draw_scores,
    draw_spending,
)
from research.papers.bogunovic2016.level_sets import (
    MIXED,
    QUICK,
    TARGET,
    Runs,
    Sizes,
    lake_runs,
    level_runs,
    sea_runs,
    spending,
    unit_runs,
)
from research.papers.bogunovic2016.optimisation import (
    Regrets,
    peak_regrets,
    svm_regrets,
)
from research.papers.bogunovic2016.problems import (
    LEVELS,
    PRICES,
    PricedProblem,
    lake_problem,
    sea_trip,
)
from research.report import Claim, Report, Table, claims_table

SUMMARY = "TruVaR: costs, noise levels, level sets, maxima"
"""What the list of benchmarks says."""

SVM_FILE = "svm_on_grid.csv"
TICKS = 10

NOTES = (
    "Settings of section 4: beta_(i) = a log(N t_(i)^2) with a = 1 for level sets and "
    "0.5 for maxima, eta_(1) = 1, r = 0.1, delta_bar = 0; LSE with sqrt(beta) = 3, "
    "straddle 1.96. TruVaR measures rows of M_t only (App. A). All methods have the "
    "same Gaussian process. F1 is that of the posterior mean, over all rows.",
    "lake: draws of a Matern-5/2 process on a transect of 1400 m x 18 m, lengthscales "
    "15 % and 20 % of it, 30 % above the level, noise variance 1e-6; cost 0.25 |x1 - "
    "x1'| + 4 (|x2| + 1), no travel to the first row. The chlorophyll data are not "
    "public.",
    "sea: smoothed bathymetry, 100 m, noise 5 m, every third row and column; cost 1 "
    "per sounding and 1 per km. Seeds differ in the noise only.",
    "noise levels: draws of a squared-exponential process (lengthscale 0.1) with at "
    f"least 2 % of the grid above 2.25; noise variances {LEVELS}, costs {PRICES}.",
    "maxima: posterior means through 200 points of such draws, noise variance 1e-6, "
    "one random first row; GP-UCB with the theoretical beta_t / 5 and EI (its "
    "logarithm) are BoTorch's. Regret of the row with the largest posterior mean, on "
    "the grid. The paper's ES and MRS are not run.",
)


@dataclass(frozen=True)
class Part:
    r"""What one experiment contributes to the report."""

    claims: Sequence[Claim] = ()
    tables: Sequence[Table] = ()
    figures: dict[str, Callable[[], Any]] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def reproduce(
    quick: bool = False, seeds: int | None = None, data: Path | None = None
) -> Report:
    r"""All claims on all problems.

    Args:
        quick: Fewer seeds and measurements.
        seeds: Seeds ``0, ..., seeds - 1``; ``None``: the experiment's own number.
        data: A folder with the SVM grid, which is not shipped.
    """
    began = time.perf_counter()
    sizes = sizes_of(quick, seeds)
    parts = [
        unit_part(sizes),
        travel_part("lake", lake_runs(sizes), partial(lake_problem, 0, sizes.grid)),
        travel_part("sea", sea_runs(sizes), partial(sea_trip, 0)),
        level_part(sizes),
        peak_part(sizes),
        svm_part(data, sizes),
    ]
    claims = [claim for part in parts for claim in part.claims]
    held = sum(claim.holds for claim in claims)
    notes = [*NOTES, *[part.note for part in parts if part.note]]
    return Report(
        "paper bogunovic2016",
        [f"Seeds from 0; runs: {_counts(sizes)}.", *notes],
        [claims_table("Claims", claims), *[t for part in parts for t in part.tables]],
        [f"{held} of {len(claims)} claims hold. {time.perf_counter() - began:.0f} s."],
        {key: value for part in parts for key, value in part.data.items()},
        {name: draw for part in parts for name, draw in part.figures.items()},
    )


def sizes_of(quick: bool = False, seeds: int | None = None) -> Sizes:
    r"""How much is run; ``seeds`` sets the number of runs of each experiment."""
    sizes = QUICK if quick else Sizes()
    if seeds is None:
        return sizes
    names = ("lake", "unit", "sea", "levels", "peaks", "svm")
    return replace(sizes, **dict.fromkeys(names, seeds))


def unit_part(sizes: Sizes) -> Part:
    r"""The runs, tables and claims of Figure 2a, where rows cost the same."""
    runs = unit_runs(sizes)
    axis = torch.arange(0, sizes.measurements + 1, dtype=torch.float64)
    ticks = torch.linspace(0, sizes.measurements, 6, dtype=torch.float64)[2:].floor()
    title = f"Lake, unit cost: mean of {sizes.unit} functions"
    return Part(
        unit_claims(runs, ticks),
        [_scores("lake, unit cost: mean F1 by measurements", runs, ticks)],
        {"lake_unit": partial(draw_scores, title, runs, axis, "measurements")},
        {"lake_unit": _numbers(runs)},
    )


def travel_part(where: str, runs: Runs, first: Callable[[], PricedProblem]) -> Part:
    r"""Figures 2b, 2e and 2f."""
    most = max(float(r.cost[-1]) for of_method in runs.values() for r in of_method)
    axis = torch.linspace(0, most, 200, dtype=torch.float64)
    title = f"{where}: mean of {len(runs['LSE'])} runs, each to F1 {TARGET}"
    columns = ("method", "reached", "mean cost", "mean measurements")
    rows = [(name, *_ends(of_method)) for name, of_method in runs.items()]
    paths = {name: runs[name][0].rows for name in ("TruVaR", "LSE")}
    return Part(
        travel_claims(where, runs, TARGET),
        [Table(f"{where}: to F1 {TARGET}", columns, rows)],
        {
            f"{where}_cost": partial(draw_scores, title, runs, axis, "cost"),
            f"{where}_paths": lambda: draw_paths(where, first(), paths),
        },
        {f"{where}_cost": _numbers(runs)},
    )


def level_part(sizes: Sizes) -> Part:
    r"""Figures 2c and 4b."""
    runs = level_runs(sizes)
    axis = torch.linspace(0, sizes.budget, 151, dtype=torch.float64)[1:]
    ticks = torch.linspace(0, sizes.budget, TICKS + 1, dtype=torch.float64)[1:]
    spent = spending(runs[MIXED], sizes.grid**2)
    title = f"Three noise levels: mean of {sizes.levels} functions"
    columns = ("noise variance", "cost of one", "mean cost spent")
    rows = [
        (f"{level:g}", f"{price:g}", f"{total:.0f}")
        for level, price, total in zip(LEVELS, PRICES, spent.tolist(), strict=True)
    ]
    return Part(
        level_claims(runs, axis),
        [
            _scores("noise levels: mean F1 by cost", runs, ticks),
            Table("noise levels: what TruVaR spends on each", columns, rows),
        ],
        {
            "levels": partial(draw_scores, title, runs, axis, "cost"),
            "levels_spent": partial(draw_spending, title, spent),
        },
        {"levels": _numbers(runs)},
    )


def peak_part(sizes: Sizes) -> Part:
    r"""Figures 3a and 3b."""
    regrets = peak_regrets(sizes)
    title = f"Maxima of {sizes.peaks} functions"
    return Part(
        peak_claims(regrets),
        [
            _regret_table(f"maxima: {what} by measurements", regrets, of)
            for what, of in (
                ("mean regret", lambda r: r.mean(dim=0)),
                ("median regret", lambda r: r.median(dim=0).values),
                ("mean regret without the best and worst 5 %", trimmed_mean),
            )
        ],
        {"maxima": partial(draw_regrets, title, regrets, "regret")},
        {"maxima": {name: r.tolist() for name, r in regrets.items()}},
    )


def svm_part(folder: Path | None, sizes: Sizes) -> Part:
    r"""Figure 3c, where the data are at hand."""
    if folder is None or not (folder / SVM_FILE).exists():
        return Part(note=f"SVM grid: skipped; give `--data` a folder with {SVM_FILE}.")
    regrets = svm_regrets(folder / SVM_FILE, sizes)
    title = f"SVM grid, {sizes.svm} starts"
    return Part(
        svm_claims(regrets),
        [
            _regret_table(
                "SVM grid: mean error above the best row, by measurements",
                regrets,
                lambda r: r.mean(dim=0),
                digits=5,
            )
        ],
        {"svm": partial(draw_regrets, title, regrets, "error above the best row")},
        {"svm": {name: r.tolist() for name, r in regrets.items()}},
        "SVM grid: Matern-5/2 ARD learned again after every third measurement, three "
        "random first rows, M found anew in every step, regret of the best row so far.",
    )


def _counts(sizes: Sizes) -> str:
    return (
        f"lake {sizes.lake} ({sizes.unit} at unit cost), sea {sizes.sea}, noise levels "
        f"{sizes.levels}, maxima {sizes.peaks} on grids of {sizes.grid} x {sizes.grid}"
    )


def _scores(title: str, runs: Runs, at: Tensor) -> Table:
    rows = []
    for name, of_method in runs.items():
        mean = torch.stack([run.at(at) for run in of_method]).mean(dim=0)
        rows.append((name, *[f"{v:.3f}" for v in mean]))
    return Table(title, ("method", *[f"{v:.0f}" for v in at]), rows)


def _ends(runs: list[Any]) -> tuple[str, str, str]:
    reached = [r for r in runs if r.cost_to(TARGET) < float("inf")]
    n = len(reached)
    share = f"{n} of {len(runs)}"
    if not n:
        return share, "", ""
    cost = sum(r.cost_to(TARGET) for r in reached) / n
    return share, f"{cost:.0f}", f"{sum(len(r.rows) for r in reached) / n:.0f}"


def _regret_table(
    title: str, regrets: Regrets, of: Callable[[Tensor], Tensor], digits: int = 4
) -> Table:
    n = next(iter(regrets.values())).shape[-1]
    ticks = [max(n * (k + 1) // TICKS, 1) for k in range(TICKS)]
    rows = [
        (name, *[f"{of(r)[t - 1]:.{digits}f}" for t in ticks])
        for name, r in regrets.items()
    ]
    return Table(title, ("method", *[str(t) for t in ticks]), rows)


def _numbers(runs: Runs) -> dict[str, Any]:
    return {
        name: [
            {"cost": r.cost.tolist(), "f1": r.f1.tolist(), "rows": r.rows.tolist()}
            for r in of_method
        ]
        for name, of_method in runs.items()
    }
