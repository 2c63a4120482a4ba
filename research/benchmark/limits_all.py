r"""Samples of every fixed-confidence method, divided by what an oracle needs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from research.benchmark.limits_pareto import kone
from research.benchmark.limits_problems import (
    ANYTIME,
    Ended,
    Instance,
    high_rank,
    kernel_features,
    soare,
    weltz,
)
from research.benchmark.registry import Options, entry
from research.papers.kone2025.problems import NOC_FILE, noc, synthetic
from research.papers.mason2022.soare import EXPLICIT
from research.papers.weltz2023.runs import EXAMPLES
from research.report import Report, Table

SEEDS, QUICK_SEEDS, SLOW_SHARE = 20, 2, 4
NOTES = (
    "Lower bound: 2 psi* log(1 / (2.4 delta)), below which no method is right with "
    "probability 1 - delta. Oracle: 2 psi* log(2 N / delta), what confidence bounds of "
    "one design need if the means are known. For Pareto sets and implicit levels psi* "
    "is that of the pairs that decide each row, which proves no lower bound.",
    "The papers' forms run on a quarter of the seeds: they vary little. Least plan: "
    "the draws of the rounds that the paper's form cannot do without; too many to run.",
    "LSE: RKHSWidth with lambda = 1, the information that the run really gave, and a "
    "norm bound: Mason et al.'s on Soare, the true norm on the kernel's features.",
    "Soare: mean over draws of the instance; its ratio is the mean of the ratios.",
)
COLUMNS = (
    "instance",
    "delta",
    "method",
    "samples",
    "range",
    "batches",
    "runs",
    "wrong",
    "by lower bound",
    "by oracle",
)


@dataclass(frozen=True)
class Found:
    r"""What one method needed on one instance.

    Args:
        instance: The instance.
        method: The method's name.
        runs: One per seed.
        psi: ``psi*`` of each seed's instance.
    """

    instance: Instance
    method: str
    runs: list[Ended]
    psi: list[float]

    @property
    def mean(self) -> float:
        r"""Mean number of measurements."""
        return sum(run.samples for run in self.runs) / len(self.runs)

    def ratio(self, logarithm: float) -> float:
        r"""Mean of measurements over ``psi*`` times a number."""
        parts = zip(self.runs, self.psi, strict=True)
        shares = [run.samples / (psi * logarithm) for run, psi in parts]
        return sum(shares) / len(shares)

    @property
    def by_oracle(self) -> float:
        r"""Over ``2 psi* log(2 N / delta)``."""
        return self.ratio(oracle_factor(self.instance.n, self.instance.delta))

    def row(self) -> tuple[str, ...]:
        r"""The cells of the table."""
        counts = [run.samples for run in self.runs]
        delta, known = (
            self.instance.delta,
            [r for r in self.runs if r.right is not None],
        )
        batches = [run.batches for run in self.runs if run.batches is not None]
        lower = "-"
        if self.instance.bounds:
            lower = f"{self.ratio(2 * math.log(1 / (2.4 * delta))):.3g}"
        return (
            self.instance.name,
            f"{delta:g}",
            self.method,
            f"{self.mean:,.0f}",
            f"{min(counts):,} to {max(counts):,}",
            f"{max(batches)}" if batches else "-",
            str(len(self.runs)),
            str(sum(not run.right for run in known)) if known else "-",
            lower,
            f"{self.by_oracle:.3g}",
        )


def instances(data: Path | None) -> list[Instance]:
    r"""All of them; NoC where its file is in ``data``."""
    found = [
        soare(20, EXPLICIT),
        soare(100, EXPLICIT),
        soare(100, "implicit"),
        *(weltz(title.split(":")[0], build) for title, build in EXAMPLES.items()),
        *(kone(synthetic(K)) for K in (10, 20, 50, 100, 200, 500)),
        high_rank(),
        kernel_features(),
    ]
    path = None if data is None else data / NOC_FILE
    if path is not None and path.is_file():
        found.insert(-2, kone(noc(path)))
    return found


def measured(instance: Instance, seeds: int) -> list[Found]:
    r"""All methods on one instance."""
    psi = [instance.psi(seed) for seed in range(seeds)]
    found = []
    for name, run in instance.methods.items():
        some = seeds if name.endswith(ANYTIME) else max(1, seeds // SLOW_SHARE)
        title = f"{instance.name}: {name}"
        runs = [run(s) for s in tqdm(range(some), title, disable=None, leave=False)]
        found.append(Found(instance, name, runs, psi[:some]))
    return found


def draw(found: list[Found]) -> Any:
    r"""One line per instance: each method's samples over the oracle's."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(f.instance.name for f in found))
    figure = Figure(figsize=(9, 0.42 * len(names) + 1.6), layout="constrained")
    panel = figure.subplots()
    styles = {"anytime": ("#0072b2", "o"), "paper": ("#d55e00", "s")}
    for kind, (colour, marker) in styles.items():
        chosen = [f for f in found if f.method.endswith(ANYTIME) == (kind == "anytime")]
        y = [names.index(f.instance.name) for f in chosen]
        x = [f.by_oracle for f in chosen]
        label = kind if kind == "anytime" else "the papers' forms and baselines"
        panel.scatter(x, y, c=colour, marker=marker, label=label, alpha=0.8)
    panel.axvline(1.0, color="#777777", ls=":", label="oracle")
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.set(xscale="log", xlabel="samples / (2 psi* log(2N / delta))")
    panel.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    return figure


@entry("limits", "all", "samples of fixed-confidence methods over an oracle's")
def limits_all(options: Options) -> Report:
    r"""Every instance and method."""
    began = time.perf_counter()
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    found = [f for i in instances(options.data) for f in measured(i, seeds)]
    seconds = time.perf_counter() - began
    return Report(
        "limits",
        (f"Seeds 0 to {seeds - 1}.", *NOTES),
        [
            Table(
                "Samples until every item is decided", COLUMNS, [f.row() for f in found]
            )
        ],
        [f"{seconds:.0f} s."],
        figures={"limits": partial(draw, found)},
    )


def oracle_factor(n_targets: int, delta: float) -> float:
    r"""``2 log(2 N / delta)``: the squared width of a union bound at one fixed time."""
    return 2 * math.log(2 * n_targets / delta)
