"""Texts of stored reports as formats show them: every character is seen, and none acts.

Secrets are out of a report before it is made. To look for them again, as `plain.printable` does, would make another
file of it where the environment is another one. Imports nothing of the package.
"""

from __future__ import annotations

import re

# Control characters, halves of surrogate pairs, what XML forbids, what turns the direction of text, what is invisible.
# Joiners stay, as words and pictures are made with them, and so do the selectors of an emoji's look behind one, and in
# keys such as 1 in a square. The script of pages, text.js, has the same.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LOOK_OF_EMOJI = re.compile(
    r"[\ufe0e\ufe0f](?:(?=\u20e3)|(?<=[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u23ff\u2460-\u27ff\u2900-\u2bff\u3030"
    r"\u303d\u3297\u3299\U0001f000-\U0001faff].))"
)
_HARMLESS = re.compile(r"[\t\n\x20-\x7e]*")


def visible(text: str) -> str:
    r"""The text with escapes such as `\x1b` for what would act or hide; tabs and line feeds stay.

    That are control characters, halves of surrogate pairs, what turns the direction of text, and what is invisible.
    """
    if _HARMLESS.fullmatch(text):  # as most are; the other pattern takes longer
        return text
    return _UNSEEN.sub(_escaped, text.replace("\r\n", "\n"))


def visible_line(text: str, characters: int) -> str:
    """The text as one visible line, cut to a number of characters."""
    line = visible(" ".join(text.split()))
    return cut(line, characters)


def cut(text: str, characters: int) -> str:
    """The text, or its beginning with an ellipsis where it is longer."""
    return text if len(text) <= characters else text[: characters - 1] + "\u2026"


def _escaped(match: re.Match[str]) -> str:
    if _LOOK_OF_EMOJI.match(match.string, match.start()):
        return match.group()
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 2**8 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
