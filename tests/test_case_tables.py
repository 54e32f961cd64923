"""Cases in the rows of a table."""

import openpyxl
import pytest
from suites import enter, load, problems, write

from pytest_queryeval.core.errors import Location
from pytest_queryeval.results.case_json import case_json

HEAD = "kind: sql\nsource: a.db\n"
WITH_PREDICTOR = HEAD + "predictor: {http: 'http://localhost'}\n"
HIDDEN = "'_hidden' must consist of letters, digits, _ and -, and not start with _, to be a marker: write hidden"
NO_VALUE = "is a formula without a stored value: open the workbook in a spreadsheet program and save it"
NAMING = "(write its name as HEADER in `columns: {gold: HEADER}`)"
QUOTE = "quote cells that hold a delimiter or a line end"
SKIPPED = "skipped in the suite"
HOW = "{file: q.csv, delimiter: ;, columns: {id: Nr, question: Frage, gold: Solution, source: db}, metadata: [db]}"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)


def cases(text, how="{file: q.csv}", head=HEAD, name="q.csv"):
    write(text, name)
    return load(f"{head}cases: {how}\n")


def told(text, how="{file: q.csv}", head=HEAD, name="q.csv"):
    write(text, name)
    return problems(f"{head}cases: {how}\n")


def test_headers_with_the_names_of_keys_are_taken():
    (case,) = cases(
        "id,question,gold,predicted,evidence,difficulty,tags,source,kind,skip,note\n"
        'a,"How many, then?",SELECT 1,SELECT 2,hint,hard,"joins, nightly,",b.db,sql,later,x\n'
    )

    assert (case.id, case.question, case.evidence, case.difficulty) == ("a", "How many, then?", "hint", "hard")
    assert (case.golds[0].query, case.predicted.query) == ("SELECT 1", "SELECT 2")
    assert (case.tags, case.settings.source.name, case.settings.kind, case.skip) == (
        ("joins", "nightly"),
        "b.db",
        "sql",
        "later",
    )
    assert case.metadata == {}


def test_a_case_is_located_where_the_suite_names_its_table():
    (case,) = cases("id,gold,predicted\n\na,x,y\n")

    assert (str(case.location), str(case.row)) == ("s.queryeval.yaml:3", "q.csv, row 3")
    assert str(case.golds[0].location) == "q.csv, row 3, column 'gold'"
    entry = case_json(case, nodeid="s.queryeval.yaml::a", path="s.queryeval.yaml", outcome="skipped")
    assert (entry["line"], entry["row"], entry["place"]) == (3, 3, "q.csv, row 3")


def test_columns_name_other_headers():
    (case,) = cases("Nr;Frage;Solution;db\n7;Wie?;SELECT 1;b.db\n", HOW, name="q.csv", head=WITH_PREDICTOR)

    assert (case.id, case.question, case.golds[0].query, case.settings.source.name) == ("7", "Wie?", "SELECT 1", "b.db")
    assert case.metadata == {"db": "b.db"}


def test_headers_are_found_in_any_letter_case_and_the_exact_one_is_preferred():
    first, second = cases("ID,Gold,gold,Predicted\na,no,yes,x\nb,no,yes,y\n")

    assert (first.id, first.golds[0].query, second.predicted.query) == ("a", "yes", "y")


def test_a_header_is_left_out_by_null():
    (case,) = cases("id,gold,predicted,source\na,x,y,Wikipedia\n", "{file: q.csv, columns: {source: null}}")

    assert case.settings.source.name == "a.db"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [("[db]", {"db": "1"}), ("rest", {"db": "1", "note": "n"}), ("[]", {}), ("[gold]", {"gold": "g"})],
)
def test_metadata_is_what_is_listed(metadata, expected):
    how = f"{{file: q.csv, columns: {{gold: Solution}}, metadata: {metadata}}}"

    (case,) = cases("id,Solution,predicted,gold,db,note,empty\na,x,y,g,1,n,\n", how)

    assert (case.metadata, case.golds[0].query) == (expected, "x")


def test_rows_without_an_id_have_their_number():
    entries = cases("id,gold,predicted\n,x,y\n\n b ,x,y\n ,x,y\n")

    assert [case.id for case in entries] == ["row-2", "b", "row-5"]


def test_text_stays_as_it_is():
    entries = cases("id,question,gold,predicted\n1.10,null, SELECT 1 ,~\n012,,on,no # comment\n")

    assert [(case.id, case.question, case.golds[0].query, case.predicted.query) for case in entries] == [
        ("1.10", "null", " SELECT 1 ", "~"),
        ("012", "", "on", "no # comment"),
    ]


@pytest.mark.parametrize(
    ("cell", "skip"),
    [
        ("", None),
        ("FALSE", None),
        ("0", None),
        ("TRUE", "skipped in the suite"),
        ("x", "skipped in the suite"),
        ("w", "w"),
    ],
)
def test_skip_is_a_reason_or_a_flag_as_spreadsheets_have_it(cell, skip):
    (case,) = cases(f"gold,predicted,skip\nx,y,{cell}\n")

    assert case.skip == skip


@pytest.mark.parametrize(("cell", "expected"), [("TRUE", True), ("x", True), ("no", False), ("", False)])
def test_allow_empty_is_a_flag_as_spreadsheets_have_it(cell, expected):
    (case,) = cases(f"id,gold,predicted,allow_empty\na,x,y,{cell}\n")

    assert case.allow_empty is expected


def test_allow_empty_is_nothing_but_a_flag():
    assert told("id,gold,predicted,allow_empty\na,x,y,maybe\n") == [
        "q.csv, row 2, column 'allow_empty': allow_empty: expected true or false, found the text 'maybe'"
    ]


def test_a_title_may_stand_above_the_header():
    text = "Questions of May\n\nNr,Solution,predicted\n\n7,SELECT 1,x\n"
    (case,) = cases(text, "{file: q.csv, header_row: 3, columns: {id: Nr, gold: Solution}}")

    assert (case.id, case.golds[0].query, str(case.row)) == ("7", "SELECT 1", "q.csv, row 5")


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_header_below_a_title_is_named(suffix):
    rows = [["Questions of May"], [], ["Nr", "Solution", "predicted"], [7, "SELECT 1", "x"]]
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save("q.xlsx")
    write("\n".join(",".join(map(str, row)) for row in rows), "q.csv")
    place = "q.csv, row 1" if suffix == "csv" else "q.xlsx, sheet 'Sheet', row 1"
    below = "row 3 looks like the header: write `header_row: 3` beside `file`"

    def of(how):
        return problems(f"{HEAD}cases: {{file: q.{suffix}, {how}}}\n")

    assert of("columns: {id: Nr, gold: solution}") == [f"{place}: there are no columns 'solution', 'Nr': {below}"]
    assert of("columns: {id: Nr, gold: Lösung}")[0].startswith("s.queryeval.yaml:3: columns: gold: ")
    (case,) = load(f"{HEAD}cases: {{file: q.{suffix}, header_row: 3, columns: {{id: Nr, gold: Solution}}}}\n")
    assert (case.id, case.predicted.query) == ("7", "x")
    assert of("header_row: 2")[0].startswith("s.queryeval.yaml:3: header_row: ")
    assert of("header_row: 2")[0].endswith("row 2 is empty: name the row that holds the headers")
    assert of("header_row: 9")[0].endswith("there is no row 9 with cells: name the row that holds the headers")
    assert of("header_row: 0")[0].endswith("header_row: expected a whole number from 1 on, found '0'")


def test_an_empty_prediction_is_an_empty_answer_unless_there_is_a_predictor():
    rows = "id,gold,predicted\na,x,\n"

    assert cases(rows)[0].predicted.query == ""
    (case,) = cases(rows, head=WITH_PREDICTOR)
    assert (case.predicted, case.settings.predictor.kind) == (None, "http")


@pytest.mark.feature("json")
def test_a_gold_of_json_is_its_text():
    (case,) = cases('gold,predicted\n"{""a"": [1, null]}",[]\n', head="kind: json\n")

    assert case.golds[0].answer.value == {"a": [1, None]}


def test_gold_files_are_relative_to_the_table():
    write("SELECT 7", "more/gold.sql")

    (case,) = cases("gold_file,predicted\ngold.sql,y\n", "{file: more/q.csv}", name="more/q.csv")

    assert case.golds[0].query == "SELECT 7"


def test_tables_may_be_named_as_files_of_cases_are():
    write("- {id: c, gold: x, predicted: y}", "more/3.yaml")
    write("id\tgold\tpredicted\nb\tx\ty\n", "more/2.tsv")

    entries = cases("id,gold,predicted\na,x,y\n", "more/*", name="more/1.csv")

    assert [case.id for case in entries] == ["a", "b", "c"]


def test_a_sheet_of_a_workbook():
    book = openpyxl.Workbook()
    book.create_sheet("Cases").append(["Question", "Solution", "predicted"])
    book["Cases"].append(["How many?", "SELECT 1", "SELECT 2"])
    book.save("q.xlsx")

    (case,) = load(f"{HEAD}cases: {{file: q.xlsx, sheet: Cases, columns: {{gold: Solution}}}}\n")

    assert (case.id, case.question, case.golds[0].query) == ("row-2", "How many?", "SELECT 1")
    assert case.row == Location(case.row.path, 2, 0, "sheet 'Cases', row 2")


def test_all_problems_of_a_table_come_in_one_error():
    assert told(
        "id,gold,predicted,tags,kind,gold_file\n"
        "a b,x,y,,,\n"
        "b,,y,_hidden,,\n"
        "b,x,y,,sqll,\n"
        "c,x,y,,,z.sql\n"
        ",x,y,,,\n"
        "row-6,x,y,,,\n"
    ) == [
        "q.csv, row 2, column 'id': id 'a b' must consist of letters, digits and - _ . : / without '::': write a-b",
        "q.csv, row 3: no gold: fill the cell of `gold` or `gold_file`",
        f"q.csv, row 3, column 'tags': {HIDDEN}",
        "q.csv, row 4: duplicate id 'b', first used in row 3: give one of them another id",
        "q.csv, row 4, column 'kind': unknown kind 'sqll': did you mean 'sql'?",
        "q.csv, row 5, column 'gold_file': gold and gold_file: a case has only one of them: keep one",
        "q.csv, row 7: duplicate id 'row-6', first used in row 6: give one of them another id",
    ]


def test_problems_of_one_sort_are_cut_short():
    actual = told("id,gold\n" + "".join(f"c{number},x\n" for number in range(1000)))

    assert actual[0] == ("q.csv, row 2: no prediction: add `predicted`, or `predictor` to the suite")
    assert actual[4:] == [actual[0].replace("row 2", "row 6") + " (and at 995 more places)"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("{sheet: A}", "AT: cases in a table need a `file`: write {file: questions.xlsx}, or a list of cases"),
        ("{file: q.csv, shet: A}", "AT: unknown key 'shet': did you mean 'sheet'?"),
        ("{file: r.csv}", "AT: there is no file r.csv: did you mean 'q.csv'?"),
        ("{file: q.csv, sheet: A}", "q.csv: has no sheets: leave out `sheet`"),
        (
            "{file: q.csv, delimiter: ;;}",
            "AT: delimiter: expected one character, such as ';' or \"\\t\", found ';;'",
        ),
        (
            "{file: q.csv, columns: {golden: x}}",
            "AT: a table has no column for 'golden': did you mean 'gold'?",
        ),
        (
            "{file: q.csv, columns: {gold: golden}}",
            "AT: columns: gold: HEADER: there is no column 'golden': did you mean 'gold'?",
        ),
        ("{file: q.csv, metadata: [goal]}", "AT: metadata: HEADER: there is no column 'goal': did you mean 'gold'?"),
        ("{file: q.csv, metadata: all}", "AT: metadata: expected a list, found 'all': write [all]"),
        (
            "{id: a, gold: x}",
            "AT: cases: expected a list, found a mapping: write each case as an item, `- {id: …, gold: …}`",
        ),
        (
            "{file: q.csv, columns: {gold: null}}",
            f"HEADER: there is no column 'gold': did you mean 'gold'? {NAMING}",
        ),
    ],
)
def test_what_is_wrong_with_the_keys_of_a_table(how, expected):
    expected = expected.replace("AT: ", "s.queryeval.yaml:3: ").replace("HEADER: ", "q.csv, row 1: ")
    assert told("id,gold,predicted\na,x,y\n", how) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,gold\n", "q.csv: there is no case in it: add one"),
        ("", "q.csv: has no header row: write the names of the columns into the first row"),
        (
            "id,Solution\na,x\n",
            f"HEADER: there is no column 'gold': choose from Solution, id {NAMING}",
        ),
        (
            "id,gold\na,x,y\n",
            "q.csv, row 2: 3 cells in a table of 2 columns: quote cells that hold a delimiter or a line end",
        ),
    ],
)
def test_what_is_wrong_with_a_whole_table(text, expected):
    assert told(text) == [expected.replace("HEADER: ", "q.csv, row 1: ")]


def test_a_cell_without_a_value_is_a_problem_of_its_row_only():
    book = openpyxl.Workbook()
    for row in (
        ["id", "gold", "predicted", "note"],
        ["a", "=1", "y", "=1"],
        ["b", "x", "#N/A", ""],
        ["c", "x", "y", "=1"],
    ):
        book.active.append(row)
    book.save("q.xlsx")

    assert problems(f"{HEAD}cases: {{file: q.xlsx}}\n") == [
        f"q.xlsx, sheet 'Sheet', row 2, column 'gold': {NO_VALUE}",
        "q.xlsx, sheet 'Sheet', row 3, column 'predicted': shows the error #N/A: correct its formula",
    ]


def test_no_cell_becomes_a_setting():
    """What is not a column of a case is metadata at most, also where its header is a key of suites."""
    (case,) = cases("id,gold,predicted,timeout,xfail\na,x,y,1,true\n", "{file: q.csv, metadata: rest}")

    assert (case.settings.timeout, case.xfail, case.metadata) == (30, None, {"timeout": "1", "xfail": "true"})


def test_all_headers_that_are_not_there_are_told_in_the_suite():
    suite = "{file: q.csv, columns: {id: Nummer, gold: Lösung}, metadata: [db_id, gold]}"

    assert told("id,gold,predicted\na,x,y\n", suite) == [
        "s.queryeval.yaml:3: columns: gold: q.csv, row 1: there is no column 'Lösung': choose from gold, id, predicted",
        "s.queryeval.yaml:3: columns: id: q.csv, row 1: there is no column 'Nummer': choose from gold, id, predicted",
        "s.queryeval.yaml:3: metadata: q.csv, row 1: there is no column 'db_id': choose from gold, id, predicted",
    ]


def test_a_row_without_an_answer_has_no_gold():
    answerable, unanswerable = cases("id,gold,predicted,answerable\na,x,y,\nb,,y,FALSE\n")

    assert (answerable.answerable, unanswerable.answerable, unanswerable.golds) == (True, False, ())
    assert told("id,gold,predicted,answerable\na,x,y,no\n") == [
        "q.csv, row 2, column 'gold': 'gold' beside `answerable: false`: no answer is right, remove one of them"
    ]
