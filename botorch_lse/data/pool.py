r"""The pool: the candidates, and what is known of them beforehand."""

from __future__ import annotations

import hashlib
import html
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_lse._device import at_home, ordinary
from botorch_lse._lazy import LazyModule
from botorch_lse._numerals import written
from botorch_lse._validation import (
    check_shape,
    complaint,
    in_interval,
    is_number,
    non_negative_vector,
    of_type,
    one_of,
    real_matrix,
    real_vector,
    row_indices,
    same_columns,
    truth_value,
    usable_device,
    whole_number,
)
from botorch_lse.data.distributions import (
    DRAWS,
    Draws,
    GaussianCopula,
    Origin,
    distribution_of,
    marginals_of,
)
from botorch_lse.data.encoding import LEVEL_OF, encode
from botorch_lse.data.names import (
    Inputs,
    Rows,
    are_named,
    chosen,
    in_order,
    is_counted,
    named_lines,
    places_of,
    repeated,
)

if TYPE_CHECKING:
    import pandas as pd
    from botorch.utils import sampling
else:
    pd = LazyModule("pandas")  # for tables
    sampling = LazyModule("botorch.utils.sampling")  # brings SciPy, for Sobol points

OUTPUT = "output"
"""The last input of a pool from ``Pool.at_outputs``: the number of the output."""
SOURCE = "source"
"""The last input of a pool from ``Pool.at_sources``: a number for each source."""
SAME_LEVEL = 1e-9
"""The share of the largest level up to which a difference of numbers is rounding."""
NOISE_LEVEL = "noise_level"
"""The last input of a pool from ``Pool.at_noise_levels``: the number of the level."""
SHOWN = 6
"""The number of inputs whose names are shown of a pool."""


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
        target: The number of the source that is decided, for ``Pool.at_sources``, which
            sets it.

    Raises:
        ValueError: If the pool is empty, an entry is not finite, a cost is negative, a
            noise variance negative, names repeat, ``table`` is no ``DataFrame``,
            a column of one cannot be encoded, a weight is negative, all are 0,
            ``total`` is not positive, ``device`` is not there, or ``target`` is given
            without sources.
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
    target: int | None = None

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
        if self.target is not None:
            self._check_target()
        if table is None:
            return
        wanted = "a DataFrame with one row per row of `X`"
        remedy = "Write `pd.DataFrame({'name': table})`."
        of_type(table, pd.DataFrame, "table", wanted, remedy)
        if len(table) != N:
            wanted = f"to have one row per row of `X` ({N})"
            raise ValueError(complaint("table", wanted, f"it has {len(table)}"))
        _set_fields(self, table=table.copy())

    def _check_target(self) -> None:
        r"""Complain unless the last column is a number for each source, in turn."""
        target, number = whole_number(self.target, "target", 0), self.X[:, -1]
        M = len(number.unique())
        each = number.view(M, -1)[:, :1] if len(self) % M == 0 else number[:1, None]
        is_split = torch.equal(number, each.expand(-1, len(self) // M).reshape(-1))
        if (self.names or ("",))[-1] != SOURCE or not is_split or target >= M:
            wanted = "to be left out of a pool that has no sources"
            remedy = "Write `pool.at_sources(...)`, which sets it."
            raise ValueError(complaint("target", wanted, f"got {self.target}", remedy))

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
            seed: The seed of the scrambling.
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
                table. Or a joint distribution of OpenTURNS with any copula that has a
                density; its description names the inputs.
            n: How many rows; for ``"sobol"`` a power of two is evenest.
            seed: The seed of the draws.
            correlation: ``d x d`` correlation of the normal numbers behind the inputs
                (a Gaussian copula); default independent inputs. It differs a little
                from the correlation of inputs that are not normal.
            method: ``"sobol"``, scrambled Sobol points, or ``"monte_carlo"``,
                independent points.
            sampling: ``d`` other distributions to draw from, with the same correlation,
                or one of OpenTURNS.
            names: The names of the ``d`` inputs.

        Raises:
            ValueError: If a marginal is no frozen distribution, ``correlation`` is no
                correlation or a distribution of OpenTURNS has one of its own,
                ``method`` is not known, a number is out of range, or the rows drawn by
                ``sampling`` all have density 0.
            BotorchTensorDimensionError: If a length differs from that of ``marginals``.
        """
        own, meant = distribution_of(marginals, correlation, "marginals")
        n, seed = whole_number(n, "n", 1), whole_number(seed, "seed", 0)
        one_of(method, "method", DRAWS)
        names = own if names is None else names
        if sampling is None:
            origin = Origin(meant, np.zeros((1, meant.d)), (n,))
            X = meant.drawn(n, seed, method)
            return cls(X, names=names, is_sample=True, origin=origin)
        if isinstance(sampling, Mapping) and own is not None:
            theirs, other = marginals_of(sampling, "sampling")
            at = places_of(theirs, own, "sampling", "inputs")
            sampling = [other[i] for i in at]
        _, drawn = distribution_of(sampling, None, "sampling")
        if drawn.d != meant.d:
            raise BotorchTensorDimensionError(
                f"Expected `sampling` to have one distribution per marginal "
                f"({meant.d}), but got {drawn.d}."
            )
        if isinstance(drawn, GaussianCopula) and isinstance(meant, GaussianCopula):
            drawn = replace(drawn, factor=meant.factor)
        X = drawn.drawn(n, seed, method)
        never = drawn.log_density(meant.drawn(n, seed, method)).isneginf()
        if bool(never.all()):
            wanted, came = "to cover the distribution", "got one that never draws of it"
            remedy = "Let its ranges hold those of the marginals."
            raise ValueError(complaint("sampling", wanted, came, remedy))
        if bool(never.any()):
            share = float(never.double().mean())
            warnings.warn(
                f"Expected `sampling` to cover the distribution, but {share:.2g} of it "
                "is never drawn, and counts as not above. Widen `sampling`, unless "
                "nothing is above there.",
                InputDataWarning,
                stacklevel=2,
            )
        ratio = meant.log_density(X) - drawn.log_density(X)
        return cls(X, names=names, weights=ratio.exp(), total=n, is_sample=True)

    def to(self, device: Any) -> Pool:
        r"""The pool for strategies that compute on another device.

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
        centres = before.distribution.normal_numbers(self.X[rows])
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
        r"""The share of ``total`` of each row (``N``), by weights if there are any.

        They add up to 1, if there is no ``total`` that says otherwise.
        """
        weights = self.weights
        if weights is None:
            weights = torch.ones(len(self), dtype=torch.float64)
        return weights / (weights.sum() if self.total is None else self.total)

    @property
    def is_weighted(self) -> bool:
        r"""Whether a share of the rows is more than a number of rows.

        They have weights, or were drawn from a distribution. Pictures and cards then
        say how much is above.
        """
        return self.weights is not None or self.is_sample

    @property
    def effective_size(self) -> float:
        r"""The number of rows of equal weight that tell as much about a share.

        Source:
            Kish (1965): ``(sum w)^2 / sum w^2``.
        """
        return float(self.mass.sum().square() / self.mass.square().sum())

    def __repr__(self) -> str:
        r"""A short form: the number of rows and the inputs, without tensors.

        Example:
            >>> Pool([[1.0, 2.0], [1.5, 2.5]], names=("depth", "heat"), costs=[1, 3])
            Pool(2 rows, inputs depth, heat; with costs)
        """
        shown = [*(self.names or ())[:SHOWN], *["..."] * (self.d > SHOWN)]
        inputs = f"input{'s' * (self.d > 1)} {', '.join(shown)}"
        parts = ("features", "costs", "noise_var", "weights", "table")
        given = [name for name in parts if getattr(self, name) is not None]
        more = f"; with {', '.join(given)}" if given else ""
        return f"Pool({len(self):,} row{'s' * (len(self) != 1)}, {inputs}{more})"

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.to_frame())

    @property
    def d(self) -> int:
        r"""The number of inputs of the model: columns of ``X``."""
        return self.X.shape[-1]

    @cached_property
    @ordinary
    def bounds(self) -> Tensor:
        r"""The smallest and the largest values of the inputs (``2 x d``).

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

    @property
    def sources(self) -> tuple[str, ...]:
        r"""The names of the sources of a pool from ``at_sources``, else empty."""
        if self.target is None or self.table is None:
            return ()
        return tuple(str(name) for name in self.table[SOURCE].unique())

    @cached_property
    def levels(self) -> Tensor:
        r"""The number in the last column of ``X`` at each source (``M``).

        Of sources that are numbers these themselves, else 0, 1 and so on.
        """
        return self.X[:: len(self.without_sources), -1]

    @property
    def is_fidelity(self) -> bool:
        r"""Whether sources are numbers, such as sizes of a mesh, and not names."""
        if self.target is None or self.table is None:
            return False
        return bool(pd.api.types.is_numeric_dtype(self.table[SOURCE]))

    @cached_property
    def without_sources(self) -> Pool:
        r"""The pool that ``at_sources`` repeated once for each source; else itself."""
        return self if self.target is None else self.once(len(self.sources))

    @property
    def of_target(self) -> slice:
        r"""The rows that measure what is decided: of sources the target's, else all."""
        n = len(self.without_sources)
        first = (self.target or 0) * n
        return slice(first, first + n)

    def once(self, n: int) -> Pool:
        r"""The pool that this one repeats, without the last column.

        Args:
            n: The number of outputs or sources that the last column counts.
        """
        N, table = len(self) // n, self.table
        return Pool(
            self.X[:N, :-1],
            names=(self.names or ())[:-1],
            table=None if table is None else table.iloc[:N, :-1],
            weights=None if self.weights is None else self.weights[:N],
            total=None if self.total is None else self.total / n,
            is_sample=self.is_sample,
        )

    def at_source(self, X: Tensor, source: Any) -> Tensor:
        r"""Points of a history with the number of their source as last column.

        Args:
            X: ``n x d`` points, in the columns of the pool without sources.
            source: The name of the source, or ``n`` of them; where sources are numbers
                any finite ones; ``None``: the target.

        Raises:
            ValueError: If the pool has no such source.
            BotorchTensorDimensionError: If there are other columns.
        """
        name = "history.source"
        if self.target is None:
            wanted, remedy = "to be left out", "Write `pool.at_sources(...)` first."
            came = f"got {source!r} and a pool without sources"
            raise ValueError(complaint(name, wanted, came, remedy))
        same_columns(X, "history.X", self.d - 1, "the pool without sources")
        if source is None:
            source = self.sources[self.target]
        several = source if isinstance(source, tuple) else (source,)
        numbers = dict(zip(self.sources, self.levels.tolist(), strict=True))
        if self.is_fidelity:
            for one in several:
                with suppress(TypeError, ValueError):
                    numbers[str(one)] = self._level_of(float(one))

        def found(one: Any) -> float:
            return numbers.get(str(one), math.nan)

        lost = [one for one in several if not math.isfinite(found(one))]
        if lost:
            wanted = f"to be a source of the pool, {list(self.sources)}"
            wanted += ", or another number" if self.is_fidelity else ""
            raise ValueError(complaint(name, wanted, f"got {lost[0]!r}"))
        column = torch.tensor([*map(found, several)], dtype=torch.float64).to(X)
        return torch.cat((X, column.expand(len(X)).unsqueeze(-1)), dim=-1)

    def sources_at(self, X: Tensor) -> tuple[Any, ...]:
        r"""The names of the sources of points, or numbers, by their last column.

        Args:
            X: ``n x d`` points, in the columns of this pool.
        """
        named = {} if self.is_fidelity else dict(enumerate(self.sources))
        return tuple(named.get(number, number) for number in X[:, -1].tolist())

    def noise_at(self, X: Tensor) -> Tensor | None:
        r"""The noise variances at ``n x d`` points, where all rows share one (``n``).

        With sources, where all rows of a point's source do.
        """
        if self.noise_var is None or X.shape[-1] != self.d:
            return None
        has_sources = self.target is not None
        at, rows = X[:, -1] * has_sources, self.X[:, -1] * has_sources
        noise = torch.zeros_like(at)
        for number in at.unique():
            shared = self.noise_var[rows == number].unique()
            if len(shared) != 1:  # another level of a fidelity, or rows of their own
                return None
            noise[at == number] = shared
        return noise

    def _level_of(self, number: float) -> float:
        r"""The level that a number is but for rounding; else the number itself."""
        apart = (self.levels - number).abs()
        is_level = float(apart.min()) <= SAME_LEVEL * float(self.levels.abs().max())
        return float(self.levels[apart.argmin()]) if is_level else number

    @property
    def n_inputs(self) -> int:
        r"""The number of inputs; a word is one, whatever the number of its levels."""
        levels = [n for _, n in self.words.values()]
        return self.d - sum(levels) + len(levels)

    @cached_property
    def described(self) -> Rows:
        r"""The table's description of the rows, by which they are found."""
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
        if self.target is not None:
            digest.update(f"target{self.target}".encode())
        return digest.hexdigest()

    @property
    def labels(self) -> pd.Index:
        r"""The labels of the rows (``N``): the index of the table, else 0, 1, 2, ..."""
        return pd.RangeIndex(len(self)) if self.table is None else self.table.index

    @cached_property
    def _inputs(self) -> Inputs:
        assert self.names is not None  # set in __post_init__
        return Inputs(self.names, self.X.cpu().numpy(), self.described.columns)

    def points(self, X: Any, name: str = "X") -> Tensor:
        r"""Points of the model, from a table or from bare numbers.

        Named values are matched by name: a table, a dictionary of columns or a list of
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
            ValueError: If an input is missing, or a value does not belong to its input.
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
        r"""The first row with some inputs, or ``None`` if no row has them.

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
        r"""A pool with every row at each of ``K`` noise levels: ``K N`` rows.

        The level ``0, ..., K - 1`` is a last column ``noise_level`` that the model must
        leave out (``TruVaRStrategy`` does it for kernels and for its default model;
        other strategies refuse models that do not).

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
            table = repeated(self.table, K)
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
        r"""A pool with every row once per output: each row measures one output.

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
        return self._once_for_each(names, "outputs", OUTPUT, costs, noise_var)

    def at_sources(
        self,
        sources: Sequence[str | float],
        costs: Any,
        target: str | float | None = None,
        noise_var: Any = None,
    ) -> Pool:
        r"""A pool with every row once per source of values, such as a simulation.

        For ``Strategy(pool.at_sources(...), goal)``, which then says which source to
        ask next, in which row. It decides the rows of this pool, for the target alone:
        the other sources are measured as far as they tell of it, per cost. A last
        column ``source`` says which one a row measures: sources that are numbers, such
        as sizes of a mesh, stand there as they are, names by 0, 1 and so on, and the
        table has the names.

        Example:
            >>> import torch
            >>> pool = Pool(torch.linspace(0, 1, 3).unsqueeze(-1))
            >>> meshes = pool.at_sources(("coarse", "fine"), costs=(1, 50))
            >>> meshes.to_frame()["source"].tolist()[2:4], meshes.target
            (['coarse', 'fine'], 1)

        Args:
            sources: Their names, or numbers, which are levels of a fidelity
                (``FidelityDiscrepancies``): all rows of the first source come first,
                then those of the next one.
            costs: ``M`` costs of one measurement, or a series or dictionary by the
                sources; so ``noise_var``.
            target: The source that the goal is about; default the last one.
            noise_var: ``M`` known noise variances of a measurement, squares of the
                units of ``y``; 0 for exact ones, such as simulations.

        Raises:
            ValueError: If a number is out of range, names repeat, ``target`` is none of
                them, or the rows have costs, features or noise variances of their own.
            BotorchTensorDimensionError: If the lengths differ.
        """
        is_fidelity = not isinstance(sources, str) and all(map(is_number, sources))
        kind: Any = float if is_fidelity else str
        names = sources if isinstance(sources, str) else [*map(kind, sources)]
        found = self._once_for_each(names, "sources", SOURCE, costs, noise_var)
        at: Any = names[-1] if target is None else target
        at = at if is_fidelity else str(at)
        one_of(at, "target", names)
        return replace(found, target=names.index(at))

    def _once_for_each(
        self, names: Sequence[Any], argument: str, column: str, costs: Any, noise: Any
    ) -> Pool:
        r"""The pool's rows once for each output or source, which a last column numbers.

        Args:
            names: The names of the outputs or sources; numbers stand for themselves.
            argument: The argument that has them.
            column: The name of the column.
            costs: One for each.
            noise: Their noise variances, or ``None``.
        """
        if isinstance(names, str) or len(names) < 2:
            wanted = f"to name at least two {argument}"
            remedy = f'Write `{argument}=("a", "b")`.'
            raise ValueError(complaint(argument, wanted, f"got {names!r}", remedy))
        _check_names(names, len(names), argument)
        are_names = isinstance(names[0], str)
        each = range(len(names)) if are_names else names
        parts = ("features", "costs", "noise_var")
        own = [name for name in parts if getattr(self, name) is not None]
        columns = tuple(self.names or ())
        if own or column in columns:
            raise ValueError(
                "Expected a pool of bare points, but it has "
                f"{' and '.join(own) or column} already. Leave it out."
            )
        M, N, each_one = len(names), len(self), pd.Index(names)

        def numbers(given: Any, name: str) -> Tensor:
            given = in_order(given, each_one, name, others=f"the {argument}")
            one = argument.removesuffix("s")
            found = non_negative_vector(given, name, M, one)
            return found.repeat_interleave(N)

        number = real_vector(each, argument, M, argument.removesuffix("s"))
        described = pd.DataFrame(self.X.numpy(), columns=list(columns))
        table = repeated(described if self.table is None else self.table, M)
        table[column] = [name for name in names for _ in range(N)]
        number = number.repeat_interleave(N).unsqueeze(-1)
        return Pool(
            torch.cat((self.X.repeat(M, 1), number), dim=-1),
            costs=numbers(costs, "costs"),
            noise_var=None if noise is None else numbers(noise, "noise_var"),
            names=(*columns, column),
            table=table,
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


def _check_names(
    names: Sequence[str] | None, d: int, argument: str = "names"
) -> tuple[str, ...]:
    r"""The column names, checked to differ; ``x0, x1, ...`` where none are given."""
    if names is None:
        return tuple(f"x{i}" for i in range(d))
    if isinstance(names, str) or not isinstance(names, Iterable) or len(names) != d:
        wanted = f"to name each of the {d} columns of `X`"
        raise ValueError(complaint("names", wanted, f"got {names!r}"))
    if len(set(names)) != d:
        raise ValueError(complaint(argument, "to differ", f"got {list(names)}"))
    return tuple(str(name) for name in names)


def _set_fields(record: Any, **values: Any) -> None:
    r"""Set the checked values of a new record; a frozen dataclass needs this detour."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def as_html(words: str, table: pd.DataFrame) -> str:
    r"""Words above a table, as notebooks show them; of a long one both ends."""
    return f"<p>{html.escape(words)}</p>{table.to_html(max_rows=10)}"


def beside(table: pd.DataFrame, answer: pd.DataFrame) -> pd.DataFrame:
    r"""A table with columns added; a name that it has already ends in ``_lse``."""
    taken = {name: f"{name}_lse" for name in answer if name in table}
    answer = answer.rename(columns=taken).set_index(table.index)
    return pd.concat((table, answer), axis=1)
