"""The predictor `command`: a program as the system under test."""
