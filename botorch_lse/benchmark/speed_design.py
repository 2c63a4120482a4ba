r"""Designs side by side: our solver and the papers' methods at the same clock.

Each instance is solved to its tolerance; then the papers' methods run for the same wall
time. Their *true* gap is measured against our proven lower bound, so that it is not
their missing proof that counts against them.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse.designs import (
    Design,
    DesignWarning,
    frank_wolfe_design,
    mirror_descent_design,
    optimal_design,
)


@dataclass(frozen=True)
class Instance:
    r"""One design problem and the target set for it.

    Args:
        name: How it is shown.
        points: Makes ``X``.
        tol: The certified gap asked for.
        seconds: The time allowed on one core.
        memory: The memory allowed, GB, or ``None``.
        lengthscale: Of the RBF kernel; ``None`` for linear features.
        options: Further arguments of the solvers.
    """

    name: str
    points: Callable[[], Tensor]
    tol: float
    seconds: float
    memory: float | None = None
    lengthscale: float | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        r"""The keyword arguments of ``optimal_design``."""
        if self.lengthscale is None:
            return dict(self.options)
        kernel = RBFKernel()
        kernel.lengthscale = self.lengthscale
        return {"kernel": kernel, **self.options}


def line(n: int) -> Tensor:
    r"""``n`` points of the unit interval: ``n x 1``."""
    return torch.linspace(0, 1, n, dtype=torch.float64).unsqueeze(-1)


def grid(n: int) -> Tensor:
    r"""An ``n x n`` grid of the unit square: ``n^2 x 2``."""
    return torch.cartesian_prod(line(n).squeeze(-1), line(n).squeeze(-1))


def gaussian(n: int, m: int, seed: int = 0) -> Tensor:
    r"""``n`` standard normal rows of length ``m``."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, m, generator=generator, dtype=torch.float64)


INSTANCES = (
    Instance("line 200", lambda: line(200), 1e-4, 0.3, None, 0.05, {"gamma": 0.1}),
    Instance("grid 900", lambda: grid(30), 1e-3, 5.0, None, 0.1, {"gamma": 1e-2}),
    Instance("grid 10^4", lambda: grid(100), 1e-2, 15.0, 2.0, 0.1, {"gamma": 1e-2}),
    Instance(
        "pairs of 200",
        lambda: line(200),
        1e-3,
        2.0,
        None,
        0.05,
        {"gamma": 0.1, "pairs_factor": 0.9},
    ),
    Instance("linear 10^5, d = 20", lambda: gaussian(10**5, 20), 1e-3, 1.0),
    Instance("grid 10^5", lambda: grid(316), 1e-2, 90.0, 4.0, 0.1, {"gamma": 1e-2}),
)


def compare(instance: Instance) -> pd.DataFrame:
    r"""One row per method: time, certified and true gap, memory, targets met.

    Memory is the peak of the whole process so far, GB.
    """
    X, arguments = instance.points(), instance.arguments()
    ours, wall, cpu = _timed(optimal_design, X, tol=instance.tol, **arguments)
    rows = [_row(instance, "ours", ours, wall, cpu, ours)]
    rival = {**arguments, "max_steps": 10**6, "max_seconds": wall, "tol": instance.tol}
    if instance.lengthscale is None:
        md, wall, cpu = _timed(mirror_descent_design, X, **rival)
        rows.append(_row(instance, "mirror descent", md, wall, cpu, ours))
    # Frank-Wolfe's kernel form has no case without ridge; a tiny one stands in.
    rival = {"gamma": 1e-9, **rival}
    fw, wall, cpu = _timed(frank_wolfe_design, X, **rival)
    rows.append(_row(instance, "Frank-Wolfe", fw, wall, cpu, ours))
    return pd.DataFrame(rows)


def _timed(
    method: Callable[..., Design], X: Tensor, **arguments: Any
) -> tuple[Design, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DesignWarning)
        design = method(X, **arguments)
    return design, time.perf_counter() - wall, time.process_time() - cpu


def _row(
    instance: Instance,
    method: str,
    design: Design,
    wall: float,
    cpu: float,
    ours: Design,
) -> dict[str, Any]:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1e9 if sys.platform == "darwin" else 1e6
    )
    return {
        "instance": instance.name,
        "method": method,
        "wall s": wall,
        "cpu s": cpu,
        "allowed s": instance.seconds,
        "asked gap": instance.tol,
        "certified gap": design.gap,
        "true gap at most": design.value / ours.lower_bound - 1,
        "steps": design.steps,
        "peak GB": memory,
        "allowed GB": instance.memory,
    }
