r"""The demo: a real sea bed, an Ax loop, a picture and a table."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from torch import Tensor
from tqdm import tqdm

from botorch_lse.ax import level_set_generation_strategy, pool_parameters
from botorch_lse.ax.node import LevelSetNode
from botorch_lse.benchmark.bathymetry import bathymetry
from botorch_lse.benchmark.statistics import f1_score
from botorch_lse.checks import real_vector
from botorch_lse.problem import Classification, Observations, Pool
from botorch_lse.strategies import (
    GPStrategy,
    LSEStrategy,
    MELKStrategy,
    RandomStrategy,
    State,
    StraddleStrategy,
)

METRIC = "y"
LSE_BETA = 9.0
"""Three standard deviations, as in the experiments of Gotovos et al. (2013)."""

N_INITIAL = 30
"""Measurements spread over the pool before the first fit."""

METHODS = {
    "lse": LSEStrategy,
    "melk": MELKStrategy,
    "straddle": StraddleStrategy,
    "random": RandomStrategy,
}

MILESTONE = 200
"""The table shows every run after each so many measurements."""

OUTLOOK = 100
"""The forecast in the progress bar is renewed after so many measurements."""

_TRUSTED = 0.02
"""Above this share of wrong decisions the demo says that intervals are too narrow."""


@dataclass(frozen=True)
class Survey:
    r"""A pool whose truth is known, so that measurements can be simulated.

    Args:
        pool: The candidates.
        truth: ``N`` true values.
        title: What it is, for people.
        unit: Of the values.
    """

    pool: Pool
    truth: Tensor
    title: str
    unit: str


@dataclass(frozen=True)
class Run:
    r"""A finished run: its last state, and the table's rows."""

    state: State
    rows: list[dict[str, object]]


def run_demo(options: Namespace) -> None:
    r"""Run every method, print the table, write the picture and the answer."""
    survey = load_survey(options.pool, options.raw)
    print(f"{survey.title}\n{len(survey.pool):,} rows; level {options.threshold:g}")
    print(
        f"Noise {options.noise:g} {survey.unit} (standard deviation), batches of "
        f"{options.batch}, at most {options.budget} measurements, accuracy epsilon = "
        f"{options.epsilon:g} {survey.unit}\n"
    )
    runs: dict[str, Run] = {}
    for method in options.methods:
        runs[method] = run_method(method, survey, options)
    rows = [row for run in runs.values() for row in run.rows]
    print(f"{pd.DataFrame(rows).to_string(index=False)}\n")
    first = runs[options.methods[0]]
    print(how_it_ended(options.methods[0], first, survey, options))
    write_files(options.out, first, survey, options)


def load_survey(pool: str, raw: bool) -> Survey:
    r"""The sea bed, or a CSV file whose last column is the truth.

    Raises:
        ValueError: If the file is no table, has fewer than two columns, or its last is
            no number everywhere.
    """
    if pool == "topobathy":
        chart = bathymetry(raw=raw)
        how = "as it is" if raw else "averaged over a sonar footprint, 1.5 cells"
        title = f"Sea bed off Vancouver Island (depth in m, positive down; {how})"
        return Survey(chart.pool, chart.depth, title, "m")
    try:
        table = pd.read_csv(pool)
    except (OSError, ValueError) as error:  # not there, a folder, empty, binary
        raise ValueError(
            f"Expected `--pool` to be a CSV file, but {pool} cannot be read: {error}"
        ) from error
    if table.shape[1] < 2 or not pd.api.types.is_numeric_dtype(table.iloc[:, -1]):
        raise ValueError(
            "Expected `--pool` to have input columns and a last column of numbers, "
            f"but {pool} has {list(table.columns)}."
        )
    truth = real_vector(table.iloc[:, -1], f"--pool, column {table.columns[-1]!r}")
    try:
        inputs = Pool(table.iloc[:, :-1])
    except ValueError as error:
        error.add_note(f"Columns of {pool} that are no inputs: leave them out.")
        raise
    return Survey(inputs, truth, f"{pool}: {table.columns[-1]}", "units")


def refit_now(n_rounds: int) -> bool:
    r"""Fit after rounds 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: ever more rarely."""
    power = 2 ** (n_rounds.bit_length() - 1)
    return n_rounds in (power, power + power // 2)


def strategy_for(method: str, survey: Survey, options: Namespace) -> GPStrategy:
    r"""The strategy of a method, on BoTorch's default GP refitted as data come."""
    strategy_class: Callable[..., GPStrategy] = METHODS[method]
    return strategy_class(
        survey.pool,
        options.threshold,
        refit=refit_now,
        batch_size=options.batch,
        noise_std=options.noise,
        epsilon=options.epsilon,
        beta=None if method == "straddle" else LSE_BETA,
        max_observations=options.budget,
        n_initial=N_INITIAL,
    )


def run_method(method: str, survey: Survey, options: Namespace) -> Run:
    r"""One Ax experiment: ask for a batch, measure, complete, until Ax says stop."""
    strategy = strategy_for(method, survey, options)
    generation = level_set_generation_strategy(strategy, seed=options.seed)
    client = Client(random_seed=options.seed)
    client.configure_experiment(parameters=pool_parameters(survey.pool), name=method)
    client.configure_optimization(objective=METRIC)
    client.set_generation_strategy(generation)
    noise = torch.Generator().manual_seed(options.seed)
    node = generation.current_node
    assert isinstance(node, LevelSetNode)
    start, rows = time.perf_counter(), []
    outlook = "?"
    with tqdm(total=options.budget, desc=method, unit="y", disable=None) as bar:
        while True:
            state = node.state(client._experiment)
            n = len(state.observations)
            if n and n % OUTLOOK == 0 and not bar.disable:
                outlook = foreseen(state)
            undecided = int(state.classification.undecided.sum())
            bar.set_postfix(undecided=undecided, done_at=outlook)
            if n and (n % MILESTONE == 0 or state.is_done):
                seconds = time.perf_counter() - start
                rows.append(summary(method, state, survey, options.threshold, seconds))
            try:
                trials = client.get_next_trials(max_trials=options.batch)
            except GenerationStrategyCompleted:
                return Run(state, rows)
            for index, parameters in trials.items():
                y = float(survey.truth[int(parameters["pool_index"])])
                y += options.noise * float(torch.randn((), generator=noise))
                client.complete_trial(index, raw_data={METRIC: (y, options.noise)})
            bar.update(len(trials))


def foreseen(state: State) -> str:
    r"""After about how many measurements in all everything will be decided."""
    if state.is_done:
        return "now" if state.stop_reason == "decided" else "-"
    more = state.forecast().observations
    return "?" if more is None else f"~{len(state.observations) + more}"


def summary(
    name: str, state: State, survey: Survey, threshold: float, seconds: float
) -> dict[str, object]:
    r"""A row of the printed table."""
    answer, truth = state.classification, survey.truth > threshold
    return {
        "method": name,
        "soundings": len(state.observations),
        "F1": f"{f1_score(answer.best_guess, truth):.3f}",
        "undecided": int(answer.undecided.sum()),
        "decided": f"{1 - float(answer.undecided.double().mean()):.1%}",
        "wrong": f"{wrong_share(answer, truth):.2%}",
        "done at": foreseen(state),
        "seconds": f"{seconds:.1f}",
        "stopped": state.stop_reason or "",
    }


def wrong_share(answer: Classification, truth: Tensor) -> float:
    r"""The share of decided rows that lie on the other side."""
    decided = ~answer.undecided
    wrong = (answer.above != truth) & decided
    return float(wrong.sum()) / max(int(decided.sum()), 1)


def how_it_ended(name: str, run: Run, survey: Survey, options: Namespace) -> str:
    r"""Why the run ended and how far to trust it, in sentences."""
    state = run.state
    n, undecided = len(state.observations), int(state.classification.undecided.sum())
    if state.stop_reason == "decided":
        end = (
            f"{name} ended by itself after {n} soundings: every row is decided at "
            f"epsilon = {options.epsilon:g} {survey.unit}."
        )
    else:
        end = (
            f"The budget of {n} soundings ended {name}; {undecided} rows are undecided."
        )
    share = wrong_share(state.classification, survey.truth > options.threshold)
    if share > _TRUSTED:
        end += (
            f" {share:.1%} of the decided rows are wrong: on these data the intervals "
            "of a stationary Gaussian process are too narrow."
        )
    return f"{end}\n{state.classification.guarantee}"


def write_files(out: Path, run: Run, survey: Survey, options: Namespace) -> None:
    r"""``level_set.png`` and ``level_set.csv`` in a folder."""
    from botorch_lse.plotting import plot_level_set

    out.mkdir(parents=True, exist_ok=True)
    answer, observations = run.state.classification, run.state.observations
    axes = plot_level_set(
        answer, observations, threshold=options.threshold, truth=survey.truth
    )
    axes.set_title(f"Deeper than {options.threshold:g} {survey.unit}?")
    figure = axes.get_figure(root=True)
    assert figure is not None  # drawn just now
    figure.savefig(out / "level_set.png", dpi=150, bbox_inches="tight")
    level_set_table(answer, observations, survey).to_csv(
        out / "level_set.csv", index=False, float_format="%.6g"
    )
    print(f"\nWrote {out / 'level_set.png'} and {out / 'level_set.csv'}")


def level_set_table(
    answer: Classification, observations: Observations, survey: Survey
) -> pd.DataFrame:
    r"""The answer as a table, with the number of soundings and the truth beside it."""
    counts = observations.times_measured(len(survey.pool))
    return answer.to_frame().assign(
        soundings=counts.numpy(), true_value=survey.truth.numpy()
    )
