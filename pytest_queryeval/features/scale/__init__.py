"""Large runs: the engine `spark`, and cases on the workers of a Dask cluster."""
