"""Queries that change data: run in transactions that are undone, and compared by what they change and return."""
