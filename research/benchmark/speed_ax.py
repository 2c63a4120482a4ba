r"""What Ax adds to a run: time, and what is stored."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from gpytorch.kernels import MaternKernel

from botorch_lse.data.pool import Pool
from botorch_lse.strategies import LSEStrategy, MELKStrategy, Strategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, measured, target
from research.report import Report, Table

if TYPE_CHECKING:  # the list of benchmarks needs no Ax
    from ax.api.client import Client

ROWS, TRIALS, BATCH, NOISE = 5_000, 200, 10, 0.1

LONG_ROWS, LONG_NOISE = 1_000, 1.0
"""A run that is not decided before its budget is used up."""

CHECKPOINTS = (250, 500, 1000, 2000)
"""The long run is clocked after so many trials."""

LONG_SECONDS = 60.0
"""At most so much of it shall be ours."""


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


@dataclass(frozen=True)
class Clocked:
    r"""Seconds since the beginning of a run through a ``Client``.

    Args:
        trials: Completed so far.
        ours: In the node: reading the experiment, and the strategy.
        strategy: Of these inside the strategy.
        ax: All other, in ``get_next_trials`` and ``complete_trial``.
    """

    trials: int
    ours: float
    strategy: float
    ax: float


@entry(
    "speed",
    "ax",
    "200 trials of MELK and 2,000 of LSE, in batches of 10, through Ax",
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
    data: dict[str, Any] = {
        "client_seconds": found.client,
        "strategy_seconds": found.strategy,
        "save_seconds": found.saves,
        "json_bytes": found.json,
    }
    checkpoints = (20, 40) if options.quick else CHECKPOINTS
    clocked = in_fresh_process(growth, LONG_ROWS, checkpoints, BATCH)
    notes.append(
        f"The long run: LSE on {LONG_ROWS:,} rows, one trial completed after the other "
        "without a file. Ours is the time in the node: looking for what changed, and "
        "the strategy."
    )
    data["long run"] = [asdict(moment) for moment in clocked]
    return Report("speed ax", notes, [table, _long_table(clocked)], (), data)


def _long_table(clocked: list[Clocked]) -> Table:
    columns = ("trials", "ours", "of these strategy", "Ax", "ours/trial", "Ax/trial")
    rows = [
        (
            f"{at.trials:,}",
            f"{at.ours:.1f} s",
            f"{at.strategy:.1f} s",
            f"{at.ax:.1f} s",
            f"{1e3 * at.ours / at.trials:.0f} ms",
            f"{1e3 * at.ax / at.trials:.0f} ms",
        )
        for at in clocked
    ]
    met = clocked[-1].ours <= LONG_SECONDS
    ours = target(f"{clocked[-1].ours:.1f} of {LONG_SECONDS:g} s", met)
    rows[-1] = (rows[-1][0], ours, *rows[-1][2:])
    return Table("A long run", columns, rows)


class Clock:
    r"""Adds up the time inside some methods of an object; nested calls count once.

    Args:
        owner: The object. What is set on a frozen strategy is none of its fields.
        names: The methods.
    """

    def __init__(self, owner: Any, *names: str) -> None:
        self.seconds = 0.0
        self._is_running = False
        for name in names:
            object.__setattr__(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            if self._is_running:
                return method(*given, **named)
            self._is_running = True
            try:
                with measured() as cost:
                    return method(*given, **named)
            finally:
                self.seconds += cost.seconds
                self._is_running = False

        return timed


def overhead(n_rows: int, n_trials: int, batch_size: int) -> Overhead:
    r"""Run the strategy alone, then through a client."""
    silence_ax()
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
    client, again = _client(strategy), list[int]()
    clock = Clock(strategy, "init", "ask", "tell")
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
        inside, compact = clock.seconds, path.stat().st_size
        with measured() as load:
            Client.load_from_json_file(str(path))
        client.save_to_json_file(str(path))
        size = path.stat().st_size
    same = again == asked
    return Overhead(seconds, inside, same, saves, size, compact, load.seconds)


def growth(n_rows: int, checkpoints: tuple[int, ...], batch_size: int) -> list[Clocked]:
    r"""Run LSE through a client to the last checkpoint."""
    silence_ax()
    from botorch_lse.ax import POOL_INDEX
    from botorch_lse.ax.compat import generation_strategy_of
    from botorch_lse.ax.node import level_set_node

    X, truth, kernel = _function(n_rows)
    strategy = LSEStrategy(
        Pool(X),
        0.4,
        model=kernel,
        noise_std=LONG_NOISE,
        batch_size=batch_size,
        beta=9.0,
        max_observations=checkpoints[-1],
    )
    client, generator = _client(strategy), torch.Generator().manual_seed(1)
    inside = Clock(strategy, "init", "ask", "tell")
    node = level_set_node(generation_strategy_of(client))
    ours = Clock(node, "new_trial_limit", "update_generator_state", "_gen")
    found: list[Clocked] = []
    total, n_done = 0.0, 0
    while n_done < checkpoints[-1]:
        with measured() as cost:
            trials = client.get_next_trials(checkpoints[len(found)] - n_done)
        total += cost.seconds
        for trial, parameters in trials.items():
            y = float(truth[int(str(parameters[POOL_INDEX]))])
            y += LONG_NOISE * float(torch.randn((), generator=generator))
            with measured() as cost:
                client.complete_trial(trial, {"y": (y, LONG_NOISE)})
            total += cost.seconds
        n_done += len(trials)
        if n_done == checkpoints[len(found)]:
            rest = total - ours.seconds
            found.append(Clocked(n_done, ours.seconds, inside.seconds, rest))
    return found


def silence_ax() -> None:
    r"""No line of Ax's per trial."""
    import ax.api.client  # noqa: F401  (its loggers come with it, each with a level)

    logging.getLogger("ax").setLevel(logging.ERROR)
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("ax."):
            logging.getLogger(name).setLevel(logging.ERROR)


def _client(strategy: Strategy) -> Client:
    from ax.api.client import Client

    from botorch_lse.ax import level_set_generation_strategy, pool_parameters

    client = Client()
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="speed")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    return client


def _function(n_rows: int) -> tuple[torch.Tensor, torch.Tensor, MaternKernel]:
    r"""Rows with three inputs, a function on them, and a kernel."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n_rows, 3, generator=generator, dtype=torch.float64)
    kernel = MaternKernel(nu=2.5, ard_num_dims=3).double()
    kernel.lengthscale = torch.tensor([[0.2, 0.3, 0.4]], dtype=torch.float64)
    return X, (6 * X[:, 0]).sin() + X[:, 1] - X[:, 2], kernel


def _problem(
    n_rows: int, n_trials: int, batch_size: int
) -> tuple[MELKStrategy, torch.Tensor]:
    r"""The strategy, and the value of each row at each measurement."""
    X, truth, kernel = _function(n_rows)
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(n_trials + batch_size, 1, generator=generator).double()
    strategy = MELKStrategy(
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
