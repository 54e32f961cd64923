import pytest
from samples import answer, fake_source, install_engine, make_case, query, table

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import QueryEvalError, SettingError, SourceError
from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.model import Execution, Failure, Threshold
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.scoring import resolve_row_order

ANSWERS = {"gold": [("Graz", 1), ("Linz", 2)], "same": [("Linz", 2), ("Graz", 1)], "other": [("Bern", 7)]}
SINGERS = Schema(tables={"singer": ("name",)})
BY_TEXT = ("same_text",)


@pytest.fixture
def engine(monkeypatch):
    return install_engine(monkeypatch, ANSWERS)


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
def timing(engine, monkeypatch):
    """An engine that tells the same times for all queries. What it is asked for is kept."""
    calls = []

    def time(gold, predicted, *, iterations, timeout):
        calls.append((gold, predicted, iterations, timeout))
        return Execution(query=None, answer=table(*[(4.0, 1.0)] * iterations))

    monkeypatch.setattr(engine, "time", time, raising=False)
    return calls


def run_case(*golds, predicted="same", **changes):
    defaults = {"source": fake_source(), "golds": tuple(map(query, golds)), "predicted": query(predicted)}
    return make_case(**(defaults | changes))


def scores(session, *golds, **changes):
    return evaluate_case(run_case(*golds, **changes), session).scores


@pytest.mark.parametrize("policy", [Policy(row_order="ignore"), Policy(row_order="auto", duplicates="ignore")])
def test_gold_is_neither_parsed_nor_run_again_where_no_order_of_rows_counts(policy):
    gold, predicted = table((1,), (2,)), table((2,), (1,))

    assert resolve_row_order(gold, predicted, policy, read_plan=pytest.fail, run=pytest.fail) == (gold, ())


# Metrics of texts


def test_a_metric_of_texts_is_given_both_texts(session, engine, same_text):
    assert scores(session, "gold", predicted="gold", metrics=BY_TEXT)["same_text"] == 1.0
    assert same_text == [("gold", "gold")]


@pytest.mark.parametrize("predicted", ["broken", "x" * 200_000, ""], ids=["invalid", "too long", "empty"])
def test_a_metric_of_texts_is_scored_also_where_the_prediction_fails(session, engine, same_text, predicted):
    result = evaluate_case(run_case("gold", predicted=predicted, metrics=("same_text", "arity_f1")), session)

    assert result.scores == {"same_text": 0.5, "arity_f1": 0.0, "execution_accuracy": 0.0}
    assert result.predicted.error is not None
    assert result.fails


def test_a_metric_of_texts_has_no_score_where_a_side_is_no_query(session, engine, same_text):
    neither = make_case(golds=(answer((1,)),), predicted=answer((1,)), metrics=BY_TEXT)
    only_gold = make_case(golds=(query("gold"),), predicted=answer((1,)), metrics=BY_TEXT, source=fake_source())

    assert evaluate_case(neither, session).scores["same_text"] is None
    assert evaluate_case(only_gold, session).scores["same_text"] is None
    assert same_text == []


def test_without_a_source_texts_are_scored_and_nothing_is_run(session, same_text):
    case = run_case("gold", source=None, metrics=BY_TEXT, thresholds={"same_text": Threshold(minimum=0.5)})

    result = evaluate_case(case, session)

    assert result.scores == {"same_text": 0.5}
    assert not result.fails
    assert (result.gold.query, result.gold.answer, result.gold.error) == ("gold", None, None)
    assert (result.predicted.query, result.predicted.answer, result.predicted.error) == ("same", None, None)
    assert result.details == {}


def test_without_a_source_an_empty_prediction_fails(session, same_text):
    case = run_case("gold", predicted=" ", source=None, metrics=BY_TEXT, thresholds={"same_text": Threshold(minimum=0)})

    result = evaluate_case(case, session)

    assert result.predicted.error == Failure(kind="empty", message="the query is empty")
    assert result.fails


@pytest.mark.parametrize("asked", [{"thresholds": {"soft_f1": Threshold(minimum=1)}}, {"metrics": ("soft_f1",)}])
def test_without_a_source_a_metric_of_answers_is_an_error_of_the_case(session, same_text, asked):
    defaults = {"source": None, "metrics": BY_TEXT, "thresholds": {}}

    with pytest.raises(SourceError, match=r"^there is no source to run the query on: set `source`$"):
        evaluate_case(run_case("gold", **(defaults | asked)), session)


def test_without_a_source_the_first_metric_that_is_asked_for_decides_between_golds(session, same_text):
    case = run_case("gold", "same", "same", source=None, metrics=BY_TEXT, thresholds={})

    result = evaluate_case(case, session)

    assert (result.gold_index, result.scores) == (1, {"same_text": 1.0})


# Several golds


def test_only_the_best_of_several_golds_is_scored_by_all_metrics(session, engine, same_text):
    result = evaluate_case(run_case("other", "gold", metrics=BY_TEXT), session)

    assert (result.gold_index, result.scores["same_text"]) == (1, 0.5)
    assert same_text == [("gold", "same")]


def test_details_are_those_of_the_best_gold(session, engine, register):
    register("telling", lambda gold, predicted: Score(value=1.0, details={"first": gold.rows[0][0]}))

    result = evaluate_case(run_case("other", "gold", metrics=("telling",)), session)

    assert result.details == {"first": "Graz"}


# Scores with details


def test_a_metric_may_tell_details_beside_its_score(session, engine, register):
    register("one", lambda gold, predicted: Score(value=0.25, details={"seen": [1], "notes": ["said once"]}))
    register("two", lambda gold, predicted: Score(value=None, details={"more": 2, "notes": ["said once", "and this"]}))

    result = evaluate_case(run_case("gold", metrics=("one", "two"), thresholds={}), session)

    assert result.scores == {"one": 0.25, "two": None}
    assert result.details == {"seen": [1], "more": 2, "notes": ["said once", "and this"]}


@pytest.mark.parametrize("details", [None, ["a"], {"notes": "one text"}, {"notes": 5}, {"notes": [["x"]]}])
def test_details_that_are_none_are_an_error_that_names_the_metric(session, engine, register, details):
    register("odd", lambda gold, predicted: Score(value=1.0, details=details))

    with pytest.raises(QueryEvalError, match=r"^metric 'odd' gave details that are not a mapping, or notes"):
        evaluate_case(run_case("gold", metrics=("odd",)), session)


def test_a_score_with_details_must_be_a_finite_number_too(session, engine, register):
    register("odd", lambda gold, predicted: Score(value=float("nan")))

    with pytest.raises(QueryEvalError, match=r"^metric 'odd' gave nan, no finite number"):
        evaluate_case(run_case("gold", metrics=("odd",)), session)


# What the evaluation injects


def test_a_metric_gets_what_it_names_of_policy_dialect_and_schema(session, engine, register):
    calls = {}

    @metric(input="queries")
    def ours(gold, predicted, *, policy, dialect, schema, alpha=1):
        calls.update(policy=policy, dialect=dialect, schema=schema, alpha=alpha)
        return 1.0

    register("ours", ours)
    case = run_case(
        "gold",
        metrics=("ours",),
        options={"ours": {"alpha": 2}},
        policy=Policy(case="ignore"),
        dialect="duckdb",
        db_schema=SINGERS,
    )

    evaluate_case(case, session)

    assert calls == {"policy": Policy(case="ignore"), "dialect": "duckdb", "schema": SINGERS, "alpha": 2}


def test_options_that_a_metric_refuses_are_an_error_of_the_case(session, engine, register):
    def refuse(options):
        raise SettingError("alpha", "'alpha' is not above 0")

    @metric(check=refuse)
    def ours(gold, predicted, *, alpha=1):
        return 1.0

    register("ours", ours)

    with pytest.raises(QueryEvalError, match=r"^'alpha' is not above 0$"):
        evaluate_case(run_case("gold", metrics=("ours",), options={"ours": {"alpha": 0}}), session)


@pytest.fixture
def seen_schema(register):
    """What a metric gets as the schema."""
    calls = []
    register("ours", metric(input="queries")(lambda gold, predicted, *, schema: calls.append(schema)))
    return calls


def test_the_schema_is_the_sources_own_and_asked_for_once(session, engine, seen_schema, monkeypatch):
    calls = []
    monkeypatch.setattr(engine, "schema", lambda *, timeout: calls.append(timeout) or SINGERS, raising=False)

    for _ in range(2):
        evaluate_case(run_case("gold", metrics=("ours",)), session)

    assert (seen_schema, calls) == ([SINGERS] * 2, [5.0])


def test_a_schema_that_the_suite_states_comes_before_the_sources(session, engine, seen_schema, monkeypatch):
    monkeypatch.setattr(engine, "schema", lambda *, timeout: 1 / 0, raising=False)

    evaluate_case(run_case("gold", metrics=("ours",), db_schema=SINGERS), session)

    assert seen_schema == [SINGERS]


def test_the_schema_is_empty_where_nothing_tells_it(session, engine, seen_schema):
    evaluate_case(run_case("gold", metrics=("ours",)), session)
    evaluate_case(run_case("gold", metrics=("ours",), thresholds={}, source=None), session)

    assert seen_schema == [Schema(), Schema()]


def test_a_schema_that_cannot_be_listed_is_empty_with_a_note_and_asked_for_once(
    session, engine, seen_schema, monkeypatch
):
    calls = []

    def fail(*, timeout):
        calls.append(timeout)
        raise SourceError("the tables cannot be listed")

    monkeypatch.setattr(engine, "schema", fail, raising=False)

    results = [evaluate_case(run_case("gold", metrics=("ours",)), session) for _ in range(2)]

    note = "schema: the tables cannot be listed; columns are compared by their names alone"
    assert [result.details["notes"] for result in results] == [[note], [note]]
    assert (seen_schema, len(calls)) == ([Schema(), Schema()], 1)


# Times


def test_metrics_of_times_share_one_measurement(session, engine, timing):
    actual = scores(session, "gold", metrics=("ves", "r_ves", "r_ves_bird"))

    assert (actual["ves"], actual["r_ves"], actual["r_ves_bird"]) == (2.0, 1.25**0.5, 1.25**0.5)
    assert timing == [("gold", "same", 20, 5.0)]


def test_another_number_of_iterations_is_another_measurement(session, engine, timing):
    scores(session, "gold", metrics=("ves", "r_ves"), options={"ves": {"iterations": 3}})

    assert [iterations for *_, iterations, _ in timing] == [3, 20]


def test_what_is_wrong_or_fails_is_not_timed(session, engine, timing):
    assert scores(session, "gold", predicted="other", metrics=("ves",))["ves"] == 0.0
    assert scores(session, "gold", predicted="broken", metrics=("ves",))["ves"] == 0.0
    assert timing == []


def test_stated_answers_have_no_times(session, engine, timing):
    stated, query_text = answer(*ANSWERS["gold"]), query("gold")
    changes = {"source": fake_source(), "metrics": ("ves", "r_ves")}

    for gold, predicted in ((stated, query_text), (query_text, stated), (stated, stated)):
        scores = evaluate_case(make_case(golds=(gold,), predicted=predicted, **changes), session).scores
        assert (scores["ves"], scores["r_ves"]) == (None, None)
    assert timing == []


def test_only_the_best_of_several_golds_is_timed(session, engine, timing):
    result = evaluate_case(run_case("other", "gold", "same", metrics=("ves",)), session)

    assert result.gold_index == 1
    assert [gold for gold, *_ in timing] == ["gold"]


def test_an_engine_that_cannot_time_is_an_error_that_names_it(session, engine):
    with pytest.raises(SourceError, match=r"^the engine 'fake' cannot time queries$"):
        scores(session, "gold", metrics=("ves",))


def test_a_query_that_fails_while_it_is_timed_is_an_error_of_the_case(session, engine, monkeypatch):
    late = Execution(query=None, error=Failure(kind="timeout", message="no answer within 5 s"))
    monkeypatch.setattr(engine, "time", lambda *_, **__: late, raising=False)

    expected = r"^queries that ran before failed when they were timed: no answer within 5 s$"
    with pytest.raises(SourceError, match=expected):
        scores(session, "gold", metrics=("ves",))


@pytest.mark.parametrize("iterations", [0, "many", 10**9])
def test_iterations_that_cannot_be_are_an_error_and_nothing_is_timed(session, engine, timing, iterations):
    with pytest.raises(QueryEvalError, match=r"^`iterations` must be a whole number from 1 to 1,000$"):
        scores(session, "gold", metrics=("ves",), options={"ves": {"iterations": iterations}})

    assert timing == []


def test_predicted_columns_that_are_many_more_than_golds_are_noted(session):
    many = make_case(golds=(answer((3, 4)),), predicted=answer(tuple(range(5))), metrics=("row_matching_f1",))
    some = make_case(golds=(answer((3, 4)),), predicted=answer(tuple(range(1, 5))), metrics=("row_matching_f1",))

    noted = evaluate_case(many, session)

    assert noted.scores["row_matching_f1"] == 1.0
    assert noted.details["notes"] == [
        "columns: predicted has 5, gold 2; row_matching_f1 and entity_set_f1 ignore the surplus"
    ]
    assert "notes" not in evaluate_case(some, session).details
