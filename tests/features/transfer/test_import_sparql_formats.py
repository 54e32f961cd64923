"""The formats of `queryeval import` and `export` for SPARQL, on small files of their own form."""

import json
from pathlib import Path

import pytest
from importing import imported, outcomes, refusal, write

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main

DATA = "@prefix : <http://e/> . :ulm :size 5 ; :in :de . :bonn :size 9 ; :in :de . :oslo :size 7 ."
SIZES = "PREFIX : <http://e/> SELECT ?x { ?x :size ?n } ORDER BY ?n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("g.ttl", DATA)
    return tmp_path


def solutions(*iris):
    bindings = [{"x": {"type": "uri", "value": f"http://e/{iri}"}} for iri in iris]
    return [{"head": {"vars": ["x"]}, "results": {"bindings": bindings}}]


# QALD


def qald(**question):
    texts = [{"language": "en", "string": "Which cities?"}]
    return {"id": 7, "question": texts, "query": {"sparql": SIZES}, "answers": solutions("ulm"), **question}


def test_stored_answers_of_qald_can_be_preferred_to_queries(capsys):
    document = {"head": {}, "boolean": True}
    source = write("qald.json", {"questions": [qald(), qald(id=8, answers=[document])]})
    write("p.json", [{"id": "7", "predicted": SIZES.replace("5", "")}, {"id": "8", "predicted": "ASK {}"}])

    cases, _ = imported(capsys, "qald", source, "--source", "g.ttl", "--map", "gold=answers", "--predictions", "p.json")

    assert outcomes(cases) == {"7": "failed", "8": "passed"}


# TEXT2SPARQL

QUESTIONS = f"""
dataset: {{id: https://e/2025/towns/, prefix: t25}}
questions:
  - id: 1
    question: {{en: Which cities?, de: Welche Städte?}}
    query: {{sparql: "{SIZES}"}}
  - id: 3
    question: {{en: Any?}}
    query: {{sparql: "ASK {{ ?s ?p ?o }}"}}
"""


def test_answers_of_text2sparql_go_in_and_come_out_as_the_published_tool_has_them(capsys):
    source = write("q.yaml", QUESTIONS)
    answer = {
        "dataset": "https://e/2025/towns/",
        "question": "Which cities?",
        "query": SIZES,
        "endpoint": "http://127.0.0.1:8000",
        "qname": "t25:1-en",
        "uri": "https://e/2025/towns/1-en",
    }
    answers = write("answers.json", [answer, {**answer, "qname": "t25:9-en"}])

    cases, _ = imported(capsys, "text2sparql", source, "--source", "g.ttl", "--predictions", answers)
    report = evaluate(cases.values())
    write("report.json", report)
    status = main(["export", "report.json", "-f", "text2sparql", "--json"])

    assert {case["id"]: case["outcome"] for case in report["cases"]} == {"t25:1-en": "passed", "t25:3-en": "error"}
    assert status == 1
    assert json.loads(capsys.readouterr().out)["missing"] == ["t25:3-en"]
    entries = {name: answer[name] for name in ("qname", "question", "query")}  # the tool reads no other
    assert json.loads(Path("text2sparql.json").read_text("utf-8")) == [entries]


def test_a_report_of_other_cases_is_no_export_of_text2sparql(capsys):
    write("s.queryeval.yaml", "kind: json\ncases:\n  - {id: a, gold: 1, predicted: 1}\n")
    write("report.json", evaluate(load_cases("s.queryeval.yaml")))

    said = refusal(capsys, "export", "report.json", "-f", "text2sparql")

    assert "1 of 1 cases are of other kinds than sparql (the first is 'a' of the kind 'json'): run suites" in said


# W3C

MANIFEST = """
@prefix : <manifest#> . @prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .
@prefix qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#> .
"""
RESULTS = "@prefix rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> .\n"


def entry(name, query, result, more="", kind="mf:QueryEvaluationTest"):
    return f':{name} a {kind} ; mf:name "{name}" ; mf:action [ qt:query <{query}> {more} ] ; mf:result <{result}> .\n'


def manifest(*entries, name="tests/manifest.ttl", include=""):
    names = " ".join(text.split()[0] for text in entries)
    included = f"; mf:include ( {include} )" if include else ""
    return write(name, f"{MANIFEST}<> a mf:Manifest {included} ; mf:entries ( {names} ) .\n{''.join(entries)}")


def test_the_tests_of_a_manifest_pass_with_their_data_graphs_and_results(capsys):
    write("tests/a.rq", "SELECT ?o { <#s> <#p> ?o } ORDER BY ?o")
    write("tests/data.ttl", "<a.rq#s> <a.rq#p> 1, 2 .")
    ordered = ", ".join(f'[ rs:index {n} ; rs:binding [ rs:variable "o" ; rs:value {n} ] ]' for n in (1, 2))
    write("tests/a.ttl", f'{RESULTS} [] a rs:ResultSet ; rs:resultVariable "o" ; rs:solution {ordered} .')
    write("tests/b.rq", "SELECT ?g { GRAPH ?g { ?s ?p ?o } }")
    write("tests/named.nt", "<http://e/a> <http://e/b> <http://e/c> .")
    write("tests/b.srj", {"head": {"vars": ["g"]}, "results": {"bindings": []}})
    write("tests/c.rq", "CONSTRUCT { <x> ?p ?o } FROM <named.nt> { ?s ?p ?o }")
    write("tests/c.ttl", "<x> <http://e/b> <http://e/c> .")
    source = manifest(
        entry("a", "a.rq", "a.ttl", "; qt:data <data.ttl>"),
        entry("b", "b.rq", "b.srj", "; qt:graphData <named.nt>"),
        entry("c", "c.rq", "c.ttl"),
        entry("d", "a.rq", "a.ttl", kind="mf:NegativeSyntaxTest11"),
        entry("e", "missing.rq", "a.ttl"),
        entry("f", "../g.ttl", "a.ttl"),
    )

    cases, skipped = imported(capsys, "w3c-sparql", source)

    assert outcomes(cases) == {"a": "passed", "b": "failed", "c": "passed"}
    assert cases["a"].settings.policy.row_order == "strict"  # the result has indexes
    assert cases["b"].settings.policy.row_order == "auto"
    assert skipped["d"] == "it evaluates no query: NegativeSyntaxTest11"
    assert skipped["e"] == "missing.rq: no such file"
    assert skipped["f"] == "g.ttl: no such file"  # nothing above the manifest is read


def test_included_manifests_and_predictions_for_their_questions(capsys):
    write("tests/sub/a.rq", "ASK {}")
    write("tests/sub/a.srx", '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><boolean>true</boolean></sparql>')
    manifest(entry("a", "a.rq", "a.srx"), name="tests/sub/manifest.ttl")
    source = manifest(include="<sub/manifest.ttl> <manifest.ttl>")
    write("p.json", [{"id": "sub/a", "predicted": "ASK { ?s ?p ?o }"}])

    output, _ = imported(capsys, "w3c-sparql", source)
    asked, _ = imported(capsys, "w3c-sparql", "tests", "--predictions", "p.json")

    assert outcomes(output) == {"sub/a": "passed"}
    assert outcomes(asked) == {"sub/a": "failed"}


def test_hostile_rdf_and_other_files_are_no_manifests(capsys):
    bomb = '<!DOCTYPE r [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    write("tests/a.rq", "ASK {}")
    write("tests/bomb.rdf", bomb)
    write("tests/a.csv", "x\n1\n")
    source = manifest(
        entry("a", "a.rq", "a.csv", "; qt:data <bomb.rdf>"), entry("b", "a.rq", "bomb.rdf"), entry("c", "a.rq", "a.csv")
    )

    cases, skipped = imported(capsys, "w3c-sparql", source)

    assert list(cases) == ["c"]
    assert all(
        reason.startswith("the entity b is another file, contains another entity") for reason in skipped.values()
    )
    assert len(skipped) == 2
    assert "is not a manifest in Turtle" in refusal(capsys, "import", "w3c-sparql", write("x.ttl", "oops"), "-o", "o")


def test_no_result_becomes_a_file_that_pytest_runs_or_the_result_of_another_test(capsys):
    write("tests/a.rq", SIZES)
    write("tests/payload.py", "raise SystemExit")
    write("tests/payload.yaml", "cases: []")
    write("tests/one.srj", solutions("ulm")[0])
    write("tests/none.srj", solutions()[0])
    write("tests/damaged.srx", "<oops")
    Path("tests/latin.rq").write_bytes(b"# \xe4")
    results = {
        "conftest": "payload.py",
        "x.queryeval": "payload.yaml",
        "query": "a.rq",
        "damaged": "damaged.srx",
        "a-b": "one.srj",
        "a·b": "none.srj",
    }
    source = manifest(
        *(entry(name, "a.rq", result) for name, result in results.items()), entry("latin", "latin.rq", "one.srj")
    )

    cases, skipped = imported(capsys, "w3c-sparql", source)

    assert {id_: len(case.golds[0].answer.rows) for id_, case in cases.items()} == {"a-b": 1, "a-b-2": 0}
    assert skipped.keys() == {"conftest", "x.queryeval", "query", "damaged", "latin"}
    assert skipped["conftest"].startswith("unknown suffix of 'payload.py'")
    assert {path.suffix for path in Path("out/results").iterdir()} == {".srj"}


def test_manifests_that_include_what_is_not_there_and_lists_without_an_end(capsys):
    write("tests/a.rq", "ASK {}")
    write("tests/a.csv", "x\n1\n")
    iris = ("../up.ttl", "missing.ttl", "http://e/x", "\\u0000", "x" * 300)
    source = manifest(entry("c", "a.rq", "a.csv"), include=" ".join(f"<{iri}>" for iri in iris))

    cases, skipped = imported(capsys, "w3c-sparql", source)

    assert list(cases) == ["c"]
    assert len(skipped) == len(iris)
    for name in ("include", "entries"):
        prefix = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ."
        endless = write(f"{name}.ttl", f"{MANIFEST}{prefix} <> mf:{name} _:l . _:l rdf:first <a>; rdf:rest _:l .")
        assert f"mf:{name} is not a list" in refusal(capsys, "import", "w3c-sparql", endless, "-o", "o")
