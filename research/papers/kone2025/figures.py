r"""The figures of Kone et al. (2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_errors(
    values: Mapping[str, Mapping[int, float]],
    across: str,
    title: str,
    up: str = "share of wrong runs",
) -> Figure:
    r"""One line per method.

    Args:
        values: By method, then by what runs across.
        across: Its name.
        title: Above the picture.
        up: What runs up.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for name, line in values.items():
        axes.plot(list(line), list(line.values()), marker="o", label=name)
    axes.set(xlabel=across, ylabel=up, title=title, ylim=(0, None))
    axes.legend()
    return figure


def draw_panels(
    panels: Mapping[str, Mapping[str, Mapping[int, float]]], across: str, up: str
) -> Figure:
    r"""One panel per instance with one line per method, on log scales across.

    Args:
        panels: By instance, then by method, then by what runs across.
        across: Its name.
        up: What runs up.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(panels), 3.2), layout="constrained")
    for axes, (title, values) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for name, line in values.items():
            axes.plot(list(line), list(line.values()), marker="o", label=name)
        axes.set(xlabel=across, ylabel=up, title=title, xscale="log", ylim=(0, None))
        axes.legend(fontsize="small")
    return figure


def draw_samples(samples: Mapping[str, Sequence[int]], title: str) -> Figure:
    r"""The distribution of the samples of each method, on a log scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    _boxes(axes, samples)
    axes.set_title(title)
    return figure


def draw_shares(
    shares: Mapping[str, Mapping[str, float]], plan: Sequence[Tensor]
) -> Figure:
    r"""Shares of wrong runs by method, and where GEGE measures with a budget.

    Args:
        shares: By means, then by method.
        plan: ``K`` counts per round of one run.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.8 / len(shares)
    for i, (kind, values) in enumerate(shares.items()):
        places = [j + i * width for j in range(len(values))]
        left.bar(places, list(values.values()), width=width, label=kind)
    names = list(next(iter(shares.values())))
    left.set_xticks([j + 0.4 - width / 2 for j in range(len(names))], names)
    left.set(ylabel="share of wrong runs", title="Energy, fixed budget")
    left.set_ylim(0, 1.4)  # room for the legend
    left.legend(fontsize="small")
    for r, counts in enumerate(plan):
        rows = counts.nonzero().view(-1)
        label = f"round {r + 1}: {len(rows)} arms"
        right.vlines(rows, 0, counts[rows], colors=f"C{r}", label=label)
    right.set(xlabel="arm", ylabel="measurements", title="Where GEGE measures")
    right.legend(fontsize="small")
    return figure


def draw_rounds(samples: Mapping[str, Sequence[int]], plan: Sequence[Tensor]) -> Figure:
    r"""Samples at a fixed confidence, and GEGE's rounds.

    Args:
        samples: By means and method.
        plan: ``K`` counts per round of one run.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _boxes(left, samples)
    left.tick_params(axis="x", rotation=25)
    for label in left.get_xticklabels():
        label.set_horizontalalignment("right")
    left.set_title("Energy, fixed confidence")
    rounds = range(1, len(plan) + 1)
    right.bar(rounds, [int(counts.sum()) for counts in plan], color="C0")
    right.set(xlabel="round", yscale="log", title="GEGE's rounds, linear fit")
    right.set_ylabel("measurements (bars)")
    support = right.twinx()
    arms = [int((counts > 0).sum()) for counts in plan]
    support.plot(rounds, arms, color="C1", marker="o")
    support.set(ylabel="arms measured (line)", ylim=(0, None))
    return figure


def _boxes(axes: Axes, samples: Mapping[str, Sequence[int]]) -> None:
    axes.boxplot(list(samples.values()), tick_labels=list(samples))
    axes.set(yscale="log", ylabel="samples")
