"""RDF files as a store on disk: parsed once, then found again by their content."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from pytest_queryeval.core.cache_folder import KEPT_SECONDS, cache_folder, locked, private_folder
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.engines.files import file_digest
from pytest_queryeval.sandbox.child_process import run_program

# By suffix, with the names that pyoxigraph has for them.
FORMATS = {
    ".ttl": "TURTLE",
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
}
_BUILDER = Path(__file__).with_name("graph_build.py")


def graph_store(files: Sequence[Path], *, damaged: int | None = None) -> Path:
    """Return the folder of the store that holds all `files` together, made if there is none yet.

    It is made again if its inode is `damaged`: another process may have done that already. It is in the user's cache
    folder (XDG_CACHE_HOME) and is removed when it was not used for 30 days. Raises `SourceError` with the file, and the
    line of a syntax error.
    """
    with suppress(OSError):  # no home, or one that is full, not ours, or cannot be written, as is usual in containers
        return _stored_in(cache_folder("graphs"), files, damaged)
    try:
        private = private_folder()
    except OSError as error:
        raise SourceError(f"no folder to keep parsed graphs in: {error}") from error
    try:
        return _stored_in(private, files, damaged)
    except OSError as error:
        raise SourceError(f"no folder to keep parsed graphs in: {error.strerror}: {private}") from error


def _stored_in(cache: Path, files: Sequence[Path], damaged: int | None) -> Path:
    """Return the store, in a folder for stores; raises OSError where that cannot be used."""
    cache.mkdir(parents=True, exist_ok=True)
    store = cache / _key(files)
    with locked(cache / f"{store.name}.lock"):
        if store.is_dir() and store.stat().st_ino == damaged:
            shutil.rmtree(store, ignore_errors=True)
        is_new = not store.is_dir()
        if is_new:
            _build(files, store)
        os.utime(store)
    _drop_unused(cache)
    if is_new and store.name != _key(files):
        # A file changed while it was parsed: the store must not be found by the old content.
        shutil.rmtree(store, ignore_errors=True)
        return _stored_in(cache, files, damaged)
    return store


def _key(files: Sequence[Path]) -> str:
    """Return the name of a store: a digest of the files' formats and contents, and of the program that writes it."""
    digest = hashlib.sha256(version("pyoxigraph").encode())
    digest.update(_BUILDER.read_bytes())
    for file in files:
        digest.update(rdf_format(file).encode())
        digest.update(file_digest(file).encode())
    return digest.hexdigest()[:32]


def rdf_format(file: Path) -> str:
    """Return what pyoxigraph calls the format of a file; raises `SourceError` for an unknown suffix."""
    name = FORMATS.get(file.suffix.lower())
    if name is None:
        raise SourceError(f"{file}: cannot tell its RDF format: known suffixes are {', '.join(FORMATS)}")
    return name


def _build(files: Sequence[Path], store: Path) -> None:
    """Parse into a folder beside `store`, which gets its name once it is complete."""
    with tempfile.TemporaryDirectory(dir=store.parent, prefix="building-", ignore_cleanup_errors=True) as building:
        target = Path(building) / "store"
        entries = [f"{rdf_format(file)}={file}" for file in files]
        run_program("the parser of graphs", _BUILDER, ("pyoxigraph",), str(target), *entries)
        target.rename(store)


def _drop_unused(cache: Path) -> None:
    """Remove the stores that no run has used for a long time."""
    oldest = time.time() - KEPT_SECONDS
    for path in (path for path in cache.iterdir() if path.is_dir()):
        # Another process may be removing it too, or may just have begun to use it.
        with suppress(OSError), locked(cache / f"{path.stem}.lock", wait=False):
            if path.stat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)
