r"""Formulas that several rooms need, as pure functions of tensors."""
