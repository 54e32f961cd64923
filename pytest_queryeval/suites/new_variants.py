"""The `variants` of a source, written into the text of its file: every other character stays as it is."""

from __future__ import annotations

import json
from contextlib import suppress

from pytest_queryeval.core.errors import CaseError, QueryEvalError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Source
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.documents.places import EntryPlace, yaml_entry
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import parse_yaml
from pytest_queryeval.engines.variants import VARIANTS
from pytest_queryeval.suites.new_gold import BYTE_ORDER_MARK, newline


def with_variants(text: str, source: Source, pattern: str) -> str:
    """Return the text of the file that states a source, with this pattern as its `variants`.

    Raise `CaseError` where the source is written in a way that allows no such edit, or the edit would change anything
    else.
    """
    if text.startswith(BYTE_ORDER_MARK):
        return BYTE_ORDER_MARK + with_variants(text[1:], source, pattern)
    assert source.location is not None
    line, names = source.location.line, ("source", source.name)
    file = file_at(source.location.path)
    before = parse_yaml(text, file).root
    if before is not None and (entry := yaml_entry(text, line, names)) is not None:
        edited = _edited(text, entry, source.engine, pattern)
        with suppress(QueryEvalError):  # as for a text that means something else in braces
            after = parse_yaml(edited, file).root
            if after is not None and json_value(after) == _expected(before, line, names, source.engine, pattern):
                return edited
    problem = f"the source cannot be changed where it stands: add variants: {_quoted(pattern)}"
    raise CaseError(source.location, problem)


def _edited(text: str, entry: EntryPlace, engine: str, pattern: str) -> str:
    is_json = text[entry.start] == '"'
    name, variants = (f'"{engine}"', f'"{VARIANTS}"') if is_json else (engine, VARIANTS)
    known = entry.entries
    if not known:
        value = text[entry.after_colon : entry.end].strip()
        stated = f" {{{name}: {value}, {variants}: {_quoted(pattern)}}}"
        return f"{text[: entry.after_colon]}{stated}{text[entry.end :]}"
    # It may be among the settings of the engine, or beside its name.
    inner = known[engine].entries if engine in known else {}
    if (old := known.get(VARIANTS) or inner.get(VARIANTS)) is not None:
        return f"{text[: old.after_colon]} {_quoted(pattern)}{text[old.end :]}"
    last = max(known.values(), key=lambda each: each.end)
    if last.in_flow:
        return f"{text[: last.end]}, {variants}: {_quoted(pattern)}{text[last.end :]}"
    line = f"{' ' * last.column}{variants}: {_quoted(pattern)}"
    if (stop := text.find("\n", last.end)) < 0:
        return f"{text}{newline(text)}{line}"
    return f"{text[: stop + 1]}{line}{newline(text)}{text[stop + 1 :]}"


def _quoted(pattern: str) -> str:
    """Return a text as YAML and JSON have it."""
    return json.dumps(pattern)


def _expected(node: Node, line: int, names: tuple[str, ...], engine: str, pattern: str) -> JsonValue:
    """Return the value of a node, with the pattern where it is the source that is stated on a line."""
    value = node.value
    if isinstance(value, list):
        return [_expected(item, line, names, engine, pattern) for item in value]
    if not isinstance(value, dict):
        known = json_value(node)
        return {engine: known, VARIANTS: pattern} if node.line == line and node.key in names else known
    own = {key: _expected(item, line, names, engine, pattern) for key, item in value.items()}
    if node.line == line and node.key in names and engine in own:
        inner = own[engine]
        if isinstance(inner, dict) and VARIANTS in inner and VARIANTS not in own:
            own[engine] = {**inner, VARIANTS: pattern}
        else:
            own[VARIANTS] = pattern
    return own
