"""Runs of cases without pytest, in this process or in workers, and the parts that they share with runs of pytest."""
