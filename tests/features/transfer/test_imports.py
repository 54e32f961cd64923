"""`queryeval import`: the rows of `imports.yaml`, which state what becomes of the files of each format.

A row has, next to the keys that `suite_tables` explains,

- `here`: the text for `<HERE>`, or files by name; a file `*.sqlite` is a database with a table `t (a, b)` of two rows,
- `import`: the arguments of the command, to which `-o out` is added,
- `cases`: the values of fields by their paths, as in `test_reading`, by the ids of all cases,
- `skipped`: the reasons by the ids of all records that are left out,
- `predictions`: the lines of the file of predictions,
- `refused`: instead of these, what the command says when it imports nothing.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import suite_tables
from test_reading import reached

from pytest_queryeval import load_cases
from pytest_queryeval.cli import main

ROWS = dict(suite_tables.rows("features/transfer"))


def write_database(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 'x')")


def write_files(files):
    for name in [name for name in files if name.endswith(".sqlite")]:
        write_database(Path(name))
    suite_tables.write_files({name: text for name, text in files.items() if not name.endswith(".sqlite")}, Path())


def imported(row, capsys):
    """What comes of a row, with the fields that it states."""
    write_files(suite_tables.filled(row["files"], row["here"]))
    try:
        status = main(["import", *row["import"].split(), "-o", "out", "--json"])
    except SystemExit:
        return {"refused": capsys.readouterr().err.removesuffix("\n").replace(str(Path.cwd()), "<FOLDER>")}
    output = json.loads(capsys.readouterr().out)
    cases = load_cases("out", root=Path("out"))
    assert output["cases"] == len(cases)
    assert status == (1 if output["skipped"] else 0)
    stated = row.get("cases", {})
    result = {"cases": {case.id: {path: reached(case, path) for path in stated.get(case.id, ())} for case in cases}}
    if output["skipped"]:
        result["skipped"] = {entry["id"]: entry["reason"] for entry in output["skipped"]}
    if Path("out/predictions.jsonl").exists():
        lines = Path("out/predictions.jsonl").read_text(encoding="utf-8").splitlines()
        result["predictions"] = [json.loads(line) for line in lines]
    return result


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name, marks=[pytest.mark.feature(*row["feature"].split())] if "feature" in row else [])
        for name, row in ROWS.items()
    ],
)
def test_files_of_a_format_become_cases_as_the_table_says(row, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    actual = imported(row, capsys)

    assert actual == {name: row[name] for name in ("cases", "skipped", "predictions", "refused") if name in row}
