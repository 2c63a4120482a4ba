"""Look-ahead criteria for measurements without noise."""

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP

from botorch_lse.acquisition import qGEGE, qMELK
from botorch_lse.models.gaussian_process import JITTER
from botorch_lse.optim import optimize_acqf_design
from tests.acquisition.conftest import OUTPUTSCALE, make_model
from tests.registry import BATCHES, DESIGNED

POOL = torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()
TABLE = {case.cls: case.options(POOL) for case in BATCHES}
every = pytest.mark.parametrize(("acqf_class", "options"), TABLE.items())


@pytest.mark.some(7)
@every
@pytest.mark.parametrize("noise", [0.0, 1e-30, lambda X: 0 * X[..., 0]])
def test_no_noise_is_the_least_noise(acqf_class, options, noise):
    model, _, Y, _ = make_model()
    least = JITTER * OUTPUTSCALE * float(Y.var())
    batches = torch.stack((POOL[:3], POOL[[4, 4, 4]], POOL[[5, 5, 6]]))
    batches.requires_grad_()
    found = acqf_class(model, **options, noise_var=noise)(batches)
    want = acqf_class(model, **options, noise_var=least)(batches)
    torch.testing.assert_close(found, want, rtol=1e-6, atol=1e-8)
    found.sum().backward()
    assert torch.isfinite(batches.grad).all()


@pytest.mark.some(8)
@every
@pytest.mark.parametrize("joint", [False, True])
def test_pending_points_known_exactly_leave_nothing_to_gain(acqf_class, options, joint):
    model, X, Y, _ = make_model()
    extra = {}
    if joint and acqf_class is not qGEGE:  # where only joint posteriors are known
        Y = (Y - Y.mean()) / Y.std()
        both = SingleTaskGP(X, torch.cat((Y, -Y), -1), outcome_transform=None).eval()
        weights = torch.tensor([1.0, 0.0]).double()
        model = both
        extra = {"posterior_transform": ScalarizedPosteriorTransform(weights)}
    acqf = acqf_class(model, **options, **extra, noise_var=0.0)
    acqf.set_X_pending(POOL)
    values = acqf(POOL[:4].unsqueeze(-2))
    assert torch.isfinite(values).all()
    assert (values.abs() <= 1e-6 * float(Y.var())).all()


@pytest.mark.some(2)
@pytest.mark.parametrize("acqf_class", [case.cls for case in DESIGNED])
@pytest.mark.parametrize("q", [5, 20])
def test_a_designed_batch_of_exact_measurements_has_no_row_twice(acqf_class, q):
    acqf = acqf_class(make_model()[0], **TABLE[acqf_class], noise_var=0.0)
    batch, value = optimize_acqf_design(acqf, POOL, q)
    assert len(batch.unique(dim=0)) == q
    torch.testing.assert_close(acqf(batch).squeeze(0), value)


def test_more_measurements_than_rows_are_repeats_all_the_same():
    acqf = qMELK(make_model()[0], POOL[:2], noise_var=0.0)
    batch, _ = optimize_acqf_design(acqf, POOL[:2], 3)
    assert batch.shape == (3, 2)
