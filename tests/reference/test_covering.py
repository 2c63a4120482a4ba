r"""The part of a product of parameters that runs by default."""

import itertools

import pytest

from tests.covering import chosen, covering, spread


@pytest.mark.parametrize("sizes", [(4, 2), (3, 3, 3), (2, 5, 3, 2)])
def test_every_value_is_kept_once_at_least(sizes):
    factors = [range(n) for n in sizes]
    taken = chosen(factors, 1)
    assert len(taken) == max(sizes)
    for i, values in enumerate(factors):
        assert {cell[i] for cell in taken} == set(values)


@pytest.mark.parametrize("sizes", [(4, 2), (3, 3, 3), (2, 5, 3, 2)])
def test_every_pair_of_values_is_kept_once_at_least(sizes):
    factors = [range(n) for n in sizes]
    taken = chosen(factors, 2)
    for i, j in itertools.combinations(range(len(sizes)), 2):
        met = {(cell[i], cell[j]) for cell in taken}
        assert met == set(itertools.product(factors[i], factors[j]))
    one, two = sorted(sizes)[-2:]
    assert len(taken) <= 1.4 * one * two


def test_values_that_are_left_over_are_spread():
    taken = chosen([range(16), range(2)], 1)
    assert sum(cell[1] for cell in taken) == 8


@pytest.mark.parametrize(
    ("in_slow", "marks"), [(2, {"slow"}), (1, {"slow", "exhaustive"})]
)
def test_the_whole_product_is_there_and_the_rest_is_slow(in_slow, marks):
    mark = covering("a, b", "xyz", [True, False], in_slow=in_slow)
    names, cells = mark.args
    assert names == "a, b"
    whole = set(itertools.product("xyz", [True, False]))
    assert {cell.values for cell in cells} == whole
    default = [cell.values for cell in cells if not cell.marks]
    assert default == [("x", True), ("y", False), ("z", True)]
    assert {m.name for cell in cells for m in cell.marks} == marks


def test_the_slow_run_shows_pairs_and_leaves_the_rest_to_the_exhaustive_one():
    sizes = (4, 3, 2, 2)
    mark = covering("a, b, c, d", *map(range, sizes))
    by_marks = {}
    for cell in mark.args[1]:
        names = tuple(sorted(m.name for m in cell.marks))
        by_marks.setdefault(names, []).append(cell.values)
    assert set(by_marks) == {(), ("slow",), ("exhaustive", "slow")}
    assert sum(map(len, by_marks.values())) == 4 * 3 * 2 * 2
    shown = by_marks[()] + by_marks[("slow",)]
    for one, other in itertools.combinations(range(4), 2):
        pairs = {(cell[one], cell[other]) for cell in shown}
        assert len(pairs) == sizes[one] * sizes[other]


def test_some_show_as_many_values_as_they_can():
    cells = [{"a": i, "b": j} for i in range(4) for j in range(3)]
    for start in range(12):
        assert start in spread(cells, 4, start)
        taken = [cells[i] for i in spread(cells, 4, start)]
        assert {cell["a"] for cell in taken} == {0, 1, 2, 3}
        assert {cell["b"] for cell in taken} == {0, 1, 2}
    assert spread(cells, 20) == set(range(12))
    line = [{"a": i} for i in range(16)]
    assert set.union(*(spread(line, 4, start) for start in range(4))) > spread(line, 4)


@pytest.mark.some(2, slow=3)
@pytest.mark.parametrize("value", range(8))
def test_of_eight_cases_two_run_by_default_and_three_more_if_slow(value, request):
    of_this = request.node.nodeid.partition("[")[0]
    cases = [one for one in request.session.items if one.nodeid.startswith(of_this)]
    default = [one for one in cases if not one.get_closest_marker("slow")]
    assert len(default) <= 2
    assert len([one for one in cases if not one.get_closest_marker("exhaustive")]) <= 5
    assert not any(one.get_closest_marker("exhaustive") for one in default)
