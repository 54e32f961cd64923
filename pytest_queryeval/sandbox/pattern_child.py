"""Driver of texts that are searched or matched by a regular expression, in a child process."""

from __future__ import annotations

import re

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Settings, Verdict, make_answer


class Driver(driver.Driver):
    """Searches the query, or matches all `texts` of the settings, with the `pattern` of the settings."""

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Return one row if the pattern matches anywhere in `query`, otherwise none.

        If the settings contain `texts`, return a row for each text that the pattern does not match as a whole.
        """
        if "texts" in settings:
            pattern = re.compile(settings["pattern"], settings["flags"])
            return make_answer(("text",), [(text,) for text in settings["texts"] if not pattern.fullmatch(text)])
        return make_answer(("match",), [(True,)] if re.search(settings["pattern"], query) else [])

    def classify(self, error: Exception) -> Verdict:
        """Return a failure of the kind invalid with the type and the message of the error."""
        return "failure", "invalid", f"{type(error).__name__}: {error}"
