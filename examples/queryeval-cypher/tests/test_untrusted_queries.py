"""Predicted queries only read the graph; `test_contract.py` has those that try more."""

import pytest


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("MATCH (l:Lake) SET l.depth = 0", "only reading is allowed: the query changes the graph"),
        ("COPY (RETURN 1) TO 'out.csv'", "only reading is allowed: "),
        ("CALL show_tables() RETURN *", "only reading is allowed: "),
    ],
)
def test_an_unsafe_query_is_told_why(failure, query, message):
    assert failure(query).message.startswith(message)


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
