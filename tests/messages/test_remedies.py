"""Mistakes of users in `*.yaml` next to this file: a message names each, and its remedy, when applied, helps.

A file is a list of groups of rows. `files` are those that the rows of a group share: by name, with their texts, in
which `<HERE>` is the place that a row fills. A row has

- `mistake`: the text for `<HERE>`, or files by name; null removes a file,
- `message`: what the output contains; `<FOLDER>` is the current folder,
- `remedy`: like `mistake`, as the message proposes; its files are added to those of the mistake,
- `outcome`: what the output contains after the remedy; `1 passed`, and exit status 0, unless it is stated,
- `command`: what is run, `queryeval evaluate .` unless it is stated; the message is that of the last of several, which
  ` && ` separates,
- `then`: what is run after the remedy, if that is another command,
- `feature`: the features without which it is left out.

A group can have the last four for all of its rows.
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest
import suite_tables

from pytest_queryeval.cli import main

pytestmark = pytest.mark.feature("check", "evaluate")
PASSED = "1 passed"


class Row(NamedTuple):
    """A mistake, its message and its remedy."""

    files: Mapping[str, str]
    mistake: suite_tables.Change
    message: str
    remedy: suite_tables.Change
    outcome: str = PASSED
    command: str = "queryeval evaluate ."
    then: str = ""
    feature: str = ""


class Run(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    output: str


def run_with(files: Mapping[str, str | None], command: str, pytester: pytest.Pytester) -> Run:
    """Write the files, and return what a command returns and prints."""
    suite_tables.write_files(files, pytester.path)
    *first_commands, command = command.split(" && ")
    for first_command in first_commands:
        run_with({}, first_command, pytester)
    program, *arguments = shlex.split(command)
    if program == "pytest":
        result = pytester.runpytest_inprocess("-Wdefault::pytest_queryeval.QueryEvalWarning", *arguments)
        return Run(int(result.ret), "\n".join(result.outlines + result.errlines))
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            status = main(arguments)
        except SystemExit as error:  # options and suites that cannot be read
            status = int(error.code or 0)
    return Run(status, output.getvalue())


def apply_remedy(row: Row, pytester: pytest.Pytester) -> tuple[Run, Run]:
    """Return the runs with the mistake, and with its remedy."""
    before = suite_tables.filled(row.files, row.mistake)
    after = suite_tables.filled(row.files, row.remedy) if isinstance(row.remedy, str) else {**before, **row.remedy}
    return run_with(before, row.command, pytester), run_with(after, row.then or row.command, pytester)


ROWS = {name: Row(**row) for name, row in suite_tables.rows("messages")}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name, marks=[pytest.mark.feature(*row.feature.split())] if row.feature else [])
        for name, row in ROWS.items()
    ],
)
def test_a_mistake_is_named_and_its_remedy_helps(row, pytester, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")  # no line is cut
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file that is written again at once is compiled again
    message = row.message.replace("<FOLDER>", str(pytester.path))

    wrong, right = apply_remedy(row, pytester)

    assert message in wrong.output
    assert message not in right.output
    assert row.outcome in right.output
    assert row.outcome != PASSED or right.status == 0, right.output
