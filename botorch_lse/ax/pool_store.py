r"""Where strategies and their pools are kept: in an experiment, large pools as files.

A pool is JSON with compressed bytes. From the first trial on it stands once in the
properties of the experiment, under its hash, and not with each node or metric that uses
it; before that, it is written with the strategy's arguments.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ax.core import Experiment

from botorch_lse.ax.codec import (
    decode_pool,
    decode_strategy,
    encode_pool,
    encode_strategy,
)
from botorch_lse.ax.compat import properties_of, save_properties
from botorch_lse.ax.files import held, write_whole
from botorch_lse.problem import Pool
from botorch_lse.strategies import Strategy

POOLS = "level_set_pools"
"""The key in an experiment's properties: pools by their hash."""
LARGEST_INLINE = 20_000_000
"""Bytes of JSON; a larger pool is a file, so that a snapshot stays small."""
_FILE = re.compile(r"level_set_pool_[0-9a-f]{16}\.json")
_PATIENCE = 60.0
"""Seconds to wait for another process that writes the same pool."""


class StoredStrategy:
    r"""A strategy's arguments as JSON, and its pool.

    Args:
        strategy: The strategy, or the JSON of one.
        pool_folder: Where a large pool's file goes; default the current folder.

    Raises:
        ValueError: If the strategy or its pool cannot be stored, or ``pool_folder`` is
            no folder.
    """

    def __init__(
        self,
        strategy: Strategy | Mapping[str, Any],
        pool_folder: str | Path | None = None,
    ) -> None:
        self._pool_folder = _checked_folder(pool_folder)
        self._strategy: Strategy | None = None
        self._inline: dict[str, Any] | None = None
        self._encoded_pool: dict[str, Any] = {}
        if isinstance(strategy, Mapping):
            self.arguments: dict[str, Any] = strategy["arguments"]
            self._inline = strategy["pool"]
        else:
            self.arguments = encode_strategy(strategy)
            self._take_up(strategy)

    def get(self, experiment: Experiment | None) -> Strategy:
        r"""The strategy; the first time after loading its pool is read.

        Raises:
            ValueError: If the pool is not where it was.
        """
        if self._strategy is not None:
            return self._strategy
        if self._inline is not None:
            pool = read_pool(self._inline)
        else:
            pool = kept_pool(experiment, self.arguments["pool"])
        return self._take_up(decode_strategy(self.arguments, pool))

    def keep_pool(self, experiment: Experiment) -> None:
        r"""Put the pool into the experiment's properties, unless it is there."""
        self.get(experiment)
        pools = properties_of(experiment).setdefault(POOLS, {})
        if self.arguments["pool"] not in pools:
            pools[self.arguments["pool"]] = self._written_pool
            save_properties(experiment)

    def to_json(self, experiment: Experiment | None) -> dict[str, Any]:
        r"""The arguments, and the pool unless the experiment holds it."""
        pool = None
        if self.arguments["pool"] not in _pools_of(experiment):
            pool = self._inline if self._strategy is None else self._written_pool
        return {"arguments": self.arguments, "pool": pool}

    @cached_property
    def _written_pool(self) -> dict[str, Any]:
        encoded, self._encoded_pool = self._encoded_pool, {}  # it may be large
        return write_pool(encoded, self._pool_folder)

    def _take_up(self, strategy: Strategy) -> Strategy:
        # At once, so that a pool that cannot be stored is refused before any trial.
        self._encoded_pool = encode_pool(strategy.pool)
        self._strategy = strategy
        return strategy


def _checked_folder(given: Any) -> Path:
    if given is None:
        return Path.cwd()
    if not isinstance(given, (str, os.PathLike)):
        raise ValueError(
            f"Expected `pool_folder` to be the path of a folder, but got {given!r}. "
            'Write `pool_folder="pools"`.'
        )
    folder = Path(given)
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"Expected `pool_folder` to be a folder, but {folder} is a file. Take "
            f"another one, such as `pool_folder={str(folder.parent)!r}`."
        )
    return folder


def write_pool(encoded: dict[str, Any], folder: Path) -> dict[str, Any]:
    r"""What is stored of a pool: all of it, or where its file lies.

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


def kept_pool(experiment: Experiment | None, pool_hash: str) -> Pool:
    r"""A pool from an experiment's properties.

    Raises:
        ValueError: If it is not there, damaged, or its file is missing or changed.
    """
    pools = _pools_of(experiment)
    if pool_hash not in pools:
        raise ValueError(
            "Expected the experiment's properties to hold the `pool` with the hash "
            f"{pool_hash}, but they hold {sorted(pools) or 'none'}. Load the "
            "experiment and its generation strategy together, from the same place."
        )
    return read_pool(pools[pool_hash])


def _pools_of(experiment: Experiment | None) -> dict[str, Any]:
    return {} if experiment is None else properties_of(experiment).get(POOLS, {})
