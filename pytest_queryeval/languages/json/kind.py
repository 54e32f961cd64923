"""JSON: answers that are documents, compared by their structure and their values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.comparison.ties import OrderPlan
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.model import Answer, Case, Execution, Failure, Stated
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import File, Node
from pytest_queryeval.documents.json_nodes import json_within, read_json
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.languages.answer_text import answer_text, read_json_text, refusal
from pytest_queryeval.languages.files import stated_file, text_file
from pytest_queryeval.languages.json.difference import difference
from pytest_queryeval.languages.json.options import check_options
from pytest_queryeval.languages.json.schema import checked, violations
from pytest_queryeval.sandbox.host import Hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Json:
    """The kind `json`."""

    name: str = "json"
    default_metrics: tuple[str, ...] = ("json_equal", "structural_similarity", "path_f1")
    default_thresholds: Mapping[str, float] = field(default_factory=lambda: {"json_equal": 1.0})
    has_queries: bool = False
    text_numbers: bool = False
    options: frozenset[str] = frozenset({"at", "depth", "lists", "value_text", "beta", "alpha", "embedding_model"})
    paths: frozenset[str] = frozenset({"embedding_model"})
    nothing: Answer | None = field(default_factory=lambda: JsonAnswer({}))

    def check(self, options: Mapping[str, Any]) -> None:
        """See `Kind`."""
        check_options(options)

    def gold(self, node: Node) -> Stated:
        """See `Kind`: a value, or a text that is read as JSON."""
        if node.empty:
            raise node.problem('gold is empty: write "null" in quotes for JSON\'s null')
        value = json_value(node)
        if isinstance(value, str):
            value = json_value(json_within(node))
        return Stated(answer=JsonAnswer(value))

    def predicted(self, node: Node) -> Stated:
        """See `Kind`: a value, or a text as a model may say it."""
        if isinstance(node.value, str):
            return Stated(query=node.value)
        return Stated(answer=JsonAnswer(json_value(node)))

    def table(self, node: Node) -> Stated:
        """See `Kind`; there are none."""
        raise node.problem("answers of the kind 'json' are no tables: state a value")

    def file(self, node: Node) -> Stated:
        """See `Kind`."""
        return stated_file(node, {".json": _document, ".txt": text_file, ".md": text_file})

    def checked_gold(self, gold: Stated, case: Case) -> Stated:
        """See `Kind`: a gold keeps the case's JSON Schema; that of a text file is read as a prediction is."""
        if gold.answer is None:
            gold = _with_answer(gold)
        assert isinstance(gold.answer, JsonAnswer)
        if case.json_schema is not None and (broken := violations(gold.answer, case.json_schema)):
            raise ValueError(f"gold breaks {case.json_schema.file.name}: {broken[0]}")
        return gold

    def answered(self, predicted: Stated, case: Case, hosts: Hosts) -> Execution | None:
        """See `Kind`."""
        execution = _read(predicted)
        if case.json_schema is None or not isinstance(execution.answer, JsonAnswer):
            return execution
        found = checked(execution.answer, case.json_schema, hosts, timeout=case.timeout)
        if isinstance(found, Failure):
            # An answer that was stated as a value has no other place beside an error.
            said = self.text(execution.answer) if execution.query is None else execution.query
            return Execution(query=said, error=found)
        return replace(execution, violations=found)

    def unwrapped(self, said: str) -> tuple[str, str]:
        """See `Kind`; `answered` does it, which tells places in all that was said."""
        return said, ""

    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> Difference | None:
        """See `Kind`."""
        if not isinstance(gold, JsonAnswer) or not isinstance(predicted, JsonAnswer):
            return None
        return difference(gold, predicted, limit=limit)

    def text(self, answer: Answer) -> str | None:
        """See `Kind`."""
        return json.dumps(answer.value, ensure_ascii=False, indent=2) if isinstance(answer, JsonAnswer) else None

    def difficulty(self, query: str, dialect: str) -> str | None:
        """See `Kind`; nobody has published a rule."""
        return None

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        """See `Kind`; there are no rows."""
        return None


def _answer(node: Node) -> JsonAnswer:
    return JsonAnswer(json_value(node))


def _parsed(text: str) -> JsonAnswer | Failure:
    return read_json_text(text, _answer)


def _document(file: File) -> Stated:
    return Stated(answer=JsonAnswer(json_value(read_json(file))))


def _with_answer(gold: Stated) -> Stated:
    execution = _read(gold)
    if execution.error:
        raise ValueError(f"gold cannot be read: {execution.error.message}")
    return replace(gold, answer=execution.answer)


def _read(predicted: Stated) -> Execution:
    if predicted.query is None:
        if not isinstance(predicted.answer, JsonAnswer):
            raise PredictorError(f"the prediction is no JSON answer but a {type(predicted.answer).__name__}")
        return Execution(query=None, answer=predicted.answer)
    text, note = answer_text(predicted.query)
    found = refusal(text) or _parsed(text)
    if isinstance(found, Failure):
        return Execution(query=predicted.query, error=found)
    return Execution(query=predicted.query, answer=found, note=note)


JSON = Json()
