"""Challenges of passes: whether a small database tells a predicted query with a right answer from gold."""
