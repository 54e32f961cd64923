"""The search for a cause: what it runs, and for how long; hostile queries, secrets, and engines that are at fault."""

import json
import sqlite3
import time
from dataclasses import replace

import pytest
from cause_runs import evaluated, graph_source, script_source, told
from sparql_golds import HEAD

from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.engines import ENGINES, EngineType, SourceFingerprint

SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, country TEXT);
INSERT INTO singer VALUES (1, 'Ana', 30, 'FR'), (2, 'Bo', 40, 'DE'), (3, 'Cy', 50, 'DE');
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer_id INTEGER, year INTEGER);
"""
NAMES = "SELECT name FROM singer"
GRAPH = "@prefix : <http://e/> . :ann a :Singer ; :age 30 . :bob a :Singer ; :age 40 . :cy a :Dancer ; :age 40 ."


class Counting:
    """An engine that has another answer for every query, of so many rows, and notes what it ran."""

    def __init__(self, *, fails_at=None, seconds=0.0, rows=0, message=None):
        self.executed, self.fails_at, self.seconds, self.rows, self.message = [], fails_at, seconds, rows, message

    def open(self, source, hosts):
        return self

    def execute(self, text, *, timeout, max_rows):
        self.executed.append((text, timeout, max_rows))
        time.sleep(min(self.seconds, timeout))
        if self.seconds > timeout or len(self.executed) == self.fails_at:
            return Execution(query=text, error=Failure(kind="timeout", message="ran out of time"))
        if self.message and len(self.executed) > 1:
            return Execution(query=text, error=Failure(kind="invalid", message=self.message))
        rows = ((len(self.executed),),) * (self.rows + 1 + (len(self.executed) > 1 and self.rows > 0))
        return Execution(query=text, answer=Table(columns=("n",), rows=rows))

    def close(self):
        pass


def counted(monkeypatch, folder, *, cause="auto", is_local=True, **changes):
    """What an engine runs for a case whose queries differ in a great deal, gold and predicted first."""
    engine = Counting(**changes)
    files = SourceFingerprint(files=lambda source: ["a.db"] if is_local else [])
    monkeypatch.setitem(ENGINES._members, "counting", EngineType(opener=engine.open, fingerprint=files))
    (folder / "a.db").touch()
    source = Source(name="a", engine="counting", settings={"path": "a.db"}, folder=folder)
    terms, others = ([f"c{number} = {number + more}" for number in range(20)] for more in (0, 100))
    predicted = f"SELECT a FROM t WHERE {' AND '.join(terms)} GROUP BY a"
    gold = f"SELECT b FROM t WHERE {' AND '.join(others)} GROUP BY b"
    (entry,) = evaluated([(predicted, gold)], source, cause=cause, timeout=7.0, max_rows=300_000, dialect="sqlite")
    return entry, engine.executed


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({}, 2 + 50),  # the budget of repaired queries
        ({"cause": "full", "rows": 200_000}, 2 + 5),  # a million cells
        ({"fails_at": 5}, 5),  # the first edit that runs out of time
        ({"is_local": False}, 2),
        ({"is_local": False, "cause": "full"}, 2 + 50),
        ({"cause": "off"}, 2),
    ],
)
def test_the_search_ends_with_its_budget(monkeypatch, tmp_path, changes, runs):
    entry, executed = counted(monkeypatch, tmp_path, **changes)

    assert entry["cause"] is None
    assert len(executed) == runs
    assert len({text for text, _, _ in executed}) == runs


def test_repaired_queries_have_the_limits_of_the_case_but_a_second_unless_all_causes_are_asked_for(
    monkeypatch, tmp_path
):
    _, in_a_second = counted(monkeypatch, tmp_path, seconds=0.3)
    _, with_all = counted(monkeypatch, tmp_path, cause="full")

    assert [limits for _, *limits in in_a_second[:2]] == [limits for _, *limits in with_all[:2]] == [[7.0, 300_000]] * 2
    assert {tuple(limits) for _, *limits in with_all[2:]} == {(7.0, 2)}  # one row more than gold's
    seconds = [timeout for _, timeout, _ in in_a_second[2:]]
    assert seconds[0] == 1.0
    assert seconds == sorted(seconds, reverse=True)
    assert 3 <= len(seconds) <= 4


@pytest.mark.parametrize(
    ("message", "label"),
    [
        ('Binder Error: Referenced column "nme" not found in FROM clause!', "unknown-column"),
        ("Catalog Error: Table with name singers does not exist!", "unknown-table"),
        ('column "nme" does not exist', "unknown-column"),
        ("Unknown column 'nme' in 'field list'", "unknown-column"),
        ("Table 'music.singers' doesn't exist", "unknown-table"),
        ('Binder Error: Table "s" does not have a column named "hall"', "unknown-column"),
        ('missing FROM-clause entry for table "t2"', "unknown-table"),
        ("ambiguous column name: id", "ambiguous-column"),
        ('syntax error at or near "FORM"', "syntax"),
    ],
)
def test_the_messages_of_databases_name_what_is_unknown(monkeypatch, tmp_path, message, label):
    entry, _ = counted(monkeypatch, tmp_path, message=message)

    assert [edit["label"] for edit in entry["cause"]["edits"]] == [label]


def test_constraints_are_checked_of_the_tables_that_the_queries_read(monkeypatch, tmp_path):
    others = "".join(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY REFERENCES singer);" for number in range(40))
    source = script_source(tmp_path, SCRIPT + others)
    sqlite, executed = ENGINES["sqlite"], []

    class Noting:
        def __init__(self, engine):
            self._engine = engine

        def __getattr__(self, name):
            return getattr(self._engine, name)

        def execute(self, text, **limits):
            executed.append(text)
            return self._engine.execute(text, **limits)

    noting = replace(sqlite, opener=lambda *arguments: Noting(sqlite.open(*arguments)))
    monkeypatch.setitem(ENGINES._members, "sqlite", noting)

    (entry,) = evaluated(
        [(f"{NAMES} WHERE age = 30 AND country = 'DE'", f"{NAMES} WHERE age >= 50 AND country = 'DE'")], source
    )

    assert entry["cause"]["tested"]
    assert "SELECT id FROM singer WHERE id IS NULL" in executed
    assert not [text for text in executed if "t1" in text]


HOSTILE = [
    "SELECT " + "(" * 3_900,
    "SELECT " + "FORM " * 700,
    f"{NAMES}".replace("name", "nme") + " JOIN concert" * 250,
    "SELECT ?x { FILTER ?x" + " " * 3_900,
    "SELECT ?x { <" + " a" * 1_900,
    "SELECT COUNT(?x) " * 200,
    "?x = " * 700,
    f"{NAMES} WHERE name = '\x00\u202e' AND nme = 1",
    "SELECT name, FROM singer " + "-" * 5_000,
    "SELECT ?x { " + "?s ?p ?o . " * 60 + "}",
    "SELECT ?x { ?x ?p ?y " + "FILTER (?y > 1) " * 300 + "}",
    "ASK " + "{" * 38 + "?x ?p ?y" + "}" * 38,
    "ASK { ?s <p>" + "/<p>" * 700 + " ?o }",
    "ASK { 'open",
    "}" * 100_000,
    "ASK { FILTER (" + "(" * 30 + "?x" + ")" * 30 + ") }",
    "ASK { FILTER (1" + " && 1" * 900 + ") }",
    *(f"{NAMES} WHERE name = '{text}'" for text in ("''; DROP TABLE singer; --", "a\u202eb", "%s{}[]")),
]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sql", "sparql"])
def test_hostile_queries_are_evaluated_as_any_other(tmp_path, kind):
    source = script_source(tmp_path, SCRIPT) if kind == "sql" else graph_source(tmp_path, GRAPH)
    gold = f"{NAMES} WHERE age > 30 AND id < 9" if kind == "sql" else f"{HEAD}SELECT ?x {{ ?x :age 40 }}"

    entries = evaluated([(text, gold) for text in HOSTILE], source, timeout=2.0)

    assert [entry["outcome"] for entry in entries] == ["passed"] * len(HOSTILE)  # no metric has a threshold
    assert {entry["scores"]["execution_accuracy"] for entry in entries} == {0.0}
    assert all(len(told(entry)) <= 3 for entry in entries)


def test_what_is_predicted_changes_no_database(tmp_path):
    with sqlite3.connect(tmp_path / "music.sqlite") as connection:
        connection.executescript(SCRIPT)
    source = Source(name="m", engine="sqlite", settings={"path": "music.sqlite"}, folder=tmp_path)

    evaluated([(text, f"{NAMES} WHERE age > 20 AND id < 9") for text in HOSTILE[-3:]], source)

    assert connection.execute("SELECT count(*) FROM singer").fetchone() == (3,)


def test_what_another_dialect_cannot_say_is_not_logged(tmp_path, caplog):
    (entry,) = evaluated(
        [("SELECT id FROM singer FOR UPDATE", "SELECT name FROM singer")], script_source(tmp_path, SCRIPT)
    )

    assert entry["cause"]["edits"][0]["label"] == "syntax"
    assert not caplog.records


def test_secrets_are_removed_from_causes(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2-hunter2")
    pairs = [(f"{NAMES} WHERE country <> 'FR'", f"{NAMES} WHERE country <> 'hunter2-hunter2'")]

    (entry,) = evaluated(pairs, script_source(tmp_path, SCRIPT))

    assert "hunter2" not in json.dumps(entry)
    assert entry["cause"]["repaired_query"] == f"{NAMES} WHERE country <> '[redacted]'"


class Careless:
    """An engine that finds no row where a query has DISTINCT before a column that is written with `$`."""

    def __init__(self, engine):
        self._engine = engine

    def execute(self, query, *, timeout, max_rows):
        text = query.replace("}", "FILTER(false) }", 1) if "DISTINCT $" in query else query
        execution = self._engine.execute(text, timeout=timeout, max_rows=max_rows)
        return replace(execution, query=query, engine="careless")

    def close(self):
        self._engine.close()


@pytest.mark.parametrize("modifiers", ["", " LIMIT 5"])
def test_a_query_that_is_right_in_other_words_has_no_cause_and_the_engine_is_at_fault(tmp_path, monkeypatch, modifiers):
    rdf = ENGINES["rdf"]
    careless = replace(rdf, opener=lambda source, hosts: Careless(rdf.open(source, hosts)))
    monkeypatch.setitem(ENGINES._members, "careless", careless)
    gold, predicted = (f"{HEAD}SELECT {x} {{ {x[-2:]} a :Singer }}{modifiers}" for x in ("?x", "DISTINCT $x"))

    (entry,) = evaluated([(predicted, gold)], graph_source(tmp_path, GRAPH, engine="careless"))

    assert entry["cause"] is None
    assert entry["outcome"] == ("passed" if modifiers else "error")
    fault = "careless gives the gold answer to the predicted query, but only in other words: use another engine"
    assert entry["message"].startswith("" if modifiers else fault)


@pytest.mark.parametrize(("mode", "seconds"), [("auto", 0.9), ("auto", 1.1), ("full", 1.1)])
def test_a_query_that_took_longer_than_a_cause_may_take_is_not_run_again(tmp_path, monkeypatch, mode, seconds):
    rdf, executed = ENGINES["rdf"], list[str]()

    class Slow(Careless):
        def execute(self, query, *, timeout, max_rows):
            executed.append(query)
            return replace(super().execute(query, timeout=timeout, max_rows=max_rows), seconds=seconds)

    slow = replace(rdf, kind="sparql", opener=lambda source, hosts: Slow(rdf.open(source, hosts)))
    monkeypatch.setitem(ENGINES._members, "slow", slow)
    gold, predicted = (f"{HEAD}SELECT ?x {{ ?x a {type_} }}" for type_ in (":Singer", ":Dancer"))

    (entry,) = evaluated([(predicted, gold)], graph_source(tmp_path, GRAPH, engine="slow"), cause=mode)

    has_search = mode == "full" or seconds < 1
    assert bool(entry["cause"]) is has_search
    assert ("cause" in entry["details"]) is not has_search
    assert has_search or not {query for query in executed if "a :Dancer" in query} - {predicted}


def test_an_edit_that_leaves_another_number_of_columns_is_tried(tmp_path):
    pairs = [(f"{HEAD}SELECT ?x ?a {{ ?x :age ?a ; a :Dancer }}", f"{HEAD}SELECT ?x {{ ?x :age ?a ; a :Singer }}")]

    (entry,) = evaluated(pairs, graph_source(tmp_path, GRAPH))

    assert {edit["label"] for edit in entry["cause"]["edits"]} == {"extra-column", "wrong-class"}
