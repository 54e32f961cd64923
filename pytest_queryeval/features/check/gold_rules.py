"""The rules on golds: each yields a message, with its remedy, for what it finds wrong with one gold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from pytest_queryeval.comparison.canonical import canonical_rows
from pytest_queryeval.comparison.equality import equal_tables, project
from pytest_queryeval.comparison.ties import ties_of
from pytest_queryeval.core.errors import Finding, QueryEvalError, SourceError, case_finding
from pytest_queryeval.core.model import SCORE_TOLERANCE, Case
from pytest_queryeval.core.table import Cell, Literal
from pytest_queryeval.evaluation import gold_error
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.check.data_values import value_not_in_data
from pytest_queryeval.features.check.gold_run import GoldRun, run_golds
from pytest_queryeval.features.check.pattern_parts import pattern_parts
from pytest_queryeval.languages.sparql.query import declared_prefixes
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.suites.case_tables import TO_YAML
from pytest_queryeval.suites.keys import KEYS
from pytest_queryeval.text.formatting import format_score, one_line

GoldRule: TypeAlias = Callable[[GoldRun], Iterator[str]]
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
ROUND_ROWS = 1_000
READING_CHARACTERS = 50
_LIMIT = re.compile(r"\b(?:limit|top|fetch)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")


def gold_fails(gold: GoldRun) -> Iterator[str]:
    """Find golds that do not run: the case would end in an error, whatever is predicted."""
    if gold.execution is not None and gold.execution.error is not None and gold.query is not None:
        yield str(gold_error(gold.execution.error, gold.case, gold.index, gold.session))


def gold_not_equal_to_itself(gold: GoldRun) -> Iterator[str]:
    """Find golds that would miss a requested metric if they were predicted, so that no prediction can be right."""
    if gold.scoring is None:
        return
    for name in gold.case.settings.requested_metrics:
        metric = METRICS[name]
        if metric.published or metric.input == "predictions" or "timer" in metric.injected:
            continue
        if metric.max_score is None or math.isinf(metric.max_score) or metric.better == "lower":
            continue
        try:
            score = gold.scoring.value(name)
        except SourceError:
            raise
        except QueryEvalError as error:
            yield f"gold cannot be scored against itself: {error}"
            continue
        if score is None and name in gold.case.settings.thresholds:
            why = f" ({reason})" if (reason := gold.scoring.reasons.get(name)) else ""
            yield f"'{name}' has a threshold and does not apply to gold{why}: remove the threshold"
        elif score is not None and score < metric.max_score - SCORE_TOLERANCE:
            yield (
                f"gold scores {format_score(score)} and not {metric.max_score:g} against itself by '{name}': "
                "fix the gold, or the settings by which it is compared"
            )


def unknown_column(gold: GoldRun) -> Iterator[str]:
    """Find columns under `gold_columns` that gold's answer does not have, or has several times.

    Also columns that keys of features name and the source does not have.
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


def gold_empty(gold: GoldRun) -> Iterator[str]:
    """Find golds without rows, or without changes: any query that returns or changes nothing passes."""
    if gold.change is not None and not gold.change.as_table().rows and not gold.case.allow_empty:
        remedy = "fix it, or write `allow_empty: true`"
        yield f"gold changes and returns nothing, so any statement that does neither passes: {remedy}"
    if gold.table is not None and not gold.table.rows and not gold.case.allow_empty:
        remedy = f"{TO_YAML}, and write" if gold.case.row else "write"
        yield f"gold has no rows, so any query that returns nothing passes: fix it, or {remedy} `allow_empty: true`"


def gold_slow(gold: GoldRun) -> Iterator[str]:
    """Find golds that take more than half of `timeout`: on a busy machine they will not end in time."""
    timeout = gold.case.settings.timeout
    if gold.table is not None and gold.execution is not None and gold.execution.seconds > timeout / 2:
        yield (
            f"gold takes {gold.execution.seconds:.2g} s of the {timeout:g} s that `timeout` allows: "
            "simplify it, or raise `timeout`"
        )


def gold_unstable(gold: GoldRun) -> Iterator[str]:
    """Find golds that answer differently when they run again, so that the right query may fail."""
    if gold.query is None or (gold.compared is None and gold.change is None):
        return
    again = gold.session.execute(gold.content, gold.case)
    remedy = "remove what depends on time or chance"
    if again.error is not None:
        yield f"gold ran once and then failed ({again.error.message}): {remedy}"
    elif gold.scoring_of(again).value("execution_accuracy") != 1.0:
        yield f"gold answered differently when it ran again: {remedy}"


def limit_tie(gold: GoldRun) -> Iterator[str]:
    """Find a LIMIT that cuts through different rows that tie: a wrong query may be right by chance."""
    if gold.table is None or gold.compared is None or gold.query is None:
        return
    plan = gold.kind.order_plan(gold.query, gold.table, gold.case)
    if plan is None or not plan.limited:
        return
    ties, _ = ties_of(plan, gold.table, gold.case.settings.policy, lambda query: gold.run(query) or "it fails")
    for tie in ties or ():
        rows = replace(gold.table, rows=tie.rows, ties=None)
        tied = project(rows, gold.case.settings.policy.gold_columns)
        choices = len(set(canonical_rows(tied, gold.case.settings.policy)))
        if len(tie.rows) > tie.size and choices > 1:
            part = f"gold's LIMIT or OFFSET takes {tie.size:,} of {len(tie.rows):,} rows that"
            if plan.ordered:
                yield f"{part} tie, and any choice is right: order by more columns, or take all"
            else:
                yield f"{part} nothing orders, and any choice is right: add ORDER BY, or take all"


def text_order(gold: GoldRun) -> Iterator[str]:
    """Find ORDER BY on texts that are all numbers and sort in another order: '10' comes before '9'."""
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
                    "gold orders by texts that are all numbers, "
                    f"where '{first}' comes before '{second}': cast the sort key to a number"
                )
                break


def constant_result(gold: GoldRun) -> Iterator[str]:
    """Find golds that read nothing, or answer the same over empty tables: a constant would pass."""
    if gold.query is None or gold.writes:
        return
    if gold.kind.reads_no_data(gold.query, gold.case.settings.dialect):
        yield "gold reads nothing of its source, so that it is not a test of a query: ask for what the source holds"
        return
    if gold.compared is None or not gold.compared.rows:
        return
    emptied = gold.kind.without_data(gold.query, gold.case.settings.dialect)
    answer = None if emptied is None else gold.run(emptied)
    if answer is None:
        return
    answer, policy = (
        project(answer, gold.case.settings.policy.gold_columns),
        replace(gold.case.settings.policy, row_order="ignore"),
    )
    if equal_tables(gold.compared, answer, policy):
        yield (
            "gold answers the same where all tables are empty, so that most wrong conditions pass: "
            "ask for something that the source holds"
        )


def _as_text(cell: Cell) -> str | None:
    """Return the text of a cell; None if the cell is not a text."""
    if isinstance(cell, Literal) and cell.datatype in ("", XSD_STRING):
        return cell.lexical
    return cell if isinstance(cell, str) else None


def unknown_term(gold: GoldRun) -> Iterator[str]:
    """Find SPARQL golds that name what the data does not have, so that a pattern of theirs has no solution."""
    if gold.table is None or gold.query is None:
        return
    for term in gold.session.unknown_terms(gold.query, gold.case) or ():
        yield f"{term.text}: fix the gold, or leave the pattern out"


def lost_answer(gold: GoldRun) -> Iterator[str]:
    """Find SPARQL golds to which an endpoint answers nothing, though it has solutions for each of their patterns."""
    if gold.table is None or gold.table.rows or gold.query is None or not gold.is_remote or gold.kind.name != "sparql":
        return
    source = gold.case.settings.source
    parts = [*pattern_parts(gold.query, declared_prefixes(source.settings if source else {}))]
    answered = [gold.asks(part.query) for part in parts]
    for part, is_answered in zip(parts, answered, strict=True):
        if not is_answered and part.shorter and gold.asks(part.shorter_query):
            yield (
                f"the endpoint finds nothing for {part.text}, though it finds {part.shorter}, which is a part of that: "
                "write the path in another way, or ask another service"
            )
    if len(parts) > 1 and all(answered) and not gold.case.allow_empty:
        yield (
            f"the endpoint finds nothing for gold, though it finds something for each of its {len(parts)} patterns: "
            "see whether it cuts or misreads the query"
        )


def cut_answer(gold: GoldRun) -> Iterator[str]:
    """Find golds on services without LIMIT whose rows are a round number, at which the service may cut answers."""
    if gold.table is None or gold.query is None or not gold.is_remote:
        return
    rows = len(gold.table.rows)
    if rows and rows % ROUND_ROWS == 0 and not _LIMIT.search(gold.query):
        yield (
            f"gold has exactly {rows:,} rows, at which the service may cut answers without a word: "
            "raise its limit, or ask for less"
        )


def moving_gold(gold: GoldRun) -> Iterator[str]:
    """Find golds that read the current date or time: their answers change although the data do not."""
    if gold.query is not None and (reading := gold.kind.reads_clock(gold.query, gold.case.settings.dialect)):
        clock = f"the current date or time ({one_line(reading, READING_CHARACTERS)})"
        yield f"gold reads {clock}: write the date that is meant"


GOLD_RULES: Mapping[str, GoldRule] = {
    "gold-fails": gold_fails,
    "gold-not-equal-to-itself": gold_not_equal_to_itself,
    "unknown-column": unknown_column,
    "gold-empty": gold_empty,
    "gold-slow": gold_slow,
    "gold-unstable": gold_unstable,
    "limit-tie": limit_tie,
    "text-order": text_order,
    "constant-result": constant_result,
    "unknown-term": unknown_term,
    "lost-answer": lost_answer,
    "cut-answer": cut_answer,
    "value-not-in-data": value_not_in_data,
    "moving-gold": moving_gold,
}


def findings_of(gold: GoldRun, rules: Collection[str] = GOLD_RULES) -> Iterator[Finding]:
    """Yield what some of the rules, by default all, find wrong with a gold; raise `SourceError` as its source does."""
    for rule in rules:
        for message in GOLD_RULES[rule](gold):
            yield case_finding(rule, gold.case, message, gold.location)


def check_golds(case: Case, session: Session, rules: Collection[str]) -> Iterator[Finding]:
    """Yield what some of the rules find wrong with the golds of a case; rules on other things find nothing.

    Raise `SourceError` if the source does not answer.
    """
    for gold in run_golds(case, session):
        yield from findings_of(gold, [rule for rule in GOLD_RULES if rule in rules])
