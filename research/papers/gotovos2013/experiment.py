r"""Reproduction of Gotovos et al. (2013), section 5 and Appendix E."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from research.papers.gotovos2013.claims import claims
from research.papers.gotovos2013.figures import draw_curves, draw_points
from research.papers.gotovos2013.problems import (
    BATCH,
    FIT_CELLS,
    GRID,
    LENGTHSCALES,
    Method,
    methods,
    sample_problem,
    sea_problem,
)
from research.papers.gotovos2013.runs import Curve, Run, run_strategy
from research.papers.problems import Problem
from research.report import Report, Table, claims_table

SUMMARY = "LSE, straddle and their batch and implicit forms"
"""What the list of benchmarks says."""

MEASUREMENTS, QUICK_MEASUREMENTS = 360, 270
SEEDS, QUICK_SEEDS = 10, 3
SHOWN = ("LSE", "STR", "VAR")


@dataclass(frozen=True)
class Scene:
    r"""One problem of the paper's kind.

    Args:
        key: Short name, in files and claims.
        title: For people.
        build: From a seed to the problem.
        axes: Names of the two inputs.
        unit: Of distances.
    """

    key: str
    title: str
    build: Callable[[int], Problem]
    axes: tuple[str, str]
    unit: str


SCENES = (
    Scene("gp", "GP samples", sample_problem, ("x0", "x1"), "sides of the square"),
    Scene("sea", "sea bed", sea_problem, ("x (km)", "y (km)"), "km"),
)

NOTES = (
    f"gp: {GRID} x {GRID} grid, Matern-5/2 with lengthscales {LENGTHSCALES}, unit "
    "variance, mean 5, noise standard deviation 0.1; level: the 70 % quantile of each "
    "draw, omega = level / maximum.",
    "sea: smoothed bathymetry, 100 m, noise 5 m, omega = 100 m / maximum, "
    f"hyper-parameters by maximum likelihood on {FIT_CELLS} other cells; seeds differ "
    "in the noise only.",
    "Settings of section 5: sqrt(beta) = 3 for LSE and LSE_imp, straddle 1.96, B = 30. "
    "Batch forms of LSE use sqrt(eta) = 4 to choose and, after feedback, to classify "
    "(erratum 6, papers/gotovos2013/errata.md). Batch forms start with one batch of "
    "maximal variance (App. C); 'STR_rank cold' does not. epsilon = 0, so that all "
    "methods use the same number of measurements.",
    "F1 is taken over all rows; undecided ones count to the side of the posterior "
    "mean. All methods have the same Gaussian process. Paths: batches by Christofides' "
    "tour from where the last one ended, LSE in the order of measurement.",
)


def reproduce(
    quick: bool = False, seeds: int | None = None, data: Path | None = None
) -> Report:
    r"""All claims on both problems.

    Args:
        quick: Fewer seeds and measurements.
        seeds: Seeds ``0, ..., seeds - 1``; ``None``: the experiment's own number.
        data: Not needed: no data set from elsewhere.
    """
    began = time.perf_counter()
    n = QUICK_MEASUREMENTS if quick else MEASUREMENTS
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    curves, shown = {}, {}
    for scene in SCENES:
        curves[scene.key], shown[scene.key] = _run_scene(scene, seeds, n)
    rounds = torch.arange(BATCH, n + 1, BATCH)
    found = [
        claim
        for scene in SCENES
        for claim in claims(scene.key, curves[scene.key], rounds[2:])
    ]
    tables = [claims_table("Claims", found)]
    for scene in SCENES:
        tables += _score_tables(scene, curves[scene.key], rounds)
    figures = {}
    for scene in SCENES:
        title = f"{scene.title}: mean and range of {seeds} runs"
        figures[f"f1_{scene.key}"] = partial(
            draw_curves, title, curves[scene.key], scene.unit
        )
        figures[f"points_{scene.key}"] = partial(
            draw_points, scene.build(0), shown[scene.key], n // 2, scene.axes
        )
    held = sum(claim.holds for claim in found)
    return Report(
        "paper gotovos2013",
        (f"Seeds 0 to {seeds - 1}, {n} measurements per run.", *NOTES),
        tables,
        [f"{held} of {len(found)} claims hold. {time.perf_counter() - began:.0f} s."],
        {"curves": {key: _numbers(c) for key, c in curves.items()}},
        figures,
    )


def _run_scene(
    scene: Scene, seeds: int, n: int
) -> tuple[dict[str, Curve], dict[str, Run]]:
    r"""The curve of every method, and the runs on seed 0 that are drawn."""
    contestants = methods()
    runs: dict[str, list[Run]] = {method.name: [] for method in contestants}
    total = seeds * len(contestants)
    with tqdm(total=total, desc=scene.title, disable=None, leave=False) as progress:
        for seed in range(seeds):
            problem = scene.build(seed)
            for method in contestants:
                strategy = method.build(problem, n)
                runs[method.name].append(run_strategy(problem, strategy, method.travel))
                progress.update()
    curves = {m.name: Curve.of_runs(runs[m.name], _axis(m, n)) for m in contestants}
    return curves, {name: runs[name][0] for name in SHOWN}


def _axis(method: Method, n: int) -> Tensor:
    return torch.arange(method.batch, n + 1, method.batch)


def _score_tables(
    scene: Scene, curves: dict[str, Curve], rounds: Tensor
) -> list[Table]:
    columns = ("method", *[str(int(k)) for k in rounds])
    scores = {name: curve.at(rounds) for name, curve in curves.items()}
    judged = {
        name: curve.judge_f1[:, torch.searchsorted(curve.evaluations, rounds)]
        for name, curve in curves.items()
    }
    return [
        Table(
            f"{scene.key}: F1 by measurements, mean over seeds ({what})",
            columns,
            [(m, *[f"{v:.3f}" for v in f1.mean(dim=0)]) for m, f1 in table.items()],
        )
        for what, table in (("the answer", scores), ("posterior mean alone", judged))
    ]


def _numbers(curves: dict[str, Curve]) -> dict[str, object]:
    return {
        name: {
            "evaluations": curve.evaluations.tolist(),
            "f1": curve.f1.tolist(),
            "judge_f1": curve.judge_f1.tolist(),
            "length": None
            if bool(curve.length.isnan().all())
            else curve.length.tolist(),
        }
        for name, curve in curves.items()
    }
