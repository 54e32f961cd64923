"""The predictor `http`: a service as the system under test."""
