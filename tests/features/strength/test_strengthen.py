"""`queryeval strengthen`: variants of databases and graphs that keep their constraints and kill survivors."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyoxigraph
import pytest
import yaml
from golden_files import compare_golden
from suites import write

from pytest_queryeval.cli import main

pytestmark = pytest.mark.usefixtures("working_folder")

MAX_ROWS, MAX_TRIPLES = 12, 50
DDL = """
CREATE TABLE concert (
  id INTEGER PRIMARY KEY, singer INTEGER NOT NULL REFERENCES singer (id), year TEXT, UNIQUE (singer, year)
);
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER, boss INTEGER REFERENCES singer);
"""
DATA = """
INSERT INTO singer VALUES (1, 'Ann', 20, NULL), (2, 'Bob', 40, 1), (3, 'O''Neil', 50, 1);
INSERT INTO concert VALUES (1, 1, '2019'), (2, 2, '2020'), (3, 2, '2021');
"""
GOLDS = {
    "boundary": "SELECT name FROM singer WHERE age > 30",
    "distinct": "SELECT count(DISTINCT year) FROM concert",
    "condition": "SELECT name FROM singer WHERE age > 45 AND name = 'O''Neil'",
    "join": "SELECT s.name FROM singer s JOIN concert c ON c.singer = s.id WHERE c.year > '2020'",
    "group": "SELECT singer FROM concert GROUP BY singer HAVING count(*) > 1",
    "limit": "SELECT name FROM singer ORDER BY age DESC LIMIT 1",
}
GRAPH = yaml.safe_load((Path(__file__).parent / "counterexamples.yaml").read_text(encoding="utf-8"))["sparql"]["graph"]
PREFIXES = dict(re.findall(r"@prefix (\w*): <(\S+)>", GRAPH))
SPARQL_GOLDS = {
    "older": "SELECT ?x { ?x :age ?y FILTER (?y > 30) }",
    "employers": "SELECT ?x { ?x a :Firm ; :employs ?y . ?y a :Person }",
    "nobody": "SELECT ?x { ?x :age ?y FILTER (?y > 90) }",
    "mails": "SELECT ?x ?m { ?x a :Person OPTIONAL { ?x :mail ?m } }",
}


@pytest.fixture
def strengthen(capsys):
    """A function that runs the command on golds, and returns its exit status and its JSON."""

    def run(golds, script=DDL + DATA, *options, engine="sqlite", output="variants", **changes):
        suite(golds, script, engine=engine, **changes)
        capsys.readouterr()
        status = main(["strengthen", ".", "-o", output, "--json", *options])
        return status, json.loads(capsys.readouterr().out)

    return run


def suite(golds, script=DDL + DATA, *, engine="sqlite", variants=None, **changes):
    """Write a suite of golds by the ids of their cases, and the script of its source."""
    if engine == "rdf":
        source, kind = {"rdf": {"files": ["music.ttl"], "prefixes": PREFIXES}}, "sparql"
    else:
        source, kind = {engine: {"script": "music.sql"}}, "sql"
    (settings,) = source.values()
    settings |= {"variants": variants} if variants else {}
    write(script, "music.ttl" if engine == "rdf" else "music.sql")
    cases = [{"id": id_, "question": "?", "gold": gold} for id_, gold in golds.items()]
    write(json.dumps({"kind": kind, "source": source, **changes, "cases": cases}))


def survivors(capsys):
    capsys.readouterr()
    assert main(["strength", ".", "--json"]) == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    return {(case["id"], mutant["change"]) for case in cases for mutant in case["survivors"]}


def killed(report):
    files = [file for source in report["sources"] for file in source["files"]]
    return {(kill["case"], kill["change"]) for file in files for kill in file["kills"]}


def in_variant(file, *queries):
    """The answers in a database that sqlite3 makes with a script alone, with foreign keys enforced."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(Path(file).read_text(encoding="utf-8"))
        return [connection.execute(query).fetchall() for query in queries]


def test_variants_kill_what_survives_in_the_source_when_their_script_is_run_alone(strengthen, capsys):
    suite(GOLDS)
    before = survivors(capsys)

    status, report = strengthen(GOLDS)

    (source,) = report["sources"]
    left = before - killed(report)
    assert (status, source["variants"]) == (0, "variants/music-*.sql")
    assert (source["survivors"], source["killed"]) == (len(before), len(killed(report)))
    assert before >= {("boundary", "age > 30 → age >= 30"), ("boundary", "age > 30 → age > 29")}
    assert len(before) > 15
    assert {case for case, _ in left} <= {"limit"}
    for file in source["files"]:
        sizes = in_variant(file["file"], "SELECT count(*) FROM singer", "SELECT count(*) FROM concert")
        assert max(sizes) <= [(MAX_ROWS,)]
        assert sum(size for ((size,),) in sizes) == file["rows"]
        for kill in file["kills"]:
            gold, mutant = in_variant(file["file"], GOLDS[kill["case"]], kill["query"])
            assert sorted(map(str, gold)) != sorted(map(str, mutant)) or "ORDER" in GOLDS[kill["case"]]
    compare_golden(texts_of("variants"), "variants/music.sql.txt")


def texts_of(folder):
    """The lines of all files of a folder."""
    for file in sorted(Path(folder).iterdir()):
        yield from (file.name, *file.read_text(encoding="utf-8").splitlines())


def test_another_seed_builds_other_variants(strengthen):
    def scripts(seed):
        strengthen({"boundary": GOLDS["boundary"]}, DDL + DATA, "--seed", seed, "--force")
        return [*texts_of("variants")]

    assert scripts("1") != scripts("2")


def test_variants_of_a_graph_kill_what_survives(strengthen, capsys):
    suite(SPARQL_GOLDS, GRAPH, engine="rdf")
    before = survivors(capsys)

    status, report = strengthen(SPARQL_GOLDS, GRAPH, engine="rdf")

    (source,) = report["sources"]
    assert (status, source["variants"]) == (0, "variants/music-*.ttl")
    assert ("older", "?y > 30 → ?y >= 30") in before
    assert not {change for _, change in before} & {"?x a :Firm dropped", "?y a :Person dropped"}
    for file in source["files"]:
        text = Path(file["file"]).read_text(encoding="utf-8")
        triples = [*pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)]
        assert len(triples) == file["triples"] <= MAX_TRIPLES
    compare_golden(texts_of("variants"), "variants/music.ttl.txt")
    suite(SPARQL_GOLDS, GRAPH, engine="rdf", variants="variants/music-*.ttl")
    assert survivors(capsys) == set()


TYPES = """
CREATE TABLE zone (
  id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, opened DATE, price DECIMAL(9,2), free BOOLEAN, weight DOUBLE,
  seen TIMESTAMP, starts TIME
);
INSERT INTO zone VALUES (1, 'A', '2020-01-01', 1.50, true, 0.5, '2020-01-01 10:00:00', '10:00:00');
INSERT INTO zone VALUES (2, 'B', '2021-06-01', 9.99, false, 2.5, '2021-06-01 12:00:00', '12:00:00');
"""
TYPED = {
    "price": "SELECT name FROM zone WHERE price > 5 AND starts > TIME '11:00:00'",
    "free": "SELECT name FROM zone WHERE free AND weight > 0.25",
    "seen": "SELECT name FROM zone WHERE seen > TIMESTAMP '2020-05-05 00:00:00' AND opened > DATE '2020-12-31'",
}
ODD = """
CREATE TABLE "odd ""table" ("a ;b" TEXT, "--c" INTEGER, d BLOB);
INSERT INTO "odd ""table" VALUES ('x''); DROP TABLE y; --', 5, x'00ff'), (char(10) || 'é', 6, NULL);
CREATE VIEW seen AS SELECT "a ;b" FROM "odd ""table";
"""
UNIQUE = "CREATE UNIQUE INDEX names ON singer (name); CREATE UNIQUE INDEX old ON singer (age) WHERE age > 39;"
LEAST = "SELECT abs(age) FROM singer WHERE age > -9223372036854775807"
CIRCLE = """
CREATE TABLE a (x INTEGER PRIMARY KEY, y INTEGER REFERENCES b (x));
CREATE TABLE b (x INTEGER PRIMARY KEY, y INTEGER REFERENCES a (x));
INSERT INTO b VALUES (1, NULL); INSERT INTO a VALUES (1, 1);
"""


@pytest.mark.parametrize(
    ("script", "golds", "kills", "facts"),
    [
        # Names and values that need quotes.
        (ODD, {"odd": 'SELECT "a ;b" FROM "odd ""table" WHERE "--c" > 8'}, ['"--c" > 8 → "--c" >= 8'], []),
        # Rows keep unique indexes and checks; tables may refer to each other.
        (
            DDL + DATA + UNIQUE,
            GOLDS,
            ["age > 30 → age >= 30"],
            [
                "SELECT count(*) = count(DISTINCT name) FROM singer",
                "SELECT count(age) = count(DISTINCT age) FROM singer WHERE age > 39",
            ],
        ),
        (
            "CREATE TABLE t (a INTEGER CHECK (a > 20)); INSERT INTO t VALUES (40);",
            {"check": "SELECT a FROM t WHERE a > 30"},
            ["a > 30 → a >= 30"],
            [],
        ),
        (CIRCLE, {"circle": "SELECT a.x FROM a JOIN b ON a.y = b.x WHERE a.x > 3"}, ["a.x > 3 → a.x >= 3"], []),
        # abs() of the least integer, 1 less than the number in gold, is an error.
        (DDL + DATA, {"abs": LEAST, "boundary": GOLDS["boundary"]}, ["age > 30 → age >= 30"], []),
    ],
)
def test_variants_keep_what_the_source_declares(strengthen, script, golds, kills, facts):
    status, report = strengthen(golds, script)

    assert status == 0
    assert {*kills} <= {change for _, change in killed(report)}
    for file in report["sources"][0]["files"]:
        answers = in_variant(file["file"], *facts, "PRAGMA foreign_key_check", *golds.values())
        assert answers[: len(facts) + 1] == [[(1,)]] * len(facts) + [[]]


@pytest.mark.feature("duckdb")
def test_variants_of_duckdb_keep_types(strengthen, capsys):
    suite(TYPED, TYPES, engine="duckdb")
    before = survivors(capsys)

    _, report = strengthen(TYPED, TYPES, engine="duckdb")

    assert {case for case, _ in before} == {*TYPED}
    assert killed(report) == before


def test_nothing_is_built_where_nothing_survives_or_no_table_is_known(strengthen, capsys):
    _, without_tables = strengthen({"one": "SELECT 1 WHERE 2 > 1 AND 3 > 2"}, "SELECT 1;")
    assert without_tables["sources"] == []
    suite({"all": "SELECT id FROM singer"})

    assert main(["strengthen", ".", "-o", "variants"]) == 0
    assert capsys.readouterr().out == (
        "no mutant of a query passes on a source of SQLite, DuckDB or RDF files: nothing to build\n"
    )


@pytest.mark.parametrize(
    ("golds", "script", "engine", "message"),
    [
        (
            {"blob": "SELECT a FROM t WHERE a > 30"},
            "CREATE TABLE t (a INTEGER NOT NULL CHECK (typeof(a) = 'blob')); INSERT INTO t VALUES (x'03');",
            "sqlite",
            "no small database with these tables can be built: CHECK",
        ),
        ({"broken": "SELECT x FROM singer"}, DDL + DATA, "sqlite", "gold query failed (invalid): no such column: x"),
        ({**SPARQL_GOLDS, "failing": "SELECT ?x { ?x :age }"}, "", "rdf", "gold query failed"),
    ],
)
def test_what_cannot_be_built_is_a_problem_that_says_why(strengthen, golds, script, engine, message):
    status, report = strengthen(golds, script, engine=engine)

    assert status == 1
    assert message in report["problems"][0]["message"]
    assert any(Path("variants").iterdir()) == (engine == "rdf")  # the others on a graph without triples


def test_a_gold_that_takes_long_on_small_graphs_is_soon_left_alone(strengthen):
    heavy = "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{n} :rare ?b{n} ." for n in range(12)) + " }"

    status, report = strengthen({"older": SPARQL_GOLDS["older"], "heavy": heavy}, GRAPH, engine="rdf", timeout=0.4)

    assert status == 0
    assert any(case == "older" for case, _ in killed(report))


def test_variants_that_the_source_names_kill_what_they_were_built_for_until_they_are_replaced(capsys):
    boundary = {"boundary": GOLDS["boundary"]}
    suite(boundary)
    before = survivors(capsys)
    main(["strengthen", ".", "-o", "variants"])
    counts, advice = capsys.readouterr().out.splitlines()
    scripts = [file.read_text() for file in sorted(Path("variants").iterdir())]

    suite(boundary, variants="variants/music-*.sql")

    assert advice == '  add to the source at s.queryeval.yaml:1: variants: "variants/music-*.sql"'
    assert before
    assert survivors(capsys) == set()
    assert main(["strengthen", ".", "-o", "more"]) == 0
    assert capsys.readouterr().out.endswith("nothing to build\n")
    assert main(["strengthen", ".", "-o", "variants", "--force"]) == 0
    assert capsys.readouterr().out.splitlines() == [counts]
    assert [file.read_text() for file in sorted(Path("variants").iterdir())] == scripts


def test_a_source_with_other_variants_is_told_to_match_both(capsys):
    write(DDL + DATA, "old.sqlite.sql")
    suite({"boundary": GOLDS["boundary"]}, variants="old.sqlite.sql")

    assert main(["strengthen", ".", "-o", "variants"]) == 0

    assert capsys.readouterr().out.endswith(
        'variants: "old.sqlite.sql": change this to a pattern that matches variants/music-*.sql as well\n'
    )


def test_a_gold_that_fails_on_a_variant_is_a_problem_of_its_place(capsys):
    write("CREATE TABLE other (id);", "empty.sql")
    suite({"boundary": GOLDS["boundary"]}, variants="empty.sql")

    assert main(["strength", "."]) == 1

    place = "s.queryeval.yaml:1: the gold query failed on the variant empty.sql (invalid): no such table: singer"
    assert capsys.readouterr().out.startswith(place)


def test_variants_keep_the_constraints_of_the_source_whatever_db_schema_lists(strengthen):
    entry = {
        "db_id": "music",
        "table_names_original": ["concert", "singer"],
        "column_names_original": [
            *([-1, "*"], [0, "id"], [0, "singer"], [0, "year"]),
            *([1, "id"], [1, "name"], [1, "age"], [1, "boss"]),
        ],
        "column_types": ["text", "number", "number", "text", "number", "text", "number", "number"],
        "primary_keys": [1, 4],
        "foreign_keys": [],
    }
    write(json.dumps([entry]), "tables.json")

    status, report = strengthen(GOLDS, db_schema="tables.json")

    (source,) = report["sources"]
    assert (status, source["killed"]) == (0, source["survivors"])
    for file in source["files"]:
        script = re.sub("CREATE TABLE[^;]*;", "", Path(file["file"]).read_text(encoding="utf-8"))
        write(f"PRAGMA foreign_keys = OFF; {DDL} {script}", "again.sql")
        assert in_variant("again.sql", "PRAGMA foreign_key_check") == [[]]


@pytest.mark.parametrize(
    ("output", "text", "options", "message"),
    [
        ("variants", "-- A variant of music.sql", [], "variants/music-09.sql: already exists"),
        ("variants", "CREATE TABLE own (id)", [], "variants/music-09.sql: already exists"),
        ("variants", "CREATE TABLE own (id)", ["--force"], "variants/music-09.sql: already exists"),
        ("music.sql", None, [], "music.sql: cannot be written: File exists\n"),  # before anything runs
    ],
)
def test_what_is_there_is_not_replaced(capsys, output, text, options, message):
    suite({"boundary": GOLDS["boundary"]})
    if text is not None:
        write(text, "variants/music-09.sql")

    with pytest.raises(SystemExit, match="2"):
        main(["strengthen", ".", "-o", output, *options])

    assert capsys.readouterr().err.startswith(message)
    assert text is None or Path("variants/music-09.sql").read_text() == text


def test_variants_of_an_earlier_call_are_replaced_with_force(capsys):
    suite({"boundary": GOLDS["boundary"]})
    write("-- A variant of music.sql", "variants/music-09.sql")

    assert main(["strengthen", ".", "-o", "variants", "--force"]) == 0
    assert not Path("variants/music-09.sql").exists()


def test_a_signal_ends_the_command_and_leaves_no_copy_of_a_database(working_folder, monkeypatch):
    suite({"boundary": GOLDS["boundary"]})
    temporary = working_folder / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    command = [sys.executable, "-m", "pytest_queryeval", "strengthen", ".", "-o", "variants"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert any("mutants pass" in line for line in process.stderr)  # now it builds
        process.send_signal(signal.SIGTERM)
        message = process.communicate(timeout=300)[1]

    assert process.returncode == 130
    assert message.endswith("queryeval: interrupted\n")
    assert "Traceback" not in message
    assert not list(temporary.iterdir())
