"""A group that is registered is usable in `where`, stored in reports and shown wherever it says."""

import csv
import io

import pytest
from samples import HEAD, make_case, make_result, table
from suites import enter, problems, write

from pytest_queryeval.core import groups
from pytest_queryeval.core.gates import requirement
from pytest_queryeval.core.groups import GROUPS, Group, group_values, where_text
from pytest_queryeval.features.excel.csv import render_csv
from pytest_queryeval.features.review.explain_command import explanation_lines
from pytest_queryeval.plugin.failure import failure_lines
from pytest_queryeval.reports.html.case_list import case_columns
from pytest_queryeval.reports.sections import groups_in_tables
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.case_json import result_json
from pytest_queryeval.results.gates import CaseWithoutResult, count_cases
from pytest_queryeval.suites import load_suite

PLACE = {"nodeid": "music/s.queryeval.yaml::a", "path": "music/s.queryeval.yaml"}


@pytest.fixture
def owner(monkeypatch):
    """A group that is shown everywhere."""
    group = Group(
        values=lambda case, path: [case.metadata["owner"]] if "owner" in case.metadata else [],
        heading="owner",
        plural="owners",
        preposition="owned by",
    )
    monkeypatch.setattr(GROUPS, "_members", {**GROUPS._members, "owner": group})


def result(**metadata):
    return make_result(make_case(metadata=metadata), gold=table((1,)), predicted=table((2,)))


def report_of(*results):
    cases = [result_json(result, **PLACE | {"nodeid": str(n)}, outcome="failed") for n, result in enumerate(results)]
    return aggregate(cases, gates=(), about=HEAD)


@pytest.mark.usefixtures("owner")
def test_where_names_it_and_is_put_into_words(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    write("gates: [{metric: pass_rate, min: 1, where: {owner: ann, kind: sql}}]\n", "queryeval.yaml")
    suite = write("kind: sql\nsource: a.db\ncases: [{id: a, gold: x, predicted: y}]\n")

    [[gate]] = [folder.gates for folder in load_suite(suite, root=tmp_path).folders]

    assert gate.required["where"] == {"owner": "ann", "kind": "sql"}
    assert where_text(gate.required["where"]) == " of sql cases owned by ann"
    cases = [
        CaseWithoutResult(PLACE["path"], make_case(metadata=metadata))
        for metadata in ({"owner": "ann"}, {"owner": "b"}, {})
    ]
    assert count_cases([gate.required], [], cases) == [1]


def test_without_it_where_has_an_unknown_key(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    write("gates: [{metric: pass_rate, min: 1, where: {owner: ann}}]\n", "queryeval.yaml")

    [problem] = problems("kind: sql\nsource: a.db\ncases: [{id: a, gold: x, predicted: y}]\n")

    assert "unknown key 'owner': choose from difficulty, feature, file, kind, not, review, source, tag" in problem


@pytest.mark.usefixtures("owner")
def test_a_report_stores_counts_and_shows_it():
    report = report_of(result(owner="ann"), result(owner="bob"), result())

    assert [[*group_values(case, "owner")] for case in report["cases"]] == [["ann"], ["bob"], []]
    assert {name: member["totals"]["cases"] for name, member in report["groups"]["owner"].items()} == {
        "ann": 1,
        "bob": 1,
    }
    assert groups_in_tables() == ["difficulty", "tag", "kind", "feature", "owner"]
    rows = csv.DictReader(io.StringIO(render_csv(report).decode()))
    assert [row["owner"] for row in rows] == ["ann", "bob", ""]
    assert "  owner      ann" in explanation_lines(report["cases"][0], 80)
    assert case_columns(report)["groups"]["owner"] == {
        "plural": "owners",
        "values": ["ann", "bob"],
        "members": [[0], [1], []],
    }


@pytest.mark.usefixtures("owner")
def test_a_failure_shows_it():
    missed = result(owner="ann")
    assert "  owner      ann" in failure_lines(missed, result_json(missed, **PLACE, outcome="failed"))


def test_a_report_keeps_a_group_that_is_not_registered_where_it_is_read(owner, monkeypatch):
    report = report_of(result(owner="ann"), result(owner="bob"))
    monkeypatch.undo()

    again = aggregate(report["cases"], gates=(), about=HEAD)

    assert again["groups"].keys() == {*GROUPS.names(), "owner"}
    gate = requirement("pass_rate", minimum=0.5) | {"type": "limits", "where": {"owner": "ann"}}
    assert count_cases([gate], report["cases"], []) == [1]
    assert where_text(gate["where"]) == " of cases with owner ann"


def test_every_group_of_the_core_is_registered():
    defined = [value for value in vars(groups).values() if isinstance(value, Group)]

    assert defined
    assert all(any(GROUPS[name] is group for name in GROUPS.names()) for group in defined)
