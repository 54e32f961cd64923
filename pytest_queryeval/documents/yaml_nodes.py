"""YAML: text is read as nodes, from the parser's events, and JSON values are written as text that is read back equal.

No scalar is resolved: `NO`, `012` and `12:30` stay as written, and their readers decide what they mean.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents.document import MAX_DEPTH, MEBIBYTE, Document, File, Form, Node

MAX_YAML_BYTES = 32 * MEBIBYTE
MAX_ALIAS_NODES = 100_000


# The parser of libyaml is 7 times as fast as the one in Python, which is used where PyYAML was built without it.
_PARSER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAGS = {"str": "tag:yaml.org,2002:str", "seq": "tag:yaml.org,2002:seq", "map": "tag:yaml.org,2002:map"}
# The escapes of a surrogate pair, and those of two characters for private use, by which `_mask` replaces them.
_PAIR_ESCAPE = re.compile(r"(?<!\\)(?P<before>(?:\\\\)*)\\ud(?P<high>[89ab][0-9a-f]{2})\\ud(?P<low>[c-f][0-9a-f]{2})")
_MASKED_ESCAPE = re.compile(r"\\ue([0-3][0-9a-f]{2})\\ue([4-7][0-9a-f]{2})")
_MASKED_PAIR = re.compile("[\ue000-\ue3ff][\ue400-\ue7ff]")
_MASKED_DIGITS, _UNMASKED_DIGITS = str.maketrans("89abcdef", "01234567"), str.maketrans("01234567", "89abcdef")
_COMMENT_BEHIND = re.compile(r"[ \t]+#(?P<glued>[^\s#])?")
# A text in quotes, in which nothing is a comment, or a comment of SQL or SPARQL up to the end of its line.
_QUOTED_OR_COMMENT = re.compile(r"""'[^']*'|"[^"]*"|(?P<comment>(?:--|(?<!\S)#)[^\n]*)""")
_FORMS: dict[str, Form] = {"'": "quoted", '"': "quoted", "|": "literal", ">": "folded"}
# The writer of libyaml is several times as fast as the one in Python, which is used where PyYAML was built without it.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BLOCK = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]*")
_LINE_CHARACTERS = 2**31 - 1  # no line is broken: a text that is wrapped is refused as a query


def read_yaml(file: File) -> Document:
    """Return the only document of a YAML file; raise `CaseError` if the file cannot be read or is no accepted YAML."""
    return parse_yaml(file.text(MAX_YAML_BYTES), file)


def parse_yaml(text: str, file: File) -> Document:
    """Return the only document of a YAML text, whose places are those of `file`.

    Raise `CaseError` if the text is no accepted YAML. Problems that do not stop the reading are in the document.
    """
    try:
        if "\ufeff" in text:  # which one parser counts as a character, and the other does not
            raise yaml.reader.ReaderError(file.path.name, text.index("\ufeff"), 0xFEFF, "", "")
        return _Composer(text, file).document()
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the parser in Python fails on \U escapes
        from pytest_queryeval.documents.yaml_errors import explained

        raise explained(error, text, file) from error


def _mask(pair: re.Match[str]) -> str:
    """Return the escapes of a surrogate pair as escapes of two characters for private use, of the same length.

    YAML has no surrogates, which json.dump writes.
    """
    high, low = (half[0].translate(_MASKED_DIGITS) + half[1:] for half in pair.group("high", "low"))
    return f"{pair['before']}\\ue{high}\\ue{low}"


def _unmask(event: Any) -> Any:
    """Return an event in which masked surrogate pairs are the characters that they stand for.

    Without double quotes, the escapes themselves are restored, because only double quotes have escapes.
    """
    if type(event) is ScalarEvent and event.style == '"':
        event.value = _MASKED_PAIR.sub(
            lambda pair: chr(0x10000 + ((ord(pair[0][0]) - 0xE000) << 10) + ord(pair[0][1]) - 0xE400), event.value
        )
    elif type(event) is ScalarEvent:
        event.value = _MASKED_ESCAPE.sub(
            lambda pair: "".join(f"\\ud{half[0].translate(_UNMASKED_DIGITS)}{half[1:]}" for half in pair.groups()),
            event.value,
        )
    return event


class _Composer:
    """A builder of nodes from the events of the parser; aliases share the value of their anchor."""

    def __init__(self, text: str, file: File) -> None:
        self._text = text
        self._file = file
        masked_text = _PAIR_ESCAPE.sub(_mask, text) if "\\ud" in text else text
        read_event = _PARSER(masked_text).get_event
        self._next = read_event if masked_text == text else lambda: _unmask(read_event())
        self._anchors: dict[str, tuple[Node, int, int] | None] = {}
        self._problems: list[CaseError] = []
        self._size = 0
        self._alias_size = 0
        self._deepest = 0

    def document(self) -> Document:
        self._next()
        event = self._next()
        if type(event) is StreamEndEvent:
            return Document(None, [])
        root = self._node(self._next(), None, 0)
        self._next()
        event = self._next()
        if type(event) is DocumentStartEvent:
            raise self._file.problem(
                "a second YAML document starts here: remove the `---`, or split the file", _line(event)
            )
        return Document(None if root.empty else root, self._problems)

    def _node(self, event: Any, line: int | None, depth: int, key: str = "") -> Node:
        """Return the node that starts with `event`; `line` is the line of its key, None if it has no key."""
        kind = type(event)
        if kind is AliasEvent:
            return self._alias(event, line, depth, key)
        if line is None:
            line = event.start_mark.line + 1
        if event.anchor is not None:
            return self._anchored(event, line, depth, key)
        self._size += 1
        if kind is ScalarEvent:
            return self._scalar(event, line, key)
        self._descend(depth + 1, event)
        if kind is MappingStartEvent:
            return self._mapping(event, line, depth + 1, key)
        if event.tag is not None:
            self._check_tag(event, "seq")
        items: list[Node] = []
        item_key = f"item of {key}" if key else ""
        while type(event := self._next()) is not SequenceEndEvent:
            items.append(self._node(event, None, depth + 1, item_key))
        return Node(items, line, "sequence", self._file, key)

    def _anchored(self, event: Any, line: int, depth: int, key: str) -> Node:
        """Return a node that aliases can name, and record its size and depth, which each alias adds again."""
        name, event.anchor = event.anchor, None
        self._anchors[name] = None
        size_before, deepest_before = self._size, self._deepest
        self._deepest = depth
        node = self._node(event, line, depth, key)
        self._anchors[name] = node, self._size - size_before, self._deepest - depth
        self._deepest = max(self._deepest, deepest_before)
        return node

    def _descend(self, depth: int, event: Any) -> None:
        if depth > MAX_DEPTH:
            raise self._file.problem(f"nested deeper than {MAX_DEPTH} levels", _line(event))
        self._deepest = max(self._deepest, depth)

    def _scalar(self, event: Any, line: int, key: str) -> Node:
        style = event.style
        cut = not style and _COMMENT_BEHIND.match(self._text, event.end_mark.index)
        if event.tag is not None:
            self._check_tag(event, "str")
            if cut:
                self._problems.append(self._file.problem("a comment follows this text: quote the text", _line(event)))
            return Node(event.value, line, "quoted", self._file, key)
        form: Form = _FORMS[style] if style else "plain"
        if cut:
            form = "clipped" if cut["glued"] else "cut"
        elif style != "|" and event.start_mark.line != event.end_mark.line and self._swallows_lines(event):
            form = "joined"
        return Node(event.value, line, form, self._file, key)

    def _swallows_lines(self, event: Any) -> bool:
        """Return whether joining the lines of a scalar makes a comment of a query longer, and so hides text."""
        written = self._text[event.start_mark.index : event.end_mark.index]
        if event.style == ">":
            written = written.partition("\n")[2]
        elif event.style:
            written = written[1:-1].replace("''", "'").replace('\\"', '"')
        return _comments(written) != _comments(event.value)

    def _mapping(self, event: Any, line: int, depth: int, key: str) -> Node:
        if event.tag is not None:
            self._check_tag(event, "map")
        entries: dict[str, Node] = {}
        while type(event := self._next()) is not MappingEndEvent:
            name_line = event.start_mark.line + 1
            if type(event) is ScalarEvent and event.tag is None and event.anchor is None:
                name = event.value
            else:
                node = self._node(event, name_line, depth)
                if not isinstance(node.value, str):
                    raise node.problem("a key is text: quote it")
                name = node.value
            value = self._node(self._next(), name_line, depth, name)
            if name in entries:
                hint = "remove one, or begin another item with `- `" if key.startswith("item of ") else "remove one"
                problem = f"duplicate key '{name}', first on line {entries[name].line}: {hint}"
                self._problems.append(value.problem(problem))
            else:
                entries[name] = value
        return Node(entries, line, "mapping", self._file, key)

    def _alias(self, event: Any, line: int | None, depth: int, key: str) -> Node:
        name, own_line = event.anchor, _line(event)
        if name not in self._anchors:
            raise self._file.problem(f"alias '*{name}' names nothing above it: quote text that begins with *", own_line)
        anchored = self._anchors[name]
        if anchored is None:
            raise self._file.problem(f"alias '*{name}' is inside of the value that it names", own_line)
        target, size, height = anchored
        self._descend(depth + height, event)
        self._size += size
        self._alias_size += size
        if self._alias_size > MAX_ALIAS_NODES:
            raise self._file.problem(f"aliases repeat more than {MAX_ALIAS_NODES:,} values", own_line)
        return Node(target.value, line or own_line, target.form, self._file, key)

    def _check_tag(self, event: Any, allowed: str) -> None:
        if event.tag not in ("!", _TAGS[allowed]):
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            problem = f"tag '{tag}' is refused: remove it, or quote the text if ! is part of it"
            self._problems.append(self._file.problem(problem, _line(event)))


def _comments(query: str) -> list[str]:
    return [match["comment"].rstrip() for match in _QUOTED_OR_COMMENT.finditer(query) if match["comment"]]


def _line(event: Any) -> int:
    number: int = event.start_mark.line
    return number + 1


class _Dumper(_DUMPER):  # type: ignore[misc]  # chosen above
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    """Return the YAML node of a text: several lines as a block, harmless text plain, and other text in quotes."""
    style: str | None = '"'
    if "\n" in text and _BLOCK.fullmatch(text):
        style = "|"
    elif text[:1].isalpha() and text != "None" and "--" not in text and "#" not in text:
        style = None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(value: Any) -> str:
    """Return a JSON value as YAML text that is read back equal; mappings keep their order."""
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_LINE_CHARACTERS)
    return text
