r"""Records: pools, observations and answers, and readers of tables and names."""
