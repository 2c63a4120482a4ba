r"""Find where an expensive, noisy function is above a level."""

from botorch_lse.problem import Batch, Classification, Observations, Pool

__all__ = ["Batch", "Classification", "Observations", "Pool"]
__version__ = "0.1.0"
