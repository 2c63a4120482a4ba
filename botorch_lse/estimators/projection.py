r"""From many robust means to the one vector nearest to them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import bmat, coo_matrix, eye
from torch import Tensor

from botorch_lse.checks import real_matrix
from botorch_lse.estimators.rips import RIPSEstimate


def rips_projection(
    estimate: RIPSEstimate,
    V: Any,
    *,
    pairs: tuple[Tensor, Tensor, float] | None = None,
) -> Tensor:
    r"""``v' theta_hat`` with ``theta_hat = argmin max_v |v' theta - W^(v)| / |v|``.

    One vector that agrees with all means as well as possible; its error bound is twice
    that of the means, which need not come from one vector. A linear program, solved by
    HiGHS. For pairs it has a few entries per pair, never ``P x m``.

    Args:
        estimate: From ``rips``.
        V: ``T x m``, the vectors given to ``rips``.
        pairs: The pairs given to ``rips``.

    Returns:
        ``T`` values ``v' theta_hat``, or ``P`` of the pairs.

    Raises:
        ValueError: If the linear program was not solved.

    Source:
        Mason et al. (2022), Algorithm 3, the returned ``theta_hat``, and Theorem C.1.
    """
    vectors = real_matrix(V, "V")
    T, m = vectors.shape
    every = torch.arange(T)
    i, j, factor = (every, every, 0.0) if pairs is None else pairs
    P = i.numel()
    at = np.tile(np.arange(P), 2)
    entries = np.repeat([1.0, -factor], P)
    mix = coo_matrix((entries, (at, torch.cat((i, j)).numpy())), shape=(P, T))
    size = coo_matrix(estimate.norms.sqrt().unsqueeze(-1).numpy())
    means = estimate.means.numpy()
    # Unknowns: theta (m), its values at the vectors (T), the largest deviation.
    none = coo_matrix((P, m))
    deviations: Any = bmat([[none, mix, -size], [none, -mix, -size]])
    values: Any = bmat([[coo_matrix(vectors.numpy()), -eye(T), coo_matrix((T, 1))]])
    result: Any = linprog(
        np.concatenate((np.zeros(m + T), [1.0])),
        A_ub=deviations.tocsr(),
        b_ub=np.concatenate((means, -means)),
        A_eq=values.tocsr(),
        b_eq=np.zeros(T),
        bounds=[(None, None)] * (m + T) + [(0, None)],
        method="highs",
    )
    if not result.success:
        raise ValueError(
            "Expected the linear program of `rips_projection` to have a solution, but "
            f"HiGHS said: {result.message} Use the means instead."
        )
    return torch.from_numpy(mix @ result.x[m : m + T])
