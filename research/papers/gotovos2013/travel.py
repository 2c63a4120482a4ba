r"""How far one travels between measurements."""

from __future__ import annotations

import torch
from torch import Tensor


def path_length(points: Tensor) -> Tensor:
    r"""Distances travelled up to each of ``n x d`` points: ``n``, the first 0."""
    steps = points.diff(dim=0).norm(dim=-1)
    return torch.cat((steps.new_zeros(1), steps.cumsum(dim=0)))[: len(points)]


def visiting_order(points: Tensor, start: Tensor | None = None) -> Tensor:
    r"""A short open path through ``q x d`` points.

    Christofides' tour through the start and all points, opened at the start on the
    side where it is longer.

    Args:
        points: ``q x d``.
        start: ``d``, where the path begins; default the first point.

    Returns:
        ``q`` indices of ``points`` in visiting order.
    """
    first = points[:1] if start is None else start.unsqueeze(0)
    places, group = torch.unique(torch.cat((first, points)), dim=0, return_inverse=True)
    tour = _tour_from(int(group[0]), places)
    rank = torch.empty(len(places), dtype=torch.long)
    rank[torch.tensor(tour)] = torch.arange(len(places))
    return rank[group[1:]].argsort(stable=True)


def _tour_from(start: int, places: Tensor) -> list[int]:
    r"""All places, ``start`` first."""
    if len(places) <= 3:
        rest = [i for i in range(len(places)) if i != start]
        return [start, *sorted(rest, key=lambda i: _length(places, [start, i]))]
    from networkx import Graph
    from networkx.algorithms.approximation import christofides

    distances = torch.cdist(places, places)
    graph = Graph()
    graph.add_weighted_edges_from(
        (i, j, float(distances[i, j]))
        for i in range(len(places))
        for j in range(i + 1, len(places))
    )
    cycle = christofides(graph)[:-1]
    at = cycle.index(start)
    there = cycle[at:] + cycle[:at]
    back = [start, *there[:0:-1]]
    return min(there, back, key=lambda tour: _length(places, tour))


def _length(places: Tensor, tour: list[int]) -> float:
    return float(path_length(places[torch.tensor(tour)])[-1])
