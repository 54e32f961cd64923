"""Predicted queries only read the graph, within the limits of their case."""

import time

import pytest

WRITES = [
    "CREATE (:Lake {name: 'Agate'})",
    "MERGE (l:Lake {name: 'Agate'}) RETURN l",
    "MATCH (l:Lake) SET l.depth = 0",
    "MATCH (l:Lake) DETACH DELETE l",
    "MATCH (l:Lake) WITH l CREATE (:Lake {name: 'Agate'}) RETURN l",
    "DROP TABLE Lake",
    "ALTER TABLE Lake ADD age INT64",
    "CREATE NODE TABLE Well (name STRING, PRIMARY KEY (name))",
    "BEGIN TRANSACTION",
    "CHECKPOINT",
]
BEYOND = [
    "LOAD FROM '{folder}/secret.csv' RETURN *",
    "load\n/* */ from '{folder}/secret.csv' return *",
    "MATCH (l:Lake) LOAD FROM '{folder}/secret.csv' RETURN *",
    "MATCH (l:Lake) WHERE l.name = '\\'' LOAD WITH HEADERS (a STRING) FROM '{folder}/secret.csv' RETURN a",
    "UNWIND [1] AS x CALL show_tables() RETURN *",
    "CALL show_tables() RETURN *",
    "CALL threads = 8",
    "COPY (MATCH (l:Lake) RETURN l.name) TO '{folder}/out.csv'",
    "COPY Lake FROM '{folder}/secret.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/other.lbug' AS other (dbtype lbug)",
    "INSTALL httpfs",
    "LOAD EXTENSION '{folder}/secret.csv'",
    "RETURN 1; COPY (RETURN 1) TO '{folder}/out.csv'",
    "RETURN ';' ; INSTALL httpfs",
    "EXPLAIN MATCH (l:Lake) RETURN l",
]


@pytest.mark.parametrize("query", WRITES)
def test_a_query_that_writes_is_unsafe_and_changes_nothing(query, failure, rows):
    before = rows("MATCH (n) RETURN n")

    error = failure(query)

    assert error.kind == "unsafe"
    assert error.message.startswith("only reading is allowed: ")
    assert rows("MATCH (n) RETURN n") == before


@pytest.mark.parametrize("query", BEYOND)
def test_a_query_that_reaches_beyond_the_graph_is_unsafe(query, failure, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")

    error = failure(query.format(folder=tmp_path))

    assert error.kind == "unsafe"
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_words_that_are_names_and_texts_are_not_taken_for_clauses(rows):
    query = """
        MATCH (set:River {name: 'Fern'}) WITH set.name AS load, 'LOAD FROM x; CALL f()' AS `create`
        WITH load, `create` AS call // COPY
        RETURN load, call;
    """

    assert rows(query) == [("Fern", "LOAD FROM x; CALL f()")]


def test_no_file_can_be_opened_whatever_the_text_of_a_query_hides(monkeypatch, tmp_path):
    """The second wall, behind the search of the text."""
    child = pytest.importorskip("queryeval_cypher.ladybug_child")
    (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    monkeypatch.setattr(child, "check_reads", lambda query: None)
    driver = child.Driver()
    files = tmp_path / "g.lbug", tmp_path / "g.lbug.wal"
    driver._graph = child.ladybug.Database(str(files[0]))
    driver._state = (str(files[0]), *map(child.driver.signature, files))

    for query in (f"LOAD FROM '{tmp_path}/secret.csv' RETURN *", f"COPY (RETURN 1) TO '{tmp_path}/out.csv'"):
        with pytest.raises(RuntimeError) as raised:
            driver.run({"path": str(tmp_path / "g.lbug")}, query, timeout=20)
        assert driver.classify(raised.value)[:2] == ("failure", "unsafe")
    driver._connection.close()
    driver._graph.close()


def test_a_late_query_is_interrupted(failure):
    error = failure("UNWIND range(1, 100000000) AS x UNWIND range(1, 1000000) AS y RETURN sum(x + y)", timeout=0.2)

    assert (error.kind, error.message) == ("timeout", "no answer within 0.2 s")


def test_a_query_that_no_interrupt_reaches_is_killed(failure, rows):
    began = time.monotonic()

    error = failure("RETURN size(repeat('a', 100000000))", timeout=0.2)

    assert error.kind == "timeout"
    assert time.monotonic() - began < 5  # it would take longer
    assert rows("RETURN 1") == [(1,)]


def test_an_answer_of_too_many_rows_is_a_failure(failure):
    error = failure("UNWIND range(1, 11) AS x RETURN x", max_rows=10)

    assert (error.kind, error.message[:17]) == ("too_large", "more than 10 rows")


def test_a_query_that_takes_too_much_memory_is_a_failure(failure, rows):
    assert failure("RETURN size(repeat('a', 1000000000))", timeout=60).kind == "too_large"
    assert rows("RETURN 1") == [(1,)]
