"""Answers and texts of queries as parts of an entry, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_queryeval.json_value import JsonAnswer
from pytest_queryeval.model import Answer
from pytest_queryeval.recording.cells import read, read_cell, read_text, written
from pytest_queryeval.selection import DatasetSelection, DimensionSelection, Selection, Term
from pytest_queryeval.table import Row, Table, Tie

ANSWERS = ("json", "selection", "table")


def written_answer(answer: Answer | None) -> dict[str, Any]:
    """One key, which names the form of the answer, or none where there is no answer.

    Raises TypeError for a table with a cell, or JSON with a value, that cannot be recorded.
    """
    match answer:
        case None:
            return {}
        case Table():
            return {"table": _written_table(answer)}
        case JsonAnswer(value=value):
            return {"json": written(value)}
        case Selection():
            return {"selection": _written_selection(answer)}


def read_answer(entry: Mapping[str, Any]) -> Answer | None:
    """The answer in an entry, None where it holds none; raises ValueError, TypeError or KeyError for what is none."""
    if "table" in entry:
        return _read_table(entry["table"])
    if "json" in entry:
        return JsonAnswer(read(entry["json"]))
    return _read_selection(entry["selection"]) if "selection" in entry else None


def written_lines(text: str) -> Any:
    """A text as it is, or its lines as a list where it has several."""
    lines = text.split("\n")
    return [written(line) for line in lines] if len(lines) > 1 else written(text)


def read_lines(value: Any) -> str:
    """The text that `written_lines` wrote; raises ValueError for what is none."""
    return "\n".join(map(read_text, value)) if isinstance(value, list) else read_text(value)


def _written_table(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {
        "columns": [written(name) for name in table.columns],
        "rows": _written_rows(table.rows),
    }
    if table.is_graph:
        found["is_graph"] = True
    if table.ties is not None:
        found["ties"] = [[tie.size, _written_rows(tie.rows)] for tie in table.ties]
    return dict(sorted(found.items()))


def _written_rows(rows: Sequence[Row]) -> list[list[Any]]:
    return [[written(cell) for cell in row] for row in rows]


def _read_table(entry: Mapping[str, Any]) -> Table:
    columns = tuple(map(read_text, entry["columns"]))
    ties = entry.get("ties")
    return Table(
        columns=columns,
        rows=[*_read_rows(entry["rows"], len(columns))],
        ties=None if ties is None else tuple(_read_tie(tie, len(columns)) for tie in ties),
        is_graph=entry.get("is_graph", False) is True,
    )


def _read_tie(entry: Sequence[Any], width: int) -> Tie:
    size, rows = entry
    if type(size) is not int or not 0 <= size <= len(rows):
        raise ValueError("a tie of another size than its rows")
    return Tie(size=size, rows=tuple(_read_rows(rows, width)))


def _read_rows(rows: Sequence[Any], width: int) -> Iterator[Row]:
    for row in rows:
        if not isinstance(row, list) or len(row) != width:
            raise ValueError("a row that is not as long as the columns")
        yield tuple(map(read_cell, row))


def _written_selection(selection: Selection) -> dict[str, Any]:
    datasets = [
        [
            written(dataset.id),
            [[written(dimension.name), _written_terms(dimension)] for dimension in dataset.dimensions],
        ]
        for dataset in selection.datasets
    ]
    return {"by_id": selection.by_id, "datasets": datasets}


def _written_terms(dimension: DimensionSelection) -> list[list[Any]]:
    return [[written(term.id), written(term.name), written(term.label)] for term in dimension.terms]


def _read_selection(entry: Mapping[str, Any]) -> Selection:
    datasets = tuple(
        DatasetSelection(
            read_text(name),
            tuple(DimensionSelection(read_text(of), tuple(map(_read_term, terms))) for of, terms in dimensions),
        )
        for name, dimensions in entry["datasets"]
    )
    return Selection(datasets, by_id=entry["by_id"] is True)


def _read_term(entry: Sequence[Any]) -> Term:
    term_id, name, label = (None if part is None else read_text(part) for part in entry)
    return Term(term_id, name, label)
