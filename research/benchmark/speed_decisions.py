r"""How time and memory of one decision grow: rows, measurements, batch, inputs."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from tqdm import tqdm

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.strategies import (
    Above,
    AbsoluteVolumeChange,
    Ambiguity,
    ExpectedFeasibility,
    ExpectedMisclassification,
    GaussianProcess,
    MutualInformation,
    OptimalDesign,
    RandomizedStraddle,
    Straddle,
    Strategy,
    TargetedVariance,
    TruncatedVariance,
    UFunction,
)
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, in_fresh_process, memory_since, peak_memory
from research.papers.problems import matern_prior
from research.report import Report, Table

BASE = {"rows": 2_000, "measurements": 100, "batch": 8, "inputs": 3}
"""What the others are while one of them grows."""
SIZES = {
    "rows": (1_000, 3_000, 10_000, 30_000, 100_000),
    "measurements": (50, 100, 200, 400, 800),
    "batch": (1, 4, 16, 64, 256),
    "inputs": (1, 3, 9, 27),
}
QUICK_SIZES = {axis: sizes[:3] for axis, sizes in SIZES.items()}
LONGEST = 30.0
"""Seconds of a decision after which no larger one is tried."""
NOISE, LEVEL = 0.1, 0.3


def rules() -> dict[str, Any]:
    r"""What chooses rows, by name; ``None`` is the default."""
    named = [
        RandomizedStraddle(),
        Straddle(),
        Ambiguity(),
        UFunction(),
        ExpectedFeasibility(),
        TruncatedVariance(),
        TargetedVariance(),
        MutualInformation(),
        ExpectedMisclassification(),
        AbsoluteVolumeChange(),
        OptimalDesign(),
    ]
    joint = {"joint misclassification": ExpectedMisclassification(batch="joint")}
    return {"default": None} | {type(r).__name__: r for r in named} | joint


@dataclass(frozen=True)
class Decision:
    r"""What one decision took.

    Args:
        size: The number that grows.
        seconds: Of the processor, to ask for a batch and to learn its values.
        peak: Growth of the process's peak memory so far, bytes.
    """

    size: int
    seconds: float
    peak: int


@entry("speed", "decisions", "how a decision of each rule grows with the problem")
def speed_decisions(options: Options) -> Report:
    r"""Seconds and memory by rows, measurements, batch and inputs, with slopes."""
    sizes = QUICK_SIZES if options.quick else SIZES
    cells = list(product(rules(), sizes))
    found = {
        (name, axis): in_fresh_process(decisions, name, axis, sizes[axis])
        for name, axis in tqdm(cells, desc="speed decisions", disable=None, leave=False)
    }
    base = ", ".join(f"{axis} {size:,}" for axis, size in BASE.items())
    notes = [
        f"One batch asked and told, where nothing else is said: {base}. A fixed "
        f"Matern-5/2 process, noise {NOISE:g}. Seconds of the processor, one core, a "
        "fresh process for each row of a table; memory above that of the libraries.",
        "Slope: of the logarithm of the seconds over that of the size, from the last "
        f"two sizes; 1 is proportional. After {LONGEST:g} s nothing larger is tried.",
    ]
    tables = [growth_table(axis, sizes[axis], found) for axis in sizes]
    data = {
        "growth": [
            {"rule": name, "axis": axis, **vars(one)}
            for (name, axis), ones in found.items()
            for one in ones
        ]
    }
    figures: Mapping[str, Callable[[], Any]] = {
        "growth": partial(draw_growth, data["growth"])
    }
    return Report("speed decisions", notes, tables, (), data, figures)


def decisions(name: str, axis: str, sizes: Sequence[int]) -> list[Decision]:
    r"""One decision of a rule for each size, from small to large."""
    found = list[Decision]()
    # What libraries do once is not part of a decision.
    decide(name, **{**BASE, "rows": 100, "measurements": 5, "batch": 2})
    before = peak_memory()
    for size in sizes:
        seconds = decide(name, **{**BASE, axis: size})
        found.append(Decision(size, seconds, memory_since(before)))
        if seconds > LONGEST:
            break
    return found


def decide(name: str, rows: int, measurements: int, batch: int, inputs: int) -> float:
    r"""Processor seconds of one batch asked and told."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(rows, inputs, generator=generator, dtype=torch.float64)
    # In many dimensions as in few, neighbours know of each other.
    prior = matern_prior(tuple(0.3 * math.sqrt(inputs) for _ in range(inputs)))
    strategy = Strategy(
        Pool(X),
        Above(LEVEL),
        model=GaussianProcess(prior, noise_std=NOISE),
        rule=rules()[name],
        batch_size=batch,
    )
    at = torch.randint(rows, (measurements,), generator=generator)
    y = (6.0 * X[at].mean(dim=-1)).sin()
    y = y + NOISE * torch.randn(y.shape, generator=generator, dtype=y.dtype)
    with warnings.catch_warnings():
        # How it was chosen, and whether values fit the model, plays no role here.
        warnings.simplefilter("ignore")
        state = strategy.tell(strategy.init(0), Observations(at, y))
        began = time.process_time()
        asked = strategy.ask(state)
        strategy.tell(state, asked.observe(torch.zeros(len(asked)).double()))
        return time.process_time() - began


def growth_table(
    axis: str, sizes: Sequence[int], found: Mapping[tuple[str, str], list[Decision]]
) -> Table:
    r"""Seconds of each rule by the size of one axis."""
    rows = []
    for name in rules():
        ones = found[name, axis]
        cells = [f"{one.seconds:.3g}" for one in ones]
        cells += [""] * (len(sizes) - len(ones))
        peak = f"{ones[-1].peak / MIB:.0f}"
        rows.append((name, *cells, f"{slope(ones):.2f}", peak))
    columns = ("rule", *(f"{size:,}" for size in sizes), "slope", "peak (MiB)")
    return Table(f"Seconds by {axis}", columns, rows)


def slope(ones: Sequence[Decision]) -> float:
    r"""How the seconds grow between the last two sizes, as an exponent."""
    if len(ones) < 2:
        return math.nan
    first, last = ones[-2:]
    ratio = max(last.seconds, 1e-9) / max(first.seconds, 1e-9)
    return math.log(ratio) / math.log(last.size / first.size)


HUES = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008), without the
yellow, which is too light for lines on white."""


def draw_growth(records: Sequence[Mapping[str, Any]]) -> Any:
    r"""Seconds and memory over each axis, a line for each rule.

    Args:
        records: As in ``results.json``.
    """
    from matplotlib.figure import Figure

    axes = list(dict.fromkeys(record["axis"] for record in records))
    names = list(dict.fromkeys(record["rule"] for record in records))
    figure = Figure(figsize=(2.4 * len(axes), 7.2), layout="constrained")
    panels = figure.subplots(2, len(axes), sharex="col", sharey="row", squeeze=False)
    kinds = [("-", "o"), ("--", "s"), (":", "^")]
    styles = [
        {"color": hue, "linestyle": line, "marker": marker}
        for (line, marker), hue in itertools.product(kinds, HUES)
    ]
    for i, axis in enumerate(axes):
        for name, style in zip(names, itertools.cycle(styles)):
            own = [r for r in records if (r["rule"], r["axis"]) == (name, axis)]
            size = [r["size"] for r in own]
            seconds, memory = panels[0, i], panels[1, i]
            took = [r["seconds"] for r in own]
            seconds.loglog(size, took, label=name, markersize=3, **style)
            peak = [max(r["peak"] / MIB, 0.1) for r in own]
            memory.loglog(size, peak, markersize=3, **style)
        sizes = sorted({r["size"] for r in records if r["axis"] == axis})
        panels[1, i].set_xlabel(axis)
        panels[1, i].set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45)
        panels[1, i].minorticks_off()
    panels[0, 0].set_ylabel("processor seconds")
    panels[1, 0].set_ylabel("peak memory (MiB)")
    lines = panels[0, 0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=3, frameon=False)
    return figure
