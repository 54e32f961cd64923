"""Requests to HTTP services, and their answers."""
