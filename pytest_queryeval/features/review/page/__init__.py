"""The page on which people review golds and judge the answers of an audit: a server on this machine, and its script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.review.decisions import git_user
from pytest_queryeval.features.review.page.review import Review
from pytest_queryeval.reports.html import SCRIPTS, assets, template

HERE = Path(__file__).parent
# Except the scripts for a list of cases that the page itself contains.
SHARED_SCRIPTS = tuple(path for path in SCRIPTS if path.stem not in ("cases", "start"))


def serve_review(review: Review, *, title: str, port: int | None, tell: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C; `tell` gets its address. Without a port, the usual one or any free one is taken.

    Raise `ReportError` if the port is taken, and if an extra is not installed.
    """
    try:
        from pytest_queryeval.features.review.page.server import serve
    except ModuleNotFoundError as error:
        raise ReportError(f"--serve needs {error.name}: pip install 'pytest-queryeval[review]'") from error
    try:
        serve(review, html(title), port=port, tell=tell)
    finally:
        review.close()


def html(title: str) -> str:
    """Return the page, which asks the server for all that it shows."""
    try:
        reviewer = git_user()
    except ReportError:
        reviewer = ""
    return template(HERE / "review.html.jinja").render(
        title=title,
        reviewer=reviewer,
        **assets(*SHARED_SCRIPTS, HERE / "review.js", styles=[HERE / "review.css"], connects=True),
    )
