r"""The experiments of Bogunovic et al. (2016)."""
