"""What the declarations of options have to agree with."""

import re
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest

import pytest_queryeval
from pytest_queryeval.cli import main
from pytest_queryeval.core.cause import CauseMode
from pytest_queryeval.reports import LAYOUTS
from pytest_queryeval.results.gates import GateMode
from pytest_queryeval.runs import options as runs_options
from pytest_queryeval.runs.option_table import OPTIONS

PACKAGE = Path(pytest_queryeval.__file__).parent
SCALE = Path(__file__).parent.parent / "docs" / "scale.md"


def test_choices_are_all_modes():
    choices = {option.name: option.choices for option in OPTIONS if option.choices}

    assert choices == {"cause": get_args(CauseMode), "gates": get_args(GateMode), "excel_layout": LAYOUTS}


def test_every_option_is_read():
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    read_names = {name for text in texts for name in re.findall(r"\b(?:options|option_values)\.(\w+)", text)}
    read_names |= {*re.findall(r"\bself\.(\w+)", Path(runs_options.__file__).read_text(encoding="utf-8"))}

    assert [option.name for option in OPTIONS if option.name not in read_names] == []


def test_the_documentation_of_evaluate_names_the_options_that_are_settings_of_pytest():
    sentence = re.search(r"their options are (.+?)\.\s", SCALE.read_text(encoding="utf-8"), re.DOTALL)[1]

    assert {*re.findall(r"`--([a-z-]+)`", sentence)} == {option.flag for option in OPTIONS if option.setting}


SUITE = """kind: sql
source: {sqlite: {script: a.sql}}
thresholds: {}
metrics: [valid_query]
cases:
  - {id: a, question: Which?, gold: SELECT 1, predicted_table: {columns: [a], rows: [[1]]}}
"""


JSON = "kind: json\ncases: [{id: a, gold: {x: 1}, predicted: {x: 1}}]\n"


@pytest.mark.feature("evaluate", "json", "challenge")
@pytest.mark.parametrize(
    ("option", "suite", "message"),
    [
        (
            "--trials=3",
            SUITE,
            "--trials: the suites state what is predicted in every case: leave it out, or add --predictor",
        ),
        ("--concurrency=3", SUITE, "--concurrency: no case calls a predictor: leave it out"),
        ("--spend=cost=3", SUITE, "the spend limit counted nothing, because no call was made"),
        ("--challenge", JSON, "no answer was challenged"),
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
