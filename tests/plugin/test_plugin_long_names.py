"""Names of files that are longer than any file's can be: one error with its place, as for a file that is not there."""

from __future__ import annotations

import pytest
from singers import case, unpredicted

LONG = "x" * 300
NO_FILE = "no such file"
URL = "https://127.0.0.1:9/query"
# What a suite sets, and what is said of it.
SETTINGS = {
    "sqlite": ({"source": {"sqlite": f"{LONG}.db"}}, NO_FILE),
    "script": ({"source": {"duckdb": {"script": f"{LONG}.sql"}}}, NO_FILE),
    "tables": ({"source": {"duckdb": {"tables": {"t": f"{LONG}.csv"}}}}, NO_FILE),
    "verify": ({"kind": "sparql", "source": {"endpoint": URL, "verify": LONG}}, "'verify' names no file"),
    "predictor": ({"predictor": {"http": {"url": URL, "verify": LONG}}}, f"{LONG} cannot be read: File name too long"),
    "program": ({"predictor": {"command": [f"./{LONG}"]}}, "there is no program"),
    "word": ({"predictor": {"command": [LONG]}}, "there is no program"),
    "folder": ({"predictor": {"command": {"run": ["cat"], "cwd": LONG}}}, "the command's folder is not there"),
}


@pytest.mark.feature("duckdb", "sparql_endpoint")
def test_names_in_suites_are_errors_with_a_place(suite, run_and_parse):
    for name, (settings, _) in SETTINGS.items():
        entry = unpredicted(name) if "predictor" in settings else case(name)
        suite(entry, name=f"{name}.queryeval.yaml", **settings)

    run = run_and_parse("--continue-on-collection-errors")

    told = [line for line in run.result.outlines if not line.startswith(("ERROR ", "  "))]  # which repeat it in short
    for name, (_, problem) in SETTINGS.items():
        lines = [line for line in told if f"{name}.queryeval.yaml:" in line and problem in line]
        assert len(lines) == 1, name
    for trace in ("Traceback", "INTERNALERROR", "Errno", "OSError"):
        assert trace not in run.text
