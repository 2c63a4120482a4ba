r"""The experiments of Gotovos et al. (2013)."""
