"""Places of the entries of a mapping in the text of a YAML or JSON file, for edits that leave the rest as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPlace:
    """Where an entry begins with its key, where what follows the colon begins, and where its value ends.

    `column` is that of the key. `in_flow` tells whether the mapping is written in braces; `dash` is the column of the
    items if the value is a list that is written with dashes, and `last` the end of its last item if it is any list.
    """

    start: int
    column: int
    after_colon: int
    end: int
    in_flow: bool
    dash: int | None = None
    last: int | None = None


def yaml_entries(text: str, line: int, id_: str) -> dict[str, EntryPlace]:
    """Return the entries of the mapping that begins on `line` and has this `id`; empty where there is none.

    The text is one that `read_yaml` could read. Values that are aliases are left out, as they are written elsewhere.
    """
    for mapping in _mappings(yaml.compose(text, Loader=_LOADER)):
        ids = [value.value for key, value in mapping.value if key.value == "id"]
        if mapping.start_mark.line + 1 == line and ids == [id_]:
            return {
                key.value: _entry(text, key, value, mapping)
                for key, value in mapping.value
                if key.end_mark.index <= value.start_mark.index
            }
    return {}


def _mappings(root: Any) -> Iterator[yaml.MappingNode]:
    pending, visited = [root], set()
    while pending:
        node = pending.pop()
        if id(node) in visited or not isinstance(node, yaml.CollectionNode):
            continue
        visited.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            pending += [value for _, value in node.value]
        else:
            pending += node.value


def _entry(text: str, key: yaml.Node, value: Any, mapping: yaml.MappingNode) -> EntryPlace:
    is_list = isinstance(value, yaml.SequenceNode)
    return EntryPlace(
        start=key.start_mark.index,
        column=key.start_mark.column,
        after_colon=text.index(":", key.end_mark.index) + 1,
        end=_end(text, value),
        in_flow=mapping.flow_style,
        dash=value.start_mark.column if is_list and not value.flow_style else None,
        last=_end(text, value.value[-1]) if is_list and value.value else None,
    )


def _end(text: str, node: Any) -> int:
    """Return where a value ends, without blank lines and comments behind it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1] if isinstance(node, yaml.SequenceNode) else node.value[-1][1]
    return len(text[: node.end_mark.index].rstrip())


def json_entries(text: str) -> dict[str, EntryPlace]:
    """Return the entries of the JSON object that a text is, which could be read."""
    decoder = json.JSONDecoder()
    places = {}
    at = _after_space(text, text.index("{") + 1)
    while text[at] != "}":
        name, end = decoder.raw_decode(text, at)
        colon = text.index(":", end) + 1
        start = _after_space(text, colon)
        value, end = decoder.raw_decode(text, start)
        last = len(text[: end - 1].rstrip()) if isinstance(value, list) and value else None
        places[name] = EntryPlace(start=at, column=0, after_colon=colon, end=end, in_flow=True, last=last)
        at = _after_space(text, end)
        at = _after_space(text, at + 1) if text[at] == "," else at
    return places


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()
