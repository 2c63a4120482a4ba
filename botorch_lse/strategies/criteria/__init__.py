r"""Why a run ends: audits, and stops that watch the share above the level."""
