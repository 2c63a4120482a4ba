r"""Pictures like Figures 2 and 3 of Gotovos et al. (2013)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from research.papers.gotovos2013.runs import Curve, Run
from research.papers.problems import Problem

COLOURS = {
    "LSE": "#0072b2",
    "STR": "#d55e00",
    "VAR": "#555555",
    "LSE_batch": "#0072b2",
    "STR_batch": "#d55e00",
    "STR_rank": "#cc79a7",
    "STR_rank cold": "#999999",
    "LSE_imp": "#0072b2",
    "LSE_imp-batch": "#009e73",
    "STR_imp": "#d55e00",
}
PANELS = (
    ("sequential", ("LSE", "STR", "VAR")),
    ("batches of 30", ("LSE_batch", "STR_batch", "STR_rank", "STR_rank cold")),
    ("implicit level", ("LSE_imp", "LSE_imp-batch", "STR_imp")),
)
TRAVELLERS = (("LSE", "-"), ("LSE_batch", "--"))


def draw_curves(title: str, curves: Mapping[str, Curve], unit: str) -> Any:
    r"""Mean F1 with the range of all runs; the last panel over the travelled path."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.4), layout="constrained")
    axes = figure.subplots(1, 4, sharey=True)
    for panel, (name, methods) in zip(axes[:3], PANELS, strict=True):
        for method in methods:
            _band(panel, curves[method], method)
        panel.set(title=name, xlabel="measurements", ylim=(0.4, 1.0))
    for method, style in TRAVELLERS:
        curve, label = curves[method], f"{method} path"
        for i, (length, f1) in enumerate(zip(curve.length, curve.f1, strict=True)):
            legend = label if i == 0 else None
            axes[3].plot(length, f1, style, color=COLOURS[method], lw=0.8, label=legend)
    axes[3].set(title="travelling", xlabel=f"path length ({unit})")
    axes[0].set_ylabel("F1 over all rows")
    for panel in axes:
        panel.legend(loc="lower right", fontsize=8)
        panel.grid(alpha=0.25)
    figure.suptitle(title)
    return figure


def _band(panel: Any, curve: Curve, name: str) -> None:
    x, f1 = curve.evaluations, curve.f1
    colour = COLOURS[name]
    panel.plot(x, f1.mean(dim=0), color=colour, label=name)
    panel.fill_between(
        x, f1.min(dim=0).values, f1.max(dim=0).values, color=colour, alpha=0.15, lw=0
    )


def draw_points(
    problem: Problem, runs: Mapping[str, Run], evaluations: int, names: Sequence[str]
) -> Any:
    r"""The truth, its level set, and where three rules measured."""
    from matplotlib.figure import Figure

    X = problem.pool.X
    size = 4000.0 / len(X) + 2.0
    figure = Figure(figsize=(4.2 * len(runs), 3.8), layout="constrained")
    panels = figure.subplots(1, len(runs), sharex=True, sharey=True, squeeze=False)[0]
    for panel, (name, run) in zip(panels, runs.items(), strict=True):
        for side, colour in ((problem.above, "#b5d3e7"), (~problem.above, "#f3e3c3")):
            panel.scatter(*X[side].T, c=colour, s=size, marker="s", lw=0)
        rows = torch.unique(run.rows[:evaluations])
        panel.scatter(*X[rows].T, c="black", s=7)
        panel.set(title=f"{name}: {evaluations} measurements", xlabel=names[0])
        panel.set_aspect("equal")
    panels[0].set_ylabel(names[1])
    return figure
