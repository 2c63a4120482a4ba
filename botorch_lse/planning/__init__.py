r"""Planning of batches: the rows whose measurement makes variances of targets small."""

from botorch_lse.planning.designed import (
    ROUNDINGS,
    BatchPosterior,
    Covariances,
    JointBatchPosterior,
    PosteriorProblem,
    Relaxation,
    designed_batch,
    exchange_pairs,
    greedy,
    relaxed_counts,
)

__all__ = [
    "ROUNDINGS",
    "BatchPosterior",
    "Covariances",
    "JointBatchPosterior",
    "PosteriorProblem",
    "Relaxation",
    "designed_batch",
    "exchange_pairs",
    "greedy",
    "relaxed_counts",
]
