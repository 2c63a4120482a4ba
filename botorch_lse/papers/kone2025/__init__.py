r"""Kone et al. (2025): GEGE and its rivals to the letter, mirror descent."""

from botorch_lse.papers.kone2025.mirror_descent import mirror_descent_design

__all__ = ["mirror_descent_design"]
