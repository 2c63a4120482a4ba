r"""A command line for tables: candidates and results in CSV files, and nothing else."""

from botorch_lse.table.commands import main

__all__ = ["main"]
