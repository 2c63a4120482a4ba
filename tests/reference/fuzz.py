r"""Random sequences of operations, over everything that is exported.

``python -m tests.reference.fuzz --minutes 10 --seed 0`` plays sequences until the time
is over (or ``--count`` of them), says how many were played, and ends with 1 if one
failed; ``--only K`` plays sequence ``K`` alone, step by step. What a sequence does is a
function of the seed and its number.

A sequence draws a strategy (``worlds.py``), measures a random function through ``ask``
and ``tell`` or through Ax, and on the way asks twice, tells in parts, out of order,
rows that nobody asked for, abandons, excludes, lets measurements fail, stores and loads
again. After each step: no error but refusals in words (a ``ValueError`` or an error of
BoTorch and Ax that names an argument), the budget and the repeats are kept, excluded
rows are not asked for, nothing is nan, sides partition the rows and do not contradict
their intervals, and a replay gives the same state. At the end the run is played until
it says why it ended.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from ax.api.client import Client
from ax.exceptions.core import AxError, DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from botorch.exceptions.errors import BotorchError
from torch import Tensor

from botorch_lse import Observations
from botorch_lse.ax import (
    POOL_INDEX,
    exclude_rows,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
    save_client,
)
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.strategies import Above, Below, State
from tests.ax.worlds import fresh_state, same_state
from tests.reference.worlds import world_of

REFUSALS = (ValueError, BotorchError, AxError)
WORDS = ("Expected", "Nothing is left")
"""How our refusals begin."""
TOO_LONG = 3_000
"""Measurements of a round that is not played: papers' algorithms ask for millions."""
LONG = 400
"""Measurements after which an algorithm that sizes its own rounds is left alone."""
NUMBERS = ("lower", "upper", "mean", "sigma", "probability_above")


class RefusedError(Exception):
    r"""The strategy refused, in words, what was drawn."""


class BrokenError(AssertionError):
    r"""Something that must hold does not."""


def is_refusal(error: Exception) -> bool:
    r"""Whether an error is one of ours: its type, and words that name what came."""
    return isinstance(error, REFUSALS) and str(error).startswith(WORDS)


def must(holds: bool, words: str) -> None:
    r"""Complain unless something holds."""
    if not holds:
        raise BrokenError(words)


class Sequence:
    r"""One sequence: its random numbers, its world, and what it did so far.

    Args:
        seed: Of the whole run.
        number: Which sequence.
        says: What is called with each step.
    """

    def __init__(self, seed: int, number: int, says: Callable[[str], None]) -> None:
        self.rng = random.Random(f"{seed}/{number}")
        self.says = says
        self.n_told = 0

    def play(self) -> str:
        r"""Play it; what became of it in a word.

        Raises:
            RefusedError: If the strategy is refused.
            Exception: Whatever must not happen.
        """
        try:
            self.world = world_of(self.rng)
        except Exception as error:
            if is_refusal(error):
                raise RefusedError(str(error)) from error
            raise
        self.says(self.world.words)
        self.strategy = self.world.strategy
        if len(self.strategy.pool) > 1 and self.rng.random() < 0.3:
            return InAx(self).play()
        return ByHand(self).play()

    def values(self, rows: Tensor) -> Tensor:
        r"""Measurements of some rows; ten decimals, as Ax keeps them."""
        generator = torch.Generator().manual_seed(self.rng.randrange(2**31))
        F = self.world.F[rows]
        noise = torch.randn(F.shape, generator=generator, dtype=torch.float64)
        self.n_told += len(rows)
        return (F + self.world.std * noise).mul(1e6).round() / 1e6

    def observed(self, rows: Tensor) -> Observations:
        r"""Measurements as they are told."""
        y = self.values(rows)
        noise = max(self.world.std, 0.01) ** 2 if self.world.gives_noise else None
        return Observations(rows, y, noise)

    def some(self, rows: list[int], least: int = 1) -> list[int]:
        r"""A few of some rows, in any order."""
        n = self.rng.randint(min(least, len(rows)), len(rows))
        return self.rng.sample(rows, n)

    def check(self, state: State) -> None:
        r"""What must hold of every state."""
        answer, strategy = state.classification, self.strategy
        for name in NUMBERS:
            must(not bool(getattr(answer, name).isnan().any()), f"{name} is nan")
        p = answer.probability_above
        must(bool(((p >= 0) & (p <= 1)).all()), "a probability outside [0, 1]")
        goal = getattr(strategy, "goal", None)
        level = getattr(strategy, "threshold", None)
        if isinstance(goal, Above | Below):
            level = goal.level
        if isinstance(level, float):
            self.compare_sides(answer, level, isinstance(goal, Below))
        if answer.classes is not None:
            open_ = answer.classes == -1
            must(torch.equal(open_, answer.undecided), "classes and sides differ")

    def compare_sides(self, answer: Any, level: float, is_below: bool) -> None:
        r"""Decided rows whose whole interval lies on the other side, by epsilon."""
        goal = getattr(self.strategy, "goal", None)
        epsilon = getattr(goal, "epsilon", getattr(self.strategy, "epsilon", 0.0))
        slack = float(epsilon) + 1e-6 * (1 + abs(level))
        high, low = (
            (answer.below, answer.above) if is_below else (answer.above, answer.below)
        )
        wrong = (high & (answer.upper < level - slack)) | (
            low & (answer.lower > level + slack)
        )
        wrong &= ~answer.contradicted
        must(not bool(wrong.any()), f"rows {wrong.nonzero().view(-1).tolist()} are "
             "decided against their intervals")  # fmt: skip

    def read(self, state: State) -> None:
        r"""Ask a state whatever may be asked."""
        answer = state.classification
        must(len(answer.to_frame()) == len(answer), "another number of lines")
        str(state.forecast())
        found = state.content()
        must(found.lower <= found.upper + 1e-9, f"content {found}")
        must(not math.isnan(found.estimate), f"content {found}")
        if state.strategy.pool.total is None:
            must(-1e-9 <= found.estimate <= 1 + 1e-9, f"content {found}")
            must(found.upper <= 1 + 1e-9, f"content {found}")
        x = self.strategy.candidates.X[:2]
        for call in (
            lambda: state.conservative(0.9),
            lambda: state.predict(x),
            lambda: str(state.calibration()),
        ):
            try:
                call()
            except Exception as error:
                if not is_refusal(error):
                    raise


class ByHand:
    r"""A sequence through ``ask`` and ``tell``."""

    def __init__(self, sequence: Sequence) -> None:
        self.of, self.rng = sequence, sequence.rng
        self.strategy = sequence.strategy
        self.seed = self.rng.randrange(100)
        self.state = self.strategy.init(self.seed)
        self.out: list[int] = []
        self.is_as_asked = True  # nothing was told that nobody asked for

    def play(self) -> str:
        self.of.check(self.state)
        steps = {
            self.ask: 5,
            self.ask_for_more: 3,
            self.tell: 8,
            self.tell_others: 1,
            self.abandon: 1,
            self.exclude: 1,
            self.store: 2,
            self.read: 1,
        }
        for _ in range(self.rng.randint(3, 18)):
            (step,) = self.rng.choices([*steps], [*steps.values()])
            self.of.says(f"{step.__name__}, out {self.out}")
            step()
            self.of.check(self.state)
        return self.to_the_end()

    def ask(self) -> None:
        if self.state.is_done:
            return
        before = self.state
        rows = self.strategy.ask(self.state).order.tolist()
        again = self.strategy.ask(before).order.tolist()
        must(rows == again, "asking twice gives other rows")
        # Who asks without those that are out plans as if they would never come.
        if Counter(self.out) - Counter(rows):
            self.is_as_asked = False
        self.check_rows(rows, [])
        self.out = sorted((Counter(self.out) | Counter(rows)).elements())
        self.of.says(f"  {rows}")

    def ask_for_more(self) -> None:
        if self.state.is_done:
            return
        size = None
        if self.strategy.procedure.size_is_open:
            size = self.rng.choice([None, 1, 3])
        try:
            batch = self.strategy.ask(self.state, pending=self.out, size=size)
        except ValueError as error:
            if not (str(error).startswith("Nothing is left") and self.out):
                raise
            return
        rows = batch.order.tolist()
        self.check_rows(rows, self.out)
        self.out = sorted([*self.out, *rows])
        self.of.says(f"  {rows}")

    def check_rows(self, rows: list[int], pending: list[int]) -> None:
        r"""The budget, the repeats and the exclusions, of what is asked for."""
        state, strategy = self.state, self.strategy
        must(len(rows) > 0, "nothing is asked for, and the run goes on")
        excluded = {*rows} & {*state.excluded_rows.tolist()}
        must(not excluded, f"excluded rows are asked for: {excluded}")
        if not self.is_as_asked:
            return
        total, limit = [*pending, *rows], strategy.max_observations
        if limit is not None:
            n = state.n_used + len(total)
            must(n <= limit, f"{n} measurements, and {limit} are allowed")
        if strategy.max_repeats is not None:
            uses = state.uses(len(strategy.pool))
            for row, count in Counter(total).items():
                n = int(uses[row]) + count
                must(n <= strategy.max_repeats, f"row {row} is measured {n} times")

    def tell(self) -> None:
        if not self.out:
            return
        rows = self.of.some(self.out)
        left = Counter(self.out) - Counter(rows)
        self.out = sorted(left.elements())
        if {*rows} & {*self.state.excluded_rows.tolist()}:
            self.is_as_asked = False
        self.state = self.strategy.tell(
            self.state, self.of.observed(torch.tensor(rows))
        )

    def tell_others(self) -> None:
        N = len(self.strategy.pool)
        rows = [self.rng.randrange(N) for _ in range(self.rng.randint(1, 3))]
        self.is_as_asked = False
        self.state = self.strategy.tell(
            self.state, self.of.observed(torch.tensor(rows))
        )

    def abandon(self) -> None:
        missing = self.strategy.missing(self.state).tolist()
        if not missing or len(missing) > TOO_LONG:
            return
        rows = self.of.some(missing)
        self.out = sorted((Counter(self.out) - Counter(rows)).elements())
        self.state = self.strategy.tell(self.state, None, abandoned=rows)

    def exclude(self) -> None:
        N = len(self.strategy.pool)
        rows = [self.rng.randrange(N) for _ in range(self.rng.randint(1, 2))]
        try:
            self.state = self.strategy.exclude(self.state, rows)
        except BotorchError as error:
            takes = self.strategy.procedure.takes_any_rows(self.state.belief)
            if takes or not is_refusal(error):
                raise

    def store(self) -> None:
        r"""The strategy through JSON, the state from its observations."""
        strategy = self.strategy
        try:
            stored = json.loads(json.dumps(encode_strategy(strategy)))
        except ValueError as error:
            if "storable" not in str(error) and "to be stored" not in str(error):
                raise
        else:
            strategy = decode_strategy(stored, strategy.pool)
        state, lost = self.state, dict[int, list[int]]()
        for label, row in state.abandoned:
            lost.setdefault(label, []).append(row)
        again = strategy.replay(
            state.observations, self.seed, abandoned=lost, excluded=state.excluded
        )
        must(same_state(state, again), "a replay gives another state")
        if not state.is_done and len(strategy.planned(again)) < TOO_LONG:
            one, other = self.strategy.ask(state).order, strategy.ask(again).order
            must(torch.equal(one, other), "after a replay other rows are asked for")
        self.strategy, self.state = strategy, again

    def read(self) -> None:
        self.of.read(self.state)

    def to_the_end(self) -> str:
        r"""Measure all that is asked for until the run says why it ended."""
        limit = self.strategy.max_observations
        rounds = LONG if limit is None else limit + 10
        for _ in range(rounds):
            if self.state.is_done:
                break
            batch = self.strategy.ask(self.state)
            if len(batch) > TOO_LONG or self.of.n_told > LONG:
                return "long"
            self.check_rows(batch.order.tolist(), [])
            told = self.of.observed(batch.order)
            self.state = self.strategy.tell(self.state, told)
            self.of.check(self.state)
        must(self.state.is_done, f"no end after {rounds} more rounds")
        self.of.read(self.state)
        self.store()
        return str(self.state.stop_reason)


class InAx:
    r"""A sequence through an Ax client."""

    def __init__(self, sequence: Sequence) -> None:
        self.of, self.rng = sequence, sequence.rng
        self.strategy = strategy = sequence.strategy
        self.metrics = ["y", "z"][: strategy.n_outputs]
        ups = strategy.directions or (True,) * len(self.metrics)
        signs = zip(self.metrics, ups, strict=True)
        self.client = Client()
        self.client.configure_experiment(
            parameters=pool_parameters(strategy.pool), name="fuzz"
        )
        self.client.configure_optimization(
            objective=", ".join(name if up else f"-{name}" for name, up in signs)
        )
        try:
            is_one_by_one = self.rng.random() < 0.25
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
        trials = self.client._experiment.trials.items()
        return [i for i, trial in trials if trial.status.is_running]

    @property
    def node(self) -> Any:
        (node,) = self.client._generation_strategy.nodes_by_name.values()
        return node

    def play(self) -> str:
        steps = {
            self.ask: 5,
            self.end_one: 9,
            self.measure_elsewhere: 1,
            self.exclude: 1,
            self.store: 2,
            self.read: 1,
        }
        for _ in range(self.rng.randint(3, 15)):
            (step,) = self.rng.choices([*steps], [*steps.values()])
            self.of.says(f"Ax: {step.__name__}, running {self.running}")
            step()
            state = self.node.state(self.client._experiment)
            self.of.check(state)
        return self.to_the_end()

    def ask(self, n: int | None = None) -> None:
        n = self.rng.choice([1, 2, 5]) if n is None else n
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
        state = self.node.state(self.client._experiment)
        excluded = {*state.excluded_rows.tolist()}
        asked = {p[POOL_INDEX] for p in trials.values()}
        must(not asked & excluded, f"excluded rows are asked for: {asked & excluded}")

    def end_one(self, is_healthy: bool = False) -> None:
        if not self.running:
            return
        trial, chance = self.rng.choice(self.running), self.rng.random()
        if is_healthy or chance < 0.8:
            self.complete(trial)
        elif chance < 0.87:
            self.client.mark_trial_failed(trial)
        elif chance < 0.93:
            self.client.mark_trial_abandoned(trial)
        else:
            self.complete(trial, math.nan)

    def complete(self, trial: int, value: float | None = None) -> None:
        row = self.client._experiment.trials[trial].arm.parameters[POOL_INDEX]
        y = self.of.values(torch.tensor([row])).view(-1).tolist()
        if value is not None:
            y[-1] = value
        sem = max(self.of.world.std, 0.01)
        gives = self.of.world.gives_noise
        data = {
            m: (v, sem) if gives else v for m, v in zip(self.metrics, y, strict=True)
        }
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
        state = self.node.state(self.client._experiment)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "run.json")
            save_client(self.client, path)
            self.client = Client.load_from_json_file(str(path))
        again = self.node.state(self.client._experiment)
        must(same_state(state, again), "what was loaded is another state")

    def read(self) -> None:
        frame = level_set(self.client)
        must(len(frame) == len(self.strategy.candidates), "another number of lines")
        self.of.read(self.node.state(self.client._experiment))
        must(
            same_state(
                self.node.state(self.client._experiment), fresh_state(self.client)
            ),
            "what is remembered is another state",
        )
        if self.strategy.can_predict:
            self.client.predict([{POOL_INDEX: 0}])

    def to_the_end(self) -> str:
        limit = self.strategy.max_observations
        for _ in range(LONG if limit is None else limit + 30):
            while self.running:
                self.end_one(is_healthy=True)
            if self.of.n_told > LONG:
                return "long"
            self.ask(TOO_LONG)
            if self.is_done and not self.running:
                break
        must(self.is_done, "no end")
        self.read()
        self.store()
        return str(self.node.state(self.client._experiment).stop_reason)


def play(seed: int, number: int, says: Callable[[str], None]) -> str:
    r"""What became of a sequence: how its run ended, ``refused`` or ``FAILED: ...``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Sequence(seed, number, says).play()
        except RefusedError as refusal:
            says(f"refused: {refusal}")
            return "refused"
        except Exception as error:
            says(traceback.format_exc())
            frames = traceback.extract_tb(error.__traceback__)
            at = next(f for f in reversed(frames) if "botorch_lse" in f.filename or
                      "fuzz" in f.filename)  # fmt: skip
            where = f"{Path(at.filename).name}:{at.lineno}"
            return f"FAILED: {type(error).__name__} at {where}: {str(error)[:160]}"


def main(arguments: list[str] | None = None) -> int:
    r"""Play sequences, and say what became of them."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--count", type=int, help="sequences at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--only", type=int, help="the number of one, step by step")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    if options.only is not None:
        print(play(options.seed, options.only, print))
        return 0
    ends, failed = Counter[str](), dict[int, str]()
    end, number = time.monotonic() + 60 * options.minutes, options.first
    last = math.inf if options.count is None else options.first + options.count
    while time.monotonic() < end and number < last:
        found = play(options.seed, number, lambda _: None)
        if found.startswith("FAILED"):
            failed[number] = found
            print(f"{number}: {found}", flush=True)
        ends[found.partition(":")[0]] += 1
        number += 1
    counts = ", ".join(f"{n} {words}" for words, n in ends.most_common())
    print(f"{sum(ends.values())} sequences: {counts}.")
    if failed:
        how = f"--seed {options.seed} --only {min(failed)}"
        print(f"{len(failed)} failed; play one step by step: {how}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
