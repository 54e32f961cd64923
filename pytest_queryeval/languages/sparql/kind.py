"""SPARQL: its default metrics, the order of its rows, and the notation of its terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_queryeval.comparison.ties import OpenQuery, OrderPlan, TieQuery
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.metric import SchemaUse
from pytest_queryeval.core.model import Answer, Case, QueryOrAnswer, Source
from pytest_queryeval.core.table import Cell, Table
from pytest_queryeval.documents.document import File, Node
from pytest_queryeval.documents.values import scalar
from pytest_queryeval.languages.extract_query import SPARQL_TEXT
from pytest_queryeval.languages.query_language import QueryLanguage
from pytest_queryeval.languages.sparql import ASK_COLUMNS, GRAPH_COLUMNS, csv_term, graph_table, refusal, stated_term
from pytest_queryeval.languages.sparql.order import order_plan, with_empty_dataset
from pytest_queryeval.languages.sparql.query import (
    WIKIBASE_LABEL,
    declared_prefixes,
    missing_prefixes,
    read_query,
)
from pytest_queryeval.languages.stated_answers import MAX_STATED_BYTES, stated_file, table_readers

RDF_SUFFIXES = (".ttl", ".nt")


class Sparql(QueryLanguage):
    """The kind `sparql`: how its cases are read, and how its queries are analysed."""

    name = "sparql"
    language = SPARQL_TEXT
    default_metrics = (
        "execution_accuracy",
        "arity_f1",
        "entity_set_f1",
        "row_matching_f1",
        "exact_match_f1",
        "valid_query",
    )
    text_numbers = True

    def stated_cell(self, node: Node) -> Cell:
        return stated_term(scalar(node))

    def csv_cell(self, node: Node) -> Cell:
        return csv_term(scalar(node))  # SPARQL CSV results write IRIs bare

    def read_file(self, node: Node) -> QueryOrAnswer:
        readers = table_readers(self.stated_cell, self.csv_cell)
        return stated_file(node, {**readers, **dict.fromkeys(RDF_SUFFIXES, _rdf_file)})

    def refusal_remedy(self, query: str, message: str, case: Case) -> str:
        if read_query(query).services == (WIKIBASE_LABEL,):
            return "move it to the group that binds the entity, and name the columns instead of `*`"
        if "`service:" in message or not read_query(query).services:
            return super().refusal_remedy(query, message, case)
        return "leave it out, or use an endpoint that allows it, `source: {endpoint: {url: URL, service: true}}`"

    def parses(self, query: str, dialect: str) -> bool:
        from pytest_queryeval.languages.sparql.tree_reader import in_other_words

        return bool(in_other_words(query))

    def run_note(self, query: str, source: Source) -> str:
        added_prefixes = missing_prefixes(query, declared_prefixes({**source.settings, "profile": ""}))
        names = ", ".join(f"{name}:" for name in added_prefixes)
        return f"prefixes of the source added: {names}" if names else ""

    def in_form_of(self, reference: Answer, answer: Answer) -> Answer:
        """Return a table of triples as a graph if `reference` is a graph; any other answer unchanged."""
        if not isinstance(reference, Table) or not reference.is_graph or not isinstance(answer, Table):
            return answer
        return answer if answer.is_graph or len(answer.columns) != len(GRAPH_COLUMNS) else graph_table(answer.rows)

    def features(self, query: str, dialect: str) -> tuple[str, ...]:
        from pytest_queryeval.languages.sparql.tree_facts import query_features

        return query_features(query)

    def order_plan(self, query: str, table: Table, case: Case) -> OrderPlan | None:
        return order_plan(query, table.columns, len(table.rows), case.settings.max_rows)

    def sort_key_query(self, query: str, table: Table, case: Case) -> TieQuery | None:
        plan = self.order_plan(query, table, case)
        return plan.queries[0] if plan is not None and plan.ordered and plan.queries else None

    def open_query(self, query: str, case: Case, schema: Callable[[], Schema]) -> OpenQuery | None:
        from pytest_queryeval.languages.sparql.guided import open_query

        return open_query(query, _prefixes(case))

    def selected_columns(self, query: str, dialect: str) -> tuple[str, ...] | None:
        outline = replace(read_query(query), services=())
        if failure := refusal(outline):
            raise ValueError(failure.message)
        if outline.gives_graph:
            return GRAPH_COLUMNS
        return ASK_COLUMNS if outline.form == "ASK" else None if outline.selects_all else outline.columns

    def schema_use(self, query: str, case: Case, schema: Schema) -> SchemaUse:
        from pytest_queryeval.languages.sparql.source_terms import term_roles
        from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

        try:
            roles = term_roles(read_tree(query, _prefixes(case)).tree)
        except UnreadableError as error:
            raise ValueError(str(error)) from error
        return SchemaUse(
            *(frozenset(term for term, role in roles.items() if role == of) for of in ("class", "property"))
        )

    def reads_no_data(self, query: str, dialect: str) -> bool:
        outline = read_query(query)
        return outline.form in ("SELECT", "ASK", "CONSTRUCT") and not outline.has_patterns

    def reads_clock(self, query: str, dialect: str) -> str:
        return "NOW()" if any(token.is_word("NOW") for token in read_query(query).tokens) else ""

    def random_part(self, query: str, dialect: str) -> str:
        tokens = read_query(query).tokens
        return next(
            (f"{word}()" for word in ("RAND", "UUID", "STRUUID") if any(token.is_word(word) for token in tokens)), ""
        )

    def without_data(self, query: str, dialect: str) -> str | None:
        return with_empty_dataset(query)


def _prefixes(case: Case) -> Mapping[str, str]:
    return {} if case.settings.source is None else declared_prefixes(case.settings.source.settings)


def _rdf_file(file: File) -> QueryOrAnswer:
    from pytest_queryeval.languages.sparql.results import read_rdf_results

    try:
        return QueryOrAnswer(answer=read_rdf_results(file.text(MAX_STATED_BYTES), file.path.suffix.lower()))
    except ValueError as error:
        raise file.problem(str(error)) from error


SPARQL = Sparql()
