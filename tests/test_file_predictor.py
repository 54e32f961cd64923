"""Files of predictions: by id, by question or by place, in every format, and all that can be wrong with them."""

import csv
import json
import os
from pathlib import Path

import duckdb
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import make_case, query
from spreadsheets import case as run_case
from spreadsheets import make_report

from pytest_queryeval.core.errors import Location, PredictorError
from pytest_queryeval.core.model import Failure, PredictorSpec, Source
from pytest_queryeval.features.excel.csv import render_csv
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.reports import REPORTS
from pytest_queryeval.text.redaction import MARK

OWN_KEYS = ("id", "predicted", "seconds", "trial")


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """Messages name files from the current folder on."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened(**settings):
    return PREDICTORS["file"].opener(PredictorSpec(kind="file", settings=settings, folder=Path.cwd()))


def predictions(*lines, name="preds.jsonl", encoding="utf-8", **settings):
    """The predictor of a file with these lines, each text as it stands or an entry as JSON."""
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    Path(name).write_bytes(text.encode(encoding))
    return opened(path=name, **settings)


def answered(predictor, trial=1, **changes):
    return predictor.predict(make_case(**changes), trial).content.query


def problem(*lines, **settings):
    """What is wrong with a file of these lines, as a whole."""
    with pytest.raises(PredictorError) as caught:
        predictions(*lines, **settings)
    return str(caught.value)


def no_answer(predictor, trial=1, **changes):
    """Why a case has no answer."""
    with pytest.raises(PredictorError) as caught:
        predictor.predict(make_case(**changes), trial)
    return str(caught.value)


def cases(*names, suite="s.queryeval.yaml"):
    return [make_case(id=name, location=Location(Path(suite), 4 + line)) for line, name in enumerate(names)]


def test_a_file_answers_each_case_with_the_entry_of_its_id():
    predictor = predictions({"id": "a", "predicted": "SELECT 1"}, "", {"id": "b", "predicted": ""})

    assert answered(predictor, id="a") == "SELECT 1"
    assert answered(predictor, id="b") == ""


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("preds.json", ['{"a": "SELECT 1\\t----- bird -----\\tcard_games"}']),
        ("preds.jsonl", [{"id": "a", "predicted": "SELECT 1\t----- bird -----\tcard_games"}]),
        ("preds.csv", ["id,predicted", "a,SELECT 1\t----- bird -----\tcard_games"]),
        ("preds.sql", ["SELECT 1\t----- bird -----\tcard_games"]),
    ],
)
def test_the_database_that_bird_names_behind_a_query_is_taken_off(name, lines):
    predictor = predictions(*lines, name=name)
    predictor.register_cases(cases("a"))

    assert answered(predictor, id="a", location=Location(Path("s.queryeval.yaml"), 4)) == "SELECT 1"


def test_a_file_of_bird_is_refused_since_its_keys_are_positions():
    lines = ["{", '"0": "SELECT 1\\t----- bird -----\\tshop",', '"1": "SELECT 2\\t----- bird -----\\tshop"}']

    with pytest.raises(PredictorError) as refused:
        predictions(*lines, name="preds.json")

    assert str(refused.value) == (
        "preds.json:2: '0' is a key of BIRD's predictions: its keys are positions and not ids: "
        "import it, `queryeval import bird QUESTIONS --predictions FILE`"
    )


def test_keys_that_are_numbers_are_ids_where_no_answer_is_one_of_bird():
    assert answered(predictions('{"7": "SELECT 1"}', name="preds.json"), id="7") == "SELECT 1"


def test_a_file_is_found_from_the_folder_of_the_suite():
    Path("runs").mkdir()

    prediction = predictions({"id": "a", "predicted": "x"}, name="runs/p.jsonl").predict(make_case(), 1)

    assert prediction.predictor == "file:p.jsonl"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("p.jsonl", ['{"id": "a", "predicted": "é", "tokens": 7}']),
        ("p.ndjson", ['{"id": "a", "predicted": "é", "tokens": 7}']),
        ("p.json", ['[{"id": "a", "predicted": "é", "tokens": 7}]']),
        ("p.json", ['{"a": {"predicted": "é", "tokens": 7}}']),
        ("P.CSV", ["id,predicted,tokens,note", "a,é,7,", "b,x,,"]),
        ("p.tsv", ["id\tpredicted\ttokens", "a\té\t7"]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["", "\r", "\n"], ids=["LF", "CRLF", "blank lines"])
def test_every_format_tells_the_same(name, lines, encoding, end):
    predictor = predictions(*(line + end for line in lines), "", name=name, encoding=encoding)

    prediction = predictor.predict(make_case(), 1)

    assert prediction.content == query("é")
    assert prediction.metadata == {"tokens": 7}


def workbook(*rows, sheet="Sheet", name="p.xlsx"):
    book = openpyxl.Workbook()
    book.create_sheet(sheet)
    for row in rows:
        book[sheet].append(row)
    if sheet != "Sheet":
        book["Sheet"].append(["nothing"])
    else:
        del book["Sheet1"]
    book.save(name)


def test_a_sheet_holds_predictions_as_a_csv_file_does():
    workbook(["id", "sql", "seconds", "cost", "note"], [7, "SELECT 1", 1.5, 3.0, None], ["b"], sheet="Mine")

    predictor = opened(path="p.xlsx", sheet="Mine", answer="sql")

    prediction = predictor.predict(make_case(id="7"), 1)
    assert (prediction.content, prediction.seconds, prediction.metadata) == (query("SELECT 1"), 1.5, {"cost": 3})
    assert answered(predictor, id="b") == ""


def test_the_message_of_another_delimiter_says_how_to_name_it_also_on_the_command_line():
    assert 'write `delimiter: ";"` beside `path`, or in short `p.csv?delimiter=%3B`' in problem(
        "id;predicted", "a;x", name="p.csv"
    )


def test_predictions_are_separated_by_another_delimiter():
    assert answered(predictions("id;predicted", "a;x, y", name="p.csv", delimiter=";")) == "x, y"


def test_a_parquet_file_holds_predictions():
    duckdb.sql("COPY (SELECT 'a' AS id, 'SELECT 1' AS predicted, 1.5 AS cost) TO 'p.parquet'")

    prediction = opened(path="p.parquet").predict(make_case(), 1)

    assert (prediction.content, prediction.metadata) == (query("SELECT 1"), {"cost": 1.5})


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (["a", "y"], "p.xlsx, sheet 'Sheet', row 4: 'a' was predicted in sheet 'Sheet', row 2 already"),
        (["", "y"], "p.xlsx, sheet 'Sheet', row 4: a prediction needs `id`, which is text"),
        (["b", "=1"], "p.xlsx, sheet 'Sheet', row 4, column 'predicted': is a formula without a stored value"),
    ],
)
def test_what_is_wrong_with_a_sheet_is_said_with_its_place(row, told):
    workbook(["id", "predicted"], ["a", "x"], [], row)

    with pytest.raises(PredictorError) as caught:
        opened(path="p.xlsx")
    assert str(caught.value).startswith(told)


def predicted(text):
    return {**run_case()["predicted"], "query": text}


@pytest.mark.parametrize("columns", [{}, {"columns": {"predicted": "predicted_query"}}])
def test_the_csv_report_of_a_run_holds_its_predictions_without_the_guard_against_formulas(columns):
    texts = ("-- mean\nSELECT 1", "=1+1", "'a' = 'b'", "\tSELECT 1", "SELECT 'a'", "", "  -- x\nSELECT 1")
    cases = [run_case(number, predicted=predicted(text)) for number, text in enumerate(texts)]
    cases.append(run_case(len(texts), id="-1", prediction={"source": "x", "seconds": 2.5, "metadata": {}}))
    Path("report.csv").write_bytes(render_csv(make_report(*cases)))
    predictor = opened(path="report.csv", **columns)

    assert tuple(answered(predictor, id=f"c{number}") for number in range(len(texts))) == texts
    assert answered(predictor, id="-1")
    if not columns:
        assert predictor.predict(make_case(id="-1"), 1).seconds == 2.5


def test_a_case_that_was_not_predicted_has_no_prediction_in_the_csv_report():
    Path("report.csv").write_bytes(render_csv(make_report(run_case(1, outcome="error", predicted=None))))

    assert no_answer(opened(path="report.csv"), id="c1").startswith("report.csv: no prediction for 'c1'")


def test_the_texts_of_a_table_of_the_user_stay_as_they_are():
    predictor = predictions("id,predicted", "a,'b' = 'c'", name="p.csv")

    assert answered(predictor, id="a") == "'b' = 'c'"


def test_a_report_is_no_file_of_predictions():
    Path("report.json").write_bytes(REPORTS["json"].render(make_report(run_case(1))))

    with pytest.raises(PredictorError) as caught:
        opened(path="report.json")

    assert str(caught.value) == (
        "report.json: is a report, not a file of predictions:"
        " name its report.csv or report.xlsx instead, which `queryeval render` writes"
    )


def test_a_mapping_of_json_leads_from_ids_to_answers():
    predictor = predictions('{"a": "SELECT 1",', ' "b": {"x": [1]}}', name="p.json")

    assert answered(predictor) == "SELECT 1"
    assert answered(predictor, id="b", kind="json") == '{"x": [1]}'


@pytest.mark.parametrize("text", ["[]", "{}", " [ ] "])
def test_a_file_may_hold_nothing(text):
    assert no_answer(predictions(text, name="p.json")) == "p.json: no prediction for 'a': it is empty"


def test_a_cell_may_hold_lines_quotes_and_a_million_characters():
    limit = csv.field_size_limit()
    long = "x" * 1_000_000

    predictor = predictions("predicted,id", '"SELECT ""a""', 'FROM t",a', f"{long},b", name="p.csv")

    assert answered(predictor) == 'SELECT "a"\nFROM t'
    assert answered(predictor, id="b") == long
    assert csv.field_size_limit() == limit


def test_cells_of_other_columns_are_numbers_where_they_look_so():
    lines = ("id,predicted,seconds,cost,code,ok,note", "a,007,1.5,2e-3,007,true,")

    prediction = predictions(*lines, name="p.csv").predict(make_case(), 1)

    assert (prediction.content, prediction.seconds) == (query("007"), 1.5)
    assert prediction.metadata == {"cost": 0.002, "code": "007", "ok": True}


def test_an_empty_cell_is_an_empty_answer():
    assert answered(predictions("id,predicted", "a,", name="p.csv")) == ""


@given(st.dictionaries(st.text(max_size=9).filter(lambda key: key not in OWN_KEYS), st.integers() | st.text()))
def test_other_keys_of_an_entry_are_metadata(metadata):
    entry = {"id": "a", "predicted": "x", "seconds": 1.5, **metadata}

    prediction = predictions(entry).predict(make_case(), 1)

    assert prediction.metadata == metadata
    assert prediction.seconds == 1.5


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("p.jsonl", ['{"id": "a", "sql": "x"}']),
        ("p.json", ['{"a": {"sql": "x"}}']),
        ("p.csv", ["id,sql", "a,x"]),
    ],
)
def test_answers_may_be_called_otherwise(name, lines):
    assert answered(predictions(*lines, name=name, answer="sql")) == "x"


def test_a_number_as_id_is_text():
    assert answered(predictions({"id": 12, "predicted": "x"}), id="12") == "x"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("p.jsonl", ['{"question": "How  many?", "predicted": "x"}']),
        ("p.json", ['[{"question": "How\\nmany? ", "predicted": "x"}]']),
        ("p.csv", ["question,predicted", "How many?,x"]),
    ],
)
def test_a_file_without_ids_is_read_by_question(name, lines):
    predictor = predictions(*lines, name=name)

    assert answered(predictor, id="any", question="How many?\n") == "x"
    message = f"{name}: no prediction for 'How much?': it has 'How many?', which no case has: write 'How much?' there"
    assert no_answer(predictor, question="How much?") == message


@pytest.mark.parametrize(
    ("name", "line"),
    [("p.json", '{"How many?": "x"}'), ("p.jsonl", '{"id": "other", "question": "How many?", "predicted": "x"}')],
)
def test_key_says_that_questions_count(name, line):
    predictor = predictions(line, name=name, key="question")

    assert answered(predictor, question="How many?") == "x"
    assert predictor.predict(make_case(question="How many?"), 1).metadata == {}


def test_a_question_may_come_again_with_the_same_answer_only():
    same, second = ({"question": "How many?", "predicted": text} for text in ("x", "y"))

    assert answered(predictions(same, same), question="How many?") == "x"
    assert problem(same, same, second).startswith("preds.jsonl:3: 'How many?' was predicted on line 1 already")


def test_an_entry_serves_every_trial_unless_it_says_which():
    predictor = predictions(
        {"id": "a", "predicted": "x"},
        {"id": "b", "trial": 2, "predicted": "second"},
        {"id": "b", "trial": 1, "predicted": "first"},
    )

    assert [answered(predictor, trial) for trial in (1, 2)] == ["x", "x"]
    assert [answered(predictor, trial, id="b") for trial in (1, 2)] == ["first", "second"]
    assert no_answer(predictor, 3, id="b") == "preds.jsonl: no prediction for 'b', trial 3: there are trials 1, 2"


def test_plain_lines_are_in_the_order_of_the_cases_of_each_suite():
    predictor = predictions("SELECT 1", "", "SELECT 3", "", name="preds.sql")

    predictor.register_cases([*reversed(cases("a", "b", "c")), *cases("x", "y", "z", suite="t.queryeval.yaml")])

    (*_, third), (first, second, _) = cases("a", "b", "c"), cases("x", "y", "z", suite="t.queryeval.yaml")
    assert [predictor.predict(case, 2).content.query for case in (first, second, third)] == ["SELECT 1", "", "SELECT 3"]
    assert predictor.remarks() == ()


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", "0 lines"), ("x", "1 line"), ("x\n\r\n", "2 lines"), ("\ufeffx\r\ny\u2028z\r\nv\r\n", "3 lines")],
)
def test_plain_lines_must_be_as_many_as_cases(text, lines):
    Path("p.txt").write_bytes(text.encode())
    predictor, suite = opened(path="p.txt"), cases(*"abcd")

    predictor.register_cases(suite)

    assert no_answer(predictor, location=suite[0].location) == (
        f"p.txt: {lines} for 4 cases of s.queryeval.yaml: write one line for each case, in their order"
    )
    assert no_answer(predictor, id="e") == "p.txt: plain lines are in the order of cases that are not known"


def test_line_ends_and_a_byte_order_mark_are_no_part_of_plain_lines():
    Path("p.txt").write_bytes("\ufeffx\r\ny\u2028z\r\n".encode())
    predictor, both = opened(path="p.txt"), cases("a", "b")

    predictor.register_cases(both)

    assert [predictor.predict(case, 1).content.query for case in both] == ["x", "y\u2028z"]


def test_entries_that_no_case_asks_for_are_named_once():
    predictor = predictions(*({"id": name, "predicted": "x"} for name in ("b", "a", "c\x1b", "d")))

    assert predictor.remarks() == ()
    predictor.register_cases(cases("a", "e"))

    assert predictor.remarks() == ("preds.jsonl: 3 predictions were not used: b, c\\x1b, d",)


@pytest.mark.parametrize(
    ("trials", "sentences"),
    [
        ({"a": 1}, ("preds.jsonl: 3 predictions of further trials were not used: a, b: write `trials: 4`",)),
        ({"a": 3}, ("preds.jsonl: 2 predictions of further trials were not used: a, b: write `trials: 4`",)),
        ({"a": 1, "A": 4}, ("preds.jsonl: 1 prediction of further trials was not used: b: write `trials: 2`",)),
        ({"a": 4, "b": 2}, ()),
    ],
)
def test_entries_of_trials_that_no_case_asks_for_are_named(trials, sentences):
    predictor = predictions(
        *({"question": "a", "trial": trial, "predicted": "x"} for trial in (1, 2, 4)),
        *({"question": "b", "trial": trial, "predicted": "x"} for trial in (1, 2)),
        {"question": "c", "predicted": "x"},
    )

    predictor.register_cases(
        [
            make_case(id=id_, question=id_.lower(), trials=trials.get(id_, 1), location=Location(Path("s.yaml"), line))
            for line, id_ in enumerate(["a", "b", "c", *({*trials} - {"a", "b"})], start=4)
        ]
    )

    assert predictor.remarks() == sentences


def test_many_entries_that_no_case_asks_for_are_counted():
    predictor = predictions(*({"id": f"n{number}", "predicted": "x"} for number in range(1234)))

    predictor.register_cases(cases("n0"))

    (sentence,) = predictor.remarks()
    assert sentence.startswith("preds.jsonl: 1,233 predictions were not used: n1, n2, ")
    assert sentence.endswith(", n10 and 1,223 more")


def test_nothing_is_said_where_every_entry_is_used():
    predictor = predictions({"id": "a", "predicted": "x"})

    predictor.register_cases(cases("a"))

    assert predictor.remarks() == ()


def test_a_case_without_an_entry_is_told_of_the_nearest_unused_one():
    predictor = predictions(*({"id": name, "predicted": "x"} for name in ("singers-old", "singers-by-age")))

    predictor.register_cases(cases("singers-old", "singer-by-age"))

    assert no_answer(predictor, id="singer-by-age") == (
        "preds.jsonl: no prediction for 'singer-by-age' (1 of 2 cases has none): "
        "it has 'singers-by-age', which no case has: write 'singer-by-age' there"
    )


@pytest.mark.parametrize(
    ("id_", "near"),
    [("Mean_Age", "mean-age"), ("train-0012", "train_12"), ("agemean", ""), ("train-13", ""), ("populations", "")],
)
def test_the_nearest_entry_is_found_among_many(id_, near):
    names = [*(f"q{number}" for number in range(1000)), "train_12", "mean-age"]
    predictor = predictions(*({"id": name, "predicted": "x"} for name in names))

    predictor.register_cases(cases(id_))

    add = ": add it, or correct one of the ids that no case has: 'q0', 'q1', 'q2' and 999 more"
    message = f": it has '{near}', which no case has: write '{id_}' there" if near else add
    assert no_answer(predictor, id=id_) == f"preds.jsonl: no prediction for '{id_}'{message}"


def test_entries_are_compared_up_to_a_bound_and_by_letters_beyond_it(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.predictors.file.MAX_COMPARISONS", 2)
    predictor = predictions(*({"id": name, "predicted": "x"} for name in ("singers-old", "mean-age", "sizes")))

    assert no_answer(predictor, id="MEAN AGE").endswith("it has 'mean-age', which no case has: write 'MEAN AGE' there")
    assert ": add it, or correct one of the ids" in no_answer(predictor, id="singers-odl")


def test_a_case_without_an_entry_is_told_that_all_are_for_other_cases():
    predictor = predictions({"id": "a", "predicted": "x"}, {"id": "b", "predicted": "x"})

    predictor.register_cases(cases("a", "b", "c"))

    assert no_answer(predictor, id="c") == (
        "preds.jsonl: no prediction for 'c' (1 of 3 cases has none): add it, or count such cases as failed, "
        "`preds.jsonl?missing=fail`"
    )


def test_the_nearest_ids_are_named_where_all_are_those_of_other_cases():
    predictor = predictions(*({"id": name, "predicted": "x"} for name in ("mean-1", "mean-2", "other")))

    predictor.register_cases(cases("mean-1", "mean-2", "other", "mean-3"))

    assert no_answer(predictor, id="mean-3").endswith(
        "none): add it (nearest: 'mean-2', 'mean-1', each that of another case), or count such cases as failed, "
        "`preds.jsonl?missing=fail`"
    )


@pytest.mark.parametrize(
    ("missing", "ids", "failure"),
    [
        ("error", "abc", None),
        ("fail", "abc", "preds.jsonl: no prediction for 'c' (1 of 3 cases has none): add it"),
        ("fail", "c", None),
        ("fail", "cd", None),
    ],
)
def test_a_missing_prediction_fails_its_case_unless_the_file_is_for_other_cases(missing, ids, failure):
    predictor = predictions(*({"id": name, "predicted": "x"} for name in "ab"), missing=missing)

    predictor.register_cases(cases(*ids))

    if failure is None:
        assert no_answer(predictor, id="c").startswith("preds.jsonl: no prediction for 'c'")
    else:
        prediction = predictor.predict(make_case(id="c"), 1)
        assert prediction.content == Failure(kind="missing", message=failure)


def test_a_missing_trial_is_a_missing_prediction():
    predictor = predictions({"id": "a", "predicted": "x", "trial": 1}, missing="fail")

    assert predictor.predict(make_case(), 2).content.kind == "missing"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("p.jsonl", ['{"id": "a", "question": "How many?", "predicted": "x"}']),
        ("p.json", ['{"a": {"question": "How many?", "predicted": "x"}}']),
        ("p.csv", ["id,question,predicted", "a,How many?,x"]),
    ],
)
def test_a_prediction_for_another_question_is_refused(name, lines):
    predictor = predictions(*lines, name=name)

    assert answered(predictor, question=" How  many?\n") == "x"
    assert answered(predictor, question="") == "x"
    assert no_answer(predictor, question="How much?").endswith(
        ": 'a' was predicted for another question, 'How many?', not 'How much?': "
        "predict it again, or correct the id or the question"
    )


@pytest.mark.parametrize("columns", [{}, {"columns": {"predicted": "predicted_query"}}])
def test_a_run_whose_question_has_changed_since_is_refused(columns):
    questions = {"c0": "=1+1?\x1b", "c1": "How many?"}
    Path("report.csv").write_bytes(
        render_csv(make_report(*(run_case(0, id=name, question=text) for name, text in questions.items())))
    )
    predictor = opened(path="report.csv", **columns)

    assert [answered(predictor, id=name, question=text) for name, text in questions.items()]
    assert "for another question" in no_answer(predictor, id="c1", question="How much?")


def test_a_question_that_the_report_of_a_run_has_in_part_is_not_compared():
    Path("report.csv").write_bytes(render_csv(make_report(run_case(1, question=f"Who is {MARK}?"))))

    assert answered(opened(path="report.csv"), id="c1", question="Who is hunter2?")


def in_suites(*paths):
    return [make_case(location=Location(Path(path), 4)) for path in paths]


def test_a_prediction_for_cases_of_two_suites_is_refused_unless_it_names_one():
    first, second = in_suites("x/one.queryeval.yaml", "x/two.queryeval.yaml")
    shared = predictions({"id": "a", "predicted": "x"})
    shared.register_cases([first, second])

    with pytest.raises(PredictorError) as refused:
        shared.predict(first, 1)

    assert str(refused.value) == (
        "preds.jsonl:1: 'a' is a case of 2 suites, x/one.queryeval.yaml and x/two.queryeval.yaml: "
        "add the field or column `suite` with the path of its suite, x/one.queryeval.yaml"
    )
    separate = predictions(
        {"id": "a", "predicted": "1", "suite": "x/one.queryeval.yaml"}, {"id": "a", "predicted": "2", "suite": "two"}
    )
    separate.register_cases([first, second])
    assert [separate.predict(case, 1).content.query for case in (first, second)] == ["1", "2"]
    assert separate.remarks() == ()


def test_the_rows_of_a_table_name_their_suites_in_a_column():
    lines = "id,path,predicted", "a,one.queryeval.yaml,1", "a,gone.yaml,2"
    predictor = predictions(*lines, name="p.csv", columns={"suite": "path"})
    first, second = in_suites("one.queryeval.yaml", "two.queryeval.yaml")
    predictor.register_cases([first, second])

    assert predictor.predict(first, 1).content.query == "1"
    with pytest.raises(
        PredictorError, match=r"'a' .*: its predictions name other suites, such as 'one.queryeval.yaml'"
    ):
        predictor.predict(second, 1)
    assert predictor.remarks() == ("p.csv: 1 prediction was not used: a",)


def test_a_suite_that_two_paths_end_with_is_not_enough():
    predictor = predictions({"id": "a", "predicted": "x", "suite": "s.queryeval.yaml"})
    first, second = in_suites("x/s.queryeval.yaml", "y/s.queryeval.yaml")
    predictor.register_cases([first, second])

    with pytest.raises(PredictorError, match="'a' is a case of 2 suites"):
        predictor.predict(first, 1)


SHOP = Source(name="shop", engine="sqlite", settings={"path": "db/shop.sqlite"}, folder=Path())


@pytest.mark.parametrize("name", ["p.jsonl", "p.sql"])
def test_predictions_for_other_databases_are_named_at_the_end(name):
    marked = [f"x\t----- bird -----\t{database}" for database in ("SHOP", "trips")]
    entries = (
        marked if name == "p.sql" else [{"id": id_, "predicted": text} for id_, text in zip("ab", marked, strict=True)]
    )
    predictor = predictions(*entries, name=name)

    predictor.register_cases(
        [make_case(id=id_, source=SHOP, location=Location(Path("s"), line)) for line, id_ in enumerate("ab", 4)]
    )

    (sentence,) = predictor.remarks()
    assert sentence == (
        f"{name}: 1 prediction names another database than the cases: 'trips' instead of 'shop' for 'b': "
        "check that the file is for these cases"
    )


def test_a_value_is_no_query():
    predictor = predictions("", {"id": "a", "predicted": ["x"]})

    assert no_answer(predictor) == "preds.jsonl:2: the prediction is not text: write the query without the brackets"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "2: not JSON: "),
        ("[" * 100_000, " not JSON: "),
        ('{"id": "a", "predicted": "x", "n": ' + "1" * 5000 + "}", " not JSON: "),
        ("[]", " a prediction is an object"),
        ('{"id": "a", "predicted": {"b": 1, "b": 2}}', " not JSON: duplicate key 'b'"),
        ('{"predicted": "x"}', " a prediction needs `id`, which is text: this one has `predicted`"),
        ('{"id": 1.0, "predicted": "x"}', " a prediction needs `id`, which is text"),
        ('{"id": true, "predicted": "x"}', " a prediction needs `id`, which is text"),
        ('{"id": " ", "predicted": "x"}', " a prediction needs `id`, which is text"),
        ('{"id": "a", "predicted": null}', ' `predicted` is null: leave the prediction out, or write "" for an empty'),
        ('{"id": "first", "predicted": "x"}', " 'first' was predicted on line 1 already: remove one, or tell them"),
        ('{"id": "first", "predicted": "x", "trial": 2}', " 'first' was predicted on line 1 already: remove one"),
        ('{"id": "a", "predicted": "x", "trial": 0}', " `trial` is a whole number from 1 on"),
        ('{"id": "a", "predicted": "x", "trial": "1"}', " `trial` is a whole number from 1 on"),
        ('{"id": "a", "predicted": "x", "trial": null}', " `trial` is a whole number from 1 on"),
        ('{"id": "a", "predicted": "x", "seconds": -1}', " `seconds` must be a number"),
        ('{"id": "a", "predicted": "x", "seconds": NaN}', " `seconds` must be a number"),
        ('{"id": "a", "predicted": "x", "seconds": "1"}', " `seconds` must be a number"),
        ('{"id": "a", "predicted": "x", "seconds": true}', " `seconds` must be a number"),
        ('{"id": "a", "predicted": "x", "seconds": 1' + "0" * 400 + "}", " `seconds` must be a number"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_wrong_with_a_line_is_said_with_its_place(line, told):
    assert problem({"id": "first", "predicted": "x"}, "", line).startswith(f"preds.jsonl:3:{told}")


def test_a_trial_that_comes_twice_is_named():
    entry = {"id": "a", "trial": 2, "predicted": "x"}

    assert problem(entry, entry) == "preds.jsonl:2: 'a', trial 2, was predicted on line 1 already"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["", "x"], ":2: expected a list of predictions, or a mapping from ids to answers"),
        (["[", '{"id": "a",', '"predicted": "x"},', '{"id": "b"}]'], ":4: a prediction needs `predicted`"),
        (["[", '{"id": "a",', '"predicted": x}]'], ":3:14: not JSON: expected a value: texts stand in double quotes"),
        (["[", '{"id": "a", "predicted": "x"}', '{"id": "b"}]'], ":3: not JSON: expected ','"),
        (['[{"id": "a", "predicted": "x"}'], ":1: not JSON: expected ','"),
        (["[]", "", "[]"], ":3: not JSON: more text behind the end"),
        (["[1]"], ":1: a prediction is an object"),
        (["[", '{"id": "a", "id": "b"}]'], ":2: not JSON: duplicate key 'id'"),
        (["{", '"a": "x",', '"a": "y"}'], ":3: 'a' was predicted on line 2 already"),
        (["{", '"a": null}'], ":2: `predicted` is null"),
        (["{", "1: 2}"], ":2: not JSON: a key is text"),
        (['{"a"}'], ":1: not JSON: expected ':'"),
        (['{"a": "x",}'], ":1:11: not JSON: a comma before `}`: remove it"),
        (["[" * 100_000], ":1: not JSON: nested too deeply"),
        ([""], ":1: expected a list"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_with_json_is_said_with_its_place(lines, told):
    assert problem(*lines, name="p.json").startswith(f"p.json{told}")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], " has no header row: write the names of the columns into the first row"),
        (["", "id,sql"], "2: there is no column 'predicted': choose from id, sql"),
        (["name,predicted"], "1: there is no column 'id' or 'question'"),
        (["id,predicted,id"], "1: two columns are called 'id'"),
        (["id,predicted", "", '"a', 'b",x', "c"], "5: 1 cell in a table of 2 columns"),
        (["id,predicted", 'a,"x'], "2: column 'predicted': nothing closes the double quote that opens this cell"),
        (["id,predicted", "a,x", "a,y"], "3: 'a' was predicted on line 2 already"),
        (["id,predicted", ",x"], "2: a prediction needs `id`"),
        (["id,predicted,seconds", "a,x,soon"], "2: `seconds` must be a number"),
        (["id,predicted,cost", "a,x,1e999"], "2: a number of 5 characters is too large"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_table_is_said_with_its_place(lines, told):
    assert problem(*lines, name="p.csv").startswith(f"p.csv:{told}")


@pytest.mark.parametrize(("path", "told"), [("absent.jsonl", "no such file"), ("folder.txt", "is not a file")])
def test_a_file_that_cannot_be_read_is_named(path, told):
    Path("folder.txt").mkdir()

    with pytest.raises(PredictorError) as caught:
        opened(path=path)

    assert str(caught.value).startswith(f"{path}: {told}")


def test_a_pipe_is_refused_instead_of_waited_for():
    os.mkfifo("pipe.jsonl")

    with pytest.raises(PredictorError, match=r"^pipe\.jsonl: is not a file$"):
        opened(path="pipe.jsonl")


@pytest.mark.parametrize("name", ["p.jsonl", "p.json", "p.csv", "p.txt"])
def test_a_file_that_is_no_utf8_is_named_with_the_place(name):
    message = problem("x", '{"id": "é"}', name=name, encoding="latin-1")

    assert message == f"{name}:2:9: byte 0xe9 is not UTF-8: save the file as UTF-8"


def test_nothing_of_a_file_is_called():
    assert not PREDICTORS["file"].calls


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

    assert answered(predictor, id="2") == "SELECT 2"
    assert predictor.predict(make_case(id="1"), 1).metadata == {"Question": "How many?", "Seconds": 0.5}


@pytest.mark.parametrize("key", [{}, {"key": "question"}, {"key": "Question"}], ids=str)
def test_a_question_has_a_column_of_its_own(key):
    columns = {"question": "Question", "predicted": "SQL", "seconds": "Seconds"}
    predictor = predictions(*NUMBERED[:2], name="b.csv", columns=columns, **key)

    prediction = predictor.predict(make_case(id="1", question="How  many?"), 1)

    assert (prediction.content.query, prediction.seconds, prediction.metadata) == ("SELECT 1", 0.5, {"No.": 1})


def test_objects_and_mappings_have_names_of_their_own():
    columns = {"id": "nr", "predicted": "sql", "trial": "run"}
    lines = predictions({"nr": 1, "sql": "SELECT 1", "run": 2, "id": "x"}, columns=columns)
    mapping = predictions('{"1": {"sql": "SELECT 2", "tokens": 3}}', name="preds.json", columns=columns)

    assert answered(lines, trial=2, id="1") == "SELECT 1"
    assert lines.predict(make_case(id="1"), 2).metadata == {"id": "x"}
    assert mapping.predict(make_case(id="1"), 1).metadata == {"tokens": 3}


def test_what_is_wrong_with_columns_is_said_with_the_names_of_the_file():
    columns = {"id": "No.", "predicted": "SQL", "seconds": "Time"}
    choices = "choose from No., Question, SQL, Seconds"

    assert problem(*NUMBERED, name="b.csv", columns=columns) == f"b.csv:1: there is no column 'Time': {choices}"
    assert problem(*NUMBERED, name="b.csv", key="Nr", answer="SQL") == f"b.csv:1: there is no column 'Nr': {choices}"
    assert problem({"No.": "a"}, columns={"id": "No.", "predicted": "SQL"}) == (
        "preds.jsonl:1: a prediction needs `SQL`: choose from No."
    )
    message = problem("No.,SQL,Time", "1,SELECT 1,soon", name="b.csv", columns=columns)
    assert message == "b.csv:2: `Time` must be a number from 0 to 1,000,000,000, without quotes or a unit"


def test_a_header_below_a_title_is_named_and_found():
    title = ["Answers of model B,", "", "id,predicted", "a,SELECT 1"]

    assert problem(*title, name="b.csv") == (
        "b.csv:1: there is no column 'predicted': row 3 looks like the header: write `header_row: 3` "
        "beside `path`, or in short `b.csv?header_row=…`"
    )
    assert answered(predictions(*title, name="b.csv", header_row=3), id="a") == "SELECT 1"
    message = problem(*title, name="b.csv", header_row=2)
    assert message == "b.csv: row 2 is empty: name the row that holds the headers"


def test_columns_win_over_the_layout_of_a_workbook_that_a_run_has_written(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["id", "predicted", "outcome", "prediction (s)", "corrected"])
    book.active.append(["a", "SELECT 1", "failed", 0.1, "SELECT 2"])
    book.save("run.xlsx")

    assert answered(opened(path="run.xlsx"), id="a") == "SELECT 1"
    assert answered(opened(path="run.xlsx", columns={"predicted": "corrected"}), id="a") == "SELECT 2"


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


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("p.jsonl", '{"id": "b", "predicted": "1"}\n{"id": "a", "predicted": LONG}', "p.jsonl:2: "),
        ("p.json", '{"b": "1",\n"a": {"predicted": LONG}}', "p.json:2: "),
    ],
)
def test_a_number_that_python_does_not_read_is_told_with_its_place(name, text, place):
    Path(name).write_text(text.replace("LONG", "9" * 100_000), encoding="utf-8")

    with pytest.raises(PredictorError, match=r"a number of 100,000 digits is too large") as raised:
        answered(opened(path=name))

    assert place in str(raised.value)
    assert "set_int_max_str_digits" not in str(raised.value)
