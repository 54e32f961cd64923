"""What a user sees of reports, in every format, is in `golden/`: of a run of the example suite, and of made cases.

The made cases have what the example suite has not: regressions against a baseline, failures, and texts that would act.
`make golden` writes the files again and shows what has changed. Measured times are 0 in them.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import report_maker
from golden_files import compare_golden, page_lines, text_lines, workbook_lines

from pytest_queryeval.cli import main

pytestmark = pytest.mark.feature("ci", "excel", "page", "report_files")
EXAMPLE = Path(__file__).parent.parent / "example_suite"
FORMATS = ("json", "md", "csv", "codequality", "html", "xlsx")
UNSEEN = ("groups", "fingerprint")  # of report.json: long, and shown by other formats, or never


def without_times(value, name=""):
    """The data of a report, with 0 for every fraction below a name that has seconds in it."""
    if isinstance(value, dict):
        return {key: without_times(part, name if "seconds" in name else key) for key, part in value.items()}
    if isinstance(value, list):
        return [without_times(part, name) for part in value]
    return 0.0 if "seconds" in name and isinstance(value, float) else value


def json_lines(path):
    """Lay a report out with a line for each case, metric and gate."""
    lines = []
    for name, part in json.loads(path.read_bytes()).items():
        items = part if isinstance(part, list) else part.items() if isinstance(part, dict) else [part]
        shown = [
            {key: item[key] for key in item if key not in UNSEEN} if isinstance(item, dict) else item for item in items
        ]
        lines += [] if name in UNSEEN else [name, *(f"  {json.dumps(item, ensure_ascii=False)}" for item in shown)]
    return lines


READERS = {"json": json_lines, "html": page_lines, "xlsx": workbook_lines}


def rendered(report, folder, *options):
    """Write a report in all formats by `queryeval render`, and return its folder."""
    report = without_times(report) | {"created": "2025-03-01T09:30:00+00:00"}
    report["environment"] = {"python": "3.12.1", "pytest": "8.3.0", "engines": {"sqlite": "3.45.1"}}
    source = folder / "source.json"
    source.write_text(json.dumps(report), encoding="utf-8")
    assert main(["render", str(source), "--output", str(folder / "rendered"), *options]) == 0
    return folder / "rendered"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The formats of made cases: of every kind and outcome, half of them hostile, with a baseline."""
    folder = tmp_path_factory.mktemp("made")
    return SimpleNamespace(folder=rendered(report_maker.make_compared(60), folder, "--excel-layout", "published"))


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The formats, the terminal and junit.xml of a run of the example suite, without its embedding model."""
    folder = tmp_path_factory.mktemp("example")
    ignored = shutil.ignore_patterns("reports", "__pycache__", "semantic")
    shutil.copytree(EXAMPLE, folder / "example_suite", ignore=ignored)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "example_suite"]
    environment = os.environ | {"COLUMNS": "80", "PYTHON": "python3"}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    _, _, terminal = run.stdout.partition(" query evaluation ")
    report = json.loads((folder / "example_suite/reports/report.json").read_bytes())
    return SimpleNamespace(
        folder=rendered(report, folder),
        terminal=[re.sub(r" in \d+\.\d\ds( \(.*\))?", "", line).strip("= ") for line in terminal.splitlines()],
        junit=(folder / "example_suite/reports/junit.xml").read_text(encoding="utf-8").replace(str(folder), "<FOLDER>"),
    )


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """The folder with the formats and the terminal of cases with long texts, most of them worse than before."""
    folder = tmp_path_factory.mktemp("long")
    shares, about = (10, 60, 20, 1, 3, 3, 1), {"created": "2025-04-01T09:30:00+00:00"}
    reports = {"base.json": report_maker.make_long(36), "part.json": report_maker.make_long(36, shares, **about)}
    for name, report in reports.items():
        (folder / name).write_text(json.dumps(report), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as stream:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        assert main(["merge", "part.json", "--baseline", "base.json", "-o", "."]) == 1
    (folder / "report.txt").write_text(stream.getvalue(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["txt", *FORMATS[1:]])
def test_long_texts_end_where_they_did(long, name):
    lines = READERS.get(name, text_lines)(long / f"report.{name}")
    starts = [line if len(line) < 400 else f"{line[:200]} {sha256(line.encode()).hexdigest()[:16]}" for line in lines]
    compare_golden(starts, f"long/report.{name}.txt")


@pytest.mark.parametrize("name", FORMATS)
def test_made_cases(made, name):
    compare_golden(READERS.get(name, text_lines)(made.folder / f"report.{name}"), f"made/report.{name}.txt")


@pytest.mark.process
@pytest.mark.feature("abstention", "command_predictor", "conversations", "dbt", "duckdb", "json", "review", "sdmx")
@pytest.mark.feature("sparql_endpoint", "writes")
class TestExampleSuite:
    @pytest.mark.parametrize("name", FORMATS)
    def test_format(self, example, name):
        compare_golden(READERS.get(name, text_lines)(example.folder / f"report.{name}"), f"example/report.{name}.txt")

    def test_terminal(self, example):
        compare_golden(example.terminal, "example/terminal.txt")

    def test_junit(self, example):
        text = re.sub(r' (time|timestamp|hostname)="[^"]*"', "", example.junit)
        timeless = re.sub(r'name="(queryeval\.\w*seconds)" value="[^"]*"', r'name="\1" value="0"', text)
        compare_golden(re.sub(r"(?=<(?!/))", "\n", timeless).split("\n"), "example/junit.xml.txt")
