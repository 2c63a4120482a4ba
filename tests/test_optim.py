r"""Batches by optimal design against all batches, greedy ones and the certificate."""

import logging
from itertools import combinations_with_replacement

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf_discrete
from gpytorch.kernels import MaternKernel, ScaleKernel

from botorch_lse.acquisition import (
    Straddle,
    qHRAGE,
    qMELK,
    qMILK,
    qNegMaxPosteriorVariance,
)
from botorch_lse.data.pool import Pool
from botorch_lse.optim import optimize_acqf_design, problem_of
from botorch_lse.planning import Relaxation, designed
from tests.acquisition.test_contract_classes import ensemble
from tests.covering import covering

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

FORMS = [(qMELK, {}), (qMILK, {"omega": 0.8})]
forms = pytest.mark.parametrize(("acqf_class", "options"), FORMS)


def draw(n, seed):
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(seed)).double()


def make_model(seed=0, noise=0.1, lengthscale=0.4, n=4):
    X = draw(n, 100 + seed)
    kernel = ScaleKernel(MaternKernel(2.5))
    model = SingleTaskGP(
        X, X.sum(-1, keepdim=True).sin(), covar_module=kernel, outcome_transform=None
    )
    kernel.base_kernel.lengthscale, kernel.outputscale = lengthscale, 2.0
    model.likelihood.noise = noise
    return model.eval()


def best_of_all(acqf, choices, q, max_repeats=None):
    rows = torch.tensor(list(combinations_with_replacement(range(len(choices)), q)))
    if max_repeats is not None:
        most = torch.stack([(rows == i).sum(-1) for i in range(len(choices))]).amax(0)
        rows = rows[most <= max_repeats]
    return float(acqf(choices[rows]).detach().max())


def bound(acqf, choices, q, noise):
    """No batch leaves less than this: the proven end of the relaxed design."""
    with torch.no_grad():
        relaxation = Relaxation.of(problem_of(acqf, choices), q, 1e-3)
        design = relaxation.solve(1e-3)
    return noise * design.lower_bound / q


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [0.02, 2.0])
def test_weights_and_noise_per_row_lead_close_to_the_best_batch(seed, level):
    choices = draw(9, seed)
    targets = choices if seed % 2 else torch.cat((choices[3:], draw(3, 50 + seed)))
    generator = torch.Generator().manual_seed(seed)
    weights = torch.logspace(0, 2, 9)[torch.randperm(9, generator=generator)]
    acqf = qHRAGE(
        make_model(seed),
        targets,
        lambda X: level * (0.1 + X[..., 0].square()),
        target_weights=weights,
    )
    X, value = optimize_acqf_design(acqf, choices, 4)
    assert float(acqf(X).detach()) == float(value)
    best = best_of_all(acqf, choices, 4)
    assert best + 1e-12 * abs(best) >= float(value) >= 1.05 * best


@pytest.mark.some(3)
@covering("form, noise, seed", FORMS, [0.02, 2.0], range(6))
def test_close_to_the_best_of_all_batches(form, seed, noise):
    acqf_class, options = form
    choices, q = draw(9, seed), 4
    targets = choices if seed % 2 else torch.cat((choices[3:], draw(3, 50 + seed)))
    acqf = acqf_class(make_model(seed, noise), targets=targets, **options)
    X, value = optimize_acqf_design(acqf, choices, q)
    assert float(acqf(X).detach()) == float(value)
    best = best_of_all(acqf, choices, q)
    assert best + 1e-12 >= float(value) >= 1.05 * best
    assert -best >= bound(acqf, choices, q, noise) * (1 - 1e-9)


@pytest.mark.some(3)
@covering("form, noise, seed", FORMS, [0.01, 1.0], range(8))
def test_never_worse_than_greedy(form, seed, noise):
    acqf_class, options = form
    choices = draw(40, seed)
    acqf = acqf_class(make_model(seed, noise), targets=choices[:25], **options)
    for unique, max_repeats in ((False, None), (True, 1)):
        greedy, _ = optimize_acqf_discrete(acqf, q=5, choices=choices, unique=unique)
        acqf.set_X_pending(None)
        _, value = optimize_acqf_design(acqf, choices, 5, max_repeats=max_repeats)
        assert value >= acqf(greedy) - 1e-9


def test_greedy_in_pieces_is_still_greedy(monkeypatch):
    choices = draw(200, 3)
    acqf = qMELK(make_model(), targets=choices)
    monkeypatch.setattr(designed, "ENTRIES", 2**14)
    monkeypatch.setattr(designed, "MAX_SWAPS", 0)
    greedy, _ = optimize_acqf_discrete(acqf, q=6, choices=choices, unique=False)
    acqf.set_X_pending(None)
    _, value = optimize_acqf_design(acqf, choices, 6)
    assert value >= acqf(greedy) - 1e-9


def test_rows_are_repeated_where_noise_is_large():
    choices = torch.tensor([[0.0, 0.0], [9.0, 9.0]]).double()
    acqf = qMELK(make_model(noise=5.0), targets=choices)
    X, _ = optimize_acqf_design(acqf, choices, 7)
    counts = sorted(int((c == X).all(-1).sum()) for c in choices)
    assert counts == [3, 4]
    noise = lambda X: 0.5 + (X[..., 0] > 5)  # noqa: E731  three times larger there
    acqf = qMELK(make_model(n=1), targets=choices, noise_var=noise)
    acqf.set_X_pending(None)
    X, _ = optimize_acqf_design(acqf, choices, 8)
    assert int((choices[1] == X).all(-1).sum()) == 6


@forms
@pytest.mark.parametrize("max_repeats", [1, 2])
def test_repeats_are_limited(acqf_class, options, max_repeats):
    choices, q = draw(5, 1), 4
    acqf = acqf_class(make_model(noise=3.0), targets=choices, **options)
    X, value = optimize_acqf_design(acqf, choices, q, max_repeats=max_repeats)
    _, counts = X.unique(dim=0, return_counts=True)
    assert int(counts.max()) <= max_repeats
    assert float(value) >= 1.05 * best_of_all(acqf, choices, q, max_repeats)
    X, _ = optimize_acqf_design(acqf, choices, 5 * max_repeats, max_repeats=max_repeats)
    assert X.unique(dim=0, return_counts=True)[1].tolist() == [max_repeats] * 5


@forms
def test_pending_points_count_as_observed(acqf_class, options):
    choices, model = draw(9, 2), make_model()
    pending = choices[[0, 0, 4]]
    acqf = acqf_class(model, targets=choices, X_pending=pending, **options)
    X, value = optimize_acqf_design(acqf, choices, 3)
    assert float(value) >= 1.05 * best_of_all(acqf, choices, 3)
    whole = acqf_class(model, targets=choices, **options)
    torch.testing.assert_close(whole(torch.cat((X, pending))).squeeze(), value)


def test_several_outputs_and_noise_per_row():
    choices = draw(9, 4)
    X = draw(5, 5)
    both = SingleTaskGP(X, torch.cat((X, X.sin()), dim=-1)[:, 1:3])
    second = ScalarizedPosteriorTransform(torch.tensor([0.0, 1.0]).double())
    noise = lambda X: 0.05 + 0.2 * X[..., 0]  # noqa: E731
    arguments = {"targets": choices, "noise_var": noise}
    acqf = qNegMaxPosteriorVariance(
        both.eval(), **arguments, posterior_transform=second, X_pending=choices[:1]
    )
    X, value = optimize_acqf_design(acqf, choices, 3)
    assert float(value) >= 1.05 * best_of_all(acqf, choices, 3)
    assert float(acqf(X).detach()) == float(value)


def test_float32_and_pools():
    choices, model = draw(20, 6), make_model().float()
    acqf = qMELK(model, targets=Pool(choices))
    X, value = optimize_acqf_design(acqf, Pool(choices), 4)
    assert X.dtype == value.dtype == torch.float32
    assert value.shape == ()
    double = qMELK(make_model(), targets=choices)
    assert float(value) == pytest.approx(float(double(X.double())), rel=1e-4)


def test_duplicate_rows_and_a_pool_of_one():
    choices = draw(4, 7)[[0, 1, 1, 2, 0, 3]]
    acqf = qMELK(make_model(), targets=choices)
    _, value = optimize_acqf_design(acqf, choices, 3)
    assert float(value) >= 1.05 * best_of_all(acqf, choices.unique(dim=0), 3)
    X, _ = optimize_acqf_design(acqf, choices[:1], 3)
    assert torch.equal(X, choices[:1].expand(3, 2))


def test_same_seed_same_batch():
    choices = draw(60, 8)
    acqf = qMELK(make_model(), targets=choices)
    first, _ = optimize_acqf_design(acqf, choices, 6)
    second, _ = optimize_acqf_design(acqf, choices, 6)
    assert torch.equal(first, second)
    sampled = [
        optimize_acqf_design(
            acqf,
            choices,
            6,
            method="sample",
            exchange=False,
            generator=torch.Generator().manual_seed(seed),
        )[0]
        for seed in (0, 0)
    ]
    assert torch.equal(*sampled)


def test_exchange_helps_and_the_winner_is_logged(caplog):
    choices = draw(150, 9)
    acqf = qMELK(make_model(), targets=choices)
    with caplog.at_level(logging.DEBUG, logger="botorch_lse.planning"):
        _, rounded = optimize_acqf_design(acqf, choices, 6, exchange=False)
        _, exchanged = optimize_acqf_design(acqf, choices, 6)
    assert exchanged > rounded
    assert all(" batch won; worst variances: " in m for m in caplog.messages)
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"q": 0}, ValueError, "`q` to be at least 1, but got 0"),
        ({"q": 9, "max_repeats": 2}, ValueError, r"2 \* 4, but got 9. Allow more"),
        ({"max_repeats": 0}, ValueError, "`max_repeats` to be at least 1"),
        ({"tol": 0.0}, ValueError, r"`tol` in \(0, 1\)"),
        ({"method": "regret"}, ValueError, r"`method` to be one of \('quota', 'sam"),
        ({"method": "sample"}, ValueError, "a `generator`"),
        (
            {"exchange": "no"},
            ValueError,
            "`exchange` to be True or False, but got 'no'",
        ),
        ({"choices": torch.rand(4, 3)}, BotorchTensorDimensionError, "the 2 columns"),
        ({"choices": torch.full((4, 2), torch.nan)}, ValueError, "`choices` to be fin"),
    ],
)
def test_bad_arguments_are_refused(change, error, message):
    arguments = {"choices": draw(4, 0), "q": 2} | change
    acqf = qMELK(make_model(), targets=draw(4, 0))
    with pytest.raises(error, match=message):
        optimize_acqf_design(acqf, **arguments)


def test_other_acquisition_functions_are_refused_with_the_remedy():
    choices = draw(4, 0)
    with pytest.raises(UnsupportedError, match=r"Straddle. Use `optimize_acqf_disc"):
        optimize_acqf_design(Straddle(make_model(), threshold=0.0), choices, 2)
    acqf = qMELK(ensemble(), targets=choices)
    with pytest.raises(UnsupportedError, match=r"ensemble of 3.*`optimize_acqf_discr"):
        optimize_acqf_design(acqf, choices, 2)
