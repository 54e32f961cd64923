"""Text for any output: without characters that act or hide, cut, on one line; numbers as people read them, and tables.

A truncated secret is no longer found, so secrets are removed first; `cut`, `cut_middle` and `escape_line` expect texts
without secrets.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from pytest_queryeval.text.redaction import redact

CELL_CHARACTERS = 200
AHEAD = 100  # times the characters shown are read: removing blanks and secrets makes a text shorter
CELL_AHEAD = AHEAD * CELL_CHARACTERS
GAP = "  "
MIN_NAME = 16
Row: TypeAlias = Sequence[str]

# Control characters, halves of surrogate pairs, what XML forbids, what turns the direction of text, what is invisible.
# Joiners stay, since words and emojis are made with them, and so do variation selectors behind an emoji, and in keycaps
# such as 1 in a square. The script of HTML pages, text.js, has the same pattern.
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LOOK_OF_EMOJI = re.compile(
    r"[\ufe0e\ufe0f](?:(?=\u20e3)|(?<=[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u23ff\u2460-\u27ff\u2900-\u2bff\u3030"
    r"\u303d\u3297\u3299\U0001f000-\U0001faff].))"
)
_PLAIN_WORD = re.compile(r"(?!(?:null|true|false|yes|no)\Z)[A-Za-z_]\w*", re.IGNORECASE)  # as a text of YAML
_HARMLESS = re.compile(r"[\t\n\x20-\x7e]*")
_CLOSING = {"[": "]", "{": "}"}
_NESTED_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{},]')


def escape_invisible(text: str) -> str:
    r"""Return the text with escapes such as `\x1b` for characters that act or are invisible; tabs and line feeds stay.

    These are control characters, halves of surrogate pairs, marks that turn the direction of text, and invisible
    characters. A line end of Windows becomes a line feed.
    """
    if _HARMLESS.fullmatch(text):  # as most are; the other pattern takes longer
        return text
    return UNSEEN.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    if _LOOK_OF_EMOJI.match(match.string, match.start()):
        return match.group()
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 2**8 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"


def utf8_safe(text: str) -> str:
    """Return the text with escapes for halves of surrogate pairs, so that it can be written as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def terminal_safe(text: str) -> str:
    """Return the text without known secrets, and escaped as `escape_for_terminal` does."""
    return escape_for_terminal(redact(text))


def escape_for_terminal(text: str) -> str:
    """Return a text without secrets in a form that a terminal or a CI log only shows and never obeys.

    Tabs and line feeds stay. `##`, which starts commands of CI services anywhere in a line, is split. Put untrusted
    text behind a margin, because `::` at the start of a line is a command, too.
    """
    return escape_invisible(text).replace("##", "#\\x23")


def log_line(text: str) -> str:
    """Return the text as one line for a CI log, without secrets and escaped.

    A line that begins with `::` gets a margin.
    """
    line = terminal_safe(text).replace("\n", " ")
    return f"| {line}" if line.lstrip().startswith("::") else line


def cut(text: str, characters: int) -> str:
    """Return a text unchanged, or if it is longer than `characters`, its beginning with an ellipsis.

    Secrets are not removed, so that the same report looks the same in any environment.
    """
    return text if len(text) <= characters else text[: characters - 1] + "…"


def cut_middle(text: str, characters: int) -> str:
    """Return a text unchanged, or if it is longer than `characters`, its beginning and its end around an ellipsis.

    Secrets are not removed.
    """
    end = characters // 2
    return text if len(text) <= characters else f"{text[: characters - end - 1]}…{text[len(text) - end :]}"


def truncate(text: str, characters: int) -> str:
    """Return a text unchanged, or if it is longer than `characters`, its beginning without secrets and an ellipsis."""
    return text if len(text) <= characters else cut(redact(text), characters)


def truncate_middle(text: str, characters: int) -> str:
    """Return a text unchanged, or if it is longer, its beginning and end without secrets around an ellipsis."""
    return text if len(text) <= characters else cut_middle(redact(text), characters)


def even_limit(sizes: Iterable[int], total: int) -> int:
    """Return the greatest common limit by which texts of these sizes have at most `total` characters once cut.

    >>> even_limit([5, 100, 30], total=60), even_limit([5, 100, 30], total=200)
    (27, 100)
    """
    ordered_sizes = sorted(sizes)
    for place, size in enumerate(ordered_sizes):
        share = total // (len(ordered_sizes) - place)
        if size > share:
            return share
        total -= size
    return max(ordered_sizes, default=0)


def escape_line(text: str, characters: int) -> str:
    """Return a text without secrets on one line, without invisible characters, cut to `characters`."""
    return cut(escape_invisible(" ".join(text.split())), characters)


def one_line(text: str, characters: int = CELL_CHARACTERS) -> str:
    """Return a text on one line, without secrets, safe for terminals, and cut to `characters`."""
    return cut(_line(text, characters), characters)


def one_line_with_end(text: str, characters: int) -> str:
    """Return a text as `one_line` does, but cut in the middle, so that its end is shown as well."""
    return cut_middle(_line(text, characters), characters)


def _line(text: str, characters: int) -> str:
    excerpt = cut_middle(redact(text), AHEAD * characters)  # the rest costs time and is not shown
    line = " ".join(excerpt.split())
    return escape_for_terminal(line if line == excerpt else redact(line))  # a secret may have been broken into lines


def cell_text(cell: object, characters: int) -> str:
    """Return a cell of a table on one line, cut to about `characters`.

    An empty text, or one with blanks around, in quotes.

    >>> cell_text(None, 40), cell_text(True, 40), cell_text(" a", 40), cell_text(0.5, 40)
    ('NULL', 'true', "' a'", '0.5')
    """
    if cell is None:
        return "NULL"
    if isinstance(cell, bool):
        return str(cell).lower()
    is_quoted = isinstance(cell, str) and (not cell or cell != cell.strip())
    return one_line_with_end(repr(cell) if is_quoted else cut_nested(str(cell), characters), characters)


def cut_nested(text: str, characters: int) -> str:
    """Return the JSON text of a list or an object cut to its first elements if it is too long; other texts unchanged.

    It is also returned unchanged if not even one element fits.

    >>> cut_nested('[{"name": "tyre", "worn": 0.891}, {"name": "bell"}]', 40)
    '[{"name": "tyre", "worn": 0.891}, …]'
    >>> cut_nested('[{"name": "tyre", "worn": 0.891}, {"name": "bell"}]', 25)
    '[{"name": "tyre", …}, …]'
    >>> cut_nested('[{"name": "tyre", "worn": 0.891}]', 25)
    '[{"name": "tyre", …}]'
    """
    if len(text) <= characters or (text[:1], text[-1:]) not in (("[", "]"), ("{", "}")):
        return text
    closing, commas = "", list[tuple[int, str]]()
    for match in _NESTED_TOKEN.finditer(text, 0, AHEAD * characters):
        part = match.group()
        if part in _CLOSING:
            closing = _CLOSING[part] + closing
        elif part == ",":
            commas.append((match.start(), closing))
        elif part == closing[:1]:
            closing = closing[1:]
        if not closing and match.end() < len(text):
            return text
    fitting = [at for at, (end, ends) in enumerate(commas) if end + len(", …") * len(ends) + len(ends) <= characters]
    if not fitting:
        return text
    end, closing = commas[fitting[-1]]
    depth, continued = len(closing), set[int]()
    for _, ends in commas[fitting[-1] :]:
        depth = min(depth, len(ends))
        continued |= {depth} & {len(ends)}
    depths = range(len(closing), 0, -1)
    return text[:end] + "".join(", …" * (at in continued) + mark for at, mark in zip(depths, closing, strict=True))


def flow_text(value: object) -> str:
    """Return a JSON value, such as a setting, as YAML on one line.

    >>> flow_text({"lists": {"by": "id"}, "ignore": ["$.a"], "case": "ignore"})
    '{lists: {by: id}, ignore: ["$.a"], case: ignore}'
    """
    match value:
        case dict():
            return f"{{{', '.join(f'{key}: {flow_text(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(flow_text, value))}]"
        case str() if _PLAIN_WORD.fullmatch(value):
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


def format_score(value: float | None) -> str:
    """Return a score with three decimals; `n/a` for None."""
    return "n/a" if value is None else f"{value:.3f}"


def format_amount(value: float) -> str:
    """Return a number of seconds, tokens or money with four significant digits, or from 1,000 on as a whole number.

    >>> format_amount(0.0123456), format_amount(12.0), format_amount(1_234_567.8)
    ('0.01235', '12', '1,234,568')
    """
    return f"{value:.4g}" if abs(value) < 1_000 else f"{value:,.0f}"


def signed(value: float) -> str:
    """Return a change with its sign and three decimals; `0.000` if that would be zero.

    >>> signed(0.25), signed(-0.0001)
    ('+0.250', '0.000')
    """
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000"


def p_text(p: float) -> str:
    """Return a p-value with three decimals; `< 0.001` for a smaller value.

    >>> p_text(0.04), p_text(0.0004)
    ('0.040', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_interval(ci95: Sequence[float] | None, number: Callable[[float], str] = format_score) -> str:
    """Return an interval as "LOW to HIGH", its ends formatted by `number`; empty for None."""
    return "" if ci95 is None else f"{number(ci95[0])} to {number(ci95[1])}"


def limits_text(minimum: float | None, maximum: float | None) -> str:
    """Return in words which values limits allow; empty without a limit.

    >>> limits_text(0.85, 0.99)
    'at least 0.85 and at most 0.99'
    """
    limits = (("at least", minimum), ("at most", maximum))
    return " and ".join(f"{words} {limit:,.10g}" for words, limit in limits if limit is not None)


def minute_of(created: str) -> str:
    """Return the date and the time up to the minute of a time in the form of ISO 8601.

    >>> minute_of("2024-05-01T10:00:00+00:00")
    '2024-05-01 10:00'
    """
    return created[:16].replace("T", " ")


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural.

    >>> pluralize(1, "case"), pluralize(2_000, "case"), pluralize(2, "query"), pluralize(3, "difficulty")
    ('1 case', '2,000 cases', '2 queries', '3 difficulties')
    """
    if number != 1:
        noun = f"{noun.removesuffix('y')}ies" if noun.endswith(("ry", "ty")) else f"{noun}s"
    return f"{number:,} {noun}"


def and_more(number: int, noun: str = "") -> str:
    """Return the end of a list that says how many things are left out; empty if none are.

    >>> and_more(2), and_more(1, "case"), and_more(0)
    (' and 2 more', ' and 1 more case', '')
    """
    return f" and {pluralize(number, f'more {noun}') if noun else f'{number:,} more'}" if number > 0 else ""


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first `most` texts as a list in words, and how many texts are left out.

    >>> first_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return separator.join(texts[:most]) + and_more(len(texts) - most)


class Part(NamedTuple):
    """The lines of a part of a table, header first, and how many columns it has besides the column of names."""

    lines: list[str]
    columns: int


def split_table(header: Row, rows: Sequence[Row], *, width: int, whole_names: bool = False) -> list[Part]:
    """Return a table in parts that are at most `width` characters wide if possible.

    The first column has names and is aligned left; the others have numbers and are aligned right. Each part has the
    column of names and as many other columns as fit, at least one. Long names are cut in the middle to leave room for
    numbers, unless `whole_names` is true.
    """
    table = [header, *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(header))]
    if not whole_names:  # what all columns leave, or a third of the width where they do not fit anyway
        beside_all = width - sum(len(GAP) + column_width for column_width in widths[1:])
        widths[0] = min(widths[0], max(beside_all if beside_all >= MIN_NAME else width // 3, MIN_NAME))
    rows_with_names = [[one_line_with_end(row[0], widths[0]), *row[1:]] for row in table]
    padded_rows = [
        [row[0].ljust(widths[0]), *(cell.rjust(wide) for cell, wide in zip(row[1:], widths[1:], strict=True))]
        for row in rows_with_names
    ]
    return [
        Part([GAP.join([row[0], *(row[place] for place in places)]).rstrip() for row in padded_rows], len(places))
        for places in _places(widths, width)
    ]


def _places(widths: Sequence[int], width: int) -> Iterator[tuple[int, ...]]:
    """Yield the positions of the columns of each part, without that of the names; `widths` are those of the columns."""
    part: list[int] = []
    used_width = widths[0]
    for place in range(1, len(widths)):
        needed = len(GAP) + widths[place]
        if part and used_width + needed > width:
            yield tuple(part)
            part, used_width = [], widths[0]
        part.append(place)
        used_width += needed
    yield tuple(part)


def tell_apart(gold: str, predicted: str, characters: int) -> tuple[str, str] | None:
    r"""Return excerpts that tell apart two different texts that look the same.

    None if they look different or are equal. The excerpts begin shortly before the first difference. Up to the last
    difference, spaces and all characters outside of ASCII are escaped. Secrets are removed.

    >>> tell_apart("K\xf6ln", "Ko\u0308ln", 40), tell_apart("a b", "a\xa0b", 40), tell_apart("a", "b", 40)
    (('K\\xf6ln', 'Ko\\u0308ln'), ('a\\x20b', 'a\\xa0b'), None)
    """
    texts = [redact(text[: AHEAD * characters]) for text in (gold, predicted)]
    if texts[0] == texts[1] or len({cut_middle(_look(text), characters) for text in texts}) > 1:
        return None
    start, end = shared_ends(*texts)
    before = max(start - characters // 4, 0)
    excerpts = ["…" * bool(before) + _with_escapes(text, before, start, len(text) - end) for text in texts]
    return one_line(excerpts[0], characters), one_line(excerpts[1], characters)


def excerpts(gold: str, predicted: str, characters: int) -> tuple[str, str]:
    """Return two texts without secrets, each cut to `characters` around the part in which they differ.

    >>> excerpts("a" * 30 + "b" + "c" * 30, "a" * 30 + "d" + "c" * 30, 12)
    ('…abcccccccc…', '…adcccccccc…')
    """
    texts = [redact(gold), redact(predicted)]
    start, end = shared_ends(*texts)
    shorter, longer = sorted(map(len, texts))
    # The same place in both, so that what differs stands at the same place of both excerpts.
    first = max(0, min(start - max(1, (characters - (longer - start - end)) // 4), shorter - characters))
    return _excerpt(texts[0], start, end, first, characters), _excerpt(texts[1], start, end, first, characters)


def excerpt_change(change: str, characters: int) -> str:
    """Return a change, `before → after`, cut to about `characters` around the part in which both sides differ.

    Secrets are removed if the change is cut.

    >>> excerpt_change("a, b, c, d, e, f → a, b, c, x, e, f", 25)
    '…c, d, e, f → …c, x, e, f'
    """
    before, arrow, after = change.partition(" → ")
    if len(change) <= characters or not arrow:
        return truncate_middle(change, characters)
    room = even_limit([len(before), len(after)], characters - len(arrow))
    return arrow.join(excerpts(before, after, room))


def _excerpt(text: str, start: int, end: int, first: int, characters: int) -> str:
    """Return a text cut to `characters`, with an ellipsis at each cut.

    The part without the `start` first and `end` last characters differs; if it fits, the excerpt begins at about
    `first`, else the middle of that part is left out.
    """
    if len(text) <= characters:
        return text
    if len(text) - end - start > characters - 2:  # the beginning and the end of what differs
        start, end = (0 if alike <= characters // 4 else alike for alike in (start, end))
        before, after = "…" * bool(start), "…" * bool(end)
        return f"{before}{cut_middle(text[start : len(text) - end], characters - len(before + after))}{after}"
    first = max(first, len(text) - end - characters + 1)
    part = text[first : first + characters]
    before, after = "…" * (first > 0), "…" * (first + characters < len(text))
    return f"{before}{part[len(before) : len(part) - len(after)]}{after}"


def shared_ends(first: Sequence[object], second: Sequence[object]) -> tuple[int, int]:
    """Return how many members two sequences have in common at their beginning, and how many of the others at their end.

    >>> shared_ends("abcbc", "abc"), shared_ends("ab", "ab")
    ((3, 0), (2, 0))
    """
    shortest = min(len(first), len(second))
    start = _count_alike(lambda at, to: first[at:to] == second[at:to], shortest)
    sides = (first, len(first)), (second, len(second))

    def ends_are_alike(at: int, to: int) -> bool:
        one, other = (side[length - to : length - at] for side, length in sides)
        return one == other

    return start, _count_alike(ends_are_alike, shortest - start)


def _count_alike(are_alike: Callable[[int, int], bool], most: int) -> int:
    """Return the greatest number, up to `most`, of first members that are alike.

    `are_alike(at, to)` says whether the members from position `at` to before `to` are.
    """
    known, size = 0, most
    while size:
        size = min(size, most - known)
        if are_alike(known, known + size):
            known += size
        else:
            most = known + size - 1
            size //= 2
    return known


def _look(text: str) -> str:
    """Return a text as it looks: with one space for any blanks, and with accents in one form."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _with_escapes(text: str, before: int, start: int, end: int) -> str:
    """Return the text from `before` on, in which spaces and non-ASCII characters from `start` to `end` are escaped."""
    escapes = (
        "\\x20" if character == " " else character.encode("unicode_escape").decode() for character in text[start:end]
    )
    return f"{text[before:start]}{''.join(escapes)}{text[end:]}"
