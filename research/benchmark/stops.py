r"""Stops of other packages, for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.functional.scores import expected_feasibility
from botorch_lse.strategies import ContentStop
from botorch_lse.strategies.criteria.content import Look, needs_one_level


@dataclass(frozen=True)
class MaximumFeasibility(ContentStop):
    r"""Stop once no row's expected feasibility exceeds a limit (EGRA, AK-MCS with EFF).

    For comparison. The limit has the unit of ``y``.

    Args:
        limit: Units of ``y``.
        times: After how many rounds in a row it must hold.

    Raises:
        ValueError: If a number is out of range.

    Source:
        Bichon et al. (2008): ``max EFF <= 1e-3``.
    """

    limit: float = 1e-3
    times: int = 1

    reason: ClassVar[str] = "maximum feasibility"

    def __post_init__(self) -> None:
        in_interval(self.limit, "limit", 0.0, math.inf)
        whole_number(self.times, "times", 1)

    def check(self, algorithm: Any) -> None:
        r"""Complain where sides hang on several levels."""
        needs_one_level(algorithm, self)

    def holds(self, look: Look) -> bool:
        r"""Whether the largest expected feasibility is small enough."""
        answer = look.answer
        assert look.level is not None  # it was checked
        found = expected_feasibility(answer.mean, answer.sigma, look.level)
        return float(found.max()) <= self.limit
