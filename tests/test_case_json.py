"""A case in a report: plain and short data, whatever engines, systems and metrics tell, and no secret in any of it."""

import json
import re
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import answer, fake_source, make_case, query, table

from pytest_queryeval import METRICS, Prediction, evaluate, register_secret
from pytest_queryeval.core.groups import groups_of, values_of
from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.model import Execution, Failure, Message, PredictorSpec, QueryOrAnswer, Threshold
from pytest_queryeval.core.table import IRI, BlankNode, Literal
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.predictors import PREDICTORS, PredictorType

QUERY_CHARACTERS = 20_000
MARK = "[redacted]"
HOSTILE_CELLS = [
    *(b"\x00\xff" * 500, float("nan"), float("inf"), 10**5000, -(10**300), "\ud800 lone", "x" * 5000, None, True),
    *(date(2024, 2, 29), datetime(2024, 2, 29, 12, 30), time(12, 30), Decimal("1.10"), Decimal("NaN")),
    *(IRI("http://a"), BlankNode("b"), Literal("5", datatype="integer")),
]


class Telling:
    """A system, a source and a metric that tell what they are given."""

    concurrency = 1
    retries = 0

    def __init__(self, prediction=None, answers=None, details=None):
        self.prediction, self.answers, self.details = prediction, answers or {}, details or {}

    def predict(self, case, trial):
        return self.prediction

    def execute(self, query, *, timeout, max_rows):
        return self.answers[query]

    def close(self):
        pass

    def report(self, **changes):
        """The report of a case that asks all three."""
        PREDICTORS.register("telling", PredictorType(opener=lambda spec: self))
        ENGINES.register("fake", EngineType(opener=lambda source, hosts: self))
        METRICS.register("telling", lambda gold, predicted: Score(value=1.0, details=self.details))
        spec = PredictorSpec(kind="telling", settings={}, folder=Path())
        asked = {"question": "q", "predicted": None, "predictor": spec} if self.prediction else {}
        (entry,) = evaluate([make_case(**{"metrics": ("telling",), **asked, **changes})])["cases"]
        return entry


def run(gold, predicted, **changes):
    (entry,) = evaluate([make_case(golds=(gold,), predicted=predicted, **changes)])["cases"]
    return entry


def is_plain(made):
    return json.loads(json.dumps(made, allow_nan=False).encode()) == made


def test_a_case_has_its_groups_as_a_report_without_them_tells_them():
    gold = query("SELECT a.x FROM a JOIN b ORDER BY a.x")
    changes = {"tags": ("x", "y", "x"), "difficulty": "hard", "source": fake_source("concerts.db"), "skip": "later"}

    entry = run(gold, gold, **changes)

    assert entry["groups"] == groups_of({name: value for name, value in entry.items() if name != "groups"})
    assert entry["groups"]["feature"] == ["join", "order"]
    case = make_case(golds=(gold,), **changes)
    assert entry["groups"] == {name: [*values_of(case, entry["path"], name)] for name in entry["groups"]}


def test_secrets_are_removed_from_groups_but_for_names_of_cases():
    secret = "hunter2-hunter2"
    register_secret(secret)

    groups = run(answer((1,)), answer((1,)), difficulty=secret, tags=(secret,))["groups"]

    assert (groups["tag"], groups["difficulty"]) == ([secret], [MARK])


def test_an_execution_says_its_query_shape_and_time():
    answered = Execution(query="SELECT 1", answer=table((1, "x"), (2, "y")), seconds=0.25)
    golds = answer((7,)), query("SELECT 1")

    entry = Telling(answers={"SELECT 1": answered}).report(
        golds=golds, predicted=golds[1], source=fake_source(), metrics=("execution_accuracy",)
    )

    shape = {"columns": ["a", "b"], "row_count": 2, "sample": [[1, "x"], [2, "y"]], "seconds": 0.25}
    assert entry["gold"] == {"query": "SELECT 1", "index": 1} | shape
    assert entry["predicted"] == {"query": "SELECT 1", "error": None} | shape


@pytest.mark.parametrize("cell", HOSTILE_CELLS, ids=lambda cell: type(cell).__name__)
def test_any_cell_is_plain_and_short_in_samples_and_differences(cell):
    entry = run(answer((cell, 1)), answer((cell, 2), (7, 3)))

    assert is_plain(entry)
    difference = entry["difference"]
    shown = [
        entry["gold"]["sample"][0][0],
        (difference["changed"][0]["gold"] if difference["changed"] else difference["missing"][0])[0],
    ]
    assert shown[0] == shown[1]
    assert not isinstance(shown[0], str) or 0 < len(shown[0]) <= 200


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.decimals()
)


@given(
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    )
)
def test_whatever_a_predictor_and_a_metric_tell_is_plain(told):
    prediction = Prediction("x", predictor="ours", metadata={"told": told})

    assert is_plain(
        Telling(prediction, details={"told": told}).report(thresholds={}, golds=(answer((1,)),), source=None)
    )


def test_texts_with_lone_surrogates_can_be_written():
    gold = QueryOrAnswer(answer=table((1,), columns=("\ud802",)))

    entry = run(gold, gold, question="\ud800?", source=replace(fake_source("\ud801.db"), engine="sqlite"))

    assert is_plain(entry)
    assert (entry["question"], entry["source"], entry["gold"]["columns"]) == ("\\ud800?", "\\ud801.db", ["\\ud802"])


@pytest.mark.parametrize("limit", [0, 1, 2, 50])
def test_a_sample_has_at_most_report_rows_rows_and_the_count_is_of_all(limit):
    gold, predicted = answer(*((n, "gold") for n in range(5))), answer(*((n, "predicted") for n in range(10, 14)))

    entry = run(gold, predicted, report_rows=limit)

    assert [row[0] for row in entry["gold"]["sample"]] == list(range(5))[:limit]
    assert [row[0] for row in entry["predicted"]["sample"]] == list(range(10, 14))[:limit]
    assert (entry["gold"]["row_count"], entry["predicted"]["row_count"]) == (5, 4)
    assert len(entry["difference"]["missing"]) == min(limit, 5)
    assert len(entry["difference"]["extra"]) == min(limit, 4)
    assert ("gold" in json.dumps(entry["gold"]["sample"])) is bool(limit)
    assert "missing 5 of 5 rows, 4 extra" in entry["difference"]["summary"]


def test_a_difference_names_the_columns_of_both_sides_in_gold_s_order_and_counts_all_rows():
    gold = QueryOrAnswer(answer=table((1, "x"), (2, "y"), (3, "z"), columns=("id", "name")))
    predicted = QueryOrAnswer(answer=table(("x", 1), ("w", 9), columns=("label", "number")))

    entry = run(gold, predicted, report_rows=1)["difference"]

    assert (entry["columns"], entry["predicted_columns"]) == (["id", "name"], ["number", "label"])
    assert entry["counts"] == {"missing": 2, "extra": 1}


def test_a_difference_by_column_keeps_what_differs_of_long_texts():
    gold, predicted = (answer((1, f"{'x' * 900}{side}{'y' * 900}", IRI("http://e/a"))) for side in ("gold", "other"))

    (column,) = run(gold, predicted, report_rows=1)["difference"]["by_column"]
    (hidden,) = run(gold, predicted, report_rows=0)["difference"]["by_column"]

    assert (column["column"], column["rows"], column["of"]) == ("b", 1, 1)
    (example,) = column["examples"]
    assert (example["key"], "xgoldy" in example["gold"], "xothery" in example["predicted"]) == ({"a": 1}, True, True)
    assert max(len(example["gold"]), len(example["predicted"])) <= 200
    assert hidden == {"column": "b", "rows": 1, "of": 1, "examples": []}


def test_what_was_said_before_the_question_is_in_the_report_in_part_where_it_is_long():
    said = (("user", "Flow of the Adda"), ("assistant", "x" * 9_000), ("user", "And the Oglio?"))
    conversation = tuple(Message(role=role, content=content) for role, content in said)

    entry = run(answer((1,)), answer((1,)), conversation=conversation, question="And the Oglio?")

    assert [(message["role"], len(message["content"])) for message in entry["conversation"]] == [
        ("user", 16),
        ("assistant", 4_000),
    ]
    assert "conversation" not in run(answer((1,)), answer((1,)))


NO_SECRET = re.compile("[a-z_]*")  # it may be a part of a field's name
SECRETS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=8, max_size=40
).filter(lambda text: not NO_SECRET.fullmatch(text))


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=SECRETS, before=st.integers(0, 2 * QUERY_CHARACTERS), fails=st.booleans())
def test_a_secret_in_any_text_of_a_case_is_nowhere_in_its_data(secret, before, fails):
    text = f"{'x' * before}{secret}"
    cells = f"Ana {'x' * (before % 250)}{secret}", 1, IRI(f"http://a/{secret}"), secret.encode()
    rows = table(cells, columns=("name", "age", secret, "data"))
    said = Execution(query=text, answer=None if fails else rows, note=f"n {secret}", seconds=0.1)
    if fails:
        said = Execution(query=text, error=Failure(kind="invalid", message=f"no table {secret}"))
    told = {"notes": [f"a note {secret}"], "more": {"path": secret, secret: 1}}
    prediction = Prediction(text, predictor="p", metadata={"note": secret, "deep": [{secret: secret}]})
    about = {"question": f"q {secret}", "evidence": secret, "metadata": {"note": secret}, "trials": 2}

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL_TOKEN", secret)
        entry = Telling(prediction, {text: said}, told).report(
            golds=(QueryOrAnswer(answer=rows),),
            source=fake_source(),
            thresholds={"execution_accuracy": Threshold(minimum=1.0)},
            **about,
        )

    assert entry["outcome"] in ("passed", "failed"), entry["message"]
    assert secret not in json.dumps(entry, ensure_ascii=False)
    assert secret not in str(entry)
    assert MARK in entry["question"]
    assert len(entry["predicted"]["query"]) == min(before + len(MARK), QUERY_CHARACTERS)
