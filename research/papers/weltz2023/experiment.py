r"""Reproduction of Weltz et al. (2023), Figures 1 to 6."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from research.papers.weltz2023.claims import (
    PAPER_DIMENSION,
    Errors,
    kappa_claims,
    oracle_claims,
    sample_claims,
    variance_claims,
)
from research.papers.weltz2023.figures import (
    draw_errors,
    draw_kappa,
    draw_oracle,
    draw_samples,
)
from research.papers.weltz2023.runs import (
    DELTA,
    ESTIMATORS,
    EXAMPLES,
    KAPPAS,
    Example,
    noisier,
    variance_errors,
)
from research.report import Report, Table, claims_table

SUMMARY = "HEAD, RAGE and H-RAGE: unequal noise, Figures 1 to 6"
"""What the list of benchmarks says."""

SEEDS, QUICK_SEEDS = 32, 8
SIZES = (15_000, 35_000, 55_000, 75_000, 95_000)
DIMENSIONS = (3, 5, 7, 9, 11, 13, 15, 17, 19)

NOTES = (
    f"delta = {DELTA:g}. Measurements of an arm are drawn as their mean and their "
    "sample variance, which have exactly the distribution of those of single Gaussian "
    "values.",
    "The paper does not say how long its burn-in is. Here it is 16 kappa^2 rank(phi) 2 "
    "log(4 |X| / delta), part of H-RAGE's samples and shown apart.",
    "Example 3: 0/1 coding with d = 7, best layout 001, gap 0.005 (erratum 5). "
    "Separate Arm chooses its arms by a search for the largest smallest singular value "
    "(erratum 6, papers/weltz2023/errata.md). All variance estimates are clipped to "
    "the true extremes.",
    "Oracles: 2 psi log(2 |Z| / delta) with psi*, or with rho* where every variance is "
    "taken to be the largest. Lower bound: 2 psi* log(1 / (2.4 delta)).",
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
    began = time.perf_counter()
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    curve = [noisier(kappa) for kappa in KAPPAS]
    by_size = _errors(((PAPER_DIMENSION, SIZES),), seeds, "sample sizes")
    by_dim = _errors(tuple((d, SIZES[-1:]) for d in DIMENSIONS), seeds, "dimensions")
    examples = [
        Example.run(title, build, seeds)
        for title, build in tqdm(EXAMPLES.items(), disable=None, leave=False)
    ]
    found = [
        *kappa_claims(curve),
        *variance_claims(SIZES, by_size, DIMENSIONS, by_dim),
        *sample_claims(examples),
        *oracle_claims(examples),
    ]
    held = sum(claim.holds for claim in found)
    figures = {
        "fig1c_kappa": partial(draw_kappa, curve),
        "fig2_errors": partial(draw_errors, SIZES, by_size, DIMENSIONS, by_dim),
        "fig3_samples": partial(draw_samples, examples),
    }
    for k, example in enumerate(examples):
        figures[f"fig{4 + k}_oracles"] = partial(draw_oracle, example)
    return Report(
        "paper weltz2023",
        (f"Seeds 0 to {seeds - 1}.", *NOTES),
        [
            claims_table("Claims", found),
            _error_table("2a: largest error by samples (d = 15)", SIZES, by_size),
            _error_table("2b: largest error by dimension", DIMENSIONS, by_dim),
            _sample_table(examples),
            _oracle_table(examples),
        ],
        [f"{held} of {len(found)} claims hold. {time.perf_counter() - began:.0f} s."],
        _numbers(curve, by_size, by_dim, examples),
        figures,
    )


def _errors(
    settings: Sequence[tuple[int, Sequence[int]]], seeds: int, title: str
) -> Errors:
    r"""``seeds x k`` errors by estimator, settings side by side."""
    rows: dict[str, list[list[float]]] = {name: [] for name in ESTIMATORS}
    for seed in tqdm(range(seeds), desc=title, disable=None, leave=False):
        found = [variance_errors(d, budgets, seed) for d, budgets in settings]
        for name in ESTIMATORS:
            rows[name].append([v for errors in found for v in errors[name]])
    return {name: torch.tensor(values).double() for name, values in rows.items()}


def _error_table(title: str, x: Sequence[int], errors: Errors) -> Table:
    rows = [(name, *[_with_error(v) for v in e.T]) for name, e in errors.items()]
    return Table(f"{title}: mean (standard error)", ("estimator", *map(str, x)), rows)


def _with_error(values: Tensor) -> str:
    spread = float(values.std(correction=0)) / len(values) ** 0.5
    return f"{float(values.mean()):.3f} ({spread:.3f})"


def _sample_table(examples: Sequence[Example]) -> Table:
    columns = (
        "example",
        "method",
        "mean samples",
        "standard error",
        "of it burn-in",
        "wrong runs",
        "samples / lower bound",
    )
    rows: list[tuple[str, ...]] = []
    for example in examples:
        for method in example.runs:
            samples = example.samples(method)
            mean = float(samples.mean())
            spread = float(samples.std(correction=0)) / len(samples) ** 0.5
            wrong = example.wrong(method)
            rows.append(
                (
                    example.title,
                    method,
                    f"{mean:,.0f}",
                    f"{spread:,.0f}",
                    f"{example.burn_in(method):,.0f}",
                    f"{wrong.wrong} of {wrong.runs}",
                    f"{mean / example.lower_bound:.1f}",
                )
            )
        oracles = (("oracle", example.psi), ("oracle, largest variance", example.rho))
        bounds = [(name, example.oracle_samples(o)) for name, o in oracles]
        for name, value in (*bounds, ("lower bound", example.lower_bound)):
            ratio = f"{value / example.lower_bound:.1f}"
            rows.append((example.title, name, f"{value:,.0f}", "", "", "", ratio))
    return Table("3: samples, and samples / lower bound", columns, rows)


def _oracle_table(examples: Sequence[Example]) -> Table:
    columns = ("example", "psi*", "certified gap", "rho*", "certified gap ", "kappa")
    rows = [
        (
            e.title,
            f"{e.psi.value:.2f}",
            f"{e.psi.design.gap:.1e}",
            f"{e.rho.value:.2f}",
            f"{e.rho.design.gap:.1e}",
            f"{e.problem.bounds[1] / e.problem.bounds[0]:.2f}",
        )
        for e in examples
    ]
    return Table("Oracles", columns, rows)


def _numbers(
    curve: Sequence[Any], by_size: Errors, by_dim: Errors, examples: Sequence[Example]
) -> dict[str, Any]:
    r"""What the figures show, for ``results.json``."""
    return {
        "kappa": [[p.kappa, p.ratio, p.informative] for p in curve],
        "errors_by_samples": {k: v.tolist() for k, v in by_size.items()},
        "errors_by_dimension": {k: v.tolist() for k, v in by_dim.items()},
        "samples": {
            e.title: {m: e.samples(m).tolist() for m in e.runs} for e in examples
        },
        "oracles": {
            e.title: {
                "arms": list(e.problem.names),
                "heteroskedastic": e.psi.design.weights.tolist(),
                "largest variance": e.rho.design.weights.tolist(),
            }
            for e in examples
        },
    }
