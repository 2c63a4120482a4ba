r"""Checks of arguments, so that every complaint has one form (``complaint``)."""

from __future__ import annotations

import math
import numbers
import operator
import reprlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from types import UnionType
from typing import Any

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse._numerals import written

CONVERT = (
    "Convert it first, where it stands for a number: `float(...)`, or "
    "`pd.to_numeric(...)` for a column."
)
LARGEST_INT = 2**63 - 1
"""The largest number that an int64 holds."""
LARGEST_WHOLE = 2**53
"""The number beyond which a float64 does not tell whole numbers apart."""
LONGEST = 400
"""The number of characters of what was given that a message shows."""


def complaint(name: str, wanted: str, came: str, remedy: str = "") -> str:
    r"""An error message about an argument: what was expected, and what was given.

    Args:
        name: The argument's name.
        wanted: What was expected, beginning with the verb: "to be finite".
        came: What was given, beginning with the verb: "got nan".
        remedy: What to do, a sentence, where it is not obvious.
    """
    if len(came) > LONGEST:  # a whole record, or a table, in place of a word
        came = f"{came[:LONGEST].rstrip()} ..."
    said = f"Expected `{name}` {wanted}, but {came}."
    return f"{said} {remedy}" if remedy else said


def finite_number(value: Any, name: str) -> float:
    r"""The ``value`` as a finite float.

    Raises:
        ValueError: If it is not one finite number, such as text or a boolean.
    """
    if isinstance(value, (str, bytes)):
        remedy = "Write it without quotes, or convert it: `float(...)`."
        came = f"got the text {value!r}"
        raise ValueError(complaint(name, "to be one number", came, remedy))
    try:
        if _is_boolean(value):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        came = f"got {value!r}"
        raise ValueError(complaint(name, "to be one number", came)) from error
    if not math.isfinite(number):
        raise ValueError(complaint(name, "to be finite", f"got {number}"))
    return number


def in_interval(
    value: Any,
    name: str,
    low: float,
    high: float,
    *,
    closed_low: bool = False,
    closed_high: bool = False,
    remedy: str = "",
) -> float:
    r"""The ``value`` as a float between ``low`` and ``high``.

    Raises:
        ValueError: If it is not one number, or outside the interval.
    """
    number = finite_number(value, name)
    above = number >= low if closed_low else number > low
    below = number <= high if closed_high else number < high
    if not (above and below):
        left, right = "[" if closed_low else "(", "]" if closed_high else ")"
        wanted = f"in {left}{written(low)}, {written(high)}{right}"
        raise ValueError(complaint(name, wanted, f"got {written(number)}", remedy))
    return number


def whole_number(value: Any, name: str, at_least: int) -> int:
    r"""The ``value`` as an int of at least ``at_least`` that an int64 holds.

    Raises:
        ValueError: If it is not a whole number, too small or too large.
    """
    try:
        if _is_boolean(value):
            raise TypeError
        number = operator.index(value)
    except TypeError as error:
        came = f"got {value!r}"
        raise ValueError(complaint(name, "to be a whole number", came)) from error
    came = f"got {number}"
    if number < at_least:
        raise ValueError(complaint(name, f"to be at least {at_least}", came))
    if number > LARGEST_INT:
        raise ValueError(complaint(name, f"to be at most {LARGEST_INT}", came))
    return number


def truth_value(value: Any, name: str) -> bool:
    r"""The ``value`` as a bool.

    Raises:
        ValueError: If it is not one; text such as "no" would count as true.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(complaint(name, "to be True or False", f"got {value!r}"))
    return bool(value)


def check_shape(
    is_right: bool, values: Tensor, name: str, wanted: str, remedy: str = ""
) -> None:
    r"""Complain about a shape, unless it is right.

    Args:
        is_right: Whether it is.
        values: What has the shape.
        name: The argument's name.
        wanted: What was expected: "to be a matrix".
        remedy: What to do, where it is not obvious.

    Raises:
        BotorchTensorDimensionError: If it is not right.
    """
    if not is_right:
        came = f"got shape {tuple(values.shape)}"
        raise BotorchTensorDimensionError(complaint(name, wanted, came, remedy))


def usable_device(value: Any, name: str) -> torch.device:
    r"""The ``value`` as a device that torch can compute on, in float64.

    Args:
        value: A device or its name.
        name: The argument's name.

    Raises:
        ValueError: If torch does not know it, it is not there, or it has no float64.
    """
    wanted = "to be a device that computes in float64, such as 'cpu' or 'cuda'"
    remedy = "Leave it out to compute on the CPU."
    try:
        device = torch.device(value)
        there = torch.ones((), dtype=torch.float64, device=device)
        if float(there) == 1.0:  # a device without memory gives nothing back
            return there.device  # with its number, where it has one
    # What torch raises for a device that is not there depends on the device.
    except (AssertionError, RuntimeError, TypeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        came = f"got {value!r}: {reason}"
        raise ValueError(complaint(name, wanted, came, remedy)) from error
    raise ValueError(complaint(name, wanted, f"got {value!r}", remedy))


def one_of(value: Any, name: str, known: Sequence[str]) -> None:
    r"""Complain about a word that is not one of the known ones.

    Raises:
        ValueError: If it is another.
    """
    if value not in known:
        raise ValueError(complaint(name, f"to be one of {known}", f"got {value!r}"))


def of_type(
    value: Any, kind: type | UnionType, name: str, wanted: str, remedy: str = ""
) -> None:
    r"""Complain about a value of another type.

    Args:
        value: What was given.
        kind: The type or types that are taken.
        name: The argument's name.
        wanted: What they are called, with an article: "a Pool".
        remedy: How to write what is wanted.

    Raises:
        ValueError: If it is of another type.
    """
    if not isinstance(value, kind):
        came = f"got {kind_of(value)}"
        raise ValueError(complaint(name, f"to be {wanted}", came, remedy))


def kind_of(value: Any) -> str:
    r"""The kind of a value, for a message: its type, or that it is a class itself.

    A class given in place of an object of it lacks its parentheses, which the name of
    its own type, ``type`` or ``ABCMeta``, would not tell anybody.
    """
    if isinstance(value, type):
        return f"the class {value.__name__} without parentheses"
    return type(value).__name__


def plain_number(value: Any) -> Any:
    r"""One number of NumPy, torch or another library as Python's own; others unchanged.

    Code that computes with it later handles ``int`` and ``float`` only. An ``int``
    beyond int64 becomes a float.
    """
    if isinstance(value, np.generic | Tensor) and value.ndim == 0:
        value = value.item()
    if isinstance(value, Fraction | Decimal) or (
        isinstance(value, int) and abs(value) > LARGEST_INT
    ):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return value


def real_vector(
    values: Any,
    name: str,
    length: int | None = None,
    per: str = "entry",
    *,
    booleans: bool = False,
) -> Tensor:
    r"""The ``values`` as a finite float64 vector.

    Args:
        values: A number sequence, array, tensor or pandas series.
        name: The argument's name.
        length: The length it must have.
        per: What one entry stands for, used in the message.
        booleans: Whether truth values count as 0 and 1.

    Raises:
        BotorchTensorDimensionError: If it is not a vector of that length.
        ValueError: If an entry is not finite; the first such entry is named.
    """
    vector = real_numbers(values, name, booleans=booleans)
    is_right = vector.ndim == 1 and length in (None, vector.numel())
    wanted = f"to be a vector with one number per {per}"
    wanted += f" ({length})" if length is not None else ""
    check_shape(is_right, vector, name, wanted)
    bad = ~torch.isfinite(vector)
    if bad.any():
        first = int(bad.nonzero()[0])
        came = f"entry {first} is {float(vector[first])}"
        remedy = "Leave out what was not measured."
        raise ValueError(complaint(name, "to be finite", came, remedy))
    return vector


def non_negative_vector(
    values: Any, name: str, length: int, per: str, *, booleans: bool = False
) -> Tensor:
    r"""The ``values`` as a finite float64 vector without negative entries."""
    vector = real_vector(values, name, length, per, booleans=booleans)
    if (vector < 0).any():
        first = int((vector < 0).nonzero()[0])
        came = f"entry {first} is {written(vector[first])}"
        raise ValueError(complaint(name, "to be non-negative", came))
    return vector


def whole_numbers(
    values: Any, name: str, remedy: str = "Round it first, or leave it out."
) -> Tensor:
    r"""The ``values`` as an int64 tensor of any shape, a copy on the default device.

    Rows are counted on the CPU, and where a strategy computes on another device on that
    one; torch's default device says which of both it is.

    Args:
        values: A number, or a sequence, array, tensor or pandas series of numbers.
        name: The argument's name.
        remedy: What to do about another number.

    Raises:
        ValueError: If an entry is not a whole number; the first such entry is named.
    """
    read = _only_numbers(values, name, "whole numbers")
    if isinstance(read, np.ndarray):
        whole = read.dtype.kind in "iu" or all(
            issubclass(kind, numbers.Integral) for kind in set(map(type, read.flat))
        )
        try:
            read = np.array(read.tolist(), dtype=np.int64 if whole else float)
        except OverflowError as error:
            raise ValueError(
                f"Expected `{name}` to hold whole numbers: {error}."
            ) from error
        read = torch.from_numpy(read)
    if read.dtype.is_floating_point:
        is_whole = (read == read.round()) & (read.abs() <= LARGEST_WHOLE)
        if not bool(is_whole.all()):  # nan differs from itself
            came = f"got {float(read[~is_whole][0])}"
            raise ValueError(complaint(name, "to hold whole numbers", came, remedy))
    return read.to(torch.get_default_device(), torch.long, copy=True)


def row_indices(values: Any, name: str, n_rows: int | None = None) -> Tensor:
    r"""The ``values`` as an int64 vector of rows of a pool.

    Args:
        values: A number, or a sequence, array, tensor or pandas series of numbers.
        name: The argument's name.
        n_rows: How many rows the pool has; ``None`` where it is not known yet.

    Raises:
        ValueError: If an entry is not a whole number or not a row of the pool.
        BotorchTensorDimensionError: If it is not a vector.
    """
    remedy = "`Pool.nearest(x)` gives the row nearest to a point."
    indices = whole_numbers(values, name, remedy)
    if indices.numel() == 0:
        return torch.empty(0, dtype=torch.long)
    if indices.ndim == 0:
        indices = indices.unsqueeze(0)
    check_shape(indices.ndim == 1, indices, name, "to be a vector of rows")
    outside = indices < 0
    if n_rows is not None:
        outside |= indices >= n_rows
    if outside.any():
        last = "at least 0" if n_rows is None else f"0 to {n_rows - 1}"
        wanted, came = f"to be rows of the pool, {last}", f"got {indices[outside][0]}"
        raise ValueError(complaint(name, wanted, came, remedy))
    return indices


def same_columns(X: Tensor, name: str, d: int, others: str) -> None:
    r"""Complain about points with other columns than the ``others`` have.

    Args:
        X: ``... x p x d'`` points.
        name: The argument's name.
        d: The number of columns wanted.
        others: What has them.

    Raises:
        BotorchTensorDimensionError: If ``d'`` is not ``d``.
    """
    check_shape(X.shape[-1] == d, X, name, f"to have the {d} columns of {others}")


def check_columns(look: Callable[[Tensor], object], X: Tensor, name: str) -> None:
    r"""Complain about points that a model cannot take.

    Args:
        look: A function that evaluates the model at points.
        X: ``N x d`` points; the first is asked about.
        name: The argument's name.

    Raises:
        BotorchTensorDimensionError: If the model fails, but not for another reason.
    """
    try:
        with torch.no_grad():
            look(X[:1])
    except (RuntimeError, BotorchTensorDimensionError) as error:
        is_of_shapes = type(error) in (RuntimeError, BotorchTensorDimensionError)
        if not is_of_shapes or "dtype" in str(error):
            raise
        raise BotorchTensorDimensionError(
            f"Expected `{name}` to have the columns of the model's inputs, but got "
            f"shape {tuple(X.shape)}: {error}"
        ) from error


def check_map(
    found: Tensor,
    X: Tensor,
    name: str,
    what: str,
    *,
    batch: str = "b x q",
    positive: bool = False,
    remedy: str = "",
) -> None:
    r"""Complain if a user's function of points returns a wrong shape or sign.

    Args:
        found: What it returned at ``X``.
        X: ``batch x d`` points.
        name: The argument's name, which is the function's.
        what: What it returns one of per point, in the plural.
        batch: The shape of a batch of points, for the message.
        positive: Whether 0 is refused too.
        remedy: What to do where a number is too small.

    Raises:
        BotorchTensorDimensionError: If there is not one number per point.
        ValueError: If one is negative or, where ``positive``, zero.
    """
    shape = X.shape[:-1]
    wanted = f"to map {batch} x d points to {batch} {what}, here {tuple(shape)}"
    check_shape(found.shape == shape, found, name, wanted)
    if not bool(((found > 0) if positive else (found >= 0)).all()):
        wanted = f"positive {what}" if positive else f"{what} of at least 0"
        came = f"the smallest is {written(found.min())}"
        raise ValueError(complaint(name, f"to return {wanted}", came, remedy))


def is_number(value: Any) -> bool:
    r"""Whether ``value`` is one number and not a collection."""
    return not hasattr(value, "__len__") or getattr(value, "shape", (1,)) == ()


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) in (
        bool,
        torch.bool,
    )


def real_numbers(
    values: Any, name: str, *, booleans: bool = False, gaps: bool = False
) -> Tensor:
    r"""The ``values`` as a float64 tensor of any shape, a copy.

    Values that Python, NumPy or torch would convert in silence are not numbers here:
    text, truth values, dates, the real part of complex numbers. A tensor stays on its
    device.

    Args:
        values: A number, or a (nested) sequence, array, dense tensor or pandas table.
        name: The argument's name.
        booleans: Whether truth values count as 0 and 1, as in a table of inputs.
        gaps: Whether ``None`` counts as nan.

    Raises:
        ValueError: If an entry is no real number; the first such entry is named.
    """
    read = _only_numbers(values, name, "numbers", booleans, gaps)
    if isinstance(read, Tensor):
        return read.to(torch.float64, copy=True)
    try:
        numbers = torch.from_numpy(np.array(read, dtype=float))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"Expected `{name}` to hold numbers: {error}.") from error
    return numbers.to(torch.get_default_device())


def _only_numbers(
    values: Any, name: str, what: str, booleans: bool = False, gaps: bool = False
) -> Tensor | np.ndarray:
    r"""A tensor or array that holds real numbers and nothing that looks like them."""
    wanted = f"Expected `{name}` to hold {what}, but got"
    if isinstance(values, Tensor):
        if values.layout is not torch.strided:
            raise ValueError(f"{wanted} a sparse tensor. Write `{name}.to_dense()`.")
        if values.is_complex() or (values.dtype == torch.bool and not booleans):
            remedy = _conversion(values, [values], name, what, values.ndim)
            raise ValueError(f"{wanted} {values.dtype}. {remedy}")
        return values.detach()
    given = values
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        values = [v.tolist() if isinstance(v, Tensor) else v for v in values]
    if not isinstance(values, np.ndarray):
        # As objects, so that a truth value among numbers stays one.
        values = np.array(values, dtype=object)
    if values.dtype.kind == "O":
        allowed = (numbers.Real, Decimal, *((np.bool_,) if booleans else ()))
        refused = tuple(
            kind
            for kind in set(map(type, values.flat))
            if not issubclass(kind, (*allowed, *((type(None),) if gaps else ())))
            or (issubclass(kind, bool) and not booleans)
        )
        if refused:
            entry = next(v for v in values.flat if type(v) in refused)
            came = f"{type(entry).__name__} {reprlib.repr(entry)}"
            others = [v for v in values.flat if type(v) in refused]
            remedy = _conversion(given, others, name, what, values.ndim)
            raise ValueError(f"{wanted} {came}. {remedy}")
    elif values.dtype.kind not in ("iufb" if booleans else "iuf"):
        others = values.ravel().tolist()
        remedy = _conversion(given, others, name, what, values.ndim)
        raise ValueError(f"{wanted} values of type {values.dtype}. {remedy}")
    return values


def _conversion(given: Any, refused: list[Any], name: str, what: str, ndim: int) -> str:
    r"""Say what makes numbers of values that are refused, by the kind of the first.

    Args:
        given: All values, as they came.
        refused: Those that are refused.
        name: The argument's name.
        what: What is wanted, "numbers" or "whole numbers".
        ndim: The number of dimensions of the values.
    """
    is_bool = bool(refused) and _is_boolean(refused[0])
    if what != "numbers":
        places = f"`np.flatnonzero({name})` gives the places of the true ones."
        return places if is_bool else CONVERT
    words = sorted({word for word in refused if isinstance(word, str)})
    has_digits = any(map(str.isdigit, "".join(words)))
    if words and ndim == 1 and not (is_bool or has_digits):
        codes = ", ".join(f"{word!r}: {k}" for k, word in enumerate(words[:5]))
        codes += ", ..." * (len(words) > 5)
        way = f"Say what each word stands for: `pd.Series({name}).map({{{codes}}})`"
        return way + (", or of `Classes`: `goal.results(y)`." if name == "y" else ".")
    if not is_bool and not words:
        return CONVERT
    way = f"np.array({name}, dtype=float)"
    if isinstance(given, str) and given.lower().endswith(".csv"):
        way = f"pd.read_csv({given!r})"
    if isinstance(given, Tensor):
        way = f"{name}.double()"
    elif hasattr(given, "astype"):  # keeps its labels
        way = f"{name}.astype(float)"
    return f"Write `{way}`{' where they stand for 1 and 0' * is_bool}."


def real_matrix(values: Any, name: str) -> Tensor:
    r"""The ``values`` as a finite float64 matrix with at least one row and column.

    Raises:
        BotorchTensorDimensionError: If it is not a non-empty matrix.
        ValueError: If an entry is not finite; the first such row is named.
    """
    matrix = real_numbers(values, name, booleans=True)
    remedy = ""
    if matrix.ndim == 1:
        column, row = "[[x] for x in X]", "[X]"
        if isinstance(values, Tensor):
            column, row = "X.unsqueeze(-1)", "X.unsqueeze(0)"
        remedy = f"Write `{column}` for one column, `{row}` for one row."
    wanted = "to be a matrix, rows by columns"
    check_shape(matrix.ndim == 2, matrix, name, wanted, remedy)
    if 0 in matrix.shape:
        wanted = "to have at least one row and one column"
        came = f"got shape {tuple(matrix.shape)}"
        raise ValueError(complaint(name, wanted, came))
    # A sum is not finite where an entry is not; it takes one pass and no memory.
    if bool(matrix.sum().isfinite()):
        return matrix
    bad = ~torch.isfinite(matrix).all(dim=-1)
    if bad.any():
        came = f"row {int(bad.nonzero()[0])} is {matrix[bad][0].tolist()}"
        raise ValueError(complaint(name, "to be finite", came))
    return matrix
