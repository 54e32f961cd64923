"""`queryeval export --to otlp:URL`."""
