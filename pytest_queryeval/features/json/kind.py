"""The kind `json`: answers that are JSON documents, compared by their structure and their values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from pytest_queryeval.core.case_report import DifferenceReport
from pytest_queryeval.core.cause import Cause
from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.model import Answer, Case, Execution, Failure, QueryOrAnswer
from pytest_queryeval.core.table import Row
from pytest_queryeval.documents.document import File, Node, json_within, read_json
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.features.json.difference import difference, difference_cause, member_problem
from pytest_queryeval.features.json.fields import field_scores
from pytest_queryeval.features.json.metrics import check_options
from pytest_queryeval.features.json.schema import check_untrusted, schema_of, violations
from pytest_queryeval.languages.kind import Kind
from pytest_queryeval.languages.stated_answers import answer_text, read_json_text, stated_file, text_file
from pytest_queryeval.sandbox.host import Hosts


class Json(Kind):
    """The kind `json`; methods without a docstring do what `Kind` says."""

    name = "json"
    answer_type = JsonAnswer
    default_metrics = ("json_equal", "structural_similarity", "path_f1")
    default_thresholds = MappingProxyType({"json_equal": 1.0})
    options = frozenset({"at", "depth", "lists", "value_text", "beta", "alpha", "embedding_model"})
    paths = frozenset({"embedding_model"})
    empty_answer = JsonAnswer({})

    def check(self, options: Mapping[str, JsonValue]) -> None:
        check_options(options)

    def read_gold(self, node: Node) -> QueryOrAnswer:
        """Return a gold answer: the value of a node, or the JSON in its text; raise `CaseError` for an empty node."""
        if node.empty:
            raise node.problem('gold is empty: write "null" in quotes for JSON\'s null')
        value = json_value(node)
        if isinstance(value, str):
            value = json_value(json_within(node))
        return QueryOrAnswer(answer=JsonAnswer(value))

    def read_predicted(self, node: Node) -> QueryOrAnswer:
        """Return a prediction: a text is kept as the system's unread text, any other value is its answer."""
        if isinstance(node.value, str):
            return QueryOrAnswer(query=node.value)
        return QueryOrAnswer(answer=JsonAnswer(json_value(node)))

    def read_file(self, node: Node) -> QueryOrAnswer:
        def read(file: File) -> QueryOrAnswer:
            return QueryOrAnswer(answer=_node_answer(read_json(file)))

        return stated_file(node, {".json": read, ".txt": text_file, ".md": text_file})

    def check_gold(self, gold: QueryOrAnswer, case: Case) -> QueryOrAnswer:
        """Return a gold after checking it against the case's JSON Schema and the members that align its lists.

        A gold from a text file is read like a prediction first. Raise ValueError with the problem.
        """
        if gold.answer is None:
            execution = _read_content(gold)
            if execution.error:
                raise ValueError(f"the gold answer cannot be read: {execution.error.message}")
            gold = replace(gold, answer=execution.answer)
        assert isinstance(gold.answer, JsonAnswer)
        if problem := member_problem(gold.answer, case.settings.policy):
            raise ValueError(problem)
        schema = schema_of(case)
        if schema is not None and (problems := violations(gold.answer, schema)):
            raise ValueError(
                f"the gold answer breaks {schema.file.name}: {problems[0]}: correct the gold answer, or the schema"
            )
        return gold

    def uses_timeout(self, case: Case) -> bool:
        """Return whether a case's answers are checked against a JSON Schema, which takes time."""
        return schema_of(case) is not None

    def read_without_running(self, query_or_answer: QueryOrAnswer, case: Case, hosts: Hosts) -> Execution | None:
        execution, schema = _read_content(query_or_answer), schema_of(case)
        if schema is None or not isinstance(execution.answer, JsonAnswer):
            return execution
        violations_or_failure = check_untrusted(execution.answer, schema, hosts, timeout=case.settings.timeout)
        if isinstance(violations_or_failure, Failure):
            # An execution with an error has no answer, so an answer that was given as a value is kept as the query.
            query = self.text(execution.answer) if execution.query is None else execution.query
            return Execution(query=query, error=violations_or_failure)
        return replace(execution, violations=violations_or_failure)

    def difference(self, gold: Answer, predicted: Answer, case: Case, *, limit: int) -> DifferenceReport[Row] | None:
        if not isinstance(gold, JsonAnswer) or not isinstance(predicted, JsonAnswer):
            return None
        return difference(gold, predicted, case.settings.policy, limit=limit)

    def difference_cause(self, gold: Answer, predicted: Answer, case: Case) -> Cause | None:
        if not isinstance(gold, JsonAnswer) or not isinstance(predicted, JsonAnswer):
            return None
        return difference_cause(gold, predicted, case.settings.policy)

    def field_scores(self, gold: Answer, predicted: Answer | None, case: Case) -> Mapping[str, float]:
        assert isinstance(gold, JsonAnswer)
        return field_scores(gold, predicted if isinstance(predicted, JsonAnswer) else None, case.settings.policy)

    def text(self, answer: Answer) -> str | None:
        return json.dumps(answer.value, ensure_ascii=False, indent=2) if isinstance(answer, JsonAnswer) else None


def _node_answer(node: Node) -> JsonAnswer:
    return JsonAnswer(json_value(node))


def _read_content(query_or_answer: QueryOrAnswer) -> Execution:
    if query_or_answer.query is None:
        if not isinstance(query_or_answer.answer, JsonAnswer):
            raise PredictorError(f"the prediction is not a JSON answer but a {type(query_or_answer.answer).__name__}")
        return Execution(query=None, answer=query_or_answer.answer)
    said = answer_text(query_or_answer.query)
    if isinstance(said, Failure):
        return Execution(query=query_or_answer.query, error=said)
    text, note = said
    found = read_json_text(text, _node_answer)
    if isinstance(found, Failure):
        return Execution(query=query_or_answer.query, error=found)
    answer, place = found
    return Execution(query=query_or_answer.query, answer=answer, note="; ".join(filter(None, (note, place))))


JSON = Json()
