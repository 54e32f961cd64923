"""Equality of two answers, and where they differ."""
