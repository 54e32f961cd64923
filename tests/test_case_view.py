"""What predictors see of a case: all that belongs to the question, and nothing that tells the answer."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, fields, replace

import pytest
from samples import answer, fake_source, make_case, make_view, query

from pytest_queryeval import CaseView
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Case, Message
from pytest_queryeval.predictors import view_of

SECRET = "SELECT the_gold"
SEEN = {
    "id": "a",
    "question": "How many?",
    "evidence": "Count.",
    "conversation": (Message(role="user", content="How many?"),),
    "kind": "sql",
    "dialect": "duckdb",
    "tags": ("x",),
    "difficulty": "hard",
    "metadata": {"db_id": "music", "hints": ["y"]},
}


def whole_case(**changes):
    defaults = {"golds": (query(SECRET), answer((SECRET,))), "predicted": query(SECRET), "source": fake_source()}
    return make_case(**(SEEN | defaults | changes))


def test_a_view_has_what_belongs_to_the_question():
    view = view_of(whole_case(), lambda: "CREATE TABLE t (n)")

    assert {name: getattr(view, name) for name in SEEN} == SEEN
    assert (view.source, view.schema) == ("music", "CREATE TABLE t (n)")
    assert {field.name for field in fields(CaseView)} == {*SEEN, "source", "schema"}


@pytest.mark.parametrize("name", ["gold", "golds", "gold_any", "gold_table", "gold_file"])
def test_reading_gold_says_that_predictors_do_not_see_it(name):
    with pytest.raises(AttributeError, match=r"^predictors do not see gold: answer from `case\.question`$"):
        getattr(view_of(whole_case()), name)


@pytest.mark.parametrize(
    "name", sorted({field.name for field in fields(Case)} - {field.name for field in fields(CaseView)} - {"golds"})
)
def test_nothing_else_of_a_case_is_seen(name):
    said = rf"^predictors do not see gold or '{name}': they see id, question, .*, schema$"

    with pytest.raises(AttributeError, match=said):
        getattr(view_of(whole_case()), name)


def test_a_name_that_is_mistyped_is_suggested():
    with pytest.raises(AttributeError, match=r"^a case has no 'qestion': did you mean 'question'\?$"):
        _ = make_view().qestion


def test_no_attribute_leads_to_the_gold():
    view = view_of(whole_case(), lambda: "CREATE TABLE t (n)")

    assert not hasattr(view, "__dict__")
    reachable = [getattr(view, name) for name in dir(view) if not name.startswith("__")]
    assert SECRET not in repr(reachable)
    assert not any(isinstance(value, Case) for value in reachable)
    assert SECRET.encode() not in pickle.dumps(view)
    assert SECRET not in repr(view)


def test_a_view_cannot_be_written_to():
    with pytest.raises(FrozenInstanceError):
        make_view().question = "another"


def test_what_one_call_writes_into_metadata_is_not_seen_by_the_next():
    case = whole_case()

    view_of(case).metadata["hints"].append("from an earlier trial")

    assert view_of(case).metadata == SEEN["metadata"]


def test_the_schema_is_listed_when_it_is_first_read():
    calls = []
    view = view_of(whole_case(), lambda: calls.append("now") or "CREATE TABLE t (n)")

    assert repr(view).endswith("source='music')")
    assert view == view_of(whole_case())
    assert calls == []
    assert [view.schema, view.schema] == ["CREATE TABLE t (n)"] * 2
    assert calls == ["now"]


def test_a_schema_that_cannot_be_listed_is_a_fault_of_the_source():
    def gone():
        raise SourceError("no such file")

    with pytest.raises(SourceError, match="no such file"):
        _ = view_of(whole_case(), gone).schema


@pytest.mark.parametrize("copied", [lambda view: pickle.loads(pickle.dumps(view)), copy.copy, copy.deepcopy, replace])
def test_a_copy_in_another_process_has_the_schema_too(copied):
    view = view_of(whole_case(), lambda: "CREATE TABLE t (n)")

    assert copied(view) == view
    assert copied(view).schema == "CREATE TABLE t (n)"
    assert asdict(view)["schema"] == "CREATE TABLE t (n)"


def test_a_view_is_made_for_a_test_of_a_predictor():
    view = CaseView(id="a", question="How many?", schema="CREATE TABLE t (n)")

    assert (view.question, view.evidence, view.schema) == ("How many?", "", "CREATE TABLE t (n)")
    assert CaseView(id="a", question="How many?").schema is None
