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
from subprocess import DEVNULL, run

from pytest_queryeval.core.cache_folder import KEPT_SECONDS, cache_folder, locked, private_folder
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.sandbox.child_process import child_command
from pytest_queryeval.text.plain import one_line

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

    It is made anew if its inode is that of the `damaged` one: another process may have been faster. It lies in the
    user's cache folder (XDG_CACHE_HOME) and is dropped when it was not used for 30 days. Raises `SourceError` with the
    place of what is wrong with a file.
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
        # A file changed while it was parsed: it must not be found under the name of what it was.
        shutil.rmtree(store, ignore_errors=True)
        return _stored_in(cache, files, damaged)
    return store


def _key(files: Sequence[Path]) -> str:
    """Return what tells a store from others: the files' formats and contents, and what wrote it."""
    digest = hashlib.sha256(version("pyoxigraph").encode())
    digest.update(_BUILDER.read_bytes())
    for file in files:
        digest.update(rdf_format(file).encode())
        digest.update(_content_digest(file))
    return digest.hexdigest()[:32]


def rdf_format(file: Path) -> str:
    """Return what pyoxigraph calls the format of a file; raises `SourceError` for an unknown suffix."""
    name = FORMATS.get(file.suffix.lower())
    if name is None:
        raise SourceError(f"{file}: cannot tell its RDF format: known suffixes are {', '.join(FORMATS)}")
    return name


def _content_digest(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise SourceError(f"{file}: {'a directory, not a file' if file.is_dir() else 'not a regular file'}")
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise SourceError(f"{file}: {reason}") from error


def _build(files: Sequence[Path], store: Path) -> None:
    """Parse into a folder beside `store`, which gets its name once it is whole."""
    with tempfile.TemporaryDirectory(dir=store.parent, prefix="building-", ignore_cleanup_errors=True) as building:
        target = Path(building) / "store"
        entries = [f"{rdf_format(file)}={file}" for file in files]
        command = child_command(_BUILDER, ("pyoxigraph",), str(target), *entries)
        try:
            done = run(command, stdin=DEVNULL, capture_output=True, check=False)  # noqa: S603 - our own interpreter
        except OSError as error:
            raise SourceError(f"the parser of graphs does not start: {error}") from error
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").split("\n")
            said = next(
                (line for line in reversed(lines) if line.strip()), f"the parser died with status {done.returncode}"
            )
            raise SourceError(one_line(said, 1_000))
        target.rename(store)


def _drop_unused(cache: Path) -> None:
    """Remove what no run has used for a long time."""
    oldest = time.time() - KEPT_SECONDS
    for path in (path for path in cache.iterdir() if path.is_dir()):
        # Another process may be at the same work, or may just have begun to use the store.
        with suppress(OSError), locked(cache / f"{path.stem}.lock", wait=False):
            if path.stat().st_mtime < oldest:
                shutil.rmtree(path, ignore_errors=True)
