"""`queryeval export --to mlflow:URI`."""
