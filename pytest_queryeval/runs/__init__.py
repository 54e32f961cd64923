"""Runs of cases: without pytest, here or by workers, and what such runs share with those of pytest."""
