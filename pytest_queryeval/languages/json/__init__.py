"""Comparison of JSON answers: the level that is scored, the paths that they share, their differences."""
