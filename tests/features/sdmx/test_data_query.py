"""SDMX REST data queries, and what they select."""

import pytest
from samples import make_case

from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.core.table import Selection
from pytest_queryeval.features.sdmx.data_query import MAX_CHARACTERS, read_data_query
from pytest_queryeval.features.sdmx.kind import SDMX
from pytest_queryeval.features.sdmx.structure import DatasetStructure, Dimension, Structure

AREAS = {"NO": "North", "SO": "South", "EA": "East", "X1": ""}
GOODS = {"TEA": "Tea", "COF": "Coffee"}
SALES = (Dimension("AREA", AREAS), Dimension("GOODS", GOODS), Dimension("FREQ", None))
SHOP = Structure(
    (
        DatasetStructure("SHOP:SALES", "1.0", SALES),
        DatasetStructure("SHOP:SALES", "10.0", (*SALES, Dimension("UNIT", None))),
        DatasetStructure("SHOP:SALES", "2.0", SALES),
        DatasetStructure("SHOP.UK:STOCK", "1.0", (Dimension("AREA", AREAS),)),
        DatasetStructure("SHOP.FR:STOCK", "1.0", (Dimension("AREA", AREAS),)),
    )
)


def codes(query, structure=SHOP):
    """The dataset of a query, and the codes that it selects by dimensions."""
    (dataset,) = read_data_query(query, structure).datasets
    return dataset.id, {dimension.name: [term.id for term in dimension.terms] for dimension in dataset.dimensions}


def selected(query):
    return codes(query)[1]


def problem(query, structure=SHOP):
    with pytest.raises(ValueError, match=r"(?s).+") as caught:
        read_data_query(query, structure)
    return str(caught.value)


def outcome(query):
    try:
        return read_data_query(query, SHOP)
    except ValueError as error:
        return str(error)


def test_the_parts_of_a_key_are_the_dimensions_in_their_order():
    assert selected("data/SHOP,SALES,1.0/NO.TEA.A") == {"AREA": ["NO"], "GOODS": ["TEA"], "FREQ": ["A"]}


def test_plus_joins_codes_and_nothing_leaves_a_dimension_open():
    assert selected("data/SHOP,SALES,1.0/SO+NO+SO..") == {"AREA": ["SO", "NO"]}
    assert selected("data/SHOP,SALES,1.0/..") == {}


def test_terms_have_the_names_of_the_structure():
    read = read_data_query("data/SHOP,SALES,1.0/NO+X1+QQ.TEA.A", SHOP)

    assert read.by_id
    assert [[(term.id, term.name) for term in dimension.terms] for dimension in read.datasets[0].dimensions] == [
        [("NO", "North"), ("X1", None), ("QQ", None)],
        [("TEA", "Tea")],
        [("A", None)],
    ]


@pytest.mark.parametrize("key", ["", "/", "/all", "/ALL", "/.."])
def test_a_key_may_leave_everything_open(key):
    read = read_data_query(f"data/SHOP,SALES,1.0{key}", SHOP)

    assert (read.datasets[0].id, read.datasets[0].dimensions) == ("SHOP:SALES(1.0)", ())


@pytest.mark.parametrize(
    ("written", "dataset", "dimensions"),
    [
        ("SHOP,SALES,1.0", "SHOP:SALES(1.0)", 3),
        ("SHOP,SALES,10.0", "SHOP:SALES(10.0)", 4),
        ("SHOP,SALES,9.0.0", "SHOP:SALES(9.0.0)", 4),
        ("SHOP,SALES", "SHOP:SALES", 4),
        ("SHOP,SALES,latest", "SHOP:SALES", 4),
        ("SHOP,SALES,LATEST", "SHOP:SALES", 4),
        ("SHOP,SALES,+", "SHOP:SALES", 4),
        ("SHOP,SALES,1.0+.0", "SHOP:SALES", 4),
        ("SHOP,SALES,", "SHOP:SALES", 4),
        ("all,SALES,~", "SHOP:SALES", 4),
        ("SALES", "SHOP:SALES", 4),
        ("SHOP.FR,STOCK", "SHOP.FR:STOCK", 1),
    ],
)
def test_a_dataset_is_named_by_agency_id_and_version_of_which_only_the_id_is_needed(written, dataset, dimensions):
    key = ".".join(["NO"] * dimensions)

    name, selected = codes(f"data/{written}/{key}")

    assert (name, len(selected)) == (dataset, dimensions)


@pytest.mark.parametrize(
    "query",
    [
        "data/SHOP,SALES,1.0/NO+SO..A",
        "/data/SHOP,SALES,1.0/NO+SO..A/",
        "  data/SHOP,SALES,1.0/NO+SO..A\n",
        "Data/SHOP,SALES,1.0/NO+SO..A",
        "data/SHOP,SALES,1.0/NO+SO..A/SHOP",
        "data/SHOP%2CSALES%2C1.0/NO%2BSO..A",
        "data/SHOP,SALES,1.0/NO+SO..A?startPeriod=2010&endPeriod=2020-M12&detail=dataonly",
        "data/SHOP,SALES,1.0/NO+SO..A?",
        "data/SHOP,SALES,1.0/NO+SO..A#top",
        "https://data.example.org/rest/data/SHOP,SALES,1.0/NO+SO..A?format=jsondata",
        "https://example.org/data/rest/data/SHOP,SALES,1.0/NO+SO..A",
        "/rest/v2/data/dataflow/SHOP/SALES/1.0/NO+SO.*.A",
        "data/dataflow/SHOP/SALES/1.0/NO+SO..A",
        "data/datastructure/SHOP/SALES/1.0/NO.*.A,SO.*.A",
        "data/*/SHOP/SALES/1.0/*.*.A?c[AREA]=NO,SO",
        "data/dataflow/SHOP/SALES/1.0?c[AREA]=NO,SO&c[FREQ]=eq:A&c[TIME_PERIOD]=ge:2010+le:2020",
        "data/dataflow/SHOP/SALES/1.0/*?c%5BAREA%5D=NO%2CSO&c[FREQ]=A&attributes=none",
    ],
)
def test_all_forms_of_a_query_select_the_same(query):
    assert codes(query) == ("SHOP:SALES(1.0)", {"AREA": ["NO", "SO"], "FREQ": ["A"]})


@pytest.mark.parametrize("path", ["dataflow/SHOP/SALES", "dataflow/*/SALES/*", "*/SHOP/SALES/~/NO"])
def test_in_sdmx_3_what_stands_last_may_be_left_out(path):
    name, selected = codes(f"data/{path}?c[AREA]=NO")

    assert (name, selected) == ("SHOP:SALES", {"AREA": ["NO"]})


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("NO.TEA,SO.TEA", {"AREA": ["NO", "SO"], "GOODS": ["TEA"]}),
        ("NO.TEA+COF,SO.TEA+COF", {"AREA": ["NO", "SO"], "GOODS": ["TEA", "COF"]}),
        ("NO.TEA.A,NO.COF.A,SO.TEA.A,SO.COF.A", {"AREA": ["NO", "SO"], "GOODS": ["TEA", "COF"], "FREQ": ["A"]}),
        ("NO.TEA,NO.TEA", {"AREA": ["NO"], "GOODS": ["TEA"]}),
        ("NO,*", {}),
        ("NO.TEA,*.TEA", {"GOODS": ["TEA"]}),
    ],
)
def test_several_keys_select_their_codes_where_they_are_all_combinations(keys, expected):
    assert selected(f"data/dataflow/SHOP/SALES/1.0/{keys}") == expected


@pytest.mark.parametrize("keys", ["NO.TEA,SO.COF", "NO.TEA,NO.COF,SO.TEA", "NO.TEA,SO.TEA,NO.COF.A,SO.COF.A"])
def test_several_keys_that_are_not_all_combinations_are_refused(keys):
    message = problem(f"data/dataflow/SHOP/SALES/1.0/{keys}")

    assert message.startswith("the keys ")


def test_several_keys_that_differ_in_several_dimensions_name_one_code_in_each():
    message = problem("data/dataflow/SHOP/SALES/1.0/NO.TEA,SO+EA.COF")

    assert message == "the keys differ in several dimensions and need one code in each of these: write one key"


def test_a_filter_and_the_key_hold_together():
    base = "data/dataflow/SHOP/SALES/1.0"

    assert selected(f"{base}/NO+SO.TEA?c[AREA]=SO,EA") == {"AREA": ["SO"], "GOODS": ["TEA"]}
    assert selected(f"{base}/NO?c[AREA]=*") == {"AREA": ["NO"]}
    assert selected(f"{base}/NO?c[COLOUR]=RED") == {"AREA": ["NO"], "COLOUR": ["RED"]}
    assert problem(f"{base}/NO?c[AREA]=SO") == (
        "the key and c[AREA] have no code in common: the data query selects nothing"
    )


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("c[AREA]=ne:NO", "c[AREA]: the operator 'ne' names no codes: only 'eq' can be read"),
        ("c[AREA]=NO,sw:S", "c[AREA]: the operator 'sw' names no codes: only 'eq' can be read"),
        ("c[AREA]=NO+SO", "c[AREA]: no data has two codes at once (`+`): separate codes by `,`"),
        ("c[AREA]=", "c[AREA] lacks a code"),
        ("c[AREA]=NO,,SO", "c[AREA] lacks a code"),
        ("c[AREA]=NO&c[AREA]=SO", "the data query filters 'AREA' twice: put the codes into one `c[…]`"),
        ("c[AREA]=N%00O", "a space or a control character in the data query: 'N\\x00O'"),
    ],
)
def test_filters_that_name_no_codes_are_refused(parameters, expected):
    assert problem(f"data/dataflow/SHOP/SALES/1.0?{parameters}") == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("NO", "the key has 1 part for the 3 dimensions of SHOP:SALES: AREA, GOODS, FREQ"),
        ("NO.", "the key has 2 parts for the 3 dimensions of SHOP:SALES: AREA, GOODS, FREQ"),
        ("NO.TEA.A.2010", "the key has 4 parts for the 3 dimensions of SHOP:SALES: AREA, GOODS, FREQ"),
        ("." * 90_000, "the key has 90,001 parts for the 3 dimensions of SHOP:SALES: AREA, GOODS, FREQ"),
        ("NO++SO..", "a code is missing beside a `+` of the key: 'NO++SO'"),
        ("+..", "a code is missing beside a `+` of the key: '+'"),
        ("NO,SO..", "a key of SDMX 2.1 separates codes by `+`, not by `,`: 'NO,SO..'"),
    ],
)
def test_a_key_that_does_not_fit_is_refused(key, expected):
    assert problem(f"data/SHOP,SALES,1.0/{key}") == expected


def test_in_sdmx_3_a_key_may_be_short_but_not_long():
    message = problem("data/dataflow/SHOP/SALES/1.0/NO.TEA.A.X")

    assert message == "the key has 4 parts for the 3 dimensions of SHOP:SALES: AREA, GOODS, FREQ"


FORMS = "data/AGENCY,ID,VERSION/KEY or data/dataflow/AGENCY/ID/VERSION/KEY"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", f"not a data query, which is {FORMS}"),
        ("I cannot answer that.", f"not a data query, which is {FORMS}"),
        ("availability/SHOP,SALES", f"not a data query, which is {FORMS}"),
        ("data", f"the data query names no dataset: write {FORMS}"),
        ("data///", f"the data query names no dataset: write {FORMS}"),
        ("data//NO..", "the data query names not one dataset: only queries of one can be read"),
        ("data/SHOP,SALES,1.0,X/NO..", f"the path of the data query is not {FORMS}"),
        ("data/SHOP,SALES/NO../SHOP/x", f"the path of the data query is not {FORMS}"),
        ("data/dataflow/SHOP", f"the path of the data query is not {FORMS}"),
        ("data/dataflow/SHOP/SALES/1.0/NO/x", f"the path of the data query is not {FORMS}"),
        ("data/dataflow/SHOP/SALES,STOCK", "the data query names not one dataset: only queries of one can be read"),
        ("data/dataflow/SHOP/*", "the data query names not one dataset: only queries of one can be read"),
        (
            "data/provisionagreement/SHOP/SALES",
            "a data query of a provision agreement names no dataset: query its dataflow",
        ),
        ("data/SHOP,SALE/NO..", "no dataset 'SHOP:SALE' in the structure: did you mean 'SHOP:SALES'?"),
        ("data/SALE/NO..", "no dataset 'SALE' in the structure: did you mean 'SALES'?"),
        ("data/STOCK/NO", "several datasets are called 'STOCK': name the agency of SHOP.UK:STOCK, SHOP.FR:STOCK"),
        ("data/../../secret/", "no dataset '..' in the structure: choose from SALES, STOCK"),
        ("data/SHOP,SALES,1.0/N\x00O..", "a space or a control character in the data query: 'N\\x00O..'"),
        ("data/SHOP,SALES,1.0/N%1BO..", "a space or a control character in the data query: 'N\\x1bO..'"),
        ("data/SHOP,SALES,1.0/N%0AO..", "a space or a control character in the data query: 'N O..'"),
        ("data/SHOP,SALES,1.0/N%FFO..", "'N%FFO..' in the data query is not UTF-8"),
        ("data/SHOP,SALES,1.0/N O..", "a space or a control character in the data query: 'N O..'"),
    ],
)
def test_a_text_that_is_no_query_of_one_known_dataset_is_refused(query, expected):
    assert problem(query) == expected


def test_a_query_needs_a_structure():
    message = problem("data/SHOP,SALES/NO..", structure=None)

    assert message == "a data query can be read only with `structure`, which lists the dimensions of its key"
    assert problem("no query", structure=None).startswith("not a data query")


def test_a_percent_sign_without_a_number_is_text():
    assert selected("data/SHOP,SALES,1.0/N%zz..") == {"AREA": ["N%zz"]}


def test_a_query_is_not_longer_than_a_query_may_be():
    start = "data/SHOP,SALES,1.0/"
    key = "A+" * ((MAX_CHARACTERS - len(start)) // 2 - 2)

    assert selected(f"{start}{key}B..") == {"AREA": ["A", "B"]}
    assert problem("d" * (MAX_CHARACTERS + 1)) == "a data query has 100,001 characters, more than 100,000"


HOSTILE = [
    "data/SHOP,SALES,1.0/" + "+".join(f"{number:x}" for number in range(17_000)) + "..",
    "data/dataflow/SHOP/SALES/1.0/" + ",".join(f"{number:x}" for number in range(17_000)),
    "data/dataflow/SHOP/SALES/1.0/" + "A.B," * 20_000 + "A.B",
    "data/dataflow/SHOP/SALES/1.0/" + ",".join(f"{number:x}.{number:x}" for number in range(9_000)),
    "data/dataflow/SHOP/SALES/1.0?" + "&".join(f"c[{number}]=1" for number in range(9_000)),
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


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_query_is_read_or_refused_in_one_short_sentence(query):
    assert len(query) <= MAX_CHARACTERS

    message = outcome(query)

    assert isinstance(message, Selection) or (len(message) < 300 and message.isprintable())


# What models write around a data query

URLS = (
    "https://api.example.org/rest/data/SHOP,SALES,1.0/NO.TEA.A",
    "https://api.example.org/rest/data/dataflow/SHOP/SALES/1.0/NO.TEA?c[FREQ]=A",
    "data/SHOP,SALES,1.0/NO.TEA.A",
)
AROUND = (
    *(
        "URL",
        "URL.",
        "URL,",
        "URL;",
        "URL!",
        "URL?",
        "(URL)",
        "<URL>",
        "[URL]",
        "'URL'",
        '"URL"',
        "“URL”",
        "`URL`",
        "`URL`.",
    ),
    *(
        "*URL*",
        "**URL**",
        "**URL**.",
        "__URL__.",
        "- URL",
        "1. URL",
        "GET URL",
        "url=URL",
        "URL\n",
        "Use URL.",
        "Yes: URL, so",
    ),
    *(
        "[data](URL)",
        "[URL](URL)",
        '<a href="URL">data</a>',
        '<a href="URL">URL</a>',
        "The data are at URL",
        "URL gives tea",
    ),
    *("requests.get('URL')", 'r = requests.get("URL", headers={"Accept": "text/csv"})', "curl 'URL'", "wget -qO- URL"),
    *(
        "```\nURL\n```",
        "```url\nURL\n```",
        '```bash\ncurl "URL"\n```',
        "GET URL\nIt selects tea.",
        "URL\n\nIt selects tea.",
    ),
    'curl -s "URL" \\\n  -H "Accept: application/vnd.sdmx.data+json"',
)


def predicted(answer):
    """The codes that an answer of a model selects, or why it selects none."""
    execution = SDMX.read_without_running(
        QueryOrAnswer(query=answer), make_case(kind="sdmx", extra={"structure": SHOP}), None
    )
    if execution.error is not None:
        return f"{execution.error.kind}: {execution.error.message}"
    (dataset,) = execution.answer.datasets
    return {dimension.name: [term.id for term in dimension.terms] for dimension in dataset.dimensions}


@pytest.mark.parametrize("around", AROUND)
def test_what_stands_around_a_data_query_is_no_part_of_it(around):
    expected = {"AREA": ["NO"], "GOODS": ["TEA"], "FREQ": ["A"]}

    assert [predicted(around.replace("URL", url)) for url in URLS] == [expected] * len(URLS)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("`data/SHOP,SALES,1.0/NO..`.", {"AREA": ["NO"]}),
        ("data/SHOP,SALES,1.0/NO.TEA.", {"AREA": ["NO"], "GOODS": ["TEA"]}),  # the last part of the key is open
        ("Use data/SHOP,SALES,1.0/NO.TEA..", {"AREA": ["NO"], "GOODS": ["TEA"]}),
        ("**data/dataflow/SHOP/SALES/1.0/***", {}),
        (
            "data/dataflow/SHOP/SALES/1.0/NO?c[FREQ]=A&amp;c[GOODS]=TEA",
            {"AREA": ["NO"], "GOODS": ["TEA"], "FREQ": ["A"]},
        ),
        (
            "data/dataflow/SHOP/SALES/1.0/\nNO?\n  c[FREQ]=A\n  &c[GOODS]=TEA",
            {"AREA": ["NO"], "GOODS": ["TEA"], "FREQ": ["A"]},
        ),
        ("data/SHOP,SALES,1.0/NO.TEA.A B", "invalid: a space or a control character in the data query: 'NO.TEA.A B'"),
        (
            "`data/SHOP,SALES,1.0/NO..` or `data/SHOP,SALES,1.0/SO..`",
            "invalid: the text has several data queries: data/SHOP,SALES,1.0/NO.., data/SHOP,SALES,1.0/SO..",
        ),
        (
            "requests.get('https://e.org/data/dataflow/SHOP/SALES/1.0/NO', params={'c[FREQ]': 'A'})",
            "invalid: filters (`c[…]`) stand outside of the URL: write them into it",
        ),
        ("[1, 2", "invalid"),
    ],
)
def test_what_is_unclear_around_a_data_query_is_invalid(answer, expected):
    selection = predicted(answer)

    assert selection == expected or (isinstance(selection, str) and selection.startswith(f"{expected}: "))
