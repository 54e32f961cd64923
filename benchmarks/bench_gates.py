"""What gates cost: the CPU time of evaluating 4,000 cases with 1,000 gates, against one gate.

Every gate of a row is about another tag, about all cases with another least value, or about all cases but those with
another tag; each tag has 4 cases. The ratios are of whole runs of `queryeval evaluate`, in a process each, the better of
two. `python benchmarks/bench_gates.py` takes 1 minute.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

GATES, CASES = 1_000, 4_000
EVALUATE = "import sys; from pytest_queryeval.cli import main; sys.exit(main(['evaluate', sys.argv[1]]))"
WHERES = {
    "another tag": lambda number: {"where": {"tag": f"t{number}"}},
    "another least value": lambda number: {"min": (number + 1) / 10 / GATES},
    "all but another tag": lambda number: {"where": {"not": {"tag": f"t{number}"}}},
}


def main() -> None:
    print("| gates are about | 1 gate | 1,000 gates | ratio |")
    print("|---|---|---|---|")
    for name, where in WHERES.items():
        single, many = (seconds(where, number) for number in (1, GATES))
        print(f"| {name} | {single:.1f} s | {many:.1f} s | {many / single:.1f} |", flush=True)


def seconds(where, number):
    """Return the CPU time of a run with this number of gates."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder)
        cases = [
            {"id": f"c{n}", "gold": {"a": n}, "predicted": {"a": n if n % 7 else -1}, "tags": [f"t{n % GATES}"]}
            for n in range(CASES)
        ]
        head = "kind: json\non_miss: xfail\ncases:\n"
        (suite / "s.queryeval.yaml").write_text(head + "".join(f"- {json.dumps(case)}\n" for case in cases))
        gates = [{"metric": "pass_rate", "min": 0.1} | where(n) for n in range(number)]
        (suite / "queryeval.yaml").write_text("gates:\n" + "".join(f"- {json.dumps(gate)}\n" for gate in gates))
        return min(cpu(suite) for _ in range(2))


def cpu(suite):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = subprocess.run([sys.executable, "-c", EVALUATE, str(suite)], capture_output=True, text=True, check=False)
    assert run.stdout.endswith("gates met)\n") or "gate met)" in run.stdout, run.stderr
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


if __name__ == "__main__":
    main()
