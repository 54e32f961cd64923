"""Texts of stored reports as formats show them: every character is seen, and none acts.

Secrets are out of a report before it is made. To look for them again, as `plain.printable` does, would make another
file of it where the environment is another one.
"""

from __future__ import annotations

import re

# As `plain.printable` has them, and the two that XML forbids besides.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""The text with escapes such as `\x1b` for what would act or hide: control and bidi characters, half surrogates.

    Tabs and line feeds stay.
    """
    if text.isprintable():
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
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 2**8 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
