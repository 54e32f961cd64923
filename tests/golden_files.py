"""Golden files: what users see, line by line, as it was when it was last looked at."""

import difflib
import os
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def printable(text):
    """Return the text with escapes for everything that an editor or a terminal would not show."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def compare_golden(lines, name):
    """Compare lines with those of a file in `golden/`, or write them there."""
    golden, actual = GOLDEN / name, [printable(line) for line in lines]
    if os.environ.get("QUERYEVAL_RENEW_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text("\n".join(actual) + "\n", encoding="utf-8")
    expected = golden.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    difference = list(difflib.unified_diff(expected, actual, f"golden/{name}", "now", n=0, lineterm=""))
    if difference:
        pytest.fail("\n".join([*(line[:400] for line in difference[:40]), "`make golden` renews it"]), pytrace=False)
