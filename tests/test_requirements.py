import pytest
from suites import enter, load, problems, write

from pytest_queryeval.core.errors import QueryEvalWarning
from pytest_queryeval.suites import load_cases, variables

CASES = """
cases:
  - id: a
    gold_table: {columns: [n], rows: [[1]]}
    predicted_table: {columns: [n], rows: [[1]]}
"""
HINT = r"needs no-such-package: pip install 'pytest-queryeval\[absent\]'"


def test_extras_are_those_of_the_package():
    packages = variables.packages_of_extras()

    assert packages["duckdb"][0] == "duckdb"
    assert {"sqlalchemy", "psycopg"} <= {name.lower() for name in packages["postgres"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, in a world with two extras, of which one is not installed."""
    packages = {"absent": ("no-such-package",), "present": ("pytest", "PyYAML")}
    monkeypatch.setattr(variables, "packages_of_extras", lambda: packages)
    return enter(tmp_path, monkeypatch)


def test_a_suite_whose_extra_is_installed_is_read(folder):
    assert [case.id for case in load(f"kind: sql\nrequires: present\n{CASES}")] == ["a"]


def test_a_suite_whose_extra_is_missing_is_left_out_with_a_hint_and_the_others_are_read(folder):
    write(f"kind: sql\nrequires: [present, absent]\n{CASES}", "one.queryeval.yaml")
    write(f"kind: sql\n{CASES}", "two.queryeval.yaml")

    with pytest.warns(QueryEvalWarning, match=HINT):
        cases = load_cases(".")

    assert [str(case.location.path) for case in cases] == ["two.queryeval.yaml"]


def test_nothing_else_of_a_suite_that_cannot_be_used_is_read(folder):
    with pytest.warns(QueryEvalWarning, match=HINT):
        cases = load("kind: sql\nrequires: absent\nsource: {typo: 1}\ncases: 5\n")

    assert cases == ()


def test_a_folder_may_require_an_extra_for_all_below_it(folder):
    write("requires: absent\nsources: {a: {typo: 1}}\n", "one/queryeval.yaml")
    write(f"kind: sql\n{CASES}", "one/deep/s.queryeval.yaml")
    write(f"kind: sql\n{CASES}", "two/s.queryeval.yaml")

    with pytest.warns(QueryEvalWarning, match=HINT):
        cases = load_cases(".")

    assert [case.location.path.as_posix() for case in cases] == ["two/s.queryeval.yaml"]


def test_an_extra_that_there_is_not_is_a_problem_of_the_suite(folder):
    expected = ["s.queryeval.yaml:2: unknown extra 'presnt': did you mean 'present'?"]

    assert problems(f"kind: sql\nrequires: presnt\n{CASES}") == expected
