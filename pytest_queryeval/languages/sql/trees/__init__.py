"""Queries as trees, in any dialect that sqlglot parses, normalised for comparison."""
