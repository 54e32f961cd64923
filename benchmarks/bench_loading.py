"""Loading 10,000 cases, as a multiple of what PyYAML needs to read the same file, and 100,000 from tables.

    python benchmarks/bench_loading.py [CASES]
    python benchmarks/bench_loading.py tables [ROWS]

Prints medians of 5 and the peak of memory; of tables the processor time, once. Each measurement is a process of its own, one kind after the other, so that
neither pays for the garbage of the other.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASE = """\
  - id: case-{0}
    question: How many singers are there in country {0}, and how old are they?
    tags: [aggregate, "group-{1}"]
    difficulty: easy
    gold: |
      SELECT country, count(*), avg(age)
      FROM singer WHERE country = {0}
      GROUP BY country
    predicted: |
      SELECT country, count(*), avg(age) FROM singer GROUP BY country
"""
HEAD = "kind: sql\nsource: concerts.db\ncases:\n"


def suite(cases: int) -> str:
    return HEAD + "".join(CASE.format(number, number % 7) for number in range(cases))


def read_by_pyyaml(path: Path) -> None:
    import yaml

    with path.open(encoding="utf-8") as stream:
        measured(lambda: yaml.load(stream, Loader=yaml.CSafeLoader))


def read_by_us(path: Path) -> None:
    from pytest_queryeval.suites import load_cases

    measured(lambda: load_cases(path))


def measured(read, clock=time.perf_counter) -> None:
    start = clock()
    cases = read()
    seconds = clock() - start
    assert cases
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def in_process(how: str, path: Path) -> tuple[float, float]:
    output = subprocess.run([sys.executable, __file__, how, path], capture_output=True, text=True, check=True).stdout
    seconds, mebibytes = map(float, output.split())
    return seconds, mebibytes


def table_row(number: int) -> tuple[str, ...]:
    question = f"How many singers are there in country {number}, and how old are they?"
    gold = f"SELECT country, count(*), avg(age)\nFROM singer WHERE country = {number}\nGROUP BY country"
    return f"case-{number}", question, gold, gold.replace("avg", "sum"), "easy", f"aggregate,group-{number % 7}"


def write_tables(rows: int, folder: Path) -> None:
    import csv

    import duckdb
    from xlsxwriter import Workbook

    names = ("id", "question", "gold", "predicted", "difficulty", "tags")
    book = Workbook(str(folder / "bench.xlsx"), {"strings_to_formulas": False})
    sheet = book.add_worksheet()
    with (folder / "bench.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        for number in range(rows + 1):
            cells = table_row(number) if number else names
            writer.writerow(cells)
            sheet.write_row(number, 0, cells)
    book.close()
    duckdb.sql(f"COPY (FROM read_csv('{folder}/bench.csv', header = true)) TO '{folder}/bench.parquet'")


def read_rows(path: Path) -> None:
    from pytest_queryeval.documents.document import file_at
    from pytest_queryeval.documents.tables import open_table

    def read() -> int:
        with open_table(file_at(path)) as table:
            return sum(len(row.values) for row in table.rows())

    measured(read, time.process_time)


def load_table(path: Path) -> None:
    from pytest_queryeval.suites import load_cases

    suite = path.with_suffix(".queryeval.yaml")
    suite.write_text(f"kind: sql\nsource: concerts.db\ncases: {{file: {path.name}}}\n", encoding="utf-8")
    measured(lambda: load_cases(suite), time.process_time)


def compare_tables(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: the peak of memory of a process begins with that of the one that starts it.
        subprocess.run([sys.executable, __file__, "write", str(rows), folder], check=True)
        for path in (Path(folder, f"bench{suffix}") for suffix in (".xlsx", ".csv", ".parquet")):
            (read, read_peak), (load, load_peak) = (in_process(form, path) for form in ("rows", "table"))
            size = path.stat().st_size / 2**20
            print(
                f"{rows:,} rows of {path.suffix}, {size:.0f} MiB: read {read:.1f} s, {read_peak:.0f} MiB"
                f" · load_cases {load:.1f} s, {load_peak:.0f} MiB (at most 300 MiB)"
            )


def compare(cases: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.queryeval.yaml")
        path.write_text(suite(cases), encoding="utf-8")
        runs = [(in_process("pyyaml", path), in_process("ours", path)) for _ in range(5)]
    theirs, ours = (statistics.median(run[side][0] for run in runs) for side in (0, 1))
    memory = [max(run[side][1] for run in runs) for side in (0, 1)]
    print(f"{cases:,} cases: PyYAML {theirs:.3f} s, {memory[0]:.0f} MiB · load_cases {ours:.3f} s, {memory[1]:.0f} MiB")
    print(f"ratio {ours / theirs:.2f} (at most 1.3)")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pyyaml", path]:
            read_by_pyyaml(Path(path))
        case ["ours", path]:
            read_by_us(Path(path))
        case ["write", rows, folder]:
            write_tables(int(rows), Path(folder))
        case ["rows", path]:
            read_rows(Path(path))
        case ["table", path]:
            load_table(Path(path))
        case ["tables", *rows]:
            compare_tables(int(rows[0]) if rows else 100_000)
        case rest:
            compare(int(rest[0]) if rest else 10_000)
