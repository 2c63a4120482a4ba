r"""The demo: a real sea bed, an Ax loop, a picture and a table."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pandas as pd
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from torch import Tensor
from tqdm import tqdm

from botorch_lse.ax import level_set_generation_strategy, pool_parameters
from botorch_lse.ax.node import LevelSetNode
from botorch_lse.checks import real_vector
from botorch_lse.datasets import bathymetry, f1_score
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
"""The first forecast is made after so many measurements, then with each milestone."""

LINES_APART = 15.0
"""Seconds between two lines on the progress where there is no terminal."""

WORK = {"Ax": (0.035, 0.00003), "ask and tell": (0.005, 0.000008)}
"""Seconds per measurement, and how they grow with each: of LSE through Ax and of the
baselines without it, measured on the demo's sea bed."""

FIRST_WORK = 1.0
"""Seconds of work by ``WORK`` before the first estimate, which needs to see some."""

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
        f"{options.epsilon:g} {survey.unit}"
    )
    print(f"{options.methods[0]} runs through Ax, the others by ask and tell\n")
    runs: dict[str, Run] = {}
    time_left = TimeLeft(options.methods, options.budget)
    for method in options.methods:
        runs[method] = run_method(method, survey, options, time_left)
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


def run_method(
    method: str, survey: Survey, options: Namespace, time_left: TimeLeft
) -> Run:
    r"""One run; the first method's goes through Ax and is looked ahead.

    The others are there for comparison. Ax changes none of their numbers, only the
    time, and where a random run will end nobody asks.
    """
    is_first = method == options.methods[0]
    rounds = through_ax if is_first else by_ask_and_tell
    start, rows, outlook = perf_counter(), list[dict[str, object]](), "-"
    with Progress(method, options.budget, time_left) as progress:
        for state in rounds(strategy_for(method, survey, options), survey, options):
            n = len(state.observations)
            is_milestone = n > 0 and (n % MILESTONE == 0 or state.is_done)
            if is_first and (is_milestone or n == OUTLOOK):
                outlook, end = foreseen(state)
                time_left.expect(method, end)
            if is_milestone:
                seconds = perf_counter() - start
                row = summary(method, state, survey, options.threshold, seconds)
                rows.append({**row, "done at": outlook})
            progress.show(state)
    time_left.expect(method, len(state.observations))
    return Run(state, rows)


def through_ax(
    strategy: GPStrategy, survey: Survey, options: Namespace
) -> Iterator[State]:
    r"""An Ax experiment: ask for a batch, measure, complete, until Ax says stop."""
    generation = level_set_generation_strategy(strategy, seed=options.seed)
    client = Client(random_seed=options.seed)
    client.configure_experiment(parameters=pool_parameters(survey.pool), name="demo")
    client.configure_optimization(objective=METRIC)
    client.set_generation_strategy(generation)
    node = generation.current_node
    assert isinstance(node, LevelSetNode)
    measure = Sounder(survey, options)
    while True:
        yield node.state(client._experiment)
        try:
            trials = client.get_next_trials(max_trials=options.batch)
        except GenerationStrategyCompleted:
            return
        for index, parameters in trials.items():
            y = measure(int(parameters["pool_index"]))
            client.complete_trial(index, raw_data={METRIC: (y, options.noise)})


def by_ask_and_tell(
    strategy: GPStrategy, survey: Survey, options: Namespace
) -> Iterator[State]:
    r"""The same without Ax."""
    measure, state = Sounder(survey, options), strategy.init(options.seed)
    while not state.is_done:
        batch = strategy.ask(state)
        y = [measure(row) for row in batch.order.tolist()]
        state = strategy.tell(state, batch.observe(y, options.noise**2))
        yield state


class Sounder:
    r"""Measures rows of a survey, with noise of its own random numbers."""

    def __init__(self, survey: Survey, options: Namespace) -> None:
        self.survey, self.noise = survey, options.noise
        self.generator = torch.Generator().manual_seed(options.seed)

    def __call__(self, row: int) -> float:
        r"""A noisy value of a row."""
        noise = self.noise * float(torch.randn((), generator=self.generator))
        return float(self.survey.truth[row]) + noise


class TimeLeft:
    r"""How long the runs that are left will take, in all.

    How the work grows with the measurements is known (``WORK``); how fast the machine
    is, is measured as it goes on. Where a run will end is between its forecast, which
    is hopeful, and its budget.

    Args:
        methods: To run; the first through Ax.
        budget: Most measurements of each.
    """

    def __init__(self, methods: Sequence[str], budget: int) -> None:
        self.budget = budget
        self.ends = dict.fromkeys(methods, float(budget))
        self.done = dict.fromkeys(methods, 0.0)
        self.first = methods[0]
        self.start = perf_counter()

    def expect(self, method: str, end: int | None) -> None:
        r"""A run will end, or has ended, after so many measurements; ``None``: ?"""
        end = self.budget if end is None else min(end, self.budget)
        has_ended = end <= self.done[method]
        self.ends[method] = end if has_ended else math.sqrt(end * self.budget)

    def seconds(self) -> float:
        r"""The estimate."""
        done, total = self._works(self.done), self._works(self.ends)
        return (total - done) * (perf_counter() - self.start) / done

    @property
    def is_known(self) -> bool:
        r"""Whether enough was done to say how fast this machine is."""
        return self._works(self.done) >= FIRST_WORK

    def _works(self, counts: Mapping[str, float]) -> float:
        r"""Seconds that measurements take on the machine of ``WORK``."""
        seconds = 0.0
        for method, n in counts.items():
            each, growth = WORK["Ax" if method == self.first else "ask and tell"]
            seconds += n * (each + growth * n)
        return seconds


class Progress:
    r"""Shows where a run stands: a bar in a terminal, else a line now and then."""

    def __init__(self, method: str, budget: int, time_left: TimeLeft) -> None:
        self.method, self.time_left = method, time_left
        self.shown_at = -math.inf
        form = "{desc}: {n_fmt}/{total_fmt} soundings |{bar}| {postfix}"
        self.bar = tqdm(total=budget, desc=method, disable=None, bar_format=form)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def show(self, state: State) -> None:
        r"""Show a state."""
        n, now = len(state.observations), perf_counter()
        self.time_left.done[self.method] = n
        if not self.time_left.is_known:
            return
        left = f"about {self.time_left.seconds():.0f} s left in all"
        undecided = int(state.classification.undecided.sum())
        if not self.bar.disable:
            self.bar.set_postfix_str(f"{undecided:,} undecided; {left}")
            self.bar.update(n - self.bar.n)
        elif now - self.shown_at >= LINES_APART:
            words = f"{self.method}: {n} soundings, {undecided:,} undecided; {left}"
            print(words, flush=True)
            self.shown_at = now


def foreseen(state: State) -> tuple[str, int | None]:
    r"""After about how many measurements in all everything will be decided."""
    n = len(state.observations)
    if state.is_done:
        return ("now" if state.stop_reason == "decided" else "-"), n
    more = state.forecast().observations
    return ("?", None) if more is None else (f"~{n + more}", n + more)


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
        "done at": "-",
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
