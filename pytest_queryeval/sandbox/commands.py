"""How a text of SQL begins and ends: its first word tells a command from a query. Also imported by child processes."""

from __future__ import annotations

import re

COMMANDS = frozenset(
    (
        *("abort", "alter", "analyse", "analyze", "attach", "begin", "call", "checkpoint", "close", "cluster"),
        *("comment", "commit", "copy", "create", "deallocate", "declare", "delete", "detach", "discard", "do"),
        *("drop", "end", "exec", "execute", "explain", "export", "fetch", "flush", "grant", "handler"),
        *("import", "insert", "install", "kill", "listen", "load", "lock", "merge", "move", "notify"),
        *("optimize", "pragma", "prepare", "purge", "reassign", "refresh", "reindex", "release", "rename"),
        *("repair", "replace", "reset", "revoke", "rollback", "savepoint", "security", "set", "show"),
        *("shutdown", "start", "truncate", "unlisten", "unlock", "update", "upsert", "use", "vacuum"),
    )
)
_FIRST_WORD = re.compile(r"(?:[\s(;]|--[^\n]*(?:\n|$)|/\*.*?\*/)*(\w*)", re.DOTALL)
# All of a text is one or the other of these, by the rules of standard SQL and of SQLite.
_PARTS = re.compile(
    r"""(?P<semicolon>;)|(?P<blank>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<word>'[^']*'|"[^"]*"|`[^`]*`|\[[^]]*(?:\]|\Z)|\w+|.)""",
    re.DOTALL,
)


def first_word(query: str) -> str:
    """Return the first word in lower case, behind comments, parentheses and semicolons; empty if there is none."""
    match = _FIRST_WORD.match(query)
    return match[1].lower() if match else ""


def without_end(query: str) -> str:
    """Return a query without the semicolons behind it, and the comments between and behind these.

    Drivers take one semicolon at most, and only comments after it.

    >>> without_end("SELECT ';' /* all */;; /* now; */ ; -- done")
    "SELECT ';' /* all */"
    """
    end = None
    for part in _PARTS.finditer(query) if ";" in query else ():
        if part.lastgroup == "word":
            end = None
        elif part.lastgroup == "semicolon" and end is None:
            end = part.start()
    return query[:end]
