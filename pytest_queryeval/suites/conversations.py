"""Cases in the form of conversations: one case for each turn that has a target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_queryeval.core.model import Message
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import each, entries, items, or_else, stated_text, text, whole_text
from pytest_queryeval.suites.markers import as_marker
from pytest_queryeval.suites.query_or_answer import GOLD_FORMS, PREDICTED_FORMS

CONVERSATION = "conversation"
TARGET = "target"
# What such cases say of themselves beside their turns, and what predictors and reports may want to know.
TOLD = ("name", "comments")


def turns(case: Node) -> list[Node]:
    """The cases that a node holds: itself, or one for each turn of its conversation that has a target.

    The id of such a case is that of the node with the number of the turn behind it, its gold is the target, its
    question what the user said last, and its conversation all that was said up to that. Raises `CaseError` for a
    conversation without a target, and `SuiteError` with all turns that cannot be read.
    """
    if not isinstance(case.value, dict) or CONVERSATION not in case.value:
        return [case]
    named = case.value
    conversation = named[CONVERSATION]
    for form in (*GOLD_FORMS, *PREDICTED_FORMS, "question"):
        if form in named:
            raise named[form].problem(f"'{form}' cannot stand beside a conversation, whose turns have targets")
    read_messages(conversation)
    found = list(_turns(case, items(conversation)))
    if not found:
        raise conversation.problem(f"no turn of this conversation has a `{TARGET}`")
    return found


def read_messages(node: Node) -> tuple[Message, ...]:
    """Read what was said, in its order; whatever else turns say is left aside. Raises `CaseError`."""
    return tuple(each(items(node), _message))


def _message(node: Node) -> Message:
    named = entries(node)
    if missing := [key for key in ("role", "content") if key not in named]:
        raise node.problem(f"a turn needs a `role` and a `content`: add `{missing[0]}`")
    return Message(role=stated_text(named["role"]), content=or_else("", whole_text)(named["content"]))


def _turns(case: Node, said: list[Node]) -> Iterator[Node]:
    shared = _shared(case)
    for number, turn in enumerate(said, start=1):
        target = entries(turn).get(TARGET)
        if target is None or target.empty:
            continue
        so_far = _up_to_question(said[:number])
        own = {
            "question": entries(so_far[-1])["content"],
            "gold": target,
            CONVERSATION: Node(so_far, turn.line, "sequence", turn.file),
        }
        if "id" in shared:
            own["id"] = replace(shared["id"], value=f"{text(shared['id'])}.{number}")
        yield Node(shared | own, turn.line, "mapping", turn.file)


def _shared(case: Node) -> dict[str, Node]:
    """What all turns share: the case's own keys, with what only describes it among the metadata."""
    named = entries(case)
    shared = {name: value for name, value in named.items() if name not in (*TOLD, CONVERSATION)}
    told = {name: named[name] for name in TOLD if name in named}
    if told:
        stated = shared.get("metadata")
        known = {} if stated is None or stated.empty else entries(stated)
        shared["metadata"] = Node(told | known, case.line, "mapping", case.file)
    if "tags" in shared and isinstance(shared["tags"].value, list):
        tags = [_as_marker(tag) for tag in shared["tags"].value if not tag.empty]
        shared["tags"] = replace(shared["tags"], value=[tag for tag in tags if tag.value != ""])
    return shared


def _as_marker(tag: Node) -> Node:
    """A tag as it can be a marker: other tools allow blanks and more in theirs."""
    return replace(tag, value=as_marker(tag.value)) if isinstance(tag.value, str) else tag


def _up_to_question(said: list[Node]) -> list[Node]:
    """The turns up to what the user said last, so that no answer to it is among them; all where nobody is called so."""
    users = [number for number, turn in enumerate(said, start=1) if entries(turn)["role"].value == "user"]
    return said[: users[-1]] if users else said
