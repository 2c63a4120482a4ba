r"""The figures of the reproduction of Bogunovic et al. (2016)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from research.papers.bogunovic2016.level_sets import Runs
from research.papers.bogunovic2016.optimisation import Regrets
from research.papers.bogunovic2016.problems import LEVELS, PricedProblem


def draw_scores(title: str, runs: Runs, axis: Tensor, label: str) -> Any:
    r"""Mean F1 by method.

    Args:
        title: Above the axes.
        runs: By method.
        axis: Costs or numbers of measurements.
        label: Of the axis.
    """
    figure, axes = _axes(title, label, "F1 of the posterior mean")
    for name, of_method in runs.items():
        scores = torch.stack([run.at(axis) for run in of_method])
        axes.plot(axis, scores.mean(dim=0), label=name)
    axes.legend(frameon=False)
    return figure


def draw_spending(title: str, spent: Tensor) -> Any:
    r"""Mean cost spent on each noise level (Figure 4b)."""
    figure, axes = _axes(title, "noise variance", "cost spent by TruVaR")
    axes.bar([f"{level:g}" for level in LEVELS], spent.tolist())
    return figure


def draw_regrets(title: str, regrets: Regrets, label: str) -> Any:
    r"""Mean and median regrets by method."""
    figure, axes = _axes(title, "measurements", label)
    for name, runs in regrets.items():
        steps = range(1, runs.shape[-1] + 1)
        (line,) = axes.plot(steps, runs.mean(dim=0), label=name)
        median = runs.median(dim=0).values
        axes.plot(steps, median, color=line.get_color(), linestyle=":")
    axes.set_title(f"{title} (dotted: median)")
    axes.legend(frameon=False)
    return figure


def draw_paths(title: str, problem: PricedProblem, rows: dict[str, Tensor]) -> Any:
    r"""Where the methods went, on the true level set (Figures 2e, 2f)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0 * len(rows), 4.0), layout="constrained")
    panels = figure.subplots(1, len(rows), squeeze=False)[0]
    X = problem.pool.X
    for axes, (name, path) in zip(panels, rows.items(), strict=True):
        above = problem.above
        axes.scatter(*X[~above].T, s=4, color="0.85", linewidths=0)
        axes.scatter(*X[above].T, s=4, color="tab:blue", alpha=0.4, linewidths=0)
        axes.plot(*X[path].T, color="black", linewidth=0.6)
        axes.scatter(*X[path].T, s=10, color="tab:red", linewidths=0, zorder=3)
        axes.set_title(f"{name}, {len(path)} measurements")
    figure.suptitle(title)
    return figure


def _axes(title: str, x: str, y: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes
