"""Proofs that two SQL queries answer alike on all data that keeps the constraints: rules bring both to one form."""
