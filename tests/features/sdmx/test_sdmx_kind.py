"""SDMX cases from the suite to the report."""

import json

import pytest
import sdmx_messages as messages
from suites import load, problems, write

from pytest_queryeval import evaluate

pytestmark = pytest.mark.usefixtures("working_folder")

LP = "[{dataset_id: 'A:B', dimensions: [{dimension_name: INDICATOR, values: [{id: LP, name: Population}]}]}]"
NO = "[{dataset_id: 'A:B', dimensions: [{dimension_name: COUNTRY, values: [{id: NO}, {id: 001}]}]}]"
TURNS = """\
id: c1
name: population
tags: [imf, "weo 2024"]
comments: ''
conversation:
- role: user
  content: "Population of Norway?"
  target:
    indicator_selection:
    - dataset_id: A:B
      dimensions:
      - dimension_name: COUNTRY
        values:
        - id: NO
          name: Norway
- role: assistant
  content: Here you are
- role: user
  content: And of Chad?
  target:
    indicator_selection:
    - dataset_id: A:B
      dimensions:
      - dimension_name: COUNTRY
        values:
        - name: Chad
"""


def one(gold, predicted, top=""):
    (loaded,) = load(f"kind: sdmx\n{top}cases:\n  - id: a\n    gold: {gold}\n    predicted: {predicted}\n")
    (result,) = evaluate([loaded])["cases"]
    return result


def test_a_right_selection_passes_and_ids_keep_their_source_text():
    result = one(NO, NO)

    assert (result["outcome"], set(result["scores"].values())) == ("passed", {1.0})
    terms = result["details"]["dimensions"]["COUNTRY"]["true_positives"]
    assert sorted(id_ for id_, _ in terms) == ["001", "NO"]


def test_predicted_may_be_the_text_of_a_model():
    text = json.dumps("```json\n" + json.dumps([{"dataset_id": "A:B", "dimensions": []}]) + "\n```")

    result = one(LP, text)

    assert result["scores"]["dataset_recall"] == 1.0
    assert result["scores"]["macro_recall"] == 0.0
    assert result["details"]["notes"] == ["predicted: the answer was read from a code block"]


@pytest.mark.parametrize(
    ("predicted", "said"),
    [
        ("'[{\"dataset\": 1}]'", "unknown key 'dataset'"),
        ('\'{"dataset_id": "A:B"}\'', "expected a list of datasets, found one: put it into brackets"),
        ("I cannot tell you that", "'I cannot tell you that' is neither JSON nor an SDMX data query"),
        ("'[1]'", "expected an object"),
        ("data/A,B/LP", "structure"),
        ('"[" ', "not JSON"),
    ],
)
def test_what_is_no_selection_is_a_failed_prediction(predicted, said):
    result = one(LP, predicted)

    assert result["outcome"] == "failed"
    assert result["predicted"]["error"]["kind"] == "invalid"
    assert said in result["predicted"]["error"]["message"]


def test_a_threshold_may_ask_for_one_dimension():
    result = one(LP, "[]", top="thresholds: {'recall[INDICATOR]': 0.5}\n")

    assert [missed["metric"] for missed in result["violations"]] == ["recall[INDICATOR]"]


GOLD = {"COUNTRY": [("MEX", "Mexican Republic")], "FREQ": [("A", None)]}


@pytest.mark.parametrize(
    ("dataset", "changes", "cause"),
    [
        ("A:B", {}, None),
        ("A:B", {"FREQ": [("M", None)]}, "wrong-code FREQ M → A"),
        ("A:B", {"FREQ": [("A", None), ("M", None)]}, "wrong-code FREQ M → nothing"),
        ("A:B", {"FREQ": []}, "missing-dimension FREQ nothing → A"),
        ("A:B", {"SEX": [("F", None)]}, "extra-dimension SEX F → nothing"),
        ("A:C", {}, "wrong-dataset A:C → A:B"),
        # Names of terms with the same id.
        ("A:B", {"COUNTRY": [("MEX", "Mexico")]}, "wrong-code COUNTRY MEX (Mexico) → MEX (Mexican Republic)"),
        ("A:B", {"COUNTRY": [("MEX", None)]}, "wrong-code COUNTRY MEX → MEX (Mexican Republic)"),
        (
            "A:B",
            {"COUNTRY": [("MEX", "Mexico"), ("USA", "United States")]},
            "wrong-code COUNTRY MEX (Mexico), USA → MEX (Mexican Republic)",
        ),
        ("A:B", {"COUNTRY": [("CAN", "Mexican Republic")]}, "wrong-code COUNTRY CAN → MEX"),
    ],
)
def test_the_cause_is_the_dataset_or_dimension_that_differs(dataset, changes, cause):
    def stated(dataset, dimensions):
        return json.dumps(
            [
                {
                    "dataset_id": dataset,
                    "dimensions": [
                        {
                            "dimension_name": name,
                            "values": [{"id": code, **({"name": text} if text else {})} for code, text in terms],
                        }
                        for name, terms in dimensions.items()
                        if terms
                    ],
                }
            ]
        )

    result = one(stated("A:B", GOLD), stated(dataset, {**GOLD, **changes}))

    edits = (result["cause"] or {"edits": []})["edits"]
    assert [" ".join(filter(None, (edit["label"], edit["clause"], edit["change"]))) for edit in edits] == [
        cause
    ] * bool(cause)


def test_a_family_of_metrics_needs_its_dimension():
    (line,) = problems(f"kind: sdmx\nmetrics: [precision]\ncases:\n  - {{id: a, gold: {LP}, predicted: []}}\n")

    assert "metric 'precision' needs a dimension: for sdmx write precision[DIMENSION]" in line


def test_only_families_take_brackets():
    (line,) = problems(f"kind: sdmx\nmetrics: ['macro_f1[A]']\ncases:\n  - {{id: a, gold: {LP}, predicted: []}}\n")

    assert "macro_f1" in line


def test_each_turn_with_a_target_is_a_case(working_folder):
    write(TURNS, "talks/one.yaml")
    cases = load('kind: sdmx\ncases: "talks/**/*.yaml"\npredictor: predict.py:predict\n')

    assert [case.id for case in cases] == ["c1.1", "c1.3"]
    assert [case.question for case in cases] == ["Population of Norway?", "And of Chad?"]
    assert [len(case.conversation) for case in cases] == [1, 3]
    assert cases[1].conversation[1].content == "Here you are"
    assert cases[0].tags == ("imf", "weo-2024")
    assert cases[0].metadata == {"name": "population", "comments": ""}
    assert cases[1].location.path.name == "one.yaml"


def test_a_predictor_is_given_the_conversation_so_far(working_folder):
    write(TURNS, "talks/one.yaml")
    write(
        "def predict(case):\n"
        "    country = 'Chad' if 'Chad' in case.conversation[-1].content else 'Norway'\n"
        "    values = [{'id': 'NO' if country == 'Norway' else 'TD', 'name': country}]\n"
        "    return [{'dataset_id': 'A:B', 'dimensions': [{'dimension_name': 'COUNTRY', 'values': values}]}]\n",
        "predict.py",
    )

    report = evaluate(load('kind: sdmx\ncases: "talks/**/*.yaml"\npredictor: predict.py:predict\n'))

    assert report["totals"]["passed"] == 2
    assert report["dimensions"]["COUNTRY"]["recall"]["mean"] == 1.0


def test_each_turn_that_cannot_be_read_is_told_once(working_folder):
    text = TURNS.replace("role: user", "who: user").replace("  content: Here you are", "  content: [Here]")
    write(text, "talks/one.yaml")

    assert problems('kind: sdmx\ncases: "talks/**/*.yaml"\npredictor: predict.py:predict\n') == [
        "talks/one.yaml:6: a turn needs a `role` and a `content`: add `role`",
        "talks/one.yaml:17: content: expected text, found a list: write Here",
        "talks/one.yaml:18: a turn needs a `role` and a `content`: add `role`",
    ]


def test_what_else_turns_and_targets_say_is_left_aside(working_folder):
    more = TURNS.replace("- role: user\n", "- role: user\n  id: 7\n  tools: [{name: x}]\n")
    more = more.replace("    indicator_selection:", "    comment: sure\n    indicator_selection:")
    write(more, "talks/more.yaml")
    write(TURNS, "talks/plain.yaml")
    top = "kind: sdmx\npredictor: predict.py:predict\ncases: talks/"

    with_more, without = load(f"{top}more.yaml\n"), load(f"{top}plain.yaml\n")

    assert [case.golds for case in with_more] == [case.golds for case in without]
    assert [case.conversation for case in with_more] == [case.conversation for case in without]


def test_tags_of_conversations_never_stop_the_file(working_folder):
    tags = "tags: [skip, '', '?', , __init__, C++, xfail, 'null']"
    write(TURNS.replace('tags: [imf, "weo 2024"]', tags.replace(", ,", ", null,")), "talks/one.yaml")

    first, _ = load("kind: sdmx\npredictor: predict.py:predict\ncases: talks/one.yaml\n")

    assert first.tags == ("-skip", "-init__", "C-", "-xfail", "null")


def test_a_conversation_without_a_target_is_a_problem(working_folder):
    write("id: a\nconversation:\n- {role: user, content: x}\n", "talks/one.yaml")

    (line,) = problems('kind: sdmx\ncases: "talks/**/*.yaml"\npredictor: predict.py:predict\n')

    assert line == "talks/one.yaml:2: no turn of this conversation has a `target`"


# With a structure

ITEMS = {"AREA": {"NO": "North ", "SO": "South"}}


@pytest.fixture
def structure(working_folder):
    document = messages.structure_document([("SHOP", "SALES", "1.0", ("AREA",))], ITEMS)
    write(json.dumps(document), "shop.json")
    return "structure: shop.json\n"


def areas(values):
    return f"[{{dataset_id: 'SHOP:SALES', dimensions: [{{dimension_name: AREA, values: [{values}]}}]}}]"


NORTH = ["{id: NO}", "{id: NO, name: North}"]


@pytest.mark.parametrize("gold", [*map(areas, [*NORTH, "{name: North}"]), "data/SHOP,SALES/NO"])
def test_an_id_is_enough_where_the_structure_tells_the_name(structure, gold):
    for predicted in (*map(areas, NORTH), "data/SHOP,SALES/NO"):
        assert one(gold, predicted, top=structure)["scores"]["macro_f1"] == 1.0


def test_another_id_and_another_name_are_wrong_with_a_structure_as_without(structure):
    for predicted in ("{id: SO}", "{id: NO, name: Nord}", "{id: SO, name: North}"):
        result = one(areas("{id: NO, name: North}"), areas(predicted), top=structure)
        assert result["scores"]["macro_recall"] == 0.0


def test_prose_is_told_what_a_data_query_is_where_one_could_be_read(structure):
    result = one(areas("{id: NO}"), "All of the north", top=structure)

    said = "'All of the north' is neither JSON nor an SDMX data query, which is data/AGENCY,ID,VERSION/KEY or "
    assert result["predicted"]["error"]["message"].startswith(said)


# What reports say


def test_a_selection_is_shown_as_a_line_for_each_dimension(structure):
    result = one(areas("{id: NO}, {id: SO, name: South}, {name: South}"), areas(""), top=structure)

    assert result["gold"]["query"] == "SHOP:SALES\n  AREA: NO ('North '), SO (South), (South)"
    assert result["predicted"]["query"] == "SHOP:SALES\n  AREA: (nothing)"


def test_long_selections_are_cut_and_nothing_selected_is_said():
    terms = ", ".join(f"{{id: A{number}}}" for number in range(3000))

    result = one(areas(terms), "[]")

    assert result["gold"]["query"].endswith(", A999, … 2,000 more")
    assert result["predicted"]["query"] == "(nothing)"


@pytest.mark.parametrize(
    ("written", "only_in"),
    [
        ("{id: lp, name: population}", "letter case"),
        ("{id: LP, name: ' Population '}", "blanks"),
        ("{id: lp, name: 'population '}", "letter case and blanks"),
        ("{id: LP, name: Populations}", None),
    ],
)
def test_another_spelling_of_terms_is_a_hint_and_no_match(written, only_in):
    predicted = LP.replace("{id: LP, name: Population}", written)
    suite = f"kind: sdmx\nthresholds: {{macro_f1: 1}}\ncases: [{{id: a, gold: {LP}, predicted: {predicted}}}]\n"

    (result,) = evaluate(load(suite))["cases"]

    assert result["scores"]["macro_f1"] == 0.0
    texts = [hint["text"] for hint in result.get("hints", ())]
    assert texts == ([f"ids or names differ only in {only_in}: write them as in the gold answer"] if only_in else [])
