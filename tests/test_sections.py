"""What sections say: the same cells in each format that lays a section out."""

import re
from html import unescape

import pytest
from report_maker import make_report, report_of
from report_parts import merge

from pytest_queryeval.reports import REPORTS
from pytest_queryeval.reports.blocks import CaseName, Table, text_lines


def in_terminal(report):
    return {tuple(line.split()) for line in merge(report).lines}


def in_markdown(report):
    lines = REPORTS["md"].render(report).decode().split("\n")
    return {tuple(line.replace("`", "").replace("|", " ").split()) for line in lines}


def in_page(report):
    rows = re.findall("<tr>(.*?)</tr>", REPORTS["html"].render(report).decode())
    cells = (" ".join(re.findall(r">([^<>]*)</", row)) for row in rows)
    return {tuple(unescape(row).split()) for row in cells}


@pytest.mark.parametrize("rows_of", [in_terminal, in_markdown, in_page])
def test_groups_count_the_cases_that_ran(rows_of, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    report = make_report(60)
    cases = [*report["cases"], *({**case, "outcome": "not_run", "scores": {}} for case in report["cases"])]
    levels = {level: [case["outcome"] for case in cases if case["difficulty"] == level] for level in ("easy", "hard")}
    counts = {
        (level, str(len(outcomes) - outcomes.count("not_run")), str(outcomes.count("passed")))
        for level, outcomes in levels.items()
    }

    for each in (report, report_of(cases)):
        assert counts <= {row[:3] for row in rows_of(each)}


def test_names_of_cases_in_a_table_of_text_are_whole_since_they_are_copied_into_commands():
    nodeid = "suites/library/loans.queryeval.yaml::longest-loans-of-each-member"
    header = ("refuted", "rows", "like the source", "gold", "predicted")
    row = (CaseName(nodeid), "2", "yes", "1", "2")

    lines = [*text_lines([Table(header, [row])], 80)]

    assert sum(line.startswith(nodeid) for line in lines) == len(lines) / 2
