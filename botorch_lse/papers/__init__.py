r"""What only a paper needs: its algorithms to the letter, problems, experiments."""
