"""Projects of dbt as sources: their databases, and the names that `ref` and `source` give to tables."""
