r"""Optimal designs: our solver, Mason's Frank-Wolfe and Kone's mirror descent."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch
from gpytorch.kernels import RBFKernel
from tqdm import tqdm

from botorch_lse.designs import Design, DesignWarning, optimal_design
from botorch_lse.papers.kone2025 import mirror_descent_design
from botorch_lse.papers.mason2022 import frank_wolfe_design
from research.benchmark.design_instances import INSTANCES, Instance
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, measured, target
from research.report import Report, Table

CLOCKS = (0.1, 1.0, 10.0)
"""Seconds after which the others are stopped, each time in a run of its own; besides,
after as long as ours took for its smallest gap."""
PANELS = 3
RIDGE = 1e-9
STEPS = 10**9
SMALLEST = 1e-6
"""Gaps below this are not shown: mirror descent may stop there."""


@dataclass(frozen=True)
class Run:
    r"""What one solver reached.

    Args:
        seconds: Wall-clock time.
        value: The largest squared norm of its design.
        gap: What it proves.
        peak: Growth of the process's peak memory, bytes.
        support: Points with mass.
    """

    seconds: float
    value: float
    gap: float
    peak: int
    support: int


@dataclass
class Comparison:
    r"""All runs on one instance.

    Args:
        instance: The problem.
        ours: One run per tolerance.
        others: Runs by solver's name.
    """

    instance: Instance
    ours: list[Run]
    others: dict[str, list[Run]] = field(default_factory=dict)

    @property
    def lower_bound(self) -> float:
        r"""The best that was proven: no design has a smaller value."""
        return max(run.value / (1 + run.gap) for run in self.ours)

    def true_gap(self, run: Run) -> float:
        r"""At most so far above the optimum, as ``value / lower_bound - 1``."""
        return run.value / self.lower_bound - 1

    def frame(self) -> pd.DataFrame:
        r"""One row per run: method, seconds, gaps, memory."""
        return pd.DataFrame(
            {
                "instance": self.instance.name,
                "method": method,
                "seconds": run.seconds,
                "true gap at most": self.true_gap(run),
                "certified gap": run.gap,
                "peak bytes": run.peak,
            }
            for method, runs in {"ours": self.ours, **self.others}.items()
            for run in runs
        )


@entry("speed", "design", "certified designs against Frank-Wolfe and mirror descent")
def speed_design(options: Options) -> Report:
    r"""The design solver against its targets and the papers' solvers."""
    found = [
        measure(instance, instance.tols, CLOCKS)
        for instance in tqdm(INSTANCES, "speed design", disable=None, leave=False)
    ]
    columns = ("instance", "certified gap", "seconds", "peak memory", "support")
    ours = Table("Our solver", columns, [row for c in found for row in _our_rows(c)])
    runs = pd.concat([c.frame() for c in found])
    columns = ("instance", "method", "seconds", "true gap at most", "certified gap")
    others = Table(
        "The same instances, all solvers",
        columns,
        [
            (row.instance, row.method, f"{row.seconds:.2f}", *map(_small, row[4:6]))
            for row in pd.concat([c.frame() for c in found if c.others]).itertuples()
        ],
    )
    notes = [
        "One core, each run in a fresh process; memory above what the libraries take, "
        "kernel and points included.",
        "The true gap is the value over the best lower bound that our solver proved.",
        "Frank-Wolfe is plain (Mason et al. 2022, Algorithm 4). Mirror descent is Kone "
        "et al. (2025), Algorithm 4, for linear models without a ridge, on which "
        f"Frank-Wolfe runs with one of {RIDGE:g}. Each entry is a run of its own, "
        "stopped by the clock.",
    ]
    data = {"runs": runs.to_dict("records")}
    figures = {"design": lambda: draw([c for c in found if c.others])}
    return Report("speed design", notes, [ours, others], (), data, figures)


def compare(instance: Instance) -> pd.DataFrame:
    r"""All methods at the same clock: one row each, see ``Comparison.frame``.

    Ours solves to the instance's smallest gap; the others get as long as that took.
    """
    return measure(instance, instance.tols[-1:], ()).frame()


def measure(
    instance: Instance, tols: tuple[float, ...], clocks: tuple[float, ...]
) -> Comparison:
    r"""All solvers on one instance, each run in a process of its own.

    Args:
        instance: The problem.
        tols: The gaps that ours certifies.
        clocks: Seconds after which the others are stopped; besides, after as long as
            ours took for the last gap.
    """
    ours = [in_fresh_process(run_ours, instance, tol) for tol in tols]
    comparison = Comparison(instance, ours)
    if not instance.compared:
        return comparison
    solvers = {"Frank-Wolfe": run_frank_wolfe}
    if not instance.lengthscale:
        solvers["mirror descent"] = run_mirror_descent
    ends = sorted({*clocks, ours[-1].seconds})
    for name, run in solvers.items():
        comparison.others[name] = [in_fresh_process(run, instance, s) for s in ends]
    return comparison


def run_ours(instance: Instance, tol: float) -> Run:
    r"""``optimal_design`` to a certified gap."""
    X, shared = instance.problem()
    _warm_up()
    return _timed(lambda: optimal_design(X, tol=tol, **shared))


def run_frank_wolfe(instance: Instance, seconds: float) -> Run:
    r"""Mason's solver for ``seconds``; it needs a ridge, be it a negligible one."""
    X, shared = instance.problem()
    ridge = {"gamma": RIDGE} | shared
    _warm_up()
    return _timed(
        lambda: frank_wolfe_design(X, max_steps=STEPS, max_seconds=seconds, **ridge)
    )


def run_mirror_descent(instance: Instance, seconds: float) -> Run:
    r"""Kone's solver for ``seconds``."""
    X, _ = instance.problem()
    _warm_up()
    return _timed(
        lambda: mirror_descent_design(
            X, max_steps=STEPS, max_seconds=seconds, tol=SMALLEST
        )
    )


def _warm_up() -> None:
    r"""Load what torch and GPyTorch load at first use."""
    X = torch.linspace(0, 1, 20, dtype=torch.float64).unsqueeze(-1)
    optimal_design(X, kernel=RBFKernel(), gamma=0.1)


def _timed(solve: Callable[[], Design]) -> Run:
    with warnings.catch_warnings(), measured() as cost:
        warnings.simplefilter("ignore", DesignWarning)  # the gap is reported
        design = solve()
    return Run(
        cost.seconds, design.value, design.gap, cost.peak, design.support.numel()
    )


def _our_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    instance = comparison.instance
    rows: list[tuple[str, ...]] = []
    for tol, run in zip(instance.tols, comparison.ours, strict=True):
        seconds, memory = f"{run.seconds:.2f}", f"{run.peak / 1e6:.0f} MB"
        if tol == instance.tols[-1]:
            met = run.seconds <= instance.seconds and run.gap <= tol
            seconds = target(f"{seconds} of {instance.seconds:g}", met)
            if instance.gigabytes is not None:
                met = run.peak <= 1e9 * instance.gigabytes
                memory = target(f"{memory} of {instance.gigabytes:g} GB", met)
        gap = f"{run.gap:.1e} (asked: {tol:.0e})"
        rows.append((instance.name, gap, seconds, memory, str(run.support)))
    return rows


def _small(gap: float) -> str:
    return f"{gap:.1e}"


def draw(found: list[Comparison]) -> Any:
    r"""True gap against time, one panel per instance."""
    import matplotlib.pyplot as plt

    n_rows = -(-len(found) // PANELS)
    figure, axes = plt.subplots(
        n_rows, PANELS, figsize=(10.5, 3.2 * n_rows), squeeze=False, sharey=True
    )
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    for axis, comparison in zip(axes.flat, found, strict=False):
        for solver, runs in {"ours": comparison.ours, **comparison.others}.items():
            ordered = sorted(runs, key=lambda run: run.seconds)
            seconds = [run.seconds for run in ordered]
            gaps = [max(comparison.true_gap(run), SMALLEST) for run in ordered]
            axis.loglog(seconds, gaps, "o-", label=solver)
        axis.set(xlim=(0.01, 20.0), xlabel="seconds")
        axis.set_title(comparison.instance.name, fontsize=9)
        axis.legend(fontsize=7)
    for axis in axes[:, 0]:
        axis.set_ylabel("at most this far above optimal")
    figure.tight_layout()
    return figure
