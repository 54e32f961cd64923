"""Large runs with rare garbage collection, as a multiple of the same runs with Python's own thresholds.

    python benchmarks/bench_garbage.py [CASES] [ROUNDS]

Runs of both kinds alternate, each in a process of its own. Prints the CPU of the best runs, in which the machine did the
least besides, that of garbage collection within them, and the peak of memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SUITE = """\
kind: sql
source: {sqlite: none.db}
on_miss: xfail
cases:
"""
CASE = """\
  - id: case-{n}
    question: How many members joined branch {n} in the year before last?
    tags: [joins, nightly]
    difficulty: medium
    gold_table: {{columns: [n], rows: [[{n}]]}}
    predicted_table: {{columns: [n], rows: [[{predicted}]]}}
"""
RUN = """
import gc, json, resource, sys, time

collecting = 0.0

def watch(phase, _):
    global collecting
    collecting += time.thread_time() if phase == "stop" else -time.thread_time()

gc.callbacks.append(watch)
if sys.argv.pop(1) == "default":
    gc.set_threshold = lambda *_: None
if sys.argv[1] == "pytest":
    import pytest
    status = pytest.main(sys.argv[2:])
else:
    from pytest_queryeval.cli import main
    status = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps([time.process_time(), collecting, peak]), file=sys.stderr)
sys.exit(status)
"""


class Run(NamedTuple):
    """What a process took: seconds of CPU, those of garbage collection, and MiB of memory at most."""

    cpu: float
    garbage: float
    peak: int

    def __str__(self) -> str:
        return f"{self.cpu:.1f} s, {self.garbage:.1f} s of them garbage collection, {self.peak} MiB"


def main() -> None:
    cases, rounds = (int(text) for text in (*sys.argv[1:], "30000", "3")[:2])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suite = SUITE + "".join(CASE.format(n=n, predicted=-1 if n % 10 < 3 else n) for n in range(cases))
        (folder / "a.queryeval.yaml").write_text(suite, encoding="utf-8")
        compare("evaluate", folder, rounds, ["evaluate", "a.queryeval.yaml", "--report=a.json"])
        (folder / "b.json").write_bytes((folder / "a.json").read_bytes())
        compare("compare", folder, rounds, ["compare", "a.json", "b.json"])
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--queryeval-report=c.json"]
        compare("pytest", folder, rounds, ["pytest", "a.queryeval.yaml", *options])


def compare(what: str, folder: Path, rounds: int, arguments: list[str]) -> None:
    pairs = [(run(folder, "ours", arguments), run(folder, "default", arguments)) for _ in range(rounds)]
    ours, default = map(min, zip(*pairs, strict=True))
    print(f"{what}: {ours.cpu / default.cpu:.2f} x (ours {ours}; Python's thresholds {default})", flush=True)


def run(folder: Path, thresholds: str, arguments: list[str]) -> Run:
    command = [sys.executable, "-c", RUN, thresholds, *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr[-2000:])
    return Run(*json.loads(done.stderr.splitlines()[-1]))


if __name__ == "__main__":
    main()
