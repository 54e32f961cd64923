"""Cases in the rows of a workbook; those of other tables are in `reading/tables.yaml`."""

import json

import openpyxl
import pytest
from suites import enter, load, problems, write

from pytest_queryeval import evaluate

HEAD = "kind: sql\nsource: a.db\n"
NO_VALUE = "is a formula without a stored value: open the workbook in a spreadsheet program and save it"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


def save(*rows, sheet="Sheet"):
    """Write q.xlsx, whose first sheet is another one unless it is named."""
    book = openpyxl.Workbook()
    if sheet not in book:
        book.create_sheet(sheet)
    for row in rows:
        book[sheet].append(row)
    book.save("q.xlsx")


def test_rows_of_a_sheet_are_cases_with_their_place():
    save(["Question", "Solution", "predicted"], ["How many?", "SELECT 1", "SELECT 2"], sheet="Cases")
    how = "{file: q.xlsx, sheet: Cases, columns: {gold: Solution}}"

    (case,) = load(f"{HEAD}cases: {how}\n")

    assert (case.id, case.question, case.golds[0].query) == ("row-2", "How many?", "SELECT 1")
    assert str(case.row) == "q.xlsx, sheet 'Cases', row 2"
    assert str(case.golds[0].location) == "q.xlsx, sheet 'Cases', row 2, column 'Solution'"
    (reported,) = evaluate([case])["cases"]
    assert (reported["line"], reported["row"], reported["place"]) == (3, 2, "q.xlsx, sheet 'Cases', row 2")


def test_a_header_below_a_title_is_named():
    save(["Questions of May"], [], ["Nr", "Solution", "predicted"], [7, "SELECT 1", "x"])

    assert problems(f"{HEAD}cases: {{file: q.xlsx, columns: {{id: Nr, gold: solution}}}}\n") == [
        (
            "q.xlsx, sheet 'Sheet', row 1: there are no columns 'solution', 'Nr': "
            "row 3 looks like the header: write `header_row: 3` next to `file`"
        )
    ]
    (case,) = load(f"{HEAD}cases: {{file: q.xlsx, header_row: 3, columns: {{id: Nr, gold: Solution}}}}\n")
    assert (case.id, case.predicted.query) == ("7", "x")
    (problem,) = problems(f"{HEAD}cases: {{file: q.xlsx, header_row: 2}}\n")
    assert problem.endswith("row 2 is empty: name the row with the headers")


def test_a_cell_without_a_value_is_a_problem_of_its_row_only():
    save(["id", "gold", "predicted", "note"], ["a", "=1", "y", "=1"], ["b", "x", "#N/A", ""], ["c", "x", "y", "=1"])

    assert problems(f"{HEAD}cases: {{file: q.xlsx}}\n") == [
        f"q.xlsx, sheet 'Sheet', row 2, column 'gold': {NO_VALUE}",
        "q.xlsx, sheet 'Sheet', row 3, column 'predicted': shows the error #N/A: correct its formula",
    ]


@pytest.mark.feature("json")
def test_a_byte_order_mark_before_json_in_a_file_is_no_part_of_it():
    write("\ufeff \n" + json.dumps({"a": 1}), "gold.json")

    (case,) = load("kind: json\ncases: [{id: a, gold_file: gold.json, predicted: '{}'}]\n")

    assert case.golds[0].answer.value == {"a": 1}


@pytest.mark.parametrize(("number", "is_cut"), [(100, False), (101, True)])
def test_reading_of_a_list_stops_after_100_problems(number, is_cut):
    metrics = ", ".join(f"m{place}" for place in range(number))

    found = problems(f"{HEAD}metrics: [{metrics}]\ncases: [{{id: a, gold: SELECT 1, predicted: SELECT 1}}]\n")

    assert len([problem for problem in found if "unknown metric" in problem]) == 100
    assert ("and maybe more: reading stopped here" in found[-1]) == is_cut
