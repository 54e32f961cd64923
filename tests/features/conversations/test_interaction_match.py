"""Conversations about queries: each turn is a case, and a conversation matches if all of its turns are right."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from report_maker import HEAD
from samples import FINGERPRINT, entry

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.features.conversations import NAME, interaction_matches
from pytest_queryeval.results.aggregation import aggregate, with_joint_scores
from pytest_queryeval.results.baseline.comparison import compare_reports
from pytest_queryeval.results.gates import evaluate_gates, gate_text, rule_of

SCRIPT = """
CREATE TABLE bike (id INTEGER, colour TEXT, price REAL);
INSERT INTO bike VALUES (1, 'red', 300), (2, 'red', 450.5), (3, 'blue', 120), (4, 'green', 800), (5, 'blue', 99);
"""
# Conversations about it, and what changes a query into one with another answer.
TALKS = [
    [f"SELECT id FROM bike WHERE price > {least}", f"SELECT count(*) FROM bike WHERE price > {least}", *more]
    for least, more in (
        (100, ["SELECT max(price) FROM bike", "SELECT colour FROM bike WHERE price = 800"]),
        (200, []),
        (300, ["SELECT colour, count(*) FROM bike GROUP BY colour"]),
        (400, ["SELECT id FROM bike ORDER BY price DESC LIMIT 1"]),
    )
]
MUTATIONS = [
    ("id FROM", "price FROM"),
    ("count(*)", "count(*) + 1"),
    ("max(", "min("),
    ("colour FROM", "id FROM"),
    ("SELECT", "SELEC"),
]
HARMLESS = [("SELECT ", "SELECT  "), ("FROM bike", "FROM bike AS b")]


def turn(number, of=3, outcome="passed", conversation="talk", suite="s", **changes):
    nodeid = f"{suite}::{conversation}.{number}"
    of_turn = {"conversation": conversation, "number": number, "of": of}
    return entry(id=nodeid, nodeid=nodeid, path=suite, line=number, outcome=outcome, turn=of_turn, **changes)


def match(*cases):
    return interaction_matches(cases)


def test_a_conversation_matches_if_all_of_its_turns_are_right():
    assert match(turn(1), turn(2), turn(3, outcome="xpassed")) == {"s::talk.3": 1.0}
    for wrong in ("failed", "missed", "xfailed"):
        assert match(turn(1), turn(2, outcome=wrong), turn(3)) == {"s::talk.3": 0.0}


def test_a_conversation_without_a_verdict_on_each_turn_is_left_out():
    for outcome in ("error", "skipped", "not_run"):
        assert match(turn(1, outcome="failed"), turn(2, outcome=outcome), turn(3)) == {"s::talk.3": None}
        assert match(turn(1), turn(2), turn(3, outcome=outcome)) == {"s::talk.3": None}
    assert match(turn(1), turn(3)) == {"s::talk.3": None}
    assert match(turn(1), turn(2)) == {}


def test_turns_are_told_apart_by_suite_and_conversation_in_any_order():
    cases = [
        *(turn(n, suite="s") for n in (3, 1, 2)),
        *(turn(n, suite="t", outcome="failed") for n in (1, 2, 3)),
        *(turn(n, of=1, conversation="short") for n in (1,)),
        entry(id="single", nodeid="s::single"),
    ]
    Random(3).shuffle(cases)

    assert match(*cases) == {"s::talk.3": 1.0, "t::talk.3": 0.0, "s::short.1": 1.0}


def test_without_thresholds_a_turn_is_right_if_each_trial_meets_those_of_its_kind():
    free = {"fingerprint": FINGERPRINT | {"thresholds": {}}, "kind": "sql"}
    right, wrong = ({"scores": {"execution_accuracy": score}} for score in (1.0, 0.0))
    trials = {"trials": [{"passed": None, **right}, {"passed": None, **wrong}]}

    assert match(turn(1, of=1, **free, **right)) == {"s::talk.1": 1.0}
    assert match(turn(1, of=1, **free, **wrong)) == {"s::talk.1": 0.0}
    assert match(turn(1, of=1, **free, **wrong, **trials)) == {"s::talk.1": 0.0}


def test_the_metric_is_reported_per_run_and_group_over_conversations():
    cases = [
        *(turn(n, tags=["fleet"], groups={"tag": ["fleet"]}) for n in (1, 2, 3)),
        *(turn(n, conversation="other", outcome="failed" if n == 1 else "passed") for n in (1, 2, 3)),
        *(turn(n, conversation="cut", outcome="error" if n == 3 else "passed") for n in (1, 2, 3)),
    ]
    report = aggregate(with_joint_scores(cases), gates=[], about=dict(HEAD))

    assert (report["metrics"][NAME]["mean"], report["metrics"][NAME]["n"]) == (0.5, 2)
    assert report["groups"]["tag"]["fleet"]["metrics"][NAME]["mean"] == 1.0
    again = aggregate(with_joint_scores(report["cases"][:-1]), gates=[], about=dict(HEAD))
    assert again["metrics"][NAME]["n"] == 1  # scores of a report of before do not stay


@pytest.fixture
def bikes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bikes.sql").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def write_suite(*conversations, **settings):
    cases = [
        {
            "id": f"talk{number}",
            "conversation": [
                message
                for place, gold in enumerate(golds)
                for message in (
                    {"role": "user", "content": f"question {number}.{place}"},
                    {"role": "assistant", "target": gold},
                )
            ],
        }
        for number, golds in enumerate(conversations)
    ]
    head = {"kind": "sql", "source": {"sqlite": {"script": "bikes.sql"}}, "predictor": "answers.csv"}
    Path("talks.queryeval.yaml").write_text(json.dumps(head | settings | {"cases": cases}), encoding="utf-8")
    return Path("talks.queryeval.yaml")


def write_turns(turns):
    head = "kind: sql\nsource: {sqlite: {script: bikes.sql}}\npredictor: a.csv\n"
    Path("a.queryeval.yaml").write_text(f"{head}cases: [{{id: a, conversation: [{turns}]}}]\n", encoding="utf-8")


def write_answers(answers):
    lines = [json.dumps({"id": id_, "predicted": query}) for id_, query in answers.items()]
    Path("answers.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def is_right(gold, predicted):
    """Compare answers as rows without an order, by sqlite3 alone."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCRIPT)
        try:
            rows = [sorted(database.execute(query).fetchall(), key=repr) for query in (gold, predicted)]
        except sqlite3.Error:
            return False
    return rows[0] == rows[1]


def sparc_interaction_match(conversations):
    """The rule of SParC's evaluation.py: of all conversations, the share of which every turn has the score 1."""
    scores = [[int(is_right(gold, predicted)) for gold, predicted in turns] for turns in conversations]
    return sum(all(score == 1 for score in turns) for turns in scores) / len(scores)


@pytest.mark.process
def test_100_mutated_turns_match_by_the_rule_of_sparc(bikes):
    random = Random(31)
    conversations = []
    mutated = 0
    while mutated < 100:
        golds = random.choice(TALKS)
        turns = []
        for gold in golds:
            old, new = random.choice(MUTATIONS if random.random() < 0.3 else HARMLESS)
            mutated += old in gold and mutated < 100
            turns.append((gold, gold.replace(old, new, 1)))
        conversations.append(turns)
    suite = write_suite(*([gold for gold, _ in turns] for turns in conversations), predictor="answers.jsonl")
    write_answers(
        {
            f"talk{number}.{2 * place + 2}": predicted
            for number, turns in enumerate(conversations)
            for place, (_, predicted) in enumerate(turns)
        }
    )

    report = evaluate(load_cases(suite))

    assert report["totals"]["errors"] == 0
    assert report["totals"]["cases"] == sum(map(len, conversations))
    assert report["metrics"][NAME]["n"] == len(conversations)
    assert report["metrics"][NAME]["mean"] == pytest.approx(sparc_interaction_match(conversations), abs=1e-12)
    assert 0.1 < report["metrics"][NAME]["mean"] < 0.9


def test_each_turn_is_asked_with_the_stated_conversation_before_it(bikes):
    (first, second, *_) = load_cases(write_suite(TALKS[0]))

    assert (first.id, first.question) == ("talk0.2", "question 0.0")
    assert [message.content for message in first.conversation] == ["question 0.0"]
    assert [(message.role, message.content) for message in second.conversation] == [
        ("user", "question 0.0"),
        ("assistant", TALKS[0][0]),
        ("user", "question 0.1"),
    ]
    assert (second.turn.conversation, second.turn.number, second.turn.of) == ("talk0", 2, 4)


@pytest.mark.feature("sparql_endpoint")
def test_conversations_of_sparql_are_cases_as_well(bikes):
    Path("g.ttl").write_text("<urn:a> <urn:p> 1, 2 .", encoding="utf-8")
    queries = "SELECT ?o { <urn:a> <urn:p> ?o }", "ASK { <urn:a> <urn:p> 3 }"
    cases = load_cases(write_suite(queries, kind="sparql", source="g.ttl", predictor="answers.jsonl"))
    write_answers({"talk0.2": queries[0], "talk0.4": queries[1]})

    assert evaluate(cases)["metrics"][NAME]["mean"] == 1.0


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        ("{role: user, target: SELECT 1}", "a turn needs a `role` and a `content`: add `content`"),
        ("{role: assistant, gold: SELECT 1}", "a turn has no 'gold': its gold is the `target`"),
        (
            "{role: user, content: q}, {role: assistant, content: a, targte: SELECT 1}",
            "unknown key 'targte' of a turn: did you mean 'target'?",
        ),
        ("{role: user, contents: q}", "unknown key 'contents' of a turn: did you mean 'content'?"),
        ("{role: usr, content: q}", "unknown role 'usr' of a turn: did you mean 'user'?"),
        ("{role: User, content: q}", "unknown role 'User' of a turn: did you mean 'user'?"),
        ("{target: SELECT 1}", "a turn needs a `role` and a `content`: add `role`"),
        ("{role: user, content: q}, {role: assistant}", "a turn needs a `role` and a `content`: add `content`"),
    ],
)
def test_what_a_turn_lacks_or_misspells_is_told(bikes, turns, problem):
    write_turns(turns)

    with pytest.raises(SuiteError) as error:
        load_cases(Path("a.queryeval.yaml"))

    assert problem in str(error.value)


def test_an_answer_that_is_asked_for_without_a_user_is_no_part_of_its_conversation(bikes):
    turns = "{role: system, content: s}, {role: assistant, target: SELECT 1}, {role: assistant, target: SELECT 2}"
    write_turns(turns)
    first, second = load_cases(Path("a.queryeval.yaml"))

    assert [message.content for message in first.conversation] == ["s"]
    assert [message.content for message in second.conversation] == ["s", "SELECT 1"]


def report_with_gate(*cases, minimum):
    gate = {"type": "limits", "folder": "", "metric": NAME, "where": {}, "min": minimum, "max": None, "cases": 6}
    (result,) = evaluate_gates([gate], with_joint_scores(cases))
    return result


def test_a_gate_counts_conversations_and_is_decided_only_if_the_rest_cannot_change_it():
    right = [turn(n) for n in (1, 2, 3)]
    cut = [turn(n, conversation="cut", outcome="not_run" if n > 1 else "passed") for n in (1, 2, 3)]

    complete = report_with_gate(*right, *(turn(n, conversation="b", outcome="failed") for n in (1, 2, 3)), minimum=0.5)
    assert gate_text(complete) == "interaction_match: 0.500, needs at least 0.5 (2 conversations)"
    assert [report_with_gate(*right, *cut, minimum=least)["ok"] for least in (0.3, 0.5)] == [True, None]
    assert "several cases decide it together" in rule_of(complete).why_all(complete)


def test_a_baseline_pairs_conversations():
    def run(outcome):
        cases = [turn(n, conversation=name) for name in "ab" for n in (1, 2)]
        last = [turn(3, conversation="a"), turn(3, conversation="b", outcome=outcome)]
        return aggregate(with_joint_scores([*cases, *last]), gates=[], about=dict(HEAD))

    change = compare_reports(run("passed"), run("failed"), path="base.json")["metrics"][NAME]

    assert (change["n"], change["before"], change["after"]) == (2, 1.0, 0.5)
