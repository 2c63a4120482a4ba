r"""Pairs of runs of which one knows more: on average it must not decide less.

Each pair is of one world of the campaign, with the same true values: with true old
values near the pool and without, with less noise and with more, and after twice as many
measurements. Rows count that are decided and right, after as many new measurements.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from botorch_lse import Observations
from botorch_lse.strategies import ComposedStrategy, Strategy
from tests.reference import worlds
from tests.reference.worlds import World, cases, world_of

PLAIN = {"audit": "none", "content": "none", "events": "none", "budget": "None",
         "repeats": "None", "batch": "3", "variant": "as it is",
         "host": "ask and tell", "history": "near", "truth": "smooth"}  # fmt: skip
"""What a run needs to be one of a pair."""
WITHOUT_HISTORY = ("GramKernel", "TanimotoKernel", "correlated", "MultiTaskGP",
                   "norm bound", "LogNormal", *worlds.OUTCOMES)  # fmt: skip
N_NEW = 12
"""Measurements after which is counted; in the last pair once more after as many."""


@dataclass
class Counts:
    r"""Rows that are decided and right, by what is known more.

    Args:
        less: Of the runs that know less.
        more: Of those that know more.
    """

    less: dict[str, list[int]]
    more: dict[str, list[int]]

    def add(self, what: str, less: int, more: int) -> None:
        r"""Count one more pair."""
        self.less.setdefault(what, []).append(less)
        self.more.setdefault(what, []).append(more)


def plain_cases(seed: int) -> Iterator[tuple[int, Mapping[str, str]]]:
    r"""The cases of a seed that a Gaussian process with old values can play."""
    for number, case in enumerate(cases(seed)):
        is_apart = (
            case["asks"] in worlds.WITHOUT_MODEL
            or case["pool"] in worlds.TWICE
            or case["model"] in WITHOUT_HISTORY
            or case["noise"] in ("burn-in", "exact")
        )
        if not is_apart:
            yield number, {**case, **PLAIN}


def without_history(strategy: Strategy) -> Strategy:
    r"""The same strategy that does not know the old values."""
    if isinstance(strategy, ComposedStrategy):
        return replace(strategy, model=replace(strategy.model, history=None))
    return replace(strategy, history=None)  # type: ignore[call-arg]


def right_after(world: World, numbers: tuple[int, ...], seed: int) -> list[int]:
    r"""Rows that are decided and right after some numbers of measurements."""
    strategy, found = world.strategy, list[int]()
    state = strategy.init(seed)
    generator = torch.Generator().manual_seed(seed)
    for n in numbers:
        while not state.is_done and len(state.observations) < n:
            rows = strategy.ask(state).order[: n - len(state.observations)]
            F, std = world.F[rows], world.std[rows]
            noise = torch.randn(F.shape, generator=generator, dtype=torch.float64)
            y, noise_var = F + std * noise, None
            if world.is_one_number:
                y = y[:, 0]
            if world.tells_noise:
                noise_var = std.square().view(y.shape)
            state = strategy.tell(state, Observations(rows, y, noise_var))
        answer = state.classification
        wrong = world.wrong(answer)
        assert wrong is not None  # there is a goal
        found.append(int((~answer.undecided & ~wrong).sum()))
    return found


def counted(seed: int, runs: int) -> Counts:
    r"""The pairs of the first so many cases that are not refused."""
    counts = Counts({}, {})

    def played() -> Iterator[None]:
        for number, case in plain_cases(seed):
            try:
                world = world_of(case, seed, number)
                loud = world_of({**case, "truth": "noisy"}, seed, number)
            except ValueError:
                continue
            assert torch.equal(world.F, loud.F)
            bare = replace(world, strategy=without_history(world.strategy))
            once, twice = right_after(world, (N_NEW, 2 * N_NEW), number)
            counts.add("old values", right_after(bare, (N_NEW,), number)[0], once)
            counts.add("less noise", right_after(loud, (N_NEW,), number)[0], once)
            counts.add("more measurements", once, twice)
            yield

    for _ in itertools.islice(played(), runs):
        pass
    return counts
