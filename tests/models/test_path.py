r"""The posterior path against BoTorch's own posteriors, prefix by prefix."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import (
    GenericDeterministicModel,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
    SingleTaskVariationalGP,
    fully_bayesian,
)
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Log, Normalize, Standardize
from botorch.models.transforms.input import InputPerturbation
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean, ZeroMean
from torch import Tensor

from botorch_lse.models.gaussian_process import (
    GPPrior,
    JitterWarning,
    PosteriorPath,
    factorize,
    row_blocks,
)

N_TRAIN = 12

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)


def data(d: int = 2, repeats: bool = False, spread: float = 1.0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    X = spread * torch.rand(N_TRAIN, d, generator=generator, dtype=torch.float64)
    if repeats:
        X[4:8] = X[2]
    Y = 40.0 + 7.0 * torch.sin(5 * X.sum(-1, keepdim=True) / spread)
    Y = Y + torch.randn(N_TRAIN, 1, generator=generator, dtype=torch.float64)
    Yvar = 0.1 + torch.rand(N_TRAIN, 1, generator=generator, dtype=torch.float64)
    test_X = spread * torch.rand(9, d, generator=generator, dtype=torch.float64)
    return X, Y, Yvar, test_X


def kernel(name: str, d: int = 2) -> ScaleKernel:
    base = RBFKernel() if name == "rbf" else MaternKernel(2.5, ard_num_dims=d)
    scaled = ScaleKernel(base).double()
    scaled.outputscale = 1.7
    base.lengthscale = torch.linspace(0.2, 0.5, base.lengthscale.numel()).double()
    return scaled


class PlainGP(gpytorch.models.ExactGP):
    def __init__(self, X: Tensor, y: Tensor) -> None:
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        super().__init__(X, y, likelihood)
        self.mean_module = LinearMean(X.shape[-1]).double()
        self.covar_module = kernel("matern", X.shape[-1])
        likelihood.noise = 0.3

    def forward(self, X: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(X), self.covar_module(X)
        )


class DeepGP(PlainGP):
    def forward(self, X: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return super().forward(X.square())


def single_task(case: str) -> SingleTaskGP:
    X, Y, Yvar, _ = data(
        repeats=case == "repeats", spread=30.0 if "norm" in case else 1
    )
    options: dict = {"covar_module": kernel("rbf" if case == "rbf" else "matern")}
    if case in ("rbf", "zero mean", "no transform"):
        Y = (Y - 40) / 7
        options["outcome_transform"] = None
    if case == "zero mean":
        options["mean_module"] = ZeroMean()
    if case == "constant mean":
        options["mean_module"] = (
            ConstantMean(constant_constraint=None)
            .double()
            .initialize(constant=torch.tensor(0.4).double())
        )
    if "norm" in case:
        options["input_transform"] = Normalize(2)
    if "yvar" in case:
        options["train_Yvar"] = Yvar
    if case == "default":
        options = {}
    torch.manual_seed(0)
    return SingleTaskGP(X, Y, **options).eval()


CASES = [
    "rbf",
    "matern",
    "repeats",
    "yvar",
    "norm yvar",
    "norm",
    "zero mean",
    "constant mean",
    "no transform",
    "default",
]


def prefix_posterior(model: SingleTaskGP, t: int, X: Tensor) -> tuple[Tensor, Tensor]:
    r"""BoTorch's posterior of the first ``t`` data, everything else as in ``model``.

    The standardised values are the data of a model without outcome transform; its
    moments are brought back by the full model's constants.
    """
    outcome = getattr(model, "outcome_transform", None)
    scale = outcome.stdvs.item() if outcome is not None else 1.0
    shift = outcome.means.item() if outcome is not None else 0.0
    inputs = getattr(model, "input_transform", None)
    to_kernel = inputs if inputs is not None else torch.nn.Identity()
    if t == 0:
        F = to_kernel(X)
        mean, variance = model.mean_module(F), model.covar_module(F).to_dense().diag()
    else:
        noise = model.likelihood.noise.expand(len(model.train_targets))[:t]
        prefix = SingleTaskGP(
            model.train_inputs[0][:t],
            model.train_targets[:t].unsqueeze(-1),
            noise.unsqueeze(-1),
            covar_module=model.covar_module,
            mean_module=model.mean_module,
            outcome_transform=None,
        ).eval()
        posterior = prefix.posterior(to_kernel(X))
        mean, variance = posterior.mean.view(-1), posterior.variance.view(-1)
    return (scale * mean + shift).detach(), (scale**2 * variance).detach()


def prior_scale(model: SingleTaskGP) -> float:
    return float(PosteriorPath.from_model(model).prior.scale) * 1.7**0.5


@pytest.mark.some(3)
@pytest.mark.parametrize("case", CASES)
def test_path_equals_botorch_prefix_by_prefix(case: str) -> None:
    model = single_task(case)
    X = data(spread=30.0 if "norm" in case else 1.0)[-1]
    means, variances = PosteriorPath.from_model(model).moments(X)
    assert means.shape == variances.shape == (N_TRAIN + 1, 9)
    scale = prior_scale(model)
    for t in range(N_TRAIN + 1):
        mean, variance = prefix_posterior(model, t, X)
        assert torch.allclose(means[t], mean, rtol=0, atol=1e-9 * scale)
        assert torch.allclose(variances[t], variance, rtol=0, atol=1e-9 * scale**2)


@pytest.mark.some(2)
@pytest.mark.parametrize("case", CASES)
def test_end_of_path_is_the_models_own_posterior(case: str) -> None:
    model = single_task(case)
    X = data(spread=30.0 if "norm" in case else 1.0)[-1]
    means, variances = PosteriorPath.from_model(model).moments(X)
    posterior, scale = model.posterior(X), prior_scale(model)
    mean, variance = posterior.mean.view(-1), posterior.variance.view(-1)
    assert torch.allclose(means[-1], mean, rtol=0, atol=1e-9 * scale)
    assert torch.allclose(variances[-1], variance, rtol=0, atol=1e-9 * scale**2)


def test_plain_gpytorch_model_has_a_path() -> None:
    X, Y, _, test_X = data()
    model = PlainGP(X, Y.squeeze(-1)).eval()
    means, variances = PosteriorPath.from_model(model).moments(test_X)
    with torch.no_grad():
        posterior = model(test_X)
    assert torch.allclose(means[-1], posterior.mean, rtol=1e-9)
    assert torch.allclose(variances[-1], posterior.variance, rtol=1e-8)
    short = PlainGP(X[:5], Y[:5].squeeze(-1))
    short.load_state_dict(model.state_dict())
    with torch.no_grad():
        posterior = short.eval()(test_X)
    assert torch.allclose(means[5], posterior.mean, rtol=1e-9)
    assert torch.allclose(variances[5], posterior.variance, rtol=1e-8)


def test_rounds_select_their_prefixes() -> None:
    model, X = single_task("matern"), data()[-1]
    every = PosteriorPath.from_model(model)
    rounds = torch.tensor([0, 0, 0, 1, 4, 4, 5, 5, 5, 5, 5, 9])
    some = PosteriorPath.from_model(model, rounds)
    assert some.n_rounds == 5
    ends = [0, 3, 4, 6, 11, 12]
    for got, whole in zip(some.moments(X), every.moments(X), strict=True):
        assert torch.equal(got, whole[ends])
    for got, whole in zip(
        some.moments(X, prefixes=True), every.moments(X), strict=True
    ):
        assert torch.equal(got, whole)


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        (
            torch.arange(5),
            r"`rounds` to hold one round per training observation \(12\)",
        ),
        (torch.arange(12).flip(0), "`rounds` not to decrease; sort"),
    ],
)
def test_rounds_that_do_not_fit_are_refused(rounds: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PosteriorPath.from_model(single_task("matern"), rounds)


def test_row_blocks_cover_the_pool_once_and_change_nothing() -> None:
    model, X = single_task("matern"), data()[-1]
    path = PosteriorPath.from_model(model)
    blocks = row_blocks(len(X), per_row=N_TRAIN, budget=2 * 8 * 6 * N_TRAIN)
    assert [b.stop - b.start for b in blocks] == [2, 2, 2, 2, 1]
    pieces = torch.cat([path.moments(X[b])[0] for b in blocks], dim=-1)
    assert torch.allclose(pieces, path.moments(X)[0], rtol=1e-12)
    assert len(row_blocks(1000, per_row=10**9, budget=1)) == 1000


def test_gradients_pass_gradcheck() -> None:
    path = PosteriorPath.from_model(single_task("norm yvar"))
    X = (
        30 * torch.rand(2, 2, generator=torch.manual_seed(1)).double()
    ).requires_grad_()
    assert torch.autograd.gradcheck(lambda X: path.moments(X), X)


def test_after_equals_conditioning_on_the_posterior_mean() -> None:
    X, Y, Yvar, test_X = data()
    model = single_task("yvar")
    path = PosteriorPath.from_model(model)
    pending = torch.rand(3, 2, generator=torch.manual_seed(5)).double()
    noise = torch.tensor([0.4, 0.2, 0.9]).double()
    later = path.after(path.prior.features(pending), noise)
    means, variances = later.moments(test_X)
    before, _ = path.moments(test_X)
    outcome = model.outcome_transform
    with torch.no_grad():
        told = model.posterior(pending).mean
        conditioned = SingleTaskGP(
            torch.cat((X, pending)),
            (torch.cat((Y, told)) - outcome.means) / outcome.stdvs,
            torch.cat((Yvar, noise.unsqueeze(-1))) / outcome.stdvs**2,
            covar_module=model.covar_module,
            mean_module=model.mean_module,
            outcome_transform=None,
        ).eval()
        posterior = conditioned.posterior(test_X)
    variance = outcome.stdvs**2 * posterior.variance
    assert later.n_rounds == path.n_rounds + 1
    assert torch.allclose(means[-1], before[-1], rtol=1e-10)
    assert torch.allclose(variances[-1], variance.view(-1), rtol=1e-8)


@pytest.fixture
def saas(monkeypatch: pytest.MonkeyPatch) -> SaasFullyBayesianSingleTaskGP:
    r"""Three samples, loaded rather than drawn, so that JAX need not be installed."""
    monkeypatch.setattr(fully_bayesian, "_check_jax_available", lambda: None)
    if not fully_bayesian._HAS_JAX:
        monkeypatch.setattr(fully_bayesian, "jnp", np, raising=False)
    X, Y, _, _ = data()
    model = SaasFullyBayesianSingleTaskGP(
        X, Y, outcome_transform=Standardize(1), input_transform=Normalize(2)
    )
    g = torch.Generator().manual_seed(2)
    model.load_mcmc_samples(
        {
            "lengthscale": 0.3 + torch.rand(3, 1, 2, generator=g).double(),
            "outputscale": 0.5 + torch.rand(3, generator=g).double(),
            "mean": torch.randn(3, generator=g).double(),
            "noise": 0.05 + torch.rand(3, 1, generator=g).double(),
        }
    )
    return model.eval()


def map_saas() -> EnsembleMapSaasSingleTaskGP:
    X, Y, Yvar, _ = data()
    taus = torch.tensor([0.1, 0.2, 0.4]).double()
    model = EnsembleMapSaasSingleTaskGP(X, Y, Yvar, taus=taus, num_taus=3)
    g = torch.Generator().manual_seed(2)
    lengthscale = 0.3 + torch.rand(3, 1, 2, generator=g).double()
    model.covar_module.base_kernel.lengthscale = lengthscale
    model.mean_module.constant.data = torch.randn(3, generator=g).double()
    return model.eval()


@pytest.mark.parametrize("name", ["saas", "map_saas"])
def test_ensembles_have_one_path_per_member(
    name: str, request: pytest.FixtureRequest
) -> None:
    model = map_saas() if name == "map_saas" else request.getfixturevalue("saas")
    test_X = data()[-1]
    path = PosteriorPath.from_model(model)
    means, variances = path.moments(test_X)
    assert path.prior.is_ensemble
    assert means.shape == (N_TRAIN + 1, 3, 9)
    posterior = model.posterior(test_X)
    assert torch.allclose(means[-1], posterior.mean.squeeze(-1), rtol=1e-9)
    assert torch.allclose(variances[-1], posterior.variance.squeeze(-1), rtol=1e-8)
    expanded, _ = path.moments(test_X.expand(3, 9, 2))
    assert torch.equal(expanded, means)


def test_empty_past_is_the_prior() -> None:
    prior = GPPrior.from_kernel(kernel("rbf"), noise_var=0.1)
    X = data()[-1]
    none = torch.empty(0).double()
    path = PosteriorPath.from_data(prior, torch.empty(0, 2).double(), none, none)
    means, variances = path.moments(X)
    assert torch.equal(means, torch.zeros(1, 9).double())
    assert torch.allclose(variances, torch.full((1, 9), 1.7).double())


def test_float32_models_agree_with_float64_ones() -> None:
    X, Y, _, test_X = data()
    exact = SingleTaskGP(X, Y).eval()
    rough = SingleTaskGP(X.float(), Y.float()).eval()
    rough.load_state_dict(exact.state_dict())
    for a, b in zip(
        PosteriorPath.from_model(rough).moments(test_X),
        PosteriorPath.from_model(exact).moments(test_X),
        strict=True,
    ):
        assert a.dtype == torch.float64
        assert torch.allclose(a, b, rtol=1e-3, atol=1e-3)


def unsupported(case: str) -> object:
    X, Y, _, _ = data()
    positive = Y - Y.min() + 1
    tasks = torch.cat((X, torch.arange(N_TRAIN).double().unsqueeze(-1) % 2), dim=-1)
    makers = {
        "variational": lambda: SingleTaskVariationalGP(X, Y),
        "deterministic": lambda: GenericDeterministicModel(lambda X: X[..., :1]),
        "outputs": lambda: SingleTaskGP(X, torch.cat((Y, -Y), dim=-1)),
        "list": lambda: ModelListGP(SingleTaskGP(X, Y), SingleTaskGP(X, Y)),
        "tasks": lambda: MultiTaskGP(tasks, Y, task_feature=-1),
        "log": lambda: SingleTaskGP(X, positive, outcome_transform=Log()),
        "batched": lambda: SingleTaskGP(X.expand(2, -1, -1), Y.expand(2, -1, -1)),
        "deep": lambda: DeepGP(X, Y.squeeze(-1)),
        "perturbed": lambda: SingleTaskGP(
            X, Y, input_transform=InputPerturbation(torch.zeros(2, 2).double())
        ),
    }
    return makers[case]()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("variational", "`model` to be an exact GP.*Use an exact single-output GP"),
        ("deterministic", "`model` to be an exact GP.*GenericDeterministicModel"),
        ("outputs", r"one output, but got SingleTaskGP with 2.*`model.subset_output"),
        ("list", "exact GP.*ModelListGP|one output.*subset_output"),
        (
            "tasks",
            "one task, but got MultiTaskGP with 2.*single-output GP for each",
        ),
        ("log", "`Standardize` or none, but got Log.*Transform `y` and the threshold"),
        ("batched", r"without batch shape, but got \(2,\).*fit others one by one"),
        ("deep", "`model.forward` to return .*DeepGP does more. Move it"),
        ("perturbed", "InputPerturbation makes several of one. Leave it out"),
    ],
)
def test_models_without_an_exact_path_are_refused_with_a_remedy(
    case: str, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        PosteriorPath.from_model(unsupported(case))


def test_batched_kernel_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="kernel without batch shape, but got"):
        GPPrior.from_kernel(RBFKernel(batch_shape=torch.Size([2])))


def test_kernels_given_in_float32_are_held_in_float64() -> None:
    single, double = kernel("rbf").float(), kernel("rbf").float().double()
    X = data()[-1]
    rough = GPPrior.from_kernel(single, LinearMean(2))
    exact = GPPrior.from_kernel(double)
    assert torch.equal(rough.covariance(X, X), exact.covariance(X, X))
    assert rough.mean(X).dtype == torch.float64
    assert next(single.parameters()).dtype == torch.float32


def test_singular_covariance_is_factorised_with_a_warning() -> None:
    K = torch.ones(4, 4).double()
    with pytest.warns(JitterWarning, match="singular; 1e-10 was added to the noise"):
        L = factorize(K, torch.zeros(4).double())
    assert torch.allclose(L @ L.mT, K, atol=1e-9)


def test_indefinite_covariance_is_refused() -> None:
    K = torch.tensor([[1.0, 2.0], [2.0, 1.0]]).double()
    with pytest.raises(ValueError, match=r"positive definite.*positive noise variance"):
        factorize(K, torch.zeros(2).double())


def test_making_a_path_leaves_the_model_trainable() -> None:
    model = single_task("matern")
    PosteriorPath.from_model(model)
    assert all(p.requires_grad for p in model.parameters())
