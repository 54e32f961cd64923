"""Queries to database servers: what is refused, and values and tables of servers."""
