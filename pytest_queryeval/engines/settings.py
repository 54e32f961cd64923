"""Settings of sources: their check, the files that they name, the variants of a database, and the state of a source.

As long as the state of a source is the same, a query has the same answer.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pytest_queryeval.core.errors import SourceError, nearest_file
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.shapes import STRING, SettingValidator, is_mapping, is_text, validate_settings
from pytest_queryeval.engines import ENGINES, prefix_source_errors

# Names the state of a live source; every source may have it.
VERSION = "version"
MAX_STATE_BYTES = 256 * 2**20
_HEX_DIGITS = 32
_KEPT_DIGESTS = 4_096


TABLES = SettingValidator(
    lambda value: is_mapping(value) and bool(value),
    "a mapping of names of tables to names of files",
    names_files=True,
    shape={"type": "object", "additionalProperties": STRING, "minProperties": 1},
)


def check_settings(settings: Mapping[str, JsonValue], validators: Mapping[str, SettingValidator]) -> None:
    """Raise `SettingError` for the first setting that is unknown or invalid; every source may also have a VERSION."""
    validate_settings(excluding(settings, [VERSION]), validators)


def absolute(folder: Path, name: str) -> Path:
    """Return the absolute path of the file `name`, relative to `folder`, with all links followed; it need not exist.

    Raise `SourceError` for a name that the locale cannot express.
    """
    try:
        return Path(os.path.realpath(folder / name))
    except UnicodeEncodeError as error:
        raise SourceError(f"{name!a}: not a file name in this locale ({error.encoding}): set PYTHONUTF8=1") from error


def file_path(source: Source, setting: str) -> Path:
    """Return the absolute path of the file that a setting of the source names.

    Raise `SourceError` as `absolute` does.
    """
    return absolute(source.folder, source.settings[setting])


def check_exists(source: Source, name: str) -> None:
    """Raise `SourceError` if a source's file does not exist; the message suggests a similar file or another remedy."""
    path = absolute(source.folder, name)
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that no file can have
        near = nearest_file(path)
        remedy = near or f": correct the path, which is relative to {source.folder}"
        if not near and "script" in (ENGINES[source.engine].settings or {}) and "script" not in source.settings:
            remedy += f", or name a script that builds the database: {{{source.engine}: {{script: FILE}}}}"
        raise SourceError(f"source '{source.name}': {path}: no such file{remedy}")


def require_file(file: Path) -> os.stat_result:
    """Return the status of a file; raise `SourceError` if it does not exist or is no regular file."""
    try:
        status = file.stat()
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(
            f"{file}: {'a directory, not a file' if stat.S_ISDIR(status.st_mode) else 'not a regular file'}"
        )
    return status


def file_digest(file: Path) -> str:
    """Return the SHA-256 digest of a file's content in hexadecimal digits; raise `SourceError` if it cannot be read."""
    require_file(file)
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: OSError | ValueError) -> SourceError:
    reason = "no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None) or error
    return SourceError(f"{file}: {reason}")


VARIANTS = "variants"
VARIANTS_SETTING = SettingValidator(is_text, "a pattern of file names, such as variants/*.sqlite", True, shape=STRING)


def variants_of(source: Source) -> list[Source]:
    """Return the variants of a source, by the pattern in its setting `variants`, sorted by file name.

    The list is empty without that setting. The pattern is relative to the source's folder, and `**` matches any
    folders. The engine's `VariantFormat` makes settings from a file name. Raise `SourceError` for a pattern that
    matches no file.
    """
    pattern = source.settings.get(VARIANTS)
    if pattern is None:
        return []
    names = sorted(glob.glob(pattern, root_dir=source.folder, recursive=True))  # noqa: PTH207 - Path.glob raises for an absolute pattern
    if not names:
        raise SourceError(
            f"source '{source.name}': no file matches the variants '{pattern}' in {source.folder}: correct the pattern"
        )
    return [
        Source(
            name=name,
            engine=source.engine,
            settings=dict(ENGINES[source.engine].variants.settings(source.settings, name)),
            folder=source.folder,
            location=source.location,
            rewriter=source.rewriter,
        )
        for name in names
    ]


def state_of(source: Source) -> str:
    """Return a text that changes with the data of a source: a digest of its files, then its `version`, if it has one.

    The digest has 32 hexadecimal digits and depends on no path and no time; files are read again only after a change.
    For a source without files, such as a server, the text is `version …` alone. Raise `SourceError` if such a source
    has no version, if the version is invalid, and for files that cannot be read.
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
                "shows when they change"
            )
    digest = [hashlib.sha256("\n".join(contents).encode()).hexdigest()[:_HEX_DIGITS]] if contents else []
    return " ".join([*digest, *([] if version is None else [f"version {version}"])])


def known_state(source: Source) -> str | None:
    """Return the state of a source, or for a source with variants a digest of all their states; None if unknown.

    It is unknown if the files have more than MAX_STATE_BYTES together, and if they cannot be read.
    """
    try:
        sources = [source, *variants_of(source)]
        files = [
            absolute(database.folder, name)
            for database in sources
            for name in ENGINES[database.engine].fingerprint.files(database)
        ]
        if sum(file.stat().st_size for file in files) > MAX_STATE_BYTES:
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
    """Return the digest of a file.

    The numbers, which change when the file is written, are only part of the cache's key.
    """
    return file_digest(file)
