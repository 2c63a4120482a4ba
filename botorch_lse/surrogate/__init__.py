r"""What a strategy believes: Gaussian processes, given or learnt, one per output."""
