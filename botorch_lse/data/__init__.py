r"""Records: pools, observations and answers, and how tables and names are read."""
