"""The worked examples of BuildingQA's document: twenty unit cases, and the shape of its building graph."""

from __future__ import annotations

import pytest

from pytest_queryeval.metrics.arity_f1 import arity_f1
from pytest_queryeval.metrics.entity_set_f1 import entity_set_f1
from pytest_queryeval.metrics.exact_match_f1 import exact_match_f1
from pytest_queryeval.metrics.row_matching_f1 import row_matching_f1
from pytest_queryeval.table import Table

PEOPLE = [("Alice", "30"), ("Bob", "25"), ("Charlie", "35")]


def people(rows: list[tuple[str, ...]], columns: tuple[str, ...] = ("name", "age")) -> Table:
    return Table(columns=columns, rows=rows)


GOLD = people(PEOPLE)
NOTHING = Table(columns=(), rows=[])


@pytest.mark.parametrize(
    ("metric", "gold", "predicted", "expected"),
    [
        (arity_f1, GOLD, people([], ("n", "a")), 1.0),
        (arity_f1, GOLD, people([], ("n",)), 2 / 3),
        (arity_f1, GOLD, GOLD, 1.0),
        (arity_f1, GOLD, people([("A",)], ("name",)), 2 / 3),
        (arity_f1, NOTHING, NOTHING, 1.0),
        (entity_set_f1, GOLD, GOLD, 1.0),
        (entity_set_f1, GOLD, people(PEOPLE, ("person", "years")), 1.0),
        (entity_set_f1, GOLD, people([*PEOPLE, ("David", "40")]), 6 / 7),
        (entity_set_f1, GOLD, people(PEOPLE[:2]), 0.8),
        (entity_set_f1, GOLD, people([("Z", "99")]), 0.0),
        (row_matching_f1, GOLD, GOLD, 1.0),
        (row_matching_f1, GOLD, people(PEOPLE, ("p", "a")), 1.0),
        (row_matching_f1, GOLD, people([(age, name) for name, age in reversed(PEOPLE)], ("a", "p")), 1.0),
        (row_matching_f1, GOLD, people(PEOPLE[:1]), 0.5),
        (row_matching_f1, GOLD, people([("Alice", "30"), ("Bob", "99")]), 0.4),
        (exact_match_f1, GOLD, GOLD, 1.0),
        (exact_match_f1, GOLD, people([PEOPLE[1], PEOPLE[2], PEOPLE[0]]), 1.0),
        (exact_match_f1, GOLD, people([("Alice", "30")], ("person", "years")), 0.5),
        (exact_match_f1, GOLD, people(PEOPLE[:2]), 0.8),
        (exact_match_f1, NOTHING, NOTHING, 1.0),
    ],
)
def test_unit_cases_of_the_document(metric, gold: Table, predicted: Table, expected: float) -> None:
    assert metric(gold, predicted) == pytest.approx(expected, abs=1e-9)


def test_a_missing_relation_keeps_entities_and_loses_rows_whatever_the_column_order() -> None:
    """Units feed some sensors each; the prediction pairs every unit with every sensor."""
    fed = [(f"unit{sensor % 11}", f"sensor{sensor}") for sensor in range(377)]
    crossed = [(f"unit{unit}", f"sensor{sensor}") for unit in range(11) for sensor in range(388)]
    gold, predicted = people(fed, ("eqp", "sensor")), people(crossed, ("ahu", "s"))
    swapped = people([(sensor, unit) for unit, sensor in crossed], ("s", "ahu"))

    assert (len(gold.rows), len(predicted.rows)) == (377, 4268)
    assert row_matching_f1(gold, predicted) == row_matching_f1(gold, swapped) == pytest.approx(0.162325, abs=1e-6)
    assert exact_match_f1(gold, predicted) == pytest.approx(0.162325, abs=1e-6)
    assert exact_match_f1(gold, swapped) == 0.0
    assert entity_set_f1(gold, predicted) == entity_set_f1(gold, swapped) > 0.9
    assert entity_set_f1(gold, people([(sensor,) for _, sensor in crossed], ("s",))) == 0.0
