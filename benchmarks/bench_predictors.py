"""500 cases that a slow HTTP service answers: python benchmarks/bench_predictors.py. Whole runs of pytest.

The service waits 0.2 s and counts the calls that are under way at once. With a concurrency of c no run can take less than
500 x 0.2 / c seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "plugin"))
from answering import Answering

NUMBER = 500
SECONDS = 0.2
SCRIPT = "CREATE TABLE t (n INTEGER);\nINSERT INTO t VALUES (1), (2), (3);\n"
GOLD = "SELECT n FROM t"
WRONG = "SELECT n + 1 FROM t"


def main() -> None:
    with tempfile.TemporaryDirectory() as name, Answering(answer, seconds=SECONDS) as service:
        folder = Path(name)
        write_suite(folder, service.url)
        scores = []
        for arguments, at_once in (
            (["--queryeval-concurrency=1"], 1),
            ([], 8),
            (["--queryeval-concurrency=16"], 16),
            (["-n2"], 2),
        ):
            service.asked.clear()
            service.most = 0
            seconds = run(folder, arguments)
            scores.append(scores_of(folder))
            least = NUMBER * SECONDS / at_once
            line = f"{' '.join(arguments) or 'default':<28} {seconds:6.1f} s, least {least:6.1f} s, {seconds - least:4.1f} s more"
            print(f"{line}; {len(service.asked)} calls, {service.most} at once", flush=True)
        for option in ("record", "replay"):
            service.asked.clear()
            seconds = run(folder, [f"--queryeval-{option}=recorded", "--queryeval-concurrency=16"])
            scores.append(scores_of(folder))
            print(f"{'--queryeval-' + option:<28} {seconds:6.1f} s; {len(service.asked)} calls")
    print(f"the same scores in all runs: {all(run_scores == scores[0] for run_scores in scores)}")


def answer(asked: dict[str, str]) -> str:
    return WRONG if asked["id"].endswith("7") else GOLD


def write_suite(folder: Path, url: str) -> None:
    (folder / "t.sql").write_text(SCRIPT)
    head = f"kind: sql\nsource: {{sqlite: {{script: t.sql}}}}\npredictor: {url}\ncases:\n"
    cases = (f"  - {{id: c{number}, question: 'Number {number}?', gold: '{GOLD}'}}\n" for number in range(NUMBER))
    (folder / "slow.queryeval.yaml").write_text(head + "".join(cases))


def run(folder: Path, arguments: list[str]) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "--queryeval-report=r.json"]
    subprocess.run([*command, *arguments], cwd=folder, check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def scores_of(folder: Path) -> dict[str, object]:
    return {case["id"]: case["scores"] for case in json.loads((folder / "r.json").read_text())["cases"]}


if __name__ == "__main__":
    main()
