"""The soft F1 and its relatives against the scores of the published evaluators, on made tables."""

from __future__ import annotations

from typing import Any

from published_tables import WORKBOOK, columns_collapse, differing, neither_has_values, nulls_as_in_pandas_3
from reference_records import Records

from pytest_queryeval.core.table import Table
from pytest_queryeval.metrics import METRICS


def without_names(rows: list[list[Any]]) -> Table:
    """A table of rows alone, as wide as its first row."""
    width = len(rows[0]) if rows else 0
    return Table(columns=tuple(f"c{n}" for n in range(width)), rows=[tuple(row) for row in rows])


def with_names(table: dict[str, Any]) -> Table:
    return Table(columns=tuple(table["columns"]), rows=[tuple(row) for row in table["rows"]])


def expected_of(record: dict[str, Any]) -> dict[str, float]:
    workbook = {name: record["denodo"][key] / scale for name, (key, scale) in WORKBOOK.items()}
    return {"soft_f1_bird": record["bird_soft_f1"], **workbook}


def test_published_scores_come_out_on_every_pair_of_tables(records: Records) -> None:
    kinds = set()

    for record in records("result_tables.jsonl"):
        gold, predicted = without_names(record["gold"]), without_names(record["pred"])
        for name, expected in expected_of(record).items():
            if differing(name, gold, predicted, expected) and not neither_has_values(name, gold, predicted):
                kinds.add((record["id"], name, expected, METRICS[name].function(gold, predicted)))

    assert kinds == set()


def test_published_scores_of_the_workbook_come_out_on_every_pair_of_tables(records: Records) -> None:
    keys = {"soft_f1_denodo": "bird_f1", "subset_score_denodo": "subsetting_percentage"}
    unexplained, named = set(), set()

    for record in records("denodo.jsonl"):
        gold, predicted = with_names(record["gold"]), with_names(record["pred"])
        for name in WORKBOOK:
            key = keys.get(name, "percent_overlap")
            if not differing(name, gold, predicted, record[key] / WORKBOOK[name][1]):
                continue
            strikes = (
                neither_has_values(name, gold, predicted)
                or columns_collapse(gold, predicted)
                or nulls_as_in_pandas_3(name, gold, predicted)
            )
            (named if strikes else unexplained).add((record["id"], name))

    assert unexplained == set()
    assert len(named) <= 16
