"""Work in chunks on an executor: calls to workers, their execution, and the retries when a worker dies."""
