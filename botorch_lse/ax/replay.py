r"""A strategy's state after the rounds of an experiment, and that state in words."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import replace

import torch

from botorch_lse.ax.ledger import Ledger, OpenRound, Step
from botorch_lse.ax.measurements import as_observations
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
    r"""Tells a strategy the rounds of an experiment, one after the other.

    ``state = tell(... tell(tell(init, round 0), round 1) ...)`` is a function of the
    strategy, the seed and the rounds alone.

    States are remembered by a digest of all rounds before them (rows, values,
    variances, plans to the last bit), so that a new round costs one ``tell``. A state
    that is found equals the one computed afresh, because ``tell`` is a function of the
    state and the round.

    Args:
        strategy: The strategy.
        seed: The seed of ``init``.
    """

    def __init__(self, strategy: Strategy, seed: int) -> None:
        self.strategy = strategy
        self.seed = seed
        self._states: OrderedDict[str, State] = OrderedDict()
        self._told: tuple[Step, ...] = ()
        self._digests = [""]
        self._plan: tuple[tuple[str, tuple[int, ...]], tuple[int, ...]] | None = None

    def complete(self, ledger: Ledger) -> State:
        r"""The state after all complete rounds."""
        keys = self._keys(ledger.steps)
        found = (i for i in range(len(keys) - 1, -1, -1) if keys[i] in self._states)
        done = next(found, 0)
        if keys[done] not in self._states:
            self._remember(keys[0], self.strategy.init(self.seed))
        state = self._states[keys[done]]
        for step, key in zip(ledger.steps[done:], keys[done + 1 :], strict=True):
            state = self._tell(state, step)
            self._remember(key, state)
        return state

    def state(self, ledger: Ledger) -> State:
        r"""The state with the open round in it."""
        state = self.complete(ledger)
        if ledger.open is None:
            return state
        return self._tell_open(state, ledger.open, ledger)

    def history(self, ledger: Ledger) -> list[State]:
        r"""The states before the first and after each complete round, told afresh."""
        states = [self.strategy.init(self.seed)]
        for step in ledger.steps:
            states.append(self._tell(states[-1], step))
        return states

    def plan(self, ledger: Ledger) -> tuple[int, ...]:
        r"""The rows of the round after the complete ones, pending rows known.

        Raises:
            ValueError: If nothing is left to plan while rows are pending.
        """
        key = (self._keys(ledger.steps)[-1], ledger.pending)
        if self._plan is None or self._plan[0] != key:
            batch = self.strategy.ask(self.complete(ledger), list(ledger.pending))
            self._plan = (key, tuple(batch.order.tolist()))
        return self._plan[1]

    def _tell(self, state: State, step: Step) -> State:
        # With its plan in place a round takes these rows and no other, and closes.
        state = replace(state, plan=torch.tensor(sorted(step.plan)))
        found = as_observations(step.results) if step.results else None
        return self.strategy.tell(state, found, abandoned=list(step.used_up) or None)

    def _tell_open(self, state: State, current: OpenRound, ledger: Ledger) -> State:
        waiting = (as_observations(ledger.waiting),) if ledger.waiting else ()
        plan = torch.tensor(sorted(current.plan))
        state = replace(state, plan=plan, deferred=waiting)
        found = as_observations(sorted(current.results)) if current.results else None
        lost = list(current.used_up) or None
        return self.strategy.tell(state, found, abandoned=lost)

    def _keys(self, steps: tuple[Step, ...]) -> list[str]:
        r"""A digest of all before each step and after the last, each from the last."""
        if steps is not self._told:
            pairs = zip(steps, self._told, strict=False)
            differs = (i for i, (new, old) in enumerate(pairs) if new != old)
            same = next(differs, min(len(steps), len(self._told)))
            del self._digests[same + 1 :]
            for step in steps[same:]:
                text = self._digests[-1] + repr(step)
                self._digests.append(hashlib.sha256(text.encode()).hexdigest())
            self._told = steps
        return self._digests

    def _remember(self, key: str, state: State) -> None:
        self._states[key] = state
        self._states.move_to_end(key)
        while len(self._states) > _KEPT:
            self._states.popitem(last=False)
