r"""Strategies and their parts as plain JSON, and back.

Nothing is pickled, and numbers come back to the last bit and data type. A strategy is a
frozen dataclass whose fields are its constructor's arguments; they are stored one by
one. Functions and classes are stored by name; which names a file may use stands in
``ax/references.py``. Everything else in a file is numbers, texts and the parts that
this module knows by kind: arrays, pools with their tables, GPyTorch kernels with fixed
hyper-parameters, and schedules of widths.

A pool is JSON with compressed bytes. From the first trial on it stands once in the
properties of the experiment, under its hash, and not with each node or metric that uses
it; before that, it is written with the strategy's arguments.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from ax.core import Experiment
from botorch.models.kernels import CategoricalKernel
from botorch.models.model import Model
from gpytorch import kernels
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from torch import Tensor
from torch.nn import Parameter

from botorch_lse._files import write_whole
from botorch_lse._validation import of_type, whole_number
from botorch_lse.ax.compat import properties_of, save_properties
from botorch_lse.ax.recording import held, path_of
from botorch_lse.ax.references import PARTS, find, reference_to
from botorch_lse.confidence import BatchEta, ConstantBeta, UnionBeta
from botorch_lse.data.observations import History
from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.models.kernels import GramKernel, LearntKernel, TanimotoKernel
from botorch_lse.models.source_kernels import Loadings
from botorch_lse.rules.truncated import EpochBeta
from botorch_lse.strategies import RowCosts, Strategy, TruVaRStrategy

_SCALARS = (bool, int, float, str, type(None))
_WIDTHS = (BatchEta, ConstantBeta, EpochBeta, UnionBeta)
_SCHEDULES = {cls.__name__: cls for cls in _WIDTHS}
_POOL_TENSORS = ("X", "features", "costs", "noise_var")
_DTYPES = "biufMm"
"""The letters that NumPy has for booleans, numbers, dates and durations."""
_DIMS = ("active_dims", "ard_num_dims")
_MATRIX = "matrix"
_LARGEST_MATRIX = 1_000
"""The largest number of rows of a kernel's matrix: each snapshot of Ax holds it."""
_KERNEL_OPTIONS: dict[type[Kernel], tuple[str, ...]] = {
    kernels.AdditiveKernel: (),
    kernels.ProductKernel: (),
    kernels.ScaleKernel: _DIMS,
    kernels.CosineKernel: _DIMS,
    kernels.LinearKernel: _DIMS,
    kernels.MaternKernel: ("nu", *_DIMS),
    kernels.PeriodicKernel: _DIMS,
    kernels.PiecewisePolynomialKernel: ("q", *_DIMS),
    kernels.PolynomialKernel: ("power", *_DIMS),
    kernels.RBFKernel: _DIMS,
    kernels.RQKernel: _DIMS,
    CategoricalKernel: _DIMS,
    GramKernel: (_MATRIX,),
    Loadings: ("given", "column"),
    TanimotoKernel: ("active_dims",),
}
"""The kernels that can be stored, with the constructor's options of each."""
_KERNELS = {cls.__name__: cls for cls in _KERNEL_OPTIONS}
_MOST_INPUTS = 1_000_000
"""The largest number of inputs that is believed of a file: a kernel allocates them."""
_PROBED = 8
"""The number of rows on which a decoded kernel is compared with the original.
They are enough to notice a kernel that is built otherwise, and cheap for any pool."""

POOLS = "level_set_pools"
"""The key in an experiment's properties of the pools, by their hash."""
LARGEST_INLINE = 20_000_000
"""The largest pool, in bytes of JSON, that is stored within the experiment.
Snapshots are written after every trial: a larger pool gets a file of its own."""
_FILE = re.compile(r"level_set_pool_[0-9a-f]{16}\.json")
_PATIENCE = 60.0
"""The seconds to wait for another process that writes the same pool."""


def _check_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    strange = [name for name in names if name not in known]
    if strange:
        raise ValueError(
            f"Expected the stored {what} to be one of {sorted(known)}, but got "
            f"{strange[0]!r}. The file was saved by another version, is damaged or was "
            "edited."
        )


# --- strategies -----------------------------------------------------------------------


def encode_strategy(strategy: Any) -> dict[str, Any]:
    r"""A strategy as JSON; its pool as a hash (``encode_pool`` has the rows).

    Raises:
        ValueError: If an argument cannot be stored; the message names it.
    """
    of_type(strategy, Strategy, "strategy", "a Strategy such as `LSEStrategy`")
    arguments = _encode_arguments(strategy, strategy)
    name = reference_to(type(strategy), "strategy")
    return {"class": name, "arguments": arguments, "pool": strategy.pool.hash}


def decode_strategy(stored: dict[str, Any], pool: Pool) -> Strategy:
    r"""The strategy that ``encode_strategy`` wrote.

    Args:
        stored: The stored form.
        pool: The pool with the stored hash.

    Raises:
        ValueError: If its class or a function may not be used or is not where it was,
            an argument is not one of the class, or the pool is another one.
    """
    strategy_class = find(stored["class"], "strategy")
    if not (isinstance(strategy_class, type) and issubclass(strategy_class, Strategy)):
        raise ValueError(
            f"Expected {stored['class']!r} to name a Strategy, but it names "
            f"{strategy_class!r}."
        )
    _check_hash(pool, stored["pool"])
    arguments = _decode_arguments(strategy_class, stored["arguments"], pool)
    return strategy_class(pool=pool, **arguments)


def _encode(value: Any, name: str, strategy: Strategy) -> Any:
    pool = strategy.pool
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Pool):  # items to decide on, beside the pool itself
        return {"kind": "pool", **encode_pool(value)}
    if isinstance(value, Tensor):
        return {"kind": "tensor", **encode_tensor(value)}
    if isinstance(value, Kernel):
        return {"kind": "kernel", **encode_kernel(value, name, _inputs(strategy))}
    if isinstance(value, LearntKernel) and isinstance(value.kernel, Kernel):
        learnt = _encode_learnt(value.kernel, name, _inputs(strategy))
        return {"kind": "learnt_kernel", **learnt}
    if type(value) in _SCHEDULES.values():
        arguments = _encode_arguments(value, strategy)
        return {"kind": "schedule", "class": type(value).__name__, **arguments}
    if isinstance(value, PARTS):
        if getattr(value, "pool", pool).hash != pool.hash:
            raise ValueError(
                f"Expected `{name}` of the strategy to be about the strategy's own "
                f"`pool` of {len(pool)} rows, but it has another one. Make it of that "
                "pool, such as `RowCosts(strategy.pool)`."
            )
        if isinstance(value, History):
            value = value.on(pool)  # as numbers, in the columns of the pool
        part = reference_to(type(value), name)
        arguments = _encode_arguments(value, strategy)
        return {"kind": "part", "class": part, "arguments": arguments}
    if isinstance(value, (list, tuple)):
        return {"kind": "tuple", "items": [_encode(v, name, strategy) for v in value]}
    if isinstance(value, (Model, GPPrior)):
        raise ValueError(
            f"Expected `{name}` of the strategy to be storable, but a fixed "
            f"{type(value).__name__} is not. Give its GPyTorch kernel, or an "
            "importable function (train_X, train_Y, train_Yvar) -> model."
        )
    return {"kind": "function", "name": reference_to(value, name)}


def _inputs(strategy: Strategy) -> Tensor:
    r"""The inputs that kernels see: no numbers of outputs or levels (``N x d``)."""
    if strategy.pool.target is not None:  # but those of sources
        return strategy.pool.X
    X: Tensor = strategy.candidates.X
    has_levels = isinstance(strategy, TruVaRStrategy) and strategy.has_levels
    return X[:, :-1] if has_levels else X


def _decode(value: Any, name: str, pool: Pool) -> Any:
    if isinstance(value, _SCALARS):
        return value
    match value:
        case {"kind": "pool"}:
            return decode_pool(value)
        case {"kind": "tensor"}:
            return decode_tensor(value)
        case {"kind": "kernel"}:
            return decode_kernel(value)
        case {"kind": "learnt_kernel"}:
            return LearntKernel(decode_kernel(value, to_fit=True))
        case {"kind": "schedule", "class": known, **parts} if known in _SCHEDULES:
            schedule = _SCHEDULES[known]
            return schedule(**_decode_arguments(schedule, parts, pool))
        case {"kind": "part", "class": reference, "arguments": stored}:
            return _decode_part(find(reference, name), name, stored, pool)
        case {"kind": "tuple", "items": items}:
            return tuple(_decode(item, name, pool) for item in items)
        case {"kind": "function", "name": reference}:
            return find(reference, name)
    raise ValueError(
        f"Expected the stored `{name}` to be a number, a text, or of the kind pool, "
        "tensor, kernel, learnt_kernel, schedule, part, tuple or function, but got "
        f"{value!r}. The file was saved by a newer version, is damaged or was edited."
    )


def _decode_part(target: Any, name: str, stored: Any, pool: Pool) -> Any:
    if not (isinstance(target, type) and issubclass(target, PARTS)):
        raise ValueError(
            f"Expected the stored `{name}` to name a goal, a rule or a model, but it "
            f"names {target!r}. The file is damaged or was edited."
        )
    arguments = _decode_arguments(target, stored, pool)
    if issubclass(target, RowCosts):
        arguments["pool"] = pool
    return target(**arguments)


def _arguments_of(target: Any) -> list[str]:
    names = [part.name for part in dataclasses.fields(target) if part.init]
    return [name for name in names if name != "pool"]


def _encode_arguments(source: Any, strategy: Strategy) -> dict[str, Any]:
    names = _arguments_of(source)
    return {name: _encode(getattr(source, name), name, strategy) for name in names}


def _decode_arguments(
    target: Any, stored: Mapping[Any, Any], pool: Pool
) -> dict[str, Any]:
    _check_known(
        stored, _arguments_of(target), f"names of arguments of {target.__name__}"
    )
    return {name: _decode(value, name, pool) for name, value in stored.items()}


# --- where they are kept --------------------------------------------------------------


class StoredStrategy:
    r"""The arguments of a strategy as JSON, and its pool.

    Args:
        strategy: The strategy, or the JSON of one.
        pool_folder: Where a large pool's file goes; default the current folder.

    Raises:
        ValueError: If the strategy or its pool cannot be stored, or ``pool_folder`` is
            no folder.
    """

    def __init__(self, strategy: Any, pool_folder: str | Path | None = None) -> None:
        self._folder = _checked_folder(pool_folder)
        self._strategy: Strategy | None = None
        self._pool: Any  # as stored; of a new strategy only once it is written
        self._is_written = isinstance(strategy, Mapping) and "arguments" in strategy
        if self._is_written:
            self.arguments: dict[str, Any] = strategy["arguments"]
            self._pool = strategy["pool"]
        else:
            self.arguments, self._strategy = encode_strategy(strategy), strategy
            # At once, so that what cannot be stored is refused before any trial.
            self._pool = encode_pool(strategy.pool)

    def get(self, experiment: Experiment | None) -> Strategy:
        r"""The strategy; its pool is read on first use after loading.

        Raises:
            ValueError: If the pool is not where it was.
        """
        if self._strategy is None:
            if self._pool is None:
                self._pool = kept_pool(experiment, self.arguments["pool"])
            self._strategy = decode_strategy(self.arguments, read_pool(self._pool))
        return self._strategy

    def keep_pool(self, experiment: Experiment) -> None:
        r"""Put the pool into the experiment's properties, unless it is there."""
        self.get(experiment)
        pools = properties_of(experiment).setdefault(POOLS, {})
        if self.arguments["pool"] not in pools:
            pools[self.arguments["pool"]] = self._written_pool()
            save_properties(experiment)

    def to_json(self, experiment: Experiment | None) -> dict[str, Any]:
        r"""The arguments, and the pool unless the experiment holds it."""
        is_kept = self.arguments["pool"] in _pools_of(experiment)
        pool = None if is_kept else self._written_pool()
        return {"arguments": self.arguments, "pool": pool}

    def _written_pool(self) -> Any:
        if not self._is_written:
            self._pool, self._is_written = write_pool(self._pool, self._folder), True
        return self._pool


def _checked_folder(given: Any) -> Path:
    if given is None:
        return Path.cwd()
    folder = path_of(given, "pool_folder", "a folder", "pools")
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"Expected `pool_folder` to be a folder, but {folder} is a file. Take "
            f"another one, such as `pool_folder={str(folder.parent)!r}`."
        )
    return folder


def write_pool(encoded: dict[str, Any], folder: Path) -> dict[str, Any]:
    r"""The stored form of a pool: all of it, or where its file lies.

    If its JSON is larger than ``LARGEST_INLINE``, it goes into a file
    ``level_set_pool_<hash>.json``, and what is stored is the file's path, its size and
    the SHA-256 digest of its bytes.

    Args:
        encoded: What ``encode_pool`` made of it.
        folder: Where a large pool's file goes; it is made if need be.
    """
    content = json.dumps(encoded).encode()
    if len(content) <= LARGEST_INLINE:
        return {"kind": "pool", **encoded}
    folder.mkdir(parents=True, exist_ok=True)
    path = (folder / f"level_set_pool_{encoded['hash'][:16]}.json").resolve()
    with held(path, "pool_folder", _PATIENCE) as file:
        write_whole(file.path, content)
    digest = hashlib.sha256(content).hexdigest()
    where = {"path": str(path), "bytes": len(content), "sha256": digest}
    return {"kind": "pool_file", **where}


def read_pool(stored: dict[str, Any]) -> Pool:
    r"""The pool that ``write_pool`` stored.

    A file is opened only if it has the name of a pool's file and the size stored, so
    that an experiment from elsewhere cannot point to another file of this machine.

    Raises:
        ValueError: If it is damaged, or its file is missing or was changed.
    """
    if stored["kind"] == "pool":
        return decode_pool(stored)
    path, size, digest = Path(stored["path"]), stored["bytes"], stored["sha256"]
    if not _FILE.fullmatch(path.name):
        raise ValueError(
            "Expected the `pool` in a file named level_set_pool_<hash>.json, but the "
            f"experiment names {path}: it is damaged or was edited."
        )
    content, problem = b"", None
    if not path.is_file():
        problem = "the file is missing"
    elif (found := path.stat().st_size) != size:
        problem = f"it has {found} bytes: it was changed"
    else:
        content = path.read_bytes()
        if (given := hashlib.sha256(content).hexdigest()) != digest:
            problem = f"it has the SHA-256 {given}: it was changed"
    if problem is not None:
        raise ValueError(
            f"Expected the file {path} of the `pool` to have {size} bytes and the "
            f"SHA-256 {digest}, but {problem}. Put the file back: the experiment's "
            "trials hold only its row numbers."
        )
    return decode_pool(json.loads(content))


def kept_pool(experiment: Experiment | None, pool_hash: str) -> dict[str, Any]:
    r"""The pool's entry in an experiment's properties.

    Raises:
        ValueError: If it is not there.
    """
    pools = _pools_of(experiment)
    if pool_hash not in pools:
        raise ValueError(
            "Expected the experiment's properties to hold the `pool` with the hash "
            f"{pool_hash}, but they hold {sorted(pools) or 'none'}. Load the "
            "experiment and its generation strategy together, from the same place."
        )
    return pools[pool_hash]


def _pools_of(experiment: Experiment | None) -> dict[str, Any]:
    return {} if experiment is None else properties_of(experiment).get(POOLS, {})


# --- kernels --------------------------------------------------------------------------


def encode_kernel(kernel: Kernel, name: str, X: Tensor) -> dict[str, Any]:
    r"""A kernel as JSON: the values of its hyper-parameters, but no priors.

    The values are those in float64, with which a strategy computes: a constraint passed
    in float32 and then converted would differ in the ninth digit.

    Args:
        kernel: Without batch shape.
        name: The argument's name.
        X: ``N x d`` rows on which the stored kernel must give the same values.

    Raises:
        ValueError: If it holds a kernel that is not known, or one that is changed so
            that it could not be built again.
    """
    used = deepcopy(kernel).double()
    stored = _encode_kernel(used, name)
    if not _is_alike(used, decode_kernel(stored), X):
        raise ValueError(_refused_kernel(kernel, name))
    return stored


def _encode_learnt(kernel: Kernel, name: str, X: Tensor) -> dict[str, Any]:
    r"""A kernel that is yet to be fitted, as JSON.

    A fit depends on priors and on the constraints through which values are found, which
    are not stored: only a kernel with those of its class is taken.

    Raises:
        ValueError: If it has others, or as ``encode_kernel``.
    """
    used = deepcopy(kernel).double()
    stored = _encode_kernel(used, name, to_fit=True)
    built = decode_kernel(stored, to_fit=True)
    rules = [[(n, repr(c)) for n, c in k.named_constraints()] for k in (used, built)]
    if list(used.named_priors()) or rules[0] != rules[1]:
        raise ValueError(
            f"Expected the kernel in `{name}` of the strategy, which is to be fitted, "
            "to have no priors, and the constraints of its class, to be stored. Give "
            "an importable function without arguments that returns it: "
            "`LearntKernel(my_kernel)`."
        )
    if not _is_alike(used, built, X):
        raise ValueError(_refused_kernel(kernel, name))
    return stored


def _is_alike(kernel: Kernel, other: Kernel, X: Tensor) -> bool:
    probe = X[:_PROBED].double()
    with torch.no_grad():
        found = [k(probe, probe).to_dense() for k in (kernel, other)]
    return torch.equal(*found)


def _encode_kernel(kernel: Kernel, name: str, to_fit: bool = False) -> dict[str, Any]:
    r"""A kernel and those inside it as JSON; if unfitted, by unconstrained values."""
    if type(kernel) not in _KERNEL_OPTIONS or len(kernel.batch_shape):
        raise ValueError(_refused_kernel(kernel, name))
    children: list[Kernel] = []
    if isinstance(kernel, (kernels.AdditiveKernel, kernels.ProductKernel)):
        children = list(kernel.kernels)
    elif isinstance(kernel, kernels.ScaleKernel):
        children = [kernel.base_kernel]
    options: dict[str, Any] = {}
    for option in _KERNEL_OPTIONS[type(kernel)]:
        value = getattr(kernel, option)
        if option == _MATRIX:
            options[option] = _encode_matrix(value, name)
        elif value is not None:
            options[option] = value.tolist() if isinstance(value, Tensor) else value
    return {
        "class": type(kernel).__name__,
        "options": options,
        "values": {
            part: encode_tensor(getattr(kernel, f"raw_{part}" if to_fit else part))
            for part in _own_hyper_parameters(kernel)
        },
        "children": [_encode_kernel(child, name, to_fit) for child in children],
    }


def _encode_matrix(matrix: Tensor, name: str) -> dict[str, Any]:
    if len(matrix) > _LARGEST_MATRIX:
        raise ValueError(
            f"Expected the kernel matrix in `{name}` of the strategy to have at most "
            f"{_LARGEST_MATRIX} rows to be stored, but got {len(matrix)}. Give an "
            "importable function (train_X, train_Y, train_Yvar) -> model that reads "
            "the matrix from a file of yours."
        )
    return encode_tensor(matrix)


def decode_kernel(stored: dict[str, Any], to_fit: bool = False) -> Kernel:
    r"""The kernel that ``encode_kernel`` wrote.

    Hyper-parameters have their values, but no constraint: passing a value through a
    constraint and back would change its last digits.

    Args:
        stored: The stored form.
        to_fit: Whether it is yet to be fitted: it then has the constraints of its
            class, and the stored values are those before them.

    Raises:
        ValueError: If it names a kernel, an option or a hyper-parameter that is not
            known.
    """
    _check_known([stored["class"]], _KERNELS, "kernel")
    kernel_class, options = _KERNELS[stored["class"]], stored["options"]
    _check_known(options, _KERNEL_OPTIONS[kernel_class], "option")
    if _MATRIX in options:
        options = {**options, _MATRIX: decode_tensor(options[_MATRIX])}
    dims = options.get("ard_num_dims")
    if dims is not None and whole_number(dims, "ard_num_dims", 1) > _MOST_INPUTS:
        raise ValueError(
            f"Expected a stored kernel with at most {_MOST_INPUTS} inputs, but got "
            f"`ard_num_dims` = {dims}: the file is damaged or was edited."
        )
    children = [decode_kernel(child, to_fit) for child in stored["children"]]
    kernel = kernel_class(*children, **options)
    _check_known(stored["values"], _own_hyper_parameters(kernel), "hyper-parameter")
    for name, value in stored["values"].items():
        if not to_fit:
            kernel.register_constraint(f"raw_{name}", Positive(transform=None))
        setattr(kernel, f"raw_{name}", Parameter(decode_tensor(value)))
    return kernel


def _own_hyper_parameters(kernel: Kernel) -> list[str]:
    r"""The names of a kernel's hyper-parameters, without those of inner kernels.

    GPyTorch keeps the unconstrained value of ``lengthscale`` as ``raw_lengthscale``.
    """
    raw = dict(kernel.named_parameters(recurse=False))
    return [name.removeprefix("raw_") for name in raw]


def _refused_kernel(kernel: Kernel, name: str) -> str:
    return (
        f"Expected `{name}` of the strategy to be made of "
        f"{', '.join(sorted(_KERNELS))}, without batch shape, which can be stored, but "
        f"got {type(kernel).__name__}. Give an importable function (train_X, train_Y, "
        "train_Yvar) -> model instead."
    )


# --- pools and their tables -----------------------------------------------------------


def encode_pool(pool: Pool) -> dict[str, Any]:
    r"""A pool with its table and its hash.

    Raises:
        ValueError: If a column of the table holds objects that JSON has no word for.
    """
    return {
        **{name: _if_any(encode_tensor, getattr(pool, name)) for name in _POOL_TENSORS},
        "names": list(pool.names or ()),
        "table": _if_any(encode_table, pool.table),
        "hash": pool.hash,
        "weights": _if_any(encode_tensor, pool.weights),
        "total": pool.total,
        "is_sample": pool.is_sample,
        # What few pools have is left out, so that older files stay the same.
        **({} if pool.target is None else {"target": pool.target}),
    }


def decode_pool(stored: dict[str, Any]) -> Pool:
    r"""The pool that ``encode_pool`` wrote.

    Raises:
        ValueError: If its hash is not the one stored.
    """
    parts = {name: _if_any(decode_tensor, stored[name]) for name in _POOL_TENSORS}
    table = _if_any(decode_table, stored["table"])
    pool = Pool(
        **parts,
        names=stored["names"],
        table=table,
        weights=_if_any(decode_tensor, stored["weights"]),
        total=stored["total"],
        is_sample=stored["is_sample"],
        target=stored.get("target"),
    )
    _check_hash(pool, stored["hash"])
    return pool


def _if_any(convert: Callable[[Any], Any], part: Any) -> Any:
    return None if part is None else convert(part)


def _check_hash(pool: Pool, stored: str) -> None:
    if pool.hash != stored:
        raise ValueError(
            f"Expected the stored `pool` to have the hash {stored}, but it has "
            f"{pool.hash}: the file is damaged or was edited."
        )


def encode_table(table: pd.DataFrame) -> dict[str, Any]:
    r"""A table with its index, column by column."""
    for label in table.columns:
        if not isinstance(label, _SCALARS):
            raise ValueError(
                "Expected the labels of the columns of the pool's `table` to be texts "
                f"or numbers, but got {label!r}, which cannot be stored. Write "
                "`table.columns = table.columns.map(str)`."
            )
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
    columns = dict(enumerate(map(_decode_series, stored["values"])))
    table = pd.DataFrame(columns, index=range(len(index)))
    table.index, table.columns = index, pd.Index(stored["columns"])
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
    if isinstance(dtype, np.dtype) and dtype.kind in _DTYPES:
        return encode_array(values.to_numpy())
    if isinstance(dtype, pd.CategoricalDtype):
        categories = pd.Series(dtype.categories)
        return {
            "codes": encode_array(values.cat.codes.to_numpy()),
            "categories": _encode_series(categories, label),
            "ordered": bool(dtype.ordered),
        }
    if isinstance(dtype, pd.DatetimeTZDtype):
        naive = values.dt.tz_convert("UTC").dt.tz_localize(None)
        return {"utc": encode_array(naive.to_numpy()), "dtype": str(dtype)}
    items = [
        None if pd.isna(v) else v.item() if isinstance(v, np.generic) else v
        for v in values
    ]
    for item in items:
        if not isinstance(item, _SCALARS):
            shown = f"{item!r} ({type(item).__name__})"
            raise ValueError(_refused_column(label, shown))
    return {"items": items, "dtype": str(dtype)}


def _decode_series(stored: dict[str, Any]) -> pd.Series:
    # Of a time zone "dateutil/..." pandas opens the rest as a file.
    if "dateutil" in str(stored.get("dtype")):
        raise ValueError(
            "Expected the stored column to have a time zone by name, but got "
            f"{stored['dtype']!r}: the file is damaged or was edited."
        )
    if "data" in stored:
        return pd.Series(decode_array(stored))
    if "codes" in stored:
        categories = pd.Index(_decode_series(stored["categories"]))
        codes = decode_array(stored["codes"])
        values = pd.Categorical.from_codes(
            codes, categories=categories, ordered=stored["ordered"]
        )
        return pd.Series(values)
    if "utc" in stored:
        naive = pd.Series(decode_array(stored["utc"]))
        return naive.dt.tz_localize("UTC").astype(stored["dtype"])
    return pd.Series(stored["items"], dtype=stored["dtype"])


def _refused_column(label: Any, what: str) -> str:
    return (
        f"Expected column {label!r} of the pool's `table` to hold numbers, booleans, "
        f"texts, dates or categories, but got {what}, which cannot be stored. Convert "
        'it to text: `table[column] = table[column].astype("string")`.'
    )


# --- arrays ---------------------------------------------------------------------------


def encode_tensor(tensor: Tensor) -> dict[str, Any]:
    r"""A tensor as data type, shape and compressed bytes."""
    return encode_array(tensor.detach().cpu().numpy())


def decode_tensor(stored: dict[str, Any]) -> Tensor:
    r"""The tensor that ``encode_tensor`` wrote."""
    return torch.from_numpy(decode_array(stored))


def encode_array(values: np.ndarray) -> dict[str, Any]:
    r"""An array as data type, shape and compressed bytes, the same on every machine."""
    values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    packed = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes()))
    return {
        "dtype": values.dtype.str,
        "shape": list(values.shape),
        "data": packed.decode("ascii"),
    }


def decode_array(stored: dict[str, Any]) -> np.ndarray:
    r"""The array that ``encode_array`` wrote.

    No more is unpacked than the shape says: a few bytes may unpack to gigabytes.

    Raises:
        ValueError: If type, shape and bytes do not belong together.
    """
    try:
        dtype = np.dtype(stored["dtype"] if isinstance(stored["dtype"], str) else "O")
    except TypeError:
        dtype = np.dtype("O")
    if dtype.kind not in _DTYPES:
        raise ValueError(
            "Expected the stored array to be of numbers, booleans, dates or durations, "
            f"but its `dtype` is {stored['dtype']!r}: the file is damaged or was "
            "edited."
        )
    shape = stored["shape"]
    sizes = [whole_number(size, "shape", 0) for size in shape]
    expected = math.prod(sizes) * dtype.itemsize
    unpacking = zlib.decompressobj()
    raw = unpacking.decompress(base64.b64decode(stored["data"]), expected + 1)
    if len(raw) != expected or not unpacking.eof:
        raise ValueError(
            f"Expected the stored array to hold {expected} bytes, as its shape {shape} "
            f"says, but it holds {'more' if len(raw) > expected else len(raw)}: the "
            "file is damaged or was edited."
        )
    return np.frombuffer(raw, dtype=dtype).copy().reshape(sizes)
