"""Reports read back: what is read, every format can show; what is refused, is refused in one line."""

import io
import json
import os
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_maker import make_case, make_compared
from report_parts import command, merge, part, refusal, report_of
from samples import FINGERPRINT, entry
from samples import make_case as make_suite_case
from trees import trees
from yaml_tables import read_tables

from pytest_queryeval import evaluate
from pytest_queryeval.cli import main
from pytest_queryeval.core import report as report_types
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.core.report import SpiderLevel

# The report of all parts has cases of JSON, and is written in all formats.
pytestmark = [
    pytest.mark.feature("ci", "excel", "history", "json", "page", "report_files", "sdmx"),
    pytest.mark.usefixtures("working_folder"),
]

TEXTS, VALUES = read_tables("damaged_reports.yaml")
MISSING = object()
PUT = (MISSING, None, True, "x", -1, 0.5, 10**190, -1e300, [], ["x"], [[]], {}, {"x": "y"}, {"a": {"b": {"c": 1}}})
# What stands right below these is called as one likes: one name of each is enough.
NAMED = frozenset(("metrics", "measures", "dimensions", "spider_table", "scores", "thresholds", "groups", *GROUPS))
COMPONENTS = [
    name for name in SpiderLevel.__annotations__ if name not in ("count", "execution_accuracy", "exact_match")
]
SPIDER = {"hardness": "easy", "exact": True, "components": {name: [1, 1, 1] for name in COMPONENTS}}
GATE = {"type": "limits", "folder": "suite", "metric": "pass_rate", "where": {}, "min": 0.5, "max": None}
METRIC = {"better": "higher", "ci95": None, "n": 1, "std": None, "missed": 0}
METRIC |= dict.fromkeys(("mean", "min", "median", "max"), 1.0) | {"mean_with_errors": None, "n_with_errors": None}


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


@pytest.fixture(scope="module")
def full():
    """A report with gates of every kind, a baseline, dimensions, trials, measures and Spider's table."""
    before, after = full_cases(), full_cases()
    after[0]["scores"] |= {"execution_accuracy": 0.0}
    after[0]["outcome"] = "failed"
    open_gate = GATE | {"min": None}
    gates = [
        GATE,
        open_gate
        | {"type": "no_regression", "metric": "execution_accuracy", "better": "higher"}
        | {"no_regression": {"alpha": 0.05, "max_drop": 0.0}},
        open_gate | {"type": "max_regressions", "max_regressions": 0},
        GATE | {"folder": "elsewhere", "cases": 1, "where": {"kind": "sql"}},
    ]
    report = merge(part(*after, gates=gates), baseline=part(*before)).report
    report["environment"]["parts"] = [{"python": "3.11"}]
    return report


def places(value, path=()):
    """The place of every value within a value, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*path, name)
        yield from places(item, (*path, name))


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


def problem(report):
    """What is said of a report, given as values or as text, when it is rendered."""
    Path("report.json").write_text(report if isinstance(report, str) else json.dumps(report), encoding="utf-8")
    return refusal("render", "report.json", "-o", "out.md").partition("report.json: ")[2]


def rendered(report, *suffixes):
    """The status of rendering a report in these formats."""
    Path("report.json").write_text(json.dumps(report), encoding="utf-8")
    return command("render", "report.json", *(word for suffix in suffixes for word in ("-o", f"out.{suffix}"))).status


def test_the_report_that_is_changed_has_every_part_and_is_read_as_it_is(full):
    assert {"dimensions", "trials", "measures", "spider_table", "baseline"} <= full.keys()
    assert [gate["ok"] for gate in full["gates"]].count(None) == 2
    assert any("detectable" in gate for gate in full["gates"])
    assert rendered(full, "json", "html", "xlsx") == 0
    assert json.loads(Path("out.json").read_bytes()) == full


@pytest.mark.long
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 6))])
def test_what_is_read_can_be_shown_and_all_else_is_refused_in_one_line(full, part):
    """Put one of three values at each place: half of the places of the first part in each run, all if there is time."""
    known = list({shape(path): path for path in reversed(list(places(full)))}.values())
    assert len(known) > 300
    read, chance = 0, random.Random(5)
    for number, place in list(enumerate(known))[part % 2 :: 2]:
        value = (MISSING, *chance.sample(PUT[1:], 2))[(number + part // 2) % 3]
        Path("report.json").write_text(json.dumps(changed(full, place, value)), encoding="utf-8")
        formats = "md", "csv", *(("xlsx",) if number % 20 == 0 else ())
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as errors:
            try:
                status = main(["render", "report.json", *(word for name in formats for word in ("-o", f"out.{name}"))])
            except SystemExit as stop:
                status = stop.code
        assert status == 0 or errors.getvalue().count("\n") == 1, (place, value)
        assert status in (0, 2), (place, value)
        read += status == 0
    assert read > 15


@pytest.mark.parametrize(("text", "said"), TEXTS, ids=lambda text: ascii(text)[:50])
def test_a_text_that_is_no_report_is_refused(text, said):
    assert problem(text).startswith(said)


@pytest.fixture(scope="module")
def small_report():
    case = entry(prediction={"source": "p", "seconds": 1.0, "metadata": {}})
    return report_of(case, gates=[GATE]) | {"metrics": {"m": METRIC}}


@pytest.mark.parametrize("row", VALUES, ids=lambda row: f"{row[0]}={row[1]}"[:60])
def test_a_value_of_another_type_is_refused_with_its_place(small_report, row):
    place, value, said = row
    path = tuple(int(step) if step.isdigit() else step for step in place.split("."))
    value = MISSING if value == "MISSING" else value

    assert problem(changed(small_report, path, value)).startswith(f"is not a report: {said}")


@pytest.mark.parametrize(
    ("scores", "changes", "said"),
    [
        ({"execution_accuracy": 99.0}, {}, "scores: execution_accuracy: 99 is outside its range, 0 to 1"),
        ({"execution_accuracy": -1.0}, {}, "scores: execution_accuracy: -1 is outside its range, 0 to 1"),
        ({"f1": 0.0}, {}, "the outcome is 'passed', and the scores do not meet the thresholds of the case"),
        ({}, {}, "the outcome is 'passed', and the scores do not meet"),
        ({"f1": 0.0}, {"outcome": "xpassed"}, "the outcome is 'xpassed', and the scores do not meet"),
        ({"f1": 0.0}, {"outcome": "failed"}, ""),
        ({"f1": 0.5}, {}, ""),
        ({"f1": 0.0}, {"fingerprint": FINGERPRINT | {"thresholds": {}}}, ""),
        ({"f1": 0.0}, {"review": {"decision": "wrong", "reviewers": [], "notes": []}}, ""),
        ({"f1": 1.0}, {"error": "invalid"}, "the outcome is 'passed', and the scores do not meet"),
        ({"f1": 0.5}, {"trials": [1.0, 0.0]}, ""),  # by the mean
        ({"f1": 0.5}, {"trials": [1.0, 0.0], "rule": "any"}, ""),
        ({"f1": 0.5}, {"trials": [0.0, 0.0], "rule": "any"}, "the outcome is 'passed', and the scores do not meet"),
        ({"f1": 0.5}, {"trials": [1.0, 0.0], "rule": "all"}, "the outcome is 'passed', and the scores do not meet"),
        ({"f1": 0.5}, {"trials": [1.0, 0.0], "rule": 0.5}, ""),
        ({"f1": 0.5}, {"trials": [7.0], "metric": "soft_f1"}, "scores: soft_f1: 7 is outside its range, 0 to 1"),
    ],
)
def test_an_outcome_that_its_scores_contradict_is_refused_in_a_report_of_this_version(scores, changes, said):
    changes = dict(changes)
    predicted = {"query": "q", "columns": None, "row_count": None, "sample": [], "seconds": 1.0, "error": None}
    trial = {"passed": True, "violations": [], "predicted": {"query": "q", "error": None, "seconds": 1.0}}
    trial |= {"prediction": {"source": "p", "seconds": 1.0, "metadata": {}}}
    metric, rule = changes.pop("metric", "f1"), changes.pop("rule", "mean")
    if error := changes.pop("error", None):
        changes["predicted"] = predicted | {"error": {"kind": error, "message": "no"}}
    changes["trials"] = [trial | {"scores": {metric: score}} for score in changes.get("trials", ())]
    case = entry(**{"scores": scores, "fingerprint": FINGERPRINT | {"trials_rule": rule}} | changes)
    current = evaluate([make_suite_case()])["environment"]

    report = part(case, environment=current)

    if said:
        assert problem(report).startswith(f"is not a report: cases[0]: {said}")
    else:
        assert rendered(report, "md") == 0
    if "outcome" in said:  # reports of other versions may have other rules
        assert rendered(report | {"environment": {}}, "md") == 0


def nested(levels):
    return [] if levels == 0 else [nested(levels - 1)]


@pytest.mark.parametrize("place", [("cases", 0, "details", "x"), ("environment", "x"), ("x",)])
def test_what_is_nested_too_deeply_is_refused(full, place):
    # The value stands within the objects that its place names, and the report itself.
    assert rendered(changed(full, place, nested(100 - 2 * len(place))), "md") == 0
    assert problem(changed(full, place, nested(100))) == "is not a report: nested too deeply"
    assert problem("[" * 100_000) == "is not a report: nested too deeply"


def test_a_number_that_python_does_not_read_or_no_cell_can_hold_is_refused(full):
    text = json.dumps(full | {"schema": "LONG"}, indent=1).replace('"LONG"', "9" * 100_000)

    said = "a number of 100,000 digits is too large: write a smaller one, or a text in double quotes (line 2)"
    assert problem(text) == f"is not a report: {said}"
    wide = changed(full, ("cases", 0, "gold", "row_count"), int("9" * 400))
    assert problem(wide) == "is not a report: a whole number is too large"


def test_a_file_that_needs_more_memory_than_there_is_or_is_too_large_is_refused(full, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("pytest_queryeval.results.report_file.StrictJson.read", fail)
        assert problem(full) == "cannot be read: there is not enough memory"
    monkeypatch.setattr("pytest_queryeval.results.report_file.MAX_BYTES", 2**20)
    assert problem(" " * 2**20 + "{}") == "is not a report: larger than 1 MiB"


@pytest.mark.parametrize(
    "call",
    [["compare", "good.json", "BAD"], ["render", "BAD", "-o", "out.md"], ["merge", "good.json", "--baseline", "BAD"]],
    ids=" ".join,
)
def test_each_command_names_what_is_no_report_in_one_line_that_is_no_command(call):
    Path("good.json").write_text(json.dumps(part(entry())))
    Path("binary.json").write_bytes(b"\xff\x00\xfe")
    Path("::error::x.json").write_text("no JSON")
    Path("\x1b[31m\n::error::x.json").write_text("no JSON")
    Path("folder").mkdir()
    os.mkfifo("pipe.json")

    for name, said in {
        "missing.json": "no such file: ",
        "folder": "is a folder: name the report in it",
        "binary.json": "is not a report: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        "pipe.json": "is not a report: it is a pipe: write it to a file, and name that",
        "::error::x.json": "is not a report: not JSON: ",
        "\x1b[31m\n::error::x.json": "is not a report: not JSON: ",
    }.items():
        line = refusal(*(word.replace("BAD", name) for word in call))
        assert said in line
        assert not line.startswith("::")
        assert "\x1b" not in line
    assert not list(Path().glob("out.*"))


def test_a_table_that_would_leave_its_fence_in_markdown_is_refused(full):
    fence = changed(full, ("spider_table", "all", "count"), "1\n```\n</details>\n# Passed @octocat")
    added = changed(full, ("spider_table", "# Passed"), full["spider_table"]["all"])

    assert problem(fence) == "is not a report: spider_table.all.count: expected a whole number"
    assert problem(added) == "is not a report: spider_table: expected one of easy, medium, hard, extra, all"


@pytest.mark.parametrize("name", ["dimensions", "trials", "spider_table", "baseline"])
def test_what_not_every_run_has_need_not_be_there(full, name):
    assert rendered(changed(full, (name,), MISSING), "md", "csv", "json") == 0


def test_a_metric_that_no_case_has_a_score_of_can_be_drawn(full):
    assert rendered(full | {"metrics": full["metrics"] | {"gone": full["metrics"]["valid_query"]}}, "html") == 0


@pytest.mark.parametrize("value", [10**190, "\ud800", [1.0, {"\ud800": None}]], ids=ascii)
def test_what_is_any_json_has_no_limits(value):
    assert rendered(part(entry(details={"x": value})), "json") == 0


@given(st.data())
def test_whatever_stands_in_a_report_it_is_merged_or_refused(small_report, data):
    path = data.draw(st.sampled_from(list(places(small_report))))
    Path("part.json").write_text(json.dumps(changed(small_report, path, data.draw(trees))))

    try:
        status = main(["merge", "part.json", "-o", "all.json", "-o", "all.md"])
    except SystemExit as stop:
        status = stop.code

    assert status in (0, 1, 2, 5)


# The schema of reports


@pytest.fixture(scope="module")
def schema():
    return command("schema", "report").data


def test_reports_keep_the_schema_of_the_package(schema):
    stored = Path(report_types.__file__).parents[1] / "report.schema.json"
    validator = jsonschema.Draft202012Validator(schema)

    assert schema == json.loads(stored.read_bytes()), "write it again: make schemas"
    validator.check_schema(schema)
    assert not [*validator.iter_errors(make_compared(40))]
    assert not [*validator.iter_errors(make_compared(40) | {"cases": [entry()]})]
