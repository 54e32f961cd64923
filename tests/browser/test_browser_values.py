"""A case's page shows what the report has: numbers, queries and characters as they are."""

import csv
import io

from report_maker import make_report, plain_report

from pytest_queryeval.reports import REPORTS


def opened_case(browser, written, name, **changes):
    """Open the page of a case of SQL that has these changes; returns its report."""
    base_case = next(case for case in make_report(60)["cases"] if case["kind"] == "sql" and case["difference"])
    case = (
        base_case
        | {side: base_case[side] | changes.pop(side, {}) for side in ("gold", "predicted", "prediction")}
        | changes
    )
    report = plain_report(case)
    browser.open_case(written(name, report), case["nodeid"])
    return report


def test_numbers_beyond_those_of_javascript_are_shown_and_compared_exactly(browser, written):
    rows = [["a", 9007199254740993, 12345678901234567890], ["b", 1.0, -0.5], ["c", "9007199254740993", 1e22]]
    others = [["a", 9007199254740992, 12345678901234567890], ["b", 1, -0.5], ["c", 9007199254740993, 10**22]]
    pairs = [{"gold": row, "predicted": partner} for row, partner in zip(rows, others, strict=True)]
    opened_case(
        browser,
        written,
        "numbers",
        gold={"columns": ["k", "v", "w"], "row_count": 3, "sample": rows},
        predicted={"columns": ["k", "v", "w"], "row_count": 3, "sample": others},
        prediction={"metadata": {"seed": 12345678901234567891, "told": {"a": [9007199254740993, "#1"]}}},
        difference={"summary": "#3 differ", "missing": [], "extra": [], "changed": pairs, "repeated": []},
        details={"notes": [18014398509481985], "other": {"seed": 9007199254740993}},
    )
    cells = (
        "return [...document.querySelectorAll(arguments[0])]"
        ".map(row => [...row.cells].slice(1).map(cell => cell.textContent))"
    )
    gold, predicted = (browser.run(cells, f"#case .sides > div:nth-child({place}) tbody tr") for place in (1, 2))

    assert gold == [
        ["a", "9007199254740993", "12345678901234567890"],
        ["b", "1.0", "-0.5"],
        ["c", "9007199254740993", "1e+22"],
    ]
    assert predicted == [
        ["a", "9007199254740992", "12345678901234567890"],
        ["b", "1", "-0.5"],
        ["c", "9007199254740993", f"{10**22}"],
    ]
    assert browser.texts("#case .sides :is(td) ins") == ["9007199254740993", "9007199254740993"]
    assert browser.texts("#case .sides :is(td) del") == ["9007199254740992", "9007199254740993"]
    inside = browser.run("return document.getElementById('case').textContent")
    for told in (
        "#3 differ",
        "12345678901234567891",
        '{"a": [9007199254740993, "#1"]}',
        "18014398509481985",
        '"seed": 9007199254740993',
    ):
        assert told in inside


def test_queries_are_shown_without_blank_lines_around_them(browser, written):
    queries = {"gold": {"query": "\n \n  SELECT 1\n\n    FROM a\n\n \n"}, "predicted": {"query": "\r\n\tSELECT 1 "}}
    opened_case(browser, written, "blank", **queries)

    cells = browser.run(
        "return [...document.querySelectorAll('#case [data-section=queries] pre')].map(pre => pre.textContent)"
    )

    assert cells == ["SELECT 1\n\n  FROM a", "SELECT 1 "]


def test_the_page_escapes_the_same_characters_as_every_other_format(browser, written):
    every = (*range(1, 0x3200), *range(0xFE00, 0x10000), *range(0x13400, 0x13460), *range(0x1BC80, 0x1BCC0))
    every += (*range(0x1D160, 0x1D180), *range(0x1F000, 0x1FB00), *range(0xE0000, 0xE1000), 0x10FFFF)
    looks = [f"{chr(code)}\ufe0f{chr(code)}\ufe0e" for code in every if code < 0xE0000]
    text = "".join([*map(chr, every), *looks, "1\ufe0f\u20e3\ufe0f"])
    report = opened_case(browser, written, "characters", question=f"x{text}")

    csv.field_size_limit(10**7)
    (row,) = csv.DictReader(io.StringIO(REPORTS["csv"].render(report).decode(), newline=""))
    assert browser.run("return document.querySelector('#case .question').textContent") == row["question"]
