r"""The noise that the data allow, and a model that covers all of it.

Where no row was measured twice, a function that varies fast and is measured exactly may
explain the values as well as a smooth one with much noise. Their likelihoods are then
alike, and the priors choose. Each by itself is far too sure: of sixty values in four
inputs with as much noise as signal, every second truth was outside of the intervals.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models import SingleTaskGP
from botorch.models.multitask import MultiTaskGP
from gpytorch.kernels import AdditiveKernel, Kernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.module import Module
from torch import Tensor

from botorch_lse.models.memory import remembered

LEAST_NOISE = 1e-4
"""The least noise variance that BoTorch fits, relative to the values' variance."""
TELLING = 4
"""The number of replicates that suffice to estimate the noise: a run makes as many.
The upper limit of its standard deviation is then known to a factor of 2.4."""
ALIKE = 1.92
"""The difference of log likelihoods below which explanations are equally likely.
Half of the quantile of 95 % of chi-square with one degree of freedom, in nats."""
APART = 4.0
"""The factor by which noise variances differ in different explanations."""
MUCH, LITTLE = 0.5, 0.01
"""The noise variances of the opposite explanation, relative to the values' variance.
``MUCH`` is tried where the likeliest fit has little noise, and the reverse."""
LEAST_LIKELIER = 1e-6
"""The gain in log likelihood, for each datum, from which it is more than rounding."""
MOST_NOISE, N_NOISES = 2.0, 44
"""The largest noise variance that is looked at, and the number of those looked at.
They lie a factor of 1.25 or so apart."""

FLAT = 0.01
"""The share of variance below which a fitted kernel takes the function for a constant.
Of the variance that the values leave to the function, at most."""
FLAT_DELTA = 0.05
"""One minus the confidence of the upper limit of what is left to the function."""

AnyGP = TypeVar("AnyGP", SingleTaskGP, MultiTaskGP)


def fitted(model: AnyGP) -> tuple[float, AnyGP]:
    r"""A model fitted from its present values, and the log density it attains.

    Few values may leave the likelihood of a kernel without priors unbounded, so that no
    attempt ends. The model then stays as it was, with a warning, and attains ``-inf``.
    """
    targets: Any = model.train_targets
    try:
        return _fitted(model)
    except ModelFittingError:
        warnings.warn(
            f"A model of {len(targets)} values could not be fitted: its "
            "kernel and noise stay as they were before the fit. Measure more before "
            "the first fit (`n_initial`), or give the kernel priors.",
            BotorchWarning,
            stacklevel=2,
        )
        return -math.inf, model.eval()


def _fitted(model: AnyGP) -> tuple[float, AnyGP]:
    def fit() -> float:
        # Not at the top: it brings SciPy, which remembered fits do without.
        from botorch_lse.models import marginal

        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        # Parameters are few numbers, of which `deepcopy` makes many objects.
        start = {name: value.clone() for name, value in model.state_dict().items()}
        try:
            return marginal.fit_likelihood(mll)
        except ModelFittingError:
            model.load_state_dict(start)
            raise

    return remembered(model, fit), model.eval()


def varied(model: AnyGP) -> AnyGP:
    r"""A fitted model, its scale raised where the fit has collapsed it.

    If values vary little more than their noise, a constant is the likeliest
    explanation, and a kernel whose scale has no prior becomes 0: the model would be
    sure that all rows are equal. The scale is then raised to what the upper limit of
    the variance of the values leaves to the function.

    Args:
        model: A fitted exact GP.
    """
    # Not at the top: it takes long to load, and whoever fits has it.
    from scipy.stats import chi2

    inputs: Any = model.train_inputs
    y: Any = model.train_targets
    likelihood: Any = model.likelihood
    with torch.no_grad():
        within = float((y - y.mean()).square().sum())
        limit = within / float(chi2.ppf(FLAT_DELTA, max(len(y) - 1, 1)))
        allowed = limit - float(likelihood.noise.mean())
        widest = float(model.covar_module(inputs[0], diag=True).max())
    if not 0 < widest < FLAT * allowed:
        return model
    model.covar_module = _scaled(model.covar_module, allowed / widest)
    return model.eval()


def likeliest(starts: Sequence[AnyGP]) -> tuple[float, AnyGP]:
    r"""The likeliest model after a fit of each, and the log density it attains.

    Args:
        starts: Models that are not fitted yet, alike but for their initial values.
    """
    value, best = fitted(starts[0])
    for start in starts[1:]:
        attained, model = fitted(start)
        if attained > value + LEAST_LIKELIER:
            value, best = attained, model
    return value, best


def explained(
    starts: Sequence[AnyGP],
    replicates: int,
    found: tuple[float, AnyGP] | None = None,
) -> AnyGP:
    r"""The likeliest model, or one that covers all noise that the data allow.

    Where they allow another noise than the likeliest, the model has the mean of the
    kernels of both explanations and the largest noise allowed: its intervals hold a
    function that varies fast, and one that does not. That costs one more fit, with the
    noise held at the other extreme. The noise variances between which the data do not
    tell are in the attribute ``noise_between``.

    Args:
        starts: Models that are not fitted yet, alike but for their initial values, the
            one of the shortest lengthscales last. They learn their noise.
        replicates: How many values repeat a point, of the output that has the fewest.
        found: What ``likeliest`` found from copies of them; default: they are fitted.
    """
    targets: Any = starts[0].train_targets
    is_alone = replicates >= TELLING or not bool(targets.any())  # all values alike
    other: Any = () if is_alone else (deepcopy(starts[0]), deepcopy(starts[-1]))
    value, best = likeliest(starts) if found is None else found
    if is_alone or value == -math.inf:
        return best
    likelihood: Any = best.likelihood
    own = likelihood.noise.detach().clone()
    has_much = float(own.max()) > (MUCH * LITTLE) ** 0.5
    rival = _fitted_with(other[has_much], LITTLE if has_much else MUCH)
    if rival is None:
        return best
    noises = _noises(best)
    profiles = torch.stack([profile(model, noises) for model in (best, rival)])
    likely = float(profiles.max()) - ALIKE
    allowed = noises[(profiles > likely).any(dim=0)]
    low, high = float(allowed.min()), float(allowed.max())
    # Noise that is little anyway may be what it likes. Where much was found, only
    # another kernel can make less of it, or be likelier by itself.
    is_more = high > max(APART * float(own.min()), LITTLE)
    is_unlikely = _log_likelihood(best, value) < likely
    is_less = has_much and (is_unlikely or APART * low < float(own.max()))
    if not (is_more or is_less):
        return best
    halves = [_scaled(deepcopy(m.covar_module), 0.5) for m in (best, rival)]
    best.covar_module = AdditiveKernel(*halves)
    likelihood.noise = own.clamp_min(high)
    setattr(best, "noise_between", (min(low, float(own.min())), high))  # noqa: B010
    return best.eval()


def _scaled(kernel: Kernel, factor: float) -> ScaleKernel:
    found: ScaleKernel = ScaleKernel(kernel).double()
    found.outputscale = torch.tensor(factor, dtype=torch.float64)
    return found


def _noises(model: Any) -> Tensor:
    r"""Noise variances between the bounds of a model's likelihood."""
    bounds = model.likelihood.noise_covar.raw_noise_constraint
    most = min(MOST_NOISE, 0.999 * float(bounds.upper_bound))
    ends = math.log(1.001 * float(bounds.lower_bound)), math.log(most)
    return torch.linspace(*ends, N_NOISES, dtype=torch.float64).exp()


def _fitted_with(model: AnyGP, noise: float) -> AnyGP | None:
    likelihood = model.likelihood
    least, most = _noises(model)[[0, -1]].tolist()
    wanted = min(max(noise, least), most)
    likelihood.noise = torch.full_like(likelihood.noise, wanted)
    for parameter in likelihood.parameters():
        parameter.requires_grad_(False)
    try:
        return _fitted(model)[1]
    except ModelFittingError:  # there is no other explanation to be found
        return None


def profile(model: Any, noises: Tensor) -> Tensor:
    r"""The log likelihood of a fitted model's kernel, at each of ``k`` noise variances.

    With the priors of the kernel, without that of the noise.

    Args:
        model: A fitted exact GP.
        noises: In the units of the standardised values squared, for all outputs.
    """
    with torch.no_grad():
        model.train()  # in which mode a call says what is believed before the values
        prior = model(*model.train_inputs)
        model.eval()
        residual = model.train_targets - prior.mean
        values, vectors = torch.linalg.eigh(prior.covariance_matrix)
        squared = (vectors.mT @ residual).square().unsqueeze(-1)
        variance = values.clamp_min(0.0).unsqueeze(-1) + noises
        found = -0.5 * (squared / variance + variance.log() + _LOG_2PI).sum(dim=0)
        return found + log_priors(model.covar_module)


_LOG_2PI = math.log(2 * math.pi)


def _log_likelihood(model: Any, value: float) -> float:
    r"""The log likelihood of ``profile`` at the model's own noise.

    Args:
        model: Fitted.
        value: What the fit attained, for each datum, with the noise's prior.
    """
    with torch.no_grad():
        return value * len(model.train_targets) - log_priors(model.likelihood)


def log_priors(module: Module | Kernel) -> float:
    r"""The log density of a module's parameters by their priors."""
    found = module.named_priors()
    return sum(float(p.log_prob(value(of)).sum()) for _, of, p, value, _ in found)
