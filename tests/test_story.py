"""The story of a case: every surface tells it in the same words."""

import json
from dataclasses import replace

import pytest
from samples import HEAD, answer, make_case, make_result, table

from pytest_queryeval.core.cause import Cause, CausingEdit
from pytest_queryeval.core.model import Execution, Failure, Threshold, ThresholdViolation
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.ci import annotation_lines, render_code_quality
from pytest_queryeval.features.ci.markdown import render_markdown
from pytest_queryeval.features.review.explain_command import explanation_lines
from pytest_queryeval.plugin.failure import failure_lines
from pytest_queryeval.reports.html.case_list import details
from pytest_queryeval.reports.story import notes
from pytest_queryeval.reports.summary import summary_lines
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.case_json import result_json

MISSED = ThresholdViolation(metric="execution_accuracy", threshold=Threshold(minimum=1.0), value=0.0)
EDITS = (
    CausingEdit(label="wrong-value", clause="WHERE", change="30 → 40"),
    CausingEdit(label="missing-distinct", clause="SELECT", change=""),
)
DETAILS = {
    "violations": ["x is not a number"],
    "exact_set_match": {"unreadable": "the end", "differs": ["where"]},
    "notes": ["gold was cut"],
    "cause": {"shared": 1, "of": 2, "only_gold": ["FROM singer", "LIMIT 3"], "only_predicted": ["FROM a"]},
}


@pytest.fixture
def wrong():
    """A result that is wrong in all that can be told of one, and its report."""
    case = make_case(
        golds=(answer((9,)), answer((1,))), question="Who is old?", policy=Policy(case="ignore"), trials_rule="all"
    )
    gold, predicted = table((1,), (1,), (2,), (3,)), table((1,), (2,), (4,))
    result = make_result(
        case,
        gold=gold,
        gold_index=1,
        predicted=predicted,
        scores={"execution_accuracy": 0.0},
        violations=(MISSED,),
        details=DETAILS,
    )
    result = replace(result, cause=Cause(edits=EDITS))
    return result, result_json(result, nodeid="s.queryeval.yaml::a", path="s.queryeval.yaml", outcome="failed")


def test_of_sparql_triple_patterns_are_shared(wrong):
    _, report = wrong
    patterns = {"shared": 1, "of": 3, "only_gold": ["?x a :Singer", "?x :age 3"], "only_predicted": []}

    share, *_ = notes({**report, "kind": "sparql", "details": {"cause": patterns}})

    assert share.text == (
        "no edit that was tried repairs the answer: predicted has 1 of gold's 3 triple patterns; "
        "only in gold: ?x a :Singer . ?x :age 3"
    )


def words(lines):
    """Lines of a text, without its layout."""
    return [" ".join(line.split()) for line in lines]


def test_a_failure_and_an_explanation_share_their_words(wrong):
    result, report = wrong

    failure, explanation = words(failure_lines(result, report)), words(explanation_lines(report, 200))

    assert explanation[0] == f"s.queryeval.yaml::a: failed: {failure[0]}"
    for text in ("WHERE: 30 → 40 (wrong-value)", "SELECT (missing-distinct)"):
        assert f"cause {text}" in failure
        assert text in explanation
    share = "1 of gold's 2 parts; only in gold: FROM singer, LIMIT 3; only in predicted: FROM a"
    for line in (
        "question Who is old?",
        "violation x is not a number",
        "texts predicted cannot be read: the end; differ in where",
        "note gold was cut",
        f"note no edit that was tried repairs the answer: predicted has {share}",
    ):
        assert line in failure
        assert line in explanation
    assert "golds 2, of which gold_any[1] is the closest" in failure
    assert "gold, gold_any[1] is the closest" in explanation
    assert "answers gold has 4 rows of 1 column, predicted has 3 rows of 1 column" in failure
    assert {"4 rows of 1 column, not run", "3 rows of 1 column, not run"} <= {*explanation}
    assert "repeated | 1 (2 in gold, 1 in predicted)" in failure
    assert "2 in gold, 1 in predicted 1" in explanation


def test_the_page_has_the_words_of_the_explanation(wrong):
    _, report = wrong

    page, explanation = details(report), words(explanation_lines(report, 200))

    assert page["notes"]
    assert all(f"{name} {text}" in explanation for name, text in page["notes"])
    assert [f"{page[side]['shape']}, not run" for side in ("gold", "predicted")] == [
        line for line in explanation if " of 1 column" in line
    ]
    assert f"execution_accuracy 0.000 {page['needs']['execution_accuracy']}" in explanation


def test_every_list_of_cases_has_the_first_edit_and_the_message(wrong, tmp_path):
    result, report = wrong
    finding = f"WHERE: 30 → 40 (wrong-value); {next(failure_lines(result, report))}"

    run = aggregate([report], gates=(), about=HEAD)

    texts = {
        "terminal": "\n".join(line for line, _ in summary_lines(run, width=300)),
        "markdown": render_markdown(run).decode(),
        "annotations": "\n".join(annotation_lines(run, tmp_path)),
        "code quality": json.loads(render_code_quality(run))[0]["description"],
    }
    assert {name for name, text in texts.items() if finding not in text} == set()


def test_the_message_of_a_failed_prediction_is_not_its_cause_as_well(wrong):
    result, _ = wrong
    error = Failure(kind="invalid", message="no such column: agee")
    trial = replace(result.shown, predicted=Execution(query="SELECT agee", answer=None, error=error))
    edit = CausingEdit(label="invalid", clause="", change=error.message)
    failed = replace(result, shown=trial, trials=(trial,), difference=None, cause=Cause(edits=(edit,)))
    report = result_json(failed, nodeid="s.queryeval.yaml::a", path="s.queryeval.yaml", outcome="failed")

    lines = list(failure_lines(failed, report))

    assert lines[0] == report["message"] == "prediction failed (invalid): no such column: agee"
    assert "\n".join(lines).count(error.message) == 1
    assert "  cause      invalid" in lines
    assert "\n".join(explanation_lines(report, 200)).count(error.message) == 2  # with the outcome, and below the query
