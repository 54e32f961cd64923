"""Suites to run, and runs whose reports are checked whatever the test is about."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol
from xml.etree import ElementTree

import pytest
import xmlschema
from singers import SCRIPT, SETTINGS

from pytest_queryeval.engines import ENGINES
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.reports import REPORTS

TOP = {
    "schema",
    "created",
    "environment",
    "predictor",
    "totals",
    "metrics",
    "groups",
    "gates",
    "cases",
    "broken",
    "stopped",
}
TOTALS = ["cases", "passed", "failed", "missed", "errors", "skipped", "xfailed", "xpassed"]
STATISTICS = {"mean", "n", "std", "min", "median", "max", "ci95"}
GATE = {"folder", "metric", "where", "min", "max", "value", "n", "ok"}
CASE = {
    *("id", "nodeid", "path", "line", "kind", "tags", "difficulty", "source", "question", "outcome", "scores"),
    *("missed", "gold", "predicted", "difference", "prediction", "trials", "details", "message", "basis", "evidence"),
}
GOLD = {"query", "index", "columns", "row_count", "sample", "seconds"}
WITHOUT_HYPOTHESIS = "-p", "no:hypothesispytest"  # its plugin imports all of it at the end of every run: 0.6 s
PREDICTED = {"query", "columns", "row_count", "sample", "seconds", "error"}

# A run in this process forgets what it imported: to import it again is slow, and more than the C part of yaml bears.
for module in ("evaluation", "kinds.sql", "loading", "reports.json", "plugin.items", "summary", "sql.order"):
    importlib.import_module(f"pytest_queryeval.{module}")
# Nor does what is compiled in numpy and scipy bear it.
importlib.import_module("pytest_queryeval.baseline.statistics")
with suppress(ImportError):  # what is compiled in it can be imported once only
    importlib.import_module("vl_convert")


class WriteSuite(Protocol):
    def __call__(self, *cases: dict[str, Any], name: str = ..., **settings: Any) -> Path: ...


@dataclass(frozen=True)
class Outcome:
    result: pytest.RunResult
    report: dict[str, Any]
    junit: ElementTree.Element

    @property
    def text(self) -> str:
        return "\n".join(self.result.outlines + self.result.errlines)

    @property
    def outcomes(self) -> dict[str, str]:
        return {case["id"]: case["outcome"] for case in self.report["cases"]}

    def case(self, id_: str) -> dict[str, Any]:
        (found,) = [case for case in self.report["cases"] if case["id"] == id_]
        return found

    def testcase(self, id_: str) -> ElementTree.Element:
        (found,) = self.junit.iterfind(f".//testcase[@name='{id_}']")
        return found


RunAndParse = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a conftest.py registers in a run of this process is gone after the test."""
    for registry in (METRICS, PREDICTORS, ENGINES, REPORTS):
        monkeypatch.setattr(registry, "_members", dict(registry._members))


@pytest.fixture(params=[[], ["-n2"]], ids=["alone", "xdist"])
def workers(request: pytest.FixtureRequest) -> list[str]:
    return request.param


@pytest.fixture
def write(pytester: pytest.Pytester) -> Callable[[str, str], Path]:
    """Write a text file below the folder of the test."""

    def write_file(name: str, text: str) -> Path:
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.fixture
def suite(write: Callable[[str, str], Path]) -> WriteSuite:
    """Write a suite, a setting and a case a line, and the script of its database beside it."""

    def write_suite(*cases: dict[str, Any], name: str = "a.queryeval.yaml", **settings: Any) -> Path:
        write(str(Path(name).parent / "singers.sql"), SCRIPT)
        lines = [f"{key}: {_inline(value)}" for key, value in {**SETTINGS, **settings}.items()]
        lines += ["cases:", *(f"  - {_inline(case)}" for case in cases)]
        return write(name, "\n".join(lines) + "\n")

    return write_suite


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Run pytest: in a process of its own where there are workers, or where a test asks for it.

    With workers functions that predict may be called by all of them, which they are not unless a user says so.
    """

    def run_pytest(*args: str, subprocess: bool = False) -> pytest.RunResult:
        workers = any(arg.startswith("-n") and arg != "-n0" for arg in args)
        if workers and not any(arg.startswith("--queryeval-concurrency") for arg in args):
            args = (*args, "--queryeval-concurrency=9")
        if subprocess or workers:
            return pytester.runpytest_subprocess(*WITHOUT_HYPOTHESIS, *args)
        return pytester.runpytest_inprocess(*WITHOUT_HYPOTHESIS, *args)

    return run_pytest


@pytest.fixture
def run_and_parse(pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]) -> RunAndParse:
    """Run pytest with both reports, and check that they are what their schemas say."""

    def run_parsed(*args: str, subprocess: bool = False) -> Outcome:
        reports = "--queryeval-report=report.json", "--junitxml=junit.xml"
        result = run(*reports, *args, subprocess=subprocess)
        return Outcome(result, parsed_report(pytester.path / "report.json"), parsed_junit(pytester.path / "junit.xml"))

    return run_parsed


@pytest.fixture(scope="session")
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).with_name("junit-10.xsd"))


@pytest.fixture(autouse=True)
def _every_junit_file_is_valid(pytester: pytest.Pytester, junit_schema: xmlschema.XMLSchema) -> Any:
    yield
    for path in pytester.path.rglob("junit.xml"):
        junit_schema.validate(_without_properties(parsed_junit(path)))


@pytest.fixture(autouse=True)
def _no_outer_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST") or name == "GITHUB_STEP_SUMMARY"]:
        monkeypatch.delenv(name)


@pytest.fixture
def report_of() -> Callable[[Path], dict[str, Any]]:
    return parsed_report


def parsed_junit(path: Path) -> ElementTree.Element:
    return ElementTree.parse(path).getroot()


def _without_properties(junit: ElementTree.Element) -> ElementTree.Element:
    """Check the properties of test cases and take them out: pytest writes them, the schema does not know them."""
    for testcase in junit.iter("testcase"):
        for properties in testcase.findall("properties"):
            assert properties is testcase[0]
            assert all(found.tag == "property" and found.keys() == ["name", "value"] for found in properties)
            testcase.remove(properties)
    return junit


def parsed_report(path: Path) -> dict[str, Any]:
    """Read a report.json; asserts that it is one."""
    report = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_refuse_constant)
    assert report["schema"] == 1
    assert report.keys() >= TOP
    assert list(report["totals"]) == TOTALS
    assert report["totals"]["cases"] == len(report["cases"]) == sum(report["totals"].values()) / 2
    assert all(statistics.keys() >= STATISTICS for statistics in report["metrics"].values())
    assert list(report["groups"]) == ["kind", "difficulty", "tag", "file", "source"]
    assert all(gate.keys() >= GATE for gate in report["gates"])
    places = [(case["path"], case["line"]) for case in report["cases"]]
    assert places == sorted(places)
    for case in report["cases"]:
        _check_case(case)
    return report


def _check_case(case: dict[str, Any]) -> None:
    assert case.keys() == CASE
    if case["outcome"] in ("error", "skipped"):
        assert case["message"]
        assert not case["scores"]
        return
    assert case["gold"].keys() == GOLD
    assert case["predicted"].keys() == PREDICTED
    assert case["prediction"].keys() == {"source", "seconds", "metadata"}
    assert all(missed.keys() == {"metric", "min", "max", "value"} for missed in case["missed"])
    if error := case["predicted"]["error"]:
        assert error["kind"] in ("invalid", "timeout", "unsafe", "too_large", "empty", "rejected")


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")
