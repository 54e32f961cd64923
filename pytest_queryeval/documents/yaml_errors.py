"""Errors of YAML in the terms of those who write suites: the parser's own are about its grammar.

The parsers of libyaml and of Python word their errors differently and agree on the places, so the rules below look at
the text around a place, and at words that both parsers use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import yaml

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents.document import BLOCK_HINT, File
from pytest_queryeval.text.formatting import one_line

_MAX_SHOWN = 40  # characters of a line
_MAX_QUERY_LINES = 5
_QUERY_KEYS = ("gold", "gold_any", "predicted")
_CLOSING = {"{": "}", "[": "]"}
_WITHIN_QUOTES = {"'": ", with '' for each ' in it", '"': ', with \\" for each " in it'}

_DASHES = re.compile(r" *(?:- +)*")
_KEY = re.compile(r" *(?:- +)*(?P<key>[A-Za-z_]\w*) *:(?:\s|$)")
_BLOCK = re.compile(r".*:[ \t]+[|>][-+0-9]*[ \t]*(?:#.*)?$")
_HALF_OF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_BAD_ESCAPE = re.compile(r"""\\(?:u[dD][89a-fA-F]|[^0abtnvfre "/\\N_LPxuU\t]|$)""")
_DASH_WITHOUT_SPACE = re.compile(r" *-(?=[\[{\w])")
_PREFIX = re.compile(r" *PREFIX\s+[\w.-]*:\s", re.IGNORECASE)
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


class Place(NamedTuple):
    """A line and a column, both counted from 0."""

    line: int
    column: int


class _Failure(NamedTuple):
    """An error of the parser: its words, the lines of the text, and the place where the parser stopped.

    `context` names the construct that the parser was reading, and `start` is where that begins.
    """

    problem: str
    context: str
    lines: Sequence[str]
    place: Place
    start: Place

    @property
    def before(self) -> str:
        """The beginning of the line up to the place where the parser stopped."""
        return self.lines[self.place.line][: self.place.column]

    @property
    def character(self) -> str:
        """The character where the parser stopped; empty at the end of a line."""
        return self.lines[self.place.line][self.place.column : self.place.column + 1]


class _Column(NamedTuple):
    """The column of the keys of an open mapping, or of the dashes of an open list.

    `line` is the last line with such a key or dash, and `text` is that line from the column on.
    """

    column: int
    line: int
    text: str

    @property
    def is_list(self) -> bool:
        return self.text.startswith("- ")


_Found: TypeAlias = tuple[Place, str] | None
_Rule: TypeAlias = Callable[[_Failure], _Found]


def explained(error: Exception, text: str, file: File) -> CaseError:
    """Return, without raising it, the error for a text that the parser refuses, at the place to correct.

    The first rule that finds a known mistake words the message.
    """
    if isinstance(error, yaml.reader.ReaderError):
        return _character_error(text, file)
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return file.problem(f"not YAML: {getattr(error, 'problem', None) or error}")
    place, start = (
        Place(mark.line, mark.column) for mark in (error.problem_mark, error.context_mark or error.problem_mark)
    )
    failure = _Failure(error.problem or "", error.context or "", [*_LINE_END.split(text), ""], place, start)
    unknown = place, "it cannot be read from here: see the indentation, the quotes and the brackets before this place"
    place, problem = next(filter(None, (rule(failure) for rule in _RULES)), unknown)
    return file.problem(f"not YAML: {problem}", place.line + 1, place.column + 1)


def _character_error(text: str, file: File) -> CaseError:
    character = _UNPRINTABLE.search(text)
    if character is None:
        return file.problem("not YAML: it has a character that YAML does not allow")
    before = text[: character.start()]
    problem = f"not YAML: a character that YAML does not allow: delete U+{ord(character.group()):04X}"
    return file.problem(problem, before.count("\n") + 1, character.start() - before.rfind("\n"))


def _end_of_text(failure: _Failure) -> _Found:
    """Return the place and problem of a list or a mapping in brackets that is still open at the end of the text.

    None for any other failure.
    """
    rest = [failure.lines[failure.place.line][failure.place.column :], *failure.lines[failure.place.line + 1 :]]
    if "flow" not in failure.context or any(line.strip() for line in rest):
        return None
    opening = failure.lines[failure.start.line][failure.start.column : failure.start.column + 1]
    if opening in _CLOSING:
        hint = _quote_hint(failure.lines, failure.start.line, f"close it with {_CLOSING[opening]}")
        return failure.start, f"the {opening} that opens here is not closed: {hint}"
    last = next(number for number in reversed(range(len(failure.lines))) if failure.lines[number].strip())
    return Place(last, len(failure.lines[last].rstrip())), "the text ends too early: a value is missing, and a } or a ]"


def _special_beginning(failure: _Failure) -> _Found:
    """Return the place and problem of a line that begins like a directive, a value like a tag, or text after the end.

    None for any other failure.
    """
    line, problem = failure.place.line, ""
    if "directive" in failure.context:
        problem = "a line cannot begin with %: indent it, or quote the text"
    elif "tag" in failure.context:
        problem = "a plain value cannot begin with !: quote the value"
    elif "document start" in failure.problem:
        problem = "text follows the end of the only value: remove it, or write `key: value` in all lines"
    elif "unexpected ':'" in failure.problem:
        problem = "a colon without a space after it: write `: `, or quote the text"
    return (Place(line, failure.place.column), problem) if problem else None


def _foreign_line(failure: _Failure) -> _Found:
    if failure.character == "\t":
        return failure.place, "YAML allows no tab here: replace it with spaces"
    if failure.lines[failure.place.line].startswith("```"):
        return failure.place, "a code fence is not part of the file: delete this line"
    return None


def _prefix_behind_block(failure: _Failure) -> _Found:
    """Return the place and problem of a SPARQL line `PREFIX ex: <…>` that ends its block, as a key would; else None."""
    lines = failure.lines
    number = failure.start.line if "simple key" in failure.context else failure.place.line
    while number and _PREFIX.match(lines[number - 1]):
        number -= 1
    return _ended_block(lines, number) if _PREFIX.match(lines[number]) else None


def _quoted_scalar(failure: _Failure) -> _Found:
    if "quoted scalar" not in failure.context:
        return None
    line, column = failure.start
    if "escape" in failure.problem or "hexdec" in failure.problem:
        hint = _quote_hint(failure.lines, line, "use single quotes")
        place = _escape_at(failure)
        if _HALF_OF_PAIR.match(failure.lines[place.line], place.column):
            return place, "half of a surrogate pair, which is no character: remove this escape"
        return place, f"YAML does not know this escape: {hint}"
    hint = _quote_hint(failure.lines, line, "leave it out")
    quote = failure.lines[line][column : column + 1]
    return failure.start, f"the quote {quote} that opens here is not closed: close it, or {hint}"


def _escape_at(failure: _Failure) -> Place:
    """Return the place of the backslash of a wrong escape; parsers stop at different characters of it."""
    line, column = failure.place
    escapes = list(_BAD_ESCAPE.finditer(failure.lines[line]))
    near = min(escapes, key=lambda escape: abs(escape.start() - column), default=None)
    return failure.place if near is None else Place(line, near.start())


def _text_behind_block_mark(failure: _Failure) -> _Found:
    if "block scalar" not in failure.context:
        return None
    mark = failure.lines[failure.start.line][failure.start.column : failure.start.column + 1]
    return failure.start, f"text follows `{mark}`: begin the block on the next line, or quote the text"


def _first_character(failure: _Failure) -> _Found:
    """Return the place and problem of a plain value that begins with a special character of YAML; else None."""
    if "anchor" in failure.context or "alias" in failure.context:
        place = failure.start
    elif "flow node" in failure.context and failure.character:
        return failure.place, f"a value is missing before {failure.character}: add it, or quote the text"
    elif (
        "cannot start" in failure.problem
        or "block node" in failure.context
        or (failure.character in ("?", "-") and failure.before.strip("- "))
    ):
        place = failure.place
    else:
        return None
    first = failure.lines[place.line][place.column : place.column + 1]
    hint = "remove the backticks" if first == "`" else _quote_hint(failure.lines, place.line)
    return place, f"a plain value cannot begin with {first}: {hint}"


def _open_bracket(failure: _Failure) -> _Found:
    """Return the place and problem of a list or mapping in brackets that does not continue with a comma or end.

    None for any other failure.
    """
    (line, column), start = failure.place, failure.start
    opening = failure.lines[start.line][start.column : start.column + 1]
    if "flow" not in failure.context or opening not in _CLOSING:
        return None
    if failure.before.endswith("$"):
        return Place(line, column - 1), 'quote a variable within { } and [ ]: "${NAME}"'
    hint = _quote_hint(failure.lines, start.line, f"close it with {_CLOSING[opening]}, or quote the text in it")
    return start, f"the {opening} that opens here is not closed by line {line + 1}, column {column + 1}: {hint}"


def _second_colon(failure: _Failure) -> _Found:
    """Return the place and problem of a `: ` within a plain value, or of a line above that lacks its colon.

    None for any other failure.
    """
    if "mapping values" not in failure.problem:
        return None
    lines, place = failure.lines, failure.place
    colon = place, f"a plain value cannot contain `: `: {_quote_hint(lines, place.line)}"
    if dash := _DASH_WITHOUT_SPACE.match(lines[place.line]):
        return Place(place.line, dash.end()), "an item begins with `- `: put a space after the -"
    if _has_colon(failure.before):
        return colon
    key = next((number for number in reversed(range(place.line)) if _has_colon(lines[number])), None)
    first = 0 if key is None else key + 1  # of the lines without a colon, where there are any
    if key is None or lines[key].rstrip().endswith(":") or _indent(lines[first]) <= _key_column(lines[key]):
        return _no_colon(lines, first)
    return colon if first < place.line else _misindented(lines, place.line)


def _line_without_colon(failure: _Failure) -> _Found:
    return _no_colon(failure.lines, failure.start.line) if "simple key" in failure.context else None


def _behind_the_end(failure: _Failure) -> _Found:
    end = failure.before.rstrip()[-1:]
    if end not in ("'", '"', "]", "}"):
        return None
    hint = _quote_hint(failure.lines, failure.place.line, f"quote the whole value{_WITHIN_QUOTES.get(end, '')}")
    return failure.place, f"text follows the closing {end}: {hint}"


def _indentation(failure: _Failure) -> _Found:
    """Return the place and problem of a line that starts at a column where no list or mapping is open; else None."""
    lines, place = failure.lines, failure.place
    if "block" not in failure.context or failure.before.strip():
        return None
    if not _has_colon(lines[place.line]) and not lines[place.line].lstrip(" ").startswith("- "):
        return _no_colon(lines, place.line)
    columns = _open_columns(lines[: place.line])
    open_column = next((column for column in columns if column.column == place.column), None)
    if open_column is None:
        return _misindented(lines, place.line)
    if not open_column.is_list:
        return place, "a list item among the keys of a mapping: put it under a key"
    keys = next((column.column for column in columns if column.column > place.column), place.column + 2)
    problem = f"a key in line with the `- ` of line {open_column.line + 1}"
    return place, f"{problem}: indent it by {keys} spaces, or begin another item with `- `"


def _indented_start(failure: _Failure) -> _Found:
    first = next((number for number, line in enumerate(failure.lines) if line.strip()), 0)
    indent = _indent(failure.lines[first])
    if not indent or failure.before:
        return None
    problem = f"indented by {_spaces(indent)}, but line {failure.place.line + 1} is not: indent both alike"
    return Place(first, indent), problem


_RULES: Sequence[_Rule] = (
    _foreign_line,
    _end_of_text,
    _prefix_behind_block,
    _quoted_scalar,
    _text_behind_block_mark,
    _first_character,
    _open_bracket,
    _second_colon,
    _line_without_colon,
    _behind_the_end,
    _indentation,
    _indented_start,
    _special_beginning,
)


def _no_colon(lines: Sequence[str], number: int) -> tuple[Place, str]:
    """Return the place and problem of a line that is not `key: value`; often it belongs to the block above."""
    line = lines[number]
    place = Place(number, _indent(line))
    columns = _open_columns(lines[:number])
    if ended := _ended_block(lines, number):
        return ended
    if re.search(r":\S", line):
        hint = "put a space after the colon"
    elif columns and columns[-1].line == number - 1:
        hint = "indent it to continue the line above"
    else:
        hint = "add the key, or `# ` before a comment"
    return place, f"'{one_line(line.strip(), _MAX_SHOWN)}' is not `key: value`: {_quote_hint(lines, number, hint)}"


def _ended_block(lines: Sequence[str], number: int) -> _Found:
    """Return the place and problem of a line that is indented less than the block before it.

    None for any other line.
    """
    columns = _open_columns(lines[:number])
    if not columns or not _BLOCK.match(lines[columns[-1].line]):
        return None
    place, key = Place(number, _indent(lines[number])), columns[-1]
    block = [line for line in lines[key.line + 1 : number] if line.strip()]
    indent = _indent(block[0]) if block else key.column + 2
    if indent <= place.column:
        return None
    text = f"the text that begins on line {key.line + 1}"
    return place, f"indented by {_spaces(place.column)}: if it belongs to {text}, indent it by {_spaces(indent)}"


def _misindented(lines: Sequence[str], number: int) -> _Found:
    indent = _indent(lines[number])
    columns = _open_columns(lines[:number])
    if not columns:
        return None
    is_item = lines[number].lstrip(" ").startswith("- ")
    alike = [column for column in columns if column.is_list == is_item] or columns
    near = min(reversed(alike), key=lambda column: abs(column.column - indent))
    return Place(number, indent), (
        f"indented by {_spaces(indent)}: indent it by {near.column}"
        f" as '{one_line(near.text, _MAX_SHOWN)}' on line {near.line + 1}"
    )


def _open_columns(lines: Sequence[str]) -> list[_Column]:
    """Return the columns of the lists and mappings that are open after these lines of YAML, the outermost first."""
    columns: list[_Column] = []
    block: int | None = None  # the column of a key; deeper lines are its text
    for number, line in enumerate(lines):
        column = _indent(line)
        if not line.strip() or line.lstrip().startswith("#") or (block is not None and column > block):
            continue
        while columns and columns[-1].column >= column:
            columns.pop()
        key = _key_column(line)
        dashes = (place for place in range(column, key) if line[place] == "-")
        columns += (_Column(place, number, line[place:]) for place in (*dashes, key))
        block = key if _BLOCK.match(line) else None
    return columns


def _quote_hint(lines: Sequence[str], number: int, otherwise: str = "quote the value") -> str:
    """Return how to correct the value that a line belongs to: write a query as a block, else `otherwise`."""
    above = lines[max(0, number - _MAX_QUERY_LINES + 1) : number + 1]
    key = next((match["key"] for line in reversed(above) if (match := _KEY.match(line))), None)
    return BLOCK_HINT if key in _QUERY_KEYS else otherwise


def _has_colon(line: str) -> bool:
    return re.match(r"(?!\s*#).*:(?:[ \t]|$)", line) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _key_column(line: str) -> int:
    """Return the column of the key or the text of a line, after the dashes of list items."""
    dashes = _DASHES.match(line)
    return dashes.end() if dashes else 0


def _spaces(number: int) -> str:
    return "1 space" if number == 1 else f"{number} spaces"
