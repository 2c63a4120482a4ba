r"""The guarantee of a theorem's widths where a measurement says yes or no.

The widths of Gotovos et al. (2013), Theorem 1, hold for all rows and all times at once
if the latent function has, given the answers, the normal distribution that the model
says. Expectation propagation only comes near to that, so the guarantee is simulated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from botorch_lse.confidence import UnionBeta
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    Binary,
    GaussianProcess,
    Rule,
    State,
    Strategy,
)
from research.benchmark.engines import over_seeds
from research.benchmark.guarantee import (
    COLUMNS,
    Form,
    Outcome,
    ScaledBeta,
    power_report,
    simulate,
)
from research.benchmark.registry import Options, entry
from research.papers.problems import Problem, gp_sample
from research.report import Report, Table

DELTA, SIZE, LEVEL, EPSILON = 0.1, 8, 0.75, 0.1
LENGTHSCALES, VARIANCE = (0.3, 0.3), 4.0
LIMIT, BATCH = 1000, 100
AT, STEP = (50, 100, 250), 25
"""Answers after which intervals are looked at, and how many are asked for at once."""
OUTCOMES = {
    "yes or no": Binary(),
    "guess 0.5, lapse 0.04": Binary(guess=0.5, lapse=0.04),
}

NOTES = (
    f"Level {LEVEL:g}, epsilon = {EPSILON:g} in probability, delta = {DELTA:g}; the "
    "latent function is drawn from a zero-mean Gaussian process of variance "
    f"{VARIANCE:g} (Matern-5/2, lengthscale {LENGTHSCALES[0]:g}) on a grid of "
    f"{SIZE} x {SIZE} rows, guess and lapse are given; run k uses seed k.",
    "A run is wrong if any decided row has a probability on the other side of the "
    "level by more than epsilon. Decisions are final. A run ends when all rows are "
    f"decided or after {LIMIT} answers, {BATCH} at a time.",
    "Widths of Theorem 1 (Gotovos et al. 2013) for the latent function, whatever the "
    "rule.",
    "Intervals: the share of rows whose latent value lies in the interval of 95 % of "
    f"the posterior, with the default rule, {STEP} answers at a time; of the given "
    "process, and of one learnt from the same answers.",
)


@entry("guarantee", "binary", "Theorem 1's widths by answers of yes and no", runs=36)
def guarantee_binary(options: Options) -> Report:
    r"""How often rows are decided wrongly, and what intervals of 95 % hold."""
    forms = {
        f"{name}, {rule}": (outcome, of_rule)
        for name, outcome in OUTCOMES.items()
        for rule, of_rule in (("the default", None), ("LSE", Ambiguity()))
    }

    def outcomes(divisor: float) -> list[Outcome]:
        return [
            of_form(name, *parts, options, divisor) for name, parts in forms.items()
        ]

    report = power_report("guarantee binary", NOTES, COLUMNS, outcomes, options)
    return replace(report, tables=[*report.tables, intervals(options)])


def of_form(
    name: str, outcome: Binary, rule: Rule | None, options: Options, divisor: float
) -> Outcome:
    r"""What the runs of one rule with one kind of answers gave."""
    form = Form(name, partial(build, outcome, rule))
    given = form, partial(problem, outcome), options, divisor, DELTA, EPSILON
    return simulate(*given, by_answers)


def problem(outcome: Binary, seed: int, size: int | None = None) -> Problem:
    r"""A latent function drawn from the prior; the truth is its probabilities."""
    pool, prior, drawn = gp_sample(seed, size or SIZE, LENGTHSCALES)
    latent = VARIANCE**0.5 * drawn
    prior = replace(prior, scale=VARIANCE**0.5 * prior.scale)
    return Problem(pool, outcome.value(latent), 0.0, LEVEL, LEVEL, prior, seed)


def build(
    outcome: Binary, rule: Rule | None, instance: Problem, divisor: float
) -> Strategy:
    r"""A rule, or the one without a choice, by the theorem's widths."""
    beta = None
    if divisor != 1.0:
        beta = ScaledBeta(UnionBeta(len(instance.pool), DELTA), divisor)
    return Strategy(
        instance.pool,
        Above(LEVEL, EPSILON),
        model=GaussianProcess(instance.prior, outcome=outcome),
        rule=rule,
        batch_size=BATCH,
        delta=DELTA,
        beta=beta,
        max_observations=LIMIT,
    )


def by_answers(strategy: Strategy, instance: Problem, seed: int) -> State:
    r"""A run in rounds, each row of which says yes with its probability."""
    state, drawn = strategy.init(seed), instance.noise_generator()
    while not state.is_done:
        state = answered(strategy, state, instance, drawn)
    return state


def answered(
    strategy: Strategy, state: State, instance: Problem, drawn: torch.Generator
) -> State:
    r"""One round of a run, asked and told."""
    batch = strategy.ask(state)
    chance = instance.truth[batch.order]
    at = torch.rand(chance.shape, generator=drawn, dtype=torch.float64)
    return strategy.tell(state, batch.observe((at < chance).double()))


def intervals(options: Options) -> Table:
    r"""What intervals of 95 % hold, with the process given and learnt."""
    rows = []
    for name, outcome in OUTCOMES.items():
        for learnt in (False, True):
            title = f"{name}, {'learnt' if learnt else 'given'}"
            run = partial(held, outcome, learnt)
            by_run = torch.tensor(over_seeds(run, options, title), dtype=torch.float64)
            errors = by_run.std(dim=0) / options.runs**0.5
            pairs = zip(by_run.mean(dim=0).tolist(), errors.tolist(), strict=True)
            shares = [f"{mean:.1%} +- {error:.1%}" for mean, error in pairs]
            rows.append((title, str(options.runs), *shares))
    columns = ("process", "runs", *(f"{n} answers" for n in AT))
    return Table("Rows that intervals of 95 % hold", columns, rows)


def held(outcome: Binary, learnt: bool, seed: int) -> list[float]:
    r"""The shares of rows whose latent values intervals hold, along one run."""
    instance = problem(outcome, seed)
    prior: GPPrior | None = None if learnt else instance.prior
    strategy = Strategy(
        instance.pool,
        Above(LEVEL),
        model=GaussianProcess(prior, outcome=outcome),
        batch_size=STEP,
        max_observations=max(AT),
    )
    latent, shares = outcome.latent(instance.truth), list[float]()
    state, drawn = strategy.init(seed), instance.noise_generator()
    while len(shares) < len(AT):
        state = answered(strategy, state, instance, drawn)
        if state.history.n_measured in AT:
            believed = state.belief.posterior
            inside = (latent - believed.mean).abs() <= 1.96 * believed.sigma
            shares.append(float(inside.double().mean()))
    return shares
