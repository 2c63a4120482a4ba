r"""Pictures like Figures 1 to 6 of Mason et al. (2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from research.papers.mason2022.allocation import Allocation
from research.papers.mason2022.curves import DECLARED, Scores
from research.papers.mason2022.problems import BATCH
from research.papers.mason2022.soare import Samples

COLOURS = {
    "MELK": "#0072b2",
    "MELK i.i.d.": "#56b4e9",
    "MELK F.1": "#009e73",
    "VR": "#555555",
    "LSE": "#d55e00",
    "LSE F.1": "#e69f00",
    "LSE, B = 10": "#cc79a7",
}
ROUNDS_SHOWN = 4


def draw_allocations(found: Allocation) -> Any:
    r"""Designs of some rounds, their weighted sum, the oracle; the level in black."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    last = len(found.designs) - 1
    shown = sorted({round(i * last / (ROUNDS_SHOWN - 1)) for i in range(ROUNDS_SHOWN)})
    maps = [
        (f"round {t + 1}: {found.active[t]} rows active", found.designs[t].weights)
        for t in shown
    ]
    for name, by_draws in (("sum, weights $2^{2t}$", False), ("sum by draws", True)):
        total = found.total(by_draws)
        maps.append((f"{name}: TV {found.distance(total):.3f}", total))
    maps.append(("oracle", found.oracle))
    figure = Figure(figsize=(2.6 * len(maps), 2.9), layout="constrained")
    panels = figure.subplots(1, len(maps), sharex=True, sharey=True)
    size = (found.size, found.size)
    shades = LogNorm(1e-5, 1.0, clip=True)
    axes = [found.X[:, j].view(size) for j in (0, 1)]
    for panel, (title, weights) in zip(panels, maps, strict=True):
        image = panel.pcolormesh(
            *axes, weights.view(size), norm=shades, cmap="Blues", shading="nearest"
        )
        panel.contour(*axes, found.truth.view(size), [0.0], colors="black")
        panel.set_title(title, fontsize=9)
        panel.set_aspect("equal")
    figure.colorbar(image, ax=panels[-1], label="weight")
    return figure


def draw_curves(title: str, results: Mapping[str, Scores]) -> Any:
    r"""Mean F1 of the declared set with one standard error, a panel per setting."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(results), 3.5), layout="constrained")
    panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for panel, (name, scores) in zip(panels, results.items(), strict=True):
        for method, runs in scores.items():
            f1 = runs[..., DECLARED]
            x = BATCH * torch.arange(1, f1.shape[1] + 1)
            mean = f1.mean(dim=0)
            error = f1.std(dim=0) / len(f1) ** 0.5 if len(f1) > 1 else 0 * mean
            panel.plot(x, mean, color=COLOURS[method], label=method)
            panel.fill_between(
                x, mean - error, mean + error, color=COLOURS[method], alpha=0.15, lw=0
            )
        panel.set(title=name, xlabel="measurements", ylim=(0, 1))
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("F1 of the declared set")
    panels[-1].legend(loc="lower right", fontsize=8)
    figure.suptitle(title)
    return figure


def draw_samples(found: Sequence[Samples]) -> Any:
    r"""Samples until done, one mark per run, one panel per figure of the paper."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    names = list(dict.fromkeys(s.figure for s in found))
    figure = Figure(figsize=(6.5 * len(names), 3.0), layout="constrained")
    for panel, name in zip(figure.subplots(1, len(names)), names, strict=True):
        group = [s for s in found if s.figure == name][::-1]
        for i, samples in enumerate(group):
            panel.plot(samples.counts, [i] * len(samples.counts), "o", alpha=0.5)
            panel.plot(samples.mean, i, "k|", markersize=14)
        labels = [f"{s.method} ({s.instance})" for s in group]
        panel.set_yticks(range(len(group)), labels, fontsize=8)
        panel.set(xscale="log", xlabel="samples until every row is decided", title=name)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlim(1e3, 3e6)
        panel.grid(alpha=0.25, axis="x")
    return figure
