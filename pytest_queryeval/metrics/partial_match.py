"""The ten components of the exact set match, each with its F1, precision and recall."""

from __future__ import annotations

from collections.abc import Callable

from pytest_queryeval.comparison.counts import Counts
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.report import ComponentName

SQL = frozenset({"sql"})
NO_SCHEMA = Schema()


def _component_metrics(name: ComponentName) -> tuple[Callable[..., float | Score], ...]:
    """Return F1, precision and recall of one component of `languages.sql.components.partial_match` as metrics."""

    def counts(gold: str, predicted: str, *, dialect: str = "", schema: Schema = NO_SCHEMA) -> dict[str, float]:
        from pytest_queryeval.languages.sql.trees.match import match_queries

        match = match_queries(gold, predicted, dialect, schema)
        if match is None:
            return {}
        part = match.components[name]
        return Counts(part.count, part.pred_total - part.count, part.gold_total - part.count).as_dict()

    def component_metric(figure: str) -> Callable[..., float | Score]:
        @metric(kinds=SQL, input="queries", counts=(f"partial_{name}", counts))
        def component(gold: str, predicted: str, *, dialect: str = "", schema: Schema = NO_SCHEMA) -> float | Score:
            """Return how many items of one component are right.

            The F1 is 2 * shared / (gold's items + predicted's items), precision shared / predicted's items, recall
            shared / gold's items; without any item on the side that divides 1 if the other side has none either, else
            0. None as `exact_set_match`, 0 where nothing of predicted can be read.
            """
            from pytest_queryeval.languages.sql.parsed_query import parse_query
            from pytest_queryeval.languages.sql.trees.match import match_queries

            match = match_queries(gold, predicted, dialect, schema)
            if match is None:
                return Score(
                    value=None, details={"notes": [f"gold cannot be read: {parse_query(gold, dialect).problem}"]}
                )
            return 0.0 if match.unread else float(getattr(match.components[name], figure))

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
