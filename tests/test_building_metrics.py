"""The worked examples of BuildingQA's document: twenty unit cases, and a building graph with five predictions."""

import pytest

from pytest_queryeval import METRICS
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import Table
from pytest_queryeval.testing import open_engine

PEOPLE = [("Alice", "30"), ("Bob", "25"), ("Charlie", "35")]
NAMES = ("name", "age")
RENAMED = ("person", "years")
BUILDING_METRICS = ("arity_f1", "entity_set_f1", "row_matching_f1", "exact_match_f1")


def score(metric, gold, predicted):
    return METRICS[metric].function(gold, predicted)


@pytest.mark.parametrize(
    ("metric", "columns", "rows", "expected"),
    [
        ("arity_f1", ("n", "a"), [], 1.0),
        ("arity_f1", ("n",), [], 2 / 3),
        ("arity_f1", NAMES, PEOPLE, 1.0),
        ("arity_f1", ("name",), [("A",)], 2 / 3),
        ("entity_set_f1", NAMES, PEOPLE, 1.0),
        ("entity_set_f1", RENAMED, PEOPLE, 1.0),
        ("entity_set_f1", NAMES, [*PEOPLE, ("David", "40")], 6 / 7),
        ("entity_set_f1", NAMES, PEOPLE[:2], 0.8),
        ("entity_set_f1", NAMES, [("Z", "99")], 0.0),
        ("row_matching_f1", NAMES, PEOPLE, 1.0),
        ("row_matching_f1", RENAMED, PEOPLE, 1.0),
        ("row_matching_f1", RENAMED[::-1], [row[::-1] for row in reversed(PEOPLE)], 1.0),
        ("row_matching_f1", NAMES, PEOPLE[:1], 0.5),
        ("row_matching_f1", NAMES, [("Alice", "30"), ("Bob", "99")], 0.4),
        ("exact_match_f1", NAMES, PEOPLE, 1.0),
        ("exact_match_f1", NAMES, [*PEOPLE[1:], PEOPLE[0]], 1.0),
        ("exact_match_f1", RENAMED, PEOPLE[:1], 0.5),
        ("exact_match_f1", NAMES, PEOPLE[:2], 0.8),
    ],
)
def test_unit_cases_of_the_document(metric, columns, rows, expected):
    gold, predicted = Table(columns=NAMES, rows=PEOPLE), Table(columns=columns, rows=rows)

    assert score(metric, gold, predicted) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", ["arity_f1", "exact_match_f1"])
def test_two_empty_answers_are_equal(metric):
    assert score(metric, *[Table(columns=(), rows=[])] * 2) == 1.0


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


def building():
    """A graph of our own with the document's numbers, in Turtle."""
    lines = ["@prefix brick: <https://brickschema.org/schema/Brick#> .", "@prefix : <http://building.example/> ."]
    lines += [f":ahu{unit} a brick:Air_Handling_Unit ." for unit in range(UNITS)]
    lines += [f":sensor{sensor} a brick:Zone_Air_Temperature_Sensor ." for sensor in range(SENSORS)]
    for number in range(SERVED_SENSORS):
        lines.append(f":vav{number} a brick:VAV ; brick:hasPoint :sensor{number} .")
        lines.append(f":ahu{number % FEEDING_UNITS} brick:feeds :vav{number} .")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("building")
    (folder / "building.ttl").write_text(building(), encoding="utf-8")
    with open_engine(
        Source(name="building", engine="rdf", settings={"files": ["building.ttl"]}, folder=folder)
    ) as engine:
        queries = {"gold": GOLD_QUERY, **PREDICTIONS}
        yield {name: engine.execute(text, timeout=30.0, max_rows=10_000).answer for name, text in queries.items()}


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("missing relation", 4268, (1.0, 0.944544, 0.162325, 0.162325)),
        ("swapped columns", 4268, (1.0, 0.944544, 0.162325, 0.0)),
        ("extra column", 377, (0.8, 1.0, 1.0, 0.0)),
        ("fewer columns", 388, (2 / 3, 0.0, 0.0, 0.0)),
        ("other names", 377, (1.0, 1.0, 1.0, 1.0)),
    ],
)
def test_building_graph_of_the_document(name, rows, expected, answers):
    gold, predicted = answers["gold"], answers[name]

    assert (len(gold.rows), len(predicted.rows)) == (377, rows)
    scores = [score(metric, gold, predicted) for metric in BUILDING_METRICS]
    assert scores == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("units", [8, 9, 10, 11])
def test_nine_feeding_units_are_the_only_number_that_gives_the_entity_score_of_the_document(units):
    fed = [(f"unit{sensor % units}", f"sensor{sensor}") for sensor in range(SERVED_SENSORS)]
    crossed = [(f"unit{unit}", f"sensor{sensor}") for unit in range(UNITS) for sensor in range(SENSORS)]
    gold, predicted = Table(columns=("eqp", "sensor"), rows=fed), Table(columns=("ahu", "s"), rows=crossed)

    assert (score("entity_set_f1", gold, predicted) == pytest.approx(0.944544, abs=1e-6)) == (units == FEEDING_UNITS)
    assert score("row_matching_f1", gold, predicted) == pytest.approx(0.162325, abs=1e-6)
