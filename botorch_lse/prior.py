r"""Keeps the former import path of ``botorch_lse.models.GPPrior``."""

from botorch_lse.models import GPPrior

__all__ = ["GPPrior"]
