r"""The restricted problem: few columns, few targets, solved to high accuracy.

``min t`` subject to ``g_v(lam) <= t`` and ``lam`` on the simplex, by a primal-dual
Newton method with Mehrotra's predictor and corrector. With ``B = V A^-1 Phi'`` the
Jacobian of ``g`` is ``J = -(B o B)`` and the Hessian of ``sum_v w_v g_v`` is
``H = 2 (B' diag(w) B) o (Phi A^-1 Phi')``. The slacks are kept exact, ``z = t - g`` and
``nu = mu - s`` with ``s = w (B o B)``: a step costs one ``n x n`` Cholesky factor, and
the duality gap cannot run ahead of the equations, which would leave the iterate in a
corner of the simplex, unable to move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.designs.certificate import (
    Certificate,
    information,
    lower_bound,
    whiten,
)

MAX_STEPS = 60
ROOM = 1.1
"""Where ``t`` and ``mu`` start: 10 % above the largest ``g`` and ``s``."""
TO_BOUNDARY = 0.99
"""A step goes at most this far towards the nearest bound (Mehrotra 1992)."""
SHRINK, SHRINKAGES = 0.7, 60
KEPT, LIFT = 0.3, 0.3
"""``g`` and ``s`` curve, so that a true slack may be below the predicted one. ``t`` and
``mu`` are lifted until each slack keeps 0.3 of it; a step is shortened until that
costs at most 0.3 of the duality gap."""
FLOOR = 1e-14
"""The smallest mass or slack inside the method: the logarithmic barrier
needs positive numbers; 1e-14 changes no value that float64 can tell apart."""


@dataclass(frozen=True, eq=False)
class Restricted:
    r"""A solution of the restricted problem.

    Args:
        weights: ``n`` masses of the columns.
        target_weights: ``t`` masses of the targets.
        certificate: Valid for the restricted problem only.
        steps: Newton steps taken.
    """

    weights: Tensor
    target_weights: Tensor
    certificate: Certificate
    steps: int


@dataclass(frozen=True, eq=False)
class _Point:
    r"""Everything the method needs at one design: ``B``, ``Phi A^-1 Phi'``, ``g``."""

    lam: Tensor
    B: Tensor
    Q: Tensor
    g: Tensor


@dataclass(frozen=True, eq=False)
class _State:
    r"""The iterate: design, ``w``, ``t``, multipliers of the bounds and the simplex."""

    point: _Point
    w: Tensor
    nu: Tensor
    t: Tensor
    mu: Tensor

    def certificate(self) -> Certificate:
        r"""The certificate of the restricted, scaled problem."""
        w = self.w / self.w.sum()
        s = w @ self.point.B.square()
        f, average = float(w @ self.point.g), float(self.point.lam @ s)
        lower = lower_bound(f, float(s.max()), average)
        return Certificate(float(self.point.g.max()), lower)


def solve_restricted(
    Phi: Tensor,
    V: Tensor,
    gamma: float,
    weights: Tensor,
    target_weights: Tensor,
    tol: float,
) -> Restricted:
    r"""Solve the problem on all given columns and targets.

    Args:
        Phi: ``n x m`` features of the columns in play; with ``gamma = 0`` they span.
        V: ``t x m`` targets in play.
        gamma: The ridge.
        weights: ``n``, where to start.
        target_weights: ``t``, where to start.
        tol: Stop at this relative gap of the restricted problem.

    Source:
        Mehrotra (1992) for the predictor and corrector; the derivatives are those of
        Mason et al. (2022), Appendix G.
    """
    lam, w = _interior(weights), _interior(target_weights)
    point = _evaluate(Phi, V, gamma, lam)
    if point is None:
        return Restricted(lam, w, Certificate(float("inf"), 0.0), 0)
    scale = float(point.g.max())
    if scale <= 0:
        return Restricted(lam, w, Certificate(0.0, 0.0), 0)
    V = V / scale**0.5  # the values are about 1 from here on
    point = _Point(lam, point.B / scale**0.5, point.Q, point.g / scale)
    s = w @ point.B.square()
    mu = s.max() * ROOM
    if float(mu) <= FLOOR:
        # The columns tell nothing about these targets: only the worst one counts.
        worst = torch.zeros_like(w)
        worst[point.g.argmax()] = 1.0
        return Restricted(lam, worst, Certificate(scale, scale), 0)
    state: _State | None = _State(point, w, mu - s, point.g.max() * ROOM, mu)
    best = Restricted(lam, w, Certificate(float("inf"), 0.0), 0)
    for steps in range(MAX_STEPS):
        if state is None:
            break
        found = state.certificate()
        if found.gap < best.certificate.gap:
            best = Restricted(state.point.lam, state.w / state.w.sum(), found, steps)
        if found.gap <= tol:
            break
        state = _step(Phi, V, gamma, state)
    ends = Certificate(best.certificate.upper * scale, best.certificate.lower * scale)
    return replace(best, certificate=ends)


def _interior(masses: Tensor) -> Tensor:
    r"""Masses on the simplex, each at least a little above zero."""
    inside = (masses / masses.sum()).clamp_min(1e-3 / masses.numel())
    return inside / inside.sum()


def _evaluate(Phi: Tensor, V: Tensor, gamma: float, lam: Tensor) -> _Point | None:
    r"""The quantities of the method at ``lam``; ``None`` where ``A`` is singular."""
    L, info = torch.linalg.cholesky_ex(information(Phi, lam, gamma))
    if int(info) != 0:
        return None
    Z, Y = whiten(L, Phi), whiten(L, V)
    return _Point(lam, Y @ Z.mT, Z @ Z.mT, Y.square().sum(dim=-1))


def _step(Phi: Tensor, V: Tensor, gamma: float, state: _State) -> _State | None:
    r"""One predictor-corrector step; ``None`` when float64 gives no more progress."""
    w, nu, t, mu = state.w, state.nu, state.t, state.mu
    lam, z = state.point.lam, t - state.point.g
    system = _System(state.point, w, nu, z, mu)
    if not system.regular:
        return None
    d_lam, d_nu, d_w, d_z, _, _ = system.solve(-lam * nu, -w * z)
    reach = _reach((lam, d_lam), (nu, d_nu), (w, d_w), (z, d_z))
    count = lam.numel() + w.numel()
    gap = (lam @ nu + w @ z) / count
    ahead = (lam + reach * d_lam) @ (nu + reach * d_nu)
    ahead = (ahead + (w + reach * d_w) @ (z + reach * d_z)) / count
    centre = gap * (ahead / gap).clamp(0, 1) ** 3
    d_lam, d_nu, d_w, d_z, d_t, d_mu = system.solve(
        centre - lam * nu - d_lam * d_nu, centre - w * z - d_w * d_z
    )
    primal = TO_BOUNDARY * _reach((lam, d_lam), (z, d_z))
    dual = TO_BOUNDARY * _reach((w, d_w), (nu, d_nu))
    for _ in range(SHRINKAGES):
        trial = (lam + primal * d_lam).clamp_min(FLOOR)
        moved = _evaluate(Phi, V, gamma, trial / trial.sum())
        if moved is not None:
            new_w = (w + dual * d_w).clamp_min(FLOOR)
            s = new_w @ moved.B.square()
            low_t, low_mu = t + primal * d_t, mu + dual * d_mu
            kept_z = (KEPT * (z + primal * d_z)).clamp_min(FLOOR)
            kept_nu = (KEPT * (nu + dual * d_nu)).clamp_min(FLOOR)
            new_t = (moved.g + kept_z).max().clamp_min(low_t)
            new_mu = (s + kept_nu).max().clamp_min(low_mu)
            if bool(new_t - low_t + new_mu - low_mu <= LIFT * count * gap):
                return _State(moved, new_w, new_mu - s, new_t, new_mu)
        primal, dual = SHRINK * primal, SHRINK * dual
    return None


def _reach(*pairs: tuple[Tensor, Tensor]) -> Tensor:
    r"""The largest step, at most 1, that keeps every first entry non-negative."""
    shortest = torch.ones((), dtype=pairs[0][0].dtype, device=pairs[0][0].device)
    for value, change in pairs:
        ratio = torch.where(change < 0, -value / change, torch.inf)
        shortest = torch.minimum(shortest, ratio.min())
    return shortest


class _System:
    r"""The Newton equations at one point, factored once and solved twice."""

    def __init__(
        self, point: _Point, w: Tensor, nu: Tensor, z: Tensor, mu: Tensor
    ) -> None:
        self.lam, self.w, self.nu, self.z = point.lam, w, nu, z
        self.J = -point.B.square()
        self.D = w / z
        H = 2 * (point.B.mT @ (w.unsqueeze(-1) * point.B)) * point.Q
        M = H + self.J.mT @ (self.D.unsqueeze(-1) * self.J)
        M.diagonal().add_(nu / point.lam)
        # Symmetric scaling: masses span many decades near the solution.
        self.scale = M.diagonal().rsqrt()
        scaled = self.scale.unsqueeze(-1) * M * self.scale
        self.L, info = torch.linalg.cholesky_ex(scaled)
        self.regular = int(info) == 0
        if self.regular:
            self.dual_residual = -(self.J.mT @ w - nu + mu)
            self.border = torch.stack(
                (-(self.J.mT @ self.D), torch.ones_like(self.lam)), dim=1
            )
            self.M_border = self._inverse(self.border)
            corner = self.border.mT @ self.M_border
            corner[0, 0] -= self.D.sum()
            self.corner = corner

    def _inverse(self, right: Tensor) -> Tensor:
        r"""``M^-1 right``, through the scaled factor."""
        scaled = self.scale.unsqueeze(-1) * right
        return self.scale.unsqueeze(-1) * torch.cholesky_solve(scaled, self.L)

    def solve(
        self, r_lam: Tensor, r_w: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        r"""Directions of ``lam, nu, w, z, t, mu`` for two complementarity targets.

        ``M dlam - J'D1 dt + 1 dmu = r``, ``-(J'D1)' dlam - 1'D1 dt = ...`` and
        ``1'dlam = ...``; the two border rows are eliminated by their Schur complement.
        """
        e = r_w / self.z
        right = self.dual_residual + r_lam / self.lam - self.J.mT @ e
        # Rows of the border: -(J'D1)' dlam + 1'D1 dt = 1'w - 1 + 1'e; 1'dlam = 1-1'lam.
        b = torch.stack((self.w.sum() - 1 + e.sum(), 1 - self.lam.sum()))
        first = self._inverse(right.unsqueeze(-1))
        y = torch.linalg.solve(self.corner, self.border.mT @ first.squeeze(-1) - b)
        d_t, d_mu = y[0], y[1]
        d_lam = first.squeeze(-1) - self.M_border @ y
        d_w = self.D * (self.J @ d_lam - d_t) + e
        d_z = d_t - self.J @ d_lam
        d_nu = (r_lam - self.nu * d_lam) / self.lam
        return d_lam, d_nu, d_w, d_z, d_t, d_mu
