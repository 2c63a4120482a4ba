r"""The records that travel: pool, observations, batch, classification."""

from botorch_lse.problem.batch import Batch
from botorch_lse.problem.classification import Classification
from botorch_lse.problem.observations import Observations
from botorch_lse.problem.pool import Pool

__all__ = ["Batch", "Classification", "Observations", "Pool"]
