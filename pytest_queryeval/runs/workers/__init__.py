"""Work in chunks on an executor, such as a cluster: calls to workers, their execution, retries when a worker dies."""
