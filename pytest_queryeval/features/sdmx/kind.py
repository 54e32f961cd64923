"""SDMX: data queries, and selections as JSON and YAML, as the indicators and other terms that they select."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pytest_queryeval.core.case_report import DifferenceReport
from pytest_queryeval.core.cause import Cause
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Answer, Case, Execution, Failure, QueryOrAnswer
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Row, Selection, Term
from pytest_queryeval.documents.document import MEBIBYTE, File, Node, json_within, read_json
from pytest_queryeval.documents.values import (
    Readers,
    items,
    known_entries,
    list_of,
    or_else,
    read_each,
    text,
    whole_text,
)
from pytest_queryeval.documents.yaml_nodes import parse_yaml
from pytest_queryeval.features.sdmx.checks import add_labels, violations
from pytest_queryeval.features.sdmx.data_query import FORMS, data_query_in, is_data_query, read_data_query
from pytest_queryeval.features.sdmx.details import difference, difference_cause, selection_text
from pytest_queryeval.features.sdmx.scores import check_options
from pytest_queryeval.features.sdmx.structure import Structure
from pytest_queryeval.languages.kind import Kind
from pytest_queryeval.languages.stated_answers import answer_text, read_json_text, stated_file, text_file
from pytest_queryeval.sandbox.host import Hosts
from pytest_queryeval.text.formatting import one_line

MAX_BYTES = 32 * MEBIBYTE
WRAPPER_KEY = "indicator_selection"
_LINK = re.compile(r"\s*\[\s*[^\W\d].*?/", re.DOTALL)  # of Markdown, whose text begins with a letter


class Sdmx(Kind):
    """The kind `sdmx`, whose answers are selections."""

    name = "sdmx"
    answer_type = Selection
    default_metrics = ("macro_precision", "macro_recall", "macro_f1", "dataset_precision", "dataset_recall")
    default_thresholds = MappingProxyType(
        dict.fromkeys(("macro_precision", "macro_recall", "dataset_precision", "dataset_recall"), 1.0)
    )
    options = frozenset({"by_dataset", "macro"})
    empty_answer = Selection(datasets=())

    def check(self, options: Mapping[str, JsonValue]) -> None:
        check_options(options)

    def read_gold(self, node: Node) -> QueryOrAnswer:
        """Return a selection or its JSON text as an answer; keep other text as a query, which `check_gold` reads."""
        if not isinstance(node.value, str):
            return QueryOrAnswer(answer=read_selection(node))
        if node.empty or not node.value.strip():
            raise node.problem("`gold` is empty: write the datasets, or [] for none")
        if _is_json(node.value):
            return QueryOrAnswer(answer=read_selection(json_within(node)))
        return QueryOrAnswer(query=node.value)

    def read_predicted(self, node: Node) -> QueryOrAnswer:
        if isinstance(node.value, str):
            return QueryOrAnswer(query=text(node))
        return QueryOrAnswer(answer=read_selection(node))

    def read_file(self, node: Node) -> QueryOrAnswer:
        def read(file: File) -> QueryOrAnswer:
            return QueryOrAnswer(answer=read_selection(read_json(file)))

        return stated_file(node, {".json": read, ".yaml": _yaml_file, ".yml": _yaml_file, ".txt": text_file})

    def check_gold(self, gold: QueryOrAnswer, case: Case) -> QueryOrAnswer:
        """Return a gold with its selection and labels; raise ValueError if the case's structure lacks a part of it."""
        structure = structure_of(case)
        selection = gold.answer if isinstance(gold.answer, Selection) else _data_query(gold.query or "", structure)
        if structure is None:
            return replace(gold, answer=selection)
        if problems := violations(selection, structure):
            raise ValueError(f"the gold answer breaks the structure: {problems[0]}")
        return replace(gold, answer=add_labels(selection, structure))

    def read_without_running(self, query_or_answer: QueryOrAnswer, case: Case, hosts: Hosts) -> Execution | None:
        structure = structure_of(case)
        selection: Answer | Failure | None = query_or_answer.answer
        note = ""
        if query_or_answer.query is not None:
            said = answer_text(query_or_answer.query)
            if isinstance(said, Failure):
                selection = said
            elif _is_json(said[0]):
                found = read_json_text(said[0], read_selection)
                selection, place = (found, "") if isinstance(found, Failure) else found
                note = "; ".join(filter(None, (said[1], place)))
            else:
                note = said[1]
                try:
                    selection = _data_query(said[0], structure)
                except ValueError as error:
                    selection = Failure(kind="invalid", message=str(error))
            if isinstance(selection, Failure):
                return Execution(query=query_or_answer.query, error=selection)
        if not isinstance(selection, Selection):
            raise PredictorError(f"the prediction is not a selection but a {type(selection).__name__}")
        execution = Execution(query=query_or_answer.query, answer=selection, note=note)
        if structure is None:
            return execution
        problems = violations(selection, structure)
        return replace(execution, answer=add_labels(selection, structure), violations=problems)

    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> DifferenceReport[Row] | None:
        if not isinstance(gold, Selection) or not isinstance(predicted, Selection):
            return None
        return difference(gold, predicted, limit=limit)

    def difference_cause(self, gold: Answer, predicted: Answer, case: Case) -> Cause | None:
        if not isinstance(gold, Selection) or not isinstance(predicted, Selection):
            return None
        return difference_cause(gold, predicted)

    def text(self, answer: Answer) -> str | None:
        return selection_text(answer) if isinstance(answer, Selection) else None


def read_selection(node: Node) -> Selection:
    """Return the selection in a list of `{dataset_id, dimensions: [{dimension_name, values: [{id, name}]}]}`.

    A mapping with the list under `indicator_selection` is accepted, whatever its other keys; an empty list selects
    nothing. Ids and names are texts as the file has them, so that 007 stays `007`; null or blank texts become None.
    Raise `CaseError`, or `SuiteError` with several errors, at nodes of another form.
    """
    if isinstance(node.value, dict):
        if "dataset_id" in node.value and WRAPPER_KEY not in node.value:
            key = f"{node.key}: " if node.key else ""
            raise node.problem(
                f"{key}expected a list of datasets, found one: put it into brackets, [{{dataset_id: …}}]"
            )
        if WRAPPER_KEY not in node.value:
            raise node.problem(f"a selection is a list of datasets, or a mapping that has one as '{WRAPPER_KEY}'")
        node = node.value[WRAPPER_KEY]
    return Selection(datasets=tuple(read_each(items(node), _dataset)))


def _dataset(node: Node) -> DatasetSelection:
    entries = known_entries(node, _DATASET)
    return DatasetSelection(id=_required_entry(entries, "dataset_id", node), dimensions=entries.get("dimensions", ()))


def _dimension(node: Node) -> DimensionSelection:
    entries = known_entries(node, _DIMENSION)
    return DimensionSelection(name=_required_entry(entries, "dimension_name", node), terms=entries.get("values", ()))


def _term(node: Node) -> Term:
    entries = known_entries(node, _VALUE)
    term = Term(id=entries.get("id"), name=entries.get("name"))
    if term.id is None and term.name is None:
        raise node.problem("an item of `values` has neither `id` nor `name`: write {id: CODE}")
    return term


def _optional_text(node: Node) -> str | None:
    source_text = whole_text(node)
    return None if node.empty or not source_text.strip() else source_text


def _text(node: Node) -> str:
    source_text = _optional_text(node)
    if source_text is None:
        raise node.problem("expected text, found nothing")
    return source_text


def _required_entry(entries: dict[str, Any], key: str, node: Node) -> Any:
    if key not in entries:
        raise node.problem(f"'{key}' is missing")
    return entries[key]


_DATASET: Readers = {"dataset_id": _text, "dimensions": or_else((), list_of(_dimension))}
_DIMENSION: Readers = {"dimension_name": _text, "values": or_else((), list_of(_term))}
_VALUE: Readers = {"id": _optional_text, "name": _optional_text}


def structure_of(case: Case) -> Structure | None:
    """Return the value of the key `structure` of a case; None without it."""
    structure = case.extra.get("structure")
    return structure if isinstance(structure, Structure) else None


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("[", "{") and not _LINK.match(text)


def _yaml_file(file: File) -> QueryOrAnswer:
    root = parse_yaml(file.text(MAX_BYTES), file).root
    if root is None:
        raise file.problem("is empty")
    return QueryOrAnswer(answer=read_selection(root))


def _data_query(text: str, structure: Structure | None) -> Selection:
    query = data_query_in(text)
    if not is_data_query(query):
        form = f", which is {FORMS}" if structure else ": write [{dataset_id: ID, dimensions: […]}]"
        raise ValueError(f"'{one_line(text.strip(), 40)}' is neither JSON nor an SDMX data query{form}")
    try:
        return read_data_query(query.strip(), structure)
    except ValueError:
        if query.endswith("."):  # it ends a sentence
            with suppress(ValueError):
                return read_data_query(query.removesuffix("."), structure)
        raise


SDMX = Sdmx()
