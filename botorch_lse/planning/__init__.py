r"""Planning of batches: rows whose measurement lowers the variances of targets."""

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
