"""Sources and predictors of suites, as far as `reading/sources.yaml` does not have them: secrets, and registries."""

from pathlib import Path

import pytest
from suites import case, enter, load, problem, problems

from pytest_queryeval.core.metric import Metric
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS

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


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


@pytest.mark.parametrize("written", ["data/graph.ttx", "data.v2/graph.ttx", "graph", "me:secret@h:78/q"])
def test_no_scheme_is_suggested_for_what_may_be_a_file(written):
    assert "http://" not in problem(f"source: '{written}'", head="kind: sparql\n")


def test_sources_with_secrets_show_none():
    for url in ("postgresql://me:h0rse@host/db?password=h0rse", "postgresql://me:h0/rse?h0rse@host/db"):
        assert "h0rse" not in repr(case(f"source: {url!r}", head="kind: sql\n").settings.source)


def test_an_engine_that_is_not_installed_is_reported(monkeypatch):
    monkeypatch.setattr(ENGINES, "_members", {"sqlite": object()})

    install = ", or install the package that adds it"
    assert problem("source: a.duckdb") == f"unknown engine 'duckdb': choose from sqlite{install}"


def test_metrics_of_texts_need_no_source(monkeypatch):
    by_text = Metric(function=lambda gold, predicted: 1.0, input="queries")
    monkeypatch.setattr(METRICS, "_members", {**METRICS._members, "by_text": by_text})
    no_source = "no source: add `source` to the file, or name metrics and thresholds of texts only:"

    loaded = case("metrics: [by_text]", "thresholds: {by_text: 1}", head="kind: sql\n")

    assert (loaded.settings.source, loaded.settings.dialect) == (None, "")
    assert problem("metrics: [by_text]", head="kind: sql\n") == f"{no_source} 'execution_accuracy' needs answers"
    assert problem("metrics: [by_text, soft_f1]", "thresholds: {by_text: 1}", head="kind: sql\n") == (
        f"{no_source} 'soft_f1' needs answers"
    )


def test_variables_come_from_the_environment(monkeypatch):
    for name, value in {"FOLDER": "data", "PORT": "5432", "NOTHING": ""}.items():
        monkeypatch.setenv(name, value)

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


@pytest.mark.parametrize("url", URLS)
def test_a_url_where_a_file_is_meant_or_that_is_mistyped_is_reported_without_its_secrets(monkeypatch, url):
    monkeypatch.setenv("DBU", url)
    file = "looks like a URL or a connection string: write the name of a file"

    for source in ("sqlite: {}", "sqlite: {{script: {}}}"):
        for text in (f"'{url}'", "'${DBU}'"):
            written = f"{{{source.format(text)}}}"
            (named,) = problems(f"kind: sql\nsources:\n  live: {written}\ncases: [{{id: a, gold: x}}]\n")[:1]
            for said in (problem(f"source: {written}"), named):
                assert said.endswith(file)
                assert "SEKRIT99" not in said
    if url != URLS[0]:
        assert "SEKRIT99" not in problem(f"source: '{url}'")


@pytest.mark.parametrize("value", ["postgresql://u:SEKRIT99@h/x", "SEKRIT99"])
@pytest.mark.parametrize("source", [f"{HTTP}, dialect: '${{DBU}}'}}", "rdf: '${DBU}', engine: '${DBU}'", "${DBU}"])
def test_what_the_environment_says_is_told_as_it_was_written(monkeypatch, source, value):
    monkeypatch.setenv("DBU", value)
    written = f"{{{source}}}" if ":" in source else source

    lines = problems(f"kind: sql\nsource: {written}\ncases: [{{id: a, gold: x, predicted: y, bogus: 1}}]\n")

    assert lines
    assert "SEKRIT99" not in "\n".join(lines)


@pytest.mark.feature("http_engine")
def test_a_jsonpath_that_is_a_url_is_reported_without_its_secrets(monkeypatch):
    monkeypatch.setenv("DBU", "postgresql://u:SEKRIT99@h/x")
    source = HTTP.replace("$.rows", "'$.${DBU}'")

    assert problem(f"source: {{{source}}}}}") == "`rows` must be a JSONPath, such as $.rows"


def test_the_settings_of_a_registered_predictor_are_its_own(monkeypatch):
    monkeypatch.setitem(PREDICTORS._members, "mine", PREDICTORS["inline"])

    (loaded,) = load("kind: sql\nsource: a.db\npredictor: {mine: {verify: strict}}\ncases: [{id: a, gold: x}]\n")

    assert loaded.settings.predictor.settings == {"verify": "strict"}
    assert loaded.settings.predictor.folder == Path.cwd()


@pytest.mark.parametrize("head", ["", "predictor: inline\n"])
def test_a_case_without_any_prediction_is_read_where_none_is_needed(head):
    text = f"{head}kind: sql\nsource: a.db\ncases:\n  - {{id: a, gold: x}}\n"

    assert load(text, require_prediction=False)[0].predicted is None
