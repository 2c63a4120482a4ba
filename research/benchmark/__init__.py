r"""Simulated guarantees, comparisons with oracles, speed, and the command line.

``python -m botorch_lse.benchmark list`` names them, and the papers' experiments.
"""
