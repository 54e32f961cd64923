"""RDF files as a store on disk: parsed once, then looked up by their content."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.files import KEPT_SECONDS, cache_folder, locked, private_folder
from pytest_queryeval.engines.settings import file_digest
from pytest_queryeval.sandbox.host import run_program

# By suffix, with the names that pyoxigraph has for them.
RDF_FORMATS = {
    ".ttl": "TURTLE",
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
}
COMPRESSED = ".gz"
# Formats that name graphs themselves.
_DATASETS = ("N_QUADS", "TRIG")
_BUILDER = Path(__file__).with_name("graph_build.py")
_BUILDING = ".building"  # the suffix of the folder of a store that is not complete


@dataclass(frozen=True, slots=True)
class GraphFile:
    """An RDF file, perhaps compressed by gzip."""

    path: Path
    graph: str | None = None
    """The named graph that all its triples go to; None to keep the graphs of the file."""

    @property
    def format(self) -> str:
        """Pyoxigraph's name of the file's format; raises `SourceError` for an unknown suffix.

        Also raises `SourceError` for a format that names graphs itself, if `graph` is set.
        """
        path = self.path
        suffix = (path.with_suffix("") if path.suffix.lower() == COMPRESSED else path).suffix.lower()
        if suffix not in RDF_FORMATS:
            hint = f"known suffixes are {', '.join(RDF_FORMATS)}, each perhaps followed by {COMPRESSED}"
            raise SourceError(f"{path}: cannot tell its RDF format: {hint}")
        if self.graph and RDF_FORMATS[suffix] in _DATASETS:
            raise SourceError(f"{path}: {suffix} names graphs itself: list the file under `rdf`, not under `graphs`")
        return RDF_FORMATS[suffix]


def names_graphs(name: str) -> bool:
    """Return whether the format of a file, by its name, is one that names graphs itself."""
    return RDF_FORMATS.get(Path(name.lower().removesuffix(COMPRESSED)).suffix) in _DATASETS


def graph_store(files: Sequence[GraphFile], *, damaged_inode: int | None = None) -> Path:
    """Return the folder of the store that contains all `files` together; parse the files if there is no such store.

    A store whose inode is `damaged_inode` is built again, unless another process has already replaced it. Stores are in
    the user's cache folder (XDG_CACHE_HOME), and are removed after 30 days without use. Raise `SourceError` with the
    file, and with the line of a syntax error.
    """
    with suppress(OSError):  # no home, or one that is full, not ours, or cannot be written, as is usual in containers
        return _store_in(cache_folder("graphs"), files, damaged_inode)
    try:
        private = private_folder()
    except OSError as error:
        raise SourceError(f"no folder to keep parsed graphs in: {error}") from error
    try:
        return _store_in(private, files, damaged_inode)
    except OSError as error:
        raise SourceError(f"no folder to keep parsed graphs in: {error.strerror}: {private}") from error


def _store_in(cache: Path, files: Sequence[GraphFile], damaged_inode: int | None) -> Path:
    """Return the store of these files in the folder `cache`, built if needed; remove old stores there.

    Raise OSError if the folder cannot be used, and `SourceError` for a file that cannot be parsed.
    """
    cache.mkdir(parents=True, exist_ok=True)
    store = cache / _store_name(files)
    with locked(cache / f"{store.name}.lock"):
        if store.is_dir() and store.stat().st_ino == damaged_inode:
            shutil.rmtree(store, ignore_errors=True)
        is_new = not store.is_dir()
        if is_new:
            # Parsed in a folder next to it, which gets its name once it is complete.
            building = store.with_suffix(_BUILDING)
            shutil.rmtree(building, ignore_errors=True)  # of a process that was killed
            try:
                entries = [json.dumps([str(file.path), file.format, file.graph]) for file in files]
                run_program("the parser of graphs", _BUILDER, ("pyoxigraph",), str(building), *entries)
                building.rename(store)
            finally:
                shutil.rmtree(building, ignore_errors=True)
        os.utime(store)
    oldest = time.time() - KEPT_SECONDS
    for path in [path for path in cache.iterdir() if path.is_dir()]:
        # Another process may be removing it too, or may just have begun to use it.
        with suppress(OSError), locked(cache / f"{path.stem}.lock", wait=False):
            if path.suffix == _BUILDING or path.stat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)
    if is_new and store.name != _store_name(files):
        # A file changed while it was parsed: the store must not be found by the old content.
        shutil.rmtree(store, ignore_errors=True)
        return _store_in(cache, files, damaged_inode)
    return store


def _store_name(files: Sequence[GraphFile]) -> str:
    """Return the name of a store's folder: a digest of the files' formats and contents, and of the parser."""
    digest = hashlib.sha256(version("pyoxigraph").encode())
    digest.update(_BUILDER.read_bytes())
    for file in files:
        digest.update(f"{file.format} {file.path.suffix.lower() == COMPRESSED} {file.graph or ''} ".encode())
        digest.update(file_digest(file.path).encode())
    return digest.hexdigest()[:32]
