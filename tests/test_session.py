import traceback
from pathlib import Path

import pytest
from samples import FakeEngine, fake_source, install_engine, make_case, query

import pytest_queryeval.evaluation.session as session_module
from pytest_queryeval.core.errors import PredictorError, SourceError, UnresponsiveSourceError
from pytest_queryeval.core.model import PredictorSpec, Source
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.predictors import PREDICTORS, PredictorType
from pytest_queryeval.sandbox.host import Host

ANSWERS = {
    "gold": [("Graz", 1), ("Linz", 2)],
    "same": [("Linz", 2), ("Graz", 1)],
    "half": [("Graz", 1), ("Wien", 3)],
}


@pytest.fixture
def engine(monkeypatch):
    return install_engine(monkeypatch, ANSWERS)


def run_case(*golds, predicted="same", **changes):
    defaults = {"source": fake_source(), "golds": tuple(map(query, golds)), "predicted": query(predicted)}
    return make_case(**(defaults | changes))


def rows(execution):
    return list(execution.answer.rows)


def test_a_query_without_a_source_is_an_error_of_the_source(session):
    with pytest.raises(SourceError, match="there is no source to run the query on"):
        evaluate_case(make_case(predicted=query("same")), session)


def test_a_gold_query_is_run_once_however_many_cases_have_it(session, engine):
    results = [evaluate_case(run_case("gold", predicted=predicted), session) for predicted in ("same", "half", "same")]

    assert [result.scores["execution_accuracy"] for result in results] == [1.0, 0.0, 1.0]
    assert engine.executed.count("gold") == 1
    assert len({id(result.gold.answer) for result in results}) == 1


@pytest.mark.parametrize(
    "changes", [{"source": fake_source("sports")}, {"timeout": 1.0}, {"max_rows": 7}], ids=["source", "timeout", "rows"]
)
def test_a_gold_query_is_run_again_where_its_answer_may_differ(session, engine, changes):
    evaluate_case(run_case("gold"), session)

    evaluate_case(run_case("gold", **changes), session)

    assert engine.executed.count("gold") == 2


def test_a_predicted_query_is_run_for_each_case(session, engine):
    for _ in range(2):
        evaluate_case(run_case("gold", predicted="half"), session)

    assert engine.executed.count("half") == 2


def test_remembered_answers_are_bounded_and_the_oldest_is_forgotten_first(session, engine, monkeypatch):
    monkeypatch.setattr(
        session_module, "CACHE_CELLS", 10
    )  # each answer of two rows counts 2 x 2 cells and 1 for itself

    for gold in ("gold", "same", "gold", "half"):  # by now `same` was used least recently
        session.execute_cached(query(gold), run_case(gold))
    for gold in ("gold", "same"):
        session.execute_cached(query(gold), run_case(gold))

    assert engine.executed == ["gold", "same", "half", "same"]


def test_an_answer_larger_than_the_bound_is_not_remembered_and_does_no_harm(session, engine, monkeypatch):
    monkeypatch.setattr(session_module, "CACHE_CELLS", 4)

    executions = [session.execute_cached(query("gold"), run_case("gold")) for _ in range(3)]

    assert all(rows(execution) == ANSWERS["gold"] for execution in executions)
    assert engine.executed == ["gold"] * 3


def test_an_engine_is_opened_once_a_source(session, engine):
    for name in ("music", "music", "sports"):
        evaluate_case(run_case("gold", source=fake_source(name)), session)

    assert engine.opened == 2


def test_an_engine_that_cannot_be_opened_is_the_same_error_for_every_case(session, monkeypatch):
    attempts = []

    def fail(source, hosts):
        attempts.append(source)
        raise SourceError("the database is locked")

    monkeypatch.setitem(ENGINES._members, "fake", EngineType(opener=fail))
    depths = []
    for _ in range(3):
        with pytest.raises(SourceError, match=r"^the database is locked$") as caught:
            evaluate_case(run_case("gold"), session)
        depths.append(len(traceback.extract_tb(caught.value.__traceback__)))

    assert len(attempts) == 1
    assert len(set(depths)) == 1


def test_a_predictor_that_cannot_be_opened_is_the_same_error_for_every_case(session, engine, tmp_path):
    spec = PredictorSpec(kind="file", settings={"path": "preds.jsonl"}, folder=tmp_path)
    case = run_case("gold", predictor=spec, predicted=None)

    with pytest.raises(PredictorError, match="no such file"):
        evaluate_case(case, session)
    (tmp_path / "preds.jsonl").write_text('{"id": "a", "predicted": "same"}')
    with pytest.raises(PredictorError, match="no such file"):
        evaluate_case(case, session)


def test_a_predictor_is_opened_once_and_asked_for_each_case(session, engine, monkeypatch):
    opened = []

    def count(spec):
        opened.append(spec)
        return PREDICTORS["inline"].opener(spec)

    monkeypatch.setitem(PREDICTORS._members, "counted", PredictorType(opener=count, calls=False))
    spec = PredictorSpec(kind="counted", settings={}, folder=Path())

    results = [evaluate_case(run_case("gold", predicted=text, predictor=spec), session) for text in ("same", "half")]

    assert [result.fails for result in results] == [False, True]
    assert len(opened) == 1


def test_a_session_is_closed_once_however_often_it_is_told(engine):
    session = Session()
    evaluate_case(run_case("gold"), session)

    session.close()
    session.close()

    assert engine.closed == 1


def test_a_session_that_was_closed_can_be_used_again(engine):
    session = Session()
    for _ in range(2):
        evaluate_case(run_case("gold"), session)
        session.close()

    assert engine.opened == engine.closed == 2
    assert engine.executed.count("gold") == 2


@pytest.mark.process
def test_an_engine_that_fails_to_close_does_not_keep_the_others_open(tmp_path, monkeypatch):
    engine = install_engine(monkeypatch, ANSWERS)
    monkeypatch.setattr(engine, "close", lambda: 1 / 0)
    session = Session()
    evaluate_case(run_case("gold"), session)
    database = Source(name="db", engine="sqlite", settings={"script": "s.sql"}, folder=tmp_path)
    (tmp_path / "s.sql").write_text("create table t (n)")
    evaluate_case(make_case(source=database, golds=(query("select 1"),), predicted=query("select 1")), session)
    pid = session._hosts.shared(Host("sqlite", Path())).pid

    with pytest.raises(ZeroDivisionError):
        session.close()

    assert pid is not None
    assert session._hosts.shared(Host("sqlite", Path())).pid is None


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


def derives_repairs(session):
    return evaluate_case(run_case(OVER_3, predicted=OVER_4), session)


def derives_ties(session):
    return evaluate_case(run_case(YOUNGEST, predicted="bo"), session)


def derives_constraints(session):
    with pytest.raises(UnresponsiveSourceError):
        session.execute(query("rows that break a key"), run_case("gold"), is_derived=True)


@pytest.mark.parametrize(
    "derive",
    [pytest.param(derives_repairs, marks=pytest.mark.feature("causes")), derives_ties, derives_constraints],
)
def test_a_source_that_a_derived_query_occupies_is_asked_by_later_cases(occupied, derive):
    with Session(cause_mode="full") as session:
        derive(session)
        derived = [query for query in occupied.executed if query not in occupied.answers]
        result = evaluate_case(run_case("gold"), session)

    assert derived
    assert result.scores == {"execution_accuracy": 1.0}


def test_no_case_is_blamed_where_a_derived_query_came_before_its_own(session, occupied):
    derives_constraints(session)
    with pytest.raises(SourceError, match="nor does it answer"):
        evaluate_case(run_case("late"), session)

    with pytest.raises(SourceError, match=r"^source 'music': the server no longer answers$"):
        evaluate_case(run_case("gold"), session)


def test_the_case_whose_query_occupied_the_source_is_told_also_after_derived_ones(session, occupied):
    derives_constraints(session)
    evaluate_case(run_case("gold"), session)
    with pytest.raises(SourceError, match="nor does it answer"):
        evaluate_case(run_case("late", id="culprit"), session)

    with pytest.raises(SourceError, match="has not answered since the query of case 'culprit'"):
        evaluate_case(run_case("same"), session)
