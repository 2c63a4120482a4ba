r"""Sides of rows against the pseudocode, point by point."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse import Pool
from botorch_lse.confidence import Regions, classify, classify_implicit
from botorch_lse.confidence.classify import Sides
from tests.strategies.runs import rows


def regions_of(lower: list[float], upper: list[float]) -> Regions:
    low, high = torch.tensor(lower).double(), torch.tensor(upper).double()
    return Regions(low, high, (low + high) / 2, (high - low) / 4)


def test_above_is_strict_and_tested_first() -> None:
    regions = regions_of([1.0, 1.1, 0.0, 0.5, 0.9], [2.0, 2.0, 1.0, 1.5, 1.1])
    answer = classify(regions, 1.0)
    assert rows(answer.above) == {1}
    assert rows(answer.below) == {2}
    assert rows(answer.undecided) == {0, 3, 4}
    relaxed = classify(regions, 1.0, epsilon=0.2)
    assert rows(relaxed.above) == {0, 1, 4}
    assert rows(relaxed.below) == {2}


intervals = st.lists(
    st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=12
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(intervals, st.floats(-5, 5), st.floats(0, 3))
def test_explicit_sides_follow_algorithm_one(
    ends: list[tuple[float, float]], threshold: float, epsilon: float
) -> None:
    lower, upper = [min(e) for e in ends], [max(e) for e in ends]
    H, L = set(), set()
    for i in range(len(ends)):
        if lower[i] + epsilon > threshold:
            H.add(i)
        elif upper[i] - epsilon <= threshold:
            L.add(i)
    answer = classify(regions_of64(lower, upper), threshold, epsilon)
    assert rows(answer.above) == H
    assert rows(answer.below) == L
    assert rows(answer.undecided) == set(range(len(ends))) - H - L


def regions_of64(lower: list[float], upper: list[float]) -> Regions:
    low = torch.tensor(lower, dtype=torch.float64)
    high = torch.tensor(upper, dtype=torch.float64)
    return Regions(low, high, (low + high) / 2, torch.ones_like(low))


def literal_implicit(
    path: list[tuple[np.ndarray, np.ndarray]], omega: float, epsilon: float, drop: bool
) -> tuple[set[int], set[int], set[int], set[int]]:
    r"""Algorithm 2 along a path of regions: H, L (with the M sets), U and Z."""
    n = len(path[0][0])
    H: set[int] = set()
    L: set[int] = set()
    MH: set[int] = set()
    ML: set[int] = set()
    U, Z = set(range(n)), set(range(n))
    for low, high in path:
        h_opt = omega * max(high[i] for i in Z)
        f_pes = max(low[i] for i in Z)
        h_pes = omega * f_pes
        for i in sorted(U):
            if low[i] + epsilon >= h_opt:
                U.discard(i)
                (H if high[i] < f_pes else MH).add(i)
            elif high[i] - epsilon <= h_pes:
                U.discard(i)
                (L if high[i] < f_pes else ML).add(i)
        if drop:
            H |= {i for i in MH if high[i] < f_pes}
            L |= {i for i in ML if high[i] < f_pes}
            MH, ML = MH - H, ML - L
        Z = U | MH | ML
        if not Z:
            break
    return H | MH, L | ML, U, Z


def nested_path(seed: int, n: int, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(seed)
    f = random.normal(3.0, 2.0, n)
    low, high = f - random.uniform(2, 5, n), f + random.uniform(2, 5, n)
    path = []
    for _ in range(steps):
        low = low + random.uniform(0, 0.5, n) * (f - low)
        high = high - random.uniform(0, 0.5, n) * (high - f)
        path.append((low, high))
    return path


@pytest.mark.some(2)
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_implicit_sets_follow_algorithm_two(drop: bool, epsilon: float) -> None:
    readings_differ = False
    for seed in range(60):
        path = nested_path(seed, 15, 12)
        sides = Sides.start(15)
        for t, (low, high) in enumerate(path, start=1):
            ends = torch.tensor(low), torch.tensor(high)
            sides = sides.update_implicit(*ends, 0.7, epsilon, drop)
            H, L, U, Z = literal_implicit(path[:t], 0.7, epsilon, drop)
            assert rows(sides.side == 1) == H
            assert rows(sides.side == -1) == L
            assert rows(sides.side == 0) == U
            assert rows(sides.candidates) == Z
        other = literal_implicit(path, 0.7, epsilon, not drop)
        readings_differ |= other[3] != Z
    assert readings_differ


def test_implicit_levels_come_from_the_candidates() -> None:
    low, high = torch.tensor([1.0, 5.0]).double(), torch.tensor([4.5, 8.0]).double()
    sides = Sides.start(2).update_implicit(low, high, 0.5, 0.0)
    assert (sides.optimistic, sides.pessimistic) == (4.0, 2.5)
    assert sides.side.tolist() == [0, 1]
    lower = Sides.start(2).update_implicit(low - 3, high - 3, 0.5, 0.0)
    assert lower.side.tolist() == [0, 0]


def test_dropping_maximisers_needs_a_strictly_lower_upper_end() -> None:
    low, high = torch.tensor([0.0, 5.0]).double(), torch.tensor([2.0, 6.0]).double()
    dropped = Sides.start(2).update_implicit(low, high, 0.5, 0.0)
    assert dropped.side.tolist() == [-1, 1]
    assert dropped.candidates.tolist() == [False, True]
    tie = torch.tensor([5.0, 6.0]).double()
    kept = Sides.start(2).update_implicit(low, tie, 0.9, 0.5)
    assert kept.side.tolist() == [-1, 1]
    assert kept.candidates.tolist() == [True, True]


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_classify_implicit_is_one_step_of_algorithm_two(epsilon: float) -> None:
    for seed in range(20):
        low, high = nested_path(seed, 10, 6)[-1]
        answer = classify_implicit(regions_of64(list(low), list(high)), 0.6, epsilon)
        H, L, U, _ = literal_implicit([(low, high)], 0.6, epsilon, False)
        assert (rows(answer.above), rows(answer.below)) == (H, L)
        assert rows(answer.undecided) == U


def test_end_of_path_decides_what_was_decided_along_it() -> None:
    for seed in range(20):
        path = nested_path(seed, 15, 10)
        H, L, _, _ = literal_implicit(path, 0.7, 0.0, False)
        low, high = path[-1]
        answer = classify_implicit(regions_of64(list(low), list(high)), 0.7)
        assert rows(answer.above) >= H
        assert rows(answer.below) >= L


def test_probabilities_and_expected_errors_are_gaussian() -> None:
    regions = regions_of64([0.0, 2.0], [1.9, 4.0])
    answer = classify(regions, 1.9, 0.0)
    expected = [0.5 * math.erfc((1.9 - m) / math.sqrt(2)) for m in (0.95, 3.0)]
    assert answer.probability_above.tolist() == pytest.approx(expected, rel=1e-12)
    assert rows(answer.below) == {0}
    assert rows(answer.above) == {1}
    wrong = expected[0] + 1 - expected[1]
    assert answer.expected_wrong == pytest.approx(wrong, rel=1e-12)


def test_undecided_rows_are_guessed_by_their_probability() -> None:
    answer = classify(regions_of64([0.0, -2.0], [3.0, 2.5]), 1.0)
    assert rows(answer.undecided) == {0, 1}
    assert answer.best_guess.tolist() == [True, False]
    assert "No confidence" in answer.guarantee


def test_answer_knows_its_pool() -> None:
    pool = Pool(torch.rand(2, 1).double())
    regions = Regions(*torch.zeros(4, 2).double(), pool)
    assert classify(regions, 1.0).pool is pool


@pytest.mark.parametrize("call", [classify, classify_implicit])
def test_only_regions_are_classified(call) -> None:
    with pytest.raises(ValueError, match="`regions` to be `Regions`, but got Tensor"):
        call(torch.zeros(3), 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: classify(r, float("inf")), "`threshold` to be finite, but got inf"),
        (lambda r: classify(r, [1.0, 2.0]), "`threshold` to be one number"),
        (lambda r: classify(r, 1.0, -0.1), r"`epsilon` in \[0, inf\), but got -0.1"),
        (lambda r: classify_implicit(r, 1.2), r"`omega` in \(0, 1\).*give `threshold`"),
        (lambda r: classify_implicit(r, 0.0), r"`omega` in \(0, 1\), but got 0"),
        (lambda r: classify_implicit(r, 0.5, -1.0), "`epsilon` in"),
    ],
)
def test_numbers_out_of_range_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(regions_of([0.0], [1.0]))
