r"""Where a run stands, and why it waits, in words."""

from __future__ import annotations

from botorch_lse.ax.ledger import OpenRound
from botorch_lse.ax.measurements import Gap
from botorch_lse.strategies import State, Strategy


def summary(state: State, strategy: Strategy) -> str:
    r"""Where a run stands, in a sentence.

    ``delta`` is named where the answer claims a confidence; the reason for stopping
    where it is another one than that everything is decided.
    """
    N = len(state.classification)
    decided = N - int(state.classification.undecided.sum())
    claimed = state.classification.guarantee.startswith("With probability")
    delta = getattr(strategy, "delta", None)
    at = f" at delta = {delta:g}" if claimed and delta is not None else ""
    told = state.stop_reason in (None, "decided")
    reason = "" if told else f" ({state.stop_reason})"
    return (
        f"{decided:,} of {N:,} rows decided{at}; {state.n_used:,} evaluations{reason}"
    )


def why_wait(current: OpenRound, n_issued: int) -> str:
    r"""What must happen before a round is over.

    Args:
        current: The round.
        n_issued: Its rows given out in this very call.
    """
    if n_issued:
        return (
            f"Round {current.number} has {len(current.plan)} rows, and all that were "
            f"left are given out. Ask for at most {n_issued} trials now."
        )
    trials = ", ".join(map(str, current.trials_out))
    message = (
        f"Round {current.number} is open: {len(current.out)} of its "
        f"{len(current.plan)} rows are out (trials {trials}). Complete them, or mark "
        "them failed (asked again) or abandoned (used up)."
    )
    return message if current.gap is None else f"{message} {_how_to_fill(current.gap)}"


def _how_to_fill(gap: Gap) -> str:
    values = ", ".join(f"{name!r}: (mean, sem)" for name in gap.missing)
    words = (
        f"Trial {gap.trial} is completed without data for {list(gap.missing)}, its "
        f"data have {list(gap.found) or 'none'}: call "
        f"`client.attach_data({gap.trial}, {{{values}}})`."
    )
    if gap.found:
        words += " If it was measured under another name, give that as `metrics`."
    return words
