"""Opens the workbook and the CSV of hostile reports in LibreOffice.

    PYTHONPATH=tests python tests/features/excel/check_workbook.py

Needs `soffice` (Debian: libreoffice-calc), which is too large for every test run. What LibreOffice reads is written out
again, as CSV of each sheet, as PDF and as a workbook, and compared with what was to be seen.
"""

import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

from spreadsheets import HOSTILE, case, hostile_report, make_report, sdmx_case, timed, visible

from pytest_queryeval.reports import REPORTS

SECONDS = 180
# Comma, double quote, UTF-8, texts as they stand and not as they look, formulas as such, all sheets.
ALL_SHEETS = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,true,false,-1"


def convert(file, form, folder):
    """Let LibreOffice open a file and write it in another form; returns the files that it wrote."""
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    made = folder / form[:3]
    command = ["soffice", profile, "--headless", "--convert-to", form, "--outdir", str(made), str(file)]
    conversion = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert "Error" not in conversion.stdout + conversion.stderr, conversion
    return sorted(made.iterdir())


def table(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


def sheets_of(file):
    """The sheets of a workbook, each parsed."""
    with ZipFile(file) as parts:
        names = [name for name in parts.namelist() if name.startswith("xl/worksheets/sheet")]
        return [ElementTree.fromstring(parts.read(name)) for name in names]


def tagged(tree, name):
    return [element for element in tree.iter() if element.tag.endswith(f"}}{name}")]


def formulas_of(trees):
    return [cell.text for tree in trees for cell in tagged(tree, "f")]


def as_shown(text):
    """A text as the CSV of LibreOffice has it, which leaves out neither tabs nor line feeds."""
    return visible(text).removesuffix(" ")


def check_texts(folder):
    """Every hostile text stands in the sheets of cases as it is to be seen: nothing was computed or repaired."""
    file = folder / "hostile.xlsx"
    file.write_bytes(REPORTS["xlsx"].render(hostile_report()))
    sheets = {path.stem.rpartition("-")[2]: table(path) for path in convert(file, ALL_SHEETS, folder)}
    assert sheets.keys() == {"Cases", "Run", "Statistics", "Summary", "Details"}, sheets.keys()
    wished = sorted(as_shown(text) for text in HOSTILE)
    columns = {
        "Cases": ("id", "question", "gold", "predicted", "difficulty", "source", "tags", "file"),
        "Details": ("Question ID", "VQL Generated", "Ground Truth VQL", "llm_time", "Predictor"),
    }
    for sheet, names in columns.items():
        header, *rows = sheets[sheet]
        for name in names:
            values = sorted(row[header.index(name)].removesuffix(" ") for row in rows)
            assert values == wished, (name, [pair for pair in zip(values, wished, strict=True) if pair[0] != pair[1]])
    return f"{len(HOSTILE)} texts in {sum(map(len, columns.values()))} columns are as they were written"


def check_charts(folder):
    """LibreOffice has read the charts and the colours, and there is no formula in any cell."""
    scores = {"execution_accuracy": 1.0, "subset_score": 0.5, "soft_f1": 0.5, "ves": 0.9}
    cases = [case(1, scores=scores, prediction=timed(1.0)), case(2, difficulty="hard", scores=scores), sdmx_case(3)]
    file = folder / "charts.xlsx"
    file.write_bytes(REPORTS["xlsx"].render(make_report(*cases)))
    (written,) = convert(file, "xlsx", folder)
    with ZipFile(written) as parts:
        charts = [name for name in parts.namelist() if name.startswith("xl/charts/chart")]
    trees = sheets_of(written)
    colours = [rule for tree in trees for rule in tagged(tree, "colorScale")]
    assert (len(charts), len(trees), formulas_of(trees)) == (6, 6, [])
    assert colours
    (pdf,) = convert(file, "pdf", folder)
    assert pdf.read_bytes().startswith(b"%PDF")
    return f"{len(charts)} charts, {len(colours)} scales of colour, no formula, a PDF of {pdf.stat().st_size:,} bytes"


def check_csv(folder):
    """LibreOffice takes nothing in the CSV file for a formula, and splits its rows where they are to be split."""
    file = folder / "report.csv"
    file.write_bytes(REPORTS["csv"].render(hostile_report()))
    (written,) = convert(file, "xlsx", folder)
    trees = sheets_of(written)
    rows = [row for tree in trees for row in tagged(tree, "row")]
    assert (len(trees), len(rows)) == (1, len(HOSTILE) + 1)
    assert formulas_of(trees) == []
    return f"{len(rows)} rows, no formula"


def main():
    if shutil.which("soffice") is None:
        return "soffice is missing: apt-get install --no-install-recommends libreoffice-calc"
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_texts, check_charts, check_csv):
            place = Path(folder) / check.__name__
            place.mkdir()
            print(f"{check.__name__}: {check(place)}")
    return None


if __name__ == "__main__":
    sys.exit(main())
