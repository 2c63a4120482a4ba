r"""Problems, paper reproductions, simulated guarantees and speed measurements.

``python -m botorch_lse.benchmark list`` names them.
"""
