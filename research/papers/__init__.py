r"""The papers' experiments: a folder each, with problems, runs, claims and figures."""
