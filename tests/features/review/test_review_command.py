"""`queryeval review`: cases of suites, ranked by the reports of systems."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.evaluation.session import Session  # white box: that nothing runs
from pytest_queryeval.reports import write_report

SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
FOLDER = "kind: sql\nsource: {sqlite: {script: shop.sql}}\nreviews: reviews/*.jsonl\n"
CASES = """
cases:
  - {id: all, question: All?, gold: SELECT name FROM product}
  - {id: cheap, question: Cheap?, gold: SELECT name FROM product WHERE price > 2}
"""
NAMES = "SELECT name FROM product"
CHEAP = f"{NAMES} WHERE price < 3"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(SHOP, "shop.sql")
    write(FOLDER, "queryeval.yaml")
    write(CASES)
    return tmp_path


@pytest.fixture
def report(folder):
    """Write the report of a system that answers so."""

    def run(name, queries, **changes):
        path = Path(f"{name.splitlines()[0]}.json")
        result = evaluated(lambda case: queries[case.id])
        result["name"] = name
        for case in result["cases"]:
            case.update(changes)
        write_report(result, path)
        return str(path)

    return run


def evaluated(query_of):
    """Return the report of the suites in the folder, with the query of each case."""
    cases = load_cases(".", require_prediction=False)
    return evaluate([replace(case, predicted=QueryOrAnswer(query=query_of(case))) for case in cases])


@pytest.fixture
def review(folder, capsys):
    """Return the exit status, what `--json` prints, and the lines."""

    def run(*arguments):
        capsys.readouterr()
        status = main(["review", *arguments, "--json"])
        captured = capsys.readouterr()
        return status, json.loads(captured.out), captured.err.splitlines()

    return run


def decide(case, decision, reviewer, **further):
    line = {"suite": "../s.queryeval.yaml", "case": case, "decision": decision, "reviewer": reviewer, **further}
    line = {"at": "2026-11-23T10:00:00Z", **line}
    path = Path("reviews") / f"{reviewer}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(line)}\n")


def test_reports_are_systems_and_cases_come_in_the_order_of_doubt(review, report):
    paths = [
        report(name, {"all": NAMES, "cheap": f"{CHEAP} ORDER BY {number}"}) for number, name in ((1, "a"), (2, "b"))
    ]
    Path("b.json").unlink()
    paths[1] = report("b", {"all": f"{NAMES} WHERE 1", "cheap": CHEAP})

    status, data, lines = review(".", *paths)

    assert status == 0
    assert [(case["nodeid"], case["rank"]) for case in data["cases"]] == [
        ("s.queryeval.yaml::cheap", 1),
        ("s.queryeval.yaml::all", 2),
    ]
    assert [answer["systems"] for answer in data["cases"][0]["answers"]] == [[], ["a", "b"]]
    assert data["summary"]["systems"] == [
        {"name": name, "cases": 2, "without_query": 0, "changed": 0} for name in ("a", "b")
    ]
    assert lines == [
        "1. s.queryeval.yaml::cheap",
        "   2 of 2 systems give the same answer, gold another",
        "   2 edits from gold to theirs: WHERE: > → < (wrong-operator); WHERE: 2 → 3 (wrong-value)",
        "evidence on 1 of 2 cases",
    ]


def test_without_reports_the_rules_of_check_rank_cases(review):
    write("cases: [{id: a, gold: SELECT name FROM product}, {id: b, gold: SELECT name FROM product WHERE price > 9}]")

    data = review("s.queryeval.yaml")[1]

    assert [case["case"] for case in data["cases"]] == ["b", "a"]
    assert [item["rule"] for item in data["cases"][0]["evidence"]] == ["gold-empty"]


def test_a_case_in_one_report_only_is_judged_by_that_one(review, report):
    first = report("a", {"all": NAMES, "cheap": CHEAP})
    second = json.loads(Path(first).read_text(encoding="utf-8"))
    second["cases"], second["name"] = second["cases"][:1], "b"
    write(json.dumps(second), "b.json")

    data = review(".", first, "b.json")[1]

    assert data["cases"][0]["evidence"][0]["text"] == "the only system disagrees with gold"
    assert [system["cases"] for system in data["summary"]["systems"]] == [2, 1]


def test_of_several_trials_the_first_counts(review):
    write(f"predictor: {{python: predict.py:predict}}\ntrials: 2\n{CASES}")
    write(
        f"answers = iter([{NAMES!r}, {NAMES!r}, {CHEAP!r}, {NAMES!r}])\ndef predict(case): return next(answers)\n",
        "predict.py",
    )
    write_report(evaluate(load_cases(".")), Path("a.json"))

    data = review(".", "a.json")[1]

    assert [answer["query"] for answer in data["cases"][0]["answers"]] == [f"{NAMES} WHERE price > 2", CHEAP]


@pytest.mark.parametrize("change", [{"predicted": None}, {"outcome": "error", "predicted": None}])
def test_a_report_without_queries_is_told(review, report, change):
    status, data, lines = review(".", report("a", {"all": NAMES, "cheap": CHEAP}, **change))

    assert status == 0
    assert data["summary"]["systems"] == [{"name": "a", "cases": 0, "without_query": 2, "changed": 0}]
    assert "a: without a whole query in 2 cases" in lines


def test_answers_to_another_question_do_not_count_and_are_told(review, report):
    path = report("a", {"all": NAMES, "cheap": CHEAP})
    write(CASES.replace("Cheap?", "Which are dear?"))

    data, lines = review(".", path)[1:]

    assert data["summary"]["systems"] == [{"name": "a", "cases": 1, "without_query": 0, "changed": 1}]
    assert all(not case["evidence"] for case in data["cases"])
    assert "a: another question in 1 case, which is not counted: run the suites again" in lines


def test_a_foreign_report_is_refused_with_a_case_that_it_lacks(review, report, capsys):
    path = report("a", {"all": NAMES, "cheap": CHEAP})
    Path("s.queryeval.yaml").rename("t.queryeval.yaml")

    with pytest.raises(SystemExit) as caught:
        main(["review", ".", path])

    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        "a.json: has none of the cases, such as t.queryeval.yaml::all: give a report on these suites, and start the "
        "command in the root folder of the run\n"
    )


def test_a_path_after_serve_is_no_port(report, capsys):
    path = report("a", {"all": NAMES, "cheap": CHEAP})

    with pytest.raises(SystemExit) as caught:
        main(["review", "--serve", ".", path])

    assert caught.value.code == 2
    assert "expected a port, found '.': write --serve after all paths, or --serve=PORT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["a.json", "a.json"], "a.json: is given twice: give reports of different systems"),
        (["none.json"], "none.json: no such file"),
        (["s.queryeval.yaml"], "s.queryeval.yaml: is not a report: "),
    ],
)
def test_reports_that_cannot_be_used_are_one_clear_error(report, capsys, paths, problem):
    report("a", {"all": NAMES, "cheap": CHEAP})

    with pytest.raises(SystemExit) as caught:
        main(["review", ".", *paths])

    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(problem)


def test_systems_of_one_name_are_told_apart_by_their_files(review, report):
    first, second = (report(name, {"all": NAMES, "cheap": CHEAP}) for name in ("a", "b"))
    for path in (first, second):
        write(re.sub(r'"name": ?"[ab]"', '"name":"gpt"', Path(path).read_text(encoding="utf-8")), path)

    data = review(".", first, second)[1]

    assert [system["name"] for system in data["summary"]["systems"]] == ["a.json", "b.json"]


def test_the_same_id_in_two_suites_is_two_cases(review, report):
    write(CASES.replace("> 2", "< 3"), "t.queryeval.yaml")
    path = report("a", {"all": NAMES, "cheap": CHEAP})

    data = review(".", path)[1]

    assert [(case["nodeid"], len(case["answers"])) for case in data["cases"]] == [
        ("s.queryeval.yaml::cheap", 2),
        ("s.queryeval.yaml::all", 1),
        ("t.queryeval.yaml::all", 1),
        ("t.queryeval.yaml::cheap", 1),
    ]
    assert len({case["gold"] for case in data["cases"]}) == 3


def test_turns_of_a_conversation_are_cases_of_their_own(review):
    turns = [
        {"role": "user", "content": "All?", "target": NAMES},
        {"role": "user", "content": "Only cheap ones?", "target": f"{NAMES} WHERE price > 2"},
    ]
    write(json.dumps({"cases": [{"id": "talk", "conversation": turns}]}))
    cases = load_cases(".", require_prediction=False)
    write_report(evaluated(lambda case: NAMES if case.question == "All?" else CHEAP), Path("a.json"))

    data = review(".", "a.json")[1]

    assert data["cases"][0]["nodeid"].endswith(cases[1].id)
    assert [len(case["answers"]) for case in data["cases"]] == [2, 1]


def test_of_services_only_the_cases_that_most_systems_missed_are_examined(review, report, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.review.review_command.MAX_LIVE_CASES", 1)
    path = report("a", {"all": NAMES, "cheap": CHEAP})
    engine = ENGINES["sqlite"]
    as_service = engine.fingerprint.__class__(**{**vars_of(engine.fingerprint), "files": lambda source: ()})
    monkeypatch.setitem(ENGINES._members, "sqlite", engine.__class__(**{**vars_of(engine), "fingerprint": as_service}))

    data, lines = review(".", path)[1:]

    assert [case["case"] for case in data["cases"]] == ["cheap"]
    assert data["summary"]["not_run"] == 1
    assert "not examined: 1 case of services, of which enough others were" in lines


def vars_of(record):
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_answers_are_replayed_from_a_recording(review, monkeypatch):
    write(
        CASES.replace("gold: SELECT name FROM product}", f"gold: {NAMES}, predicted: {NAMES}}}").replace(
            "price > 2}", f"price > 2, predicted: {CHEAP!r}}}"
        )
    )
    assert main(["evaluate", ".", "--record", "recorded", "--report", "a.json"]) in (0, 1)
    monkeypatch.setattr(Session, "_run_on_engine", None)

    data = review(".", "a.json", "--replay", "recorded")[1]

    assert data["cases"][0]["evidence"][0]["text"] == "the only system disagrees with gold"


def test_a_source_that_fails_is_told_once_and_ends_nothing(review, report):
    path = report("a", {"all": NAMES, "cheap": CHEAP})
    Path("shop.sql").unlink()

    status, data, lines = review(".", path)

    assert status == 0
    assert len(data["cases"]) == 2
    assert [line for line in lines if line.startswith("not compared in 2 cases: ")]


def test_the_summary_has_decisions_conflicts_and_agreement(review):
    write("cases:\n" + "".join(f"  - {{id: c{number}, gold: SELECT {number}}}\n" for number in range(6)))
    anna = ["right", "right", "wrong", "wrong", "ambiguous", "unsure"]
    ben = ["right", "wrong", "wrong", "right", "ambiguous", "right"]
    for reviewer, words in (("anna", anna), ("ben", ben)):
        for number, word in enumerate(words):
            decide(f"c{number}", word, reviewer)
    decide("c1", "right", "ben", settles=True, at="2026-11-24T10:00:00Z")
    decide("c0", "wrong", "cleo", gold=f"sha256:{'0' * 64}")

    status, data, lines = review(".", "--summary")

    reviews = data["summary"]["reviews"]
    assert status == 0
    assert reviews["agreements"] == [
        {"reviewers": ["anna", "ben"], "cases": 5, "agreement": 0.6, "kappa": pytest.approx((0.6 - 0.36) / 0.64)}
    ]
    assert reviews["by_decision"] == {"right": 3, "wrong": 1, "ambiguous": 1}
    assert (reviews["conflicts"], reviews["settled"], reviews["stale"]) == (1, 1, 1)
    assert lines == [
        "decisions on 5 of 6 cases: 3 right, 1 wrong, 1 ambiguous",
        "reviewers disagree on 1 case",
        "settled: 1 case on which reviewers disagreed",
        "1 decision on questions or golds that have changed since",
        "anna: 6 cases",
        "ben: 6 cases",
        "anna and ben agree on 3 of 5 cases, Cohen's kappa 0.375",
    ]


def test_the_agreement_of_reviewers_who_decide_alike_throughout_has_no_kappa(review):
    for reviewer in ("anna", "ben"):
        decide("all", "right", reviewer)

    (pair,) = review(".", "--summary")[1]["summary"]["reviews"]["agreements"]

    assert (pair["agreement"], pair["kappa"]) == (1.0, None)


def test_what_a_report_says_is_no_command_of_a_terminal_or_a_ci_service(report, capsys):
    path = report("a\x1b[31m\n::error::x", {"all": "SELECT '\x1b[31m\n::error::x'", "cheap": CHEAP})
    Path(path).rename("a.json")

    assert main(["review", ".", "a.json"]) == 0

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert not any(line.startswith("::") for line in out.splitlines())


def test_a_pass_that_a_challenge_refuted_is_evidence(review, report):
    challenge = {"verdict": "refuted", "tried": 3, "counterexample": None, "unlike": None}
    path = report("a", {"all": f"{NAMES} WHERE 1", "cheap": CHEAP}, challenge=challenge)

    data = review(".", path)[1]

    text = "the query of a gives gold's answer on the data, and another on a small database"
    assert {"kind": "challenge", "text": text} in [item for case in data["cases"] for item in case["evidence"]]


def test_the_page_has_cases_with_evidence_and_nothing_of_theirs_is_markup(review, report):
    first = {"id": "a", "question": "<script>alert(1)</script>", "gold": NAMES}
    write(json.dumps({"cases": [first, {"id": "b", "gold": "SELECT price FROM product"}]}))
    path = report("a", {"a": "SELECT '<img src=x>' FROM product", "b": "SELECT price FROM product"})

    lines = review(".", path, "--html", "golds.html")[2]

    page = Path("golds.html").read_text(encoding="utf-8")
    assert lines[-1] == "page: golds.html"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<img" not in page
    assert "default-src &#39;none&#39;" in page
    assert "the only system disagrees with gold" in page
    assert "yaml::b" not in page


@pytest.mark.parametrize("place", ["shop.sql/golds.html", ".", "golds.txt"])
def test_a_page_that_cannot_be_written_is_one_clear_error(folder, capsys, place):
    with pytest.raises(SystemExit) as caught:
        main(["review", ".", "--html", place])

    assert caught.value.code == 2
    assert place in capsys.readouterr().err


def test_the_page_names_who_answers_as_gold_and_shows_what_stands_between_backticks_as_code(review, report):
    empty = "SELECT name FROM product WHERE price > 100"
    none = {"id": "none", "question": "Why?", "answerable": False}
    write(json.dumps({"cases": [{"id": "a", "gold": empty}, none]}))
    path = report("a", {"a": f"{empty} AND '<b>' = '<b>'", "none": "SELECT 1"})

    review(".", path, "--html", "golds.html")

    page = Path("golds.html").read_text(encoding="utf-8")
    assert "write <code>allow_empty: true</code></li>" in page
    assert "<h3>Gold (also a)</h3>" in page
    assert "<h3>Another answer: a</h3>" in page
    assert '<p class="quiet">the question has no answer</p>' in page
    assert "<b>" not in page


def test_a_ranked_case_has_the_decision_on_it_behind_its_name(review, report):
    decide("cheap", "wrong", "anna")
    decide("cheap", "wrong", "ben")
    path = report("a", {"all": NAMES, "cheap": CHEAP})

    _, data, lines = review(".", path, "--html", "golds.html")

    title = "1. s.queryeval.yaml::cheap (decided: wrong, by anna, ben)"
    assert lines[0] == title
    assert f">{title}</h2>" in Path("golds.html").read_text(encoding="utf-8")
    assert data["cases"][0]["nodeid"] == "s.queryeval.yaml::cheap"
