"""The rule on files below a folder: suites that pytest does not collect, because of their folder or their name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_queryeval.cli.conftests import CONFIGURATIONS
from pytest_queryeval.core.errors import Finding, nearest_file
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.suites import is_suite_file
from pytest_queryeval.suites.settings import FOLDER_FILE

if TYPE_CHECKING:
    from pytest_queryeval.features.check.suite_rules import Suites

RULE = "uncollected-suite"
# The default of pytest's `norecursedirs`, but for hidden folders, in which no command looks for suites.
NORECURSEDIRS = ("*.egg", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")
MAX_READ = 65_536  # characters of a file
_NAME = re.compile(r"(?P<stem>.+?)(?P<mark>\.queryeval)?(?P<suffix>\.(ya?ml|jsonl|ndjson|json))(\.txt)?", re.IGNORECASE)
_TOP_KEYS = re.compile(r"^(kind|sources?|predictor|metrics|thresholds|compare|cases)[ \t]*:", re.MULTILINE)
_LINE_KEYS = re.compile(r'"(id|gold|gold_any|gold_table|gold_file|question)"\s*:')


def uncollected_suites(checked: Suites) -> Iterator[Finding]:
    """Yield findings about suites in folders that pytest skips, such as `dist`, and files that should be named as one.

    Yield nothing if only a part of a folder is checked.
    """
    if checked.folder is None:
        return
    patterns = () if _sets_norecursedirs(checked.root) else NORECURSEDIRS
    suites = {levels.suite.path: levels.suite for levels in checked.cases}.values()
    reasons = {
        folder.path: folder.values.get("check", {}).get(RULE, "") for suite in suites for folder in suite.folders
    }
    for suite in suites:
        names = suite.path.relative_to(checked.folder).parts[:-1]
        if name := next((name for name in names if _is_skipped(name, patterns)), ""):
            message = f"pytest skips folders named '{name}': rename it, or set its `norecursedirs`"
            silenced = suite.values.get("check", {}).get(RULE, "")
            yield Finding(rule=RULE, location=file_at(suite.path).location(), message=message, silenced=silenced)
    for path in _files_below(checked.folder, patterns):
        if path.is_symlink() and not path.suffix and not path.exists():
            message = f"may be a link to a folder of suites{nearest_file(path)}"
        elif not is_suite_file(path) and (name := _suite_name(path)):
            message = f"looks like a suite, and no command reads it: rename it to {name}"
        else:
            continue
        silenced = next(filter(None, map(reasons.get, path.parents)), "")
        yield Finding(rule=RULE, location=file_at(path).location(), message=message, silenced=silenced)


def _files_below(folder: Path, patterns: Collection[str]) -> Iterator[Path]:
    """Yield the files below a folder, except in hidden folders, skipped folders, and Python environments."""
    for parent, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not _is_skipped(name, patterns))
        yield from (Path(parent, name) for name in sorted(names))


def _is_skipped(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _sets_norecursedirs(root: Path) -> bool:
    for name in CONFIGURATIONS:
        with suppress(OSError):
            if "norecursedirs" in (root / name).read_text(encoding="utf-8", errors="replace"):
                return True
    return False


def _suite_name(path: Path) -> str:
    """Return the name that a file needs to be collected as a suite; empty if its content is not that of a suite."""
    match = _NAME.fullmatch(path.name)
    if match is None or path.name.lower() in (FOLDER_FILE, "queryeval.yml") or path.name.startswith("."):
        return ""
    stem, suffix = match["stem"], match["suffix"].lower()
    if suffix in (".yaml", ".yml"):
        keys = {match[1] for match in _TOP_KEYS.finditer(_beginning(path))}
        return f"{stem}.queryeval{suffix}" if "cases" in keys and len(keys) > 1 else ""
    if suffix == ".json":  # which YAML includes
        return f"{stem}.queryeval.yaml" if match["mark"] and '"schema"' not in _beginning(path) else ""
    keys = {match[1] for match in _LINE_KEYS.finditer(_beginning(path).partition("\n")[0])}
    return f"{stem}.queryeval.jsonl" if "id" in keys and keys & {"gold", "gold_any", "gold_table"} else ""


def _beginning(path: Path) -> str:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MAX_READ)
    return ""
