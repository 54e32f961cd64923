"""The state of a source: as long as it is the same, a query has the same answer."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES, prefix_source_errors
from pytest_queryeval.engines.settings import VERSION, absolute, file_digest, require_file, variants_of

MAX_BYTES = 256 * 2**20
_HEX_DIGITS = 32
_KEPT_DIGESTS = 4_096


def state_of(source: Source) -> str:
    """Return a digest of the contents of the source's files, then the `version` of its settings, if it has one.

    The digest has 32 hexadecimal digits, which depend on no path and no time; files are read again only after they
    changed. For a source without files, such as a server, it is `version …` alone. Raises `SourceError` if such a
    source has no version, and for files that cannot be read.
    """
    with prefix_source_errors(f"source '{source.name}'"):
        version = source.settings.get(VERSION)
        if isinstance(version, bool | list | dict) or not str(version).strip():
            raise SourceError("'version' is neither a text nor a number")
        fingerprint = ENGINES[source.engine].fingerprint
        contents = []
        for name in fingerprint.files(source):
            file = absolute(source.folder, name)
            log = Path(f"{file}{fingerprint.wal_suffix}")
            log_digest = _digest(log) if fingerprint.wal_suffix and log.exists() else ""
            # The suffix names the format.
            contents.append(f"{Path(name).suffix.lower()} {_digest(file)} {log_digest}")
        if not contents and version is None:
            raise SourceError(
                "its answers can be recorded only with a `version`, which names the state of its data: nothing else "
                "tells when they change"
            )
    digest = [hashlib.sha256("\n".join(contents).encode()).hexdigest()[:_HEX_DIGITS]] if contents else []
    return " ".join([*digest, *([] if version is None else [f"version {version}"])])


def known_state(source: Source) -> str | None:
    """Return `state_of` a source, or a digest of its state and those of its variants.

    None if the files have more than MAX_BYTES together, and if it fails.
    """
    try:
        sources = [source, *variants_of(source)]
        files = [
            absolute(database.folder, name)
            for database in sources
            for name in ENGINES[database.engine].fingerprint.files(database)
        ]
        if sum(file.stat().st_size for file in files) > MAX_BYTES:
            return None
        state, *variant_states = map(state_of, sources)
        if not variant_states:
            return state
        return hashlib.sha256("\n".join([state, *variant_states]).encode()).hexdigest()[:_HEX_DIGITS]
    except (SourceError, OSError, ValueError):
        return None


def _digest(file: Path) -> str:
    status = require_file(file)
    return _digest_of(file, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@lru_cache(maxsize=_KEPT_DIGESTS)
def _digest_of(file: Path, *_: int) -> str:
    """Return the digest of a file; the numbers are those that change when it is written to."""
    return file_digest(file)
