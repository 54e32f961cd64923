"""JSON Schemas: which answers keep them, what is wrong with their files, and answers that would never end."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from json_values import nested
from samples import make_case
from suites import load, problems

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.json_value import JsonAnswer, JsonSchema
from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.evaluation import Session, evaluate_case
from pytest_queryeval.languages import KINDS

pytestmark = pytest.mark.usefixtures("working_folder")

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
LITERALLY = r'correct it, or write "\\" before a character that is meant literally'
LIMIT = {
    "type": "object",
    "properties": {
        "query": {
            "type": "object",
            "properties": {"limit": {"type": "integer", "maximum": 100}, "from": {"type": "string"}},
            "required": ["limit"],
            "additionalProperties": False,
        }
    },
}
# A tree whose leaves are integers.
TREE = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "anyOf": [
                {"type": "integer"},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}},
                {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/tree"}]}},
            ]
        }
    },
}
UNANSWERABLE = {"id": "a", "answerable": False, "predicted": "1"}
EMPTY = QueryOrAnswer(answer=JsonAnswer({}))
CATASTROPHIC = {"type": "string", "pattern": "^(a+)+$"}


@pytest.fixture(scope="module")
def session():
    with Session() as session:
        yield session


@pytest.fixture
def server():
    """A server that would answer with a schema, and the paths that were asked for."""
    calls = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            calls.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", calls
    server.shutdown()
    thread.join()
    server.server_close()


def write(document, name="schema.json"):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")


def suite(schema):
    """A suite with this schema, and without a gold that has to keep it."""
    return json.dumps({"kind": "json", "json_schema": schema, "predictor": "inline", "cases": [UNANSWERABLE]})


def read(document, name="schema.json"):
    write(document, name)
    return named(name)


def named(name="schema.json", path="s.queryeval.yaml"):
    (case,) = load(suite(name), path)
    return case.extra["json_schema"]


def problem(document=None, name="schema.json"):
    """What is wrong with the schema, or with the one that is there."""
    if document is not None:
        write(document, name)
    (line,) = problems(suite(name))
    assert line.startswith("s.queryeval.yaml:1: ")
    return line.removeprefix("s.queryeval.yaml:1: ")


@pytest.fixture
def found(session):
    """A function that returns what is wrong with a prediction, found in a child; in a gold it is found in process."""

    def found(schema, answer, *, timeout=60.0, is_gold=True):
        schema = schema if isinstance(schema, JsonSchema) else read(schema)
        stated = QueryOrAnswer(answer=JsonAnswer(answer))
        settings = {"metrics": ("valid_query",), "thresholds": {}, "timeout": timeout}
        case = make_case(kind="json", golds=(EMPTY,), predicted=stated, extra={"json_schema": schema}, **settings)
        result = evaluate_case(case, session)
        violations = result.shown.predicted.error or result.shown.details.get("violations", ())
        if is_gold:
            assert gold_problem(stated, case).partition(": correct the gold")[0] == "".join(
                f"the gold answer breaks {schema.file.name}: {line}" for line in violations[:1]
            )
        return tuple(violations) if isinstance(violations, list) else violations

    return found


def gold_problem(gold, case):
    try:
        KINDS["json"].check_gold(gold, case)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("document", "keys", "hint"),
    [
        (
            {"name": "a", "strict": True, "schema": LIMIT},
            "name, strict, schema",
            "did you mean what is under `schema`?",
        ),
        ({"name": "a", "description": "b", "schema": LIMIT}, "name, schema", "did you mean what is under `schema`?"),
        (
            {"type": "json_schema", "json_schema": {"schema": LIMIT}},
            "json_schema",
            "did you mean what is under `json_schema.schema`?",
        ),
        ({"name": "a", "parameters": LIMIT}, "name, parameters", "did you mean what is under `parameters`?"),
        ({"propertys": {}}, "propertys", 'write a schema, such as {"type": "object"}'),
    ],
)
def test_what_is_around_a_schema_is_no_schema(document, keys, hint):
    message = f"schema.json: no key of it is a rule of JSON Schema, so any answer would do ({keys}): {hint}"

    assert problem(document) == message


@pytest.mark.parametrize("document", [{}, True, {"title": "anything"}, {"x-owner": "me", "enum": [1]}])
def test_schemas_that_allow_anything_on_purpose_or_have_keys_of_others_are_read(document):
    assert read(document).document == document


def test_a_schema_and_what_it_refers_to_may_be_yaml(found):
    write("type: object\nproperties: {a: {$ref: below/b.yml}}\n", "schema.yaml")
    write("{type: integer, minimum: 5}\n", "below/b.yml")

    schema = named("schema.yaml")

    assert found(schema, {"a": 5}) == ()
    assert found(schema, {"a": 4}) == ("$.a: 4 is less than the minimum of 5",)
    assert found(schema, {"a": None}) == ("$.a: null is not of type 'integer'",)


# Which answers keep a schema.


ROWS = {"items": {"properties": {"b": {"type": "null"}, "a c": {"minimum": 3}}}}
NULLS = {"prefixItems": [{}, {}, {"type": "null"}], "items": {"type": "null"}}
FILTERS = {"type": "object", "properties": {"limit": {"type": "integer"}}}
UNIQUE = {"uniqueItems": True}


@pytest.mark.parametrize(
    ("schema", "answer", "lines"),
    [
        # A line has place and reason, in the order of paths; items are ordered as numbers. There are ten at most.
        (
            ROWS,
            [{"b": 1, "a c": 2}] * 2,
            [
                *("$[0]['a c']: 2 is less than the minimum of 3", "$[0].b: 1 is not of type 'null'"),
                *("$[1]['a c']: 2 is less than the minimum of 3", "$[1].b: 1 is not of type 'null'"),
            ],
        ),
        (NULLS, [0] * 12, [f"$[{number}]: 0 is not of type 'null'" for number in range(2, 12)]),
        (
            {"additionalProperties": {"type": "string"}},
            {f"k{number:03}": 1 for number in reversed(range(500))},
            [f"$.k{number:03}: 1 is not of type 'string'" for number in range(10)],
        ),
        # Items are unique where no two are the same JSON value.
        (UNIQUE, [1, True, "1", [1], [True], None, {"a": 1}, {"a": True}], []),
        (UNIQUE, [0, 1, 1.0], ["$: items 1 and 2 are equal: 1.0"]),
        (UNIQUE, [[1, "a"], [True, "a"], [1, "a"]], ["$: items 0 and 2 are equal: [1, 'a']"]),
        (UNIQUE, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ["$: items 0 and 1 are equal: {'b': 2, 'a': 1}"]),
        # Of alternatives the one that was meant says where it breaks, or each says why, or two that fit are named.
        ({"oneOf": [{"type": "null"}, FILTERS]}, {"limit": "3"}, ["$.limit: '3' is not of type 'integer'"]),
        (
            {"anyOf": [{"type": "integer"}, {"maxLength": 1}]},
            "abc",
            ["$: 'abc' fits none of the 2 schemas: 'abc' is not of type 'integer', nor: 'abc' is too long"],
        ),
        (
            {"oneOf": [{"type": "null"}, {"type": "integer"}, {"minimum": 3}]},
            5,
            ["$: 5 fits more than one of the 3 schemas: 1 and 2"],
        ),
        ({"format": "date"}, "no date", []),  # formats are remarks, as the standard has them
    ],
)
def test_what_breaks_a_schema_is_said(found, schema, answer, lines):
    assert [*found(schema, answer)] == lines


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"$schema": DRAFT_4, "exclusiveMinimum": True, "minimum": 3}, 4, 3),
        ({"$schema": DRAFT_7, "items": [{"type": "integer"}], "additionalItems": False}, [1], [1, 2]),
        ({"$schema": DRAFT_7, "definitions": {"a": {"type": "null"}}, "$ref": "#/definitions/a"}, None, 1),
        ({"$schema": DRAFT_7, "dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
        (
            {"$schema": DRAFT_2019, "$recursiveAnchor": True, "items": {"$recursiveRef": "#"}, "type": "array"},
            [[]],
            [1],
        ),
        ({"$schema": DRAFT_2020, "prefixItems": [{"type": "integer"}], "items": False}, [1], [1, 2]),
        ({"prefixItems": [{"type": "integer"}], "items": False}, [1], [1, 2]),
        ({"$defs": {"a": {"$anchor": "x", "type": "null"}}, "$ref": "#x"}, None, 1),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
        ({"properties": {"a": {"$ref": DRAFT_2020}}}, {"a": {"type": "null"}}, {"a": {"type": 3}}),
        ({"$schema": DRAFT_4, "if": 1, "dependentSchemas": [2], "type": "integer"}, 1, "a"),
        (True, 1, None),
        (False, None, 1),
    ],
)
def test_each_draft_has_its_own_rules_and_the_default_is_2020(found, schema, good, bad):
    if schema is not False:
        assert found(schema, good) == ()
    if schema is not True:
        assert len(found(schema, bad)) == 1


@pytest.mark.parametrize(
    ("divisor", "number", "keeps"),
    [(0.01, 4.35, True), (0.01, 4.355, False), (3, 9, True), (3, 10, False), (0.1, 10**400, True), (0.1, 1e400, False)],
)
def test_multiples_are_exact_in_decimals(found, divisor, number, keeps):
    assert (found({"multipleOf": divisor}, number) == ()) is keeps


# Values of any size and kind, in messages and on the way to the child.


HOSTILE = [
    ("a" * 1_000_000, "$: '" + "a" * 60 + "…' is not of type 'boolean'"),
    ([[]] * 100_000, "$: [" + "[], " * 15 + "…] is not of type 'boolean'"),
    ({"a" * 100: 1}, "$: {'" + "a" * 45 + "…': 1} is not of type 'boolean'"),
    (10**3999, "$: a number of about 4000 digits is not of type 'boolean'"),
    (-(10**5000), "$: a number of about 5001 digits is not of type 'boolean'"),
    (2**64, "$: 18446744073709551616 is not of type 'boolean'"),
    (1e400, "$: inf is not of type 'boolean'"),
    ("\ud800", r"$: '\ud800' is not of type 'boolean'"),
    ("\x1b[31m##[error]\n", r"$: '\x1b[31m#\x23[error]\n' is not of type 'boolean'"),
]


@pytest.mark.long
@pytest.mark.parametrize(("answer", "line"), HOSTILE, ids=range(len(HOSTILE)))
def test_values_of_any_size_and_kind_make_short_messages(found, answer, line):
    assert found({"type": "boolean"}, answer) == (line,)


def test_keys_are_cut_and_harmless_and_many_are_not_all_named(found):
    for key in ("k" * 1_000_000, "\udfff\x1b]0;x\x07", "a\nb", "\u202e"):
        (line,) = found({"additionalProperties": {"additionalProperties": False}}, {key: {key: 1}})
        assert len(line) <= 300
        assert line.isprintable()

    (line,) = found({"additionalProperties": False}, {f"k{number}": 1 for number in range(100_000)})

    assert line.startswith("$: Additional properties are not allowed ('k0', 'k1', ")
    assert len(line) <= 300


# Untrusted answers.


def test_an_answer_of_many_megabytes_or_values_is_checked_in_one_pass(found):
    texts = ["x" * 1_000_000] * 5
    rows = [{"id": number, "tags": [number, True]} for number in range(10_000)]
    either = {"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]}

    assert found({"items": {"type": "string"}}, [*texts, 1]) == ("$[5]: 1 is not of type 'string'",)
    assert found({"uniqueItems": True}, [*rows, rows[7]], is_gold=False) == (
        "$: items 7 and 10000 are equal: {'id': 7, 'tags': [7, True]}",
    )
    assert found(either, [1] * 200_000, is_gold=False) == ("$[0]: 1 is not of type 'string'",)


def test_a_pattern_or_a_schema_that_never_ends_is_stopped_and_the_next_answer_is_checked(found):
    fork = {"anyOf": [{"$ref": "#/$defs/fork"}, {"$ref": "#/$defs/fork"}]}
    multiplied = {"$ref": "#/$defs/fork", "$defs": {"fork": {"type": "object", "additionalProperties": fork}}}
    deep = 1
    for _ in range(90):
        deep = {"a": deep}

    for schema, answer in ((CATASTROPHIC, "a" * 60 + "b"), (multiplied, deep)):
        late = found(schema, answer, timeout=0.3, is_gold=False)
        assert (late.kind, late.message) == ("timeout", "the check against schema.json: no answer within 0.3 s")
        assert found(CATASTROPHIC, "b") == ("$: 'b' does not match '^(a+)+$'",)


def test_a_hundred_levels_go_through_a_recursive_schema(found):
    for levels in (99, 100):
        assert found(TREE, nested(levels, 1)) == ()
        assert "'x' is not of type 'integer'" in found(TREE, nested(levels, "x"))[0]


def test_many_schemas_take_turns_in_one_child(found):
    schemas = [read({"const": number}, f"{number}.json") for number in range(18)]

    for _ in range(2):
        for number, schema in enumerate(schemas):
            assert found(schema, number) == ()
            assert len(found(schema, -1)) == 1


# References.


def test_a_schema_may_refer_to_files_below_its_folder(found):
    write({"$defs": {"limit": {"type": "integer", "maximum": 5}}}, "parts/common.json")
    write({"properties": {"limit": {"$ref": "../parts/common.json#/$defs/limit"}}}, "parts/query.json")
    write({"type": "null"}, "a b.json")
    schema = read({"properties": {"query": {"$ref": "./parts/query.json"}, "rest": {"$ref": "a%20b.json"}}})

    for answer, broken in (
        ({"query": {"limit": 3}, "rest": None}, ()),
        ({"query": {"limit": 9}}, ("$.query.limit: 9 is greater than the maximum of 5",)),
        ({"rest": 1}, ("$.rest: 1 is not of type 'null'",)),
    ):
        assert found(schema, answer) == broken


def test_files_stand_beside_a_schema_under_the_name_that_it_gives_itself(found):
    write({"$id": "https://example.com/schemas/part.json", "type": "integer"}, "part.json")
    absolute = {"$ref": "https://example.com/schemas/part.json"}
    schema = {"$id": "https://example.com/schemas/root.json", "items": [{"$ref": "part.json"}, absolute]}
    schema["$schema"] = DRAFT_7

    assert found(schema, [1, 2]) == ()
    assert found(schema, ["a", "b"]) == ("$[0]: 'a' is not of type 'integer'", "$[1]: 'b' is not of type 'integer'")


def test_files_may_refer_to_each_other(found):
    write({"$schema": DRAFT_2020, "prefixItems": [{"$ref": "schema.json"}, {"type": "null"}]}, "list.json")
    schema = {"type": ["array", "integer"], "$ref": "list.json"}

    assert found(schema, [[1, None], None]) == ()
    assert found(schema, [["x", None], 1]) == (
        "$[0][0]: 'x' is not of type 'array', 'integer'",
        "$[1]: 1 is not of type 'null'",
    )


def test_all_files_of_a_schema_are_of_one_draft(found):
    write({"$schema": DRAFT_7}, "part.json")

    assert (
        problem({"$ref": "part.json"}) == f"part.json: $schema '{DRAFT_7}' is not that of schema.json, '{DRAFT_2020}'"
    )
    assert found({"$schema": DRAFT_7, "items": {"$ref": "part.json"}}, [1]) == ()


@pytest.mark.parametrize(
    "reference", ["../other.json", "/etc/hostname", "file:///etc/hostname", "a/../../other.json", "%2e%2e/other.json"]
)
def test_what_is_not_below_the_folder_of_the_schema_is_no_part_of_it(reference):
    write({"$ref": reference}, "below/schema.json")
    write({}, "other.json")

    outside = f"`$ref` '{reference}' is neither in the schema nor a file below its folder, and nothing is fetched"
    assert problem(name="below/schema.json") == f"below/schema.json: {outside}"


def test_nothing_is_fetched_when_a_schema_is_read(server):
    url, requests = server

    for reference in (f"{url}/a.json", f"{url}/a.json#/$defs/a", f"//{url.partition('//')[2]}/a.json"):
        assert "nothing is fetched" in problem({"items": {"$ref": reference}})
        assert "nothing is fetched" in problem({"$id": "https://example.com/", "items": {"$ref": reference}})
    assert f"unknown $schema '{url}/meta'" in problem({"$schema": f"{url}/meta"})
    assert requests == []


def test_nothing_is_fetched_when_an_answer_is_checked(server, found):
    url, requests = server
    schema = JsonSchema(Path("schema.json"), {"$ref": f"{url}/a.json"})
    case = make_case(kind="json", extra={"json_schema": schema})

    with pytest.raises(SourceError, match=r"^the check against schema.json: .*Unresolvable"):
        KINDS["json"].check_gold(QueryOrAnswer(answer=JsonAnswer(1)), case)
    with pytest.raises(SourceError, match=r"^the check against schema.json: .*Unresolvable"):
        found(schema, 1)
    assert requests == []


# What can be wrong with a file.


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("", ":1:1: not JSON: a value is missing"),
        ("{", ":1:2: not JSON: it ends too early: add `}`"),
        ('{"a": 1, "a": 2}', ": duplicate key 'a': remove one"),
        ("[" * 200_000, ": nested deeper than 100 levels"),
        ("NaN", ": NaN is not JSON: write null"),
        ("5", ": a schema is an object, true or false"),
        ({"items": {"minLength": -1}}, ": $.items.minLength: -1 is less than the minimum of 0: correct the schema"),
        ({"$schema": DRAFT_4, "minLength": -1}, ": $.minLength: -1 is less than the minimum of 0: correct the schema"),
        ({"required": "a"}, ": $.required: 'a' is not of type 'array': correct the schema"),
        ({"$schema": DRAFT_7[:-2]}, f": unknown $schema '{DRAFT_7[:-2]}': did you mean '{DRAFT_7[:-1]}'?"),
        ({"$ref": "#/$defs/a"}, ": `$ref` '#/$defs/a' leads to nothing"),
        ({"$ref": "#a"}, ": `$ref` '#a' leads to nothing"),
        ({"$ref": "#/allOf/x", "allOf": [{}]}, ": `$ref` '#/allOf/x' leads to nothing"),
        ({"$ref": "http://["}, ": `$ref` 'http://[' leads to nothing"),
        ({"$ref": "#/enum/0", "enum": [3]}, ": a schema is an object, true or false"),
        (
            {"$ref": "#/x/a", "x": {"a": {"minimum": "3"}}},
            ": $.minimum: '3' is not of type 'number': correct the schema",
        ),
        ({"$ref": "#"}, ": `$ref` '#' leads back to itself without end"),
        ({"items": {"anyOf": [{"not": {"$ref": "#/items"}}]}}, ": `$ref` '#/items' leads back to itself without end"),
        ({"$dynamicAnchor": "a", "if": {"$dynamicRef": "#a"}}, ": `$dynamicRef` '#a' leads back to itself without end"),
        (
            {"pattern": "(?"},
            f": the pattern '(?' is invalid in Python: unexpected end of pattern at position 2: {LITERALLY}",
        ),
        (
            {"patternProperties": {"[": {}}},
            f": the pattern '[' is invalid in Python: unterminated character set at position 0: {LITERALLY}",
        ),
        (
            {"pattern": r"^\p{L}+$"},
            (
                r": the pattern '^\p{L}+$' is invalid in Python: bad escape \p at position 1: "
                r"for `\p{L}`, any letter, write `[^\W\d_]`"
            ),
        ),
    ],
)
def test_what_is_wrong_with_a_schema_is_said_where_it_is_named(document, expected):
    assert problem(document) == f"schema.json{expected}"


def test_what_is_wrong_with_a_file_beside_the_schema_names_that_file():
    write({"properties": {"a": {"type": "strng"}}}, "part.json")

    assert problem({"$ref": "part.json"}).startswith("part.json: $.properties.a.type: 'strng' is not one of ['array', ")
    assert problem({"allOf": [{"$ref": "deep.json"}]}).startswith("deep.json: no such file: correct the path, which")
    write({"$ref": "#/$defs/gone"}, "deep.json")
    write({"allOf": [{"$ref": "deep.json"}]}, "other.json")
    assert problem(name="other.json") == "deep.json: `$ref` '#/$defs/gone' leads to nothing"


def test_messages_about_large_schemas_are_short():
    assert len(problem({"required": "a" * 1_000_000})) < 200
    assert len(problem({"$ref": "#/" + "a" * 1_000_000})) <= 500


def test_a_file_is_found_from_where_it_is_named_and_read_once():
    write(LIMIT, "suites/schemas/query.json")

    first = named("schemas/query.json", "suites/a.queryeval.yaml")
    second = named("../schemas/query.json", "suites/below/b.queryeval.yaml")

    assert first is second
    assert (first.file, first.document) == (Path("suites/schemas/query.json"), LIMIT)


def test_a_file_that_has_changed_is_read_again():
    before = read({"const": 1})
    write({"const": 2})
    os.utime("schema.json", ns=(1, 1))

    assert (before.document, named().document) == ({"const": 1}, {"const": 2})


@pytest.mark.parametrize(
    ("name", "said"), [("", "expected text, found nothing"), ("gone.json", "no such file"), (".", "is not a file")]
)
def test_a_schema_without_a_file_is_a_problem(name, said):
    assert said in problem(name=name)
