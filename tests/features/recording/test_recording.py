"""What is recorded comes back as it was, in files that people can read, and nothing that is stale passes for new."""

import json
import math
import os
import sqlite3
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import change, fake_source, install_engine, make_case, table
from selections import selected

from pytest_queryeval.core.answer_json import decode, decode_answer, encode, encode_answer
from pytest_queryeval.core.cause import Cause, CausingEdit, SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import Location, PredictorError, QueryEvalError, SourceError
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.model import (
    Abstention,
    Execution,
    Failure,
    Message,
    Prediction,
    PredictorSpec,
    QueryOrAnswer,
    Source,
)
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Policy, Table, Tie, TripleTerm
from pytest_queryeval.engines import ENGINES, EngineType, SourceFingerprint
from pytest_queryeval.engines.settings import state_of
from pytest_queryeval.evaluation.prediction_call import SchemaTexts
from pytest_queryeval.features.recording import Recording
from pytest_queryeval.features.recording.predictions import PredictionKeys, decode_prediction, encode_prediction
from pytest_queryeval.features.recording.sources import decode_cause
from pytest_queryeval.features.recording.store import decode_entry, encode_entry
from pytest_queryeval.predictors import PREDICTORS, PredictorType

STALE = "the prediction for 'a' in {} is stale"
RECORD_IT = "record it with --queryeval-record, or with `queryeval evaluate --record`"
LIMITS = {"timeout": 5.0, "max_rows": 100}
NAME = "0" * 32
TEXTS = st.text(st.characters(), max_size=8) | st.text(
    st.sampled_from(["\ud83d", "\ude00", "a", "\n", "\x9b", "\u202e", "$"]), max_size=6
)
ZONES = st.none() | st.integers(-86_000, 86_000).map(lambda seconds: timezone(timedelta(seconds=seconds)))
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(4_200, 4_500).map(lambda digits: -(10**digits) + 7),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e22, 5e-324]),
    st.decimals(),
    st.sampled_from([Decimal("1.10"), Decimal("-0E+3"), Decimal("sNaN123")]),
    TEXTS,
    st.binary(max_size=8),
    st.dates(),
    st.times(timezones=ZONES).map(lambda value: value.replace(fold=0)),
    st.datetimes(timezones=ZONES).map(lambda value: value.replace(fold=0)),
    TEXTS.map(IRI),
    TEXTS.map(BlankNode),
    st.builds(Literal, TEXTS, TEXTS, TEXTS),
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.sampled_from(["$float", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)
SPEC = PredictorSpec(kind="python", settings={"target": "bot.py:ask"}, folder=Path())
SEEN = "its source, dialect, tags or difficulty has changed since"
SCHEMA = "the schema that its predictor sees has changed since"
SAID = Prediction(
    content=QueryOrAnswer(query="SELECT 1"), predictor="python:bot.py:ask", seconds=0.25, metadata={"tokens": 7}
)


def stored(value):
    """The value as it comes out of the text of an entry."""
    return decode(decode_entry(NAME, encode_entry(NAME, {"value": encode(value)}))["value"])


def looks(value):
    """What tells values apart that Python takes for equal: types, signs of zero, zones, NaN."""
    return type(value), repr(value)


@given(CELLS)
def test_every_cell_comes_back_as_it_was(cell):
    if isinstance(cell, int) and abs(cell) >= 10**4_000:
        assert stored(cell) == cell
    elif isinstance(cell, float) and math.isnan(cell):
        assert math.isnan(stored(cell))
    else:
        assert looks(stored(cell)) == looks(cell)


@given(DOCUMENTS)
def test_every_json_document_comes_back_with_its_keys_in_order(document):
    back = stored(document)

    assert repr(back) == repr(document)


@given(CELLS, TEXTS)
def test_the_text_of_an_entry_is_utf_8_that_no_terminal_obeys(cell, text):
    content = encode_entry(NAME, {"row": [encode(cell), encode(text)]}).decode("utf-8")

    assert content.endswith("}\n")
    controls = [character for character in content if unicodedata.category(character) in ("Cc", "Cs")]
    assert set(controls) == {"\n"}
    assert "\u202e" not in content
    assert "\x9b" not in content


@pytest.mark.parametrize(
    "value",
    [
        {"$decimal": "x"},
        {"$decimal": 1},
        {"$float": "1.5"},
        {"$date": "yesterday"},
        {"$datetime": 5},
        {"$unknown": 1},
        {"$iri": 5},
        {"$iri": "a", "b": 1},
        {"$bytes": "\u20ac"},
        {"$integer": "0xz"},
        {"$literal": ["a"]},
        {"$object": [["a"]]},
        {"$parts": 5},
    ],
)
def test_what_is_never_written_is_not_read(value):
    with pytest.raises(ValueError, match=r"\w"):
        decode(value)


def test_tables_with_ties_and_graphs_come_back():
    rows = ((1, "a"), (1, "b"))
    answer = Table(columns=("n", "m"), rows=rows, ties=(Tie(size=1, rows=rows),), is_graph=True)

    back = decode_answer(encode_answer(answer))

    assert (back.columns, tuple(back.rows), back.ties, back.is_graph) == (("n", "m"), rows, answer.ties, True)


def test_triple_terms_come_back():
    inner = TripleTerm(IRI("a:b"), IRI("a:c"), Literal("x", "", "ar--rtl"))
    rows = [(TripleTerm(BlankNode("n"), IRI("a:c"), inner), inner)]

    assert decode_answer(encode_answer(Table(columns=("x", "y"), rows=rows))).rows == rows


@pytest.mark.parametrize("has_header", [True, False])
def test_answers_without_columns_come_back_with_or_without_a_header(has_header):
    entry = encode_answer(Table(columns=(), rows=[], has_header=has_header))

    assert decode_answer(entry).has_header is has_header


def test_an_answer_without_columns_that_was_recorded_before_headers_were_has_none():
    assert not decode_answer({"table": {"columns": [], "rows": []}}).has_header
    assert decode_answer({"table": {"columns": ["n"], "rows": []}}).has_header


@pytest.mark.parametrize(
    "answer",
    [JsonAnswer(None), JsonAnswer({"$b": [1.0, 1]}), selected(GEO=("FR", "DE: Germany", ": Spain"), by_id=True)],
)
def test_other_answers_come_back(answer):
    assert decode_answer(encode_answer(answer)) == answer


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def only_file(folder):
    (path,) = files(folder)
    return path


def recorder(folder):
    return Recording(folder, replay=False, root=Path())


def replayer(folder):
    return Recording(folder, replay=True, root=Path())


def file_source(name, engine="sqlite"):
    return Source(name=name, engine=engine, settings={"path": name}, folder=Path())


def record(folder, *, case=None, spec=SPEC, trial=1, said=SAID):
    case = case or make_case(question="How many?")
    recorder(folder).call(case, spec, trial).save(said)
    return case


def test_a_prediction_comes_back_with_what_the_system_told_about_it(tmp_path):
    case = record(tmp_path)

    assert replayer(tmp_path).call(case, SPEC, 1).load() == SAID
    assert recorder(tmp_path).call(case, SPEC, 1).load() == SAID


def test_a_predicted_answer_comes_back(tmp_path):
    said = Prediction(QueryOrAnswer(answer=table((1, "a"), (None, "b"))), predictor="python")
    case = record(tmp_path, said=said)

    back = replayer(tmp_path).call(case, SPEC, 1).load().content

    assert back.query is None
    assert back.answer.rows == [(1, "a"), (None, "b")]


def test_an_empty_answer_of_the_system_is_recorded_too(tmp_path):
    said = Prediction(QueryOrAnswer(query=""), predictor="python")

    assert replayer(tmp_path).call(record(tmp_path, said=said), SPEC, 1).load() == said


def test_nothing_is_recorded_to_begin_with(tmp_path):
    assert recorder(tmp_path / "new").call(make_case(), SPEC, 1).load() is None
    assert not (tmp_path / "new").exists()


def test_an_entry_reads_well(tmp_path):
    record(
        tmp_path,
        case=make_case(id="a", question="How\nmany?"),
        said=Prediction(QueryOrAnswer(query="SELECT 1\nFROM t"), predictor="p"),
    )

    text = only_file(tmp_path).read_text(encoding="utf-8")

    assert '  "query": [\n    "SELECT 1",\n    "FROM t"\n  ],\n' in text
    assert '    "question": [\n      "How",\n      "many?"\n    ],\n' in text
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_rows_stand_on_lines_of_their_own(tmp_path, monkeypatch):
    source = fake_live(monkeypatch)
    recorder(tmp_path).save_execution(
        "q", source, Execution(query="q", answer=table((1, "é"), (2, Decimal("1.0")))), **LIMITS
    )

    assert '    "rows": [\n      [1, "é"],\n      [2, {"$decimal": "1.0"}]\n    ]\n' in only_file(tmp_path).read_text(
        "utf-8"
    )


def test_what_is_there_is_not_touched(tmp_path):
    case = record(tmp_path)
    path = only_file(tmp_path)
    before = path.stat().st_ino, path.read_bytes()

    record(tmp_path, case=case, said=Prediction(QueryOrAnswer(query="SELECT 1"), predictor="p", seconds=9.0))

    assert (path.stat().st_ino, path.read_bytes()) == before


def test_trials_are_recorded_apart(tmp_path):
    case = record(tmp_path, trial=1)

    assert recorder(tmp_path).call(case, SPEC, 2).load() is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"question": "Why?"},
            f"{STALE}: what is recorded under this id has another question: {RECORD_IT}",
        ),
        ({"id": "b"}, f"no recorded prediction for 'b' in {{}}: {RECORD_IT}"),
        ({"kind": "json"}, f"{STALE}: its `kind` has changed since: {RECORD_IT}"),
        (
            {"evidence": "x"},
            f"{STALE}: its evidence, conversation or metadata has changed since: {RECORD_IT}",
        ),
        (
            {"metadata": {"x": 1}},
            f"{STALE}: its evidence, conversation or metadata has changed since: {RECORD_IT}",
        ),
        (
            {"conversation": (Message(role="user", content="x"),)},
            f"{STALE}: its evidence, conversation or metadata has changed since: {RECORD_IT}",
        ),
    ],
)
def test_a_replay_names_what_is_missing_or_stale(tmp_path, change, problem):
    record(tmp_path)

    with pytest.raises(PredictorError) as raised:
        replayer(tmp_path).call(make_case(**{"question": "How many?"} | change), SPEC, 1).load()

    assert str(raised.value) == problem.format(tmp_path)


def test_a_replay_names_the_trial_that_is_missing(tmp_path):
    case = record(tmp_path)

    with pytest.raises(PredictorError, match=r"^no recorded prediction for 'a' \(trial 2\) in "):
        replayer(tmp_path).call(case, SPEC, 2).load()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (PredictorSpec(kind="http", settings={"url": "http://h/"}, folder=Path()), "its predictor was another one"),
        (
            PredictorSpec(kind="python", settings={"target": "b.py:f"}, folder=Path()),
            "the settings of its predictor have changed since",
        ),
        (
            PredictorSpec(kind="python", settings=SPEC.settings, folder=Path("other")),
            "the settings of its predictor have changed since",
        ),
    ],
)
def test_another_predictor_is_another_one(tmp_path, spec, reason):
    case = record(tmp_path)

    assert recorder(tmp_path).call(case, spec, 1).load() is None
    with pytest.raises(PredictorError, match=f"is stale: {reason}: {RECORD_IT}$"):
        replayer(tmp_path).call(case, spec, 1).load()


HOOK = PredictorSpec(kind="hook", settings={}, folder=Path())
COMMAND = PredictorSpec(kind="command", settings={"run": ["bot"]}, folder=Path())


def of_suite(name, **changes):
    return make_case(location=Location(Path("music") / name, 4), question="How many?", **changes)


@pytest.mark.parametrize("spec", [SPEC, HOOK])
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (of_suite("s.yaml", source=file_source("b.db")), SEEN),
        (of_suite("s.yaml", source=file_source("a.db"), dialect="duckdb"), SEEN),
        (of_suite("s.yaml", source=file_source("a.db"), tags=("x",)), SEEN),
        (of_suite("s.yaml", source=file_source("a.db"), difficulty="hard"), SEEN),
        (of_suite("s.yaml", source=file_source("a.db"), db_schema=Schema(tables={"t": ("n",)})), SCHEMA),
    ],
)
def test_all_that_a_function_sees_counts(tmp_path, spec, changed, reason):
    record(tmp_path, case=of_suite("s.yaml", source=file_source("a.db")), spec=spec)
    schema = SchemaTexts().of(changed)

    assert recorder(tmp_path).call(changed, spec, 1, schema).load() is None
    with pytest.raises(PredictorError, match=f"^the prediction for 'a' in .* is stale: {reason}: {RECORD_IT}$"):
        replayer(tmp_path).call(changed, spec, 1, schema).load()


def gone():
    raise SourceError("the tables cannot be listed: no such file")


def test_a_schema_that_is_sent_and_cannot_be_listed_is_an_error_of_the_source(tmp_path):
    sends = PredictorSpec(kind="command", settings={"run": ["bot"], "send_schema": True}, folder=Path())

    with pytest.raises(SourceError, match="cannot be listed"):
        recorder(tmp_path).call(make_case(), sends, 1, gone).load()


def test_a_schema_that_cannot_be_listed_is_no_error_of_a_function_that_does_not_read_it(tmp_path):
    recorder(tmp_path).call(make_case(), SPEC, 1, gone).save(SAID)

    assert replayer(tmp_path).call(make_case(), SPEC, 1, gone).load() == SAID
    with pytest.raises(PredictorError, match=f"is stale: {SCHEMA}: {RECORD_IT}$"):
        replayer(tmp_path).call(make_case(), SPEC, 1, lambda: "CREATE TABLE t (n)").load()


def test_a_schema_that_is_not_sent_is_not_listed(tmp_path):
    case = record(tmp_path, spec=COMMAND)

    assert replayer(tmp_path).call(case, COMMAND, 1, gone).load() == SAID


def test_what_decides_only_how_a_case_is_scored_does_not_count(tmp_path):
    record(tmp_path, case=of_suite("s.yaml"))
    changed = change(of_suite("s.yaml"), metrics=(), thresholds={}, golds=(), timeout=9.0, max_rows=9, trials=4)

    assert replayer(tmp_path).call(changed, SPEC, 1).load() == SAID


def test_another_line_of_the_same_suite_does_not_count(tmp_path):
    record(tmp_path, case=of_suite("s.yaml"))
    moved = replace(of_suite("s.yaml"), location=Location(Path("music/s.yaml"), 99))

    assert replayer(tmp_path).call(moved, SPEC, 1).load() == SAID


def test_another_suite_does_not_count(tmp_path):
    record(tmp_path, case=of_suite("s.yaml"))

    assert replayer(tmp_path).call(of_suite("other.yaml"), SPEC, 1).load() == SAID


def test_what_a_service_is_not_sent_does_not_count(tmp_path):
    bare = http(body={"q": "{question}", "d": "{dialect}"})
    record(tmp_path, case=of_suite("s.yaml", source=file_source("a.db")), spec=bare)
    second = of_suite("s.yaml", source=file_source("b.db"), tags=("x",), difficulty="hard")

    assert replayer(tmp_path).call(second, bare, 1).load() == SAID
    with pytest.raises(PredictorError, match=f"is stale: {SEEN}: {RECORD_IT}$"):
        replayer(tmp_path).call(change(second, dialect="duckdb"), bare, 1).load()


def test_of_a_registered_predictor_everything_counts_unless_it_says_otherwise(tmp_path, monkeypatch):
    monkeypatch.setitem(PREDICTORS._members, "whole", PredictorType(opener=lambda _: None))
    monkeypatch.setitem(PREDICTORS._members, "part", PredictorType(opener=lambda _: None, sends=lambda _: frozenset()))
    whole, part = (PredictorSpec(kind=kind, settings={}, folder=Path()) for kind in ("whole", "part"))
    for spec in (whole, part):
        record(tmp_path, case=of_suite("s.yaml"), spec=spec)
    second = of_suite("s.yaml", tags=("x",))

    assert recorder(tmp_path).call(second, whole, 1).load() is None
    assert recorder(tmp_path).call(second, part, 1).load() == SAID


def test_what_a_function_does_to_its_case_changes_nothing(tmp_path):
    case = make_case(metadata={"told": ["x"]})
    recording = recorder(tmp_path)
    for trial in (1, 2):
        call = recording.call(case, SPEC, trial)
        assert call.load() is None
        case.metadata["told"].append("y")
        case.metadata[f"seen {trial}"] = True
        call.save(SAID)

    back = [replayer(tmp_path).call(make_case(metadata={"told": ["x"]}), SPEC, trial).load() for trial in (1, 2)]

    assert back == [SAID, SAID]


def saying(query):
    return Prediction(QueryOrAnswer(query=query), predictor="http", seconds=1.0)


def test_two_cases_that_are_one_to_a_predictor_get_the_answer_that_a_replay_will_find(tmp_path):
    recording = recorder(tmp_path)
    first, second = (recording.call(of_suite(name), COMMAND, 1) for name in ("a.yaml", "b.yaml"))

    entries = [first.save(saying("SELECT 1")), second.save(saying("SELECT 2"))]

    assert entries == [saying("SELECT 1")] * 2
    assert replayer(tmp_path).call(of_suite("b.yaml"), COMMAND, 1).load() == entries[1]


def test_answers_that_arrive_at_once_become_one(tmp_path):
    calls = [recorder(tmp_path).call(make_case(), COMMAND, 1) for _ in range(16)]
    barrier = Barrier(len(calls))

    def keep_number(number):
        barrier.wait()
        return calls[number].save(saying(f"SELECT {number}"))

    with ThreadPoolExecutor(len(calls)) as pool:
        entries = [*pool.map(keep_number, range(len(calls)))]

    assert entries == [replayer(tmp_path).call(make_case(), COMMAND, 1).load()] * len(calls)


def test_a_file_system_without_links_will_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    case = record(tmp_path)

    assert replayer(tmp_path).call(case, SPEC, 1).load() == SAID
    assert len(files(tmp_path)) == 1


def test_what_is_kept_comes_back_as_a_replay_will_give_it(tmp_path):
    prediction = Prediction(SAID.content, predictor="p", metadata={"at": date(2024, 5, 1)})

    assert recorder(tmp_path).call(make_case(), SPEC, 1).save(prediction).metadata == {"at": "2024-05-01"}


def test_an_answer_with_a_secret_is_scored_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")

    entries = recorder(tmp_path).call(make_case(), SPEC, 1).save(saying("SELECT 'hunter2-hunter2'"))

    assert entries == saying("SELECT 'hunter2-hunter2'")


@pytest.mark.parametrize("seconds", [None, "soon"])
def test_a_time_that_is_none_cannot_be_kept(tmp_path, seconds):
    with pytest.raises(PredictorError, match=r"^the prediction for 'a' cannot be recorded: "):
        record(tmp_path, case=make_case(), said=replace(SAID, seconds=seconds))


def http(**settings_):
    return PredictorSpec(kind="http", settings={"url": "https://h/ask"} | settings_, folder=Path())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (http(auth={"bearer": "one-token"}), http(auth={"bearer": "two-token"})),
        (http(headers={"Authorization": "one-token"}), http()),
        (http(verify="a.pem"), http(verify=False)),
        (http(url="https://me:one@h/ask"), http(url="https://h/ask")),
        (http(url="https://h/ask?model=m&api_key=one"), http(url="https://h/ask?model=m&api_key=two-two")),
        (http(body={"api_key": "one", "q": "{question}"}), http(body={"api_key": "two-token", "q": "{question}"})),
        (
            PredictorSpec(kind="command", settings={"command": ["x"], "env": {"A": "1"}}, folder=Path()),
            PredictorSpec(kind="command", settings={"command": ["x"], "env": {"A": "2"}}, folder=Path()),
        ),
    ],
)
def test_a_new_secret_leaves_recorded_predictions_valid(tmp_path, first, second):
    case = record(tmp_path, spec=first)

    assert replayer(tmp_path).call(case, second, 1).load() == SAID


@pytest.mark.parametrize("recorded_where", ["known", "unknown"])
def test_the_secrets_that_an_environment_knows_do_not_count(tmp_path, monkeypatch, recorded_where):
    spec = http(url="https://h/some-secret-value/ask", body={"k": "some-secret-value"})
    if recorded_where == "known":
        monkeypatch.setenv("MODEL_TOKEN", "some-secret-value")
    case = record(tmp_path, spec=spec)
    monkeypatch.delenv("MODEL_TOKEN", raising=False)
    if recorded_where == "unknown":
        monkeypatch.setenv("MODEL_TOKEN", "some-secret-value")

    assert replayer(tmp_path).call(case, spec, 1).load() == SAID


def test_a_new_value_under_a_harmless_name_counts(tmp_path):
    case = record(tmp_path, spec=http(body={"k": "first-value-of-it"}))

    assert recorder(tmp_path).call(case, http(body={"k": "another-value-of-it"}), 1).load() is None


@pytest.mark.parametrize(
    "changed", [{"url": "https://h/ask?model=n"}, {"body": {"max_tokens": 9}}, {"answer": "$.sql"}]
)
def test_other_settings_count(tmp_path, changed):
    case = record(tmp_path, spec=http(url="https://h/ask?model=m", body={"max_tokens": 8}))

    assert (
        recorder(tmp_path)
        .call(case, http(**{"url": "https://h/ask?model=m", "body": {"max_tokens": 8}} | changed), 1)
        .load()
        is None
    )


def test_no_path_of_this_machine_is_written_or_counts(tmp_path):
    def entry_at(checkout):
        spec = PredictorSpec(
            kind="python", settings={"target": f"{checkout}/suite/bot.py:ask"}, folder=checkout / "suite"
        )
        recording = Recording(checkout / "recorded", replay=False, root=checkout)
        place = Location(checkout / "suite/s.queryeval.yaml", 4)
        case = make_case(location=place, source=file_source(f"{checkout}/suite/a.db"))
        recording.call(case, spec, 1).save(SAID)
        source = database(checkout / "suite", 1)
        recording.save_execution("SELECT 1", source, Execution(query="SELECT 1", answer=table((1,))), **LIMITS)
        return {path.relative_to(checkout): path.read_text("utf-8") for path in files(checkout / "recorded")}

    here = entry_at(tmp_path / "here")

    assert here == entry_at(tmp_path / "there")
    assert len(here) == 2
    assert str(tmp_path) not in "".join(here.values())


def test_no_secret_is_written(tmp_path, monkeypatch):
    secret = 'hunter2 "is" my\nsecret'
    monkeypatch.setenv("DB_PASSWORD", secret)
    monkeypatch.setenv("PIN_TOKEN", "73646464")
    source = fake_live(monkeypatch)
    recording = recorder(tmp_path)
    said = Prediction(QueryOrAnswer(query=f"SELECT '{secret}'"), predictor=secret, metadata={secret: [secret]})
    case = make_case(question=f"What is {secret}?", metadata={"a": secret})
    recording.call(case, http(auth={"bearer": "bearer-secret-1"}, url="https://me:pass-secret-2@h/"), 1).save(said)
    cells = (secret, secret.encode(), IRI(secret), Literal(secret), 73646464)
    recording.save_execution(
        said.content.query, source, Execution(query=secret, answer=table(cells), note=secret), **LIMITS
    )
    recording.save_execution("q", source, Execution(query="q", error=Failure(kind="invalid", message=secret)), **LIMITS)
    recording.save_ddl(source, f"CREATE TABLE t (n) -- {secret}")

    all_text = "".join(path.read_text("utf-8") for path in files(tmp_path))

    assert len(files(tmp_path)) == 4
    for part in ("hunter2", "73646464", "bearer-secret-1", "pass-secret-2"):
        assert part not in all_text


def test_what_held_a_secret_is_not_replayed_as_something_else(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    case = record(tmp_path, said=Prediction(QueryOrAnswer(query="SELECT 'hunter2-hunter2'"), predictor="p"))
    before = only_file(tmp_path).read_bytes()

    assert recorder(tmp_path).call(case, SPEC, 1).load() is None
    with pytest.raises(PredictorError, match="cannot be replayed: it held a secret, which was not written"):
        replayer(tmp_path).call(case, SPEC, 1).load()
    record(
        tmp_path,
        case=case,
        said=Prediction(QueryOrAnswer(query="SELECT 'hunter2-hunter2'"), predictor="p", seconds=3.0),
    )
    assert only_file(tmp_path).read_bytes() == before


def test_a_secret_in_what_the_system_told_beside_its_answer_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    case = record(
        tmp_path,
        said=Prediction(QueryOrAnswer(query="SELECT 1"), predictor="p", metadata={"a": "hunter2-hunter2"}),
    )

    assert replayer(tmp_path).call(case, SPEC, 1).load().metadata == {"a": "[redacted]"}


def test_a_secret_in_a_query_does_not_keep_its_answer_from_being_replayed(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    source = fake_live(monkeypatch)
    query = "SELECT 'hunter2-hunter2' = x"
    recorder(tmp_path).save_execution(query, source, Execution(query=query, answer=table((True,))), **LIMITS)

    back = replayer(tmp_path).load_execution(query, source, **LIMITS)

    assert (back.query, back.answer.rows) == (query, [(True,)])
    assert recorder(tmp_path).load_execution("SELECT 'another-secret' = x", source, **LIMITS) is None


def test_queries_that_differ_in_a_secret_only_are_not_told_to_be_stale(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    monkeypatch.setenv("DB_TOKEN", "hunter3-hunter3")
    source = fake_live(monkeypatch)
    keep(tmp_path, source, query="SELECT 'hunter2-hunter2'")

    with pytest.raises(SourceError, match=r"^no recorded execution of `SELECT '\[redacted\]'` on 'music' in "):
        replayer(tmp_path).load_execution("SELECT 'hunter3-hunter3'", source, **LIMITS)


def database(folder, value, name="a.db"):
    """A source that is a database file with one row."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / name)) as connection:
        connection.execute("CREATE TABLE t (n)")
        connection.execute("INSERT INTO t VALUES (?)", (value,))
        connection.commit()
    return Source(name=name, engine="sqlite", settings={"path": name}, folder=folder)


def fake_live(monkeypatch, name="music", **settings_):
    install_engine(monkeypatch, {})
    return Source(name=name, engine="fake", settings={"version": "5"} | settings_, folder=Path())


def keep(folder, source, query="SELECT n FROM t", answer=None, **limits):
    execution = Execution(query=query, answer=answer or table((1,)), seconds=0.5, engine="sqlite", note="n")
    recorder(folder).save_execution(query, source, execution, **LIMITS | limits)
    return execution


def late(message="late"):
    return Execution(query="x", error=Failure(kind="timeout", message=message), seconds=5.0)


def test_an_execution_comes_back_whole(tmp_path):
    source = database(tmp_path / "data", 1)
    entries = keep(tmp_path / "r", source, answer=table((1, "a", None), columns=("x", "x", "y")))

    back = replayer(tmp_path / "r").load_execution("SELECT n FROM t", source, **LIMITS)

    assert (back.query, back.seconds, back.engine, back.note) == (entries.query, 0.5, "sqlite", "n")
    assert (back.answer.columns, back.answer.rows) == (("x", "x", "y"), [(1, "a", None)])


def test_a_failed_execution_comes_back(tmp_path):
    source = database(tmp_path / "data", 1)
    failed = Execution(query="x", error=Failure(kind="invalid", message="no\nsuch"), violations=("a",))
    recorder(tmp_path / "r").save_execution("x", source, failed, **LIMITS)

    assert replayer(tmp_path / "r").load_execution("x", source, **LIMITS) == failed


def test_touching_one_database_leaves_the_others_valid(tmp_path):
    first, second = database(tmp_path, 1, "a.db"), database(tmp_path, 2, "b.db")
    keep(tmp_path / "r", first)
    keep(tmp_path / "r", second)
    database(tmp_path, 3, "a.db")

    with pytest.raises(SourceError) as raised:
        replayer(tmp_path / "r").load_execution("SELECT n FROM t", first, **LIMITS)

    assert str(raised.value).startswith(
        f"the execution of `SELECT n FROM t` on 'a.db' in {tmp_path / 'r'} is stale: its source has"
    )
    assert f"now state {state_of(first)[:8]}…)" in str(raised.value)
    assert replayer(tmp_path / "r").load_execution("SELECT n FROM t", second, **LIMITS).answer.rows == [(1,)]
    assert recorder(tmp_path / "r").load_execution("SELECT n FROM t", first, **LIMITS) is None


def test_a_database_that_was_written_again_with_the_same_content_is_the_same(tmp_path):
    source = database(tmp_path, 1)
    keep(tmp_path / "r", source)
    os.utime(tmp_path / "a.db", (1, 1))

    assert replayer(tmp_path / "r").load_execution("SELECT n FROM t", source, **LIMITS) is not None


def test_a_query_that_was_never_run_is_missing(tmp_path):
    source = database(tmp_path, 1)
    keep(tmp_path / "r", source)

    with pytest.raises(SourceError) as raised:
        replayer(tmp_path / "r").load_execution("SELECT 2", source, **LIMITS)

    assert str(raised.value) == (f"no recorded execution of `SELECT 2` on 'a.db' in {tmp_path / 'r'}: {RECORD_IT}")


def test_another_version_of_the_engine_is_told(tmp_path, monkeypatch):
    source = database(tmp_path, 1)
    keep(tmp_path / "r", source)
    monkeypatch.setattr(sqlite3, "sqlite_version", "9.9.9")

    with pytest.raises(
        SourceError, match=r"another version of its engine is installed \(recorded sqlite 3.*, now sqlite 9"
    ):
        replayer(tmp_path / "r").load_execution("SELECT n FROM t", source, **LIMITS)


def test_another_limit_of_rows_is_told(tmp_path):
    source = database(tmp_path, 1)
    keep(tmp_path / "r", source)

    with pytest.raises(SourceError, match=r"is stale: `max_rows` has changed \(recorded 100, now 7\)"):
        replayer(tmp_path / "r").load_execution("SELECT n FROM t", source, timeout=5.0, max_rows=7)


def test_a_query_that_ran_out_of_time_counts_for_no_longer_limit(tmp_path):
    source = database(tmp_path, 1)
    recorder(tmp_path / "r").save_execution("x", source, late(), **LIMITS)

    assert replayer(tmp_path / "r").load_execution("x", source, timeout=2.0, max_rows=100) == late()
    assert recorder(tmp_path / "r").load_execution("x", source, timeout=9.0, max_rows=100) is None
    with pytest.raises(SourceError, match="ran out of time after 5 s: whether 9 s are enough was not recorded"):
        replayer(tmp_path / "r").load_execution("x", source, timeout=9.0, max_rows=100)

    keep(tmp_path / "r", source, query="x", timeout=9.0)
    assert replayer(tmp_path / "r").load_execution("x", source, timeout=9.0, max_rows=100).answer.rows == [(1,)]


def test_a_database_that_changes_during_a_run_is_not_recorded(tmp_path):
    source = database(tmp_path, 1)
    recording = recorder(tmp_path / "r")
    assert recording.load_execution("SELECT n FROM t", source, **LIMITS) is None
    database(tmp_path, 2)

    with pytest.raises(SourceError, match=r"'a.db' has changed during the run"):
        recording.save_execution("SELECT n FROM t", source, Execution(query="", answer=table((2,))), **LIMITS)


def test_a_live_source_needs_a_version(tmp_path, monkeypatch):
    fake_live(monkeypatch)

    for recording in (recorder(tmp_path), replayer(tmp_path)):
        with pytest.raises(SourceError, match=r"^source 'music': its answers can be recorded only with a `version`"):
            recording.load_execution("q", fake_source(), **LIMITS)


def test_a_new_version_makes_what_is_recorded_stale(tmp_path, monkeypatch):
    keep(tmp_path, fake_live(monkeypatch))

    with pytest.raises(SourceError, match=r"its source has changed since \(recorded version 5, now version 6\)"):
        replayer(tmp_path).load_execution("SELECT n FROM t", fake_live(monkeypatch, version=6), **LIMITS)


def test_the_address_of_a_named_service_may_be_another_one_elsewhere(tmp_path, monkeypatch):
    keep(tmp_path, fake_live(monkeypatch, path="http://here/"))

    assert replayer(tmp_path).load_execution("SELECT n FROM t", fake_live(monkeypatch, path="http://there/"), **LIMITS)
    assert recorder(tmp_path).load_execution("SELECT n FROM t", fake_live(monkeypatch, name="other"), **LIMITS) is None


def test_other_credentials_are_no_other_service(tmp_path, monkeypatch):
    recording = recorder(tmp_path)
    recording.load_execution("q", fake_live(monkeypatch, path="http://me:one@here/"), **LIMITS)

    assert recording.load_execution("q", fake_live(monkeypatch, path="http://you:two@here/"), **LIMITS) is None


def test_a_source_that_is_called_by_its_absolute_path_is_written_without_it(tmp_path):
    database(tmp_path, 1)
    source = Source(name=f"{tmp_path}/a.db", engine="sqlite", settings={"path": f"{tmp_path}/a.db"}, folder=Path("/x"))
    keep(tmp_path / "r", source)

    assert str(tmp_path) not in only_file(tmp_path / "r").read_text("utf-8")
    assert replayer(tmp_path / "r").load_execution("SELECT n FROM t", source, **LIMITS)


def test_two_services_of_one_name_and_version_are_not_mixed_up(tmp_path, monkeypatch):
    recording = recorder(tmp_path)
    recording.load_execution("q", fake_live(monkeypatch, path="http://here/"), **LIMITS)

    with pytest.raises(SourceError, match="another source of this name and version has another address"):
        recording.load_execution("q", fake_live(monkeypatch, path="http://there/"), **LIMITS)


def test_tables_and_times_come_back(tmp_path):
    source = database(tmp_path, 1)
    schema = Schema(tables={"b": ("x", "y"), "a": ("z",)}, foreign_keys=((("b", "x"), ("a", "z")),))
    recording, folder = recorder(tmp_path / "r"), tmp_path / "r"
    assert (recording.load_schema(source), recording.load_times("g", "p", source, 2)) == (None, None)
    recording.save_schema(source, schema)
    recording.save_times("g", "p", source, 2, [(0.1, 0.2), (0.1, 0.3)])

    assert replayer(folder).load_schema(source) == schema
    assert [*replayer(folder).load_schema(source).tables] == ["b", "a"]
    assert replayer(folder).load_times("g", "p", source, 2) == [(0.1, 0.2), (0.1, 0.3)]
    with pytest.raises(SourceError, match=r"the times of 'a.db' in .* are stale: `iterations` has changed"):
        replayer(folder).load_times("g", "p", source, 3)
    with pytest.raises(SourceError, match=r"^no recorded times of 'a.db' in "):
        replayer(folder).load_times("g", "q", source, 2)
    database(tmp_path, 2)
    with pytest.raises(SourceError, match=r"the tables of 'a.db' in .* are stale: its source has changed since"):
        replayer(folder).load_schema(source)


@pytest.mark.parametrize(
    "cause",
    [
        None,
        Cause(edits=(CausingEdit(label="wrong-value", clause="WHERE", change="1 → 2\ud83d"),)),
        Cause(
            edits=(
                CausingEdit(label="wrong-value", clause="WHERE", change="1 → 2"),
                CausingEdit(label="missing-order", clause="ORDER", change="nothing → a"),
            ),
            repaired_query="SELECT a\nFROM t",
            is_tested=True,
        ),
        SharedPatterns(shared=1, of=2, only_gold=("?x a :Singer",), only_predicted=()),
    ],
)
def test_a_cause_comes_back_for_the_same_comparison(tmp_path, cause):
    case, folder = make_case(source=database(tmp_path, 1)), tmp_path / "r"
    assert recorder(folder).load_cause("g", "p", case) is None
    recorder(folder).save_cause("g", "p", case, cause)

    assert replayer(folder).load_cause("g", "p", case) == (cause,)
    with pytest.raises(SourceError, match=r"^no recorded cause of `q` on 'a.db' in "):
        replayer(folder).load_cause("g", "q", case)
    with pytest.raises(SourceError, match=r"the cause of `p` on 'a.db' in .* is stale: `compare` has changed"):
        replayer(folder).load_cause("g", "p", change(case, policy=Policy(case="ignore")))


@pytest.mark.parametrize(
    "entry",
    [
        {"edits": [["no-label", "WHERE", "1 → 2"]], "repaired_query": None, "tested": True},
        {"edits": [["wrong-value", "WHERE"]], "repaired_query": None, "tested": True},
        {"edits": [["wrong-value", "WHERE", "1 → 2"]], "tested": True},
        {"shared": "x", "gold_patterns": 1, "only_gold": [], "only_predicted": []},
        {},
    ],
)
def test_an_entry_without_a_cause_is_damaged(entry):
    with pytest.raises((ValueError, TypeError, KeyError)):
        decode_cause(entry)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[: len(text) // 2], "it is not JSON: "),
        (lambda text: "[]", "it holds no entry"),
        (lambda text: "[" * 100_000, "it is nested too deeply"),
        (lambda text: text.replace("SELECT 1", "SELECT 2"), "it was changed after it was recorded"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "it is not of format 1"),
        (lambda text: text.replace("0.25", "NaN"), "it is not JSON: NaN is not JSON"),
        (lambda text: "\n<<<<<<< HEAD\n" + text, "it is not JSON: Expecting value: line 2 column 1"),
        (lambda text: text.encode("utf-16"), "it is not UTF-8"),
    ],
)
@pytest.mark.parametrize("opened", [recorder, replayer])
def test_a_damaged_entry_is_one_error_with_its_path(tmp_path, damage, reason, opened):
    case = record(tmp_path)
    path = only_file(tmp_path)
    damaged = damage(path.read_text("utf-8"))
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())

    with pytest.raises(PredictorError) as raised:
        opened(tmp_path).call(case, SPEC, 1).load()
    assert str(raised.value).startswith(f"the recorded entry {path} is damaged: {reason}")
    assert "\n" not in str(raised.value)
    with pytest.raises(PredictorError, match="is damaged"):
        record(tmp_path, case=case)


@pytest.mark.parametrize(
    "changes",
    [{"query": 5}, {"query": None, "seconds": "x"}, {"metadata": []}, {"table": {"columns": ["a"], "rows": [[1, 2]]}}],
)
def test_an_entry_with_a_right_checksum_and_a_wrong_content_is_damaged(tmp_path, changes):
    case = record(tmp_path)
    path = only_file(tmp_path)
    entry = decode_entry(path.stem, path.read_bytes())
    path.write_bytes(encode_entry(path.stem, entry | changes))

    with pytest.raises(PredictorError, match=r"is damaged: it does not hold what it should"):
        replayer(tmp_path).call(case, SPEC, 1).load()


def test_an_entry_under_the_name_of_another_one_is_damaged(tmp_path):
    case = record(tmp_path)
    path = only_file(tmp_path)
    record(tmp_path, case=make_case(id="b"))
    (second,) = set(files(tmp_path)) - {path}
    path.write_bytes(second.read_bytes())

    with pytest.raises(PredictorError, match="it was changed after it was recorded"):
        replayer(tmp_path).call(case, SPEC, 1).load()


def test_entries_survive_other_line_ends_and_indents(tmp_path):
    case = record(tmp_path)
    path = only_file(tmp_path)
    path.write_bytes(json.dumps(json.loads(path.read_bytes()), indent=8).replace("\n", "\r\n").encode())

    assert replayer(tmp_path).call(case, SPEC, 1).load() == SAID


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_not_read(tmp_path, make):
    case = record(tmp_path)
    path = only_file(tmp_path)
    path.unlink()
    make(path)

    with pytest.raises(PredictorError, match="it is not a regular file"):
        replayer(tmp_path).call(case, SPEC, 1).load()


def test_one_damaged_entry_does_not_hide_what_became_of_others(tmp_path):
    source = database(tmp_path, 1)
    keep(tmp_path / "r", source, query="SELECT 5")
    only_file(tmp_path / "r").write_text("{", encoding="utf-8")
    keep(tmp_path / "r", source)
    (tmp_path / "r/executions/notes.json").write_text("x", encoding="utf-8")
    database(tmp_path, 2)

    with pytest.raises(SourceError, match="is stale: its source has changed since"):
        replayer(tmp_path / "r").load_execution("SELECT n FROM t", source, **LIMITS)


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")

    with pytest.raises(PredictorError, match=r"^nothing can be recorded in .*/file/predictions: Not a directory$"):
        record(tmp_path / "file")
    with pytest.raises(QueryEvalError, match=r"^nothing can be recorded in .*/file: is a file: name a folder$"):
        recorder(tmp_path / "file").check()


def test_nothing_to_replay_is_told_at_once(tmp_path):
    with pytest.raises(QueryEvalError, match=r"^there is no folder .*: record it with "):
        replayer(tmp_path / "none").check()
    (tmp_path / "file").touch()
    with pytest.raises(QueryEvalError, match=r"/file is a file: name the folder of a recording, or record it with "):
        replayer(tmp_path / "file").check()


def test_a_replay_writes_nothing(tmp_path):
    with pytest.raises(PredictorError):
        replayer(tmp_path / "r").call(make_case(), SPEC, 1).load()

    assert files(tmp_path) == []


def test_an_answer_that_cannot_be_written_is_one_error(tmp_path):
    with pytest.raises(
        PredictorError, match=r"^the prediction for 'a' cannot be recorded: a value of the type timedelta$"
    ):
        record(tmp_path, said=Prediction(QueryOrAnswer(answer=table((timedelta(1),))), predictor="p"))


def test_an_answer_that_nests_too_deep_is_one_error(tmp_path):
    deep = []
    for _ in range(5_000):
        deep = [deep]

    with pytest.raises(PredictorError, match=r"^the prediction for 'a' cannot be recorded: it is nested too deeply$"):
        record(tmp_path, said=Prediction(QueryOrAnswer(answer=JsonAnswer(deep)), predictor="p"))
    assert files(tmp_path) == []


def test_processes_that_write_at_once_leave_whole_entries(tmp_path):
    program = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from pathlib import Path
from test_recording import database, late, recorder
folder = Path(sys.argv[2])
source = database(folder / sys.argv[3], 1)
for limit in range(1, 61):
    recording = recorder(folder / "r")
    recording.save_execution("x", source, late("m" * 50_000), timeout=float(limit), max_rows=9)
    assert recording.load_execution("x", source, timeout=1.0, max_rows=9).error.message == "m" * 50_000
"""
    folders = f"{Path(__file__).parent}:{Path(__file__).parents[2]}"
    command = [sys.executable, "-c", program, folders, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(3)]

    assert [writer.wait(timeout=300) for writer in writers] == [0] * 3
    only_file(tmp_path / "r")
    assert replayer(tmp_path / "r").load_execution("x", database(tmp_path, 1), timeout=59.0, max_rows=9)


def source_of(engine, folder, /, **settings_):
    return Source(name="s", engine=engine, settings=settings_, folder=folder)


@pytest.mark.parametrize(
    ("engine", "settings_", "file"),
    [
        ("sqlite", {"path": "a.db"}, "a.db"),
        ("sqlite", {"path": "a.db"}, "a.db-wal"),
        ("sqlite", {"script": "a.sql"}, "a.sql"),
        ("duckdb", {"path": "a.duckdb"}, "a.duckdb"),
        ("duckdb", {"path": "a.duckdb"}, "a.duckdb.wal"),
        ("duckdb", {"tables": {"a": "a.csv", "b": "b.csv"}}, "b.csv"),
        ("rdf", {"files": "a.ttl"}, "a.ttl"),
        ("rdf", {"files": ["a.ttl", "b.ttl"]}, "b.ttl"),
    ],
)
@pytest.mark.feature("duckdb")
def test_the_state_of_a_source_changes_with_each_of_its_files(tmp_path, engine, settings_, file):
    for name in ("a.db", "a.sql", "a.duckdb", "a.csv", "b.csv", "a.ttl", "b.ttl"):
        (tmp_path / name).write_text("before", encoding="utf-8")
    source = source_of(engine, tmp_path, **settings_)
    before = state_of(source)
    (tmp_path / file).write_text("behind", encoding="utf-8")

    assert len(before) == 32
    assert state_of(source) != before


def test_the_files_of_a_source_may_be_those_that_its_folder_holds(tmp_path, monkeypatch):
    fingerprint = SourceFingerprint(files=lambda source: sorted(path.name for path in source.folder.glob("*.csv")))
    engine = EngineType(opener=ENGINES["sqlite"].opener, fingerprint=fingerprint)
    monkeypatch.setattr(ENGINES, "_members", {**ENGINES._members, "folder": engine})
    (tmp_path / "a.csv").write_text("x", encoding="utf-8")
    before = state_of(source_of("folder", tmp_path))

    (tmp_path / "b.csv").write_text("x", encoding="utf-8")

    assert state_of(source_of("folder", tmp_path)) != before


def test_the_state_of_a_source_with_files_says_its_version_too(tmp_path):
    source = database(tmp_path, 1)
    versioned = source_of("sqlite", tmp_path, path="a.db", version="v2")

    assert state_of(versioned) == f"{state_of(source)} version v2"


@pytest.mark.parametrize("version", [True, [], {}, " "])
def test_a_version_is_a_text_or_a_number(monkeypatch, version):
    with pytest.raises(SourceError, match="'version' is neither a text nor a number"):
        state_of(fake_live(monkeypatch, version=version))


def test_a_source_without_its_file_has_no_state(tmp_path):
    with pytest.raises(SourceError, match=r"^source 's': .*/a.db: no such file$"):
        state_of(source_of("sqlite", tmp_path, path="a.db"))
    with pytest.raises(SourceError, match=r": a directory, not a file$"):
        state_of(source_of("sqlite", tmp_path, path="."))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"files": "a.ttl"}, {"files": "a.ttl", "default_graph": "union"}),
        ({"files": "a.ttl"}, {"files": "a.ttl", "engine": ["oxigraph", "rdflib"]}),
    ],
)
def test_settings_that_change_answers_count(tmp_path, first, second):
    (tmp_path / "a.ttl").write_text("", encoding="utf-8")
    keep(tmp_path / "r", source_of("rdf", tmp_path, **first), query="ASK {}")

    with pytest.raises(SourceError, match="is stale: "):
        replayer(tmp_path / "r").load_execution("ASK {}", source_of("rdf", tmp_path, **second), **LIMITS)


@pytest.mark.feature("duckdb")
def test_names_of_tables_count(tmp_path):
    (tmp_path / "a.csv").write_text("n\n1\n", encoding="utf-8")
    keep(tmp_path / "r", source_of("duckdb", tmp_path, tables={"a": "a.csv"}), query="FROM a")

    with pytest.raises(SourceError, match="the settings of its source have changed"):
        replayer(tmp_path / "r").load_execution(
            "FROM a", source_of("duckdb", tmp_path, tables={"b": "a.csv"}), **LIMITS
        )


def test_an_abstention_comes_back_as_it_was():
    prediction = replace(SAID, content=Abstention("no table\nhas that"))

    assert decode_prediction(decode_entry(NAME, encode_entry(NAME, encode_prediction(prediction)))) == prediction


def test_a_recorded_text_is_found_again_when_the_pattern_of_abstentions_changes(tmp_path):
    keys, case = PredictionKeys(tmp_path), make_case()

    assert keys.facts(case, replace(SPEC, abstain="^I do not know"), 1) == keys.facts(case, SPEC, 1)
