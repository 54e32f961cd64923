"""Adds a gold to a case in the text of its file; every other character stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import indent
from typing import Any

import yaml

from pytest_queryeval.core.errors import CaseError, Location
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.documents.json_nodes import parse_json
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import parse_yaml, to_yaml
from pytest_queryeval.suites.query_or_answer import GOLD_FORMS

ANY = "gold_any"
BYTE_ORDER_MARK = "\ufeff"
_ESCAPED = re.compile(r"[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_SPACE = re.compile(r"[ \t\r\n]*")
BY_HAND = "write the query under `gold_any` by hand"


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


def with_gold(text: str, location: Location, id_: str, gold: JsonValue) -> str:
    """Return the text of a file with one more gold of the case at a location.

    `gold`, `gold_table` and `gold_file` become the first item of `gold_any`. Raise `CaseError` where the form of the
    case does not allow the edit, or the edit would change anything else.
    """
    if text.startswith(BYTE_ORDER_MARK):
        return BYTE_ORDER_MARK + with_gold(text[1:], location, id_, gold)
    file = file_at(location.path)
    is_jsonl = file.path.suffix == ".jsonl"
    if is_jsonl:
        lines = text.split("\n")
        line = lines[location.line - 1]
        edited = _edited(line, json_entries(line), gold)
        lines[location.line - 1] = edited or ""
        before, after = (parse_json(content, file, line=location.line) for content in (line, edited or "null"))
        new_text = "\n".join(lines)
    else:
        edited = _edited(text, yaml_entries(text, location.line, id_), gold)
        nothing = Node("", 1, "plain", file)
        before, after = (parse_yaml(content, file).root or nothing for content in (text, edited or ""))
        new_text = edited or ""
    is_as_meant = edited is not None and _differ_by_gold(before, after, location.line, id_, gold)
    if not is_as_meant:
        raise CaseError(location, f"the gold of '{id_}' cannot be changed where it stands: {BY_HAND}")
    return new_text


def _edited(text: str, entries: Mapping[str, EntryPlace], gold: JsonValue) -> str | None:
    form = next((form for form in GOLD_FORMS if form in entries), None)
    if form is None:
        return None
    entry = entries[form]
    # YAML reads neither surrogate pairs nor these characters unescaped.
    item = _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(gold, ensure_ascii=False))
    if form == ANY and entry.last is None:
        return None
    if form == ANY and entry.dash is None:
        return f"{text[: entry.last]}, {item}{text[entry.last :]}"
    if form == ANY and entry.last is not None and entry.dash is not None:
        return _with_block_item(text, entry.last, entry.dash, gold)
    name, file = ('"gold_any"', '"file"') if text[entry.start] == '"' else (ANY, "file")
    before, value, after = text[: entry.start], text[entry.after_colon : entry.end], text[entry.end :]
    if entry.in_flow:
        first = f"{{{file}:{value}}}" if form == "gold_file" else value.lstrip()
        return f"{before}{name}: [{first}, {item}]{after}"
    dash = f"{_newline(text)}{' ' * entry.column}-{' file:' if form == 'gold_file' else ''}"
    head = f"{before}{name}:{dash}{value}"
    return _with_block_item(head + after, len(head), entry.column, gold)


def _with_block_item(text: str, end: int, column: int, gold: JsonValue) -> str:
    """Return the text with a list item below the line on which the previous item ends, at `end`."""
    item = indent(to_yaml([gold]), " " * column).replace("\n", _newline(text))
    if (stop := text.find("\n", end)) < 0:
        return f"{text}{_newline(text)}{item}"
    return f"{text[: stop + 1]}{item}{text[stop + 1 :]}"


def _newline(text: str) -> str:
    """Return the line ending of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _differ_by_gold(before: Node, after: Node, line: int, id_: str, gold: JsonValue) -> bool:
    """Return whether the only change is one more gold of the case that begins on `line`."""
    old, new = before.value, after.value
    if not isinstance(old, dict) or not isinstance(new, dict):
        if not isinstance(old, list) or not isinstance(new, list):
            return _are_equal(before, after)
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(_differ_by_gold(*pair, line, id_, gold) for pair in pairs)
    if before.line != line or "id" not in old or old["id"].value != id_:
        return list(old) == list(new) and all(_differ_by_gold(old[key], new[key], line, id_, gold) for key in old)
    new_golds = new[ANY].value if ANY in new else None
    if not isinstance(new_golds, list) or json_value(new_golds[-1]) != gold:
        return False
    form = next(form for form in GOLD_FORMS if form in old)
    old_golds = old[form].value if form == ANY else [old[form]]
    if form == "gold_file":
        old_golds = [Node({"file": old[form]}, line, "mapping", before.file)]
    assert isinstance(old_golds, list)
    other_keys = [[key for key in entries if key not in GOLD_FORMS] for entries in (old, new)]
    return (
        other_keys[0] == other_keys[1]
        and all(_are_equal(old[key], new[key]) for key in other_keys[0])
        and len(old_golds) == len(new_golds) - 1
        and all(map(_are_equal, old_golds, new_golds))
    )


def _are_equal(before: Node, after: Node) -> bool:
    if isinstance(before.value, dict) and isinstance(after.value, dict):
        names = list(before.value)
        return names == list(after.value) and all(_are_equal(before.value[name], after.value[name]) for name in names)
    if isinstance(before.value, list) and isinstance(after.value, list):
        return len(before.value) == len(after.value) and all(map(_are_equal, before.value, after.value))
    return before.value == after.value and before.form == after.form


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
