"""Two queries compared: by their clauses, and by the ten components of Spider's published evaluation with its verdict.

Components and verdict take normalised views, gold first. A prediction that could not be read is `EMPTY_VIEW`. The
published evaluation makes views comparable in its own way, and has a table, as data and as the text that its tool
prints.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeAlias, cast, get_args

from pytest_queryeval.core.case_report import ComponentName, SpiderDetails
from pytest_queryeval.core.db_schema import Column, Schema
from pytest_queryeval.core.report import LevelName, SpiderLevel, SpiderScores, SpiderTable
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.spider_grammar import (
    Arithmetic,
    Operand,
    UnreadableQueryError,
    names_of,
    published_view,
)
from pytest_queryeval.languages.sql.view import (
    EMPTY_VIEW,
    Condition,
    Conditions,
    Expression,
    Item,
    Ordering,
    View,
    hardness,
)

EqualColumns: TypeAlias = Mapping[Column, Column]
ALL_LEVELS: tuple[LevelName, ...] = get_args(LevelName)
_PRINTED = {
    "select_no_agg": "select(no AGG)",
    "where_no_op": "where(no OP)",
    "group_no_having": "group(no Having)",
    "and_or": "and/or",
    "iuen": "IUEN",
}
_HEADINGS: Mapping[Literal["accuracy", "recall", "f1"], str] = {
    "accuracy": "---------------------PARTIAL MATCHING ACCURACY----------------------",
    "recall": "---------------------- PARTIAL MATCHING RECALL ----------------------",
    "f1": "---------------------- PARTIAL MATCHING F1 --------------------------",
}


@dataclass(frozen=True, slots=True)
class Component:
    """How many items of a component gold and predicted have, and how many they share."""

    gold_total: int
    pred_total: int
    count: int

    @property
    def matched(self) -> bool:
        """Whether the component agrees as a whole, which is what tables and the verdict count."""
        return self.gold_total == self.pred_total == self.count

    @property
    def accuracy(self) -> float:
        """`count / pred_total`, the precision of the prediction.

        Without predicted items it is 1 if gold has none either, otherwise 0.
        """
        return _share(self.count, self.pred_total, empty=self.gold_total == 0)

    @property
    def recall(self) -> float:
        """`count / gold_total`; without gold items it is 1 if the prediction has none either, otherwise 0."""
        return _share(self.count, self.gold_total, empty=self.pred_total == 0)

    @property
    def f1(self) -> float:
        """`2 count / (gold_total + pred_total)`, the harmonic mean of accuracy and recall; 1 without any item."""
        return _share(2 * self.count, self.gold_total + self.pred_total, empty=True)


def _share(count: int, total: int, *, empty: bool) -> float:
    return count / total if total else float(empty)


def partial_match(gold: View, predicted: View) -> dict[ComponentName, Component]:
    """Return the components of a pair by name, in the order in which tables list them.

    - `select` and `where` are multisets of items and conditions, `select_no_agg` and `where_no_op` of their expressions
      alone, `group_no_having` of the names of columns without their tables.
    - `group` and `order` count 1 if the clause exists, and agree iff the lists do, with HAVING and with the presence of
      LIMIT.
    - `iuen` counts set operations, at most one per query as chains nest to the right, which agree iff their second
      queries match exactly.
    - `keywords` counts the words that the function `keywords` returns.
    - `and_or` is 1 of 1 if both use the same connectors in WHERE. Otherwise its totals are swapped, as published:
      `gold_total` counts those of the prediction.
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
    """Return the published verdict: whether every component agrees, and the tables of FROM in any order.

    `components` are those of the same pair, if known already. Conditions of joins are not compared, and a gold without
    tables agrees with any tables.
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
    """How two queries compare: the clauses in which they differ, their components, and the problem of predicted.

    `is_unread` is true if nothing of predicted could be read.
    """

    differs: tuple[str, ...]
    components: Mapping[ComponentName, Component] = field(repr=False)
    problem: str = ""
    is_unread: bool = False

    @property
    def exact(self) -> bool:
        """Whether all clauses agree, and the whole of predicted could be read."""
        return not self.differs and not self.problem


@lru_cache(maxsize=256)  # a dozen metrics compare the same pair
def match_queries(
    gold: str, predicted: str, dialect: str, schema: Schema, gold_dialect: str | None = None
) -> Match | None:
    """Compare the texts of two queries; return None if gold cannot be read and predicted is another text. Cached.

    `gold_dialect` is the dialect of gold; None if both queries have the same dialect. If predicted cannot be read, or
    only in part, `problem` says why, and the components are those of the part that could be read.
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
        problem=predicted_reading.problem,
        is_unread=predicted_reading.is_unread,
    )


@lru_cache(maxsize=1024)
def comparable_view(query: str, schema: Schema | None = None) -> View:
    """Return the view of a query that components and the verdict compare; `EMPTY_VIEW` if the grammar rejects it.

    Cached. It has no values and no DISTINCT, and one column instead of all that foreign keys make equal. Only columns
    of the tables in the outer FROM are replaced, in all arms of a set operation. Nested queries lose the values of
    their conditions, and nothing else; queries in FROM stay as they are.
    """
    try:
        view = published_view(query, schema)
    except UnreadableQueryError:
        return EMPTY_VIEW
    return _normalized(view, names_of(schema).equal_columns(view.tables))


def _normalized(view: View, equal: EqualColumns) -> View:
    order = view.order
    if order is not None:
        order = Ordering(order.direction, tuple(_expression(key, equal) for key in order.expressions))
    group = []  # columns alone are compared in GROUP BY
    for key in view.group:
        _, column, _ = cast(Operand, key.key)
        column = equal.get(column, column)
        group.append(Expression(column, column[1]))
    return View(
        select=tuple(Item(item.aggregate, _expression(item.expression, equal)) for item in view.select),
        tables=view.tables,
        on=_conditions(view.on, equal),
        where=_conditions(view.where, equal),
        group=tuple(group),
        having=_conditions(view.having, equal),
        order=order,
        limit=view.limit,
        operation=view.operation,
        arm=None if view.arm is None else _normalized(view.arm, equal),
    )


def _conditions(conditions: Conditions, equal: EqualColumns | None) -> Conditions:
    """Return conditions without values; their columns stay as they are if `equal` is None."""
    if not conditions.terms:
        return conditions
    terms = tuple(
        Condition(
            term.negated,
            term.operator,
            term.left if equal is None else _expression(term.left, equal),
            tuple(_without_values(value) if isinstance(value, View) else None for value in term.values),
        )
        for term in conditions.terms
    )
    return Conditions(terms, conditions.connectors)


def _without_values(view: View) -> View:
    return replace(
        view,
        on=_conditions(view.on, None),
        where=_conditions(view.where, None),
        having=_conditions(view.having, None),
        arm=None if view.arm is None else _without_values(view.arm),
    )


def _expression(expression: Expression, equal: EqualColumns) -> Expression:
    operator, first, second = cast(Arithmetic, expression.key)
    key: Hashable = operator, _operand(first, equal), None if second is None else _operand(second, equal)
    return Expression(key, expression.column, expression.aggregates)


def _operand(operand: Operand, equal: EqualColumns) -> Operand:
    aggregate, column, _ = operand
    return aggregate, equal.get(column, column), None


def match_as_published(gold: str, predicted: str, schema: Schema) -> SpiderDetails:
    """Return hardness, verdict and components of a pair, as Spider's published tool computes them.

    An unreadable prediction gets the reason as `rejected`. Raises `UnreadableQueryError` if the published grammar does
    not read gold.
    """
    level = hardness(published_view(gold, schema))
    gold_view, predicted_view = comparable_view(gold, schema), comparable_view(predicted, schema)
    components = partial_match(gold_view, predicted_view)
    details: SpiderDetails = {
        "hardness": level,
        "exact": exact_match(gold_view, predicted_view, components),
        "components": {name: [part.gold_total, part.pred_total, part.count] for name, part in components.items()},
    }
    try:
        published_view(predicted, schema)
    except UnreadableQueryError as error:
        details["rejected"] = str(error)
    return details


def spider_table(pairs: Iterable[tuple[SpiderDetails, float | None]]) -> SpiderTable:
    """Return the scores of pairs by hardness, and of all, from 0 to 1.

    A pair is its details, and its execution score, None if it was not executed. `exact_match` and `execution_accuracy`
    are means over pairs; `execution_accuracy` is None if no pair was executed. A component counts all or nothing:
    accuracy is the mean over pairs where the prediction has such a part, recall over pairs where gold has it. f1 is the
    harmonic mean of these two means, and 1 if both are 0. A level without pairs has 0 everywhere.
    """
    counts: defaultdict[str, Counter[str | tuple[str, str]]] = defaultdict(Counter)
    executions: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
    for details, execution in pairs:
        for level in (details["hardness"], "all"):
            counts[level].update({"pairs": 1, "exact": int(details["exact"])})
            counts[level].update(
                (side, name) for name, totals in details["components"].items() for side in _sides(Component(*totals))
            )
            if execution is not None:
                executions[level].append(execution)
    return {level: _level(counts[level], executions[level]) for level in ALL_LEVELS}


def table_lines(table: SpiderTable) -> Iterator[str]:
    """Yield the lines that the published tool prints, without the row of execution if no query was executed."""
    levels = [table[level] for level in ALL_LEVELS]
    yield _line("", ALL_LEVELS)
    yield _line("count", [level["count"] for level in levels])
    if table["all"]["execution_accuracy"] is not None:
        yield "=====================   EXECUTION ACCURACY     ====================="
        yield _line("execution", [level["execution_accuracy"] or 0.0 for level in levels])
    yield ""
    yield "====================== EXACT MATCHING ACCURACY ====================="
    yield _line("exact match", [level["exact_match"] for level in levels])
    yield ""
    for score, heading in _HEADINGS.items():
        yield heading
        for name in COMPONENTS:
            yield _line(_PRINTED.get(name, name), [level[name][score] for level in levels])


def _sides(part: Component) -> Iterator[str]:
    """Yield the sides of a pair that have a component, and `SIDE, matched` for these sides if it agrees as a whole."""
    for side, total in (("predicted", part.pred_total), ("gold", part.gold_total)):
        if total > 0:
            yield side
            if part.matched:
                yield f"{side}, matched"


def _level(counts: Counter[str | tuple[str, str]], executions: Sequence[float]) -> SpiderLevel:
    def share(side: str, name: ComponentName) -> float:
        return counts[f"{side}, matched", name] / counts[side, name] if counts[side, name] else 0.0

    def scores(name: ComponentName) -> SpiderScores:
        accuracy, recall = share("predicted", name), share("gold", name)
        f1 = 2 * accuracy * recall / (accuracy + recall) if accuracy or recall else 1.0
        return {"accuracy": accuracy, "recall": recall, "f1": f1 if counts["pairs"] else 0.0}

    level: dict[str, object] = {
        "count": counts["pairs"],
        "execution_accuracy": sum(executions) / len(executions) if executions else None,
        "exact_match": counts["exact"] / counts["pairs"] if counts["pairs"] else 0.0,
        **{name: scores(name) for name in COMPONENTS},
    }
    return cast(SpiderLevel, level)


def _line(name: str, cells: Sequence[str | int | float]) -> str:
    texts = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells]
    return "".join(f"{text:<21}" for text in (name, *texts)).rstrip()
