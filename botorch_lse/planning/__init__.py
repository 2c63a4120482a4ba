r"""Planning of batches: the rows whose measurement makes variances of targets small."""

from botorch_lse.planning.designed import (
    ROUNDINGS,
    designed_batch,
    exchange_pairs,
    greedy,
)
from botorch_lse.planning.problem import (
    BatchPosterior,
    BatchProblem,
    JointBatchPosterior,
    PosteriorProblem,
)
from botorch_lse.planning.relaxation import Relaxation, relaxed_counts

__all__ = [
    "ROUNDINGS",
    "BatchPosterior",
    "BatchProblem",
    "JointBatchPosterior",
    "PosteriorProblem",
    "Relaxation",
    "designed_batch",
    "exchange_pairs",
    "greedy",
    "relaxed_counts",
]
