"""What is read of suites: the tables in `reading/*.yaml`, of which each row states fields of cases, or all problems.

A row has, next to the keys that `suite_tables` explains,

- `here`: the text for `<HERE>`, or files by name,
- `case`, or `cases` for several: the values of fields by their paths, such as `settings.timeout`; of an object, those
  fields that are not as they are by default,
- `problems`: the lines of the error, all of them; `<FOLDER>` is the current folder,
- `feature`: the feature without which it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

import pytest
import suite_tables
from suites import enter

from pytest_queryeval import load_cases
from pytest_queryeval.core.errors import Location, SuiteError

TABLES = dict(suite_tables.rows("reading"))


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def plain(value):
    """The value as YAML can state it."""
    if isinstance(value, Path):
        return Path(value).resolve().relative_to(Path.cwd()).as_posix()
    if isinstance(value, Location):
        return str(value)
    if is_dataclass(value):
        stated = {field.name: getattr(value, field.name) for field in fields(value) if field.compare and field.init}
        return {name: plain(inner) for name, inner in stated.items() if inner != default(value, name)}
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def default(value, name):
    (field,) = (field for field in fields(value) if field.name == name)
    return MISSING if field.default_factory is MISSING and field.default is MISSING else field.default


def reached(value, path):
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value[name]
        else:
            value = value[int(name)] if name.isdigit() else getattr(value, name)
    return plain(value)


def read(row):
    """What a row says, as it is read."""
    suite_tables.write_files(suite_tables.filled(row["files"], row["here"]), Path())
    try:
        cases = load_cases(".")
    except SuiteError as error:
        return {"problems": str(error).replace(str(Path.cwd()), "<FOLDER>").split("\n")}
    expected = row.get("cases", [row.get("case", {})])
    return {"cases": [{path: reached(case, path) for path in of} for case, of in zip(cases, expected, strict=True)]}


def stated(row):
    return {"problems": row["problems"]} if "problems" in row else {"cases": row.get("cases", [row.get("case")])}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name, marks=[pytest.mark.feature(*row["feature"].split())] if "feature" in row else [])
        for name, row in TABLES.items()
    ],
)
def test_suites_are_read_as_the_tables_say(row):
    assert read(row) == stated(row)
