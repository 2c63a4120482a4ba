r"""The experiments of Weltz et al. (2023)."""
