"""Differences of two tables: rows that are missing, extra, changed in some cells, or repeated more or less often."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from pytest_queryeval.comparison.canonical import canonical_rows, canonical_value, is_equal
from pytest_queryeval.comparison.coded_tables import CodedRow
from pytest_queryeval.comparison.difference_texts import (
    EXAMPLES,
    EXTRA,
    KEY_CHARACTERS,
    KEYS,
    MISSING,
    NAMES_CHARACTERS,
    ORDER,
    WIDE,
    change_texts,
    column_labels,
    columns_summary,
    first_columns,
)
from pytest_queryeval.comparison.pairing import TablePair, table_pair
from pytest_queryeval.comparison.similar_rows import MAX_KEY_COLUMNS, similar_rows
from pytest_queryeval.core.case_report import (
    NO_DIFFERENCE,
    ChangedRow,
    ColumnDifference,
    DifferenceCounts,
    DifferenceReport,
    ListTotals,
)
from pytest_queryeval.core.json_value import MAX_DEPTH, to_jsonable
from pytest_queryeval.core.table import (
    BlankNode,
    Cell,
    FrozenMapping,
    Policy,
    Row,
    Table,
)
from pytest_queryeval.text.formatting import (
    one_line,
    pluralize,
)

MAX_ELEMENTS = 100  # that are compared one by one: of lists those that differ, of structs all
MAX_JSON = 200_000  # characters of the texts of a column that are compared by element if they are JSON


def difference(gold: Table, predicted: Table, policy: Policy, *, limit: int) -> DifferenceReport[Row]:
    """Return how predicted differs from gold under the best alignment; without a difference, the summary is empty.

    There are at most `limit` rows of each type, with predicted's cells in the order of gold's columns; a `limit` of 0
    keeps all cells out of the report. `similar_rows` pairs changed rows, and `by_column` says in which columns they
    differ.
    """
    tables = table_pair(gold, predicted, policy)
    if (columns := tables.shown_columns) is None:
        has_too_few_columns = len(predicted.columns) < len(gold.columns)
        few = f"too few columns: the gold answer has {len(gold.columns)}, the predicted answer {len(predicted.columns)}"
        few += _in_brackets(_missing_names(gold.columns, predicted.columns), "missing: ")
        return {**NO_DIFFERENCE, "summary": few if has_too_few_columns else "no column has a name of the gold answer"}
    missing_at, extra_at, _ = tables.unpaired(columns)
    if not missing_at and not extra_at:
        return {**NO_DIFFERENCE, "summary": _same_rows(tables, columns)}
    gold_rows, predicted_rows = _rows(gold, tables.policy), _rows(predicted, tables.policy)
    gold_codes, predicted_codes = tables.coded.project(columns)
    gold_counts, predicted_times = Counter(gold_codes), Counter(predicted_codes.values())
    unpaired = chain((gold_codes[at] for at in missing_at), (predicted_codes[at] for at in extra_at))
    repeated = dict.fromkeys(row for row in unpaired if row in gold_counts and row in predicted_times)
    equal_rows = len(gold_codes) - len(missing_at)
    more_in_gold, more_in_predicted = (
        sum(codes[at] in repeated for at in positions)
        for codes, positions in ((gold_codes, missing_at), (predicted_codes, extra_at))
    )
    counts: DifferenceCounts = {"missing": len(missing_at) - more_in_gold, "extra": len(extra_at) - more_in_predicted}
    pairs = similar_rows(tables, columns, gold_codes, predicted_codes, missing_at, extra_at)

    def predicted_row(at: int) -> Row:
        return tuple([predicted_rows[at][column] for column in columns])

    changed: list[ChangedRow[Row]] = [
        {"gold": gold_rows[pair.gold], "predicted": predicted_row(pair.predicted)} for pair in pairs.rows
    ]
    paired_gold, paired_predicted = {pair.gold for pair in pairs.rows}, {pair.predicted for pair in pairs.rows}
    missing_at = [at for at in missing_at if at not in paired_gold]
    extra_at = [at for at in extra_at if at not in paired_predicted]
    left = {gold_codes[at] for at in missing_at} | {predicted_codes[at] for at in extra_at}
    repeated = dict.fromkeys(row for row in repeated if row in left)
    missing_at = [at for at in missing_at if gold_codes[at] not in repeated]
    extra_at = [at for at in extra_at if predicted_codes[at] not in repeated]
    differing_places = {place for pair in pairs.rows for place in pair.columns}
    key = pairs.key or _telling_columns(tables, differing_places)
    by_column = differing_columns(
        column_labels(gold.columns),
        [tables.coded.policy_of(place) for place in range(len(gold.columns))],
        [RowChange(key, pair.columns, rows) for pair, rows in zip(pairs.rows, changed, strict=True)],
        equal_rows + len(changed),
        limit,
    )
    first_missing = [gold_rows[at] for at in missing_at[:limit]]
    first_extra = [predicted_row(at) for at in extra_at[:limit]]
    are_single = len(gold_rows) == len(predicted_rows) == len(gold.columns) == len(predicted.columns) == 1
    if are_single and limit and not {BlankNode} & {type(first_missing[0][0]), type(first_extra[0][0])}:
        # Blank nodes are named by engines.
        summary = "gold {}, predicted {}".format(*change_texts(first_missing[0][0], first_extra[0][0]))
    elif not predicted_rows:
        summary = f"no rows, the gold answer has {len(gold_rows):,}"
    elif not gold_rows:
        summary = f"{pluralize(len(predicted_rows), 'row')}, the gold answer has none"
    else:
        parts = [f"missing {len(missing_at):,} of {pluralize(len(gold_rows), 'row')}"] * bool(missing_at)
        if extra_at:
            parts += [f"{len(extra_at):,} extra" if missing_at else pluralize(len(extra_at), "extra row")]
        if missing_at and extra_at and not pairs.rows:
            sides = [gold_codes[at] for at in missing_at], [predicted_codes[at] for at in extra_at]
            parts += _columns_in_which_none_agree(tables, columns, *sides)
        more = sum(gold_counts[row] > predicted_times[row] for row in repeated)
        numbers = {"gold": more, "predicted": len(repeated) - more}
        often = [f"{pluralize(number, 'row')} more often in {side}" for side, number in numbers.items() if number]
        parts += [f"duplicates differ: {' and '.join(often)}"] if often else []
        parts += _extra_columns(tables, columns)
        shares = len(differing_places), len(gold.columns)
        summary = columns_summary(by_column, [", ".join(parts)] if parts else [], shares)
    found: DifferenceReport[Row] = {
        "summary": summary,
        "columns": [*gold.columns],
        "predicted_columns": [predicted.columns[column] for column in columns],
        "counts": counts,
        "missing": first_missing,
        "extra": first_extra,
        "changed": changed[:limit],
        "repeated": [
            {
                "row": gold_rows[gold_codes.index(row)],
                "gold": gold_counts[row],
                "predicted": predicted_times[row],
            }
            for row in islice(repeated, limit)
        ],
    }
    totals: ListTotals = {
        "missing": len(missing_at),
        "extra": len(extra_at),
        "changed": len(changed),
        "repeated": len(repeated),
    }
    if max(len(missing_at), len(extra_at), len(changed), len(repeated)) > limit:
        found["totals"] = totals
    return {**found, "by_column": by_column} if by_column else found


class RowChange(NamedTuple):
    """A pair of a gold row and the predicted row that stands for it, with the columns in which they differ."""

    key: Sequence[int]
    """The columns that identify the row, or the first texts that both rows share."""
    differing: Sequence[int]
    """The columns in which both differ."""
    rows: ChangedRow[Row]


def differing_columns(
    names: Sequence[str], policies: Sequence[Policy], changes: Sequence[RowChange], paired_rows: int, limit: int
) -> list[ColumnDifference]:
    """Return the columns in which paired rows differ, those that differ in most rows first.

    `names` and `policies` are those of gold's columns. `paired_rows` is the number of pairs, including equal rows. Each
    column has at most `limit` examples, and no more than EXAMPLES. Lists and structs are divided into elements.
    """
    found: dict[tuple[int, str], ColumnDifference] = {}
    characters = Counter[int]()  # of texts that differ
    for _, differing, rows in changes:
        for place in differing:
            if isinstance(cell := rows["gold"][place], str):
                characters[place] += len(cell)
    for key, differing, rows in changes:
        for place in differing:
            cells = rows["gold"][place], rows["predicted"][place]
            if 0 < characters[place] <= MAX_JSON:
                cells = _without_json(*cells, policies[place])
            elements = _elements(*cells, names[place], policies[place]) if limit else ((names[place], *cells),)
            for name, gold, predicted in elements:
                if (place, name) not in found:
                    found[place, name] = {"column": name, "rows": 0, "of": paired_rows, "examples": []}
                column = found[place, name]
                column["rows"] += 1
                if column["rows"] <= min(limit, EXAMPLES):
                    identity: dict[str, Any] = {names[at]: rows["gold"][at] for at in key}
                    example: Any = {"key": identity, "gold": gold, "predicted": predicted}
                    column["examples"].append(example)
    return [found[at] for at in sorted(found, key=lambda at: (-found[at]["rows"], at[0]))]


def _elements(gold: Cell, predicted: Cell, name: str, policy: Policy) -> Iterator[tuple[str, Cell, Cell]]:
    """Yield the path, the gold value and the predicted value of each element in which two cells differ.

    Lists of the same elements differ in their order. Other lists differ in the elements that only one of them has, or
    at indexes if these are no more. Structs with some common keys differ in their keys and in the values of common
    keys. Any other cells differ as a whole.
    """
    match gold, predicted:
        case tuple(), tuple():
            missing, extra = _unshared(gold, predicted, policy)
            if not missing and not extra:
                yield f"{name}{ORDER}", gold, predicted
                return
            parts = [(f"{name}[{at}]", *pair) for at, pair in enumerate(zip(gold, predicted, strict=False))]
            parts = [part for part in parts if not _are_equal(*part[1:], policy)]
            if len(gold) != len(predicted) or len(parts) > MAX_ELEMENTS or len(missing) < len(parts):
                yield from [(f"{name}{MISSING}", missing, ())] if missing else []
                yield from [(f"{name}{EXTRA}", (), extra)] if extra else []
                return
        case FrozenMapping(), FrozenMapping() if len(gold) <= MAX_ELEMENTS and not gold.keys().isdisjoint(predicted):
            if gold.keys() != predicted.keys():
                yield f"{name}{KEYS}", tuple(gold), tuple(predicted)
            parts = [(f"{name}.{to_jsonable(key)}", gold[key], predicted[key]) for key in gold if key in predicted]
        case _:
            yield name, gold, predicted
            return
    for path, item, other in parts:
        if not _are_equal(item, other, policy):
            yield from _elements(item, other, path, policy)


def _are_equal(gold: Cell, predicted: Cell, policy: Policy) -> bool:
    return is_equal(canonical_value(gold, policy), canonical_value(predicted, policy), policy)


def _unshared(gold: tuple[Cell, ...], predicted: tuple[Cell, ...], policy: Policy) -> tuple[Row, Row]:
    """Return the elements that only the gold list has, and those that only the predicted list has.

    Elements that are only near each other count as shared if few are left.
    """
    golds, others = _without(gold, predicted, policy), _without(predicted, gold, policy)
    if len(golds) + len(others) > MAX_ELEMENTS:
        return tuple(golds), tuple(others)
    left: list[Cell] = []
    for item in golds:
        near = next((at for at, other in enumerate(others) if _are_equal(item, other, policy)), None)
        if near is None:
            left.append(item)
        else:
            del others[near]
    return tuple(left), tuple(others)


def _without(cells: tuple[Cell, ...], others: tuple[Cell, ...], policy: Policy) -> list[Cell]:
    free = Counter(canonical_value(item, policy) for item in others)
    left = []
    for item in cells:
        value = canonical_value(item, policy)
        if free[value] > 0:
            free[value] -= 1
        else:
            left.append(item)
    return left


def _without_json(gold: Cell, predicted: Cell, policy: Policy) -> tuple[Cell, Cell]:
    """Return two texts of different JSON lists or objects as tuples or mappings; return any other cells unchanged."""
    try:
        values = _json_of(gold), _json_of(predicted)
    except (ValueError, RecursionError):
        return gold, predicted
    return (gold, predicted) if _are_equal(*values, policy) else values


def _json_of(text: Cell) -> Cell:
    if not isinstance(text, str) or text[:1] not in ("[", "{") or len(text) > MAX_JSON:
        raise ValueError
    return _frozen(json.loads(text))


def _frozen(value: Any, depth: int = MAX_DEPTH) -> Cell:
    if not depth:
        raise ValueError
    match value:
        case list():
            return tuple([_frozen(item, depth - 1) for item in value])
        case dict():
            return FrozenMapping({key: _frozen(item, depth - 1) for key, item in value.items()})
        case _:
            cell: Cell = value
            return cell


def _telling_columns(tables: TablePair, differing: Collection[int]) -> list[int]:
    """Return up to MAX_KEY_COLUMNS gold columns by which a reader recognises a row if no columns identify rows.

    These are the first columns of texts, else the first columns, in which all paired rows agree and not all rows do.
    """
    sizes, _ = tables.coded.distinct_counts
    places = [place for place, size in enumerate(sizes) if size > 1 and place not in differing]
    texts = [place for place in places if any(isinstance(row[place], str) for row in tables.gold.rows)]
    return (texts or places)[:MAX_KEY_COLUMNS]


def _columns_in_which_none_agree(
    tables: TablePair, columns: tuple[int, ...], missing: Sequence[CodedRow], extra: Sequence[CodedRow]
) -> list[str]:
    """Return a phrase that names the columns in which missing and extra rows have no value in common.

    The list is empty for few columns, and if such columns are none or all.
    """
    names = [
        name
        for place, (name, golds, others) in enumerate(
            zip(column_labels(tables.gold.columns), zip(*missing, strict=True), zip(*extra, strict=True), strict=True)
        )
        if not tables.coded.pair_of(place, columns[place]).chains and {*golds}.isdisjoint(others)
    ]
    if len(columns) <= WIDE or not 0 < len(names) < len(columns):
        return []
    return [f"which agree in no value of {first_columns([one_line(name, KEY_CHARACTERS) for name in names])}"]


def _extra_columns(tables: TablePair, columns: tuple[int, ...]) -> list[str]:
    extra = [name for place, name in enumerate(tables.predicted.columns) if place not in columns]
    if not extra or tables.policy.extra_columns == "allow":
        return []
    return [f"{pluralize(len(extra), 'extra column')}{_in_brackets(extra)}"]


def _missing_names(gold: Sequence[str], predicted: Sequence[str]) -> list[str]:
    """Return the names of gold's columns that predicted lacks; empty if predicted has other names instead.

    The letter case of names is ignored.
    """
    left = Counter(name.casefold() for name in gold) - Counter(name.casefold() for name in predicted)
    return [name for name in gold if name.casefold() in left] if left.total() == len(gold) - len(predicted) else []


def _in_brackets(names: Sequence[str], before: str = "") -> str:
    text = ", ".join(filter(None, names))
    return f" ({before}{one_line(text, NAMES_CHARACTERS)})" if text else ""


def _same_rows(tables: TablePair, columns: tuple[int, ...]) -> str:
    """Return in words how two answers with the same rows differ: extra columns, or another order of rows or columns.

    Empty if they do not differ. The order of rows is not compared if some cells are only near each other.
    """
    if extra := _extra_columns(tables, columns):
        return extra[0]
    gold, predicted = tables.coded.project(columns)
    if list(predicted.values()) != gold and not tables.coded.has_chains:
        return "the same rows, in another order"
    return "" if list(columns) == sorted(columns) else "the same rows, with their columns in another order"


def _rows(table: Table, policy: Policy) -> Sequence[Row]:
    """Return the rows of the table as they were answered; if the policy ignores duplicates, each distinct row once."""
    if policy.duplicates == "count":
        return table.rows
    first: dict[tuple[Hashable, ...], Row] = {}
    for row, value in zip(table.rows, canonical_rows(table, policy), strict=True):
        first.setdefault(value, row)
    return list(first.values())
