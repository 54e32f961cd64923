"""Rendering a report of 10,000 small cases, 3 of 10 of them wrong: `python benchmarks/bench_reports.py [CASES] [RUNS]`.

Each installed format is rendered in turn. Prints the median of the runs, of the wall's and of the processor's seconds,
and the size of each format, and the sum of those that are to take 2 s together. What a format imports and starts on its
first use is in its first run, which is printed next to the median. Then comes the median of how long Chromium takes from
opening the page until the table of cases can be used, and last what JSON and page are of 100 cases with 200 steps each,
every one of which returned 100,000 random characters, and how much CPU it takes to cut them.
"""

from __future__ import annotations

import random
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_queryeval.core.model import Step
from pytest_queryeval.core.steps import bounded_steps, step_json
from pytest_queryeval.reports import REPORTS
from pytest_queryeval.results.aggregation import Report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from report_maker import THIRD_WRONG, make_report

HUGE = 100_000
TOGETHER = ("json", "md", "csv", "html")


def main() -> None:
    cases, runs = (int(text) for text in (*sys.argv[1:], *("10000", "5")[len(sys.argv) - 1 :]))
    report = make_report(cases, shares=THIRD_WRONG)
    names = REPORTS.installed()
    times: dict[str, list[float]] = {name: [] for name in names}
    busy: dict[str, list[float]] = {name: [] for name in names}
    sizes: dict[str, int] = {}
    for _ in range(runs):
        for name in names:
            start, started = time.perf_counter(), time.process_time()
            content = REPORTS[name].render(report)
            times[name].append(time.perf_counter() - start)
            busy[name].append(time.process_time() - started)
            assert sizes.setdefault(name, len(content)) == len(content), name
    medians, processor = ({name: statistics.median(runs[name]) for name in names} for runs in (times, busy))
    for name in names:
        size = f"{sizes[name] / 1024:,.0f} KiB"
        print(f"{name}: {medians[name]:.2f} s (busy {processor[name]:.2f} s, first {times[name][0]:.2f} s), {size}")
    together = [name for name in TOGETHER if name in medians]
    wall, cpu = (sum(figures[name] for name in together) for figures in (medians, processor))
    print(f"{', '.join(together)} together: {wall:.2f} s (busy {cpu:.2f} s)")
    print(f"html in a browser: {time_to_interactive(report, runs)}")
    for line in huge_steps():
        print(line)


def huge_steps() -> Iterator[str]:
    """The size of a report with huge steps in each format, and the processor's seconds."""
    chance = random.Random(1)
    text = "".join(chance.choices(string.ascii_letters + string.digits, k=20 * HUGE))
    started, report = time.process_time(), make_report(100)
    for case in report["cases"]:
        places = [chance.randrange(19 * HUGE) for _ in range(200)]
        steps = [Step(kind="query", input=f"SELECT {place}", output=text[place : place + HUGE]) for place in places]
        if case["prediction"] is not None:
            case["prediction"]["steps"] = [step_json(step) for step in bounded_steps(steps, by="it")]
    yield f"huge steps: cut in {time.process_time() - started:.2f} s"
    for name in ("json", "html"):
        if name in REPORTS.installed():
            started = time.process_time()
            size = len(REPORTS[name].render(report)) / 1024
            yield f"huge steps, {name}: {time.process_time() - started:.2f} s, {size:,.0f} KiB"


def time_to_interactive(report: Report, runs: int) -> str:
    """How long a page takes to be usable, or why that is unknown."""
    if "html" not in REPORTS.installed():
        return "skipped, pytest-queryeval[html] is not installed"
    try:
        from browser.chromium import MISSING, started
    except ModuleNotFoundError as error:
        return f"skipped, {error.name} is not installed"
    if MISSING:
        return f"skipped, {MISSING}"
    with tempfile.TemporaryDirectory() as folder, started(Path(folder) / "profile") as browser:
        page = Path(folder) / "report.html"
        page.write_bytes(REPORTS["html"].render(report))
        times = [browser.open(page).milliseconds / 1000 for _ in range(runs)]
    return f"can be used after {statistics.median(times):.2f} s (first {times[0]:.2f} s)"


if __name__ == "__main__":
    main()
