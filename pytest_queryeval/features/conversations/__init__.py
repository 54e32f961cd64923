"""The run metric of conversations about queries: `interaction_match`."""
