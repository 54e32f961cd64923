"""Edits and repairs of SQL queries."""
