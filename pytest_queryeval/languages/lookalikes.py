"""Characters in a query that look like those of its language: spaces that do not break, curly quotes, long dashes."""

from __future__ import annotations

import re
import unicodedata

# By the remedy: the text to write instead.
_INSTEAD = {
    "a space": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "nothing": "\u00ad\u200b\u200c\u200d\u2060\ufeff",
    "a straight quote": "\u2018\u2019\u201a\u201b\u2032\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u2039\u203a",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d",
    "its ASCII form": "\uff08\uff09\uff0c\uff1b\uff1d\uff1c\uff1e\uff0a\uff0e\uff0f\uff0b",
}
_REMEDIES = {character: remedy for remedy, characters in _INSTEAD.items() for character in characters}
LOOKALIKES = f"[{''.join(_REMEDIES)}]"


def lookalike(query: str, parts: re.Pattern[str]) -> str:
    """Return the place of the first such character outside of strings and comments, and what to write; else nothing.

    `parts` finds strings, comments, the group `open` of a string that does not end, and LOOKALIKES as `lookalike`.
    """
    for part in parts.finditer(query):
        if part.lastgroup == "open":
            return ""
        if part.lastgroup == "lookalike":
            line = query.count("\n", 0, part.start()) + 1
            column = part.start() - query.rfind("\n", 0, part.start())
            name = unicodedata.name(part[0]).lower()
            return f"line {line}, column {column} is U+{ord(part[0]):04X}, {name}: write {_REMEDIES[part[0]]}"
    return ""
