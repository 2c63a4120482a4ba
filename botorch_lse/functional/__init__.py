r"""Mathematics: tensors in, tensors out."""
