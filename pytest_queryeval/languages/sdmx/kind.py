"""SDMX: data queries as the indicators and other terms that they select."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.comparison.ties import OrderPlan
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Answer, Case, Execution, Failure, Stated
from pytest_queryeval.core.selection import Selection, Structure
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import MEBIBYTE, File, Node
from pytest_queryeval.documents.json_nodes import json_within, read_json
from pytest_queryeval.documents.values import text
from pytest_queryeval.documents.yaml_nodes import parse_yaml
from pytest_queryeval.languages.answer_text import answer_text, read_json_text, refusal
from pytest_queryeval.languages.files import stated_file, text_file
from pytest_queryeval.languages.sdmx.checks import labelled, violations
from pytest_queryeval.languages.sdmx.data_query import FORMS, is_data_query, read_data_query
from pytest_queryeval.languages.sdmx.details import selection_text
from pytest_queryeval.languages.sdmx.difference import difference
from pytest_queryeval.languages.sdmx.reading import read_selection
from pytest_queryeval.languages.sdmx.scores import check_options
from pytest_queryeval.sandbox.host import Hosts

MAX_BYTES = 32 * MEBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdmx:
    """The kind `sdmx`."""

    name: str = "sdmx"
    default_metrics: tuple[str, ...] = (
        "macro_precision",
        "macro_recall",
        "macro_f1",
        "dataset_precision",
        "dataset_recall",
    )
    default_thresholds: Mapping[str, float] = field(
        default_factory=lambda: dict.fromkeys(
            ("macro_precision", "macro_recall", "dataset_precision", "dataset_recall"), 1.0
        )
    )
    has_queries: bool = False
    text_numbers: bool = False
    options: frozenset[str] = frozenset({"by_dataset", "macro"})
    paths: frozenset[str] = frozenset()
    nothing: Answer | None = field(default_factory=lambda: Selection(datasets=()))

    def check(self, options: Mapping[str, Any]) -> None:
        """See `Kind`."""
        check_options(options)

    def gold(self, node: Node) -> Stated:
        """See `Kind`: a selection, its JSON text, or a data query, which only the case's structure can read."""
        if not isinstance(node.value, str):
            return Stated(answer=read_selection(node))
        if node.empty or not node.value.strip():
            raise node.problem("gold is empty: write [] for nothing to select")
        if _is_json(node.value):
            return Stated(answer=read_selection(json_within(node)))
        return Stated(query=node.value)

    def predicted(self, node: Node) -> Stated:
        """See `Kind`."""
        if isinstance(node.value, str):
            return Stated(query=text(node))
        return Stated(answer=read_selection(node))

    def table(self, node: Node) -> Stated:
        """See `Kind`; there are none."""
        raise node.problem("answers of the kind 'sdmx' are no tables: state a selection")

    def file(self, node: Node) -> Stated:
        """See `Kind`."""
        readers = {".json": _json_file, ".yaml": _yaml_file, ".yml": _yaml_file, ".txt": text_file}
        return stated_file(node, readers)

    def checked_gold(self, gold: Stated, case: Case) -> Stated:
        """See `Kind`: a gold selects what the case's structure has."""
        selection = gold.answer if isinstance(gold.answer, Selection) else _data_query(gold.query or "", case.structure)
        if case.structure is None:
            return replace(gold, answer=selection)
        if broken := violations(selection, case.structure):
            raise ValueError(f"gold breaks the structure: {broken[0]}")
        return replace(gold, answer=labelled(selection, case.structure))

    def answered(self, predicted: Stated, case: Case, hosts: Hosts) -> Execution | None:
        """See `Kind`."""
        execution = _read(predicted, case.structure)
        if case.structure is None or not isinstance(execution.answer, Selection):
            return execution
        broken = violations(execution.answer, case.structure)
        return replace(execution, answer=labelled(execution.answer, case.structure), violations=broken)

    def unwrapped(self, said: str) -> tuple[str, str]:
        """See `Kind`; `answered` does it, which tells places in all that was said."""
        return said, ""

    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> Difference | None:
        """See `Kind`."""
        if not isinstance(gold, Selection) or not isinstance(predicted, Selection):
            return None
        return difference(gold, predicted, limit=limit)

    def text(self, answer: Answer) -> str | None:
        """See `Kind`."""
        return selection_text(answer) if isinstance(answer, Selection) else None

    def difficulty(self, query: str, dialect: str) -> str | None:
        """See `Kind`; nobody has published a rule."""
        return None

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        """See `Kind`; there are no rows."""
        return None


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("[", "{")


def _json_file(file: File) -> Stated:
    return Stated(answer=read_selection(read_json(file)))


def _yaml_file(file: File) -> Stated:
    root = parse_yaml(file.text(MAX_BYTES), file).root
    if root is None:
        raise file.problem("is empty")
    return Stated(answer=read_selection(root))


def _data_query(text: str, structure: Structure | None) -> Selection:
    if not is_data_query(text):
        form = f", which is {FORMS}" if structure else ""
        raise ValueError(f"the text is neither JSON nor an SDMX data query{form}")
    return read_data_query(text.strip(), structure)


def _read(predicted: Stated, structure: Structure | None) -> Execution:
    if predicted.query is None:
        if not isinstance(predicted.answer, Selection):
            raise PredictorError(f"the prediction is no selection but a {type(predicted.answer).__name__}")
        return Execution(query=None, answer=predicted.answer)
    content, note = answer_text(predicted.query)
    found = refusal(content) or _selection(content, structure)
    if isinstance(found, Failure):
        return Execution(query=predicted.query, error=found)
    return Execution(query=predicted.query, answer=found, note=note)


def _selection(text: str, structure: Structure | None) -> Selection | Failure:
    if _is_json(text):
        return read_json_text(text, read_selection)
    try:
        return _data_query(text, structure)
    except ValueError as error:
        return Failure(kind="invalid", message=str(error))


SDMX = Sdmx()
