import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path

import pytest

from pytest_queryeval import PairScore, QueryEvalError, register_secret, score_pairs

ONE = {"columns": ["n"], "rows": [[1]]}
TWO = {"columns": ["n"], "rows": [[2]]}
ACCURACY = ["execution_accuracy"]
NO_PAIR = "expected a pair: a tuple or a list of gold and predicted"


@pytest.fixture
def music(tmp_path):
    with sqlite3.connect(tmp_path / "music.db") as connection:
        connection.executescript("create table singer (n); insert into singer values (1), (2), (3);")
    connection.close()
    return tmp_path / "music.db"


def scores(pairs, **settings):
    return [score.scores.get("execution_accuracy") for score in score_pairs(pairs, metrics=ACCURACY, **settings)]


def test_queries_run_on_the_source(music):
    pairs = [
        ("SELECT n FROM singer", "SELECT n FROM singer WHERE n > 0"),
        ("SELECT n FROM singer", "SELECT n FROM singer WHERE n > 1"),
        ("SELECT n FROM singer", "```sql\nSELECT n FROM singer\n```"),
        ("SELECT max(n) FROM singer", {"columns": ["n"], "rows": [[3]]}),
    ]

    assert scores(pairs, source=music) == [1.0, 0.0, 1.0, 1.0]
    assert scores(pairs, source={"sqlite": str(music)}) == [1.0, 0.0, 1.0, 1.0]


def test_a_prediction_that_fails_has_a_failure_and_the_worst_score(music):
    (score,) = score_pairs([("SELECT n FROM singer", "SELECT n FROM dancer")], music, ACCURACY)

    assert (score.scores, score.error) == ({"execution_accuracy": 0.0}, "")
    assert (score.failure.kind, score.failure.message) == ("invalid", "no such table: dancer")


@pytest.mark.parametrize(
    ("pair", "error"),
    [
        (("SELECT n FROM dancer", "SELECT 1"), r"gold query failed \(invalid\): no such table: dancer"),
        ((3, "SELECT 1"), "gold is int, neither a query nor a table with `columns` and `rows`"),
        ((ONE, None), "predicted is NoneType, neither a query nor a table"),
        ((ONE, {"columns": ["a"], "rows": [[1, 2]]}), "predicted has a row that is not as long as its columns"),
        ((ONE, {"columns": ["a"], "rows": [1]}), "predicted has `columns`, `rows` or a row that is not a list"),
        (({"columns": None, "rows": []}, ONE), "gold has `columns`, `rows` or a row that is not a list"),
        (({"columns": "ab", "rows": [[1, 2]]}, ONE), "gold has `columns` or `rows` that is not a list"),
        (({"columns": ["a"], "rows": {"b": 1}}, ONE), "gold has `columns` or `rows` that is not a list"),
        (None, NO_PAIR),
        ((), NO_PAIR),
        ("ab", NO_PAIR),
        ((ONE,), NO_PAIR),
        ((ONE, ONE, ONE), NO_PAIR),
        ({"gold": "SELECT 1", "predicted": "SELECT 1"}, NO_PAIR),
    ],
)
def test_what_cannot_be_scored_has_an_error_and_the_others_go_on(pair, error, music):
    first, second = score_pairs([pair, (ONE, ONE)], music, ACCURACY)

    assert (first.scores, first.failure) == ({}, None)
    assert re.match(error, first.error)
    assert second == PairScore({"execution_accuracy": 1.0})
    with ThreadPoolExecutor(1) as executor:
        assert list(score_pairs([pair, (ONE, ONE)], music, ACCURACY, executor=executor)) == [first, second]


def test_a_source_that_is_missing_is_an_error_of_each_pair(tmp_path):
    results = list(score_pairs([("SELECT 1", "SELECT 1"), (ONE, ONE)], tmp_path / "missing.db", ACCURACY))

    missing = f"{tmp_path / 'missing.db'}: no such file: correct the path, which is relative to {Path.cwd()}"
    assert missing in results[0].error
    assert results[1].scores == {"execution_accuracy": 1.0}


def test_pairs_are_read_as_they_are_needed():
    endless = ((ONE, ONE if number % 2 else TWO) for number in count())

    assert [score.scores["execution_accuracy"] for score in islice(score_pairs(endless, None, ACCURACY), 4)] == [
        0,
        1,
        0,
        1,
    ]


def test_an_executor_gives_the_same_scores_in_the_order_of_the_pairs(music, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.runs.workers.MAX_ITEMS", 16)
    queries = [f"SELECT n FROM singer WHERE n > {number % 4}" for number in range(300)]
    pairs = [(query, "SELECT n FROM singer WHERE n > 1") for query in queries] + [("SELECT x", "SELECT 1"), (ONE, 3)]

    with ThreadPoolExecutor(4) as executor:
        results = list(score_pairs(pairs, music, ACCURACY, executor=executor))

    assert results == list(score_pairs(pairs, music, ACCURACY))


@pytest.mark.feature("json")
def test_settings_are_those_of_suites():
    close = ({"columns": ["n"], "rows": [[1.0]]}, {"columns": ["n"], "rows": [[1.01]]})

    assert scores([close]) == [0.0]
    assert scores([close], compare={"numbers": {"rel": 0.1}}) == [1.0]
    assert [score.scores for score in score_pairs([({"a": 1}, '{"a": 1}')], kind="json", metrics=["json_equal"])] == [
        {"json_equal": 1.0}
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metrics": ["execution_acuracy"]}, "unknown metric 'execution_acuracy': did you mean 'execution_accuracy'?"),
        ({"metrics": ["json_equal"]}, "json_equal"),
        ({"kind": "sqll"}, "sqll"),
        ({"source": "music.unknown"}, "cannot tell which engine 'music.unknown' is for"),
        ({"compare": {"numbers": {"rell": 1}}}, "rell"),
        ({"timeoutt": 1}, "timeoutt"),
    ],
)
def test_settings_that_cannot_be_right_are_refused_at_once(settings, message):
    with pytest.raises(QueryEvalError, match=r"^score_pairs: ") as caught:
        score_pairs([], **settings)

    assert message in str(caught.value)


def test_secrets_are_in_no_message(music):
    register_secret("swordfish-78")

    results = list(score_pairs([("SELECT n FROM [swordfish-78]", ONE), (ONE, "SELECT n FROM [swordfish-78]")], music))

    assert "[redacted]" in results[0].error
    assert "[redacted]" in results[1].failure.message
    assert "swordfish-78" not in repr(results)
