"""What queries answer: cells of each type, the schema, failures of queries and of sources."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from queryeval_cypher.engine import LADYBUG

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source

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


def test_the_graph_is_listed_for_predictors_and_for_suggestions(graph):
    assert "CREATE NODE TABLE Lake (name STRING, area DECIMAL(8, 2), depth INT64, PRIMARY KEY (name));" in graph.ddl(
        timeout=20
    )
    assert "CREATE REL TABLE MEASURES (FROM Gauge TO River, FROM Gauge TO Lake, since DATE);" in graph.ddl(timeout=20)
    schema = graph.schema(timeout=20)
    assert schema.tables["river"] == ("name", "km", "navigable")
    assert (("measures", "_dst"), ("lake", "name")) in schema.foreign_keys


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("MATCH (r:River) RETURN r.length", "Cannot find property length for r"),
        ("MATCH (r:Rivers) RETURN r", "Table Rivers does not exist"),
        ("MATCH (r:River RETURN r", "Invalid input <MATCH (r:River RETURN> (line: 1, offset: 15)"),
        ("SELECT 1", "a query begins with MATCH, OPTIONAL MATCH, UNWIND, WITH or RETURN"),
        ("// nothing", "a query begins with"),
        ("RETURN '\ud800'", "the query holds half of a surrogate pair, which is not a character"),
        ("RETURN interval('9999999 years')", "Python int too large"),
    ],
)
def test_an_invalid_query_fails_with_one_line_on_what_is_wrong(failure, query, message):
    error = failure(query)

    assert error.kind == "invalid"
    assert error.message.startswith(message)
    assert "\n" not in error.message


def test_a_query_that_ends_the_process_fails_alone(failure, rows):
    assert "signal 11" in failure("RETURN date('99999-01-01')").message  # Python has no such year
    assert rows("RETURN 1") == [(1,)]


def opened(hosts, folder, **settings):
    return LADYBUG.open(Source(name="g", engine="ladybug", settings=settings, folder=folder), hosts)


def test_a_script_that_fails_is_reported_with_the_line_of_its_statement(hosts, tmp_path):
    script = "// a\nCREATE NODE TABLE A (n INT64, PRIMARY KEY (n));\n\nCREATE (:A {n: 1}); CREATE (:B);\n"
    (tmp_path / "g.cypher").write_text(script, encoding="utf-8")

    with pytest.raises(SourceError, match=r"g\.cypher:4: Table B does not exist$"):
        opened(hosts, tmp_path, script="g.cypher")


def test_a_file_that_is_no_graph_is_the_fault_of_the_source(hosts, tmp_path):
    for name, content in (("empty.lbug", b""), ("text.lbug", b"no graph" * 1_000)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=name):
            opened(hosts, tmp_path, path=name).execute("RETURN 1", timeout=20, max_rows=1)
        assert (tmp_path / name).read_bytes() == content


def test_a_graph_that_was_written_again_is_read_again(hosts, tmp_path):
    ladybug = pytest.importorskip("ladybug")
    for label in ("A", "B"):
        with ladybug.Database(str(tmp_path / "g.lbug")) as database, ladybug.Connection(database) as connection:
            connection.execute(f"CREATE NODE TABLE {label} (n INT64, PRIMARY KEY (n))")
        execution = opened(hosts, tmp_path, path="g.lbug").execute(
            f"MATCH (x:{label}) RETURN x", timeout=20, max_rows=1
        )
        assert execution.error is None
