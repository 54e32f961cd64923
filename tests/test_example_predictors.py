"""The example's translator scores the same as a Python function, as a program, and behind a service."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.process, pytest.mark.feature("command_predictor", "http_predictor")]

EXAMPLE = Path(__file__).parent.parent / "example_suite"
CASES = 12
BEYOND_THE_RULES = {"trees-of-red", "largest-plot", "never-picked"}


def imported(path):
    spec = importlib.util.spec_from_file_location("example_translate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRANSLATE = imported(EXAMPLE / "predictors/translate.py").translate


class Handler(BaseHTTPRequestHandler):
    """`/text` answers with the query alone, every other path with JSON."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(request["id"])
        query = TRANSLATE(SimpleNamespace(**request))
        is_text = self.path == "/text"
        body = query if is_text else json.dumps({"sql": query, "usage": {"words": len(request["question"].split())}})
        self.send_response(200)
        self.send_header("Content-Type", "text/plain" if is_text else "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def translator():
    """The translator behind a service on a free port, and the ids that it is asked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the translator, as a suite of its own."""
    suite = tmp_path_factory.mktemp("translator") / "suite"
    shutil.copytree(EXAMPLE / "predictors", suite, ignore=shutil.ignore_patterns("__pycache__"))
    (suite / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return suite


def ended(folder, *arguments, **variables):
    """A run that has come to its end."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = os.environ | variables
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def run(folder, *arguments, **variables):
    """The cases of a run's report, by suite file."""
    report = folder.parent / "report.json"
    result = ended(folder, f"--queryeval-report={report}", *arguments, **variables)
    assert result.returncode == 0, result.stdout + result.stderr
    files = {}
    for case in json.loads(report.read_text(encoding="utf-8"))["cases"]:
        files.setdefault(Path(case["nodeid"].partition("::")[0]).name, {})[case["id"]] = case
    return files


@pytest.fixture(scope="module")
def files(folder):
    """The cases of a run of all files."""
    return run(folder)


def scores(cases):
    return {name: (case["outcome"], case["scores"], case["predicted"]["query"]) for name, case in cases.items()}


def test_a_function_and_a_program_score_the_same(files):
    function, program = files["python.queryeval.yaml"], files["command.queryeval.yaml"]
    assert len(function) == CASES
    assert scores(function) == scores(program)
    assert {name for name, case in function.items() if case["outcome"] != "passed"} == BEYOND_THE_RULES


def test_the_python_of_the_program_may_be_named(folder):
    result = ended(folder, "command.queryeval.yaml", PYTHON="no-such-python")

    assert result.returncode == 1
    assert "there is no program 'no-such-python' on the PATH" in result.stdout


def test_a_service_scores_the_same_and_tells_more(folder, files):
    suite = """
predictor: {http: {url: "${TRANSLATOR}/translate", answer: $.sql, metadata: {words: $.usage.words}}}
cases: questions/*.yaml
"""
    (folder / "http.queryeval.yaml").write_text(suite, encoding="utf-8")

    with translator() as (url, requests):
        (service,) = run(folder, "http.queryeval.yaml", TRANSLATOR=url).values()

    assert scores(service) == scores(files["python.queryeval.yaml"])
    assert sorted(requests) == sorted(service)
    assert service["trees"]["prediction"]["metadata"] == {"words": 5}


def test_a_service_may_be_named_on_the_command_line(folder, files):
    with translator() as (url, requests):
        (service,) = run(folder, "python.queryeval.yaml", f"--queryeval-predictor={url}/text").values()

    assert scores(service) == scores(files["python.queryeval.yaml"])
    assert sorted(requests) == sorted(service)
