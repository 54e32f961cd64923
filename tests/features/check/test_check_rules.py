"""What `queryeval check` says of suites: the rows of `rules.yaml`, each with all lines of the output but the last one.

A row has, next to the keys that `suite_tables` explains, `here`, the text for `<HERE>` or files by name, `options` of
the command, and `says`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import suite_tables

from pytest_queryeval.cli import main

ROWS = dict(suite_tables.rows("features/check"))


def output(row, capsys):
    suite_tables.write_files(suite_tables.filled(row["files"], row["here"]), Path())
    main(["check", ".", *row.get("options", "").split()])
    *lines, summary = capsys.readouterr().out.replace(str(Path.cwd()), "<FOLDER>").splitlines()
    assert "error" in summary
    return lines


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name, marks=[pytest.mark.feature(*row["feature"].split())] if "feature" in row else [])
        for name, row in ROWS.items()
    ],
)
def test_check_says_what_the_table_says(row, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert output(row, capsys) == row["says"]
