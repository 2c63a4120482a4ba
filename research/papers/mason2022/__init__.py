r"""The experiments of Mason et al. (2022)."""
