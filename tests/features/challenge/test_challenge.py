"""Challenges: small databases that tell a right predicted query from gold."""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import permutations

import pytest
from samples import answer, make_case, query

from pytest_queryeval.core.answer_json import decode_challenge, encode_challenge
from pytest_queryeval.core.case_report import by_data
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source, Threshold
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation import evaluate_case
from pytest_queryeval.evaluation.extensions import COUNTEREXAMPLE_SEARCHES, SearchResult
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.reports.added_sections import SECTIONS
from pytest_queryeval.reports.html.case_list import details
from pytest_queryeval.reports.story import StoryChallenge, case_story, challenge_text
from pytest_queryeval.results.case_json import result_json
from pytest_queryeval.runs.evaluate import evaluate

pytestmark = pytest.mark.process

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER, born DATE);
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer INTEGER NOT NULL REFERENCES singer (id), year INTEGER);
INSERT INTO singer VALUES (1, 'Ann', 20, '1990-05-01'), (2, 'Bob', 40, '1970-01-31'), (3, 'Cy', 50, '1960-12-01');
INSERT INTO concert VALUES (1, 1, 2019), (2, 2, 2020), (3, 3, 2020);
"""
OLD, NOT_YOUNG = "SELECT name FROM singer WHERE age > 30", "SELECT name FROM singer WHERE age >= 30"
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
METRICS = {"metrics": ("execution_accuracy", "challenged_accuracy"), "thresholds": {}}


@pytest.fixture
def make(tmp_path):
    """A function that makes a case on a database of singers."""
    (tmp_path / "music.sql").write_text(SCRIPT, encoding="utf-8")

    def make(gold, predicted, *, engine="sqlite", golds=None, variants=None, script="music.sql", **changes):
        settings = {"script": script, **({"variants": variants} if variants else {})}
        source = Source(name="music.sql", engine=engine, settings=settings, folder=tmp_path)
        contents = {"golds": golds or (query(gold),), "predicted": query(predicted)}
        return make_case(source=source, **contents, dialect=engine, **{**METRICS, "max_rows": 1_000, **changes})

    return make


@pytest.fixture
def challenge(make):
    """A function that returns what came of challenging a prediction, and its challenged accuracy."""

    def challenge(*pair, **changes):
        with Session() as session:
            record = evaluate_case(make(*pair, **changes), session).shown
        return record.challenge, record.scores["challenged_accuracy"]

    return challenge


def answers_of(script, *queries):
    """The answers in a database that sqlite3 makes with the script alone, with foreign keys enforced."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(script)
        return [connection.execute(text).fetchall() for text in queries]


@pytest.mark.parametrize("predicted", [OLD, "select NAME  from Singer -- all\n where AGE > 30"])
def test_one_query_in_two_layouts_is_the_same(challenge, predicted):
    result, score = challenge(OLD, predicted)

    assert (result.verdict, result.tried, score) == ("same", 0, 1)


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
def test_what_the_parser_reads_alike_is_not_one_text(first, second):
    from pytest_queryeval.features.challenge.challenger import _have_same_text

    case = make_case(dialect="sqlite")
    assert _have_same_text(case, first, f"{first.replace('SELECT', 'select ')}; -- once more")
    assert not _have_same_text(case, first, second)


def test_a_refuted_prediction_scores_0_and_its_counterexample_differs_by_itself(challenge):
    result, score = challenge(OLD, NOT_YOUNG)

    assert (result.verdict, score) == ("refuted", 0)
    assert answers_of(result.refutation.script, OLD, NOT_YOUNG) == [
        result.refutation.gold.rows,
        result.refutation.predicted.rows,
    ]
    assert (result.refutation.size, result.ruled_out) == (1, None)
    assert result.tried >= 1


@pytest.mark.parametrize(
    "predicted",
    [
        "SELECT name FROM singer WHERE age > 30 AND 30 + age > 60",
        "SELECT name FROM singer WHERE abs(age) > 30 AND age > 0",
    ],
)
def test_what_no_database_refutes_keeps_its_score(challenge, predicted):
    result, score = challenge(OLD, predicted)

    assert (result.verdict, result.refutation, score) == ("stands", None, 1)
    assert result.tried > 50


def test_what_rules_prove_says_which(challenge):
    result, score = challenge(OLD, "SELECT name FROM singer WHERE NOT age <= 30 AND name IS NOT NULL")

    assert (result.verdict, result.tried, score) == ("proved", 0, 1)
    assert result.rules == ("aliases", "negation", "not-null-test")


def test_a_constraint_that_the_rows_break_proves_nothing(challenge, tmp_path):
    orphan = "INSERT INTO concert VALUES (4, 9, 2021);"
    (tmp_path / "broken.sql").write_text(SCRIPT + orphan, encoding="utf-8")
    pair = (
        "SELECT year FROM concert WHERE id < 4",
        "SELECT c.year FROM concert c JOIN singer s ON s.id = c.singer WHERE c.id < 4",
    )

    assert challenge(*pair)[0].verdict == "proved"
    assert challenge(*pair, script="broken.sql")[0].verdict == "stands"


def test_texts_with_a_collation_are_not_proved(challenge, tmp_path):
    (tmp_path / "collated.sql").write_text(SCRIPT.replace("name TEXT", "name TEXT COLLATE NOCASE"), encoding="utf-8")

    assert challenge(OLD, "SELECT s.name FROM singer s WHERE s.age > 30", script="collated.sql")[0].verdict == "stands"


def test_a_collation_of_another_table_does_not_count(challenge, tmp_path):
    collated = "CREATE TABLE genre (name TEXT COLLATE NOCASE);"
    (tmp_path / "collated.sql").write_text(SCRIPT + collated, encoding="utf-8")

    assert challenge(OLD, "SELECT s.name FROM singer s WHERE s.age > 30", script="collated.sql")[0].verdict == "proved"


def test_an_answer_in_an_empty_database_alone_is_no_challenge(challenge, tmp_path):
    script = """
    CREATE TABLE lone (id INTEGER PRIMARY KEY, age INTEGER NOT NULL CHECK (typeof(age) = 'blob'));
    INSERT INTO lone VALUES (1, x'03');
    """
    (tmp_path / "lone.sql").write_text(script, encoding="utf-8")
    pair = "SELECT id FROM lone WHERE age >= 2", "SELECT id FROM lone WHERE age > 1"
    result, _ = challenge(*pair, script="lone.sql")

    assert result.verdict == "unchallenged"
    assert result.reason.startswith("no small database with these tables can be built: ")


def test_a_wrong_answer_is_not_challenged(challenge):
    assert challenge(OLD, "SELECT name FROM singer") == (None, 0)
    assert challenge(OLD, "SELECT nothing FROM singer") == (None, 0)


UNDECLARED = """
CREATE TABLE place (code TEXT, city TEXT, size INTEGER);
CREATE TABLE visit (number INTEGER, place TEXT, seats INTEGER, again INTEGER);
INSERT INTO place VALUES ('a', 'Rome', 3), ('b', 'Oslo', 5), ('c', 'Oslo', 5), ('d', NULL, 9);
INSERT INTO visit VALUES (11, 'a', 3, NULL), (12, 'b', 5, 11), (13, 'b', 5, 11), (14, 'd', 9, 13);
"""
VISITED = "FROM visit v JOIN place p ON v.place = p.code"
# Pairs that differ, and whether they do in a database that satisfies what the data does.
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


@pytest.mark.parametrize(
    ("gold", "predicted", "is_refuted"),
    [*((*pair, False) for pair in RULED_OUT), *((*pair, True) for pair in REFUTED)],
)
@pytest.mark.parametrize("engine", ["sqlite", pytest.param("duckdb", marks=pytest.mark.feature("duckdb"))])
def test_only_what_satisfies_the_data_of_the_source_refutes(challenge, tmp_path, gold, predicted, is_refuted, engine):
    (tmp_path / "undeclared.sql").write_text(UNDECLARED, encoding="utf-8")
    script = "undeclared.sql" if "place" in gold + predicted or "visit" in gold + predicted else "music.sql"

    result, score = challenge(gold, predicted, script=script, engine=engine)

    assert (result.verdict, score) == (("refuted", 0) if is_refuted else ("stands", 1))
    shown = result.refutation if is_refuted else result.ruled_out
    assert shown.gold != shown.predicted
    assert (result.refutation is None, result.ruled_out is None) == (not is_refuted, is_refuted)
    if is_refuted and engine == "sqlite":
        assert broken_by(shown.script, SCRIPT if script == "music.sql" else UNDECLARED) == []


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


def test_a_table_without_rows_rules_nothing_out_and_a_large_one_is_read_in_part(challenge, tmp_path):
    numbers = "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 30000) "
    script = f"""
    CREATE TABLE none (a INTEGER, b INTEGER);
    CREATE TABLE big (a INTEGER, b INTEGER);
    INSERT INTO big {numbers} SELECT value, value % 7 FROM n;
    """
    (tmp_path / "sizes.sql").write_text(script, encoding="utf-8")

    def verdict(*pair):
        return challenge(*pair, script="sizes.sql")[0].verdict

    assert verdict("SELECT count(a) FROM none", "SELECT count(*) FROM none") == "refuted"
    assert verdict("SELECT count(a) FROM big", "SELECT count(*) FROM big") == "stands"
    assert verdict("SELECT max(b) FROM big WHERE a < 99", "SELECT max(b) FROM big WHERE a < 98") == "refuted"
    assert verdict("SELECT max(b) FROM big", "SELECT max(b) FROM big WHERE b < 7") == "stands"


def test_an_empty_database_is_tried_last(challenge):
    result, score = challenge("SELECT max(id) FROM singer", "SELECT id FROM singer ORDER BY id DESC LIMIT 1")

    assert (result.verdict, result.ruled_out.size, score) == ("stands", 0, 1)
    assert (result.ruled_out.gold.rows, result.ruled_out.predicted.rows) == ([(None,)], [])


def test_variants_are_tried_before_other_databases(challenge, tmp_path):
    (tmp_path / "v.sql").write_text(SCRIPT.replace("20,", "30,").replace("Ann", "Zoe"), encoding="utf-8")

    result, _ = challenge(OLD, NOT_YOUNG, variants="v.sql")

    assert result.tried == 1
    assert "'Zoe'" in result.refutation.script
    assert result.refutation.size == 1  # of six rows


def test_a_variant_that_breaks_a_constraint_is_no_counterexample(challenge, tmp_path):
    orphan = "INSERT INTO concert VALUES (4, 9, 2021);"
    (tmp_path / "v.sql").write_text(SCRIPT + orphan, encoding="utf-8")

    pair = "SELECT id FROM concert", "SELECT c.id FROM concert c JOIN singer s ON s.id = c.singer"
    assert challenge(*pair, variants="v.sql")[0].verdict == "proved"
    pair = pair[0], f"{pair[1]} AND abs(s.id) = s.id AND s.id > 0"
    assert challenge("SELECT id FROM concert WHERE singer > 0", pair[1], variants="v.sql")[0].verdict == "stands"


def test_a_foreign_key_that_the_source_breaks_is_kept(challenge, tmp_path):
    orphan = "INSERT INTO concert VALUES (4, 9, 2021);"
    (tmp_path / "broken.sql").write_text(SCRIPT + orphan, encoding="utf-8")

    older = "SELECT c.id FROM concert c JOIN singer s ON s.id = c.singer WHERE s.age"
    pair = f"{older} > 30", f"{older} >= 30"
    result, _ = challenge(*pair, script="broken.sql")

    assert result.verdict == "refuted"
    answers_of(result.refutation.script, *pair)


def test_of_several_golds_each_that_accepts_has_to_be_refuted(challenge):
    golds = (query(NOT_YOUNG), query("SELECT name FROM singer WHERE NOT age <= 30"))

    by_both, score = challenge(None, OLD, golds=golds)
    by_one, _ = challenge(None, OLD, golds=golds[:1])

    assert (by_both.verdict, score) == ("proved", 1)
    assert by_one.verdict == "refuted"
    assert challenge(None, OLD, golds=(*golds, query(OLD)))[0].verdict == "same"


def test_a_gold_that_does_not_accept_the_prediction_does_not_count(challenge):
    golds = (query("SELECT name FROM singer WHERE id = 1"), query(NOT_YOUNG))

    assert challenge(None, OLD, golds=golds)[0].verdict == "refuted"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"golds": (answer(("Bob",), ("Cy",)),)}, "one of the answers is stored, without a query"),
        ({"script": "view.sql"}, None),
    ],
)
def test_what_cannot_be_challenged_says_why(challenge, tmp_path, changes, reason):
    (tmp_path / "view.sql").write_text("CREATE VIEW singer AS SELECT 'Bob' AS name, 40 AS age;", encoding="utf-8")

    result, score = challenge(OLD, NOT_YOUNG, **changes)

    assert (result.verdict, score) == ("unchallenged", 1)
    assert reason in (result.reason, None)
    assert result.reason


def test_a_query_that_does_not_end_in_a_small_database_is_unchallenged(challenge):
    # In the source no singer is 30, so that the query stops there at once.
    endless = f"SELECT name FROM singer WHERE age > 30 AND (age <> 31 OR ({ENDLESS}) = 0)"

    result, score = challenge("SELECT name FROM singer WHERE age > 30 AND age <> 31", endless, timeout=0.5)

    assert (result.verdict, score) == ("unchallenged", 1)
    assert result.reason.startswith("a query does not end in a small database")


def test_queries_are_compared_by_the_policy_of_the_case(challenge):
    pair = "SELECT name FROM singer", "SELECT DISTINCT name FROM singer"

    assert challenge(*pair)[0].ruled_out is not None
    assert challenge(*pair, policy=Policy(duplicates="ignore"))[0].verdict == "proved"


def test_a_challenge_is_kept_by_queries_schema_and_policy(challenge, monkeypatch, tmp_path):
    searched = []
    search = COUNTEREXAMPLE_SEARCHES["small_databases"]

    def find(case, gold, predicted, session):
        searched.append(predicted)
        return search.find(case, gold, predicted, session)

    monkeypatch.setitem(COUNTEREXAMPLE_SEARCHES._members, "small_databases", search._replace(find=find))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, again = challenge(OLD, NOT_YOUNG), challenge(OLD, NOT_YOUNG)
    (cached,) = (tmp_path / "cache").rglob("*.json")

    assert [encode_challenge(result) for result, _ in (first, again)] == [encode_challenge(first[0])] * 2
    assert len(searched) == 1
    challenge(OLD, NOT_YOUNG, policy=Policy(duplicates="ignore"))
    (tmp_path / "more.sql").write_text(SCRIPT.replace("age INTEGER", "age INTEGER NOT NULL"), encoding="utf-8")
    challenge(OLD, NOT_YOUNG, script="more.sql")
    assert len(searched) == 3
    (tmp_path / "older.sql").write_text(SCRIPT.replace("20,", "21,"), encoding="utf-8")  # what the data satisfies
    challenge(OLD, NOT_YOUNG, script="older.sql")
    assert len(searched) == 4
    cached.write_text("{", encoding="utf-8")
    assert challenge(OLD, NOT_YOUNG)[0].verdict == "refuted"
    assert len(searched) == 5


def test_without_a_cache_folder_nothing_is_kept(challenge, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")

    assert challenge(OLD, NOT_YOUNG)[0].verdict == "refuted"


def test_challenges_are_written_without_a_loss(challenge):
    same = "SELECT name FROM singer WHERE 30 < age AND id = id"
    for pair in ((OLD, NOT_YOUNG), RULED_OUT[0], (OLD, OLD), (OLD, same)):
        result, _ = challenge(*pair)
        copy = decode_challenge(encode_challenge(result))

        assert encode_challenge(copy) == encode_challenge(result)
        assert replace(copy, refutation=None, ruled_out=None) == replace(result, refutation=None, ruled_out=None)
    entry = encode_challenge(challenge(OLD, NOT_YOUNG)[0])
    del entry["ruled_out"]
    with pytest.raises(ValueError, match="an earlier version refuted what the data may rule out"):
        decode_challenge(entry)
    with pytest.raises(ValueError, match="without its counterexample"):
        decode_challenge({**encode_challenge(result), "verdict": "refuted"})


@pytest.mark.feature("strength")
def test_sparql_is_challenged_on_small_graphs(tmp_path):
    head = "@prefix : <http://example.org/p#> ."
    (tmp_path / "p.ttl").write_text(f"{head} :ann :age 20 . :bo :age 40 . :cy :age 50 .", encoding="utf-8")
    source = Source(
        name="p",
        engine="rdf",
        settings={"files": ["p.ttl"], "prefixes": {"": "http://example.org/p#"}},
        folder=tmp_path,
    )
    gold = "SELECT ?x { ?x :age ?age FILTER (?age > 30) }"
    verdicts = {}
    with Session() as session:
        for predicted in (
            "# old\nSELECT  ?x { ?x :age ?age FILTER (?age > 30) }",
            "SELECT ?x { ?x :age ?age FILTER (?age >= 30) }",
            "SELECT ?x { ?x :age ?age FILTER (30 < ?age) }",
        ):
            golds = (query(gold),)
            case = make_case(
                source=source, kind="sparql", golds=golds, predicted=query(predicted), dialect="", **METRICS
            )
            verdicts[predicted] = evaluate_case(case, session).shown.challenge.verdict

    assert list(verdicts.values()) == ["same", "refuted", "stands"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('SELECT ?x { ?x :name "a b" }', 'SELECT ?x { ?x :name "a  b" }'),
        ("ASK {} # c\nLIMIT 1", "ASK {} # c LIMIT 1"),
        ("BASE <http://a.example/> ASK { ?x <name> ?y }", "BASE <http://b.example/> ASK { ?x <name> ?y }"),
        ("BASE <http://a.example/> PREFIX : <x#> ASK { ?x :a ?y }", "PREFIX : <x#> ASK { ?x :a ?y }"),
    ],
)
def test_texts_comments_and_bases_of_sparql_count(first, second):
    from pytest_queryeval.features.challenge.challenger import _have_same_text

    case = make_case(kind="sparql")
    assert _have_same_text(case, first, first)
    assert not _have_same_text(case, first, second)


@pytest.mark.feature("duckdb")
def test_duckdb_is_challenged(challenge):
    duckdb = pytest.importorskip("duckdb")

    result, score = challenge(OLD, NOT_YOUNG, engine="duckdb")

    assert (result.verdict, score) == ("refuted", 0)
    with duckdb.connect() as connection:
        connection.execute(result.refutation.script)
        answers = [connection.execute(text).fetchall() for text in (OLD, NOT_YOUNG)]
    assert answers == [result.refutation.gold.rows, result.refutation.predicted.rows]


@pytest.mark.feature("duckdb")
def test_counterexamples_keep_the_unique_indexes_of_duckdb(challenge, tmp_path):
    pytest.importorskip("duckdb")
    (tmp_path / "names.sql").write_text(SCRIPT + "CREATE UNIQUE INDEX i ON singer (name);", encoding="utf-8")
    pair = "SELECT name FROM singer", "SELECT DISTINCT name FROM singer"

    assert challenge(*pair, engine="duckdb")[0].ruled_out is not None
    assert challenge(*pair, engine="duckdb", script="names.sql")[0].verdict == "proved"


def test_tables_without_rowid_are_challenged(challenge, tmp_path):
    (tmp_path / "short.sql").write_text(SCRIPT.replace("born DATE)", "born DATE) WITHOUT ROWID"), encoding="utf-8")

    assert challenge(OLD, NOT_YOUNG, script="short.sql")[0].verdict == "refuted"


def test_rows_that_refer_to_a_row_of_their_own_table_are_made_without_null(challenge, tmp_path):
    script = """
        CREATE TABLE staff (id INTEGER PRIMARY KEY, boss INTEGER NOT NULL REFERENCES staff (id), pay INTEGER);
        INSERT INTO staff VALUES (1, 1, 9), (2, 1, 5);
    """
    (tmp_path / "staff.sql").write_text(script, encoding="utf-8")

    result, _ = challenge(
        "SELECT id FROM staff WHERE pay > 7", "SELECT id FROM staff WHERE pay > 8", script="staff.sql"
    )

    assert result.verdict == "refuted"
    assert answers_of(result.refutation.script, "PRAGMA foreign_key_check") == [[]]


def test_tables_that_refer_to_each_other_without_null_are_challenged(challenge, tmp_path):
    script = """
        CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER NOT NULL REFERENCES b (id));
        CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES a (id));
        PRAGMA foreign_keys = OFF; INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1);
    """
    (tmp_path / "cycle.sql").write_text(script, encoding="utf-8")

    result, _ = challenge("SELECT id FROM a", "SELECT id FROM a WHERE b > 0", script="cycle.sql")

    assert result.verdict == "refuted"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(result.refutation.script)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_reports_have_the_challenge_and_count_the_verdicts(make):
    cases = [
        make(OLD, NOT_YOUNG, id="refuted"),
        make(OLD, OLD, id="same"),
        make(OLD, "SELECT name FROM singer", id="wrong"),
        make(OLD, NOT_YOUNG, id="stored", golds=(answer(("Bob",), ("Cy",)),)),
        make(OLD, NOT_YOUNG, id="unasked", metrics=("execution_accuracy",)),
        make(*RULED_OUT[0], id="ruled out"),
    ]

    report = evaluate(cases)

    challenges = {case["id"]: case.get("challenge") for case in report["cases"]}
    assert challenges["wrong"] is None
    assert challenges["unasked"] is None
    assert challenges["same"] == {"verdict": "same", "tried": 0, "counterexample": None, "unlike": None}
    assert challenges["stored"]["reason"] == "one of the answers is stored, without a query"
    counterexample = challenges["refuted"]["counterexample"]
    assert set(counterexample) == {"script", "rows", "gold_rows", "predicted_rows"}
    assert (counterexample["rows"], counterexample["gold_rows"]) == (1, [])
    assert challenges["refuted"]["unlike"] is None
    assert (challenges["ruled out"]["verdict"], challenges["ruled out"]["counterexample"]) == ("stands", None)
    assert set(challenges["ruled out"]["unlike"]) == set(counterexample)
    assert report["metrics"]["challenged_accuracy"]["mean"] == 0.6
    sentence, ruled_out, table, reason = SECTIONS["challenges"].blocks(report)
    assert sentence == (
        "challenged_accuracy 0.600: of 4 passes 1 is gold's query, 1 stands, 1 refuted, 1 unchallenged",
    )
    assert ruled_out[0].startswith("not in the metric: 1 of those that stand differs from gold only on databases that")
    assert [row[1:3] for row in table.rows] == [("refuted", "1"), ("stands", "2")]
    assert reason[0] == "1 unchallenged: "


def test_a_report_of_an_earlier_version_refutes_by_what_satisfies_the_data_only(make):
    report = evaluate([make(OLD, NOT_YOUNG, id="a"), make(OLD, NOT_YOUNG, id="b")])
    for case, unlike in zip(report["cases"], (False, True), strict=True):
        case["challenge"]["unlike"] = unlike

    assert [by_data(case["challenge"]).verdict for case in report["cases"]] == ["refuted", "stands"]
    assert challenge_text(report["cases"][1]["challenge"]) == (
        "stands: the answers differ on a database of 1 row, but it violates what your data satisfies"
    )


def test_a_case_tells_its_challenge_on_every_surface(make):
    with Session() as session:
        result = evaluate_case(
            make(OLD, NOT_YOUNG, thresholds={"challenged_accuracy": Threshold(minimum=1.0)}), session
        )
    case = result_json(result, nodeid="a::a", path="a", outcome="failed")

    (part,) = (part for part in case_story(case) if isinstance(part, StoryChallenge))
    assert part.summary == "refuted: the answers differ on a database of 1 row"
    assert part.predicted_rows == case["challenge"]["counterexample"]["predicted_rows"]
    page = details(case)["challenge"]
    assert page["text"] == part.summary
    assert page["script"] == part.script == case["challenge"]["counterexample"]["script"]
    assert case["violations"][0]["metric"] == "challenged_accuracy"


def refuse(*_):
    raise SourceError("not today")


@pytest.mark.parametrize(
    ("find", "reason"),
    [(refuse, "not today"), (lambda *_: SearchResult(None, None, tried=0), "the queries run in no small database")],
)
def test_another_search_that_tries_no_database_is_passed_over(challenge, monkeypatch, tmp_path, find, reason):
    search = COUNTEREXAMPLE_SEARCHES["small_databases"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(COUNTEREXAMPLE_SEARCHES._members, "small_databases", search._replace(find=find))

    result, _ = challenge(OLD, NOT_YOUNG)

    assert (result.verdict, result.reason) == ("unchallenged", reason)
    assert not list((tmp_path / "cache").rglob("*.json"))
