r"""Planning of batches: the rows whose measurement makes variances of targets small."""

from botorch_lse.planning.designed import (
    ROUNDINGS,
    BatchPosterior,
    JointBatchPosterior,
    PosteriorProblem,
    Relaxation,
    designed_batch,
    relaxed_counts,
)

__all__ = [
    "ROUNDINGS",
    "BatchPosterior",
    "JointBatchPosterior",
    "PosteriorProblem",
    "Relaxation",
    "designed_batch",
    "relaxed_counts",
]
