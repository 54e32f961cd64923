"""What queries to database servers need: guards, values, limits."""
