"""Readers of gold and predicted, by the form that a case uses; its kind reads their values.

A conversation becomes one case for each turn that has a target, which is its gold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_queryeval.core.errors import nearest
from pytest_queryeval.core.groups import as_marker
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import Abstention, Criterion, GoldTranslation, Message, QueryOrAnswer
from pytest_queryeval.core.shapes import (
    ANYTHING,
    NOT_NULL,
    NULL,
    SCALAR,
    TEXT,
    Shape,
    either,
    list_shape,
    shape,
    shape_of,
)
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.tables import TableFile
from pytest_queryeval.documents.values import (
    choice,
    entries,
    flag,
    items,
    known_entries,
    or_else,
    read_each,
    required_text,
    text,
    whole_text,
)
from pytest_queryeval.languages import Kind
from pytest_queryeval.languages.stated_answers import TABLE_KEYS, read_table
from pytest_queryeval.predictors.answer import ABSTAINED, REASON
from pytest_queryeval.suites.expectations import EXPECT

_TABLE = shape_of(read_table)
# The shapes that each form accepts; the kind of the case reads the values.
# Names that other tools use for `gold`.
GOLD_SYNONYMS = ("expected", "reference", "solution", "ground_truth", "target", "sql", "query", "sparql", "answer")
GOLD_FORMS: Mapping[str, Shape] = {
    "gold": NOT_NULL,
    "gold_any": {**list_shape(NOT_NULL), "minItems": 1},
    "gold_table": _TABLE,
    "gold_file": TEXT,
}
PREDICTED_FORMS: Mapping[str, Shape] = {"predicted": NOT_NULL, "predicted_table": _TABLE, "predicted_file": TEXT}
TRANSLATE = "translate"
EMPTY_PREDICTED = 'leave it out, or write "" for an empty answer'
CONVERSATION = "conversation"
TARGET = "target"
TURN_KEYS = ("role", "content", TARGET)
ROLES = ("assistant", "developer", "system", "tool", "user")
# Keys of conversations that describe them, and become metadata of their cases.
DESCRIPTIVE = ("name", "comments")
# What only a case with a conversation accepts: keys that describe it, and any words as tags, which become markers.
ACCEPTED: Mapping[str, Shape] = {**dict.fromkeys(DESCRIPTIVE, ANYTHING), "tags": either(NULL, list_shape(SCALAR))}
REFUSED = (*GOLD_FORMS, *PREDICTED_FORMS, "question", "answerable")
# Keys of cases that all turns of a conversation share.
SHARED_BY_TURNS = (
    *(EXPECT, "scope", "compare", "metrics", "options", "thresholds", "on_miss", "xfail", "skip", "allow_empty"),
    *("timeout", "max_rows", "trials", "trials_rule"),
)
_TURN: Shape = {
    "type": "object",
    "properties": {"role": TEXT, "content": SCALAR},
    "required": ["role"],
    **either(
        {"required": ["content"]},
        {"required": [TARGET], "properties": {TARGET: TEXT, "role": {"not": {"const": "user"}}}},
    ),
}
_WITH_TARGET: Shape = {"required": [TARGET], "properties": {TARGET: NOT_NULL}}


def read_golds(case: Node, kind: Kind, *, criteria: Collection[Criterion]) -> tuple[QueryOrAnswer, ...]:
    """Return the right answers of a case; none if it is not answerable or not judged by gold.

    Raises `CaseError` unless the case has exactly one form of gold, with a valid value.
    """
    case_entries = entries(case)
    form = _only_form(case_entries, GOLD_FORMS)
    if "abstention" in criteria and (stated := form or (EXPECT if EXPECT in case_entries else "")):
        raise case_entries[stated].problem(
            f"'{stated}' next to `answerable: false`: no answer is right, remove one of them"
        )
    if "gold" not in criteria:
        return ()
    if form is None:
        if isinstance(case.file, TableFile):
            raise case.problem("no gold: fill the cell of `gold` or `gold_file`")
        expected = ", or `expect`" if kind.has_queries else ""
        raise case.problem(f"no gold: add `gold`, `gold_any`, `gold_table` or `gold_file`{expected}")
    node = case_entries[form]
    if form == "gold_any":
        if not items(node):
            raise node.problem("gold_any is empty")
        return tuple(read_each(items(node), lambda item: _read_one_of_several(item, kind)))
    if form == "gold_file":
        return (kind.read_file(node),)
    reader = {"gold": kind.read_gold, "gold_table": kind.read_table}[form]
    return (replace(reader(node), location=node.location),)


def _read_one_of_several(item: Node, kind: Kind) -> QueryOrAnswer:
    """Return an item of `gold_any`: the value of a `gold`, or of a `gold_file` if it is `{file: NAME}`."""
    if kind.has_queries and isinstance(item.value, dict) and list(item.value) == ["file"]:
        return kind.read_file(item.value["file"])
    return replace(kind.read_gold(item), location=item.location)


def read_predicted(case: Node, kind: Kind) -> QueryOrAnswer | Abstention | GoldTranslation | None:
    """Return the prediction that a case states; None if it states none. Raises `CaseError`.

    It is a query or an answer, an abstention, or the request to translate gold.
    """
    case_entries = entries(case)
    form = _only_form(case_entries, PREDICTED_FORMS)
    if form is None:
        return None
    node = case_entries[form]
    if node.empty:
        raise node.problem(f"'{form}' is null: {EMPTY_PREDICTED}")
    if isinstance(node.value, dict) and ABSTAINED in node.value and node.value.keys() <= {ABSTAINED, REASON}:
        fields = known_entries(node, {ABSTAINED: flag, REASON: or_else("", whole_text)})
        if fields[ABSTAINED]:
            return Abstention(fields.get(REASON, ""))
    if kind.has_queries and isinstance(node.value, dict) and TRANSLATE in node.value:
        known_entries(node, {TRANSLATE: choice("gold")})
        return GoldTranslation(location=node.location)
    if kind.has_queries and isinstance(node.value, dict):
        for name, entry in node.value.items():
            if name not in TABLE_KEYS and (near := nearest(name, (ABSTAINED, TRANSLATE))):
                raise entry.problem(f"unknown key '{name}': did you mean '{near}'?")
    readers = {"predicted": kind.read_predicted, "predicted_table": kind.read_table, "predicted_file": kind.read_file}
    return readers[form](node)


def _only_form(case_entries: Mapping[str, Node], forms: Iterable[str]) -> str | None:
    stated_forms = [form for form in forms if form in case_entries]
    if len(stated_forms) > 1:
        raise case_entries[stated_forms[1]].problem(
            f"{' and '.join(stated_forms)}: a case has only one of them: keep one"
        )
    return stated_forms[0] if stated_forms else None


def split_turns(case: Node) -> list[Node]:
    """Return the node itself, or for a conversation one case node for each turn that has a target.

    The id of such a case is that of the node with the number of the turn appended. Its gold is the target, its question
    the last message of the user, and its conversation all messages up to that question. A turn without content says its
    target, such as a query.

    Raises `CaseError` for a conversation without a target or with keys such as `gold`. Raises `SuiteError` with all
    turns that cannot be read.
    """
    if not isinstance(case.value, dict) or CONVERSATION not in case.value:
        return [case]
    case_entries = case.value
    conversation = case_entries[CONVERSATION]
    for form in REFUSED:
        if form in case_entries:
            raise case_entries[form].problem(f"'{form}' is not allowed in a conversation, whose turns have targets")
    read_messages(conversation)
    cases = list(_turns(case, items(conversation)))
    if not cases:
        raise conversation.problem(f"no turn of this conversation has a `{TARGET}`")
    return cases


@shape({**list_shape(_TURN), "contains": _WITH_TARGET})
def read_messages(node: Node) -> tuple[Message, ...]:
    """Return the messages of a conversation in their order; raises `CaseError`. Extra keys of turns are ignored."""
    return tuple(read_each(items(node), _message))


def _message(node: Node) -> Message:
    turn_entries = entries(node)
    for name in GOLD_FORMS.keys() & turn_entries.keys():
        raise turn_entries[name].problem(f"a turn has no '{name}': its gold is the `{TARGET}`")
    for name in PREDICTED_FORMS.keys() & turn_entries.keys():
        remedy = "write it into a file of predictions, under an id such as ID.2"
        raise turn_entries[name].problem(f"a turn has no '{name}': {remedy}")
    for name in {*SHARED_BY_TURNS} & turn_entries.keys():
        remedy = f"write it next to `{CONVERSATION}`, for all turns with a `{TARGET}`"
        raise turn_entries[name].problem(f"a turn has no '{name}': {remedy}")
    for name, entry in turn_entries.items():
        _check_spelling("key", name, TURN_KEYS, entry)
    content = _said_in(node)
    if missing_keys := ["role"] * ("role" not in turn_entries) + ["content"] * (content is None):
        raise node.problem(f"a turn needs a `role` and a `content`: add `{missing_keys[0]}`")
    assert content is not None  # or it would be among the missing keys
    role = required_text(turn_entries["role"])
    _check_spelling("role", role, ROLES, turn_entries["role"])
    return Message(role=role, content=or_else("", whole_text)(content))


def _check_spelling(what: str, word: str, names: Sequence[str], node: Node) -> None:
    """Raise `CaseError` for a word that is nearly one of the names: the same letters, or one more or less.

    Other words are the suite's own, and pass.
    """
    for name in names if word not in names else ():
        letters = Counter(word.lower())
        letters.subtract(name)
        if sum(map(abs, letters.values())) <= 1:
            raise node.problem(f"unknown {what} '{word}' of a turn: did you mean '{name}'?")


def _said_in(turn: Node) -> Node | None:
    """Return the content of a turn, otherwise its target if that is a text and not of the user; None without both."""
    turn_entries = entries(turn)
    target, role = turn_entries.get(TARGET), turn_entries.get("role")
    is_said = target is not None and isinstance(target.value, str) and role is not None and role.value != "user"
    return turn_entries.get("content", target if is_said else None)


def _turns(case: Node, messages: list[Node]) -> Iterator[Node]:
    shared = _shared_keys(case)
    for number, turn in enumerate(messages, start=1):
        target = entries(turn).get(TARGET)
        if target is None or target.empty:
            continue
        so_far = messages[:number]
        # Up to the user's last message, so that no answer to it is included; all of them where no role is "user".
        users = [place for place, message in enumerate(so_far, start=1) if entries(message)["role"].value == "user"]
        so_far = so_far[: users[-1]] if users else so_far
        if "content" not in entries(so_far[-1]):  # it says its target, which is the answer
            so_far = so_far[:-1]
        question = {"question": entries(so_far[-1])["content"]} if so_far and "content" in entries(so_far[-1]) else {}
        turn_entries = {
            **question,
            "gold": target,
            CONVERSATION: Node(so_far, turn.line, "sequence", turn.file),
        }
        if "id" in shared:
            turn_entries["id"] = replace(shared["id"], value=f"{text(shared['id'])}.{number}")
        yield Node(shared | turn_entries, turn.line, "mapping", turn.file)


def _shared_keys(case: Node) -> dict[str, Node]:
    """Return the keys of a conversation that all its turns share.

    Descriptive keys become metadata, and tags become words that markers allow.
    """
    case_entries = entries(case)
    shared = excluding(case_entries, (*DESCRIPTIVE, CONVERSATION))
    described = {name: case_entries[name] for name in DESCRIPTIVE if name in case_entries}
    if described:
        metadata = shared.get("metadata")
        metadata_entries = {} if metadata is None or metadata.empty else entries(metadata)
        shared["metadata"] = Node(described | metadata_entries, case.line, "mapping", case.file)
    if "tags" in shared and isinstance(shared["tags"].value, list):
        # Other tools allow blanks and other characters in tags.
        tags = [
            replace(tag, value=as_marker(tag.value)) if isinstance(tag.value, str) else tag
            for tag in shared["tags"].value
            if not tag.empty
        ]
        shared["tags"] = replace(shared["tags"], value=[tag for tag in tags if tag.value != ""])
    return shared
