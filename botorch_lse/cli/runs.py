r"""Runs from files: from the files to the state, and on to the next sheet.

The run is a function of the files: what each sheet brought is one round, whatever of it
came back, and the state after these rounds says which candidates come next.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from botorch_lse import strategies  # loads its names, and torch, on first use
from botorch_lse._files import Seen, seen_to_write, write_whole
from botorch_lse._numerals import written
from botorch_lse.cli.candidates import REPEAT, SHEET, Candidates, is_open
from botorch_lse.cli.cells import SOURCE, Line, Table, read_table, without_unit, writing
from botorch_lse.cli.measurements import MEASURED, UNTOLD, Measurements, measurements
from botorch_lse.cli.progress import doing
from botorch_lse.cli.scale import Scale
from botorch_lse.cli.settings import Settings
from botorch_lse.cli.sources import is_fidelity

if TYPE_CHECKING:
    import pandas as pd

    from botorch_lse.data.classification import Classification
    from botorch_lse.data.observations import History, Observations
    from botorch_lse.data.pool import Pool
    from botorch_lse.models.outcomes import Outcome
    from botorch_lse.strategies import ComposedStrategy, State

Found = TypeVar("Found")


class SavedMeanwhileError(ValueError):
    r"""The error that a file was saved while a call computed on its earlier content."""


@dataclass(frozen=True, eq=False)
class Run:
    r"""A run as its files describe it.

    Args:
        settings: What is asked.
        candidates: What it is asked about.
        measured: What is known, and what is out.
    """

    settings: Settings
    candidates: Candidates = field(repr=False)
    measured: Measurements = field(repr=False)

    @classmethod
    def read(cls, found: Settings) -> Run:
        r"""Read all files of the settings.

        Args:
            found: The settings; what they leave open about the inputs is filled in.

        Raises:
            ValueError: If a file is not what it should be.
        """
        table = read_table(
            found.file("candidates"), found.encoding, found.names, takes_workbooks=True
        )
        ignored = found.ignore
        if found.trials is not None and table.column(found.trials) is not None:
            ignored = (*ignored, found.trials)  # how many are planned of each
        candidates = Candidates.of(
            table,
            found.column,
            found.notation,
            found.key,
            found.inputs,
            ignored,
            found.logs,
            found.words,
            found.open,
        )
        found = replace(found, inputs=candidates.inputs)
        return cls(found, candidates, measurements(found, candidates))

    @property
    def seen(self) -> dict[Path, Seen]:
        r"""The files that ``next`` writes, each with what was read in it."""
        tables = {"results": self.measured.results, "out": self.measured.sheet}
        found = {
            self.settings.file(name): Seen(None) if table is None else table.seen
            for name, table in tables.items()
        }
        if not self.settings.is_stored:
            found[self.settings.path] = Seen(None)
        return found

    def check_files(self) -> None:
        r"""Look at the files that ``next`` writes once more.

        Raises:
            SavedMeanwhileError: If somebody saved one since it was read.
            ValueError: If one cannot be written.
        """
        for path, seen in self.seen.items():
            with writing(path):
                now = seen_to_write(path)
            if now != seen:
                raise SavedMeanwhileError(
                    f"{path.name} was saved while this call computed: nothing was "
                    "written. Call again."
                )

    @property
    def valued_lines(self) -> list[Line]:
        r"""The lines of the candidates with a value that does not count as measured.

        None where the candidates are the table of results, too.
        """
        column, table = self.candidates.column, self.candidates.table
        is_results = self.settings.file("results") == self.settings.file("candidates")
        if column is None or is_results:
            return []
        cells = ((line, line.cells[column]) for line in table.lines)
        words = self.settings.open
        return [line for line, text in cells if not is_open(text, words)]

    def check_measured(self) -> None:
        r"""Ask about a column to be measured that has a value in every line.

        Raises:
            ValueError: If there is a value for every candidate, and nobody said that
                these are the results.
        """
        column, table = self.candidates.column, self.candidates.table
        if column is None or len(self.valued_lines) < len(table.lines):
            return
        notation = self.settings.notation
        remedy = notation.advice("results", self.settings.candidates)
        if self.settings.sources:
            remedy = f"copy the lines to {self.settings.results}, with a column "
            remedy += f"{SOURCE!r}, and delete {column!r} here"
        raise ValueError(
            f"{table.name}, column {column}: expected what is to be measured, but "
            f"every line has a value of it. If these are results, {remedy}; if it is "
            f"an input, {notation.advice('column', 'NAME')}, of what is measured; else "
            "rename it, or delete it."
        )

    @cached_property
    def rows(self) -> np.ndarray:
        r"""The candidates of the pool: those that can be measured.

        Of several sources all: another source may measure what one cannot.
        """
        excluded = set() if self.settings.sources else self.measured.excluded
        rows = [row for row in range(len(self.candidates)) if row not in excluded]
        if not rows:
            raise ValueError(
                "Expected candidates, but all are marked n/a. Empty a cell that says "
                f"so in {self.settings.results}."
            )
        return np.asarray(rows)

    @cached_property
    def places(self) -> dict[int, int]:
        r"""The row of the pool of each candidate, at each source if there are some."""
        n = max(1, len(self.measured.sources)) * len(self.candidates)
        firsts = range(0, n, len(self.candidates))
        named = (first + int(row) for first in firsts for row in self.rows)
        return {row: place for place, row in enumerate(named)}

    @cached_property
    def pool(self) -> Pool:
        r"""The candidates that can be measured, at each source if there are some."""
        pool, names = self.candidates.pool(self.rows), self.measured.sources
        if not names:
            return pool
        found = self.settings
        target = found.target or (found.sources or names)[-1 if found.sources else 0]
        at, costs = names.index(target), list(found.source_costs or (1.0,))
        # Sources of earlier values alone are as dear as the target.
        costs += costs[at : at + 1] * (len(names) - len(costs))
        variances = [*map(self._variance_of, names)] if found.source_noise else None
        if is_fidelity(found.sources):
            numbers = [*map(float, names)]
            return pool.at_sources(numbers, costs, numbers[at], variances)
        return pool.at_sources(names, costs, target, variances)

    def _variance_of(self, source: str | float) -> float:
        r"""The known noise variance of a source; of earlier ones alone one for all.

        That is the last one, or if they have none of their own the target's.
        """
        found, names = self.settings, self.measured.sources
        own: list[str | float] = [*names[: max(1, len(found.sources))]]
        if is_fidelity(found.sources):
            own, source = [*map(float, found.sources)], float(source)
        at = own.index(source) if source in own else len(own)
        if at == len(found.source_noise):  # which is that of earlier values
            at = own.index(type(own[0])(found.target or own[-1]))
        return self.scale.noise(found.source_noise[at]) ** 2

    @property
    def scale(self) -> Scale:
        r"""The scale on which the model sees results."""
        return Scale(bool(self.settings.log_result))

    @property
    def level(self) -> float:
        r"""The level on the model's scale."""
        return self.scale.level(self.settings.level)

    @property
    def epsilon(self) -> float:
        r"""The accuracy on the model's scale."""
        return self.scale.accuracy(self.settings.epsilon, self.settings.level)

    @cached_property
    def outcome(self) -> Outcome | None:
        r"""The relation of results to the model, where they are no numbers."""
        kind = self.settings.kind
        return None if kind is None else kind.outcome

    @property
    def trials(self) -> int:
        r"""The usual number of trials of a line: that of the last one; 1 before any."""
        numbers = [e.trials for e in self.measured.having(MEASURED) if e.trials]
        return numbers[-1] if numbers else 1

    @property
    def words(self) -> str:
        r"""The words for results that are no numbers, as the results have them."""
        kind, name = self.settings.kind, self.settings.column
        assert kind is not None  # only then it is asked
        cells = (
            entry.line.cells[column]
            for entry in self.measured.having(MEASURED)
            if (column := entry.table.column(name)) is not None
        )
        return kind.words(next(cells, None))

    @property
    def quantity(self) -> str:
        r"""The name of what levels and bounds are about, with its unit."""
        if self.outcome is not None:
            return self.outcome.of_metric(self.result_column)
        return self.result_column

    @property
    def question(self) -> str:
        r"""The question, with what is measured and its unit."""
        column = self.result_column
        name = without_unit(column)
        unit = column.removeprefix(name).strip(" ()[]")
        level = f"{written(self.settings.level)} {unit}".strip()
        kind, side = self.settings.kind, self.settings.side
        asked = f"{side} {level}?" if kind is None else kind.question(side, level)
        return f"{name}: {asked}"

    @cached_property
    def strategy(self) -> ComposedStrategy:
        r"""The default strategy for the question."""
        found, noise = self.settings, self.settings.noise_std
        noise = None if noise is None else self.scale.noise(noise)
        asked, make = (self.level, self.epsilon), strategies.Above
        most = len(self.pool) * (found.max_repeats or found.batch)
        strategy = strategies.Strategy(
            self.pool,
            make(*asked) if found.kind is None else found.kind.goal(*asked),
            model=strategies.GaussianProcess(
                noise_std=noise, n_initial=found.first, outcome=self.outcome
            ),
            batch_size=min(found.batch, most),
            beta=found.beta,
            max_observations=found.budget,
            max_repeats=found.max_repeats,
            audit=(found.audit[0], found.audit[1]) if found.audit else None,
        )
        if self.measured.earlier.values:
            strategy = strategy.with_history(self.history)
        # Which ``Strategy(...)`` makes.
        assert isinstance(strategy, strategies.ComposedStrategy)
        return strategy

    @property
    def history(self) -> History:
        r"""The values of earlier campaigns."""
        import torch  # not at the top: the files are read without it

        from botorch_lse.data.observations import History

        known = self.measured.earlier
        X = self.candidates.points(known.inputs)
        y = self.scale.inward(torch.tensor(known.values, dtype=torch.float64))
        is_known = self.settings.source_noise
        yvar = [*map(self._variance_of, known.source)] if is_known else None
        return History(X, y, yvar, source=known.source)

    @property
    def by_source(self) -> str:
        r"""The number of measurements of each source in brackets, if there are some."""
        n, found = len(self.candidates), self.measured
        times = Counter(entry.row // n for entry in found.having(MEASURED))
        sources = enumerate(self.settings.sources if times else ())
        said = [f"{name}: {times[at]}" for at, name in sources]
        said += [f"earlier: {len(found.earlier.values)}"] * bool(found.earlier.values)
        return f" ({', '.join(said)})" if said else ""

    def called(self, row: int) -> str:
        r"""The name of a candidate in a message, with its source if there are some."""
        at, candidate = divmod(row, len(self.candidates))
        name, sources = self.candidates.called(candidate), self.settings.sources
        return f"{name} ({sources[at]})" if sources else name

    @property
    def unmeasurable(self) -> set[int]:
        r"""The rows of the pool that are never asked for, of several sources."""
        n, found = len(self.candidates), self.measured
        n_asked = n * max(1, len(self.settings.sources))
        known = () if self.settings.audit else found.known  # which an audit may draw
        return {
            place
            for row, place in self.places.items()
            if row >= n_asked
            or row in found.excluded
            or any(row % n == other % n for other in known)
        }

    @cached_property
    def state(self) -> State:
        r"""The state after all measurements.

        Fits of earlier calls are read from a file beside the settings, and those of
        this one written there: it may be deleted, and the next call makes them again.
        """
        return self._remembered(lambda: learnt(self, self.strategy))

    @cached_property
    def progress(self) -> pd.DataFrame:
        r"""The sides after each sheet, of ``plotting.progress_frame``.

        The state comes with it: where both are wanted, this first learns only once.
        """
        from botorch_lse.plotting import progress_frame  # brings torch

        last: list[State] = []

        def states() -> Iterator[State]:
            for state in learning(self, self.strategy):
                last[:] = [state]  # one at a time: a state holds the whole pool
                yield state

        found = self._remembered(lambda: progress_frame(states()))
        vars(self).setdefault("state", last[0])
        return found

    @property
    def learns(self) -> bool:
        r"""Whether there are values enough to learn a model from."""
        n = len(self.measured.having(MEASURED))
        return n >= self.strategy.parts.model.n_first

    def _remembered(self, found: Callable[[], Found]) -> Found:
        r"""Call a function that knows the fits of earlier calls, and keep its own."""
        from botorch_lse.models.memory import FitMemory, remembering  # brings torch

        file = self.settings.path.with_name(f".{self.settings.path.stem}.fits.json")
        try:
            known = json.loads(file.read_bytes())
        except (OSError, ValueError):  # it is missing, or cannot be read
            known = None
        memory = FitMemory(known)
        with remembering(memory):
            value = found()
        if {*memory.used} - {*memory.known}:
            with suppress(OSError):  # the folder may not be written to
                write_whole(file, json.dumps(memory.used).encode())
        return value

    @cached_property
    def answer(self) -> Classification:
        r"""The answer about the pool in the units of the results, limits included.

        A candidate whose side a limit tells is decided by it, whatever the model says.
        """
        return self._with_limits(self.state.classification)

    @cached_property
    def sides(self) -> Classification:
        r"""The sides of the answer alone: no model is fitted where none decides yet."""
        return self._with_limits(self.state.answer.as_decided)

    def _with_limits(self, answer: Classification) -> Classification:
        found = self.scale.answer(answer)
        for side in ("above", "below"):
            known = {
                self.places[row] % len(self.rows): entry.value  # of the target
                for row, entry in self.measured.known.items()
                if entry.side == side and row in self.places
            }
            if known:
                found = found.with_limits([*known], [*known.values()], side)
        return found

    @property
    def stop_reason(self) -> str | None:
        r"""The reason why nothing more need be measured; ``None`` if something must."""
        from botorch_lse.strategies.algorithm import (
            ALL_ABOVE,
            BUDGET,
            DECIDED,
            NONE_FOUND,
        )

        reason, known = self.state.stop_reason, self.measured.known
        if reason is None and self.left is not None and self.left <= 0:
            reason = BUDGET
        if self.settings.audit or bool(self.sides.undecided.any()):
            return reason  # an audit says itself what it confirms
        is_one_sided = reason in (NONE_FOUND, ALL_ABOVE) and not known
        return reason if is_one_sided else DECIDED

    @property
    def left(self) -> int | None:
        r"""The number of measurements, or trials, that the budget still allows."""
        if self.settings.budget is None:
            return None
        # A limit of a value was measured, too, though no model is told of a value.
        found = self.measured.having(MEASURED, UNTOLD)
        return self.settings.budget - sum(entry.trials or 1 for entry in found)

    @property
    def is_done(self) -> bool:
        r"""Whether nothing more need be measured."""
        return self.stop_reason is not None

    @property
    def _tables(self) -> list[Table]:
        tables = (self.candidates.table, self.measured.results, self.measured.sheet)
        return [table for table in tables if table is not None]

    @property
    def marks(self) -> set[str]:
        r"""The decimal marks of whoever asks: as said, or all that the files show."""
        said = self.settings.decimal
        shown = (table.marks for table in self._tables)
        return {said} if said else set[str]().union(*shown)

    @property
    def mark(self) -> str:
        r"""The decimal mark of the answer: that of the candidates if they show one."""
        marks = (table.mark() for table in self._tables)
        return next((mark for mark in marks if mark), self.settings.notation.mark)

    def next_rows(self) -> list[int]:
        r"""The candidates that fill up the sheet, first those that failed.

        Nothing where the run has ended.
        """
        if self.is_done:
            return []
        size = self.settings.batch - len(self.measured.open)
        if (left := self.left) is not None:  # others may have used it up meanwhile
            if self.settings.trials is not None:  # the lines that take these trials
                left = max(left // self.trials, 1)
            size = min(size, left - len(self.measured.open))
        owed = [self.places[row] for row in self.measured.owed][: max(size, 0)]
        out = [self.places[entry.row] for entry in self.measured.open] + owed
        size -= len(owed)
        if size <= 0:
            rows = []
        else:
            with doing(f"choosing {size} line{'s' * (size > 1)}", at_once=False):
                rows = filled_up(self.strategy, self.state, out, size)
        named = list(self.places)
        return [named[row] for row in [*owed, *rows]]

    # --- the sheet --------------------------------------------------------------------

    @cached_property
    def sheet_header(self) -> tuple[str, ...]:
        r"""The columns of a sheet: number, the candidate's cells, repeat, result.

        Behind them the trials, where results count successes and no number is planned,
        and before the repeat the source, if several measure.
        """
        table, column = self.candidates.table, self.settings.column
        own = table.column(column)
        cells = [name for name in table.header if name != own]
        cells += [SOURCE] * bool(self.settings.sources)
        return SHEET, *cells, REPEAT, self.result_column, *self._trials_column

    @property
    def _trials_column(self) -> tuple[str, ...]:
        r"""The column of trials that a sheet adds to the cells of the candidates."""
        name = self.settings.trials
        if name is None or self.candidates.table.column(name) is not None:
            return ()
        return (name,)

    @property
    def result_column(self) -> str:
        r"""The name of the column of results, as the files have it if they do."""
        column = self.settings.column
        own, *others = self._tables
        names = (table.column(column) for table in (*others, own))
        return next((name for name in names if name is not None), column)

    def sheet_lines(self, rows: Iterable[int]) -> list[dict[str, str]]:
        r"""New lines of a sheet, their results empty.

        Args:
            rows: The candidates, replicates included.
        """
        number, counts = self.measured.last_sheet + 1, self.measured.counts.copy()
        lines = []
        for row in rows:
            counts[row] += 1
            at, candidate = divmod(row, len(self.candidates))
            cells = dict(self.candidates.lines[candidate].cells)
            cells |= {SHEET: str(number), REPEAT: str(counts[row])}
            if sources := self.settings.sources:
                mark = self.mark if is_fidelity(sources) else "."
                cells[SOURCE] = sources[at].replace(".", mark)
            added = (self.result_column, *self._trials_column)
            lines.append({**cells, **dict.fromkeys(added, "")})
        return lines


def learnt(run: Run, strategy: ComposedStrategy) -> State:
    r"""The state of a strategy after all measurements of a run."""
    for state in learning(run, strategy):  # noqa: B007
        pass
    return state


def learning(run: Run, strategy: ComposedStrategy) -> Iterator[State]:
    r"""The states of a strategy before the first and after each sheet of a run.

    Args:
        run: The run.
        strategy: A strategy on its pool.
    """
    # An audit asks for the side of candidates that it drew, which a limit says; one
    # that may not be measured it would count as wrong. Else no fit sees a limit: values
    # around it would seem to be known, and nearer to the level than they are.
    has_audit = bool(run.settings.audit)
    parts = run.measured.by_sheet(run.places, with_limits=has_audit)
    kind = run.settings.kind
    groups = [
        run.scale.told(part) if kind is None else replace(part, y=kind.told(part.y))
        for part in parts
    ]
    state = strategy.init(run.settings.seed)
    n = sum(map(len, groups))
    limits = {*run.measured.known, *run.measured.untold} & {*run.places}
    out = set() if has_audit else {run.places[row] for row in limits}
    if run.measured.sources:
        out |= run.unmeasurable
    if out:
        state = strategy.exclude(state, sorted(out))
    yield state
    if n == 0:
        return
    # While the first measurements are spread no model is learnt, and all is quick.
    learns = n >= strategy.parts.model.n_first
    with doing(f"learning from {n} value{'s' * (n > 1)}", at_once=learns) as progress:
        for i, group in enumerate(groups, 1):
            progress.place = f"sheet {i} of {len(groups)}"
            state = told(strategy, state, group)
            is_last = i == len(groups)
            if is_last and limits and not has_audit:
                state = _with_limits(run, strategy, state)
            yield state


def _with_limits(run: Run, strategy: ComposedStrategy, state: State) -> State:
    r"""The state that also knows the limits of values."""
    import torch  # not at the top: the files are read without it

    from botorch_lse.strategies.loop import believing  # brings torch, too

    known = {**run.measured.known, **run.measured.untold}
    entries = [known[row] for row in sorted({*known} & {*run.places})]
    rows = torch.tensor([run.places[entry.row] for entry in entries])
    limits = torch.tensor([entry.value for entry in entries], dtype=torch.float64)
    sign = torch.tensor([1.0 if e.lies == "below" else -1.0 for e in entries]).double()
    given = rows, run.scale.inward(limits), sign
    algorithm = strategy.algorithm
    belief = algorithm.door.inside(algorithm.knowing_limits, state.belief, *given)
    said = "The model knows limits of values approximately (moment matching)."
    return state if belief is state.belief else believing(state, belief, said)


def told(strategy: ComposedStrategy, state: State, group: Observations) -> State:
    r"""The state after a group of measurements, however large.

    Args:
        strategy: The strategy.
        state: The state before.
        group: The measurements, at least one. With a label they are one round; without
            one each counts as a look at the intervals.
    """
    from botorch_lse.strategies.loop import looks_of_all  # brings torch

    n = looks_of_all(state, group) if group.round is None else 0
    told = group.at_round(state.round + n)
    most = len(strategy.pool) * (strategy.max_repeats or len(group))
    size = min(len(group), most)  # a batch of more is refused
    return replace(strategy, batch_size=size).tell(state, told)


def filled_up(
    strategy: ComposedStrategy, state: State, pending: list[int], size: int
) -> list[int]:
    r"""Further rows to measure, in the knowledge of those that are out.

    Args:
        strategy: The strategy.
        state: Where the run stands.
        pending: Rows of the pool that are out.
        size: How many more are wanted; fewer come where a budget ends.
    """
    import torch  # not at the top: the files are read without it

    rows = list[int]()
    while len(rows) < size:
        # A strategy's batch is as large as the settings' where the repeats allow it.
        n = min(size - len(rows), strategy.batch_size or size)
        asking = replace(strategy, batch_size=n)
        try:
            # Of a round that holds the pending rows ``ask`` gives the rest alone.
            batch = asking.ask(state, pending=torch.tensor([*pending, *rows]).long())
        except ValueError as error:
            if str(error).startswith("Nothing is left to ask"):
                break
            raise
        rows += batch.order.tolist()
    return rows
