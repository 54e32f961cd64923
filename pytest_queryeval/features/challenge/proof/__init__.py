"""Proofs that two SQL queries give the same answer on all data that keeps the constraints."""
