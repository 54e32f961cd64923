"""From a case to its scores: predictions, executed queries, metrics, trials."""
