"""Garbage is collected less often from the first suite on, and as before afterwards."""

from __future__ import annotations

import gc

import pytest
from singers import GOLD, unpredicted

NOTING = """
import gc, pathlib

def note(name):
    with pathlib.Path("thresholds").open("a") as file:
        print(name, gc.get_threshold()[0], file=file)
"""
CONFTEST = """
from noting import note

def pytest_collect_file(file_path):
    if file_path.name == "b.queryeval.yaml":
        note("suite")

def pytest_unconfigure():
    note("end")
"""
TEST = """
from noting import note

note("collected")

def test_beside():
    note("test")
"""


@pytest.fixture(autouse=True)
def default():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("end", ["", "raise KeyboardInterrupt"], ids=["whole", "interrupted"])
def test_garbage_is_collected_less_often_from_the_first_suite_to_the_end(suite, write, pytester, end):
    pytester.syspathinsert()
    write("noting.py", NOTING)
    write("conftest.py", CONFTEST)
    predict = f"from noting import note\ndef predict(case):\n    note('case')\n    {end}\n    return {GOLD!r}\n"
    write("predict.py", predict)
    questions = [unpredicted(name, question="Who sings?") for name in ("one", "two")]
    suite(*questions, name="b.queryeval.yaml", predictor="predict.py:predict")
    for name in "ac":
        write(f"test_{name}.py", TEST)

    pytester.inline_run("test_a.py", "b.queryeval.yaml", "test_c.py", no_reraise_ctrlc=True)

    lines = (pytester.path / "thresholds").read_text().splitlines()
    cases = ["case 50000"] if end else ["case 50000", "case 50000", "test 50000"]
    assert lines[0] == "suite 50000"  # what is imported for the first suite
    assert [line for line in lines if "suite" not in line] == [
        "collected 50000",
        "collected 50000",
        "test 50000",
        *cases,
        "end 50000",
    ]
    assert gc.get_threshold() == (700, 10, 10)


def test_collections_leave_out_what_is_loaded_once_suites_are_collected(suite, write, pytester):
    write("test_a.py", "def test_a():\n    pass\n")
    frozen = gc.get_freeze_count()
    pytester.inline_run("test_a.py")
    assert gc.get_freeze_count() <= frozen

    suite(unpredicted("one", question="Who sings?"), name="b.queryeval.yaml")
    pytester.inline_run("b.queryeval.yaml", "--collect-only")

    assert gc.get_freeze_count() > frozen
