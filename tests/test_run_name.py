"""Names of runs: what a user calls them, else the predictor and the commit."""

import shutil
import subprocess

import pytest
from samples import COMMIT_VARIABLES, make_case

from pytest_queryeval import evaluate

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


def name_of_run(name=""):
    return evaluate([make_case()], name=name)["name"]


def git(*arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)
    return done.stdout.decode().strip()


def test_a_given_name_is_taken_as_one_harmless_line_without_secrets(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")

    assert name_of_run("  my\nrun ##[error]\x1b[1m ") == "my run #\\x23[error]\\x1b[1m"
    assert len(name_of_run("a" * 1000)) == 100
    assert "hunter2" not in name_of_run("with hunter2hunter2")


@needs_git
def test_the_default_is_predictor_and_commit_with_a_mark_after_changes(folder):
    (folder / "file").write_text("1")
    git("init", "-q")
    git("add", "file")
    git("commit", "-q", "-m", "first")
    git("tag", "-a", "v1", "-m", "a tag is not a commit")
    commit = git("rev-parse", "--short=7", "HEAD")

    assert name_of_run() == f"inline {commit}"
    (folder / "file").write_text("2")
    assert name_of_run(" ") == f"inline {commit}+dirty"


@pytest.mark.parametrize("variable", COMMIT_VARIABLES)
def test_ci_names_the_commit(monkeypatch, variable):
    monkeypatch.setenv(variable, "0123456789abcdef0123456789abcdef01234567")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git was asked"))

    assert name_of_run() == "inline 0123456"


@pytest.mark.parametrize(
    "fault", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 2), subprocess.CalledProcessError(128, "git")]
)
def test_a_run_without_git_or_with_a_variable_that_is_no_commit_has_the_name_of_its_predictor(monkeypatch, fault):
    def fail(command, *, timeout, **settings):
        assert (timeout, settings.get("shell")) == (2.0, None)
        raise fault

    monkeypatch.setenv("GITHUB_SHA", "::error::x")
    monkeypatch.setattr(subprocess, "run", fail)

    assert name_of_run() == "inline"
