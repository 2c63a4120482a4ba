r"""The records that strategies take and return.

A strategy on a ``Pool`` asks for a ``Batch``, is told ``Observations`` and answers with
a ``Classification``. A table becomes a pool, and pool, batch and answer a table again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse._lazy import LazyModule
from botorch_lse.checks import (
    check_shape,
    complaint,
    in_interval,
    is_number,
    non_negative_vector,
    of_type,
    one_of,
    real_matrix,
    real_numbers,
    real_vector,
    row_indices,
    truth_value,
    usable_device,
    whole_number,
    whole_numbers,
)
from botorch_lse.content import CONFIDENCE, Content
from botorch_lse.distributions import (
    DRAWS,
    Draws,
    Origin,
    copula_factor,
    drawn,
    log_density,
    marginals_of,
)
from botorch_lse.encoding import LEVEL_OF, encode
from botorch_lse.numerals import written
from botorch_lse.rows import (
    Inputs,
    Rows,
    are_named,
    chosen,
    in_order,
    is_counted,
    named_lines,
    places_of,
    with_index,
)
from botorch_lse.transfer import at_home, ordinary

if TYPE_CHECKING:
    import pandas as pd
    from botorch.utils import sampling
else:
    pd = LazyModule("pandas")  # for tables
    sampling = LazyModule("botorch.utils.sampling")  # brings SciPy, for Sobol points

OUTPUT = "output"
"""The last input of a pool from ``Pool.at_outputs``: the number of the output."""
NOISE_LEVEL = "noise_level"
"""The last input of a pool from ``Pool.at_noise_levels``: the number of the level."""
SHOWN = 6
"""Names of inputs that are shown of a pool."""


@dataclass(frozen=True, eq=False, repr=False)
class Pool:
    r"""A finite candidate set of ``N`` rows.

    A ``DataFrame`` given as ``X`` is encoded (numbers as they are, also those written
    as text, booleans as 0 and 1, words one column per level) and kept as ``table``, so
    that answers come back as the same table with columns added. What names the rows
    belongs in the index, or in ``table`` alone. Whatever is given with the labels of
    the index, such as costs as a series, goes by these labels.

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
        weights: ``N`` weights by which rows count where shares are asked for: areas,
            prices, probabilities, densities. At least 0, in any unit: only their ratios
            matter. Default: every row counts the same.
        total: What the weights of everything that is meant add up to; default their
            sum. If ``n`` rows were drawn from another density, with the ratio of both
            densities for weights, it is ``n``.
        is_sample: Whether the rows were drawn at random from a distribution that is
            meant, so that a share of them has a sampling error of its own. Default: the
            rows are all there is.
        origin: How ``Pool.from_distribution`` drew the rows, for ``extended``; it is
            not stored with the pool and changes no answer.
        device: Where strategies compute and ``Batch.X`` lives, such as ``"cuda"``;
            default that of ``X``, if it is a tensor. All else of a pool, observations
            and answers are on the CPU. It is not stored with the pool and changes no
            answer but for rounding.

    Raises:
        ValueError: If the pool is empty, an entry is not finite, a cost is negative, a
            noise variance negative, names repeat, ``table`` is no ``DataFrame``,
            a column of one cannot be encoded, a weight is negative, all are 0,
            ``total`` is not positive, or ``device`` is not there.
        BotorchTensorDimensionError: If an argument has another number of rows.
    """

    X: Any
    features: Tensor | None = None
    costs: Tensor | None = None
    noise_var: Tensor | None = None
    names: Sequence[str] | None = None
    table: pd.DataFrame | None = field(default=None, repr=False)
    weights: Tensor | None = None
    total: float | None = None
    is_sample: bool = False
    origin: Origin | None = field(default=None, repr=False)
    device: Any = None

    @ordinary
    def __post_init__(self) -> None:
        X, names, table = self.X, self.names, self.table
        device = self.device
        if device is None:
            device = X.device if isinstance(X, Tensor) else "cpu"
        _set_fields(self, device=usable_device(device, "device"))
        labels = None
        if isinstance(X, pd.DataFrame):
            encoded, labels = encode(X), X.index
            names = list(encoded.columns) if names is None else names
            if isinstance(table, pd.DataFrame):
                table = in_order(table, labels, "table", others="the rows of `X`")
            table = X if table is None else table
            X = encoded.to_numpy(dtype=float)
        # In one layout, also where it came column by column from a table: sums depend
        # on it in the last digit, and a stored pool comes back row by row.
        X = at_home(real_matrix(X, "X").contiguous())
        N, d = X.shape
        _set_fields(self, X=X, names=_check_names(names, d))
        if isinstance(table, pd.DataFrame) and (
            labels is None or is_counted(labels)  # nobody has named the rows of `X`
        ):
            labels = table.index
        labels = pd.RangeIndex(N) if labels is None else labels
        if self.features is not None:
            given = in_order(self.features, labels, "features")
            features = at_home(real_matrix(given, "features"))
            _set_fields(self, features=features)
            real_vector(self.features[:, 0], "features", N, "row of `X`")
        for name in ("costs", "noise_var", "weights"):
            given = getattr(self, name)
            if given is not None:
                given = in_order(given, labels, name)
                numbers = non_negative_vector(given, name, N, "row of `X`")
                _set_fields(self, **{name: at_home(numbers)})
        if self.weights is not None and not float(self.weights.sum()) > 0:
            wanted = "to have one that is positive"
            remedy = "Leave `weights` out if all rows count the same."
            raise ValueError(complaint("weights", wanted, "all are 0", remedy))
        if self.total is not None:
            _set_fields(self, total=in_interval(self.total, "total", 0.0, math.inf))
        _set_fields(self, is_sample=truth_value(self.is_sample, "is_sample"))
        if table is None:
            return
        wanted = "a DataFrame with one row per row of `X`"
        remedy = "Write `pd.DataFrame({'name': table})`."
        of_type(table, pd.DataFrame, "table", wanted, remedy)
        if len(table) != N:
            wanted = f"to have one row per row of `X` ({N})"
            raise ValueError(complaint("table", wanted, f"it has {len(table)}"))
        _set_fields(self, table=table.copy())

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
            bounds: ``2 x d``: the smallest and the largest value of each input. The
                columns of a table are the names of the inputs.
            n: How many points; a power of two is evenest.
            seed: Of the scrambling.
            names: The names of the ``d`` inputs.

        Raises:
            ValueError: If a bound is not finite, an upper bound is not above its lower
                one, ``n`` is less than 1, or ``seed`` less than 0.
            BotorchTensorDimensionError: If ``bounds`` has another shape.
        """
        if are_named(bounds):
            names = tuple(map(str, bounds.columns)) if names is None else names
            bounds = chosen(bounds, names, "bounds", "inputs")
        box = real_matrix(bounds, "bounds")
        wanted = "to have two rows, lower and upper"
        check_shape(len(box) == 2, box, "bounds", wanted)
        if bool((box[1] <= box[0]).any()):
            i = int((box[1] <= box[0]).nonzero()[0])
            raise ValueError(
                "Expected the upper row of `bounds` to be above the lower one, but "
                f"input {i} has {written(box[0, i])} and {written(box[1, i])}."
            )
        n, seed = whole_number(n, "n", 1), whole_number(seed, "seed", 0)
        X = sampling.draw_sobol_samples(box, n=n, q=1, seed=seed)
        return cls(X[:, 0], names=names)

    @classmethod
    def from_distribution(
        cls,
        marginals: Any,
        n: int,
        *,
        seed: int = 0,
        correlation: Any = None,
        method: Draws = "sobol",
        sampling: Any = None,
        names: Sequence[str] | None = None,
    ) -> Pool:
        r"""Rows drawn from the distribution of uncertain inputs.

        The share of the rows above a level then estimates the probability that the
        function is above it, such as a probability of failure.

        Rare events are met more often under another density: with ``sampling`` the rows
        are drawn from that one, and each has the weight ``f(x) / g(x)``, the density
        that is meant over the one that was drawn from, so that weighted shares still
        estimate the probability that is meant. Where ``f`` is positive ``g`` must be.

        Example:
            >>> from scipy.stats import norm, uniform
            >>> inputs = {"load": norm(5.0, 1.0), "strength": uniform(6.0, 4.0)}
            >>> pool = Pool.from_distribution(inputs, 1024)
            >>> pool.names, len(pool)
            (('load', 'strength'), 1024)

        Args:
            marginals: ``d`` frozen distributions of ``scipy.stats``, one for each
                input, or a dictionary from names of inputs to them. By these names go
                ``sampling``, if it is a dictionary, and ``correlation``, if it is a
                table.
            n: How many rows; for ``"sobol"`` a power of two is evenest.
            seed: Of the draws.
            correlation: ``d x d`` correlation of the normal numbers behind the inputs
                (a Gaussian copula); default independent inputs. It differs a little
                from the correlation of inputs that are not normal.
            method: ``"sobol"``, scrambled Sobol points, or ``"monte_carlo"``,
                independent points.
            sampling: ``d`` other distributions to draw from, with the same correlation.
            names: The names of the ``d`` inputs.

        Raises:
            ValueError: If a marginal is no frozen distribution, ``correlation`` is no
                correlation, ``method`` is not known, a number is out of range, or the
                rows drawn by ``sampling`` all have density 0.
            BotorchTensorDimensionError: If a length differs from that of ``marginals``.
        """
        own, meant = marginals_of(marginals, "marginals")
        n, seed = whole_number(n, "n", 1), whole_number(seed, "seed", 0)
        one_of(method, "method", DRAWS)
        if isinstance(correlation, pd.DataFrame) and own is not None:
            for _ in range(2):  # its columns, and then its rows
                correlation = chosen(correlation, own, "correlation", "inputs").T
        factor = copula_factor(correlation, len(meant))
        names = own if names is None else names
        if sampling is None:
            X = drawn(meant, factor, n, seed, method)
            origin = Origin(tuple(meant), factor, np.zeros((1, len(meant))), (n,))
            return cls(X, names=names, is_sample=True, origin=origin)
        theirs, other = marginals_of(sampling, "sampling")
        if own is not None and theirs is not None:
            other = [other[i] for i in places_of(theirs, own, "sampling", "inputs")]
        if len(other) != len(meant):
            raise BotorchTensorDimensionError(
                f"Expected `sampling` to have one distribution per marginal "
                f"({len(meant)}), but got {len(other)}."
            )
        X = drawn(other, factor, n, seed, method)
        ratio = log_density(meant, factor, X) - log_density(other, factor, X)
        return cls(X, names=names, weights=ratio.exp(), total=n, is_sample=True)

    def to(self, device: Any) -> Pool:
        r"""The same pool, for strategies that compute on another device.

        Example:
            >>> pool = Pool([[0.0], [1.0]])
            >>> device = "cuda" if torch.cuda.is_available() else "cpu"
            >>> pool.to(device).hash == pool.hash
            True

        Args:
            device: A ``torch.device`` or its name, such as ``"cuda"``.

        Raises:
            ValueError: If it is not there, or has no float64.
        """
        return replace(self, device=device)

    def extended(self, n: int, at: Any, seed: int = 0) -> Pool:
        r"""This pool with more rows, drawn around some of its rows.

        A rare event hardly occurs among rows of the distribution itself. Around a row
        where it does, or nearly so, it is met about every second time. The rows of this
        pool come first, so that what was measured keeps its row, and all rows get
        importance weights, the density that is meant over that of all draws together.
        Shares by weight then estimate the probability that is meant: without bias if
        ``at`` was chosen before the rows were drawn, with a bias that vanishes with
        their number if they were looked at.

        "Around" is by normal numbers behind the inputs: a row of the distribution,
        shifted there (importance sampling at design points, as in AK-IS).

        Example:
            >>> from scipy.stats import norm
            >>> pool = Pool.from_distribution([norm()], 1000)
            >>> more = pool.extended(1000, at=[int(pool.X.argmax())])
            >>> len(more), bool((more.X[:1000] == pool.X).all())
            (2000, True)
            >>> fails = more.X[:, 0] > 4  # a probability of 3.17e-5
            >>> 3.0e-5 < float(more.mass[fails].sum()) < 3.4e-5
            True

        Args:
            n: How many rows more, the same number around each row of ``at``.
            at: Rows of this pool, by their numbers or by labels of its index.
            seed: Of the draws; the same seed may be given again for the next extension.

        Raises:
            ValueError: If ``n`` is no multiple of the number of rows in ``at``, a
                number is out of range, or it is not known how the rows were drawn.

        Source:
            Echard et al. (2013), AK-IS, for one density around the design point; for
            several at once see ``Origin.weights``.
        """
        if self.origin is None or len(self) != sum(self.origin.counts):
            wanted = "a pool that knows how its rows were drawn"
            remedy = "Make it by `Pool.from_distribution`, without `sampling`."
            raise ValueError(f"Expected {wanted}, but this one does not. {remedy}")
        others = ("features", "costs", "noise_var", "table")
        own = [name for name in others if getattr(self, name) is not None]
        if own:
            raise ValueError(
                f"Expected a pool of bare points, but it has {' and '.join(own)}, "
                "which are not known for new rows. Leave it out."
            )
        rows = self.rows(at, "at")
        n, seed = whole_number(n, "n", 1), whole_number(seed, "seed", 0)
        if len(rows) == 0 or n % len(rows):
            wanted = f"to be a multiple of the {len(rows)} rows in `at`, at least one"
            raise ValueError(complaint("n", wanted, f"got {n}"))
        before, each = self.origin, n // len(rows)
        centres = before.normal_numbers(self.X[rows])
        origin = replace(
            before,
            centres=np.concatenate((before.centres, centres)),
            counts=(*before.counts, *(each,) * len(rows)),
        )
        X = torch.cat((self.X, before.around(centres, each, seed)))
        return replace(
            self, X=X, weights=origin.weights(X), total=len(X), origin=origin
        )

    def __len__(self) -> int:
        return self.X.shape[-2]

    @cached_property
    @ordinary
    def mass(self) -> Tensor:
        r"""``N`` shares of ``total``: the weights, or the same for all rows without.

        They add up to 1, if there is no ``total`` that says otherwise.
        """
        weights = self.weights
        if weights is None:
            weights = torch.ones(len(self), dtype=torch.float64)
        return weights / (weights.sum() if self.total is None else self.total)

    @property
    def stands_for_more(self) -> bool:
        r"""Whether a share of the rows is more than a number of rows.

        They have weights, or were drawn from a distribution. Pictures and cards then
        say how much is above.
        """
        return self.weights is not None or self.is_sample

    @property
    def effective_size(self) -> float:
        r"""How many rows of equal weight say as much about a share of all of them.

        Source:
            Kish (1965): ``(sum w)^2 / sum w^2``.
        """
        return float(self.mass.sum().square() / self.mass.square().sum())

    def __repr__(self) -> str:
        r"""How many rows and which inputs; tensors of a pool fill a screen.

        Example:
            >>> Pool([[1.0, 2.0], [1.5, 2.5]], names=("depth", "heat"), costs=[1, 3])
            Pool(2 rows, inputs depth, heat; with costs)
        """
        shown = [*(self.names or ())[:SHOWN], *["..."] * (self.d > SHOWN)]
        inputs = f"input{'s' * (self.d > 1)} {', '.join(shown)}"
        parts = ("features", "costs", "noise_var", "weights", "table")
        given = [name for name in parts if getattr(self, name) is not None]
        more = f"; with {', '.join(given)}" if given else ""
        return f"Pool({len(self):,} rows, {inputs}{more})"

    @property
    def d(self) -> int:
        r"""The number of inputs of the model: columns of ``X``."""
        return self.X.shape[-1]

    @cached_property
    @ordinary
    def bounds(self) -> Tensor:
        r"""``2 x d``: the smallest and largest value of each input.

        A constant input gets an interval of length 1 around its value.
        """
        low, high = self.X.amin(dim=0), self.X.amax(dim=0)
        flat = high <= low
        return torch.stack((low - 0.5 * flat, high + 0.5 * flat))

    @cached_property
    def words(self) -> dict[str, tuple[int, int]]:
        r"""The inputs that are words: the first column of each, and how many it has.

        These are columns side by side named ``NAME=LEVEL``, as a ``DataFrame``'s words
        become, of which each row has one that is 1 and else 0. The default model treats
        such an input as a whole.

        Example:
            >>> X = [[5.0, 1.0, 0.0], [6.0, 0.0, 1.0]]
            >>> Pool(X, names=("x", "s=a", "s=b")).words
            {'s': (1, 2)}
        """
        found = {}
        columns = [name.partition(LEVEL_OF)[::2] for name in self.names or ()]
        for name, run in groupby(enumerate(columns), key=lambda item: item[1][0]):
            places = [i for i, (_, level) in run if level]
            if len(places) < 2 or places[-1] - places[0] >= len(places):
                continue
            part = self.X[:, places]
            if bool(((part == 0) | (part == 1)).all() & (part.sum(dim=-1) == 1).all()):
                found[name] = (places[0], len(places))
        return found

    @cached_property
    def described(self) -> Rows:
        r"""What the table says of the rows, to find them by it."""
        frame = self.to_frame()
        if self.weights is not None:  # a number that depends on all other rows
            frame = frame.iloc[:, :-1]
        return Rows.of(frame)

    @cached_property
    def hash(self) -> str:
        r"""A fingerprint of everything that changes an answer (hex digits)."""
        digest = hashlib.sha256(repr((tuple(self.X.shape), self.names)).encode())
        for part in (self.X, self.features, self.costs, self.noise_var):
            digest.update(b"-" if part is None else part.cpu().numpy().tobytes())
        # What most pools do not have is left out, so that stored pools keep their hash.
        if self.weights is not None:
            digest.update(b"weights" + self.weights.cpu().numpy().tobytes())
        if self.total is not None:
            digest.update(f"total{self.total!r}".encode())
        if self.is_sample:
            digest.update(b"is_sample")
        return digest.hexdigest()

    @property
    def labels(self) -> pd.Index:
        r"""``N`` labels of the rows: the index of the table, else 0, 1, 2, ..."""
        return pd.RangeIndex(len(self)) if self.table is None else self.table.index

    @cached_property
    def _inputs(self) -> Inputs:
        r"""What points whose inputs have names are read by."""
        assert self.names is not None  # set in __post_init__
        return Inputs(self.names, self.X.cpu().numpy(), self.described.columns)

    def points(self, X: Any, name: str = "X") -> Tensor:
        r"""Points of the model, from a table or from bare numbers.

        What has names goes by them: a table, a dictionary of columns or a list of
        dictionaries is read as the pool's table is, with its words, and further columns
        are left out. Bare numbers stand in the order of ``names``.

        Example:
            >>> import pandas as pd
            >>> table = pd.DataFrame({"depth": [1.0, 2.0], "soil": ["clay", "loam"]})
            >>> Pool(table).points([{"soil": "loam", "depth": 1.5}])
            tensor([[1.5000, 0.0000, 1.0000]], dtype=torch.float64)

        Args:
            X: ``M`` points; of a dictionary or a labelled series one.
            name: The argument's name, for messages.

        Returns:
            ``M x d`` numbers, in the columns of ``X``.

        Raises:
            ValueError: If a column is missing, or an entry is no value of its input.
            BotorchTensorDimensionError: If bare numbers have other columns.
        """
        lines = named_lines(X)
        points = real_matrix(X if lines is None else self._inputs.of(lines, name), name)
        wanted = f"to have {self.d} columns"
        check_shape(points.shape[-1] == self.d, points, name, wanted)
        return at_home(points)

    def rows(self, rows: Any, name: str = "rows") -> Tensor:
        r"""The numbers of rows, from numbers or from labels of the table's index.

        A pandas index holds labels, and so do texts; anything else is numbers.

        Example:
            >>> import pandas as pd
            >>> pool = Pool(pd.DataFrame({"x": [1.0, 2.0]}, index=["first", "second"]))
            >>> pool.rows(["second"]), pool.rows([0])
            (tensor([1]), tensor([0]))

        Args:
            rows: ``n`` rows.
            name: The argument's name, for messages.

        Raises:
            ValueError: If one is no row, or a label names several.
            BotorchTensorDimensionError: If they are no vector.
        """
        texts = [rows] if isinstance(rows, str) else rows
        if not isinstance(texts, pd.Index):
            entries = texts if isinstance(texts, list | tuple | pd.Series) else ()
            if not len(entries) or not all(isinstance(t, str) for t in entries):
                return row_indices(rows, name, len(self))
        places = [np.flatnonzero(self.labels == label) for label in texts]
        for label, found in zip(texts, places, strict=True):
            if len(found) != 1:
                wanted = "to hold labels of the pool's index, each of one row"
                came = f"{label!r} is that of {len(found) or 'no'} rows"
                remedy = "Give the numbers of the rows, from 0."
                raise ValueError(complaint(name, wanted, came, remedy))
        return torch.tensor([int(found[0]) for found in places], dtype=torch.long)

    def nearest(self, x: Any) -> int:
        r"""The row nearest to a point, inputs scaled to the pool's bounds.

        Args:
            x: ``d`` numbers, or values under the names of the inputs.

        Raises:
            ValueError: If an input is missing, or a value is none of its input.
            BotorchTensorDimensionError: If ``x`` has another length, or is several
                points.
        """
        if named_lines(x) is None:
            point = real_vector(x, "x", self.d, "column of the pool", booleans=True)
        else:
            points = self.points(x, "x")
            check_shape(len(points) == 1, points, "x", "to be one point")
            point = points[0]
        low, high = self.bounds
        scaled = (self.X - at_home(point)) / (high - low)
        return int(scaled.square().sum(dim=-1).argmin())

    def row_of(self, values: Mapping[str, Any]) -> int | None:
        r"""The first row with these inputs, or ``None`` if there is none.

        Args:
            values: A number or a word for each column of the table from which the pool
                was made, or each of ``names``; others are ignored.

        Raises:
            ValueError: If a column has no value.
        """
        table = self.to_frame()
        same = np.ones(len(table), dtype=bool)
        for name in (str(column) for column in table):
            if name == "weight" and self.weights is not None:
                continue
            if name not in values:
                came = f"it has {sorted(values)}"
                raise ValueError(complaint("values", f"to have {name!r}", came))
            column = table[name]
            if pd.api.types.is_numeric_dtype(column):
                numbers = column.to_numpy(dtype=float)
                near = 1e-9 * (float(np.ptp(numbers)) or 1.0)
                same &= np.abs(numbers - float(values[name])) <= near
            else:
                same &= (column == values[name]).to_numpy()
        return int(same.argmax()) if same.any() else None

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
        if isinstance(noise_var, pd.Series):
            costs = in_order(costs, noise_var.index, "costs", others="the levels")
        variances = real_vector(noise_var, "noise_var")
        K, N = len(variances), len(self)
        level_costs = non_negative_vector(costs, "costs", K, "noise level")
        level = torch.arange(K, dtype=torch.float64).repeat_interleave(N).unsqueeze(-1)
        table = None
        if self.table is not None:
            table = pd.concat([self.table] * K, ignore_index=True)
            table[NOISE_LEVEL] = level.squeeze(-1).long().numpy()
        return Pool(
            torch.cat((self.X.repeat(K, 1), level), dim=-1),
            costs=level_costs.repeat_interleave(N),
            noise_var=variances.repeat_interleave(N),
            names=(*names, NOISE_LEVEL),
            table=table,
            weights=None if self.weights is None else self.weights.repeat(K),
            total=None if self.total is None else K * self.total,
            is_sample=self.is_sample,
            device=self.device,
        )

    def at_outputs(
        self, outputs: Sequence[str] | int, costs: Any, noise_var: Any = None
    ) -> Pool:
        r"""Every row once for each of ``M`` outputs: rows that measure one output each.

        For ``Strategy(pool.at_outputs(...), region)``, which then says which output to
        measure next, in which row, and still decides about the rows of this pool. The
        number of the output is a last column ``output``; the table names it.

        Example:
            >>> import torch
            >>> pool = Pool(torch.linspace(0, 1, 3).unsqueeze(-1))
            >>> assays = pool.at_outputs(("strength", "leaching"), costs=(1.0, 5.0))
            >>> assays.to_frame()["output"].tolist()[2:4]
            ['strength', 'leaching']

        Args:
            outputs: The names of the outputs in the order of the region, or how many.
            costs: ``M`` costs of measuring one output, or a series or dictionary by
                the names of the outputs; so ``noise_var``.
            noise_var: ``M`` known noise variances of a measurement, squares of the
                units of the outputs.

        Raises:
            ValueError: If a number is out of range, names repeat, or the rows have
                costs, features or noise variances of their own.
            BotorchTensorDimensionError: If the lengths differ.
        """
        names = outputs
        if isinstance(outputs, int):
            names = tuple(f"y{j}" for j in range(whole_number(outputs, "outputs", 2)))
        assert not isinstance(names, int)
        words = _check_names(names, len(names)) if len(names) > 1 else ()
        if not words:
            wanted = "to name at least two outputs"
            raise ValueError(complaint("outputs", wanted, f"got {outputs!r}"))
        parts = ("features", "costs", "noise_var")
        own = [name for name in parts if getattr(self, name) is not None]
        columns = tuple(self.names or ())
        if own or OUTPUT in columns:
            raise ValueError(
                "Expected a pool of bare points, but it has "
                f"{' and '.join(own) or OUTPUT} already. Leave it out."
            )
        M, N, each_output = len(words), len(self), pd.Index(words)
        costs = in_order(costs, each_output, "costs", others="the outputs")
        each = non_negative_vector(costs, "costs", M, "output")
        noise = None
        if noise_var is not None:
            noise_var = in_order(
                noise_var, each_output, "noise_var", others="the outputs"
            )
            noise = non_negative_vector(noise_var, "noise_var", M, "output")
            noise = noise.repeat_interleave(N)
        number = torch.arange(M, dtype=torch.float64).repeat_interleave(N).unsqueeze(-1)
        described = pd.DataFrame(self.X.numpy(), columns=list(columns))
        table = pd.concat([self.table if self.table is not None else described] * M)
        table[OUTPUT] = [word for word in words for _ in range(N)]
        return Pool(
            torch.cat((self.X.repeat(M, 1), number), dim=-1),
            costs=each.repeat_interleave(N),
            noise_var=noise,
            names=(*columns, OUTPUT),
            table=table.reset_index(drop=True),
            weights=None if self.weights is None else self.weights.repeat(M),
            total=None if self.total is None else M * self.total,
            is_sample=self.is_sample,
            device=self.device,
        )

    def to_frame(self) -> pd.DataFrame:
        r"""The table the pool was made from, else its inputs under their names.

        Weights, where there are any, stand beside it in the column ``weight``.
        """
        if self.table is not None:
            frame = self.table.copy()
        else:
            assert self.names is not None  # set in __post_init__
            frame = pd.DataFrame(self.X.numpy(), columns=list(self.names))
        if self.weights is None:
            return frame
        return beside(frame, pd.DataFrame({"weight": self.weights.numpy()}))


def _check_names(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    r"""One different name per column; ``x0, x1, ...`` where none are given."""
    if names is None:
        return tuple(f"x{i}" for i in range(d))
    if isinstance(names, str) or not isinstance(names, Iterable) or len(names) != d:
        wanted = f"to name each of the {d} columns of `X`"
        raise ValueError(complaint("names", wanted, f"got {names!r}"))
    if len(set(names)) != d:
        raise ValueError(complaint("names", "to differ", f"got {list(names)}"))
    return tuple(str(name) for name in names)


def _set_fields(record: Any, **values: Any) -> None:
    r"""Set the checked values of a new record; a frozen dataclass needs this detour."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def beside(table: pd.DataFrame, answer: pd.DataFrame) -> pd.DataFrame:
    r"""A table with columns added; a name that it has already ends in ``_lse``."""
    taken = {name: f"{name}_lse" for name in answer if name in table}
    answer = answer.rename(columns=taken).set_index(table.index)
    return pd.concat((table, answer), axis=1)


POOL_INDEX, ROUND = "pool_index", "round"
"""The columns of a sheet that say which row was measured, and in which round."""


@dataclass(frozen=True, eq=False)
class Observations:
    r"""Measurements, one entry each, in the order in which they were given.

    Args:
        indices: ``n`` rows of the pool.
        y: ``n`` measured values, or ``n x m`` for ``m`` outputs.
        yvar: The known noise variance of each value, the shape of ``y``; ``None`` if
            the strategy knows the noise or the model learns it.
        round: The round of each entry, one number or ``n``; ``None``: no strategy asked
            for them, so that they are a round of their own.
        counts: How many measurements each entry is the mean of; ``None``: one each.
        lines: What the ``n`` lines of a table say of their rows, for ``check_rows``.
        outputs: The names of the ``m`` outputs, where they are known: of a table ``y``
            its columns. A strategy whose goal names outputs takes them by name.

    Raises:
        ValueError: If a value is not finite or a variance negative, or if known and
            unknown variances are mixed.
        BotorchTensorDimensionError: If the lengths differ.
    """

    indices: Tensor
    y: Tensor
    yvar: Tensor | None = None
    round: Tensor | None = None
    counts: Tensor | None = None
    lines: pd.DataFrame | None = field(default=None, repr=False)
    outputs: tuple[str, ...] | None = field(default=None, repr=False)

    @ordinary
    def __post_init__(self) -> None:
        given, values = self.indices, self.y
        indices = row_indices(given, "indices")
        n = indices.numel()
        if isinstance(given, pd.Series):
            values = in_order(values, given.index, "y", others="the `indices`")
        values, noise, outputs = _measured(values, self.yvar, self.outputs)
        y = at_home(_values(values, n))
        _set_fields(self, indices=indices, y=y, outputs=outputs)
        if self.yvar is not None:
            _set_fields(self, yvar=at_home(_variances(noise, y)))
        for name, least in (("round", 0), ("counts", 1)):
            given = getattr(self, name)
            if given is None:
                continue
            numbers = whole_numbers(given, name)
            if name == "round" and numbers.ndim == 0:
                numbers = numbers.expand(n).clone()
            if numbers.shape != (n,) or bool((numbers < least).any()):
                wanted = f"to be one number of at least {least} per entry ({n})"
                raise ValueError(complaint(name, wanted, f"got {given!r}"))
            _set_fields(self, **{name: numbers})

    def __len__(self) -> int:
        return self.indices.numel()

    @property
    def measured(self) -> Tensor:
        r"""The row of each single measurement: a mean of ``k`` comes ``k`` times."""
        return self.indices.repeat_interleave(self.replicates)

    @property
    def _parts(self) -> dict[str, Any]:
        r"""The fields that are numbers, by name."""
        return {n: part for n, part in vars(self).items() if isinstance(part, Tensor)}

    @property
    def replicates(self) -> Tensor:
        r"""``n``, how many measurements each entry is the mean of."""
        return torch.ones_like(self.indices) if self.counts is None else self.counts

    @property
    def n_measured(self) -> int:
        r"""The number of single measurements: an entry that is a mean counts ``k``."""
        return int(self.replicates.sum())

    def times_measured(self, n_rows: int) -> Tensor:
        r"""How often each of ``n_rows`` rows was measured, means counted in full."""
        times = torch.zeros(n_rows, dtype=torch.long)
        return times.index_add_(0, self.indices, self.replicates)

    @classmethod
    def empty(cls) -> Observations:
        r"""Observations without any entry."""
        none = torch.empty(0, dtype=torch.long)
        return cls(none, torch.empty(0, dtype=torch.float64), round=none)

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
        said = done.drop(columns=[*number, *names, *variances, *done.filter([ROUND])])
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
            row_indices(self.indices, "indices", len(pool))
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

    def output(self, column: int) -> Observations:
        r"""One of several outputs by itself.

        Args:
            column: Its column in ``y``.
        """
        yvar = None if self.yvar is None else self.yvar[:, column]
        return replace(self, y=self.y[:, column], yvar=yvar, outputs=None)

    def of_outputs(self, wanted: Sequence[str]) -> Observations:
        r"""The observations with the outputs of a goal, in its order, by their names.

        Args:
            wanted: The names in the order of the goal. Where these are not known, or
                the outputs have no names, they stay as they are.

        Raises:
            ValueError: If one of them is missing.
        """
        y, yvar = _by_name(self, wanted)
        return replace(self, y=y, yvar=yvar, outputs=None)

    def select(self, rows: Tensor) -> Observations:
        r"""The entries at ``rows`` (indices or mask), in that order, without lines."""
        parts: dict[str, Any] = {n: part[rows] for n, part in self._parts.items()}
        return Observations(**parts, outputs=self.outputs)

    def at_round(self, round: int) -> Observations:
        r"""The same entries, all with the round number ``round``."""
        return replace(self, round=torch.tensor(round))

    def append(self, other: Observations) -> Observations:
        r"""These entries, then the others.

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
        joined: dict[str, Any] = {
            name: torch.cat((first[name], second[name])) for name in first
        }
        return Observations(**joined, outputs=self.outputs or other.outputs)


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
    r"""A list of column names from one name or several."""
    return list(given) if _are_several(given) else [given]


def _are_several(names: Any) -> bool:
    r"""Whether there are several names of columns; anything else is one name."""
    return isinstance(names, (list, tuple, pd.Index, np.ndarray))


def _check_columns(frame: pd.DataFrame, names: Sequence[Any]) -> None:
    r"""Complain about a wanted column that is missing or there twice."""
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
    r"""Columns side by side, ``n x k``; ``n`` numbers of a single output."""
    columns = [_column(frame, name) for name in names]
    return torch.stack(columns, dim=-1) if several else columns[0]


def _column(frame: pd.DataFrame, name: Any) -> Tensor:
    r"""One column as numbers; ``None`` counts as nan."""
    column = frame[name]
    if not pd.api.types.is_numeric_dtype(column):
        column = column.astype(object).map(_parsed)
    return real_numbers(column, f"frame[{name!r}]", gaps=True)


def _parsed(entry: Any) -> Any:
    r"""A text as a float if it is one, else the entry as it is."""
    try:
        return float(entry) if isinstance(entry, str) else entry
    except ValueError:
        return entry


def _values(y: Any, n: int) -> Tensor:
    r"""``n`` measured values, or ``n x m``, checked column by column."""
    values = real_numbers(y, "y")
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

    Raises:
        ValueError: If an entry is not finite, or a variance negative.
        BotorchTensorDimensionError: If the lengths differ.
    """

    X: Any
    y: Any
    yvar: Any = None
    outputs: tuple[str, ...] | None = None

    @ordinary
    def __post_init__(self) -> None:
        labels = self.X.index if isinstance(self.X, pd.DataFrame) else None
        lines = named_lines(self.X)
        X = at_home(real_matrix(self.X, "X")) if lines is None else lines
        y, yvar, outputs = _measured(self.y, self.yvar, self.outputs, labels)
        y = at_home(_values(y, len(X)))
        yvar = None if yvar is None else at_home(_variances(yvar, y))
        _set_fields(self, X=X, y=y, yvar=yvar, outputs=outputs)

    def __len__(self) -> int:
        return len(self.X)

    def on(self, pool: Pool, outputs: Sequence[str] = ()) -> History:
        r"""The same measurements with their points as the model of a pool has them.

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
        if not isinstance(X, Tensor):  # bare columns are checked with the model
            X = pool.points(X, "history.X")
        return History(X, y, yvar, names)

    def append(self, other: History) -> History:
        r"""These measurements, and others after them.

        Raises:
            ValueError: If the noise is known of one part only, or points have names in
                one part only.
            BotorchTensorDimensionError: If the columns or outputs differ.
        """
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
            raise ValueError(
                "Expected `yvar` for all measurements of a `history` or for none, but "
                "one part has it. Give it everywhere, or nowhere."
            )
        yvar = None if self.yvar is None else torch.cat((self.yvar, other.yvar))
        y, both = torch.cat((self.y, other.y)), (self.X, other.X)
        X = torch.cat(both) if is_bare else pd.concat(both, ignore_index=True)
        return History(X, y, yvar, self.outputs or other.outputs)

    def output(self, c: int) -> History:
        r"""The measurements of one output."""
        if self.y.ndim == 1:
            return self
        yvar = None if self.yvar is None else self.yvar[:, c]
        return History(self.X, self.y[:, c], yvar)


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
        X: ``k x d``, the inputs of ``indices``, on the device of the pool.
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
                " For one mean per row say `means=True`."
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
        r"""Values under labels in the order of the rows: of lines, or of the pool."""
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


SIDES = ("above", "below", "undecided")


@dataclass(frozen=True, eq=False)
class OutputEstimate:
    r"""What is believed of one output, in the answer about a region.

    Args:
        name: The name of the metric, or ``y0``, ``y1``, ...
        mean: ``N`` posterior means, units of the output.
        sigma: ``N`` posterior standard deviations.
        lower: ``N`` lower confidence bounds.
        upper: ``N`` upper confidence bounds.
        levels: The levels that the region compares it with, each one number for all
            rows or ``N`` of them.
    """

    name: str
    mean: Tensor
    sigma: Tensor
    lower: Tensor
    upper: Tensor
    levels: tuple[Tensor, ...] = ()

    def __post_init__(self) -> None:
        refuse_crossed(self.lower, self.upper)


ROUNDING = 1e-12
"""A mean that is outside of its bounds by this share of its size is within them."""


def _is_outside(part: OutputEstimate | Classification) -> Tensor:
    r"""``N`` bools: whether the mean is outside of its bounds by more than rounding."""
    slack = ROUNDING * part.mean.abs()
    return (part.mean < part.lower - slack) | (part.mean > part.upper + slack)


@dataclass(frozen=True, eq=False)
class Classification:
    r"""Above, below or undecided, for each of ``N`` rows.

    Args:
        above: ``N`` bools: said to lie above the level (Pareto: accepted; of a region:
            inside).
        below: ``N`` bools: said to lie at or below it (rejected; outside).
        undecided: ``N`` bools: neither yet (open). The three partition the pool.
        lower: ``N`` lower confidence bounds, units of ``y``.
        upper: ``N`` upper confidence bounds, units of ``y``.
        mean: ``N`` posterior means, units of ``y``.
        sigma: ``N`` posterior standard deviations of the function, units of ``y``.
        probability_above: ``N`` posterior probabilities of lying above the level; for
            an implicit level, above ``omega`` times the largest posterior mean.
        guarantee: A sentence: the probability claimed, and what it assumes.
        pool: The rows' pool, for ``to_frame``.
        contradicted: ``N`` bools: the data of some rounds contradict those of others in
            this row. Either earlier confidence intervals have nothing in common with
            each other or with the current one, which alone counts: under a width that
            claims a confidence an assumption is then wrong. Or ``mean``, which rests on
            all data, lies outside of what all intervals have in common, which is what
            ``lower``, ``upper`` and the side say: rows with a ``mean`` outside of its
            bounds are always marked. Default: these alone.
        outputs: Of a region the outputs by themselves, with their levels. Of several of
            them ``mean`` and its bounds say how far a row is from another answer, in
            units of each output's prior deviation, negative outside of the region.
        classes: Of several levels ``N`` numbers, how many of them a row is above; -1
            where that is not decided. Else ``None``.
        within: ``N`` bools: decided rows that the accuracy ``epsilon`` decides, so that
            they may be on either side of the level itself; ``None`` without accuracy.
        meaning: What it is to be in ``above``, in words, such as "below" where
            ``Below(0.4)`` is asked.

    Raises:
        ValueError: If the three sets are not a partition, or a lower bound is above its
            upper bound.
    """

    above: Tensor
    below: Tensor
    undecided: Tensor
    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor
    probability_above: Tensor
    guarantee: str = "No confidence is claimed."
    pool: Pool | None = field(default=None, repr=False)
    contradicted: Tensor = field(default=None, repr=False)  # type: ignore[assignment]
    outputs: tuple[OutputEstimate, ...] = field(default=(), repr=False)
    classes: Tensor | None = field(default=None, repr=False)
    within: Tensor | None = field(default=None, repr=False)
    meaning: str = field(default="above", repr=False)

    def __post_init__(self) -> None:
        contradicted = self.contradicted
        if contradicted is None:
            contradicted = torch.zeros_like(self.above, dtype=torch.bool)
        parts: tuple[OutputEstimate | Classification, ...] = (self, *self.outputs)
        outside = [_is_outside(part) for part in parts]
        newly = torch.stack(outside).any(dim=0) & ~contradicted
        _set_fields(self, contradicted=contradicted | newly)
        if bool(newly.any()):  # it is said once, however often the record is copied
            n = int(newly.sum())
            means = f"The mean of {n} rows lies" if n > 1 else "The mean of a row lies"
            said = f"{means} outside of what its intervals have in common."
            _set_fields(self, guarantee=f"{self.guarantee} {said}")
        refuse_crossed(self.lower, self.upper)
        times = self.above.int() + self.below.int() + self.undecided.int()
        if not bool((times == 1).all()):
            raise ValueError(
                "Expected `above`, `below` and `undecided` to partition the rows, but "
                f"row {int((times != 1).nonzero()[0])} is in "
                f"{int(times[times != 1][0])} of them."
            )

    def __len__(self) -> int:
        return self.above.numel()

    @cached_property
    def side(self) -> np.ndarray:
        r"""``N`` words, the sides: ``"above"``, ``"below"`` or ``"undecided"``."""
        code = 2 * self.undecided.int() + self.below.int()
        return np.asarray(SIDES, dtype=object)[code.cpu().numpy()]

    @property
    def expected_wrong(self) -> float:
        r"""The expected number of decided rows on the wrong side, by the posterior."""
        p = self.probability_above
        return float(((1 - p) * self.above + p * self.below).sum())

    @property
    def sides_of_level(self) -> Tensor:
        r"""``N`` codes: 1 above the level itself, -1 at or below it, 0 not decided.

        Rows that the accuracy lets go to either side are not decided.
        """
        side = self.above.to(torch.int8) - self.below.to(torch.int8)
        return side if self.within is None else side.masked_fill(self.within, 0)

    @cached_property
    def best_guess(self) -> Tensor:
        r"""``N`` bools: above, with undecided rows on the likelier side."""
        return self.above | (self.undecided & (self.probability_above > 0.5))

    def content(self, confidence: float = CONFIDENCE) -> Content:
        r"""How much is above: a probability of failure, an area, a share of a library.

        The share of the pool, by weights where it has them, with limits that hold if
        all decided rows are right, and the error of the pool as a sample of a
        distribution, where it is one. It is the share above the level itself: rows that
        an accuracy has decided may be on either side, and count as open.
        ``State.content`` adds what only a run knows.

        Example:
            >>> yes, no = torch.tensor([True, False]), torch.tensor([False, True])
            >>> ends = torch.tensor([1.0, -1.0]), torch.tensor([2.0, 1.0])
            >>> middle, spread = torch.tensor([1.5, 0.0]), torch.ones(2)
            >>> p = torch.tensor([0.9, 0.4])
            >>> none = torch.zeros(2, dtype=torch.bool)
            >>> answer = Classification(yes, none, no, *ends, middle, spread, p)
            >>> found = answer.content()
            >>> found.estimate, found.lower, found.upper
            (0.5, 0.5, 1.0)

        Args:
            confidence: Of the limits for the sampling error.

        Raises:
            ValueError: If ``confidence`` is outside (0, 1).
        """
        in_interval(confidence, "confidence", 0.0, 1.0)
        pool, N = self.pool, len(self)
        mass = torch.full((N,), 1 / N, dtype=torch.float64)
        return Content.of(
            mass if pool is None else pool.mass,
            self.sides_of_level,
            self.probability_above.double(),
            self.guarantee,
            meaning=self.meaning,
            is_sample=pool is not None and pool.is_sample,
            adds_up=pool is None or pool.total is None,
            confidence=confidence,
        )

    def conservative(self, alpha: float = CONFIDENCE) -> Tensor:
        r"""A set of rows that all lie above the level, with one joint probability.

        The likeliest rows, as long as the probabilities that they are not above add up
        to at most ``1 - alpha``. All of them are then above with probability ``alpha``
        at least, however their sides hang together. An answer has no joint posterior;
        a run has, and its ``State.conservative`` finds a larger set by joint draws.

        Args:
            alpha: The joint probability, right if the model is.

        Returns:
            ``N`` bools.

        Raises:
            ValueError: If ``alpha`` is outside (0, 1).

        Source:
            Bonferroni's inequality.
        """
        alpha = in_interval(alpha, "alpha", 0.0, 1.0)
        p = self.probability_above.double()
        order = p.argsort(descending=True, stable=True)
        member = torch.zeros(len(self), dtype=torch.bool)
        member[order] = (1 - p[order]).cumsum(dim=0) <= 1 - alpha
        return member

    def vorobev(self) -> tuple[Tensor, float]:
        r"""Vorob'ev's expectation of the set above the level, and its deviation.

        The expectation is the set of the rows likeliest to be above that has the
        expected content: with one row less it would have less than that. The deviation
        is the expected mass of the rows on the wrong side of it, by the probabilities
        of the model.

        Returns:
            ``N`` bools, and a share of the pool's mass.

        Source:
            Vorob'ev (1984); Chevalier, Ginsbourger, Bect and Molchanov (2013).
        """
        p, N = self.probability_above.double(), len(self)
        mass = torch.full((N,), 1 / N, dtype=torch.float64)
        if self.pool is not None:
            mass = self.pool.mass
        order = p.argsort(descending=True, stable=True)
        reached = mass[order].cumsum(dim=0) >= float(mass @ p) * (1 - 1e-12)
        member = torch.zeros(N, dtype=torch.bool)
        if float(mass @ p) > 0:
            member[order[: int(reached.to(torch.int8).argmax()) + 1]] = True
        return member, float(mass @ torch.where(member, 1 - p, p))

    def to_frame(self) -> pd.DataFrame:
        r"""The pool's table with the answer in columns beside it.

        Columns added: ``side``, ``probability_above``, ``mean``, ``sigma``, ``lower``,
        ``upper``; of several levels ``class``, where it is decided; of several
        outputs for each ``NAME_mean``, ``NAME_lower``, ``NAME_upper``; where intervals
        contradict each other, ``contradicted`` says of which rows. Where the table has
        such a name already, ours ends in ``_lse``. Where ``Below`` is asked, ``side``
        and ``probability_above`` are those of the level all the same.
        """
        side, above = (
            pd.Series(self.side),
            self.probability_above.detach().cpu().numpy(),
        )
        if self.meaning == "below":  # what is in the set is not above the level
            side = side.replace({"above": "below", "below": "above"})
            above = 1 - above
        answer = pd.DataFrame({"side": side, "probability_above": above})
        for name in ("mean", "sigma", "lower", "upper"):
            answer[name] = getattr(self, name).detach().cpu().numpy()
        if self.classes is not None:
            classes = pd.Series(self.classes.cpu().numpy(), dtype="Int64")
            answer.insert(1, "class", classes.mask(classes < 0))
        for output in self.outputs if len(self.outputs) > 1 else ():
            for name in ("mean", "lower", "upper"):
                values = getattr(output, name).detach().cpu().numpy()
                answer[f"{output.name}_{name}"] = values
        if bool(self.contradicted.any()):
            answer["contradicted"] = self.contradicted.cpu().numpy()
        return answer if self.pool is None else beside(self.pool.to_frame(), answer)

    def __repr__(self) -> str:
        counts = (int(getattr(self, name).sum()) for name in SIDES)
        words = ", ".join(f"{n} {name}" for n, name in zip(counts, SIDES, strict=True))
        return f"Classification({len(self)} rows: {words}; {self.guarantee})"


def refuse_crossed(lower: Tensor, upper: Tensor) -> None:
    r"""Complain about the first row whose lower bound is above its upper bound."""
    crossed = lower > upper
    if bool(crossed.any()):
        row = int(crossed.nonzero()[0])
        raise ValueError(
            "Expected no entry of `lower` to be above that of `upper`, but row "
            f"{row} has {written(lower[row])} and {written(upper[row])}."
        )


def gaussian_probability_above(mean: Tensor, sigma: Tensor, threshold: float) -> Tensor:
    r"""``P(f(x) > threshold)`` for Gaussian ``f(x)``; a step where ``sigma`` is 0."""
    z = (mean - threshold) / sigma.clamp_min(torch.finfo(sigma.dtype).tiny)
    return torch.special.ndtr(z)
