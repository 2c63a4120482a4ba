r"""Reproduction of Kone et al. (2025), section 5 and Appendix I."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from botorch_lse.papers.kone2025.gaps import pareto_gaps
from research.papers.kone2025.claims import (
    energy_claims,
    gaps_claim,
    noc_claims,
    runtime_claims,
    synthetic_claims,
)
from research.papers.kone2025.figures import (
    draw_errors,
    draw_panels,
    draw_rounds,
    draw_samples,
    draw_shares,
)
from research.papers.kone2025.problems import (
    ENERGY_FILE,
    NOC_FILE,
    ParetoInstance,
    energy,
    noc,
    synthetic,
)
from research.papers.kone2025.runs import (
    STEP,
    Score,
    budgeted,
    confident,
    least_budget,
    score,
    trace,
)
from research.report import Claim, Report, Table, claims_table

Scores = Mapping[str, Score | None]
"""By method; ``None`` where it cannot run."""

SUMMARY = "GEGE and its rivals: Pareto sets of linear outputs"
"""What the list of benchmarks says."""

SEEDS, QUICK_SEEDS = 100, 20
SIZES, QUICK_SIZES = (10, 20, 50, 100, 200, 500), (10, 100, 500)
CONFIDENT_SIZES = (10, 20, 50)
INSTANCES = range(5)
"""Seeds of the synthetic instances."""
NOC_BUDGETS, DELTA = (1780, 2331, 3994), 0.01
ENERGY_BUDGET, ENERGY_DELTA, ENERGY_LIMIT = 10_000, 0.1, 10**10
ENERGY_STEP = 10_000
SLOW_SHARE = 10
"""EGE-SR, APE and racing run on this part of the seeds: they take many rounds."""
TABLE2 = {
    (10, 2, 2): (217, 6),
    (50, 8, 2): (464, 7),
    (100, 8, 4): (791, 545),
    (200, 8, 8): (1139, 768),
    (500, 8, 8): (2425, 1013),
}
"""The paper's milliseconds: budget 500, confidence 0.9."""
SLOW = ("EGE-SR", "APE", "racing")

NOTES = (
    "Synthetic: h = 8, d = 2, as the paper describes it; what it leaves open is set by "
    "one rule: costs Theta from U([0, 1]), mu = -X Theta with the canonical basis as "
    "the first 8 features, all drawn with seeds 0 to 4, noise 0.5 as for NoC.",
    "NoC: the authors' linear instance (rows scaled to length 1, fitted means, noise "
    "0.5). Energy: loads in standard deviations, noise 0.5.",
    "A run is wrong unless its answer is the Pareto set. Rows left open are wrong. A "
    "method that cannot run with a budget has a dash.",
    f"APE and racing measure a row {STEP} times at once, the paper's forms once; this "
    f"costs them at most so many extra measurements of a row. They and EGE-SR run on a "
    f"{SLOW_SHARE}th of the seeds.",
)


@dataclass
class _Parts:
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, Callable[[], Any]] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)


def reproduce(
    quick: bool = False, seeds: int | None = None, data: Path | None = None
) -> Report:
    r"""All claims; those on data need a folder with the files.

    Args:
        quick: Fewer seeds and measurements.
        seeds: Seeds ``0, ..., seeds - 1``; ``None``: the experiment's own number.
        data: A folder with the NoC and energy data, which are not shipped.
    """
    began = time.perf_counter()
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    parts = _Parts()
    _synthetic(parts, seeds, QUICK_SIZES if quick else SIZES)
    for name, run in ((NOC_FILE, _noc), (ENERGY_FILE, _energy)):
        path = None if data is None else data / name
        if path is not None and path.is_file():
            run(parts, seeds, path)
        else:
            parts.notes.append(f"Left out: {name} is not there; see `--data`.")
    _runtimes(parts)
    held = sum(claim.holds for claim in parts.claims)
    seconds = time.perf_counter() - began
    return Report(
        "paper kone2025",
        (f"Seeds 0 to {seeds - 1}.", *NOTES, *parts.notes),
        [claims_table("Claims", parts.claims), *parts.tables],
        [f"{held} of {len(parts.claims)} claims hold. {seconds:.0f} s."],
        parts.data,
        parts.figures,
    )


def _some(name: str, seeds: int) -> int:
    return max(2, seeds // SLOW_SHARE) if name in SLOW else seeds


def budget_scores(
    instance: ParetoInstance, T: int, seeds: int, but: tuple[str, ...] = ()
) -> dict[str, Score | None]:
    r"""Every method with a budget; ``None`` where the budget is too small for it."""
    found: dict[str, Score | None] = {}
    for name, build in budgeted(T).items():
        runs = name not in but and least_budget(name, instance) <= T
        n = _some(name, seeds)
        found[name] = (
            score(instance, build, n, f"{instance.name}, {name}") if runs else None
        )
    return found


def _synthetic(parts: _Parts, seeds: int, sizes: tuple[int, ...]) -> None:
    errors: dict[int, dict[str, dict[int, float]]] = {}
    growth: dict[int, dict[str, dict[int, float]]] = {}
    error_rows, sample_rows = [], []
    for number in INSTANCES:
        T = round(synthetic(sizes[0], seed=number).complexity.H_2_lin)
        scores = {
            K: budget_scores(
                synthetic(K, seed=number), T, seeds, () if K <= 100 else ("EGE-SR",)
            )
            for K in sizes
        }
        error_rows += [(number, T, K, *error_cells(s)) for K, s in scores.items()]
        errors[number] = errors_by_method(scores)
        growth[number] = _synthetic_samples(number, max(2, seeds // 20))
        sample_rows += [
            (number, K, *[f"{v[K]:,.0f}" for v in growth[number].values()])
            for K in CONFIDENT_SIZES
        ]
    columns = ("seed", "T", "K", *budgeted(1))
    title = "Synthetic: share of wrong runs, T = H_2lin"
    parts.tables.append(Table(title, columns, error_rows))
    title = f"Synthetic: mean samples, delta = {DELTA}"
    parts.tables.append(Table(title, ("seed", "K", "GEGE", "APE"), sample_rows))
    parts.claims += synthetic_claims(errors, growth)
    parts.data["synthetic"] = {"errors": errors, "samples": growth}
    for name, values, up in (
        ("figure1", errors, "share of wrong runs"),
        ("figure2", growth, "samples"),
    ):
        shown = {f"Synthetic, seed {i}": v for i, v in values.items()}
        parts.figures[name] = partial(draw_panels, shown, "K", up)


def _synthetic_samples(number: int, seeds: int) -> dict[str, dict[int, float]]:
    builds = confident(DELTA)
    return {
        name: {
            K: score(
                synthetic(K, seed=number), builds[name], seeds, f"K = {K}, {name}"
            ).mean_samples
            for K in CONFIDENT_SIZES
        }
        for name in ("GEGE", "APE")
    }


def _noc(parts: _Parts, seeds: int, path: Path) -> None:
    instance = noc(path)
    scores = {T: budget_scores(instance, T, seeds) for T in NOC_BUDGETS}
    parts.tables.append(error_table("NoC: share of wrong runs", "T", scores))
    sure = {
        name: score(instance, build, _some(name, seeds), f"NoC, {name}")
        for name, build in confident(DELTA).items()
    }
    parts.tables.append(sample_table(f"NoC: fixed confidence, delta = {DELTA}", sure))
    errors = errors_by_method(scores)
    parts.claims += noc_claims(instance, errors, sure, DELTA)
    samples = {name: list(s.samples) for name, s in sure.items()}
    parts.data["noc"] = {"errors": errors, "samples": samples}
    parts.figures["figure3"] = partial(draw_errors, errors, "T", "NoC, linearised")
    parts.figures["figure4"] = partial(draw_samples, samples, "NoC, linearised")


def _energy(parts: _Parts, seeds: int, path: Path) -> None:
    kinds = {
        "linear fit, minimise": energy(path, True),
        "loads, minimise": energy(path, False),
        "loads, maximise": energy(path, False, minimise=False),
    }
    builds = confident(ENERGY_DELTA, ENERGY_LIMIT, ENERGY_STEP)
    rows, found, sure = [], {}, {}
    for name, instance in kinds.items():
        n = {"GEGE": max(2, seeds // 5), "racing": max(2, seeds // 20)}
        sure[name] = {
            method: score(instance, builds[method], n[method], f"energy, {name}")
            for method in n
        }
        found[name] = budget_scores(instance, ENERGY_BUDGET, seeds, ("EGE-SR",))
        c = instance.complexity
        few = (int(instance.truth.sum()), f"{c.gaps.min():.4f}", c.rank)
        rows.append((name, *few, *error_cells(found[name])))
    columns = ("means", "Pareto arms", "smallest gap", "rank", *budgeted(1))
    title = f"Energy: share of wrong runs, T = {ENERGY_BUDGET}"
    parts.tables.append(Table(title, columns, rows))
    title = f"Energy: delta = {ENERGY_DELTA}, at most {ENERGY_LIMIT:.0e} samples"
    together = {f"{k}: {n}": s for k, each in sure.items() for n, s in each.items()}
    parts.tables.append(sample_table(title, together))
    parts.claims += energy_claims(kinds, found, sure)
    parts.notes.append(
        "The loads are not linear in the features: on them GEGE's answer is that of a "
        "linear fit, wrong with certainty, whatever its confidence says. Racing "
        f"measures a row {ENERGY_STEP:,} times at once there."
    )
    linear = kinds["linear fit, minimise"]
    plans = {
        "budget": trace(linear, budgeted(ENERGY_BUDGET)["GEGE"], 0),
        "confidence": trace(linear, builds["GEGE"], 0),
    }
    parts.data["energy"] = {
        "samples": {k: list(s.samples) for k, s in together.items()},
        "measurements per round": {
            k: [int(counts.sum()) for counts in plan] for k, plan in plans.items()
        },
        "rows measured per round": {
            k: [int((counts > 0).sum()) for counts in plan] for k, plan in plans.items()
        },
    }
    shares = {
        kind: {n: s.error for n, s in each.items() if s is not None}
        for kind, each in found.items()
    }
    samples = {name: list(s.samples) for name, s in together.items()}
    parts.figures["figure6"] = partial(draw_shares, shares, plans["budget"])
    parts.figures["figure7"] = partial(draw_rounds, samples, plans["confidence"])


def _runtimes(parts: _Parts) -> None:
    rows, measured = [], {}
    for (K, h, m), (paper_budget, paper_sure) in TABLE2.items():
        instance = synthetic(K, h, m, noise_std=0.01)
        budget = _median_ms(instance, budgeted(500)["GEGE"])
        sure = _median_ms(instance, confident(0.1)["GEGE"])
        measured[K, h, m] = (*budget, *sure)
        rows.append(
            (
                f"[{K}, {h}, {m}]",
                f"{budget[0]:.0f} ms",
                f"{paper_budget} ms",
                f"{sure[0]:.0f} ms",
                f"{paper_sure} ms",
                "yes" if budget[1] and sure[1] else "no",
            )
        )
    columns = ("[K, h, d]", "T = 500", "paper", "delta = 0.1", "paper ", "right")
    parts.tables.append(Table("Table 2: median time of a run", columns, rows))
    parts.claims += runtime_claims(TABLE2, measured)
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(10_000, 3, generator=generator, dtype=torch.float64)
    began = time.perf_counter()
    pareto_gaps(means)
    parts.claims.append(gaps_claim(time.perf_counter() - began))


def _median_ms(
    instance: ParetoInstance, build: Callable[[ParetoInstance], Any]
) -> tuple[float, bool]:
    r"""The median time of five runs in ms, and whether all were right."""
    times, right = [], True
    for seed in range(5):
        began = time.perf_counter()
        run = build(instance).simulate(instance.measure(seed), seed)
        times.append(1e3 * (time.perf_counter() - began))
        right &= torch.equal(run.classification.above, instance.truth)
    return median(times), right


def error_table(title: str, by: str, scores: Mapping[int, Scores]) -> Table:
    r"""Shares of wrong runs, one row per key, one column per method."""
    rows = [(key, *error_cells(s)) for key, s in scores.items()]
    return Table(title, (by, *next(iter(scores.values()))), rows)


def error_cells(scores: Scores) -> list[str]:
    r"""Shares of wrong runs, a dash where a method cannot run."""
    return ["-" if s is None else f"{s.error:.3f}" for s in scores.values()]


def sample_table(title: str, scores: Mapping[str, Score]) -> Table:
    r"""Wrong runs, samples and rounds, one row per method."""
    columns = ("method", "runs", "wrong", "samples: least / median / most", "rounds")
    rows = [
        (name, s.runs, s.wrong, s.typical, max(s.rounds)) for name, s in scores.items()
    ]
    return Table(title, columns, rows)


def errors_by_method(scores: Mapping[int, Scores]) -> dict[str, dict[int, float]]:
    r"""Shares of wrong runs by method, then key, where they can run."""
    names = next(iter(scores.values()))
    return {
        n: {k: s.error for k, each in scores.items() if (s := each[n]) is not None}
        for n in names
    }
