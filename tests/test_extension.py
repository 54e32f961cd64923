"""A package of its own adds a kind, an engine, a predictor, a metric and formats, each under contract."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXTENSION = HERE / "extension"
MEMBERS = ("lookup", "dictionary", "template", "key_overlap", "tex", "question_lines", "query_lines")
SUITE = {
    "kind": "lookup",
    "source": {"dictionary": {"entries": {"apples": 3, "pears": 5, "plums": 8}}},
    "predictor": {"template": {"text": "Here you are:\n```lookup\nGET {question}\n```"}},
    "metrics": ["execution_accuracy", "key_overlap", "row_matching_f1"],
    "cases": [
        {"id": "right", "question": "apples, pears", "gold": "GET pears, apples"},
        {"id": "wrong", "question": "apples", "gold": "GET pears, apples"},
        {"id": "fails", "question": "cherries", "gold": "ALL"},
    ],
}

pytestmark = pytest.mark.process


def run(*arguments, cwd):
    return python("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, cwd=cwd)


def queryeval(*arguments, cwd):
    return python("-c", "import sys; from pytest_queryeval.cli import main; sys.exit(main())", *arguments, cwd=cwd)


def python(*arguments, cwd):
    paths = os.pathsep.join([str(EXTENSION), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_members_of_another_package_evaluate_a_suite(tmp_path):
    (tmp_path / "a.queryeval.yaml").write_text(json.dumps(SUITE), encoding="utf-8")

    done = run("--queryeval-report=report.json", "--queryeval-report=report.tex", cwd=tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    cases = json.loads((tmp_path / "report.json").read_bytes())["cases"]
    assert {case["id"]: (case["outcome"], *case["scores"].values()) for case in cases} == {
        "right": ("passed", 1.0, 1.0, 1.0),
        "wrong": ("failed", 0.0, 0.5, 2 / 3),
        "fails": ("failed", 0.0, 0.0, 0.0),
    }
    assert "key overlap & 0.5" in (tmp_path / "report.tex").read_text(encoding="utf-8")


def test_formats_of_another_package_are_imported_and_exported(tmp_path):
    (tmp_path / "set.txt").write_text("How many?\tGET pears\nWhich?\nAll?\tALL\n", encoding="utf-8")

    imported = queryeval("import", "question_lines", "set.txt", "-o", "suites", cwd=tmp_path)
    (tmp_path / "suites" / "predict.py").write_text("def predict(case):\n    return 'GET  pears'\n", encoding="utf-8")
    ran = run("suites", "--queryeval-report=report.json", cwd=tmp_path)
    exported = queryeval("export", "report.json", "-f", "query_lines", "-o", "queries.txt", cwd=tmp_path)

    assert "2 cases, 1 skipped" in imported.stdout, imported.stderr
    assert "1 failed, 1 passed" in ran.stdout, ran.stderr
    assert (exported.returncode, (tmp_path / "queries.txt").read_text()) == (0, "GET pears\nGET pears\n")


def test_another_package_adds_a_command(tmp_path):
    (tmp_path / "a.queryeval.yaml").write_text(json.dumps(SUITE), encoding="utf-8")
    run("--queryeval-report=report.json", cwd=tmp_path)

    counted = queryeval("count", "report.json", cwd=tmp_path)
    listed = queryeval("--help", cwd=tmp_path)
    broken = queryeval("uncounted", "report.json", cwd=tmp_path)

    assert (counted.returncode, counted.stdout) == (0, "3 cases\n"), counted.stderr
    assert "count the cases of a report" in listed.stdout
    assert broken.returncode == 2
    assert broken.stderr.startswith("command 'uncounted' cannot be imported from queryeval_lookup.uncounted:COUNT: ")
    assert broken.stderr.count("\n") == 1


def test_members_of_another_package_are_covered_by_the_contract_tests():
    done = run("-k", " or ".join(MEMBERS), "-rA", str(HERE / "test_contracts.py"), cwd=HERE.parent)

    assert done.returncode == 0, done.stdout + done.stderr
    for name in MEMBERS:
        assert re.search(rf"test_contracts\.py::\w+\[.*\b{name}\b", done.stdout), name
