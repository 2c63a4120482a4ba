r"""Former import paths of names that are now in ``botorch_lse.papers``.

No part of the library needs a paper, yet ``from botorch_lse.strategies import
MELKPACStrategy`` goes on working, and so do stored experiments with a strategy's old
path: the packages of this table import such a name from the papers when it is asked
for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_GOTOVOS2013 = "botorch_lse.papers.gotovos2013"
_COMPLEXITY = "botorch_lse.papers.complexity"
_KONE2025 = "botorch_lse.papers.kone2025"
_MASON2022 = "botorch_lse.papers.mason2022"
_WELTZ2023 = "botorch_lse.papers.weltz2023"

MOVED: dict[str, dict[str, str]] = {
    "botorch_lse.strategies": {
        "ImplicitLSELiteralBatchStrategy": _GOTOVOS2013,
        "LSELiteralBatchStrategy": _GOTOVOS2013,
        "StraddleRankStrategy": _GOTOVOS2013,
        "MELKPACStrategy": _MASON2022,
        "MILKPACStrategy": _MASON2022,
        "PACStrategy": _MASON2022,
        "GapEliminationStrategy": _WELTZ2023,
        "HRAGEPACStrategy": _WELTZ2023,
        "RAGEPACStrategy": _WELTZ2023,
        "APEStrategy": _KONE2025,
        "EGESHStrategy": _KONE2025,
        "EGESRStrategy": _KONE2025,
        "GEGEBudgetStrategy": _KONE2025,
        "GEGEPACStrategy": _KONE2025,
        "PALStrategy": _KONE2025,
        "ParetoStrategy": _KONE2025,
        "RacingStrategy": _KONE2025,
        "UniformStrategy": _KONE2025,
    },
    "botorch_lse.estimators": {
        "ArmTotals": _KONE2025,
        "LinearFit": _KONE2025,
        "span_least_squares": _KONE2025,
        "RIPSEstimate": _MASON2022,
        "catoni_alpha": _MASON2022,
        "catoni_mean": _MASON2022,
        "catoni_width": _MASON2022,
        "rips": _MASON2022,
        "rips_projection": _MASON2022,
        "separate_arm_variance": _WELTZ2023,
        "separate_arms": _WELTZ2023,
        "separate_from_arms": _WELTZ2023,
        "uniform_from_arms": _WELTZ2023,
        "uniform_variance": _WELTZ2023,
    },
    "botorch_lse.designs": {
        "Complexity": _COMPLEXITY,
        "ParetoComplexity": _KONE2025,
        "best_arm_complexity": _COMPLEXITY,
        "frank_wolfe_design": _MASON2022,
        "implicit_complexity": _COMPLEXITY,
        "level_set_complexity": _COMPLEXITY,
        "mirror_descent_design": _KONE2025,
        "pareto_complexity": _KONE2025,
    },
    "botorch_lse.pareto": {
        "empirical_gaps": _KONE2025,
        "pareto_gaps": _KONE2025,
        "pareto_margins": _KONE2025,
    },
}
"""For each package the names that it had, and the package that each moved to."""


def lookup(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    r"""``__getattr__`` and ``__dir__`` of a module that had some of the names.

    Args:
        package: Its name, one of ``MOVED``.
    """

    def find(name: str) -> Any:
        if name not in MOVED[package]:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(MOVED[package][name]), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *MOVED[package]})

    return find, names


def new_home(module: str, name: str) -> str | None:
    r"""Where a name of an old module stands now; ``None`` if it has not moved.

    Args:
        module: A package of ``MOVED``, or any module that was in one.
        name: What stood there.
    """
    while module:
        home = MOVED.get(module, {}).get(name)
        if home is not None:
            return home
        module = module.rpartition(".")[0]
    return None
