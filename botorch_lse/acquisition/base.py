r"""Shared parts of the acquisition functions: registration with BoTorch, checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.likelihoods.sparse_outlier_noise import (
    SparseOutlierGaussianLikelihood,
)
from botorch.models.model import Model, ModelList
from botorch.models.multitask import KroneckerMultiTaskGP
from botorch.utils.transforms import is_ensemble, t_batch_mode_transform
from gpytorch.likelihoods import (
    Likelihood,
    LikelihoodList,
    MultitaskGaussianLikelihood,
)
from torch import Tensor

from botorch_lse._validation import (
    check_columns,
    check_shape,
    complaint,
    finite_number,
    real_numbers,
)
from botorch_lse.models.gaussian_process import check_parameters

Acqf = TypeVar("Acqf", bound=AcquisitionFunction)
FIDELITIES = "target_fidelities"
"""The argument by which Ax tells the targets of fidelity parameters."""


def constructible(acqf_class: type[Acqf]) -> type[Acqf]:
    r"""Let Ax and BoTorch build a class from the arguments that its constructor names.

    A scalarisation with one weight stands for its named output, whatever the weight: Ax
    passes the objective's sign in it, and the sign is not part of a level set. The same
    holds beside further metrics, which have no weight. Thresholds are in the units of
    ``y``.

    Args:
        acqf_class: A class whose constructor takes the model first.

    Returns:
        The class itself: a decorator.
    """
    known = signature(acqf_class)
    fidelities = Parameter(FIDELITIES, Parameter.KEYWORD_ONLY, default=None)

    def construct_inputs(model: Model, **given: Any) -> dict[str, Any]:
        r"""All arguments of the class by name, defaults filled in."""
        if given.pop(FIDELITIES, None):
            raise UnsupportedError(
                "Expected a search space without a fidelity parameter, which "
                f"{acqf_class.__name__} would vary like an input, but got one. Write "
                "`Strategy(pool.at_sources((0.25, 1.0), costs=...), goal)` with "
                "`botorch_lse.ax.level_set_generation_strategy`."
            )
        if missing := missing_arguments(acqf_class, given):
            options = ", ".join(f'"{name}": ...' for name in missing)
            raise ValueError(
                f"Expected options with {missing}, which {acqf_class.__name__} needs, "
                "but Ax gave none of that name (`acquisition_options` do not reach the "
                "class). Write `botorch_lse.ax.acquisition_generator_spec("
                f"{acqf_class.__name__}, {{{options}}})`."
            )
        region = getattr(given.get("goal"), "values", None)
        if region is not None and region.n_outputs > 1:  # it takes all outputs
            given = {**given, "posterior_transform": None}
        elif "posterior_transform" in known.parameters:
            model, transform = named_output(model, given.get("posterior_transform"))
            given = {**given, "posterior_transform": transform}
        name = "threshold" if given.get("goal") is None else "goal"
        if name in given and is_standardised(model):
            warnings.warn(
                "The model's values have mean 0 and standard deviation 1: Ax has "
                f"standardised them, and `{name}` is compared with these. Write "
                f"`botorch_lse.ax.acquisition_generator_spec({acqf_class.__name__}, "
                "options)` for a level in the units of the metric.",
                stacklevel=2,
            )
        bound = known.bind(model, **given)
        bound.apply_defaults()
        return dict(bound.arguments)

    # BoTorch passes what the signature names, and names the function in its errors.
    shown = known.replace(parameters=[*known.parameters.values(), fidelities])
    construct_inputs.__signature__ = shown  # type: ignore[attr-defined]
    construct_inputs.__name__ = acqf_class.__name__
    acqf_input_constructor(acqf_class)(construct_inputs)
    return acqf_class


def missing_arguments(
    acqf_class: type[AcquisitionFunction], given: Mapping[str, Any]
) -> list[str]:
    r"""The arguments beside the model that a class needs and was not given.

    Args:
        acqf_class: A class of ours.
        given: Arguments by name; of a level and a region one is enough.
    """
    parameters = list(signature(acqf_class).parameters.items())[1:]
    needed = [name for name, p in parameters if p.default is Parameter.empty]
    if getattr(acqf_class, "needs_level", False) and given.get("goal") is None:
        needed.append("threshold")
    return [name for name in needed if name not in given]


def named_output(
    model: Model, transform: PosteriorTransform | None
) -> tuple[Model, PosteriorTransform | None]:
    r"""The output that a scalarisation names, without its sign and scale.

    Args:
        model: With one output or several.
        transform: Only of scalarisations the output is taken.

    Raises:
        UnsupportedError: If it weighs several outputs.
    """
    if not isinstance(transform, ScalarizedPosteriorTransform):
        return model, transform
    if model.num_outputs == 1:
        return model, None
    weights: Any = transform.weights
    named = weights.nonzero().view(-1).tolist()
    if len(named) != 1:
        raise UnsupportedError(
            "Expected an objective of one metric, which the level is about, but got "
            f"the weights {weights.tolist()} of several. Write "
            '`client.configure_optimization(objective="y")` and '
            '`client.configure_tracking_metrics(["z"])`, and make the generation '
            "strategy anew with its specification; a sum is a metric of its own."
        )
    try:
        return model.subset_output(named), None
    except (RuntimeError, UnsupportedError):  # correlated, or kernels of its own
        return model, ScalarizedPosteriorTransform((weights != 0).to(weights))


def by_itself(
    model: Model, transform: PosteriorTransform | None
) -> tuple[Model, PosteriorTransform | None]:
    r"""The output that a scalarisation takes as it is, as a model where that exists.

    Args:
        model: With one output or several.
        transform: From ``check_outputs``; others than such a scalarisation stay.
    """
    # A class of the user's may do more than its weights say.
    if type(transform) is ScalarizedPosteriorTransform and not transform.offset:
        weights: Any = transform.weights
        if sorted(weights.tolist()) == [0.0] * (len(weights) - 1) + [1.0]:
            return named_output(model, transform)
    return model, transform


ROUGHLY = 1e-4
"""The error of mean 0 and standard deviation 1 within which values are standardised.
Ax computes in float64, a model may hold float32."""


def is_standardised(model: Model) -> bool:
    r"""Whether a model holds standardised values and does not transform them back."""
    if isinstance(model, ModelList):
        return any(is_standardised(own) for own in model.models)  # type: ignore[arg-type]
    y = getattr(model, "train_targets", None)
    has_own = getattr(model, "outcome_transform", None) is not None
    if not isinstance(y, Tensor) or y.ndim != 1 or len(y) < 3 or has_own:
        return False
    return abs(float(y.mean())) < ROUGHLY and abs(float(y.std()) - 1) < ROUGHLY


def batch_of(model: Model) -> torch.Size:
    r"""The batch shape of several models in one, such as fantasies, or an empty one.

    The members of an ensemble are one model.
    """
    if isinstance(model, ModelList) or is_ensemble(model):
        return torch.Size()
    try:
        return model.batch_shape or torch.Size()  # of deterministic models none
    except NotImplementedError:  # a model that BoTorch knows nothing of
        return torch.Size()


def check_is_one(model: Model, name: str) -> None:
    r"""Complain about several models in one.

    Args:
        model: A model.
        name: The class that takes one.

    Raises:
        UnsupportedError: If it has a batch shape and is no ensemble.
    """
    if len(shape := batch_of(model)):
        raise UnsupportedError(
            f"Expected `model` without batch shape, but got {tuple(shape)}: {name} "
            "prepares its points for one model. Fit the models one by one; of "
            "fantasies take `model.condition_on_observations(X, Y)` with one value "
            "for each point."
        )


def check_fits(model: Model, X: Tensor) -> None:
    r"""Complain about points that do not fit the batch shape of several models.

    Args:
        model: A model.
        X: ``batch_shape x q x d``.

    Raises:
        BotorchTensorDimensionError: If their batch shapes have no common one.
    """
    shape = batch_of(model)
    try:
        torch.broadcast_shapes(X.shape[:-2], shape)
    except RuntimeError as error:
        wanted = f"to fit {tuple(shape)}, the batch shape of `model`"
        remedy = (
            "Write `acqf(X.unsqueeze(-3))`: one value for each of the models, of which "
            "`.mean(dim=-1)` is the average over fantasies."
        )
        came = f"got {tuple(X.shape)}"
        raise BotorchTensorDimensionError(
            complaint("X", wanted, came, remedy)
        ) from error


Forward = Callable[[Any, Tensor], Tensor]


def as_points(X: Tensor, model: Model) -> Tensor:
    r"""The points ``X``; those of whole numbers, or half of the digits, as the model's.

    Values are of the type of points, which whole numbers would cut off.
    """
    if X.dtype in (torch.float32, torch.float64):
        return X
    return X.to(next((own.dtype for own in model.parameters()), torch.float64))


def of_batches(forward: Forward) -> Forward:
    r"""A decorator for values of q-batches: they take t-batches of points."""
    batched: Forward = t_batch_mode_transform()(forward)

    @wraps(forward)
    def checked(acqf: Any, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x q x d`` to ``batch_shape``).

        Raises:
            BotorchTensorDimensionError: If there is no point in a batch.
            ValueError: If a point is not finite.
        """
        X = as_points(X, acqf.model)
        if not bool(X.isfinite().all()):
            raise ValueError(complaint("X", "to be finite", "got nan or infinity"))
        if X.numel():
            return batched(acqf, X)
        wanted = "to hold at least one point, of shape `batch_shape x q x d`"
        check_shape(0 not in X.shape[-2:], X, "X", wanted)
        return X.sum(dim=(-2, -1))  # of no batches

    return checked


def of_one_point(forward: Forward) -> Forward:
    r"""A decorator for scores of one point: they take t-batches but no more points."""
    batched: Forward = t_batch_mode_transform(expected_q=1)(forward)

    @wraps(forward)
    def checked(acqf: Any, X: Tensor) -> Tensor:
        r"""The values at ``X`` (``batch_shape x 1 x d`` to ``batch_shape``).

        Raises:
            BotorchTensorDimensionError: If there are several points, or other columns
                than the model's inputs have.
        """
        X = as_points(X, acqf.model)
        if X.ndim > 1 and X.shape[-2] != 1:
            raise BotorchTensorDimensionError(
                "Expected `X` to hold one point, of shape `batch_shape x q=1 x d`, but "
                f"got {tuple(X.shape)}: {type(acqf).__name__} has no value of several "
                "points together. Write `optimize_acqf(..., sequential=True)`; or "
                "choose one point at a time, `q=1`, and say "
                "`acqf.set_X_pending(chosen)` with those chosen before; or take a "
                "class of batches, whose name begins with q."
            )
        if X.ndim > 1:
            check_fits(acqf.model, X)
        try:
            return batched(acqf, X)
        except RuntimeError:
            check_columns(acqf.model.posterior, X.reshape(-1, X.shape[-1]), "X")
            raise

    return checked


def check_outputs(model: Model, posterior_transform: PosteriorTransform | None) -> None:
    r"""Complain unless the model, with its transform, has one output.

    Raises:
        UnsupportedError: If the model has several outputs and no transform.
        BotorchTensorDimensionError: If a scalarisation has not one weight per output.
    """
    check_model(model)
    if isinstance(model, KroneckerMultiTaskGP):
        raise UnsupportedError(
            "Expected a model that takes a `posterior_transform`, but got "
            f"{type(model).__name__}, which takes none. Fit "
            "`MultiTaskGP(train_X, train_Y, task_feature=-1, output_tasks=[0])`, with "
            "the number of the output as last column of `train_X`."
        )
    if posterior_transform is None and model.num_outputs != 1:
        raise UnsupportedError(
            "Expected `posterior_transform` for a model with several outputs, but "
            f"`model` has {model.num_outputs} and it is None. Give one, such as "
            "`ScalarizedPosteriorTransform`; the threshold is in its units."
        )
    if posterior_transform is not None and not isinstance(
        posterior_transform, PosteriorTransform
    ):
        raise UnsupportedError(
            "Expected `posterior_transform` to be a PosteriorTransform, but got "
            f"{type(posterior_transform).__name__}."
        )
    if isinstance(posterior_transform, ScalarizedPosteriorTransform):
        weights: Any = posterior_transform.weights
        wanted = f"with one weight per output of `model` ({model.num_outputs})"
        is_right = len(weights) == model.num_outputs
        check_shape(is_right, weights, "posterior_transform", wanted)


def check_model(model: Model) -> None:
    r"""Complain about no model, or one whose function is not in the units of ``y``.

    A classifier's posterior is that of a latent function which a link squeezes into
    probabilities: a level between 0 and 1 means nothing on its scale, and neither does
    the noise variance of an observation.

    Raises:
        UnsupportedError: If it is no BoTorch model, or a likelihood is a link, without
            a noise variance.
        ValueError: If a parameter is not finite.
    """
    if not isinstance(model, Model):
        raise UnsupportedError(
            "Expected `model` to be a fitted BoTorch model, but got "
            f"{type(model).__name__}."
        )
    check_parameters(model)
    for module in model.modules():
        if not isinstance(module, Likelihood) or isinstance(module, LikelihoodList):
            continue
        gaussian = isinstance(
            module, MultitaskGaussianLikelihood | SparseOutlierGaussianLikelihood
        )
        if not gaussian and not hasattr(module, "noise"):
            raise UnsupportedError(
                "Expected `model` to have a likelihood that adds noise to the "
                f"function, but got {type(module).__name__}, whose latent function is "
                "not in the units of `y`. For answers of yes and no take a class such "
                "as `BernoulliGlobalMI`; or fit a `SingleTaskGP` to means of "
                "replicates (shares of successes, with `train_Yvar`)."
            )


def pending_matrix(X_pending: Any, model: Model) -> Tensor | None:
    r"""The pending points (``n' x d``), as the model has its own; ``None`` if none are.

    Args:
        X_pending: A matrix, or what becomes one.
        model: The model.

    Raises:
        BotorchTensorDimensionError: If it is not a matrix.
        ValueError: If it does not hold numbers, or is not finite.
    """
    if X_pending is None:
        return None
    if not isinstance(X_pending, Tensor):
        X_pending = real_numbers(X_pending, "X_pending")
    X_pending = X_pending.detach()
    X_pending = X_pending.to(next(iter(model.parameters()), X_pending), copy=True)
    if not bool(torch.isfinite(X_pending).all()):
        raise ValueError("Expected `X_pending` to be finite. Leave out other rows.")
    check_shape(X_pending.ndim == 2, X_pending, "X_pending", "to be n' x d")
    return X_pending if len(X_pending) else None


def _pending(acqf: Any) -> Tensor | None:
    # Pickles of earlier versions have the points by the name of the property.
    own = acqf.__dict__
    points: Tensor | None = own.get("_pending", own.get("X_pending"))
    return points


def _assign(acqf: Any, X_pending: Tensor | None) -> None:
    if "_is_assigning" in acqf.__dict__:  # by a user's own `set_X_pending`
        acqf._pending = X_pending
        return
    acqf._is_assigning = True
    try:
        acqf.set_X_pending(X_pending)
    finally:
        del acqf._is_assigning


PENDING: Any = property(_pending, _assign)
"""The property ``X_pending``, since BoTorch's wrappers assign it.
``set_X_pending`` keeps the points as ``_pending``."""


def level_buffer(value: float | Tensor, name: str) -> Tensor:
    r"""A scalar level as a tensor for a buffer.

    Raises:
        BotorchTensorDimensionError: If it has more than one entry.
        ValueError: If it is not finite.
    """
    if isinstance(value, Tensor):
        wanted = "to be a scalar in the units of `y`"
        check_shape(value.numel() == 1, value, name, wanted)
    return torch.tensor(finite_number(value, name), dtype=torch.float64)
