r"""The functions of the package through which four common calls pass.

Counted are functions with a name: a comprehension or a lambda belongs to the function
in which it stands.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from ax.api.client import Client

import botorch_lse
from botorch_lse import Above, GaussianProcess, Pool, Strategy
from botorch_lse.__main__ import command
from botorch_lse.ax import level_set_generation_strategy, pool_parameters

ROOT = str(Path(botorch_lse.__file__).parent)
ROUNDS = 2
"""The rounds before a call is looked at: the initial design is complete by then."""

Way = set[tuple[str, str]]
"""File and name of each function."""


def way_of(call: Callable[[], object]) -> Way:
    r"""The functions of the package through which a call passes."""
    passed: Way = set()

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            passed.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {(file[len(ROOT) + 1 :], name) for file, name in passed if name[-1] != ">"}


def measured(X: torch.Tensor) -> torch.Tensor:
    r"""The values of README's function, without noise."""
    return (6 * X).sin().sum(-1)


def strategy() -> Strategy:
    r"""README's strategy."""
    generator = torch.Generator().manual_seed(0)
    return Strategy(
        Pool(torch.rand(500, 2, dtype=torch.float64, generator=generator)),
        Above(0.5, epsilon=0.1),
        model=GaussianProcess(noise_std=0.1),
        batch_size=10,
        max_observations=200,
    )


def ways_of_strategies() -> tuple[Way, Way]:
    r"""The ways of an ``ask`` and of a ``tell`` with a fit."""
    asked = strategy()
    state = asked.init()
    for _ in range(ROUNDS):
        batch = asked.ask(state)
        told = batch.observe(measured(asked.pool.X[batch.order]))
        before, state = state, asked.tell(state, told)
    assert not state.is_done
    fresh = asked.replay(before.observations)
    asked.ask(fresh)
    return way_of(lambda: asked.ask(state)), way_of(lambda: asked.tell(fresh, told))


def way_of_trials() -> Way:
    r"""The way of Ax's ``get_next_trials``, the fit for the round included."""
    client, asked = Client(), strategy()
    client.configure_experiment(parameters=pool_parameters(asked.pool), name="where")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(asked))
    for _ in range(ROUNDS):
        trials = client.get_next_trials(10)
        for number, parameters in trials.items():
            y = float(measured(asked.pool.X[parameters["pool_index"]]))
            client.complete_trial(number, {"y": (y, 0.1)})
    return way_of(lambda: client.get_next_trials(10))


def way_of_next() -> Way:
    r"""The way of ``botorch-lse next`` with a sheet that was filled in."""
    lines = [f"{a},{b},n{i}" for i, (a, b) in enumerate(strategy().pool.X.tolist())]
    with tempfile.TemporaryDirectory() as folder, _within(Path(folder)):
        Path("candidates.csv").write_text("\n".join(["a,b,name", *lines]))
        given = "next candidates.csv --above 0.5 --column y --key name --batch 10"
        command(given.split())
        for _ in range(ROUNDS):
            _fill_in(Path("sheet.csv"))
            command(["next"])
        _fill_in(Path("sheet.csv"))
        return way_of(lambda: command(["next"]))


def _fill_in(sheet: Path) -> None:
    with sheet.open() as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        X = torch.tensor([float(line["a"]), float(line["b"])])
        line["y"] = line["y"] or f"{float(measured(X)):.4f}"
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)


def ways() -> dict[str, Way]:
    r"""The four ways by their names."""
    asked, told = ways_of_strategies()
    return {
        "`ask`": asked,
        "`tell` with a fit": told,
        "Ax's `get_next_trials`": way_of_trials(),
        "`botorch-lse next`": way_of_next(),
    }


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    r"""A folder to work in, in which nothing is printed."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            yield
    finally:
        os.chdir(before)
