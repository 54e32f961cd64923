"""What read_report takes, every format can show; what it refuses, it refuses in one line."""

import json
import random
import sys

import pytest
from report_maker import evaluate_gate, make_case, make_gate, report_of
from samples import answer
from samples import make_case as make_suite_case

from pytest_queryeval import evaluate
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.languages.sql.match import COMPONENTS
from pytest_queryeval.reports import REPORTS
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.results.gates import gate_text
from pytest_queryeval.results.report_file import MAX_LEVELS, read_report
from pytest_queryeval.results.report_schema import problem_in

# The report of all parts has cases of JSON, and is written in all formats.
pytestmark = pytest.mark.feature("ci", "excel", "json", "page", "sdmx")

MISSING = object()
PUT = (MISSING, None, True, "x", -1, 0.5, 10**190, -1e300, [], ["x"], [[]], {}, {"x": "y"}, {"a": {"b": {"c": 1}}})
# What stands right below these is called as one likes: one name of each is enough.
NAMED = frozenset(("metrics", "measures", "dimensions", "spider_table", "scores", "thresholds", "groups", *GROUPS))
SPIDER = {"hardness": "easy", "exact": True, "components": {name: [1, 1, 1] for name in COMPONENTS}}


def full_cases():
    """Cases that give a report every part that it can have."""
    chance = random.Random(3)
    cases = [make_case(number, chance) for number in range(12)]
    for case in cases:
        case["tags"] = ["a"] if case["line"] % 2 else ["a", "b"]
        if case["prediction"]:
            case["prediction"]["metadata"] = {"tokens": 7, "llm_time": 0.5}
        if case["kind"] == "sdmx" and case["scores"]:
            case["details"]["dimensions"] = {"PERIOD": {"precision": 1.0, "recall": 0.5}}
        if case["kind"] == "sql" and case["scores"]:
            case["details"]["spider"] = SPIDER
            case["scores"]["exact_set_match_spider"] = 1.0
            trial = {"passed": True, "scores": {"m": 1.0}, "violations": [], "prediction": case["prediction"]}
            case["trials"] = [trial | {"predicted": {"query": "q", "error": None, "seconds": 0.5}}] * 2
    return cases


def full_report():
    """A report with gates of every kind, a baseline, dimensions, trials, measures and Spider's table."""
    before, after = full_cases(), full_cases()
    after[0]["scores"] |= {"execution_accuracy": 0.0}
    after[0]["outcome"] = "failed"
    earlier, run = report_of(before), report_of(after)
    rules = {"no_regression": {"alpha": 0.05, "max_drop": 0.0}}
    gates = [
        make_gate(),
        make_gate(type="no_regression", min=None, metric="execution_accuracy", better="higher", **rules),
        make_gate(type="max_regressions", min=None, max_regressions=0),
        make_gate(folder="elsewhere", cases=1, where={"kind": "sql"}),
    ]
    defaults = {
        name: run[name]
        for name in ("name", "created", "environment", "predictor", "requested_paths", "collected", "unreadable_files")
    }
    defaults |= {
        "selected": False,
        "stopped": False,
        "interrupted": False,
        "baseline": compare_reports(earlier, run, path="main.json"),
    }
    defaults["environment"] = defaults["environment"] | {"parts": [{"python": "3.11"}]}
    return aggregate(after, gates=[evaluate_gate(gate, after, baseline=earlier) for gate in gates], about=defaults)


def paths(value, path=()):
    """The place of every value within a value, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*path, name)
        yield from paths(item, (*path, name))


def shape(path):
    """The same for places that are checked alike."""
    before = (None, *path)
    return tuple("*" if isinstance(name, int) or before[n] in NAMED else name for n, name in enumerate(path))


def changed(report, path, value):
    """The report with another value at a place; all else is shared with the report."""
    name, *inner = path
    copy = report.copy()
    if inner:
        copy[name] = changed(copy[name], inner, value)
    elif value is MISSING:
        del copy[name]
    else:
        copy[name] = value
    return copy


@pytest.fixture(scope="module")
def full():
    return full_report()


@pytest.fixture
def read(tmp_path):
    """A function that reads a report which it writes before, given as values or as text."""

    def read_again(report):
        path = tmp_path / "report.json"
        path.write_text(report if isinstance(report, str) else json.dumps(report), encoding="utf-8")
        return read_report(path)

    return read_again


def refusal(read, report):
    with pytest.raises(ReportError) as caught:
        read(report)
    text = str(caught.value)
    assert "\n" not in text
    return text.partition("report.json: ")[2]


def test_the_report_that_is_changed_has_every_part(full, read):
    assert {"dimensions", "trials", "measures", "spider_table", "baseline"} <= full.keys()
    assert [gate["ok"] for gate in full["gates"]].count(None) == 2
    assert "detectable" in full["gates"][1]
    assert read(full) == full


@pytest.mark.long
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2))])
def test_what_is_read_can_be_shown_and_all_else_is_refused_in_one_line(full, read, part):
    """Put one of three values at each place: those of the first part in each run, the others where there is time."""
    places = list({shape(path): path for path in reversed(list(paths(full)))}.values())
    assert len(places) > 300
    taken, chance = 0, random.Random(5)
    for number, place in enumerate(places):
        value = (MISSING, *chance.sample(PUT[1:], 2))[(number + part) % 3]
        try:
            report = read(changed(full, place, value))
        except ReportError as error:
            assert "\n" not in str(error)  # noqa: PT017 - the other outcome is as good
            continue
        taken += 1
        formats = (
            "md",
            "csv",
            "json",
            *(("xlsx",) if taken % 10 == 0 else ()),
            *(("html",) if taken % 70 == 0 else ()),
        )
        for name in formats:
            assert REPORTS[name].render(report), (place, value)
    assert taken > 30


def test_a_table_that_would_leave_its_fence_in_markdown_is_refused(full, read):
    taken = changed(full, ("spider_table", "all", "count"), "1\n```\n</details>\n# Passed @octocat")

    added = changed(full, ("spider_table", "# Passed"), full["spider_table"]["all"])
    assert refusal(read, taken) == "is not a report: spider_table.all.count: expected a whole number"
    assert refusal(read, added) == "is not a report: spider_table: expected one of easy, medium, hard, extra, all"


@pytest.mark.parametrize("schema", [True, 1, 2.0, "2", None, [2]])
def test_a_schema_is_a_whole_number(full, read, schema):
    assert refusal(read, full | {"schema": schema}).startswith("has schema ")


@pytest.mark.parametrize("place", [(), ("cases", 0), ("cases", 0, "scores")])
def test_a_key_that_stands_twice_is_refused(full, read, place):
    doubled = json.dumps(changed(full, (*place, "first"), 1)).replace('"first": 1', '"first": 1, "first": 2')

    assert refusal(read, doubled) == "is not a report: duplicate key 'first'"


def test_a_number_that_python_does_not_read_is_refused_with_its_line(full, read):
    text = json.dumps(full | {"schema": "LONG"}, indent=1).replace('"LONG"', "9" * 100_000)

    assert refusal(read, text) == "is not a report: a number of 100,000 digits is too large (line 2)"


def nested(levels):
    return [] if levels == 0 else [nested(levels - 1)]


@pytest.mark.parametrize("place", [("cases", 0, "details", "x"), ("environment", "x"), ("x",)])
def test_what_is_nested_too_deep_is_refused(full, read, place):
    # The value stands within the objects that its place names, and the report itself.
    assert read(changed(full, place, nested(MAX_LEVELS - 2 * len(place))))
    assert refusal(read, changed(full, place, nested(MAX_LEVELS))) == "is not a report: nested too deeply"
    assert refusal(read, changed(full, place, nested(500))) == "is not a report: nested too deeply"


def test_a_whole_number_that_no_cell_can_hold_is_refused(full, read):
    number = int("9" * 400)

    taken = changed(full, ("cases", 0, "gold", "row_count"), number)

    assert refusal(read, taken) == "is not a report: a whole number is too large"


def test_a_file_that_takes_more_memory_than_there_is_is_refused(full, read, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("pytest_queryeval.results.report_file.StrictJson.read", fail)

    assert refusal(read, full) == "cannot be read: there is not enough memory"


def test_a_metric_that_no_case_has_a_score_of_can_be_drawn(full, read):
    report = read(full | {"metrics": full["metrics"] | {"gone": full["metrics"]["valid_query"]}})

    assert b"gone" in REPORTS["html"].render(report)


def test_a_time_that_has_no_other_zone_is_refused(full, read):
    said = "is not a report: created: expected a time in the form of ISO 8601"
    assert refusal(read, full | {"created": "0001-01-01T00:00:00+14:00"}) == said


@pytest.mark.parametrize("name", ["dimensions", "trials", "spider_table", "baseline"])
def test_what_not_every_run_has_need_not_be_there(full, read, name):
    without = changed(full, (name,), MISSING)

    for format_name in ("md", "csv", "json"):
        assert REPORTS[format_name].render(read(without))


def test_a_report_without_pytest_is_read(read):
    report = evaluate([make_suite_case(), make_suite_case(id="b", predicted=answer((2,)))])

    assert read(json.loads(json.dumps(report)))["metrics"] == report["metrics"]


def test_no_interrupt_is_lost_while_a_report_is_checked(full):
    """A handler of a signal runs between two steps of Python code, of which a check has none that could lose it."""
    assert problem_in(full, "Report") == ""
    calls = []

    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        problem_in(full, "Report")
    finally:
        sys.setprofile(None)

    assert calls == ["problem_in"]


def test_a_report_with_a_rule_that_is_not_known_here_is_read_and_its_gate_not_evaluated_again(tmp_path):
    gate = make_gate(type="max_seconds", settings={"percentile": 95}, cases=1)
    gate_result = evaluate_gate(gate, (), mode="off") | {"value": 0.25, "n": 1, "ok": True, "reason": "", "ran": 1}
    path = tmp_path / "base.json"
    path.write_text(json.dumps(report_of([]) | {"gates": [gate_result]}), encoding="utf-8")

    [read] = read_report(path)["gates"]

    assert read == gate_result
    assert gate_text(read) == "max_seconds of pass_rate in suite: 0.250 (1 case)"
    merged = evaluate_gate(gate, [])
    assert (merged["ok"], merged["reason"]) == (None, "unknown rule 'max_seconds': install the package that defines it")
