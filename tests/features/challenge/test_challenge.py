"""Challenges: small databases that tell a right predicted query from gold."""

import json
import re
import sqlite3
from contextlib import closing
from itertools import permutations

import pytest
from challenged_pairs import answers_of, challenge_cases, challenges_of, database, without_search
from golden_files import compare_golden
from samples import answer, change, query

from pytest_queryeval import evaluate
from pytest_queryeval.cli import main
from pytest_queryeval.core.case_report import by_data
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.challenge import CHALLENGES

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER, born DATE);
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer INTEGER NOT NULL REFERENCES singer (id), year INTEGER);
INSERT INTO singer VALUES (1, 'Ann', 20, '1990-05-01'), (2, 'Bob', 40, '1970-01-31'), (3, 'Cy', 50, '1960-12-01');
INSERT INTO concert VALUES (1, 1, 2019), (2, 2, 2020), (3, 3, 2020);
"""
OLD, NOT_YOUNG = "SELECT name FROM singer WHERE age > 30", "SELECT name FROM singer WHERE age >= 30"
ORPHAN = "INSERT INTO concert VALUES (4, 9, 2021);"
ENGINES = ("sqlite", pytest.param("duckdb", marks=pytest.mark.feature("duckdb")))


@pytest.fixture
def challenge(tmp_path):
    """A function that returns the challenge of a prediction, as the report has it."""

    def challenge(gold, predicted, *, script=SCRIPT, engine="sqlite", variants=None, **changes):
        settings = {"variants": variants} if variants else {}
        return challenges_of([(gold, predicted)], database(tmp_path, script, engine, **settings), **changes)[0]

    return challenge


TYPES = "CREATE TABLE t (r INTEGER, x TEXT, d TEXT, k TEXT);"


@pytest.mark.parametrize(
    ("gold", "predicted", "verdict"),
    [
        # Layout, comments, and the case of keywords and names.
        (OLD, OLD, "same"),
        (OLD, "select NAME  from Singer -- all\n where AGE > 30;", "same"),
        # What no database refutes, and what rules prove.
        (OLD, "SELECT name FROM singer WHERE age > 30 AND 30 + age > 60", "stands"),
        (OLD, "SELECT name FROM singer WHERE abs(age) > 30 AND age > 0", "stands"),
        (OLD, "SELECT name FROM singer WHERE NOT age <= 30 AND name IS NOT NULL", "proved"),
        # A wrong answer.
        (OLD, "SELECT name FROM singer", None),
        (OLD, "SELECT nothing FROM singer", None),
    ],
)
def test_verdicts(challenge, gold, predicted, verdict):
    result = challenge(gold, predicted)

    assert result.get("verdict") == verdict
    assert (result.get("tried", 0) > 50) == (verdict == "stands")
    assert result.get("rules") == (["aliases", "negation", "not-null-test"] if verdict == "proved" else None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT r % 2 FROM t", "SELECT mod(r, 2) FROM t"),
        ("SELECT CAST(x AS TEXT) FROM t", "SELECT CAST(x AS STRING) FROM t"),
        ("SELECT date(d) FROM t", "SELECT CAST(d AS DATE) FROM t"),
        ("SELECT x FROM t WHERE k = '1'", "SELECT x FROM t WHERE +k = '1'"),
        ("SELECT x FROM t WHERE k = 'a'", "SELECT x FROM t WHERE k = 'A'"),
        ('SELECT "x" FROM t', 'SELECT "X" FROM t'),
    ],
)
def test_what_the_parser_reads_alike_is_not_one_text(challenge, first, second):
    with without_search():
        assert (
            challenge(first, f"{first.replace('SELECT', 'select ')}; -- once more", script=TYPES)["verdict"] == "same"
        )
        assert challenge(first, second, script=TYPES)["verdict"] != "same"


UNDECLARED = """
CREATE TABLE place (code TEXT, city TEXT, size INTEGER);
CREATE TABLE visit (number INTEGER, place TEXT, seats INTEGER, again INTEGER);
INSERT INTO place VALUES ('a', 'Rome', 3), ('b', 'Oslo', 5), ('c', 'Oslo', 5), ('d', NULL, 9);
INSERT INTO visit VALUES (11, 'a', 3, NULL), (12, 'b', 5, 11), (13, 'b', 5, 11), (14, 'd', 9, 13);
"""
VISITED = "FROM visit v JOIN place p ON v.place = p.code"
# Pairs that differ, but in no database that satisfies what the data does; and those that differ in one.
RULED_OUT = [
    ("SELECT name FROM singer", "SELECT DISTINCT name FROM singer"),  # no name occurs twice
    ("SELECT count(*) FROM singer", "SELECT count(age) FROM singer"),  # nobody has no age
    ("SELECT name FROM singer WHERE age > 10", "SELECT name FROM singer WHERE age > 11"),  # all are 20 or more
    ("SELECT name FROM singer WHERE id < 4", "SELECT name FROM singer WHERE id < 9"),
    ("SELECT id FROM concert WHERE singer < 4", "SELECT id FROM concert WHERE singer < 9"),
    ("SELECT max(year) FROM concert GROUP BY id", "SELECT max(year) FROM concert GROUP BY singer"),  # one concert each
    ("SELECT name FROM singer WHERE born > '1950-01-01'", "SELECT name FROM singer WHERE born >= '1950-01-01'"),
    ("SELECT name FROM singer", "SELECT name FROM singer WHERE id IN (SELECT singer FROM concert)"),
    ("SELECT max(age) FROM singer", "SELECT age FROM singer ORDER BY age DESC LIMIT 1"),  # an empty table
    (
        "SELECT max(c.year) FROM concert c, singer s",
        "SELECT c.year FROM concert c, singer s ORDER BY c.year DESC LIMIT 1",
    ),
    ("SELECT number FROM visit", f"SELECT number {VISITED}"),  # a reference that is not declared
    ("SELECT count(again) FROM visit", "SELECT count(*) FROM visit v JOIN visit w ON v.again = w.number"),
    ("SELECT city, size FROM place", "SELECT city, size FROM place GROUP BY code, city, size"),  # `code` is unique
]
REFUTED = [
    (OLD, NOT_YOUNG),
    ("SELECT name FROM singer WHERE born > '1961-01-01'", "SELECT name FROM singer WHERE born >= '1961-01-01'"),
    ("SELECT code FROM place", "SELECT p.code FROM place p WHERE p.code IN (SELECT place FROM visit) OR p.code = 'c'"),
    ("SELECT size FROM place WHERE city = 'Rome'", "SELECT size FROM place WHERE city = 'Rome' OR size = 3"),
    (f"SELECT v.number {VISITED} WHERE p.size > 4", f"SELECT v.number {VISITED} WHERE p.size >= 4"),
    # Numbers of visits are no numbers of places, but for a query that compares them.
    ("SELECT number FROM visit WHERE seats > 4", "SELECT number FROM visit WHERE seats >= 4"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("script", [SCRIPT, UNDECLARED], ids=["music", "undeclared"])
def test_only_what_satisfies_the_data_of_the_source_refutes(tmp_path, script, engine):
    pairs = [
        pair for pair in (*RULED_OUT, *REFUTED) if bool(re.search("place|visit", pair[0])) == (script is UNDECLARED)
    ]

    pairs = pairs if engine == "sqlite" else pairs[::3]

    challenges, scripts = challenges_of(pairs, database(tmp_path, script, engine)), []

    for pair, result in zip(pairs, challenges, strict=True):
        is_refuted = pair in REFUTED
        shown = result["counterexample" if is_refuted else "unlike"]
        assert result["verdict"] == ("refuted" if is_refuted else "stands"), pair
        assert shown["gold_rows"] != shown["predicted_rows"]
        assert result["unlike" if is_refuted else "counterexample"] is None
        if engine == "sqlite":
            rows = [[[*row] for row in rows] for rows in answers_of(shown["script"], *pair)]
            assert rows == [shown["gold_rows"], shown["predicted_rows"]]
            assert not is_refuted or broken_by(shown["script"], script) == []
            scripts += [f"{' / '.join(pair)}: {result['tried']} tried", *shown["script"].splitlines()]
    if engine == "sqlite":
        compare_golden(scripts, f"counterexamples/{'undeclared' if script is UNDECLARED else 'music'}.txt")


def broken_by(script, of_source):
    """What the data of a source satisfies and that of a counterexample does not, as its own queries say."""
    broken = []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(of_source)
        connection.execute("ATTACH ':memory:' AS small")
        connection.executescript(re.sub(r"(CREATE TABLE|INSERT INTO) ", r"\1 small.", script))
        columns = connection.execute(
            "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'"
        ).fetchall()
        for table, column in columns:
            figures = [
                connection.execute(
                    f"SELECT count(*) - count({column}), count({column}) - count(DISTINCT {column}), min({column}), "
                    f"max({column}) FROM {schema}.{table}"
                ).fetchone()
                for schema in ("main", "small")
            ]
            (nulls, repeated, least, greatest), (small_nulls, small_repeated, small_least, small_greatest) = figures
            broken += [(table, column, "NULL")] * (nulls < 1 <= small_nulls)
            broken += [(table, column, "repeated")] * (repeated < 1 <= small_repeated)
            if isinstance(least, int) and small_least is not None:
                broken += [(table, column, "range")] * (not least <= small_least <= small_greatest <= greatest)
        for (table, column), (referred, key) in permutations(columns, 2):
            orphans = [
                connection.execute(
                    f"SELECT count({column}) FROM {schema}.{table} "
                    f"WHERE {column} NOT IN (SELECT {key} FROM {schema}.{referred} WHERE {key} IS NOT NULL)"
                ).fetchone()[0]
                for schema in ("main", "small")
            ]
            # A table that no query reads may be empty: its rows change no answer.
            is_read = connection.execute(f"SELECT count(*) FROM small.{referred}").fetchone()[0] > 0
            is_reference = is_read and (column, key) in (("singer", "id"), ("place", "code"))
            broken += [(table, column, referred, key)] * (is_reference and orphans[0] == 0 < orphans[1])
    return broken


NUMBERS = "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 30000) "
SIZES = f"""
CREATE TABLE none (a INTEGER, b INTEGER);
CREATE TABLE big (a INTEGER, b INTEGER);
INSERT INTO big {NUMBERS} SELECT value, value % 7 FROM n;
"""
UNKNOWN = "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER); INSERT INTO t VALUES (1, NULL), (2, NULL);"
JOINED = (
    "SELECT year FROM concert WHERE id < 4",
    "SELECT c.year FROM concert c JOIN singer s ON s.id = c.singer WHERE c.id < 4",
)
RENAMED = (OLD, "SELECT s.name FROM singer s WHERE s.age > 30")
OLDER = "SELECT c.id FROM concert c JOIN singer s ON s.id = c.singer WHERE s.age"
STAFF = """
CREATE TABLE staff (id INTEGER PRIMARY KEY, boss INTEGER NOT NULL REFERENCES staff (id), pay INTEGER);
INSERT INTO staff VALUES (1, 1, 9), (2, 1, 5);
"""
CYCLE = """
CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER NOT NULL REFERENCES b (id));
CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES a (id));
PRAGMA foreign_keys = OFF; INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1);
"""


@pytest.mark.parametrize(
    ("script", "pair", "verdict"),
    [
        # A constraint that the rows break proves nothing, but counterexamples keep it.
        (SCRIPT, JOINED, "proved"),
        (SCRIPT + ORPHAN, JOINED, "stands"),
        (SCRIPT + ORPHAN, (f"{OLDER} > 30", f"{OLDER} >= 30"), "refuted"),
        # Texts with a collation are not proved; one of another table does not count.
        (SCRIPT.replace("name TEXT", "name TEXT COLLATE NOCASE"), RENAMED, "stands"),
        (SCRIPT + "CREATE TABLE genre (name TEXT COLLATE NOCASE);", RENAMED, "proved"),
        # A table without rows rules nothing out, and a large one is read in part.
        (SIZES, ("SELECT count(a) FROM none", "SELECT count(*) FROM none"), "refuted"),
        (UNKNOWN, ("SELECT count(k) FROM t", "SELECT count(DISTINCT k) FROM t"), "refuted"),
        (SIZES, ("SELECT count(a) FROM big", "SELECT count(*) FROM big"), "stands"),
        (SIZES, ("SELECT max(b) FROM big WHERE a < 99", "SELECT max(b) FROM big WHERE a < 98"), "refuted"),
        (SIZES, ("SELECT max(b) FROM big", "SELECT max(b) FROM big WHERE b < 7"), "stands"),
        (SCRIPT.replace("born DATE)", "born DATE) WITHOUT ROWID"), (OLD, NOT_YOUNG), "refuted"),
        # Rows that refer to a row of their own table, and tables that refer to each other.
        (STAFF, ("SELECT id FROM staff WHERE pay > 7", "SELECT id FROM staff WHERE pay > 8"), "refuted"),
        (CYCLE, ("SELECT id FROM a", "SELECT id FROM a WHERE b > 0"), "refuted"),
    ],
)
def test_the_tables_of_the_source_decide(challenge, script, pair, verdict):
    result = challenge(*pair, script=script)

    assert result["verdict"] == verdict
    if verdict == "refuted":
        gold, predicted = answers_of(result["counterexample"]["script"], *pair)
        assert gold != predicted


def test_an_empty_database_is_tried_last(challenge):
    result = challenge("SELECT max(id) FROM singer", "SELECT id FROM singer ORDER BY id DESC LIMIT 1")

    unlike = result["unlike"]
    assert result["verdict"] == "stands"
    assert (unlike["rows"], unlike["gold_rows"], unlike["predicted_rows"]) == (0, [[None]], [])


def test_variants_are_tried_before_other_databases_but_not_those_that_break_a_constraint(challenge, tmp_path):
    (tmp_path / "v.sql").write_text(SCRIPT.replace("20,", "30,").replace("Ann", "Zoe"), encoding="utf-8")
    (tmp_path / "broken.sql").write_text(SCRIPT + ORPHAN, encoding="utf-8")

    result = challenge(OLD, NOT_YOUNG, variants="v.sql")

    assert (result["tried"], result["counterexample"]["rows"]) == (1, 1)  # of six rows
    assert "'Zoe'" in result["counterexample"]["script"]
    joined = "SELECT c.id FROM concert c JOIN singer s ON s.id = c.singer AND abs(s.id) = s.id AND s.id > 0"
    assert challenge("SELECT id FROM concert WHERE singer > 0", joined, variants="broken.sql")["verdict"] == "stands"


def test_a_refuted_answer_that_equals_golds_does_not_depend_on_a_choice(tmp_path):
    gold = "SELECT name FROM singer GROUP BY id ORDER BY SUM(age) DESC LIMIT 1"
    case = challenge_cases([(gold, gold.replace("SUM(age) DESC", "born"))], database(tmp_path, SCRIPT, "sqlite"))[0]
    (entry,) = evaluate([case], cause="off")["cases"]

    assert (entry["scores"]["challenged_accuracy"], entry["depends_on_tie"]) == (0.0, False)
    assert "choice" not in entry["details"]


def test_an_answer_that_is_right_by_a_choice_is_so_in_any_order_of_metrics(tmp_path):
    gold = "SELECT name FROM (SELECT name FROM singer LIMIT 1)"
    pair = gold, "SELECT name FROM (SELECT name FROM singer ORDER BY id DESC LIMIT 1)"
    (case,) = challenge_cases([pair], database(tmp_path, SCRIPT, "sqlite"))
    metrics = "challenged_accuracy", "execution_accuracy"
    scores = [evaluate([change(case, metrics=order)], cause="off")["cases"][0] for order in (metrics, metrics[::-1])]

    assert [entry["scores"]["execution_accuracy"] for entry in scores] == [1.0, 1.0]
    assert scores[0]["scores"] == scores[1]["scores"]


def test_of_several_golds_each_that_accepts_has_to_be_refuted(challenge):
    golds = (query(NOT_YOUNG), query("SELECT name FROM singer WHERE NOT age <= 30"))

    def verdict(*golds):
        return challenge(OLD, OLD, golds=golds)["verdict"]

    assert verdict(*golds) == "proved"
    assert verdict(golds[0]) == "refuted"
    assert verdict(*golds, query(OLD)) == "same"
    assert verdict(query("SELECT name FROM singer WHERE id = 1"), golds[0]) == "refuted"  # the first does not accept it


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
BLOBS = """
CREATE TABLE lone (id INTEGER PRIMARY KEY, age INTEGER NOT NULL CHECK (typeof(age) = 'blob'));
INSERT INTO lone VALUES (1, x'03');
"""


@pytest.mark.parametrize(
    ("gold", "predicted", "changes", "reason"),
    [
        (OLD, OLD, {"golds": (answer(("Bob",), ("Cy",)),)}, "one of the answers is stored, without a query"),
        (OLD, NOT_YOUNG, {"script": "CREATE VIEW singer AS SELECT 'Bob' AS name, 40 AS age;"}, "the queries run in no"),
        (
            "SELECT id FROM lone WHERE age >= 2",
            "SELECT id FROM lone WHERE age > 1",
            {"script": BLOBS},
            "no small database with these tables can be built: CHECK",
        ),
        # In the source no singer is 30, so that the query stops there at once.
        (
            "SELECT name FROM singer WHERE age > 30 AND age <> 31",
            f"SELECT name FROM singer WHERE age > 30 AND (age <> 31 OR ({ENDLESS}) = 0)",
            {"timeout": 0.5},
            "a query does not end in a small database: no answer within 0.5 s",
        ),
        ("SELECT changes()", "SELECT 0", {}, "the value of CHANGES() does not depend on data"),
        ("SELECT random() > 1.5e19", "SELECT 0", {}, "the value of RANDOM() does not depend on data"),
    ],
)
def test_what_cannot_be_challenged_says_why(challenge, gold, predicted, changes, reason):
    result = challenge(gold, predicted, **changes)

    assert result["verdict"] == "unchallenged"
    assert result["reason"].startswith(reason)


def test_a_challenge_is_kept_by_queries_schema_data_and_policy(challenge, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pairs = ((OLD, NOT_YOUNG), RULED_OUT[0], (OLD, "SELECT name FROM singer WHERE 30 < age AND id = id"))

    def kept():
        return sorted((tmp_path / "cache").rglob("*.json"), key=lambda path: path.stat().st_mtime_ns)

    first = [challenge(*pair) for pair in pairs]
    for path in kept():
        path.write_text(path.read_text(encoding="utf-8").replace('"tried": ', '"tried": 1000'), encoding="utf-8")
    again = [challenge(*pair) for pair in pairs]

    assert [result["verdict"] for result in first] == ["refuted", "stands", "proved"]
    assert again == [{**result, "tried": int(f"1000{result['tried']}")} for result in first]
    for changes in (
        {"policy": Policy(duplicates="ignore")},
        {"script": SCRIPT.replace("age INTEGER", "age INTEGER NOT NULL")},
        {"script": SCRIPT.replace("20,", "21,")},  # what the data satisfies
    ):
        number = len(kept())
        challenge(OLD, NOT_YOUNG, **changes)
        assert len(kept()) == number + 1


@pytest.mark.parametrize("damage", ["{", "no counterexample", "no unlike"])
def test_a_kept_challenge_that_is_damaged_or_of_an_earlier_version_is_made_again(
    challenge, monkeypatch, tmp_path, damage
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = challenge(OLD, NOT_YOUNG)
    (path,) = (tmp_path / "cache").rglob("*.json")
    kept = {**json.loads(path.read_text(encoding="utf-8")), "tried": 1000}
    lost = {"no counterexample": "counterexample", "no unlike": "unlike"}.get(damage)
    path.write_text(json.dumps({name: value for name, value in kept.items() if name != lost}) if lost else damage)

    assert lost is None or lost in kept
    assert challenge(OLD, NOT_YOUNG) == first


def test_what_cannot_be_kept_is_challenged_and_nothing_is_kept_of_a_search_that_fails(challenge, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with without_search():
        assert challenge(OLD, NOT_YOUNG)["verdict"] == "unchallenged"
    assert not list((tmp_path / "cache").rglob("*.json"))
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")

    assert challenge(OLD, NOT_YOUNG)["verdict"] == "refuted"


HEAD = "@prefix : <http://example.org/p#> ."
IS_OLD = "SELECT ?x { ?x :age ?age FILTER (?age > 30) }"


@pytest.mark.feature("strength")
@pytest.mark.parametrize(
    ("gold", "predicted", "verdict"),
    [
        (IS_OLD, "# old\nSELECT  ?x { ?x :age ?age FILTER (?age > 30) }", "same"),
        (IS_OLD, IS_OLD.replace("> 30", ">= 30"), "refuted"),
        (IS_OLD, IS_OLD.replace("?age > 30", "30 < ?age"), "stands"),
        # Texts, comments and bases count.
        ('SELECT ?x { ?x :name "a b" }', 'SELECT ?x { ?x :name "a  b" }', "refuted"),
        ("ASK {} # c\nLIMIT 1", "ASK {} # c LIMIT 1", "unchallenged"),
        (
            "BASE <http://a.example/> SELECT ?x { ?x <name> ?y }",
            "BASE <http://b.example/> SELECT ?x { ?x <name> ?y }",
            "refuted",
        ),
        (
            "BASE <http://a.example/> PREFIX : <x#> ASK { ?x :a ?y }",
            "PREFIX : <http://a.example/x#> ASK { ?x :a ?y }",
            "stands",
        ),
    ],
)
def test_sparql_is_challenged_on_small_graphs(tmp_path, gold, predicted, verdict):
    (tmp_path / "p.ttl").write_text(f"{HEAD} :ann :age 20 . :bo :age 40 . :cy :age 50 .", encoding="utf-8")
    settings = {"files": ["p.ttl"], "prefixes": {"": "http://example.org/p#"}}
    source = Source(name="p", engine="rdf", settings=settings, folder=tmp_path)

    (result,) = challenges_of([(gold, predicted)], source, kind="sparql", dialect="")

    assert result["verdict"] == verdict


@pytest.mark.feature("duckdb")
def test_counterexamples_keep_the_unique_indexes_of_duckdb(challenge):
    pair = "SELECT name FROM singer", "SELECT DISTINCT name FROM singer"
    unique = SCRIPT + "CREATE UNIQUE INDEX i ON singer (name);"

    assert challenge(*pair, engine="duckdb")["unlike"] is not None
    assert challenge(*pair, engine="duckdb", script=unique)["verdict"] == "proved"


@pytest.fixture
def report(tmp_path):
    """A report with a challenge of each verdict, and of cases that have none."""
    pairs = {
        "refuted": (OLD, NOT_YOUNG),
        "same": (OLD, OLD),
        "wrong": (OLD, "SELECT name FROM singer"),
        "stored": (OLD, NOT_YOUNG),
        "unasked": (OLD, NOT_YOUNG),
        "ruled out": RULED_OUT[0],
    }
    changes = {"stored": {"golds": (answer(("Bob",), ("Cy",)),)}, "unasked": {"metrics": ("execution_accuracy",)}}
    cases = challenge_cases([*pairs.values()], database(tmp_path, SCRIPT))
    return evaluate([change(case, id=id_, **changes.get(id_, {})) for id_, case in zip(pairs, cases, strict=True)])


def test_reports_have_the_challenge_and_count_the_verdicts(report):
    challenges = {case["id"]: case.get("challenge") for case in report["cases"]}
    assert challenges["wrong"] is None
    assert challenges["unasked"] is None
    assert challenges["same"] == {"verdict": "same", "tried": 0, "counterexample": None, "unlike": None}
    counterexample = challenges["refuted"]["counterexample"]
    assert set(counterexample) == {"script", "rows", "gold_rows", "predicted_rows"}
    assert (counterexample["rows"], counterexample["gold_rows"]) == (1, [])
    assert report["metrics"]["challenged_accuracy"]["mean"] == 0.6
    sentence, ruled_out, table, reason = CHALLENGES.blocks(report)
    assert sentence == (
        "challenged_accuracy 0.600 (5 cases): of 4 passes 1 is the gold query, 1 stands, 1 refuted, 1 unchallenged",
    )
    assert ruled_out[0].startswith(
        "not in the metric: 1 of those that stand differs from the gold query only on databases that"
    )
    assert [row[1:3] for row in table.rows] == [("refuted", "1"), ("stands", "2")]
    assert reason[0] == "1 unchallenged: "


def test_a_report_of_an_earlier_version_refutes_by_what_satisfies_the_data_only(report, tmp_path, capsys):
    (refuted,) = (case for case in report["cases"] if case["id"] == "refuted")
    earlier = {
        **refuted,
        "id": "earlier",
        "nodeid": "a::earlier",
        "challenge": {**refuted["challenge"], "unlike": True},
    }
    (tmp_path / "report.json").write_text(json.dumps({**report, "cases": [refuted, earlier]}), encoding="utf-8")

    assert [main(["explain", str(tmp_path / "report.json"), id_]) for id_ in ("refuted", "earlier")] == [0, 0]
    assert [by_data(case["challenge"]).verdict for case in (refuted, earlier)] == ["refuted", "stands"]
    text = capsys.readouterr().out
    assert "refuted: the answers differ on a database of 1 row\n" in text
    assert "stands: the answers differ on a database of 1 row, but it violates what your data satisfies" in text
    assert refuted["challenge"]["counterexample"]["script"].splitlines()[-1] in text
