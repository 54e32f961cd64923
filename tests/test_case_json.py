import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import fake_source, make_case, make_result, query, table

from pytest_queryeval import register_secret
from pytest_queryeval.core.groups import groups_of, values_of
from pytest_queryeval.core.model import (
    Execution,
    Failure,
    Message,
    Prediction,
    QueryOrAnswer,
    Threshold,
    ThresholdViolation,
)
from pytest_queryeval.core.table import IRI, BlankNode, Literal, Table
from pytest_queryeval.evaluation.session import SourceStates  # white box: any result, as no engine may give it
from pytest_queryeval.plugin.failure import failure_lines  # white box: any result, as no engine may give it

# white box: any result, as no engine may give it
from pytest_queryeval.results.case_json import QUERY_CHARACTERS, case_json, redact_case, result_json
from pytest_queryeval.text.redaction import MARK  # white box: the word in place of a secret

PLACE = {"nodeid": "music/s.queryeval.yaml::a", "path": "music/s.queryeval.yaml"}
FAILURE = Failure(kind="invalid", message="no such table")
MISSED = ThresholdViolation(metric="execution_accuracy", threshold=Threshold(minimum=1.0), value=0.0)
HOSTILE_CELLS = [
    b"\x00\xff" * 500,
    float("nan"),
    float("inf"),
    10**5000,
    -(10**300),
    "\ud800 lone",
    "x" * 5000,
    date(2024, 2, 29),
    datetime(2024, 2, 29, 12, 30),
    time(12, 30),
    Decimal("1.10"),
    Decimal("NaN"),
    IRI("http://a"),
    BlankNode("b"),
    Literal("5", datatype="integer"),
    None,
    True,
]


class Level(IntEnum):
    HARD = 3


def scored(gold, predicted, *, case=None, violations=(MISSED,), outcome="failed", **changes):
    result = make_result(case or make_case(), gold=gold, predicted=predicted, violations=violations, **changes)
    return result_json(result, **PLACE, outcome=outcome)


def executed(**changes):
    """A case of which gold or predicted is this execution."""
    result = make_result(make_case(), gold=table((1,)), predicted=table((1,)))
    changed = replace(result, shown=replace(result.shown, **changes))
    return result_json(changed, **PLACE, outcome="failed")


def types_in(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {type(value)}.union(*map(types_in, inner))


def is_plain(made):
    plain_types = types_in(made) <= {type(None), bool, int, float, str, list, dict}
    return plain_types and json.loads(json.dumps(made, allow_nan=False).encode()) == made


def test_a_case_has_its_groups_as_a_report_without_them_tells_them():
    gold = query("SELECT a.x FROM a JOIN b ORDER BY a.x")
    case = make_case(golds=(gold,), tags=("x", "y", "x"), difficulty="hard", source=fake_source("concerts.db"))

    entry = case_json(case, **PLACE, outcome="skipped")

    assert entry["groups"] == groups_of({name: value for name, value in entry.items() if name != "groups"})
    assert entry["groups"]["feature"] == ["join", "order"]
    assert entry["groups"] == {name: [*values_of(case, PLACE["path"], name)] for name in entry["groups"]}


@pytest.mark.parametrize(
    ("group", "is_hidden"), [("difficulty", True), ("owner", True), ("tag", False), ("file", False)]
)
def test_secrets_are_removed_from_groups_but_for_names_of_cases(group, is_hidden):
    register_secret("hunter2-hunter2")
    case = case_json(make_case(), **PLACE, outcome="skipped") | {"groups": {group: ["hunter2-hunter2"]}}

    assert ("hunter2" not in str(redact_case(case)["groups"])) is is_hidden


def test_an_execution_says_its_query_shape_and_time():
    gold = Execution(query="SELECT 1", answer=table((1, "x"), (2, "y")), seconds=0.25)

    entry = executed(gold=gold, gold_index=2)["gold"]

    assert entry == {
        "query": "SELECT 1",
        "columns": ["a", "b"],
        "row_count": 2,
        "sample": [[1, "x"], [2, "y"]],
        "seconds": 0.25,
        "index": 2,
    }


@pytest.mark.parametrize("cell", HOSTILE_CELLS, ids=lambda cell: type(cell).__name__)
def test_any_cell_is_plain_and_short_in_samples_and_differences(cell):
    entry = scored(table((cell, 1)), table((cell, 2), (7, 3)))

    assert is_plain(entry)
    shown = [entry["gold"]["sample"][0][0], entry["difference"]["changed"][0]["gold"][0]]
    assert shown[0] == shown[1]
    assert not isinstance(shown[0], str) or 0 < len(shown[0]) <= 200


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters())
        | st.binary()
        | st.decimals(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    )
)
def test_whatever_a_predictor_and_a_metric_tell_is_plain(told):
    prediction = Prediction(QueryOrAnswer(query="x"), predictor="ours", metadata={"told": told})

    entry = scored(table((1,)), table((1,)), prediction=prediction, details={"told": told})

    assert is_plain(entry)


def test_numbers_in_metadata_stay_numbers():
    metadata = {"tokens": 7, "cost": 0.5, "level": Level.HARD, "huge": 10**5000}
    prediction = Prediction(QueryOrAnswer(query="x"), predictor="ours", seconds=1.5, metadata=metadata)

    entry = scored(table((1,)), table((1,)), prediction=prediction)["prediction"]

    assert entry["metadata"] == {
        "tokens": 7,
        "cost": 0.5,
        "level": 3,
        "huge": "an integer of more than 200 digits",
    }
    assert type(entry["metadata"]["level"]) is int
    assert (entry["source"], entry["seconds"]) == ("ours", 1.5)


def test_texts_with_lone_surrogates_can_be_written():
    case = make_case(question="\ud800?", source=fake_source("\ud801.db"))
    gold = Table(columns=("\ud802",), rows=((1,),))

    entry = scored(gold, gold, case=case)

    assert is_plain(entry)
    assert (entry["question"], entry["source"], entry["gold"]["columns"]) == ("\\ud800?", "\\ud801.db", ["\\ud802"])


def test_a_long_query_is_cut():
    execution = Execution(query="x" * 100_000, answer=table((1,)))

    entry = executed(gold=execution)

    assert len(entry["gold"]["query"]) == QUERY_CHARACTERS


@pytest.mark.parametrize("limit", [0, 1, 2, 50])
def test_a_sample_has_at_most_report_rows_rows_and_the_count_is_of_all(limit):
    gold, predicted = table(*((n, "gold") for n in range(5))), table(*((n, "predicted") for n in range(10, 14)))

    entry = scored(gold, predicted, case=make_case(report_rows=limit))

    assert [row[0] for row in entry["gold"]["sample"]] == list(range(5))[:limit]
    assert [row[0] for row in entry["predicted"]["sample"]] == list(range(10, 14))[:limit]
    assert (entry["gold"]["row_count"], entry["predicted"]["row_count"]) == (5, 4)
    assert len(entry["difference"]["missing"]) == min(limit, 5)
    assert len(entry["difference"]["extra"]) == min(limit, 4)


def test_report_rows_of_0_keeps_every_cell_out_of_the_report_and_of_the_failure_text():
    case = make_case(report_rows=0)
    gold, predicted = table(("secret one", 1), ("secret two", 2)), table(("secret one", 7), ("secret three", 8))
    result = make_result(case, gold=gold, predicted=predicted, violations=(MISSED,))

    entry = result_json(result, **PLACE, outcome="failed")

    assert "secret" not in json.dumps(entry)
    assert (entry["difference"]["missing"], entry["difference"]["extra"], entry["difference"]["changed"]) == (
        [],
        [],
        [],
    )
    assert "missing 2 of 2 rows, 2 extra" in entry["difference"]["summary"]
    assert "secret" not in "\n".join(failure_lines(result, entry))


def test_a_difference_names_the_columns_of_both_sides_in_gold_s_order_and_counts_all_rows():
    gold = table((1, "x"), (2, "y"), (3, "z"), columns=("id", "name"))
    predicted = table(("x", 1), ("w", 9), columns=("label", "number"))

    entry = scored(gold, predicted, case=make_case(report_rows=1))["difference"]

    assert (entry["columns"], entry["predicted_columns"]) == (["id", "name"], ["number", "label"])
    assert entry["counts"] == {"missing": 2, "extra": 1}


def test_what_was_said_before_the_question_is_in_the_report_in_part_where_it_is_long():
    question = "And the Oglio?"
    said = (("user", "Flow of the Adda"), ("assistant", "x" * 9_000), ("user", question))
    conversation = tuple(Message(role=role, content=content) for role, content in said)

    entry = scored(table((1,)), table((1,)), case=make_case(conversation=conversation, question=question))

    assert [(message["role"], len(message["content"])) for message in entry["conversation"]] == [
        ("user", 16),
        ("assistant", 4_000),
    ]
    assert "conversation" not in scored(table((1,)), table((1,)))


NAMES = {"id", "tags", "kind", "metric", "engine", "language", "rdf_terms", "predictor_spec"}  # which tell the case


def planted(value, secret):
    """The value with a secret in every text that it holds, however deep, but for names."""
    match value:
        case str():
            return f"{value} {secret}"
        case Mapping():
            return {key: planted(item, secret) for key, item in value.items()}
        case IRI() | BlankNode() | Literal():
            return replace(value, **{next(iter(vars_of(value))): f"{secret}"})
        case tuple() | list():
            return type(value)(planted(item, secret) for item in value)
        case Table():
            rows = [planted(row, secret) for row in value.rows]
            return replace(value, columns=planted(value.columns, secret), rows=rows)
        case Execution() | Prediction() | QueryOrAnswer() | Failure():
            fields = {name: planted(getattr(value, name), secret) for name in vars_of(value) if name not in NAMES}
            return replace(value, **fields)
    return value


def vars_of(value):
    return [field.name for field in fields(value)]


SECRETS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=8, max_size=40)


@pytest.mark.long
@given(secret=SECRETS, before=st.integers(0, 2 * QUERY_CHARACTERS))
def test_a_secret_in_any_text_of_a_case_is_nowhere_in_its_data(secret, before):
    gold = table(("Ana", 1, IRI("http://a"), b"x"), columns=("name", "age", "page", "data"))
    case = make_case(question="q", evidence="e", metadata={"note": "n", "deep": [{"k": "v"}]})
    case = replace(
        case, **{name: planted(getattr(case, name), secret) for name in ("question", "evidence", "metadata")}
    )
    result = make_result(case, gold=gold, predicted=table(("Bo", 2, IRI("http://b"), b"y")))
    details = {"notes": ["a note"], "violations": {"path": "$.a"}}
    prediction = Prediction(
        content=QueryOrAnswer(query="x" * before), predictor="p", metadata={"tokens": {"model": "m"}}
    )
    record = replace(
        result.shown,
        gold=planted(replace(result.gold, query="x" * before), secret),
        predicted=planted(replace(result.predicted, note="n"), secret),
        prediction=planted(prediction, secret),
        details=planted(details, secret),
    )
    failed = replace(record, predicted=planted(Execution(query="x" * before, error=FAILURE), secret))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL_TOKEN", secret)
        written = [
            result_json(
                replace(result, shown=each, trials=(each, each)), **PLACE, outcome="failed", message=f"m {secret}"
            )
            for each in (record, failed)
        ]
        written.append(
            case_json(case, **PLACE, outcome="error", message=f"m {secret}", source_states=SourceStates(f"s {secret}"))
        )

    for data in written:
        assert secret not in json.dumps(data, ensure_ascii=False)
        assert secret not in str(data)
        assert MARK in data["message"]
        assert MARK in data["question"]
