"""Search of untrusted texts by regular expressions, some of which take forever on some texts."""

from __future__ import annotations

from pathlib import Path

from pytest_queryeval.core.model import Failure
from pytest_queryeval.sandbox.host import QUERY_CHARACTERS, Host, Hosts

_DRIVER = Path(__file__).with_name("pattern_child.py")
PATTERN_SECONDS = 5.0


def is_match(pattern: str, text: str, hosts: Hosts) -> bool | Failure:
    """Return whether a pattern matches anywhere in the first QUERY_CHARACTERS characters of a text.

    Return a failure where that is not known within PATTERN_SECONDS. A blank text never matches. Raise `SourceError`
    if no child process can be started.
    """
    if not (head := text[:QUERY_CHARACTERS]).strip():
        return False
    host = hosts.shared(Host("pattern", _DRIVER))
    execution = host.execute({"pattern": pattern}, head, timeout=PATTERN_SECONDS, max_rows=1)
    return execution.error or (execution.table is not None and bool(execution.table.rows))
