"""JSON answers beside each other: which level is scored, what their paths share, where they differ."""
