"""SDMX REST data queries, and what they select; what models write around them."""

import json
from pathlib import Path

import pytest
import sdmx_messages as messages
import yaml
from suites import load, write

from pytest_queryeval import evaluate

FILE = yaml.safe_load((Path(__file__).parent / "data_queries.yaml").read_text(encoding="utf-8"))
CODES = {"AREA": {"NO": "North", "SO": "South", "EA": "East", "X1": ""}, "GOODS": {"TEA": "Tea", "COF": "Coffee"}}
SALES = "SHOP:SALES(1.0)"
DATASETS = (
    ("SHOP", "SALES", "1.0", ("AREA", "GOODS", "FREQ")),
    ("SHOP", "SALES", "10.0", ("AREA", "GOODS", "FREQ", "UNIT")),
    ("SHOP", "SALES", "2.0", ("AREA", "GOODS", "FREQ")),
    ("SHOP.UK", "STOCK", "1.0", ("AREA",)),
    ("SHOP.FR", "STOCK", "1.0", ("AREA",)),
)


@pytest.fixture
def selections(tmp_path, monkeypatch):
    """A function that returns for each answer of a model the codes that it selects, or why it selects none.

    Gold selects a dataset without terms, so that all that is predicted is listed as wrong.
    """
    monkeypatch.chdir(tmp_path)
    write(json.dumps(messages.structure_document(DATASETS, CODES)), "shop.json")

    def selected(answers, datasets=None):
        golds = datasets or [SALES] * len(answers)
        cases = [
            {"id": f"c{number:04}", "gold": [{"dataset_id": dataset}], "predicted": answer}
            for number, (answer, dataset) in enumerate(zip(answers, golds, strict=True))
        ]
        entries = evaluate(load(json.dumps({"kind": "sdmx", "structure": "shop.json", "cases": cases})))["cases"]
        entries = sorted(entries, key=lambda entry: entry["id"])
        assert datasets is None or {entry["scores"]["dataset_precision"] for entry in entries} == {1.0}
        return [*map(of_case, entries)]

    return selected


def of_case(entry):
    if error := entry["predicted"].get("error"):
        return f"{error['kind']}: {error['message']}"
    return {
        name: [code for code, _ in dimension["false_positives"]]
        for name, dimension in entry["details"]["dimensions"].items()
    }


def test_a_data_query_selects_the_codes_of_its_dataset(selections):
    rows = FILE["selected"]

    found = selections([row["query"] for row in rows], [row["dataset"] for row in rows])

    queries = [row["query"] for row in rows]
    assert dict(zip(queries, found, strict=True)) == {row["query"]: row["codes"] for row in rows}


def test_a_text_that_is_no_query_of_one_known_dataset_is_refused(selections):
    found = selections([query for query, _ in FILE["refused"]])

    assert dict(zip((query for query, _ in FILE["refused"]), found, strict=True)) == dict(FILE["refused"])


@pytest.mark.usefixtures("selections")
def test_terms_have_the_names_of_the_structure():
    gold = '[{dataset_id: "SHOP:SALES(1.0)", dimensions: [{dimension_name: AREA, values: [{name: North}, {id: X1}]}]}]'

    (entry,) = evaluate(
        load(
            f"kind: sdmx\nstructure: shop.json\ncases:\n  - {{id: a, gold: {gold}, "
            "predicted: 'data/SHOP,SALES,1.0/NO+X1+QQ.TEA.A'}\n"
        )
    )["cases"]

    dimensions = entry["details"]["dimensions"]
    assert dimensions["AREA"]["true_positives"] == [["NO", "North"], ["X1", None]]
    assert dimensions["AREA"]["false_positives"] == [["QQ", None]]
    assert dimensions["GOODS"]["false_positives"] == [["TEA", "Tea"]]


def test_a_query_is_not_longer_than_a_query_may_be(selections):
    start = "data/SHOP,SALES,1.0/"
    key = "A+" * ((100_000 - len(start)) // 2 - 2)

    assert selections([f"{start}{key}B..", "data/" + "d" * 99_996]) == [
        {"AREA": ["A", "B"]},
        "invalid: a data query has 100,001 characters, more than 100,000",
    ]


HOSTILE = [
    "data/SHOP,SALES,1.0/" + "." * 50_000,
    "data/SHOP,SALES,1.0/" + "+".join(f"{number:x}" for number in range(9_000)) + "..",
    "data/dataflow/SHOP/SALES/1.0/" + ",".join(f"{number:x}" for number in range(9_000)),
    "data/dataflow/SHOP/SALES/1.0/" + "A.B," * 8_000 + "A.B",
    "data/dataflow/SHOP/SALES/1.0/" + ",".join(f"{number:x}.{number:x}" for number in range(5_000)),
    "data/dataflow/SHOP/SALES/1.0?" + "&".join(f"c[{number}]=1" for number in range(5_000)),
    "data/" * 19_999 + "SHOP",
    "/" * 99_000 + "data",
    "data/SHOP,SALES,1.0/" + "%" * 90_000,
    "data/" + "," * 90_000,
    "data/dataflow/SHOP/SALES/1.0?" + "&" * 90_000,
    "data/dataflow/SHOP/SALES/1.0?c" + "[" * 90_000,
    "data/SHOP,SALES," + "1." * 40_000 + "+*~" * 3_000,
    "data/" + "9" * 90_000,
    "data/SHOP,SALES," + "9" * 90_000,
]


@pytest.mark.long
def test_a_hostile_query_is_read_or_refused_in_one_short_sentence(selections):
    for query, found in zip(HOSTILE, selections(HOSTILE), strict=True):
        assert isinstance(found, dict) or (len(found) < 300 and found.isprintable()), query[:50]


# What models write around a data query

URLS = (
    "https://api.example.org/rest/data/SHOP,SALES,1.0/NO.TEA.A",
    "https://api.example.org/rest/data/dataflow/SHOP/SALES/1.0/NO.TEA?c[FREQ]=A",
    "data/SHOP,SALES,1.0/NO.TEA.A",
)
AROUND = (
    *("URL", "URL.", "URL,", "URL;", "URL!", "URL?", "(URL)", "<URL>", "[URL]", "'URL'", '"URL"', "“URL”", "`URL`"),
    "`URL`.",
    *("*URL*", "**URL**", "**URL**.", "__URL__.", "- URL", "1. URL", "GET URL", "url=URL", "URL\n"),
    *("Use URL.", "Yes: URL, so", "The data are at URL", "URL gives tea"),
    *("[data](URL)", "[URL](URL)", '<a href="URL">data</a>', '<a href="URL">URL</a>'),
    *("requests.get('URL')", 'r = requests.get("URL", headers={"Accept": "text/csv"})', "curl 'URL'", "wget -qO- URL"),
    *("```\nURL\n```", "```url\nURL\n```", '```bash\ncurl "URL"\n```', "GET URL\nIt selects tea."),
    "URL\n\nIt selects tea.",
    'curl -s "URL" \\\n  -H "Accept: application/vnd.sdmx.data+json"',
)


def test_what_stands_around_a_data_query_is_no_part_of_it(selections):
    answers = [around.replace("URL", url) for around in AROUND for url in URLS]

    found = selections(answers)

    expected = {"AREA": ["NO"], "GOODS": ["TEA"], "FREQ": ["A"]}
    assert [answer for answer, codes in zip(answers, found, strict=True) if codes != expected] == []
