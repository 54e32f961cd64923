"""Edits of SQL queries."""
