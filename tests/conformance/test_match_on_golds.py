"""Exact set match on Spider's queries: against what they return, and against changes whose effect is known."""

import json
import re

import pytest
import sqlglot
from sqlglot import exp

from pytest_queryeval import METRICS
from pytest_queryeval.core.db_schema import Schema, schema_of_entry
from pytest_queryeval.languages import KINDS

SETS = ("dail_gpt4", "c3_chatgpt", "graphix_t5")
READ_SHARE = 0.99


@pytest.fixture(scope="module")
def schemas(conformance):
    entries = json.loads((conformance / "spider" / "tables.json").read_text(encoding="utf-8"))
    return {entry["db_id"]: schema_of_entry(entry) for entry in entries}


@pytest.fixture(scope="module", params=[5, pytest.param(1, marks=pytest.mark.slow)], ids=["every fifth", "all"])
def golds(request, records, schemas):
    return {pair["gold"]: schemas[pair["db_id"]] for pair in records("spider/dail_gpt4.jsonl")[:: request.param]}


def match(gold, predicted, schema):
    return METRICS["exact_set_match"].function(gold, predicted, dialect="sqlite", schema=schema)


def test_it_accepts_and_rejects_fewer_wrongly_than_the_published_verdict_and_reads_what_that_cannot(records, schemas):
    wrong = {"accepts": [0, 0], "rejects": [0, 0]}
    rejected, read = 0, 0
    for name in SETS:
        accepts = [0, 0]
        for pair in records(f"spider/{name}.jsonl"):
            scores = match(pair["gold"], pair["predicted"], schemas[pair["db_id"]])
            back = match(pair["predicted"], pair["gold"], schemas[pair["db_id"]]).value
            assert back in (scores.value, None), pair
            for rule, verdict in enumerate((scores.value, pair["exact_set_match_spider"])):
                accepts[rule] += verdict > pair["execution_accuracy_spider"]
                wrong["rejects"][rule] += verdict < pair["execution_accuracy_spider"]
            rejected += bool(pair["published_parse_error"] and pair["predicted_executes"])
            read += bool(
                pair["published_parse_error"] and "unreadable" not in scores.details.get("exact_set_match", {})
            )
        assert accepts[0] <= accepts[1], name
        wrong["accepts"] = [sum(both) for both in zip(wrong["accepts"], accepts, strict=True)]

    assert all(ours < published for ours, published in wrong.values())
    assert read >= READ_SHARE * rejected > 0


def test_the_verdict_is_the_same_both_ways_on_pairs_for_rare_cases(records, schemas):
    for pair in records("spider/edge.jsonl"):
        both = [
            match(*sides, schemas[pair["db_id"]]).value
            for sides in ((pair["gold"], pair["predicted"]), (pair["predicted"], pair["gold"]))
        ]
        assert both[0] == both[1] or None in both, pair


def test_every_query_of_the_battery_matches_itself_and_both_readers_find_the_same_features(records, golds):
    for record in records("battery.jsonl"):
        for side in ("gold", "predicted"):
            assert match(record[side], f"{record[side]} ", Schema()).value in (1.0, None), record[side]
    features = KINDS["sql"].features
    for gold in (*golds, *(pair["gold"] for pair in records("spider/edge.jsonl"))):
        assert features(gold, "sqlite") == features(f"-- which only sqlglot reads\n{gold}", "sqlite"), gold


def parsed(query):
    return sqlglot.parse_one(query, dialect="sqlite")


def written(tree):
    return tree.sql(dialect="sqlite")


def other_aliases(gold):
    return re.sub(r"\b[tT](\d)\b", r"other_\1", gold)


def other_case(gold):
    """Another case outside of quotes."""
    parts = re.split(r"""('[^']*'|"[^"]*")""", gold)
    return "".join(part if number % 2 else part.swapcase() for number, part in enumerate(parts))


def items_reversed(gold):
    tree = parsed(gold)
    if isinstance(tree, exp.Select):
        tree.set("expressions", tree.expressions[::-1])
    return written(tree)


def tables_after_commas(gold):
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


def conditions_reversed(gold):
    """AND and OR from behind, and the sides of comparisons swapped."""
    mirrors = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}

    def swapped(node):
        swap = type(node) if isinstance(node, exp.And | exp.Or) else mirrors.get(type(node))
        return node if swap is None else swap(this=node.expression, expression=node.this)

    tree = parsed(gold)
    return written(tree if tree.find(exp.Paren) else tree.transform(swapped))


DRESSES = (lambda gold: written(parsed(gold)), other_aliases, other_case)
DRESSES += (items_reversed, tables_after_commas, conditions_reversed)


def test_every_gold_matches_itself_in_another_dress(golds):
    for gold, schema in golds.items():
        for dress in DRESSES:
            assert match(gold, dress(gold), schema).value == 1.0, (gold, dress(gold))


def replaced(tree, node, make):
    if node is not None:
        node.replace(make(this=node.this.copy(), **({"expression": node.expression.copy()} if node.expression else {})))


def other_operator(tree):
    where = tree.find(exp.Where)
    replaced(tree, where and where.find(exp.EQ, exp.GT, exp.LT), exp.GTE)


def other_direction(tree):
    node = tree.find(exp.Ordered)
    if node is not None:
        node.set("desc", not node.args.get("desc"))
        node.set("nulls_first", not node.args["desc"])


def other_aggregate(tree):
    node = tree.find(exp.Max, exp.Min, exp.Sum, exp.Avg)
    replaced(tree, node, exp.Min if isinstance(node, exp.Max) else exp.Max)


def no_limit(tree):
    node = tree.find(exp.Limit)
    if node is not None:
        node.pop()


def a_negation(tree):
    node = tree.find(exp.Where)
    if node is not None:
        node.set("this", exp.Not(this=exp.Paren(this=node.this.copy())))


def one_item_more(tree):
    tree.find(exp.Select).select("1", copy=False)


def another_column(tree):
    """A column of the list by a name that there is not."""
    column = tree.find(exp.Select).find(exp.Column)
    if column is not None:
        column.set("this", exp.to_identifier("no_such_column"))


CHANGES = (other_operator, other_direction, other_aggregate, no_limit, a_negation, one_item_more, another_column)


def test_no_gold_matches_itself_once_it_asks_for_something_else(golds):
    tried = 0
    for gold, schema in golds.items():
        plain = written(parsed(gold))
        for change in CHANGES:
            tree = parsed(gold)
            change(tree)
            if written(tree) != plain:
                tried += 1
                assert match(gold, written(tree), schema).value == 0.0, (change.__name__, gold, written(tree))

    assert tried > 2 * len(golds)
