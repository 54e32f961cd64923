"""Rules of `queryeval check` on SPARQL golds: terms that the data lacks, answers that an endpoint loses or cuts."""

import json
import re

import pytest
from servers import FaultServer, table
from suites import write

from pytest_queryeval.cli import main

pytestmark = [pytest.mark.process, pytest.mark.feature("sparql_endpoint")]

TYPED = "SELECT ?x { ?x a/rdfs:subClassOf* :Unit }"
JOINED = "SELECT ?x { ?x a :Unit ; :feeds ?y FILTER (?y != 3) }"
PREFIXES = {"": "http://e/", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
YES, NO = ('{"head": {}, "boolean": true}', '{"head": {}, "boolean": false}')


@pytest.fixture
def findings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(source, gold, **keys):
        case = {"id": "a", "gold": gold, **keys}
        write(json.dumps({"kind": "sparql", "source": source, "cases": [case]}))
        main(["check", ".", "--json"])
        findings = json.loads(capsys.readouterr().out)["findings"]
        return {
            finding["rule"]: finding["message"]
            for finding in findings
            if finding["rule"] not in ("gold-empty", "constant-result")
        }

    return run


def endpoint(server):
    return {"endpoint": {"url": server.url, "prefixes": PREFIXES}}


def answers(select, ask):
    """SELECT with rows, and ASK by what it asks for."""

    def behave(exchange):
        query = exchange.request.query.partition("{")[2]
        is_ask = "ASK" in exchange.request.query
        exchange.reply((YES if ask(query) else NO) if is_ask else select)

    return behave


def test_a_term_that_the_data_lacks(findings, tmp_path):
    (tmp_path / "g.ttl").write_text("@prefix : <http://e/> . :u a :Unit ; :feeds 1 .", encoding="utf-8")

    reported = findings(
        {"rdf": {"files": "g.ttl", "prefixes": PREFIXES}}, "SELECT ?x { ?x a :Units }", allow_empty=True
    )

    assert reported == {
        "unknown-term": ":Units is not in the graph; :Unit is: fix the gold query, or leave the pattern out"
    }


def test_a_path_that_an_endpoint_misreads(findings):
    with FaultServer(answers(table(), lambda query: "*" not in query)) as server:
        reported = findings(endpoint(server), TYPED, allow_empty=True)

    assert reported["lost-answer"].startswith(
        "the endpoint finds nothing for ?x a/rdfs:subClassOf* :Unit, though it finds ?x a :Unit, which is a part"
    )


def test_patterns_that_are_answered_where_the_gold_is_not(findings):
    with FaultServer(answers(table(), lambda _: True)) as server:
        reported = findings(endpoint(server), JOINED)
        silent = findings(endpoint(server), JOINED, allow_empty=True)

    assert "something for each of its 2 patterns" in reported["lost-answer"]
    assert "lost-answer" not in silent


@pytest.mark.parametrize(
    ("rows", "limit", "is_found"), [(1000, "", True), (999, "", False), (1000, " LIMIT 1000", False)]
)
def test_a_round_number_of_rows(findings, rows, limit, is_found):
    with FaultServer(answers(table(*map(str, range(rows))), lambda _: True)) as server:
        reported = findings(endpoint(server), f"SELECT ?x {{ ?x :feeds ?y }}{limit}", max_rows=5000)

    assert ("cut-answer" in reported) == is_found


@pytest.mark.parametrize(
    ("path", "shorter"),
    [
        ("a/rdfs:subClassOf*", "a"),
        (":p/:q?/:r", ":p/:r"),
        (":p*/:q", ":q"),
        (":p+", ""),
        (":p*", ""),
        ("(:p|:q)*/:r", ""),
    ],
)  # fmt: skip
def test_only_steps_that_may_be_left_out_are(findings, path, shorter):
    gold = f"SELECT * {{ ?x {path} ?y OPTIONAL {{ ?y :z ?w }} }}"
    with FaultServer(answers(table(), lambda query: not re.search(r"\*|>\s*\?[\s/]", query))) as server:
        reported = findings(endpoint(server), gold, allow_empty=True)

    lost = f"the endpoint finds nothing for ?x {path} ?y, though it finds ?x {shorter} ?y, which is a part"
    assert reported.get("lost-answer", "").startswith(lost if shorter else "")
    assert ("lost-answer" in reported) == bool(shorter)
