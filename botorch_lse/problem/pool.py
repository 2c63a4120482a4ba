r"""The finite candidate set, and how a table becomes one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_lse.checks import (
    non_negative_vector,
    real_matrix,
    real_vector,
    whole_number,
)
from botorch_lse.problem.encoding import encode

NOISE_LEVEL = "noise_level"
"""The last column of a pool whose rows are points at one of several noise levels."""


@dataclass(frozen=True, eq=False)
class Pool:
    r"""A finite candidate set of ``N`` rows.

    A ``DataFrame`` given as ``X`` is encoded (numbers as they are, also those written
    as text, booleans as 0 and 1, words one column per level) and kept as ``table``, so
    that answers come back as the same table with columns added. What names the rows
    belongs in the index, or in ``table`` alone.

    Example:
        >>> import pandas as pd
        >>> pool = Pool(pd.DataFrame({"depth": [1.0, 2.0], "soil": ["clay", "sand"]}))
        >>> pool.names
        ('depth', 'soil=clay', 'soil=sand')
        >>> pool.X.shape
        torch.Size([2, 3])

    Args:
        X: ``N x d`` inputs of the model (kept as a float64 tensor), or a ``DataFrame``
            with one row a candidate.
        features: ``N x m`` features for the linear strategies; default ``X``.
        costs: ``N`` costs of one evaluation, at least 0.
        noise_var: ``N`` known noise variances of one observation, units of ``y``
            squared; 0 for exact measurements.
        names: The names of the ``d`` columns of ``X``.
        table: ``N`` rows that describe the candidates to people; its columns and index
            come back in every answer.

    Raises:
        ValueError: If the pool is empty, an entry is not finite, a cost is negative, a
            noise variance negative, names repeat, ``table`` is no ``DataFrame``, or
            a column of one cannot be encoded.
        BotorchTensorDimensionError: If an argument has another number of rows.
    """

    X: Any
    features: Tensor | None = None
    costs: Tensor | None = None
    noise_var: Tensor | None = None
    names: Sequence[str] | None = None
    table: pd.DataFrame | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        X: Any = self.X
        names = self.names
        if isinstance(X, pd.DataFrame):
            encoded = encode(X)
            names = list(encoded.columns) if names is None else names
            if self.table is None:
                object.__setattr__(self, "table", X)
            X = encoded.to_numpy(dtype=float)
        X = real_matrix(X, "X")
        N, d = X.shape
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "names", _check_names(names, d))
        if self.features is not None:
            features = real_matrix(self.features, "features")
            real_vector(features[:, 0], "features", N, "row of `X`")
            object.__setattr__(self, "features", features)
        for name in ("costs", "noise_var"):
            given = getattr(self, name)
            if given is not None:
                numbers = non_negative_vector(given, name, N, "row of `X`")
                object.__setattr__(self, name, numbers)
        if not isinstance(self.table, pd.DataFrame | None):
            raise ValueError(
                "Expected `table` to be a DataFrame with one row per row of `X`, but "
                f"got {type(self.table).__name__}. Write `pd.DataFrame({{'name': "
                "table})`."
            )
        if self.table is not None and len(self.table) != N:
            raise ValueError(
                f"Expected `table` to have one row per row of `X` ({N}), but it has "
                f"{len(self.table)}."
            )
        if self.table is not None:
            object.__setattr__(self, "table", self.table.copy())

    @classmethod
    def from_box(
        cls,
        bounds: Any,
        n: int,
        *,
        seed: int = 0,
        names: Sequence[str] | None = None,
    ) -> Pool:
        r"""Representer points of a continuous box: ``n`` scrambled Sobol points.

        Every strategy then works on the box: the points are candidates and targets at
        once, and stand for the volume around them.

        Example:
            >>> pool = Pool.from_box([[0.0, 10.0], [1.0, 30.0]], 256)
            >>> len(pool), bool((pool.X[:, 1] >= 10).all())
            (256, True)

        Args:
            bounds: ``2 x d``: the smallest and the largest value of each input.
            n: How many points; a power of two is evenest.
            seed: Of the scrambling.
            names: The names of the ``d`` inputs.

        Raises:
            ValueError: If a bound is not finite, an upper bound is not above its lower
                one, ``n`` is less than 1, or ``seed`` less than 0.
            BotorchTensorDimensionError: If ``bounds`` has another shape.
        """
        box = real_matrix(bounds, "bounds")
        if len(box) != 2:
            raise BotorchTensorDimensionError(
                "Expected `bounds` to have two rows, lower and upper, but got shape "
                f"{tuple(box.shape)}."
            )
        if bool((box[1] <= box[0]).any()):
            i = int((box[1] <= box[0]).nonzero()[0])
            raise ValueError(
                "Expected the upper row of `bounds` to be above the lower one, but "
                f"input {i} has {float(box[0, i]):g} and {float(box[1, i]):g}."
            )
        n, seed = whole_number(n, "n", 1), whole_number(seed, "seed", 0)
        points = draw_sobol_samples(box, n=n, q=1, seed=seed).squeeze(-2)
        return cls(points, names=names)

    def __len__(self) -> int:
        return self.X.shape[-2]

    @property
    def d(self) -> int:
        r"""The number of inputs of the model."""
        return self.X.shape[-1]

    @cached_property
    def bounds(self) -> Tensor:
        r"""``2 x d``: the smallest and largest value of each input.

        A constant input gets an interval of length 1 around its value.
        """
        low, high = self.X.amin(dim=0), self.X.amax(dim=0)
        flat = high <= low
        return torch.stack((low - 0.5 * flat, high + 0.5 * flat))

    @cached_property
    def hash(self) -> str:
        r"""A fingerprint of everything that changes an answer (hex digits)."""
        digest = hashlib.sha256(repr((tuple(self.X.shape), self.names)).encode())
        for part in (self.X, self.features, self.costs, self.noise_var):
            digest.update(b"-" if part is None else part.numpy().tobytes())
        return digest.hexdigest()

    def nearest(self, x: Any) -> int:
        r"""The row nearest to a point, inputs scaled to the pool's bounds.

        Args:
            x: ``d`` numbers.

        Raises:
            BotorchTensorDimensionError: If ``x`` has another length.
        """
        point = real_vector(x, "x", self.d, "column of the pool", booleans=True)
        low, high = self.bounds
        return int(((self.X - point) / (high - low)).square().sum(dim=-1).argmin())

    def at_noise_levels(self, noise_var: Any, costs: Any) -> Pool:
        r"""Every row at each of ``K`` noise levels: ``K N`` rows, level by level.

        The level ``0, ..., K - 1`` is a last column ``noise_level`` that the model's
        input transform must drop (``TruVaRStrategy`` does it for kernels and for its
        default model).

        Args:
            noise_var: ``K`` noise variances, units of ``y`` squared, at least 0.
            costs: ``K`` costs of one evaluation.

        Raises:
            ValueError: If a number is out of range, or the rows have costs, features or
                noise variances of their own.
            BotorchTensorDimensionError: If the lengths differ.
        """
        parts = ("features", "costs", "noise_var")
        own = [name for name in parts if getattr(self, name) is not None]
        names = tuple(self.names or ())
        if own or NOISE_LEVEL in names:
            raise ValueError(
                "Expected a pool of bare points, but it has "
                f"{' and '.join(own) or NOISE_LEVEL} already. Leave it out."
            )
        variances = real_vector(noise_var, "noise_var")
        K, N = len(variances), len(self)
        prices = non_negative_vector(costs, "costs", K, "noise level")
        level = torch.arange(K, dtype=torch.float64).repeat_interleave(N).unsqueeze(-1)
        table = None
        if self.table is not None:
            table = pd.concat([self.table] * K, ignore_index=True)
            table[NOISE_LEVEL] = level.squeeze(-1).long().numpy()
        return Pool(
            torch.cat((self.X.repeat(K, 1), level), dim=-1),
            costs=prices.repeat_interleave(N),
            noise_var=variances.repeat_interleave(N),
            names=(*names, NOISE_LEVEL),
            table=table,
        )

    def to_frame(self) -> pd.DataFrame:
        r"""The table the pool was made from, else its inputs under their names."""
        if self.table is not None:
            return self.table.copy()
        assert self.names is not None  # set in __post_init__
        return pd.DataFrame(self.X.numpy(), columns=list(self.names))


def _check_names(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    r"""One different name per column; ``x0, x1, ...`` where none are given."""
    if names is None:
        return tuple(f"x{i}" for i in range(d))
    if isinstance(names, str) or not isinstance(names, Iterable) or len(names) != d:
        raise ValueError(
            f"Expected `names` to name each of the {d} columns of `X`, but got "
            f"{names!r}."
        )
    if len(set(names)) != d:
        raise ValueError(f"Expected `names` to differ, but got {list(names)}.")
    return tuple(str(name) for name in names)
