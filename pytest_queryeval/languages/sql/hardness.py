"""How hard a query is, as Spider labels it."""

from __future__ import annotations

from pytest_queryeval.languages.sql.view import View

LEVELS = ("easy", "medium", "hard", "extra")


def hardness(view: View) -> str:
    """`easy`, `medium`, `hard` or `extra`, from the raw view of a gold query.

    Three counts decide: clauses, nested queries, and clauses with more than one part. Source: the code of Spider's
    published evaluation. Its document differs: it counts HAVING as a clause and aggregates in conditions as aggregates.
    The code does not, but takes each NOT and each connector of HAVING for an aggregate. Labels of published tables
    follow the code.
    """
    clauses, nested, multiple = _clauses(view), _nested(view), _multiple(view)
    if nested == 0:
        return _level_without_nested(clauses, multiple)
    return "hard" if nested == 1 and clauses <= 1 and multiple == 0 else "extra"


def _level_without_nested(clauses: int, multiple: int) -> str:
    """Combinations that are named nowhere, such as 2 and 2, are `extra`."""
    if clauses <= 1 and multiple == 0:
        return "easy"
    if (clauses <= 1 and multiple <= 2) or (clauses <= 2 and multiple < 2):
        return "medium"
    if (clauses <= 2 < multiple) or (clauses == 3 and multiple <= 2):
        return "hard"
    return "extra"


def _clauses(view: View) -> int:
    """WHERE, GROUP BY, ORDER BY, LIMIT, each further table, each OR and each LIKE."""
    present = (len(view.where) > 0) + (len(view.group) > 0) + (view.order is not None) + (view.limit is not None)
    joins = max(len(view.tables) - 1, 0)
    alternatives = sum(connector == "or" for connector in view.connectors())
    return present + joins + alternatives + sum(term.operator == "like" for term in view.terms())


def _nested(view: View) -> int:
    """Queries among the values of conditions, and a set operation."""
    values = sum(isinstance(value, View) for term in view.terms() for value in term.values)
    return values + (view.arm is not None)


def _multiple(view: View) -> int:
    """How many of these have more than one part: aggregates, SELECT, WHERE, GROUP BY."""
    return (_aggregates(view) > 1) + (len(view.select) > 1) + (len(view.where) > 1) + (len(view.group) > 1)


def _aggregates(view: View) -> int:
    """Aggregates of SELECT, GROUP BY and ORDER BY, and what passes for such in conditions."""
    selected = sum(item.aggregate != "" for item in view.select)
    sorted_by = view.order.expressions if view.order else ()
    inside = sum(expression.aggregates for expression in (*view.group, *sorted_by))
    negations = sum(term.negated for term in (*view.where.terms, *view.having.terms))
    return selected + inside + negations + sum(isinstance(word, str) for word in view.having.connectors)
