r"""Pools as Ax search spaces, and Ax parameters as pools.

Either the space is one whole-number parameter, the row's number (``pool_parameters``),
or its parameters are columns of the pool's table, such as that of a product grid of
parameters (``grid_pool``).
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import pandas as pd
from ax import ChoiceParameterConfig, RangeParameterConfig
from ax.api.configs import DerivedParameterConfig
from ax.api.utils.instantiation.from_config import parameter_from_config
from ax.core import FixedParameter, ParameterConstraint, SearchSpace
from ax.core.parameter import DerivedParameter
from ax.exceptions.core import AxError
from botorch.exceptions.warnings import InputDataWarning

from botorch_lse._numerals import written
from botorch_lse._validation import complaint, of_type, whole_number
from botorch_lse.data.encoding import LEVEL_OF
from botorch_lse.data.names import Column, way_to
from botorch_lse.data.pool import SOURCE, Pool

POOL_INDEX = "pool_index"
"""The name of the parameter that is the number of a pool's row, from 0."""
_SAME = 1e-9
"""The share of a column's range within which two numbers are the same.
JSON and log scales change the last digits."""
_SHOWN = 6
"""The number of columns of a row that a message shows."""
MOST_WHOLE = 101
"""The largest number of whole numbers of which a grid takes every one."""
STEPS = 10
"""The approximate number of steps of a real range where nobody says."""
MOST_ROWS = 10**6
"""The largest number of rows of a grid; more are refused, as rarely meant."""

_REMEDY = "Give what `client.configure_experiment(parameters=...)` takes."

Config = RangeParameterConfig | ChoiceParameterConfig
"""A parameter that spans a grid; a derived parameter is a function of such ones."""


def pool_parameters(pool: Pool) -> list[RangeParameterConfig]:
    r"""The parameters of an experiment whose candidates are the rows of a pool.

    One whole number, ``pool_index``. To see the columns themselves in Ax, configure the
    experiment with parameters that are columns of the pool's table (see ``grid_pool``).

    Example:
        >>> from ax.api.client import Client
        >>> client = Client()
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="pool")

    Args:
        pool: The candidates, at least two.

    Raises:
        ValueError: If it is no pool, or has one row, which Ax cannot express as a
            range.
    """
    of_type(pool, Pool, "pool", "a Pool", "Write `Pool(X)`, or `strategy.pool`.")
    if len(pool) < 2:
        raise ValueError(
            "Expected `pool` to have at least 2 rows, because Ax has no range of one "
            f"value, but got {len(pool)}. With one row there is nothing to choose: "
            "`strategy.ask` and `strategy.tell` need no Ax."
        )
    bounds = (0, len(pool) - 1)
    return [RangeParameterConfig(name=POOL_INDEX, bounds=bounds, parameter_type="int")]


def warn_of_equal_rows(pool: Pool) -> None:
    r"""Warn of rows that the columns of a pool do not tell apart.

    Whether Ax needs that is known with its first trial, which is refused if parameters
    are columns. Columns without a name are no parameters.
    """
    if pool.table is None and pool.names == tuple(f"x{i}" for i in range(pool.d)):
        return
    equal = pool.to("cpu").to_frame().duplicated(keep=False).to_numpy().nonzero()[0]
    if len(equal) > 0:
        warnings.warn(
            f"{len(equal)} rows of the pool are equal to another one (row {equal[0]} "
            "is the first), so Ax can tell them apart by their numbers alone: make the "
            "experiment by `configure_experiment(parameters=pool_parameters(pool))`. "
            "For parameters by column leave copies out, "
            "`Pool(frame.drop_duplicates())`.",
            InputDataWarning,
            stacklevel=3,
        )


class PoolSpace:
    r"""The rows of a pool as parameterizations of a search space, and back.

    Args:
        pool: The candidates.
        search_space: With the parameter ``pool_index``, and fixed ones; or each of its
            parameters is a column of the pool's table (or of ``X``, under its names),
            or fixed or derived from others. Other columns may be there.

    Raises:
        ValueError: If a parameter is no column, a row lies outside the space (also by
            a column that the space fixes at another value), two rows have the same
            parameters, another parameter varies beside ``pool_index``, which
            parameters there are depends on the value of one, or a fidelity is not the
            source of the pool with its target.
    """

    def __init__(self, pool: Pool, search_space: SearchSpace) -> None:
        self._space, self._parameters = search_space, dict(search_space.parameters)
        self._pool = pool
        self.n_rows = len(pool)
        self.by_number = POOL_INDEX in search_space.parameters
        parameters = self._parameters.items()
        self._fixed = {
            name: parameter.value
            for name, parameter in parameters
            if isinstance(parameter, FixedParameter)
        }
        self._derived = {
            name: parameter
            for name, parameter in parameters
            if isinstance(parameter, DerivedParameter)
        }
        bound = {*self._fixed, *self._derived}
        free = [name for name in self._parameters if name not in bound]
        _check_flat(search_space)
        _check_fidelities(search_space, pool)
        if self.by_number:
            _check_alone(free)
            return
        frame = pool.to_frame()
        missing = [name for name in free if name not in frame.columns]
        if missing or not free:
            raise ValueError(
                f"Expected each parameter of the search space to be a column of the "
                f"pool {list(frame.columns)}, but {missing or 'none'} "
                f"{'are' if missing else 'is'} not. Name the columns as the "
                "parameters, or build the search space with `pool_parameters(pool)`."
            )
        self.names = list(self._parameters)
        # A fixed parameter that is no column has its value in every row.
        beside = {n: v for n, v in self._fixed.items() if n not in frame.columns}
        self._beside = beside
        frame = _with_derived(frame.assign(**beside), self._derived.values())
        self._table = frame[self.names].reset_index(drop=True)
        columns = [
            [parameter.cast(value) for value in self._table[name].astype(object)]
            for name, parameter in parameters
        ]
        self._records: list[tuple[Any, ...]] = list(zip(*columns, strict=True))
        self._rows: dict[tuple[Any, ...], int] = {}
        for row, record in enumerate(self._records):
            if not search_space.check_membership(self.parameters_of(row)):
                raise ValueError(
                    "Expected the rows of the pool to lie in the search space, but row "
                    f"{row} does not: {_shown(self.parameters_of(row))}. Leave it out "
                    "of the pool (`grid_pool(..., parameter_constraints=...)` does so "
                    "where constraints are the reason), or widen the search space."
                )
            first = self._rows.setdefault(record, row)
            if first != row:
                raise ValueError(
                    f"Expected the pool's rows to differ in the parameters "
                    f"{self.names}, but rows {first} and {row} are both {record}. Add "
                    "the column in which they differ to the search space, or build it "
                    "with `pool_parameters(pool)`."
                )

    def is_of(self, search_space: SearchSpace) -> bool:
        r"""Whether this was made for the space, which is unchanged since."""
        same = self._space is search_space
        return same and self._parameters == search_space.parameters

    def parameters_of(self, row: int) -> dict[str, Any]:
        r"""The parameterization of a row, fixed parameters included."""
        if self.by_number:
            return {POOL_INDEX: int(row), **self._fixed}
        return dict(zip(self.names, self._records[row], strict=True))

    def row_of(self, parameters: Mapping[str, Any], where: str) -> int:
        r"""The row of a parameterization.

        Args:
            parameters: Of an arm. Numbers that differ by rounding errors are the same.
            where: Which trial it comes from, for the message.

        Raises:
            ValueError: If it names no row of the pool; the message has the nearest one.
        """
        if self.by_number:
            return _row_of_number(parameters, self.n_rows, where)
        parameters = {**self._fixed, **parameters}
        missing = [name for name in self.names if name not in parameters]
        if missing:
            raise ValueError(
                f"Expected {where} to have the parameters {self.names}, but "
                f"{missing} are missing."
            )
        values = tuple(parameters[name] for name in self.names)
        nearest, distance = self._found(values)
        if distance <= _SAME:
            return nearest
        asked = dict(zip(self.names, values, strict=True))
        raise ValueError(
            f"Expected the parameters of {where} to be a row of the pool, but got "
            f"{_shown(asked)}; the nearest is row {nearest}: "
            f"{_shown(self.parameters_of(nearest))}."
        )

    def _found(self, values: tuple[Any, ...]) -> tuple[int, float]:
        r"""The row with the given values, or the nearest one and its distance."""
        row = self._rows.get(values)
        return self._nearest(values) if row is None else (row, 0.0)

    def is_off_the_pool(self, parameters: Mapping[str, Any]) -> bool:
        r"""Whether a parameterization has all columns but matches no row."""
        parameters = {**self._fixed, **parameters}
        if self.by_number or any(name not in parameters for name in self.names):
            return False
        values = tuple(parameters[name] for name in self.names)
        return self._found(values)[1] > _SAME

    def point_of(self, parameters: Mapping[str, Any], where: str) -> tuple[float, ...]:
        r"""The model's inputs of a parameterization that is no row of the pool.

        Args:
            parameters: Of an arm.
            where: Which trial it comes from, for the message.

        Raises:
            ValueError: If the pool does not say what the model takes of it: a column of
                ``pool.X`` comes from no parameter, a word is in no row, or a fixed
                parameter that is no column has another value.
        """
        parameters = {**self._fixed, **parameters}
        for name, value in self._beside.items():
            if parameters[name] != value:
                raise ValueError(
                    f"Expected {name!r} of {where} to be {value!r}, where the search "
                    "space fixes it, because the pool has no such column, but got "
                    f"{parameters[name]!r}."
                )
        found = list[float]()
        for name, read in self._readers.items():
            if isinstance(read, str):
                raise ValueError(
                    f"Expected the parameters of {where} to be a row of the pool, "
                    f"because what the model takes as {name!r} of other points is not "
                    f"known: {read}."
                )
            source, way = read
            value = way(parameters[source])
            if math.isnan(value):
                raise ValueError(
                    f"Expected {source!r} of {where} to be a value that is in the "
                    f"pool, because it is not a number, but got "
                    f"{parameters[source]!r}."
                )
            found.append(value)
        return tuple(found)

    @cached_property
    def _readers(self) -> dict[str, Any]:
        r"""The parameter of each column of ``X``, or why the column has none."""
        names = self._pool.names or tuple(f"x{i}" for i in range(self._pool.d))
        columns = zip(names, self._pool.X.T.numpy(), strict=True)
        return {name: self._reader(name, column) for name, column in columns}

    def _reader(self, name: str, column: np.ndarray) -> Any:
        r"""The parameter that a column of ``X`` comes from, and the way to it.

        Words count only under their own name.
        """
        for source in self.names:
            values = self._table[source]
            if name.startswith(f"{source}{LEVEL_OF}"):  # of words or numbers
                codes = dict(zip(values.astype(object), column.tolist(), strict=True))
                return source, partial(_code_of, codes)
            own = Column.of(values)
            if own.span is None and name != source:
                continue
            if (way := way_to(own, column)) is not None:
                return source, way
        return "it is no column of the search space, nor the logarithm of one"

    def _nearest(self, values: tuple[Any, ...]) -> tuple[int, float]:
        r"""The nearest row, and its largest difference as a share of a column's range.

        Columns without an order count 0 where they are equal and 1 elsewhere.
        """
        apart = np.zeros((self.n_rows, len(values)))
        for j, value in enumerate(values):
            column = self._table.iloc[:, j]
            is_number = pd.api.types.is_numeric_dtype(column)
            is_bool = pd.api.types.is_bool_dtype(column)
            if is_number and not is_bool and isinstance(value, (int, float)):
                numbers = column.to_numpy(dtype=float)
                span = float(np.ptp(numbers)) or 1.0
                apart[:, j] = np.abs(numbers - float(value)) / span
            else:
                apart[:, j] = [record[j] != value for record in self._records]
        row = int(np.square(apart).sum(axis=1).argmin())
        return row, float(apart[row].max())


def _check_flat(search_space: SearchSpace) -> None:
    r"""Refuse a space where a parameter's value decides which others exist."""
    names = [p.name for p in search_space.parameters.values() if p.is_hierarchical]
    if names:
        raise ValueError(_hierarchical(names[0]))


def _check_fidelities(search_space: SearchSpace, pool: Pool) -> None:
    r"""Refuse a fidelity that is not the source of the pool, or has another target."""
    for name, parameter in search_space.parameters.items():
        if not parameter.is_fidelity:
            continue
        target = parameter.target_value
        wanted = f"{SOURCE!r} to be the only fidelity, and the pool to have it"
        remedy = (
            f"Call the parameter {SOURCE!r}, and write `pool.at_sources((0.25, 1.0), "
            f"costs=..., target={target!r})`, without a column for it in `pool`."
        )
        if name != SOURCE or not pool.is_fidelity:
            came = f"got {name!r}"
            raise ValueError(complaint("search_space", wanted, came, remedy))
        assert pool.target is not None  # it has sources
        decided = float(pool.levels[pool.target])
        if target != decided:
            wanted = f"to be {decided:g}, the target of the pool"
            remedy = f"Write `pool.at_sources(..., target={target!r})`."
            raise ValueError(complaint("target_value", wanted, f"got {target}", remedy))


def _hierarchical(name: str) -> str:
    return (
        f"Expected parameters that every row has, but {name!r} has "
        "`dependent_parameters`. Leave these out, so that each row has a value of each "
        "parameter, and let the evaluation ignore what does not apply; or write the "
        "rows as a table, `Pool(X, table=table)`, with `pool_parameters(pool)`."
    )


def _with_derived(
    table: pd.DataFrame, derived: Iterable[DerivedParameter]
) -> pd.DataFrame:
    missing = [p for p in derived if p.name not in table.columns]
    if not missing:
        return table
    records: list[Any] = table.astype(object).to_dict("records")
    columns: dict[str, Any] = {p.name: [p.compute(r) for r in records] for p in missing}
    return table.assign(**columns)


def _code_of(codes: Mapping[Any, float], value: Any) -> float:
    return codes.get(value, math.nan)


def _check_alone(free: Sequence[str]) -> None:
    r"""Refuse parameters beside the row's number, which fixes all that may vary."""
    others = [name for name in free if name != POOL_INDEX]
    if others:
        raise ValueError(
            f"Expected `{POOL_INDEX}` to be the only parameter that varies, because it "
            f"says which row is meant, but the search space has {others} besides. "
            "Leave them out, or leave "
            f"`{POOL_INDEX}` out and give the pool's columns as parameters."
        )


def _row_of_number(parameters: Mapping[str, Any], n_rows: int, where: str) -> int:
    if POOL_INDEX not in parameters:
        raise ValueError(
            f"Expected {where} to have the parameter `{POOL_INDEX}`, but it has "
            f"{sorted(parameters)}. Build the search space with "
            "`pool_parameters(pool)`."
        )
    value = parameters[POOL_INDEX]
    if isinstance(value, bool) or not float(value).is_integer():
        raise ValueError(
            f"Expected `{POOL_INDEX}` of {where} to be a whole number, but got "
            f"{value!r}."
        )
    if not 0 <= (row := int(value)) < n_rows:
        raise ValueError(
            f"Expected `{POOL_INDEX}` of {where} to be a row of the pool, 0 to "
            f"{n_rows - 1}, but got {row}; the nearest is "
            f"{min(max(row, 0), n_rows - 1)}. `Pool.nearest(x)` gives the row nearest "
            "to a point."
        )
    return row


def _shown(values: Mapping[str, Any]) -> str:
    names = list(values)
    words = ", ".join(f"{name}={values[name]!r}" for name in names[:_SHOWN])
    return words + (", ..." if len(names) > _SHOWN else "")


# --- a grid of parameters as a pool ---------------------------------------------------


def grid_pool(
    parameters: Sequence[Config | DerivedParameterConfig],
    points: int | Mapping[str, int] | None = None,
    parameter_constraints: Sequence[str] | None = (),
) -> Pool:
    r"""The pool of all combinations of the parameters' values.

    A choice takes its values; a range with a step takes its steps. Where ``points`` is
    not given, a range of whole numbers takes all of them (of more than a hundred about
    twenty round ones), and a real one its bounds and about ten round numbers between
    them, on a log scale 1, 2 and 5 times powers of ten. With ``points`` it takes so
    many values from bound to bound, evenly spaced on its scale. The model sees the
    logarithm (base 10) of a range on a log scale, ordered choices that are words as 0,
    1, ..., and other words as one column each. It does not see derived parameters,
    which add nothing to those they are computed from. The table has the values of all
    parameters, so that the same ``parameters`` make the experiment. Combinations that
    break a constraint are left out.

    Example:
        >>> from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
        >>> parameters = [
        ...     RangeParameterConfig(
        ...         name="dose", bounds=(1, 100), parameter_type="float", scaling="log"
        ...     ),
        ...     ChoiceParameterConfig(
        ...         name="mix", values=["a", "b"], parameter_type="str"
        ...     ),
        ... ]
        >>> pool = grid_pool(parameters, points=3)
        >>> pool.to_frame()["dose"].tolist()
        [1.0, 1.0, 10.0, 10.0, 100.0, 100.0]
        >>> pool.names
        ('dose', 'mix=a', 'mix=b')

    Args:
        parameters: As for ``client.configure_experiment``.
        points: Values of each range without a step, at least 2; or by name, where
            ranges that are not named take round numbers; default round numbers.
        parameter_constraints: As for ``client.configure_experiment``, such as
            ``["acid + base <= 1"]``, or ``None``.

    Raises:
        ValueError: If ``parameters`` is no list of ranges, choices and derived
            parameters, a name is there twice, a range has no such scale or steps, a
            number of points is out of range or names no parameter, a constraint is
            none, or the grid has no row or more than ``MOST_ROWS``.
    """
    given = _checked(parameters)
    spanning = [p for p in given if not isinstance(p, DerivedParameterConfig)]
    derived = [_derived(p, given) for p in given if p not in spanning]
    names = [p.name for p in spanning]
    unknown = (
        [n for n in points if n not in names] if isinstance(points, Mapping) else []
    )
    if unknown:
        raise ValueError(
            f"Expected `points` by the names of parameters, {names}, but got {unknown}."
        )
    levels = {p.name: _levels(p, points) for p in spanning}
    _check_rows(math.prod(len(v) for v in levels.values()) if levels else 0)
    columns = [pd.DataFrame({name: values}) for name, values in levels.items()]
    table = reduce(lambda left, right: left.merge(right, how="cross"), columns)
    constraints = () if parameter_constraints is None else parameter_constraints
    inside = _inside(table, constraints)
    table = _with_derived(table[inside].reset_index(drop=True), derived)
    return Pool(
        pd.DataFrame({p.name: _model_column(p, table[p.name]) for p in spanning}),
        table=table,
    )


def _derived(config: Any, given: Sequence[Any]) -> DerivedParameter:
    r"""The values of a parameter that is a function of others.

    Raises:
        ValueError: If it is not such a function, or one of the others is not there.
    """
    wanted = (
        f"Expected the derived parameter {config.name!r} to be a function of others"
    )
    try:
        parameter = parameter_from_config(config)
    except (ValueError, AxError) as error:
        raise ValueError(
            f"{wanted}, but got {config.expression_str!r}: {error}"
        ) from error
    assert isinstance(parameter, DerivedParameter)  # its config is of that kind
    known = [p.name for p in given if not isinstance(p, DerivedParameterConfig)]
    strange = [n for n in parameter.parameter_names_to_weights if n not in known]
    if strange:
        raise ValueError(f"{wanted}, {known}, but it needs {strange}.")
    return parameter


def _inside(table: pd.DataFrame, constraints: Any) -> np.ndarray:
    r"""The rows that satisfy all constraints, as Ax counts it.

    Raises:
        ValueError: If one is no constraint on the table's columns, or no row is left.
    """
    wanted = 'Expected `parameter_constraints` such as `["acid + base <= 1"]`'
    if isinstance(constraints, str) or not isinstance(constraints, Iterable):
        raise ValueError(f"{wanted}, but got {constraints!r}. Write a list.")
    inside = np.ones(len(table), dtype=bool)
    numbers = [n for n in table if pd.api.types.is_numeric_dtype(table[n])]
    for given in constraints:
        try:
            constraint = ParameterConstraint(inequality=given)
        except (AxError, TypeError) as error:
            why = str(error).rstrip(".")
            raise ValueError(f"{wanted}, but got {given!r}: {why}.") from error
        strange = [n for n in constraint.constraint_dict if n not in numbers]
        if strange:
            raise ValueError(
                f"{wanted} about the numbers, {numbers}, but {given!r} is about "
                f"{strange}."
            )
        columns = table[list(constraint.constraint_dict)].astype(float)
        records: list[Any] = columns.to_dict("records")
        inside &= [constraint.check(record) for record in records]
    if not inside.any():
        raise ValueError(
            f"Expected `parameter_constraints` that some of the {len(table):,} "
            f"combinations fulfil, but none fulfils all of {list(constraints)}. Take "
            "more `points`, or correct the constraints or the bounds."
        )
    return inside


def _checked(parameters: Any) -> list[Any]:
    wanted = "Expected `parameters` to be a list of ranges and choices, but"
    if isinstance(parameters, Config | DerivedParameterConfig):
        raise ValueError(
            f"{wanted} got {type(parameters).__name__}. Write `grid_pool([...])`."
        )
    if isinstance(parameters, str) or not isinstance(parameters, Iterable):
        raise ValueError(f"{wanted} got {parameters!r}. {_REMEDY}")
    found = list(parameters)
    for i, parameter in enumerate(found):
        if not isinstance(parameter, Config | DerivedParameterConfig):
            raise ValueError(f"{wanted} entry {i} is {parameter!r}. {_REMEDY}")
        if isinstance(parameter, RangeParameterConfig):
            _check_range(parameter)
        if getattr(parameter, "dependent_parameters", None):
            raise ValueError(_hierarchical(parameter.name))
    repeated = [n for n, k in Counter(p.name for p in found).items() if k > 1]
    if repeated:
        raise ValueError(
            f"Expected the names of `parameters` to differ, but got {repeated} more "
            "than once. Rename one of them."
        )
    return found


def _check_range(parameter: RangeParameterConfig) -> None:
    low, high = parameter.bounds
    is_log, step = parameter.scaling == "log", parameter.step_size
    if not (math.isfinite(low) and math.isfinite(high) and low < high) or (
        is_log and low <= 0
    ):
        remedy = "."
        if is_log:
            remedy = " on a log scale. Raise the lower one."
        if low == high:  # Ax has no such range
            remedy = (
                f". Write `ChoiceParameterConfig(name={parameter.name!r}, "
                f"values=[{low!r}], parameter_type={parameter.parameter_type!r})` for "
                "one value."
            )
        raise ValueError(
            f"Expected the bounds of the range {parameter.name!r} to be finite, the "
            "lower first, and positive on a log scale, but got "
            f"{parameter.bounds}{remedy}"
        )
    if step is not None and not step > 0:
        raise ValueError(
            f"Expected `step_size` of the range {parameter.name!r} to be positive, but "
            f"got {written(step)}. Leave it out for `points` values."
        )


def _check_rows(n_rows: int) -> None:
    if not 1 <= n_rows <= MOST_ROWS:
        raise ValueError(
            f"Expected `parameters` to make between 1 and {MOST_ROWS:,} rows, but they "
            f"make {n_rows:,}. Take fewer `points`, or larger steps; or, of many "
            "reals, points that fill their box evenly: `Pool.from_box([lower, upper], "
            "1024, names=names)`."
        )


def _levels(parameter: Config, points: int | Mapping[str, int] | None) -> Any:
    if isinstance(parameter, ChoiceParameterConfig):
        return list(dict.fromkeys(parameter.values))  # each once, as Ax takes them
    low, high = parameter.bounds
    if parameter.step_size is not None:
        # 1e-9: a quotient such as 0.3 / 0.1 may come out just below the whole number.
        n = math.floor((high - low) / parameter.step_size + 1e-9) + 1
        _check_rows(n)
        values = low + parameter.step_size * np.arange(n)
    elif (given := _points(parameter.name, points)) is None:
        values = _round_values(parameter)
    else:
        n = given
        space = np.geomspace if parameter.scaling == "log" else np.linspace
        values = space(low, high, n)
        values[[0, -1]] = low, high  # rounding may put the ends outside the bounds
    if parameter.parameter_type == "int":
        return np.unique(np.round(values)).astype(int)
    return values.astype(float)


def _round_values(parameter: RangeParameterConfig) -> np.ndarray:
    r"""All whole numbers of a range, or its bounds and round numbers between."""
    low, high = parameter.bounds
    if parameter.parameter_type == "int" and high - low < MOST_WHOLE:
        return np.arange(low, high + 1)
    if parameter.scaling == "log":
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [float(f"{m}e{k}") for k in powers for m in (1, 2, 5)]
    else:
        n = STEPS if parameter.parameter_type == "float" else 2 * STEPS
        raw = (high - low) / n
        unit = math.floor(math.log10(raw))
        # The digits of a step as a text, so that its multiples are the nearest floats.
        steps = [float(f"{m}e{unit + k}") for k in (0, 1) for m in (1, 2, 2.5, 5)]
        step = min(steps, key=lambda s: abs(math.log(s / raw)))
        first, last = math.ceil(low / step), math.floor(high / step)
        places = max(0, 2 - unit)
        found = [round(k * step, places) for k in range(first, last + 1)]
    apart = _SAME * (high - low)
    inside = [v for v in found if low + apart < v < high - apart]
    return np.array([low, *inside, high], dtype=float)


def _points(name: str, points: int | Mapping[str, int] | None) -> int | None:
    if isinstance(points, Mapping):
        points = points.get(name)
    if points is None:
        return None
    n = whole_number(points, "points", 2)
    if n > MOST_ROWS:
        raise ValueError(
            f"Expected `points` to be at most {MOST_ROWS:,}, but got {n:,}. Take fewer."
        )
    return n


def _model_column(parameter: Config, column: pd.Series) -> pd.Series:
    if isinstance(parameter, RangeParameterConfig):
        return np.log10(column) if parameter.scaling == "log" else column.astype(float)
    if parameter.parameter_type in ("int", "float", "bool"):
        if parameter.is_ordered is not False:
            return column
        return column.astype(str).astype("category")  # whose order says nothing
    if parameter.is_ordered:
        order = {value: i for i, value in enumerate(parameter.values)}
        return column.map(order).astype(float)
    return column
