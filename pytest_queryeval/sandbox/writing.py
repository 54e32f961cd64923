"""What drivers of write queries share: copies of database files, and what statements changed in a database.

Children import it. It imports the standard library only.
"""

from __future__ import annotations

import atexit
import shutil
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from pytest_queryeval.sandbox.cells import Rows, without_common
from pytest_queryeval.sandbox.driver import Answer, Fault, Refused, make_answer, signature, too_many_rows

COPIES_BYTES = 8 * 2**30  # of all copies that are open
GROWTH_BYTES = 256 * 2**20  # that statements may add to a copy
REFUSED = "only statements that change or read tables are allowed"
PREPARED = make_answer(("table", "column", "type", "to_table", "to_column"), ())  # in answer to `describe`

Columns: TypeAlias = tuple[str, ...]
Content: TypeAlias = "tuple[Columns | None, Rows]"  # of a table or a view; None where there is none
Returned: TypeAlias = "tuple[Columns, Rows] | None"  # by the last statement that returns rows


class Relation(NamedTuple):
    """A table, a view or an index; its kind is "temporary" if it is not part of the database. Drivers may add kinds."""

    kind: str
    place: Any
    """By which the driver finds it."""
    label: str
    """The name of the table, also of an index, with its schema unless that is the default one."""
    quoted: str
    """The name for a statement."""
    definition: object
    """Another one once it is made again or altered; the statement that makes an index."""


Relations: TypeAlias = Mapping[Any, Relation]  # by what tells whether one is the same as before, such as its name


class SupportsClose(Protocol):
    """A connection that can be closed."""

    def close(self) -> None:
        """Close the connection."""


ConnectionT = TypeVar("ConnectionT", bound=SupportsClose)


class Copy(NamedTuple, Generic[ConnectionT]):
    """An open copy of a database, its size in bytes, and its tables, views and indexes.

    `state` are the signatures of the original file and its write-ahead log when the copy was made.
    """

    state: tuple[tuple[int, ...], tuple[int, ...]]
    size: int
    connection: ConnectionT
    relations: Relations


class Copies(Generic[ConnectionT]):
    """Keeps copies of the last database files open, of COPIES_BYTES bytes in all.

    A copied file is unlinked once it is open, so that no file is left behind, however the process ends. `make` copies
    the database at the first path to the second path, opens the copy, and reads its relations. `log` is the suffix of
    the write-ahead log of a database file.
    """

    def __init__(self, log: str, make: Callable[[str, Path], tuple[ConnectionT, Relations]]) -> None:
        self._log, self._make = log, make
        self._open: OrderedDict[str, Copy[ConnectionT]] = OrderedDict()
        self._folder, self._numbers = Path.cwd(), count()
        atexit.register(self._folder.rmdir)  # the parent is gone, or it would have killed this process

    def get(self, path: str) -> Copy[ConnectionT]:
        """Return the open copy of a database; make a new copy if there is none or the file has changed.

        Closes the copies that were used least recently if there is no room. Raises `Fault` if the file cannot be
        copied.
        """
        try:
            state = signature(path), signature(f"{path}{self._log}")
            if path in self._open and self._open[path].state != state:
                self.drop(path)
            if path not in self._open:
                size = sum(file[1] for file in state if file)
                self._make_room(size)
                self._open[path] = Copy(state, size, *self._copy(path))
        except OSError as error:
            raise Fault(error.strerror or str(error)) from error
        self._open.move_to_end(path)
        return self._open[path]

    def drop(self, path: str) -> None:
        """Close the copy of a database, if there is one, so that the next query gets a new copy."""
        if path in self._open:
            self._open.pop(path).connection.close()

    def close(self) -> None:
        """Close all copies."""
        for path in [*self._open]:
            self.drop(path)

    def _make_room(self, size: int) -> None:
        if size > COPIES_BYTES:
            raise Fault(f"{size:,} bytes are too large to copy: at most {COPIES_BYTES:,}")
        while self._open and size + sum(copy.size for copy in self._open.values()) > COPIES_BYTES:
            self.drop(next(iter(self._open)))

    def _copy(self, path: str) -> tuple[ConnectionT, Relations]:
        folder = self._folder / str(next(self._numbers))  # DuckDB knows what is open by its path
        folder.mkdir()
        try:
            return self._make(path, folder / Path(path).name)
        finally:
            shutil.rmtree(folder)


class Transaction(ABC):
    """The transaction in which the statements of a query run; reads what they changed and undoes it."""

    @abstractmethod
    def relations(self) -> Relations:
        """Return all tables, views and indexes as they are now."""

    @abstractmethod
    def content(self, relation: Relation) -> tuple[Columns, Rows]:
        """Return the columns and the rows of a table or a view."""

    @abstractmethod
    def keys(self, relation: Relation) -> Rows:
        """Return facts about columns: a word, the column, and the table and column that a foreign key refers to.

        The words are "PRIMARY KEY", "FOREIGN KEY", and "GENERATED" if the database makes the values. Callers ignore
        other words.
        """

    @abstractmethod
    def changed_rows(self, table: Relation) -> tuple[Columns, Rows, Rows] | None:
        """Return the columns of a table, its added rows and its removed rows; None if no row can have changed.

        The definition of the table is the same as before. A row may be in both lists.
        """

    @abstractmethod
    def undo(self) -> None:
        """Undo the statements: afterwards the other methods read the state before them."""

    def answer(self, old_relations: Relations, returned: Returned, max_rows: int) -> Answer:
        """Undo the statements, and return an answer of one row that says what they changed and returned.

        Its cells are: the rows that were returned; the changed tables and views, as the fields of a `TableChange` up to
        its rows; the statements of added indexes by label; the statements of removed indexes by label.

        Raises `Refused` for temporary tables, and `TooLarge` for more than `max_rows` rows in all.
        """
        new_relations = self.relations()
        if any(relation.kind == "temporary" for relation in new_relations.values()):
            raise Refused("temporary tables and views")
        tables = list(self._changes(old_relations, new_relations))
        count = sum(len(added) + len(removed) for *_, added, removed in tables) + len(returned[1] if returned else ())
        if count > max_rows:
            raise too_many_rows(max_rows)
        added, removed = _indexes(new_relations, old_relations), _indexes(old_relations, new_relations)
        return make_answer(("returned", "tables", "added", "removed"), [(returned, tables, added, removed)])

    def _changes(self, old_relations: Relations, new_relations: Relations) -> Iterator[tuple[Any, ...]]:
        changes: list[tuple[Relation | None, Relation, Content | None, Content, Rows | None]] = []
        for place, relation in {**old_relations, **new_relations}.items():
            old, new = old_relations.get(place), new_relations.get(place)
            if old == new and relation.kind == "table" and (changed := self.changed_rows(relation)):
                names, added, removed = changed
                changes.append((old, relation, (names, removed), (names, added), None))
            elif old != new and relation.kind in ("table", "view"):
                after, keys = (self.content(new), self.keys(new)) if new else ((None, []), None)
                changes.append((old, relation, None, after, keys))
        self.undo()
        for old, relation, before, (columns, added), keys in changes:
            old_columns, removed = before or self._content_before(old)
            if old_columns == columns:
                added, removed = without_common(added, removed)
            if added or removed or old_columns != columns:
                keys = self.keys(relation) if keys is None else keys
                key, generated = (
                    tuple(column for word, column, *_ in keys if word == part) for part in ("PRIMARY KEY", "GENERATED")
                )
                references = [reference for word, *reference in keys if word == "FOREIGN KEY"]
                yield relation.label, old_columns, columns, key, generated, references, added, removed

    def _content_before(self, old: Relation | None) -> Content:
        """Return the old content of a changed relation: (None, []) if it is new, ((), []) if it was a view."""
        if old is None:
            return None, []
        return self.content(old) if old.kind == "table" else ((), [])


def _indexes(relations: Relations, others: Relations) -> dict[str, list[object]]:
    """Return the statements that made the indexes which `others` lacks or defines otherwise, by label."""
    statements: dict[str, list[object]] = {}
    for place, relation in relations.items():
        if relation.kind == "index" and relation != others.get(place):
            statements.setdefault(relation.label, []).append(relation.definition)
    return statements


def names_of(cursor: Any) -> Columns:
    """Return the column names of a driver's cursor; () if it has no result."""
    return tuple(column[0] for column in cursor.description or ())
