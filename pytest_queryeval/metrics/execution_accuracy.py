"""Execution accuracy: whether both answers are the same, by our rule and by those of BIRD and Spider."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count

from pytest_queryeval.comparison.alignment import whole_alignment
from pytest_queryeval.comparison.equality import equal_tables
from pytest_queryeval.core.metric import Score, States, metric
from pytest_queryeval.core.model import Execution
from pytest_queryeval.core.table import Policy, Table


@metric()
def execution_accuracy(gold: Table, predicted: Table, *, policy: Policy = Policy()) -> float:  # noqa: B008 (immutable)
    """Return 1 if the tables are equal under the policy, else 0.

    By default rows are a multiset, columns may be in any order under any names, and numbers are equal within a
    tolerance. The order of rows counts if gold's query orders them (`gold.ties`), except among rows that tie. Two
    answers without rows are equal if they have equally many columns. A graph with triples equals only graphs.

    >>> gold = Table(columns=("x",), rows=((0.3,), (1,)))
    >>> execution_accuracy(gold, Table(columns=("y",), rows=((1.0,), (0.1 + 0.2,))))
    1.0
    >>> execution_accuracy(gold, Table(columns=("y",), rows=((1.0,), (0.3,), (0.3,))))
    0.0
    """
    return float(equal_tables(gold, predicted, policy))


@metric(published=True)
def execution_accuracy_bird(gold: Table, predicted: Table) -> float:
    """Return 1 if the sets of rows are equal as Python tuples, else 0.

    The order and the number of equal rows are ignored, the order of columns counts, 1 equals 1.0, nothing is rounded,
    and two empty answers are equal. Kept as published, to be compared with papers; `execution_accuracy` is the sound
    rule.
    Source: bird-bench/mini_dev, evaluation_ex.py.
    """
    return float(set(gold.rows) == set(predicted.rows))


_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\bdistinct\b|;""", re.I | re.S)


def first_statement_without_distinct(query: str) -> str:
    """Return a query as the published tool reads gold: the text up to the first `;`, without the word DISTINCT.

    `> =`, `< =` and `! =` are joined. In quoted texts and comments, `;` and DISTINCT stay.

    >>> first_statement_without_distinct("SELECT DISTINCT a FROM t WHERE b > = 2; DROP TABLE t")
    'SELECT  a FROM t WHERE b >= 2'
    """
    for comparison in "><!":
        query = query.replace(f"{comparison} =", f"{comparison}=")
    fragments, position = [], 0
    for token in _TOKEN.finditer(query):
        fragments.append(query[position : token.start()])
        position = token.end()
        if token.group() == ";":
            return "".join(fragments)
        if token.group().lower() != "distinct":
            fragments.append(token.group())
    return "".join(fragments) + query[position:]


def note_on_ignored_text(query: str) -> str:
    """Return a note if a query has more text after its first `;`, which the published tool ignores; else empty."""
    end = next((token.end() for token in _TOKEN.finditer(query) if token.group() == ";"), len(query))
    return "published rule: text after the first `;` ignored" if query[end:].strip("; \t\r\n") else ""


def with_value_as_one(query: str) -> str:
    """Return a prediction as the published tool reads it: as it reads gold, but with every `value` replaced by 1.

    `value` is replaced within words, too.
    """
    return first_statement_without_distinct(query.replace("value", "1"))


@metric(
    published=True,
    kinds=frozenset({"sql"}),
    input="executions",
    rewrite=(first_statement_without_distinct, with_value_as_one),
    rewrite_note=note_on_ignored_text,
)
def execution_accuracy_spider(gold: Execution, predicted: Execution) -> float:
    """Return 1 if the answers of the rewritten queries agree by the published rule, else 0.

    Two empty answers are equal. First the rows, with the cells of each row sorted by text and type, must agree: as a
    list if gold's text contains "order by" anywhere, else as a set. Then some order of the predicted columns must make
    the rows equal: as a list if ordered, else as a multiset. Cells are compared by Python equality. A prediction that
    fails unchanged, because more statements follow the first, is a failed prediction nevertheless; a note says that
    they are ignored here. Kept as published, to be compared with papers. Source: taoyds/test-suite-sql-eval,
    exec_eval.py (one database for each question).
    """
    if not isinstance(gold.answer, Table) or not isinstance(predicted.answer, Table):
        return 0.0
    gold_rows, predicted_rows = gold.answer.rows, predicted.answer.rows
    if not gold_rows and not predicted_rows:
        return 1.0
    if len(gold_rows) != len(predicted_rows) or len(gold_rows[0]) != len(predicted_rows[0]):
        return 0.0
    is_ordered = "order by" in (gold.query or "").lower()
    sorted_gold, sorted_predicted = (
        [tuple(sorted(row, key=lambda cell: str(cell) + str(type(cell)))) for row in rows]
        for rows in (gold_rows, predicted_rows)
    )
    agree = sorted_gold == sorted_predicted if is_ordered else set(sorted_gold) == set(sorted_predicted)
    if not agree:
        return 0.0
    codes: defaultdict[object, int] = defaultdict(count().__next__)
    columns = []
    for rows in (gold_rows, predicted_rows):
        coded_columns = [[codes[cell] for cell in column] for column in zip(*rows, strict=True)]
        columns.append([[place * is_ordered for place in range(len(rows))], *coded_columns])
    alignment = whole_alignment(columns[0], columns[1], pinned=1)
    return float(alignment is not None and alignment.matched == len(gold_rows))


@metric(input="executions", kinds=frozenset({"sql", "sparql"}))
def test_suite_accuracy(gold: Execution, predicted: Execution, *, states: States | None) -> Score:
    """Return 1 if `execution_accuracy` is 1 on the source and on each of its variants, else 0.

    The score is None if the source has no variants, and for answers that are given without a query. The first database
    on which the answers differ ends the comparison; a note names it unless it is the source itself. Source: the idea is
    that of Zhong, Yu and Klein, Semantic Evaluation for Text-to-SQL with Distilled Test Suites (EMNLP 2020).
    """
    return _least(states, "execution_accuracy")


@metric(published=True, input="executions", kinds=frozenset({"sql"}))
def test_suite_accuracy_spider(gold: Execution, predicted: Execution, *, states: States | None) -> Score:
    """Return 1 if `execution_accuracy_spider` is 1 on the source and on each of its variants, else 0.

    The score is None when that of `test_suite_accuracy` is None. Source: taoyds/test-suite-sql-eval, exec_eval.py (all
    databases of a folder).
    """
    return _least(states, "execution_accuracy_spider")


def _least(states: States | None, name: str) -> Score:
    """Return 1 if the metric called `name` is 1 in every state of the database, else 0; None without `states`.

    A note names the first state in which it is not 1, unless that is the source itself.
    """
    if states is None:
        return Score(value=None, details={"notes": ["test suite: needs two queries and a source with `variants`"]})
    for state, value in states(name):
        if value != 1.0:
            # The difference on the source is reported elsewhere.
            return Score(value=0.0, details={"notes": [f"test suite: the answers differ on {state}"] if state else []})
    return Score(value=1.0)
