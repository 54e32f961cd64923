"""The first word of a text of SQL, which tells a command from a query. Also imported by child processes."""

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


def first_word(query: str) -> str:
    """Return the first word in lower case, behind comments, parentheses and semicolons; empty where there is none."""
    found = _FIRST_WORD.match(query)
    return found[1].lower() if found else ""
