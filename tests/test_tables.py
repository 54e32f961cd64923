"""Tables in workbooks, CSV and Parquet files, well-formed and hostile."""

import datetime
import zipfile
from pathlib import Path

import duckdb
import openpyxl
import pytest

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.documents.tables import open_table  # white box: any table, cell by cell

pytestmark = pytest.mark.usefixtures("working_folder")

SHEET = "xl/worksheets/sheet1.xml"


def workbook(*rows, name="a.xlsx", **sheets):
    book = openpyxl.Workbook()
    book.active.title = "First"
    for row in rows:
        book.active.append(row)
    for title, cells in sheets.items():
        sheet = book.create_sheet(title)
        for row in cells:
            sheet.append(row)
    book.save(name)
    return name


def rewritten(name, part, change):
    """The same archive, with a part changed."""
    with zipfile.ZipFile(name) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = change(parts[part].decode()).encode()
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in parts.items():
            archive.writestr(each, content)
    return name


def rows_of(name, **options):
    with open_table(file_at(name), **options) as table:
        return [(row.number, row.values) for row in table.rows()]


def problem(name, **options):
    with pytest.raises(CaseError) as caught:
        rows_of(name, **options)
    return str(caught.value)


def separated(text, name="a.csv", encoding="utf-8"):
    with open(name, "w", encoding=encoding, newline="") as stream:  # noqa: PTH123
        stream.write(text)
    return name


def test_cells_of_a_workbook_are_text_as_displayed():
    name = workbook(
        ["id", "whole", "part", "flag", "day", "moment", "time", "text"],
        [7.0, 12.0, 0.1 + 0.2, True, datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1, 9, 30), None, "012"],
        [1e300, -3, 1.5, False, None, None, datetime.time(9, 30), "=1+1 as text"],
    )
    book = openpyxl.load_workbook(name)
    book.active["B2"].number_format = "0000"
    book.active["H3"].data_type = "s"
    book.active["H3"].value = "tab\there"
    book.save(name)

    (_, first), (_, second) = rows_of(name)

    assert list(first.values()) == ["7", "0012", "0.3", "TRUE", "2024-03-01", "2024-03-01T09:30:00", "", "012"]
    assert list(second.values()) == ["1e+300", "-3", "1.5", "FALSE", "", "", "09:30:00", "tab\there"]


def test_the_first_row_that_is_not_empty_is_the_header_and_empty_rows_are_skipped():
    name = workbook([], ["", " "], [None, "id", None, "gold"], [], [None, "a", "note", "x", "far"], [" "], [None, "b"])

    assert rows_of(name) == [(5, {"id": "a", "gold": "x"}), (7, {"id": "b", "gold": ""})]


def test_a_sheet_is_found_by_its_name_and_the_first_visible_one_by_default():
    name = workbook(["hidden"], ["x"], Second=[["id"], ["a"]], Third=[["id"], ["b"]])
    book = openpyxl.load_workbook(name)
    book["First"].sheet_state = "hidden"
    book.active = 1
    book.save(name)

    assert rows_of(name) == [(2, {"id": "a"})]
    assert rows_of(name, sheet="Third") == [(2, {"id": "b"})]
    assert problem(name, sheet="third") == "a.xlsx: there is no sheet 'third': did you mean 'Third'?"


def test_a_wrong_dimension_of_a_sheet_is_not_believed():
    name = workbook(["id", "gold"], ["a", "x"])
    rewritten(name, SHEET, lambda xml: xml.replace('ref="A1:B2"', 'ref="A1"'))

    assert rows_of(name) == [(2, {"id": "a", "gold": "x"})]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('<c r="A2"><f>1+1</f><v>2</v></c>', "2"),
        ('<c r="A2" t="str"><f>""</f><v></v></c>', ""),
        ('<c r="A2" t="str"><f>"a"</f><v>a</v></c>', "a"),
    ],
)
def test_a_formula_counts_as_its_stored_value(cell, text):
    name = workbook(["id", "gold"], ["a", "x"])
    rewritten(name, SHEET, lambda xml: xml.replace(xml[xml.index('<c r="A2"') : xml.index('<c r="B2"')], cell))

    assert rows_of(name) == [(2, {"id": text, "gold": "x"})]


def test_cells_merged_over_rows_are_an_error_where_they_are_read():
    name = workbook(["id", "source"], ["a", "x"], ["b", None])
    book = openpyxl.load_workbook(name)
    book.active.merge_cells("B2:B3")
    book.save(name)

    assert problem(name) == (
        "a.xlsx, sheet 'First', row 3, column 'source': is merged with row 2: unmerge the cells, and fill each of them"
    )


def test_control_characters_of_a_workbook_are_read():
    assert rows_of(workbook(["id", "text"], ["a", "one_x000D_\ntwo_x0000_"]))[0][1]["text"] == "one\r\ntwo\0"


@pytest.mark.parametrize("rows", [[], [[]], [["", " "]]])
def test_a_sheet_without_cells_has_no_header(rows):
    assert (
        problem(workbook(*rows))
        == "a.xlsx, sheet 'First': has no header row: write the names of the columns into the first row"
    )


XLS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)
QUOTE = "in a table of 2 columns: quote cells that contain a delimiter or a line end"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        *((name, b"", "files are not read: save it as .xlsx") for name in ("a.xls", "a.ods", "A.XLSM")),
        ("a.xlsx", XLS, "is an .xls workbook or has a password: save it as .xlsx"),
        ("a.xlsx", b"", "a.xlsx: is not a .xlsx workbook that can be read"),
        ("a.xlsx", b"id,gold\n", "a.xlsx: is not a .xlsx workbook that can be read"),
        ("a.xlsx", b"PK\x03\x04 and no more", "a.xlsx: is not a .xlsx workbook that can be read"),
        ("a.csv", b"id,gold\na,x\nb,\xe9\n", "a.csv:3:3: byte 0xe9 is not UTF-8: save the file as UTF-8"),
        ("a.csv", b"id,gold\n\na\n", f"a.csv, row 3: 1 cell {QUOTE}"),
        ("a.csv", b"id,gold\n\na,b,c\n", f"a.csv, row 3: 3 cells {QUOTE}"),
        ("a.parquet", b"PAR1", "a.parquet: is not a Parquet file that can be read"),
    ],
)
def test_what_is_no_table_is_one_error(name, content, said):
    Path(name).write_bytes(content)

    assert said in problem(name)


def test_a_workbook_that_unpacks_to_too_much_is_not_unpacked(monkeypatch):
    name = workbook(["id"], ["a"])
    with zipfile.ZipFile(name, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/more.xml", "w") as part:
        part.write(bytes(2**20))
    monkeypatch.setattr("pytest_queryeval.documents.tables.xlsx.ExcelReader", None)
    monkeypatch.setattr("pytest_queryeval.documents.tables.xlsx.MAX_TABLE_BYTES", 2**20)

    assert problem(name).endswith("it is larger than 1 MiB when unpacked")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("<c/>" * 500_000, "times as large, as no workbook is"),
        ("<c/>" * 16_385, "a row has more than 16,384 cells"),
        ("</row><row>" * 20, "a sheet has more than 10 rows"),
    ],
)
def test_a_short_file_with_many_cells_is_refused(monkeypatch, cells, reason):
    monkeypatch.setattr("pytest_queryeval.documents.tables.xlsx.MAX_ROWS", 10)
    name = rewritten(workbook(["id"], ["a"]), SHEET, lambda xml: xml.replace("</row>", f"{cells}</row>", 1))

    assert problem(name).endswith(reason)


@pytest.mark.parametrize("part", [SHEET, "xl/styles.xml", "xl/workbook.xml", "[Content_Types].xml"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused(part, encoding):
    name = workbook(["id"], ["a"])
    entity = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    with zipfile.ZipFile(name) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    text = parts[part].decode().partition("?>")
    parts[part] = (entity + (text[2] or text[0])).encode(encoding)
    with zipfile.ZipFile(name, "w") as archive:
        for each, content in parts.items():
            archive.writestr(each, content)

    assert problem(name).endswith("it declares a document type, which no workbook has")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('r="2"', 'r="99999999999999"'),
        ('r="A2"', 'r="ZZZZZZZ2"'),
        ("<v>a</v>", "<v>" + "9" * 5000 + "</v>"),
        ("</sheetData>", '</sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'),
        ("</row>", ""),
    ],
)
def test_a_damaged_sheet_ends_with_at_most_one_error(old, new):
    name = workbook(["id"], ["a"])
    rewritten(name, SHEET, lambda xml: xml.replace('t="inlineStr"', "").replace("<is><t>a</t></is>", "<v>a</v>"))
    rewritten(name, SHEET, lambda xml: xml.replace(old, new))

    try:
        table = rows_of(name)
    except CaseError as error:
        assert str(error).startswith("a.xlsx")  # noqa: PT017
    else:
        assert table == []


def test_a_table_has_limited_columns():
    assert "has more than 1,000 columns" in problem(workbook([f"c{number}" for number in range(1001)]))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_of_a_csv_file_are_counted_as_a_spreadsheet_shows_them(encoding, end):
    text = f'{end}id,gold{end}a,"SELECT{end}1"{end}{end},{end}b,""{end}'

    table = rows_of(separated(text, encoding=encoding))

    assert table == [(3, {"id": "a", "gold": f"SELECT{end}1"}), (6, {"id": "b", "gold": ""})]


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [("a.tsv", {}, "id\tgold\na\t1,5\n"), ("a.csv", {"delimiter": ";"}, "id;gold\na;1,5\n")],
)
def test_another_delimiter(name, options, text):
    assert rows_of(separated(text, name), **options) == [(2, {"id": "a", "gold": "1,5"})]


def test_empty_cells_behind_the_last_column_are_ignored():
    assert rows_of(separated("id,gold\na,x,,\n")) == [(2, {"id": "a", "gold": "x"})]


def test_long_cells_are_read_up_to_a_limit():
    longest = "x" * 4 * 2**20
    assert rows_of(separated(f"id,gold\na,{longest}\n"))[0][1]["gold"] == longest
    assert "field larger than field limit" in problem(separated(f"id,gold\na,{longest}x\n"))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.xlsx"])
def test_all_rows_of_a_long_table_are_read(name):
    ids = range(2_001)
    if name == "a.xlsx":
        workbook(("id",), *((number,) for number in ids))
    else:
        duckdb.sql(f"COPY (SELECT range AS id FROM range({len(ids)})) TO '{name}'")

    assert [values["id"] for _, values in rows_of(name)] == [*map(str, ids)]


def test_rows_of_a_parquet_file_are_counted_from_1():
    duckdb.sql(
        "COPY (SELECT * FROM (VALUES (1, 'x', 12.0::DOUBLE, 1.50::DECIMAL(9, 2), DATE '2024-03-01', [1, 2]),"
        " (2, NULL, NULL, NULL, NULL, NULL)) t(id, gold, n, d, day, l)) TO 'a[1].parquet'"
    )

    (number, first), (last, second) = rows_of("a[1].parquet")

    assert (number, last) == (1, 2)
    assert first == {"id": "1", "gold": "x", "n": "12", "d": "1.50", "day": "2024-03-01", "l": "[1, 2]"}
    assert second == {"id": "2", **dict.fromkeys(("gold", "n", "d", "day", "l"), "")}


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("a.csv", {"sheet": "x"}, "a.csv: has no sheets: remove `sheet`"),
        ("a.xlsx", {"delimiter": ";"}, "a.xlsx: has no delimiter: remove `delimiter`"),
        ("a.md", {}, "a.md: '.md' files are not read: expected .xlsx, .csv, .tsv, .parquet"),
    ],
)
def test_options_that_a_file_does_not_have(name, options, expected):
    assert problem(separated("", name), **options) == expected


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl.reader.excel", None)
    monkeypatch.delitem(__import__("sys").modules, "pytest_queryeval.documents.tables.xlsx", raising=False)

    assert "pip install 'pytest-queryeval[excel]'" in problem(workbook(["id"]))
