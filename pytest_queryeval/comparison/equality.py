"""Whether two answers are equal, and how many rows, cells and distinct values of one are right, extra and missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest

from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.comparison.row_cells import merged_rows
from pytest_queryeval.core.errors import GoldColumnError, did_you_mean
from pytest_queryeval.core.table import Policy, Row, Table, Tie


def project(table: Table, columns: Sequence[str | int]) -> Table:
    """Return gold's answer with only these columns, given by name or 0-based position; without `columns`, the answer.

    Rows and ties stay as many as they are. Raise `GoldColumnError` for a column that gold lacks, for a name that
    several columns have, and for an answer that is a graph.
    """
    if not columns:
        return table
    if table.is_graph:
        raise GoldColumnError("compare: gold_columns: the gold answer is a graph, which has no columns to choose from")
    places = [column_place(column, table.columns) for column in columns]

    def chosen(rows: Iterable[Row]) -> tuple[Row, ...]:
        return tuple([tuple([row[place] for place in places]) for row in rows])

    return Table(
        columns=tuple(table.columns[place] for place in places),
        rows=chosen(table.rows),
        ties=None if table.ties is None else tuple(replace(tie, rows=chosen(tie.rows)) for tie in table.ties),
    )


def column_place(column: str | int, names: tuple[str, ...]) -> int:
    """Return the position of a gold column, given its name or position; names may differ in letter case.

    Raise `GoldColumnError` if there is no such column, or if several have the name.
    """
    if isinstance(column, int):
        if column >= len(names):
            raise GoldColumnError(
                f"compare: gold_columns: the gold answer has no column {column}: its columns are 0 to {len(names) - 1}"
            )
        return column
    # A database may give names in another letter case than the query.
    places = [place for place, name in enumerate(names) if name == column]
    places = places or [place for place, name in enumerate(names) if name.casefold() == column.casefold()]
    if len(places) == 1:
        return places[0]
    if places:
        raise GoldColumnError(
            f"compare: gold_columns: the gold answer has {len(places)} columns '{column}': "
            "write the position of one, from 0 on"
        )
    raise GoldColumnError(
        f"compare: gold_columns: the gold answer has no column '{column}'{did_you_mean(column, names)}"
    )


def equal_tables(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted equals gold under a policy.

    If an answer has no rows, they are equal only if neither has rows and their numbers of columns are allowed.
    Otherwise a graph equals only graphs, the order of rows counts if the policy or gold's ties say so, and so does the
    number of equal rows.
    """
    if not gold.rows or not predicted.rows:
        return len(gold.rows) == len(predicted.rows) and has_allowed_width(gold, predicted, policy)
    policy = policy.of(gold, predicted)
    if gold.is_graph != predicted.is_graph or not has_allowed_width(gold, predicted, policy):
        return False
    ordered = policy.row_order == "strict" or (policy.row_order == "auto" and gold.ties is not None)
    if ordered and policy.duplicates == "count":  # a set of rows has no order
        return equal_in_order(gold, predicted, policy)
    if policy.duplicates == "count" and len(gold.rows) != len(predicted.rows):
        return False
    return table_pair(gold, predicted, policy).is_equal


def has_allowed_width(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted has as many columns as gold, or more if the policy allows extra columns.

    An answer with unknown columns fits any number.
    """
    if not gold.has_header or not predicted.has_header:
        return True
    surplus = len(predicted.columns) - len(gold.columns)
    return surplus == 0 or (surplus > 0 and policy.extra_columns == "allow")


def in_strict_order(table: Table) -> tuple[Tie, ...]:
    """Return a tie of one row for each row of the table, which allows only its order."""
    return tuple(Tie(size=1, rows=(row,)) for row in table.rows)


def equal_in_order(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted has, tie by tie, rows that gold's ties allow, under one alignment for all ties.

    With `row_order: strict`, or if gold has no ties, exactly gold's order is right. To compare, the number of its tie
    becomes the first cell of each row. Side effect: the pair in `table_pair` is marked as unproven if the search
    stopped.
    """
    strict = policy.row_order == "strict" or gold.ties is None
    ties = in_strict_order(gold) if strict or gold.ties is None else gold.ties
    if sum(tie.size for tie in ties) != len(predicted.rows):
        return False
    allowed = [(number, *row) for number, tie in enumerate(ties) for row in tie.rows]
    numbers = (number for number, tie in enumerate(ties) for _ in range(tie.size))
    numbered = [(number, *row) for number, row in zip(numbers, predicted.rows, strict=True)]
    tables = TablePair(_numbered(gold, allowed), _numbered(predicted, numbered), policy, pinned=1)
    if policy.columns == "any":
        is_equal = tables.matches_all_rows
    else:
        is_equal = tables.alignment is not None and tables.alignment.matched == len(numbered)
    unordered = table_pair(gold, predicted, policy)  # which tells the case whether a search has stopped
    unordered.is_unproven = unordered.is_unproven or tables.is_unproven
    return is_equal


def _numbered(table: Table, rows: list[Row]) -> Table:
    return Table(columns=("\0tie", *table.columns), rows=rows)


@dataclass(frozen=True, slots=True)
class Counts:
    """True positives `tp`, false positives `fp` only in predicted, and false negatives `fn` only in gold."""

    tp: float
    fp: float
    fn: float

    @property
    def precision(self) -> float:
        """Precision, tp / (tp + fp); if predicted has nothing, 1 if gold has nothing either, else 0."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else float(not self.fn)

    @property
    def recall(self) -> float:
        """Recall, tp / (tp + fn); if gold has nothing, 1 if predicted has nothing either, else 0."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else float(not self.fp)

    @property
    def f1(self) -> float:
        """2·tp / (2·tp + fp + fn); 1 if both sides have nothing."""
        total = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / total if total else 1.0

    def as_dict(self) -> dict[str, float]:
        """Return the counts as a dict with the keys `tp`, `fp` and `fn`, as reports contain them."""
        return {"tp": self.tp, "fp": self.fp, "fn": self.fn}


@lru_cache(maxsize=2)
def row_counts(gold: Table, predicted: Table, policy: Policy) -> Counts:
    """Return how many rows are right, extra and missing under the best alignment, as multisets.

    Predicted columns that no gold column is aligned with are ignored.
    """
    if not gold.rows or not predicted.rows:
        return Counts(0, len(predicted.rows), len(gold.rows))
    tables = table_pair(gold, predicted, policy)
    return _count_rows(tables, None if tables.alignment is None else tables.alignment.columns)


@lru_cache(maxsize=2)
def exact_counts(gold: Table, predicted: Table, policy: Policy) -> Counts:
    """Return how many rows are right, extra and missing if columns are aligned by position.

    No row is right if predicted has another number of columns.
    """
    if not gold.rows or not predicted.rows:
        return Counts(0, len(predicted.rows), len(gold.rows))
    same_width = len(gold.columns) == len(predicted.columns)
    return _count_rows(table_pair(gold, predicted, policy), tuple(range(len(gold.columns))) if same_width else None)


def _count_rows(tables: TablePair, columns: tuple[int, ...] | None) -> Counts:
    gold_size, predicted_size = len(tables.gold_rows), len(tables.predicted_rows)
    if columns is None:
        return Counts(0, predicted_size, gold_size)
    best = tables.alignment
    matched = (best if best is not None and best.columns == columns else tables.alignment_of(columns)).matched
    if tables.policy.duplicates == "ignore" and len(tables.predicted.columns) > len(columns):
        predicted_size = len(tables.coded.project(columns)[1])
    return Counts(matched, predicted_size - matched, gold_size - matched)


@lru_cache(maxsize=2)
def cell_counts(gold: Table, predicted: Table, policy: Policy) -> Counts:
    """Return how many cells are right, extra and missing if the i-th gold row is compared with the i-th predicted row.

    The cells of a row are compared as multisets. All cells of a row without partner are extra or missing.
    """
    if not gold.rows or not predicted.rows:
        # A row without cells counts as one.
        sizes = (len(table.rows) * max(len(table.columns), 1) for table in (predicted, gold))
        return Counts(0, *sizes)
    gold_rows, predicted_rows = merged_rows(table_pair(gold, predicted, policy))
    rows = zip_longest(gold_rows, predicted_rows, fillvalue=())
    common = sum((Counter(gold_row) & Counter(predicted_row)).total() for gold_row, predicted_row in rows)
    gold_size, predicted_size = len(gold_rows) * len(gold.columns), len(predicted_rows) * len(predicted.columns)
    return Counts(common, predicted_size - common, gold_size - common)


@lru_cache(maxsize=2)
def entity_counts(gold: Table, predicted: Table, policy: Policy) -> Sequence[Counts] | None:
    """Return how many distinct values of each gold column are right, extra and missing under the best alignment.

    None if there is no alignment.
    """
    tables = table_pair(gold, predicted, policy)
    alignment, columns = tables.alignment, tables.entity_columns
    if alignment is None or columns is None:
        return None
    if alignment.matched == len(tables.gold_rows) == len(tables.predicted_rows):
        return [Counts(len(set(column)), 0, 0) for column in zip(*tables.gold_rows, strict=True)]
    gold_distinct, predicted_distinct = tables.coded.distinct_counts
    counts = []
    for gold_column, predicted_column in enumerate(columns):
        shared = tables.coded.overlap(gold_column, predicted_column)
        counts.append(
            Counts(shared, predicted_distinct[predicted_column] - shared, gold_distinct[gold_column] - shared)
        )
    return counts
