"""All SPARQL engines give the same tables: two on files, two behind real servers, and any other of the registry."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import servers
from every_engine import SPARQL, source_on
from sparql_queries import ANSWERS, DIFFERENCES, FORMATS, NAMED, ORDERED, PREFIXES, QUERIES, TURTLE

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.table import IRI, Literal, Policy, Table
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.languages.sparql.portable import portable
from pytest_queryeval.metrics.execution_accuracy import execution_accuracy
from pytest_queryeval.sandbox.host import Hosts

pytestmark = pytest.mark.process

LOCAL = ("oxigraph", "rdflib")
LIVE = ("oxigraph server", "rdflib-endpoint") if "endpoint" in SPARQL else ()
ALL = (*LOCAL, *LIVE, *(name for name in SPARQL if name not in ("rdf", "endpoint")))
FILES = ("graph.ttl", "named.trig")
WRITTEN = {"oxigraph": "12.5", "rdflib": "12.50", "oxigraph server": "12.5", "rdflib-endpoint": "12.50"}
CARTESIAN = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?p ?q ?r }"


@pytest.fixture(scope="module")
def run(request, hosts, tmp_path_factory):
    """Runs a query on one of the engines, each of which is opened on first use and then kept."""
    folder = tmp_path_factory.mktemp("graph")
    for name, text in zip(FILES, (TURTLE, NAMED), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    engines = {}

    with ExitStack() as stack:

        def execute(name, query, timeout=20, max_rows=1000):
            if name not in engines:
                engines[name] = open_named(name, hosts, folder, stack, request)
                stack.callback(engines[name].close)
            return engines[name].execute(query, timeout=timeout, max_rows=max_rows)

        yield execute


def open_named(name, hosts, folder, stack, request):
    if name in SPARQL:
        source = stack.enter_context(source_on(name, folder, f"{TURTLE}\n{NAMED}", request))
        return ENGINES[name].open(source, hosts)
    files = [folder / file for file in FILES]
    if name in LOCAL:
        return opened_files(hosts, folder, files=list(FILES), engine=name)
    server = servers.oxigraph(folder / "store", files) if name == "oxigraph server" else servers.rdflib_endpoint(files)
    return opened_url(hosts, folder, stack.enter_context(server))


def opened_files(hosts, folder, **settings):
    return ENGINES["rdf"].open(Source(name="g", engine="rdf", settings=settings, folder=folder), hosts)


def opened_url(hosts, folder, url):
    return ENGINES["endpoint"].open(Source(name="e", engine="endpoint", settings={"url": url}, folder=folder), hosts)


def agree(gold, predicted, name):
    policy = Policy(text_numbers=True, row_order="strict" if name in ORDERED else "auto")
    return execution_accuracy(gold, predicted, policy=policy) == 1.0


def cases(engines, names):
    """Each query on each engine; a difference that is known is expected to stay."""
    return [
        pytest.param(engine, name, id=f"{engine}: {name}", marks=differs(engine, name))
        for engine in engines
        for name in names
    ]


def differs(engine, name):
    reason, *engines = DIFFERENCES.get(name, ("",))
    return [pytest.mark.xfail(reason=reason, raises=(AssertionError, SourceError))] if engine in engines else []


@pytest.mark.parametrize(("engine", "name"), cases(ALL[1:], QUERIES))
def test_every_engine_gives_the_table_that_oxigraph_gives(run, engine, name):
    gold = run("oxigraph", QUERIES[name])

    execution = run(engine, QUERIES[name])

    assert (gold.error, execution.error) == (None, None)
    assert execution.answer.columns == gold.answer.columns
    assert execution.answer.is_graph is gold.answer.is_graph
    assert agree(gold.answer, execution.answer, name), (gold.answer.rows, execution.answer.rows)


@pytest.mark.parametrize(("engine", "name"), cases(ALL, ANSWERS))
def test_answers_are_those_that_the_graph_holds(run, engine, name):
    columns, rows = ANSWERS[name]

    execution = run(engine, QUERIES[name])

    assert execution.error is None
    assert execution.answer.columns == columns
    expected = Table(columns=columns, rows=rows, is_graph=execution.answer.is_graph)
    assert agree(expected, execution.answer, name), execution.answer.rows


@pytest.mark.parametrize("engine", ALL)
def test_execution_names_the_engine_that_answered(run, engine):
    execution = run(engine, "ASK {}")

    assert execution.engine == (engine if engine in LOCAL else "endpoint")
    assert execution.seconds > 0


@pytest.mark.parametrize(("engine", "written"), [(name, text) for name, text in WRITTEN.items() if name in ALL])
def test_numbers_are_written_as_in_the_file_but_for_oxigraph_which_keeps_the_shortest_form(run, engine, written):
    (price,) = run(engine, f"{PREFIXES} SELECT ?p {{ :c1 :price ?p }}").answer.rows[0]

    assert price.lexical == written


@pytest.mark.parametrize("engine", ALL)
def test_datatype_and_language_of_texts_are_those_of_rdf_1_1(run, engine):
    query = f'{PREFIXES} SELECT ?t {{ VALUES ?t {{ "a" "a"^^xsd:string "a"@EN-gb "5"^^xsd:integer }} }}'

    table = {cell for (cell,) in run(engine, query).answer.rows}

    integer = Literal("5", "http://www.w3.org/2001/XMLSchema#integer")
    assert table == {Literal("a"), Literal("a", "", "en-gb"), integer}


@pytest.mark.parametrize("engine", ALL)
def test_one_row_more_than_allowed_is_too_large(run, engine):
    query = f"{PREFIXES} SELECT ?c {{ ?c a :Concert }}"

    allowed = run(engine, query, max_rows=4)
    refused = run(engine, query, max_rows=3)

    assert len(allowed.answer.rows) == 4
    assert refused.answer is None
    assert (refused.error.kind, refused.error.message) == (
        "too_large",
        "more than 3 rows: raise `max_rows` if there may be more",
    )


@pytest.mark.parametrize("engine", ALL)
def test_graph_of_more_triples_than_allowed_is_too_large(run, engine):
    query = f"{PREFIXES} CONSTRUCT {{ ?c a :Thing }} {{ ?c a :Concert }}"

    allowed = run(engine, query, max_rows=4)
    refused = run(engine, query, max_rows=3)

    assert len(allowed.answer.rows) == 4
    assert refused.error.kind == "too_large"


@pytest.mark.parametrize(
    ("engine", "quoted"),
    [
        ("oxigraph", "error at 1:25: expected one of FILTER"),
        ("rdflib", "Expected SelectQuery, found"),
        pytest.param(
            "oxigraph server",
            "HTTP 400 Bad Request: error at 1:25: expected one of FILTER",
            marks=pytest.mark.feature("sparql_endpoint"),
        ),
        pytest.param("rdflib-endpoint", "HTTP 400 Bad Request: ", marks=pytest.mark.feature("sparql_endpoint")),
    ],
)
def test_query_that_does_not_parse_is_invalid_and_the_parser_is_quoted(run, engine, quoted):
    error = run(engine, "SELECT ?x WHERE { ?x a }").error

    assert error.kind == "invalid"
    assert error.message.startswith(quoted)
    assert error.message.isprintable()


@pytest.mark.parametrize("engine", ALL)
def test_a_prefix_that_a_query_does_not_declare_is_named_without_a_list_of_the_grammar(run, engine):
    error = run(engine, "SELECT ?x WHERE { ?x house:label ?label }").error

    assert error.kind == "invalid"
    assert "the prefix house: is not declared: add `PREFIX house: <…>` to the query" in error.message
    assert "expected" not in error.message


@pytest.mark.parametrize("engine", LOCAL)
def test_cartesian_product_ends_in_time_and_the_next_query_answers(run, engine):
    run(engine, "ASK {}")
    began = time.monotonic()

    late = run(engine, CARTESIAN, timeout=1)
    elapsed = time.monotonic() - began
    following = run(engine, "ASK {}")

    assert late.error.kind == "timeout"
    assert elapsed < 10
    assert following.answer.rows == [(True,)]


def test_second_engine_answers_what_the_first_refuses(hosts, tmp_path):
    (tmp_path / "g.ttl").write_text(TURTLE, encoding="utf-8")
    both = opened_files(hosts, tmp_path, files="g.ttl", engine=["oxigraph", "rdflib"])
    cast = f'{PREFIXES} SELECT (xsd:int("5") AS ?x) {{}}'

    alone = opened_files(hosts, tmp_path, files="g.ttl").execute(cast, timeout=5, max_rows=10)
    second = both.execute(cast, timeout=20, max_rows=10)
    first = both.execute("ASK {}", timeout=20, max_rows=10)
    neither = both.execute("ASK {", timeout=20, max_rows=10)

    assert alone.error.kind == neither.error.kind == "invalid"
    assert (first.engine, second.engine) == ("oxigraph", "rdflib")
    assert [cell.lexical for cell in second.answer.rows[0]] == ["5"]
    assert "oxigraph" in neither.error.message
    assert "rdflib" in neither.error.message


@pytest.mark.parametrize(
    ("engine", "query"),
    [
        ("rdflib", "SELECT * { VALUES ?x { } }"),
        ("rdflib", "DESCRIBE * { ?s ?p ?o }"),
        ("rdflib", "SELECT (NOT EXISTS { ?s ?p ?o } AS ?x) {}"),
    ],
)
def test_a_query_of_sparql_that_an_engine_cannot_read_is_an_error_of_the_engine(hosts, tmp_path, engine, query):
    (tmp_path / "g.ttl").write_text(TURTLE, encoding="utf-8")

    with pytest.raises(SourceError, match=f"^source 'g': {engine} refuses a query that oxigraph reads: .*; write `eng"):
        opened_files(hosts, tmp_path, files="g.ttl", engine=engine).execute(query, timeout=20, max_rows=1000)
    both = opened_files(hosts, tmp_path, files="g.ttl", engine=[engine, "oxigraph"])
    assert both.execute(query, timeout=20, max_rows=1000).error is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?s ?p ?o ?s ?q ?r }",  # no dot
        "SELECT * { ?s ?p ?o FILTER ?o }",
        "SELECT * { ?s :.b ?o }",
        "SELECT (COUNT(?s) AS ?n) ?s { ?s ?p ?o }",
        "SELECT ?s { ?s ?p ?o } LIMIT 1 LIMIT 2",
        "SELECT * { ?s :a.b.c. ?o }",
    ],
)
def test_what_sparql_does_not_allow_stays_invalid(run, query):
    assert run("oxigraph", f"{PREFIXES} {query}").error.kind == "invalid"


@pytest.mark.parametrize("name", ["select", "values with undef", "contains", "made terms", "star over a sub-select"])
def test_a_query_that_every_engine_reads_is_sent_as_it_is(name):
    assert portable(QUERIES[name]) == QUERIES[name]


def test_columns_that_double_earlier_ones_do_not_make_a_query_that_fills_the_memory():
    columns = "".join(f"(?c{number} + ?c{number} AS ?c{number + 1}) " for number in range(1, 18))
    query = f"SELECT (COUNT(*) AS ?c1) {columns} {{ ?s ?p ?o }}"

    assert len(portable(query)) < 20_000


@pytest.mark.parametrize("engine", LOCAL)
@pytest.mark.parametrize("file", FORMATS)
def test_all_formats_give_the_same_graph(hosts, tmp_path, engine, file):
    (tmp_path / file).write_text(FORMATS[file], encoding="utf-8")
    everything = "SELECT ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"

    rows = (
        opened_files(hosts, tmp_path, files=file, engine=engine)
        .execute(everything, timeout=20, max_rows=10)
        .answer.rows
    )

    a, b = IRI("http://e/a"), IRI("http://e/b")
    assert sorted(rows, key=repr) == sorted([(a, b, Literal("ü", "", "de")), (a, b, a)], key=repr)


def test_files_are_merged_and_blank_nodes_of_each_stay_apart(hosts, tmp_path):
    (tmp_path / "one.ttl").write_text("_:x <http://e/b> 1 . <http://e/a> <http://e/b> 2 .")
    (tmp_path / "two.nt").write_text("_:x <http://e/b> <http://e/a> .\n<http://e/a> <http://e/b> <http://e/a> .\n")
    engine = opened_files(hosts, tmp_path, files=["one.ttl", "two.nt"])

    answer = engine.execute("SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?d) { ?s ?p ?o }", timeout=5, max_rows=10)

    assert [cell.lexical for cell in answer.answer.rows[0]] == ["4", "3"]


def test_second_run_finds_the_parsed_graph_also_under_another_name(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    actual = []

    for name in ("one.ttl", "one.ttl", "other.ttl"):
        (tmp_path / name).write_text("<http://e/a> <http://e/b> 1 .")
        with Hosts() as hosts:
            assert opened_files(hosts, tmp_path, files=name).execute("ASK { ?s ?p 1 }", timeout=5, max_rows=1).answer
        actual.append({path: path.stat().st_ino for path in (tmp_path / "cache/pytest-queryeval").rglob("*.sst")})

    assert actual[0]
    assert actual[0] == actual[1] == actual[2]


def test_changed_file_is_parsed_again(hosts, tmp_path):
    answers = []

    for number in (1, 2):
        (tmp_path / "g.ttl").write_text(f"<http://e/a> <http://e/b> {number} .")
        engine = opened_files(hosts, tmp_path, files="g.ttl")
        answers.append(engine.execute("SELECT ?o { ?s ?p ?o }", timeout=5, max_rows=10).answer.rows[0][0].lexical)

    assert answers == ["1", "2"]


def test_graph_that_many_open_at_once_is_parsed_once(hosts, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "g.ttl").write_text(TURTLE, encoding="utf-8")

    with ThreadPoolExecutor(8) as threads:
        engines = list(threads.map(lambda _: opened_files(hosts, tmp_path, files="g.ttl"), range(8)))

    assert all(engine.execute("ASK {}", timeout=20, max_rows=1).answer.rows == [(True,)] for engine in engines)
    assert len(list((tmp_path / "cache").rglob("CURRENT"))) == 1


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        (
            "bad.ttl",
            "<http://e/a> <http://e/b> 1 .\n\n<http://e/a> 2 3 .",
            r"bad\.ttl:3:14: 2 is not a valid predicate",
        ),
        (
            "a.ttl",
            "<http://e/a> <http://e/b> 1 # one\n\n# two\n<http://e/a> <http://e/b> 2 .",
            r"a\.ttl:1:34: A dot is",
        ),
        ("b.ttl", "@prefix : <http://e/> .\n:a :b 1 ;\n   :c 2\n:d :e 3 .", r"b\.ttl:3:8: A dot is expected"),
        ("c.ttl", "@prefix : <http://e/>\n:a :b 1 .", r"c\.ttl:1:22: A dot is expected"),
        ("d.ttl", "<http://e/a> <http://e/b> 1\n\n\n", r"d\.ttl:1:28: Unexpected end"),
        (
            "e.ttl",
            "@prefix : <http://e/> .\n:a :b 'x .\n:a :b 3 .",
            r"e\.ttl:2:7: the string that begins here is not",
        ),
        ("f.ttl", "@prefix : <http://e/> .\n:a :b\n .\n:a :b 3 .", r"f\.ttl:3:2: \. is not a valid RDF object"),
        ("a.nt", "<http://e/a> <http://e/b> <http://e/c>\n<http://e/a> <http://e/b> <http://e/c> .", r"a\.nt:1:39: "),
        ("bad.nt", "<http://e/a> <http://e/b> 1 .", r"bad\.nt:1"),
        ("bad.rdf", "<rdf:RDF", r"bad\.rdf"),
        ("bad.trig", "<http://e/g> {\n oh", r"bad\.trig:2"),
        ("bad.jsonld", '{"@id": ', r"bad\.jsonld"),
        ("bad.xyz", "", r"bad\.xyz: .*\.ttl"),
    ],
)
def test_file_that_cannot_be_parsed_is_named_with_its_line(hosts, tmp_path, file, text, reason):
    (tmp_path / file).write_text(text)

    with pytest.raises(SourceError, match=f"^source 'g': .*{reason}"):
        opened_files(hosts, tmp_path, files=file)


@pytest.mark.parametrize(
    ("name", "reason"), [("gone.ttl", r"gone\.ttl: no such file"), ("folder.ttl", "a directory, not a file")]
)
def test_what_is_no_file_is_a_source_error(hosts, tmp_path, name, reason):
    (tmp_path / "folder.ttl").mkdir()

    with pytest.raises(SourceError, match=reason):
        opened_files(hosts, tmp_path, files=name)
