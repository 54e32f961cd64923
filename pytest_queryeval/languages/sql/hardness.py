"""How hard a query is, as Spider labels it."""

from __future__ import annotations

from pytest_queryeval.languages.sql.view import View

LEVELS = ("easy", "medium", "hard", "extra")


def hardness(view: View, common_queries: int = 0) -> str:
    """Return `easy`, `medium`, `hard` or `extra`, from the raw view of a gold query.

    Queries in WITH, which the published grammar rejects, count like nested ones: `common_queries` is their number.

    Three counts decide: clauses, nested queries, and clauses with more than one part. Source: the code of Spider's
    published evaluation. Its document differs: it counts HAVING as a clause and aggregates in conditions as aggregates.
    The code does not, but counts each NOT and each connector of HAVING as an aggregate. Labels of published tables
    follow the code. Combinations that the document does not name, such as 2 clauses and 2 with more than one part, are
    `extra`.
    """
    terms = list(view.terms())
    nested = sum(isinstance(value, View) for term in terms for value in term.values) + (view.arm is not None)
    nested += common_queries

    clauses = (len(view.where) > 0) + (len(view.group) > 0) + (view.order is not None) + (view.limit is not None)
    clauses += max(len(view.tables) - 1, 0)
    clauses += sum(connector == "or" for connector in view.connectors())
    clauses += sum(term.operator == "like" for term in terms)

    aggregates = sum(item.aggregate != "" for item in view.select)
    sort_keys = view.order.expressions if view.order else ()
    aggregates += sum(expression.aggregates for expression in (*view.group, *sort_keys))
    aggregates += sum(term.negated for term in (*view.where.terms, *view.having.terms))
    aggregates += sum(isinstance(word, str) for word in view.having.connectors)
    multiple = (aggregates > 1) + (len(view.select) > 1) + (len(view.where) > 1) + (len(view.group) > 1)

    if nested > 0:
        return "hard" if nested == 1 and clauses <= 1 and multiple == 0 else "extra"
    if clauses <= 1 and multiple == 0:
        return "easy"
    if (clauses <= 1 and multiple <= 2) or (clauses <= 2 and multiple < 2):
        return "medium"
    if (clauses <= 2 < multiple) or (clauses == 3 and multiple <= 2):
        return "hard"
    return "extra"
