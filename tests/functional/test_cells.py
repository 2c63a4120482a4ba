r"""Regions as tables of cells, against every point that intervals allow."""

from __future__ import annotations

import itertools

import pytest
import torch
from scipy.stats import norm

from botorch_lse.functional import cells
from botorch_lse.functional.cells import UNKNOWN
from botorch_lse.strategies import Above, Below, Between, Levels, Region

SMOOTH = Above(0.3)
OTHER = Above(-0.2, output=1)
REGIONS: dict[str, Region] = {
    "above": SMOOTH,
    "below": Below(0.3),
    "not": ~SMOOTH,
    "band": Between(-0.4, 0.5),
    "two bands": Between(-0.9, -0.5) | Between(0.1, 0.7),
    "certain": SMOOTH | ~SMOOTH,
    "impossible": SMOOTH & ~SMOOTH,
    "and": SMOOTH & OTHER,
    "or": SMOOTH | OTHER,
    "exclusive or": (SMOOTH & ~OTHER) | (~SMOOTH & OTHER),
    "gap": Above(0.0, output=1),
    "three": (SMOOTH & OTHER) | Between(-0.5, 0.5, output=2),
    "levels": Levels((-0.6, 0.0, 0.6)),
    "empty band": Above(0.2) & Below(0.2),
}
VALUES = (-1.2, -0.75, -0.45, -0.3, -0.1, 0.05, 0.15, 0.25, 0.4, 0.55, 0.65, 0.9)
"""A value in each interval between levels, and beyond."""


def answer(region: Region, values: tuple[float, ...]) -> int:
    r"""The class of a point, by its definition."""
    is_above = {
        leaf: torch.tensor(values[int(leaf.output)] > leaf.threshold)
        for leaf in region.leaves
    }
    return int(region.class_of(is_above))


def boxes(m: int, n: int = 60) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(m)
    ends = 2.6 * torch.rand(2, m, n, generator=generator, dtype=torch.float64) - 1.3
    return list(ends.amin(dim=0)), list(ends.amax(dim=0))


@pytest.mark.some(10)
@pytest.mark.parametrize("many", [1, 10**6])
@pytest.mark.parametrize("name", REGIONS)
def test_a_box_is_decided_exactly_when_all_its_points_agree(
    monkeypatch, name, many
) -> None:
    monkeypatch.setattr(cells, "MANY", many)
    region = REGIONS[name]
    m = region.n_outputs
    lower, upper = boxes(m)
    found = region.values.cells.agreed(region.values.allowed(lower, upper)).tolist()
    for n in range(len(lower[0])):
        inside = [
            [v for v in VALUES if lower[j][n] <= v <= upper[j][n]]
            + [float(lower[j][n]), float(upper[j][n])]
            for j in range(m)
        ]
        classes = {answer(region, values) for values in itertools.product(*inside)}
        wanted = classes.pop() if len(classes) == 1 else UNKNOWN
        assert found[n] == wanted


@pytest.mark.some(5)
@pytest.mark.parametrize("name", REGIONS)
def test_a_level_matters_exactly_where_crossing_it_changes_the_class(name) -> None:
    region = REGIONS[name]
    m = region.n_outputs
    lower, upper = boxes(m)
    allowed = region.values.allowed(lower, upper)
    matters = region.values.cells.matters(allowed)
    for n in range(len(lower[0])):
        inside = [
            sorted(
                [v for v in VALUES if lower[j][n] <= v <= upper[j][n]]
                + [float(lower[j][n]), float(upper[j][n])]
            )
            for j in range(m)
        ]
        for j, levels in enumerate(region.values.cells.levels):
            for i in range(levels.shape[1]):
                level = float(levels[0, i])
                others = [levels[0, k] for k in range(levels.shape[1]) if k != i]
                pairs = [
                    (a, b)
                    for a, b in itertools.product(inside[j], repeat=2)
                    if a <= level < b and not any(a <= t < b for t in others)
                ]
                rest = itertools.product(*(inside[k] for k in range(m) if k != j))
                changes = any(
                    answer(region, (*o[:j], a, *o[j:]))
                    != answer(region, (*o[:j], b, *o[j:]))
                    for o in rest
                    for a, b in pairs
                )
                assert bool(matters[j][n, i]) == changes


@pytest.mark.parametrize("name", REGIONS)
def test_probabilities_are_those_of_draws(name) -> None:
    region = REGIONS[name]
    m, n, draws = region.n_outputs, 5, 20_000
    generator = torch.Generator().manual_seed(7)
    shape = (m, n)
    mean = torch.randn(shape, generator=generator, dtype=torch.float64) / 2
    sigma = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.1
    found = region.values.cells.probabilities(list(mean), list(sigma))
    assert torch.allclose(found.sum(dim=-1), torch.ones(n).double(), rtol=1e-12)
    noise = torch.randn(draws, *shape, generator=generator, dtype=torch.float64)
    values = mean + sigma * noise
    is_above = {
        leaf: values[:, int(leaf.output)] > leaf.threshold for leaf in region.leaves
    }
    classes = region.class_of(is_above).long()
    for k in range(region.n_classes):
        share = (classes == k).double().mean(dim=0)
        error = (found[:, k] * (1 - found[:, k]) / draws).sqrt()
        assert bool(((share - found[:, k]).abs() <= 4 * error + 1e-9).all())


def test_probabilities_keep_their_digits_in_both_tails() -> None:
    band = Between(8.0, 9.0)
    mean = torch.tensor([0.0, 17.0]).double()
    found = band.values.cells.probabilities([mean], [torch.ones(2).double()])[:, 1]
    wanted = norm.sf(8.0) - norm.sf(9.0)
    assert found.tolist() == pytest.approx([wanted, wanted], rel=1e-10)


def test_slopes_are_differences_of_probabilities() -> None:
    region = REGIONS["three"]
    mean = [torch.tensor([0.1, -0.4]).double() for _ in range(3)]
    sigma = [torch.tensor([0.5, 0.9]).double() for _ in range(3)]
    slopes = region.values.cells.slopes(mean, sigma)
    # By one output alone: moving its mean moves the probability along the slope.
    h = 1e-6
    for j in range(3):
        ends = []
        for sign in (-1, 1):
            moved = [m + sign * h * (k == j) for k, m in enumerate(mean)]
            ends.append(region.values.cells.probabilities(moved, sigma))
        change = (ends[1] - ends[0]) / (2 * h)
        z = (mean[j].unsqueeze(-1) - region.values.cells.levels[j]) / sigma[
            j
        ].unsqueeze(-1)
        density = (-0.5 * z.square()).exp() / (2 * torch.pi) ** 0.5
        by_level = slopes[j,] * (density / sigma[j].unsqueeze(-1)).unsqueeze(1)
        assert torch.allclose(by_level.sum(dim=-1), change, atol=1e-8)
    assert set(slopes) == {(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)}


@pytest.mark.parametrize("name", REGIONS)
def test_margins_hold_for_every_point_of_a_box(name) -> None:
    region = REGIONS[name]
    m = region.n_outputs
    lower, upper = boxes(m, 40)
    scale = [1.0, 2.0, 0.5][:m]
    low, high = region.values.cells.margins(lower, upper, scale)
    decided = region.values.cells.agreed(region.values.allowed(lower, upper))
    generator = torch.Generator().manual_seed(3)
    for _ in range(30):
        share = torch.rand(m, 40, generator=generator, dtype=torch.float64)
        points = [a + u * (b - a) for a, b, u in zip(lower, upper, share, strict=True)]
        margin = region.values.cells.margins(points, points, scale)[0]
        assert bool(((low - 1e-12 <= margin) & (margin <= high + 1e-12)).all())
    last = region.n_classes - 1
    assert bool((low[decided == last] > 0).all())
    assert bool((high[(decided != last) & (decided != UNKNOWN)] < 0).all())


def test_levels_of_each_row_are_put_in_order_row_by_row() -> None:
    region = Above((0.0, 1.0, 0.5)) & Below(0.5)
    region.check(3)
    points = [torch.tensor([0.2, 0.7, 0.5]).double()]
    found = region.values.cells.agreed(region.values.allowed(points, points))
    assert found.tolist() == [1, 0, 0]
    point = [torch.tensor([0.4, 0.4, 0.4]).double()]
    assert region.values.cells.agreed(region.values.allowed(point, point)).tolist() == [
        1,
        0,
        0,
    ]


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_with_an_accuracy_a_decision_is_that_of_a_value_so_near(epsilon) -> None:
    region = Between(-0.4, 0.5, epsilon)
    generator = torch.Generator().manual_seed(1)
    ends = 3 * torch.rand(2, 500, generator=generator, dtype=torch.float64) - 1.5
    lower, upper = ends.amin(dim=0), ends.amax(dim=0)
    found = region.values.cells.agreed(region.values.allowed([lower], [upper]))
    near = torch.linspace(-1, 1, 201, dtype=torch.float64) * epsilon
    for share in (0.0, 0.3, 0.7, 1.0):
        values = (lower + share * (upper - lower)).unsqueeze(-1) + near
        inside = (values > -0.4) & (values <= 0.5)
        for k in (0, 1):
            agrees = (inside == bool(k)).any(dim=-1)
            assert bool(agrees[found == k].all())
    exact = Between(-0.4, 0.5)
    wider = exact.values.cells.agreed(exact.values.allowed([lower], [upper])) != UNKNOWN
    assert bool((found != UNKNOWN)[wider].all())
    assert int((found != UNKNOWN).sum()) > int(wider.sum())


@pytest.mark.parametrize("name", REGIONS)
def test_margins_of_what_is_not_known_are_infinite(name) -> None:
    region = REGIONS[name]
    m = region.n_outputs
    endless = [torch.full((3,), torch.inf).double()] * m
    start = [-end for end in endless]
    low, high = region.values.cells.margins(start, endless, [1.0] * m)
    # Unless the answer is certain before anything is known.
    known = region.values.cells.agreed(region.values.allowed(start, endless))
    assert (low == -torch.inf).tolist() == (known != region.n_classes - 1).tolist()
    assert bool((high[known == UNKNOWN] == torch.inf).all())
    assert not bool((low.isnan() | high.isnan()).any())


@pytest.mark.parametrize("name", REGIONS)
def test_points_are_of_the_last_class_by_its_definition(name) -> None:
    region = REGIONS[name]
    m, last = region.n_outputs, region.n_classes - 1
    points = list(itertools.product(VALUES, repeat=m))[::7]
    expected = [answer(region, point) == last for point in points]
    columns = list(torch.tensor(points, dtype=torch.float64).mT)
    assert region.values.cells.in_last(columns).tolist() == expected
    # The same of many draws of each row.
    twice = [torch.stack((own, own.flip(0)), dim=-1) for own in columns]
    found = region.values.cells.in_last(twice)
    assert found[:, 0].tolist() == expected
    assert found[:, 1].tolist() == expected[::-1]


def test_levels_of_each_row_say_by_row_what_is_of_the_last_class() -> None:
    levels = torch.tensor([0.0, 1.0, -1.0])
    values = torch.tensor([[0.5, -0.5], [0.5, 1.5], [0.5, -2.0]])
    above = Above(levels.tolist()).values.cells.in_last([values])
    assert above.tolist() == [[True, False], [False, True], [True, False]]
    band = Between((levels - 1).tolist(), levels.tolist()).values.cells.in_last(
        [values]
    )
    expected = (values > levels[:, None] - 1) & (values <= levels[:, None])
    assert torch.equal(band, expected)
