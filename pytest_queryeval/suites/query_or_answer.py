"""Readers of gold and predicted, by the form that a case uses; its kind reads their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_queryeval.core.errors import nearest
from pytest_queryeval.core.model import Abstention, GoldTranslation, QueryOrAnswer
from pytest_queryeval.core.shapes import NOT_NULL, TEXT, Shape, list_shape, shape_of
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.tables import TableFile
from pytest_queryeval.documents.values import (
    choice,
    entries,
    flag,
    items,
    known_entries,
    or_else,
    read_each,
    whole_text,
)
from pytest_queryeval.languages import Kind
from pytest_queryeval.languages.stated_answers import TABLE_KEYS, read_table
from pytest_queryeval.predictors.answer import ABSTAINED, REASON

_TABLE = shape_of(read_table)
# The shapes that each form accepts; the kind of the case reads the values.
GOLD_FORMS: Mapping[str, Shape] = {
    "gold": NOT_NULL,
    "gold_any": {**list_shape(NOT_NULL), "minItems": 1},
    "gold_table": _TABLE,
    "gold_file": TEXT,
}
PREDICTED_FORMS: Mapping[str, Shape] = {"predicted": NOT_NULL, "predicted_table": _TABLE, "predicted_file": TEXT}
TRANSLATE = "translate"
EMPTY_PREDICTED = 'leave it out, or write "" for an empty answer'


def read_golds(case: Node, kind: Kind, *, answerable: bool) -> tuple[QueryOrAnswer, ...]:
    """Read the right answers of a case; raise `CaseError` unless there is exactly one form of gold, and a value.

    A case that is not answerable has none.
    """
    case_entries = entries(case)
    form = _only_form(case_entries, GOLD_FORMS)
    if not answerable:
        if form is None:
            return ()
        raise case_entries[form].problem(f"'{form}' beside `answerable: false`: no answer is right, remove one of them")
    if form is None:
        if isinstance(case.file, TableFile):
            raise case.problem("no gold: fill the cell of `gold` or `gold_file`")
        raise case.problem("no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`")
    node = case_entries[form]
    if form == "gold_any":
        if not items(node):
            raise node.problem("gold_any is empty")
        return tuple(read_each(items(node), lambda item: _read_one_of_several(item, kind)))
    if form == "gold_file":
        return (kind.read_file(node),)
    reader = {"gold": kind.read_gold, "gold_table": kind.read_table}[form]
    return (replace(reader(node), location=node.location),)


def _read_one_of_several(item: Node, kind: Kind) -> QueryOrAnswer:
    """Read an item of `gold_any`: the value of a `gold`, or of a `gold_file` as `{file: NAME}`."""
    if kind.has_queries and isinstance(item.value, dict) and list(item.value) == ["file"]:
        return kind.read_file(item.value["file"])
    return replace(kind.read_gold(item), location=item.location)


def read_predicted(case: Node, kind: Kind) -> QueryOrAnswer | Abstention | GoldTranslation | None:
    """Read the prediction in a case, if there is one; raise `CaseError`."""
    case_entries = entries(case)
    form = _only_form(case_entries, PREDICTED_FORMS)
    if form is None:
        return None
    node = case_entries[form]
    if node.empty:
        raise node.problem(f"'{form}' is null: {EMPTY_PREDICTED}")
    if isinstance(node.value, dict) and ABSTAINED in node.value and node.value.keys() <= {ABSTAINED, REASON}:
        fields = known_entries(node, {ABSTAINED: flag, REASON: or_else("", whole_text)})
        if fields[ABSTAINED]:
            return Abstention(fields.get(REASON, ""))
    if kind.has_queries and isinstance(node.value, dict) and TRANSLATE in node.value:
        known_entries(node, {TRANSLATE: choice("gold")})
        return GoldTranslation(location=node.location)
    if kind.has_queries and isinstance(node.value, dict):
        for name, entry in node.value.items():
            if name not in TABLE_KEYS and (near := nearest(name, (ABSTAINED, TRANSLATE))):
                raise entry.problem(f"unknown key '{name}': did you mean '{near}'?")
    readers = {"predicted": kind.read_predicted, "predicted_table": kind.read_table, "predicted_file": kind.read_file}
    return readers[form](node)


def _only_form(case_entries: Mapping[str, Node], forms: Iterable[str]) -> str | None:
    stated_forms = [form for form in forms if form in case_entries]
    if len(stated_forms) > 1:
        raise case_entries[stated_forms[1]].problem(
            f"{' and '.join(stated_forms)}: a case has only one of them: keep one"
        )
    return stated_forms[0] if stated_forms else None
