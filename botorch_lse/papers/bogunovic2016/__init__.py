r"""Bogunovic et al. (2016): TruVaR and its rivals; the strategy is in the core."""
