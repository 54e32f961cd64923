"""Text that any output can hold: escaped, without secrets, cut to a width, in tables."""
