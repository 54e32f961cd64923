"""Pages that have a reader write files and run commands are followed to the letter: their output is what they show."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from http_services import serving
from mlflow_service import TrackingService
from otlp_collector import Collector

pytestmark = [
    pytest.mark.process,
    pytest.mark.feature(
        *("abstention", "audit", "causes", "challenge", "check", "ci", "command_predictor", "duckdb", "evaluate"),
        *("excel", "history", "json", "mlflow", "otlp", "page", "recording", "review", "starter", "strength"),
        "transfer",
    ),
]

DOCS = Path(__file__).parent.parent / "docs"
FILE = r"^\*\*`(?P<name>[\w./-]+)`\*\*[^\n]*(?:\n(?!```)[^\n]+)*\n\n(?P<fence>```+)\w*\n(?P<text>.*?)^(?P=fence)$"
CONSOLE = r"^```console\n(?P<console>.*?)^```$"
STEP = re.compile(f"{FILE}|{CONSOLE}", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
TIMES = re.compile(r" in [0-9.]+s =*|\b[0-9]+\.[0-9]+ s\b|\b\d{4}-\d\d-\d\dT[\d:+]+")
LEFT_OUT = "…"


@contextmanager
def address(service):
    with serving(service, path="") as running:
        yield running.url


# What a page asks, by the variable that has its address.
SERVERS = {
    "MLFLOW_TRACKING_URI": lambda: address(TrackingService()),
    "OTEL_EXPORTER_OTLP_ENDPOINT": lambda: address(Collector()),
}


def walkthroughs():
    """The pages that have a file to write.

    Tutorials are slow, since they have many commands; `test_docs_examples.py` checks commands and suites of all pages.
    """
    pages = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    files = re.compile(FILE, STEP.flags)
    return [
        pytest.param(text, id=name, marks=[pytest.mark.slow] * name.startswith("tutorials/"))
        for name, text in pages.items()
        if files.search(text)
    ]


def significant(text):
    """The lines that are not empty, without times."""
    return [TIMES.sub("", line).rstrip() for line in text.splitlines() if line.strip()]


def shows(output, printed):
    """Whether the lines of a page are those that were printed, where the page does not leave some out."""
    lines = ["(?:.*\n)+" if line.strip() == LEFT_OUT else f"{re.escape(line)}\n" for line in significant(output)]
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in significant(printed))) is not None


@pytest.mark.parametrize(
    ("output", "is_shown"),
    [
        ("a\nb\nc", True),
        ("a\n\nb\nc", True),
        ("a\n…\nc", True),
        ("a\nb\n…", True),
        ("…", True),
        ("a\nc", False),
        ("a\n…\nb\nc", False),
        ("b\nc", False),
        ("a\nb", False),
        ("a\n…\nb", False),
        ("a\nc\nb", False),
        ("", False),
    ],
)
def test_lines_are_left_out_only_where_a_page_says_so(output, is_shown):
    assert shows(output, "a\nb\nc\n") is is_shown


def run(command, folder):
    unset = ("CI", "BUILD_NUMBER")  # where they are set, pytest cuts no line to the width
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment | {"COLUMNS": "80", "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("page", walkthroughs())
def test_a_page_shows_what_its_commands_print(page, tmp_path, monkeypatch):
    with ExitStack() as servers:
        for variable, server in SERVERS.items():
            if f"${{{variable}}}" in page:
                monkeypatch.setenv(variable, servers.enter_context(server()))
        for step in STEP.finditer(page):
            if step["name"]:
                (tmp_path / step["name"]).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / step["name"]).write_text(step["text"], encoding="utf-8")
                continue
            for command, output in COMMAND.findall(step["console"]):
                done = run(command, tmp_path)

                assert shows(output, done.stdout), f"{command}\n{done.stdout}"
                assert (done.returncode != 0) == ("queryeval: FAILED" in done.stdout), f"{command}\n{done.stdout}"
