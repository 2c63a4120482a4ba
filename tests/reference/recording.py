r"""What every strategy does on a table of small runs, to compare two versions.

``python -m tests.reference.recording new.json --against old.json`` plays the runs of
``recorded_runs.py`` and says which of them ask, answer, forecast or stop otherwise than
those of a file written by another version, on the same machine. Both modules use public
names only, so the same two files run in every version that has them; copy them into the
older one. So they have a table of their own, by the classes' names, and not that of
``tests/registry.py``, whose classes and arguments are those of this version;
``tests/test_registry.py`` says which class is missing here.

Numbers are compared to the last bit, so a refactoring that is to change nothing must
leave every sum in its order. Long lists are kept as digests. Runs on ``LARGE`` rows and
more may differ by rounding: their numbers are kept as they are, those of every
``STRIDE``-th row, while rows, sides and stop reasons must be equal there as well.
Sentences, such as those of a guarantee, are compared by themselves: a run that says the
same in other words is listed as such, and its numbers are compared to the end.

It takes two to three minutes on two cores; set ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from botorch_lse import Observations
from botorch_lse.strategies import State, Strategy, extended

from .recorded_runs import CASES, Case, fill, truth

LARGE = 50_000
STRIDE = 211
SHORT = 12
"""Longer lists are kept as digests."""
CLOSE = 1e-9
"""Of the value, and of the largest one beside it: what rounding may change."""
SMALL = 300
"""Pools of more rows are not asked for joint draws, which take as long as a run."""
SLOW = 3.0
PROCESSES = 2
FORESEEN = 4
MOST_ROWS = 3000
"""Of larger batches, as the papers' algorithms ask for, the first rows are kept."""
WORDS_ONLY = "in words only"

Event = dict[str, Any]
Values = Callable[[Tensor], Tensor]
"""From rows to what is measured there."""


# --- values as JSON -------------------------------------------------------------------


def noted(value: Any, rough: bool = False) -> Any:
    r"""A value as JSON.

    Floats become text that is equal only to the same bits, or numbers if ``rough``;
    sentences are marked, so that they can be told from numbers and names.
    """
    if isinstance(value, Tensor):
        if rough and value.is_floating_point():
            return sampled(value)
        return noted(value.tolist()) if value.numel() <= SHORT else digest(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if rough else value.hex()
    if isinstance(value, str):
        return {"words": value}
    if isinstance(value, (list, tuple)):
        return [noted(x, rough) for x in value]
    if is_dataclass(value):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        return {k: noted(v, rough) for k, v in parts.items() if k != "pool"}
    raise TypeError(f"no way to note {type(value).__name__}")


def digest(values: Tensor) -> str:
    r"""A short text that is equal only for the same bits in the same shape."""
    kind = f"{values.dtype} {list(values.shape)}"
    data = values.detach().contiguous().numpy().tobytes()
    return f"{kind} {hashlib.blake2b(data, digest_size=12).hexdigest()}"


def sampled(values: Tensor) -> dict[str, Any]:
    r"""The numbers of some rows, and what sums of all of them say."""
    sums = [values.mean().item(), values.square().mean().sqrt().item()]
    return {"some": values[::STRIDE].tolist(), "mean and rms": sums}


def failed(error: Exception) -> Event:
    r"""An error; its message is compared as words are."""
    return {"error": type(error).__name__, "why": noted(str(error))}


# --- what a state says ----------------------------------------------------------------


def seen(state: State, rough: bool, reads: bool = True) -> Event:
    r"""What a state says.

    Args:
        state: Where the run stands.
        rough: Whether numbers are those of a large pool.
        reads: Whether to read the answer. Until somebody does, it may not exist.
    """
    said: Event = {"stop": state.stop_reason, "round": state.round, "n": state.n_used}
    if not reads:
        return said
    said["answer"] = noted(state.classification, rough)
    watches = ("content_tol", "audit")
    if any(getattr(state.strategy, name, None) is not None for name in watches):
        said["content"] = asked(lambda: content_of(state), rough)
    return said


def content_of(state: State) -> dict[str, Any]:
    r"""All that is known of the share above."""
    found = state.content()
    return {"content": found, "combined": found.combined, "text": str(found)}


def asked(question: Callable[[], Any], rough: bool = False) -> Any:
    r"""An answer, or the error that refuses it."""
    try:
        found = question()
    except Exception as error:
        return failed(error)
    if isinstance(found, dict):
        return {name: noted(value, rough) for name, value in found.items()}
    return noted(found, rough)


def further(state: State, rough: bool, foresees: bool) -> Event:
    r"""What is asked once in a run.

    Args:
        state: Where the run stands.
        rough: Whether numbers are those of a large pool.
        foresees: Whether to ask for a forecast, which may take longer than the run.
    """
    strategy: Any = state.strategy
    X = strategy.candidates.X[:3]
    questions: dict[str, Callable[[], Any]] = {
        "predict": lambda: state.predict(X),
        "calibration": state.calibration,
    }
    if len(strategy.pool) <= SMALL:
        questions["content"] = lambda: content_of(state)
        questions["conservative"] = state.conservative
        questions["vorobev"] = state.classification.vorobev
        for name in ("recommend", "spent", "variances"):
            if callable(method := getattr(strategy, name, None)):
                questions[name] = partial(method, state)
        if strategy.directions is not None:
            questions["estimate"] = partial(strategy.estimate, state)
    if foresees:
        questions["forecast"] = lambda: foreseen(state)
    return {name: asked(question, rough) for name, question in questions.items()}


def foreseen(state: State) -> list[Any]:
    r"""What is still to be measured."""
    forecast = state.forecast()
    return [forecast.observations, str(forecast)]


# --- playing --------------------------------------------------------------------------


def noisy(F: Tensor, std: float, seed: int) -> Values:
    r"""Measured values of rows; each call draws anew."""
    generator = torch.Generator().manual_seed(seed)

    def values(rows: Tensor) -> Tensor:
        noise = torch.randn(F[rows].shape, generator=generator, dtype=torch.float64)
        return F[rows] + std * noise

    return values


def play(case: Case, seed: int) -> Iterator[Event]:
    r"""A run with rows out, rounds told in parts, and rows used up.

    With an odd seed rows are excluded, a value comes that was not asked for, and all is
    told again to a new run at the end.
    """
    strategy, F, std = case.make()
    rough, values = len(strategy.pool) >= LARGE, noisy(F, std, 100 + seed)
    is_odd, is_due, may_exclude = seed % 2 == 1, True, seed % 2 == 1
    state = strategy.init(seed)
    yield {"rows": len(strategy.pool), **seen(state, rough)}
    if hasattr(strategy, "simulate"):
        yield asked(lambda: simulated(strategy, F, std, seed))
    while not state.is_done and state.round < case.rounds:
        size = case.sizes[state.round % len(case.sizes)] if case.sizes else None
        batch = strategy.ask(state, size=size)
        order = batch.order[:MOST_ROWS]
        yield {"ask": noted(order), "n": len(batch)}
        if len(batch) > MOST_ROWS:
            return
        if may_exclude and state.round >= 3:
            may_exclude = False
            state, event = without(strategy, state, [int(order[0]), 5])
            yield event
            if state.is_done or strategy.missing(state).numel() == 0:
                continue
            order = strategy.ask(state).order
        if state.round % 3 == 1:
            others = asked(partial(more, strategy, state, order))
            yield {"while these are out": others}
        if state.round % 3 == 2 and len(order) > 2:
            half = order[: len(order) // 2]
            state = strategy.tell(state, Observations(half, values(half)))
            rest = strategy.ask(state).order
            yield {"rest": noted(rest)}
            state = strategy.tell(state, None, abandoned=rest[:1].tolist())
            if state.is_done or strategy.missing(state).numel() == 0:
                yield seen(state, rough)
                continue
            order = strategy.ask(state).order
        new = Observations(order, values(order))
        if is_odd and state.round == 4:
            other = torch.tensor([len(F) // 2])
            late = new.append(Observations(other, values(other)))
            try:
                state = strategy.tell(state, late)
            except ValueError as error:
                yield failed(error)
                state = strategy.tell(state, new)
        else:
            state = strategy.tell(state, new)
        yield seen(state, rough, state.is_done or state.round % case.reads == 0)
        if is_due and state.round >= FORESEEN:
            is_due = False
            yield further(state, rough, case.foresees and seed == case.seeds[0])
    if is_odd:
        yield {"replayed": seen(replayed(strategy, state), rough)}


def more(strategy: Strategy, state: State, order: Tensor) -> Tensor:
    r"""The rows to measure while some are being measured."""
    return strategy.ask(state, pending=order).order


def without(strategy: Strategy, state: State, rows: list[int]) -> tuple[State, Event]:
    r"""The state without some rows, if the strategy can do without them."""
    try:
        state = strategy.exclude(state, rows)
    except Exception as error:
        return state, {"excluded": failed(error)}
    left = strategy.missing(state)
    return state, {"excluded": rows, "missing": noted(left), "round": state.round}


def replayed(strategy: Strategy, state: State) -> State:
    r"""The state of a new run that is told all of this one."""
    lost: dict[int, list[int]] = {}
    for label, row in state.abandoned:
        lost.setdefault(label, []).append(row)
    known, out = state.observations, state.excluded
    return strategy.replay(known, state.seed, abandoned=lost, excluded=out)


def simulated(strategy: Any, F: Tensor, std: float, seed: int) -> dict[str, Any]:
    r"""The end of a run by counts and means."""
    generator = torch.Generator().manual_seed(200 + seed)

    def means(rows: Tensor, counts: Tensor) -> Tensor:
        noise = torch.randn(F[rows].shape, generator=generator, dtype=torch.float64)
        sizes = counts.double().sqrt().view(-1, *[1] * (F.ndim - 1))
        return F[rows] + std * noise / sizes

    end = strategy.simulate(means, seed)
    answer = end.classification
    sides = [answer.above, answer.below]
    return {"n": end.n_used, "rounds": end.rounds, "stop": end.stop_reason, "of": sides}


def play_growing(case: Case, seed: int) -> Iterator[Event]:
    r"""A run whose pool grows where the event is."""
    strategy, F, std = case.make()
    state = strategy.init(seed)
    for step in range(3):
        strategy, values = state.strategy, noisy(F, std, 300 + step)
        for _ in range(4):
            if state.is_done:
                break
            order = strategy.ask(state).order
            yield {"ask": noted(order)}
            state = strategy.tell(state, Observations(order, values(order)))
            yield seen(state, rough=False)
        state = extended(state, 40)
        pool = state.strategy.pool
        F = truth(pool.X)
        yield {"X": noted(pool.X), "mass": noted(pool.mass), **seen(state, False)}


# --- playing through Ax ---------------------------------------------------------------


def play_in_ax(
    case: Case, seed: int, late: bool = False, by_number: bool = True
) -> Iterator[Event]:
    r"""A run through Ax that is stored and loaded.

    The newest trial ends first; one fails, one is abandoned, one comes from elsewhere,
    and rows are excluded.

    Args:
        case: The run.
        seed: Its seed.
        late: Whether results are learnt from as they come, one of them late.
        by_number: Whether parameters are the number of a row; else they are its point,
            and what is measured elsewhere is no row.
    """
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig
    from ax.exceptions.core import DataRequiredError
    from ax.exceptions.generation_strategy import GenerationStrategyCompleted

    from botorch_lse import ax as A

    strategy, F, std = case.make()
    pool, several = strategy.pool, F.ndim == 2
    metrics = strategy.outputs or (("y", "z") if several else ("y",))
    parameters, elsewhere = A.pool_parameters(pool), {A.POOL_INDEX: 7}
    if not by_number:
        parameters = [
            RangeParameterConfig(name=n, bounds=(0.0, 1.0), parameter_type="float")
            for n in pool.names or ()
        ]
        elsewhere = {"east": 0.31, "north": 0.77}
    client = Client()
    client.configure_experiment(parameters=parameters, name="run")
    signs = "y, -z" if several and strategy.directions else metrics[0]
    client.configure_optimization(objective=signs)
    if several and not strategy.directions:
        client.configure_tracking_metrics(list(metrics[1:]))
    client.set_generation_strategy(
        A.level_set_generation_strategy(strategy, seed=seed, asynchronous=late)
    )

    def complete(trial: int, row: int) -> None:
        y = noisy(F, std, 1000 + trial)(torch.tensor([row]))[0].view(-1).tolist()
        data = zip(metrics, y, strict=True)
        client.complete_trial(trial, {name: (round(v, 6), std) for name, v in data})

    def row_of(point: dict[str, Any]) -> int:
        return point[A.POOL_INDEX] if by_number else pool.nearest(list(point.values()))

    foreign, ended = client.attach_trial(elsewhere), 0
    out: dict[int, int] = {}
    for step in range(7):
        try:
            new = client.get_next_trials(max_trials=3)
        except GenerationStrategyCompleted as stop:
            yield {"stop": noted(str(stop))}
            break
        except DataRequiredError as error:
            yield {"waits": noted(str(error))}
            new = {}
        out |= {trial: row_of(point) for trial, point in new.items()}
        yield {"out": [[trial, row] for trial, row in out.items()]}
        kept = min(out, default=0) if late and step % 2 == 0 else None
        for trial in sorted(out, reverse=True):
            if trial == kept:
                continue
            row, ended = out.pop(trial), ended + 1
            if ended == 2:
                client.mark_trial_failed(trial)
            elif ended == 7:
                client.mark_trial_abandoned(trial)
            else:
                complete(trial, row)
        if step == 1:
            complete(foreign, 7)
        if step == 3:
            A.exclude_rows(client, [1, 2])
        if step in (2, 4):
            with TemporaryDirectory() as folder:
                path = str(Path(folder, "run.json"))
                client.save_to_json_file(path)
                client = Client.load_from_json_file(path)
    frame = A.level_set(client)
    table = {name: column.tolist() for name, column in frame.items()}
    yield {"columns": list(table), "table": text_digest(table)}
    yield asked(lambda: {"content": A.level_set_content(client)})


def text_digest(table: dict[str, list[Any]]) -> dict[str, str]:
    r"""A digest of each column of a table."""

    def text(value: Any) -> str:
        return value.hex() if isinstance(value, float) else repr(value)

    columns = {name: " ".join(map(text, column)) for name, column in table.items()}
    return {n: hashlib.blake2b(c.encode()).hexdigest()[:24] for n, c in columns.items()}


WAYS: dict[str, Callable[[Case, int], Iterator[Event]]] = {
    "asked": play,
    "growing": play_growing,
    "ax": play_in_ax,
    "late ax": lambda case, seed: play_in_ax(case, seed, late=True),
    "ax in space": lambda case, seed: play_in_ax(case, seed, by_number=False),
}


# --- recording ------------------------------------------------------------------------


def recorded(name: str, seed: int) -> tuple[str, list[Event], float]:
    r"""The name of one run, its events, and its CPU seconds."""
    if not CASES:
        fill()
    case, events, start = CASES[name], [], time.process_time()
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            events.extend(WAYS[case.way](case, seed))
        except Exception as error:
            events.append(failed(error))
    return f"{name} #{seed}", events, time.process_time() - start


def _start() -> None:
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)  # of Ax, which tells of each trial


def record(only: str = "") -> dict[str, list[Event]]:
    r"""All runs of the table, by name and seed."""
    fill()
    wanted = [(n, s) for n, case in CASES.items() if only in n for s in case.seeds]
    # New processes, since a fork would inherit threads that it does not have.
    found, total = {}, 0.0
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), _start) as workers:
        for name, events, seconds in workers.map(recorded, *zip(*wanted, strict=True)):
            found[name], total = events, total + seconds
            if seconds > SLOW:
                print(f"{name}: {seconds:.0f} CPU seconds", flush=True)
    print(f"{total:.0f} CPU seconds in {PROCESSES} processes")
    return found


# --- comparing ------------------------------------------------------------------------


def same(old: Any, new: Any, in_words: bool) -> bool:
    r"""Whether two values of a record agree.

    Floats that are numbers agree up to rounding; those that are text to the last bit.

    Args:
        old: A value.
        new: Another one.
        in_words: Whether sentences must agree as well.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() != new.keys():
            return False
        if old.keys() == {"words"} and not in_words:
            return True
        return all(same(old[key], new[key], in_words) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return False
        if old and all(isinstance(x, float) for x in (*old, *new)):
            return close(old, new)
        return all(same(a, b, in_words) for a, b in zip(old, new, strict=True))
    if isinstance(old, float) and isinstance(new, float):
        return close([old], [new])
    return bool(old == new)


def close(old: list[float], new: list[float]) -> bool:
    r"""Whether numbers of one kind agree up to rounding of the largest of them."""
    sizes = [abs(x) for x in (*old, *new) if math.isfinite(x)]
    a, b = (torch.tensor(x, dtype=torch.float64) for x in (old, new))
    atol = CLOSE * max(sizes, default=0.0)
    return torch.allclose(a, b, rtol=CLOSE, atol=atol, equal_nan=True)


def first_difference(
    old: list[Event], new: list[Event], in_words: bool = False
) -> str | None:
    r"""The first event that differs, and what of it; ``None`` if none does."""
    for i, (a, b) in enumerate(zip(old, new, strict=False)):
        keys = []
        for key in {**a, **b}:
            one, other = a.get(key), b.get(key)
            if same(one, other, in_words):
                continue
            if isinstance(one, dict) and isinstance(other, dict):
                parts = {**one, **other}
                keys += [
                    f"{key}.{part}"
                    for part in parts
                    if not same(one.get(part), other.get(part), in_words)
                ]
            else:
                keys.append(key)
        if keys:
            return f"event {i} of {len(old)}: {keys}"
    if len(old) != len(new):
        return f"{len(old)} and {len(new)} events"
    return None


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    r"""A sentence for each run that differs, at its first event that does.

    Those that only say the same in other words come last.
    """
    said, worded = [], []
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            said.append(f"{name}: only in {'old' if name in old else 'new'}")
            continue
        found = first_difference(old[name], new[name])
        if found is not None:
            said.append(f"{name}: {found}")
            continue
        found = first_difference(old[name], new[name], in_words=True)
        if found is not None:
            worded.append(f"{name}: {WORDS_ONLY}, {found}")
    return [*said, *worded]


def main() -> None:
    r"""Write a record, and compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="", help="a part of the names of runs")
    options = parser.parse_args()
    start = time.perf_counter()
    found = record(options.only)
    options.path.write_text(json.dumps(found))
    wrong = {name: e[-1] for name, e in found.items() if "error" in e[-1]}
    n_events, seconds = sum(map(len, found.values())), time.perf_counter() - start
    counts = f"{len(found)} runs, {n_events} events, {len(wrong)} errors"
    print(f"{counts} in {seconds:.0f} s")
    for name, event in wrong.items():
        print(f"  {name}: {event['error']}: {event['why']['words'][:200]}")
    if options.against is not None:
        old = json.loads(options.against.read_text())
        old = {name: events for name, events in old.items() if options.only in name}
        said = differences(old, found)
        n_worded = sum(WORDS_ONLY in line for line in said)
        print(f"{len(said) - n_worded} differ, {n_worded} {WORDS_ONLY}")
        print("\n".join(said))


if __name__ == "__main__":
    main()
