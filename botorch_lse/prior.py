r"""The old place of ``botorch_lse.models.GPPrior``."""

from botorch_lse.models import GPPrior

__all__ = ["GPPrior"]
