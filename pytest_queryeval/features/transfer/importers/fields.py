"""Finds the fields of records that contain the question, the right answer and the other keys of cases.

A field has the name of a key, a name that people use for the key, or the name that `--map` states. The name of a nested
field is dotted, as in `golden_sql.sqlite` or `messages.-1.content`; a text on the way is read as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.documents.strict_json import StrictJson
from pytest_queryeval.languages import KINDS
from pytest_queryeval.text.formatting import one_line

RecordFields: TypeAlias = Mapping[str, JsonValue]
MAX_DEPTH = 3  # of a nested field that is guessed
MAX_FIELDS = 300
MAX_JSON_TEXT = 200_000  # characters of a cell that is read as JSON
# Names of fields by key: the names of a group have equal right, those of an earlier group a better one.
NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "query_id", "qid", "instance_id", "case_id", "test_id", "uid", "_id"),
    "question": (
        "question",
        """natural_language_question natural_language_query natural_language natural_query nl_question nl_query nlq nl
        nl_prompt user_question user_query user_input utterance question_text corrected_question challenge_text""",
        "messages input_messages conversation conversations",
        "prompt input inputs query request instruction message text task",
    ),
    "evidence": ("evidence", "hint", "external_knowledge", "commonsense_knowledge", "instructions"),
    "difficulty": ("difficulty", "hardness"),
    "tags": ("tags", "categories", "category", "query_category"),
    "source": ("source", "db_id", "db_name", "database", "db", "db_used", "database_name", "kg_name"),
    "gold": (
        "gold",
        """gold_sql golden_sql gold_query golden_query gold_sparql expected_sql expected_query expected_sparql
        reference_sql reference_query ground_truth_sql ground_truth_query target_sql correct_sql answer_sql answer_query
        gold_query_text verified_sql right_sql right_query right_sparql""",
        "sql sparql sql_query sparql_query",
        "query",
        """solution answer expected_output expected_answer expected_response expected ground_truth reference output
        outputs expectations completion response label target""",
    ),
    **{key: (key,) for key in ("kind", "gold_any", "gold_table", "predicted", "skip", "allow_empty", "answerable")},
}
_GROUPS = {key: [group.split() for group in groups] for key, groups in NAMES.items()}
MESSAGE_FIELDS = (("role", "content"), ("from", "value"), ("type", "content"))
ANSWER_BEHIND = "-1.content"
_TEXT_LEAVES = ("string", "text", "content", "value", "en")
_WORD_END = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_START = r"\s*(?:(?:--|#)[^\n]*\n\s*|/\*(?:[^*]|\*(?!/))*\*/\s*|\(\s*)*+"
_QUERY = re.compile(_START + r"(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|WITH)\b", re.IGNORECASE)  # and few questions
_ANY_SQL = re.compile(
    _START + r"(?:SELECT|WITH|FROM|VALUES|TABLE|SHOW|DESCRIBE|EXPLAIN|PRAGMA|PIVOT|UNPIVOT|SUMMARIZE|CALL|EXEC|COPY|USE"
    r"|INSTALL|LOAD|ATTACH|DECLARE|SET|INSERT|UPDATE|DELETE|MERGE|REPLACE|CREATE|ALTER|DROP|TRUNCATE|BEGIN)\b",
    re.IGNORECASE,
)
_ANY_SPARQL = re.compile(_START + r"(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE|WITH)\b", re.IGNORECASE)
_ONLY_SPARQL = re.compile(
    _START
    + r"(?:(?:PREFIX|BASE|ASK|CONSTRUCT)\b|SELECT\b[^{]*?(?:[?$]\w[^{]*|\*\s*(?:FROM[^{]*>\s*)?(?:WHERE\s*)?)\{)",
    re.IGNORECASE,
)
_WORDS = {"sql": _ANY_SQL, "sparql": _ANY_SPARQL}
_HEAD = 2_000  # characters of a query that say what it is: patterns on a whole one could take quadratic time
_SELECT = re.compile(r"\bselect\b", re.IGNORECASE)
_JSON = StrictJson(allow_nan=True)
NOTHING: JsonValue = {}  # what `value_at` returns for a field that a record does not have, told by `is`


@dataclass(frozen=True, slots=True)
class Field:
    """The field of records that contains a key of cases."""

    name: str
    """The name of the field in records; dotted if it is nested."""
    is_guess: bool
    """Whether the field was guessed: neither does `--map` name it, nor has it the name of the key."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of records that contain the keys of cases."""

    by_key: Mapping[str, Field]
    kind: str | None = None
    """The kind of the cases; None if that is not known."""
    is_kind_guess: bool = False
    """Whether the kind was found from the right answers."""
    refused: frozenset[str] = frozenset()
    """The keys whose own name is that of a field with another content."""

    def name(self, key: str) -> str:
        """Return the name of the field for a key: by default the key itself.

        The name is empty if the field with the name of the key has another content.
        """
        field = self.by_key.get(key)
        return field.name if field else "" if key in self.refused else key


def fixed_fields(kind: str, **names: str) -> Fields:
    """Return the fields of a published format; `names` maps keys of cases to fields, and other keys have no field."""
    by_key = {key: Field(name, is_guess=False) for key, name in names.items()}
    return Fields(by_key, kind, refused=frozenset(NAMES))


def value_at(record: RecordFields, name: str) -> JsonValue:
    """Return the value of a field by its name, which may be dotted; `NOTHING` if the record lacks the field.

    Parts of the name are keys of objects or indices of lists. A text on the way that looks like JSON is read as JSON.
    """
    if name in record:
        return record[name]
    value: JsonValue = dict(record) if "." in name else {}
    rest = name
    while True:
        if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= MAX_JSON_TEXT:
            try:
                value = _JSON.read(value)
            except ValueError:
                return NOTHING
        if isinstance(value, dict) and rest in value:
            return value[rest]
        first, dot, after = rest.partition(".")
        if isinstance(value, dict):
            value = value.get(first, NOTHING)
        elif isinstance(value, list) and re.fullmatch(r"-?\d{1,6}", first):
            place = int(first)
            value = value[place] if -len(value) <= place < len(value) else NOTHING
        else:
            return NOTHING
        if value is NOTHING or not dot:
            return value
        rest = after


def is_no_query(text: str, kind: str) -> bool:
    """Return whether a text is plainly no query, such as `54` or `null`; False for kinds other than sql and sparql."""
    return kind in _WORDS and not _WORDS[kind].match(text[:_HEAD]) and not _SELECT.search(text)


def messages_of(value: JsonValue) -> list[tuple[str, str]] | None:
    """Return the role and the text of each message of a chat; None for another value and for an empty list.

    Other names of roles become `user` and `assistant`. The texts of a message with several parts are joined by line
    breaks.

    >>> messages_of([{"role": "user", "content": [{"type": "text", "text": "How many?"}]}])
    [('user', 'How many?')]
    """
    if not isinstance(value, list) or not value:
        return None
    messages = []
    for message in value:
        if not isinstance(message, dict):
            return None
        names = next((names for names in MESSAGE_FIELDS if all(name in message for name in names)), None)
        if names is None:
            return None
        role, content = (message[name] for name in names)
        parts = content if isinstance(content, list) else [content]
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        text = "\n".join(part for part in texts if isinstance(part, str))
        messages.append(({"human": "user", "gpt": "assistant", "ai": "assistant"}.get(str(role), str(role)), text))
    return messages


def guess_fields(sample: Sequence[RecordFields], stated: Mapping[str, str], kind: str | None = None) -> Fields:
    """Return the fields of keys, by what `--map` states and by the names of fields in some records.

    `kind` is the kind of the cases; without it, the right answers say whether it is sql or sparql. Raise
    `QueryEvalError` if several fields could be a key.
    """
    values = _values_by_field(sample)
    by_key = {key: Field(name, is_guess=False) for key, name in stated.items() if key != "metadata"}
    refused: set[str] = set()
    for key in NAMES:
        if key in by_key or (key == "gold" and stated.keys() & {"gold_any", "gold_table"}):
            continue
        taken = {field.name for field in by_key.values()}
        free_values = excluding(values, taken)
        name = _best_field(key, free_values, _TESTS.get(key, _is_anything))
        if not name and key == "gold":
            name = _best_field(key, free_values, _is_anything)
        if name:
            by_key[key] = Field(name, is_guess=name != key)
        elif key in values:
            refused.add(key)
    gold_name = by_key["gold"].name if "gold" in by_key else ""
    golds = [value for record in sample if (value := value_at(record, gold_name)) is not NOTHING]
    return Fields(
        by_key=MappingProxyType(by_key),
        kind=kind or _kind_of(golds) or ("sql" if "gold_table" in stated else None),
        is_kind_guess=kind is None,
        refused=frozenset(refused),
    )


def find_fields(sample: Sequence[RecordFields], stated: Mapping[str, str], kind: str | None = None) -> Fields:
    """Return the fields of keys as `guess_fields` does, then find missing keys by the values of fields.

    A field with queries becomes `gold`, and a field with questions `question`, if it is the only one. Right answers
    that are objects make the kind `json`. Raise `QueryEvalError` as `guess_fields` does.
    """
    fields = guess_fields(sample, stated, kind)
    found_in = dict.fromkeys(name for record in sample for name in record)
    values = {name: [record[name] for record in sample if record.get(name)] for name in found_in}
    by_key, found_kind = dict(fields.by_key), fields.kind
    if found_kind is None:
        record_golds = (value_at(record, fields.name("gold")) for record in sample)
        golds = [gold for gold in record_golds if gold not in (NOTHING, "", None)]
        if golds and all(map(_is_document, golds)):
            found_kind = "json"
        elif "gold" not in stated:
            by_key.pop("gold", None)  # unless nothing better is found
    for key, is_fit in _TOLD_BY_VALUES:
        if key in by_key or (key == "gold" and by_key.keys() & OTHER_GOLDS):
            continue
        taken = {field.name for field in by_key.values()}
        names = [
            name
            for name, found in values.items()
            if found
            and name not in taken
            # Not all rows are finished; a column of notes has a text in few of them.
            and 2 * sum(map(is_fit, found)) >= (len(found) if key == "gold" else len(sample))
        ]
        if len(names) == 1:
            by_key[key] = Field(names[0], is_guess=True)
    if found_kind is None and "gold" in by_key:
        found_kind = _kind_of(values.get(by_key["gold"].name, []))
    if found_kind is None and by_key.keys() & {"gold_any", "gold_table"}:
        found_kind = "sql"
    return replace(fields, by_key=MappingProxyType({**fields.by_key, **by_key}), kind=found_kind)


def has_named(key: str, names: Sequence[str]) -> bool:
    """Return whether one of the field names is a usual name for a key."""
    known = {name for group in _GROUPS[key] for name in group}
    return any(_plain_name(name) in known for name in names)


def _values_by_field(sample: Sequence[RecordFields]) -> dict[str, list[JsonValue]]:
    """Return the values of the fields of some records; nested fields have dotted names."""
    values: dict[str, list[JsonValue]] = {}
    for record in sample:
        for name, value in _leaves(record):
            if name in values or len(values) < MAX_FIELDS:
                values.setdefault(name, []).append(value)
    return values


def _leaves(record: RecordFields, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, JsonValue]]:
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, str) and value[:1] == "{" and len(value) <= MAX_JSON_TEXT:
            with suppress(ValueError):
                value = _JSON.read(value)
        if isinstance(value, dict) and value and depth < MAX_DEPTH:
            yield from _leaves(value, f"{name}.", depth + 1)
        if messages := messages_of(value):
            yield name, value
            if messages[-1][0] == "assistant":
                yield f"{name}.{ANSWER_BEHIND}", messages[-1][1]
        else:
            yield name, value


def _best_field(key: str, values: Mapping[str, list[JsonValue]], is_fit: Callable[[JsonValue], bool]) -> str:
    """Return the field whose name and values fit a key best; empty if none fits.

    `is_fit` says whether a value fits the key. Raise `QueryEvalError` if several fields fit equally well.
    """
    candidates: dict[tuple[int, int], list[str]] = {}
    for name, found in values.items():
        stated = [value for value in found if value not in (None, "", [])]
        if (
            stated
            and sum(map(is_fit, stated)) * 2 >= len(stated)
            and (rank := _name_rank(key, name, stated)) is not None
        ):
            candidates.setdefault((rank, name.count(".")), []).append(name)
    if not candidates:
        return ""
    names = candidates[min(candidates)]
    for name in names:
        if all(_covers(values[name], values[other]) for other in names):
            return name
    first, second = (one_line(name, 60) for name in names[:2])
    raise QueryEvalError(
        f"the {_MEANINGS.get(key, key)} could be '{first}' or '{second}': "
        f"choose one, --map {key}={first} or --map {key}={second}"
    )


def _name_rank(key: str, name: str, found: Sequence[JsonValue]) -> int | None:
    """Return how well the name of a field fits a key, 0 for the best names; None if it does not fit."""
    *path, leaf = name.split(".")
    if path and key not in ("question", "gold", "gold_table"):
        return None
    if key == "gold" and name.endswith(f".{ANSWER_BEHIND}"):
        return len(_GROUPS[key])
    for rank, group in enumerate(_GROUPS[key]):
        if _plain_name(leaf) in group:
            return rank
        if path and _plain_name(path[-1]) in group and (leaf in _TEXT_LEAVES or (key == "gold" and is_query(found[0]))):
            return rank
    return None


def _plain_name(name: str) -> str:
    """Return the name of a field in the spelling of `NAMES`: lower case, with underscores between words.

    >>> [_plain_name(name) for name in ("expectedOutput", "GOLD SQL", "Query ID", "_id", "SQL")]
    ['expected_output', 'gold_sql', 'query_id', '_id', 'sql']
    """
    return _WORD_END.sub("_", name.strip()).lower()


def _covers(found: Sequence[JsonValue], others: Sequence[JsonValue]) -> bool:
    """Return whether a field has in each record all values that another field has; a list counts as several values."""
    return len(found) == len(others) and all(
        {json.dumps(item) for item in _as_list(other)} <= {json.dumps(item) for item in _as_list(value)}
        for value, other in zip(found, others, strict=True)
    )


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _kind_of(golds: Sequence[JsonValue]) -> str | None:
    texts = [text for gold in golds for text in _as_list(gold) if isinstance(text, str) and text.strip()]
    queries = [text for text in texts if is_query(text)]
    if len(queries) * 2 < len(texts) or not queries:
        return None
    return "sparql" if sum(bool(_ONLY_SPARQL.match(text[:_HEAD])) for text in queries) * 2 > len(queries) else "sql"


def is_query(value: JsonValue) -> bool:
    """Return whether a value is a text that begins like a query, or a list whose first item is such a text."""
    texts = _as_list(value)
    return bool(texts) and isinstance(texts[0], str) and bool(_QUERY.match(texts[0][:_HEAD]))


def _is_document(value: JsonValue) -> bool:
    """Return whether a right answer is an object or a list of objects, or a text that begins like their JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.lstrip("[ \n").startswith("{")


def _is_question(value: JsonValue) -> bool:
    return (isinstance(value, str) and not is_query(value)) or messages_of(value) is not None


def _is_anything(value: JsonValue) -> bool:
    return True


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str | int)


_TESTS: Mapping[str, Callable[[JsonValue], bool]] = {
    "question": _is_question,
    "gold": is_query,
    **dict.fromkeys(("id", "source", "difficulty", "evidence", "skip"), _is_text),
    "tags": lambda value: all(isinstance(tag, str) for tag in _as_list(value)),
    "kind": lambda value: value in KINDS.names(),
}
OTHER_GOLDS = ("gold_any", "gold_table", "answerable")
_QUESTION_WORDS = 3  # from which on a text may be a question
_TOLD_BY_VALUES: Sequence[tuple[str, Callable[[JsonValue], bool]]] = (
    ("gold", is_query),
    ("question", lambda value: isinstance(value, str) and value.rstrip().endswith("?")),
    ("question", lambda value: _is_question(value) and len(str(value).split()) >= _QUESTION_WORDS),
)
_MEANINGS = {"gold": "right answer"}
