"""The worked examples of BuildingQA's document: twenty unit cases, and a building graph with five predictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation import Session
from pytest_queryeval.metrics import METRICS

arity_f1, entity_set_f1, row_matching_f1, exact_match_f1 = (
    METRICS[name].function for name in ("arity_f1", "entity_set_f1", "row_matching_f1", "exact_match_f1")
)
PEOPLE = [("Alice", "30"), ("Bob", "25"), ("Charlie", "35")]


def people(rows: list[tuple[str, ...]], columns: tuple[str, ...] = ("name", "age")) -> Table:
    return Table(columns=columns, rows=rows)


GOLD = people(PEOPLE)
NOTHING = Table(columns=(), rows=[])


@pytest.mark.parametrize(
    ("metric", "gold", "predicted", "expected"),
    [
        pytest.param(arity_f1, GOLD, people([], ("n", "a")), 1.0, id="arity: correct SPARQL"),
        pytest.param(arity_f1, GOLD, people([], ("n",)), 2 / 3, id="arity: incorrect SPARQL"),
        pytest.param(arity_f1, GOLD, GOLD, 1.0, id="arity: correct table"),
        pytest.param(arity_f1, GOLD, people([("A",)], ("name",)), 2 / 3, id="arity: incorrect table"),
        pytest.param(arity_f1, NOTHING, NOTHING, 1.0, id="arity: both empty"),
        pytest.param(entity_set_f1, GOLD, GOLD, 1.0, id="entity: perfect match"),
        pytest.param(entity_set_f1, GOLD, people(PEOPLE, ("person", "years")), 1.0, id="entity: mapped names"),
        pytest.param(entity_set_f1, GOLD, people([*PEOPLE, ("David", "40")]), 6 / 7, id="entity: superset"),
        pytest.param(entity_set_f1, GOLD, people(PEOPLE[:2]), 0.8, id="entity: subset"),
        pytest.param(entity_set_f1, GOLD, people([("Z", "99")]), 0.0, id="entity: no match"),
        pytest.param(row_matching_f1, GOLD, GOLD, 1.0, id="row: perfect match"),
        pytest.param(row_matching_f1, GOLD, people(PEOPLE, ("p", "a")), 1.0, id="row: mapped names"),
        pytest.param(
            row_matching_f1,
            GOLD,
            people([(age, name) for name, age in reversed(PEOPLE)], ("a", "p")),
            1.0,
            id="row: shuffled order, mapped names",
        ),
        pytest.param(row_matching_f1, GOLD, people(PEOPLE[:1]), 0.5, id="row: subset"),
        pytest.param(
            row_matching_f1, GOLD, people([("Alice", "30"), ("Bob", "99")]), 0.4, id="row: partial content mismatch"
        ),
        pytest.param(exact_match_f1, GOLD, GOLD, 1.0, id="exact: perfect match"),
        pytest.param(exact_match_f1, GOLD, people([*PEOPLE[1:], PEOPLE[0]]), 1.0, id="exact: shuffled order"),
        pytest.param(exact_match_f1, GOLD, people(PEOPLE[:1], ("person", "years")), 0.5, id="exact: schema mismatch"),
        pytest.param(exact_match_f1, GOLD, people(PEOPLE[:2]), 0.8, id="exact: subset"),
        pytest.param(exact_match_f1, NOTHING, NOTHING, 1.0, id="exact: both empty"),
    ],
)
def test_unit_cases_of_the_document(metric, gold: Table, predicted: Table, expected: float) -> None:
    assert metric(gold, predicted) == pytest.approx(expected, abs=1e-9)


# The document's building has 11 air handling units and 388 sensors (4268 = 11 x 388), and 377 pairs of a unit and a
# sensor that it serves. With 377 different sensors among these, 9 is the only number of units that gives the
# document's entity score: precision (9/11 + 377/388) / 2, recall 1.
UNITS, FEEDING_UNITS, SENSORS, SERVED_SENSORS = 11, 9, 388, 377

BRICK = "PREFIX brick: <https://brickschema.org/schema/Brick#>\n"
RELATED = """
    ?{unit} a brick:Air_Handling_Unit .
    ?vav a brick:VAV .
    ?{sensor} a brick:Zone_Air_Temperature_Sensor .
    ?{unit} brick:feeds ?vav .
    ?vav brick:hasPoint ?{sensor} .
"""
UNRELATED = "?ahu a brick:Air_Handling_Unit . ?s a brick:Zone_Air_Temperature_Sensor ."
GOLD_QUERY = BRICK + "SELECT DISTINCT ?eqp ?sensor WHERE {" + RELATED.format(unit="eqp", sensor="sensor") + "}"
PREDICTIONS = {
    "missing relation": BRICK + "SELECT DISTINCT ?ahu ?s WHERE {" + UNRELATED + "}",
    "swapped columns": BRICK + "SELECT DISTINCT ?s ?ahu WHERE {" + UNRELATED + "}",
    "extra column": BRICK
    + "SELECT DISTINCT ?eqp ?vav ?sensor WHERE {"
    + RELATED.format(unit="eqp", sensor="sensor")
    + "}",
    "fewer columns": BRICK + "SELECT DISTINCT ?s WHERE {" + UNRELATED + "}",
    "other names": BRICK + "SELECT DISTINCT ?e ?s WHERE {" + RELATED.format(unit="e", sensor="s") + "}",
}


def building() -> str:
    """A graph of our own with the document's numbers, in Turtle."""
    lines = ["@prefix brick: <https://brickschema.org/schema/Brick#> .", "@prefix : <http://building.example/> ."]
    lines += [f":ahu{unit} a brick:Air_Handling_Unit ." for unit in range(UNITS)]
    lines += [f":sensor{sensor} a brick:Zone_Air_Temperature_Sensor ." for sensor in range(SENSORS)]
    for number in range(SERVED_SENSORS):
        lines.append(f":vav{number} a brick:VAV ; brick:hasPoint :sensor{number} .")
        lines.append(f":ahu{number % FEEDING_UNITS} brick:feeds :vav{number} .")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Table]]:
    folder = tmp_path_factory.mktemp("building")
    Path(folder, "building.ttl").write_text(building(), encoding="utf-8")
    source = Source(name="building", engine="rdf", settings={"files": ["building.ttl"]}, folder=folder)
    with Session() as session:
        engine = session.engine(source)
        queries = {"gold": GOLD_QUERY, **PREDICTIONS}
        yield {name: engine.execute(text, timeout=30.0, max_rows=10_000).answer for name, text in queries.items()}


@pytest.mark.parametrize(
    ("name", "rows", "arity", "entity", "row", "exact"),
    [
        ("missing relation", 4268, 1.0, 0.944544, 0.162325, 0.162325),
        ("swapped columns", 4268, 1.0, 0.944544, 0.162325, 0.0),
        ("extra column", 377, 0.8, 1.0, 1.0, 0.0),
        ("fewer columns", 388, 2 / 3, 0.0, 0.0, 0.0),
        ("other names", 377, 1.0, 1.0, 1.0, 1.0),
    ],
)
def test_building_graph_of_the_document(
    name: str, rows: int, arity: float, entity: float, row: float, exact: float, answers: dict[str, Table]
) -> None:
    gold, predicted = answers["gold"], answers[name]
    expected = {"arity_f1": arity, "entity_set_f1": entity, "row_matching_f1": row, "exact_match_f1": exact}

    scores = {metric: METRICS[metric].function(gold, predicted) for metric in expected}

    assert (len(gold.rows), len(predicted.rows)) == (377, rows)
    assert scores == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("units", [8, 9, 10, 11])
def test_nine_feeding_units_are_the_only_number_that_gives_the_entity_score_of_the_document(units: int) -> None:
    fed = [(f"unit{sensor % units}", f"sensor{sensor}") for sensor in range(SERVED_SENSORS)]
    crossed = [(f"unit{unit}", f"sensor{sensor}") for unit in range(UNITS) for sensor in range(SENSORS)]
    gold, predicted = people(fed, ("eqp", "sensor")), people(crossed, ("ahu", "s"))

    scores = entity_set_f1(gold, predicted)

    assert (scores == pytest.approx(0.944544, abs=1e-6)) == (units == FEEDING_UNITS)
    assert row_matching_f1(gold, predicted) == pytest.approx(0.162325, abs=1e-6)
