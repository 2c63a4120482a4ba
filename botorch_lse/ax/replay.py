r"""A strategy's state after the rounds of an experiment, and that state in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import torch

from botorch_lse.ax.ledger import Ledger, Step
from botorch_lse.ax.measurements import Measurement, as_observations
from botorch_lse.strategies import State, Strategy

_KEPT = 3
"""States kept: the newest, the one before it, and one that a late result may need."""


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
    goes_without_saying = state.stop_reason in (None, "decided")
    reason = "" if goes_without_saying else f" ({state.stop_reason})"
    return (
        f"{decided:,} of {N:,} rows decided{at}; {state.n_used:,} evaluations{reason}"
    )


class Replay:
    r"""Gives a strategy the rounds of an experiment, one after the other.

    ``state = tell(... tell(tell(init, round 0), round 1) ...)`` is a function of the
    strategy, the seed and the rounds alone. The last states are remembered with the
    rounds before them, so that a new round costs one ``tell``.

    Args:
        strategy: The strategy.
        seed: The seed of ``init``.
    """

    def __init__(self, strategy: Strategy, seed: int) -> None:
        self.strategy = strategy
        self.seed = seed
        self._states: deque[tuple[tuple[Step, ...], State]] = deque(maxlen=_KEPT)
        self._asked: tuple[tuple[Step, ...], tuple[int, ...]] | None = None
        self._plan: tuple[int, ...] = ()

    def complete(self, ledger: Ledger) -> State:
        r"""The state after all complete rounds."""
        steps = ledger.steps
        # Rounds that did not change are the same objects: comparing them is quick.
        fitting = [
            known for known in self._states if known[0] == steps[: len(known[0])]
        ]
        if not fitting:
            fitting = [((), self.strategy.init(self.seed))]
            self._states += fitting
        done, state = max(fitting, key=lambda known: len(known[0]))
        for n, step in enumerate(steps[len(done) :], len(done) + 1):
            state = self._tell(state, step.plan, step.results, step.used_up)
            self._states.append((steps[:n], state))
        return state

    def state(self, ledger: Ledger) -> State:
        r"""The state with the open round in it."""
        state, current = self.complete(ledger), ledger.open
        if current is None:
            return state
        waiting = (as_observations(ledger.waiting),) if ledger.waiting else ()
        state = replace(state, deferred=waiting)
        return self._tell(state, current.plan, sorted(current.results), current.used_up)

    def history(self, ledger: Ledger) -> list[State]:
        r"""The states before the first and after each complete round, anew."""
        states = [self.strategy.init(self.seed)]
        for step in ledger.steps:
            states.append(self._tell(states[-1], step.plan, step.results, step.used_up))
        return states

    def plan(self, ledger: Ledger) -> tuple[int, ...]:
        r"""The rows of the round after the complete ones, pending rows known.

        Raises:
            ValueError: If nothing is left to plan while rows are pending.
        """
        if self._asked != (ledger.steps, ledger.pending):
            batch = self.strategy.ask(self.complete(ledger), list(ledger.pending))
            self._plan = tuple(batch.order.tolist())
            self._asked = (ledger.steps, ledger.pending)
        return self._plan

    def _tell(
        self,
        state: State,
        plan: Sequence[int],
        results: Sequence[Measurement],
        used_up: Sequence[int],
    ) -> State:
        # With its plan in place a round takes these rows and no other, and closes.
        state = replace(state, plan=torch.tensor(sorted(plan)))
        found = as_observations(results) if results else None
        return self.strategy.tell(state, found, abandoned=list(used_up) or None)
