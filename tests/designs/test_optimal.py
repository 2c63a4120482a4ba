"""The solver against a semidefinite program, theory and closed forms."""

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import PolynomialKernel, RBFKernel
from scipy.sparse import csr_array

from botorch_lse.designs import DesignWarning, certify, optimal_design, solver
from tests.designs.problems import features, rbf
from tests.designs.reference import elfving_value, sdp_value

TIGHT = 1e-7


def ordered_pairs(Y, c):
    return torch.stack([a - c * b for a in Y for b in Y])


@pytest.mark.parametrize("gamma", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_all_rows_agree_with_the_semidefinite_program(gamma, seed):
    Phi = features(seed=seed)
    design = optimal_design(Phi, gamma=gamma, tol=TIGHT)
    assert design.value == pytest.approx(sdp_value(Phi, Phi, gamma), rel=1e-6)
    assert design.converged
    assert design.gap <= TIGHT


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_a_subset_agrees_with_the_semidefinite_program(gamma):
    Phi = features()
    design = optimal_design(Phi, [1, 4], gamma=gamma, tol=TIGHT)
    assert design.value == pytest.approx(sdp_value(Phi, Phi[[1, 4]], gamma), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_foreign_vectors_agree_with_the_semidefinite_program(gamma):
    Phi, V = features(), features(5, seed=3)
    design = optimal_design(Phi, V, gamma=gamma, tol=TIGHT)
    assert design.value == pytest.approx(sdp_value(Phi, V, gamma), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_target_weights_multiply_the_squared_norms(gamma):
    Phi = features()
    weights = torch.linspace(0.1, 3.0, 8, dtype=torch.float64)
    design = optimal_design(Phi, target_weights=weights, gamma=gamma, tol=TIGHT)
    V = weights.sqrt().unsqueeze(-1) * Phi
    assert design.value == pytest.approx(sdp_value(Phi, V, gamma), rel=1e-6)


@pytest.mark.some(2)
@pytest.mark.parametrize("gamma", [0.0, 0.1])
@pytest.mark.parametrize("c", [1.0, 0.7])
def test_pairs_agree_with_the_semidefinite_program(gamma, c):
    Phi = features(6)
    design = optimal_design(Phi, pairs_factor=c, gamma=gamma, tol=TIGHT)
    V = ordered_pairs(Phi, c)
    assert design.value == pytest.approx(sdp_value(Phi, V, gamma), rel=1e-6)
    i, j = design.binding.T
    proof = certify(
        Phi, Phi[i] - c * Phi[j], design.weights, design.binding_weights, gamma
    )
    assert proof.lower == pytest.approx(design.lower_bound, rel=1e-6)


def test_weighted_pairs_of_a_subset_agree_with_the_semidefinite_program():
    Phi, rows = features(7), [0, 2, 5]
    weights = torch.rand(3, 3, generator=torch.Generator().manual_seed(0))
    weights[0, 1] = 0.0
    design = optimal_design(
        Phi, rows, pairs_factor=0.9, target_weights=weights, gamma=0.05, tol=TIGHT
    )
    V = weights.double().flatten().sqrt()[:, None] * ordered_pairs(Phi[rows], 0.9)
    assert design.value == pytest.approx(sdp_value(Phi, V, 0.05), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_noise_scales_the_columns_but_not_the_targets(gamma):
    Phi = features()
    noise = torch.linspace(0.2, 4.0, 8, dtype=torch.float64)
    design = optimal_design(Phi, noise_var=noise, gamma=gamma, tol=TIGHT)
    columns = Phi / noise.sqrt().unsqueeze(-1)
    assert design.value == pytest.approx(sdp_value(columns, Phi, gamma), rel=1e-6)


def test_features_that_do_not_span_are_solved_on_their_span():
    inner = features(8, 3)
    frame = torch.linalg.qr(features(5, 3, seed=1)).Q
    Phi = inner @ frame.T  # rank 3 in five dimensions
    assert optimal_design(Phi, tol=TIGHT).value == pytest.approx(3.0, rel=1e-6)
    subset = optimal_design(Phi, [0, 1], tol=TIGHT)
    assert subset.value == pytest.approx(sdp_value(inner, inner[:2]), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_one_target_without_ridge_is_elfvings_case(seed):
    Phi, c = features(9, 4, seed), features(1, 4, seed + 10)
    design = optimal_design(Phi, c, tol=1e-6)
    assert design.value == pytest.approx(elfving_value(Phi, c[0]), rel=2e-6)


def test_elfvings_design_may_be_singular():
    # One canonical direction: all observations go to the longest multiple of it.
    Phi = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    design = optimal_design(Phi, [0], tol=1e-4)
    assert design.value == pytest.approx(1 / 9, rel=1e-3)
    assert float(design.weights[1]) > 0.999


@pytest.mark.parametrize(("N", "m"), [(50, 2), (400, 7), (3000, 5)])
def test_without_ridge_the_value_is_the_rank(N, m):
    design = optimal_design(features(N, m), tol=1e-3)
    assert design.lower_bound == pytest.approx(m, rel=1e-12)
    # No value is below the rank; the last digit is the processor's.
    assert m * (1 - 1e-12) <= design.value <= m * 1.001


def test_a_tight_linear_design_ends_with_newtons_method():
    design = optimal_design(features(500, 6), tol=1e-8)
    assert design.value == pytest.approx(6.0, rel=1e-7)
    # At the optimum every support point attains the maximum (Kiefer-Wolfowitz).
    Phi = features(500, 6)
    A = Phi.T @ (design.weights[:, None] * Phi)
    g = (Phi @ torch.linalg.inv(A) * Phi).sum(-1)
    heavy = design.weights > 1e-3
    assert torch.allclose(g[heavy], torch.tensor(6.0, dtype=torch.float64), rtol=1e-4)


@pytest.mark.parametrize("targets", [None, [0, 3, 17]])
@pytest.mark.parametrize("factor", [None, 0.9])
def test_a_kernel_gives_the_design_of_its_features(targets, factor):
    X = features(20, 2)
    kernel = PolynomialKernel(power=1)
    kernel.offset = 0.5
    offset = math.sqrt(kernel.offset.item())
    explicit = torch.cat((X, torch.full_like(X[:, :1], offset)), dim=-1)
    noise = torch.linspace(0.5, 2, 20, dtype=torch.float64)
    shared = {"gamma": 0.1, "tol": 1e-6, "noise_var": noise, "pairs_factor": factor}
    by_kernel = optimal_design(X, targets, kernel=kernel, **shared)
    by_features = optimal_design(explicit, targets, **shared)
    assert by_kernel.value == pytest.approx(by_features.value, rel=2e-6)


def test_target_points_outside_the_pool_are_allowed_with_a_kernel():
    X, others = features(15, 1), features(4, 1, seed=5)
    design = optimal_design(X, others, kernel=rbf(0.5), gamma=0.05, tol=1e-6)
    both = torch.cat((X, others))
    K = rbf(0.5).double()(both).to_dense().detach()
    values, vectors = torch.linalg.eigh(K)
    Phi = vectors * values.clamp_min(0).sqrt()
    reference = optimal_design(Phi[:15], Phi[15:], gamma=0.05, tol=1e-6)
    assert design.value == pytest.approx(reference.value, rel=2e-6)


@pytest.mark.some(1)
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_a_kernel_design_is_certified_by_the_kernel_itself(tol):
    X = torch.rand(600, 2, generator=torch.Generator().manual_seed(0)).double()
    gamma = 0.01
    design = optimal_design(X, kernel=rbf(0.2), gamma=gamma, tol=tol)
    K = rbf(0.2).double()(X).to_dense().detach()
    root = design.weights.sqrt()
    dense = root[:, None] * K * root + gamma * torch.eye(600, dtype=torch.float64)
    norms = K.diagonal() - (
        (root[:, None] * K) * torch.linalg.solve(dense, root[:, None] * K)
    ).sum(0)
    assert design.value == pytest.approx(float(norms.max()) / gamma, rel=1e-9)
    assert design.gap <= tol
    finer = optimal_design(X, kernel=rbf(0.2), gamma=gamma, tol=1e-6)
    assert design.lower_bound <= finer.value * (1 + 1e-9)


def test_a_function_of_two_sets_serves_as_a_kernel():
    X = features(6, 1)

    def covariance(a, b):
        return torch.exp(-(a - b.T).abs())

    design = optimal_design(X, kernel=covariance, gamma=0.1, tol=1e-5)
    K = covariance(X, X)
    Phi = torch.linalg.cholesky(K)
    assert design.value == pytest.approx(sdp_value(Phi, Phi, 0.1, tol=1e-8), rel=2e-5)


def test_a_large_pool_goes_through_the_active_set():
    X = torch.linspace(0, 1, 2500, dtype=torch.float64).unsqueeze(-1)
    design = optimal_design(X, kernel=rbf(0.03), gamma=0.1, tol=1e-3)
    assert design.converged
    coarse = optimal_design(X[::8], X, kernel=rbf(0.03), gamma=0.1, tol=1e-3)
    assert design.lower_bound <= coarse.value


@pytest.mark.parametrize("what", ["subset", "noise", "pairs"])
def test_a_support_beyond_twice_the_features_is_found(what):
    N = 400 if what == "pairs" else 20_000
    noise = torch.rand(N, generator=torch.Generator().manual_seed(0)).double() + 0.1
    options = {
        "subset": {"targets": range(2000)},
        "noise": {"noise_var": noise},
        "pairs": {"pairs_factor": 1.0},
    }
    design = optimal_design(features(N, 12), tol=1e-4, **options[what])
    assert design.converged
    assert design.steps <= 30


def test_a_warm_start_needs_no_more_rounds_and_agrees():
    X = torch.rand(500, 2, generator=torch.Generator().manual_seed(0)).double()
    shared = {"kernel": rbf(0.2), "gamma": 0.01, "tol": 1e-3}
    cold = optimal_design(X, **shared)
    warm = optimal_design(X, initial=cold, **shared)
    assert warm.steps <= cold.steps
    assert warm.value == pytest.approx(cold.value, rel=2e-3)


@pytest.mark.parametrize("what", ["pairs", "rows"])
def test_a_design_is_started_from_the_last_without_sweeps(monkeypatch, what):
    Phi, swept = features(400, 8), []
    given = solver.first_working_set
    monkeypatch.setattr(
        solver, "first_working_set", lambda *a: swept.append(a) or given(*a)
    )
    stated = {"gamma": 0.1, "tol": 1e-3}
    if what == "pairs":
        stated |= {"targets": range(40), "pairs_factor": 1.0}
    cold = optimal_design(Phi, **stated)
    again = optimal_design(Phi, initial=cold, **stated)
    other = optimal_design(Phi, initial=cold, **stated | {"gamma": 0.02})
    assert len(swept) == 1
    assert other.converged
    assert again.steps <= cold.steps
    fresh = optimal_design(Phi, **stated | {"gamma": 0.02})
    assert other.value == pytest.approx(fresh.value, rel=1e-3)


def test_a_design_for_other_targets_is_a_start_all_the_same():
    Phi = features(60, 4)
    cold = optimal_design(Phi, range(30), gamma=0.1)
    warm = optimal_design(Phi, range(10), gamma=0.1, initial=cold)
    fresh = optimal_design(Phi, range(10), gamma=0.1)
    assert warm.converged
    assert warm.value == pytest.approx(fresh.value, rel=1e-2)


def test_a_linear_warm_start_takes_fewer_steps():
    Phi = features(5000, 6)
    cold = optimal_design(Phi, tol=1e-3)
    warm = optimal_design(Phi, tol=1e-3, initial=cold.weights)
    assert warm.steps < 0.5 * cold.steps


def test_more_targets_never_make_it_easier():
    Phi = features(30, 4)
    few = optimal_design(Phi, range(5), gamma=0.1, tol=1e-6)
    more = optimal_design(Phi, range(15), gamma=0.1, tol=1e-6)
    assert few.lower_bound <= more.value


def test_a_permuted_pool_gives_the_permuted_value():
    Phi, order = features(40, 4), torch.randperm(40)
    a = optimal_design(Phi, gamma=0.01, tol=1e-6)
    b = optimal_design(Phi[order], gamma=0.01, tol=1e-6)
    assert a.value == pytest.approx(b.value, rel=2e-6)


@pytest.mark.slow
def test_too_few_rounds_say_so_and_the_gap_is_true():
    X = torch.rand(400, 2, generator=torch.Generator().manual_seed(0)).double()
    with pytest.warns(DesignWarning, match="within"):
        rough = optimal_design(X, kernel=rbf(0.1), gamma=1e-3, tol=1e-6, max_rounds=1)
    assert not rough.converged
    fine = optimal_design(X, kernel=rbf(0.1), gamma=1e-3, tol=1e-4)
    assert rough.lower_bound <= fine.value
    assert fine.lower_bound <= rough.value
    assert rough.gap == pytest.approx(rough.value / rough.lower_bound - 1)


def test_one_point_takes_all_mass():
    design = optimal_design(torch.tensor([[2.0]]), gamma=1.0)
    assert design.weights.tolist() == [1.0]
    assert design.value == pytest.approx(4 / 5)
    assert optimal_design(torch.tensor([[2.0]])).value == pytest.approx(1.0)


def test_duplicate_points_share_the_mass_of_one():
    Phi = torch.eye(3, dtype=torch.float64).repeat(4, 1)
    design = optimal_design(Phi, gamma=0.1, tol=1e-6)
    once = optimal_design(torch.eye(3), gamma=0.1, tol=1e-6)
    assert design.value == pytest.approx(once.value, rel=2e-6)
    assert torch.allclose(design.weights.reshape(4, 3).sum(0), once.weights, atol=1e-3)


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_zero_features_have_value_zero(gamma):
    design = optimal_design(torch.zeros(4, 2), gamma=gamma)
    assert (design.value, design.gap) == (0.0, 0.0)
    assert float(design.weights.sum()) == pytest.approx(1.0)


def test_zero_features_among_others_get_no_mass():
    Phi = torch.cat((features(5, 2), torch.zeros(2, 2, dtype=torch.float64)))
    for gamma in (0.0, 0.1):
        design = optimal_design(Phi, gamma=gamma, tol=1e-4)
        assert float(design.weights[5:].sum()) < 1e-3


def test_a_target_of_zeros_is_no_obstacle():
    design = optimal_design(features(5, 2), torch.zeros(1, 2))
    assert design.value == 0.0


def test_the_result_is_double_whatever_came_in():
    design = optimal_design(features().float(), gamma=0.1)
    assert design.weights.dtype == torch.float64


def test_a_mask_and_row_numbers_mean_the_same():
    Phi = features()
    mask = torch.zeros(8, dtype=torch.bool)
    mask[[2, 5]] = True
    a = optimal_design(Phi, mask, gamma=0.1, tol=1e-6)
    b = optimal_design(Phi, np.array([2, 5]), gamma=0.1, tol=1e-6)
    assert a.value == b.value


def test_a_target_outside_the_span_is_refused():
    Phi = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    with pytest.raises(ValueError, match="`gamma` is 0, but target 1 is not"):
        optimal_design(Phi, torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="all are zero"):
        optimal_design(torch.zeros(2, 2), torch.ones(1, 2))


@pytest.mark.some(14)
@pytest.mark.parametrize("scale", [1e-140, 1e-80, 1e-40, 1e40, 1e80, 1e140])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"targets": [1, 4]},
        {"targets": features(5, seed=3)},
        {"noise_var": torch.linspace(0.5, 2.0, 8)},
        {"pairs_factor": 0.9, "gamma": 0.1},
        {"gamma": 0.1},
        {"targets": features(5, 12, seed=3), "gamma": 0.1},
    ],
)
def test_the_scale_of_features_targets_and_ridge_does_not_matter(options, scale):
    options = dict(options)
    targets, gamma = options.pop("targets", None), options.pop("gamma", 0.0)
    vectors = isinstance(targets, torch.Tensor)
    X = features(m=targets.shape[1] if vectors else 3)
    wanted = optimal_design(X, targets, gamma=gamma, tol=1e-6, **options)
    targets = targets * scale if vectors else targets
    gamma = gamma * scale * scale
    found = optimal_design(X * scale, targets, gamma=gamma, tol=1e-6, **options)
    assert found.value == pytest.approx(wanted.value, rel=2e-6)
    assert found.converged


def test_tiny_features_beside_a_ridge_tell_nothing():
    V = features(5, seed=3)
    design = optimal_design(features() * 1e-170, V, gamma=0.5)
    assert design.value == pytest.approx(float(V.square().sum(-1).max()) / 0.5)
    assert design.converged


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e155, 1e300])
def test_the_value_of_huge_and_tiny_features_is_their_rank(scale):
    design = optimal_design(features(40, 4) * scale)
    assert design.lower_bound == pytest.approx(4.0, rel=1e-12)
    assert 4.0 <= design.value <= 4.04


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 1e300}, "`gamma` of sizes that .* about 1e-"),
        ({"targets": features(5) * 1e160}, "`targets`.* give about 1e32"),
        ({"targets": features(5) * 1e-160}, "`targets`.* give about 1e-32"),
        ({"noise_var": [1e-200] * 8}, "`noise_var`.* give about 1e-20"),
        ({"target_weights": [1e200] * 8}, "give about 1e20"),
        ({"X": features() * 1e155, "gamma": 1e290}, r"at least 6\.6e\+297, .*1e\+290"),
        ({"X": features() * 1e155, "gamma": 1e-290}, r"at least 6\.6e\+297, .*1e-290"),
        ({"gamma": 1e-14}, "`gamma` to be 0 or at least .*but got 1e-14"),
    ],
)
def test_sizes_beyond_float64_are_refused(change, message):
    arguments = {"X": features(), "gamma": 0.0} | change
    with pytest.raises(ValueError, match=message):
        optimal_design(arguments.pop("X"), arguments.pop("targets", None), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": torch.tensor([[1.0], [math.nan]])}, "`X` to be finite, but row 1"),
        ({"X": torch.empty(0, 2)}, "`X` to have at least one row"),
        ({"gamma": -1.0}, "`gamma` in"),
        ({"gamma": math.nan}, "`gamma` to be finite"),
        ({"tol": 0.0}, "`tol` in"),
        ({"noise_var": torch.zeros(8)}, "`noise_var` to be positive"),
        ({"noise_var": -torch.ones(8)}, "`noise_var` to be non-negative"),
        ({"target_weights": torch.zeros(8)}, "positive entry in `target_weights`"),
        ({"target_weights": -torch.ones(8)}, "`target_weights` to be non-negative"),
        ({"targets": []}, "`targets` to have at least one"),
        ({"targets": [9]}, "`targets` to be rows of the pool"),
        ({"targets": torch.tensor([[math.nan] * 3])}, "`targets` to be finite"),
        ({"pairs_factor": math.inf}, "`pairs_factor` to be finite"),
        ({"initial": torch.zeros(8)}, "`initial` to have a positive"),
        ({"max_rounds": "a"}, "`max_rounds` to be a whole number, but got 'a'"),
        ({"max_rounds": -5}, "`max_rounds` to be at least 1, but got -5"),
        ({"targets": "a"}, "`targets` to hold numbers, but got str"),
        ({"targets": {}}, "`targets` to hold numbers, but got dict"),
        ({"X": torch.eye(3).to_sparse()}, r"a sparse tensor. Write `X\.to_dense\(\)`"),
        ({"X": csr_array(np.eye(3))}, "`X` to hold numbers, but got csr_array"),
        ({"X": torch.eye(3) + 1j}, "`X` to hold numbers, but got torch.complex64"),
    ],
)
def test_bad_numbers_are_refused_by_name(change, message):
    arguments = {"X": features(), "gamma": 0.1} | change
    with pytest.raises(ValueError, match=message):
        optimal_design(arguments.pop("X"), arguments.pop("targets", None), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": torch.ones(3)}, "`X` to be a matrix"),
        ({"targets": torch.ones(2, 5)}, "the 3 columns of `X`"),
        ({"targets": torch.ones(3, dtype=torch.bool)}, "a mask `targets` with 8"),
        ({"noise_var": torch.ones(3)}, "`noise_var` to be a vector"),
        ({"target_weights": torch.ones(3)}, "`target_weights` to be a vector"),
        ({"target_weights": torch.ones(3, 3), "pairs_factor": 1.0}, r"shape \(8, 8\)"),
        ({"kernel": lambda a, b: torch.ones(3)}, "`kernel` to map a x d and b x d"),
    ],
)
def test_bad_shapes_are_refused_by_name(change, message):
    arguments = {"X": features(), "gamma": 0.1} | change
    with pytest.raises(BotorchTensorDimensionError, match=message):
        optimal_design(arguments.pop("X"), arguments.pop("targets", None), **arguments)


@pytest.mark.parametrize("value", [math.nan, -1.0])
def test_a_kernel_that_is_none_is_refused(value):
    def covariance(a, b):
        return torch.full((len(a), len(b)), value)

    with pytest.raises(ValueError, match="`kernel` to give finite, non-negative"):
        optimal_design(features(), kernel=covariance, gamma=0.1)


@pytest.mark.parametrize("kernel", ["rbf", 3.0, torch.eye(30), RBFKernel])
def test_what_is_no_kernel_is_refused(kernel):
    with pytest.raises(ValueError, match="`kernel` to be a GPyTorch kernel or a func"):
        optimal_design(features(), kernel=kernel, gamma=0.1)


def test_a_batched_kernel_is_refused():
    kernel = RBFKernel(batch_shape=torch.Size([2]))
    with pytest.raises(UnsupportedError, match="without batch shape"):
        optimal_design(features(), kernel=kernel, gamma=0.1)


def test_a_mask_of_targets_may_be_their_weights():
    X = features()
    mask = torch.arange(len(X)) < 5
    by_mask = optimal_design(X, gamma=0.1, target_weights=mask)
    by_number = optimal_design(X, gamma=0.1, target_weights=mask.double())
    assert by_mask.value == by_number.value
