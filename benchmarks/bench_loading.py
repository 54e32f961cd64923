"""Loading 10,000 cases, as a multiple of what PyYAML needs to read the same file.

    python benchmarks/bench_loading.py [CASES]

Prints medians of 5 and the peak of memory. Each measurement is a process of its own, one kind after the other, so that
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


def measured(read) -> None:
    start = time.perf_counter()
    kept = read()
    seconds = time.perf_counter() - start
    assert kept
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def in_process(how: str, path: Path) -> tuple[float, float]:
    output = subprocess.run([sys.executable, __file__, how, path], capture_output=True, text=True, check=True).stdout
    seconds, mebibytes = map(float, output.split())
    return seconds, mebibytes


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
        case rest:
            compare(int(rest[0]) if rest else 10_000)
