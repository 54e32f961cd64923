"""Exact set match of two SQL queries, clause by clause, with its ten components, and Spider's own."""

from __future__ import annotations

from collections.abc import Callable

from pytest_queryeval.comparison.equality import Counts
from pytest_queryeval.core.case_report import ComponentName
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.metric import Score, metric

SQL = frozenset({"sql"})
NO_SCHEMA = Schema()


@metric(kinds=SQL, input="queries")
def exact_set_match(
    gold: str, predicted: str, *, dialect: str = "", gold_dialect: str | None = None, schema: Schema = NO_SCHEMA
) -> Score:
    """Return 1 if two queries agree in every clause apart from values, aliases and spelling, else 0.

    Each query is parsed in the dialect of its source; without `gold_dialect`, gold is parsed in `dialect`, too. Literal
    values are one placeholder, DISTINCT is ignored, aliases are resolved scope by scope, and columns that a join makes
    equal count as one. SELECT items, tables, joins with their conditions, WHERE, GROUP BY and HAVING are compared as
    multisets, ORDER BY as a list with directions, LIMIT by its presence, set operations arm by arm.

    A text that cannot be parsed scores 0. `details.exact_set_match` says why, or in which clauses the queries differ,
    and `details.partial_match` has the components. The score is None, with a note, if gold cannot be parsed and
    predicted is another text. Source: Spider's exact set match (Yu et al., 2018), on any dialect of sqlglot.

    >>> exact_set_match("SELECT a.name FROM singer AS a WHERE age > 30", "select name from singer where 18 < age").value
    1.0
    """
    from pytest_queryeval.languages.sql.match import match_queries

    match = match_queries(gold, predicted, dialect, schema, gold_dialect)
    if match is None:
        return _unreadable_gold(gold, dialect if gold_dialect is None else gold_dialect)
    details: dict[str, object] = {
        "partial_match": {
            name: [part.gold_total, part.pred_total, part.count] for name, part in match.components.items()
        }
    }
    if not match.exact:
        why = {"unreadable": match.problem} if match.problem else {}
        details["exact_set_match"] = {"differs": list(match.differs)} | why
    return Score(value=float(match.exact), details=details)


def _unreadable_gold(gold: str, dialect: str) -> Score:
    from pytest_queryeval.languages.sql import parse_query

    return Score(
        value=None, details={"notes": [f"the gold query cannot be read: {parse_query(gold, dialect).problem}"]}
    )


@metric(kinds=SQL, input="queries", published=True)
def exact_set_match_spider(gold: str, predicted: str, *, schema: Schema = NO_SCHEMA) -> Score:
    """Return the published verdict, 1 or 0, by the published grammar with all its limits.

    The grammar reads a part of SQLite's SQL. A prediction outside of it scores 0, and `details.spider` says where. The
    score is None, with a note, if gold is outside of it, which ends a run of the published tool. `details.spider` has
    what the table of the published tool needs: gold's hardness, and the totals of ten components. Kept for comparison
    with papers; `exact_set_match` is the sound rule. Source: taoyds/spider, evaluation.py.

    >>> exact_set_match_spider("SELECT count(*) FROM singer", "SELECT count(*) AS n FROM singer").value
    0.0
    """
    from pytest_queryeval.languages.sql.match import match_as_published
    from pytest_queryeval.languages.sql.spider_grammar import UnreadableQueryError

    try:
        match = match_as_published(gold, predicted, schema)
    except UnreadableQueryError as error:
        return Score(value=None, details={"notes": [f"the published grammar does not read the gold query: {error}"]})
    return Score(value=float(match["exact"]), details={"spider": match})


def _component_metrics(name: ComponentName) -> tuple[Callable[..., float | Score], ...]:
    """Return three metrics of a component of the exact set match: its F1, its precision and its recall."""

    def counts(
        gold: str, predicted: str, *, dialect: str = "", gold_dialect: str | None = None, schema: Schema = NO_SCHEMA
    ) -> dict[str, float]:
        from pytest_queryeval.languages.sql.match import match_queries

        match = match_queries(gold, predicted, dialect, schema, gold_dialect)
        if match is None:
            return {}
        part = match.components[name]
        return Counts(part.count, part.pred_total - part.count, part.gold_total - part.count).as_dict()

    def component_metric(figure: str) -> Callable[..., float | Score]:
        @metric(kinds=SQL, input="queries", counts=(f"partial_{name}", counts))
        def component(
            gold: str, predicted: str, *, dialect: str = "", gold_dialect: str | None = None, schema: Schema = NO_SCHEMA
        ) -> float | Score:
            """Return the F1, precision or recall of the items of one component.

            The F1 is 2 * shared / (gold's items + predicted's items), precision is shared / predicted's items, recall
            is shared / gold's items. If the divisor is 0, the score is 1 if the other side has no items either,
            otherwise 0. The score is None, with a note, if gold cannot be parsed, and 0 if nothing of predicted can be
            read.
            """
            from pytest_queryeval.languages.sql.match import match_queries

            match = match_queries(gold, predicted, dialect, schema, gold_dialect)
            if match is None:
                return _unreadable_gold(gold, dialect if gold_dialect is None else gold_dialect)
            return 0.0 if match.is_unread else float(getattr(match.components[name], figure))

        return component

    return component_metric("f1"), component_metric("accuracy"), component_metric("recall")


partial_select_f1, partial_select_precision, partial_select_recall = _component_metrics("select")
partial_select_no_agg_f1, partial_select_no_agg_precision, partial_select_no_agg_recall = _component_metrics(
    "select_no_agg"
)
partial_where_f1, partial_where_precision, partial_where_recall = _component_metrics("where")
partial_where_no_op_f1, partial_where_no_op_precision, partial_where_no_op_recall = _component_metrics("where_no_op")
partial_group_no_having_f1, partial_group_no_having_precision, partial_group_no_having_recall = _component_metrics(
    "group_no_having"
)
partial_group_f1, partial_group_precision, partial_group_recall = _component_metrics("group")
partial_order_f1, partial_order_precision, partial_order_recall = _component_metrics("order")
partial_and_or_f1, partial_and_or_precision, partial_and_or_recall = _component_metrics("and_or")
partial_iuen_f1, partial_iuen_precision, partial_iuen_recall = _component_metrics("iuen")
partial_keywords_f1, partial_keywords_precision, partial_keywords_recall = _component_metrics("keywords")
