"""Real structures of the IMF and the ECB: what they describe, and whether wrong codes are told from right ones."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from reference_records import Records

from pytest_queryeval.core.errors import QueryEvalWarning
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.features.sdmx.checks import violations
from pytest_queryeval.features.sdmx.data_query import read_data_query
from pytest_queryeval.features.sdmx.structure import Dimension, Structure
from pytest_queryeval.features.sdmx.structure_key import load_structure, read_message, read_structure

CPI = "IMF.STA:CPI"
CODES = {"COUNTRY": 337, "INDEX_TYPE": 49, "COICOP_1999": 15, "TYPE_OF_TRANSFORMATION": 7, "FREQUENCY": 6}


def structure_of_files(*paths: Path) -> Structure:
    at = file_at(paths[0].parent / "s.queryeval.yaml")
    return load_structure(read_structure(Node([Node(path.name, 1, "plain", at) for path in paths], 1, "sequence", at)))


@pytest.fixture(scope="module")
def files(conformance: Path) -> list[Path]:
    files = sorted((conformance / "sdmx").iterdir())
    assert len(files) == 8
    return files


@pytest.fixture(scope="module")
def imf(files: list[Path]) -> Structure:
    return structure_of_files(*(path for path in files if "IMF" in path.name))


def drawn(structure: Structure) -> list[tuple[Dimension, str]]:
    """Fifty codes: each dimension in turn, and codes of it by chance."""
    dice = random.Random(5)
    dimensions = structure.datasets[0].dimensions
    return [(dimension, dice.choice(list(dimension.codes or ()))) for _ in range(10) for dimension in dimensions]


def corrupted(structure: Structure) -> Iterator[tuple[Dimension, str, str]]:
    """The same codes, with one letter changed so that they are codes no more."""
    dice = random.Random(6)
    for dimension, code in drawn(structure):
        wrong = code
        while wrong in (dimension.codes or ()):
            at = dice.randrange(len(code))
            wrong = code[:at] + dice.choice(string.ascii_uppercase + string.digits) + code[at + 1 :]
        yield dimension, code, wrong


def told(dimension: Dimension, code: str, structure: Structure) -> tuple[str, ...]:
    terms = DimensionSelection(dimension.id, (Term(code, None),))
    return violations(Selection((DatasetSelection(CPI, (terms,)),)), structure)


def test_every_file_is_read(files: list[Path]) -> None:
    messages = [read_message(path.read_bytes()) for path in files]

    assert sum(bool(message.structures) for message in messages) == 2
    assert sum(bool(message.codelists) for message in messages) == 5


def test_the_dataflow_of_the_imf_has_its_codelists(imf: Structure) -> None:
    (dataset,) = imf.datasets

    assert (dataset.id, dataset.version) == (CPI, "4.0.0")
    assert {dimension.id: len(dimension.codes or ()) for dimension in dataset.dimensions} == CODES
    assert list(CODES) == [dimension.id for dimension in dataset.dimensions]
    assert (dataset.dimensions[0].codes or {})["MEX"] == "Mexico"


def test_the_structure_of_the_ecb_stands_alone(files: list[Path]) -> None:
    with pytest.warns(QueryEvalWarning, match=r"codes of FREQ, .* in ECB:ECB_EXR1 are not checked"):
        (dataset,) = structure_of_files(files[0]).datasets

    assert (dataset.id, dataset.version) == ("ECB:ECB_EXR1", "1.0")
    assert [dimension.id for dimension in dataset.dimensions] == [
        "FREQ",
        "CURRENCY",
        "CURRENCY_DENOM",
        "EXR_TYPE",
        "EXR_SUFFIX",
    ]
    assert {dimension.codes for dimension in dataset.dimensions} == {None}


def test_fifty_real_codes_are_known(imf: Structure) -> None:
    assert [(dimension.id, code) for dimension, code in drawn(imf) if told(dimension, code, imf)] == []


def test_fifty_corrupted_codes_are_told_mostly_with_the_right_one(imf: Structure) -> None:
    sentences = [(dimension, code, wrong, told(dimension, wrong, imf)) for dimension, code, wrong in corrupted(imf)]

    assert len(sentences) == 50
    assert [wrong for _, _, wrong, messages in sentences if len(messages) != 1] == []
    long = [(dimension, code, wrong, messages[0]) for dimension, code, wrong, messages in sentences if len(code) > 1]
    missed = [
        (dimension, wrong) for dimension, code, wrong, messages in long if f"did you mean '{code}'" not in messages
    ]
    assert len(missed) <= 10
    assert [wrong for dimension, wrong in missed if rivals(dimension, wrong) < 2] == []
    letters = [(code, messages[0]) for _, code, _, messages in sentences if len(code) == 1]
    assert [code for code, message in letters if f"'{code}'" not in message.partition("choose from")[2]] == []


def rivals(dimension: Dimension, wrong: str) -> int:
    """How many codes differ from a wrong one in one letter."""
    alike = [code for code in dimension.codes or () if len(code) == len(wrong)]
    return sum(sum(one != partner for one, partner in zip(code, wrong, strict=True)) == 1 for code in alike)


def test_a_real_key_selects_the_right_terms(imf: Structure) -> None:
    path = "https://api.imf.org/external/sdmx/2.1/data/IMF.STA,CPI,4.0.0/MEX+USA.CPI._T.IX.M?startPeriod=2010"

    (dataset,) = read_data_query(path, imf).datasets

    terms = {dimension.name: [(term.id, term.name) for term in dimension.terms] for dimension in dataset.dimensions}
    assert dataset.id == "IMF.STA:CPI(4.0.0)"
    assert terms == {
        "COUNTRY": [("MEX", "Mexico"), ("USA", "United States")],
        "INDEX_TYPE": [("CPI", "Consumer price index (CPI)")],
        "COICOP_1999": [("_T", "All Items ")],
        "TYPE_OF_TRANSFORMATION": [("IX", "Index")],
        "FREQUENCY": [("M", "Monthly")],
    }
    assert violations(Selection((dataset,)), imf) == ()


def test_terms_of_the_recorded_targets_have_the_names_of_the_codelists(records: Records, imf: Structure) -> None:
    targets = [dataset for record in records("sdmx_cases.jsonl") for dataset in record["target"] or ()]
    stated_codes = {
        (dimension["dimension_name"], value["id"], value["name"])
        for dataset in targets
        for dimension in dataset["dimensions"]
        for value in dimension["values"]
        if dataset["dataset_id"] == CPI and {"id", "name"} <= value.keys()
    }
    codes_of_structure = {
        (dimension.id, code, name)
        for dimension in imf.datasets[0].dimensions
        for code, name in (dimension.codes or {}).items()
    }

    assert len(stated_codes) >= 50
    assert stated_codes - codes_of_structure == set()
