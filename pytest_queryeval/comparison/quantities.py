"""Numbers, dates, times and durations: how near two numbers are, and the point in time that a text spells.

Integers and Decimals are exact, floats are compared within a tolerance. A Decimal of many digits may be rounded, as
quotients and averages are, so its last digits may differ. All spellings of one moment are equal.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

from pytest_queryeval.core.table import DEFAULT_ABS, DEFAULT_REL, Policy

Number: TypeAlias = int | float | Decimal
ROUNDED_DECIMALS = 6  # two Decimals with at least this number of decimals may have been rounded to them
QUOTIENT_DECIMALS = 12  # a Decimal with at least this number of decimals may be a quotient, which has no exact value
QUOTIENT_REL = 1e-15
EXACT_FLOATS = 2**53  # below it, floats hold every whole number
_CONTEXT = Context(prec=2_000, Emax=MAX_EMAX, Emin=MIN_EMIN)  # by default, differences are rounded to 28 digits
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
DAY = 86_400
_CYCLE = 146_097  # days of 400 years, after which the calendar repeats itself


class Tolerance(NamedTuple):
    """How far apart two equal numbers may be: `rel` times the larger number, or `abs`, whichever is more."""

    rel: float
    abs: float

    def reach(self, number: float) -> float:
        """Return an upper bound of how far a number within the tolerance may be from this number."""
        if self.rel >= 0.5:  # beyond, the reach of a larger number may end before that of a smaller one
            return math.inf
        return max(self.rel / (1 - self.rel) * abs(number), self.abs) + 4 * math.ulp(number)


def float_tolerance(policy: Policy) -> Tolerance:
    """Return the policy's tolerance for two numbers of which at least one is a float."""
    return Tolerance(
        DEFAULT_REL if policy.rel is None else policy.rel, DEFAULT_ABS if policy.abs is None else policy.abs
    )


def exact_tolerance(policy: Policy) -> Tolerance:
    """Return the policy's tolerance for two exact numbers that are not both integers.

    0 for what the policy does not set.
    """
    return Tolerance(policy.rel or 0.0, policy.abs or 0.0)


def rounds(policy: Policy) -> bool:
    """Return whether Decimals with many decimals may be rounded: True unless the policy sets both `rel` and `abs`."""
    return policy.rel is None or policy.abs is None


def widest_tolerance(policy: Policy) -> Tolerance:
    """Return a tolerance that contains all pairs of numbers that are equal under the policy."""
    wide = float_tolerance(policy)
    return Tolerance(max(wide.rel, QUOTIENT_REL), max(wide.abs, 0.5 * 10.0**-ROUNDED_DECIMALS))


def decimals_of(number: Number) -> int | None:
    """Return how many decimals an exact number has, including zeros at the end.

    None for a float, and for a Decimal that is not finite.

    >>> decimals_of(Decimal("1.10")), decimals_of(5), decimals_of(0.5)
    (2, 0, None)
    """
    if isinstance(number, Decimal):
        exponent = number.as_tuple().exponent
        return max(0, -exponent) if isinstance(exponent, int) else None
    return 0 if isinstance(number, int) else None


def is_whole(number: Number) -> bool:
    """Return whether a number is whole; a float must be small enough to stand for only one whole number."""
    match number:
        case int():
            return True
        case float():
            return number.is_integer() and abs(number) < EXACT_FLOATS
        case _:
            return number == number.to_integral_value()


def as_float(number: Number) -> float:
    """Return the float nearest to a number, which may be infinite."""
    try:
        return float(number)
    except OverflowError:
        return float(Decimal(number))


def is_close(x: Number, y: Number, policy: Policy) -> bool:
    """Return whether two numbers are equal under a policy: the same, or within the tolerance for their types.

    A float has a tolerance, except a whole float compared with a whole exact number. Exact numbers have only the
    tolerance that the policy sets, but Decimals of many decimals may be rounded.

    >>> is_close(Decimal("1234567.89"), Decimal("1234568.89"), Policy())
    False
    >>> is_close(Decimal("0.333333"), Decimal("0.33333333333333333333"), Policy())
    True
    >>> is_close(1000000.0, 1000001, Policy()), is_close(1000000.5, 1000001, Policy())
    (False, True)
    """
    if x == y:
        return True
    if not isinstance(x, float) and not isinstance(y, float):
        return _is_close_exactly(x, y, policy)
    is_exact = not (isinstance(x, float) and isinstance(y, float)) and is_whole(x) and is_whole(y)
    width = exact_tolerance(policy) if is_exact else float_tolerance(policy)
    floats = as_float(x), as_float(y)
    if math.isinf(floats[0]) or math.isinf(floats[1]):
        return False
    if floats != (x, y):  # rounded to a float, 2**53 + 1 would be the same as 2**53
        x, y = Decimal(x), Decimal(y)
        return _is_within(width, _CONTEXT.subtract(x, y).copy_abs(), max(x.copy_abs(), y.copy_abs()))
    return abs(floats[0] - floats[1]) <= max(width.rel * max(map(abs, floats)), width.abs)


def _is_close_exactly(x: int | Decimal, y: int | Decimal, policy: Policy) -> bool:
    decimals, other_decimals = decimals_of(x), decimals_of(y)
    if decimals is None or other_decimals is None:  # an infinite Decimal
        return False
    coarser, finer = sorted((decimals, other_decimals))
    width = exact_tolerance(policy)
    is_rounded = rounds(policy) and coarser >= ROUNDED_DECIMALS
    is_quotient = rounds(policy) and finer >= QUOTIENT_DECIMALS
    if not finer or not (is_rounded or is_quotient or any(width)):
        return False
    x, y = Decimal(x), Decimal(y)
    distance = _CONTEXT.subtract(x, y).copy_abs()
    larger = max(x.copy_abs(), y.copy_abs())
    if is_rounded and distance <= half_unit(coarser):
        return True
    if is_quotient and distance <= _CONTEXT.multiply(Decimal(repr(QUOTIENT_REL)), larger):
        return True
    return any(width) and _is_within(width, distance, larger)


def _is_within(width: Tolerance, distance: Decimal, larger: Decimal) -> bool:
    """Return whether a distance is within a tolerance, whose floats count as the decimal numbers that spell them."""
    return distance <= max(_CONTEXT.multiply(Decimal(repr(width.rel)), larger), Decimal(repr(width.abs)))


def half_unit(decimals: int) -> Decimal:
    """Return half a unit of the last of so many decimals: 0.05 for 1."""
    return Decimal((0, (5,), -decimals - 1))


class Temporal(NamedTuple):
    """A date, a moment, a time of day or a duration.

    `seconds` count from the start of the calendar or from midnight, in UTC if a zone is known, or they are the length
    of a duration without its `months`. `fraction` contains the digits after the decimal point, without zeros at the
    end. `negative` is the sign of a whole duration.
    """

    kind: OneOf["date", "datetime", "time", "duration"]
    seconds: int
    fraction: str = ""
    has_zone: bool = False
    months: int = 0
    negative: bool = False


def temporal_of(value: date | time) -> Temporal:
    """Return a date, a time or a datetime as a `Temporal`."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return Temporal("date", value.toordinal() * DAY)
    days = value.toordinal() if isinstance(value, datetime) else 0
    since_start = timedelta(days, value.second, value.microsecond, minutes=value.minute, hours=value.hour)
    offset = value.utcoffset()
    since_start -= offset or timedelta()
    fraction = f"{since_start.microseconds:06d}".rstrip("0")
    kind: OneOf["datetime", "time"] = "datetime" if isinstance(value, datetime) else "time"
    return Temporal(kind, since_start.days * DAY + since_start.seconds, fraction, has_zone=offset is not None)


def read_temporal(text: str) -> Temporal | None:
    """Return the date, moment, time or duration that a text in ISO 8601 spells; None for any other text.

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
    """Return the time that an xsd:time spells, None for any other text; unlike in databases, 24:00:00 is 00:00:00."""
    return read_temporal(_END_OF_DAY.sub("00:00:00", text))


def _moment(match: re.Match[str]) -> Temporal | None:
    year, clock, fraction = match["year"], match["clock"], (match["fraction"] or "").rstrip("0")
    days, seconds = 0, 0
    try:
        if year:
            cycles, place = divmod(int(year), 400)
            days = date(place + 400, int(match["month"]), int(match["day"])).toordinal() + (cycles - 1) * _CYCLE
        if clock and year and not fraction and _END_OF_DAY.fullmatch(clock):
            seconds = DAY
        elif clock:
            seconds = _seconds(clock)
        if match["offset"]:
            offset = _seconds(match["offset"])
            seconds += offset if match["sign"] == "-" else -offset
    except ValueError:
        return None
    kind: OneOf["date", "datetime", "time"] = "time" if not year else "datetime" if clock else "date"
    return Temporal(kind, days * DAY + seconds, fraction, has_zone=match["zone"] is not None)


def _seconds(clock: str) -> int:
    """Return the seconds since midnight of a clock time, with or without colons.

    Raise ValueError for an invalid time.
    """
    digits = clock.replace(":", "").ljust(6, "0")
    read = time(int(digits[:2]), int(digits[2:4]), int(digits[4:]))
    return read.hour * 3600 + read.minute * 60 + read.second


def _duration(match: re.Match[str]) -> Temporal:
    amounts = {unit: int(amount or 0) for unit, amount in match.groupdict().items() if unit not in ("sign", "fraction")}
    months = 12 * amounts["years"] + amounts["months"]
    seconds = amounts["days"] * DAY + amounts["hours"] * 3600 + amounts["minutes"] * 60 + amounts["seconds"]
    fraction = (match["fraction"] or "").rstrip("0")
    negative = match["sign"] is not None and bool(months or seconds or fraction)
    return Temporal("duration", seconds, fraction, months=months, negative=negative)
