r"""A strategy beside what storage holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ax.core.experiment import Experiment

from botorch_lse.ax.codec import decode_strategy, encode_strategy
from botorch_lse.ax.pool_store import PoolStore, holds_pool, kept_pool, read_pool
from botorch_lse.strategies import Strategy


class StoredStrategy:
    r"""A strategy's arguments as JSON, and its pool.

    The pool stands in the properties of the experiment from the first trial on; before
    that, it is written with the arguments.

    Args:
        strategy: The strategy, or the JSON of one.
        pool_folder: Where a large pool's file goes; default the current folder.

    Raises:
        ValueError: If the strategy cannot be stored.
    """

    def __init__(
        self,
        strategy: Strategy | Mapping[str, Any],
        pool_folder: str | Path | None = None,
    ) -> None:
        self._pool_folder = pool_folder
        self._strategy: Strategy | None = None
        self._inline: dict[str, Any] | None = None
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
        if self._strategy is None:
            if self._inline is not None:
                pool = read_pool(self._inline)
            else:
                pool = kept_pool(experiment, self.arguments["pool"])
            self._take_up(decode_strategy(self.arguments, pool))
        assert self._strategy is not None
        return self._strategy

    def keep_pool(self, experiment: Experiment) -> None:
        r"""Put the pool into the experiment's properties, unless it is there."""
        self.get(experiment)
        self._pool_store.keep(experiment)

    def to_json(self, experiment: Experiment | None) -> dict[str, Any]:
        r"""The arguments, and the pool unless the experiment holds it."""
        pool = None
        if not holds_pool(experiment, self.arguments["pool"]):
            unread = self._strategy is None
            pool = self._inline if unread else self._pool_store.write()
        return {"arguments": self.arguments, "pool": pool}

    def _take_up(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._pool_store = PoolStore(strategy.pool, self._pool_folder)
