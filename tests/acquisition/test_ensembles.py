"""Ensembles equal their members one by one; models without noise are refused."""

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import (
    MultiTaskGP,
    PairwiseGP,
    SingleTaskGP,
    SingleTaskVariationalGP,
    fully_bayesian,
)
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import BernoulliLikelihood

from botorch_lse.acquisition import ImplicitStraddle, Straddle, qGEGE, qMELK
from botorch_lse.confidence import confidence_regions
from tests.registry import BATCHES, ONE_POINT

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

S, N = 3, 9
_RANDOM = torch.Generator().manual_seed(0)


def draw(*shape):
    return torch.rand(*shape, generator=_RANDOM, dtype=torch.float64)


X = draw(N, 2)
Y = 20 + 4 * (6 * X.sum(-1, keepdim=True)).sin()
YVAR = 0.1 + draw(N, 1)
TARGETS, PENDING, POINTS = draw(6, 2), draw(2, 2), draw(5, 2, 2)
SAMPLES = {
    "mean": draw(S),
    "lengthscale": 0.3 + draw(S, 1, 2),
    "outputscale": 0.5 + draw(S),
    "noise": 0.05 + 0.1 * draw(S, 1),
}
ONE = {c.cls: c.options(TARGETS) for c in ONE_POINT}
BATCH = {c.cls: c.options(TARGETS) for c in BATCHES}
EVERY = {**ONE, **BATCH}
AVERAGED = [cls for cls in EVERY if cls is not ImplicitStraddle]  # its level is one


def transforms():
    return {
        "input_transform": Normalize(2, bounds=torch.tensor([[0.0, 0.0], [1.0, 1.0]])),
        "outcome_transform": Standardize(1),
    }


def saas(monkeypatch, yvar=None):
    r"""Samples loaded rather than drawn, so that JAX need not be installed."""
    monkeypatch.setattr(fully_bayesian, "_check_jax_available", lambda: None)
    if not fully_bayesian._HAS_JAX:
        monkeypatch.setattr(fully_bayesian, "jnp", np, raising=False)
    model = SaasFullyBayesianSingleTaskGP(X, Y, yvar, **transforms())
    used = {k: v for k, v in SAMPLES.items() if yvar is None or k != "noise"}
    model.load_mcmc_samples(used)
    return model.eval()


def member(s, yvar=None):
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double()
    kernel.base_kernel.lengthscale = SAMPLES["lengthscale"][s]
    kernel.outputscale = SAMPLES["outputscale"][s]
    model = SingleTaskGP(X, Y, yvar, covar_module=kernel, **transforms())
    model.mean_module.constant.data.fill_(float(SAMPLES["mean"][s]))
    if yvar is None:
        model.likelihood.noise = SAMPLES["noise"][s]
    return model.eval()


@pytest.mark.some(3)
@pytest.mark.parametrize("acqf_class", AVERAGED)
@pytest.mark.parametrize("pending", [None, PENDING, TARGETS], ids=["none", "2", "6"])
@pytest.mark.parametrize("known_noise", [False, True])
def test_an_ensemble_is_the_average_of_its_members(
    acqf_class, pending, known_noise, monkeypatch
):
    yvar = YVAR if known_noise else None
    options = EVERY[acqf_class]
    if known_noise and acqf_class in BATCH:
        options = {**options, "noise_var": 0.3}
    points = POINTS if acqf_class in BATCH else POINTS[:, :1]

    def values(model):
        return acqf_class(model, **options, X_pending=pending)(points)

    each = torch.stack([values(member(s, yvar)) for s in range(S)])
    found = values(saas(monkeypatch, yvar))
    torch.testing.assert_close(found, each.mean(dim=0), rtol=1e-6, atol=1e-8)


def test_the_implicit_level_of_an_ensemble_is_its_own_maximum(monkeypatch):
    acqf = ImplicitStraddle(saas(monkeypatch), **EVERY[ImplicitStraddle])
    alone = acqf(POINTS[:, :1])
    acqf.set_X_pending(PENDING)
    assert acqf(POINTS[:, :1]).shape == alone.shape
    assert (acqf(POINTS[:, :1]) < alone).all()  # pending points leave less to learn


@pytest.mark.parametrize("acqf_class", EVERY)
@pytest.mark.parametrize("pending", [None, PENDING], ids=["none", "2"])
def test_a_classifier_is_refused_by_name(acqf_class, pending):
    labels = (Y > 20).double()
    model = SingleTaskVariationalGP(X, labels, likelihood=BernoulliLikelihood())
    with pytest.raises(UnsupportedError, match=r"Bernoulli|exact GP"):
        acqf_class(model.double().eval(), **EVERY[acqf_class], X_pending=pending)


@pytest.mark.parametrize("acqf_class", [Straddle, qMELK, qGEGE])
def test_a_model_of_preferences_is_refused_by_name(acqf_class):
    model = PairwiseGP(X, torch.tensor([[0, 1], [2, 3]])).eval()
    with pytest.raises(UnsupportedError, match=r"adds noise.*PairwiseProbit.*units"):
        acqf_class(model, **EVERY[acqf_class])


def test_one_task_of_several_is_refused_in_a_true_sentence():
    tasks = torch.cat((X, torch.arange(N).double().unsqueeze(-1) % 2), dim=-1)
    model = MultiTaskGP(tasks, Y, task_feature=-1, output_tasks=[0]).eval()
    assert model.num_outputs == 1
    with pytest.raises(UnsupportedError, match="one task, but got MultiTaskGP with 2"):
        confidence_regions(model, X, beta=4.0)
