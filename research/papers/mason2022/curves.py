r"""F1 of the declared set: runs, claims and tables for Mason et al. (2022)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.datasets import f1_score
from botorch_lse.strategies import Strategy
from research.papers.mason2022.problems import BATCH, METHODS, Method, Panel
from research.papers.problems import Problem
from research.report import Claim, Table

Scores = Mapping[str, Tensor]
"""By method: ``runs x k x 2``, F1 of the declared set and of the best guess after 10,
20, ... measurements."""

DECLARED, GUESSED = 0, 1
AHEAD, BEHIND = 0.15, 0.1


def score_run(problem: Problem, strategy: Strategy, n: int) -> Tensor:
    r"""``k x 2`` F1 scores after 10, 20, ..., ``n`` measurements.

    The declared set are the rows classified as above, the best guess also the undecided
    rows whose posterior mean is above. A run that stops early keeps its last scores.
    """
    state, noise = strategy.init(problem.seed), problem.noise_generator()
    counts, scores = [], []
    while not state.is_done:
        batch = strategy.ask(state)
        y = problem.measure(batch.order, noise)
        state = strategy.tell(state, batch.observe(y))
        if len(state.observations) % BATCH and not state.is_done:
            continue
        answer = state.classification
        found = (answer.above, answer.best_guess)
        counts.append(len(state.observations))
        scores.append([f1_score(rows, problem.above) for rows in found])
    axis = torch.arange(BATCH, n + 1, BATCH)
    last = torch.searchsorted(torch.tensor(counts), axis, right=True) - 1
    return torch.tensor(scores, dtype=torch.float64)[last.clamp_min(0)]


def score_panel(panel: Panel, seeds: int, n: int) -> dict[str, Tensor]:
    r"""The scores of every method on seeds ``0, ..., seeds - 1``."""
    methods = [m for m in METHODS if "2b" in panel.figures or not m.main_only]
    runs: dict[str, list[Tensor]] = {method.name: [] for method in methods}
    total = seeds * len(methods)
    with tqdm(total=total, desc=panel.key, disable=None, leave=False) as progress:
        for seed in range(seeds):
            problem = panel.problem(seed)
            for method in methods:
                runs[method.name].append(_scored(method, problem, n))
                progress.update()
    return {name: torch.stack(scores) for name, scores in runs.items()}


def _scored(method: Method, problem: Problem, n: int) -> Tensor:
    return score_run(problem, method.build(problem, n), n)


def main_claims(scores: Scores, checkpoints: Sequence[int]) -> list[Claim]:
    r"""The claims of Figure 2b's setting."""
    return [
        *(
            _gap("MELK", other, AHEAD, paper, scores, checkpoints)
            for other, paper in (
                ("LSE", "far ahead (Fig. 2b)"),
                ("LSE F.1", "far ahead (Fig. 2b)"),
                ("LSE, B = 10", "not run"),
            )
        ),
        _gap("MELK", "VR", -BEHIND, "very similar (Fig. 2b)", scores, checkpoints),
        _gap("MELK F.1", "LSE F.1", AHEAD, "far ahead (Fig. 2b)", scores, checkpoints),
        _gap("MELK", "MELK i.i.d.", 0.0, "i.i.d. only", scores, checkpoints),
    ]


def _gap(
    ours: str,
    other: str,
    least: float,
    paper: str,
    scores: Scores,
    checkpoints: Sequence[int],
) -> Claim:
    parts, means = [], []
    for n in checkpoints:
        gap = (scores[ours] - scores[other])[:, n // BATCH - 1, DECLARED]
        means.append(float(gap.mean()))
        parts.append(f"{means[-1]:+.3f} (s.e. {standard_error(gap):.3f}) at {n}")
    return Claim(
        f"2b: mean F1 of the declared set, {ours} less {other}, at least {least:+.2f}",
        paper,
        "; ".join(parts),
        min(means) >= least,
    )


def standard_error(values: Tensor) -> float:
    r"""Of the mean of ``runs`` values; ``nan`` for one run."""
    runs = values.numel()
    return float(values.std()) / math.sqrt(runs) if runs > 1 else math.nan


def score_table(
    title: str, scores: Scores, checkpoints: Sequence[int], which: int
) -> Table:
    r"""Mean and standard error by method."""
    rows = []
    for name, runs in scores.items():
        cells = [runs[:, n // BATCH - 1, which] for n in checkpoints]
        shown = [f"{float(c.mean()):.3f} ({standard_error(c):.3f})" for c in cells]
        rows.append((name, *shown))
    return Table(title, ("method", *(str(n) for n in checkpoints)), rows)


def panel_table(results: Mapping[str, Scores], n: Mapping[str, int]) -> Table:
    r"""Mean F1 of the declared set in all panels, half way and at the end."""
    names = [method.name for method in METHODS]
    rows = []
    for key, scores in results.items():
        for at in (n[key] // 2, n[key]):
            means = {
                name: f"{float(runs[:, at // BATCH - 1, DECLARED].mean()):.3f}"
                for name, runs in scores.items()
            }
            rows.append((key, str(at), *(means.get(name, "") for name in names)))
    title = "Figures 2 to 5: F1 of the declared set, mean over seeds"
    return Table(title, ("panel", "measurements", *names), rows)
