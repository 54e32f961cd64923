import gc
import os
import random
import resource
import tempfile
import warnings

import pytest
import report_maker
from hypothesis import given
from hypothesis import strategies as st
from samples import HEAD, entry
from trees import trees

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.results import case_store
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.case_store import (
    CasesByNodeid,
    StoredCases,
    case_lines,
    collect_cases,
    in_report_order,
    select,
)


@pytest.fixture
def few(monkeypatch):
    """More than five cases are kept in a file."""
    monkeypatch.setattr(case_store, "MAX_IN_MEMORY", 5)


def made(size):
    chance = random.Random(size)
    return [report_maker.make_case(number, chance) for number in range(size)]


@pytest.mark.parametrize(("size", "kind"), [(0, list), (5, list), (6, StoredCases), (12, StoredCases)])
def test_more_cases_than_fit_are_kept_in_a_file(few, size, kind):
    stored = collect_cases(iter(made(size)))

    assert type(stored) is kind
    assert [*stored] == made(size)


def test_stored_cases_are_a_sequence(few):
    cases = made(9)
    stored = collect_cases(cases)

    assert (stored[0], stored[-1], len(stored)) == (cases[0], cases[8], 9)
    assert [*stored[2:7:2]] == cases[2:7:2]
    assert [*reversed(stored)] == cases[::-1]
    assert [*zip(stored, stored, strict=True)] == [*zip(cases, cases, strict=True)]
    assert [*select(stored, [4, 4, 1])] == [cases[4], cases[4], cases[1]] == [*select(cases, [4, 4, 1])]
    with pytest.raises(IndexError):
        stored[9]


@given(st.dictionaries(st.text(), trees, max_size=4), st.text())
def test_stored_cases_are_what_was_stored(details, text):
    case = entry(id=text, path=os.fsdecode(b"caf\xe9"), question=f"a\nb\u2028{text}", details=details)

    (actual,) = StoredCases([case])

    assert actual == case
    assert repr(actual) == repr(case)


def test_the_last_case_of_a_node_id_counts_in_its_first_place(few):
    cases = [entry(nodeid=f"a::{number % 7}", question=str(number)) for number in range(20)]
    stored = CasesByNodeid()
    for case in cases:
        stored[case["nodeid"]] = case

    assert {nodeid: case["question"] for nodeid, case in stored.items()} == {
        f"a::{number % 7}": str(number) for number in range(13, 20)
    }
    assert [case["nodeid"] for case in stored.cases] == [f"a::{number}" for number in range(7)]
    assert "a::9" not in stored
    assert stored.get("a::9") is None


def test_cases_that_were_looked_up_are_those_of_the_report(few):
    cases = collect_cases(made(8))

    stored = CasesByNodeid(cases)
    stored["new"] = entry(nodeid="new")

    assert len(cases) == 8
    assert [*stored.values()] == [*cases, entry(nodeid="new")]


@pytest.mark.feature("json", "sdmx")
@pytest.mark.parametrize("size", [4, 40])
def test_the_report_of_stored_cases_is_that_of_cases_in_memory(size, monkeypatch):
    cases = made(size)
    random.Random(1).shuffle(cases)
    expected = aggregate(cases, gates=(), about=HEAD)
    monkeypatch.setattr(case_store, "MAX_IN_MEMORY", 5)

    report = aggregate(iter(cases), gates=(), about=HEAD)

    assert report | {"cases": [*report["cases"]]} == expected
    assert [*in_report_order(collect_cases(cases))] == expected["cases"]


def test_the_file_is_gone_with_the_last_who_reads_it(few, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        part = collect_cases(made(8))[2:4]
        gc.collect()
        assert len([*part]) == 2
        del part
        gc.collect()

    assert not warned
    assert [*tmp_path.iterdir()] == []


def test_a_full_disk_is_an_error_that_names_the_folder_and_loses_no_case(few):
    stored = CasesByNodeid()
    for case in made(8):
        stored[case["nodeid"]] = case

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (sum(map(len, case_lines(stored.cases))) + 10, limits[1]))
    try:  # a part of the line is written, as on a full disk
        with pytest.raises(ReportError, match=r"cases cannot be kept in .*: File too large: .*TMPDIR"):
            stored["new"] = entry(nodeid="new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert "new" not in stored
    assert [*stored.values()] == made(8)
    stored["later"] = entry(nodeid="later")
    assert [*stored.values()] == [*made(8), entry(nodeid="later")]


def test_no_folder_of_temporary_files_is_an_error_with_its_remedy(monkeypatch):
    def missing(**_):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryFile", missing)

    with pytest.raises(ReportError, match=r"cases cannot be kept in .*: No usable temporary directory .*TMPDIR"):
        StoredCases(made(1))


def test_a_case_that_is_no_json_is_refused():
    with pytest.raises(ValueError, match="Out of range float"):
        StoredCases([entry(scores={"f1": float("nan")})])


def test_cases_of_one_place_in_several_suites_are_in_the_order_of_their_node_ids():
    first, second = (entry(nodeid=f"{suite}.queryeval.yaml::a") for suite in "ab")

    assert [*in_report_order([second, first])] == [*in_report_order([first, second])] == [first, second]
