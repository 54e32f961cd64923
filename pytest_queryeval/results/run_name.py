"""The name of a run in all of its reports: what answered, and at which commit."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.report import PredictorReport
from pytest_queryeval.text.truncation import one_line

COMMIT_VARIABLES = (
    "GITHUB_SHA",
    "CI_COMMIT_SHA",  # GitLab
    "BUILD_SOURCEVERSION",  # Azure
    "BITBUCKET_COMMIT",
    "CIRCLE_SHA1",
    "GIT_COMMIT",  # Jenkins
)
GIT_SECONDS = 2.0
CHARACTERS = 100


def predictor_of(cases: Iterable[CaseReport]) -> PredictorReport:
    """Return what answered the cases."""
    return {"sources": sorted({case["prediction"]["source"] for case in cases if case["prediction"]})}


def run_name(chosen_name: str, predictor: PredictorReport, folder: Path) -> str:
    """Return, in one line, the name that a user chose, else one of the predictors and the commit of a folder."""
    if chosen_name.strip():
        return one_line(chosen_name, CHARACTERS)
    commit = _commit(folder)
    sources = one_line(", ".join(predictor["sources"]), CHARACTERS - len(commit) - 1)
    return " ".join(filter(None, (sources, commit)))


def _commit(folder: Path) -> str:
    """Return the short id of the commit in CI, else of git, with `+dirty` after changes; empty if there is none."""
    commits = (os.environ.get(variable, "") for variable in COMMIT_VARIABLES)
    if commit := next(filter(re.compile("[0-9a-f]{7,64}").fullmatch, commits), ""):
        return commit[:7]
    options = ("--always", "--abbrev=7", "--dirty=+dirty", "--exclude=*")
    try:
        description = subprocess.run(  # noqa: S603 - nothing of it comes from outside
            ["git", "-c", "core.fsmonitor=false", "describe", *options],  # noqa: S607 - as a user calls it
            cwd=folder,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},  # a run does not lock the index
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
        ).stdout.decode("ascii")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):  # no git, no repository, no time
        return ""
    return description.strip()
