"""Reports of 100,000 and 1,000,000 cases, 3 of 10 of them wrong: `python benchmarks/bench_large_reports.py [CASES …]`.

Each size is measured in a process of its own: cases are made one by one and counted, gates are evaluated, the report is
written in each format, and read back. Prints the seconds of each step, the peak of memory so far, the size of what was
written, and the CPU of reading by that of `json.loads` of the lines, which should be at most 10. Commands that read such
reports follow, each in its own process.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.reports import REPORTS, write_report
from pytest_queryeval.reports.summary import summary_lines
from pytest_queryeval.results.case_store import collect_cases
from pytest_queryeval.results.report_file import read_report
from pytest_queryeval.runs.report import gated_report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from report_maker import THIRD_WRONG, make_case, make_gate
from samples import HEAD

T = TypeVar("T")


def main() -> None:
    sizes = sys.argv[1:] or ["100000", "1000000"]
    if len(sizes) == 1:
        measure(int(sizes[0]))
    for size in sizes if len(sizes) > 1 else ():
        subprocess.run([sys.executable, __file__, size], check=True)


def measure(size: int) -> None:
    gates = [make_gate(metric=metric) for metric in ("pass_rate", "execution_accuracy", "row_matching_f1")]
    about = HEAD | {"created": "2025-01-01T00:00:00+00:00"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{size:,} cases, {peak()} MiB before")
        cases = timed("made and kept", lambda: collect_cases(made(size)))
        report = timed("three gates, counted", lambda: gated_report(cases, gates, about))
        timed("summary of the terminal", lambda: list(summary_lines(report, width=100)))
        for form in REPORTS.installed():
            path = folder / f"report.{form}"
            timed(f"{form} written", partial(write_report, report, path))
        for path in sorted(folder.iterdir()):
            print(f"  {path.name}: {path.stat().st_size / 2**20:,.1f} MiB")
        timed("read", lambda: read_report(folder / "report.json"))
        print_reading_ratio(folder / "report.json")
        write_report(gated_report(collect_cases(worse(made(size))), gates, about), folder / "other.json")
        run_command(folder, "explain", "report.json", cases[-1]["nodeid"])
        run_command(folder, "compare", "report.json", "other.json")
        run_command(folder, "compare", "report.json", "other.json", "-o", "comparison.html")


def print_reading_ratio(path: Path) -> None:
    """Print the CPU that reading a report takes, in units of what `json.loads` of its lines takes, in three rounds."""
    file = path.with_suffix(".cases.jsonl")
    if file.exists():  # reports of up to 50,000 cases have none
        for _ in range(3):
            lines = cpu_seconds(lambda: parse_lines(file))
            report = cpu_seconds(lambda: read_report(path))
            print(
                f"  CPU: report {report:.2f} s, json.loads of its lines {lines:.2f} s: {report / lines:.1f} x",
                flush=True,
            )


def parse_lines(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def cpu_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def made(size: int) -> Iterator[CaseReport]:
    chance = random.Random(7)
    return (make_case(number, chance, THIRD_WRONG) for number in range(size))


def worse(cases: Iterable[CaseReport]) -> Iterator[CaseReport]:
    for number, case in enumerate(cases):
        if number % 7 == 0 and case["outcome"] == "passed":
            case |= {"outcome": "failed", "scores": dict.fromkeys(case["scores"], 0.0)}
        yield case


def timed(what: str, run: Callable[[], T]) -> T:
    started, busy = time.perf_counter(), time.process_time()
    result = run()
    seconds, cpu = time.perf_counter() - started, time.process_time() - busy
    print(f"{what}: {seconds:.1f} s (busy {cpu:.1f} s), peak so far {peak()} MiB", flush=True)
    return result


def run_command(folder: Path, *arguments: str) -> None:
    code = "import sys; from pytest_queryeval.cli import main; sys.exit(main())"
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=folder, stdout=subprocess.DEVNULL) as process:
        _, _, usage = os.wait4(process.pid, 0)
    seconds, cpu = time.perf_counter() - started, usage.ru_utime + usage.ru_stime
    print(f"{' '.join(arguments)}: {seconds:.1f} s (busy {cpu:.1f} s), peak {usage.ru_maxrss // 1024} MiB", flush=True)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
