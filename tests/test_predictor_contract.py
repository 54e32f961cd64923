"""What holds for every sort of predictor: what the system says is in the report, and a fault is that of its case."""

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from predictor_sorts import (
    CALLING_SORTS,
    FEATURES,
    FILE_SORTS,
    FUNCTION_SORTS,
    PROGRAM_SORTS,
    open_door,
    report_of,
    write_predictions,
    write_suite,
    write_system,
)
from yaml_tables import read_table

from pytest_queryeval.core.errors import PredictorError, SettingError
from pytest_queryeval.core.model import PredictorSpec
from pytest_queryeval.predictors import PREDICTORS

pytestmark = pytest.mark.process

SECRET = "swordfish-77-of-the-system"
STEPS = [
    {"kind": "query", "name": "run_sql", "input": "SELECT agee", "error": "no such column: agee", "seconds": 0.5},
    {"kind": "tool", "name": "look_up", "input": {"word": "age"}, "output": [{"column": "age"}, {"column": "name"}]},
    {"kind": "message", "name": "assistant", "output": "It is `age`.\nSo:", "metadata": {"tokens": 3}},
]
TABLE = {"columns": ["column"], "rows": [["age"], ["name"]], "row_count": 2}
KEPT_STEPS = [STEPS[0], {**STEPS[1], "output": TABLE}, STEPS[2]]
# What the system says, and how the case ends.
SAID = {
    "right": ({"predicted": "SELECT 1"}, "passed"),
    "wrong": ({"predicted": "SELECT 2"}, "failed"),
    "invalid": ({"predicted": "SELECT FROM"}, "failed"),
    "empty": ({"predicted": ""}, "failed"),
    "odd": ({"predicted": "SELECT 1 -- é 雪 \U0001f3b5 \u202e 'x' \"y\" \\ {id}"}, "passed"),
    "controls": ({"predicted": "SELECT '\x1b[31m'\n--\tred\n"}, "failed"),
    "long": ({"predicted": "SELECT 1 --" + "é" * 15_000}, "passed"),
    "abstains": ({"abstained": True, "reason": "no table\nhas that", "tokens": 3}, "failed"),
    "usage": ({"predicted": "SELECT 1", "tokens": 7, "cost": 0.25}, "passed"),
    "nested": ({"predicted": "SELECT 1", "model": {"name": "m", "calls": [1, 2]}}, "passed"),
    "seconds": ({"predicted": "SELECT 1", "seconds": 2.5}, "passed"),
    "steps": ({"predicted": "SELECT 1", "steps": STEPS}, "passed"),
    "no-steps": ({"predicted": "SELECT 1", "steps": []}, "passed"),
}
# What the system says that is no prediction.
FAULTS = {
    "null": {"predicted": None},
    "list": {"predicted": ["SELECT 1"]},
    "object": {"predicted": {"sql": "SELECT 1"}},
    "bad-steps": {"predicted": "SELECT 1", "steps": [{"kind": "sql"}]},
    "bad-seconds": {"predicted": "SELECT 1", "seconds": -1},
    "garbage": {"garbage": True},
    "both": {"predicted": "SELECT 1", "abstained": True},
}
SAID_ONLY = {"raises", "garbage"}  # what no file says
NO_CELL = {"nested", "null", "list", "object", "controls"}
# What a sort cannot say: a function has a `Prediction`, a service states no seconds, and a cell is a number or a text.
UNSAID = {
    **{sort: {"both"} for sort in FUNCTION_SORTS},
    "service": {"seconds", "bad-seconds"},
    **{sort: {*SAID_ONLY} for sort in FILE_SORTS},
    **{sort: {*SAID_ONLY, *NO_CELL} for sort in FILE_SORTS[2:]},
    "replay": {"both", "huge"},
    "inline": {*SAID_ONLY, "abstains", "usage", "nested", "seconds", "steps", "no-steps", *FAULTS},
}
SORTS = (*CALLING_SORTS, "replay", *FILE_SORTS, "inline")
VIEW = {
    "question": "Which one?",
    "evidence": "Count.",
    "tags": ["x", "y"],
    "difficulty": "hard",
    "metadata": {"top": 5},
}
GOLD = "SELECT 1 /* the gold query */"
ORDINARY = {"question": "How many?", "gold": GOLD, "metadata": {"top": 5}}
CASES = [
    *(
        {"id": name, **ORDINARY}
        for name in (*SAID, "trials", *FAULTS, "raises", "huge", "meets-1", "meets-2", "meets-3")
    ),
    {"id": "sees", **ORDINARY, **VIEW},
    {"id": "unasked", "gold": GOLD},
]
VALUES = {"value": {"a": [1, "é"]}, "value-as-text": '{"a": [1, "é"]}', "number": 7}
VALUE_CASES = [{"id": name, **ORDINARY, "gold": 7 if name == "number" else VALUES["value"]} for name in VALUES]
OF_VALUES = {"kind": "json", "source": None, "name": "v.queryeval.yaml"}
FOR_TRIALS = {"trials": {"trials": 3}, "sees": {"trials": 2}}


def sort_params(sorts):
    return [
        pytest.param(sort, marks=[pytest.mark.feature(FEATURES[sort])] if sort in FEATURES else []) for sort in sorts
    ]


def sort_and(ids, sorts=SORTS):
    """Pairs of a sort and what it can say."""
    return [
        pytest.param(sort.values[0], name, marks=sort.marks, id=f"{sort.values[0]}-{name}")
        for sort in sort_params(sorts)
        for name in ids
        if name not in UNSAID.get(sort.values[0], ())
    ]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A function that returns the cases by id, and the folder, of a sort; each is evaluated once."""
    known = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL_API_KEY", SECRET)

        def evaluated(sort):
            if sort not in known:
                folder = tmp_path_factory.mktemp(sort.replace(".", "-"))
                known[sort] = {case["id"]: case for case in RUNS.get(sort, run_calls)(sort, folder)["cases"]}, folder
            return known[sort]

        yield evaluated


def said_by_all():
    values = {name: {"predicted": value} for name, value in VALUES.items()}
    return {name: said for name, (said, _) in SAID.items()} | FAULTS | values


def run_calls(sort, folder, *options):
    write_system(folder, said_by_all())
    cases = [case | FOR_TRIALS.get(case["id"], {}) for case in CASES if case["id"] not in UNSAID.get(sort, ())]
    if sort in ("function", "hook"):  # one call at a time
        cases = [case for case in cases if not case["id"].startswith("meets")]
    with open_door(sort, folder) as predictor:
        write_suite(folder, predictor, cases)
        late = [{"id": "late", **ORDINARY}]
        write_suite(folder, {**predictor, "timeout": 0.5}, late, name="z.queryeval.yaml")
        write_suite(folder, predictor, VALUE_CASES, **OF_VALUES)
        try:
            return report_of(folder, *options, hook=sort == "hook")
        finally:
            (folder / "over").touch()


def run_replay(sort, folder):
    """Record the calls of a function, and replay them when it is gone."""
    run_calls("async function", folder, f"--record={folder / 'rec'}")
    calls = (folder / "calls.txt").read_text()
    (folder / "functions.py").write_text("raise SystemError('the system is gone')")
    report = report_of(folder, f"--replay={folder / 'rec'}")
    assert (folder / "calls.txt").read_text() == calls
    return report


def run_file(sort, folder):
    """Read what can be read at all from one file; a fault is that of a whole file, in a suite of its own."""
    said = {name: entry for name, entry in said_by_all().items() if name not in UNSAID[sort]}
    rows = [{"id": name, **entry} for name, entry in said.items() if name in SAID]
    rows += [{"id": "trials", "trial": trial, "predicted": f"SELECT {trial}"} for trial in (2, 1, 3)]
    write_system(folder, {})
    write_predictions(folder / sort, rows)
    write_suite(folder, sort, [{"id": row["id"], "gold": GOLD} for row in rows[:-3]])  # they need no question
    write_suite(folder, sort, [{"id": "trials", **ORDINARY, "trials": 3}], name="trials.queryeval.yaml")
    for name in said.keys() & FAULTS.keys():
        write_predictions(folder / f"{name}{sort}", [{"id": name, **said[name]}])
        write_suite(folder, f"{name}{sort}", [{"id": name, **ORDINARY}], name=f"{name}.queryeval.yaml")
    if sort in FILE_SORTS[:2]:
        write_predictions(folder / f"values{sort}", [{"id": name, **said[name]} for name in VALUES])
        write_suite(folder, f"values{sort}", VALUE_CASES, **OF_VALUES)
    return report_of(folder)


def run_inline(sort, folder):
    write_system(folder, {})
    ids = [name for name in SAID if name not in UNSAID[sort]]
    write_suite(folder, "inline", [{"id": name, "gold": GOLD, **SAID[name][0]} for name in ids])
    return report_of(folder)


RUNS = {"replay": run_replay, **dict.fromkeys(FILE_SORTS, run_file), "inline": run_inline}


@pytest.mark.feature("evaluate", "recording")
@pytest.mark.parametrize(("sort", "name"), sort_and(SAID))
def test_what_a_system_says_is_in_the_report(reports, sort, name):
    said, outcome = SAID[name]

    case = reports(sort)[0][name]

    prediction = case["prediction"]
    assert case["outcome"] == outcome, case["message"]
    assert case["predicted"]["query"] == said.get("predicted")
    assert prediction.get("abstained", False) == ("abstained" in said)
    assert prediction.get("steps") == (KEPT_STEPS if name == "steps" else said.get("steps"))
    read = ("predicted", "abstained", "reason", "steps", "seconds")
    assert prediction["metadata"] == {key: value for key, value in said.items() if key not in read}
    assert prediction["seconds"] == said["seconds"] if "seconds" in said else prediction["seconds"] < 60
    assert prediction.get("recorded", False) == (sort == "replay")
    if "abstained" in said:
        assert said["reason"].splitlines()[0] in case["message"]


@pytest.mark.feature("evaluate", "json", "recording")
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("sort", sort_params([*CALLING_SORTS, *FILE_SORTS[:2], "replay"]))
def test_a_value_is_an_answer_where_answers_are_values(reports, sort, name):
    case = reports(sort)[0][name]

    assert case["outcome"] == "passed", case["message"]
    value = VALUES[name]
    assert case["predicted"]["query"] == (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def check_fault(case):
    assert case["outcome"] == "error"
    assert case["predicted"] is None
    assert len(case["message"]) < 2_000
    assert SECRET[:12] not in str(case)
    assert all(line.isprintable() for line in case["message"].splitlines())


@pytest.mark.feature("evaluate", "recording")
@pytest.mark.parametrize(("sort", "name"), sort_and((*FAULTS, "raises")))
def test_what_is_no_prediction_is_an_error_of_its_case_that_says_why(reports, sort, name):
    case = reports(sort)[0][name]

    check_fault(case)
    words = {
        "null": "null|None",
        "list": "list|not text|brackets",
        "object": "dict|not text|key",
        "bad-steps": r"steps\[0\]|a step's `kind` is 'sql'",
        "bad-seconds": "seconds",
        "both": "`abstained`",
        "raises": r"\[redacted\]",
    }
    assert re.search("no recorded prediction for" if sort == "replay" else words.get(name, ""), case["message"])


@pytest.mark.feature("evaluate", "recording")
@pytest.mark.parametrize("sort", sort_params([*CALLING_SORTS, *FILE_SORTS, "replay"]))
def test_each_trial_is_a_call_of_its_own(reports, sort):
    case = reports(sort)[0]["trials"]

    queries = [trial["predicted"]["query"] for trial in case["trials"]]
    in_order = queries if sort not in ("function in threads", "async function", "replay") else sorted(queries)
    assert in_order == ["SELECT 1", "SELECT 2", "SELECT 3"]
    assert case["scores"]["pass_at_k"] == 1.0


@pytest.mark.feature("evaluate", "recording")
@pytest.mark.parametrize("sort", sort_params([*CALLING_SORTS, "replay"]))
def test_a_system_sees_all_that_belongs_to_the_question_each_time_and_no_gold(reports, sort):
    case = reports(sort)[0]["sees"]

    schema = "CREATE TABLE product (id INTEGER);"
    seen = {"id": "sees", "kind": "sql", "dialect": "sqlite", "source": "shop.sql", "schema": schema, **VIEW}
    seen["conversation"] = [{"role": "user", "content": VIEW["question"]}] if sort == "service" else []
    assert case["outcome"] == "failed", case["message"]
    assert [json.loads(trial["predicted"]["query"]) for trial in case["trials"]] == [seen, seen]
    assert "the gold query" not in json.dumps(case["trials"])


@pytest.mark.parametrize("sort", sort_params(CALLING_SORTS))
def test_a_case_without_a_question_is_an_error_and_its_system_is_not_asked(reports, sort):
    cases, folder = reports(sort)

    assert cases["unasked"]["outcome"] == "error"
    assert cases["unasked"]["message"].startswith("case 'unasked' has no question: add `question`")
    assert "unasked" not in (folder / "calls.txt").read_text()


@pytest.mark.parametrize("sort", sort_params(CALLING_SORTS))
def test_each_case_is_asked_once_and_as_many_at_once_as_is_set(reports, sort):
    cases, folder = reports(sort)

    lines = [line.split() for line in (folder / "calls.txt").read_text().splitlines()]
    begun = Counter(name for sign, name, _ in lines if sign == "+" and name != "late")
    assert begun == {**dict.fromkeys(cases.keys() - {"unasked", "late"}, 1), "trials": 3, "sees": 2}
    under_way = most = 0
    for sign, name, _ in lines:
        under_way += 0 if name == "late" else 1 if sign == "+" else -1
        most = max(most, under_way)
    assert most == (1 if sort in ("function", "hook") else 3)


@pytest.mark.parametrize("sort", sort_params(CALLING_SORTS))
def test_a_call_has_a_limit_on_its_time(reports, sort):
    case = reports(sort)[0]["late"]

    assert case["outcome"] == "error"
    assert case["message"].startswith("no answer within 0.5 s: raise the predictor's `timeout`, or make it faster")


@pytest.mark.parametrize("sort", sort_params(CALLING_SORTS))
def test_a_huge_answer_is_an_error_or_a_failed_query_in_a_few_words(reports, sort):
    case = reports(sort)[0]["huge"]

    assert case["outcome"] == ("error" if sort in (*PROGRAM_SORTS, "service") else "failed")
    assert re.search("16 MiB|16,777,216 bytes|characters", case["message"])
    assert len(json.dumps(case)) < 100_000


@pytest.mark.parametrize("sort", sort_params(PROGRAM_SORTS))
def test_no_process_outlives_its_run(reports, sort):
    folder = reports(sort)[1]

    for pid in {int(line.split()[2]) for line in (folder / "calls.txt").read_text().splitlines()}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.feature("evaluate")
@pytest.mark.parametrize("sort", sort_params([sort for sort in CALLING_SORTS if sort != "hook"]))
def test_ctrl_c_ends_a_call_that_hangs_and_keeps_what_was_done(sort, tmp_path, register, capsys):
    is_scored = threading.Event()
    folder = tmp_path / sort.replace(" ", "-")
    folder.mkdir()
    write_system(folder, {})
    register("seen", lambda gold, predicted: is_scored.set())
    before = set(threading.enumerate())

    def interrupt():
        is_scored.wait(60)
        while "+ late" not in (folder / "calls.txt").read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with open_door(sort, folder) as predictor:
        cases = [{"id": "first", **ORDINARY}, {"id": "second", **ORDINARY, "metrics": ["seen"]}]
        write_suite(folder, predictor, [*cases, {"id": "late", **ORDINARY}], thresholds={})
        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        report = report_of(folder, "--quiet")
        interrupter.join()
        (folder / "over").touch()

    assert (report["stopped"], report["interrupted"], report["cases"][0]["id"]) == (True, True, "first")
    assert "queryeval: INTERRUPTED: " in capsys.readouterr().out
    assert "late" not in [case["id"] for case in report["cases"]]
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) <= before
    last = [line.split()[2] for line in (folder / "calls.txt").read_text().splitlines()][-1]
    assert int(last) == os.getpid() or not Path("/proc", last).exists()


SETTINGS = read_table("predictor_settings.yaml")


@pytest.mark.parametrize(
    ("sort", "settings", "setting", "message"),
    [
        pytest.param(
            sort, *row, marks=[pytest.mark.feature(f"{sort}_predictor")] if sort in ("command", "http") else []
        )
        for sort, rows in SETTINGS.items()
        for row in rows
    ],
)
def test_a_setting_that_cannot_be_right_is_named_before_and_when_it_is_opened(sort, settings, setting, message):
    predictor = PREDICTORS[sort]
    settings = predictor.read_text(settings) if isinstance(settings, str) else settings

    with pytest.raises(SettingError) as checked:
        predictor.check(settings)
    assert checked.value.setting == setting
    assert str(checked.value).startswith(message)
    with pytest.raises(PredictorError):
        predictor.opener(PredictorSpec(kind=sort, settings=settings, folder=Path()))
