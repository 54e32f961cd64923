"""Queries as Spider's published evaluation reads and compares them."""
