"""What is recorded comes back as it was, in files that people can read, and nothing that is stale passes for new."""

import json
import math
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import change, fake_source, install_engine, make_case, table
from selections import selected

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
from pytest_queryeval.features.recording import Recording
from pytest_queryeval.features.recording.store import decode_entry, encode_entry  # white box: a checksum is right
from pytest_queryeval.predictors import PREDICTORS, PredictorType

RECORD_IT = "record it with --queryeval-record, or with `queryeval evaluate --record`"
LIMITS = {"timeout": 5.0, "max_rows": 100}
SELECT = "SELECT n FROM t"
SECRET = 'hunter2 "is" my\nsecret'
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
HOOK = PredictorSpec(kind="hook", settings={}, folder=Path())
COMMAND = PredictorSpec(kind="command", settings={"run": ["bot"]}, folder=Path())
SAID = Prediction(QueryOrAnswer(query="SELECT 1"), predictor="python:bot.py:ask", seconds=0.25, metadata={"tokens": 7})


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


def database(folder, value, name="a.db"):
    """A source that is a database file with one row."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / name)) as connection:
        connection.execute("CREATE TABLE t (n)")
        connection.execute("INSERT INTO t VALUES (?)", (value,))
        connection.commit()
    return source_of("sqlite", folder, name=name, path=name)


def source_of(engine, folder, /, name="s", **settings):
    return Source(name=name, engine=engine, settings=settings, folder=folder)


def fake_live(monkeypatch, name="music", **settings):
    install_engine(monkeypatch, {})
    return source_of("fake", Path(), name=name, **{"version": "5"} | settings)


def late(message="late"):
    return Execution(query="x", error=Failure(kind="timeout", message=message), seconds=5.0)


def keep(folder, source, query=SELECT, answer=None, **limits):
    execution = Execution(query=query, answer=answer or table((1,)), seconds=0.5, engine="sqlite", note="n")
    recorder(folder).save_execution(query, source, execution, **LIMITS | limits)


def found(folder, source, query=SELECT, **limits):
    return replayer(folder).load_execution(query, source, **LIMITS | limits)


def known(folder, source, query=SELECT):
    return recorder(folder).load_execution(query, source, **LIMITS) is not None


def record(folder, *, case=None, spec=SPEC, trial=1, said=SAID):
    case = case or make_case(question="How many?")
    return recorder(folder).call(case, spec, trial).save(said)


def replayed(folder, *, case=None, spec=SPEC, trial=1, schema=lambda: None):
    return replayer(folder).call(case or make_case(question="How many?"), spec, trial, schema).load()


def saying(query):
    return replace(SAID, answer=QueryOrAnswer(query=query))


def plain(value):
    """What tells values apart that Python takes for equal: types, signs of zero, zones, NaN; tables by their parts."""
    if isinstance(value, Execution | Prediction | QueryOrAnswer):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__ if name != "location"}
    if isinstance(value, Table):
        return value.columns, [*map(repr, map(tuple, value.rows))], value.ties, value.is_graph, value.has_header
    return value if isinstance(value, Schema | JsonAnswer | Cause | SharedPatterns) else repr(value)


class Entry(NamedTuple):
    """One sort of entries: how a value is saved and loaded, and how messages call it."""

    save: Any
    load: Any
    value: Any
    name: str
    is_of_source: bool = True


def call_entry(said, case, trial):
    trial_text = f" (trial {trial})" if trial > 1 else ""
    return Entry(
        lambda recording: recording.call(case, SPEC, trial).save(said),
        lambda recording: recording.call(case, SPEC, trial).load(),
        said,
        f"prediction for 'a'{trial_text}",
        is_of_source=False,
    )


def source_entry(what, value, *request, name, **limits):
    """An entry of what is asked of a source; what may be None is loaded in a tuple."""
    save_value = value[0] if isinstance(value, tuple) else value
    return Entry(
        lambda recording: getattr(recording, f"save_{what}")(*request, save_value, **limits),
        lambda recording: getattr(recording, f"load_{what}")(*request, **limits),
        value,
        f"{name} on 'a.db'" if "`" in name else f"{name} of 'a.db'",
    )


def entries(folder, answer=None):
    """An entry of each sort, of a source in a folder."""
    source = database(folder, 1)
    case = make_case(question="How many?", source=source)
    answer = answer or table((1, "a", None), columns=("x", "x", "y"))
    ran = Execution(query="q", answer=answer, seconds=0.5, engine="sqlite", note="n")
    failed = Execution(query="f", error=Failure(kind="invalid", message="no\nsuch"), violations=("a",))
    tables = Schema(tables={"b": ("x", "y"), "a": ("z",)}, foreign_keys=((("b", "x"), ("a", "z")),))
    edits = (CausingEdit(label="wrong-value", clause="WHERE", change="1 → 2\ud83d"),)
    causes = {
        "no cause": None,
        "cause": Cause(edits=edits),
        "repair": Cause(edits=edits * 2, repaired_query="SELECT\n1", is_tested=True),
        "patterns": SharedPatterns(shared=1, of=2, only_gold=("?x a :Singer",), only_predicted=()),
    }
    challenge = {"verdict": "stands", "tried": 5, "counterexample": None, "unlike": None}
    return {
        "prediction": call_entry(SAID, case, 1),
        "predicted answer": call_entry(replace(SAID, answer=QueryOrAnswer(answer=answer)), case, 2),
        "empty prediction": call_entry(saying(""), case, 3),
        "abstention": call_entry(replace(SAID, answer=Abstention("no table\nhas that")), case, 4),
        "execution": source_entry("execution", ran, "q", source, name="execution of `q`", **LIMITS),
        "failure": source_entry("execution", failed, "f", source, name="execution of `f`", **LIMITS),
        "tables": source_entry("schema", tables, source, name="tables"),
        "ddl": source_entry("ddl", ("CREATE TABLE t (n)",), source, name="tables"),
        "times": source_entry("times", [(0.1, 0.2), (0.1, 0.3)], "g", "p", source, 2, name="times"),
        "challenge": source_entry("challenge", challenge, "g", "p", case, name="challenge of `p`"),
        **{
            sort: source_entry("cause", (cause,), "g", "p", change(case, max_rows=rows), name="cause of `p`")
            for rows, (sort, cause) in enumerate(causes.items(), 1)
        },
    }


SORTS = (
    *("prediction", "predicted answer", "empty prediction", "abstention", "execution", "failure", "tables", "ddl"),
    *("times", "challenge", "no cause", "cause", "repair", "patterns"),
)


@pytest.mark.parametrize("sort", SORTS)
def test_what_is_recorded_comes_back_and_is_not_touched_again(tmp_path, sort):
    assert entries(tmp_path).keys() == {*SORTS}
    entry, folder = entries(tmp_path)[sort], tmp_path / "r"
    assert entry.load(recorder(folder)) is None
    assert not folder.exists()

    entry.save(recorder(folder))
    path = only_file(folder)
    before = path.stat().st_ino, path.read_bytes()
    entry.save(recorder(folder))

    for recording in (recorder(folder), replayer(folder), pickle.loads(pickle.dumps(replayer(folder)))):
        assert plain(entry.load(recording)) == plain(entry.value)
    assert (path.stat().st_ino, path.read_bytes()) == before


@pytest.mark.parametrize("sort", SORTS)
def test_a_replay_names_what_is_missing_and_writes_nothing(tmp_path, sort):
    entry, folder = entries(tmp_path)[sort], tmp_path / "r"

    with pytest.raises((PredictorError, SourceError)) as raised:
        entry.load(replayer(folder))

    assert str(raised.value) == f"no recorded {entry.name} in {folder}: {RECORD_IT}"
    assert not folder.exists()


@pytest.mark.parametrize("sort", SORTS)
def test_what_depends_on_a_source_is_stale_once_that_has_changed_and_is_not_recorded_meanwhile(tmp_path, sort):
    entry, folder = entries(tmp_path)[sort], tmp_path / "r"
    entry.save(recorder(folder))
    os.utime(tmp_path / "a.db", (1, 1))  # written again, with the same content
    assert entry.load(replayer(folder)) is not None
    during = recorder(folder)
    entry.load(during)

    database(tmp_path, 2)

    if not entry.is_of_source:
        assert entry.load(replayer(folder)) is not None
        return
    assert entry.load(recorder(folder)) is None
    with pytest.raises(
        SourceError, match=rf"^the {re.escape(entry.name)} in .* (is|are) stale: its source has changed"
    ):
        entry.load(replayer(folder))
    with pytest.raises(SourceError, match=r"'a.db' has changed during the run"):
        entry.save(during)


DAMAGES = {
    "half": (lambda text: text[: len(text) // 2], "it is not JSON: "),
    "no entry": (lambda text: "[]", "it contains no entry"),
    "deep": (lambda text: "[" * 100_000, "it is nested too deeply"),
    "changed": (lambda text: text.replace("sqlite", "duckdb").replace("1", "2"), "it "),
    "format": (lambda text: text.replace('"format": 1', '"format": 2'), "it is not of format 1"),
    "NaN": (lambda text: text.replace('"format": 1', '"format": NaN'), "it is not JSON: NaN is not JSON"),
    "conflict": (lambda text: "\n<<<<<<< HEAD\n" + text, "it is not JSON: Expecting value: line 2 column 1"),
    "UTF-16": (lambda text: text.encode("utf-16"), "it is not UTF-8"),
}


DAMAGED = ("prediction", "execution", "cause", "challenge", "times", "ddl", "failure", "abstention")


@pytest.mark.parametrize(("sort", "damage"), [*zip(DAMAGED, DAMAGES, strict=True)])
def test_a_damaged_entry_is_one_error_with_its_path_and_is_not_written_over(tmp_path, sort, damage):
    entry, folder = entries(tmp_path)[sort], tmp_path / "r"
    entry.save(recorder(folder))
    path = only_file(folder)
    damaged, reason = DAMAGES[damage][0](path.read_text("utf-8")), DAMAGES[damage][1]
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    before = path.read_bytes()

    for use in (
        lambda: entry.load(recorder(folder)),
        lambda: entry.load(replayer(folder)),
        lambda: entry.save(recorder(folder)),
    ):
        with pytest.raises(SourceError if entry.is_of_source else PredictorError) as raised:
            use()
        assert str(raised.value).startswith(f"the recorded entry {path} is damaged: {reason}")
        assert "\n" not in str(raised.value)
    assert path.read_bytes() == before


BAD_CELLS = [
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
]
LABELLED = {"repaired_query": None, "tested": True}


@pytest.mark.parametrize(
    ("sort", "changes"),
    [
        ("prediction", {"query": 5}),
        ("prediction", {"query": None, "seconds": "x"}),
        ("prediction", {"metadata": []}),
        ("prediction", {"table": {"columns": ["a"], "rows": [[1, 2]]}}),
        *(("execution", {"table": {"columns": ["a"], "rows": [[cell]]}}) for cell in BAD_CELLS),
        ("execution", {"error": {"kind": "invalid", "message": "an answer and an error"}}),
        ("execution", {"engine": 5}),
        ("cause", {"edits": [["no-label", "WHERE", "1 → 2"]], **LABELLED}),
        ("cause", {"edits": [["wrong-value", "WHERE"]], **LABELLED}),
        ("cause", {"edits": [["wrong-value", "WHERE", "1 → 2"]], "tested": True, "repaired_query": 5}),
        ("patterns", {"shared": "x"}),
        ("patterns", {"only_gold": 5}),
    ],
)
def test_an_entry_with_a_right_checksum_and_a_wrong_content_is_damaged(tmp_path, sort, changes):
    entry, folder = entries(tmp_path)[sort], tmp_path / "r"
    entry.save(recorder(folder))
    path = only_file(folder)
    path.write_bytes(encode_entry(path.stem, decode_entry(path.stem, path.read_bytes()) | changes))

    with pytest.raises((PredictorError, SourceError), match=r"is damaged: it does not contain what it should"):
        entry.load(replayer(folder))


def test_a_challenge_of_an_earlier_version_has_to_be_recorded_again(tmp_path):
    challenge, folder = entries(tmp_path)["challenge"], tmp_path / "r"
    challenge.save(recorder(folder))
    path = only_file(folder)
    now = decode_entry(path.stem, path.read_bytes())
    before = {**now, "refutation": None, "ruled_out": None, "rules": [], "reason": ""}
    del before["counterexample"], before["unlike"]
    path.write_bytes(encode_entry(path.stem, before))

    with pytest.raises(SourceError, match=r"an earlier version wrote it in another form: remove it, and record again"):
        challenge.load(replayer(folder))


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo, Path.mkdir])
def test_what_is_no_file_or_that_of_another_entry_is_not_read(tmp_path, make):
    record(tmp_path)
    path = only_file(tmp_path)
    content = path.read_bytes()
    record(tmp_path, case=make_case(id="b"))
    (second,) = set(files(tmp_path)) - {path}

    path.write_bytes(second.read_bytes())
    with pytest.raises(PredictorError, match="it was changed after it was recorded"):
        replayed(tmp_path)
    path.write_bytes(json.dumps(json.loads(content), indent=8).replace("\n", "\r\n").encode())
    assert replayed(tmp_path) == SAID
    path.unlink()
    make(path)
    with pytest.raises(PredictorError, match="it is not a regular file"):
        replayed(tmp_path)


# Values


def back(answer, folder):
    """An answer as it comes out of an entry, and the text of that."""
    for path in files(folder / "r"):
        path.unlink()
    entry = entries(folder, answer)["execution"]
    entry.save(recorder(folder / "r"))
    return entry.load(replayer(folder / "r")).answer, only_file(folder / "r").read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("values")


@given(st.lists(CELLS, min_size=1, max_size=6), TEXTS)
def test_every_cell_comes_back_as_it_was_in_text_that_no_terminal_obeys(shared, cells, name):
    answer, text = back(table(tuple(cells), columns=(name,) * len(cells)), shared)

    for cell, partner in zip(answer.rows[0], cells, strict=True):
        if isinstance(partner, int) and abs(partner) >= 10**4_000:
            assert cell == partner
        else:
            assert (type(cell), repr(cell)) == (type(partner), repr(partner))
    assert text.endswith("}\n")
    controls = [character for character in text if unicodedata.category(character) in ("Cc", "Cs")]
    assert set(controls) == {"\n"}
    assert not {"\u202e", "\x9b"} & {*text}


@given(DOCUMENTS)
def test_every_json_document_comes_back_with_its_keys_in_order(shared, document):
    assert repr(back(JsonAnswer(document), shared)[0].value) == repr(document)


INNER = TripleTerm(IRI("a:b"), IRI("a:c"), Literal("x", "", "ar--rtl"))
TIED = ((1, "a"), (1, "b"))


@pytest.mark.parametrize(
    "answer",
    [
        Table(columns=("n", "m"), rows=TIED, ties=(Tie(size=1, rows=TIED),), is_graph=True),
        Table(columns=("x", "y"), rows=((TripleTerm(BlankNode("n"), IRI("a:c"), INNER), INNER),)),
        Table(columns=(), rows=(), has_header=True),
        Table(columns=(), rows=(), has_header=False),
        JsonAnswer({"$b": [1.0, 1]}),
        JsonAnswer("two\nlines"),
        JsonAnswer(["two", "lines"]),
        selected(GEO=("FR", "DE: Germany", ": Spain"), by_id=True),
    ],
    ids=["ties", "triple terms", "header", "no header", "json", "text", "list", "selection"],
)
def test_answers_of_every_sort_come_back(shared, answer):
    assert plain(back(answer, shared)[0]) == plain(answer)


def test_an_answer_without_columns_that_was_recorded_before_headers_were_has_none(tmp_path):
    entry, folder = entries(tmp_path)["execution"], tmp_path / "r"
    entry.save(recorder(folder))
    path = only_file(folder)
    for columns, has_header in (([], False), (["n"], True)):
        old = decode_entry(path.stem, path.read_bytes()) | {"table": {"columns": columns, "rows": []}}
        path.write_bytes(encode_entry(path.stem, old))

        assert entry.load(replayer(folder)).answer.has_header is has_header


def test_an_entry_reads_well(tmp_path):
    record(tmp_path, case=make_case(question="How\nmany?"), said=saying("SELECT 1\nFROM t"))
    keep(tmp_path / "r", database(tmp_path / "data", 1), answer=table((1, "é"), (2, Decimal("1.0"))))

    text = only_file(tmp_path / "predictions").read_text(encoding="utf-8")
    assert '  "query": [\n    "SELECT 1",\n    "FROM t"\n  ],\n' in text
    assert '    "question": [\n      "How",\n      "many?"\n    ],\n' in text
    assert list(json.loads(text)) == sorted(json.loads(text))
    rows = '    "rows": [\n      [1, "é"],\n      [2, {"$decimal": "1.0"}]\n    ]\n'
    assert rows in only_file(tmp_path / "r").read_text("utf-8")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (replace(SAID, seconds=None), ""),
        (replace(SAID, seconds="soon"), ""),
        (replace(SAID, answer=QueryOrAnswer(answer=table((timedelta(1),)))), "a value of the type timedelta"),
        (replace(SAID, answer=QueryOrAnswer(answer="deep")), "it is nested too deeply"),
    ],
)
def test_what_cannot_be_written_is_one_error(tmp_path, said, reason):
    if said.content.answer == "deep":
        deep = []
        for _ in range(5_000):
            deep = [deep]
        said = replace(SAID, answer=QueryOrAnswer(answer=JsonAnswer(deep)))

    with pytest.raises(PredictorError) as raised:
        record(tmp_path, said=said)

    assert str(raised.value).startswith(f"the prediction for 'a' cannot be recorded: {reason}")
    assert files(tmp_path) == []


# What a prediction depends on


def http(**settings):
    return PredictorSpec(kind="http", settings={"url": "https://h/ask"} | settings, folder=Path())


def command(**settings):
    return PredictorSpec(kind="command", settings={"run": ["x"]} | settings, folder=Path())


def asked(spec=SPEC, schema=None, **changes):
    """A case, a predictor, and the schema that its source has."""
    place = Location(Path("music/s.yaml"), 4)
    case = {"location": place, "question": "How many?", "source": file_source("a.db")} | changes
    return make_case(**case), spec, schema


def call(recording, case, spec, schema):
    def listed():
        if schema is SourceError:
            raise SourceError("the tables cannot be listed: no such file")
        return schema

    return recording.call(case, spec, 1, listed)


SENT = http(body={"q": "{question}", "d": "{dialect}"})
QUESTION = "what is recorded under this id has another question"
OF_CASE = "its evidence, conversation or metadata has changed since"
SEEN = "its source, dialect, tags or difficulty has changed since"
SCHEMA = "the schema that its predictor sees has changed since"
OF_SETTINGS = "the settings of its predictor have changed since"


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        # the case
        *(
            (asked(), asked(**changes), reason)
            for changes, reason in (
                ({"question": "Why?"}, QUESTION),
                ({"kind": "json"}, "its `kind` has changed since"),
                ({"evidence": "x"}, OF_CASE),
                ({"metadata": {"x": 1}}, OF_CASE),
                ({"conversation": (Message(role="user", content="x"),)}, OF_CASE),
                ({"source": file_source("b.db")}, SEEN),
                ({"dialect": "duckdb"}, SEEN),
                ({"tags": ("x",)}, SEEN),
                ({"difficulty": "hard"}, SEEN),
                # what decides only how a case is scored, and where it stands
                ({"metrics": (), "thresholds": {}, "golds": (), "timeout": 9.0, "max_rows": 9, "trials": 4}, None),
                ({"location": Location(Path("music/s.yaml"), 99)}, None),
                ({"location": Location(Path("music/other.yaml"), 4)}, None),
            )
        ),
        # what a hook and a service are sent
        (asked(HOOK), asked(HOOK, source=file_source("b.db")), SEEN),
        (asked(SENT), asked(SENT, source=file_source("b.db"), tags=("x",), difficulty="hard"), None),
        (asked(SENT), asked(SENT, dialect="duckdb"), SEEN),
        # the schema
        (asked(), asked(schema="CREATE TABLE t (n)"), SCHEMA),
        (asked(schema=SourceError), asked(schema=SourceError), None),
        (asked(schema=SourceError), asked(schema="CREATE TABLE t (n)"), SCHEMA),
        (asked(COMMAND), asked(COMMAND, schema=SourceError), None),
        # the predictor, and secrets in its settings
        *(
            (asked(before), asked(after), reason)
            for before, after, reason in (
                (SPEC, http(url="http://h/"), "its predictor was another one"),
                (SPEC, replace(SPEC, settings={"target": "b.py:f"}), OF_SETTINGS),
                (SPEC, replace(SPEC, folder=Path("other")), OF_SETTINGS),
                (SPEC, replace(SPEC, abstain="^I do not know"), None),
                (http(url="https://h/ask?model=m"), http(url="https://h/ask?model=n"), OF_SETTINGS),
                (http(body={"max_tokens": 8}), http(body={"max_tokens": 9}), OF_SETTINGS),
                (http(body={"k": "first"}), http(body={"k": "another"}), OF_SETTINGS),
                (http(), http(answer="$.sql"), OF_SETTINGS),
                (http(auth={"bearer": "one-token"}), http(auth={"bearer": "two-token"}), None),
                (http(headers={"Authorization": "one-token"}), http(), None),
                (http(verify="a.pem"), http(verify=False), None),
                (http(url="https://me:one@h/ask"), http(url="https://h/ask"), None),
                (http(url="https://h/ask?m=m&api_key=one"), http(url="https://h/ask?m=m&api_key=two-two"), None),
                (http(body={"api_key": "one", "q": "x"}), http(body={"api_key": "two-token", "q": "x"}), None),
                (command(env={"A": "1"}), command(env={"A": "2"}), None),
            )
        ),
    ],
)
def test_a_prediction_is_found_again_unless_the_system_would_be_asked_something_else(tmp_path, first, second, reason):
    call(recorder(tmp_path), *first).save(SAID)

    if reason is None:
        assert call(replayer(tmp_path), *second).load() == SAID
        return
    assert call(recorder(tmp_path), *second).load() is None
    with pytest.raises(PredictorError) as raised:
        call(replayer(tmp_path), *second).load()
    assert str(raised.value) == f"the prediction for 'a' in {tmp_path} is stale: {reason}: {RECORD_IT}"


def test_one_damaged_entry_and_another_database_do_not_hide_what_became_of_a_source(tmp_path):
    first, second = database(tmp_path, 1, "a.db"), database(tmp_path, 2, "b.db")
    keep(tmp_path / "r", first, query="SELECT 5")
    only_file(tmp_path / "r").write_text("{", encoding="utf-8")
    for source in (first, second):
        keep(tmp_path / "r", source)
    (tmp_path / "r/executions/notes.json").write_text("x", encoding="utf-8")
    database(tmp_path, 3, "a.db")

    stale = r"on 'a.db' in .* is stale: its source has changed since \(recorded state [0-9a-f]{8}…, now state [0-9a-f]"
    with pytest.raises(SourceError, match=stale):
        found(tmp_path / "r", first)
    assert found(tmp_path / "r", second).answer.rows == [(1,)]


def test_of_a_registered_predictor_everything_counts_unless_it_says_otherwise(tmp_path):
    PREDICTORS.register("whole", PredictorType(opener=lambda _: None))
    PREDICTORS.register("part", PredictorType(opener=lambda _: None, sends=lambda _: frozenset()))
    whole, part = (PredictorSpec(kind=kind, settings={}, folder=Path()) for kind in ("whole", "part"))
    for spec in (whole, part):
        record(tmp_path, spec=spec)
    second = make_case(question="How many?", tags=("x",))

    assert recorder(tmp_path).call(second, whole, 1).load() is None
    assert recorder(tmp_path).call(second, part, 1).load() == SAID


def test_what_is_kept_comes_back_as_in_a_replay_and_a_schema_that_is_sent_has_to_be_listed(tmp_path):
    said = record(tmp_path, said=replace(SAID, metadata={"at": date(2024, 5, 1)}))

    assert said.metadata == replayed(tmp_path).metadata == {"at": "2024-05-01"}
    with pytest.raises(SourceError, match="cannot be listed"):
        call(recorder(tmp_path), *asked(command(send_schema=True), schema=SourceError)).load()


def test_what_a_function_does_to_its_case_changes_nothing(tmp_path):
    case = make_case(metadata={"told": ["x"]})
    recording = recorder(tmp_path)
    for trial in (1, 2):
        call = recording.call(case, SPEC, trial)
        assert call.load() is None
        case.metadata["told"].append("y")
        case.metadata[f"seen {trial}"] = True
        call.save(SAID)

    for trial in (1, 2):
        assert replayed(tmp_path, case=make_case(metadata={"told": ["x"]}), trial=trial) == SAID


def test_calls_that_are_one_to_a_predictor_become_one_also_at_once(tmp_path):
    places = [Location(Path(f"{number}.yaml"), 4) for number in range(16)]
    calls = [call(recorder(tmp_path), *asked(COMMAND, location=place)) for place in places]
    barrier = Barrier(len(calls))

    def keep_number(number):
        barrier.wait()
        return calls[number].save(saying(f"SELECT {number}"))

    with ThreadPoolExecutor(len(calls)) as pool:
        kept = [*pool.map(keep_number, range(len(calls)))]

    assert kept == [call(replayer(tmp_path), *asked(COMMAND)).load()] * len(calls)


def test_a_file_system_without_links_will_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    record(tmp_path)

    assert replayed(tmp_path) == SAID
    assert len(files(tmp_path)) == 1


# Secrets and paths


@pytest.mark.parametrize("recorded_where", ["known", "unknown"])
def test_the_secrets_that_an_environment_knows_do_not_count(tmp_path, monkeypatch, recorded_where):
    spec = http(url="https://h/some-secret-value/ask", body={"k": "some-secret-value"})
    if recorded_where == "known":
        monkeypatch.setenv("MODEL_TOKEN", "some-secret-value")
    record(tmp_path, spec=spec)
    monkeypatch.delenv("MODEL_TOKEN", raising=False)
    if recorded_where == "unknown":
        monkeypatch.setenv("MODEL_TOKEN", "some-secret-value")

    assert replayed(tmp_path, spec=spec) == SAID


def test_no_path_of_this_machine_is_written_or_counts(tmp_path):
    def entry_at(checkout):
        spec = replace(SPEC, settings={"target": f"{checkout}/suite/bot.py:ask"}, folder=checkout / "suite")
        recording = Recording(checkout / "recorded", replay=False, root=checkout)
        database(checkout / "suite", 1)
        path = f"{checkout}/suite/a.db"
        source = source_of("sqlite", Path("/x"), name=path, path=path)
        place = Location(checkout / "suite/s.queryeval.yaml", 4)
        recording.call(make_case(location=place, source=source), spec, 1).save(SAID)
        recording.save_execution("SELECT 1", source, Execution(query="SELECT 1", answer=table((1,))), **LIMITS)
        assert recording.load_execution("SELECT 1", source, **LIMITS)
        return {path.relative_to(checkout): path.read_text("utf-8") for path in files(checkout / "recorded")}

    here = entry_at(tmp_path / "here")

    assert here == entry_at(tmp_path / "there")
    assert len(here) == 2
    assert str(tmp_path) not in "".join(here.values())


def test_no_secret_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", SECRET)
    monkeypatch.setenv("PIN_TOKEN", "73646464")
    source = fake_live(monkeypatch)
    recording = recorder(tmp_path)
    said = Prediction(QueryOrAnswer(query=f"SELECT '{SECRET}'"), predictor=SECRET, metadata={SECRET: [SECRET]})
    case = make_case(question=f"What is {SECRET}?", metadata={"a": SECRET})
    spec = http(auth={"bearer": "bearer-secret-1"}, url="https://me:pass-secret-2@h/")
    cells = table((SECRET, SECRET.encode(), IRI(SECRET), Literal(SECRET), 73646464))

    assert recording.call(case, spec, 1).save(said) == said  # and scored as it is
    recording.save_execution(said.content.query, source, Execution(query=SECRET, answer=cells, note=SECRET), **LIMITS)
    recording.save_execution("q", source, Execution(query="q", error=Failure(kind="invalid", message=SECRET)), **LIMITS)
    recording.save_ddl(source, f"CREATE TABLE t (n) -- {SECRET}")

    all_text = "".join(path.read_text("utf-8") for path in files(tmp_path))
    assert len(files(tmp_path)) == 4
    for part in ("hunter2", "73646464", "bearer-secret-1", "pass-secret-2"):
        assert part not in all_text


def test_what_held_a_secret_is_not_replayed_as_something_else(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    record(tmp_path, said=saying("SELECT 'hunter2-hunter2'"))
    before = only_file(tmp_path).read_bytes()

    assert recorder(tmp_path).call(make_case(question="How many?"), SPEC, 1).load() is None
    with pytest.raises(PredictorError, match="cannot be replayed: it held a secret, which was not written"):
        replayed(tmp_path)
    record(tmp_path, said=replace(saying("SELECT 'hunter2-hunter2'"), seconds=3.0))
    assert only_file(tmp_path).read_bytes() == before


def test_a_secret_beside_the_answer_or_in_a_query_that_is_run_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2-hunter2")
    monkeypatch.setenv("DB_TOKEN", "hunter3-hunter3")
    source, query = fake_live(monkeypatch), "SELECT 'hunter2-hunter2' = x"
    record(tmp_path / "p", said=replace(SAID, metadata={"a": "hunter2-hunter2"}))
    keep(tmp_path / "r", source, query=query, answer=table((True,)))

    assert replayed(tmp_path / "p").metadata == {"a": "[redacted]"}
    execution = found(tmp_path / "r", source, query)
    assert (execution.query, execution.answer.rows) == (query, [(True,)])
    assert not known(tmp_path / "r", source, "SELECT 'another-secret' = x")
    with pytest.raises(SourceError, match=r"^no recorded execution of `SELECT '\[redacted\]' = x` on 'music' in "):
        found(tmp_path / "r", source, "SELECT 'hunter3-hunter3' = x")


# What an execution depends on


def test_another_version_of_the_engine_and_other_limits_and_requests_are_told(tmp_path, monkeypatch):
    source, case = database(tmp_path, 1), make_case(source=database(tmp_path, 1))
    recording, folder = recorder(tmp_path / "r"), tmp_path / "r"
    keep(folder, source)
    recording.save_times("g", "p", source, 2, [(0.1, 0.2)])
    recording.save_cause("g", "p", case, None)

    with pytest.raises(SourceError, match=r"is stale: `max_rows` has changed \(recorded 100, now 7\)"):
        found(folder, source, max_rows=7)
    with pytest.raises(SourceError, match=r"the times of 'a.db' in .* are stale: `iterations` has changed"):
        replayer(folder).load_times("g", "p", source, 3)
    with pytest.raises(SourceError, match=r"^no recorded cause of `q` on 'a.db' in "):
        replayer(folder).load_cause("g", "q", case)
    with pytest.raises(SourceError, match=r"the cause of `p` on 'a.db' in .* is stale: `compare` has changed"):
        replayer(folder).load_cause("g", "p", change(case, policy=Policy(case="ignore")))
    monkeypatch.setattr(sqlite3, "sqlite_version", "9.9.9")
    with pytest.raises(
        SourceError, match=r"another version of its engine is installed \(recorded sqlite 3.*, now sqlite 9"
    ):
        found(folder, source)


def test_a_query_that_ran_out_of_time_counts_for_no_longer_limit(tmp_path):
    source, folder = database(tmp_path, 1), tmp_path / "r"
    recorder(folder).save_execution("x", source, late(), **LIMITS)

    assert found(folder, source, "x", timeout=2.0) == late()
    assert recorder(folder).load_execution("x", source, timeout=9.0, max_rows=100) is None
    with pytest.raises(SourceError, match="ran out of time after 5 s: whether 9 s are enough was not recorded"):
        found(folder, source, "x", timeout=9.0)

    keep(folder, source, query="x", timeout=9.0)
    assert found(folder, source, "x", timeout=9.0).answer.rows == [(1,)]


@pytest.mark.parametrize("version", [None, True, [], {}, " "])
def test_a_live_source_needs_a_version_that_is_a_text_or_a_number(tmp_path, monkeypatch, version):
    source = fake_source() if version is None else fake_live(monkeypatch, version=version)
    install_engine(monkeypatch, {})
    message = "its answers can be recorded only with a `version`" if version is None else "'version' is neither a text"

    for recording in (recorder(tmp_path), replayer(tmp_path)):
        with pytest.raises(SourceError, match=f"^source 'music': {message}"):
            recording.load_execution("q", source, **LIMITS)


def test_a_service_is_known_by_its_name_and_version_and_two_of_one_name_are_not_mixed_up(tmp_path, monkeypatch):
    live = partial(fake_live, monkeypatch)
    keep(tmp_path, live(path="http://me:one@here/"))

    assert found(tmp_path, live(path="http://there/"))
    assert not known(tmp_path, live(name="other"))
    with pytest.raises(SourceError, match=r"its source has changed since \(recorded version 5, now version 6\)"):
        found(tmp_path, live(version=6))
    recording = replayer(tmp_path)
    assert recording.load_execution(SELECT, live(path="http://me:one@here/"), **LIMITS)
    assert recording.load_execution(SELECT, live(path="http://you:two@here/"), **LIMITS)  # other credentials
    with pytest.raises(SourceError, match="another source of this name and version has another address"):
        recording.load_execution(SELECT, live(path="http://there/"), **LIMITS)


FILES = ("a.db", "a.sql", "a.duckdb", "a.csv", "b.csv", "a.ttl", "b.ttl")


@pytest.mark.feature("duckdb")
@pytest.mark.parametrize(
    ("engine", "settings", "second_settings", "file"),
    [
        ("sqlite", {"path": "a.db"}, {}, "a.db"),
        ("sqlite", {"path": "a.db"}, {}, "a.db-wal"),
        ("sqlite", {"path": "a.db"}, {"version": "v2"}, None),
        ("sqlite", {"script": "a.sql"}, {}, "a.sql"),
        ("duckdb", {"path": "a.duckdb"}, {}, "a.duckdb"),
        ("duckdb", {"path": "a.duckdb"}, {}, "a.duckdb.wal"),
        ("duckdb", {"tables": {"a": "a.csv", "b": "b.csv"}}, {}, "b.csv"),
        ("duckdb", {"tables": {"a": "a.csv"}}, {"tables": {"b": "a.csv"}}, None),
        ("rdf", {"files": "a.ttl"}, {}, "a.ttl"),
        ("rdf", {"files": ["a.ttl", "b.ttl"]}, {}, "b.ttl"),
        ("rdf", {"files": "a.ttl"}, {"default_graph": "union"}, None),
        ("rdf", {"files": "a.ttl"}, {"engine": ["oxigraph", "rdflib"]}, None),
        ("folder", {}, {}, "new.csv"),
    ],
)
def test_each_file_of_a_source_counts_and_each_setting_that_changes_answers(
    tmp_path, engine, settings, second_settings, file
):
    fingerprint = SourceFingerprint(files=lambda source: sorted(path.name for path in source.folder.glob("*.csv")))
    ENGINES.register("folder", EngineType(opener=ENGINES["sqlite"].opener, fingerprint=fingerprint))
    for name in FILES:
        (tmp_path / name).write_text("before", encoding="utf-8")
    keep(tmp_path / "r", source_of(engine, tmp_path, **settings))
    if file:
        (tmp_path / file).write_text("behind", encoding="utf-8")

    with pytest.raises(
        SourceError, match=r"is stale: (its source has|the settings of its source have|another version)"
    ):
        found(tmp_path / "r", source_of(engine, tmp_path, **settings | second_settings))


@pytest.mark.parametrize(("path", "problem"), [("a.db", "no such file"), (".", "a directory, not a file")])
def test_a_source_without_its_file_cannot_be_recorded(tmp_path, path, problem):
    with pytest.raises(SourceError, match=rf"^source 's': .*: {problem}$"):
        keep(tmp_path / "r", source_of("sqlite", tmp_path, path=path))


# Folders


def test_a_folder_that_cannot_be_made_or_replayed_is_one_error(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")

    with pytest.raises(PredictorError, match=r"^nothing can be recorded in .*/file/predictions: Not a directory$"):
        record(tmp_path / "file")
    with pytest.raises(QueryEvalError, match=r"^nothing can be recorded in .*/file: is a file: name a folder$"):
        recorder(tmp_path / "file").check()
    with pytest.raises(QueryEvalError, match=r"^there is no folder .*: record it with "):
        replayer(tmp_path / "none").check()
    with pytest.raises(QueryEvalError, match=r"/file is a file: name the folder of a recording, or record it with "):
        replayer(tmp_path / "file").check()


def test_processes_that_write_at_once_leave_whole_entries(tmp_path):
    source = database(tmp_path, 1)
    program = """
import sys
from pathlib import Path
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.features.recording import Recording
folder = Path(sys.argv[1])
source = Source(name="a.db", engine="sqlite", settings={"path": "a.db"}, folder=folder)
late = Execution(query="x", error=Failure(kind="timeout", message="m" * 50_000), seconds=5.0)
for limit in range(1, 11):
    recording = Recording(folder / "r", replay=False, root=Path())
    recording.save_execution("x", source, late, timeout=float(limit), max_rows=9)
    assert recording.load_execution("x", source, timeout=1.0, max_rows=9).error.message == "m" * 50_000
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(3)]

    assert [writer.wait(timeout=300) for writer in writers] == [0] * 3
    only_file(tmp_path / "r")
    assert found(tmp_path / "r", source, "x", timeout=9.0, max_rows=9)
