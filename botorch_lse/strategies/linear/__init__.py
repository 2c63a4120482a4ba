r"""Elimination on linear features with anytime widths: a guarantee, few samples."""
