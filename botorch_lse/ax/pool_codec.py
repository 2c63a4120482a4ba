r"""Pools, tensors and tables as JSON and back, to the last bit and data type."""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from botorch_lse.checks import whole_number
from botorch_lse.problem import Pool

_SCALARS = (str, int, float, bool, type(None))
_KINDS = "biufMm"
"""NumPy's letters for booleans, numbers, dates and durations."""


def encode_tensor(tensor: Tensor) -> dict[str, Any]:
    r"""A tensor as data type, shape and compressed bytes."""
    values = tensor.detach().cpu().contiguous().numpy()
    return _encode_array(values)


def decode_tensor(stored: dict[str, Any]) -> Tensor:
    r"""The tensor that ``encode_tensor`` wrote."""
    return torch.from_numpy(_decode_array(stored))


def encode_pool(pool: Pool) -> dict[str, Any]:
    r"""A pool with its table and its hash.

    Raises:
        ValueError: If a column of the table holds objects that JSON has no word for.
    """
    optional = ("features", "costs", "noise_var")
    parts = {name: getattr(pool, name) for name in optional}
    return {
        "X": encode_tensor(pool.X),
        **{n: None if t is None else encode_tensor(t) for n, t in parts.items()},
        "names": list(pool.names or ()),
        "table": None if pool.table is None else encode_table(pool.table),
        "hash": pool.hash,
    }


def decode_pool(stored: dict[str, Any]) -> Pool:
    r"""The pool that ``encode_pool`` wrote.

    Raises:
        ValueError: If its hash is not the one stored.
    """
    parts = {
        name: None if stored[name] is None else decode_tensor(stored[name])
        for name in ("X", "features", "costs", "noise_var")
    }
    table = None if stored["table"] is None else decode_table(stored["table"])
    pool = Pool(**parts, names=stored["names"], table=table)
    if pool.hash != stored["hash"]:
        raise ValueError(
            f"Expected the stored `pool` to have the hash {stored['hash']}, but it has "
            f"{pool.hash}: the file is damaged or was edited."
        )
    return pool


def encode_table(table: pd.DataFrame) -> dict[str, Any]:
    r"""A table with its index, column by column."""
    for label in table.columns:
        if not isinstance(label, _SCALARS):
            raise ValueError(_refused(label, f"the label {label!r}"))
    return {
        "columns": list(table.columns),
        "values": [
            _encode_series(table.iloc[:, i], label)
            for i, label in enumerate(table.columns)
        ],
        "index": _encode_index(table.index),
    }


def decode_table(stored: dict[str, Any]) -> pd.DataFrame:
    r"""The table that ``encode_table`` wrote."""
    index = _decode_index(stored["index"])
    columns = [_decode_series(values) for values in stored["values"]]
    for column in columns:
        column.index = index
    table = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=index)
    table.columns = pd.Index(stored["columns"])
    return table


def _encode_index(index: pd.Index) -> dict[str, Any]:
    if isinstance(index, pd.RangeIndex):
        bounds = [index.start, index.stop, index.step]
        return {"range": bounds, "names": list(index.names)}
    levels = [index.get_level_values(i) for i in range(index.nlevels)]
    return {
        "levels": [_encode_series(level.to_series(), "index") for level in levels],
        "names": list(index.names),
    }


def _decode_index(stored: dict[str, Any]) -> pd.Index:
    if "range" in stored:
        start, stop, step = stored["range"]
        return pd.RangeIndex(start, stop, step, name=stored["names"][0])
    levels = [pd.Index(_decode_series(level)) for level in stored["levels"]]
    if len(levels) == 1:
        return levels[0].rename(stored["names"][0])
    return pd.MultiIndex.from_arrays(levels, names=stored["names"])


def _encode_series(values: pd.Series, label: Any) -> dict[str, Any]:
    dtype = values.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in _KINDS:
        return _encode_array(values.to_numpy())
    if isinstance(dtype, pd.CategoricalDtype):
        categories = pd.Series(dtype.categories)
        return {
            "codes": _encode_array(values.cat.codes.to_numpy()),
            "categories": _encode_series(categories, label),
            "ordered": bool(dtype.ordered),
        }
    if isinstance(dtype, pd.DatetimeTZDtype):
        naive = values.dt.tz_convert("UTC").dt.tz_localize(None)
        return {"utc": _encode_array(naive.to_numpy()), "dtype": str(dtype)}
    items = [None if pd.isna(v) else _scalar(v, label) for v in values]
    return {"items": items, "dtype": str(dtype)}


def _decode_series(stored: dict[str, Any]) -> pd.Series:
    # Of a time zone "dateutil/..." pandas opens the rest as a file.
    if "dateutil" in str(stored.get("dtype")):
        raise ValueError(
            "Expected the stored column to have a time zone by name, but got "
            f"{stored['dtype']!r}: the file is damaged or was edited."
        )
    if "data" in stored:
        return pd.Series(_decode_array(stored))
    if "codes" in stored:
        categories = pd.Index(_decode_series(stored["categories"]))
        codes = _decode_array(stored["codes"])
        values = pd.Categorical.from_codes(
            codes, categories=categories, ordered=stored["ordered"]
        )
        return pd.Series(values)
    if "utc" in stored:
        naive = pd.Series(_decode_array(stored["utc"]))
        return naive.dt.tz_localize("UTC").astype(stored["dtype"])
    return pd.Series(stored["items"], dtype=stored["dtype"])


def _scalar(value: Any, label: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, _SCALARS):
        raise ValueError(_refused(label, f"{value!r} ({type(value).__name__})"))
    return value


def _refused(label: Any, what: str) -> str:
    return (
        f"Expected column {label!r} of the pool's `table` to hold numbers, booleans, "
        f"texts, dates or categories, but got {what}, which cannot be stored. Convert "
        'it to text: `table[column] = table[column].astype("string")`.'
    )


def _encode_array(values: np.ndarray) -> dict[str, Any]:
    # Little-endian on every machine.
    values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    packed = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes()))
    return {
        "dtype": values.dtype.str,
        "shape": list(values.shape),
        "data": packed.decode("ascii"),
    }


def _decode_array(stored: dict[str, Any]) -> np.ndarray:
    dtype, shape = _number_type(stored["dtype"]), stored["shape"]
    sizes = [whole_number(size, "shape", 0) for size in shape]
    expected = math.prod(sizes) * dtype.itemsize
    # No more is unpacked than the shape says: a few bytes may unpack to gigabytes.
    unpacking = zlib.decompressobj()
    raw = unpacking.decompress(base64.b64decode(stored["data"]), expected + 1)
    if len(raw) != expected or not unpacking.eof:
        raise ValueError(
            f"Expected the stored array to hold {expected} bytes, as its shape {shape} "
            f"says, but it holds {'more' if len(raw) > expected else len(raw)}: the "
            "file is damaged or was edited."
        )
    return np.frombuffer(raw, dtype=dtype).copy().reshape(sizes)


def _number_type(stored: Any) -> np.dtype:
    try:
        dtype = np.dtype(stored) if isinstance(stored, str) else None
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in _KINDS:
        raise ValueError(
            "Expected the stored array to be of numbers, booleans, dates or durations, "
            f"but its `dtype` is {stored!r}: the file is damaged or was edited."
        )
    return dtype
