r"""The paper's own solver of designs, for comparison: it takes long."""

from __future__ import annotations

import time
from typing import Any

import torch

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.designs.certificate import information, whiten
from botorch_lse.designs.optimal import Design, as_design
from botorch_lse.designs.problem import feature_problem, read_arguments
from botorch_lse.designs.solver import WorkingSet, evaluate


def mirror_descent_design(
    X: Any,
    *,
    lipschitz: float | None = None,
    max_steps: int = 1000,
    max_seconds: float = float("inf"),
    tol: float = 1e-2,
) -> Design:
    r"""Kone's entropic mirror descent on the determinant, for ``gamma = 0``.

    ``w <- w exp(eta_t g)``, normalised, with ``g_i = x_i' V(w)^-1 x_i`` and ``eta_t =
    sqrt(2 log N) / (L sqrt(t))``, until ``max g`` is within ``tol`` of the rank.

    Args:
        X: ``N x m`` features.
        lipschitz: The constant ``L``. Default (choice, the paper gives none): the
            largest ``g`` at the uniform design, where the method starts.
        max_steps: Steps to take at most.
        max_seconds: Stop after so long.
        tol: The relative gap to reach.

    Source:
        Kone et al. (2025), Algorithm 4, on the span of the features.
    """
    tol = in_interval(tol, "tol", 0.0, float("inf"))
    max_steps = whole_number(max_steps, "max_steps", 1)
    arguments = read_arguments(X)
    problem = feature_problem(arguments, arguments.X, None)
    Phi, N = problem.Phi, problem.Phi.shape[0]
    w = torch.full_like(Phi[:, 0], 1 / N)
    end, steps = time.monotonic() + max_seconds, 0
    for steps in range(1, max_steps + 1):
        L = torch.linalg.cholesky(information(Phi, w, 0.0))
        g = whiten(L, Phi).square().sum(dim=-1)
        if float(g.max()) <= Phi.shape[1] * (1 + tol) or time.monotonic() > end:
            break
        lipschitz = lipschitz or float(g.max())
        eta = (2 * torch.log(torch.tensor(float(N)))).sqrt() / (lipschitz * steps**0.5)
        w = torch.softmax(w.log() + eta.to(w) * g, dim=0)
    rows = torch.arange(N, device=w.device)
    evaluated = evaluate(problem, WorkingSet(rows, w, rows, w), 1, steps)
    return as_design(evaluated.solution, arguments, tol)
