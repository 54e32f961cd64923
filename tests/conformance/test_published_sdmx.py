"""SDMX selections against the reference records, and codes of real structures of the IMF and the ECB.

The records give each figure under several readings of the document. Ours is precision over all dimensions and recall
over gold's, with 0 where nothing is selected; where gold has no terms the records have no figure, and ours are 0 and 1,
or 1 and 1 where nothing is selected either.
"""

import json
import random
import re
import string
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_queryeval import METRICS, evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import QueryEvalWarning
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term

pytestmark = pytest.mark.usefixtures("working_folder")

FORMS = {"pooled": False, "by_dataset": True}
MACROS = ("macro_precision", "macro_recall", "macro_f1")


@pytest.fixture(scope="module")
def cases(records):
    """The records with gold and predicted as selections."""
    return [
        (record, selection(record["target"]), selection(record["selection"])) for record in records("sdmx_cases.jsonl")
    ]


def selection(datasets):
    return Selection(
        tuple(
            DatasetSelection(
                dataset["dataset_id"],
                tuple(
                    DimensionSelection(
                        dimension["dimension_name"],
                        tuple(Term(value.get("id"), value.get("name")) for value in dimension["values"]),
                    )
                    for dimension in dataset["dimensions"]
                ),
            )
            for dataset in datasets or ()
        )
    )


def score(name, gold, predicted, **options):
    return METRICS[name].function(gold, predicted, **options)


def one_thing_in_gold(gold):
    """D21: the records compare what gold does not say."""
    terms = [term for dataset in gold.datasets for dimension in dataset.dimensions for term in dimension.terms]
    return any(term.id is None or term.name is None for term in terms)


def version_of_gold(gold, predicted):
    """D21: to the records `A:B(9.0.0)` is another dataset than gold's `A:B`."""
    golds = {dataset.id for dataset in gold.datasets}
    versions = {dataset.id for dataset in predicted.datasets if dataset.id.endswith(")")} - golds
    return any(id_.rpartition("(")[0] in golds for id_ in versions)


def our_reading(reference):
    """Precision, recall and F1 under our reading; where gold has no terms, our rules stand in for the records' null."""
    macro = reference["macro"]
    p, r = macro["union_dims_undefined_0"]["precision"], macro["target_dims_undefined_0"]["recall"]
    if r is None:
        p, r = float(p is None), 1.0
    return p, r, 2 * p * r / (p + r) if p + r else 0.0


def terms_of(details):
    """What is right, extra and missing in each dimension, as sets."""
    return {
        name: [set(map(tuple, of[side])) for side in ("true_positives", "false_positives", "false_negatives")]
        for name, of in details["dimensions"].items()
    }


def compared(gold, predicted, reference, by_dataset):
    """What differs from the record, whose dimensions without any term are none to us."""
    macros = [score(name, gold, predicted, by_dataset=by_dataset) for name in MACROS]
    yield [found.value for found in macros] == pytest.approx(our_reading(reference), abs=1e-9)
    dimensions = {
        name: [{tuple(both) for both in of[side]} for side in ("tp", "fp", "fn")]
        for name, of in reference["per_dimension"].items()
    }
    yield terms_of(macros[0].details) == {name: sets for name, sets in dimensions.items() if any(sets)}
    for name, of in reference["per_dimension"].items():
        if any(dimensions[name]):
            figures = [
                score(figure, gold, predicted, dimension=name, by_dataset=by_dataset).value
                for figure in ("precision", "recall")
            ]
            # Without a selection the records have no precision, which is 0 here.
            yield figures == pytest.approx([of["precision"] or 0.0, of["recall"]], abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_terms_and_figures_equal_the_reference_but_for_named_differences(cases, form):
    differing = [
        (record["id"], one_thing_in_gold(gold) or (FORMS[form] and version_of_gold(gold, predicted)))
        for record, gold, predicted in cases
        if not all(compared(gold, predicted, record[form], FORMS[form]))
    ]

    assert [id_ for id_, explained in differing if not explained] == []
    assert len(differing) <= 2


def test_restricted_to_gold_s_dimensions_precision_equals_the_reference(cases):
    for record, gold, predicted in cases:
        published = record["pooled"]["macro"]["target_dims_undefined_0"]["precision"]
        if published is not None and not one_thing_in_gold(gold):
            assert score("macro_precision", gold, predicted, macro="target").value == pytest.approx(published), record


def test_a_version_in_the_prediction_alone_explains_its_difference(cases):
    struck = [(record, gold, predicted) for record, gold, predicted in cases if version_of_gold(gold, predicted)]
    for record, gold, predicted in struck:
        bare = [dataset | {"dataset_id": dataset["dataset_id"].partition("(")[0]} for dataset in record["selection"]]

        scores = [score("macro_f1", gold, of, by_dataset=True) for of in (predicted, selection(bare))]
        assert scores[0] == scores[1]

    assert struck


def test_imported_selections_have_the_published_scores(cases):
    stated = [record for record, _, _ in cases if record["target"]]
    lines = [
        {"id": record["id"], "question": "?", "gold": record["target"], "predicted": record["selection"]}
        for record in stated
    ]
    Path("records.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert main(["import", "jsonl", "records.jsonl", "-o", "out", "--kind", "sdmx"]) == 0

    scores = {case["id"]: case["scores"] for case in evaluate(load_cases("out"))["cases"]}

    published = {record["id"]: our_reading(record["pooled"])[:2] for record in stated}
    ours = {id_: (of["macro_precision"], of["macro_recall"]) for id_, of in scores.items()}
    assert ours.keys() == published.keys()
    assert len(published) > 100
    assert len([id_ for id_ in ours if ours[id_] != pytest.approx(published[id_])]) <= 2


CPI = "IMF.STA:CPI"
CODES = {"COUNTRY": 337, "INDEX_TYPE": 49, "COICOP_1999": 15, "TYPE_OF_TRANSFORMATION": 7, "FREQUENCY": 6}
LISTS = {"COUNTRY": "COUNTRY", "INDEX_TYPE": "INDEX_TYPE", "COICOP_1999": "COICOP_1999"}
LISTS |= {"TYPE_OF_TRANSFORMATION": "CPI_TYPE_OF_TRANSFORMATION", "FREQUENCY": "FREQ"}
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
CURRENCIES = ["FREQ", "CURRENCY", "CURRENCY_DENOM", "EXR_TYPE", "EXR_SUFFIX"]


@pytest.fixture(scope="module")
def files(conformance):
    files = sorted((conformance / "sdmx").iterdir())
    assert len(files) == 8
    return files


@pytest.fixture
def told(files):
    """Returns the cases of a report: what a structure has to say of predictions; it is the IMF's by default."""

    def evaluated(*predictions, structure=None):
        paths = [str(path) for path in files if "IMF" in path.name] if structure is None else structure
        cases = [{"id": f"c{number:03}", "gold": [], "predicted": text} for number, text in enumerate(predictions)]
        suite = {"kind": "sdmx", "structure": paths, "cases": cases}
        Path("s.queryeval.yaml").write_text(json.dumps(suite))
        return evaluate(load_cases("s.queryeval.yaml"))["cases"]

    return evaluated


def choosing(dimension, code, dataset=CPI, **name):
    value = {"id": code, **name}
    dimensions = [{"dimension_name": dimension, "values": [value]}]
    return json.dumps([{"dataset_id": dataset, "dimensions": dimensions}])


def violations(case):
    return case["details"].get("violations", [])


@pytest.fixture(scope="module")
def codes(files):
    """The codes of each dimension with their names, as the files of their lists have them."""
    lists = {}
    for path in files:
        for code in ElementTree.parse(path).iterfind(".//{*}Codelist/{*}Code"):
            name = next(name.text for name in code.iterfind("{*}Name") if name.get(LANGUAGE) == "en")
            lists.setdefault(path.name, {})[code.get("id")] = name
    return {
        dimension: next(of for name, of in lists.items() if f"CL_{LISTS[dimension]}(" in name) for dimension in LISTS
    }


def test_each_code_is_known_with_its_name_and_no_other(told, codes):
    stated = [(dimension, code, name) for dimension, of in codes.items() for code, name in of.items()]

    right = told(*(choosing(dimension, code, name=name) for dimension, code, name in stated))
    wrong = told(*(choosing(dimension, code, name=f"{name} or not") for dimension, code, name in stated[::9]))

    assert {dimension: len(of) for dimension, of in codes.items()} == CODES
    assert [case for case in right if violations(case)] == []
    assert all(len(violations(case)) == 1 for case in wrong)


def test_corrupted_codes_are_told_mostly_with_the_right_one(told, codes):
    dice = random.Random(6)
    drawn = [(dimension, dice.choice(list(of))) for _ in range(10) for dimension, of in codes.items()]

    def corrupted(dimension, code):
        wrong = code
        while wrong in codes[dimension]:
            at = dice.randrange(len(code))
            wrong = code[:at] + dice.choice(string.ascii_uppercase + string.digits) + code[at + 1 :]
        return wrong

    def rivals(dimension, wrong):
        """How many codes differ from a wrong one in one letter."""
        alike = [code for code in codes[dimension] if len(code) == len(wrong)]
        return sum(sum(map(str.__ne__, code, wrong)) == 1 for code in alike)

    wrong = [corrupted(*of) for of in drawn]
    cases = told(*(choosing(dimension, code) for (dimension, _), code in zip(drawn, wrong, strict=True)))
    sentences = [sentence for case in cases for (sentence,) in [violations(case)]]
    missed = []
    for (dimension, code), other, sentence in zip(drawn, wrong, sentences, strict=True):
        if len(code) == 1:
            assert f"'{code}'" in sentence.partition("choose from")[2]
        elif f"did you mean '{code}'" not in sentence:
            missed.append((dimension, other))
    assert len(missed) <= 10
    assert [other for dimension, other in missed if rivals(dimension, other) < 2] == []


def test_a_real_key_selects_the_right_terms(files, codes):
    key = "https://api.imf.org/external/sdmx/2.1/data/IMF.STA,CPI,4.0.0/MEX+USA.CPI._T.IX.M?startPeriod=2010"
    selected = dict(zip(LISTS, (["MEX", "USA"], ["CPI"], ["_T"], ["IX"], ["M"]), strict=True))
    dimensions = [
        {"dimension_name": name, "values": [{"id": code, "name": codes[name][code]} for code in of]}
        for name, of in selected.items()
    ]
    gold = [{"dataset_id": f"{CPI}(4.0.0)", "dimensions": dimensions}]
    paths = [str(path) for path in files if "IMF" in path.name]
    suite = {"kind": "sdmx", "structure": paths, "cases": [{"id": "a", "gold": gold, "predicted": key}]}
    Path("s.queryeval.yaml").write_text(json.dumps(suite | {"options": {"sdmx": {"by_dataset": True}}}))

    (case,) = evaluate(load_cases("s.queryeval.yaml"))["cases"]

    assert case["outcome"] == "passed"
    assert case["scores"]["macro_precision"] == case["scores"]["macro_recall"] == 1.0
    assert violations(case) == []
    assert terms_of(case["details"])[f"{CPI}(4.0.0)|COUNTRY"][0] == {("MEX", "Mexico"), ("USA", "United States")}


def test_recorded_targets_have_codes_and_names_of_the_structure(told, cases):
    targets = [record["target"] for record, _, _ in cases if record["target"]]
    of_imf = [[dataset for dataset in target if dataset["dataset_id"] == CPI] for target in targets]

    known = told(*(json.dumps(target) for target in of_imf if target))

    assert len(known) >= 10
    assert [violations(case) for case in known if violations(case)] == []


def test_the_structure_of_the_ecb_stands_alone(told, files):
    with pytest.warns(QueryEvalWarning, match=r"codes of FREQ, .* in ECB:ECB_EXR1 are not checked"):
        unknown, known = told(
            choosing("?", "A", dataset="ECB:ECB_EXR1"),
            choosing("FREQ", "?", dataset="ECB:ECB_EXR1(1.0)"),
            structure=[str(files[0])],
        )

    (sentence,) = violations(unknown)
    assert re.findall("'([^']*)'", sentence.partition("choose from")[2]) == CURRENCIES
    assert violations(known) == []
