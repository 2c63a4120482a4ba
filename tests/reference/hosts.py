r"""The hosts of a run: ways in which engines and people play it to its end.

A host is made of a run (``campaign.Run``) and has ``play()``, which returns the state
at the end. What happens on the way says the factor ``events``.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from ax.api.client import Client
from ax.exceptions.core import AxError, DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from botorch.exceptions.errors import BotorchError

from botorch_lse.__main__ import command
from botorch_lse.ax import (
    POOL_INDEX,
    exclude_rows,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
    save_client,
)
from botorch_lse.cli.kinds import PAIRS
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import settings
from botorch_lse.strategies import Binary, Classes, Counts, Ordinal, State
from tests.ax.worlds import fresh_state, node_of, same_state

REFUSALS = (ValueError, TypeError, BotorchError, AxError)
TOO_LONG = 1_000
"""Measurements of a round that is not played: papers' algorithms ask for millions."""
AT_ONCE = 20
"""Measurements that are asked for in one call towards the end."""
EVENTS = 12
"""Steps with events at most; then what is asked for is measured, to the end."""


class RefusedError(Exception):
    r"""The strategy refused, in words, what was asked for."""


class BrokenError(AssertionError):
    r"""Something that must hold does not."""


class CutError(Exception):
    r"""The run is longer than it is played."""


def must(holds: bool, words: str) -> None:
    r"""Complain unless something holds."""
    if not holds:
        raise BrokenError(words)


def must_be_same(state: State, other: State, what: str) -> None:
    r"""Complain unless two states are the same."""
    try:
        same_state(state, other)
    except AssertionError as error:
        words = str(error).partition("\n")[0]
        raise BrokenError(f"{what} is another state: {words}") from error


def is_refusal(error: Exception) -> bool:
    r"""Whether an error is one of ours: its type, and words that name an argument."""
    says = str(error)
    return isinstance(error, REFUSALS) and "Expected" in says and says.count("`") > 1


WEIGHTS: dict[str, Mapping[str, int]] = {
    "none": {"ask": 1, "tell_all": 2},
    "in parts": {"ask": 2, "tell": 3},
    "abandoned": {"ask": 2, "tell": 2, "abandon": 2},
    "excluded": {"ask": 2, "tell_all": 2, "exclude": 1, "exclude_many": 1},
    "pending": {"ask_for_more": 3, "tell": 2},
    "unasked": {"ask": 2, "tell": 2, "tell_others": 1},
    "any": {"ask": 4, "ask_for_more": 2, "tell": 5, "tell_others": 1, "abandon": 1,
            "exclude": 1, "read": 1},
}  # fmt: skip
"""How often each step is taken, by the level of the events."""


class ByHand:
    r"""A run through ``ask`` and ``tell``."""

    def __init__(self, run: Any) -> None:
        self.run, self.rng, self.strategy = run, run.rng, run.strategy
        self.seed = self.rng.randrange(100)
        self.state = self.strategy.init(self.seed)
        self.out: list[int] = []

    def play(self) -> State:
        r"""The state at the end.

        Raises:
            CutError: If it is longer than it is played.
        """
        run = self.run
        run.check(self.state)
        weights = WEIGHTS[run.case["events"]]
        n_steps = self.rng.randint(4, EVENTS)
        store = self.rng.randrange(n_steps)
        for i in range(n_steps):
            (name,) = self.rng.choices([*weights], [*weights.values()])
            run.says(f"{name}, out {self.out}")
            getattr(self, name)()
            run.check(self.state)
            if i == store:
                self.store()
        while not self.state.is_done:
            # What was asked for beside the open round is measured first.
            self.ask() if not self.out else self.tell_all()
            run.check(self.state)
        self.store()
        return self.state

    def took(self, rows: list[int]) -> None:
        r"""Rows come to those that are out."""
        must(len(rows) > 0, "nothing is asked for, and the run goes on")
        self.run.check_new(self.state, rows, self.out)
        self.out = sorted([*self.out, *rows])
        self.run.says(f"  {rows}")
        if self.run.n_told + len(self.out) > self.run.most:
            raise CutError

    def ask(self) -> None:
        if self.state.is_done:
            return None
        if len(self.strategy.planned(self.state)) > TOO_LONG:
            raise CutError
        missing = Counter(self.strategy.missing(self.state).tolist())
        if Counter(self.out) - missing:  # to ask without them would lose them
            return self.ask_for_more()
        rows = self.strategy.ask(self.state).order.tolist()
        again = self.strategy.ask(self.state).order.tolist()
        must(rows == again, "asking twice gives other rows")
        lost = Counter(self.out) - Counter(rows)
        must(not lost, f"{lost} are missing, and not asked for again")
        if new := [*(Counter(rows) - Counter(self.out)).elements()]:
            self.took(new)
        return None

    def ask_for_more(self) -> None:
        if self.state.is_done or len(self.out) > 20:
            return
        size = None
        if self.strategy.algorithm.facts.size_is_open:
            size = self.rng.choice([None, 1, 3])
        try:
            batch = self.strategy.ask(self.state, pending=self.out, size=size)
        except ValueError as error:
            if not (str(error).startswith("Nothing is left") and self.out):
                raise
            return
        if len(batch) > TOO_LONG:
            raise CutError
        self.took(batch.order.tolist())

    def told(self, rows: list[int]) -> None:
        told = self.run.observed(torch.tensor(rows, dtype=torch.long))
        self.state = self.strategy.tell(self.state, told)

    def tell(self, least: int = 1) -> None:
        if not self.out:
            return
        rows = self.run.some(self.out, least)
        self.out = sorted((Counter(self.out) - Counter(rows)).elements())
        self.told(rows)

    def tell_all(self) -> None:
        self.tell(len(self.out))

    def tell_others(self) -> None:
        N = len(self.strategy.pool)
        self.told([self.rng.randrange(N) for _ in range(self.rng.randint(1, 3))])

    def abandon(self) -> None:
        missing = self.strategy.missing(self.state).tolist()
        out = Counter(missing) & Counter(self.out)
        if not out:
            return
        rows = self.run.some(sorted(out.elements()))
        self.out = sorted((Counter(self.out) - Counter(rows)).elements())
        self.state = self.strategy.tell(self.state, None, abandoned=rows)

    def exclude(self, most: int = 2) -> None:
        N = len(self.strategy.pool)
        rows = self.rng.sample(range(N), self.rng.randint(1, min(most, N)))
        if self.rng.random() < 0.5:  # those that are out will not come
            self.out = [row for row in self.out if row not in rows]
        try:
            self.state = self.strategy.exclude(self.state, rows)
        except BotorchError as error:
            takes = self.strategy.algorithm.takes_any_rows(self.state.belief)
            if takes or not is_refusal(error):
                raise

    def exclude_many(self) -> None:
        self.exclude(len(self.strategy.pool))

    def store(self) -> None:
        self.state = self.run.replayed(self.state, self.seed)
        self.strategy = self.run.strategy = self.state.strategy

    def read(self) -> None:
        self.run.read(self.state)


IN_AX: dict[str, Mapping[str, int]] = {
    "none": {"ask": 1, "end_all": 2},
    "in parts": {"ask": 1, "end_one": 3},
    "abandoned": {"ask": 2, "end_one": 3, "lose_one": 2},
    "excluded": {"ask": 2, "end_one": 3, "exclude": 2},
    "pending": {"ask": 2, "end_one": 2},
    "unasked": {"ask": 2, "end_one": 3, "measure_elsewhere": 1},
    "any": {"ask": 4, "end_one": 6, "lose_one": 2, "measure_elsewhere": 1,
            "exclude": 1, "store": 1, "read": 1},
}  # fmt: skip
"""The same for Ax."""


class InAx:
    r"""A run through an Ax client.

    Args:
        run: The run.
        is_one_by_one: Whether each result is learnt from as it comes.
    """

    def __init__(self, run: Any, is_one_by_one: bool = False) -> None:
        self.run, self.rng = run, run.rng
        self.strategy = strategy = run.strategy
        named = list(strategy.outputs)
        self.metrics = named or ["y", "z"][: strategy.n_outputs]
        ups = strategy.directions or (True,) * len(self.metrics)
        signs = zip(self.metrics, ups, strict=True)
        self.client = Client()
        self.client.configure_experiment(
            parameters=pool_parameters(strategy.pool), name="campaign"
        )
        self.client.configure_optimization(
            objective=", ".join(name if up else f"-{name}" for name, up in signs)
        )
        try:
            made = level_set_generation_strategy(
                strategy, seed=self.rng.randrange(9), asynchronous=is_one_by_one
            )
        except Exception as error:
            if is_refusal(error):
                raise RefusedError(str(error)) from error
            raise
        self.client.set_generation_strategy(made)
        self.is_done = False

    @property
    def running(self) -> list[int]:
        r"""The trials that run."""
        trials = self.client._experiment.trials.items()
        return [i for i, trial in trials if trial.status.is_running]

    @property
    def state(self) -> State:
        r"""Where the run stands."""
        return node_of(self.client).state(self.client._experiment)

    def row_of(self, trial: int) -> int:
        return int(self.client._experiment.trials[trial].arm.parameters[POOL_INDEX])

    def play(self) -> State:
        r"""The state at the end.

        Raises:
            CutError: If it is longer than it is played.
        """
        weights = IN_AX[self.run.case["events"]]
        for _ in range(self.rng.randint(4, EVENTS)):
            (name,) = self.rng.choices([*weights], [*weights.values()])
            self.run.says(f"Ax: {name}, running {self.running}")
            getattr(self, name)()
            self.run.check(self.state)
        self.store()
        self.is_done = False  # what came after an end may have opened the run again
        while not self.is_done or self.running:
            self.end_all()
            self.ask(AT_ONCE)
        self.read()
        self.store()
        return self.state

    def ask(self, n: int | None = None) -> None:
        n = self.rng.choice([1, 2, 5, 10]) if n is None else n
        out = [self.row_of(i) for i in self.running]
        if self.run.n_told + len(out) > self.run.most:
            raise CutError
        try:
            trials = self.client.get_next_trials(n)
        except GenerationStrategyCompleted:
            self.is_done = True
            return
        except DataRequiredError as error:
            must(len(self.running) > 0, f"it waits for nothing: {error}")
            return
        self.is_done = False
        must(len(trials) > 0, "no trial, and the run goes on")
        new = [int(p[POOL_INDEX]) for p in trials.values()]
        self.run.says(f"  {new}")
        self.run.check_new(self.state, new, out)

    def end_one(self) -> None:
        if self.running:
            self.complete(self.rng.choice(self.running))

    def end_all(self) -> None:
        for trial in self.rng.sample(self.running, len(self.running)):
            self.complete(trial)

    def lose_one(self) -> None:
        if not self.running:
            return
        trial, chance = self.rng.choice(self.running), self.rng.random()
        if chance < 0.3:
            self.client.mark_trial_failed(trial)
        elif chance < 0.7:
            self.client.mark_trial_abandoned(trial)
        else:
            self.complete(trial, math.nan)

    def complete(self, trial: int, value: float | None = None) -> None:
        row = self.row_of(trial)
        y = self.run.values(torch.tensor([row])).view(-1).tolist()
        std = self.run.world.std[row].clamp_min(0.01).tolist()
        if value is not None:
            y[-1] = value
        tells = self.run.world.tells_noise
        each = zip(self.metrics, y, std, strict=True)
        data = {m: (v, s) if tells else v for m, v, s in each}
        self.client.complete_trial(trial, data)

    def measure_elsewhere(self) -> None:
        row = self.rng.randrange(len(self.strategy.pool))
        trial = self.client.attach_trial({POOL_INDEX: row})
        if self.rng.random() < 0.7:
            self.complete(trial)

    def exclude(self) -> None:
        rows = [self.rng.randrange(len(self.strategy.pool))]
        try:
            exclude_rows(self.client, rows)
        except BotorchError as error:
            if not is_refusal(error):
                raise

    def store(self) -> None:
        state = self.state
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "run.json")
            save_client(self.client, path)
            self.client = Client.load_from_json_file(str(path))
        must_be_same(state, self.state, "what was loaded")

    def read(self) -> None:
        frame = level_set(self.client)
        n = len(self.state.classification)
        must(len(frame) == n, "another number of lines")
        self.run.read(self.state)
        must_be_same(self.state, fresh_state(self.client), "what is remembered")
        if self.strategy.can_predict:
            self.client.predict([{POOL_INDEX: 0}])


# --- other engines --------------------------------------------------------------------


class OneByOne(ABC):
    r"""A run through an engine that asks for points and gives each its value.

    Args:
        run: The run.
    """

    def __init__(self, run: Any) -> None:
        self.run, self.rng, self.strategy = run, run.rng, run.strategy
        self.out: dict[int, int] = {}
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        r"""Make the engine."""

    @property
    @abstractmethod
    def state(self) -> State:
        r"""Where the run stands."""

    @abstractmethod
    def asked(self, n: int) -> dict[int, int]:
        r"""New measurements, at most ``n``: their rows, by a number."""

    @abstractmethod
    def tell(self, number: int, y: list[float] | None) -> None:
        r"""Tell what came of a measurement; ``None``: it failed."""

    def tell_other(self, row: int, y: list[float]) -> None:  # noqa: B027
        r"""Tell a value that nobody asked for, if that can be done."""

    def play(self) -> State:
        r"""The state at the end.

        Raises:
            CutError: If it is longer than it is played.
        """
        events = self.run.case["events"]
        n_steps = self.rng.randint(4, EVENTS)
        for _ in range(n_steps):
            self.ask(1 if events == "none" else self.rng.choice([1, 2, 4]))
            n = self.rng.randint(0, len(self.out)) if events == "pending" else 1
            for _ in range(min(n, len(self.out))):
                fails = events in ("abandoned", "any") and self.rng.random() < 0.4
                self.end(self.rng.choice([*self.out]), fails)
            if events in ("unasked", "any") and self.rng.random() < 0.4:
                row = self.rng.randrange(len(self.strategy.pool))
                self.tell_other(row, self.measured(row))
            self.run.check(self.state)
        self.run.replayed(self.state, self.state.seed)
        while not self.state.is_done:
            for number in [*self.out]:
                self.end(number)
            self.ask(3)
            self.run.check(self.state)
        return self.state

    def ask(self, n: int) -> None:
        r"""Ask for more, as long as there is room."""
        state, out = self.state, [*self.out.values()]
        room = self.strategy.room(state, out)
        if self.run.n_told + len(out) > self.run.most:
            raise CutError
        must(room > 0 or len(out) > 0 or state.is_done, "no room, and the run goes on")
        if room > 0:
            new = self.asked(min(n, room))
            self.run.says(f"  {[*new.values()]}")
            self.run.check_new(state, [*new.values()], out)
            self.out |= new

    def measured(self, row: int) -> list[float]:
        return self.run.values(torch.tensor([row])).view(-1).tolist()

    def end(self, number: int, fails: bool = False) -> None:
        row = self.out.pop(number)
        self.tell(number, None if fails else self.measured(row))


class InGest(OneByOne):
    r"""A run through a generator of gest-api."""

    def begin(self) -> None:
        from gest_api.vocs import VOCS  # here: an extra

        from botorch_lse.integrations.gest import LevelSetGenerator

        own = self.strategy
        frame = own.pool.to_frame()
        variables: dict[str, Any] = {}
        for name in frame:
            column = frame[name]
            is_number = column.dtype.kind == "f"
            variables[name] = (
                [float(column.min()), float(column.max())] if is_number else {*column}
            )
        names = [field.name for field in fields(own)]
        options = {n: getattr(own, n) for n in names if n not in ("pool", "goal", "_")}
        self.generator = LevelSetGenerator(
            VOCS(variables=variables, objectives={"cost": "EXPLORE"}),
            own.goal,
            pool=own.pool,
            seed=self.rng.randrange(9),
            **options,
        )
        self.strategy = self.run.strategy = self.generator.strategy
        self.points: dict[int, dict[str, Any]] = {}

    @property
    def state(self) -> State:
        return self.generator.state

    def asked(self, n: int) -> dict[int, int]:
        points = self.generator.suggest(n)
        must(len(points) > 0, "nothing is suggested, and the run goes on")
        self.points |= {point["_id"]: point for point in points}
        return {point["_id"]: self.generator._out[point["_id"]] for point in points}

    def tell(self, number: int, y: list[float] | None) -> None:
        names = self.strategy.outputs
        values = [math.nan] * len(names) if y is None else y
        told = dict(zip(names, values, strict=True))
        self.generator.ingest([self.points[number] | told])

    def tell_other(self, row: int, y: list[float]) -> None:
        point = self.strategy.pool.to_frame().iloc[[row]].to_dict("records")[0]
        told = dict(zip(self.strategy.outputs, y, strict=True))
        self.generator.ingest([point | told])


class InOptuna(OneByOne):
    r"""A run through a study of Optuna."""

    def begin(self) -> None:
        import optuna  # here: an extra

        from botorch_lse.integrations.optuna import LevelSetSampler

        self.sampler = LevelSetSampler(self.strategy, seed=self.rng.randrange(9))
        m = self.strategy.n_outputs
        directions = ["minimize"] * m
        self.study = optuna.create_study(sampler=self.sampler, directions=directions)
        self.failed = optuna.trial.TrialState.FAIL
        self.trials: dict[int, Any] = {}

    @property
    def state(self) -> State:
        return self.sampler.state(self.study)

    def asked(self, n: int) -> dict[int, int]:
        from botorch_lse.integrations.optuna import ROW

        asked = self.study.ask()
        number = asked.number
        self.trials[number] = asked
        (trial,) = [t for t in self.study.get_trials() if t.number == number]
        return {number: trial.system_attrs[ROW]}

    def tell(self, number: int, y: list[float] | None) -> None:
        if y is None:
            self.study.tell(number, state=self.failed)
        else:
            for name, value in zip(self.strategy.outputs, y, strict=False):
                self.trials[number].set_user_attr(name, value)
            self.study.tell(number, y)


# --- tables ---------------------------------------------------------------------------


class ByTables:
    r"""A run by the command line, through files that are filled in.

    Args:
        run: The run.
    """

    def __init__(self, run: Any) -> None:
        self.run, self.rng, self.world = run, run.rng, run.world
        frame = run.strategy.pool.to_frame()
        n = len(run.strategy.pool.without_sources)
        frame.insert(0, "name", [f"r{i % n:02d}" for i in range(len(frame))])
        # A measurement has the name of its candidate, and of its source.
        self.named = ["name", *["source"] * ("source" in frame)]
        self.frame, self.n = frame, n
        self.valued = set[str]()
        self.asked = set[tuple[str, ...]]()
        self.words: tuple[str, ...] = ()  # of results that are 1 and 0
        if isinstance(run.world.goal, Classes):
            self.words = run.world.goal.names
        elif run.world.outcome == Binary():
            self.words = run.rng.choice(PAIRS)

    @property
    def options(self) -> list[str]:
        r"""The first call."""
        case, goal = self.run.case, self.world.goal
        has_classes = isinstance(goal, Classes)
        side = "above" if has_classes else self.rng.choice(["above", "below"])
        found = [f"--{side}={goal.threshold}", f"--epsilon={goal.epsilon}"]
        found += [f"--batch={case['batch']}", f"--seed={self.rng.randrange(9)}"]
        given = {
            "--budget": case["budget"],
            "--max-repeats": str(self.run.strategy.max_repeats),
            "--first": case["initial"],
            "--beta": {"beta=4": "4"}.get(case["width"], "None"),
            "--noise-std": {"known": "0.1", "exact": "0"}.get(case["noise"], "None"),
            "--audit": "0.4,0.2" if case["audit"] == "audited" else "None",
        }
        found += [f"{name}={x}" for name, x in given.items() if x != "None"]
        if has_classes:
            found += ["--outcome=classes", f"--classes={','.join(self.words)}"]
        elif self.words:
            found += ["--outcome=yes-no"]
        found += ["--outcome=counts"] if self.world.outcome == Counts() else []
        if isinstance(outcome := self.world.outcome, Ordinal):
            found += ["--outcome=grades", f"--grades={outcome.grades}"]
            found += [f"--at-least={outcome.at_least}"]
        if "source" in self.named:
            costs = self.run.strategy.pool.costs[:: self.n].tolist()
            found += [f"--sources={','.join(self.run.strategy.pool.sources)}"]
            found += [f"--source-costs={','.join(map(str, costs))}"]
        found += ["--replicates"] if case["events"] in ("unasked", "any") else []
        return ["next", "candidates.csv", *found, "--column=y", "--key=name"]

    def play(self) -> State:
        r"""The state at the end.

        Raises:
            CutError: If it is longer than it is played.
        """
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                return self.to_the_end()
            finally:
                os.chdir(here)

    def call(self, *words: str) -> None:
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            status = command([*words])
        must(status == 0, f"{' '.join(words)} ends with {status}: {said.getvalue()}")

    def to_the_end(self) -> State:
        items = self.frame.iloc[: self.n]
        items.drop(columns=self.named[1:]).to_csv("candidates.csv", index=False)
        self.call(*self.options)
        for step in itertools.count():
            found = Run.read(settings(Path("botorch-lse.toml"), {}))
            with redirect_stderr(io.StringIO()):
                state = found.state
            names = found.strategy.pool.to_frame()["name"]  # in an order of its own
            rows = torch.tensor([int(name[1:]) for name in names[: self.n]])
            self.run.world = replace(self.world, items=self.world.items[rows])
            self.run.strategy = found.strategy
            self.run.check(state)
            self.state = state
            sheet = pd.read_csv("sheet.csv", dtype=str, keep_default_na=False)
            self.run.says(f"sheet {sheet['name'].tolist()}")
            if sheet.empty or found.is_done:  # what is still being measured stays
                break
            self.check_sheet(state, sheet)
            self.fill(sheet, is_late=step > EVENTS)
            self.call("next")
            if self.rng.random() < 0.2:
                names = ("sheet.csv", "results.csv")
                files = [file for file in map(Path, names) if file.exists()]
                before = [file.read_bytes() for file in files]
                self.call("next")
                after = [file.read_bytes() for file in files]
                must(before == after, "the same call twice gives other files")
        must(found.is_done, "an empty sheet, and the run goes on")
        self.call("answer")
        answer = pd.read_csv("answer.csv")
        must(len(answer) == self.n, "another number of lines")
        # It ends, too, where limits decide what the model leaves open.
        return state if state.is_done else replace(state, stop_reason="decided")

    def check_sheet(self, state: State, sheet: pd.DataFrame) -> None:
        limit, is_open = self.run.strategy.max_observations, sheet["y"] == ""
        lines = sheet.loc[is_open, ["sheet", *self.named, "repeat"]]
        asked = {*lines.itertuples(index=False, name=None)}
        n = state.n_used + len(asked)
        # Lines stay that were open when somebody measured something else.
        is_kept = limit is None or n <= limit or asked <= self.asked
        must(is_kept, f"{n} measurements, and {limit} are allowed")
        most, pool = self.run.strategy.max_repeats, self.run.strategy.pool
        if most is not None:
            names, each = self.names_of(pool.to_frame()), state.uses(len(pool))
            uses = dict(zip(names, each.tolist(), strict=True))
            out = Counter(self.names_of(lines))
            new = [line not in self.asked for line in lines.itertuples(index=False)]
            for name in {*self.names_of(lines[new])}:
                n = uses[name] + out[name]
                must(n <= most, f"{name} is measured {n} times")
        self.asked = asked
        if self.run.n_told > self.run.most:
            raise CutError

    def names_of(self, lines: pd.DataFrame) -> list[str]:
        r"""The name of each measurement, with its source."""
        return [" at ".join(one) for one in lines[self.named].itertuples(index=False)]

    def fill(self, sheet: pd.DataFrame, is_late: bool) -> None:
        events = "none" if is_late else self.run.case["events"]
        row_of = {name: i for i, name in enumerate(self.names_of(self.frame))}
        named = self.names_of(sheet)

        def value(name: str) -> str:
            y = float(self.run.values(torch.tensor([row_of[name]])).view(-1)[0])
            return self.words[1 - int(y)] if self.words else f"{y:.6f}"

        for line in sheet.index[sheet["y"] == ""]:
            chance, word = self.rng.random(), value(named[line])
            if events in ("in parts", "any") and chance < 0.3:
                continue
            if events in ("abandoned", "any") and chance > 0.85:
                word = "failed" if self.world.outcome is None else "again"
            elif events in ("excluded", "any") and chance > 0.75:
                name = named[line]
                is_alone = named.count(name) == 1
                word = "n/a" if is_alone and name not in self.valued else word
            is_value = word not in ("failed", "again", "n/a")
            self.valued |= {named[line]} if is_value else set()
            sheet.loc[line, "y"] = word
        sheet.to_csv("sheet.csv", index=False)
        results = Path("results.csv")
        if not (events in ("unasked", "any") and results.exists()):
            return
        known = pd.read_csv(results, dtype=str, keep_default_na=False)
        other = self.frame.iloc[[self.rng.randrange(len(self.frame))]].astype(str)
        (name,) = self.names_of(other)
        if name in self.names_of(pd.concat([known, sheet]).query("y == 'n/a'")):
            return
        other, self.valued = other.assign(y=value(name)), {*self.valued, name}
        pd.concat([known, other], ignore_index=True).fillna("").to_csv(
            results, index=False
        )


HOSTS: dict[str, Callable[[Any], Any]] = {
    "ask and tell": ByHand,
    "Ax": InAx,
    "Ax, asynchronous": lambda run: InAx(run, True),
    "gest-api": InGest,
    "Optuna": InOptuna,
    "command line": ByTables,
}
