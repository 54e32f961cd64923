"""Two queries compared: by their clauses, and by the ten components of Spider's published evaluation with its verdict.

Components and verdict take normalised views, gold first. A prediction that could not be read is `EMPTY_VIEW`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import get_args

from pytest_queryeval.core.case_report import ComponentName
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.parsed_query import parse_query
from pytest_queryeval.languages.sql.view import EMPTY_VIEW, View


@dataclass(frozen=True, slots=True)
class Component:
    """How many items of one component gold and predicted have, and how many they share."""

    gold_total: int
    pred_total: int
    count: int

    @property
    def matched(self) -> bool:
        """Whether the component agrees as a whole, which is what tables and the verdict count."""
        return self.gold_total == self.pred_total == self.count

    @property
    def accuracy(self) -> float:
        """`count / pred_total`, the precision of the prediction; without predicted items 1 if gold has none either."""
        return _share(self.count, self.pred_total, empty=self.gold_total == 0)

    @property
    def recall(self) -> float:
        """`count / gold_total`; without gold items 1 if the prediction has none either."""
        return _share(self.count, self.gold_total, empty=self.pred_total == 0)

    @property
    def f1(self) -> float:
        """`2 count / (gold_total + pred_total)`, the harmonic mean of accuracy and recall; 1 without any item."""
        return _share(2 * self.count, self.gold_total + self.pred_total, empty=True)


def _share(count: int, total: int, *, empty: bool) -> float:
    return count / total if total else float(empty)


def partial_match(gold: View, predicted: View) -> dict[ComponentName, Component]:
    """Return the components of a pair by name, in the order in which tables list them.

    `select` and `where` are multisets of items and conditions, `select_no_agg` and `where_no_op` of their expressions
    alone, `group_no_having` of the names of columns without their tables. `group` and `order` count 1 if the clause
    exists, and agree iff the lists do, with HAVING and with the presence of LIMIT. `iuen` counts set operations, at
    most one per query as chains nest to the right, which agree iff their second queries match exactly; `keywords`
    counts the words that the function `keywords` returns. `and_or` is 1 of 1 if both use the same connectors in
    WHERE; otherwise its totals are swapped, as published: `gold_total` counts those of the prediction.
    """
    same_group = gold.group == predicted.group and gold.having == predicted.having
    same_order = gold.order == predicted.order and (gold.limit is None) == (predicted.limit is None)
    same_set_operation = gold.operation == predicted.operation
    if same_set_operation and gold.arm is not None and predicted.arm is not None:
        same_set_operation = exact_match(gold.arm, predicted.arm)
    connectors, predicted_connectors = set(gold.where.connectors), set(predicted.where.connectors)
    same_connectors = connectors == predicted_connectors
    words, predicted_words = keywords(gold), keywords(predicted)
    return {
        "select": _overlap(gold.select, predicted.select),
        "select_no_agg": _overlap(
            [item.expression for item in gold.select], [item.expression for item in predicted.select]
        ),
        "where": _overlap(gold.where.terms, predicted.where.terms),
        "where_no_op": _overlap(
            [term.left for term in gold.where.terms], [term.left for term in predicted.where.terms]
        ),
        "group_no_having": _overlap([key.column for key in gold.group], [key.column for key in predicted.group]),
        "group": _clause(bool(gold.group), bool(predicted.group), same_group),
        "order": _clause(gold.order is not None, predicted.order is not None, same_order),
        "and_or": Component(1, 1, 1) if same_connectors else Component(len(predicted_connectors), len(connectors), 0),
        "iuen": _clause(gold.arm is not None, predicted.arm is not None, same_set_operation),
        "keywords": Component(len(words), len(predicted_words), len(words & predicted_words)),
    }


COMPONENTS: tuple[ComponentName, ...] = get_args(ComponentName)


def exact_match(gold: View, predicted: View, components: Mapping[ComponentName, Component] | None = None) -> bool:
    """Return the published verdict: every component agrees, and so do the tables of FROM in any order.

    `components` are those of the same pair, if known already. Conditions of joins are not compared, and a
    gold without tables agrees with any.
    """
    parts = partial_match(gold, predicted) if components is None else components
    if not all(part.matched for part in parts.values()):
        return False
    return not gold.tables or _overlap(gold.tables, predicted.tables).matched


def keywords(view: View) -> set[Hashable]:
    """Return the keywords of a query, without those of nested queries and of the query after a set operation.

    These are where, group, having, order and its direction, limit, the set operation, or, not, in, like.
    """
    clauses = {
        "where": len(view.where),
        "group": len(view.group),
        "having": len(view.having),
        "limit": view.limit is not None,
    }
    words: set[Hashable] = {word for word, present in clauses.items() if present}
    if view.order is not None:
        words |= {"order", view.order.direction}
    if view.operation is not None:
        words.add(view.operation)
    if "or" in view.connectors():
        words.add("or")
    for term in view.terms():
        if term.negated:
            words.add("not")
        if term.operator in ("in", "like"):
            words.add(term.operator)
    return words


def _overlap(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> Component:
    """Return the sizes of two multisets and of their intersection."""
    if not gold or not predicted:
        return Component(len(gold), len(predicted), 0)
    if gold == predicted:
        return Component(len(gold), len(gold), len(gold))
    return Component(len(gold), len(predicted), (Counter(gold) & Counter(predicted)).total())


def _clause(in_gold: bool, in_predicted: bool, same: bool) -> Component:
    return Component(int(in_gold), int(in_predicted), int(in_gold and in_predicted and same))


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How two queries compare: the clauses in which they differ, their components, what is wrong with predicted.

    `unread` is true where nothing of predicted could be read.
    """

    differs: tuple[str, ...]
    components: Mapping[ComponentName, Component] = field(repr=False)
    broken: str = ""
    unread: bool = False

    @property
    def exact(self) -> bool:
        """Whether all clauses agree, and the whole of predicted could be read."""
        return not self.differs and not self.broken


@lru_cache(maxsize=256)  # a dozen metrics compare the same pair
def match_queries(
    gold: str, predicted: str, dialect: str, schema: Schema, gold_dialect: str | None = None
) -> Match | None:
    """Compare the texts of two queries; return None if gold cannot be read and predicted is another text.

    `gold_dialect` is the dialect of gold; None if both queries have the same one.

    Where predicted cannot be read, or only in part, `broken` says why, and the components are those of what could be
    read.
    """
    gold_reading = parse_query(gold, dialect if gold_dialect is None else gold_dialect).reading(schema)
    predicted_reading = parse_query(predicted, dialect).reading(schema)
    if gold_reading.problem:
        return Match(differs=(), components=partial_match(EMPTY_VIEW, EMPTY_VIEW)) if gold == predicted else None
    clauses, predicted_clauses = gold_reading.clauses, predicted_reading.clauses
    differs = tuple(
        name
        for name in dict.fromkeys((*clauses, *predicted_clauses))
        if clauses.get(name, ()) != predicted_clauses.get(name, ())
    )
    # What matches as a whole shares all parts, also where it is written with other parts, such as BETWEEN.
    view = predicted_reading.view if differs or predicted_reading.problem else gold_reading.view
    return Match(
        differs=differs,
        components=partial_match(gold_reading.view, view),
        broken=predicted_reading.problem,
        unread=predicted_reading.is_unread,
    )
