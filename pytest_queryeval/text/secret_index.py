"""How secrets are found in texts: in every spelling in which they may come back, and in part.

Also imported by child processes: needs nothing else of the package.
"""

from __future__ import annotations

import heapq
import html
import json
import re
from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import quote, quote_plus, unquote

SECRET = 6  # characters; shorter texts stand everywhere
PART = 12  # so many characters of a secret in a row are taken out even where something has cut the rest
RUN = 8  # so many characters, where they look random, tell a part that stands between marks
ENDS = 4_096  # characters; of what is longer than two of these, parts of the ends alone are looked for
GRAM = 4
_OPAQUE = re.compile(r"""(?!(?:/[\w.@+-]+){2,}/?\Z)[^\s"':]+""")  # no words, and no path of a file that is not there
_RUN = re.compile(rf"\w{{{RUN},}}")
_RANDOM = re.compile(r"(?![A-Z]?[a-z]+[0-9]{0,4}(?![^\W_]))(?=[0-9]*[^\W\d_])(?=[^\W\d_]*[0-9])[^\W_]{6}")
_HEX = re.compile("%[0-9A-F]{2}")
# Escapes that writers choose as they like: a text with one of these is also looked through as it reads.
_OF_URLS, _OF_HTML = re.compile("%[0-9A-Fa-f]{2}"), re.compile("&(?:#|apos;|sol;)")
_ESCAPE = re.compile(
    r"\\u[0-9A-Fa-f]{4}|\\[\"'/\\]|&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos|sol);"
    r"|%[2-7][0-9A-Fa-f]|(?:%[89A-Fa-f][0-9A-Fa-f])+"
)
Span: TypeAlias = tuple[int, int]  # where a secret begins and ends


class SecretIndex:
    """What to look for: pieces by their lengths, whole texts, and GRAM characters at each place of any of them.

    Long pieces come first, since they may cover short ones. Each piece, and each text, holds a gram at every `step`-th
    place of whatever text it is found in. All are counted, so that a secret can be taken from the index while other
    threads read it.
    """

    def __init__(self) -> None:
        self.pieces: dict[int, dict[str, int]] = {length: {} for length in range(PART, SECRET - 1, -1)}
        self.texts: dict[str, int] = {}
        self.grams: dict[str, int] = {}

    def change(self, value: str, by: int) -> None:
        """Add a secret, by 1, or take one away that was added, by -1."""
        pieces, texts, grams = _sought(value)
        for piece in pieces:
            _count(self.pieces[len(piece)], piece, by)
        for text in texts:
            _count(self.texts, text, by)
        for gram in grams:
            _count(self.grams, gram, by)

    def without(self, text: str, mark: str) -> str:
        """The text with one mark for all secrets that overlap or touch; takes time in proportion to the text."""
        pieces = [(length, known) for length, known in self.pieces.items() if known]
        step = (pieces[-1][0] if pieces else PART) - GRAM + 1
        spans: list[Iterable[Span]] = []
        if self._has_gram(text, step):
            spans.append(self._found(text, range(0, len(text) - GRAM + 1, step), step, pieces))
        if _has_escapes(text) and self._has_gram(_ESCAPE.sub(lambda escape: _meant(escape[0]), text), step):
            read = _read(text)
            spans.append(map(read.span, self._found(read.text, read.places(step), step, pieces)))
        return _marked(text, mark, heapq.merge(*spans)) if spans else text

    def _has_gram(self, text: str, step: int) -> bool:
        places, ends = range(0, len(text) - GRAM + 1, step), range(GRAM, len(text) + 1, step)
        return not self.grams.keys().isdisjoint(map(text.__getitem__, map(slice, places, ends)))

    def _found(
        self, text: str, places: Iterable[int], step: int, pieces: list[tuple[int, dict[str, int]]]
    ) -> Iterator[Span]:
        """Where secrets stand, in order; what is looked for has a gram at one of the `places`."""
        hits = [place for place in places if text[place : place + GRAM] in self.grams]
        whole = (_places_of(known, text) for known in (list(self.texts) if hits else ()))
        return heapq.merge(_pieces_at(text, hits, step, pieces), *whole)


@dataclass(slots=True, kw_only=True)
class _Read:
    """A text as it reads without its escapes; where these begin and end, in both texts."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    read_starts: list[int] = field(default_factory=list)
    read_ends: list[int] = field(default_factory=list)

    def places(self, step: int) -> Iterator[int]:
        """Every `step`-th place near an escape, in order: what stands elsewhere is found without."""
        done = 0
        for start, end in zip(self.read_starts, self.read_ends, strict=True):
            first = max(done, start - PART, 0)
            done = min(end + PART, len(self.text) - GRAM + 1)
            yield from range(-(-first // step) * step, done, step)

    def span(self, read: Span) -> Span:
        """Where a span of the text that was read stands in the text; escapes are never cut in two."""
        start, end = read
        last, before = bisect_right(self.read_starts, start) - 1, bisect_left(self.read_starts, end) - 1
        if last >= 0:
            behind = start - self.read_ends[last]
            start = self.starts[last] if behind < 0 else self.ends[last] + behind
        if before >= 0:
            end = self.ends[before] + max(0, end - self.read_ends[before])
        return start, end


def _has_escapes(text: str) -> bool:
    return "\\/" in text or "\\u" in text or bool(_OF_HTML.search(text) or _OF_URLS.search(text))


def _read(text: str) -> _Read:
    found, done, parts, length = _Read(), 0, [], 0
    for escape in _ESCAPE.finditer(text):
        parts += [text[done : escape.start()], _meant(escape[0])]
        length += escape.start() - done
        done = escape.end()
        found.starts.append(escape.start())
        found.ends.append(done)
        found.read_starts.append(length)
        length += len(parts[-1])
        found.read_ends.append(length)
    found.text = "".join([*parts, text[done:]])
    return found


@lru_cache(maxsize=4_096)
def _meant(escape: str) -> str:
    """What an escape of JSON, HTML or a URL stands for."""
    if escape.startswith("\\"):
        return chr(int(escape[2:], 16)) if escape[1] == "u" else escape[1]
    return html.unescape(escape) if escape.startswith("&") else unquote(escape)


def _count(counts: dict[str, int], key: str, by: int) -> None:
    counts[key] = counts.get(key, 0) + by
    if not counts[key]:
        del counts[key]


def _pieces_at(
    text: str, hits: Iterable[int], step: int, pieces: list[tuple[int, dict[str, int]]]
) -> Iterator[tuple[int, int]]:
    """Where pieces begin and end, in order, but for those that others cover. Each place is looked at once."""
    end = 0
    for hit in hits:
        for start in range(max(0, hit - step + 1), hit + 1):
            for length, known in pieces:
                if start + length <= end:
                    break
                if text[start : start + length] in known:
                    end = start + length
                    yield start, end


def _places_of(known: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(known)
    while start >= 0:
        yield start, start + len(known)
        start = text.find(known, start + len(known))


def _marked(text: str, mark: str, spans: Iterable[tuple[int, int]]) -> str:
    done: list[str] = []
    end = 0
    for start, stop in spans:
        if start > end or not done:
            done += [text[end:start], mark]
        end = max(end, stop)
    return "".join([*done, text[end:]])


def _sought(value: str) -> tuple[set[str], set[str], set[str]]:
    """The pieces by which a secret and its parts are found, texts that are found as a whole only, grams of both."""
    pieces: set[str] = set()
    texts: set[str] = set()
    grams: set[str] = set()
    # Parts of what is made of words and marks stand elsewhere, too, but for those that look random.
    has_parts = _OPAQUE.fullmatch(value) is not None
    forms = {form: has_parts for form in _spellings(value) if len(form) >= SECRET}
    for form, is_cut in (forms | dict.fromkeys(_random_runs(value), True)).items():
        for end in {form[:ENDS], form[-ENDS:]}:
            grams.update(_cuts(end, GRAM))
            if is_cut or len(form) <= PART:
                pieces.update(_cuts(end, PART) if len(form) > PART else [form])
        if len(form) > (2 * ENDS if is_cut else PART):
            texts.add(form)
    return pieces, texts, grams


def _random_runs(value: str) -> Iterator[str]:
    """The parts of a secret that parsers tell alone, since marks stand around them, and that are no words."""
    return (run for run in _RUN.findall(value) if any(map(_RANDOM.match, run.split("_"))))


def _cuts(form: str, length: int) -> Iterator[str]:
    """Every `length` characters in a row."""
    return (form[start : start + length] for start in range(len(form) - length + 1))


def _spellings(value: str) -> set[str]:
    """A secret as programs write it: as it is, in URLs, JSON, Python, HTML, base64 and hexadecimal digits."""
    data = value.encode("utf-8", "surrogateescape" if _is_encodable(value) else "surrogatepass")
    urls = {quote(data), quote(data, safe=""), quote_plus(data)}
    escaped = {
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        ascii(value)[1:-1],
    }
    return {
        value,
        " ".join(value.split()),
        *urls,
        *(_HEX.sub(lambda code: code[0].lower(), url) for url in urls),
        *escaped,
        *(text.replace("\\'", "'") for text in escaped),
        html.escape(value),
        html.escape(value, quote=False),
        data.hex(),
        data.hex().upper(),
        *_base64(data),
    }


def _is_encodable(value: str) -> bool:
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _base64(data: bytes) -> Iterator[str]:
    """What base64 makes of the bytes alone, and what of it is always the same with others before and behind."""
    for before in range(3):
        text = b64encode(b"\0" * before + data).decode()
        whole = text[-(-8 * before // 6) : 8 * (before + len(data)) // 6]
        for spelled in (whole, *((text, text.rstrip("=")) if before == 0 else ())):
            yield spelled
            yield spelled.replace("+", "-").replace("/", "_")
