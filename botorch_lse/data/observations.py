r"""Observations, old values and batches: what is measured, and where."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse._device import at_home, ordinary
from botorch_lse._lazy import LazyModule
from botorch_lse._validation import (
    complaint,
    is_number,
    non_negative_vector,
    of_type,
    real_matrix,
    real_numbers,
    real_vector,
    row_indices,
    truth_value,
    whole_number,
    whole_numbers,
)
from botorch_lse.data.names import (
    are_named,
    chosen,
    in_order,
    is_counted,
    named_lines,
    places_of,
    with_index,
)

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")  # for tables
from botorch_lse.data.pool import SOURCE, Pool, _set_fields

POOL_INDEX, ROUND = "pool_index", "round"
"""The columns of a sheet that say which row was measured, and in which round."""
_IS_LIMIT = re.compile(r"got str '\s*([<>\u2264\u2265].*?|n\.?d\.?)'\.", re.IGNORECASE)
LIMIT = (
    "A limit is no value: leave its line out, `strategy.exclude` its row, and read "
    "`state.classification.with_limits(rows, limits, side)`."
)
"""The remedy for a result such as <0.5 or ND."""
IN_ORDER = (
    "If `y` was computed from `batch.X`, which has each row once, compute it from "
    "`pool.X[batch.order]`, which has the rows of all measurements, in order."
)
"""The remedy for one value for each row of a batch that repeats some."""


@dataclass(frozen=True, eq=False)
class Observations:
    r"""Measurements, one entry each, in the order in which they were given.

    Args:
        indices: ``n`` rows of the pool.
        y: ``n`` measured values, or ``n x m`` for ``m`` outputs.
        yvar: The known noise variance of each value, the shape of ``y``; ``None`` if
            the strategy knows the noise or the model learns it.
        round: The round of each entry, one number or ``n``; ``None``: nobody knows,
            so that they are a round of their own, or if they may be several count as a
            look at the intervals each.
        counts: How many measurements each entry is the mean of; ``None``: one each.
        lines: What the ``n`` lines of a table say of their rows, for ``check_rows``.
        outputs: The names of the ``m`` outputs, where they are known: of a table ``y``
            its columns. A strategy whose goal names outputs takes them by name.
        trials: How many trials each entry counts the successes of, one number or ``n``:
            ``y`` are then numbers of successes, and are kept as shares, with ``trials``
            as ``counts``.

    Raises:
        ValueError: If a value is not finite, a variance negative, or known and unknown
            variances are mixed; if there are more successes than trials.
        BotorchTensorDimensionError: If the lengths differ.
    """

    indices: Tensor
    y: Tensor
    yvar: Tensor | None = None
    round: Tensor | None = None
    counts: Tensor | None = None
    lines: pd.DataFrame | None = field(default=None, repr=False)
    outputs: tuple[str, ...] | None = field(default=None, repr=False)
    trials: InitVar[Any] = None

    @ordinary
    def __post_init__(self, trials: Any) -> None:
        given, values = self.indices, self.y
        indices = row_indices(given, "indices")
        n = indices.numel()
        if isinstance(given, pd.Series):
            values = in_order(values, given.index, "y", others="the `indices`")
        values, noise, outputs = _measured(values, self.yvar, self.outputs)
        try:
            y = at_home(_values(values, n))
        except BotorchTensorDimensionError as error:
            once = len(indices.unique())
            if is_number(values) or len(values) != once or once == n:
                raise
            raise BotorchTensorDimensionError(f"{error} {IN_ORDER}") from error
        _set_fields(self, indices=indices, y=y, outputs=outputs)
        if self.yvar is not None:
            _set_fields(self, yvar=at_home(_variances(noise, y)))
        if trials is not None:
            self._count_successes(trials)
        for name, least in (("round", 0), ("counts", 1)):
            given = getattr(self, name)
            if given is None:
                continue
            numbers = whole_numbers(given, name)
            if name == "round" and numbers.ndim == 0:
                numbers = numbers.expand(n).clone()
            if numbers.shape != (n,) or bool((numbers < least).any()):
                wanted = f"to be one number of at least {least} per entry ({n})"
                remedy = f"Count from {least}, or leave it out."
                raise ValueError(complaint(name, wanted, f"got {given!r}", remedy))
            _set_fields(self, **{name: numbers})

    def _count_successes(self, trials: Any) -> None:
        r"""Keep numbers of successes as shares of the trials.

        Raises:
            ValueError: If there are more of them than trials, or ``counts`` as well.
        """
        if self.counts is not None or self.yvar is not None:
            came = "got `counts` or `yvar` as well, which are of mean values"
            raise ValueError(complaint("trials", "to come alone", came))
        n = whole_numbers(trials, "trials").to(self.y)
        n = n.expand(len(self)) if n.ndim == 0 else n
        if n.shape != (len(self),) or bool((n < 1).any()):
            wanted = f"to be one number of at least 1 per entry ({len(self)})"
            raise ValueError(complaint("trials", wanted, f"got {trials!r}"))
        successes = self.y.reshape(len(self), -1)
        wrong = (successes < 0) | (successes > n.unsqueeze(-1))
        wrong |= successes != successes.round()
        if bool(wrong.any()):
            place, column = wrong.nonzero()[0].tolist()
            came = f"got {float(successes[place, column]):g} of {int(n[place])}"
            wanted = "to be whole numbers of successes, at most `trials`"
            raise ValueError(complaint("y", wanted, came))
        share = (successes / n.unsqueeze(-1)).view(self.y.shape)
        _set_fields(self, y=share, counts=n.long())

    def __len__(self) -> int:
        return self.indices.numel()

    @property
    def measured(self) -> Tensor:
        r"""The row of each single measurement: a mean of ``k`` comes ``k`` times."""
        if self.counts is None:
            return self.indices
        return self.indices.repeat_interleave(self.counts)

    @property
    def _parts(self) -> dict[str, Any]:
        return {n: part for n, part in vars(self).items() if isinstance(part, Tensor)}

    @property
    def replicates(self) -> Tensor:
        r"""The number of measurements that each entry is the mean of (``n``)."""
        return torch.ones_like(self.indices) if self.counts is None else self.counts

    @property
    def n_measured(self) -> int:
        r"""The number of single measurements: an entry that is a mean counts ``k``."""
        return len(self) if self.counts is None else int(self.counts.sum())

    def times_measured(self, n_rows: int) -> Tensor:
        r"""The number of measurements of each row (``n_rows``), means counted fully."""
        times = torch.zeros(n_rows, dtype=torch.long)
        return times.index_add_(0, self.indices, self.replicates)

    @classmethod
    def empty(cls) -> Observations:
        r"""Observations without any entry."""
        found, none = object.__new__(cls), torch.empty(0, dtype=torch.long)
        _set_fields(found, indices=none, y=none.double(), round=none)
        return found

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        y: str | Sequence[str],
        yvar: str | Sequence[str] | None = None,
        pool: Pool | None = None,
    ) -> Observations:
        r"""Results from a table such as ``Batch.to_frame`` gives, filled in.

        Lines without a result are skipped: they are not measured yet, and a strategy
        asks for them again. A line without a round was not asked for by a strategy.
        Numbers written as text are read as numbers.

        With ``pool`` a line belongs to the row that it describes, by the columns of the
        pool's table (and the named levels of its index) that stand in it. The table may
        then be sorted, extended or cut between two sheets, and lines measured elsewhere
        need no number. Without, the number in ``pool_index`` counts, and a strategy
        refuses lines that describe another row of its pool.

        Example:
            >>> table = pd.DataFrame({"heat": [10.0, 20.0, 30.0]})
            >>> sheet = Batch(Pool(table), [2], 0).to_frame().assign(y=1.5)
            >>> turned = Pool(table[::-1])
            >>> Observations.from_frame(sheet, "y", pool=turned).indices.tolist()
            [0]

        Args:
            frame: One line a measurement, with the columns ``pool_index`` (or, with
                ``pool``, what describes its rows) and, for what was asked for,
                ``round``; sheets of several batches one below the other.
            y: The column of the results, or ``m`` columns for ``m`` outputs. Where the
                goal of a strategy names its outputs, these are the names of columns,
                in any order; else the order is that of the outputs.
            yvar: The column of their known noise variances, ``m`` of them for ``m``
                outputs, in the order of ``y``.
            pool: The pool whose rows were measured.

        Raises:
            ValueError: If a column is missing or there twice, an entry is no number,
                there are fewer columns of variances than of results, some lines have
                a round and others have none, or a line is about no row of ``pool`` or
                about several.
        """
        remedy = "Write `pd.DataFrame(frame)`."
        of_type(frame, pd.DataFrame, "frame", "a DataFrame", remedy)
        names, variances = _labels(y), [] if yvar is None else _labels(yvar)
        if not names or any(names.count(name) > 1 for name in names):
            wanted = "to name the columns of the results, each once"
            raise ValueError(complaint("y", wanted, f"got {y!r}"))
        if yvar is not None and len(variances) != len(names):
            wanted = f"to name one column for each column of `y`, {names}"
            raise ValueError(complaint("yvar", wanted, f"got {yvar!r}"))
        of_type(pool, Pool | None, "pool", "a Pool", "Write `Pool(table)`.")
        by_number = pool is None or POOL_INDEX in frame
        number = [POOL_INDEX] * by_number
        _check_columns(frame, [*number, *names, *variances])
        done = frame[frame[names].notna().all(axis=1)]
        rounds = done.get(ROUND)
        if rounds is not None and rounds.isna().all():
            rounds = None
        if rounds is not None and bool(rounds.isna().any()):
            raise ValueError(
                f"Expected `frame` to have a {ROUND!r} in all lines or in none, but "
                f"line {done.index[rounds.isna()][0]} has none. Tell rows measured "
                "elsewhere apart."
            )
        several = _are_several(y)
        values = _columns(done, names, several)
        noise = None if yvar is None else _columns(done, variances, several)
        labels = None if rounds is None else _column(done, ROUND)
        said = done.drop(columns=[*number, *names, *variances, *({ROUND} & {*done})])
        rows: Any = _column(done, POOL_INDEX) if by_number else None
        if pool is not None:
            numbers = None if rows is None else row_indices(rows, POOL_INDEX).tolist()
            rows = torch.tensor(pool.described.find(said, numbers), dtype=torch.long)
        outputs = tuple(map(str, names)) if several else None
        return cls(rows, values, noise, labels, lines=said, outputs=outputs)

    def check_rows(self, pool: Pool) -> None:
        r"""Complain about lines that describe another row than that of their number.

        Args:
            pool: The pool whose rows were measured.

        Raises:
            ValueError: If there is such a line, or a number that no row has.
        """
        if self.lines is None:
            if bool((self.indices >= len(pool)).any()):
                row_indices(self.indices, "indices", len(pool))  # says which
            return
        lost = (self.indices >= len(pool)).numpy()
        there, rows = self.lines[~lost], self.indices[~lost].tolist()
        n, first = pool.described.contradictions(there, rows)
        if lost.any():
            n, i = n + int(lost.sum()), int(lost.argmax())
            first = (
                f"line {self.lines.index[i]!r} has {int(self.indices[i])}, and the "
                f"pool has the rows 0 to {len(pool) - 1}"
            )
        if n:
            raise ValueError(
                f"Expected each line to describe the row of its {POOL_INDEX!r}, but "
                f"{n} of {len(self)} do not: {first}. The pool's table was sorted or "
                "changed since. Say `Observations.from_frame(..., pool=pool)`, which "
                "finds the rows by what the lines say."
            )

    @ordinary
    def output(self, column: int) -> Observations:
        r"""The observations of one of several outputs.

        Args:
            column: Its column in ``y``.
        """
        y = self.y[:, column].contiguous()
        yvar = None if self.yvar is None else self.yvar[:, column].contiguous()
        return derived(self, y=y, yvar=yvar, outputs=None)

    def of_outputs(self, wanted: Sequence[str]) -> Observations:
        r"""The observations with the outputs of a goal, in its order, by their names.

        Args:
            wanted: The names in the order of the goal. Where these are not known, or
                the outputs have no names, they stay as they are.

        Raises:
            ValueError: If one of them is missing.
        """
        if self.outputs is None:
            return self
        y, yvar = _by_name(self, wanted)
        return replace(self, y=y, yvar=yvar, outputs=None)

    @ordinary
    def select(self, rows: Tensor) -> Observations:
        r"""The entries at ``rows`` (indices or mask), in that order, without lines."""
        parts = {name: part[rows] for name, part in self._parts.items()}
        return derived(self, **parts, lines=None)

    @ordinary
    def at_round(self, round: int) -> Observations:
        r"""The entries, all with the round number ``round``."""
        label = whole_number(round, "round", 0)
        return derived(self, round=torch.full_like(self.indices, label))

    @ordinary
    def append(self, other: Observations) -> Observations:
        r"""The entries followed by those of others.

        Raises:
            ValueError: If one has known variances and the other not.
        """
        if len(self) == 0:
            return other
        if len(other) == 0:
            return self
        if (self.yvar is None) != (other.yvar is None):
            raise ValueError(
                "Expected `yvar` for all observations or for none, but "
                f"{'earlier' if self.yvar is not None else 'new'} ones have it and "
                f"{'new' if self.yvar is not None else 'earlier'} ones do not. Give "
                "every measurement a variance, or none and let the model learn it."
            )
        if self.y.shape[1:] != other.y.shape[1:]:
            wanted = f"with shape n x {tuple(self.y.shape[1:])} as before"
            came = f"got {tuple(other.y.shape)}"
            raise BotorchTensorDimensionError(complaint("y", wanted, came))
        if (self.round is None) != (other.round is None):
            raise ValueError("Expected `round` for all observations or for none.")
        if self.outputs and other.outputs:
            other = other.of_outputs(self.outputs)
        first, second = self._parts, other._parts
        if "counts" in first | second:
            first["counts"], second["counts"] = self.replicates, other.replicates
        joined = {name: torch.cat((first[name], second[name])) for name in first}
        outputs = self.outputs or other.outputs
        return derived(self, **joined, lines=None, outputs=outputs)


def derived(told: Observations, **parts: Any) -> Observations:
    r"""Measurements that are made of others, which were checked.

    A run makes many such records of the same values: they are not checked again.

    Args:
        told: Checked measurements.
        parts: What takes the place of their fields, as the constructor would keep it.
    """
    found = object.__new__(Observations)
    _set_fields(found, **{**vars(told), **parts})
    return found


def _measured(
    y: Any, yvar: Any, outputs: Sequence[str] | None, labels: pd.Index | None = None
) -> tuple[Any, Any, tuple[str, ...] | None]:
    r"""Values and their variances, entry by entry, and the names of their outputs.

    Args:
        y: Values; where they have labels, their variances go by these.
        yvar: Variances.
        outputs: Names that are known already.
        labels: The labels of the points.
    """
    if labels is not None:
        y = in_order(y, labels, "y", others="the points")
    if isinstance(y, pd.Series | pd.DataFrame):
        yvar = in_order(yvar, y.index, "yvar", others="the values")
    if are_named(y):
        outputs = tuple(map(str, y.columns))
        if are_named(yvar):
            yvar = chosen(yvar, outputs, "yvar", "outputs")
    return y, yvar, None if outputs is None else tuple(outputs)


def _by_name(
    told: Observations | History, wanted: Sequence[str]
) -> tuple[Tensor, Tensor | None]:
    r"""Values and variances of the wanted outputs, a vector if only one is wanted."""
    if not wanted or not told.outputs or told.y.ndim == 1:
        return told.y, told.yvar
    places = places_of(told.outputs, wanted, "y")
    chosen = places[0] if len(places) == 1 else places
    yvar = None if told.yvar is None else told.yvar[:, chosen]
    return told.y[:, chosen], yvar


def _labels(given: Any) -> list[Any]:
    return list(given) if _are_several(given) else [given]


def _are_several(names: Any) -> bool:
    return isinstance(names, (list, tuple, pd.Index, np.ndarray))


def _check_columns(frame: pd.DataFrame, names: Sequence[Any]) -> None:
    there = list(frame.columns)
    for name in names:
        if name not in there:
            wanted = f"to have the columns {list(names)}"
            came = f"it has {there}: {name!r} is missing"
            raise ValueError(complaint("frame", wanted, came))
    for name in (*names, ROUND):
        if there.count(name) > 1:
            wanted = f"to have the column {name!r} once"
            came, remedy = (
                f"got it {there.count(name)} times",
                "Rename or drop the others.",
            )
            raise ValueError(complaint("frame", wanted, came, remedy))


def _columns(frame: pd.DataFrame, names: Sequence[Any], several: bool) -> Tensor:
    r"""The columns side by side (``n x k``); ``n`` numbers of a single output."""
    columns = [_column(frame, name) for name in names]
    return torch.stack(columns, dim=-1) if several else columns[0]


def _column(frame: pd.DataFrame, name: Any) -> Tensor:
    r"""The column as numbers; ``None`` counts as nan."""
    column = frame[name]
    if not pd.api.types.is_numeric_dtype(column):
        column = column.astype(object).map(_parsed)
    return _results(column, f"frame[{name!r}]", gaps=True)


def _results(values: Any, name: str, *, gaps: bool = False) -> Tensor:
    r"""The results as numbers; the remedy for a limit is said where one stands."""
    try:
        return real_numbers(values, name, gaps=gaps)
    except ValueError as error:
        limit = _IS_LIMIT.search(str(error))
        if limit is None:
            raise
        raise ValueError(f"{str(error)[: limit.end()]} {LIMIT}") from error


def _parsed(entry: Any) -> Any:
    try:
        return float(entry) if isinstance(entry, str) else entry
    except ValueError:
        return entry


def _values(y: Any, n: int) -> Tensor:
    r"""The measured values (``n`` or ``n x m``), checked column by column."""
    values = _results(y, "y")
    if values.ndim != 2 or values.shape[1] == 0:
        return real_vector(torch.atleast_1d(values), "y", n, "measurement")
    for j, column in enumerate(values.T):
        real_vector(column, f"y[:, {j}]", n, "measurement")
    return values.contiguous()


def _variances(yvar: Any, y: Tensor) -> Tensor:
    r"""Noise variances in the shape of ``y``; one number stands for all."""
    flat = real_numbers(yvar, "yvar", gaps=True)
    if flat.ndim == 0:
        flat = flat.expand(y.shape)
    if torch.isnan(flat).any():
        raise ValueError(
            "Expected `yvar` for all observations or for none, but entry "
            f"{int(torch.isnan(flat).reshape(-1).nonzero()[0])} is nan. Give every "
            "measurement a variance, or none and let the model learn it."
        )
    if flat.shape != y.shape:
        wanted = f"to have the shape of `y`, {tuple(y.shape)}"
        came = f"got {tuple(flat.shape)}"
        raise BotorchTensorDimensionError(complaint("yvar", wanted, came))
    own = non_negative_vector(flat.reshape(-1), "yvar", flat.numel(), "measurement")
    return own.reshape(flat.shape)


@dataclass(frozen=True, eq=False)
class History:
    r"""Measurements at any points, made before a run or beside it.

    A model needs the points and the values alone: they need not be rows of the pool.

    Example:
        >>> history = History([[0.2, 1.5], [0.7, 1.1]], [3.1, 2.4])
        >>> len(history)
        2

    Args:
        X: ``n x d`` points, in the columns of ``Pool.X``; or a table with the columns
            of the pool's table, in any order and with further ones.
        y: ``n`` measured values, or ``n x m`` for ``m`` outputs. A table's columns are
            the names of its outputs.
        yvar: Their noise variances, units of ``y`` squared; ``None`` if unknown.
        outputs: The names of the outputs, where they are known.
        source: The name of the source of the values, where the pool has sources
            (``Pool.at_sources``), or one for each of the ``n`` points; default its
            target, or the column ``source`` of a table. Where sources are numbers,
            such as sizes of a mesh, it may be any number.
        counts: The numbers of trials of which ``y`` are shares; ``None``: one each.
        trials: As of ``Observations``: where it is given, ``y`` are numbers of
            successes, and are kept as shares.

    Raises:
        ValueError: If an entry is not finite, or a variance negative; if there are
            more successes than trials.
        BotorchTensorDimensionError: If the lengths differ.
    """

    X: Any
    y: Any
    yvar: Any = None
    outputs: tuple[str, ...] | None = None
    source: Any = None
    counts: Tensor | None = None
    trials: InitVar[Any] = None

    @ordinary
    def __post_init__(self, trials: Any) -> None:
        labels = self.X.index if isinstance(self.X, pd.DataFrame) else None
        lines = named_lines(self.X)
        X = at_home(real_matrix(self.X, "X")) if lines is None else lines
        y, yvar, outputs = _measured(self.y, self.yvar, self.outputs, labels)
        y = at_home(_values(y, len(X)))
        yvar = None if yvar is None else at_home(_variances(yvar, y))
        counts = self.counts
        if counts is not None or trials is not None:
            if labels is not None:
                trials = in_order(trials, labels, "trials", others="the points")
            rows = torch.arange(len(X))
            told = Observations(rows, y, yvar, counts=counts, trials=trials)
            y, counts = told.y, told.counts
        _set_fields(self, X=X, y=y, yvar=yvar, outputs=outputs, counts=counts)
        source: Any = self.source
        if not (isinstance(source, str) or is_number(source)):
            if labels is not None:
                source = in_order(source, labels, "source", others="the points")
            source = tuple(source.tolist() if hasattr(source, "tolist") else source)
            if len(source) != len(self):
                wanted = f"to be one, or one for each of {len(self)} points"
                raise ValueError(complaint("source", wanted, f"got {len(source)}"))
            _set_fields(self, source=source)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def replicates(self) -> Tensor:
        r"""The number of trials of each entry (``n``)."""
        one = torch.ones(len(self), dtype=torch.long)
        return one if self.counts is None else self.counts

    def on(self, pool: Pool, outputs: Sequence[str] = ()) -> History:
        r"""The history with its points as the model of a pool has them.

        Values without ``yvar`` have the noise that all rows of the pool share, or all
        rows of their source.

        Args:
            pool: The pool, whose names a table goes by.
            outputs: The names of the outputs in the order of the goal, if it has them.

        Raises:
            ValueError: If a column or an output is missing, or an entry is no value of
                its input.
            BotorchTensorDimensionError: If there are other columns.
        """
        y, yvar = _by_name(self, outputs)
        X, names = self.X, None if outputs else self.outputs
        inputs, source = pool.without_sources, self.source
        if not isinstance(X, Tensor):
            if source is None and pool.target is not None and SOURCE in X:
                source = tuple(X[SOURCE])
            X = inputs.points(X, "history.X")
        elif source is None and X.shape[-1] == pool.d > inputs.d:
            source, X = pool.sources_at(X), X[:, :-1]
        # Bare columns without sources are checked with the model.
        if source is not None or X.shape[-1] == inputs.d < pool.d:
            X = pool.at_source(X, source)
        noise = None if self.counts is not None else pool.noise_at(X)
        if yvar is None and noise is not None:
            yvar = noise.expand(y.mT.shape).mT if y.ndim > 1 else noise
        return History(X, y, yvar, names, counts=self.counts)

    def _with_noise(self, stds: Sequence[float] | None) -> History:
        r"""The history with a stated noise, where its own is not known.

        Args:
            stds: The standard deviation of each output; ``None``: not stated.
        """
        if stds is None or None in stds or self.yvar is not None:
            return self
        variances = torch.tensor(stds, dtype=self.y.dtype).square()
        return replace(self, yvar=variances.expand(len(self), -1).reshape(self.y.shape))

    def append(
        self, other: History, noise_std: Sequence[float] | None = None
    ) -> History:
        r"""The measurements followed by those of others.

        Args:
            other: The others.
            noise_std: The stated noise of each output, for the part without ``yvar``
                where only the other has it; ``None``: not stated.

        Raises:
            ValueError: If the noise is known of one part only and not stated, or points
                have names in one part only.
            BotorchTensorDimensionError: If the columns or outputs differ.
        """
        if self.source != other.source or isinstance(self.source, tuple):
            remedy = "Write `history.on(pool)` of both, which numbers the sources."
            sources = f"got {self.source!r} and {other.source!r}"
            wanted = "to be of one source"
            raise ValueError(complaint("history", wanted, sources, remedy))
        if isinstance(self.X, Tensor) != isinstance(other.X, Tensor):
            wanted = "whose points have names in all parts or in none"
            remedy = "Write `history.on(pool)`, which puts them into the pool's order."
            raise ValueError(f"Expected a `history` {wanted}, but got both. {remedy}")
        if self.outputs and other.outputs:
            y, yvar = _by_name(other, self.outputs)
            other = replace(other, y=y, yvar=yvar, outputs=self.outputs)
        is_bare = isinstance(self.X, Tensor)
        columns = self.X.shape[1:] == other.X.shape[1:] or not is_bare
        if not columns or self.y.shape[1:] != other.y.shape[1:]:
            raise BotorchTensorDimensionError(
                "Expected a `history` of the same columns and outputs, but got shapes "
                f"{tuple(other.X.shape)} and {tuple(other.y.shape)} after "
                f"{tuple(self.X.shape)} and {tuple(self.y.shape)}."
            )
        if (self.yvar is None) != (other.yvar is None):
            parts = self._with_noise(noise_std), other._with_noise(noise_std)
            if any(part.yvar is None for part in parts):
                raise ValueError(
                    "Expected `yvar` for all measurements of a `history` or for none, "
                    "but one part has it. Give it everywhere, or nowhere."
                )
            return parts[0].append(parts[1])
        yvar = None if self.yvar is None else torch.cat((self.yvar, other.yvar))
        y, both = torch.cat((self.y, other.y)), (self.X, other.X)
        X = torch.cat(both) if is_bare else pd.concat(both, ignore_index=True)
        names, counts = self.outputs or other.outputs, self.counts
        if counts is not None or other.counts is not None:
            counts = torch.cat((self.replicates, other.replicates))
        return History(X, y, yvar, names, self.source, counts)

    def output(self, c: int) -> History:
        r"""The measurements of one output."""
        if self.y.ndim == 1:
            return self
        yvar = None if self.yvar is None else self.yvar[:, c]
        return History(self.X, self.y[:, c], yvar, counts=self.counts)


@dataclass(frozen=True, eq=False)
class Batch:
    r"""The rows to measure next.

    Args:
        pool: The pool the rows belong to.
        order: The rows in visiting order, replicates included.
        round: The round these measurements belong to.

    Attributes:
        indices: ``k`` rows, sorted, each once.
        counts: ``k``, how often each row is to be measured.
        X: ``k x d``, the inputs of ``indices``, on the device of the pool; those of
            ``order``, one for each value that ``observe`` takes, are
            ``pool.X[batch.order]``.
    """

    pool: Pool = field(repr=False)
    order: Tensor
    round: int
    indices: Tensor = field(init=False)
    counts: Tensor = field(init=False)
    X: Tensor = field(init=False, repr=False)

    @ordinary
    def __post_init__(self) -> None:
        order = row_indices(self.order, "order", len(self.pool))
        indices, counts = torch.unique(order, return_counts=True)
        X = self.pool.X[indices].to(self.pool.device)
        _set_fields(self, order=order, indices=indices, counts=counts, X=X)

    def __len__(self) -> int:
        return self.order.numel()

    def to_frame(self) -> pd.DataFrame:
        r"""A sheet to fill in: one line per measurement, in visiting order.

        Returns:
            The pool's table behind the columns ``pool_index`` and ``round``, with the
            named levels of its index, which name the rows; a row with replicates has
            several lines. See ``Observations.from_frame``.
        """
        frame = with_index(self.pool.to_frame().iloc[self.order.numpy()])
        for name in (ROUND, POOL_INDEX):
            if name in frame.columns:
                raise ValueError(
                    f"Expected the pool's table to leave the column {name!r} to the "
                    "batch. Rename the table's column."
                )
        frame.insert(0, ROUND, self.round)
        frame.insert(0, POOL_INDEX, self.order.numpy())
        return frame

    def observe(self, y: Any, yvar: Any = None, *, means: bool = False) -> Observations:
        r"""The batch with its results, ready for ``tell``.

        Args:
            y: One value per replicate, in the order ``.order``; with ``means=True`` one
                mean per row of ``.indices``. A series or table goes by its labels, if
                these are the lines of ``to_frame()`` or the labels of the rows, and by
                the names of its outputs.
            yvar: The known variances of these values; with ``means=True`` required, the
                variance of each mean.
            means: Whether ``y`` holds means over the replicates of a row.

        Raises:
            BotorchTensorDimensionError: If ``y`` has another length.
            ValueError: If a value is not finite, or means come without variance.
        """
        rows = self.indices if truth_value(means, "means") else self.order
        if means and yvar is None:
            raise ValueError(
                "Expected `yvar`, the variance of each mean, with `means=True`, but "
                "got None. For k replicates of noise variance v it is v / k."
            )
        y = self._in_order(y, rows)
        length = 1 if is_number(y) else len(y)
        if length != rows.numel():
            remedy = (
                f" For one mean per row say `means=True`. {IN_ORDER}"
                if not means and length == self.indices.numel()
                else ""
            )
            raise BotorchTensorDimensionError(
                f"Expected `y` to have {rows.numel()} values, one per "
                f"{'row' if means else 'replicate in the order `.order`'}, but got "
                f"{length}.{remedy}"
            )
        counts = self.counts if means else None
        return Observations(rows, y, yvar, torch.tensor(self.round), counts)

    def _in_order(self, y: Any, rows: Tensor) -> Any:
        r"""Labelled values in the order of the rows: of lines, or of the pool."""
        if not isinstance(y, pd.Series | pd.DataFrame | Mapping):
            return y
        labels, n = self.pool.labels, rows.numel()
        own = labels[rows.cpu().numpy()]
        if not isinstance(y, Mapping):
            lines = pd.RangeIndex(n)
            if y.index.equals(lines) or y.index.equals(own):
                return y
            by_line, by_label = (
                len(y) == n and y.index.is_unique and bool(to.isin(y.index).all())
                for to in (lines, own)
            )
            if by_line and by_label:
                wanted = "in the order of the batch"
                came = "its labels may be those of lines or of rows"
                remedy = "Write `y.to_numpy()` in the order `.order`."
                raise ValueError(complaint("y", wanted, came, remedy))
            if by_line:
                return y.loc[lines]
        are_names = not is_counted(labels)
        return in_order(y, own, "y", are_names=are_names, others="the batch's rows")
