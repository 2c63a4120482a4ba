r"""Pools in an experiment's properties: each once, large ones as a file."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from ax.core.experiment import Experiment

from botorch_lse.ax.compat import properties_of, save_properties
from botorch_lse.ax.files import held, write_whole
from botorch_lse.ax.pool_codec import decode_pool, encode_pool
from botorch_lse.problem import Pool

_PATIENCE = 60.0
"""Seconds to wait for another process that writes the same pool."""
POOLS = "level_set_pools"
"""The key in an experiment's properties: pools by their hash."""
_FILE = re.compile(r"level_set_pool_[0-9a-f]{16}\.json")
LARGEST_INLINE = 20_000_000
"""Bytes of JSON; a larger pool is a file, so that a snapshot stays small."""


class PoolStore:
    r"""How a pool is written.

    A pool is JSON with compressed bytes, equal to the last bit when read. If that is
    larger than ``LARGEST_INLINE``, it is a file ``level_set_pool_<hash>.json``, and
    what is stored is its path, its size and the SHA-256 digest of its bytes.

    Args:
        pool: The pool.
        folder: Where a large pool's file goes; default the current folder.

    Raises:
        ValueError: If a column of the pool's table cannot be stored, or ``folder`` is
            no folder.
    """

    def __init__(self, pool: Pool, folder: str | Path | None = None) -> None:
        self.hash = pool.hash
        self.folder = Path.cwd() if folder is None else _folder(folder)
        self._packed: dict[str, Any] | None = encode_pool(pool)
        self._written: dict[str, Any] | None = None

    def write(self) -> dict[str, Any]:
        r"""The pool as JSON, or where its file lies; the file is written once."""
        if self._written is None:
            text = json.dumps(self._packed)
            if len(text) <= LARGEST_INLINE:
                self._written = {"kind": "pool", **(self._packed or {})}
            else:
                self._written = self._to_file(text.encode())
            self._packed = None
        return self._written

    def keep(self, experiment: Experiment) -> None:
        r"""Put the pool into an experiment's properties, unless it is there."""
        pools = properties_of(experiment).setdefault(POOLS, {})
        if self.hash not in pools:
            pools[self.hash] = self.write()
            save_properties(experiment)

    def _to_file(self, content: bytes) -> dict[str, Any]:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = (self.folder / f"level_set_pool_{self.hash[:16]}.json").resolve()
        with held(path, "pool_folder", _PATIENCE) as file:
            write_whole(file.path, content)
        digest = hashlib.sha256(content).hexdigest()
        return {
            "kind": "pool_file",
            "path": str(path),
            "bytes": len(content),
            "sha256": digest,
        }


def _folder(given: Any) -> Path:
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


def read_pool(stored: dict[str, Any]) -> Pool:
    r"""The pool that ``PoolStore.write`` wrote.

    A file is opened only if it has the name of a pool's file and the size stored, so
    that an experiment from elsewhere cannot point to another file of this machine.

    Raises:
        ValueError: If it is damaged, or its file is missing or was changed.
    """
    parts = {key: value for key, value in stored.items() if key != "kind"}
    if stored["kind"] == "pool":
        return decode_pool(parts)
    path, digest = Path(parts["path"]), parts["sha256"]
    remedy = "Put the file back: the experiment's trials hold only its row numbers."
    if not _FILE.fullmatch(path.name):
        raise ValueError(
            "Expected the `pool` in a file named level_set_pool_<hash>.json, but the "
            f"experiment names {path}: it is damaged or was edited."
        )
    if not path.is_file():
        raise ValueError(
            f"Expected the `pool` in the file {path} (SHA-256 {digest}), but the file "
            f"is missing. {remedy}"
        )
    size = path.stat().st_size
    if size != parts["bytes"]:
        raise ValueError(
            f"Expected the file {path} of the `pool` to have {parts['bytes']} bytes "
            f"(SHA-256 {digest}), but it has {size}: it was changed. {remedy}"
        )
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise ValueError(
            f"Expected the file {path} of the `pool` to have the SHA-256 {digest}, but "
            f"it has {found}: it was changed. {remedy}"
        )
    return decode_pool(json.loads(content))


def holds_pool(experiment: Experiment | None, pool_hash: str) -> bool:
    r"""Whether an experiment's properties hold a pool."""
    if experiment is None:
        return False
    return pool_hash in properties_of(experiment).get(POOLS, {})


def kept_pool(experiment: Experiment | None, pool_hash: str) -> Pool:
    r"""A pool from an experiment's properties.

    Raises:
        ValueError: If it is not there, damaged, or its file is missing or changed.
    """
    pools = {} if experiment is None else properties_of(experiment).get(POOLS, {})
    if pool_hash not in pools:
        raise ValueError(
            "Expected the experiment's properties to hold the `pool` with the hash "
            f"{pool_hash}, but they hold {sorted(pools) or 'none'}. Load the "
            "experiment and its generation strategy together, from the same place."
        )
    return read_pool(pools[pool_hash])
