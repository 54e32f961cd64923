"""Suites to run, and runs whose reports are checked whatever the test is about."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

import execnet
import jsonschema
import pytest
import xmlschema
from singers import SCRIPT, SETTINGS

import pytest_queryeval
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.plugin.run import Run  # white box: what workers of pytest-xdist send

REPORT_SCHEMA = json.loads(Path(pytest_queryeval.__file__).with_name("report.schema.json").read_bytes())
REPORTS = jsonschema.Draft202012Validator(REPORT_SCHEMA)
ALWAYS_GROUPED = ("kind", "difficulty", "tag", "file", "source")


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


class Project:
    """A folder with suites, in which pytest runs."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.path = pytester.path

    def write(self, name: str, text: str) -> Path:
        """Write a text file below the folder."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def suite(self, *cases: dict[str, Any], name: str = "a.queryeval.yaml", **settings: Any) -> Path:
        """Write a suite, a setting and a case a line, and the script of its database next to it."""
        self.write(str(Path(name).parent / "singers.sql"), SCRIPT)
        lines = [f"{key}: {_inline(value)}" for key, value in {**SETTINGS, **settings}.items()]
        lines += ["cases:", *(f"  - {_inline(case)}" for case in cases)]
        return self.write(name, "\n".join(lines) + "\n")

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest: in this process, or in one of its own where there are workers.

        In this process, reports and what was collected are serialised all the same.
        """
        if any(arg.startswith(("-n", "-d")) for arg in args):
            return self._pytester.runpytest_subprocess(*args)
        # The filters of this process hold in that run as well, and ours make every warning an error.
        warn = "-Wdefault::pytest_queryeval.QueryEvalWarning"
        summary = Run.worker_summary
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "worker_summary", lambda run: over_the_wire(summary(run)))
            wire = ReportsOverTheWire()
            return self._pytester.runpytest_inprocess(warn, *args, plugins=[wire], no_reraise_ctrlc=True)

    def run_and_parse(self, *args: str) -> Outcome:
        """Run pytest with both reports, and check that they are what their schemas say."""
        result = self.run("--queryeval-report=report.json", "--junitxml=junit.xml", *args)
        return Outcome(result, parsed_report(self.path / "report.json"), parsed_junit(self.path / "junit.xml"))


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


@pytest.fixture(scope="module")
def shared_project(shared_pytester: pytest.Pytester, junit_schema: xmlschema.XMLSchema) -> Iterator[Project]:
    """For the fixtures of a module, which return what came of a run: many tests look at parts of it."""
    yield Project(shared_pytester)
    check_junit_files(shared_pytester.path, junit_schema)


@pytest.fixture
def write(project: Project) -> Callable[[str, str], Path]:
    return project.write


@pytest.fixture
def suite(project: Project) -> Callable[..., Path]:
    return project.suite


@pytest.fixture
def run(project: Project) -> Callable[..., pytest.RunResult]:
    return project.run


@pytest.fixture
def run_and_parse(project: Project) -> Callable[..., Outcome]:
    return project.run_and_parse


@pytest.fixture(scope="session")
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).with_name("junit-10.xsd"))


@pytest.fixture(autouse=True)
def _every_junit_file_is_valid(request: pytest.FixtureRequest, junit_schema: xmlschema.XMLSchema) -> Iterator[None]:
    pytester = request.getfixturevalue("pytester") if "pytester" in request.fixturenames else None
    yield
    if pytester is not None:
        is_terminated = request.node.get_closest_marker("terminated") is not None
        check_junit_files(pytester.path, junit_schema, is_terminated=is_terminated)


def check_junit_files(folder: Path, schema: xmlschema.XMLSchema, *, is_terminated: bool = False) -> None:
    """Check every junit.xml below a folder; pytest names no test that was under way when it was terminated."""
    for path in folder.rglob("junit.xml"):
        junit = _without_properties(parsed_junit(path))
        for suite in junit.iter("testsuite") if is_terminated else ():
            for testcase in [case for case in suite.iter("testcase") if case.keys() == ["time"]]:
                suite.remove(testcase)
        schema.validate(junit)


@pytest.fixture(scope="session", autouse=True)
def _no_outer_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PYTEST_XDIST") or name == "GITHUB_STEP_SUMMARY"]:
            patch.delenv(name)
        yield


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
    of_each_form = {(case["outcome"], *case): case for case in report["cases"]}
    REPORTS.validate({**report, "cases": [*of_each_form.values()]})
    assert report["totals"]["cases"] == len(report["cases"]) == sum(report["totals"].values()) / 2
    assert list(report["groups"]) == list(dict.fromkeys((*ALWAYS_GROUPED, *GROUPS.available())))
    places = [(case["path"], case["line"]) for case in report["cases"]]
    assert places == sorted(places)
    for case in report["cases"]:
        if case["outcome"] in ("error", "skipped", "not_run"):
            assert case["message"]
            assert not case["scores"]
        else:
            assert (case["gold"] is None) == ("answerable" in case)
            assert case["predicted"]
    return report


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")
