"""The key `structure`: what its files say, and what can be wrong with them. What a selection has that they have not."""

import itertools
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import sdmx_messages as messages
from suites import load, problems

from pytest_queryeval import evaluate

pytestmark = pytest.mark.usefixtures("working_folder")

AREAS, GOODS, FREQUENCIES = map(list, (messages.AREAS, messages.GOODS, messages.FREQUENCIES))
NUMBERS = itertools.count()
ANY = []  # codes of a dimension that may have any value


def file(content, name="shop.xml"):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(content)
    return name


def suite(names, cases=({"id": "a", "gold": [], "predicted": "[]"},)):
    return json.dumps({"kind": "sdmx", "structure": names, "cases": cases})


def violations_of(*selections, structure="shop.json", folder=""):
    """What the reports of cases say of predicted selections, or codes, and the structure of the shop."""
    if structure == "shop.json":
        file(messages.shop_json(), structure)
    predicted = [stated if isinstance(stated, str) else json.dumps(stated) for stated in selections]
    cases = [{"id": f"c{number:04}", "gold": [], "predicted": of} for number, of in enumerate(predicted)]
    entries = evaluate(load(suite(structure, cases), f"{folder}s.queryeval.yaml"))["cases"]
    return [entry["details"].get("violations", []) for entry in sorted(entries, key=lambda entry: entry["id"])]


def stated(*terms, dimension="AREA", dataset="SHOP:SALES"):
    """A selection as a model writes it; a term is an id, or a mapping."""
    values = [{"id": term} if isinstance(term, str) else term for term in terms]
    return [{"dataset_id": dataset, "dimensions": [{"dimension_name": dimension, "values": values}]}]


def choices(sentences):
    """The texts that a sentence lists behind one that is not known."""
    return re.findall("'([^']*)'", sentences[0].partition(": choose from ")[2]) if sentences else ANY


def structure(*contents, names=None, folder=""):
    """The datasets of messages, each with the codes of its dimensions: what is told instead of `?`."""
    if names is None:
        names = [file(content, f"{next(NUMBERS)}.message") for content in contents]
    told = {"structure": names, "folder": folder}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: {} for name in choices(violations_of(stated("?", dataset="?"), **told)[0])}
        for dataset, codes in found.items():
            dimensions = choices(violations_of(stated("?", dimension="?", dataset=dataset), **told)[0])
            unknown = [stated("?", dimension=dimension, dataset=dataset) for dimension in dimensions]
            codes.update(zip(dimensions, map(choices, violations_of(*unknown, **told)), strict=True))
    return found


def dimensions(*contents):
    """The codes of each dimension of the one dataset."""
    (codes,) = structure(*contents).values()
    return codes


def problem(*names):
    (line,) = problems(suite([*names] if len(names) > 1 else names[0]))
    return line


# What the messages say


SHOP = {"AREA": AREAS, "GOODS": GOODS, "FREQUENCY": FREQUENCIES, "REMARK": ANY}


@pytest.mark.parametrize("content", [messages.shop(), messages.shop_3_0(), messages.shop_json()])
def test_a_dataflow_is_a_dataset_with_the_dimensions_of_its_key_and_without_time(content):
    assert structure(content) == {"SHOP:SALES": SHOP}


def test_messages_in_xml_and_json_refer_to_each_other_in_any_order():
    parts = [messages.data_structure(), *messages.lists(), messages.dataflow(), messages.concepts()]
    document = messages.shop_document()
    lists = {"data": {"codelists": document["data"].pop("codelists")}}
    without = json.dumps(document).encode()

    assert structure(*map(messages.message, parts)) == {"SHOP:SALES": SHOP}
    assert structure(without, json.dumps(lists).encode()) == {"SHOP:SALES": SHOP}
    assert structure(without, messages.message(messages.lists()[0])) == {
        "SHOP:SALES": {**SHOP, "GOODS": ANY, "FREQUENCY": ANY}
    }


def test_data_structures_that_no_dataflow_names_are_datasets_and_dataflows_without_one_are_not():
    second = messages.message(messages.data_structure(messages.dimension("X"), name="DSD_OTHER"))
    third = messages.message(messages.dataflow("B", "DSD_ABSENT"))

    assert [*structure(messages.shop(), second, third)] == ["SHOP:SALES", "SHOP:DSD_OTHER"]


def test_what_a_message_only_refers_to_does_not_hide_what_another_defines():
    stub = messages.data_structure(messages.dimension("X"), more='isExternalReference="true"')

    assert dimensions(messages.message(stub), messages.shop()) == SHOP
    defined = messages.message(messages.data_structure(messages.dimension("X")))
    assert dimensions(defined, messages.shop()) == {"X": ANY}  # the first definition is kept


def test_codelists_are_found_by_version_or_where_there_is_only_one_and_their_parts_are_joined():
    base = messages.message(messages.data_structure())
    first, newer, newest = (
        messages.message(messages.code_list("CL_AREA", {version: "?"}, version=version))
        for version in ("1.0", "1.1", "1.2")
    )
    more = messages.message(messages.code_list("CL_AREA", {"more": "?"}))
    any_version = messages.shop_3_0().replace(b"CL_AREA(1.0)", b"CL_AREA(1.0+.0)")
    lists = [messages.code_list("CL_AREA", {version: "?"}, version=version) for version in ("1.9", "1.10", "1.2")]

    assert dimensions(base, newer)["AREA"] == ["1.1"]
    assert dimensions(base, newer, newest)["AREA"] == ANY
    assert dimensions(base, newer, first, more)["AREA"] == ["1.0", "more"]
    assert dimensions(any_version.replace(b'id="CL_AREA"', b'id="CL_NO"'), *map(messages.message, lists))["AREA"] == [
        "1.10"
    ]


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (["CL_FREQ"], True),
        (["CL_SHOP_FREQ"], True),
        (["CL_FREQ", "CL_SHOP_FREQ"], True),
        (["CL_SHOP_FREQ", "CL_OTHER_FREQ"], False),
        (["CL_FREQUENCY"], False),
        (["CL_INFREQ"], False),
    ],
)
def test_a_codelist_is_found_by_its_conventional_name_where_the_concept_is_in_none_of_the_messages(names, known):
    lists = [messages.code_list(name, {name[-4:]: name}) for name in names]

    by_name = dimensions(messages.message(messages.data_structure()), *map(messages.message, lists))

    assert by_name["FREQUENCY"] == (["FREQ"] if known else ANY)


def test_a_concept_that_enumerates_nothing_leaves_any_value_as_do_codelists_that_are_absent_or_empty():
    remark = messages.message(messages.data_structure(messages.dimension("REMARK")))
    named = messages.message(messages.code_list("CL_REMARK", {"A": "a"}))
    base = messages.message(messages.data_structure(messages.DIMENSIONS[0]))

    assert dimensions(remark, named)["REMARK"] == ["A"]
    assert dimensions(remark, named, messages.message(messages.concepts()))["REMARK"] == ANY
    assert dimensions(base) == dimensions(base, messages.message(messages.code_list("CL_AREA", {}))) == {"AREA": ANY}


def test_positions_order_the_key():
    swapped = [messages.dimension("B", position=2), messages.dimension("A", position=1), messages.TIME]

    assert [*dimensions(messages.message(messages.data_structure(*swapped)))] == ["A", "B"]


def test_a_dimension_without_an_id_has_that_of_its_concept():
    nameless = messages.dimension("A").replace('<str:Dimension id="A"', "<str:Dimension")

    assert [*dimensions(messages.message(messages.data_structure(nameless, messages.dimension("B"))))] == ["A", "B"]


@pytest.mark.parametrize("places", [(1, 2, 3), (None, None, None)])
def test_a_measure_dimension_has_the_concepts_of_its_scheme_as_codes_and_keeps_its_place(places):
    scheme = messages.reference("ConceptScheme", "CS_SHOP").replace("datastructure", "conceptscheme")
    enumeration = f"<str:Enumeration>{scheme}</str:Enumeration>"
    sorts = {"A": {}, "M": {"own": enumeration, "sort": "MeasureDimension"}, "Z": {}}
    keyed = [
        messages.dimension(name, position=place, **more)
        for (name, more), place in zip(sorts.items(), places, strict=True)
    ]

    by_name = dimensions(messages.message(messages.concepts(), messages.data_structure(*keyed, messages.TIME)))

    assert list(by_name) == ["A", "M", "Z"]
    assert by_name["M"] == ["AREA", "GOODS", "REMARK"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"fr": "un", "en-GB": "1", "en": "one"}, "one"),
        ({"fr": "un", "en-GB": "one"}, "one"),
        ({"fr": "un", "de": "eins"}, "un"),
        ({"enm": "oon", "EN_us": "one"}, "one"),
        ({}, ""),
    ],
)
def test_names_are_english_where_they_can_be(names, expected):
    document = messages.shop_document()
    document["data"]["codelists"][0]["codes"][0] = {"id": "NO", "names": names}
    file(json.dumps(document).encode(), "names.json")

    wrong = violations_of(stated({"id": "NO", "name": "?"}), structure="names.json")[0]

    assert wrong == ([f"AREA: 'NO' of SHOP:SALES is called '{expected}', not '?'"] if expected else [])


def test_json_orders_by_positions_where_all_are_stated_and_may_nest_codes():
    document = messages.shop_document()
    dimension_list = document["data"]["dataStructures"][0]["dataStructureComponents"]["dimensionList"]
    for position, stated_dimension in enumerate(reversed(dimension_list["dimensions"])):
        stated_dimension["position"] = position
    document["data"]["codelists"][0]["codes"][0]["codes"] = [{"id": "NN", "name": "Far north"}]

    by_name = dimensions(json.dumps(document).encode())

    assert [*by_name] == ["REMARK", "FREQUENCY", "GOODS", "AREA"]
    assert by_name["AREA"] == ["NO", "NN", "SO", "EA", "WE"]


def test_a_codelist_that_extends_another_is_unknown_as_some_of_its_codes_are():
    document = messages.shop_document()
    document["data"]["codelists"][0]["codelistExtensions"] = [{"codelist": messages.urn("Codelist", "CL_X(1.0)")}]

    assert dimensions(json.dumps(document).encode())["AREA"] == ANY


# Files


def test_a_file_or_a_list_of_files_is_found_from_the_file_that_names_them():
    parts = [messages.data_structure(), *messages.lists(), messages.dataflow(), messages.concepts()]
    names = [Path(file(messages.message(part), f"below/{number}.xml")).name for number, part in enumerate(parts)]
    file(messages.shop(), "below/shop.xml")

    assert structure(names="shop.xml", folder="below/") == structure(names=names, folder="below/")


def test_a_file_that_has_changed_is_read_again():
    file(messages.shop_json())
    first = structure(names="shop.xml")
    file(messages.shop_json().replace(b'"id": "AREA"', b'"id": "REGION"'))
    os.utime("shop.xml", ns=(1, 1))

    assert [*structure(names="shop.xml")["SHOP:SALES"]] == ["REGION", *[*first["SHOP:SALES"]][1:]]


@pytest.mark.parametrize(
    ("value", "said"),
    [("", "expected text, found nothing"), ([], "structure needs a file"), ({}, "expected text, found a mapping")],
)
def test_the_key_needs_a_file(value, said):
    assert said in problems(suite(value))[0]


DOCTYPE = b'<!DOCTYPE a [<!ENTITY x SYSTEM "secret.txt">]>'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "it is neither JSON nor XML (no element found: line 1, column 0)"),
        (b"AREA,GOODS\n", "it is neither JSON nor XML (syntax error: line 1, column 0)"),
        (b"<html/>", "it is not SDMX: its root element is 'html'"),
        (b"<a\x1b/>", "it is neither JSON nor XML (not well-formed (invalid token): line 1, column 2)"),
        (DOCTYPE + messages.shop().partition(b"?>")[2], "a DOCTYPE is not allowed"),
        (messages.shop().replace(b"v2_1", b"v2_0"), "only SDMX 2.1 and 3.0 can be read, not 'v2_0'"),
        (
            messages.shop().replace(b"mes:Structure ", b"mes:Error "),
            "it is not a structure message: its root element is 'Error'",
        ),
        (b"{", "it is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        (b'{"a": "\xff"}', "it is not JSON ('utf-8' codec can't decode byte 0xff in position 7: invalid start byte)"),
        (b"[" * 200_000, "its JSON is nested too deeply"),
        (b"[]", "it is not an SDMX-JSON structure message"),
        (b'{"data": {"dataSets": []}}', "it is not an SDMX-JSON structure message"),
        (b'{"data": {"codelists": {}, "dataflows": 1}}', "its 'dataflows' is not a list of objects"),
        (b'{"data": {"codelists": [{"codes": []}]}}', "an artefact or an item in it has no 'id'"),
        (
            b'{"data": {"dataStructures": [{"id": "A", "dataStructureComponents": 1}]}}',
            "its 'dataStructureComponents' is not an object",
        ),
    ],
)
def test_a_file_that_is_no_structure_message_is_a_problem_of_the_suite(content, expected):
    file(content)

    assert problem("shop.xml") == f"s.queryeval.yaml:1: no structure in shop.xml: {expected}"


@pytest.mark.parametrize("length", [2000, len(messages.shop()) - 200, len(messages.shop()) - 1])
def test_a_message_that_is_cut_off_is_told_as_such(length):
    file(messages.shop()[:length])

    assert "no structure in shop.xml: its XML is damaged or truncated (" in problem("shop.xml")


@pytest.mark.parametrize(("version", "flag"), [("v2_1", "leveled"), ("v3_0", "hasFormalLevels")])
def test_what_the_library_would_evaluate_is_a_flag_or_refused(version, flag):
    hierarchy = f'<str:Hierarchy id="H" {flag}="open(&apos;run&apos;, &apos;w&apos;)"/>'
    file(messages.message(hierarchy, version=version))

    assert problem("shop.xml").endswith(f"its '{flag}' is neither true nor false: 'open('run', 'w')'")
    assert not Path("run").exists()


def test_a_message_that_the_library_cannot_read_is_told_in_one_line_and_prints_nothing(capfd):
    file(messages.message("<str:Unheard/>"))

    message = problem("shop.xml")

    assert message.startswith("s.queryeval.yaml:1: no structure in shop.xml: sdmx1 cannot read it (")
    assert "\n" not in message
    assert capfd.readouterr() == ("", "")


def test_an_absent_file_is_a_problem_as_is_one_that_is_too_large():
    Path("large.xml").touch()
    os.truncate("large.xml", 32 * 2**20 + 1)

    assert "no structure in absent.xml: no such file: correct the path" in problem("absent.xml")
    assert problem("large.xml").endswith("no structure in large.xml: is larger than 32 MiB: split it")


def test_messages_without_any_data_structure_are_a_problem():
    file(messages.message(messages.lists()[0]), "a.xml")
    file(messages.message(messages.dataflow()), "b.xml")

    assert problem("a.xml").endswith("1: no data structure in a.xml")
    assert problem("a.xml", "b.xml").endswith(
        "1: no data structure in a.xml, b.xml: 'SHOP:DSD_SALES' of a dataflow is in none of the files"
    )


def test_only_xml_loads_the_library():
    file(messages.shop_json(), "shop.json")
    file(messages.shop(), "shop.xml")
    for name in ("json", "xml"):
        load(suite(f"shop.{name}"), f"{name}.queryeval.yaml")
    program = (
        "import sys; from pytest_queryeval.suites import load_cases\n"
        "for name in ('json', 'xml'):\n"
        "    load_cases(f'{name}.queryeval.yaml')\n"
        "    print({'sdmx', 'pandas', 'lxml'} <= set(sys.modules), 'sdmx' in sys.modules)"
    )

    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=300)

    assert run.stdout.splitlines() == [b"False False", b"True True"]


# Codes that no file tells

UNLISTED_CODES = "no file lists those of SHOP:CL_AREA(1.0), SHOP:CL_GOODS(1.0), SHOP:CS_ELSEWHERE(1.0).FREQ"
UNLISTED = messages.message(messages.data_structure(messages.DIMENSIONS[0]))


def warnings_of(*contents):
    names = [file(content, f"{number}.xml") for number, content in enumerate(contents)]
    with warnings.catch_warnings(record=True, action="always") as warned:
        load(suite(names))
        load(suite(names))  # each place warns once
    return [(str(entry.message), entry.filename, entry.lineno) for entry in warned]


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (
            [messages.message(messages.concepts(), messages.data_structure())],
            "0.xml: codes of AREA, GOODS, FREQUENCY in SHOP:DSD_SALES are not checked: " + UNLISTED_CODES,
        ),
        (
            [messages.shop().replace(b"CL_AREA", b"CL_NONE", 1), messages.message(messages.code_list("CL_AREA", {}))],
            "0.xml, 1.xml: codes of AREA in SHOP:SALES are not checked: no file lists those of SHOP:CL_AREA(1.0)",
        ),
        ([messages.shop()], None),
    ],
)
def test_dimensions_whose_codes_no_file_tells_are_a_warning(contents, said):
    assert warnings_of(*contents) == ([(said, "s.queryeval.yaml", 1)] if said else [])


def test_it_is_a_problem_where_warnings_are_errors():
    assert "s.queryeval.yaml:1: shop.xml: codes of AREA in SHOP:DSD_SALES are not checked" in problem(file(UNLISTED))


def test_many_such_dimensions_are_counted():
    many = messages.message(messages.data_structure(*(messages.dimension(f"D{n}") for n in range(200))))

    ((said, *_),) = warnings_of(many)

    assert said.count("and 195 more") == 2
    assert len(said) < 500


# What a selection has that the structure has not


def test_what_the_structure_has_is_no_violation():
    right = [
        stated({"id": "NO", "name": "North"}, "SO", {"name": "East"}),
        stated("NO", dataset="SHOP:SALES(2.0)"),
        stated("NO", dataset="SHOP:SALES(9.0.0)"),
        stated("anything", dimension="REMARK"),
        stated("2024", dimension="TIME_PERIOD"),
        stated({"id": "_T", "name": "All goods"}, {"name": "All  goods "}, dimension="GOODS"),
        "data/SHOP,SALES/NO...",
        [],
        stated(),
    ]

    assert violations_of(*right) == [[]] * len(right)


WRONG = [
    (stated("ON"), "AREA: no code 'ON' in SHOP:SALES: did you mean 'NO' (North)?"),
    (stated("no"), "AREA: no code 'no' in SHOP:SALES: did you mean 'NO' (North)?"),
    (stated("NOR"), "AREA: no code 'NOR' in SHOP:SALES: did you mean 'NO' (North)?"),
    (stated("XYZ"), "AREA: no code 'XYZ' in SHOP:SALES: choose from 'NO', 'SO', 'EA', 'WE'"),
    (stated("Z", dimension="FREQUENCY"), "FREQUENCY: no code 'Z' in SHOP:SALES: choose from 'A', 'M'"),
    (stated({"id": "NX", "name": "East"}), "AREA: no code 'NX' in SHOP:SALES: did you mean 'EA' (East)?"),
    (stated({"id": "XYZ", "name": "Esat"}), "AREA: no code 'XYZ' in SHOP:SALES: did you mean 'EA' (East)?"),
    (stated({"id": "NO", "name": "Nord"}), "AREA: 'NO' of SHOP:SALES is called 'North', not 'Nord'"),
    (stated({"name": "Nort"}), "AREA: no code of SHOP:SALES is called 'Nort': did you mean 'NO' (North)?"),
    (stated("NO", dimension="AERA"), "no dimension 'AERA' in SHOP:SALES: did you mean 'AREA'?"),
    (
        stated("NO", dimension="COLOUR"),
        "no dimension 'COLOUR' in SHOP:SALES: choose from 'AREA', 'GOODS', 'FREQUENCY', 'REMARK'",
    ),
    (stated("NO", dataset="SHOP:SALE"), "no dataset 'SHOP:SALE': did you mean 'SHOP:SALES'?"),
    (stated("NO", dataset="SALES"), "no dataset 'SALES': did you mean 'SHOP:SALES'?"),
    (stated("NO", dataset="X:Y(1)"), "no dataset 'X:Y(1)': choose from 'SHOP:SALES'"),
    (stated("a\x1b[2J\nb"), "AREA: no code 'a\\x1b[2J b' in SHOP:SALES: choose from 'NO', 'SO', 'EA', 'WE'"),
]


def test_what_the_structure_has_not_is_told_with_the_nearest_that_it_has():
    found = violations_of(*(selection for selection, _ in WRONG))

    assert found == [[sentence] for _, sentence in WRONG]


def test_each_term_has_its_sentence_up_to_fifty_and_long_texts_are_cut():
    several = stated("NO", "X1", "X2", "SO") + stated("X3", dimension="GOODS")
    many = stated(*(f"X{number}" for number in range(10_000)))
    long = stated("x" * 100_000, dataset="y" * 100_000)

    of_several, of_many, (of_long,) = violations_of(several, many, long)

    assert [sentence.partition(" in ")[0] for sentence in of_several] == [
        "AREA: no code 'X1'",
        "AREA: no code 'X2'",
        "GOODS: no code 'X3'",
    ]
    assert (len(of_many), of_many[-1]) == (51, "and 9,950 more")
    assert len(of_long) < 200


@pytest.mark.parametrize(("count", "is_listed"), [(12, True), (13, False)])
def test_up_to_twelve_codes_are_listed(count, is_listed):
    codes = {"AREA": {f"{number:02}": "" for number in range(count)}}
    document = messages.structure_document([("SHOP", "SALES", "1.0", ("AREA",))], codes)
    file(json.dumps(document).encode(), "codes.json")

    ((sentence,),) = violations_of(stated("XYZ"), structure="codes.json")

    assert ("choose from '00', " in sentence) is is_listed


def test_the_nearest_word_is_found_among_many():
    codes = {"AREA": {f"C{number:05d}": "" for number in range(20_000)} | {"SALES_TOTAL": ""}}
    document = messages.structure_document([("SHOP", "SALES", "1.0", ("AREA",))], codes)
    file(json.dumps(document).encode(), "many.json")
    nearest = {
        "c12345": "C12345",
        "C1234": "C01234",
        "1C2345": "C12345",
        "C123456": "C12345",
        "sale_totl": "SALES_TOTAL",
        "X9999999": None,
        "C" * 100_000: None,
    }

    found = violations_of(*map(stated, nearest), structure="many.json")

    hints = [sentence.partition(": did you mean '")[2].removesuffix("'?") or None for (sentence,) in found]
    assert hints == [*nearest.values()]
