"""Independent solutions of small designs: a semidefinite and a linear program."""

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog


def sdp_value(Phi, V, gamma=0.0, tol=1e-9):
    """``min t``: ``[[A(lam), v], [v', t]]`` positive semidefinite for every target."""
    Phi, V = np.asarray(Phi), np.asarray(V)
    N, m = Phi.shape
    lam = cp.Variable(N, nonneg=True)
    t = cp.Variable()
    A = Phi.T @ cp.diag(lam) @ Phi + gamma * np.eye(m)
    constraints = [cp.sum(lam) == 1]
    for v in V:
        column = v.reshape(-1, 1)
        corner = cp.reshape(t, (1, 1), order="C")
        constraints.append(cp.bmat([[A, column], [column.T, corner]]) >> 0)
    problem = cp.Problem(cp.Minimize(t), constraints)
    tight = {f"tol_gap_{kind}": tol for kind in ("abs", "rel")} | {"tol_feas": tol}
    problem.solve(solver=cp.CLARABEL, **tight)
    return float(problem.value)


def elfving_value(Phi, c):
    """One target, no ridge: ``(min |u|_1 : Phi' u = c)^2`` (Elfving 1952)."""
    Phi = np.asarray(Phi)
    N = Phi.shape[0]
    both = np.hstack((Phi.T, -Phi.T))
    found = linprog(np.ones(2 * N), A_eq=both, b_eq=np.asarray(c), method="highs")
    return float(found.fun) ** 2
