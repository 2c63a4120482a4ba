r"""Optimal designs on finite sets: weights, proofs, integer counts, complexities."""

from botorch_lse.designs.certificate import Certificate, certify
from botorch_lse.designs.design import Design, DesignWarning
from botorch_lse.designs.optimal import optimal_design

__all__ = ["Certificate", "Design", "DesignWarning", "certify", "optimal_design"]
