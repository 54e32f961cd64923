"""Cases whose queries change data, on each engine: what is compared, what is told, and what stays as it was."""

import json
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest
import yaml
from shops import ON_ALL, SHOPS, connected, untouched_database
from write_states import SCHEMA, random_pair, state

from pytest_queryeval import evaluate, load_cases, score_pairs
from pytest_queryeval.cli import main

pytest_plugins = ["postgres"]
pytestmark = [pytest.mark.process, pytest.mark.feature("evaluate", "recording")]

HERE = Path(__file__).parent
GROUPS = yaml.safe_load((HERE / "script_pairs.yaml").read_text(encoding="utf-8"))
FAILING = yaml.safe_load((HERE / "failing_scripts.yaml").read_text(encoding="utf-8"))
CHANGES = {
    "gold": "UPDATE customer SET city = 'L' WHERE id = 2; DELETE FROM orders WHERE id = 3; "
    "INSERT INTO empty VALUES (1, 2)",
    "predicted": "UPDATE customer SET city = 'E' WHERE id = 2; DELETE FROM orders WHERE id = 2; "
    "INSERT INTO log (what) VALUES ('x'); INSERT INTO empty VALUES (1, 3)",
}
CID_AND_DAN = "INSERT INTO customer (name) VALUES ('Cid'), ('Dan');"
RETURNED = {
    "nothing": "returned: nothing, the gold answer has rows",
    "SELECT id FROM customer WHERE name = 'Dan'": "returned: the keys of other new rows",
    "SELECT 5000": "returned: gold",
    "SELECT id, name FROM customer": "returned: ",
}
ALLOWED = [
    "ALTER TABLE customer ADD COLUMN level TEXT CHECK (level IN ('x', 'y'))",
    "ALTER TABLE main.customer ADD level TEXT NOT NULL DEFAULT 'x' CHECK (level <> name)",
    "ALTER TABLE customer ADD COLUMN letters INTEGER NOT NULL AS (length(name)) VIRTUAL",
    "ALTER TABLE child ADD COLUMN level TEXT CHECK (level IS NULL)",
    "CREATE TABLE n (a TEXT PRIMARY KEY, b UNIQUE, c CHECK (c > 0), UNIQUE (b, c)); INSERT INTO n VALUES (1, 2, 3)",
    "CREATE TABLE n (a INTEGER, b TEXT, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID; INSERT INTO n VALUES (1, 'x')",
    "CREATE TABLE n (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO n VALUES (NULL); DROP TABLE n",
    "CREATE TABLE n (a PRIMARY KEY); ALTER TABLE n RENAME TO m; ALTER TABLE m RENAME COLUMN a TO b",
    "CREATE UNIQUE INDEX i ON customer (lower(name)) WHERE city IS NOT NULL",
    "ALTER TABLE orders RENAME COLUMN total TO price; ALTER TABLE orders DROP COLUMN created_at",
]
SETTINGS = {"kind": "sql", "writes": True, "metrics": ["execution_accuracy"]}


class Shop:
    """The cases of one engine, evaluated."""

    def __init__(self, engine, source, folder):
        self.engine, self.source, self.folder = engine, source, folder
        cases = [{"id": "changes", **CHANGES}]
        gold = f"{CID_AND_DAN} SELECT id FROM customer WHERE name = 'Cid'"
        for number, query in enumerate(RETURNED):
            predicted = CID_AND_DAN if query == "nothing" else CID_AND_DAN + query
            cases.append({"id": f"returned-{number}", "gold": gold, "predicted": predicted})
        for number, (query, *_) in enumerate(FAILING[engine]):
            cases.append({"id": f"failing-{number}", "gold": "SELECT 1", "predicted": query, "max_rows": 1000})
        for group_number, group in enumerate(GROUPS):
            for verdict in ("same", "different") if engine in group["engines"] else ():
                for number, (gold, predicted) in enumerate(group.get(verdict, ())):
                    id_ = f"{verdict}-{group_number}-{number}"
                    cases.append({"id": id_, "gold": gold, "predicted": predicted, **group.get("settings", {})})
        suite = {**SETTINGS, "source": source, "cases": cases}
        (folder / "s.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
        self.cases = self.evaluated("--record")

    def evaluated(self, recording):
        """The cases of the report by their ids, of a run that records or replays."""
        report = self.folder / f"report{recording}.json"
        arguments = [f"{recording}={self.folder / 'recording'}", f"--report={report}", "--cause=off", "-q"]
        main(["evaluate", str(self.folder / "s.queryeval.yaml"), *arguments])
        return {case["id"]: case for case in json.loads(report.read_text(encoding="utf-8"))["cases"]}

    def scores(self, verdict):
        """The scores of the pairs that ought to have one verdict, and what was wrong if they have another."""
        return {
            (case["gold"]["query"], case["predicted"]["query"]): case["scores"].get(
                "execution_accuracy", case["message"]
            )
            for id_, case in self.cases.items()
            if id_.startswith(f"{verdict}-")
        }


@pytest.fixture(scope="module", params=ON_ALL)
def shop(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"shop_{request.param}")
    with untouched_database(request.param, SHOPS[request.param], folder, request) as source:
        yield Shop(request.param, source, folder)


@pytest.mark.parametrize(("verdict", "score"), [("same", 1.0), ("different", 0.0)])
def test_scripts_are_equal_if_they_lead_to_the_same_state(shop, verdict, score):
    scores = shop.scores(verdict)

    assert {pair: found for pair, found in scores.items() if found != score} == {}
    assert len(scores) > 20


def test_scripts_that_fail_say_why(shop):
    errors = [shop.cases[f"failing-{number}"]["predicted"]["error"] for number in range(len(FAILING[shop.engine]))]

    wrong = [
        (query, error)
        for (query, kind, message), error in zip(FAILING[shop.engine], errors, strict=True)
        if error is None or error["kind"] != kind or message not in error["message"]
    ]
    assert wrong == []


def test_a_difference_is_told_by_column_where_rows_are_paired_by_key_or_are_similar_else_by_table(shop):
    difference = shop.cases["changes"]["difference"]

    assert [row[:5] for pair in difference["changed"] for row in pair.values() if row[0] == "customer"] == [
        ["customer", "changed", 2, "Bob", "L"],
        ["customer", "changed", 2, "Bob", "E"],
    ]
    parts = (
        "city of customer differs in 1 of 1 row: L → E (id 2)",
        "b of empty in 1",
        " added",
        "orders: 1 row removed, 1 row not removed",
    )
    assert [part for part in parts if part not in difference["summary"]] == []
    assert difference["columns"][:5] == ["table", "change", "id", "name", "city"]
    assert {(row[0], row[1]) for row in difference["missing"] + difference["extra"]} >= {
        ("orders", "removed"),
        ("orders", "not removed"),
        ("log", "added"),
    }


def test_it_is_told_how_what_is_returned_differs(shop):
    summaries = [shop.cases[f"returned-{number}"]["difference"]["summary"] for number in range(len(RETURNED))]

    assert all(said.startswith(start) for said, start in zip(summaries, RETURNED.values(), strict=True)), summaries
    assert summaries[2].endswith(", predicted 5000")


def test_what_changed_survives_a_recording(shop):
    replayed = shop.evaluated("--replay")

    for case in (*replayed.values(), *shop.cases.values()):
        for side in filter(None, (case["gold"], case["predicted"])):
            side.pop("seconds", None)
    names = ("scores", "difference", "gold", "predicted", "message")
    differing = [id_ for id_, case in replayed.items() for name in names if case[name] != shop.cases[id_][name]]
    assert differing == []


def test_the_digest_of_a_gold_changes_with_what_counts_alone(shop):
    gold = "INSERT INTO orders (customer, total) VALUES (1, 5) RETURNING id, total"
    stated = "INSERT INTO orders (id, customer, total) VALUES (77, 1, 5) RETURNING id, total"
    later = f"INSERT INTO orders (customer, total) VALUES (1, 9); {gold}; DELETE FROM orders WHERE total = 9; "
    later += "DELETE FROM log"
    golds = [gold, f"DELETE FROM empty; {gold.lower()}", later]
    golds += [gold.replace("5", "6"), gold.replace("id, total", "id, 6"), stated]
    cases = [{"id": str(number), "gold": query, "predicted": query} for number, query in enumerate(golds)]
    suite = {**SETTINGS, "source": shop.source, "writes": {"ignore": ["orders.created_at"]}, "cases": cases}
    (shop.folder / "digests.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")

    digests = [
        case["fingerprint"]["gold_answers"]
        for case in evaluate(load_cases(shop.folder / "digests.queryeval.yaml"))["cases"]
    ]

    assert None not in digests
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests)) == 4


SCHEMAS = {
    "sqlite": SCHEMA,
    "duckdb": SCHEMA,
    "postgresql": SCHEMA.replace("DOUBLE", "DOUBLE PRECISION").replace("(x + 2 * y)", "(x + 2 * y) STORED"),
}


PAIRS = {"sqlite": 120, "duckdb": 40, "postgresql": 40}


@contextmanager
def reference(engine, source, request):
    """A connection to a database like the source, and the class of its errors."""
    if engine == "postgresql":
        import psycopg

        database = source["sqlalchemy"]["url"].rpartition("/")[2]
        with request.getfixturevalue("cluster").connect("owner", database) as connection:
            yield connection, psycopg.Error
    else:
        with closing(connected(engine)) as connection:
            (connection.executescript if engine == "sqlite" else connection.execute)(SCHEMA)
            yield connection, sys.modules["sqlite3" if engine == "sqlite" else "duckdb"].Error


def state_after(script, connection, error):
    connection.execute("BEGIN")
    try:
        return state(connection, script, error)
    finally:
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("engine", ON_ALL)
def test_verdicts_agree_with_a_comparison_of_whole_states(engine, request, tmp_path):
    random, pairs, equal = Random(5), [], []
    with untouched_database(engine, SCHEMAS[engine], tmp_path, request) as source:
        with reference(engine, source, request) as (connection, error):
            while len(pairs) < PAIRS[engine]:
                pair = random_pair(random)
                gold, predicted = (state_after(script, connection, error) for script in pair)
                if gold is not None and predicted is not None:
                    pairs.append(pair)
                    equal.append(gold == predicted)
        scores = [pair.scores for pair in score_pairs(pairs, source, ["execution_accuracy"], writes=True)]

    verdicts = zip(pairs, scores, equal, strict=True)
    assert [verdict for verdict in verdicts if verdict[1] != {"execution_accuracy": verdict[2]}] == []
    assert len(pairs) / 4 < sum(equal) < 3 * len(pairs) / 4


@pytest.mark.parametrize("engine", ON_ALL[:2])
def test_a_source_that_changes_is_copied_again(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def changing_pairs():
        for number in range(3):
            with closing(connected(engine, tmp_path / "t.db")) as connection:
                connection.execute("DROP TABLE IF EXISTS a")
                connection.execute(f"CREATE TABLE a AS SELECT {number} AS x")
            yield f"SELECT {number}", f"SELECT x FROM a WHERE {number} = {number}"

    pairs = list(score_pairs(changing_pairs(), {engine: "t.db"}, ["execution_accuracy"], writes=True))

    assert [pair.scores for pair in pairs] == [{"execution_accuracy": 1.0}] * 3


@pytest.mark.parametrize("engine", ON_ALL[:2])
def test_each_of_two_sources_with_the_same_name_of_a_file_is_copied(engine, tmp_path):
    cases = []
    for name in "ab":
        (tmp_path / name).mkdir()
        with closing(connected(engine, tmp_path / name / "t.db")) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT '{name}' AS x")
        queries = {"gold": f"SELECT '{name}'", "predicted": "SELECT x FROM t"}
        cases.append({"id": name, "source": {engine: f"{name}/t.db"}, **queries})
    (tmp_path / "s.queryeval.yaml").write_text(json.dumps({**SETTINGS, "cases": cases}), encoding="utf-8")

    report = evaluate(load_cases(tmp_path / "s.queryeval.yaml"))

    assert [case["scores"] for case in report["cases"]] == [{"execution_accuracy": 1.0}] * 2


def test_what_sqlite_itself_runs_for_a_statement_is_allowed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.sql").write_text(SHOPS["sqlite"].replace("AUTOINCREMENT", ""))  # else its table would be there

    pairs = score_pairs([(query, query) for query in ALLOWED], {"sqlite": {"script": "shop.sql"}}, writes=True)

    assert [pair.error or pair.failure for pair in pairs] == [None] * len(ALLOWED)


@pytest.mark.feature("duckdb")
def test_triggers_of_duckdb_run(tmp_path, monkeypatch):
    import duckdb

    monkeypatch.chdir(tmp_path)
    with closing(connected("duckdb", tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE a (x INT); CREATE TABLE b (y INT)")
        try:
            connection.execute("CREATE TRIGGER t AFTER INSERT ON a FOR EACH STATEMENT INSERT INTO b VALUES (1)")
        except duckdb.ParserException:
            pytest.skip("DuckDB has triggers since version 2")
    change = "INSERT INTO a VALUES (7)"

    pairs = score_pairs([(change, change), (change, f"{change}; DELETE FROM b")], "t.duckdb", writes=True)

    assert [pair.scores["execution_accuracy"] for pair in pairs] == [1.0, 0.0]


def test_a_case_can_leave_the_setting_of_its_suite(tmp_path):
    suite = tmp_path / "s.queryeval.yaml"
    suite.write_text("{kind: sql, writes: true, source: a.db, cases: [{id: a, writes: false, gold: b, predicted: c}]}")

    (case,) = load_cases(suite)

    assert not case.settings.source.writes
