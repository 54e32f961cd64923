"""Spider's test-suite execution accuracy, as published."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import count

from pytest_queryeval.comparison.alignment import whole_alignment
from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.model import Execution
from pytest_queryeval.core.table import Row, Table

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\bdistinct\b|;""", re.I | re.S)


def first_statement_without_distinct(query: str) -> str:
    """Return the text up to the first `;`, without the word DISTINCT, and with `> =`, `< =`, `! =` joined.

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
    """Return a note where other statements follow the first, which `first_statement_without_distinct` leaves out."""
    end = next((token.end() for token in _TOKEN.finditer(query) if token.group() == ";"), len(query))
    return "published rule: text after the first `;` ignored" if query[end:].strip("; \t\r\n") else ""


def with_value_as_one(query: str) -> str:
    """Return the prediction as the published tool reads it: each `value`, also within a word, becomes 1."""
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

    Both empty are equal. The rows, each with its cells sorted by text and type, must agree (as a list if gold's text
    holds "order by" anywhere, else as a set); then some order of the predicted columns must make the rows equal, as a
    list if ordered, else as a multiset. Cells are compared by Python equality. Kept as published, to be compared with
    papers. A prediction that fails unchanged, since more statements follow the first, is a failed prediction
    nevertheless; a note says that they are ignored here.
    Source: taoyds/test-suite-sql-eval, exec_eval.py (one database for each question).
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
    return float(agree and _some_permutation_agrees(gold_rows, predicted_rows, is_ordered))


def _some_permutation_agrees(gold_rows: Sequence[Row], predicted_rows: Sequence[Row], is_ordered: bool) -> bool:
    codes: defaultdict[object, int] = defaultdict(count().__next__)
    columns = []
    for rows in (gold_rows, predicted_rows):
        coded_columns = [[codes[cell] for cell in column] for column in zip(*rows, strict=True)]
        columns.append([list(range(len(rows))), *coded_columns] if is_ordered else coded_columns)
    alignment = whole_alignment(columns[0], columns[1], pinned=int(is_ordered))
    return alignment is not None and alignment.matched == len(gold_rows)
