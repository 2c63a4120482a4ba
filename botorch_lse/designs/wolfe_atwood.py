r"""The engine for linear features without a ridge, predicted where they are measured.

There the G- and the D-design are one (Kiefer and Wolfowitz 1960), and a step that moves
mass to or from one point has a closed form and a rank-one update.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse.designs.certificate import information, whiten
from botorch_lse.designs.problem import Problem, Solution, price, trimmed

DELETE_EVERY = 25
FAR, FIRST_TOL = 1000, 0.05
"""A large pool is first solved to 5 % on its 1000 longest rows (in coordinates where
the whole pool has unit information): these hold most of the support."""
REFRESH_EVERY = 200
"""Rank-one updates lose about a digit in some hundred steps: refactor then."""


def wolfe_atwood(
    problem: Problem, tol: float, max_steps: int, initial: Tensor | None = None
) -> Solution:
    r"""G-optimal design for ``gamma = 0`` and all design points as targets.

    Each step takes the point with the largest norm and moves towards it, or the point
    of the support with the smallest and moves away, whichever promises more, by the
    step that is best for the determinant. Points that no optimal design can hold are
    deleted on the way.

    Args:
        problem: With ``gamma = 0``, targets equal to ``Phi`` and ``span`` given.
        tol: The gap ``max g / d - 1`` to reach.
        max_steps: Give up after so many steps.
        initial: ``N`` weights to start from, or ``None``.

    Source:
        Wolfe (1970), Atwood (1973), in the form of Todd (2016), section 3.2; deletion
        by Harman and Pronzato (2007); start of Kumar and Yildirim (2005), with pivots
        in the place of their random directions.
    """
    Phi = problem.Phi
    weights = torch.zeros_like(Phi[:, 0])
    weights[problem.span] = 1 / problem.span.numel()
    steps = 0
    if initial is not None:
        weights = 0.99 * initial + 0.01 * weights
    elif Phi.shape[0] > 2 * FAR:
        far = Phi.square().sum(dim=-1).topk(FAR).indices
        some = torch.cat((problem.span, far)).unique()
        weights[some], steps = _climb(Phi[some], weights[some], FIRST_TOL, max_steps)
    weights, more = _climb(Phi, weights, tol, max_steps - steps)
    columns = weights.nonzero().squeeze(-1)
    masses = weights[columns]
    priced = price(problem, columns, masses, columns, masses, 1)
    return trimmed(problem, priced.solution(steps + more), tol)


def _climb(
    Phi: Tensor, weights: Tensor, tol: float, max_steps: int
) -> tuple[Tensor, int]:
    r"""Steps on the rows of ``Phi`` until their gap is ``tol``: weights and steps."""
    N, d, weights = *Phi.shape, weights.clone()
    rows = torch.arange(N, device=Phi.device)
    inverse, g = _restart(Phi, weights)
    steps = 0
    for steps in range(1, max_steps + 1):
        worst = int(g.argmax())
        largest = float(g[worst])
        if largest <= d * (1 + tol):
            break
        if steps % DELETE_EVERY == 1:
            keep = g >= deletion_level(largest, d)
            if not bool(keep.all()):
                rows, Phi = rows[keep], Phi[keep]
                weights = weights[keep] / weights[keep].sum()
                inverse, g = _restart(Phi, weights)
                continue
        if steps % REFRESH_EVERY == 0:
            inverse, g = _restart(Phi, weights)
        held = weights.nonzero().squeeze(-1)
        lightest = int(held[g[held].argmin()])
        towards = largest - d >= d - float(g[lightest])
        i = worst if towards else lightest
        inverse, g = _move(Phi, weights, inverse, g, i, d)
    full = torch.zeros(N, dtype=Phi.dtype, device=Phi.device)
    full[rows] = weights / weights.sum()
    return full, steps


def deletion_level(largest: float, d: int) -> float:
    r"""Points with a norm below this are in no optimal design.

    With ``e = largest - d`` the level is
    ``d (1 + e / 2 - sqrt(e (4 + e - 4 / d)) / 2)``.

    Source:
        Harman and Pronzato (2007), Theorem 1 (there ``m`` for ``d``).
    """
    e = max(largest - d, 0.0)
    return d * (1 + e / 2 - (e * (4 + e - 4 / d)) ** 0.5 / 2) * (1 - 1e-9)


def _restart(Phi: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    r"""``A^-1`` and the norms, from scratch."""
    L = torch.linalg.cholesky(information(Phi, weights, 0.0))
    return torch.cholesky_inverse(L), whiten(L, Phi).square().sum(dim=-1)


def _move(
    Phi: Tensor, weights: Tensor, inverse: Tensor, g: Tensor, i: int, d: int
) -> tuple[Tensor, Tensor]:
    r"""``lam <- (1 - step) lam + step e_i``, best step; ``weights`` in place."""
    g_i, held = float(g[i]), float(weights[i])
    step = (g_i / d - 1) / (g_i - 1) if g_i > 1 else -torch.inf
    # Away: no further than to zero mass.
    step = max(step, -held / (1 - held)) if held < 1 else 0.0
    weights *= 1 - step
    weights[i] = max(float(weights[i]) + step, 0.0)
    if step < 0 and float(weights[i]) < 1e-14:
        weights[i] = 0.0
    u = inverse @ Phi[i]
    factor = step / (1 - step + step * g_i)
    inverse = (inverse - factor * torch.outer(u, u)) / (1 - step)
    return inverse, (g - factor * (Phi @ u).square()) / (1 - step)
