r"""What every strategy does on a table of small runs, to compare two versions.

``python -m tests.reference.recording new.json --against old.json`` plays the runs of
this table and says which of them ask, answer, forecast or stop otherwise than those of
a file written by another version, on the same machine: floats are kept to the last bit.
It uses public names only, so the same file runs in every version that has them. So it
has a table of its own, by the classes' names, and not that of ``tests/registry.py``,
whose classes and arguments are those of this version; ``tests/test_registry.py`` says
which class is missing here.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_lse import Pool
from botorch_lse import strategies as S
from botorch_lse.strategies import State, Strategy

ROUNDS = 6
SLOW = 3.0
FORESEEN = 4
LINE = torch.linspace(0, 1, 6, dtype=torch.float64)
GRID = torch.cartesian_prod(LINE, LINE)
CASES: dict[str, Callable[[], tuple[Strategy, Tensor, float]]] = {}
"""By name a function that makes a strategy, the truth of its rows, and the noise."""


def truth(X: Tensor, m: int | None = None) -> Tensor:
    r"""A smooth function, or ``m`` of them."""
    one = (5 * X[:, 0]).sin() + X[:, -1] - 0.4
    if m is None:
        return one
    return torch.stack([one, *[(3 * X[:, 0] + k).cos() for k in range(1, m)]], dim=-1)


def kernel(lengthscale: float = 0.3) -> Any:
    r"""A fixed Gaussian process."""
    found = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)).double()
    found.base_kernel.lengthscale = torch.tensor([[lengthscale, 0.4]]).double()
    found.outputscale = 2.0
    return found


def add(name: str, cls: type, pool: Pool, m: int | None = None, **options: Any) -> None:
    r"""A case of the table."""
    std = options.get("noise_std", 0.3)
    size = 0.3 if std is None else float(torch.as_tensor(std).max())
    F = truth(pool.X, m)

    def make() -> tuple[Strategy, Tensor, float]:
        return cls(pool, **options), F, size

    assert name not in CASES, name
    CASES[name] = make


LEVEL = [
    "LSEStrategy",
    "LSELiteralBatchStrategy",
    "StraddleStrategy",
    "StraddleRankStrategy",
    "MaxVarianceStrategy",
    "RandomStrategy",
    "MELKStrategy",
    "HRAGEStrategy",
    "TruVaRStrategy",
]
RELATIVE = [
    "ImplicitLSEStrategy",
    "ImplicitLSELiteralBatchStrategy",
    "ImplicitStraddleStrategy",
    "MILKStrategy",
]


DESIGNED = ("MELKStrategy", "MILKStrategy", "HRAGEStrategy")
"""Their batches were rounded by quota before they were improved by exchange."""


def fill() -> None:
    r"""The table."""
    CASES.clear()
    pool = Pool(GRID)
    noisy = Pool(GRID, noise_var=0.05 + 0.2 * GRID[:, 0])
    priced = Pool(GRID, costs=1 + 3 * GRID[:, 1])
    for name in [*LEVEL, *RELATIVE]:
        cls = getattr(S, name)
        goal = {"threshold": 0.3} if name in LEVEL else {"omega": 0.6}
        if name in DESIGNED:
            goal = {**goal, "rounding": "quota"}
        known = {**goal, "model": kernel(), "noise_std": 0.3}
        narrow = {**known, "beta": 4.0}
        for q in (1, 3, 10):
            add(f"{name} q={q}", cls, pool, **narrow, batch_size=q, epsilon=0.1)
        add(f"{name} theorem", cls, pool, **known, batch_size=4)
        limits = {"max_observations": 19, "max_repeats": 2, "epsilon": 0.2}
        add(f"{name} limits", cls, priced, **narrow, batch_size=4, **limits)
        own = {**goal, "model": kernel(), "beta": 4.0, "batch_size": 5}
        add(f"{name} own noise", cls, noisy, **own)
        exact = {**narrow, "noise_std": 0.0, "batch_size": 4}
        add(f"{name} exact", cls, pool, **exact)
        learnt = {**goal, "noise_std": 0.3, "batch_size": 6, "n_initial": 8}
        add(f"{name} learnt", cls, pool, **learnt, max_observations=26)
    _designs(pool)
    _linear()
    _several(pool)


def _designs(pool: Pool) -> None:
    known = {"model": kernel(), "noise_std": 0.3, "beta": 4.0}
    for option in ("exchange", "sample", "prior"):
        given = {**known, "batch_size": 6, "rounding": option}
        if option == "prior":
            given |= {"design": "prior", "rounding": "quota"}
        add(f"MELKStrategy {option}", S.MELKStrategy, pool, threshold=0.3, **given)
        add(f"MILKStrategy {option}", S.MILKStrategy, pool, omega=0.6, **given)
    wanted = {**known, "batch_size": 4, "epsilon": 0.2}
    add("TruVaRStrategy maximiser", S.TruVaRStrategy, pool, **wanted)
    quota = {**wanted, "rounding": "quota"}
    add("HRAGEStrategy maximiser", S.HRAGEStrategy, pool, **quota)
    level = {**wanted, "threshold": 0.3}
    items = Pool(GRID[::5] + 0.01)
    quota = {**quota, "threshold": 0.3}
    add("HRAGEStrategy items", S.HRAGEStrategy, pool, targets=items, **quota)
    bounds = {"variance_bounds": (0.01, 1.0), "burn_in": 16}
    learnt = {**quota, "noise_std": None, **bounds}
    add("HRAGEStrategy learns noise", S.HRAGEStrategy, pool, **learnt)
    add("TruVaRStrategy travel", S.TruVaRStrategy, pool, **level, cost=travel)
    levels = pool.at_noise_levels([0.01, 0.2], costs=[5.0, 1.0])
    chosen = {**level, "noise_std": None}
    add("TruVaRStrategy noise levels", S.TruVaRStrategy, levels, **chosen)


def travel(previous: int | None, rows: Tensor) -> Tensor:
    r"""One, and the way from the row measured before."""
    if previous is None:
        return torch.ones(len(rows), dtype=torch.float64)
    return 1 + (GRID[rows] - GRID[previous]).abs().sum(dim=-1)


def _linear() -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(12, 3, generator=generator, dtype=torch.float64)
    arms = Pool(X / X.norm(dim=1, keepdim=True))
    both = {"maximize": (True, False), "m": 2}
    for q in (None, 5):
        known = {"noise_std": 0.3, "batch_size": q, "delta": 0.1}
        level = {"threshold": 0.3, **known}
        add(f"MELKLinearStrategy q={q}", S.MELKLinearStrategy, arms, **level)
        add(f"MILKLinearStrategy q={q}", S.MILKLinearStrategy, arms, omega=0.6, **known)
        add(f"HRAGELinearStrategy q={q}", S.HRAGELinearStrategy, arms, **known)
        add(f"GEGELinearStrategy q={q}", S.GEGELinearStrategy, arms, **both, **known)
    pac = {"bound": 2.0, "noise_std": 0.3, "delta": 0.1, "epsilon": 0.5}
    add("MELKPACStrategy", S.MELKPACStrategy, arms, threshold=0.3, **pac)
    add("MILKPACStrategy", S.MILKPACStrategy, arms, omega=0.5, **pac)
    add("RAGEPACStrategy", S.RAGEPACStrategy, arms, noise_std=0.3)
    bounds = {"variance_bounds": (0.01, 1.0), "burn_in": 200}
    add("HRAGEPACStrategy", S.HRAGEPACStrategy, arms, **bounds)
    budgets = ("GEGEBudgetStrategy", "EGESHStrategy", "EGESRStrategy")
    for name in (*budgets, "UniformStrategy"):
        add(name, getattr(S, name), arms, max_observations=120, **both)
    sure = {"noise_std": 0.3, "epsilon": 0.3, "max_observations": 4000, **both}
    add("GEGEPACStrategy", S.GEGEPACStrategy, arms, **sure)
    open_ = {k: v for k, v in sure.items() if k != "epsilon"}
    add("APEStrategy", S.APEStrategy, arms, step=20, **open_)
    add("RacingStrategy", S.RacingStrategy, arms, step=20, **sure)


def _several(pool: Pool) -> None:
    stds = {"maximize": (True, False), "noise_std": (0.3, 0.1), "m": 2}
    models = (kernel(), RBFKernel().double())
    limits = {"max_observations": 19, "max_repeats": 2}
    for name in ("GEGEStrategy", "PALStrategy"):
        cls = getattr(S, name)
        known = {**stds, "model": models, "beta": 4.0}
        for q in (1, 3, 10, 30):
            each = {**known, "batch_size": q, "epsilon": (0.1, 0.05)}
            add(f"{name} q={q}", cls, pool, **each)
        add(f"{name} limits", cls, pool, **known, batch_size=4, **limits)
        learnt = {**stds, "batch_size": 6, "n_initial": 8, "max_observations": 20}
        add(f"{name} learnt", cls, pool, **learnt)


# --- playing ------------------------------------------------------------------------


def bits(value: Any) -> Any:
    r"""A value as JSON that is equal only to the same bits."""
    if isinstance(value, Tensor):
        return [bits(x) for x in value.tolist()]
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [bits(x) for x in value]
    return value


def seen(strategy: Strategy, state: State) -> dict[str, Any]:
    r"""What a state says."""
    answer = state.classification
    found = {
        f.name: bits(getattr(answer, f.name))
        for f in fields(answer)
        if isinstance(getattr(answer, f.name), (Tensor, str))
    }
    said = {"answer": found, "stop": state.stop_reason, "round": state.round}
    if state.round == FORESEEN:  # a forecast may be as long as a run
        forecast = state.forecast()
        said["forecast"] = [bits(forecast.observations), str(forecast)]
    return said


def play(strategy: Strategy, F: Tensor, std: float, seed: int) -> Iterator[Any]:
    r"""A run with rows out, rounds told in parts, and rows used up."""
    generator = torch.Generator().manual_seed(100 + seed)

    def values(rows: Tensor) -> Tensor:
        noise = torch.randn(F[rows].shape, generator=generator, dtype=torch.float64)
        return F[rows] + std * noise

    state = strategy.init(seed)
    yield seen(strategy, state)
    if hasattr(strategy, "simulate"):
        yield simulated(strategy, F, std, seed)
    while not state.is_done and state.round < ROUNDS:
        batch = strategy.ask(state)
        order = batch.order[:3000]
        yield {"ask": order.tolist(), "n": len(batch)}
        if len(batch) > 3000:  # the papers' algorithms ask for more than a table holds
            return
        if state.round % 3 == 1:
            try:
                more = strategy.ask(state, pending=order).order.tolist()
            except ValueError as error:
                more = str(error)
            yield {"while these are out": more}
        if state.round % 3 == 2 and len(order) > 2:
            half = order[: len(order) // 2]
            state = strategy.tell(state, observed(half, values(half)))
            rest = strategy.ask(state).order
            yield {"rest": rest.tolist()}
            state = strategy.tell(state, None, abandoned=rest[:1].tolist())
            if state.is_done or strategy.missing(state).numel() == 0:
                yield seen(strategy, state)
                continue
            order = strategy.ask(state).order
        state = strategy.tell(state, observed(order, values(order)))
        yield seen(strategy, state)


def simulated(strategy: Any, F: Tensor, std: float, seed: int) -> dict[str, Any]:
    r"""The end of a run by counts and means."""
    generator = torch.Generator().manual_seed(200 + seed)

    def means(rows: Tensor, counts: Tensor) -> Tensor:
        noise = torch.randn(F[rows].shape, generator=generator, dtype=torch.float64)
        sizes = counts.double().sqrt().view(-1, *[1] * (F.ndim - 1))
        return F[rows] + std * noise / sizes

    end = strategy.simulate(means, seed)
    answer = end.classification
    sides = [answer.above.tolist(), answer.below.tolist()]
    return {"n": end.n_used, "rounds": end.rounds, "stop": end.stop_reason, "of": sides}


def observed(rows: Tensor, y: Tensor) -> Any:
    from botorch_lse import Observations

    return Observations(rows, y)


def record(only: str = "") -> dict[str, Any]:
    r"""All runs of the table, by name and seed."""
    fill()
    found: dict[str, Any] = {}
    for name, make in CASES.items():
        if only not in name:
            continue
        for seed in (0,) if "learnt" in name else (0, 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.perf_counter()
                try:
                    events = list(play(*make(), seed))
                except Exception as error:
                    events = [{"error": f"{type(error).__name__}: {error}"}]
                if time.perf_counter() - start > SLOW:
                    print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
            found[f"{name} #{seed}"] = events
    return found


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    r"""A sentence for each run that differs, at its first event that does."""
    said = []
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            said.append(f"{name}: only in {'old' if name in old else 'new'}")
            continue
        for i, (a, b) in enumerate(zip(old[name], new[name], strict=False)):
            if a != b:
                keys = [k for k in a if a.get(k) != b.get(k)]
                if keys == ["answer"]:
                    keys = [
                        f"answer.{k}"
                        for k in a["answer"]
                        if a["answer"][k] != b["answer"].get(k)
                    ]
                said.append(f"{name}: event {i} of {len(old[name])}: {keys or [*b]}")
                break
        else:
            if len(old[name]) != len(new[name]):
                said.append(f"{name}: {len(old[name])} and {len(new[name])} events")
    return said


def main() -> None:
    r"""Write a record, and compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = record(options.only)
    options.path.write_text(json.dumps(found))
    wrong = {name: e[-1]["error"] for name, e in found.items() if "error" in e[-1]}
    n_events = sum(map(len, found.values()))
    print(f"{len(found)} runs, {n_events} events, {len(wrong)} errors")
    for name, error in wrong.items():
        print(f"  {name}: {error[:200]}")
    if options.against is not None:
        said = differences(json.loads(options.against.read_text()), found)
        print(f"{len(said)} differ")
        print("\n".join(said))


if __name__ == "__main__":
    main()
