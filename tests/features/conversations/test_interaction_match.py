"""Conversations about queries: each turn is a case, and a conversation matches if all of its turns are right."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from report_parts import merge, part, report_of
from samples import FINGERPRINT, entry

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.core.errors import SuiteError

pytestmark = pytest.mark.feature("report_files")

NAME = "interaction_match"
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


def matches(*cases):
    """The score of each conversation, by the node id of its last turn; None of one without a verdict."""
    found = report_of(*cases)["cases"]
    return {case["nodeid"]: case["joint_scores"][NAME] for case in found if "joint_scores" in case}


def outcomes(*names, **fields):
    return [turn(number, outcome=name, **fields) for number, name in enumerate(names, 1)]


FREE = {"fingerprint": FINGERPRINT | {"thresholds": {}}, "of": 1}
TRIAL = {"passed": None, "violations": [], "predicted": {"query": "q", "error": None, "seconds": 0.0}}
TRIAL |= {"prediction": {"source": "p", "seconds": 0.0, "metadata": {}}}
RIGHT, WRONG = ({"scores": {"execution_accuracy": score}} for score in (1.0, 0.0))


@pytest.mark.parametrize(
    ("cases", "score"),
    [
        (outcomes("passed", "passed", "xpassed"), 1.0),
        (outcomes("passed", "failed", "passed"), 0.0),
        (outcomes("passed", "missed", "passed"), 0.0),
        (outcomes("xfailed", "passed", "passed"), 0.0),
        (outcomes("failed", "error", "passed"), None),
        (outcomes("passed", "skipped", "passed"), None),
        (outcomes("passed", "passed", "not_run"), None),
        ([turn(1), turn(3)], None),
        # what is required decides, whatever other metrics say
        ([turn(1, of=1, fingerprint=FINGERPRINT, **WRONG)], 1.0),
        ([turn(1, of=1, fingerprint=FINGERPRINT, outcome="failed", **RIGHT)], 0.0),
        # where nothing is required, each trial has to meet the default thresholds
        ([turn(1, **FREE, **RIGHT)], 1.0),
        ([turn(1, **FREE, **WRONG)], 0.0),
        ([turn(1, **FREE, **WRONG, trials=[TRIAL | RIGHT, TRIAL | RIGHT])], 1.0),
        ([turn(1, **FREE, **RIGHT, trials=[TRIAL | RIGHT, TRIAL | WRONG])], 0.0),
    ],
)
def test_a_conversation_matches_if_each_of_its_turns_is_right_and_none_is_without_a_verdict(cases, score):
    assert [*matches(*cases).values()] == [score]


def test_turns_are_told_apart_by_suite_and_conversation_in_any_order():
    cases = [
        *(turn(n, suite="s") for n in (3, 1, 2)),
        *(turn(n, suite="t", outcome="failed") for n in (1, 2, 3)),
        turn(1, of=1, conversation="short"),
        *(turn(n, conversation="cut") for n in (1, 2)),  # whose last turn is not there
        entry(id="single", nodeid="s::single"),
    ]
    Random(3).shuffle(cases)

    assert matches(*cases) == {"s::talk.3": 1.0, "t::talk.3": 0.0, "s::short.1": 1.0}


def test_the_metric_is_reported_per_run_and_group_over_conversations():
    cases = [
        *(turn(n, tags=["fleet"]) for n in (1, 2, 3)),
        *outcomes("failed", "passed", "passed", conversation="other"),
        *outcomes("passed", "passed", "error", conversation="cut"),
    ]
    report = report_of(*cases)

    assert (report["metrics"][NAME]["mean"], report["metrics"][NAME]["n"]) == (0.5, 2)
    assert report["groups"]["tag"]["fleet"]["metrics"][NAME]["mean"] == 1.0
    again = report_of(*(case for case in report["cases"] if case["nodeid"] != "s::talk.1"))
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
    assert second.turn == {"conversation": "talk0", "number": 2, "of": 4}


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
            "{role: assistant, target: SELECT 1, expect: {rows: 1}}",
            "a turn has no 'expect': write it next to `conversation`, for all turns with a `target`",
        ),
        (
            "{role: assistant, target: SELECT 1, compare: {case: ignore}}",
            "a turn has no 'compare': write it next to `conversation`, for all turns with a `target`",
        ),
        (
            "{role: assistant, target: SELECT 1, predicted: SELECT 1}",
            "a turn has no 'predicted': write it into a file of predictions, under an id such as ID.2",
        ),
        (
            "{role: user, content: q}, {role: assistant, content: a, targte: SELECT 1}",
            "unknown key 'targte' of a turn: did you mean 'target'?",
        ),
        ("{role: user, contents: q}", "unknown key 'contents' of a turn: did you mean 'content'?"),
        ("{role: usr, content: q}", "unknown role 'usr' of a turn: did you mean 'user'?"),
        ("{target: SELECT 1}", "a turn needs a `role` and a `content`: add `role`"),
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


def test_a_gate_counts_conversations_and_is_decided_only_if_the_rest_cannot_change_it():
    gate = {"type": "limits", "folder": "", "metric": NAME, "where": {}, "max": None, "cases": 6}
    right, wrong = outcomes(*["passed"] * 3), outcomes(*["failed"] * 3, conversation="b")
    cut = outcomes("passed", "not_run", "not_run", conversation="cut")

    complete = merge(part(*right, *wrong, gates=[gate | {"min": 0.5}]))
    open_ = merge(part(*right, *cut, gates=[gate | {"min": least} for least in (0.3, 0.5)]))

    assert "gate met: interaction_match is 0.500 (2 conversations); this gate needs at least 0.5" in complete.lines
    assert [own["ok"] for own in open_.report["gates"]] == [True, None]


def test_a_baseline_pairs_conversations():
    both = [*outcomes(*["passed"] * 3), *outcomes("passed", "passed", conversation="b")]
    before, after = (report_of(*both, turn(3, conversation="b", outcome=own)) for own in ("passed", "failed"))

    change = merge(after, baseline=before).report["baseline"]["metrics"][NAME]

    assert (change["n"], change["before"], change["after"]) == (2, 1.0, 0.5)
