"""Driver of texts that are searched or matched by a regular expression, in a child process."""

from __future__ import annotations

import re

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Settings, Verdict, make_answer


class Driver(driver.Driver):
    """Driver that searches a text by the `pattern` of its settings, or matches the whole `texts` of these."""

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Return a row if the pattern matches anywhere in the text; of `texts`, a row with each that does not match."""
        if "texts" in settings:
            pattern = re.compile(settings["pattern"], settings["flags"])
            return make_answer(("text",), [(text,) for text in settings["texts"] if not pattern.fullmatch(text)])
        return make_answer(("match",), [(True,)] if re.search(settings["pattern"], query) else [])

    def classify(self, error: Exception) -> Verdict:
        """Return the type of an error; the pattern was compiled when it was read."""
        return "failure", "invalid", f"{type(error).__name__}: {error}"
