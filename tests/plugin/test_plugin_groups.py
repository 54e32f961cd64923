"""A group that is registered: usable in gates, stored in reports, and shown wherever it says."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from singers import WRONG, case

from pytest_queryeval.cli import main
from pytest_queryeval.core.groups import GROUPS

CONFTEST = """
from pytest_queryeval.core.groups import GROUPS, Group

GROUPS.register("owner", Group(
    values=lambda case, path: [case.metadata["owner"]] if "owner" in case.metadata else [],
    heading="owner",
    plural="owners",
    preposition="owned by",
))
"""
GATE = "gates: [{metric: pass_rate, where: {owner: ann, kind: sql}, min: 1}]"


@pytest.mark.feature("excel", "page", "report_files", "review")
def test_a_group_of_ones_own(suite, write, run_and_parse, monkeypatch, capsys):
    built_in = dict(GROUPS._members)
    monkeypatch.setattr(GROUPS, "_members", {**built_in})
    write("conftest.py", CONFTEST)
    write("queryeval.yaml", GATE)
    suite(case("a", WRONG, metadata={"owner": "ann"}), case("b", metadata={"owner": "bob"}), case("c"))

    run = run_and_parse("--queryeval-report=r.csv", "--queryeval-report=r.html")
    assert main(["explain", "report.json", "a"]) == 1
    explained = capsys.readouterr().out
    monkeypatch.setattr(GROUPS, "_members", built_in)  # as where it is not installed
    main(["merge", "report.json", "-o", "all.json", "-o", "all.md"])
    merged = json.loads(Path("all.json").read_bytes())

    assert [case["groups"].get("owner") for case in run.report["cases"]] == [["ann"], ["bob"], None]
    run.result.stdout.fnmatch_lines(["  owner      ann"])
    run.result.stdout.fnmatch_lines(
        ["gate MISSED: pass_rate of sql cases owned by ann: 0.000, needs at least 1 (1 case)"]
    )
    rows = csv.DictReader(io.StringIO(Path("r.csv").read_text(encoding="utf-8")))
    assert [row["owner"] for row in rows] == ["ann", "bob", ""]
    assert "  owner      ann" in explained
    assert merged["groups"]["owner"] == run.report["groups"]["owner"]
    assert "pass_rate of sql cases with owner ann: 0.000" in Path("all.md").read_text(encoding="utf-8").replace("`", "")
    assert [gate["ok"] for gate in merged["gates"]] == [False]
