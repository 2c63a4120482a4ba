r"""The solver: two methods, and the certificate that says when they are done.

The method for every criterion is an active set around an interior-point method.
Multiplicative updates ("sweeps") give a rough design fast. From then on only a working
set of few design points ("columns") and few targets is considered. The problem
restricted to it is solved; the certificate evaluates its design, with no weight
elsewhere, against all rows and all targets; rows and targets that violate the bound
enter the working set, and those that lost their weight ("mass") leave it. Where the
targets are the design points, a row that enters does so as both: this halves the number
of rounds.

The restricted problem, few columns and few targets, is solved to high accuracy:
``min t`` subject to ``g_v(lam) <= t`` and ``lam`` on the simplex, by a primal-dual
Newton method with Mehrotra's predictor and corrector. With ``B = V A^-1 Phi'`` the
Jacobian of ``g`` is ``J = -(B o B)`` and the Hessian of ``sum_v w_v g_v`` is
``H = 2 (B' diag(w) B) o (Phi A^-1 Phi')``. The slacks are kept exact, ``z = t - g`` and
``nu = mu - s`` with ``s = w (B o B)``: a step costs one ``n x n`` Cholesky factor, and
the duality gap cannot run ahead of the equations, which would leave the iterate in a
corner of the simplex, unable to move.

The method of Wolfe and Atwood is for linear features without a ridge, predicted where
they are measured. There the G- and the D-design are one (Kiefer and Wolfowitz 1960),
and a step that moves mass to or from one point has a closed form and a rank-one update.
Above a gap of ``NEWTON_BELOW`` it is as fast, and its designs have fewer points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.designs.certificate import (
    Certificate,
    information,
    lower_bound,
    relative_gap,
    sensitivities,
    whiten,
)
from botorch_lse.designs.problem import Problem, VectorTargets, Violators

TRIM = (1.0, 0.1, 0.01)
"""The shares of the tolerance that are tried in turn as the mass to drop."""
NEWTON_BELOW = 1e-4
"""The tolerance below which Newton's method beats Wolfe and Atwood's linear one."""
WOLFE_STEPS = 20_000
"""The number of steps after which Newton's method takes over."""

# The active set and its first sweeps.
ALL_IN = 300
"""The number of rows and targets up to which all are in the working set.
A Newton step on them takes a few milliseconds."""
COARSE = 1500
"""The approximate number of rows and targets that sweeps see; more only cost time."""
COARSE_TOL = 0.05
"""The gap to which a design for a coarse subset of pairs is solved."""
NEAR = 0.98
"""The correlation of newcomers above which only the better one enters.
On a fine grid the violators lie in clumps, and one of each clump does the work."""
CHUNK = 256
"""The number of newcomers compared at once: all would be a large matrix."""
SIZE = 100
"""The least size of a working set: fewer members would save nothing.
Usually it has twice as many members as there are features."""
CROWD, LIGHT = 3, 1e-6
"""The size of a crowded working set, in usual ones, and the mass of a light member.
A crowded set loses what is lighter than this share of the heaviest mass. Smaller sets
keep all, as a light member may still bind."""
D_SWEEPS, SADDLE_SWEEPS = 40, 30
"""The numbers of sweeps of each kind: enough for the support to show.
More gain little: near the optimum they are slow, where Newton's method is fast."""
BOLDNESS = 3.0
"""The step of the target weights' exponential update, found best by trial."""
TRACE = 1e-3
"""The mass that a sweep leaves to all rows together, so that they go on spanning."""

# The restricted problem.
MAX_STEPS = 60
"""The largest number of Newton steps; the best iterate so far is then the answer."""
ROOM = 1.1
"""The factor at which ``t`` and ``mu`` start, above the largest ``g`` and ``s``."""
TO_BOUNDARY = 0.99
"""The share of the way to the nearest bound that a step may go (Mehrotra 1992)."""
SHRINK, SHRINKAGES = 0.7, 60
"""The factor that shortens a refused step, and how often it does: to ``5e-10``."""
KEPT, LIFT = 0.3, 0.3
"""The part of a predicted slack that is kept, and of the gap that this may cost.
``g`` and ``s`` curve, so that a true slack may be below the predicted one. ``t`` and
``mu`` are lifted until each slack keeps 0.3 of it; a step is shortened until that costs
at most 0.3 of the duality gap."""
FLOOR = 1e-14
"""The smallest mass or slack inside the method.
The logarithmic barrier needs positive numbers; 1e-14 changes no value in float64."""

# Wolfe and Atwood's method.
DELETE_EVERY = 25
"""The number of steps between two searches for points that no optimal design holds."""
FAR, INNER, PROGRESS = 1000, 0.3, 0.1
"""The number of worst rows that are looked at first, and when the others follow.
Of a large pool ``FAR`` rows are looked at, until the gap on them is a tenth of the gap
on all, or 0.3 of the tolerance."""
REFRESH_EVERY = 200
"""The number of rank-one updates before a new factorisation: they lose digits."""


@dataclass(frozen=True, eq=False)
class WorkingSet:
    r"""The design points and targets that the restricted problem considers.

    With their weights they are a design, and target weights that prove a bound.

    Args:
        columns: The numbers of the design points.
        masses: Their weights.
        target_ids: The numbers of the targets.
        target_weights: Their weights.
    """

    columns: Tensor
    masses: Tensor
    target_ids: Tensor
    target_weights: Tensor

    @property
    def has_newcomers(self) -> bool:
        r"""Whether a design point or target has just entered and has no weight yet."""
        return bool((self.masses == 0).any() or (self.target_weights == 0).any())


@dataclass(frozen=True, eq=False)
class Start:
    r"""The start of a solver: weights, and the targets that bind them if known.

    With these nothing is to be found out by sweeps: the weights are of a design that
    was optimal for a problem like this one.

    Args:
        weights: ``N``, on the simplex.
        target_ids: The numbers of the targets.
        target_weights: Their weights, on the simplex.
    """

    weights: Tensor
    target_ids: Tensor | None = None
    target_weights: Tensor | None = None

    @property
    def working_set(self) -> WorkingSet | None:
        r"""The working set to start with; ``None`` where the targets are not known."""
        if self.target_ids is None or self.target_weights is None:
            return None
        held = self.weights.nonzero().squeeze(-1)
        masses = self.weights[held]
        return WorkingSet(held, masses, self.target_ids, self.target_weights)


@dataclass(frozen=True, eq=False)
class Solution:
    r"""A design and a proven lower bound: the best that a solver found.

    Args:
        columns: The design points with positive weight.
        masses: Their weights, on the simplex.
        value: The largest squared norm over all targets.
        lower_bound: A proven lower bound of the value of every design.
        target_ids: The targets that prove it.
        target_weights: Their weights, on the simplex.
        steps: Steps taken; the unit is the solver's.
    """

    columns: Tensor
    masses: Tensor
    value: float
    lower_bound: float
    target_ids: Tensor
    target_weights: Tensor
    steps: int

    @property
    def gap(self) -> float:
        r"""The gap ``value / lower_bound - 1``: how far above the optimum it can be."""
        return relative_gap(self.value, self.lower_bound)


@dataclass(frozen=True, eq=False)
class Evaluated:
    r"""A design and target weights, evaluated on all rows and targets.

    Args:
        solution: The design, its value, and the bound that the target weights prove.
        violators: The targets with the largest squared norms.
        s: ``N`` sensitivities of the rows: where weight would lower the norms.
    """

    solution: Solution
    violators: Violators
    s: Tensor


def evaluate(problem: Problem, working: WorkingSet, many: int, steps: int) -> Evaluated:
    r"""The certificate over all rows and targets, and the targets that violate it.

    Args:
        problem: The problem.
        working: A design, and target weights on the simplex.
        many: How many violators to report.
        steps: Steps taken so far.
    """
    L, columns, masses = problem.factor(working.columns, working.masses)
    ids, w = working.target_ids, working.target_weights
    V = problem.targets.vectors(ids)
    f = float(w @ whiten(L, V).square().sum(dim=-1))
    s = sensitivities(problem.Phi, L, V, w)
    lower = lower_bound(f, float(s.max()), float(masses @ s[columns]))
    violators, lower = problem.targets.largest(L, many), max(lower, problem.floor)
    found = Solution(columns, masses, violators.largest, lower, ids, w, steps)
    return Evaluated(found, violators, s)


def trimmed(problem: Problem, solution: Solution, tol: float) -> Solution:
    r"""The solution without its smallest weights, as far as the tolerance allows.

    The smallest weights, in total ``TRIM`` times the tolerance, are dropped if the rest
    is still certified within the tolerance: fewer points are easier to round.

    Args:
        problem: The problem.
        solution: A solution.
        tol: The gap that must not be exceeded.
    """
    limit = max(solution.lower_bound * (1 + tol), solution.value)
    design = solution.columns, solution.masses
    lighter = without_light(problem, *design, tol, limit, solution.target_ids)
    if lighter is None:
        return solution
    columns, masses, value = lighter
    return replace(solution, columns=columns, masses=masses, value=value)


def without_light(
    problem: Problem,
    columns: Tensor,
    masses: Tensor,
    tol: float,
    limit: float,
    suspects: Tensor,
) -> tuple[Tensor, Tensor, float] | None:
    r"""A design without its smallest weights, where its value stays within a limit.

    Args:
        problem: The problem.
        columns: The design points.
        masses: Their weights, on the simplex.
        tol: The weights that are dropped are in total ``TRIM`` times this.
        limit: What the largest squared norm must not exceed.
        suspects: The targets most likely to exceed it.

    Returns:
        Design points, weights and value; ``None`` if no weight can be dropped.
    """
    order = masses.argsort()
    total = masses[order].cumsum(dim=0)
    for share in TRIM:
        kept = order[total > share * tol]
        if kept.numel() == order.numel():
            continue
        rest = masses[kept] / masses[kept].sum()
        L, rows, rest = problem.factor(columns[kept], rest)
        # The few suspects first: a pass over all targets is the price of a refusal.
        norms = whiten(L, problem.targets.vectors(suspects)).square().sum(dim=-1)
        if bool((norms > limit).any()):
            continue
        value = problem.targets.largest(L, 1).largest
        if value <= limit:
            return rows, rest, value
    return None


def nothing_to_predict(Phi: Tensor) -> Solution:
    r"""The solution where all targets are zero: every design has the value 0."""
    N = Phi.shape[0]
    rows = torch.arange(N, device=Phi.device)
    uniform = torch.full((N,), 1 / N, dtype=Phi.dtype, device=Phi.device)
    return Solution(rows, uniform, 0.0, 0.0, rows[:0], uniform[:0], 0)


def solve(
    problem: Problem,
    pivots: Tensor | None,
    tol: float,
    initial: Start | None,
    max_rounds: int,
) -> Solution:
    r"""Solve a design problem by the method that suits it.

    Args:
        problem: The problem in features.
        pivots: Rows that describe the others well, or ``None``.
        tol: The gap to reach.
        initial: Where to start, or ``None``.
        max_rounds: Rounds of Newton's method at most.
    """
    weights = None if initial is None else initial.weights
    working = None if initial is None else initial.working_set
    if problem.everywhere and problem.gamma == 0:
        first_tol = max(tol, NEWTON_BELOW)
        solution = wolfe_atwood(problem, first_tol, WOLFE_STEPS, weights)
        if solution.gap <= tol:
            return solution
        held, masses = solution.columns, solution.masses
        start = with_rows(WorkingSet(held, masses, held, masses), problem.span)
    else:
        if problem.targets.are_zero:
            return nothing_to_predict(problem.Phi)
        rows = problem.span if pivots is None else pivots
        if working is None:
            start = _coarse_start(problem, rows, weights, tol, max_rounds)
        else:
            start = with_rows(working, problem.span)
    return trimmed(problem, active_newton(problem, start, tol, max_rounds), tol)


def _coarse_start(
    problem: Problem, pivots: Tensor, weights: Tensor | None, tol: float, rounds: int
) -> WorkingSet:
    r"""The working set to start with; of many pairs, one that suits a part of them.

    A look at all pairs takes longer than all else in a round. A design for the pairs of
    the longest vectors is nearly one for all, which then need a few looks only.
    """
    targets = problem.targets
    if isinstance(targets, VectorTargets) or len(targets.Y) <= 2 * COARSE:
        return first_working_set(problem, pivots, weights)
    order = targets.Y.square().sum(dim=-1).argsort(descending=True)
    few = order[spread_out(targets.Y[order], COARSE)]
    part = replace(problem, targets=targets.among(few))
    if part.targets.are_zero:  # those that count are others
        return first_working_set(problem, pivots, weights)
    first, tol = first_working_set(part, pivots, weights), max(tol, COARSE_TOL)
    found = active_newton(part, first, tol, rounds)
    i, j = found.target_ids // len(few), found.target_ids % len(few)
    ids = few[i] * len(targets.Y) + few[j]
    working = WorkingSet(found.columns, found.masses, ids, found.target_weights)
    return with_rows(working, problem.span)


def active_newton(
    problem: Problem, start: WorkingSet, tol: float, max_rounds: int
) -> Solution:
    r"""Solve to a certified relative gap of ``tol``, from ``start``.

    Args:
        problem: The problem.
        start: The first working set.
        tol: The relative gap to reach.
        max_rounds: How often to evaluate all rows and targets at most.

    Source:
        Own combination; simplicial decomposition (von Hohenbalken 1977) in the design
        and a cutting-surface method in the targets, both solved by Mehrotra's method.
    """
    many = usual_size(problem)
    working, best, gap = start, None, 1.0
    rounds_shown = tqdm(
        range(1, max_rounds + 1), "Design", delay=2.0, disable=None, leave=False
    )
    for rounds in rounds_shown:
        # Solving the restricted problem much better than the working set deserves is
        # wasted: a tenth of the present gap, down to a fifth of the tolerance.
        inner = max(min(0.1 * gap, 0.1), 0.2 * tol)
        working, ends = solve_restricted(problem, working, inner)
        evaluated = evaluate(problem, working, 10 * many, rounds)
        before = best.gap if best is not None else torch.inf
        best = _best_of(best, evaluated.solution)
        gap = best.gap
        if best.gap <= tol:
            break
        working = _next_working_set(problem, working, evaluated, ends.upper, many)
        if best.gap >= before and not working.has_newcomers:
            break  # nothing new to consider: float64 allows no further progress
    assert best is not None
    return best


def _best_of(best: Solution | None, new: Solution) -> Solution:
    r"""The better of two designs with the better of two bounds.

    A bound holds for every design, so that both may come from different rounds.
    """
    if best is None:
        return new
    design = new if new.value <= best.value else best
    bound = new if new.lower_bound >= best.lower_bound else best
    return replace(
        design,
        lower_bound=bound.lower_bound,
        target_ids=bound.target_ids,
        target_weights=bound.target_weights,
        steps=new.steps,
    )


def _next_working_set(
    problem: Problem,
    working: WorkingSet,
    evaluated: Evaluated,
    inside: float,
    many: int,
) -> WorkingSet:
    r"""The next working set: without members of tiny weight, and with the violators.

    Args:
        problem: The problem.
        working: The present working set.
        evaluated: Its evaluation on all rows and targets.
        inside: The largest squared norm among the targets of the working set.
        many: The usual size of a working set; at most half as many enter.
    """
    s_inside = evaluated.s[working.columns]
    keep = heavy(working.masses, CROWD * many)
    keep |= torch.isin(working.columns, problem.span)
    top, rows = evaluated.s.topk(min(10 * many, evaluated.s.numel()))
    rows = rows[top > float(s_inside.max()) * (1 + 1e-12)]
    rows = rows[~torch.isin(rows, working.columns)]
    rows = rows[spread_out(problem.Phi[rows], many // 2)]
    keep_t = heavy(working.target_weights, CROWD * many)
    ids = evaluated.violators.ids[evaluated.violators.norms > inside]
    ids = ids[~torch.isin(ids, working.target_ids)]
    ids = ids[spread_out(problem.targets.vectors(ids), many // 2)]
    if problem.everywhere:
        both = torch.cat((rows, ids)).unique()
        rows = both[~torch.isin(both, working.columns[keep])]
        ids = both[~torch.isin(both, working.target_ids[keep_t])]
    masses, weights = working.masses[keep], working.target_weights[keep_t]
    return WorkingSet(
        torch.cat((working.columns[keep], rows)),
        torch.cat((masses, masses.new_zeros(rows.numel()))),
        torch.cat((working.target_ids[keep_t], ids)),
        torch.cat((weights, weights.new_zeros(ids.numel()))),
    )


def usual_size(problem: Problem) -> int:
    r"""The usual numbers of design points and of targets in a working set."""
    return max(2 * problem.Phi.shape[1], SIZE)


def heavy(masses: Tensor, many: int) -> Tensor:
    r"""The members of a working set to keep: in large ones, those with real weight.

    Args:
        masses: Their weights.
        many: The number up to which all are kept.

    Returns:
        One bool per member.
    """
    if masses.numel() <= many:
        return torch.ones_like(masses, dtype=torch.bool)
    return masses > LIGHT * masses.max()


def spread_out(vectors: Tensor, many: int) -> Tensor:
    r"""A greedy choice of at most ``many`` rows, none closer than ``NEAR`` to another.

    Args:
        vectors: ``n x m``, the most wanted first.
        many: How many to take.

    Returns:
        Indices into ``vectors``.
    """
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    taken = torch.zeros(0, dtype=torch.long, device=vectors.device)
    for start in range(0, len(unit), CHUNK):
        chunk = unit[start : start + CHUNK]
        free = ~((chunk @ unit[taken].mT).abs() > NEAR).any(dim=1).cpu()
        close = ((chunk @ chunk.mT).abs() > NEAR).cpu()
        new = []
        for i in range(len(chunk)):
            if free[i]:
                new.append(start + i)
                free &= ~close[i]
        more = torch.tensor(new, dtype=torch.long, device=vectors.device)
        taken = torch.cat((taken, more))
        if len(taken) >= many:
            break
    return taken[:many]


def first_working_set(
    problem: Problem, pivots: Tensor, initial: Tensor | None = None
) -> WorkingSet:
    r"""The working set with which Newton's method starts.

    Sweeps on a coarse subset of rows and targets give weights; those of largest weight
    are the working set.

    Args:
        problem: The problem.
        pivots: Rows that describe the others well.
        initial: ``N`` weights of an earlier design, or ``None``.
    """
    Phi = problem.Phi
    rows = coarse(Phi.shape[0], torch.cat((pivots, problem.span)))
    weights = torch.full_like(Phi[rows, 0], 1 / rows.numel())
    if initial is not None:
        rows = torch.cat((rows, initial.nonzero().squeeze(-1))).unique()
        # A tenth everywhere: the earlier design may lack points that are needed now.
        weights = 0.9 * initial[rows] + 0.1 / rows.numel()
    targets, many = problem.targets, usual_size(problem)
    if problem.everywhere:
        weights = d_sweeps(Phi[rows], problem.gamma, weights)
        ids, w = rows, weights
    elif isinstance(targets, VectorTargets):
        ids = coarse(len(targets.V), pivots[:0])
        weights, w = saddle_sweeps(Phi[rows], targets.V[ids], problem.gamma, weights)
    else:
        weights = d_sweeps(Phi[rows], problem.gamma, weights)
        L, _, _ = problem.factor(rows, weights)
        found = targets.largest(L, 10 * many)
        ids = found.ids[spread_out(targets.vectors(found.ids), many)]
        w = torch.full_like(Phi[: len(ids), 0], 1 / len(ids))
    top, top_w = heaviest(weights, many), heaviest(w, many)
    working = WorkingSet(rows[top], weights[top], ids[top_w], w[top_w])
    return with_rows(working, problem.span)


def with_rows(working: WorkingSet, rows: Tensor) -> WorkingSet:
    r"""The working set with the design points ``rows`` added, without weight."""
    rows = rows[~torch.isin(rows, working.columns)]
    columns = torch.cat((working.columns, rows))
    masses = torch.cat((working.masses, torch.zeros_like(rows, dtype=torch.float64)))
    return WorkingSet(columns, masses, working.target_ids, working.target_weights)


def heaviest(masses: Tensor, many: int) -> Tensor:
    r"""The indices of the ``many`` largest weights, or of all if there are few."""
    if masses.numel() <= ALL_IN:
        return torch.arange(masses.numel(), device=masses.device)
    return masses.topk(min(many, masses.numel())).indices


def coarse(total: int, wanted: Tensor) -> Tensor:
    r"""A coarse subset of ``total`` rows: ``wanted`` and a random choice of others.

    All rows if there are few. The choice has a fixed seed, so that the same problem
    always has the same solution.
    """
    device = wanted.device
    if total <= COARSE:
        return torch.arange(total, device=device)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randperm(total, generator=generator, device=generator.device)
    others = drawn[:COARSE].to(device)
    return torch.cat((wanted, others)).unique()


def d_sweeps(Phi: Tensor, gamma: float, weights: Tensor) -> Tensor:
    r"""The sweeps ``lam <- lam g / sum(lam g)`` to the D-design, nearly the G-design.

    Args:
        Phi: ``N x m``.
        gamma: The ridge.
        weights: ``N``, positive, where to start.

    Source:
        Silvey, Titterington and Torsney (1978).
    """
    for _ in range(D_SWEEPS):
        L = torch.linalg.cholesky(information(Phi, weights, gamma))
        weights = weights * whiten(L, Phi).square().sum(dim=-1)
        weights = weights / weights.sum()
    return weights


def saddle_sweeps(
    Phi: Tensor, V: Tensor, gamma: float, weights: Tensor
) -> tuple[Tensor, Tensor]:
    r"""The sweeps ``w <- w exp(3 g / (sqrt(t) F))`` and ``lam <- lam sqrt(s)`` in turn.

    The second is the multiplicative algorithm of the ``w``-averaged (A- or L-) design.

    Args:
        Phi: ``N x m``.
        V: ``T x m`` targets.
        gamma: The ridge.
        weights: ``N``, positive, where to start.

    Returns:
        The design and the target weights.
    """
    w = torch.full_like(V[:, 0], 1 / V.shape[0])
    for t in range(1, SADDLE_SWEEPS + 1):
        L = torch.linalg.cholesky(information(Phi, weights, gamma))
        Y = whiten(L, V)
        g = Y.square().sum(dim=-1)
        w = torch.softmax(w.log() + BOLDNESS / t**0.5 * g / g.max(), dim=0)
        C = Y.mT @ (w.unsqueeze(-1) * Y)
        Z = whiten(L, Phi)
        s = ((Z @ C) * Z).sum(dim=-1).clamp_min(0.0)
        if float(s.max()) <= 0:
            break  # No row tells anything about the targets: any design is optimal.
        weights = weights * s.sqrt()
        # Without a ridge a design may drift to fewer points than span: keep a trace.
        weights = (weights / weights.sum()).clamp_min(TRACE / weights.numel())
    return weights / weights.sum(), w


@dataclass(frozen=True, eq=False)
class _Point:
    r"""The quantities of the interior-point method at one design.

    Args:
        lam: The design, ``n`` weights.
        B: ``V A^-1 Phi'``, ``t x n``.
        Q: ``Phi A^-1 Phi'``, ``n x n``.
        g: ``t`` squared norms ``v' A^-1 v``.
    """

    lam: Tensor
    B: Tensor
    Q: Tensor
    g: Tensor


@dataclass(frozen=True, eq=False)
class _State:
    r"""An iterate of the interior-point method.

    Args:
        point: The design, and what is computed from it.
        w: The target weights: multipliers of ``g_v <= t``.
        nu: Multipliers of ``lam >= 0``.
        t: The bound of the squared norms.
        mu: The multiplier of ``sum lam = 1``.
    """

    point: _Point
    w: Tensor
    nu: Tensor
    t: Tensor
    mu: Tensor

    def certificate(self) -> Certificate:
        r"""The certificate at this iterate, valid for the restricted problem only."""
        w = self.w / self.w.sum()
        s = w @ self.point.B.square()
        f, average = float(w @ self.point.g), float(self.point.lam @ s)
        lower = lower_bound(f, float(s.max()), average)
        return Certificate(float(self.point.g.max()), lower)


def solve_restricted(
    problem: Problem, working: WorkingSet, tol: float
) -> tuple[WorkingSet, Certificate]:
    r"""Solve the problem on the columns and targets in play.

    Args:
        problem: The problem.
        working: What is in play, with the masses to start from; with ``gamma = 0`` the
            columns span.
        tol: Stop at this relative gap of the restricted problem.

    Returns:
        The same with the masses of the solution, and its certificate, which is valid
        for the restricted problem only.

    Source:
        Mehrotra (1992) for the predictor and corrector; the derivatives are those of
        Mason et al. (2022), Appendix G.
    """
    Phi, V = problem.Phi[working.columns], problem.targets.vectors(working.target_ids)
    lam, w = _interior(working.masses), _interior(working.target_weights)
    best, ends = replace(working, masses=lam, target_weights=w), Certificate(inf, 0.0)
    point = _evaluate(Phi, V, problem.gamma, lam)
    if point is None:
        return best, ends
    scale = float(point.g.max())
    if scale <= 0:
        return best, Certificate(0.0, 0.0)
    V = V / scale**0.5  # the values are about 1 from here on
    point = _Point(lam, point.B / scale**0.5, point.Q, point.g / scale)
    s = w @ point.B.square()
    mu = s.max() * ROOM
    if float(mu) <= FLOOR:
        # The columns tell nothing about these targets: only the worst one counts.
        worst = torch.zeros_like(w)
        worst[point.g.argmax()] = 1.0
        return replace(best, target_weights=worst), Certificate(scale, scale)
    state: _State | None = _State(point, w, mu - s, point.g.max() * ROOM, mu)
    for _ in range(MAX_STEPS):
        if state is None:
            break
        found = state.certificate()
        if found.gap < ends.gap:
            lam, w, ends = state.point.lam, state.w / state.w.sum(), found
        if found.gap <= tol:
            break
        state = _step(Phi, V, problem.gamma, state)
    best = replace(working, masses=lam, target_weights=w)
    return best, Certificate(ends.upper * scale, ends.lower * scale)


def _interior(masses: Tensor) -> Tensor:
    r"""Weights on the simplex, each above zero, as an interior-point method needs."""
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
    # Mehrotra's rule: the more the pure Newton step would gain, the less centring.
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
        r"""The product ``M^-1 right``, by the Cholesky factor of the scaled matrix."""
        scaled = self.scale.unsqueeze(-1) * right
        return self.scale.unsqueeze(-1) * torch.cholesky_solve(scaled, self.L)

    def solve(
        self, r_lam: Tensor, r_w: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        r"""The directions of ``lam, nu, w, z, t, mu`` for two complementarity targets.

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


def wolfe_atwood(
    problem: Problem, tol: float, max_steps: int, initial: Tensor | None = None
) -> Solution:
    r"""The G-optimal design for ``gamma = 0`` and all design points as targets.

    Each step takes the point with the largest norm and moves towards it, or the point
    of the support with the smallest and moves away, whichever promises more, by the
    step that is best for the determinant. Points that no optimal design can hold are
    deleted on the way.

    Args:
        problem: With ``gamma = 0``, targets equal to ``Phi`` and ``span`` given.
        tol: The gap ``max g / d - 1`` to reach.
        max_steps: The largest number of steps.
        initial: ``N`` weights to start from, or ``None``.

    Source:
        Wolfe (1970), Atwood (1973), in the form of Todd (2016), section 3.2; deletion
        by Harman and Pronzato (2007); start of Kumar and Yildirim (2005), with pivots
        in the place of their random directions.
    """
    Phi = problem.Phi
    weights = torch.zeros_like(Phi[:, 0])
    weights[problem.span] = 1 / problem.span.numel()
    steps, is_done = 0, False
    if initial is not None:
        # A hundredth on spanning rows keeps the information regular.
        weights = 0.99 * initial + 0.01 * weights
    if Phi.shape[0] > 2 * FAR:
        steps, is_done = _climb_by_parts(Phi, weights, tol, max_steps)
    more = 0
    if not is_done:
        weights, more = _climb(Phi, weights, tol, max_steps - steps)
    columns = weights.nonzero().squeeze(-1)
    # As target weights the masses prove the rank and no more: the floor.
    ids, w, floor = columns, weights[columns], problem.floor
    lighter = without_light(problem, columns, w, tol, floor * (1 + tol), columns)
    if lighter is None:
        L, columns, masses = problem.factor(columns, w)
        lighter = columns, masses, problem.targets.largest(L, 1).largest
    return Solution(*lighter, floor, ids, w, steps + more)


def _climb_by_parts(
    Phi: Tensor, weights: Tensor, tol: float, max_steps: int
) -> tuple[int, bool]:
    r"""The steps of ``_climb`` for many rows, taken on few of them in turns.

    Each turn looks at the rows with weight and those with the largest norms, which are
    where steps go: a step on them costs a small part of one on all. It ends where a
    turn no longer halves the gap.

    Args:
        Phi: ``N x d``.
        weights: On the simplex, and changed in place.
        tol: The gap to reach.
        max_steps: Steps at most.

    Returns:
        The number of steps, and whether the gap is reached.
    """
    steps, before, gap = 0, inf, inf
    while steps < max_steps:
        held = weights.nonzero().squeeze(-1)
        L = torch.linalg.cholesky(information(Phi[held], weights[held], 0.0))
        # A product is faster than a solve, and this only says where to look.
        g = (Phi @ torch.linalg.inv(L).mT).square_().sum(dim=-1)
        gap = float(g.max()) / Phi.shape[1] - 1
        if gap <= tol or gap > before / 2:
            break
        some = torch.cat((held, g.topk(FAR).indices)).unique()
        inner = max(INNER * tol, gap * PROGRESS)
        weights[some], more = _climb(Phi[some], weights[some], inner, max_steps - steps)
        steps, before = steps + more, gap
    return steps, gap <= tol


def _climb(
    Phi: Tensor, weights: Tensor, tol: float, max_steps: int
) -> tuple[Tensor, int]:
    r"""Wolfe and Atwood's steps on the rows of ``Phi`` until their gap is ``tol``.

    Returns:
        The weights, and the number of steps.
    """
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
    r"""The norm below which a point is in no optimal design.

    With ``e = largest - d`` the level is
    ``d (1 + e / 2 - sqrt(e (4 + e - 4 / d)) / 2)``.

    Source:
        Harman and Pronzato (2007), Theorem 1 (there ``m`` for ``d``).
    """
    e = max(largest - d, 0.0)
    # A little lower than the theorem's level: rounding must delete no needed point.
    return d * (1 + e / 2 - (e * (4 + e - 4 / d)) ** 0.5 / 2) * (1 - 1e-9)


def _restart(Phi: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    r"""The inverse ``A^-1`` and all squared norms, computed anew."""
    L = torch.linalg.cholesky(information(Phi, weights, 0.0))
    return torch.cholesky_inverse(L), whiten(L, Phi).square().sum(dim=-1)


def _move(
    Phi: Tensor, weights: Tensor, inverse: Tensor, g: Tensor, i: int, d: int
) -> tuple[Tensor, Tensor]:
    r"""Move weight to or from point ``i``: ``lam <- (1 - step) lam + step e_i``.

    The step is the one that raises the determinant most. ``weights`` is changed in
    place.

    Returns:
        ``A^-1`` and the squared norms of all rows, by rank-one updates.
    """
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
