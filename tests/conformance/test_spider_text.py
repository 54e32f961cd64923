"""Spider's published scores of query text: three sets of real predictions, the tables printed for them, and probes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from reference_records import Records

from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.match import (
    ScoredPair,
    comparable_view,
    exact_match,
    partial_match,
    spider_table,
    table_lines,
)
from pytest_queryeval.languages.sql.rewriting import tree_features
from pytest_queryeval.languages.sql.spider_grammar import UnreadableQueryError, published_view
from pytest_queryeval.languages.sql.view import FEATURES, hardness

Pair: TypeAlias = dict[str, Any]
SETS = ["dail_gpt4", "c3_chatgpt", "graphix_t5"]
ALL = [*SETS, "edge"]


@pytest.fixture(scope="module")
def schemas(conformance: Path) -> dict[str, Schema]:
    """Of tables.json alone: the published run took names from the database files, which agree."""
    entries = json.loads((conformance / "spider" / "tables.json").read_text(encoding="utf-8"))
    return {entry["db_id"]: schema_of_entry(entry) for entry in entries}


@pytest.fixture(scope="module")
def pairs(records: Records) -> Callable[[str], list[Pair]]:
    """The pairs of a set that the published evaluation could score: it ends where it cannot read a gold."""
    return lambda name: [pair for pair in records(f"spider/{name}.jsonl") if pair["hardness"] is not None]


def rejected(query: str, schema: Schema | None) -> bool:
    try:
        published_view(query, schema)
    except UnreadableQueryError:
        return True
    return False


def scored(pair: Pair, schema: Schema) -> ScoredPair:
    gold, predicted = (comparable_view(pair[side], schema) for side in ("gold", "predicted"))
    components = partial_match(gold, predicted)
    return ScoredPair(
        hardness=hardness(published_view(pair["gold"], schema)),
        exact=exact_match(gold, predicted, components),
        components=components,
    )


@pytest.mark.parametrize("name", ALL)
def test_golds_have_the_published_hardness_with_and_without_a_schema(name, pairs, schemas):
    for pair in pairs(name):
        assert hardness(published_view(pair["gold"], schemas[pair["db_id"]])) == pair["hardness"], pair["gold"]
        assert hardness(published_view(pair["gold"])) == pair["hardness"], pair["gold"]


@pytest.mark.parametrize("name", ALL)
def test_the_same_predictions_are_rejected(name, pairs, schemas):
    for pair in pairs(name):
        assert rejected(pair["predicted"], schemas[pair["db_id"]]) == bool(pair["published_parse_error"]), pair


@pytest.mark.parametrize("name", ALL)
def test_verdicts_and_components_are_the_published_ones(name, pairs, schemas):
    for pair in pairs(name):
        scores = scored(pair, schemas[pair["db_id"]])
        totals = {
            component: [part.gold_total, part.pred_total, int(part.matched)]
            for component, part in scores.components.items()
        }

        assert scores.exact == pair["exact_set_match_spider"], pair
        assert totals == pair["partial"], pair


def test_golds_that_ended_the_published_run_are_rejected(records, schemas):
    unscored = [pair for pair in records("spider/edge.jsonl") if pair["published_gold_error"]]

    assert unscored
    assert all(rejected(pair["gold"], schemas[pair["db_id"]]) for pair in unscored)


@pytest.mark.parametrize("name", SETS)
def test_the_printed_table_is_equal_in_every_cell(name, pairs, schemas, conformance):
    published = (conformance / "spider" / f"{name}.table.txt").read_text(encoding="utf-8")

    table = spider_table(scored(pair, schemas[pair["db_id"]]) for pair in pairs(name))

    assert "\n".join(table_lines(table)).strip() == published.strip()


@pytest.mark.parametrize("name", ["dail_gpt4", "edge"])
def test_both_readers_find_the_same_features(records: Records, name: str) -> None:
    for gold in {pair["gold"] for pair in records(f"spider/{name}.jsonl")}:
        query = parse_query(gold, "sqlite")

        of_tree = () if query.whole_tree is None else {*tree_features(query.whole_tree)}
        assert query.features == tuple(name for name in FEATURES if name in of_tree), gold
