"""Every example of the documentation is what the code accepts: settings, commands, options, Python and JSON.

test_walkthroughs.py follows pages that go step by step, test_readme.py tries those that continue the README's start.
"""

import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from editor_schemas import objections

from pytest_queryeval import cli, plugin

ROOT = Path(__file__).parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
OWN_KIND = "docs/developers/extending.md"  # its conftest.py registers the kind that its suite is of
BLOCK = re.compile(r"^(?P<fence>```+)(?P<language>\w+)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
WORKFLOW = re.compile(r"# \.(github/|pre-commit)|(jobs|matrix|steps|evaluate):")  # not a suite
COMMAND = re.compile(r"^(?:\$ )?queryeval (?!\w+: )(.*?)(?:  #| >|$)", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--queryeval-[a-z-]*[a-z]")
CASE = "cases: [{id: a, gold: SELECT 1}]\n"


def blocks(*languages, pages=PAGES):
    return [
        pytest.param(match["text"], id=f"{name}:{text.count(chr(10), 0, match.start()) + 1}")
        for name, text in pages.items()
        for match in BLOCK.finditer(text)
        if match["language"] in languages
    ]


def settings_blocks():
    pages = {name: text for name, text in PAGES.items() if name != OWN_KIND}
    return [block for block in blocks("yaml", pages=pages) if not WORKFLOW.match(block.values[0])]


def commands():
    """What `queryeval` is called with, continued lines in one."""
    return [
        pytest.param(command, id=block.id)
        for block in blocks("console", "sh")
        for command in COMMAND.findall(block.values[0].replace("\\\n", " "))
    ]


def candidates(block):
    """The suites and settings that a block may be a part of, by the names of their files."""
    inner = "".join(f"  {line}\n" for line in block.splitlines())
    item = f"cases:\n  -\n{''.join(f'    {line}' for line in block.splitlines(keepends=True))}"
    document = block if re.search(r"^cases:", block, re.MULTILINE) else f"{block}{CASE}"
    yield from (
        ("a.queryeval.yaml", suite) for suite in (document, f"cases:\n{inner}", item, f"source:\n{inner}{CASE}")
    )
    yield "queryeval.yaml", block


@pytest.mark.feature(
    *("abstention", "command_predictor", "database_servers", "dbt", "duckdb", "history", "http_engine"),
    *("http_predictor", "json", "report_files", "scale", "sdmx", "sparql_endpoint"),
)
@pytest.mark.parametrize("block", settings_blocks())
def test_settings_have_the_keys_and_values_that_suites_have(block, tmp_path):
    blocks = []
    for name, content in candidates(block.replace("…", "x")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        try:
            blocks.append(objections(tmp_path / name))
        except yaml.YAMLError as error:  # no YAML in this form: a list where keys are
            blocks.append([str(error)])

    assert [] in blocks, blocks[0]


@pytest.mark.parametrize("block", [block for block in blocks("yaml") if WORKFLOW.match(block.values[0])])
def test_a_workflow_is_yaml(block):
    assert yaml.safe_load(block)


@pytest.mark.parametrize("block", blocks("python"))
def test_python_can_be_compiled(block):
    compile(block, "example", "exec")


@pytest.mark.parametrize("block", blocks("json"))
def test_json_can_be_read(block):
    is_lines = block.count("\n{") == block.count("\n") - 1

    for document in block.splitlines() if is_lines else [block]:
        json.loads(document)


@pytest.mark.feature("audit", "check", "evaluate", "history", "report_files", "review", "strength", "transfer")
@pytest.mark.parametrize("command", commands())
def test_a_command_has_the_options_that_it_is_called_with(command, monkeypatch):
    name, *arguments = shlex.split(command)
    module = import_module(cli.COMMANDS[name].module)
    monkeypatch.setattr(module, "run", lambda _: sys.exit("it ran"))

    with pytest.raises(SystemExit, match="it ran"):
        cli.main([name, *arguments])


@pytest.mark.parametrize("name", PAGES)
def test_every_option_of_pytest_that_a_page_names_exists(name):
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    options = {option.names()[0] for option in parser.getgroup("queryeval").options}

    assert set(OPTION.findall(PAGES[name])) <= options
    assert set(re.findall(r"\b(queryeval_[a-z]+) ?=", PAGES[name])) <= parser._inidict.keys()
