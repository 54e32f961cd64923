import re
import time
from dataclasses import replace

import pytest
from samples import answer, fake_source, install_engine, make_case, query, table

from pytest_queryeval.core.errors import GoldError, PredictorError, QueryEvalError
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.model import Execution, Failure, Source, Threshold, ThresholdViolation
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import ANALYSES, CaseProgress, evaluate_case
from pytest_queryeval.metrics import METRICS, applies_to
from pytest_queryeval.results.case_json import case_json, result_json

AT_LEAST_ONE = Threshold(minimum=1.0)
ANSWERS = {
    "gold": [("Graz", 1), ("Linz", 2)],
    "same": [("Linz", 2), ("Graz", 1)],
    "half": [("Graz", 1), ("Wien", 3)],
    "other": [("Bern", 7)],
    "none": [],
}


@pytest.fixture
def engine(monkeypatch):
    return install_engine(monkeypatch, ANSWERS)


def run_case(*golds, predicted="same", **changes):
    defaults = {"source": fake_source(), "golds": tuple(map(query, golds)), "predicted": query(predicted)}
    return make_case(**(defaults | changes))


def rows(execution):
    return list(execution.answer.rows)


def test_gold_and_predicted_are_run_and_scored(session, engine):
    result = evaluate_case(run_case("gold", metrics=("execution_accuracy", "row_matching_f1")), session)

    assert result.scores == {"execution_accuracy": 1.0, "row_matching_f1": 1.0}
    assert rows(result.gold) == ANSWERS["gold"]
    assert rows(result.predicted) == ANSWERS["same"]
    assert (result.gold_index, result.violations, result.fails) == (0, (), False)


def test_stated_answers_need_no_source(session):
    case = make_case(golds=(answer((1,), (2,)),), predicted=answer((2,), (1,)))

    assert evaluate_case(case, session).scores == {"execution_accuracy": 1.0}


def test_a_missed_threshold_is_reported_with_its_value(session, engine):
    result = evaluate_case(run_case("gold", predicted="half"), session)

    assert result.violations == (ThresholdViolation(metric="execution_accuracy", threshold=AT_LEAST_ONE, value=0.0),)
    assert result.fails


@pytest.mark.parametrize(
    ("golds", "name"),
    [(("broken",), "gold"), (("gold", "broken"), "gold_any[1]"), (("broken", "gold"), "gold_any[0]")],
)
def test_a_gold_that_fails_is_an_error_and_its_prediction_is_not_run(session, engine, golds, name):
    with pytest.raises(GoldError, match=rf"^{re.escape(name)} query failed \(invalid\): no such table$"):
        evaluate_case(run_case(*golds), session)

    assert "same" not in engine.executed


def test_the_error_of_a_gold_that_takes_too_long_says_what_to_do(session, monkeypatch):
    execution = Execution(query="gold", error=Failure(kind="timeout", message="why"))
    monkeypatch.setattr(session, "execute", lambda stated, case, **_: execution)

    with pytest.raises(GoldError, match=r"\(timeout\): why: raise `timeout`, or write a faster query"):
        evaluate_case(run_case("gold"), session)


def test_a_gold_that_fails_has_the_time_of_its_attempt(session, monkeypatch):
    late = Execution(query="gold", error=Failure(kind="timeout", message="no answer within 1 s"), seconds=1.2)
    monkeypatch.setattr(session, "execute", lambda stated, case, **_: late)
    progress = CaseProgress()

    with pytest.raises(GoldError):
        evaluate_case(run_case("gold"), session, progress)

    entry = case_json(run_case("gold"), nodeid="a::a", path="a", outcome="error", progress=progress)
    assert (entry["gold"]["seconds"], entry["predicted"]["seconds"]) == (1.2, 0.0)


@pytest.mark.parametrize(
    ("golds", "index"),
    [
        (("half", "gold", "other"), 1),
        (("gold", "same"), 0),
        (("other", "half"), 0),
        (("other", "none", "gold"), 2),
    ],
)
def test_of_several_golds_the_best_by_the_first_default_metric_counts_then_the_first(session, engine, golds, index):
    result = evaluate_case(run_case(*golds), session)

    assert result.gold_index == index
    assert rows(result.gold) == ANSWERS[golds[index]]


def test_of_several_golds_the_first_default_metric_decides_also_against_the_first_metric_asked(
    session, engine, register
):
    register("prefers_other", lambda gold, predicted: float(("Bern", 7) in gold.rows))
    case = run_case("other", "gold", metrics=("prefers_other", "execution_accuracy"))

    result = evaluate_case(case, session)

    assert result.gold_index == 1
    assert result.scores == {"prefers_other": 0.0, "execution_accuracy": 1.0}


def test_without_the_default_metric_the_first_that_is_asked_and_applies_decides(session, engine, register):
    register("never", lambda gold, predicted: None)
    case = run_case("other", "half", "gold", metrics=("never", "row_matching_f1"), thresholds={})

    assert evaluate_case(case, session).gold_index == 2


@pytest.mark.feature("json", "sdmx")
def test_a_failed_prediction_scores_0_on_every_metric_of_answers_and_does_not_equal_an_empty_gold(session, engine):
    of_sql = [name for name in METRICS.names() if applies_to(name, "sql")]
    with_answers = {name for name in of_sql if METRICS[name].input in ("answers", "executions")}
    names = tuple(name for name in of_sql if name in with_answers and "states" not in METRICS[name].injected)

    result = evaluate_case(run_case("none", predicted="broken", metrics=names, allow_empty=True), session)

    assert result.scores == dict.fromkeys(names, 0.0)
    assert result.predicted.error.kind == "invalid"
    assert result.fails


def test_a_failed_prediction_fails_even_where_its_scores_would_do(session, engine):
    lenient = run_case("gold", predicted="broken", thresholds={"execution_accuracy": Threshold(minimum=0.0)})
    unjudged = run_case("gold", predicted="broken", thresholds={})

    assert evaluate_case(lenient, session).fails
    assert not evaluate_case(unjudged, session).fails


@pytest.mark.parametrize(("allow_empty", "told"), [(False, {"empty_gold": True}), (True, {})])
def test_an_empty_gold_is_told_unless_it_is_meant(session, engine, allow_empty, told):
    result = evaluate_case(run_case("none", predicted="none", allow_empty=allow_empty), session)

    assert result.scores["execution_accuracy"] == 1.0
    assert result.details == told


def test_a_metric_that_does_not_apply_has_no_score(session, engine, register):
    register("never", lambda gold, predicted: None)

    result = evaluate_case(run_case("gold", metrics=("execution_accuracy", "never")), session)

    assert result.scores == {"execution_accuracy": 1.0, "never": None}


def test_a_metric_that_does_not_apply_but_has_a_threshold_is_an_error(session, engine, register):
    register("never", lambda gold, predicted: None)

    with pytest.raises(QueryEvalError, match=r"^metric 'never' does not apply to this case, but has a threshold$"):
        evaluate_case(run_case("gold", thresholds={"never": AT_LEAST_ONE}), session)

    optional = replace(AT_LEAST_ONE, option="--queryeval-threshold")
    with pytest.raises(QueryEvalError, match=r"^--queryeval-threshold: metric 'never' does not apply to this case"):
        evaluate_case(run_case("gold", thresholds={"never": optional}), session)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (10**5000, "int"),
        ("1.0", "str"),
        ([1.0], "list"),
        (1j, "complex"),
    ],
    ids=["nan", "inf", "huge", "text", "list", "complex"],
)
def test_a_metric_that_gives_no_finite_number_is_an_error_that_names_it(session, engine, register, value, shown):
    register("odd", lambda gold, predicted: value)

    with pytest.raises(QueryEvalError, match=rf"^metric 'odd' gave {shown}, no finite number"):
        evaluate_case(run_case("gold", metrics=("odd",)), session)


@pytest.mark.parametrize("value", [True, 1, 1.0])
def test_a_score_is_a_float_whatever_number_the_metric_gives(session, engine, register, value):
    register("ours", lambda gold, predicted: value)

    score = evaluate_case(run_case("gold", metrics=("ours",)), session).scores["ours"]

    assert type(score) is float
    assert score == 1.0


def test_a_metric_that_raises_is_an_error_that_names_it_and_keeps_the_cause(session, engine, register):
    def ours(gold, predicted):
        return predicted.no_such_thing

    register("ours", ours)

    with pytest.raises(QueryEvalError, match=r"^metric 'ours' raised AttributeError: .*no_such_thing") as caught:
        evaluate_case(run_case("gold", metrics=("ours",)), session)

    assert isinstance(caught.value.__cause__, AttributeError)


def test_an_interrupt_by_the_user_passes_through_a_metric(session, engine, register):
    def ours(gold, predicted):
        raise KeyboardInterrupt

    register("ours", ours)

    with pytest.raises(KeyboardInterrupt):
        evaluate_case(run_case("gold", metrics=("ours",)), session)


def test_a_metric_with_a_threshold_is_computed_also_where_nobody_asked_for_it(session, engine):
    case = run_case("gold", predicted="half", thresholds={"row_matching_f1": Threshold(minimum=0.75)})

    result = evaluate_case(case, session)

    assert result.scores == {"execution_accuracy": 0.0, "row_matching_f1": 0.5}
    assert [(missed.metric, missed.value) for missed in result.violations] == [("row_matching_f1", 0.5)]


def test_a_threshold_can_limit_a_score_from_above(session, engine):
    case = run_case("gold", thresholds={"execution_accuracy": Threshold(maximum=0.5)})

    assert evaluate_case(case, session).violations[0].value == 1.0


def test_a_metric_gets_its_options_and_the_policy_of_the_case(session, engine, register):
    calls = []

    def ours(gold, predicted, *, alpha=0.5, policy=None):
        calls.append((alpha, policy))
        return 1.0

    register("ours", ours)
    policy = Policy(case="ignore")

    evaluate_case(run_case("gold", metrics=("ours",), options={"ours": {"alpha": 0.7}}, policy=policy), session)

    assert calls == [(0.7, policy)]


def test_a_metric_reads_executions_where_it_says_so(session, engine, register):
    @metric(input="executions")
    def same_text(gold, predicted):
        return float(gold.query == predicted.query)

    register("same_text", same_text)

    assert evaluate_case(run_case("gold", predicted="gold", metrics=("same_text",)), session).scores["same_text"] == 1.0
    assert evaluate_case(run_case("gold", metrics=("same_text",)), session).scores["same_text"] == 0.0


def test_the_time_of_scoring_is_kept_and_reported(session, engine, register):
    @metric()
    def thorough(gold, predicted):
        time.sleep(0.05)
        return 1.0

    register("thorough", thorough)
    case = run_case("gold", metrics=("thorough",), trials=3)

    result = evaluate_case(case, session)

    assert all(trial.scoring_seconds >= 0.05 for trial in result.trials)
    seconds = sum(trial.scoring_seconds for trial in result.trials)
    assert result_json(result, nodeid="a::a", path="a", outcome="passed")["scoring"] == {"seconds": seconds}


@pytest.fixture
def rewriting(register):
    """A metric that reads `better` in a prediction as `gold`, and leaves gold as it is."""

    @metric(input="executions", rewrite=(str, lambda text: text.replace("better", "gold")))
    def rewritten(gold, predicted):
        return float(predicted.answer.rows == gold.answer.rows)

    register("rewritten", rewritten)


def test_a_rewritten_query_is_run_once(session, engine, rewriting):
    case = run_case("gold", "same", predicted="better ", metrics=("rewritten",), thresholds={})
    engine.answers = ANSWERS | {"gold ": ANSWERS["gold"]}

    for _ in range(2):
        result = evaluate_case(case, session)

    assert (result.scores, result.gold_index) == ({"rewritten": 1.0}, 0)
    assert engine.executed.count("gold ") == 1


def test_a_query_that_its_rewrite_leaves_alone_is_not_run_again(session, engine, rewriting):
    evaluate_case(run_case("gold", metrics=("rewritten",)), session)

    assert engine.executed == ["gold", "same"]


def test_a_prediction_that_runs_only_when_rewritten_counts_for_that_metric_alone(session, engine, rewriting):
    result = evaluate_case(run_case("gold", predicted="better", metrics=("rewritten", "execution_accuracy")), session)

    assert result.scores == {"rewritten": 1.0, "execution_accuracy": 0.0}
    assert result.predicted.error is not None


@pytest.mark.parametrize("predicted", ["select n from t; drop table t", "select n from t; select n from t;"])
def test_further_statements_fail_the_prediction_though_the_published_rule_ignores_them(tmp_path, session, predicted):
    (tmp_path / "s.sql").write_text("create table t (n); insert into t values (1), (2);")
    case = make_case(
        source=Source(name="db", engine="sqlite", settings={"script": "s.sql"}, folder=tmp_path),
        golds=(query("select n from t"),),
        predicted=query(predicted),
        metrics=("execution_accuracy", "execution_accuracy_bird", "soft_f1_bird", "row_matching_f1", "valid_query"),
        thresholds={"execution_accuracy_spider": Threshold(minimum=1.0)},
    )

    result = evaluate_case(case, session)

    assert result.fails
    assert result.predicted.error.kind == "unsafe"
    assert {name for name, score in result.scores.items() if score} == {"execution_accuracy_spider"}
    assert result.details["notes"] == ["published rule: text after the first `;` ignored"]


@pytest.mark.parametrize(
    "predicted", ["select n from t;", "select n from t ; -- all of them", "select n as 'a;b' from t"]
)
def test_nothing_is_said_of_a_statement_that_runs_as_it_stands(tmp_path, session, predicted):
    (tmp_path / "s.sql").write_text("create table t (n); insert into t values (1), (2);")
    source = Source(name="db", engine="sqlite", settings={"script": "s.sql"}, folder=tmp_path)
    metrics = ("execution_accuracy_spider",)
    case = make_case(source=source, golds=(query("select n from t"),), predicted=query(predicted), metrics=metrics)

    result = evaluate_case(case, session)

    assert not result.fails
    assert "notes" not in result.details


def test_a_case_without_any_prediction_is_an_error(session):
    with pytest.raises(PredictorError, match="'a' has no `predicted`"):
        evaluate_case(make_case(predicted=None), session)


def test_the_order_of_rows_counts_where_gold_orders_them(tmp_path, session):
    (tmp_path / "s.sql").write_text("create table t (n); insert into t values (1), (2);")
    database = Source(name="db", engine="sqlite", settings={"script": "s.sql"}, folder=tmp_path)
    case = make_case(
        source=database, golds=(query("select n from t order by n"),), predicted=query("select n from t order by -n")
    )

    result = evaluate_case(case, session)

    assert result.scores == {"execution_accuracy": 0.0}
    assert rows(result.gold) == list(table((1,), (2,)).rows)


def sqlite_case(tmp_path, **changes):
    (tmp_path / "t.sql").write_text("CREATE TABLE t (name text); INSERT INTO t VALUES ('Graz');", encoding="utf-8")
    source = Source(name="m", engine="sqlite", settings={"script": "t.sql"}, folder=tmp_path)
    return make_case(**{"source": source, "golds": (query("SELECT name FROM t"),), **changes})


def test_prose_before_a_predicted_query_is_left_out_with_a_note(session, tmp_path):
    said = query("Here is the query:\n\nSELECT name FROM t")

    result = evaluate_case(sqlite_case(tmp_path, predicted=said), session)

    assert result.scores == {"execution_accuracy": 1.0}
    assert result.predicted.note == "the query was read from the text after prose"


def test_prose_before_what_is_no_query_is_named_in_the_message(session, tmp_path):
    said = query("Here is the query:\n\nSELECT name FROM t\n\nIt returns the names.")

    error = evaluate_case(sqlite_case(tmp_path, predicted=said), session).predicted.error

    assert error.kind == "invalid"
    assert error.message == 'near "Here": syntax error (the text starts with prose, not with a query)'


def test_a_no_break_space_in_a_predicted_query_is_named_beside_the_message(session, tmp_path):
    error = evaluate_case(sqlite_case(tmp_path, predicted=query("SELECT\u00a0name FROM t")), session).predicted.error

    assert "syntax error" in error.message
    assert error.message.endswith(" (line 1, column 7 is U+00A0, no-break space: write a space)")


def test_a_curly_quote_in_gold_is_named_beside_the_message(session, tmp_path):
    gold = query("SELECT nme FROM t WHERE name = \u201cGraz\u201d")

    with pytest.raises(GoldError, match=r"\(line 1, column 32 is U\+201C, left double quotation mark: write"):
        evaluate_case(sqlite_case(tmp_path, golds=(gold,)), session)


def test_an_analysis_that_raises_leaves_the_verdict_and_is_named_in_a_note(session, engine, monkeypatch):
    def fail(result, session):
        raise ZeroDivisionError("of\nnothing")

    analyses = {
        "failing": fail,
        "gone": "nowhere:analysis",
        "later": lambda result, _: result.with_details(is_seen=True),
    }
    monkeypatch.setattr(ANALYSES, "_members", analyses)

    result = evaluate_case(run_case("gold", predicted="half"), session)

    assert (result.fails, result.scores, result.cause) == (True, {"execution_accuracy": 0.0}, None)
    failing, gone = result.details["notes"]
    assert failing == "analysis 'failing' failed: ZeroDivisionError: of nothing"
    assert gone.startswith(
        "analysis 'gone' failed: QueryEvalError: analysis 'gone' cannot be imported from nowhere:analysis"
    )
    assert result.details["is_seen"]
