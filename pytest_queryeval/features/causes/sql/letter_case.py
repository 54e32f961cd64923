"""Texts that queries compare columns with and the data has in another letter case only, in gold or in predicted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.cause import CausingEdit
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.table import Table
from pytest_queryeval.features.causes import Correction
from pytest_queryeval.features.causes.sql.changes import write, writer
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns
from pytest_queryeval.languages.sql.compared_texts import ComparedText, compared_texts

MAX_LOOKUPS = 6  # of the texts of a query
Run: TypeAlias = Callable[[str], Table | None]
"""Returns the answer of a query on the source; None if it fails."""
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")


def correction(gold: str, predicted: str, dialect: str, schema: Schema, run: Run) -> Correction | None:
    """Return gold with the texts that predicted writes in another letter case, where the data has only these."""
    texts, gold_texts = ({"".join(groups) for groups in _QUOTED.findall(query)} for query in (predicted, gold))
    spellings = {text.casefold(): text for text in texts - gold_texts}
    suspects = {text: spellings[text.casefold()] for text in gold_texts - texts if text.casefold() in spellings}
    replacements: dict[str, str] = {}
    changes = []
    texts_of_gold = list(islice(compared_texts(gold, dialect, schema), MAX_LOOKUPS)) if suspects else []
    for text in texts_of_gold:
        # The same text may be right for another column.
        is_alone = len({compared.column for compared in texts_of_gold if compared.text == text.text}) == 1
        values = _other_spellings(text, run) if is_alone else []
        if values:
            replacements[text.text] = suspects[text.text] if suspects.get(text.text) in values else values[0]
            changes.append(f"gold's '{text.text}' is not in {text.column}, '{replacements[text.text]}' is")
    shared_tree = parse_query(gold, dialect).whole_tree
    if shared_tree is None or replacements.items().isdisjoint(suspects.items()):
        return None
    tree = shared_tree.copy()
    Columns(schema.tables, dialect).replace_texts(tree)
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and literal.name in replacements:
            literal.set("this", replacements[literal.name])
    query = write(tree, writer(dialect))
    edit = CausingEdit(label="gold-value", clause="WHERE", change="; ".join(changes))
    return None if query is None else Correction(edit, query)


def remarks(queries: Iterable[str], dialect: str, schema: Schema, run: Run) -> dict[tuple[str, str], str]:
    """Return what to say about texts that the data has in another letter case only.

    The keys are the names of the columns that they are compared with, in lower case, and the texts.
    """
    return {
        (text.column.rpartition(".")[2].lower(), text.text): f"{text.column} has '{values[0]}'"
        for query in queries
        for text in islice(compared_texts(query, dialect, schema), MAX_LOOKUPS)
        if (values := _other_spellings(text, run))
    }


def _other_spellings(text: ComparedText, run: Run) -> list[str]:
    """Return the values in the place of a text that its column does not have, the most frequent ones first."""
    answer = run(text.alike_query)
    if answer is None or any(is_equal for _, _, is_equal in answer.rows):
        return []
    values = [(count, value) for value, count, _ in answer.rows if isinstance(count, int) and isinstance(value, str)]
    return [value for _, value in sorted(values, reverse=True)]
