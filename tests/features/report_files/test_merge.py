"""`queryeval merge`: parts united, gates evaluated, exit statuses, and parts that are not reports."""

import fnmatch
import json
import os
import random
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_maker import evaluate_gate
from samples import HEAD, entry
from trees import trees

from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.report_files.merge_command import merge, repeated_nodeids
from pytest_queryeval.results.aggregation import aggregate
from pytest_queryeval.results.gates import EarlyDecision
from pytest_queryeval.results.report_file import MAX_BYTES, read_report

GATE = {"type": "limits", "folder": "music", "metric": "f1", "where": {}, "min": 0.5, "max": None}
ONLY_2 = "and only schema 2 can be read: run the suites again with this version of pytest-queryeval"
TRIAL = {"passed": True, "scores": {}, "violations": [], "predicted": {"query": "q", "error": None, "seconds": 0.0}}
TRIAL |= {"prediction": {"source": "s", "seconds": 0.0, "metadata": {}}}
HERE = {"python": "3.11.9", "pytest_queryeval": "1.0", "engines": {"sqlite": "3.45"}}
THERE = HERE | {"python": "3.12.1"}


def case(id_="a", value=1.0, **changes):
    defaults = {
        "id": id_,
        "nodeid": f"music/s.queryeval.yaml::{id_}",
        "question": "",
        "scores": {"f1": value},
        **dict.fromkeys(("gold", "predicted", "difference", "prediction")),
        "trials": [],
        "message": "",
    }
    return entry(**defaults | changes)


def part(*cases, gates=(), **about):
    """A report of a shard with gates off."""
    head = HEAD | {"created": "2024-05-01T10:00:00+00:00", "environment": HERE}
    head["collected"] = dict.fromkeys(sorted({item["path"] for item in cases}), len(cases))
    evaluated = [evaluate_gate({"cases": 0} | gate, cases, mode="off") for gate in gates]
    return aggregate(cases, gates=evaluated, about=head | about)


def merged(*parts):
    return merge({f"part{number}.json": report for number, report in enumerate(parts, 1)})


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write_part(name, content):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        Path(name).write_bytes(data)
        return name

    return write_part


def refusal(capsys, *arguments):
    """What is said of a call that is refused: one line."""
    with pytest.raises(SystemExit) as stop:
        main(["merge", *arguments])
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert err.endswith("\n")
    (line,) = err.splitlines()
    return line


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=30))
def test_a_merge_is_one_run_however_the_cases_were_shared_out(shares):
    cases = [case(f"c{number}", value, line=number) for number, (_, value) in enumerate(shares)]
    total, gate = {"collected": {"music/s.queryeval.yaml": len(cases)}}, GATE | {"cases": len(cases)}
    parts = [
        part(*(item for item, (share, _) in zip(cases, shares, strict=True) if share == wanted), gates=[gate])
        | total
        | {"selected": True}
        for wanted in range(4)
    ]
    random.Random(len(shares)).shuffle(parts)
    first = part(*cases, gates=[gate]) | total

    report = merged(*parts)

    assert report == first | {"gates": [evaluate_gate(gate, cases)]}


def test_a_merge_sums_the_calls_of_all_parts():
    costs = [
        {"prediction": {"source": "p", "seconds": 1.0, "metadata": {"cost": cost}}, "predicted": None}
        for cost in (1, 2)
    ]
    gate = GATE | {"type": "sum", "metric": "metadata[cost]", "min": None, "max": 2.5, "cases": 2}
    head = {"collected": {"music/s.queryeval.yaml": 2}, "selected": True}

    report = merged(*(part(case(id_, **told), gates=[gate]) | head for id_, told in zip("ab", costs, strict=True)))

    assert report["measures"]["metadata[cost]"]["sum"] == 3
    assert [(gate["value"], gate["n"], gate["ok"]) for gate in report["gates"]] == [(3, 2, False)]


def test_of_a_case_in_several_parts_the_last_counts():
    parts = part(case("a", 0.0), case("b", 0.5)), part(case("a", 1.0))

    assert merged(*parts)["metrics"]["f1"]["mean"] == 0.75
    assert merged(*reversed(parts))["metrics"]["f1"]["mean"] == 0.25
    assert repeated_nodeids(dict(enumerate(parts))) == ["music/s.queryeval.yaml::a"]


def test_a_case_that_ran_in_a_part_is_not_replaced_by_one_that_was_not_run():
    ran, left = case(outcome="passed"), case(outcome="not_run", scores={})

    for parts in ((part(ran), part(left)), (part(left), part(ran))):
        assert [case["outcome"] for case in merged(*parts)["cases"]] == ["passed"]


def test_a_gate_that_was_decided_in_a_part_with_all_of_its_cases_stays_decided():
    stop = {"rule": "decided", "seed": 0, "alpha": 0.05, "after": 1, "of": 2}
    cases = [case("a"), case("b", outcome="not_run", scores={})]
    decided = evaluate_gate(GATE | {"cases": 2}, cases, decision=EarlyDecision(is_met=True, after=1, of=2))
    second = part(case("z", nodeid="other/t.queryeval.yaml::z", path="other/t.queryeval.yaml"))

    early = part(*cases, stop=stop) | {"gates": [decided]}

    alone, both, larger = merged(early), merged(early, second), merged(early, part(gates=[GATE | {"cases": 3}]))
    (more,) = larger["gates"]

    assert (alone["gates"], alone["stop"]) == ([decided], stop)
    assert both["gates"] == [decided]
    assert (more["ok"], "decided" in more) == (None, False)


def test_a_gate_of_a_part_that_says_it_was_decided_without_a_score_is_open():
    cases = [case("a", scores={}), case("b", outcome="not_run", scores={})]
    claimed = evaluate_gate(GATE | {"cases": 2}, cases) | {"ok": True, "decided": {"after": 1, "of": 2}}

    (gate,) = merged(part(*cases) | {"gates": [claimed]})["gates"]

    assert (gate["ok"], "decided" in gate) == (None, False)


def test_of_a_part_that_is_given_twice_the_last_place_counts(write, capsys):
    old, new = write("old.json", part(case("a", 0.0))), write("new.json", part(case("a", 1.0)))

    assert main(["merge", old, new, old, "-o", "all.json"]) == 0
    assert f"{old} is given more than once: it counts once\n" in capsys.readouterr().out
    assert read_report(Path("all.json"))["metrics"]["f1"]["mean"] == 0.0


def test_the_latest_time_counts_whatever_the_zone():
    early, late = "2024-05-01T12:00:00+09:00", "2024-05-01T11:00:00+00:00"

    assert merged(part(created=late), part(created=early))["created"] == late
    assert merged(part(created="2024-05-01T09:00:00"), part(created=early))["created"] == "2024-05-01T09:00:00"


def test_a_name_that_parts_share_stays_and_others_are_joined():
    assert merged(part(name="nightly"), part(name="nightly"))["name"] == "nightly"
    assert merged(part(name="a"), part(name=""), part(name="b"), part(name="a"))["name"] == "a, b"
    assert len(merged(*(part(name=f"{number}" * 40) for number in range(9)))["name"]) == 100


def test_predictors_of_several_parts_are_in_the_name_once():
    one, two = (part(name=f"{', '.join(names)} 1a2b3c4", predictor={"sources": names}) for names in (["a"], ["a", "b"]))

    assert merged(one, two)["name"] == "a, b 1a2b3c4"
    assert merged(one, two | {"name": "nightly"})["name"] == "a 1a2b3c4, nightly"


def test_other_environments_are_kept_beside_the_first():
    both = merged(part(environment=HERE), part(environment=THERE), part(environment=HERE))

    assert both["environment"] == HERE | {"parts": [THERE]}
    assert merged(both, part(environment=THERE))["environment"] == both["environment"]
    assert merged(part(environment=THERE), both)["environment"] == THERE | {"parts": [HERE]}


def test_environments_that_differ_in_the_engines_they_opened_only_are_one():
    none, two, newer = ({"engines": engines} for engines in ({}, {"a": "1", "sqlite": "3.45"}, {"sqlite": "3.46"}))

    report = merged(*(part(environment=HERE | engines) for engines in (none, {}, two, newer, none)))

    assert report["environment"] == HERE | two | {"parts": [HERE | newer]}
    assert list(report["environment"]["engines"]) == ["a", "sqlite"]


def test_parts_of_different_versions_are_refused(write, capsys):
    first, second = write("1.json", part()), write("2.json", part(environment=HERE | {"pytest_queryeval": "2.0"}))

    assert refusal(capsys, first, second) == (
        "2.json: made by pytest-queryeval 2.0, but 1.json by 1.0: run all parts with one version"
    )


def test_predictors_and_broken_files_are_united():
    report = merged(
        part(predictor={"sources": ["b", "a"]}, unreadable_files=["z.queryeval.yaml"]),
        part(predictor={"sources": ["a", "c"]}, unreadable_files=["y.queryeval.yaml"]),
    )

    assert report["predictor"] == {"sources": ["a", "b", "c"]}
    assert report["unreadable_files"] == ["y.queryeval.yaml", "z.queryeval.yaml"]


def test_gates_are_united_by_all_that_they_ask_for():
    gates = [GATE, GATE | {"where": {"tag": "x"}}, GATE | {"min": 0.6}, GATE | {"max": 0.7}, GATE | {"metric": "m"}]
    second = GATE | {"folder": "arts"}

    report = merged(part(case(), gates=gates), part(gates=[second, *gates]))

    wishes = [{name: gate[name] for name in GATE} for gate in report["gates"]]
    assert wishes == [second, *gates]


@pytest.mark.parametrize("changed", [[], [GATE | {"min": 0.1}], [GATE, GATE | {"metric": "m"}]])
def test_parts_that_state_other_gates_for_a_folder_are_refused(changed):
    sides = part(case(), gates=[GATE]), part(case("b"), gates=changed)

    if not changed:  # as a shard without a case of the folder
        assert len(merged(*sides)["gates"]) == 1
        return
    with pytest.raises(ReportError, match=r"part2.json: states other gates in music than part1.json: run all parts"):
        merged(*sides)


def test_a_gate_that_stands_twice_in_its_file_is_evaluated_twice():
    report = merged(part(case(), gates=[GATE, GATE]), part(gates=[GATE, GATE]))

    assert [gate["ok"] for gate in report["gates"]] == [True, True]


def test_a_gate_is_evaluated_once_all_of_its_cases_ran_in_some_part():
    gate = GATE | {"cases": 3}
    first, second, third = (part(case(name), gates=[gate]) for name in "abc")

    assert [gate["ok"] for gate in merged(first, second)["gates"]] == [None]
    assert [gate["ok"] for gate in merged(first, second, third)["gates"]] == [True]


def test_a_gate_that_no_case_of_any_part_fits_is_missed():
    gate = GATE | {"where": {"tag": "x"}}

    assert [gate_result["ok"] for gate_result in merged(part(case("a"), gates=[gate]), part(case("b")))["gates"]] == [
        False
    ]


def test_what_one_part_could_not_count_another_one_may_know():
    unknown, known = part(case("a"), gates=[GATE | {"cases": None}]), part(case("b"), gates=[GATE | {"cases": 2}])

    assert [gate["ok"] for gate in merged(unknown)["gates"]] == [None]
    assert [gate["ok"] for gate in merged(unknown, known)["gates"]] == [True]


def test_what_a_part_left_out_without_knowing_it_stays_uncertain():
    unknown = part(case("a"), collected={}, selected=True)

    assert merged(unknown, part(case("b")))["selected"] is True


def test_a_part_whose_gates_were_evaluated_is_evaluated_anew():
    evaluated = part(case("a", 0.0)) | {"gates": [evaluate_gate(GATE | {"cases": 1}, [case("a", 0.0)])]}

    assert [gate["ok"] for gate in merged(evaluated, part(case("b"), case("c")))["gates"]] == [True]


def test_a_merge_of_merges_is_a_merge_of_all():
    first, second, third = (part(case(name), gates=[GATE]) for name in "abc")

    assert merged(merged(first, second), third) == merged(first, second, third)


def test_a_report_without_pytest_is_a_part():
    report = aggregate([case()], gates=(), about=HEAD | {"created": "2024-05-01"})

    assert merged(HEAD | report)["totals"]["passed"] == 1


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 0),
        ({"outcome": "missed"}, 0),
        ({"outcome": "skipped"}, 0),
        ({"outcome": "xfailed"}, 0),
        ({"outcome": "xpassed"}, 0),
        ({"outcome": "failed"}, 1),
        ({"outcome": "error"}, 1),
    ],
)
def test_failed_cases_and_errors_make_the_exit_status_1(write, capsys, changes, status):
    assert main(["merge", write("1.json", part(case())), write("2.json", part(case("b", **changes)))]) == status


@pytest.mark.parametrize(
    ("report", "status", "line"),
    [
        (part(case(), gates=[GATE]), 0, "gate met: f1 in music: 1.000, needs at least 0.5 (1 case)"),
        (part(case(value=0.25), gates=[GATE]), 1, "gate MISSED: f1 in music: 0.250, needs at least 0.5 (1 case)"),
        (part(case(), gates=[GATE | {"cases": 9}]), 0, "gate not evaluated: f1 in music: 1 of 9 cases ran *"),
        (part(case(), unreadable_files=["a.queryeval.yaml"]), 1, "could not be read: a.queryeval.yaml"),
        (part(case(), stopped=True), 1, "stopped before its end: part.json"),
        (part(), 5, "0 cases: none ran"),
    ],
)
def test_gates_and_runs_that_were_not_whole_make_the_exit_status(write, capsys, report, status, line):
    assert main(["merge", write("part.json", report)]) == status
    assert fnmatch.filter(capsys.readouterr().out.splitlines(), line)


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        (part(case(), gates=[GATE]), "PASSED: 1 case: 1 passed (no case failed, 1 gate met)"),
        (part(case(value=0.25), gates=[GATE]), "FAILED: gate missed: f1 in music: 0.250, needs at least 0.5 (1 case)"),
        (part(case(), gates=[GATE | {"cases": 9}]), "NO VERDICT: *; name the reports of the other cases as well"),
        (part(case(), gates=[GATE | {"cases": 9}], stopped=True), "INTERRUPTED: *"),
    ],
    ids=["passed", "failed", "no-verdict", "interrupted"],
)
def test_the_last_line_is_the_verdict(write, capsys, report, verdict):
    main(["merge", write("part.json", report), "-o", "all.json"])

    assert fnmatch.fnmatchcase(capsys.readouterr().out.splitlines()[-1], f"queryeval: {verdict}")


def test_reports_go_to_every_target(write, capsys):
    name = write("part.json", part(case(), gates=[GATE]))

    assert main(["merge", name, "-o", "all.json", "-o", "deep/all.md", "--output", "reports"]) == 0

    assert Path("reports/report.json").read_bytes() == Path("all.json").read_bytes()
    assert Path("reports/report.md").read_bytes() == Path("deep/all.md").read_bytes()
    written = ["all.json", "deep/all.md", "reports/report.json", "reports/report.md"]
    assert set(written) <= {line.removeprefix("report: ") for line in capsys.readouterr().out.splitlines()}


def test_a_part_may_be_replaced_by_the_merge(write, capsys):
    first, second = write("1.json", part(case("a"))), write("2.json", part(case("b")))

    assert main(["merge", first, second, "-o", first]) == 0
    assert read_report(Path(first))["totals"]["cases"] == 2


@pytest.mark.parametrize("target", ["all.jsn", "part.json/all.json"])
def test_targets_are_checked_before_parts_are_read(write, capsys, target):
    write("part.json", part(case()))

    assert target in refusal(capsys, "missing.json", "-o", target)


def test_a_report_that_cannot_be_written_makes_the_exit_status_1(write, capsys, monkeypatch):
    def refuse(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pytest_queryeval.reports.write_atomically", refuse)

    assert main(["merge", write("part.json", part(case())), "-o", "all.json"]) == 1
    *_, problem, verdict = capsys.readouterr().out.splitlines()
    assert problem == "report all.json cannot be written: No space left on device"
    assert verdict == f"queryeval: FAILED: {problem}"


def broken_gate(**changes):
    return part() | {"gates": [evaluate_gate(GATE | {"cases": 0}, (), mode="off") | changes]}


def broken_case(**changes):
    report = part(case())
    report["cases"] = [case(**changes)]
    return report


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a report: not JSON: a value is missing (line 1)"),
        (
            b'{"schema": 2, "cases": [',
            "is not a report: not JSON: it ends too early: a value, a `]` or a `}` is missing",
        ),
        (b"\xff\x00\xfe", "is not a report: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"\n<!doctype html>", "is not a report: it is HTML or XML: name the JSON file of that run"),
        (b"[]", "is not a report of pytest-queryeval"),
        (b'{"schema": 2}', "is not a report of pytest-queryeval"),
        (b'{"schema": 3, "cases": []}', f"has schema 3, {ONLY_2}"),
        (b'{"schema": 1, "cases": []}', f"has schema 1, {ONLY_2}"),
        (b'{"schema": "\\u001b[1m", "cases": []}', f"has schema \\x1b[1m, {ONLY_2}"),
        (b'{"schema": 2, "cases": [], "x": NaN}', "is not a report: NaN is not JSON"),
        (b'{"schema": 2, "cases": [], "x": -1e999}', "is not a report: the number -1e999 is too large"),
        (b"[" * 100_000, "is not a report: nested too deeply"),
        (b'{"schema": 2, "cases": []}', "is not a report: 'name' is missing"),
        (part() | {"created": "today"}, "is not a report: created: expected a time in the form of ISO 8601"),
        (part() | {"cases": {}}, "is not a report: cases: 'file' is missing"),
        (part() | {"cases": [1]}, "is not a report: cases[0]: expected an object"),
        (part() | {"unreadable_files": [None]}, "is not a report: unreadable_files[0]: expected a text"),
        (part() | {"collected": {"a": -1}}, "is not a report: collected.a: expected a whole number >= 0"),
        (part() | {"environment": {"parts": 3}}, "is not a report: environment.parts: expected a list"),
        (part() | {"predictor": {}}, "is not a report: predictor: 'sources' is missing"),
        (broken_gate(min="1"), "is not a report: gates[0].min: expected a number or null"),
        (broken_gate(where={"tag": 3}), "is not a report: gates[0].where.tag: expected a text or an object"),
        (broken_gate(where={"tag": {}}), "is not a report: gates[0].where.tag: expected a text"),
        (broken_gate(where={"not": "x"}), "is not a report: gates[0].where.not: expected an object"),
        (broken_gate(type="no_regression"), "is not a report: gates[0]: 'no_regression' is missing"),
        (broken_case(scores={"f1": True}), "is not a report: cases[0].scores.f1: expected a number or null"),
        (broken_case(scores={"f1": 10**180}), "is not a report: cases[0].scores.f1: expected a number < 1e+150"),
        (broken_case(scores={"f1": 10**400}), "is not a report: a whole number is too large"),
        (
            broken_case(outcome="lost"),
            "is not a report: cases[0].outcome: expected one of passed, failed, missed, error,",
        ),
        (broken_case(gold={}), "is not a report: cases[0].gold: 'query' is missing"),
        (broken_case(violations=[{}]), "is not a report: cases[0].violations[0]: 'metric' is missing"),
        (broken_case(details={"notes": 1}), "is not a report: cases[0].details.notes: expected a list"),
        (broken_case(details={"spider": {}}), "is not a report: cases[0].details.spider: 'hardness' is missing"),
        (broken_case(nodeid=None), "is not a report: cases[0].nodeid: expected a text"),
        (broken_case(trials=[1]), "is not a report: cases[0].trials[0]: expected an object"),
        (broken_case(trials=[TRIAL, {}]), "is not a report: cases[0].trials[1]: 'passed' is missing"),
        (
            broken_case(trials=[TRIAL | {"passed": "no"}]),
            "is not a report: cases[0].trials[0].passed: expected true or",
        ),
        (
            broken_case(trials=[TRIAL | {"prediction": "x"}]),
            "is not a report: cases[0].trials[0].prediction: expected an",
        ),
    ],
)
def test_a_part_that_is_no_report_is_named_in_one_line(write, capsys, content, problem):
    good = write("part1.json", part(case()))

    line = refusal(capsys, good, write("part2.json", content), "-o", "all.json")

    assert line.startswith(f"part2.json: {problem}")
    assert not Path("all.json").exists()


@pytest.mark.parametrize("name", ["missing.json", ".", "a\x1b[31m\n::error::.json"])
def test_a_part_that_cannot_be_read_is_named_in_one_line(write, capsys, name):
    line = refusal(capsys, write("part1.json", part(case())), name)

    assert (": is a folder: name the report in it" if name == "." else ": no such file: ") in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    "arguments", [["merge"], ["merge", "part.json", "--baseline"], ["render", "-o", "all.json"]], ids=" ".join
)
def test_a_pipe_is_refused_as_a_report_whose_writer_may_never_come(write, capsys, arguments):
    write("part.json", part(case()))
    os.mkfifo("pipe.json")

    with pytest.raises(SystemExit) as caught:
        main([*arguments, "pipe.json"])

    assert caught.value.code == 2
    assert capsys.readouterr().err == "pipe.json: is not a report: it is a pipe: write it to a file, and name that\n"


@pytest.mark.long
def test_a_part_that_is_too_large_is_refused(write, capsys):
    with Path("large.json").open("wb") as file:
        file.truncate(2**30)

    assert refusal(capsys, "large.json") == f"large.json: is not a report: larger than {MAX_BYTES // 2**20} MiB"


def test_scores_that_cannot_be_averaged_are_refused():
    dimensions = {"RIVER": {"precision": 1e308, "recall": 1.0}}
    cases = (case(name, kind="sdmx", details={"dimensions": dimensions}) for name in "ab")
    report = part() | {"cases": list(cases)}

    with pytest.raises(ReportError, match=r"^scores are too large to be averaged$"):
        merged(report)


def replaced(report, path, value):
    """A copy of a report with another value in one place."""
    copy = json.loads(json.dumps(report))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


def places(value, path=()):
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield (*path, step)
        yield from places(item, (*path, step))


WHOLE = part(
    case(
        tags=["x"],
        outcome="failed",
        difference={"summary": "", "missing": [], "extra": [], "changed": []},
        gold={"query": "q", "seconds": 1.0},
        prediction={"source": "p", "seconds": 1.0, "metadata": {"tokens": 3, "llm_time": 0.5}},
        violations=[{"metric": "f1", "min": 1, "max": None, "value": 0.5}],
        details={"notes": ["a: answered by b, since"], "empty_gold": True},
        trials=[TRIAL, TRIAL | {"passed": False, "prediction": {"source": "p", "seconds": 0.5, "metadata": {}}}],
    ),
    gates=[GATE, GATE | {"where": {"tag": "y"}}],
    predictor={"sources": ["p"]},
)


@given(st.sampled_from(list(places(WHOLE))), trees)
def test_whatever_stands_in_a_part_it_is_merged_or_refused(tmp_path_factory, path, value):
    folder = tmp_path_factory.getbasetemp()
    (folder / "part.json").write_bytes(json.dumps(replaced(WHOLE, path, value)).encode())

    try:
        status = main(
            ["merge", str(folder / "part.json"), "-o", str(folder / "all.json"), "-o", str(folder / "all.md")]
        )
    except SystemExit as stop:
        status = stop.code

    assert status in (0, 1, 2)


def test_text_of_parts_is_shown_and_never_obeyed(write, capsys):
    bad = case("x", outcome="failed", nodeid="::error::x\x1b[31m", message="##[group]\u202e")

    main(["merge", write("part.json", part(bad, case("y"), unreadable_files=["\n::warning::"]))])
    out = capsys.readouterr().out

    assert not [line for line in out.splitlines() if line.strip().startswith("::")]
    assert not set(out) & set("\x1b\u202e")
    assert "##" not in out


def script(*arguments, **options):
    command = [Path(sysconfig.get_path("scripts")) / "queryeval", *arguments]
    return subprocess.run(command, capture_output=True, timeout=300, check=False, **options)


def test_the_output_is_plain_where_the_terminal_knows_ascii_only(write):
    name = write("part.json", part(case("ö", outcome="failed", nodeid="ö")))

    result = script("merge", name, env=os.environ | {"PYTHONIOENCODING": "ascii"})

    assert (result.returncode, result.stderr) == (1, b"")
    assert b"\\xf6" in result.stdout
    assert b"\x1b" not in result.stdout


def test_a_reader_that_has_gone_changes_nothing(write):
    name = write("part.json", part(case(outcome="failed")))
    program = f"{sysconfig.get_path('scripts')}/queryeval merge {name} -o all.json"

    result = subprocess.run(
        ["bash", "-c", f"{program} | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, timeout=300, check=False
    )

    assert (result.returncode, result.stderr) == (1, b"")
    assert Path("all.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "queryeval: the following arguments are required: COMMAND (`queryeval --help` lists the commands, ",
        ),
        (
            ["merge"],
            "queryeval merge: the following arguments are required: PART.json (example: queryeval merge shard-1.json",
        ),
        (["merg", "a.json"], "queryeval: argument COMMAND: invalid choice: 'merg' (choose from "),
        (
            ["merge", "a.json", "--out-put", "b.json"],
            "queryeval merge: unknown option '--out-put': did you mean '--output'?",
        ),
    ],
)
def test_a_call_that_is_incomplete_is_a_usage_error(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        main(arguments)

    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(message)


def test_help_names_the_subcommands(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])

    assert stop.value.code == 0
    assert "merge" in capsys.readouterr().out


def test_merging_loads_neither_pytest_nor_a_parser(write):
    name = write("part.json", part(case()))
    program = f"from pytest_queryeval.cli import main; main(['merge', '{name}']); import sys; print(*sys.modules)"

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)

    loaded = {module.split(".")[0] for module in result.stdout.splitlines()[-1].split()}
    assert not loaded & {"pytest", "_pytest", "yaml", "sqlglot", "rdflib", "numpy", "sqlite3"}


def test_one_node_id_for_two_cases_is_a_wrong_root_folder():
    first, second = part(case(question="How many?")), part(case(question="How old?"))

    with pytest.raises(
        ReportError, match=r"^part2\.json: music/s\.queryeval\.yaml::a is another case than in part1\.json"
    ):
        merge({"part1.json": first, "part2.json": second})


@pytest.mark.parametrize(
    ("asked", "paths"),
    [
        ((["."], ["."]), ["."]),
        ((["sql", "json"], ["sql", "json"]), ["sql", "json"]),
        ((["sql/a"], ["sql/b", "sql/c/d"]), ["sql"]),
        ((["sql/a"], ["json"]), ["."]),
        ((["sql/a.queryeval.yaml"], ["sql"]), ["sql"]),
        ((["/elsewhere/a"], ["sql"]), ["."]),
    ],
)
def test_parts_are_taken_together_to_ask_for_all_of_the_folder_that_holds_them(asked, paths):
    parts = [part(case(str(number)), requested_paths={"paths": own, "ignored": []}) for number, own in enumerate(asked)]

    assert merged(*parts)["requested_paths"] == {"paths": paths, "ignored": []}


def test_what_every_part_was_to_ignore_is_ignored():
    ignored = (["a", "b"], ["b", "c"])
    parts = [
        part(case(str(number)), requested_paths={"paths": ["."], "ignored": own}) for number, own in enumerate(ignored)
    ]

    assert merged(*parts)["requested_paths"]["ignored"] == ["b"]


def test_parts_tell_which_metrics_are_costs_that_are_known_only_where_they_ran():
    first = part(case("a", scores={"edits": 3.0}))
    first["metrics"]["edits"]["better"] = "lower"

    assert merged(first, part(case("b", scores={"edits": 1.0})))["metrics"]["edits"]["better"] == "lower"
