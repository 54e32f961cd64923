"""What the declarations of options have to agree with."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from documentation import page as page_of

from pytest_queryeval.cli import main


def test_the_documentation_of_evaluate_names_the_options_that_are_settings_of_pytest(pytestconfig, capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    flags = {*re.findall(r"--([a-z]+(?:-[a-z]+)*)", capsys.readouterr().out)}
    settings = {name.removeprefix("queryeval_").replace("_", "-") for name in pytestconfig._parser._inidict}
    sentence = re.search(r"their options are (.+?)\.\s", page_of("large-runs"), re.DOTALL)[1]

    assert {*re.findall(r"`--([a-z-]+)`", sentence)} == flags & settings


@pytest.mark.feature("evaluate")
def test_samples_of_other_seeds_differ_and_every_case_may_be_chosen(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = "{columns: [n], rows: [[1]]}"
    cases = "".join(f"- {{id: c{n}, gold_table: {table}, predicted_table: {table}}}\n" for n in range(8))
    for name in "ab":
        Path(f"{name}.queryeval.yaml").write_text(f"kind: sql\ncases:\n{cases}")
    samples = []
    for seed in range(30):
        main(["evaluate", ".", "--sample", f"4:{seed}", "--json"])
        samples.append([case["nodeid"] for case in json.loads(capsys.readouterr().out)["cases"]])

    assert len({*map(tuple, samples)}) > 20
    assert len({nodeid for sample in samples for nodeid in sample}) == 16
    assert all([nodeid[0] for nodeid in sample] == ["a", "a", "b", "b"] for sample in samples)


SUITE = """kind: sql
source: {sqlite: {script: a.sql}}
thresholds: {}
metrics: [valid_query]
cases:
  - {id: a, question: Which?, gold: SELECT 1, predicted_table: {columns: [a], rows: [[1]]}}
"""


JSON = "kind: json\ncases: [{id: a, gold: {x: 1}, predicted: {x: 1}}]\n"


@pytest.mark.feature("evaluate", "json", "challenge", "recording")
@pytest.mark.parametrize(
    ("option", "suite", "message"),
    [
        (
            "--trials=3",
            SUITE,
            "--trials: the suites give the predictions of all cases: leave it out, or add --predictor",
        ),
        ("--concurrency=3", SUITE, "--concurrency: no case calls a predictor: leave it out"),
        ("--spend=cost=3", SUITE, "the spend limit counted nothing, because no call was made"),
        ("--challenge", JSON, "no answer was challenged"),
        ("--record=r", JSON, "--record: no case calls a predictor or runs a query: leave it out"),
    ],
)
def test_an_option_that_no_case_uses_is_named(tmp_path, monkeypatch, capsys, option, suite, message):
    monkeypatch.chdir(tmp_path)
    Path("a.sql").write_text("CREATE TABLE t (a)")
    Path("s.queryeval.yaml").write_text(suite)

    with suppress(SystemExit):
        main(["evaluate", ".", option])

    captured = capsys.readouterr()
    assert message in captured.out + captured.err


@pytest.mark.feature("evaluate", "json")
@pytest.mark.parametrize("option", ["--trials=2", "--concurrency=2"])
def test_an_option_that_cases_outside_of_a_selection_use_is_no_misuse(tmp_path, monkeypatch, capsys, option):
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text("def one(case):\n    return '{\"x\": 1}'\n")
    asked = "  - {id: b, question: Which?, gold: {x: 1}}\n"
    stated = "  - {id: a, gold: {x: 1}, predicted: {x: 1}}\n"
    Path("s.queryeval.yaml").write_text(f"kind: json\npredictor: p.py:one\ncases:\n{stated}{asked}")

    assert main(["evaluate", "s.queryeval.yaml::a", option]) == 0
    assert "1 passed" in capsys.readouterr().out
