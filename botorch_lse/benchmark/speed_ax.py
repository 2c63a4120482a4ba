r"""What Ax adds to a run: time, and what is stored."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from gpytorch.kernels import MaternKernel

from botorch_lse.benchmark.registry import Options, entry
from botorch_lse.benchmark.report import Report, Table
from botorch_lse.benchmark.speed import in_fresh_process, measured, target
from botorch_lse.problem import Batch, Pool
from botorch_lse.strategies import MELKStrategy, State

if TYPE_CHECKING:  # the list of benchmarks needs no Ax
    from ax.api.client import Client

ROWS, TRIALS, BATCH, NOISE = 5_000, 200, 10, 0.1


@dataclass(frozen=True)
class Overhead:
    r"""One run through a ``Client`` beside the same run without Ax.

    Args:
        client: Seconds of the run through the client.
        strategy: Seconds of these inside the strategy.
        same: Whether a run without Ax asked for the same rows.
        saves: Seconds of writing the file after each of the trials, all together.
        json: Bytes of ``client.save_to_json_file`` at the end.
        compact: Bytes of ``save_client``.
        load: Seconds of ``Client.load_from_json_file``.
    """

    client: float
    strategy: float
    same: bool
    saves: float
    json: int
    compact: int
    load: float


@entry(
    "speed",
    "ax",
    "200 trials of MELK in batches of 10 on 5,000 rows, through Ax",
    needs=("ax",),
)
def speed_ax(options: Options) -> Report:
    r"""Ax's share of the time, and the size of the saved experiment."""
    trials = 40 if options.quick else TRIALS
    found = in_fresh_process(overhead, ROWS, trials, BATCH)
    share = 1 - found.strategy / found.client
    with_file = 1 - found.strategy / (found.client + found.saves)
    megabytes = found.json / 1e6
    rows = [
        ("a run through a Client", "", f"{found.client:.1f} s"),
        ("of these inside the strategy", "", f"{found.strategy:.1f} s"),
        ("Ax's share of the time", "50 %", target(f"{share:.0%}", share < 0.5)),
        ("writing a file after each trial", "", f"{found.saves:.1f} s"),
        (
            "Ax's share with these writes",
            "50 %",
            target(f"{with_file:.0%}", with_file < 0.5),
        ),
        (
            "saved JSON (client.save_to_json_file)",
            "5 MB",
            target(f"{megabytes:.2f} MB", megabytes < 5),
        ),
        ("saved JSON (save_client)", "", f"{found.compact / 1e6:.2f} MB"),
        ("loading it", "", f"{found.load:.2f} s"),
        (
            "the rows that a run without Ax asks for",
            "the same",
            target("the same" if found.same else "others", found.same),
        ),
    ]
    notes = [
        f"MELK on {ROWS:,} rows with three inputs, {trials} trials in batches of "
        f"{BATCH}, a fixed Matern kernel; one core, a fresh process. The time inside "
        "the strategy is that of its `init`, `ask` and `tell` during the same run."
    ]
    table = Table("What Ax adds", ("what", "target", "measured"), rows)
    data = {
        "client_seconds": found.client,
        "strategy_seconds": found.strategy,
        "save_seconds": found.saves,
        "json_bytes": found.json,
    }
    return Report("speed ax", notes, [table], (), data)


class ClockedMELK(MELKStrategy):
    r"""MELK that adds up the time spent inside it."""

    seconds: ClassVar[float] = 0.0

    def init(self, seed: int = 0) -> State:
        r"""See ``Strategy.init``."""
        with _clocked():
            return super().init(seed)

    def ask(self, state: State, *given: Any, **named: Any) -> Batch:
        r"""See ``Strategy.ask``."""
        with _clocked():
            return super().ask(state, *given, **named)

    def tell(self, state: State, *given: Any, **named: Any) -> State:
        r"""See ``Strategy.tell``."""
        with _clocked():
            return super().tell(state, *given, **named)


@contextmanager
def _clocked() -> Iterator[None]:
    with measured() as cost:
        yield
    ClockedMELK.seconds += cost.seconds


def overhead(n_rows: int, n_trials: int, batch_size: int) -> Overhead:
    r"""Run the strategy alone, then through a client."""
    logging.getLogger("ax").setLevel(logging.ERROR)
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("ax."):
            logging.getLogger(name).setLevel(logging.ERROR)
    from ax.api.client import Client

    from botorch_lse.ax import POOL_INDEX
    from botorch_lse.ax.recording import Record

    strategy, values = _problem(n_rows, n_trials, batch_size)
    asked: list[int] = []
    state = strategy.init(0)
    while not state.is_done:
        batch = strategy.ask(state)
        rows = batch.order.tolist()
        y = [values[len(asked) + i][row] for i, row in enumerate(rows)]
        asked += rows
        state = strategy.tell(state, batch.observe(y, NOISE**2))
    client = _client(strategy)
    again: list[int] = []
    ClockedMELK.seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        seconds = saves = 0.0
        with Record(client, path) as record:
            while len(again) < n_trials:
                with measured() as cost:
                    trials = client.get_next_trials(n_trials)
                seconds += cost.seconds
                for trial, parameters in trials.items():
                    row = int(str(parameters[POOL_INDEX]))
                    outcome = {"y": (float(values[len(again)][row]), NOISE)}
                    with measured() as cost:
                        client.complete_trial(trial, outcome)
                    seconds += cost.seconds
                    with measured() as cost:
                        record.write()
                    saves += cost.seconds
                    again.append(row)
        inside, compact = ClockedMELK.seconds, path.stat().st_size
        with measured() as load:
            Client.load_from_json_file(str(path))
        client.save_to_json_file(str(path))
        size = path.stat().st_size
    same = again == asked
    return Overhead(seconds, inside, same, saves, size, compact, load.seconds)


def _client(strategy: MELKStrategy) -> Client:
    from ax.api.client import Client

    from botorch_lse.ax import level_set_generation_strategy, pool_parameters

    client = Client()
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="speed")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    return client


def _problem(
    n_rows: int, n_trials: int, batch_size: int
) -> tuple[MELKStrategy, torch.Tensor]:
    r"""The strategy, and the value of each row at each measurement."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n_rows, 3, generator=generator, dtype=torch.float64)
    kernel = MaternKernel(nu=2.5, ard_num_dims=3).double()
    kernel.lengthscale = torch.tensor([[0.2, 0.3, 0.4]], dtype=torch.float64)
    truth = (6 * X[:, 0]).sin() + X[:, 1] - X[:, 2]
    noise = torch.randn(n_trials + batch_size, 1, generator=generator).double()
    strategy = ClockedMELK(
        Pool(X),
        0.4,
        model=kernel,
        noise_std=NOISE,
        batch_size=batch_size,
        beta=9.0,
        max_observations=n_trials,
    )
    # Ten decimals, as Ax stores them: else the two runs would see other values.
    return strategy, torch.round(truth + NOISE * noise, decimals=10)
