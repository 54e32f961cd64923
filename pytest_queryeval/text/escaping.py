"""Characters that would act or hide become escapes, for terminals, logs and files."""

from __future__ import annotations

import re

from pytest_queryeval.text.redaction import redact

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
_HARMLESS = re.compile(r"[\t\n\x20-\x7e]*")


def escape_invisible(text: str) -> str:
    r"""Return the text with escapes such as `\x1b` for what would act or hide; tabs and line feeds stay.

    These are control characters, halves of surrogate pairs, marks that turn the direction of text, and invisible ones.
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
    """Return text that can be written as UTF-8: lone surrogates become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def terminal_safe(text: str) -> str:
    """Return `escape_for_terminal` of a text without its secrets."""
    return escape_for_terminal(redact(text))


def escape_for_terminal(text: str) -> str:
    """Return a text, which holds no secrets, so that a terminal or a CI log shows and never obeys it.

    Tabs and line feeds stay. `##`, which starts commands of CI services anywhere in a line, is split. Put untrusted
    text behind a margin: `::` at the start of a line is a command too.
    """
    return escape_invisible(text).replace("##", "#\\x23")


def log_line(text: str) -> str:
    """Return `terminal_safe` text as one line that no CI service takes for a command, which would begin with `::`."""
    line = terminal_safe(text).replace("\n", " ")
    return f"| {line}" if line.lstrip().startswith("::") else line
