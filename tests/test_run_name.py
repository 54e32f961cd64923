"""Names of runs: what a user calls them, else the predictor and the commit."""

import shutil
import subprocess

import pytest

from pytest_queryeval.runs import report as module
from pytest_queryeval.runs.report import CHARACTERS, COMMIT_VARIABLES, run_name

PREDICTOR = {"sources": ["app.py:predict"]}
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-q", "-m", "first")
    return tmp_path, git


def test_a_given_name_is_taken_as_one_harmless_line(tmp_path):
    assert run_name("  my\nrun ##[error]\x1b[1m ", PREDICTOR, tmp_path) == "my run #\\x23[error]\\x1b[1m"
    assert len(run_name("a" * 1000, PREDICTOR, tmp_path)) == CHARACTERS


def test_a_secret_is_removed_from_a_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")

    assert "hunter2" not in run_name("with hunter2hunter2", PREDICTOR, tmp_path)


@needs_git
def test_the_default_is_predictor_and_commit_with_a_mark_after_changes(repository):
    folder, git = repository
    commit = git("rev-parse", "--short=7", "HEAD")
    git("tag", "-a", "v1", "-m", "a tag is not a commit")

    assert run_name("", PREDICTOR, folder) == f"app.py:predict {commit}"
    (folder / "file").write_text("2")
    assert run_name(" ", {"sources": ["a", "b"]}, folder) == f"a, b {commit}+dirty"


@needs_git
def test_a_long_list_of_predictors_leaves_room_for_the_commit(repository):
    folder, git = repository

    name = run_name("", {"sources": [f"model-{number}" for number in range(100)]}, folder)

    assert len(name) == CHARACTERS
    assert name.endswith(git("rev-parse", "--short=7", "HEAD"))


@pytest.mark.parametrize("variable", COMMIT_VARIABLES)
def test_ci_names_the_commit(tmp_path, monkeypatch, variable):
    monkeypatch.setenv(variable, "0123456789abcdef0123456789abcdef01234567")
    monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: pytest.fail("git was asked"))

    assert run_name("", PREDICTOR, tmp_path) == "app.py:predict 0123456"


def test_a_variable_that_is_no_commit_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "::error::x")

    assert run_name("", PREDICTOR, tmp_path) == "app.py:predict"


@pytest.mark.parametrize(
    "fault", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 2), subprocess.CalledProcessError(128, "git")]
)
def test_a_run_without_git_has_the_name_of_its_predictor(tmp_path, monkeypatch, fault):
    def fail(command, *, timeout, **settings):
        assert (timeout, settings.get("shell")) == (module.GIT_SECONDS, None)
        raise fault

    monkeypatch.setattr(module.subprocess, "run", fail)

    assert run_name("", PREDICTOR, tmp_path) == "app.py:predict"
    assert run_name("", {"sources": []}, tmp_path) == ""
