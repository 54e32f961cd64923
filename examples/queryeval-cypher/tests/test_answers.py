"""What queries answer: cells of each type, foreign keys, messages."""

from datetime import date, datetime
from decimal import Decimal

import pytest

from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import open_engine

FERN = {"_label": "River", "km": 7.9, "name": "Fern"}
DOGWOOD = {"_label": "River", "km": 18.3, "name": "Dogwood", "navigable": False}
FLOWS = {"_label": "FLOWS_INTO", "at_km": 3.1}


def test_a_node_is_its_label_and_the_properties_that_it_has(rows):
    assert rows("MATCH (r:River {name: 'Fern'}) RETURN r") == [(FERN,)]


def test_a_relationship_has_no_ends_and_no_id(rows):
    assert rows("MATCH (:River {name: 'Fern'})-[e]->() RETURN e") == [(FLOWS,)]


def test_paths_are_lists_of_their_parts_in_turn(rows):
    query = "MATCH p = (:River {name: 'Fern'})-[e:FLOWS_INTO*1..1]->() RETURN p, e, nodes(p)"

    assert rows(query) == [((FERN, FLOWS, DOGWOOD), (FLOWS,), (FERN, DOGWOOD))]


@pytest.mark.parametrize(
    ("expression", "cell"),
    [
        ("NULL", None),
        ("7 / 2", 3),
        ("0.5", 0.5),
        ("cast(1.50 AS DECIMAL(6, 2))", Decimal("1.50")),
        ("date('2021-06-30')", date(2021, 6, 30)),
        ("timestamp('2021-06-30 10:00:00')", datetime(2021, 6, 30, 10)),
        ("interval('1 day 30 minutes')", "P1DT30M"),
        ("date('2021-06-30') - date('2021-06-28')", 2),
        ("[3, 1, NULL]", (3, 1, None)),
        ("[date('2021-06-30')]", (date(2021, 6, 30),)),
        ("map(['b', 'a'], [1, 2])", {"b": 1, "a": 2}),
        ("{b: [1.5], a: 'x'}", {"b": (1.5,), "a": "x"}),
        ("uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("'a\nb; // c'", "a\nb; // c"),
    ],
)
def test_values_are_cells_as_other_engines_have_them(rows, expression, cell):
    [(answered,)] = rows(f"RETURN {expression}")

    assert answered == cell
    assert isinstance(cell, dict) or type(answered) is type(cell)


def test_relationships_refer_to_the_keys_of_their_ends(graph):
    assert (("measures", "_dst"), ("lake", "name")) in graph.schema(timeout=20).foreign_keys


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("MATCH (r:River) RETURN r.length", "Cannot find property length for r"),
        ("MATCH (r:Rivers) RETURN r", "Table Rivers does not exist"),
        ("MATCH (r:River RETURN r", "Invalid input <MATCH (r:River RETURN> (line: 1, offset: 15)"),
        ("SELECT 1", "a query begins with MATCH, OPTIONAL MATCH, UNWIND, WITH or RETURN"),
        ("RETURN date('99999-01-01')", "the ladybug process died with signal 11"),  # Python has no such year
        ("RETURN interval('9999999 years')", "Python int too large"),
    ],
)
def test_an_invalid_query_is_told_what_is_wrong(failure, query, message):
    error = failure(query)

    assert (error.kind, error.message[: len(message)]) == ("invalid", message)


def test_a_graph_that_was_written_again_is_read_again(tmp_path):
    ladybug = pytest.importorskip("ladybug")
    source = Source(name="g", engine="ladybug", settings={"path": "g.lbug"}, folder=tmp_path)
    for label in ("A", "B"):
        with ladybug.Database(str(tmp_path / "g.lbug")) as database, ladybug.Connection(database) as connection:
            connection.execute(f"CREATE NODE TABLE {label} (n INT64, PRIMARY KEY (n))")
        with open_engine(source) as engine:
            assert engine.execute(f"MATCH (x:{label}) RETURN x", timeout=20, max_rows=1).error is None
