import ipaddress
import marshal
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from pytest_queryeval.sandbox.cells import decode_rows, duration, encode_rows


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
        ([1, 2.5, None, True, "x"], '[1, 2.5, null, true, "x"]'),
        ((1, 2), "[1, 2]"),
        ({"b": 1, "a": [{"d": 1, "c": 2}]}, '{"a": [{"c": 2, "d": 1}], "b": 1}'),
        ([Decimal("2.00"), Decimal("1.5")], "[2, 1.5]"),
        ([date(2024, 2, 29), time(1, 2), timedelta(hours=1)], '["2024-02-29", "01:02:00", "PT1H"]'),
        ([b"\x00\xff", uuid.UUID(int=1)], '["00ff", "00000000-0000-0000-0000-000000000001"]'),
        ({"x": {3, 1, 2}}, '{"x": [1, 2, 3]}'),
        ({"ü": "🎻"}, '{"ü": "🎻"}'),
        ([], "[]"),
        ({}, "{}"),
    ],
)
def test_other_values_become_text(value, cell):
    assert crossed(value) == cell


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([float("nan"), float("inf"), -float("inf")], '["NaN", "Infinity", "-Infinity"]'),
        ([Decimal("NaN"), Decimal("Infinity")], '["NaN", "Infinity"]'),
        ({"a": float("nan")}, '{"a": "NaN"}'),
    ],
)
def test_numbers_that_json_does_not_have_are_texts_within_lists(value, text):
    assert crossed(value) == text


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({1: "a", "b": 2}, {"b": 2, 1: "a"}),
        ({date(2024, 1, 1): 1, date(2023, 1, 1): 2}, {date(2023, 1, 1): 2, date(2024, 1, 1): 1}),
        ({None: 1, True: 2}, {True: 2, None: 1}),
        ({(1, 2): "a"}, {(1, 2): "a"}),
    ],
)
def test_mappings_with_keys_of_any_type_do_not_depend_on_their_order(left, right):
    assert crossed(left) == crossed(right)
    assert isinstance(crossed(left), str)


def test_decimals_within_lists_keep_the_digits_that_a_float_has():
    assert crossed([Decimal("123456789.123456")]) == "[123456789.123456]"
    assert crossed([Decimal(10) ** 30]) == f"[{10**30}]"


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
