from pathlib import Path

import pytest
from suites import case, enter, load, problem, problems, top_problem

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.core.metric import Metric
from pytest_queryeval.core.model import PredictorSpec, QueryOrAnswer, Source
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.predictors.file.predictions import LINES_SUFFIXES, READERS
from pytest_queryeval.suites.predictors import predictor_of_text

ENDPOINT = pytest.mark.feature("sparql_endpoint")
NO_SOURCE = "no source: add `source` to the file, or state metrics and thresholds of texts only:"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("kind", "written", "engine", "setting"),
    [
        ("sql", "a.db", "sqlite", "path"),
        ("sql", "data/A.SQLITE3", "sqlite", "path"),
        ("sql", "a.duckdb", "duckdb", "path"),
        ("sparql", "a.ttl", "rdf", "files"),
        ("sparql", "a.nq", "rdf", "files"),
        pytest.param("sparql", "https://example.org/sparql", "endpoint", "url", marks=ENDPOINT),
        ("sql", "postgresql://host/db", "sqlalchemy", "path"),
        ("sql", "postgresql+psycopg://host/db", "sqlalchemy", "path"),
    ],
)
def test_a_bare_source_is_read_by_suffix_or_scheme(kind, written, engine, setting):
    source = case(head=f"kind: {kind}\nsource: {written}\n").settings.source

    assert (source.engine, source.settings, source.name) == (engine, {setting: written}, written)


@pytest.mark.parametrize(
    ("written", "settings", "name"),
    [
        ("{sqlite: a.db}", {"path": "a.db"}, "a.db"),
        ("{sqlite: {script: a.sql}}", {"script": "a.sql"}, "a.sql"),
        ("{duckdb: {tables: {sales: sales.parquet}}}", {"tables": {"sales": "sales.parquet"}}, "duckdb"),
        ("{sqlalchemy: 'x://h/db', version: '5'}", {"path": "x://h/db", "version": "5"}, "x://h/db"),
    ],
)
def test_a_source_in_place_has_the_name_of_its_engine(written, settings, name):
    source = case(f"source: {written}").settings.source

    assert (source.settings, source.name) == (settings, name)
    assert source.engine in written


@pytest.mark.parametrize(
    ("written", "settings", "name"),
    [
        ("{rdf: [a.ttl, b.ttl], engine: rdflib}", {"files": ["a.ttl", "b.ttl"], "engine": "rdflib"}, "a.ttl, b.ttl"),
        ("{rdf: {files: a.ttl, default_graph: union}}", {"files": "a.ttl", "default_graph": "union"}, "a.ttl"),
        pytest.param(
            "{endpoint: 'http://x/s', headers: {a: 1}}",
            {"url": "http://x/s", "headers": {"a": 1}},
            "http://x/s",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'http://x/s', verify: false}",
            {"url": "http://x/s", "verify": False},
            "http://x/s",
            marks=ENDPOINT,
        ),
    ],
)
def test_settings_of_a_source_stand_beside_its_engine_or_below_it(written, settings, name):
    source = case(f"source: {written}", head="kind: sparql\n").settings.source

    assert (source.settings, source.name) == (settings, name)


@pytest.mark.parametrize(
    ("written", "problem_"),
    [
        ("{sqlite: {script: a.sql, pth: b}}", "unknown setting 'pth': did you mean 'path'?"),
        ("{sqlite: a.db, headers: {a: b}}", "unknown setting 'headers': choose from path, script, variants"),
        ("{rdf: a.ttl, engine: oxigraf}", "unknown engine 'oxigraf': did you mean 'oxigraph'?"),
        ("{rdf: []}", "`rdf` must be the name of a file, or a list of names"),
        ("{rdf: {engine: rdflib}}", "needs files"),
        pytest.param(
            "{endpoint: ftp://x/s}", "`endpoint` must be an http or https URL: found 'ftp://x/s'", marks=ENDPOINT
        ),
        pytest.param(
            "{endpoint: 'ftp://x/s?token=x#y'}",
            "`endpoint` must be an http or https URL: found 'ftp://x/s'",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'my/place?api_key=x'}",
            "`endpoint` must be an http or https URL: found 'my/place'",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'password=hunter2'}", "`endpoint` must be an http or https URL: found '…'", marks=ENDPOINT
        ),
        pytest.param(
            '{endpoint: "a\\e[31m\\nb"}',
            "`endpoint` must be an http or https URL: found 'a\\x1b[31m b'",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'h:78/q'}",
            "`endpoint` must be an http or https URL: did you mean 'http://h:78/q'?",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'localhost/q?token=x'}",
            "`endpoint` must be an http or https URL: did you mean 'http://localhost/q'?",
            marks=ENDPOINT,
        ),
        pytest.param("{endpoint: 'me:pass@h:78/q'}", "`endpoint` must be an http or https URL", marks=ENDPOINT),
        pytest.param("{endpoint: 'h:78/me@x'}", "`endpoint` must be an http or https URL", marks=ENDPOINT),
        pytest.param(
            "{endpoint: {url: 'h:78/q'}}",
            "`url` must be an http or https URL: did you mean 'http://h:78/q'?",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'http://x/s', hedaers: {}}",
            "unknown setting 'hedaers': did you mean 'headers'?",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'http://x/s', auth: {basic: me}}",
            "`auth` must be {basic: user:password}, {digest: user:password} or {bearer: token}, in Latin-1",
            marks=ENDPOINT,
        ),
        (
            "{rdf: a.ttl, default_graph: uniun}",
            "`default_graph` must be 'union', the IRI of a graph, or a list of IRIs",
        ),
        pytest.param(
            "{endpoint: 'http://x/s', default_graph: union}",
            "`default_graph` must be the IRI of a graph, or a list of IRIs",
            marks=ENDPOINT,
        ),
        pytest.param(
            "{endpoint: 'http://x/s', verify: 5}",
            "`verify` must be true, false or the name of a CA file",
            marks=ENDPOINT,
        ),
    ],
)
def test_settings_that_cannot_be_right_are_reported(written, problem_):
    assert problem(f"source: {written}", head="kind: sparql\n") == problem_


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("localhost:7878/query", "http://localhost:7878/query"),
        ("127.0.0.1:80", "http://127.0.0.1:80"),
        ("graph.example.org/sparql", "https://graph.example.org/sparql"),
    ],
)
def test_a_host_without_a_scheme_gets_one_as_suggestion(written, url):
    assert problem(f"source: '{written}'", head="kind: sparql\n").endswith(f"has this name: did you mean '{url}'?")


@pytest.mark.parametrize("written", ["data/graph.ttx", "data.v2/graph.ttx", "graph", "me:secret@h:78/q"])
def test_no_scheme_is_suggested_for_what_may_be_a_file(written):
    assert "http://" not in problem(f"source: '{written}'", head="kind: sparql\n")


def test_a_source_must_run_queries_of_the_kind():
    expected = (
        "source 'a.db' (sqlite) runs queries of the kind 'sql', not 'sparql': write `kind: sql`, or name another source"
    )

    assert problem(head="kind: sparql\nsource: a.db\n") == expected


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("postgresql://me:secret@host:5432/db?password=secret", "postgresql://host:5432/db"),
        ("https://me:secret@host/sparql?key=secret#secret", "https://host/sparql"),
        ("https://host/sparql?mail=a@b", "https://host/sparql"),
        ("https://host:80/a@b", "https://host:80/a@b"),
        ("postgresql://me:se/cr?et@host/db", "postgresql://host/db"),
        ("postgresql://me:s@cret@host/db", "postgresql://host/db"),
        ("postgresql://me:secret", "postgresql://me/…"),
        ("postgresql://me:secret@[::1]:5432/db", "postgresql://[::1]:5432/db"),
    ],
)
@pytest.mark.feature("sparql_endpoint")
def test_names_of_sources_hold_no_secrets(written, name):
    kind = "sparql" if written.startswith("http") else "sql"
    source = case(f"source: {written!r}", head=f"kind: {kind}\n").settings.source

    assert source.name == name
    assert "secret" not in repr(source)


def test_named_sources_are_found_by_their_names():
    loaded = case("source: live", head="kind: sql\nsources: {live: {sqlite: b.db}, other: c.db}\n")

    assert loaded.settings.source == Source(name="live", engine="sqlite", settings={"path": "b.db"}, folder=Path.cwd())


def test_unknown_sources_and_engines_are_reported():
    named = "kind: sql\nsources: {concerts: a.db}\n"

    assert problem("source: concert", head=named).endswith("has this name: did you mean 'concerts'?")
    assert problem("source: {sqlit: a.db}") == "unknown engine 'sqlit': did you mean 'sqlite'?"
    assert problem("source: {sqlite: a.db, duckdb: b}").endswith("such as sqlite: found sqlite and duckdb")
    assert problem("source: {headers: {}}").endswith("such as sqlite: found none")
    assert (
        problem("source: [a.db]")
        == "source: expected one source, found a list: write one, or several under `sources`, by name"
    )
    assert (
        problem("source:")
        == "source: expected a source, found nothing: write {sqlite: FILE} or {sqlite: {script: FILE.sql}}"
    )
    assert problem("source: {sqlite: }") == "sqlite: expected text, found nothing: write a value, or leave out the key"


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("data/concerts.sql", "write {sqlite: {script: data/concerts.sql}}"),
        ("data/sales.parquet", "write {duckdb: {tables: {sales: data/sales.parquet}}}"),
    ],
)
def test_a_file_that_a_source_can_be_made_of_is_told_how(written, remedy):
    assert problem(f"source: {written}").endswith(f"has this name: {remedy}")


def test_a_source_knows_the_line_that_describes_it():
    in_place, named = load(
        "kind: sql\nsources:\n  other: c.db\n  live: {sqlite: {script: a.sql}}\n"
        "source:\n  sqlite: b.db\npredictor: inline\n"
        "cases:\n  - {id: a, gold: x, predicted: y}\n  - {id: b, gold: x, predicted: y, source: live}\n"
    )

    assert str(in_place.settings.source.location) == "s.queryeval.yaml:5"
    assert str(named.settings.source.location) == "s.queryeval.yaml:4"


def test_an_engine_that_is_not_installed_is_reported(monkeypatch):
    monkeypatch.setattr(ENGINES, "_members", {"sqlite": object()})

    install = ", or install the package that adds it"
    assert problem("source: a.duckdb") == f"unknown engine 'duckdb': choose from sqlite{install}"


def test_a_query_needs_a_source_where_a_metric_needs_its_answer():
    expected = [
        f"s.queryeval.yaml:3: {NO_SOURCE} 'execution_accuracy' needs answers",
    ]

    assert problems("kind: sql\ncases:\n  - {id: a, gold: x, predicted: y}\n") == expected
    table = "{columns: [], rows: []}"
    assert problems(f"kind: sql\ncases:\n  - {{id: a, gold_table: {table}, predicted: y}}\n") == expected
    assert load(f"kind: sql\ncases:\n  - {{id: a, gold_table: {table}, predicted_table: {table}}}\n")


def test_metrics_of_texts_need_no_source(monkeypatch):
    by_text = Metric(function=lambda gold, predicted: 1.0, input="queries")
    monkeypatch.setattr(METRICS, "_members", {**METRICS._members, "by_text": by_text})

    loaded = case("metrics: [by_text]", "thresholds: {by_text: 1}", head="kind: sql\n")

    assert (loaded.settings.source, loaded.settings.dialect) == (None, "")
    assert problem("metrics: [by_text]", head="kind: sql\n") == (f"{NO_SOURCE} 'execution_accuracy' needs answers")
    assert problem("metrics: [by_text, soft_f1]", "thresholds: {by_text: 1}", head="kind: sql\n") == (
        f"{NO_SOURCE} 'soft_f1' needs answers"
    )


def test_without_any_metric_a_query_needs_a_source_too():
    expected = "no source: add `source` to the file"

    assert problem("metrics: []", "thresholds: {}", head="kind: sql\n") == expected
    assert case("metrics: []", "thresholds: {}").settings.metrics == ()


def test_a_case_needs_a_kind():
    assert problems("source: a.db\ncases:\n  - {id: a, gold: x, predicted: y}\n") == [
        "s.queryeval.yaml:3: no kind: add `kind: sql | sparql | json | sdmx` to the file"
    ]


def test_variables_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("FOLDER", "data")
    monkeypatch.setenv("PORT", "5432")
    monkeypatch.setenv("NOTHING", "")

    (loaded,) = load(
        "kind: sql\nsource: live\n"
        "sources:\n  live:\n"
        "    duckdb: {script: '${FOLDER}/a.sql', port: '${PORT}', b: '${NOTHING}', c: '${NOTHING:-d}'}\n"
        "    headers: {a: ['x ${NONE:-y z}', '$FOLDER', '${1}']}\n"
        "predictor: ${FOLDER}/${NONE:-predict}.py:predict\n"
        "cases: [{id: a, gold: '${NONE}', question: '${NONE}'}]\n"
    )

    assert loaded.settings.source.settings == {
        "script": "data/a.sql",
        "port": "5432",
        "b": "",
        "c": "d",
        "headers": {"a": ["x y z", "$FOLDER", "${1}"]},
    }
    assert loaded.settings.predictor.settings == {"target": "data/predict.py:predict"}
    assert (loaded.golds[0].query, loaded.question) == ("${NONE}", "${NONE}")


def test_missing_variables_are_reported_with_name_and_line():
    lines = problems(
        "kind: sql\nsource: ${A}\nsources:\n  live:\n    sqlite: ${B}.db\npredictor: ${C}:f\n"
        "cases: [{id: a, gold: x}]\n"
    )

    assert lines == [
        "s.queryeval.yaml:2: environment variable 'A' is not set: set it, or write ${A:-default}",
        "s.queryeval.yaml:5: environment variable 'B' is not set: set it, or write ${B:-default}",
        "s.queryeval.yaml:6: environment variable 'C' is not set: set it, or write ${C:-default}",
    ]


def test_values_from_the_environment_are_not_in_messages(monkeypatch):
    monkeypatch.setenv("DSN", "hunter2")

    assert "hunter2" not in problem("source: ${DSN}")


URLS = [
    "postgresql://u:SEKRIT99@h/x",
    " postgresql://u:SEKRIT99@h/x",
    "postgresql:/u:SEKRIT99@h/x.db",
    "jdbc:postgresql://h/x?user=u&password=SEKRIT99",
    "host=h user=u password=SEKRIT99",
    "md:db?motherduck_token=SEKRIT99",
    " https://u:SEKRIT99@h/x",
]
HTTP = "http: {url: 'http://h/q', body: '{query}', rows: $.rows"


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("source", ["sqlite: ", "sqlite: {script: "])
def test_a_url_where_a_file_is_meant_is_reported_without_its_secrets(monkeypatch, source, url):
    monkeypatch.setenv("DBU", url)
    end = "}" * source.count("{")

    for text in (f"'{url}'", "'${DBU}'"):
        in_place = problem(f"source: {{{source}{text}{end}}}")
        (named,) = problems(f"kind: sql\nsources:\n  live: {{{source}{text}{end}}}\ncases: [{{id: a, gold: x}}]\n")[:1]

        for said in (in_place, named):
            assert said.endswith("looks like a URL or a connection string: write the name of a file")
            assert "SEKRIT99" not in said


@pytest.mark.parametrize("url", URLS[1:])
def test_a_mistyped_url_is_reported_without_its_secrets(url):
    said = problem(f"source: '{url}'")

    assert said
    assert "SEKRIT99" not in said


@pytest.mark.parametrize("value", ["postgresql://u:SEKRIT99@h/x", "SEKRIT99"])
@pytest.mark.parametrize("source", [f"{HTTP}, dialect: '${{DBU}}'}}", "rdf: '${DBU}', engine: '${DBU}'"])
def test_what_the_environment_says_is_told_as_it_was_written(monkeypatch, source, value):
    monkeypatch.setenv("DBU", value)

    lines = problems(f"kind: sql\nsource: {{{source}}}\ncases: [{{id: a, gold: x, predicted: y, bogus: 1}}]\n")

    assert lines
    assert "SEKRIT99" not in "\n".join(lines)


@pytest.mark.feature("sparql_endpoint")
def test_a_jsonpath_that_is_a_url_is_reported_without_its_secrets(monkeypatch):
    monkeypatch.setenv("DBU", "postgresql://u:SEKRIT99@h/x")
    source = HTTP.replace("$.rows", "'$.${DBU}'")

    assert problem(f"source: {{{source}}}}}") == "`rows` must be a JSONPath, such as $.rows"


@pytest.mark.parametrize("port", ["xSEKRIT99", "99999", "0"])
@pytest.mark.feature("sparql_endpoint")
def test_a_port_that_is_none_is_reported(port):
    source = HTTP.replace("http://h/q", f"http://u:SEKRIT99@127.0.0.1:{port}/")

    assert problem(f"source: {{{source}}}}}") == "`url` must be an http or https URL"


@pytest.mark.parametrize(
    "setting", ["auth: {bearer: tök€n}", "auth: {digest: 'm€:x'}", "headers: {a: tök€n}", "headers: {€: a}"]
)
@pytest.mark.feature("sparql_endpoint")
def test_what_no_header_can_hold_is_reported_without_its_value(setting):
    said = problem(f"source: {{{HTTP}, {setting}}}}}")

    assert said.startswith(f"`{setting.partition(':')[0]}` must be ")
    assert said.endswith("in Latin-1")
    assert "€" not in said


@pytest.mark.feature("sparql_endpoint")
def test_basic_credentials_may_hold_any_character():
    assert case(f"source: {{{HTTP}, auth: {{basic: 'm€:tök€n'}}}}}}").settings.source.settings["auth"] == {
        "basic": "m€:tök€n"
    }


@pytest.mark.feature("sparql_endpoint")
def test_a_ca_file_that_is_missing_is_reported():
    Path("ca.pem").touch()

    assert problem(f"source: {{{HTTP}, verify: gone.pem}}}}") == "'verify' names no file: gone.pem"
    assert case(f"source: {{{HTTP}, verify: ca.pem}}}}").settings.source.settings["verify"] == "ca.pem"


@pytest.mark.parametrize(
    ("written", "kind", "settings"),
    [
        ("predict.py:predict", "python", {"target": "predict.py:predict"}),
        ("my_app.nl2sql:predict", "python", {"target": "my_app.nl2sql:predict"}),
        ("http://localhost:8000/predict", "http", {"url": "http://localhost:8000/predict"}),
        ("predictions.jsonl", "file", {"path": "predictions.jsonl"}),
        ("predictions.csv", "file", {"path": "predictions.csv"}),
        ("{file: a.txt}", "file", {"path": "a.txt"}),
        ("b.csv?id=No.&predicted=SQL", "file", {"path": "b.csv", "columns": {"id": "No.", "predicted": "SQL"}}),
        ("{file: b.csv?header_row=2}", "file", {"path": "b.csv", "header_row": 2}),
        *((f"runs/preds{suffix}", "file", {"path": f"runs/preds{suffix}"}) for suffix in (*READERS, *LINES_SUFFIXES)),
        ("PREDS.SQL", "file", {"path": "PREDS.SQL"}),
        ("{command: [a, '1', 2]}", "command", {"run": ["a", "1", 2]}),
        ("{http: {url: 'http://x', timeout: 5}}", "http", {"url": "http://x", "timeout": 5}),
    ],
)
def test_predictors_are_read_by_their_form(written, kind, settings):
    (loaded,) = load(f"kind: sql\nsource: a.db\npredictor: {written}\ncases: [{{id: a, gold: x}}]\n")

    assert loaded.settings.predictor == PredictorSpec(kind=kind, settings=settings, folder=Path.cwd())


def test_the_settings_of_a_registered_predictor_are_its_own(monkeypatch):
    monkeypatch.setitem(PREDICTORS._members, "mine", PREDICTORS["inline"])

    (loaded,) = load("kind: sql\nsource: a.db\npredictor: {mine: {verify: strict}}\ncases: [{id: a, gold: x}]\n")

    assert loaded.settings.predictor.settings == {"verify": "strict"}


def test_how_a_predictor_is_called_stands_beside_its_name():
    (loaded,) = load(
        "kind: sql\nsource: a.db\npredictor: {python: 'a:b', concurrency: 4, timeout: 2.5, retries: 0}\n"
        "cases: [{id: a, gold: x}]\n"
    )

    spec = loaded.settings.predictor
    assert (spec.settings, spec.concurrency, spec.timeout, spec.retries) == ({"target": "a:b"}, 4, 2.5, 0)


def test_a_dotted_name_as_predictor_is_answered_by_the_file_that_holds_the_function(tmp_path):
    (tmp_path / "predict.py").write_text("def answer(case): ...", encoding="utf-8")

    with pytest.raises(CaseError, match=r"unknown predictor 'predict\.answer': did you mean 'predict\.py:answer'\?$"):
        predictor_of_text("predict.answer", folder=tmp_path)


def test_unknown_predictors_are_reported():
    assert top_problem("predictor: inlin") == "unknown predictor 'inlin': did you mean 'inline'?"
    assert top_problem("predictor: {pyton: 'a:b'}") == "unknown predictor 'pyton': did you mean 'python'?"
    assert top_problem("predictor: {file: a.csv, header_row: 2}") == (
        "'header_row' is a setting of 'file': write {file: {path: …, header_row: …}}"
    )
    assert top_problem("predictor: {file: a, python: b}").endswith("such as python: found file and python")
    assert (
        top_problem("predictor: {python: 'a:b', concurrency: 0}")
        == "concurrency: expected a whole number from 1 on, found '0'"
    )


def test_a_prediction_in_the_case_comes_before_the_predictor():
    loaded = case(head="kind: sql\nsource: a.db\npredictor: predict.py:f\n")

    assert (loaded.predicted, loaded.settings.predictor) == (QueryOrAnswer(query="SELECT 2"), None)


@pytest.mark.parametrize("head", ["", "predictor: inline\n"])
def test_a_case_without_any_prediction_is_reported(head):
    text = f"{head}kind: sql\nsource: a.db\ncases:\n  - {{id: a, gold: x}}\n"

    assert problems(text)[0].endswith("no prediction: add `predicted`, or `predictor` to the file")
    assert load(text, require_prediction=False)[0].predicted is None
