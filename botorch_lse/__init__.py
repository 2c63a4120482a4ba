r"""Find where an expensive, noisy function is above a level."""

from botorch_lse.problem import Batch, Classification, History, Observations, Pool

__all__ = ["Batch", "Classification", "History", "Observations", "Pool"]
__version__ = "0.1.0"
