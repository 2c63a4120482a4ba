r"""The demo: a real sea bed, an Ax loop, a picture and a table."""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import torch
from ax.api.client import Client
from torch import Tensor
from tqdm import tqdm

from botorch_lse._files import write_figure, write_whole
from botorch_lse._numerals import written
from botorch_lse._validation import real_vector
from botorch_lse.ax import (
    POOL_INDEX,
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
)
from botorch_lse.ax.compat import experiment_of
from botorch_lse.ax.node import level_set_node
from botorch_lse.cli.options import say
from botorch_lse.confidence.calibration import CalibrationWarning
from botorch_lse.data.classification import Classification
from botorch_lse.data.pool import Pool
from botorch_lse.datasets import bathymetry, f1_score
from botorch_lse.strategies import (
    Above,
    ComposedStrategy,
    GaussianProcess,
    GPStrategy,
    LSEStrategy,
    MELKStrategy,
    RandomStrategy,
    State,
    StraddleStrategy,
    Strategy,
)
from botorch_lse.strategies.algorithm import (
    ALL_ABOVE,
    AUDITED,
    BUDGET,
    DECIDED,
    EXHAUSTED,
    NONE_FOUND,
    NOT_CONFIRMED,
    OUT_OF_REACH,
)
from botorch_lse.surrogate.remarks import DataWarning

METRIC = "y"
LSE_BETA = 9.0
"""The squared width of Gotovos et al. (2013): three standard deviations."""

N_INITIAL = 30
"""The number of measurements spread over the pool before the first fit."""

DEFAULT = "default"
PRESETS = {
    "lse": LSEStrategy,
    "melk": MELKStrategy,
    "straddle": StraddleStrategy,
    "random": RandomStrategy,
}

MILESTONE = 200
"""The number of measurements between two lines of a run in the table."""

OUTLOOK = 100
"""The number of measurements before the first forecast; milestones bring others."""

LINES_APART = 15.0
"""The seconds between two lines on the progress where there is no terminal."""

WORK = {"Ax": (0.035, 0.00003), "ask and tell": (0.005, 0.000008)}
"""The seconds of a measurement, and their growth with each, measured on the sea bed.
Of LSE through Ax, and of the baselines without it."""

FIRST_WORK = 1.0
"""The seconds of work by ``WORK`` before the first estimate, which has to see some."""

ENDS = {
    DECIDED: "every row is decided up to epsilon",
    AUDITED: "rows drawn at random confirmed what was decided",
    NOT_CONFIRMED: "rows drawn at random did not confirm what was decided",
    NONE_FOUND: "no row was clearly above the level, so far",
    ALL_ABOVE: "no row was clearly below the level, so far",
    BUDGET: "the budget is used up",
    EXHAUSTED: "no row is left to measure",
    OUT_OF_REACH: "no row that may be measured decides more",
}
"""The clauses that say why a run ended, by its stop reason."""

_TRUSTED = 0.02
"""The share of wrong decisions above which the demo calls intervals too narrow."""


@dataclass(frozen=True)
class Survey:
    r"""A pool whose truth is known, so that measurements can be simulated.

    Args:
        pool: The candidates.
        truth: ``N`` true values.
        title: A description of the data, printed above the table.
        unit: The unit of the values.
    """

    pool: Pool
    truth: Tensor
    title: str
    unit: str


def run_demo(options: Namespace) -> None:
    r"""Run every method, print the table, write the pictures and the answer."""
    survey = load_survey(options.pool, options.raw)
    say(
        f"{survey.title}\n{len(survey.pool):,} rows; level {written(options.threshold)}"
    )
    say(
        f"Noise {written(options.noise)} {survey.unit} (standard deviation), batches "
        f"of {options.batch}, at most {options.budget} measurements, accuracy "
        f"epsilon = {written(options.epsilon)} {survey.unit}"
    )
    first, *_ = options.methods
    say(f"{first} runs through Ax, the others by ask and tell\n")
    time_left = TimeLeft(options.methods, options.budget)
    with warnings.catch_warnings():
        # Whether the predictions held is said at the end, and drawn.
        warnings.simplefilter("ignore", CalibrationWarning)
        # Steep slopes are asked about as if they were typing errors.
        warnings.simplefilter("ignore", DataWarning)
        runs = {m: run_method(m, survey, options, time_left) for m in options.methods}
    rows = [row for _, milestones in runs.values() for row in milestones]
    say(f"{pd.DataFrame(rows).to_string(index=False)}\n")
    end, _ = runs[first]
    say(how_it_ended(first, end, survey, options))
    others = {method: state for method, (state, _) in runs.items() if method != first}
    if more := sooner(first, end, others, survey, options):
        say(more)
    write_files(options.out, end, survey, options)


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
    except ValueError as error:  # empty or binary
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
    r"""Whether to fit now: after rounds 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    power = 2 ** (n_rounds.bit_length() - 1)
    return n_rounds in (power, power + power // 2)


def strategy_for(
    method: str, survey: Survey, options: Namespace
) -> ComposedStrategy | GPStrategy:
    r"""The strategy of a method, on BoTorch's default GP refitted as data come."""
    pool, level, epsilon = survey.pool, options.threshold, options.epsilon
    learnt = {"noise_std": options.noise, "refit": refit_now, "n_initial": N_INITIAL}
    whole = {"batch_size": options.batch, "max_observations": options.budget}
    whole["beta"] = None if method == "straddle" else LSE_BETA
    # The answer that is handed on is audited, the others are there for comparison.
    whole["audit"] = True if method == options.methods[0] else None
    if method == DEFAULT:
        model = GaussianProcess(**learnt)
        strategy = Strategy(pool, Above(level, epsilon), model=model, **whole)
        assert isinstance(strategy, ComposedStrategy)  # which ``Strategy(...)`` makes
        return strategy
    preset: Callable[..., GPStrategy] = PRESETS[method]
    return preset(pool, level, epsilon=epsilon, **learnt, **whole)


def run_method(
    method: str, survey: Survey, options: Namespace, time_left: TimeLeft
) -> tuple[State, list[dict[str, object]]]:
    r"""Run one method.

    The first method runs through Ax and has forecasts. The others are there for
    comparison and run without Ax, which would change none of their numbers.

    Returns:
        The last state, and the method's rows of the table.
    """
    is_first = method == options.methods[0]
    rounds = through_ax if is_first else by_ask_and_tell
    states = rounds(strategy_for(method, survey, options), survey, options)
    start, rows, outlook = perf_counter(), list[dict[str, object]](), "-"
    was_decided = False
    for state in watched(states, method, time_left):
        n = len(state.observations)
        is_decided = not bool(state.classification.undecided.any())
        is_milestone = n % MILESTONE == 0 or state.is_done
        is_milestone |= is_decided and not was_decided  # an audit begins
        was_decided |= is_decided
        if is_first and (is_milestone or n == OUTLOOK):
            outlook, end = foreseen(state)
            time_left.expect(method, end)
        if is_milestone:
            answer, truth = state.classification, survey.truth > options.threshold
            row = {
                "method": method,
                "soundings": n,
                "F1": f"{f1_score(answer.best_guess, truth):.3f}",
                "undecided": int(answer.undecided.sum()),
                "decided": f"{1 - float(answer.undecided.double().mean()):.1%}",
                "wrong": f"{wrong_share(answer, truth):.2%}",
                "done at": outlook,
                "seconds": f"{perf_counter() - start:.1f}",
                "stopped": state.stop_reason or "",
            }
            rows.append(row)
    time_left.expect(method, n)
    return state, rows


def through_ax(
    strategy: ComposedStrategy | GPStrategy, survey: Survey, options: Namespace
) -> Iterator[State]:
    r"""The states after each round of a run as an Ax experiment."""
    client = Client(random_seed=options.seed)
    client.configure_experiment(parameters=pool_parameters(survey.pool), name="demo")
    client.configure_optimization(objective=METRIC)
    generation = level_set_generation_strategy(strategy, seed=options.seed)
    client.set_generation_strategy(generation)
    node, measure = level_set_node(generation), sounder(survey, options)

    def evaluate(parameters: Mapping[str, Any]) -> tuple[float, float]:
        return measure(int(parameters[POOL_INDEX])), options.noise

    state = strategy.init(options.seed)
    while not state.is_done:
        run_experiment(client, evaluate, max_trials=options.batch, progress=False)
        state = node.state(experiment_of(client))
        yield state


def by_ask_and_tell(
    strategy: ComposedStrategy | GPStrategy, survey: Survey, options: Namespace
) -> Iterator[State]:
    r"""The states after each round of a run without Ax."""
    measure, state = sounder(survey, options), strategy.init(options.seed)
    while not state.is_done:
        batch = strategy.ask(state)
        y = [measure(row) for row in batch.order.tolist()]
        state = strategy.tell(state, batch.observe(y, options.noise**2))
        yield state


def sounder(survey: Survey, options: Namespace) -> Callable[[int], float]:
    r"""A function that simulates a measurement of a row, with noise of its own seed."""
    generator = torch.Generator().manual_seed(options.seed)

    def measure(row: int) -> float:
        noise = options.noise * float(torch.randn((), generator=generator))
        return float(survey.truth[row]) + noise

    return measure


class TimeLeft:
    r"""An estimate of the time that the rest of all runs will take.

    How the work grows with the number of measurements is known (``WORK``); how fast the
    machine is, is measured during the runs. A run is assumed to end between its
    forecast, which is optimistic, and its budget.

    Args:
        methods: The methods to run; the first through Ax.
        budget: The largest number of measurements of each.
    """

    def __init__(self, methods: Sequence[str], budget: int) -> None:
        self.budget = budget
        self.ends = dict.fromkeys(methods, float(budget))
        self.done = dict.fromkeys(methods, 0.0)
        self.first = methods[0]
        self.start = perf_counter()

    def expect(self, method: str, end: int | None) -> None:
        r"""Set the number of measurements at which a run will end, or has ended.

        Args:
            method: The run's method.
            end: The number of measurements; ``None`` if there is no forecast.
        """
        end = self.budget if end is None else min(end, self.budget)
        has_ended = end <= self.done[method]
        self.ends[method] = end if has_ended else math.sqrt(end * self.budget)

    def seconds(self) -> float:
        r"""The estimated number of seconds until all runs have ended."""
        done, total = self._works(self.done), self._works(self.ends)
        return (total - done) * (perf_counter() - self.start) / done

    @property
    def is_known(self) -> bool:
        r"""Whether enough work was done to know how fast this machine is."""
        return self._works(self.done) >= FIRST_WORK

    def _works(self, counts: Mapping[str, float]) -> float:
        seconds = 0.0
        for method, n in counts.items():
            each, growth = WORK["Ax" if method == self.first else "ask and tell"]
            seconds += n * (each + growth * n)
        return seconds


def watched(
    states: Iterator[State], method: str, time_left: TimeLeft
) -> Iterator[State]:
    r"""The states of a run, passed on while its progress is shown.

    The progress is a bar in a terminal, else a line every ``LINES_APART`` seconds.
    """
    form = "{desc}: {n_fmt}/{total_fmt} soundings |{bar}| {postfix}"
    budget, shown_at = time_left.budget, -math.inf
    with tqdm(total=budget, desc=method, disable=None, bar_format=form) as bar:
        for state in states:
            yield state  # first, so that a forecast made of it counts
            n, now = len(state.observations), perf_counter()
            time_left.done[method] = n
            if not time_left.is_known:
                continue
            left = f"about {time_left.seconds():.0f} s left in all"
            undecided = f"{int(state.classification.undecided.sum()):,} undecided"
            if not bar.disable:
                bar.set_postfix_str(f"{undecided}; {left}")
                bar.update(n - bar.n)
            elif now - shown_at >= LINES_APART:
                say(f"{method}: {n} soundings, {undecided}; {left}")
                shown_at = now


def foreseen(state: State) -> tuple[str, int | None]:
    r"""The forecast of a state: in words for the table, and as a number.

    The number counts all measurements of the run; ``None`` if none is foreseen.
    """
    n = len(state.observations)
    if state.is_done:
        return ("now" if state.stop_reason in (DECIDED, AUDITED) else "-"), n
    more = state.forecast().observations
    return ("?", None) if more is None else (f"~{n + more}", n + more)


def wrong_share(answer: Classification, truth: Tensor) -> float:
    r"""The share of decided rows whose decision is wrong."""
    decided = ~answer.undecided
    wrong = (answer.above != truth) & decided
    return float(wrong.sum()) / max(int(decided.sum()), 1)


def how_it_ended(name: str, state: State, survey: Survey, options: Namespace) -> str:
    r"""The reason why the run ended and its reliability, in sentences."""
    assert state.stop_reason is not None  # it has ended
    n, undecided = len(state.observations), int(state.classification.undecided.sum())
    end = f"{name} ended after {n} soundings: {ENDS[state.stop_reason]}"
    end += f"; undecided rows: {undecided:,}." if undecided else "."
    share = wrong_share(state.classification, survey.truth > options.threshold)
    if share > _TRUSTED:
        end += (
            f" {share:.1%} of the decided rows are wrong: on these data the intervals "
            "of a stationary Gaussian process are too narrow."
        )
    said, guarantee = str(state.calibration()), state.classification.guarantee
    # Where the predictions failed the answer says so already.
    return "\n".join((end, guarantee) if said in guarantee else (end, guarantee, said))


def sooner(
    name: str,
    state: State,
    others: Mapping[str, State],
    survey: Survey,
    options: Namespace,
) -> str:
    r"""The methods that had their answer with fewer measurements, and why, in a line.

    Args:
        name: The method whose answer is handed on.
        state: Its last state.
        others: The last states of the other methods.
        survey: The truth.
        options: The command line's.
    """
    said = []
    for other, end in others.items():
        n = len(end.observations)
        if end.stop_reason != DECIDED or n >= len(state.observations):
            continue
        share = wrong_share(end.classification, survey.truth > options.threshold)
        widths = (
            strategy_for(method, survey, options).algorithm.widths(1) ** 0.5
            for method in (other, name)
        )
        said.append(
            "{} took {} soundings: it decides at {:.3g} standard deviations, not {:.3g}"
            ", and nobody checks; {:.1%} of its rows are wrong.".format(
                other, n, *widths, share
            )
        )
    return " ".join(said)


def write_files(out: Path, state: State, survey: Survey, options: Namespace) -> None:
    r"""Write two pictures, a table and a report to a folder.

    The table has the number of soundings and the truth beside the answer.
    """
    from botorch_lse.plotting import plot_calibration, plot_level_set, write_report

    answer, observations = state.classification, state.observations
    axes = plot_level_set(
        answer, observations, threshold=options.threshold, truth=survey.truth
    )
    axes.set_title(f"Deeper than {written(options.threshold)} {survey.unit}?")
    if survey.pool.names == ("x_km", "y_km"):  # of the chart
        axes.set(xlabel="east (km)", ylabel="north (km)")
    figure = axes.get_figure(root=True)
    assert figure is not None  # drawn just now
    picture, table = out / "level_set.png", out / "level_set.csv"
    residuals = out / "calibration.png"
    write_figure(figure, picture, dpi=150, bbox_inches="tight")
    metric = f"depth ({survey.unit})"
    figure = plot_calibration(state.calibration(), metric=metric)
    write_figure(figure, residuals, dpi=150)
    soundings = observations.times_measured(len(survey.pool)).numpy()
    columns = {"soundings": soundings, "true_value": survey.truth.numpy()}
    frame = answer.to_frame().assign(**columns)
    write_whole(table, frame.to_csv(index=False, float_format="%.6g").encode())
    page = out / "report.html"  # without the way there, whose fits take long
    write_report(state, page, metrics=[metric], states=[state])
    say(f"\nWrote {picture}, {residuals}, {table} and {page}")
