"""A package of its own adds a kind, an engine, a predictor, a metric and a report format, each under contract."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXTENSION = HERE / "extension"
MEMBERS = ("lookup", "dictionary", "template", "key_overlap", "tex")
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
    paths = os.pathsep.join([str(EXTENSION), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
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


def test_members_of_another_package_are_covered_by_the_contract_tests():
    done = run("-k", " or ".join(MEMBERS), "-rA", str(HERE / "test_contracts.py"), cwd=HERE.parent)

    assert done.returncode == 0, done.stdout + done.stderr
    for name in MEMBERS:
        assert re.search(rf"test_contracts\.py::\w+\[.*\b{name}\b", done.stdout), name
