"""Metrics of selections: datasets, dimensions and terms."""
