"""Readers of gold and predicted: queries, tables, and the files that hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.yaml_nodes import BLOCK_HINT
from pytest_queryeval.kinds import Kind
from pytest_queryeval.loading.stated_files import stated_file
from pytest_queryeval.loading.stated_tables import TABLE_KEYS, stated_table
from pytest_queryeval.loading.values import each, entries, items, text
from pytest_queryeval.model import Stated

GOLD_FORMS = ("gold", "gold_any", "gold_table", "gold_file")
PREDICTED_FORMS = ("predicted", "predicted_table", "predicted_file")
EMPTY_PREDICTED = 'leave it out, or write "" for an empty answer'

# What SQL takes for a comment: YAML or the folding of lines would make a query end there.
_COMMENT = re.compile(r"--|(?:^|\s)#")


def read_golds(case: Node, kind: Kind) -> tuple[Stated, ...]:
    """Read the right answers of a case; raises `CaseError` unless one form of gold is there and states something."""
    named = entries(case)
    form = _only_form(named, GOLD_FORMS)
    if form is None:
        raise case.problem("no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`")
    node = named[form]
    if form == "gold":
        return (_gold(node, kind),)
    if form == "gold_any":
        return _alternatives(node, kind)
    return (_answer(node, kind) if form == "gold_table" else stated_file(node, kind),)


def read_predicted(case: Node, kind: Kind) -> Stated | None:
    """Read the prediction that a case states, if it does; raises `CaseError`."""
    named = entries(case)
    form = _only_form(named, PREDICTED_FORMS)
    if form is None:
        return None
    node = named[form]
    if node.empty:
        raise node.problem(f"'{form}' is null: {EMPTY_PREDICTED}")
    if form == "predicted":
        return Stated(query=_query(node, kind))
    return _answer(node, kind) if form == "predicted_table" else stated_file(node, kind)


def _only_form(named: Mapping[str, Node], forms: Sequence[str]) -> str | None:
    found = [form for form in forms if form in named]
    if len(found) > 1:
        raise named[found[1]].problem(f"{' and '.join(found)}: a case has only one of them")
    return found[0] if found else None


def _gold(node: Node, kind: Kind) -> Stated:
    query = _query(node, kind)
    if node.empty or not query.strip():
        raise node.problem("gold is empty")
    return Stated(query=query)


def _alternatives(node: Node, kind: Kind) -> tuple[Stated, ...]:
    if not items(node):
        raise node.problem("gold_any is empty")
    return tuple(each(items(node), lambda item: _answer(item, kind) if _is_table(item) else _gold(item, kind)))


def _is_table(node: Node) -> bool:
    return isinstance(node.value, dict) and not node.value.keys().isdisjoint(TABLE_KEYS)


def _query(node: Node, kind: Kind) -> str:
    """Return a query's text; one that YAML cut, or joined lines of so that a comment swallows the rest, is refused."""
    if node.form == "mapping":
        # `gold:` with `SELECT a: b` on the next line is a mapping for YAML.
        raise node.problem(f"expected a query, found a mapping: {BLOCK_HINT}, and a table under `gold_table`")
    query = text(node)
    if kind.has_queries and _is_trap(query, node):
        raise node.problem(f"YAML would change this query, since it holds `--` or `#`: {BLOCK_HINT}")
    return query


def _is_trap(query: str, node: Node) -> bool:
    if node.form in ("literal", "quoted"):
        return False
    return node.form in ("cut", "clipped") or _COMMENT.search(query) is not None


def _answer(node: Node, kind: Kind) -> Stated:
    return Stated(answer=stated_table(node, kind))
