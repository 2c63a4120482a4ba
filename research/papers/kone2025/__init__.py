r"""The experiments of Kone et al. (2025)."""
