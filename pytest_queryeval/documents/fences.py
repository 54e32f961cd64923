"""Fenced code blocks in Markdown, as language models answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})([^\n]*)(?:\n|\Z)", re.MULTILINE)


class _Block(NamedTuple):
    """A fenced block: its opening fence and info string, its indentation, the start and the end of its content."""

    fence: str
    info: str
    indentation: int
    start: int
    end: int


class CodeBlock(NamedTuple):
    """A fenced block: its fence and info string, its content, and whether a fence closes it."""

    fence: str
    info: str
    content: str
    is_closed: bool

    @property
    def language(self) -> str:
        """The first word of the info string, in lower case."""
        return _first_word(self.info)


def unfenced(text: str, *, languages: Collection[str] = ()) -> tuple[str, int]:
    r"""Return the content of the one fenced code block in a text, and its first line; else the text itself, and 1.

    Of several blocks it is the only one whose info string begins with one of the `languages`, in any case. Fences
    are those of CommonMark outside of lists and quotes; a block that nothing closes ends with the text. The content
    has no line end at its end. The time is linear in the text.

    >>> unfenced("Here it is:\n```json\n{}\n```\nThat is all.", languages=("json",))
    ('{}', 3)
    >>> unfenced("SELECT 1")
    ('SELECT 1', 1)
    """
    blocks: list[_Block] = []
    only: _Block | None = None
    for number, block in enumerate(_blocks(text)):
        only = block if number == 0 else None
        if _first_word(block.info) in languages:
            blocks.append(block)
        if (number and not languages) or len(blocks) > 1:
            return text, 1
    chosen = only or (blocks[0] if blocks else None)
    return (text, 1) if chosen is None else (_content(text, chosen), text.count("\n", 0, chosen.start - 1) + 2)


def has_several_blocks(text: str) -> bool:
    """Return whether a text has more than one fenced code block."""
    return len(list(islice(_blocks(text), 2))) > 1


def code_blocks(text: str) -> Iterator[CodeBlock]:
    """Yield the fenced code blocks of a text, as `unfenced` finds them."""
    for block in _blocks(text):
        yield CodeBlock(block.fence, block.info.strip(), _content(text, block), is_closed=block.end < len(text))


def _blocks(text: str) -> Iterator[_Block]:
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            # Backticks followed by backticks are code within a line.
            opening = fence if fence[2][0] == "~" or "`" not in fence[3] else None
        elif fence[2].startswith(opening[2]) and not fence[3].strip(" \t\r"):
            yield _block(opening, fence.start())
            opening = None
    if opening is not None:
        yield _block(opening, len(text))


def _block(opening: re.Match[str], end: int) -> _Block:
    return _Block(fence=opening[2], info=opening[3], indentation=len(opening[1]), start=opening.end(), end=end)


def _first_word(info: str) -> str:
    words = info.split(maxsplit=1)
    return words[0].lower() if words else ""


def _content(text: str, block: _Block) -> str:
    content = text[block.start : block.end].removesuffix("\n").removesuffix("\r")
    return re.sub(rf"(?m)^ {{1,{block.indentation}}}", "", content) if block.indentation else content
