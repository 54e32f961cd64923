"""A package of its own adds a kind, an engine, a predictor, a metric, a gate rule, a group and formats."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documentation import page as page_of

HERE = Path(__file__).parent
EXTENSION = HERE / "extension"
MEMBERS = (
    *("lookup", "dictionary", "template", "key_overlap", "tex", "question_lines", "query_lines"),
    *("max_errors", "first_word"),
)
GATE = re.compile(r"^gate (?:MISSED|met): .+$", re.MULTILINE)
SUITE = {
    "kind": "lookup",
    "source": {"dictionary": {"entries": {"apples": 3, "pears": 5, "plums": 8}}},
    "predictor": {"template": {"text": "Here you are:\n```lookup\nGET {question}\n```"}},
    "metrics": ["execution_accuracy", "key_overlap", "row_matching_f1"],
    "cases": [
        {"id": "right", "question": "apples, pears", "gold": "GET pears, apples"},
        {"id": "wrong", "question": "apples", "gold": "GET pears, apples"},
        {"id": "fails", "question": "cherries", "gold": "ALL"},
    ],
}

pytestmark = [
    pytest.mark.process,
    pytest.mark.feature("causes", "ci", "excel", "history", "json", "page", "report_files", "transfer"),
]


def run(*arguments, cwd):
    return python("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, cwd=cwd)


def queryeval(*arguments, cwd):
    return python("-c", "import sys; from pytest_queryeval.cli import main; sys.exit(main())", *arguments, cwd=cwd)


def python(*arguments, cwd):
    paths = os.pathsep.join([str(EXTENSION), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A run of the suite with gates, reports in all formats, and what it printed."""
    folder = tmp_path_factory.mktemp("extension")
    gates = [{"max_errors": 0}, {"metric": "key_overlap", "min": 0.9, "where": {"first_word": "GET"}}]
    (folder / "queryeval.yaml").write_text(json.dumps({"gates": gates, "owner": "ann"}), encoding="utf-8")
    suite = {**SUITE, "cases": [*SUITE["cases"], {"id": "two", "owner": 5, "question": "pears", "gold": "ALL"}]}
    (folder / "a.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    reports = [f"--queryeval-report=report.{suffix}" for suffix in ("json", "tex", "csv", "md", "html")]

    done = run("-v", "--queryeval-cause=full", *reports, cwd=folder)

    assert done.returncode == 1, done.stdout + done.stderr
    return folder, done.stdout


def text_of(ran, suffix):
    return (ran[0] / f"report.{suffix}").read_text(encoding="utf-8")


def test_members_of_another_package_evaluate_a_suite(ran):
    cases = {case["id"]: case for case in json.loads(text_of(ran, "json"))["cases"]}

    assert {id_: (case["outcome"], *case["scores"].values()) for id_, case in cases.items()} == {
        "right": ("passed", 1.0, 1.0, 1.0),
        "wrong": ("failed", 0.0, 0.5, 2 / 3),
        "fails": ("failed", 0.0, 0.0, 0.0),
        "two": ("failed", 0.0, 1 / 3, 0.5),
    }
    assert re.search(r"key overlap & 0\.4[56]", text_of(ran, "tex"))
    assert cases["wrong"]["cause"]["edits"][0]["label"] == "wrong-value"
    assert cases["wrong"]["cause"]["repaired_query"] == "GET pears, apples"
    assert cases["right"]["cause"] is None


def test_a_rule_and_a_group_of_another_package_are_those_of_gates(ran):
    folder, output = ran
    merged = queryeval("merge", "report.json", "--baseline", "report.json", cwd=folder)

    lines = [
        "gate met: cases in error: 0 (4 cases); this gate allows at most 0",
        "gate MISSED: key_overlap of cases beginning with GET is 0.750 (2 cases); this gate needs at least 0.9",
    ]
    for text in (output, merged.stdout):
        assert GATE.findall(text) == lines, merged.stderr
    assert "changed besides the system" not in merged.stdout
    assert ",first word," in text_of(ran, "csv")


def test_a_section_of_another_package_is_in_each_report_for_people(ran):
    output, markdown, page = ran[1], text_of(ran, "md"), text_of(ran, "html")

    assert "\nKeys\n" in output
    assert "<summary>Keys</summary>" in markdown
    assert '<a href="#case=a.queryeval.yaml%3A%3Afails">a.queryeval.yaml::fails</a></th><td>ALL</td>' in page
    assert all("A section that fails" in text for text in (output, markdown, page))
    assert "cannot be made: ValueError: <b>" in output
    assert "cannot be made: `ValueError: <b>`" in markdown
    assert "cannot be made: ValueError: &lt;b&gt;" in page


def test_another_package_adds_commands_and_targets_of_exports(ran):
    folder = ran[0]
    counted = queryeval("count", "report.json", cwd=folder)
    help_text = queryeval("--help", cwd=folder)
    broken = queryeval("uncounted", "report.json", cwd=folder)
    sent = queryeval("export", "report.json", "--to", "outcomes:kept.txt", cwd=folder)

    assert (counted.returncode, counted.stdout) == (0, "4 cases\n"), counted.stderr
    assert "count the cases of a report" in help_text.stdout
    assert broken.returncode == 2
    assert broken.stderr.startswith("command 'uncounted' cannot be imported from queryeval_lookup.uncounted:COUNT: ")
    assert broken.stderr.count("\n") == 1
    assert (sent.returncode, sent.stdout) == (0, "outcomes: kept.txt\n"), sent.stderr
    kept = (folder / "kept.txt").read_text(encoding="utf-8")
    assert kept == "fails failed\nright passed\ntwo failed\nwrong failed\n"


def test_another_package_adds_a_key(ran, tmp_path):
    program = "from pytest_queryeval import load_cases; print([case.extra['owner'] for case in load_cases('.')])"

    owners = python("-c", program, cwd=ran[0])
    (tmp_path / "a.queryeval.yaml").write_text(json.dumps({**SUITE, "owner": ["ann"]}), encoding="utf-8")
    refused = run(cwd=tmp_path)

    assert owners.stdout == "['ann', 'ann', 'ann', '5']\n", owners.stderr
    assert "owner: expected text, found a list" in refused.stdout, refused.stderr


def named_blocks(page, section):
    """The files of a section of a page, by name."""
    text = page_of(page).partition(f"## {section}\n")[2]
    named = r"^\*\*`([\w.]+)`\*\*[^`]*?(?:`[^`]*`[^`]*?)*\n\n```\w+\n(.*?)^```$"
    return dict(re.findall(named, text.partition("\n## ")[0], re.MULTILINE | re.DOTALL))


def test_the_rule_and_the_group_of_the_docs_are_those_of_gates(tmp_path):
    section = "A key, a rule for gates, and a group"
    files = named_blocks("extending", section)
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    done = run("-v", "--queryeval-report=report.json", cwd=tmp_path)
    (tmp_path / "conftest.py").unlink()
    (tmp_path / "queryeval.yaml").unlink()
    without_rule = queryeval("merge", "report.json", cwd=tmp_path)

    assert files.keys() == {"rule.py", "conftest.py", "queryeval.yaml", "owners.queryeval.yaml"}
    names = GATE.findall(page_of("extending"))
    assert GATE.findall(done.stdout) == names, done.stdout + done.stderr
    unknown_rule = "unknown rule 'min_of_groups': install the package that defines it"
    assert unknown_rule in without_rule.stdout, without_rule.stderr
    assert "json_equal of cases with owner ann is 1.000 (2 cases); this gate needs at least 0.9" in without_rule.stdout


def test_the_section_of_the_docs_is_in_each_report_for_people(tmp_path):
    files = named_blocks("extending", "A section of a report")
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    done = run("-v", cwd=tmp_path)

    assert files.keys() == {"conftest.py", "shop.sql", "shop.queryeval.yaml"}
    page = page_of("extending")
    shown = page.partition("--queryeval-report=report.md\n…\n")[2].partition("…")[0].splitlines()
    printed = [line for line in done.stdout.splitlines() if line]
    start = printed.index("Long queries")
    assert [line for line in shown if line] == printed[start : start + 4], done.stdout + done.stderr


def test_formats_of_another_package_are_imported_and_exported(tmp_path):
    (tmp_path / "set.txt").write_text("How many?\tGET pears\nWhich?\nAll?\tALL\n", encoding="utf-8")

    imported = queryeval("import", "question_lines", "set.txt", "-o", "suites", cwd=tmp_path)
    (tmp_path / "suites" / "predict.py").write_text("def predict(case):\n    return 'GET  pears'\n", encoding="utf-8")
    ran = run("suites", "--queryeval-report=report.json", cwd=tmp_path)
    exported = queryeval("export", "report.json", "-f", "query_lines", "-o", "queries.txt", cwd=tmp_path)

    assert "2 cases, 1 skipped" in imported.stdout, imported.stderr
    assert "1 failed, 1 passed" in ran.stdout, ran.stderr
    assert (exported.returncode, (tmp_path / "queries.txt").read_text()) == (0, "GET pears\nGET pears\n")


def test_members_of_another_package_are_covered_by_the_contract_tests():
    done = run("-k", " or ".join(MEMBERS), "-rA", str(HERE / "test_contracts.py"), cwd=HERE.parent)

    assert done.returncode == 0, done.stdout + done.stderr
    for name in MEMBERS:
        assert re.search(rf"test_contracts\.py::\w+\[.*\b{name}\b", done.stdout), name
