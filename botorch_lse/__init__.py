r"""Find where an expensive, noisy function is above a level."""

from typing import TYPE_CHECKING

from botorch_lse._lazy import lazy_names

if TYPE_CHECKING:
    from botorch_lse.problem import Batch, Classification, History, Observations, Pool
    from botorch_lse.strategies import (
        Above,
        Below,
        Between,
        GaussianProcess,
        State,
        Strategy,
    )
else:
    # Before torch, so that `botorch-lse --help` answers at once.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "problem": "Batch Classification History Observations Pool",
            "strategies": "Above Below Between GaussianProcess State Strategy",
        },
    )

__all__ = [
    "Above",
    "Batch",
    "Below",
    "Between",
    "Classification",
    "GaussianProcess",
    "History",
    "Observations",
    "Pool",
    "State",
    "Strategy",
]
__version__ = "0.2.0"
