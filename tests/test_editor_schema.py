"""The schemas for editors: they accept what loads, and refuse mistakes that the loader refuses as well."""

import json
import random
import runpy
from pathlib import Path
from typing import Literal

import jsonschema_rs
import pytest
from editor_schemas import objections, read_yaml, schema
from suites import write
from yaml_tables import read_table

import pytest_queryeval
from pytest_queryeval import load_cases
from pytest_queryeval.core.errors import SuiteError, capture_error
from pytest_queryeval.core.metric import Metric, describe_metric
from pytest_queryeval.engines import ENGINES, EngineType
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS, PredictorType

# The schemas of the package have the members of all features.
pytestmark = [
    pytest.mark.feature(
        *("abstention", "command_predictor", "database_servers", "dbt", "duckdb", "embeddings", "http_engine"),
        *("http_predictor", "json", "scale", "sdmx", "sparql_endpoint"),
    ),
    pytest.mark.usefixtures("working_folder"),
]

ROOT = Path(__file__).parent.parent
PACKAGE = Path(pytest_queryeval.__file__).parent
SCHEMAS = ("suite", "settings")
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "example_suite").rglob("*queryeval.yaml"))
SUITE = {"kind": "kind: sql", "source": "source: a.db", "predictor": "predictor: inline"}
CASE = {"id": "id: a", "gold": "gold: SELECT 1", "predicted": "predicted: SELECT 1"}
WITHOUT = "without "
MISTAKES = read_table("editor_mistakes.yaml")
SUITE_SCHEMA, SETTINGS_SCHEMA = schema("suite"), schema("settings")
DEFINITIONS = SUITE_SCHEMA["definitions"] | SETTINGS_SCHEMA["definitions"]
CASE_KEYS = DEFINITIONS["case"]["else"]["else"]["properties"]
KEYS = {**SETTINGS_SCHEMA["properties"], **SUITE_SCHEMA["properties"], **CASE_KEYS}
GOLD_FORMS = ("gold", "gold_any", "gold_table", "gold_file")
PREDICTED_FORMS = ("predicted", "predicted_table", "predicted_file")


def written(level, line):
    """Write a suite, and settings next to it, with a line at a level; return the file that has it."""
    name = line.partition(":")[0].removeprefix(WITHOUT)
    lines = {"file": dict(SUITE), "case": dict(CASE), "folder": {}}
    for forms in (GOLD_FORMS, PREDICTED_FORMS):
        if name in forms and level == "case":
            del lines["case"][forms[0]]
    lines[level].pop(name, None)
    if not line.startswith(WITHOUT):
        lines[level][name] = line
    case = "\n    ".join(lines["case"].values())
    settings = write("\n".join(lines["folder"].values()), "queryeval.yaml")
    suite = write("\n".join([*lines["file"].values(), "cases:", f"  - {case}\n"]))
    return settings if level == "folder" else suite


def is_read():
    return not isinstance(capture_error(lambda: load_cases("s.queryeval.yaml"), SuiteError), SuiteError)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_in_the_package_is_up_to_date(name):
    stored = json.loads((PACKAGE / f"{name}.schema.json").read_text(encoding="utf-8"))

    assert schema(name) == stored, f"write it again: queryeval schema {name} > pytest_queryeval/{name}.schema.json"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_the_schema_accepts_every_file_of_the_example_suite(path, monkeypatch):
    monkeypatch.setattr(METRICS, "_members", dict(METRICS._members))
    runpy.run_path(str(ROOT / "example_suite/conftest.py"))

    assert objections(ROOT / path) == []


def test_a_case_with_a_conversation_has_its_own_keys():
    turns = "[{role: user, content: a, more: 5}, {role: assistant, content: , target: [{dataset_id: A}]}]"
    head = "kind: sdmx\npredictor: inline\ncases:\n  - {id: a, name: b, comments: [c], tags: [weo 2024, null], "
    right = write(f"{head}conversation: {turns}}}\n")

    assert objections(right) == []
    assert [case.id for case in load_cases(right, require_prediction=False)] == ["a.2"]
    for wrong in (
        f"conversation: {turns}, question: a",
        "conversation: [{role: user, content: a}]",
        "conversation: []",
    ):
        path = write(f"{head}{wrong}}}\n")
        assert objections(path)
        with pytest.raises(SuiteError):
            load_cases(path, require_prediction=False)


def test_the_suite_that_mistakes_are_put_into_is_right():
    suite = written("folder", "timeout: 5")

    assert objections(suite) == objections(Path("s.queryeval.yaml")) == []
    assert len(load_cases("s.queryeval.yaml")) == 1


@pytest.mark.parametrize("level", MISTAKES)
def test_schema_and_loader_refuse_a_mistake(level):
    accepted = [line for line in MISTAKES[level] if not objections(written(level, line)) or is_read()]

    assert accepted == []


VALUES = [
    *("", "~", "null", "x", "'5'", "5", "-1", "0", "1", "0.5", "1.5", "true", "'true'", "NO", "012", "12:30", "1e3"),
    *("[]", "['']", "[x]", "[[x]]", "[5]", "[null]", "[execution_accuracy]", "['recall[X]']", "{}", "{x: y}", "{x: 1}"),
    *("mean", "{rate: 0.5}", "fail", "sql", "a b", "é", "日本", "a::b", "a:b", "-a", "_a", "skip", "a/b.c", "¿"),
    *("{execution_accuracy: 1}", "{ves: {min: 7}}", "{'metadata[cost]': {max: 5}}", "{row_recall: {min: 0, max: 1}}"),
    *("{json: {at: $.a, depth: all}}", "{r_ves: {iterations: 5}}", "{execution_accuracy: {}}", "{sql: {dialect: x}}"),
    *("a.db", "http://localhost/sparql", "predict.py:predict", "answers.jsonl", "inline", "${X:-a.db}"),
    *("{sqlite: a.db}", "{sqlite: 2024}", "{sqlite: {script: a.sql}, version: 3}", "{rdf: [a.ttl], engine: rdflib}"),
    *("{rdf: a.ttl, graphs: {'http://a': b.ttl}, prefixes: [common, {a: 'http://a'}]}", "{a: {sqlite: a.db}}"),
    *("{endpoint: 'http://a/b', headers: {A: 5}, auth: {basic: 'a:b'}, verify: true}", "{sqlalchemy: 'sqlite://'}"),
    *("{python: 'a:b', concurrency: 2, timeout: 0.5, retries: 0}", "{command: [a, 5], send_schema: true}"),
    *("{command: {run: a b, mode: '${M:-lines}', env: {A: ''}}}", "{http: 'http://a/b'}", "{inline: }", "{hook: x}"),
    *("{http: {url: 'http://a', method: GET, params: {q: '{question}'}, answer: $.a}}", "{file: {path: a.csv}}"),
    *("{numbers: {rel: 0}, case: ignore, text_numbers: false}", "{file: a.json, db_id: b}", "{columns: [a], rows: []}"),
    *("[{metric: pass_rate, min: 1, where: {not: {tag: a}}}]", "[{max_regressions: 0, where: {kind: sql}}]"),
    *("{rows: 1, columns: [a, b]}", "{contains: [[1, x], {a: null}], columns: 2}", "{rows: {max: 0}}", "{rows: null}"),
    *("{values: {a: {min: 0, in: [1, x], matches: '.+'}, b: {not_null: true}}}", "{contains: []}", "{values: {a: {}}}"),
    *("{tables: [a, 'b.*'], deny: [c]}", "{where: {a: {b: 7}}, columns: {a: [b]}}"),
    *("[{no_regression: {metric: 'recall[X]', alpha: 0.01}}]", "[{role: user, content: null, target: x, more: y}]"),
]
READ_VALUES = {text: read_yaml(f"key: {text}\n")["key"] for text in VALUES}


def acceptor(shape):
    """A function that says whether a value has a shape."""
    return jsonschema_rs.Draft7Validator({"allOf": [shape], "definitions": DEFINITIONS}).is_valid


def level_of(name):
    return "case" if name in CASE_KEYS else "file" if name in SUITE_SCHEMA["properties"] else "folder"


def accepted_and_refused(name):
    """The texts of `VALUES` that the schema accepts for a key, and the others."""
    accepts = acceptor(KEYS[name])
    parts = [], []
    for text, value in READ_VALUES.items():
        parts[not accepts(value)].append(text)
    return parts


@pytest.mark.long
@pytest.mark.parametrize("name", KEYS)
def test_what_the_schema_refuses_for_a_key_is_not_read(name):
    _, refused = accepted_and_refused(name)

    read = []
    for text in random.Random(name).sample(refused, min(len(refused), 15)):
        written(level_of(name), f"{name}: {text}")
        read += [text] * is_read()

    assert refused
    assert read == []


SETTINGS = [
    pytest.param(validator, id=f"{member}-{name}")
    for registry in (ENGINES, PREDICTORS)
    for member in registry.available()
    for name, validator in (registry[member].settings or {}).items()
    if (member, name) not in (("rdf", "engine"), ("python", "target"), ("command", "run"))  # which are read elsewhere
]
SETTING_VALUES = [
    *(None, True, False, 0, 1, -1, 1.5, "", "x", "a b", "$.a", "$['a']", "http://x.org", "HTTP://x.org/a?b=c"),
    *("https://user@x.org:80/", "sqlite:///a.db", "postgresql+psycopg://u:p@h/d"),
    *("GET", "POST", "lines", "id", "allow"),
    *("{query}", "{question}", "q={query}&a=b", "union", "common", "rdflib", "question"),
    *([], ["x"], ["x", 5], [5], [None], ["http://x.org"], ["common", {"a": "http://a"}], ["oxigraph", "rdflib"]),
    *({}, {"a": "b"}, {"a": 1}, {"a": True}, {"a": None}, {"a": "$.b"}, {"http://a": "b.ttl"}, {"basic": "a:b"}),
    *({"basic": "a:b", "bearer": "c"}, {"a": ["{query}"]}, {"a": ""}),
]


@pytest.mark.parametrize("validator", SETTINGS)
def test_the_schema_accepts_whatever_the_validator_of_a_setting_accepts(validator):
    accepts = acceptor(validator.shape)

    assert [value for value in SETTING_VALUES if validator.accepts(value) and not accepts(value)] == []
    assert validator.shape
    assert accepts("${NAME}") or not validator.accepts("text")


@pytest.mark.parametrize(("name", "form"), [("id", "a{}b"), ("difficulty", "{}b")])
def test_the_patterns_of_ids_and_markers_know_the_same_ascii_signs_as_their_readers(name, form):
    texts = [form.format(chr(code)) for code in range(33, 127)]
    accepted = set(filter(acceptor(KEYS[name]), texts))

    read = set()
    for text in texts:
        written("case", f"{name}: {json.dumps(text)}")
        read |= {text} if is_read() else set()

    assert read == accepted
    assert len(accepted) > 60


def test_the_keys_are_those_of_the_contract_and_each_says_what_it_means_and_accepts():
    contract = (
        "env_file kind source gold_source sources predictor metrics options thresholds on_miss compare timeout "
        "max_rows trials trials_rule check tags requires reviews report_rows gates cases id parametrize question "
        "evidence difficulty metadata skip xfail allow_empty answerable gold gold_any gold_table gold_file predicted "
        "predicted_table predicted_file db_schema scope json_schema structure writes expect"
    )
    inner = (DEFINITIONS["compare"]["properties"], DEFINITIONS["gates"]["items"]["properties"])
    shapes = {name: DEFINITIONS[name] for name in KEYS} | inner[0] | inner[1]

    assert sorted(KEYS) == sorted(contract.split())
    assert [name for name, shape in shapes.items() if not shape.get("description")] == []
    assert [name for name, shape in shapes.items() if shape.keys() <= {"description"}] == []


def test_what_is_registered_is_in_the_schema(monkeypatch):
    def score(gold, predicted, *, level: int = 1):
        """Return a score."""

    class Lookup(type(KINDS["sql"])):
        name = "lookup"

    own = {
        METRICS: Metric(function=score, options=frozenset({"level"}), max_score=2),
        KINDS: Lookup(),
        ENGINES: EngineType(opener=lambda source, hosts: None),
        PREDICTORS: PredictorType(opener=lambda spec: None, text_setting="text"),
    }
    for registry, member in own.items():
        monkeypatch.setattr(registry, "_members", {**registry._members, "own": member})
    right = (
        "kind: own\nsource: {own: {any: thing}}\npredictor: {own: {any: thing}}\nmetrics: [own]\n"
        "thresholds: {own: 1.5}\noptions: {own: {}}\ncases: [{id: a, gold: x}]\n"
    )

    assert objections(write(right)) == []
    assert objections(write(right.replace("1.5", "2.5")))


def test_options_of_a_registered_metric_are_those_of_its_function(monkeypatch):
    def score(gold, predicted, *, level: int = 1, form: Literal["a", "b"] = "a", other: "Absent" = None):  # noqa: F821
        """Return a score."""

    monkeypatch.setattr(METRICS, "_members", {**METRICS._members, "own": describe_metric(score)})

    assert METRICS["own"].option_shapes() == {"level": {}, "form": {}, "other": {}}
    score.__annotations__.pop("other")
    assert METRICS["own"].option_shapes() == {"level": {"type": "integer"}, "form": {"enum": ["a", "b"]}, "other": {}}


# What the schema cannot see: which files, functions and extras there are, and whether a query suits its kind.
OUTSIDE = {
    *("kind", "source", "gold_source", "sources", "predictor", "requires", "cases", "conversation", "answerable"),
    *("db_schema", "json_schema", "structure", "reviews", "env_file", "writes", *GOLD_FORMS, *PREDICTED_FORMS),
    "parametrize",
}
# Nor how a number is written, which letters there are, what has an effect, and which words are no reasons.
UNSEEN = {"012", "1e3", "¿"}
UNTOLD = (
    *("has no effect", "expected true, false or a reason", "is ignored without a reason", "is for sdmx"),
    "dialect 'x'",
)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(KEYS.keys() - OUTSIDE))
def test_what_the_schema_accepts_for_a_key_is_read(name):
    accepted, _ = accepted_and_refused(name)
    tried = [text for text in accepted if text not in UNSEEN and "${" not in text]

    problems = []
    for text in tried:
        written(level_of(name), f"{name}: {text}")
        result = capture_error(lambda: load_cases("s.queryeval.yaml"), SuiteError)
        if isinstance(result, SuiteError):
            problems += [str(it) for it in result.problems if not any(map(it.problem.count, UNTOLD))]

    assert tried
    assert problems == []
