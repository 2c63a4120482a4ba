r"""Products of parameters of which a covering part runs by default."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import pytest

_GOLDEN = (5**0.5 - 1) / 2
IN_FULL = (pytest.mark.slow, pytest.mark.exhaustive)
"""Marks of what takes minutes, such as a rate by hundreds of simulated runs."""


def chosen(factors: Sequence[Sequence[object]], together: int) -> set[tuple[int, ...]]:
    r"""Places in the product in which all values of ``together`` factors meet.

    Greedy: always the cell that shows most that was not shown yet; of equals the one
    whose values were taken least, so that the others are spread as well.
    """

    def shown(cell: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
        return set(itertools.combinations(enumerate(cell), together))

    def worth(cell: tuple[int, ...]) -> tuple[int, int]:
        return len(cells[cell] & missing), -sum(used[v] for v in enumerate(cell))

    places = itertools.product(*(range(len(values)) for values in factors))
    cells = {cell: shown(cell) for cell in places}
    missing, used = set().union(*cells.values()), Counter[tuple[int, int]]()
    taken = set()
    while missing:
        best = max(cells, key=worth)
        missing -= cells[best]
        used.update(enumerate(best))
        taken.add(best)
    return taken


def covering(
    names: str,
    *factors: Sequence[object],
    together: int = 1,
    in_slow: int = 2,
) -> pytest.MarkDecorator:
    r"""Parametrize with a product, of which a covering part runs.

    In the default run each value of each factor occurs (``together=1``), or each pair
    of values of two factors (``together=2``); in the slow run each pair. The rest of
    the product is exhaustive.

    Args:
        names: The parameters' names, separated by commas, one for each factor.
        *factors: The values of each.
        together: How many factors' values meet in all combinations by default.
        in_slow: How many meet in the slow run.
    """
    taken = chosen(factors, min(together, len(factors)))
    slow = chosen(factors, min(in_slow, len(factors)))
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(
                *(values[i] for values, i in zip(factors, cell, strict=True)),
                marks=()
                if cell in taken
                else [pytest.mark.slow]
                if cell in slow
                else IN_FULL,
            )
            for cell in itertools.product(*(range(len(f)) for f in factors))
        ],
    )


def spread(cells: Sequence[Mapping[str, int]], n: int, start: int = 0) -> set[int]:
    r"""Places of ``n`` cells that show as many values of each factor as they can.

    Args:
        cells: By factor the place of its value.
        n: How many; all, if there are no more.
        start: The place of the first.
    """
    size = len(cells)
    order = [(start + i) % size for i in range(size)]
    # Neighbours are alike: each further one is looked for far from the last.
    order = [order[i] for i in sorted(range(size), key=lambda i: i * _GOLDEN % 1)]
    used, taken = Counter[tuple[str, int]](), list[int]()
    while len(taken) < min(n, size):
        rest = [i for i in order if i not in taken]
        best = min(rest, key=lambda i: sum(used[v] for v in cells[i].items()))
        used.update(cells[best].items())
        taken.append(best)
    return set(taken)


Level = tuple[str, str]
"""A factor and one of its levels."""
Need = tuple[str, Collection[str], str, Collection[str]]
"""A factor at one of some levels needs another factor at one of some levels."""


def pairwise(
    factors: Mapping[str, Collection[str]],
    needs: Sequence[Need],
    rng: random.Random,
) -> Iterator[dict[str, str]]:
    r"""Cases without end in which all pairs of levels meet, and then meet anew.

    Greedy: each case begins with a pair that was not met yet; to it come, in random
    order, the levels that meet most new pairs with those that are there.

    Args:
        factors: The levels of each factor. One that stands several times is taken as
            often where several levels meet as much.
        needs: Which levels go only with which others.
        rng: Random numbers.

    Yields:
        A level of each factor.
    """
    levels = [
        (name, level) for name in factors for level in dict.fromkeys(factors[name])
    ]
    fits = {one: {two for two in levels if two[0] != one[0]} for one in levels}
    for factor, some, other, allowed in needs:
        refused = {(other, level) for level in factors[other] if level not in allowed}
        for one in ((factor, level) for level in some):
            fits[one] -= refused
            for two in refused:
                fits[two].discard(one)
    pairs = [
        (one, two) for one, two in itertools.combinations(levels, 2) if two in fits[one]
    ]
    impossible: set[tuple[Level, Level]] = set()
    while True:
        missing = {*pairs} - impossible
        order = rng.sample(pairs, len(pairs))
        for pair in order:
            if pair not in missing:
                continue
            case = _filled(pair, factors, fits, missing, rng)
            if case is None:
                impossible.add(pair)
                continue
            missing -= {*itertools.combinations(case, 2)}
            yield dict(case)


TRIES = 20
"""Orders of the factors that are tried before two levels count as incompatible."""


def _filled(
    pair: tuple[Level, Level],
    factors: Mapping[str, Collection[str]],
    fits: Mapping[Level, set[Level]],
    missing: set[tuple[Level, Level]],
    rng: random.Random,
) -> list[Level] | None:
    r"""A case with two given levels, in the order of the factors, if there is one."""
    names = [*factors]
    place = {name: i for i, name in enumerate(names)}

    def news(level: Level, case: Sequence[Level]) -> int:
        ordered = (
            (own, level) if place[own[0]] < place[level[0]] else (level, own)
            for own in case
        )
        return sum(two in missing for two in ordered)

    for _ in range(TRIES):
        case = [*pair]
        rest = [name for name in names if name not in dict(pair)]
        for name in rng.sample(rest, len(rest)):
            open_ = [
                (name, level)
                for level in factors[name]
                if all((name, level) in fits[own] for own in case)
            ]
            if not open_:
                break
            worth = [news(level, case) for level in open_]
            best = max(worth)
            case.append(
                rng.choice([x for x, n in zip(open_, worth, strict=True) if n == best])
            )
        else:
            return sorted(case, key=lambda level: place[level[0]])
    return None


def more_in_full(
    names: str,
    few: object,
    many: object,
    rest: Sequence[pytest.MarkDecorator] = IN_FULL,
) -> pytest.MarkDecorator:
    r"""Parametrize with little, and with much in the exhaustive run.

    Args:
        names: One parameter's name, or several, separated by commas.
        few: Its value (a tuple of values for several names) in the default run.
        many: Its value in the exhaustive run.
        rest: The marks of ``many``.
    """
    return pytest.mark.parametrize(
        names, [few, pytest.param(*_values(names, many), marks=rest)]
    )


def _values(names: str, value: object) -> tuple[object, ...]:
    return value if "," in names else (value,)
