import ipaddress
import marshal
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from pytest_queryeval.core.sent_cells import decode_rows  # white box: the way of any cell out of a child process
from pytest_queryeval.core.table import FrozenMapping
from pytest_queryeval.sandbox.cells import duration, encode_rows, without_common  # white box: as above


def crossed(value):
    """A value after its way through the pipe."""
    [[cell]] = decode_rows(marshal.loads(marshal.dumps(encode_rows([(value,)]))))
    return cell


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**200),
        1.5,
        float("-inf"),
        "naïve 🎻\0",
        b"\x00\xff",
        Decimal("1.50"),
        Decimal("-1E+400"),
        Decimal("Infinity"),
        date(1, 1, 1),
        date(9999, 12, 31),
        datetime(2024, 2, 29, 3, 4, 5, 678),
        datetime(2024, 2, 29, 3, 4, 5, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
        time(1, 2, 3, 4),
        time(1, 2, 3, tzinfo=UTC),
    ],
)
def test_cells_cross_unchanged(value):
    cell = crossed(value)

    assert (type(cell), cell) == (type(value), value)


def test_decimals_keep_their_digits():
    assert str(crossed(Decimal("1.50"))) == "1.50"


def test_decimal_that_is_no_number_stays_one():
    assert crossed(Decimal("NaN")).is_nan()


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
    ],
)
def test_other_values_become_text(value, cell):
    assert crossed(value) == cell


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ([1, 2.5, None, True, "x"], (1, 2.5, None, True, "x")),
        ((1, [2]), (1, (2,))),
        ({"b": 1, "a": [{"d": 1}]}, FrozenMapping({"b": 1, "a": (FrozenMapping({"d": 1}),)})),
        ([Decimal("12345678901234567.89"), Decimal("1.50")], (Decimal("12345678901234567.89"), Decimal("1.50"))),
        ([date(2024, 2, 29), time(1, 2), timedelta(hours=1)], (date(2024, 2, 29), time(1, 2), "PT1H")),
        ([b"\x00\xff", uuid.UUID(int=1)], (b"\x00\xff", "00000000-0000-0000-0000-000000000001")),
        ({"x": {3, 1, 2}}, FrozenMapping({"x": (1, 2, 3)})),
        ({(1, 2): "a", date(2024, 1, 1): 1}, FrozenMapping({date(2024, 1, 1): 1, (1, 2): "a"})),
        ([float("inf")], (float("inf"),)),
        ([], ()),
        ({}, FrozenMapping({})),
    ],
)
def test_lists_and_mappings_keep_the_values_in_them(value, cell):
    assert crossed(value) == cell
    assert repr(crossed([value])) == repr((cell,)) or isinstance(cell, FrozenMapping)
    assert {crossed(value): 1}[cell] == 1


def test_rows_with_the_same_mapping_in_another_order_are_the_same():
    added, removed = (encode_rows([(mapping,)]) for mapping in ({1: "a", "b": 2}, {"b": 2, 1: "a"}))

    assert without_common(added, removed) == ([], [])


def test_lists_that_are_too_deep_are_an_error_and_no_crash():
    value = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises((RecursionError, ValueError)):
        encode_rows([(value,)])


def test_rows_without_such_cells_are_the_same_objects():
    rows = [(1, "a"), (None, b"")]

    assert all(before is after for before, after in zip(rows, decode_rows(rows), strict=True))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(0), "PT0S"),
        (timedelta(days=1), "P1D"),
        (timedelta(hours=26, seconds=0.5), "P1DT2H0.5S"),
        (timedelta(seconds=-90), "-PT1M30S"),
        (timedelta(days=-1, hours=1), "-PT23H"),
        (timedelta(microseconds=1), "PT0.000001S"),
        (timedelta(days=400, minutes=3), "P400DT3M"),
    ],
)
def test_durations_are_written_as_iso_8601_has_them(value, text):
    assert duration(value) == text
