"""What sections say: the same cells in each format that lays a section out."""

import re
from html import unescape

from report_maker import make_compared, make_report, report_of

from pytest_queryeval.features.ci.markdown import render_markdown
from pytest_queryeval.features.page import render_html
from pytest_queryeval.reports.blocks import CaseName, Table, text_lines
from pytest_queryeval.reports.sections import changes_table, group_table
from pytest_queryeval.reports.summary import summary_lines


def in_terminal(report):
    return {tuple(line.replace(" to ", "_to_").split()) for line, _ in summary_lines(report, width=300, verbosity=1)}


def in_markdown(report):
    lines = render_markdown(report).decode().split("\n")
    rows = (line.strip("| ").replace("`", "").replace(" to ", "_to_").split("|") for line in lines)
    return {tuple(" ".join(row).split()) for row in rows}


def in_page(report):
    rows = re.findall("<tr>(.*?)</tr>", render_html(report).decode())
    cells = (" ".join(re.findall(r">([^<>]*)</t", row)) for row in rows)
    return {tuple(unescape(row).replace(" to ", "_to_").split()) for row in cells}


def rows_of(table):
    return {tuple(" ".join(row).replace(" to ", "_to_").split()) for row in table.rows}


def test_groups_count_the_cases_that_ran():
    cases = make_report(60)["cases"]
    report = report_of([*cases, *({**case, "outcome": "not_run", "scores": {}} for case in cases)])
    rows = [row[:3] for row in group_table(report, "difficulty").rows]

    assert rows == [row[:3] for row in group_table(make_report(60), "difficulty").rows]
    assert rows
    page = re.sub(r"<[^>]*>+", " ", render_html(report).decode())
    assert all(re.search(r"\s+".join(row), page) for row in rows)


def test_changes_since_the_baseline_have_the_same_cells_in_each_format():
    report = make_compared(60)
    rows = rows_of(changes_table(report["baseline"]))

    assert rows <= in_terminal(report)
    assert rows <= in_markdown(report)
    assert rows <= in_page(report)


def test_names_of_cases_in_a_table_of_text_are_whole_since_they_are_copied_into_commands():
    nodeid = "suites/library/loans.queryeval.yaml::longest-loans-of-each-member"
    header = ("refuted", "rows", "like the source", "gold", "predicted")
    row = (CaseName(nodeid), "2", "yes", "1", "2")

    lines = [*text_lines([Table(header, [row])], 80)]

    assert sum(line.startswith(nodeid) for line in lines) == len(lines) / 2
