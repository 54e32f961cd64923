"""`git bisect run` as docs/how-to/compare-versions.md has it finds the commit that made a suite worse."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documentation import page as page_of

pytestmark = pytest.mark.process

PAGE = page_of("compare-versions")
RUNS = re.findall(r"^git bisect run .*$", PAGE, re.MULTILINE)
RECORDING = re.search(r"^pytest .* --queryeval-record=\.\./recorded", PAGE, re.MULTILINE).group()
SUITE = """\
kind: sql
source: {{sqlite: {{script: shop.sql}}}}
predictor: predict.py:answer
{settings}
cases:
  - {{id: names, question: Which items are there?, gold: SELECT name FROM item}}
"""
LISTED = "def answer(case):\n    return 'SELECT upper(name) FROM item'\n"
BOTH_CASES = "compare: {case: ignore}"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repository"
    (folder / "queries").mkdir(parents=True)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # files that change twice in a second would have a stale cache
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name, text in {
        "pytest.ini": "[pytest]\naddopts = -p no:cacheprovider\n",
        "queries/shop.sql": "CREATE TABLE item (name TEXT);\nINSERT INTO item VALUES ('Cup'), ('Pan');\n",
        "queries/predict.py": LISTED,
        "queries/shop.queryeval.yaml": SUITE.format(settings=BOTH_CASES),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "git init -q .")
    commit(folder, "first")
    return folder


def git(folder, command):
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def commit(folder, message):
    (folder / "README").write_text(message, encoding="utf-8")
    git(folder, f"git add -A && git commit -qm '{message}'")


def first_bad(folder, command):
    git(folder, "git bisect start HEAD $(git rev-list --max-parents=0 HEAD)")
    printed = git(folder, command)
    assert "is the first bad commit" in printed or "is the first 'bad' commit" in printed
    return git(folder, "git log -1 --format=%s refs/bisect/bad").strip()


def test_the_commit_after_which_the_system_is_wrong_is_found(repository):
    for number in range(2):
        commit(repository, f"good {number}")
    (repository / "queries/shop.queryeval.yaml").write_text("cases: [", encoding="utf-8")
    commit(repository, "a suite that cannot be read, which says nothing about the system")
    (repository / "queries/shop.queryeval.yaml").write_text(SUITE.format(settings=BOTH_CASES), encoding="utf-8")
    commit(repository, "a suite again")
    (repository / "queries/predict.py").write_text(LISTED.replace("FROM item", "FROM item LIMIT 1"), encoding="utf-8")
    commit(repository, "bad")
    commit(repository, "after it")

    assert first_bad(repository, RUNS[0]) == "bad"


@pytest.mark.slow  # much the same as the other one
def test_a_setting_is_found_with_recorded_answers_and_without_the_system(repository):
    git(repository, RECORDING)
    commit(repository, "good")
    (repository / "queries/predict.py").write_text("def answer(case):\n    raise SystemError\n", encoding="utf-8")
    commit(repository, "a system that is out of order")
    (repository / "queries/shop.queryeval.yaml").write_text(SUITE.format(settings=""), encoding="utf-8")
    commit(repository, "bad")
    commit(repository, "after it")

    assert first_bad(repository, RUNS[1]) == "bad"


def test_the_documentation_has_both_ways():
    assert len(RUNS) == 2
    assert ("--queryeval-replay=" in RUNS[0], "--queryeval-replay=" in RUNS[1]) == (False, True)
