"""Importing 1,000,000 JSON lines, and a workbook of 100,000 rows.

    python benchmarks/bench_import.py [LINES] [ROWS]

Prints CPU time and the peak of memory of each command, in a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER = ("id", "question", "gold")


def record(number: int) -> tuple[str, str, str]:
    query = f"SELECT country, count(*) FROM singer WHERE age > {number} GROUP BY country"
    return f"q{number}", f"How many singers of each country are older than {number}?", query


def write_lines(path: Path, lines: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{json.dumps(dict(zip(HEADER, record(n), strict=True)))}\n" for n in range(lines))


def write_workbook(path: Path, rows: int) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, HEADER)
        for number in range(rows):
            sheet.write_row(number + 1, 0, record(number))


def measure(format_: str, source: Path, output: Path) -> str:
    program = "import sys; from pytest_queryeval.cli import main; sys.exit(main())"
    options = ["--kind", "sql", "--source", "concerts.db", "-o", str(output), "--json"]
    command = [sys.executable, "-c", program, "import", format_, str(source), *options]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    mebibytes = usage.ru_maxrss / 1024
    return f"{result['cases']:,} cases, {usage.ru_utime + usage.ru_stime:.1f} s of CPU time, peak {mebibytes:.0f} MiB"


def main(lines: int = 1_000_000, rows: int = 100_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_lines(Path(folder, "q.jsonl"), lines)
        write_workbook(Path(folder, "q.xlsx"), rows)
        print("JSON lines:", measure("jsonl", Path(folder, "q.jsonl"), Path(folder, "lines")))
        print("workbook:  ", measure("table", Path(folder, "q.xlsx"), Path(folder, "rows")))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
