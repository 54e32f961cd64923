"""Stored answers of SPARQL queries, and how people write terms into tables."""

import json

import pytest
from suites import case, enter, problem

from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table, TripleTerm, replace_blank_nodes
from pytest_queryeval.languages.sparql import stated_term
from pytest_queryeval.languages.sparql.results import read_results
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy

XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = "kind: sparql\nsource: a.ttl\n"
COLUMNS = ("x", "y")
ROWS = [
    (IRI("http://e/a"), Literal("5", f"{XSD}integer")),
    (BlankNode("b0"), Literal(" hé\t<llo> ", "", "en")),
    (None, Literal("plain")),
]
SRJ = {
    "head": {"vars": ["x", "y"]},
    "results": {
        "bindings": [
            {"x": {"type": "uri", "value": "http://e/a"},
             "y": {"type": "literal", "value": "5", "datatype": f"{XSD}integer"}},
            {"x": {"type": "bnode", "value": "b0"}, "y": {"type": "literal", "value": " hé\t<llo> ", "xml:lang": "EN"}},
            {"y": {"type": "typed-literal", "value": "plain", "datatype": f"{XSD}string"}},
        ]
    },
}  # fmt: skip
SRX = f"""<?xml version="1.0"?>
<sparql xmlns="http://www.w3.org/2005/sparql-results#">
  <head><variable name="x"/><variable name="y"/><link href="metadata.rdf"/></head>
  <results>
    <result>
      <binding name="x"><uri>http://e/a</uri></binding>
      <binding name="y"><literal datatype="{XSD}integer">5</literal></binding>
    </result>
    <result>
      <binding name="x"><bnode>b0</bnode></binding>
      <binding name="y"><literal xml:lang="en"> hé\t&lt;llo> </literal></binding>
    </result>
    <result><binding name="y"><literal>plain</literal></binding></result>
  </results>
</sparql>"""
TSV = f'?x\t?y\n<http://e/a>\t"5"^^<{XSD}integer>\n_:b0\t" hé\\t<llo> "@en\n\t"plain"\n'


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


@pytest.mark.parametrize(("suffix", "text"), [(".srj", json.dumps(SRJ)), (".srx", SRX), (".tsv", TSV)])
def test_every_format_gives_the_same_table(suffix, text):
    answer = read_results(text, suffix)

    assert (answer.columns, list(answer.rows)) == (COLUMNS, ROWS)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".srj", '{"head": {}, "boolean": false}'),
        (".srx", '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/><boolean>false</boolean></sparql>'),
    ],
)
def test_the_answer_of_ask_is_a_boolean(suffix, text):
    answer = read_results(text, suffix)

    assert (answer.columns, answer.rows) == (("boolean",), [(False,)])


@pytest.mark.parametrize(
    ("suffix", "text", "reason"),
    [
        (".srj", "", "is not a SPARQL JSON result: Expecting value"),
        (".srj", '{"head": {"vars": ["x"]}, "results": {"bindings": [', "is not a SPARQL JSON result: Expecting value"),
        (".srj", '{"head": {"vars": ["x"]}}', "it lacks 'results'"),
        (".srj", "[]", "it has another shape"),
        (".srj", '{"boolean": "true"}', "it has another shape"),
        (".srj", "[" * 100_000, "it is nested too deeply"),
        (".srj", '{"head": {"vars": []}, "results": {"bindings": [{"x": {"type": "uri", "value": ""}}]}}', "binds x"),
        (".srj", '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "url", "value": ""}}]}}', "'url'"),
        (".srx", "", "no element found"),
        (".srx", "<html/>", "the element html is not of"),
        (".srx", SRX[:-20], "is not a SPARQL XML result"),
        (".srx", '<!DOCTYPE s [<!ENTITY a "b">]><sparql/>', "a DOCTYPE is not allowed"),
        (".tsv", "x\ty\n1\t2\n", "is not a SPARQL TSV result"),
        (".tsv", "?x\n<http://e/a\n", "is not a SPARQL TSV result"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_said(suffix, text, reason):
    with pytest.raises(ValueError, match=reason):
        read_results(text, suffix)


def inner(subject, object_):
    return {"subject": subject, "predicate": {"type": "uri", "value": "a:c"}, "object": object_}


DIRECTED = {"type": "literal", "value": 'd"', "xml:lang": "AR", "its:dir": "rtl"}
NESTED = {"type": "triple", "value": inner({"type": "uri", "value": "a:b"}, DIRECTED)}
TRIPLE = {"type": "triple", "value": inner({"type": "bnode", "value": "n"}, NESTED)}
TRIPLE_SRJ = json.dumps({"head": {"vars": ["t"]}, "results": {"bindings": [{"t": TRIPLE}]}})
TRIPLE_SRX = """<sparql xmlns="http://www.w3.org/2005/sparql-results#" xmlns:its="http://www.w3.org/2005/11/its">
  <head><variable name="t"/></head>
  <results><result><binding name="t"><triple>
    <subject><bnode>n</bnode></subject>
    <predicate><uri>a:c</uri></predicate>
    <object><triple>
      <subject><uri>a:b</uri></subject>
      <predicate><uri>a:c</uri></predicate>
      <object><literal xml:lang="ar" its:dir="rtl" its:version="2.0">d"</literal></object>
    </triple></object>
  </triple></binding></result></results>
</sparql>"""
TRIPLE_TSV = '?t\n<<( _:n <a:c> <<( <a:b> <a:c> "d\\""@ar--rtl )>> )>>\n'


@pytest.mark.parametrize(("suffix", "text"), [(".srj", TRIPLE_SRJ), (".srx", TRIPLE_SRX), (".tsv", TRIPLE_TSV)])
def test_triple_terms_and_the_direction_of_texts_are_read(suffix, text):
    ((term,),) = read_results(text, suffix).rows

    nested = TripleTerm(IRI("a:b"), IRI("a:c"), Literal('d"', "", "ar--rtl"))
    if suffix == ".tsv":  # whose blank nodes get other labels
        term = replace_blank_nodes(term, lambda _: BlankNode("n"))
    assert term == TripleTerm(BlankNode("n"), IRI("a:c"), nested)
    assert to_jsonable(term) == '<<( _:n <a:c> <<( <a:b> <a:c> "d""@ar--rtl )>> )>>'


def test_the_direction_of_a_text_can_be_stated_and_counts_where_terms_are_strict():
    left, right, plain = (stated_term(f'"x"@en{end}') for end in ("--ltr", "--rtl", ""))
    strict = Policy(rdf_terms="strict")

    def equal(x, y, policy):
        gold, predicted = (Table(columns=("t",), rows=[(term,)]) for term in (x, y))
        return execution_accuracy(gold, predicted, policy=policy) == 1.0

    assert left == Literal("x", "", "en--ltr")
    assert equal(left, left, strict)
    assert not equal(left, right, strict)
    assert not equal(left, plain, strict)
    assert equal(left, plain, Policy())


@pytest.mark.parametrize(
    ("suffix", "text", "reason"),
    [
        (".srj", "deep", "it is nested too deeply"),
        (".srx", "deep", "it is nested too deeply"),
        (".srx", TRIPLE_SRX.replace("<subject><uri>a:b</uri></subject>", ""), "a triple has no subject"),
        (".srj", TRIPLE_SRJ.replace('"predicate"', '"verb"'), "it lacks 'predicate'"),
    ],
)
def test_triple_terms_that_are_none_are_refused(suffix, text, reason):
    if text == "deep":
        term = {"type": "uri", "value": "a:b"}
        for _ in range(60):
            term = {"type": "triple", "value": inner(term, DIRECTED)}
        text = json.dumps({"head": {"vars": ["t"]}, "results": {"bindings": [{"t": term}]}})
        if suffix == ".srx":
            text = TRIPLE_SRX.partition("<triple>")[0] + "<triple><subject>" * 60

    with pytest.raises(ValueError, match=reason):
        read_results(text, suffix)


@pytest.mark.parametrize("name", ["a.srj", "a.srx", "a.tsv"])
def test_a_case_reads_its_gold_from_a_stored_result(working_folder, name):
    text = {"a.srj": json.dumps(SRJ), "a.srx": SRX, "a.tsv": TSV}[name]
    (working_folder / name).write_text(text, encoding="utf-8")

    (stated_case,) = case(f"gold_file: {name}", head=HEAD).golds

    assert stated_case.query is None
    assert list(stated_case.answer.rows) == ROWS


def test_csv_results_write_iris_bare(working_folder):
    (working_folder / "a.csv").write_text("x,y\nhttp://e/a,5\n_:b0,text\n,urn:x:1\n", encoding="utf-8")

    (stated_case,) = case("gold_file: a.csv", head=HEAD).golds

    assert stated_case.answer.rows == [(IRI("http://e/a"), 5), (BlankNode("b0"), "text"), (None, IRI("urn:x:1"))]


def test_tables_in_a_suite_mark_iris_and_blank_nodes(working_folder):
    table = "gold_table: {columns: [x, y], rows: [['<http://e/a>', 5], ['_:b0', 'http://e/a']]}"

    (stated_case,) = case(table, head=HEAD).golds
    (plain,) = case(table).golds

    assert stated_case.answer.rows == [(IRI("http://e/a"), 5), (BlankNode("b0"), IRI("http://e/a"))]
    assert plain.answer.rows[0] == ("<http://e/a>", 5)


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ('"Nana"@FR', Literal("Nana", "", "fr")),
        ('"5"^^xsd:integer', Literal("5", f"{XSD}integer")),
        ('"5"^^<http://e/unit>', Literal("5", "http://e/unit")),
        ('"http://e/a"', Literal("http://e/a")),
        (r'"a \"b\"\n"', Literal('a "b"\n')),
        ('"open', '"open'),
        ("urn:x:1", IRI("urn:x:1")),
        ("a: b", "a: b"),
        ("", ""),
    ],
)
def test_terms_in_a_suite_are_written_as_in_sparql(written, term):
    assert stated_term(written) == term


def test_a_broken_file_is_reported_at_its_key(working_folder):
    (working_folder / "a.srx").write_text("<html/>", encoding="utf-8")

    assert problem("gold_file: a.srx", head=HEAD).startswith("a.srx: is not a SPARQL XML result: the element html")


@pytest.mark.parametrize("text", ["--5", "1_000", "\u0665", "²", "5 apples", "", "0x5", "1e99999", "+-1"])
def test_what_is_no_number_is_compared_as_text(text):
    typed = Table(columns=("x",), rows=[(Literal(text, f"{XSD}integer"),)])
    number = Table(
        columns=("x",),
        rows=[
            (Literal("5", f"{XSD}integer"),),
        ],
    )

    assert execution_accuracy(typed, typed) == 1
    assert execution_accuracy(typed, number) == 0
    assert execution_accuracy(number, typed) == 0


def test_stored_and_executed_answers_are_equal_by_value():
    stored = read_results(json.dumps(SRJ), ".srj")
    second = read_results(SRX.replace(">5<", ">05.0<").replace("integer", "decimal"), ".srx")

    assert execution_accuracy(stored, second) == 1
