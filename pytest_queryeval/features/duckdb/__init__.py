"""DuckDB databases: files, and those made of scripts or of tables in files."""
