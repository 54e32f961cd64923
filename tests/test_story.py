"""The story of a case: every surface tells it in the same words."""

from dataclasses import replace

import pytest
from samples import answer, make_case, make_result, table

from pytest_queryeval.core.cause import Cause, CausingEdit
from pytest_queryeval.core.model import Threshold, ThresholdViolation
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.review.explain_command import explanation_lines  # white box: the text of any single case
from pytest_queryeval.plugin.failure import failure_lines  # white box: the text of any single case
from pytest_queryeval.reports.story import notes  # white box: the text of any single case
from pytest_queryeval.results.case_json import result_json  # white box: the text of any single case

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
