"""Files of predictions: whose answer an entry is, what a run says of the others, and what is wrong with a file.

What every format says is in test_predictor_contract.py; mistakes with a remedy are in messages/predictions.yaml.
"""

import csv
import os
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predictor_sorts import write_predictions
from samples import make_case, query
from spreadsheets import case as run_case
from spreadsheets import make_report
from yaml_tables import read_table

from pytest_queryeval.core.errors import Location, PredictorError
from pytest_queryeval.core.model import Failure, PredictorSpec, Source
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.reports import REPORTS

pytestmark = pytest.mark.usefixtures("working_folder")

FAULTS = read_table("prediction_files.yaml")


def opened(path, **settings):
    return PREDICTORS["file"].opener(PredictorSpec(kind="file", settings={"path": path, **settings}, folder=Path.cwd()))


def predictions(*entries, name="p.jsonl", **settings):
    """The predictor of a file with these entries, or with these lines."""
    if entries and isinstance(entries[0], str):
        Path(name).write_text("\n".join(entries), encoding="utf-8")
    else:
        write_predictions(Path(name), entries)
    return opened(name, **settings)


def of(id_, predicted="x", **more):
    return {"id": id_, "predicted": predicted, **more}


def answer(predictor, trial=1, **changes):
    return predictor.predict(make_case(**changes), trial).content.query


def no_answer(predictor, trial=1, **changes):
    """Why a case has no answer."""
    with pytest.raises(PredictorError) as caught:
        predictor.predict(make_case(**changes), trial)
    return str(caught.value)


def problem(*entries, **settings):
    """What is wrong with a file as a whole."""
    with pytest.raises(PredictorError) as caught:
        predictions(*entries, **settings)
    return str(caught.value)


def cases(*names, suite="s.queryeval.yaml", **changes):
    return [make_case(id=name, location=Location(Path(suite), 4 + line), **changes) for line, name in enumerate(names)]


def registered(cases_of_run, *entries, **settings):
    """A predictor that knows the cases of the run."""
    predictor = predictions(*entries, **settings)
    predictor.register_cases(cases_of_run)
    return predictor


# Whose answer an entry is

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t,;\"'"), max_size=12)


@pytest.mark.parametrize("name", ["p.jsonl", "p.json", "p.csv", "p.tsv"])
@given(texts=st.dictionaries(TEXTS.filter(str.strip).map(lambda text: f"i{text}i"), TEXTS, min_size=1, max_size=4))
def test_every_case_gets_the_text_of_its_id_in_every_format(name, texts):
    predictor = predictions(*(of(id_, f"q{text}q") for id_, text in texts.items()), name=name)

    assert {id_: answer(predictor, id=id_) for id_ in texts} == {id_: f"q{text}q" for id_, text in texts.items()}


@given(st.dictionaries(st.text(max_size=9).filter(lambda key: key not in of("")), st.integers() | st.text()))
def test_other_keys_of_an_entry_are_metadata(metadata):
    metadata = {f"m{key}": value for key, value in metadata.items()}

    assert predictions(of("a", **metadata)).predict(make_case(), 1).metadata == metadata


@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [
        ("p.jsonl", '{"id": "a", "predicted": "é", "tokens": 7}\r\n\r\n', "utf-8"),
        ("p.ndjson", '\n\n{"id": "a", "predicted": "é", "tokens": 7}', "utf-8-sig"),
        ("p.json", ' [{"id": "a",\r\n "predicted": "é", "tokens": 7}]\r\n', "utf-8-sig"),
        ("p.json", '{"a": {"predicted": "é",\n "tokens": 7}}', "utf-8"),
        ("P.CSV", "id,predicted,tokens,note\r\n\r\na,é,7,\r\nb,x,,\r\n", "utf-8-sig"),
        ("p.tsv", "id\tpredicted\ttokens\n\na\té\t7\n", "utf-8"),
    ],
)
def test_line_ends_blank_lines_and_a_byte_order_mark_are_no_part_of_a_prediction(name, text, encoding):
    Path(name).write_bytes(text.encode(encoding))

    prediction = opened(name).predict(make_case(), 1)

    assert (prediction.content, prediction.metadata) == (query("é"), {"tokens": 7})
    assert prediction.predictor == f"file:{name}"


def test_cells_of_other_columns_are_numbers_where_they_look_so_and_may_be_long():
    cells = "id,predicted,seconds,cost,code,ok,model,note", "a,007,1.5,2e-3,007,true,None,"
    prediction, limit = predictions(*cells, name="p.csv"), csv.field_size_limit()

    said = prediction.predict(make_case(), 1)
    assert (said.content, said.seconds) == (query("007"), 1.5)
    assert answer(predictions(of("a", "x" * 1_000_000), name="p.csv")) == "x" * 1_000_000
    assert csv.field_size_limit() == limit
    assert said.metadata == {"cost": 0.002, "code": "007", "ok": True, "model": "None"}


def test_a_parquet_file_holds_predictions():
    duckdb.sql("COPY (SELECT 'a' AS id, 'SELECT 1' AS predicted, 1.5 AS cost) TO 'p.parquet'")

    prediction = opened("p.parquet").predict(make_case(), 1)

    assert (prediction.content, prediction.metadata) == (query("SELECT 1"), {"cost": 1.5})


@pytest.mark.parametrize(
    ("asked", "written"), [({"id": "a"}, {"id": " a\t"}), ({"id": "Caf\u00e9"}, {"id": "Cafe\u0301"})]
)
def test_ids_that_look_the_same_are_the_same(asked, written):
    assert answer(predictions({**written, "predicted": "x"}), **asked) == "x"


@pytest.mark.parametrize("name", ["p.jsonl", "p.json", "p.csv", "p.xlsx"])
def test_a_file_without_ids_is_read_by_question(name):
    predictor = predictions(
        {"question": "How \n many?", "predicted": "x"}, {"question": "Cafe\u0301?", "predicted": "y"}, name=name
    )

    assert answer(predictor, id="any", question=" How many?\n") == "x"
    assert answer(predictor, id="any", question="Caf\u00e9?") == "y"
    message = f"{name}: no prediction for 'How much?': it has 'How many?', which no case has: write 'How much?' there"
    assert no_answer(predictor, question="How much?") == message


@pytest.mark.parametrize(
    ("name", "line"),
    [("p.json", '{"How many?": "x"}'), ("p.jsonl", '{"id": "other", "question": "How many?", "predicted": "x"}')],
)
def test_key_says_that_questions_count(name, line):
    prediction = predictions(line, name=name, key="question").predict(make_case(question="How many?"), 1)

    assert (prediction.content, prediction.metadata) == (query("x"), {})


def test_a_question_may_come_again_with_the_same_answer_only():
    same, second = ({"question": "How many?", "predicted": text} for text in ("x", "y"))

    assert answer(predictions(same, same), question="How many?") == "x"
    assert problem(same, same, second).startswith("p.jsonl:3: 'How many?' was predicted on line 1 already")


def test_an_entry_serves_every_trial_unless_it_says_which():
    predictor = predictions(of("a"), of("b", "second", trial=2), of("b", "first", trial=1), of(12))

    assert [answer(predictor, trial) for trial in (1, 2)] == ["x", "x"]
    assert [answer(predictor, trial, id="b") for trial in (1, 2)] == ["first", "second"]
    assert no_answer(predictor, 3, id="b") == "p.jsonl: no prediction for 'b', trial 3: there are trials 1, 2"
    assert answer(predictor, id="12") == "x"


@pytest.mark.parametrize("name", ["p.jsonl", "p.json", "p.csv"])
def test_a_prediction_for_another_question_is_refused(name):
    predictor = predictions(of("a", question="How many?"), name=name)

    assert answer(predictor, question=" How  many?\n") == answer(predictor, question="") == "x"
    assert ": 'a' was predicted for another question, 'How many?', not 'How much?': predict it again, " in no_answer(
        predictor, question="How much?"
    )


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ((), ["ambiguous", "ambiguous"]),
        (("s.queryeval.yaml",), ["ambiguous", "ambiguous"]),
        (("x/s.queryeval.yaml", "y/s.queryeval.yaml"), ["0", "1"]),
        (("x/s.queryeval.yaml", "gone.yaml"), ["0", "other suites, such as 'x/s.queryeval.yaml'"]),
    ],
)
@pytest.mark.parametrize("name", ["p.jsonl", "p.csv"])
def test_a_prediction_for_cases_of_two_suites_is_refused_unless_it_names_one(name, stated, found):
    (first,), (second,) = cases("a", suite="x/s.queryeval.yaml"), cases("a", suite="y/s.queryeval.yaml")
    entries = [of("a", str(number), suite=suite) for number, suite in enumerate(stated)] or [of("a")]
    predictor = registered([first, second], *entries, name=name)

    for case, expected in zip((first, second), found, strict=True):
        if len(expected) == 1:
            assert predictor.predict(case, 1).content.query == expected
            continue
        with pytest.raises(PredictorError) as refused:
            predictor.predict(case, 1)
        both = "is a case of 2 suites, x/s.queryeval.yaml and y/s.queryeval.yaml: add the field or column `suite`"
        assert (both if expected == "ambiguous" else expected) in str(refused.value)
    assert predictor.remarks() == ((f"{name}: 1 prediction was not used: a",) if "gone.yaml" in stated else ())


# What the columns are called

NUMBERED = ["No.,Question,SQL,Seconds", "1,How many?,SELECT 1,0.5", "2,How old?,SELECT 2,"]


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": {"id": "No.", "predicted": "SQL"}},
        {"key": "No.", "columns": {"predicted": "SQL"}},
        {"key": "No.", "answer": "SQL"},
        {"key": "id", "columns": {"id": "No.", "predicted": "SQL"}},
    ],
    ids=str,
)
def test_a_table_has_columns_of_its_own(settings):
    predictor = predictions(*NUMBERED, name="b.csv", **settings)

    assert answer(predictor, id="2") == "SELECT 2"
    assert predictor.predict(make_case(id="1"), 1).metadata == {"Question": "How many?", "Seconds": 0.5}


@pytest.mark.parametrize("key", [{}, {"key": "question"}, {"key": "Question"}], ids=str)
def test_a_question_has_a_column_of_its_own(key):
    columns = {"question": "Question", "predicted": "SQL", "seconds": "Seconds"}

    prediction = predictions(*NUMBERED[:2], name="b.csv", columns=columns, **key).predict(
        make_case(id="1", question="How  many?"), 1
    )

    assert (prediction.content.query, prediction.seconds, prediction.metadata) == ("SELECT 1", 0.5, {"No.": 1})


def test_objects_and_mappings_have_names_of_their_own():
    columns = {"id": "nr", "predicted": "sql", "trial": "run"}
    lines = predictions({"nr": 1, "sql": "SELECT 1", "run": 2, "id": "x"}, columns=columns)
    mapping = predictions('{"1": {"sql": "SELECT 2", "tokens": 3}}', name="q.json", columns=columns)

    assert answer(lines, trial=2, id="1") == "SELECT 1"
    assert lines.predict(make_case(id="1"), 2).metadata == {"id": "x"}
    assert mapping.predict(make_case(id="1"), 1).metadata == {"tokens": 3}


def test_a_sheet_and_a_header_below_a_title_are_found_by_their_settings():
    write_predictions(Path("p.xlsx"), [of("a")])
    title = ["Answers of model B,", "", "id;predicted", "a;SELECT 1"]

    assert answer(opened("p.xlsx", sheet="Sheet")) == "x"
    assert answer(predictions(*title, name="b.csv", header_row=3, delimiter=";")) == "SELECT 1"
    assert problem(*title, name="b.csv", header_row=2) == "b.csv: row 2 is empty: name the row with the headers"


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("b.csv?id=No.&predicted=SQL", {"path": "b.csv", "columns": {"id": "No.", "predicted": "SQL"}}),
        (f"b.csv?header_row={'9' * 5000}", {"path": "b.csv", "header_row": "9" * 5000}),
        ("runs/b.xlsx?sheet=Run%201&header_row=2", {"path": "runs/b.xlsx", "sheet": "Run 1", "header_row": 2}),
        ("b.csv?key=A%26B&predicted=C++", {"path": "b.csv", "key": "A&B", "columns": {"predicted": "C++"}}),
        ("b.csv?", {"path": "b.csv?"}),
        ("why?.csv", {"path": "why?.csv"}),
    ],
)
def test_settings_stand_behind_the_name_of_a_file(text, settings):
    assert PREDICTORS["file"].read_text(text) == settings


# Files of other programs

BIRD = "SELECT 1\t----- bird -----\tcard_games"


@pytest.mark.parametrize("name", ["p.json", "p.jsonl", "p.csv", "p.sql"])
def test_the_database_that_bird_names_behind_a_query_is_taken_off(name):
    entries = [BIRD] if name == "p.sql" else [of("a", BIRD)]

    assert answer(registered(cases("a"), *entries, name=name), location=cases("a")[0].location) == "SELECT 1"
    assert answer(predictions('{"7": "SELECT 1"}', name="p.json"), id="7") == "SELECT 1"  # no key of BIRD's


@pytest.mark.parametrize("name", ["p.jsonl", "p.sql"])
def test_predictions_for_other_databases_are_named_at_the_end(name):
    shop = Source(name="shop", engine="sqlite", settings={"path": "db/shop.sqlite"}, folder=Path())
    marked = [f"x\t----- bird -----\t{database}" for database in ("SHOP", "trips")]
    entries = marked if name == "p.sql" else [of("a", marked[0]), of("b", marked[1])]

    (sentence,) = registered(cases("a", "b", source=shop), *entries, name=name).remarks()
    assert sentence == (
        f"{name}: 1 prediction names another database than the cases: 'trips' instead of 'shop' for 'b': "
        "check that the file is for these cases"
    )


TEXTS_OF_RUN = ("-- mean\nSELECT 1", "=1+1", "'a' = 'b'", "\tSELECT 1", "SELECT 'a'", "", "  -- x\nSELECT 1")


@pytest.fixture
def run_files():
    """Write the tables of a run, report.csv and report.xlsx."""

    def write(*cases_of_run):
        for name in ("csv", "xlsx"):
            Path(f"report.{name}").write_bytes(REPORTS[name].render(make_report(*cases_of_run)))

    return write


def predicted(text):
    return {**run_case()["predicted"], "query": text}


@pytest.mark.feature("excel")
@pytest.mark.parametrize(
    ("name", "settings"),
    [("report.csv", {}), ("report.csv", {"columns": {"predicted": "predicted_query"}}), ("report.xlsx", {})],
)
def test_the_tables_of_a_run_hold_its_predictions_without_the_guard_against_formulas(run_files, name, settings):
    of_run = [run_case(number, predicted=predicted(text)) for number, text in enumerate(TEXTS_OF_RUN)]
    asked = {"id": "-1", "question": "=1+1?\x1b", "prediction": {"source": "x", "seconds": 2.5, "metadata": {}}}
    run_files(*of_run, run_case(90, **asked), run_case(91, outcome="error", predicted=None))
    predictor = opened(name, **settings)

    texts = tuple(answer(predictor, id=f"c{number}") for number in range(len(TEXTS_OF_RUN)))
    assert texts == TEXTS_OF_RUN
    assert answer(predictor, id="-1", question="=1+1?\x1b")
    if name == "report.csv":
        assert "for another question" in no_answer(predictor, id="-1", question="How much?")
    if not settings:
        assert predictor.predict(make_case(id="-1"), 1).seconds == 2.5
        assert no_answer(predictor, id="c91").startswith(f"{name}: no prediction for 'c91'")


@pytest.mark.feature("excel")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x" * 20_000, "is only a part of the answer, which was too long for the report"),
        ("SELECT '[redacted]'", "lacks a secret of the answer, which reports do not show"),
    ],
)
@pytest.mark.parametrize("name", ["report.csv", "report.xlsx"])
def test_an_answer_that_a_report_shows_in_part_is_no_prediction(run_files, name, text, problem):
    run_files(run_case(1, predicted=predicted(text)))

    with pytest.raises(PredictorError) as caught:
        opened(name)

    assert str(caught.value).endswith(problem)


@pytest.mark.feature("excel")
def test_a_question_that_the_report_of_a_run_has_in_part_is_not_compared(run_files):
    run_files(run_case(1, question="Who is [redacted]?"))

    assert answer(opened("report.csv"), id="c1", question="Who is hunter2?")


def test_columns_win_over_the_layout_of_a_workbook_that_a_run_has_written_and_other_texts_stay():
    row = {"id": "a", "predicted": "SELECT 1", "outcome": "failed", "prediction (s)": 0.1, "corrected": "SELECT 2"}

    assert answer(predictions(row, name="run.xlsx")) == "SELECT 1"
    assert answer(opened("run.xlsx", columns={"predicted": "corrected"})) == "SELECT 2"
    assert answer(predictions("id,predicted", "a,'b' = 'c'", name="p.csv")) == "'b' = 'c'"


# Plain lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("x", ["x"]),
        ("x\n\nz\n", ["x", "", "z"]),
        ("x\n\r\n", ["x", ""]),
        ("\ufeffx\r\ny\u2028z\r\nv\r\n", ["x", "y\u2028z", "v"]),
    ],
)
def test_plain_lines_are_in_the_order_of_the_cases_of_each_suite_and_as_many(text, lines):
    Path("p.txt").write_bytes(text.encode())
    suite, second = cases(*"abcd"[: len(lines)]), cases(*"vwxyz", suite="t.queryeval.yaml")
    predictor = opened("p.txt")

    predictor.register_cases([*reversed(suite), *second])

    assert [predictor.predict(case, 2).content.query for case in suite] == lines
    number = f"{len(lines)} line" + "s" * (len(lines) != 1)
    with pytest.raises(PredictorError) as refused:
        predictor.predict(second[0], 1)
    assert str(refused.value) == (
        f"p.txt: {number} for 5 cases of t.queryeval.yaml: write one line for each case, in their order"
    )
    assert no_answer(predictor, id="e") == "p.txt: plain lines are in the order of cases that are not known"
    assert predictor.remarks() == ()


# What a run says of the entries that it does not need, and of the cases that have none


def test_entries_that_no_case_asks_for_are_named_once_the_cases_are_known_and_many_are_counted():
    predictor = predictions(*(of(name) for name in ("b", "a", "c\x1b", "d")))

    assert predictor.remarks() == ()
    predictor.register_cases(cases("a", "e"))
    assert predictor.remarks() == ("p.jsonl: 3 predictions were not used: b, c\\x1b, d",)
    (sentence,) = registered(cases("n0"), *(of(f"n{number}") for number in range(1234))).remarks()
    assert sentence.startswith("p.jsonl: 1,233 predictions were not used: n1, n2, ")
    assert sentence.endswith(", n10 and 1,223 more")


@pytest.mark.parametrize(
    ("trials", "sentence"),
    [
        ({"a": 1}, "3 predictions of more trials were not used: a, b: write `trials: 4`"),
        ({"a": 3}, "2 predictions of more trials were not used: a, b: write `trials: 4`"),
        ({"a": 1, "A": 4}, "1 prediction of more trials was not used: b: write `trials: 2`"),
        ({"a": 4, "b": 2}, ""),
    ],
)
def test_entries_of_trials_that_no_case_asks_for_are_named(trials, sentence):
    asked = [("a", 1), ("a", 2), ("a", 4), ("b", 1), ("b", 2)]
    entries = [{"question": name, "trial": trial, "predicted": "x"} for name, trial in asked]
    ids = ["a", "b", "c", *({*trials} - {"a", "b"})]
    of_run = [
        make_case(id=id_, question=id_.lower(), trials=trials.get(id_, 1), location=Location(Path("s.yaml"), line))
        for line, id_ in enumerate(ids)
    ]

    predictor = registered(of_run, *entries, {"question": "c", "predicted": "x"})

    assert predictor.remarks() == ((f"p.jsonl: {sentence}",) if sentence else ())


MANY = [*(f"q{number}" for number in range(1000)), "train_12", "mean-age"]
ADD = ": add it, or correct one of the ids that no case has: "
FAIL = "or count such cases as failed, `p.jsonl?missing=fail`"


@pytest.mark.parametrize(
    ("names", "ids", "message"),
    [
        (MANY, ["Mean_Age"], ": it has 'mean-age', which no case has: write 'Mean_Age' there"),
        (MANY, ["train-0012"], ": it has 'train_12', which no case has: write 'train-0012' there"),
        *((MANY, [name], f"{ADD}'q0', 'q1', 'q2' and 999 more") for name in ("agemean", "train-13", "populations")),
        (["a", "b"], ["a", "b", "c"], f" (1 of 3 cases has none): add it, {FAIL}"),
        (
            ["mean-1", "mean-2", "other"],
            ["mean-1", "mean-2", "other", "mean-3"],
            f" (1 of 4 cases has none): add it (nearest: 'mean-2', 'mean-1', each that of another case), {FAIL}",
        ),
        ([], ["a"], ": it is empty"),
    ],
)
def test_a_case_without_an_entry_is_told_of_the_nearest_one_that_no_case_has(names, ids, message):
    entries = [of(name) for name in names] or ["[]"]
    predictor = registered(cases(*ids), *entries, name="p.jsonl" if names else "p.json")

    said = no_answer(predictor, id=ids[-1])

    assert said == f"{'p.jsonl' if names else 'p.json'}: no prediction for '{ids[-1]}'{message}"


def test_entries_are_compared_up_to_a_bound_and_by_letters_beyond_it(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.predictors.file.MAX_COMPARISONS", 2)
    predictor = predictions(*(of(name) for name in ("singers-old", "mean-age", "sizes")))

    assert no_answer(predictor, id="MEAN AGE").endswith("it has 'mean-age', which no case has: write 'MEAN AGE' there")
    assert ": add it, or correct one of the ids" in no_answer(predictor, id="singers-odl")


@pytest.mark.parametrize(
    ("missing", "ids", "failure"),
    [
        ("error", "abc", None),
        ("fail", "abc", "p.jsonl: no prediction for 'c' (1 of 3 cases has none): add it"),
        ("fail", "c", None),
        ("fail", "cd", None),
    ],
)
def test_a_missing_prediction_fails_its_case_unless_the_file_is_for_other_cases(missing, ids, failure):
    predictor = registered(cases(*ids), of("a"), of("b"), missing=missing)

    if failure is None:
        assert no_answer(predictor, id="c").startswith("p.jsonl: no prediction for 'c'")
    else:
        assert predictor.predict(make_case(id="c"), 1).content == Failure(kind="missing", message=failure)
        of_trial = predictions(of("a", trial=1), missing=missing).predict(make_case(), 2)
        assert of_trial.content.kind == "missing"


# What is wrong with a file


def refused(path):
    with pytest.raises(PredictorError) as caught:
        opened(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [(name, *row) for name, rows in FAULTS.items() for row in rows],
    ids=lambda value: value[:40],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(name, text, message):
    Path(name).write_text(text.replace("[…", "[" * 100_000).replace("9…", "9" * 100_000), encoding="utf-8")

    said = refused(name)

    assert said.startswith(f"{name}{message}")
    assert "set_int_max_str_digits" not in said


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (of("a", "y"), "row 3: 'a' was predicted in sheet 'Sheet', row 2 already"),
        (of("", "y"), "row 3: a prediction needs `id`, which is text"),
        (of("b", "=1"), "row 3, column 'predicted': is a formula without a stored value"),
    ],
)
def test_what_is_wrong_with_a_sheet_is_said_with_its_place(row, message):
    assert problem(of("a"), row, name="p.xlsx").startswith(f"p.xlsx, sheet 'Sheet', {message}")


LATIN = 'x\n{"id": "é"}'.encode("latin-1")
A_REPORT = (
    ": is a report, not a file of predictions:"
    " name its report.csv or report.xlsx instead, which `queryeval render` writes"
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.jsonl", None, ": no such file"),
        ("folder.txt", Path.mkdir, ": is not a file"),
        ("pipe.jsonl", os.mkfifo, ": is not a file"),  # which is not waited for
        *((f"p.{suffix}", LATIN, ":2:9: byte 0xe9 is not UTF-8: save ") for suffix in ("jsonl", "json", "csv", "txt")),
        ("report.json", REPORTS["json"].render(make_report(run_case(1))), A_REPORT),
    ],
)
def test_what_is_no_file_of_predictions_is_named(name, content, message):
    if callable(content):
        content(Path(name))
    elif content is not None:
        Path(name).write_bytes(content)

    assert refused(name).startswith(f"{name}{message}")


def test_what_is_wrong_with_columns_is_said_with_the_names_of_the_file():
    columns = {"id": "No.", "predicted": "SQL", "seconds": "Time"}
    choices = "choose from No., Question, SQL, Seconds"

    assert problem(*NUMBERED, name="b.csv", columns=columns) == f"b.csv:1: there is no column 'Time': {choices}"
    assert problem(*NUMBERED, name="b.csv", key="Nr", answer="SQL") == f"b.csv:1: there is no column 'Nr': {choices}"
    assert problem({"No.": "a"}, columns={"id": "No.", "predicted": "SQL"}) == (
        "p.jsonl:1: a prediction needs `SQL`: choose from No."
    )
    message = problem("No.,SQL,Time", "1,SELECT 1,soon", name="b.csv", columns=columns)
    assert message == "b.csv:2: `Time` must be a number from 0 to 1,000,000,000, without quotes or a unit"
