"""Recordings in a folder: predictions and answers of sources, one entry a file."""
