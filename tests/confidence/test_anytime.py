from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from botorch_lse.confidence import (
    AnytimeWidth,
    BatchMartingale,
    Information,
    RKHSWidth,
    StitchedWidth,
)
from botorch_lse.confidence.anytime import FIRST_SCALE, LEVELS, RATIO, squared_distances

DELTA = 0.1


def gaussian(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def definite(h: int, seed: int, scale: float = 1.0) -> Tensor:
    A = gaussian(2 * h, h, seed=seed)
    return scale * A.mT @ A


def dense_squared(V: Tensor, W: Tensor, v: Tensor, delta: float) -> float:
    r"""The definition, with inverses and determinants as they are written."""
    inverse = torch.linalg.inv(V)
    widths = []
    for k in range(LEVELS):
        R = FIRST_SCALE * RATIO**k * W
        ratio = torch.logdet(V + R) - torch.logdet(R)
        norm = v @ inverse @ (V + R) @ inverse @ v
        widths.append(norm * 2 * (ratio / 2 + math.log(LEVELS / delta)))
    return float(min(widths))


# --- the ellipsoid --------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e7])
def test_squared_widths_equal_the_dense_definition(scale: float) -> None:
    V, W = definite(4, 0, scale), definite(4, 1)
    vectors = gaussian(5, 4, seed=2)
    width = StitchedWidth(W, DELTA)
    found = width.squared(Information.of(V, W), vectors)
    dense = torch.tensor([dense_squared(V, W, v, DELTA) for v in vectors]).double()
    torch.testing.assert_close(found, dense, rtol=1e-6, atol=0.0)


def test_widths_of_differences_are_those_of_the_vectors() -> None:
    V, W = definite(3, 0, 50.0), definite(3, 1)
    first, second = gaussian(6, 3, seed=2), gaussian(4, 3, seed=3)
    second[1] = first[2]
    information, width = Information.of(V, W), StitchedWidth(W, DELTA)
    found = width.squared_differences(information, first, second)
    differences = first.unsqueeze(1) - second
    each = width.squared(information, differences.flatten(0, 1)).view(6, 4)
    torch.testing.assert_close(found, each, rtol=1e-10, atol=0.0)
    assert float(found[2, 1]) == 0.0


def test_nearly_equal_rows_have_exact_distances() -> None:
    first = gaussian(3, 5)
    second = first + 1e-9 * gaussian(3, 5, seed=1)
    found = squared_distances(first, second).diagonal()
    exact = (first - second).square().sum(dim=-1)
    torch.testing.assert_close(found, exact, rtol=1e-10, atol=0.0)


def test_information_diagonalises_both_matrices() -> None:
    V, W = definite(4, 0, 30.0), definite(4, 1)
    found = Information.of(V, W)
    P = found.axes
    torch.testing.assert_close(P.mT @ W @ P, torch.eye(4).double())
    torch.testing.assert_close(P.mT @ V @ P, found.sizes.diag(), atol=1e-10, rtol=1e-8)
    moment = gaussian(4, 2, seed=5)
    torch.testing.assert_close(found.solve(moment), torch.linalg.solve(V, moment))


def test_directions_outside_the_span_of_the_data_have_infinite_width() -> None:
    W = definite(3, 1)
    row = torch.tensor([[1.0, 2.0, 0.0]], dtype=torch.float64)
    information = Information.of(100 * row.mT @ row, W)
    found = StitchedWidth(W, DELTA).squared(
        information, torch.cat((row, -3 * row, torch.eye(3).double()))
    )
    assert not information.is_complete
    assert found.isfinite().tolist() == [True, True, False, False, False]
    torch.testing.assert_close(found[1], 9 * found[0])


def test_nothing_measured_leaves_everything_open_but_zero() -> None:
    W = torch.eye(2, dtype=torch.float64)
    vectors = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    found = StitchedWidth(W, DELTA).squared(Information.of(0 * W, W), vectors)
    assert found.tolist() == [math.inf, 0.0]


def test_rank_one_is_the_scalar_mixture_bound() -> None:
    one, n = torch.ones(1, 1, dtype=torch.float64), 1000.0
    rho = FIRST_SCALE * RATIO ** np.arange(LEVELS)
    closed = (n + rho) / n**2 * (np.log1p(n / rho) + 2 * np.log(LEVELS / DELTA))
    found = StitchedWidth(one, DELTA).squared(Information.of(n * one, one), one)
    assert float(found) == pytest.approx(closed.min(), rel=1e-12)
    martingale = BatchMartingale.start(one, one, 1).add(
        one, Information.of(n * one, one), one
    )
    assert float(martingale.squared(DELTA)) == pytest.approx(closed.min(), rel=1e-12)


def violated(h: int, paths: int, steps: int, divisor: float, seed: int) -> float:
    r"""Share of paths on which some direction is ever outside its width.

    Rows chase the noise: the next batch goes to the axis whose estimate is off most.
    ``|S|_{(V + R_k)^-1}`` against the radius is the width of the worst direction.
    """
    generator = np.random.default_rng(seed)
    width = StitchedWidth(torch.eye(h, dtype=torch.float64), DELTA)
    S, V = np.zeros((paths, h)), np.zeros((paths, h))
    bad, everyone, n = np.zeros(paths, dtype=bool), np.arange(paths), 0
    scales = FIRST_SCALE * RATIO ** np.arange(LEVELS)
    while n < steps:
        batch = max(1, n // 20)
        axis = (np.abs(S) / np.maximum(V, 1e-9)).argmax(axis=1)
        S[everyone, axis] += np.sqrt(batch) * generator.standard_normal(paths)
        V[everyone, axis] += batch
        n += batch
        for scale in scales:
            radius = np.log1p(V / scale).sum(axis=1)
            radius += 2 * np.log(LEVELS / width.delta)
            off = (S**2 / (V + scale)).sum(axis=1)
            bad |= off > radius / divisor**2
    return float(bad.mean())


@pytest.mark.parametrize("h", [1, 3])
def test_optional_stopping_breaks_no_width(h: int) -> None:
    # 2,000 paths of 10^4 steps; the standard error at 0.1 is 0.007.
    assert violated(h, 2000, 10_000, 1.0, 0) <= DELTA
    assert violated(h, 500, 10_000, 3.0, 0) > 2 * DELTA


# --- batch martingales ----------------------------------------------------------------


def test_precision_weighted_mean_is_that_of_the_batches() -> None:
    W, vectors = torch.eye(3, dtype=torch.float64), gaussian(4, 3, seed=9)
    martingale = BatchMartingale.start(vectors, W, 2)
    totals, precision = torch.zeros(4, 2).double(), torch.zeros(4).double()
    for r in range(3):
        Z, y = gaussian(8, 3, seed=r), gaussian(8, 2, seed=10 + r)
        V = Z.mT @ Z
        martingale = martingale.add(vectors, Information.of(V, W), Z.mT @ y)
        gain = 1 / (vectors @ torch.linalg.inv(V) * vectors).sum(dim=-1)
        totals += gain.unsqueeze(-1) * (vectors @ torch.linalg.lstsq(Z, y).solution)
        precision += gain
    torch.testing.assert_close(martingale.precision, precision)
    torch.testing.assert_close(martingale.mean, totals / precision.unsqueeze(-1))


def test_batches_that_do_not_determine_a_target_add_nothing() -> None:
    W = torch.eye(2, dtype=torch.float64)
    start = BatchMartingale.start(W, W, 1)
    Z = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    found = start.add(W, Information.of(Z.mT @ Z, W), 6 * Z.mT)
    assert found.precision.tolist() == [4.0, 0.0]
    assert found.mean.view(-1).tolist() == [3.0, 0.0]
    assert found.squared(DELTA).isfinite().tolist() == [True, False]


@pytest.mark.slow
def test_martingale_intervals_survive_optional_stopping() -> None:
    # 120 paths, 60 growing batches whose design chases the estimate's sign.
    W, target = torch.eye(2, dtype=torch.float64), torch.ones(1, 2).double()
    bad, generator = 0, torch.Generator().manual_seed(0)
    for _ in range(120):
        found, size, share = BatchMartingale.start(target, W, 1), 4.0, 0.5
        wrong = False
        for _ in range(60):
            V = torch.tensor([share * size, (1 - share) * size]).double().diag()
            noise = torch.randn(2, 1, generator=generator, dtype=torch.float64)
            found = found.add(target, Information.of(V, W), V.sqrt() @ noise)
            off = float(found.mean) ** 2 > float(found.squared(DELTA))
            wrong, size = wrong or off, size * 1.1
            share = 0.9 if float(found.mean) > 0 else 0.1
        bad += wrong
    assert bad / 120 <= DELTA


def test_martingales_are_used_at_high_rank_only() -> None:
    def chosen(h: int, n: int, batches: bool = True) -> bool:
        W = torch.eye(h, dtype=torch.float64)
        return AnytimeWidth(W, 0.05, n, batches=batches).uses_martingales

    assert [chosen(h, 1000) for h in (2, 10, 50, 100)] == [False, False, True, True]
    assert not chosen(50, 1000, batches=False)


def test_at_rank_fifty_the_narrower_width_is_near_a_union_bound() -> None:
    # 1,000 targets, batches growing by a tenth of the data, one fixed design.
    h, N, n, size = 50, 1000, 0.0, 100.0
    W = torch.eye(h, dtype=torch.float64)
    vectors = gaussian(N, h)
    widths = AnytimeWidth(W, 0.05, N)
    found = BatchMartingale.start(vectors, W, 1)
    zero = torch.zeros(h, 1, dtype=torch.float64)
    while n < 1e5:
        found = found.add(vectors, Information.of(size * W, W), zero)
        n, size = n + size, max(100.0, 0.1 * (n + size))
    information = Information.of(n * W, W)
    squared = widths.stitched().squared(information, vectors)
    lower, upper = widths.interval(torch.zeros(N, 1).double(), squared, found)
    half = (upper - lower).square().view(-1) / 4
    norms = information.squared_norms(vectors)
    union = 2 * math.log(2 * N / 0.05)
    assert float((half / norms).max()) <= 3 * union
    assert float((squared / norms).min()) > 3 * union


def test_shares_of_delta_are_as_stated() -> None:
    W = torch.eye(60, dtype=torch.float64)
    widths = AnytimeWidth(W, 0.06, 100, m=3)
    assert widths.uses_martingales
    assert widths.stitched().delta == pytest.approx(0.01)
    assert widths.target_delta == pytest.approx(0.06 / (2 * 3 * 100))
    low = AnytimeWidth(W[:2, :2], 0.06, 100, m=3)
    assert low.stitched().delta == pytest.approx(0.02)


# --- the kernel's width ---------------------------------------------------------------


def test_rkhs_width_equals_its_dense_formula() -> None:
    A = gaussian(6, 3)
    K = A @ A.mT
    found = RKHSWidth(bound=2.0, noise_std=0.3, ridge=0.7, delta=DELTA)(K)
    information = np.linalg.slogdet(np.eye(6) + K.numpy() / 0.7)[1] / 2
    closed = 2.0 + 0.3 / math.sqrt(0.7) * math.sqrt(2 * (information - math.log(DELTA)))
    assert found == pytest.approx(closed, rel=1e-12)


def test_rkhs_width_may_be_given_the_information_gained() -> None:
    A = gaussian(6, 3)
    width = RKHSWidth(bound=2.0, noise_std=0.3, ridge=0.7, delta=DELTA)
    # Sylvester: the determinants of the n x n and of the h x h matrix are the same.
    nats = torch.logdet(torch.eye(3).double() + A.mT @ A / 0.7) / 2
    assert float(width.from_information(nats)) == pytest.approx(width(A @ A.mT))


def test_rkhs_interval_is_kernel_ridge_regression_with_repeats() -> None:
    Phi, T = gaussian(5, 3)[[0, 0, 1, 2, 3, 4, 4]], gaussian(4, 3, seed=1)
    y, ridge = gaussian(7, seed=2), 0.4
    width = RKHSWidth(bound=1.0, noise_std=1.0, ridge=ridge, delta=DELTA)
    K = Phi @ Phi.mT
    mean, half = width.interval(K, Phi @ T.mT, T.square().sum(dim=-1), y)
    A = Phi.mT @ Phi + ridge * torch.eye(3).double()
    torch.testing.assert_close(mean, T @ torch.linalg.solve(A, Phi.mT @ y))
    norms = ridge * (T @ torch.linalg.inv(A) * T).sum(dim=-1)
    torch.testing.assert_close(half, width(K) * norms.sqrt())


@pytest.mark.slow
def test_rkhs_width_holds_at_all_times_for_a_function_of_that_norm() -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.linspace(0, 1, 30, dtype=torch.float64).unsqueeze(-1)
    gram = (-torch.cdist(X, X).square() / 0.08).exp()
    width = RKHSWidth(bound=1.0, noise_std=0.5, ridge=0.25, delta=DELTA)
    bad = 0
    for _ in range(60):
        coefficients = torch.zeros(30, dtype=torch.float64)
        coefficients[::6] = torch.randn(5, generator=generator, dtype=torch.float64)
        norm = (coefficients @ gram @ coefficients).sqrt()
        f, rows, y, wrong = gram @ coefficients / norm, [], [], False
        for t in range(40):
            rows.append(int(torch.randint(30, (1,), generator=generator)) if t else 3)
            noise = torch.randn(1, generator=generator, dtype=torch.float64)
            y.append(float(f[rows[-1]]) + 0.5 * float(noise))
            mean, half = width.interval(
                gram[rows][:, rows],
                gram[rows],
                gram.diagonal(),
                torch.tensor(y).double(),
            )
            wrong = wrong or bool(((mean - f).abs() > half).any())
        bad += wrong
    assert bad / 60 <= DELTA


@pytest.mark.parametrize("name", ["bound", "noise_std", "ridge", "delta"])
def test_numbers_out_of_range_are_refused(name: str) -> None:
    options = {"bound": 1.0, "noise_std": 1.0, "ridge": 1.0, "delta": 0.1, name: -1.0}
    with pytest.raises(ValueError, match=f"`{name}`"):
        RKHSWidth(**options)
    if name == "delta":
        with pytest.raises(ValueError, match="`delta`"):
            StitchedWidth(torch.eye(1), -1.0)
