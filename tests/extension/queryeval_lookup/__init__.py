"""A package that adds a query language, an engine, a predictor, a metric and a report format by entry points."""
