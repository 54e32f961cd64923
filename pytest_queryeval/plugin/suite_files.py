"""The suite files that pytest would collect; gates count their cases even in runs of other files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.suites.suites import is_suite_file

if TYPE_CHECKING:
    import pluggy


def collected_below(folder: Path, session: pytest.Session) -> Iterator[Path]:
    """Yield the suite files that pytest would collect below a folder, including those that --ignore excludes."""
    for place, folders, names in os.walk(folder, followlinks=True):
        hook = session.gethookproxy(Path(place))
        folders[:] = [name for name in folders if _is_collected(Path(place, name), session.config, hook)]
        paths = [path for name in names if is_suite_file(path := Path(place, name))]
        yield from (path for path in paths if _is_collected(path, session.config, hook))


def _is_collected(path: Path, config: pytest.Config, hook: pluggy.HookRelay) -> bool:
    """Return whether pytest collects a path, or would but for --ignore or --ignore-glob."""
    if not hook.pytest_ignore_collect(collection_path=path, config=config):
        return True

    def absolute(name: str) -> str:
        return os.path.abspath(config.invocation_params.dir / name)  # noqa: PTH100 - as pytest reads them

    names, patterns = config.option.ignore or (), config.option.ignore_glob or ()
    return str(path) in map(absolute, names) or any(fnmatch(str(path), absolute(pattern)) for pattern in patterns)
