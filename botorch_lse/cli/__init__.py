r"""The command line for tables: candidates and results in CSV files, nothing else."""

from botorch_lse.cli.command_line import main

__all__ = ["main"]
