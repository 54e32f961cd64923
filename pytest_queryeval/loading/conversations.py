"""Cases in the form of conversations: one case for each turn that has a target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import each, entries, items, known_entries, or_else, text, whole_text
from pytest_queryeval.loading.stated import GOLD_FORMS, PREDICTED_FORMS
from pytest_queryeval.model import Message

CONVERSATION = "conversation"
TARGET = "target"
SELECTION = "indicator_selection"
# What such cases say of themselves beside their turns, and what predictors and reports may want to know.
TOLD = ("name", "comments")
_NO_MARKER = re.compile(r"[^\w-]+|^_+")


def turns(case: Node) -> list[Node]:
    """The cases that a node holds: itself, or one for each turn of its conversation that has a target.

    The id of such a case is that of the node with the number of the turn behind it, its question is what the user said
    last, and its conversation all that was said so far. Raises `CaseError` for a conversation without a target.
    """
    if not isinstance(case.value, dict) or CONVERSATION not in case.value:
        return [case]
    named = case.value
    conversation = named[CONVERSATION]
    for form in (*GOLD_FORMS, *PREDICTED_FORMS, "question"):
        if form in named:
            raise named[form].problem(f"'{form}' cannot stand beside a conversation, whose turns have targets")
    found = list(_turns(case, items(conversation)))
    if not found:
        raise conversation.problem(f"no turn of this conversation has a `{TARGET}`")
    return found


def read_messages(node: Node) -> tuple[Message, ...]:
    """Read what was said, in its order; raises `CaseError`."""
    return tuple(each(items(node), _message))


def _message(node: Node) -> Message:
    found = known_entries(node, {"role": text, "content": or_else("", whole_text), TARGET: or_else({}, entries)})
    if "role" not in found or "content" not in found:
        raise node.problem("a turn needs a `role` and a `content`")
    return Message(role=found["role"], content=found["content"])


def _turns(case: Node, said: list[Node]) -> Iterator[Node]:
    shared = _shared(case)
    for number, turn in enumerate(said, start=1):
        own = entries(turn)
        if TARGET not in own or own[TARGET].empty:
            continue
        target = own[TARGET]
        if SELECTION not in entries(target):
            raise target.problem(f"a target needs an `{SELECTION}`")
        id_ = entries(case).get("id")
        named = {
            "question": _question(said[:number], turn),
            "gold": entries(target)[SELECTION],
            CONVERSATION: Node(said[:number], turn.line, "sequence", turn.file),
        }
        if id_ is not None:
            named["id"] = replace(id_, value=f"{text(id_)}.{number}")
        yield Node(shared | named, turn.line, "mapping", turn.file)


def _shared(case: Node) -> dict[str, Node]:
    """What all turns share: the case's own keys, with what only describes it among the metadata."""
    named = entries(case)
    shared = {name: value for name, value in named.items() if name not in (*TOLD, CONVERSATION, "id")}
    told = {name: named[name] for name in TOLD if name in named}
    if told:
        stated = shared["metadata"].value if "metadata" in shared else {}
        known = stated if isinstance(stated, dict) else {}
        shared["metadata"] = Node(told | known, case.line, "mapping", case.file)
    if "tags" in shared and isinstance(shared["tags"].value, list):
        shared["tags"] = replace(shared["tags"], value=[_as_marker(tag) for tag in shared["tags"].value])
    return shared


def _as_marker(tag: Node) -> Node:
    """A tag as it can be a marker: other tools allow blanks and more in theirs."""
    return replace(tag, value=_NO_MARKER.sub("-", tag.value)) if isinstance(tag.value, str) else tag


def _question(said: list[Node], turn: Node) -> Node:
    """What the user said last; where nobody is called so, what was said last."""
    asked = [entries(one) for one in said]
    users = [one["content"] for one in asked if "content" in one and one.get("role", turn).value == "user"]
    contents = users or [one["content"] for one in asked if "content" in one]
    if not contents:
        raise turn.problem("a turn needs a `role` and a `content`")
    return contents[-1]
