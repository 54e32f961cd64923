"""Variables in settings, `${NAME}` and `${NAME:-default}`, and `requires`: what suites need of their environment.

Variables are those of the environment or of an `env_file`; messages on settings quote them as they stand in the suite.
Suites are skipped if an extra of this package that they require is not installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from pytest_queryeval.core.errors import QueryEvalError, SettingError, did_you_mean
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import not_none
from pytest_queryeval.core.shapes import (
    ANYTHING,
    TEXT,
    SettingValidator,
    Shape,
    either,
    list_shape,
    mapping_shape,
    shape,
    shape_of,
)
from pytest_queryeval.documents.document import MEBIBYTE, Node, file_at
from pytest_queryeval.documents.values import flag, items, known_entries, required_text, scalar, text
from pytest_queryeval.text.redaction import register_secrets

ENV_FILE = "env_file"
MAX_BYTES = MEBIBYTE
MIN_SECRET = 6  # characters
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# By folder. The settings of a folder are read before those of the folders and suites below it.
_variables: dict[Path, Mapping[str, str]] = {}
PACKAGE = "pytest-queryeval"
REQUIRES = "requires"
_REQUIREMENT = re.compile(r"""(?P<name>[\w.-]+).*\bextra\s*==\s*["'](?P<extra>[\w.-]+)""")


class EnvFile(NamedTuple):
    """The name of a file with variables, as a suite states it."""

    path: str
    export: bool = False
    """Whether variables that are not set are put into the environment."""


@shape(either(TEXT, mapping_shape({"path": TEXT, "export": shape_of(flag)}, required=["path"])))
def read_env_file(node: Node) -> EnvFile:
    """Return the file that `FILE` or `{path: FILE, export: true}` names; raises `CaseError`."""
    if not isinstance(node.value, dict):
        return EnvFile(required_text(node))
    settings = known_entries(node, {"path": required_text, "export": flag})
    if "path" not in settings:
        raise node.problem("env_file needs a `path`: write {path: .env, export: true}")
    return EnvFile(**settings)


def load_env_file(top: Node) -> None:
    """Read the variables of a folder's `env_file`, and register their values as secrets.

    A missing file has no variables, because CI services set them otherwise. `export` puts them into the environment if
    they are not set. Raises `CaseError` for an invalid line.
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
    file_variables = not_none(dotenv_values(stream=StringIO(text)))
    _variables[folder] = file_variables
    register_secrets(file_variables)
    if env_file.export:
        for name, value in file_variables.items():
            try:
                os.environ.setdefault(name, value)
            except ValueError as error:
                text = f"'{name}' contains a NUL character, or one that the locale has not: leave out `export`"
                raise file.problem(text) from error


def variable(name: str, folder: Path) -> str | None:
    """Return a variable's value for files in `folder`: from the environment, otherwise from the nearest `env_file`.

    Return None if it is not set.
    """
    if name in os.environ:
        return os.environ[name]
    files = (_variables[place] for place in (folder, *folder.parents) if place in _variables)
    return next((variables[name] for variables in files if name in variables), None)


def expanded_text(node: Node) -> str:
    """Return a node's text with variables replaced; raises `CaseError` for a variable that is not set."""
    return _expand(text(node), node)


def expanded_value(node: Node) -> Any:
    """Return a scalar, list or mapping with variables replaced in all its texts; raises `CaseError`.

    Values from the environment are texts: `port: ${PORT}` never becomes a number.
    """
    if isinstance(node.value, list):
        return [expanded_value(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: expanded_value(item) for key, item in node.value.items()}
    value = scalar(node)
    return _expand(value, node) if isinstance(value, str) else value


def expanded_settings(node: Node, text_setting: str) -> dict[str, JsonValue]:
    """Return the settings in a mapping, or any other value as the setting `text_setting`, with variables replaced.

    Raises `CaseError`.
    """
    if isinstance(node.value, dict):
        return {name: expanded_value(value) for name, value in node.value.items()}
    if isinstance(node.value, list):
        return {text_setting: expanded_value(node)}
    required_text(node)
    return {text_setting: expanded_text(node)}


def settings_shape(validators: Mapping[str, SettingValidator] | None, single: str) -> Shape:
    """Return the shape of the values that `expanded_settings` reads, by the validators of the settings.

    `single` is the setting that a value alone stands for. None as validators allows anything.
    """
    if validators is None:
        return ANYTHING
    settings = setting_shapes(validators)
    # Other scalars are read as text, as in `sqlite: 2024`.
    return either(settings[single], {"type": ["number", "boolean"]}, mapping_shape(settings))


def setting_shapes(validators: Mapping[str, SettingValidator]) -> dict[str, Shape]:
    """Return the shape of each setting, described by the words of its validator."""
    return {name: {"description": validator.words, **validator.shape} for name, validator in validators.items()}


@contextmanager
def settings_at(nodes: Mapping[str, Node], fallback_node: Node, text_setting: str) -> Iterator[None]:
    """Turn a `SettingError` within the `with` statement into a `CaseError` at the node of its setting.

    Without such a node it is at `fallback_node`, whose key replaces `text_setting` in the message if it stands for it.
    Values of variables are shown as `${NAME}`.
    """
    try:
        yield
    except SettingError as error:
        problem = str(error)
        if error.setting == text_setting and text_setting not in nodes and fallback_node.key:
            for quote in "'`":
                problem = problem.replace(f"{quote}{text_setting}{quote}", f"{quote}{fallback_node.key}{quote}")
        for node in (*nodes.values(), fallback_node):
            problem = _as_written(problem, node)
        raise nodes.get(error.setting, fallback_node).problem(problem) from error


def _as_written(message: str, node: Node) -> str:
    """Return a message with `${NAME}` instead of the variable's value, which may be a secret."""
    if isinstance(node.value, str):
        expanded = _expand(node.value, node) if "${" in node.value else ""
        message = message.replace(f"'{expanded}'", f"'{node.value}'")
        # Shorter values occur in many words.
        return message.replace(expanded, node.value) if len(expanded) >= MIN_SECRET else message
    for item in node.value.values() if isinstance(node.value, dict) else node.value:
        message = _as_written(message, item)
    return message


def _expand(value: str, node: Node) -> str:
    def replaced(match: re.Match[str]) -> str:
        name, default = match.groups()
        variable_value = variable(name, node.file.folder)
        if variable_value or (variable_value is not None and default is None):
            return variable_value
        if default is None:
            raise node.problem(f"environment variable '{name}' is not set: set it, or write ${{{name}:-default}}")
        return str(default)

    return _VARIABLE.sub(replaced, value) if "${" in value else value


class MissingExtraError(QueryEvalError):
    """An extra that a suite requires is not installed; the message says how to install it."""


@shape(either(TEXT, list_shape(TEXT)))
def read_requires(node: Node) -> tuple[str, ...]:
    """Return the extras that a value names, one or a list; raises `CaseError` for an unknown extra."""
    extra_nodes = items(node) if isinstance(node.value, list) else [node]
    for item in extra_nodes:
        if text(item) not in packages_of_extras():
            raise item.problem(f"unknown extra '{text(item)}'{did_you_mean(text(item), packages_of_extras())}")
    return tuple(text(item) for item in extra_nodes)


def check_required(top: Node) -> None:
    """Raise `MissingExtraError` if the mapping of a file or folder requires an extra that is missing.

    Call it before anything else of the mapping is read, because sources may need the extra.
    """
    if isinstance(top.value, dict) and REQUIRES in top.value:
        check_installed(read_requires(top.value[REQUIRES]))


def check_installed(extras: Sequence[str]) -> None:
    """Raise `MissingExtraError` for the first extra that lacks a package."""
    for extra in extras:
        if missing_package := next((name for name in packages_of_extras()[extra] if not _is_installed(name)), None):
            raise MissingExtraError(f"needs {missing_package}: pip install '{PACKAGE}[{extra}]'")


@cache
def packages_of_extras() -> Mapping[str, tuple[str, ...]]:
    """Return the packages that each extra of this package installs, from its metadata. Cached."""
    packages_by_extra: dict[str, tuple[str, ...]] = {}
    for requirement in requires(PACKAGE) or ():
        if match := _REQUIREMENT.match(requirement):
            packages_by_extra[match["extra"]] = (*packages_by_extra.get(match["extra"], ()), match["name"])
    return packages_by_extra


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
