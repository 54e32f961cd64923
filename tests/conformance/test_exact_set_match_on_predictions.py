"""Exact set match on real predictions: against what the queries return, and against changes whose effect is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import sqlglot
from reference_records import Records
from sqlglot import exp

from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.languages.sql.match import Match, match_queries

Pair: TypeAlias = dict[str, Any]
Golds: TypeAlias = list[tuple[str, Schema]]
SETS = ["dail_gpt4", "c3_chatgpt", "graphix_t5"]
READ_SHARE = 0.99


@pytest.fixture(scope="module")
def schemas(conformance: Path) -> dict[str, Schema]:
    entries = json.loads((conformance / "spider" / "tables.json").read_text(encoding="utf-8"))
    return {entry["db_id"]: schema_of_entry(entry) for entry in entries}


@pytest.fixture(scope="module")
def pairs(records: Records) -> list[Pair]:
    return [pair for name in SETS for pair in records(f"spider/{name}.jsonl")]


@pytest.fixture(scope="module")
def golds(pairs: list[Pair], schemas: dict[str, Schema]) -> Golds:
    return list({pair["gold"]: (pair["gold"], schemas[pair["db_id"]]) for pair in pairs}.values())


def match(gold: str, predicted: str, schema: Schema) -> Match:
    match = match_queries(gold, predicted, "sqlite", schema)
    assert match is not None, gold
    return match


def wrong(pairs: list[Pair], verdict: Callable[[Pair], bool]) -> tuple[int, int]:
    """False accepts and false rejects, by whether both queries return the same."""
    judged = [pair for pair in pairs if pair["execution_accuracy_spider"] is not None]
    accepts = sum(verdict(pair) and not pair["execution_accuracy_spider"] for pair in judged)
    rejects = sum(bool(not verdict(pair) and pair["execution_accuracy_spider"]) for pair in judged)
    return accepts, rejects


def test_it_accepts_no_more_wrongly_than_the_published_verdict_and_over_all_sets_accepts_and_rejects_fewer(
    records, schemas
):
    ours, published = [], []
    for name in SETS:
        pairs = records(f"spider/{name}.jsonl")
        ours.append(wrong(pairs, lambda pair: match(pair["gold"], pair["predicted"], schemas[pair["db_id"]]).exact))
        published.append(wrong(pairs, lambda pair: bool(pair["exact_set_match_spider"])))

        assert ours[-1][0] <= published[-1][0], name

    assert sum(accepts for accepts, _ in ours) < sum(accepts for accepts, _ in published)
    assert sum(rejects for _, rejects in ours) < sum(rejects for _, rejects in published)


def test_what_the_published_grammar_rejects_is_read(pairs, schemas):
    rejected = [pair for pair in pairs if pair["published_parse_error"]]
    read = [pair for pair in rejected if not match(pair["gold"], pair["predicted"], schemas[pair["db_id"]]).problem]

    assert rejected
    runs = [pair for pair in rejected if pair["predicted_executes"]]
    assert len(read) >= READ_SHARE * len(runs)


def test_every_gold_matches_itself_in_another_dress(golds):
    dresses = [restored, other_aliases, other_case, items_reversed, tables_after_commas, conditions_reversed]

    for gold, schema in golds:
        for dress in dresses:
            assert match(gold, dress(gold), schema).exact, (dress.__name__, gold, dress(gold))


def test_every_query_of_the_battery_matches_itself(records):
    for record in records("battery.jsonl"):
        for side in ("gold", "predicted"):
            match = match_queries(record[side], f"{record[side]} ", "sqlite", Schema())
            assert match is None or match.exact, record[side]


@pytest.mark.parametrize("name", [*SETS, "edge"])
def test_the_verdict_is_the_same_both_ways(name, records, schemas):
    for pair in records(f"spider/{name}.jsonl"):
        both = match_queries(pair["gold"], pair["predicted"], "sqlite", schemas[pair["db_id"]])
        back = match_queries(pair["predicted"], pair["gold"], "sqlite", schemas[pair["db_id"]])
        if both is not None and back is not None:
            assert both.exact == back.exact, pair


def test_no_gold_matches_itself_once_it_asks_for_something_else(golds):
    changes = [other_operator, other_direction, other_aggregate, no_limit, a_negation, one_item_more, another_column]

    tried = 0
    for gold, schema in golds:
        for change in changes:
            changed = change(gold)
            if changed is not None:
                tried += 1
                assert not match(gold, changed, schema).exact, (change.__name__, gold, changed)

    assert tried > len(golds)


def parsed(query: str) -> exp.Expr:
    return sqlglot.parse_one(query, dialect="sqlite")


def written(tree: exp.Expr) -> str:
    return tree.sql(dialect="sqlite")


def restored(gold: str) -> str:
    return written(parsed(gold))


def other_aliases(gold: str) -> str:
    return re.sub(r"\b[tT](\d)\b", r"other_\1", gold)


def other_case(gold: str) -> str:
    """Another case outside of quotes."""
    parts = re.split(r"""('[^']*'|"[^"]*")""", gold)
    return "".join(part if number % 2 else part.swapcase() for number, part in enumerate(parts))


def items_reversed(gold: str) -> str:
    tree = parsed(gold)
    for select in tree.find_all(exp.Select):
        if not isinstance(select.parent, exp.SetOperation) and select is tree:
            select.set("expressions", select.expressions[::-1])
    return written(tree)


def tables_after_commas(gold: str) -> str:
    """Joins as a list of tables in FROM, the last one first, with their conditions in WHERE."""
    tree = parsed(gold)
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        if not joins or any(join.side or join.args.get("using") for join in joins):
            continue
        sources = [select.args["from_"].this, *(join.this for join in joins)][::-1]
        conditions = [join.args["on"] for join in joins if join.args.get("on")]
        select.set("from_", exp.From(this=sources[0]))
        select.set("joins", [exp.Join(this=source) for source in sources[1:]])
        for condition in conditions:
            select.where(condition, copy=False)
    return written(tree)


def conditions_reversed(gold: str) -> str:
    """AND and OR from behind, and the sides of comparisons swapped."""

    def swapped(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.And | exp.Or):
            left, right = node.this, node.expression
            node.set("this", right)
            node.set("expression", left)
            return node
        mirrors = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
        if type(node) in mirrors:
            return mirrors[type(node)](this=node.expression, expression=node.this)
        return node

    tree = parsed(gold)
    return written(tree.transform(swapped)) if not list(tree.find_all(exp.Paren)) else written(tree)


def first(gold: str, *sorts: type[exp.Expr]) -> tuple[exp.Expr, exp.Expr | None]:
    tree = parsed(gold)
    return tree, tree.find(*sorts)


def other_operator(gold: str) -> str | None:
    tree = parsed(gold)
    where = tree.find(exp.Where)
    node = where.find(exp.EQ, exp.GT, exp.LT) if where else None
    if node is None:
        return None
    node.replace(exp.GTE(this=node.this.copy(), expression=node.expression.copy()))
    return written(tree)


def other_direction(gold: str) -> str | None:
    tree, node = first(gold, exp.Ordered)
    if node is None:
        return None
    node.set("desc", not node.args.get("desc"))
    node.set("nulls_first", not node.args["desc"])
    return written(tree)


def other_aggregate(gold: str) -> str | None:
    tree, node = first(gold, exp.Max, exp.Min, exp.Sum, exp.Avg)
    if node is None:
        return None
    node.replace((exp.Max if isinstance(node, exp.Min | exp.Sum | exp.Avg) else exp.Min)(this=node.this.copy()))
    return written(tree)


def no_limit(gold: str) -> str | None:
    tree, node = first(gold, exp.Limit)
    if node is None:
        return None
    node.pop()
    return written(tree)


def a_negation(gold: str) -> str | None:
    tree, node = first(gold, exp.Where)
    if node is None:
        return None
    node.set("this", exp.Not(this=exp.Paren(this=node.this.copy())))
    return written(tree)


def one_item_more(gold: str) -> str:
    tree, select = first(gold, exp.Select)
    assert isinstance(select, exp.Select)
    return written(select.select("1", copy=False).root() if select is tree else _with_item(tree, select))


def _with_item(tree: exp.Expr, select: exp.Select) -> exp.Expr:
    select.select("1", copy=False)
    return tree


def another_column(gold: str) -> str | None:
    """A column of the list by a name that there is not."""
    tree, select = first(gold, exp.Select)
    column = select.find(exp.Column) if select else None
    if column is None:
        return None
    column.set("this", exp.to_identifier("no_such_column"))
    return written(tree)
