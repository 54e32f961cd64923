"""From the results of cases to the report of a run: aggregation, gates, baselines, merged shards, the verdict."""
