"""`env_file`: variables of suites that the environment does not set."""

import os

import pytest
from suites import load, write

from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.text.redaction import redact

SUITE = "kind: sql\nsource: {sqlite: '${DB_FILE}'}\ncases:\n  - {id: a, gold: SELECT 1, predicted: SELECT 1}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DB_FILE", raising=False)
    return tmp_path


def file_of(name="s.queryeval.yaml"):
    (case,) = load(SUITE, name)
    return case.settings.source.settings["path"]


def test_the_nearest_file_counts_after_the_environment(monkeypatch):
    write("env_file: .env\n", "queryeval.yaml")
    write("env_file: own.env\n", "below/queryeval.yaml")
    write("# databases\nexport DB_FILE='top db.sqlite'\nEMPTY=\n", ".env")
    write("DB_FILE=below.sqlite # a comment", "below/own.env")

    assert file_of() == "top db.sqlite"
    assert file_of("below/s.queryeval.yaml") == "below.sqlite"
    assert file_of("other/s.queryeval.yaml") == "top db.sqlite"
    monkeypatch.setenv("DB_FILE", "set.sqlite")
    assert file_of("below/s.queryeval.yaml") == "set.sqlite"


def test_settings_of_the_same_folder_can_use_its_variables():
    write("sources: {main: {sqlite: '${DB_FILE}'}}\nenv_file: {path: .env}\n", "queryeval.yaml")
    write("DB_FILE=a.sqlite", ".env")

    (case,) = load(SUITE.replace("{sqlite: '${DB_FILE}'}", "main"))

    assert case.settings.source.settings["path"] == "a.sqlite"


def test_a_missing_file_is_no_error_and_leaves_nothing_behind():
    write("env_file: .env\n", "queryeval.yaml")
    env = write("DB_FILE=a.sqlite", ".env")
    assert file_of() == "a.sqlite"

    env.unlink()

    with pytest.raises(SuiteError, match="environment variable 'DB_FILE' is not set"):
        file_of()


def test_nothing_is_exported_unless_the_folder_says_so(monkeypatch):
    monkeypatch.setenv("SET_VARIABLE", "environment")
    write("DB_FILE=a.sqlite\nSET_VARIABLE=file", ".env")
    write("env_file: .env\n", "queryeval.yaml")
    file_of()
    assert "DB_FILE" not in os.environ

    monkeypatch.setattr(os, "environ", dict(os.environ))
    write("env_file: {path: .env, export: true}\n", "queryeval.yaml")
    file_of()

    assert os.environ["DB_FILE"] == "a.sqlite"
    assert os.environ["SET_VARIABLE"] == "environment"


def test_secrets_in_the_file_are_kept_out_of_reports():
    write("env_file: .env\n", "queryeval.yaml")
    write("DB_FILE=a.sqlite\nSHOP_API_TOKEN=correct-horse-battery", ".env")
    file_of()

    assert redact("sent correct-horse-battery") == "sent [redacted]"


@pytest.mark.parametrize(
    ("setting", "content", "said"),
    [
        (".env", "A=1\nnot a variable at all!\n", ".env:2: not a line such as NAME=value"),
        (".env", "A='open\n", ".env:1: not a line such as NAME=value"),
        ("[.env]", "", "queryeval.yaml:1: "),
        ("{path: .env, exports: true}", "", "queryeval.yaml:1: unknown key 'exports': did you mean 'export'?"),
        ("{export: true}", "", "queryeval.yaml:1: env_file needs a `path`"),
        ("{path: .env, export: true}", 'NAME="a\0b"', ".env: 'NAME' holds a NUL character"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(setting, content, said):
    write(f"env_file: {setting}\n", "queryeval.yaml")
    write(content, ".env")

    with pytest.raises(SuiteError) as caught:
        file_of()

    assert said in str(caught.value)
