r"""Batches: what a pool's rows tell about targets, and the rows that tell most."""

from botorch_lse.planning.batch_posterior import BatchPosterior, JointBatchPosterior
from botorch_lse.planning.designed import ROUNDINGS, designed_batch
from botorch_lse.planning.problem import BatchProblem, PosteriorProblem
from botorch_lse.planning.relaxation import Relaxation, relaxed_counts
from botorch_lse.planning.search import exchange_pairs, greedy

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
