"""The names of reviewers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from pytest_queryeval.core.errors import ReportError

MAX_NAME_CHARACTERS = 100
GIT_SECONDS = 10.0


def check_reviewer(name: str, problem: Callable[[str], Exception]) -> str:
    """Return a reviewer's name without outer blanks; raise a `problem` for one that reports cannot show in a line."""
    name = name.strip(" ")
    if not name or not name.isprintable() or len(name) > MAX_NAME_CHARACTERS:
        raise problem(f"the name of a reviewer has 1 to {MAX_NAME_CHARACTERS} characters that can be printed")
    return name


def git_user() -> str:
    """Return git's user.name; raise `ReportError` if there is none."""
    try:
        output = subprocess.run(
            ["git", "config", "user.name"],  # noqa: S607 - as a user calls it
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=True,
        ).stdout
        return output.decode().strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise ReportError("who reviewed it? git has no user.name: add --reviewer NAME") from error
