"""The rules on golds: each rule yields messages, with remedies, about what is wrong with a gold and its answer.

For SPARQL queries the triple patterns are asked one by one, and for SQL queries the texts that columns are compared
with.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from pytest_queryeval.comparison.canonical import canonical_rows
from pytest_queryeval.comparison.equality import equal_tables, project
from pytest_queryeval.comparison.expectations import check_expectations
from pytest_queryeval.comparison.ties import ties_of
from pytest_queryeval.core.errors import Finding, Location, QueryEvalError, SourceError, case_finding
from pytest_queryeval.core.json_value import display_cell
from pytest_queryeval.core.model import SCORE_TOLERANCE, AddedAnswer, Case, Execution, Prediction, QueryOrAnswer
from pytest_queryeval.core.table import XSD_STRING, Cell, Literal, Table
from pytest_queryeval.engines import is_local
from pytest_queryeval.evaluation import gold_error
from pytest_queryeval.evaluation.schema_use import scope_breaches, unknown_scope_names
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.languages.sparql.query import declared_prefixes
from pytest_queryeval.languages.sparql.tree import Triple, Writer
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.suites.case_tables import TO_YAML
from pytest_queryeval.suites.keys import KEYS
from pytest_queryeval.text.formatting import cell_text, format_score, one_line, pluralize

RANDOM_RUNS = 10  # of a gold that takes random values
MAX_TRIED_COLUMNS = 8  # that may decide what a gold leaves open
CHOICE_CHARACTERS = 100
CELL_CHARACTERS = 30
ROUND_ROWS = 1_000
READING_CHARACTERS = 50
MIN_LETTERS = 6  # of a text in which one letter more, less or other is a misspelling
_LIMIT = re.compile(r"\b(?:limit|top|fetch)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_DIGITS = re.compile(r"\d+")


def run_golds(case: Case, session: Session, *, run_queries: bool = True) -> Iterator[GoldRun]:
    """Yield the golds of a case after running them one by one on the source of golds.

    Without `run_queries`, only stated answers are read. Raise `SourceError` if the source does not answer.
    """
    case = case.on_gold_source
    for index, content in enumerate(case.golds):
        is_run = run_queries or content.answer is not None
        execution = session.execute_cached(content, case) if is_run else None
        yield GoldRun(case=case, index=index, execution=execution, session=session)


@dataclass(frozen=True, kw_only=True)
class GoldRun:
    """A gold of a case, with the execution that gave its answer."""

    case: Case
    """The case, with the source of golds as its source."""
    index: int
    """The position of the gold, from 0."""
    execution: Execution | None
    """None if queries are not run and the gold is a query."""
    session: Session

    @property
    def kind(self) -> Kind:
        """The `Kind` that the case's setting `kind` names."""
        return KINDS[self.case.settings.kind]

    @property
    def content(self) -> QueryOrAnswer:
        """The gold as the suite states it."""
        return self.case.golds[self.index]

    @property
    def location(self) -> Location:
        """The place of the gold in its suite; that of the case if it has none."""
        return self.content.location or self.case.location

    @property
    def query(self) -> str | None:
        """The query of the gold as it was run; None if no source runs it."""
        query = self.content.query if self.execution is None else self.execution.query
        return query if self.kind.has_queries and self.case.settings.source is not None else None

    @property
    def is_remote(self) -> bool:
        """Whether a service runs the gold, and not a local file."""
        source = self.case.settings.source
        return source is not None and not is_local(source)

    @property
    def writes(self) -> bool:
        """Whether the gold may change data."""
        return self.case.settings.source is not None and self.case.settings.source.writes

    @property
    def table(self) -> Table | None:
        """The gold answer if it is a table, else None."""
        return None if self.execution is None else self.execution.table

    @property
    def change(self) -> AddedAnswer | None:
        """The gold answer if it is what statements changed, else None."""
        answer = None if self.execution is None else self.execution.answer
        return answer if self.writes and isinstance(answer, AddedAnswer) else None

    @property
    def compared_table(self) -> Table | None:
        """The compared columns of the gold answer; None if it is no table or lacks a column that the case names."""
        with suppress(QueryEvalError):
            return None if self.table is None else project(self.table, self.case.settings.policy.gold_columns)
        return None

    @cached_property
    def scoring(self) -> Scoring | None:
        """The scoring of the gold answer as a prediction; None if there is no answer that can be compared."""
        if self.execution is None or self.execution.error or (self.table is not None and self.compared_table is None):
            return None
        return self.scoring_of(
            self.execution if self.table is None else replace(self.execution, answer=self.compared_table)
        )

    def scoring_of(self, predicted: Execution) -> Scoring:
        """Return the scoring of an execution as the prediction of this case."""
        assert self.execution is not None
        prediction = Prediction(self.content, predictor="gold")
        return Scoring(self.case, self.execution, predicted, prediction, self.session)

    def run(self, query: str) -> Table | None:
        """Return the answer of another query on the source of the case; None if it fails or is not a table."""
        return self.session.execute_cached(QueryOrAnswer(query=query), self.case, is_derived=True).table

    def asks(self, query: str) -> bool:
        """Return whether an ASK query is true on the source of the case; False if it fails."""
        answer = self.run(query)
        return answer is not None and answer.rows[0][0] is True


def gold_fails(gold: GoldRun) -> Iterator[str]:
    """Yield a message if the gold query does not run: the case would end in an error, whatever is predicted."""
    if gold.execution is not None and gold.execution.error is not None and gold.query is not None:
        yield str(gold_error(gold.execution.error, gold.case, gold.index, gold.session))


def gold_not_equal_to_itself(gold: GoldRun) -> Iterator[str]:
    """Yield a message for each requested metric that the gold answer itself misses, so that nothing can be right."""
    if gold.scoring is None:
        return
    for name in gold.case.settings.requested_metrics:
        metric = METRICS[name]
        if metric.published or metric.input == "predictions" or metric.injected & {"timer", "expectations"}:
            continue
        try:
            score = gold.scoring.value(name)
        except SourceError:
            raise
        except QueryEvalError as error:
            yield f"the gold answer cannot be compared with itself: {error}"
            continue
        if metric.max_score is None or math.isinf(metric.max_score) or metric.better == "lower":
            continue
        if score is None and name in gold.case.settings.thresholds:
            why = f" ({reason})" if (reason := gold.scoring.reasons.get(name)) else ""
            yield f"'{name}' has a threshold and does not apply to the gold answer{why}: remove the threshold"
        elif score is not None and score < metric.max_score - SCORE_TOLERANCE:
            yield (
                f"the gold answer scores {format_score(score)} and not {metric.max_score:g} against itself "
                f"by '{name}': "
                "fix the gold query, or the settings by which it is compared"
            )


def expectation_not_met(gold: GoldRun) -> Iterator[str]:
    """Yield a message for each expectation that the gold answer does not meet, so that no answer can be right."""
    if gold.compared_table is None:
        return
    policy, table = gold.case.settings.policy, gold.compared_table
    for report in check_expectations(gold.case.expectations, table, policy, gold.session.unmatched, gold=table):
        if not report["holds"]:
            expected = f"{report['name']}: {report['expected']}"
            yield f"the gold answer does not meet `{expected}`: {report['found']}: correct one of the two"


def unknown_column(gold: GoldRun) -> Iterator[str]:
    """Yield messages for `gold_columns` that the gold answer lacks or has several times.

    Yield messages too for columns that keys of features name and the source does not have.
    """
    if gold.writes and gold.execution is not None and gold.index == 0:
        for name, value in gold.case.extra.items():
            yield from KEYS[name].check(value, gold.case, gold.session.schema(gold.case))
    if gold.table is None:
        return
    try:
        project(gold.table, gold.case.settings.policy.gold_columns)
    except QueryEvalError as error:
        yield str(error)


def out_of_scope(gold: GoldRun) -> Iterator[str]:
    """Yield messages about what the gold query reads outside its case's `scope`, and about unknown names in there."""
    scope = gold.case.settings.scope
    if scope is None or gold.case.settings.gold_source is not None:
        return
    if gold.index == 0:
        yield from unknown_scope_names(scope, gold.case, gold.session)
    if gold.execution is None or gold.execution.error is not None or gold.query is None:
        return
    try:
        breaches = scope_breaches(gold.execution, gold.case, gold.session)
    except SourceError:
        raise
    except QueryEvalError as error:
        breaches = [str(error)]
    for breach in breaches:
        yield f"the gold query {breach}: no right prediction can be in scope: fix the gold query, or the scope"


def gold_empty(gold: GoldRun) -> Iterator[str]:
    """Yield a message if the gold answer has no rows or changes: any query that returns or changes nothing passes.

    Cases with `allow_empty` are left out.
    """
    if gold.change is not None and not gold.change.as_table().rows and not gold.case.allow_empty:
        remedy = "fix it, or write `allow_empty: true`"
        yield f"the gold query changes and returns nothing, so any statement that does neither passes: {remedy}"
    if gold.table is not None and not gold.table.rows and not gold.case.allow_empty:
        remedy = f"{TO_YAML}, and write" if gold.case.row else "write"
        problem = "the gold answer has no rows, so any query that returns nothing passes"
        yield f"{problem}: fix the query, or {remedy} `allow_empty: true`"


def gold_slow(gold: GoldRun) -> Iterator[str]:
    """Yield a message if the gold query takes more than half of `timeout`: on a busy machine it may not end in time."""
    timeout = gold.case.settings.timeout
    if gold.table is not None and gold.execution is not None and gold.execution.seconds > timeout / 2:
        yield (
            f"the gold query takes {gold.execution.seconds:.2g} s of the {timeout:g} s that `timeout` allows: "
            "simplify it, or raise `timeout`"
        )


def gold_unstable(gold: GoldRun) -> Iterator[str]:
    """Yield a message if the gold query answers differently when it runs again, so that the right query may fail.

    A query that takes random values runs several times, because it may answer alike by chance.
    """
    if gold.query is None or (gold.compared_table is None and gold.change is None):
        return
    remedy = "remove what depends on time or chance"
    for _ in range(RANDOM_RUNS if gold.kind.random_part(gold.query, gold.case.settings.dialect) else 1):
        again = gold.session.execute(gold.content, gold.case)
        if again.error is not None:
            yield f"the gold query ran once and then failed ({again.error.message}): {remedy}"
            return
        if gold.scoring_of(again).value("execution_accuracy") != 1.0:
            yield f"the gold query answered differently when it ran again: {remedy}"
            return


def limit_tie(gold: GoldRun) -> Iterator[str]:
    """Yield messages if a LIMIT cuts through different rows that tie: a wrong query may be right by chance."""
    if gold.table is None or gold.compared_table is None or gold.query is None:
        return
    plan = gold.kind.order_plan(gold.query, gold.table, gold.case)
    if plan is None or not plan.limited:
        return
    if gold.table.is_graph:
        yield (
            "LIMIT or OFFSET of the gold query chooses what the graph is made of, "
            "and only the graph that it gave is right: take all"
        )
        return
    ties, _ = ties_of(plan, gold.table, gold.case.settings.policy, lambda query: gold.run(query) or "it fails")
    for tie in ties or ():
        rows = replace(gold.table, rows=tie.rows, ties=None)
        tied = project(rows, gold.case.settings.policy.gold_columns)
        choices = len(set(canonical_rows(tied, gold.case.settings.policy)))
        if len(tie.rows) > tie.size and choices > 1:
            part = f"LIMIT or OFFSET of the gold query takes {tie.size:,} of {len(tie.rows):,} rows that"
            if plan.ordered:
                yield f"{part} tie, and any choice is right: order by more columns, or take all"
            else:
                yield f"{part} nothing orders, and any choice is right: add ORDER BY, or take all"


def open_choice(gold: GoldRun) -> Iterator[str]:
    """Yield a message if the gold query leaves its answer open below the top level, and two possible answers differ."""
    if gold.query is None or gold.compared_table is None or gold.writes:
        return
    query = gold.kind.open_query(gold.query, gold.case, lambda: gold.session.schema(gold.case))
    rows = None if query is None else _differing_rows(gold, query.decided())
    if query is None or not rows:
        return
    remedy = "decide it by more sort keys"
    for column in query.deciding_columns()[:MAX_TRIED_COLUMNS]:
        if _differing_rows(gold, query.decided(column)) == ():
            remedy = f"{column} as another sort key would decide it"
            break
    leaves_open = f"the gold query leaves its answer open, {one_line('; '.join(query.choices), CHOICE_CHARACTERS)}"
    yield f"{leaves_open}: it may return {' or '.join(rows)}, and both are right: {remedy}"


def _differing_rows(gold: GoldRun, queries: Sequence[str]) -> tuple[str, ...] | None:
    """Return, as text, a row of each of two answers that the other answer lacks; empty if all answers are equal.

    None if there are fewer than two queries, or one of them cannot be run.
    """
    policy = replace(gold.case.settings.policy, row_order="ignore")
    answers = [gold.run(query) for query in queries]
    tables = [project(answer, policy.gold_columns) for answer in answers if answer is not None]
    if len(tables) < max(2, len(queries)):
        return None
    other = next((table for table in tables[1:] if not equal_tables(tables[0], table, policy)), None)
    if other is None:
        return ()
    tables = [tables[0], other]
    canonical = [canonical_rows(table, policy) for table in tables]
    counts = [Counter(rows) for rows in canonical]
    texts = []
    for table, rows, alone in zip(tables, canonical, (counts[0] - counts[1], counts[1] - counts[0]), strict=True):
        row = next((row for row, key in zip(table.rows, rows, strict=True) if key in alone), ())
        cells = ", ".join(cell_text(display_cell(cell), CELL_CHARACTERS) for cell in row)
        texts.append(f"({cells})" if row else "no such row")
    return tuple(texts)


def text_order(gold: GoldRun) -> Iterator[str]:
    """Yield a message if ORDER BY sorts texts that are all numbers in another order: '10' comes before '9'."""
    if gold.table is None or gold.query is None:
        return
    keys = gold.kind.sort_key_query(gold.query, gold.table, gold.case)
    key_table = None if keys is None else gold.run(keys.text)
    if keys is None or key_table is None:
        return
    for place in range(-keys.key_columns, 0):
        values = {_as_text(row[place]) for row in key_table.rows if row[place] is not None}
        numbers = sorted(value for value in values if value is not None and _NUMBER.fullmatch(value))
        if len(numbers) < len(values):
            continue
        for first, second in pairwise(numbers):
            if float(first) > float(second):
                yield (
                    "the gold query orders by texts that are all numbers, "
                    f"where '{first}' comes before '{second}': cast the sort key to a number"
                )
                break


def _as_text(cell: Cell) -> str | None:
    """Return the text of a cell; None if the cell is not a text."""
    if isinstance(cell, Literal) and cell.datatype in ("", XSD_STRING):
        return cell.lexical
    return cell if isinstance(cell, str) else None


def constant_result(gold: GoldRun) -> Iterator[str]:
    """Yield a message if the gold query reads no data, or answers the same over empty tables: a constant would pass."""
    if gold.query is None or gold.writes:
        return
    if gold.kind.reads_no_data(gold.query, gold.case.settings.dialect):
        yield "the gold query reads nothing of its source, so it tests no query: ask for what the source contains"
        return
    if gold.compared_table is None or not gold.compared_table.rows:
        return
    emptied = gold.kind.without_data(gold.query, gold.case.settings.dialect)
    answer = None if emptied is None else gold.run(emptied)
    if answer is None:
        return
    answer, policy = (
        project(answer, gold.case.settings.policy.gold_columns),
        replace(gold.case.settings.policy, row_order="ignore"),
    )
    if equal_tables(gold.compared_table, answer, policy):
        yield (
            "the gold query answers the same if all tables are empty, so most wrong conditions pass: "
            "ask for something that the source contains"
        )


def unknown_term(gold: GoldRun) -> Iterator[str]:
    """Yield a message for each term of a SPARQL gold that the data lacks, so that its pattern has no solution."""
    if gold.table is None or gold.query is None:
        return
    for term in gold.session.unknown_terms(gold.query, gold.case) or ():
        yield f"{term.text}: fix the gold query, or leave the pattern out"


def lost_answer(gold: GoldRun) -> Iterator[str]:
    """Yield messages if an endpoint finds no answer to a SPARQL gold, though it finds solutions of all its patterns.

    A message is also yielded for a pattern without solution if the pattern without optional steps has one. Cases with
    `allow_empty` get only these messages.
    """
    if gold.table is None or gold.table.rows or gold.query is None or not gold.is_remote or gold.kind.name != "sparql":
        return
    source = gold.case.settings.source
    parts = [*required_patterns(gold.query, declared_prefixes(source.settings if source else {}))]
    answered = [gold.asks(part.query) for part in parts]
    for part, is_answered in zip(parts, answered, strict=True):
        if not is_answered and part.shorter and gold.asks(part.shorter_query):
            yield (
                f"the endpoint finds nothing for {part.text}, though it finds {part.shorter}, which is a part of that: "
                "write the path in another way, or ask another service"
            )
    if len(parts) > 1 and all(answered) and not gold.case.allow_empty:
        yield (
            "the endpoint finds nothing for the gold query, "
            f"though it finds something for each of its {len(parts)} patterns: "
            "see whether it cuts or misreads the query"
        )


def cut_answer(gold: GoldRun) -> Iterator[str]:
    """Yield a message if a service's answer to a gold without LIMIT has a round number of rows, and may be cut."""
    if gold.table is None or gold.query is None or not gold.is_remote:
        return
    rows = len(gold.table.rows)
    if rows and rows % ROUND_ROWS == 0 and not _LIMIT.search(gold.query):
        yield (
            f"the gold answer has exactly {rows:,} rows, at which the service may cut answers without a word: "
            "raise its limit, or ask for less"
        )


def moving_gold(gold: GoldRun) -> Iterator[str]:
    """Yield a message if the gold query reads the current date or time: its answer changes while the data does not."""
    if gold.query is not None and (reading := gold.kind.reads_clock(gold.query, gold.case.settings.dialect)):
        clock = f"the current date or time ({one_line(reading, READING_CHARACTERS)})"
        yield f"the gold query reads {clock}: write the date that is meant"


@dataclass(frozen=True, slots=True)
class RequiredPattern:
    """A triple pattern that every solution of a query matches."""

    text: str
    query: str
    """An ASK query that is true if the pattern has a solution."""
    shorter: str
    """The pattern without optional steps of its path, whose solutions it includes; empty if there are no such steps."""
    shorter_query: str
    """The ASK query for `shorter`."""


def required_patterns(query: str, prefixes: Mapping[str, str]) -> Iterator[RequiredPattern]:
    """Yield the required triple patterns of a query; nothing if the query cannot be read."""
    try:
        tree = read_tree(query, prefixes)
    except UnreadableError:
        return
    writer = Writer({**tree.prefixes, **prefixes, **tree.prefixes})
    dataset = "".join(f"{part} " for part in tree.tree.dataset)
    for pattern in tree.tree.where.elements if tree.tree.where else ():
        if isinstance(pattern, Triple):
            shorter = replace(pattern, path=_without_optional_steps(pattern.path))
            is_shorter = len(shorter.path) < len(pattern.path)
            yield RequiredPattern(
                writer.line(pattern),
                f"ASK {dataset}{{ {_written(pattern)} }}",
                writer.line(shorter) if is_shorter else "",
                f"ASK {dataset}{{ {_written(shorter)} }}" if is_shorter else "",
            )


def _written(pattern: Triple) -> str:
    return Writer({}).line(pattern)


def _without_optional_steps(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path without steps that end in `*` or `?`.

    The path is unchanged if it has parentheses, `|`, `!` or `^`, or if all steps are optional.
    """
    if not {"(", "|", "!", "^"}.isdisjoint(path):
        return path
    steps = "".join(f" {part} " for part in path).split(" / ")
    required = [step.split() for step in steps if step.split()[-1] not in ("*", "?")]
    parts = [part for number, step in enumerate(required) for part in (("/", *step) if number else step)]
    return tuple(parts) or path


def value_not_in_data(gold: GoldRun) -> Iterator[str]:
    """Yield a message for each compared text that its column has only in other letter case, spacing or spelling."""
    if gold.table is None or gold.query is None or gold.kind.name != "sql":
        return
    from pytest_queryeval.languages.sql.compared_texts import MAX_VALUES, compared_texts

    schema = gold.session.schema(gold.case)
    all_compared = [*compared_texts(gold.query, gold.case.settings.dialect, schema)]
    texts_of_gold = {(compared.column.lower(), compared.text) for compared in all_compared}
    for compared in all_compared:
        alike = gold.run(compared.alike_query)
        if alike is None or any(is_equal for _, _, is_equal in alike.rows):
            continue
        counts = [(count, value) for value, count, _ in alike.rows]
        if not counts:
            values = gold.run(compared.values_query)
            if values is None or len(values.rows) > MAX_VALUES:
                continue
            counts = [(count, value) for value, count in values.rows if _is_respelling(compared.text, value)]
        numbers = [
            (count, value)
            for count, value in counts
            if isinstance(count, int)
            and isinstance(value, str)
            and (compared.column.lower(), value) not in texts_of_gold  # gold asks for both spellings
        ]
        if numbers:
            count, value = max(numbers)
            yield (
                f"'{compared.text}' is not in {compared.column}, '{value}' is, {pluralize(count, 'time')}: "
                "fix the gold query, or the data"
            )


def _is_respelling(text: str, value: object) -> bool:
    """Return whether a value equals a text except for punctuation, spaces, letter case and accents, or one letter.

    One letter may differ only in texts of at least MIN_LETTERS with the same numbers.
    """
    if not isinstance(value, str):
        return False
    word, other_word = _letters(text), _letters(value)
    if word == other_word:
        return word != ""
    if min(len(word), len(other_word)) < MIN_LETTERS or _DIGITS.findall(word) != _DIGITS.findall(other_word):
        return False
    return _differ_in_one_letter(word, other_word)


def _letters(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if character.isalnum())


def _differ_in_one_letter(first: str, second: str) -> bool:
    """Return whether two texts are equal up to one letter that is added, left out or changed.

    >>> _differ_in_one_letter("germany", "germny"), _differ_in_one_letter("germany", "gernamy")
    (True, False)
    """
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    return second[1:] in (first, first[1:]) or second == first[1:]


GoldRule: TypeAlias = Callable[[GoldRun], Iterator[str]]
GOLD_RULES: Mapping[str, GoldRule] = {
    "gold-fails": gold_fails,
    "gold-not-equal-to-itself": gold_not_equal_to_itself,
    "expectation-not-met": expectation_not_met,
    "unknown-column": unknown_column,
    "out-of-scope": out_of_scope,
    "gold-empty": gold_empty,
    "gold-slow": gold_slow,
    "gold-unstable": gold_unstable,
    "limit-tie": limit_tie,
    "open-choice": open_choice,
    "text-order": text_order,
    "constant-result": constant_result,
    "unknown-term": unknown_term,
    "lost-answer": lost_answer,
    "cut-answer": cut_answer,
    "value-not-in-data": value_not_in_data,
    "moving-gold": moving_gold,
}


def findings_of(gold: GoldRun, rules: Collection[str] = GOLD_RULES) -> Iterator[Finding]:
    """Yield the findings of the given rules on a gold; raise `SourceError` if the source does not answer."""
    for rule in rules:
        for message in GOLD_RULES[rule](gold):
            yield case_finding(rule, gold.case, message, gold.location)


def check_golds(case: Case, session: Session, rules: Collection[str]) -> Iterator[Finding]:
    """Yield the findings of the given rules on all golds of a case; names of other rules are ignored.

    Raise `SourceError` if the source does not answer.
    """
    for gold in run_golds(case, session):
        yield from findings_of(gold, [rule for rule in GOLD_RULES if rule in rules])
