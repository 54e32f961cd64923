"""Dates, times and durations, normalized so that all spellings of one moment are equal."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Literal as OneOf
from typing import NamedTuple

# ISO 8601 as databases and RDF write it: a blank or a T between date and time, seconds and zone where they are known.
_MOMENT = re.compile(
    r"(?=.)(?:(?P<year>-?[0-9]{4,12})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2}))?"
    r"(?:(?:^|(?<=[0-9])[ T])(?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)"
    r"(?:(?<=:[0-9]{2}:[0-9]{2})\.(?P<fraction>[0-9]+))?)?"
    r"(?:(?<=[0-9])(?P<zone>Z|(?P<sign>[+-])(?P<offset>[0-9]{2}(?::?[0-9]{2}(?::[0-9]{2})?)?)))?",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"(?P<sign>-)?P(?!$)(?:(?P<years>[0-9]{1,18})Y)?(?:(?P<months>[0-9]{1,18})M)?(?:(?P<days>[0-9]{1,18})D)?"
    r"(?:T(?!$)(?:(?P<hours>[0-9]{1,18})H)?(?:(?P<minutes>[0-9]{1,18})M)?"
    r"(?:(?P<seconds>[0-9]{1,18})(?:\.(?P<fraction>[0-9]+))?S)?)?",
    re.IGNORECASE,
)
_END_OF_DAY = re.compile(r"^24:00(?::00(?:\.0+)?)?(?=Z|[+-]|$)", re.IGNORECASE)
_DAY = 86_400
_CYCLE = 146_097  # days of 400 years, after which the calendar repeats itself


class Temporal(NamedTuple):
    """A date, a moment, a time of day or a duration.

    `seconds` count from the year 0 or from midnight, in UTC where a zone is known; `fraction` has the digits after the
    point, without zeros at the end. A duration is `negative` as a whole.
    """

    kind: OneOf["date", "datetime", "time", "duration"]
    seconds: int
    fraction: str = ""
    zoned: bool = False
    months: int = 0
    negative: bool = False


def temporal_of(value: date | time) -> Temporal:
    """Return the value of a date, a time or a datetime."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return Temporal("date", value.toordinal() * _DAY)
    days = value.toordinal() if isinstance(value, datetime) else 0
    since_start = timedelta(days, value.second, value.microsecond, minutes=value.minute, hours=value.hour)
    offset = value.utcoffset()
    since_start -= offset or timedelta()
    fraction = f"{since_start.microseconds:06d}".rstrip("0")
    kind: OneOf["datetime", "time"] = "datetime" if isinstance(value, datetime) else "time"
    return Temporal(kind, since_start.days * _DAY + since_start.seconds, fraction, zoned=offset is not None)


def read_temporal(text: str) -> Temporal | None:
    """Return the value of a text that is a date, a time or a duration in ISO 8601; None for any other text.

    >>> read_temporal("2024-01-01 12:30:00.50+02:00") == read_temporal("2024-01-01T10:30:00.5Z")
    True
    >>> read_temporal("PT3600S") == read_temporal("PT1H")
    True
    """
    if match := _MOMENT.fullmatch(text):
        return _moment(match)
    match = _DURATION.fullmatch(text)
    return _duration(match) if match else None


def xsd_time(text: str) -> Temporal | None:
    """Return the value of an xsd:time: unlike in databases, 24:00:00 is 00:00:00."""
    return read_temporal(_END_OF_DAY.sub("00:00:00", text))


def _moment(match: re.Match[str]) -> Temporal | None:
    year, clock, fraction = match["year"], match["clock"], (match["fraction"] or "").rstrip("0")
    days, seconds = 0, 0
    try:
        if year:
            cycles, place = divmod(int(year), 400)
            days = date(place + 400, int(match["month"]), int(match["day"])).toordinal() + (cycles - 1) * _CYCLE
        if clock and year and not fraction and _END_OF_DAY.fullmatch(clock):
            seconds = _DAY
        elif clock:
            seconds = _seconds(clock)
        if match["offset"]:
            offset = _seconds(match["offset"])
            seconds += offset if match["sign"] == "-" else -offset
    except ValueError:
        return None
    kind: OneOf["date", "datetime", "time"] = "time" if not year else "datetime" if clock else "date"
    return Temporal(kind, days * _DAY + seconds, fraction, zoned=match["zone"] is not None)


def _seconds(clock: str) -> int:
    """Return the seconds since midnight; raise ValueError for a clock that does not exist."""
    digits = clock.replace(":", "").ljust(6, "0")
    read = time(int(digits[:2]), int(digits[2:4]), int(digits[4:]))
    return read.hour * 3600 + read.minute * 60 + read.second


def _duration(match: re.Match[str]) -> Temporal:
    amounts = {unit: int(amount or 0) for unit, amount in match.groupdict().items() if unit not in ("sign", "fraction")}
    months = 12 * amounts["years"] + amounts["months"]
    seconds = amounts["days"] * _DAY + amounts["hours"] * 3600 + amounts["minutes"] * 60 + amounts["seconds"]
    fraction = (match["fraction"] or "").rstrip("0")
    negative = match["sign"] is not None and bool(months or seconds or fraction)
    return Temporal("duration", seconds, fraction, months=months, negative=negative)
