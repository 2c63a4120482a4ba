r"""The records that travel: pool, observations, batch, classification."""

from botorch_lse.problem.classification import Classification
from botorch_lse.problem.observations import Batch, Observations
from botorch_lse.problem.pool import Pool

__all__ = ["Batch", "Classification", "Observations", "Pool"]
