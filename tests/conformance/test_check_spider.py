"""`queryeval check` on the golds of Spider: what it finds is so, as other queries show."""

import io
import json
import random
import re
import sqlite3
from contextlib import closing, redirect_stderr, redirect_stdout

import pytest

from pytest_queryeval.cli import main

LIMIT = re.compile(r"\blimit\s+\d+\s*;?\s*$", re.IGNORECASE)
SPELLED = re.compile(r"'(.+)' is not in (\w+)\.(\w+), '(.+)' is, (\d+) times?: ")
RUNS = 40


@pytest.fixture(scope="module")
def found(conformance, records, tmp_path_factory):
    """The golds, the ids of cases that each rule finds, and all findings as rule, case and message."""
    folder = tmp_path_factory.mktemp("spider")
    databases = sorted((conformance / "spider" / "databases").glob("*.sqlite"))
    golds = {str(record["idx"]): record for record in records("spider/dail_gpt4.jsonl")[::3]}
    cases = [
        {"id": name, "question": record["question"], "gold": record["gold"], "source": record["db_id"]}
        for name, record in golds.items()
    ]
    (folder / "queryeval.yaml").write_text(
        json.dumps({"kind": "sql", "sources": {path.stem: {"sqlite": str(path)} for path in databases}})
    )
    (folder / "spider.queryeval.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        patch.chdir(folder)
        main(["check", ".", "--json"])
    rules, messages = {}, []
    for finding in json.loads(out.getvalue())["findings"]:
        rules.setdefault(finding["rule"], set()).add(finding["case"])
        messages.append((finding["rule"], finding["case"], finding["message"]))
    return golds, rules, messages


@pytest.fixture
def answers(conformance):
    def run(record, query):
        path = conformance / "spider" / "databases" / f"{record['db_id']}.sqlite"
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda data: data.decode(errors="replace")
            return connection.execute(query).fetchall()

    return run


def test_no_gold_of_spider_is_an_error(found):
    of_data = ("gold-empty", "limit-tie", "open-choice", "text-order", "constant-result", "value-not-in-data")
    assert found[1].keys() <= {*of_data, "duplicate-gold"}


def test_a_limit_cuts_through_a_tie_where_chance_decides_what_it_takes(found, answers):
    golds, rules, _ = found
    random.seed(0)
    limited = {name: record for name, record in golds.items() if LIMIT.search(record["gold"])}
    chosen = set()
    for name, record in limited.items():
        gold = record["gold"]
        at = LIMIT.search(gold).start()
        order = ", random() " if "order by" in gold.lower() else " order by random() "
        query = f"{gold[:at]}{order}{gold[at:]}"
        if len({tuple(sorted(map(repr, answers(record, query)))) for _ in range(RUNS)}) > 1:
            chosen.add(name)

    assert len(limited) > 50
    assert chosen <= rules["limit-tie"] <= limited.keys()
    assert len(rules["limit-tie"] - chosen) <= 1  # of forty runs, all may take the same


def test_golds_without_rows_and_constant_ones_are_what_they_are_said_to_be(found, answers):
    golds, rules, _ = found

    empty = {name for name, record in golds.items() if not answers(record, record["gold"])}
    assert rules["gold-empty"] == empty
    assert all(set(answers(golds[name], golds[name]["gold"])[0]) <= {0, None} for name in rules["constant-result"])


def test_texts_that_are_numbers_order_as_texts(found, answers):
    golds, rules, _ = found

    assert rules["text-order"]
    for name in rules["text-order"]:
        keys = [row[0] for row in answers(golds[name], LIMIT.sub("", golds[name]["gold"]))]
        assert sorted(keys, key=float, reverse=True) != keys


def test_texts_are_in_the_data_in_another_spelling_only_and_as_often_as_is_said(found, answers):
    golds, _, messages = found
    findings = [(name, SPELLED.match(message)) for rule, name, message in messages if rule == "value-not-in-data"]

    assert len(findings) > 10
    for name, (text, table, column, value, times) in ((name, match.groups()) for name, match in findings):
        query = f"SELECT count(*) FROM {table} WHERE {column} = '{{}}'"
        counts = [answers(golds[name], query.format(spelling))[0][0] for spelling in (text, value)]
        assert counts == [0, int(times)]
        assert text.casefold().split() == value.casefold().split()
