"""What the plugin costs those who do not use it, or not yet."""

from __future__ import annotations

import subprocess
import sys

import pytest
from singers import case

RUN = """
import sys, pytest

status = pytest.main(sys.argv[1:])
print("LOADED", *sorted(sys.modules))
sys.exit(status)
"""


@pytest.fixture
def loaded_by(pytester):
    """Names of the modules that are loaded at the end of a run."""

    def run_python(*args):
        result = pytester.run(sys.executable, "-c", RUN, "-p", "no:hypothesispytest", *args)
        assert result.ret == 0
        (line,) = [line for line in result.outlines if line.startswith("LOADED")]
        return set(line.split()[1:])

    return run_python


def test_project_without_suites_loads_nothing_heavy(write, loaded_by):
    write("test_beside.py", "def test_beside(): pass")

    loaded = loaded_by("-q")

    assert "pytest_queryeval.plugin" in loaded
    heavy = {"yaml", "sqlglot", "rdflib", "pyoxigraph", "SPARQLWrapper", "torch", "sqlite3"}
    assert not heavy & {name.partition(".")[0] for name in loaded}
    ours = {name for name in loaded if name.startswith("pytest_queryeval.")}
    assert {name for name in ours if not name.startswith("pytest_queryeval.plugin")} == set()


def test_collection_of_a_sql_suite_loads_no_parser_and_no_engine(suite, loaded_by):
    suite(case("one"), case("two"))

    loaded = {name.partition(".")[0] for name in loaded_by("--collect-only", "-q")}

    assert not {"sqlglot", "rdflib", "pyoxigraph", "SPARQLWrapper", "torch"} & loaded


def test_help_names_every_option():
    result = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True)

    options = (
        "report=PATH",
        "predictor=SPEC",
        "threshold=METRIC=VALUE",
        "limit=N",
        "sample=N[:SEED]",
        "stop=decided[:SEED]",
    )
    for option in (*options, "name=TEXT", "cause=auto|off|full"):
        assert f"--queryeval-{option}" in result.stdout
    for setting in (
        "queryeval_report",
        "queryeval_gates",
        "queryeval_excel_layout",
        "queryeval_cause",
        "queryeval_stop",
    ):
        assert setting in result.stdout
