"""`queryeval export --to` of a report: `python benchmarks/bench_export.py [CASES] [URI OF AN MLFLOW SERVER]`.

A report of 1,000 cases, 3 of 10 of them wrong, is sent to MLflow twice, which creates a run and updates it, and to a
collector. Without an address, MLflow is the service of the tests. Each command is a process, start included. Prints its
seconds, those of its processor, and how many times as long as `queryeval render` of report.html and report.json it took.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from http_services import serving
from mlflow_service import TrackingService
from otlp_collector import Collector
from report_maker import THIRD_WRONG, make_report


def seconds(*arguments):
    """The seconds of a command, on the clock and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "pytest_queryeval", *arguments], capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    mlflow = nullcontext(SimpleNamespace(url=sys.argv[2])) if len(sys.argv) > 2 else serving(TrackingService(), path="")
    with mlflow as server, serving(Collector(), path="") as collector, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        about = {"name": "benchmark", "created": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())}
        report.write_text(json.dumps(make_report(cases, shares=THIRD_WRONG, **about)), encoding="utf-8")
        page = [f"--output={folder}/out.{suffix}" for suffix in ("html", "json")]
        commands = {
            "render": ("render", str(report), *page),
            "mlflow, a new run": ("export", str(report), "--to", f"mlflow:{server.url}"),
            "mlflow, the same run": ("export", str(report), "--to", f"mlflow:{server.url}"),
            "otlp": ("export", str(report), "--to", f"otlp:{collector.url}"),
        }
        _, base = seconds(*commands["render"])
        for name, arguments in commands.items():
            wall, processor = seconds(*arguments)
            print(f"{name}: {wall:.1f} s (busy {processor:.1f} s, {processor / base:.2f} x rendering)")


if __name__ == "__main__":
    main()
