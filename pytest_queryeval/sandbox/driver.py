"""What drivers in child processes share: interface, errors, answers, files, RDF terms, an alarm, words of SQL.

Parents and children import it. It imports the standard library only, so that children start quickly.
"""

from __future__ import annotations

import math
import os
import re
import resource
import stat
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import Any, Protocol, TypeAlias

Settings: TypeAlias = dict[str, Any]  # of a request, as its engine sends them: plain values
# The names of the columns, and a function that returns the next `count` rows as tuples of plain values: fewer than
# that at the end, or None if all rows start again.
Answer: TypeAlias = tuple[tuple[str, ...], Callable[[int], list[Any] | None]]
# ("failure", kind of a `Failure`, text) where the query is at fault, ("fault", text) where the source is. The text of a
# timeout is empty, unless something other than the driver stopped the query.
Verdict: TypeAlias = tuple[str, ...]
# An RDF term: None, the boolean of ASK, the text of an IRI, (label,) of a blank node, (text, datatype, language) of a
# literal, ("triple", subject, predicate, object) of a triple term; the text of one that is nested too deeply.
Term: TypeAlias = "bool | str | tuple[str] | tuple[str, str, str] | tuple[str, Term, Term, Term] | None"
MAX_NESTED_TERMS = 50
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
_BEFORE_WORD = re.compile(r"(?:[\s(;]|--[^\n]*(?:\n|$))*")
_FIRST_WORD = re.compile(r"\w*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
# All of a text is one or the other of these, by the rules of standard SQL and of SQLite.
_PARTS = re.compile(
    r"""(?P<semicolon>;)|(?P<blank>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<word>'[^']*'|"[^"]*"|`[^`]*`|\[[^]]*(?:\]|\Z)|\w+|.)""",
    re.DOTALL,
)
FILES_REFUSED = "a query may not read or write files"
HEADER_BYTES = 400
_SIGNATURES = (
    (b"SQLite format 3\0", "a SQLite database: name it under `sqlite`"),
    (b"PAR1", "a Parquet file: name it under `duckdb: {tables: {TABLE: FILE}}`"),
    (b"PK\x03\x04", "a ZIP archive or a workbook: unpack it"),
    (b"\x1f\x8b", "compressed by gzip: unpack it"),
    (b"version https://git-lfs", "a pointer of Git LFS: fetch the file with `git lfs pull`"),
)
_DUCKDB = b"DUCK"  # behind a checksum
_TEXT_CONTROLS = frozenset(b"\t\n\r\f")


class Driver(Protocol):
    """Runs queries in a child process. `host_child` loads a file and creates the class named `Driver` in it."""

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Start `query` and return its answer, whose rows are fetched later.

        `settings` are the settings that the parent gave to its host. `timeout` is in seconds: the driver stops the
        query by itself if it can. Raises errors that `classify` knows.
        """

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error that another method of this driver raised."""


class TableDriver(Driver, Protocol):
    """A driver that can also list the tables and columns of a source."""

    def reads(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Return the columns that a query reads, as rows of table, column and view.

        Implemented only by drivers whose engine can list them.
        """

    def describe(self, settings: Settings) -> Answer:
        """Return the columns of all tables, as rows of table, column, type, and the table and column of a foreign key.

        The last two cells are None for a column without a foreign key.
        """

    def ddl(self, settings: Settings) -> Answer:
        """Return the statements that create the tables, as rows of one text, in an order by name."""


class Fault(Exception):  # noqa: N818 - the source's, not an error of the driver
    """The source cannot be read or does not work. The query is not to blame."""


class Refused(Exception):  # noqa: N818 - an outcome of the query
    """The query does more than read, so the driver did not run it."""


class TooLarge(Exception):  # noqa: N818 - an outcome of the query
    """The answer exceeds a limit. `host_child` handles this error, so `classify` need not know it."""


def too_many_rows(max_rows: int) -> TooLarge:
    """Return, not raise, the error for an answer of more than `max_rows` rows."""
    return TooLarge(f"more than {max_rows:,} rows: raise `max_rows` if there may be more")


def make_answer(columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Answer:
    """Return an `Answer` with these columns, which takes rows from the iterable only when they are fetched."""
    row_iterator = iter(rows)
    return columns, lambda count: list(islice(row_iterator, count))


def read_header(path: str, size: int) -> bytes:
    """Return the first `size` bytes of a file.

    Raises `Fault` if the file does not exist, is empty, or is not a regular file. Raises the OSError of `open` if it
    cannot be read.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - as in `signature`
    except FileNotFoundError as error:
        raise Fault("no such file") from error
    if not stat.S_ISREG(status.st_mode):
        raise Fault("a directory, not a file" if stat.S_ISDIR(status.st_mode) else "not a regular file")
    if not status.st_size:
        raise Fault("the file is empty")
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        return file.read(size)


def signature(path: str) -> tuple[int, ...]:
    """Return inode, size and modification time (ns) of the file at `path`; () if there is no such file.

    A change of the file changes the tuple.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, twice a query
    except FileNotFoundError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def limit(name: int, amount: int) -> None:
    """Lower a resource limit of this process, such as RLIMIT_AS, to `amount` or to the lower hard limit.

    Raises ValueError or OSError if the system does not allow it.
    """
    hard = resource.getrlimit(name)[1]
    amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(name, (amount, amount))


def encode_term(term: Any, level: int = 0) -> Term:
    """Return a term of pyoxigraph or rdflib as a `Term` of plain values.

    Terms are recognised by the name of their class, so that neither library is imported. Unknown terms, and triples
    nested deeper than MAX_NESTED_TERMS, become their text in `<<( )>>`.
    """
    match type(term).__name__:
        case "NoneType":
            return None
        case "NamedNode":
            return term.value  # type: ignore[no-any-return]
        case "URIRef":
            return str(term)
        case "BlankNode":
            return (term.value,)
        case "BNode":
            return (str(term),)
        case "Literal" if isinstance(term, str):  # rdflib's terms are texts
            return str(term), str(term.datatype or ""), term.language or ""  # type: ignore[attr-defined]
        case "Literal":
            return term.value, term.datatype.value, language_tag(term.language or "", term.direction)
        case "TripleIRI":  # of `rdflib_child`
            return encode_term(term.triple, level)
        case "Triple" if level < MAX_NESTED_TERMS:
            parts = (encode_term(part, level + 1) for part in (term.subject, term.predicate, term.object))
            return ("triple", *parts)  # type: ignore[return-value]  # three parts
        case _:
            return f"<<( {term} )>>"


def language_tag(language: str, direction: object) -> str:
    """Return `language--direction` for a text with a base direction, otherwise the language alone."""
    return f"{language}--{direction}" if direction else language


class Alarm:
    """Calls functions after given times, in one thread for all queries.

    A thread for each query would cost more than a small query.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: list[tuple[float, Callable[[], object]]] = []
        self._wakes = math.inf
        self._rung = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def set(self, *calls: tuple[float, Callable[[], object]]) -> None:
        """Schedule each function after its number of seconds, in ascending order; replaces earlier calls."""
        with self._changed:
            self._pending, self._rung = [(monotonic() + seconds, function) for seconds, function in calls], 0
            if self._pending[0][0] < self._wakes:
                self._changed.notify()

    def clear(self) -> int:
        """Cancel the remaining calls and return how many calls were made since `set`.

        Waits for a call that is being made. Errors of the called functions are ignored.
        """
        with self._changed:
            rung, self._pending, self._rung = self._rung, [], 0
            return rung

    def _watch(self) -> None:
        with self._changed:
            while True:
                self._wakes = self._pending[0][0] if self._pending else math.inf
                seconds_left = self._wakes - monotonic()
                if seconds_left > 0:
                    self._changed.wait(None if seconds_left == math.inf else seconds_left)
                    continue
                _, function = self._pending.pop(0)
                self._rung += 1
                with suppress(Exception):  # the query has ended, or its connection broke: the parent's limit holds
                    function()


def first_word(query: str, *, is_nesting: bool = False) -> str:
    """Return the first word of a query in lower case; empty if there is none.

    Comments, parentheses and semicolons before the word are skipped. `is_nesting` says whether comments may contain
    comments, as in PostgreSQL and DuckDB.

    >>> first_word("/* /* */ SELECT */ DROP"), first_word("/* /* */ SELECT */ DROP", is_nesting=True)
    ('select', 'drop')
    """
    depth, start = 0, _end_of(_BEFORE_WORD, query, 0)
    while query.startswith("/*", start):
        for mark in _COMMENT_MARK.finditer(query, start):
            depth = depth - 1 if mark[0] == "*/" else depth + 1 if is_nesting else 1
            if depth == 0:
                start = _end_of(_BEFORE_WORD, query, mark.end())
                break
        else:
            return ""
    return query[start : _end_of(_FIRST_WORD, query, start)].lower()


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def strip_trailing_semicolons(query: str) -> str:
    """Return a query without its trailing semicolons, and without the comments between and behind them.

    A query without trailing semicolon stays as it is. Drivers accept at most one semicolon, and only comments after it.

    >>> strip_trailing_semicolons("SELECT ';' /* all */;; /* now; */ ; -- done")
    "SELECT ';' /* all */"
    """
    end = None
    for part in _PARTS.finditer(query) if ";" in query else ():
        if part.lastgroup == "word":
            end = None
        elif part.lastgroup == "semicolon" and end is None:
            end = part.start()
    return query[:end]


def split_at_semicolons(query: str) -> list[str]:
    """Return the statements between the semicolons of a query, without blanks and comments around them.

    Texts without a word are left out. Semicolons in quotes and comments do not split.

    >>> split_at_semicolons("SELECT ';'; /* all */; This counts; all rows. -- ;")
    ["SELECT ';'", 'This counts', 'all rows.']
    """
    texts, start, end = [], -1, -1
    for part in _PARTS.finditer(query):
        if part.lastgroup == "word":
            start, end = (part.start() if start < 0 else start), part.end()
        elif part.lastgroup == "semicolon" and start >= 0:
            texts.append(query[start:end])
            start = -1
    return texts if start < 0 else [*texts, query[start:end]]


def quoted(name: str) -> str:
    """Return an SQL name in double quotes, with its own double quotes doubled."""
    return '"' + name.replace('"', '""') + '"'


def wrong_file_problem(name: str, header: bytes) -> str:
    """Return the problem text for a file that is not a database of `name`, such as SQLite.

    `header` are its first bytes. If they show what the file is, the text says so and gives the remedy.

    >>> wrong_file_problem("SQLite", b"CREATE TABLE singer (name text);")
    'not a SQLite database, but a text file with SQL: write `source: {sqlite: {script: FILE}}`'
    """
    content = next((text for start, text in _SIGNATURES if header.startswith(start)), "")
    if header[8:12] == _DUCKDB:
        content = "a DuckDB database: name it under `duckdb`"
    elif not content and not any(byte < 32 and byte not in _TEXT_CONTROLS for byte in header):
        text = header.decode("utf-8", "replace").removeprefix("\ufeff")
        if first_word(text) in COMMANDS:
            content = f"a text file with SQL: write `source: {{{name.lower()}: {{script: FILE}}}}`"
        else:
            content = "a text file: if it contains a table, write `source: {duckdb: {tables: {TABLE: FILE}}}`"
    return f"not a {name} database" + (f", but {content}" if content else "")
