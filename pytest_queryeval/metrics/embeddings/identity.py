"""The identity of a model, which keeps its vectors from those of other models; loads no library of models."""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_queryeval.metrics.embeddings.problem import problem

_LIBRARIES = ("sentence-transformers", "transformers")  # their versions may change vectors, too
_MARKS = ("modules.json", "config.json")  # one of them is in each folder with a model
_ORGANIZATION = "sentence-transformers"  # whose models may be named without it


def is_folder(model: str) -> bool:
    """Return whether a model is a folder rather than a name on the hub; raise `EmbeddingError` where it is neither."""
    try:
        is_directory = Path(model).is_dir()
    except (OSError, ValueError):  # a name that no folder can have
        is_directory = False
    if not is_directory and (model.startswith((".", "~", os.sep)) or model.count("/") > 1 or "\0" in model):
        raise problem(model, "no such folder")
    return is_directory


def identity(model: str) -> str | None:
    """Return a digest of all that a model's vectors depend on; None for a model that is not on this machine.

    These are the names and contents of the files of a folder, or the name of a model of the hub and its commit in the
    hub's local cache; and the versions of the libraries. Raise `EmbeddingError` for a folder that cannot be read.
    """
    content = _content(model) if is_folder(model) else _commit(model)
    if content is None:
        return None
    facts = (*map(_version, _LIBRARIES), content)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _content(model: str) -> str:
    digest, folder = hashlib.sha256(), Path(model)
    if not any((folder / mark).is_file() for mark in _MARKS):
        raise problem(model, f"the folder holds no model: there is neither {' nor '.join(_MARKS)}")
    try:
        for file in _files(folder):
            digest.update(os.fsencode(file.relative_to(folder)) + b"\0")
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    except OSError as error:
        raise problem(model, f"the folder cannot be read: {error.strerror}: {error.filename}") from error
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    """Return all files in the order of their names, without hidden ones such as those of version control."""
    files = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(parent, name) for name in names if not name.startswith(".")]
    return sorted(file for file in files if file.is_file())


def _commit(model: str) -> str | None:
    """Return the name and the commit of the copy that the library would load without asking the hub."""
    for name in (f"{_ORGANIZATION}/{model}", model) if "/" not in model else (model,):
        reference = _hub_cache() / f"models--{name.replace('/', '--')}" / "refs" / "main"
        try:
            return f"{name}@{reference.read_text(encoding='ascii').strip()}"
        except (OSError, ValueError):
            continue
    return None


def _hub_cache() -> Path:
    """Return the folder where the hub's library keeps what it fetched, by the variables that it documents."""
    variables = os.environ
    for name in ("SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if variables.get(name):
            return Path(variables[name]).expanduser()
    cache = variables.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(variables.get("HF_HOME") or f"{cache}/huggingface").expanduser() / "hub"
