"""Collecting and running 10,000 cases, against a collector of thirty lines that only builds items.

Then the same run with 30 % of its cases missed, against itself without misses, and three cases where pytest cannot keep
what it rewrites, against the same without rewriting. The runs to be compared alternate, and the
best of each counts: other processes can only make a run slower. Prints ratios of CPU time, and seconds of CPU and of wall
clock: `python benchmarks/bench_pytest.py [CASES] [RUNS]`.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

PLAIN_COLLECTOR = """
import pytest, yaml

class Item(pytest.Item):
    def __init__(self, *, case, **kwargs):
        super().__init__(**kwargs)
        self.case = case

    def runtest(self):
        pass

    def reportinfo(self):
        return self.path, 0, self.name

class File(pytest.File):
    def collect(self):
        with self.path.open(encoding="utf-8") as file:
            suite = yaml.load(file, Loader=yaml.CSafeLoader)
        for case in suite["cases"]:
            yield Item.from_parent(self, name=case["id"], case=case)

def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(".plain.yaml"):
        return File.from_parent(parent, path=file_path)
"""
QUERY_CASE = """  - id: case-{n}
    question: How many members joined branch {n} in the year before last?
    tags: [joins, nightly]
    difficulty: medium
    gold: |
      SELECT branch, count(*) FROM member
      WHERE branch = {n} GROUP BY branch
"""
STATED_CASE = """  - id: case-{n}
    question: How many members joined branch {n} in the year before last?
    tags: [joins, nightly]
    difficulty: medium
    gold_table: {{columns: [n], rows: [[{n}]]}}
    predicted_table: {{columns: [n], rows: [[{predicted}]]}}
"""
WITHOUT = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]


def main() -> None:
    cases, runs = (int(text) for text in (*sys.argv[1:], "10000", "5")[:2])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        suites = {
            "query": (QUERY_CASE, "", 0),
            "stated": (STATED_CASE, "", 0),
            "fail": (STATED_CASE, "", 3),
            "xfail": (STATED_CASE, "on_miss: xfail\n", 3),
        }
        for name, (template, setting, missed) in suites.items():
            numbers = [(number, -1 if number % 10 < missed else number) for number in range(cases)]
            body = "".join(template.format(n=number, predicted=predicted) for number, predicted in numbers)
            head = f"kind: sql\nsource: {{sqlite: none.db}}\npredictor: predict.py:predict\n{setting}cases:\n"
            for suffix in ("queryeval", "plain"):
                place = root / suffix / name
                place.mkdir(parents=True)
                (place / "predict.py").write_text("def predict(case):\n    return ''\n", encoding="utf-8")
                (place / f"suite.{suffix}.yaml").write_text(head + body, encoding="utf-8")
            (root / "plain" / name / "conftest.py").write_text(PLAIN_COLLECTOR, encoding="utf-8")
        (root / "empty").mkdir()
        (root / "empty" / "test_one.py").write_text("def test_one(): pass\n", encoding="utf-8")
        ours, plain, off = root / "queryeval", root / "plain", ["-p", "no:queryeval"]
        report = f"--queryeval-report={root / 'report.json'}"
        compare("collect", runs, [ours / "query", "--collect-only"], [plain / "query", "--collect-only", *off])
        compare("run", runs, [ours / "stated"], [plain / "stated", *off])
        compare("run and write report.json", runs, [ours / "stated", report], [plain / "stated", *off])
        compare("30 % missed, on_miss: fail", runs, [ours / "fail"], [ours / "stated"])
        compare("30 % missed, on_miss: xfail", runs, [ours / "xfail"], [ours / "stated"])
        three = root / "three"
        three.mkdir()
        (three / "suite.queryeval.yaml").write_text(
            "kind: sql\nsource: {sqlite: none.db}\ncases:\n"
            + "".join(STATED_CASE.format(n=number, predicted=number) for number in range(3)),
            encoding="utf-8",
        )
        os.environ["PYTHONPYCACHEPREFIX"] = str(root / "cache")  # without modules whose asserts pytest has rewritten
        timed([three, "--assert=plain"])
        read_only = {"PYTHONDONTWRITEBYTECODE": "1"}
        compare("three cases, cache read-only", 4 * runs, [three], [three, "--assert=plain"], read_only)
        del os.environ["PYTHONPYCACHEPREFIX"]
        compare("plugin installed, unused", 4 * runs, [root / "empty"], [root / "empty", *off])


def compare(
    what: str, runs: int, ours: list[object], plain: list[object], environment: Mapping[str, str] = MappingProxyType({})
) -> None:
    pairs = [(timed(ours, environment), timed(plain, environment)) for _ in range(runs)]
    plugin, collector = (min(cpu for cpu, _, _ in side) for side in zip(*pairs, strict=True))
    my_wall, other_wall = (min(wall for _, wall, _ in side) for side in zip(*pairs, strict=True))
    peak = pairs[-1][0][2]
    cpu = f"CPU {plugin:.3f} s against {collector:.3f} s, +{1000 * (plugin - collector):.0f} ms"
    wall = f"wall clock {my_wall:.3f} s against {other_wall:.3f} s"
    print(f"{what}: {plugin / collector:.2f} x ({cpu}; {wall}; peak so far {peak // 1024} MiB)", flush=True)


def timed(arguments: list[object], environment: Mapping[str, str] = MappingProxyType({})) -> tuple[float, float, int]:
    """Seconds of CPU and of wall clock, and the greatest resident memory in KiB of any child so far."""
    command = [sys.executable, "-m", "pytest", "-q", *WITHOUT, *map(str, arguments)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables = kept | {"COLUMNS": "80"} | environment
    done = subprocess.run(command, capture_output=True, cwd=Path(str(arguments[0])), env=variables)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    if done.returncode not in (0, 1):  # 1 where cases failed
        raise SystemExit(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, after.ru_maxrss


if __name__ == "__main__":
    main()
