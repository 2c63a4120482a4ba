r"""Public names are those of the snapshot, and stand where they are said to stand."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.reference.public import NEEDS, PACKAGES, names_of, stored

FIXED = {
    "": "Pool Batch Observations History Classification",
    "acquisition": "Straddle ImplicitStraddle MaxVariance LSEAmbiguity LSEWidth "
    "qTruVaR qNegMaxPosteriorVariance qMELK qHRAGE qGEGE qMILK",
    "optim": "optimize_acqf_design",
    "designs": "optimal_design round_design",
    "confidence": "confidence_regions classify classify_implicit",
    "estimators": "weighted_least_squares head",
    "pareto": "pareto_mask",
    "strategies": "StraddleStrategy ImplicitStraddleStrategy MaxVarianceStrategy "
    "RandomStrategy LSEStrategy ImplicitLSEStrategy TruVaRStrategy MELKStrategy "
    "MILKStrategy HRAGEStrategy GEGEStrategy MELKLinearStrategy MILKLinearStrategy "
    "HRAGELinearStrategy GEGELinearStrategy",
    "papers": "level_set_complexity implicit_complexity best_arm_complexity "
    "pareto_complexity catoni_mean catoni_alpha rips uniform_variance "
    "separate_arm_variance pareto_gaps empirical_gaps StraddleRankStrategy "
    "MELKPACStrategy MILKPACStrategy RAGEPACStrategy HRAGEPACStrategy GEGEPACStrategy "
    "GEGEBudgetStrategy EGESHStrategy EGESRStrategy APEStrategy PALStrategy "
    "RacingStrategy UniformStrategy",
    "ax": "level_set_generation_strategy pool_parameters level_set LevelSetAnalysis "
    "LevelSetGlobalStoppingStrategy",
    "models": "GPPrior",
}
"""Names that other programs call since the first plan of the package."""


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_those_of_the_snapshot(package: str) -> None:
    if package in NEEDS and find_spec(NEEDS[package]) is None:
        pytest.skip(f"{NEEDS[package]} is not installed")
    assert names_of(package) == stored()[package], "see tests/reference/public.py"


def test_the_snapshot_has_no_other_packages() -> None:
    assert sorted(stored()) == sorted(PACKAGES)


@pytest.mark.parametrize("package", FIXED)
def test_names_that_are_fixed_are_there(package: str) -> None:
    assert set(FIXED[package].split()) <= set(names_of(package))


@pytest.mark.parametrize("package", [p for p in PACKAGES if p not in NEEDS])
def test_what_is_public_is_documented(package: str) -> None:
    module = import_module(".".join(filter(None, ("botorch_lse", package))))
    for name in names_of(package):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


def test_what_only_a_paper_has_is_public_there_alone() -> None:
    elsewhere = {name for p in PACKAGES if p != "papers" for name in stored()[p]}
    assert not elsewhere & set(stored()["papers"])
