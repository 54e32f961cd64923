"""The state of a source: what tells an answer of today from one that the same query had before."""

from __future__ import annotations

import hashlib
import stat
from functools import lru_cache
from pathlib import Path

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.settings import VERSION, absolute

_HEX_DIGITS = 32
_KEPT_DIGESTS = 4_096
MAX_BYTES = 256 * 2**20


def state_of(source: Source) -> str:
    """Return a digest of the contents of the source's files, then the `version` that the suite states, if any.

    32 hexadecimal digits, which depend on no path and no time; files are read again only where they were changed. For a
    source without files, such as a server, it is `version …` alone. Raises `SourceError` where such a source has no
    version, and for files that cannot be read.
    """
    version = _version(source)
    fingerprint = ENGINES[source.engine].fingerprint
    try:
        names = fingerprint.files(source)
        contents = [_content(absolute(source.folder, name), name, fingerprint.log) for name in names]
    except SourceError as error:
        raise SourceError(f"source '{source.name}': {error}") from error
    if not contents and not version:
        raise SourceError(
            f"source '{source.name}': its answers can be recorded only with a `version`, which names the state of its "
            "data: nothing else tells when they change"
        )
    digest = [hashlib.sha256("\n".join(contents).encode()).hexdigest()[:_HEX_DIGITS]] if contents else []
    return " ".join([*digest, *version])


def known_state(source: Source) -> str | None:
    """`state_of` a source; None where it costs much, for files of more than MAX_BYTES together, and where it fails."""
    try:
        names = ENGINES[source.engine].fingerprint.files(source)
        if sum(absolute(source.folder, name).stat().st_size for name in names) > MAX_BYTES:
            return None
        return state_of(source)
    except (SourceError, OSError, ValueError):
        return None


def _version(source: Source) -> list[str]:
    version = source.settings.get(VERSION)
    if version is None:
        return []
    if isinstance(version, bool | list | dict) or not str(version).strip():
        raise SourceError(f"source '{source.name}': 'version' is neither a text nor a number")
    return [f"version {version}"]


def _content(file: Path, name: str, log: str) -> str:
    """Return what tells the contents of one file, and its format, which its suffix names."""
    log_file = Path(f"{file}{log}")
    logged = _digest(log_file) if log and log_file.exists() else ""
    return f"{Path(name).suffix.lower()} {_digest(file)} {logged}"


def _digest(file: Path) -> str:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise SourceError(f"{file}: {'a directory, not a file' if file.is_dir() else 'not a regular file'}")
        return _digest_of(file, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None) or error
        raise SourceError(f"{file}: {reason}") from error


@lru_cache(maxsize=_KEPT_DIGESTS)
def _digest_of(file: Path, *_: int) -> str:
    """Return the digest of a file; the numbers are those that change when it is written to."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
