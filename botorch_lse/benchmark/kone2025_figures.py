r"""The figures of Kone et al. (2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


def draw_samples(samples: Mapping[str, Sequence[int]], title: str) -> Figure:
    r"""The distribution of the samples of each method, on a log scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.boxplot(list(samples.values()), tick_labels=list(samples))
    axes.set(yscale="log", ylabel="samples", title=title)
    return figure
