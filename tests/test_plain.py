import json
import math
import random
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.core.table import IRI, BlankNode, Literal
from pytest_queryeval.text.formatting import (  # white box: texts of every sort, for all surfaces
    escape_invisible,
    excerpts,
    one_line,
    one_line_with_end,
    terminal_safe,
    truncate,
    truncate_middle,
    utf8_safe,
)

ANY_TEXT = st.text(st.characters(), max_size=60)
HOSTILE_TEXT = ANY_TEXT | st.text(st.sampled_from("\x1b\r\n\t\x9b#:\ud800\u202e\u061c\u2028ab "), max_size=40)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(190, 6000).map(lambda digits: -(10**digits)),
    st.floats(),
    HOSTILE_TEXT,
    st.binary(max_size=20),
    st.decimals(),
    st.datetimes(),
    st.builds(IRI, HOSTILE_TEXT),
    st.builds(Literal, HOSTILE_TEXT),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE_TEXT | st.integers(), inner, max_size=3),
)
PLAIN_TYPES = {type(None), bool, int, float, str, list, dict}


class Level(IntEnum):
    HARD = 3


class Score(float):
    pass


class Word(str):
    __slots__ = ()

    def __str__(self):
        return "another text"


def types_in(value):
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return {type(value)}.union(*map(types_in, inner))


@pytest.mark.long
@given(HOSTILE_TEXT)
def test_printable_text_cannot_command_a_terminal_or_a_ci_service(text):
    shown = terminal_safe(text)

    assert "##" not in shown
    assert all(character.isprintable() or character.isspace() or ord(character) > 0x7F for character in shown)
    assert not set(shown) & set("\x1b\x9b\r\x00\x85\u2028\u2029\u202e\u2066\u061c\u200f\ud800\udfff")


def test_control_characters_are_printed_as_escapes():
    assert terminal_safe("a\x1b[2Jb\x9b\u202ec\ud800") == r"a\x1b[2Jb\x9b\u202ec\ud800"
    assert terminal_safe("Größe, a\tb\n. -日") == "Größe, a\tb\n. -日"
    assert terminal_safe("a\r\nb\rc") == "a\nb\\x0dc"


@given(HOSTILE_TEXT, st.integers(1, 80))
def test_one_line_is_one_line_of_at_most_that_many_characters(text, characters):
    line = one_line(text, characters)

    assert len(line.splitlines()) <= 1
    assert len(line) <= characters


@given(ANY_TEXT, st.integers(1, 80))
def test_shortened_text_is_its_own_beginning(text, characters):
    short = truncate(text, characters)

    assert len(short) <= characters
    assert short == text if len(text) <= characters else text.startswith(short.removesuffix("…"))


@given(ANY_TEXT, st.integers(1, 80))
def test_a_text_without_its_middle_has_its_beginning_and_its_end(text, characters):
    short = truncate_middle(text, characters)

    assert len(short) == min(len(text), characters)
    if short != text:
        start, end = short[: characters - characters // 2 - 1], short[characters - characters // 2 :]
        assert text.startswith(start)
        assert text.endswith(end)
        assert short == f"{start}…{end}"


@given(HOSTILE_TEXT, st.integers(1, 80))
def test_a_line_without_its_middle_is_the_ends_of_the_whole_line(text, characters):
    assert one_line_with_end(text, characters) == truncate_middle(one_line(text, 10_000), characters)


INVISIBLE = (
    "\u202e\u2066\u200b\u2060\ufeff\xad\U000e0041\u034f\u1160\u17b5\u180b\u2800\u3164\uffa0\ufe00\ufe0f\U00013430"
    "\U0001bca0\U0001d173\U000e0100"
)


@pytest.mark.parametrize("character", INVISIBLE, ids=ascii)
def test_invisible_characters_are_escaped_where_people_read_and_kept_in_data(character):
    text, escaped = f"a{character}b", f"a{ascii(character)[1:-1]}b"

    assert terminal_safe(text) == escape_invisible(text) == one_line(text) == one_line_with_end(text, 80) == escaped
    assert utf8_safe(text) == to_jsonable(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\U0001f469\u200d\U0001f4bb",
        *("\u2764\ufe0f", "\u2764\ufe0e", "\xa9\ufe0f", "1\ufe0f\u20e3", "\U0001f3f3\ufe0f\u200d\U0001f308"),
    ],
)
def test_what_words_and_pictures_are_made_with_stays(text):
    assert terminal_safe(text) == escape_invisible(text) == text


def test_a_look_is_that_of_one_picture_and_no_letter_has_one():
    assert (
        escape_invisible("\u2764\ufe0f\ufe0f a\ufe0e \ufe0f \u2800\ufe0f")
        == "\u2764\ufe0f\\ufe0f a\\ufe0e \\ufe0f \\u2800\\ufe0f"
    )


@given(HOSTILE_TEXT)
def test_storable_text_can_be_written_as_utf8_and_only_surrogates_change(text):
    stored = utf8_safe(text)

    stored.encode()
    assert stored == "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)


@given(VALUES)
def test_any_value_becomes_plain_json(value):
    entry = to_jsonable(value)

    assert types_in(entry) <= PLAIN_TYPES
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry == to_jsonable(entry)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (b"\x00\xff", "x'00ff'"),
        (Decimal("1.10"), "1.10"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 12, 30), "2024-02-29 12:30:00"),
        (time(12, 30), "12:30:00"),
        (IRI("http://a/b"), "<http://a/b>"),
        (BlankNode("b0"), "_:b0"),
        (Literal("x", language="en"), '"x"@en'),
        ("\ud800", "\\ud800"),
        ((1, {2: None}), [1, {"2": None}]),
        ({7}, [7]),
    ],
)
def test_what_json_does_not_know_becomes_text(value, expected):
    assert to_jsonable(value) == expected


@pytest.mark.parametrize(("value", "expected"), [(Level.HARD, 3), (Score(0.5), 0.5), (Word("ok"), "ok")])
def test_subclasses_become_the_plain_type(value, expected):
    entry = to_jsonable(value)

    assert type(entry) in PLAIN_TYPES
    assert entry == expected


@pytest.mark.parametrize("value", [10**200, -(10**5000)], ids=["200 digits", "5000 digits"])
def test_an_integer_that_python_would_not_read_again_is_described(value):
    assert to_jsonable(value) == "an integer of more than 200 digits"
    assert to_jsonable(10**200 - 1) == 10**200 - 1


def test_a_value_within_itself_ends_in_an_ellipsis():
    ring = {"name": "ring"}
    ring["inner"] = [ring]

    text = json.dumps(to_jsonable(ring), ensure_ascii=False)

    assert "…" in text
    assert text.startswith('{"name": "ring", "inner": [{"name": "ring"')


def test_excerpts_of_two_texts_are_as_short_as_asked_and_show_what_differs():
    chance = random.Random(3)
    for _ in range(3_000):
        characters = chance.randint(12, 40)
        gold = "".join(chance.choices("abcdefghij", k=chance.randint(0, 80)))
        predicted = list(gold)
        for place in chance.choices(range(len(gold) + 1), k=chance.randint(0, 3)):
            predicted[place : place + chance.randint(0, 2)] = chance.choice(["", "x", "yz"])

        shown = excerpts(gold, "".join(predicted), characters)

        assert max(map(len, shown)) <= characters
        assert (shown[0] != shown[1]) == (gold != "".join(predicted)), (gold, predicted, characters, shown)
