r"""What notebooks show of a strategy: its question, its parts, its guarantee."""

from __future__ import annotations

import html
import re

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Above, Below, GaussianProcess, Pool, Strategy
from botorch_lse.papers import EGESRStrategy, MELKPACStrategy
from botorch_lse.strategies import (
    GEGEStrategy,
    MELKLinearStrategy,
    ShareOfMax,
    Straddle,
    StraddleStrategy,
    TruVaRStrategy,
)
from botorch_lse.strategies.wording import shortened
from tests.registry import PLAYED, StrategyCase
from tests.strategies.runs import make

POOL = Pool(torch.rand(12, 2, generator=torch.Generator().manual_seed(0)).double())


def lines_of(shown: str) -> dict[str, str]:
    r"""The lines of a strategy's table by name, as a reader sees them."""
    found = re.findall(r"<tr><th [^>]*>([^<]*)</th><td [^>]*>([^<]*)</td></tr>", shown)
    assert shown.count("<tr>") == len(found)  # nothing in it is taken for a tag
    return {name: html.unescape(words) for name, words in found}


@pytest.mark.parametrize("case", PLAYED)
def test_every_strategy_shows_its_question_and_its_guarantee(
    case: StrategyCase,
) -> None:
    strategy = make(case)
    shown = strategy._repr_html_()
    lines = lines_of(shown)
    assert shown.startswith(f"<p>{type(strategy).__name__}</p>")
    assert lines["candidates"] == repr(strategy.pool)
    assert lines["guarantee"] == strategy.guarantee
    assert lines["batch size"] == str(
        strategy.batch_size or "chosen anew in each round"
    )
    assert lines["question"].startswith("y above")


@pytest.mark.parametrize(
    ("make_one", "question", "rule"),
    [
        (
            lambda: Strategy(POOL, Above(40) & Below(0.4, output=1), rule=Straddle()),
            "y0 above 40 and y1 at most 0.4",
            "Straddle()",
        ),
        (lambda: Strategy(POOL, ShareOfMax(0.8)), "y above 0.8 of its maximum", "Wid"),
        (
            lambda: GEGEStrategy(
                POOL, maximize=(True, False), model=RBFKernel(), noise_std=0.1
            ),
            "more y0 and less y1",
            "OptimalDesign(",
        ),
        (
            lambda: StraddleStrategy(POOL, 0.3, model=RBFKernel(), noise_std=0.1),
            "y above 0.3",
            "Straddle(",
        ),
        (
            lambda: TruVaRStrategy(
                POOL, threshold=0.3, model=RBFKernel(), noise_std=0.1
            ),
            "y above 0.3",
            "TruncatedVariance(",
        ),
    ],
)
def test_questions_and_rules_are_named(make_one, question: str, rule: str) -> None:
    lines = lines_of(make_one()._repr_html_())
    assert lines["question"] == question
    assert lines["rule"].startswith(rule)


def test_a_strategy_shows_its_model_and_how_much_it_measures() -> None:
    model = GaussianProcess(RBFKernel(), noise_std=0.1)
    strategy = Strategy(
        POOL, Above(0.3), model=model, batch_size=8, max_observations=1200
    )
    lines = lines_of(strategy._repr_html_())
    assert lines["model"] == "GaussianProcess(model=RBFKernel, noise_std=0.1)"
    assert lines["batch size"] == "8"
    assert lines["measurements"] == "at most 1,200"
    free = lines_of(MELKLinearStrategy(POOL, 0.3, noise_std=0.1)._repr_html_())
    assert free["measurements"] == "without a limit"
    assert "rule" not in free  # its algorithm plans by itself


def test_strategies_of_papers_that_size_their_rounds_are_shown_too() -> None:
    pac = MELKPACStrategy(POOL, 0.3, bound=1.0, noise_std=0.3)
    assert lines_of(pac._repr_html_())["question"] == "y above 0.3"
    several = EGESRStrategy(POOL, maximize=(True, False), max_observations=50)
    assert lines_of(several._repr_html_())["question"] == "more y0 and less y1"


def test_names_cannot_be_taken_for_tags() -> None:
    pool = Pool(POOL.X, names=["<b>a</b>", "b & c"])
    shown = Strategy(pool, Above(0.3))._repr_html_()
    assert "<b>" not in shown
    assert "<b>a</b>, b & c" in lines_of(shown)["candidates"]


def test_parts_are_shown_by_what_differs_from_their_defaults() -> None:
    assert shortened(GaussianProcess()) == "GaussianProcess()"
    assert shortened(None) == ""
    assert shortened((Straddle(), 3)) == "(Straddle(), 3)"
    assert shortened(test_names_cannot_be_taken_for_tags).startswith("test_names")
