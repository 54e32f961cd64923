"""Similarity of texts in meaning: the cosine of their vectors by an embedding model.

Texts are encoded in batches. A text is encoded once, and its vector is kept on disk.
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
    """Cosines of texts by one embedding model; `model` is the path of a folder or the name of a model on the hub.

    Vectors are kept on disk, in `folder` or in the user's cache folder (XDG_CACHE_HOME). A vector that was not used for
    30 days is dropped. The model is loaded only for texts without a stored vector. `tell` is called with a line before
    the model is loaded, and with lines on the progress of encoding.

    Only the first MAX_CHARACTERS characters of a text count; models read some hundred tokens of it. Lone surrogates,
    which UTF-8 cannot encode, are read as escapes.
    """

    def __init__(self, model: str, *, tell: Callable[[str], None], folder: Path | None = None) -> None:
        self._name = model
        self._tell = tell
        self._folder = folder
        self._cache: Cache | None = None
        self._model: Model | None = None
        self._fault = ""

    def prepare(self, texts: Iterable[str]) -> None:
        """Encode the texts that have no stored vector, so that `similarities` need not; raise `EmbeddingError`."""
        self._vectors(texts)

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair of texts, from -1 to 1; it is 1 for equal texts, which are not encoded.

        Raise `EmbeddingError` if the model cannot be loaded. Later calls raise it again without another attempt.
        """
        vectors = self._vectors(text for pair in pairs if pair[0] != pair[1] for text in pair)
        return [
            1.0 if left == right else _cosine(vectors[_digest(left)], vectors[_digest(right)]) for left, right in pairs
        ]

    def close(self) -> None:
        """Close the file of vectors."""
        if self._cache is not None:
            self._cache.close()

    def _vectors(self, texts: Iterable[str]) -> Vectors:
        texts_by_key = {_digest(text): text for text in texts}
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
        """Return the new vectors of `texts`, both by digest, and store them batch by batch."""
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
        """Remember an `EmbeddingError` of the block, and raise it again when a later block is entered.

        To find that the hub does not answer can take long.
        """
        if self._fault:
            raise EmbeddingError(self._fault)
        try:
            yield
        except EmbeddingError as error:
            self._fault = str(error)
            raise


def _encodable(text: str) -> str:
    return utf8_safe(text[:MAX_CHARACTERS])


def _digest(text: str) -> bytes:
    return hashlib.sha256(_encodable(text).encode()).digest()


def _cosine(vector: bytes, paired_vector: bytes) -> float:
    """Return the cosine of two encoded vectors of unit length, limited to [-1, 1]."""
    floats = struct.Struct(f"<{len(vector) // _FLOAT_BYTES}f")
    cosine: float = sum(map(mul, floats.unpack(vector), floats.unpack(paired_vector)))
    return min(max(cosine, -1.0), 1.0)
