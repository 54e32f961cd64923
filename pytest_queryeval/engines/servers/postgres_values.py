"""Loaders for values of PostgreSQL that Python has no type for. Imported by child processes."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.types.string import TextLoader

from pytest_queryeval.sandbox.cells import duration

# Read as PostgreSQL writes them: Python's text of a range or a record is the answer of no other query.
TEXTS = (
    *("inet", "cidr", "record", "hstore"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"),
)
PLAIN = ("text", "varchar", "bpchar", "name", '"char"')
OTHERS = 0  # the oid under which the loader of all other types is registered
TIMES = ("date", "time", "timetz", "timestamp", "timestamptz")
_INTERVAL = re.compile(
    r"(?:(?P<years>-?\d+) years?)? ?(?:(?P<months>-?\d+) mons?)? ?(?:(?P<days>-?\d+) days?)? ?"
    r"(?:(?P<sign>[+-])?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?))?"
)
_UNITS = ("years", "months", "days", "hours", "minutes")


def text_of(data: Buffer) -> str:
    r"""Return the text, with `\xe9` for bytes that are no UTF-8, which a database in SQL_ASCII may hold."""
    return bytes(data).decode(errors="backslashreplace")


class LenientLoader(Loader):
    """Reads texts, also those that are no UTF-8."""

    def load(self, data: Buffer) -> str:
        """Return the text."""
        return text_of(data)


class FallbackLoader(Loader):
    """Reads by `inner`; what Python cannot hold stays text: infinity, years before 1 and after 9999, 24:00."""

    inner: type[Any]

    def __init__(self, oid: int, context: Any = None) -> None:
        super().__init__(oid, context)
        self._load = self.inner(oid, context).load

    def load(self, data: Buffer) -> Any:
        """Return the value, or its text."""
        try:
            return self._load(data)
        except (psycopg.Error, ValueError, OverflowError):
            return text_of(data)


class IntervalLoader(Loader):
    """Days and times as a timedelta, what has months as an ISO 8601 duration: months have no length in days."""

    def load(self, data: Buffer) -> Any:
        """Return the value, or its text: of negative months, and where the server's `intervalstyle` is another one."""
        text = text_of(data)
        found = _INTERVAL.fullmatch(text)
        if not found:
            return text
        years, months, days, hours, minutes = (int(found[name] or 0) for name in _UNITS)
        seconds = 3600 * hours + 60 * minutes + Decimal(found["seconds"] or 0)
        rest = timedelta(days=days, microseconds=int(seconds * 1_000_000) * (-1 if found["sign"] == "-" else 1))
        if not years and not months:
            return rest
        if min(years, months, rest.days) < 0:
            return text
        long = f"P{years}Y" * bool(years) or "P"
        long += f"{months}M" * bool(months)
        return long + duration(rest)[1:] * bool(rest)


class JsonLoader(Loader):
    """JSON text with sorted keys, scalars too, so that a JSON null is not NULL."""

    def load(self, data: Buffer) -> Any:
        """Return the text, as it came where Python cannot read it."""
        text = text_of(data)
        try:
            return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
        except (ValueError, RecursionError):
            return text


def register_loaders(connection: psycopg.Connection, *, lenient: bool = False) -> None:
    """Register the loaders above; `lenient` accepts texts that are not UTF-8."""
    adapters = connection.adapters
    texts = LenientLoader if lenient else TextLoader
    for plain in (*PLAIN, OTHERS) if lenient else ():
        adapters.register_loader(plain, texts)
    for name in TIMES:
        inner = adapters.get_loader(adapters.types[name].oid, psycopg.pq.Format.TEXT)
        adapters.register_loader(name, type("FallbackLoader", (FallbackLoader,), {"inner": inner}))
    for name, loader in (("interval", IntervalLoader), ("json", JsonLoader), ("jsonb", JsonLoader)):
        adapters.register_loader(name, loader)
    for name in TEXTS:
        if adapters.types.get(name):
            adapters.register_loader(name, texts)
