"""A secret is taken out of every text by its value, however it is spelled; nothing else is touched."""

import base64
import json
import os
import pickle
import re
import threading
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_queryeval
from pytest_queryeval.core.json_value import to_jsonable
from pytest_queryeval.features.command_predictor.replies import (  # white box: at each cut
    STDERR_CHARACTERS,
    stderr_tail,
    stderr_text,
)
from pytest_queryeval.features.json.difference import MAX_PATH, path_text  # white box: at each cut
from pytest_queryeval.features.json.schema_child import short_repr  # white box: at each cut
from pytest_queryeval.sandbox.http_messages import message  # white box: at each cut
from pytest_queryeval.text.formatting import (  # white box: each way to a text, at each cut
    AHEAD,
    CELL_CHARACTERS,
    cell_text,
    one_line,
    one_line_with_end,
    terminal_safe,
    truncate,
    truncate_middle,
)
from pytest_queryeval.text.redaction import MARK, redact, register_secrets, secrets_in  # white box: any text

PLAIN = "sk-live-4f9aQz7Lm2Xw"
ODD = "p@ss/w0rd+ü'\"<&\\ 1%"
SHORT = "x7Kq2mZ9"


@pytest.fixture(autouse=True)
def _environment_without_secrets(monkeypatch):
    for name in [name for name in os.environ if name != "PYTEST_CURRENT_TEST"]:
        monkeypatch.delenv(name)


SPELLINGS = {
    "itself": lambda value: value,
    "SQL": lambda value: value.replace("'", "''"),
    "SQL name": lambda value: value.replace('"', '""'),
    "quoted": quote,
    "quoted whole": lambda value: quote(value, safe=""),
    "quoted with plus": quote_plus,
    "JSON": lambda value: json.dumps(value)[1:-1],
    "JSON with all letters": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "repr": lambda value: repr(value)[1:-1],
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 without padding": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64 of URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
}


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("value", [PLAIN, ODD, SHORT, "correct horse battery"])
def test_a_secret_is_taken_out_in_every_spelling(monkeypatch, value, spelled):
    monkeypatch.setenv("MODEL_API_KEY", value)

    assert redact(f"<{spelled(value)}>") == f"<{MARK}>"
    assert secrets_in(pickle.dumps({"key": [f"<{spelled(value)}>"]}))
    assert not secrets_in(pickle.dumps({"key": [f"<{spelled(value)[1:]}"]}))


SECRET_NAMES = (
    *("API_KEY", "api_key", "GITHUB_TOKEN", "OAUTH_TOKEN_2", "CLIENT_SECRET", "DB_PASS", "PGPASSWORD", "REDISPASS"),
    *("SSH_PASSPHRASE", "MYSQL_PWD", "AZURE_CREDENTIALS", "KEYCLOAK_PASSWORD", "TOKENIZER_API_KEY"),
)
OTHER_NAMES = (
    *("PWD", "OLDPWD", "SSH_AUTH_SOCK", "XKB_KEYBOARD", "TOKENIZERS_PARALLELISM", "MONKEY_PATCH", "KEYCLOAK_URL"),
    *("PASSENGER_ENV", "BYPASS_CACHE", "COMPASS_HOME", "AUTHOR", "MODEL_NAME", "KEYMAP"),
)


@pytest.mark.parametrize("name", SECRET_NAMES + OTHER_NAMES)
def test_variables_of_secret_names_are_secrets_and_those_that_only_look_so_are_none(monkeypatch, name):
    monkeypatch.setenv(name, PLAIN)

    assert redact(f"it is {PLAIN}.") == f"it is {MARK if name in SECRET_NAMES else PLAIN}."


@pytest.mark.parametrize(("value", "is_hidden"), [("1234567", False), ("12345678", True)])
def test_eight_characters_make_a_secret(monkeypatch, value, is_hidden):
    monkeypatch.setenv("A_TOKEN", value)

    assert redact(f"a {value} b") == f"a {MARK if is_hidden else value} b"


def test_the_path_of_a_key_is_no_secret(monkeypatch, tmp_path):
    key = tmp_path / "deploy"
    key.write_text("x", encoding="utf-8")
    monkeypatch.setenv("SSH_KEY", str(key))
    monkeypatch.setenv("OTHER_KEY", str(tmp_path / "gone"))

    assert redact(f"{key} {tmp_path / 'gone'}") == f"{key} {MARK}"


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

    assert redact(f"{shown} said {gone}") == f"{shown} said {MARK}"


def test_what_changes_in_the_environment_is_known_at_once(monkeypatch):
    assert redact(PLAIN) == PLAIN
    monkeypatch.setenv("A_TOKEN", PLAIN)
    assert redact(PLAIN) == MARK
    monkeypatch.setenv("A_TOKEN", SHORT)
    assert redact(f"{PLAIN} {SHORT}") == f"{PLAIN} {MARK}"
    monkeypatch.delenv("A_TOKEN")
    monkeypatch.setenv("A_NAME", SHORT)
    assert redact(SHORT) == SHORT


def test_secrets_within_each_other_leave_nothing(monkeypatch):
    monkeypatch.setenv("A_TOKEN", "abcdefghijkl")
    monkeypatch.setenv("B_TOKEN", "cdefghij")

    assert redact("-abcdefghijkl- -cdefghij-") == f"-{MARK}- -{MARK}-"


def test_lines_of_a_private_key_are_taken_out_one_by_one(monkeypatch):
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG", "9w0BAQEFAASCBKcwggSj", "-----END KEY-----"]
    monkeypatch.setenv("PRIVATE_KEY", "\n".join(lines) + "\n")

    said = redact("\n".join(f"E   {line}" for line in lines))

    assert said == "\n".join([f"E   {MARK}"] * 4)


@given(st.text(max_size=40), st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=8), st.text(max_size=40))
def test_no_text_around_a_secret_saves_it(before, value, behind):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_TOKEN", value)
        said = redact(f"{before}{value}{behind}")
        assert secrets_in(pickle.dumps({f"{before}{value}{behind}": None}))

    assert MARK in said
    assert value not in said or value in MARK


def test_a_secret_of_two_variables_is_one_until_both_are_gone(monkeypatch):
    monkeypatch.setenv("A_TOKEN", PLAIN)
    monkeypatch.setenv("B_TOKEN", PLAIN)
    monkeypatch.setenv("C_TOKEN", f"{PLAIN}-too")
    monkeypatch.delenv("B_TOKEN")
    assert redact(PLAIN) == MARK
    monkeypatch.delenv("C_TOKEN")
    assert redact(f"{PLAIN} {PLAIN}-too") == f"{MARK} {MARK}-too"
    monkeypatch.delenv("A_TOKEN")
    assert redact(PLAIN) == PLAIN


def test_settings_tell_their_secrets_by_their_names():
    register_secrets(
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
        assert redact(f"<{secret}>") == f"<{MARK}>"
    rest = "application/json json-lines strict-mode {query} tabular Barcelona ann"
    assert redact(rest) == rest


def test_the_scheme_before_a_token_is_no_part_of_it():
    register_secrets({"headers": {"Authorization": "Bearer t0ken-of-authorization"}})

    assert redact("sent t0ken-of-authorization as Bearer") == f"sent {MARK} as Bearer"


def test_what_is_filled_into_a_secret_setting_is_no_secret():
    register_secrets({"params": {"key": "k3y-before {question}"}, "api_key": "{question}"})

    assert redact('needs "{question}", k3y-before 7') == f'needs "{{question}}", {MARK} 7'


@pytest.mark.parametrize(
    "shown",
    [
        terminal_safe,
        one_line,
        lambda text: one_line_with_end(text, 200),
        lambda text: to_jsonable({text: [text]}, text=redact),
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

    assert one_line(f"ab {value} cd", cut) == truncate(f"ab {MARK} cd", cut)


CUTS = {
    "truncate": (truncate, 40),
    "truncate_middle": (truncate_middle, 40),
    "one_line": (one_line, 40),
    "one_line_with_end": (one_line_with_end, 40),
    "cell": (lambda text, most: cell_text(text, most), 40),
    "far ahead": (lambda text, most: one_line(text.rjust(AHEAD * most), most), 40),
    "answer of a service": (lambda text, most: message("text/plain", text.encode(), most), 40),
    "path of JSON": (lambda text, most: path_text([text, text]), MAX_PATH),
    "key of JSON": (lambda text, most: path_text([text]), MAX_PATH),
    "value of JSON": (lambda text, most: short_repr(text, most), 40),
    "schema of JSON": (lambda text, most: short_repr([text], most), 40),
    "stderr": (lambda text, most: stderr_text(text.encode()), STDERR_CHARACTERS),
    "last lines of stderr": (lambda text, most: "".join(stderr_tail(text.encode())), CELL_CHARACTERS),
}


@pytest.mark.parametrize(("shorten", "most"), CUTS.values(), ids=CUTS)
def test_no_part_of_a_secret_is_left_at_any_cut(monkeypatch, shorten, most):
    monkeypatch.setenv("A_TOKEN", PLAIN)
    pieces = {PLAIN[start : start + 4] for start in range(len(PLAIN) - 3)}

    for before in {*range(50), *range(max(most - 50, 0), most + 5)}:
        for behind in ("", "d" * most):
            actual = redact(str(shorten(f"{'b' * before}{PLAIN}{behind}", most)))  # where it leaves

            assert not [piece for piece in pieces if piece in actual], actual


def test_only_what_shows_stored_reports_cuts_without_looking_for_secrets():
    package = Path(pytest_queryeval.__file__).parent
    cutting = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if re.search(r"import .*\bcut(?:_middle)?\b", path.read_text(encoding="utf-8"))
    }

    assert cutting <= {"reports", "features"}


def test_what_predictors_are_sent_stays_as_it_is(monkeypatch):
    monkeypatch.setenv("A_TOKEN", PLAIN)

    assert to_jsonable({"note": PLAIN}) == {"note": PLAIN}


def test_threads_may_find_secrets_while_the_environment_changes(monkeypatch):
    monkeypatch.setenv("A_TOKEN", PLAIN)
    faults = []

    def look():
        try:
            faults.extend(said for _ in range(300) if (said := redact(f"<{PLAIN}>")) != f"<{MARK}>")
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
