r"""The table of runs that ``tests.reference.recording`` plays.

A run is named after its class. Each makes its strategy anew, so that runs know nothing
of each other and may be played in any order and process. Only public names are used;
those that have moved are looked up in their homes, the newest first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import pandas as pd
import torch
from botorch.models import MultiTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from scipy.stats import norm, uniform
from torch import Tensor

from botorch_lse import History, Pool
from botorch_lse import strategies as S
from botorch_lse.models import (
    GramKernel,
    LearntKernel,
    QuadraticNoise,
    TanimotoKernel,
    fit_heteroscedastic_gp,
)
from botorch_lse.strategies import Above, Below, Between, GaussianProcess, Levels

HOMES = (
    "botorch_lse.papers",
    "botorch_lse.papers.gotovos2013",
    "botorch_lse.papers.mason2022",
    "botorch_lse.papers.weltz2023",
    "botorch_lse.papers.kone2025",
    "botorch_lse.strategies",
)
FORMER = {
    "AlternatingRules": "Turns",
    "FinalRuns": "LastRuns",
    "MisclassificationProbability": "Doubt",
    "OptimalDesign": "Design",
    "SwitchingRule": "Handover",
}
"""What a name was before, by what it is now."""

ROUNDS = 6
LINE = torch.linspace(0, 1, 6, dtype=torch.float64)
GRID = torch.cartesian_prod(LINE, LINE)


@dataclass(frozen=True)
class Case:
    r"""A run of the table.

    Args:
        make: Makes the strategy, the truth of its rows (``N``, or ``N x m``) and the
            standard deviation of the noise.
        rounds: After so many it ends.
        reads: The answer is noted after each so many rounds.
        seeds: Of its runs. With an odd one rows are excluded, a value comes that was
            not asked for, and the run is replayed at its end.
        sizes: How much is asked for, in a circle; empty: the strategy says it.
        foresees: Whether the first run is asked for a forecast.
        way: The key of ``recording.WAYS``.
    """

    make: Callable[[], tuple[S.Strategy, Tensor, float]]
    rounds: int = ROUNDS
    reads: int = 1
    seeds: tuple[int, ...] = (0, 1)
    sizes: tuple[int, ...] = ()
    foresees: bool = True
    way: str = "asked"


CASES: dict[str, Case] = {}


def named(name: str) -> Any:
    r"""A class of strategies or rules, wherever it stands in this version."""
    for word in (name, FORMER.get(name, name)):
        for home in HOMES:
            try:
                return getattr(import_module(home), word)
            except (ImportError, AttributeError):
                continue
    raise ImportError(f"{name} stands in none of {HOMES}")


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


def scattered(n: int, d: int = 2) -> Tensor:
    r"""``n x d`` points in the unit cube."""
    generator = torch.Generator().manual_seed(n)
    return torch.rand(n, d, generator=generator, dtype=torch.float64)


def add(
    name: str,
    cls: Callable[..., S.Strategy],
    pool: Pool,
    *given: Any,
    m: int | None = None,
    F: Tensor | None = None,
    std: float | None = None,
    play: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    r"""A case of the table.

    Args:
        name: Its first word is the class.
        cls: What makes the strategy of the pool and what follows.
        pool: The rows.
        given: Further arguments of the strategy, by place.
        m: How many outputs ``truth`` has.
        F: The truth, where it is not ``truth``.
        std: The noise of a measurement; default the largest ``noise_std``.
        play: Arguments of ``Case``.
        options: Arguments of the strategy, by name.
    """
    known = options.get("noise_std", getattr(options.get("model"), "noise_std", 0.3))
    size = 0.3 if known is None else float(torch.as_tensor(known).max())
    values = truth(pool.X, m) if F is None else F

    def make() -> tuple[S.Strategy, Tensor, float]:
        return cls(pool, *given, **options), values, size if std is None else std

    assert name not in CASES, name
    CASES[name] = Case(make, **(play or {}))


ONCE = {"seeds": (1,)}
BRIEF = {"seeds": (1,), "foresees": False}
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
    _levels(pool)
    _designs(pool)
    _linear()
    _several(pool)
    _goals(pool)
    _regions(pool)
    _assays(pool)
    _audits(pool)
    _contents()
    _histories(pool)
    _models(pool)
    _rules_that_score()
    _rules_that_look_ahead()
    _rules_together(pool)
    _large()
    _in_ax(pool)


def _levels(pool: Pool) -> None:
    noisy = Pool(GRID, noise_var=0.05 + 0.2 * GRID[:, 0])
    priced = Pool(GRID, costs=1 + 3 * GRID[:, 1])
    for name in [*LEVEL, *RELATIVE]:
        cls = named(name)
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
        add(f"{name} learnt", cls, pool, play=ONCE, **learnt, max_observations=26)


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
    F, chosen = truth(GRID).repeat(2), {**level, "noise_std": None}
    add("TruVaRStrategy noise levels", S.TruVaRStrategy, levels, F=F, **chosen)
    share = {**wanted, "omega": 0.6, "monotone": False, "eta": 0.5}
    add("TruVaRStrategy share", S.TruVaRStrategy, pool, **share)
    quick = {"only_open": True, "prefilter": 9, "delta_bar": 0.2}
    add("TruVaRStrategy few rows", S.TruVaRStrategy, pool, **level, **quick)
    own = {**level, "beta": None, "beta_factor": 0.5, "anticipates": True}
    add("TruVaRStrategy anticipates", S.TruVaRStrategy, pool, **own)


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
    pac = {"bound": 1.0, "noise_std": 0.001, "delta": 0.1, "epsilon": 0.5}
    add("MELKPACStrategy", named("MELKPACStrategy"), arms, threshold=0.3, **pac)
    add("MILKPACStrategy", named("MILKPACStrategy"), arms, omega=0.5, **pac)
    add("RAGEPACStrategy", named("RAGEPACStrategy"), arms, noise_std=0.3)
    bounds = {"variance_bounds": (0.01, 1.0), "burn_in": 200}
    add("HRAGEPACStrategy", named("HRAGEPACStrategy"), arms, **bounds)
    budgets = ("GEGEBudgetStrategy", "EGESHStrategy", "EGESRStrategy")
    for name in (*budgets, "UniformStrategy"):
        add(name, named(name), arms, max_observations=120, **both)
    sure = {"noise_std": 0.3, "epsilon": 0.3, "max_observations": 4000, **both}
    add("GEGEPACStrategy", named("GEGEPACStrategy"), arms, **sure)
    exact = {**sure, "noise_std": 0.01, "epsilon": 0.05}
    add("GEGEPACStrategy small noise", named("GEGEPACStrategy"), arms, **exact)
    open_ = {k: v for k, v in sure.items() if k != "epsilon"}
    add("APEStrategy", named("APEStrategy"), arms, step=20, **open_)
    add("RacingStrategy", named("RacingStrategy"), arms, step=20, **sure)
    _linear_regions(arms)


def _linear_regions(arms: Pool) -> None:
    r"""Regions on features that are not the inputs, unequal noise, burn-ins."""
    pool = Pool(scattered(len(arms)), features=arms.X)
    F = arms.X @ torch.tensor([[1.0, -2.0], [0.6, 1.5], [-0.4, 1.0]]).double()
    known = {"delta": 0.1, "batch_size": 12}
    regions = {
        "and": Above(0.2, epsilon=0.02) & Below(0.5, epsilon=0.1, output=1),
        "or": Above(0.6, epsilon=0.02) | Above(0.9, epsilon=0.1, output=1),
        "band": Between(-0.3, 0.4, epsilon=0.1),
        "levels": Levels((-0.4, 0.4), epsilon=0.1),
        "rows": Above(tuple((0.5 * arms.X[:, 0]).tolist()), epsilon=0.1),
    }
    cls = S.MELKLinearStrategy
    for name, region in regions.items():
        m = region.n_outputs
        std = (0.1, 0.3) if m == 2 else 0.2
        own = {**known, "noise_std": std, "F": F if m == 2 else F[:, 0]}
        add(f"MELKLinearStrategy {name}", cls, pool, region, **own)
    level = {**known, "noise_std": 0.2, "F": F[:, 0]}
    many = torch.nn.functional.normalize(2 * scattered(40, 3) - 1, dim=-1)
    audit = {**level, "audit": (0.3, 0.2), "epsilon": 0.6, "F": many[:, 0]}
    audit |= {"batch_size": 12, "play": {"rounds": 10}}
    add("MELKLinearStrategy audit", cls, Pool(many), 0.1, **audit)
    gaps = {**level, "design": "gaps", "max_repeats": 4}
    add("MELKLinearStrategy gaps", cls, pool, 0.1, **gaps)
    rough = Pool(arms.X, noise_var=0.02 + 0.1 * arms.X[:, 0].square())
    add("MELKLinearStrategy own noise", cls, rough, 0.1, F=F[:, 0], **known)
    burn = {**known, "variance_bounds": (0.01, 0.2), "burn_in": 48, "F": F[:, 0]}
    add("HRAGELinearStrategy learns noise", S.HRAGELinearStrategy, arms, **burn)
    items = Pool(arms.X[:4] * 0.7)
    some = {**level, "targets": items, "threshold": 0.1}
    add("HRAGELinearStrategy items", S.HRAGELinearStrategy, arms, **some)


def _several(pool: Pool) -> None:
    stds = {"maximize": (True, False), "noise_std": (0.3, 0.1), "m": 2}
    models = (kernel(), RBFKernel().double())
    limits = {"max_observations": 19, "max_repeats": 2}
    for name in ("GEGEStrategy", "PALStrategy"):
        cls = named(name)
        known = {**stds, "model": models, "beta": 4.0}
        for q in (1, 3, 10):
            each = {**known, "batch_size": q, "epsilon": (0.1, 0.05)}
            add(f"{name} q={q}", cls, pool, **each)
        add(f"{name} limits", cls, pool, **known, batch_size=4, **limits)
        learnt = {**stds, "batch_size": 6, "n_initial": 8, "max_observations": 20}
        add(f"{name} learnt", cls, pool, play=ONCE, **learnt)


# --- goals with any rule --------------------------------------------------------------


def _goals(pool: Pool) -> None:
    r"""The goals of the papers, and strategies that are put together."""
    design, known = named("OptimalDesign"), GaussianProcess(kernel(), noise_std=0.3)
    goals = {
        "maximiser": S.Maximiser(0.2),
        "maximiser by pairs": S.MaximiserByPairs(0.2),
        "share": S.ShareOfMax(0.6, 0.1),
        "share by pairs": S.ShareOfMaxByPairs(0.6, 0.1),
        "below": Below(0.3, 0.1),
        "front": S.ParetoByDifferences((True, False), (0.1, 0.1)),
    }
    rules = {
        "default": None,
        "variance": S.Variance(),
        "width": S.Width(),
        "design": design(),
        "truncated": S.TruncatedVariance(),
    }
    for goal_name, goal in goals.items():
        m = 2 if goal_name == "front" else None
        for rule_name, rule in rules.items():
            if goal_name == "front" and rule_name in ("width", "truncated"):
                continue  # they choose for one output
            given = {"model": known, "rule": rule, "beta": 4.0, "m": m}
            name = f"Strategy {goal_name}, {rule_name}"
            add(name, S.Strategy, pool, goal, **given, batch_size=4, play=ONCE)
    norm_of = GaussianProcess(kernel(), noise_std=0.3, norm_bound=1.5)
    add("Strategy norm", S.Strategy, pool, Above(0.3), model=norm_of, batch_size=4)
    sizes = {"sizes": (1, 4, 2), "rounds": 8}
    add("Strategy sizes", S.Strategy, pool, Above(0.3), model=known, play=sizes)
    add("Strategy levels, sizes", S.Strategy, pool, Levels((0.0, 0.5)), play=sizes)


def _regions(pool: Pool) -> None:
    r"""Several levels and outputs, independent and correlated ones."""
    by_row = tuple((0.5 * GRID[:, 0]).tolist())
    one = GaussianProcess(kernel(), noise_std=0.3)
    regions = {
        "band": Between(-0.2, 0.6, epsilon=0.1),
        "classes": Levels((-0.3, 0.2, 0.8), epsilon=0.1),
        "rows": Above(by_row, epsilon=0.1),
        "not": ~Between(-0.2, 0.6, epsilon=0.1),
    }
    for name, region in regions.items():
        given = {"model": one, "batch_size": 4, "beta": 4.0}
        add(f"Strategy {name}", S.Strategy, pool, region, **given)
    both = Above(0.3, epsilon=0.1) & Below(0.4, epsilon=0.1, output=1)
    either = Above(0.9, epsilon=0.1) | Above(0.5, epsilon=0.1, output=1)
    for model_name, model in outputs().items():
        is_learnt = model_name.startswith("learnt")
        given = {"model": model, "m": 2, "batch_size": 4, "play": ONCE}
        if is_learnt:
            given["max_observations"] = 20
        for goal_name, goal in {"and": both, "or": either}.items():
            name = f"Strategy {goal_name} of {model_name}"
            add(name, S.Strategy, pool, goal, **given)
        front = S.ParetoByDifferences((True, False), (0.1, 0.1))
        name = f"Strategy front of {model_name}"
        add(name, S.Strategy, pool, front, **given, beta=4.0)
        if is_learnt:
            continue
        for rule_name, rule in rules_of_regions().items():
            name = f"Strategy and of {model_name}, {rule_name}"
            given |= {"rule": rule, "beta": 4.0, "play": BRIEF}
            add(name, S.Strategy, pool, both, **given)


def _assays(pool: Pool) -> None:
    r"""Measurements of one output each."""
    pairs = pool.at_outputs(("strength", "leaching"), costs=(1.0, 5.0))
    left, right = Above(0.3, 0.1, "strength"), Below(0.4, 0.1, "leaching")
    F = truth(GRID, 2).mT.reshape(-1)
    for model_name, model in outputs().items():
        given = {"model": model, "F": F, "batch_size": 4, "play": ONCE}
        if model_name.startswith("learnt"):
            given["max_observations"] = 44
        name = f"Strategy pairs of {model_name}"
        add(f"{name}, and", S.Strategy, pairs, left & right, **given)
        add(f"{name}, or", S.Strategy, pairs, left | right, **given)
        if model_name.startswith("learnt"):
            continue
        for rule_name, rule in rules_of_regions().items():
            given |= {"rule": rule, "beta": 4.0, "play": BRIEF}
            add(f"{name}, {rule_name}", S.Strategy, pairs, left & right, **given)
    noisy = pool.at_outputs(2, costs=(1.0, 2.0), noise_var=(0.05, 0.1))
    model = GaussianProcess((kernel(), kernel(0.5)))
    goal = Above(0.3) | Below(0.4, output=1)
    given = {"model": model, "F": F, "play": {**BRIEF, "sizes": (1, 5)}}
    add("Strategy pairs, sizes", S.Strategy, noisy, goal, **given)


def rules_of_regions() -> dict[str, Any]:
    r"""Rules that choose for several outputs, by names."""
    return {
        "straddle": S.Straddle(),
        "ambiguity": S.Ambiguity(),
        "width": S.Width(),
        "variance": S.Variance(),
        "random": S.Random(),
        "targeted": S.TargetedVariance(batch="joint"),
        "misclassification": S.ExpectedMisclassification(),
        "doubt": named("MisclassificationProbability")(),
        "design": named("OptimalDesign")(),
    }


def outputs() -> dict[str, GaussianProcess]:
    r"""Models of two outputs."""
    stds = (0.3, 0.2)
    return {
        "two": GaussianProcess((kernel(), kernel(0.5)), noise_std=stds),
        "both": GaussianProcess(together(), noise_std=stds),
        "learnt two": GaussianProcess(noise_std=stds, n_initial=12),
        "learnt both": GaussianProcess(noise_std=stds, n_initial=12, correlated=True),
    }


def together() -> MultiTaskGP:
    r"""A process of two outputs that go against each other, as if it were fitted."""
    some, task = GRID[::7], torch.arange(2).double().repeat_interleave(6)
    X = torch.cat((some.repeat(2, 1), task.unsqueeze(-1)), dim=-1)
    y = truth(some, 2).mT.reshape(-1, 1)
    model = MultiTaskGP(X, y, task_feature=-1, train_Yvar=torch.full_like(y, 0.04))
    for name, parameter in model.named_parameters():
        if "var" in name.rpartition(".")[2]:  # GPyTorch draws these at random
            wanted = torch.linspace(-1.0, 1.0, parameter.numel()).view_as(parameter)
            parameter.data.copy_(wanted)
    return model.eval()


# --- audits, contents, histories ------------------------------------------------------


def _audits(pool: Pool) -> None:
    known = GaussianProcess(kernel(), noise_std=0.3)
    long = {"rounds": 14}
    given = {"batch_size": 8, "audit": (0.3, 0.2), "play": long}
    level = {**given, "model": kernel(), "noise_std": 0.3, "beta": 4.0}
    add("LSEStrategy audit", S.LSEStrategy, pool, 0.3, epsilon=1.0, **level)
    add("MELKStrategy audit", S.MELKStrategy, pool, 0.3, epsilon=1.0, **level)
    share = {**level, "omega": 0.6, "epsilon": 1.0}
    add("ImplicitLSEStrategy audit", S.ImplicitLSEStrategy, pool, **share)
    once = {**level, "max_repeats": 1, "epsilon": 1.0}
    add("StraddleStrategy audit once", S.StraddleStrategy, pool, 0.3, **once)
    learnt = {**given, "n_initial": 16, "epsilon": 1.0, "max_observations": 90}
    add("LSEStrategy audit learnt", S.LSEStrategy, pool, 0.3, **learnt)
    composed = {**given, "model": known, "beta": 4.0}
    band, classes = Between(-0.2, 0.9, epsilon=1.0), Levels((-0.3, 0.6), epsilon=1.0)
    add("Strategy audit, band", S.Strategy, pool, band, **composed)
    add("Strategy audit, classes", S.Strategy, pool, classes, **composed)
    two = {**composed, "model": outputs()["two"], "m": 2}
    both = Above(0.3, epsilon=1.0) & Below(0.4, epsilon=1.0, output=1)
    add("Strategy audit, and", S.Strategy, pool, both, **two)
    front = S.ParetoByDifferences((True, False), (1.5, 1.5))
    add("Strategy audit, front", S.Strategy, pool, front, **two)
    F = truth(GRID)
    labels = (F > 0.3).tolist()
    claimed = {"tolerance": 0.2, "delta": 0.2, "batch_size": 5, "play": long}
    near = {**claimed, "noise_std": 0.1, "epsilon": 0.3}
    add("audit of labels", S.audit, pool, labels, 0.3, **near)
    labels[:9] = [True] * 9
    told = {**claimed, "F": (F > 0.3).double(), "std": 0.0}
    add("audit of sides", S.audit, pool, labels, **told)
    words = ["above" if value > 0.3 else "below" for value in F.tolist()]
    band = Between(0.3, 9.0, epsilon=0.2)
    add("audit of a region", S.audit, pool, words, band, noise_std=0.1, **claimed)


def _contents() -> None:
    r"""How much is above, and when that is known."""
    known = GaussianProcess(kernel(), noise_std=0.1)
    exact = GaussianProcess(kernel(), noise_std=0.0)
    areas = Pool(scattered(200), weights=1 + scattered(200)[:, 0])
    inputs = [norm(0.5, 0.2), uniform(0.0, 1.0)]
    draw = partial(Pool.from_distribution, inputs, 256, method="monte_carlo")
    sample, rare = draw(), draw(sampling=[norm(0.8, 0.2), uniform(0.0, 1.0)])
    stops = {
        "0.1": 0.1,
        "decided": S.ContentKnown(0.3, by="decided"),
        "absolute": S.ContentKnown(0.05, relative=False, times=1, settled=2),
        "sampling": S.ContentKnown(0.5, sampling=True, confidence=0.8),
        "until sampled": S.ContentKnown(0.2, until_sampled=True),
        "U": S.MinimumU(0.2),
    }
    far = {"rounds": 10, **BRIEF}
    places = {
        "areas": (areas, known, 0.3, stops),
        "sample": (sample, known, 0.6, ("0.1", "sampling", "until sampled")),
        "rare": (rare, known, 0.6, ("0.1", "sampling", "until sampled")),
        "exact": (sample, exact, 0.6, ("0.1", "U")),
    }
    for where, (pool, model, level, names) in places.items():
        for name in names:
            given = {"model": model, "content_tol": stops[name], "batch_size": 8}
            name_ = f"Strategy content {name}, {where}"
            own = {**given, "beta": 4.0, "play": far}
            add(name_, S.Strategy, pool, Above(level), **own)
    design = S.ContentKnown(0.3, by="design")
    given = {"model": known, "audit": (0.2, 0.2), "batch_size": 10, "play": far}
    by = {**given, "beta": 4.0, "content_tol": design}
    goal = Above(0.3, epsilon=0.7)
    add("Strategy content design, areas", S.Strategy, areas, goal, **by)
    learnt = GaussianProcess(noise_std=0.3, n_initial=12)
    given = {"model": learnt, "content_tol": 0.1, "batch_size": 8, "play": ONCE}
    add("Strategy content learnt", S.Strategy, sample, Above(0.6), **given)
    grows = {"way": "growing", "seeds": (0,)}
    given = {"model": exact, "beta": 4.0, "content_tol": 0.1, "batch_size": 4}
    add("Strategy growing", S.Strategy, sample, Above(1.5), **given, play=grows)


def _histories(pool: Pool) -> None:
    r"""Measurements made before, at points that are no rows."""
    X = 1.2 * scattered(9) - 0.1
    past = History(X, truth(X), torch.full((9,), 0.05).double())
    bare = History(X, truth(X))
    level = {"threshold": 0.3, "noise_std": 0.3, "batch_size": 4, "beta": 4.0}
    for name in ("LSEStrategy", "StraddleStrategy", "TruVaRStrategy"):
        fixed = {**level, "model": kernel(), "history": bare}
        add(f"{name} history", named(name), pool, **fixed)
    learnt = {**level, "history": past, "max_observations": 20, "play": ONCE}
    add("LSEStrategy history learnt", S.LSEStrategy, pool, **learnt)
    add("MELKStrategy history learnt", S.MELKStrategy, pool, **learnt)
    known = GaussianProcess(kernel(), noise_std=0.3, history=past)
    add("Strategy history", S.Strategy, pool, Above(0.3), model=known, batch_size=4)
    added = partial(_with_history, past)
    plain = GaussianProcess(kernel(), noise_std=0.3)
    add("Strategy with history", added, pool, Above(0.3), model=plain, batch_size=4)
    two = History(X, truth(X, 2))
    model = GaussianProcess((kernel(), kernel(0.5)), noise_std=(0.3, 0.2), history=two)
    goal = Above(0.3) & Below(0.4, output=1)
    add("Strategy history, and", S.Strategy, pool, goal, model=model, m=2, batch_size=4)


def _with_history(past: History, *given: Any, **options: Any) -> S.Strategy:
    r"""A strategy that hears of the history once it is made."""
    return S.Strategy(*given, **options).with_history(past)


def _models(pool: Pool) -> None:
    r"""Words, other kernels, unequal noise, and when a model is learnt."""
    words = ("plain", "rye", "salt", "sour")
    shift = torch.tensor([0.0, 0.8, -0.9, 0.3]).double().repeat(12)
    rows = scattered(48)
    table = pd.DataFrame(
        {"heat": rows[:, 0].numpy(), "crust": words * 12, "time": rows[:, 1].numpy()}
    )
    mixed, F = Pool(table), truth(rows) + shift
    given = {"noise_std": 0.1, "n_initial": 12, "batch_size": 6, "play": ONCE}
    given["max_observations"] = 24
    add("LSEStrategy words", S.LSEStrategy, mixed, 0.3, F=F, **given)
    add("MELKStrategy words", S.MELKStrategy, mixed, 0.3, F=F, **given)
    model = GaussianProcess(noise_std=0.1, n_initial=12)
    few = {"F": F, "model": model, "batch_size": 6, "max_observations": 24}
    add("Strategy words", S.Strategy, mixed, Above(0.3), **few, play=ONCE)
    bits = (scattered(60, 30) < 0.3).double()
    F = bits[:, :6].sum(dim=-1)
    learnt = LearntKernel(ScaleKernel(TanimotoKernel()))
    like = {**given, "model": learnt, "F": F, "n_initial": 18}
    add("LSEStrategy fingerprints", S.LSEStrategy, Pool(bits), 1.5, **like)
    gram = bits @ bits.mT / 30
    number = Pool(torch.arange(60).unsqueeze(-1), names=("row",))
    fixed = {"model": ScaleKernel(GramKernel(gram)).double(), "noise_std": 0.1}
    alike = {**fixed, "beta": 4.0, "batch_size": 4, "F": F / 3}
    add("StraddleStrategy similarity", S.StraddleStrategy, number, 0.5, **alike)
    noise = QuadraticNoise([[0.3, 0.0], [0.0, 0.2]], bounds=(0.05, 1.0))
    uneven = partial(fit_heteroscedastic_gp, noise=noise)
    own = {"model": uneven, "n_initial": 12, "batch_size": 6, "max_observations": 24}
    add("LSEStrategy unequal noise", S.LSEStrategy, pool, 0.3, **own, play=ONCE)
    for name, refit in {"2": 2, "1.5": 1.5}.items():
        rare = {"refit": refit, "n_initial": 8, "batch_size": 4, "noise_std": None}
        rare["level_z"] = None
        add(f"LSEStrategy refit {name}", S.LSEStrategy, pool, 0.3, **rare, play=ONCE)
    norm_of = {"model": kernel(), "noise_std": 0.3, "norm_bound": 1.5, "batch_size": 4}
    for name in ("LSEStrategy", "MELKStrategy", "TruVaRStrategy"):
        add(f"{name} norm", named(name), pool, 0.3, **norm_of, play=ONCE)
    small = {"model": kernel(), "noise_std": 0.3, "beta": 4.0, "batch_size": 5}
    budget = 2**14  # a part of the path is computed again each time
    some = Pool(scattered(200))
    add("LSEStrategy memory", S.LSEStrategy, some, 0.3, memory_budget=budget, **small)


# --- rules on larger pools ------------------------------------------------------------


def scores() -> dict[str, Any]:
    r"""The rules that score each row by itself."""
    return {
        "straddle": S.Straddle(),
        "drawn straddle": S.RandomizedStraddle(),
        "ambiguity": S.Ambiguity(),
        "last ambiguity": S.Ambiguity(intersects=False),
        "width": S.Width(),
        "variance": S.Variance(),
        "random": S.Random(),
        "U": S.UFunction(),
        "entropy": S.ContourEntropy(),
        "feasibility": S.ExpectedFeasibility(),
        "feasibility by weight": S.ExpectedFeasibility(1.5, by_weight=True),
        "improvement": S.RanjanImprovement(),
        "doubt": named("MisclassificationProbability")(),
        "default": None,
    }


def ahead() -> dict[str, Any]:
    r"""The rules that look ahead."""
    return {
        "truncated": S.TruncatedVariance(),
        "anticipates": S.TruncatedVariance(anticipates=True, only_candidates=True),
        "prefilter": S.TruncatedVariance(eta=0.3, prefilter=50, is_monotone=False),
        "targeted": S.TargetedVariance(),
        "targeted joint": S.TargetedVariance(tau=0.1, batch="joint"),
        "misclassification": S.ExpectedMisclassification(),
        "misclassification joint": S.ExpectedMisclassification(batch="joint"),
        "information": S.MutualInformation(),
        "information joint": S.MutualInformation(batch="joint"),
        "volume": S.AbsoluteVolumeChange(),
        "content": S.ContentVariance(),
    }


def _rules_that_score() -> None:
    X = scattered(20_000)
    pool = Pool(X, weights=1 + X[:, 0])
    model = GaussianProcess(kernel(), noise_std=0.3)
    for name, rule in scores().items():
        for q in (1, 5):
            given = {"model": model, "rule": rule, "beta": 4.0, "batch_size": q}
            play = {"rounds": 5, "foresees": False, "seeds": (0,) if q == 1 else (1,)}
            name_ = f"Strategy 20,000 {name} q={q}"
            add(name_, S.Strategy, pool, Above(0.3), **given, play=play)
    short = {"rounds": 3, "foresees": False, "seeds": (1,)}
    given = {"model": kernel(), "noise_std": 0.3, "batch_size": 5, "play": short}
    add("LSEStrategy 20,000", S.LSEStrategy, pool, 0.3, **given)
    share = {**given, "omega": 0.6}
    add("ImplicitLSEStrategy 20,000", S.ImplicitLSEStrategy, pool, **share)
    add("MELKStrategy 20,000", S.MELKStrategy, pool, 0.3, **given)


def _rules_that_look_ahead() -> None:
    X = scattered(1000)
    pool = Pool(X, costs=1 + X[:, 1])
    model = GaussianProcess(kernel(), noise_std=0.3)
    for name, rule in ahead().items():
        for q in (1, 4):
            given = {"model": model, "rule": rule, "beta": 4.0, "batch_size": q}
            play = {"rounds": 4, "foresees": False, "seeds": (0,) if q == 1 else (1,)}
            name_ = f"Strategy 1,000 {name} q={q}"
            add(name_, S.Strategy, pool, Above(0.3), **given, play=play)
    large = Pool(scattered(11_000))  # so many that a sample is looked at first
    for name in ("truncated", "targeted", "misclassification", "information"):
        given = {"model": model, "rule": ahead()[name], "beta": 4.0, "batch_size": 1}
        name_ = f"Strategy 11,000 {name}"
        short = {"rounds": 1, "foresees": False, "seeds": (0,)}
        add(name_, S.Strategy, large, Above(0.3), **given, play=short)
    plain = Pool(GRID)
    ways = S.TargetedVariance(costs=S.RowCosts(plain, travel))
    given = {"model": model, "rule": ways, "beta": 4.0, "batch_size": 4}
    add("Strategy travel", S.Strategy, plain, Above(0.3), **given)
    thousand = {"model": kernel(), "noise_std": 0.3, "batch_size": 6, "beta": 4.0}
    short = {"rounds": 4, "foresees": False, "seeds": (1,)}
    for name in ("MELKStrategy", "HRAGEStrategy"):
        given = {**thousand, "play": short}
        add(f"{name} 1,000", named(name), Pool(X), 0.3, **given)


def _rules_together(pool: Pool) -> None:
    r"""Rules by turns, one after the other, and for the last runs."""
    turns, then = named("AlternatingRules"), named("SwitchingRule")
    last, doubt = named("FinalRuns"), named("MisclassificationProbability")
    sur = S.ExpectedMisclassification(batch="joint")
    rules = {
        "turns": turns((S.Straddle(), sur)),
        "three turns": turns((S.Variance(), S.Ambiguity(), S.RandomizedStraddle())),
        "handover": then((sur, S.Ambiguity())),
        "early handover": then((S.Straddle(), S.Ambiguity()), wrong=0.1),
        "last runs": last((S.Straddle(), doubt()), after=10),
        "last turns": last((turns((S.Straddle(), S.UFunction())), doubt()), after=7),
    }
    for name, rule in rules.items():
        for std in (0.3, 0.0):
            model = GaussianProcess(kernel(), noise_std=std)
            given = {"model": model, "rule": rule, "beta": 4.0, "std": std}
            name_ = f"Strategy {name}{'' if std else ', exact'}"
            add(name_, S.Strategy, pool, Above(0.3), **given, batch_size=3)
    model = GaussianProcess(noise_std=0.3, n_initial=10)
    given = {"model": model, "batch_size": 5, "max_observations": 30, "play": ONCE}
    add("Strategy default, learnt", S.Strategy, pool, Above(0.3), **given)
    rule = rules["turns"]
    add("Strategy turns, learnt", S.Strategy, pool, Above(0.3), rule=rule, **given)


# --- pools so large that rows are put off, or were ------------------------------------


def _large() -> None:
    r"""Runs of single measurements, and a few others, on 60,000 rows."""
    pool = Pool(scattered(60_000, 2))
    play = {"rounds": 30, "reads": 10, "seeds": (0,), "foresees": False}
    known = {"model": kernel(), "noise_std": 0.3, "batch_size": 1, "play": play}
    level = {**known, "threshold": 0.3}
    often = {**play, "reads": 3, "seeds": (1,)}
    add("LSEStrategy 60,000", S.LSEStrategy, pool, **level)
    runs = {
        "narrow": {"beta": 4.0},
        "very narrow": {"beta": 1.0},
        "accuracy": {"beta": 9.0, "epsilon": 0.3},
        "once": {"max_repeats": 1},
        "read often": {"beta": 9.0, "play": often},
        "little memory": {"beta": 9.0, "memory_budget": 8 * 8 * 60_000},
        "budget": {"beta": 9.0, "max_observations": 17},
        "batches": {"beta": 9.0, "batch_size": 7, "play": {**play, "rounds": 4}},
    }
    for name, options in runs.items():
        add(f"LSEStrategy 60,000 {name}", S.LSEStrategy, pool, **{**level, **options})
    open_size = {**play, "sizes": (1, 1, 1, 1, 3), "rounds": 20}
    some = {**level, "batch_size": None, "play": open_size}
    add("LSEStrategy 60,000 sizes", S.LSEStrategy, pool, **some)
    X = scattered(5)
    past = {**level, "history": History(X, truth(X))}
    add("LSEStrategy 60,000 history", S.LSEStrategy, pool, **past)
    noisy = Pool(pool.X, noise_var=0.02 + 0.1 * pool.X[:, 0])
    own = {**level, "noise_std": None, "beta": 9.0}
    add("LSEStrategy 60,000 own noise", S.LSEStrategy, noisy, **own)
    for name in ("StraddleStrategy", "MaxVarianceStrategy"):
        add(f"{name} 60,000", named(name), pool, **level, beta=4.0)
    few = {**play, "rounds": 8}
    share = {**known, "omega": 0.6, "beta": 4.0, "play": few}
    add("ImplicitLSEStrategy 60,000", S.ImplicitLSEStrategy, pool, **share)
    model = GaussianProcess(kernel(), noise_std=0.3)
    given = {"model": model, "batch_size": 1, "play": play}
    rules = {
        "ambiguity": S.Ambiguity(),
        "last ambiguity": S.Ambiguity(intersects=False),
        "default": None,
        "feasibility": S.ExpectedFeasibility(),
    }
    for name, rule in rules.items():
        own = {**given, "rule": rule, "beta": 9.0}
        add(f"Strategy 60,000 {name}", S.Strategy, pool, Above(0.3), **own)
    tol = {**given, "content_tol": 0.01, "rule": S.Ambiguity(), "play": few}
    add("Strategy 60,000 content", S.Strategy, pool, Above(0.3), **tol)


# --- Ax -------------------------------------------------------------------------------


def _in_ax(pool: Pool) -> None:
    r"""Runs through Ax that are stored and loaded on their way."""
    ax, late = {"way": "ax", "seeds": (0,)}, {"way": "late ax", "seeds": (0,)}
    level = {"noise_std": 0.3, "threshold": 0.3, "batch_size": 3}
    fixed = {**level, "model": kernel(), "beta": 4.0}
    add("LSEStrategy in Ax", S.LSEStrategy, pool, **fixed, play=ax)
    anytime = {**fixed, "batch_size": None}
    add("LSEStrategy late in Ax", S.LSEStrategy, pool, **anytime, play=late)
    learnt = {**level, "n_initial": 6}
    add("MELKStrategy in Ax", S.MELKStrategy, pool, **learnt, play=ax)
    add("TruVaRStrategy in Ax", S.TruVaRStrategy, pool, **fixed, cost=travel, play=ax)
    goal = Above(0.3, 0.1, "strength") & Below(0.4, 0.1, "leaching")
    two = {"model": outputs()["two"], "batch_size": 3}
    add("Strategy in Ax", S.Strategy, pool, goal, m=2, **two, play=ax)
    pairs = pool.at_outputs(("strength", "leaching"), costs=(1.0, 5.0))
    smooth = GaussianProcess((RBFKernel().double(),) * 2, noise_std=(0.3, 0.2))
    given = {"F": truth(GRID, 2).mT.reshape(-1), "model": smooth, "batch_size": 3}
    add("Strategy pairs in Ax", S.Strategy, pairs, goal, **given, play=ax)
    front = {"maximize": (True, False), "noise_std": (0.3, 0.1), "m": 2}
    both = {**front, "model": (kernel(), kernel(0.5)), "beta": 4.0, "batch_size": 3}
    add("GEGEStrategy in Ax", S.GEGEStrategy, pool, **both, play=ax)
    # Rows are points of the space here, so that others may be measured as well.
    named_rows = Pool(GRID, names=("east", "north"))
    space = {"way": "ax in space", "seeds": (0,)}
    given = {**fixed, "play": space}
    add("LSEStrategy in the space of Ax", S.LSEStrategy, named_rows, **given)
