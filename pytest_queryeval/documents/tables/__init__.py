"""Tables in spreadsheets, CSV and Parquet files, read row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_queryeval.core.shapes import Shape
from pytest_queryeval.documents.document import File
from pytest_queryeval.documents.tables.rows import Row, Table, TableFile, TableSettingError, open_separated

__all__ = [
    "DELIMITER",
    "FLAGS",
    "TABLE_SUFFIXES",
    "Row",
    "Table",
    "TableFile",
    "TableSettingError",
    "is_delimiter",
    "is_table",
    "open_table",
]

DELIMITER: Shape = {"type": ["string", "number", "boolean", "null"], "minLength": 1, "maxLength": 1}
TABLE_SUFFIXES = (".xlsx", ".csv", ".tsv", ".parquet")
# What spreadsheets have instead of `true` and `false`.
FLAGS = {**dict.fromkeys(("true", "1", "yes", "x"), "true"), **dict.fromkeys(("false", "0", "no"), "false")}
# Files that spreadsheet programs write, and whose content they can save as xlsx.
_OTHER_SPREADSHEETS = (".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_EXTRAS = {".xlsx": "excel", ".parquet": "duckdb"}


def is_table(path: str | Path) -> bool:
    """Return whether the name of a file is that of a table.

    That includes spreadsheets of other formats, which `open_table` refuses with a remedy.
    """
    return Path(path).suffix.lower() in (*TABLE_SUFFIXES, *_OTHER_SPREADSHEETS)


def is_delimiter(value: object) -> bool:
    """Return whether a value is one character that can separate the cells of a text file."""
    return isinstance(value, str) and len(value) == 1 and value not in '"\r\n \0'


@contextmanager
def open_table(
    file: File,
    *,
    sheet: str | None = None,
    default_sheet: str = "",
    delimiter: str | None = None,
    header_row: int | None = None,
    number_lines: bool = False,
) -> Iterator[Table]:
    """Open the table in a file, for the `with` statement.

    `sheet` is the sheet of a workbook, by default the sheet called `default_sheet`, else the first. `delimiter`
    separates the cells of a text file. `header_row` is the number of the header's row, by default the first row that is
    not empty. Rows of a text file are numbered by line if `number_lines` is true, else as a spreadsheet numbers them.

    Raise `CaseError` if the file cannot be read, has no header, has two equal headers, or needs a package that is not
    installed. Raise `TableSettingError` for a setting that the file does not have.
    """
    suffix = file.path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        remedy = "save it as .xlsx" if suffix in _OTHER_SPREADSHEETS else f"expected {', '.join(TABLE_SUFFIXES)}"
        raise file.problem(f"'{suffix}' files are not read: {remedy}")
    for setting, value, has_use, what in (
        ("sheet", sheet, suffix == ".xlsx", "sheets"),
        ("delimiter", delimiter, suffix in _DELIMITERS, "delimiter"),
        ("header_row", header_row, suffix != ".parquet", "rows above its header"),
    ):
        if value is not None and not has_use:
            raise TableSettingError(setting, file.location(), f"has no {what}: remove `{setting}`")
    try:
        if suffix == ".xlsx":
            from pytest_queryeval.documents.tables.xlsx import open_xlsx

            opened = open_xlsx(file, sheet, default_sheet, header_row)
        elif suffix == ".parquet":
            from pytest_queryeval.documents.tables.parquet import open_parquet

            opened = open_parquet(file)
        else:
            separator = delimiter or _DELIMITERS[suffix]
            opened = open_separated(file, separator, number_lines=number_lines, header_row=header_row)
    except ModuleNotFoundError as error:
        raise file.problem(
            f"reading it needs {error.name}: pip install 'pytest-queryeval[{_EXTRAS[suffix]}]'"
        ) from error
    with opened as table:
        yield table
