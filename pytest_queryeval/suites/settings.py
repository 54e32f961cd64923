"""The keys of a mapping at its level, and the settings that cases share: how folder, file and case combine."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from pytest_queryeval.core.errors import CaseError, QueryEvalError, SuiteError, nearest
from pytest_queryeval.core.expectation import Expectation
from pytest_queryeval.core.gates import Gate
from pytest_queryeval.core.mappings import excluding, not_none
from pytest_queryeval.core.model import GOLD_CRITERIA, OWN_METRICS, Criterion, Settings, Threshold
from pytest_queryeval.core.table import ColumnTolerance, Policy
from pytest_queryeval.documents.document import Node, Problems, file_at
from pytest_queryeval.documents.values import entries, unexpected
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.engines.settings import VARIANTS
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.metrics import METRICS, applies_to
from pytest_queryeval.suites.answers import GOLD_FORMS, GOLD_SYNONYMS, PREDICTED_FORMS
from pytest_queryeval.suites.expectations import EXPECT, read_expectations
from pytest_queryeval.suites.keys import COMPARE, CORE_KEYS, KEYS, LEVELS, Level, filled_fields, has_documents
from pytest_queryeval.suites.metric_keys import read_gates
from pytest_queryeval.suites.sources import SchemaFile, resolved_source
from pytest_queryeval.suites.variables import MissingExtraError, check_required, load_env_file

FOLDER_FILE = "queryeval.yaml"
_NEARLY_FOLDER_FILE = re.compile(r"\.?queryeval\.ya?ml(\.txt)?", re.IGNORECASE)
# Names that other tools use for a key.
SYNONYMS = {
    **dict.fromkeys(("prediction", "actual", "output", "generated"), "predicted"),
    **dict.fromkeys(GOLD_SYNONYMS, "gold"),
    **dict.fromkeys(("db", "database", "connection", "endpoint"), "source"),
    **dict.fromkeys(("name", "key"), "id"),
    **dict.fromkeys(("input", "prompt", "utterance", "nl"), "question"),
    "hint": "evidence",
    "hardness": "difficulty",
    **dict.fromkeys(("model", "system"), "predictor"),
    **dict.fromkeys(("tests", "questions", "examples", "items", "tasks"), "cases"),
}
# Keys of other tools, by what to write instead.
_INSTEAD = {
    "dialect": "write `options: {sql: {dialect: NAME}}`",
    "tolerance": "write `compare: {numbers: {abs: 0.01}}`",
    **dict.fromkeys(("ordered", "order"), "write `compare: {row_order: strict}`"),
    **{
        name: f"write it under `predictor`, as in {{python: FILE.py:FUNCTION, {name}: 3}}"
        for name in ("concurrency", "retries")
    },
    **dict.fromkeys(
        ("extends", "include", "import"), f"shared settings belong in a {FOLDER_FILE}, which suites below it inherit"
    ),
    **dict.fromkeys(
        ("description", "title", "comment", "notes", "author", "version"), "write it as a comment, after `# `"
    ),
}
ORDERED_SET = (
    "`row_order: strict` has no effect next to `duplicates: ignore`, because a set has no order: remove one of the two"
)
_CLOSE = 0.85  # the share of equal characters from which a name counts as a misspelt key, whatever its words mean
# Keys that make a mapping a case.
CASE_KEYS = frozenset(("id", "question", "conversation", *GOLD_FORMS, *PREDICTED_FORMS))
Values: TypeAlias = Mapping[str, Any]


def read_keys(node: Node, level: Level, problems: Problems) -> dict[str, Any]:
    """Return the values of all valid keys of a mapping at its level.

    Problems of other keys are added to `problems`: unknown keys, keys of other levels, and invalid values. Raises
    `CaseError` only for a case that is no mapping.
    """
    values: dict[str, Any] = {}
    if level == "case" and not isinstance(node.value, dict) and not node.file.is_yaml:
        raise unexpected(node, 'an object, {"id": …, "gold": …}')
    for name, value in entries(node).items():
        try:
            key = KEYS.get(name)
        except QueryEvalError as error:  # of a feature or a package that cannot be imported
            problems.append(value.problem(str(error)))
            continue
        if key is None or level not in key.levels:
            problems.append(value.problem(_key_problem(name, level, entries(node).keys())))
            continue
        try:  # not by `problems.attempt`: None is a value here
            values[name] = key.read(value)
        except (CaseError, SuiteError) as error:
            problems.keep(error)
        except QueryEvalError as error:  # of a feature or a package that cannot be imported
            problems.append(value.problem(str(error)))
    return values


def intended_keys(node: Node, level: Level) -> set[str]:
    """Return the known keys that the unknown keys of a mapping probably stand for, with "" if some stand for none."""
    allowed = _allowed_at(level)
    return {_intended_key(name, level) for name in entries(node) if name not in allowed}


def _allowed_at(level: Level) -> list[str]:
    return [name for name, key in KEYS.available().items() if level in key.levels]


def _intended_key(name: str, level: Level) -> str:
    """Return the key of a level that an unknown name probably stands for, such as `gold` for `expected_sql`.

    Return an empty text if it stands for none.
    """
    allowed_keys = _allowed_at(level)
    if name.lower() in SYNONYMS and SYNONYMS[name.lower()] in allowed_keys:
        return SYNONYMS[name.lower()]
    if get_close_matches(name.lower(), allowed_keys, n=1, cutoff=_CLOSE):
        return nearest(name, allowed_keys)
    if name.lower() in _INSTEAD:
        return ""
    if synonyms := get_close_matches(name.lower(), SYNONYMS, n=1, cutoff=_CLOSE):
        intended_key = SYNONYMS[synonyms[0]]
        return intended_key if intended_key in allowed_keys else ""
    # The order of SYNONYMS decides: `generated_sql` is predicted, not gold. `model_name` is not an id.
    words = {*name.lower().split("_")} - {"name", "key"}
    intended_key = next((key for synonym, key in SYNONYMS.items() if {synonym, key} & words), "")
    return intended_key if intended_key in allowed_keys else nearest(name, allowed_keys)


def unread_key(header: str) -> str:
    """Return the key that the header of a column names or nearly names; empty if it names none."""
    name = _words(header)
    return name if name in KEYS else next(iter(get_close_matches(name, _allowed_at("case"), n=1, cutoff=_CLOSE)), "")


def _words(header: str) -> str:
    return re.sub(r"\W+", "_", header.strip().lower())


def likely_header(key: str, headers: Iterable[str]) -> str:
    """Return the header that probably stands for a key of cases; empty if none does."""
    names = {header: _words(header) for header in headers}
    exact = (header for header, name in names.items() if key in name.split("_"))
    return next(exact, "") or next((header for header, name in names.items() if _intended_key(name, "case") == key), "")


def _key_problem(name: str, level: Level, stated_keys: AbstractSet[str]) -> str:
    """Return the problem of a key that its level does not have; `stated_keys` are all keys of its mapping."""
    if name in KEYS:
        places = " or ".join(LEVELS[at] for at in KEYS[name].levels)
        return f"'{name}' is not allowed {LEVELS[level]}: it belongs {places}"
    intended = _intended_key(name, level)
    forms = next((forms for forms in (GOLD_FORMS, PREDICTED_FORMS) if intended in forms), (intended,))
    if rival := next((form for form in forms if form in stated_keys), ""):
        hint = f": remove it, because '{rival}' is there already"
        if rival in GOLD_FORMS and not stated_keys & PREDICTED_FORMS.keys():
            hint += "; if it is the prediction, rename it to 'predicted'"
    elif name.lower() in _INSTEAD:
        hint = f": {_INSTEAD[name.lower()]}"
    else:
        hint = f": did you mean '{intended}'?" if intended else ": remove it, or see docs/reference/suites.md"
    if name == "<<":
        hint = ": merge keys are not read: put shared settings into the file or its folder"
    elif name.split(maxsplit=1)[:1] in (["PREFIX"], ["prefix"]):
        hint = ": if it is a line of a query, write `gold: |` and indent all its lines below"
    elif " " in name:
        hint = ": within { } a comma ends a value: quote the value before it"
    return f"unknown key '{name}'{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder with a `queryeval.yaml`: its settings and gates."""

    path: Path
    values: Values
    """The values that cases below inherit; empty if `missing` is set."""
    gates: tuple[Gate, ...]
    missing: MissingExtraError | None = None
    """The extra that the folder requires and that is not installed: then only its gates are known."""


# The result of reading each folder: None if it has no settings.
FolderCache: TypeAlias = dict[Path, Folder | SuiteError | None]


@dataclass(frozen=True, kw_only=True)
class SuiteSettings:
    """The resolved settings that apply to a case, and values that are not in `Settings`."""

    settings: Settings
    tags: tuple[str, ...]
    db_schema: SchemaFile | None
    expectations: tuple[Expectation, ...]
    extra: Values
    """The values of keys that features and other packages add."""

    @cached_property
    def of_stated_predictions(self) -> Settings:
        """The settings of cases that state their prediction: one trial, and no predictor that is called."""
        predictor = self.settings.predictor
        is_inline = predictor is not None and predictor.kind == "inline"
        return replace(self.settings, predictor=predictor if is_inline else None, trials=1, stops_trials=False)


def folder_chain(folder: Path, root: Path, cache: FolderCache) -> tuple[Folder, ...]:
    """Return the folders with settings from `root` down to `folder`; only `folder` if it is not below `root`.

    Each folder is read once and kept in `cache`. Raises `SuiteError` with the problems of all their files, in each
    call, and `MissingExtraError` if a folder requires an extra that is not installed.
    """
    below = [path for path in (folder, *folder.parents) if path.is_relative_to(root)] or [folder]
    problems, folders = Problems(), []
    for path in reversed(below):
        if path not in cache:
            cache[path] = _read_folder(path)
        cache_entry = cache[path]
        if isinstance(cache_entry, SuiteError):
            problems.extend(cache_entry.problems)
        elif cache_entry is not None and cache_entry.missing is not None:
            raise cache_entry.missing.with_traceback(None)
        elif cache_entry is not None:
            folders.append(cache_entry)
    problems.raise_any()
    return tuple(folders)


def _read_folder(path: Path) -> Folder | SuiteError | None:
    file = file_at(path / FOLDER_FILE)
    with suppress(OSError):  # of a folder that may not be listed
        for name in sorted(entry.name for entry in path.iterdir()):
            if name != FOLDER_FILE and _NEARLY_FOLDER_FILE.fullmatch(name):
                return SuiteError([file_at(path / name).problem(f"is not read: rename it to {FOLDER_FILE}")])
    if not file.path.exists() and not file.path.is_symlink():
        return None
    problems = Problems()
    document = problems.attempt(read_yaml, file)
    values: dict[str, Any] = {}
    if document is not None and document.root is not None:
        problems.extend(document.problems)
        try:
            problems.attempt(check_required, document.root)
        except MissingExtraError as error:
            gates = entries(document.root).get("gates")
            return Folder(path=path, values={}, gates=read_gates(gates) if gates else (), missing=error)
        problems.attempt(load_env_file, document.root)
        values = problems.attempt(read_keys, document.root, "folder", problems) or {}
    if problems:
        return problems.error()
    return Folder(path=path, values=inherit_values({}, values, is_folder=True), gates=values.get("gates", ()))


def inherit_values(above: Values, level_values: Values, *, is_folder: bool = False) -> dict[str, Any]:
    """Return the values that apply below a level, from the values `above` it and its own `level_values`.

    Keys combine by their inheritance. Settings of `compare` for JSON answers are kept below `json`: in a folder those
    written there, in a suite or case of kind json all of them.
    """
    values = dict(above)
    for name, value in level_values.items():
        if name == "compare":
            of_kind = {} if is_folder or level_values.get("kind", above.get("kind")) != "json" else value
            of_json = {**values.get(name, {}).get("json", {}), **of_kind, **value.get("json", {})}
            value = {**value, "json": excluding(of_json, ["json"])}
        inheritance = KEYS[name].inheritance
        if inheritance == "merged":
            values[name] = {**values.get(name, {}), **value}
        elif inheritance == "added":
            values[name] = added(values.get(name, ()), value)
        elif inheritance == "by group":
            values[name] = (*values.get(name, ()), *value)
        elif inheritance == "nearest":
            values[name] = value
    return values


def unanswerable_values(values: Values) -> Values:
    """Return the values of a suite for its cases that no answer is right for, without empty thresholds.

    `{}` clears the thresholds of answers only.
    """
    return {**values, "thresholds": tuple(level for level in values.get("thresholds", ()) if level)}


def applicable_thresholds(
    levels: Iterable[Mapping[str, Threshold | None]], kind: Kind, *, criteria: Collection[Criterion]
) -> dict[str, Threshold]:
    """Return the thresholds of a case from those of its levels, the topmost first.

    Each group has those of the nearest level. A level without a metric of the group that scores the case keeps those
    above it, at last the kind's defaults. The metric of what a case states besides gold has a default of 1, and is a
    group by itself. `{}` clears all groups, and None removes one threshold.
    """
    defaults = {name: least for name, least in kind.default_thresholds.items() if METRICS[name].criterion in criteria}
    own = [name for criterion, name in OWN_METRICS.items() if criterion in criteria]
    defaults |= dict.fromkeys(own, 1.0)
    thresholds = {name: Threshold(minimum=least) for name, least in defaults.items()}
    for level in levels:
        limits = {name: limit for name, limit in level.items() if applies_to(name, kind.name, criteria=criteria)}
        stated = not_none(limits)
        replaced_groups = {METRICS[name].group for name in stated if name not in own}
        kept = {
            name: limit
            for name, limit in thresholds.items()
            if level and (METRICS[name].group not in replaced_groups or name in own)
        }
        thresholds = excluding(kept, limits) | stated
    return thresholds


def added(above_words: tuple[str, ...], level_words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of both levels in this order, without repetition."""
    return tuple(dict.fromkeys(above_words + level_words))


def resolve(values: Values, *, criteria: Collection[Criterion] = GOLD_CRITERIA) -> SuiteSettings:
    """Return the settings of a case with these criteria from its values, which include a kind.

    Raises `CaseError` for an unknown source, and `CaseError` or `SuiteError` for expectations that cannot be read.
    """
    kind = KINDS[values["kind"]]
    values = {name: value for name, value in values.items() if KEYS[name].used_by(kind)}
    compare = values.get("compare", {})
    compare = compare.get("json", {}) if has_documents(kind) else compare
    compare = {name: value for name, value in compare.items() if name not in COMPARE or COMPARE[name].used_by(kind)}
    is_scored_by = partial(applies_to, kind=kind.name, criteria=criteria)
    source, gold_source = (
        resolved_source(values[key], values.get("sources", {})) if key in values else None
        for key in ("source", "gold_source")
    )
    if source is not None and gold_source is not None and source.key == gold_source.key:
        gold_source = None
    metrics = kind.default_metrics
    if source is not None and gold_source is None and VARIANTS in source.settings:
        metrics = (*metrics, "test_suite_accuracy")
    metrics = tuple(name for name in values.get("metrics", metrics) if is_scored_by(name))
    own_metrics = tuple(name for criterion, name in OWN_METRICS.items() if criterion in criteria)
    metrics = (*metrics, *own_metrics) if "gold" in criteria else (*own_metrics, *metrics)
    policy = with_compare(Policy(text_numbers=kind.text_numbers), compare)
    if policy.has_ordered_set:
        raise CaseError(compare["order_location"], ORDERED_SET)
    dialect = values.get("options", {}).get(kind.name, {}).get("dialect")
    if dialect is None and source is not None:
        dialect = ENGINES[source.engine].dialect(source.settings)
    settings = Settings(
        kind=kind.name,
        source=source,
        gold_source=gold_source,
        metrics=tuple(dict.fromkeys(metrics)),
        thresholds=applicable_thresholds(values.get("thresholds", ()), kind, criteria=criteria),
        policy=policy,
        dialect=str(dialect or ""),
        gold_dialect="" if gold_source is None else ENGINES[gold_source.engine].dialect(gold_source.settings),
        gold_columns_location=compare.get("gold_columns_location"),
        **filled_fields(values),
    )
    return SuiteSettings(
        settings=settings,
        tags=values.get("tags", ()),
        db_schema=values.get("db_schema"),
        expectations=read_expectations(values.get(EXPECT, {}), kind) if "expect" in criteria else (),
        extra={name: value for name, value in values.items() if name not in CORE_KEYS and not KEYS[name].change},
    )


def with_compare(policy: Policy, compare: Values) -> Policy:
    """Return a policy in which values of the key `compare` replace its own.

    Tolerances by column and the settings of JSON answers are converted to fields of the policy.
    """
    fields = {**({"extra_columns": "allow"} if compare.get("gold_columns") else {}), **compare}
    fields |= fields.pop("json", {})
    column_limits = fields.pop("column_numbers", {})
    for place in ("gold_columns_location", "order_location"):
        fields.pop(place, None)
    policy = replace(policy, **fields)
    tolerances = [
        ColumnTolerance(name, limits.get("rel", policy.rel), limits.get("abs", policy.abs))
        for name, limits in column_limits.items()
    ]
    return replace(policy, column_numbers=tuple(tolerances) or policy.column_numbers)
