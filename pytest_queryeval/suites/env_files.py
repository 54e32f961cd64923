"""`env_file`: variables of a folder's suites that the environment does not set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from pytest_queryeval.core.shapes import TEXT, either, mapping_shape, shape, shape_of
from pytest_queryeval.documents.document import MEBIBYTE, Node, file_at
from pytest_queryeval.documents.values import flag, known_entries, required_text
from pytest_queryeval.text.redaction import register_secrets

ENV_FILE = "env_file"
MAX_BYTES = MEBIBYTE
# By folder. The settings of a folder are read before those of the folders and suites below it.
_variables: dict[Path, Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The name of a file with variables."""

    path: str
    export: bool = False
    """Whether variables that are not set are put into the environment."""


@shape(either(TEXT, mapping_shape({"path": TEXT, "export": shape_of(flag)}, required=["path"])))
def read_env_file(node: Node) -> EnvFile:
    """Read `FILE` or `{path: FILE, export: true}`; raise `CaseError`."""
    if not isinstance(node.value, dict):
        return EnvFile(required_text(node))
    settings = known_entries(node, {"path": required_text, "export": flag})
    if "path" not in settings:
        raise node.problem("env_file needs a `path`: write {path: .env, export: true}")
    return EnvFile(**settings)


def load_env_file(top: Node) -> None:
    """Read the variables of a folder, none where its `env_file` is missing; raise `CaseError` for an invalid line.

    CI services set variables themselves and have no such file.
    """
    folder = top.file.folder
    _variables.pop(folder, None)
    if not isinstance(top.value, dict) or ENV_FILE not in top.value:
        return
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    env_file = read_env_file(top.value[ENV_FILE])
    file = file_at(folder / env_file.path)
    if not file.path.exists():
        return
    text = file.text(MAX_BYTES)
    if faulty_line := next((line for line in parse_stream(StringIO(text)) if line.error), None):
        raise file.problem("not a line such as NAME=value", faulty_line.original.line)
    file_variables = {name: value for name, value in dotenv_values(stream=StringIO(text)).items() if value is not None}
    _variables[folder] = file_variables
    register_secrets(file_variables)
    if env_file.export:
        for name, value in file_variables.items():
            try:
                os.environ.setdefault(name, value)
            except ValueError as error:
                text = f"'{name}' holds a NUL character, or one that the locale has not: leave out `export`"
                raise file.problem(text) from error


def variable(name: str, folder: Path) -> str | None:
    """Return the value of a variable for files in `folder`: of the environment, else of the nearest `env_file`."""
    if name in os.environ:
        return os.environ[name]
    files = (_variables[place] for place in (folder, *folder.parents) if place in _variables)
    return next((variables[name] for variables in files if name in variables), None)
