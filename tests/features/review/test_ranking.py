"""`queryeval review`: cases ranked by how likely their golds are wrong, by what systems answered in their reports."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from features.review.review_pages import write_system
from report_parts import command, refusal
from suites import write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.reports import write_report

SHOP = """
CREATE TABLE product (name TEXT, price REAL);
INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5), ('kiwi', 5);
"""
HEAD = "kind: sql\nsource: {sqlite: {script: shop.sql}}\n"
NAMES = "SELECT name FROM product"
CHEAP = f"{NAMES} WHERE price < 3"
DEAR = f"{NAMES} WHERE price > 3"
TWO = {"all": NAMES, "cheap": DEAR}
RIGHT = {"all": f"{NAMES} WHERE 1", "cheap": CHEAP}
ABSTAINED = {"prediction": {"source": "p", "seconds": 0.0, "metadata": {}, "abstained": True, "reason": "no"}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(SHOP, "shop.sql")


def suite(cases, head=HEAD, name="s.queryeval.yaml"):
    """A suite of cases by their ids, each a gold or keys."""
    lines = [
        json.dumps({"id": id_, **({"gold": case} if isinstance(case, str) else case)}) for id_, case in cases.items()
    ]
    return write(f"{head}cases:\n" + "".join(f"  - {line}\n" for line in lines), name)


def rank(cases, systems, *options, head=HEAD):
    """What the command says of cases that systems answer, each by the ids of the cases."""
    suite(cases, head)
    return command("review", ".", *(write_system(*system) for system in systems.items()), *options)


def order(printed):
    return [case["case"] for case in printed.data["cases"]]


def texts(case):
    return [evidence["text"] for evidence in case["evidence"]]


def asked(case, *queries, head=HEAD):
    """The one case of a suite, with the answers of systems called a, b, c …"""
    systems = {name: {"x": query} for name, query in zip("abcdef", queries, strict=False)}
    return rank({"x": case}, systems, head=head).data["cases"][0]


def test_the_case_comes_first_whose_gold_most_systems_contradict_with_one_answer():
    wrong = {"all": "SELECT price FROM product", "cheap": f"{CHEAP} ORDER BY 1"}

    printed = rank(TWO, {"a": RIGHT, "b": RIGHT, "c": wrong})

    first, second = printed.data["cases"]
    assert first.pop("gold").startswith("sha256:")
    assert first == {
        "case": "cheap",
        "suite": "s.queryeval.yaml",
        "nodeid": "s.queryeval.yaml::cheap",
        "rank": 1,
        "evidence": [
            {"kind": "systems", "text": "3 of 3 systems give the same answer, gold another"},
            {
                "kind": "edit",
                "text": "1 edit from the gold query to theirs: WHERE: > → < (wrong-operator)",
                "edits": [{"label": "wrong-operator", "clause": "WHERE", "change": "> → <"}],
            },
        ],
        "answers": [
            {"systems": [], "is_gold": True, "query": DEAR},
            {"systems": ["a", "b", "c"], "is_gold": False, "query": CHEAP},
        ],
    }
    assert second["evidence"][0]["text"] == "1 of 3 systems disagrees with the gold answer"
    assert second["answers"][0]["systems"] == ["a", "b"]
    assert printed.data["summary"]["systems"] == [
        {"name": name, "cases": 2, "without_query": 0, "changed": 0} for name in "abc"
    ]
    assert printed.text.splitlines() == [
        "1. s.queryeval.yaml::cheap",
        *(f"   {text}" for text in texts(first)),
        "2. s.queryeval.yaml::all",
        *(f"   {text}" for text in texts(second)),
        "evidence on 2 of 2 cases",
    ]


LONG = f"{NAMES} WHERE price IN (SELECT max(price) FROM product WHERE name > 'a')"
FAR = f"{NAMES} ORDER BY price DESC, name DESC LIMIT 3"
NEAR_JSON = {"near": {"gold": {"a": 1, "b": 2}}, "far": {"gold": {"c": [3, 4, 5]}}}
REFUTED = {
    "predicted": {"query": f"{CHEAP} AND 1", "columns": None, "row_count": None, "sample": [], "seconds": 0.0},
    "gold": {"query": CHEAP, "columns": None, "row_count": None, "sample": [], "seconds": 0.0, "index": 0},
    "challenge": {"verdict": "refuted", "tried": 3, "counterexample": None, "unlike": None},
}
REFUTED["predicted"]["error"] = None


@pytest.mark.parametrize(
    ("cases", "systems", "expected"),
    [
        # Cases with the same doubt keep their order.
        ({f"c{n}": NAMES for n in range(12)}, [], [f"c{n}" for n in range(12)]),
        # A system with gold counts more than one against it.
        (
            {"two": CHEAP, "one": CHEAP},
            [{"two": DEAR, "one": DEAR}, {"two": DEAR, "one": "oops"}, {"two": CHEAP, "one": "oops"}],
            ["one", "two"],
        ),
        # The fewer edits lead from gold to the answer, and the fewer words each changes, the greater is the doubt.
        (
            {"two": "SELECT price FROM product WHERE price > 3", "one": CHEAP},
            [{"two": CHEAP, "one": DEAR}] * 2,
            ["one", "two"],
        ),
        ({"long": LONG, "short": DEAR, "far": FAR}, [dict.fromkeys(("long", "short", "far"), CHEAP)], ["short"]),
        # A query that several systems wrote counts more than several queries with one answer.
        (
            {"several": DEAR, "one": DEAR},
            [{"several": CHEAP, "one": CHEAP}, {"several": f"{NAMES} WHERE price <= 2.5", "one": CHEAP}],
            ["one", "several"],
        ),
        # A case that many systems confirm and one refutes comes before one without evidence.
        ({"a": CHEAP, "b": CHEAP}, [{"a": "SELECT", "b": REFUTED}, {"a": CHEAP, "b": CHEAP}], ["b", "a"]),
    ],
)
def test_the_doubt_decides_which_case_comes_first(cases, systems, expected):
    assert order(rank(cases, dict(zip("abc", systems, strict=False))))[: len(expected)] == expected


@pytest.mark.feature("json")
def test_texts_of_values_are_compared_where_there_is_no_query():
    answers = dict.fromkeys(NEAR_JSON, '{"a": 1, "b": 3}')

    assert order(rank(dict(reversed(NEAR_JSON.items())), {"s": answers}, head="kind: json\n")) == ["near", "far"]


TIED = f"{NAMES} ORDER BY price LIMIT 1"
NO_ROWS = (
    "the gold answer has no rows, so any query that returns nothing passes: fix the query, or write `allow_empty: true`"
)
SPELLED = "'Fig' is not in product.name, 'fig' is, 1 time: fix the gold query, or the data"
SAME = "{} systems give the same answer, gold another".format


@pytest.mark.parametrize(
    ("case", "queries", "expected"),
    [
        # Answers are equal as the case compares them.
        (
            {"gold": NAMES, "compare": {"case": "ignore", "duplicates": "ignore", "extra_columns": "allow"}},
            ["SELECT DISTINCT upper(name) FROM product", "SELECT price, name FROM product"],
            [],
        ),
        # Systems that order what gold leaves in any order speak against it, unless there is one row.
        (NAMES, [f"{NAMES} ORDER BY 1", NAMES], ["1 of 2 systems orders rows, the gold query does not"]),
        (f"{NAMES} LIMIT 1", [TIED, TIED], ["2 of 2 systems order rows, the gold query does not", ...]),
        ("SELECT max(price) FROM product", ["SELECT max(price) FROM product ORDER BY 1"], []),
        (TIED, [f"{TIED} OFFSET 1"], [..., "the only system is right by a choice among rows that tie", ...]),
        # Failed and missing queries count as systems that give no answer; some abstain.
        (NAMES, [CHEAP, f"{CHEAP} AND 1", "SELECT oops", None], [SAME("2 of 4"), ...]),
        (NAMES, ["SELECT oops", None, ""], []),
        (NAMES, [ABSTAINED, ABSTAINED, NAMES], ["2 of 3 systems abstain, but there is a gold answer"]),
        (NAMES, [ABSTAINED], ["the only system abstains, but there is a gold answer"]),
        (
            {"question": "Why?", "answerable": False},
            [NAMES, f"{NAMES} WHERE 1", ABSTAINED],
            ["2 of 3 systems give the same answer, but the case has no right answer"],
        ),
        # A gold that fails is evidence by itself, and so are rules of `check` that are not silenced.
        (
            "SELECT nme FROM product",
            [NAMES, NAMES],
            [SAME("2 of 2"), "gold query failed (invalid): no such column: nme: did you mean 'name'?"],
        ),
        (f"{NAMES} WHERE name = 'Fig'", [], [NO_ROWS, SPELLED]),
        ({"gold": f"{NAMES} WHERE name = 'Fig'", "check": {"ignore": {"gold-empty": "so be it"}}}, [], [SPELLED]),
        # A pass that a challenge refuted counts as long as the gold is the same.
        (CHEAP, [REFUTED], ["the query of a gives the gold answer on the data, and another on a small database"]),
        (f"{CHEAP} AND 2", [REFUTED], []),
    ],
)
def test_evidence_says_what_speaks_against_a_gold(case, queries, expected):
    found = texts(asked(case, *queries))

    assert [text for text in found if text in expected] == [text for text in expected if text is not ...]
    assert ... in expected or len(found) == len(expected)


@pytest.mark.parametrize(
    ("gold", "query", "difference"),
    [
        ("SELECT price FROM product", "SELECT DISTINCT price FROM product", "duplicates"),
        (f"{NAMES} ORDER BY name", f"{NAMES} ORDER BY name DESC", "order"),
        (NAMES, "SELECT name, price FROM product", "columns"),
        ("SELECT name, price FROM product", NAMES, "columns"),
        (NAMES, "SELECT upper(name) FROM product", "letter case"),
        (NAMES, CHEAP, None),
        (NAMES, "SELECT name FROM product WHERE 0", "no rows"),
        ("SELECT name, price FROM product WHERE 0", "SELECT name FROM product WHERE 0", None),
    ],
)
def test_evidence_says_in_what_alone_two_answers_differ(gold, query, difference):
    differences = [item.get("difference") for item in asked(gold, query)["evidence"] if item["kind"] == "edit"]

    assert differences in ([difference], [] if difference is None else None)


BY_NAME = f"{NAMES} ORDER BY name"
ORDERED = [f"{CHEAP} ORDER BY name", f"{CHEAP} ORDER BY 1", f"{CHEAP} ORDER BY name DESC"]
TABLE = {"gold_table": {"columns": ["n"], "rows": [["pear"], ["plum"]]}}


@pytest.mark.parametrize(
    ("case", "queries", "groups"),
    [
        # `gold_columns` count for gold, and not between systems.
        (
            {"gold": "SELECT name, price FROM product", "compare": {"gold_columns": ["name"]}},
            [NAMES, CHEAP, f"{CHEAP} AND 1"],
            ["a", "bc"],
        ),
        # The order of rows counts between systems where gold has one.
        (NAMES, ORDERED, ["", "abc"]),
        (BY_NAME, ORDERED, ["", "ab", "c"]),
        (f"{NAMES} ORDER BY price", ORDERED, ["", "ab", "c"]),
        (BY_NAME, ["VALUES ('plum'), ('pear')", ORDERED[0], f"{CHEAP} ORDER BY 1 DESC"], ["", "ac", "b"]),
        # Each of several golds is right, and a gold may be a table.
        ({"gold_any": [CHEAP, DEAR]}, [CHEAP, f"{DEAR} AND 1", NAMES], ["a", "b", "c"]),
        (TABLE, [CHEAP, DEAR], ["a", "b"]),
    ],
)
def test_systems_with_equal_answers_are_one_group_golds_first(case, queries, groups):
    answers = asked(case, *queries)["answers"]

    assert ["".join(answer["systems"]) for answer in answers] == groups
    golds = len(case.get("gold_any", "1")) if isinstance(case, dict) else 1
    assert [answer["is_gold"] for answer in answers] == [place < golds for place in range(len(answers))]
    assert case is not TABLE or [answer["query"] for answer in answers] == [None, DEAR]


@pytest.mark.feature("json")
def test_json_answers_are_compared_as_their_kind_does():
    queries = ['{"city": "Rome", "year": 2}', '{"year": 2, "city": "Rome"}', '{"year": 1, "city": "Rome"}']

    case = asked({"gold": {"city": "Rome", "year": 1}}, *queries, head="kind: json\n")

    assert [answer["systems"] for answer in case["answers"]] == [["c"], ["a", "b"]]
    assert texts(case)[1] == "1 edit from the gold query to theirs: $.year: 1 → 2 (wrong-value)"


@pytest.mark.parametrize(
    ("number", "names", "correlated"),
    [(10, "abcd", [{"systems": ["a", "b"], "cases": 10, "same": 10}]), (7, "abcd", []), (10, "ag", [])],
)
def test_systems_are_correlated_whose_wrong_answers_agree_more_than_by_chance(number, names, correlated):
    """By a test at 0.01 for all pairs together: of 4 systems, 0.5 ** 7 is too much for one of 6 pairs."""
    ids = [f"c{n}" for n in range(number)]
    golds, twin, loner = (dict.fromkeys(ids, query) for query in (NAMES, CHEAP, f"{DEAR} LIMIT 1"))
    systems = {"a": twin, "b": twin, "c": loner, "d": {id_: f"SELECT {id_[1:]}" for id_ in ids}, "g": golds}

    printed = rank(golds, {name: systems[name] for name in names})

    assert printed.data["summary"]["correlated"] == correlated
    line = "a and b are correlated: the same wrong answer in 10 of 10 cases that both answer wrongly"
    assert (line in printed.text) is bool(correlated)


# Reports


@pytest.mark.parametrize(
    ("systems", "counts", "line"),
    [
        ([{"all": None, "cheap": None}], [(0, 2, 0)], "a: without a whole query in 2 cases"),
        (
            [{"all": NAMES, "cheap": {"predicted": None, "outcome": "error"}}],
            [(1, 1, 0)],
            "a: without a whole query in 1 ",
        ),
        ([RIGHT, {"all": NAMES}], [(2, 0, 0), (1, 0, 0)], "   the only system disagrees with the gold answer"),
        (
            [{"all": {"question": "Some?"}, "cheap": CHEAP}],
            [(1, 0, 1)],
            "a: another question in 1 case, which is not counted: run the suites again",
        ),
        ([{"all": {"evidence": "all"}, "cheap": CHEAP}], [(1, 0, 1)], "a: another question in 1 case, which is not "),
    ],
)
def test_what_a_report_lacks_is_told(systems, counts, line):
    printed = rank(TWO, dict(zip("ab", systems, strict=False)))

    names = ("cases", "without_query", "changed")
    assert [tuple(system[name] for name in names) for system in printed.data["summary"]["systems"]] == counts
    assert f"\n{line}" in printed.text


def test_of_several_trials_the_first_counts():
    head = f"{HEAD}predictor: {{python: predict.py:predict}}\ntrials: 2\n"
    suite({id_: {"question": id_, "gold": gold} for id_, gold in TWO.items()}, head)
    answers = [NAMES, NAMES, CHEAP, NAMES]
    write(f"answers = iter({answers})\ndef predict(case): return next(answers)\n", "predict.py")
    write_report(evaluate(load_cases(".")), Path("a.json"))

    data = command("review", ".", "a.json").data

    assert [answer["query"] for answer in data["cases"][0]["answers"]] == [DEAR, CHEAP]


def test_systems_of_one_name_are_told_apart_by_their_files():
    suite(TWO)
    paths = [write_system("gpt", RIGHT, f"{name}.json") for name in "ab"]

    data = command("review", ".", *paths).data

    assert [system["name"] for system in data["summary"]["systems"]] == ["a.json", "b.json"]


def test_cases_of_several_suites_and_turns_of_a_conversation_are_cases_of_their_own():
    turns = [{"role": "user", "content": "All?", "target": NAMES}, {"role": "user", "content": "Dear?", "target": DEAR}]
    suite(TWO)
    suite({"all": DEAR, "talk": {"conversation": turns}}, name="t.queryeval.yaml")
    path = write_system(
        "a", {case.id: CHEAP if case.id == "cheap" else NAMES for case in load_cases(".", require_prediction=False)}
    )

    data = command("review", ".", path).data

    found = {case["nodeid"]: len(case["answers"]) for case in data["cases"]}
    assert sorted(found.values()) == [1, 1, 2, 2, 2]
    assert (found["s.queryeval.yaml::all"], found["t.queryeval.yaml::all"]) == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["a.json", "a.json"], "a.json: is given twice: give reports of different systems"),
        (["none.json"], "none.json: no such file"),
        (["s.queryeval.yaml"], "s.queryeval.yaml: is not a report: "),
        (
            ["foreign.json"],
            "foreign.json: has none of the cases, such as s.queryeval.yaml::all: give a report on these suites, and ",
        ),
        (["--html", "shop.sql/golds.html"], "report shop.sql/golds.html cannot be written: "),
        (["--html", "."], "--html .: write a name that ends in .html"),
        (["--html", "golds.txt"], "--html golds.txt: write a name that ends in .html"),
        (
            ["--serve", "x", "a.json"],
            "queryeval review: argument --serve: expected a port, found 'x': write --serve after",
        ),
        (["--serve"], "no review file for s.queryeval.yaml: add to s.queryeval.yaml: reviews: reviews.jsonl"),
    ],
)
def test_what_cannot_be_ranked_or_written_is_refused_in_one_line(arguments, problem):
    suite({"gone": NAMES})
    write_system("foreign", {"gone": NAMES})
    suite(TWO)
    write_system("a", RIGHT)

    assert refusal("review", ".", *arguments).startswith(problem)


def test_of_services_only_the_cases_that_most_systems_missed_are_examined(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.review.review_command.MAX_LIVE_CASES", 1)
    fingerprint = replace(ENGINES["sqlite"].fingerprint, files=lambda source: ())
    monkeypatch.setitem(ENGINES._members, "sqlite", replace(ENGINES["sqlite"], fingerprint=fingerprint))

    suite(TWO)
    path = write_system("a", {"all": RIGHT["all"], "cheap": CHEAP})
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    report["cases"][1]["outcome"] = "failed"
    write(json.dumps(report), path)
    printed = command("review", ".", path)

    assert order(printed) == ["cheap"]
    assert printed.data["summary"]["not_run"] == 1
    assert "not examined: 1 case of services, of which enough others were\n" in printed.text


def test_answers_are_replayed_from_a_recording(monkeypatch):
    suite({"all": {"gold": NAMES, "predicted": NAMES}, "cheap": {"gold": DEAR, "predicted": CHEAP}})
    assert main(["evaluate", ".", "--record", "recorded", "--report", "a.json"]) == 1
    monkeypatch.setitem(ENGINES._members, "sqlite", replace(ENGINES["sqlite"], opener=None))

    data = command("review", ".", "a.json", "--replay", "recorded").data

    assert texts(data["cases"][0])[0] == "the only system disagrees with the gold answer"


def test_a_source_that_fails_is_told_once_is_no_evidence_and_ends_nothing():
    suite(TWO)
    path = write_system("a", RIGHT)
    Path("shop.sql").unlink()

    printed = command("review", ".", path)

    assert [(case["evidence"], case["answers"]) for case in printed.data["cases"]] == [([], [])] * 2
    assert len([line for line in printed.text.splitlines() if line.startswith("not compared in 2 cases: ")]) == 1


# Decisions and judgements


def decide(case, decision, reviewer, **further):
    line = {"suite": "../s.queryeval.yaml", "case": case, "decision": decision, "reviewer": reviewer}
    path = Path("reviews") / f"{reviewer}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps({**line, 'at': '2026-11-23T10:00:00Z', **further})}\n")


REVIEWED = f"{HEAD}reviews: reviews/*.jsonl\n"


def test_the_ranking_is_of_the_golds_of_the_suite_with_the_decision_behind_the_name():
    for reviewer in ("anna", "ben"):
        decide("cheap", "wrong", reviewer, answers=[{"query": "SELECT 1"}])

    printed = rank(TWO, {"a": {"cheap": CHEAP}, "b": {"cheap": "SELECT 1"}}, "--html", "golds.html", head=REVIEWED)

    title = "1. s.queryeval.yaml::cheap (decided: wrong, by anna, ben)"
    assert printed.text.splitlines()[0] == title
    assert f">{title}</h2>" in Path("golds.html").read_text(encoding="utf-8")
    assert [answer["query"] for answer in printed.data["cases"][0]["answers"] if answer["is_gold"]] == [DEAR]


def test_the_summary_has_decisions_conflicts_and_agreement():
    suite({f"c{number}": f"SELECT {number}" for number in range(6)}, REVIEWED)
    words = {
        "anna": ["right", "right", "wrong", "wrong", "ambiguous", "unsure"],
        "ben": ["right", "wrong", "wrong", "right", "ambiguous", "right"],
    }
    for reviewer, own in words.items():
        for number, word in enumerate(own):
            decide(f"c{number}", word, reviewer)
    decide("c1", "right", "ben", settles=True, at="2026-11-24T10:00:00Z")
    decide("c0", "wrong", "cleo", gold=f"sha256:{'0' * 64}")

    printed = command("review", ".", "--summary")

    reviews = printed.data["summary"]["reviews"]
    assert reviews["agreements"] == [
        {"reviewers": ["anna", "ben"], "cases": 5, "agreement": 0.6, "kappa": pytest.approx((0.6 - 0.36) / 0.64)}
    ]
    assert reviews["by_decision"] == {"right": 3, "wrong": 1, "ambiguous": 1}
    assert (reviews["conflicts"], reviews["settled"], reviews["stale"]) == (1, 1, 1)
    assert printed.text.splitlines() == [
        "decisions on 5 of 6 cases: 3 right, 1 wrong, 1 ambiguous",
        "reviewers disagree on 1 case",
        "settled: 1 case on which reviewers disagreed",
        "1 decision on questions or golds that have changed since",
        "anna: 6 cases",
        "ben: 6 cases",
        "anna and ben agree on 3 of 5 cases, Cohen's kappa 0.375",
    ]


def test_the_agreement_of_reviewers_who_decide_alike_throughout_has_no_kappa():
    suite(TWO, REVIEWED)
    for reviewer in ("anna", "ben"):
        decide("all", "right", reviewer)

    (pair,) = command("review", ".", "--summary").data["summary"]["reviews"]["agreements"]

    assert (pair["agreement"], pair["kappa"]) == (1.0, None)


JUDGED = {"missed": "SELECT 1", "passed": "SELECT 2", "plain": "SELECT 3"}
WRONG, FOUND = "the answer of small passes, but is wrong ({})", "the answer of small failed, but is right ({})"


@pytest.mark.parametrize(
    ("judgements", "evidence"),
    [
        (
            [("passed", "wrong", "anna"), ("plain", "right", "anna"), ("passed", "unclear", "ben")],
            {"passed": [WRONG.format("anna")]},
        ),
        ([("missed", "right", "anna"), ("missed", "right", "ben")], {"missed": [FOUND.format("anna, ben")]}),
        # Judgements with the verdict, and contradictions, are no evidence.
        ([("missed", "wrong", "anna"), ("passed", "right", "anna")], {}),
        ([("passed", "wrong", "a"), ("passed", "right", "b")], {}),
    ],
)
def test_judgements_of_an_audit_against_the_verdict_lead_the_ranking(judgements, evidence):
    names = {id_: {"case": id_, "nodeid": f"s.queryeval.yaml::{id_}"} for id_ in JUDGED}
    drawn = [
        {
            **name,
            "stratum": "passed",
            "probability": 1,
            "predictions": {hashlib.sha256(JUDGED[id_].encode()).hexdigest()[:16]: {"query": JUDGED[id_]}},
        }
        for id_, name in names.items()
    ]
    judged = [
        {**names[id_], "judgement": judgement, "reviewer": reviewer, "at": f"2026-11-23T10:00:{number:02}Z"}
        for number, (id_, judgement, reviewer) in enumerate(judgements)
    ]
    write("".join(f"{json.dumps(line)}\n" for line in (*drawn, *judged)), "audit.jsonl")
    suite(
        JUDGED
        | {
            "missed": {"gold": "SELECT 9", "predicted": JUDGED["missed"]},
            "passed": {"gold": "SELECT 2", "predicted": "SELECT 2"},
            "plain": {"gold": "SELECT 3", "predicted": "SELECT 3"},
        }
    )
    write_report(evaluate(load_cases(".")) | {"name": "small"}, Path("small.json"))
    suite(JUDGED | {"missed": "SELECT 9"})

    data = command("review", ".", "small.json", "--audit", "audit.jsonl").data

    of_audit = {
        case["case"]: [own["text"] for own in case["evidence"] if own["kind"] == "audit"] for case in data["cases"]
    }
    assert {id_: sentences for id_, sentences in of_audit.items() if sentences} == evidence
    assert not evidence or data["cases"][0]["case"] in evidence


# Forms


def test_what_a_report_says_is_no_command_of_a_terminal_or_a_ci_service(capsys):
    suite(TWO)
    path = write_system("a\x1b[31m\n::error::x", {"all": "SELECT '\x1b[31m\n::error::x'", "cheap": CHEAP}, "a.json")

    assert main(["review", ".", path]) == 0

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert not any(line.startswith("::") for line in out.splitlines())


def test_the_page_has_cases_with_evidence_who_answers_as_gold_and_no_markup_of_theirs():
    empty = "SELECT name FROM product WHERE price > 100"
    cases = {
        "a": {"question": "<script>alert(1)</script>", "gold": NAMES},
        "b": "SELECT price FROM product",
        "empty": empty,
        "none": {"question": "Why?", "answerable": False},
    }
    answers = {
        "a": "SELECT '<img src=x>' FROM product",
        "b": cases["b"],
        "empty": f"{empty} AND '<b>' = '<b>'",
        "none": "SELECT 1",
    }

    printed = rank(cases, {"a": answers}, "--html", "golds.html")

    page = Path("golds.html").read_text(encoding="utf-8")
    assert printed.text.endswith("page: golds.html\n")
    for text in (
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "default-src &#39;none&#39;",
        "the only system disagrees with the gold answer",
        "write <code>allow_empty: true</code></li>",
        "<h3>Gold (also a)</h3>",
        "<h3>Another answer: a</h3>",
        '<p class="quiet">the question has no answer</p>',
    ):
        assert text in page
    assert [text for text in ("<img", "<b>", "yaml::b") if text in page] == []
