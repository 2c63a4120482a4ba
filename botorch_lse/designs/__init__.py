r"""Optimal designs on finite sets: weights, proofs, integer counts, complexities."""

from botorch_lse.designs.certificate import Certificate, certify
from botorch_lse.designs.optimal import Design, DesignWarning, optimal_design
from botorch_lse.designs.rounding import exchange_design, round_design

__all__ = [
    "Certificate",
    "Design",
    "DesignWarning",
    "certify",
    "exchange_design",
    "optimal_design",
    "round_design",
]
