"""Closeness of texts in meaning: the cosines of their embeddings, which are kept on disk."""

from pytest_queryeval.metrics.embeddings.embedder import Embedder
from pytest_queryeval.metrics.embeddings.problem import EmbeddingError

__all__ = ["Embedder", "EmbeddingError"]
