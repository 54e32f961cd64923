"""The generated pages of the documentation: metrics, options, commands."""

from __future__ import annotations

import contextlib
import inspect
import io
from pathlib import Path

import pytest

import pytest_queryeval.cli as cli
import pytest_queryeval.plugin as plugin
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS


def write_reference(folder: Path) -> None:
    """Write all pages into `folder`, which is made."""
    folder.mkdir(exist_ok=True)
    for name, page in {"metrics": metrics(), "options": options(), "commands": commands()}.items():
        (folder / f"{name}.md").write_text(page, encoding="utf-8")


def metrics() -> str:
    """Return the page of all metrics: the docstring of each, and the facts that suites need."""
    parts = ["# All metrics\n\nGenerated from the metrics themselves; [metrics.md](../metrics.md) compares them.\n"]
    for name in METRICS.names():
        metric = METRICS[name]
        kinds = [kind for kind in KINDS.names() if metric.applies_to(kind, KINDS[kind].answer_type)]
        highest = "any number" if metric.max_score is None else f"{metric.max_score:g}"
        facts = [f"- kinds: {', '.join(kinds)}", f"- highest score: {highest}; {metric.better} is better"]
        if metric.options:
            facts.append(f"- options: {', '.join(f'`{option}`' for option in sorted(metric.options))}")
        if metric.extra:
            facts.append(f"- extra: `{metric.extra}`")
        parts.append(f"## `{name}`\n\n{_prose(metric.function)}\n\n" + "\n".join(facts) + "\n")
    return "\n".join(parts)


def _prose(function: object) -> str:
    """Return the docstring without its doctests, which become blocks of code."""
    blocks = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(f"```pycon\n{block}\n```" if block.startswith(">>>") else block for block in blocks)


def options() -> str:
    """Return the page of pytest's options and settings, as `pytest --help` has them."""
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    lines = ["# Options", "", "Options of pytest that the plugin adds.", "", "| option | meaning |", "|---|---|"]
    for option in parser.getgroup("queryeval").options:
        attributes = option.attrs()
        usage = " ".join(filter(None, (option.names()[0], attributes.get("metavar"))))
        lines.append(f"| `{usage}` | {attributes['help']} |")
    lines += ["", "Settings of `pytest.ini` or `[tool.pytest.ini_options]` in `pyproject.toml`:", ""]
    lines += ["| setting | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {help_} |" for name, (help_, *_) in parser._inidict.items()]
    return "\n".join([*lines, ""])


def commands() -> str:
    """Return the page of the console script's commands: the help of each."""
    parts = ["# Commands\n"]
    for arguments in ([], *([name] for name in cli.COMMANDS)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            cli.main([*arguments, "--help"])
        title = " ".join(["queryeval", *arguments])
        parts.append(f"## `{title}`\n\n```text\n{printed.getvalue().rstrip()}\n```\n")
    return "\n".join(parts)
