"""Stored answers of SPARQL queries, as files and as people write terms into tables."""

import json

import pytest
from suites import case, enter, problem

from pytest_queryeval import METRICS, evaluate, load_cases
from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table, TripleTerm, replace_blank_nodes

XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = "kind: sparql\nsource: a.ttl\n"
RESULT_SET = "@prefix rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> . @prefix : <http://e/> .\n"
COLUMNS = ("x", "y")
ROWS = [
    (IRI("http://e/a"), Literal("5", f"{XSD}integer")),
    (BlankNode("b0"), Literal(" hé\t<llo> ", "", "en")),
    (None, Literal("plain")),
]
SRJ = json.dumps(
    {
        "head": {"vars": ["x", "y"]},
        "results": {
            "bindings": [
                {
                    "x": {"type": "uri", "value": "http://e/a"},
                    "y": {"type": "literal", "value": "5", "datatype": f"{XSD}integer"},
                },
                {
                    "x": {"type": "bnode", "value": "b0"},
                    "y": {"type": "literal", "value": " hé\t<llo> ", "xml:lang": "EN"},
                },
                {"y": {"type": "typed-literal", "value": "plain", "datatype": f"{XSD}string"}},
            ]
        },
    }
)
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


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


@pytest.fixture
def stored(working_folder):
    """Returns the answer that a file has as the gold of a case."""

    def answer(text, suffix):
        (working_folder / f"a{suffix}").write_text(text, encoding="utf-8")
        (gold,) = case(f"gold_file: a{suffix}", head=HEAD).golds
        assert gold.query is None
        return gold.answer

    return answer


def accuracy(gold, predicted, policy=None):
    return METRICS["execution_accuracy"].function(gold, predicted, policy=policy or Policy())


@pytest.mark.parametrize(("suffix", "text"), [(".srj", SRJ), (".srx", SRX), (".tsv", TSV)])
def test_every_format_gives_the_same_table(stored, suffix, text):
    answer = stored(text, suffix)

    assert (answer.columns, list(answer.rows)) == (COLUMNS, ROWS)


@pytest.mark.parametrize(
    ("suffix", "text", "value"),
    [
        (".srj", '{"head": {}, "boolean": false}', False),
        (
            ".srx",
            '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/><boolean>false</boolean></sparql>',
            False,
        ),
        (".ttl", f"{RESULT_SET} [] a rs:ResultSet ; rs:boolean true .", True),
        (".ttl", f"{RESULT_SET} [] a rs:ResultSet ; rs:boolean false .", False),
        (".ttl", f'{RESULT_SET} [] a rs:ResultSet ; rs:boolean "1"^^<{XSD}boolean> .', True),
    ],
)
def test_the_answer_of_ask_is_a_boolean(stored, suffix, text, value):
    answer = stored(text, suffix)

    assert (answer.columns, list(answer.rows)) == (("boolean",), [(value,)])


def binding(variable, value):
    return f'rs:binding [ rs:variable "{variable}" ; rs:value {value} ]'


def test_a_result_set_in_turtle_is_a_table_with_gaps_where_nothing_is_bound(stored):
    table = stored(
        f"""{RESULT_SET} [] a rs:ResultSet ; rs:resultVariable "name", "age", "who" ;
        rs:solution [ {binding("name", '"Ann"@en')} ; {binding("who", ":a")} ; rs:index 1 ] ,
                    [ {binding("name", '"Bob"')} ; {binding("age", "7")} ; {binding("who", "_:b")} ; rs:index 2 ] .""",
        ".ttl",
    )

    assert table.columns == ("name", "age", "who")
    assert table.rows[0] == (Literal("Ann", language="en"), None, IRI("http://e/a"))
    assert table.rows[1][:2] == (Literal("Bob"), Literal("7", f"{XSD}integer"))
    assert isinstance(table.rows[1][2], BlankNode)
    assert not table.is_graph


def test_rows_are_in_the_order_of_their_indexes(stored):
    solutions = ", ".join(f"[ {binding('n', n)} ; rs:index {n} ]" for n in (10, 2, 1))

    table = stored(f'{RESULT_SET} [] a rs:ResultSet ; rs:resultVariable "n" ; rs:solution {solutions} .', ".ttl")

    assert [cell.lexical for (cell,) in table.rows] == ["1", "2", "10"]


def test_anything_else_in_turtle_is_a_graph(stored):
    table = stored("<http://e/a> <http://e/p> _:x .\n<http://e/a> <http://e/p> _:x .\n", ".nt")

    assert table.is_graph
    assert len(table.rows) == 1
    assert stored("", ".ttl").rows == []


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


def deep_srj():
    term = {"type": "uri", "value": "a:b"}
    for _ in range(60):
        term = {"type": "triple", "value": inner(term, DIRECTED)}
    return json.dumps({"head": {"vars": ["t"]}, "results": {"bindings": [{"t": term}]}})


@pytest.mark.parametrize(
    ("suffix", "text", "reason"),
    [
        (".srj", "[" * 100_000, "it is nested too deeply"),
        (".srj", deep_srj(), "it is nested too deeply"),
        (".srx", TRIPLE_SRX.partition("<triple>")[0] + "<triple><subject>" * 60, "it is nested too deeply"),
        (".srx", TRIPLE_SRX.replace("<subject><uri>a:b</uri></subject>", ""), "a triple has no subject"),
        (".tsv", "?x\n<http://e/a\n", "is not a SPARQL TSV result"),
        (".ttl", f"<a:a> <a:b> {'<<( <a:a> <a:b> ' * 100_000}<a:c>{' )>>' * 100_000} .", "deeper than 1,000 levels"),
    ],
    ids=["lists", "triples", "elements", "no subject", "tsv", "triple terms"],
)
def test_a_file_that_is_nested_or_damaged_is_refused(working_folder, suffix, text, reason):
    (working_folder / f"a{suffix}").write_text(text, encoding="utf-8")

    message = problem(f"gold_file: a{suffix}", head=HEAD)

    assert message.startswith(f"a{suffix}: ")
    assert reason in message


def test_triples_that_only_look_deep_are_read(stored):
    def nested(depth, inner="<urn:c>"):
        return f"<urn:a> <urn:b> {'<<( <urn:a> <urn:b> ' * depth}{inner}{' )>>' * depth} ."

    for text in (nested(500), f"{nested(1)}\n" * 2_000, nested(1, f'"{"cout << " * 2_000}"'), f"# {'<< ' * 2_000}\n"):
        assert stored(text, ".ttl").is_graph


@pytest.mark.parametrize(("suffix", "text"), [(".srj", TRIPLE_SRJ), (".srx", TRIPLE_SRX), (".tsv", TRIPLE_TSV)])
def test_triple_terms_and_the_direction_of_texts_are_read(stored, suffix, text):
    ((term,),) = stored(text, suffix).rows

    nested = TripleTerm(IRI("a:b"), IRI("a:c"), Literal('d"', "", "ar--rtl"))
    if suffix == ".tsv":  # whose blank nodes get other labels
        term = replace_blank_nodes(term, lambda _: BlankNode("n"))
    assert term == TripleTerm(BlankNode("n"), IRI("a:c"), nested)
    assert to_jsonable(term) == '<<( _:n <a:c> <<( <a:b> <a:c> "d""@ar--rtl )>> )>>'


def test_csv_results_write_iris_bare(stored):
    answer = stored("x,y\nhttp://e/a,5\n_:b0,text\n,urn:x:1\n", ".csv")

    assert answer.rows == [(IRI("http://e/a"), 5), (BlankNode("b0"), "text"), (None, IRI("urn:x:1"))]


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("<http://e/a>", IRI("http://e/a")),
        ("http://e/a", IRI("http://e/a")),
        ("_:b0", BlankNode("b0")),
        ('"Nana"@FR', Literal("Nana", "", "fr")),
        ('"x"@en--ltr', Literal("x", "", "en--ltr")),
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
    table = f"gold_table: {{columns: [x, y], rows: [[{json.dumps(written)}, 5]]}}"

    (gold,) = case(table, head=HEAD).golds
    (plain,) = case(table).golds

    assert gold.answer.rows == [(term, 5)]
    assert plain.answer.rows == [(written, 5)]  # of SQL


def test_the_direction_of_a_text_counts_where_terms_are_strict():
    left, right, plain = (
        Table(columns=("t",), rows=[(Literal("x", "", f"en{end}"),)]) for end in ("--ltr", "--rtl", "")
    )
    strict = Policy(rdf_terms="strict")

    assert [accuracy(left, other, strict) for other in (left, right, plain)] == [1.0, 0.0, 0.0]
    assert accuracy(left, plain) == 1.0


@pytest.mark.parametrize("text", ["--5", "1_000", "\u0665", "²", "5 apples", "", "0x5", "1e99999", "+-1"])
def test_what_is_no_number_is_compared_as_text(text):
    typed, number = (Table(columns=("x",), rows=[(Literal(lexical, f"{XSD}integer"),)]) for lexical in (text, "5"))

    assert accuracy(typed, typed) == 1
    assert accuracy(typed, number) == accuracy(number, typed) == 0


def test_stored_answers_are_equal_by_value(stored):
    first = stored(SRJ, ".srj")

    assert accuracy(first, stored(SRX.replace(">5<", ">05.0<").replace("integer", "decimal"), ".srx")) == 1


def test_a_stored_graph_is_the_gold_of_construct_and_never_of_select(tmp_path):
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/p> [ <http://e/q> 1 ] .", encoding="utf-8")
    (tmp_path / "gold.ttl").write_text("<http://e/a> <http://e/p> _:z . _:z <http://e/q> 1.0 .", encoding="utf-8")
    queries = {
        "graph": "CONSTRUCT WHERE { ?s ?p ?o }",
        "rows": "SELECT ?subject ?predicate ?object { ?subject ?predicate ?object }",
        "less": "CONSTRUCT { ?s <http://e/p> ?o } WHERE { ?s <http://e/p> ?o }",
    }
    cases = "".join(f"  - {{id: {id_}, predicted: '{query}', gold_file: gold.ttl}}\n" for id_, query in queries.items())
    (tmp_path / "s.queryeval.yaml").write_text(f"kind: sparql\nsource: g.ttl\ncases:\n{cases}", encoding="utf-8")

    report = evaluate(load_cases(tmp_path))

    scores = {case["id"]: case["scores"]["execution_accuracy"] for case in report["cases"]}
    assert scores == {"graph": 1.0, "rows": 0.0, "less": 0.0}


REIFIED = """PREFIX : <http://e/>
_:n :name "x"@en--ltr ; :says <<( _:n :knows _:m )>> .
_:m :name "y" ; :says <<( _:m :knows <<( :a :b _:n )>> )>> ."""


def test_graphs_whose_triple_terms_hold_blank_nodes_are_equal_up_to_their_labels(stored):
    other_labels = REIFIED.replace("_:n", "_:q").replace("_:m", "_:n").replace("_:q", "_:m")
    gold = stored(REIFIED, ".ttl")

    assert accuracy(gold, stored(other_labels, ".ttl")) == 1.0
    assert accuracy(gold, stored(REIFIED.replace(":b _:n", ":b _:m"), ".ttl")) == 0.0
    assert Literal("x", "", "en--ltr") in {cell for row in gold.rows for cell in row}


@pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])
def test_engines_answer_with_triple_terms_whose_blank_nodes_match(engine, tmp_path):
    right = """?who\t?what
_:a\t<<( _:a <http://e/knows> _:b )>>
_:b\t<<( _:b <http://e/knows> <<( <http://e/a> <http://e/b> _:a )>> )>>
"""
    (tmp_path / "a.ttl").write_text(REIFIED)
    (tmp_path / "right.tsv").write_text(right)
    (tmp_path / "wrong.tsv").write_text(right.replace("_:a", "_:b", 1))
    query = "PREFIX e: <http://e/> SELECT ?who ?what { ?who e:says ?what }"
    cases = [{"id": name, "gold_file": f"{name}.tsv", "predicted": query} for name in ("right", "wrong")]
    suite = {"kind": "sparql", "source": {"rdf": {"files": "a.ttl", "engine": engine}}, "cases": cases}
    (tmp_path / "s.queryeval.yaml").write_text(json.dumps(suite))

    report = evaluate(load_cases(tmp_path))

    assert [case["scores"]["execution_accuracy"] for case in report["cases"]] == [1.0, 0.0]
