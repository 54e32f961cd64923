"""Runs of suites, by pytest or by `queryeval evaluate`: their options, the suites that they collect, their report."""
