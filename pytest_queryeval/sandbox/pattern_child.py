"""Driver of texts that are searched by a regular expression, in a child process."""

from __future__ import annotations

import re

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Settings, Verdict, make_answer


class Driver(driver.Driver):
    """Driver that searches a text by the `pattern` of its settings."""

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Return a row if the pattern matches anywhere in the text."""
        return make_answer(("match",), [(True,)] if re.search(settings["pattern"], query) else [])

    def classify(self, error: Exception) -> Verdict:
        """Return the type of an error; the pattern was compiled when it was read."""
        return "failure", "invalid", f"{type(error).__name__}: {error}"
