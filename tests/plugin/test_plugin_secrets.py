"""Secrets are in nothing that a run writes: neither in reports nor in JUnit nor on the terminal."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from servers import FaultServer

SECRETS = {
    "environment": "sk-env/4f9aQz7+Lm2Xw",
    "header": "k3y-header-8812",
    "bearer": "t0ken-bearer-5521",
    "basic": "pässword of basic&1",
    "user info": "us3r-info-9931",
    "short": "x7Kq2mZ9",
}
EVERYTHING = ("-rA", "-v", "--tb=long", "--showlocals", "--queryeval-report=reports")
KNOWN = f"{SECRETS['environment']} and {SECRETS['short']}"
INPUTS = ("a.queryeval.yaml", "predict.py", "leak.sql", "queryeval.yaml")
PREDICTOR = """
import base64, logging, os, sys, warnings
from urllib.parse import quote

from pytest_queryeval.core.model import Prediction, QueryOrAnswer

SECRET = os.environ["MODEL_API_KEY"]
SHORT = os.environ["MODEL_PASS"]


def tell(text):
    print("printed", text)
    print("to stderr", text, file=sys.stderr)
    logging.getLogger("model").warning("logged %s", text)
    warnings.warn("warned " + text)


def predict(case):
    for text in (SECRET, SHORT, repr([SECRET]), quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode()):
        tell(text)
    if case.id == "raises":
        raise ValueError(f"https://ann:{SECRET}@model.example refuses\\n{SHORT}\\n{'x' * 150}{SECRET}")
    if case.id == "exits":
        sys.exit(SECRET)
    texts = {
        "cell": "SELECT note, 7 FROM leak",
        "column": f'SELECT note AS "{SECRET}" FROM leak',
        "unfinished": f"SELECT '{'y' * 30}{SECRET}",
        "unknown": f'SELECT 1 FROM "{SECRET}"',
    }
    query = texts.get(case.id, f"SELECT name FROM singer -- {SECRET} {'x' * 20_000}{SECRET}")
    metadata = {"key": SECRET, SHORT: [SECRET.encode()], "cut": "z" * 195 + SECRET}
    return Prediction(QueryOrAnswer(query=query), predictor=f"model with {SECRET}", metadata=metadata)
"""
CONFTEST = """
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if item.name == "crashes":
        secret = item.config.getini("known")
        raise RuntimeError("conftest raised " + secret)
"""


def spellings(secret):
    data = secret.encode()
    return {
        *(secret, quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret), ascii(secret)[1:-1]),
        *(base64.b64encode(data).decode().rstrip("="), base64.urlsafe_b64encode(data).decode().rstrip("="), data.hex()),
    }


def leaked(text):
    """Which secrets the text tells, and how."""
    forms = {(name, form) for name, secret in SECRETS.items() for form in spellings(secret)}
    parts = {(name, secret[:12]) for name, secret in SECRETS.items()}
    return sorted(name for name in forms | parts if name[1] in text)


@pytest.fixture
def echo():
    """A service that refuses what it is sent and repeats who asked, also as it understood it."""

    def behave(exchange):
        headers = exchange.request.headers
        said = [headers.get("authorization", ""), headers.get("x-api-key", "")]
        if said[0].startswith("Basic "):
            said.append(base64.b64decode(said[0].removeprefix("Basic ")).decode())
        exchange.reply(json.dumps({"said": said}), "400 Bad Request")

    with FaultServer(behave) as server:
        yield server


@pytest.fixture
def planted(write, monkeypatch, echo):
    """A suite with a secret wherever one can stand, and how to run it with every output there is."""
    monkeypatch.setenv("MODEL_API_KEY", SECRETS["environment"])
    monkeypatch.setenv("MODEL_PASS", SECRETS["short"])
    service = {"rows": "$.rows", "body": {"q": "{query}"}}
    sources = {
        "header": {"url": echo.url, "headers": {"X-Api-Key": SECRETS["header"]}},
        "bearer": {"url": echo.url, "auth": {"bearer": SECRETS["bearer"]}},
        "basic": {"url": echo.url, "auth": {"basic": f"ann:{SECRETS['basic']}"}},
        "user": {"url": echo.url.replace("//", f"//ann:{SECRETS['user info']}@")},
    }
    cases = [
        {"id": "passes"},
        *({"id": id_} for id_ in ("cell", "column", "unfinished", "unknown", "raises", "exits", "crashes")),
        {"id": "gold", "gold": f"SELECT '{KNOWN}', note FROM leak", "question": f"What is {KNOWN}?"},
        {"id": "broken", "gold": f'SELECT "{SECRETS["environment"]}".x FROM leak'},
        {"id": "skipped", "skip": f"waits for {KNOWN}"},
        {"id": "expected", "xfail": f"knows {KNOWN}", "gold": "SELECT 7", "metadata": {"note": KNOWN}},
        *({"id": f"of-{name}", "source": name} for name in sources),
    ]
    lines = [
        "kind: sql",
        "predictor: predict.py:predict",
        f"sources: {json.dumps({name: {'http': {**service, **own}} for name, own in sources.items()})}",
        "source: {sqlite: {script: leak.sql}}",
        "cases:",
        *(
            f"  - {json.dumps({'question': 'Which?', 'gold': 'SELECT name FROM singer', **case}, ensure_ascii=False)}"
            for case in cases
        ),
    ]
    write("a.queryeval.yaml", "\n".join(lines) + "\n")
    write("predict.py", PREDICTOR)
    write("conftest.py", 'def pytest_addoption(parser):\n    parser.addini("known", "a secret")\n' + CONFTEST)
    write("pytest.ini", f"[pytest]\nfilterwarnings = default\njunit_logging = all\nlog_level = INFO\nknown = {KNOWN}\n")
    write(
        "leak.sql",
        "CREATE TABLE singer (name TEXT); INSERT INTO singer VALUES ('Ana');\n"
        f"CREATE TABLE leak (note TEXT); INSERT INTO leak VALUES ('{KNOWN}'), ('{'x' * 195}{KNOWN}');\n",
    )


@pytest.fixture
def written(pytester):
    """All that a run told: its terminal, and the files that it wrote."""

    def text_of(result):
        inputs = {*INPUTS, "conftest.py", "pytest.ini"}
        files = [path for path in pytester.path.rglob("*") if path.is_file() and path.name not in inputs]
        texts = {
            path.name: path.read_text(encoding="utf-8", errors="replace") for path in files if path.suffix != ".pyc"
        }
        return {**texts, "terminal": result.stdout.str() + result.stderr.str()}

    return text_of


@pytest.mark.feature("http_engine")
@pytest.mark.usefixtures("planted")
def test_no_secret_is_in_anything_that_a_run_writes_which_says_where_it_was(run, written):
    texts = written(run(*EVERYTHING, "--junitxml=other.xml"))

    assert {name: secret for name, text in texts.items() if (secret := leaked(text))} == {}
    assert {"report.json", "report.md", "other.xml"} <= texts.keys()
    report = json.loads(texts["report.json"])
    assert {case["outcome"] for case in report["cases"]} == {"passed", "failed", "error", "skipped", "xfailed"}
    for words in ("printed [redacted]", "to stderr [redacted]", "logged [redacted]", "warned [redacted]"):
        assert words in texts["terminal"]
    assert "printed [redacted]" in texts["other.xml"]
    cases = {case["id"]: case for case in report["cases"]}
    assert cases["gold"]["question"] == "What is [redacted] and [redacted]?"
    assert cases["gold"]["gold"]["sample"][0] == ["[redacted] and [redacted]"] * 2
    assert cases["passes"]["prediction"]["source"] == "model with [redacted]"
    assert cases["passes"]["prediction"]["metadata"]["key"] == "[redacted]"
    assert cases["raises"]["message"].count("[redacted]") == 3
    assert cases["cell"]["predicted"]["sample"][0] == ["[redacted] and [redacted]", 7]
    assert all("[redacted]" in case["message"] for id_, case in cases.items() if id_.startswith("of-"))


@pytest.mark.feature("http_engine", "recording")
@pytest.mark.usefixtures("planted")
def test_no_secret_is_in_what_workers_send_and_what_is_recorded_of_a_run(pytester, run, written):
    texts = written(run(*EVERYTHING, "-n1", "--queryeval-record=recorded"))

    assert {name: secret for name, text in texts.items() if (secret := leaked(text))} == {}
    assert list((pytester.path / "recorded" / "predictions").rglob("*.json"))
    assert list((pytester.path / "recorded" / "executions").rglob("*.json"))


def test_secrets_are_compared_before_they_are_taken_out(suite, run_and_parse, write, monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", SECRETS["environment"])
    suite(
        {"id": "same", "gold": f"SELECT '{KNOWN}'", "predicted": f"SELECT '{KNOWN}'"},
        {"id": "other", "gold": f"SELECT '{KNOWN}'", "predicted": "SELECT '[redacted]'"},
    )

    ran = run_and_parse()

    assert ran.outcomes == {"same": "passed", "other": "failed"}


def test_a_broken_suite_does_not_tell_a_secret(run, write, written, monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", SECRETS["environment"])
    write("a.queryeval.yaml", f"kind: sql\nsource: '{SECRETS['environment']}'\ncases: [{{id: a, {KNOWN}: 1}}]\n")

    texts = written(run("-v", "--queryeval-report=reports"))

    assert "[redacted]" in texts["terminal"]
    assert SECRETS["environment"] not in "".join(texts.values())


def test_warnings_of_no_test_do_not_tell_a_secret_and_other_tests_are_left_alone(suite, run, write, monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", SECRETS["environment"])
    warn = "import warnings\n\ndef {}():\n    warnings.warn('{} ' + __import__('os').environ['MODEL_API_KEY'])\n"
    write("conftest.py", warn.format("pytest_collection_modifyitems", "collected"))
    failing = f"\n    assert '{SECRETS['environment']}' == 'x'\n"
    write("test_own.py", warn.format("test_own", "own") + failing)
    suite({"id": "a", "gold": "SELECT 1", "predicted": "SELECT 1"})

    said = run("-Wdefault").stdout.str()

    assert "collected [redacted]" in said
    assert f"own {SECRETS['environment']}" in said
    assert f"'{SECRETS['environment']}' == 'x'" in said
