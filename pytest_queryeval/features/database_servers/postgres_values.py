"""Loaders for PostgreSQL's values that Python has no type for, or compares differently. Imported by child processes.

Values that PostgreSQL calls equal become the same value, as far as one value alone allows.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.types.string import TextLoader

from pytest_queryeval.features.database_servers.databases import read_json

# Read as PostgreSQL writes them: no other query would answer with Python's text of a range or a record.
TYPES_AS_TEXT = (
    *("inet", "cidr", "record", "hstore"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"),
)
TEXT_TYPES = ("text", "varchar", "name", '"char"')
OID_OF_OTHERS = 0  # the oid under which the loader of all other types is registered
TIME_TYPES = ("date", "time", "timetz", "timestamp", "timestamptz")
_INTERVAL = re.compile(
    r"(?:(?P<years>-?\d+) years?)? ?(?:(?P<months>-?\d+) mons?)? ?(?:(?P<days>-?\d+) days?)? ?"
    r"(?:(?P<sign>[+-])?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?))?"
)
_UNITS = ("years", "months", "days", "hours", "minutes")
_DAYS_OF_A_MONTH = 30  # as PostgreSQL compares intervals


def text_of(data: Buffer) -> str:
    r"""Return bytes as text, with escapes such as `\xe9` for bytes that are not UTF-8."""
    return bytes(data).decode(errors="backslashreplace")


class LenientLoader(Loader):
    """Loads texts; bytes that are not UTF-8 become escapes."""

    def load(self, data: Buffer) -> str:
        """Return the text of the bytes."""
        return text_of(data)


class PaddedLoader(LenientLoader):
    """Loads `char(n)` without the spaces at its end, which PostgreSQL ignores in comparisons."""

    def load(self, data: Buffer) -> str:
        """Return the text of the bytes without spaces at its end."""
        return super().load(data).rstrip(" ")


class FallbackLoader(Loader):
    """Loads values by `inner`; values that Python lacks stay text: infinity, years before 1 or after 9999, 24:00."""

    inner: type[Any]

    def __init__(self, oid: int, context: Any = None) -> None:
        super().__init__(oid, context)
        self._load = self.inner(oid, context).load

    def load(self, data: Buffer) -> Any:
        """Return the value, or its text if Python cannot represent it."""
        try:
            return self._load(data)
        except (psycopg.Error, ValueError, OverflowError):
            return text_of(data)


class IntervalLoader(Loader):
    """Loads intervals as timedeltas with months of 30 days, as PostgreSQL compares them."""

    def load(self, data: Buffer) -> Any:
        """Return the timedelta; the text if the interval is too long, or in the format of another `intervalstyle`."""
        text = text_of(data)
        match = _INTERVAL.fullmatch(text)
        if not match:
            return text
        years, months, days, hours, minutes = (int(match[name] or 0) for name in _UNITS)
        seconds = 3600 * hours + 60 * minutes + Decimal(match["seconds"] or 0)
        days += _DAYS_OF_A_MONTH * (12 * years + months)
        try:
            return timedelta(days=days, microseconds=int(seconds * 1_000_000) * (-1 if match["sign"] == "-" else 1))
        except OverflowError:
            return text


class JsonLoader(Loader):
    """Loads JSON as lists and mappings, and a scalar as JSON text, so that a JSON null is not NULL."""

    def load(self, data: Buffer) -> Any:
        """Return the value; the text if Python cannot read it."""
        return read_json(text_of(data))


def register_loaders(connection: psycopg.Connection, *, lenient: bool = False) -> None:
    """Register this module's loaders for a connection; `lenient` accepts texts that are not UTF-8."""
    adapters = connection.adapters
    text_loader = LenientLoader if lenient else TextLoader
    for text_type in (*TEXT_TYPES, OID_OF_OTHERS) if lenient else ():
        adapters.register_loader(text_type, text_loader)
    for name in TIME_TYPES:
        inner = adapters.get_loader(adapters.types[name].oid, psycopg.pq.Format.TEXT)
        adapters.register_loader(name, type("FallbackLoader", (FallbackLoader,), {"inner": inner}))
    adapters.register_loader("bpchar", PaddedLoader)
    adapters.register_loader("interval", IntervalLoader)
    for name in ("json", "jsonb"):
        adapters.register_loader(name, JsonLoader)
    for name in TYPES_AS_TEXT:
        if adapters.types.get(name):
            adapters.register_loader(name, text_loader)
