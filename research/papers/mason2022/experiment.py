r"""Reproduction of Mason et al. (2022), section 5 and Appendix F."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from research.papers.mason2022.allocation import (
    Allocation,
    allocate,
    allocation_claims,
    allocation_table,
)
from research.papers.mason2022.curves import (
    DECLARED,
    GUESSED,
    Scores,
    main_claims,
    panel_table,
    score_panel,
    score_table,
)
from research.papers.mason2022.figures import (
    draw_allocations,
    draw_curves,
    draw_samples,
)
from research.papers.mason2022.problems import (
    COMMON,
    FINE_POINTS,
    PANELS,
    POINTS,
    RARE,
    SIDE,
    Panel,
)
from research.papers.mason2022.soare import (
    LIMIT,
    QUICK_LIMIT,
    Samples,
    soare_claims,
    soare_samples,
    soare_table,
)
from research.report import Report, claims_table

SUMMARY = "MELK and MILK against LSE and variance reduction"
"""What the list of benchmarks says."""

SCORED = ("declared set", "best guess")


@dataclass(frozen=True)
class Extent:
    r"""How much is run.

    Args:
        seeds: Of Figure 2b.
        panel_seeds: Of the other panels.
        n: Measurements in Figure 2b's setting.
        panel_n: In the other panels.
        panels: Which of ``PANELS`` are run besides that of Figure 2b.
        functions: Of Figure 1.
        grid: Points per side there.
        soare_seeds: Of the printed instance.
        spanning_seeds: Of the spanning form of Soare's instance; 0 leaves it out.
        limit: Of LSE's and LSE_imp's measurements there.
    """

    seeds: int = 25
    panel_seeds: int = 3
    n: int = 800
    panel_n: int = 400
    panels: tuple[int, ...] = tuple(range(len(PANELS)))
    functions: int = 3
    grid: int = 30
    soare_seeds: int = 10
    spanning_seeds: int = 3
    limit: int = LIMIT


FULL = Extent()
QUICK = Extent(
    seeds=4,
    panel_seeds=1,
    panel_n=100,
    functions=1,
    grid=16,
    soare_seeds=2,
    spanning_seeds=0,
    limit=QUICK_LIMIT,
)

NOTES = (
    "Figures 2b to 5: RBF kernel, zero mean, sqrt(beta) = 3, exact hyper-parameters. "
    f"gp: {POINTS} points of [0, 1], functions drawn from the kernel, level at the "
    f"{1 - RARE:.0%} quantile; cos: cos(8 pi x) on {FINE_POINTS} points; cos sin: "
    f"cos(2 pi x) sin(2 pi y) on {SIDE} x {SIDE} points; both with {COMMON:.0%} above. "
    "The text gives l and sigma for 2b and 2c only; the other panels are our choice.",
    "MELK: batches of 10, design on the posterior, rounded by quota; 'i.i.d.' draws "
    "the rows instead; 'F.1' is Appendix F.1's: i.i.d. draws from the design on the "
    "prior with gamma 1/(10 i). VR: plain variance reduction over the undecided rows "
    "(TruVaR with eta = 0), batches of 10. LSE: sequential, as in the paper, and in "
    "batches of 10, with intersected regions; 'LSE F.1' is sequential with the current "
    "interval only, as in Appendix F.1.",
    "Figure 1: gamma = 0 in the paper; we take 1e-7 (that of F.1), because the kernel "
    "matrix is singular in float64. Estimates are taken to equal the truth: MELK's "
    "numbers of draws make their errors small beside the elimination width.",
    "Figures 2a and 6: noise N(0, 1), B = 1, delta = 0.1, omega = 0.5. MELK and MILK "
    "with the paper's N_t and gamma = 1e-7 (F.1), every draw simulated. LSE and "
    "LSE_imp use Chowdhury and Gopalan's width (lambda = 1), with the bound gamma_T <= "
    "d/2 log(1 + T/d) (its worst case over designs, as Appendix F.2 prescribes), and "
    "with the information really gained. As printed, the 100 arms span 2 of the 25 "
    "dimensions; 'spanning' has e_3, ..., e_25 among the arms.",
)


def reproduce(
    quick: bool = False, seeds: int | None = None, data: Path | None = None
) -> Report:
    r"""All figures and claims.

    Args:
        quick: Fewer seeds and measurements.
        seeds: Seeds ``0, ..., seeds - 1``; ``None``: the experiment's own number.
        data: Not needed: no data set from elsewhere.
    """
    return report_of(QUICK if quick else FULL, seeds)


def report_of(extent: Extent, seeds: int | None = None) -> Report:
    r"""The report of an extent.

    Args:
        extent: How much is run.
        seeds: Instead of ``extent.seeds``.
    """
    began = time.perf_counter()
    chosen = [PANELS[i] for i in extent.panels]
    n = {p.key: extent.n if "2b" in p.figures else extent.panel_n for p in chosen}
    results: dict[str, Scores] = {}
    for panel in chosen:
        main = "2b" in panel.figures
        runs = (seeds or extent.seeds) if main else extent.panel_seeds
        results[panel.key] = score_panel(panel, runs, n[panel.key])
    allocations = [allocate(seed, extent.grid) for seed in range(extent.functions)]
    samples = soare_samples(extent.soare_seeds, False, extent.limit)
    if extent.spanning_seeds:
        samples += soare_samples(extent.spanning_seeds, True, extent.limit)
    main_scores = next(results[p.key] for p in chosen if "2b" in p.figures)
    checkpoints = (extent.n // 2, extent.n)
    found = [
        *main_claims(main_scores, checkpoints),
        *allocation_claims(allocations),
        *soare_claims(samples),
    ]
    eighths = [extent.n * i // 8 for i in range(1, 9)]
    runs = len(main_scores["MELK"])
    titles = (f"Figure 2b: F1 of the {what}, mean (s.e.)" for what in SCORED)
    tables = [
        claims_table("Claims", found),
        *(
            score_table(title, main_scores, eighths, which)
            for title, which in zip(titles, (DECLARED, GUESSED), strict=True)
        ),
        panel_table(results, n),
        allocation_table(allocations),
        soare_table(samples),
    ]
    held = sum(claim.holds for claim in found)
    seconds = time.perf_counter() - began
    return Report(
        "paper mason2022",
        (
            f"Figure 2b: seeds 0 to {runs - 1}, {extent.n} measurements; other panels: "
            f"{extent.panel_seeds} seeds, {extent.panel_n} measurements.",
            *NOTES,
        ),
        tables,
        [f"{held} of {len(found)} claims hold. {seconds:.0f} s."],
        _numbers(results, allocations, samples),
        _figures(chosen, results, allocations, samples),
    )


def _numbers(
    results: Mapping[str, Scores],
    allocations: Sequence[Allocation],
    samples: Sequence[Samples],
) -> dict[str, Any]:
    return {
        "declared_f1": {
            key: {name: runs[..., DECLARED].tolist() for name, runs in scores.items()}
            for key, scores in results.items()
        },
        "total_variation": [
            {"4^t": one.distance(one.total()), "draws": one.distance(one.total(True))}
            for one in allocations
        ],
        "samples": [
            {"figure": s.figure, "instance": s.instance, "method": s.method}
            | {"counts": list(s.counts), "wrong": s.wrong, "unfinished": s.unfinished}
            for s in samples
        ],
    }


def _figures(
    chosen: Sequence[Panel],
    results: Mapping[str, Scores],
    allocations: Sequence[Allocation],
    samples: Sequence[Samples],
) -> dict[str, Callable[[], Any]]:
    figures: dict[str, Callable[[], Any]] = {
        "figure_1": partial(draw_allocations, allocations[0]),
        "figure_2a_6": partial(draw_samples, samples),
    }
    for name in dict.fromkeys(f for panel in chosen for f in panel.figures):
        shown = {p.key: results[p.key] for p in chosen if name in p.figures}
        figures[f"figure_{name}"] = partial(draw_curves, f"Figure {name}", shown)
    return figures
