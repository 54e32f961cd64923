"""When two answers are equal, and where they differ."""
