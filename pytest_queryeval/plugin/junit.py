"""What pytest's junit.xml gets: verdict and missed gates as properties, and each gate as a test case."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from pytest_queryeval.plugin.options import JUNIT_GATES

if TYPE_CHECKING:
    import pytest

    from pytest_queryeval.core.report import GateReport, Report
    from pytest_queryeval.runs.report import ReportTargets

SUITE = "queryeval.gates"
COUNTS = ("tests", "failures", "errors")  # those of all test suites together
FAILED, SKIPPED = "failure", "skipped"


def junit_plugin(config: pytest.Config) -> Any:
    """Return the plugin by which pytest writes its junit.xml; None if pytest writes no such file."""
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if hasattr(plugin, "add_global_property")), None)


def record_in_junit(config: pytest.Config, report: Report) -> None:
    """Add verdict, reviews and missed gates as properties to pytest's junit.xml, which is written later."""
    from pytest_queryeval.reports.sections import errata_text
    from pytest_queryeval.results.gates import gate_line
    from pytest_queryeval.results.verdict import verdict
    from pytest_queryeval.text.formatting import utf8_safe
    from pytest_queryeval.text.redaction import redact

    if (junit := junit_plugin(config)) is None:
        return
    junit.add_global_property("queryeval.verdict", utf8_safe(redact(verdict(report).line.removeprefix("queryeval: "))))
    if reviewed := errata_text(report):
        junit.add_global_property("queryeval.reviewed", reviewed)
    for gate in report["gates"]:
        if gate["ok"] is False:
            junit.add_global_property("queryeval.gate", utf8_safe(redact(gate_line(gate))))


def add_gates(config: pytest.Config, report: Report, targets: ReportTargets | None) -> None:
    """Add a test suite of the gates to the junit.xml that pytest wrote, and correct its totals; raises OSError.

    Does so only in a folder of reports, or if the setting JUNIT_GATES asks for it.
    """
    from pytest_queryeval.reports import JUNIT, is_folder
    from pytest_queryeval.results.verdict import NO_VERDICT, verdict

    path = Path(junit_plugin(config).logfile)
    folders = [folder for folder in (targets.paths if targets is not None else ()) if is_folder(folder)]
    is_ours = any(path == Path(os.path.abspath(folder / JUNIT)) for folder in folders)  # noqa: PTH100 - as pytest does
    if not report["gates"] or not (is_ours or config.getini(JUNIT_GATES)):
        return
    root = ElementTree.parse(path).getroot()  # noqa: S314 - pytest wrote it
    has_verdict = verdict(report).state != NO_VERDICT
    names: Counter[str] = Counter()
    suite = ElementTree.SubElement(root, "testsuite", name=SUITE)
    results = [_add_gate(suite, gate, names, has_verdict=has_verdict) for gate in report["gates"]]
    for name, number in {
        "errors": 0,
        "failures": results.count(FAILED),
        "skipped": results.count(SKIPPED),
        "tests": len(results),
    }.items():
        suite.set(name, str(number))
    suite.set("time", "0.000")
    for name in COUNTS:
        root.set(name, str(sum(int(of_suite.get(name, "0")) for of_suite in root.iter("testsuite"))))
    text = ElementTree.tostring(root, encoding="unicode")
    path.write_text(f'<?xml version="1.0" encoding="utf-8"?>{text}', encoding="utf-8")


def _add_gate(suite: ElementTree.Element, gate: GateReport, names: Counter[str], *, has_verdict: bool) -> str:
    """Add the test case of a gate, and return FAILED, SKIPPED, or "" for a met gate.

    `names` counts the names of earlier gates, and is updated; equal names get a number.
    """
    from pytest_queryeval.results.gates import GATE_WORDS, gate_subject, gate_text
    from pytest_queryeval.text.formatting import terminal_safe  # which leaves no character that XML cannot have

    place = PurePosixPath(gate["folder"] or ".") / "queryeval.yaml"
    class_name, name = terminal_safe(str(place).replace("/", ".")), terminal_safe(gate_subject(gate))
    names[f"{class_name} {name}"] += 1
    if (number := names[f"{class_name} {name}"]) > 1:
        name = f"{name} ({number})"
    testcase = ElementTree.SubElement(suite, "testcase", classname=class_name, name=name, time="0.000")
    if gate["ok"]:
        return ""
    result = SKIPPED if gate["ok"] is None and has_verdict else FAILED
    words = GATE_WORDS[gate["ok"]] if has_verdict or gate["ok"] is False else f"NO VERDICT: {GATE_WORDS[None]}"
    text = terminal_safe(f"gate {words}: {gate_text(gate)}")
    ElementTree.SubElement(testcase, result, type="queryeval.gate", message=text).text = text
    return result
