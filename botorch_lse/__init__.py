r"""Find where an expensive, noisy function is above a level."""

from typing import TYPE_CHECKING

from botorch_lse._lazy import lazy_names

if TYPE_CHECKING:
    from botorch_lse.data.classification import Classification
    from botorch_lse.data.observations import Batch, History, Observations
    from botorch_lse.data.pool import Pool
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
            "data.classification": "Classification",
            "data.observations": "Batch History Observations",
            "data.pool": "Pool",
            "goals": "Above Below Between",
            "strategies": "GaussianProcess State Strategy",
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
