"""Embedding models: the identity of a model, which needs no machine-learning library, and the loaded model.

No other module imports sentence-transformers and the libraries beneath it.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.text.formatting import one_line

Library: TypeAlias = Any  # a SentenceTransformer, whose package mypy does not read: pyproject.toml
Result = TypeVar("Result")

# Tokens in a batch, padding included: larger batches are no faster on a few cores, and need more memory.
BATCH_TOKENS = 1024
HUB_SECONDS = 10.0  # for the first answer of the hub
_COUNTED_CHARACTERS = 4_000  # of a text whose tokens are counted
_TEXTS_AT_ONCE = 256  # whose tokens are counted together
_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub", "filelock", "httpx2", "httpx", "urllib3")
_CHARACTERS_A_TOKEN = 3
_SILENT = logging.CRITICAL + 1
_TEXT_ONLY = {"text", "message"}
_EXTRA = "pip install 'pytest-queryeval[semantic]'"
_LIBRARIES = ("sentence-transformers", "transformers")  # their versions may change vectors, too
_MARKS = ("modules.json", "config.json")  # one of them is in each folder with a model
_ORGANIZATION = "sentence-transformers"  # whose models may be named without it
SETTING = "embedding_model"
_NAME_CHARACTERS = 300
_REASON_CHARACTERS = 300


class EmbeddingError(QueryEvalError):
    """A model that cannot be loaded, or cannot embed a text; never the fault of a query."""


def problem(model: str, reason: object) -> EmbeddingError:
    """Return the error about a model, with the model's name and the reason, both cut to a limit."""
    name = one_line(model, _NAME_CHARACTERS)
    return EmbeddingError(f"{SETTING} '{name}': {one_line(str(reason), _REASON_CHARACTERS)}")


def is_folder(model: str) -> bool:
    """Return whether a model is a folder rather than a name on the hub; raise `EmbeddingError` if it is neither."""
    try:
        is_directory = Path(model).is_dir()
    except (OSError, ValueError):  # a name that no folder can have
        is_directory = False
    if not is_directory and (model.startswith((".", "~", os.sep)) or model.count("/") > 1 or "\0" in model):
        raise problem(model, "no such folder")
    return is_directory


def identity(model: str) -> str | None:
    """Return a digest of everything that a model's vectors depend on; None if the model is not on this machine.

    For a folder this is the names and contents of its files. For a model of the hub it is its name and the commit in
    the local cache. Versions of the libraries are included. Raise `EmbeddingError` for a folder that cannot be read.
    """
    content = _content_digest(model) if is_folder(model) else _cached_commit(model)
    if content is None:
        return None
    facts = (*map(_version, _LIBRARIES), content)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _content_digest(model: str) -> str:
    digest, folder = hashlib.sha256(), Path(model)
    if not any((folder / mark).is_file() for mark in _MARKS):
        raise problem(model, f"the folder contains no model: there is neither {' nor '.join(_MARKS)}")
    try:
        files = []
        for parent, folders, names in os.walk(folder):  # without hidden ones such as those of version control
            folders[:] = [name for name in folders if not name.startswith(".")]
            files += [Path(parent, name) for name in names if not name.startswith(".")]
        for file in sorted(filter(Path.is_file, files)):
            digest.update(os.fsencode(file.relative_to(folder)) + b"\0")
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    except OSError as error:
        raise problem(model, f"the folder cannot be read: {error.strerror}: {error.filename}") from error
    return digest.hexdigest()


def _cached_commit(model: str) -> str | None:
    """Return `NAME@COMMIT` of the cached copy that the library loads without the hub; None if there is no copy."""
    for name in (f"{_ORGANIZATION}/{model}", model) if "/" not in model else (model,):
        reference = _hub_cache() / f"models--{name.replace('/', '--')}" / "refs" / "main"
        try:
            return f"{name}@{reference.read_text(encoding='ascii').strip()}"
        except (OSError, ValueError):
            continue
    return None


def _hub_cache() -> Path:
    """Return the folder where the hub's library keeps downloads, by the environment variables that it documents."""
    variables = os.environ
    for name in ("SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if variables.get(name):
            return Path(variables[name]).expanduser()
    cache = variables.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(variables.get("HF_HOME") or f"{cache}/huggingface").expanduser() / "hub"


class Model:
    """A loaded embedding model; `name` is a folder, or the name of a model on the hub.

    A folder, or a model in the hub's local cache, is loaded without the network. Any other model is downloaded. Code
    that comes with a model does not run. Raise `EmbeddingError` if a model cannot be loaded, or reads more than text.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._library = _load(name)
        # Texts are untrusted, and such a model fetches texts that look like the URL or the path of an image.
        if media := sorted(map(str, set(getattr(self._library, "modalities", ())) - _TEXT_ONLY)):
            raise problem(name, f"it reads more than text ({', '.join(media)}), and would load what a text names")

    def batches(self, texts: list[str]) -> Iterator[dict[int, bytes]]:
        """Yield batches of vectors by the index of their text.

        Vectors have unit length and are encoded as 4-byte little-endian floats. Texts with about the same number of
        tokens share a batch, so that little is padded; the longest texts come first. Raise `EmbeddingError` for a text
        that cannot be encoded.
        """
        tokens = self._attempt(self._token_counts, texts)
        places = sorted(range(len(texts)), key=lambda place: (tokens[place], len(texts[place])), reverse=True)
        start = 0
        while start < len(places):
            batch = places[start : start + max(BATCH_TOKENS // max(tokens[places[start]], 1), 1)]
            start += len(batch)
            vectors = self._attempt(self._encode, [texts[place] for place in batch])
            yield dict(zip(batch, vectors, strict=True))

    def _token_counts(self, texts: list[str]) -> list[int]:
        """Return how many tokens the model reads of each text; an estimate without a tokenizer of transformers."""
        from transformers import PreTrainedTokenizerBase

        tokenizer = getattr(self._library, "tokenizer", None)
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            return [len(text) // _CHARACTERS_A_TOKEN + 1 for text in texts]
        counts: list[int] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            batch = [text[:_COUNTED_CHARACTERS] for text in texts[start : start + _TEXTS_AT_ONCE]]
            counts += map(len, tokenizer(batch, verbose=False)["input_ids"])
        limit = self._library.max_seq_length or max(counts, default=0)
        return [min(count, limit) for count in counts]

    def _encode(self, texts: list[str]) -> list[bytes]:
        embeddings = self._library.encode(
            texts, batch_size=len(texts), show_progress_bar=False, normalize_embeddings=True
        )
        vectors = embeddings.astype("<f4")
        if not math.isfinite(float(abs(vectors).sum())):
            raise ValueError("the model gives a vector that is not finite")
        return [vector.tobytes() for vector in vectors]

    def _attempt(self, work: Callable[[list[str]], Result], texts: list[str]) -> Result:
        try:
            with _quiet():
                return work(texts)
        except Exception as error:  # the libraries raise errors of any type
            raise problem(self._name, f"a text cannot be encoded: {error}") from error


def _load(name: str) -> Library:
    """Return the loaded model: from this machine if it is there, else from the hub.

    Raise `EmbeddingError` if a folder has no usable model, or the model cannot be downloaded.
    """
    library = _import_library(name)
    try:
        with _quiet(), _without_bars(), _offline():
            return library(name, local_files_only=True)
    except Exception as error:  # of any type, here and below: files, formats, the network
        if is_folder(name):
            raise problem(name, f"the folder contains no model that can be loaded: {error}") from error
    try:
        with _quiet(), _without_bars():
            from huggingface_hub import constants, get_session

            # Ask once whether the hub answers; the library asks for several files, six times each.
            get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
            return library(name)
    except Exception as error:
        raise problem(
            name, f"it is not a folder, not in the local cache of models, and cannot be downloaded: {error}"
        ) from error


def _import_library(name: str) -> Any:
    try:
        with _quiet():
            from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise problem(name, f"needs sentence-transformers: {_EXTRA}") from error
    return SentenceTransformer


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide warnings and log lines of the libraries within the block; restore all settings afterwards."""
    loggers = {logger: logger.level for logger in map(logging.getLogger, _LOGGERS)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(_SILENT)
        try:
            yield
        finally:
            for logger, level in loggers.items():
                if logger.level == _SILENT:  # else a library imported meanwhile has set it
                    logger.setLevel(level)


@contextmanager
def _offline() -> Iterator[None]:
    """Keep the library from contacting the hub within the block; it would do so even if local files are enough."""
    from huggingface_hub import constants

    was_offline = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = was_offline


@contextmanager
def _without_bars() -> Iterator[None]:
    from transformers.utils import logging as bars

    bars_were_enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if bars_were_enabled:
            bars.enable_progress_bar()
