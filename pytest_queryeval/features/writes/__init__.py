"""The key `writes` of suites: cases whose gold and predicted queries may change data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.errors import CaseError, SettingError, did_you_mean
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.registry import Registry
from pytest_queryeval.core.shapes import either, pattern_shape, shape, shape_of
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import Readers, flag, known_entries, list_of, mapping_of, required_text
from pytest_queryeval.engines import WriteDriver
from pytest_queryeval.suites.keys import Key

WRITE_DRIVERS: Registry[WriteDriver] = Registry(
    "driver of write queries", group="pytest_queryeval.write_drivers", used_by_workers=True, members={}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """How the changes of write queries are compared; a column is a pair of table and column in lower case."""

    ignore: tuple[tuple[str, str], ...] = ()
    """Columns that do not count."""
    keys: tuple[tuple[str, str], ...] = ()
    """Columns whose generated values count."""


@shape(pattern_shape(r"^.+[.][^.]+$"))
def _column(node: Node) -> tuple[str, str]:
    table, _, column = required_text(node).lower().removeprefix("main.").rpartition(".")
    if not table or not column:
        raise node.problem(f"'{node.value}' does not name a table and its column: write it as in orders.created_at")
    return table, column


SETTINGS: Readers = {"ignore": list_of(_column), "keys": list_of(_column)}
DESCRIPTIONS = {
    "ignore": "columns that do not count, such as orders.created_at",
    "keys": "columns whose generated values count, such as orders.id",
}


@shape(lambda: either(shape_of(flag), shape_of(mapping_of(SETTINGS, DESCRIPTIONS))))
def read_writes(node: Node) -> tuple[Writes | None, Node]:
    """Return the value of the key `writes` with its node: None for `false`, else the columns that it names."""
    if not isinstance(node.value, dict):
        return Writes() if flag(node) else None, node
    return Writes(**{name: tuple(columns) for name, columns in known_entries(node, SETTINGS).items()}), node


def with_write_sources(writes: Writes | None, case: Case) -> Case:
    """Return a case whose queries may change data; a case without `writes` or without an answer is returned as it is.

    Raise `CaseError` if a source does not support writes, if a gold is an answer, or if the case has `expect`.
    """
    if writes is None or not case.answerable:
        return case
    settings = case.settings
    for source in settings.sources:
        if source.engine not in WRITE_DRIVERS:
            key = "source" if source is settings.source else "gold_source"
            problem = f"{key} '{source.name}' ({source.engine}) does not work with `writes`"
            names = ", ".join(WRITE_DRIVERS.names())
            remedy = f"use one of {names}, or remove `{'writes' if key == 'source' else key}`"
            raise CaseError(source.location or case.location, f"{problem}: {remedy}")
        try:
            WRITE_DRIVERS[source.engine].check(source)
        except SettingError as error:
            raise CaseError(source.location or case.location, f"source '{source.name}': {error}") from error
    if any(gold.answer is not None for gold in case.golds):
        problem = (
            "a gold that is an answer does not work with `writes`: write a statement under `gold`, or remove `writes`"
        )
        raise CaseError(case.location, f"case '{case.id}': {problem}")
    if case.expectations:
        problem = "`expect` is about answers, and with `writes` changes are compared: remove one of the two"
        raise CaseError(case.expectations[0].location or case.location, f"case '{case.id}': {problem}")
    write_source, gold_source = (
        source and replace(source, writes=True) for source in (settings.source, settings.gold_source)
    )
    return replace(case, settings=replace(settings, source=write_source, gold_source=gold_source))


def unknown_columns(writes: Writes | None, case: Case, schema: Schema) -> Iterator[str]:
    """Yield a message for each named column that the source lacks.

    A table that is named in a gold may be created by the gold, so its columns are not checked.
    """
    golds = " ".join(gold.query or "" for gold in case.golds).lower()
    columns = {f"{table}.{column}": table for table, names in schema.tables.items() for column in names}
    for setting in SETTINGS if writes and columns else ():
        for table, column in getattr(writes, setting):
            name, bare_table = f"{table}.{column}", table.rpartition(".")[2]  # schemas are not listed
            if bare_table in columns.values() if "." in table else name in columns:
                continue
            if bare_table in schema.tables or bare_table not in golds:
                yield f"writes: {setting}: the source has no column '{name}'{did_you_mean(name, columns)}"


WRITES = Key(
    name="writes",
    description="true: queries may change data, which is undone; compared are the tables that they change",
    levels=("folder", "file", "case"),
    read=read_writes,
    used_by=lambda kind: kind.name == "sql",
    load=lambda value: value[0],
    change_case=with_write_sources,
    check=unknown_columns,
)
