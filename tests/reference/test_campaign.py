r"""The table of everything that runs are made of, and whole runs, a few by default."""

from __future__ import annotations

import inspect
import itertools
import random
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest
from botorch.exceptions.errors import BotorchError

from botorch_lse import confidence, integrations, models, papers, strategies
from botorch_lse.strategies import ContentStop, GaussianProcess, Goal, Rule, Strategy
from tests.covering import IN_FULL, more_in_full, pairwise
from tests.registry import STRATEGIES

from . import campaign, hosts, knowing_more, worlds

PARTS = (Strategy, Goal, Rule, ContentStop)
ELSEWHERE = {
    "Strategy": "it is ComposedStrategy",
    "ComposedStrategy": "each goal is asked through it",
    "GPStrategy": "it has no goal of its own",
}


def concrete(base: type, *packages: ModuleType) -> set[str]:
    r"""The classes of a kind that packages export and that can be made."""
    named = [
        (name, getattr(package, name))
        for package in packages
        for name in package.__all__
    ]
    return {
        name
        for name, cls in named
        if inspect.isclass(cls)
        and issubclass(cls, base)
        and not inspect.isabstract(cls)
    }


# --- the table ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "table"),
    [(Goal, worlds.GOALS), (Rule, worlds.RULES), (ContentStop, worlds.STOPS)],
)
def test_every_exported_part_has_a_level(base: type, table: Mapping[str, Any]) -> None:
    assert concrete(base, strategies, papers) <= {*table}


def test_every_exported_strategy_has_a_level() -> None:
    asked = {case.cls.__name__ for case in STRATEGIES} | {worlds.LABELS}
    assert concrete(Strategy, strategies, papers) - {*ELSEWHERE} == asked - {*ELSEWHERE}
    rows = {case.__name__ for case in STRATEGIES if case.cls.__name__ not in ELSEWHERE}
    assert rows <= {*worlds.FACTORS["asks"]}


NO_LEVEL = {
    models: {
        "PoolPosterior": "a part of every model",
        "PosteriorPath": "likewise",
        "QuadraticNoise": "a part of HeteroscedasticGP",
        "fit_heteroscedastic_gp": "it makes the HeteroscedasticGP of its level",
        "fit_additive_gp": "learnt models of numbers",
        "fit_mixed_gp": "learnt models of the pool of words",
        "fit_multi_task_gp": "the level correlated",
        "SourceModel": "what the models of sources are",
    },
    confidence: {
        "AnytimeWidth": "of linear strategies",
        "BatchEta": "of the batches of TruVaRStrategy",
        "BatchMartingale": "of linear strategies",
        "BetaSchedule": "what widths are made of",
        "EmptyRegionWarning": "a warning",
        "Information": "of linear strategies",
        "PosteriorPath": "a part of every model",
        "RKHSWidth": "the model norm bound",
        "Regions": "what every strategy has",
        "StitchedWidth": "of linear strategies",
        "beta_schedule": "it reads what is given as beta",
        "classify": "what every strategy does",
        "classify_implicit": "likewise",
        "confidence_regions": "likewise",
    },
    strategies: {
        "GaussianProcess": "what every goal is asked with",
        "NoiseWarning": "a warning",
        "ParetoEstimate": "what estimate returns",
        "RowCosts": "costs of rules",
        "SimulatedRun": "of counts: tests/strategies/test_linear.py",
        "State": "what every strategy makes",
        "audit": "it makes the LabelAudit of its level",
        "audit_size": "a number",
        "extended": "a run on more rows: tests/strategies/test_extended.py",
        "rare_event": "runs on pools of its own: tests/strategies/test_rare.py",
    },
    integrations: {
        "ray": "an executor: tests/integrations",
        "sklearn": "an estimator without runs: tests/integrations/test_sklearn.py",
        "submitit": "an executor: tests/integrations",
    },
}
"""What is exported and is no level of a factor, and why."""


def unexplained(package: ModuleType) -> set[str]:
    r"""What a package exports that has neither a level nor a reason to have none."""
    if package is integrations:
        levels = {"gest": "gest-api", "optuna": "Optuna"}
        assert {*levels.values()} <= {*hosts.HOSTS}
        names = {module.name for module in iter_modules(package.__path__)}
        return names - {*levels} - {*NO_LEVEL[package]}
    levels = {*worlds.FACTORS["model"], *worlds.FACTORS["width"]}
    parts = set().union(*(concrete(base, package) for base in PARTS))
    abstract = {
        name
        for name in package.__all__
        if inspect.isabstract(getattr(package, name))
        and issubclass(getattr(package, name), PARTS)
    }
    return {*package.__all__} - levels - parts - abstract - {*NO_LEVEL[package]}


@pytest.mark.parametrize("package", NO_LEVEL)
def test_whatever_else_is_exported_has_a_level_or_a_reason(package: ModuleType) -> None:
    assert unexplained(package) == set()
    if package is not integrations:
        assert {*NO_LEVEL[package]} <= {*package.__all__}  # reasons go with the names


@pytest.mark.parametrize("package", [models, confidence, strategies])
def test_a_new_name_is_missed(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "__all__", [*package.__all__, "NewOne"])
    monkeypatch.setattr(package, "NewOne", lambda X: X, raising=False)
    assert unexplained(package) == {"NewOne"}


def test_every_host_and_event_has_a_level() -> None:
    assert {*worlds.FACTORS["host"]} == {*hosts.HOSTS}
    assert {*worlds.FACTORS["events"]} == {*hosts.WEIGHTS} == {*hosts.IN_AX}


def test_a_part_without_a_level_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(worlds.RULES, "Straddle")
    assert concrete(Rule, strategies, papers) - {*worlds.RULES} == {"Straddle"}


UNVARIED = {
    "memory_budget": "it changes no answer: tests/models",
    "sides": "labels, of whose audit it is the question",
}
"""Arguments of strategies and models that are the same in all cases, and why."""


def made(n: int) -> Iterable[worlds.World]:
    for number, case in zip(range(n), worlds.cases(0), strict=False):
        try:
            yield worlds.world_of(case, 0, number)
        except (ValueError, BotorchError):
            continue


@pytest.mark.slow
def test_every_argument_of_strategies_and_models_varies() -> None:
    seen = defaultdict[str, set[str]](set)
    for world in made(1_500):
        if "papers" in type(world.strategy).__module__:
            continue  # whose arguments are those of the paper
        parts = [world.strategy, getattr(world.strategy, "model", None)]
        for part in (p for p in parts if isinstance(p, Strategy | GaussianProcess)):
            for entry in fields(part):
                seen[entry.name].add(repr(getattr(part, entry.name))[:99])
    alike = {name for name, values in seen.items() if len(values) == 1}
    assert alike <= {*UNVARIED}


# --- coverings ------------------------------------------------------------------------

FACTORS = {"a": "xyz", "b": "pqr", "c": "uvw"}
NEEDS = [("a", "x", "b", "pq"), ("b", "p", "c", "uv")]


def test_all_pairs_that_may_meet_meet() -> None:
    met = set()
    for case in itertools.islice(pairwise(FACTORS, NEEDS, random.Random(0)), 15):
        assert not (case["a"] == "x" and case["b"] == "r")
        assert not (case["b"] == "p" and case["c"] == "w")
        met |= {(n, case[n], m, case[m]) for n in case for m in case if n < m}
    assert len(met) == 3 * 9 - 2


def test_pairs_meet_in_few_cases() -> None:
    factors = {f"f{i}": "abcde" for i in range(9)}
    met = set()
    for case in itertools.islice(pairwise(factors, [], random.Random(0)), 60):
        met |= {(f, case[f], g, case[g]) for f in case for g in case if f < g}
    assert len(met) == 36 * 25


def test_what_cannot_meet_is_left_out() -> None:
    needs = [("a", "x", "b", "p"), ("a", "x", "c", "u"), ("b", "p", "c", "v")]
    cases = pairwise(FACTORS, needs, random.Random(0))
    assert all(case["a"] != "x" for case in itertools.islice(cases, 20))


# --- runs -----------------------------------------------------------------------------


def first_by_hand() -> tuple[int, Mapping[str, str]]:
    r"""The first case of seed 0 that is played by ask and tell, and not refused."""
    for number, case in enumerate(worlds.cases(0)):
        if case["host"] == "ask and tell":
            try:
                worlds.world_of(case, 0, number)
            except (ValueError, BotorchError):
                continue
            return number, case
    raise AssertionError


@pytest.mark.slow
def test_a_case_is_a_function_of_its_seed_and_number() -> None:
    one, other = [], []
    number, case = first_by_hand()
    assert case == worlds.case_of(0, number)
    found = campaign.play(case, 0, number, says=one.append)
    assert found.end == campaign.play(case, 0, number, says=other.append).end
    assert one[:-1] == other[:-1]  # the last line has the seconds
    assert len(one) > 3


@pytest.mark.parametrize(
    ("error", "is_ours"),
    [
        (ValueError("Expected `y` to be finite, but got nan."), True),
        (ValueError("Expected y to be finite, but got nan."), False),
        (ValueError("operands could not be broadcast"), False),
        (RuntimeError("Expected `one`"), False),
    ],
)
def test_only_refusals_in_words_are_refusals(error: Exception, is_ours: bool) -> None:
    assert hosts.is_refusal(error) == is_ours


def test_what_must_not_happen_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("cannot reshape tensor")

    monkeypatch.setattr(campaign.Run, "check", broken)
    assert campaign.main(["--runs", "3"]) == 1
    said = capsys.readouterr().out
    assert "RuntimeError at test_campaign.py" in said
    assert "cannot reshape tensor" in said
    assert "Play one alone: --seed 0 --case " in said


def test_a_run_must_end_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts.ByHand, "play", lambda host: host.state)
    number, case = first_by_hand()
    assert "it ends without a reason" in campaign.play(case, 0, number).words


def test_reasons_are_those_that_states_document() -> None:
    assert {"decided", "budget", "rows exhausted", "none found"} <= campaign.REASONS


def test_guarantees_may_be_broken_as_often_as_they_say() -> None:
    def runs(n: int, wrong: int) -> campaign.Campaign:
        claim = ("theorem", 0.1)
        of = [campaign.Outcome("decided", claims={claim: i < wrong}) for i in range(n)]
        return campaign.Campaign({}, dict(enumerate(of)))

    assert runs(100, 10).holds()
    assert not runs(100, 30).holds()


def is_short(case: Mapping[str, str]) -> bool:
    r"""Whether a run of a case takes a part of a second: few rows, and no fits."""
    return case["budget"] == "6" and case["model"] in (worlds.OWN, *worlds.FIXED)


def test_some_short_runs_hold() -> None:
    played, by_host = campaign.Campaign(), Counter[str]()
    for number, case in enumerate(worlds.cases(0)):
        if is_short(case) and by_host[case["host"]] < 3:
            by_host[case["host"]] += 1
            played.cases[number] = case
            played.outcomes[number] = campaign.play(case, 0, number)
        if by_host.total() == 12:
            break
    assert played.holds(), played.report()
    assert len(by_host) >= 4


@pytest.mark.slow
def test_thirty_runs_hold() -> None:
    assert campaign.main(["--runs", "30"]) == 0


@pytest.mark.parametrize("host", [*hosts.HOSTS])
@pytest.mark.usefixtures("capsys")
@IN_FULL[0]
@IN_FULL[1]
def test_many_runs_hold(host: str) -> None:
    runs = 1000 if host == "ask and tell" else 100
    assert campaign.main(["--seed", "1", "--runs", str(runs), "--host", host]) == 0


@pytest.mark.some(0, slow=2)
@more_in_full("runs", 6, 40)
def test_knowing_more_does_not_decide_less_on_average(runs: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up values
        counts = knowing_more.counted(0, runs)
    assert {*counts.more} == {"old values", "less noise", "more measurements"}
    for what, more in counts.more.items():
        assert len(more) == runs
        assert sum(more) >= sum(counts.less[what]), what
