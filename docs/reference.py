"""The generated pages of the documentation: keys, options, commands, and the changelog."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest_queryeval.cli as cli
from pytest_queryeval.core.gates import GATE_RULES
from pytest_queryeval.core.shapes import SettingValidator, Shape, shape_of
from pytest_queryeval.documents.values import Reader
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.plugin.options import JUNIT_SETTINGS
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.runs.option_table import OPTIONS, Option
from pytest_queryeval.suites.case_tables import CASE_TABLE_KEYS, TABLE_DESCRIPTIONS
from pytest_queryeval.suites.keys import COMPARE, KEYS
from pytest_queryeval.suites.metric_keys import gate_keys

BAR = r"\|"  # as a cell of a table has it
MANY = 12
OF_SOURCES = "`version` may name the state of the data."
OF_PREDICTORS = "Next to it are the [settings of calls](../how-to/system.md#calls-retries-trials)."
CHANGELOG = "```{include} ../../CHANGELOG.md\n:relative-docs: docs/\n```\n"
TYPES = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "`true`, `false`", "null": ""}


def write_reference(folder: Path) -> None:
    """Write all pages into `folder`, which is made."""
    folder.mkdir(exist_ok=True)
    for name, page in {"keys": keys(), "options": options(), "commands": commands(), "changelog": CHANGELOG}.items():
        (folder / f"{name}.md").write_text(page, encoding="utf-8")


def keys() -> str:
    """Return the page of all keys of suites and settings, from the definitions by which they are read."""
    rows = (
        (
            f"`{key.name}`",
            ", ".join(key.levels),
            _values(shape_of(key.read)),
            key.description,
            key.inheritance,
        )
        for key in sorted(KEYS.values(), key=lambda key: key.name)
    )
    parts = [
        (
            "# All keys\n\nFor everybody who writes suites: each key and setting, with its values. "
            "[Suites](../reference/suites.md) says how files and levels work together."
        ),
        _table(("key", "where", "value", "meaning", "inheritance"), rows),
        "## `compare`\n\n[Equality](../background/equality.md) explains them.",
        _described_keys(
            {name: key.read for name, key in COMPARE.items()}, {name: key.description for name, key in COMPARE.items()}
        ),
        "## `gates`\n\n[Gates](../reference/suites.md#gates) explains them.",
        *_gates(),
        "## `cases` in a table\n\n[Test set](../how-to/test-set.md) explains them.",
        _described_keys(CASE_TABLE_KEYS, TABLE_DESCRIPTIONS),
    ]
    for title, registry, also in (("Source", ENGINES, OF_SOURCES), ("Predictor", PREDICTORS, OF_PREDICTORS)):
        for name in registry.names():
            if settings := registry[name].settings:
                parts += [
                    f"## {title} `{name}`",
                    _short_form(name, registry[name].text_setting) + also,
                    _settings(settings),
                ]
    return "\n\n".join([*parts, ""])


def _described_keys(readers: Mapping[str, Reader[Any]], descriptions: Mapping[str, str]) -> str:
    rows = ((f"`{name}`", _values(shape_of(read)), descriptions[name]) for name, read in readers.items())
    return _table(("key", "value", "meaning"), rows)


def _gates() -> Iterable[str]:
    """Yield the rules for gates with an example each, and the keys of gates with those within them."""
    rules = ((f"`{name}`", _summary(GATE_RULES[name]), f"`{GATE_RULES[name].example}`") for name in GATE_RULES.names())
    yield _table(("rule", "meaning", "a gate"), rules)
    keys = {name: {**shape_of(key.read), "description": key.description} for name, key in gate_keys().items()}
    within = [
        item for shape in keys.values() for item in shape.get("properties", {}).items() if "description" in item[1]
    ]
    rows = ((f"`{name}`", _values(shape), shape["description"]) for name, shape in ({**dict(within), **keys}).items())
    yield _table(("key", "value", "meaning"), rows)


def _summary(member: object) -> str:
    """Return the first line of the docstring of a member's class."""
    return (inspect.getdoc(type(member)) or "").partition("\n")[0]


def _short_form(name: str, text_setting: str | None) -> str:
    return f"`{{{name}: TEXT}}` is short for `{{{name}: {{{text_setting}: TEXT}}}}`. " if text_setting else ""


def _settings(settings: Mapping[str, SettingValidator]) -> str:
    return _table(("setting", "value"), ((f"`{name}`", setting.words) for name, setting in settings.items()))


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', BAR) for cell in line)} |" for line in lines)


def _values(shape: Shape) -> str:
    """Return what a value may be, in few words."""
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(filter(None, map(_values, shape["anyOf"]))))
    if "enum" in shape:
        words = [f"`{word}`" for word in shape["enum"]]
        return ", ".join(words) if len(words) <= MANY else "a name"
    if "$ref" in shape:
        return f"a {shape['$ref'].rpartition('/')[2]}"
    match shape.get("type"):
        case "array":
            return "a list"
        case "object":
            return "a mapping"
        case str() as name:
            return TYPES[name]
        case list():
            return "text"
    return "any value"


def options() -> str:
    """Return the page of all options of runs, from the declarations by which both commands read them."""
    introduction = (
        "# Options of runs\n\nFor everybody who runs suites with `pytest` or "
        "[`queryeval evaluate`](../how-to/large-runs.md). Settings are those of `pytest.ini`, or of "
        "`[tool.pytest.ini_options]` in `pyproject.toml`. If an option is given, it replaces the setting."
    )
    header = ("`pytest`", "setting of `pytest`", "`queryeval evaluate`", "meaning")
    rows = [*map(_option_row, OPTIONS), *(("", f"`{name}`", "", text) for name, (_, text) in JUNIT_SETTINGS.items())]
    return f"{introduction}\n\n{_table(header, rows)}\n"


def _option_row(option: Option) -> tuple[str, ...]:
    usage = f"{option.flag} {option.metavar or '|'.join(option.choices)}"
    return (
        "" if option.is_setting_only else f"`--queryeval-{usage}`",
        f"`queryeval_{option.name}`" if option.setting else "",
        f"`--{usage}`",
        option.help,
    )


def commands() -> str:
    """Return the page of the console script's commands: the help of each."""
    parts = ["# Commands\n\nFor everybody who works in a terminal: the help of each command.\n"]
    for arguments in ([], *([name] for name in cli.COMMANDS)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            cli.main([*arguments, "--help"])
        title = " ".join(["queryeval", *arguments])
        parts.append(f"## `{title}`\n\n```text\n{printed.getvalue().rstrip()}\n```\n")
    return "\n".join(parts)
