"""Single edits of a predicted SQL query, from its differences to gold, and texts in a letter case that no data has."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, islice
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.cause import NOTHING, CausingEdit, SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.model import Case, Execution, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import Correction, Edits
from pytest_queryeval.features.causes.repair import FailedQuery
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.alignment import align
from pytest_queryeval.features.causes.sql.changes import Side, Size, write, writer
from pytest_queryeval.features.causes.sql.clause_edits import ClauseEdits
from pytest_queryeval.features.causes.sql.combined_edits import combined_edits
from pytest_queryeval.features.causes.sql.parts import query_within, sources
from pytest_queryeval.features.causes.sql.repairs import sql_repairs
from pytest_queryeval.features.causes.sql.shared_parts import Remarks, shared_parts
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns
from pytest_queryeval.languages.sql.compared_texts import ComparedText, compared_texts
from pytest_queryeval.text.formatting import one_line_with_end

MAX_CHANGE = 160  # characters of each side
# Of a query: counts, so that reports do not depend on the machine. People's queries have some hundred and a few.
MAX_NODES = 1_500
MAX_SELECTS = 12
DATABASES = 16  # small ones, on which a repaired query is compared with gold
TELLING_ROWS = 3  # of an answer that an edit hardly hits by chance
MAX_LOOKUPS = 6  # of the texts of a query in the data
Run: TypeAlias = Callable[[str], Table | None]
"""Returns the answer of a query on the source; None if it fails."""
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_FIRST_WORDS = {
    **{clause: f"{clause} " for clause in ("FROM", "WHERE", "HAVING", "QUALIFY", "LIMIT")},
    **{clause: f"{clause} BY " for clause in ("GROUP", "ORDER")},
}


class SqlEdits:
    """The edits that lead from a predicted query to gold, the smallest first."""

    def __init__(
        self, predicted: exp.Expr, gold: exp.Expr, schema: Schema, dialect: str, widths: Container[int] | None
    ) -> None:
        self._widths, self._width = widths, _width(predicted)
        self._keeping_width: set[int] = set()  # edits that leave the number of columns as it is, which is wrong
        align(predicted, gold, schema, dialect)
        self._writer = writer(dialect)
        self._gold = gold
        selects = zip(*map(parts.arms, (predicted, gold)), strict=False)
        self._has_extra_tables = any(sources(select).keys() - sources(gold).keys() for select, gold in selects)
        self._root = exp.Paren(this=predicted)  # so that the query itself has a place
        self._products = max(parts.products(query.walk()) for query in (predicted, gold))
        self._structs = _unknown_tables(predicted.walk()) | _unknown_tables(gold.walk())  # columns with fields
        clause_edits = ClauseEdits(predicted, gold)
        edits = [*combined_edits(clause_edits, predicted, gold), *clause_edits.edits]
        self._edits = sorted(edits, key=lambda edit: edit.rank)

    @cached_property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits, in the order in which they are to be tried.

        Where a set operation combines queries, those that are equal in several of them say in which one they are.
        """
        shown = [*map(self._shown, range(len(self._edits)))]
        arms = enumerate(parts.arms(self._root.this), start=1)
        arm_of = {id(node): number for number, arm in arms for node in arm.walk()}
        numbers = [arm_of.get(id(edit.within)) for edit in self._edits]
        times = Counter(edit for edit, number in {*zip(shown, numbers, strict=True)} if number is not None)
        operation = parts.set_operation(self._root.this)
        return [
            edit
            if number is None or times[edit] == 1
            else replace(edit, change=f"{edit.change}; in query {number} of {operation}")
            for edit, number in zip(shown, numbers, strict=True)
        ]

    def _shown(self, number: int) -> CausingEdit:
        """Return an edit as reports show it, with the tables that are dropped since nothing uses them after it."""
        edit = self._edits[number]
        word = _FIRST_WORDS.get(edit.clause, "")  # reports show the clause before the change
        old, new = (
            one_line_with_end(self._text(side, edit.within).removeprefix(word), MAX_CHANGE) for side in edit.change
        )
        names = self._changed([number])[1] if self._has_extra_tables else ()
        dropped = f"; drops {', '.join(names)}, which nothing else uses" if names else ""
        return CausingEdit(label=edit.label, clause=edit.clause, change=f"{old or NOTHING} → {new or NOTHING}{dropped}")

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together: each alone, then pairs, the smallest first.

        Where two edits change the same clause, or queries in it, one that replaces it as a whole is not tried alone,
        nor with another edit of it: the pair says the same with less.
        """
        areas, sizes = [edit.areas for edit in self._edits], [edit.size for edit in self._edits]
        parts_of = Counter(
            area for within, size in zip(areas, sizes, strict=True) if size < Size.SEVERAL for area in within
        )
        numbers = range(len(areas))

        def replaces(number: int, part: int) -> bool:
            return sizes[number] == Size.CLAUSE and areas[number][0] in areas[part]

        yield from ((number,) for number in numbers if sizes[number] < Size.CLAUSE or parts_of[areas[number][0]] != 2)
        pairs = [
            (first, second)
            for first, second in combinations(numbers, 2)
            if not replaces(first, second) and not replaces(second, first)
        ]
        yield from sorted(
            pairs,
            key=lambda pair: (sum(sizes[edit] == Size.CLAUSE for edit in pair), sum(sizes[edit] for edit in pair)),
        )

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return predicted after these edits; None for a query that is invalid, slow, or wrong by its width.

        It is invalid if it names a table that it does not read, and slow if it has more joins without a condition than
        predicted and gold have.
        """
        if self._keeping_width.issuperset(numbers):
            return None
        tree, _ = self._changed(numbers)
        width = _width(tree)
        if self._widths is not None and width is not None and width not in self._widths:
            if len(numbers) == 1 and width == self._width:
                self._keeping_width.add(numbers[0])
            return None
        nodes = list(tree.walk())
        columns = [node for node in nodes if isinstance(node, exp.Column)]
        if not _unknown_tables(nodes) <= self._structs:
            return None
        if parts.products(nodes) > self._products:
            return None
        if any(isinstance(node, exp.Table) and not node.args.get("alias") for node in nodes):
            changes.drop_table_names(columns)
        return write(tree, self._writer)

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted then has the clauses of gold, whatever the order of tables and columns."""
        return parts.content(self._changed(numbers)[0]) == self._gold_content

    @cached_property
    def _gold_content(self) -> str:
        return parts.content(self._gold)

    def _changed(self, numbers: Sequence[int]) -> tuple[exp.Expr, list[str]]:
        """Return predicted after these edits, and the tables that are dropped since nothing uses them then."""
        steps = (step for number in numbers for step in self._edits[number].steps)
        tree: exp.Expr = changes.changed_copy(self._root, steps).this
        if any(self._edits[number].clause == "FROM" for number in numbers):
            for select in tree.find_all(exp.Select):
                changes.arrange_joins(select)
        arms = zip(*map(parts.arms, (tree, self._root.this, self._gold)), strict=False)
        dropped_names = [name for selects in arms for name in changes.drop_leftovers(*selects)]
        if self._gold.args.get("with_") is not None:
            changes.add_common_queries(tree, self._gold.args["with_"])
        return tree, dropped_names

    def shared_parts(self, remarks: Remarks) -> SharedPatterns:
        """Return what predicted and gold have in common."""
        return shared_parts(self._root.this, self._gold, self._write, remarks)

    def _text(self, side: Side, within: exp.Expr) -> str:
        if isinstance(side, tuple | list):
            between = ", " if isinstance(side, tuple) else " "
            return between.join(filter(None, (self._text(part, within).strip(" ,") for part in side)))
        if not isinstance(side, exp.Expr):
            return side or ""
        copied_side, name = side.copy(), parts.only_table(within)
        columns = list(copied_side.find_all(exp.Column))
        changes.drop_table_names(columns)
        for column in columns if name else ():
            if column.table.lower() == name and column.find_ancestor(exp.Select) is None:
                column.set("table", None)
        return self._write(copied_side)

    def _write(self, tree: exp.Expr) -> str:
        return write(tree, self._writer) or tree.key


def _unknown_tables(nodes: Iterable[exp.Expr]) -> set[str]:
    """Return the names, in lower case, that columns have in front and no table of the query has."""
    qualifiers: set[str] = set()
    tables: set[str] = set()
    for node in nodes:
        if isinstance(node, exp.Column):
            qualifiers.add(node.table.lower())
        elif isinstance(node, exp.Table | exp.Subquery):
            tables.add(node.alias_or_name.lower())
    return qualifiers - tables - {""}


def _width(tree: exp.Expr) -> int | None:
    """Return how many columns a query selects; None where it selects all of a table."""
    select = parts.arms(tree)[0]
    return None if not isinstance(select, exp.Select) or select.is_star else len(select.expressions)


def find_edits(predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
    """Return the edits from a predicted query to gold, with the tables that the source lists; raise `SourceError`."""
    policy, schema, dialect = case.settings.policy, session.schema(case), case.settings.dialect
    widths = None
    if isinstance(gold.answer, Table) and not policy.gold_columns:
        width = len(gold.answer.columns)
        widths = range(width, width + 1 if policy.extra_columns == "reject" else sys.maxsize)
    query, gold_query = predicted.query or "", gold.query or ""
    edits = sql_edits(query, gold_query, schema, dialect, widths)
    groups = [] if edits is None else [edits]
    if predicted.error is not None:
        failed_query = FailedQuery(query, predicted.error.message, gold_query, schema, dialect, case.settings.source)
        return Edits(groups, databases=DATABASES, repairs=sql_repairs(failed_query))
    if edits is None:
        return Edits()

    def run(lookup: str) -> Table | None:
        answer = session.execute_cached(QueryOrAnswer(query=lookup), case, is_derived=True).answer
        return answer if isinstance(answer, Table) else None

    is_telling = isinstance(gold.answer, Table) and len(gold.answer.rows) >= TELLING_ROWS
    return Edits(
        groups,
        lambda: edits.shared_parts(_remarks((query, gold_query), dialect, schema, run)),
        most_untested=int(is_telling),
        databases=DATABASES,
        is_extended=True,
        correction=_correction(gold_query, query, dialect, schema, run),
    )


def sql_edits(
    predicted: str, gold: str, schema: Schema, dialect: str, widths: Container[int] | None = None
) -> SqlEdits | None:
    """Return the edits from a predicted query to gold; None where one cannot be read as a whole, or is very long.

    `widths` are the numbers of columns that an answer may have; None for any.

    >>> edits = sql_edits("SELECT id FROM singer WHERE age > 30", "SELECT id FROM singer WHERE age > 40", Schema(), "")
    >>> [*edits.edits]
    [CausingEdit(label='wrong-value', clause='WHERE', change='30 → 40')]
    >>> edits.applied([0])
    'SELECT id FROM singer WHERE age > 40'
    """
    try:
        trees = []
        for tree in (parse_query(query, dialect).whole_tree for query in (predicted, gold)):
            nodes = [] if tree is None else [*tree.walk()]
            if (
                tree is None
                or len(nodes) > MAX_NODES
                or sum(isinstance(node, exp.Select) for node in nodes) > MAX_SELECTS
            ):
                return None
            copy = tree.copy()
            trees.append(query_within(copy) or copy)
        predicted_tree, gold_tree = trees
        return SqlEdits(predicted_tree, gold_tree, schema, dialect, widths)
    except RecursionError:
        return None


def _correction(gold: str, predicted: str, dialect: str, schema: Schema, run: Run) -> Correction | None:
    """Return gold with the texts that predicted writes in another letter case, where the data has only these."""
    texts, gold_texts = ({"".join(groups) for groups in _QUOTED.findall(query)} for query in (predicted, gold))
    spellings = {text.casefold(): text for text in texts - gold_texts}
    suspects = {text: spellings[text.casefold()] for text in gold_texts - texts if text.casefold() in spellings}
    shared_tree = parse_query(gold, dialect).whole_tree
    if not suspects or shared_tree is None:
        return None
    replacements: dict[str, str] = {}
    changed_texts = []
    texts_of_gold = list(islice(compared_texts(gold, dialect, schema), MAX_LOOKUPS))
    for text in texts_of_gold:
        # The same text may be right for another column.
        is_alone = len({compared.column for compared in texts_of_gold if compared.text == text.text}) == 1
        values = _other_spellings(text, run) if is_alone else []
        if values:
            replacements[text.text] = suspects[text.text] if suspects.get(text.text) in values else values[0]
            changed_texts.append(f"gold's '{text.text}' is not in {text.column}, '{replacements[text.text]}' is")
    if replacements.items().isdisjoint(suspects.items()):
        return None
    tree = shared_tree.copy()
    Columns(schema.tables, dialect).replace_texts(tree)
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and literal.name in replacements:
            literal.set("this", replacements[literal.name])
    query = write(tree, writer(dialect))
    edit = CausingEdit(label="gold-value", clause="WHERE", change="; ".join(changed_texts))
    return None if query is None else Correction(edit, query)


def _remarks(queries: Iterable[str], dialect: str, schema: Schema, run: Run) -> dict[tuple[str, str], str]:
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
