import csv
import io

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import make_case
from spreadsheets import FORMULAS, HOSTILE, case, hostile_report, make_report, skipped, visible

from pytest_queryeval.core.model import Abstention, PredictorSpec
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.reports import REPORTS

render_csv = REPORTS["csv"].render

HEADER = [
    *(
        "path",
        "line",
        "row",
        "id",
        "nodeid",
        "kind",
        "difficulty",
        "tags",
        "features",
        "source",
        "review",
        "question",
        "outcome",
        "message",
        "difference",
        "cause",
        "repaired_query",
    ),
    *("gold_query", "gold_rows", "gold_seconds", "predicted_query", "predicted_rows", "predicted_seconds"),
    *("predicted_error", "predictor", "prediction_seconds", "scoring_seconds"),
    *("sql_execution_time", "vector_store_search_time", "llm_time", "total_execution_time"),
]
# What models, databases and suites can fill with texts.
FOREIGN = [
    *("path", "id", "nodeid", "difficulty", "tags", "source", "question", "message", "gold_query"),
    *("predicted_query", "predicted_error", "predictor", "llm_time", "total_execution_time"),
]


def rows(report):
    """The rows of the file as dictionaries, read by the standard library."""
    text = render_csv(report).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def header(report):
    return render_csv(report).decode("utf-8").splitlines()[0].split(",")


def test_readers_that_know_of_no_byte_order_mark_find_the_first_column(tmp_path):
    file = tmp_path / "report.csv"
    file.write_bytes(render_csv(make_report(case(1, question="Où est Nîmes?"))))

    with file.open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)

    assert (row["path"], row["question"]) == ("music/s.queryeval.yaml", "Où est Nîmes?")


def test_a_run_without_cases_has_a_header():
    assert render_csv(make_report()).decode("utf-8") == ",".join(HEADER) + "\r\n"


def test_a_metric_that_is_called_like_a_column_has_a_name_of_its_own():
    row = rows(make_report(case(scores={"line": 0.5})))[0]

    assert (row["line"], row["score_line"]) == ("4", "0.5")


def test_lines_end_as_rfc_4180_has_it_and_line_feeds_of_a_text_stay_in_quotes():
    content = render_csv(make_report(case(question='a\nb "c"')))

    assert content.count(b"\r\n") == 2
    assert b',"a\nb ""c""",' in content


@pytest.mark.parametrize("text", [text for text in FORMULAS if text[0] not in "\r{"], ids=ascii)
def test_a_text_that_could_be_a_formula_stands_behind_an_apostrophe_in_every_column(text):
    row = rows(hostile_report([text]))[0]

    assert {row[name] for name in FOREIGN} == {f"'{text}"}


@given(st.text())
def test_a_text_comes_back_when_one_leading_apostrophe_is_taken_off(text):
    table = rows(make_report(case(question=text)))[0]["question"]

    assert table.removeprefix("'") == rows(make_report(case(question=f"x{text}")))[0]["question"][1:]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_what_would_act_or_hide_is_shown_as_an_escape(text):
    row = rows(hostile_report([f"x{text}"]))[0]

    assert {row[name] for name in FOREIGN} == {visible(f"x{text}")}


def test_the_name_of_a_metric_does_not_act_either():
    assert header(make_report(case(scores={"=1+1": 1.0})))[-1] == "'=1+1"


def test_a_database_reads_numbers_and_texts_back(tmp_path):
    file = tmp_path / "report.csv"
    file.write_bytes(render_csv(make_report(case(1, question="a\nb"), case(2, scores={"soft_f1": None}), skipped(3))))

    read = duckdb.read_csv(str(file))

    assert read.columns[:2] == ["path", "line"]
    assert duckdb.sql("SELECT question, line, soft_f1 FROM read ORDER BY line").fetchall() == [
        ("a\nb", 4, 0.5),
        ("How many?", 8, None),
        ("How many?", 12, None),
    ]


def test_abstentions_have_columns_of_their_own_and_come_back(tmp_path):
    abstained = {"source": "x", "seconds": 0.0, "metadata": {}, "abstained": True, "reason": "=no table"}
    answered, unanswered = case(1), case(2, prediction=abstained, answerable=False)
    both = rows(make_report(answered, unanswered))

    columns = ("answerable", "abstained", "reason")
    assert [[row[name] for name in columns] for row in both] == [["", "", ""], ["false", "true", "'=no table"]]
    assert not {*columns} & rows(make_report(answered))[0].keys()
    (tmp_path / "report.csv").write_bytes(render_csv(make_report(answered, unanswered)))
    predictor = PREDICTORS["file"].opener(PredictorSpec(kind="file", settings={"path": "report.csv"}, folder=tmp_path))
    assert predictor.predict(make_case(id="c2"), 1).content == Abstention("=no table")
