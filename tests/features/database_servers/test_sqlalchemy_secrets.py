"""The password of a database stays between the suite, its environment and the server."""

import json
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from opened_sources import execute, source_of
from waiting import child_processes

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.testing import open_engine

pytest.importorskip("sqlalchemy")
pytest_plugins = ["postgres"]

SUITE = """
kind: sql
source: {sqlalchemy: "${QUERYEVAL_TEST_URL}"}
cases:
  - {id: right, gold: select 1, predicted: select 1}
  - {id: wrong, gold: select 1, predicted: select leak()}
  - {id: broken, gold: select leak(), predicted: select 1}
"""


def spellings(secret):
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}


def hidden(text, cluster):
    return [form for form in spellings(cluster.password) | {cluster.spelled} if form in text] == []


@pytest.fixture
def leak(cluster):
    """A function whose error repeats the password in all its spellings."""
    body = " / ".join(sorted(spellings(cluster.password))).replace("%", "%%")
    cluster.sql(f"create function leak() returns int language plpgsql as $$ begin raise 'leak {body}'; end $$")
    yield
    cluster.sql("drop function leak")


@pytest.fixture
def outcome(pytester, monkeypatch):
    """Runs the suite on a database and gives all that it wrote, the reports included."""

    def run(url, *arguments):
        pytester.path.joinpath("a.queryeval.yaml").write_text(SUITE, encoding="utf-8")
        monkeypatch.setenv("QUERYEVAL_TEST_URL", url)
        result = pytester.runpytest_inprocess(
            "--queryeval-report=reports", "--junitxml=junit.xml", "-vv", "-rA", "--showlocals", *arguments
        )
        written = [
            path.read_text(encoding="utf-8") for path in pytester.path.rglob("*") if path.suffix in (".json", ".xml")
        ]
        return result, "\n".join([result.stdout.str(), result.stderr.str(), *written])

    return run


@pytest.mark.usefixtures("leak")
def test_a_password_that_the_server_repeats_is_in_no_output(outcome, pytester, cluster):
    result, written = outcome(cluster.url("guarded", password=cluster.spelled))

    result.assert_outcomes(passed=1, failed=1, errors=1)
    report = json.loads(next(pytester.path.joinpath("reports").glob("*.json")).read_text())
    assert [case["id"] for case in report["cases"]] == ["right", "wrong", "broken"]
    assert "leak …" in written
    assert hidden(written, cluster)


def test_a_wrong_password_is_an_error_that_does_not_tell_it(outcome, cluster):
    result, written = outcome(cluster.url("guarded", password="mistaken-horse"))

    result.assert_outcomes(errors=3)
    assert f"source 'postgresql://127.0.0.1:{cluster.port}/music'" in written
    assert 'password authentication failed for user "guarded"' in written
    assert "mistaken" not in written


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql+psycopg2://guarded:{}@127.0.0.1/music", "read through psycopg"),
        ("postgresql://guarded:{}@127.0.0.1:port/music", "in a password, @ is %40"),
    ],
)
def test_a_url_that_cannot_be_right_is_refused_while_collecting_and_not_shown(outcome, cluster, url, problem):
    result, written = outcome(url.format(cluster.spelled), "--collect-only")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert problem in written
    assert hidden(written, cluster)
    result, written = outcome("postgresql://guarded:mistaken-horse@127.0.0.1:1/music", "--collect-only")
    assert result.ret == pytest.ExitCode.OK  # collecting connects to nothing
    assert "mistaken" not in written


@pytest.mark.parametrize("password", ["pw", "pass%20word", "music", "%C3%BC%F0%9F%8E%BB"])
def test_passwords_of_all_kinds_are_taken_out_of_a_refused_login(cluster, hosts, password):
    url = f"{cluster.url('guarded', password=password)}?application_name={password}"

    with pytest.raises(SourceError) as caught:
        execute(hosts, source_of("sqlalchemy", url=url), "select 1")

    assert 'failed for user "guarded"' in str(caught.value)
    assert password not in str(caught.value).partition("music':")[2]


@pytest.mark.parametrize("where", ["?password={}", "?user=guarded&sslpassword={}"])
def test_a_password_among_the_parameters_is_taken_out_too(cluster, hosts, where):
    url = f"postgresql://127.0.0.1:{cluster.port}/music{where.format('mistaken-horse')}&options=-cmistaken-horse"

    with pytest.raises(SourceError) as caught:
        execute(hosts, source_of("sqlalchemy", url=url), "select 1")

    assert "mistaken" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_password_is_not_in_the_list_of_processes(cluster):
    others = child_processes()
    with open_engine(source_of("sqlalchemy", url=cluster.url("guarded", password=cluster.spelled))) as engine:
        assert engine.execute("select 1", timeout=20, max_rows=1).error is None
        (pid,) = child_processes() - others

        content = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))

    assert b"host_child.py" in content
    assert hidden(content.decode(errors="replace"), cluster)
