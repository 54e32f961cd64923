"""What gold's query leaves open: the order of its rows, which of those that tie it returns, and how to tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter

from pytest_queryeval.comparison.alignment import Budget, BudgetSpentError
from pytest_queryeval.comparison.equality import column_place, in_strict_order, project
from pytest_queryeval.comparison.pairing import table_pair
from pytest_queryeval.comparison.ties import Collection, GuidedQuery, OpenQuery, OrderPlan, ties_of, without_choice
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.table import (
    BETWEEN,
    XSD_STRING,
    Cell,
    Literal,
    Policy,
    Row,
    Table,
    encoded_term,
    freeze_cell,
)
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

MAX_STEPS = 100_000  # of the search for the order of elements
MAX_TRIES = 3  # further executions of a gold that leaves its answer open, towards one predicted answer


def resolve_row_order(
    gold: Table,
    predicted: Table,
    policy: Policy,
    *,
    read_plan: Callable[[], OrderPlan | None],
    run: Callable[[str], Table | str],
) -> tuple[Table, tuple[str, ...]]:
    """Return gold with the order that its query asks for as `ties`, and notes on what could not be determined.

    `read_plan` parses gold's query, and returns None if it cannot. `run` executes a rewritten query, and returns its
    table or the text of its failure. Both are called only if the verdict depends on them.
    """
    chosen = project(gold, policy.gold_columns)
    if policy.row_order == "strict" or chosen.rows == predicted.rows:
        return gold, ()
    if policy.duplicates == "count" and len(gold.rows) != len(predicted.rows):
        return gold, ()
    plan = read_plan()
    if plan is None:
        return gold, ()
    same_rows = execution_accuracy(chosen, predicted, policy=replace(policy, row_order="ignore")) == 1.0
    ordered = plan.ordered and not policy.ignores_order
    if not ordered and same_rows:
        return gold, ()
    strict = replace(gold, ties=in_strict_order(gold)) if ordered else gold
    if not plan.limited and not same_rows:  # wrong in any order
        return strict, ()
    if same_rows and execution_accuracy(project(strict, policy.gold_columns), predicted, policy=policy) == 1.0:
        return strict, ()
    # Right or wrong depends on which rows tie, or on which of them a LIMIT chose.
    ties, notes = ties_of(plan, gold, policy, run)
    return (strict if ties is None else replace(gold, ties=ties)), notes


def is_cut(gold: Table) -> bool:
    """Return whether a LIMIT of gold cuts through rows that tie, or gold's ties are not known."""
    return gold.ties is None or any(len(tie.rows) > tie.size for tie in gold.ties)


def depends_on_tie(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted is right only because a LIMIT of gold cuts through a tie; False if ties are unknown."""
    if gold.ties is None or not is_cut(gold):
        return False
    gold = project(gold, policy.gold_columns)
    if execution_accuracy(gold, predicted, policy=policy) != 1.0:
        return False
    return execution_accuracy(without_choice(gold), predicted, policy=policy) != 1.0


def choose_towards(predicted: Table, gold: Table, policy: Policy) -> Table | None:
    """Return the answer that gold may give with the most rows of predicted, chosen from the rows that tie.

    `gold` has its `ties`. None if the order of rows counts, if no LIMIT cuts through a tie, or if there is no
    alignment.
    """
    if not policy.ignores_order or gold.ties is None or not is_cut(gold):
        return None
    gold = project(gold, policy.gold_columns)
    ties = gold.ties or ()
    allowed = Table(columns=gold.columns, rows=[row for tie in ties for row in tie.rows])
    tables = table_pair(allowed, predicted, replace(policy, duplicates="count"))
    if tables.alignment is None:
        return None
    allowed_codes, predicted_codes = tables.coded.project(tables.alignment.columns)
    codes = iter(allowed_codes)
    groups = [(tie.size, [*zip(tie.rows, codes, strict=False)]) for tie in ties]
    wanted = Counter(predicted_codes.values())
    chosen: list[Row] = []
    for size, group in sorted(groups, key=lambda it: len(it[1]) > it[0]):  # what leaves no choice first
        ranked = []
        for row, code in group:
            is_copy = policy.duplicates == "ignore" and code in wanted
            ranked.append((0 if wanted[code] > 0 else 1 if is_copy else 2, row))
            wanted[code] -= 1
        chosen += [row for _, row in sorted(ranked, key=itemgetter(0))[:size]]
    return Table(columns=gold.columns, rows=chosen)


def has_columns_of(gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted has an allowed number of columns compared with gold's answers."""
    needed, width = len(policy.gold_columns) or len(gold.columns), len(predicted.columns)
    return width == needed or (width > needed and (policy.extra_columns == "allow" or bool(policy.gold_columns)))


def may_be_equal(query: OpenQuery, gold: Table, predicted: Table, policy: Policy) -> bool:
    """Return whether predicted agrees with gold in the columns and the number of rows that gold does not leave open."""
    if query.fixed_columns is None:
        return True
    if policy.duplicates == "count" and len(gold.rows) != len(predicted.rows):
        return False
    if not query.fixed_columns or policy.gold_columns:
        return True
    in_any_column = replace(policy, columns="any", extra_columns="allow")
    return execution_accuracy(project(gold, query.fixed_columns), predicted, policy=in_any_column) == 1.0


def likely_alignments(gold: Table, predicted: Table, policy: Policy) -> list[Mapping[int, int]]:
    """Return alignments, from gold's columns to predicted columns, that are likely although the answers differ.

    If all names are the same, that is the only alignment. Otherwise these are the best alignment and the alignment by
    position, the likelier first.
    """
    chosen = [column_place(column, gold.columns) for column in policy.gold_columns] or [*range(len(gold.columns))]
    names = [gold.columns[column].lower() for column in chosen]
    predicted_names = [name.lower() for name in predicted.columns]
    if policy.columns != "positional" and len({*names}) == len(names) and {*names} <= {*predicted_names}:
        return [{column: predicted_names.index(name) for column, name in zip(chosen, names, strict=True)}]
    by_position: Mapping[int, int] = dict(zip(chosen, range(len(predicted.columns)), strict=False))
    best = table_pair(project(gold, policy.gold_columns), predicted, policy).alignment
    if best is None or not best.matched or policy.columns == "positional":
        return [by_position]
    by_rows: Mapping[int, int] = {
        column: predicted_column
        for column, predicted_column in zip(chosen, best.columns, strict=True)
        if predicted_column >= 0
    }
    if by_rows == by_position:
        return [by_rows]
    return [by_rows, by_position] if 2 * best.matched >= len(gold.rows) else [by_position, by_rows]


def is_nearer(one: Table, other: Table, predicted: Table, alignment: Mapping[int, int]) -> bool:
    """Return whether the table `one` has more rows in common with predicted than the table `other` has.

    Only the gold columns in `alignment` count, compared with their predicted columns.
    """
    columns = [*alignment]
    wanted = Counter(tuple([row[alignment[column]] for column in columns]) for row in predicted.rows)
    shared = [
        (Counter(tuple([row[column] for column in columns]) for row in table.rows) & wanted).total()
        for table in (one, other)
    ]
    return shared[0] > shared[1]


def with_collections(table: Table, predicted: Table, guided: GuidedQuery) -> Table:
    """Return the answer to a `GuidedQuery` with its collections in the order that predicted has, as far as possible.

    Each row takes its collections from a different predicted row, preferably one whose other cells are the same. If no
    row fits, or the search takes too long, the elements stay in their order.
    """
    alignment = guided.alignment
    groups = grouped((collection.group, collection) for collection in guided.collections)
    columns = {collection.column for collection in guided.collections}
    others = [column for column in alignment if column not in columns]
    free = dict(enumerate(predicted.rows if columns <= alignment.keys() else ()))
    by_others = grouped(
        (tuple([row[alignment[column]] for column in others]), position) for position, row in free.items()
    )
    budget = Budget(MAX_STEPS)
    chosen: dict[object, dict[int, Cell]] = {}  # the cells of a group, which have one order wherever they are read
    rows = []
    for row in table.rows:
        elements = {it.column: _elements(row[it.column], it) for it in guided.collections}
        cells = {
            it.column: row[it.column] if it.around else _like(row[it.column], _joined(elements[it.column], it))
            for it in guided.collections
        }
        repeated = {key: number for number, group in groups.items() if (key := _key_of(number, group, elements))}
        fixed = {column: cell for key in repeated for column, cell in chosen.get(key, {}).items()}
        candidates = by_others.get(tuple([row[column] for column in others])) or list(free)
        with suppress(BudgetSpentError):
            for position in filter(free.__contains__, candidates):
                candidate = {column: free[position][alignment[column]] for column in columns}
                if any(candidate[column] != cell for column, cell in fixed.items()):
                    continue
                if all(_has_one_order(group, elements, free[position], alignment, budget) for group in groups.values()):
                    del free[position]
                    cells = candidate
                    break
        cells |= fixed
        chosen |= {key: {it.column: cells[it.column] for it in groups[number]} for key, number in repeated.items()}
        rows.append(tuple([cells.get(column, cell) for column, cell in enumerate(row)]))
    return replace(table, rows=tuple(rows))


def _key_of(number: int, group: Sequence[Collection], elements: Mapping[int, Sequence[Cell]]) -> object:
    """Return the key of a group in a row, equal for rows that have the same elements of that group.

    Such rows may read their elements from the same group, and then share their order. None if rows never do.
    """
    if not group[0].may_repeat:
        return None
    return number, frozenset(Counter(zip(*(elements[it.column] for it in group), strict=False)).items())


def _elements(cell: Cell, collection: Collection) -> tuple[Cell, ...]:
    """Return the elements of a collection in a cell, which is a list, the text of a JSON list, or a literal.

    For a collection with `around`, the elements are the JSON texts.
    """
    if collection.around:
        return (*_json_texts(cell),) if isinstance(cell, str) else ()
    if isinstance(cell, Literal):
        return tuple(cell.lexical.split(BETWEEN)) if cell.lexical else ()
    if isinstance(cell, str):
        cell = freeze_cell(json.loads(cell, parse_int=str, parse_float=str))
    return cell if isinstance(cell, tuple) else ()


def _json_texts(text: str) -> Iterator[str]:
    """Yield the JSON text of each element of a JSON list, given the text of the list."""
    start = 1
    while start < len(text) - 1:
        _, end = json.JSONDecoder().raw_decode(text, start)
        yield text[start:end]
        start = end + len(text[end:]) - len(text[end:].lstrip(", "))


def _joined(elements: Sequence[Cell], collection: Collection) -> Cell:
    """Return elements as gold returns them: as a list, or as a text with separators; None without elements."""
    if collection.separator is None:
        return tuple(elements) or None
    texts = [str(element) for element in elements if element is not None]
    return collection.separator.join(texts) if texts else None


def _like(read: Cell, value: Cell) -> Cell:
    """Return a text as a literal if the cell `read` is a literal; return any other value unchanged."""
    return replace(read, lexical=value or "") if isinstance(read, Literal) and isinstance(value, str | None) else value


def _plain(cell: Cell) -> Cell:
    """Return the text of a literal that is plain text, None if that is empty; return any other cell unchanged."""
    is_text = isinstance(cell, Literal) and cell.datatype in ("", XSD_STRING) and not cell.language
    return (cell.lexical or None) if is_text and isinstance(cell, Literal) else cell


def _within(cell: Cell, collection: Collection) -> Cell:
    """Return a text without the two characters of the collection around it; False if they are missing.

    A cell of any other collection is returned unchanged.
    """
    if not collection.around:
        return cell
    is_around = isinstance(cell, str) and len(cell) > 1 and cell[0] + cell[-1] == collection.around
    return cell[1:-1] if is_around and isinstance(cell, str) else False


def _has_one_order(
    group: Sequence[Collection],
    elements: Mapping[int, Sequence[Cell]],
    row: Row,
    alignment: Mapping[int, int],
    budget: Budget,
) -> bool:
    """Return whether one order of a group's elements gives all cells of a predicted row in the group's columns.

    Raise `BudgetSpentError` if the search takes too long.
    """
    budget.spend(1)
    columns = [elements[collection.column] for collection in group]
    cells = [_within(_plain(row[alignment[collection.column]]), collection) for collection in group]
    if group[0].picks:  # and is alone
        return encoded_term(row[alignment[group[0].column]]) in columns[0]
    if len({*map(len, columns)}) > 1 or not all(map(_is_as_long, cells, map(_joined, columns, group))):
        return False
    free = Counter(zip(*columns, strict=True))
    number = free.total()
    by_first = grouped((candidate[0], candidate) for candidate in free)
    longest = max((len(str(text)) for text in by_first), default=0)
    taken: list[tuple[Cell, ...]] = []
    left = [cells]  # what follows the elements that were taken so far
    choices = [_beginnings(cells[0], group[0], by_first, longest)]
    while len(taken) < number:
        budget.spend(1)
        candidate = next(choices[-1], ())
        if not candidate:
            if not taken:
                return False
            free[taken.pop()] += 1
            left.pop()
            choices.pop()
        elif free[candidate]:
            rest = [_behind(*pair) for pair in zip(left[-1], candidate, group, strict=True)]
            if False not in rest:
                free[candidate] -= 1
                taken.append(candidate)
                left.append(rest)
                choices.append(_beginnings(rest[0], group[0], by_first, longest))
    return True  # as the lengths are the same, nothing is left


def _is_as_long(cell: Cell, joined: Cell) -> bool:
    """Return whether both cells are texts of equal length, lists of equal length, or NULL."""
    if isinstance(cell, str | tuple) and isinstance(joined, str | tuple):
        return type(cell) is type(joined) and len(cell) == len(joined)
    return cell is None and joined is None


def _beginnings(
    rest: Cell, collection: Collection, by_first: Mapping[Cell, Sequence[tuple[Cell, ...]]], longest: int
) -> Iterator[tuple[Cell, ...]]:
    """Yield the tuples of elements with which a list or a joined text may begin.

    `by_first` contains the tuples by their element in the first column, whose texts have at most `longest` characters.
    """
    if isinstance(rest, tuple):
        yield from by_first.get(rest[0], ()) if rest else ()
        return
    yield from by_first.get(None, ())
    if not isinstance(rest, str):
        return
    if not collection.separator:
        yield from (
            row for text, rows in by_first.items() if text is not None and rest.startswith(str(text)) for row in rows
        )
        return
    end = rest.find(collection.separator)
    while 0 <= end <= longest:
        yield from by_first.get(rest[:end], ())
        end = rest.find(collection.separator, end + 1)
    yield from by_first.get(rest, ())


def _behind(rest: Cell, element: Cell, collection: Collection) -> Cell:
    """Return what follows an element in a list or a joined text; False if it does not begin with the element."""
    if isinstance(rest, tuple):
        return rest[1:] if rest and rest[0] == element else False
    if element is None:
        return rest
    if not isinstance(rest, str) or not rest.startswith(str(element)):
        return False
    separator = collection.separator or ""
    behind = rest[len(str(element)) :]
    return behind.removeprefix(separator) if not behind or behind.startswith(separator) else False
