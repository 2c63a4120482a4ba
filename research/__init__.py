r"""The papers' experiments and the benchmarks; not part of the package."""
