"""The published code of BuildingQA's metrics as tests need it: its defects, found in tables and put into them."""

import re
from collections import Counter
from decimal import Decimal, InvalidOperation

from table_oracle import cells_equal

from pytest_queryeval import METRICS
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table

SCORES = ("arity_f1", "entity_set_f1", "row_matching_f1", "exact_match_f1")
SPARQL = Policy(text_numbers=True)


def cell(term):
    """A term of SPARQL-JSON; values that are not text, which the format does not allow, stay as they are."""
    if term is None:
        return None
    value = term.get("value", "")
    if not isinstance(value, str):
        return value
    match term.get("type", "literal"):
        case "uri":
            return IRI(value)
        case "bnode":
            return BlankNode(value)
    return Literal(value, term.get("datatype", ""), term.get("xml:lang", ""))


def table(side):
    names = tuple(side["vars"])
    return Table(columns=names, rows=[tuple(cell(row.get(name)) for name in names) for row in side["bindings"]])


def terms(side):
    return [term for row in side["bindings"] for term in row.values()]


def first_row_columns(side):
    return set(side["bindings"][0]) if side["bindings"] else set()


def columns_are_taken_from_the_first_row(gold, predicted, metric):
    """D1: some variable of the header is unbound in the first row, or there is no row."""
    return any(first_row_columns(side) != set(side["vars"]) for side in (gold, predicted))


def published_row_text(value):
    text = value.strip().lower()
    text = re.sub(r'^"|"$', "", text) if text.startswith('"') and text.endswith('"') else text
    text = re.sub(r"\^\^.*$", "", text)
    return re.sub(r"@[a-z]{2}(-[a-z]{2})?$", "", text)


def row_cells_are_cut_and_folded(gold, predicted, metric):
    """D3: two different texts become the same one by the published normalisation of rows."""
    if metric not in ("row_matching_f1", "exact_match_f1", "entity_set_f1"):
        return False
    texts = {str(term.get("value", "")) for side in (gold, predicted) for term in terms(side)}
    return any(number > 1 for number in Counter(map(published_row_text, texts)).values())


def unbound_equals_the_empty_text(gold, predicted, metric):
    """D4: a variable is unbound in some row."""
    sides = (gold, predicted)
    return metric != "arity_f1" and any(len(row) < len(side["vars"]) for side in sides for row in side["bindings"])


def is_number(text):
    try:
        return Decimal(text) is not None
    except InvalidOperation:
        return False


def numbers_are_compared_as_text(gold, predicted, metric):
    """D17: two terms, one on each side, are one number in different texts."""
    golds, others = ([term for term in terms(side) if is_number(str(term["value"]))] for side in (gold, predicted))
    return any(
        str(term["value"]) != str(other["value"]) and cells_equal(cell(term), cell(other), SPARQL)
        for term in golds
        for other in others
    )


def types_of(side):
    values = {}
    for term in terms(side):
        values.setdefault(str(term.get("value")), set()).add(term.get("type", "literal"))
    return values


def iris_equal_literals(gold, predicted, metric):
    """D18: one text is an IRI on one side and a literal on the other."""
    golds, others = types_of(gold), types_of(predicted)
    return any("uri" in golds[text] ^ others[text] for text in golds.keys() & others.keys())


def blank_nodes_are_compared_by_label(gold, predicted, metric):
    """D19: there are blank nodes."""
    return any("bnode" in types for side in (gold, predicted) for types in types_of(side).values())


DEFECTS = {
    "D1": columns_are_taken_from_the_first_row,
    "D3": row_cells_are_cut_and_folded,
    "D4": unbound_equals_the_empty_text,
    "D17": numbers_are_compared_as_text,
    "D18": iris_equal_literals,
    "D19": blank_nodes_are_compared_by_label,
}


def score(name, gold, predicted):
    policy = {"policy": SPARQL} if "policy" in METRICS[name].injected else {}
    return METRICS[name].function(gold, predicted, **policy)


def as_published(side):
    """The table that the published code compares row by row: columns of the first row, texts cut and folded."""
    names = tuple(side["bindings"][0]) if side["bindings"] else ()
    rows = [
        tuple(published_row_text(str(row[name].get("value", ""))) if name in row else None for name in names)
        for row in side["bindings"]
    ]
    return Table(columns=names, rows=rows)
