"""Writes a first suite with its settings, a predictor to edit, a pytest.ini and a CI workflow, which pass at once.

With --from FILE the suite is that of your own test set, whose fields and database are found; else it is an example.
Files that exist are kept; where a folder has a suite of yours already, only what belongs around it is written.
Without any option it asks, if it is run on a terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pytest_queryeval.cli.conftests import configures_pytest
from pytest_queryeval.cli.output import Result
from pytest_queryeval.core.errors import MissingFeatureError, QueryEvalError
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.suites import suites_below
from pytest_queryeval.suites.editor_schema import SCHEMA_FILES, schema_comment, schema_text

EXAMPLE = "queryeval init queries --kind sql --predictor python --ci github"
OK = 0
STARTER = Path(__file__).with_name("files")
SUITE, SETTINGS, ANSWERS, PREDICTOR = "books.queryeval.yaml", "queryeval.yaml", "answers.jsonl", "predict.py"
CI_FILES = {"github": ".github/workflows/queries.yml", "gitlab": ".gitlab-ci.yml"}
# The first of each is the default.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": ("sql", "sparql", "json", "sdmx"),
    "predictor": ("python", "file", "command"),
    "ci": ("github", "gitlab", "none"),
}
QUESTIONS = {
    "kind": "What does your system write?",
    "predictor": "How is it called: a Python function, a file with its answers, a program?",
    "ci": "Which CI service runs the suite?",
}
_PYTEST_INI = """\
[pytest]
# Node ids begin at the folder of this file, wherever pytest is started: reports are compared by them.
# Each run writes the page reports/report.html, and reports/report.json, with which a later run can be compared; a run
# with the option --queryeval-report writes there instead.
queryeval_report = reports
"""
_CI_FOLDER = re.compile(r"[\w./-]+", re.ASCII)
# The folders that a workflow of this command runs, also where it was edited since.
_FOLDERS_RUN = re.compile(r"(?<=\bpytest )[\w./ -]+(?= --queryeval-report=reports)", re.ASCII)

_SETTINGS_TEXT = """\
# Settings of all suites in this folder and below.
{predictor}

# What all cases must reach together. Set it to what your system reaches today, and raise it as that improves.
gates:
  - {{metric: pass_rate, min: 1.0}}

# With `on_miss: xfail` a single wrong answer does not fail the run, and the gates alone decide.
# on_miss: xfail
"""
_PREDICTORS = {
    "python": "predictor: predict.py:predict  # or my_package.module:function",
    "file": "predictor: answers.jsonl  # what your system has answered: {id, predicted} in each line",
    "command": """\
predictor:
  command: [python3, predict.py]  # your program: it reads a case as JSON from stdin and prints the answer
  timeout: 60                     # seconds for one case""",
}
_FUNCTION = '''\
"""The predictor of the suites in this folder: replace ANSWERS by the call of your system."""

ANSWERS = {answers}


def predict(case):
    """Return the answer to one case, as your model writes it.

    A code block around it is removed, and a label or sentences before a query; prose after a query is not.
    `case.question` and `case.evidence` are what is asked, `case.schema` holds the tables of a database; there are also
    `case.id`, `case.kind`, `case.dialect`, `case.conversation` and `case.metadata`. The right answer is not among them.
    """
    return ANSWERS[case.id]
'''
_PROGRAM = '''\
"""The system under test as a program: replace ANSWERS by the call of your system."""

import json
import sys

ANSWERS = {answers}

case = json.load(sys.stdin)  # id, question, evidence and more, never the right answer
sys.stdout.write(ANSWERS[case["id"]])
'''


class _Choices(NamedTuple):
    """The user's choices; their values are among CHOICES."""

    kind: str
    predictor: str
    ci: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: the folder, the choices, and the test set of the user."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="the folder of the suite; default: ."
    )
    for name, choices in CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices, help=f"{QUESTIONS[name]} Default: {choices[0]}")
    own = "your test set: a table, JSON, YAML or TOML; its fields and the database next to it are found"
    parser.add_argument("--from", dest="from_file", type=Path, metavar="FILE", help=own)
    with suppress(MissingFeatureError):
        feature("transfer.importers.command").add_reading_options(parser.add_argument_group("with --from"))
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace files that exist, which are kept otherwise; a workflow that runs other folders runs this one too",
    )


def run(arguments: argparse.Namespace) -> Result:
    """Write the files that are missing, or with --force all of them, and return their names.

    On a terminal without options, ask for the choices. Raise `QueryEvalError` for options that do not fit each other,
    and for a file that cannot be written.
    """
    chosen_options = {name: getattr(arguments, name) for name in CHOICES}
    is_own = arguments.from_file is not None
    is_interactive = (
        sys.stdin is not None and sys.stdin.isatty() and not arguments.json and not any(chosen_options.values())
    ) and not is_own
    choices = _Choices(
        **{
            name: chosen_options[name] or (_ask_choice(name) if is_interactive else CHOICES[name][0])
            for name in CHOICES
        }
    )
    if arguments.folder.is_file():
        raise QueryEvalError(f"{arguments.folder}: is a file: name a folder")
    _check_options(arguments)
    around = _files_around(arguments.folder, choices.ci)  # first, since it refuses names of folders
    own = feature("transfer.importers.starting").start(arguments, arguments.folder) if is_own else None
    contents = around if is_own else _example_files(arguments.folder, choices) | around
    files = {file_at(path).shown: text for path, text in contents.items()}
    command = shlex.join(["pytest", str(arguments.folder)])
    kept = [] if arguments.force else [path for path in files if os.path.lexists(path)]
    written = [path for path in files if path not in kept]
    for path in written:
        try:
            write_atomically(path, files[path].encode(), keep_existing=not arguments.force)
        except OSError as error:
            raise QueryEvalError(f"{path}: cannot be written: {error.strerror or error}") from error
    lines = [*(f"file: {path}" for path in written), *(_kept_line(path, files[path], command) for path in kept)]
    paths_by_name = {path.name: path for path in files}
    system = next((paths_by_name[name] for name in (PREDICTOR, ANSWERS) if name in paths_by_name), None)
    todo = [f"then edit {paths_by_name[SUITE]} (your questions) and {system} (your system)"] if system else []
    data = {"files": [str(path) for path in written], "kept": [str(path) for path in kept], "run": command}
    if own is not None:
        return Result(status=own.status, lines=[*own.lines, *lines, f"run it: {command}"], data={**own.data, **data})
    return Result(status=OK, lines=[*lines, f"run it: {command}", *todo], data=data)


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise `QueryEvalError` for options that need `--from`, and for options that do not fit it."""
    options = {
        "--source": "database",
        **{f"--{name}": name for name in ("databases", "map", "records", "split", "delimiter", "sheet")},
        "--header-row": "header_row",
    }
    stray = next((option for option, name in options.items() if getattr(arguments, name, None)), "")
    if arguments.from_file is None and stray:
        raise QueryEvalError(f"{stray} is about a test set of your own: add --from FILE")
    if arguments.from_file is not None and arguments.predictor == "command":
        raise QueryEvalError("--predictor command is about the example: with --from, choose python or file")


def _kept_line(path: Path, text: str, command: str) -> str:
    """Return the line about an existing file; if it is a workflow without `command`, the line says to add it."""
    existing = text
    if any(path.name == Path(name).name for name in CI_FILES.values()):
        with suppress(OSError):
            existing = path.read_text(encoding="utf-8", errors="replace")
    remedy = "" if existing == text or command in existing else f": add `{command}` to it, or let --force add it"
    return f"kept: {path}, which exists{remedy}"


def _ask_choice(name: str) -> str:
    """Ask until the user names one of the choices, and return it; an empty answer means the default.

    Raise `QueryEvalError` at the end of the input.
    """
    choices = CHOICES[name]
    while True:
        try:
            answer = input(f"{QUESTIONS[name]} [{choices[0]}] {', '.join(choices)}: ").strip() or choices[0]
        except EOFError as error:
            raise QueryEvalError(f"no answer: choose by --{name}") from error
        if answer in choices:
            return answer


def _example_files(folder: Path, choices: _Choices) -> dict[Path, str]:
    """Return the files of the example by their paths: a suite, its settings, a predictor and schemas.

    If the folder has other suites, return only the schemas.
    """
    starter = {path.name: path.read_text(encoding="utf-8") for path in sorted((STARTER / choices.kind).iterdir())}
    answers = starter.pop(ANSWERS)
    files = {SUITE: schema_comment("suite") + starter.pop(SUITE), **starter}
    files[SETTINGS] = schema_comment("settings") + _SETTINGS_TEXT.format(predictor=_PREDICTORS[choices.predictor])
    if any(path.name != SUITE for path in suites_below(folder)):
        files = {}
    elif choices.predictor == "file":
        files[ANSWERS] = answers
    else:
        text = _FUNCTION if choices.predictor == "python" else _PROGRAM
        # JSON strings are Python strings as well.
        lines = [
            f"    {json.dumps(entry['id'])}: {json.dumps(entry['predicted'])},"
            for entry in map(json.loads, answers.splitlines())
        ]
        files[PREDICTOR] = text.format(answers="\n".join(["{", *lines, "}"]))
    files |= {SCHEMA_FILES["suite"]: schema_text("suite"), SCHEMA_FILES["settings"]: schema_text("settings")}
    return {folder / name: text for name, text in files.items()}


def _files_around(folder: Path, ci: str) -> dict[Path, str]:
    """Return the files around a suite by their paths: a pytest.ini unless pytest has settings, and a CI workflow.

    There is no workflow if `ci` is 'none'. Raise `QueryEvalError` if the workflow cannot name the folder.
    """
    contents: dict[Path, str] = {}
    # The root is the repository that holds the folder, else the current folder if that holds it.
    start, current_folder = folder.resolve(), Path.cwd()
    repository = next((path for path in (start, *start.parents) if (path / ".git").exists()), None)
    root = repository or (current_folder if start.is_relative_to(current_folder) else start)
    if not any(configures_pytest(path) for path in (start, *start.parents) if path.is_relative_to(root)):
        contents[root / "pytest.ini"] = _PYTEST_INI
    if ci != "none":
        name = str(start.relative_to(root))
        if not _CI_FOLDER.fullmatch(name):
            raise QueryEvalError(
                f"'{name}': init also writes a CI workflow, for which a folder's name may have only letters, digits, "
                "dots, _ and -: rename it, or add --ci none"
            )
        path = root / CI_FILES[ci]
        contents[path] = _workflow(path, name, (STARTER / f"{ci}.yml").read_text(encoding="utf-8"))
    return contents


def _workflow(path: Path, folder: str, starter: str) -> str:
    """Return the text of the workflow at `path`: it runs `folder`, next to the folders that an existing workflow runs.

    An existing workflow that runs other folders is extended. Otherwise the text is `starter` for this folder.
    """
    existing = ""
    with suppress(OSError, UnicodeDecodeError):
        existing = path.read_bytes().decode()
    folders = match[0].split() if (match := _FOLDERS_RUN.search(existing)) else []
    if match is None or folders == [folder]:
        return starter.replace("FOLDER", folder)
    all_folders = " ".join(dict.fromkeys((*folders, folder)))
    return f"{existing[: match.start()]}{all_folders}{existing[match.end() :]}"
