r"""The end of a run that is simulated by counts and means, not row by row."""

from __future__ import annotations

from dataclasses import dataclass

from botorch_lse.problem import Classification


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    r"""The end of a simulated run.

    Args:
        classification: The answer.
        n_used: Measurements made.
        rounds: How many rounds or batches they were made in.
        stop_reason: ``"decided"`` or ``"budget"``.
    """

    classification: Classification
    n_used: int
    rounds: int
    stop_reason: str
