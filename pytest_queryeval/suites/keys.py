"""Every key of suite files and settings: its levels, its inheritance, its reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_queryeval.core.errors import (
    CHECK_RULES,
    Location,
    did_you_mean,
)
from pytest_queryeval.core.groups import PYTEST_MARKERS, as_marker
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import MAX_TRIALS, Case, TrialsRule
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.shapes import (
    NON_BLANK,
    TEXT,
    Shape,
    either,
    enum_shape,
    list_shape,
    mapping_shape,
    shape,
    shape_of,
)
from pytest_queryeval.core.table import FrozenMapping, Table
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import (
    Reader,
    Readers,
    choice,
    each_entry,
    entries,
    entries_of,
    flag,
    flag_hint,
    json_mapping,
    known_entries,
    list_of,
    mapping_of,
    number_from_zero,
    number_within,
    or_else,
    positive_number,
    reason,
    required_text,
    scalar,
    text,
    unexpected,
    whole_number,
    whole_text,
)
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.suites.answers import GOLD_FORMS, PREDICTED_FORMS, read_messages
from pytest_queryeval.suites.case_tables import CASE_TABLE_SHAPE
from pytest_queryeval.suites.expectations import EXPECT, read_expect
from pytest_queryeval.suites.metric_keys import (
    read_gates,
    read_metrics,
    read_options,
    read_thresholds,
)
from pytest_queryeval.suites.parameters import NOT_IN_IDS, PARAMETRIZE, read_combination
from pytest_queryeval.suites.predictors import read_predictor
from pytest_queryeval.suites.scope_key import read_scope
from pytest_queryeval.suites.sources import read_db_schema, read_gold_source, read_source, read_sources
from pytest_queryeval.suites.variables import ENV_FILE, read_env_file, read_requires

Level: TypeAlias = Literal["folder", "file", "case"]
Inheritance: TypeAlias = Literal["nearest", "merged", "added", "by group", "own"]

LEVELS: Mapping[Level, str] = {
    "folder": "in a folder's queryeval.yaml",
    "file": "at the top of a suite file",
    "case": "in a case",
}

# `editor_schema` defines what a case is.
_CASES_SHAPE = either({**list_shape({"$ref": "#/definitions/case"}), "minItems": 1}, TEXT, CASE_TABLE_SHAPE)
_MARKER = re.compile(r"[^\W_][\w-]*|-[\w-]*")
# Excludes only ASCII characters: not all editors know which other characters are letters.
_ID_SHAPE: Shape = {**TEXT, "pattern": r"^(?!.*::)[^\s!-,;-@\[-^`{-~]+$"}
_RATE = re.compile(r"0?\.\d+|1(\.0*)?")

_MARKER_SHAPE: Shape = {
    "type": ["string", "integer", "boolean", "null"],
    "pattern": r"^(?!_)[^\s!-,./:-@\[-^`{-~]+$",
    "not": enum_shape(PYTEST_MARKERS),
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of suite files or folder settings: where it is allowed, how it is read, and what it affects."""

    name: str
    levels: tuple[Level, ...]
    description: str
    """What editors show about it."""
    read: Reader[Any]
    """Reads its value; editors describe, complete and check values by its shape."""
    _: KW_ONLY
    inheritance: Inheritance = "nearest"
    """`merged` and `added` combine the values of all levels; of `by group`, each group of metrics has its nearest
    level. Else the nearest level's value applies."""
    fills: tuple[str, ...] = ()
    """The fields of `Settings`, or of `Case` for a key of cases alone, that its value has, several values if there are
    several; fields have the defaults. Empty if other values are needed, too, and for keys outside the core."""
    used_by: Callable[[Kind], bool] = lambda _: True
    """Whether cases of a kind can use its value: where they cannot, they do not get it.

    A case or a suite of such a kind that states it is refused; in a folder `queryeval check` reports it.
    """
    idle: Callable[[Case, Collection[str]], str] = lambda *_: ""
    """Returns why a case of a kind that can use its value does not, as its suite stands; empty if it does.

    It is called with the case, and the names of the metrics that are computed. `queryeval check` reports it.
    """
    load: Callable[[Any], object] = lambda value: value
    """Converts the value that applies to a case to the one in `Case.extra`; only for keys outside the core.

    It may read files, and raises `CaseError`.
    """
    change: Callable[[Any, Any], Any] | None = None
    """Changes a suite that was read, by the value that applies to it: `(value, Suite) -> Suite`.

    Such a value is not in `Case.extra`. Only for inherited keys outside the core; it raises `CaseError` and
    `SuiteError`.
    """
    check_files: Callable[[Any], None] = lambda _: None
    """Raises `CaseError` for files that its value names and that do not exist; for runs and `queryeval check`."""
    change_case: Callable[[Any, Any], Any] | None = None
    """Changes a case by its value in `Case.extra`: `(value, Case) -> Case`; raises `CaseError`."""
    check: Callable[[Any, Any, Any], Iterable[str]] = lambda *_: ()
    """Yields messages about names in its value that the data does not have: `(value, Case, Schema) -> messages`."""


@shape(_ID_SHAPE)
def read_id(node: Node) -> str:
    """Return a case's id, which becomes a part of its node id.

    Raises `CaseError` for characters that it cannot have.
    """
    value = text(node)
    if node.empty or not value.strip():
        raise node.problem("a case needs an id: write it after `id:`")
    if node.form != "generated" and NOT_IN_IDS.search(value):
        hint = f": write {fit}" if (fit := NOT_IN_IDS.sub("-", value).strip("-")) else ""
        raise node.problem(f"id '{value}' must consist of letters, digits and - _ . : / without '::'{hint}")
    return value


@shape(_MARKER_SHAPE)
def read_marker(node: Node) -> str:
    """Return a tag or a difficulty, which becomes a marker of pytest; raises `CaseError` if it cannot be one."""
    value = text(node)
    if value in PYTEST_MARKERS:
        raise node.problem(f"'{value}' is a marker of pytest's own: choose another name")
    if not _MARKER.fullmatch(value):
        hint = f": write {fit}" if (fit := as_marker(value).strip("-")) else ""
        raise node.problem(
            f"'{value}' must consist of letters, digits, _ and -, and not start with _, to be a marker{hint}"
        )
    return value


@shape(lambda: enum_shape(KINDS.names()))
def read_kind(node: Node) -> str:
    """Return the name of a registered kind; raises `CaseError` for other names."""
    value = text(node)
    if value not in KINDS:
        raise node.problem(f"unknown kind '{value}'{KINDS.hint(value)}")
    return KINDS[value].name


_ON_MISS = choice("fail", "xfail")


@shape(shape_of(_ON_MISS))
def read_on_miss(node: Node) -> tuple[str, Location]:
    """Return the outcome of cases with missed thresholds, `fail` or `xfail`, and the location of the setting."""
    return _ON_MISS(node), node.location


@shape(lambda: shape_of(mapping_of(_COMPARE_READERS, {name: key.description for name, key in COMPARE.items()})))
def read_compare(node: Node) -> dict[str, Any]:
    """Return the comparison policy as fields of `Policy`, with the locations that messages need; raises `CaseError`.

    `numbers` becomes `rel`, `abs` and `column_numbers`.
    """
    if node.form == "mapping" and "column_order" in entries(node):
        remedy = "write `columns: by_name` if the order of columns does not matter"
        raise entries(node)["column_order"].problem(f"unknown key 'column_order': {remedy}")
    fields = known_entries(node, _COMPARE_READERS)
    fields.pop("nulls", None)
    if "gold_columns" in fields:
        fields["gold_columns_location"] = entries(node)["gold_columns"].location
    if "row_order" in fields or "duplicates" in fields:
        fields["order_location"] = node.location
    numbers = fields.pop("numbers", {})
    if "columns" in numbers:
        numbers["column_numbers"] = numbers.pop("columns")
    return {**numbers, **fields}


def _tolerance_reader(readers: Readers) -> Reader[dict[str, Any]]:
    """Return a reader of tolerances, which refuses a number alone because it could be absolute or relative."""

    @shape(lambda: shape_of(mapping_of(readers)))
    def read(node: Node) -> dict[str, Any]:
        if isinstance(node.value, str) and not node.empty:
            raise unexpected(node, "a mapping", f": write {{abs: {node.value}}} or {{rel: {node.value}}}")
        return known_entries(node, readers)

    return read


@shape(either({"type": "integer", "minimum": 0}, {"type": "string", "pattern": NON_BLANK}))
def _column(node: Node) -> str | int:
    """Return the name of a column, or its position from 0."""
    value = scalar(node)
    return whole_number(0)(node) if isinstance(value, int | float) else required_text(node)


@shape(mapping_shape({"ignore": mapping_shape(dict.fromkeys(CHECK_RULES, TEXT))}))
def read_check(node: Node) -> dict[str, str]:
    """Return the rules of `queryeval check` that are ignored, with the reasons."""
    settings: dict[str, dict[str, str]] = known_entries(node, {"ignore": _ignored_rules})
    return settings.get("ignore", {})


def _ignored_rules(node: Node) -> dict[str, str]:
    if node.form != "mapping":
        raise unexpected(node, "{RULE: REASON}", ": write {limit-tie: REASON}")
    return each_entry(node, _ignored)


def _ignored(rule: str, node: Node) -> str:
    if rule not in CHECK_RULES:
        raise node.problem(f"unknown rule '{rule}'{did_you_mean(rule, CHECK_RULES)}")
    if node.empty or not text(node).strip() or flag_hint(text(node)):
        raise node.problem(f"'{rule}' is ignored without a reason: write {{{rule}: REASON}}")
    return text(node)


class Trials(NamedTuple):
    """How often the predictor is called for a case."""

    number: int
    stops: bool = False
    """Whether fewer trials are enough once they decide on the case."""


TRIALS: Readers = {"max": whole_number(2, MAX_TRIALS), "stop": choice("decided")}


@shape(either(shape_of(whole_number(1, MAX_TRIALS)), {**shape_of(mapping_of(TRIALS)), "required": [*TRIALS]}))
def read_trials(node: Node) -> Trials:
    """Return a number of trials, or the largest number of `{max: N, stop: decided}`."""
    if not isinstance(node.value, dict):
        return Trials(whole_number(1, MAX_TRIALS)(node))
    settings = known_entries(node, TRIALS)
    if settings.keys() != TRIALS.keys():
        raise node.problem("expected a whole number, or both keys, such as {max: 10, stop: decided}")
    return Trials(settings["max"], stops=True)


_rate = number_within(
    "a number above 0 and at most 1",
    lambda rate: f": write {rate / 100:g}" if 10 <= rate <= 100 else "",
    exclusiveMinimum=0,
    maximum=1,
)


@shape(either(enum_shape(("mean", "all", "any")), mapping_shape({"rate": shape_of(_rate)}, required=["rate"])))
def read_trials_rule(node: Node) -> TrialsRule:
    """Return `mean`, `all`, `any`, or the minimum share of trials that pass, from `{rate: R}`."""
    if node.value in ("mean", "all", "any"):
        return node.value  # type: ignore[return-value]  # one of them
    rate = known_entries(node, {"rate": _rate}).get("rate") if isinstance(node.value, dict) else None
    if rate is None:
        is_rate = isinstance(node.value, str) and _RATE.fullmatch(node.value)
        hint = f": write {{rate: {node.value}}}" if is_rate else ""
        raise unexpected(node, "mean, all, any or {rate: R} with R above 0 and at most 1", hint)
    return float(rate)


# A share below 1: at 1, any two numbers of one sign are equal.
_relative_tolerance = number_within(
    "a number from 0 to below 1",
    lambda tolerance: f": write {tolerance / 100:g}" if 1 <= tolerance < 100 else "",
    minimum=0,
    exclusiveMaximum=1,
)


TOLERANCE: Mapping[str, Reader[float]] = {"rel": _relative_tolerance, "abs": number_from_zero}
NUMBERS: Readers = {**TOLERANCE, "columns": entries_of(_tolerance_reader(TOLERANCE))}


def has_tables(kind: Kind) -> bool:
    """Return whether answers of a kind are tables."""
    return issubclass(kind.answer_type, Table)


def has_documents(kind: Kind) -> bool:
    """Return whether answers of a kind are JSON documents."""
    return issubclass(kind.answer_type, JsonAnswer)


def is_compared(kind: Kind) -> bool:
    """Return whether answers of a kind are compared by `compare` settings: tables and JSON documents."""
    return has_tables(kind) or has_documents(kind)


def has_queries(kind: Kind) -> bool:
    """Return whether the kind has queries that sources run."""
    return kind.has_queries


class CompareKey(NamedTuple):
    """A key below `compare`."""

    description: str
    """What editors show about it; docs/reference/suites.md has the details."""
    read: Reader[Any]
    used_by: Callable[[Kind], bool] = has_tables
    """As of a `Key`."""


@shape(either(enum_shape(("ordered", "any")), mapping_shape({"by": TEXT}, required=["by"])))
def _lists(node: Node) -> str | FrozenMapping:
    """Return `ordered`, `any`, or the mapping `{by: NAME}`; raises `CaseError` for other values."""
    if node.value in ("ordered", "any"):
        return text(node)
    name = known_entries(node, {"by": required_text}).get("by") if isinstance(node.value, dict) else None
    if name is None:
        raise unexpected(node, "ordered, any or {by: NAME}")
    return FrozenMapping({"by": name})


_PATH_SHAPE: Shape = {"type": "string", "pattern": r"^\$"}


@shape(_PATH_SHAPE)
def _path(node: Node) -> str:
    """Return a JSONPath to a part of the document; raises `CaseError` for the whole document and invalid paths."""
    value = required_text(node)
    _check_path(value, node)
    if value == "$":
        raise node.problem("`$` is the whole answer: name a part of it")
    return value


def _check_path(path: str, node: Node) -> None:
    from pytest_queryeval.documents.json_path import segments

    try:
        segments(path)
    except ValueError as error:
        raise node.problem(str(error)) from error


_CASE = CompareKey("ignore: upper and lower case are equal; default: keep", choice("keep", "ignore"), is_compared)
_WHITESPACE = CompareKey(
    "ignore: runs of white space equal one space, and none at the ends; default: keep",
    choice("keep", "ignore"),
    is_compared,
)
# What values of JSON answers may have of their own, below a path.
_OF_VALUES: Mapping[str, CompareKey] = {
    "numbers": CompareKey("the tolerance of numbers; default: none", _tolerance_reader(TOLERANCE), has_documents),
    "case": _CASE,
    "whitespace": _WHITESPACE,
    "lists": CompareKey(
        "the order of elements: ordered (default), any, or {by: NAME}, where this member identifies an element",
        _lists,
        has_documents,
    ),
    "extra_keys": CompareKey(
        "allow: the predicted answer may have extra keys; default: reject",
        choice("reject", "allow"),
        has_documents,
    ),
}
_VALUE_READERS: Readers = {name: key.read for name, key in _OF_VALUES.items()}


@shape(lambda: {"type": "object", "additionalProperties": shape_of(mapping_of(_VALUE_READERS))})
def _paths(node: Node) -> FrozenMapping:
    """Return settings by JSONPath; raises `CaseError` for invalid paths."""

    def read(path: str, value: Node) -> FrozenMapping:
        _check_path(path, value)
        fields: dict[Any, Any] = known_entries(value, _VALUE_READERS)
        if "numbers" in fields:
            fields |= {"abs": 0.0, "rel": 0.0} | fields.pop("numbers")
        return FrozenMapping(fields)

    settings: dict[Any, Any] = each_entry(node, read)
    return FrozenMapping(settings)


_OF_DOCUMENTS: Mapping[str, CompareKey] = {
    **_OF_VALUES,
    "ignore": CompareKey("the JSONPaths of what does not count", or_else((), list_of(_path)), has_documents),
    "paths": CompareKey("by JSONPath, other settings for a value and all below it", _paths, has_documents),
}
_DOCUMENT_READERS: Readers = {name: key.read for name, key in _OF_DOCUMENTS.items()}


@shape(lambda: shape_of(mapping_of(_DOCUMENT_READERS, {name: key.description for name, key in _OF_DOCUMENTS.items()})))
def _json_compare(node: Node) -> dict[str, Any]:
    fields = known_entries(node, _DOCUMENT_READERS)
    return {**fields.pop("numbers", {}), **fields}


COMPARE: Mapping[str, CompareKey] = {
    "numbers": CompareKey(
        "the tolerance: x equals y if |x - y| <= max(rel * max(|x|, |y|), abs); default: 1e-6, 1e-9 (floats)",
        _tolerance_reader(NUMBERS),
        is_compared,
    ),
    "text_numbers": CompareKey('true: the text "5" equals the number 5; default: false, for sparql true', flag),
    "case": _CASE,
    "whitespace": _WHITESPACE,
    "nulls": CompareKey("NULL equals NULL and nothing else", choice("equal")),
    "dates": CompareKey(
        "by_value (default): dates equal their ISO text, and times the same moment in another zone; midnight: a date "
        "also equals the timestamp at its midnight",
        choice("by_value", "midnight", "strict"),
    ),
    "duplicates": CompareKey("ignore: rows are a set; default: count", choice("count", "ignore")),
    "row_order": CompareKey(
        "whether the order of rows counts; auto (default): if the gold query orders them",
        choice("auto", "ignore", "strict"),
    ),
    "choices": CompareKey(
        "any (default): each answer that the gold query may return is right; first: only the one that it returned",
        choice("any", "first"),
        used_by=has_tables,
    ),
    "columns": CompareKey(
        "any (default): the best alignment; positional; by_name", choice("any", "positional", "by_name")
    ),
    "extra_columns": CompareKey(
        "allow: the predicted answer may have extra columns; default: reject", choice("reject", "allow")
    ),
    "gold_columns": CompareKey(
        "names or positions, from 0, of the columns of the gold answer that count; extra columns are allowed",
        list_of(_column),
    ),
    "rdf_terms": CompareKey(
        "value (default): literals are equal when their values are; strict: also datatype and language",
        choice("value", "strict"),
        used_by=lambda kind: has_tables(kind) and kind.name != "sql",
    ),
    **excluding(_OF_DOCUMENTS, ("numbers", "case", "whitespace")),
    "json": CompareKey("settings for cases of kind json, such as those below a folder", _json_compare, has_documents),
}
_COMPARE_READERS: Readers = {name: key.read for name, key in COMPARE.items()}
_ALL: tuple[Level, ...] = ("folder", "file", "case")
_SHARED: tuple[Level, ...] = ("folder", "file")


PREDICTED = "the suite gives the predictions"
NOTHING_RUNS = "no query runs"


def _setting(name: str, levels: tuple[Level, ...], description: str, read: Reader[Any], **facts: Any) -> Key:
    """Return an inherited key that fills the field of `Settings` with its name, unless `fills` names others."""
    return Key(name, levels, description, read, **{"fills": (name,), **facts})


def _of_case(name: str, description: str, read: Reader[Any], **facts: Any) -> Key:
    """Return a key of cases only that fills the field of `Case` with its name, unless `fills` names others."""
    return Key(name, ("case",), description, read, inheritance="own", **{"fills": (name,), **facts})


def _is_predicted(case: Case, _: Collection[str]) -> str:
    return PREDICTED if case.predicted is not None else ""


def _nothing_required(case: Case, _: Collection[str]) -> str:
    return "" if case.settings.thresholds else "no metric has a threshold"


def _has_gold_query(case: Case) -> bool:
    return any(gold.query is not None for gold in case.golds)


def _is_gold_source_unused(case: Case, _: Collection[str]) -> str:
    if not _has_gold_query(case):
        return "no gold is a query"
    return "" if case.settings.gold_source else "it is the same as `source`"


def _is_never_empty(case: Case, _: Collection[str]) -> str:
    if not case.golds:
        return "the case has no gold"
    has_rows = all(isinstance(gold.answer, Table) and gold.answer.rows for gold in case.golds)
    return "the gold answer has rows" if has_rows else ""


def _is_schema_unread(case: Case, computed: Collection[str]) -> str:
    names = computed if _has_gold_query(case) else ()  # metrics of texts read it
    is_read = case.predicted is None or any("schema" in METRICS[name].injected for name in names)
    return "" if is_read else f"{PREDICTED}, and no metric reads it"


def _as_written(of: Shape) -> Reader[Node]:
    """Return a reader that returns the node itself, for a value that another reader, such as the kind's, reads."""

    @shape(of)
    def read(node: Node) -> Node:
        return node

    return read


_FORM_DESCRIPTIONS = {
    "gold": "the right query; of the kinds json and sdmx the right answer",
    "gold_any": "several right queries or answers, of which the best one counts",
    "gold_table": "the right answer: {columns: [...], rows: [[...], ...]}",
    "gold_file": "a file with the right query or answer",
    "predicted": "what is scored instead of an answer of a predictor; {translate: gold}: the gold query, translated",
    "predicted_table": "the answer that is scored: {columns: [...], rows: [[...], ...]}",
    "predicted_file": "a file with the query or answer that is scored",
}
_KEYS = (
    Key("kind", _ALL, "the query language, or the form of answers", read_kind),
    Key(
        "source",
        _ALL,
        "where queries run: a name from `sources`, or a source in place",
        read_source,
        used_by=has_queries,
    ),
    Key(
        "gold_source",
        _ALL,
        "where gold queries run, if that is not `source`, such as the database before a migration",
        read_gold_source,
        used_by=has_queries,
        idle=_is_gold_source_unused,
    ),
    Key("sources", _SHARED, "sources by name", read_sources, inheritance="merged"),
    _setting(
        "predictor",
        _SHARED,
        "the system under test",
        read_predictor,
        idle=lambda case, _: "" if case.settings.predictor else PREDICTED,
    ),
    Key("metrics", _ALL, "the metrics to compute; default: those of the kind", read_metrics),
    _setting("options", _ALL, "options of metrics, or of all metrics of a kind", read_options, inheritance="merged"),
    Key(
        "thresholds",
        _ALL,
        "when a case passes: the least value of each metric, or {min, max}; null removes one, {} all",
        read_thresholds,
        inheritance="by group",
    ),
    _setting(
        "on_miss",
        _ALL,
        "the outcome of a missed threshold: with `xfail`, only gates and errors decide on the run",
        read_on_miss,
        fills=("on_miss", "on_miss_location"),
        idle=_nothing_required,
    ),
    Key(
        "compare",
        _ALL,
        "when cells, rows and columns are equal, or the values of JSON answers",
        read_compare,
        inheritance="merged",
        used_by=is_compared,
    ),
    _setting(
        "scope",
        _ALL,
        "what predicted queries may read: `tables`, `columns`, `deny` and `where`; it adds the metric in_scope",
        read_scope,
        used_by=lambda kind: kind.name == "sql",
    ),
    _setting(
        "check",
        _ALL,
        "the rules of `queryeval check` that are ignored, each with the reason: {ignore: {RULE: reason}}",
        read_check,
        inheritance="merged",
        fills=("ignored_rules",),
    ),
    _setting(
        "timeout",
        _ALL,
        "seconds that one query may take; default: 30",
        positive_number,
        idle=lambda case, _: "" if KINDS[case.settings.kind].uses_timeout(case) else NOTHING_RUNS,
    ),
    _setting(
        "max_rows",
        _ALL,
        "rows that one answer may have; default: 100,000",
        whole_number(1),
        used_by=has_queries,
        idle=lambda case, _: "" if case.runs_queries else NOTHING_RUNS,
    ),
    _setting(
        "trials",
        _ALL,
        "how often the predictor is called for one case; default: 1; {max: 10, stop: decided} stops early",
        read_trials,
        fills=("trials", "stops_trials"),
        idle=_is_predicted,
    ),
    _setting(
        "trials_rule",
        _ALL,
        "what decides on a case with several trials: `mean` (default), `all`, `any` or {rate: 0.8}",
        read_trials_rule,
        idle=lambda case, computed: _is_predicted(case, computed) or _nothing_required(case, computed),
    ),
    Key(
        "tags",
        _ALL,
        "markers of pytest, by which `-m` selects cases",
        or_else((), list_of(read_marker)),
        inheritance="added",
    ),
    Key(
        "requires",
        _SHARED,
        "extras of pytest-queryeval without which the suites are skipped",
        read_requires,
        inheritance="added",
    ),
    _setting("report_rows", _SHARED, "rows of each answer in reports; default: 20; 0 keeps data out", whole_number(0)),
    Key(
        ENV_FILE,
        ("folder",),
        "a file with variables for `${NAME}`, used where the environment does not set them",
        read_env_file,
        inheritance="own",
    ),
    Key("gates", ("folder",), "what all cases below the folder must reach together", read_gates, inheritance="own"),
    Key(
        "cases",
        ("file",),
        "a list of cases, a glob of files with one case or a list of cases each, or a table",
        _as_written(_CASES_SHAPE),
        inheritance="own",
    ),
    _of_case("id", "the name of the case, unique in its file: letters, digits and - _ . : /", read_id),
    _of_case(
        PARAMETRIZE,
        "the values of each {name} in the case: {year: [2023, 2024]}; there is a case for each combination",
        read_combination,
        fills=("combination", "parameters"),
    ),
    _of_case("question", "the question, which the predictor receives", or_else("", whole_text)),
    _of_case("evidence", "a hint that the predictor receives with the question", or_else("", whole_text)),
    _of_case("difficulty", "a marker, and a group in reports", or_else(None, read_marker)),
    _of_case("metadata", "values of your own, for predictors", or_else({}, json_mapping)),
    _of_case("skip", "the reason not to run the case, or true", reason("skipped in the suite")),
    _of_case(
        "xfail",
        "the reason why the case misses its thresholds, or true",
        reason("expected to fail in the suite"),
        idle=_nothing_required,
    ),
    _of_case(
        "allow_empty",
        "true: the gold answer is meant to have no rows",
        flag,
        used_by=has_tables,
        idle=_is_never_empty,
    ),
    _of_case("answerable", "false: no answer is right, so the system should abstain; such a case has no gold", flag),
    *(
        _of_case(name, _FORM_DESCRIPTIONS[name], _as_written(form), fills=())
        for name, form in {**GOLD_FORMS, **PREDICTED_FORMS}.items()
    ),
    Key(
        EXPECT,
        ("file", "case"),
        "what any right answer to the case, or to each turn of a conversation, has: {rows, columns, contains, values}",
        read_expect,
        inheritance="merged",
        used_by=has_tables,
        idle=lambda case, _: "" if case.answerable else "no answer is right",
    ),
    Key(
        "db_schema",
        _ALL,
        "a JSON file with the tables that queries are about, in the form of Spider's tables.json",
        read_db_schema,
        used_by=lambda kind: kind.has_queries and kind.name != "sparql",
        idle=_is_schema_unread,
    ),
    _of_case("conversation", "a list of messages; each one with a target is a case", read_messages),
)
KEYS: Registry[Key] = Registry("key", group="pytest_queryeval.keys", members={key.name: key for key in _KEYS})
CORE_KEYS = frozenset(key.name for key in _KEYS)


def filled_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Settings` or `Case` that the values of keys fill, by field name."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        names = KEYS[name].fills
        fields.update(zip(names, value if names[1:] else (value,), strict=False))
    return fields
