r"""Pictures like Figures 1c, 2, 3 and 4 to 6 of Weltz et al. (2023)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from research.papers.weltz2023.claims import Errors
from research.papers.weltz2023.runs import Example, Noisier

BLUE, RED, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"
COLOURS = {"HEAD": BLUE, "Uniform": RED, "Separate Arm": GREEN}


def draw_kappa(curve: Sequence[Noisier]) -> Any:
    r"""Figure 1c: how many times more samples it takes to ignore the noise's shape."""
    figure, (panel,) = _panels(1, 4.2)
    panel.plot([p.kappa for p in curve], [p.ratio for p in curve], "o-", color=BLUE)
    left = [p.kappa for p in curve if p.informative > 1e-6]
    panel.axvline(max(left), color=GREY, ls=":", label="allocation leaves e2")
    panel.set(xlabel="kappa", ylabel="rho* / psi*", title="samples of the two oracles")
    panel.legend(fontsize=8)
    return figure


def draw_errors(
    sizes: Sequence[int], by_size: Errors, dims: Sequence[int], by_dim: Errors
) -> Any:
    r"""Figure 2: mean largest error with standard errors."""
    figure, panels = _panels(2, 4.2)
    axes = ((sizes, by_size, "samples (d = 15)"), (dims, by_dim, "dimension"))
    for panel, (x, errors, label) in zip(panels, axes, strict=True):
        for name, values in errors.items():
            spread = values.std(dim=0, correction=0) / len(values) ** 0.5
            panel.errorbar(
                x,
                values.mean(dim=0),
                spread,
                color=COLOURS[name],
                label=name,
                capsize=2,
            )
        panel.set(xlabel=label, ylabel="largest absolute error of a variance")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize=8)
    return figure


def draw_samples(examples: Sequence[Example]) -> Any:
    r"""Figure 3: mean samples with standard errors, oracles and the lower bound."""
    figure, panels = _panels(len(examples), 4.2)
    for panel, example in zip(panels, examples, strict=True):
        for k, method in enumerate(example.runs):
            samples = example.samples(method)
            spread = float(samples.std(correction=0)) / len(samples) ** 0.5
            colour = RED if method == "RAGE" else BLUE
            panel.bar(k, float(samples.mean()), yerr=spread, color=colour, capsize=3)
            panel.bar(k, example.burn_in(method), color="black")
        n = len(example.runs)
        panel.bar(n, example.oracle_samples(example.psi), color=GREEN)
        panel.bar(n + 1, example.oracle_samples(example.rho), color=GREY)
        panel.axhline(example.lower_bound, color="black", ls="--", label="lower bound")
        names = ("H-RAGE", "known\nvariances", "RAGE", "oracle", "oracle\ns2_max")
        panel.set_xticks(range(n + 2), names, fontsize=7)
        panel.set(title=example.title, ylabel="samples (black: burn-in)", yscale="log")
        panel.legend(fontsize=8)
    return figure


def draw_oracle(example: Example) -> Any:
    r"""Figures 4 to 6: the two oracles' allocations."""
    figure, (panel,) = _panels(1, 6.5)
    x = torch.arange(len(example.problem.names), dtype=torch.float64)
    oracles = (
        (example.psi, BLUE, "true variances"),
        (example.rho, RED, "largest variance"),
    )
    for shift, (oracle, colour, label) in zip((-0.2, 0.2), oracles, strict=True):
        weights = oracle.design.weights
        panel.bar(x + shift, weights, width=0.4, color=colour, label=label)
    panel.set_xticks(x, example.problem.names, rotation=40, fontsize=7, ha="right")
    panel.set(ylabel="share of the samples", title=f"{example.title}: oracles")
    panel.legend(fontsize=8)
    return figure


def _panels(n: int, width: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n, 3.4), layout="constrained")
    panels = figure.subplots(1, n, squeeze=False)[0]
    for panel in panels:
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
    return figure, panels
