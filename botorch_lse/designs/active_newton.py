r"""The engine for every criterion: an active set around the interior-point method.

Multiplicative sweeps give a rough design fast. From then on few columns and few targets
are in play; the restricted problem is solved; its design, padded with zeros, is priced
against all rows and all targets by the certificate; what violates it enters, what lost
its mass leaves. Where the targets are the design points, a newcomer enters as both:
this halves the number of rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.designs.certificate import information, whiten
from botorch_lse.designs.interior_point import solve_restricted
from botorch_lse.designs.problem import Priced, Problem, Solution, price
from botorch_lse.designs.targets import VectorTargets

ALL_IN = 300
"""Up to so many rows and targets, all are in play: one Newton step takes a few ms."""
COARSE = 1500
"""The sweeps see at most about so many rows and targets; more only cost time."""
NEAR = 0.98
"""Of two newcomers with a larger correlation only the better enters: on a fine grid
the violators lie in clumps, and one of each clump does the work."""
CHUNK = 256
"""Newcomers compared at once: all with all would be a large matrix."""
SIZE = 100
"""A working set usually has twice as many members as there are features, but at least
so many: fewer would save nothing."""
CROWD, LIGHT = 3, 1e-6
"""Working sets above ``CROWD`` times the usual size lose what has less than ``LIGHT``
of the heaviest mass; a light member may still bind, so smaller sets keep all."""
MAX_ROUNDS = 60
D_SWEEPS, SADDLE_SWEEPS = 40, 30
BOLDNESS = 3.0
"""The step of the target weights' exponential update, found best by trial."""
TRACE = 1e-3
"""The mass that a sweep leaves to all rows together, so that they go on spanning."""


@dataclass(frozen=True, eq=False)
class WorkingSet:
    r"""What is in play, with the masses to start from.

    Args:
        columns: Rows in play.
        masses: Their weights.
        target_ids: Targets in play.
        target_weights: Their weights.
    """

    columns: Tensor
    masses: Tensor
    target_ids: Tensor
    target_weights: Tensor

    @property
    def has_newcomers(self) -> bool:
        r"""Whether a member has no mass yet."""
        return bool((self.masses == 0).any() or (self.target_weights == 0).any())


def active_newton(
    problem: Problem, start: WorkingSet, tol: float, max_rounds: int = MAX_ROUNDS
) -> Solution:
    r"""Solve to a certified relative gap of ``tol``, from ``start``.

    Args:
        problem: The problem.
        start: The first working set.
        tol: The relative gap to reach.
        max_rounds: How often to price at most.

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
        inner = max(min(0.1 * gap, 0.1), 0.2 * tol)
        solved = solve_restricted(
            problem.Phi[working.columns],
            problem.targets.vectors(working.target_ids),
            problem.gamma,
            working.masses,
            working.target_weights,
            inner,
        )
        w = solved.target_weights
        working = replace(working, masses=solved.weights, target_weights=w)
        priced = price(
            problem, working.columns, solved.weights, working.target_ids, w, 10 * many
        )
        before = best.gap if best is not None else torch.inf
        best = _better(best, priced.solution(rounds))
        gap = best.gap
        if best.gap <= tol:
            break
        working = _next(problem, working, priced, solved.certificate.upper, many)
        if best.gap >= before and not working.has_newcomers:
            break  # float64 gives no more
    assert best is not None
    return best


def _better(best: Solution | None, new: Solution) -> Solution:
    r"""The better design and the better bound, each with its own witness."""
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


def _next(
    problem: Problem, working: WorkingSet, priced: Priced, inside: float, many: int
) -> WorkingSet:
    r"""Keep what carries mass or nearly binds, and let the violators in."""
    s_inside = priced.s[working.columns]
    keep = heavy(working.masses, CROWD * many)
    keep |= torch.isin(working.columns, problem.span)
    top, rows = priced.s.topk(min(10 * many, priced.s.numel()))
    rows = rows[top > float(s_inside.max()) * (1 + 1e-12)]
    rows = rows[~torch.isin(rows, working.columns)]
    rows = rows[spread_out(problem.Phi[rows], many // 2)]
    keep_t = heavy(working.target_weights, CROWD * many)
    ids = priced.violators.ids[priced.violators.norms > inside]
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
    r"""How many rows or targets are in play, give or take."""
    return max(2 * problem.Phi.shape[1], SIZE)


def heavy(masses: Tensor, many: int) -> Tensor:
    r"""Mask of all, or where there are more than ``many``, of those not light."""
    if masses.numel() <= many:
        return torch.ones_like(masses, dtype=torch.bool)
    return masses > LIGHT * masses.max()


def spread_out(vectors: Tensor, many: int) -> Tensor:
    r"""Greedily, at most ``many`` rows, none closer than ``NEAR`` to an earlier one.

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
    r"""Where Newton's method starts: sweeps on a coarse subset, the heaviest in play.

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
        weights = 0.9 * initial[rows] + 0.1 / rows.numel()
    vectors = problem.targets
    many = usual_size(problem)
    if problem.everywhere:
        weights = d_sweeps(Phi[rows], problem.gamma, weights)
        ids, w = rows, weights
    elif isinstance(vectors, VectorTargets):
        ids = coarse(len(vectors), pivots[:0])
        weights, w = saddle_sweeps(Phi[rows], vectors.V[ids], problem.gamma, weights)
    else:
        weights = d_sweeps(Phi[rows], problem.gamma, weights)
        L, _, _ = problem.factor(rows, weights)
        found = vectors.largest(L, 10 * many)
        ids = found.ids[spread_out(vectors.vectors(found.ids), many)]
        w = torch.full_like(Phi[: len(ids), 0], 1 / len(ids))
    columns = heaviest(weights, many)
    targets = heaviest(w, many)
    working = WorkingSet(rows[columns], weights[columns], ids[targets], w[targets])
    return with_rows(working, problem.span)


def with_rows(working: WorkingSet, rows: Tensor) -> WorkingSet:
    r"""The working set with ``rows`` in play."""
    rows = rows[~torch.isin(rows, working.columns)]
    columns = torch.cat((working.columns, rows))
    masses = torch.cat((working.masses, torch.zeros_like(rows, dtype=torch.float64)))
    return WorkingSet(columns, masses, working.target_ids, working.target_weights)


def heaviest(masses: Tensor, many: int) -> Tensor:
    r"""Indices of the ``many`` heaviest, or of all if there are few."""
    if masses.numel() <= ALL_IN:
        return torch.arange(masses.numel(), device=masses.device)
    return masses.topk(min(many, masses.numel())).indices


def coarse(total: int, wanted: Tensor) -> Tensor:
    r"""All rows if few, else ``wanted`` and an even spread of others, seeded."""
    device = wanted.device
    if total <= COARSE:
        return torch.arange(total, device=device)
    generator = torch.Generator().manual_seed(0)
    others = torch.randperm(total, generator=generator)[:COARSE].to(device)
    return torch.cat((wanted, others)).unique()


def d_sweeps(Phi: Tensor, gamma: float, weights: Tensor) -> Tensor:
    r"""``lam <- lam g / sum(lam g)``: towards the D-design, nearly the G-design.

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
    r"""Alternate ``w <- w exp(3 g / (sqrt(t) F))`` and ``lam <- lam sqrt(s)``.

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
