r"""BoTorch models fitted to data: the default one, and one with unequal noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import scipy  # which loads its packages when they are first used
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.kernels import CategoricalKernel
from botorch.models.model import Model
from botorch.models.multitask import MultiTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputTransform,
    OneHotToNumeric,
)
from botorch.models.transforms.outcome import StratifiedStandardize
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
)
from botorch.posteriors.posterior import Posterior
from botorch.settings import validate_input_scaling
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import (
    AdditiveKernel,
    IndexKernel,
    Kernel,
    MaternKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.likelihoods import GaussianLikelihood, HadamardGaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_lse._device import ordinary
from botorch_lse._validation import check_map, check_shape, real_matrix
from botorch_lse.data.encoding import SAME_ROW
from botorch_lse.data.pool import Pool
from botorch_lse.estimators.variance import variance_bounds
from botorch_lse.models.explanations import (
    LEAST_NOISE,
    AnyGP,
    explained,
    fitted,
    varied,
)
from botorch_lse.models.gaussian_process import GPPrior

NOISE_DELTA = 0.05
"""One minus the confidence of the bound of the noise from replicates."""
FAST = 0.1
"""The lengthscale from which a second fit starts, as a share of the box's diagonal.
It is made where the noise is learnt and no row was measured twice. From BoTorch's own
start a fit may end where all is noise, at a likelihood smaller by ten nats."""
LEAST_LENGTHSCALE, LEAST_SCALE = 1e-2, 1e-4
"""The bounds of a word's lengthscale and of the scale of a kernel's term.
At the least lengthscale levels have nothing in common."""
STEP_TOLERANCE = 1e-6
"""The share of the range of values below which differences count as none.
Decimals differ from what they mean in the last digit, single precision in the 7th."""
CONSTANT_STD = 1e-300
"""The standard deviation below which values count as constant.
BoTorch's own limit is much larger and would treat values in tiny units as constant."""

MOST_ADDITIVE = 20
"""The largest number of inputs whose single functions are added up."""

AnyKernel = TypeVar("AnyKernel", RBFKernel, MaternKernel)
ModelFactory = Callable[[Tensor, Tensor, Tensor | None], Model]
ModelArgument: TypeAlias = ModelFactory | Model | Kernel | GPPrior | None


def fit_single_task_gp(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor
) -> SingleTaskGP:
    r"""The default model: BoTorch's ``SingleTaskGP``, fitted from its initial values.

    Args:
        train_X: ``n x d``.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn one noise variance.
        bounds: ``2 x d`` bounds of the pool, for the input scaling.
    """
    d = train_X.shape[-1]
    scale, kernel = Normalize(d, bounds=bounds), default_kernel(d)
    return fit_with_inputs(train_X, train_Y, train_Yvar, scale, kernel)


def fit_additive_gp(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor
) -> SingleTaskGP:
    r"""The default model of numbers: functions of single inputs, and one of all.

    Args:
        train_X: ``n x d``.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn one noise variance.
        bounds: ``2 x d`` bounds of the pool, for the input scaling.
    """
    d = train_X.shape[-1]
    scale, kernel = Normalize(d, bounds=bounds), additive_kernel(d)
    return fit_with_inputs(train_X, train_Y, train_Yvar, scale, kernel)


def fit_mixed_gp(
    train_X: Tensor,
    train_Y: Tensor,
    train_Yvar: Tensor | None,
    bounds: Tensor,
    words: Mapping[int, int],
) -> SingleTaskGP:
    r"""The default model with words among the inputs: a kernel of numbers and words.

    It is BoTorch's ``MixedSingleTaskGP``: one term of the numbers, one of the words and
    one of both, so that a word may shift the function, change its form, or both. In
    addition the scales of the terms and the lengthscales of the words have priors;
    without them intervals are much too narrow while data are few: on twelve kinds of
    mixed functions, three seeds each, intervals of 95 % held 80 % of the truth after 20
    random rows, with priors 87 % (and 81 % by a kernel of numbers on the columns).

    Args:
        train_X: ``n x d``, words as one column of 0 and 1 for each level.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn one noise variance.
        bounds: ``2 x d`` bounds of the pool, for the input scaling.
        words: The first column of each word, and its number of levels
            (``pool.words``).
    """
    codes, kernel = word_codes(bounds, words), mixed_kernel(train_X.shape[-1], words)
    return fit_with_inputs(train_X, train_Y, train_Yvar, codes, kernel)


def fit_with_inputs(
    train_X: Tensor,
    train_Y: Tensor,
    train_Yvar: Tensor | None,
    input_transform: InputTransform,
    kernel: Kernel,
) -> SingleTaskGP:
    r"""The default model with an input transform and a kernel.

    Args:
        train_X: ``n x d'``.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn one noise variance.
        input_transform: From the columns of ``train_X`` to the kernel's.
        kernel: Squared exponentials of inputs in the unit cube, and others.
    """
    bound = None if train_Yvar is not None else largest_noise(train_X, train_Y)
    model = SingleTaskGP(
        train_X,
        train_Y,
        train_Yvar,
        likelihood=None if train_Yvar is not None else noise_of(train_Y, bound),
        covar_module=kernel,
        input_transform=input_transform,
        outcome_transform=Standardize(1, min_stdv=CONSTANT_STD),
    )
    if train_Yvar is not None:
        return fitted(model)[1]
    starts = [model]
    if bound is None:
        starts.append(faster(model))
    return explained(starts, n_replicates(train_X))


def unfitted_standardised(
    F: Tensor, y: Tensor, noise: Tensor | None, kernel: Kernel
) -> list[SingleTaskGP]:
    r"""Models of values that are standardised already, at the kernel's own inputs.

    Fits begin from them, from the one of the shortest lengthscales last.

    Args:
        F: ``n x d'``.
        y: ``n x 1``.
        noise: ``n x 1`` noise variances, or ``None`` to learn one of all.
        kernel: Squared exponentials of inputs in the unit cube, and others.
    """
    bound = None if noise is not None else largest_noise(F, y)
    # Groups of values may be standardised each by itself, and columns be no inputs.
    with validate_input_scaling(False):
        model: SingleTaskGP = SingleTaskGP(
            F,
            y,
            noise,
            likelihood=None if noise is not None else noise_of(y, bound),
            covar_module=kernel,
            outcome_transform=None,
        )
    return [model, *([faster(model)] if noise is None and bound is None else [])]


def input_scaling(bounds: Tensor, words: Mapping[int, int]) -> InputTransform:
    r"""The transform of inputs that the default model has.

    Args:
        bounds: ``2 x d``.
        words: The first column of each word, and its number of levels.
    """
    if words:
        return word_codes(bounds, words).eval()
    return Normalize(bounds.shape[-1], bounds=bounds).eval()


def kernel_of_inputs(d: int, words: Mapping[int, int], is_sum: bool = True) -> Kernel:
    r"""The kernel that the default model has, after ``input_scaling``.

    Args:
        d: The number of columns before it.
        words: The first column of each word, and its number of levels.
        is_sum: Whether it is that of a sum of functions of single inputs and of all.
    """
    if words:
        return mixed_kernel(d, words)
    return additive_kernel(d) if is_sum else default_kernel(d)


def faster(model: AnyGP) -> AnyGP:
    r"""A copy of an unfitted model with short initial lengthscales."""
    found = deepcopy(model)
    for part in found.covar_module.modules():
        if isinstance(part, RBFKernel | MaternKernel):
            part.lengthscale = _double(FAST * part.lengthscale.shape[-1] ** 0.5)
    return found


class TaskKernel(IndexKernel):
    r"""GPyTorch's ``IndexKernel``, which looks up its table of covariances.

    The original multiplies by sparse matrices, which takes longer and warns.
    """

    def forward(
        self, i1: Tensor, i2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""Covariances of ``N x 1`` numbers with ``M x 1``, or the diagonal alone."""
        table = self.covar_matrix.to_dense()
        one, other = i1.long().squeeze(-1), i2.long().squeeze(-1)
        if diag:
            return table[one, other]
        return table[one.unsqueeze(-1), other.unsqueeze(-2)]


def fit_multi_task_gp(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor
) -> MultiTaskGP:
    r"""The default model of correlated outputs: BoTorch's ``MultiTaskGP``, fitted.

    Kernel and priors are those of ``fit_single_task_gp``; each output is standardised
    by itself. Correlations may have either sign (BoTorch's own task kernel has positive
    ones only), and have no prior.

    Args:
        train_X: ``n x (d + 1)``; the last column is the number of the output, from 0.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn one noise variance for each output.
        bounds: ``2 x d`` bounds of the pool, for the input scaling.
    """
    d, number = train_X.shape[-1] - 1, train_X[:, -1].long()
    M = int(number.max()) + 1
    bound, likelihood = None, None
    if train_Yvar is None:
        parts = [(train_X[number == j], train_Y[number == j]) for j in range(M)]
        known = [v for v in (largest_noise(*own) for own in parts) if v is not None]
        bound = max(known) if known else None
        likelihood = _likelihood_by_task(M, d, bound)
    kernel = default_kernel(d)
    model = MultiTaskGP(
        train_X,
        train_Y,
        task_feature=d,
        train_Yvar=train_Yvar,
        covar_module=kernel,
        likelihood=likelihood,
        input_transform=Normalize(d + 1, indices=list(range(d)), bounds=bounds),
        outcome_transform=StratifiedStandardize(
            d, torch.arange(M), min_stdv=CONSTANT_STD
        ),
    )
    tasks = TaskKernel(num_tasks=M, rank=M, active_dims=[d]).double()
    # Half of each output by itself, half in common, as yet with no other output.
    half = torch.full((M,), 0.5, dtype=torch.float64)
    tasks.initialize(covar_factor=half.sqrt().diag(), var=half)
    model.covar_module = kernel * tasks
    if train_Yvar is not None:
        return fitted(model)[1]
    starts = [model]
    if bound is None:
        starts.append(faster(model))
    fewest = min(n_replicates(train_X[number == j]) for j in range(M))
    return explained(starts, fewest)


def _likelihood_by_task(
    M: int, column: int, largest: float | None
) -> HadamardGaussianLikelihood:
    r"""The default likelihood with a noise variance for each output.

    Args:
        M: The number of outputs.
        column: Where the inputs have the number of the output.
        largest: A bound of the variances, relative to the variance of the values.
    """
    prior = LogNormalPrior(_double(-4.0), _double(1.0))
    bounds: Interval = _above(LEAST_NOISE, prior.mode)
    if largest is not None:
        bounds = _between(LEAST_NOISE, max(largest, 2 * LEAST_NOISE), prior.mode)
    found = HadamardGaussianLikelihood(
        num_tasks=M,
        noise_prior=prior,
        noise_constraint=bounds,
        task_feature_index=column,
    )
    return found.double()


def default_kernel(d: int) -> RBFKernel:
    r"""BoTorch's default kernel of ``d`` inputs, in float64 whatever torch's default.

    BoTorch states prior, bound and initial value in the default precision, so that a
    fit would depend on a setting that has nothing to do with the data.

    Source:
        Hvarfner et al. (2024), in the form of BoTorch's
        ``get_covar_module_with_dim_scaled_prior``.
    """
    kernel: RBFKernel = get_covar_module_with_dim_scaled_prior(d).double()
    return with_lengthscale_prior(kernel)


def with_lengthscale_prior(
    kernel: AnyKernel, prior: LogNormalPrior | None = None
) -> AnyKernel:
    r"""The kernel, given a prior of its lengthscales, from whose mode a fit starts.

    Args:
        kernel: A kernel with lengthscales.
        prior: Their prior, on the unit cube. Default: that of ``default_kernel``.
    """
    if prior is None:
        d = kernel.lengthscale.numel()
        prior = LogNormalPrior(_double(2**0.5 + math.log(d) * 0.5), _double(3**0.5))
    kernel.register_prior("lengthscale_prior", prior, "lengthscale")
    kernel.register_constraint("raw_lengthscale", _above(2.5e-2, prior.mode))
    return kernel


def additive_kernel(d: int) -> Kernel:
    r"""The kernel of a sum of functions of single inputs, and a function of all.

    Each has a Matern kernel (smoothness 5/2) with the lengthscales' prior of
    ``default_kernel``; those of single inputs have half of the variance together. With
    squared exponentials errors are the same, and rows at an edge are decided wrongly
    several times as often. With one input, and beyond ``MOST_ADDITIVE``, it is
    ``default_kernel``.
    """
    if not 1 < d <= MOST_ADDITIVE:
        return default_kernel(d)
    single = [scaled(rough_kernel([column]), 0.5 / d) for column in range(d)]
    return AdditiveKernel(*single, scaled(rough_kernel([*range(d)])))


def rough_kernel(columns: list[int]) -> MaternKernel:
    r"""A Matern kernel (smoothness 5/2) of some columns, with the default priors."""
    d = len(columns)
    kernel = MaternKernel(nu=2.5, ard_num_dims=d, active_dims=columns).double()
    return with_lengthscale_prior(kernel)


class WordCodes(OneHotToNumeric):
    r"""BoTorch's ``OneHotToNumeric``, which would take no level at all for the first.

    Args:
        dim: Columns.
        categorical_features: The first column of each word, and its number of levels.
    """

    def transform(self, X: Tensor) -> Tensor:
        r"""The ``... x n x d`` inputs, each word replaced by the number of its level.

        Raises:
            ValueError: If a row has no level of a word, or several.
        """
        for columns in self.onehot_idx:
            part = X[..., columns]
            is_level = ((part == 0) | (part == 1)).all(dim=-1) & (part.sum(dim=-1) == 1)
            if not bool(is_level.all()):
                came = part[~is_level][0].tolist()
                raise ValueError(
                    "Expected one of the words that the pool has, 1 in its column and "
                    f"0 in the others, in columns {columns[0]} to {columns[-1]} of a "
                    f"point, but got {came}. Leave points with other words out, or "
                    "give the pool a row with that word."
                )
        return super().transform(X)


def word_codes(bounds: Tensor, words: Mapping[int, int]) -> InputTransform:
    r"""The transform that scales numbers to the unit cube and codes each word.

    Args:
        bounds: ``2 x d``.
        words: The first column of each word, and its number of levels.
    """
    d = bounds.shape[-1]
    numbers = _numbers(d, words)
    codes = WordCodes(d, dict(words)).eval()
    if not numbers:
        return codes
    scale = Normalize(d, indices=numbers, bounds=bounds)
    return ChainedInputTransform(scale=scale, codes=codes)


def _numbers(d: int, words: Mapping[int, int]) -> list[int]:
    of_words = {first + j for first, n in words.items() for j in range(n)}
    return [column for column in range(d) if column not in of_words]


def mixed_kernel(d: int, words: Mapping[int, int]) -> Kernel:
    r"""A kernel of numbers and words, each word a column after ``word_codes``.

    Args:
        d: Columns before that.
        words: The first column of each word, and its number of levels.
    """
    numbers = columns_of_numbers(d, words)
    fewer = sum(levels - 1 for levels in words.values())
    codes = [column for column in range(d - fewer) if column not in numbers]
    if not numbers:
        return scaled(word_kernel(codes))
    one, other = _number_kernel(numbers), _number_kernel(numbers)
    both = scaled(other * word_kernel(codes))
    return scaled(one) + scaled(word_kernel(codes)) + both


def columns_of_numbers(d: int, words: Mapping[int, int]) -> list[int]:
    r"""The columns of inputs that are numbers, each word a column after ``word_codes``.

    Args:
        d: Columns before that.
        words: The first column of each word, and its number of levels.
    """
    codes, fewer = [], 0
    for first in sorted(words):
        codes.append(first - fewer)
        fewer += words[first] - 1
    return [column for column in range(d - fewer) if column not in codes]


def _number_kernel(columns: list[int]) -> RBFKernel:
    kernel = default_kernel(len(columns))
    kernel.active_dims = torch.tensor(columns)
    return kernel


def word_kernel(columns: list[int]) -> CategoricalKernel:
    r"""The kernel of some columns that are numbers of words' levels."""
    constraint = _above(LEAST_LENGTHSCALE, _double(1.0))
    kernel = CategoricalKernel(ard_num_dims=len(columns), active_dims=columns).double()
    prior = LogNormalPrior(_double(0.0), _double(1.0))
    kernel.register_prior("lengthscale_prior", prior, "lengthscale")
    kernel.register_constraint("raw_lengthscale", constraint)
    return kernel


def scaled(kernel: Kernel, share: float = 0.5, spread: float = 1.0) -> ScaleKernel:
    r"""A term of a kernel, with a scale around a share of the variance of values.

    Args:
        kernel: The term, of variance 1.
        share: The median of the scale's prior.
        spread: The standard deviation of its logarithm.
    """
    found = ScaleKernel(kernel).double()
    prior = LogNormalPrior(_double(math.log(share)), _double(spread))
    found.register_prior("outputscale_prior", prior, "outputscale")
    found.register_constraint("raw_outputscale", _above(LEAST_SCALE, _double(share)))
    return found


def noise_of(train_Y: Tensor, largest: float | None) -> GaussianLikelihood:
    r"""The default likelihood of some values, with the noise that rounding makes.

    Values that are read off in steps have at least the noise of rounding, a twelfth of
    the squared step. Of few levels, such as yes and no, that is much: a fit without it
    may take each step for a jump of the function.

    Args:
        train_Y: ``n x 1``.
        largest: A bound of the noise variance, relative to the variance of the values.
    """
    y = train_Y.squeeze(-1)
    spread, step = float(y.var(correction=0)), resolution(y)
    least = step**2 / 12 / spread if spread > CONSTANT_STD**2 else 0.0
    return default_likelihood(largest, max(least, LEAST_NOISE))


def default_likelihood(
    largest: float | None = None, least: float = LEAST_NOISE
) -> GaussianLikelihood:
    r"""BoTorch's default Gaussian likelihood, in float64 whatever torch's default.

    Args:
        largest: A bound of the noise variance, relative to the variance of the values.
        least: Another one, from below.
    """
    likelihood = get_gaussian_likelihood_with_lognormal_prior().double()
    prior = LogNormalPrior(_double(-4.0), _double(1.0))
    noise = likelihood.noise_covar
    noise.register_prior("noise_prior", prior, "noise")
    start = prior.mode.clamp_min(1.5 * least)
    bounds: Interval = _above(least, start)
    if largest is not None:
        bounds = _between(least, max(largest, 2 * least), start)
    noise.register_constraint("raw_noise", bounds)
    return likelihood


def n_replicates(X: Tensor) -> int:
    r"""The number of ``n x d`` points that repeat an earlier one."""
    return len(X) - len(X.unique(dim=0))


def largest_noise(train_X: Tensor, train_Y: Tensor) -> float | None:
    r"""An upper bound of the noise variance, from rows measured more than once.

    Values of different rows alone do not tell noise from a function that varies fast,
    and of the two the likelihood prefers noise where data are few.

    Args:
        train_X: ``n x d``.
        train_Y: ``n x 1``.

    Values that are read off in steps agree although there is noise. So replicates say
    no more of the noise than rounding leaves to see: each counts with the variance of
    that, a twelfth of the squared step, at least.

    Returns:
        The upper limit of a one-sided confidence interval of 95 %, relative to the
        variance of all values; ``None`` where no row was measured twice or all values
        are alike.
    """
    _, group, counts = train_X.unique(dim=0, return_inverse=True, return_counts=True)
    freedom, y = len(train_X) - len(counts), train_Y.squeeze(-1)
    spread = float(y.var()) if freedom > 0 else 0.0
    if spread <= CONSTANT_STD**2:
        return None
    means = torch.zeros(len(counts)).to(y).index_add(0, group, y) / counts
    within = float((y - means[group]).square().sum())
    within = max(within, freedom * resolution(y) ** 2 / 12)
    # `scipy.stats.chi2.ppf`, which takes half a second to load.
    least = 2 * float(scipy.special.gammaincinv(freedom / 2, NOISE_DELTA))
    return within / least / spread


def resolution(y: Tensor) -> float:
    r"""The largest step of which all differences of some values are multiples.

    Euclid's algorithm; of values that were not rounded it is next to nothing.

    Args:
        y: ``n`` values.

    Returns:
        The step, units of ``y``; 0 where all values are alike.
    """
    values = y.unique().tolist()
    least, step = STEP_TOLERANCE * (values[-1] - values[0]), 0.0
    for low, high in itertools.pairwise(values):
        a, b = step, high - low
        while b > least:
            # The nearest multiple, as decimals are not exact in binary.
            a, b = b, abs(a - b * round(a / b))
        step = a
    return step


def _above(bound: float, initial_value: Tensor) -> GreaterThan:
    r"""The constraint ``x > bound`` in float64.

    GPyTorch would make the bound in torch's default precision and round it.
    """
    found = GreaterThan(bound, transform=None, initial_value=initial_value).double()
    found.lower_bound.fill_(bound)
    return found


def _between(lower: float, upper: float, initial_value: Tensor) -> Interval:
    r"""The constraint ``lower < x < upper`` in float64, begun within it."""
    start = initial_value.clamp(max=upper)
    found = Interval(lower, upper, transform=None, initial_value=start).double()
    found.lower_bound.fill_(lower)
    found.upper_bound.fill_(upper)
    return found


def _double(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def unfitted_prior(
    bounds: Tensor,
    words: Mapping[int, int] | None = None,
    kernel: Kernel | None = None,
) -> GPPrior:
    r"""The default model's prior before any data: scaled inputs, unit variance.

    It is used to choose the first observations; nothing is classified with it.

    Args:
        bounds: ``2 x d`` bounds of the pool.
        words: The first column of each word, and its number of levels.
        kernel: Another kernel than that of numbers, on the same inputs.
    """
    d = bounds.shape[-1]
    if not words:
        prior = GPPrior.from_kernel(kernel or default_kernel(d))
        return replace(prior, transform_inputs=Normalize(d, bounds=bounds).eval())
    codes, kernel = word_codes(bounds, words).eval(), kernel or mixed_kernel(d, words)
    prior = replace(GPPrior.from_kernel(kernel), transform_inputs=codes)
    point = bounds[:1].clone()  # the variance is the same everywhere
    for first, n in words.items():
        point[:, first : first + n] = torch.eye(n)[0].to(point)
    with torch.no_grad():
        variance = prior.variance(prior.features(point))[0]
    return replace(prior, scale=prior.scale / variance.sqrt())


def fixed_prior(model: ModelArgument) -> GPPrior | None:
    r"""The prior of an argument with fixed hyper-parameters; ``None`` for a factory.

    Args:
        model: A fitted BoTorch model (its data are ignored; kernel, mean, noise and
            transforms are taken), a GPyTorch kernel (zero mean, units of ``y``), a
            ``GPPrior``, a factory, or ``None``.

    Raises:
        UnsupportedError: If it is anything else, or not exact (``GPPrior.from_model``).
    """
    if isinstance(model, GPPrior):
        return model
    if isinstance(model, Kernel):
        return GPPrior.from_kernel(model)
    if isinstance(model, Model):
        return GPPrior.from_model(model)
    if model is None or callable(model):
        return None
    raise UnsupportedError(
        "Expected `model` to be None, a callable (train_X, train_Y, train_Yvar) -> "
        "fitted BoTorch model, a fitted BoTorch model, or a GPyTorch kernel, but got "
        f"{type(model).__name__}."
    )


@dataclass(frozen=True, eq=False)
class QuadraticNoise:
    r"""The noise variance ``phi(x)' Sigma phi(x)``, clipped to bounds.

    Example:
        >>> from botorch_lse.estimators import head
        >>> X = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> found = head(X, [0, 1], [1.0, 2.0], [0, 0, 1], [0.0, 2.0, 5.0])
        >>> noise = QuadraticNoise(found.Sigma, bounds=(0.1, 20.0))
        >>> noise(torch.tensor([[0.0, 1.0], [1.0, 1.0]])).round(decimals=6).tolist()
        [9.0, 10.0]

    Args:
        Sigma: ``m x m``, symmetric, units of ``y`` squared: ``head(...).Sigma``.
        bounds: The least and the largest variance.
        features: ``phi``: a function from ``... x d`` points to ``... x m``, or a
            ``Pool`` whose ``features`` are looked up, for its own rows only. Default:
            the points themselves.

    Raises:
        BotorchTensorDimensionError: If ``Sigma`` is not square.
        ValueError: If the bounds are not ``0 < least <= largest``, or ``features`` is
            neither a function nor a ``Pool``.

    Source:
        Weltz et al. (2023), section 2 and Algorithm 1.
    """

    Sigma: Any
    bounds: tuple[float, float]
    features: Callable[[Tensor], Tensor] | Pool | None = None

    def __post_init__(self) -> None:
        Sigma = real_matrix(self.Sigma, "Sigma")
        check_shape(len(Sigma) == Sigma.shape[1], Sigma, "Sigma", "to be square")
        object.__setattr__(self, "Sigma", Sigma)
        object.__setattr__(self, "bounds", variance_bounds(self.bounds))
        if not isinstance(self.features, Pool | None) and not callable(self.features):
            raise ValueError(
                "Expected `features` to be a function of points or a `Pool`, but got "
                f"{type(self.features).__name__}."
            )

    def __call__(self, X: Tensor) -> Tensor:
        r"""The noise variances at points ``X`` (``... x d`` to ``...``, float64).

        Raises:
            BotorchTensorDimensionError: If there are not ``m`` features.
            ValueError: If a point is not finite, or not a row of the pool that has the
                features.
        """
        if not bool(torch.isfinite(X).all()):
            raise ValueError("Expected `X`, the points, to be finite.")
        phi = X = X.double()
        if isinstance(self.features, Pool):
            phi = features_of_rows(self.features, X)
        elif self.features is not None:
            phi = self.features(X).double()
        Sigma = self.Sigma.to(phi.device)
        if phi.shape[-1] != len(Sigma):
            raise BotorchTensorDimensionError(
                f"Expected {len(Sigma)} features as `Sigma` has rows, but got "
                f"{phi.shape[-1]}. Give `features`, the map from points to them."
            )
        return ((phi @ Sigma) * phi).sum(dim=-1).clamp(*self.bounds)


def features_of_rows(pool: Pool, X: Tensor) -> Tensor:
    r"""The features of points that are rows of a pool (``... x d`` to ``... x m``).

    Raises:
        BotorchTensorDimensionError: If they have other columns.
        ValueError: If a point is not a row of the pool.
    """
    wanted = f"with the {pool.d} columns of the pool that has the features"
    check_shape(X.shape[-1] == pool.d, X, "X", wanted)
    low, high = pool.bounds.to(X)
    flat = (X.reshape(-1, X.shape[-1]) - low) / (high - low)
    distance = torch.cdist(flat, (pool.X.to(X) - low) / (high - low), p=torch.inf)
    nearest, rows = distance.min(dim=-1)
    far = nearest > SAME_ROW
    if bool(far.any()):
        point = X.reshape(-1, X.shape[-1])[int(far.nonzero()[0])].tolist()
        raise ValueError(
            "Expected `X` to be rows of the pool that has the features, but got "
            f"{point}. Give the map from points to features as a function."
        )
    features = pool.X if pool.features is None else pool.features
    return features.to(X)[rows].reshape(*X.shape[:-1], -1)


def noise_at(noise: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    r"""The checked noise variances at points (``... x d`` to ``...``).

    Raises:
        BotorchTensorDimensionError: If there is not one variance per point.
        ValueError: If ``noise`` is not a function, or a variance not positive.
    """
    if not callable(noise):
        raise ValueError(
            "Expected `noise` to be a function from points to variances, but got "
            f"{noise!r}. For one variance everywhere use a `SingleTaskGP`."
        )
    found = noise(X)
    check_map(found, X, "noise", "variances", batch="...", positive=True)
    return found


class HeteroscedasticGP(SingleTaskGP):
    r"""A ``SingleTaskGP`` that predicts the noise of new observations.

    Args:
        train_X: ``n x d``.
        train_Y: ``n x 1``.
        noise: The noise variance of an observation: ``... x d`` points to ``...``,
            units of ``y`` squared, such as ``QuadraticNoise``.
        train_Yvar: ``n x 1`` variances of the values, where they are known; default
            what ``noise`` says.
        covar_module: The kernel; default BoTorch's.
        bounds: ``2 x d`` bounds for the input scaling; ``None``: inputs stay as they
            are.

    Raises:
        BotorchTensorDimensionError: If a shape is wrong.
        ValueError: If ``noise`` is not a function, or a variance not positive.
    """

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        noise: Callable[[Tensor], Tensor],
        train_Yvar: Tensor | None = None,
        covar_module: Kernel | None = None,
        bounds: Tensor | None = None,
    ) -> None:
        if train_Yvar is None:
            train_Yvar = noise_at(noise, train_X).to(train_Y).unsqueeze(-1)
        scale = None if bounds is None else Normalize(train_X.shape[-1], bounds=bounds)
        super().__init__(
            train_X,
            train_Y,
            train_Yvar,
            covar_module=covar_module,
            input_transform=scale,
            outcome_transform=Standardize(1),
        )
        self._noise = noise

    def predict_noise(self, X: Tensor) -> Tensor:
        r"""The noise variances of observations at points (``... x d`` to ``...``)."""
        return noise_at(self._noise, X)

    def posterior(  # type: ignore[override]  # as SingleTaskGP has it
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        r"""BoTorch's posterior; ``observation_noise=True`` adds the predicted noise.

        Args:
            X: ``batch_shape x q x d``.
            output_indices: See ``SingleTaskGP``.
            observation_noise: Whether to add noise, or its variances, standardised.
            posterior_transform: See ``SingleTaskGP``.
        """
        if observation_noise is True:
            noise = self.predict_noise(X).to(X).unsqueeze(-1)
            transform: Any = self.outcome_transform  # Standardize
            observation_noise = noise / transform.stdvs.square()
        return super().posterior(
            X, output_indices, observation_noise, posterior_transform
        )


@ordinary
def fit_heteroscedastic_gp(
    train_X: Tensor,
    train_Y: Tensor,
    train_Yvar: Tensor | None,
    noise: Callable[[Tensor], Tensor],
    bounds: Tensor | None = None,
    covar_module: Kernel | None = None,
) -> HeteroscedasticGP:
    r"""A fitted ``HeteroscedasticGP``: the model factory of a strategy.

    Example:
        >>> from functools import partial
        >>> noise = QuadraticNoise([[0.5, 0.0], [0.0, 0.1]], bounds=(0.1, 1.0))
        >>> factory = partial(fit_heteroscedastic_gp, noise=noise)
        >>> factory(pool_X, pool_X.sum(-1, True), None).num_outputs
        1

    Args:
        train_X: ``n x d``.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``: variances that are known and go before ``noise``; or
            ``None``.
        noise: The noise variance of an observation: ``... x d`` points to ``...``,
            units of ``y`` squared, such as ``QuadraticNoise``.
        bounds: ``2 x d`` bounds of the pool, for the input scaling.
        covar_module: The kernel, copied and fitted from its current values, such as a
            ``LinearKernel``; default BoTorch's.
    """
    kernel = deepcopy(covar_module)
    model = HeteroscedasticGP(train_X, train_Y, noise, train_Yvar, kernel, bounds)
    varied(fitted(model)[1])  # it is the same model
    return model
