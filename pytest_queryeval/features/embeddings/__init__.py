"""Closeness of texts in meaning: the cosines of their vectors by one model.

Texts are encoded in batches, each only once, and their vectors are kept on disk.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import mul
from pathlib import Path

from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.features.embeddings.cache import Cache, Vectors
from pytest_queryeval.features.embeddings.model import EmbeddingError, Model, identity
from pytest_queryeval.text.formatting import one_line, utf8_safe

MAX_CHARACTERS = 100_000
PROGRESS_SECONDS = 5.0  # between two lines on the progress of encoding
_FLOAT_BYTES = 4


class Embedder:
    """Cosines of texts by one model: the path of a folder, or the name of a model on the hub.

    Vectors are kept on disk, in `folder` or in the user's cache folder (XDG_CACHE_HOME), and dropped when they were not
    used for 30 days. The model is loaded only for texts whose vectors are not there. `tell` is called with a line
    before the model is loaded, and with lines on the progress while texts are encoded.

    Of a text the first MAX_CHARACTERS characters count; models read some hundred tokens of it. Lone surrogates, which
    UTF-8 cannot encode, are read as escapes.
    """

    def __init__(self, model: str, *, tell: Callable[[str], None], folder: Path | None = None) -> None:
        self._name = model
        self._tell = tell
        self._folder = folder
        self._cache: Cache | None = None
        self._model: Model | None = None
        self._fault = ""

    def prepare(self, texts: Iterable[str]) -> None:
        """Encode those texts that are not in the cache, for `similarities`; raise `EmbeddingError`."""
        self._vectors(texts)

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair, from -1 to 1; 1 for identical texts, for which nothing is encoded.

        Raise `EmbeddingError` if the model cannot be loaded; later calls raise it again without another attempt.
        """
        vectors = self._vectors(text for pair in pairs if pair[0] != pair[1] for text in pair)
        return [1.0 if left == right else _cosine(vectors[_key(left)], vectors[_key(right)]) for left, right in pairs]

    def close(self) -> None:
        """Close the file of vectors."""
        if self._cache is not None:
            self._cache.close()

    def _vectors(self, texts: Iterable[str]) -> Vectors:
        texts_by_key = {_key(text): text for text in texts}
        if not texts_by_key:
            return {}
        if self._cache is None:
            with self._attempt():
                name = identity(self._name)
            if name is None:  # it cannot be identified before it is loaded
                self._get_model()
                name = identity(self._name)
            self._cache = Cache(name, self._folder)
        cache = self._cache
        vectors = cache.vectors(texts_by_key.keys())
        if len(vectors) < len(texts_by_key):
            with cache.turn():
                vectors |= cache.vectors(texts_by_key.keys() - vectors.keys())
                missing_texts = excluding(texts_by_key, vectors)
                vectors |= self._encode(missing_texts, cache) if missing_texts else {}
        return vectors

    def _encode(self, texts: Mapping[bytes, str], cache: Cache) -> Vectors:
        """Return the vectors of texts, and put them into the cache a batch at a time."""
        model, keys, encoded_vectors = self._get_model(), list(texts), Vectors()
        self._tell(f"texts to embed: {len(keys):,}")
        last_report = time.monotonic()
        for batch in model.batches([_encodable(text) for text in texts.values()]):
            vectors = {keys[place]: vector for place, vector in batch.items()}
            cache.add(vectors)
            encoded_vectors |= vectors
            if time.monotonic() - last_report > PROGRESS_SECONDS:
                last_report = time.monotonic()
                self._tell(f"texts embedded: {len(encoded_vectors):,} of {len(keys):,}")
        return encoded_vectors

    def _get_model(self) -> Model:
        if self._model is None:
            with self._attempt():
                self._tell(f"embedding model {one_line(self._name)} is being loaded")
                self._model = Model(self._name)
        return self._model

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Keep an error, and raise it at once from then on: to find that the hub does not answer can take long."""
        if self._fault:
            raise EmbeddingError(self._fault)
        try:
            yield
        except EmbeddingError as error:
            self._fault = str(error)
            raise


def _encodable(text: str) -> str:
    return utf8_safe(text[:MAX_CHARACTERS])


def _key(text: str) -> bytes:
    return hashlib.sha256(_encodable(text).encode()).digest()


def _cosine(vector: bytes, paired_vector: bytes) -> float:
    """Return the cosine of vectors of unit length, kept within [-1, 1] against rounding."""
    floats = struct.Struct(f"<{len(vector) // _FLOAT_BYTES}f")
    cosine: float = sum(map(mul, floats.unpack(vector), floats.unpack(paired_vector)))
    return min(max(cosine, -1.0), 1.0)
