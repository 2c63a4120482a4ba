r"""How everything that the package exports grows with the rows of its pool.

Of some rules also how they grow with outputs, inputs, batches, values and rounds.
Each name of ``PACKAGES`` is either one line of ``works`` or stands in ``NO_WORK`` with
the reason; a test misses a new one.
"""

from __future__ import annotations

import math
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from botorch.exceptions.errors import BotorchError
from botorch.models import SingleTaskGP
from botorch.models.approximate_gp import SingleTaskVariationalGP
from botorch.models.model_list_gp_regression import ModelListGP
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import BernoulliLikelihood
from torch import Tensor
from tqdm import tqdm

from botorch_lse import (
    acquisition,
    designs,
    estimators,
    models,
    papers,
    plotting,
    strategies,
)
from botorch_lse._validation import one_of
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.models import GPPrior
from research.benchmark import speed_calls
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, memory_since, one_thread, peak_memory
from research.benchmark.speed_ax import silence_ax
from research.benchmark.speed_calls import calls_on
from research.papers.problems import matern_prior
from research.report import Report, Table

PACKAGES = (strategies, papers, models, estimators, plotting, acquisition, designs)
"""Those that need no extra; ``botorch_lse.ax`` is looked at where Ax is installed."""
SIZES, QUICK_SIZES = (3_000, 10_000, 30_000, 100_000), (1_000, 3_000)
AXES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "rows": (QUICK_SIZES, SIZES),
    "outputs": ((2, 4), (1, 2, 4, 8)),
    "inputs": ((2, 20), (2, 5, 20, 100)),
    "batch": ((10, 100), (1, 10, 100, 500)),
    "values": ((100, 500), (100, 500, 2_000)),
    "rounds": ((10, 30), (10, 30, 100)),
}
"""What grows, with the sizes of a quick run and of a whole one."""
CALLS = (*speed_calls.CALLS, "simulate --runs 1 --most 40")
AXIS_ROWS = 1_000
"""Rows of the pool where something else grows."""
TARGETS = 200
MEMORY = 6 * 2**30
"""Bytes that a process may take, the libraries among them."""
LONGEST, QUICK_LONGEST = 60, 15
"""Processor seconds after which a process is ended, and nothing larger is tried."""
SLACK = 0.35
"""By how much an exponent may lie above its claim: two sizes, one turn, small times."""
LEAST = 0.2
"""Seconds below which nothing is said of an exponent."""
TOLD, NOISE, LEVEL = 60, 0.1, 0.3
PAIRS = "rows are compared with each other"

Work = Callable[[], Any]


@dataclass(frozen=True)
class Feature:
    r"""One thing that is measured.

    Args:
        prepare: From a size to the work that is measured.
        power: The exponent of its seconds that is claimed.
        axis: What the size is, of ``AXES``.
    """

    prepare: Callable[[int], Work]
    power: float = 1.0
    axis: str = "rows"


# --- problems -------------------------------------------------------------------------


def inputs(n: int, d: int = 3) -> Tensor:
    r"""``n x d`` numbers."""
    return torch.rand(n, d, generator=torch.Generator().manual_seed(0)).double()


def values(X: Tensor, m: int) -> Tensor:
    r"""``n`` noisy values, or ``n x m`` of several outputs."""
    y = torch.stack([(6 * X.mean(dim=-1) + c).sin() for c in range(m)], dim=-1)
    random = torch.Generator().manual_seed(1)
    y = y + NOISE * torch.randn(y.shape, generator=random, dtype=y.dtype)
    return y if m > 1 else y[:, 0]


def told(X: Tensor, m: int = 1, many: int = TOLD) -> Observations:
    r"""Results of some rows, of each more than once where there are not enough."""
    at = torch.arange(many) * max(1, len(X) // many) % len(X)
    return Observations(at, values(X[at], m))


def features(X: Tensor) -> Tensor:
    r"""``n x 4`` features: one and the inputs."""
    return torch.cat((torch.ones_like(X[:, :1]), X), dim=-1)


def round_of(make: Callable[[Pool], Any], first: bool, m: int, n: int) -> Work:
    r"""Results told, a batch asked and told, and the answer.

    Args:
        make: Makes the strategy.
        first: Whether results are told before.
        m: The number of outputs.
        n: Rows.
    """
    X = inputs(n)

    def work() -> Any:
        strategy = make(Pool(X, features=features(X)))
        state = strategy.init(0)
        if first:
            state = strategy.tell(state, told(X, m))
        batch = strategy.ask(state)
        rows = batch.order
        state = strategy.tell(state, batch.observe(values(X[rows], m)))
        return state, state.classification.undecided

    return work


def gaussian(cls: Any, **goal: Any) -> Feature:
    r"""A strategy on a given process."""

    def make(pool: Pool) -> Any:
        return cls(pool, model=prior(), noise_std=NOISE, batch_size=4, **goal)

    m = len(goal.get("maximize", (True,)))
    by_pairs = m > 1 or cls in (strategies.MILKStrategy,)
    return Feature(partial(round_of, make, True, m), 2.0 if by_pairs else 1.0)


def prior() -> GPPrior:
    r"""A fixed process."""
    return matern_prior((0.3, 0.3, 0.3))


def of_parts(goal: Any, rule: Any = None, m: int = 1, power: float = 1.0) -> Feature:
    r"""A goal and a rule, on a given process."""

    def make(pool: Pool) -> Any:
        process = strategies.GaussianProcess(prior(), noise_std=NOISE)
        chosen = rule() if isinstance(rule, type) else rule
        given = {} if chosen is None else {"rule": chosen}
        return strategies.Strategy(pool, goal, model=process, batch_size=4, **given)

    return Feature(partial(round_of, make, True, m), power)


def paper(cls: Any, power: float = 1.0, **options: Any) -> Feature:
    r"""The first round of an algorithm that says itself how long its rounds are."""
    m = len(options.get("maximize", (True,)))
    return Feature(partial(round_of, partial(cls, **options), False, m), power)


def budgeted(cls: Any, power: float = 1.0) -> Feature:
    r"""One whose budget goes with the rows."""

    def prepare(n: int) -> Work:
        make = partial(cls, maximize=(True, False), max_observations=20 * n)
        return round_of(make, False, 2, n)

    return Feature(prepare, power)


def of_rows(function: Callable[[Tensor], Any], power: float = 1.0) -> Feature:
    r"""A function of ``n x 3`` inputs."""

    def prepare(n: int) -> Work:
        X = inputs(n)
        return lambda: function(X)

    return Feature(prepare, power)


def a_page() -> Path:
    r"""A place for a report."""
    return Path(tempfile.mkdtemp(), "report.html")


def answered(
    function: Callable[[Any, Any, Tensor], Any], m: int = 1, *, draws: bool = False
) -> Feature:
    r"""Something made of a strategy and its state after some results.

    Args:
        function: Makes it of strategy, state and inputs.
        m: The number of outputs.
        draws: Whether it is a picture, which shows rows and compares no pairs.
    """

    def prepare(n: int) -> Work:
        X = inputs(n)
        given: dict[str, Any] = {"model": prior(), "noise_std": NOISE}
        if m == 1:
            strategy: Any = strategies.LSEStrategy(Pool(X), LEVEL, **given)
        else:
            process = strategies.GaussianProcess(**given)
            # A picture of two outputs is that of a region too, which needs no pairs.
            goal: Any = strategies.Above(LEVEL) & strategies.Above(LEVEL, output=1)
            if not draws:
                goal = papers.ParetoByRectangles((True,) * m)
            strategy = strategies.Strategy(
                Pool(X), goal, model=process, rule=strategies.Variance()
            )
        state = strategy.tell(strategy.init(0), told(X, m))
        return lambda: function(strategy, state, X)

    return Feature(prepare, 2.0 if m > 1 and not draws else 1.0)


def processed(kernel: Any) -> Feature:
    r"""The posterior of a pool by a kernel."""

    def prepare(n: int) -> Work:
        X, new = (inputs(n) > 0.5).double(), models.GPPrior.from_kernel(kernel.double())
        start = partial(models.PoolPosterior.start, new, X)
        data = told(X)
        noise = torch.full_like(data.y, NOISE**2)
        return lambda: start().observe(data.indices, data.y, noise)

    return Feature(prepare)


def drawn(function: Callable[..., Any], *makes: Callable[..., Any]) -> Feature:
    r"""A picture of a strategy and its state, the library for it loaded before.

    Args:
        function: What draws.
        makes: From strategy, state and inputs to each of its arguments.
    """
    m = 2 if "pareto" in function.__name__ else 1
    seen = answered(
        lambda *all: function(*[make(*all) for make in makes]), m, draws=True
    )

    def prepare(n: int) -> Work:
        seen.prepare(TOLD)()
        return seen.prepare(n)

    return Feature(prepare, seen.power)


def scored(
    cls: Any, power: float = 1.0, many: int = TARGETS, **options: Any
) -> Feature:
    r"""An acquisition function at every row as a batch of one.

    Args:
        cls: The class.
        power: The exponent that is claimed.
        many: How many targets, where it has some.
        options: Its arguments but for the model and the targets.
    """

    def prepare(n: int) -> Work:
        X, data = inputs(n), told(inputs(TOLD), 2)
        at = inputs(TOLD)
        fitted = [
            SingleTaskGP(at, data.y[:, [k]], NOISE_VAR[: len(at)]) for k in (0, 1)
        ]
        model: Any = ModelListGP(*fitted) if cls is acquisition.qGEGE else fitted[0]
        given, known = dict(options), signature(cls).parameters
        if "guess" in known:
            model = SingleTaskVariationalGP(at, likelihood=BernoulliLikelihood())
        given |= {"targets": X[:many]} if "targets" in known else {}
        given |= {"noise_var": NOISE**2} if "noise_var" in known else {}
        criterion = cls(model.eval(), **given)

        def work() -> Any:
            with torch.no_grad():
                return criterion(X.unsqueeze(1))

        return work

    return Feature(prepare, power)


NOISE_VAR = torch.full((TOLD, 1), NOISE**2, dtype=torch.float64)


def in_ax(call: Callable[[Any], Any]) -> Feature:
    r"""A call on a client of Ax, beside trials that are asked and completed.

    Args:
        call: What is done with the client afterwards.
    """

    def prepare(n: int) -> Work:
        silence_ax()
        from ax.api.client import Client

        from botorch_lse.ax import level_set_generation_strategy, pool_parameters

        X = inputs(n)
        strategy = strategies.LSEStrategy(
            Pool(X), LEVEL, model=RBFKernel().double(), noise_std=NOISE, batch_size=4
        )

        def work() -> Any:
            client = Client()
            client.configure_experiment(
                parameters=pool_parameters(strategy.pool), name="growth"
            )
            client.configure_optimization(objective="y")
            client.set_generation_strategy(level_set_generation_strategy(strategy))
            for trial in client.get_next_trials(4):
                client.complete_trial(trial, {"y": (0.1 * trial, NOISE)})
            return call(client)

        return work

    return Feature(prepare)


def ax_works() -> dict[str, Feature]:
    r"""What is measured of ``botorch_lse.ax``."""

    def ours() -> Any:
        from botorch_lse import ax

        return ax

    def saved(client: Any) -> None:
        with TemporaryDirectory() as folder:
            ours().save_client(client, Path(folder, "run.json"))

    def measured(parameters: Any) -> tuple[float, float]:
        return 0.1, NOISE

    def grid(n: int) -> Work:
        from ax.api.configs import RangeParameterConfig

        ranges = [
            RangeParameterConfig(name=name, parameter_type="float", bounds=(0.0, 1.0))
            for name in "ab"
        ]
        return lambda: ours().grid_pool(ranges, points={"a": n // 10, "b": 10})

    return {
        "level_set_generation_strategy": in_ax(lambda client: client.summarize()),
        "LevelSetOverview": in_ax(lambda c: c.compute_analyses(display=False)),
        "level_set": in_ax(lambda client: ours().level_set(client)),
        "level_set_report": in_ax(
            lambda client: ours().level_set_report(client, a_page())
        ),
        "level_set_content": in_ax(lambda client: ours().level_set_content(client)),
        "exclude_rows": in_ax(lambda client: ours().exclude_rows(client, [1, 2])),
        "save_client": in_ax(saved),
        "run_experiment": in_ax(
            lambda client: ours().run_experiment(client, measured, max_trials=8)
        ),
        "grid_pool": Feature(grid),
    }


# --- what else grows ------------------------------------------------------------------


def run_of(
    rule: Any,
    outputs: int = 1,
    inputs_: int = 3,
    batch: int = 4,
    values_: int = TOLD,
    rounds: int = 1,
) -> Work:
    r"""Results told, rounds asked and told, and the answer.

    Args:
        rule: Chooses the rows.
        outputs: Levels, one on each of so many outputs.
        inputs_: Columns of the pool.
        batch: Rows of a round.
        values_: Results that are told at first.
        rounds: How many rounds.
    """
    X = inputs(AXIS_ROWS, inputs_)
    levels = tuple(strategies.Above(LEVEL, output=k) for k in range(outputs))
    goal = strategies.And(levels) if outputs > 1 else strategies.Above(LEVEL)
    # The same distances in units of the lengthscale, whatever the number of inputs.
    lengthscale = 0.3 * (inputs_ / 3) ** 0.5
    process = strategies.GaussianProcess(
        matern_prior((lengthscale,) * inputs_), noise_std=NOISE
    )

    def work() -> Any:
        strategy = strategies.Strategy(
            Pool(X), goal, model=process, rule=rule, batch_size=batch
        )
        # What comes first is a round of its own, and no part of the first batch.
        whole = replace(strategy, batch_size=values_)
        state = whole.tell(whole.init(0), told(X, outputs, values_))
        for _ in range(rounds):
            if state.is_done:
                break
            asked = strategy.ask(state)
            state = strategy.tell(state, asked.observe(values(X[asked.order], outputs)))
        return state, state.classification.undecided

    return work


def axis_works() -> dict[str, Feature]:
    r"""A rule of each kind, by what grows: a score, a look-ahead and a design."""
    S = strategies
    rules = S.Straddle(), S.ExpectedMisclassification(), S.OptimalDesign()
    claimed = {
        "outputs": 1.0,
        "inputs": 1.0,
        "batch": 2.0,
        "values": 2.0,
        "rounds": 2.0,
    }
    named = {"inputs": "inputs_", "values": "values_"}
    return {
        f"{type(rule).__name__}, {axis}": Feature(
            partial(_sized, rule, named.get(axis, axis)), power, axis
        )
        for axis, power in claimed.items()
        for rule in rules
    }


def _sized(rule: Any, axis: str, size: int) -> Work:
    return run_of(rule, **{axis: size})


# --- what is exported -----------------------------------------------------------------


def works() -> dict[str, Feature]:
    r"""What is measured, by its exported name; what no package exports by a phrase."""
    return (
        gaussian_works()
        | linear_works()
        | goals_of_parts()
        | rules_of_parts()
        | functions()
        | answers()
        | pictures()
        | criteria()
        | ax_works()
        | axis_works()
    )


TWO: dict[str, Any] = {"maximize": (True, False)}
"""The arguments of a Pareto set of two outputs."""


def gaussian_works() -> dict[str, Feature]:
    r"""The strategies on Gaussian processes."""
    S, P = strategies, papers
    found = {
        cls.__name__: gaussian(cls, threshold=LEVEL)
        for cls in (
            *(S.LSEStrategy, S.StraddleStrategy, S.MaxVarianceStrategy),
            *(S.RandomStrategy, S.MELKStrategy, S.HRAGEStrategy, S.TruVaRStrategy),
            *(P.LSELiteralBatchStrategy, P.StraddleRankStrategy),
        )
    }
    found |= {
        cls.__name__: gaussian(cls, omega=0.6)
        for cls in (
            *(S.ImplicitLSEStrategy, S.ImplicitStraddleStrategy, S.MILKStrategy),
            P.ImplicitLSELiteralBatchStrategy,
        )
    }
    pareto = S.GEGEStrategy, P.PALStrategy
    return found | {cls.__name__: gaussian(cls, **TWO) for cls in pareto}


def linear_works() -> dict[str, Feature]:
    r"""The strategies on linear features, and those for a budget or a confidence."""
    S, P, found = strategies, papers, dict[str, Feature]()
    known = {"bound": 1.0, "noise_std": 0.3, "delta": 0.1}
    linear: dict[str, Any] = {"noise_std": NOISE, "batch_size": 10}
    cls: Any
    for cls in (S.MELKLinearStrategy, S.HRAGELinearStrategy):
        found[cls.__name__] = paper(cls, threshold=LEVEL, **linear)
    found["MILKLinearStrategy"] = paper(S.MILKLinearStrategy, 2, omega=0.6, **linear)
    found["GEGELinearStrategy"] = paper(S.GEGELinearStrategy, 2, **TWO, **linear)
    for cls in (P.GEGEBudgetStrategy, P.EGESHStrategy, P.UniformStrategy):
        found[cls.__name__] = budgeted(cls)
    # It rejects one row after the other, each after a look at all.
    found["EGESRStrategy"] = budgeted(P.EGESRStrategy, 2)
    found["GEGEPACStrategy"] = paper(P.GEGEPACStrategy, **TWO, noise_std=0.01)
    for cls in (P.APEStrategy, P.RacingStrategy):
        found[cls.__name__] = paper(cls, 2, **TWO, noise_std=NOISE, step=20)
    found["MELKPACStrategy"] = paper(P.MELKPACStrategy, threshold=LEVEL, **known)
    # Of more pairs, each is also estimated by more values, which are condensed less.
    found["MILKPACStrategy"] = paper(P.MILKPACStrategy, 3, omega=0.6, **known)
    found["RAGEPACStrategy"] = paper(P.RAGEPACStrategy, 2, noise_std=0.3)
    hrage: dict[str, Any] = {"threshold": LEVEL, "variance_bounds": (0.05, 0.1)}
    found["HRAGEPACStrategy"] = paper(P.HRAGEPACStrategy, **hrage)
    return found


def goals_of_parts() -> dict[str, Feature]:
    r"""The goals, each with the default rule or one that serves it."""
    S, P = strategies, papers
    above = S.Above(LEVEL)
    goals = {
        "Above": above,
        "Below": S.Below(LEVEL),
        "Between": S.Between(0.0, LEVEL),
        "Levels": S.Levels((0.0, LEVEL)),
        "Not": S.Not(above),
        "ShareOfMax": S.ShareOfMax(0.6),
        "Maximiser": S.Maximiser(),
    }
    found = {name: of_parts(goal) for name, goal in goals.items()}
    both = (S.Above(LEVEL, output=0), S.Above(0.0, output=1))
    found |= {c.__name__: of_parts(c(both), m=2) for c in (S.And, S.Or)}
    found["Classes"] = of_parts(S.Classes(("a", "b")), m=2)
    pairs = {
        "ShareOfMaxByPairs": (S.ShareOfMaxByPairs(0.6), 1),
        "MaximiserByPairs": (S.MaximiserByPairs(), 1),
        "ParetoByDifferences": (S.ParetoByDifferences((True, False)), 2),
        "ParetoByRectangles": (P.ParetoByRectangles((True, False)), 2),
    }
    for name, (goal, m) in pairs.items():
        found[name] = of_parts(goal, S.Variance(), m, 2)
    return found


def rules_of_parts() -> dict[str, Feature]:
    r"""The rules, each about one level."""
    S, above = strategies, strategies.Above(LEVEL)
    scores = (
        *(S.RandomizedStraddle, S.Straddle, S.Ambiguity, S.UFunction),
        *(S.ExpectedFeasibility, S.RanjanImprovement),
        *(S.Variance, S.Width, S.Random, S.OptimalDesign),
    )
    found = {rule.__name__: of_parts(above, rule) for rule in scores}
    found["ContourEntropy"] = of_parts(above, S.ContourEntropy)
    ahead = (
        *(S.TruncatedVariance, S.TargetedVariance, S.MutualInformation),
        *(S.ExpectedMisclassification, S.AbsoluteVolumeChange, S.ContentVariance),
    )
    found |= {rule.__name__: of_parts(above, rule, power=2) for rule in ahead}
    found["SwitchingRule"] = of_parts(
        above, S.SwitchingRule((S.Straddle(), S.Variance()))
    )
    mixed = S.AlternatingRules((S.Straddle(), S.Variance()))
    found["AlternatingRules"] = of_parts(above, mixed)
    return found


def functions() -> dict[str, Feature]:
    r"""What is computed of rows alone, and the processes."""
    P, E = papers, estimators
    mean = lambda X: X.sum(dim=-1)  # noqa: E731
    return {
        "level_set_complexity": of_rows(
            lambda X: P.level_set_complexity(features(X), mean(X), 1.51)
        ),
        "best_arm_complexity": of_rows(lambda X: P.best_arm_complexity(X, mean(X))),
        "implicit_complexity": of_rows(
            lambda X: P.implicit_complexity(X, mean(X), 0.7, tolerance=0.01), power=2
        ),
        "pareto_complexity": of_rows(lambda X: P.pareto_complexity(X[:, :2])),
        "pareto_gaps": of_rows(lambda X: P.pareto_gaps(X[:, :2])),
        "empirical_gaps": of_rows(lambda X: P.empirical_gaps(X[:, :2])),
        "pareto_margins": of_rows(lambda X: P.pareto_margins(X[:, :2])),
        "weighted_least_squares": of_rows(
            lambda X: E.weighted_least_squares(features(X), mean(X))
        ),
        "quadratic_features": of_rows(E.quadratic_features),
        "head_designs": of_rows(lambda X: E.head_designs(features(X))),
        "burn_in_size": of_rows(
            lambda X: E.burn_in_size(features(X), (0.5, 1.0), 0.05)
        ),
        "TanimotoKernel": processed(models.TanimotoKernel()),
        "GPPrior": processed(RBFKernel()),
    }


def answers() -> dict[str, Feature]:
    r"""What is read of a run: tables, the report, the forecast."""
    F = plotting
    return {
        "PoolPosterior": answered(lambda s, state, X: state.belief.posterior.sigma),
        "level_set_frame": answered(
            lambda s, state, X: F.level_set_frame(state.classification)
        ),
        "slices_frame": answered(
            lambda s, state, X: F.slices_frame(state.classification)
        ),
        "batches_frame": answered(
            lambda s, state, X: F.batches_frame(s.pool, state.observations)
        ),
        "importance_frame": answered(lambda s, state, X: F.importance_frame(state)),
        "write_report": answered(
            lambda s, state, X: F.write_report(state, a_page(), states=[state])
        ),
        "progress_frame": answered(lambda s, state, X: F.progress_frame([state])),
        "calibration_frame": answered(
            lambda s, state, X: F.calibration_frame(state.calibration())
        ),
        "pareto_frame": answered(
            lambda s, state, X: F.pareto_frame(
                state.classification, state.belief.sides.estimate
            ),
            m=2,
        ),
        "a forecast": answered(lambda s, state, X: state.forecast()),
    }


def pictures() -> dict[str, Feature]:
    r"""What draws, in both libraries."""
    F = plotting

    def answer(strategy: Any, state: Any, X: Tensor) -> Any:
        return state.classification

    def two_outputs(strategy: Any, state: Any, X: Tensor) -> Any:
        seen = state.classification
        mean, lower, upper, sigma = (
            torch.stack([getattr(one, part) for one in seen.outputs], dim=-1)
            for part in ("mean", "lower", "upper", "sigma")
        )
        margin = (seen.mean, seen.lower, seen.upper, seen.sigma)
        estimate = strategies.ParetoEstimate(mean, lower, upper, sigma, *margin)
        return F.pareto_frame(seen, estimate)

    frames: dict[str, Callable[[Any, Any, Tensor], Any]] = {
        "batches": lambda s, state, X: F.batches_frame(s.pool, state.observations),
        "progress": lambda s, state, X: F.progress_frame([state]),
        "slices": lambda s, state, X: F.slices_frame(state.classification),
        "calibration": lambda s, state, X: state.calibration(),
        "pareto_set": two_outputs,
        "level_set": answer,
    }
    return {
        name: drawn(getattr(F, name), make)
        for about, make in frames.items()
        for name in (f"plot_{about}", f"{about}_figure")
    }


def criteria() -> dict[str, Feature]:
    r"""The acquisition functions, by their names; a rule's name has another line."""
    A = acquisition
    level: dict[str, Any] = {"threshold": LEVEL}
    omega: dict[str, Any] = {"omega": 0.6}
    found = {
        cls.__name__: scored(cls, **level)
        for cls in (A.qEAVC, A.qExpectedMisclassification, A.qGlobalMI, A.qTargetedIMSE)
    }
    found |= {
        cls.__name__: scored(cls)
        for cls in (A.qGEGE, A.qHRAGE, A.qMELK, A.qNegMaxPosteriorVariance, A.qTruVaR)
    }
    found["qMILK"] = scored(A.qMILK, many=TARGETS // 4, **omega)
    found["ImplicitStraddle"] = scored(
        A.ImplicitStraddle, pool=inputs(TARGETS), **omega
    )
    found |= {
        cls.__name__: scored(cls, threshold=0.75)
        for cls in (
            A.BernoulliEAVC,
            A.BernoulliGlobalMI,
            A.BernoulliMisclassification,
            A.BernoulliStraddle,
        )
    }
    found["LSEAmbiguity"] = scored(A.LSEAmbiguity, **level)
    found |= {cls.__name__: scored(cls) for cls in (A.LSEWidth, A.MaxVariance)}
    both = A.ContourEntropy, A.ExpectedFeasibility, A.RanjanImprovement, A.Straddle
    found |= {
        f"acquisition.{cls.__name__}": scored(cls, **level)
        for cls in (*both, A.UFunction)
    }
    return found


def because(reason: str, names: str) -> dict[str, str]:
    r"""The same reason for several names."""
    return dict.fromkeys(names.split(), reason)


NO_WORK: Mapping[str, str] = {
    **because(
        "what others derive from, or are composed of",
        "ComposedStrategy GPStrategy LinearStrategy ParetoSet ParetoStrategy "
        "PACStrategy GapEliminationStrategy Goal Region Rule ScoreRule LookAhead "
        "Strategy GaussianProcess",
    ),
    **because(
        "a record or a warning",
        "NoiseWarning ParetoEstimate State SimulatedRun ArmTotals Complexity LinearFit "
        "ParetoComplexity RIPSEstimate ArmStatistics HeadDesigns LeastSquares "
        "VarianceEstimate RowCosts LabelAudit",
    ),
    **because(
        "measured by `speed content`, or a matter of random drawing",
        "ContentKnown ContentStop MinimumU MisclassificationProbability FinalRuns "
        "rare_event extended audit audit_size",
    ),
    **because(
        "a part of a strategy that is measured, or grows with measurements",
        "catoni_alpha catoni_mean catoni_width rips rips_projection "
        "separate_arm_variance separate_arms separate_from_arms span_least_squares "
        "uniform_from_arms uniform_variance head head_from_arms",
    ),
    **because("measured by `speed design`", "frank_wolfe_design mirror_descent_design"),
    **because("the rule of a strategy here", "Diameter StraddleRank"),
    **because(
        "grows with measurements and not with rows",
        "Binary Counts HeteroscedasticGP LearntKernel LogNormal Ordinal "
        "PosteriorPath "
        "QuadraticNoise fit_additive_gp fit_heteroscedastic_gp fit_mixed_gp "
        "fit_multi_task_gp fit_single_task_gp SourceModel Autoregressive "
        "Coregionalised Discrepancies FadingDiscrepancies FidelityDiscrepancies "
        "IndependentSources LikeliestSources source_kernel",
    ),
    "GramKernel": "is given covariances of all rows",
    **because(
        "measured by `speed design`",
        "certify exchange_design optimal_design round_design",
    ),
    **because("a record or a warning", "Certificate Design DesignWarning POOL_INDEX"),
    **because(
        "a card or a stop of `LevelSetOverview`",
        "BatchAnalysis CalibrationAnalysis IntervalAnalysis LevelSetAnalysis "
        "ParetoAnalysis ProbabilityAnalysis ProgressAnalysis ReportAnalysis "
        "SliceAnalysis "
        "LevelSetGlobalStoppingStrategy LevelSetNode pool_parameters",
    ),
    **because(
        "grows with trials and not with rows",
        "CostMetric ModelAnalysis acquisition_generator_spec allow "
        "goal_from_constraints model_space record_costs trial_cost",
    ),
}
"""Why a name has no line in ``works``."""


# --- measuring ------------------------------------------------------------------------


@dataclass(frozen=True)
class Taken:
    r"""What one piece of work took.

    Args:
        seconds: Of the processor; nan where it failed, the limit where it was ended.
        peak: Growth of the process's peak memory, bytes.
        said: How it failed; empty where it did not.
        refused: Whether it was refused in words of ours.
        ended: Whether it took longer than the limit.
    """

    seconds: float
    peak: int
    said: str = ""
    refused: bool = False
    ended: bool = False


class TooLongError(BaseException):
    r"""The limit of time is reached; no ``Exception``, which some works catch."""


def too_long(*signal_and_frame: Any) -> None:
    r"""Answer the signal of the limit of time."""
    raise TooLongError


def limited(longest: int) -> None:
    r"""One core, and no more memory and time than is allowed.

    Args:
        longest: Processor seconds of the process, after which ``taken`` ends.
    """
    one_thread()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGXCPU, too_long)
    # The process is killed where one call into a library goes on and on.
    used = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + longest, used + longest + 60))


def taken(name: str, n: int) -> Taken:
    r"""What the work of a name takes on ``n`` rows, in this process."""
    before, began = peak_memory(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # made-up values
            work = works()[name].prepare(n)
            before, began = peak_memory(), time.process_time()
            work()
            seconds = time.process_time() - began
        return Taken(seconds, memory_since(before))
    except TooLongError:
        seconds = time.process_time() - began
        return Taken(seconds, memory_since(before), ended=True)
    except Exception as error:
        is_ours = isinstance(error, (ValueError, BotorchError))
        refused = is_ours and "`memory_budget`" in str(error)
        return Taken(math.nan, 0, f"{type(error).__name__}: {error}", refused)


def alone(name: str, n: int, longest: int = LONGEST) -> Taken:
    r"""``taken`` in a process of its own that may be killed for want of memory or time.

    Args:
        name: Of ``works``.
        n: The size.
        longest: Processor seconds after which it is ended.
    """
    # From a server that has imported everything: that takes longer than most works.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, *HEAVY])
    try:
        with ProcessPoolExecutor(
            1, context, initializer=limited, initargs=(longest,)
        ) as executor:
            return executor.submit(taken, name, n).result()
    except BrokenExecutor as error:  # it was killed
        return Taken(math.nan, 0, repr(error))


HEAVY = "botorch_lse.ax", "matplotlib.pyplot", "plotly.graph_objects"
"""What only some works import; a server without them goes on without them."""


def grown(name: str, feature: Feature, options: Options) -> list[Taken]:
    r"""What each size takes, up to the first that fails or takes too long."""
    found, longest = list[Taken](), QUICK_LONGEST if options.quick else LONGEST
    for n in sizes_of(feature.axis, options):
        found.append(alone(name, n, longest))
        if found[-1].said or found[-1].ended:
            break
    return found


def least(*found: Taken) -> Taken:
    r"""Of the same work measured more than once: other processes add time only."""
    return min(found, key=lambda one: math.inf if one.said else one.seconds)


@entry("speed", "growth", "how all that is exported grows with the rows of its pool")
def speed_growth(options: Options) -> Report:
    r"""Seconds, memory and exponents; it fails where one is above what is claimed."""
    failed, data = list[str](), dict[str, Any]()
    tables: dict[str, list[tuple[str, ...]]] = {axis: [] for axis in AXES}
    chosen = chosen_works(options.only)
    for name, feature in tqdm(chosen.items(), desc="speed growth", disable=None):
        sizes, found = sizes_of(feature.axis, options), grown(name, feature, options)
        if exponent(sizes, found) > feature.power + SLACK:
            again = grown(name, feature, options)
            found = [least(*pair) for pair in zip(found, again, strict=False)]
        power = exponent(sizes, found)
        failed += failures(name, feature, power, found)
        data[name] = [
            {feature.axis: n, **vars(t)} for n, t in zip(sizes, found, strict=False)
        ]
        cells = [shown(one) for one in found] + [""] * (len(sizes) - len(found))
        row = (name, *cells, f"{power:.2f}", f"{feature.power:g}")
        tables[feature.axis].append(row)
    sizes = sizes_of("rows", options)
    timed = () if options.only else CALLS
    calls = {n: calls_on(1, n, timed) for n in sizes if timed}
    for i, call in enumerate(timed):
        found = [Taken(*calls[n][i]) for n in sizes]
        if not all(math.isfinite(one.seconds) for one in found):
            failed.append(f"`botorch-lse {call}` failed.")
        cells = [shown(one) for one in found]
        tables["rows"].append((f"`botorch-lse {call.split()[0]}`", *cells, "", ""))
    notes = [
        f"Each in a process of its own with at most {MEMORY / 2**30:g} GiB: {TOLD} "
        "results told to a strategy on three inputs, a batch of 4 asked and told, and "
        "the answer; of algorithms that say how long their rounds are, the first. "
        f"Acquisition functions: at every row, with {TARGETS} targets. Ax: a client, "
        "four trials, and the call. Processor seconds, and memory above that of the "
        "libraries. Calls of the command line: whole processes on a table with a "
        "column of words.",
        f"Exponent: of the seconds, between the last two sizes; where they exceed "
        f"{LEAST:g} s it may be {SLACK:g} above what is claimed. 2: {PAIRS}, or "
        "candidates with targets. What seems to grow more is measured twice. After "
        f"{QUICK_LONGEST if options.quick else LONGEST} s a process is ended, and "
        "nothing larger is tried.",
        f"Where something else grows the pool has {AXIS_ROWS:,} rows.",
    ]
    shown_tables = [
        Table(
            f"Growth with the {axis}",
            ("what", *(f"{n:,}" for n in sizes_of(axis, options)), *LAST_COLUMNS),
            rows,
        )
        for axis, rows in tables.items()
        if rows
    ]
    return Report(
        "speed growth",
        notes,
        shown_tables,
        failed,
        {"growth": data},
        failed=bool(failed),
    )


LAST_COLUMNS = "exponent", "claimed"


def chosen_works(only: tuple[str, ...]) -> dict[str, Feature]:
    r"""The works of some names, or all of them.

    Args:
        only: Names of ``works``; empty: all.

    Raises:
        ValueError: If there is no work of a name.
    """
    found = works()
    for name in only:
        one_of(name, "--only", tuple(found))
    return {name: found[name] for name in only or found}


def sizes_of(axis: str, options: Options) -> tuple[int, ...]:
    r"""The sizes that are measured."""
    quick, whole = AXES[axis]
    return quick if options.quick else whole


def exponent(sizes: tuple[int, ...], found: list[Taken]) -> float:
    r"""Of the seconds between the last two sizes that were measured; else nan."""
    known = [(n, t.seconds) for n, t in zip(sizes, found, strict=False) if not t.said]
    if len(known) < 2 or known[-1][1] < LEAST:
        return math.nan
    (few, less), (many, more) = known[-2:]
    return math.log(more / max(less, 1e-3)) / math.log(many / few)


def failures(
    name: str, feature: Feature, power: float, found: list[Taken]
) -> list[str]:
    r"""What is not as claimed, in sentences."""
    said = [f"{name}: {t.said}" for t in found if t.said and not t.refused]
    if found[0].ended:
        said.append(f"{name}: the smallest size takes {shown(found[0])}.")
    if power > feature.power + SLACK:
        said.append(f"{name}: exponent {power:.2f}, claimed {feature.power:g}.")
    return said


def shown(one: Taken) -> str:
    r"""A cell of the table."""
    if one.said:
        return "refused" if one.refused else "failed"
    more = "more than " if one.ended else ""
    return f"{more}{one.seconds:.2f} s, {one.peak / MIB:.0f} MiB"
