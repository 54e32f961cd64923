"""Golden files: what users see, line by line, as it was when it was last looked at."""

import base64
import difflib
import json
import os
import zlib
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from openpyxl import load_workbook

GOLDEN = Path(__file__).parent / "golden"
SHAPES = ("svg", "rect", "line", "circle", "polyline", "path")


def printable(text):
    """Return the text with escapes for everything that an editor or a terminal would not show."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def compare_golden(lines, name):
    """Compare lines with those of a file in `golden/`, or write them there."""
    golden, actual = GOLDEN / name, [printable(line) for line in lines]
    if os.environ.get("QUERYEVAL_RENEW_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text("\n".join(actual) + "\n", encoding="utf-8")
    expected = golden.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    difference = list(difflib.unified_diff(expected, actual, f"golden/{name}", "now", n=0, lineterm=""))
    if difference:
        pytest.fail("\n".join([*(line[:400] for line in difference[:40]), "`make golden` renews it"]), pytrace=False)


def page_lines(path):
    """The texts, links and shapes of a page, and the data of its cases."""
    return _PageText(path).lines


class _PageText(HTMLParser):
    """The texts, links and shapes of a page, and the data of the cases that it lists, which it has in packed form."""

    def __init__(self, path):
        super().__init__()
        self.lines, self._inside, self._shapes = [], "", []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self._inside = dict(attributes).get("type", tag)
        shown = " ".join(f"{name}={value}" for name, value in attributes if not name.startswith("aria-"))
        if tag == "a":
            self.lines.append(f"<a {shown}>")
        elif tag in SHAPES:
            self._shapes.append(f"<{tag} {shown}>")

    def handle_endtag(self, tag):
        self._inside = ""
        if tag == "svg":
            self.lines.append("".join(self._shapes))
            self._shapes.clear()

    def handle_data(self, data):
        if self._inside == "text/plain":
            packed = json.loads(zlib.decompress(base64.b64decode(data)))
            items = packed.items() if isinstance(packed, dict) else packed
            self.lines += [json.dumps(item, ensure_ascii=False) for item in items]
        elif self._inside not in ("style", "module"):
            self.lines += [" ".join(line.split()) for line in data.splitlines() if line.strip()]


def sheet_looks(sheet):
    """Everything on a sheet that is not in its cells."""
    cells = [cell for row in sheet.iter_rows() for cell in row]
    yield f"areas {sheet.freeze_panes} {sheet.auto_filter.ref} {sheet.print_area} {sheet.print_title_rows}"
    yield f"page {sheet.page_setup.orientation} {sheet.page_setup.fitToWidth} {sheet.page_setup.fitToHeight}"
    yield f"widths {[round(column.width, 1) for column in sheet.column_dimensions.values()]}"
    yield f"heights {[row.height for row in sheet.row_dimensions.values() if row.height]}"
    for name, looks in (
        ("formats", (f"{cell.column} {cell.number_format}" for cell in cells)),
        ("fills", (cell.fill.fgColor.rgb for cell in cells if cell.fill.fill_type)),
        ("bold in rows", (cell.row for cell in cells if cell.font.b)),
        ("links", (cell.hyperlink.location for cell in cells if cell.hyperlink)),
    ):
        yield f"{name} {sorted(Counter(looks).items(), key=str)}"
    for area in sheet.conditional_formatting:
        yield f"coloured {area.sqref} {[rule.type for rule in area.rules]}"
    for chart in sheet._charts:
        start = chart.anchor._from
        yield f"chart {type(chart).__name__} {start.col} {start.row} {[series.val.numRef.f for series in chart.series]}"


def workbook_lines(path):
    lines = []
    for sheet in load_workbook(path):
        rows = [["" if cell is None else str(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
        lines += [f"== {sheet.title}", *(" | ".join(row).rstrip(" |") for row in rows), *sheet_looks(sheet)]
    return lines


def text_lines(path):
    return path.read_text(encoding="utf-8").replace("\r\n", "\n").split("\n")


class Tags(HTMLParser):
    """The tags of a page with their attributes, and its texts."""

    def __init__(self, path="out.html"):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(Path(path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attrs for name, attrs in self.found if name == tag]
