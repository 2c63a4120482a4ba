r"""Criteria that end a run: audits, and stops that watch the share above the level."""
