"""Closeness of texts in meaning: the cosines of their embeddings, which are kept on disk."""
