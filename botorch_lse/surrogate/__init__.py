r"""The surrogate of a strategy: Gaussian processes, given or fitted, one per output."""
