"""Readers of gold and predicted: queries, tables, and the files that hold them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

from pytest_queryeval.documents.document import MEBIBYTE, File, Node, file_at
from pytest_queryeval.documents.json_nodes import read_json
from pytest_queryeval.documents.yaml_nodes import BLOCK_HINT
from pytest_queryeval.errors import CaseError, SuiteError
from pytest_queryeval.kinds import Kind
from pytest_queryeval.loading.values import each, entries, items, known_entries, scalar, stated_text, text
from pytest_queryeval.model import Stated
from pytest_queryeval.table import Cell, Table

MAX_STATED_BYTES = 32 * MEBIBYTE
GOLD_FORMS = ("gold", "gold_any", "gold_table", "gold_file")
PREDICTED_FORMS = ("predicted", "predicted_table", "predicted_file")
TABLE_KEYS = ("columns", "rows")
EMPTY_PREDICTED = 'leave it out, or write "" for an empty answer'

# What SQL takes for a comment: YAML or the folding of lines would make a query end there.
_COMMENT = re.compile(r"--|(?:^|\s)#")


def read_golds(case: Node, kind: Kind) -> tuple[Stated, ...]:
    """Read the right answers of a case; raises `CaseError` unless one form of gold is there and states something."""
    named = entries(case)
    form = _only_form(named, GOLD_FORMS)
    if form is None:
        raise case.problem("no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`")
    node = named[form]
    if form == "gold":
        return (_gold(node, kind),)
    if form == "gold_any":
        return _alternatives(node, kind)
    return (_answer(node) if form == "gold_table" else _from_file(node),)


def read_predicted(case: Node, kind: Kind) -> Stated | None:
    """Read the prediction that a case states, if it does; raises `CaseError`."""
    named = entries(case)
    form = _only_form(named, PREDICTED_FORMS)
    if form is None:
        return None
    node = named[form]
    if node.empty:
        raise node.problem(f"'{form}' is null: {EMPTY_PREDICTED}")
    if form == "predicted":
        return Stated(query=_query(node, kind))
    return _answer(node) if form == "predicted_table" else _from_file(node)


def _only_form(named: Mapping[str, Node], forms: Sequence[str]) -> str | None:
    found = [form for form in forms if form in named]
    if len(found) > 1:
        raise named[found[1]].problem(f"{' and '.join(found)}: a case has only one of them")
    return found[0] if found else None


def _gold(node: Node, kind: Kind) -> Stated:
    query = _query(node, kind)
    if node.empty or not query.strip():
        raise node.problem("gold is empty")
    return Stated(query=query)


def _alternatives(node: Node, kind: Kind) -> tuple[Stated, ...]:
    if not items(node):
        raise node.problem("gold_any is empty")
    return tuple(each(items(node), lambda item: _answer(item) if _is_table(item) else _gold(item, kind)))


def _is_table(node: Node) -> bool:
    return isinstance(node.value, dict) and not node.value.keys().isdisjoint(TABLE_KEYS)


def _query(node: Node, kind: Kind) -> str:
    """Return a query's text; one that YAML cut, or joined lines of so that a comment swallows the rest, is refused."""
    if node.form == "mapping":
        # `gold:` with `SELECT a: b` on the next line is a mapping for YAML.
        raise node.problem(f"expected a query, found a mapping: {BLOCK_HINT}, and a table under `gold_table`")
    query = text(node)
    if kind.has_queries and _is_trap(query, node):
        raise node.problem(f"YAML would change this query, since it holds `--` or `#`: {BLOCK_HINT}")
    return query


def _is_trap(query: str, node: Node) -> bool:
    if node.form in ("literal", "quoted"):
        return False
    return node.form in ("cut", "clipped") or _COMMENT.search(query) is not None


def _answer(node: Node) -> Stated:
    return Stated(answer=_table(node))


def _table(node: Node) -> Table:
    """`{columns: [...], rows: [[...], ...]}`; raises `CaseError` or `SuiteError`."""
    parts = known_entries(node, dict.fromkeys(TABLE_KEYS, items))
    if missing := [name for name in TABLE_KEYS if name not in parts]:
        raise node.problem(f"a table needs `columns` and `rows`: there are no {missing[0]}")
    columns = tuple(each(parts["columns"], text))
    rows = each(enumerate(parts["rows"], start=1), lambda row: _row(*row, width=len(columns)))
    return Table(columns=columns, rows=rows)


def _row(number: int, node: Node, *, width: int) -> tuple[Cell, ...]:
    cells = items(node)
    if len(cells) != width:
        raise node.problem(_ragged(number, len(cells), width))
    return tuple(each(cells, scalar))


def _ragged(number: int, cells: int, width: int) -> str:
    return f"row {number} has {_count(cells, 'cell')}, the table {_count(width, 'column')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _from_file(node: Node) -> Stated:
    name = stated_text(node)
    file = file_at(node.file.folder / name)
    suffix = file.path.suffix.lower()
    if suffix in (".srj", ".srx"):
        raise node.problem(f"{suffix} files are not supported yet")
    if suffix not in _READERS:
        raise node.problem(f"cannot tell what '{name}' holds: known suffixes are {', '.join(_READERS)}")
    try:
        return _READERS[suffix](file)
    except (CaseError, SuiteError) as error:
        raise node.problem(str(error).splitlines()[0]) from error


def _query_file(file: File) -> Stated:
    query = file.text(MAX_STATED_BYTES)
    if not query.strip():
        raise file.problem("is empty")
    return Stated(query=query)


def _json_file(file: File) -> Stated:
    return _answer(read_json(file))


def _separated_file(delimiter: str) -> Callable[[File], Stated]:
    def read(file: File) -> Stated:
        lines = csv.reader(io.StringIO(file.text(MAX_STATED_BYTES), newline=""), delimiter=delimiter, strict=True)
        try:
            header = next((tuple(line) for line in lines if line), None)
            if header is None:
                raise file.problem("has no header row")
            rows = [_cells(line, len(header), file, lines.line_num) for line in lines if line]
        except csv.Error as error:
            raise file.problem(str(error), lines.line_num) from error
        return Stated(answer=Table(columns=header, rows=rows))

    return read


def _cells(line: Sequence[str], width: int, file: File, number: int) -> tuple[Cell, ...]:
    if len(line) != width:
        raise file.problem(f"{_count(len(line), 'cell')} in a table of {_count(width, 'column')}", number)
    return tuple(scalar(Node(cell, number, "plain", file)) for cell in line)


_READERS: Mapping[str, Callable[[File], Stated]] = {
    ".sql": _query_file,
    ".rq": _query_file,
    ".csv": _separated_file(","),
    ".tsv": _separated_file("\t"),
    ".json": _json_file,
}
