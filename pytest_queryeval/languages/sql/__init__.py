"""SQL queries, read by the grammar of Spider and by sqlglot."""
