r"""GPyTorch kernels with fixed hyper-parameters as JSON and back."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import (
    AdditiveKernel,
    CosineKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from torch import Tensor
from torch.nn import Parameter

from botorch_lse.ax.pool_codec import decode_tensor, encode_tensor
from botorch_lse.checks import whole_number

_OPTIONS: dict[type[Kernel], tuple[str, ...]] = {
    CosineKernel: (),
    LinearKernel: (),
    MaternKernel: ("nu",),
    PeriodicKernel: (),
    PiecewisePolynomialKernel: ("q",),
    PolynomialKernel: ("power",),
    RBFKernel: (),
    RQKernel: (),
}
_SUMS: tuple[type[Kernel], ...] = (AdditiveKernel, ProductKernel)
_BY_NAME = {cls.__name__: cls for cls in (*_OPTIONS, *_SUMS, ScaleKernel)}
_MOST_INPUTS = 1_000_000
"""A file with a larger number is not believed: a kernel of that size is allocated."""
_PROBED = 8
"""Rows of the pool on which a decoded kernel is compared with the original."""


def encode_kernel(kernel: Kernel, name: str, X: Tensor) -> dict[str, Any]:
    r"""A kernel as JSON; its hyper-parameters' values are kept, priors are not.

    The values are those in float64, with which a strategy computes: a constraint passed
    in float32 and then converted would differ in the ninth digit.

    Args:
        kernel: Without batch shape.
        name: The argument's name.
        X: ``N x d`` rows on which the stored kernel must give the same values.

    Raises:
        ValueError: If it holds a kernel that is not known, or one that is changed so
            that it could not be built again.
    """
    used = deepcopy(kernel).double()
    stored, probe = _encode(used, name), X[:_PROBED].double()
    with torch.no_grad():
        given = used(probe, probe).to_dense()
        built = decode_kernel(stored)(probe, probe).to_dense()
    if not torch.equal(given, built):
        raise ValueError(_refused(kernel, name))
    return stored


def decode_kernel(stored: dict[str, Any]) -> Kernel:
    r"""The kernel that ``encode_kernel`` wrote.

    Hyper-parameters come back unconstrained, at the values they had.

    Raises:
        ValueError: If it names a kernel, an option or a hyper-parameter that is not
            known.
    """
    _check_known([stored["class"]], _BY_NAME, "kernel")
    kernel_class = _BY_NAME[stored["class"]]
    children = [decode_kernel(child) for child in stored["children"]]
    if kernel_class in _SUMS:
        return kernel_class(*children)
    kernel = kernel_class(*children, **_checked_options(kernel_class, stored))
    own = [
        raw.removeprefix("raw_") for raw, _ in kernel.named_parameters(recurse=False)
    ]
    _check_known(stored["values"], own, "hyper-parameter")
    for name, value in stored["values"].items():
        kernel.register_constraint(f"raw_{name}", Positive(transform=None))
        setattr(kernel, f"raw_{name}", Parameter(decode_tensor(value)))
    return kernel


def _encode(kernel: Kernel, name: str) -> dict[str, Any]:
    if type(kernel) not in _BY_NAME.values() or len(kernel.batch_shape):
        raise ValueError(_refused(kernel, name))
    children: list[Kernel] = []
    options: dict[str, Any] = {}
    if type(kernel) in _SUMS:
        children = list(kernel.kernels)
    elif type(kernel) is ScaleKernel:
        children = [kernel.base_kernel]
    else:
        options = {option: getattr(kernel, option) for option in _OPTIONS[type(kernel)]}
        if kernel.ard_num_dims is not None:
            options["ard_num_dims"] = kernel.ard_num_dims
    if kernel.active_dims is not None and type(kernel) not in _SUMS:
        options["active_dims"] = kernel.active_dims.tolist()
    values = {
        raw.removeprefix("raw_"): encode_tensor(
            getattr(kernel, raw.removeprefix("raw_"))
        )
        for raw, _ in kernel.named_parameters(recurse=False)
    }
    return {
        "class": type(kernel).__name__,
        "options": options,
        "values": values,
        "children": [_encode(child, name) for child in children],
    }


def _checked_options(
    kernel_class: type[Kernel], stored: dict[str, Any]
) -> dict[str, Any]:
    options = stored["options"]
    known = [*_OPTIONS.get(kernel_class, ()), "active_dims", "ard_num_dims"]
    _check_known(options, known, "option")
    dims = options.get("ard_num_dims")
    if dims is not None and whole_number(dims, "ard_num_dims", 1) > _MOST_INPUTS:
        raise ValueError(
            f"Expected a stored kernel with at most {_MOST_INPUTS} inputs, but got "
            f"`ard_num_dims` = {dims}: the file is damaged or was edited."
        )
    return options


def _check_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    strange = [name for name in names if name not in known]
    if strange:
        raise ValueError(
            f"Expected the stored {what} to be one of {sorted(known)}, but got "
            f"{strange[0]!r}. The file was saved by another version, is damaged or was "
            "edited."
        )


def _refused(kernel: Kernel, name: str) -> str:
    known = ", ".join(sorted(_BY_NAME))
    return (
        f"Expected `{name}` of the strategy to be made of {known}, "
        "without batch shape, which can be stored, but got "
        f"{type(kernel).__name__}. Give an importable function (train_X, train_Y, "
        "train_Yvar) -> model instead."
    )
