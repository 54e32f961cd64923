"""Databases behind SQLAlchemy URLs: PostgreSQL, MariaDB, ClickHouse, Trino and other warehouses."""
