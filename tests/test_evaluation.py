"""From a case to its report: which gold counts, what metrics are given, what is an error, and what is run how often."""

import json
import time
import traceback
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from predictor_sorts import report_of, write_suite
from samples import FakeEngine, answer, change, fake_source, install_engine, make_case, query, table

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import PredictorError, SettingError, SourceError, UnresponsiveSourceError
from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.model import Execution, Failure, PredictorSpec, Source, Threshold
from pytest_queryeval.core.table import Policy
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.metrics import METRICS, applies_to
from pytest_queryeval.predictors import PREDICTORS, PredictorType
from pytest_queryeval.reports import render_json

ANSWERS = {
    "gold": [("Graz", 1), ("Linz", 2)],
    "same": [("Linz", 2), ("Graz", 1)],
    "half": [("Graz", 1), ("Wien", 3)],
    "other": [("Bern", 7)],
    "none": [],
}
SINGERS = Schema(tables={"singer": ("name",)})
BY_TEXT = {"metrics": ("same_text",)}
AT_LEAST_ONE = Threshold(minimum=1.0)


@pytest.fixture
def engine(monkeypatch):
    return install_engine(monkeypatch, ANSWERS)


@pytest.fixture
def timing(engine, monkeypatch):
    """An engine that tells the same times for all queries. What it is asked for is kept."""
    calls = []

    def time(gold, predicted, *, iterations, timeout):
        calls.append((gold, predicted, iterations, timeout))
        return Execution(query=None, answer=table(*[(4.0, 1.0)] * iterations))

    monkeypatch.setattr(engine, "time", time, raising=False)
    return calls


@pytest.fixture
def same_text(register):
    """A metric of texts: 1 for the same text, a half otherwise. What it is asked about is kept."""
    calls = []

    @metric(input="queries")
    def compare(gold, predicted):
        calls.append((gold, predicted))
        return 1.0 if gold == predicted else 0.5

    register("same_text", compare)
    return calls


@pytest.fixture
def seen_schema(register):
    """What a metric gets as the schema."""
    calls = []
    register("ours", metric(input="queries")(lambda gold, predicted, *, schema: calls.append(schema)))
    return calls


def queries(*golds, predicted="same", **changes):
    """A case of queries that the fake engine answers."""
    defaults = {"source": fake_source(), "golds": tuple(map(query, golds)), "predicted": query(predicted)}
    return make_case(**(defaults | changes))


def run(case):
    """The report of a case."""
    (entry,) = evaluate([case])["cases"]
    return entry


def scores(*golds, **changes):
    entry = run(queries(*golds, **changes))
    assert entry["outcome"] != "error", entry["message"]
    return entry["scores"]


def error(case):
    """The message of a case in error, without its place."""
    entry = run(case)
    assert entry["outcome"] == "error"
    return entry["message"].removesuffix(" (music/s.queryeval.yaml:4)")


def notes(entry):
    return entry["details"].get("notes", [])


# How a case ends

RIGHT, WRONG = {"predicted": answer((1,))}, {"predicted": answer((2,))}


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        (RIGHT, "passed"),
        (WRONG, "failed"),
        (WRONG | {"thresholds": {}}, "passed"),
        (WRONG | {"on_miss": "xfail"}, "missed"),
        (RIGHT | {"on_miss": "xfail"}, "passed"),
        (WRONG | {"xfail": "known"}, "xfailed"),
        (RIGHT | {"xfail": "known"}, "xpassed"),
        (WRONG | {"xfail": "known", "on_miss": "xfail"}, "xfailed"),
        (WRONG | {"skip": "later"}, "skipped"),
        ({"predicted": query("SELECT 1"), "xfail": "never an error"}, "error"),
        ({"predicted": None, "on_miss": "xfail"}, "error"),
        (RIGHT | {"thresholds": {"execution_accuracy": Threshold(maximum=0.5)}}, "failed"),
        (WRONG | {"thresholds": {"row_matching_f1": Threshold(minimum=0.75)}}, "failed"),
    ],
)
def test_a_case_ends_as_its_scores_and_settings_say(changes, outcome):
    assert run(make_case(**changes))["outcome"] == outcome


def test_a_missed_threshold_is_reported_with_its_value_also_of_a_metric_that_nobody_asked_for(engine):
    entry = run(queries("gold", predicted="half", thresholds={"row_matching_f1": Threshold(minimum=0.75)}))

    assert entry["scores"] == {"execution_accuracy": 0.0, "row_matching_f1": 0.5}
    assert entry["violations"] == [{"metric": "row_matching_f1", "min": 0.75, "max": None, "value": 0.5}]
    assert (entry["gold"]["index"], entry["gold"]["sample"]) == (0, [["Graz", 1], ["Linz", 2]])


def test_a_failed_prediction_fails_even_where_its_scores_would_do_unless_nothing_is_required(engine):
    lenient = queries("gold", predicted="broken", thresholds={"execution_accuracy": Threshold(minimum=0.0)})

    assert run(lenient)["outcome"] == "failed"
    assert run(change(lenient, thresholds={}))["outcome"] == "passed"


@pytest.mark.feature("json", "sdmx")
def test_a_failed_prediction_scores_0_on_every_metric_of_answers_and_does_not_equal_an_empty_gold(engine):
    of_sql = [name for name in METRICS.names() if applies_to(name, "sql")]
    with_answers = {name for name in of_sql if METRICS[name].input in ("answers", "executions")}
    names = tuple(name for name in of_sql if name in with_answers and "states" not in METRICS[name].injected)

    entry = run(queries("none", predicted="broken", metrics=names, allow_empty=True))

    assert entry["scores"] == dict.fromkeys(names, 0.0)
    assert entry["predicted"]["error"]["kind"] == "invalid"
    assert entry["outcome"] == "failed"


@pytest.mark.parametrize(("allow_empty", "told"), [(False, {"empty_gold": True}), (True, {})])
def test_an_empty_gold_is_told_unless_it_is_meant(engine, allow_empty, told):
    entry = run(queries("none", predicted="none", allow_empty=allow_empty))

    assert (entry["scores"]["execution_accuracy"], entry["details"]) == (1.0, told)


def test_a_skipped_case_is_not_run_and_says_why(engine):
    assert run(queries("gold", skip="the source moved"))["message"] == "the source moved"
    assert engine.executed == []


@pytest.mark.parametrize("policy", [Policy(row_order="ignore"), Policy(row_order="auto", duplicates="ignore")])
def test_gold_is_run_once_where_no_order_of_rows_counts(engine, policy):
    assert scores("gold", policy=policy) == {"execution_accuracy": 1.0}
    assert Counter(engine.executed) == {"gold": 1, "same": 1}


def test_predicted_columns_that_are_many_more_than_golds_are_noted():
    many = make_case(golds=(answer((3, 4)),), predicted=answer(tuple(range(5))), metrics=("row_matching_f1",))
    some = make_case(golds=(answer((3, 4)),), predicted=answer(tuple(range(1, 5))), metrics=("row_matching_f1",))

    assert run(many)["scores"]["row_matching_f1"] == 1.0
    assert notes(run(many)) == [
        "columns: the predicted answer has 5, the gold answer 2; row_matching_f1 and entity_set_f1 ignore extra columns"
    ]
    assert notes(run(some)) == []


# Several golds


@pytest.mark.parametrize(
    ("golds", "index"),
    [(("half", "gold", "other"), 1), (("gold", "same"), 0), (("other", "half"), 0), (("other", "none", "gold"), 2)],
)
def test_of_several_golds_the_best_by_the_first_default_metric_counts_then_the_first(engine, golds, index):
    gold = run(queries(*golds))["gold"]

    assert (gold["index"], gold["query"], gold["row_count"]) == (index, golds[index], len(ANSWERS[golds[index]]))


def test_the_first_default_metric_decides_or_else_the_first_that_is_asked_and_applies(engine, register):
    register("prefers_other", lambda gold, predicted: float(("Bern", 7) in gold.rows))
    register("never", lambda gold, predicted: None)

    entry = run(queries("other", "gold", metrics=("prefers_other", "execution_accuracy")))
    without = queries("other", "half", "gold", metrics=("never", "row_matching_f1"), thresholds={})

    assert entry["gold"]["index"] == 1
    assert entry["scores"] == {"prefers_other": 0.0, "execution_accuracy": 1.0}
    assert run(without)["gold"]["index"] == 2


def test_only_the_best_of_several_golds_is_scored_by_all_metrics_timed_and_told(engine, same_text, timing, register):
    register("telling", lambda gold, predicted: Score(value=1.0, details={"first": gold.rows[0][0]}))

    entry = run(queries("other", "gold", "same", metrics=("same_text", "telling", "ves")))

    assert (entry["gold"]["index"], entry["scores"]["same_text"], entry["details"]) == (
        1,
        0.5,
        entry["details"] | {"first": "Graz"},
    )
    assert same_text == [("gold", "same")]
    assert [gold for gold, *_ in timing] == ["gold"]


# Errors


@pytest.mark.parametrize(
    ("golds", "name"), [(("broken",), "gold"), (("gold", "broken"), "gold_any[1]"), (("broken", "gold"), "gold_any[0]")]
)
def test_a_gold_that_fails_is_an_error_and_its_prediction_is_not_run(engine, golds, name):
    assert error(queries(*golds)) == f"{name} query failed (invalid): no such table"
    assert "same" not in engine.executed


def test_a_gold_that_takes_too_long_has_the_time_of_its_attempt_and_a_remedy(engine, monkeypatch):
    late = Execution(query="gold", error=Failure(kind="timeout", message="no answer within 1 s"), seconds=1.2)
    monkeypatch.setattr(engine, "execute", lambda *_, **__: late)

    entry = run(queries("gold"))

    remedy = "raise `timeout`, or write a faster query"
    assert entry["message"].startswith(f"gold query failed (timeout): no answer within 1 s: {remedy}")
    assert (entry["gold"]["seconds"], entry["predicted"]["seconds"]) == (1.2, 0.0)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), "gave nan, no finite number"),
        (float("-inf"), "gave -inf, no finite number"),
        (10**5000, "gave int, no finite number"),
        ("1.0", "gave str, no finite number"),
        ([1.0], "gave list, no finite number"),
        (1j, "gave complex, no finite number"),
        (Score(value=float("nan")), "gave nan, no finite number"),
        (AttributeError("no_such_thing"), "raised AttributeError: no_such_thing"),
        *(
            (Score(value=1.0, details=details), "gave details that are not a mapping, or notes")
            for details in (None, ["a"], {"notes": "one text"}, {"notes": 5}, {"notes": [["x"]]})
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_metric_that_raises_or_gives_no_finite_number_is_an_error_that_names_it(engine, register, value, problem):
    def odd(gold, predicted):
        if isinstance(value, Exception):
            raise value
        return value

    register("odd", odd)

    assert error(queries("gold", metrics=("odd",))).startswith(f"metric 'odd' {problem}")


def test_a_metric_that_does_not_apply_has_no_score_but_may_have_no_threshold(engine, register):
    register("never", lambda gold, predicted: None)

    assert scores("gold", metrics=("execution_accuracy", "never")) == {"execution_accuracy": 1.0, "never": None}
    required = queries("gold", thresholds={"never": AT_LEAST_ONE})
    message = "metric 'never' does not apply to this case, but has a threshold: remove the threshold"
    assert error(required) == message
    by_option = replace(AT_LEAST_ONE, option="--queryeval-threshold")
    assert error(change(required, thresholds={"never": by_option})).startswith(f"--queryeval-threshold: {message[:40]}")


def test_an_interrupt_by_the_user_passes_through_a_metric_and_closes_what_was_opened(engine, register):
    def interrupted(gold, predicted):
        raise KeyboardInterrupt

    register("interrupted", interrupted)

    with pytest.raises(KeyboardInterrupt):
        run(queries("gold", metrics=("interrupted",)))
    assert engine.closed == 1


# What metrics are given


@pytest.mark.parametrize("value", [True, 1, 1.0])
def test_a_score_is_a_float_whatever_number_the_metric_gives(engine, register, value):
    register("ours", lambda gold, predicted: value)

    score = scores("gold", metrics=("ours",))["ours"]

    assert (type(score), score) == (float, 1.0)


def test_a_metric_gets_its_options_and_what_it_names_of_policy_dialect_and_schema(engine, register):
    calls = {}

    @metric(input="queries")
    def ours(gold, predicted, *, policy, dialect, schema, alpha=1):
        calls.update(policy=policy, dialect=dialect, schema=schema, alpha=alpha)
        return 1.0

    register("ours", ours)
    policy = Policy(case="ignore")
    settings = {"policy": policy, "dialect": "duckdb", "db_schema": SINGERS, "options": {"ours": {"alpha": 2}}}

    scores("gold", metrics=("ours",), **settings)

    assert calls == {"policy": policy, "dialect": "duckdb", "schema": SINGERS, "alpha": 2}


def test_options_that_a_metric_refuses_are_refused_before_anything_is_run(engine, timing):
    def refuse(options):
        raise SettingError("alpha", "'alpha' is not above 0")

    METRICS.register("ours", metric(check=refuse)(lambda gold, predicted, *, alpha=1: 1.0))

    with pytest.raises(SettingError, match=r"^'alpha' is not above 0$"):
        run(queries("gold", metrics=("ours",), options={"ours": {"alpha": 0}}))
    for iterations in (0, "many", 10**9):
        with pytest.raises(SettingError, match=r"^`iterations` must be a whole number from 1 to 1,000"):
            run(queries("gold", metrics=("ves",), options={"ves": {"iterations": iterations}}))
    assert (engine.executed, timing) == ([], [])


def test_a_metric_may_tell_details_beside_its_score(engine, register):
    register("one", lambda gold, predicted: Score(value=0.25, details={"seen": [1], "notes": ["said once"]}))
    register("two", lambda gold, predicted: Score(value=None, details={"more": 2, "notes": ["said once", "and this"]}))

    entry = run(queries("gold", metrics=("one", "two"), thresholds={}))

    assert entry["scores"] == {"one": 0.25, "two": None}
    assert entry["details"] == {"seen": [1], "more": 2, "notes": ["said once", "and this"]}


def test_the_time_of_scoring_is_kept(engine, register):
    register("thorough", metric()(lambda gold, predicted: time.sleep(0.02) or 1.0))

    assert 5 > run(queries("gold", metrics=("thorough",)))["scoring"]["seconds"] >= 0.02


def test_a_metric_of_texts_is_given_both_texts_also_where_the_prediction_fails(engine, same_text):
    assert scores("gold", predicted="gold", **BY_TEXT)["same_text"] == 1.0
    assert same_text == [("gold", "gold")]
    for text in ("broken", "x" * 200_000, ""):
        entry = run(queries("gold", predicted=text, metrics=("same_text", "arity_f1")))
        assert entry["scores"] == {"same_text": 0.5, "arity_f1": 0.0, "execution_accuracy": 0.0}
        assert (entry["predicted"]["error"] is not None, entry["outcome"]) == (True, "failed")


def test_a_metric_of_texts_has_no_score_where_a_side_is_no_query(engine, same_text):
    neither = make_case(golds=(answer((1,)),), predicted=answer((1,)), **BY_TEXT)
    only_gold = queries("gold", predicted="", **BY_TEXT)

    assert run(neither)["scores"]["same_text"] is None
    assert run(replace(only_gold, predicted=answer((1,))))["scores"]["same_text"] is None
    assert same_text == []


def test_without_a_source_texts_are_scored_and_nothing_is_run(same_text):
    settings = {"source": None, **BY_TEXT, "thresholds": {"same_text": Threshold(minimum=0.5)}}

    entry = run(queries("gold", **settings))
    assert (entry["outcome"], entry["scores"], entry["details"]) == ("passed", {"same_text": 0.5}, {})
    assert [(side["query"], side["row_count"]) for side in (entry["gold"], entry["predicted"])] == [
        ("gold", None),
        ("same", None),
    ]
    empty = run(queries("gold", predicted=" ", **settings))
    assert (empty["outcome"], empty["predicted"]["error"]) == (
        "failed",
        {"kind": "empty", "message": "the query is empty"},
    )
    assert run(queries("gold", "same", "same", **settings))["gold"]["index"] == 1


@pytest.mark.parametrize("asked", [{"thresholds": {"soft_f1": Threshold(minimum=1)}}, {"metrics": ("soft_f1",)}])
def test_without_a_source_a_metric_of_answers_is_an_error_of_the_case(same_text, asked):
    case = queries("gold", **{"source": None, **BY_TEXT, "thresholds": {}, **asked})

    assert error(case) == "there is no source to run the query on: set `source`"


def test_the_schema_is_the_suites_own_else_that_of_the_source_asked_for_once(engine, seen_schema, monkeypatch):
    calls = []
    monkeypatch.setattr(engine, "schema", lambda *, timeout: calls.append(timeout) or Schema(), raising=False)
    case = queries("gold", metrics=("ours",))

    evaluate([case, replace(case, id="b"), replace(case, id="c", db_schema=SINGERS)])

    assert (seen_schema, calls) == ([Schema(), Schema(), SINGERS], [5.0])


def test_a_schema_that_cannot_be_listed_is_empty_with_a_note_and_asked_for_once(engine, seen_schema, monkeypatch):
    calls = []

    def fail(*, timeout):
        calls.append(timeout)
        raise SourceError("the tables cannot be listed")

    monkeypatch.setattr(engine, "schema", fail, raising=False)
    case = queries("gold", metrics=("ours",))

    report = evaluate([case, replace(case, id="b"), change(case, id="c", source=None, thresholds={})])

    note = "schema: the tables cannot be listed; columns are compared by their names alone"
    assert [notes(entry) for entry in report["cases"]] == [[note], [note], []]
    assert (seen_schema, len(calls)) == ([Schema()] * 3, 1)


# Rewritten queries


@pytest.fixture
def rewriting(register):
    """A metric that reads `better` in a prediction as `gold`, and leaves gold as it is."""

    @metric(input="executions", rewrite=(str, lambda text: text.replace("better", "gold")))
    def rewritten(gold, predicted):
        return float(predicted.answer.rows == gold.answer.rows)

    register("rewritten", rewritten)


def test_a_rewritten_query_is_run_once_and_one_that_stays_the_same_not_again(engine, rewriting):
    engine.answers = ANSWERS | {"gold ": ANSWERS["gold"]}
    case = queries("gold", "same", predicted="better ", metrics=("rewritten",), thresholds={})

    report = evaluate([case, replace(case, id="b")])
    assert [(entry["scores"], entry["gold"]["index"]) for entry in report["cases"]] == [({"rewritten": 1.0}, 0)] * 2
    assert engine.executed.count("gold ") == 1
    engine.executed.clear()
    run(queries("gold", metrics=("rewritten",)))
    assert engine.executed == ["gold", "same"]


def test_a_prediction_that_runs_only_when_rewritten_counts_for_that_metric_alone(engine, rewriting):
    entry = run(queries("gold", predicted="better", metrics=("rewritten", "execution_accuracy")))

    assert entry["scores"] == {"rewritten": 1.0, "execution_accuracy": 0.0}
    assert entry["predicted"]["error"] is not None


PUBLISHED = ("execution_accuracy", "execution_accuracy_bird", "soft_f1_bird", "row_matching_f1", "valid_query")


@pytest.mark.parametrize(
    ("predicted", "is_cut"),
    [
        ("select n from t; drop table t", True),
        ("select n from t; select n from t;", True),
        ("select n from t;", False),
        ("select n from t ; -- all of them", False),
        ("select n as 'a;b' from t", False),
    ],
)
def test_further_statements_fail_the_prediction_though_the_published_rule_ignores_them(tmp_path, predicted, is_cut):
    (tmp_path / "s.sql").write_text("create table t (n); insert into t values (1), (2);")
    case = make_case(
        source=Source(name="db", engine="sqlite", settings={"script": "s.sql"}, folder=tmp_path),
        golds=(query("select n from t"),),
        predicted=query(predicted),
        metrics=PUBLISHED,
        thresholds={"execution_accuracy_spider": AT_LEAST_ONE},
    )

    entry = run(case)

    assert entry["outcome"] == ("failed" if is_cut else "passed")
    assert notes(entry) == (["published rule: text after the first `;` ignored"] if is_cut else [])
    if is_cut:
        assert entry["predicted"]["error"]["kind"] == "unsafe"
        assert {name for name, score in entry["scores"].items() if score} == {"execution_accuracy_spider"}


# Text around queries, and analyses


@pytest.fixture
def singers(tmp_path):
    """A function that evaluates a query on a table t with a column `name`."""
    (tmp_path / "t.sql").write_text("CREATE TABLE t (name text); INSERT INTO t VALUES ('Graz');", encoding="utf-8")
    source = Source(name="m", engine="sqlite", settings={"script": "t.sql"}, folder=tmp_path)

    def evaluated(predicted, gold="SELECT name FROM t"):
        return run(make_case(source=source, golds=(query(gold),), predicted=query(predicted)))

    return evaluated


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        (
            "Here is the query:\n\nSELECT name FROM t\n\nIt returns the names.",
            'near "Here": syntax error (the text starts with prose, not with a query)',
        ),
        ("SELECT\u00a0name FROM t", " (line 1, column 7 is U+00A0, no-break space: write a space)"),
    ],
)
def test_what_is_wrong_with_the_text_of_a_query_is_named_beside_the_message(singers, predicted, message):
    assert singers(predicted)["predicted"]["error"]["message"].endswith(message)
    of_gold = singers("SELECT 1", gold="SELECT nme FROM t WHERE name = \u201cGraz\u201d")["message"]
    assert "(line 1, column 32 is U+201C, left double quotation mark: write" in of_gold
    assert notes(singers("Here is the query:\n\nSELECT name FROM t")) == [
        "predicted: the query was read from the text after prose"
    ]


def test_a_huge_prediction_fails_in_little_time(singers):
    began = time.process_time()

    entry = singers("x" * 17 * 2**20)

    assert "the query is too long: 17,825,792 characters" in entry["message"]
    assert time.process_time() - began < 8  # 1 s; a search for what it may have meant would take 40 s


def test_a_search_for_a_cause_that_raises_leaves_the_verdict_and_is_told_in_a_note(engine, monkeypatch):
    def fail(result, session):
        raise ZeroDivisionError("of\nnothing")

    monkeypatch.setattr("pytest_queryeval.features.causes.search.find_cause", fail)

    entry = run(queries("gold", predicted="half"))

    assert (entry["outcome"], entry["scores"], entry["cause"]) == ("failed", {"execution_accuracy": 0.0}, None)
    assert notes(entry) == ["no cause: ZeroDivisionError: of nothing"]


# Times


def test_metrics_of_times_share_one_measurement_of_as_many_iterations(engine, timing):
    actual = scores("gold", metrics=("ves", "r_ves", "r_ves_bird"))

    assert (actual["ves"], actual["r_ves"], actual["r_ves_bird"]) == (2.0, 1.25**0.5, 1.25**0.5)
    assert timing == [("gold", "same", 20, 5.0)]
    scores("gold", metrics=("ves", "r_ves"), options={"ves": {"iterations": 3}})
    assert [iterations for *_, iterations, _ in timing] == [20, 3, 20]


def test_what_is_wrong_or_fails_or_is_stated_is_not_timed(engine, timing):
    assert scores("gold", predicted="other", metrics=("ves",))["ves"] == 0.0
    assert scores("gold", predicted="broken", metrics=("ves",))["ves"] == 0.0
    stated, asked = answer(*ANSWERS["gold"]), query("gold")
    for gold, predicted in ((stated, asked), (asked, stated), (stated, stated)):
        case = make_case(source=fake_source(), golds=(gold,), predicted=predicted, metrics=("ves", "r_ves"))
        assert {**run(case)["scores"], "execution_accuracy": 1} == {"ves": None, "r_ves": None, "execution_accuracy": 1}
    assert timing == []


def test_a_query_that_cannot_be_timed_is_an_error_of_the_case(engine, monkeypatch):
    case = queries("gold", metrics=("ves",))
    late = Execution(query=None, error=Failure(kind="timeout", message="no answer within 5 s"))

    assert error(case) == "the engine 'fake' cannot time queries"
    monkeypatch.setattr(engine, "time", lambda *_, **__: late, raising=False)
    assert error(case) == "queries that ran before failed when they were timed: no answer within 5 s"


# What the cases of a run share


@pytest.mark.parametrize(
    ("changes", "times"),
    [({}, 1), ({"source": fake_source("sports")}, 2), ({"timeout": 1.0}, 2), ({"max_rows": 7}, 2)],
    ids=["nothing", "source", "timeout", "rows"],
)
def test_a_gold_query_is_run_once_unless_its_answer_may_differ_and_a_predicted_one_for_each_case(
    engine, changes, times
):
    first = queries("gold", predicted="half")

    report = evaluate([first, change(first, id="b", **changes)])

    assert [entry["outcome"] for entry in report["cases"]] == ["failed", "failed"]
    assert Counter(engine.executed) == {"gold": times, "half": 2}
    assert engine.opened == engine.closed == (2 if "source" in changes else 1)


@pytest.mark.parametrize(
    ("cells", "executed"),
    [(10, ["gold", "same", "half", "same"]), (4, ["gold", "same", "gold", "half", "gold", "same"])],
)
def test_remembered_answers_are_bounded_and_the_oldest_is_forgotten_first(engine, monkeypatch, cells, executed):
    # Each answer of two rows counts 2 x 2 cells and 1 for itself.
    monkeypatch.setattr("pytest_queryeval.evaluation.session.CACHE_CELLS", cells)
    golds = ("gold", "same", "gold", "half", "gold", "same")

    evaluate([queries(gold, id=str(n), predicted="other") for n, gold in enumerate(golds)])

    assert [text for text in engine.executed if text != "other"] == executed


def test_an_engine_that_cannot_be_opened_is_the_same_error_for_every_case_and_tried_once(monkeypatch):
    attempts = []

    def fail(source, hosts):
        attempts.append(len(traceback.extract_stack()))
        raise SourceError("the database is locked")

    monkeypatch.setitem(ENGINES._members, "fake", EngineType(opener=fail))

    report = evaluate([queries("gold", id=name) for name in "abc"])

    assert {entry["message"].partition(" (")[0] for entry in report["cases"]} == {"the database is locked"}
    assert len(attempts) == 1


def test_a_predictor_is_opened_once_also_where_it_cannot_be(engine):
    opened = []

    def count(spec):
        opened.append(spec)
        if spec.settings:
            raise PredictorError("no key")
        return PREDICTORS["inline"].opener(spec)

    PREDICTORS.register("counted", PredictorType(opener=count, calls=False))
    for settings, outcomes in (({}, ["passed", "failed"]), ({"fails": True}, ["error", "error"])):
        spec = PredictorSpec(kind="counted", settings=settings, folder=Path())
        cases = [queries("gold", id=text, predicted=text, predictor=spec) for text in ("a", "half")]
        cases[0] = replace(cases[0], predicted=query("same"))
        assert [entry["outcome"] for entry in evaluate(cases)["cases"]] == outcomes
    assert len(opened) == 2


@pytest.mark.process
def test_an_engine_that_fails_to_close_does_not_keep_the_others_open(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(engine, "close", lambda: 1 / 0)
    second = FakeEngine(ANSWERS)
    ENGINES.register("second", EngineType(opener=second.open))
    cases = [queries("gold", id="a"), queries("gold", id="b", source=replace(fake_source(), engine="second"))]

    for order in (cases, cases[::-1]):
        with pytest.raises(ZeroDivisionError):
            evaluate(order)

    assert second.closed == second.opened == 2


OVER_3, OVER_4 = "SELECT name FROM t WHERE age > 3", "SELECT name FROM t WHERE age > 4 AND size = 2"
YOUNGEST = "SELECT name FROM t ORDER BY age LIMIT 1"


class OccupiedEngine(FakeEngine):
    """Does not recover from a query for which it has no answer."""

    def execute(self, query, **limits):
        if query not in self.answers:
            self.executed.append(query)
            raise UnresponsiveSourceError("no answer within 5 s; nor does it answer SELECT 1")
        return super().execute(query, **limits)


@pytest.fixture
def occupied(monkeypatch):
    answers = {OVER_3: [("Ann",), ("Bo",)], OVER_4: [("Bo",)], YOUNGEST: [("Ann",)], "bo": [("Bo",)]}
    engine = OccupiedEngine(answers | ANSWERS)
    monkeypatch.setitem(ENGINES._members, "fake", EngineType(opener=engine.open))
    return engine


@pytest.mark.feature("causes", "evaluate")
@pytest.mark.parametrize(("gold", "predicted"), [(OVER_3, OVER_4), (YOUNGEST, "bo")], ids=["repairs", "ties"])
def test_a_source_that_a_derived_query_occupies_is_asked_by_later_cases_and_no_case_is_blamed(
    occupied, tmp_path, gold, predicted
):
    derives = {"id": "derives", "gold": gold, "predicted": predicted}
    later = {"id": "later", "gold": "gold", "predicted": "same"}
    own = {"id": "own", "gold": "late", "predicted": "same"}
    source = {"fake": {"path": "x"}}

    write_suite(tmp_path, None, [derives, later], source=source)
    assert report_of(tmp_path, "--cause=full")["cases"][1]["outcome"] == "passed"
    assert [text for text in occupied.executed if text not in occupied.answers]
    write_suite(tmp_path, None, [derives, own, later], source=source)
    messages = {case["id"]: case["message"] for case in report_of(tmp_path, "--cause=full")["cases"]}

    assert "nor does it answer" in messages["own"]
    assert "the server no longer answers" in messages["later"]
    assert "query of case" not in messages["later"]


# The report of a run

SUITE = """
kind: sql
source: {sqlite: {script: music.sql}}
predictor: predict.py:predict
cases:
  - {id: count, question: "3", gold: SELECT count(*) FROM singer}
  - {id: wrong, question: "4", gold: SELECT count(*) FROM singer}
  - {id: broken, question: FROM, gold: SELECT count(*) FROM singer}
  - {id: bad-gold, question: "3", gold: SELECT count(*) FROM dancer}
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "s.queryeval.yaml").write_text(SUITE)
    (tmp_path / "music.sql").write_text("create table singer (n); insert into singer values (1), (2), (3);")
    (tmp_path / "predict.py").write_text("def predict(case):\n    return f'SELECT {case.question}'\n")
    return tmp_path


def test_a_suite_is_evaluated_without_pytest_and_its_report_can_be_written(suite):
    assert (evaluate([])["totals"]["cases"], evaluate([])["metrics"]) == (0, {})
    report = evaluate(load_cases(suite), name="mine")

    outcomes = {case["id"]: case["outcome"] for case in report["cases"]}
    assert outcomes == {"count": "passed", "wrong": "failed", "broken": "failed", "bad-gold": "error"}
    assert (report["totals"]["cases"], report["name"], report["schema"], report["gates"]) == (4, "mine", 2, [])
    assert report["metrics"]["execution_accuracy"]["mean"] == pytest.approx(1 / 3)
    assert json.loads(render_json(report)) == report
    assert datetime.fromisoformat(report["created"]).utcoffset().total_seconds() == 0
    assert report["environment"].keys() == {"python", "pytest_queryeval", "platform", "engines"}
    assert report["environment"]["engines"].keys() == {"sqlite"}


@pytest.mark.parametrize("path", ["suite.yaml", Path("suite.yaml")])
def test_a_path_in_place_of_cases_says_how_to_read_them(path):
    with pytest.raises(TypeError, match=r"use `evaluate\(load_cases\('suite\.yaml'\)\)`"):
        evaluate(path)


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("cases.yaml", "- {id: a, gold: SELECT 1, predicted: SELECT 1}\n"),
        ("cases.csv", "id,gold,predicted\na,SELECT 1,SELECT 1\n"),
    ],
)
def test_suites_that_share_a_file_of_cases_have_node_ids_of_their_own(tmp_path, name, cases):
    (tmp_path / name).write_text(cases)
    for suite in ("one", "other"):
        (tmp_path / f"{suite}.queryeval.yaml").write_text(f"kind: sql\nsource: {suite}.db\ncases: {name}\n")

    report = evaluate(load_cases(tmp_path))

    assert [case["nodeid"] for case in report["cases"]] == [
        f"{tmp_path}/{suite}.queryeval.yaml::a" for suite in ("one", "other")
    ]
