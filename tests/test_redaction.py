"""A secret is taken out of every text by its value, however it is spelled; nothing else is touched."""

import base64
import html
import json
import os
import re
import subprocess
import sys
import threading
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_queryeval.core.jsonable import plain
from pytest_queryeval.results.case_json import plain_cell
from pytest_queryeval.text.plain import both_ends, one_line, printable, shortened, told
from pytest_queryeval.text.redaction import MARK, hide_settings, redacted

PLAIN = "sk-live-4f9aQz7Lm2Xw"
ODD = "p@ss/w0rd+ü'\"<&\\ 1%"
SHORT = "x7Kq2m"


@pytest.fixture(autouse=True)
def _environment_without_secrets(monkeypatch):
    for name in [name for name in os.environ if name != "PYTEST_CURRENT_TEST"]:
        monkeypatch.delenv(name)


def lower_hex(text):
    return "".join(f"%{part[:2].lower()}{part[2:]}" if place else part for place, part in enumerate(text.split("%")))


def escaped(text, characters, form):
    return "".join(form.format(ord(character)) if character in characters else character for character in text)


SPELLINGS = {
    "itself": lambda value: value,
    "quoted": quote,
    "quoted whole": lambda value: quote(value, safe=""),
    "quoted with plus": quote_plus,
    "quoted in lower case": lambda value: lower_hex(quote(value, safe="")),
    "JSON": lambda value: json.dumps(value)[1:-1],
    "JSON with all letters": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "repr": lambda value: repr(value)[1:-1],
    "ascii": lambda value: ascii(value)[1:-1],
    "HTML": html.escape,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 without padding": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64 of URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "JSON of PHP": lambda value: json.dumps(value).replace("/", "\\/")[1:-1],
    "JSON of Go": lambda value: escaped(json.dumps(value, ensure_ascii=False)[1:-1], "<>&", "\\u{:04x}"),
    "JSON of Gson": lambda value: escaped(json.dumps(value)[1:-1], "<>&='", "\\u{:04x}"),
    "JSON in capitals": lambda value: escaped(json.dumps(value)[1:-1], "<>&'+/@", "\\u{:04X}"),
    "HTML of templates": lambda value: escaped(html.escape(value, quote=False), "\"'", "&#{};"),
    "HTML of lodash": lambda value: escaped(html.escape(value), "/`=", "&#x{:X};"),
    "HTML with zeros": lambda value: escaped(html.escape(value, quote=False), "\"'", "&#0{};"),
    "HTML in numbers": lambda value: "".join(f"&#{ord(character)};" for character in value),
    "quoted as one likes": lambda value: quote(value, safe="/").replace("%2B", "%2b"),
    "quoted as in scripts": lambda value: quote(value, safe="!'()*").replace("%3C", "%3c"),
    "hexadecimal": lambda value: value.encode().hex(),
    "hexadecimal in capitals": lambda value: value.encode().hex().upper(),
}


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("value", [PLAIN, ODD, SHORT, "correct horse battery"])
def test_a_secret_is_taken_out_in_every_spelling(monkeypatch, value, spelled):
    monkeypatch.setenv("MODEL_API_KEY", value)

    assert redacted(f"<{spelled(value)}>") == f"<{MARK}>"


@pytest.mark.parametrize("around", ["", "\\/", "%2f", "&#47;", "x" * 40, "\\u002f " * 9])
@pytest.mark.parametrize("spelled", ["aB3\\/kf93+jdk38\\/Jk", "aB3&#x2f;kf93%2bjdk38/Jk", "aB3\\u002Fkf93+jdk38%2FJk"])
def test_an_escaped_secret_is_taken_out_whatever_escapes_stand_around_it(monkeypatch, spelled, around):
    monkeypatch.setenv("MODEL_API_KEY", "aB3/kf93+jdk38/Jk")

    assert redacted(f"{around}<{spelled}> {around}") == f"{around}<{MARK}> {around}"


@pytest.mark.parametrize(
    "text", ["%41%zz%", "&#;&#x;&#1114112;&#99999999;", "\\u12\\/\\", "%ff%fe &#0; \\ud800", "&#0;" * 9]
)
def test_what_only_looks_like_an_escape_stays(monkeypatch, text):
    monkeypatch.setenv("MODEL_API_KEY", PLAIN)

    assert redacted(f"{text}<{PLAIN}>{text}") == f"{text}<{MARK}>{text}"


def test_a_part_of_an_escaped_secret_is_taken_out(monkeypatch):
    monkeypatch.setenv("MODEL_API_KEY", "aB3/kf93+jdk38/Jk")

    assert redacted('near "3\\/kf93\\u002bjdk38\\/"') == f'near "{MARK}"'


@pytest.mark.parametrize("value", [PLAIN, ODD, SHORT])
@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
@pytest.mark.parametrize("behind", ["", "z", "zz"])
def test_base64_of_a_secret_among_other_bytes_is_taken_out(monkeypatch, value, before, behind):
    monkeypatch.setenv("MODEL_API_KEY", value)
    encoded = base64.b64encode(f"{before}{value}{behind}".encode()).decode()

    left = redacted(f"Basic {encoded} sent").removeprefix("Basic ").removesuffix(" sent")

    start, end = left.split(MARK)
    assert encoded.startswith(start)
    assert encoded.endswith(end)
    # What is left of the secret is less than a character of base64 at each end.
    first, last = 6 * len(start), 6 * (len(encoded.rstrip("=")) - len(end.rstrip("=")))
    assert first - 8 * len(before.encode()) < 6
    assert 8 * len(f"{before}{value}".encode()) - last < 6


@pytest.mark.parametrize(
    "name",
    [
        *("API_KEY", "api_key", "GITHUB_TOKEN", "OAUTH_TOKEN_2", "CLIENT_SECRET", "DB_PASS", "PGPASSWORD", "REDISPASS"),
        *("SSH_PASSPHRASE", "MYSQL_PWD", "AZURE_CREDENTIALS", "KEYCLOAK_PASSWORD", "TOKENIZER_API_KEY"),
    ],
)
def test_variables_of_secret_names_are_secrets(monkeypatch, name):
    monkeypatch.setenv(name, PLAIN)

    assert redacted(f"it is {PLAIN}.") == f"it is {MARK}."


@pytest.mark.parametrize(
    "name",
    [
        *("PWD", "OLDPWD", "SSH_AUTH_SOCK", "XKB_KEYBOARD", "TOKENIZERS_PARALLELISM", "MONKEY_PATCH", "KEYCLOAK_URL"),
        *("PASSENGER_ENV", "BYPASS_CACHE", "COMPASS_HOME", "AUTHOR", "MODEL_NAME", "KEYMAP"),
    ],
)
def test_variables_that_only_look_so_are_none(monkeypatch, name):
    monkeypatch.setenv(name, PLAIN)

    assert redacted(f"it is {PLAIN}.") == f"it is {PLAIN}."


@pytest.mark.parametrize(("value", "is_hidden"), [("12345", False), ("123456", True)])
def test_six_characters_make_a_secret(monkeypatch, value, is_hidden):
    monkeypatch.setenv("A_TOKEN", value)

    assert redacted(f"a {value} b") == f"a {MARK if is_hidden else value} b"


def test_the_path_of_a_key_is_no_secret(monkeypatch, tmp_path):
    key = tmp_path / "deploy"
    key.write_text("x", encoding="utf-8")
    monkeypatch.setenv("SSH_KEY", str(key))
    monkeypatch.setenv("OTHER_KEY", str(tmp_path / "gone"))

    assert redacted(f"{key} {tmp_path / 'gone'}") == f"{key} {MARK}"


@pytest.mark.parametrize(
    ("url", "shown", "gone"),
    [
        ("postgresql://ana:hunter2-8@host/db", "ana host", "hunter2-8"),
        ("postgresql://ana:p%40ss%2Fword@host/db", "ana host", "p@ss/word"),
        ("mysql://ana:a/b@c@d-e@host/db", "ana host", "a/b@c@d-e"),
        ("https://t0ken-of-mine@host/x?mail=a@b", "host a@b", "t0ken-of-mine"),
        ("https://host/x?mail=me@example.org&access_token=t0ken-of-mine", "me@example.org", "t0ken-of-mine"),
    ],
)
def test_user_info_of_urls_in_the_environment_is_secret(monkeypatch, url, shown, gone):
    monkeypatch.setenv("WAREHOUSE", url)

    assert redacted(f"{shown} said {gone}") == f"{shown} said {MARK}"


def test_what_changes_in_the_environment_is_known_at_once(monkeypatch):
    assert redacted(PLAIN) == PLAIN
    monkeypatch.setenv("A_TOKEN", PLAIN)
    assert redacted(PLAIN) == MARK
    monkeypatch.setenv("A_TOKEN", SHORT)
    assert redacted(f"{PLAIN} {SHORT}") == f"{PLAIN} {MARK}"
    monkeypatch.delenv("A_TOKEN")
    monkeypatch.setenv("A_NAME", SHORT)
    assert redacted(SHORT) == SHORT


def test_secrets_within_each_other_leave_nothing(monkeypatch):
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    monkeypatch.setenv("B_TOKEN", "cdefghijkl")
    monkeypatch.setenv("C_TOKEN", "defghi")

    assert redacted("-abcdefghijkl-") == f"-{MARK}-"
    assert redacted("-abcdefgh cdefghijkl defghi-") == f"-{MARK} {MARK} {MARK}-"


@pytest.mark.parametrize("kept", [slice(0, 14), slice(6, None), slice(3, 17)])
def test_a_large_part_of_a_secret_that_something_has_cut_is_taken_out(monkeypatch, kept):
    monkeypatch.setenv("A_TOKEN", PLAIN)

    assert redacted(f'near "{PLAIN[kept]}..."') == f'near "{MARK}..."'


MARKED = "tok_ABCdef123456@GHIjkl7890#mnoPQRstuvwx"


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        *((MARKED, MARKED[start : start + 12]) for start in range(len(MARKED) - 11)),
        (MARKED, "GHIjkl7890"),
        *(("/ab@12#cd&34*ef,56;gh(78)", part) for part in ("/ab@12#cd&34", "#cd&34*ef,56", "ef,56;gh(78)")),
        ("/9j4AAQSkZJRgABAQ==", "/9j4AAQSkZJR"),
        ("/9j4AAQSkZJR/gABAQ2wCEAAoH/", "gABAQ2wCEAAoH"),
        ("sk-9f8e7d6c-2b", "9f8e7d6c"),
        ("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5", "AAHdqTcvCH1vGWJxfSeofSAs0K5"),
        ("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5", "WJxfSeofSAs0K"),
        ('{"id": "x7Kq2mAA", "of": "me"}', "x7Kq2mAA"),
    ],
)
def test_what_a_parser_cuts_out_of_a_secret_is_taken_out(monkeypatch, value, cut):
    monkeypatch.setenv("A_TOKEN", value)

    assert redacted(f'near "{cut}": no such column') == f'near "{MARK}": no such column'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("correct-horse#Postgres12@singer2024", "Postgres12 has singer2024 and the correct horse"),
        ("of our@singers, concert_v2_2024", "all our@singers of concert_v2_2024"),
        ("20240131#99999999@ABCDEFGH", "20240131 99999999 ABCDEFGH"),
        ("/home/me/evals/not-there.json", "/home/me/evals/suite.yaml"),
        ("a1b2c3d#a1b2c3e", "a1b2c3d and a1b2c3e"),
    ],
)
def test_words_numbers_and_folders_in_a_secret_stay_elsewhere(monkeypatch, value, said):
    monkeypatch.setenv("A_TOKEN", value)

    assert redacted(said) == said
    assert redacted(f"<{value}>") == f"<{MARK}>"


def test_parts_of_a_secret_of_words_stand_elsewhere(monkeypatch):
    monkeypatch.setenv("A_PASSPHRASE", "the singers of this country")

    assert redacted("how old are the singers of this land?") == "how old are the singers of this land?"


def test_lines_of_a_private_key_are_taken_out_one_by_one(monkeypatch):
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG", "9w0BAQEFAASCBKcwggSj", "-----END KEY-----"]
    monkeypatch.setenv("PRIVATE_KEY", "\n".join(lines) + "\n")

    said = redacted("\n".join(f"E   {line}" for line in lines))

    assert said == "\n".join([f"E   {MARK}"] * 4)


@given(st.text(max_size=40), st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=6), st.text(max_size=40))
def test_no_text_around_a_secret_saves_it(before, value, behind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_TOKEN", value)
        said = redacted(f"{before}{value}{behind}")

    assert MARK in said
    assert len(said) <= len(before) + len(MARK) + len(behind) or value in f"{before}{behind}"


@given(st.text(alphabet="abc123", max_size=80))
def test_marks_stand_where_a_search_finds_the_secrets(text):
    secrets = "abcab1", "1a2b3c"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_TOKEN", secrets[0])
        patch.setenv("B_TOKEN", secrets[1])
        said = redacted(text)

    starts = [start for start in range(len(text)) if text.startswith(secrets, start)]
    covered = {place for start in starts for place in range(start, start + 6)}
    marked = "".join("\0" if place in covered else char for place, char in enumerate(text))
    assert said.replace(MARK, "\0") == re.sub("\0+", "\0", marked)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("aaaaaa", "a" * 300_000),
        ("a1" * 8, "a1" * 150_000),
        ("@" * 20, "@" * 300_000),
        ("a b " * 5 + "c", "a b " * 100_000 + "a b c"),
        ("x7Kq2m", "x7Kq2m" * 50_000),
    ],
    ids=["letters", "pairs", "marks", "blanks", "itself"],
)
def test_a_text_that_repeats_a_secret_is_read_once(monkeypatch, value, text):
    monkeypatch.setenv("A_TOKEN", value)

    said = redacted(f"<{text}>")

    assert value not in said
    assert said.count(MARK) == 1


@pytest.mark.parametrize("value", ["".join(map(str, range(9_999, 40_000))), "word of it " * 4_000 + "end"])
def test_a_very_long_secret_is_taken_out_as_a_whole(monkeypatch, value):
    monkeypatch.setenv("A_TOKEN", value)

    assert redacted(f"<{value}> <{value.encode().hex()}> end") == f"<{MARK}> <{MARK}> end"


@pytest.mark.parametrize("kept", [slice(0, 12), slice(3_000, 3_020), slice(-4_000, -3_000), slice(-12, None)])
def test_parts_of_the_ends_of_a_very_long_secret_are_taken_out(monkeypatch, kept):
    value = "".join(map(str, range(9_999, 40_000)))
    monkeypatch.setenv("A_TOKEN", value)

    assert redacted(f"<{value[kept]}>") == f"<{MARK}>"


def test_a_secret_of_two_variables_is_one_until_both_are_gone(monkeypatch):
    monkeypatch.setenv("A_TOKEN", PLAIN)
    monkeypatch.setenv("B_TOKEN", PLAIN)
    monkeypatch.setenv("C_TOKEN", f"{PLAIN}-too")
    monkeypatch.delenv("B_TOKEN")
    assert redacted(PLAIN) == MARK
    monkeypatch.delenv("C_TOKEN")
    assert redacted(f"{PLAIN} {PLAIN}-too") == f"{MARK} {MARK}-too"
    monkeypatch.delenv("A_TOKEN")
    assert redacted(PLAIN) == PLAIN


def test_one_of_a_thousand_secrets_may_change(monkeypatch):
    for number in range(1_000):
        monkeypatch.setenv(f"A_{number}_TOKEN", f"s3cret-{number:04}-of-mine")
    assert redacted("<s3cret-0500-of-mine>") == f"<{MARK}>"

    monkeypatch.setenv("A_500_TOKEN", "an0ther~value")

    assert redacted("0500 an0ther~value s3cret-0501-of-mine") == f"0500 {MARK} {MARK}"


def test_settings_tell_their_secrets_by_their_names():
    hide_settings(
        {
            "url": "https://ann:s3cret-of-url@host/q?apikey=k3y-of-url&format=json-lines",
            "auth": {"basic": "ann:s3cret-of-basic"},
            "headers": {
                "X-Api-Key": "k3y-of-header",
                "Accept": "application/json",
                "Cookie": "c00kie=of-mine",
                "N-Key": 71077345,
            },
            "params": {"access_token": "t0ken-of-params", "mode": "strict-mode"},
            "body": "password=s3cret-of-form&query={query}&kind=tabular",
            "env": {"OPENAI_API_KEY": "k3y-of-env", "HOME_CITY": "Barcelona"},
            "steps": [{"client_secret": ["s3cret-of-list"]}],
        }
    )

    for secret in (
        *("s3cret-of-url", "k3y-of-url", "s3cret-of-basic", "k3y-of-header", "c00kie=of-mine", "t0ken-of-params"),
        *("s3cret-of-form", "k3y-of-env", "s3cret-of-list", "71077345"),
        base64.b64encode(b"ann:s3cret-of-basic").decode(),
    ):
        assert redacted(f"<{secret}>") == f"<{MARK}>"
    rest = "application/json json-lines strict-mode {query} tabular Barcelona ann"
    assert redacted(rest) == rest


def test_the_scheme_before_a_token_is_no_part_of_it():
    hide_settings({"headers": {"Authorization": "Bearer t0ken-of-authorization"}})

    assert redacted("sent t0ken-of-authorization as Bearer") == f"sent {MARK} as Bearer"


def test_what_is_filled_into_a_secret_setting_is_no_secret():
    hide_settings({"params": {"key": "k3y-before {question}"}, "api_key": "{question}"})

    assert redacted('needs "{question}", k3y-before 7') == f'needs "{{question}}", {MARK} 7'


@pytest.mark.parametrize(
    "shown",
    [
        printable,
        one_line,
        told,
        plain_cell,
        lambda text: both_ends(text, 200),
        lambda text: shortened(f"{text}{'x' * 300}", 300),
        lambda text: plain({text: [text]}, text=told),
    ],
)
def test_every_way_to_an_output_takes_secrets_out(monkeypatch, shown):
    monkeypatch.setenv("A_TOKEN", PLAIN)

    said = str(shown(f"a {PLAIN} b"))

    assert MARK in said
    assert PLAIN not in said


@pytest.mark.parametrize("cut", range(4, 30))
@pytest.mark.parametrize("value", ["pass  word", "a##b\x1b[0m", PLAIN])
def test_a_secret_is_taken_out_before_the_text_is_cut(monkeypatch, value, cut):
    monkeypatch.setenv("A_TOKEN", value)

    assert one_line(f"ab {value} cd", cut) == shortened(f"ab {MARK} cd", cut)
    assert shortened(f"ab {value} cd", cut) == shortened(f"ab {MARK} cd", cut) or len(f"ab {value} cd") <= cut


def test_bytes_that_hold_a_secret_do_not_show_it(monkeypatch):
    monkeypatch.setenv("A_TOKEN", PLAIN)

    assert plain_cell(b"\x00" + PLAIN.encode() + b"\xff") == f"x'00{MARK}ff'"


def test_what_predictors_are_sent_stays_as_it_is(monkeypatch):
    monkeypatch.setenv("A_TOKEN", PLAIN)

    assert plain({"note": PLAIN}) == {"note": PLAIN}


def test_threads_may_find_secrets_while_the_environment_changes(monkeypatch):
    monkeypatch.setenv("A_TOKEN", PLAIN)
    faults = []

    def look():
        try:
            faults.extend(said for _ in range(300) if (said := redacted(f"<{PLAIN}>")) != f"<{MARK}>")
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            faults.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(300):
        monkeypatch.setenv(f"B_{number}_TOKEN", f"another-secret-{number}")
        monkeypatch.delenv(f"B_{number}_TOKEN")
    for thread in threads:
        thread.join()

    assert faults == []


def test_a_child_process_needs_nothing_else_to_know_the_secrets_of_the_environment():
    program = (
        f"import sys; from pytest_queryeval.text.redaction import redacted; sys.stdout.write(redacted('<{PLAIN}>'))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], env={"A_TOKEN": PLAIN}, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == f"<{MARK}>"
