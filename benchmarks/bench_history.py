"""`queryeval history` over many reports: `python benchmarks/bench_history.py [REPORTS] [CASES] [RUNS]`.

The reports are those of a system that changes a little from run to run: in each, one of fifty answers has another outcome.
Prints the medians of the processor's seconds for reading the reports alone and for the command with its page, which
includes reading them, their ratio, the command's peak memory and the size of the page.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from report_maker import make_report

from pytest_queryeval.reports import write_report
from pytest_queryeval.results.aggregation import aggregate

START = datetime(2025, 1, 6, 9, 30, tzinfo=UTC)
READ = """
import sys
from pathlib import Path
from pytest_queryeval.results.report_file import read_report
for path in sorted(Path(sys.argv[1]).rglob("*.json")):
    read_report(path)
"""
SHOW = "import sys; from pytest_queryeval.cli import main; sys.exit(main(sys.argv[1:]))"


def main() -> None:
    reports, cases, runs = (int(text) for text in (*sys.argv[1:], *("60", "1034", "3")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as name:
        folder, page = Path(name) / "reports", Path(name) / "history.html"
        write_reports(folder, reports, cases)
        read = [measured(READ, str(folder)) for _ in range(runs)]
        show = [measured(SHOW, "history", str(folder), "-o", str(page)) for _ in range(runs)]
        size = page.stat().st_size
    alone, total = (statistics.median(seconds for seconds, _ in runs) for runs in (read, show))
    memory = max(peak for _, peak in show)
    print(
        f"{reports} reports of {cases:,} cases: read in {alone:.1f} s, shown in {total:.1f} s ({total / alone:.2f} x)"
    )
    print(f"peak memory {memory / 1024:.0f} MiB, page {size / 1024:,.0f} KiB")


def write_reports(folder: Path, number: int, size: int) -> None:
    """Write a report a day."""
    chance = random.Random(5)
    report = make_report(size)
    for day in range(number):
        for case in chance.sample(report["cases"], size // 50):
            if case["outcome"] in ("passed", "failed"):
                case["outcome"] = "failed" if case["outcome"] == "passed" else "passed"
        head = report | {"created": (START + timedelta(days=day)).isoformat(), "name": f"system {day}"}
        write_report(aggregate(report["cases"], gates=(), about=head), folder / f"{day:03d}.json")


def measured(program: str, *arguments: str) -> tuple[float, int]:
    """Return the processor's seconds and the peak memory in KiB of a program."""
    child = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, arguments
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


if __name__ == "__main__":
    main()
