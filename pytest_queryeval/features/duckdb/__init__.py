"""DuckDB databases: files, and databases made of scripts or of tables in files."""
