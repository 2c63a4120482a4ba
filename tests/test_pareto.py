r"""Gaps are checked against what they mean, by trying."""

from __future__ import annotations

import resource

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.utils.multi_objective.pareto import is_non_dominated
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_lse import pareto
from botorch_lse.papers import empirical_gaps, pareto_gaps, pareto_margins
from botorch_lse.papers.kone2025 import gaps as gaps_module
from botorch_lse.pareto import pareto_mask
from tests.processes import in_a_new_process


def drawn(seed: int, K: int, m: int, coarse: bool = False) -> Tensor:
    values = torch.randn(
        K, m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return (2 * values).round() / 2 if coarse else values


def dominates(a: Tensor, b: Tensor) -> bool:
    return bool((a >= b).all()) and bool((a > b).any())


def beats_everywhere(a: Tensor, b: Tensor) -> bool:
    return bool((a > b).all())


def undominated(means: Tensor, dominated_by=dominates) -> list[bool]:
    K = len(means)
    return [
        not any(dominated_by(means[j], means[i]) for j in range(K)) for i in range(K)
    ]


instances = st.tuples(
    st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 4), st.booleans()
)


@settings(max_examples=60, deadline=None)
@given(instances)
def test_the_mask_is_the_definition_of_dominance(instance) -> None:
    means = drawn(*instance)
    assert pareto_mask(means).tolist() == undominated(means)
    strict = undominated(means, beats_everywhere)
    assert pareto_mask(means, strict=True).tolist() == strict
    assert torch.equal(pareto_mask(means), is_non_dominated(means, deduplicate=False))


@pytest.mark.some(6)
@pytest.mark.parametrize(("screened", "pairs"), [(1, 1), (7, 20), (256, 2**21)])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_screening_keeps_the_definition_with_ties_and_duplicates(
    screened: int, pairs: int, strict: bool, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pareto, "SCREENED", screened)
    monkeypatch.setattr(pareto, "PAIRS", pairs)
    rule = beats_everywhere if strict else dominates
    for seed in range(3):
        free, coarse = drawn(seed, 20, m), drawn(seed, 25, m, coarse=True)
        means = torch.cat((free, coarse, free[::3], coarse[::2]))
        assert pareto_mask(means, strict).tolist() == undominated(means, rule)


def test_rows_whose_sums_round_to_the_same_are_told_apart() -> None:
    means = torch.tensor(
        [[1e16, 0.0], [1e16, 1.0], [0.0, 1e16], [1.0, 1e16]], dtype=torch.float64
    )
    assert float(means[0].sum()) == float(means[1].sum())
    assert pareto_mask(means).tolist() == [False, True, False, True]
    assert pareto_mask(means.flip(0)).tolist() == [True, False, True, False]
    assert pareto_mask(means, strict=True).all()


def test_equal_rows_are_all_kept() -> None:
    means = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert pareto_mask(means).tolist() == [True, True, True, False]
    assert pareto_gaps(means)[:2].tolist() == [0.0, 0.0]


@settings(max_examples=60, deadline=None)
@given(instances)
def test_a_dominated_row_raised_by_its_gap_is_just_undominated(instance) -> None:
    means, step = drawn(*instance), 1e-9
    gaps = pareto_gaps(means)
    for i in (~pareto_mask(means)).nonzero().view(-1).tolist():
        raised = means.clone()
        raised[i] += gaps[i] + step
        assert pareto_mask(raised)[i]
        if gaps[i] > 0:
            raised[i] = means[i] + gaps[i] - step
            assert not pareto_mask(raised, strict=True)[i]


def gap_between(means: Tensor, i: int, j: int, excess: Tensor) -> float:
    r"""The smaller of two ways in which ``j`` spoils what is known of optimal ``i``.

    Adding ``s`` to all outputs of ``j`` makes it dominate ``i``; taking ``s`` from all
    outputs of ``i`` frees ``j``, and ``excess`` of ``j`` keeps it dominated otherwise.
    """
    onto = min(s for s in steps(means[i] - means[j]) if covers(means[j] + s, means[i]))
    away = min(
        s
        for s in [0.0, *steps(means[j] - means[i])]
        if s >= 0 and covers(means[i] + s, means[j])
    )
    return min(onto, away + float(excess[j]))


def steps(differences: Tensor) -> list[float]:
    return differences.tolist()


def covers(a: Tensor, b: Tensor) -> bool:
    return bool((a >= b - 1e-12).all())


@settings(max_examples=60, deadline=None)
@given(instances)
def test_an_optimal_row_has_the_distance_to_its_nearest_rival(instance) -> None:
    means = drawn(*instance)
    gaps, optimal = pareto_gaps(means), pareto_mask(means)
    excess = torch.where(optimal, 0.0, gaps)
    for i in optimal.nonzero().view(-1).tolist():
        others = [j for j in range(len(means)) if j != i]
        expected = min(
            (gap_between(means, i, j, excess) for j in others), default=torch.inf
        )
        assert float(gaps[i]) == pytest.approx(max(expected, 0.0), abs=1e-10)


def test_no_shift_smaller_than_half_the_gap_changes_the_pareto_set() -> None:
    # Errors below gap / 2 of every mean cannot move a row to the other side.
    for seed in range(20):
        means = drawn(seed, 8, 2)
        gaps, optimal = pareto_gaps(means), pareto_mask(means)
        generator = torch.Generator().manual_seed(seed)
        size = float(gaps.min()) / 2 * (1 - 1e-9)
        for _ in range(50):
            error = torch.rand(8, 2, generator=generator, dtype=torch.float64) * 2 - 1
            assert torch.equal(pareto_mask(means + size * error), optimal)


def test_an_optimal_row_and_the_row_it_alone_dominates_share_a_gap() -> None:
    gaps = pareto_gaps([[1.0, 1.0], [0.8, 0.7]])
    assert gaps.tolist() == pytest.approx([0.2, 0.2])


def test_empirical_and_true_gaps_agree_without_ties() -> None:
    means = drawn(3, 40, 3)
    assert torch.equal(empirical_gaps(means), pareto_gaps(means))


def test_empirical_gaps_take_rows_dominated_weakly_for_optimal() -> None:
    means = [[1.0, 0.5], [1.0, 0.0], [0.0, 1.0]]
    assert pareto_gaps(means)[1] == 0.0
    assert empirical_gaps(means)[1] == 0.0
    assert pareto_mask(means, strict=True).all()


def test_margins_are_positive_where_undominated_and_minus_the_gap_elsewhere() -> None:
    means = drawn(5, 60, 2)
    margins, optimal = pareto_margins(means), pareto_mask(means)
    assert torch.equal(margins > 0, optimal)
    assert torch.equal(-margins[~optimal], pareto_gaps(means)[~optimal])


@settings(max_examples=60, deadline=None)
@given(instances)
def test_comparing_with_the_front_is_comparing_with_all_to_the_last_bit(
    instance,
) -> None:
    for means in (drawn(*instance), drawn(*instance).round()):  # and with ties
        difference = means - means.unsqueeze(1)  # of row i in the first place
        low = difference.amin(dim=-1)
        own = torch.eye(len(means), dtype=torch.bool)
        others = low.masked_fill(own, -torch.inf).amax(dim=1)
        assert torch.equal(pareto_margins(means), -others)
        dominated = ~pareto_mask(means)
        expected = low.amax(dim=1)[dominated].clamp_min(0.0)
        assert torch.equal(pareto_gaps(means)[dominated], expected)


def test_a_single_row_is_optimal_with_an_infinite_gap() -> None:
    assert pareto_mask([[1.0, 2.0]]).tolist() == [True]
    assert pareto_gaps([[1.0, 2.0]]).tolist() == [torch.inf]
    assert pareto_margins([[1.0, 2.0]]).tolist() == [torch.inf]


def test_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    means = drawn(1, 50, 3, coarse=True)
    functions = (pareto_mask, pareto_gaps, empirical_gaps, pareto_margins)
    whole = [f(means) for f in functions]
    monkeypatch.setattr(pareto, "PAIRS", 120)
    monkeypatch.setattr(gaps_module, "PAIRS", 120)
    for f, expected in zip(functions, whole, strict=True):
        assert torch.equal(f(means), expected)


def test_permuted_rows_have_permuted_gaps() -> None:
    means = drawn(2, 30, 3)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    assert torch.equal(pareto_gaps(means[order]), pareto_gaps(means)[order])


def test_one_output_gives_the_gaps_of_the_best_row() -> None:
    gaps = pareto_gaps([[3.0], [1.0], [2.5]])
    assert gaps.tolist() == [0.5, 2.0, 0.5]


def test_strict_is_a_truth_value() -> None:
    with pytest.raises(ValueError, match="`strict` to be True or False, but got 'no'"):
        pareto_mask([[1.0]], strict="no")  # type: ignore[arg-type]


def test_a_vector_is_refused() -> None:
    with pytest.raises(BotorchTensorDimensionError, match="`means`"):
        pareto_mask([1.0, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_the_mask_of_ten_thousand_rows_is_the_definition(strict: bool) -> None:
    for means in (drawn(0, 10_000, 3), on_a_sphere(10_000)):
        found = pareto_mask(means, strict)
        for rows in torch.arange(10_000).split(100):
            others, own = means.unsqueeze(0), means[rows].unsqueeze(1)
            if strict:
                worse = (others > own).all(dim=-1)
            else:
                worse = (others >= own).all(dim=-1) & (others > own).any(dim=-1)
            assert torch.equal(found[rows], ~worse.any(dim=1))


@pytest.mark.slow
def test_the_gaps_of_ten_thousand_rows_take_little_memory() -> None:
    assert in_a_new_process(peak_of_gaps) < 2 * 1024**2


def peak_of_gaps() -> int:
    r"""The most memory, in KiB, that this process has held."""
    for means in (drawn(0, 10_000, 3), on_a_sphere(10_000)):
        pareto_gaps(means)
        empirical_gaps(means)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def on_a_sphere(K: int) -> Tensor:
    values = drawn(0, K, 3).abs()
    return values / values.norm(dim=1, keepdim=True)
