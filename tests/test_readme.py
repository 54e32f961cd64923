"""What the README and the pages that continue its start show is tried: the start, snippets, and quoted messages."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from documentation import page as page_of

from pytest_queryeval import evaluate, load_cases

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTINUED = ("index", "test-set", "reports", "python", "extending", "outcomes")
PAGES = "\n".join([README, *(page_of(name) for name in CONTINUED)])
OTHER_KINDS = "\n".join([page_of("sparql"), page_of("sql").partition("## Texts of queries\n")[2]])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED_BLOCK = re.compile(r"^\*\*`([\w.]+)`\*\*[^\n]*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUITE = "concerts.queryeval.yaml"
START = dict(NAMED_BLOCK.findall(page_of("index")))
HEAD, _, CASES = START[SUITE].partition("cases:\n")
TIMES = re.compile(r" in [0-9.]+s =*")
MISSES = {"skipped": "not-yet", "xfailed": "known-miss"}


def blocks(language, first_line="", pages=PAGES):
    blocks = [text for word, text in BLOCK.findall(pages) if word == language and text.startswith(first_line)]
    assert blocks, f"no {language} block starts with {first_line!r}"
    return blocks


@pytest.fixture
def start(tmp_path, monkeypatch):
    for name, text in START.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    unset = ("CONCERTS_DB", "CI", "BUILD_NUMBER")  # where CI is set, pytest cuts no line to the width
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {"COLUMNS": "80"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)


def significant(text):
    return [TIMES.sub("", line) for line in text.splitlines() if line.strip()]


@pytest.mark.feature("causes")
def test_the_start_prints_what_the_page_shows(start):
    result = run(start)

    assert result.returncode == 1
    shown = significant(next(text for text in blocks("text") if text.startswith("collected")))
    printed = significant(result.stdout)
    assert printed[printed.index(shown[0]) :] == shown


def test_the_two_commands_are_explained():
    section = README.partition("## Two commands\n")[2].partition("\n## ")[0]
    commands = re.findall(r"^make (\S+) +# ", section, re.MULTILINE)
    contributing = page_of("contributing")

    assert commands == ["example", "test"]
    assert all(f"| `make {command}` |" in contributing for command in commands)


@pytest.mark.parametrize("page", ["README.md", "docs/developers/contributing.md"])
def test_commands_of_make_exist(page):
    commands = set(re.findall(r"(?:^|`)make ([a-z]+(?:-[a-z]+)*)", (ROOT / page).read_text(encoding="utf-8"), re.M))

    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert commands
    assert commands <= targets


def test_each_test_file_is_in_one_part_of_make_test():
    printed = subprocess.run(
        ["make", "--dry-run", "all-tests"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    ).stdout
    commands = [line.split() for line in printed.splitlines() if " -m pytest " in line]

    files = Counter(
        file
        for words in commands
        for word in words
        if word.startswith("tests/")
        for path in ROOT.glob(word)
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
        if f"--ignore={file.relative_to(ROOT)}" not in words
    )

    assert files == dict.fromkeys(ROOT.glob("tests/**/test_*.py"), 1)


@pytest.mark.feature("ci", "excel", "page")
def test_the_ini_setting_fills_a_folder_with_reports_and_the_snippet_of_gates_is_evaluated(start):
    (start / "pytest.ini").write_text(blocks("ini")[0], encoding="utf-8")
    (start / "queryeval.yaml").write_text(blocks("yaml", "# queryeval.yaml\n")[0], encoding="utf-8")

    result = run(start)

    assert result.returncode == 1
    assert "gate met: execution_accuracy" in result.stdout
    assert result.stdout.count("gate MISSED") == 2
    assert {path.name for path in (start / "reports").iterdir()} >= {"junit.xml", "report.json", "report.md"}
    assert "queryeval.execution_accuracy" in (start / "reports/junit.xml").read_text(encoding="utf-8")


def test_evaluation_without_pytest(start):
    result = subprocess.run(
        [sys.executable, "-c", blocks("python", "from pytest_queryeval import evaluate")[0]],
        cwd=start,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert result.stdout == "0.5\n", result.stderr


@pytest.mark.parametrize("snippet", blocks("yaml", "# cases\n"))
def test_snippets_of_cases_end_as_the_page_says(start, snippet):
    (start / SUITE).write_text(f"{HEAD}cases:\n{snippet}", encoding="utf-8")

    report = evaluate(load_cases(SUITE))

    outcomes = {case["id"]: case["outcome"] for case in report["cases"]}
    expected = {id_: next((name for name, miss in MISSES.items() if miss == id_), "passed") for id_ in outcomes}
    assert outcomes == expected


@pytest.mark.parametrize("thresholds", re.findall(r"thresholds: (\{[a-z_0-9]+: [^}\n]*\})", PAGES + OTHER_KINDS))
def test_no_thresholds_let_a_query_pass_that_returns_every_number(start, thresholds):
    numbers = ", ".join(map(str, range(100)))
    (start / SUITE).write_text(
        f"{HEAD}cases:\n- id: a\n  question: How many?\n  gold: SELECT count(*) FROM singer\n"
        f"  predicted: SELECT {numbers}\n  thresholds: {thresholds}\n",
        encoding="utf-8",
    )

    (case,) = evaluate(load_cases(SUITE))["cases"]

    assert case["outcome"] == "failed"


def test_the_metric_of_ones_own_can_be_named(start):
    metrics = [*blocks("python", "from pytest_queryeval import METRICS"), *blocks("python", "import math\n")]
    (start / "conftest.py").write_text("\n".join(metrics), encoding="utf-8")
    (start / SUITE).write_text(
        f"{HEAD}metrics: [first_column_name, extra_rows]\nthresholds: {{}}\ncases:\n{CASES}", encoding="utf-8"
    )

    result = run(start)

    assert result.returncode == 0
    assert "first_column_name  0.500" in result.stdout
    assert "extra_rows         0.500" in result.stdout


BROKEN = {
    "a mistyped key": START[SUITE].replace(
        "    gold: |\n      SELECT country, avg", "    golden: |\n      SELECT country, avg"
    ),
    "a missing database": "kind: sql\nsource: concert.db\npredictor: predict.py:predict\ncases:\n"
    "  - {id: a, question: How many?, gold: SELECT 1}\n",
    "a line indented wrongly": f"{HEAD}cases:\n  - id: a\n   gold: SELECT 1\n",
    "a query cut by YAML": "kind: sql\nsource: concerts.db\npredictor: predict.py:predict\ncases:\n"
    "  - id: a\n    question: How many?\n    gold: SELECT count(*) FROM singer  # all of them\n",
    "a missing variable": 'kind: sql\nsource: "${CONCERTS_DB}"\npredictor: predict.py:predict\ncases:\n'
    "  - {id: a, gold: SELECT 1}\n",
    "a gold that does not run": HEAD + "cases:\n  - {id: a, question: How many?, gold: SELECT counry FROM singer}\n",
    "nobody who answers": "kind: sql\nsource: concerts.db\ncases:\n  - {id: a, gold: SELECT 1}\n",
}


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """What one run says of all broken suites, each in a folder of its own."""
    root = tmp_path_factory.mktemp("broken")
    for name, suite in BROKEN.items():
        (root / name).mkdir()
        for file, text in {**START, SUITE: suite}.items():
            (root / name / file).write_text(text, encoding="utf-8")
    printed = run(root, "--continue-on-collection-errors").stdout.splitlines()
    places = {name: rf"{name}/{SUITE}:\d+" for name in BROKEN}
    return {
        name: [
            line.replace(f"{root}/{name}", "/path/to").replace(f"{name}/", "")
            for line in printed
            if re.search(rf"^{place}|^(?! |ERROR ).*\({place}\)$", line)
        ]
        for name, place in places.items()
    }


@pytest.mark.parametrize("broken", BROKEN)
def test_messages_are_those_that_the_page_quotes(messages, broken):
    said = messages[broken]

    quoted = {line for text in blocks("text") for line in text.splitlines()}
    assert said
    assert set(said) <= quoted


@pytest.mark.parametrize(("page", "name"), [("sql", "texts"), ("json", "searches"), ("sdmx", "selections")])
@pytest.mark.feature("json", "sdmx")
def test_the_suites_that_need_no_database_pass(tmp_path, page, name):
    (suite,) = blocks("yaml", f"# {name}.queryeval.yaml", page_of(page))
    (tmp_path / f"{name}.queryeval.yaml").write_text(suite, encoding="utf-8")

    report = evaluate(load_cases(tmp_path))

    assert report["totals"]["passed"] == 1
    assert set(report["cases"][0]["scores"].values()) == {1.0}


@pytest.mark.feature("sparql_endpoint")
def test_the_sparql_suite_passes_and_its_sources_are_read(tmp_path, monkeypatch):
    (suite,) = blocks("yaml", "# building.queryeval.yaml", page_of("sparql"))
    (sources,) = blocks("yaml", "# sources\n")
    monkeypatch.setenv("GRAPH_TOKEN", "0000")
    (tmp_path / "building.queryeval.yaml").write_text(f"{sources}{suite}", encoding="utf-8")
    (tmp_path / "building.ttl").write_text(
        "@prefix : <http://b/> . @prefix brick: <https://brickschema.org/schema/Brick#> .\n"
        ":r1 brick:hasPoint :s1 . :r2 brick:hasPoint :s2 . :s1 a brick:Temperature_Sensor . :s2 a brick:Sensor ."
        ":r3 brick:hasPoint :s3 . :s3 a brick:Temperature_Sensor .",
        encoding="utf-8",
    )

    report = evaluate(load_cases(tmp_path))

    assert report["totals"]["passed"] == 1
    assert report["cases"][0]["scores"]["row_matching_f1"] == 0.8


def test_links_lead_somewhere():
    pages = (path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "generated")
    for name in ("README.md", *pages):
        text = (ROOT / name).read_text(encoding="utf-8")
        targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text)]
        missing = [
            target
            for target in targets
            if target and "://" not in target and not ((ROOT / name).parent / target).exists()
        ]
        assert missing == [], name
