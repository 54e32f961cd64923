"""Suites to run, and runs whose reports are checked whatever the test is about."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol
from xml.etree import ElementTree

import execnet
import pytest
import xmlschema
from singers import SCRIPT, SETTINGS

from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.plugin.run import Run

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
    "unreadable_files",
    "stopped",
}
TOTALS = ["cases", "passed", "failed", "missed", "errors", "skipped", "xfailed", "xpassed", "not_run"]
ALWAYS_GROUPED = ("kind", "difficulty", "tag", "file", "source")
STATISTICS = {"mean", "n", "std", "min", "median", "max", "ci95"}
GATE = {"folder", "metric", "where", "min", "max", "value", "n", "ok"}
CASE = {
    *("id", "nodeid", "path", "line", "kind", "tags", "difficulty", "source", "question", "outcome", "scores"),
    *("violations", "gold", "predicted", "depends_on_tie", "difference", "prediction", "scoring", "trials", "details"),
    *("message", "fingerprint", "evidence", "cause", "groups"),
}
GOLD = {"query", "index", "columns", "row_count", "sample", "seconds"}
PREDICTED = {"query", "columns", "row_count", "sample", "seconds", "error"}


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
        (entry,) = [case for case in self.report["cases"] if case["id"] == id_]
        return entry

    def testcase(self, id_: str) -> ElementTree.Element:
        (testcase,) = self.junit.iterfind(f".//testcase[@name='{id_}']")
        return testcase


RunAndParse = Callable[..., Outcome]


class ReportsOverTheWire:
    """Sends each report of a run the way that pytest-xdist does, so that every run shows what cannot cross."""

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        session.config.pluginmanager.register(self.Last())  # behind the wrappers of all plugins

    class Last:
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
            hook = item.config.hook
            data = hook.pytest_report_to_serializable(config=item.config, report=(yield))
            return hook.pytest_report_from_serializable(config=item.config, data=over_the_wire(data))


def over_the_wire(value: Any) -> Any:
    """Return what arrives at the other end where a worker of pytest-xdist sends `value`."""
    return execnet.loads(execnet.dumps(value))


@pytest.fixture(params=[[], ["-n1"]], ids=["alone", "xdist"])
def workers(request: pytest.FixtureRequest) -> list[str]:
    """Run without workers and with them, for what differs between the two; all else crosses the wire in any run."""
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
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Run pytest: in this process, or in one of its own where there are workers.

    In this process, reports and what was collected are serialised all the same.
    """
    worker_summary = Run.worker_summary
    monkeypatch.setattr(Run, "worker_summary", lambda self: over_the_wire(worker_summary(self)))

    def run_pytest(*args: str) -> pytest.RunResult:
        if any(arg.startswith(("-n", "-d")) for arg in args):
            return pytester.runpytest_subprocess(*args)
        # The filters of this process hold in that run as well, and ours make every warning an error.
        warn = "-Wdefault::pytest_queryeval.QueryEvalWarning"
        return pytester.runpytest_inprocess(warn, *args, plugins=[ReportsOverTheWire()], no_reraise_ctrlc=True)

    return run_pytest


@pytest.fixture
def run_and_parse(pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]) -> RunAndParse:
    """Run pytest with both reports, and check that they are what their schemas say."""

    def run_parsed(*args: str) -> Outcome:
        reports = "--queryeval-report=report.json", "--junitxml=junit.xml"
        result = run(*reports, *args)
        return Outcome(result, parsed_report(pytester.path / "report.json"), parsed_junit(pytester.path / "junit.xml"))

    return run_parsed


@pytest.fixture(scope="session")
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).with_name("junit-10.xsd"))


@pytest.fixture(autouse=True)
def _every_junit_file_is_valid(
    request: pytest.FixtureRequest, pytester: pytest.Pytester, junit_schema: xmlschema.XMLSchema
) -> Any:
    yield
    for path in pytester.path.rglob("junit.xml"):
        junit = _without_properties(parsed_junit(path))
        if request.node.get_closest_marker("terminated"):  # pytest names no test that was under way
            for suite in junit.iter("testsuite"):
                for testcase in [case for case in suite.iter("testcase") if case.keys() == ["time"]]:
                    suite.remove(testcase)
        junit_schema.validate(junit)


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
            assert all(element.tag == "property" and element.keys() == ["name", "value"] for element in properties)
            testcase.remove(properties)
    return junit


def parsed_report(path: Path) -> dict[str, Any]:
    """Read a report.json; asserts that it is one."""
    report = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_refuse_constant)
    assert report["schema"] == 2
    assert report.keys() >= TOP
    assert list(report["totals"]) == TOTALS
    assert report["totals"]["cases"] == len(report["cases"]) == sum(report["totals"].values()) / 2
    assert all(statistics.keys() >= STATISTICS for statistics in report["metrics"].values())
    assert list(report["groups"]) == list(dict.fromkeys((*ALWAYS_GROUPED, *GROUPS.available())))
    assert all(gate.keys() >= GATE for gate in report["gates"])
    places = [(case["path"], case["line"]) for case in report["cases"]]
    assert places == sorted(places)
    for case in report["cases"]:
        _check_case(case)
    return report


def _check_case(case: dict[str, Any]) -> None:
    assert (
        case.keys() - {"row", "place", "features", "review", "unreviewed", "challenge", "answerable", "reruns"} == CASE
    )
    if case["outcome"] in ("error", "skipped", "not_run"):
        assert case["message"]
        assert not case["scores"]
        return
    assert case["gold"] is None if "answerable" in case else case["gold"].keys() == GOLD
    assert case["predicted"].keys() == PREDICTED
    assert case["prediction"].keys() - {"steps", "recorded", "missing"} == {"source", "seconds", "metadata"}
    assert all(missed.keys() == {"metric", "min", "max", "value"} for missed in case["violations"])
    if error := case["predicted"]["error"]:
        assert error["kind"] in ("invalid", "timeout", "unsafe", "too_large", "empty", "rejected", "missing")


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")
