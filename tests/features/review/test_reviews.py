"""The key `reviews`: what people decided on golds changes what cases are scored by, and both verdicts are kept."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest
from report_maker import plain_report, with_baseline
from suites import problems, write

from pytest_queryeval import QueryEvalWarning, evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.table import Policy
from pytest_queryeval.suites import load_suites

SHOP = "CREATE TABLE product (name TEXT, price REAL); INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5);"
HEAD = "kind: sql\nsource: {sqlite: {script: shop.sql}}\nreviews: reviews.jsonl\n"
CASE = 'cases: [{id: a, question: Which?, gold: "SELECT 2", predicted: SELECT 1}]\n'
TWO = CASE.replace("}]", "}, {id: b, gold: SELECT 3, predicted: SELECT 3}]")
MINUTES = iter(range(10**6))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(SHOP, "shop.sql")
    return tmp_path


def line(decision, *answers, case="a", reviewer="anna", at=None, **others):
    """A decision a minute later than the one before."""
    minute = next(MINUTES)
    return {
        "suite": "s.queryeval.yaml",
        "case": case,
        "decision": decision,
        **({"answers": list(answers)} if answers else {}),
        "reviewer": reviewer,
        "at": at or f"2026-11-{1 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:00Z",
        **others,
    }


def at_hour(hour, zone="+00"):
    return f"2026-10-23T{hour:02}:00:00{zone}:00"


def review(*lines, name="reviews.jsonl"):
    return write("".join(f"{json.dumps(line)}\n" for line in lines), name)


def query(text):
    return {"query": text}


def suite(text=CASE, name="s.queryeval.yaml"):
    return write(HEAD + text, name)


def golds(case):
    return [gold.query for gold in case.golds]


def loaded(*lines, text=CASE):
    """The one suite after these decisions."""
    suite(text)
    review(*lines)
    (only,) = load_suites(".")
    return only


def findings(loaded_suite):
    return [(finding.rule, finding.case, finding.message) for finding in loaded_suite.findings]


def report():
    return evaluate(load_cases("."))


def test_right_adds_answers_behind_the_gold():
    (case,) = loaded(line("right", query("SELECT 1"), {"table": {"columns": ["x"], "rows": [[3]]}})).cases

    assert [gold.query or gold.answer.rows for gold in case.golds] == ["SELECT 2", "SELECT 1", [(3,)]]
    assert golds(case.without_review) == ["SELECT 2"]
    assert case.without_review.review is None


ONE, THREE, FOUR = ({"query": f"SELECT {number}"} for number in (1, 3, 4))
BROKEN = CASE.replace("SELECT 2", "SELECT nothing")


@pytest.mark.parametrize(
    ("text", "lines", "review", "queries", "outcomes"),
    [
        (CASE, [line("right")], "right anna", [2], ("failed", None)),
        (CASE, [line("right", ONE)], "right anna", [2, 1], ("passed", "failed")),
        (CASE, [line("ambiguous", ONE)], "ambiguous anna", [2, 1], ("passed", "failed")),
        (CASE, [line("wrong", ONE)], "wrong anna", [1], ("passed", "failed")),
        (CASE, [line("wrong")], "wrong anna", [2], ("skipped", "failed")),
        (CASE, [line("unanswerable")], "unanswerable anna", [], ("failed", "failed")),
        (CASE, [line("unsure", ONE)], "unsure anna", [2], ("failed", None)),
        # A wrong gold need not run.
        (BROKEN, [line("wrong")], "wrong anna", ["nothing"], ("skipped", "error")),
        (BROKEN, [line("wrong", ONE)], "wrong anna", [1], ("passed", "error")),
        # Of each reviewer the last decision by time counts, at the same time the last line.
        (
            CASE,
            [line("right", THREE, at=at_hour(9)), line("wrong", ONE, at=at_hour(8))],
            "right anna",
            [2, 3],
            ("failed",) * 2,
        ),
        (CASE, [line("wrong", at=at_hour(10)), line("right", at=at_hour(10))], "right anna", [2], ("failed", None)),
        (
            CASE,
            [line("wrong", at=at_hour(10)), line("right", at=at_hour(11, "+01"))],
            "right anna",
            [2],
            ("failed", None),
        ),
        # Answers of reviewers who agree are joined; right and ambiguous are no conflict.
        (
            CASE,
            [line("wrong", ONE), line("wrong", ONE, FOUR, reviewer="ben"), line("unsure", reviewer="carla")],
            "wrong anna ben",
            [1, 4],
            ("passed", "failed"),
        ),
        (
            CASE,
            [line("right", ONE), line("ambiguous", THREE, reviewer="ben")],
            "ambiguous anna ben",
            [2, 1, 3],
            ("passed", "failed"),
        ),
    ],
)
def test_decisions_change_what_a_case_is_scored_by_and_both_verdicts_are_kept(text, lines, review, queries, outcomes):
    only = loaded(*lines, text=text)
    (case,), (reported,) = only.cases, report()["cases"]

    assert findings(only) == []
    assert f"{case.review.decision} {' '.join(case.review.reviewers)}" == review
    assert golds(case) == [f"SELECT {number}" for number in queries]
    assert (reported["outcome"], reported.get("unreviewed", {}).get("outcome")) == outcomes
    assert reported["groups"]["review"] == [case.review.decision]


def test_wrong_without_an_answer_takes_the_case_out_of_the_run():
    loaded(line("wrong", note="2 is the other shop"))

    run = report()

    (case,) = run["cases"]
    assert (case["scores"], case["violations"]) == ({}, [])
    assert case["message"] == "gold is wrong (anna), no right answer is known"
    assert case["review"] == {"decision": "wrong", "reviewers": ["anna"], "notes": ["2 is the other shop"]}
    assert case["predicted"]["query"] == "SELECT 1"
    assert run["errata"]["unreviewed"]["pass_rate"] == 0.0
    assert "pass_rate" not in run["errata"]["reviewed"]
    assert run["metrics"] == {}


def test_ambiguous_cases_can_be_left_out_of_gates():
    loaded(line("ambiguous"), text=TWO)
    write("gates: [{metric: pass_rate, min: 1, where: {not: {review: ambiguous}}}]\n", "queryeval.yaml")

    main(["evaluate", ".", "--report", "report.json"])

    gates = json.loads(Path("report.json").read_text(encoding="utf-8"))["gates"]
    assert [(gate["ok"], gate["n"]) for gate in gates] == [(True, 1)]


@pytest.mark.parametrize(
    ("gold", "predicted", "compare", "field"),
    [("'X'", "'x'", {"case": "ignore"}, "case"), ("2.2", "2.0", {"numbers": {"abs": 0.5}}, "abs")],
)
def test_a_decision_may_change_the_comparison(gold, predicted, compare, field):
    text = CASE.replace('"SELECT 2"', f"SELECT {gold}").replace("SELECT 1", f"SELECT {predicted}")
    (case,) = loaded(line("right", compare=compare), text=text).cases

    (reported,) = report()["cases"]

    policies = case.settings.policy, case.without_review.settings.policy
    assert getattr(policies[0], field) != getattr(policies[1], field) == getattr(Policy(), field)
    assert (reported["outcome"], reported["unreviewed"]["outcome"]) == ("passed", "failed")


def test_of_a_conflict_nothing_is_applied_until_it_is_settled():
    lines = [line("right", query("SELECT 1")), line("wrong", reviewer="ben")]
    disputed = loaded(*lines)
    settled = loaded(*lines, line("wrong", query("SELECT 5"), reviewer="carla", settles=True))
    reopened = loaded(
        *lines, line("wrong", query("SELECT 5"), reviewer="carla", settles=True), line("right", reviewer="ben")
    )

    assert findings(disputed) == [("review-conflict", "a", CONFLICT)]
    assert (disputed.cases[0].review, golds(disputed.cases[0])) == (None, ["SELECT 2"])
    assert (findings(settled), golds(settled.cases[0])) == ([], ["SELECT 5"])
    assert [rule for rule, *_ in findings(reopened)] == ["review-conflict"]


def digest_of(question="Which?", evidence="", golds=("SELECT 2",)):
    content = {"question": question, "evidence": evidence, "golds": golds}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_the_digest_is_that_of_canonical_json():
    golds = 'gold_any: ["SELECT 2\\n", SELECT 3]'
    text = f'cases: [{{id: a, question: " Größe?\\r\\nx", evidence: e, {golds}, predicted: x}}]\n'
    (case,) = loaded(line("right", gold=digest_of("Größe?\nx", "e", ["SELECT 2", "SELECT 3"])), text=text).cases

    assert case.review.decision == "right"


@pytest.mark.parametrize(
    ("old", "new"), [("SELECT 2", "SELECT 3"), ("Which?", "Which one?"), ("id: a,", "id: a, evidence: of 2025,")]
)
def test_a_decision_on_an_earlier_gold_or_question_is_stale(old, new):
    changed = CASE.replace(old, new)
    only = loaded(line("wrong", gold=digest_of()), text=changed)

    assert findings(only) == [
        (
            "review-stale",
            "a",
            "question or gold has changed since anna decided 'wrong' (reviews.jsonl:1): review it again",
        )
    ]
    assert only.cases[0].review is None


def test_a_stale_decision_that_its_reviewer_has_replaced_is_not_told():
    only = loaded(line("wrong", gold=digest_of(golds=["x"])), line("right", gold=digest_of()))

    assert findings(only) == []
    assert only.cases[0].review.decision == "right"


def test_a_decision_on_a_case_that_does_not_exist_names_the_nearest_one():
    only = loaded(line("right", case="cheapst"), text=CASE.replace("id: a", "id: cheapest"))

    message = "the decision is not applied, s.queryeval.yaml::cheapst does not exist: did you mean 'cheapest'?"
    assert findings(only) == [("review-stale", None, message)]
    assert str(only.findings[0].location) == "reviews.jsonl:1"


def test_a_decision_of_the_future_is_told_for_it_beats_those_of_today():
    soon = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    only = loaded(line("right", query("SELECT 1"), at="9999-12-31T23:59:59Z"), line("wrong", reviewer="ben", at=soon))

    decision = "anna decided 'right' (reviews.jsonl:1) in the future"
    assert findings(only)[0] == (
        "review-future",
        "a",
        f"{decision}, so that no decision of today replaces it: correct `at`",
    )
    assert [rule for rule, *_ in findings(only)] == ["review-future", "review-conflict"]


FORMATS = {
    "a block": "cases:\n  - id: a\n    question: Which?\n    gold: |\n      SELECT 2\n    predicted: x\n",
    "a clipped block": "cases:\n  - id: a\n    question: 'Which?'\n    gold: |-\n      SELECT 2\n    predicted: x\n",
    "a list of golds": "cases: [{id: a, question: Which?, gold_any: [SELECT 2], predicted: x}]\n",
    "a file": "cases: [{id: a, question: Which?, gold_file: gold.sql, predicted: x}]\n",
    "another place": "cases: [{id: b, gold: SELECT 4, predicted: x}, {predicted: x, gold: SELECT 2, "
    "question: Which?, id: a}]\n",
    "files of cases": "cases: more/*.yaml\n",
    "a table": "cases: {file: more.csv}\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_another_format_of_a_suite_makes_no_decision_stale(name):
    write("SELECT 2\r\n", "gold.sql")
    write("id: a\nquestion: Which?\ngold: SELECT 2\npredicted: x\n", "more/a.yaml")
    write("id,question,gold,predicted\na,Which?,SELECT 2,x\n", "more.csv")

    only = loaded(line("wrong", query("SELECT 1"), gold=digest_of()), text=FORMATS[name])

    assert findings(only) == []
    assert [case.id for case in only.cases if case.review is not None] == ["a"]


def test_a_case_in_another_suite_or_under_another_id_keeps_its_decision():
    decision = line("wrong", query("SELECT 1"), gold=digest_of())
    review(decision)
    write("kind: sql\nsource: {sqlite: {script: shop.sql}}\nreviews: reviews.jsonl\n", "queryeval.yaml")
    moved = '{"id": "z", "question": "Which?", "gold": "SELECT 2", "predicted": "SELECT 1"}\n'
    write(moved + '{"id": "y", "gold": "SELECT 9", "predicted": "SELECT 1"}\n', "t.queryeval.jsonl")

    (only,) = load_suites(".")
    assert (findings(only), [golds(case) for case in only.cases]) == ([], [["SELECT 1"], ["SELECT 9"]])

    write(moved, "u.queryeval.jsonl")  # now two cases have the same question and gold
    first, second = load_suites(".")
    assert [golds(case) for case in (*first.cases, *second.cases)] == [["SELECT 2"], ["SELECT 9"], ["SELECT 2"]]
    message = "the decision is not applied, s.queryeval.yaml::a does not exist: correct the line, or remove it"
    stale = ("review-stale", None, message)
    assert findings(first) == findings(second) == [stale]


def test_names_in_decisions_do_not_reach_a_terminal_as_they_are():
    hostile = [line("right", case="\x1b[2J\n::error::\u202e"), {**line("right"), "suite": "x" * 5_000}]

    for _, _, message in findings(loaded(*hostile)):
        assert message.isprintable()
        assert len(message) < 300


def test_a_case_with_the_golds_of_another_one_does_not_get_its_decision():
    twins = CASE.replace("}]", '}, {id: b, question: Which?, gold: "SELECT 2", predicted: SELECT 1}]')

    only = loaded(line("wrong", query("SELECT 1"), gold=digest_of()), text=twins)

    assert [golds(case) for case in only.cases] == [["SELECT 1"], ["SELECT 2"]]


def test_the_nearest_key_holds_and_a_glob_names_several_files():
    write("reviews: far.jsonl\n", "queryeval.yaml")
    review(line("wrong"), name="far.jsonl")
    write((HEAD + CASE).replace("reviews.jsonl", "golds/*.jsonl"))
    review({**line("right", query("SELECT 1")), "suite": "../s.queryeval.yaml"}, name="golds/anna.jsonl")
    review({**line("right", query("SELECT 3"), reviewer="ben"), "suite": "../s.queryeval.yaml"}, name="golds/ben.jsonl")

    (case,) = load_cases(".")

    assert golds(case) == ["SELECT 2", "SELECT 1", "SELECT 3"]


def test_a_glob_names_neither_suites_nor_settings():
    write("reviews: '*.*l'\n", "queryeval.yaml")
    write((HEAD + CASE).replace("reviews: reviews.jsonl\n", "").replace("shop.sql", "shop.txt"))
    Path("shop.sql").rename("shop.txt")
    review(line("right", query("SELECT 1")))

    (case,) = load_cases(".")

    assert golds(case) == ["SELECT 2", "SELECT 1"]


GOOD = line("right")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"suite": "s"', "it ends too early: add `}`: a line is one JSON object"),
        ("[1]", "expected an object, found a list"),
        ("[" * 200 + "]" * 200, "nested deeper than 100 levels"),
        ("[" * 100_000, "nested"),
        ('{"a": 1, "a": 2}', "duplicate key 'a'"),
        ("\xff", "not JSON"),
        ({**GOOD, "decision": "maybe"}, "unanswerable or unsure, found the text 'maybe'"),
        ({**GOOD, "decision": 1}, "expected right, wrong"),
        ({**GOOD, "reviewer": "a\x1b[2J"}, "the name of a reviewer has 1 to 100 characters that can be printed"),
        ({**GOOD, "reviewer": "x" * 10**6}, "the name of a reviewer has 1 to 100 characters"),
        ({**GOOD, "reviewer": ["anna"]}, "reviewer: expected a text, found a list"),
        ({**GOOD, "case": 5}, "case: expected a text, found '5'"),
        ({**GOOD, "case": "a\0"}, "case: expected a text"),
        ({**GOOD, "suite": "../\0"}, "suite: expected a text"),
        ({**GOOD, "at": "yesterday"}, "at: expected a time with its zone, such as 2026-11-23T10:00:00Z"),
        ({**GOOD, "at": "2026-11-23T10:00:00"}, "at: expected a time with its zone"),
        ({**GOOD, "gold": "sha256:12"}, "gold: expected `sha256:` and 64 hexadecimal digits"),
        ({**GOOD, "settles": "yes"}, "settles: expected true or false"),
        ({**GOOD, "note": {"a": 1}}, "note: expected a text"),
        ({**GOOD, "answers": {"query": "x"}}, "answers: expected a list"),
        ({**GOOD, "answers": ["SELECT 1"]}, "expected an object"),
        ({**GOOD, "answers": [{"file": "/etc/passwd"}]}, "an object with one key, `query`, `table` or `value`"),
        ({**GOOD, "answers": [{"query": {"file": "x.sql"}}]}, "query: expected a text"),
        ({**GOOD, "answers": [{"value": 1}]}, "of the kind 'sql' stands under `query` or `table`"),
        ({**GOOD, "answers": [{"table": {"columns": ["a"], "rows": [[1, 2]]}}]}, "row 1 has 2 cells"),
        ({**GOOD, "answers": [{"query": ""}]}, "`gold` is empty"),
        ({**GOOD, "compare": {"case": "loud"}}, "case: expected keep or ignore"),
        ({**GOOD, "compare": {"rdf_terms": "strict"}}, "`compare: rdf_terms` has no effect on 'a'"),
        ({**GOOD, "revewer": "x"}, "unknown key 'revewer': did you mean 'reviewer'?"),
        ({"suite": "s.queryeval.yaml"}, "a decision needs `case`, `decision`, `reviewer`, `at`"),
    ],
)
def test_a_damaged_line_is_one_error_with_its_place(content, problem):
    text = content if isinstance(content, str) else json.dumps(content)
    write(f"{json.dumps(GOOD)}\n\n{text}\n", "reviews.jsonl")

    (message,) = problems(HEAD + CASE)

    assert message.startswith("reviews.jsonl:3:")
    assert problem in message
    assert message.isprintable()
    assert len(message) < 700


@pytest.mark.parametrize(
    ("content", "size", "problem"),
    [
        (b'{"suite": "\xff"}\n', 0, ":1:12: byte 0xff is not UTF-8: save the file as UTF-8"),
        (b"", 5 * 2**20, ":1: the line is longer than 4 MiB"),
        (b"", 257 * 2**20, ": is larger than 256 MiB: split it"),
        (b"{\n{\n" * 10**4, 0, ":1:2: not JSON: it ends too early: add `}`: a line is one JSON object"),
    ],
)
def test_bytes_that_are_no_text_and_lines_without_an_end_are_one_error_with_its_place(content, size, problem):
    assert load_cases(suite())[0].review is None  # as long as there is no file
    with Path("reviews.jsonl").open("wb") as file:
        file.write(content)
        file.truncate(max(size, len(content)))

    assert problems(HEAD + CASE) == [f"reviews.jsonl{problem}"]


@pytest.mark.parametrize(
    "hostile",
    [
        "DROP TABLE product",
        "ATTACH 'x.db' AS x",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
        "SELECT writefile('x', 'y')",
    ],
)
def test_answers_are_run_as_predictions_are(hostile, folder):
    text = CASE.replace("id: a,", "id: a, timeout: 0.3,")
    loaded(line("right", query(hostile)), text=text)
    before = sorted(folder.iterdir())

    (case,) = report()["cases"]

    assert case["outcome"] == "error"
    assert case["message"].startswith("a reviewer's query failed (")
    assert case["message"].endswith("(reviews.jsonl:1)")
    assert sorted(folder.iterdir()) == before


def test_errata_count_the_whole_run():
    cases = "".join(f"  - {{id: c{number}, gold: SELECT {number}, predicted: SELECT 1}}\n" for number in range(5))
    loaded(
        line("right", case="c0"),
        line("wrong", query("SELECT 1"), case="c2"),
        line("wrong", case="c3"),
        line("unsure", case="c4"),
        text=f"metrics: [execution_accuracy]\ncases:\n{cases}",
    )

    run = report()

    assert run["errata"] == {
        "cases": 3,
        "by_decision": {"right": 1, "wrong": 2},
        "unreviewed": {"execution_accuracy": 0.2, "pass_rate": 0.2},
        "reviewed": {"execution_accuracy": 0.5, "pass_rate": 0.5},
    }


def test_a_baseline_names_decisions_that_changed():
    suite()
    before = report()
    review(line("right"))
    right = report()
    review(line("right", query("SELECT 1")))
    answered = report()
    review(line("wrong", query("SELECT 1")))
    wrong = report()

    def changes(old, new):
        return [change["what"] for change in with_baseline(new, old)["baseline"]["changes"]]

    assert changes(before, before) == changes(wrong, wrong) == []
    assert changes(before, right) == ["decision on gold: none became right"]
    assert changes(right, answered) == ["answers of reviewers edited"]
    assert changes(answered, wrong) == ["decision on gold: right became wrong"]


def test_decisions_without_effect_change_nothing_against_a_report_of_before():
    suite()
    before = report()
    review(line("unsure"), line("right", case="a", gold=digest_of(golds=["x"]), reviewer="ben"))

    with pytest.warns(QueryEvalWarning, match="review-stale: case 'a'"):
        after = report()

    assert with_baseline(after, before)["baseline"]["changes"] == []
    parts = ("outcome", "scores", "fingerprint")
    assert [after["cases"][0][part] for part in parts] == [before["cases"][0][part] for part in parts]


CONFLICT = (
    "reviewers disagree: anna decided 'right' (reviews.jsonl:1), ben decided 'wrong' (reviews.jsonl:2): "
    'settle it by a line with "settles": true'
)
STALE = "question or gold has changed since anna decided 'right' (reviews.jsonl:{}): review it again"


def test_check_finds_conflicts_and_stale_decisions_unless_they_are_ignored(capsys):
    loaded(line("right"), line("wrong", reviewer="ben"), line("right", case="b", gold=digest_of()), text=TWO)

    main(["check", "."])
    lines = capsys.readouterr().out.splitlines()
    assert [text for text in lines if "review-" in text] == [
        f"s.queryeval.yaml:4: warning [review-conflict] case 'a': {CONFLICT}",
        f"s.queryeval.yaml:4: warning [review-stale] case 'b': {STALE.format(3)}",
    ]

    write("check: {ignore: {review-conflict: in talks, review-stale: later}}\n", "queryeval.yaml")
    main(["check", "."])
    assert "review-" not in capsys.readouterr().out


def test_a_run_warns_of_the_first_finding_of_each_rule(capsys):
    loaded(*(line("right", case=case, gold=digest_of(golds=["x"])) for case in "ab"), text=TWO)

    main(["evaluate", "."])

    (warning,) = [text for text in capsys.readouterr().err.splitlines() if "review-" in text]
    assert warning == (
        f"queryeval evaluate: s.queryeval.yaml:4: review-stale: case 'a': {STALE.format(1)} "
        "(and 1 more: `queryeval check` lists them)"
    )


def test_every_surface_says_how_many_cases_are_reviewed(capsys):
    loaded(line("wrong", query("SELECT 1"), note="<b>\x1b[1m"), text=TWO)

    files = ("r.json", "r.md", "r.html", "r.csv", "r.xlsx")
    main(["evaluate", ".", *(part for name in files for part in ("--report", name))])

    sentence = "1 of 2 cases reviewed, chosen by disagreement: 1 wrong"
    assert sentence in capsys.readouterr().out
    for name in ("r.md", "r.html"):
        assert sentence in Path(name).read_text(encoding="utf-8")
    assert "kind,difficulty,tags,features,source,review," in Path("r.csv").read_text(encoding="utf-8")
    strings = ZipFile("r.xlsx").read("xl/sharedStrings.xml").decode()
    assert sentence in strings
    main(["explain", "a", "--report", "r.json"])
    assert "  review     wrong (anna); <b>\\x1b[1m; by the suite's golds: failed\n" in capsys.readouterr().out


def test_reports_that_are_joined_again_have_the_same_errata():
    loaded(line("wrong", query("SELECT 1")))
    run = report()

    assert plain_report(*run["cases"])["errata"] == run["errata"]


def test_on_unanswerable_cases_the_system_should_abstain():
    cases = """metrics: [execution_accuracy]
cases:
  - {id: a, gold: SELECT 1, predicted: SELECT 1}
  - {id: b, gold: SELECT 1, predicted: {abstained: true}}
"""
    loaded(line("unanswerable"), line("unanswerable", case="b"), text=cases)

    run = report()

    answered, abstained = run["cases"]
    assert (answered["outcome"], answered["unreviewed"]["outcome"]) == ("failed", "passed")
    assert (abstained["outcome"], abstained["unreviewed"]["outcome"]) == ("passed", "failed")
    assert answered["scores"] == {"abstention": 0.0}
    assert run["errata"]["unreviewed"] == {"execution_accuracy": 0.5, "pass_rate": 0.5}
    assert run["errata"]["reviewed"] == {"abstention": 0.5, "pass_rate": 0.5}


def test_a_case_without_an_answer_gets_none_by_a_decision():
    write(f"{json.dumps(line('wrong', query('SELECT 1')))}\n", "reviews.jsonl")

    assert problems(HEAD + "cases: [{id: a, answerable: false, predicted: x}]\n") == [
        "reviews.jsonl:1: 'a' has `answerable: false`: replace it with a gold in the suite"
    ]


@pytest.mark.parametrize(
    ("written", "there", "problem"),
    [
        ("reviws.jsonl", ["reviews.jsonl"], "there is no file 'reviws.jsonl': did you mean 'reviews.jsonl'?"),
        ("gone.jsonl", [], "there is no file 'gone.jsonl': correct the name, or create an empty file, to which"),
        ("reviws/*.jsonl", ["reviews/a.jsonl"], "there is no folder 'reviws': did you mean 'reviews'?"),
        ("reviews/*.jsonl", [], ""),  # which come later
        ("reviews/b-*.jsonl", ["reviews/a.jsonl"], ""),
        ("gone.jsonl", ["gone.jsonl"], ""),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "check"])
def test_a_mistyped_review_file_is_an_error_of_runs_and_checks(capsys, written, there, problem, command):
    for name in there:
        write("", name)
    suite(CASE.replace("SELECT 1", "SELECT 2"))
    write(Path("s.queryeval.yaml").read_text().replace("reviews.jsonl", f"'{written}'"))

    status = capture_exit(lambda: main([command, "."]))

    captured = capsys.readouterr()
    assert (problem in captured.out + captured.err, status == 0) == (True, not problem)


@pytest.mark.parametrize(
    ("written", "there", "right"),
    [
        ("reviews/*.json", "reviews/anna.jsonl", "reviews/*.jsonl"),
        ("reviews/*.jsonl", "reviews/anna.ndjson", "reviews/*.ndjson"),
        ("reviews/*_reviews.jsonl", "reviews/anna.jsonl", "reviews/*.jsonl"),
        ("reviews/*/*.jsonl", "reviews/anna.jsonl", "reviews/*.jsonl"),
        ("reviews-*.json", "reviews-anna.jsonl", "reviews-*.jsonl"),
        ("reviews/**/*.jsonl", "reviews/anna.jsonl", ""),
    ],
)
@pytest.mark.parametrize(("level", "command"), [("suite", "evaluate"), ("folder", "check")])
def test_decisions_that_a_glob_leaves_out_are_an_error_of_runs_and_checks(
    capsys, written, there, right, level, command
):
    decision = {
        **line("wrong", query("SELECT 1")),
        "suite": "../s.queryeval.yaml" if "/" in there else "s.queryeval.yaml",
    }
    review(decision, name=there)

    def run(pattern):
        key = f"reviews: '{pattern}'\n"
        write(HEAD.replace("reviews: reviews.jsonl\n", key if level == "suite" else "") + CASE, "s.queryeval.yaml")
        write(key if level == "folder" else "", "queryeval.yaml")
        status = capture_exit(lambda: main([command, "."]))
        return status, "".join(capsys.readouterr())

    status, text = run(written)

    if right:
        message = f"no file fits '{written}', but '{there}' has decisions on cases here: did you mean '{right}'?"
        assert (message in text, status) == (True, 2)
        status, text = run(right)
    assert status == 0, text


def test_a_glob_may_leave_out_decisions_on_other_suites():
    suite()
    review({**line("wrong"), "suite": "../other.queryeval.yaml"}, name="reviews/other-anna.jsonl")
    write(Path("s.queryeval.yaml").read_text().replace("reviews.jsonl", "reviews/shop-*.jsonl"))

    assert main(["evaluate", "."]) == 1


def capture_exit(run):
    try:
        return run()
    except SystemExit as ended:
        return ended.code
